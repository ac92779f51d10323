/* ulimit -a of bash and dash, prlimit, /proc/self/limits, sysctl, df of /dev/shm. */
#include "probes/host/kernel.h"
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `letter`: as bash names it; the other columns: as dash, zsh, /proc and prlimit do; `unit`: bytes
 * of bash's number. */
static const struct {
    const char *key, *bash, *letter, *dash, *zsh, *proc, *prlimit;
    long long unit;
} limits[] = {
    {"limits.memlock", "max locked memory", "-l)", "locked memory(kbytes)",
     "-l: locked-in-memory size (kbytes) ", "Max locked memory", "MEMLOCK ", 1024},
    {"limits.nofile", "open files", "-n)", "nofiles ", "-n: file descriptors ", "Max open files",
     "NOFILE ", 1},
    {"limits.stack", "stack size", "-s)", "stack(kbytes)", "-s: stack size (kbytes) ",
     "Max stack size", "STACK ", 1024},
    {"limits.as", "virtual memory", "-v)", "vmemory(kbytes)", "-v: address space (kbytes) ",
     "Max address space", "AS ", 1024},
    {"limits.nproc", "max user processes", "-u)", "process ", "-u: processes ", "Max processes",
     "NPROC ", 1},
};
enum { LIMITS = sizeof limits / sizeof *limits };

static bool limit_value(const char *p, long long unit, long long *value_p)
{
    p = ticket_skip(p);
    if (ticket_after(p, "unlimited")) {
        *value_p = -1;
        return true;
    }
    if (!ticket_long(p, value_p) || *value_p < 0 || *value_p > (1LL << 50))
        return false;
    *value_p *= unit;
    return true;
}

/* Where the number stands in a line of `ulimit -a`; NULL: another line. */
static const char *limit_ulimit(const char *line, size_t i)
{
    const char *p = ticket_after(line, limits[i].bash);
    if (p && (p = strstr(p, limits[i].letter)) != NULL)
        return p + strlen(limits[i].letter);
    p = ticket_after(line, limits[i].zsh);
    return p ? p : ticket_after(line, limits[i].dash);
}

/* "MEMLOCK    max locked-in-memory address space  67108864  67108864 bytes": where the two numbers
 * stand; NULL: another line. */
static const char *limit_prlimit(const char *line, size_t i)
{
    const char *words[16], *p = ticket_after(line, limits[i].prlimit);
    size_t count = 0;
    for (p = p ? ticket_skip(p) : ""; *p && count < 16; p = ticket_skip(p + strcspn(p, " \t")))
        words[count++] = p;
    bool is = count >= 4 &&
              (ticket_after(words[count - 1], "bytes") || ticket_after(words[count - 1], "files") ||
               ticket_after(words[count - 1], "processes"));
    return is ? words[count - 3] : NULL;
}

/* Where the soft and the hard limit stand, in bytes. */
static const char *limit_pair(const char *line, size_t i)
{
    const char *p = ticket_after(line, limits[i].proc);
    return p ? p : limit_prlimit(line, i);
}

static bool ulimit_starts(char *const *lines, size_t left)
{
    (void)left;
    const char *p = ticket_skip(lines[0]);
    for (size_t i = 0; i < LIMITS; i++)
        if (limit_ulimit(p, i) || limit_pair(p, i))
            return true;
    return false;
}

/* `ulimit -a` shows the soft limit only (with -H the hard one). */
static void put_limit(struct ticket_out *out, size_t i, bool hard, long long value)
{
    json_t *limit = json_object();
    json_object_set_new(limit, hard ? "hard" : "soft", json_integer(value));
    ticket_put(out, limits[i].key, limit, limits[i].unit == 1 ? NULL : "B");
}

static void ulimit_read(struct ticket_out *out, const struct ticket_block *block)
{
    const char *p = ticket_skip(block->lines[0]), *at;
    bool hard = block->command && strstr(block->command, "-H");
    long long soft = 0, top = 0;
    for (size_t i = 0; i < LIMITS; i++) {
        if ((at = limit_ulimit(p, i)) != NULL && limit_value(at, limits[i].unit, &soft)) {
            put_limit(out, i, hard, soft);
        } else if ((at = limit_pair(p, i)) != NULL && limit_value(at, 1, &soft)) {
            at = ticket_skip(at);
            at += strcspn(at, " \t");
            json_t *limit = json_object();
            json_object_set_new(limit, "soft", json_integer(soft));
            if (limit_value(at, 1, &top))
                json_object_set_new(limit, "hard", json_integer(top));
            ticket_put(out, limits[i].key, limit, limits[i].unit == 1 ? NULL : "B");
        }
    }
}

const struct ticket_reader ticket_reader_ulimit = {
    .name = "ulimit", .starts = ulimit_starts, .read = ulimit_read, .single = true};

/* The answer to `ulimit -l` and `ulimit -n` alone is a line with a number. */
static void ulimit_one_read(struct ticket_out *out, const struct ticket_block *block)
{
    static const struct {
        const char *command;
        size_t limit;
    } rows[] = {
        {"ulimit -l", 0}, {"ulimit -n", 1}, {"ulimit -s", 2}, {"ulimit -v", 3}, {"ulimit -u", 4}};
    long long value;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *at = block->command ? strstr(block->command, rows[i].command) : NULL;
        if (at && block->count && limit_value(block->lines[0], limits[rows[i].limit].unit, &value))
            put_limit(out, rows[i].limit, false, value);
    }
}

const struct ticket_reader ticket_reader_ulimit_one = {
    .name = "ulimit",
    .commands = "ulimit -l|ulimit -n|ulimit -s|ulimit -v|ulimit -u",
    .read = ulimit_one_read};

/* Only the form of sysctl's answer, "a.b = 1": "a.b=1" is what someone wants to set. */
static const char *sysctl_value(const char *line, const char **name_p)
{
    if (!islower((unsigned char)*line))
        return NULL;
    for (const char *const *name = shk_kernel_sysctls; *name; name++) {
        const char *p = ticket_after(line, *name);
        if (p && p[0] == ' ' && p[1] == '=' && p[2] == ' ') {
            *name_p = *name;
            return ticket_skip(p + 2);
        }
    }
    return NULL;
}

static bool sysctl_starts(char *const *lines, size_t left)
{
    const char *name;
    (void)left;
    return sysctl_value(lines[0], &name) != NULL;
}

static void sysctl_read(struct ticket_out *out, const struct ticket_block *block)
{
    const char *name = NULL, *value = sysctl_value(block->lines[0], &name);
    char key[96];
    char *end;
    if (!value || !*value || (block->command && strstr(block->command, "-w")))
        return;
    snprintf(key, sizeof key, "sysctl.%s", name);
    long long number = strtoll(value, &end, 10);
    if (!*ticket_skip(end) && end - value < 18)
        ticket_put_int(out, key, number, NULL);
    else
        ticket_put_text(out, key, value);
}

const struct ticket_reader ticket_reader_sysctl = {
    .name = "sysctl", .starts = sysctl_starts, .read = sysctl_read, .single = true};

/* "64M", "1.5G", "24684092" in units of `unit` bytes. */
static bool df_size(const char *word, double unit, long long *value_p)
{
    static const char letters[] = "KMGTP";
    char *end;
    double value = strtod(word, &end);
    if (end == word || value < 0 || value > 1e15)
        return false;
    const char *letter = *end ? strchr(letters, *end) : NULL;
    if (*end && (!letter || (end[1] && strcmp(end + 1, "i") != 0 && strcmp(end + 1, "iB") != 0)))
        return false;
    if (letter)
        for (unit = 1024; letter > letters; letter--)
            unit *= 1024;
    if (value * unit > 1e18)
        return false;
    *value_p = (long long)(value * unit);
    return true;
}

/* "tmpfs  24G  0  24G  0% /dev/shm", a device, four numbers, the place. */
static bool df_line(const char *line, char words[5][64])
{
    const char *p = ticket_skip(line);
    for (size_t i = 0; i < 5; i++) {
        size_t len = ticket_word(words[i], 64, p, "");
        if (!len)
            return false;
        p = ticket_skip(p + len);
        if (i == 1 && isalpha((unsigned char)words[1][0]))
            i--; /* -T: the type */
    }
    return strcmp(p, "/dev/shm") == 0 && strchr(words[4], '%');
}

static bool df_starts(char *const *lines, size_t left)
{
    char words[5][64];
    size_t len = strlen(lines[0]);
    (void)left;
    return len > 12 && strcmp(lines[0] + len - 8, "/dev/shm") == 0 && df_line(lines[0], words);
}

/* The head above says the unit of numbers without one. */
static double df_unit(const struct ticket_block *block)
{
    for (size_t i = 1; i <= block->before && i <= 200; i++) {
        const char *head = *(block->lines - i);
        if (!ticket_after(head, "Filesystem"))
            continue;
        return strstr(head, "1M-blocks")     ? 1048576.0
               : strstr(head, "1B-blocks")   ? 1.0
               : strstr(head, "1K-blocks")   ? 1024.0
               : strstr(head, "1024-blocks") ? 1024.0
               : strstr(head, "512-blocks")  ? 512.0
               : strstr(head, "Size")        ? 1.0
                                             : 0.0;
    }
    return 0;
}

static void df_read(struct ticket_out *out, const struct ticket_block *block)
{
    char words[5][64];
    long long size, available;
    double unit = df_unit(block);
    if (!df_line(block->lines[0], words))
        return;
    bool bare = isdigit((unsigned char)words[1][strlen(words[1]) - 1]);
    if (bare && !(unit > 0)) {
        out->note = "the head line with the unit is missing, left out";
        return;
    }
    if (df_size(words[1], unit, &size) && df_size(words[3], unit, &available)) {
        ticket_put_int(out, "shm.size", size, "B");
        ticket_put_int(out, "shm.free", available, "B");
    }
}

const struct ticket_reader ticket_reader_df = {
    .name = "df /dev/shm", .starts = df_starts, .read = df_read, .single = true};

/* "shm on /dev/shm type tmpfs (rw,nosuid,…,size=65536k)" of mount, "shm /dev/shm tmpfs rw,…" of
 * /proc/mounts: the size in its options. */
static const char *mount_size(const char *line)
{
    const char *p = strstr(line, " /dev/shm ");
    p = p && (ticket_after(p + 10, "type tmpfs (") || ticket_after(p + 10, "tmpfs ")) ? p : NULL;
    bool whole = p && (p[10] != 't' || p[11] != 'y' || strchr(p, ')'));
    p = whole ? strstr(p, "size=") : NULL;
    return p && (p[-1] == ',' || p[-1] == '(' || p[-1] == ' ') ? p + 5 : NULL;
}

static bool mount_starts(char *const *lines, size_t left)
{
    (void)left;
    return strstr(lines[0], " /dev/shm ") && mount_size(lines[0]);
}

static void mount_read(struct ticket_out *out, const struct ticket_block *block)
{
    char word[64];
    long long size;
    const char *p = mount_size(block->lines[0]);
    if (!p || !ticket_word(word, sizeof word, p, ",)"))
        return;
    for (char *c = word; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    if (df_size(word, 1, &size))
        ticket_put_int(out, "shm.size", size, "B");
}

const struct ticket_reader ticket_reader_mount = {
    .name = "mount", .starts = mount_starts, .read = mount_read, .single = true};
