#include "core/text/redact_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* As far as one key is looked at to see what it is. */
enum { REDACT_LOOK = 256 };

enum redact_how {
    REDACT_ANY,    /* whatever the value is, in sentences as well */
    REDACT_COUNTS, /* numbers are sizes and limits, short words are states */
    REDACT_WORD,   /* numbers of a few digits, switches and kinds of a method are none */
};

/* Parts that make a name secret wherever they stand in it. */
static const struct {
    const char *part;
    enum redact_how how;
    const char *why;
} redact_parts[] = {
    {"TOKENIZ", REDACT_COUNTS, NULL}, /* TOKENIZERS_PARALLELISM */
    {"TOKENS", REDACT_COUNTS, "its name contains TOKENS"},
    {"TOKEN", REDACT_ANY, "its name contains TOKEN"},
    {"SECRET", REDACT_ANY, "its name contains SECRET"},
    {"PASSWORD", REDACT_ANY, "its name contains PASSWORD"},
    {"PASSWD", REDACT_ANY, "its name contains PASSWD"},
    {"PASSPHRASE", REDACT_ANY, "its name contains PASSPHRASE"},
    {"PASSCODE", REDACT_ANY, "its name contains PASSCODE"},
    {"SSHPASS", REDACT_ANY, "its name contains SSHPASS"},
    {"CREDENTIAL", REDACT_ANY, "its name contains CREDENTIAL"},
    {"AUTHORIZATION", REDACT_ANY, "its name contains AUTHORIZATION"},
    {"COOKIE", REDACT_ANY, "its name contains COOKIE"},
    {"API_KEY", REDACT_ANY, "its name contains API_KEY"},
    {"API-KEY", REDACT_ANY, "its name contains API-KEY"},
    {"APIKEY", REDACT_ANY, "its name contains APIKEY"},
    {"ACCESS_KEY", REDACT_ANY, "its name contains ACCESS_KEY"},
    {"ACCESS-KEY", REDACT_ANY, "its name contains ACCESS-KEY"},
    {"ACCESSKEY", REDACT_ANY, "its name contains ACCESSKEY"},
    {"ACCOUNTKEY", REDACT_ANY, "its name contains ACCOUNTKEY"},
    {"PRIVATE_KEY", REDACT_ANY, "its name contains PRIVATE_KEY"},
    {"PRIVATE-KEY", REDACT_ANY, "its name contains PRIVATE-KEY"},
    {"PRIVATEKEY", REDACT_ANY, "its name contains PRIVATEKEY"},
    {"_JWT", REDACT_ANY, "its name contains JWT"},
};

/* The last word of a name, words being parted by '_', '-' and '.'. A name of that word alone
 * counts unless `part_only`: key=value is an example. PWD is a folder when it looks like one. */
static const struct {
    const char *word;
    bool part_only;
    const char *why;
} redact_words[] = {
    {"PW", false, "its name ends in PW"},     {"PASS", false, "its name ends in PASS"},
    {"PWD", false, "its name ends in PWD"},   {"PASSWRD", false, "its name ends in PASSWRD"},
    {"PSWD", false, "its name ends in PSWD"}, {"AUTH", true, "its name ends in AUTH"},
    {"JWT", false, "its name ends in JWT"},   {"BEARER", true, "its name ends in BEARER"},
    {"KEY", true, "its name ends in KEY"},    {"SIGNATURE", true, "its name ends in SIGNATURE"},
};

static bool redact_is_number(const char *value, size_t len, size_t most)
{
    char text[16], *end;
    if (!len || len > most || len >= sizeof text)
        return false;
    memcpy(text, value, len);
    text[len] = '\0';
    strtoull(text, &end, 0);
    return end != text && !*end;
}

static bool redact_is_one_of(const char *value, size_t len, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == len && strncasecmp(value, words[i], len) == 0)
            return true;
    return false;
}

/* Switches, and the methods that stand behind AUTH. */
static bool redact_is_plain(const char *value, size_t len)
{
    static const char *const words[] = {
        "true", "false", "yes",      "no",    "on",   "off",     "none", "auto",  "default",
        "y",    "n",     "m",        "munge", "pam",  "ldap",    "krb5", "basic", "digest",
        "ntlm", "sasl",  "kerberos", "psk",   "null", "default", "ok",   "ssl",   "tls",
    };
    return redact_is_one_of(value, len, words, sizeof words / sizeof *words);
}

static bool redact_has_letter(const char *value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (isalpha((unsigned char)value[i]))
            return true;
    return false;
}

static bool redact_parts_words(char c)
{
    return c == '_' || c == '-' || c == '.';
}

static const char *redact_last_word(const char *name, size_t len, size_t *word_p)
{
    size_t at = len;
    while (at && !redact_parts_words(name[at - 1]))
        at--;
    *word_p = len - at;
    return name + at;
}

/* NAME_FILE=/etc/x names where the secret is. */
static bool redact_is_place(const char *name, size_t len, const char *value)
{
    static const char *const words[] = {"FILE", "PATH", "DIR", "SOCK", "SOCKET", "CACHE"};
    size_t n;
    const char *word = redact_last_word(name, len, &n);
    return strchr("/~.", *value) && *value &&
           redact_is_one_of(word, n, words, sizeof words / sizeof *words);
}

static bool redact_how_allows(enum redact_how how, const char *value, size_t len)
{
    switch (how) {
    case REDACT_ANY: return false;
    case REDACT_COUNTS: return len < 8 || !redact_has_letter(value, len);
    case REDACT_WORD: return redact_is_plain(value, len) || redact_is_number(value, len, 3);
    }
    return false;
}

/* What the parts begin with. */
static bool redact_begins_part(char c)
{
    switch (c) {
    case '_':
    case 'a':
    case 'A':
    case 'c':
    case 'C':
    case 'p':
    case 'P':
    case 's':
    case 'S':
    case 't':
    case 'T': return true;
    default: return false;
    }
}

static const char *redact_by_part(const char *name, size_t len, const char *value, size_t value_len)
{
    for (size_t at = 0; at < len; at++) {
        if (!redact_begins_part(name[at]))
            continue;
        for (size_t i = 0; i < sizeof redact_parts / sizeof *redact_parts; i++) {
            if ((*redact_parts[i].part ^ name[at]) & ~('a' ^ 'A'))
                continue;
            size_t n = strlen(redact_parts[i].part);
            if (n > len - at || strncasecmp(name + at, redact_parts[i].part, n) != 0)
                continue;
            if (redact_parts[i].why && !redact_how_allows(redact_parts[i].how, value, value_len))
                return redact_parts[i].why;
            at += n - 1;
            break;
        }
    }
    return NULL;
}

static const char *redact_by_word(const char *name, size_t len, const char *value, size_t value_len)
{
    size_t n;
    const char *word = redact_last_word(name, len, &n);
    for (size_t i = 0; i < sizeof redact_words / sizeof *redact_words; i++) {
        if (strlen(redact_words[i].word) != n || strncasecmp(word, redact_words[i].word, n) != 0)
            continue;
        bool alone = word == name || strspn(name, "-") == (size_t)(word - name);
        bool path = strcasecmp(redact_words[i].word, "PWD") == 0 && strchr("/~.", *value);
        if ((alone && redact_words[i].part_only) || path ||
            redact_how_allows(REDACT_WORD, value, value_len) ||
            redact_is_number(value, value_len, strncasecmp(word, "KEY", n) == 0 ? 12 : 3))
            return NULL;
        return redact_words[i].why;
    }
    return NULL;
}

/* A reference to a secret, a placeholder, or what this gate has put there. */
static bool redact_stands_for(const char *value)
{
    bool variable = *value == '$' && (value[1] == '{' || value[1] == '(' ||
                                      isupper((unsigned char)value[1]) || value[1] == '_');
    return variable || *value == '<' || strncmp(value, "**", 2) == 0 ||
           strncmp(value, "%s", 2) == 0 ||
           strncmp(value, SHK_REDACTED, sizeof SHK_REDACTED - 1) == 0;
}

const char *shk_redact_name(const char *name, size_t len, const char *value, size_t value_len,
                            bool loose)
{
    if (!value_len || redact_stands_for(value) || redact_is_place(name, len, value))
        return NULL;
    const char *why = redact_by_part(name, len, value, value_len);
    return why || loose ? why : redact_by_word(name, len, value, value_len);
}

static bool redact_is_alnum(char c)
{
    return isalnum((unsigned char)c);
}

static size_t redact_span(const char *s, const char *also)
{
    size_t n = 0;
    while (redact_is_alnum(s[n]) || (s[n] && strchr(also, s[n])))
        n++;
    return n;
}

/* Prefixes that services put on their keys, the characters besides letters and digits that follow,
 * and how many there are at least. From the services' documentation and gitleaks' rules. */
static const struct {
    const char *prefix, *also;
    size_t least;
} redact_forms[] = {
    {"AKIA", "", 16},
    {"ASIA", "", 16},
    {"ghp_", "", 20},
    {"gho_", "", 20},
    {"ghu_", "", 20},
    {"ghs_", "", 20},
    {"ghr_", "", 20},
    {"github_pat_", "_", 20},
    {"glpat-", "_-", 16},
    {"gldt-", "_-", 16},
    {"hf_", "", 20},
    {"api_org_", "", 20},
    {"xoxb-", "-", 10},
    {"xoxp-", "-", 10},
    {"xoxa-", "-", 10},
    {"xoxs-", "-", 10},
    {"xoxr-", "-", 10},
    {"xapp-", "-", 10},
    {"AIza", "_-", 30},
    {"ya29.", "_-", 20},
    {"npm_", "", 30},
    {"pypi-", "_-", 30},
    {"nvapi-", "_-", 20},
    {"dop_v1_", "", 30},
    {"hvs.", "_-", 20},
    {"hvb.", "_-", 20},
    {"dckr_pat_", "_-", 20},
    {"tskey-", "-", 16},
    {"gsk_", "", 30},
    {"sk_live_", "", 16},
    {"rk_live_", "", 16},
    {"SG.", "_-.", 40},
    {"AGE-SECRET-KEY-1", "", 40},
    {"hooks.slack.com/services/", "/", 20},
};

/* sk-…, sk-ant-…, sk-proj-…: also how names of jobs may begin, so one part must be long and mixed.
 */
static size_t redact_openai(const char *s)
{
    size_t run = 0;
    bool mixed = false;
    if (strncmp(s, "sk-", 3) != 0)
        return 0;
    for (size_t i = 3; i < REDACT_LOOK; i++) {
        if (redact_is_alnum(s[i])) {
            run++;
            mixed |= !islower((unsigned char)s[i]);
            continue;
        }
        if (run >= 16 && (mixed || run >= 20))
            return 3 + redact_span(s + 3, "_-");
        if (s[i] != '-' && s[i] != '_')
            return 0;
        run = 0;
        mixed = false;
    }
    return 0;
}

static size_t redact_private_key(const char *s)
{
    static const char begin[] = "-----BEGIN ", end[] = "-----END ";
    if (strncmp(s, begin, sizeof begin - 1) != 0)
        return 0;
    const char *name = s + sizeof begin - 1, *line = memmem(name, strnlen(name, 64), "-----", 5);
    if (!line || !memmem(s, (size_t)(line - s), "PRIVATE KEY", 11))
        return 0;
    const char *stop = strstr(line, end);
    const char *rest = stop ? strstr(stop + sizeof end - 1, "-----") : NULL;
    return rest ? (size_t)(rest - s) + 5 : strlen(s);
}

/* header.payload.signature, base64url; the header starts with {" */
static size_t redact_jwt(const char *s)
{
    if (strncmp(s, "eyJ", 3) != 0)
        return 0;
    size_t at = 0;
    for (int part = 0; part < 3; part++) {
        size_t n = redact_span(s + at, "_-");
        if (part == 0 && n >= 33 && s[n] != '.')
            return n; /* cut, or one part of it */
        if (n < 8 || (part < 2 && s[at + n] != '.'))
            return 0;
        at += n + (part < 2);
    }
    return at;
}

/* The first two characters of all forms, sk- and eyJ: most words begin with others. */
static bool redact_begins_form(const char *s)
{
    switch (*s) {
    case 'A': return strchr("KSIG", s[1]) != NULL;
    case 'S': return s[1] == 'G';
    case 'a': return s[1] == 'p';
    case 'd': return s[1] == 'o' || s[1] == 'c';
    case 'e': return s[1] == 'y';
    case 'g': return strchr("hils", s[1]) != NULL;
    case 'h': return strchr("fvo", s[1]) != NULL;
    case 'n': return s[1] == 'p' || s[1] == 'v';
    case 'p': return s[1] == 'y';
    case 'r':
    case 's': return s[1] == 'k';
    case 't': return s[1] == 's';
    case 'x': return s[1] == 'o' || s[1] == 'a';
    case 'y': return s[1] == 'a';
    default: return false;
    }
}

size_t shk_redact_token(const char *s)
{
    if (*s == '-')
        return redact_private_key(s);
    if (!redact_begins_form(s))
        return 0;
    for (size_t i = 0; i < sizeof redact_forms / sizeof *redact_forms; i++) {
        if (redact_forms[i].prefix[0] != *s)
            continue;
        size_t n = strlen(redact_forms[i].prefix);
        if (strncmp(s, redact_forms[i].prefix, n) != 0)
            continue;
        size_t more = redact_span(s + n, redact_forms[i].also);
        if (more >= redact_forms[i].least)
            return n + more;
    }
    size_t n = redact_openai(s);
    return n ? n : redact_jwt(s);
}

static bool redact_is_uuid(const char *p, size_t len)
{
    static const size_t groups[] = {8, 4, 4, 4, 12};
    /* GPU-…, MIG-… */
    if (len > 36 && len <= 40 && p[len - 37] == '-') {
        p += len - 36;
        len = 36;
    }
    if (len != 36)
        return false;
    for (size_t g = 0; g < 5; g++) {
        for (size_t i = 0; i < groups[g]; i++)
            if (!isxdigit((unsigned char)*p++))
                return false;
        if (g < 4 && *p++ != '-')
            return false;
    }
    return true;
}

struct redact_classes {
    size_t upper, lower, digit, hex, other, distinct;
};

static struct redact_classes redact_count(const char *p, size_t len)
{
    struct redact_classes n = {0};
    bool seen[256] = {false};
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];
        n.upper += isupper(c) != 0;
        n.lower += islower(c) != 0;
        n.digit += isdigit(c) != 0;
        n.hex += isxdigit(c) != 0;
        n.other += !isalnum(c);
        n.distinct += !seen[c];
        seen[c] = true;
    }
    return n;
}

/* 32 characters or more, capital and small letters and digits, few repetitions; or a long
 * hexadecimal number. Host lists and hashed directory names lack the capitals. */
bool shk_redact_random(const char *s, size_t len)
{
    if (len < 32 || redact_is_uuid(s, len))
        return false;
    struct redact_classes n = redact_count(s, len);
    if (n.hex == len && n.digit > 4 && n.upper + n.lower > 4)
        return true;
    return n.upper > 2 && n.lower > 2 && n.digit > 2 && n.other <= len / 8 && n.distinct >= 16;
}
