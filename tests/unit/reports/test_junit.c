#include "hostile.h"
#include "sample.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(junit, .timeout = 300);

Test(junit, verdicts)
{
    static const char *const parts[] = {
        "<testsuites name=\"shakedown\" time=\"1.240\">",
        "<testsuite name=\"nccl\" hostname=\"nid001234\" tests=\"4\" failures=\"1\" errors=\"0\" "
        "skipped=\"0\" time=\"1.240\">",
        "<property name=\"profile\" value=\"lumi-g\"/>",
        "<testcase classname=\"env.value\" name=\"NCCL_SOCKET_IFNAME\" time=\"0\">"
        "<failure type=\"fail\" message=\"hns3 is no interface of this node; did you mean "
        "hsn3?\">observed: hsn0,hsn1,hsn2,hns3\n",
        "fix: export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3\n",
        "</failure></testcase>",
        "classname=\"env.value\" name=\"NCCL_DEBUG\" time=\"0\"><system-out>WARN\n",
        "classname=\"env.value\" name=\"NCCL_CROSS_NIC\" time=\"0\"/>",
        "<testsuite name=\"libfabric\" hostname=\"nid001234\" tests=\"4\" failures=\"0\" "
        "errors=\"0\" skipped=\"2\"",
        "<skipped message=\"needs a job with more than one node\">",
        "classname=\"kernel.iommu\" name=\"iommu\" time=\"0\"><error type=\"unknown\" "
        "message=\"/sys/kernel/iommu_groups: permission denied\">",
        "</testsuites>\n",
    };
    struct sample s;
    sample_failing(&s);
    char *text = sample_render(&s, "junit"), *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *found = strstr(at, parts[i]);
        cr_expect_not_null(found, "'%s' is missing or out of order in:\n%s", parts[i], text);
        at = found ? found : at;
    }
    cr_expect_null(strstr(text, "efa module"), "a row that does not apply");
    free(text);
    sample_free(&s);
}

Test(junit, nodes_of_a_row)
{
    struct sample s;
    sample_cluster(&s);
    char *text = sample_render(&s, "junit");
    cr_expect_not_null(strstr(text, "nodes: nid[001235-001236]\n"));
    free(text);
    sample_free(&s);
}

/* Well-formedness itself is tested with a parser, in tests/golden/check_formats.py. */
Test(junit, hostile)
{
    for (size_t i = 0; i < hostile_count; i++) {
        struct sample s;
        sample_hostile(&s, hostile_texts[i].text);
        char *text = sample_render(&s, "junit");
        hostile_expect_clean(hostile_texts[i].name, text);
        cr_expect_null(strstr(text, "<script"), "%s", hostile_texts[i].name);
        cr_expect_null(strstr(text, "<!"), "%s", hostile_texts[i].name);
        free(text);
        sample_free(&s);
    }
}

Test(junit, a_long_text_is_cut)
{
    char *big = hostile_long();
    struct sample s;
    sample_hostile(&s, big);
    char *text = sample_render(&s, "junit");
    cr_expect_lt(strlen(text), 4 << 20);
    hostile_expect_clean("megabyte", text);
    free(text);
    sample_free(&s);
    free(big);
}
