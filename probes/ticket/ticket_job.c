/* Job and container: scontrol show job, kubectl describe pod, docker inspect. */
#include "core/text/strbuf.h"
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool scontrol_starts(char *const *lines, size_t left)
{
    const char *p = ticket_after(lines[0], "JobId=");
    (void)left;
    return p && isdigit((unsigned char)*p) && strstr(p, " JobName=");
}

/* The word behind "Name=". */
static bool scontrol_word(const struct ticket_block *block, const char *name, char *out,
                          size_t size)
{
    for (size_t i = 0; i < block->count; i++) {
        const char *p = strstr(block->lines[i], name);
        if (p && (p == block->lines[i] || p[-1] == ' '))
            return ticket_word(out, size, p + strlen(name), "") > 0;
    }
    return false;
}

static void scontrol_read(struct ticket_out *out, const struct ticket_block *block)
{
    static const struct {
        const char *name, *key;
        bool number;
    } rows[] = {{"JobId=", "job.slurm.job_id", true},
                {"NumNodes=", "job.nodes", true},
                {"NumTasks=", "job.ranks", true},
                {"CPUs/Task=", "job.slurm.cpus_per_task", true},
                {"Partition=", "job.slurm.partition", false},
                {"NodeList=", "job.slurm.nodelist", false},
                {"Network=", "job.slurm.network", false}};
    char word[256];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        long long number;
        if (!scontrol_word(block, rows[i].name, word, sizeof word) || strcmp(word, "(null)") == 0)
            continue;
        if (!rows[i].number)
            ticket_put_text(out, rows[i].key, word);
        else if (ticket_long(word, &number) && number > 0)
            ticket_put_int(out, rows[i].key, number, NULL);
    }
    if (out->wrote)
        ticket_put_text(out, "job.scheduler", "slurm");
}

const struct ticket_reader ticket_reader_scontrol = {.name = "scontrol show job",
                                                     .commands = "scontrol show job",
                                                     .starts = scontrol_starts,
                                                     .read = scontrol_read};

/* "64Gi", "512Mi", "1000M", "68719476736" of Kubernetes, in bytes; -1: none of these. */
static long long quantity(const char *text)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0},
                 {"k", 1e3},     {"M", 1e6},        {"G", 1e9},           {"T", 1e12},
                 {"", 1}};
    char *end;
    double number = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].unit) == 0 && number > 0 && number * units[i].bytes < 1e18)
            return (long long)(number * units[i].bytes);
    return -1;
}

static bool pod_starts(char *const *lines, size_t left)
{
    const char *name = ticket_value(lines[0], "Name");
    return name && *lines[0] == 'N' && left > 1 && ticket_value(lines[1], "Namespace");
}

static void pod_variable(struct ticket_out *out, const char *line)
{
    char text[4096];
    const char *p = ticket_skip(line), *colon = strchr(p, ':');
    if (!colon || strstr(colon, "<set to"))
        return;
    snprintf(text, sizeof text, "%.*s='%s'", (int)(colon - p), p, ticket_skip(colon + 1));
    ticket_env_command(out, text);
}

/* Environment: and the deeper lines below it; Limits: with memory:. */
static void pod_read(struct ticket_out *out, const struct ticket_block *block)
{
    size_t env = 0, limits = 0, containers = 0;
    long long memory = -1;
    for (size_t i = 0; i < block->count; i++) {
        const char *line = block->lines[i], *value;
        size_t indent = strspn(line, " ");
        if (env && indent > env) {
            pod_variable(out, line);
            continue;
        }
        env = ticket_after(line + indent, "Environment:") ? indent : 0;
        containers += ticket_after(line + indent, "Container ID:") != NULL;
        if (limits && indent > limits && (value = ticket_value(line, "memory")) != NULL)
            memory = quantity(value);
        else if (indent <= limits)
            limits = 0;
        limits = ticket_after(line + indent, "Limits:") ? indent : limits;
    }
    ticket_put_text(out, "host.container", "kubernetes");
    if (memory > 0 && containers <= 1)
        ticket_put_int(out, "cgroup.memory.max", memory, "B");
}

const struct ticket_reader ticket_reader_pod = {.name = "kubectl describe pod",
                                                .commands =
                                                    "kubectl describe pod|kubectl describe po",
                                                .starts = pod_starts,
                                                .read = pod_read};

static bool inspect_starts(char *const *lines, size_t left)
{
    return strcmp(lines[0], "[") == 0 && left > 2 && strchr(lines[1], '{') &&
           strstr(lines[2], "\"Id\":");
}

static void inspect_limits(struct ticket_out *out, const json_t *config)
{
    json_t *limit;
    size_t i;
    json_array_foreach(json_object_get(config, "Ulimits"), i, limit)
    {
        const char *name = json_string_value(json_object_get(limit, "Name"));
        json_t *soft = json_object_get(limit, "Soft"), *hard = json_object_get(limit, "Hard");
        char key[64];
        if (!name || !json_is_integer(soft) || !json_is_integer(hard))
            continue;
        if (strcmp(name, "memlock") != 0 && strcmp(name, "nofile") != 0 &&
            strcmp(name, "stack") != 0)
            continue;
        snprintf(key, sizeof key, "limits.%s", name);
        ticket_put(out, key, json_pack("{s:O,s:O}", "soft", soft, "hard", hard),
                   strcmp(name, "nofile") == 0 ? NULL : "B");
    }
}

static void inspect_put(struct ticket_out *out, const json_t *container)
{
    json_t *config = json_object_get(container, "HostConfig"), *entry;
    json_int_t shm = json_integer_value(json_object_get(config, "ShmSize"));
    json_int_t memory = json_integer_value(json_object_get(config, "Memory"));
    const char *ipc = json_string_value(json_object_get(config, "IpcMode"));
    size_t i;
    if (!config)
        return;
    ticket_put_text(out, "host.container", "docker");
    if (shm > 0 && (!ipc || (strcmp(ipc, "host") != 0 && !ticket_after(ipc, "container:"))))
        ticket_put_int(out, "shm.size", shm, "B");
    if (memory > 0)
        ticket_put_int(out, "cgroup.memory.max", memory, "B");
    inspect_limits(out, config);
    json_array_foreach(json_object_get(json_object_get(container, "Config"), "Env"), i, entry)
    {
        const char *text = json_string_value(entry), *eq = text ? strchr(text, '=') : NULL;
        char *command = eq ? shk_strf("%.*s='%s'", (int)(eq - text), text, eq + 1) : NULL;
        if (command)
            ticket_env_command(out, command);
        free(command);
    }
}

/* The document ends where its bracket does. */
static void inspect_read(struct ticket_out *out, const struct ticket_block *block)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    for (size_t i = 0; i < block->count; i++) {
        shk_strbuf_puts(&text, block->lines[i]);
        shk_strbuf_putc(&text, '\n');
        if (strcmp(block->lines[i], "]") == 0)
            break;
    }
    json_t *doc = json_loads(shk_strbuf_text(&text), 0, NULL);
    if (json_array_size(doc) == 1)
        inspect_put(out, json_array_get(doc, 0));
    else
        out->note = doc ? "several containers, left out" : "the document is cut, left out";
    json_decref(doc);
    shk_strbuf_free(&text);
}

const struct ticket_reader ticket_reader_inspect = {.name = "docker inspect",
                                                    .commands = "docker inspect|podman inspect",
                                                    .starts = inspect_starts,
                                                    .read = inspect_read};
