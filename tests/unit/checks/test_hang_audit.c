/* What the ranks have loaded, and their variables: the same everywhere, different, not read. */
#include "checks/hang/hang.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct shk_config *config;

static void begin(void)
{
    cr_assert_eq(shk_config_load(&config, NULL, NULL, NULL), 0);
}

static void end(void)
{
    shk_config_free(config);
}

TestSuite(hang_audit, .init = begin, .fini = end);

static json_t *nodes_of(int ranks)
{
    json_t *list = json_array();
    for (int i = 0; i < ranks; i++)
        json_array_append_new(list, json_pack("{s:i,s:i,s:i,s:s}", "pid", 100 + i, "rank", i,
                                              "ranks", ranks, "state", "S"));
    return json_pack("[{s:s,s:f,s:o}]", "host", "node9", "seconds", 5.0, "ranks", list);
}

static json_t *rank_of(json_t *nodes, int rank)
{
    return json_array_get(json_object_get(json_array_get(nodes, 0), "ranks"), (size_t)rank);
}

static void set_library(json_t *nodes, int rank, const char *path, const char *version,
                        const char *id)
{
    json_t *versions = json_object_get(rank_of(nodes, rank), "versions");
    if (!versions)
        json_object_set_new(rank_of(nodes, rank), "versions", versions = json_array());
    json_array_append_new(
        versions, json_pack("{s:s,s:s*,s:s*}", "path", path, "version", version, "build_id", id));
}

static void set_variable(json_t *nodes, int rank, const char *name, const char *value)
{
    json_t *environment = json_object_get(rank_of(nodes, rank), "environment");
    if (!environment)
        json_object_set_new(rank_of(nodes, rank), "environment", environment = json_object());
    if (name)
        json_object_set_new(environment, name, json_string(value));
}

/* Judges and frees the nodes. */
static json_t *judge(json_t *nodes)
{
    json_t *judgement = NULL;
    enum shk_hang_outcome outcome;
    struct shk_error err = {""};
    cr_assert_eq(shk_hang_judge(config, nodes, &judgement, &outcome, &err), 0, "%s", err.text);
    json_decref(nodes);
    return judgement;
}

static json_t *find(json_t *judgement, const char *list, const char *member, const char *text)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(judgement, list), i, item)
    {
        const char *is = json_string_value(json_object_get(item, member));
        if (is && strcmp(is, text) == 0)
            return item;
    }
    return NULL;
}

static void expect_ranks(const json_t *object, const char *expected)
{
    char *text = json_dumps(json_object_get(object, "ranks"), JSON_COMPACT);
    cr_expect_str_eq(text ? text : "", expected);
    free(text);
}

Test(hang_audit, one_build_under_two_paths_is_no_difference)
{
    json_t *nodes = nodes_of(2);
    set_library(nodes, 0, "/opt/a/libnccl.so.2", "2.28.9", "aa11");
    set_library(nodes, 1, "/opt/b/libnccl.so.2", "2.28.9", "aa11");
    json_t *j = judge(nodes);
    cr_expect_eq(json_array_size(json_object_get(j, "libraries")), 0);
    json_decref(j);
}

Test(hang_audit, another_version_at_the_same_path)
{
    json_t *nodes = nodes_of(3);
    for (int i = 0; i < 3; i++)
        set_library(nodes, i, "/opt/a/libnccl.so.2", i == 1 ? "2.21.5" : "2.28.9",
                    i == 1 ? "bb22" : "aa11");
    json_t *j = judge(nodes), *library = find(j, "libraries", "library", "libnccl");
    cr_assert_not_null(library);
    cr_expect_not_null(find(j, "libraries", "diagnosis", "nccl-version-differs-across-ranks"));
    expect_ranks(json_array_get(json_object_get(library, "versions"), 0), "[0,2]");
    expect_ranks(json_array_get(json_object_get(library, "versions"), 1), "[1]");
    json_decref(j);
}

Test(hang_audit, builds_of_one_version_point_to_no_cause)
{
    json_t *nodes = nodes_of(2);
    set_library(nodes, 0, "/opt/a/libnccl.so.2", "2.28.9", "aa11");
    set_library(nodes, 1, "/opt/a/libnccl.so.2", "2.28.9", "cc33");
    json_t *j = judge(nodes), *library = find(j, "libraries", "library", "libnccl");
    cr_assert_not_null(library);
    cr_expect_null(json_object_get(library, "diagnosis"));
    json_decref(j);
}

Test(hang_audit, a_library_that_was_not_read_is_no_difference)
{
    json_t *nodes = nodes_of(2);
    set_library(nodes, 0, "/opt/a/libnccl.so.2", "2.28.9", "aa11");
    set_library(nodes, 1, "/opt/a/libnccl.so.2", NULL, NULL);
    json_t *j = judge(nodes);
    cr_expect_eq(json_array_size(json_object_get(j, "libraries")), 0);
    json_decref(j);
}

Test(hang_audit, two_copies_in_each_rank)
{
    json_t *nodes = nodes_of(2);
    for (int i = 0; i < 2; i++) {
        set_library(nodes, i, "/usr/lib/libfabric.so.1.21.0", "1.17.0", "aa11");
        set_library(nodes, i, "/opt/amazon/efa/lib/libfabric.so.1.25.0", "1.22.0", "dd44");
        set_library(nodes, i, "/usr/lib/libmpi.so.40.30.4", "4.1.4", "ee55");
        set_library(nodes, i, "/opt/tool/libmpi.so.40.30.4", "4.1.4", "ff66");
    }
    json_t *j = judge(nodes);
    cr_expect_not_null(find(j, "libraries", "library", "libfabric"));
    cr_expect_null(find(j, "libraries", "library", "libmpi"));
    json_decref(j);
}

Test(hang_audit, a_library_that_was_replaced_under_a_rank)
{
    json_t *nodes = nodes_of(2);
    set_library(nodes, 0, "/opt/a/libnccl.so.2", NULL, NULL);
    set_library(nodes, 1, "/opt/a/libnccl.so.2", NULL, NULL);
    json_t *versions = json_object_get(rank_of(nodes, 1), "versions");
    json_object_set_new(json_array_get(versions, 0), "replaced", json_true());
    json_t *j = judge(nodes), *library = find(j, "libraries", "library", "libnccl");
    cr_assert_not_null(library);
    cr_expect_eq(json_array_size(json_object_get(library, "replaced")), 1);
    json_decref(j);
}

Test(hang_audit, variables_alike_and_right)
{
    json_t *nodes = nodes_of(2);
    for (int i = 0; i < 2; i++) {
        char number[8];
        snprintf(number, sizeof number, "%d", i);
        set_variable(nodes, i, "NCCL_PROTO", "Simple");
        set_variable(nodes, i, "OMPI_COMM_WORLD_RANK", number);
        set_variable(nodes, i, "SLURM_PROCID", number);
        set_variable(nodes, i, "CUDA_VISIBLE_DEVICES", number);
    }
    json_t *j = judge(nodes);
    cr_expect_eq(json_array_size(json_object_get(j, "differences")), 0);
    cr_expect_eq(json_array_size(json_object_get(j, "settings")), 0);
    json_decref(j);
}

Test(hang_audit, a_wrong_value_and_a_different_one)
{
    json_t *nodes = nodes_of(3);
    for (int i = 0; i < 3; i++) {
        set_variable(nodes, i, "FI_HMEM", "1");
        set_variable(nodes, i, "NCCL_PROTO", i == 2 ? "LL" : "Simple");
    }
    json_t *j = judge(nodes), *wrong = find(j, "settings", "name", "FI_HMEM"),
           *differs = find(j, "differences", "name", "NCCL_PROTO");
    cr_assert_not_null(wrong);
    cr_expect_str_eq(json_string_value(json_object_get(wrong, "verdict")), "fail");
    expect_ranks(wrong, "[0,1,2]");
    cr_assert_not_null(differs);
    cr_expect_eq(json_array_size(json_object_get(differs, "values")), 2);
    json_decref(j);
}

/* Of the launcher's variables only numbers differ; one that an administrator sets is compared. */
Test(hang_audit, a_setting_among_the_variables_of_the_launcher)
{
    json_t *nodes = nodes_of(2);
    for (int i = 0; i < 2; i++) {
        set_variable(nodes, i, "OMPI_MCA_pml", i ? "ob1" : "ucx");
        set_variable(nodes, i, "PMIX_SERVER_URI41", i ? "n1;tcp4://1" : "n2;tcp4://2");
        set_variable(nodes, i, "PMIX_SERVER_TMPDIR", i ? "/tmp/n1.1" : "/tmp/n2.2");
    }
    json_t *j = judge(nodes);
    cr_expect_not_null(find(j, "differences", "name", "OMPI_MCA_pml"));
    cr_expect_eq(json_array_size(json_object_get(j, "differences")), 1);
    json_decref(j);
}

Test(hang_audit, a_variable_that_one_rank_lacks)
{
    json_t *nodes = nodes_of(3);
    set_variable(nodes, 0, "NCCL_PROTO", "LL");
    set_variable(nodes, 1, "NCCL_PROTO", "LL");
    set_variable(nodes, 2, NULL, NULL);
    json_t *j = judge(nodes), *differs = find(j, "differences", "name", "NCCL_PROTO");
    cr_assert_not_null(differs);
    const json_t *unset = json_array_get(json_object_get(differs, "values"), 1);
    cr_expect(json_is_null(json_object_get(unset, "value")));
    expect_ranks(unset, "[2]");
    json_decref(j);
}

/* Nothing was read of rank 1, and the value of rank 2 was withheld. */
Test(hang_audit, variables_that_were_not_read_are_not_unset)
{
    json_t *nodes = nodes_of(3);
    set_variable(nodes, 0, "NCCL_PROTO", "LL");
    set_variable(nodes, 2, NULL, NULL);
    json_object_set_new(rank_of(nodes, 2), "withheld", json_pack("[s]", "NCCL_PROTO"));
    json_object_set_new(rank_of(nodes, 1), "unread",
                        json_pack("{s:s}", "environment", "not permitted"));
    json_t *j = judge(nodes);
    cr_expect_eq(json_array_size(json_object_get(j, "differences")), 0);
    size_t i;
    json_t *text;
    bool said = false;
    json_array_foreach(json_object_get(j, "unknown"), i, text) said |=
        strstr(json_string_value(text), "environment: not permitted") != NULL;
    cr_expect(said);
    json_decref(j);
}

Test(hang_audit, many_ranks_in_two_seconds)
{
    json_t *nodes = nodes_of(512);
    for (int i = 0; i < 512; i++) {
        char name[32], value[16];
        snprintf(value, sizeof value, "%d", i);
        set_variable(nodes, i, "SLURM_PROCID", value);
        set_variable(nodes, i, "OMPI_COMM_WORLD_RANK", value);
        for (int k = 0; k < 80; k++) {
            snprintf(name, sizeof name, "NCCL_SETTING_%d", k);
            set_variable(nodes, i, name, k == 7 ? value : "1");
        }
    }
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    json_decref(judge(nodes));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    cr_expect_lt(s, 2, "%.2f s", s);
    cr_log_info("512 ranks: %.3f s", s);
}

Test(hang_audit, hostile_documents)
{
    static const char *const texts[] = {
        "[{\"ranks\": [{\"pid\": 1, \"environment\": [], \"withheld\": {}, \"versions\": {}}]}]",
        "[{\"ranks\": [{\"pid\": 1, \"environment\": {\"A=B\": 1, \"\": \"\", \"FI_X Y\": \"1\"}, "
        "\"withheld\": [1, null], \"versions\": [1, {}, {\"path\": 1}, {\"path\": \"\", "
        "\"build_id\": 3, \"replaced\": 7}]}]}]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *nodes = json_loads(texts[i], 0, NULL);
        cr_assert_not_null(nodes);
        json_decref(judge(nodes));
    }
}
