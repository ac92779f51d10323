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

/* "[rank3]: ", "[default3]:" of torchrun, "[1,3]<stdout>:", "3: " as srun --label writes it, but
 * not "3: eth0: <UP>" of ip or a row of a table. */
static const char *line_rank(const char *p)
{
    const char *end;
    static const char *const words[] = {"[rank", "[default", "[trainer"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *number = ticket_after(p, words[i]);
        if (!number)
            continue;
        end = number + strspn(number, "0123456789|");
        return end > number && *end == ']' ? end + 1 + (end[1] == ':') : NULL;
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

/* "15:04:05 ", "[15:04:05.678] " */
static const char *line_clock(const char *p)
{
    static const char form[] = "##:##:##";
    bool bracket = *p == '[';
    p += bracket;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '#' ? !isdigit((unsigned char)p[i]) : p[i] != form[i])
            return NULL;
    p += sizeof form - 1;
    p += strspn(p, "0123456789.,");
    if (bracket)
        return *p == ']' ? p + 1 : NULL;
    return *p == ' ' ? p : NULL;
}

/* "2026-01-02T03:04:05.678Z ", "[2026-01-02 03:04:05] " */
static const char *line_time(const char *p)
{
    bool bracket = *p == '[';
    const char *start = p + bracket;
    if (isdigit((unsigned char)start[0]) && start[1] && start[2] == ':')
        return line_clock(p);
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
    const char *kind = ticket_after(q, " stdout F "); /* files of a container's runtime */
    kind = kind ? kind : ticket_after(q, " stderr F ");
    return kind ? kind - 1 : *q == ' ' ? q : NULL;
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

/* "Nov 29 15:04:05 node07 job[4711]: ": behind it, and the node's name. */
static const char *line_syslog(const char *p, const char **host_p, size_t *len_p)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char month[4] = "";
    int day, used = 0;
    if (sscanf(p, "%3[A-Za-z] %2d %n", month, &day, &used) != 2 || !used || strlen(month) != 3)
        return NULL;
    const char *at = strstr(months, month), *clock = line_clock(p + used);
    if (!at || (at - months) % 3 || !clock || p[used] == '[' || *clock != ' ')
        return NULL;
    *host_p = clock + 1;
    for (*len_p = 0; host_char(clock[1 + *len_p]);)
        ++*len_p;
    const char *program = *host_p + *len_p,
               *end = program + 1 + strcspn(program + (*program != 0), " ");
    return *len_p && *len_p < 64 && *program == ' ' && end[-1] == ':' && *end == ' ' ? end : NULL;
}

/* "(RayWorker pid=123, ip=10.0.0.1) ", "(EngineCore_0 pid=123) ": Ray and vLLM. */
static const char *line_actor(const char *p)
{
    size_t len = *p == '(' ? strcspn(p, ")") : 0;
    const char *pid = len && len < 120 && p[len] ? strstr(p, " pid=") : NULL;
    return pid && pid < p + len && isdigit((unsigned char)pid[5]) && p[len + 1] == ' ' ? p + len + 1
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

/* "> " of mail and markdown, as often as it was quoted: "> > ", ">>", "&gt; ". */
static const char *line_unquote(const char *p)
{
    for (;;) {
        const char *at = p + strspn(p, " ");
        const char *behind = *at == '>' ? at + 1 : ticket_after(at, "&gt;");
        if (!behind || at - p > 3 || (*behind && !strchr(" >&\t", *behind)))
            return p;
        p = behind + (*behind == ' ');
    }
}

struct ticket_mark ticket_line_parse(char *line, const json_t *hosts)
{
    struct ticket_mark mark = {.text = line};
    line_clean(line);
    const char *p = line_unquote(line), *next;
    for (int tags = 0; tags < 4; tags++) {
        size_t host = line_host(p, hosts);
        if (host) {
            line_tag(&mark, p, p + host);
            snprintf(mark.node, sizeof mark.node, "%.*s", (int)(host - 2), p);
            p += host;
            continue;
        }
        const char *name;
        next = line_rank(p);
        next = next ? next : line_pod(p);
        next = next ? next : line_actor(p);
        if (next) {
            line_tag(&mark, p, next);
        } else if ((next = line_syslog(p, &name, &host)) != NULL) {
            line_tag(&mark, name, next);
            snprintf(mark.node, sizeof mark.node, "%.*s", (int)host, name);
        } else {
            next = line_time(p);
        }
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

/* A name that a host may have, and that is not one of a device, a rank or a step. */
static bool is_host_name(const char *name, size_t len)
{
    static const char *const others[] = {
        "rank", "gpu#", "step", "test", "part", "run",  "phase", "attempt", "log",  "case",  "mlx",
        "eth",  "ens",  "eno",  "enp",  "ib#",  "hsn",  "cxi",   "lo",      "efa",  "rdmap", "bond",
        "job",  "task", "cuda", "v#",   "nic",  "core", "cpu",   "numa",    "port", "round"};
    size_t digits = 0, letters = 0;
    for (size_t i = 0; i < len; i++) {
        digits += isdigit((unsigned char)name[i]) != 0;
        letters += isalpha((unsigned char)name[i]) != 0;
        if (!host_char(name[i]))
            return false;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t word = strcspn(others[i], "#");
        bool number = others[i][word] && strspn(name + word, "0123456789") == 1 && len == word + 1;
        if (strncasecmp(name, others[i], word) == 0 && (number || !others[i][word]))
            return false;
    }
    return digits && letters > 1 && len < 64 && isalpha((unsigned char)*name);
}

/* "==> gpu07 <==", "=== gpu07 ===", "### gpu07", "**gpu07:**": what stands between the signs. */
static const char *heading(const char *line, size_t *len_p)
{
    size_t before = strspn(line, "=-#*>");
    const char *p = line + before + strspn(line + before, " "), *word = p;
    static const char *const words[] = {"host ", "Host ", "node ", "Node ", "On ", "on "};
    for (size_t i = 0; i < sizeof words / sizeof *words && word == p; i++)
        word = ticket_after(p, words[i]) ? p + strlen(words[i]) : p;
    size_t len = 0;
    while (host_char(word[len]))
        len++;
    const char *behind = word + len + (word[len] == ':');
    size_t after = strspn(behind, "=-#*< :");
    bool hashes = before >= 2 && line[0] == '#', both = before >= 2 && strpbrk(behind, "=-*<");
    *len_p = len;
    return !behind[after] && (hashes || both) ? word : NULL;
}

/* "gpu07:", "On gpu07:" above a fence. */
static const char *above_fence(char *const *lines, size_t left, size_t *len_p)
{
    static const char *const words[] = {"On ", "on ", "Node ", "node ", "Host ", "host ", "From "};
    const char *p = ticket_skip(lines[0]), *name = p;
    for (size_t i = 0; i < sizeof words / sizeof *words && name == p; i++)
        name = ticket_after(p, words[i]) ? p + strlen(words[i]) : p;
    *len_p = strcspn(name, ":");
    if (name[*len_p] != ':' || *ticket_skip(name + *len_p + 1))
        return NULL;
    for (size_t i = 1; i < left && i < 3; i++)
        if (*ticket_skip(lines[i]))
            return ticket_line_is_fence(lines[i]) ? name : NULL;
    return NULL;
}

bool ticket_line_header(char *const *lines, size_t left, char *host, size_t size)
{
    size_t len = 0;
    const char *name = NULL, *bar = strstr(lines[0], " | ");
    if (left >= 3 && line_is_rule(lines[0]) && line_is_rule(lines[2])) {
        static const char set[] =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._[],";
        len = strspn(lines[1], set);
        name = len && !lines[1][len] && len < 64 ? lines[1] : NULL;
    } else if (bar && strstr(bar, " | rc=") && strstr(bar, " >>")) { /* Ansible */
        len = (size_t)(bar - lines[0]);
        name = strcspn(lines[0], " ") == len ? lines[0] : NULL;
    } else {
        name = heading(lines[0], &len);
        name = name ? name : above_fence(lines, left, &len);
        name = name && is_host_name(name, len) ? name : NULL;
    }
    if (name)
        snprintf(host, size, "%.*s", (int)len, name);
    return name != NULL;
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

/* Behind the options of a command; `with_value`: letters of those whose value is a word of its own.
 */
static const char *behind_options(const char *p, const char *with_value)
{
    for (p = ticket_skip(p); *p == '-'; p = ticket_skip(p)) {
        bool own = p[1] && strchr(with_value, p[1]) && (p[2] == ' ' || !p[2]);
        p += strcspn(p, " ");
        if (own)
            p = ticket_skip(p);
        if (own)
            p += strcspn(p, " ");
    }
    return p;
}

/* The one node that is asked for. */
static void srun_node(const char *command, char *host, size_t size)
{
    static const char *const options[] = {" -w ", " --nodelist=", " --nodelist "};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *p = strstr(command, options[i]);
        if (!p)
            continue;
        p += strlen(options[i]);
        size_t len = ticket_word(host, size, p, ",[");
        if (p[len] == ',' || p[len] == '[')
            *host = '\0'; /* several */
        return;
    }
}

bool ticket_line_remote(const char *command, char *host, size_t size)
{
    static const char *const all[] = {
        "srun ",       "mpirun ",      "mpiexec ",    "kubectl exec ", "docker exec ",
        "docker run ", "podman exec ", "podman run ", "pdsh ",         "clush ",
        "ansible ",    "apptainer ",   "singularity "};
    *host = '\0';
    command = ticket_after(command, "sudo ") ? ticket_skip(command + 5) : command;
    const char *p = ticket_after(command, "ssh ");
    if (p) {
        p = behind_options(p, "bcDEeFIiJLlmOopQRSWw");
        size_t len = strcspn(p, " ");
        const char *at = memchr(p, '@', len), *name = at ? at + 1 : p;
        bool runs = len && *ticket_skip(p + len);
        if (runs)
            ticket_word(host, size, name, "");
        return runs;
    }
    if (ticket_after(command, "srun "))
        srun_node(command, host, size);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (ticket_after(command, all[i]))
            return true;
    return false;
}
