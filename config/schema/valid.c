#include "config/schema/valid.h"

#include "core/regex/regex.h"
#include "core/text/messages.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALID_LOWER  "abcdefghijklmnopqrstuvwxyz"
#define VALID_UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define VALID_DIGITS "0123456789"
#define VALID_ALNUM  VALID_LOWER VALID_UPPER VALID_DIGITS

static bool valid_no(struct shk_why *why, const char *fmt, ...) SHK_PRINTF(2, 3);
static bool valid_no(struct shk_why *why, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why->text, sizeof why->text, fmt, args);
    va_end(args);
    return false;
}

/* First character from `first`, all from `any`, at most `max` bytes. */
static bool valid_chars(const char *text, const char *first, const char *any, size_t max)
{
    size_t len = strnlen(text, max + 1);
    return len && len <= max && strchr(first, *text) && strspn(text, any) == len;
}

bool shk_valid_variable(const char *text, struct shk_why *why)
{
    return valid_chars(text, VALID_LOWER VALID_UPPER "_", VALID_ALNUM "_", 128) ||
           valid_no(why, "not the name of an environment variable");
}

bool shk_valid_setting(const char *text, struct shk_why *why)
{
    return valid_chars(text, VALID_ALNUM "_/", VALID_ALNUM "_./:+-", 128) ||
           valid_no(why, "not a name: letters, digits and _ . / : + - only");
}

bool shk_valid_key(const char *text, struct shk_why *why)
{
    return valid_chars(text, VALID_LOWER VALID_DIGITS, VALID_LOWER VALID_DIGITS "-.", 64) ||
           valid_no(why, "not a key: lower-case letters, digits, - and . only");
}

bool shk_valid_command(const char *text, struct shk_why *why)
{
    char quote = 0;
    for (const char *p = text; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            return valid_no(why, "has a control character");
        if (quote ? *p == quote : *p == '\'' || *p == '"')
            quote = quote ? 0 : *p;
    }
    size_t len = strlen(text);
    if (quote)
        return valid_no(why, "has an open quote");
    if (!len || text[len - 1] == '.' || strstr(text, "\xE2\x80\xA6") || strstr(text, "..."))
        return valid_no(why, "not a line that can be run; put words into advice");
    return true;
}

bool shk_valid_version(const char *text, struct shk_why *why)
{
    return valid_chars(text, VALID_DIGITS, VALID_ALNUM ".-_+", 32) ||
           valid_no(why, "not a version such as 2.18.3");
}

bool shk_valid_fact(const char *text, struct shk_why *why)
{
    return valid_chars(text, VALID_ALNUM, VALID_ALNUM "_./:+-", 255) ||
           valid_no(why, "not a fact key such as pci.count.cxi");
}

/* How often the part before `{` stands there in the end. */
static double valid_copies(const char *brace)
{
    unsigned long low = strtoul(brace + 1, NULL, 10);
    const char *comma = brace + 1 + strspn(brace + 1, VALID_DIGITS);
    unsigned long high = *comma == ',' ? strtoul(comma + 1, NULL, 10) : 0;
    double most = (double)(low > high ? low : high);
    return most > 1 ? most : 1;
}

/* Product of all upper bounds of {m,n}. */
static double valid_repetition(const char *pattern)
{
    double product = 1;
    for (const char *p = strchr(pattern, '{'); p; p = strchr(p + 1, '{'))
        product *= valid_copies(p);
    return product;
}

bool shk_valid_regex(const char *text, struct shk_why *why)
{
    struct shk_regex *regex = NULL;
    struct shk_error err = {""};
    int rc = shk_regex_check(text, &err);
    rc = rc ? rc : shk_regex_create(&regex, text, &err);
    shk_regex_destroy(regex);
    return !rc || valid_no(why, "%s", err.text);
}

bool shk_valid_log_pattern(const char *text, struct shk_why *why)
{
    enum { PATTERN_MAX = 512, REPEAT_MAX = 1000 };
    struct shk_regex *regex = NULL;
    struct shk_error err = {""};
    size_t len = strnlen(text, PATTERN_MAX + 1);
    if (len > PATTERN_MAX || len < 4)
        return valid_no(why, "a log pattern has 4 to %d bytes", PATTERN_MAX);
    for (const char *p = strchr(text, '\\'); p; p = p[1] ? strchr(p + 2, '\\') : NULL)
        if (p[1] && strchr("sWDnr", p[1]))
            return valid_no(why, "\\%c could leave the line", p[1]);
    if (strchr("+*", text[len - 1]) && text[len - 2] != '\\')
        return valid_no(why, "ends in %c: the last character would match again and again",
                        text[len - 1]);
    if (valid_repetition(text) > REPEAT_MAX)
        return valid_no(why, "the counts in {} are too large");
    int rc = shk_regex_check(text, &err);
    rc = rc ? rc : shk_regex_create(&regex, text, &err);
    bool empty = !rc && shk_regex_matches_empty(regex);
    shk_regex_destroy(regex);
    if (rc)
        return valid_no(why, "%s", err.text);
    return !empty || valid_no(why, "every line would match: it matches nothing as well");
}

bool shk_valid_messages(const char *text, struct shk_why *why)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        const char *fault = len ? shk_messages_fault(text, len) : NULL;
        if (fault)
            return valid_no(why, "\"%.*s\": %s", (int)(len < 120 ? len : 120), text, fault);
        text += len + (text[len] == '\n');
    }
    return true;
}

bool shk_valid_capture(const char *text, struct shk_why *why)
{
    static const char *const groups[] = {
        "name", "value", "iface", "address", "version", "count",  "rank",  "errno", "wc",
        "cuda", "hsa",   "exit",  "signal",  "status",  "device", "other", "link",
    };
    char group[24];
    if (strnlen(text, 513) > 512)
        return valid_no(why, "regular expression longer than 512 bytes");
    for (size_t i = 0; i < SHK_COUNT(groups); i++) {
        snprintf(group, sizeof group, "(?<%s>", groups[i]);
        if (strstr(text, group))
            return true;
    }
    return valid_no(why, "has no group (?<NAME>; names are name, value, iface, address, version, "
                         "count, rank, errno, wc, cuda, hsa, exit, signal, status, device, other "
                         "and link");
}

bool shk_valid_reads(const char *text, struct shk_why *why)
{
    const char *p = text;
    while (*p) {
        size_t name = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        size_t group = strncmp(p, "{name}", 6) == 0 ? 6 : strncmp(p, "{other}", 7) == 0 ? 7 : 0;
        if (!name && !group)
            return valid_no(why,
                            "\"%.16s\" is no part of the name of a variable, nor {name} or "
                            "{other}",
                            p);
        p += name ? name : group;
    }
    return strchr(text, '{') || valid_no(why, "neither {name} nor {other} is in it");
}

/* Names that checks/base/condition.c can look up, besides fact keys. */
static const char *const valid_subjects[] = {
    "nodes",    "ranks",   "container", "inside_container", "gpus",   "virt",
    "launcher", "arch",    "gpu",       "kernel",           "nccl",   "rccl",
    "rocm",     "nvshmem", "libfabric", "fabric",           "plugin", "plugin_version",
    "cxi",      "efa",     "mlx5",
};

static bool valid_subject(const char *name, struct shk_why *why)
{
    size_t count = SHK_COUNT(valid_subjects);
    for (size_t i = 0; i < count; i++)
        if (strcmp(valid_subjects[i], name) == 0)
            return true;
    if (strchr(name, '.'))
        return shk_valid_fact(name, why);
    char hint[SHK_HINT], shown[SHK_EXCERPT + 4];
    return valid_no(why, "unknown name \"%s\" in a condition%s", shk_excerpt(shown, name),
                    shk_hint(hint, name, valid_subjects, count));
}

/* "[!]NAME" or "NAME OP VALUE"; changes text. */
static bool valid_term(char *text, struct shk_why *why)
{
    text = shk_trim(text);
    bool negated = *text == '!';
    if (negated)
        text = shk_trim(text + 1);
    size_t name_len = strcspn(text, "=!<>");
    char *op = text + name_len;
    if (*op) {
        size_t op_len = op[1] == '=' ? 2 : 1;
        if (op[0] == '!' && op_len == 1)
            return valid_no(why, "'!' must stand before a name or in !=");
        const char *value = op + op_len + strspn(op + op_len, " ");
        if (!*value || strpbrk(value, "=!<>"))
            return valid_no(why, "needs one value behind the comparison");
        if (negated)
            return valid_no(why, "'!' before a comparison");
        *op = '\0';
    }
    text = shk_trim(text);
    if (!*text)
        return valid_no(why, "a condition without a name");
    return valid_subject(text, why);
}

bool shk_valid_condition(const char *text, struct shk_why *why)
{
    char copy[256];
    if (strnlen(text, sizeof copy) == sizeof copy)
        return valid_no(why, "condition longer than %zu bytes", sizeof copy - 1);
    strcpy(copy, text);
    for (char *p = copy, *next; p; p = next) {
        next = strpbrk(p, ",&");
        if (next && *next == '&' && next[1] != '&')
            return valid_no(why, "terms are joined by ',' or '&&'");
        if (next) {
            char *behind = next + (*next == '&' ? 2 : 1);
            *next = '\0';
            next = behind;
        }
        if (!valid_term(p, why))
            return false;
    }
    return true;
}
