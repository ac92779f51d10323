#include "hosttree.h"
#include "libs_support.h"
#include "probes/host/leftover.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

TREE_SUITE(upkeep);

#define CLOCK "/sys/devices/system/clocksource/clocksource0"

static void healthy(void)
{
    tree_put(CLOCK "/current_clocksource", "tsc\n");
    tree_put(CLOCK "/available_clocksource", "tsc hpet acpi_pm\n");
    tree_put("/proc/self/mountinfo", "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
                                     "23 22 0:40 / /scratch rw shared:1 - lustre mgs@tcp:/fs rw\n"
                                     "24 22 0:41 / /home ro - nfs4 server:/home ro\n");
    tree_dir("/dev/shm");
    tree_put("/dev/shm/nccl-abc", "12345");
}

Test(upkeep, healthy)
{
    healthy();
    tree_run(&shk_probe_upkeep);
    expect_text("clock.source", "tsc");
    expect_json("mounts.remote", "[{\"mount\":\"/scratch\",\"type\":\"lustre\",\"answers\":null},"
                                 "{\"mount\":\"/home\",\"type\":\"nfs4\",\"answers\":null}]");
    expect_absent("munge.socket");
    cr_assert_eq(json_integer_value(json_object_get(tree_value("shm.files"), "count")), 1);
    cr_assert_str_eq(json_string_value(json_object_get(tree_value("shm.files"), "largest")),
                     "nccl-abc");
}

Test(upkeep, not_there)
{
    tree_dir("/sys/devices/system");
    tree_dir("/dev");
    tree_run(&shk_probe_upkeep);
    expect_absent("clock.source");
    expect_absent("shm.files");
    expect_failed("mounts.remote", "");
}

/* A capture has files, no sockets. */
Test(upkeep, munge)
{
    healthy();
    tree_dir("/run/munge");
    tree_run(&shk_probe_upkeep);
    expect_failed("munge.socket", "capture");
}

static bool even(long pid, void *arg)
{
    (void)arg;
    return pid > 0 && pid % 2 == 0;
}

/* Processes with even numbers run. */
Test(upkeep, segments)
{
    static const struct {
        const char *line;
        enum shk_segment want;
    } lines[] = {
        {"         0     32768   600  393216  4711  4713  0  1000 100 1000 100 1000 2000 900 4096 "
         "0",
         SHK_SEGMENT_LEFT},
        {"         0     32768   600  393216  4711     0  0  1000 100 1000 100 0 0 900 4096 0",
         SHK_SEGMENT_LEFT},
        {"         0     32768   600  393216  4711  4713  1  1000 100 1000 100 1000 2000 900 4096 "
         "0",
         SHK_SEGMENT_USED}, /* attached */
        {"         0     32768   600  393216  4712  4713  0  1000 100 1000 100 1000 2000 900 4096 "
         "0",
         SHK_SEGMENT_USED}, /* its maker runs */
        {"         0     32768   600  393216  4711  4714  0  1000 100 1000 100 1000 2000 900 4096 "
         "0",
         SHK_SEGMENT_USED}, /* who used it last runs */
        {"         0     32768   600  393216  4711  4713  0  1000 100 1000 100 1000 9990 900 4096 "
         "0",
         SHK_SEGMENT_USED}, /* a moment ago */
        {"         0     32768   600  393216     0  4713  0  1000 100 1000 100 1000 2000 900 4096 "
         "0",
         SHK_SEGMENT_UNKNOWN}, /* of another namespace */
        {"         0     32768   600  39321", SHK_SEGMENT_NONE},
        {"", SHK_SEGMENT_NONE},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct stat st;
        long id = 0;
        cr_expect_eq(shk_segment_of(lines[i].line, 10000, even, NULL, &st, &id), lines[i].want,
                     "%zu", i);
        if (lines[i].want == SHK_SEGMENT_LEFT)
            cr_expect(id == 32768 && st.st_uid == 1000 && st.st_blocks == 8);
    }
}

/* How many files are left over, and how many could not be told, with one more in /dev/shm. */
static void leftover(const char *name, int age, bool open_it, uid_t owner, long long *left_p,
                     long long *unread_p)
{
    char path[128];
    snprintf(path, sizeof path, "/dev/shm/%s.%d", name, (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    cr_assert(fd >= 0, "%s: %s", path, strerror(errno));
    struct timespec then[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    cr_assert_eq(ftruncate(fd, 8192), 0);
    cr_assert(!owner || fchown(fd, owner, owner) == 0);
    cr_assert_eq(futimens(fd, then), 0);
    if (!open_it)
        close(fd);
    struct shk_facts *facts = probe_facts(&shk_probe_upkeep, NULL, NULL, false, 0);
    json_t *value = shk_facts_get_object(facts, "shm.leftover"), *one;
    size_t i;
    *left_p = 0;
    *unread_p = json_integer_value(json_object_get(value, "unread"));
    json_array_foreach(json_object_get(value, "left"), i, one) *left_p +=
        json_integer_value(json_object_get(one, "count"));
    unlink(path);
    if (open_it)
        close(fd);
    shk_facts_destroy(facts);
}

/* Where other programs run, the numbers are compared with those without the file. */
Test(upkeep, left_over)
{
    long long none, left, unread, unknown;
    leftover("shk-data", 0, true, 0, &none, &unread);
    leftover("vader_segment.n1.3e8.a5f20001.0", 600, false, 0, &left, &unknown);
    cr_expect_eq(left, none + 1, "a library's, nobody has it open: %lld", left - none);
    leftover("vader_segment.n1.3e8.a5f20001.0", 600, true, 0, &left, &unknown);
    cr_expect_eq(left, none, "open");
    leftover("vader_segment.n1.3e8.a5f20001.0", 5, false, 0, &left, &unknown);
    cr_expect_eq(left, none, "fresh");
    leftover("shk-data", 600, false, 0, &left, &unknown);
    cr_expect_eq(left, none, "of an owner who runs something");
    if (geteuid() == 0) {
        leftover("shk-data", 600, false, 61234, &left, &unknown);
        cr_expect_eq(left + unknown, none + unread + 1, "of an owner who runs nothing");
    }
}
