#include "ticket_support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const struct shk_name_rule rules[] = {
    {.name = "NCCL_", .family = "nccl", .prefix = true},
    {.name = "FI_", .family = "libfabric", .prefix = true},
};

struct shk_ticket *ticket_of(const char *text, struct shk_name_set **names_p)
{
    *names_p = shk_name_set_create();
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        cr_assert_eq(shk_name_set_add(*names_p, &rules[i]), 0);
    struct shk_ticket *ticket = shk_ticket_create(*names_p);
    cr_assert_not_null(ticket);
    cr_assert_eq(shk_ticket_add(ticket, "t.md", text, strlen(text)), 0);
    cr_assert_eq(shk_ticket_read(ticket), 0);
    return ticket;
}

const struct shk_facts *ticket_facts_of(const struct shk_ticket *ticket, const char *name)
{
    for (size_t i = 0; i < shk_ticket_nodes(ticket); i++) {
        struct shk_ticket_node node = shk_ticket_node(ticket, i);
        if (strcmp(node.name, name) == 0)
            return node.facts;
    }
    return NULL;
}

void ticket_expect(const struct shk_facts *facts, const char *want, const char *where)
{
    struct shk_fact fact = {0};
    char key[128];
    const char *eq = strchr(want, '=');
    bool sign = *want == '!' || *want == '~';
    snprintf(key, sizeof key, "%.*s",
             (int)(sign || !eq ? strlen(want) - sign : (size_t)(eq - want)), want + sign);
    bool known = facts && shk_facts_get(facts, key, &fact);
    if (*want == '!') {
        cr_expect(!known, "%s: %s is known", where, key);
        return;
    }
    cr_expect(known, "%s: %s is not known", where, key);
    if (!known || *want == '~') {
        cr_expect(!known || fact.state == SHK_FACT_ABSENT, "%s: %s is not absent", where, key);
        return;
    }
    char *got = json_dumps(fact.value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    cr_expect_str_eq(got ? got : "", eq + 1, "%s: %s is %s, not %s", where, key, got, eq + 1);
    free(got);
}

void ticket_try(const struct sample *s, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct shk_name_set *names;
        struct shk_ticket *ticket = ticket_of(s[i].text, &names);
        const struct shk_facts *facts = ticket_facts_of(ticket, s[i].node ? s[i].node : "");
        for (size_t w = 0; w < 8 && s[i].want[w]; w++)
            ticket_expect(facts, s[i].want[w], s[i].what);
        shk_ticket_destroy(ticket);
        shk_name_set_destroy(names);
    }
}
