/* How this process was started: launcher, node and rank counts, the batch job around it. */
#include "core/job/launch.h"
#include "core/redact/redact.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
                           const char *const *variables)
{
    for (; variables && *variables; variables++) {
        const char *value = launcher_get(env, *variables);
        if (value) {
            launcher_number(g, key, *variables, value);
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

/* The first variable of a use that is set; NULL: none. */
static const char *launcher_set(const json_t *env, const struct shk_use *use)
{
    for (const char *const *v = use ? use->variables : NULL; v && *v; v++)
        if (launcher_get(env, *v))
            return *v;
    return NULL;
}

static void launcher_job(struct shk_gather *g, const json_t *env)
{
    const struct shk_use *use;
    const char *variable = NULL;
    size_t at = 0;
    while (!variable && (use = shk_use_next("scheduler.", &at)))
        variable = launcher_set(env, use);
    if (variable)
        shk_gather_text(g, "job.scheduler", strchr(use->name, '.') + 1, variable);
    else
        shk_gather_absent(g, "job.scheduler", "environment", "not inside a batch job");
    if (variable)
        launcher_text(g, "job.id", variable, launcher_get(env, variable));
    else
        shk_gather_absent(g, "job.id", "environment", "not inside a batch job");
    if (!launcher_set(env, shk_use_find("scheduler.slurm")))
        return;
    for (at = 0; (use = shk_use_next("job.slurm.", &at));) {
        variable = launcher_set(env, use);
        if (!variable)
            shk_gather_absent(g, use->name, use->variables[0], "%s is not set", use->variables[0]);
        else if (use->number)
            launcher_number(g, use->name, variable, launcher_get(env, variable));
        else
            launcher_text(g, use->name, variable, launcher_get(env, variable));
    }
}

/* Whether a PMIx server waits for us; the variables of its address carry the version in their
 * names. */
static void launcher_pmix(struct shk_gather *g, const json_t *env)
{
    const char *name, *source = shk_variable("pmix-namespace"), *space = launcher_get(env, source),
                      *start = shk_variable("pmix-server");
    json_t *pmix = json_object(), *value, *servers = json_array();
    json_object_foreach((json_t *)env, name,
                        value) if (*start && strncmp(name, start, strlen(start)) == 0)
        json_array_append_new(servers, shk_gather_str(name));
    bool any = space || json_array_size(servers) > 0;
    json_object_set_new(pmix, "namespace", shk_gather_str(space));
    json_object_set_new(pmix, "rank", shk_gather_str(launcher_get(env, shk_variable("pmix-rank"))));
    json_object_set_new(pmix, "version",
                        shk_gather_str(launcher_get(env, shk_variable("pmix-version"))));
    json_object_set_new(pmix, "servers", servers);
    if (any) {
        shk_gather_present(g, "job.pmix", pmix, NULL, source);
        return;
    }
    json_decref(pmix);
    shk_gather_absent(g, "job.pmix", source, "no PMIx server in the environment");
}

static const char *const launcher_provides[] = {
    "job.launcher",
    "job.nodes",
    "job.ranks",
    "job.rank",
    "job.local_rank",
    "job.local_ranks",
    "job.scheduler",
    "job.id",
    "job.pmix",
    "job.slurm.",
    NULL,
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
