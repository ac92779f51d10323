/* From signatures to one Vectorscan database. */
#include "core/text/messages.h"
#include "core/text/strbuf.h"
#include "probes/log/logcapture.h"
#include "probes/log/logscan_private.h"
#include "probes/log/logwide.h"

#include <errno.h>
#include <hs.h>
#include <stdlib.h>
#include <string.h>

/* What Vectorscan shall do with a pattern: classes must not leave the line, '\r' may end one. */
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
        } else if (!in_class && *p == '$' && !p[1]) {
            shk_strbuf_puts(&sb, "\\r?$");
        } else {
            in_class = in_class && *p != ']';
            shk_strbuf_putc(&sb, *p);
        }
    }
    return shk_strbuf_take(&sb);
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

/* What Vectorscan is given. */
struct scan_list {
    char **texts;
    unsigned *ids, *flags;
    size_t count, cap;
    bool wide; /* of what is not blind, the wider ones (logwide.h) */
};

static void scan_list_free(struct scan_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->texts[i]);
    free(list->texts);
    free(list->ids);
    free(list->flags);
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

static int scan_list_add(struct scan_list *list, char *text, size_t id)
{
    int rc = list->wide ? scan_list_widen(&text) : 0;
    if (rc || (list->wide && !text))
        return rc;
    if (text && list->count == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 1024;
        char **texts = reallocarray(list->texts, cap, sizeof *texts);
        list->texts = texts ? texts : list->texts;
        unsigned *ids = reallocarray(list->ids, cap, sizeof *ids);
        list->ids = ids ? ids : list->ids;
        unsigned *more = reallocarray(list->flags, cap, sizeof *more);
        list->flags = more ? more : list->flags;
        list->cap = texts && ids && more ? cap : list->cap;
    }
    if (!text || list->count == list->cap) {
        free(text);
        return -ENOMEM;
    }
    list->texts[list->count] = text;
    list->ids[list->count] = (unsigned)id;
    list->flags[list->count++] = HS_FLAG_MULTILINE;
    return 0;
}

/* A pattern; the first of those that are the same before tables; or messages of their own. */
static int scan_list_fill(struct scan_list *list, const struct shk_log_pattern *patterns, size_t n)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        const char *text = patterns[i].pattern ? NULL : patterns[i].texts;
        if (patterns[i].pattern && shk_logscan_table(patterns, i) == i)
            rc = scan_list_add(list, scan_pattern(patterns[i].pattern), i);
        for (size_t len; !rc && text && *text; text += len + (text[len] == '\n')) {
            len = strcspn(text, "\n");
            rc = len ? scan_list_add(list, shk_messages_regex(text, len), i) : 0;
        }
    }
    return rc;
}

int shk_logscan_build(const struct shk_log_pattern *patterns, size_t n, enum shk_log_width width,
                      const struct hs_platform_info *platform, struct hs_database **database_p,
                      struct shk_error *err)
{
    struct scan_list list = {.wide = width == SHK_LOG_WIDE};
    hs_compile_error_t *bad = NULL;
    int rc = scan_list_fill(&list, patterns, n);
    *database_p = NULL;
    if (rc == -ENOTSUP || (!rc && !list.count)) {
        scan_list_free(&list);
        return 0;
    }
    if (rc)
        shk_error_sys(err, ENOMEM, "log patterns");
    if (!rc && hs_compile_multi((const char *const *)list.texts, list.flags, list.ids,
                                (unsigned)list.count, HS_MODE_BLOCK, platform, database_p,
                                &bad) != HS_SUCCESS)
        rc = bad && bad->expression >= 0
                 ? shk_logscan_bad(&patterns[list.ids[bad->expression]], bad->message, err)
                 : shk_error_set(err, EINVAL, "log patterns: %s", bad ? bad->message : "refused");
    hs_free_compile_error(bad);
    scan_list_free(&list);
    return rc;
}

uint64_t shk_logscan_digest(const struct shk_log_pattern *patterns, size_t count)
{
    uint64_t digest = count;
    for (size_t i = 0; i < count; i++)
        digest = digest * 0x100000001b3u ^
                 shk_log_hash(patterns[i].pattern ? patterns[i].pattern : patterns[i].texts);
    return digest;
}

static int scan_compile(const struct shk_log_pattern *patterns, size_t count,
                        enum shk_log_width width, const char **data_p, size_t *size_p,
                        struct shk_error *err)
{
    static const hs_platform_info_t any = {.tune = HS_TUNE_FAMILY_GENERIC};
    hs_database_t *database = NULL;
    char *data = NULL;
    int rc = shk_logscan_build(patterns, count, width, &any, &database, err);
    if (!rc && database && hs_serialize_database(database, &data, size_p) != HS_SUCCESS)
        rc = shk_error_sys(err, ENOMEM, "log patterns");
    hs_free_database(database);
    *data_p = data;
    return rc;
}

int shk_logscan_compile(const struct shk_log_pattern *patterns, size_t count,
                        struct shk_log_database *made, struct shk_error *err)
{
    *made = (struct shk_log_database){.patterns = shk_logscan_digest(patterns, count)};
    int rc = scan_compile(patterns, count, SHK_LOG_EXACT, &made->data, &made->size, err);
    return rc ? rc
              : scan_compile(patterns, count, SHK_LOG_WIDE, &made->wide, &made->wide_size, err);
}
