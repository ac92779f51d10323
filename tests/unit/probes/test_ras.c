/* Answers of NCCL's RAS service, and the addresses that it is asked at. */
#include "probes/hang/ras.h"

#include <criterion/criterion.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_t *answer = shk_ras_parse(text, strlen(text));
    cr_assert_not_null(answer);
    return answer;
}

Test(ras, counts_of_ranks)
{
    json_t *answer =
        parse("SERVER PROTOCOL 2\nOK\nNCCL version 2.28.9 compiled with CUDA 13.0\n"
              "Warnings\n#0-0 (692609e2f203bd3b) MISMATCH\n"
              "  Communicator ranks have different AllReduce operation counts\n"
              "  26 ranks have launched up to operation 31\n"
              "  2 ranks have not launched any operations\n"
              "  Rank 2 -- GPU 2 managed by process 622 on node 192.0.2.2\n"
              "  Rank 1 has launched up to operation 1 -- GPU 1 managed by process 621 "
              "on node 192.0.2.2\n\nDEAD\n"
              "  Process 77 on node 192.0.2.3 managing GPU 5\n");
    json_t *groups =
        json_object_get(json_array_get(json_object_get(answer, "counts"), 0), "groups");
    static const int expected[][3] = {{31, 26, 0}, {0, 2, 1}, {1, 1, 1}};
    cr_assert_eq(json_array_size(groups), 3);
    for (size_t i = 0; i < 3; i++) {
        json_t *group = json_array_get(groups, i), *known = json_object_get(group, "known");
        cr_expect_eq(json_integer_value(json_object_get(group, "count")), expected[i][0]);
        cr_expect_eq(json_integer_value(json_object_get(group, "ranks")), expected[i][1]);
        cr_expect_eq((int)json_array_size(known), expected[i][2]);
    }
    json_t *known = json_array_get(json_object_get(json_array_get(groups, 2), "known"), 0);
    cr_expect_eq(json_integer_value(json_object_get(known, "pid")), 621);
    cr_expect_eq(json_array_size(json_object_get(answer, "dead")), 1);
    cr_expect_str_eq(json_string_value(json_object_get(answer, "version")), "2.28.9");
    json_decref(answer);
}

Test(ras, nothing_that_it_knows)
{
    static const char *const texts[] = {
        "", "\n\n", "  Rank 1 has launched up to operation 1", "#0-0 (zz) MISMATCH\n  Rank 1 --",
        "  Communicator ranks have different AllReduce operation counts\n\xff\xfe\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        json_decref(parse(texts[i]));
}

Test(ras, only_this_host_is_asked)
{
    cr_expect_eq(shk_ras_port(NULL), 28028);
    cr_expect_eq(shk_ras_port("localhost:4000"), 4000);
    cr_expect_eq(shk_ras_port("127.0.0.1:4001"), 4001);
    cr_expect_eq(shk_ras_port("192.0.2.9:4001"), 0);
    cr_expect_eq(shk_ras_port("example.org:80"), 0);
    cr_expect_eq(shk_ras_port("localhost:70000"), 0);
    cr_expect_eq(shk_ras_port("localhost:"), 0);
}
