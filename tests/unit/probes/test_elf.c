#include "libs_support.h"
#include "probes/library/elf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct shk_host *host;

static void setup(void)
{
    capture_begin();
    cr_assert_eq(shk_host_open(&host, NULL, NULL), 0);
}

static void teardown(void)
{
    shk_host_close(host);
    capture_end();
}

TestSuite(elf, .init = setup, .fini = teardown);

static int count_symbol(const struct shk_elf_symbol *symbol, void *arg)
{
    if (strcmp(symbol->name, "ncclNetPlugin_v11") == 0) {
        cr_expect(symbol->object);
        cr_expect_eq(symbol->size, 22 * sizeof(void *));
        ++*(int *)arg;
    }
    return 0;
}

Test(elf, says_what_a_plugin_exports_and_needs)
{
    struct shk_elf *elf = NULL;
    struct shk_error err = {""};
    int found = 0;
    cr_assert_eq(shk_elf_open(&elf, host, FAKES "/good_v11/libnccl-net.so", &err), 0, "%s",
                 err.text);
    cr_expect_eq(shk_elf_bits(elf), 64);
    cr_expect_str_neq(shk_elf_machine_name(shk_elf_machine(elf)), "unknown");
    cr_expect_str_eq(shk_elf_soname(elf), "libnccl-net.so");
    cr_expect_null(shk_elf_rpath(elf));
    cr_expect_null(shk_elf_runpath(elf));
    cr_expect_geq(shk_elf_needed_count(elf), 1);
    cr_expect_null(shk_elf_needed(elf, 1000));
    shk_elf_each_symbol(elf, count_symbol, &found);
    cr_expect_eq(found, 1);
    cr_expect_not(shk_elf_has_version_defs(elf));
    cr_expect_null(shk_elf_highest_version(elf, "FABRIC_1.0"));
    shk_elf_close(elf);
}

Test(elf, search_paths_inside)
{
    struct shk_elf *elf = NULL;
    cr_assert_eq(shk_elf_open(&elf, host, FAKES "/with_rpath/libnccl-net.so", NULL), 0);
    cr_expect_str_eq(shk_elf_rpath(elf), "$ORIGIN/../link_time_only");
    cr_expect_null(shk_elf_runpath(elf));
    shk_elf_close(elf);
    cr_assert_eq(shk_elf_open(&elf, host, FAKES "/with_runpath/libnccl-net.so", NULL), 0);
    cr_expect_str_eq(shk_elf_runpath(elf), "$ORIGIN/../link_time_only");
    cr_expect_null(shk_elf_rpath(elf));
    shk_elf_close(elf);
}

static int collect_need(const char *library, const char *version, bool weak, void *arg)
{
    if (strcmp(library, "libfabric.so.1") == 0) {
        cr_expect_str_eq(version, "FABRIC_1.10");
        cr_expect_not(weak);
        ++*(int *)arg;
    }
    return 0;
}

Test(elf, symbol_versions_needed_and_provided)
{
    struct shk_elf *elf = NULL;
    int needs = 0;
    cr_assert_eq(shk_elf_open(&elf, host, FAKES "/fabric_new/libfabric.so.1", NULL), 0);
    cr_expect(shk_elf_has_version_defs(elf));
    cr_expect(shk_elf_defines_version(elf, "FABRIC_1.6"));
    cr_expect(shk_elf_defines_version(elf, "FABRIC_1.10"));
    cr_expect_not(shk_elf_defines_version(elf, "FABRIC_1.1"));
    /* as numbers: 1.10 is above 1.6 */
    cr_expect_str_eq(shk_elf_highest_version(elf, "FABRIC_1.0"), "FABRIC_1.10");
    cr_expect_null(shk_elf_highest_version(elf, "GLIBC_2.2"));
    shk_elf_close(elf);
    cr_assert_eq(shk_elf_open(&elf, host, FAKES "/needs_new_fabric/libnccl-net.so", NULL), 0);
    shk_elf_each_version_need(elf, collect_need, &needs);
    cr_expect_eq(needs, 1);
    shk_elf_close(elf);
}

static int collect_string(const char *text, size_t len, void *arg)
{
    cr_expect_eq(strlen(text), len);
    cr_expect_geq(len, 6);
    *(int *)arg += strcmp(text, "NCCL_NET_PLUGIN") == 0;
    return 0;
}

Test(elf, strings_of_the_read_only_data)
{
    struct shk_elf *elf = NULL;
    int found = 0;
    cr_assert_eq(shk_elf_open(&elf, host, FAKES "/nccl/libnccl.so.2", NULL), 0);
    shk_elf_each_string(elf, 6, collect_string, &found);
    cr_expect_eq(found, 1);
    shk_elf_close(elf);
}

Test(elf, what_is_no_library_is_called_by_its_name)
{
    static const struct {
        const char *path, *text;
        int rc;
    } cases[] = {
        {.path = FAKES "/empty_file/libnccl-net.so", .text = "empty file", .rc = -ENOEXEC},
        {.path = FAKES "/text_file/libnccl-net.so",
         .text = "text file (\"GROUP ( /usr/lib/libnccl-net.so )\")",
         .rc = -ENOEXEC},
        {.path = FAKES "/truncated/libnccl-net.so", .text = "cut off", .rc = -ENODATA},
        {.path = FAKES "/executable/libnccl-net.so", .text = "not a shared object", .rc = -ENOEXEC},
        {.path = FAKES "/nowhere/libnccl-net.so", .text = "No such file", .rc = -ENOENT},
        {.path = FAKES, .text = "not a regular file", .rc = -EINVAL},
        {.path = "/dev/null", .text = "not a regular file", .rc = -EINVAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shk_elf *elf = NULL;
        struct shk_error err = {""};
        cr_expect_eq(shk_elf_open(&elf, host, cases[i].path, &err), cases[i].rc, "%s",
                     cases[i].path);
        cr_expect_null(elf);
        cr_expect_not_null(strstr(err.text, cases[i].text), "%s: '%s'", cases[i].path, err.text);
        shk_elf_close(elf);
    }
}

static int any_symbol(const struct shk_elf_symbol *symbol, void *arg)
{
    *(size_t *)arg += strlen(symbol->name);
    return 0;
}

static int any_need(const char *library, const char *version, bool weak, void *arg)
{
    *(size_t *)arg += strlen(library) + strlen(version) + weak;
    return 0;
}

static int any_def(const char *version, void *arg)
{
    *(size_t *)arg += strlen(version);
    return 0;
}

static int any_string(const char *text, size_t len, void *arg)
{
    *(size_t *)arg += (size_t)text[0] + len;
    return 0;
}

/* Reads all that an object has to tell; the sanitizers judge. */
static void read_everything(const char *path)
{
    struct shk_elf *elf = NULL;
    size_t sum = 0;
    if (shk_elf_open(&elf, host, path, NULL) != 0)
        return;
    shk_elf_each_symbol(elf, any_symbol, &sum);
    shk_elf_each_version_need(elf, any_need, &sum);
    shk_elf_each_version_def(elf, any_def, &sum);
    shk_elf_each_string(elf, 4, any_string, &sum);
    for (size_t i = 0; i < shk_elf_needed_count(elf); i++)
        sum += strlen(shk_elf_needed(elf, i));
    shk_elf_close(elf);
}

Test(elf, damaged_files_do_no_harm, .timeout = 300)
{
    static unsigned char data[1 << 20], copy[1 << 20];
    FILE *f = fopen(FAKES "/fabric_new/libfabric.so.1", "rb");
    cr_assert_not_null(f);
    size_t len = fread(data, 1, sizeof data, f);
    fclose(f);
    char path[128];
    snprintf(path, sizeof path, "%s/lib.so", capture_root);
    uint32_t seed = 12345;
    for (int round = 0; round < 400; round++) {
        memcpy(copy, data, len);
        size_t keep = len;
        for (int k = 0; k < 1 + round % 24; k++) {
            seed = seed * 1664525u + 1013904223u;
            /* headers and tables lie at both ends */
            size_t at = (seed >> 8) % (round % 2 ? 4096 : len);
            copy[round % 3 ? at : len - 1 - at] = (unsigned char)(seed >> 24);
        }
        if (round % 7 == 0)
            keep = (seed >> 4) % len;
        capture_put("lib.so", copy, keep);
        read_everything(path);
    }
    read_everything(FAKES "/fabric_new/libfabric.so.1");
}

Test(elf, machines)
{
    cr_expect_str_eq(shk_elf_machine_name(shk_elf_machine_of("x86_64")), "x86_64");
    cr_expect_str_eq(shk_elf_machine_name(shk_elf_machine_of("aarch64")), "aarch64");
    cr_expect_eq(shk_elf_machine_of("vax"), 0);
    cr_expect_eq(shk_elf_machine_of(NULL), 0);
    cr_expect_str_eq(shk_elf_machine_name(9999), "unknown");
}
