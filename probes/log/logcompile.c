/* From signatures to the sets of an engine. */
#include "core/regex/spelling.h"
#include "core/text/errnos.h"
#include "core/text/messages.h"
#include "core/text/strbuf.h"
#include "probes/log/logcapture.h"
#include "probes/log/logscan_private.h"
#include "probes/log/logwide.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What an engine shall do with a pattern: classes must not leave the line, nor take a '\r' in it.
 */
static char *scan_pattern(const char *pattern)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    bool in_class = false;
    for (const char *p = pattern; *p; p++) {
        if (*p == '\\' && p[1]) {
            shk_strbuf_add(&sb, p++, 2);
        } else if (!in_class && *p == '[') {
            in_class = true;
            shk_strbuf_puts(&sb, p[1] == '^' ? "[^\\r\\n" : "[");
            p += p[1] == '^';
            if (p[1] == ']')
                shk_strbuf_putc(&sb, *++p);
        } else {
            in_class = in_class && *p != ']';
            shk_strbuf_putc(&sb, *p);
        }
    }
    return shk_strbuf_take(&sb);
}

/* All spellings of the errors that it has; what stands before a table is only found quickly. */
static char *pattern_text(const struct shk_log_pattern *pattern)
{
    char *spelled = pattern->texts ? strdup(pattern->pattern) : shk_spell_pattern(pattern->pattern);
    char *text = spelled ? scan_pattern(spelled) : NULL;
    free(spelled);
    return text;
}

int shk_logscan_bad(const struct shk_log_pattern *pattern, const char *why, struct shk_error *err)
{
    return shk_error_set(err, EINVAL, "%s%ssignature \"%s\": %s",
                         pattern->place ? pattern->place : "", pattern->place ? ": " : "",
                         pattern->id, why);
}

size_t shk_logscan_table(const struct shk_log_pattern *patterns, size_t i)
{
    for (size_t k = 0; patterns[i].texts && patterns[i].pattern && k < i; k++)
        if (patterns[k].texts && patterns[k].pattern &&
            strcmp(patterns[k].pattern, patterns[i].pattern) == 0)
            return k;
    return i;
}

/* What an engine is given. */
struct scan_list {
    struct shk_log_expressions is;
    size_t cap;
    bool wide; /* of what is not blind, the wider ones (logwide.h) */
};

static void scan_list_free(struct scan_list *list)
{
    for (size_t i = 0; i < list->is.count; i++)
        free(list->is.texts[i]);
    free(list->is.texts);
    free(list->is.ids);
    free(list->is.every);
}

/* The pattern, or its wider one; *text_p is NULL for a blind one. */
static int scan_list_widen(char **text_p)
{
    char *wide = NULL;
    int rc = *text_p ? shk_logwide(*text_p, &wide) : -ENOMEM;
    free(*text_p);
    *text_p = wide;
    return rc;
}

static bool scan_list_room(struct scan_list *list)
{
    struct shk_log_expressions *is = &list->is;
    if (is->count < list->cap)
        return true;
    size_t cap = list->cap ? list->cap * 2 : 1024;
    char **texts = reallocarray(is->texts, cap, sizeof *texts);
    is->texts = texts ? texts : is->texts;
    unsigned *ids = reallocarray(is->ids, cap, sizeof *ids);
    is->ids = ids ? ids : is->ids;
    bool *every = reallocarray(is->every, cap, sizeof *every);
    is->every = every ? every : is->every;
    list->cap = texts && ids && every ? cap : list->cap;
    return is->count < list->cap;
}

static int scan_list_add(struct scan_list *list, char *text, size_t id, bool every)
{
    int rc = list->wide ? scan_list_widen(&text) : 0;
    if (rc || (list->wide && !text))
        return rc;
    if (!text || !scan_list_room(list)) {
        free(text);
        return -ENOMEM;
    }
    struct shk_log_expressions *is = &list->is;
    is->texts[is->count] = text;
    is->ids[is->count] = (unsigned)id;
    is->every[is->count++] = every;
    return 0;
}

/* A pattern; the first of those that are the same before tables; or messages of their own. */
static int scan_list_fill(struct scan_list *list, const struct shk_log_pattern *patterns, size_t n)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        const char *text = patterns[i].pattern ? NULL : patterns[i].texts;
        if (patterns[i].pattern && shk_logscan_table(patterns, i) == i)
            rc = scan_list_add(list, pattern_text(&patterns[i]), i,
                               patterns[i].texts && !list->wide);
        for (size_t len; !rc && text && *text; text += len + (text[len] == '\n')) {
            len = strcspn(text, "\n");
            rc = len ? scan_list_add(list, shk_messages_regex(text, len), i, false) : 0;
        }
    }
    return rc;
}

int shk_logscan_build(const struct shk_log_engine *engine, const struct shk_log_pattern *patterns,
                      size_t n, enum shk_log_width width, enum shk_log_target target,
                      struct shk_log_set **set_p, struct shk_error *err)
{
    struct scan_list list = {.wide = width == SHK_LOG_WIDE};
    struct shk_error why = {""};
    size_t bad = SIZE_MAX;
    int rc = scan_list_fill(&list, patterns, n);
    *set_p = NULL;
    if (rc == -ENOTSUP || (!rc && !list.is.count)) {
        scan_list_free(&list);
        return 0;
    }
    if (rc)
        shk_error_sys(err, ENOMEM, "log patterns");
    else if ((rc = engine->compile(&list.is, target, set_p, &bad, &why)))
        rc = bad < list.is.count ? shk_logscan_bad(&patterns[list.is.ids[bad]], why.text, err)
                                 : shk_error_set(err, -rc, "log patterns: %s", why.text);
    scan_list_free(&list);
    return rc;
}

uint64_t shk_logscan_digest(const struct shk_log_pattern *patterns, size_t count)
{
    uint64_t digest = count ^ shk_errnos_digest();
    for (size_t i = 0; i < count; i++) {
        const char *text = patterns[i].pattern ? patterns[i].pattern : patterns[i].texts;
        digest = digest * 0x100000001b3u ^ (text ? shk_log_hash(text) : 0);
    }
    return digest;
}

static int scan_compile(const struct shk_log_engine *engine, const struct shk_log_pattern *patterns,
                        size_t count, enum shk_log_width width, const char **data_p, size_t *size_p,
                        struct shk_error *err)
{
    struct shk_log_set *set = NULL;
    char *data = NULL;
    int rc = shk_logscan_build(engine, patterns, count, width, SHK_LOG_ANY_PROCESSOR, &set, err);
    if (!rc && set && engine->save(set, &data, size_p))
        rc = shk_error_sys(err, ENOMEM, "log patterns");
    engine->destroy(set);
    *data_p = data;
    return rc;
}

int shk_logscan_compile(const struct shk_log_pattern *patterns, size_t count,
                        const struct shk_log_engine *engine, struct shk_log_database *made,
                        struct shk_error *err)
{
    engine = engine ? engine : shk_log_engine();
    *made = (struct shk_log_database){.engine = engine,
                                      .patterns = shk_logscan_digest(patterns, count)};
    int rc = scan_compile(engine, patterns, count, SHK_LOG_EXACT, &made->data, &made->size, err);
    return rc ? rc
              : scan_compile(engine, patterns, count, SHK_LOG_WIDE, &made->wide, &made->wide_size,
                             err);
}
