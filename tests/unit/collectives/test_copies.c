/* Copy engines, against the stand-in for the driver, and the PCIe link above a GPU from a tree. */
#include "collectives/gpu/load/gpu_copies.h"
#include "core/facts/facts.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const cuda[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libcuda.so.1", NULL};
static char root[64];

static void begin(void)
{
    strcpy(root, "/tmp/shk-copies-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

static void end(void)
{
    char command[96];

    snprintf(command, sizeof command, "rm -rf %s", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(copies, .init = begin, .fini = end, .timeout = 600);
TestSuite(copies_long, .init = begin, .fini = end, .timeout = 600);

static void put(const char *folder, const char *name, const char *text)
{
    char path[256];
    FILE *file = NULL;

    snprintf(path, sizeof path, "%s/sys/devices/%s/%s", root, folder, name);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void put_link(const char *folder, const char *speed, const char *width, const char *most)
{
    const char *addr = strrchr(folder, '/') + 1;
    char target[256], link[256];

    put(folder, "current_link_speed", speed);
    put(folder, "current_link_width", width);
    put(folder, "max_link_speed", most);
    snprintf(link, sizeof link, "%s/sys/bus", root);
    (void)mkdir(link, 0755);
    snprintf(link, sizeof link, "%s/sys/bus/pci", root);
    (void)mkdir(link, 0755);
    snprintf(link, sizeof link, "%s/sys/bus/pci/devices", root);
    (void)mkdir(link, 0755);
    snprintf(link, sizeof link, "%s/sys/bus/pci/devices/%s", root, addr);
    snprintf(target, sizeof target, "../../../devices/%s", folder);
    cr_assert_eq(symlink(target, link), 0);
}

#define PORT "pci0000:15/0000:15:01.0"
#define UP   PORT "/0000:16:00.0"
#define DOWN UP "/0000:17:00.0"
#define CARD DOWN "/0000:18:00.0"

static bool look(struct gpu_link *link)
{
    struct shk_host *host = NULL;

    cr_assert_eq(shk_host_open(&host, root, NULL), 0);
    bool found = gpu_link_read(host, "0000:18:00.0", link);
    shk_host_close(host);
    return found;
}

/* The narrowest link on the way counts, the GPU's own when all are the same. */
Test(copies, link)
{
    struct gpu_link link;

    put_link(PORT, "32.0 GT/s PCIe\n", "16\n", "32.0 GT/s PCIe\n");
    put_link(UP, "32.0 GT/s PCIe\n", "16\n", "32.0 GT/s PCIe\n");
    put_link(DOWN, "32.0 GT/s PCIe\n", "16\n", "32.0 GT/s PCIe\n");
    put_link(CARD, "32.0 GT/s PCIe\n", "16\n", "32.0 GT/s PCIe\n");
    cr_assert(look(&link));
    cr_expect_str_eq(link.at, "0000:18:00.0", "%s", link.at);
    cr_expect_float_eq(link.gbs, 63.0, 0.1);
    cr_expect_float_eq(link.most, 32.0, 0.01);
    put(UP, "current_link_speed", "16.0 GT/s PCIe\n");
    cr_assert(look(&link));
    cr_expect_str_eq(link.at, "0000:16:00.0", "%s", link.at);
    cr_expect_float_eq(link.gbs, 31.5, 0.1);
    cr_expect_float_eq(link.most, 32.0, 0.01);
    put(PORT, "max_link_speed", "16.0 GT/s PCIe\n");
    cr_assert(look(&link));
    cr_expect_float_eq(link.most, 16.0, 0.01);
}

/* What the kernel does not know is not known here. */
Test(copies, no_link)
{
    struct gpu_link link;

    put_link("pci0000:15/0000:18:00.0", "Unknown\n", "0\n", "Unknown\n");
    cr_assert_not(look(&link));
    end();
    begin();
    cr_assert_not(look(&link));
}

Test(copies, rates)
{
    cr_expect_float_eq(gpu_link_rate(2.5, 1), 0.25, 0.001);
    cr_expect_float_eq(gpu_link_rate(5, 16), 8.0, 0.001);
    cr_expect_float_eq(gpu_link_rate(8, 16), 15.75, 0.01);
    cr_expect_float_eq(gpu_link_rate(64, 16), 121.0, 0.1);
}

static unsigned stress_ms;

static struct shk_facts *run(const char *fault, const char *room)
{
    struct shk_collective_options options = {.ranks = 2,
                                             .min_bytes = 1 << 20,
                                             .max_bytes = 1 << 20,
                                             .deadline_ms = 120000,
                                             .brief = true,
                                             .stress_ms = stress_ms};
    struct shk_gpu_tweaks tweaks = {.driver_names = cuda, .image = "kernels", .copies_shift = 4};
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};

    setenv("SHK_FAKE_GPUS", "2", 1);
    setenv("SHK_FAKE_FAULT", fault, 1);
    setenv("SHK_FAKE_FREE", room, 1);
    cr_assert_eq(shk_gpu_run(&shk_transport_peer, &options, &tweaks, facts, &err), 0, "%s",
                 err.text);
    cr_assert_str_eq(shk_facts_get_text(facts, "collective.peer.status"), "ok", "%s",
                     shk_facts_get_text(facts, "collective.peer.reason"));
    return facts;
}

static double gpu_rate(const struct shk_facts *facts, size_t gpu, const char *member)
{
    json_t *node = json_array_get(shk_facts_get_array(facts, "collective.peer.copies"), 0);

    return json_number_value(
        json_object_get(json_array_get(json_object_get(node, "gpus"), gpu), member));
}

/* Times are those of a machine that may have other work: tried again before it counts. */
static void expect_slower(const char *fault, const char *member, const char *room)
{
    double first = 0, second = 0;
    unsigned tries = 0;

    do {
        struct shk_facts *facts = run(fault, room);

        first = gpu_rate(facts, 0, member);
        second = gpu_rate(facts, 1, member);
        shk_facts_destroy(facts);
        cr_assert_gt(first, 0.0, "%s", fault);
        cr_assert_gt(second, 0.0, "%s", fault);
    } while (second >= 0.6 * first && ++tries < 6);
    cr_expect_lt(second, 0.6 * first, "%s: %f and %f GB/s", fault, first, second);
}

#define LITTLE "536870912"
#define MUCH   "4294967296"

Test(copies_long, slow_engines)
{
    expect_slower("slow-to-device", "to_device", LITTLE);
    expect_slower("slow-to-host", "to_host", LITTLE);
    expect_slower("slow-memory", "memory", MUCH);
}

/* Little memory is left to others; without pinned memory nothing goes over the link. */
Test(copies, not_measured)
{
    struct shk_facts *facts = run("no-pinned", LITTLE);
    json_t *node = json_array_get(shk_facts_get_array(facts, "collective.peer.copies"), 0);
    json_t *gpu = json_array_get(json_object_get(node, "gpus"), 0);

    cr_expect(json_is_null(json_object_get(gpu, "to_device")));
    cr_expect(json_is_null(json_object_get(gpu, "memory")));
    cr_expect_str_eq(json_string_value(json_object_get(gpu, "pci")), "0000:01:00.0");
    cr_expect_eq(json_array_size(json_object_get(node, "pairs")), 2);
    shk_facts_destroy(facts);
}

/* Load, and a GPU that alters what it copies. */
Test(copies_long, stress)
{
    stress_ms = 200;
    for (int wrong = 0; wrong < 2; wrong++) {
        struct shk_facts *facts = run(wrong ? "flip" : "", LITTLE);
        json_t *node = json_array_get(shk_facts_get_array(facts, "collective.peer.stress"), 0);

        for (size_t i = 0; i < 2; i++) {
            json_t *gpu = json_array_get(json_object_get(node, "gpus"), i);
            json_int_t bad = json_integer_value(json_object_get(gpu, "bad"));

            cr_expect_geq(json_integer_value(json_object_get(gpu, "rounds")), 1);
            cr_expect_gt(json_number_value(json_object_get(gpu, "first")), 0.0);
            cr_expect_eq(bad > 0, wrong && i == 1, "GPU %zu: %lld", i, (long long)bad);
        }
        shk_facts_destroy(facts);
    }
}
