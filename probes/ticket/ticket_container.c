/* Containers: kubectl describe pod, docker inspect. */
#include "core/text/strbuf.h"
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    bool init = false; /* containers that have ended before the others begin */
    long long memory = -1;
    for (size_t i = 0; i < block->count; i++) {
        const char *line = block->lines[i], *value;
        size_t indent = strspn(line, " ");
        if (env && indent > env) {
            pod_variable(out, line);
            continue;
        }
        env = ticket_after(line + indent, "Environment:") ? indent : 0;
        init =
            ticket_after(line, "Init Containers:") || (init && !ticket_after(line, "Containers:"));
        containers += !init && ticket_after(line + indent, "Container ID:");
        if (!init && limits && indent > limits && (value = ticket_value(line, "memory")) != NULL)
            memory = quantity(value);
        else if (indent <= limits)
            limits = 0;
        limits = ticket_after(line + indent, "Limits:") ? indent : limits;
    }
    ticket_put_text(out, "host.container", "kubernetes");
    if (memory > 0 && containers <= 1 && !block->part)
        ticket_put_int(out, "cgroup.memory.max", memory, "B");
}

const struct ticket_reader ticket_reader_pod = {.name = "kubectl describe pod",
                                                .commands =
                                                    "kubectl describe pod|kubectl describe po",
                                                .starts = pod_starts,
                                                .read = pod_read};

static bool inspect_starts(char *const *lines, size_t left)
{
    size_t array = strcmp(lines[0], "[") == 0; /* without one: a container that jq took out */
    return left > array + 1 && strcmp(ticket_skip(lines[array]), "{") == 0 &&
           ticket_after(ticket_skip(lines[array + 1]), "\"Id\":");
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

static void inspect_read(struct ticket_out *out, const struct ticket_block *block)
{
    json_t *doc = ticket_json(block);
    if (json_is_object(doc) || json_array_size(doc) == 1)
        inspect_put(out, json_is_object(doc) ? doc : json_array_get(doc, 0));
    else
        out->note = doc ? "several containers, left out" : "the document is cut, left out";
    json_decref(doc);
}

const struct ticket_reader ticket_reader_inspect = {.name = "docker inspect",
                                                    .commands = "docker inspect|podman inspect",
                                                    .starts = inspect_starts,
                                                    .read = inspect_read};
