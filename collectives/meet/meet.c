#include "collectives/meet/meet.h"
#include "collectives/meet/greet.h"
#include "core/text/nodefold.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ports for jobs of which none is known: below those that Linux gives to whoever asks for any
 * (ip_local_port_range, from 32768 on) and above what services of hosts use. */
#define MEET_PORT_FIRST 21000U
#define MEET_PORT_COUNT 8000U

struct meet_env {
    const struct shk_launch *launch;
    shk_launch_get *get;
    void *arg;
    const char *more; /* see shk_meet_choose() */
};

bool shk_meet_number(const char *text, unsigned *value_p)
{
    char *end = NULL;
    if (!text || *text < '0' || *text > '9')
        return false;
    unsigned long value = strtoul(text, &end, 10);
    if (*end != '\0' || value > 1UL << 24)
        return false;
    *value_p = (unsigned)value;
    return true;
}

/* The first that is set; *name_p: which. */
static const char *meet_first(const struct meet_env *env, const char *const *names,
                              const char **name_p)
{
    for (; names && *names; names++) {
        const char *text = env->get(*names, env->arg);
        if (text && *text) {
            if (name_p)
                *name_p = *names;
            return text;
        }
    }
    return NULL;
}

static bool meet_count(const struct meet_env *env, const char *const *names, unsigned *value_p)
{
    for (; names && *names; names++)
        if (shk_meet_number(env->get(*names, env->arg), value_p))
            return true;
    return false;
}

/* Who this is, by the launcher's variables. */
static bool meet_self(struct shk_meet *meet, const struct meet_env *env)
{
    const struct shk_launch *launch = env->launch;
    unsigned local = 0, node = 0;
    if (!launch || launch->allocation || !meet_count(env, launch->rank, &meet->rank) ||
        (launch->ranks &&
         (!meet_count(env, launch->ranks, &meet->size) || meet->rank >= meet->size)))
        return false;
    meet->local_rank = meet_count(env, launch->local_rank, &local) ? (int)local : -1;
    (void)meet_count(env, launch->nodes, &meet->nodes);
    if (!meet_count(env, launch->local_ranks, &meet->local_size) &&
        meet_count(env, launch->node_rank, &node))
        meet->local_size = shk_launch_tasks_of(meet_first(env, launch->tasks_per_node, NULL), node);
    return true;
}

static bool meet_is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

/* Ports from a known one on. */
static void meet_ports(struct shk_meet *meet, unsigned first)
{
    meet->ports = SHK_MEET_PORTS;
    for (unsigned i = 0; i < SHK_MEET_PORTS; i++)
        meet->port[i] = first + i;
}

/* FNV-1a: any number that is the same for all ranks will do. */
static unsigned meet_port_of(const char *names)
{
    uint32_t hash = 2166136261U;
    for (; *names; names++)
        hash = (hash ^ (unsigned char)*names) * 16777619U;
    return MEET_PORT_FIRST + hash % MEET_PORT_COUNT;
}

/* What tells this job from others, and its ports. False: nothing does. */
static bool meet_name(struct shk_meet *meet, const struct meet_env *env)
{
    struct shk_strbuf names = SHK_STRBUF_INIT;
    const char *text = meet_first(env, env->launch->port, NULL);
    unsigned port = 0;
    bool named = shk_meet_number(text, &port) && port > 0 && port < 65536;
    shk_strbuf_printf(&names, "%s %u", env->launch->name, meet->size);
    if (named)
        shk_strbuf_printf(&names, " port=%u", port);
    for (const char *const *v = env->launch->job; v && *v; v++) {
        const char *value = env->get(*v, env->arg);
        if (value && *value) {
            shk_strbuf_printf(&names, " %s=%s", *v, value);
            named = true;
        }
    }
    if (env->more && *env->more) {
        shk_strbuf_printf(&names, " %s", env->more);
        named = true;
    }
    shk_greet_job(meet->job, shk_strbuf_text(&names));
    if (port > 0 && port < 65536)
        meet_ports(meet, port + SHK_MEET_BESIDE + SHK_MEET_PORTS < 65536 ? port + SHK_MEET_BESIDE
                                                                         : port - SHK_MEET_BESIDE);
    else
        meet_ports(meet, meet_port_of(shk_strbuf_text(&names)));
    shk_strbuf_free(&names);
    return named;
}

static void meet_host(const char *name, void *hosts)
{
    json_array_append_new(hosts, json_string(name));
}

/* A launcher wrote it: what is no list is taken for none at all. */
json_t *shk_meet_hostlist(const char *text, size_t most)
{
    json_t *hosts = json_array();
    bool clean = true;
    for (const char *p = text; *p; p++)
        clean &= isgraph((unsigned char)*p) != 0;
    if (hosts && (!clean || shk_nodefold_each(text, most, meet_host, hosts) == -EINVAL))
        json_array_clear(hosts);
    return hosts;
}

/* A task on each node of the list: then the host of each rank is known, too. */
static void meet_nodelist(struct shk_meet *meet, const char *text)
{
    json_t *hosts = meet->size <= SHK_NODEFOLD_MAX ? shk_meet_hostlist(text, meet->size + 1) : NULL;
    json_decref(meet->addresses);
    meet->addresses = shk_meet_hostlist(text, SHK_MEET_HOSTS);
    if (json_array_size(hosts) == meet->size)
        meet->hosts = json_incref(hosts);
    json_decref(hosts);
}

/* Where rank 0 is, by the launcher's variables. */
static bool meet_address(struct shk_meet *meet, const struct meet_env *env)
{
    const struct shk_launch *launch = env->launch;
    const char *name = NULL, *text = meet_first(env, launch->address, &name);
    if (text) {
        json_array_append_new(meet->addresses, json_string(text));
        meet->loopback = meet_is_loopback(text);
    } else if ((text = meet_first(env, launch->nodelist, &name))) {
        meet_nodelist(meet, text);
    } else if (meet->local_size == meet->size || meet->nodes == 1) {
        json_array_append_new(meet->addresses, json_string("127.0.0.1"));
        meet->loopback = true;
    }
    meet->by = "variables";
    meet->launcher = launch->title;
    meet->variable = name;
    return json_array_size(meet->addresses) > 0;
}

static void meet_by_variables(struct shk_meet *meet, const struct meet_env *env)
{
    const struct shk_launch *launch = env->launch;
    bool where = meet_address(meet, env), named = where && meet_name(meet, env);
    if (where && named) {
        meet->way = SHK_MEET_ADDRESS;
    } else if (where) {
        snprintf(meet->why_not, sizeof meet->why_not,
                 "the variables of %s do not distinguish this job from another on the same hosts "
                 "(no port, "
                 "no job number)",
                 launch->title);
    } else {
        const char *first = launch->address    ? launch->address[0]
                            : launch->nodelist ? launch->nodelist[0]
                                               : "";
        snprintf(meet->why_not, sizeof meet->why_not,
                 "the variables of %s do not say where rank 0 is%s%s%s", launch->title,
                 *first ? " (" : "", first, *first ? " is not set)" : "");
    }
}

/* A process manager that gave a socket to this task, and to it as this rank. */
static bool meet_has_pmi(const struct shk_meet *meet, const struct meet_env *env)
{
    unsigned rank = 0, size = 0, number = 0;
    const char *port = env->get(shk_variable("pmi-port"), env->arg);
    if (env->launch->inherits)
        return false;
    if (!shk_meet_number(env->get(shk_variable("pmi2-socket"), env->arg), &number))
        return port && strchr(port, ':') &&
               shk_meet_number(env->get(shk_variable("pmi-id"), env->arg), &rank) &&
               rank == meet->rank;
    return shk_meet_number(env->get(shk_variable("pmi-rank"), env->arg), &rank) &&
           shk_meet_number(env->get(shk_variable("pmi-size"), env->arg), &size) &&
           rank == meet->rank && size == meet->size;
}

/* tcp://HOST:PORT or tcp://[ADDRESS]:PORT */
static int meet_tcp(struct shk_meet *meet, const char *asked, struct shk_error *err)
{
    const char *text = asked + strlen("tcp://"), *colon = strrchr(text, ':');
    unsigned port = 0;
    char host[256];
    bool brackets = *text == '[' && colon && colon > text + 1 && colon[-1] == ']';
    if (!colon || colon == text || !shk_meet_number(colon + 1, &port) || port == 0 ||
        port > 65535 || (size_t)(colon - text) >= sizeof host)
        return shk_error_set(err, EINVAL, "--rendezvous %s: tcp://HOST:PORT has a host and a port",
                             asked);
    snprintf(host, sizeof host, "%.*s", (int)(colon - text) - 2 * brackets, text + brackets);
    json_array_append_new(meet->addresses, json_string(host));
    meet->loopback = meet_is_loopback(host);
    meet->way = SHK_MEET_ADDRESS;
    meet->ports = 1;
    meet->port[0] = port;
    snprintf(host, sizeof host, "tcp %u port=%u", meet->size, port);
    shk_greet_job(meet->job, host);
    return 0;
}

static int meet_folder(struct shk_meet *meet, const struct meet_env *env, const char *asked,
                       struct shk_error *err)
{
    const char *path = asked + strlen("file://");
    if (*path != '/')
        return shk_error_set(err, EINVAL,
                             "--rendezvous %s: file:///DIR names a folder from the root on", asked);
    meet->folder = strdup(path);
    if (!meet->folder)
        return shk_error_set(err, ENOMEM, "out of memory");
    meet->way = SHK_MEET_FOLDER;
    (void)meet_name(meet, env);
    meet->ports = 0;
    return 0;
}

static int meet_asked(struct shk_meet *meet, const struct meet_env *env, const char *asked,
                      struct shk_error *err)
{
    bool known = meet_self(meet, env) && meet->size > 0;
    if (strcmp(asked, "none") == 0) {
        snprintf(meet->why_not, sizeof meet->why_not, "--rendezvous none was given");
        return 0;
    }
    if (strcmp(asked, "stdin") == 0) {
        meet->way = SHK_MEET_SSH;
        meet->by = "ssh";
        meet->why = "asked";
        return 0;
    }
    if (strncmp(asked, "tcp://", 6) != 0 && strncmp(asked, "file://", 7) != 0)
        return shk_error_set(err, EINVAL,
                             "--rendezvous %s: tcp://HOST:PORT, file:///DIR, auto or none", asked);
    if (!known)
        return shk_error_set(err, EINVAL,
                             "--rendezvous %s: no launcher says which of how many ranks this is "
                             "(%s and %s are not set)",
                             asked, shk_variable("rank-of-any"), shk_variable("ranks-of-any"));
    bool tcp = strncmp(asked, "tcp", 3) == 0;
    meet->by = tcp ? "tcp" : "folder"; /* not which: a host or folder may name a person */
    meet->why = "asked";
    return tcp ? meet_tcp(meet, asked, err) : meet_folder(meet, env, asked, err);
}

int shk_meet_choose(struct shk_meet *meet, const char *asked, const struct shk_launch *launch,
                    shk_launch_get *get, void *arg, unsigned without, const char *more,
                    struct shk_error *err)
{
    struct meet_env env = {.launch = launch, .get = get, .arg = arg, .more = more};
    memset(meet, 0, sizeof *meet);
    meet->local_rank = -1;
    meet->addresses = json_array();
    if (!meet->addresses)
        return shk_error_set(err, ENOMEM, "out of memory");
    if (asked && strcmp(asked, "auto") != 0)
        return meet_asked(meet, &env, asked, err);
    if (!meet_self(meet, &env) || (launch->ranks && meet->size < 2))
        return 0;
    if (!(without & 1U << SHK_MEET_PMI) && meet_has_pmi(meet, &env)) {
        meet->way = SHK_MEET_PMI;
        meet->by = "pmi";
        meet->why = "no-pmix";
        meet->launcher = strcmp(launch->name, "pmi") == 0 ? NULL : launch->title;
        return 0;
    }
    if (meet->size < 2)
        return 0;
    meet_by_variables(meet, &env);
    meet->why = without & 1U << SHK_MEET_PMI ? "pmi-late" : "no-pmi";
    return 0;
}

void shk_meet_clear(struct shk_meet *meet)
{
    json_decref(meet->addresses);
    json_decref(meet->hosts);
    free(meet->folder);
    if (meet->card)
        explicit_bzero(meet->card, strlen(meet->card));
    free(meet->card);
    explicit_bzero(meet, sizeof *meet);
}
