/* The end of a capture: what is not a file. */
#include "core/host/record.h"

#include "core/host/hostcall.h"
#include "core/host/record_private.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct record_log {
    json_t *errors, *nodes, *asked; /* {path: errno}, {path: {mode, uid, gid}}, {variable: true} */
};

static void record_line(struct record_log *log, const char *line)
{
    int errnum = 0, at = 0;
    unsigned mode = 0, uid = 0, gid = 0;
    if (sscanf(line, "E %d %n", &errnum, &at) == 1 && at > 0) {
        json_object_set_new(log->errors, line + at, json_integer(errnum));
    } else if (sscanf(line, "N %o %u %u %n", &mode, &uid, &gid, &at) == 3 && at > 0) {
        json_object_set_new(log->nodes, line + at,
                            json_pack("{s:o,s:i,s:i}", "mode", json_sprintf("%o", mode), "uid",
                                      (int)uid, "gid", (int)gid));
    } else if (strncmp(line, "V ", 2) == 0) {
        json_object_set_new(log->asked, line + 2, json_true());
    }
}

static int record_read_log(struct shk_host *host, struct record_log *log, struct shk_error *err)
{
    struct shk_host *capture = NULL;
    char *text = NULL, *save;
    int rc = shk_host_open(&capture, host->record->dir, err);
    if (!rc)
        rc = shk_host_read(capture, "/.shakedown/log", &text, NULL, err);
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        record_line(log, line);
    free(text);
    shk_host_close(capture);
    return rc;
}

/* Variables that a probe wrote down as a fact, or that somebody asked for by name. */
static json_t *record_environ(const struct shk_host *host, const struct shk_facts *facts,
                              const json_t *asked)
{
    json_t *all = NULL, *value, *kept = json_object();
    const char *name;
    if (shk_hostcall(host, SHK_CALL_ENVIRON, &all, NULL) != 0)
        return kept;
    json_object_foreach(all, name, value)
    {
        struct shk_fact fact;
        char *key = shk_strf("env.%s", name);
        bool fine = key && shk_facts_get(facts, key, &fact) && fact.state == SHK_FACT_PRESENT;
        bool refused = key && shk_facts_get(facts, key, &fact) && fact.state == SHK_FACT_FAILED;
        if (fine || (json_object_get(asked, name) && !refused))
            json_object_set(kept, name, value);
        free(key);
    }
    json_decref(all);
    return kept;
}

static json_t *record_calls(const struct shk_host *host, const struct shk_facts *facts,
                            const struct record_log *log)
{
    json_t *calls = json_object();
    for (int call = 0; call < SHK_CALL_COUNT; call++) {
        json_t *value = NULL;
        if (call != SHK_CALL_ENVIRON &&
            shk_hostcall(host, (enum shk_hostcall)call, &value, NULL) == 0)
            json_object_set_new(calls, shk_hostcall_name((enum shk_hostcall)call), value);
    }
    json_object_set_new(calls, shk_hostcall_name(SHK_CALL_ENVIRON),
                        record_environ(host, facts, log->asked));
    struct shk_fact names;
    if (shk_facts_get(facts, "environment.looked_for", &names) && names.state == SHK_FACT_PRESENT)
        json_object_set(calls, "looked_for", names.value);
    json_object_set(calls, "nodes", log->nodes);
    json_object_set(calls, "errors", log->errors);
    return calls;
}

static int record_json(const struct shk_record *record, const char *name, json_t *value,
                       struct shk_error *err)
{
    char *text = value ? json_dumps(value, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
    int rc = text ? shk_record_put(record, name, text, strlen(text), err)
                  : shk_error_sys(err, ENOMEM, "capture");
    free(text);
    json_decref(value);
    return rc;
}

struct record_kept {
    struct shk_facts *facts;
    bool (*keep)(const char *key);
    int rc;
};

static int record_fact(const struct shk_fact *fact, void *arg)
{
    struct record_kept *kept = arg;
    if (!kept->keep(fact->key))
        return 0;
    if (fact->state == SHK_FACT_PRESENT)
        kept->rc = shk_facts_present(kept->facts, fact->key, json_incref(fact->value), fact->unit,
                                     fact->source);
    else if (fact->state == SHK_FACT_ABSENT)
        kept->rc = shk_facts_absent(kept->facts, fact->key, fact->source, "%s", fact->reason);
    else
        kept->rc = shk_facts_failed(kept->facts, fact->key, fact->source, "%s", fact->reason);
    return kept->rc;
}

static int record_facts(const struct shk_record *record, const struct shk_facts *facts,
                        bool (*keep)(const char *key), struct shk_error *err)
{
    struct record_kept kept = {.facts = shk_facts_create(), .keep = keep};
    if (!kept.facts || shk_facts_each(facts, "", record_fact, &kept) != 0) {
        shk_facts_destroy(kept.facts);
        return shk_error_sys(err, ENOMEM, "capture");
    }
    int rc = record_json(record, ".shakedown/facts.json", shk_facts_to_json(kept.facts), err);
    shk_facts_destroy(kept.facts);
    return rc;
}

int shk_record_finish(struct shk_host *host, const struct shk_facts *facts,
                      bool (*keep)(const char *key), struct shk_error *err)
{
    struct shk_record *record = host->record;
    struct record_log log = {json_object(), json_object(), json_object()};
    const char *xml = shk_facts_get_text(facts, "topology.xml");
    int rc = record_read_log(host, &log, err);
    host->record = NULL; /* the calls below are no part of the capture's tree */
    if (!rc)
        rc = record_json(record, ".shakedown/hostcalls.json", record_calls(host, facts, &log), err);
    if (!rc)
        rc = record_facts(record, facts, keep, err);
    if (!rc && xml)
        rc = shk_record_put(record, ".shakedown/topology.xml", xml, strlen(xml), err);
    if (!rc)
        rc = shk_record_put(record, ".shakedown/recorded", "", 0, err);
    unlinkat(record->fd, ".shakedown/log", 0);
    json_decref(log.errors);
    json_decref(log.nodes);
    json_decref(log.asked);
    shk_record_close(record);
    return rc;
}
