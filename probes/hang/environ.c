/* The variables of a process that the catalogue knows, as they were when it started: what it set
 * itself afterwards is not in /proc/PID/environ. */
#include "core/redact/redact.h"
#include "probes/hang/hang_private.h"

#include <stdlib.h>
#include <string.h>

/* Variables of one process; libraries have some hundreds. And of a name, as probes/host/env.c. */
enum { ENVIRON_MOST = 1024, ENVIRON_NAME = 200, ENVIRON_VALUE = 4096 };

void hang_environment_parse(const char *text, size_t length, const struct shk_name_set *names,
                            struct hang_process *process)
{
    json_t *all = json_object(), *withheld = json_array();
    for (const char *p = text, *end = text + length; p < end;
         p += strnlen(p, (size_t)(end - p)) + 1) {
        size_t whole = strnlen(p, (size_t)(end - p));
        const char *equal = memchr(p, '=', whole), *why = NULL;
        struct shk_name_match match;
        char name[ENVIRON_NAME + 1];
        if (!equal || equal == p || equal - p > ENVIRON_NAME ||
            json_object_size(all) >= ENVIRON_MOST)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(equal - p), p);
        size_t rest = whole - (size_t)(equal + 1 - p);
        char *value = strndup(equal + 1, rest < ENVIRON_VALUE ? rest : ENVIRON_VALUE);
        /* of a name that is there twice getenv() sees the first */
        bool taken = !value || !shk_name_ok(name) || !shk_name_classify(names, name, &match) ||
                     json_object_get(all, name);
        if (!taken && shk_redact_value(name, value, &why))
            json_array_append_new(withheld, json_string(name));
        else if (!taken)
            json_object_set_new(all, name, shk_json_text(value, strlen(value)));
        free(value);
    }
    json_decref(process->environment);
    json_decref(process->withheld);
    process->environment = all;
    process->withheld = withheld;
}

void hang_environment(const struct shk_host *host, const struct shk_name_set *names,
                      struct hang_process *process)
{
    char path[64], *text = NULL;
    size_t length = 0;
    if (process->state == 'Z')
        return;
    snprintf(path, sizeof path, "/proc/%ld/environ", process->pid);
    if (shk_host_read(host, path, &text, &length, NULL))
        process->unreadable = true;
    else
        hang_environment_parse(text, length, names, process);
    free(text);
}
