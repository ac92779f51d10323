#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define WORKS(a, b) "{'a': '" a "', 'b': '" b "', 'ok': true}"
#define FAILS(a, b) "{'a': '" a "', 'b': '" b "', 'ok': false}"

/* The all-reduce names n2 and n3; `mtu` are the nodes of the row about what may have caused it. */
static const struct ends_case {
    const char *what, *pairs, *mtu[4];
    size_t below;
    const char *confidence, *left;
} cases[] = {
    {"the cause is at one end",
     FAILS("n2", "n3") "," WORKS("n1", "n2") "," WORKS("n1", "n3"),
     {"n2"},
     1,
     "confirmed",
     "n2"},
    {"it is only likely",
     FAILS("n2", "n3") "," WORKS("n1", "n2") "," WORKS("n1", "n3"),
     {"n2"},
     1,
     "likely",
     "n2 n3"},
    {"it explains something else",
     FAILS("n2", "n3") "," WORKS("n1", "n2") "," WORKS("n1", "n3"),
     {"n2"},
     0,
     "confirmed",
     "n2 n3"},
    {"it is at both ends",
     FAILS("n2", "n3") "," WORKS("n1", "n2") "," WORKS("n1", "n3"),
     {"n2", "n3"},
     1,
     "confirmed",
     "n2 n3"},
    {"it is at neither",
     FAILS("n2", "n3") "," WORKS("n1", "n2") "," WORKS("n1", "n3"),
     {"n1"},
     1,
     "confirmed",
     "n2 n3"},
    {"the other fails with a good one, too",
     FAILS("n2", "n3") "," WORKS("n1", "n2") "," FAILS("n1", "n3") "," WORKS("n3", "n4"),
     {"n2"},
     1,
     "confirmed",
     "n2 n3"},
    {"the other works with nobody",
     FAILS("n2", "n3") "," WORKS("n1", "n2"),
     {"n2"},
     1,
     "confirmed",
     "n2 n3"},
    {"a pair that cannot be read",
     FAILS("n2", "n3") "," WORKS("n1", "n3") ", {'a': 'n1'}",
     {"n2"},
     1,
     "confirmed",
     "n2 n3"},
};

static void add(struct shk_findings *list, const char *id, enum shk_verdict verdict,
                const char *diagnosis, const char *const *nodes)
{
    size_t count = 0;
    while (nodes[count])
        count++;
    shk_findings_add(list, &(struct shk_finding_in){.id = id,
                                                    .family = "x",
                                                    .setting = "y",
                                                    .verdict = verdict,
                                                    .evidence = SHK_TESTED,
                                                    .diagnosis = diagnosis});
    cr_assert_eq(shk_findings_set_nodes(list, shk_findings_count(list) - 1, nodes, count), 0);
}

Test(ends, the_one_without_the_cause_is_let_go)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ends_case *c = &cases[i];
        char json[512], left[64] = "", confidence[16];
        snprintf(json, sizeof json, "'collective.fabric.pairs': [%s]", c->pairs);
        struct shk_facts *facts = support_facts(json);
        struct shk_findings *list = shk_findings_create();
        add(list, "collective.allreduce", SHK_FAIL, "collective-hangs",
            (const char *const[]){"n2", "n3", NULL});
        add(list, "nodes.agree", SHK_WARN, "mtu-mismatch", c->mtu);
        snprintf(confidence, sizeof confidence, "%s", c->confidence);
        struct shk_diagnosis_row rows[] = {
            {.key = (char[]){"mtu-mismatch"}, .confidence = confidence},
            {.key = (char[]){"collective-hangs"}, .confidence = confidence, .below = c->below}};
        struct shk_diagnoses diagnoses = {rows, 2};
        cr_assert_eq(shk_ends_settle(list, (const struct shk_facts *const[]){facts}, 1, &diagnoses),
                     0);
        for (char **node = shk_findings_at(list, 0)->nodes; *node; node++)
            snprintf(left + strlen(left), sizeof left - strlen(left), "%s%s", *left ? " " : "",
                     *node);
        cr_expect_str_eq(left, c->left, "%s: %s", c->what, left);
        shk_findings_destroy(list);
        shk_facts_destroy(facts);
    }
}
