#include "libs_support.h"
#include "probes/library/elfdeps.h"
#include "probes/library/ldcache.h"
#include "probes/library/ldsearch.h"
#include "probes/library/libcopies.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(ldsearch, .init = capture_begin, .fini = capture_end);

/* A loader cache with one entry per pair {name, path}, as ldconfig lays it out. */
static size_t make_cache(unsigned char *out, const char *const *pairs, size_t n, bool old_in_front)
{
    size_t front = old_in_front ? 64 : 0, entries = front + 48, strings = entries + 24 * n;
    memset(out, 0, strings);
    if (old_in_front)
        memcpy(out, "ld.so-1.7.0", 11);
    memcpy(out + front, "glibc-ld.so.cache1.1", 20);
    memcpy(out + front + 20, &(uint32_t){(uint32_t)n}, 4);
    for (size_t i = 0; i < n; i++) {
        unsigned char *entry = out + entries + 24 * i;
        uint32_t at[2];
        memcpy(entry, &(int32_t){0x303}, 4);
        for (int k = 0; k < 2; k++) {
            const char *text = pairs[2 * i + (size_t)k];
            at[k] = (uint32_t)(strings - front);
            strcpy((char *)out + strings, text);
            strings += strlen(text) + 1;
        }
        memcpy(entry + 4, at, 8);
    }
    return strings;
}

static void put_cache(const char *const *pairs, size_t n)
{
    static unsigned char cache[8192];
    capture_put("etc/ld.so.cache", cache, make_cache(cache, pairs, n, false));
}

static void find(const char *name, const char *asker_path, char *buf, size_t size)
{
    struct shk_host *host;
    struct shk_ldsearch *search;
    struct shk_ldsearch_hit hit;
    struct shk_elf *elf = NULL;
    cr_assert_eq(shk_host_open(&host, capture_root, NULL), 0);
    cr_assert_eq(shk_ldsearch_create(&search, host, NULL), 0);
    if (asker_path)
        cr_assert_eq(shk_elf_open(&elf, host, asker_path, NULL), 0);
    struct shk_ldsearch_asker asker = {.elf = elf, .path = asker_path};
    int rc = shk_ldsearch_find(search, name, asker_path ? &asker : NULL, &hit);
    if (rc)
        snprintf(buf, size, "%d", rc);
    else
        snprintf(buf, size, "%s %s", hit.via, hit.path);
    shk_elf_close(elf);
    shk_ldsearch_destroy(search);
    shk_host_close(host);
}

#define EXPECT_FOUND(name, asker, expected)                                                        \
    do {                                                                                           \
        char got_[1200];                                                                           \
        find(name, asker, got_, sizeof got_);                                                      \
        cr_expect_str_eq(got_, expected, "%s: got '%s'", name, got_);                              \
    } while (0)

static const char good[] = FAKES "/good_v8/libnccl-net.so";

Test(ldsearch, order_of_places)
{
    static const char *const pairs[] = {"libx.so", "/opt/cached/libx.so", "liby.so",
                                        "/opt/cached/liby.so"};
    put_cache(pairs, 2);
    capture_environ("{\"LD_LIBRARY_PATH\": \"/first:/second;/third\"}");
    capture_copy("opt/cached/libx.so", good);
    capture_copy("opt/cached/liby.so", good);
    capture_copy("usr/lib/libx.so", good);
    capture_copy("usr/lib/libz.so", good);
    EXPECT_FOUND("libz.so", NULL, "default /usr/lib/libz.so");
    EXPECT_FOUND("libx.so", NULL, "ld.so.cache /opt/cached/libx.so");
    capture_copy("third/libx.so", good);
    EXPECT_FOUND("libx.so", NULL, "LD_LIBRARY_PATH /third/libx.so");
    capture_copy("first/libx.so", good);
    EXPECT_FOUND("libx.so", NULL, "LD_LIBRARY_PATH /first/libx.so");
    EXPECT_FOUND("liby.so", NULL, "ld.so.cache /opt/cached/liby.so");
    EXPECT_FOUND("/opt/cached/liby.so", NULL, "path /opt/cached/liby.so");
    EXPECT_FOUND("/opt/liby.so", NULL, "-2");
    EXPECT_FOUND("libnone.so", NULL, "-2");
    EXPECT_FOUND("", NULL, "-2");
}

Test(ldsearch, rpath_beats_the_variable_and_runpath_does_not)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/module\"}");
    capture_copy("p/with_rpath/plugin.so", FAKES "/with_rpath/libnccl-net.so");
    capture_copy("p/with_runpath/plugin.so", FAKES "/with_runpath/libnccl-net.so");
    capture_copy("p/link_time_only/libshk-gone.so", good);
    EXPECT_FOUND("libshk-gone.so", "/p/with_rpath/plugin.so",
                 "RPATH /p/with_rpath/../link_time_only/libshk-gone.so");
    EXPECT_FOUND("libshk-gone.so", "/p/with_runpath/plugin.so",
                 "RUNPATH /p/with_runpath/../link_time_only/libshk-gone.so");
    capture_copy("module/libshk-gone.so", good);
    EXPECT_FOUND("libshk-gone.so", "/p/with_rpath/plugin.so",
                 "RPATH /p/with_rpath/../link_time_only/libshk-gone.so");
    EXPECT_FOUND("libshk-gone.so", "/p/with_runpath/plugin.so",
                 "LD_LIBRARY_PATH /module/libshk-gone.so");
}

Test(ldsearch, another_machine_is_passed_over_but_text_is_taken)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/wrong:/text:/right\"}");
    capture_copy("wrong/libx.so", FAKES "/wrong_machine/libnccl-net.so");
    capture_copy("right/libx.so", good);
    EXPECT_FOUND("libx.so", NULL, "LD_LIBRARY_PATH /right/libx.so");
    capture_text("text/libx.so", "INPUT(libother.so)\n");
    EXPECT_FOUND("libx.so", NULL, "LD_LIBRARY_PATH /text/libx.so");
    EXPECT_FOUND("/wrong/libx.so", NULL, "path /wrong/libx.so");
}

Test(ldsearch, cache_with_the_old_table_in_front)
{
    static const char *const pairs[] = {"libx.so", "/opt/libx.so"};
    static unsigned char cache[4096];
    capture_put("etc/ld.so.cache", cache, make_cache(cache, pairs, 1, true));
    capture_copy("opt/libx.so", good);
    capture_environ("{}");
    EXPECT_FOUND("libx.so", NULL, "ld.so.cache /opt/libx.so");
}

static int count_entry(const char *path, void *arg)
{
    cr_expect_eq(path[0], '/');
    ++*(int *)arg;
    return 0;
}

Test(ldsearch, damaged_caches)
{
    static const char *const pairs[] = {"libx.so", "/opt/libx.so", "libx.so", "/opt/liby.so"};
    static unsigned char cache[4096];
    struct shk_host *host;
    struct shk_ldcache *c = NULL;
    struct shk_error err = {""};
    size_t len = make_cache(cache, pairs, 2, false);
    int seen = 0;
    cr_assert_eq(shk_host_open(&host, capture_root, NULL), 0);
    cr_expect_eq(shk_ldcache_read(&c, host, "/etc/ld.so.cache", &err), -ENOENT);

    capture_put("etc/ld.so.cache", cache, len);
    cr_assert_eq(shk_ldcache_read(&c, host, "/etc/ld.so.cache", &err), 0, "%s", err.text);
    shk_ldcache_each(c, "libx.so", count_entry, &seen);
    cr_expect_eq(seen, 2);
    shk_ldcache_destroy(c);

    memset(cache + 20, 0xff, 4); /* more entries than bytes */
    capture_put("etc/ld.so.cache", cache, len);
    cr_expect_eq(shk_ldcache_read(&c, host, "/etc/ld.so.cache", &err), -EPROTO);
    cr_expect_not_null(strstr(err.text, "do not fit"), "%s", err.text);

    make_cache(cache, pairs, 2, false);
    memset(cache + 48 + 4, 0xff, 4);                /* a name far outside */
    capture_put("etc/ld.so.cache", cache, len - 3); /* and the last path without its end */
    cr_assert_eq(shk_ldcache_read(&c, host, "/etc/ld.so.cache", &err), 0);
    seen = 0;
    shk_ldcache_each(c, "libx.so", count_entry, &seen);
    cr_expect_eq(seen, 0);
    shk_ldcache_destroy(c);

    capture_text("etc/ld.so.cache", "ld.so-1.7.0");
    cr_expect_eq(shk_ldcache_read(&c, host, "/etc/ld.so.cache", &err), -EPROTO);
    capture_text("etc/ld.so.cache", "");
    cr_expect_eq(shk_ldcache_read(&c, host, "/etc/ld.so.cache", &err), -EPROTO);
    cr_expect_eq(shk_ldcache_each(NULL, "libx.so", count_entry, &seen), 0);
    shk_host_close(host);
}

static void walk(const char *path, json_t **needed_p, json_t **problems_p)
{
    struct shk_host *host;
    struct shk_ldsearch *search;
    struct shk_elf *elf;
    cr_assert_eq(shk_host_open(&host, capture_root, NULL), 0);
    cr_assert_eq(shk_ldsearch_create(&search, host, NULL), 0);
    cr_assert_eq(shk_elf_open(&elf, host, path, NULL), 0);
    cr_assert_eq(shk_elfdeps_walk(search, elf, path, NULL, needed_p, problems_p, NULL), 0);
    shk_elf_close(elf);
    shk_ldsearch_destroy(search);
    shk_host_close(host);
}

static const char *problem(const json_t *problems, const char *library, const char *member)
{
    size_t i;
    json_t *row;
    json_array_foreach(problems, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "library"));
        const char *text = json_string_value(json_object_get(row, member));
        if (name && strcmp(name, library) == 0)
            return text ? text : "";
    }
    return "";
}

Test(ldsearch, newer_symbol_version_than_the_installed_library)
{
    json_t *needed, *problems;
    capture_environ("{\"LD_LIBRARY_PATH\": \"/fabric\"}");
    capture_copy("p/plugin.so", FAKES "/needs_new_fabric/libnccl-net.so");
    capture_copy("fabric/libfabric.so.1", FAKES "/fabric_old/libfabric.so.1");
    walk("/p/plugin.so", &needed, &problems);
    cr_expect_str_eq(problem(problems, "libfabric.so.1", "kind"), "version");
    cr_expect_str_eq(problem(problems, "libfabric.so.1", "version"), "FABRIC_1.10");
    cr_expect_str_eq(problem(problems, "libfabric.so.1", "provides"), "FABRIC_1.6");
    cr_expect_str_eq(problem(problems, "libfabric.so.1", "path"), "/fabric/libfabric.so.1");
    cr_expect_not_null(strstr(problem(problems, "libfabric.so.1", "text"),
                              "/p/plugin.so needs symbol version FABRIC_1.10 of libfabric.so.1, "
                              "but /fabric/libfabric.so.1 provides at most FABRIC_1.6"));
    json_decref(needed);
    json_decref(problems);

    capture_copy("fabric/libfabric.so.1", FAKES "/fabric_new/libfabric.so.1");
    walk("/p/plugin.so", &needed, &problems);
    cr_expect_str_eq(problem(problems, "libfabric.so.1", "kind"), "");
    json_decref(needed);
    json_decref(problems);
}

Test(ldsearch, missing_and_invalid_dependencies)
{
    json_t *needed, *problems;
    capture_environ("{\"LD_LIBRARY_PATH\": \"/d\"}");
    capture_copy("p/plugin.so", FAKES "/missing_dependency/libnccl-net.so");
    walk("/p/plugin.so", &needed, &problems);
    cr_expect_str_eq(problem(problems, "libshk-gone.so", "kind"), "missing");
    cr_expect_not_null(strstr(problem(problems, "libshk-gone.so", "text"), "LD_LIBRARY_PATH=/d"));
    json_decref(needed);
    json_decref(problems);

    capture_text("d/libshk-gone.so", "");
    walk("/p/plugin.so", &needed, &problems);
    cr_expect_str_eq(problem(problems, "libshk-gone.so", "kind"), "invalid");
    cr_expect_not_null(strstr(problem(problems, "libshk-gone.so", "text"), "empty file"));
    json_decref(needed);
    json_decref(problems);

    /* one step further away: the dependency is there, what it needs is not */
    capture_copy("d/libshk-gone.so", FAKES "/needs_new_fabric/libnccl-net.so");
    walk("/p/plugin.so", &needed, &problems);
    cr_expect_str_eq(problem(problems, "libfabric.so.1", "kind"), "missing");
    cr_expect_str_eq(problem(problems, "libfabric.so.1", "by"), "/d/libshk-gone.so");
    json_decref(needed);
    json_decref(problems);
}

Test(ldsearch, copies_are_listed_once)
{
    static const char *const dirs[] = {"/opt/fab*/*/lib", NULL};
    struct shk_host *host;
    struct shk_ldsearch *search;
    struct shk_libcopies copies;
    char target[128];
    capture_environ("{\"LD_LIBRARY_PATH\": \"/m\"}");
    capture_copy("m/libfabric.so.1", FAKES "/fabric_old/libfabric.so.1");
    capture_copy("opt/fabric/1.22/lib/libfabric.so.1", FAKES "/fabric_new/libfabric.so.1");
    capture_text("opt/fabric/2.0/lib/libfabric.so.1", "broken");
    capture_text("opt/fabric/3.0/lib/other", "");
    snprintf(target, sizeof target, "%s/opt/fabric/default", capture_root);
    cr_assert_eq(symlink("1.22", target), 0);
    cr_assert_eq(shk_host_open(&host, capture_root, NULL), 0);
    cr_assert_eq(shk_ldsearch_create(&search, host, NULL), 0);
    cr_assert_eq(shk_libcopies_find(&copies, search, "libfabric.so.1", dirs, NULL), 0);
    cr_assert_eq(copies.count, 3);
    cr_expect_str_eq(copies.list[0].path, "/m/libfabric.so.1");
    cr_expect_str_eq(copies.list[0].via, "LD_LIBRARY_PATH");
    cr_expect(copies.list[0].loader);
    cr_expect_str_eq(copies.list[1].path, "/opt/fabric/1.22/lib/libfabric.so.1");
    cr_expect_str_eq(copies.list[1].via, "directory");
    cr_expect_not(copies.list[1].loader);
    cr_expect_null(copies.list[2].elf);
    cr_expect_not_null(strstr(copies.list[2].problem, "text file"));
    cr_expect_eq(shk_libcopies_chosen(&copies), &copies.list[0]);
    shk_libcopies_free(&copies);
    shk_ldsearch_destroy(search);
    shk_host_close(host);
}

static int note_obstacle(const struct shk_ldsearch_hit *hit, enum shk_file_state state,
                         const char *text, void *arg)
{
    char *out = arg;
    (void)text;
    sprintf(out + strlen(out), "%s%s %s", *out ? ", " : "", shk_file_state_name(state), hit->path);
    return 0;
}

/* What a search meets, in its order; and what is taken in the end. */
static void obstacles(const char *name, char *out)
{
    struct shk_host *host;
    struct shk_ldsearch *search;
    out[0] = '\0';
    cr_assert_eq(shk_host_open(&host, capture_root, NULL), 0);
    cr_assert_eq(shk_ldsearch_create(&search, host, NULL), 0);
    shk_ldsearch_each_obstacle(search, name, NULL, note_obstacle, out);
    shk_ldsearch_destroy(search);
    shk_host_close(host);
}

static void capture_link(const char *target, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", capture_root, name);
    cr_assert_eq(symlink(target, path), 0);
}

Test(ldsearch, what_cannot_be_opened_is_passed_over_and_told)
{
    char got[512];
    capture_environ("{\"LD_LIBRARY_PATH\": \"/a:/b:/c:/d\"}");
    capture_text("a/x", "");
    capture_text("b/x", "");
    capture_copy("c/libx.so", good);
    capture_text("d/libx.so", "never reached");
    capture_link("gone.so", "a/libx.so");
    capture_link("libx.so", "b/libx.so");
    obstacles("libx.so", got);
    cr_expect_str_eq(got, "dangling /a/libx.so, loop /b/libx.so");
    EXPECT_FOUND("libx.so", NULL, "LD_LIBRARY_PATH /c/libx.so");
    obstacles("/a/libx.so", got);
    cr_expect_str_eq(got, "dangling /a/libx.so");
    obstacles("/c/libx.so", got);
    cr_expect_str_eq(got, "");
    obstacles("libnone.so", got);
    cr_expect_str_eq(got, "");
}

/* open() succeeds there, so the loader searches no further. */
Test(ldsearch, a_directory_of_the_name_is_taken)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/a:/b\"}");
    capture_text("a/libx.so/readme", "");
    capture_copy("b/libx.so", good);
    EXPECT_FOUND("libx.so", NULL, "LD_LIBRARY_PATH /a/libx.so");
}

Test(ldsearch, a_file_without_permission_is_not_missing)
{
    char got[512], path[256];
    capture_environ("{\"LD_LIBRARY_PATH\": \"/a\"}");
    capture_copy("a/libx.so", good);
    snprintf(path, sizeof path, "%s/a/libx.so", capture_root);
    cr_assert_eq(chmod(path, 0), 0);
    cr_assert_eq(chmod(capture_root, 0755), 0);
    cr_assert(geteuid() != 0 || seteuid(65534) == 0);
    obstacles("libx.so", got);
    cr_expect_str_eq(got, "denied /a/libx.so");
    cr_assert(getuid() != 0 || seteuid(0) == 0);
}
