#include "core/redact/redact.h"
#include "hosttree.h"
#include "tests/names.h"

#include <stdlib.h>

TREE_SUITE(env);
TREE_SUITE(paths);

Test(env, names_that_may_be_captured)
{
    static const struct {
        const char *name, *family, *of;
        enum shk_name_how how;
    } rows[] = {
        {"NCCL_DEBUG", "nccl", "NCCL_", SHK_NAME_PREFIX},
        {"NCCL_SOMETHING_NEW", "nccl", "NCCL_", SHK_NAME_PREFIX},
        {"OFI_NCCL_PROTOCOL", "ofi-plugin", "OFI_NCCL_", SHK_NAME_PREFIX},
        {"FI_PROVIDER", "libfabric", "FI_PROVIDER", SHK_NAME_EXACT},
        {"FI_PROVIDERS", "libfabric", "FI_", SHK_NAME_PREFIX},
        {"CXI_FORK_SAFE_HP", "cxi", "CXI_FORK_SAFE_HP", SHK_NAME_EXACT},
        {"TORCHELASTIC_RUN_ID", "torch", "TORCHELASTIC_", SHK_NAME_PREFIX},
        {"LD_LIBRARY_PATH", "loader", "LD_LIBRARY_PATH", SHK_NAME_EXACT},
        {"CCL_NET_GDR_LEVEL", "ccl", "CCL_", SHK_NAME_PREFIX},
        {"VLLM_USE_NCCL_SYMM_MEM", "framework", "VLLM_USE_NCCL_", SHK_NAME_PREFIX},
        {"SINGULARITYENV_LD_LIBRARY_PATH", "loader", "LD_LIBRARY_PATH", SHK_NAME_EXACT},
        {"APPTAINERENV_NCCL_DEBUG", "nccl", "NCCL_", SHK_NAME_PREFIX},
        /* typing errors */
        {"NCLL_DEBUG", "nccl", "NCCL_", SHK_NAME_NEAR},
        {"NCL_SOCKET_IFNAME", "nccl", "NCCL_", SHK_NAME_NEAR},
        {"NCCCL_P2P_DISABLE", "nccl", "NCCL_", SHK_NAME_NEAR},
        {"NNCL_NET_GDR_LEVEL", "nccl", "NCCL_", SHK_NAME_NEAR},
        {"NCCLDEBUG", "nccl", "NCCL_", SHK_NAME_NEAR},
        {"NCCL-DEBUG", "nccl", "NCCL_", SHK_NAME_NEAR},
        {"nccl_debug", "nccl", "NCCL_", SHK_NAME_NEAR},
        {"Fi_Provider", "libfabric", "FI_", SHK_NAME_NEAR},
        {"F_PROVIDER", "libfabric", "FI_PROVIDER", SHK_NAME_NEAR},
        {"IF_PROVIDER", "libfabric", "FI_PROVIDER", SHK_NAME_NEAR},
        {"FIPROVIDER", "libfabric", "FI_PROVIDER", SHK_NAME_NEAR},
        {"LD_LIBRARYPATH", "loader", "LD_LIBRARY_PATH", SHK_NAME_NEAR},
        {"LD_LIBRARY_PAHT", "loader", "LD_LIBRARY_PATH", SHK_NAME_NEAR},
        {"MASTER_ADR", "torch", "MASTER_ADDR", SHK_NAME_NEAR},
        {"MIOPN_USER_DB_PATH", "miopen", "MIOPEN_", SHK_NAME_NEAR},
        {"NVSHEM_REMOTE_TRANSPORT", "nvshmem", "NVSHMEM_", SHK_NAME_NEAR},
        {"NEURN_RT_ROOT_COMM_ID", "neuron", "NEURON_", SHK_NAME_NEAR},
        {"RDMA_FORK_SAFE", "efa", "RDMAV_", SHK_NAME_NEAR},
        {"CUDE_VISIBLE_DEVICES", "cuda", "CUDA_", SHK_NAME_NEAR},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shk_name_match match = {0};
        cr_assert(shk_name_classify(catalogue_names(), rows[i].name, &match), "%s", rows[i].name);
        cr_expect_str_eq(match.family, rows[i].family, "%s: %s", rows[i].name, match.family);
        cr_expect_str_eq(match.of, rows[i].of, "%s: %s", rows[i].name, match.of);
        cr_expect_eq(match.how, rows[i].how, "%s: %s", rows[i].name, shk_name_how_text(match.how));
    }
}

/* Switches whose underscore was left out are found for every library with known words. */
Test(env, joined_words)
{
    struct shk_name_match match;
    cr_expect(shk_name_classify(catalogue_names(), "CUDAVISIBLE_DEVICES", &match));
    cr_expect(shk_name_classify(catalogue_names(), "GLOOSOCKET_IFNAME", &match));
    cr_expect_not(shk_name_classify(NULL, "NCCL_DEBUG", &match));
}

/* Other people's business, however similar it looks. */
Test(env, names_that_must_not_be_captured)
{
    static const char *const names[] = {
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "LC_ALL",
        "TERM",
        "SHELL",
        "PWD",
        "EDITOR",
        "PS1",
        "LS_COLORS",
        "NVM_DIR",
        "NVM_BIN",
        "NPM_TOKEN",
        "NODE_PATH",
        "NCARG_ROOT",
        "NCAL_HOME",
        "NCO_PATH",
        "CONDA_PREFIX",
        "CODA_HOME",
        "CURL_CA_BUNDLE",
        "PYTHONPATH",
        "VIRTUAL_ENV",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_DEFAULT_REGION",
        "HF_TOKEN",
        "WANDB_API_KEY",
        "SSH_AUTH_SOCK",
        "DYLD_LIBRARY_PATH",
        "MANPATH",
        "INFOPATH",
        "XDG_RUNTIME_DIR",
        "DISPLAY",
        "KUBERNETES_PORT",
        "VLLM_API_KEY",
        "SINGULARITYENV_AWS_SECRET_ACCESS_KEY",
        "APPTAINERENV_HOME",
        "FINDER_PATH",
        "FILE_PATH",
        "HIPSTER_MODE",
        "FLEX_HOME",
        "GLOB_IGNORE",
        "SUM_TOTAL",
        "MAIL",
        "OLDPWD",
        "NCCLX",
        "CUDATOOLKIT_HOME",
        "TOUCHPAD_X",
        "EP_HOME",
        "JAVA_HOME",
        "GOPATH",
        "_",
        "",
        "MODULEPATH",
        "LOADEDMODULES",
        "LMFILES_",
        "EBROOTCUDA",
        "SPACK_ROOT",
        "OLLAMA_HOST",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct shk_name_match match = {0};
        cr_expect_not(shk_name_classify(catalogue_names(), names[i], &match), "%s taken for %s",
                      names[i], match.of ? match.of : "");
    }
}

Test(env, secrets)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"SLURM_JWT", "x"},
        {"PMI_SHARED_SECRET", "1234567"},
        {"SINGULARITY_DOCKER_PASSWORD", "12345"},
        {"APPTAINER_DOCKER_PASSWORD", "hunter2"},
        {"NCCL_API_KEY", "abcdef"},
        {"NCCL_AUTH_TOKEN", "abc"},
        {"FI_CXI_COLL_MCAST_TOKEN", "1234567"},
        {"FI_CXI_COLL_FABRIC_MGR_TOKEN", "true"},
        {"OMPI_MCA_credential", "whatever"},
        {"NCCL_NOTE", "ghp_0123456789abcdefABCDEF0123456789abcd"},
        {"NCCL_NOTE", "x ghp_0123456789abcdefABCDEF0123456789abcd"},
        {"NCCL_NOTE", "--env=hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"},
        {"NCCL_NOTE", "AKIAIOSFODNN7EXAMPLE"},
        {"NCCL_NOTE",
         "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n"},
        {"NCCL_NOTE", "https://user:pa55@host/path"},
        {"NCCL_NOTE", "-----BEGIN PRIVATE KEY-----"},
        {"NCCL_NOTE", "Zx81kQ0pLm3NvB7cRt5YhJ2wEa9SdF4g"},
        {"NCCL_NOTE", "a=1,b=Zx81kQ0pLm3NvB7cRt5YhJ2wEa9SdF4g"},
        {"NCCL_NOTE", "Zx81kQ0p/Lm3NvB7cRt5YhJ2wEa9SdF4gOp+=="},
        {"NCCL_NOTE", "0123456789abcdef0123456789abcdef"},
        {"NCCL_NOTE", "sk-abcdefABCDEF0123456789abcdef"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why = NULL;
        cr_expect(shk_redact_value(rows[i].name, rows[i].value, &why), "%s=%s", rows[i].name,
                  rows[i].value);
        cr_expect_not_null(why, "%s", rows[i].name);
    }
}

Test(env, values_that_are_no_secrets)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"NCCL_IB_PKEY", "0x7fff"},
        {"FI_CXI_PROV_KEY_CACHE", "1"},
        {"FI_CXI_PROV_KEY_CACHE", "on"},
        {"OFI_NCCL_MR_KEY_SIZE", "4"},
        {"FI_CXI_COLL_MCAST_TOKEN", ""},
        {"NCCL_TEST_MAX_TOKENS", "4096"},
        {"NCCL_SOCKET_IFNAME", "^docker,lo,veth"},
        {"NCCL_SOCKET_IFNAME", "enp0s12,enp6s0,enp7s0,enp13s0,enp14s0,enp134s0,enp135s0,enp141s0"},
        {"CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,GPU-aabbccdd-0011-2233-"
                                 "4455-66778899aabb"},
        {"CUDA_VISIBLE_DEVICES", "MIG-4d806f22-346a-5a1d-ba01-86bf6a0fa8b6"},
        {"CUDA_VISIBLE_DEVICES", "MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/1/0"},
        {"ROCR_VISIBLE_DEVICES", "GPU-1d2c3b4a5e6f7081,GPU-0123456789abcdef"},
        {"PALS_APID", "4f6d1e52-7c2a-4c5f-9a5e-3f1d2c4b5a69"},
        {"SLURM_JOB_NODELIST", "nid[001234-001240,002000-002999],gpu-p5-48xlarge-[0001-0128]"},
        {"SLURM_NODELIST", "ip-10-0-32-21.us-east-2.compute.internal"},
        {"PMIX_SERVER_URI41", "pmix-server.4121;tcp4://127.0.0.1:40961"},
        {"FLUX_URI", "local:///run/flux/local"},
        {"LD_LIBRARY_PATH",
         "/opt/spack/opt/linux-sles15-zen3/gcc-12.2.0/libfabric-1.20.1-abcdefghijklmnopqrstuvwxyz"
         "234567/lib:/appl/local/AbC123dEf456GhI789jKl012MnO345pQr678/lib64"},
        {"NCCL_TOPO_FILE", "/opt/microsoft/ndv5-topo.xml"},
        {"NCCL_DEBUG_FILE", "/tmp/Zx81kQ0pLm3NvB7cRt5YhJ2wEa9SdF4g/nccl.%h.%p"},
        {"NCCL_DEBUG_SUBSYS", "INIT,BOOTSTRAP,ENV,NET,GRAPH,REG,NVLS,TUNING,COLL,P2P,SHM,PROXY"},
        {"NVSHMEM_HCA_PE_MAPPING", "mlx5_bond_0:1:2,mlx5_bond_1:1:2,mlx5_bond_2:1:2"},
        {"APPTAINER_BIND", "/scratch,/project/project_465000001,/var/spool/slurmd"},
        {"SLURM_CPU_BIND",
         "quiet,mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000"},
        {"OMPI_MCA_pml", "^ucx"},
        {"NEURON_RT_ROOT_COMM_ID", "ip-10-0-0-1.ec2.internal:46820"},
        {"SLURM_JOB_NAME", "sk-node-0001-0002-0003-lower-case-only"},
        {"NCCL_HOSTID", "node-0001"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why = "";
        cr_expect_not(shk_redact_value(rows[i].name, rows[i].value, &why), "%s=%s: %s",
                      rows[i].name, rows[i].value, why);
    }
}

Test(env, facts)
{
    tree_hostcalls("{\"environ\":{\"NCCL_DEBUG\":\"INFO\",\"NCLL_DEBUG\":\"x\",\"HOME\":\"/h\","
                   "\"SLURM_JWT\":\"abc.def\",\"NCCL_P2P_DISABLE\":\"\",\"NCCL_DEBUG \":\"y\","
                   "\"NCCL_NET\":\"a\\u0001b\"}}");
    tree_run(&shk_probe_env);
    expect_text("env.NCCL_DEBUG", "INFO");
    cr_expect_str_eq(tree_source("env.NCCL_DEBUG"), "environment");
    expect_text("env.NCLL_DEBUG", "x");
    expect_text("env.NCCL_P2P_DISABLE", "");
    expect_failed("env.SLURM_JWT", "withheld: looks like a secret");
    cr_expect_null(strstr(tree_reason("env.SLURM_JWT"), "abc"));
    cr_expect_eq(tree_state("env.HOME"), TREE_NOTHING);
    expect_json("env.problems",
                "[{\"name\":\"NCCL_DEBUG \",\"problem\":\"no library looks for a name with such "
                "characters\"}]");
    const json_t *names = tree_value("env.names_of");
    cr_expect_eq(json_object_size(names), 5);
    const json_t *near = json_object_get(names, "NCLL_DEBUG");
    cr_expect_str_eq(tree_item_text(near, "match"), "near");
    cr_expect_str_eq(tree_item_text(near, "of"), "NCCL_");
    cr_expect(json_is_true(json_object_get(json_object_get(names, "SLURM_JWT"), "redacted")));
    cr_expect_eq(tree_state("environment.looked_for"), TREE_NOTHING,
                 "this capture does not say what it was searched for");
}

Test(env, a_capture_says_what_it_was_searched_for)
{
    tree_hostcalls("{\"environ\":{},\"looked_for\":{\"names\":[\"A_B\"],\"prefixes\":[\"C_\"]}}");
    tree_run(&shk_probe_env);
    expect_json("environment.looked_for", "{\"names\":[\"A_B\"],\"prefixes\":[\"C_\"]}");
}

/* No form of the facts may hold a withheld value. */
Test(env, a_secret_is_nowhere_in_the_document)
{
    tree_hostcalls("{\"environ\":{\"NCCL_NOTE\":\"ghp_0123456789abcdefABCDEF0123456789abcd\","
                   "\"GITHUB_TOKEN\":\"topsecretvalue\"}}");
    json_t *doc = shk_facts_to_json(tree_run(&shk_probe_env));
    char *text = json_dumps(doc, 0);
    cr_expect_null(strstr(text, "ghp_"));
    cr_expect_null(strstr(text, "topsecret"));
    cr_expect_null(strstr(text, "GITHUB"));
    free(text);
    json_decref(doc);
}

Test(env, empty_and_hostile)
{
    tree_run(&shk_probe_env);
    expect_json("env.names_of", "{}");
    expect_absent("env.problems");
    tree_hostcalls("{\"environ\":[1,2]}");
    tree_run(&shk_probe_env);
    expect_json("env.names_of", "{}");
    tree_hostcalls("{\"environ\":{\"NCCL_DEBUG\":7,\"NCCL_\":\"x\",\"NCCL_\\u00e4\":\"y\"}}");
    tree_run(&shk_probe_env);
    expect_text("env.NCCL_DEBUG", "");
    expect_text("env.NCCL_", "x");
    cr_expect_eq(json_array_size(tree_value("env.problems")), 1);
}

Test(env, live_environment_wins_over_the_capture)
{
    tree_copy_capture("slingshot-amd");
    setenv("NCCL_SOCKET_IFNAME", "hsn0,hsn1,hsn2,hns3", 1);
    tree_run(&shk_probe_env);
    expect_text("env.NCCL_SOCKET_IFNAME", "hsn0,hsn1,hsn2,hns3");
    expect_text("env.FI_CXI_RX_MATCH_MODE", "hybrid");
}

Test(env, captures_have_no_misspelling_and_no_secret)
{
    static const char *const captures[] = {"slingshot-amd", "efa-no-provider"};
    for (size_t i = 0; i < 2; i++) {
        const char *name;
        json_t *entry;
        tree_end();
        tree_begin();
        unsetenv("PATH");
        tree_copy_capture(captures[i]);
        tree_run(&shk_probe_env);
        json_object_foreach(tree_value("env.names_of"), name, entry)
        {
            cr_expect_str_neq(tree_item_text(entry, "match"), "near", "%s", name);
            cr_expect_null(json_object_get(entry, "redacted"), "%s", name);
        }
        expect_absent("env.problems");
    }
}

#define MOUNTS                                                                                     \
    "22 1 0:22 / / rw - ext4 /dev/sda rw\n40 22 0:50 / /home rw - lustre x rw\n"                   \
    "41 22 0:51 / /tmp rw - tmpfs tmpfs rw\n"

Test(paths, exist_and_lie_on_a_file_system)
{
    tree_put("/proc/self/mountinfo", MOUNTS);
    tree_put("/opt/topo.xml", "<x/>\n");
    tree_dir("/home/u/db");
    tree_dir("/tmp");
    tree_hostcalls("{\"environ\":{\"NCCL_TOPO_FILE\":\"/opt/topo.xml\","
                   "\"MIOPEN_USER_DB_PATH\":\"/home/u/db\","
                   "\"MIOPEN_CUSTOM_CACHE_DIR\":\"/tmp/not/yet\",\"NCCL_GRAPH_FILE\":\"rel/a.xml\","
                   "\"HOME\":\"/home/u\",\"NCCL_DEBUG\":\"INFO\"}}");
    tree_run(&shk_probe_paths);
    expect_json("path.NCCL_TOPO_FILE", "{\"exists\":true,\"kind\":\"file\",\"type\":\"ext4\"}");
    expect_json("path.MIOPEN_USER_DB_PATH",
                "{\"exists\":true,\"kind\":\"dir\",\"type\":\"lustre\"}");
    expect_json("path.MIOPEN_CUSTOM_CACHE_DIR",
                "{\"exists\":false,\"kind\":null,\"type\":\"tmpfs\"}");
    cr_expect_eq(tree_state("path.NCCL_GRAPH_FILE"), TREE_NOTHING);
    cr_expect_eq(tree_state("path.HOME"), TREE_NOTHING);
    cr_expect_eq(tree_state("path.NCCL_DEBUG"), TREE_NOTHING);
}

Test(paths, lists)
{
    tree_dir("/a");
    tree_put("/b/file", "x\n");
    tree_hostcalls("{\"environ\":{\"LD_LIBRARY_PATH\":\"/a:/missing::lib:/b/file:\","
                   "\"PMIX_SERVER_URI41\":\"pmix-server.4;tcp4://127.0.0.1:4\"}}");
    tree_run(&shk_probe_paths);
    expect_json("path.LD_LIBRARY_PATH",
                "{\"entries\":[{\"path\":\"/a\",\"exists\":true,\"kind\":\"dir\"},"
                "{\"path\":\"/missing\",\"exists\":false,\"kind\":null},"
                "{\"path\":\"\",\"exists\":null},{\"path\":\"lib\",\"exists\":null},"
                "{\"path\":\"/b/file\",\"exists\":true,\"kind\":\"file\"},"
                "{\"path\":\"\",\"exists\":null}]}");
    cr_expect_eq(tree_state("path.PMIX_SERVER_URI41"), TREE_NOTHING);
}

Test(paths, not_allowed_to_look)
{
    tree_put("/secret/inside", "x\n");
    tree_mode("/secret", 0);
    tree_hostcalls("{\"environ\":{\"NCCL_TOPO_FILE\":\"/secret/inside\"}}");
    tree_run_unprivileged(&shk_probe_paths);
    json_t *path = tree_value("path.NCCL_TOPO_FILE");
    cr_expect(json_is_null(json_object_get(path, "exists")));
    cr_expect_not_null(json_object_get(json_object_get(path, "problems"), "exists"));
    cr_expect(json_is_null(json_object_get(path, "type")));
    tree_mode("/secret", 0755);
}

Test(paths, captures_name_only_what_exists)
{
    static const char *const captures[] = {"slingshot-amd", "efa-no-provider"};
    for (size_t i = 0; i < 2; i++) {
        size_t j;
        json_t *entry;
        tree_end();
        tree_begin();
        tree_copy_capture(captures[i]);
        tree_run(&shk_probe_paths);
        json_array_foreach(json_object_get(tree_value("path.LD_LIBRARY_PATH"), "entries"), j, entry)
            cr_expect(json_is_true(json_object_get(entry, "exists")), "%s",
                      tree_item_text(entry, "path"));
    }
}
