#include "cli/session/reach.h"
#include "core/facts/facts.h"
#include "core/run/command.h"
#include "core/text/quote.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REACH_OUTPUT ((size_t)48 << 20) /* below what isolate takes from a child */

int shk_reach_begin(struct shk_reach *reach, enum shk_reach_way way, struct shk_error *err)
{
    *reach = (struct shk_reach){.way = way, .names = json_object()};
    if (way == SHK_REACH_PODS ||
        readlink("/proc/self/exe", reach->program, sizeof reach->program - 1) <= 0)
        strcpy(reach->program, "shakedown");
    return reach->names ? 0 : shk_error_sys(err, ENOMEM, "nodes");
}

void shk_reach_end(struct shk_reach *reach)
{
    json_decref(reach->names);
    free(reach->space);
    reach->space = NULL;
    reach->names = NULL;
}

static size_t reach_add(struct shk_reach_call *call, size_t n, const char *word)
{
    if (n + 1 < SHK_REACH_WORDS && word)
        call->argv[n++] = word;
    return n;
}

static void reach_add_all(struct shk_reach_call *call, size_t n, const char *program,
                          const char *const *words)
{
    n = reach_add(call, n, program);
    for (; *words; words++)
        n = reach_add(call, n, *words);
    call->argv[n] = NULL;
}

static int reach_ssh(struct shk_reach_call *call, const struct shk_reach *reach, const char *host,
                     const char *const *words)
{
    static const char *const ssh[] = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
                                      "--"};
    struct shk_strbuf line = SHK_STRBUF_INIT;
    for (const char *word = reach->program; word; word = *words++) {
        char *quoted = shk_quote(SHK_QUOTE_SH, word);
        shk_strbuf_printf(&line, "%s%s", line.len ? " " : "", quoted ? quoted : "");
        line.failed |= !quoted;
        free(quoted);
    }
    size_t n = 0;
    for (size_t i = 0; i < sizeof ssh / sizeof *ssh; i++)
        n = reach_add(call, n, ssh[i]);
    n = reach_add(call, n, host);
    call->text = shk_strbuf_take(&line);
    n = reach_add(call, n, call->text);
    call->argv[n] = NULL;
    return call->text ? 0 : -ENOMEM;
}

/* "4711" of "4711.0" is what Slurm's tools take. */
static int reach_srun(struct shk_reach_call *call, const struct shk_reach *reach, const char *host,
                      unsigned count, const char *const *words)
{
    int length = (int)strcspn(reach->job, ".");
    call->text = shk_strf("%.*s%c--nodes=%u%c--ntasks=%u", length, reach->job, 0, count, 0, count);
    if (!call->text)
        return -ENOMEM;
    const char *nodes = call->text + strlen(call->text) + 1, *tasks = nodes + strlen(nodes) + 1;
    const char *const srun[] = {"srun", "--overlap", "--jobid",    call->text, nodes,
                                tasks,  "--quiet",   "--nodelist", host};
    size_t n = 0;
    for (size_t i = 0; i < sizeof srun / sizeof *srun; i++)
        n = reach_add(call, n, srun[i]);
    reach_add_all(call, n, reach->program, words);
    return 0;
}

static int reach_pod(struct shk_reach_call *call, const struct shk_reach *reach, const char *pod,
                     const char *const *words)
{
    size_t n = reach_add(call, 0, "kubectl");
    n = reach_add(call, n, "exec");
    n = reach_add(call, n, reach->space ? "--namespace" : NULL);
    n = reach_add(call, n, reach->space);
    n = reach_add(call, n, pod);
    n = reach_add(call, n, reach->container ? "--container" : NULL);
    n = reach_add(call, n, reach->container);
    n = reach_add(call, n, "--");
    reach_add_all(call, n, reach->program, words);
    return 0;
}

int shk_reach_call(struct shk_reach_call *call, const struct shk_reach *reach, const char *host,
                   unsigned count, const char *const *words)
{
    *call = (struct shk_reach_call){.text = NULL};
    switch (reach->way) {
    case SHK_REACH_SRUN: return reach_srun(call, reach, host, count, words);
    case SHK_REACH_SSH: return reach_ssh(call, reach, host, words);
    case SHK_REACH_PODS: return reach_pod(call, reach, host, words);
    default: reach_add_all(call, 0, reach->program, words); return 0;
    }
}

void shk_reach_call_end(struct shk_reach_call *call)
{
    free(call->text);
    call->text = NULL;
}

int shk_reach_run(const struct shk_reach_call *call, bool whole, json_t **result_p,
                  struct shk_error *err)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    int status = 0;
    char *program =
        *call->argv[0] == '/' ? shk_copy(call->argv[0]) : shk_command_find(call->argv[0], NULL);
    int rc = program ? shk_command_output(program, call->argv, REACH_OUTPUT, &out, &status, err)
                     : shk_error_set(err, ENOENT, "there is no %s here", call->argv[0]);
    const char *text = shk_strbuf_text(&out), *start = text;
    /* a shell over there may greet first */
    while (!whole && start && *start && *start != '{')
        start = (start = strchr(start, '\n')) ? start + 1 : NULL;
    if (!rc)
        *result_p = json_pack("{s:o,s:i}", "text",
                              shk_json_text(start ? start : "", start ? strlen(start) : 0), "code",
                              WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    shk_strbuf_free(&out);
    free(program);
    return rc;
}
