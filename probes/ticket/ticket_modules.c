/* lsmod, modinfo, module list. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* What the probe of the kernel looks for; out_of_tree: never built into a kernel, so that a whole
 * lsmod without it says that it is not there. */
static const struct {
    const char *name;
    bool out_of_tree;
} modules[] = {
    {"amdgpu", false},    {"bnxt_re", false},  {"cxi_core", true},       {"cxi_eth", true},
    {"cxi_ss1", true},    {"cxi_user", true},  {"efa", false},           {"efa_nv_peermem", true},
    {"ena", false},       {"gdrdrv", true},    {"ib_core", false},       {"ib_uverbs", false},
    {"ib_umad", false},   {"irdma", false},    {"kdreg2", true},         {"knem", true},
    {"mlx5_core", false}, {"mlx5_ib", false},  {"neuron", true},         {"nv_peer_mem", true},
    {"nvidia", true},     {"nvidia_fs", true}, {"nvidia_peermem", true}, {"nvidia_uvm", true},
    {"xpmem", true}};
enum { MODULES = sizeof modules / sizeof *modules, LINES_MIN = 12 };

/* "nvidia_uvm           1777664  4", a name, two numbers. */
static bool lsmod_line(const char *line, char name[64], long long *users_p)
{
    long long size;
    const char *p = line;
    if (!isalpha((unsigned char)*p))
        return false;
    p = ticket_skip(p + ticket_word(name, 64, p, ""));
    if (!ticket_long(p, &size) || size < 1024)
        return false;
    p = ticket_skip(p + strspn(p, "0123456789"));
    return ticket_long(p, users_p) && *users_p >= -1;
}

static bool lsmod_starts(char *const *lines, size_t left)
{
    const char *p = ticket_after(lines[0], "Module ");
    (void)left;
    return p && ticket_after(p = ticket_skip(p), "Size") && strstr(p, "Used by");
}

/* Does "lsmod | grep WORD" show this module if it is loaded? */
static bool grep_shows(const char *command, const char *module)
{
    char word[64];
    const char *p = command ? strstr(command, "grep ") : NULL;
    if (!p || strchr(p, '|') || strstr(p, " -v") || strstr(p, " -c"))
        return false;
    for (p += 5; *p == '-'; p = ticket_skip(p))
        p += strcspn(p, " ");
    p += strspn(p, "\"'");
    ticket_word(word, sizeof word, p, "\"'");
    return *word && strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(word) &&
           strstr(module, word);
}

static void lsmod_read(struct ticket_out *out, const struct ticket_block *block)
{
    bool seen[MODULES] = {false}, failed = false;
    size_t count = 0;
    char name[64], key[96];
    long long users;
    for (size_t i = 0; i < block->count; i++) {
        if (!lsmod_line(block->lines[i], name, &users)) {
            failed |= strstr(block->lines[i], "ERROR") || strstr(block->lines[i], "not found");
            continue;
        }
        count++;
        for (size_t m = 0; m < MODULES; m++) {
            if (strcmp(name, modules[m].name) != 0)
                continue;
            seen[m] = true;
            snprintf(key, sizeof key, "kernel.module.%s", name);
            ticket_put(out, key,
                       json_pack("{s:I,s:s}", "refcount", (json_int_t)users, "state", "live"),
                       NULL);
        }
    }
    bool whole = !block->part && block->ended && count >= LINES_MIN;
    for (size_t m = 0; m < MODULES && !failed; m++) {
        if (seen[m] || !modules[m].out_of_tree)
            continue;
        if (!whole && !(block->silent && grep_shows(block->command, modules[m].name)))
            continue;
        snprintf(key, sizeof key, "kernel.module.%s", modules[m].name);
        ticket_absent(out, key, "not in the output of lsmod");
    }
    if (count && !out->wrote)
        out->wrote = 1;
}

const struct ticket_reader ticket_reader_lsmod = {
    .name = "lsmod", .commands = "lsmod", .starts = lsmod_starts, .read = lsmod_read};

static bool modinfo_starts(char *const *lines, size_t left)
{
    const char *p = ticket_value(lines[0], "filename");
    (void)left;
    return p && *lines[0] == 'f' && strstr(p, ".ko");
}

/* A file that could be loaded: only NVIDIA's licence tells more than that. */
static void modinfo_read(struct ticket_out *out, const struct ticket_block *block)
{
    const char *file = NULL, *version = NULL, *license = NULL, *value;
    for (size_t i = 0; i < block->count; i++) {
        if ((value = ticket_value(block->lines[i], "filename")) != NULL)
            file = file ? file : value;
        else if ((value = ticket_value(block->lines[i], "version")) != NULL)
            version = version ? version : value;
        else if ((value = ticket_value(block->lines[i], "license")) != NULL)
            license = license ? license : value;
    }
    if (!file || !strstr(file, "/nvidia.ko"))
        return;
    json_t *driver = ticket_object(out, "gpu.nvidia.driver");
    if (version)
        ticket_member(out, driver, "version", ticket_text(version, strlen(version)));
    if (license)
        ticket_member(out, driver, "open", json_boolean(strstr(license, "MIT") != NULL));
}

const struct ticket_reader ticket_reader_modinfo = {
    .name = "modinfo", .commands = "modinfo", .starts = modinfo_starts, .read = modinfo_read};

static bool loaded_starts(char *const *lines, size_t left)
{
    (void)left;
    return ticket_after(lines[0], "Currently Loaded Modul") != NULL;
}

/* "  1) gcc/12.2.0 (c)   2) cuda/12.4": a number, a bracket, a name. False: another line. */
static bool loaded_line(json_t *list, const char *line)
{
    bool found = false;
    for (const char *p = ticket_skip(line); *p; p = ticket_skip(p + strcspn(p, " \t"))) {
        char name[256];
        const char *number = p + strspn(p, "0123456789");
        if (number == p || *number != ')')
            continue;
        p = ticket_skip(number + 1);
        size_t len = ticket_word(name, sizeof name, p, "");
        if (!len || json_array_size(list) > 1024)
            break;
        json_array_append_new(list, ticket_text(name, strlen(name)));
        found = true;
    }
    return found;
}

static void loaded_read(struct ticket_out *out, const struct ticket_block *block)
{
    json_t *list = json_array();
    size_t i = 0;
    while (i < block->count && !loaded_starts(block->lines + i, block->count - i))
        i++;
    for (i++; i < block->count &&
              (loaded_line(list, block->lines[i]) || !*ticket_skip(block->lines[i]));)
        i++;
    if (json_array_size(list) && !block->part)
        ticket_put(out, "modules.loaded", json_incref(list), NULL);
    else if (json_array_size(list))
        out->note = "not all modules, left out";
    json_decref(list);
}

const struct ticket_reader ticket_reader_loaded = {.name = "module list",
                                                   .commands = "module list|ml list|module -t list",
                                                   .starts = loaded_starts,
                                                   .read = loaded_read};
