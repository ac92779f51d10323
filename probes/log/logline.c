#include "probes/log/logline.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX_MAX = 256 };

static const char *skip_digits(const char *p)
{
    while (isdigit((unsigned char)*p))
        p++;
    return p;
}

/* Ends after " \t" and colour codes. */
static const char *skip_blank(const char *p)
{
    for (;;) {
        if (*p == ' ' || *p == '\t') {
            p++;
        } else if (p[0] == '\033' && p[1] == '[') {
            p += 2 + strspn(p + 2, "0123456789;");
            p += *p != '\0';
        } else {
            return p;
        }
    }
}

static void set_rank(struct shk_logline *out, const char *digits)
{
    if (out->rank >= 0)
        return;
    out->rank = strtol(digits, NULL, 10);
    snprintf(out->origin, sizeof out->origin, "rank %ld", out->rank);
}

static void set_node(struct shk_logline *out, const char *name, size_t len)
{
    if (len == 0 || len >= sizeof out->node)
        return;
    memcpy(out->node, name, len);
    out->node[len] = '\0';
}

/* The two texts in a row, as far as there is room. */
static void set_origin(struct shk_logline *out, const char *text, size_t len, const char *more,
                       size_t more_len)
{
    size_t room = sizeof out->origin - 1;
    len = len < room ? len : room;
    more_len = more_len < room - len ? more_len : room - len;
    memcpy(out->origin, text, len);
    memcpy(out->origin + len, more, more_len);
    out->origin[len + more_len] = '\0';
}

static bool host_char(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

/* "[rank8]: ", "[8]: ", "8: ", "[1,8]<stdout>:" */
static const char *tag_rank(struct shk_logline *out, const char *p)
{
    const char *d = NULL, *end = NULL;
    if (strncmp(p, "[rank", 5) == 0) {
        d = p + 5;
        end = skip_digits(d);
        if (end == d || *end != ']')
            return NULL;
        end += end[1] == ':' ? 2 : 1;
    } else if (*p == '[' && isdigit((unsigned char)p[1])) {
        d = p + 1;
        end = skip_digits(d);
        if (*end == ',') { /* job, rank */
            d = end + 1;
            end = skip_digits(d);
            if (end == d || strncmp(end, "]<std", 5) != 0)
                return NULL;
            end = strchr(end, ':');
            if (!end)
                return NULL;
            end++;
        } else if (strncmp(end, "]: ", 3) == 0) {
            end += 2;
        } else {
            return NULL;
        }
    } else if (isdigit((unsigned char)*p)) {
        d = p;
        end = skip_digits(p);
        if (end - d > 6 || end[0] != ':' || end[1] != ' ')
            return NULL;
        end++;
    } else {
        return NULL;
    }
    set_rank(out, d);
    return end;
}

/* "[2025-01-02 03:04:05] ", "2025-01-02T03:04:05.123 ", "[  12.345] " */
static const char *tag_time(const char *p)
{
    bool bracket = *p == '[';
    const char *start = p + bracket, *q = start;
    if (!bracket && isalpha((unsigned char)*p) && *p != 'T' && *p != 'Z')
        return NULL;
    q += strspn(q, "0123456789-:.,/TZ+ ");
    if (!bracket && q - start < 15)
        return NULL;
    while (q > start && q[-1] == ' ' && !bracket)
        q--;
    if (bracket)
        return *q == ']' && q - start >= 5 && strpbrk(start, ":.") ? q + 1 : NULL;
    return *q == ' ' ? q : NULL;
}

/* "host:pid:tid [dev] " of NCCL and its relatives. */
static bool process_prefix(struct shk_logline *out, const char *p)
{
    const char *host = p, *q = p;
    while (host_char(*q))
        q++;
    const char *pid = q + 1, *end = skip_digits(pid);
    if (q == p || *q != ':' || end == pid || *end != ':')
        return false;
    const char *tid = end + 1, *behind = skip_digits(tid);
    if (behind == tid || *behind != ' ')
        return false;
    set_node(out, host, (size_t)(q - host));
    const char *dev = behind + 1, *close = dev;
    if (*dev == '[')
        close = skip_digits(dev + 1 + (dev[1] == '-'));
    if (out->rank < 0) {
        size_t len = (size_t)(end - host), more = *close == ']' ? (size_t)(close + 1 - behind) : 0;
        set_origin(out, host, len, behind, more);
    }
    return true;
}

/* "srun: error: node01: task 3: " */
static bool slurm_prefix(struct shk_logline *out, const char *p)
{
    static const char *const starts[] = {"srun: error: ", "srun: "};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        size_t len = strlen(starts[i]);
        if (strncmp(p, starts[i], len) != 0)
            continue;
        const char *host = p + len, *q = host;
        while (host_char(*q))
            q++;
        if (strncmp(q, ": task", 6) != 0)
            return false;
        set_node(out, host, (size_t)(q - host));
        const char *digits = strpbrk(q, "0123456789");
        if (digits)
            set_rank(out, digits);
        return true;
    }
    return false;
}

/* "libfabric:pid:", "pid:tid ", "[host:pid] " of Open MPI, "Nov 28 06:00:00 host kernel: " */
static void other_prefix(struct shk_logline *out, const char *p)
{
    char month[4], host[64];
    int day, used = 0, pid;
    if (sscanf(p, "%3[A-Z a-z] %2d %*d:%*d:%*d %63[A-Za-z0-9._-] %n", month, &day, host, &used) ==
            3 &&
        used)
        set_node(out, host, strlen(host));
    else if (sscanf(p, "[%63[A-Za-z0-9._-]:%d]%n", host, &pid, &used) == 2 && used) {
        set_node(out, host, strlen(host));
        if (out->rank < 0)
            snprintf(out->origin, sizeof out->origin, "%s:%d", host, pid);
    } else if (out->rank < 0 &&
               (sscanf(p, "libfabric:%d:%n", &pid, &used) == 1 ||
                sscanf(p, "%d:%*d %n", &pid, &used) == 1) &&
               used)
        snprintf(out->origin, sizeof out->origin, "process %d", pid);
}

void shk_logline_parse(struct shk_logline *out, const char *line, size_t len)
{
    char text[PREFIX_MAX];
    *out = (struct shk_logline){.rank = -1};
    len = len < sizeof text - 1 ? len : sizeof text - 1;
    memcpy(text, line, len);
    text[len] = '\0';
    const char *p = skip_blank(text), *next;
    for (int tags = 0; tags < 4; tags++) {
        next = tag_rank(out, p);
        if (!next)
            next = tag_time(p);
        if (!next)
            break;
        p = skip_blank(next);
    }
    if (!process_prefix(out, p) && !slurm_prefix(out, p))
        other_prefix(out, p);
    if (!*out->origin && *out->node)
        set_origin(out, out->node, strlen(out->node), "", 0);
}
