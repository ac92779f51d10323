#include "collectives/meet/pmi.h"
#include "collectives/meet/meet.h"
#include "core/facts/facts.h"
#include "core/run/clock.h"
#include "core/run/isolate.h"
#include "core/text/uses.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PMI_KEY "shakedown-card"
/* For the last word to a manager that did not answer in time. */
#define PMI_LEAVE_MS 1000

struct pmi_wire {
    int fd;
    double end_ms;
    char line[SHK_PMI_LINE + 1]; /* the last answer, */
    char more[SHK_PMI_LINE];     /* and what came after it */
    size_t have;
    const char *doing;
    struct shk_error *err;
};

static int pmi_wait(struct pmi_wire *wire, short events)
{
    struct pollfd ready = {.fd = wire->fd, .events = events};
    double left = wire->end_ms - shk_clock_s() * 1e3;
    int n = left > 0 ? poll(&ready, 1, (int)left + 1) : 0;
    if (n < 0 && errno == EINTR)
        return 0;
    if (n < 0)
        return shk_error_sys(wire->err, errno, "PMI: %s", wire->doing);
    return n > 0
               ? 0
               : shk_error_set(wire->err, ETIMEDOUT, "PMI: no answer to %s in time%s", wire->doing,
                               strcmp(wire->doing, "barrier_in") == 0
                                   ? ": a task of the job did not reach the barrier, and PMI does "
                                     "not say which"
                                   : "");
}

static int pmi_send(struct pmi_wire *wire, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = send(wire->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == ENOTSOCK)
            n = write(wire->fd, text, len);
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return shk_error_sys(wire->err, errno, "PMI: %s", wire->doing);
        } else {
            int rc = pmi_wait(wire, POLLOUT);
            if (rc)
                return rc;
        }
    }
    return 0;
}

/* The next line into wire->line. */
static int pmi_line(struct pmi_wire *wire)
{
    for (;;) {
        char *end = memchr(wire->more, '\n', wire->have);
        if (end) {
            size_t len = (size_t)(end - wire->more);
            memcpy(wire->line, wire->more, len);
            wire->line[len] = '\0';
            wire->have -= len + 1;
            memmove(wire->more, end + 1, wire->have);
            return strlen(wire->line) == len
                       ? 0
                       : shk_error_set(wire->err, EPROTO, "PMI: the answer to %s is not text",
                                       wire->doing);
        }
        if (wire->have == sizeof wire->more)
            return shk_error_set(wire->err, EPROTO, "PMI: the answer to %s has no end",
                                 wire->doing);
        int rc = pmi_wait(wire, POLLIN);
        if (rc)
            return rc;
        ssize_t n = read(wire->fd, wire->more + wire->have, sizeof wire->more - wire->have);
        if (n == 0)
            return shk_error_set(wire->err, EPIPE, "PMI: the process manager hung up at %s",
                                 wire->doing);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return shk_error_sys(wire->err, errno, "PMI: %s", wire->doing);
        wire->have += n > 0 ? (size_t)n : 0;
    }
}

/* The value of a key in the last answer, up to the next blank; false: it has none. */
static bool pmi_value(const struct pmi_wire *wire, const char *key, char *buf, size_t size)
{
    size_t len = strlen(key);
    for (const char *at = wire->line; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strncmp(at, key, len) == 0 && at[len] == '=') {
            size_t n = strcspn(at + len + 1, " ");
            if (n >= size)
                return false;
            memcpy(buf, at + len + 1, n);
            buf[n] = '\0';
            return true;
        }
    return false;
}

/* Sends a command and takes the answer of this name; rc, if there is one, must be 0. */
static int pmi_ask(struct pmi_wire *wire, const char *answer, const char *fmt, ...)
    SHK_PRINTF(3, 4);
static int pmi_ask(struct pmi_wire *wire, const char *answer, const char *fmt, ...)
{
    char text[SHK_PMI_LINE], name[64], code[32];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text)
        return shk_error_set(wire->err, EMSGSIZE, "PMI: %s is too long", wire->doing);
    int rc = pmi_send(wire, text, (size_t)n);
    rc = rc ? rc : pmi_line(wire);
    if (rc)
        return rc;
    if (!pmi_value(wire, "cmd", name, sizeof name) || strcmp(name, answer) != 0)
        return shk_error_set(wire->err, EPROTO, "PMI: %s was answered with '%.60s'", wire->doing,
                             wire->line);
    if (pmi_value(wire, "rc", code, sizeof code) && strcmp(code, "0") != 0)
        return shk_error_set(wire->err, ENOENT, "PMI: %s failed: '%.60s'", wire->doing, wire->line);
    return 0;
}

/* A process that connected itself is told who it is: size, rank, debug. */
static int pmi_who(struct pmi_wire *wire, int id, struct shk_pmi *pmi)
{
    bool size = false, rank = false;
    char text[32];
    wire->doing = "initack";
    int rc = pmi_ask(wire, "initack", "cmd=initack pmiid=%d\n", id);
    for (unsigned i = 0; !rc && i < 8 && !(size && rank); i++) {
        rc = pmi_line(wire);
        if (!rc && pmi_value(wire, "size", text, sizeof text))
            size = shk_meet_number(text, &pmi->size);
        if (!rc && pmi_value(wire, "rank", text, sizeof text))
            rank = shk_meet_number(text, &pmi->rank);
    }
    if (!rc && !(size && rank))
        rc = shk_error_set(wire->err, EPROTO, "PMI: the process manager does not say the rank");
    if (!rc)
        rc = pmi_line(wire); /* debug */
    return rc;
}

static int pmi_fetch(struct pmi_wire *wire, const char *space, struct shk_pmi *pmi)
{
    char card[SHK_PMI_CARD + 1];
    wire->doing = "get";
    int rc = pmi_ask(wire, "get_result", "cmd=get kvsname=%s key=" PMI_KEY "\n", space);
    if (rc)
        return rc;
    if (!pmi_value(wire, "value", card, sizeof card) || !*card)
        return shk_error_set(wire->err, EPROTO, "PMI: rank 0 put no address");
    pmi->card = strdup(card);
    return pmi->card ? 0 : shk_error_set(wire->err, ENOMEM, "out of memory");
}

int shk_pmi_exchange(int fd, int id, const char *card, unsigned deadline_ms, struct shk_pmi *pmi,
                     struct shk_error *err)
{
    struct pmi_wire wire = {.fd = fd, .end_ms = shk_clock_s() * 1e3 + deadline_ms, .err = err};
    int rc = id >= 0 ? pmi_who(&wire, id, pmi) : 0;
    wire.doing = "init";
    rc = rc ? rc : pmi_ask(&wire, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1\n");
    wire.doing = "get_my_kvsname";
    rc = rc ? rc : pmi_ask(&wire, "my_kvsname", "cmd=get_my_kvsname\n");
    if (!rc && (!pmi_value(&wire, "kvsname", pmi->space, sizeof pmi->space) || !*pmi->space))
        rc = shk_error_set(err, EPROTO, "PMI: the process manager has no space for keys");
    wire.doing = "put";
    if (!rc && pmi->rank == 0)
        rc = pmi_ask(&wire, "put_result", "cmd=put kvsname=%s key=" PMI_KEY " value=%s\n",
                     pmi->space, card);
    wire.doing = "barrier_in";
    rc = rc ? rc : pmi_ask(&wire, "barrier_out", "cmd=barrier_in\n");
    if (!rc && pmi->rank != 0)
        rc = pmi_fetch(&wire, pmi->space, pmi);
    pmi->late = rc == -ETIMEDOUT && strcmp(wire.doing, "barrier_in") == 0;
    if (pmi->late) {
        struct shk_error unused = {""};
        wire.err = &unused;
        wire.end_ms = shk_clock_s() * 1e3 + PMI_LEAVE_MS;
        (void)pmi_ask(&wire, "finalize_ack", "cmd=finalize\n");
    }
    wire.doing = "finalize";
    rc = rc ? rc : pmi_ask(&wire, "finalize_ack", "cmd=finalize\n");
    return rc;
}

/* HOST:PORT */
static int pmi_connect(const char *where, unsigned deadline_ms, struct shk_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *info = NULL;
    const char *colon = strrchr(where, ':');
    char host[256];
    (void)deadline_ms; /* of the child, which connect() does not outlive */
    snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - where) : 0, where);
    int rc = colon ? getaddrinfo(host, colon + 1, &hints, &info) : EAI_NONAME;
    if (rc)
        return shk_error_set(err, EHOSTUNREACH, "PMI: %s: %s", where, gai_strerror(rc));
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    rc = fd < 0 || connect(fd, info->ai_addr, info->ai_addrlen) ? -errno : 0;
    freeaddrinfo(info);
    if (!rc)
        return fd;
    if (fd >= 0)
        close(fd);
    return shk_error_sys(err, -rc, "PMI: %s", where);
}

struct pmi_task {
    const char *card;
    unsigned rank, size, deadline_ms;
};

static int pmi_child(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct pmi_task *task = arg;
    struct shk_pmi pmi = {.rank = task->rank, .size = task->size};
    const char *port = getenv(shk_variable("pmi-port")), *id = getenv(shk_variable("pmi-id"));
    unsigned number = 0;
    int fd, rc;
    shk_crumb_call("the process manager's socket (PMI)");
    if (shk_meet_number(getenv(shk_variable("pmi2-socket")), &number)) {
        rc = shk_pmi_exchange((int)number, -1, task->card, task->deadline_ms, &pmi, err);
    } else {
        fd = pmi_connect(port ? port : "", task->deadline_ms, err);
        if (fd < 0)
            return fd;
        number = 0;
        (void)shk_meet_number(id, &number);
        rc = shk_pmi_exchange(fd, (int)number, task->card, task->deadline_ms, &pmi, err);
        close(fd);
    }
    *result_p = json_pack("{s:i, s:i, s:s*, s:b, s:s}", "rank", (int)pmi.rank, "size",
                          (int)pmi.size, "card", pmi.card, "late", pmi.late, "space", pmi.space);
    free(pmi.card);
    return rc;
}

int shk_pmi_join(struct shk_pmi *pmi, const char *card, unsigned deadline_ms, struct shk_error *err)
{
    struct pmi_task task = {
        .card = card, .rank = pmi->rank, .size = pmi->size, .deadline_ms = deadline_ms};
    struct shk_isolate_job job = {.name = "PMI",
                                  .fn = pmi_child,
                                  .arg = &task,
                                  .deadline_ms = deadline_ms + 2 * PMI_LEAVE_MS};
    struct shk_isolate_result result;
    int rank = -1, size = -1, rc = shk_isolate_run(&job, &result, 1, 1, err);
    const char *text = NULL;
    if (rc)
        return rc;
    pmi->late = json_is_true(json_object_get(result.result, "late"));
    const char *space = json_string_value(json_object_get(result.result, "space"));
    snprintf(pmi->space, sizeof pmi->space, "%s", space ? space : "");
    if (result.outcome != SHK_CHILD_OK) {
        *err = result.error;
        rc = -EPROTO;
    } else if (json_unpack(result.result, "{s:i, s:i, s?s}", "rank", &rank, "size", &size, "card",
                           &text) ||
               rank != (int)pmi->rank || (pmi->size > 0 && size != (int)pmi->size)) {
        rc = shk_error_set(err, EPROTO,
                           "PMI: rank %d of %d in its answers, %u of %u in its "
                           "variables",
                           rank, size, pmi->rank, pmi->size);
    } else if (text && !(pmi->card = strdup(text))) {
        rc = shk_error_set(err, ENOMEM, "out of memory");
    } else {
        pmi->size = (unsigned)size;
    }
    shk_isolate_result_clear(&result);
    return rc;
}
