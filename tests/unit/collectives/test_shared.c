/* peer, lsa, nccl and nccl-window in one set of ranks, against stand-ins: the same facts as in
 * ranks of their own, and whatever goes wrong is told of the layer in which it does. */
#include "collectives/counters/counters.h"
#include "collectives/layers.h"
#include "core/run/stop.h"
#include "tests/unit/collectives/gpu_measure.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const cuda[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libcuda.so.1", NULL};
static const char *const nccl[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libnccl.so.2", NULL};
static const char *const layers[] = {"lsa", "nccl", "nccl-window"};

static const struct shk_gpu_tweaks fakes = {
    .driver_names = cuda,
    .nccl_names = nccl,
    .image = "kernels",
};

static struct shk_collective_options brief(void)
{
    return (struct shk_collective_options){
        .ranks = 2, .min_bytes = 8, .max_bytes = 1024, .deadline_ms = 240000, .brief = true};
}

static struct shk_facts *run_with(const struct shk_collective_options *options,
                                  const struct shk_gpu_tweaks *tweaks, bool shared)
{
    struct shk_facts *facts = shk_facts_create();
    struct shk_measure measure = {
        .run = gpu_measure, .arg = (void *)tweaks, .chain = shared ? gpu_measure_chain : NULL};
    struct shk_error err = {{0}};

    cr_assert_eq(shk_layers_run(options, &measure, facts, &err), 0, "%s", err.text);
    return facts;
}

static struct shk_facts *run(const char *fault)
{
    struct shk_collective_options options = brief();

    setenv("SHK_FAKE_NCCL_FAULT", fault, 1);
    return run_with(&options, &fakes, true);
}

static const char *text(const struct shk_facts *facts, const char *layer, const char *member)
{
    const char *value = NULL;
    char key[96];

    snprintf(key, sizeof(key), "collective.%s.%s", layer, member);
    value = shk_facts_get_text(facts, key);
    return value != NULL ? value : "";
}

static json_t *object(const struct shk_facts *facts, const char *layer, const char *member)
{
    char key[96];

    snprintf(key, sizeof(key), "collective.%s.%s", layer, member);
    return shk_facts_get_object(facts, key);
}

/* Process of rank 1; 0 not known. */
static int pid_of(const struct shk_facts *facts, const char *layer)
{
    char key[96];

    snprintf(key, sizeof(key), "collective.%s.ranks_state", layer);
    return (int)json_integer_value(
        json_object_get(json_array_get(shk_facts_get_array(facts, key), 1), "pid"));
}

static void expect(const struct shk_facts *facts, const char *lsa, const char *of_nccl,
                   const char *window)
{
    const char *const want[] = {lsa, of_nccl, window};
    size_t i = 0;

    for (i = 0; i < 3; i++) {
        cr_expect_str_eq(text(facts, layers[i], "status"), want[i], "%s: %s: %s", layers[i],
                         text(facts, layers[i], "status"), text(facts, layers[i], "reason"));
    }
}

static int note_key(const struct shk_fact *fact, void *arg)
{
    return strstr(fact->key, ".hmem") != NULL || strstr(fact->key, "fabric-hmem") != NULL
               ? 0
               : json_object_set_new(arg, fact->key, json_integer(fact->state == SHK_FACT_PRESENT));
}

/* Which facts there are, and which of them are present. */
static json_t *keys_of(const struct shk_facts *facts)
{
    json_t *keys = json_object();

    cr_assert_eq(shk_facts_each(facts, "collective.", note_key, keys), 0);
    return keys;
}

/* Of each size which, how and how right; not how fast. */
static json_t *plan_of(const struct shk_facts *facts, const char *layer)
{
    json_t *plan = json_array();
    json_t *row = NULL;
    char key[96];
    size_t i = 0;

    snprintf(key, sizeof(key), "collective.%s.sizes", layer);
    json_array_foreach(shk_facts_get_array(facts, key), i, row)
    {
        json_array_append_new(
            plan, json_pack("[O, O, O, O, O]", json_object_get(row, "bytes"),
                            json_object_get(row, "type"), json_object_get(row, "algorithm"),
                            json_object_get(row, "wrong"), json_object_get(row, "in_place_wrong")));
    }
    return plan;
}

static void same(json_t *a, json_t *b, const char *what)
{
    char *x = json_dumps(a, JSON_SORT_KEYS);
    char *y = json_dumps(b, JSON_SORT_KEYS);

    cr_expect_str_eq(x, y, "%s:\n%s\n%s", what, x, y);
    free(x);
    free(y);
    json_decref(a);
    json_decref(b);
}

static void same_layer(const struct shk_facts *a, const struct shk_facts *b, const char *layer)
{
    static const char *const texts[] = {"library", "version"};
    char key[96];
    size_t i = 0;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        cr_expect_str_eq(text(a, layer, texts[i]), text(b, layer, texts[i]), "%s", layer);
        cr_expect_str_neq(text(a, layer, texts[i]), "", "%s", layer);
    }
    snprintf(key, sizeof(key), "collective.%s.cases", layer);
    cr_expect_eq(shk_facts_get_int(a, key, -1), shk_facts_get_int(b, key, -2), "%s", layer);
    snprintf(key, sizeof(key), "collective.%s.devices", layer);
    same(json_incref(shk_facts_get_array(a, key)), json_incref(shk_facts_get_array(b, key)), key);
    same(json_incref(object(a, layer, "proof")), json_incref(object(b, layer, "proof")), layer);
    same(plan_of(a, layer), plan_of(b, layer), layer);
}

Test(shared, the_facts_are_those_of_ranks_of_their_own, .timeout = 600)
{
    struct shk_collective_options options = brief();
    struct shk_facts *apart = run_with(&options, &fakes, false);
    struct shk_facts *facts = run_with(&options, &fakes, true);
    size_t i = 0;

    expect(apart, "ok", "ok", "ok");
    expect(facts, "ok", "ok", "ok");
    cr_expect_neq(pid_of(apart, "lsa"), pid_of(apart, "nccl"));
    cr_expect_eq(pid_of(facts, "lsa"), pid_of(facts, "nccl"));
    cr_expect_eq(pid_of(facts, "lsa"), pid_of(facts, "nccl-window"));
    cr_expect_eq(pid_of(facts, "lsa"), pid_of(facts, "peer"));
    cr_expect_neq(pid_of(apart, "lsa"), pid_of(apart, "peer"));
    same(plan_of(apart, "peer"), plan_of(facts, "peer"), "peer");
    same(keys_of(apart), keys_of(facts), "facts");
    for (i = 0; i < 3; i++) {
        same_layer(apart, facts, layers[i]);
    }
    shk_facts_destroy(apart);
    shk_facts_destroy(facts);
}

Test(shared, each_path_has_a_proof_of_its_own, .timeout = 600)
{
    struct shk_facts *facts = run("");
    static const struct {
        const char *layer;
        int p2p, registered;
        bool va;
    } rows[] = {{"lsa", 0, 1, true}, {"nccl", 1, 0, false}, {"nccl-window", 1, 1, true}};
    size_t i = 0;

    for (i = 0; i < 3; i++) {
        const json_t *proof = object(facts, rows[i].layer, "proof");

        cr_expect_eq(json_integer_value(json_object_get(proof, "p2p")), rows[i].p2p, "%s",
                     rows[i].layer);
        cr_expect_eq(json_integer_value(json_object_get(proof, "registered")), rows[i].registered,
                     "%s", rows[i].layer);
        cr_expect_eq(json_is_true(json_object_get(proof, "symmetric_va")), rows[i].va, "%s",
                     rows[i].layer);
        cr_expect_not_null(strstr(text(facts, rows[i].layer, "log"), "NCCL_DEBUG set"));
    }
    shk_facts_destroy(facts);
}

/* Not as a benchmark: how the library did each size would be known of one of them only. */
Test(shared, only_in_a_brief_run, .timeout = 600)
{
    struct shk_collective_options options = brief();
    struct shk_facts *facts = NULL;

    options.brief = false;
    options.max_bytes = 64;
    facts = run_with(&options, &fakes, true);
    expect(facts, "ok", "ok", "ok");
    cr_expect_neq(pid_of(facts, "lsa"), pid_of(facts, "nccl"));
    cr_expect_gt(json_array_size(json_object_get(object(facts, "nccl", "proof"), "choices")), 0);
    shk_facts_destroy(facts);
}

/* What goes wrong only in ranks that others have used: it is run again, and not forgotten. */
static void expect_again(const char *fault, const char *status, const char *reason)
{
    struct shk_collective_options options = brief();
    bool hangs = strcmp(fault, "used-hang") == 0;
    struct shk_facts *facts = NULL;
    const json_t *shared = NULL;

    setenv("SHK_FAKE_NCCL_FAULT", fault, 1);
    options.deadline_ms = hangs ? 30000 : 240000;
    facts = run_with(&options, &fakes, true);
    expect(facts, "ok", "ok", "ok");
    cr_expect_neq(pid_of(facts, "lsa"), pid_of(facts, "nccl"), "%s", fault);
    cr_expect_eq(pid_of(facts, "nccl"), pid_of(facts, "nccl-window"), "%s", fault);
    cr_expect_null(object(facts, "nccl-window", "shared"));
    cr_expect_null(object(facts, "lsa", "shared"));
    shared = object(facts, "nccl", "shared");
    cr_assert(shared != NULL || hangs, "on a busy machine it is not known whether it hung");
    if (shared != NULL) {
        const char *why = json_string_value(json_object_get(shared, "reason"));

        cr_expect_str_eq(json_string_value(json_object_get(shared, "status")), status);
        cr_expect_not_null(strstr(why, reason), "%s", why);
    }
    shk_facts_destroy(facts);
}

Test(shared, trouble_after_others_gets_ranks_of_its_own, .timeout = 600)
{
    expect_again("used-error", "failed", "used before");
    expect_again("used-crash", "crashed", "killed by SIGSEGV");
}

Test(shared_long, a_hang_after_others, .timeout = 600)
{
    expect_again("used-hang", "timeout", "in phase allreduce");
}

/* A wrong result is one, whatever was before; and nobody goes on with that memory. */
Test(shared, a_wrong_result_stays, .timeout = 600)
{
    struct shk_facts *facts = run("used-corrupt");

    expect(facts, "ok", "wrong", "ok");
    cr_expect_str_eq(text(facts, "nccl", "cause"), "wrong-result");
    cr_expect_eq(pid_of(facts, "lsa"), pid_of(facts, "nccl"));
    cr_expect_neq(pid_of(facts, "nccl"), pid_of(facts, "nccl-window"));
    shk_facts_destroy(facts);
    facts = run("corrupt");
    expect(facts, "ok", "wrong", "wrong");
    shk_facts_destroy(facts);
}

/* Without how many ranks had said so when the first of them was judged. */
static const char *of_phase(const struct shk_facts *facts, const char *layer)
{
    const char *reason = text(facts, layer, "reason");
    const char *phase = strstr(reason, ", phase ");

    return phase != NULL ? phase : reason;
}

/* The same as in ranks of their own, for each. */
Test(shared, what_does_not_apply_or_fails_by_itself, .timeout = 600)
{
    static const struct {
        const char *variable, *value;
        const char *lsa, *nccl, *window;
        const char *cause; /* of nccl-window */
    } rows[] = {
        {"SHK_FAKE_NCCL_VERSION", "22705", "na", "ok", "ok", ""},
        {"SHK_FAKE_NCCL_FAULT", "no-window", "failed", "ok", "failed", "no-symmetric-memory"},
        {"SHK_FAKE_NCCL_FAULT", "init", "failed", "failed", "failed", "nccl-error"},
        {"SHK_FAKE_NCCL_FAULT", "corrupt", "ok", "wrong", "wrong", "wrong-result"},
    };
    size_t i = 0;
    size_t l = 0;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct shk_collective_options options = brief();
        struct shk_facts *apart = NULL;
        struct shk_facts *facts = NULL;

        setenv(rows[i].variable, rows[i].value, 1);
        apart = run_with(&options, &fakes, false);
        facts = run_with(&options, &fakes, true);
        expect(facts, rows[i].lsa, rows[i].nccl, rows[i].window);
        cr_expect_str_eq(text(facts, "nccl-window", "cause"), rows[i].cause);
        for (l = 0; l < 3; l++) {
            cr_expect_str_eq(of_phase(facts, layers[l]), of_phase(apart, layers[l]));
            cr_expect_str_eq(text(facts, layers[l], "cause"), text(apart, layers[l], "cause"));
            cr_expect_str_eq(text(facts, layers[l], "phase"), text(apart, layers[l], "phase"));
            cr_expect_null(object(facts, layers[l], "shared"));
        }
        unsetenv(rows[i].variable);
        shk_facts_destroy(apart);
        shk_facts_destroy(facts);
    }
}

/* In the first layer it is what it would be without the others, and they are not run. */
static void die(struct shk_job *job, enum shk_phase phase, void *arg)
{
    (void)arg;
    if (phase == SHK_PHASE_ALLREDUCE && shk_job_rank(job) == 1)
        raise(SIGKILL);
}

Test(shared, a_death_in_the_first_layer_is_its_own, .timeout = 600)
{
    struct shk_collective_options options = brief();
    struct shk_gpu_tweaks tweaks = fakes;
    struct shk_facts *facts = shk_facts_create();
    struct shk_measure measure = {.run = gpu_measure, .arg = &tweaks, .chain = gpu_measure_chain};

    tweaks.at_phase = die;
    cr_assert_eq(shk_layers_run(&options, &measure, facts, NULL), 0);
    expect(facts, "na", "na", "na");
    cr_expect_str_eq(text(facts, "peer", "status"), "crashed");
    cr_expect_str_eq(text(facts, "peer", "cause"), "rank-ended");
    cr_expect_eq(shk_facts_get_int(facts, "collective.peer.rank", -1), 1);
    cr_expect_str_eq(text(facts, "nccl", "reason"), "not run: peer below it ended with crashed");
    shk_facts_destroy(facts);
}

/* Without GPUs nothing above peer is run, or said to have been. */
Test(shared, no_gpus, .timeout = 600)
{
    struct shk_facts *facts = NULL;
    struct shk_fact status;

    setenv("SHK_FAKE_FAULT", "no-device", 1);
    facts = run("");
    cr_expect_str_eq(text(facts, "peer", "status"), "na", "%s", text(facts, "peer", "reason"));
    cr_expect_not(shk_facts_get(facts, "collective.lsa.status", &status));
    cr_expect_not(shk_facts_get(facts, "collective.fabric-hmem.status", &status));
    shk_facts_destroy(facts);
}

/* Those over NCCL have ranks of their own where peer does not apply. */
Test(shared, peer_does_not_apply, .timeout = 600)
{
    struct shk_facts *facts = NULL;

    setenv("SHK_FAKE_FAULT", "peer", 1);
    facts = run("");
    cr_expect_str_eq(text(facts, "peer", "status"), "na", "%s", text(facts, "peer", "reason"));
    cr_expect_str_eq(text(facts, "nccl", "status"), "ok", "%s", text(facts, "nccl", "reason"));
    cr_expect_neq(pid_of(facts, "nccl"), pid_of(facts, "peer"));
    shk_facts_destroy(facts);
}

struct watched {
    char told[4096];
    const char *stop_at;
};

static void watch(const char *said, void *arg)
{
    struct watched *w = arg;
    size_t len = strlen(w->told);

    snprintf(w->told + len, sizeof(w->told) - len, "%s\n", said);
    if (w->stop_at != NULL && strstr(said, w->stop_at) != NULL) {
        raise(SIGTERM);
    }
}

Test(shared, progress_names_the_layer, .timeout = 600)
{
    struct watched w = {.stop_at = NULL};
    struct shk_collective_options options = brief();
    struct shk_facts *facts = NULL;
    const char *at = w.told;
    size_t i = 0;

    options.progress = watch;
    options.progress_arg = &w;
    facts = run_with(&options, &fakes, true);
    expect(facts, "ok", "ok", "ok");
    for (i = 0; i < 3; i++) {
        char want[48];

        snprintf(want, sizeof(want), "%s: ", layers[i]);
        at = at != NULL ? strstr(at, want) : NULL;
        cr_expect_not_null(at, "%s in order: %s", want, w.told);
    }
    shk_facts_destroy(facts);
}

/* What was measured by then stays; the others are interrupted, and not run again. */
Test(shared, asked_to_end_in_the_middle, .timeout = 600)
{
    struct watched w = {.stop_at = "nccl: "};
    struct shk_collective_options options = brief();
    struct shk_facts *facts = NULL;
    struct shk_fact status;

    shk_stop_catch();
    options.progress = watch;
    options.progress_arg = &w;
    facts = run_with(&options, &fakes, true);
    cr_expect_str_eq(text(facts, "lsa", "status"), "ok");
    cr_assert(shk_facts_get(facts, "collective.nccl.status", &status));
    cr_expect_eq(status.state, SHK_FACT_FAILED);
    cr_expect_str_eq(status.reason, "interrupted by SIGTERM");
    cr_assert(shk_facts_get(facts, "collective.nccl-window.status", &status));
    cr_expect_eq(status.state, SHK_FACT_FAILED);
    shk_facts_destroy(facts);
}

/* Counters: one reading between two layers, and the fact of each. */
struct counted {
    int begun, ended;
};

static void *counted_begin(void *arg)
{
    struct counted *counted = arg;

    counted->begun++;
    return counted;
}

static json_t *counted_end(void *reading)
{
    struct counted *counted = reading;

    counted->ended++;
    return json_pack("{s:f, s:{s:{s:i}}, s:{s:s}, s:{s:s}, s:{}, s:{s:i, s:[]}}", "time",
                     (double)counted->ended, "values", "gpu0", "ECC", counted->ended, "kinds",
                     "ECC", "corrected", "classes", "gpu0", "gpu", "unread", "log", "last", 0,
                     "events");
}

static void expect_counted(const char *fault, int readings)
{
    struct counted counted = {0};
    struct shk_counters_source source = {counted_begin, counted_end, &counted};
    struct shk_counters_kept kept = {0};
    struct shk_collective_options options = brief();
    struct shk_facts *facts = NULL;
    struct shk_fact ms;
    size_t i = 0;

    setenv("SHK_FAKE_NCCL_FAULT", fault, 1);
    options.counters = &source;
    options.kept = &kept;
    facts = run_with(&options, &fakes, true);
    cr_expect_eq(shk_counters_settle(&kept, NULL), 0);
    expect(facts, "ok", "ok", "ok");
    for (i = 0; i < 3; i++) {
        char key[96];

        snprintf(key, sizeof(key), "collective.%s.moved", layers[i]);
        cr_expect_eq(json_array_size(shk_facts_get_array(facts, key)), 1, "%s", key);
        snprintf(key, sizeof(key), "collective.%s.ms", layers[i]);
        cr_assert(shk_facts_get(facts, key, &ms), "%s", key);
        cr_expect_gt(json_real_value(ms.value), 0.0, "%s", key);
    }
    cr_expect_eq(counted.begun, readings, "%s: %d", fault, counted.begun);
    cr_expect_eq(counted.ended, readings);
    shk_counters_forget(&kept);
    shk_facts_destroy(facts);
}

Test(shared, counters_are_read_once_between_layers, .timeout = 600)
{
    expect_counted("", 5);
    expect_counted("used-error", 5); /* both attempts lie between the same two readings */
}
