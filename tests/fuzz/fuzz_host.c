/* /proc, /sys and configuration files: a healthy capture in which one file holds what the input
 * says (the first two bytes choose it), read by every probe that works on captures. */
#include "fuzz.h"
#include "probes/base/probe.h"
#include "tests/names.h"

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host_file {
    char *path;
    void *content;
    size_t size;
};
static struct host_file *host_files;
static size_t host_count;

static int host_compare(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void host_add(const FTSENT *entry)
{
    struct host_file *grown = reallocarray(host_files, host_count + 1, sizeof *grown);
    FILE *f = fopen(entry->fts_accpath, "rb");
    size_t size = (size_t)entry->fts_statp->st_size;
    if (!grown || !f)
        abort();
    host_files = grown;
    struct host_file *file = &host_files[host_count++];
    *file = (struct host_file){strdup(entry->fts_path), malloc(size + 1), size};
    file->size = fread(file->content, 1, size, f);
    fclose(f);
}

static void host_index(const char *dir)
{
    char *paths[] = {(char *)dir, NULL};
    FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, host_compare);
    if (!fts)
        abort();
    for (FTSENT *entry; (entry = fts_read(fts));) {
        if (entry->fts_info == FTS_F)
            host_add(entry);
    }
    fts_close(fts);
}

static void host_probe(const char *dir)
{
    size_t count;
    struct shk_error err = {""};
    struct shk_host *host;
    const struct shk_probe *const *probes = shk_probes(&count);
    if (shk_host_open(&host, dir, &err) != 0)
        return; /* hostcalls.json is broken, and it says so */
    struct shk_facts *known = shk_facts_create(), *facts = shk_facts_create();
    for (size_t i = 0; i < count; i++) {
        struct shk_probe_context ctx = {
            .host = host, .names = catalogue_names(), .known = known, .facts = facts};
        if (probes[i]->needs_live || strcmp(probes[i]->name, "topology") == 0)
            continue; /* hwloc runs in a child for a reason: fuzz_topology.c */
        if (probes[i]->run(&ctx, &err) == 0 && shk_facts_merge(known, facts) != 0)
            abort();
    }
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
    shk_host_close(host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *dir = shk_fuzz_dir(SHK_BUILD_DIR "/captures/slingshot-amd");
    if (!host_count)
        host_index(dir);
    if (size < 2)
        return 0;
    const struct host_file *file = &host_files[(data[0] | data[1] << 8) % host_count];
    if (shk_fuzz_put(file->path, data + 2, size - 2) != 0)
        abort();
    host_probe(dir);
    if (shk_fuzz_put(file->path, file->content, file->size) != 0)
        abort();
    return 0;
}
