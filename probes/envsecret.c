#include "probes/envnames.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *word;
    bool number_is_fine; /* keys are also sizes and indices: NCCL_IB_PKEY, OFI_NCCL_MR_KEY_SIZE;
                            tokens are counted */
    const char *why;
} secret_words[] = {
    {"TOKENS", true, "its name contains TOKENS"},
    {"TOKEN", false, "its name contains TOKEN"},
    {"SECRET", false, "its name contains SECRET"},
    {"PASSWORD", false, "its name contains PASSWORD"},
    {"PASSWD", false, "its name contains PASSWD"},
    {"PASSPHRASE", false, "its name contains PASSPHRASE"},
    {"CREDENTIAL", false, "its name contains CREDENTIAL"},
    {"_JWT", false, "its name contains JWT"},
    {"COOKIE", false, "its name contains COOKIE"},
    {"KEY", true, "its name contains KEY"},
};

/* Prefixes that services put on their tokens, and what must follow at least. */
static const struct {
    const char *prefix;
    size_t more;
} secret_prefixes[] = {
    {"AKIA", 16},  {"ASIA", 16},        {"ghp_", 20},    {"gho_", 20}, {"ghu_", 20}, {"ghs_", 20},
    {"ghr_", 20},  {"github_pat_", 20}, {"glpat-", 16},  {"hf_", 20},  {"sk-", 20},  {"xoxb-", 10},
    {"xoxp-", 10}, {"xoxa-", 10},       {"xoxs-", 10},   {"AIza", 30}, {"npm_", 30}, {"pypi-", 30},
    {"eyJ", 30},   {"nvapi-", 20},      {"dop_v1_", 30},
};

static bool secret_is_number(const char *value)
{
    static const char *const words[] = {"", "true", "false", "yes", "no", "on", "off"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(value, words[i]) == 0)
            return true;
    char *end;
    strtoull(value, &end, 0);
    return end != value && !*end && strlen(value) <= 12;
}

static bool secret_by_name(const char *name, const char *value, const char **why_p)
{
    for (size_t i = 0; i < sizeof secret_words / sizeof *secret_words; i++) {
        if (!strcasestr(name, secret_words[i].word))
            continue;
        if (!*value || (secret_words[i].number_is_fine && secret_is_number(value)))
            return false;
        *why_p = secret_words[i].why;
        return true;
    }
    return false;
}

static bool secret_token_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_-+=./", c));
}

static bool secret_is_uuid(const char *p, size_t len)
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

static size_t secret_distinct(const char *p, size_t len)
{
    bool seen[256] = {false};
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        n += !seen[(unsigned char)p[i]];
        seen[(unsigned char)p[i]] = true;
    }
    return n;
}

struct secret_classes {
    size_t upper, lower, digit, hex, other;
};

static struct secret_classes secret_count(const char *p, size_t len)
{
    struct secret_classes n = {0};
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];
        n.upper += isupper(c) != 0;
        n.lower += islower(c) != 0;
        n.digit += isdigit(c) != 0;
        n.hex += isxdigit(c) != 0;
        n.other += !isalnum(c);
    }
    return n;
}

/* Random-looking: 32 characters or more, capital and small letters and digits, few repetitions; or
 * a long hexadecimal number. Host lists and hashed directory names lack the capitals. */
static bool secret_is_random(const char *p, size_t len)
{
    struct secret_classes n = secret_count(p, len);
    if (len < 32)
        return false;
    if (n.hex == len && n.digit > 4 && n.upper + n.lower > 4)
        return true;
    return n.upper > 2 && n.lower > 2 && n.digit > 2 && n.other <= len / 8 &&
           secret_distinct(p, len) >= 16;
}

static bool secret_has_prefix(const char *p, size_t len)
{
    for (size_t i = 0; i < sizeof secret_prefixes / sizeof *secret_prefixes; i++) {
        size_t n = strlen(secret_prefixes[i].prefix), more = secret_prefixes[i].more;
        if (len < n + more || strncmp(p, secret_prefixes[i].prefix, n) != 0)
            continue;
        struct secret_classes c = secret_count(p + n, more);
        if (c.upper && (c.lower || c.digit))
            return true;
    }
    return false;
}

static const char *secret_piece(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((i == 0 || !isalnum((unsigned char)p[i - 1])) && secret_has_prefix(p + i, len - i))
            return "the value begins like a service's token";
    if (!secret_is_uuid(p, len) && secret_is_random(p, len))
        return "the value looks like a random key";
    return NULL;
}

/* scheme://user:password@host */
static bool secret_url(const char *value)
{
    for (const char *p = value; (p = strstr(p, "://")); p += 3) {
        size_t host = strcspn(p + 3, "/ \t,");
        const char *at = memchr(p + 3, '@', host);
        if (at && memchr(p + 3, ':', (size_t)(at - p - 3)))
            return true;
    }
    return false;
}

/* The items of a value, split where lists are; an item that is a path is never looked into. */
static bool secret_by_value(const char *value, const char **why_p)
{
    if (secret_url(value) || strstr(value, "-----BEGIN ")) {
        *why_p = "the value holds a password or a private key";
        return true;
    }
    for (const char *p = value; *p;) {
        size_t item = strcspn(p, ",:; \t\n");
        bool path = *p == '/' || *p == '.' || *p == '~' || *p == '$';
        for (size_t i = 0; !path && i < item;) {
            size_t len = 0;
            while (i + len < item && secret_token_char(p[i + len]))
                len++;
            const char *why = len ? secret_piece(p + i, len) : NULL;
            if (why) {
                *why_p = why;
                return true;
            }
            i += len + 1;
        }
        p += item + (p[item] != '\0');
    }
    return false;
}

bool shk_env_is_secret(const char *name, const char *value, const char **why_p)
{
    return secret_by_name(name, value, why_p) || secret_by_value(value, why_p);
}
