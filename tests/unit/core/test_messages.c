#include "core/text/messages.h"
#include "core/text/strbuf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const tables[] = {
    "Failed to open %s for %d bytes\n"
    "Poll failed: %s\n"
    "%s : connection of %s closed\n",
    "Failed to open %s\n"
    "100%% of the ring is taken\n"
    "rank %d waits\n",
};

static const struct {
    const char *message, *text; /* NULL: none */
    size_t id;
} rows[] = {
    {"Failed to open /dev/x for 12 bytes", "Failed to open %s for %d bytes", 0},
    {"Failed to open /dev/x for 0x1f bytes, again", "Failed to open %s for %d bytes", 0},
    {"Failed to open a for b for -4 bytes", "Failed to open %s for %d bytes", 0},
    {"Failed to open /dev/x for x bytes", "Failed to open %s", 1},
    {"Failed to open ", "Failed to open %s", 1},
    {"Poll failed: No such device", "Poll failed: %s", 0},
    {"It says: Poll failed: No such device", NULL, 0},
    {"NET/X : connection of rank 3 closed", "%s : connection of %s closed", 0},
    {"NET/X : connection of rank 3 closedown", NULL, 0},
    {"100% of the ring is taken", "100%% of the ring is taken", 1},
    {"rank 7 waits.", "rank %d waits", 1},
    {"rank 7 waits for rank 8", NULL, 0}, /* too short a text to say so */
    {"rank seven waits", NULL, 0},
    {"", NULL, 0},
};

Test(messages, the_text_with_the_most_fixed_words_counts)
{
    struct shk_error err = {""};
    struct shk_messages *table = shk_messages_create();
    cr_assert_not_null(table);
    for (size_t i = 0; i < 2; i++)
        cr_assert_eq(shk_messages_add(table, tables[i], i, &err), 0, "%s", err.text);
    cr_assert_eq(shk_messages_settle(table, &err), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t id = 9, len = strlen(rows[i].message);
        const char *text = NULL;
        bool found = shk_messages_find(table, rows[i].message, len, &id, &text);
        cr_expect_eq(found, rows[i].text != NULL, "%s", rows[i].message);
        if (!found || !rows[i].text)
            continue;
        cr_expect_eq(id, rows[i].id, "%s: %zu", rows[i].message, id);
        cr_expect_eq(strncmp(text, rows[i].text, strlen(rows[i].text)), 0, "%s", rows[i].message);
    }
    shk_messages_destroy(table);
}

Test(messages, of_many_texts_each_finds_itself)
{
    enum { MANY = 5000 };
    struct shk_error err = {""};
    struct shk_messages *table = shk_messages_create();
    char *texts[MANY];
    for (size_t i = 0; i < MANY; i++) {
        texts[i] = shk_strf("step%zu of %%s failed in part%zu", i / 50, i % 50);
        cr_assert_eq(shk_messages_add(table, texts[i], i, &err), 0, "%s", err.text);
    }
    cr_assert_eq(shk_messages_settle(table, &err), 0);
    for (size_t i = 0; i < MANY; i += 37) {
        char *line = shk_strf("step%zu of the job failed in part%zu", i / 50, i % 50);
        size_t id = MANY;
        cr_expect(shk_messages_find(table, line, strlen(line), &id, NULL), "%s", line);
        cr_expect_eq(id, i);
        free(line);
    }
    shk_messages_destroy(table);
    for (size_t i = 0; i < MANY; i++)
        free(texts[i]);
}

Test(messages, texts_that_anything_would_fit_are_refused)
{
    static const char *const bad[] = {
        "%s: %s",      "a %d",       "%x of the whole ring", "100% of all rings",
        "%swaiting%s", "12345678 %d"};
    struct shk_error err = {""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct shk_messages *table = shk_messages_create();
        bool fault = shk_messages_fault(bad[i], strlen(bad[i])) != NULL;
        int rc = shk_messages_add(table, bad[i], 0, &err);
        cr_expect_eq(rc, fault ? -EINVAL : 0, "%s", bad[i]);
        cr_expect(fault || i == 5, "%s was taken", bad[i]);
        shk_messages_destroy(table);
    }
    cr_expect_null(
        shk_messages_loose("Failed to open the file of %s\nCannot reach rank %d of job\n"));
    cr_expect_not_null(shk_messages_loose("Failed to open the file of %s\nrank %d waits\n"));
}

Test(messages, as_a_regular_expression)
{
    char *regex = shk_messages_regex("100%% of [%s] by %d %s", strlen("100%% of [%s] by %d %s"));
    cr_expect_str_eq(regex, "100\\% of \\[.*\\] by [-+]?(0x[0-9a-fA-F]+|[0-9]+) ");
    free(regex);
}
