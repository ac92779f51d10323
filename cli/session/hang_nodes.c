#include "cli/session/hang_nodes.h"
#include "cli/session/hang_files.h"
#include "collectives/meet/hosts.h"
#include "core/facts/facts.h"
#include "core/run/isolate.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As many at once as a login node bears; the looks need not be at the same time, a hang stays. */
enum { NODES_AT_ONCE = 128, NODES_MAX = 16384, NODES_REACH_S = 90, NODES_ASK_MS = 20000 };
enum { NODES_ARGUMENTS = 24 };

struct nodes_call {
    struct shk_reach_call reach;
    const char *host;
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

/* In a child: what a node answers, {nodes: [...]}. */
static int nodes_run(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct nodes_call *call = arg;
    json_t *got = NULL;
    int rc = shk_reach_run(&call->reach, false, &got, err);
    const char *text = json_string_value(json_object_get(got, "text"));
    if (!rc && text && *text) {
        json_t *nodes = json_array();
        rc = shk_hang_take(text, strlen(text), call->host, nodes, err);
        *result_p = json_pack("{s:o}", "nodes", nodes);
    } else if (!rc) {
        bool lost = json_integer_value(json_object_get(got, "code")) == 127;
        rc = shk_error_set(err, EIO, "%s", lost ? "the program is not installed" : "no answer");
    }
    json_decref(got);
    return rc;
}

/* In a child: {text} of a tool that says where the job is. */
static int nodes_ask_run(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct nodes_call *call = arg;
    int rc = shk_reach_run(&call->reach, true, result_p, err);
    if (!rc && json_integer_value(json_object_get(*result_p, "code")))
        rc = shk_error_set(err, EIO, "%s failed", call->reach.argv[0]);
    return rc;
}

/* What is the same for each node; the list ends with NULL. Numbers are texts of *buf. */
static void nodes_words(const struct shk_options *options, char buf[32],
                        const char *words[NODES_ARGUMENTS])
{
    size_t n = 0;
    snprintf(buf, 32, "%ld", options->interval_s);
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
    if (options->intrusive)
        words[n++] = "--intrusive";
    if (options->no_stacks)
        words[n++] = "--no-stacks";
    words[n] = NULL;
}

/* The first line that was written; srun's own word that a task failed comes before or after that of
 * the task, which tells why. */
static const char *nodes_said(const char *output)
{
    const char *first = output ? output : "", *line = first;
    while (strncmp(line, "srun: ", 6) == 0) {
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return *line ? line : first;
}

/* The node as it answered, or without ranks and with the reason. */
static void nodes_add(json_t *nodes, const struct shk_reach *reach, const char *host,
                      const struct shk_isolate_result *result)
{
    size_t i;
    json_t *got = json_object_get(result->result, "nodes"), *node;
    if (result->outcome == SHK_CHILD_OK && json_array_size(got)) {
        json_array_foreach(got, i, node)
        {
            const char *name = json_string_value(json_object_get(node, "host"));
            if (name)
                json_object_set_new(reach->names, name, json_string(host));
            bool none =
                reach->way == SHK_REACH_SRUN && !json_array_size(json_object_get(node, "ranks"));
            if (none)
                json_object_set_new(node, "empty", json_true());
        }
        json_array_extend(nodes, got);
        return;
    }
    const char *said = nodes_said(result->output);
    size_t length = strcspn(said, "\n");
    json_t *why = json_sprintf("not examined: %s%s%.*s", result->error.text, length ? ": " : "",
                               (int)(length < 200 ? length : 200), said);
    if (!why) /* not UTF-8 */
        why = json_sprintf("not examined: %s", result->error.text);
    json_array_append_new(nodes, json_pack("{s:s,s:[],s:[o],s:b}", "host", host, "ranks", "unread",
                                           why, "unreached", 1));
}

static int nodes_look(const struct shk_options *options, const struct nodes_hosts *hosts,
                      const struct shk_reach *reach, json_t *nodes, struct shk_error *err)
{
    char interval[32];
    const char *words[NODES_ARGUMENTS];
    size_t n = hosts->count;
    struct nodes_call *calls = calloc(n, sizeof *calls);
    struct shk_isolate_job *jobs = calloc(n, sizeof *jobs);
    struct shk_isolate_result *results = calloc(n, sizeof *results);
    int rc = calls && jobs && results ? 0 : -ENOMEM;
    nodes_words(options, interval, words);
    for (size_t i = 0; !rc && i < n; i++) {
        calls[i].host = hosts->names[i];
        rc = shk_reach_call(&calls[i].reach, reach, hosts->names[i], 1, words);
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
            nodes_add(nodes, reach, hosts->names[i], &results[i]);
        shk_isolate_result_clear(&results[i]);
    }
    for (size_t i = 0; calls && i < n; i++)
        shk_reach_call_end(&calls[i].reach);
    free(calls);
    free(jobs);
    free(results);
    return rc;
}

/* The text that a tool prints; NULL: it is not there, or fails: then with text where err is not
 * NULL. */
static char *nodes_ask(const char *const *argv, struct shk_error *err)
{
    struct nodes_call call = {.host = NULL};
    struct shk_isolate_job job = {
        .name = argv[0], .fn = nodes_ask_run, .arg = &call, .deadline_ms = NODES_ASK_MS};
    struct shk_isolate_result result = {0};
    char *text = NULL;
    for (size_t i = 0; argv[i] && i + 1 < SHK_REACH_WORDS; i++)
        call.reach.argv[i] = argv[i];
    if (!shk_isolate_run(&job, &result, 1, 1, err) && result.outcome == SHK_CHILD_OK) {
        const char *got = json_string_value(json_object_get(result.result, "text"));
        text = got && *got ? strdup(got) : NULL;
    }
    if (result.outcome != SHK_CHILD_OK && err) {
        const char *said = result.output ? result.output : "";
        int length = (int)strcspn(said, "\n");
        shk_error_set(err, EIO, "%s%s%.*s", result.error.text, length ? ": " : "",
                      length < 200 ? length : 200, said);
    }
    shk_isolate_result_clear(&result);
    return text;
}

/* The nodes of a running Slurm job; none when Slurm does not know it. */
static int nodes_of_slurm(const char *job, struct nodes_hosts *hosts, struct shk_error *err)
{
    char *id = strndup(job, strcspn(job, "."));
    const char *const ask[] = {"squeue", "--noheader", "--jobs", id, "--format=%N", NULL};
    char *list = id ? nodes_ask(ask, NULL) : NULL;
    free(id);
    if (!list)
        return 0;
    list[strcspn(list, " \n")] = '\0';
    const char *const expand[] = {"scontrol", "show", "hostnames", list, NULL};
    char *names = *list && *list != '-' ? nodes_ask(expand, NULL) : NULL;
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

/* "pod/train-0" of kubectl, one a line, without what stands before the slash. */
static int nodes_of_pods(const struct shk_options *options, const struct shk_reach *reach,
                         struct nodes_hosts *hosts, struct shk_error *err)
{
    const char *slash = strchr(options->pods, '/');
    const char *selector = slash ? slash + 1 : options->pods;
    const char *const ask[] = {"kubectl",
                               "get",
                               "pods",
                               "--selector",
                               selector,
                               "--field-selector",
                               "status.phase=Running",
                               "--output",
                               "name",
                               reach->space ? "--namespace" : NULL,
                               reach->space,
                               NULL};
    if (!*selector || *selector == '-')
        return shk_error_set(err, EINVAL, "--pods: '%s' is not a selector of pods", options->pods);
    char *list = nodes_ask(ask, err), *lines = NULL;
    int rc = list ? 0
             : *err->text
                 ? -EIO
                 : shk_error_set(err, EINVAL, "--pods: no pod of %s is running", options->pods);
    for (char *line = list ? strtok_r(list, "\n", &lines) : NULL; line && !rc;
         line = strtok_r(NULL, "\n", &lines))
        rc = nodes_name(hosts, strncmp(line, "pod/", 4) == 0 ? line + 4 : line, "kubectl get pods",
                        err);
    free(list);
    return rc;
}

static enum shk_reach_way nodes_way(const struct shk_options *options)
{
    if (options->here)
        return SHK_REACH_HERE;
    if (options->pods)
        return SHK_REACH_PODS;
    if (options->hosts)
        return SHK_REACH_SSH;
    return options->job ? SHK_REACH_SRUN : SHK_REACH_HERE;
}

int shk_hang_nodes(const struct shk_options *options, struct shk_reach *reach, json_t *nodes,
                   bool *done_p, struct shk_error *err)
{
    struct nodes_hosts hosts = {0};
    enum shk_reach_way way = nodes_way(options);
    int rc = shk_reach_begin(reach, way, err);
    *done_p = false;
    reach->job = options->job;
    reach->container = way == SHK_REACH_PODS ? options->container : NULL;
    if (!rc && way == SHK_REACH_PODS && strchr(options->pods, '/'))
        reach->space = strndup(options->pods, strcspn(options->pods, "/"));
    if (!rc && way == SHK_REACH_PODS)
        rc = nodes_of_pods(options, reach, &hosts, err);
    else if (!rc && way == SHK_REACH_SSH)
        rc = nodes_of_file(options->hosts, &hosts, err);
    else if (!rc && way == SHK_REACH_SRUN)
        rc = nodes_of_slurm(options->job, &hosts, err);
    if (!rc && hosts.count) {
        *done_p = true;
        rc = nodes_look(options, &hosts, reach, nodes, err);
    } else if (!rc) {
        reach->way = SHK_REACH_HERE;
    }
    nodes_free(&hosts);
    return rc;
}
