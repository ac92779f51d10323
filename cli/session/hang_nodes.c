#include "cli/session/hang_nodes.h"
#include "cli/session/hang_files.h"
#include "collectives/meet/hosts.h"
#include "core/facts/facts.h"
#include "core/run/command.h"
#include "core/run/isolate.h"
#include "core/text/quote.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* As many at once as a login node bears; the looks need not be at the same time, a hang stays. */
enum { NODES_AT_ONCE = 128, NODES_MAX = 16384, NODES_REACH_S = 90, NODES_ASK_MS = 20000 };
enum { NODES_ARGUMENTS = 24 };
#define NODES_OUTPUT ((size_t)48 << 20) /* below what isolate takes from a child */

struct nodes_call {
    const char *argv[NODES_ARGUMENTS];
    const char *host; /* NULL: the output is text */
    char *command;    /* line for ssh, number of the job for srun; owned */
};

struct nodes_hosts {
    char **names;
    size_t count;
};

static void nodes_free(struct nodes_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        free(hosts->names[i]);
    free(hosts->names);
}

static bool nodes_is_host(const char *name)
{
    return isalnum((unsigned char)*name) && strlen(name) < 256 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@:") ==
               strlen(name);
}

static int nodes_name(struct nodes_hosts *hosts, const char *name, const char *from,
                      struct shk_error *err)
{
    if (!nodes_is_host(name))
        return shk_error_set(err, EINVAL, "%s: '%.64s' is not a host name", from, name);
    if (hosts->count == NODES_MAX)
        return shk_error_set(err, EINVAL, "%s: more than %d hosts", from, NODES_MAX);
    char **more = realloc(hosts->names, (hosts->count + 1) * sizeof *more);
    if (more)
        hosts->names = more;
    if (!more || !(more[hosts->count] = strdup(name)))
        return shk_error_sys(err, ENOMEM, "%s", from);
    hosts->count++;
    return 0;
}

/* Names of hosts with white space between. */
static int nodes_parse(char *text, const char *from, struct nodes_hosts *hosts,
                       struct shk_error *err)
{
    char *words = NULL;
    int rc = 0;
    for (char *word = strtok_r(text, " \t\r\n", &words); word && !rc;
         word = strtok_r(NULL, " \t\r\n", &words))
        rc = nodes_name(hosts, word, from, err);
    if (rc)
        return rc;
    return hosts->count ? 0 : shk_error_set(err, EINVAL, "%s: has no name of a host", from);
}

/* In a child: what a node answers, {nodes: [...]}, or {text: "…"} without a host. */
static int nodes_run(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct nodes_call *call = arg;
    struct shk_strbuf out = SHK_STRBUF_INIT;
    int status = 0;
    char *program = shk_command_find(call->argv[0], NULL);
    int rc = program ? shk_command_output(program, call->argv, NODES_OUTPUT, &out, &status, err)
                     : shk_error_set(err, ENOENT, "there is no %s here", call->argv[0]);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    const char *text = shk_strbuf_text(&out), *start = text;
    /* a shell over there may greet first */
    while (start && *start && *start != '{')
        start = (start = strchr(start, '\n')) ? start + 1 : NULL;
    if (!rc && !call->host) {
        *result_p = json_pack("{s:o}", "text", shk_json_text(text, out.len));
        rc = code ? shk_error_set(err, EIO, "%s failed", call->argv[0]) : 0;
    } else if (!rc && start && *start) {
        json_t *nodes = json_array();
        rc = shk_hang_take(start, strlen(start), call->host, nodes, err);
        *result_p = json_pack("{s:o}", "nodes", nodes);
    } else if (!rc) {
        rc = shk_error_set(err, EIO, "%s", code == 127 ? "the program is not there" : "no answer");
    }
    shk_strbuf_free(&out);
    free(program);
    return rc;
}

/* What is the same for each node; the list ends with NULL. Numbers are static texts of *buf. */
static size_t nodes_words(const struct shk_options *options, const char *program, char buf[32],
                          const char **words)
{
    size_t n = 0;
    snprintf(buf, 32, "%ld", options->interval_s);
    words[n++] = program;
    words[n++] = "hang";
    words[n++] = "--here";
    words[n++] = "--format";
    words[n++] = "json";
    words[n++] = "--interval";
    words[n++] = buf;
    if (options->job) {
        words[n++] = "--job";
        words[n++] = options->job;
    }
    if (options->no_stacks)
        words[n++] = "--no-stacks";
    words[n] = NULL;
    return n;
}

static char *nodes_shell(const char *const *words)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    for (; *words; words++) {
        char *word = shk_quote(SHK_QUOTE_SH, *words);
        shk_strbuf_printf(&line, "%s%s", line.len ? " " : "", word ? word : "");
        line.failed |= !word;
        free(word);
    }
    return shk_strbuf_take(&line);
}

static int nodes_call_ssh(struct nodes_call *call, const char *const *words)
{
    const char *const argv[] = {"ssh", "-o",      "BatchMode=yes", "-o", "ConnectTimeout=10",
                                "--",  call->host};
    size_t n = sizeof argv / sizeof *argv;
    memcpy(call->argv, argv, sizeof argv);
    call->command = nodes_shell(words);
    call->argv[n] = call->command;
    return call->command ? 0 : -ENOMEM;
}

/* "4711" of "4711.0": what Slurm's tools take; free(). */
static char *nodes_job(const char *job)
{
    return strndup(job, strcspn(job, "."));
}

static int nodes_call_srun(struct nodes_call *call, const char *job, const char *const *words)
{
    call->command = nodes_job(job);
    const char *const argv[] = {"srun",       "--overlap", "--jobid",    call->command, "--nodes=1",
                                "--ntasks=1", "--quiet",   "--nodelist", call->host};
    size_t n = sizeof argv / sizeof *argv;
    memcpy(call->argv, argv, sizeof argv);
    for (; *words && n + 1 < NODES_ARGUMENTS; words++)
        call->argv[n++] = *words;
    return call->command ? 0 : -ENOMEM;
}

/* The node as it answered, or without ranks and with the reason. */
static void nodes_add(json_t *nodes, const char *host, const struct shk_isolate_result *result)
{
    json_t *got = json_object_get(result->result, "nodes");
    if (result->outcome == SHK_CHILD_OK && json_array_size(got)) {
        json_array_extend(nodes, got);
        return;
    }
    const char *said = result->output ? result->output : "";
    size_t length = strcspn(said, "\n");
    json_t *why = json_sprintf("not looked at: %s%s%.*s", result->error.text, length ? ": " : "",
                               (int)(length < 200 ? length : 200), said);
    if (!why) /* not UTF-8 */
        why = json_sprintf("not looked at: %s", result->error.text);
    json_array_append_new(nodes,
                          json_pack("{s:s,s:[],s:[o]}", "host", host, "ranks", "unread", why));
}

static int nodes_look(const struct shk_options *options, const struct nodes_hosts *hosts, bool srun,
                      json_t *nodes, struct shk_error *err)
{
    char program[4096] = "", interval[32];
    const char *words[NODES_ARGUMENTS];
    size_t n = hosts->count;
    struct nodes_call *calls = calloc(n, sizeof *calls);
    struct shk_isolate_job *jobs = calloc(n, sizeof *jobs);
    struct shk_isolate_result *results = calloc(n, sizeof *results);
    int rc = calls && jobs && results ? 0 : -ENOMEM;
    if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0)
        strcpy(program, "shakedown");
    nodes_words(options, program, interval, words);
    for (size_t i = 0; !rc && i < n; i++) {
        calls[i].host = hosts->names[i];
        rc = srun ? nodes_call_srun(&calls[i], options->job, words)
                  : nodes_call_ssh(&calls[i], words);
        jobs[i] = (struct shk_isolate_job){
            .name = hosts->names[i],
            .fn = nodes_run,
            .arg = &calls[i],
            .deadline_ms = (unsigned)(options->interval_s + NODES_REACH_S) * 1000};
    }
    if (rc)
        shk_error_sys(err, -rc, "hosts");
    rc = rc ? rc : shk_isolate_run(jobs, results, n, NODES_AT_ONCE, err);
    for (size_t i = 0; results && i < n; i++) {
        if (!rc)
            nodes_add(nodes, hosts->names[i], &results[i]);
        shk_isolate_result_clear(&results[i]);
        free(calls ? calls[i].command : NULL);
    }
    free(calls);
    free(jobs);
    free(results);
    return rc;
}

/* The text that a tool of Slurm prints; NULL: it is not there, or fails. */
static char *nodes_ask(const char *const *argv)
{
    struct nodes_call call = {.host = NULL};
    struct shk_isolate_job job = {
        .name = argv[0], .fn = nodes_run, .arg = &call, .deadline_ms = NODES_ASK_MS};
    struct shk_isolate_result result = {0};
    char *text = NULL;
    for (size_t i = 0; argv[i] && i + 1 < NODES_ARGUMENTS; i++)
        call.argv[i] = argv[i];
    if (!shk_isolate_run(&job, &result, 1, 1, NULL) && result.outcome == SHK_CHILD_OK) {
        const char *got = json_string_value(json_object_get(result.result, "text"));
        text = got && *got ? strdup(got) : NULL;
    }
    shk_isolate_result_clear(&result);
    return text;
}

/* The nodes of a running Slurm job; none when Slurm does not know it. */
static int nodes_of_slurm(const char *job, struct nodes_hosts *hosts, struct shk_error *err)
{
    char *id = nodes_job(job);
    const char *const ask[] = {"squeue", "--noheader", "--jobs", id, "--format=%N", NULL};
    char *list = id ? nodes_ask(ask) : NULL;
    free(id);
    if (!list)
        return 0;
    list[strcspn(list, " \n")] = '\0';
    const char *const expand[] = {"scontrol", "show", "hostnames", list, NULL};
    char *names = *list && *list != '-' ? nodes_ask(expand) : NULL;
    int rc = names ? nodes_parse(names, "scontrol show hostnames", hosts, err) : 0;
    free(names);
    free(list);
    return rc;
}

/* A host that has several slots is looked at once. */
static int nodes_of_file(const char *path, struct nodes_hosts *hosts, struct shk_error *err)
{
    json_t *ranks = NULL, *seen = json_object();
    int rc = seen ? shk_hosts_read(path, &ranks, err) : shk_error_sys(err, ENOMEM, "%s", path);
    for (size_t i = 0; !rc && i < json_array_size(ranks); i++) {
        const char *name = json_string_value(json_array_get(ranks, i));
        if (json_object_get(seen, name))
            continue;
        rc = json_object_set_new(seen, name, json_true()) ? shk_error_sys(err, ENOMEM, "%s", path)
                                                          : nodes_name(hosts, name, path, err);
    }
    json_decref(seen);
    json_decref(ranks);
    return rc;
}

int shk_hang_nodes(const struct shk_options *options, json_t *nodes, bool *done_p,
                   struct shk_error *err)
{
    struct nodes_hosts hosts = {0};
    int rc = 0;
    *done_p = false;
    if (options->here)
        return 0;
    if (options->hosts)
        rc = nodes_of_file(options->hosts, &hosts, err);
    else if (options->job)
        rc = nodes_of_slurm(options->job, &hosts, err);
    if (!rc && hosts.count) {
        *done_p = true;
        rc = nodes_look(options, &hosts, !options->hosts, nodes, err);
    }
    nodes_free(&hosts);
    return rc;
}
