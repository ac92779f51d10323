#include "core/host/trust.h"
#include "core/run/dynlib.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder of root's below /tmp, which has the sticky bit:
 *   mine/lib.so   root, 0644      theirs/lib.so  root's file in a folder of user 1000
 *   open/lib.so   folder 0777     group/lib.so   folder 0775 of group 1000
 *   foreign.so    user 1000       writable.so    root, 0666
 *   to_mine, to_theirs, loop: links; sticky/lib.so  folder 1777 */
static char root[64];

static void put(const char *name, uid_t uid, mode_t mode)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    int fd = open(path, O_CREAT | O_WRONLY, mode);
    cr_assert_geq(fd, 0);
    cr_assert_eq(fchown(fd, uid, 0), 0);
    cr_assert_eq(fchmod(fd, mode), 0);
    close(fd);
}

static void folder(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
    char path[128], file[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    snprintf(file, sizeof file, "%s/lib.so", name);
    cr_assert_eq(mkdir(path, 0755), 0);
    put(file, 0, 0644);
    cr_assert_eq(chown(path, uid, gid), 0);
    cr_assert_eq(chmod(path, mode), 0);
}

static void point(const char *target, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    cr_assert_eq(symlink(target, path), 0);
}

static void begin(void)
{
    if (geteuid() != 0)
        cr_skip_test("needs root, to make files of other users");
    strcpy(root, "/tmp/shk-trust-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
    cr_assert_eq(chmod(root, 0755), 0);
    folder("mine", 0, 0, 0755);
    folder("theirs", 1000, 0, 0755);
    folder("open", 0, 0, 0777);
    folder("group", 0, 1000, 0775);
    folder("sticky", 0, 0, 01777);
    put("foreign.so", 1000, 0644);
    put("writable.so", 0, 0666);
    point("mine", "to_mine");
    point("theirs/../mine", "to_theirs");
    point("loop", "loop");
}

static void end(void)
{
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf %s", root);
    cr_assert(!*root || system(cmd) == 0);
}

TestSuite(trust, .init = begin, .fini = end, .timeout = 100);

Test(trust, what_others_can_change)
{
    static const struct {
        const char *path;
        int rc;
        const char *says;
    } cases[] = {
        {"mine/lib.so", 0, NULL},
        {"mine/../mine/./lib.so", 0, NULL},
        {"sticky/lib.so", 0, NULL}, /* others cannot take its place */
        {"to_mine/lib.so", 0, NULL},
        {"mine/not/there.so", 0, NULL}, /* and nobody but root can put it there */
        {"theirs/lib.so", -EPERM, "/theirs belongs to user 1000"},
        {"theirs/not/there.so", -EPERM, "/theirs belongs to user 1000"},
        {"open/lib.so", -EPERM, "/open is writable by everybody"},
        {"group/lib.so", -EPERM, "/group is writable by its group"},
        {"foreign.so", -EPERM, "/foreign.so belongs to user 1000"},
        {"writable.so", -EPERM, "/writable.so is writable by everybody"},
        {"to_theirs/lib.so", -EPERM, "/theirs belongs to user 1000"}, /* on the way only */
        {"loop/lib.so", -ELOOP, "loop"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[128];
        struct shk_error err = {""};
        snprintf(path, sizeof path, "%s/%s", root, cases[i].path);
        cr_expect_eq(shk_trust_path(path, &err), cases[i].rc, "%s: %s", path, err.text);
        cr_expect(!cases[i].says || strstr(err.text, cases[i].says), "%s: %s", path, err.text);
    }
    cr_assert_eq(chdir(root), 0);
    cr_expect_eq(shk_trust_path("mine/lib.so", NULL), 0);
    cr_expect_eq(shk_trust_path("theirs/lib.so", NULL), -EPERM);
}

Test(trust, lists_as_the_loader_reads_them)
{
    static const struct {
        const char *list; /* % is the folder */
        int rc;
    } cases[] = {
        {"", 0},
        {"%/mine", 0},
        {"%/mine:%/sticky", 0},
        {"%/mine:%/theirs", -EPERM},
        {"%/mine;%/theirs", -EPERM},
        {"@%/mine:+%/mine/lib.so", 0},
        {"@%/theirs", -EPERM},
        {"+%/theirs/lib.so", -EPERM},
        {"%/mine:", -EPERM}, /* an empty item is the current directory, theirs here */
        {":%/mine", -EPERM},
        {"$ORIGIN/../lib", 0},
        {"%/mine/$LIB", 0},
        {"%/theirs/$LIB", -EPERM},
    };
    char here[128];
    snprintf(here, sizeof here, "%s/theirs", root);
    cr_assert_eq(chdir(here), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char list[512] = "";
        for (const char *p = cases[i].list; *p; p++)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%.*s", *p == '%' ? 64 : 1,
                     *p == '%' ? root : p);
        struct shk_error err = {""};
        cr_expect_eq(shk_trust_list(list, ":;", &err), cases[i].rc, "%s: %s", list, err.text);
    }
}

static int opens(const char *name)
{
    const char *names[] = {name, NULL};
    const struct shk_library desc = {.names = names};
    struct shk_dynlib lib;
    struct shk_error err = {""};
    int rc = shk_dynlib_open(&lib, &desc, NULL, &err);
    cr_expect(rc != -EPERM || strstr(err.text, "root loads no library that others can change"),
              "%s", err.text);
    return rc;
}

Test(trust, root_opens_nothing_that_others_can_change)
{
    char path[128];
    snprintf(path, sizeof path, "%s/theirs", root);
    setenv("LD_LIBRARY_PATH", path, 1);
    cr_expect_eq(opens("libm.so.6"), 0, "the guard is off until it is asked for");
    shk_dynlib_guard(true);
    cr_expect_eq(opens("libm.so.6"), -EPERM);
    setenv("LD_LIBRARY_PATH", "/usr/lib", 1);
    cr_expect_eq(opens("libm.so.6"), 0);
    strcat(path, "/lib.so");
    cr_expect_eq(opens(path), -EPERM);
    setenv("NCCL_NET_PLUGIN", path, 1); /* concerns only those who read it */
    cr_expect_eq(opens("libm.so.6"), 0);
    cr_expect_eq(shk_dynlib_permitted("libnccl.so.2", NULL), -EPERM);
    setenv("NCCL_NET_PLUGIN", "ofi", 1);
    cr_expect_eq(shk_dynlib_permitted("libnccl.so.2", NULL), 0);
    shk_dynlib_guard(false);
    cr_expect_eq(opens(path), -ENOEXEC, "an empty file, but it was tried");
}

Test(trust, other_users_are_not_kept_from_anything)
{
    char path[128];
    snprintf(path, sizeof path, "%s/theirs", root);
    shk_dynlib_guard(true);
    setenv("LD_LIBRARY_PATH", path, 1);
    cr_assert_eq(seteuid(1000), 0);
    cr_expect_eq(opens("libm.so.6"), 0);
    cr_assert_eq(seteuid(0), 0);
}
