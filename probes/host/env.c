/* Environment variables of the libraries that are judged, and near misses of their names. */
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include "core/host/hostcall.h"
#include "core/redact/redact.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char env_looked_for[] = "environment.looked_for";

static void env_problem(json_t *problems, const char *name, const char *text)
{
    json_t *entry = json_object();
    json_object_set_new(entry, "name", shk_gather_str(name));
    json_object_set_new(entry, "problem", shk_gather_str(text));
    json_array_append_new(problems, entry);
}

static void env_write(struct shk_gather *g, const char *name, const char *value,
                      const struct shk_name_match *match, json_t *names)
{
    char key[256];
    const char *why = NULL;
    json_t *entry = json_object();
    bool secret = shk_redact_value(name, value, &why);
    shk_gather_key(key, sizeof key, "env.", name);
    json_object_set_new(entry, "family", json_string(match->family));
    json_object_set_new(entry, "match", json_string(shk_name_how_text(match->how)));
    json_object_set_new(entry, "of", json_string(match->of));
    if (secret) {
        json_object_set_new(entry, "redacted", json_true());
        shk_gather_failed(g, key, "environment", "withheld: looks like a secret (%s)", why);
    } else {
        shk_gather_text(g, key, value, "environment");
    }
    json_object_set_new(names, name, entry);
}

static void env_variable(struct shk_gather *g, const char *name, const char *value, json_t *names,
                         json_t *problems)
{
    struct shk_name_match match;
    if (!shk_name_classify(g->names, name, &match))
        return;
    if (!shk_name_ok(name))
        env_problem(problems, name, "no library looks for a name with such characters");
    else if (strlen(name) > 200)
        env_problem(problems, name, "the name is too long to be a setting");
    else
        env_write(g, name, value ? value : "", &match, names);
}

int shk_probe_env_fact(struct shk_facts *facts, const struct shk_name_set *names, const char *name,
                       const char *value, const char *source)
{
    struct shk_name_match match;
    const char *why = NULL;
    if (!shk_name_ok(name))
        return -EINVAL;
    if (!shk_name_classify(names, name, &match))
        return 0;
    char *key = shk_strf("env.%s", name);
    int rc = -ENOMEM;
    if (key && shk_redact_value(name, value, &why))
        rc = shk_facts_failed(facts, key, source, "withheld: looks like a secret (%s)", why);
    else if (key)
        rc = shk_facts_present(facts, key, shk_json_text(value, strlen(value)), NULL, source);
    free(key);
    return rc;
}

int shk_probe_env_looked_for(struct shk_facts *facts, const struct shk_name_set *names,
                             const char *source)
{
    struct shk_fact fact;
    if (shk_facts_get(facts, env_looked_for, &fact))
        return 0;
    return shk_facts_present(facts, env_looked_for, shk_name_set_json(names), NULL, source);
}

/* Of a capture, by who made it: an old one does not say. */
static int env_say_looked_for(struct shk_probe_context *ctx)
{
    json_t *captured = shk_host_names_looked_for(ctx->host);
    if (ctx->names && shk_host_is_live(ctx->host))
        return shk_probe_env_looked_for(ctx->facts, ctx->names, "environment");
    return captured ? shk_facts_present(ctx->facts, env_looked_for, captured, NULL, "environment")
                    : 0;
}

static int env_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    json_t *all = shk_gather_hostcall(&g, SHK_CALL_ENVIRON, "env.names_of"), *value;
    json_t *names = json_object(), *problems = json_array();
    const char *name;
    json_object_foreach(all, name, value)
        env_variable(&g, name, json_string_value(value), names, problems);
    if (all)
        shk_gather_present(&g, "env.names_of", json_incref(names), NULL, "environment");
    if (all && env_say_looked_for(ctx) < 0)
        shk_gather_failed(&g, env_looked_for, "environment", "out of memory");
    if (json_array_size(problems) > 0)
        shk_gather_present(&g, "env.problems", json_incref(problems), NULL, "environment");
    else if (all)
        shk_gather_absent(&g, "env.problems", "environment", "every name is well formed");
    json_decref(all);
    json_decref(names);
    json_decref(problems);
    return shk_gather_end(&g, err);
}

static const char *const env_provides[] = {"env.names_of", "env.problems", "env.",
                                           "environment.looked_for", NULL};

const struct shk_probe shk_probe_env = {
    .name = "env",
    .phase = SHK_PHASE_HOST,
    .doc = "environment variables of collective and fabric libraries; secrets are withheld",
    .provides = env_provides,
    .deadline_ms = 5000,
    .run = env_run,
};
