/* nccom-test, played by scripts: a good table, a wrong result, a hang, an error, nonsense. */
#include "collectives/other/neuron.h"
#include "core/facts/facts.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const nrt[] = {SHK_BUILD_DIR "/tests/fakes/nrt/libnrt.so.1", NULL};
static const char *const missing[] = {"libshk-there-is-no-such-library.so.1", NULL};

#define HEAD "  size(B)    count(elems)    type    time(us)    algbw(GB/s)    busbw(GB/s)\n"
#define GOOD                                                                                       \
    HEAD "     1024             256    fp32          58           0.02           0.02\n"           \
         "  1048576          262144    fp32       68.25          14.36          14.36\n"           \
         "Avg bus bandwidth:      7.19GB/s\n"

struct table_case {
    const char *output;
    int code;
    const char *status, *why;
    size_t rows;
};

/* Not documented how a wrong result is worded: any likely word for it must do. */
static const struct table_case tables[] = {
    {GOOD, 0, "ok", "", 2},
    {"seed 7 for the golden tensors\n" GOOD, 0, "ok", "", 2},
    {"working |\rworking /\r" GOOD, 0, "ok", "", 2},
    {GOOD, 1, "failed", "code 1", 2},
    {HEAD " 1024 256 fp32 58 0.02 0.02\n", 0, "failed", "has no end: 1 sizes", 1},
    {HEAD " 1024 256 fp32 58 0.02 0.02\n 4096 1024 fp32 0 nan nan\nAvg bus bandwidth: 1GB/s\n", 3,
     "failed", "4096 1024 fp32 0 nan nan", 1},
    {HEAD " 33554432    Failure running neuron-bench - log file /tmp/l.log\n"
          "1 errors found - test failed\n",
     0, "failed", "Failure running neuron-bench - log file /tmp/l.log", 0},
    {HEAD
     " 1024    Failure: output does not match golden of rank 1\n1 errors found - test failed\n",
     1, "wrong", "does not match golden of rank 1", 0},
    {HEAD " 1024 256 fp32 58 0.02 0.02\nresult mismatch\n", 0, "wrong", "result mismatch", 1},
    {HEAD " 1024 256 fp32 58 0.02 0.02\n 4096 1024 fp32 0 nan nan\nAvg bus bandwidth: 1GB/s\n", 0,
     "failed", "cannot be read: 4096 1024 fp32 0 nan nan", 1},
    {HEAD " 1024 256 fp32 58 0.02 0.02\n 4096 1024 fp\xff 9 1 1\nAvg bus bandwidth: 1GB/s\n", 0,
     "failed", "cannot be read: 4096 1024", 1},
    {HEAD " 1024 256 fp32 58 0.02 0.02\n 4096 1024 fp32 9\nAvg bus bandwidth: 1GB/s\n", 0, "failed",
     "cannot be read", 1},
    {HEAD " 1024    Failure running neuron-bench\noutputs of rank 0 and 1 mismatch\n", 1, "wrong",
     "outputs of rank 0 and 1 mismatch", 0},
    {"seed of the golden tensors: 7\nno device\n", 1, "failed", "no device", 0},
    {GOOD "rank 3: incorrect element\n", 0, "wrong", "rank 3: incorrect element", 2},
    {"Neuron DKMS Driver is not running!\n", 0, "failed", "Driver is not running", 0},
    {"", 0, "failed", "no table", 0},
    {"", 127, "failed", "said nothing", 0},
    {" 1024 256 fp32 58 0.02 0.02\nAvg bus bandwidth: 1GB/s\n", 0, "failed", "no table", 0},
    {"\x01\xff size(B) size(B)\n\n\n", 0, "failed", "no table", 0},
};

Test(neuron, tables)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        const struct table_case *c = &tables[i];
        struct shk_error why = {{0}};
        const char *status = NULL;
        char *text = strdup(c->output);
        json_t *rows = shk_neuron_table(text, c->code, 2, &status, &why);

        cr_expect_str_eq(status, c->status, "case %zu: %s: %s", i, status, why.text);
        cr_expect(strstr(why.text, c->why) != NULL, "case %zu: %s", i, why.text);
        cr_expect(strcmp(status, "ok") == 0 || why.text[0] != '\0', "case %zu", i);
        cr_expect_eq(json_array_size(rows), c->rows, "case %zu", i);
        json_decref(rows);
        free(text);
    }
}

Test(neuron, figures)
{
    char text[] = "size(B) count(elems) total_input_size(B) type time:avg(us) algbw(GB/s)\n"
                  "8000 2000 9 fp32 4 1.86\nAvg bus bandwidth:\t1GB/s\n";
    struct shk_error why = {{0}};
    const char *status = NULL;
    json_t *rows = shk_neuron_table(text, 0, 4, &status, &why);
    const json_t *row = json_array_get(rows, 0);

    cr_assert_str_eq(status, "ok", "%s", why.text);
    cr_expect_eq(json_integer_value(json_object_get(row, "bytes")), 8000);
    cr_expect_eq(json_integer_value(json_object_get(row, "count")), 2000);
    cr_expect_str_eq(json_string_value(json_object_get(row, "type")), "float32");
    cr_expect(fabs(json_real_value(json_object_get(row, "algbw")) - 2.0) < 1e-9);
    cr_expect(fabs(json_real_value(json_object_get(row, "busbw")) - 3.0) < 1e-9);
    cr_expect_eq(json_integer_value(json_object_get(row, "wrong")), 0);
    json_decref(rows);
}

static const char *text_of(const struct shk_facts *facts, const char *member)
{
    char key[64];
    const char *value = NULL;

    snprintf(key, sizeof(key), "collective.neuron.%s", member);
    value = shk_facts_get_text(facts, key);
    return value != NULL ? value : "";
}

/* A script as the tool; body NULL: none. */
static struct shk_facts *run_script(const char *body, const char *const *names, unsigned ranks,
                                    unsigned deadline_ms)
{
    char dir[] = "/tmp/shk-neuron-XXXXXX";
    char path[64];
    struct shk_collective_options options = {
        .ranks = ranks, .min_bytes = 8, .max_bytes = 1024, .deadline_ms = deadline_ms};
    struct shk_neuron_tweaks tweaks = {.tool = path, .nrt_names = names};
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};

    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/nccom-test", dir);
    if (body != NULL) {
        FILE *out = fopen(path, "we");

        fprintf(out, "#!/bin/sh\n%s\n", body);
        fchmod(fileno(out), 0755);
        fclose(out);
    }
    cr_assert_eq(shk_neuron_run(&options, &tweaks, facts, &err), 0, "%s", err.text);
    unlink(path);
    rmdir(dir);
    return facts;
}

static void expect(const char *body, const char *const *names, unsigned ranks, const char *status,
                   const char *reason)
{
    struct shk_facts *facts = run_script(body, names, ranks, 2000);

    cr_expect_str_eq(text_of(facts, "status"), status, "%s: %s", text_of(facts, "status"),
                     text_of(facts, "reason"));
    cr_expect(strstr(text_of(facts, "reason"), reason) != NULL, "%s", text_of(facts, "reason"));
    shk_facts_destroy(facts);
}

Test(neuron, a_good_run)
{
    struct shk_facts *facts =
        run_script("[ \"$*\" = \"allr --nworkers 2 --minbytes 8 --maxbytes 1024 --stepfactor 4 "
                   "--datatype fp32 --check\" ] || exit 2\ncat <<'END'\n" GOOD "END",
                   nrt, 2, 30000);

    cr_assert_str_eq(text_of(facts, "status"), "ok", "%s", text_of(facts, "reason"));
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, "collective.neuron.sizes")), 2);
    cr_expect(strstr(text_of(facts, "library"), "libnrt.so.1") != NULL);
    cr_expect(strstr(text_of(facts, "command"), "/nccom-test allr --nworkers 2") != NULL);
    shk_facts_destroy(facts);
}

Test(neuron, broken_runs)
{
    expect("echo 'Neuron driver: no device'; exit 1", nrt, 2, "failed", "no device");
    expect("echo 'rank 1: golden mismatch' >&2; exit 1", nrt, 2, "wrong", "golden mismatch");
    expect("exec sleep 60", nrt, 2, "timeout", "nccom-test");
    expect("kill -SEGV $$", nrt, 2, "crashed", "SIGSEGV");
    expect("head -c 300000 /dev/zero | tr '\\0' '#'", nrt, 2, "failed", "no table");
}

Test(neuron, not_here)
{
    expect(NULL, nrt, 2, "na", "nccom-test is not in PATH");
    expect("exit 0", missing, 2, "na", "libshk-there-is-no-such-library");
    expect("exit 0", nrt, 1, "na", "--ranks 2");
}
