/* Numbers of errors: all of NVIDIA's catalogue of Xid (1 to 172) and of the lists of SXid, each
 * once, each with what is to be done and who says so. */
#include "config/codes.h"
#include "support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct shk_config *config;

static void begin(void)
{
    struct shk_error err = {""};
    cr_assert_eq(shk_config_load(&config, NULL, NULL, &err), 0, "%s", err.text);
}

static void end(void)
{
    shk_config_free(config);
}

TestSuite(codes, .init = begin, .fini = end);

static size_t rows_of(enum shk_code_kind kind, const char *number)
{
    size_t count, found = 0;
    const struct shk_code *codes = shk_config_codes(config, &count);
    for (size_t i = 0; i < count; i++)
        for (const char *const *n = codes[i].numbers; codes[i].kind == kind && *n; n++)
            found += strcmp(*n, number) == 0;
    return found;
}

Test(codes, every_xid_once)
{
    for (int i = 1; i <= 172; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        cr_expect_eq(rows_of(SHK_CODE_XID, number), 1, "Xid %d", i);
    }
    cr_expect_eq(rows_of(SHK_CODE_XID, "0"), 0);
}

Test(codes, actions)
{
    static const struct {
        const char *counter;
        enum shk_code_action action;
    } known[] = {
        {"Xid 13", SHK_ACTION_APP},       {"Xid 31", SHK_ACTION_APP},
        {"Xid 43", SHK_ACTION_NONE},      {"Xid 48", SHK_ACTION_OTHER},
        {"Xid 54", SHK_ACTION_INSPECT},   {"Xid 63", SHK_ACTION_NONE},
        {"Xid 64", SHK_ACTION_RESET},     {"Xid 79", SHK_ACTION_RESTART_NODE},
        {"Xid 94", SHK_ACTION_APP},       {"Xid 95", SHK_ACTION_RESET},
        {"Xid 119", SHK_ACTION_RESET},    {"Xid 151", SHK_ACTION_RESTART_VM},
        {"Xid 154", SHK_ACTION_OTHER},    {"SXid 11012", SHK_ACTION_NONE},
        {"SXid 24007", SHK_ACTION_RESET}, {"SXid 22003", SHK_ACTION_RESTART_NODE},
        {"SXid 20001", SHK_ACTION_NONE},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct shk_code *code = shk_config_code(config, known[i].counter);
        cr_assert_not_null(code, "%s", known[i].counter);
        cr_expect_eq(code->action, known[i].action, "%s: %s", known[i].counter,
                     shk_code_action_text(code->action));
        cr_expect(strstr(code->source, "NVIDIA"), "%s", known[i].counter);
    }
    cr_expect_null(shk_config_code(config, "Xid 999"));
    cr_expect_null(shk_config_code(config, "link down"));
}
