#include "core/text/strbuf.h"
#include "unquote.h"

#include <criterion/criterion.h>
#include <stdlib.h>

Test(quote, words)
{
    static const struct {
        enum shk_quote target;
        const char *text, *want; /* NULL: cannot be */
    } rows[] = {
        {SHK_QUOTE_SH, "hsn0,hsn1", "hsn0,hsn1"},
        {SHK_QUOTE_SH, "", "''"},
        {SHK_QUOTE_SH, "$(touch x)", "'$(touch x)'"},
        {SHK_QUOTE_SH, "^lo", "'^lo'"},
        {SHK_QUOTE_SH, "~root", "'~root'"},
        {SHK_QUOTE_SH, "a'b", "'a'\\''b'"},
        {SHK_QUOTE_SH, "a\nb", NULL},
        {SHK_QUOTE_SH, "a\x1b[2J", NULL},
        {SHK_QUOTE_SH, "a\xFF", NULL},
        {SHK_QUOTE_SH,
         "a\xE2\x80\xAE"
         "b",
         NULL},
        {SHK_QUOTE_SH, "gr\xC3\xBC\xC3\x9F", "'gr\xC3\xBC\xC3\x9F'"},
        {SHK_QUOTE_CSH, "a!b", "'a\\!b'"},
        {SHK_QUOTE_CSH, "a\nb", NULL},
        {SHK_QUOTE_LUA, "a\"b\\", "\"a\\\"b\\\\\""},
        {SHK_QUOTE_LUA, "]]..os.exit()", "\"]]..os.exit()\""},
        {SHK_QUOTE_SCONTROL, "GPU 3: Xid 79", "'GPU 3: Xid 79'"},
        {SHK_QUOTE_SCONTROL, "a\"b", NULL},
        {SHK_QUOTE_SCONTROL, "a'b", NULL},
        {SHK_QUOTE_JSON, "a\nb", "\"a\\u000ab\""},
        {SHK_QUOTE_YAML, "no: {x}", "\"no: {x}\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *word = shk_quote(rows[i].target, rows[i].text);
        cr_expect_str_eq(word ? word : "(none)", rows[i].want ? rows[i].want : "(none)", "%zu", i);
        free(word);
    }
}

Test(quote, what_expands)
{
    static const struct {
        enum shk_quote target;
        const char *text, *want;
    } rows[] = {
        {SHK_QUOTE_SH, "/tmp/$USER/x", "\"/tmp/${USER}/x\""},
        {SHK_QUOTE_SH, "/tmp/${USER}x", "\"/tmp/${USER}x\""},
        {SHK_QUOTE_SH, "$(id) `id` \"$USER", "\"\\$(id) \\`id\\` \\\"${USER}\""},
        {SHK_QUOTE_SH, "plain", "plain"},
        {SHK_QUOTE_SH, "a$", "\"a\\$\""},
        {SHK_QUOTE_CSH, "/tmp/$USER:h`id`", "'/tmp/'\"$USER\"':h`id`'"},
        {SHK_QUOTE_LUA, "/tmp/$USER\"", "\"/tmp/\" .. (os.getenv(\"USER\") or \"\") .. \"\\\"\""},
        {SHK_QUOTE_SH, "$USER\n", NULL},
        {SHK_QUOTE_JSON, "$USER", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *word = shk_quote_expanding(rows[i].target, rows[i].text);
        cr_expect_str_eq(word ? word : "(none)", rows[i].want ? rows[i].want : "(none)", "%zu", i);
        free(word);
    }
}

/* Every byte, alone and between others, comes back through the model or is refused. */
Test(quote, every_byte_comes_back)
{
    for (int target = 0; target < SHK_QUOTE_COUNT; target++) {
        for (int c = 1; c < 256; c++) {
            char text[] = {'a', (char)c, '\'', (char)c, 0}, back[256];
            if (target == SHK_QUOTE_SCONTROL)
                text[2] = 'b';
            char *word = shk_quote((enum shk_quote)target, text);
            bool plain =
                c >= 0x20 && c < 0x7F && !(target == SHK_QUOTE_SCONTROL && strchr("\"'\\", c));
            cr_expect(word || !plain, "target %d lacks %02x", target, c);
            cr_expect(!word ||
                          (unquote((enum shk_quote)target, word, back) && strcmp(back, text) == 0),
                      "target %d, byte %02x: %s", target, c, word);
            free(word);
        }
    }
}

Test(quote, names)
{
    cr_expect(shk_quote_is_name("NCCL_NET") && shk_quote_is_name("_x1"));
    cr_expect_not(shk_quote_is_name("") || shk_quote_is_name("1x") || shk_quote_is_name("a b") ||
                  shk_quote_is_name("$(x)") || shk_quote_is_name("a=b"));
}
