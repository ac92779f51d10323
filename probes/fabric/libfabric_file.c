#include "probes/fabric/libfabric_file.h"

#include "core/facts/facts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Highest symbol version by release (libfabric.map.in of each tag). */
static const struct {
    const char *node, *releases;
} fabric_nodes[] = {
    {.node = "FABRIC_1.0", .releases = "1.0"},
    {.node = "FABRIC_1.1", .releases = "1.5 to 1.6"},
    {.node = "FABRIC_1.2", .releases = "1.7 to 1.8"},
    {.node = "FABRIC_1.3", .releases = "1.9 to 1.11"},
    {.node = "FABRIC_1.4", .releases = "1.12"},
    {.node = "FABRIC_1.5", .releases = "1.13"},
    {.node = "FABRIC_1.6", .releases = "1.14 to 1.19"},
    {.node = "FABRIC_1.7", .releases = "1.20 to 1.22"},
    {.node = "FABRIC_1.8", .releases = "2.0 to 2.4"},
    {.node = "FABRIC_1.9", .releases = "2.5 to 2.6"},
    {.node = "FABRIC_1.10", .releases = "later than 2.6"},
};

const char *shk_libfabric_releases(const char *node)
{
    for (size_t i = 0; i < sizeof fabric_nodes / sizeof fabric_nodes[0]; i++) {
        if (strcmp(fabric_nodes[i].node, node) == 0)
            return fabric_nodes[i].releases;
    }
    return NULL;
}

/* A provider that is built in shows in the libraries that libfabric itself needs. Some providers
 * (efa, verbs) are not listed by a library that has them when the node has no such device. */
static const struct {
    const char *library, *provider;
} fabric_links[] = {
    {.library = "libefa.so", .provider = "efa"},
    {.library = "libcxi.so", .provider = "cxi"},
    {.library = "librdmacm.so", .provider = "verbs"},
    {.library = "libpsm2.so", .provider = "psm2"},
    {.library = "libpsm_infinipath.so", .provider = "psm"},
    {.library = "libucp.so", .provider = "ucx"},
    {.library = "libze_loader.so", .provider = "hmem:ze"},
    {.library = "libcudart.so", .provider = "hmem:cuda"},
    {.library = "libamdhip64.so", .provider = "hmem:rocr"},
};

static json_t *fabric_linked(const struct shk_elf *elf)
{
    json_t *list = json_array();
    for (size_t k = 0; k < sizeof fabric_links / sizeof fabric_links[0]; k++) {
        size_t n = strlen(fabric_links[k].library);
        for (size_t i = 0; i < shk_elf_needed_count(elf); i++) {
            if (strncmp(shk_elf_needed(elf, i), fabric_links[k].library, n) == 0)
                json_array_append_new(list, json_string(fabric_links[k].provider));
        }
    }
    return list;
}

struct fabric_version_scan {
    char text[32];
    bool several;
};

/* The release text ("1.17.0", "1.22.0amzn4.0") stands alone among the strings. A dotted quad that
 * is an address has a first part above 9. */
static int fabric_version_string(const char *text, size_t len, void *arg)
{
    struct fabric_version_scan *scan = arg;
    size_t n = strspn(text, "0123456789."), dots = 0;
    for (size_t i = 0; i < n; i++)
        dots += text[i] == '.';
    if (len >= sizeof scan->text || dots < 2 || text[1] != '.' || !isdigit((unsigned char)text[0]))
        return 0;
    if (strspn(text + n, "abcdefghijklmnopqrstuvwxyz0123456789.-") != len - n)
        return 0;
    scan->several |= *scan->text && strcmp(scan->text, text) != 0;
    snprintf(scan->text, sizeof scan->text, "%s", text);
    return 0;
}

bool shk_libfabric_version(const struct shk_elf *elf, char *buf, size_t size)
{
    struct fabric_version_scan scan = {.several = false};
    shk_elf_each_string(elf, 5, fabric_version_string, &scan);
    snprintf(buf, size, "%s", scan.several ? "" : scan.text);
    return *buf;
}

json_t *shk_libfabric_copy_json(const struct shk_libcopy *copy)
{
    json_t *row =
        json_pack("{s:o, s:s, s:b}", "path", shk_json_text(copy->path, strlen(copy->path)), "via",
                  copy->via, "loader", copy->loader);
    if (copy->problem)
        json_object_set_new(row, "error", shk_json_text(copy->problem, strlen(copy->problem)));
    if (!copy->elf || !row)
        return row;
    json_object_set_new(row, "links", fabric_linked(copy->elf));
    char version[32];
    if (shk_libfabric_version(copy->elf, version, sizeof version))
        json_object_set_new(row, "version", json_string(version));
    const char *node = shk_elf_highest_version(copy->elf, "FABRIC_1.0");
    if (node)
        json_object_set_new(row, "abi", shk_json_text(node, strlen(node)));
    if (node && shk_libfabric_releases(node))
        json_object_set_new(row, "releases", json_string(shk_libfabric_releases(node)));
    return row;
}
