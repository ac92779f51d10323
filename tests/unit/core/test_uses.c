#include "core/job/launch.h"
#include "core/text/uses.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct shk_use rows[] = {
    {.name = "a.one", .variables = (const char *const[]){"FIRST", "SECOND", NULL}},
    {.name = "b", .variables = (const char *const[]){"THIRD_", NULL}},
    {.name = "a.two", .variables = (const char *const[]){"FOURTH", NULL}, .number = true},
};

TestSuite(uses);

static void uses_begin(void)
{
    shk_uses_install(rows, sizeof rows / sizeof *rows);
}

Test(uses, finds_variables_by_what_they_are_for, .init = uses_begin)
{
    cr_expect_str_eq(shk_variable("a.one"), "FIRST");
    cr_expect_str_eq(shk_variables("a.one")[1], "SECOND");
    cr_expect_null(shk_variables("a.one")[2]);
    cr_expect(shk_use_find("a.two")->number);
}

Test(uses, has_nothing_for_what_the_catalogue_does_not_know, .init = uses_begin)
{
    cr_expect_null(shk_use_find("a"));
    cr_expect_str_empty(shk_variable("a"));
    cr_expect_null(shk_variables("a")[0]);
    cr_expect_not(shk_variable_has("a", "FIRST"));
}

Test(uses, a_variable_that_ends_in_an_underscore_is_a_prefix, .init = uses_begin)
{
    cr_expect(shk_variable_has("b", "THIRD_X"));
    cr_expect_not(shk_variable_has("b", "THIRD"));
    cr_expect(shk_variable_has("a.one", "SECOND"));
    cr_expect_not(shk_variable_has("a.one", "SECOND_X"));
}

Test(uses, of_a_kind_come_in_order, .init = uses_begin)
{
    size_t at = 0;
    cr_expect_str_eq(shk_use_next("a.", &at)->name, "a.one");
    cr_expect_str_eq(shk_use_next("a.", &at)->name, "a.two");
    cr_expect_null(shk_use_next("a.", &at));
}

static const char *uses_value(const char *variable, void *arg)
{
    const char *const *set = arg;
    for (; *set; set++)
        if (strcmp(*set, variable) == 0)
            return "3";
    return NULL;
}

static const char *uses_launcher(const char *const *set)
{
    const struct shk_launch *launch = shk_launch_find(uses_value, (void *)(uintptr_t)set);
    return launch ? launch->key : "none";
}

/* of the built-in catalogue */
Test(uses, the_innermost_launcher_decides)
{
    cr_expect_str_eq(uses_launcher((const char *const[]){"SLURM_JOB_ID", NULL}),
                     "slurm-allocation");
    cr_expect_str_eq(uses_launcher((const char *const[]){"SLURM_JOB_ID", "SLURM_STEP_NUM_TASKS",
                                                         "SLURM_PROCID", NULL}),
                     "slurm");
    cr_expect_str_eq(uses_launcher((const char *const[]){"SLURM_STEP_NUM_TASKS", "SLURM_PROCID",
                                                         "OMPI_COMM_WORLD_SIZE", NULL}),
                     "ompi");
    cr_expect_str_eq(uses_launcher((const char *const[]){"RANK", NULL}), "none");
}

Test(uses, a_fact_is_named_after_the_first_variable, .init = uses_begin)
{
    cr_expect_str_eq(shk_variable_fact("a.one"), "env.FIRST");
    cr_expect_str_empty(shk_variable_fact("c"));
}

Test(uses, stand_for_their_variable_in_a_text, .init = uses_begin)
{
    static const char *const rows_[][2] = {
        {"export {a.one}=1", "export FIRST=1"},
        {"{a.two}", "FOURTH"},
        {"a {c} b {a.one", "a {c} b {a.one"},
        {"{{a.one}} {}", "{FIRST} {}"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows_ / sizeof *rows_; i++) {
        char *text = shk_uses_expand(rows_[i][0]);
        cr_expect_str_eq(text, rows_[i][1]);
        free(text);
    }
}
