#include "probes/log/logscan.h"

#include "core/text/strbuf.h"
#include "probes/log/logline.h"
#include "probes/log/logscan_private.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 400, /* of a line that is kept */
    SEEN_MAX =
        1 << 17,  /* (pattern, origin) pairs that are told apart: beyond, counts are lower bounds */
    TEAM_FROM = 8 /* pieces of a file before it is worth while to start threads */
};

static struct shk_log_wanted scan_wanted(const struct shk_logscan *scan)
{
    return (struct shk_log_wanted){.engine = scan->engine,
                                   .exact = scan->exact,
                                   .wide = scan->wide,
                                   .count = scan->count,
                                   .every = scan->every,
                                   .once = scan->once};
}

static int scan_database(struct shk_logscan *scan, const struct shk_log_database *ready,
                         struct shk_error *err)
{
    bool fits = ready && ready->data &&
                ready->patterns == shk_logscan_digest(scan->patterns, scan->count) &&
                !scan->engine->load(ready->data, ready->size, &scan->exact);
    int rc = fits ? 0
                  : shk_logscan_build(scan->engine, scan->patterns, scan->count, SHK_LOG_EXACT,
                                      SHK_LOG_THIS_PROCESSOR, &scan->exact, err);
    if (rc || !scan->exact)
        return rc;
    if (fits && ready->wide && scan->engine->load(ready->wide, ready->wide_size, &scan->wide))
        scan->wide = NULL;
    for (size_t i = 0; i < scan->count; i++) {
        scan->every[i] = scan->patterns[i].texts && scan->patterns[i].pattern;
        scan->once[i] = scan->patterns[i].once;
    }
    struct shk_log_wanted wanted = scan_wanted(scan);
    scan->find = shk_logfind_create(&wanted);
    return scan->find ? 0 : shk_error_sys(err, ENOMEM, "log patterns");
}

/* Of patterns that were not compiled before, the wider ones are worth while for a long log only. */
static int scan_widen(struct shk_logscan *scan, size_t more, struct shk_error *err)
{
    if (scan->wide || scan->bytes >= scan->engine->widen_from)
        return 0;
    scan->bytes += more;
    if (scan->bytes < scan->engine->widen_from)
        return 0;
    int rc = shk_logscan_build(scan->engine, scan->patterns, scan->count, SHK_LOG_WIDE,
                               SHK_LOG_THIS_PROCESSOR, &scan->wide, err);
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
    scan->engine = database && database->engine ? database->engine : shk_log_engine();
    scan->sigs = calloc(count + 1, sizeof *scan->sigs);
    scan->matchers = calloc(count + 1, sizeof *scan->matchers);
    scan->tables = calloc(count + 1, sizeof *scan->tables);
    scan->every = calloc(count + 1, sizeof *scan->every);
    scan->once = calloc(count + 1, sizeof *scan->once);
    scan->seen = shk_log_seen_create(SEEN_MAX);
    scan->ranks = shk_log_seen_create(SEEN_MAX);
    scan->unknown = shk_log_unknown_create();
    scan->doubt = shk_log_unknown_create();
    bool made = scan->sigs && scan->matchers && scan->tables && scan->every && scan->once;
    int rc = made && scan->seen && scan->ranks && scan->unknown && scan->doubt
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

static void scan_place(struct shk_logscan *scan, struct log_places *places, size_t id, char kind,
                       const char *name)
{
    if (!*name || !shk_log_seen_add(scan->seen, shk_logscan_place(id, kind, name)))
        return;
    places->distinct++;
    if (places->named < SHK_LOG_PLACES_MAX)
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

static void scan_tell(struct shk_logscan *scan, size_t id)
{
    if (scan->hit)
        scan->hit(scan->hit_arg, scan_line_number(scan), id, scan->piece.data + scan->line_start,
                  scan->line_end - scan->line_start);
    scan_hit(scan, id);
}

static void scan_explained(struct shk_logscan *scan)
{
    shk_log_unknown_explained(scan->unknown, scan->line_start);
    shk_log_unknown_explained(scan->doubt, scan->line_start);
}

/* Does the pattern know the line, or only that it looks like an error or may tell of trouble? */
static void scan_unknown(struct shk_logscan *scan, const struct shk_log_pattern *pattern)
{
    const char *line = scan->piece.data + scan->line_start;
    if (pattern->doubt_words) {
        if (!shk_message_informs(line, scan->line_end - scan->line_start))
            shk_log_unknown_error(scan->doubt, scan->line_start);
    } else if (pattern->error_words) {
        shk_log_unknown_error(scan->unknown, scan->line_start);
        shk_log_unknown_explained(scan->doubt, scan->line_start);
    } else if (pattern->explains) {
        scan_explained(scan);
    }
}

static void scan_part(void *arg, size_t pattern)
{
    struct shk_logscan *scan = arg;
    scan->named |= !scan->patterns[pattern].general;
    scan_tell(scan, pattern);
}

/* What it is made of. */
static void scan_parts(struct shk_logscan *scan, const char *line, size_t len)
{
    int rc =
        scan->parts ? 0 : shk_log_parts_create(&scan->parts, scan->patterns, scan->count, NULL);
    rc = rc ? rc : shk_log_parts_find(scan->parts, line, len, scan_part, scan);
    scan->failed |= rc != 0;
}

/* The words of any program count where the line names nothing that says more. */
static void scan_yields(struct shk_logscan *scan)
{
    for (size_t i = 0; !scan->named && i < scan->yield_count; i++) {
        const struct shk_log_pattern *pattern = &scan->patterns[scan->yields[i]];
        scan->decided |= pattern->decides;
        scan_unknown(scan, pattern);
        scan_tell(scan, scan->yields[i]);
    }
}

/* Guesses count where nothing else decides, and the line does not say itself that it only informs.
 */
static void scan_guesses(struct shk_logscan *scan)
{
    const char *line = scan->piece.data + scan->line_start;
    size_t len = scan->line_end - scan->line_start;
    bool open = !scan->decided && scan->trouble && !shk_message_informs(line, len);
    if (open)
        scan_parts(scan, line, len);
    if (scan->named)
        scan_explained(scan);
    scan_yields(scan);
    for (size_t i = 0; open && !scan->decided && i < scan->guess_count; i++)
        scan_tell(scan, scan->guesses[i]);
    scan->guess_count = scan->yield_count = 0;
    scan->decided = scan->trouble = scan->named = false;
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
    const struct shk_log_pattern *pattern = &scan->patterns[id];
    scan->trouble |= pattern->guess || pattern->error_words || pattern->doubt_words;
    if (pattern->guess) {
        if (scan->guess_count < SHK_LOG_GUESSES_MAX)
            scan->guesses[scan->guess_count++] = id;
        return;
    }
    if (pattern->yields && scan->yield_count < SHK_LOG_GUESSES_MAX) {
        scan->yields[scan->yield_count++] = id;
        return;
    }
    scan->decided |= pattern->decides;
    scan_unknown(scan, pattern);
    scan_tell(scan, id);
}

/* Folds what was found in a piece. */
static int scan_fold(struct shk_logscan *scan, const struct shk_logpiece *piece,
                     const struct shk_log_found *found, struct shk_error *err)
{
    const char *name = scan->files[scan->file_count - 1].name;
    scan->piece = *piece;
    scan->numbered = 0;
    for (size_t i = 0; i < scan->count; i++)
        scan->sigs[i].line_end = 0;
    for (size_t i = 0; i < found->line_count; i++) {
        const struct shk_log_line *line = &found->lines[i];
        scan->line_start = line->start;
        scan->line_end = line->end;
        scan->who_known = false;
        for (size_t k = 0; k < line->count; k++)
            scan_match(scan, &found->matches[line->first + k]);
        scan_guesses(scan);
    }
    scan->failed |= !shk_log_unknown_settle(scan->unknown, piece, name) ||
                    !shk_log_unknown_settle(scan->doubt, piece, name);
    return scan->failed ? shk_error_sys(err, ENOMEM, "%s", name) : 0;
}

static int scan_failed(const struct shk_logscan *scan, int rc, struct shk_error *err)
{
    const char *name = scan->files[scan->file_count - 1].name;
    return rc == -EIO ? shk_error_set(err, EIO, "%s: cannot be searched", name)
                      : shk_error_sys(err, -rc, "%s", name);
}

static int scan_piece(struct shk_logscan *scan, const struct shk_logpiece *piece,
                      struct shk_error *err)
{
    int rc = scan->find ? scan_widen(scan, piece->len, err) : 0;
    if (rc)
        return rc;
    if (scan->find)
        rc = shk_logfind_piece(scan->find, piece->data, piece->len, &scan->found);
    return rc ? scan_failed(scan, rc, err) : scan_fold(scan, piece, &scan->found, err);
}

/* The oldest piece that the team has: 1, 0 when there is none. */
static int scan_take(struct shk_logscan *scan, struct shk_log_team *team, struct shk_error *err)
{
    struct shk_logpiece piece;
    const struct shk_log_found *found;
    int rc = shk_log_team_take(team, &piece, &found);
    if (rc < 0)
        return scan_failed(scan, rc, err);
    if (!rc)
        return 0;
    rc = scan_fold(scan, &piece, found, err);
    return rc ? rc : 1;
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

/* The next piece of a file; *team_p is made once that is worth while. */
static int scan_next(struct shk_logscan *scan, const struct shk_logpiece *piece, size_t count,
                     struct shk_log_team **team_p, struct shk_error *err)
{
    if (count == TEAM_FROM && scan->wide) {
        struct shk_log_wanted wanted = scan_wanted(scan);
        *team_p = shk_log_team_create(&wanted);
    }
    if (!*team_p)
        return scan_piece(scan, piece, err);
    int rc = shk_log_team_full(*team_p) ? scan_take(scan, *team_p, err) : 0;
    if (rc >= 0 && (rc = shk_log_team_give(*team_p, piece)) < 0)
        rc = scan_failed(scan, rc, err);
    return rc < 0 ? rc : 0;
}

static int scan_watch(struct shk_logscan *scan, const char *path, const struct shk_logpiece *piece,
                      struct shk_error *err)
{
    int rc = scan->watch ? scan->watch(scan->watch_arg, scan->files[scan->file_count - 1].name,
                                       piece->data, piece->len)
                         : 0;
    return rc ? shk_error_sys(err, -rc, "%s", path) : 0;
}

int shk_logscan_file(struct shk_logscan *scan, const char *path, struct shk_error *err)
{
    struct shk_logfile *log = NULL;
    struct shk_log_team *team = NULL;
    struct shk_logpiece piece;
    int rc = shk_logfile_open(&log, path, err);
    if (!rc)
        rc = scan_begin(scan, strcmp(path, "-") == 0 ? "standard input" : path, err);
    for (size_t count = 1; !rc && (rc = shk_logfile_read(log, &piece, err)) > 0; count++) {
        rc = scan_watch(scan, path, &piece, err);
        rc = rc ? rc : scan_next(scan, &piece, count, &team, err);
    }
    int more = 1;
    while (team && more > 0) /* what was read before an error is kept */
        more = scan_take(scan, team, err);
    rc = rc ? rc : more < 0 ? more : 0;
    shk_log_team_destroy(team);
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
    shk_log_parts_destroy(scan->parts);
    shk_logfind_destroy(scan->find);
    shk_log_found_free(&scan->found);
    scan->engine->destroy(scan->exact);
    scan->engine->destroy(scan->wide);
    free(scan->every);
    free(scan->once);
    shk_log_seen_destroy(scan->seen);
    shk_log_seen_destroy(scan->ranks);
    shk_log_unknown_destroy(scan->unknown);
    shk_log_unknown_destroy(scan->doubt);
    free(scan->sigs);
    free(scan->matchers);
    free(scan->tables);
    free(scan->files);
    free(scan);
}
