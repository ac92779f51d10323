/* neuron-ls, cxi_stat. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool neuron_starts(char *const *lines, size_t left)
{
    const char *p = ticket_after(lines[0], "|");
    if (!p || left < 2 || !(p = ticket_after(ticket_skip(p), "NEURON")))
        return false;
    p = ticket_after(ticket_skip(p), "|");
    return p && ticket_after(ticket_skip(p), "NEURON");
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

/* Do two devices stand in lines in a row above this border? Then it is the last one. */
static bool in_a_row(const struct ticket_block *block, size_t at)
{
    bool digits = at >= 2;
    for (size_t i = 1; i <= 2 && digits; i++) {
        const char *row = ticket_after(block->lines[at - i], "| ");
        digits = row && isdigit((unsigned char)*row);
    }
    return digits;
}

static void neuron_read(struct ticket_out *out, const struct ticket_block *block)
{
    json_t *list = json_array(), *row;
    bool whole = false;
    for (size_t i = 0; i < block->count && !whole; i++) {
        row = neuron_row(block->lines[i], (long long)json_array_size(list));
        if (row)
            json_array_append_new(list, row);
        /* a border stands between devices, too, when processes use them */
        whole = json_array_size(list) && block->lines[i][0] == '+' &&
                (i + 1 == block->count ? block->ended || in_a_row(block, i)
                                       : *block->lines[i + 1] != '|');
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
    } rows[] = {{"Network device", "netdev"}, {"Link speed", "link_speed"},
                {"Link state", "link_state"}, {"NID", "nid"},
                {"PCIE slot", "pci"},         {"Link MTU", "mtu"}};
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
