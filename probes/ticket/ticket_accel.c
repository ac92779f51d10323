/* rocm-smi, amd-smi, neuron-ls, cxi_stat, ethtool. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool rocm_starts(char *const *lines, size_t left)
{
    (void)left;
    return strstr(lines[0], "ROCm System Management Interface") != NULL;
}

/* Rows of the table, each with the number of a GPU. */
static void rocm_read(struct ticket_out *out, const struct ticket_block *block)
{
    long long count = 0;
    bool head = false, end = false;
    for (size_t i = 0; i < block->count && !end; i++) {
        const char *line = block->lines[i];
        long long index;
        end = strstr(line, "End of ROCm SMI Log") != NULL;
        head |=
            (ticket_after(line, "Device ") || ticket_after(line, "GPU ")) && strstr(line, "Temp");
        if (head && ticket_long(line, &index) && index == count)
            count++;
    }
    if (count && end && !block->part)
        ticket_put_int(out, "pci.count.gpu-amd", count, NULL);
    else if (count)
        out->note = "the table is cut, left out";
}

const struct ticket_reader ticket_reader_rocm_smi = {
    .name = "rocm-smi", .commands = "rocm-smi", .starts = rocm_starts, .read = rocm_read};

static bool amd_starts(char *const *lines, size_t left)
{
    return strcmp(lines[0], "GPU: 0") == 0 && left > 1 &&
           ticket_after(ticket_skip(lines[1]), "BDF: ");
}

/* `amd-smi list`; `amd-smi version` in one line. */
static void amd_read(struct ticket_out *out, const struct ticket_block *block)
{
    long long count = 0, index;
    char word[64];
    for (size_t i = 0; i < block->count; i++) {
        const char *line = block->lines[i], *p = ticket_after(line, "GPU: ");
        if (p && ticket_long(p, &index) && index == count)
            count++;
        p = strstr(line, "ROCm version: ");
        if (p && ticket_word(word, sizeof word, p + 14, "|") && isdigit((unsigned char)*word))
            ticket_put_text(out, "rocm.version", word);
    }
    if (count && block->ended && !block->part &&
        (!block->command || !strstr(block->command, " -g")))
        ticket_put_int(out, "pci.count.gpu-amd", count, NULL);
    else if (count)
        out->note = "it is not told where the list ends, left out";
}

const struct ticket_reader ticket_reader_amd_smi = {
    .name = "amd-smi", .commands = "amd-smi", .starts = amd_starts, .read = amd_read};

static bool neuron_starts(char *const *lines, size_t left)
{
    return left > 1 && ticket_after(lines[0], "| NEURON | NEURON |") != NULL;
}

/* "| 0      | 2      | 32 GB  | 12, 3, 4, 1 | 10:1c.0 | NA |" */
static json_t *neuron_row(const char *line, long long index)
{
    char *end;
    long long number = line[0] == '|' ? strtoll(line + 1, &end, 10) : -1;
    if (number != index || end == line + 1)
        return NULL;
    const char *bar = strchr(end, '|');
    long long cores = bar ? strtoll(bar + 1, NULL, 10) : 0;
    const char *memory = bar ? strchr(bar + 1, '|') : NULL;
    if (cores <= 0 || cores > 64 || !memory || !strstr(memory, "GB"))
        return NULL;
    char name[32];
    snprintf(name, sizeof name, "neuron%lld", number);
    return json_pack("{s:s,s:I}", "name", name, "core_count", (json_int_t)cores);
}

static void neuron_read(struct ticket_out *out, const struct ticket_block *block)
{
    json_t *list = json_array(), *row;
    bool whole = false;
    for (size_t i = 0; i < block->count && !whole; i++) {
        row = neuron_row(block->lines[i], (long long)json_array_size(list));
        if (row)
            json_array_append_new(list, row);
        whole = json_array_size(list) && block->lines[i][0] == '+';
    }
    long long count = (long long)json_array_size(list);
    if (whole && !block->part) {
        ticket_put_int(out, "pci.count.neuron", count, NULL);
        ticket_put(out, "neuron.devices", json_incref(list), NULL);
    } else if (count) {
        out->note = "the table is cut, left out";
    }
    json_decref(list);
}

const struct ticket_reader ticket_reader_neuron = {
    .name = "neuron-ls", .commands = "neuron-ls", .starts = neuron_starts, .read = neuron_read};

static bool cxi_starts(char *const *lines, size_t left)
{
    const char *name = ticket_value(lines[0], "Device");
    return name && *lines[0] == 'D' && ticket_after(name, "cxi") && left > 1 &&
           ticket_value(lines[1], "Description");
}

static void cxi_read(struct ticket_out *out, const struct ticket_block *block)
{
    static const struct {
        const char *name, *member;
    } rows[] = {{"Network device", "netdev"},
                {"Link speed", "link_speed"},
                {"Link state", "link_state"},
                {"NID", "nid"},
                {"Link MTU", "mtu"}};
    json_t *list = json_array(), *entry = NULL;
    bool whole = false;
    for (size_t i = 0; i < block->count; i++) {
        char word[64];
        const char *name = ticket_value(block->lines[i], "Device"), *value;
        if (name && ticket_after(name, "cxi")) {
            entry = json_pack("{s:o}", "name", ticket_text(name, strlen(name)));
            json_array_append_new(list, entry);
            whole = false;
        }
        for (size_t r = 0; entry && r < sizeof rows / sizeof *rows; r++) {
            value = ticket_value(block->lines[i], rows[r].name);
            if (value && ticket_word(word, sizeof word, value, ""))
                json_object_set_new(entry, rows[r].member, json_string(word));
            whole |= value && strcmp(rows[r].name, "Link state") == 0;
        }
    }
    bool asked = block->command && strstr(block->command, " -d");
    if (whole && !block->part && !asked) {
        ticket_put_int(out, "pci.count.cxi", (long long)json_array_size(list), NULL);
        ticket_put(out, "cxi.devices", json_incref(list), NULL);
    } else if (json_array_size(list)) {
        out->note = "not all devices, left out";
    }
    json_decref(list);
}

const struct ticket_reader ticket_reader_cxi = {
    .name = "cxi_stat", .commands = "cxi_stat", .starts = cxi_starts, .read = cxi_read};

static bool ethtool_starts(char *const *lines, size_t left)
{
    (void)left;
    return ticket_after(lines[0], "Settings for ") != NULL;
}

/* Adds to an interface that `ip` showed: alone it is no list. */
static void ethtool_read(struct ticket_out *out, const struct ticket_block *block)
{
    static const char key[] = "net.ifaces";
    char name[64] = "", word[64];
    const char *p = block->command ? strrchr(block->command, ' ') : NULL, *value;
    int speed;
    if (p)
        ticket_word(name, sizeof name, p + 1, "");
    for (size_t i = 0; i < block->count; i++) {
        if ((p = ticket_after(block->lines[i], "Settings for ")) != NULL)
            ticket_word(name, sizeof name, p, ":");
        if (!*name || !ticket_has_device(out, key, "name", ticket_text(name, strlen(name))))
            continue;
        json_t *iface = ticket_device(out, key, "name", ticket_text(name, strlen(name)));
        if ((value = ticket_value(block->lines[i], "Speed")) &&
            sscanf(value, "%dMb/s", &speed) == 1)
            ticket_member(out, iface, "speed_mbps", json_integer(speed));
        else if ((value = ticket_value(block->lines[i], "driver")) &&
                 ticket_word(word, sizeof word, value, ""))
            ticket_member(out, iface, "driver", json_string(word));
    }
}

const struct ticket_reader ticket_reader_ethtool = {
    .name = "ethtool", .commands = "ethtool", .starts = ethtool_starts, .read = ethtool_read};
