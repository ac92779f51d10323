/* Picture of the topology: a box per NUMA node with its GPUs above and its NICs below, a line from
 * each GPU to the NIC it takes, arcs or one bar for the links between GPUs. */
#include "reports/html/page.h"
#include "reports/model/topo.h"
#include "reports/text/escape.h"
#include "reports/text/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
    SVG_BOX = 96, /* of a GPU or NIC */
    SVG_BOX_HEIGHT = 54,
    SVG_GAP = 10,
    SVG_MARGIN = 12,
    SVG_LINKS = 74, /* room above the GPUs for what joins them */
    SVG_RAIL = 66,  /* between GPUs and NICs */
    SVG_CLIP = 18,  /* columns of a name that fit into a box */
    SVG_NODES = 8,  /* different topologies that are drawn */
};

struct svg {
    struct shk_strbuf *out;
    const struct topo *topo;
    double gpu_x[TOPO_GPUS], nic_x[TOPO_NICS]; /* left edges */
    double node_x[TOPO_NODES + 1], node_width[TOPO_NODES + 1];
    double width, gpu_y, nic_y, height;
};

/* Left edges of one row of boxes, centred in the width of their NUMA node. */
static void svg_row(const struct topo_end *ends, size_t count, long long numa, double left,
                    double width, double *x)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += ends[i].numa == numa;
    double at = left + (width - (double)n * (SVG_BOX + SVG_GAP) + SVG_GAP) / 2;
    for (size_t i = 0; i < count; i++) {
        if (ends[i].numa != numa)
            continue;
        x[i] = at;
        at += SVG_BOX + SVG_GAP;
    }
}

static double svg_place(struct svg *s, size_t node, double x)
{
    const struct topo *topo = s->topo;
    long long numa = topo->numa[node];
    size_t gpus = 0, nics = 0;
    for (size_t i = 0; i < topo->gpu_count; i++)
        gpus += topo->gpus[i].numa == numa;
    for (size_t i = 0; i < topo->nic_count; i++)
        nics += topo->nics[i].numa == numa;
    size_t most = gpus > nics ? gpus : nics;
    s->node_x[node] = x;
    s->node_width[node] = (double)most * (SVG_BOX + SVG_GAP) + SVG_GAP;
    svg_row(topo->gpus, topo->gpu_count, numa, x, s->node_width[node], s->gpu_x);
    svg_row(topo->nics, topo->nic_count, numa, x, s->node_width[node], s->nic_x);
    return x + s->node_width[node] + SVG_MARGIN;
}

static void svg_layout(struct svg *s)
{
    double x = SVG_MARGIN;
    for (size_t i = 0; i < s->topo->numa_count; i++)
        x = svg_place(s, i, x);
    s->width = x;
    s->gpu_y = SVG_LINKS;
    s->nic_y = s->gpu_y + SVG_BOX_HEIGHT + SVG_RAIL;
    s->height = s->nic_y + SVG_BOX_HEIGHT + 2 * SVG_MARGIN + 12;
}

static void svg_text(struct svg *s, double x, double y, const char *css, const char *text,
                     size_t clip)
{
    struct shk_strbuf cut = SHK_STRBUF_INIT;
    shk_text_clip(&cut, text, clip, 0);
    shk_strbuf_printf(s->out, "<text class=\"%s\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">",
                      css, x, y);
    shk_escape_html(s->out, shk_strbuf_text(&cut));
    shk_strbuf_puts(s->out, "</text>\n");
    s->out->failed |= cut.failed;
    shk_strbuf_free(&cut);
}

/* Name, model or speed, address; a broken one with what is broken for its model, and in red unless
 * it is a NIC that no GPU takes. */
static void svg_box(struct svg *s, double x, double y, const char *css, const struct topo_end *end)
{
    double middle = x + SVG_BOX / 2.0;
    bool red = *end->wrong && (strcmp(css, "gpu") == 0 || end->gpus);
    shk_strbuf_printf(s->out,
                      "<rect class=\"%s%s\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" "
                      "rx=\"5\"><title>",
                      css, red ? " broken" : "", x, y, SVG_BOX, SVG_BOX_HEIGHT);
    const char *const parts[] = {end->name, end->pci, end->model, end->wrong};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (i && *parts[i])
            shk_strbuf_putc(s->out, ' ');
        shk_escape_html(s->out, parts[i]);
    }
    shk_strbuf_puts(s->out, "</title></rect>\n");
    svg_text(s, middle, y + 17, "name", end->name, SVG_CLIP);
    svg_text(s, middle, y + 31, red ? "small wrong" : "small",
             *end->wrong ? end->wrong : end->model, SVG_CLIP);
    svg_text(s, middle, y + 45, "small", end->pci, SVG_CLIP);
}

static void svg_nodes(struct svg *s)
{
    for (size_t i = 0; i < s->topo->numa_count; i++) {
        char *label = s->topo->numa[i] >= 0 ? shk_strf("NUMA %lld", s->topo->numa[i])
                                            : strdup("NUMA not known");
        double top = s->gpu_y - SVG_GAP;
        shk_strbuf_printf(s->out,
                          "<rect class=\"numa\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" "
                          "height=\"%.0f\" rx=\"8\"/>\n",
                          s->node_x[i], top, s->node_width[i],
                          s->nic_y + SVG_BOX_HEIGHT + SVG_GAP - top + 14);
        svg_text(s, s->node_x[i] + s->node_width[i] / 2, s->nic_y + SVG_BOX_HEIGHT + SVG_GAP + 9,
                 "small", label ? label : "NUMA", 40);
        s->out->failed |= !label;
        free(label);
    }
}

static const char *svg_rail_class(const char *class)
{
    if (!class)
        return "far";
    return strcmp(class, "PIX") == 0 || strcmp(class, "PXB") == 0 ? "near"
           : strcmp(class, "SYS") == 0                            ? "far"
                                                                  : "middle";
}

/* A line from the GPU to its NIC, with the distance beside its upper end. */
static void svg_rails(struct svg *s)
{
    for (size_t i = 0; i < s->topo->gpu_count; i++) {
        const struct topo_end *gpu = &s->topo->gpus[i];
        if (gpu->nic < 0)
            continue;
        double x0 = s->gpu_x[i] + SVG_BOX / 2.0, x1 = s->nic_x[gpu->nic] + SVG_BOX / 2.0;
        double y0 = s->gpu_y + SVG_BOX_HEIGHT, y1 = s->nic_y;
        shk_strbuf_printf(s->out,
                          "<path class=\"rail %s\" d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f "
                          "%.0f\"/>\n",
                          *s->topo->nics[gpu->nic].wrong ? "broken" : svg_rail_class(gpu->class),
                          x0, y0, x0, y0 + SVG_RAIL * 0.6, x1, y1 - SVG_RAIL * 0.6, x1, y1);
        svg_text(s, x0 + 18, y0 + 15, "small", gpu->class ? gpu->class : "?", 6);
    }
}

static void svg_bar(struct svg *s)
{
    double first = s->width, last = 0;
    for (size_t i = 0; i < s->topo->gpu_count; i++) {
        double x = s->gpu_x[i] + SVG_BOX / 2.0;
        first = x < first ? x : first;
        last = x > last ? x : last;
        shk_strbuf_printf(s->out, "<path class=\"link%s\" d=\"M%.0f %.0fV%d\"/>\n",
                          strstr(s->topo->gpus[i].wrong, "NVLink") ? " broken" : "", x, s->gpu_y,
                          34);
    }
    shk_strbuf_printf(s->out, "<path class=\"bar\" d=\"M%.0f 34H%.0f\"/>\n", first, last);
    char *label = shk_strf("%s between all GPUs", s->topo->common);
    svg_text(s, (first + last) / 2, 24, "name", label ? label : "", 60);
    s->out->failed |= !label;
    free(label);
}

static void svg_arc(struct svg *s, size_t a, size_t b)
{
    double x0 = s->gpu_x[a] + SVG_BOX / 2.0, x1 = s->gpu_x[b] + SVG_BOX / 2.0;
    double rise = (x1 > x0 ? x1 - x0 : x0 - x1) / 6 + 14;
    if (rise > SVG_LINKS - 14)
        rise = SVG_LINKS - 14;
    shk_strbuf_printf(s->out,
                      "<path class=\"link\" d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f\"><title>",
                      x0, s->gpu_y, x0, s->gpu_y - rise, x1, s->gpu_y - rise, x1, s->gpu_y);
    shk_escape_html(s->out, s->topo->gpus[a].name);
    shk_strbuf_puts(s->out, " - ");
    shk_escape_html(s->out, s->topo->gpus[b].name);
    shk_strbuf_puts(s->out, ": ");
    shk_escape_html(s->out, s->topo->links[a][b]);
    shk_strbuf_puts(s->out, "</title></path>\n");
}

static void svg_links(struct svg *s)
{
    const struct topo *topo = s->topo;
    if (topo->common && shk_topo_is_link(topo->common)) {
        svg_bar(s);
        return;
    }
    for (size_t a = 0; a < topo->gpu_count; a++)
        for (size_t b = a + 1; b < topo->gpu_count; b++)
            if (shk_topo_is_link(topo->links[a][b]))
                svg_arc(s, a, b);
    if (topo->common) {
        char *label = shk_strf("GPUs over PCIe: %s", topo->common);
        svg_text(s, s->width / 2, 24, "name", label ? label : "", 60);
        s->out->failed |= !label;
        free(label);
    }
}

struct svg_page {
    struct shk_strbuf *out;
    bool open; /* the section has begun */
};

static void svg_one(const struct topo *topo, const char *names, size_t count, void *arg)
{
    struct svg_page *page = arg;
    struct svg s = {.out = page->out, .topo = topo};
    svg_layout(&s);
    if (!page->open)
        shk_strbuf_puts(page->out, "<section><h2>Topology</h2>\n");
    page->open = true;
    shk_strbuf_puts(page->out, "<p>");
    if (count > 1)
        shk_strbuf_printf(page->out, "%zu nodes: ", count);
    shk_escape_html(page->out, names);
    shk_strbuf_printf(page->out,
                      "</p>\n" SHK_PAGE_SCROLL(
                          "topology") "<svg class=\"topology\" role=\"img\" "
                                      "aria-label=\"Topology of %zu GPUs "
                                      "and %zu NICs\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\">\n",
                      topo->gpu_count, topo->nic_count, s.width, s.height, s.width);
    svg_nodes(&s);
    svg_rails(&s);
    svg_links(&s);
    for (size_t i = 0; i < topo->gpu_count; i++)
        svg_box(&s, s.gpu_x[i], s.gpu_y, "gpu", &topo->gpus[i]);
    for (size_t i = 0; i < topo->nic_count; i++)
        svg_box(&s, s.nic_x[i], s.nic_y, "nic", &topo->nics[i]);
    shk_strbuf_puts(page->out, "</svg></div>\n");
}

void shk_topo_html(struct shk_strbuf *out, const struct shk_model *model)
{
    struct svg_page page = {.out = out};
    shk_topo_each(model, SVG_NODES, svg_one, &page);
    if (page.open)
        shk_strbuf_puts(out, "</section>\n");
}
