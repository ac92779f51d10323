/* From what was found in logs to facts. */
#include "core/text/strbuf.h"
#include "probes/log/logscan_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t shk_logscan_place(size_t id, char kind, const char *name)
{
    /* shk_log_seen does not tell keys apart by their lowest bit */
    return shk_log_hash(name) ^ (id * 2654435761u + ((size_t)kind << 8));
}

static json_t *text_json(const char *text)
{
    return shk_json_text(text, strlen(text));
}

/* Names; an origin whose rank is known from another line gets it. */
static json_t *places_json(const struct shk_logscan *scan, const struct log_places *places)
{
    json_t *array = json_array();
    for (size_t i = 0; i < places->named; i++) {
        uint32_t rank;
        char *named = NULL;
        if (shk_log_seen_get(scan->ranks, shk_log_hash(places->names[i]), &rank))
            named = shk_strf("rank %u (%s)", rank, places->names[i]);
        json_array_append_new(array, text_json(named ? named : places->names[i]));
        free(named);
    }
    return array;
}

/* Has this node printed one of the lines? *any_p: has any? */
static bool printed_one(const struct shk_logscan *scan, const char *const *ids, const char *node,
                        bool *any_p)
{
    bool printed = false;
    uint32_t value;
    for (; ids && *ids; ids++)
        for (size_t i = 0; i < scan->count; i++) {
            if (strcmp(scan->patterns[i].id, *ids) != 0)
                continue;
            *any_p |= scan->sigs[i].nodes.distinct > 0;
            printed |= shk_log_seen_get(scan->seen, shk_logscan_place(i, 'n', node), &value);
        }
    return printed;
}

/* Nodes that printed this line and none of those that others print instead. */
static json_t *alone_json(const struct shk_logscan *scan, size_t id)
{
    const struct log_places *nodes = &scan->sigs[id].nodes;
    json_t *alone = json_array();
    bool any = false;
    for (size_t i = 0; i < nodes->named; i++)
        if (!printed_one(scan, scan->patterns[id].elsewhere, nodes->names[i], &any) && any)
            json_array_append_new(alone, text_json(nodes->names[i]));
    return alone;
}

static size_t sig_of(const struct shk_logscan *scan, const char *id)
{
    size_t i = 0;
    while (i < scan->count && strcmp(scan->patterns[i].id, id) != 0)
        i++;
    return i;
}

/* The last line that says that a state is over, when there is one for each that was told; NULL. */
static json_t *ended_json(const struct shk_logscan *scan, size_t id)
{
    enum { ENDS_MAX = 8 };
    const struct shk_log_states *states = scan->sigs[id].states, *ends[ENDS_MAX];
    const char *const *ids = scan->patterns[id].ended_by;
    const struct shk_log_state *last = NULL;
    size_t count = 0;
    for (; ids && *ids && count < ENDS_MAX; ids++) {
        size_t end = sig_of(scan, *ids);
        if (end < scan->count)
            ends[count++] = scan->sigs[end].states;
    }
    for (size_t i = 0; states && i < states->count; i++) {
        const struct shk_log_state *end = shk_log_state_end(&states->items[i], ends, count);
        if (!end || states->more)
            return NULL;
        last = end;
    }
    return last ? json_pack("{s:o, s:I}", "file", text_json(scan->files[last->file].name), "line",
                            (json_int_t)last->line)
                : NULL;
}

static json_t *sig_json(const struct shk_logscan *scan, const struct log_sig *sig)
{
    json_t *entry = json_object();
    json_object_set_new(entry, "lines", json_integer((json_int_t)sig->lines));
    json_object_set_new(entry, "file", text_json(sig->file));
    json_object_set_new(entry, "line", json_integer((json_int_t)sig->line));
    json_object_set_new(entry, "text", text_json(sig->text));
    if (sig->origins.distinct) {
        json_object_set_new(entry, "origins", places_json(scan, &sig->origins));
        json_object_set_new(entry, "origin_count", json_integer((json_int_t)sig->origins.distinct));
    }
    if (sig->nodes.distinct) {
        json_object_set_new(entry, "nodes", places_json(scan, &sig->nodes));
        json_object_set_new(entry, "node_count", json_integer((json_int_t)sig->nodes.distinct));
    }
    size_t id = (size_t)(sig - scan->sigs);
    if (scan->patterns[id].elsewhere)
        json_object_set_new(entry, "alone", alone_json(scan, id));
    json_t *ended = scan->patterns[id].ended_by ? ended_json(scan, id) : NULL;
    if (ended)
        json_object_set_new(entry, "ended", ended);
    if (sig->captures.count)
        json_object_set_new(entry, "captures", shk_log_captures_json(&sig->captures));
    return entry;
}

int shk_logscan_facts(const struct shk_logscan *scan, struct shk_facts *facts)
{
    json_t *files = json_array();
    json_int_t lines = 0;
    int rc = 0;
    for (size_t i = 0; i < scan->file_count; i++) {
        const struct log_file *file = &scan->files[i];
        json_array_append_new(
            files, json_pack("{s:o, s:I, s:I, s:I}", "path", text_json(file->name), "bytes",
                             (json_int_t)file->totals.bytes, "lines",
                             (json_int_t)file->totals.lines, "cut", (json_int_t)file->totals.cut));
        lines += (json_int_t)file->totals.lines;
    }
    rc = shk_facts_present(facts, "log.files", files, NULL, "--log");
    if (!rc)
        rc = shk_facts_int(facts, "log.lines", lines, NULL, "--log");
    json_t *unknown = rc ? NULL : shk_log_unknown_json(scan->unknown);
    if (unknown)
        rc = shk_facts_present(facts, "log.unknown", unknown, NULL, "--log");
    json_t *doubt = rc ? NULL : shk_log_unknown_json(scan->doubt);
    if (doubt)
        rc = shk_facts_present(facts, "log.doubt", doubt, NULL, "--log");
    for (size_t i = 0; !rc && i < scan->count; i++) {
        char *key = scan->sigs[i].lines ? shk_strf("log.sig.%s", scan->patterns[i].id) : NULL;
        if (scan->sigs[i].lines)
            rc = key ? shk_facts_present(facts, key, sig_json(scan, &scan->sigs[i]), NULL,
                                         scan->sigs[i].file)
                     : -ENOMEM;
        free(key);
    }
    return rc;
}
