#include "probes/log/logcodes.h"
#include "probes/log/logline.h"
#include "probes/log/logscan.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *line, *node, *origin;
} lines[] = {
    {"node01:1958:1960 [3] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>", "node01",
     "node01:1958 [3]"},
    {"[2026-01-02 03:04:05] node01:19:20 [-1] init.cc:12 (f) NCCL WARN x", "node01",
     "node01:19 [-1]"},
    {"[rank8]: node02:5:6 [0] NCCL INFO x", "node02", "rank 8"},
    {"[rank8] Gloo connectFullMesh failed", "", "rank 8"},
    {"[1,12]<stderr>:node03:5:6 [0] NCCL INFO x", "node03", "rank 12"},
    {"7: libfabric:12:99::efa:ep_ctrl:f():1<warn> x", "", "rank 7"},
    {"libfabric:172083:1700000000::core:mr:f():205<warn> x", "", "process 172083"},
    {"332066:332417 [18] bootstrap.cc:106 CCOM WARN x", "", "process 332066"},
    {"srun: error: nid001234: task 37: Exited with exit code 1", "nid001234", "rank 37"},
    {"[node01:13428] PMI_Get_clique_size [pmix_s1.c:281:s1_init]: Operation failed", "node01",
     "node01:13428"},
    {"Nov 28 06:00:00 gpu-7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, x", "gpu-7", "gpu-7"},
    {"2026-11-28T06:00:00.123 node9:1:2 [0] NCCL INFO x", "node9", "node9:1 [0]"},
    {"\033[32m[rank3]:\033[0m W1128 x", "", "rank 3"},
    {"RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:410", "", ""},
    {"", "", ""},
    {"::::", "", ""},
};

Test(logline, who_printed_it)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct shk_logline got;
        shk_logline_parse(&got, lines[i].line, strlen(lines[i].line));
        cr_expect_str_eq(got.node, lines[i].node, "%s: node %s", lines[i].line, got.node);
        cr_expect_str_eq(got.origin, lines[i].origin, "%s: origin %s", lines[i].line, got.origin);
    }
}

static const struct shk_log_pattern patterns[] = {
    {.id = "closed", .pattern = "closed by remote peer", .origins = true},
    {.id = "words", .pattern = "NCCL INFO [^x]*end$"},
    {.id = "env",
     .pattern = "set by environment to ",
     .capture = "(?<name>[A-Z_]+) set by environment to (?<value>[^ ]*)"},
    {.id = "rank", .pattern = "rank \\d+ nranks", .capture = "rank (?<rank>\\d+) nranks"},
    {.id = "errors", .pattern = "\\b(failed|refused)\\b", .error_words = true},
    {.id = "doubts", .pattern = "\\b(odd|failed)\\b", .doubt_words = true},
    {.id = "known", .pattern = "known to have|lock(ed)? failed$", .explains = true},
    {.id = "open",
     .pattern = "open: ",
     .capture = "open: (?<errno>[^,]+), (?<wc>\\d+)",
     .explains = true},
    {.id = "table-open",
     .pattern = "NCCL WARN ",
     .texts = "Failed to open %s for %d bytes\nPoll failed: %s\n",
     .explains = true},
    {.id = "table-short", .pattern = "NCCL WARN ", .texts = "Failed to open %s\n", .origins = true},
    {.id = "loose", .texts = "The daemon on node %s went away\n\nNo way to reach rank %d now\n"},
    {.id = "named", .pattern = "mlx5_\\d", .once = true},
    {.id = "guess", .pattern = "went wrong", .guess = true, .origins = true},
    {.id = "sure", .pattern = "disk went", .decides = true},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

static struct shk_facts *scan(const char *text)
{
    struct shk_logscan *scan = NULL;
    struct shk_error err = {""};
    struct shk_facts *facts = shk_facts_create();
    cr_assert_eq(shk_logscan_create(&scan, patterns, PATTERNS, NULL, &err), 0, "%s", err.text);
    cr_assert_eq(shk_logscan_text(scan, "a.log", text, strlen(text), &err), 0, "%s", err.text);
    cr_assert_eq(shk_logscan_facts(scan, facts), 0);
    shk_logscan_destroy(scan);
    return facts;
}

static long long number(struct shk_facts *facts, const char *key, const char *member)
{
    return json_integer_value(json_object_get(shk_facts_get_object(facts, key), member));
}

static const char *text(struct shk_facts *facts, const char *key, const char *member)
{
    return json_string_value(json_object_get(shk_facts_get_object(facts, key), member));
}

Test(logscan, a_guess_counts_only_where_nothing_else_decides)
{
    struct shk_facts *f = scan("n1: the disk went wrong\n"
                               "n1:1:1 [0] NCCL INFO nothing went wrong\n"
                               "frob: <info> it went wrong\n"
                               "n2: it went wrong\n"
                               "n2: it went wrong and went wrong\n");
    cr_expect_eq(number(f, "log.sig.sure", "lines"), 1);
    cr_expect_eq(number(f, "log.sig.guess", "lines"), 2);
    cr_expect_eq(number(f, "log.sig.guess", "line"), 4);
    shk_facts_destroy(f);
    f = scan("the disk went wrong\n");
    cr_expect_null(shk_facts_get_object(f, "log.sig.guess"));
    shk_facts_destroy(f);
}

Test(logscan, lines_are_folded_over_processes_and_the_first_is_kept)
{
    struct shk_facts *f =
        scan("hello\r\n"
             "n1:1:1 [0] NCCL INFO comm 0x1 rank 5 nranks 8\n"
             "n1:1:1 [0] NCCL WARN closed by remote peer, closed by remote peer\r\n"
             "n1:1:1 [0] NCCL WARN closed by remote peer\n"
             "n2:7:7 [1] NCCL WARN closed by remote peer\n");
    cr_expect_eq(number(f, "log.sig.closed", "lines"), 3);
    cr_expect_eq(number(f, "log.sig.closed", "line"), 3);
    cr_expect_eq(number(f, "log.sig.closed", "origin_count"), 2);
    cr_expect_eq(number(f, "log.sig.closed", "node_count"), 2);
    cr_expect_str_eq(text(f, "log.sig.closed", "text"),
                     "n1:1:1 [0] NCCL WARN closed by remote peer, closed by remote peer");
    json_t *origins = json_object_get(shk_facts_get_object(f, "log.sig.closed"), "origins");
    cr_expect_str_eq(json_string_value(json_array_get(origins, 0)), "rank 5 (n1:1 [0])");
    cr_expect_eq(shk_facts_get_int(f, "log.lines", -1), 5);
    shk_facts_destroy(f);
}

/* Where a line says of nobody but its node, both are kept. */
Test(logscan, a_node_that_is_the_origin_as_well)
{
    struct shk_facts *f = scan("Nov 28 06:00:00 gpu-7 kernel: closed by remote peer\n"
                               "Nov 28 06:00:00 gpu-8 kernel: NCCL WARN Failed to open x\n");
    static const char *const keys[] = {"log.sig.closed", "log.sig.table-short"}, *const names[] = {
                                                                                     "gpu-7",
                                                                                     "gpu-8"};
    for (size_t i = 0; i < 2; i++) {
        json_t *entry = shk_facts_get_object(f, keys[i]),
               *node = json_array_get(json_object_get(entry, "nodes"), 0),
               *origin = json_array_get(json_object_get(entry, "origins"), 0);
        cr_assert_not_null(node, "%s", keys[i]);
        cr_expect_str_eq(json_string_value(node), names[i]);
        cr_expect_str_eq(json_string_value(origin), names[i]);
    }
    shk_facts_destroy(f);
}

Test(logscan, tables_of_messages)
{
    struct shk_facts *f = scan("n1:1:1 [0] NCCL WARN Failed to open /dev/x for 12 bytes\r\n"
                               "n1:1:1 [0] NCCL WARN  Failed to open it\n"
                               "n1:1:2 [1] NCCL WARN Failed to open that\n"
                               "Failed to open nothing\n"
                               "n1:1:2 [1] NCCL WARN Poll failed: refused\n"
                               "0: the job: The daemon on node n7 went away, sorry\n"
                               "No way to reach rank x now\nNo way to reach rank 7 now\n");
    cr_expect_eq(number(f, "log.sig.table-open", "lines"), 2);
    cr_expect_eq(number(f, "log.sig.table-open", "line"), 1);
    cr_expect_eq(number(f, "log.sig.table-short", "lines"), 2);
    cr_expect_eq(number(f, "log.sig.table-short", "origin_count"), 2);
    cr_expect_eq(number(f, "log.sig.loose", "lines"), 2);
    cr_expect_eq(number(f, "log.sig.loose", "line"), 6);
    cr_expect_eq(number(f, "log.unknown", "lines"), 0); /* the line with refused is explained */
    shk_facts_destroy(f);
}

Test(logscan, a_pattern_never_leaves_its_line)
{
    struct shk_facts *f = scan("NCCL INFO begin\nend\n");
    cr_expect_null(shk_facts_get_object(f, "log.sig.words"));
    shk_facts_destroy(f);
    f = scan("NCCL INFO begin end\r\n");
    cr_expect_eq(number(f, "log.sig.words", "lines"), 1);
    shk_facts_destroy(f);
}

Test(logscan, an_end_of_a_line_of_windows_is_an_end)
{
    static const struct shk_log_pattern ends = {.id = "ends", .pattern = "\\.[a-c]$"};
    static const char line[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.c\r\n.c\n.c\r\r\n";
    struct shk_log_database pcre2 = {.engine = shk_log_engine_pcre2()};
    struct shk_logscan *scan = NULL;
    struct shk_error err = {""};
    struct shk_facts *facts = shk_facts_create();
    cr_assert_eq(shk_logscan_create(&scan, &ends, 1, &pcre2, &err), 0, "%s", err.text);
    cr_assert_eq(shk_logscan_text(scan, "a", line, strlen(line), &err), 0, "%s", err.text);
    cr_assert_eq(shk_logscan_facts(scan, facts), 0);
    cr_expect_eq(number(facts, "log.sig.ends", "lines"), 2);
    shk_logscan_destroy(scan);
    shk_facts_destroy(facts);
}

Test(logscan, captured_values_are_kept_once_each)
{
    struct shk_facts *f = scan("n1:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n"
                               "n1:2:2 [1] NCCL INFO NCCL_ALGO set by environment to Ring\n"
                               "n2:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Tree\n");
    json_t *got = json_object_get(shk_facts_get_object(f, "log.sig.env"), "captures");
    cr_assert_eq(json_array_size(got), 2);
    json_t *first = json_array_get(got, 0), *second = json_array_get(got, 1);
    cr_expect_str_eq(json_string_value(json_object_get(first, "name")), "NCCL_ALGO");
    cr_expect_str_eq(json_string_value(json_object_get(first, "value")), "Ring");
    cr_expect_eq(json_integer_value(json_object_get(first, "lines")), 2);
    cr_expect_str_eq(json_string_value(json_object_get(second, "node")), "n2");
    shk_facts_destroy(f);
}

Test(logscan, bytes_that_are_not_text_do_no_harm)
{
    struct shk_facts *f = scan("\xff\xfe\x01 closed by remote peer \xc3\x28\n");
    cr_expect_eq(number(f, "log.sig.closed", "lines"), 1);
    cr_expect_not_null(text(f, "log.sig.closed", "text"));
    shk_facts_destroy(f);
}

Test(logscan, a_bad_pattern_is_named)
{
    static const struct shk_log_pattern bad[] = {
        {.id = "fine", .pattern = "fine"},
        {.id = "broken", .pattern = "bro(ken", .place = "x.yaml:3"}};
    static const struct shk_log_pattern bad_capture[] = {
        {.id = "c", .pattern = "fine", .capture = "(?<name>x"}};
    struct shk_logscan *scan = NULL;
    struct shk_error err = {""};
    cr_expect_eq(shk_logscan_create(&scan, bad, 2, NULL, &err), -EINVAL);
    cr_expect_not_null(strstr(err.text, "x.yaml:3: signature \"broken\""), "%s", err.text);
    cr_expect_eq(shk_logscan_create(&scan, bad_capture, 1, NULL, &err), -EINVAL);
    cr_expect_not_null(strstr(err.text, "\"c\""), "%s", err.text);
}

Test(logscan, a_database_of_other_patterns_is_not_used)
{
    struct shk_error err = {""};
    struct shk_log_database ready;
    struct shk_logscan *scan = NULL;
    struct shk_facts *facts = shk_facts_create();
    cr_assert_eq(shk_logscan_compile(patterns, 1, NULL, &ready, &err), 0, "%s", err.text);
    cr_assert_eq(shk_logscan_create(&scan, patterns + 1, 1, &ready, &err), 0, "%s", err.text);
    cr_assert_eq(shk_logscan_text(scan, "a", "NCCL INFO end\n", 14, &err), 0);
    cr_assert_eq(shk_logscan_facts(scan, facts), 0);
    cr_expect_not_null(shk_facts_get_object(facts, "log.sig.words"));
    shk_logscan_destroy(scan);
    shk_facts_destroy(facts);
    free((char *)ready.data);
    free((char *)ready.wide);
}

Test(logscan, errors_that_nothing_explains_are_folded)
{
    struct shk_facts *f = scan("n1:1:1 [0] frob of 17 failed at 0x7f\n"
                               "n2:2:9 [1] frob of 4 failed at 0x8e\r\n"
                               "known to have failed, and refused\n"
                               "all is well\n"
                               "the lock failed\n"
                               "connection refused");
    json_t *unknown = shk_facts_get_object(f, "log.unknown");
    json_t *shapes = json_object_get(unknown, "shapes"), *first = json_array_get(shapes, 0);
    cr_assert_eq(json_array_size(shapes), 2);
    cr_expect_eq(json_integer_value(json_object_get(unknown, "lines")), 3);
    cr_expect_eq(json_integer_value(json_object_get(first, "lines")), 2);
    cr_expect_eq(json_integer_value(json_object_get(first, "line")), 1);
    cr_expect_str_eq(json_string_value(json_object_get(first, "text")),
                     "n1:1:1 [0] frob of 17 failed at 0x7f");
    cr_expect_eq(json_integer_value(json_object_get(json_array_get(shapes, 1), "line")), 6);
    shk_facts_destroy(f);
    f = scan("known to have failed\nall is well\n");
    cr_expect_null(shk_facts_get_object(f, "log.unknown"));
    shk_facts_destroy(f);
}

Test(logscan, lines_that_may_tell_of_trouble_are_kept_apart)
{
    struct shk_facts *f = scan("an odd thing\n"
                               "known to have failed, and odd\n"
                               "odd, and a frob failed\n"
                               "n1 NCCL INFO odd\n");
    json_t *doubt = shk_facts_get_object(f, "log.doubt"), *first;
    cr_expect_eq(number(f, "log.doubt", "lines"), 1); /* not what is known, an error, or informs */
    first = json_array_get(json_object_get(doubt, "shapes"), 0);
    cr_expect_str_eq(json_string_value(json_object_get(first, "text")), "an odd thing");
    cr_expect_eq(number(f, "log.unknown", "lines"), 1);
    shk_facts_destroy(f);
    f = scan("all is well\n");
    cr_expect_null(shk_facts_get_object(f, "log.doubt"));
    shk_facts_destroy(f);
}

Test(logscan, kinds_of_unknown_lines_are_bounded)
{
    char *text = calloc(100, 64);
    for (int i = 0; i < 100; i++)
        sprintf(text + strlen(text), "%.*s failed\n", i + 1,
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm"
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmno");
    struct shk_facts *f = scan(text);
    json_t *unknown = shk_facts_get_object(f, "log.unknown");
    cr_expect_eq(json_array_size(json_object_get(unknown, "shapes")), 32);
    cr_expect_eq(json_integer_value(json_object_get(unknown, "lines")), 100);
    shk_facts_destroy(f);
    free(text);
}

Test(logscan, codes_are_kept_by_name)
{
    struct shk_facts *f = scan("open: Cannot allocate memory, 12\nopen: 13, 99\n");
    json_t *got = json_object_get(shk_facts_get_object(f, "log.sig.open"), "captures");
    json_t *first = json_array_get(got, 0), *second = json_array_get(got, 1);
    cr_expect_str_eq(json_string_value(json_object_get(first, "errno")), "ENOMEM");
    cr_expect_str_eq(json_string_value(json_object_get(first, "wc")), "RETRY_EXC_ERR");
    cr_expect_str_eq(json_string_value(json_object_get(second, "errno")), "EACCES");
    cr_expect_str_eq(json_string_value(json_object_get(second, "wc")), "99");
    shk_facts_destroy(f);
}

Test(logscan, what_is_only_named_is_seen_once)
{
    struct shk_facts *f = scan("mlx5_0 failed\nmlx5_1\n");
    cr_expect_eq(number(f, "log.sig.named", "lines"), 1);
    cr_expect_not_null(shk_facts_get_object(f, "log.unknown"));
    shk_facts_destroy(f);
}

Test(logcodes, numbers_and_texts)
{
    static const struct {
        const char *group, *text, *name;
    } codes[] = {
        {"errno", "12", "ENOMEM"},
        {"errno", "-12", "ENOMEM"},
        {"errno", "Cannot allocate memory", "ENOMEM"},
        {"errno", "enomem", "ENOMEM"},
        {"errno", "4711", NULL},
        {"errno", "", NULL},
        {"wc", "0", "SUCCESS"},
        {"wc", "20", "RESP_TIMEOUT_ERR"},
        {"wc", "21", "GENERAL_ERR"},
        {"wc", "22", NULL},
        {"wc", "-1", NULL},
        {"wc", "IBV_WC_LOC_LEN_ERR", "LOC_LEN_ERR"},
        {"cuda", "802", "SYSTEM_NOT_READY"},
        {"cuda", "1234", NULL},
        {"hsa", "4104", "OUT_OF_RESOURCES"},
        {"hsa", "0x1008", "OUT_OF_RESOURCES"},
        {"exit", "-9", "SIGKILL"},
        {"exit", "137", "SIGKILL"},
        {"exit", "Killed", "SIGKILL"},
        {"exit", "135", "SIGBUS"},
        {"exit", "1", NULL},
        {"name", "12", NULL},
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const char *got = shk_log_code(codes[i].group, codes[i].text, strlen(codes[i].text));
        if (codes[i].name)
            cr_expect_str_eq(got ? got : "(none)", codes[i].name, "%s %s", codes[i].group,
                             codes[i].text);
        else
            cr_expect_null(got, "%s %s: %s", codes[i].group, codes[i].text, got);
    }
}
