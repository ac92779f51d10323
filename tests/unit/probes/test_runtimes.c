/* Names of variables in the files of NVSHMEM and of the runtimes. */
#include "libs_support.h"
#include "probes/base/registry.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NVSHMEM FAKES "/nvshmem/"

TestSuite(runtimes, .init = capture_begin, .fini = capture_end);

Test(runtimes, nvshmem_with_its_modules)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/mod/lib\"}");
    capture_copy("mod/lib/libnvshmem_host.so.3", NVSHMEM "libnvshmem_host.so.3");
    capture_copy("mod/lib/nvshmem_transport_ibrc.so.7", NVSHMEM "libnvshmem_transport.so.3");
    capture_text("mod/lib/nvshmem_transport_ucx.so.7", "no library");
    struct shk_facts *facts = probe_facts(&shk_probe_runtimes, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "nvshmem.path"), "\"/mod/lib/libnvshmem_host.so.3\"");
    cr_expect_str_eq(fact_text(facts, "nvshmem.version"), "\"3.6.1\"");
    /* without the prefix in the file; TRACE is a word, no variable */
    cr_expect_str_eq(fact_text(facts, "nvshmem.env_names"),
                     "[\"NVSHMEM_CONF_FILE\",\"NVSHMEM_DEBUG\",\"NVSHMEM_HCA_LIST\","
                     "\"NVSHMEM_IB_GID_INDEX\",\"NVSHMEM_QP_DEPTH\","
                     "\"NVSHMEM_REMOTE_TRANSPORT\",\"NVSHMEM_SYMMETRIC_SIZE\"]");
    cr_expect_str_eq(fact_text(facts, "hsa.env_names"),
                     "failed: the capture holds no such library");
    shk_facts_destroy(facts);
}

/* Without the modules the list is not whole, and nothing may be said about a name it lacks. */
Test(runtimes, nvshmem_without_modules)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/mod/lib\"}");
    capture_copy("mod/lib/libnvshmem_host.so.3", NVSHMEM "libnvshmem_host.so.3");
    struct shk_facts *facts = probe_facts(&shk_probe_runtimes, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "nvshmem.version"), "\"3.6.1\"");
    cr_expect_str_eq(fact_text(facts, "nvshmem.env_names"),
                     "failed: its modules are not beside it");
    shk_facts_destroy(facts);
}

Test(runtimes, hsa)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/mod/lib\"}");
    capture_copy("mod/lib/libhsa-runtime64.so.1", NVSHMEM "libhsa-runtime64.so.1");
    struct shk_facts *facts = probe_facts(&shk_probe_runtimes, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "hsa.env_names"),
                     "[\"HSA_ENABLE_DEBUG\",\"ROCR_VISIBLE_DEVICES\"]");
    cr_expect_str_eq(fact_text(facts, "hsa.version"), "failed: the file does not tell its version");
    shk_facts_destroy(facts);
}

Test(runtimes, version_in_the_name_of_the_file)
{
    char link[512];
    capture_environ("{\"LD_LIBRARY_PATH\": \"/mod/lib\"}");
    capture_copy("mod/lib/libhsa-runtime64.so.1.13.0", NVSHMEM "libhsa-runtime64.so.1");
    snprintf(link, sizeof link, "%s/mod/lib/libhsa-runtime64.so.1", capture_root);
    cr_assert_eq(symlink("libhsa-runtime64.so.1.13.0", link), 0);
    struct shk_facts *facts = probe_facts(&shk_probe_runtimes, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "hsa.path"), "\"/mod/lib/libhsa-runtime64.so.1\"");
    cr_expect_str_eq(fact_text(facts, "hsa.version"), "\"1.13.0\"");
    shk_facts_destroy(facts);
}

Test(runtimes, damaged)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/mod/lib\"}");
    capture_text("mod/lib/libcxi.so.1", "#!/bin/sh\n");
    struct shk_facts *facts = probe_facts(&shk_probe_runtimes, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "libcxi.path"), "\"/mod/lib/libcxi.so.1\"");
    cr_expect(strncmp(fact_text(facts, "libcxi.env_names"), "failed: ", 8) == 0, "%s",
              fact_text(facts, "libcxi.env_names"));
    shk_facts_destroy(facts);
}
