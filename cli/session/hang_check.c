#include "cli/session/hang_check.h"
#include "checks/base/row.h"
#include "core/run/isolate.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* More suspects are no suspects; and rows of each that are kept. */
enum { CHECK_NODES = 8, CHECK_ROWS = 20, CHECK_DEADLINE_MS = 120000 };

/* Safe beside a job that has the GPUs: the issue is the node, not the speed. */
static const char *const check_node[] = {"run",  "--quick", "--rendezvous", "none", "--format",
                                         "json", NULL};
static const char *const check_network[] = {"bench", "--transport", "fabric", "--ranks",
                                            "1",     "--sizes",     "4:1M",   "--timeout",
                                            "30",    "--format",    "json",   NULL};

struct check_job {
    struct shk_reach_call call;
    const char *what;
    json_t *hosts; /* names that the nodes give themselves; owned */
    char *list;    /* by which they are reached, "a,b"; owned */
    char path[32]; /* file of hosts for ssh */
    int fd;
};

static int check_run(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct check_job *job = arg;
    return shk_reach_run(&job->call, false, result_p, err);
}

static void check_copy(json_t *to, const char *name, const json_t *from, const char *member)
{
    json_t *value = json_object_get(from, member);
    if (json_is_string(value))
        json_object_set(to, name, value);
}

static json_t *check_causes(const json_t *report)
{
    size_t i;
    json_t *one, *list = json_array();
    json_array_foreach(json_object_get(report, "diagnoses"), i, one)
    {
        json_t *cause = json_object();
        check_copy(cause, "key", one, "key");
        check_copy(cause, "title", one, "title");
        check_copy(cause, "confidence", one, "confidence");
        check_copy(cause, "fix", one, "fix");
        if (i < CHECK_ROWS)
            json_array_append(list, cause);
        json_decref(cause);
    }
    return list;
}

static json_t *check_rows(const json_t *report)
{
    size_t i;
    json_t *one, *list = json_array();
    json_array_foreach(json_object_get(report, "findings"), i, one)
    {
        const char *verdict = json_string_value(json_object_get(one, "verdict"));
        bool bad = verdict && (strcmp(verdict, "fail") == 0 || strcmp(verdict, "warn") == 0);
        json_t *row = bad && json_array_size(list) < CHECK_ROWS ? json_object() : NULL;
        if (!row)
            continue;
        check_copy(row, "name", one, "setting");
        check_copy(row, "verdict", one, "verdict");
        check_copy(row, "observed", one, "observed");
        check_copy(row, "why", one, "why");
        check_copy(row, "fix", one, "fix");
        json_array_append_new(list, row);
    }
    return list;
}

/* What came back, or why nothing did. */
static json_t *check_take(const struct check_job *job, const struct shk_isolate_result *result)
{
    json_t *check = json_pack("{s:s,s:O}", "what", job->what, "hosts", job->hosts);
    const char *text = json_string_value(json_object_get(result->result, "text"));
    json_t *report = text ? json_loads(text, 0, NULL) : NULL;
    const char *schema = json_string_value(json_object_get(report, "schema")),
               *verdict = json_string_value(
                   json_object_get(json_object_get(report, "summary"), "verdict"));
    if (result->outcome == SHK_CHILD_OK && verdict && schema &&
        strncmp(schema, "shakedown.report/", 17) == 0) {
        json_object_set_new(check, "verdict", json_string(verdict));
        json_object_set_new(check, "causes", check_causes(report));
        json_object_set_new(check, "rows", check_rows(report));
    } else {
        const char *said = result->output ? result->output : "";
        int length = (int)strcspn(said, "\n");
        json_t *why = json_sprintf("%s%s%.*s",
                                   *result->error.text ? result->error.text : "no report came back",
                                   length ? ": " : "", length < 200 ? length : 200, said);
        json_object_set_new(check, "unread", why ? why : json_string("no report came back"));
    }
    json_decref(report);
    return check;
}

static const char *check_name(const struct shk_reach *reach, const char *host)
{
    const char *name = json_string_value(json_object_get(reach->names, host));
    return name ? name : host;
}

/* A node with ranks that is no suspect; NULL: there is none. */
static const char *check_beside(const json_t *nodes, const json_t *suspects)
{
    size_t i;
    json_t *node;
    json_array_foreach(nodes, i, node)
    {
        const char *host = json_string_value(json_object_get(node, "host"));
        if (host && json_array_size(json_object_get(node, "ranks")) &&
            !shk_array_has(suspects, host, false))
            return host;
    }
    return NULL;
}

/* The hosts as a file that the child inherits. */
static int check_hosts_file(struct check_job *job, const struct shk_reach *reach)
{
    size_t i;
    json_t *host;
    struct shk_strbuf text = SHK_STRBUF_INIT;
    json_array_foreach(job->hosts, i, host)
        shk_strbuf_printf(&text, "%s\n", check_name(reach, json_string_value(host)));
    job->fd = memfd_create("hosts", 0);
    bool good = job->fd >= 0 && !text.failed &&
                write(job->fd, shk_strbuf_text(&text), text.len) == (ssize_t)text.len &&
                lseek(job->fd, 0, SEEK_SET) == 0;
    snprintf(job->path, sizeof job->path, "/dev/fd/%d", job->fd);
    shk_strbuf_free(&text);
    return good ? 0 : -ENOMEM;
}

static int check_network_call(struct check_job *job, const struct shk_reach *reach)
{
    const char *words[SHK_REACH_WORDS];
    struct shk_strbuf list = SHK_STRBUF_INIT;
    size_t i, n = 0;
    json_t *host;
    for (const char *const *word = check_network; *word; word++)
        words[n++] = *word;
    if (reach->way == SHK_REACH_SSH) {
        const struct shk_reach here = {.way = SHK_REACH_HERE};
        struct shk_reach mine = here;
        int rc = check_hosts_file(job, reach);
        snprintf(mine.program, sizeof mine.program, "%s", reach->program);
        job->list = shk_copy(reach->program);
        words[n++] = "--hosts";
        words[n++] = job->path;
        words[n] = NULL;
        rc = rc ? rc : shk_reach_call(&job->call, &mine, NULL, 0, words);
        job->call.argv[0] = job->list;
        return job->list ? rc : -ENOMEM;
    }
    words[n] = NULL;
    json_array_foreach(job->hosts, i, host)
        shk_strbuf_printf(&list, "%s%s", i ? "," : "", check_name(reach, json_string_value(host)));
    job->list = shk_strbuf_take(&list);
    return job->list ? shk_reach_call(&job->call, reach, job->list,
                                      (unsigned)json_array_size(job->hosts), words)
                     : -ENOMEM;
}

/* One job for each suspect, and one between all of them and a node beside; returns how many. */
static size_t check_jobs(const struct shk_reach *reach, const json_t *nodes, const json_t *suspects,
                         struct check_job *jobs, int *rc_p)
{
    size_t i, count = 0;
    json_t *host;
    json_array_foreach(suspects, i, host)
    {
        if (i >= CHECK_NODES || *rc_p)
            break;
        jobs[count] = (struct check_job){.what = "node", .hosts = json_pack("[O]", host), .fd = -1};
        *rc_p = shk_reach_call(&jobs[count++].call, reach,
                               check_name(reach, json_string_value(host)), 1, check_node);
    }
    const char *beside = check_beside(nodes, suspects);
    bool joined = reach->way == SHK_REACH_SRUN || reach->way == SHK_REACH_SSH;
    if (!*rc_p && count && beside && joined) {
        struct check_job *job = &jobs[count++];
        *job = (struct check_job){.what = "network", .hosts = json_array(), .fd = -1};
        for (i = 0; i < json_array_size(suspects) && i < CHECK_NODES; i++)
            json_array_append(job->hosts, json_array_get(suspects, i));
        json_array_append_new(job->hosts, json_string(beside));
        *rc_p = check_network_call(job, reach);
    }
    return count;
}

/* Nodes first, side by side; the network when they are done, so that nothing disturbs it. */
static int check_all(struct check_job *jobs, size_t count, json_t *checks, struct shk_error *err)
{
    struct shk_isolate_job isolated[CHECK_NODES + 1];
    struct shk_isolate_result results[CHECK_NODES + 1] = {{0}};
    size_t nodes = count && strcmp(jobs[count - 1].what, "network") == 0 ? count - 1 : count;
    for (size_t i = 0; i < count; i++)
        isolated[i] = (struct shk_isolate_job){.name = jobs[i].what,
                                               .fn = check_run,
                                               .arg = &jobs[i],
                                               .deadline_ms = CHECK_DEADLINE_MS,
                                               .memory_limit = (size_t)4 << 30};
    int rc = shk_isolate_run(isolated, results, nodes, CHECK_NODES, err);
    if (!rc && nodes < count)
        rc = shk_isolate_run(isolated + nodes, results + nodes, 1, 1, err);
    for (size_t i = 0; i < count; i++) {
        if (!rc)
            json_array_append_new(checks, check_take(&jobs[i], &results[i]));
        shk_isolate_result_clear(&results[i]);
    }
    return rc;
}

int shk_hang_check(const struct shk_reach *reach, const json_t *nodes, json_t *judgement,
                   struct shk_error *err)
{
    struct check_job jobs[CHECK_NODES + 1];
    json_t *suspects = json_object_get(judgement, "suspects"), *checks = json_array();
    int rc = checks ? 0 : -ENOMEM;
    size_t count = rc ? 0 : check_jobs(reach, nodes, suspects, jobs, &rc);
    if (rc)
        shk_error_sys(err, -rc, "checks of the suspect nodes");
    else
        rc = check_all(jobs, count, checks, err);
    size_t all = json_array_size(suspects);
    if (!rc && all > CHECK_NODES)
        json_array_append_new(checks, json_pack("{s:s,s:[],s:o}", "what", "node", "hosts", "unread",
                                                json_sprintf("%zu more suspects were not checked",
                                                             all - CHECK_NODES)));
    if (!rc)
        json_object_set(judgement, "checks", checks);
    for (size_t i = 0; i < count; i++) {
        shk_reach_call_end(&jobs[i].call);
        json_decref(jobs[i].hosts);
        free(jobs[i].list);
        if (jobs[i].fd >= 0)
            close(jobs[i].fd);
    }
    json_decref(checks);
    return rc;
}
