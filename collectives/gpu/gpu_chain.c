/* Transports, one after the other in the same ranks: the GPU is opened once, and so is the
 * communicator of those over NCCL. */
#include "collectives/gpu/gpu_private.h"
#include "collectives/ranks/job_private.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct chain {
    const struct shk_gpu_chain *asked;
    unsigned count;
    const char *names[SHK_GPU_CHAIN_MAX];
    struct gpu_run run[SHK_GPU_CHAIN_MAX];
    struct shk_job *job[SHK_GPU_CHAIN_MAX];
    struct shk_facts *facts;
    int rc; /* of facts that could not be written */
    struct shk_error err;
};

/* Of this process, which is one rank. */
static struct gpu_rank chain_rank, chain_opened;

static unsigned chain_part(const struct chain *chain, const struct shk_job *job)
{
    unsigned part = 0;

    while (part + 1 < chain->count && chain->job[part] != job)
        part++;
    return part;
}

/* The device, the stream, kernels and communicator stay; memory is each path's own. */
static int chain_open(struct chain *chain, unsigned part, struct shk_job *job,
                      struct shk_error *err)
{
    struct gpu_rank *g = &chain_rank;
    struct gpu_run *run = &chain->run[part];
    int rc = 0;

    gpu_run_init(run, run->path, run->options, run->tweaks); /* its time begins now */
    if (part == 0) {
        *g = gpu_run_rank(run, job);
        rc = gpu_run_open(g, err);
        chain_opened = *g;
        return rc;
    }
    *g = chain_opened;
    g->run = run;
    g->job = job;
    return gpu_run_again(g, err);
}

/* One rank, in its own process. */
static int chain_worker(struct shk_job *job, void *arg, struct shk_error *err)
{
    struct chain *chain = arg;
    struct gpu_rank *g = &chain_rank;
    unsigned part = chain_part(chain, job);
    int rc = chain_open(chain, part, job, err);

    if (rc == 0)
        rc = gpu_run_opened(g, err);
    if (rc == 0 && part + 1 < chain->count)
        g->run->path->leave(g);
    else if (rc == 0)
        g->run->path->close(g);
    return rc;
}

static bool chain_status_is(const struct chain *chain, unsigned part, const char *status)
{
    const char *have = NULL;
    char key[64];

    snprintf(key, sizeof key, "collective.%s.status", chain->names[part]);
    have = shk_facts_get_text(chain->facts, key);
    return have && strcmp(have, status) == 0;
}

static void chain_facts(struct chain *chain, unsigned part, const struct shk_crew_result *result)
{
    if (chain->rc == 0) {
        chain->rc =
            gpu_facts(&chain->run[part], chain->facts, chain->job[part], result, &chain->err);
    }
}

/* After a wrong result no other transport is to rely on this memory. */
static bool chain_ended(unsigned part, const struct shk_crew_result *result, void *arg)
{
    struct chain *chain = arg;

    chain_facts(chain, part, result);
    if (chain->rc == 0 && chain->asked->ended)
        chain->rc = chain->asked->ended(part, chain->asked->arg, &chain->err);
    return chain->rc == 0 && chain_status_is(chain, part, "ok");
}

/* Did it end by something that happened when it was over for the rank that is to blame? */
static bool chain_beyond(const struct shk_crew_result *result)
{
    return result->rank >= 0 && strcmp(result->ranks[result->rank].phase, "done") == 0;
}

/* What the next transport met in these ranks. */
static void chain_trouble(const struct chain *chain, unsigned part,
                          const struct shk_crew_result *result, struct shk_gpu_trouble *trouble)
{
    const char *status = shk_crew_status(result->outcome);
    char cause[32] = "";
    size_t len = 0;
    unsigned rank = result->rank >= 0 ? (unsigned)result->rank : 0;

    (void)!shk_job_get(chain->job[part], rank, GPU_KEY_CAUSE, cause, sizeof cause - 1, &len, NULL);
    if (result->outcome == SHK_CREW_OK || result->outcome == SHK_CREW_STARVED ||
        strcmp(cause, gpu_cause_names[GPU_CAUSE_NA]) == 0 ||
        strcmp(cause, gpu_cause_names[GPU_CAUSE_MEMORY]) == 0) {
        return; /* it does not apply, or there was no room beside what others still hold */
    }
    snprintf(trouble->status, sizeof trouble->status, "%s", status);
    snprintf(trouble->reason, sizeof trouble->reason, "%s", result->reason.text);
}

static int chain_jobs(struct chain *chain, struct shk_error *err)
{
    int rc = 0;

    for (unsigned i = 0; i < chain->count && rc == 0; i++) {
        rc = shk_job_create(&chain->job[i], chain->run[0].options->ranks, sizeof(struct gpu_result),
                            err);
    }
    return rc;
}

/* The first transport's part is what it would have been in ranks of its own. That of another, which
 * did not end well, may be due to what was before: it is not told. */
static void chain_run(struct chain *chain, struct shk_gpu_chain_result *out)
{
    const struct shk_collective_options *options = chain->run[0].options;
    struct shk_crew crew = shk_crew_of(options, NULL, chain_worker, chain);
    struct shk_crew_parts parts = {
        .jobs = chain->job,
        .names = chain->names,
        .count = chain->count,
        .ended = chain_ended,
        .arg = chain,
    };
    struct shk_crew_result result = {.rank = -1};

    if (chain_jobs(chain, NULL) == 0 &&
        shk_crew_run_parts(&crew, &parts, &result, &out->done, NULL) == 0 && chain->rc == 0) {
        bool stopped = out->done > 0 && !chain_status_is(chain, out->done - 1, "ok");

        if (out->done == 0 && !chain_beyond(&result)) {
            chain_facts(chain, 0, &result);
            out->done = 1;
            out->first_only = true;
        } else if (out->done < chain->count && !stopped) {
            chain_trouble(chain, out->done, &result, &out->trouble);
        }
    }
    shk_crew_result_clear(&result);
    for (unsigned i = 0; i < chain->count; i++)
        shk_job_destroy(chain->job[i]);
}

int shk_gpu_chain_run(const struct shk_gpu_chain *asked,
                      const struct shk_collective_options *options,
                      const struct shk_gpu_tweaks *tweaks, struct shk_facts *facts,
                      struct shk_gpu_chain_result *out, struct shk_error *err)
{
    struct chain chain = {.asked = asked, .facts = facts};

    *out = (struct shk_gpu_chain_result){0};
    if (asked->count < 2 || asked->count > SHK_GPU_CHAIN_MAX || !options->brief || options->proof ||
        gpu_run_check(options, NULL) != 0) {
        return 0;
    }
    for (unsigned i = 0; i < asked->count; i++) {
        const struct gpu_path *path = gpu_run_path(asked->transports[i]->name);

        if (!path || (i + 1 < asked->count && !path->leave) || (i > 0 && !path->again))
            return 0;
        chain.names[i] = path->name;
        gpu_run_init(&chain.run[i], path, options, tweaks);
    }
    chain.count = asked->count;
    chain_run(&chain, out);
    return chain.rc == 0 ? 0 : shk_error_set(err, -chain.rc, "%s", chain.err.text);
}
