#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool host_char(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

/* Colour codes and the carriage return of another system's lines, out; in place. */
static void line_clean(char *line)
{
    char *to = line + strcspn(line, "\033\r");
    for (const char *p = to; *p;) {
        if (p[0] == '\033' && p[1] == '[') {
            p += 2 + strspn(p + 2, "0123456789;?");
            p += *p != '\0';
        } else if (*p == '\r') {
            p++;
        } else {
            *to++ = *p++;
        }
    }
    *to = '\0';
}

static const char *skip_digits(const char *p)
{
    return p + strspn(p, "0123456789");
}

/* "[rank3]: ", "[1,3]<stdout>:", "3: " as srun --label writes it, but not "3: eth0: <UP>" of ip or
 * a row of a table. */
static const char *line_rank(const char *p)
{
    const char *end;
    if (strncmp(p, "[rank", 5) == 0) {
        end = skip_digits(p + 5);
        return end > p + 5 && *end == ']' ? end + 1 + (end[1] == ':') : NULL;
    }
    if (*p == '[' && isdigit((unsigned char)p[1])) {
        end = skip_digits(p + 1);
        if (*end != ',')
            return NULL;
        end = skip_digits(end + 1);
        end = strncmp(end, "]<std", 5) == 0 ? strchr(end, ':') : NULL;
        return end ? end + 1 : NULL;
    }
    const char *start = p + strspn(p, " ");
    end = skip_digits(start);
    if (end == start || end - start > 6 || end[0] != ':' || end[1] != ' ')
        return NULL;
    const char *word = end + 2;
    size_t len = strcspn(word, " ");
    return len > 0 && word[len - 1] == ':' && word[len] == ' ' && strchr("<", word[len + 1])
               ? NULL
               : end + 1;
}

/* "2026-01-02T03:04:05.678Z ", "[2026-01-02 03:04:05] " */
static const char *line_time(const char *p)
{
    bool bracket = *p == '[';
    const char *start = p + bracket;
    for (int i = 0; i < 10; i++)
        if (i == 4 || i == 7 ? start[i] != '-' && start[i] != '/'
                             : !isdigit((unsigned char)start[i]))
            return NULL;
    if (start[10] != 'T' && start[10] != ' ')
        return NULL;
    const char *q = start + 11;
    q += strspn(q, "0123456789:.,Z+-");
    if (q - start < 19)
        return NULL;
    if (bracket)
        return *q == ']' ? q + 1 : NULL;
    return *q == ' ' ? q : NULL;
}

/* "[pod/trainer-0/main] " of kubectl logs --prefix, "trainer-0 | " of compose and journald. */
static const char *line_pod(const char *p)
{
    size_t len = *p == '[' ? strcspn(p, " ]") : 0;
    if (strncmp(p, "[pod/", 5) == 0 && p[len] == ']')
        return p + len + 1;
    for (len = 0; host_char(p[len]);)
        len++;
    const char *bar = p + len + strspn(p + len, " ");
    return len && bar > p + len && bar[0] == '|' && bar[1] == ' ' && strpbrk(p, "-_") < bar &&
                   strpbrk(p, "-_")
               ? bar + 1
               : NULL;
}

size_t ticket_line_host(const char *line)
{
    size_t len = 0, digits = 0;
    for (; host_char(line[len]); len++)
        digits += isdigit((unsigned char)line[len]) != 0;
    if (!isalpha((unsigned char)*line) || !digits || len > 63 || line[len] != ':' ||
        line[len + 1] != ' ')
        return 0;
    return len + 2;
}

static void line_tag(struct ticket_mark *mark, const char *from, const char *to)
{
    size_t have = strlen(mark->tag), len = (size_t)(to - from);
    if (have + len >= sizeof mark->tag)
        len = sizeof mark->tag - 1 - have;
    memcpy(mark->tag + have, from, len);
    mark->tag[have + len] = '\0';
}

/* Is it one of the names that stand in front of lines? */
static size_t line_host(const char *p, const json_t *hosts)
{
    char name[64];
    size_t len = ticket_line_host(p);
    if (!len)
        return 0;
    snprintf(name, sizeof name, "%.*s", (int)(len - 2), p);
    return json_object_get(hosts, name) ? len : 0;
}

struct ticket_mark ticket_line_parse(char *line, const json_t *hosts)
{
    struct ticket_mark mark = {.text = line};
    line_clean(line);
    const char *p = line, *next;
    while (p[0] == '>' && p[1] == ' ') /* quoted mail or markdown */
        p += 2;
    for (int tags = 0; tags < 4; tags++) {
        size_t host = line_host(p, hosts);
        if (host) {
            line_tag(&mark, p, p + host);
            snprintf(mark.node, sizeof mark.node, "%.*s", (int)(host - 2), p);
            p += host;
            continue;
        }
        next = line_rank(p);
        next = next ? next : line_pod(p);
        if (next)
            line_tag(&mark, p, next);
        else
            next = line_time(p);
        if (!next)
            break;
        p = next + (*next == ' ');
    }
    mark.text = p;
    return mark;
}

static bool line_is_rule(const char *line)
{
    size_t len = strspn(line, "-");
    return len >= 8 && !line[len];
}

const char *ticket_line_header(char *const *lines, size_t left)
{
    if (left < 3 || !line_is_rule(lines[0]) || !line_is_rule(lines[2]))
        return NULL;
    const char *p = lines[1];
    size_t len = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._[],");
    return len && !p[len] && len < 64 ? p : NULL;
}

bool ticket_line_is_fence(const char *line)
{
    line = ticket_skip(line);
    return strncmp(line, "```", 3) == 0 || strncmp(line, "~~~", 3) == 0 ||
           strncmp(line, "{code", 5) == 0 || strncmp(line, "{noformat", 9) == 0 ||
           strncmp(line, "<details", 8) == 0 || strncmp(line, "</details", 9) == 0;
}

bool ticket_line_is_gap(const char *line)
{
    static const char *const gaps[] = {
        "...",      "[...]",      "…",          "[…]",        "<snip>",          "[snip]",
        "--- snip", "(truncated", "<truncated", "[truncated", "<output omitted", "(snip",
        "-- snip",  "... (",      "....",       "<...>"};
    line = ticket_skip(line);
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++) {
        const char *end = ticket_after(line, gaps[i]);
        if (end && (i > 3 || !*ticket_skip(end)))
            return true;
    }
    return false;
}

/* "user@host" somewhere in [from, to), or "host:~" and "host:/path": copies the host. */
static bool prompt_host(const char *from, const char *to, char *host, size_t size)
{
    size_t own = 0;
    while (from + own < to && host_char(from[own]))
        own++;
    if (own && own < size && from[own] == ':' && (from[own + 1] == '~' || from[own + 1] == '/')) {
        snprintf(host, size, "%.*s", (int)own, from);
        return true;
    }
    const char *at = memchr(from, '@', (size_t)(to - from));
    if (!at || at == from)
        return false;
    size_t len = 0;
    while (at + 1 + len < to && host_char(at[1 + len]))
        len++;
    if (len && len < size)
        snprintf(host, size, "%.*s", (int)len, at + 1);
    return len > 0;
}

const char *ticket_line_prompt(const char *line, char *host, size_t size)
{
    const char *p = ticket_skip(line);
    if ((p[0] == '$' || p[0] == '%') && p[1] == ' ' && p[2])
        return ticket_skip(p + 2);
    if (p[0] == '+' && p[1] == ' ' && (isalpha((unsigned char)p[2]) || p[2] == '/'))
        return p + 2;   /* set -x */
    while (*p == '(') { /* a Python environment */
        const char *close = strchr(p, ')');
        if (!close || close - p > 40)
            return NULL;
        p = ticket_skip(close + 1);
    }
    const char *end = p + strcspn(p, "$#");
    if (!*end || end == p || end[1] != ' ' || !end[2] || end - p > 120)
        return NULL;
    bool bracket = *p == '[' && end[-1] == ']';
    if (!prompt_host(p, end, host, size))
        return NULL;
    for (const char *q = p; q < end && !bracket; q++)
        if (*q == ' ')
            return NULL;
    return ticket_skip(end + 2);
}
