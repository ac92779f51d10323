/* A shared library from a stranger: everything that is read from one without executing it. */
#include "core/host/host.h"
#include "fuzz.h"
#include "probes/library/elf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int elf_symbol(const struct shk_elf_symbol *symbol, void *arg)
{
    *(size_t *)arg += strlen(symbol->name);
    return 0;
}

static int elf_need(const char *library, const char *version, bool weak, void *arg)
{
    *(size_t *)arg += strlen(library) + strlen(version) + weak;
    return 0;
}

static int elf_def(const char *version, void *arg)
{
    *(size_t *)arg += strlen(version);
    return 0;
}

static int elf_string(const char *text, size_t len, void *arg)
{
    *(size_t *)arg += (size_t)text[0] + len;
    return 0;
}

static void elf_walk(const struct shk_elf *elf)
{
    char id[SHK_ELF_BUILD_ID];
    size_t seen = shk_elf_build_id(elf, id) ? strlen(id) : 0;
    shk_elf_bits(elf);
    shk_elf_machine_name(shk_elf_machine(elf));
    const char *texts[] = {shk_elf_soname(elf), shk_elf_rpath(elf), shk_elf_runpath(elf),
                           shk_elf_highest_version(elf, "GLIBC_")};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        seen += texts[i] ? strlen(texts[i]) : 0;
    for (size_t i = 0; i < shk_elf_needed_count(elf); i++)
        seen += strlen(shk_elf_needed(elf, i));
    shk_elf_each_symbol(elf, elf_symbol, &seen);
    shk_elf_each_version_need(elf, elf_need, &seen);
    shk_elf_each_version_def(elf, elf_def, &seen);
    shk_elf_each_string(elf, 4, elf_string, &seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shk_error err = {""};
    struct shk_host *host;
    struct shk_elf *elf = NULL;
    const char *dir = shk_fuzz_dir(NULL);
    char path[512];
    snprintf(path, sizeof path, "%s/lib.so", dir);
    if (!*dir || shk_fuzz_put(path, data, size) != 0 || shk_host_open(&host, dir, &err) != 0)
        abort();
    if (shk_elf_open(&elf, host, "/lib.so", &err) == 0)
        elf_walk(elf);
    else if (!*err.text)
        abort();
    shk_elf_close(elf);
    shk_host_close(host);
    return 0;
}
