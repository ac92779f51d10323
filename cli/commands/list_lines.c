/* list signatures --log FILE: which signatures match which lines. */
#include "cli/commands/commands.h"
#include "cli/logpatterns.h"
#include "core/text/messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct list_lines {
    const struct shk_signature *signatures;
    const struct shk_log_pattern *patterns;
    size_t count;                 /* of signatures; patterns behind them are of defects */
    struct shk_messages **tables; /* of signatures that have texts, made when needed */
    FILE *out;
    bool any; /* line was listed */
};

/* Which of a signature's texts is in the line; NULL when that is not to be said. */
static const char *lines_text(struct list_lines *list, size_t pattern, const char *line, size_t len)
{
    const char *text = NULL;
    struct shk_error ignored = {""};
    struct shk_messages **table = &list->tables[pattern];
    size_t id;
    if (!list->signatures[pattern].texts)
        return NULL;
    if (!*table && (!(*table = shk_messages_create()) ||
                    shk_messages_add(*table, list->signatures[pattern].texts, 0, &ignored) ||
                    shk_messages_settle(*table, &ignored)))
        return NULL;
    for (size_t at = 0; at < len; at++)
        if (shk_messages_find(*table, line + at, len - at, &id, &text))
            return text;
    return NULL;
}

static void lines_hit(void *arg, unsigned long long number, size_t pattern, const char *line,
                      size_t len)
{
    struct list_lines *list = arg;
    list->any = true;
    if (pattern >= list->count) {
        fprintf(list->out, "%llu\t%s\t-\tdefect\trelease-defect\t-\n", number,
                list->patterns[pattern].id);
        return;
    }
    const struct shk_signature *sig = &list->signatures[pattern];
    const char *text = lines_text(list, pattern, line, len);
    fprintf(list->out, "%llu\t%s\t%s\t%s\t%s\t%.*s\n", number, sig->id, sig->library,
            shk_log_role_names[sig->role], sig->diagnosis ? sig->diagnosis : "-",
            text ? (int)strcspn(text, "\n") : 1, text ? text : "-");
}

int shk_list_lines(const struct shk_config *config, const struct shk_texts *files, FILE *out,
                   struct shk_error *err)
{
    size_t n;
    struct list_lines list = {.out = out};
    list.signatures = shk_config_signatures(config, &list.count);
    struct shk_log_pattern *patterns = shk_log_patterns(config, &n);
    list.patterns = patterns;
    struct shk_logscan *scan = NULL;
    list.tables = calloc(n + 1, sizeof *list.tables);
    int rc = patterns && list.tables ? 0 : shk_error_sys(err, ENOMEM, "log");
    if (!rc)
        rc = shk_logscan_create(&scan, patterns, n, &shk_log_builtin, err);
    if (!rc)
        shk_logscan_hits(scan, lines_hit, &list);
    for (size_t i = 0; !rc && i < files->count; i++)
        rc = shk_logscan_file(scan, files->items[i], err);
    if (!rc && !list.any)
        fputs("shakedown: no signature matches a line\n", stderr);
    shk_logscan_destroy(scan);
    for (size_t i = 0; list.tables && i < n; i++)
        shk_messages_destroy(list.tables[i]);
    free(list.tables);
    free(patterns);
    return rc;
}
