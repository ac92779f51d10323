#include "reports/model/nodecount.h"
#include "core/text/nodefold.h"

#include <errno.h>
#include <stdlib.h>

/* Names of nodes, each with its worst verdict. */
struct names {
    json_t *of; /* name -> rank in names_order */
    int rank;
    bool failed;
};

static const enum shk_verdict names_order[] = {SHK_PASS, SHK_UNKNOWN, SHK_WARN, SHK_FAIL};

static void names_add(const char *name, void *arg)
{
    struct names *names = arg;
    json_t *had = json_object_get(names->of, name);
    if (!had || json_integer_value(had) < names->rank)
        names->failed |= json_object_set_new_nocheck(names->of, name, json_integer(names->rank));
}

/* A name that cannot be taken apart stands for itself. */
static void names_list(struct names *names, const char *list, int rank)
{
    size_t before = json_object_size(names->of);
    names->rank = rank;
    (void)shk_nodefold_each(list, SHK_NODEFOLD_MAX, names_add, names);
    if (json_object_size(names->of) == before && !json_object_get(names->of, list) &&
        (!*list || list[0] == '['))
        names_add(list, names);
}

static int names_rank(const struct shk_finding *row)
{
    switch (row->verdict) {
    case SHK_FAIL: return 3;
    case SHK_WARN: return 2;
    case SHK_UNKNOWN: return row->required ? 1 : 0;
    default: return 0;
    }
}

/* Folded names of that rank; NULL when there are none. */
static char *names_fold(struct names *names, int rank, size_t *count_p)
{
    const char **list = calloc(json_object_size(names->of) + 1, sizeof *list), *name;
    struct shk_strbuf text = SHK_STRBUF_INIT;
    json_t *value;
    *count_p = 0;
    names->failed |= !list;
    json_object_foreach(list ? names->of : NULL, name, value)
    {
        if (json_integer_value(value) == rank)
            list[(*count_p)++] = name;
    }
    if (*count_p)
        shk_nodefold(&text, list, *count_p);
    names->failed |= text.failed;
    free(list);
    return *count_p ? shk_strbuf_take(&text) : NULL;
}

/* A row without names is about the only node, or about the job. */
static void count_rows(struct shk_node_counts *counts, const struct shk_model *model,
                       struct names *names)
{
    for (size_t i = 0; i < shk_findings_count(model->report->findings); i++) {
        const struct shk_finding *row = shk_findings_at(model->report->findings, i);
        int rank = names_rank(row);
        for (char **node = rank ? row->nodes : NULL; node && *node; node++)
            names_list(names, *node, rank);
        if (row->nodes || !rank)
            continue;
        if (model->report->nodes == 1)
            names_list(names, model->nodes[0], rank);
        else
            counts->of_job |= row->verdict == SHK_FAIL;
    }
}

int shk_node_counts(struct shk_node_counts *counts, const struct shk_model *model)
{
    struct names names = {.of = json_object()};
    *counts = (struct shk_node_counts){0};
    if (!names.of)
        return -ENOMEM;
    for (size_t i = 0; i < model->report->nodes; i++)
        names_list(&names, model->nodes[i], 0);
    counts->total = json_object_size(names.of);
    if (model->report->findings)
        count_rows(counts, model, &names);
    for (int rank = 0; rank < 4; rank++) {
        size_t count = 0;
        char *list = names_fold(&names, rank, &count);
        counts->by[names_order[rank]] = count;
        if (rank == 3)
            counts->failing = list;
        else if (rank == 2)
            counts->warning = list;
        else
            free(list);
    }
    json_decref(names.of);
    if (!names.failed)
        return 0;
    shk_node_counts_free(counts);
    return -ENOMEM;
}

void shk_node_counts_free(struct shk_node_counts *counts)
{
    free(counts->failing);
    free(counts->warning);
    *counts = (struct shk_node_counts){0};
}

bool shk_cause_is_open(const struct shk_diagnosis_row *row)
{
    return row->verdict == SHK_FAIL || !row->below;
}

size_t shk_cause_below(const struct shk_model *model, size_t number, struct shk_strbuf *out)
{
    const struct shk_diagnoses *list = model->report->diagnoses;
    size_t found = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->rows[i].below == number && !shk_cause_is_open(&list->rows[i]))
            shk_strbuf_printf(out, "%s%s", found++ ? "; " : "", list->rows[i].title);
    return found;
}

int shk_cause_nodes(const struct shk_model *model, size_t number, char **names_p, size_t *count_p)
{
    const struct shk_report *report = model->report;
    struct names names = {.of = json_object()};
    *names_p = NULL;
    *count_p = 0;
    if (!names.of)
        return -ENOMEM;
    for (size_t i = 0; report->findings && i < shk_findings_count(report->findings); i++) {
        const struct shk_finding *row = shk_findings_at(report->findings, i);
        bool its = row->verdict == report->diagnoses->rows[number - 1].verdict &&
                   shk_model_cause(report, row) == number;
        for (char **node = its ? row->nodes : NULL; node && *node; node++)
            names_list(&names, *node, 0);
    }
    *names_p = names_fold(&names, 0, count_p);
    json_decref(names.of);
    return names.failed ? -ENOMEM : 0;
}

int shk_names_folded(const char *const *lists, size_t count, char **names_p, size_t *count_p)
{
    struct names names = {.of = json_object()};
    *names_p = NULL;
    *count_p = 0;
    if (!names.of)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        names_list(&names, lists[i], 0);
    *names_p = names_fold(&names, 0, count_p);
    json_decref(names.of);
    return names.failed ? -ENOMEM : 0;
}

int shk_row_nodes_folded(const struct shk_finding *row, char **names_p, size_t *count_p)
{
    size_t count = 0;
    while (row->nodes && row->nodes[count])
        count++;
    return shk_names_folded((const char *const *)row->nodes, count, names_p, count_p);
}

char *shk_node_counts_say(const struct shk_node_counts *c)
{
    size_t fail = c->by[SHK_FAIL], warn = c->by[SHK_WARN], unknown = c->by[SHK_UNKNOWN];
    struct shk_strbuf text = SHK_STRBUF_INIT;
    if (fail)
        shk_strbuf_printf(&text, "%zu of %zu nodes fail%s", fail, c->total, fail == 1 ? "s" : "");
    else if (c->of_job)
        shk_strbuf_printf(&text, "the job on %zu nodes fails, no node by itself", c->total);
    if (warn && text.len)
        shk_strbuf_printf(&text, ", %zu more warn%s", warn, warn == 1 ? "s" : "");
    else if (warn)
        shk_strbuf_printf(&text, "%zu of %zu nodes warn%s", warn, c->total, warn == 1 ? "s" : "");
    if (unknown)
        shk_strbuf_printf(&text, text.len ? ", %zu unknown" : "%zu of %zu nodes unknown", unknown,
                          c->total);
    if (!text.len)
        shk_strbuf_printf(&text, "%zu nodes", c->total);
    return shk_strbuf_take(&text);
}
