#include "support.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct shk_finding *find(const struct shk_findings *list, const char *setting)
{
    for (size_t i = 0; i < shk_findings_count(list); i++)
        if (strcmp(shk_findings_at(list, i)->setting, setting) == 0)
            return shk_findings_at(list, i);
    return NULL;
}

static struct shk_findings *compare(const char *const *nodes, size_t n)
{
    struct shk_facts *facts[8];
    struct shk_findings *findings = shk_findings_create();
    struct shk_error err = {""};
    for (size_t i = 0; i < n; i++)
        facts[i] = support_facts(nodes[i]);
    cr_assert_eq(shk_checks_compare(support_config(), (const struct shk_facts *const *)facts, NULL,
                                    n, NULL, findings, &err),
                 0, "%s", err.text);
    for (size_t i = 0; i < n; i++)
        shk_facts_destroy(facts[i]);
    return findings;
}

/* What names a node, or changes by itself, is no difference. */
Test(compare, nodes_that_agree)
{
    static const char *const nodes[] = {
        "'host.name': 'n1', 'host.kernel': '6.1', 'clock.offset': 3, 'job.rank': 0",
        "'host.name': 'n2', 'host.kernel': '6.1', 'clock.offset': 9, 'job.rank': 4",
    };
    struct shk_findings *list = compare(nodes, 2);
    cr_assert_eq(shk_findings_count(list), 1);
    cr_assert_eq(shk_findings_at(list, 0)->verdict, SHK_PASS);
    shk_findings_destroy(list);
}

Test(compare, the_odd_node_is_named)
{
    static const char *const nodes[] = {
        "'host.name': 'n1', 'fabric.version': '1.20', 'host.kernel': '6.1'",
        "'host.name': 'n2', 'fabric.version': '1.20', 'host.kernel': '5.9'",
        "'host.name': 'n3', 'fabric.version': '1.15', 'host.kernel': '6.1'",
    };
    struct shk_findings *list = compare(nodes, 3);
    const struct shk_finding *version = find(list, "fabric.version");
    const struct shk_finding *kernel = find(list, "host.kernel");
    cr_assert_not_null(version);
    cr_assert_eq(version->verdict, SHK_FAIL);
    cr_assert_str_eq(version->observed, "1.15");
    cr_assert_str_eq(version->nodes[0], "n3");
    cr_assert_null(version->nodes[1]);
    cr_assert_not_null(kernel);
    cr_assert_eq(kernel->verdict, SHK_WARN);
    cr_assert_str_eq(kernel->nodes[0], "n2");
    cr_assert_null(kernel->nodes[1]);
    shk_findings_destroy(list);
}

/* Less than the others have fails jobs there, more is only odd. */
Test(compare, a_node_that_has_less)
{
#define LOCKED(name, bytes)                                                                        \
    "'host.name': '" name "', 'limits.memlock': {'soft': " bytes ", 'hard': " bytes "}"
    static const char *const less[] = {LOCKED("n1", "-1"), LOCKED("n2", "65536"),
                                       LOCKED("n3", "-1")};
    static const char *const more[] = {LOCKED("n1", "65536"), LOCKED("n2", "-1"),
                                       LOCKED("n3", "65536")};
    static const char *const limited[] = {LOCKED("n1", "8388608"), LOCKED("n2", "65536")};
    struct shk_findings *list = compare(less, 3);
    const struct shk_finding *row = find(list, "limits.memlock.hard");
    cr_assert_eq(row->scope, SHK_SCOPE_NODE);
    cr_assert_not_null(row);
    cr_assert_eq(row->verdict, SHK_FAIL);
    cr_assert_str_eq(row->nodes[0], "n2");
    cr_assert_null(row->nodes[1]);
    shk_findings_destroy(list);
    list = compare(more, 3);
    row = find(list, "limits.memlock.hard");
    cr_assert_not_null(row);
    cr_assert_eq(row->verdict, SHK_WARN);
    cr_assert_str_eq(row->nodes[0], "n2");
    shk_findings_destroy(list);
    list = compare(less, 2); /* what is enough is known: the row about the limit itself judges it */
    row = find(list, "limits.memlock.hard");
    cr_assert_not_null(row);
    cr_assert_eq(row->verdict, SHK_WARN);
    shk_findings_destroy(list);
    list = compare(limited, 2); /* one of the two: no node is bad, none is healthy */
    row = find(list, "limits.memlock.hard");
    cr_assert_not_null(row);
    cr_assert_eq(row->verdict, SHK_FAIL);
    cr_assert_eq(row->scope, SHK_SCOPE_LAUNCH);
    cr_assert_str_eq(row->nodes[1], "n2");
    shk_findings_destroy(list);
}

/* Seen with RoCE: the all-reduce hangs at the first packet that the odd node does not take. */
Test(compare, another_mtu_explains_a_rank_that_hangs)
{
#define PORT(name, mtu)                                                                            \
    "'host.name': '" name "', 'net.ifaces': [{'name': 'eth0', 'up': true, 'running': true, "       \
    "'virtual': false, 'loopback': false, 'mtu': " mtu "}]"
    static const char *const nodes[] = {PORT("n1", "1500"), PORT("n2", "900"), PORT("n3", "1500")};
    struct shk_findings *list = compare(nodes, 3);
    const struct shk_finding *row = find(list, "net.ifaces[eth0].mtu");
    cr_assert_not_null(row);
    cr_assert_eq(row->verdict, SHK_WARN);
    cr_assert_str_eq(row->nodes[0], "n2");
    cr_assert_null(row->nodes[1]);
    const struct shk_finding_in hang = {.id = "test",
                                        .family = "test",
                                        .setting = "all-reduce",
                                        .verdict = SHK_FAIL,
                                        .evidence = SHK_TESTED,
                                        .observed = "timeout",
                                        .diagnosis = "rank-hung"};
    struct shk_diagnoses out = {0};
    struct shk_error err = {""};
    shk_findings_add(list, &hang);
    cr_assert_eq(shk_diagnose(support_config(), list, NULL, 0, &out, &err), 0, "%s", err.text);
    cr_assert_geq(out.count, 2);
    cr_expect_str_eq(out.rows[0].key, "mtu-mismatch");
    cr_expect_str_eq(out.rows[1].key, "rank-hung");
    shk_diagnoses_free(&out);
    shk_findings_destroy(list);
}

/* The first node is not always the one that is right. */
Test(compare, the_first_node_is_odd)
{
    static const char *const nodes[] = {
        "'host.name': 'n1', 'env.FI_PROVIDER': 'verbs'",
        "'host.name': 'n2'",
        "'host.name': 'n3'",
    };
    struct shk_findings *list = compare(nodes, 3);
    const struct shk_finding *row = find(list, "env.FI_PROVIDER");
    cr_assert_not_null(row);
    cr_assert_eq(row->verdict, SHK_FAIL);
    cr_assert_str_eq(row->observed, "verbs");
    cr_assert_str_eq(row->nodes[0], "n1");
    cr_assert_null(row->nodes[1]);
    shk_findings_destroy(list);
}
