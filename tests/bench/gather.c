/* Rank 0 collects the facts of many nodes over loopback. One process stands for all of them: it
 * makes what they send with the code of a real rank before the clock starts, then answers as they
 * would. Prints bytes and times; exit 1 when the facts that rank 0 has are not those of the node.
 * usage: gather NODES
 * Line 1 of NODES is a facts document with places for what differs: @7@ in a text, "#7#" for a
 * number. Each further line is a node: [[values of the places], {facts that replace others}]. */
#include "collectives/launch/world_private.h"
#include "collectives/meet/card.h"
#include "config/config.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct nodes {
    char *base;
    char **lines;
    unsigned count;
};

struct node {
    struct shk_link link;
    struct agent_facts facts;
};

static struct nodes nodes;
static struct shk_world_options options = {
    .version = "bench", .deadline_ms = 1800000, .probe_arg = NULL};

static void die(const char *what)
{
    fprintf(stderr, "gather: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void read_nodes(const char *path)
{
    FILE *in = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;

    if (in == NULL || getline(&line, &room, in) < 0) {
        die(path);
    }
    nodes.base = line;
    line = NULL;
    while (getline(&line, &room, in) > 0) {
        nodes.lines = realloc(nodes.lines, (nodes.count + 1) * sizeof(*nodes.lines));
        nodes.lines[nodes.count++] = line;
        line = NULL;
    }
    free(line);
    fclose(in);
}

/* The document with the values of one node in their places. */
static char *filled(const json_t *values)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    const char *at = nodes.base;

    for (;;) {
        size_t plain = strcspn(at, "@#");
        char mark = at[plain];
        char *end = NULL;
        unsigned long place = mark != '\0' ? strtoul(at + plain + 1, &end, 10) : 0;
        const char *value = json_string_value(json_array_get(values, place));
        bool number = mark == '#';

        if (mark == '\0') {
            shk_strbuf_puts(&sb, at);
            return shk_strbuf_take(&sb);
        }
        if (end == at + plain + 1 || *end != mark || value == NULL) {
            shk_strbuf_add(&sb, at, plain + 1);
            at += plain + 1;
            continue;
        }
        shk_strbuf_add(&sb, at, plain - number); /* not the quotes around a number */
        shk_strbuf_puts(&sb, value);
        at = end + 1 + number;
    }
}

static struct shk_facts *facts_of(unsigned i)
{
    struct shk_facts *facts = NULL;
    struct shk_error err = {{0}};
    json_t *line = json_loads(nodes.lines[i], 0, NULL);
    char *text = filled(json_array_get(line, 0));
    json_t *doc = json_loads(text, 0, NULL);

    (void)json_object_update(json_object_get(doc, "facts"), json_array_get(line, 1));
    if (shk_facts_from_json(&facts, doc, &err) < 0) {
        fprintf(stderr, "gather: node %u: %s\n", i, err.text);
        exit(1);
    }
    free(text);
    json_decref(doc);
    json_decref(line);
    return facts;
}

static int probe(void *arg, struct shk_facts **facts_p, struct shk_error *err)
{
    (void)err;
    *facts_p = facts_of(*(unsigned *)arg);
    return 0;
}

/* Keeps one copy of what nodes have alike: ten thousand of them have to fit into this process. */
static void share(struct agent_facts *mine, const struct agent_facts *first)
{
    size_t i = 0;

    for (i = 0; i < mine->parts.count && i < first->parts.count; i++) {
        if (shk_digest_equal(&mine->parts.sections[i].digest, &first->parts.sections[i].digest)) {
            free(mine->parts.sections[i].text);
            mine->parts.sections[i].text = first->parts.sections[i].text;
        }
    }
}

static void hello(struct node *node, const struct shk_world *world, unsigned rank, unsigned port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[256];
    int len = snprintf(text, sizeof(text),
                       "{\"host\":\"nid%06u\",\"local_rank\":0,\"pid\":%d,\"rank\":%u,"
                       "\"token\":\"%s\",\"version\":\"bench\"}",
                       rank + 1, (int)getpid(), rank, world->token);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        die("connect");
    }
    shk_link_open(&node->link, fd);
    (void)shk_link_send(&node->link, SHK_FRAME_HELLO, text, (size_t)len);
    (void)!agent_facts_tell(&node->facts, &node->link);
}

static void serve(struct node *all, struct pollfd *fds)
{
    struct shk_frame frame;
    unsigned open = nodes.count - 1;
    unsigned i = 0;

    while (open > 0) {
        for (i = 1; i < nodes.count; i++) {
            short events = (short)(POLLIN | (all[i].link.out.len > 0 ? POLLOUT : 0));

            fds[i] = (struct pollfd){.fd = all[i].link.fd, .events = events};
        }
        (void)poll(fds + 1, nodes.count - 1, -1);
        for (i = 1; i < nodes.count; i++) {
            if (fds[i].revents == 0) {
                continue;
            }
            (void)shk_link_flush(&all[i].link);
            (void)shk_link_fill(&all[i].link);
            while (shk_link_next(&all[i].link, &frame)) {
                if (frame.type == SHK_FRAME_WANT) {
                    agent_facts_want(&all[i].facts, &all[i].link, &frame);
                } else if (frame.type == SHK_FRAME_CLOCK) {
                    world_clock_answer(&all[i].link, &frame);
                } else if (frame.type == SHK_FRAME_BYE) {
                    shk_link_close(&all[i].link);
                }
            }
            open -= all[i].link.fd < 0;
        }
    }
}

/* Every node but the first, which rank 0's own child stands for. */
static void be_nodes(struct shk_world *world, unsigned port, int ready) __attribute__((noreturn));
static void be_nodes(struct shk_world *world, unsigned port, int ready)
{
    struct node *all = calloc(nodes.count, sizeof(*all));
    struct pollfd *fds = calloc(nodes.count, sizeof(*fds));
    unsigned i = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(world->listen_fd);
    for (i = 0; i < nodes.count; i++) {
        struct shk_world_options mine = options;

        mine.probe_arg = &i;
        if (agent_facts_make(&all[i].facts, &mine) < 0) {
            fprintf(stderr, "gather: node %u: %s\n", i, all[i].facts.why.text);
            _exit(1);
        }
        if (i > 0) {
            share(&all[i].facts, &all[0].facts);
        }
    }
    if (write(ready, "", 1) != 1) {
        _exit(1);
    }
    for (i = 1; i < nodes.count; i++) {
        hello(&all[i], world, i, port);
    }
    serve(all, fds);
    _exit(0);
}

static double seconds(const struct timeval *tv)
{
    return (double)tv->tv_sec + (double)tv->tv_usec / 1e6;
}

/* Bytes both ways, greeting included, until all facts are there. An identical node is one that rank
 * 0 had nothing to ask. */
static bool print_bytes(const struct shk_world *world)
{
    uint64_t most = 0;
    uint64_t sum = 0;
    unsigned same = 0;
    unsigned i = 0;

    for (i = 1; i < world->size; i++) {
        const struct shk_link *link = &world->members[i].link;

        if (link->sent == 0) {
            same++;
            sum += link->received;
            most = link->received > most ? link->received : most;
        }
    }
    printf(" %9u %6.0f %6llu ", same, same > 0 ? (double)sum / same : 0.0,
           (unsigned long long)most);
    for (i = 1; i < world->size; i++) {
        const struct shk_link *link = &world->members[i].link;

        if (link->sent != 0) {
            printf(" %s:%llu", world->members[i].host,
                   (unsigned long long)(link->received + link->sent));
        }
    }
    return same > 0 && most < 1024;
}

static bool all_right(struct shk_world *world)
{
    bool right = true;
    unsigned i = 0;

    for (i = 0; i < world->nodes_count; i++) {
        struct shk_facts *got = hub_facts_take(world, &world->nodes[i]);
        struct shk_facts *given = facts_of(world->nodes[i].leader);
        json_t *a = got != NULL ? shk_facts_to_json(got) : NULL;
        json_t *b = shk_facts_to_json(given);

        if (!json_equal(a, b)) {
            fprintf(stderr, "gather: %s: not what it sent: %s\n", world->nodes[i].name,
                    world->nodes[i].why.text);
            right = false;
        }
        json_decref(a);
        json_decref(b);
        shk_facts_destroy(got);
        shk_facts_destroy(given);
    }
    return right && world->nodes_count == nodes.count;
}

/* Puts the facts together of those nodes that are like no other. */
static void fold(struct shk_world *world)
{
    uint64_t began = shk_job_now_ns();
    struct rusage usage;
    unsigned groups = 0;
    size_t i = 0;

    for (i = 0; i < world->nodes_count; i++) {
        if (shk_world_like(world, i) == i) {
            shk_facts_destroy(shk_world_take_facts(world, i));
            groups++;
        }
    }
    getrusage(RUSAGE_SELF, &usage);
    printf(" %8.2f %6u %6.0f", (double)(shk_job_now_ns() - began) / 1e9, groups,
           (double)usage.ru_maxrss / 1024);
}

static bool collect(struct shk_world *world)
{
    struct rusage before;
    struct rusage after;
    struct shk_error err = {{0}};
    uint64_t began = shk_job_now_ns();
    double took = 0;
    bool right = false;

    getrusage(RUSAGE_SELF, &before);
    world->start_ns = began;
    if (hub_gather(world, &err) < 0) {
        fprintf(stderr, "gather: %s\n", err.text);
        return false;
    }
    took = (double)(shk_job_now_ns() - began) / 1e9;
    getrusage(RUSAGE_SELF, &after);
    printf("%7u %8.2f %8.2f", nodes.count, took,
           seconds(&after.ru_utime) + seconds(&after.ru_stime) - seconds(&before.ru_utime) -
               seconds(&before.ru_stime));
    fold(world);
    right = print_bytes(world);
    putchar('\n');
    fflush(stdout);
    return all_right(world) && right;
}

int main(int argc, char **argv)
{
    static unsigned first = 0;
    struct shk_world *world = calloc(1, sizeof(*world));
    struct shk_config *config = NULL;
    struct shk_error err = {{0}};
    unsigned port = 0;
    int ready[2];
    pid_t child = 0;
    char byte = 0;
    bool right = false;

    if (argc != 2 || world == NULL) {
        fprintf(stderr, "usage: gather NODES\n");
        return 2;
    }
    read_nodes(argv[1]);
    if (shk_config_load(&config, NULL, NULL, &err) != 0) {
        fprintf(stderr, "gather: %s\n", err.text);
        return 1;
    }
    options.rules = shk_config_diff(config, &options.rules_count);
    options.probe = probe;
    options.probe_arg = &first;
    world->options = &options;
    world->role = SHK_WORLD_ROOT;
    world->size = nodes.count;
    world->members = calloc(world->size, sizeof(*world->members));
    snprintf(world->host, sizeof(world->host), "nid%06u", 1);
    snprintf(world->token, sizeof(world->token), "%032d", 1);
    for (unsigned i = 0; i < world->size; i++) {
        world->members[i].rank = i;
        world->members[i].link.fd = -1;
    }
    world_descriptors(world);
    world->listen_fd = shk_card_listen(NULL, 0, false, &port, NULL);
    if (world->listen_fd < 0 || pipe(ready) != 0 || (child = fork()) < 0) {
        die("start");
    }
    if (child == 0) {
        be_nodes(world, port, ready[1]);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) {
        die("nodes");
    }
    right = collect(world);
    shk_world_close(world, 0);
    (void)waitpid(child, NULL, 0);
    shk_config_free(config);
    for (unsigned i = 0; i < nodes.count; i++) {
        free(nodes.lines[i]);
    }
    free(nodes.lines);
    free(nodes.base);
    return right ? 0 : 1;
}
