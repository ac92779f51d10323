#include "probes/log/logparts.h"

#include "core/regex/spelling.h"
#include "core/text/errnos.h"
#include "probes/engine/logengine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A pattern that has an object, and which of its parts were found: numbers of expressions. */
struct cell {
    size_t pattern, object;
    const char *const *errors;
};

struct shk_log_parts {
    const struct shk_log_engine *engine;
    struct shk_log_set *set;
    struct shk_log_scratch *scratch;
    struct cell *cells;
    size_t cell_count;
    struct shk_log_expressions list; /* of errors first, as they are installed, then of objects */
    const char **objects;            /* of the patterns, by the number behind those of errors */
    size_t errors, object_count;
    bool *found; /* by number, in the line that is looked at */
};

static bool add_text(struct shk_log_parts *parts, char *text)
{
    struct shk_log_expressions *list = &parts->list;
    if (!text)
        return false;
    list->texts[list->count] = text;
    list->ids[list->count] = (unsigned)list->count;
    list->count++;
    return true;
}

/* The number of the object's expression, a new one for a new object. */
static bool add_object(struct shk_log_parts *parts, const char *pattern, size_t *number_p)
{
    for (size_t i = 0; i < parts->object_count; i++)
        if (strcmp(parts->objects[i], pattern) == 0) {
            *number_p = parts->errors + i;
            return true;
        }
    parts->objects[parts->object_count] = pattern;
    *number_p = parts->errors + parts->object_count++;
    return add_text(parts, strdup(pattern));
}

static bool add_all(struct shk_log_parts *parts, const struct shk_log_pattern *patterns,
                    size_t count)
{
    const struct shk_errno *rows = shk_errnos(&parts->errors);
    bool made = true;
    for (size_t i = 0; made && i < parts->errors; i++)
        made = add_text(parts, shk_spell_error(&rows[i]));
    for (size_t i = 0; made && i < count; i++) {
        struct cell *cell = &parts->cells[parts->cell_count];
        if (!patterns[i].object)
            continue;
        *cell = (struct cell){.pattern = i, .errors = patterns[i].errors};
        made = add_object(parts, patterns[i].object, &cell->object);
        parts->cell_count++;
    }
    return made;
}

static bool reserve(struct shk_log_parts *parts, const struct shk_log_pattern *patterns,
                    size_t count)
{
    size_t errors, cells = 0;
    (void)shk_errnos(&errors);
    for (size_t i = 0; i < count; i++)
        cells += patterns[i].object != NULL;
    size_t all = errors + cells + 1;
    parts->cells = calloc(cells + 1, sizeof *parts->cells);
    parts->objects = calloc(cells + 1, sizeof *parts->objects);
    parts->found = calloc(all, sizeof *parts->found);
    parts->list.texts = calloc(all, sizeof *parts->list.texts);
    parts->list.ids = calloc(all, sizeof *parts->list.ids);
    parts->list.every = calloc(all, sizeof *parts->list.every);
    return parts->cells && parts->objects && parts->found && parts->list.texts && parts->list.ids &&
           parts->list.every;
}

/* Few lines come here, and what they are looked at for is compiled when it is needed. */
int shk_log_parts_create(struct shk_log_parts **parts_p, const struct shk_log_pattern *patterns,
                         size_t count, struct shk_error *err)
{
    struct shk_log_parts *parts = calloc(1, sizeof *parts);
    size_t bad = SIZE_MAX;
    *parts_p = NULL;
    if (!parts || !reserve(parts, patterns, count) || !add_all(parts, patterns, count)) {
        shk_log_parts_destroy(parts);
        return shk_error_sys(err, ENOMEM, "log patterns");
    }
    parts->engine = shk_log_engine_pcre2();
    int rc = parts->cell_count ? parts->engine->compile(&parts->list, SHK_LOG_THIS_PROCESSOR,
                                                        &parts->set, &bad, err)
                               : 0;
    if (!rc && parts->set && parts->engine->scratch(parts->set, &parts->scratch))
        rc = shk_error_sys(err, ENOMEM, "log patterns");
    if (rc) {
        shk_log_parts_destroy(parts);
        return rc;
    }
    *parts_p = parts;
    return 0;
}

void shk_log_parts_destroy(struct shk_log_parts *parts)
{
    if (!parts)
        return;
    if (parts->scratch)
        parts->engine->scratch_destroy(parts->scratch);
    if (parts->set)
        parts->engine->destroy(parts->set);
    for (size_t i = 0; i < parts->list.count; i++)
        free(parts->list.texts[i]);
    free(parts->list.texts);
    free(parts->list.ids);
    free(parts->list.every);
    free(parts->cells);
    free(parts->objects);
    free(parts->found);
    free(parts);
}

static int part_told(void *arg, unsigned id, size_t to)
{
    struct shk_log_parts *parts = arg;
    (void)to;
    parts->found[id] = true;
    return 0;
}

static bool has_error(const struct shk_log_parts *parts, const struct cell *cell)
{
    size_t count;
    const struct shk_errno *rows = shk_errnos(&count);
    for (size_t i = 0; i < count && i < parts->errors; i++)
        for (const char *const *e = cell->errors; parts->found[i] && *e; e++)
            if (strcmp(*e, rows[i].name) == 0)
                return true;
    return false;
}

int shk_log_parts_find(struct shk_log_parts *parts, const char *line, size_t len, shk_log_part *fn,
                       void *arg)
{
    if (!parts->set)
        return 0;
    memset(parts->found, 0, parts->list.count * sizeof *parts->found);
    int rc = parts->engine->search(parts->set, parts->scratch, line, len, part_told, parts);
    for (size_t i = 0; !rc && i < parts->cell_count; i++)
        if (parts->found[parts->cells[i].object] && has_error(parts, &parts->cells[i]))
            fn(arg, parts->cells[i].pattern);
    return rc;
}
