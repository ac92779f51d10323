/* How this process was started: launcher, node and rank counts, the batch job around it. */
#include "core/job/launch.h"
#include "core/text/redact.h"
#include "core/text/strbuf.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What of the Slurm job becomes a fact: job.slurm.<name>. */
static const struct {
    const char *name, *variable;
    bool number;
} launcher_slurm[] = {
    {"job_id", "SLURM_JOB_ID", true},
    {"step_id", "SLURM_STEP_ID", true},
    {"cluster", "SLURM_CLUSTER_NAME", false},
    {"partition", "SLURM_JOB_PARTITION", false},
    {"nodelist", "SLURM_JOB_NODELIST", false},
    {"step_nodelist", "SLURM_STEP_NODELIST", false},
    {"tasks_per_node", "SLURM_TASKS_PER_NODE", false},
    {"step_tasks_per_node", "SLURM_STEP_TASKS_PER_NODE", false},
    {"cpus_per_task", "SLURM_CPUS_PER_TASK", true},
    {"gpus_on_node", "SLURM_GPUS_ON_NODE", true},
    {"gpus_per_task", "SLURM_GPUS_PER_TASK", false},
    {"gpu_bind", "SLURM_GPU_BIND", false},
    {"cpu_bind", "SLURM_CPU_BIND", false},
    {"mpi_type", "SLURM_MPI_TYPE", false},
    {"network", "SLURM_NETWORK", false},
    {"vnis", "SLINGSHOT_VNIS", false},
};

static const char *launcher_get(const json_t *env, const char *name)
{
    const char *value = name ? shk_gather_get(env, name) : NULL;
    return value && *value ? value : NULL;
}

static const char *launcher_variable(const char *name, void *arg)
{
    return launcher_get(arg, name);
}

/* A count or index out of a variable; what is not one becomes a failed fact that quotes it. */
static void launcher_number(struct shk_gather *g, const char *key, const char *variable,
                            const char *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno || end == value || *end || !isdigit((unsigned char)*value))
        shk_gather_failed(g, key, variable, "%s is '%.40s', not a number", variable, value);
    else
        shk_gather_int(g, key, number, NULL, variable);
}

static void launcher_first(struct shk_gather *g, const json_t *env, const char *key,
                           const char *const variables[SHK_LAUNCH_NAMES])
{
    for (size_t i = 0; i < SHK_LAUNCH_NAMES && variables[i]; i++) {
        const char *value = launcher_get(env, variables[i]);
        if (value) {
            launcher_number(g, key, variables[i], value);
            return;
        }
    }
    shk_gather_absent(g, key, "environment", "no variable of this launcher says so");
}

static void launcher_counts(struct shk_gather *g, const json_t *env, const struct shk_launch *k)
{
    shk_gather_text(g, "job.launcher", k->name, k->needs[0]);
    launcher_first(g, env, "job.nodes", k->nodes);
    launcher_first(g, env, "job.ranks", k->ranks);
    launcher_first(g, env, "job.rank", k->rank);
    launcher_first(g, env, "job.local_rank", k->local_rank);
    launcher_first(g, env, "job.local_ranks", k->local_ranks);
}

/* Outside of any job there is one process on one node. */
static void launcher_local(struct shk_gather *g)
{
    static const char *const keys[] = {"job.rank", "job.local_rank", "job.local_ranks"};
    shk_gather_text(g, "job.launcher", "local", "environment");
    shk_gather_int(g, "job.nodes", 1, NULL, "environment");
    shk_gather_int(g, "job.ranks", 1, NULL, "environment");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        shk_gather_absent(g, keys[i], "environment", "not started by a launcher");
}

static void launcher_text(struct shk_gather *g, const char *key, const char *variable,
                          const char *value)
{
    const char *why = NULL;
    if (shk_redact_value(variable, value, &why))
        shk_gather_failed(g, key, variable, "withheld: looks like a secret (%s)", why);
    else
        shk_gather_text(g, key, value, variable);
}

static void launcher_job(struct shk_gather *g, const json_t *env)
{
    static const struct {
        const char *name, *variable;
    } schedulers[] = {
        {"slurm", "SLURM_JOB_ID"},
        {"flux", "FLUX_JOB_ID"},
        {"pbs", "PBS_JOBID"},
        {"lsf", "LSB_JOBID"},
    };
    char key[96];
    const char *name = NULL, *source = "environment";
    for (size_t i = 0; !name && i < sizeof schedulers / sizeof *schedulers; i++)
        if (launcher_get(env, schedulers[i].variable)) {
            name = schedulers[i].name;
            source = schedulers[i].variable;
        }
    if (name)
        shk_gather_text(g, "job.scheduler", name, source);
    else
        shk_gather_absent(g, "job.scheduler", source, "not inside a batch job");
    if (!launcher_get(env, "SLURM_JOB_ID"))
        return;
    for (size_t i = 0; i < sizeof launcher_slurm / sizeof *launcher_slurm; i++) {
        const char *variable = launcher_slurm[i].variable, *value = launcher_get(env, variable);
        snprintf(key, sizeof key, "job.slurm.%s", launcher_slurm[i].name);
        if (!value)
            shk_gather_absent(g, key, variable, "%s is not set", variable);
        else if (launcher_slurm[i].number)
            launcher_number(g, key, variable, value);
        else
            launcher_text(g, key, variable, value);
    }
}

/* Whether a PMIx server waits for us; PMIX_SERVER_URI* carries the version in its name. */
static void launcher_pmix(struct shk_gather *g, const json_t *env)
{
    const char *space = launcher_get(env, "PMIX_NAMESPACE"), *name;
    json_t *pmix = json_object(), *value, *servers = json_array();
    json_object_foreach((json_t *)env, name, value) if (strncmp(name, "PMIX_SERVER_URI", 15) == 0)
        json_array_append_new(servers, shk_gather_str(name));
    bool any = space || json_array_size(servers) > 0;
    json_object_set_new(pmix, "namespace", shk_gather_str(space));
    json_object_set_new(pmix, "rank", shk_gather_str(launcher_get(env, "PMIX_RANK")));
    json_object_set_new(pmix, "version", shk_gather_str(launcher_get(env, "PMIX_VERSION")));
    json_object_set_new(pmix, "servers", servers);
    if (any) {
        shk_gather_present(g, "job.pmix", pmix, NULL, "PMIX_NAMESPACE");
        return;
    }
    json_decref(pmix);
    shk_gather_absent(g, "job.pmix", "PMIX_NAMESPACE", "no PMIx server in the environment");
}

static const char *const launcher_provides[] = {
    "job.launcher",    "job.nodes",     "job.ranks", "job.rank",   "job.local_rank",
    "job.local_ranks", "job.scheduler", "job.pmix",  "job.slurm.", NULL,
};

static int launcher_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    json_t *env = shk_gather_hostcall(&g, SHK_CALL_ENVIRON, "job.launcher");
    const struct shk_launch *kind = env ? shk_launch_find(launcher_variable, env) : NULL;
    if (kind)
        launcher_counts(&g, env, kind);
    else if (env)
        launcher_local(&g);
    if (env) {
        launcher_job(&g, env);
        launcher_pmix(&g, env);
    }
    json_decref(env);
    return shk_gather_end(&g, err);
}

const struct shk_probe shk_probe_launcher = {
    .name = "launcher",
    .phase = SHK_PHASE_HOST,
    .doc = "launcher, node and rank counts, batch job",
    .provides = launcher_provides,
    .deadline_ms = 5000,
    .run = launcher_run,
};
