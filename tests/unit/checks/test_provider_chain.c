/* The chain of a provider, step by step: what each says on a healthy node, and with one fact
 * changed. */
#include "../chain_support.h"
#include "chain_nodes.h"
#include "core/text/strbuf.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The facts document of a node, with one member replaced: a value, or a {state, reason} object. */
static struct shk_facts *node(const char *text, const char *key, const char *value)
{
    static char buf[8192];
    struct shk_facts *facts = NULL;
    struct shk_error err = {""};
    json_error_t at;
    snprintf(buf, sizeof buf, "%s", text);
    for (char *p = buf; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    json_t *table = json_loads(buf, 0, &at);
    cr_assert_not_null(table, "%s", at.text);
    if (key) {
        snprintf(buf, sizeof buf, "%s", value);
        for (char *p = buf; *p; p++)
            *p = *p == '\'' ? '"' : *p;
        json_t *replaced = json_loads(buf, JSON_DECODE_ANY, &at);
        cr_assert_not_null(replaced, "%s: %s", value, at.text);
        json_object_set_new(table, key, replaced);
    }
    json_t *doc = json_pack("{s:s, s:o}", "schema", SHK_FACTS_SCHEMA, "facts", table);
    cr_assert_eq(shk_facts_from_json(&facts, doc, &err), 0, "%s", err.text);
    json_decref(doc);
    return facts;
}

/* "why.efa", "why.Tcp_ofi_rxm" … of a node: the chain of that provider, as a fact for the tests. */
static void put_chain(struct shk_facts *into, const struct shk_facts *known, const char *provider)
{
    struct shk_chain chain;
    char key[80];
    if (!shk_chain_of(known, provider, &chain))
        return;
    snprintf(key, sizeof key, "why.%s", provider);
    for (char *p = key; *p; p++)
        *p = *p == ';' ? '_' : *p;
    cr_assert_eq(shk_facts_present(into, key, chain_rows(&chain), NULL, "test"), 0);
    shk_chain_clear(&chain);
}

/* The chains of that node; `without` (may be NULL) is a fact that says "absent". */
static struct shk_facts *why_without(const char *text, const char *key, const char *value,
                                     const char *without)
{
    static const char *const providers[] = {"efa", "cxi", "verbs", "Tcp;ofi_rxm", "psm9"};
    struct shk_facts *known = node(text, key, value), *facts = shk_facts_create();
    if (without)
        shk_facts_absent(known, without, "test", "there is none");
    cr_assert_eq(shk_facts_text(known, "probe.pci.status", "ok", "test"), 0);
    for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++)
        put_chain(facts, known, providers[i]);
    shk_facts_destroy(known);
    return facts;
}

static struct shk_facts *why(const char *text, const char *key, const char *value)
{
    return why_without(text, key, value, NULL);
}

Test(provider_chain, healthy_nodes_have_no_broken_link)
{
    static const struct {
        const char *key, *text;
        const char *steps; /* how many are "ok" of all */
    } cases[] = {
        {.key = "why.efa", .text = efa_node, .steps = "16 of 16"},
        {.key = "why.cxi", .text = cxi_node, .steps = "16 of 16"},
        {.key = "why.verbs", .text = verbs_node, .steps = "15 of 15"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shk_facts *facts = why(cases[i].text, NULL, NULL);
        json_t *steps = shk_facts_get_array(facts, cases[i].key), *row;
        size_t k, ok = 0;
        char count[32];
        json_array_foreach(steps, k, row)
        {
            ok += strcmp(json_string_value(json_object_get(row, "state")), "ok") == 0;
        }
        snprintf(count, sizeof count, "%zu of %zu", ok, json_array_size(steps));
        cr_expect_str_eq(count, cases[i].steps, "%s: %s: %s", cases[i].key, count, cases[i].key);
        shk_facts_destroy(facts);
    }
}

Test(provider_chain, first_broken_link)
{
    static const struct {
        const char *node, *chain, *key, *value, *step, *text;
        const char *without; /* a fact that is absent besides */
    } cases[] = {
        {.node = efa_node,
         .chain = "why.efa",
         .key = "pci.count.efa",
         .value = "{'state': 'absent', 'reason': 'none'}",
         .step = "nothing",
         .text = ""}, /* the devices are there: then the adapter is */
        {.node = cxi_node,
         .chain = "why.efa",
         .key = "host.product",
         .value = "'EX235a'",
         .step = "library",
         .text = "has no provider efa"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "kernel.module.efa",
         .value = "{'state': 'absent', 'reason': 'not loaded'}",
         .step = "module",
         .text = "kernel module efa: not loaded | ib_uverbs",
         .without = "rdma.devices"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "kernel.module.efa",
         .value = "{'state': 'absent', 'reason': 'not loaded'}",
         .step = "nothing",
         .text = ""}, /* it made its devices: then it is there under another name */
        {.node = efa_node,
         .chain = "why.efa",
         .key = "rdma.devices",
         .value = "{'state': 'absent', 'reason': 'no device'}",
         .step = "device",
         .text = "the driver made no efa device"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "dev.infiniband/uverbs1",
         .value = "{'mode': '0660', 'uid': 0, 'gid': 110, 'rw': false}",
         .step = "node",
         .text = "cannot open /dev/infiniband/uverbs1: permission denied (mode 0660, owner 0, "
                 "group 110) | "
                 "1 of 2 can be opened"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "dev.infiniband/uverbs0",
         .value = "{'state': 'absent', 'reason': 'none'}",
         .step = "node",
         .text = "/dev/infiniband/uverbs0 does not exist"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "verbs.devices",
         .value = "[{'name': 'rdmap16s27', 'rdma_read': true, 'rdma_write': true}]",
         .step = "userlib",
         .text = "libibverbs does not list rdmap32s27 (driver efa)"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "verbs.path",
         .value = "{'state': 'absent', 'reason': 'libibverbs.so.1: not found'}",
         .step = "userlib",
         .text = "libibverbs.so.1: not found",
         .without = "verbs.devices"},
        {.node = cxi_node,
         .chain = "why.cxi",
         .key = "fabric.needed",
         .value = "[{'name': 'libc.so.6', 'path': '/c'}, {'name': 'libcxi.so.1', 'path': null}]",
         .step = "userlib",
         .text = "libcxi.so.1 is nowhere"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "limits.memlock",
         .value = "{'soft': 8388608, 'hard': -1}",
         .step = "limits",
         .text = "8192 KiB, too little to register buffers | hard limit unlimited"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "fabric.path",
         .value = "{'state': 'absent', 'reason': 'not found in ld.so.cache'}",
         .step = "library",
         .text = "libfabric.so.1: not found in ld.so.cache"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "fabric.core_providers",
         .value = "['tcp', 'ofi_hook_perf']",
         .step = "library",
         .text = "has no provider efa | it has: tcp"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "fabric.problems",
         .value = "[{'text': 'x needs libefa.so.1'}]",
         .step = "dependencies",
         .text = "x needs libefa.so.1"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "fabric.problem",
         .value = "{'text': 'libfabric: died of SIGSEGV', 'call': 'dlopen'}",
         .step = "dependencies",
         .text = "died of SIGSEGV | dlopen"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "env.FI_PROVIDER",
         .value = "'^shm,EFA'",
         .step = "filter",
         .text = "FI_PROVIDER=^shm,EFA excludes efa"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "env.FI_PROVIDER",
         .value = "'tcp'",
         .step = "filter",
         .text = "FI_PROVIDER=tcp leaves out"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "fabric.providers",
         .value = "['tcp']",
         .step = "getinfo",
         .text = "fi_getinfo offers nothing"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "fabric.hints",
         .value = "[{'provider': 'efa', 'steps': [{'hint': 'FI_RMA', 'count': 1},"
                  " {'hint': 'FI_HMEM', 'count': 0, 'text': 'No data available'}]}]",
         .step = "hints",
         .text = "nothing is left when FI_HMEM is requested | No data available"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "fabric.domains",
         .value = "[{'provider': 'tcp', 'domain': 'eth0'}]",
         .step = "domains",
         .text = "none | 2 devices on this node"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "fabric.domains",
         .value = "[{'provider': 'efa', 'domain': 'rdmap16s27-rdm'}]",
         .step = "domains",
         .text = "1 | 2 devices on this node"},
        {.node = efa_node,
         .chain = "why.efa",
         .key = "env.FI_EFA_USE_HUGE_PAGE",
         .value = "'1'",
         .step = "nothing",
         .text = ""},
        {.node = cxi_node,
         .chain = "why.cxi",
         .key = "kernel.module.cxi_user",
         .value = "{'state': 'absent', 'reason': 'not loaded'}",
         .step = "module",
         .text = "kernel module cxi_user",
         .without = "dev.cxi0"},
        {.node = cxi_node,
         .chain = "why.cxi",
         .key = "dev.cxi1",
         .value = "{'state': 'absent', 'reason': 'gone'}",
         .step = "node",
         .text = "/dev/cxi1 does not exist"},
        {.node = cxi_node,
         .chain = "why.cxi",
         .key = "env.SLINGSHOT_VNIS",
         .value = "{'state': 'absent', 'reason': 'not set'}",
         .step = "nothing",
         .text = ""}, /* the provider answers all the same */
        {.node = cxi_node,
         .chain = "why.cxi",
         .key = "cxi.devices",
         .value = "[{'name': 'cxi0', 'link_state': 'up'}, {'name': 'cxi1', 'link_state': 'down'}]",
         .step = "link",
         .text = "down: cxi1"},
        {.node = cxi_node,
         .chain = "why.cxi",
         .key = "fabric.domains",
         .value = "[{'provider': 'cxi', 'domain': 'cxi0', 'mtu': 2048},"
                  " {'provider': 'cxi', 'domain': 'cxi1', 'mtu': 1500}]",
         .step = "mtu",
         .text = "differs: 1500 to 2048 bytes"},
        {.node = verbs_node,
         .chain = "why.verbs",
         .key = "kernel.module.ib_uverbs",
         .value = "{'state': 'absent', 'reason': 'not loaded'}",
         .step = "module",
         .text = "kernel module ib_uverbs",
         .without = "dev.infiniband/uverbs0"},
        {.node = verbs_node,
         .chain = "why.verbs",
         .key = "rdma.devices",
         .value = "[{'name': 'mlx5_0', 'driver': 'mlx5_core', 'uverbs': null,"
                  " 'ports': [{'state': 'ACTIVE'}]}]",
         .step = "node",
         .text = "mlx5_0 has no uverbs device"},
        {.node = verbs_node,
         .chain = "why.verbs",
         .key = "rdma.devices",
         .value = "[{'name': 'mlx5_0', 'driver': 'mlx5_core', 'uverbs': 'uverbs0',"
                  " 'ports': [{'state': 'DOWN'}, {'state': 'INIT'}]}]",
         .step = "link",
         .text = "down: mlx5_0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shk_facts *facts =
            why_without(cases[i].node, cases[i].key, cases[i].value, cases[i].without);
        json_t *steps = shk_facts_get_array(facts, cases[i].chain);
        const char *broken = first_broken(steps);
        cr_expect_str_eq(broken, cases[i].step, "%zu %s: %s: %s", i, cases[i].key, broken,
                         step_text(steps, broken));
        cr_expect_not_null(strstr(step_text(steps, broken), cases[i].text), "%zu %s: %s", i,
                           cases[i].key, step_text(steps, broken));
        shk_facts_destroy(facts);
    }
}

Test(provider_chain, no_adapter_leaves_the_host_steps_out)
{
    struct shk_facts *facts =
        why("{'pci.count.efa': {'state': 'absent', 'reason': 'none on the PCI bus'},"
            " 'rdma.devices': {'state': 'absent', 'reason': 'no RDMA'},"
            " 'kernel.module.efa': {'state': 'absent', 'reason': 'not loaded'},"
            " 'host.product': 'm5.large'}",
            NULL, NULL);
    json_t *steps = shk_facts_get_array(facts, "why.efa");
    cr_expect_str_eq(step_text(steps, "pci"),
                     "broken: no EFA function (PCI 1d0f:efa0 and up) | m5.large");
    cr_expect_str_eq(step_text(steps, "module"), "na: no adapter");
    cr_expect_str_eq(step_text(steps, "node"), "na: no adapter");
    shk_facts_destroy(facts);
}

Test(provider_chain, nothing_known_is_nothing_broken)
{
    static const char *const chains[] = {"why.efa", "why.cxi", "why.verbs"};
    struct shk_facts *facts = why("{}", NULL, NULL);
    for (size_t i = 0; i < 3; i++) {
        json_t *steps = shk_facts_get_array(facts, chains[i]);
        cr_expect_str_eq(first_broken(steps), "nothing", "%s: %s", chains[i],
                         step_text(steps, first_broken(steps)));
        cr_expect_str_eq(step_text(steps, "pci"), "unknown: no probe collected it");
        cr_expect_str_eq(step_text(steps, "library"), "unknown: no probe collected it");
        cr_expect_str_eq(step_text(steps, "getinfo"), "unknown: no probe collected it");
    }
    shk_facts_destroy(facts);
}

Test(provider_chain, unreadable_is_unknown_with_its_reason)
{
    struct shk_facts *facts =
        why("{'pci.count.efa': {'state': 'failed', 'reason': '/sys: Permission denied'},"
            " 'fabric.core_providers': {'state': 'failed', 'reason': 'timed out'}}",
            NULL, NULL);
    json_t *steps = shk_facts_get_array(facts, "why.efa");
    cr_expect_str_eq(step_text(steps, "pci"), "unknown: /sys: Permission denied");
    cr_expect_str_eq(step_text(steps, "library"), "unknown: timed out");
    shk_facts_destroy(facts);
}

Test(provider_chain, what_the_filter_hides_is_looked_for_without_it)
{
    struct shk_facts *facts =
        why("{'fabric.filter': 'tcp', 'fabric.core_providers': ['cxi', 'tcp'],"
            " 'fabric.providers': ['tcp'], 'fabric.path': '/l/libfabric.so.1',"
            " 'fabric.unfiltered': {'providers': ['cxi', 'tcp'], 'domains':"
            "  [{'provider': 'cxi', 'domain': 'cxi0'}], 'hints': []}}",
            NULL, NULL);
    json_t *steps = shk_facts_get_array(facts, "why.cxi");
    cr_expect_str_eq(step_text(steps, "filter"), "broken: FI_PROVIDER=tcp leaves out cxi");
    cr_expect_str_eq(step_text(steps, "getinfo"), "ok: fi_getinfo offers it | FI_PROVIDER removed");
    cr_expect_str_eq(step_text(steps, "domains"), "ok: 1");
    shk_facts_destroy(facts);
}

Test(provider_chain, other_copies_and_other_providers)
{
    struct shk_facts *facts =
        why("{'fabric.filter': 'cxi,Tcp;ofi_rxm,psm9', 'fabric.path': '/lib/libfabric.so.1',"
            " 'fabric.version': '1.17.0', 'fabric.core_providers': ['tcp', 'ofi_rxm'],"
            " 'fabric.copies': [{'path': '/lib/libfabric.so.1', 'links': []},"
            "  {'path': '/opt/cray/lib/libfabric.so.1', 'version': '1.20.1', 'links': ['cxi']}]}",
            NULL, NULL);
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.cxi"), "library"),
                     "broken: /lib/libfabric.so.1 (1.17.0) has no provider cxi | "
                     "/opt/cray/lib/libfabric.so.1 (1.20.1) has it");
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.Tcp_ofi_rxm"), "library"),
                     "ok: /lib/libfabric.so.1 (1.17.0) has it");
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.psm9"), "library"),
                     "broken: /lib/libfabric.so.1 (1.17.0) has no provider psm9 | it has: tcp, "
                     "ofi_rxm");
    /* no device of its own, so no steps about one */
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.psm9"), "pci"), "");
    shk_facts_destroy(facts);
}

Test(provider_chain, fork_and_huge_pages)
{
    struct shk_facts *facts =
        why("{'pci.count.efa': 1, 'host.kernel': '5.10.0', 'env.FI_EFA_FORK_SAFE': '1',"
            " 'env.FI_EFA_USE_HUGE_PAGE': '1'}",
            NULL, NULL);
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.efa"), "fork"),
                     "broken: FI_EFA_FORK_SAFE and FI_EFA_USE_HUGE_PAGE=1 exclude each other");
    shk_facts_destroy(facts);
    facts = why("{'pci.count.efa': 1, 'host.kernel': '5.10.0'}", NULL, NULL);
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.efa"), "fork"),
                     "unknown: kernel 5.10.0: fork is safe only with FI_EFA_FORK_SAFE=1");
    shk_facts_destroy(facts);
}

Test(provider_chain, no_network_service_in_a_job)
{
    struct shk_facts *facts =
        why("{'pci.count.cxi': 4, 'job.scheduler': 'slurm', 'fabric.providers': ['tcp'],"
            " 'probe.env.status': 'ok'}",
            NULL, NULL);
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.cxi"), "service"),
                     "broken: no SLINGSHOT_VNIS in the environment of a slurm job");
    shk_facts_destroy(facts);
    facts = why("{'pci.count.cxi': 4, 'job.scheduler': 'slurm', 'fabric.providers': ['tcp']}", NULL,
                NULL);
    cr_expect(strncmp(step_text(shk_facts_get_array(facts, "why.cxi"), "service"), "unknown", 7) ==
              0);
    shk_facts_destroy(facts);
    facts = why("{'pci.count.cxi': 4, 'job.scheduler': {'state': 'absent', 'reason': 'no'}}", NULL,
                NULL);
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.cxi"), "service"),
                     "na: not inside a batch job");
    shk_facts_destroy(facts);
}

/* The default service may answer, or the job may have one that is not shown. */
Test(provider_chain, a_service_is_missing_only_where_all_was_read)
{
    static const char *const unread[] = {
        "'x': 1",
        "'fabric.providers': [7]",
        "'fabric.providers': ['tcp', null]",
        "'fabric.providers': {'state': 'failed', 'reason': 'it hung'}",
        "'fabric.providers': ['tcp'], 'env.SLINGSHOT_VNIS': {'state': 'failed', 'reason': 'kept'}",
    };
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++) {
        char *text = shk_strf("{'pci.count.cxi': 4, 'job.scheduler': 'slurm', "
                              "'probe.env.status': 'ok', %s}",
                              unread[i]);
        struct shk_facts *facts = why(text, NULL, NULL);
        const char *step = step_text(shk_facts_get_array(facts, "why.cxi"), "service");
        cr_expect(strncmp(step, "unknown", 7) == 0, "%s: %s", unread[i], step);
        shk_facts_destroy(facts);
        free(text);
    }
}

Test(provider_chain, facts_of_the_wrong_type_do_no_harm)
{
    struct shk_facts *facts =
        why("{'pci.count.efa': 'many', 'rdma.devices': {'state': 'present', 'value': 3},"
            " 'limits.memlock': [1], 'fabric.domains': [1, null, {'provider': 5}],"
            " 'fabric.hints': [{'provider': 'efa', 'steps': [7]}], 'fabric.providers': ['efa', 3],"
            " 'fabric.copies': [null, {'links': 'efa'}], 'fabric.problems': ['x'],"
            " 'host.kernel': 5, 'fabric.filter': ',,;,^'}",
            NULL, NULL);
    cr_expect_gt(json_array_size(shk_facts_get_array(facts, "why.efa")), 8);
    shk_facts_destroy(facts);
}

/* libibverbs that failed on a live node could have told something; of a capture nobody asked it. */
Test(provider_chain, libibverbs_that_was_not_asked)
{
    static const char failed[] = "{'state': 'failed', 'reason': 'it crashed'}";
    static const struct {
        const char *path, *status;
        bool unread;
    } cases[] = {
        {failed, "crashed", true}, {failed, "skipped", false}, {"'/lib/x'", "skipped", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shk_chain chain;
        bool unread = false;
        char *text = shk_strf("{'probe.nvml.status': '%s', 'probe.rdma.status': 'ok',"
                              " 'rdma.devices': [{'name': 'rdma0', 'driver': 'efa'}],"
                              " 'pci.count.efa': 1, 'verbs.path': %s}",
                              cases[i].status, cases[i].path);
        struct shk_facts *known = node(text, "verbs.devices", failed);
        cr_assert(shk_chain_of(known, "efa", &chain));
        for (size_t k = 0; k < chain.count; k++)
            if (strcmp(chain.links[k].step, "userlib") == 0)
                unread = chain.links[k].unread != NULL;
        cr_expect_eq(unread, cases[i].unread, "%zu", i);
        shk_chain_clear(&chain);
        shk_facts_destroy(known);
        free(text);
    }
}

/* A node of a device is gone when its folder was listed without it; without a list nobody knows. */
Test(provider_chain, nodes_without_a_fact)
{
    static const struct {
        const char *listed, *step;
    } cases[] = {
        {"{'cxi': ['cxi0']}", "broken: /dev/cxi1 does not exist | 1 of 2 can be opened"},
        {"{'cxi': ['cxi0', 'cxi1']}", "unknown: device nodes were not checked"},
        {"{'cxi': ['cxi0', 7]}", "unknown: device nodes were not checked"},
        {"{'nvidia': []}", "unknown: device nodes were not checked"},
        {"{'cxi': 'cxi0'}", "unknown: device nodes were not checked"},
        {"{'state': 'failed', 'reason': 'no'}", "unknown: device nodes were not checked"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = strdup(cxi_node), *at = strstr(text, "'dev.cxi1'");
        cr_assert_not_null(at);
        memcpy(at, "'xxx", 4);
        struct shk_facts *facts = why(text, "dev.listed", cases[i].listed);
        free(text);
        cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.cxi"), "node"), cases[i].step,
                         "%s", cases[i].listed);
        shk_facts_destroy(facts);
    }
}

Test(provider_chain, the_providers_own_words)
{
    struct shk_facts *facts =
        why("{'fabric.providers': ['tcp'], 'fabric.getinfo': {'rc': 0, 'text': 'success'},"
            " 'fabric.log': ['core:core:x', 'cxi:core:cxip_info_alloc():1<warn> no service'],"
            " 'fabric.core_providers': ['cxi']}",
            NULL, NULL);
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.cxi"), "getinfo"),
                     "broken: fi_getinfo offers nothing: other providers only | "
                     "cxi:core:cxip_info_alloc():1<warn> no service");
    shk_facts_destroy(facts);
}

Test(provider_chain, providers_that_are_files)
{
    static const char node_text[] =
        "{'fabric.path': '/l/libfabric.so.1', 'fabric.version': '2.1.0',"
        " 'fabric.core_providers': ['tcp', 'efa'], 'fabric.provider_path': '/p',"
        " 'fabric.dl_providers': [{'name': 'efa', 'path': '/p/libefa-fi.so', 'problem': null},"
        "  {'name': 'cxi', 'path': '/p/libcxi-fi.so', 'problem': 'it needs libcxi.so.1'}]}";
    struct shk_facts *facts = why(node_text, NULL, NULL);
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.efa"), "library"),
                     "ok: /l/libfabric.so.1 (2.1.0) has it | as the file /p/libefa-fi.so");
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.cxi"), "library"),
                     "broken: it needs libcxi.so.1 | as the file /p/libcxi-fi.so");
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.verbs"), "library"),
                     "broken: /l/libfabric.so.1 (2.1.0) has no provider verbs | "
                     "FI_PROVIDER_PATH=/p holds no libverbs-fi.so; it has: tcp, efa");
    shk_facts_destroy(facts);
}

Test(provider_chain, what_efa_devices_can_do)
{
    struct shk_facts *facts = why(efa_node, NULL, NULL);
    json_t *steps = shk_facts_get_array(facts, "why.efa");
    cr_expect_str_eq(step_text(steps, "capability"), "ok: RDMA read: yes, RDMA write: no");
    cr_expect_str_eq(step_text(steps, "pci"), "ok: 2 on the PCI bus | device 0xefa2");
    shk_facts_destroy(facts);
    facts = why("{'pci.count.efa': 1, 'env.FI_EFA_USE_DEVICE_RDMA': '1',"
                " 'verbs.devices': [{'name': 'rdma0', 'rdma_read': false, 'rdma_write': false}]}",
                NULL, NULL);
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.efa"), "capability"),
                     "broken: FI_EFA_USE_DEVICE_RDMA is on, but a device has no RDMA read | "
                     "libfabric aborts then");
    shk_facts_destroy(facts);
    facts = why("{'pci.count.efa': 1, 'verbs.devices': [{'name': 'rdma0',"
                " 'problem': 'ibv_open_device: Permission denied'}]}",
                NULL, NULL);
    cr_expect_str_eq(step_text(shk_facts_get_array(facts, "why.efa"), "capability"),
                     "unknown: ibv_open_device: Permission denied");
    shk_facts_destroy(facts);
}

Test(provider_chain, every_row_says_where)
{
    static const char *const chains[] = {"why.efa", "why.cxi", "why.verbs"};
    const char *const nodes[] = {efa_node, cxi_node, verbs_node};
    for (size_t c = 0; c < 3; c++) {
        struct shk_facts *facts = why(nodes[c], NULL, NULL);
        size_t i;
        json_t *row;
        json_array_foreach(shk_facts_get_array(facts, chains[c]), i, row)
        {
            cr_expect(json_is_string(json_object_get(row, "where")), "%s: %s", chains[c],
                      json_string_value(json_object_get(row, "step")));
        }
        shk_facts_destroy(facts);
    }
}
