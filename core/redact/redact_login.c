#include "core/redact/redact_private.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

/* As far before an option the tool is looked for that it belongs to. */
enum { REDACT_COMMAND = 256 };
/* Longer passwords are not looked for. */
enum { REDACT_PASSWORD = 1024 };

/* What ends a URL in a text. */
#define REDACT_URL_ENDS " \t\r\n\"'<>,"

static bool redact_is_host(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Digits behind the ':' of a host, and then what may follow a port. */
static bool redact_is_port(const char *s)
{
    size_t n = strspn(s, "0123456789");
    return !s[n] || strchr("/?#" REDACT_URL_ENDS, s[n]) || (n && strchr(":;)]}|\\", s[n]));
}

/* A user without a password is a name, unless it looks like a key; a password may hold any
 * character, so it reaches to the last '@' before the path. */
size_t shk_redact_userinfo(const char *text, const char *s)
{
    if (s - text < 3 || s[-1] != '/' || strncmp(s - 3, "://", 3) != 0)
        return 0;
    size_t user = shk_redact_until(s, ":/@?#[" REDACT_URL_ENDS, REDACT_PASSWORD);
    if (s[user] == '@')
        return !shk_redact_is_done(s) && shk_redact_random(s, user) ? user : 0;
    if (s[user] != ':' || redact_is_port(s + user + 1))
        return 0;
    size_t n = user + shk_redact_until(s + user, "@" REDACT_URL_ENDS, REDACT_PASSWORD), more;
    if (s[n] != '@')
        return 0;
    while ((more = shk_redact_until(s + n + 1, "@/?#" REDACT_URL_ENDS, REDACT_PASSWORD)) &&
           s[n + 1 + more] == '@')
        n += 1 + more;
    return n;
}

/* Four numbers with dots. */
static bool redact_is_ipv4(const char *s)
{
    for (int part = 0; part < 4; part++) {
        size_t n = strspn(s, "0123456789");
        if (!n || n > 3 || (part < 3 && s[n] != '.'))
            return false;
        s += n + 1;
    }
    return true;
}

/* user:password@host.name, user:password@10.0.0.1 */
static size_t redact_at_host(const char *s, size_t user, size_t *head_p)
{
    size_t host;
    if (!user || s[user] != ':' || !isalpha((unsigned char)*s))
        return 0;
    const char *secret = s + user + 1;
    size_t n = strcspn(secret, "/@: \t\n\"',;=[]()");
    if (n < 3 || secret[n] != '@' || shk_redact_is_done(secret))
        return 0;
    bool number = strspn(secret, "0123456789") == n;
    bool address = !number && redact_is_ipv4(secret + n + 1);
    if (!isalpha((unsigned char)secret[n + 1]) && !address)
        return 0;
    for (host = n + 1; redact_is_host(secret[host]);)
        host++;
    if (!address && secret[host] != '.' && secret[host] != ':' && secret[host] != '/')
        return 0;
    *head_p = user + 1;
    return n;
}

/* What stands behind -u and --user of curl and the like, user:password: the password's bytes.
 * uid:gid, as containers take it, is none. */
static size_t redact_user(const char *text, const char *s, size_t user, size_t *head_p)
{
    static const char *const options[] = {"-u ", "-u=", "--user ", "--user=", "-user ", "-user="};
    bool asked = false;
    if (!user || s[user] != ':' || s == text || (s[-1] != ' ' && s[-1] != '='))
        return 0;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        size_t n = strlen(options[i]);
        asked |= (size_t)(s - text) >= n && strncmp(s - n, options[i], n) == 0;
    }
    if (!asked || shk_redact_is_done(s + user + 1))
        return 0;
    size_t n = shk_redact_unquoted(s + user + 1, SIZE_MAX);
    const char *secret = s + user + 1;
    bool group = n < 8 && (strspn(secret, "0123456789") >= n ||
                           strspn(secret, "abcdefghijklmnopqrstuvwxyz_-") >= n);
    *head_p = user + 1;
    return group ? 0 : n;
}

size_t shk_redact_login(const char *text, const char *s, size_t user, size_t *head_p)
{
    size_t n = redact_user(text, s, user, head_p);
    return n ? n : redact_at_host(s, user, head_p);
}

/* Options of tools that take a password, from their manual pages; `apart`: it may be the next word;
 * `first`: what comes later belongs to the command that the tool starts. */
static const struct {
    const char *tool;
    char option;
    bool apart, first;
} redact_tools[] = {
    {"sshpass", 'p', true, true},      {"ipmitool", 'P', true, false},
    {"ipmipower", 'p', true, false},   {"redis-cli", 'a', true, false},
    {"ldapsearch", 'w', true, false},  {"ldapadd", 'w', true, false},
    {"ldapmodify", 'w', true, false},  {"login", 'p', true, false},
    {"mysql", 'p', false, false},      {"mariadb", 'p', false, false},
    {"mysqladmin", 'p', false, false}, {"mysqldump", 'p', false, false},
};

/* Is `tool` a word of the command that ends before s, with nothing between when it is `first`? */
static bool redact_is_of(const char *text, const char *s, const char *tool, bool first)
{
    size_t n = strlen(tool);
    size_t window = s - text < REDACT_COMMAND ? (size_t)(s - text) : (size_t)REDACT_COMMAND;
    for (const char *p = first && window > n ? s - n - 1 : s - window; p + n < s; p++) {
        bool whole = (p == text || !redact_is_host(p[-1])) && (p[n] == ' ' || p[n] == '\t');
        if (whole && strncmp(p, tool, n) == 0)
            return memchr(p, '\n', (size_t)(s - p)) == NULL;
    }
    return false;
}

size_t shk_redact_option(const char *text, const char *s, size_t *head_p)
{
    if (s == text || *s != '-' || (s[-1] != ' ' && s[-1] != '\t') || !s[1])
        return 0;
    size_t at = 2 + (s[2] == '=');
    at += strspn(s + at, " \t");
    char quote = s[at] == '"' || s[at] == '\'' ? s[at++] : '\0';
    for (size_t i = 0; i < sizeof redact_tools / sizeof *redact_tools; i++) {
        if (redact_tools[i].option != s[1] || (!redact_tools[i].apart && strchr(" \t", s[2])) ||
            !redact_is_of(text, s, redact_tools[i].tool, redact_tools[i].first))
            continue;
        if (s[at] == '-' || shk_redact_is_done(s + at))
            return 0;
        *head_p = at;
        const char ends[] = {quote ? quote : ' ', '\n', quote ? '\0' : '\t', '\0'};
        return strcspn(s + at, ends);
    }
    return 0;
}
