/* Libraries: fi_info, pip list, ldd. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool fi_starts(char *const *lines, size_t left)
{
    return ticket_after(lines[0], "provider: ") && left > 1 &&
           ticket_after(ticket_skip(lines[1]), "fabric: ");
}

static void append_new(json_t *list, json_t *text)
{
    json_t *one;
    size_t i;
    json_array_foreach(list, i, one)
    {
        if (json_equal(one, text)) {
            json_decref(text);
            return;
        }
    }
    json_array_append_new(list, text);
}

/* "provider: efa" and its lines below. */
static bool fi_entries(const struct ticket_block *block, json_t *providers, json_t *domains)
{
    static const struct {
        const char *name, *member;
    } rows[] = {
        {"fabric", "fabric"}, {"domain", "domain"}, {"type", "ep"}, {"protocol", "protocol"}};
    json_t *entry = NULL;
    bool whole = false;
    for (size_t i = 0; i < block->count; i++) {
        const char *line = block->lines[i], *value = ticket_after(line, "provider: ");
        if (value && *value) {
            append_new(providers, ticket_text(value, strlen(value)));
            entry = json_pack("{s:o}", "provider", ticket_text(value, strlen(value)));
            json_array_append_new(domains, entry);
            whole = false;
        }
        for (size_t r = 0; entry && !value && r < sizeof rows / sizeof *rows; r++) {
            const char *text = ticket_value(line, rows[r].name);
            if (!text || json_object_get(entry, rows[r].member))
                continue;
            json_object_set_new(entry, rows[r].member, ticket_text(text, strlen(text)));
            whole |= strcmp(rows[r].name, "protocol") == 0;
        }
    }
    return whole;
}

/* `fi_info -l`: "efa:" with "    version: 119.0" below it. */
static void fi_core(const struct ticket_block *block, json_t *core)
{
    for (size_t i = 0; i + 1 < block->count; i++) {
        const char *line = block->lines[i];
        size_t len = strlen(line);
        if (len > 1 && len < 64 && line[len - 1] == ':' && !strchr(line, ' ') &&
            ticket_value(block->lines[i + 1], "version"))
            json_array_append_new(core, ticket_text(line, len - 1));
    }
}

static void fi_read(struct ticket_out *out, const struct ticket_block *block)
{
    json_t *providers = json_array(), *domains = json_array(), *core = json_array();
    const char *command = block->command ? block->command : "";
    bool asked = strstr(command, " -p") || strstr(command, " -t") || strstr(command, " -d") ||
                 strchr(command, '=');
    bool whole = fi_entries(block, providers, domains) && !block->part && !asked;
    const char *version = block->count ? ticket_value(block->lines[0], "libfabric") : NULL;
    fi_core(block, core);
    if (version && isdigit((unsigned char)*version))
        ticket_put_text(out, "fabric.version", version);
    if (whole) {
        ticket_put(out, "fabric.providers", json_incref(providers), NULL);
        ticket_put(out, "fabric.domains", json_incref(domains), NULL);
    } else if (json_array_size(providers)) {
        out->note = "not all providers, left out";
    }
    if (json_array_size(core) && !block->part)
        ticket_put(out, "fabric.core_providers", json_incref(core), NULL);
    json_decref(providers);
    json_decref(domains);
    json_decref(core);
}

const struct ticket_reader ticket_reader_fi_info = {
    .name = "fi_info", .commands = "fi_info", .starts = fi_starts, .read = fi_read};

/* "nccl  2.21.5.1  h3a97aeb_0  conda-forge": name, version, build. */
static const char *conda_nccl(const char *line)
{
    const char *p = ticket_after(line, "nccl ");
    p = p ? ticket_skip(p) : "";
    const char *build = ticket_skip(p + strcspn(p, " "));
    return isdigit((unsigned char)*p) && *build == 'h' && strchr(build, '_') ? p : NULL;
}

/* "nvidia-nccl-cu12         2.21.5", "nvidia-nccl-cu12==2.21.5"; behind "[pip3] " of PyTorch's
 * collect_env. */
static const char *pip_nccl(const char *line)
{
    const char *head = ticket_after(line, "[pip3] ");
    head = head ? head : ticket_after(line, "[conda] ");
    line = head ? head : line;
    if (conda_nccl(line))
        return conda_nccl(line);
    const char *p = ticket_after(ticket_skip(line), "nvidia-nccl-cu");
    if (!p)
        return NULL;
    p += strspn(p, "0123456789");
    p = *p == '=' ? p + strspn(p, "=") : *p == ' ' ? ticket_skip(p) : "";
    return isdigit((unsigned char)*p) ? p : NULL;
}

static bool pip_starts(char *const *lines, size_t left)
{
    (void)left;
    return pip_nccl(lines[0]) != NULL;
}

static void pip_read(struct ticket_out *out, const struct ticket_block *block)
{
    char word[32];
    const char *version = pip_nccl(block->lines[0]);
    if (!version || !ticket_word(word, sizeof word, version, ""))
        return;
    char *dot = strchr(word, '.');
    for (int dots = 1; dot && dots < 3; dots++)
        dot = strchr(dot + 1, '.');
    if (dot)
        *dot = '\0'; /* the package's own number */
    ticket_put_text(out, "nccl.version", word);
}

const struct ticket_reader ticket_reader_pip = {
    .name = "pip list", .starts = pip_starts, .read = pip_read, .single = true};

/* "	libnccl.so.2 => /opt/nccl/lib/libnccl.so.2 (0x…)" */
static const struct {
    const char *library, *key;
} libraries[] = {{"libnccl.so.2 => /", "nccl.path"},
                 {"librccl.so.1 => /", "rccl.path"},
                 {"libfabric.so.1 => /", "fabric.path"}};

static const char *ldd_path(const char *line, const char **key_p)
{
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        const char *p = ticket_after(ticket_skip(line), libraries[i].library);
        size_t len = p ? strcspn(p, " \t") : 0;
        if (p && (!*ticket_skip(p + len) || ticket_after(p + len, " (0x"))) {
            *key_p = libraries[i].key;
            return p - 1;
        }
    }
    return NULL;
}

static bool ldd_starts(char *const *lines, size_t left)
{
    const char *key;
    return ldd_path(lines[0], &key) && (left > 1 || strstr(lines[0], " (0x"));
}

static void ldd_read(struct ticket_out *out, const struct ticket_block *block)
{
    char path[512];
    const char *key = NULL, *p = ldd_path(block->lines[0], &key);
    if (p && ticket_word(path, sizeof path, p, ""))
        ticket_put_text(out, key, path);
}

const struct ticket_reader ticket_reader_ldd = {
    .name = "ldd", .starts = ldd_starts, .read = ldd_read, .single = true};
