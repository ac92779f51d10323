#include "core/run/readonce.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char file[] = "/proc/kallsyms";
static const char library[] = SHK_BUILD_DIR "/tests/fakes/kernel_symbols/libshk-kernel.so";

typedef FILE *opener(void);

/* Bytes that this process has read, by all its threads. */
static long long bytes_read(void)
{
    long long n = -1;
    FILE *f = fopen("/proc/self/io", "re");
    cr_assert(f && fscanf(f, "rchar: %lld", &n) == 1);
    fclose(f);
    return n;
}

static char *whole(FILE *f, size_t *len_p)
{
    size_t size = 64 << 20;
    char *text = malloc(size);
    cr_assert(f && text);
    *len_p = fread(text, 1, size, f);
    fclose(f);
    return text;
}

static opener *load(void)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    cr_assert(handle, "%s", dlerror());
    opener *open = NULL;
    *(void **)&open = dlsym(handle, "kernel_symbols");
    cr_assert(open);
    return open;
}

Test(readonce, a_library_reads_the_file_itself_unless_told)
{
    opener *open = load();
    FILE *f = open();
    cr_assert(f);
    cr_expect_geq(fileno(f), 0);
    fclose(f);
}

Test(readonce, the_file_is_read_once_and_before_it_is_asked_for, .timeout = 60)
{
    size_t len, first_len, second_len;
    FILE *f = fopen(file, "re");
    if (!f)
        cr_skip_test("no %s", file);
    char *text = whole(f, &len);
    long long start = bytes_read();
    shk_readonce_begin();
    opener *open = load();
    while (bytes_read() - start < (long long)len) /* by the thread; the test ends it when not */
        usleep(10000);
    shk_readonce_loaded();
    long long loaded = bytes_read();
    FILE *one = open(), *two = open();
    cr_assert(one && two);
    cr_expect_eq(fileno(one), -1, "not the copy");
    char *first = whole(one, &first_len), *second = whole(two, &second_len);
    cr_expect(first_len == len && memcmp(first, text, len) == 0);
    cr_expect(second_len == len && memcmp(second, text, len) == 0);
    cr_expect_lt(bytes_read() - loaded, 4096);
    free(first);
    free(second);
    free(text);
}

Test(readonce, nobody_reads_it_for_a_library_that_does_not)
{
    long long start = bytes_read();
    shk_readonce_begin();
    cr_assert(dlopen(SHK_BUILD_DIR "/tests/fakes/handlers/libshk-handlers.so", RTLD_NOW));
    usleep(50000);
    shk_readonce_loaded();
    cr_expect_lt(bytes_read() - start, 100000);
}

Test(readonce, the_first_who_asks_reads_it_when_nothing_was_loaded)
{
    size_t len;
    shk_readonce_begin();
    shk_readonce_loaded();
    FILE *one = fopen(file, "re"), *two = fopen(file, "r");
    if (!one)
        cr_skip_test("no %s", file);
    cr_expect_eq(fileno(one), -1);
    cr_expect_eq(fileno(two), -1);
    free(whole(one, &len));
    cr_expect_gt(len, 0);
    fclose(two);
}

Test(readonce, every_other_file_is_opened_as_ever)
{
    shk_readonce_begin();
    FILE *f = fopen("/proc/self/status", "re");
    cr_assert(f);
    cr_expect_geq(fileno(f), 0);
    fclose(f);
    f = fopen(file, "r+");
    cr_expect(!f || fileno(f) >= 0, "a copy is not for writing");
    if (f)
        fclose(f);
    cr_expect_null(fopen("/nonexistent/kallsyms", "r"));
    cr_expect_eq(errno, ENOENT);
}
