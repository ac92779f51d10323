/* nvidia-smi: the table, -L, nvlink -s. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As many as one node has, with room. */
enum { GPUS_MAX = 64 };

static bool smi_starts(char *const *lines, size_t left)
{
    (void)left;
    return ticket_after(lines[0], "| NVIDIA-SMI ") != NULL;
}

static void smi_versions(struct ticket_out *out, const char *line)
{
    char word[64];
    const char *p = strstr(line, "Driver Version:");
    if (p && ticket_word(word, sizeof word, ticket_skip(p + 15), "|")) {
        ticket_member(out, ticket_object(out, "gpu.nvidia.driver"), "version", json_string(word));
        ticket_put_text(out, "nvml.driver", word);
    }
    p = strstr(line, "CUDA Version:");
    if (p && ticket_word(word, sizeof word, ticket_skip(p + 13), "|") &&
        isdigit((unsigned char)*word))
        ticket_put_text(out, "cuda.driver", word);
}

struct smi_gpu {
    long long index;
    char pci[16];
    json_t *name, *memory, *mig, *persistence, *mode;
};

/* "|   0  NVIDIA H200                    On  |   00000000:00:06.0 Off |                    0 |" */
static bool smi_first_row(struct smi_gpu *gpu, const char *line)
{
    char *end;
    if (line[0] != '|' || line[1] != ' ')
        return false;
    gpu->index = strtoll(line + 1, &end, 10);
    const char *bar = strchr(end, '|');
    if (end == line + 1 || gpu->index < 0 || gpu->index >= GPUS_MAX || !bar ||
        !ticket_pci(gpu->pci, bar + 1))
        return false;
    const char *name = ticket_skip(end), *tail = bar;
    while (tail > name && tail[-1] == ' ')
        tail--;
    const char *word = tail;
    while (word > name && word[-1] != ' ')
        word--;
    if (strncmp(word, "On", 2) == 0)
        gpu->persistence = json_true();
    else if (strncmp(word, "Off", 3) == 0)
        gpu->persistence = json_false();
    gpu->name = ticket_text(name, (size_t)((gpu->persistence ? word : tail) - name));
    return true;
}

/* Of the lines below: memory, compute mode, MIG. */
static void smi_other_row(struct smi_gpu *gpu, const char *line)
{
    const char *mib = strstr(line, "MiB / ");
    long long total;
    if (mib && !gpu->memory && sscanf(mib + 6, "%lldMiB", &total) == 1 && total > 0 &&
        total < (1LL << 30)) {
        gpu->memory = json_integer(total * 1048576);
        gpu->mode = strstr(mib, " Default ")    ? json_string("default")
                    : strstr(mib, "E. Process") ? json_string("exclusive process")
                    : strstr(mib, "Prohibited") ? json_string("prohibited")
                                                : NULL;
    } else if (!gpu->mig && strstr(line, " Disabled |")) {
        gpu->mig = json_false();
    } else if (!gpu->mig && strstr(line, " Enabled |")) {
        gpu->mig = json_true();
    }
}

static void smi_optional(struct ticket_out *out, json_t *entry, const char *name, json_t *value)
{
    if (value)
        ticket_member(out, entry, name, value);
}

static void smi_put(struct ticket_out *out, struct smi_gpu *gpu)
{
    json_t *bus = ticket_device(out, "gpu.nvidia.devices", "pci", json_string(gpu->pci));
    if (bus)
        ticket_member(out, bus, "model", json_incref(gpu->name));
    bool known = ticket_has_device(out, "nvml.devices", "pci", json_string(gpu->pci));
    json_t *entry = known ? ticket_device(out, "nvml.devices", "pci", json_string(gpu->pci))
                          : ticket_device(out, "nvml.devices", "index", json_integer(gpu->index));
    if (entry) {
        ticket_member(out, entry, "index", json_integer(gpu->index));
        ticket_member(out, entry, "pci", json_string(gpu->pci));
        ticket_member(out, entry, "name", json_incref(gpu->name));
        smi_optional(out, entry, "memory", json_incref(gpu->memory));
        smi_optional(out, entry, "mig", json_incref(gpu->mig));
        smi_optional(out, entry, "persistence", json_incref(gpu->persistence));
    }
    if (gpu->mode) {
        json_t *health = ticket_device(out, "nvml.health", "pci", json_string(gpu->pci));
        if (health) {
            ticket_member(out, health, "index", json_integer(gpu->index));
            ticket_member(out, health, "compute_mode", json_incref(gpu->mode));
        }
    }
}

static void smi_free(struct smi_gpu *gpu)
{
    json_decref(gpu->name);
    json_decref(gpu->memory);
    json_decref(gpu->mig);
    json_decref(gpu->persistence);
    json_decref(gpu->mode);
}

/* The rows down to the border behind the last GPU; *whole_p: the border is there. */
static size_t smi_rows(const struct ticket_block *block, struct smi_gpu *gpus, bool *whole_p)
{
    size_t count = 0;
    *whole_p = false;
    for (size_t i = 0; i < block->count; i++) {
        const char *line = block->lines[i];
        if (strstr(line, "Processes:"))
            break;
        if (count < GPUS_MAX && smi_first_row(&gpus[count], line)) {
            count++;
            *whole_p = false;
        } else if (count && line[0] == '|') {
            if (!gpus[count - 1].memory || !gpus[count - 1].mig)
                smi_other_row(&gpus[count - 1], line);
        } else if (count && line[0] == '+' && !*whole_p) {
            *whole_p = i + 1 == block->count ? block->ended : *block->lines[i + 1] != '|';
        }
    }
    return count;
}

static void smi_read(struct ticket_out *out, const struct ticket_block *block)
{
    struct smi_gpu gpus[GPUS_MAX] = {0};
    bool whole, command = block->command && strstr(block->command, " -i ");
    for (size_t i = 0; i < block->count && i < 8; i++)
        if (strstr(block->lines[i], "Driver Version:"))
            smi_versions(out, block->lines[i]);
    size_t count = smi_rows(block, gpus, &whole);
    whole &= !block->part && !command && count > 0;
    if (whole) {
        ticket_put_int(out, "pci.count.gpu-nvidia", (long long)count, NULL);
        for (size_t i = 0; i < count; i++)
            smi_put(out, &gpus[i]);
    } else if (count) {
        out->note = "the table is cut, its GPUs are left out";
    }
    for (size_t i = 0; i < count; i++)
        smi_free(&gpus[i]);
}

const struct ticket_reader ticket_reader_smi = {
    .name = "nvidia-smi", .commands = "nvidia-smi", .starts = smi_starts, .read = smi_read};

static bool list_line(const char *line, long long *index_p, const char **name_p)
{
    const char *p = ticket_after(line, "GPU ");
    char *end;
    *index_p = p ? strtoll(p, &end, 10) : -1;
    if (!p || end == p || *end != ':' || end[1] != ' ' || *index_p < 0 || *index_p >= GPUS_MAX)
        return false;
    *name_p = end + 2;
    return strstr(end, "(UUID: GPU-") != NULL;
}

static bool list_starts(char *const *lines, size_t left)
{
    long long index;
    const char *name;
    return list_line(lines[0], &index, &name) && index == 0 &&
           (left < 2 || !strstr(lines[1], "Link "));
}

/* nvidia-smi -L tells neither bus addresses nor that it ended: the end of the paste must be seen.
 */
static void list_read(struct ticket_out *out, const struct ticket_block *block)
{
    long long index, next = 0;
    const char *name;
    size_t i = 0;
    for (; i < block->count; i++) {
        if (ticket_after(ticket_skip(block->lines[i]), "MIG "))
            continue;
        if (!list_line(block->lines[i], &index, &name) || index != next)
            break;
        next++;
    }
    bool more = i < block->count && *ticket_skip(block->lines[i]);
    if (block->part || more || !block->ended) {
        out->note = next ? "it is not told where the list ends, left out" : NULL;
        return;
    }
    if (next)
        ticket_put_int(out, "pci.count.gpu-nvidia", next, NULL);
    if (shk_facts_get_array(out->facts, "nvml.devices"))
        return;
    for (i = 0; i < block->count; i++) {
        if (!list_line(block->lines[i], &index, &name) || index >= next)
            continue;
        json_t *entry = ticket_device(out, "nvml.devices", "index", json_integer(index));
        if (entry)
            ticket_member(out, entry, "name",
                          ticket_text(name, (size_t)(strstr(name, "(UUID") - name)));
    }
}

const struct ticket_reader ticket_reader_smi_list = {.name = "nvidia-smi -L",
                                                     .commands =
                                                         "nvidia-smi -L|nvidia-smi --list-gpus",
                                                     .starts = list_starts,
                                                     .read = list_read};

static bool nvlink_starts(char *const *lines, size_t left)
{
    long long index;
    const char *name;
    return list_line(lines[0], &index, &name) && left > 1 &&
           (strstr(lines[1], "Link 0: ") || strstr(lines[1], "NVML: Unable to retrieve NVLink"));
}

/* "	 Link 0: 26.562 GB/s", "	 Link 3: <inactive>" */
static void nvlink_read(struct ticket_out *out, const struct ticket_block *block)
{
    json_t *links = NULL;
    for (size_t i = 0; i < block->count && !block->part; i++) {
        long long index;
        const char *name;
        int link = -1, used = 0;
        if (list_line(block->lines[i], &index, &name)) {
            json_t *entry = ticket_device(out, "nvml.devices", "index", json_integer(index));
            links = entry && !json_object_get(entry, "links") ? json_array() : NULL;
            if (links)
                ticket_member(out, entry, "links", links);
            continue;
        }
        const char *p = ticket_skip(block->lines[i]);
        if (!links || sscanf(p, "Link %2d: %n", &link, &used) != 1 || !used || link < 0)
            continue;
        bool active = isdigit((unsigned char)p[used]) != 0;
        if (active || ticket_after(p + used, "<inactive>"))
            json_array_append_new(links, json_pack("{s:i,s:b}", "link", link, "active", active));
    }
    if (block->part)
        out->note = "part of the output, left out";
}

const struct ticket_reader ticket_reader_smi_nvlink = {.name = "nvidia-smi nvlink",
                                                       .commands = "nvidia-smi nvlink",
                                                       .starts = nvlink_starts,
                                                       .read = nvlink_read};
