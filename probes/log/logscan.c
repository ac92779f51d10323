#include "probes/log/logscan.h"

#include "core/run/logfile.h"
#include "core/text/messages.h"
#include "core/text/strbuf.h"
#include "probes/log/logcapture.h"
#include "probes/log/logfind.h"
#include "probes/log/logline.h"
#include "probes/log/logscan_private.h"
#include "probes/log/logstate.h"
#include "probes/log/logunknown.h"

#include <errno.h>
#include <hs.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 400, /* of a line that is kept */
    PLACES_MAX = 8, /* origins and nodes named per pattern */
    SEEN_MAX =
        1 << 17, /* (pattern, origin) pairs that are told apart: beyond, counts are lower bounds */
    WIDEN_FROM = 64 << 20 /* bytes for which it is worth while to compile the wider patterns */
};

struct log_places {
    char *names[PLACES_MAX];
    size_t named;
    unsigned long long distinct;
};

struct log_sig {
    unsigned long long lines; /* that match */
    size_t line_end;          /* in this piece: matches before it are on a line already counted */
    char *file, *text;        /* first occurrence */
    unsigned long long line;
    struct log_places origins, nodes;
    struct shk_log_captures captures;
    struct shk_log_states *states; /* of a pattern with `state`, from its first line on */
};

struct log_file {
    char *name;
    struct shk_logfile_totals totals;
};

struct shk_logscan {
    shk_logscan_watcher *watch;
    void *watch_arg;
    shk_logscan_hit *hit;
    void *hit_arg;
    size_t numbered; /* bytes of the piece whose line breaks are counted */
    unsigned long long number;
    const struct shk_log_pattern *patterns;
    size_t count;
    hs_database_t *database, *wide;
    bool *every, *once; /* by pattern, for the search */
    struct shk_logfind *find;
    struct shk_log_found found;
    size_t bytes;                      /* that were searched before there were wider patterns */
    struct shk_log_matcher **matchers; /* of captures; NULL where there is none */
    struct shk_messages **tables;      /* at the first pattern that stands before the same texts */
    struct log_sig *sigs;
    struct log_file *files;
    size_t file_count;
    struct shk_log_seen *seen;  /* origins and nodes */
    struct shk_log_seen *ranks; /* process -> rank */
    struct shk_log_unknown *unknown;
    /* The piece that is being scanned. */
    struct shk_logpiece piece;
    size_t line_start, line_end; /* the line whose matches are told */
    struct shk_logline who;      /* printed it, once that was asked */
    bool who_known;
    bool failed;
};

static int scan_database(struct shk_logscan *scan, const struct shk_log_database *ready,
                         struct shk_error *err)
{
    bool fits = ready && ready->patterns == shk_logscan_digest(scan->patterns, scan->count) &&
                hs_deserialize_database(ready->data, ready->size, &scan->database) == HS_SUCCESS;
    int rc = fits ? 0
                  : shk_logscan_build(scan->patterns, scan->count, SHK_LOG_EXACT, NULL,
                                      &scan->database, err);
    if (rc || !scan->database)
        return rc;
    if (fits && ready->wide)
        hs_deserialize_database(ready->wide, ready->wide_size, &scan->wide);
    for (size_t i = 0; i < scan->count; i++) {
        scan->every[i] = scan->patterns[i].texts && scan->patterns[i].pattern;
        scan->once[i] = scan->patterns[i].once;
    }
    struct shk_log_wanted wanted = {.patterns = scan->database,
                                    .wide = scan->wide,
                                    .count = scan->count,
                                    .every = scan->every,
                                    .once = scan->once};
    scan->find = shk_logfind_create(&wanted);
    return scan->find ? 0 : shk_error_sys(err, ENOMEM, "log patterns");
}

/* Of patterns that were not compiled before, the wider ones are worth while for a long log only. */
static int scan_widen(struct shk_logscan *scan, size_t more, struct shk_error *err)
{
    if (scan->wide || scan->bytes >= WIDEN_FROM)
        return 0;
    scan->bytes += more;
    if (scan->bytes < WIDEN_FROM)
        return 0;
    int rc = shk_logscan_build(scan->patterns, scan->count, SHK_LOG_WIDE, NULL, &scan->wide, err);
    if (!rc && scan->wide && shk_logfind_widen(scan->find, scan->wide))
        rc = shk_error_sys(err, ENOMEM, "log patterns");
    return rc;
}

static int scan_captures(struct shk_logscan *scan, struct shk_error *err)
{
    for (size_t i = 0; i < scan->count; i++) {
        struct shk_error why = {""};
        if (!scan->patterns[i].capture)
            continue;
        int rc = shk_log_matcher_create(&scan->matchers[i], scan->patterns[i].capture, &why);
        if (rc)
            return shk_logscan_bad(&scan->patterns[i], why.text, err);
    }
    return 0;
}

/* The messages behind a pattern, made when the first line has it; NULL: out of memory. */
static const struct shk_messages *scan_messages(struct shk_logscan *scan, size_t first)
{
    struct shk_messages *table = scan->tables[first];
    struct shk_error ignored = {""};
    if (table)
        return table;
    int rc = (table = shk_messages_create()) ? 0 : -1;
    for (size_t i = first; !rc && i < scan->count; i++)
        if (scan->patterns[i].texts && scan->patterns[i].pattern &&
            shk_logscan_table(scan->patterns, i) == first)
            rc = shk_messages_add(table, scan->patterns[i].texts, i, &ignored);
    if (!rc)
        rc = shk_messages_settle(table, &ignored);
    if (rc) {
        shk_messages_destroy(table);
        table = NULL;
        scan->failed = true;
    }
    return scan->tables[first] = table;
}

int shk_logscan_create(struct shk_logscan **scan_p, const struct shk_log_pattern *patterns,
                       size_t count, const struct shk_log_database *database, struct shk_error *err)
{
    struct shk_logscan *scan = calloc(1, sizeof *scan);
    if (!scan)
        return shk_error_sys(err, ENOMEM, "log patterns");
    scan->patterns = patterns;
    scan->count = count;
    scan->sigs = calloc(count + 1, sizeof *scan->sigs);
    scan->matchers = calloc(count + 1, sizeof *scan->matchers);
    scan->tables = calloc(count + 1, sizeof *scan->tables);
    scan->every = calloc(count + 1, sizeof *scan->every);
    scan->once = calloc(count + 1, sizeof *scan->once);
    scan->seen = shk_log_seen_create(SEEN_MAX);
    scan->ranks = shk_log_seen_create(SEEN_MAX);
    scan->unknown = shk_log_unknown_create();
    bool made = scan->sigs && scan->matchers && scan->tables && scan->every && scan->once;
    int rc = made && scan->seen && scan->ranks && scan->unknown
                 ? 0
                 : shk_error_sys(err, ENOMEM, "log patterns");
    if (!rc && count)
        rc = scan_database(scan, database, err);
    if (!rc)
        rc = scan_captures(scan, err);
    if (rc) {
        shk_logscan_destroy(scan);
        return rc;
    }
    *scan_p = scan;
    return 0;
}

/* Lines are mostly asked for in their order. */
static unsigned long long scan_line_number(struct shk_logscan *scan)
{
    if (scan->line_start < scan->numbered || !scan->numbered) {
        scan->numbered = 0;
        scan->number = scan->piece.first_line;
    }
    scan->number +=
        shk_logfile_breaks(scan->piece.data + scan->numbered, scan->line_start - scan->numbered);
    scan->numbered = scan->line_start;
    return scan->number;
}

/* The mark of a node (or origin) that printed a line. */
static uint64_t place_hash(size_t id, char kind, const char *name)
{
    return shk_log_hash(name) ^ (id * 2654435761u + (size_t)kind);
}

static void scan_place(struct shk_logscan *scan, struct log_places *places, size_t id, char kind,
                       const char *name)
{
    if (!*name || !shk_log_seen_add(scan->seen, place_hash(id, kind, name)))
        return;
    places->distinct++;
    if (places->named < PLACES_MAX)
        scan->failed |= !(places->names[places->named++] = strdup(name));
}

static void scan_first(struct shk_logscan *scan, struct log_sig *sig, const char *line, size_t len)
{
    sig->file = strdup(scan->files[scan->file_count - 1].name);
    sig->text = strndup(line, len < TEXT_MAX ? len : TEXT_MAX);
    sig->line = scan_line_number(scan);
    scan->failed |= !sig->file || !sig->text;
}

static void scan_state(struct shk_logscan *scan, size_t id, const char *line, size_t len,
                       const struct shk_logline *who)
{
    struct log_sig *sig = &scan->sigs[id];
    if (!sig->states && !(sig->states = calloc(1, sizeof *sig->states))) {
        scan->failed = true;
        return;
    }
    uint64_t name = scan->matchers[id] ? shk_log_capture_name(scan->matchers[id], line, len) : 0;
    shk_log_states_note(sig->states, name ^ shk_log_hash(who->node), scan->file_count - 1,
                        scan_line_number(scan));
}

/* One more line that matches. */
static void scan_hit(struct shk_logscan *scan, size_t id)
{
    struct log_sig *sig = &scan->sigs[id];
    const struct shk_log_pattern *pattern = &scan->patterns[id];
    const char *line = scan->piece.data + scan->line_start;
    size_t len = scan->line_end - scan->line_start;
    struct shk_logline *who = &scan->who;
    if (len && line[len - 1] == '\r')
        len--;
    if (!sig->lines++)
        scan_first(scan, sig, line, len);
    if (!pattern->origins && !scan->matchers[id] && !pattern->state)
        return;
    if (!scan->who_known)
        shk_logline_parse(who, line, len);
    scan->who_known = true;
    if (pattern->origins) {
        scan_place(scan, &sig->origins, id, 'o', who->origin);
        scan_place(scan, &sig->nodes, id, 'n', who->node);
    }
    if (scan->matchers[id]) {
        long rank = shk_log_capture(&sig->captures, scan->matchers[id], line, len, who);
        if (rank >= 0 && *who->origin)
            shk_log_seen_set(scan->ranks, shk_log_hash(who->origin), (uint32_t)rank);
    }
    if (pattern->state)
        scan_state(scan, id, line, len, who);
}

/* What stands behind a table's pattern, which ends at this offset. */
static bool scan_message(const struct shk_logscan *scan, const struct shk_messages *table,
                         size_t at, size_t *id_p)
{
    const char *data = scan->piece.data;
    while (at < scan->line_end && (data[at] == ' ' || data[at] == '\t'))
        at++;
    return at < scan->line_end &&
           shk_messages_find(table, data + at, scan->line_end - at, id_p, NULL);
}

static void scan_match(struct shk_logscan *scan, const struct shk_log_match *match)
{
    size_t id = match->id, to = scan->line_start + match->to;
    if (scan->every[id]) {
        const struct shk_messages *table = scan_messages(scan, id);
        if (!table || !scan_message(scan, table, to, &id))
            return;
    }
    if (to <= scan->sigs[id].line_end)
        return;
    scan->sigs[id].line_end = scan->line_end + 1;
    if (scan->patterns[id].error_words)
        shk_log_unknown_error(scan->unknown, scan->line_start);
    else if (scan->patterns[id].explains)
        shk_log_unknown_explained(scan->unknown, scan->line_start);
    if (scan->hit)
        scan->hit(scan->hit_arg, scan_line_number(scan), id, scan->piece.data + scan->line_start,
                  scan->line_end - scan->line_start);
    scan_hit(scan, id);
}

static int scan_piece(struct shk_logscan *scan, const struct shk_logpiece *piece,
                      struct shk_error *err)
{
    const char *name = scan->files[scan->file_count - 1].name;
    scan->piece = *piece;
    scan->numbered = scan->found.line_count = 0;
    for (size_t i = 0; i < scan->count; i++)
        scan->sigs[i].line_end = 0;
    int rc = scan->find ? scan_widen(scan, piece->len, err) : 0;
    if (rc)
        return rc;
    if (scan->find)
        rc = shk_logfind_piece(scan->find, piece->data, piece->len, &scan->found);
    if (rc == -EIO)
        return shk_error_set(err, EIO, "%s: cannot be searched", name);
    for (size_t i = 0; i < scan->found.line_count; i++) {
        const struct shk_log_line *line = &scan->found.lines[i];
        scan->line_start = line->start;
        scan->line_end = line->end;
        scan->who_known = false;
        for (size_t k = 0; k < line->count; k++)
            scan_match(scan, &scan->found.matches[line->first + k]);
    }
    scan->failed |= rc || !shk_log_unknown_settle(scan->unknown, piece, name);
    return scan->failed ? shk_error_sys(err, ENOMEM, "%s", name) : 0;
}

/* A file goes on when the last one has the same name. */
static int scan_begin(struct shk_logscan *scan, const char *name, struct shk_error *err)
{
    if (scan->file_count && strcmp(scan->files[scan->file_count - 1].name, name) == 0)
        return 0;
    struct log_file *more = reallocarray(scan->files, scan->file_count + 1, sizeof *more);
    if (!more)
        return shk_error_sys(err, ENOMEM, "%s", name);
    scan->files = more;
    more[scan->file_count] = (struct log_file){.name = strdup(name)};
    if (!more[scan->file_count].name)
        return shk_error_sys(err, ENOMEM, "%s", name);
    scan->file_count++;
    return 0;
}

void shk_logscan_hits(struct shk_logscan *scan, shk_logscan_hit *fn, void *arg)
{
    scan->hit = fn;
    scan->hit_arg = arg;
}

void shk_logscan_watch(struct shk_logscan *scan, shk_logscan_watcher *fn, void *arg)
{
    scan->watch = fn;
    scan->watch_arg = arg;
}

int shk_logscan_file(struct shk_logscan *scan, const char *path, struct shk_error *err)
{
    struct shk_logfile *log = NULL;
    struct shk_logpiece piece;
    int rc = shk_logfile_open(&log, path, err);
    if (!rc)
        rc = scan_begin(scan, strcmp(path, "-") == 0 ? "standard input" : path, err);
    while (!rc && (rc = shk_logfile_read(log, &piece, err)) > 0) {
        rc = scan->watch ? scan->watch(scan->watch_arg, scan->files[scan->file_count - 1].name,
                                       piece.data, piece.len)
                         : 0;
        rc = rc ? shk_error_sys(err, -rc, "%s", path) : scan_piece(scan, &piece, err);
    }
    if (log && scan->file_count)
        scan->files[scan->file_count - 1].totals = shk_logfile_totals(log);
    shk_logfile_close(log);
    return rc;
}

int shk_logscan_text(struct shk_logscan *scan, const char *name, const char *text, size_t len,
                     struct shk_error *err)
{
    int rc = scan_begin(scan, name, err);
    if (rc)
        return rc;
    struct shk_logfile_totals *totals = &scan->files[scan->file_count - 1].totals;
    struct shk_logpiece piece = {.data = text, .len = len, .first_line = totals->lines + 1};
    rc = scan_piece(scan, &piece, err);
    totals->bytes += len;
    totals->lines += shk_logfile_breaks(text, len);
    totals->lines += len && text[len - 1] != '\n';
    return rc;
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
            printed |= shk_log_seen_get(scan->seen, place_hash(i, 'n', node), &value);
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

static void places_free(struct log_places *places)
{
    for (size_t i = 0; i < places->named; i++)
        free(places->names[i]);
}

void shk_logscan_destroy(struct shk_logscan *scan)
{
    if (!scan)
        return;
    for (size_t i = 0; scan->tables && i < scan->count; i++)
        shk_messages_destroy(scan->tables[i]);
    for (size_t i = 0; scan->sigs && scan->matchers && i < scan->count; i++) {
        struct log_sig *sig = &scan->sigs[i];
        free(sig->file);
        free(sig->text);
        places_free(&sig->origins);
        places_free(&sig->nodes);
        shk_log_captures_free(&sig->captures);
        free(sig->states);
        shk_log_matcher_destroy(scan->matchers[i]);
    }
    for (size_t i = 0; i < scan->file_count; i++)
        free(scan->files[i].name);
    shk_logfind_destroy(scan->find);
    shk_log_found_free(&scan->found);
    hs_free_database(scan->database);
    hs_free_database(scan->wide);
    free(scan->every);
    free(scan->once);
    shk_log_seen_destroy(scan->seen);
    shk_log_seen_destroy(scan->ranks);
    shk_log_unknown_destroy(scan->unknown);
    free(scan->sigs);
    free(scan->matchers);
    free(scan->tables);
    free(scan->files);
    free(scan);
}
