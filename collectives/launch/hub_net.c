/* What the network did during the runs of one transport: traffic between nodes from the sockets of
 * their ranks, and the counters of the nodes. */
#include "collectives/launch/world_private.h"
#include "core/job/moved.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rows of traffic in the facts, those that lost most: a job of 16 nodes in full. */
#define NET_ROWS ((size_t)256)

static const char *const net_sums[] = {"sent", "again", "needless", "unsent", "stuck"};

json_t *hub_net_owners(const struct hub_group *group)
{
    json_t *owners = json_object();

    for (unsigned i = 0; i < group->size; i++) {
        json_t *rows = json_object_get(json_object_get(group->net[i], "flows"), "rows");
        json_t *row = NULL;
        size_t k = 0;

        json_array_foreach(rows, k, row)
        {
            const char *from = json_string_value(json_object_get(row, "from"));
            const char *host = group->members[i]->host;
            const json_t *known = from ? json_object_get(owners, from) : NULL;

            if (known && json_is_string(known) && strcmp(json_string_value(known), host) != 0) {
                (void)json_object_set_new(owners, from, json_false());
            } else if (from && !known) {
                (void)json_object_set_new(owners, from, json_string(host));
            }
        }
    }
    return owners;
}

static void net_sum(json_t *sum, const char *name, const json_t *row)
{
    json_int_t value = json_integer_value(json_object_get(row, name));
    json_int_t was = json_integer_value(json_object_get(sum, name));

    (void)json_object_set_new(sum, name, json_integer(was + value));
}

/* Known only when every socket's kernel tells it. */
static void net_sum_known(json_t *sum, const char *name, const json_t *row)
{
    json_int_t value = json_integer_value(json_object_get(row, name));
    json_int_t was = json_integer_value(json_object_get(sum, name));

    (void)json_object_set_new(sum, name, json_integer(value < 0 || was < 0 ? -1 : was + value));
}

static void net_flow(json_t *sums, const char *from, const char *to, const json_t *row)
{
    char *key = shk_strf("%s %s", from, to);
    json_t *sum = key ? json_object_get(sums, key) : NULL;

    if (key && !sum) {
        sum = json_pack("{s:s, s:s}", "from", from, "to", to);
        (void)json_object_set_new(sums, key, sum);
    }
    for (size_t i = 0; i < sizeof net_sums / sizeof net_sums[0] && sum != NULL; i++)
        net_sum(sum, net_sums[i], row);
    if (sum) {
        json_int_t mss = json_integer_value(json_object_get(row, "mss"));

        net_sum_known(sum, "timeouts", row);
        net_sum_known(sum, "waited_ms", row);
        if (mss > json_integer_value(json_object_get(sum, "mss")))
            (void)json_object_set_new(sum, "mss", json_integer(mss));
    }
    free(key);
}

static void net_member(const struct hub_group *group, unsigned i, const json_t *owners,
                       json_t *sums, json_t *unread)
{
    const char *host = group->members[i]->host;
    json_t *flows = json_object_get(group->net[i], "flows");
    json_t *row = NULL;
    size_t k = 0;

    if (!json_is_true(json_object_get(flows, "read"))) {
        const char *why = json_string_value(json_object_get(flows, "why"));

        (void)json_array_append_new(
            unread, json_pack("{s:i, s:s, s:s}", "rank", (int)group->members[i]->rank, "node", host,
                              "why", why ? why : "it ended without a report"));
    }
    json_array_foreach(json_object_get(flows, "rows"), k, row)
    {
        const char *to = json_string_value(json_object_get(row, "to"));
        const char *owner = to ? json_string_value(json_object_get(owners, to)) : NULL;

        if (owner && strcmp(owner, host) != 0)
            net_flow(sums, host, owner, row);
    }
}

static json_int_t net_again(const json_t *row)
{
    return json_integer_value(json_object_get(row, "again")) +
           json_integer_value(json_object_get(row, "unsent"));
}

static int net_compare(const void *a, const void *b)
{
    json_int_t x = net_again(*(json_t *const *)a);
    json_int_t y = net_again(*(json_t *const *)b);

    return (x < y) - (x > y);
}

/* Takes `sums`. */
static json_t *net_rows(json_t *sums)
{
    size_t count = json_object_size(sums);
    json_t **sorted = calloc(count + 1, sizeof(json_t *));
    json_t *rows = json_array();
    const char *key = NULL;
    json_t *sum = NULL;
    size_t n = 0;

    json_object_foreach(sums, key, sum)
    {
        if (sorted)
            sorted[n++] = sum;
    }
    if (n > 0)
        qsort(sorted, n, sizeof(json_t *), net_compare);
    for (count = 0; count < n && count < NET_ROWS; count++)
        (void)json_array_append(rows, sorted[count]);
    free(sorted);
    json_decref(sums);
    return rows;
}

/* Rows of the nodes that have something to tell; *quiet_p: of how many nothing is to be told. */
static json_t *net_counters(const struct hub_group *group, int *quiet_p)
{
    json_t *rows = json_array();

    *quiet_p = 0;
    for (unsigned i = 0; i < group->size; i++) {
        json_t *counters = json_object_get(group->net[i], "counters");
        json_t *row = json_is_object(counters) ? shk_moved_part(counters, true) : NULL;

        if (row && shk_moved_quiet(row)) {
            ++*quiet_p;
            json_decref(row);
        } else if (row) {
            (void)json_object_set_new(row, "node", json_string(group->members[i]->host));
            (void)json_array_append_new(rows, row);
        }
    }
    return rows;
}

void hub_net_add(struct shk_world *world, const struct hub_group *group, const char *what)
{
    json_t *owners = hub_net_owners(group);
    json_t *sums = json_object();
    json_t *unread = json_array();
    json_t *counters = NULL;
    bool apart = false; /* the ranks are on several nodes */
    int quiet = 0;
    unsigned i = 0;

    hub_moved_add(world, group, what);
    for (i = 0; i < group->size; i++) {
        apart = apart || strcmp(group->members[i]->host, group->members[0]->host) != 0;
        net_member(group, i, owners, sums, unread);
    }
    json_decref(owners);
    if (!world->net)
        world->net = json_array();
    if (!apart) {
        json_decref(sums);
        json_decref(unread);
        return;
    }
    counters = net_counters(group, &quiet);
    (void)json_array_append_new(world->net, json_pack("{s:s, s:o, s:o, s:o, s:i}", "what", what,
                                                      "flows", net_rows(sums), "unread", unread,
                                                      "counters", counters, "quiet", quiet));
}

int hub_counters_fact(const struct shk_transport *transport, const char *name, json_t *value,
                      const char *source, struct shk_facts *facts)
{
    char *key = shk_strf("collective.%s.%s", transport->name, name);
    char *status_key = shk_strf("collective.%s.status", transport->name);
    const char *status = status_key ? shk_facts_get_text(facts, status_key) : NULL;
    bool idle = status && strcmp(status, "na") == 0;
    int rc = key && status_key ? 0 : -ENOMEM;

    if (rc == 0 && json_array_size(value) > 0 && !idle)
        rc = shk_facts_present(facts, key, value, NULL, source);
    else
        json_decref(value);
    free(status_key);
    free(key);
    return rc;
}

int hub_net_facts(struct shk_world *world, const struct shk_transport *transport,
                  struct shk_facts *facts)
{
    json_t *runs = world->net;
    int rc = 0;

    world->net = NULL;
    rc = hub_counters_fact(transport, "counters", runs,
                           "inet_diag, /proc/net and /sys before and after", facts);
    return rc == 0 ? hub_moved_facts(world, transport, facts) : rc;
}
