#include "reports/model/factfold.h"
#include "core/text/nodefold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A fact that differs on more nodes than this is per-node data, not a setting to compare. */
enum { FOLD_VALUES_MAX = 16 };

struct fold_value {
    char *text;
    const char **nodes;
    size_t count;
};

static char *fold_text(const json_t *value)
{
    if (json_is_string(value))
        return strdup(json_string_value(value));
    return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
}

static int fold_common(const void *a, const void *b)
{
    const struct fold_value *x = a, *y = b;
    return x->count < y->count ? 1 : x->count > y->count ? -1 : strcmp(x->text, y->text);
}

/* Takes text. The last slot gathers what does not fit. */
static int fold_add(struct fold_value *values, size_t *count, char *text, const char *node,
                    size_t nodes)
{
    size_t i = 0;
    while (i < *count && strcmp(values[i].text, text) != 0)
        i++;
    if (i == FOLD_VALUES_MAX) {
        i--;
        free(values[i].text);
        values[i].text = strdup("other values");
    } else if (i == *count) {
        values[i] = (struct fold_value){.text = text, .nodes = calloc(nodes, sizeof(char *))};
        ++*count;
        text = NULL;
    }
    free(text);
    if (!values[i].text || !values[i].nodes)
        return -ENOMEM;
    values[i].nodes[values[i].count++] = node;
    return 0;
}

static int fold_finish(struct fold_value *values, size_t count, struct shk_fold **folds_p)
{
    struct shk_fold *folds = calloc(count + 1, sizeof *folds);
    if (!folds)
        return -ENOMEM;
    qsort(values, count, sizeof *values, fold_common);
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        struct shk_strbuf names = SHK_STRBUF_INIT;
        shk_nodefold(&names, values[i].nodes, values[i].count);
        folds[i].value = values[i].text;
        folds[i].count = values[i].count;
        folds[i].nodes = shk_strbuf_take(&names);
        values[i].text = NULL;
        rc = folds[i].nodes ? rc : -ENOMEM;
    }
    if (rc)
        shk_factfold_free(folds, count);
    else
        *folds_p = folds;
    return rc;
}

int shk_factfold(const struct shk_model *model, const char *key, struct shk_fold **folds_p,
                 size_t *count_p)
{
    struct fold_value values[FOLD_VALUES_MAX] = {0};
    size_t count = 0, nodes = model->report->nodes;
    int rc = 0;
    for (size_t i = 0; !rc && i < nodes; i++) {
        struct shk_fact fact;
        if (!shk_facts_get(model->report->facts[i], key, &fact) || fact.state != SHK_FACT_PRESENT)
            continue;
        char *text = fold_text(fact.value);
        rc = text ? fold_add(values, &count, text, model->nodes[i], nodes) : -ENOMEM;
    }
    if (!rc)
        rc = fold_finish(values, count, folds_p);
    if (!rc)
        *count_p = count;
    for (size_t i = 0; i < count; i++) {
        free(values[i].text);
        free(values[i].nodes);
    }
    return rc;
}

void shk_factfold_free(struct shk_fold *folds, size_t count)
{
    for (size_t i = 0; folds && i < count; i++) {
        free(folds[i].value);
        free(folds[i].nodes);
    }
    free(folds);
}

static const struct shk_column environment_columns[] = {
    {.title = "fact"},
    {.title = "value", .code = true, .flexible = true},
    {.title = "nodes"},
};

static const char *const environment_keys[] = {
    "host.os",      "host.kernel",    "host.arch",         "host.vendor",    "host.product",
    "host.virt",    "host.container", "kernel.iommu.mode", "fabric.version", "fabric.path",
    "nccl.version", "nccl.path",      "rccl.version",      "rccl.path",      "plugin.requested",
    "cuda.driver",  "rocm.version",   "neuron.runtime",    "job.launcher",   "job.nodes",
    "job.ranks",
};

static void environment_row(const struct shk_model *model, const char *key, struct shk_table *table,
                            bool *failed)
{
    struct shk_fold *folds = NULL;
    size_t count = 0;
    if (shk_factfold(model, key, &folds, &count)) {
        *failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        shk_table_row(table);
        shk_table_text(table, SHK_ROLE_PLAIN, key);
        shk_table_text(table, SHK_ROLE_PLAIN, folds[i].value);
        shk_table_text(table, SHK_ROLE_DIM,
                       folds[i].count == model->report->nodes ? "all" : folds[i].nodes);
    }
    shk_factfold_free(folds, count);
}

/* Collects the keys below "env." as members of an object. */
static int environment_key(const struct shk_fact *fact, void *arg)
{
    if (fact->state != SHK_FACT_PRESENT || !json_is_string(fact->value))
        return 0;
    return json_object_set_new(arg, fact->key, json_true());
}

struct shk_table *shk_environment_table(const struct shk_model *model)
{
    struct shk_table *table = shk_table_create(
        environment_columns, sizeof environment_columns / sizeof *environment_columns);
    json_t *names = json_object();
    bool failed = !table || !names;
    for (size_t i = 0; !failed && i < sizeof environment_keys / sizeof *environment_keys; i++)
        environment_row(model, environment_keys[i], table, &failed);
    for (size_t i = 0; !failed && i < model->report->nodes; i++)
        failed = shk_facts_each(model->report->facts[i], "env.", environment_key, names) != 0;
    const char *key;
    json_t *unused;
    json_object_foreach(names, key, unused)
    {
        if (!failed)
            environment_row(model, key, table, &failed);
    }
    json_decref(names);
    if (failed) {
        shk_table_destroy(table);
        return NULL;
    }
    return table;
}
