/* nvidia-smi -q: one section for each GPU, nested by indentation. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 6, NAME = 48 };

struct smi_q {
    struct ticket_out *out;
    json_t *bus, *device, *health;
    char path[DEPTH][NAME]; /* sections, by depth */
    long long index;
    bool all; /* each attached GPU is there */
};

enum kind { BOOL, INT, MILLI, TEXT, STATE, WIDTH };

/* Members of nvml.health and nvml.devices, by section and name (nvidia-smi 470 to 580). */
static const struct {
    const char *section, *name, *member;
    bool health;
    enum kind kind;
} fields[] = {
    {"", "Product Name", "name", false, TEXT},
    {"", "VBIOS Version", "vbios", true, TEXT},
    {"", "GSP Firmware Version", "gsp", true, TEXT},
    {"Inforom Version", "Image Version", "inforom", true, TEXT},
    {"", "Persistence Mode", "persistence", false, BOOL},
    {"MIG Mode", "Current", "mig", false, BOOL},
    {"", "Compute Mode", "compute_mode", true, STATE},
    {"", "GPU Recovery Action", "recovery_action", true, STATE},
    {"ECC Mode", "Current", "ecc", true, BOOL},
    {"Volatile", "DRAM Correctable", "ecc_volatile_corrected_dram", true, INT},
    {"Volatile", "DRAM Uncorrectable", "ecc_volatile_uncorrected_dram", true, INT},
    {"Volatile", "SRAM Correctable", "ecc_volatile_corrected_sram", true, INT},
    {"Volatile", "SRAM Uncorrectable", "ecc_volatile_uncorrected_sram", true, INT},
    {"Aggregate", "DRAM Correctable", "ecc_aggregate_corrected_dram", true, INT},
    {"Aggregate", "DRAM Uncorrectable", "ecc_aggregate_uncorrected_dram", true, INT},
    {"Aggregate", "SRAM Correctable", "ecc_aggregate_corrected_sram", true, INT},
    {"Aggregate", "SRAM Uncorrectable", "ecc_aggregate_uncorrected_sram", true, INT},
    {"Aggregate", "SRAM Threshold Exceeded", "sram_exceeded", true, BOOL},
    {"ECC Errors", "Channel Repair Pending", "repair_pending", true, BOOL},
    {"ECC Errors", "TPC Repair Pending", "repair_pending", true, BOOL},
    {"GPU Virtualization Mode", "Virtualization Mode", "virtualization", true, STATE},
    {"Remapped Rows", "Correctable Error", "remapped_correctable", true, INT},
    {"Remapped Rows", "Uncorrectable Error", "remapped_uncorrectable", true, INT},
    {"Remapped Rows", "Pending", "remap_pending", true, BOOL},
    {"Remapped Rows", "Remapping Failure Occurred", "remap_failure", true, BOOL},
    {"Retired Pages", "Pending Page Blacklist", "retired_pending", true, BOOL},
    {"Temperature", "GPU Current Temp", "temperature", true, INT},
    {"Temperature", "GPU Slowdown Temp", "temperature_slowdown", true, INT},
    {"PCIe Generation", "Current", "pcie_gen", true, INT},
    {"PCIe Generation", "Max", "pcie_gen_max", true, INT},
    {"Link Width", "Current", "pcie_width", true, WIDTH},
    {"Link Width", "Max", "pcie_width_max", true, WIDTH},
    {"PCI", "Replays Since Reset", "pcie_replays", true, INT},
    {"GPU Power Readings", "Current Power Limit", "power_limit", true, MILLI},
    {"GPU Power Readings", "Default Power Limit", "power_default", true, MILLI},
};

/* As nvidia-smi writes them and as docs/facts.md does. */
static const struct {
    const char *smi, *fact;
} states[] = {{"Default", "default"},          {"Exclusive_Process", "exclusive process"},
              {"Prohibited", "prohibited"},    {"None", "none"},
              {"Reset", "GPU reset"},          {"Reboot", "node reboot"},
              {"Drain P2P", "drain P2P"},      {"Drain and Reset", "drain and reset"},
              {"Pass-Through", "passthrough"}, {"VGPU", "vGPU"}},
  reasons[] = {{"Idle", "idle"},
               {"Applications Clocks Setting", "application clocks"},
               {"SW Power Cap", "power cap"},
               {"HW Slowdown", "hardware slowdown"},
               {"HW Thermal Slowdown", "HW thermal"},
               {"HW Power Brake Slowdown", "power brake"},
               {"Sync Boost", "sync boost"},
               {"SW Thermal Slowdown", "SW thermal"},
               {"Display Clock Setting", "display clocks"}};

static json_t *number_value(const char *value, double scale)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || number < 0 || number > 1e12)
        return NULL;
    return json_integer((json_int_t)(number * scale + 0.5));
}

static json_t *field_value(enum kind kind, const char *value)
{
    switch (kind) {
    case BOOL:
        return ticket_after(value, "Enabled") || ticket_after(value, "Yes")   ? json_true()
               : ticket_after(value, "Disabled") || ticket_after(value, "No") ? json_false()
                                                                              : NULL;
    case INT:
    case WIDTH: /* "16x" */ return number_value(value, 1);
    case MILLI: return number_value(value, 1000);
    case TEXT: return strcmp(value, "N/A") == 0 ? NULL : ticket_text(value, strlen(value));
    case STATE:
        for (size_t i = 0; i < sizeof states / sizeof *states; i++)
            if (strcmp(value, states[i].smi) == 0)
                return json_string(states[i].fact);
        break;
    }
    return NULL;
}

static void gpu_begin(struct smi_q *q, const char *pci)
{
    json_t *address = json_string(pci);
    struct ticket_out *out = q->out;
    q->bus = ticket_device(out, "gpu.nvidia.devices", "pci", json_incref(address));
    /* -L and nvlink -s know the number only, and -q is in the same order */
    bool numbered = q->all &&
                    !ticket_has_device(out, "nvml.devices", "pci", json_incref(address)) &&
                    ticket_has_device(out, "nvml.devices", "index", json_integer(q->index));
    q->device = numbered ? ticket_device(out, "nvml.devices", "index", json_integer(q->index))
                         : ticket_device(out, "nvml.devices", "pci", json_incref(address));
    ticket_member(out, q->device, "pci", json_incref(address));
    q->index++;
    q->health = ticket_device(out, "nvml.health", "pci", address);
    ticket_member(out, q->health, "state", json_string("answers"));
}

static void field(struct smi_q *q, const char *section, const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(fields[i].name, name) != 0 || strcmp(fields[i].section, section) != 0)
            continue;
        json_t *found = field_value(fields[i].kind, value);
        if (!found)
            return;
        if (strcmp(name, "Product Name") == 0) {
            ticket_member(q->out, q->bus, "model", json_incref(found));
            ticket_member(q->out, q->health, "name", json_incref(found));
        }
        /* two lines, one repair each */
        if (strcmp(fields[i].member, "repair_pending") == 0 &&
            json_is_true(json_object_get(q->health, "repair_pending"))) {
            json_decref(found);
            return;
        }
        ticket_member(q->out, fields[i].health ? q->health : q->device, fields[i].member, found);
        return;
    }
    if (strcmp(section, "Clocks Event Reasons") != 0 &&
        strcmp(section, "Clocks Throttle Reasons") != 0 && strcmp(section, "HW Slowdown") != 0)
        return;
    json_t *list = json_object_get(q->health, "clock_reasons");
    if (!list) {
        ticket_member(q->out, q->health, "clock_reasons", json_array());
        list = json_object_get(q->health, "clock_reasons");
    }
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strcmp(name, reasons[i].smi) == 0 && strcmp(value, "Active") == 0)
            json_array_append_new(list, json_string(reasons[i].fact));
}

/* "        Pending                      : No", "    Remapped Rows" */
static void q_line(struct smi_q *q, const char *line)
{
    char name[NAME];
    const char *text = line + strspn(line, " "), *colon = strstr(text, " : ");
    size_t depth = (size_t)(text - line) / 4, len = colon ? (size_t)(colon - text) : strlen(text);
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    if (!depth || depth >= DEPTH || !len || len >= NAME)
        return;
    snprintf(name, sizeof name, "%.*s", (int)len, text);
    snprintf(q->path[depth], NAME, "%s", name);
    if (!colon)
        return;
    char value[128];
    snprintf(value, sizeof value, "%s", ticket_skip(colon + 3));
    for (len = strlen(value); len && isspace((unsigned char)value[len - 1]); len--)
        value[len - 1] = '\0';
    field(q, depth > 1 ? q->path[depth - 1] : "", name, value);
}

static bool q_starts(char *const *lines, size_t left)
{
    (void)left;
    return strstr(lines[0], "=NVSMI LOG=") != NULL;
}

/* "Attached GPUs : 8", and as many sections. */
static bool q_is_whole(const struct ticket_block *block)
{
    long long attached = -1, count = 0;
    char pci[16];
    for (size_t i = 0; i < block->count; i++) {
        const char *line = block->lines[i], *value = ticket_value(line, "Attached GPUs");
        if (value && !ticket_long(value, &attached))
            return false;
        count += ticket_after(line, "GPU ") && ticket_pci(pci, line + 4);
    }
    return attached == count && count > 0;
}

static void q_read(struct ticket_out *out, const struct ticket_block *block)
{
    struct smi_q q = {.out = out, .all = q_is_whole(block)};
    char pci[16], word[64];
    for (size_t i = 0; i < block->count; i++) {
        const char *line = block->lines[i], *value;
        if (ticket_after(line, "GPU ") && ticket_pci(pci, line + 4))
            gpu_begin(&q, pci);
        else if ((value = ticket_value(line, "Driver Version")) != NULL &&
                 ticket_word(word, sizeof word, value, "")) {
            ticket_member(out, ticket_object(out, "gpu.nvidia.driver"), "version",
                          json_string(word));
            ticket_put_text(out, "nvml.driver", word);
        } else if (!block->command || !strchr(block->command, '|')) {
            if (q.health)
                q_line(&q, line);
        }
    }
}

const struct ticket_reader ticket_reader_smi_q = {.name = "nvidia-smi -q",
                                                  .commands = "nvidia-smi -q|nvidia-smi --query",
                                                  .starts = q_starts,
                                                  .read = q_read};
