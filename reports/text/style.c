#include "reports/text/style.h"

/* ISO 6429 SGR parameters out of the eight basic colours, which every terminal theme keeps legible.
 */
static const char *const style_sgr[SHK_ROLE_COUNT] = {
    [SHK_ROLE_PLAIN] = "",          [SHK_ROLE_TITLE] = "\x1b[1m",    [SHK_ROLE_DIM] = "\x1b[2m",
    [SHK_ROLE_FIX] = "\x1b[36m",    [SHK_ROLE_PASS] = "\x1b[32m",    [SHK_ROLE_WARN] = "\x1b[33m",
    [SHK_ROLE_FAIL] = "\x1b[1;31m", [SHK_ROLE_UNKNOWN] = "\x1b[35m", [SHK_ROLE_NA] = "\x1b[2m",
    [SHK_ROLE_NOTE] = "",
};

static const struct {
    const char *unicode, *ascii;
} style_signs[SHK_SIGN_COUNT] = {
    [SHK_SIGN_PASS] = {"\xE2\x9C\x93", "+"},  [SHK_SIGN_WARN] = {"!", "!"},
    [SHK_SIGN_FAIL] = {"\xE2\x9C\x97", "x"},  [SHK_SIGN_UNKNOWN] = {"?", "?"},
    [SHK_SIGN_NA] = {"\xC2\xB7", "."},        [SHK_SIGN_NOTE] = {"i", "i"},
    [SHK_SIGN_ARROW] = {"\xE2\x86\x92", ">"}, [SHK_SIGN_DOT] = {"\xC2\xB7", "-"},
};

static const struct {
    const char *word;
    enum shk_role role;
    enum shk_sign sign;
} style_verdicts[SHK_VERDICT_COUNT] = {
    [SHK_PASS] = {"pass", SHK_ROLE_PASS, SHK_SIGN_PASS},
    [SHK_NOTE] = {"note", SHK_ROLE_NOTE, SHK_SIGN_NOTE},
    [SHK_WARN] = {"WARN", SHK_ROLE_WARN, SHK_SIGN_WARN},
    [SHK_FAIL] = {"FAIL", SHK_ROLE_FAIL, SHK_SIGN_FAIL},
    [SHK_UNKNOWN] = {"unknown", SHK_ROLE_UNKNOWN, SHK_SIGN_UNKNOWN},
    [SHK_NA] = {"n/a", SHK_ROLE_NA, SHK_SIGN_NA},
};

const char *shk_style_on(struct shk_style style, enum shk_role role)
{
    return style.color ? style_sgr[role] : "";
}

const char *shk_style_off(struct shk_style style, enum shk_role role)
{
    return style.color && *style_sgr[role] ? "\x1b[0m" : "";
}

const char *shk_style_sign(struct shk_style style, enum shk_sign sign)
{
    return style.unicode ? style_signs[sign].unicode : style_signs[sign].ascii;
}

enum shk_role shk_style_role(enum shk_verdict verdict)
{
    return style_verdicts[verdict].role;
}

enum shk_sign shk_style_verdict_sign(enum shk_verdict verdict)
{
    return style_verdicts[verdict].sign;
}

const char *shk_style_verdict_word(enum shk_verdict verdict)
{
    return style_verdicts[verdict].word;
}
