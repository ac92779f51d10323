#include "core/host/host.h"
#include "core/host/hostcall.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0755);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f, "%s", path);
    fputs(text, f);
    fclose(f);
}

static void link_to(const char *target, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    cr_assert_eq(symlink(target, path), 0);
}

static void setup(void)
{
    strcpy(root, "/tmp/shk-host-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

static void teardown(void)
{
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf %s", root);
    cr_assert_eq(system(cmd), 0);
}

TestSuite(host, .init = setup, .fini = teardown);

Test(host, links_never_leave_the_root)
{
    put("etc/passwd", "captured\n");
    put("sys/a", "1\n");
    link_to("/etc/passwd", "sys/abs");
    link_to("../../../../../../etc/passwd", "sys/rel");
    struct shk_host *host;
    char *line = NULL;
    cr_assert_eq(shk_host_open(&host, root, NULL), 0);
    cr_expect_not(shk_host_is_live(host));
    static const char *const names[] = {"abs", "rel"};
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(shk_host_line(host, &line, NULL, "/sys/%s", names[i]), 0);
        cr_expect_str_eq(line, "captured");
        free(line);
    }
    shk_host_close(host);
}

Test(host, refuses_what_is_no_regular_file, .timeout = 25)
{
    char path[256];
    struct shk_error err;
    struct shk_host *host;
    char *data;
    put("sys/x", "1");
    snprintf(path, sizeof path, "%s/sys/fifo", root);
    cr_assert_eq(mkfifo(path, 0644), 0);
    link_to("nowhere", "sys/dangling");
    cr_assert_eq(shk_host_open(&host, root, NULL), 0);
    cr_expect_eq(shk_host_read(host, "/sys/fifo", &data, NULL, &err), -EINVAL);
    cr_expect(strstr(err.text, "/sys/fifo: not a regular file"), "%s", err.text);
    cr_expect_eq(shk_host_read(host, "/sys", &data, NULL, &err), -EINVAL);
    cr_expect_eq(shk_host_read(host, "/sys/dangling", &data, NULL, &err), -ENOENT);
    cr_expect_eq(shk_host_read(host, "/sys/none", &data, NULL, &err), -ENOENT);
    shk_host_close(host);
}

Test(host, huge_file_is_refused_not_read)
{
    char path[256];
    struct shk_host *host;
    struct shk_error err;
    char *data;
    put("big", "");
    snprintf(path, sizeof path, "%s/big", root);
    cr_assert_eq(truncate(path, (off_t)SHK_HOST_MAX_READ + 1), 0);
    cr_assert_eq(shk_host_open(&host, root, NULL), 0);
    cr_expect_eq(shk_host_read(host, "/big", &data, NULL, &err), -EFBIG);
    shk_host_close(host);
}

Test(host, integers_are_whole_or_refused)
{
    struct shk_host *host;
    struct shk_error err = {""};
    long long v = 77;
    put("n/ok", "42\n");
    put("n/hex", "0x1F\n");
    put("n/neg", "-1\n");
    put("n/bad", "12abc\n");
    put("n/empty", "");
    cr_assert_eq(shk_host_open(&host, root, NULL), 0);
    cr_expect(shk_host_i64(host, &v, NULL, "/n/%s", "ok") == 0 && v == 42);
    cr_expect(shk_host_i64(host, &v, NULL, "/n/hex") == 0 && v == 31);
    cr_expect(shk_host_i64(host, &v, NULL, "/n/neg") == 0 && v == -1);
    v = 77;
    cr_expect_eq(shk_host_i64(host, &v, &err, "/n/bad"), -EINVAL);
    cr_expect(strstr(err.text, "12abc"), "%s", err.text);
    cr_expect_eq(shk_host_i64(host, &v, NULL, "/n/empty"), -EINVAL);
    cr_expect_eq(v, 77, "output untouched on failure");
    shk_host_close(host);
}

Test(host, lists_sort_numbers_as_numbers)
{
    struct shk_host *host;
    char **names;
    size_t n;
    put("d/cxi10", "");
    put("d/cxi2", "");
    put("d/cxi02", "");
    put("d/a", "");
    cr_assert_eq(shk_host_open(&host, root, NULL), 0);
    cr_assert_eq(shk_host_list(host, &names, &n, NULL, "/d"), 0);
    cr_assert_eq(n, 4);
    cr_expect_str_eq(names[0], "a");
    cr_expect_str_eq(names[1], "cxi02");
    cr_expect_str_eq(names[2], "cxi2");
    cr_expect_str_eq(names[3], "cxi10");
    shk_host_list_free(names);
    cr_expect_eq(shk_host_list(host, &names, &n, NULL, "/none"), -ENOENT);
    shk_host_close(host);
}

Test(host, bad_roots)
{
    struct shk_host *host = NULL;
    struct shk_error err;
    cr_expect_eq(shk_host_open(&host, "/no/such/dir", &err), -ENOENT);
    cr_expect(strstr(err.text, "sysroot /no/such/dir"), "%s", err.text);
    put(".shakedown/hostcalls.json", "{\"uname\": ");
    cr_expect_eq(shk_host_open(&host, root, &err), -EINVAL);
    cr_expect(strstr(err.text, "hostcalls.json:1:"), "%s", err.text);
    put(".shakedown/hostcalls.json", "[]");
    cr_expect_eq(shk_host_open(&host, root, &err), -EINVAL);
    cr_expect_null(host);
}

Test(host, captured_calls_and_nodes)
{
    struct shk_host *host;
    struct shk_error err = {""};
    json_t *value;
    put("dev/kfd", "");
    put("dev/cxi0", "");
    put(".shakedown/hostcalls.json",
        "{\"pagesize\": 4096, \"ids\": {\"uid\":1000,\"euid\":1000,\"gid\":100,\"groups\":[44]},"
        " \"nodes\": {\"/dev/kfd\": {\"mode\":\"0660\",\"uid\":0,\"gid\":44},"
        " \"/dev/cxi0\": {\"mode\":\"0600\",\"uid\":0,\"gid\":0}},"
        " \"environ\": {\"SHK_A\": \"captured\", \"SHK_B\": \"captured\"}}");
    setenv("SHK_B", "mine", 1);
    cr_assert_eq(shk_host_open(&host, root, &err), 0, "%s", err.text);
    cr_assert_eq(shk_hostcall(host, SHK_CALL_PAGESIZE, &value, NULL), 0);
    cr_expect_eq(json_integer_value(value), 4096);
    json_decref(value);
    cr_expect_eq(shk_hostcall(host, SHK_CALL_UNAME, &value, &err), -ENODATA);
    cr_expect(strstr(err.text, "not in the capture"), "%s", err.text);
    cr_assert_eq(shk_hostcall(host, SHK_CALL_ENVIRON, &value, NULL), 0);
    cr_expect_str_eq(json_string_value(json_object_get(value, "SHK_A")), "captured");
    cr_expect_str_eq(json_string_value(json_object_get(value, "SHK_B")), "mine");
    json_decref(value);
    cr_expect_str_eq(shk_host_getenv(host, "SHK_A"), "captured");
    cr_expect_eq(shk_host_access_rw(host, "/dev/kfd"), 0, "through its group");
    cr_expect_eq(shk_host_access_rw(host, "/dev/cxi0"), -EACCES);
    cr_expect_eq(shk_host_access_rw(host, "/dev/none"), -ENOENT);
    struct stat st;
    cr_assert_eq(shk_host_stat(host, "/dev/kfd", &st), 0);
    cr_expect(S_ISCHR(st.st_mode) && (st.st_mode & 07777) == 0660 && st.st_gid == 44);
    shk_host_close(host);
}

Test(host, live_calls_answer)
{
    struct shk_host *host;
    struct shk_error err = {""};
    cr_assert_eq(shk_host_open(&host, NULL, &err), 0);
    cr_expect(shk_host_is_live(host));
    for (int call = 0; call < SHK_CALL_COUNT; call++) {
        json_t *value = NULL;
        int rc = shk_hostcall(host, (enum shk_hostcall)call, &value, &err);
        cr_expect_eq(rc, 0, "%s: %s", shk_hostcall_name((enum shk_hostcall)call), err.text);
        cr_expect_not_null(value);
        json_decref(value);
    }
    shk_host_close(host);
}

/* The kernel's own list of interfaces: what it says of lo is the same everywhere. */
Test(host, live_links)
{
    json_t *value = NULL, *item;
    size_t i, links = 0;
    struct shk_host *host = NULL;
    cr_assert_eq(shk_host_open(&host, NULL, NULL), 0);
    cr_assert_eq(shk_hostcall(host, SHK_CALL_IFADDRS, &value, NULL), 0);
    json_array_foreach(value, i, item)
    {
        json_t *link = json_object_get(item, "link");
        links += json_is_object(link);
        cr_expect_null(json_object_get(link, "name"));
        if (strcmp(json_string_value(json_object_get(item, "name")), "lo") != 0)
            continue;
        cr_expect_eq(json_integer_value(json_object_get(link, "index")), 1);
        cr_expect_eq(json_integer_value(json_object_get(link, "type")), 772);
        cr_expect_gt(json_integer_value(json_object_get(link, "mtu")), 0);
        cr_expect_str_eq(json_string_value(json_object_get(link, "mac")), "00:00:00:00:00:00");
        cr_expect_not_null(json_object_get(link, "operstate"));
    }
    cr_expect_eq(links, json_array_size(value), "every interface has a link");
    json_decref(value);
    shk_host_close(host);
}

/* Anything that is not known to be the host's own is not: the look at a file there may hang. */
Test(host, mounts_are_local)
{
    static const struct {
        const char *more;
        bool local;
    } rows[] = {
        {"", true},
        {"23 21 0:9 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n", true},
        {"23 21 0:9 / /home rw - autofs /etc/auto.home rw\n", false},
        {"23 21 0:9 / /home rw,relatime shared:7 - nfs4 server:/home rw\n", false},
        {"23 21 0:9 / /pfs rw - lustre mds:/l rw\n", false},
        {"23 21 0:9 / /mnt rw - fuse.sshfs me@there: rw\n", false},
        {"23 21 0:9 / /mnt rw - ext5 /dev/sdb rw\n", false},
        {"23 21 0:9\n", false},
    };
    struct shk_host *host;
    cr_assert_eq(shk_host_open(&host, root, NULL), 0);
    cr_expect_not(shk_host_mounts_local(host), "it is not known what is mounted");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "21 1 8:1 / / rw - ext4 /dev/sda rw\n22 21 0:8 / /tmp rw - tmpfs none rw\n%s",
                 rows[i].more);
        put("proc/self/mountinfo", text);
        cr_expect_eq(shk_host_mounts_local(host), rows[i].local, "%s", rows[i].more);
    }
    shk_host_close(host);
}

Test(host, file_system_of_a_path)
{
    struct shk_host *host;
    json_t *fs;
    put("proc/self/mountinfo", "21 1 8:1 / / rw - ext4 /dev/sda rw\n"
                               "22 21 0:9 / /pfs rw,flock shared:1 - lustre mds:/l rw\n"
                               "23 21 0:9 / /my\\040dir rw - tmpfs none rw\n");
    put("pfs/u/x", "");
    put("my dir/y", "");
    cr_assert_eq(shk_host_open(&host, root, NULL), 0);
    static const struct {
        const char *path, *type;
    } rows[] = {{"/pfs/u/x", "lustre"},
                {"/pfs/u/not/yet/there", "lustre"},
                {"/pfsx", "ext4"},
                {"/etc", "ext4"},
                {"/my dir/y", "tmpfs"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert_eq(shk_hostcall_fs(host, rows[i].path, &fs, NULL), 0, "%s", rows[i].path);
        cr_expect_str_eq(json_string_value(json_object_get(fs, "type")), rows[i].type, "%s",
                         rows[i].path);
        json_decref(fs);
    }
    cr_expect_eq(shk_hostcall_fs(host, "relative", &fs, NULL), -ENOENT);
    shk_host_close(host);
}
