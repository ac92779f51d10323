#include "collectives/meet/hosts.h"
#include "core/run/clock.h"
#include "core/run/command.h"
#include "core/text/quote.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOSTS_RANK "shakedown-rank "
#define HOSTS_CARD "shakedown-card "
/* A line with the names of all hosts is below it. */
#define HOSTS_LINE ((size_t)1 << 20)
/* When rank 0 has ended, the others have so long to do so, too. */
#define HOSTS_END_MS 10000

struct hosts_rank {
    pid_t pid; /* of ssh; 0: ended */
    int in, out;
    int status;
};

/* user@host, nothing that ssh or a shell would take for something else */
static bool hosts_is_name(const char *text)
{
    if (!isalnum((unsigned char)*text) && *text != '_')
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr(".-_@:", *text))
            return false;
    return true;
}

static int hosts_line(char *line, const char *path, unsigned at, json_t *hosts,
                      struct shk_error *err)
{
    unsigned slots = 1;
    char *save = NULL, *host, *word;
    line[strcspn(line, "#\r\n")] = '\0';
    host = strtok_r(line, " \t", &save);
    if (!host)
        return 0;
    if (!hosts_is_name(host) || strlen(host) > 255)
        return shk_error_set(err, EINVAL, "%s:%u: '%.60s' is not a host name", path, at, host);
    while ((word = strtok_r(NULL, " \t", &save)))
        if (strncmp(word, "slots=", 6) != 0 || !shk_meet_number(word + 6, &slots) || slots == 0)
            return shk_error_set(err, EINVAL, "%s:%u: '%.60s': a line is HOST [slots=N]", path, at,
                                 word);
    if (json_array_size(hosts) + slots > SHK_HOSTS_MOST)
        return shk_error_set(err, EINVAL, "%s:%u: more than %u ranks", path, at, SHK_HOSTS_MOST);
    for (unsigned i = 0; i < slots; i++)
        if (json_array_append_new(hosts, json_string(host)))
            return shk_error_set(err, ENOMEM, "out of memory");
    return 0;
}

int shk_hosts_read(const char *path, json_t **hosts_p, struct shk_error *err)
{
    FILE *in = fopen(path, "re");
    json_t *hosts = json_array();
    char *line = NULL;
    size_t cap = 0;
    int rc = 0;
    if (!in)
        rc = shk_error_sys(err, errno, "--hosts %s", path);
    for (unsigned at = 1; !rc && getline(&line, &cap, in) >= 0; at++)
        rc = hosts_line(line, path, at, hosts, err);
    if (!rc && ferror(in))
        rc = shk_error_sys(err, EIO, "--hosts %s", path);
    if (!rc && json_array_size(hosts) == 0)
        rc = shk_error_set(err, EINVAL, "--hosts %s: it lists no host", path);
    if (in)
        fclose(in);
    free(line);
    if (rc)
        json_decref(hosts);
    *hosts_p = rc ? NULL : hosts;
    return rc;
}

static void hosts_quote(struct shk_strbuf *sb, const char *text)
{
    char *word = shk_quote(SHK_QUOTE_SH, text);
    shk_strbuf_puts(sb, word ? word : "");
    sb->failed |= !word;
    free(word);
}

/* This command line without --hosts, as a line for any shell. */
static char *hosts_command(void)
{
    struct shk_strbuf args = SHK_STRBUF_INIT, line = SHK_STRBUF_INIT;
    char exe[PATH_MAX], folder[PATH_MAX], *word = NULL;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    FILE *in = fopen("/proc/self/cmdline", "re");
    size_t cap = 0;
    if (n > 0 && in && getcwd(folder, sizeof folder)) {
        exe[n] = '\0';
        shk_strbuf_puts(&args, "cd ");
        hosts_quote(&args, folder);
        shk_strbuf_puts(&args, " 2>/dev/null; exec ");
        hosts_quote(&args, exe);
        bool first = true, skip = false;
        while (getdelim(&word, &cap, '\0', in) >= 0) {
            bool name = strcmp(word, "--hosts") == 0;
            if (!first && !skip && !name && strncmp(word, "--hosts=", 8) != 0) {
                shk_strbuf_putc(&args, ' ');
                hosts_quote(&args, word);
            }
            skip = name && !skip;
            first = false;
        }
        shk_strbuf_puts(&args, " --rendezvous stdin");
        shk_strbuf_puts(&line, "exec sh -c ");
        hosts_quote(&line, shk_strbuf_text(&args));
        line.failed |= args.failed;
    }
    if (in)
        fclose(in);
    free(word);
    shk_strbuf_free(&args);
    return shk_strbuf_take(&line);
}

static void hosts_exec(const char *host, const char *command, unsigned deadline_ms, int in, int out)
    __attribute__((noreturn));
static void hosts_exec(const char *host, const char *command, unsigned deadline_ms, int in, int out)
{
    char wait[64];
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    snprintf(wait, sizeof wait, "ConnectTimeout=%u", deadline_ms / 1000U + 1U);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    signal(SIGPIPE, SIG_DFL);
    const char *const argv[] = {"ssh", "-T",
                                "-o",  "BatchMode=yes",
                                "-o",  wait,
                                "-o",  "ServerAliveInterval=5",
                                "-o",  "ServerAliveCountMax=3",
                                host,  command,
                                NULL};
    char *program = shk_command_find(argv[0], NULL);
    if (program)
        execv(program, (char *const *)(const void *)argv);
    errno = program ? errno : ENOENT;
    fprintf(stderr, "shakedown: ssh: %s\n", strerror(errno));
    _exit(255);
}

static int hosts_start(struct hosts_rank *rank, const char *host, const char *command,
                       unsigned deadline_ms, bool root, struct shk_error *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    if (pipe2(in, O_CLOEXEC) || (root && pipe2(out, O_CLOEXEC)))
        return shk_error_sys(err, errno, "a pipe to ssh %s", host);
    rank->pid = fork();
    if (rank->pid == 0)
        hosts_exec(host, command, deadline_ms, in[0], root ? out[1] : STDERR_FILENO);
    close(in[0]);
    if (root)
        close(out[1]);
    rank->in = in[1];
    rank->out = out[0];
    return rank->pid < 0 ? shk_error_sys(err, errno, "fork for ssh %s", host) : 0;
}

/* Which rank it is; for rank 0 where all of them are. */
static void hosts_introduce(struct hosts_rank *ranks, const json_t *hosts)
{
    unsigned size = (unsigned)json_array_size(hosts);
    for (unsigned r = 0; r < size; r++) {
        struct shk_strbuf line = SHK_STRBUF_INIT;
        unsigned local = 0, here = 0;
        const char *own = json_string_value(json_array_get(hosts, r));
        for (unsigned i = 0; i < size; i++) {
            bool same = strcmp(json_string_value(json_array_get(hosts, i)), own) == 0;
            here += same;
            local += same && i < r;
        }
        shk_strbuf_printf(&line, HOSTS_RANK "%u %u %u %u", r, size, local, here);
        for (unsigned i = 0; r == 0 && i < size; i++)
            shk_strbuf_printf(&line, " %s", json_string_value(json_array_get(hosts, i)));
        shk_strbuf_putc(&line, '\n');
        (void)!write(ranks[r].in, line.data, line.len);
        shk_strbuf_free(&line);
    }
}

static void hosts_pass(struct hosts_rank *ranks, unsigned size, const char *line, size_t len)
{
    for (unsigned r = 1; r < size; r++)
        (void)!write(ranks[r].in, line, len);
}

/* What rank 0 prints: its card goes to the others, what a login prints before it to stderr, and all
 * that follows to stdout. */
static void hosts_relay(struct hosts_rank *ranks, unsigned size)
{
    FILE *from = fdopen(ranks[0].out, "r");
    char *line = NULL, chunk[1 << 14];
    size_t cap = 0, n;
    ssize_t len;
    bool card = false;
    while (from && !card && (len = getline(&line, &cap, from)) >= 0) {
        card = strncmp(line, HOSTS_CARD, strlen(HOSTS_CARD)) == 0;
        if (card)
            hosts_pass(ranks, size, line, (size_t)len);
        else
            (void)!write(STDERR_FILENO, line, (size_t)len);
    }
    free(line);
    while (from && (n = fread(chunk, 1, sizeof chunk, from)) > 0) {
        (void)fwrite(chunk, 1, n, stdout);
        (void)fflush(stdout);
    }
    if (from)
        fclose(from);
    else
        close(ranks[0].out);
    ranks[0].out = -1;
}

/* Waits for all, rank 0 first. */
static void hosts_wait(struct hosts_rank *ranks, unsigned size)
{
    uint64_t end = 0;
    for (unsigned r = 0; r < size; r++) {
        while (ranks[r].pid > 0) {
            pid_t got = waitpid(ranks[r].pid, &ranks[r].status, end ? WNOHANG : 0);
            struct timespec nap = {.tv_nsec = 20000000};
            if (got == ranks[r].pid || (got < 0 && errno != EINTR))
                ranks[r].pid = 0;
            else if (end && (uint64_t)(shk_clock_s() * 1e3) > end)
                (void)kill(ranks[r].pid, SIGKILL);
            if (ranks[r].pid > 0 && end)
                (void)nanosleep(&nap, NULL);
        }
        if (r == 0)
            end = (uint64_t)(shk_clock_s() * 1e3) + HOSTS_END_MS;
    }
}

static int hosts_all(struct hosts_rank *ranks, const json_t *hosts, const char *command,
                     unsigned deadline_ms, int *code_p, struct shk_error *err)
{
    unsigned size = (unsigned)json_array_size(hosts), started = 0;
    int rc = 0;
    for (; !rc && started < size; started++)
        rc = hosts_start(&ranks[started], json_string_value(json_array_get(hosts, started)),
                         command, deadline_ms, started == 0, err);
    if (rc) {
        for (unsigned r = 0; r < started; r++)
            if (ranks[r].pid > 0)
                (void)kill(ranks[r].pid, SIGTERM);
        return rc;
    }
    hosts_introduce(ranks, hosts);
    hosts_relay(ranks, size);
    for (unsigned r = 0; r < size; r++)
        close(ranks[r].in); /* who still waits for a card need not any longer */
    hosts_wait(ranks, size);
    *code_p = WIFEXITED(ranks[0].status) ? WEXITSTATUS(ranks[0].status) : 255;
    if (*code_p == 255) {
        *code_p = 1;
        return shk_error_set(err, EHOSTUNREACH,
                             "rank 0 did not start on %s, or the connection broke: ssh ended with "
                             "255; nothing was tested",
                             json_string_value(json_array_get(hosts, 0)));
    }
    return 0;
}

int shk_hosts_run(const char *path, unsigned deadline_ms, int *code_p, struct shk_error *err)
{
    json_t *hosts = NULL;
    int rc = shk_hosts_read(path, &hosts, err);
    if (rc)
        return rc;
    char *command = hosts_command();
    struct hosts_rank *ranks = calloc(json_array_size(hosts), sizeof *ranks);
    *code_p = 1;
    rc = command && ranks && *command
             ? hosts_all(ranks, hosts, command, deadline_ms, code_p, err)
             : shk_error_set(err, ENOMEM,
                             "--hosts: this program's own path and arguments cannot be read from "
                             "/proc, or cannot be quoted for a shell");
    free(ranks);
    free(command);
    json_decref(hosts);
    return rc;
}

/* A line from stdin, byte by byte: what follows it is for somebody else. */
static int hosts_hear_line(char **line_p, unsigned deadline_ms, struct shk_error *err)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    uint64_t end = (uint64_t)(shk_clock_s() * 1e3) + deadline_ms;
    int rc = 0;
    for (bool whole = false; !rc && !whole;) {
        struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
        uint64_t now = (uint64_t)(shk_clock_s() * 1e3);
        char c = 0;
        if (now >= end || poll(&ready, 1, (int)(end - now)) == 0) {
            rc = shk_error_set(err, ETIMEDOUT,
                               "nothing on stdin from the shakedown that --hosts "
                               "started this one from");
            break;
        }
        ssize_t n = read(STDIN_FILENO, &c, 1);
        whole = n == 1 && c == '\n';
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN) || line.len > HOSTS_LINE)
            rc = shk_error_set(err, EPIPE,
                               "the shakedown that --hosts started this one from is "
                               "gone");
        if (n == 1 && !whole)
            shk_strbuf_putc(&line, c);
    }
    *line_p = rc ? NULL : shk_strbuf_take(&line);
    shk_strbuf_free(&line);
    return rc || *line_p ? rc : shk_error_set(err, ENOMEM, "out of memory");
}

static int hosts_take_rank(struct shk_meet *meet, char *line)
{
    unsigned local = 0;
    char *save = NULL;
    const char *word = NULL;
    unsigned *slot[] = {&meet->rank, &meet->size, &local, &meet->local_size};
    if (strncmp(line, HOSTS_RANK, strlen(HOSTS_RANK)) != 0)
        return -EPROTO;
    word = strtok_r(line + strlen(HOSTS_RANK), " ", &save);
    for (unsigned i = 0; i < 4; i++, word = strtok_r(NULL, " ", &save))
        if (!word || !shk_meet_number(word, slot[i]))
            return -EPROTO;
    if (meet->rank >= meet->size || meet->size > SHK_HOSTS_MOST)
        return -EPROTO;
    meet->local_rank = (int)local;
    if (!word)
        return 0;
    meet->hosts = json_array();
    for (; word; word = strtok_r(NULL, " ", &save)) {
        const char *at = strrchr(word, '@');
        if (json_array_append_new(meet->hosts, json_string(at ? at + 1 : word)))
            return -ENOMEM;
    }
    return 0;
}

int shk_hosts_hear(struct shk_meet *meet, unsigned deadline_ms, struct shk_error *err)
{
    char *line = NULL;
    int rc = hosts_hear_line(&line, deadline_ms, err);
    if (rc)
        return rc;
    rc = hosts_take_rank(meet, line);
    free(line);
    return rc ? shk_error_set(err, -rc,
                              "--rendezvous stdin is what --hosts uses; stdin has no "
                              "rank")
              : 0;
}

int shk_hosts_tell(const char *card, struct shk_error *err)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    shk_strbuf_printf(&line, HOSTS_CARD "%s\n", card);
    ssize_t n = line.failed ? -1 : write(STDOUT_FILENO, line.data, line.len);
    int rc = n == (ssize_t)line.len ? 0 : shk_error_sys(err, EPIPE, "stdout");
    shk_strbuf_free(&line);
    return rc;
}

int shk_hosts_card(char **card_p, unsigned deadline_ms, struct shk_error *err)
{
    char *line = NULL;
    int rc = hosts_hear_line(&line, deadline_ms, err);
    *card_p = NULL;
    if (rc)
        return rc;
    if (strncmp(line, HOSTS_CARD, strlen(HOSTS_CARD)) == 0)
        *card_p = strdup(line + strlen(HOSTS_CARD));
    free(line);
    return *card_p ? 0 : shk_error_set(err, EPROTO, "stdin has no address of rank 0");
}
