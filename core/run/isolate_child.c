#include "core/run/isolate_private.h"
#include "core/run/stop.h"
#include "core/run/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char *crumb_library, *crumb_call;
enum { CRUMB_SIZE = 128 };

void shk_crumb_attach(char *library, char *call)
{
    crumb_library = library;
    crumb_call = call;
}

void shk_crumb_library(const char *library)
{
    if (crumb_library)
        snprintf(crumb_library, CRUMB_SIZE, "%s", library);
}

void shk_crumb_call(const char *callf, ...)
{
    if (!crumb_call)
        return;
    va_list args;
    va_start(args, callf);
    vsnprintf(crumb_call, CRUMB_SIZE, callf, args);
    va_end(args);
}

void shk_crumb_clear(void)
{
    if (crumb_library)
        *crumb_library = '\0';
    if (crumb_call)
        *crumb_call = '\0';
}

/* Result frame: this header, the error text, the value (core/run/tree.h). */
struct frame {
    uint32_t magic;
    int32_t rc;
    uint64_t value_len;
    char error[sizeof(((struct shk_error *)0)->text)];
};
enum { FRAME_MAGIC = 0x53484b32 };

static void child_write(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        p += n;
        len -= (size_t)n;
    }
}

static void child_setup(pid_t parent, int output_fd)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    for (int sig = 1; sig < 32; sig++)
        signal(sig, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(output_fd, STDOUT_FILENO);
    dup2(output_fd, STDERR_FILENO);
}

/* What was sent is not freed, which takes as long as sending it: the process ends. It is known
 * here, so that for valgrind it is no lost block. */
static json_t *volatile child_kept;

void shk_isolate_child_main(const struct shk_isolate_job *job, struct isolate_crumb *crumb,
                            pid_t parent, int result_fd, int output_fd)
{
    child_setup(parent, output_fd);
    shk_crumb_attach(crumb->library, crumb->call);
    struct shk_error err = {""};
    json_t *result = NULL;
    struct frame head = {.magic = FRAME_MAGIC, .rc = job->fn(job->arg, &result, &err)};
    shk_crumb_clear();
    fflush(stdout);
    fflush(stderr);
    struct shk_strbuf value = SHK_STRBUF_INIT;
    if (result)
        shk_tree_write(&value, result);
    head.value_len = value.failed ? 0 : value.len;
    memcpy(head.error, err.text, sizeof head.error);
    child_write(result_fd, &head, sizeof head);
    child_write(result_fd, value.data, head.value_len);
    shk_strbuf_free(&value);
    child_kept = result;
    _exit(0);
}

/* True when the whole frame arrived. */
static bool conclude_frame(struct isolate_child *child, struct shk_isolate_result *result,
                           int *rc_p)
{
    struct frame head;
    if (child->result.failed || child->result.len < sizeof head)
        return false;
    memcpy(&head, child->result.data, sizeof head);
    if (head.magic != FRAME_MAGIC || head.value_len != child->result.len - sizeof head)
        return false;
    if (head.value_len && shk_tree_read(child->result.data + sizeof head, (size_t)head.value_len,
                                        &result->result) != 0)
        return false;
    memcpy(result->error.text, head.error, sizeof head.error);
    result->error.text[sizeof head.error - 1] = '\0';
    *rc_p = head.rc;
    return true;
}

static const char *conclude_where(const struct shk_isolate_result *r, char *buf, size_t size)
{
    if (!*r->library && !*r->call)
        return "";
    snprintf(buf, size, " in %s%s%s", r->library, *r->library && *r->call ? ": " : "", r->call);
    return buf;
}

static void conclude_starved(const struct isolate_child *child, const char *where,
                             struct shk_isolate_result *result)
{
    double ms = child->killed_at - child->started;
    result->outcome = SHK_CHILD_STARVED;
    shk_error_set(&result->error, EAGAIN,
                  "%s: the node was too busy: it got %.1f s of processor time in %.1f s and waited "
                  "%.1f s for it%s",
                  child->job->name, child->share.ran / 1e3, ms / 1e3,
                  shk_isolate_share_waited(&child->share, ms) / 1e3, where);
}

static void conclude_death(const struct isolate_child *child, int status,
                           struct shk_isolate_result *result)
{
    char buf[300];
    const char *name = child->job->name;
    const char *where = conclude_where(result, buf, sizeof buf);
    if (child->killed && child->why == SHK_CHILD_TIMEOUT) {
        result->outcome = SHK_CHILD_TIMEOUT;
        shk_error_set(&result->error, ETIMEDOUT, "%s: no answer after %u ms%s", name,
                      child->deadline_ms, where);
    } else if (child->killed && child->why == SHK_CHILD_STARVED) {
        conclude_starved(child, where, result);
    } else if (child->killed && child->why == SHK_CHILD_NOT_RUN) {
        result->outcome = SHK_CHILD_NOT_RUN;
        shk_error_set(&result->error, EINTR, "%s: interrupted by %s%s", name, shk_stop_name(),
                      where);
    } else if (child->killed) {
        size_t limit = child->job->memory_limit ? child->job->memory_limit : SHK_ISOLATE_MEMORY;
        result->outcome = SHK_CHILD_MEMORY;
        shk_error_set(&result->error, ENOMEM, "%s: took more than %zu MiB of memory%s", name,
                      limit >> 20, where);
    } else if (WIFSIGNALED(status)) {
        result->outcome = SHK_CHILD_SIGNALED;
        result->code = WTERMSIG(status);
        char sig[32];
        shk_error_set(&result->error, EFAULT, "%s: died of %s%s", name,
                      shk_signal_name(result->code, sig, sizeof sig), where);
    } else {
        result->outcome = SHK_CHILD_EXITED;
        result->code = WEXITSTATUS(status);
        shk_error_set(&result->error, ECHILD, "%s: called exit(%d) by itself%s", name, result->code,
                      where);
    }
}

void shk_isolate_conclude(struct isolate_child *child, int status, double ms,
                          struct shk_isolate_result *result)
{
    int rc = 0;
    result->ms = ms;
    memcpy(result->library, child->crumb->library, sizeof result->library);
    memcpy(result->call, child->crumb->call, sizeof result->call);
    result->library[sizeof result->library - 1] = '\0';
    result->call[sizeof result->call - 1] = '\0';
    if (child->output.len)
        result->output = shk_strbuf_take(&child->output);
    if (conclude_frame(child, result, &rc)) {
        result->outcome = rc ? SHK_CHILD_FAILED : SHK_CHILD_OK;
        if (rc && !*result->error.text)
            shk_error_sys(&result->error, -rc, "%s", child->job->name);
        return;
    }
    conclude_death(child, status, result);
}
