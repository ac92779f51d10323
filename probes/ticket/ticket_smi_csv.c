/* nvidia-smi --query-gpu=… --format=csv: a head line with the names of the fields, and a row for
 * each GPU. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 24, FIELD = 96, GPUS = 64 };

struct csv {
    char names[FIELDS][FIELD];
    size_t count;
};

/* "index, name, memory.total [MiB]": cut at commas; false: too many, or one is too long. */
static bool csv_cut(struct csv *csv, const char *line)
{
    csv->count = 0;
    for (const char *p = line;; p++) {
        size_t len = strcspn(p, ",");
        p = ticket_skip(p);
        const char *end = p + strcspn(p, ",");
        len = (size_t)(end - p);
        while (len && isspace((unsigned char)p[len - 1]))
            len--;
        if (csv->count == FIELDS || len >= FIELD)
            return false;
        snprintf(csv->names[csv->count++], FIELD, "%.*s", (int)len, p);
        p = end;
        if (!*p)
            return csv->count > 1;
    }
}

enum kind { INDEX, PCI, NAME, DRIVER, MEMORY, PERSISTENCE, MIG, OTHER };

/* "memory.total [MiB]" without the unit. */
static enum kind kind_of(const char *name)
{
    static const struct {
        const char *name;
        enum kind kind;
    } all[] = {{"index", INDEX},         {"pci.bus_id", PCI},
               {"gpu_bus_id", PCI},      {"name", NAME},
               {"gpu_name", NAME},       {"driver_version", DRIVER},
               {"memory.total", MEMORY}, {"persistence_mode", PERSISTENCE},
               {"mig.mode.current", MIG}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *behind = ticket_after(name, all[i].name);
        if (behind && (!*behind || *behind == ' '))
            return all[i].kind;
    }
    return OTHER;
}

static bool csv_head(struct csv *csv, const char *line)
{
    size_t known = 0, odd = 0;
    if (!strchr(line, ',') || strlen(line) > 1024 || !csv_cut(csv, line))
        return false;
    for (size_t i = 0; i < csv->count; i++) {
        const char *name = csv->names[i];
        known += kind_of(name) != OTHER;
        size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._");
        odd += !len || (name[len] && !(name[len] == ' ' && name[len + 1] == '['));
    }
    return known && !odd && (strstr(line, "name") || strstr(line, "driver_version")) &&
           (strstr(line, ".") || strstr(line, "driver_version"));
}

static bool csv_starts(char *const *lines, size_t left)
{
    struct csv csv;
    return left > 1 && (islower((unsigned char)*lines[0])) && csv_head(&csv, lines[0]) &&
           strchr(lines[1], ',');
}

static json_t *csv_value(enum kind kind, const char *text)
{
    long long number;
    switch (kind) {
    case INDEX: return ticket_long(text, &number) && number >= 0 ? json_integer(number) : NULL;
    case NAME: return ticket_text(text, strlen(text));
    case MEMORY:
        return ticket_long(text, &number) && number > 0 && number < (1LL << 30) &&
                       (strstr(text, "MiB") || !strchr(text, ' '))
                   ? json_integer(number * 1048576)
                   : NULL;
    case PERSISTENCE:
    case MIG:
        return strcmp(text, "Enabled") == 0    ? json_true()
               : strcmp(text, "Disabled") == 0 ? json_false()
                                               : NULL;
    default: return NULL;
    }
}

static void csv_row(struct ticket_out *out, const struct csv *head, const struct csv *row,
                    long long index)
{
    static const char *const members[] = {"index",  "pci",         "name", NULL,
                                          "memory", "persistence", "mig",  NULL};
    char pci[16] = "";
    long long number = index;
    for (size_t i = 0; i < head->count; i++) {
        if (kind_of(head->names[i]) == PCI && !ticket_pci(pci, row->names[i]))
            *pci = '\0';
        if (kind_of(head->names[i]) == INDEX && !ticket_long(row->names[i], &number))
            number = index;
    }
    bool known = *pci && ticket_has_device(out, "nvml.devices", "pci", json_string(pci));
    json_t *entry = known ? ticket_device(out, "nvml.devices", "pci", json_string(pci))
                          : ticket_device(out, "nvml.devices", "index", json_integer(number));
    if (entry && *pci)
        ticket_member(out, entry, "pci", json_string(pci));
    for (size_t i = 0; entry && i < head->count; i++) {
        enum kind kind = kind_of(head->names[i]);
        json_t *value = csv_value(kind, row->names[i]);
        if (kind == DRIVER && isdigit((unsigned char)row->names[i][0]))
            ticket_put_text(out, "nvml.driver", row->names[i]);
        if (members[kind])
            ticket_member(out, entry, members[kind], value);
        else
            json_decref(value);
    }
}

static void csv_read(struct ticket_out *out, const struct ticket_block *block)
{
    struct csv head, row;
    size_t i = 0;
    long long count = 0;
    while (i < block->count && !csv_head(&head, block->lines[i]))
        i++;
    size_t first = i + 1;
    for (i = first; i < block->count && count < GPUS; i++, count++)
        if (!csv_cut(&row, block->lines[i]) || row.count != head.count)
            break;
    bool more = i < block->count && *ticket_skip(block->lines[i]);
    bool of_one = block->command && strstr(block->command, " -i");
    if (block->part || more || of_one || !block->ended || !count) {
        out->note = count ? "it is not told where the list ends, left out" : NULL;
        return;
    }
    ticket_put_int(out, "pci.count.gpu-nvidia", count, NULL);
    for (long long r = 0; r < count; r++)
        if (csv_cut(&row, block->lines[first + (size_t)r]))
            csv_row(out, &head, &row, r);
}

const struct ticket_reader ticket_reader_smi_csv = {
    .name = "nvidia-smi --query-gpu", .commands = NULL, .starts = csv_starts, .read = csv_read};
