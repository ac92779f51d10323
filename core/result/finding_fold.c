#include "core/result/finding.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct shk_findings_fold {
    json_t *rows; /* what a row says -> its index in the list */
};

void shk_findings_fold_free(struct shk_findings_fold *fold)
{
    if (!fold)
        return;
    json_decref(fold->rows);
    free(fold);
}

static char *fold_key(const struct shk_finding *f)
{
    const char *const texts[] = {f->id,  f->family, f->setting, f->observed,  f->expected,
                                 f->why, f->fix,    f->advice,  f->diagnosis, f->source};
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    shk_strbuf_printf(&sb, "%d/%d/%d", (int)f->verdict, (int)f->evidence, (int)f->scope);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        shk_strbuf_putc(&sb, '\x1f');
        shk_strbuf_puts(&sb, texts[i] ? texts[i] : "");
    }
    return shk_strbuf_take(&sb);
}

static int fold_name(struct shk_findings *list, size_t i, const char *node)
{
    char **have = shk_findings_at(list, i)->nodes;
    size_t n = 0;
    for (; have && have[n]; n++)
        if (strcmp(have[n], node) == 0)
            return 0;
    const char **names = calloc(n + 1, sizeof *names);
    if (!names)
        return -ENOMEM;
    for (size_t k = 0; k < n; k++)
        names[k] = have[k];
    names[n] = node;
    int rc = shk_findings_set_nodes(list, i, names, n + 1);
    free(names);
    return rc;
}

static int fold_row(struct shk_findings *list, struct shk_findings_fold *fold,
                    const struct shk_finding *f, const char *node)
{
    char *key = fold_key(f);
    if (!key)
        return -ENOMEM;
    json_t *index = json_object_get(fold->rows, key);
    size_t at = index ? (size_t)json_integer_value(index) : shk_findings_count(list);
    int rc = 0;
    if (!index) {
        shk_findings_add_copy(list, f);
        rc = shk_findings_status(list);
        if (!rc && json_object_set_new(fold->rows, key, json_integer((json_int_t)at)))
            rc = -ENOMEM;
    }
    free(key);
    /* A row that names nodes is about those, not about the one whose facts tell of them. */
    for (char **name = f->nodes; name && *name && !rc; name++)
        rc = fold_name(list, at, *name);
    return rc || f->nodes ? rc : fold_name(list, at, node);
}

int shk_findings_fold(struct shk_findings *list, struct shk_findings_fold **fold_p,
                      const struct shk_findings *node_findings, const char *node)
{
    if (!*fold_p) {
        struct shk_findings_fold *fold = calloc(1, sizeof *fold);
        if (!fold || !(fold->rows = json_object())) {
            free(fold);
            return -ENOMEM;
        }
        *fold_p = fold;
    }
    int rc = 0;
    for (size_t i = 0; i < shk_findings_count(node_findings) && !rc; i++)
        rc = fold_row(list, *fold_p, shk_findings_at(node_findings, i), node);
    return rc;
}
