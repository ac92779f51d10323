/* rocm-smi and amd-smi: how many GPUs there are, and the version of ROCm. */
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

/* "GPU[3]		: Card Series: …" of the options that show one thing. */
static bool rocm_card(const char *line, long long *index_p)
{
    const char *p = ticket_after(line, "GPU[");
    char *end;
    *index_p = p ? strtoll(p, &end, 10) : -1;
    return p && end != p && *end == ']' && *index_p >= 0;
}

/* Rows of the table, each with the number of a GPU. */
static void rocm_read(struct ticket_out *out, const struct ticket_block *block)
{
    long long count = 0, cards = 0, index;
    bool head = false, end = false, one = block->command && strstr(block->command, " -d");
    for (size_t i = 0; i < block->count && !end; i++) {
        const char *line = block->lines[i];
        end = strstr(line, "End of ROCm SMI Log") != NULL;
        head |=
            (ticket_after(line, "Device ") || ticket_after(line, "GPU ")) && strstr(line, "Temp");
        if (head && ticket_long(line, &index) && index == count)
            count++;
        if (rocm_card(line, &index) && index == cards)
            cards++;
    }
    count = count ? count : cards;
    if (count && end && !block->part && !one)
        ticket_put_int(out, "pci.count.gpu-amd", count, NULL);
    else if (count)
        out->note = one ? "not all GPUs, left out" : "the table is cut, left out";
}

const struct ticket_reader ticket_reader_rocm_smi = {
    .name = "rocm-smi", .commands = "rocm-smi", .starts = rocm_starts, .read = rocm_read};

/* "GPU: 0" above "    BDF: 0000:0c:00.0" or "    ASIC:"; "| AMD-SMI 26.0.0 …"; "AMDSMI Tool: …";
 * "GPU  POWER  GPU_TEMP …". */
static bool amd_starts(char *const *lines, size_t left)
{
    if (strcmp(lines[0], "GPU: 0") == 0 && left > 1)
        return *lines[1] == ' ' && isupper((unsigned char)*ticket_skip(lines[1])) &&
               strchr(lines[1], ':');
    return ticket_after(lines[0], "| AMD-SMI ") || ticket_after(lines[0], "AMDSMI Tool:") ||
           (ticket_after(lines[0], "GPU ") && strstr(lines[0], " POWER ") &&
            strstr(lines[0], "_TEMP"));
}

/* "| 0000:05:00.0    AMD Instinct MI300X | …" */
static bool amd_row(const char *line)
{
    char pci[16];
    return line[0] == '|' && ticket_pci(pci, line + 1) && strstr(line, "AMD");
}

struct amd {
    long long listed, rows, monitored;
    bool table, monitor, whole; /* whole: the border behind the last row is there */
};

static void amd_line(struct ticket_out *out, struct amd *a, const char *line)
{
    const char *p = ticket_after(line, "GPU: ");
    long long index;
    char word[64];
    if (p && ticket_long(p, &index) && index == a->listed)
        a->listed++;
    if ((p = strstr(line, "ROCm version: ")) != NULL &&
        ticket_word(word, sizeof word, p + 14, "|") && isdigit((unsigned char)*word))
        ticket_put_text(out, "rocm.version", word);
    a->table |= ticket_after(line, "| AMD-SMI ") != NULL;
    if (a->table && amd_row(line)) {
        a->rows++;
        a->whole = false;
    }
    a->whole |= a->rows && line[0] == '+';
    a->monitor |= ticket_after(line, "GPU ") && strstr(line, " POWER ");
    if (a->monitor && ticket_long(ticket_skip(line), &index) && index == a->monitored)
        a->monitored++;
}

static void amd_read(struct ticket_out *out, const struct ticket_block *block)
{
    struct amd a = {0};
    bool one = block->command && strstr(block->command, " -g");
    for (size_t i = 0; i < block->count; i++)
        amd_line(out, &a, block->lines[i]);
    long long count = a.rows ? a.rows : a.listed ? a.listed : a.monitored;
    bool ends = a.rows ? a.whole : block->ended;
    if (count && ends && !block->part && !one)
        ticket_put_int(out, "pci.count.gpu-amd", count, NULL);
    else if (count)
        out->note = one ? "not all GPUs, left out" : "it is not told where the list ends, left out";
}

const struct ticket_reader ticket_reader_amd_smi = {
    .name = "amd-smi", .commands = "amd-smi", .starts = amd_starts, .read = amd_read};
