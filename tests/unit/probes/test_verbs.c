#include "libs_support.h"
#include "probes/base/registry.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

/* A library that is already loaded under that name is the one that dlopen() then takes. */
static void preload(const char *kind)
{
    static const char *const names[] = {"libibverbs.so.1", "libefa.so.1"};
    for (size_t i = 0; i < 2; i++) {
        char path[512];
        snprintf(path, sizeof path, FAKES "/verbs_%s/%s", kind, names[i]);
        cr_assert_not_null(dlopen(path, RTLD_NOW | RTLD_LOCAL), "%s", dlerror());
    }
}

/* What the kernel lists: two EFA devices and a ConnectX. */
static struct shk_facts *verbs(const char *kind)
{
    struct shk_facts *known = shk_facts_create();
    json_t *rows =
        json_pack("[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}]", "name", "rdmap16s27", "driver", "efa",
                  "name", "rdmap32s27", "driver", "efa", "name", "mlx5_0", "driver", "mlx5_core");
    shk_facts_present(known, "rdma.devices", rows, NULL, "test");
    preload(kind);
    struct shk_facts *facts = probe_facts(&shk_probe_verbs, NULL, known, false, 0);
    shk_facts_destroy(known);
    return facts;
}

Test(verbs, devices_their_capabilities_and_fork)
{
    struct shk_facts *facts = verbs("plain");
    cr_expect_str_eq(
        fact_text(facts, "verbs.devices"),
        "[{\"max_rdma_size\":1073741824,\"name\":\"rdmap16s27\",\"opens\":true,"
        "\"rdma_read\":true,"
        "\"rdma_write\":true},{\"max_rdma_size\":1073741824,\"name\":"
        "\"rdmap32s27\",\"opens\":true,\"rdma_read\":true,\"rdma_write\":false},{\"name\":"
        "\"mlx5_0\",\"opens\":true}]");
    cr_expect_str_eq(fact_text(facts, "verbs.fork"), "\"unneeded\"");
    cr_expect_not_null(strstr(fact_text(facts, "verbs.path"), "verbs_plain/libibverbs.so.1"));
    shk_facts_destroy(facts);
}

/* Of ports that the kernel lists; one that the library does not answer for is unread. */
Test(verbs, what_goes_into_a_packet)
{
    struct shk_facts *known = shk_facts_create();
    json_t *rows = json_pack("[{s:s, s:s, s:[{s:i}]}, {s:s, s:s, s:[{s:i}, {s:i}]}]", "name",
                             "rdmap32s27", "driver", "efa", "ports", "port", 1, "name", "mlx5_0",
                             "driver", "mlx5_core", "ports", "port", 1, "port", 2);
    shk_facts_present(known, "rdma.devices", rows, NULL, "test");
    preload("plain");
    struct shk_facts *facts = probe_facts(&shk_probe_verbs, NULL, known, false, 0);
    json_t *list = shk_facts_get_array(facts, "verbs.devices");
    char *efa = json_dumps(json_object_get(json_array_get(list, 1), "ports"), JSON_SORT_KEYS);
    char *mlx = json_dumps(json_object_get(json_array_get(list, 2), "ports"), JSON_SORT_KEYS);
    cr_expect_str_eq(efa, "[{\"mtu\": 4096, \"mtu_max\": 4096, \"port\": 1}]");
    cr_expect_str_eq(mlx, "[{\"mtu\": 1024, \"mtu_max\": 4096, \"port\": 1}, "
                          "{\"mtu\": null, \"mtu_max\": null, \"port\": 2, \"problems\": {\"mtu\": "
                          "\"Invalid argument\", \"mtu_max\": \"Invalid argument\"}}]");
    free(efa);
    free(mlx);
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
}

Test(verbs, a_device_without_its_driver_is_not_listed)
{
    struct shk_facts *facts = verbs("no_driver");
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, "verbs.devices")), 1);
    shk_facts_destroy(facts);
}

Test(verbs, what_cannot_be_opened_says_why)
{
    struct shk_facts *facts = verbs("no_open");
    cr_expect_not_null(strstr(fact_text(facts, "verbs.devices"),
                              "\"problem\":\"ibv_open_device: Permission denied\""),
                       "%s", fact_text(facts, "verbs.devices"));
    cr_expect_null(strstr(fact_text(facts, "verbs.devices"), "rdma_read"));
    shk_facts_destroy(facts);
}

/* libibverbs answers with the error of the last place where it looked. */
Test(verbs, why_a_device_does_not_open_is_what_its_node_says)
{
    struct shk_facts *known = shk_facts_create();
    json_t *rows = json_pack("[{s:s, s:s, s:s}]", "name", "mlx5_0", "driver", "mlx5_core", "uverbs",
                             "uverbs_that_is_not_there");
    shk_facts_present(known, "rdma.devices", rows, NULL, "test");
    preload("no_open");
    struct shk_facts *facts = probe_facts(&shk_probe_verbs, NULL, known, false, 0);
    const char *told = fact_text(facts, "verbs.devices");
    cr_expect_not_null(strstr(told, "\"errno\":2,\"error\":\"No such file or directory\","
                                    "\"name\":\"mlx5_0\""),
                       "%s", told);
    cr_expect_not_null(strstr(told, "\"errno\":13"), "%s", told);
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
}

Test(verbs, an_old_library_cannot_tell_about_fork)
{
    struct shk_facts *facts = verbs("old");
    cr_expect_not_null(strstr(fact_text(facts, "verbs.fork"), "absent: libibverbs is older"));
    shk_facts_destroy(facts);
}

Test(verbs, captured_libraries_are_not_executed)
{
    capture_begin();
    struct shk_facts *facts = probe_facts(&shk_probe_verbs, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "verbs.path"), "failed: a captured library is not executed");
    cr_expect_str_eq(fact_text(facts, "verbs.devices"),
                     "failed: a captured library is not executed");
    shk_facts_destroy(facts);
    capture_end();
}

Test(verbs, without_devices_nothing_is_loaded)
{
    struct shk_facts *known = shk_facts_create();
    shk_facts_absent(known, "rdma.devices", "test", "none");
    struct shk_facts *facts = probe_facts(&shk_probe_verbs, NULL, known, false, 0);
    cr_expect_str_eq(fact_text(facts, "verbs.devices"), "absent: the kernel has no RDMA device");
    cr_expect_null(dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD));
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
}
