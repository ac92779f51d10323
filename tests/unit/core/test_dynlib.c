#include "core/run/dynlib.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct math_ops {
    double (*cos)(double);
    void (*nothing)(void);
};

Test(dynlib, opens_and_tells_the_path)
{
    static const char *const names[] = {"libnotthere.so.9", "libm.so.6", NULL};
    static const struct shk_symbol symbols[] = {
        {.name = "cos", .offset = offsetof(struct math_ops, cos)},
        {.name = "no_such", .offset = offsetof(struct math_ops, nothing), .optional = true},
        {0}};
    struct shk_library desc = {.names = names, .symbols = symbols};
    struct shk_dynlib lib = {0};
    struct math_ops ops = {0};
    struct shk_error err = {""};
    cr_assert_eq(shk_dynlib_open(&lib, &desc, &ops, &err), 0, "%s", err.text);
    cr_expect(strstr(lib.path, "/libm.so.6"), "%s", lib.path);
    cr_expect_float_eq(ops.cos(0), 1, 1e-12);
    cr_expect_null(ops.nothing);
    shk_dynlib_close(&lib, true);
    shk_dynlib_close(&lib, true);
}

Test(dynlib, says_what_is_missing_and_where_it_looked)
{
    static const char *const none[] = {"libnotthere.so.9", NULL};
    static const char *const libm[] = {"libm.so.6", NULL};
    static const struct shk_symbol symbols[] = {{.name = "vendor_v2", .since = "2.1"}, {0}};
    struct shk_dynlib lib;
    struct shk_error err = {""};
    void *ops = NULL;
    setenv("LD_LIBRARY_PATH", "/opt/nowhere", 1);
    struct shk_library desc = {.names = none};
    cr_expect_eq(shk_dynlib_open(&lib, &desc, &ops, &err), -ENOENT);
    cr_expect(strstr(err.text, "libnotthere.so.9: not found in LD_LIBRARY_PATH=/opt/nowhere"), "%s",
              err.text);
    desc = (struct shk_library){.names = libm, .symbols = symbols};
    cr_expect_eq(shk_dynlib_open(&lib, &desc, &ops, &err), -ENOSYS);
    cr_expect(strstr(err.text, "has no symbol vendor_v2, which came with version 2.1"), "%s",
              err.text);
}

Test(dynlib, a_file_that_is_no_library_is_not_called_missing)
{
    char path[] = "/tmp/shk-lib-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_eq(write(fd, "text", 4), 4);
    close(fd);
    const char *names[] = {path, NULL};
    struct shk_library desc = {.names = names};
    struct shk_dynlib lib;
    struct shk_error err = {""};
    cr_expect_eq(shk_dynlib_open(&lib, &desc, NULL, &err), -ENOEXEC);
    cr_expect(strstr(err.text, "does not load"), "%s", err.text);
    unlink(path);
}

/* A crash of a rank must look like one, whatever a library thinks of it. */
Test(dynlib, fatal_signals_stay_ours)
{
    static const char *const names[] = {SHK_BUILD_DIR "/tests/fakes/handlers/libshk-handlers.so",
                                        NULL};
    struct shk_library desc = {.names = names};
    struct shk_dynlib lib = {0};
    struct shk_error err = {""};
    struct sigaction segv, abrt, now;
    void *ops = NULL;
    sigaction(SIGSEGV, NULL, &segv);
    sigaction(SIGABRT, NULL, &abrt);
    cr_assert_eq(shk_dynlib_open(&lib, &desc, &ops, &err), 0, "%s", err.text);
    sigaction(SIGSEGV, NULL, &now);
    cr_expect_eq(now.sa_handler, segv.sa_handler);
    sigaction(SIGABRT, NULL, &now);
    cr_expect_eq(now.sa_handler, abrt.sa_handler);
    sigaction(SIGUSR2, NULL, &now); /* it was loaded, and does so */
    cr_expect_neq(now.sa_handler, SIG_DFL);
    shk_dynlib_close(&lib, false);
}
