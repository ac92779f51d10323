#include "hostile.h"
#include "sample.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

TestSuite(annotations, .timeout = 300);

static size_t ci_count(const char *text, const char *what)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        count++;
    return count;
}

Test(annotations, each_cause_is_one)
{
    struct sample s;
    sample_failing(&s);
    char *text = sample_render(&s, "github");
    cr_expect_eq(strncmp(text, "::error title=", 14), 0);
    cr_expect_eq(ci_count(text, "\n"), s.diagnoses.count + 1, "%s", text);
    cr_expect_not_null(strstr(text, "::error title=shakedown%3A fail::"));
    cr_expect_not_null(strstr(text, "%0Afix: "));
    free(text);
    text = sample_render(&s, "gitlab");
    json_t *issues = json_loads(text, 0, NULL);
    cr_assert_eq(json_array_size(issues), s.diagnoses.count);
    json_t *first = json_array_get(issues, 0);
    cr_expect_str_eq(json_string_value(json_object_get(first, "severity")), "critical");
    cr_expect_str_eq(json_string_value(json_object_get(first, "check_name")),
                     s.diagnoses.rows[0].key);
    json_decref(issues);
    free(text);
    sample_free(&s);
}

Test(annotations, a_healthy_node)
{
    struct sample s;
    sample_healthy(&s);
    char *text = sample_render(&s, "github"), *none = sample_render(&s, "gitlab");
    cr_expect_eq(strncmp(text, "::notice title=shakedown%3A pass::", 34), 0, "%s", text);
    cr_expect_eq(ci_count(text, "\n"), 1);
    cr_expect_str_eq(none, "[]\n");
    free(text);
    free(none);
    sample_free(&s);
}

Test(annotations, nodes_of_a_cause)
{
    struct sample s;
    sample_thousand(&s);
    char *text = sample_render(&s, "github");
    cr_expect_not_null(strstr(text, "::nodes: nid["), "%s", text);
    free(text);
    text = sample_render(&s, "gitlab");
    cr_expect_not_null(strstr(text, "\"path\": \"shakedown/nid["), "%s", text);
    free(text);
    sample_free(&s);
}

/* A text of a hostile node is never a command of its own. */
Test(annotations, hostile)
{
    struct sample s;
    for (size_t i = 0; i < hostile_count * 2; i++) {
        sample_hostile(&s, hostile_texts[i / 2].text);
        char *text = sample_render(&s, i % 2 ? "github" : "gitlab");
        hostile_expect_clean(hostile_texts[i / 2].name, text);
        free(text);
        sample_free(&s);
    }
    sample_hostile(&s, "x\n::add-mask::y\r\n::error title=a,b=c::z%0A");
    char *text = sample_render(&s, "github");
    cr_expect_eq(ci_count(text, "\n::"), ci_count(text, "\n") - 1, "%s", text);
    cr_expect_null(strstr(text, "\n::add-mask"), "%s", text);
    free(text);
    sample_free(&s);
}
