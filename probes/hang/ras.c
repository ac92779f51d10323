#include "probes/hang/ras.h"
#include "core/facts/facts.h"
#include "core/run/clock.h"
#include "core/run/drop.h"
#include "core/run/isolate.h"
#include "core/text/strbuf.h"
#include "probes/hang/hang_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The service collects from all nodes, for at most the seconds that we grant it. */
enum {
    RAS_PORT = 28028,
    RAS_GRANT_S = 3,
    RAS_WAIT_S = 6,
    RAS_CPU_S = 5,
    RAS_ROWS = 65536,
    RAS_SERVICES = 4
};

unsigned shk_ras_port(const char *address)
{
    if (!address || !*address)
        return RAS_PORT;
    static const char *const hosts[] = {"localhost:", "127.0.0.1:", "[::1]:"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        size_t length = strlen(hosts[i]);
        char *end;
        if (strncmp(address, hosts[i], length) != 0)
            continue;
        unsigned long port = strtoul(address + length, &end, 10);
        return *end || port > 65535 ? 0 : (unsigned)port;
    }
    return 0;
}

struct ras_parser {
    json_t *counts, *dead, *version;
    char communicator[64];
    json_t *groups; /* of the counts being read; NULL: none */
    json_t *known;  /* of the group being read */
    size_t rows;
};

static json_t *ras_text(const char *text)
{
    return shk_json_text(text, strlen(text));
}

static void ras_group(struct ras_parser *p, long long count, long long ranks)
{
    p->known = json_array();
    json_array_append_new(p->groups, json_pack("{s:I,s:I,s:o}", "count", (json_int_t)count, "ranks",
                                               (json_int_t)ranks, "known", p->known));
}

/* "… managed by process 620 on node 192.0.2.2" behind the number of a rank. */
static void ras_known(struct ras_parser *p, long rank, const char *line)
{
    const char *process = strstr(line, "managed by process ");
    long pid = -1;
    char node[64] = "";
    if (process && sscanf(process, "managed by process %ld on node %63s", &pid, node) < 1)
        pid = -1;
    json_t *one = json_pack("{s:I}", "rank", (json_int_t)rank);
    if (pid > 0)
        json_object_set_new(one, "pid", json_integer(pid));
    if (*node)
        json_object_set_new(one, "node", ras_text(node));
    json_array_append_new(p->known, one);
}

/* A line of the counts of one operation. */
static void ras_count_line(struct ras_parser *p, const char *line)
{
    long rank;
    long long ranks, count;
    int at = 0;
    if (sscanf(line, " %lld ranks have launched up to operation %lld", &ranks, &count) == 2)
        ras_group(p, count, ranks);
    else if (sscanf(line, " %lld ranks have not launched any operation%n", &ranks, &at) == 1 && at)
        ras_group(p, 0, ranks);
    else if (sscanf(line, " Rank %ld has launched up to operation %lld", &rank, &count) == 2) {
        ras_group(p, count, 1);
        ras_known(p, rank, line);
    } else if (sscanf(line, " Rank %ld has not launched any operation%n", &rank, &at) == 1 && at) {
        ras_group(p, 0, 1);
        ras_known(p, rank, line);
    } else if (p->known && sscanf(line, " Rank %ld --%n", &rank, &at) == 1 && at) {
        ras_known(p, rank, line);
    } else {
        p->groups = p->known = NULL;
    }
}

static void ras_line(struct ras_parser *p, const char *line)
{
    char word[64];
    long pid;
    int at = 0;
    if (sscanf(line, " #%*d-%*d (%63[0-9a-fA-F])", p->communicator) == 1) {
        p->groups = p->known = NULL;
    } else if (sscanf(line, " Communicator ranks have different %63s operation counts%n", word,
                      &at) == 1 &&
               at) {
        p->groups = json_array();
        p->known = NULL;
        json_array_append_new(p->counts,
                              json_pack("{s:o,s:o,s:o}", "communicator", ras_text(p->communicator),
                                        "operation", ras_text(word), "groups", p->groups));
    } else if (!p->version && sscanf(line, "NCCL version %63s", word) == 1) {
        p->version = ras_text(word);
    } else if (sscanf(line, " Process %ld on node %63s managing GPU%n", &pid, word, &at) == 2 &&
               at) {
        json_array_append_new(
            p->dead, json_pack("{s:I,s:o}", "pid", (json_int_t)pid, "node", ras_text(word)));
    } else if (p->groups) {
        ras_count_line(p, line);
    }
}

json_t *shk_ras_parse(const char *text, size_t length)
{
    struct ras_parser p = {.counts = json_array(), .dead = json_array()};
    size_t at = 0;
    length = length < SHK_RAS_MAX ? length : SHK_RAS_MAX;
    while (at < length && p.rows++ < RAS_ROWS) {
        char line[512];
        const char *end = memchr(text + at, '\n', length - at);
        size_t whole = end ? (size_t)(end - (text + at)) : length - at;
        size_t part = whole < sizeof line - 1 ? whole : sizeof line - 1;
        memcpy(line, text + at, part);
        line[part] = '\0';
        ras_line(&p, line);
        at += whole + 1;
    }
    json_t *answer = json_pack("{s:o,s:o}", "counts", p.counts, "dead", p.dead);
    if (p.version)
        json_object_set_new(answer, "version", p.version);
    return answer;
}

static int ras_connect(unsigned port, int *fd_p, struct shk_error *err)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return shk_error_sys(err, errno, "socket");
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) {
        int rc = shk_error_sys(err, errno, "NCCL's RAS service at 127.0.0.1:%u", port);
        close(fd);
        return rc;
    }
    *fd_p = fd;
    return 0;
}

/* Reads to the end, or until the time is over; without poll(), which the limit on files forbids. */
static void ras_read(int fd, struct shk_strbuf *text)
{
    double until = shk_clock_s() + RAS_WAIT_S;
    char chunk[16384];
    for (double left; (left = until - shk_clock_s()) > 0 && text->len < SHK_RAS_MAX;) {
        struct timeval wait = {.tv_sec = (time_t)left, .tv_usec = 100000};
        if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait))
            return;
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got <= 0)
            return;
        shk_strbuf_add(text, chunk, (size_t)got);
    }
}

int shk_ras_ask(unsigned port, json_t **answer_p, struct shk_error *err)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    char ask[96];
    int fd = -1, rc = ras_connect(port, &fd, err);
    if (!rc && (rc = shk_drop_rights(RAS_CPU_S, err)))
        close(fd);
    if (rc)
        return rc;
    int length =
        snprintf(ask, sizeof ask, "CLIENT PROTOCOL 2\nTIMEOUT %d\nVERBOSE STATUS\n", RAS_GRANT_S);
    if (send(fd, ask, (size_t)length, MSG_NOSIGNAL) != length)
        rc = shk_error_sys(err, errno, "NCCL's RAS service at 127.0.0.1:%u", port);
    else
        ras_read(fd, &text);
    close(fd);
    /* who else listens there says something else */
    if (!rc && !strstr(shk_strbuf_text(&text), "SERVER PROTOCOL"))
        rc = shk_error_set(err, EPROTO, "port %u of this host: not NCCL's RAS service", port);
    if (!rc)
        *answer_p = shk_ras_parse(shk_strbuf_text(&text), text.len);
    shk_strbuf_free(&text);
    return rc;
}

static int ras_run(void *arg, json_t **result_p, struct shk_error *err)
{
    return shk_ras_ask(*(const unsigned *)arg, result_p, err);
}

json_t *hang_ras(const struct hang_process *processes, size_t count)
{
    unsigned ports[RAS_SERVICES];
    size_t known = 0;
    for (size_t i = 0; i < count && known < RAS_SERVICES; i++) {
        bool seen = !processes[i].ras_port;
        for (size_t k = 0; k < known; k++)
            seen = seen || ports[k] == processes[i].ras_port;
        if (!seen)
            ports[known++] = processes[i].ras_port;
    }
    json_t *list = known ? json_array() : NULL;
    for (size_t k = 0; k < known; k++) {
        struct shk_isolate_job job = {
            .name = "ras", .fn = ras_run, .arg = &ports[k], .deadline_ms = (RAS_WAIT_S + 4) * 1000};
        struct shk_isolate_result result = {0};
        struct shk_error err = {""};
        json_t *one = json_pack("{s:i}", "port", (int)ports[k]);
        if (!shk_isolate_run(&job, &result, 1, 1, &err) && result.outcome == SHK_CHILD_OK)
            json_object_set(one, "answer", result.result);
        else
            json_object_set_new(one, "unread", ras_text(*err.text ? err.text : result.error.text));
        json_array_append_new(list, one);
        shk_isolate_result_clear(&result);
    }
    return list;
}
