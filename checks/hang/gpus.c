/* What the GPUs of the ranks did, as NVML said before the first look and after the last. */
#include "checks/hang/hang_private.h"

#include <stdlib.h>
#include <string.h>

enum { GPUS_LISTED = 8 };

enum gpus_state { GPUS_BUSY, GPUS_IDLE, GPUS_STATES };

/* Of the GPU at that address at one look: percent; -1: not known. */
static long gpus_percent(const json_t *gpus, const char *pci)
{
    size_t i;
    json_t *gpu;
    json_array_foreach(json_object_get(gpus, "list"), i, gpu)
    {
        const char *other = hang_text(gpu, "pci");
        if (pci && other && strcmp(pci, other) == 0)
            return hang_number(gpu, "busy");
    }
    return -1;
}

/* The same of all GPUs of the place at both looks; GPUS_STATES: not, or not known. */
static enum gpus_state gpus_of(const json_t *node, const struct hang_place *place)
{
    size_t i, busy = 0, idle = 0, all = 0;
    json_t *gpu;
    const json_t *first = json_object_get(node, "gpus_first"),
                 *last = json_object_get(node, "gpus");
    if (hang_text(last, "unread"))
        return GPUS_STATES;
    json_array_foreach(json_object_get(last, "list"), i, gpu)
    {
        long before = gpus_percent(first, hang_text(gpu, "pci")), now = hang_number(gpu, "busy");
        if (place->process < 0 || !hang_lists(gpu, "processes", place->process))
            continue;
        all++;
        busy += before == 100 && now == 100;
        idle += before == 0 && now == 0;
    }
    return all && busy == all ? GPUS_BUSY : all && idle == all ? GPUS_IDLE : GPUS_STATES;
}

static void gpus_say(const struct hang_place *const *list, size_t count, enum gpus_state state,
                     json_t *said)
{
    static const char *const texts[GPUS_STATES] = {
        "busy at 100 % at the first and at the last look: a kernel runs that does not end; one of "
        "a "
        "collective is such while it waits for another rank",
        "idle at the first and at the last look: no kernel runs there, so what others may wait for "
        "was not launched, or is over"};
    struct shk_strbuf text = SHK_STRBUF_INIT;
    shk_strbuf_puts(&text, "GPU of ");
    for (size_t i = 0; i < count && i < GPUS_LISTED; i++) {
        shk_strbuf_puts(&text, i ? ", " : "");
        hang_say_rank(&text, list[i]);
    }
    if (count > GPUS_LISTED)
        shk_strbuf_printf(&text, " and %zu more", count - GPUS_LISTED);
    shk_strbuf_printf(&text, ": %s", texts[state]);
    json_array_append_new(said, json_string(shk_strbuf_text(&text)));
    shk_strbuf_free(&text);
}

static void gpus_unread(struct hang_case *c, const json_t *node)
{
    const json_t *last = json_object_get(node, "gpus");
    const char *host = hang_text(node, "host"),
               *first = hang_text(json_object_get(node, "gpus_first"), "unread"),
               *told = hang_text(last, "unread");
    size_t i;
    json_t *gpu;
    told = told ? told : first;
    if (told)
        json_array_append_new(c->unknown, json_sprintf("GPUs of %s: %s", host ? host : "?", told));
    json_array_foreach(json_object_get(last, "list"), i, gpu)
    {
        const char *why = hang_text(gpu, "unread"), *pci = hang_text(gpu, "pci");
        if (why)
            json_array_append_new(c->unknown, json_sprintf("GPU %s of %s: %s", pci ? pci : "?",
                                                           host ? host : "?", why));
    }
}

void hang_gpus_say(struct hang_case *c, const json_t *nodes, json_t *said)
{
    size_t n;
    json_t *node;
    const struct hang_place **list = calloc(c->count + 1, sizeof *list);
    json_array_foreach(nodes, n, node) gpus_unread(c, node);
    for (int state = 0; list && state < GPUS_STATES; state++) {
        size_t count = 0;
        for (size_t i = 0; i < c->count; i++)
            json_array_foreach(nodes, n, node)
            {
                const char *host = hang_text(node, "host");
                if (host && c->places[i].host && strcmp(host, c->places[i].host) == 0 &&
                    gpus_of(node, &c->places[i]) == (enum gpus_state)state) {
                    list[count++] = &c->places[i];
                    break;
                }
            }
        if (count)
            gpus_say(list, count, (enum gpus_state)state, said);
    }
    free(list);
}
