#include "collectives/counters/counters.h"
#include "core/job/moved.h"
#include "core/run/clock.h"
#include "core/text/strbuf.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A reading that is older says more than what the run did. */
#define COUNTERS_FRESH_NS 2000000000ULL

static uint64_t counters_now_ns(void)
{
    return (uint64_t)(shk_clock_s() * 1e9);
}

static bool counters_fresh(uint64_t at_ns)
{
    return counters_now_ns() - at_ns < COUNTERS_FRESH_NS;
}

/* [{what, nodes: [{node, seconds, read, moved, unread}]}] of this host alone. */
static json_t *around_fact(const json_t *moved)
{
    char host[256] = "?";

    (void)gethostname(host, sizeof host - 1);
    host[sizeof host - 1] = '\0';
    return json_pack("[{s:s, s:[{s:s, s:O, s:O, s:O, s:O, s:O}]}]", "what", "all-reduce", "nodes",
                     "node", host, "seconds", json_object_get(moved, "seconds"), "classes",
                     json_object_get(moved, "classes"), "read", json_object_get(moved, "read"),
                     "moved", json_object_get(moved, "moved"), "unread",
                     json_object_get(moved, "unread"));
}

static int counters_tell(struct shk_facts *facts, const char *key, const json_t *before,
                         const json_t *after)
{
    json_t *moved = shk_moved(before, after);
    json_t *fact = around_fact(moved);
    int rc =
        fact ? shk_facts_present(facts, key, fact, NULL, "counters before and after") : -ENOMEM;

    json_decref(moved);
    return rc;
}

/* Ends the reading under way. */
static void counters_end(struct shk_counters_kept *kept)
{
    json_t *after = NULL;

    if (!kept || !kept->reading)
        return;
    after = kept->end(kept->reading);
    if (kept->rc == 0)
        kept->rc = counters_tell(kept->facts, kept->key, kept->before, after);
    json_decref(kept->before);
    free(kept->key);
    json_decref(kept->after);
    kept->after = after;
    kept->read_ns = kept->begun_ns;
    kept->reading = NULL;
    kept->before = NULL;
    kept->key = NULL;
}

int shk_counters_settle(struct shk_counters_kept *kept, struct shk_error *err)
{
    int rc = 0;

    counters_end(kept);
    if (kept) {
        rc = kept->rc;
        kept->rc = 0;
    }
    return rc == 0 ? 0 : shk_error_sys(err, -rc, "facts of the counters");
}

void shk_counters_forget(struct shk_counters_kept *kept)
{
    if (kept->reading)
        json_decref(kept->end(kept->reading));
    json_decref(kept->before);
    free(kept->key);
    json_decref(kept->after);
    *kept = (struct shk_counters_kept){0};
}

json_t *shk_counters_before(struct shk_counters_kept *kept, json_t *(*read)(void *arg), void *arg)
{
    counters_end(kept);
    return kept && kept->after && counters_fresh(kept->read_ns) ? json_incref(kept->after)
                                                                : read(arg);
}

json_t *shk_counters_after(struct shk_counters_kept *kept, json_t *(*read)(void *arg), void *arg)
{
    json_t *after = NULL;

    counters_end(kept);
    after = read(arg);
    if (kept) {
        json_decref(kept->after);
        kept->after = json_incref(after);
        kept->read_ns = counters_now_ns();
    }
    return after;
}

static json_t *counters_read(void *arg)
{
    const struct shk_counters_source *source = arg;
    void *reading = source->begin(source->arg);

    return reading ? source->end(reading) : NULL;
}

void shk_counters_enter(const struct shk_collective_options *options,
                        struct shk_counters_span *span)
{
    struct shk_counters_kept *kept = options->kept;

    *span = (struct shk_counters_span){0};
    if (!options->counters)
        return;
    span->promised = kept && kept->reading && counters_fresh(kept->begun_ns);
    if (!span->promised)
        span->before = shk_counters_before(kept, counters_read, (void *)options->counters);
}

/* The fact waits for the reading that begins here. */
static int counters_owe(const struct shk_collective_options *options, json_t *before,
                        const char *name, struct shk_facts *facts)
{
    const struct shk_counters_source *source = options->counters;
    struct shk_counters_kept alone = {0};
    struct shk_counters_kept *kept = options->kept ? options->kept : &alone;
    char *key = shk_strf("collective.%s.moved", name);
    void *reading = key ? source->begin(source->arg) : NULL;
    int rc = 0;

    if (!reading) {
        rc = key ? counters_tell(facts, key, before, NULL) : -ENOMEM;
        json_decref(before);
        free(key);
        return rc;
    }
    kept->reading = reading;
    kept->end = source->end;
    kept->begun_ns = counters_now_ns();
    kept->before = before;
    kept->key = key;
    kept->facts = facts;
    if (kept == &alone) {
        counters_end(kept);
        rc = kept->rc;
        shk_counters_forget(kept);
    }
    return rc;
}

int shk_counters_leave(const struct shk_collective_options *options, struct shk_counters_span *span,
                       const char *name, bool ran, struct shk_facts *facts, struct shk_error *err)
{
    struct shk_counters_kept *kept = options->kept;
    json_t *before = span->before;
    int rc = 0;

    if (span->promised) {
        rc = shk_counters_settle(kept, err);
        before = json_incref(kept->after);
    }
    *span = (struct shk_counters_span){0};
    if (rc != 0 || !before || !ran) {
        json_decref(before);
        return rc;
    }
    rc = counters_owe(options, before, name, facts);
    return rc == 0 ? 0 : shk_error_sys(err, -rc, "facts of the counters");
}

int shk_counters_run(const struct shk_transport *transport,
                     const struct shk_collective_options *options, struct shk_facts *facts,
                     struct shk_error *err)
{
    struct shk_counters_span span;
    char key[64];
    const char *status = NULL;
    int rc = 0;
    int left = 0;

    shk_counters_enter(options, &span);
    rc = transport->run(options, facts, err);
    snprintf(key, sizeof key, "collective.%s.status", transport->name);
    status = shk_facts_get_text(facts, key);
    left = shk_counters_leave(options, &span, transport->name,
                              rc == 0 && status && strcmp(status, "na") != 0, facts,
                              rc == 0 ? err : NULL);
    return rc == 0 ? left : rc;
}
