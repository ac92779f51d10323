#include "cli/exit_code.h"
#include "cli/logpatterns.h"
#include "cli/output.h"
#include "cli/session.h"
#include "probes/logscan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a process says that it has read of its environment is evidence where no better is given.
 * A variable with several values over the ranks is left out. */
static int log_env_one(struct shk_facts *facts, const struct shk_fact *sig, const json_t *tuple)
{
    const char *name = json_string_value(json_object_get(tuple, "name"));
    const char *value = json_string_value(json_object_get(tuple, "value"));
    char key[200];
    struct shk_fact before;
    if (!name || !value || !*name || strlen(name) > 128)
        return 0;
    snprintf(key, sizeof key, "env.%s", name);
    if (!shk_facts_get(facts, key, &before)) {
        int rc = shk_facts_text(facts, key, value, sig->source);
        return rc == -EINVAL ? 0 : rc;
    }
    const char *old = before.state == SHK_FACT_PRESENT ? json_string_value(before.value) : NULL;
    if (strcmp(before.source, sig->source) == 0 && old && strcmp(old, value) != 0)
        return shk_facts_failed(facts, key, sig->source, "differs between ranks");
    return 0;
}

struct log_env {
    struct shk_facts *facts;
    json_t *tuples; /* [signature's source, tuple]: the store must not change while it is read */
};

static int log_env_collect(const struct shk_fact *fact, void *arg)
{
    struct log_env *env = arg;
    json_t *tuple;
    size_t i;
    json_array_foreach(json_object_get(fact->value, "captures"), i, tuple)
    {
        if (json_object_get(tuple, "name") && json_object_get(tuple, "value"))
            json_array_append_new(env->tuples,
                                  json_pack("{s:s, s:O}", "source", fact->source, "tuple", tuple));
    }
    return 0;
}

static int log_env(struct shk_facts *facts)
{
    struct log_env env = {.facts = facts, .tuples = json_array()};
    struct shk_fact status;
    bool known = shk_facts_get(facts, "probe.env.status", &status) ||
                 shk_facts_each(facts, "env.", shk_session_any_fact, NULL);
    int rc = shk_facts_each(facts, "log.sig.", log_env_collect, &env);
    json_t *entry;
    size_t i;
    json_array_foreach(env.tuples, i, entry)
    {
        struct shk_fact sig = {.source = json_string_value(json_object_get(entry, "source"))};
        if (!rc)
            rc = log_env_one(facts, &sig, json_object_get(entry, "tuple"));
    }
    /* A log names only some of the variables: what it does not name may be set all the same. */
    if (!rc && !known)
        rc = shk_facts_text(facts, "probe.env.status", "partial", "--log");
    json_decref(env.tuples);
    return rc;
}

int shk_session_any_fact(const struct shk_fact *fact, void *arg)
{
    (void)fact;
    (void)arg;
    return 1;
}

static int log_scan(struct shk_session *session, struct shk_logscan *scan, struct shk_facts *found,
                    struct shk_error *err)
{
    const struct shk_texts *files = &session->options->log_files;
    for (size_t i = 0; i < files->count; i++) {
        int rc = shk_logscan_file(scan, files->items[i], err);
        if (rc)
            return rc;
    }
    int rc = shk_logscan_facts(scan, found);
    return rc ? shk_error_sys(err, -rc, "log") : 0;
}

int shk_session_load_logs(struct shk_session *session, bool take_env)
{
    if (!session->options->log_files.count)
        return SHK_EXIT_OK;
    struct shk_error err = {""};
    size_t n;
    struct shk_log_pattern *patterns = shk_log_patterns(session->config, &n);
    struct shk_facts *found = shk_facts_create();
    struct shk_logscan *scan = NULL;
    int rc = patterns && found ? 0 : shk_error_sys(&err, ENOMEM, "log");
    if (!rc)
        rc = shk_logscan_create(&scan, patterns, n, &shk_log_builtin, &err);
    if (!rc)
        rc = log_scan(session, scan, found, &err);
    for (size_t i = 0; !rc && i < session->nodes; i++) {
        rc = shk_facts_merge(session->facts[i], found);
        if (!rc && take_env)
            rc = log_env(session->facts[i]);
        if (rc)
            shk_error_sys(&err, -rc, "log");
    }
    shk_logscan_destroy(scan);
    shk_facts_destroy(found);
    free(patterns);
    if (!rc)
        return SHK_EXIT_OK;
    shk_say("%s", err.text);
    return rc == -ENOMEM ? SHK_EXIT_INTERNAL : SHK_EXIT_USAGE;
}
