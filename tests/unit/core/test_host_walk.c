/* The walk for old kernels against openat2(), which it stands in for. */
#include "core/host/host_private.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char tree[] = "/tmp/shk-walk-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f, "%s", path);
    fputs(text, f);
    fclose(f);
}

static void folder(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    cr_assert_eq(mkdir(path, 0755), 0, "%s", path);
}

static void link_to(const char *name, const char *target)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    cr_assert_eq(symlink(target, path), 0, "%s", path);
}

static void setup(void)
{
    cr_assert_not_null(mkdtemp(tree));
    folder("a");
    folder("a/b");
    folder("etc");
    put("a/b/file", "deep");
    put("etc/passwd", "captured");
    link_to("up", "../../../../../../etc/passwd");
    link_to("absolute", "/etc/passwd");
    link_to("a/relative", "b/file");
    link_to("a/dir", "b/");
    link_to("dangling", "nowhere");
    link_to("loop", "loop");
    link_to("chain", "a/../up");
}

static void teardown(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", tree);
    cr_expect_eq(system(command), 0);
}

TestSuite(host_walk, .init = setup, .fini = teardown);

static void text_of(int fd, int error, char *text, size_t size)
{
    struct stat st;
    if (fd < 0) {
        snprintf(text, size, "errno %d", error);
        return;
    }
    fstat(fd, &st);
    ssize_t n = S_ISREG(st.st_mode) ? read(fd, text, size - 1) : -1;
    if (n >= 0)
        text[n] = '\0';
    else
        snprintf(text, size, "type %o, inode %lu", st.st_mode & S_IFMT, (unsigned long)st.st_ino);
    close(fd);
}

Test(host_walk, gives_what_openat2_gives)
{
    static const char *const paths[] = {
        "a/b/file", "a/b",       "a//b/./file", "a/b/../b/file", "..",         "../../etc/passwd",
        "up",       "absolute",  "a/relative",  "a/dir/file",    "a/dir",      "dangling",
        "loop",     "chain",     "nowhere",     "a/b/file/x",    "a/b/file/.", ".",
        "etc/",     "a/../../a", "a/nowhere/x", "dangling/x",
    };
    static const int flags[] = {O_RDONLY | O_NONBLOCK, O_PATH, O_PATH | O_NOFOLLOW,
                                O_RDONLY | O_DIRECTORY};
    int root = open(tree, O_PATH | O_DIRECTORY);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
            char expected[256] = "", got[256] = "";
            struct open_how how = {.flags = (unsigned)flags[f],
                                   .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
            int fd = (int)syscall(SYS_openat2, root, paths[i], &how, sizeof how);
            if (fd < 0 && (errno == ENOSYS || errno == EPERM))
                cr_skip_test("this kernel has no openat2() to compare with");
            text_of(fd, errno, expected, sizeof expected);
            fd = shk_host_walk(root, paths[i], flags[f]);
            text_of(fd, errno, got, sizeof got);
            cr_expect_str_eq(got, expected, "%s, flags %o: %s, not %s", paths[i],
                             (unsigned)flags[f], got, expected);
        }
    }
    close(root);
}

Test(host_walk, nothing_stays_open)
{
    int root = open(tree, O_PATH | O_DIRECTORY), before = dup(root), after;
    close(before);
    for (int i = 0; i < 100; i++) {
        int fd = shk_host_walk(root, i % 2 ? "a/dir/../b/file" : "a/b/file/x", O_RDONLY);
        if (fd >= 0)
            close(fd);
    }
    after = dup(root);
    cr_expect_eq(after, before);
    close(after);
    close(root);
}
