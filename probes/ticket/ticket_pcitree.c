/* lspci -tv: the tree of buses, with names of devices and without their classes. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* By the words of pci.ids. `not`: other functions of the same maker. */
static const struct {
    const char *kind, *vendor, *name, *not ;
} kinds[] = {
    {"nvswitch", "NVIDIA", "NVSwitch", NULL},
    {"gpu-nvidia", "NVIDIA", "[", "Audio"},
    {"gpu-amd", "Advanced Micro Devices", "Instinct", NULL},
    {"efa", "Amazon.com", "Elastic Fabric Adapter", NULL},
    {"neuron", "Amazon.com", "Neuron", NULL},
    {"cxi", "Cray", "Cassini", NULL},
    {"mlx5", "Mellanox", "ConnectX-", "Virtual Function"},
    {"mlx5", "Mellanox", "BlueField", "Virtual Function"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool tree_starts(char *const *lines, size_t left)
{
    const char *p = ticket_skip(lines[0]);
    (void)left;
    return (ticket_after(p, "-[0000:00]-") || ticket_after(p, "-+-[") ||
            ticket_after(p, "-[00]-")) &&
           strlen(p) > 12;
}

/* Behind the last "-1f.0  " of a line: "Intel Corporation Device 0d57"; NULL: a bus without
 * devices.
 */
static const char *device_of(const char *line)
{
    const char *found = NULL;
    for (const char *p = strstr(line, "  "); p; p = strstr(p + 2, "  ")) {
        bool number = p - line >= 5 && p[-2] == '.' && isxdigit((unsigned char)p[-1]) &&
                      isxdigit((unsigned char)p[-3]) && isxdigit((unsigned char)p[-4]) &&
                      p[-5] == '-';
        if (number && isalpha((unsigned char)p[2]))
            found = p + 2;
    }
    return found;
}

static bool is_branch(const char *line)
{
    line = ticket_skip(line);
    return *line && strchr("-+\\|", *line);
}

static size_t kind_of(const char *device)
{
    for (size_t k = 0; k < KINDS; k++)
        if (strstr(device, kinds[k].vendor) && strstr(device, kinds[k].name) &&
            !(kinds[k].not &&strstr(device, kinds[k].not )) && !strstr(device, "ConnectX-2") &&
            !strstr(device, "ConnectX-3"))
            return k;
    return KINDS;
}

/* The last line closes its branch, and of several roots the last one was there. */
static bool tree_is_whole(const struct ticket_block *block, size_t used)
{
    if (block->part || !used || !(block->ended || used < block->count))
        return false;
    bool roots = ticket_after(ticket_skip(block->lines[0]), "-+-") != NULL, closed = !roots;
    for (size_t i = 1; i < used; i++)
        closed |= ticket_after(ticket_skip(block->lines[i]), "\\-[") != NULL;
    const char *last = ticket_skip(block->lines[used - 1]);
    return closed && (used == 1 || *last == '\\') && !strstr(last, "-+-");
}

static void tree_read(struct ticket_out *out, const struct ticket_block *block)
{
    long long count[KINDS] = {0};
    size_t used = 0;
    for (; used < block->count && is_branch(block->lines[used]); used++) {
        const char *device = device_of(block->lines[used]);
        size_t kind = device ? kind_of(device) : KINDS;
        if (kind < KINDS)
            count[kind]++;
    }
    if (!tree_is_whole(block, used)) {
        out->note = "the tree is cut, left out";
        return;
    }
    for (size_t k = 0; k < KINDS; k++) {
        char key[64];
        bool again = k && strcmp(kinds[k].kind, kinds[k - 1].kind) == 0;
        long long sum = count[k] + (again ? count[k - 1] : 0);
        bool last = k + 1 == KINDS || strcmp(kinds[k].kind, kinds[k + 1].kind) != 0;
        snprintf(key, sizeof key, "pci.count.%s", kinds[k].kind);
        if (sum && last)
            ticket_put_int(out, key, sum, NULL);
    }
    out->wrote += !out->wrote;
}

const struct ticket_reader ticket_reader_pcitree = {
    .name = "lspci -t",
    .commands = "lspci -tv|lspci -vt|lspci -tvv|lspci -vvt|lspci -t -v|lspci -PPtv|lspci -tvnn",
    .starts = tree_starts,
    .read = tree_read};
