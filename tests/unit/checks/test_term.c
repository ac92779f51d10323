/* Terms of `when:`: each kind holds, does not hold, and is not known. */
#include "checks/when/term.h"
#include "support.h"

#include <criterion/criterion.h>

#define ENV    "'probe.env.status': 'ok'"
#define NET(v) "'env.NCCL_NET': '" v "'"
#define UNREAD "{'state': 'failed', 'reason': 'x'}"
#define ABSENT "{'state': 'absent', 'reason': 'x'}"
#define NICS   "'net.ifaces': [{'name': 'lo'}, {'name': 'hsn0'}]"
#define GAP    "'net.ifaces': [{'name': 'lo'}, {'name': null}]"
#define LOG    "'log.files': ['a'], "
#define SEEN                                                                                       \
    LOG "'log.sig.x': {'id': 'x', 'lines': 3, 'captures': [{'name': 'hsn0'}, {'name': 'eth0'}]}"

static const char *const socket_or_ib[] = {"Socket", "IB", NULL}, *const one[] = {"1", NULL};

#define SETTING(...)                                                                               \
    {                                                                                              \
        .setting = "NCCL_NET", __VA_ARGS__                                                         \
    }
#define VIRT(...)                                                                                  \
    {                                                                                              \
        .fact = "host.virt", __VA_ARGS__                                                           \
    }
#define IFACE(...)                                                                                 \
    {                                                                                              \
        .fact = "net.ifaces", .member = "name", __VA_ARGS__                                        \
    }

static const struct {
    struct shk_term term;
    const char *yes, *no, *unknown; /* facts with which it holds, does not, is not known */
} cases[] = {
    {SETTING(.is = socket_or_ib), NET("IB"), NET("x"), ""},
    {SETTING(.is = socket_or_ib), NET("Socket"), ENV, "'env.NCCL_NET': " UNREAD},
    {{.setting = "NCCL_IB_DISABLE", .is = one}, "'env.NCCL_IB_DISABLE': '0x1'", ENV, ""},
    {SETTING(.is_not = socket_or_ib), NET("x"), ENV, ""},
    {SETTING(.matches = "^S"), NET("Socket"), NET("IB"), ""},
    {SETTING(.matches_not = "^S"), NET("IB"), NET("Socket"), ""},
    {SETTING(.matches_not = "^S"), NET("IB"), ENV, "'env.NCCL_NET': " UNREAD},
    {SETTING(.lacks = "^S"), NET("IB"), NET("Socket"), ""},
    {SETTING(.lacks = "^S"), ENV, NET("Socket"), "'env.NCCL_NET': " UNREAD},
    {SETTING(.set = true), NET("IB"), ENV, ""},
    {SETTING(.unset = true), ENV, NET("IB"), ""},
    {SETTING(.differs_from = "NCCL_DEBUG"), ENV ", 'env.NCCL_DEBUG': 'WARN', " NET("IB"),
     ENV ", " NET("IB"), NET("IB")},
    {SETTING(.in = "fabric.providers"), NET("efa") ", 'fabric.providers': ['efa', 'tcp']",
     NET("cxi") ", 'fabric.providers': ['efa']", NET("cxi") ", 'fabric.providers': " UNREAD},
    {SETTING(.not_in = "fabric.providers"), NET("cxi") ", 'fabric.providers': ['efa']",
     NET("efa") ", 'fabric.providers': ['efa']", NET("^efa") ", 'fabric.providers': ['efa']"},
    {VIRT(.is = socket_or_ib), "'host.virt': 'IB'", "'host.virt': 'kvm'", ""},
    {VIRT(.matches = "^kvm$"), "'host.virt': 'kvm'", "'host.virt': " ABSENT,
     "'host.virt': " UNREAD},
    {VIRT(.matches_not = "^xen$"), "'host.virt': 'kvm'", "'host.virt': " ABSENT,
     "'host.virt': " UNREAD},
    {VIRT(.lacks = "^kvm$"), "'host.virt': " ABSENT, "'host.virt': 'kvm'", "'host.virt': " UNREAD},
    {VIRT(.present = true), "'host.virt': 'kvm'", "'host.virt': " ABSENT, "'host.virt': " UNREAD},
    {VIRT(.absent = true), "'host.virt': " ABSENT, "'host.virt': 'kvm'", ""},
    {IFACE(.matches = "^hsn"), NICS, "'net.ifaces': []", GAP},
    {IFACE(.matches = "^lo"), GAP, "'net.ifaces': " ABSENT, "'net.ifaces': " UNREAD},
    {IFACE(.matches = "o|h", .every = true), NICS, "'net.ifaces': []", GAP},
    {IFACE(.matches = "^hsn", .every = true), "'net.ifaces': [{'name': 'hsn1'}]", GAP, ""},
    {IFACE(.lacks = "^eth"), NICS, "'net.ifaces': [{'name': 'eth0'}]", GAP},
    {{.log = "x"}, SEEN, LOG "'host.virt': 'kvm'", ""},
    {{.no_log = "x"}, LOG "'host.virt': 'kvm'", SEEN, ""},
    {{.log = "x", .lines = 3}, SEEN, LOG "'log.sig.x': {'id': 'x', 'lines': 2}", ""},
    {{.log = "x", .at_most = 3}, SEEN, LOG "'log.sig.x': {'id': 'x', 'lines': 4}", ""},
    {{.log = "x", .fewer_than = "job.ranks"},
     SEEN ", 'job.ranks': 4",
     SEEN ", 'job.ranks': 3",
     SEEN},
    {{.log = "x", .capture = "name", .matches = "^eth"},
     SEEN,
     LOG "'log.sig.x': {'id': 'x', 'captures': [{'name': 'lo'}]}",
     ""},
    {{.log = "x", .capture = "name", .same_as = "NCCL_NET"},
     SEEN ", " NET("ib0,eth0"),
     SEEN ", " NET("ib0"),
     SEEN ", 'env.NCCL_NET': " UNREAD},
};

static int holds(const struct shk_term *term, const char *first, const char *second)
{
    struct shk_facts *nodes[] = {support_facts(first), second ? support_facts(second) : NULL};
    const struct shk_facts *all[] = {nodes[0], nodes[1]};
    struct shk_term_scope scope = {support_config(), nodes[0], all, second ? 2 : 1, true};
    int answer = shk_term_holds(&scope, term);
    shk_facts_destroy(nodes[0]);
    shk_facts_destroy(nodes[1]);
    return answer;
}

Test(term, yes_no_and_not_known)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_expect_eq(holds(&cases[i].term, cases[i].yes, NULL), 1, "%zu: %s", i, cases[i].yes);
        cr_expect_eq(holds(&cases[i].term, cases[i].no, NULL), 0, "%zu: %s", i, cases[i].no);
        cr_expect_eq(holds(&cases[i].term, cases[i].unknown, NULL), -1, "%zu: %s", i,
                     cases[i].unknown);
    }
}

Test(term, between_nodes)
{
    const struct shk_term differs = {.differs = "host.kernel"};
    cr_expect_eq(holds(&differs, "'host.kernel': '5'", "'host.kernel': '6'"), 1);
    cr_expect_eq(holds(&differs, "'host.kernel': '5'", "'host.kernel': '5'"), 0);
    cr_expect_eq(holds(&differs, "'host.kernel': '5'", "'host.kernel': " UNREAD), -1);
    cr_expect_eq(holds(&differs, "'host.kernel': '5'", "'host.kernel': " ABSENT), 1);
}

/* What a log shows counts for rules; a conflict is about the environment of the node. */
Test(term, a_value_that_only_a_log_shows)
{
    struct shk_facts *facts = support_facts(
        LOG "'log.sig.nccl-env-read': {'id': 'nccl-env-read', 'captures': [{'name': 'NCCL_NET', "
            "'value': 'IB'}]}");
    const struct shk_term is_set = SETTING(.set = true);
    struct shk_term_scope scope = {.config = support_config(), .facts = facts, .logs = true};
    cr_expect_eq(shk_term_holds(&scope, &is_set), 1);
    scope.logs = false;
    cr_expect_eq(shk_term_holds(&scope, &is_set), -1);
    shk_facts_destroy(facts);
}
