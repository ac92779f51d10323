/* Topology in the terminal report: a tree by NUMA node, and the matrix that nvidia-smi topo users
 * know. */
#include "reports/model/topo.h"
#include "reports/term/term_private.h"
#include "reports/text/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
    TERM_TOPO_COLUMNS = 32, /* ends side by side at most */
    TERM_TOPO_NAME = 12,    /* columns of a name in the matrix */
    TERM_TOPO_NODES = 4,    /* different topologies that are shown */
};

static void topo_line(const struct term *t, const char *branch, const struct topo_end *end,
                      const char *rest)
{
    char *lead = shk_strf("  %s", branch), *text = shk_strf("%s  %s%s", end->name, end->pci, rest);
    if (lead && text)
        shk_term_text(t, SHK_ROLE_PLAIN, 2, lead, text);
    t->out->failed |= !lead || !text;
    free(lead);
    free(text);
}

static void topo_gpu_line(const struct term *t, const struct topo *topo, const char *branch,
                          size_t gpu)
{
    const struct topo_end *end = &topo->gpus[gpu];
    char *rest = end->nic >= 0 ? shk_strf("  %s to %s", end->class ? end->class : "unknown",
                                          topo->nics[end->nic].name)
                               : strdup("  no NIC");
    t->out->failed |= !rest;
    topo_line(t, branch, end, rest ? rest : "");
    free(rest);
}

static void topo_numa_node(const struct term *t, const struct topo *topo, long long numa)
{
    const char *tee = t->style.unicode ? "\xE2\x94\x9C\xE2\x94\x80 " : "|- ";
    const char *end = t->style.unicode ? "\xE2\x94\x94\xE2\x94\x80 " : "`- ";
    size_t left = 0;
    char *title = numa >= 0 ? shk_strf("NUMA %lld", numa) : strdup("no single NUMA node");
    shk_term_text(t, SHK_ROLE_DIM, 2, "", title ? title : "NUMA");
    free(title);
    for (size_t i = 0; i < topo->gpu_count; i++)
        left += topo->gpus[i].numa == numa;
    for (size_t i = 0; i < topo->nic_count; i++)
        left += topo->nics[i].numa == numa;
    for (size_t i = 0; i < topo->gpu_count; i++)
        if (topo->gpus[i].numa == numa)
            topo_gpu_line(t, topo, --left ? tee : end, i);
    for (size_t i = 0; i < topo->nic_count; i++)
        if (topo->nics[i].numa == numa)
            topo_line(t, --left ? tee : end, &topo->nics[i], "");
}

/* Part of the matrix: all GPUs against the ends first … last - 1, GPUs before NICs. */
struct topo_part {
    size_t first, last;
    struct shk_column *columns; /* last - first + 1, the first for the names of the rows */
    char **titles;
};

/* Name of an end as a heading: printable, without the second name in parentheses. */
static char *topo_heading(const struct topo *topo, size_t i)
{
    const char *name =
        i < topo->gpu_count ? topo->gpus[i].name : topo->nics[i - topo->gpu_count].name;
    struct shk_strbuf text = SHK_STRBUF_INIT;
    shk_text_clip(&text, name, TERM_TOPO_NAME, SHK_CLEAN_ASCII);
    char *title = shk_strbuf_take(&text), *rest = title ? strstr(title, " (") : NULL;
    if (rest)
        *rest = '\0';
    return title;
}

static bool topo_headings(struct topo_part *part, const struct topo *topo)
{
    size_t count = part->last - part->first;
    part->columns = calloc(count + 1, sizeof *part->columns);
    part->titles = calloc(count + 1, sizeof *part->titles);
    if (!part->columns || !part->titles)
        return false;
    part->columns[0].title = "";
    for (size_t i = 0; i < count; i++) {
        part->titles[i] = topo_heading(topo, part->first + i);
        if (!part->titles[i])
            return false;
        part->columns[i + 1].title = part->titles[i];
    }
    return true;
}

static void topo_cell(struct shk_table *table, const struct topo *topo, size_t gpu, size_t i)
{
    const char *class = i == gpu              ? "X"
                        : i < topo->gpu_count ? topo->links[gpu][i]
                                              : shk_topo_distance(topo, gpu, i - topo->gpu_count);
    shk_table_text(table, shk_topo_is_link(class) ? SHK_ROLE_PASS : SHK_ROLE_PLAIN, class);
}

static void topo_part(const struct term *t, const struct topo *topo, size_t first, size_t last)
{
    struct topo_part part = {.first = first, .last = last};
    struct shk_table *table = NULL;
    struct shk_table_view view = {
        .style = t->style, .width = t->width, .indent = 2, .clip = TERM_TOPO_NAME, .header = true};
    if (topo_headings(&part, topo))
        table = shk_table_create(part.columns, last - first + 1);
    for (size_t g = 0; table && g < topo->gpu_count; g++) {
        shk_table_row(table);
        shk_table_text(table, SHK_ROLE_PLAIN, topo->gpus[g].name);
        for (size_t i = first; i < last; i++)
            topo_cell(table, topo, g, i);
    }
    if (table) {
        shk_strbuf_putc(t->out, '\n');
        shk_table_term(table, &view, t->out);
    }
    t->out->failed |= !table;
    shk_table_destroy(table);
    for (size_t i = 0; part.titles && i < last - first; i++)
        free(part.titles[i]);
    free(part.titles);
    free(part.columns);
}

/* Terminal columns of one end, roughly: four letters of a class and two blanks at least. */
static size_t topo_width(const struct topo *topo, size_t i)
{
    char *title = topo_heading(topo, i);
    size_t width = title ? strlen(title) : 0;
    free(title);
    return (width < 4 ? 4 : width) + 2;
}

/* As many ends side by side as fit, GPUs and NICs in parts of their own when not all do. */
static void topo_matrix(const struct term *t, const struct topo *topo)
{
    size_t ends = topo->gpu_count + topo->nic_count, first = 0, all = 2 + 6;
    for (size_t i = 0; i < ends; i++)
        all += topo_width(topo, i);
    while (first < ends) {
        size_t last = first, width = 2 + 6;
        size_t stop = all > t->width && first < topo->gpu_count ? topo->gpu_count : ends;
        while (last < stop && last - first < TERM_TOPO_COLUMNS &&
               (last == first || width + topo_width(topo, last) <= t->width))
            width += topo_width(topo, last++);
        topo_part(t, topo, first, last);
        first = last;
    }
}

static void topo_one(const struct topo *topo, const char *names, size_t count, void *arg)
{
    const struct term *t = arg;
    char *rest = count > 1 ? shk_strf("%zu nodes: %s", count, names) : strdup(names);
    shk_term_title(t, "Topology", rest);
    free(rest);
    for (size_t i = 0; i < topo->numa_count; i++)
        topo_numa_node(t, topo, topo->numa[i]);
    if (topo->gpu_count > 1 || topo->nic_count)
        topo_matrix(t, topo);
}

void shk_term_topology(const struct term *t)
{
    shk_topo_each(t->model, TERM_TOPO_NODES, topo_one, (void *)t);
}
