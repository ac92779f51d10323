/* Lines of a log that look like errors and that no signature knows. */
#include "checks/base/coded.h"
#include "checks/log/log.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8 };

static const json_t *shapes_of(const struct shk_facts *facts, const char *fact, long long *lines_p)
{
    json_t *lines = NULL;
    *lines_p = 0;
    if (shk_look_object(facts, fact, &lines) != SHK_LOOK_PRESENT ||
        shk_look_member_int(lines, "lines", lines_p) != SHK_LOOK_PRESENT)
        return NULL;
    return json_object_get(lines, "shapes");
}

const json_t *shk_log_unknown_shapes(const struct shk_facts *facts, long long *lines_p)
{
    return shapes_of(facts, "log.unknown", lines_p);
}

const json_t *shk_log_doubt_shapes(const struct shk_facts *facts)
{
    long long lines;
    return shapes_of(facts, "log.doubt", &lines);
}

char *shk_log_unknown_place(const json_t *shape)
{
    const char *file = shk_log_captured(shape, "file"), *slash = file ? strrchr(file, '/') : NULL;
    long long line = 0;
    (void)shk_look_member_int(shape, "line", &line);
    return shk_strf("%s:%lld", slash && slash[1] ? slash + 1 : file ? file : "log", line);
}

const char *shk_log_unknown_text(const json_t *shape)
{
    const char *text = shk_log_captured(shape, "text");
    return text ? text + strspn(text, " \t") : "";
}

const json_t *shk_log_unknown_before(const struct shk_facts *facts, const json_t *seen)
{
    long long lines, first = 0;
    const json_t *shapes = shk_log_unknown_shapes(facts, &lines);
    const char *file = shk_log_captured(seen, "file");
    if (!file || shk_look_member_int(seen, "line", &first) != SHK_LOOK_PRESENT)
        return NULL;
    for (size_t i = 0; i < json_array_size(shapes); i++) {
        const json_t *shape = json_array_get(shapes, i);
        const char *where = shk_log_captured(shape, "file");
        long long line = 0;
        if (where && strcmp(where, file) == 0 &&
            shk_look_member_int(shape, "line", &line) == SHK_LOOK_PRESENT && line < first)
            return shape;
    }
    return NULL;
}

/* Lines that are known and decide nothing: of a symptom that stands for no cause. */
static bool undecided(const struct shk_signature *sig)
{
    return sig->role == SHK_LOG_SYMPTOM && !sig->diagnosis && !sig->also;
}

const json_t *shk_log_first_error(const struct shk_config *config, const struct shk_facts *facts,
                                  long long *lines_p)
{
    size_t count;
    const struct shk_signature *sigs = shk_config_signatures(config, &count);
    const json_t *first = json_array_get(shk_log_unknown_shapes(facts, lines_p), 0);
    long long least = 0, line = 0, lines = 0;
    if (first)
        (void)shk_look_member_int(first, "line", &least);
    for (size_t i = 0; i < count; i++) {
        const json_t *seen = undecided(&sigs[i]) ? shk_log_seen(facts, sigs[i].id) : NULL;
        if (!seen || shk_look_member_int(seen, "lines", &lines) != SHK_LOOK_PRESENT ||
            shk_look_member_int(seen, "line", &line) != SHK_LOOK_PRESENT)
            continue;
        *lines_p += lines;
        if (!first || line < least) {
            first = seen;
            least = line;
        }
    }
    return first;
}

static void one_shape(const struct shk_check_context *ctx, struct shk_findings *findings,
                      const json_t *shape)
{
    char *place = shk_log_unknown_place(shape);
    struct shk_row row = shk_row_begin(ctx, &shk_check_log_setting, place ? place : "log");
    long long lines = 1;
    (void)shk_look_member_int(shape, "lines", &lines);
    row.fact = "log.unknown";
    if (lines > 1)
        shk_row_text(&row.why, "%lld lines look like errors, and no signature knows them: %s",
                     lines, shk_log_unknown_text(shape));
    else
        shk_row_text(&row.why, "looks like an error, and no signature knows it: %s",
                     shk_log_unknown_text(shape));
    shk_row_end(findings, &row);
    free(place);
}

void shk_log_unknown_rows(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    long long lines = 0;
    const json_t *shapes = shk_log_unknown_shapes(ctx->facts, &lines);
    size_t count = json_array_size(shapes);
    for (size_t i = 0; i < count && i < SHOWN; i++)
        one_shape(ctx, findings, json_array_get(shapes, i));
    if (count <= SHOWN)
        return;
    struct shk_row row = shk_row_begin(ctx, &shk_check_log_setting, "further lines");
    row.fact = "log.unknown";
    shk_row_text(&row.why, "%lld lines of %zu or more different messages look like errors", lines,
                 count);
    shk_row_end(findings, &row);
}
