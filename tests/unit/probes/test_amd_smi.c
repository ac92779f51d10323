/* amd_smi: healthy, with each fault, without what it does not offer, and not read. */
#include "libs_support.h"
#include "probes/base/registry.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(amd_smi, .init = capture_begin, .fini = capture_end, .timeout = 60);

#define LINKS "[\"up\",\"up\",\"disabled\"]"

static struct shk_facts *ask(const char *path, const char *fault, bool gpus)
{
    char full[512];
    struct shk_facts *known = shk_facts_create();
    cr_assert_eq(gpus ? shk_facts_int(known, "pci.count.gpu-amd", 2, NULL, "test")
                      : shk_facts_absent(known, "pci.count.gpu-amd", "test", "none"),
                 0);
    snprintf(full, sizeof full, FAKES "/%s", path);
    setenv("SHAKEDOWN_AMD_SMI", full, 1);
    setenv("AMD_SMI_FAULT", fault, 1);
    struct shk_facts *facts = probe_facts(&shk_probe_amd_smi, NULL, known, false, 0);
    shk_facts_destroy(known);
    return facts;
}

static void expect_gpu(const char *path, const char *fault, const char *want)
{
    struct shk_facts *facts = ask(path, fault, true);
    json_t *gpus = shk_facts_get_array(facts, "amdsmi.health");
    cr_assert_eq(json_array_size(gpus), 2, "%s", fact_text(facts, "amdsmi.health"));
    char *text = json_dumps(json_array_get(gpus, 1), JSON_COMPACT);
    cr_expect_str_eq(text, want, "%s: %s", fault, text);
    free(text);
    shk_facts_destroy(facts);
}

Test(amd_smi, faults)
{
    static const char lib[] = "amd_smi/libamd_smi.so.27";
    expect_gpu(lib, "",
               "{\"pci\":\"0000:c3:00.0\",\"ecc\":true,\"bad_pages_most\":256,\"links\":" LINKS
               "}");
    expect_gpu(lib, "ecc-off",
               "{\"pci\":\"0000:c3:00.0\",\"ecc\":false,\"bad_pages_most\":256,\"links\":" LINKS
               "}");
    expect_gpu(lib, "link-down",
               "{\"pci\":\"0000:c3:00.0\",\"ecc\":true,\"bad_pages_most\":256,\"links\":[\"down\","
               "\"up\",\"disabled\"]}");
    expect_gpu(lib, "not-offered",
               "{\"pci\":\"0000:c3:00.0\",\"ecc\":null,\"bad_pages_most\":null,\"links\":null}");
    expect_gpu(
        lib, "unread",
        "{\"pci\":\"0000:c3:00.0\",\"ecc\":null,\"problems\":{\"ecc\":\"amd_smi: I/O error "
        "(12)\",\"bad_pages_most\":\"amd_smi: I/O error (12)\",\"links\":\"amd_smi: I/O error "
        "(12)\"},\"bad_pages_most\":null,\"links\":null}");
    expect_gpu("amd_smi_old/libamd_smi.so.23", "",
               "{\"pci\":\"0000:c3:00.0\",\"ecc\":true,\"bad_pages_most\":null,\"links\":null}");
}

Test(amd_smi, as_a_whole)
{
    struct shk_fact fact;
    struct shk_facts *facts = ask("amd_smi/libamd_smi.so.27", "no-driver", true);
    cr_assert(shk_facts_get(facts, "amdsmi.health", &fact) && fact.state == SHK_FACT_FAILED);
    cr_expect(strstr(fact.reason, "driver not loaded (34)"), "%s", fact.reason);
    shk_facts_destroy(facts);
    facts = ask("amd_smi/libamd_smi.so.27", "", false);
    cr_assert(shk_facts_get(facts, "amdsmi.health", &fact) && fact.state == SHK_FACT_ABSENT);
    shk_facts_destroy(facts);
    facts = ask("not/there.so", "", true);
    cr_assert(shk_facts_get(facts, "amdsmi.health", &fact) && fact.state == SHK_FACT_ABSENT);
    cr_expect(strstr(fact.reason, "not installed"), "%s", fact.reason);
    shk_facts_destroy(facts);
}
