/* Results of other tools' health checks: dcgmi diag -j, cxi_healthcheck, ibdiagnet, rvs. */
#include "core/text/strbuf.h"
#include "probes/ticket/ticket_private.h"
#include "probes/tools/results.h"

#include <stdlib.h>
#include <string.h>

enum { RESULTS_PEEK = 40 };

static bool results_starts(char *const *lines, size_t left)
{
    if (ticket_after(lines[0], "-I- Stage") || ticket_after(lines[0], "[RESULT] [") ||
        strstr(lines[0], "-- Health Check Summary --"))
        return true;
    for (size_t i = 0; lines[0][0] == '{' && i < left && i < RESULTS_PEEK; i++)
        if (strstr(lines[i], "\"DCGM Diagnostic\"") || strstr(lines[i], "\"DCGM GPU Diagnostic\""))
            return true;
    return false;
}

static void results_read(struct ticket_out *out, const struct ticket_block *block)
{
    static const char *const members[] = {"tool", "test", "where", "result", "text"};
    struct shk_strbuf text = SHK_STRBUF_INIT;
    json_t *list = json_array(), *entry;
    size_t i, k;
    for (i = 0; i < block->count; i++)
        shk_strbuf_printf(&text, "%s\n", block->lines[i]);
    if (!text.failed && text.len)
        (void)shk_results_read(list, text.data, text.len);
    json_array_foreach(list, i, entry)
    {
        json_t *to =
            ticket_device(out, "tools.results", "id", json_incref(json_object_get(entry, "id")));
        for (k = 0; to && k < sizeof members / sizeof *members; k++)
            ticket_member(out, to, members[k], json_incref(json_object_get(entry, members[k])));
    }
    json_decref(list);
    shk_strbuf_free(&text);
}

const struct ticket_reader ticket_reader_results = {
    .name = "results of other tools",
    .commands = "dcgmi diag|cxi_healthcheck|ibdiagnet|rvs",
    .starts = results_starts,
    .read = results_read,
};
