/* nvidia-smi topo -m: distances between GPUs and network devices. */
#include "core/text/strbuf.h"
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 128, WORD = 40 };

struct topo {
    char names[COLUMNS_MAX][WORD];
    size_t count;
    json_t *peers, *nics;
    size_t rows;
    bool bad, unnamed; /* unnamed: the legend with the names of network devices is missing */
};

/* Names of the columns up to "CPU Affinity". */
static bool topo_head(struct topo *topo, const char *line)
{
    const char *p = ticket_skip(line);
    topo->count = 0;
    if (!ticket_after(p, "GPU0") || !strpbrk(p, " \t"))
        return false;
    while (*p && !ticket_after(p, "CPU") && !ticket_after(p, "NUMA") && topo->count < COLUMNS_MAX)
        p = ticket_skip(p + ticket_word(topo->names[topo->count++], WORD, p, ""));
    return ticket_after(p, "CPU Affinity") && topo->count > 0;
}

static bool topo_starts(char *const *lines, size_t left)
{
    struct topo topo;
    (void)left;
    return strstr(lines[0], "CPU Affinity") && topo_head(&topo, lines[0]);
}

static bool is_class(const char *word)
{
    static const char *const all[] = {"X", "SYS", "NODE", "PHB", "PXB", "PIX"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(word, all[i]) == 0)
            return true;
    return word[0] == 'N' && word[1] == 'V' && isdigit((unsigned char)word[2]);
}

/* "NIC3: mlx5_3" of the legend below; a driver without one writes the names themselves. NULL: the
 * legend is missing. */
static const char *legend(const struct ticket_block *block, const char *nic, char out[WORD])
{
    const char *number = ticket_after(nic, "NIC");
    for (size_t i = 0; i < block->count; i++) {
        const char *p = ticket_value(block->lines[i], nic);
        if (p && ticket_word(out, WORD, p, ""))
            return out;
    }
    return number && isdigit((unsigned char)*number) ? NULL : nic;
}

static void topo_pair(struct topo *topo, const struct ticket_block *block, const char *row,
                      const char *column, const char *class)
{
    char name[WORD];
    const char *nic;
    if (ticket_after(column, "GPU")) {
        if (strtol(row + 3, NULL, 10) < strtol(column + 3, NULL, 10))
            json_array_append_new(topo->peers, json_pack("{s:s,s:s,s:s}", "gpu", row, "peer",
                                                         column, "class", class));
    } else if ((nic = legend(block, column, name)) != NULL) {
        json_array_append_new(topo->nics,
                              json_pack("{s:s,s:s,s:s}", "gpu", row, "nic", nic, "class", class));
    } else {
        topo->unnamed = true;
    }
}

/* False: not a row of the matrix. */
static bool topo_row(struct topo *topo, const struct ticket_block *block, const char *line)
{
    char row[WORD], word[WORD];
    const char *p = ticket_skip(line);
    size_t len = ticket_word(row, sizeof row, p, ":");
    if (topo->rows >= topo->count || strcmp(row, topo->names[topo->rows]) != 0 || p[len] == ':')
        return false;
    bool gpu = ticket_after(row, "GPU") != NULL;
    p += len;
    for (size_t i = 0; i < topo->count; i++) {
        p = ticket_skip(p);
        len = ticket_word(word, sizeof word, p, "");
        if (!len || !is_class(word) || (i == topo->rows) != (strcmp(word, "X") == 0)) {
            topo->bad = true;
            return false;
        }
        if (gpu && i != topo->rows)
            topo_pair(topo, block, row, topo->names[i], word);
        p += len;
    }
    topo->rows++;
    return true;
}

static void topo_put(struct ticket_out *out, struct topo *topo)
{
    if (json_array_size(topo->peers))
        ticket_put(out, "topology.peers", json_incref(topo->peers), NULL);
    if (topo->unnamed)
        out->note =
            "the legend with the names of the NICs is missing, their distances are left out";
    else if (json_array_size(topo->nics))
        ticket_put(out, "topology.gpu_nic", json_incref(topo->nics), NULL);
}

static void topo_read(struct ticket_out *out, const struct ticket_block *block)
{
    struct topo *topo = calloc(1, sizeof *topo);
    size_t i = 0;
    if (!topo) {
        out->rc = -ENOMEM;
        return;
    }
    topo->peers = json_array();
    topo->nics = json_array();
    while (i < block->count && !topo_head(topo, block->lines[i]))
        i++;
    for (i++; i < block->count && topo->rows < topo->count && !topo->bad; i++)
        if (!topo_row(topo, block, block->lines[i]) && *ticket_skip(block->lines[i]))
            break;
    if (topo->rows == topo->count && topo->count)
        topo_put(out, topo);
    else if (topo->count)
        out->note = "the matrix is cut, left out";
    json_decref(topo->peers);
    json_decref(topo->nics);
    free(topo);
}

const struct ticket_reader ticket_reader_smi_topo = {.name = "nvidia-smi topo",
                                                     .commands = "nvidia-smi topo",
                                                     .starts = topo_starts,
                                                     .read = topo_read};
