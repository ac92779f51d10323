#include "core/facts/factset.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct shk_diff_rule rules[] = {
    {.path = "host.name", .differs = SHK_DIFF_NODE},
    {.path = "net.ifaces.addrs", .differs = SHK_DIFF_NODE},
    {.path = "clock.*", .differs = SHK_DIFF_TIME},
    {.path = "host.memory", .differs = SHK_DIFF_NOISE, .percent = 5},
};

static const char first[] =
    "{\"schema\":\"shakedown.facts/1\",\"facts\":{"
    "\"clock.offset\":{\"state\":\"present\",\"value\":3},"
    "\"host.kernel\":{\"state\":\"present\",\"value\":\"6.1\"},"
    "\"host.memory\":{\"state\":\"present\",\"value\":1000},"
    "\"host.name\":{\"state\":\"present\",\"value\":\"n1\"},"
    "\"net.ifaces\":{\"state\":\"present\",\"value\":[{\"addrs\":[\"10.0.0.1\"],\"mtu\":1500}]}}}";

/* The first document with one text replaced by another. */
static void changed(char *buf, size_t size, const char *from, const char *to)
{
    const char *at = strstr(first, from);
    cr_assert_not_null(at, "%s", from);
    snprintf(buf, size, "%.*s%s%s", (int)(at - first), first, to, at + strlen(from));
}

Test(factset, what_differs)
{
    static const struct {
        const char *from, *to;
        bool same;
        const char *name;
    } cases[] = {
        {"\"n1\"", "\"n2\"", true, "n2"},
        {"\"value\":3}", "\"value\":99}", true, "n1"},
        {"10.0.0.1", "10.0.0.2", true, "n1"},
        {"\"value\":1000", "\"value\":1040", true, "n1"},
        {"\"value\":1000", "\"value\":500", false, "n1"},
        {"6.1", "5.9", false, "n1"},
        {"1500", "9000", false, "n1"},
        {"\"host.kernel\":{\"state\":\"present\",\"value\":\"6.1\"},", "", false, "n1"},
        {"\"state\":\"present\",\"value\":\"6.1\"", "\"state\":\"absent\"", false, "n1"},
        {"\"net.ifaces\":", "\"net.other\":1,\"net.ifaces\":", false, "n1"},
        {"{\"state\":\"present\",\"value\":\"6.1\"}", "61", false, "n1"},
        {"{\"state\":\"present\",\"value\":\"n1\"}", "\"n3\"", true, "n3"},
        {",\"host.name\"", ",  \"host.name\"", true, "n1"},
    };
    char key[SHK_FACTSET_KEY], mine[SHK_FACTSET_KEY], name[64], text[1024];
    size_t used = 0;
    struct shk_factset *set = shk_factset_create(rules, sizeof rules / sizeof *rules);
    cr_assert_eq(shk_factset_read(set, first, strlen(first), &used, key, name, sizeof name), 0);
    cr_assert_eq(used, strlen(first));
    cr_assert_str_eq(name, "n1");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        changed(text, sizeof text, cases[i].from, cases[i].to);
        cr_assert_eq(shk_factset_read(set, text, strlen(text), &used, mine, name, sizeof name), 0,
                     "%s", cases[i].to);
        cr_expect_eq(used, strlen(text));
        cr_expect_eq(strcmp(mine, key) == 0, cases[i].same, "%s -> %s", cases[i].from, cases[i].to);
        cr_expect_str_eq(name, cases[i].name);
    }
    shk_factset_destroy(set);
}

Test(factset, what_is_no_document)
{
    static const char *const texts[] = {
        "",
        "[",
        "{",
        "{}",
        "{\"facts\":[]}",
        "{\"facts\":{\"a\":}}",
        "{\"facts\":{\"a\":\"x}}",
        "{\"facts\":{\"a\":{\"value\":[1,}}}",
        "{\"schema\":\"x\"}",
        "{\"facts\":{\"a\":\"\\",
    };
    char key[SHK_FACTSET_KEY], name[64];
    size_t used = 0;
    for (int after = 0; after < 2; after++) {
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            struct shk_factset *set = shk_factset_create(rules, 1);
            if (after)
                cr_assert_eq(
                    shk_factset_read(set, first, strlen(first), &used, key, name, sizeof name), 0);
            char *copy = strdup(texts[i]); /* so that a read beyond the end is seen */
            cr_expect_eq(shk_factset_read(set, copy, strlen(copy), &used, key, name, sizeof name),
                         -EINVAL, "%s", texts[i]);
            free(copy);
            shk_factset_destroy(set);
        }
    }
}
