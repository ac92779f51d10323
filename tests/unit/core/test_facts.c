#include "core/facts/facts.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Test(facts, three_states_are_three_things)
{
    struct shk_facts *f = shk_facts_create();
    struct shk_fact fact;
    cr_assert_eq(shk_facts_int(f, "shm.size", 0, "B", "statfs"), 0);
    cr_assert_eq(shk_facts_absent(f, "kernel.module.efa", "/proc/modules", "not loaded"), 0);
    cr_assert_eq(shk_facts_failed(f, "kernel.cmdline", "/proc/cmdline", "%s", "denied"), 0);
    cr_assert(shk_facts_get(f, "shm.size", &fact));
    cr_expect_eq(fact.state, SHK_FACT_PRESENT);
    cr_expect_eq(json_integer_value(fact.value), 0);
    cr_expect_str_eq(fact.unit, "B");
    cr_assert(shk_facts_get(f, "kernel.module.efa", &fact));
    cr_expect_eq(fact.state, SHK_FACT_ABSENT);
    cr_expect_null(fact.value);
    cr_assert(shk_facts_get(f, "kernel.cmdline", &fact));
    cr_expect_eq(fact.state, SHK_FACT_FAILED);
    cr_expect_str_eq(fact.reason, "denied");
    cr_expect_not(shk_facts_get(f, "never.asked", &fact));
    cr_expect_eq(shk_facts_get_int(f, "kernel.cmdline", -7), -7);
    shk_facts_destroy(f);
}

Test(facts, freeze_and_bad_keys_are_refused)
{
    struct shk_facts *f = shk_facts_create();
    cr_expect_eq(shk_facts_int(f, "", 1, NULL, ""), -EINVAL);
    cr_expect_eq(shk_facts_int(f, "a b", 1, NULL, ""), -EINVAL);
    cr_expect_eq(shk_facts_present(f, "a", NULL, NULL, ""), -ENOMEM);
    shk_facts_freeze(f);
    cr_expect_eq(shk_facts_int(f, "a", 1, NULL, ""), -EROFS);
    cr_expect_eq(shk_facts_count(f), 0);
    shk_facts_destroy(f);
}

Test(facts, json_round_trip)
{
    struct shk_facts *f = shk_facts_create(), *g = NULL;
    struct shk_error err = {""};
    shk_facts_text(f, "host.name",
                   "nid\xff"
                   "01",
                   "uname");
    shk_facts_int(f, "x", -3, "B", "s");
    shk_facts_failed(f, "y", "/sys/y", "EIO");
    json_t *doc = shk_facts_to_json(f);
    cr_assert_eq(shk_facts_from_json(&g, doc, &err), 0, "%s", err.text);
    json_t *again = shk_facts_to_json(g);
    cr_expect(json_equal(doc, again));
    cr_expect_str_eq(shk_facts_get_text(g, "host.name"), "nid\xef\xbf\xbd"
                                                         "01");
    json_decref(doc);
    json_decref(again);
    shk_facts_destroy(f);
    shk_facts_destroy(g);
}

static char *write_temp(const char *text, size_t len)
{
    char *path = strdup("/tmp/shk-facts-XXXXXX");
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, text, len), (ssize_t)len);
    close(fd);
    return path;
}

Test(facts, hostile_documents_get_one_line_with_the_place)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "empty, no facts document"},
        {"{\"schema\": \"shakedown.facts/1\", \"facts\": {", ":1: "},
        {"\n\n[1]", ":3: facts: not a JSON object"},
        {"{}", "no \"schema\""},
        {"{\"schema\": \"other/9\", \"facts\": {}}", "schema 'other/9' is not"},
        {"{\"schema\": \"shakedown.facts/1\", \"facts\": []}", "\"facts\" is not an object"},
        {"{\"schema\":\"shakedown.facts/1\",\"facts\":{\"a b\":1}}", "'a b' is not a fact key"},
        {"{\"schema\":\"shakedown.facts/1\",\"facts\":{\"a\":{\"state\":\"maybe\"}}}",
         "a: state 'maybe' is not"},
        {"{\"schema\":\"shakedown.facts/1\",\"facts\":{\"a\":{\"state\":\"present\"}}}",
         "a: present without a value"},
        {"{\"schema\":\"shakedown.facts/1\",\"facts\":{\"a\":{\"state\":\"failed\",\"reason\":3}}}",
         "a: reason is not a string"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *path = write_temp(rows[i].text, strlen(rows[i].text));
        struct shk_facts **list = NULL;
        size_t n = 0;
        struct shk_error err = {""};
        cr_expect_lt(shk_facts_load(&list, &n, path, NULL, &err), 0, "%s", rows[i].text);
        cr_expect(strstr(err.text, rows[i].says), "'%s' does not say '%s'", err.text, rows[i].says);
        cr_expect(strncmp(err.text, path, strlen(path)) == 0, "no place in '%s'", err.text);
        unlink(path);
        free(path);
    }
}

Test(facts, deep_nesting_is_refused)
{
    char text[600] = "{\"schema\":\"shakedown.facts/1\",\"facts\":{\"a\":";
    for (int i = 0; i < 100; i++)
        strcat(text, "[");
    for (int i = 0; i < 100; i++)
        strcat(text, "]");
    strcat(text, "}}");
    char *path = write_temp(text, strlen(text));
    struct shk_facts **list;
    size_t n;
    struct shk_error err;
    cr_expect_lt(shk_facts_load(&list, &n, path, NULL, &err), 0);
    cr_expect(strstr(err.text, "nested deeper"), "%s", err.text);
    unlink(path);
    free(path);
}

/* What the lines about malformed facts of a document say, joined by newlines. */
static char *faults_of(const char *text, struct shk_facts **facts_p)
{
    static char lines[2048];
    char *path = write_temp(text, strlen(text));
    struct shk_facts **list = NULL;
    size_t n = 0, i;
    struct shk_error err = {""};
    json_t *said = json_array(), *line;
    cr_assert_eq(shk_facts_load(&list, &n, path, said, &err), 0, "%s", err.text);
    lines[0] = '\0';
    json_array_foreach(said, i, line)
    {
        const char *one = json_string_value(line);
        cr_assert_eq(strncmp(one, path, strlen(path)), 0, "%s", one);
        strcat(strcat(lines, one + strlen(path)), "\n");
    }
    *facts_p = list[n - 1];
    for (i = 0; i + 1 < n; i++)
        shk_facts_destroy(list[i]);
    free(list);
    json_decref(said);
    unlink(path);
    free(path);
    return lines;
}

Test(facts, a_malformed_fact_is_one_that_was_not_read)
{
    static const char text[] = "{\"schema\": \"shakedown.facts/1\", \"facts\": {\"a\": 1}}\n"
                               "{\"schema\": \"shakedown.facts/1\", \"facts\": {\n"
                               "\"a\": {\"state\": \"live\"},\n"
                               "\"env.X_TOKEN\": {\"state\": \"hunter2\"},\n"
                               "\"b\": {\"state\": \"present\"},\n"
                               "\"not a key\": 1,\n"
                               "\"c\": 7}}\n";
    struct shk_facts *facts = NULL;
    struct shk_fact fact;
    const char *said = faults_of(text, &facts);
    cr_expect(strstr(said, ":3: a: state 'live' is not present, absent or failed"), "%s", said);
    cr_expect(strstr(said, ":4: env.X_TOKEN: its state is not present"), "%s", said);
    cr_expect(strstr(said, ":5: b: present without a value; taken as"), "%s", said);
    cr_expect(strstr(said, ":6: 'not a key' is not a fact key; left out"), "%s", said);
    cr_expect_null(strstr(said, "hunter2"));
    cr_assert(shk_facts_get(facts, "a", &fact));
    cr_expect_eq(fact.state, SHK_FACT_FAILED);
    cr_expect(strncmp(fact.reason, "state 'live' is not", 19) == 0, "%s", fact.reason);
    cr_assert(shk_facts_get(facts, "b", &fact));
    cr_expect_eq(fact.state, SHK_FACT_FAILED);
    cr_expect_eq(shk_facts_get_int(facts, "c", 0), 7);
    cr_expect_eq(shk_facts_count(facts), 4);
    shk_facts_destroy(facts);
}

Test(facts, absent_may_be_said_in_a_word)
{
    static const char text[] = "{\"schema\": \"shakedown.facts/1\", \"facts\": {"
                               "\"kernel.module.efa\": \"absent\", \"env.X\": \"absent\"}}";
    struct shk_facts *facts = NULL;
    struct shk_fact fact;
    cr_expect_str_eq(faults_of(text, &facts), "");
    cr_assert(shk_facts_get(facts, "kernel.module.efa", &fact));
    cr_expect_eq(fact.state, SHK_FACT_ABSENT);
    cr_expect_str_eq(shk_facts_get_text(facts, "env.X"), "absent");
    shk_facts_destroy(facts);
}

Test(facts, several_documents_and_bare_values)
{
    static const char text[] =
        "{\"schema\":\"shakedown.facts/1\",\"facts\":{\"host.name\":\"a\"}}\n"
        "[{\"schema\":\"shakedown.facts/1\",\"facts\":{\"host.name\":\"b\",\"n\":{\"k\":1}}}]\n";
    char *path = write_temp(text, sizeof text - 1);
    struct shk_facts **list;
    size_t n;
    struct shk_error err = {""};
    cr_assert_eq(shk_facts_load(&list, &n, path, NULL, &err), 0, "%s", err.text);
    cr_assert_eq(n, 2);
    cr_expect_str_eq(shk_facts_get_text(list[0], "host.name"), "a");
    cr_expect_str_eq(shk_facts_get_text(list[1], "host.name"), "b");
    cr_expect_not_null(shk_facts_get_object(list[1], "n"));
    shk_facts_destroy(list[0]);
    shk_facts_destroy(list[1]);
    free(list);
    unlink(path);
    free(path);
}

static int collect(const struct shk_fact *fact, void *arg)
{
    strcat(arg, fact->key);
    return strcmp(fact->key, "b.2") == 0 ? 9 : 0;
}

Test(facts, each_goes_in_key_order_and_stops)
{
    struct shk_facts *f = shk_facts_create();
    char seen[64] = "";
    shk_facts_int(f, "b.2", 1, NULL, "");
    shk_facts_int(f, "b.1", 1, NULL, "");
    shk_facts_int(f, "b.3", 1, NULL, "");
    shk_facts_int(f, "a", 1, NULL, "");
    cr_expect_eq(shk_facts_each(f, "b.", collect, seen), 9);
    cr_expect_str_eq(seen, "b.1b.2");
    shk_facts_destroy(f);
}
