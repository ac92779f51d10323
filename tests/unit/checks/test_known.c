#include "checks/readers/known.h"

#include <criterion/criterion.h>

static struct shk_known *known_of(const char *const *names)
{
    struct shk_known *known = shk_known_create();
    for (; *names; names++)
        shk_known_add(known, *names);
    return known;
}

Test(known, nearest)
{
    static const char *const names[] = {"NCCL_DEBUG",         "NCCL_IB_HCA",
                                        "NCCL_IB_GID_INDEX",  "NCCL_NET_GDR_LEVEL",
                                        "NCCL_SOCKET_IFNAME", NULL};
    static const struct {
        const char *name, *want;
    } rows[] = {
        {"NCCL_DEBUGG", "NCCL_DEBUG"},
        {"nccl_debug", "NCCL_DEBUG"},
        {"NCCL_DBEUG", "NCCL_DEBUG"},
        {"NCCL_IFNAME_SOCKET", "NCCL_SOCKET_IFNAME"},
        {"NCCL_GDR_LEVEL", "NCCL_NET_GDR_LEVEL"},
        {"NCCL_NET_PLUGIN_GDR_LEVEL", "NCCL_NET_GDR_LEVEL"},
        {"NCCL_IFNAME", "NCCL_SOCKET_IFNAME"},
        {"NCCL_IB", "NCCL_IB_HCA"},
        {"NCCL_DEBUG", NULL},
        {"NCCL_WHATEVER", NULL},
        {"", NULL},
    };
    struct shk_known *known = known_of(names);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *near = shk_known_nearest(known, rows[i].name);
        if (rows[i].want)
            cr_expect_str_eq(near ? near : "(none)", rows[i].want, "%s", rows[i].name);
        else
            cr_expect_null(near, "%s", rows[i].name);
    }
    shk_known_destroy(known);
}

Test(known, has_what_was_added)
{
    struct shk_known *known = shk_known_create(), *all = shk_known_create();
    json_t *array = json_pack("[s, {s:s}, i, {}]", "FI_A", "name", "FI_B", 1);
    shk_known_add_array(known, array);
    cr_expect_eq(shk_known_count(known), 2);
    cr_expect(shk_known_has(known, "FI_B"));
    shk_known_add(known, "FI_0");
    shk_known_add(known, NULL);
    cr_expect(shk_known_has(known, "FI_0"), "also after the first question");
    cr_expect(shk_known_has(known, "FI_A"));
    cr_expect_not(shk_known_has(known, "FI_"));
    shk_known_add_all(all, known);
    cr_expect_eq(shk_known_count(all), 3);
    shk_known_destroy(known);
    cr_expect(shk_known_has(all, "FI_A"), "names are borrowed from the facts, not from a list");
    shk_known_destroy(all);
    json_decref(array);
}

Test(known, no_list_knows_nothing)
{
    struct shk_known *empty = shk_known_create();
    cr_expect_eq(shk_known_count(NULL), 0);
    cr_expect_not(shk_known_has(NULL, "X"));
    cr_expect_null(shk_known_nearest(NULL, "X"));
    cr_expect_not(shk_known_has(empty, "X"));
    cr_expect_null(shk_known_nearest(empty, "X"));
    shk_known_destroy(empty);
    shk_known_destroy(NULL);
}
