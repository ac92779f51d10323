#include "collectives/counters/counters.h"
#include "collectives/ranks/job_private.h"
#include "core/job/moved.h"
#include "core/text/strbuf.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A reading that is older says more than what the run did. */
#define COUNTERS_FRESH_NS 2000000000ULL

void shk_counters_forget(struct shk_counters_kept *kept)
{
    json_decref(kept->after);
    *kept = (struct shk_counters_kept){0};
}

json_t *shk_counters_before(struct shk_counters_kept *kept, json_t *(*read)(void *arg), void *arg)
{
    bool fresh =
        kept != NULL && kept->after != NULL && shk_job_now_ns() - kept->read_ns < COUNTERS_FRESH_NS;

    return fresh ? json_incref(kept->after) : read(arg);
}

json_t *shk_counters_after(struct shk_counters_kept *kept, json_t *(*read)(void *arg), void *arg)
{
    json_t *after = read(arg);

    if (kept != NULL) {
        shk_counters_forget(kept);
        kept->after = json_incref(after);
        kept->read_ns = shk_job_now_ns();
    }
    return after;
}

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
    json_t *before =
        options->counters != NULL
            ? shk_counters_before(options->kept, options->counters, options->counters_arg)
            : NULL;
    int rc = transport->run(options, facts, err);
    char *status_key = shk_strf("collective.%s.status", transport->name);
    char *key = shk_strf("collective.%s.moved", transport->name);
    const char *status = status_key != NULL ? shk_facts_get_text(facts, status_key) : NULL;
    bool ran = status != NULL && strcmp(status, "na") != 0;

    if (rc == 0 && before != NULL && key != NULL && ran) {
        json_t *after = shk_counters_after(options->kept, options->counters, options->counters_arg);
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
