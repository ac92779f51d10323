#include "collectives/layers.h"
#include "collectives/counters/counters.h"
#include "collectives/fabric/fabric.h"
#include "collectives/gpu/gpu.h"
#include "collectives/other/neuron.h"
#include "core/run/clock.h"
#include "core/run/stop.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct shk_transport *const cuda_layers[] = {
    &shk_transport_peer,        &shk_transport_lsa,      &shk_transport_nccl,
    &shk_transport_nccl_window, &shk_transport_multimem,
};

/* Of these, the first ones use one set of ranks in turn, and all but peer one communicator. */
#define LAYERS_SHARED 4U

/* With two GPUs a switch saves nothing, and NCCL's symmetric kernels leave it out there, too. */
#define LAYERS_MULTIMEM_RANKS 3U

static const char *layer_text(const struct shk_facts *facts, const char *layer, const char *member)
{
    char key[64];
    const char *text = NULL;

    snprintf(key, sizeof key, "collective.%s.%s", layer, member);
    text = shk_facts_get_text(facts, key);
    return text ? text : "";
}

/* Did any rank get as far as a GPU of its own? */
static bool layer_has_gpus(const struct shk_facts *facts, const char *layer)
{
    char key[64];

    snprintf(key, sizeof key, "collective.%s.devices", layer);
    return json_array_size(shk_facts_get_array(facts, key)) > 0;
}

static bool layer_broke(const struct shk_facts *facts, const char *layer)
{
    const char *status = layer_text(facts, layer, "status");

    return strcmp(status, "timeout") == 0 || strcmp(status, "crashed") == 0;
}

static int layer_na(struct shk_facts *facts, const char *layer, const char *why,
                    struct shk_error *err)
{
    char key[64];
    int rc = 0;

    snprintf(key, sizeof key, "collective.%s.status", layer);
    rc = shk_facts_text(facts, key, "na", "layers");
    if (rc == 0) {
        snprintf(key, sizeof key, "collective.%s.reason", layer);
        rc = shk_facts_text(facts, key, why, "layers");
    }
    return rc == 0 ? 0 : shk_error_sys(err, -rc, "facts of the layers");
}

static int layer_skip(struct shk_facts *facts, const char *layer, const char *broken,
                      struct shk_error *err)
{
    char why[160];

    snprintf(why, sizeof why, "not run: %s below it ended with %s", broken,
             layer_text(facts, broken, "status"));
    return layer_na(facts, layer, why, err);
}

/* Whoever asked this process to end asked the ranks, too: how they ended says nothing. A result
 * that was there before stays. */
static int layer_interrupted(struct shk_facts *facts, const char *layer, struct shk_error *err)
{
    static const char *const results[] = {"ok", "na", "wrong"};
    const char *status = layer_text(facts, layer, "status");
    char key[64];
    int rc = 0;

    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        if (strcmp(status, results[i]) == 0)
            return 0;
    }
    snprintf(key, sizeof key, "collective.%s.status", layer);
    rc = shk_facts_failed(facts, key, "shakedown", "interrupted by %s", shk_stop_name());
    return rc == 0 ? 0 : shk_error_sys(err, -rc, "facts of the layers");
}

/* How long it took; nothing of one that does not apply. */
static int layer_took(struct shk_facts *facts, const char *layer, double began_s,
                      struct shk_error *err)
{
    char key[64];
    int rc = 0;

    if (strcmp(layer_text(facts, layer, "status"), "na") == 0)
        return 0;
    snprintf(key, sizeof key, "collective.%s.ms", layer);
    rc = shk_facts_present(facts, key, json_real((shk_clock_s() - began_s) * 1e3), "ms", "layers");
    return rc == 0 ? 0 : shk_error_sys(err, -rc, "facts of the layers");
}

int shk_layer_run(const struct shk_transport *transport,
                  const struct shk_collective_options *options, const struct shk_measure *measure,
                  struct shk_facts *facts, struct shk_error *err)
{
    double began_s = shk_clock_s();
    int rc = 0;

    if (shk_stop_signal() != 0)
        return layer_interrupted(facts, transport->name, err);
    if (!measure) {
        rc = shk_counters_run(transport, options, facts, err);
    } else {
        rc = measure->run(transport, options, facts, measure->arg, err);
        rc = rc == 0 ? shk_gpu_prove(transport, options, measure, facts, err) : rc;
    }
    rc = rc == 0 ? layer_took(facts, transport->name, began_s, err) : rc;
    return rc == 0 && shk_stop_signal() != 0 ? layer_interrupted(facts, transport->name, err) : rc;
}

/* On GPUs of one kind, with ranks of this process: those of other nodes may load another library.
 */
static struct shk_hmem_early *layers_hmem_early(const struct shk_collective_options *options,
                                                const struct shk_measure *measure,
                                                const struct shk_facts *facts)
{
    bool cuda = layer_has_gpus(facts, "peer");
    bool one = cuda != layer_has_gpus(facts, "rccl") && cuda == (access("/dev/kfd", F_OK) != 0);

    return !measure && one ? shk_hmem_early_begin(options, NULL, !cuda) : NULL;
}

/* The layers that one set of ranks does in turn; what is around the one that runs now. */
struct layers_shared {
    const struct shk_collective_options *options;
    const struct shk_measure *measure; /* NULL: local ranks */
    struct shk_facts *facts;
    struct shk_hmem_early **early_p; /* begun when peer has ended */
    unsigned first;                  /* of the ranks' layers */
    struct shk_counters_span span;   /* … of the counters */
    bool open;                       /* it has begun */
    double began_s;
    struct shk_gpu_trouble trouble; /* how it ended in ranks that others had used */
};

static bool shared_can(const struct shk_collective_options *options,
                       const struct shk_measure *measure)
{
    return options->brief && !options->proof && (!measure || measure->chain);
}

static void shared_begin(struct layers_shared *s)
{
    if (!s->open) {
        s->open = true;
        s->began_s = shk_clock_s();
        shk_counters_enter(s->options, &s->span);
    }
}

/* One that ended well only in ranks of its own. */
static int shared_trouble(struct layers_shared *s, const char *name, struct shk_error *err)
{
    struct shk_gpu_trouble trouble = s->trouble;
    char key[64];
    int rc = 0;

    s->trouble = (struct shk_gpu_trouble){0};
    if (trouble.status[0] == '\0' || strcmp(layer_text(s->facts, name, "status"), "ok") != 0)
        return 0;
    snprintf(key, sizeof key, "collective.%s.shared", name);
    rc = shk_facts_present(s->facts, key,
                           json_pack("{s:s, s:o}", "status", trouble.status, "reason",
                                     shk_json_text(trouble.reason, strlen(trouble.reason))),
                           NULL, "layers");
    return rc == 0 ? 0 : shk_error_sys(err, -rc, "facts of the layers");
}

static int shared_end(struct layers_shared *s, const char *name, struct shk_error *err)
{
    bool ran = strcmp(layer_text(s->facts, name, "status"), "na") != 0;
    int rc = shk_counters_leave(s->options, &s->span, name, ran, s->facts, err);

    s->open = false;
    if (strcmp(name, shk_transport_peer.name) == 0 && shk_stop_signal() == 0)
        *s->early_p = layers_hmem_early(s->options, s->measure, s->facts);
    rc = rc == 0 ? layer_took(s->facts, name, s->began_s, err) : rc;
    rc = rc == 0 ? shared_trouble(s, name, err) : rc;
    return rc == 0 && shk_stop_signal() != 0 ? layer_interrupted(s->facts, name, err) : rc;
}

/* The ranks begin the next layer when this returns. */
static int shared_ended(unsigned index, void *arg, struct shk_error *err)
{
    struct layers_shared *s = arg;
    int rc = shared_end(s, cuda_layers[s->first + index]->name, err);

    if (rc == 0 && s->first + index + 1 < LAYERS_SHARED)
        shared_begin(s);
    return rc;
}

static int shared_alone(struct layers_shared *s, struct shk_error *err)
{
    const struct shk_transport *transport = cuda_layers[s->first];

    return s->measure ? s->measure->run(transport, s->options, s->facts, s->measure->arg, err)
                      : transport->run(s->options, s->facts, err);
}

/* Runs the layers from s->first on in one set of ranks, as far as that goes, and at least one. */
static int shared_run(struct layers_shared *s, struct shk_error *err)
{
    struct shk_gpu_chain chain = {
        .transports = cuda_layers + s->first,
        .count = LAYERS_SHARED - s->first,
        .ended = shared_ended,
        .arg = s,
    };
    struct shk_gpu_chain_result result = {0};
    const char *name = cuda_layers[s->first]->name;
    int rc = 0;

    if (shk_stop_signal() != 0) {
        s->first++;
        return layer_interrupted(s->facts, name, err);
    }
    shared_begin(s);
    rc = s->measure ? s->measure->chain(&chain, s->options, s->facts, s->measure->arg, &result, err)
                    : shk_gpu_chain_run(&chain, s->options, NULL, s->facts, &result, err);
    if (rc == 0 && result.done == 0)
        rc = shared_alone(s, err);
    if (rc == 0 && (result.done == 0 || result.first_only))
        rc = shared_end(s, name, err);
    s->first += result.done != 0 ? result.done : 1;
    s->trouble = result.trouble;
    return rc;
}

/* Nothing that begins with the counters' last reading follows. */
static int shared_close(struct layers_shared *s, struct shk_error *err)
{
    return s->open ? shk_counters_leave(s->options, &s->span, "", false, s->facts, err) : 0;
}

/* peer, lsa, nccl and nccl-window: only the first one where there are no GPUs. *broken_p: the one
 * that hung or crashed. */
static int layers_shared(struct layers_shared *s, const char **broken_p, struct shk_error *err)
{
    int rc = 0;
    int closed = 0;

    while (rc == 0 && s->first < LAYERS_SHARED &&
           (s->first == 0 || layer_has_gpus(s->facts, "peer"))) {
        if (*broken_p) {
            rc = layer_skip(s->facts, cuda_layers[s->first++]->name, *broken_p, err);
            continue;
        }
        rc = shared_run(s, err);
        if (rc == 0 && layer_broke(s->facts, cuda_layers[s->first - 1]->name))
            *broken_p = cuda_layers[s->first - 1]->name;
    }
    closed = shared_close(s, rc == 0 ? err : NULL);
    return rc == 0 ? closed : rc;
}

static int layers_alone(const struct shk_transport *transport,
                        const struct shk_collective_options *options,
                        const struct shk_measure *measure, const char **broken_p,
                        struct shk_facts *facts, struct shk_error *err)
{
    int rc = 0;

    if (*broken_p)
        return layer_skip(facts, transport->name, *broken_p, err);
    if (transport == &shk_transport_multimem && options->ranks < LAYERS_MULTIMEM_RANKS) {
        return layer_na(facts, transport->name,
                        "not run with fewer than 3 ranks unless asked for: --transport multimem",
                        err);
    }
    rc = shk_layer_run(transport, options, measure, facts, err);
    *broken_p = layer_broke(facts, transport->name) ? transport->name : NULL;
    return rc;
}

/* *early_p: begun when peer has found GPUs. */
static int layers_cuda(const struct shk_collective_options *options,
                       const struct shk_measure *measure, struct shk_hmem_early **early_p,
                       struct shk_facts *facts, struct shk_error *err)
{
    struct layers_shared shared = {
        .options = options, .measure = measure, .facts = facts, .early_p = early_p};
    const char *broken = NULL;
    bool can = shared_can(options, measure);
    size_t i = can ? LAYERS_SHARED : 0;
    int rc = can ? layers_shared(&shared, &broken, err) : 0;

    for (; i < sizeof cuda_layers / sizeof cuda_layers[0] && rc == 0; i++) {
        if (i > 0 && !layer_has_gpus(facts, "peer"))
            return 0;
        rc = layers_alone(cuda_layers[i], options, measure, &broken, facts, err);
        if (i == 0 && rc == 0 && shk_stop_signal() == 0)
            *early_p = layers_hmem_early(options, measure, facts);
    }
    return rc;
}

/* The fabric's all-reduce again, on the memory of the GPUs. Ends `early`. */
static int layers_hmem(const struct shk_collective_options *options,
                       const struct shk_measure *measure, struct shk_hmem_early *early,
                       struct shk_facts *facts, struct shk_error *err)
{
    static const char *const gpus[] = {"peer", "lsa", "nccl", "nccl-window", "multimem", "rccl"};
    char why[512];
    bool lacks = false;

    if (!early && shk_stop_signal() == 0)
        early = layers_hmem_early(options, measure, facts);
    lacks = shk_hmem_early_end(early, why, sizeof why);
    if (!layer_has_gpus(facts, "peer") && !layer_has_gpus(facts, "rccl"))
        return 0;
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++) {
        if (layer_broke(facts, gpus[i])) {
            snprintf(why, sizeof why, "not run: %s on the same GPUs ended with %s", gpus[i],
                     layer_text(facts, gpus[i], "status"));
            return layer_na(facts, "fabric-hmem", why, err);
        }
    }
    return lacks ? layer_na(facts, "fabric-hmem", why, err)
                 : shk_layer_run(&shk_transport_fabric_hmem, options, measure, facts, err);
}

int shk_layers_run(const struct shk_collective_options *options, const struct shk_measure *measure,
                   struct shk_facts *facts, struct shk_error *err)
{
    struct shk_hmem_early *early = NULL;
    int rc = layers_cuda(options, measure, &early, facts, err);

    if (rc == 0 && access("/dev/kfd", F_OK) == 0)
        rc = shk_layer_run(&shk_transport_rccl, options, measure, facts, err);
    if (rc == 0 && access("/dev/neuron0", F_OK) == 0) {
        double began_s = shk_clock_s();

        rc = shk_stop_signal() == 0 ? shk_neuron_run(options, NULL, facts, err) : 0;
        rc = rc == 0 ? layer_took(facts, "neuron", began_s, err) : rc;
        if (rc == 0 && shk_stop_signal() != 0)
            rc = layer_interrupted(facts, "neuron", err);
    }
    if (rc != 0) {
        char why[8];

        (void)!shk_hmem_early_end(early, why, sizeof why);
        return rc;
    }
    return layers_hmem(options, measure, early, facts, err);
}
