#include "collectives/launch/counters.h"
#include "core/job/moved.h"
#include "core/text/strbuf.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* [{what, nodes: [{node, seconds, read, moved, unread}]}] of this host alone. */
static json_t *around_fact(const json_t *moved)
{
    char host[256] = "?";

    (void)gethostname(host, sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    return json_pack("[{s:s, s:[{s:s, s:O, s:O, s:O, s:O, s:O}]}]", "what", "all-reduce", "nodes",
                     "node", host, "seconds", json_object_get(moved, "seconds"), "classes",
                     json_object_get(moved, "classes"), "read", json_object_get(moved, "read"),
                     "moved", json_object_get(moved, "moved"), "unread",
                     json_object_get(moved, "unread"));
}

int shk_counters_run(const struct shk_transport *transport,
                     const struct shk_collective_options *options, struct shk_facts *facts,
                     struct shk_error *err)
{
    json_t *before = options->counters != NULL ? options->counters(options->counters_arg) : NULL;
    int rc = transport->run(options, facts, err);
    char *status_key = shk_strf("collective.%s.status", transport->name);
    char *key = shk_strf("collective.%s.moved", transport->name);
    const char *status = status_key != NULL ? shk_facts_get_text(facts, status_key) : NULL;
    bool ran = status != NULL && strcmp(status, "na") != 0;

    if (rc == 0 && before != NULL && key != NULL && ran) {
        json_t *after = options->counters(options->counters_arg);
        json_t *moved = shk_moved(before, after);
        json_t *fact = around_fact(moved);

        rc = fact != NULL ? shk_facts_present(facts, key, fact, NULL, "counters before and after")
                          : shk_error_set(err, ENOMEM, "out of memory");
        json_decref(moved);
        json_decref(after);
    }
    json_decref(before);
    free(status_key);
    free(key);
    return rc;
}
