#include "probes/counters/counters.h"

#include "core/facts/facts.h"
#include "core/run/clock.h"
#include "probes/counters/counters_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void counters_begin(struct counters *c, const char *scope, const char *class)
{
    (void)json_object_set_new(c->classes, scope, json_string(class));
}

void counters_set(struct counters *c, const char *scope, const char *name, const char *kind,
                  unsigned long long value)
{
    json_t *of = json_object_get(c->values, scope);
    if (!of && json_object_set_new(c->values, scope, of = json_object()) != 0)
        return;
    (void)json_object_set_new(of, name, json_integer((json_int_t)value));
    (void)json_object_set_new(c->kinds, name, json_string(kind));
}

void counters_unread(struct counters *c, const char *scope, const char *why)
{
    (void)json_object_set_new(c->unread, scope, shk_json_text(why, strlen(why)));
}

void counters_files(struct counters *c, const char *scope, const char *dir,
                    const struct counters_name *names)
{
    for (; names->name; names++) {
        struct shk_error err = {""};
        char *line = NULL;
        int rc = shk_host_line(c->host, &line, &err, "%s/%s", dir, names->name);
        char *end = line;
        unsigned long long value = rc ? 0 : strtoull(line, &end, 10);
        if (!rc && end != line && (*end == '\0' || *end == '@'))
            counters_set(c, scope, names->name, names->kind, value);
        else if (rc != -ENOENT)
            counters_unread(c, scope, rc ? err.text : "a counter is not a number");
        free(line);
    }
}

char **counters_list(struct counters *c, const char *dir, const char *scope, const char *class)
{
    struct shk_error err = {""};
    char **names = NULL;
    int rc = shk_host_list(c->host, &names, NULL, &err, "%s", dir);
    if (!rc)
        return names;
    if (rc != -ENOENT) {
        counters_begin(c, scope, class);
        counters_unread(c, scope, err.text);
    }
    return NULL;
}

struct shk_counters_reading {
    struct counters c;
    struct counters_gpus *gpus;
    double time;
};

struct shk_counters_reading *shk_counters_read_begin(const struct shk_host *host)
{
    struct shk_counters_reading *reading = calloc(1, sizeof *reading);
    if (!reading)
        return NULL;
    struct counters *c = &reading->c;
    *c = (struct counters){
        .host = host,
        .values = json_object(),
        .kinds = json_object(),
        .classes = json_object(),
        .unread = json_object(),
        .log = json_object(),
    };
    if (c->values && c->kinds && c->classes && c->unread && c->log) {
        reading->gpus = counters_nvml_begin(c);
        counters_tcp(c);
        counters_dev(c);
        counters_links(c);
        counters_ethtool(c);
        counters_rdma(c);
        counters_cxi(c);
        counters_pci(c);
        counters_memory(c);
        counters_amd(c);
        counters_kmsg(c);
    }
    c->host = NULL; /* the caller's, who may close it now */
    reading->time = shk_clock_s();
    return reading;
}

json_t *shk_counters_read_end(struct shk_counters_reading *reading)
{
    if (!reading)
        return NULL;
    struct counters *c = &reading->c;
    counters_nvml_end(c, reading->gpus);
    json_t *read =
        json_pack("{s:f, s:o, s:o, s:o, s:o, s:o}", "time", reading->time, "values", c->values,
                  "kinds", c->kinds, "classes", c->classes, "unread", c->unread, "log", c->log);
    free(reading);
    return read;
}
