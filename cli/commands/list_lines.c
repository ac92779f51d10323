/* list signatures --log FILE: which signatures match which lines. */
#include "cli/commands/commands.h"
#include "cli/session/logpatterns.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>

struct list_lines {
    const struct shk_signature *signatures;
    FILE *out;
};

static void lines_hit(void *arg, unsigned long long line, size_t pattern)
{
    const struct list_lines *list = arg;
    const struct shk_signature *sig = &list->signatures[pattern];
    fprintf(list->out, "%llu\t%s\t%s\t%s\t%s\n", line, sig->id, sig->library,
            shk_log_role_names[sig->role], sig->diagnosis ? sig->diagnosis : "-");
}

int shk_list_lines(const struct shk_config *config, const struct shk_texts *files, FILE *out,
                   struct shk_error *err)
{
    size_t n;
    struct list_lines list = {.signatures = shk_config_signatures(config, &n), .out = out};
    struct shk_log_pattern *patterns = shk_log_patterns(config, &n);
    struct shk_logscan *scan = NULL;
    int rc = patterns ? 0 : shk_error_sys(err, ENOMEM, "log");
    if (!rc)
        rc = shk_logscan_create(&scan, patterns, n, &shk_log_builtin, err);
    if (!rc)
        shk_logscan_hits(scan, lines_hit, &list);
    for (size_t i = 0; !rc && i < files->count; i++)
        rc = shk_logscan_file(scan, files->items[i], err);
    shk_logscan_destroy(scan);
    free(patterns);
    return rc;
}
