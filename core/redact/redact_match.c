#include "core/redact/redact_private.h"

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

/* The last word of a name, words being parted by '_', '-' and '.', without a number behind it. A
 * name of that word alone counts unless `part_only`: key=value is an example. `end`: also the end
 * of a word (rootpw, dbPass), and before ": ", where `alone` it is a word of a sentence. */
static const struct {
    const char *word;
    bool part_only, end;
    const char *why;
} redact_words[] = {
    {"PW", false, true, "its name ends in PW"},
    {"PASS", false, true, "its name ends in PASS"},
    {"PWD", false, true, "its name ends in PWD"},
    {"PASSWRD", false, true, "its name ends in PASSWRD"},
    {"PSWD", false, true, "its name ends in PSWD"},
    {"PSK", false, false, "its name ends in PSK"},
    {"AUTH", true, false, "its name ends in AUTH"},
    {"JWT", false, false, "its name ends in JWT"},
    {"BEARER", true, false, "its name ends in BEARER"},
    {"KEY", true, false, "its name ends in KEY"},
    {"SIGNATURE", true, false, "its name ends in SIGNATURE"},
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

static bool redact_ends_in(const char *word, size_t len, const char *end)
{
    size_t n = strlen(end);
    return len > n && strncasecmp(word + len - n, end, n) == 0;
}

/* Words that end as PASS and PWD do. */
static bool redact_is_other_word(const char *word, size_t len)
{
    static const char *const words[] = {
        "bypass",  "compass", "trespass", "surpass",  "overpass",  "onepass",   "twopass",
        "lowpass", "allpass", "highpass", "bandpass", "multipass", "firstpass", "oldpwd",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (redact_ends_in(word, len, words[i]))
            return true;
    return redact_is_one_of(word, len, words, sizeof words / sizeof *words);
}

/* DB_PASS2, DB_PASS_2: the name without the number. */
static size_t redact_without_number(const char *name, size_t len)
{
    size_t n = len;
    while (n && isdigit((unsigned char)name[n - 1]))
        n--;
    while (n < len && n && redact_parts_words(name[n - 1]))
        n--;
    return n;
}

/* presharedKey and the like, with a value that is long enough for one. */
static bool redact_is_camel_key(const char *word, size_t len, size_t value_len)
{
    return len > 3 && strncmp(word + len - 3, "Key", 3) == 0 &&
           islower((unsigned char)word[len - 4]) && value_len >= 16;
}

/* "auth": "dXNlcjpwYXNz", as container registries have it: base64 of user:password. */
static bool redact_is_basic(const char *value, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0;
    bool colon = false;
    if (len < 8)
        return false;
    for (size_t i = 0; i < len && value[i] != '='; i++) {
        const char *digit = memchr(digits, value[i], sizeof digits - 1);
        if (!digit)
            return false;
        bits = bits << 6 | (unsigned)(digit - digits);
        if (i % 4 == 0)
            continue;
        unsigned c = bits >> (6 - i % 4 * 2) & 0xff;
        if (c < ' ' || c > '~')
            return false;
        colon |= c == ':';
    }
    return colon;
}

static const char *redact_by_word(const char *name, size_t len, const char *value, size_t value_len,
                                  bool loose)
{
    size_t n;
    len = redact_without_number(name, len);
    const char *word = redact_last_word(name, len, &n);
    bool first = word == name || strspn(name, "-") == (size_t)(word - name);
    for (size_t i = 0; i < sizeof redact_words / sizeof *redact_words; i++) {
        bool whole =
            strlen(redact_words[i].word) == n && strncasecmp(word, redact_words[i].word, n) == 0;
        bool key = strcasecmp(redact_words[i].word, "KEY") == 0;
        bool end = redact_words[i].end ? redact_ends_in(word, n, redact_words[i].word) &&
                                             !redact_is_other_word(word, n)
                                       : key && redact_is_camel_key(word, n, value_len);
        bool alone = whole && first;
        if (!whole && !end)
            continue;
        bool path = strcasecmp(redact_words[i].word, "PWD") == 0 && strchr("/~.", *value);
        bool basic = alone && strcasecmp(redact_words[i].word, "AUTH") == 0 &&
                     redact_is_basic(value, value_len);
        if ((alone && (redact_words[i].part_only || loose) && !basic) || path ||
            (loose && !redact_words[i].end) || redact_how_allows(REDACT_WORD, value, value_len) ||
            redact_is_number(value, value_len, key ? 12 : 3))
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
    return why ? why : redact_by_word(name, len, value, value_len, loose);
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
    {"ABIA", "", 16},
    {"ACCA", "", 16},
    {"A3T", "", 17},
    {"LTAI", "", 16},
    {"GOCSPX-", "_-", 24},
    {"dapi", "", 32},
    {"DHHC-1:", ":+/=", 20},
    {"NVMeTLSkey-1:", ":+/=", 20},
    {"ATATT3", "_-=", 40},
    {"wandb_v", "_", 30},
    {"xai-", "", 60},
    {"r8_", "", 30},
    {"glsa_", "_", 32},
    {"glc_", "+/=", 32},
    {"ghp_", "", 20},
    {"gho_", "", 20},
    {"ghu_", "", 20},
    {"ghs_", "", 20},
    {"ghr_", "", 20},
    {"github_pat_", "_", 20},
    {"glpat-", "_-", 16},
    {"gldt-", "_-", 16},
    {"glrt-", "_-", 16},
    {"glcbt-", "_-", 16},
    {"glptt-", "_-", 16},
    {"glft-", "_-", 16},
    {"glsoat-", "_-", 16},
    {"glagent-", "_-", 16},
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
    {"doo_v1_", "", 30},
    {"dor_v1_", "", 30},
    {"hvs.", "_-", 20},
    {"hvb.", "_-", 20},
    {"dckr_pat_", "_-", 20},
    {"dckr_oat_", "_-", 20},
    {"tskey-", "-", 16},
    {"gsk_", "", 30},
    {"sk_live_", "", 16},
    {"rk_live_", "", 16},
    {"sk_test_", "", 16},
    {"rk_test_", "", 16},
    {"shpat_", "", 32},
    {"SG.", "_-.", 40},
    {"AGE-SECRET-KEY-1", "", 40},
    {"hooks.slack.com/services/", "/", 20},
    {"discord.com/api/webhooks/", "/_-", 30},
    {"webhook.office.com/webhookb2/", "/@-", 40},
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

/* What Entra ID gives an application: three characters, a digit, "Q~", and the rest. */
static size_t redact_azure(const char *s)
{
    if (!s[1] || !s[2] || !isdigit((unsigned char)s[3]) || s[4] != 'Q' || s[5] != '~')
        return 0;
    size_t n = redact_span(s + 6, "_~.-");
    return n >= 31 ? 6 + n : 0;
}

/* The first two characters of all forms, sk- and eyJ: most words begin with others. */
static bool redact_begins_form(const char *s)
{
    switch (*s) {
    case 'A': return s[1] && strchr("KSIGBC3T", s[1]) != NULL;
    case 'D': return s[1] == 'H';
    case 'G': return s[1] == 'O';
    case 'L': return s[1] == 'T';
    case 'N': return s[1] == 'V';
    case 'S': return s[1] == 'G';
    case 'a': return s[1] == 'p';
    case 'd': return s[1] && strchr("aoci", s[1]) != NULL;
    case 'e': return s[1] == 'y';
    case 'g': return s[1] && strchr("hils", s[1]) != NULL;
    case 'h': return s[1] && strchr("fvo", s[1]) != NULL;
    case 'n': return s[1] == 'p' || s[1] == 'v';
    case 'p': return s[1] == 'y';
    case 'r': return s[1] == 'k' || s[1] == '8';
    case 's': return s[1] == 'k' || s[1] == 'h';
    case 't': return s[1] == 's';
    case 'w': return s[1] == 'a' || s[1] == 'e';
    case 'x': return s[1] == 'o' || s[1] == 'a';
    case 'y': return s[1] == 'a';
    default: return false;
    }
}

size_t shk_redact_token(const char *s)
{
    if (*s == '-')
        return redact_private_key(s);
    size_t azure = redact_azure(s);
    if (azure || !redact_begins_form(s))
        return azure;
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
