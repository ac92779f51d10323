#include "support.h"

#include "core/text/strbuf.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define NCCL_26 "'nccl.version': '2.26.5', 'nccl.path': '/opt/nccl/libnccl.so.2', "
#define IFACES                                                                                     \
    "'net.ifaces': [{'name': 'lo', 'up': true, 'loopback': true, 'addrs': [{'family': 'inet', "    \
    "'addr': '127.0.0.1'}]}, "                                                                     \
    "{'name': 'hsn0', 'up': true, 'addrs': [{'family': 'inet', 'addr': "                           \
    "'10.0.0.1'}]}, "                                                                              \
    "{'name': 'hsn1', 'up': true, 'addrs': [{'family': 'inet', 'addr': "                           \
    "'10.0.0.2'}]}, "                                                                              \
    "{'name': 'hsn2', 'up': true, 'addrs': [{'family': 'inet', 'addr': "                           \
    "'10.0.0.3'}]}, "                                                                              \
    "{'name': 'hsn3', 'up': true, 'addrs': [{'family': 'inet', 'addr': "                           \
    "'10.0.0.4'}]}, "                                                                              \
    "{'name': 'eth0', 'up': true, 'addrs': [{'family': 'inet', 'addr': "                           \
    "'192.168.1.4'}]}, "                                                                           \
    "{'name': 'ib0', 'up': false, 'addrs': [{'family': 'inet', 'addr': "                           \
    "'10.1.0.4'}]}, "                                                                              \
    "{'name': 'll0', 'up': true, 'addrs': [{'family': 'inet6', 'addr': "                           \
    "'fe80::1'}]}, "                                                                               \
    "{'name': 'bare0', 'up': true, 'addrs': []}, "                                                 \
    "{'name': 'docker0', 'up': true, 'addrs': [{'family': 'inet', 'addr': "                        \
    "'172.17.0.1'}]}], "
#define HCAS                                                                                       \
    "'rdma.devices': [{'name': 'mlx5_0', 'ports': [{'port': 1}]}, {'name': 'mlx5_1', 'ports': "    \
    "[{'port': 1}]}, {'name': 'mlx5_10', 'ports': [{'port': 1}]}], "
#define TWO "'probe.env.status': 'ok', 'job.nodes': 2, 'job.launcher': 'slurm', "
#define ONE "'probe.env.status': 'ok', 'job.nodes': 1, "

static const struct env_case {
    const char *name, *profile, *setting, *facts;
    enum shk_verdict verdict;
    enum shk_evidence evidence;
    const char *says, *says_too; /* parts of the row */
} cases[] = {
    {"right value, library by version", "single-node", "NCCL_TESTINT",
     NCCL_26 "'env.NCCL_TESTINT': '16'", SHK_PASS, SHK_DECLARED, "read by NCCL 2.26.5", NULL},
    {"right value, nobody to ask", "single-node", "NCCL_TESTINT", "'env.NCCL_TESTINT': '16'",
     SHK_PASS, SHK_DECLARED, NULL, NULL},
    {"right value, the library's version could not be read", "single-node", "NCCL_TESTINT",
     "'nccl.version': {'state': 'failed', 'reason': 'x'}, 'env.NCCL_TESTINT': '16'", SHK_UNKNOWN,
     SHK_NOT_COVERED, "whether it is read here is not known", NULL},
    {"a mask, and the bus could not be read", "single-node", "CUDA_VISIBLE_DEVICES",
     "'pci.count.gpu-nvidia': {'state': 'failed', 'reason': 'x'}, 'gpu.nvidia.devices': [{}, {}], "
     "'env.CUDA_VISIBLE_DEVICES': '0,1'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "the bus", NULL},
    {"right value, no library", "single-node", "NCCL_TESTINT",
     "'nccl.version': {'state': 'absent'}, 'env.NCCL_TESTINT': '16'", SHK_NA, SHK_NOT_COVERED,
     "no library that reads it", NULL},
    {"release line of until", "single-node", "NCCL_TESTINT",
     "'nccl.version': '2.27.7', 'env.NCCL_TESTINT': '16'", SHK_PASS, SHK_DECLARED, NULL, NULL},
    {"library too new", "single-node", "NCCL_TESTINT",
     "'nccl.version': '2.28.3', 'env.NCCL_TESTINT': '16'", SHK_WARN, SHK_DECLARED,
     "nothing here reads it", "env-variable-unknown-to-version"},
    {"library too old", "single-node", "NCCL_TESTINT",
     "'nccl.version': '2.9.8', 'env.NCCL_TESTINT': '16'", SHK_WARN, SHK_DECLARED, "NCCL 2.9.8",
     NULL},
    {"library lists it", "single-node", "NCCL_TESTINT",
     NCCL_26 "'nccl.env_names': ['NCCL_DEBUG', 'NCCL_TESTINT'], 'env.NCCL_TESTINT': '16'", SHK_PASS,
     SHK_DECLARED, "read by NCCL", NULL},
    /* the catalogue says that this version reads it: a contradiction is no warning, and no pass */
    {"library does not list it", "single-node", "NCCL_TESTINT",
     NCCL_26 "'nccl.env_names': ['NCCL_DEBUG'], 'env.NCCL_TESTINT': '16'", SHK_UNKNOWN,
     SHK_NOT_COVERED, "does not hold this name", NULL},
    {"read by the copy of the Python environment", "single-node", "NCCL_TESTINT",
     "'nccl.version': '2.10.3', 'nccl.path': '/l/libnccl.so.2', 'nccl.env_names': ['NCCL_DEBUG'], "
     "'nccl.copies': [{'path': '/v/libnccl.so.2', 'version': '2.21.5', 'env_names': "
     "['NCCL_TESTINT']}], 'env.NCCL_TESTINT': '16'",
     SHK_PASS, SHK_DECLARED,
     "read by NCCL 2.21.5 (/v/libnccl.so.2) of the Python environment, not by NCCL 2.10.3 "
     "(/l/libnccl.so.2)",
     NULL},
    {"not read by the copy of the Python environment", "single-node", "NCCL_TESTINT",
     NCCL_26 "'nccl.env_names': ['NCCL_TESTINT'], 'nccl.copies': [{'path': '/v/libnccl.so.2', "
             "'version': '2.10.3', 'env_names': ['NCCL_DEBUG']}], 'env.NCCL_TESTINT': '16'",
     SHK_PASS, SHK_DECLARED, "not by NCCL 2.10.3 (/v/libnccl.so.2) of the Python environment",
     NULL},
    {"wrong number", "single-node", "NCCL_TESTINT", NCCL_26 "'env.NCCL_TESTINT': '16k'", SHK_FAIL,
     SHK_DECLARED, "read as 16", "16384"},
    {"number out of range", "single-node", "NCCL_TESTINT", NCCL_26 "'env.NCCL_TESTINT': '65'",
     SHK_FAIL, SHK_DECLARED, "largest allowed value, 64", NULL},
    {"octal", "single-node", "NCCL_TESTINT", NCCL_26 "'env.NCCL_TESTINT': '010'", SHK_WARN,
     SHK_DECLARED, "octal", NULL},
    {"wrong level costs little", "single-node", "NCCL_TESTLEVEL", "'env.NCCL_TESTLEVEL': 'INFOO'",
     SHK_WARN, SHK_DECLARED, "INFOO", "export NCCL_TESTLEVEL=INFO"},
    {"production cost", "single-node", "NCCL_TESTLEVEL", "'env.NCCL_TESTLEVEL': 'TRACE'", SHK_WARN,
     SHK_DECLARED, "It prints a lot", NULL},
    {"production cost of a few lines", "single-node", "NCCL_TESTLEVEL",
     "'env.NCCL_TESTLEVEL': 'INFO'", SHK_NOTE, SHK_DECLARED, "It prints a lot", NULL},
    {"no production cost", "single-node", "NCCL_TESTLEVEL", "'env.NCCL_TESTLEVEL': 'WARN'",
     SHK_PASS, SHK_DECLARED, NULL, NULL},
    {"folklore", "single-node", "NCCL_TESTFOLKLORE", "'env.NCCL_TESTFOLKLORE': '1'", SHK_WARN,
     SHK_DECLARED, "no library reads this name", "NCCL_TESTLEVEL is what controls"},
    {"folklore that a library reads", "single-node", "NCCL_TESTFOLKLORE",
     NCCL_26 "'nccl.env_names': ['NCCL_TESTFOLKLORE'], 'env.NCCL_TESTFOLKLORE': '1'", SHK_PASS,
     SHK_DECLARED, "read by NCCL", NULL},
    {"folklore, library asked", "single-node", "NCCL_TESTFOLKLORE",
     NCCL_26 "'nccl.env_names': ['NCCL_DEBUG'], 'env.NCCL_TESTFOLKLORE': '1'", SHK_WARN, SHK_EFFECT,
     "no library reads", NULL},
    {"retired", "single-node", "NCCL_TESTRETIRED", NCCL_26 "'env.NCCL_TESTRETIRED': '1'", SHK_WARN,
     SHK_DECLARED, "only old versions", "NCCL_TESTINT"},
    {"retired, and asks for what is so anyway", "single-node", "NCCL_TESTRETIRED",
     NCCL_26 "'env.NCCL_TESTRETIRED': 'off'", SHK_NOTE, SHK_DECLARED, "only old versions", NULL},
    {"a feature switched off that is not there", "single-node", "NCCL_TEST_ENABLE",
     NCCL_26 "'env.NCCL_TEST_ENABLE': '0'", SHK_NOTE, SHK_DECLARED,
     "asks for the default behaviour", NULL},
    {"a feature switched on that is not there", "single-node", "NCCL_TEST_ENABLE",
     NCCL_26 "'env.NCCL_TEST_ENABLE': '1'", SHK_WARN, SHK_DECLARED, "nothing here reads it",
     "unset NCCL_TEST_ENABLE"},
    {"a value out of range that leaves the default", "single-node", "NCCL_TEST_ENABLE",
     "'nccl.version': '2.29.1', 'env.NCCL_TEST_ENABLE': '9'", SHK_WARN, SHK_DECLARED,
     "the default stays", NULL},
    {"a word that is read as it is meant", "single-node", "NCCL_TESTOFF",
     "'env.NCCL_TESTOFF': 'false'", SHK_NOTE, SHK_DECLARED, "what it means to say", NULL},
    {"a word that is read as its opposite", "single-node", "NCCL_TESTOFF",
     "'env.NCCL_TESTOFF': 'true'", SHK_WARN, SHK_DECLARED, "read as 0", NULL},
    {"a value that was withheld", "single-node", "NCCL_TESTINT",
     "'env.NCCL_TESTINT': {'state': 'failed', 'reason': 'redacted: looks like a token'}",
     SHK_UNKNOWN, SHK_NOT_COVERED, "looks like a token", NULL},
    {"a value that was taken out", "single-node", "NCCL_TESTINT",
     "'env.NCCL_TESTINT': '[redacted]'", SHK_UNKNOWN, SHK_NOT_COVERED, "withheld", NULL},
    {"a value of another type", "single-node", "NCCL_TESTINT", "'env.NCCL_TESTINT': 5", SHK_UNKNOWN,
     SHK_NOT_COVERED, "unexpected form", NULL},
    {"retired, with the old version", "single-node", "NCCL_TESTRETIRED",
     "'nccl.version': '2.8.4', 'env.NCCL_TESTRETIRED': '1'", SHK_PASS, SHK_DECLARED, NULL, NULL},
    {"unknown name, nobody to ask", "single-node", "NCCL_ZZZ_QQQ_XXX",
     "'env.NCCL_ZZZ_QQQ_XXX': '1'", SHK_UNKNOWN, SHK_NOT_COVERED, "not in the catalogue", NULL},
    {"unknown name, library asked", "single-node", "NCCL_ZZZ_QQQ_XXX",
     NCCL_26 "'nccl.env_names': ['NCCL_DEBUG'], 'env.NCCL_ZZZ_QQQ_XXX': '1'", SHK_WARN, SHK_EFFECT,
     "does not know the name", "env-variable-unknown-to-version"},
    {"unknown to us, known to the library", "single-node", "NCCL_ZZZ_QQQ_XXX",
     NCCL_26 "'nccl.env_names': ['NCCL_ZZZ_QQQ_XXX'], 'env.NCCL_ZZZ_QQQ_XXX': '1'", SHK_PASS,
     SHK_DECLARED, "not judged", NULL},
    {"misspelled, from the catalogue", "single-node", "NCCL_TESTLEVL", "'env.NCCL_TESTLEVL': 'x'",
     SHK_WARN, SHK_DECLARED, "did you mean NCCL_TESTLEVEL?", "env-variable-misspelled"},
    {"misspelled, from the library", "single-node", "FI_TCP_IFACES",
     "'fabric.version': '1.17.0', 'fabric.params': [{'name': 'FI_TCP_IFACE'}], "
     "'env.FI_TCP_IFACES': 'x'",
     SHK_WARN, SHK_EFFECT, "did you mean FI_TCP_IFACE?", NULL},
    {"words in another order", "single-node", "NCCL_TESTORDER_A_LONGWORD",
     "'nccl.env_names': ['NCCL_A_LONGWORD_TESTORDER'], 'env.NCCL_TESTORDER_A_LONGWORD': '1'",
     SHK_WARN, SHK_EFFECT, "NCCL_A_LONGWORD_TESTORDER", NULL},
    {"a word missing", "single-node", "NCCL_TESTLONG_WORD",
     "'nccl.env_names': ['NCCL_TESTLONG_WORD_PATH'], 'env.NCCL_TESTLONG_WORD': '/tmp/x'", SHK_WARN,
     SHK_EFFECT, "did you mean NCCL_TESTLONG_WORD_PATH?", NULL},
    {"first letter missing", "single-node", "CCL_TESTLEVEL", "'env.CCL_TESTLEVEL': 'INFO'",
     SHK_WARN, SHK_DECLARED, "did you mean NCCL_TESTLEVEL?", NULL},
    {"installation directory", "single-node", "NCCL_HOME", "'env.NCCL_HOME': '/opt/nccl'", SHK_NA,
     SHK_NOT_COVERED, "installation", NULL},
    {"read and no more known", "single-node", "FI_CXI_TESTSIZE",
     "'fabric.version': '1.22.0', 'fabric.params': [{'name': 'FI_CXI_TESTSIZE', 'value': '64'}], "
     "'env.FI_CXI_TESTSIZE': '64'",
     SHK_PASS, SHK_DECLARED, "read by libfabric", NULL},
    {"provider without the parameter", "single-node", "FI_CXI_TESTSIZE",
     "'fabric.version': '1.22.0', 'fabric.path': '/usr/lib/libfabric.so.1', 'fabric.params': "
     "[{'name': 'FI_TCP_IFACE'}], 'fabric.providers': ['cxi'], 'fabric.core_providers': ['cxi'], "
     "'env.FI_CXI_TESTSIZE': '64'",
     SHK_WARN, SHK_EFFECT, "libfabric 1.22.0 (/usr/lib/libfabric.so.1)", NULL},
    /* without a device it has registered nothing yet */
    {"provider without a device", "single-node", "FI_CXI_TESTSIZE",
     "'fabric.version': '1.22.0', 'fabric.path': '/usr/lib/libfabric.so.1', 'fabric.params': "
     "[{'name': 'FI_TCP_IFACE'}], 'fabric.providers': ['tcp;ofi_rxm'], 'fabric.core_providers': "
     "['cxi'], 'env.FI_CXI_TESTSIZE': '64'",
     SHK_PASS, SHK_DECLARED, "read by libfabric 1.22.0", NULL},
    {"provider that is not in the library", "single-node", "FI_CXI_TESTSIZE",
     "'fabric.version': '1.22.0', 'fabric.path': '/usr/lib/libfabric.so.1', 'fabric.params': "
     "[{'name': 'FI_TCP_IFACE'}], 'fabric.providers': ['tcp'], 'fabric.core_providers': "
     "['tcp'], 'env.FI_CXI_TESTSIZE': '64'",
     SHK_WARN, SHK_EFFECT, "which has no provider cxi, does not", NULL},
    {"a new variable of a provider without a device", "single-node", "FI_CXI_BRANDNEW",
     "'fabric.version': '1.22.0', 'fabric.params': [{'name': 'FI_TCP_IFACE'}], "
     "'fabric.providers': ['tcp'], 'fabric.core_providers': ['tcp', 'cxi'], "
     "'env.FI_CXI_BRANDNEW': '64'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "no library here could be asked", NULL},
    {"providers that were not read", "single-node", "FI_CXI_TESTSIZE",
     "'fabric.version': '1.22.0', 'fabric.params': [{'name': 'FI_TCP_IFACE'}], "
     "'env.FI_CXI_TESTSIZE': '64'",
     SHK_PASS, SHK_DECLARED, NULL, NULL},

    /* interfaces */
    {"interfaces by prefix", "single-node", "NCCL_TESTIF", IFACES "'env.NCCL_TESTIF': 'hsn'",
     SHK_PASS, SHK_EFFECT, "hsn0, hsn1, hsn2, hsn3", NULL},
    {"interfaces with a typing error", "single-node", "NCCL_TESTIF",
     IFACES "'env.NCCL_TESTIF': 'hsn0,hsn1,hsn2,hns3'", SHK_FAIL, SHK_EFFECT,
     "no interface hns3 (did you mean hsn3?)", "export NCCL_TESTIF=hsn0,hsn1,hsn2,hsn3"},
    {"two missing", "single-node", "NCCL_TESTIF", IFACES "'env.NCCL_TESTIF': 'eth5,eth6'", SHK_FAIL,
     SHK_EFFECT, "eth5, eth6", "socket-ifname-missing"},
    {"exact name that is only a prefix", "single-node", "NCCL_TESTIF",
     IFACES "'env.NCCL_TESTIF': '=hsn'", SHK_FAIL, SHK_EFFECT, "no interface hsn", NULL},
    {"excluded, others stay", "single-node", "NCCL_TESTIF",
     IFACES "'env.NCCL_TESTIF': '^docker,lo,veth'", SHK_PASS, SHK_EFFECT, NULL, NULL},
    {"one of those named is down", "single-node", "NCCL_TESTIF",
     IFACES "'env.NCCL_TESTIF': 'eth0,ib0'", SHK_WARN, SHK_EFFECT, "ib0 is down", NULL},
    {"one that a prefix takes in is down", "single-node", "NCCL_TESTIF",
     IFACES "'env.NCCL_TESTIF': 'eth,ib'", SHK_NOTE, SHK_EFFECT, "ib0 is down", NULL},
    {"a list for nodes of several kinds", "single-node", "NCCL_TESTIF",
     IFACES "'env.NCCL_TESTIF': 'eth,bond,wlp'", SHK_NOTE, SHK_EFFECT, "no interface bond, wlp",
     NULL},
    {"everything excluded", "single-node", "NCCL_TESTIF",
     IFACES "'env.NCCL_TESTIF': '^docker,l,hsn,eth,ib,bare'", SHK_FAIL, SHK_EFFECT,
     "excludes every interface", "no-usable-socket-interface"},
    {"down", "single-node", "NCCL_TESTIF", IFACES "'env.NCCL_TESTIF': 'ib0'", SHK_FAIL, SHK_EFFECT,
     "ib0 is down", "no-usable-socket-interface"},
    {"no address", "single-node", "NCCL_TESTIF", IFACES "'env.NCCL_TESTIF': 'bare0'", SHK_FAIL,
     SHK_EFFECT, "no IP address", NULL},
    {"loopback, several nodes", "single-node", "NCCL_TESTIF", TWO IFACES "'env.NCCL_TESTIF': 'lo'",
     SHK_FAIL, SHK_EFFECT, "loopback", "socket-ifname-loopback"},
    {"loopback, one node", "single-node", "NCCL_TESTIF", ONE IFACES "'env.NCCL_TESTIF': 'lo'",
     SHK_PASS, SHK_EFFECT, NULL, NULL},
    {"bridge", "single-node", "NCCL_TESTIF", TWO IFACES "'env.NCCL_TESTIF': 'docker0'", SHK_WARN,
     SHK_EFFECT, "bridge", "socket-ifname-picks-virtual"},
    {"link-local only", "single-node", "NCCL_TESTIF", TWO IFACES "'env.NCCL_TESTIF': 'll0'",
     SHK_WARN, SHK_EFFECT, "link-local", "socket-ifname-picks-link-local"},
    {"blank in the list", "single-node", "NCCL_TESTIF", IFACES "'env.NCCL_TESTIF': 'hsn0, hsn1'",
     SHK_FAIL, SHK_DECLARED, "part of a name", "socket-ifname-bad-syntax"},
    {"interfaces not read", "single-node", "NCCL_TESTIF", "'env.NCCL_TESTIF': 'hsn'", SHK_UNKNOWN,
     SHK_NOT_COVERED, "no probe collected net.ifaces", NULL},
    {"exact names only", "single-node", "GLOO_TESTIF", IFACES "'env.GLOO_TESTIF': 'hsn'", SHK_FAIL,
     SHK_EFFECT, "no interface hsn", NULL},
    {"exact name", "single-node", "GLOO_TESTIF", IFACES "'env.GLOO_TESTIF': 'hsn0'", SHK_PASS,
     SHK_EFFECT, "hsn0", NULL},

    /* adapters */
    {"adapters", "single-node", "NCCL_TESTHCA", HCAS "'env.NCCL_TESTHCA': '=mlx5_0:1,mlx5_1:1'",
     SHK_PASS, SHK_EFFECT, NULL, NULL},
    {"adapter missing", "single-node", "NCCL_TESTHCA", HCAS "'env.NCCL_TESTHCA': 'mlx5_2:1'",
     SHK_FAIL, SHK_EFFECT, "no RDMA device mlx5_2", "wrong-hca-selected"},
    {"adapter is a prefix of another", "single-node", "NCCL_TESTHCA",
     HCAS "'env.NCCL_TESTHCA': 'mlx5_1'", SHK_WARN, SHK_EFFECT, "prefix", "2 devices"},
    {"port missing", "single-node", "NCCL_TESTHCA", HCAS "'env.NCCL_TESTHCA': 'mlx5_0:2'", SHK_FAIL,
     SHK_EFFECT, "no port 2", NULL},
    {"adapters excluded", "single-node", "NCCL_TESTHCA", HCAS "'env.NCCL_TESTHCA': '^mlx5_9'",
     SHK_PASS, SHK_EFFECT, NULL, NULL},
    {"no adapters at all", "single-node", "NCCL_TESTHCA",
     "'rdma.devices': {'state': 'absent'}, 'env.NCCL_TESTHCA': 'mlx5_0'", SHK_FAIL, SHK_EFFECT,
     "it has: none", NULL},

    /* paths */
    {"cache on a shared file system", "single-node", "MIOPEN_USER_DB_PATH",
     "'path.MIOPEN_USER_DB_PATH': {'exists': true, 'type': 'lustre'}, "
     "'env.MIOPEN_USER_DB_PATH': '/scratch/me'",
     SHK_FAIL, SHK_EFFECT, "lustre is shared", "miopen-cache-shared-fs"},
    {"cache on a file system that may be either", "single-node", "MIOPEN_USER_DB_PATH",
     "'path.MIOPEN_USER_DB_PATH': {'exists': true, 'kind': 'dir', 'type': 'fuse.juicefs'}, "
     "'env.MIOPEN_USER_DB_PATH': '/tmp/me'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "whether other nodes share fuse.juicefs is unknown", NULL},
    {"cache on a local file system", "single-node", "MIOPEN_USER_DB_PATH",
     "'path.MIOPEN_USER_DB_PATH': {'exists': true, 'kind': 'dir', 'type': 'tmpfs'}, "
     "'env.MIOPEN_USER_DB_PATH': '/tmp/me'",
     SHK_PASS, SHK_EFFECT, "tmpfs", NULL},
    {"file is gone", "single-node", "NCCL_TESTFILE",
     "'path.NCCL_TESTFILE': {'exists': false}, 'env.NCCL_TESTFILE': '/no/such'", SHK_FAIL,
     SHK_EFFECT, "/no/such does not exist", NULL},
    {"file is there", "single-node", "NCCL_TESTFILE",
     "'path.NCCL_TESTFILE': {'exists': true}, 'env.NCCL_TESTFILE': '/etc/x'", SHK_PASS, SHK_EFFECT,
     NULL, NULL},
    {"tilde", "single-node", "NCCL_TESTFILE", "'env.NCCL_TESTFILE': '~/topo.xml'", SHK_FAIL,
     SHK_DECLARED, "not expanded", NULL},

    /* files */
    {"from nccl.conf", "single-node", "NCCL_TESTINT",
     "'env.file.NCCL_TESTINT': {'state': 'present', 'value': '16k', 'source': '/etc/nccl.conf'}",
     SHK_FAIL, SHK_DECLARED, "from /etc/nccl.conf", "read as 16"},

    /* profile */
    {"required and right", "test-fabric", "NCCL_TESTINT", TWO "'env.NCCL_TESTINT': '16'", SHK_PASS,
     SHK_DECLARED, NULL, NULL},
    {"required and different", "test-fabric", "NCCL_TESTINT", TWO "'env.NCCL_TESTINT': '4'",
     SHK_FAIL, SHK_DECLARED, "Eight or sixteen", "expected 8 or 16"},
    {"required and missing", "test-fabric", "NCCL_TESTINT", TWO "'env.HOME': '/'", SHK_FAIL,
     SHK_DECLARED, "required here", "export NCCL_TESTINT=8"},
    {"required and withheld", "test-fabric", "NCCL_TESTINT",
     TWO "'env.NCCL_TESTINT': {'state': 'failed', 'reason': 'x'}", SHK_UNKNOWN, SHK_NOT_COVERED,
     "could not be read", NULL},
    {"required, a few variables are no environment", "test-fabric", "NCCL_TESTINT",
     "'job.nodes': 2, 'env.HOME': '/'", SHK_UNKNOWN, SHK_NOT_COVERED,
     "the environment was not read", NULL},
    {"of the maker's list alone", "test-site", "NCCL_TESTINT", TWO "'env.HOME': '/'", SHK_NOTE,
     SHK_DECLARED, "not the guide of this site", NULL},
    {"of the maker's list alone, another value", "test-site", "NCCL_TESTINT",
     TWO "'env.NCCL_TESTINT': '4'", SHK_NOTE, SHK_DECLARED, "not the guide of this site", NULL},
    {"of the maker's list, with a reason of its own", "test-site", "NCCL_TESTLEVEL",
     TWO "'env.NCCL_TESTLEVEL': 'VERSION'", SHK_WARN, SHK_DECLARED, "For logs.", NULL},
    {"of the maker's list, and the site follows it", "test-site", "NCCL_TESTIF",
     TWO "'env.HOME': '/'", SHK_WARN, SHK_DECLARED, "recommended here", NULL},
    {"optional and different", "test-fabric", "NCCL_TESTOFF", TWO "'env.NCCL_TESTOFF': '7'",
     SHK_NOTE, SHK_DECLARED, "Off is usual", NULL},
    {"required on several nodes only", "test-fabric", "NCCL_TESTINT", ONE "'env.HOME': '/'",
     SHK_VERDICT_COUNT, SHK_NOT_COVERED, NULL, NULL},
    {"required, nodes not known", "test-fabric", "NCCL_TESTINT", "'probe.env.status': 'ok'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "nodes>1", NULL},
    {"different, nodes not known", "test-fabric", "NCCL_TESTINT", "'env.NCCL_TESTINT': '4'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "Eight or sixteen", NULL},
    {"environment not read", "test-fabric", "NCCL_TESTIF", "'job.nodes': 2, 'host.name': 'x'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "the environment was not read", NULL},
    {"recommended and missing", "test-fabric", "NCCL_TESTIF", TWO "'env.HOME': '/'", SHK_WARN,
     SHK_DECLARED, "recommended here", NULL},
    {"same network as recommended", "test-fabric", "NCCL_TESTIF",
     TWO IFACES "'env.NCCL_TESTIF': 'hsn0,hsn1'", SHK_PASS, SHK_EFFECT, NULL, NULL},
    {"another network", "test-fabric", "NCCL_TESTIF", TWO IFACES "'env.NCCL_TESTIF': 'eth0'",
     SHK_WARN, SHK_DECLARED, "The fabric.", NULL},
    {"optional and missing", "test-fabric", "NCCL_TESTLEVEL", TWO "'env.HOME': '/'", SHK_NA,
     SHK_NOT_COVERED, "not needed", NULL},
    {"must be unset", "test-fabric", "NCCL_TESTFILE", TWO "'env.NCCL_TESTFILE': '/etc/x'", SHK_FAIL,
     SHK_DECLARED, "It breaks things", "unset NCCL_TESTFILE"},
    {"condition not decidable", "test-fabric", "FI_CXI_TESTSIZE", TWO "'env.HOME': '/'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "plugin<1.15", NULL},
};

Test(env, cases)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct env_case *c = &cases[i];
        struct shk_findings *findings = support_run(support_test_config(), c->profile, c->facts);
        const struct shk_finding *f = support_find(findings, NULL, c->setting);
        if (c->verdict == SHK_VERDICT_COUNT) {
            cr_expect_null(f, "%s: no row was expected", c->name);
        } else {
            cr_expect_not_null(f, "%s: no row", c->name);
            char *text = f ? support_text(f) : NULL;
            cr_expect(f && f->verdict == c->verdict, "%s: %s", c->name, text);
            cr_expect(f && f->evidence == c->evidence, "%s: %s", c->name, text);
            cr_expect(!c->says || (text && strstr(text, c->says)), "%s: lacks \"%s\": %s", c->name,
                      c->says, text);
            cr_expect(!c->says_too || (text && strstr(text, c->says_too)), "%s: lacks \"%s\": %s",
                      c->name, c->says_too, text);
            free(text);
        }
        shk_findings_destroy(findings);
    }
}

/* A signal that was not read: what every profile that may be the right one asks for is unknown. */
Test(env, an_uncertain_profile_asks_for_nothing)
{
    static const struct {
        const char *check, *setting;
    } rows[] = {{"env.profile", "NCCL_SOCKET_IFNAME"},
                {"env.profile", "NCCL_NET_GDR_LEVEL"},
                {"env.audit", "FI_PROVIDER"},
                {"env.value", "FI_MR_CACHE_MONITOR"}};
    struct shk_findings *findings = support_run_in_doubt(
        support_config(), "single-node",
        TWO "'pci.count.cxi': 4, 'env.FI_MR_CACHE_MONITOR': 'kdreg2'", "host.name was not read");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct shk_finding *f = support_find(findings, rows[i].check, rows[i].setting);
        char *text = f ? support_text(f) : NULL;
        cr_expect(f && f->verdict == SHK_UNKNOWN, "%s: %s", rows[i].setting, text);
        cr_expect(text && strstr(text, "host.name was not read"), "%s", text);
        free(text);
    }
    shk_findings_destroy(findings);
}

Test(env, one_row_per_variable)
{
    struct shk_findings *findings = support_run(
        support_test_config(), "test-fabric",
        TWO IFACES
        "'env.NCCL_TESTINT': '16k', 'env.NCCL_TESTIF': 'hns3', 'env.NCCL_TESTFILE': '~'");
    size_t rows = 0;
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        rows += strcmp(f->setting, "NCCL_TESTINT") == 0 || strcmp(f->setting, "NCCL_TESTIF") == 0 ||
                strcmp(f->setting, "NCCL_TESTFILE") == 0;
    }
    cr_expect_eq(rows, 3);
    shk_findings_destroy(findings);
}

Test(env, environment_wins_over_the_file)
{
    struct shk_findings *findings = support_run(
        support_test_config(), "single-node",
        NCCL_26 "'env.NCCL_TESTINT': '16', 'env.file.NCCL_TESTINT': {'state': 'present', 'value': "
                "'8', 'source': '/etc/nccl.conf'}");
    bool shadowed = false;
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if (strcmp(f->setting, "NCCL_TESTINT") != 0)
            continue;
        if (f->verdict == SHK_WARN) {
            shadowed = true;
            cr_expect(strstr(f->why, "wins over /etc/nccl.conf"), "%s", f->why);
            cr_expect_str_eq(f->diagnosis, "nccl-conf-file-override");
        } else {
            cr_expect_eq(f->verdict, SHK_PASS);
        }
    }
    cr_expect(shadowed);
    shk_findings_destroy(findings);
}

/* The strings of some libraries do not hold every name that they read. */
Test(env, a_name_that_is_not_listed)
{
    static const struct {
        const char *facts, *name;
        enum shk_verdict verdict;
    } rows[] = {
        {"'nvshmem.path': '/x', 'nvshmem.version': '3.8.0', 'nvshmem.env_names': "
         "['NVSHMEM_DEBUG'], ",
         "NVSHMEM_QP_DEPTH", SHK_WARN},
        {"'nvshmem.path': '/x', 'nvshmem.version': '3.8.0', 'nvshmem.env_names': "
         "['NVSHMEM_QP_DEPTH'], ",
         "NVSHMEM_QP_DEPTH", SHK_PASS},
        {"'hsa.path': '/x', 'hsa.env_names': ['HSA_XNACK'], 'hsa.version': {'state': 'failed', "
         "'reason': 'x'}, ",
         "HSA_ENABLE_SDMA", SHK_PASS},
        /* RCCL's list is whole, that of the HSA runtime is not */
        {"'rccl.path': '/r', 'rccl.version': '2.13.4', 'rccl.env_names': ['NCCL_DEBUG'], "
         "'hsa.path': '/x', 'hsa.version': '1.13.0', 'hsa.env_names': ['HSA_XNACK'], ",
         "HSA_NOPE", SHK_UNKNOWN},
        {"'rccl.path': '/r', 'rccl.version': '2.13.4', 'rccl.env_names': ['HSA_NOPE'], "
         "'hsa.path': '/x', 'hsa.version': '1.13.0', 'hsa.env_names': ['HSA_XNACK'], ",
         "HSA_NOPE", SHK_PASS},
        {"'rccl.path': '/r', 'rccl.version': '2.13.4', 'rccl.env_names': ['NCCL_DEBUG'], "
         "'hsa.version': {'state': 'absent'}, ",
         "HSA_NOPE", SHK_WARN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *json = shk_strf("%s'env.%s': '1'", rows[i].facts, rows[i].name);
        struct shk_findings *findings = support_run(support_config(), "single-node", json);
        const struct shk_finding *f = support_find(findings, "env.value", rows[i].name);
        char *text = f ? support_text(f) : NULL;
        cr_expect(f && f->verdict == rows[i].verdict, "%s", text ? text : rows[i].name);
        free(text);
        free(json);
        shk_findings_destroy(findings);
    }
}

/* NVSHMEM 3.6 and later: the other way round. */
Test(env, the_nvshmem_file_wins_over_the_environment)
{
    static const struct {
        const char *version, *says; /* on which of the two values the row is that does not count */
    } rows[] = {{"'nvshmem.version': '3.6.1', ", "/etc/nvshmem.conf:1 says MPI"},
                {"", "/etc/nvshmem.conf:1 says MPI"},
                {"'nvshmem.version': '3.4.5', ", "the environment says PMI, which wins"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *json = shk_strf("%s'env.NVSHMEM_BOOTSTRAP': 'PMI', 'env.file.NVSHMEM_BOOTSTRAP': "
                              "{'state': 'present', 'value': 'MPI', 'source': "
                              "'/etc/nvshmem.conf:1'}",
                              rows[i].version);
        struct shk_findings *findings = support_run(support_config(), "single-node", json);
        size_t found = 0;
        for (size_t k = 0; k < shk_findings_count(findings); k++) {
            const struct shk_finding *f = shk_findings_at(findings, k);
            if (strcmp(f->setting, "NVSHMEM_BOOTSTRAP") == 0 && f->why && strstr(f->why, "says")) {
                cr_expect_eq(f->verdict, SHK_WARN);
                cr_expect(strstr(f->why, rows[i].says), "%s", f->why);
                cr_expect_str_eq(f->diagnosis, "nccl-conf-file-override");
                found++;
            }
        }
        cr_expect_eq(found, 1, "%s", json);
        shk_findings_destroy(findings);
        free(json);
    }
}

Test(env, the_same_value_in_both_is_no_conflict)
{
    struct shk_findings *findings = support_run(
        support_test_config(), "single-node",
        NCCL_26 "'env.NCCL_TESTINT': '16', 'env.file.NCCL_TESTINT': {'state': 'present', 'value': "
                "'16', 'source': '/etc/nccl.conf'}");
    for (size_t i = 0; i < shk_findings_count(findings); i++)
        cr_expect_neq(shk_findings_at(findings, i)->verdict, SHK_WARN);
    shk_findings_destroy(findings);
}

Test(env, values_that_are_no_text_are_no_crash)
{
    struct shk_findings *findings = support_run(
        support_test_config(), "single-node",
        "'env.NCCL_TESTINT': 5, 'env.NCCL_TESTIF': ['x'], 'env.': 'x', 'env.file.': 'x', "
        "'net.ifaces': [1, {}, {'name': 3}], 'rdma.devices': {'a': 1}, 'fabric.params': [null, 3], "
        "'plugin.candidates': [7, {'found': true, 'abi': 3, 'load': []}], 'nccl.net_abi': ['x']");
    cr_expect_gt(shk_findings_count(findings), 0);
    shk_findings_destroy(findings);
}
