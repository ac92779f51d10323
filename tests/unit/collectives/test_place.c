#include "collectives/ranks/place.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct shk_host *open_tree(const char *path)
{
    struct shk_host *host = NULL;
    struct shk_error err = {{0}};

    cr_assert_eq(shk_host_open(&host, path, &err), 0, "%s", err.text);
    return host;
}

/* Four NUMA nodes of 16 cores with two hardware threads, and a network device on each. */
static struct shk_host *open_capture(void)
{
    return open_tree(SHK_BUILD_DIR "/captures/slingshot-amd");
}

Test(place, node_of_a_device)
{
    struct shk_host *host = open_capture();

    cr_expect_eq(shk_place_device_node(host, NULL, "cxi0"), 3);
    cr_expect_eq(shk_place_device_node(host, NULL, "cxi2"), 0);
    cr_expect_eq(shk_place_device_node(host, NULL, "hsn1"), 1, "an interface of such a device");
    cr_expect_eq(shk_place_device_node(host, NULL, "lo"), -1, "no device");
    cr_expect_eq(shk_place_device_node(host, NULL, "cxi9"), -1, "does not exist");
    cr_expect_eq(shk_place_device_node(host, NULL, "../../class/cxi/cxi0"), -1, "no path");
    cr_expect_eq(shk_place_device_node(host, "0000:ff:1f.7", "cxi1"), 1,
                 "the name when the address leads nowhere");
    cr_expect_eq(shk_place_device_node(host, NULL, NULL), -1);
    shk_host_close(host);
}

Test(place, node_of_a_cpu)
{
    struct shk_host *host = open_capture();

    cr_expect_eq(shk_place_cpu_node(host, 0), 0);
    cr_expect_eq(shk_place_cpu_node(host, 95), 1, "the last of a second range");
    cr_expect_eq(shk_place_cpu_node(host, 63), 3);
    cr_expect_eq(shk_place_cpu_node(host, 128), -1);
    shk_host_close(host);
}

static cpu_set_t cpus(int first, int last)
{
    cpu_set_t set;
    int cpu = 0;

    CPU_ZERO(&set);
    for (cpu = first; cpu <= last; cpu++) {
        CPU_SET((size_t)cpu, &set);
    }
    return set;
}

Test(place, near_a_device_each_rank_has_a_cpu_of_its_own)
{
    struct shk_host *host = open_capture();
    cpu_set_t all = cpus(0, 127);
    cpu_set_t used;
    unsigned i = 0;

    CPU_ZERO(&used);
    for (i = 0; i < 32; i++) {
        int cpu = shk_place_near(host, &all, 3, 32, i);

        cr_assert_geq(cpu, 0);
        cr_expect_eq(shk_place_cpu_node(host, cpu), 3, "rank %u on CPU %d", i, cpu);
        cr_expect_not(CPU_ISSET((size_t)cpu, &used), "CPU %d twice", cpu);
        CPU_SET((size_t)cpu, &used);
    }
    cr_expect_eq(shk_place_near(host, &all, 3, 33, 0), -1, "more ranks than CPUs there");
    cr_expect_eq(shk_place_near(host, &all, 7, 1, 0), -1, "no such node");
    all = cpus(0, 47);
    cr_expect_eq(shk_place_near(host, &all, 3, 1, 0), -1, "none of them may be used");
    shk_host_close(host);
}

/* A tree in which the first CPU is on node 0, the second on node 1. */
struct two_nodes {
    char root[64];
    int cpu[2];
    cpu_set_t allowed;
};

static void make_file(const char *root, const char *path, int value)
{
    char name[256];
    char *at = NULL;
    FILE *file = NULL;

    snprintf(name, sizeof(name), "%s/%s", root, path);
    for (at = strchr(name + strlen(root) + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(name, 0755);
        *at = '/';
    }
    file = fopen(name, "w");
    cr_assert_not_null(file);
    fprintf(file, "%d\n", value);
    fclose(file);
}

static void make_two_nodes(struct two_nodes *two)
{
    int count = 0;
    int cpu = 0;

    cr_assert_eq(sched_getaffinity(0, sizeof(two->allowed), &two->allowed), 0);
    if (CPU_COUNT(&two->allowed) < 2) {
        cr_skip_test("needs two CPUs");
    }
    for (cpu = 0; count < 2; cpu++) {
        if (CPU_ISSET((size_t)cpu, &two->allowed)) {
            two->cpu[count++] = cpu;
        }
    }
    CPU_ZERO(&two->allowed);
    CPU_SET((size_t)two->cpu[0], &two->allowed);
    CPU_SET((size_t)two->cpu[1], &two->allowed);
    snprintf(two->root, sizeof(two->root), "/dev/shm/shk-place-XXXXXX");
    cr_assert_not_null(mkdtemp(two->root));
    make_file(two->root, "sys/devices/system/node/node0/cpulist", two->cpu[0]);
    make_file(two->root, "sys/devices/system/node/node1/cpulist", two->cpu[1]);
}

static void remove_two_nodes(const struct two_nodes *two)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", two->root);
    cr_assert_eq(system(command), 0);
}

/* Where a process ends up that was started on the first CPU; -1: on none in particular. */
static int placed(const struct two_nodes *two, bool bind, int nic_node, unsigned ranks,
                  struct shk_place *place)
{
    struct shk_host *host = open_tree(two->root);
    int fds[2];
    pid_t pid = 0;
    int status = 0;

    cr_assert_eq(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        struct shk_place made;
        cpu_set_t now;

        if (bind) {
            shk_place_bind(two->cpu[0]);
        }
        shk_place_rank(host, &two->allowed, nic_node, ranks, 0, &made);
        sched_getaffinity(0, sizeof(now), &now);
        (void)!write(fds[1], &made, sizeof(made));
        _exit(CPU_COUNT(&now) > 1 ? 2 : CPU_ISSET((size_t)two->cpu[1], &now) ? 1 : 0);
    }
    cr_assert_gt(pid, 0);
    cr_assert_eq(read(fds[0], place, sizeof(*place)), (ssize_t)sizeof(*place));
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    close(fds[0]);
    close(fds[1]);
    shk_host_close(host);
    return WEXITSTATUS(status) == 2 ? -1 : two->cpu[WEXITSTATUS(status)];
}

Test(place, rank_moves_to_the_node_of_the_device, .timeout = 300)
{
    struct two_nodes two;
    struct shk_place place;

    make_two_nodes(&two);
    cr_expect_eq(placed(&two, true, 1, 1, &place), two.cpu[1], "%s", place.how);
    cr_expect_eq(place.cpu, two.cpu[1]);
    cr_expect_eq(place.node, 1);
    cr_expect_not_null(strstr(place.how, "moved from CPU"), "%s", place.how);
    cr_expect_eq(placed(&two, true, 0, 1, &place), two.cpu[0], "is there already");
    cr_expect_str_eq(place.how, "on the device's NUMA node");
    cr_expect_eq(placed(&two, true, 1, 2, &place), two.cpu[0], "two ranks, one CPU");
    cr_expect_not_null(strstr(place.how, "too few CPUs for 2 ranks"), "%s", place.how);
    cr_expect_eq(placed(&two, true, -1, 1, &place), two.cpu[0]);
    cr_expect_not_null(strstr(place.how, "reports no NUMA node"), "%s", place.how);
    remove_two_nodes(&two);
}

Test(place, binding_of_a_launcher_is_kept, .timeout = 300)
{
    struct two_nodes two;
    struct shk_place place;

    make_two_nodes(&two);
    cr_expect_eq(placed(&two, false, 1, 1, &place), -1, "%s", place.how);
    cr_expect_eq(place.cpu, -1);
    cr_expect_str_eq(place.how, "left where it was started: on any of 2 CPUs");
    CPU_CLR((size_t)two.cpu[1], &two.allowed); /* the launcher's choice is one CPU */
    cr_expect_eq(placed(&two, true, 1, 1, &place), two.cpu[0]);
    cr_expect_eq(place.nic_node, 1);
    cr_expect_not_null(strstr(place.how, "left where it was started"), "%s", place.how);
    remove_two_nodes(&two);
}
