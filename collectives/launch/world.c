#include "collectives/launch/world_private.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* First word of what rank 0 publishes: "shakedown1 TOKEN PORT ADDRESS ADDRESS …". */
#define WORLD_CARD "shakedown1"

/* The least MTU of IPv6 without its header and that of TCP (RFC 8200, section 5). */
#define WORLD_SEGMENT (1280 - 60)

/* One address that does not answer must not use up the time of the others. */
#define WORLD_CONNECT_MS 1500

static bool world_number(const char *name, unsigned *value_p)
{
    const char *text = name != NULL ? getenv(name) : NULL;
    char *end = NULL;
    unsigned long value = 0;

    if (text == NULL || *text < '0' || *text > '9') {
        return false;
    }
    value = strtoul(text, &end, 10);
    if (*end != '\0' || value > 1U << 24) {
        return false;
    }
    *value_p = (unsigned)value;
    return true;
}

static bool world_first(const char *const *names, unsigned *value_p)
{
    for (; names != NULL && *names != NULL; names++) {
        if (world_number(*names, value_p)) {
            return true;
        }
    }
    return false;
}

/* Tasks of this node out of "4(x2),1" and this node's place in the step. */
static unsigned world_local(const struct shk_launch *launch)
{
    const char *list = launch->tasks_per_node != NULL ? getenv(*launch->tasks_per_node) : NULL;
    unsigned node = 0;
    unsigned seen = 0;

    if (list == NULL || !world_first(launch->node_rank, &node)) {
        return 0;
    }
    while (*list >= '0' && *list <= '9') {
        char *end = NULL;
        unsigned count = (unsigned)strtoul(list, &end, 10);
        unsigned times = strncmp(end, "(x", 2) == 0 ? (unsigned)strtoul(end + 2, &end, 10) : 1;

        seen += times;
        if (node < seen) {
            return count;
        }
        list = end + strcspn(end, ",");
        list += *list == ',';
    }
    return 0;
}

static const char *world_variable(const char *name, void *arg)
{
    (void)arg;
    return getenv(name);
}

/* Without PMIx: the first task of each node works on its own. */
static void world_alone(struct shk_world *world)
{
    const struct shk_launch *launch = shk_launch_find(world_variable, NULL);
    unsigned local_rank = 0;

    world->role = SHK_WORLD_ALONE;
    if (launch == NULL || !world_first(launch->ranks, &world->tasks) || world->tasks < 2) {
        world->single = !(launch != NULL && launch->allocation) && world->tasks == 1;
        world->tasks = 0;
        return;
    }
    world->launch = launch;
    if (launch->allocation) {
        return;
    }
    if (!world_first(launch->local_ranks, &world->local)) {
        world->local = world_local(launch);
    }
    if (world_first(launch->local_rank, &local_rank) && local_rank > 0) {
        world->role = SHK_WORLD_SILENT;
    }
}

/* What ranks and rank 0 tell each other goes in segments that every network carries, so that it
 * passes where large packets vanish, and tells of that. Both ends say so when they connect. */
static void world_small_segments(int fd)
{
    int mss = WORLD_SEGMENT;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss));
}

int world_listen(struct shk_world *world, unsigned *port_p)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);
    int flags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    int off = 0;
    int fd = socket(AF_INET6, flags, 0);

    if (fd >= 0) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if (fd < 0 || bind(fd, (struct sockaddr *)&six, sizeof(six)) != 0) {
        if (fd >= 0) {
            close(fd);
        }
        fd = socket(AF_INET, flags, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&four, sizeof(four)) != 0) {
            int errnum = errno;

            if (fd >= 0) {
                close(fd);
            }
            return -errnum;
        }
    }
    world_small_segments(fd);
    if (listen(fd, SOMAXCONN) != 0 || getsockname(fd, (struct sockaddr *)&bound, &len) != 0) {
        int errnum = errno;

        close(fd);
        return -errnum;
    }
    *port_p = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                : ((struct sockaddr_in *)&bound)->sin_port);
    world->listen_fd = fd;
    return 0;
}

/* Addresses of this host that another one may reach; loopback only when there is no other. */
static void world_addresses(struct shk_strbuf *card)
{
    struct ifaddrs *all = NULL;
    struct ifaddrs *at = NULL;
    char text[NI_MAXHOST];
    unsigned found = 0;

    if (getifaddrs(&all) == 0) {
        for (at = all; at != NULL; at = at->ifa_next) {
            int family = at->ifa_addr != NULL ? at->ifa_addr->sa_family : AF_UNSPEC;
            bool inet6 = family == AF_INET6;
            const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(void *)at->ifa_addr;
            socklen_t len = inet6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

            if ((!inet6 && family != AF_INET) || (at->ifa_flags & IFF_LOOPBACK) ||
                !(at->ifa_flags & IFF_UP) || (inet6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) ||
                getnameinfo(at->ifa_addr, len, text, sizeof(text), NULL, 0, NI_NUMERICHOST) != 0) {
                continue;
            }
            shk_strbuf_printf(card, " %s", text);
            found++;
        }
        freeifaddrs(all);
    }
    if (found == 0) {
        shk_strbuf_puts(card, " 127.0.0.1");
    }
}

static int world_token(struct shk_world *world)
{
    unsigned char bytes[WORLD_TOKEN / 2];
    size_t i = 0;

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return -EIO;
    }
    for (i = 0; i < sizeof(bytes); i++) {
        snprintf(world->token + 2 * i, 3, "%02x", bytes[i]);
    }
    return 0;
}

void world_descriptors(struct shk_world *world)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    world->descriptors = limit.rlim_cur < INT_MAX ? (int)limit.rlim_cur : INT_MAX;
    if (world->size > (unsigned)world->descriptors - WORLD_SPARE_FILES) {
        (void)shk_error_set(&world->problem, EMFILE,
                            "rank 0 may have %d open files (ulimit -Hn), too few for %u ranks",
                            world->descriptors, world->size);
    }
}

static int world_root(struct shk_world *world, unsigned start_ms, struct shk_error *err)
{
    struct shk_strbuf card = SHK_STRBUF_INIT;
    unsigned port = 0;
    int rc = world_token(world);

    if (rc == 0) {
        rc = world_listen(world, &port);
    }
    if (rc < 0) {
        world->pmix.status = SHK_PMIX_FAILED;
        (void)shk_error_sys(&world->pmix.reason, -rc, "rank 0 cannot listen");
        return 0;
    }
    shk_strbuf_printf(&card, WORLD_CARD " %s %u", world->token, port);
    world_addresses(&card);
    if (!card.failed) {
        shk_pmix_join(&world->pmix, shk_strbuf_text(&card), start_ms, NULL);
    }
    shk_strbuf_free(&card);
    if (world->pmix.status == SHK_PMIX_OK && world->pmix.size > 1) {
        unsigned i = 0;

        world->size = world->pmix.size;
        world->members = calloc(world->size, sizeof(*world->members));
        if (world->members == NULL) {
            return shk_error_set(err, ENOMEM, "out of memory");
        }
        for (i = 0; i < world->size; i++) {
            world->members[i].rank = i;
            world->members[i].link.fd = -1;
            snprintf(world->members[i].host, sizeof(world->members[i].host), "%.63s",
                     world->pmix.hosts != NULL ? world->pmix.hosts[i] : "");
        }
        world_descriptors(world);
        world->role = SHK_WORLD_ROOT;
    }
    return 0;
}

static int world_try(const char *address, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *info = NULL;
    struct pollfd ready = {.events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof(error);
    int one = 1;

    if (getaddrinfo(address, port, &hints, &info) != 0) {
        return -1;
    }
    ready.fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    world_small_segments(ready.fd);
    if (ready.fd >= 0 && connect(ready.fd, info->ai_addr, info->ai_addrlen) != 0) {
        error = errno;
        if (error == EINPROGRESS && poll(&ready, 1, WORLD_CONNECT_MS) == 1 &&
            getsockopt(ready.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
            error = errno;
        }
    }
    freeaddrinfo(info);
    if (ready.fd >= 0 && error != 0) {
        close(ready.fd);
        return -1;
    }
    (void)setsockopt(ready.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return ready.fd;
}

static int world_connect(struct shk_world *world, unsigned start_ms, int *fd_p,
                         struct shk_error *err)
{
    uint64_t end = world->start_ns + start_ms * 1000000ULL;
    char *save = NULL;
    char *words = strdup(world->pmix.card);
    char *word = words != NULL ? strtok_r(words, " ", &save) : NULL;
    char *token = strtok_r(NULL, " ", &save);
    char *port = token != NULL ? strtok_r(NULL, " ", &save) : NULL;
    struct timespec nap = {.tv_nsec = 100000000};
    int fd = -1;

    if (word == NULL || port == NULL || strcmp(word, WORLD_CARD) != 0 ||
        strlen(token) != WORLD_TOKEN) {
        free(words);
        return shk_error_set(err, EPROTO, "rank 0 published something else than an address: %.60s",
                             world->pmix.card);
    }
    memcpy(world->token, token, sizeof(world->token));
    while (fd < 0) {
        char *at = world->pmix.card + (save - words);

        while (fd < 0 && *at != '\0') {
            char address[64];
            size_t len = strcspn(at, " ");

            snprintf(address, sizeof(address), "%.*s", (int)len, at);
            fd = world_try(address, port);
            at += len + (at[len] == ' ');
        }
        if (fd >= 0 || shk_job_now_ns() > end) {
            break;
        }
        (void)nanosleep(&nap, NULL);
    }
    free(words);
    if (fd < 0) {
        return shk_error_set(err, EHOSTUNREACH, "rank %u reaches rank 0 on none of its addresses",
                             world->pmix.rank);
    }
    *fd_p = fd;
    return 0;
}

/* May this process join through PMIx, as the rank that the launcher gave to it and no other? */
static bool world_offered(unsigned *rank_p)
{
    const struct shk_launch *launch = shk_launch_find(world_variable, NULL);

    return (launch == NULL || !launch->inherits) && shk_pmix_offered(rank_p);
}

int shk_world_open(struct shk_world **world_p, const struct shk_world_options *options,
                   struct shk_error *err)
{
    struct shk_world *world = calloc(1, sizeof(*world));
    unsigned start_ms = options->deadline_ms / 3;
    unsigned rank = 0;
    int rc = 0;

    if (world == NULL) {
        return shk_error_set(err, ENOMEM, "out of memory");
    }
    world->options = options;
    (void)gethostname(world->host, sizeof(world->host) - 1);
    world->listen_fd = -1;
    world->start_ns = shk_job_now_ns();
    if (world_offered(&rank) && rank == 0) {
        rc = world_root(world, start_ms, err);
    } else if (world_offered(&rank)) {
        shk_pmix_join(&world->pmix, NULL, start_ms, NULL);
        world->role = world->pmix.status == SHK_PMIX_OK ? SHK_WORLD_MEMBER : SHK_WORLD_ALONE;
    }
    if (rc == 0 && world->pmix.status != SHK_PMIX_OK) {
        world_alone(world);
    }
    if (rc < 0) {
        shk_world_close(world, 0);
        return rc;
    }
    *world_p = world;
    return 0;
}

enum shk_world_role shk_world_role(const struct shk_world *world)
{
    return world->role;
}

bool shk_world_speaks(const struct shk_world *world)
{
    unsigned unused = 0;
    bool lost = world->pmix.status != SHK_PMIX_OK && world_offered(&unused);
    bool sole = world->launch == NULL || world->launch->allocation;

    /* PMIx that was offered and did not answer belongs to a job of unknown size, unless the
     * launcher's own variables tell that this is its only task. */
    return world->role == SHK_WORLD_ROOT ||
           (world->role == SHK_WORLD_ALONE && sole && (!lost || world->single));
}

unsigned shk_world_local_tasks(const struct shk_world *world)
{
    return world->local;
}

unsigned shk_world_most_local(const struct shk_world *world)
{
    unsigned most = 0;
    size_t node = 0;
    unsigned i = 0;

    for (node = 0; node < world->nodes_count; node++) {
        unsigned here = 0;

        for (i = 0; i < world->size; i++) {
            here += world->members[i].state == MEMBER_IDLE &&
                    strcmp(world->members[i].host, world->nodes[node].name) == 0;
        }
        most = here > most ? here : most;
    }
    return most;
}

int shk_world_serve(struct shk_world *world, struct shk_error *err)
{
    int fd = -1;
    int rc = world_connect(world, world->options->deadline_ms / 3, &fd, err);

    return rc < 0 ? rc : agent_serve(world, fd, world->pmix.rank, world->pmix.local_rank, err);
}

/* {rank, host} of each rank that is not there, and why. launch: rank 0 could not take it, or it is
 * another program; nothing is known against its node. either: nor when one other host was lost,
 * which rank 0's own host may have caused. */
static json_t *world_missing(const struct shk_world *world)
{
    enum hub_cut cut = hub_cut(world);
    json_t *missing = json_array();
    unsigned i = 0;

    for (i = 0; i < world->size; i++) {
        const struct hub_member *member = &world->members[i];
        bool never = member->state == MEMBER_ABSENT;
        const char *absent = member->refused[0] != '\0'       ? member->refused
                             : world->problem.text[0] != '\0' ? world->problem.text
                                                              : "it never came";

        bool launch = never && (member->refused[0] != '\0' || world->problem.text[0] != '\0');

        if (cut == HUB_CUT_OWN && member->state == MEMBER_LOST) {
            continue;
        }
        if (never || member->state == MEMBER_LOST) {
            (void)json_array_append_new(
                missing, json_pack("{s:i, s:o, s:o, s:b, s:b}", "rank", (int)i, "host",
                                   shk_json_text(member->host, strlen(member->host)), "why",
                                   never ? shk_json_text(absent, strlen(absent))
                                         : json_string("it was there and is gone"),
                                   "launch", launch, "either", cut == HUB_CUT_EITHER && !never));
        }
    }
    if (cut == HUB_CUT_OWN) {
        (void)json_array_append_new(
            missing, json_pack("{s:i, s:o, s:s, s:b}", "rank", 0, "host",
                               shk_json_text(world->host, strlen(world->host)), "why",
                               "its host lost the way to all others at once", "launch", false));
    }
    for (i = 0; i < world->nodes_count; i++) {
        const struct hub_node *node = &world->nodes[i];

        if (node->why.text[0] != '\0') {
            (void)json_array_append_new(
                missing, json_pack("{s:n, s:o, s:o}", "rank", "host",
                                   shk_json_text(node->name, strlen(node->name)), "why",
                                   shk_json_text(node->why.text, strlen(node->why.text))));
        }
    }
    return missing;
}

static json_t *world_layout(const struct shk_world *world)
{
    json_t *layout = json_array();
    size_t i = 0;
    unsigned rank = 0;

    for (i = 0; i < world->nodes_count; i++) {
        const char *name = world->nodes[i].name;

        (void)json_array_append_new(
            layout, json_pack("{s:o, s:[]}", "node", shk_json_text(name, strlen(name)), "ranks"));
    }
    for (rank = 0; rank < world->size; rank++) {
        json_t *node = json_object_get(world->nodes_known, world->members[rank].host);

        if (node != NULL) {
            json_t *row = json_array_get(layout, (size_t)json_integer_value(node));

            (void)json_array_append_new(json_object_get(row, "ranks"), json_integer(rank));
        }
    }
    return layout;
}

/* Tasks that found no job together. */
static json_t *world_alone_fact(const struct shk_world *world)
{
    json_t *alone = json_pack("{s:s, s:b, s:i, s:i}", "launcher", world->launch->title,
                              "allocation", world->launch->allocation, "tasks", (int)world->tasks,
                              "local", (int)world->local);
    unsigned nodes = 0;

    if (world_first(world->launch->nodes, &nodes)) {
        (void)json_object_set_new(alone, "nodes", json_integer(nodes));
    }
    return alone;
}

int shk_world_facts(const struct shk_world *world, struct shk_facts *facts)
{
    static const char source[] = "PMIx";
    const struct shk_pmix *pmix = &world->pmix;
    unsigned unused = 0;
    int rc = 0;

    rc = shk_pmix_built()
             ? shk_facts_bool(facts, "job.pmix.built", true, "build")
             : shk_facts_absent(facts, "job.pmix.built", "build", "built without pmix.h");
    if (rc == 0 && world->launch != NULL) {
        rc = shk_facts_present(facts, "job.alone", world_alone_fact(world), NULL, "environment");
    }
    if (!world_offered(&unused)) {
        return rc;
    }
    if (rc == 0 && pmix->status != SHK_PMIX_OK) {
        if (pmix->version[0] != '\0') { /* that was loaded and failed */
            rc = shk_facts_text(facts, "job.pmix.version", pmix->version, source);
        }
        rc = rc != 0 ? rc : shk_facts_text(facts, "job.pmix.problem", pmix->reason.text, source);
        rc = rc != 0 ? rc
                     : shk_facts_text(facts, "job.pmix.cause",
                                      !shk_pmix_built() ? "not-built"
                                      : pmix->missing   ? "no-library"
                                                        : "failed",
                                      source);
        return rc != 0 ? rc
                       : shk_facts_absent(facts, "job.pmix.library", source, "not joined: %s",
                                          pmix->reason.text);
    }
    rc = rc != 0 ? rc : shk_facts_text(facts, "job.pmix.library", pmix->library, source);
    rc = rc != 0 ? rc : shk_facts_text(facts, "job.pmix.version", pmix->version, source);
    if (world->role == SHK_WORLD_ROOT) {
        rc = rc != 0 ? rc
                     : shk_facts_present(facts, "job.missing", world_missing(world), NULL,
                                         "ranks that came to rank 0");
        rc = rc != 0 ? rc
                     : shk_facts_present(facts, "job.layout", world_layout(world), NULL,
                                         "ranks that came to rank 0");
        rc = rc != 0 ? rc
                     : shk_facts_present(facts, "job.clocks", hub_clocks_json(world), NULL,
                                         "half of the shortest round trip to each node");
    }
    return rc;
}
