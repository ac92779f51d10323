/* nccl.conf and its like: the first byte chooses the file. */
#include "fuzz.h"
#include "probes/base/registry.h"
#include "tests/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char *const conf_files[] = {
    "etc/nccl.conf",    "home/u/.nccl.conf",    "etc/rccl.conf", "etc/libfabric.conf",
    "etc/nvshmem.conf", "home/u/.nvshmem.conf", "etc/passwd"};
enum { CONF_FILES = sizeof conf_files / sizeof *conf_files };

static void conf_put(const char *dir, const char *name, const void *data, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (shk_fuzz_put(path, data, size) != 0)
        abort();
}

static void conf_prepare(const char *dir)
{
    static const char calls[] =
        "{\"ids\": {\"uid\": 1000, \"euid\": 1000}, \"environ\": {\"HOME\": \"/home/u\"}}";
    static const char *const folders[] = {".shakedown", "etc", "home", "home/u"};
    char path[512];
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, folders[i]);
        mkdir(path, 0700);
    }
    conf_put(dir, ".shakedown/hostcalls.json", calls, sizeof calls - 1);
    for (size_t i = 0; i < CONF_FILES; i++)
        conf_put(dir, conf_files[i], "", 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool prepared;
    const char *dir = shk_fuzz_dir(NULL);
    struct shk_error err = {""};
    struct shk_host *host;
    if (!prepared)
        conf_prepare(dir);
    prepared = true;
    if (size < 1)
        return 0;
    const char *file = conf_files[data[0] % CONF_FILES];
    conf_put(dir, file, data + 1, size - 1);
    if (shk_host_open(&host, dir, &err) != 0)
        abort();
    struct shk_facts *known = shk_facts_create(), *facts = shk_facts_create();
    struct shk_probe_context ctx = {
        .host = host, .names = catalogue_names(), .known = known, .facts = facts};
    struct shk_fact files;
    if (shk_probe_conffile.run(&ctx, &err) != 0 || !shk_facts_get(facts, "env.files", &files) ||
        files.state != SHK_FACT_PRESENT)
        abort(); /* no file may cost us what the others say */
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
    shk_host_close(host);
    conf_put(dir, file, "", 0);
    return 0;
}
