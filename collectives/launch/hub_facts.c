/* Rank 0 collects what the nodes found out. A node sends one digest of its list of sections and
 * what is its own (core/facts/factparts.h); of a list or section that many have alike one node is
 * asked, the others wait. When it fails or goes away another one is asked. */
#include "collectives/launch/world_private.h"
#include "core/facts/factparts.h"
#include "core/facts/pack.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nodes that are asked at the same time: enough that a slow one holds up nobody, few enough that
 * their answers, some 100 KiB each, fit into socket buffers. */
#define FACTS_FETCHES 32U

/* Without an answer for this long a node that is otherwise there is given up. */
#define FACTS_PATIENCE_NS 10000000000ULL

#define FACTS_NOBODY UINT_MAX

struct facts_section {
    char *name;
    struct shk_digest digest;
    uint32_t len;
    unsigned from; /* rank that was asked */
    struct shk_factsection *parsed;
    char *broken; /* why its text is none */
};

struct facts_list {
    struct shk_digest digest;
    unsigned from;
    bool here;
    size_t *sections;
    size_t count;
    size_t first;               /* node that stands for those that are like it */
    struct shk_factparts parts; /* of that node; empty until it is asked for */
};

struct hub_facts {
    struct facts_list *lists;
    size_t lists_count;
    struct facts_section *sections;
    size_t sections_count;
    json_t *known; /* digest -> index, of lists ("l…") and of sections ("s…") */
    unsigned fetching;
    bool stirred; /* somebody may go on */
};

static struct hub_facts *facts_of(struct shk_world *world)
{
    if (!world->facts && (world->facts = calloc(1, sizeof *world->facts)) != NULL)
        world->facts->known = json_object();
    return world->facts && world->facts->known ? world->facts : NULL;
}

/* Index of a list or section with this digest; a new one is *count. -1: out of memory. */
static json_int_t facts_index(struct hub_facts *facts, char kind, const struct shk_digest *digest,
                              size_t count)
{
    char key[1 + SHK_DIGEST_TEXT] = {kind};
    json_t *known = NULL;

    shk_digest_text(digest, key + 1);
    known = json_object_get(facts->known, key);
    if (known)
        return json_integer_value(known);
    known = json_integer((json_int_t)count);
    return json_object_set_new(facts->known, key, known) == 0 ? (json_int_t)count : -1;
}

/* Room for one more in an array of n that grows by doubling. */
static void *facts_room(void *array, size_t n, size_t size)
{
    return (n & (n - 1)) == 0 ? realloc(array, (n > 0 ? 2 * n : 1) * size) : array;
}

static void facts_release(struct shk_world *world, struct hub_node *node)
{
    struct hub_facts *facts = world->facts;
    struct facts_list *list = &facts->lists[node->list];

    if (node->wanted > 0) {
        facts->fetching--;
        node->wanted = 0;
    }
    if (list->from == node->source)
        list->from = FACTS_NOBODY;
    for (size_t i = 0; i < list->count; i++) {
        if (facts->sections[list->sections[i]].from == node->source)
            facts->sections[list->sections[i]].from = FACTS_NOBODY;
    }
    facts->stirred = true;
}

static void facts_fail(struct shk_world *world, struct hub_node *node, const char *fmt, ...)
    SHK_PRINTF(3, 4);
static void facts_fail(struct shk_world *world, struct hub_node *node, const char *fmt, ...)
{
    char text[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)shk_error_set(&node->why, EPROTO, "%s", text);
    if (node->state == FACTS_TOLD)
        facts_release(world, node);
    node->state = FACTS_FAILED;
}

/* One more answer of those that the node was asked for. */
static void facts_answered(struct shk_world *world, struct hub_node *node)
{
    node->asked_ns = shk_job_now_ns();
    node->wanted--;
    if (node->wanted == 0) {
        world->facts->fetching--;
        world->facts->stirred = true;
    }
}

static int facts_new_list(struct hub_facts *facts, const struct shk_digest *digest, size_t *list_p)
{
    json_int_t at = facts_index(facts, 'l', digest, facts->lists_count);
    struct facts_list *more = facts->lists;

    if (at == (json_int_t)facts->lists_count) {
        more = facts_room(facts->lists, facts->lists_count, sizeof *more);
        if (more) {
            facts->lists = more;
            more[facts->lists_count++] =
                (struct facts_list){.digest = *digest, .from = FACTS_NOBODY, .first = SIZE_MAX};
        }
    }
    *list_p = (size_t)at;
    return at >= 0 && more ? 0 : -ENOMEM;
}

/* A node tells the digest of its list, and what is its own. */
static void facts_told(struct shk_world *world, struct hub_node *node, unsigned rank,
                       const struct shk_frame *frame)
{
    struct hub_facts *facts = facts_of(world);
    struct shk_digest digest;

    if (frame->len < sizeof digest) {
        facts_fail(world, node, "malformed facts");
        return;
    }
    memcpy(&digest, frame->data, sizeof digest);
    node->own_len = frame->len - sizeof digest;
    node->own = malloc(node->own_len + 1);
    if (!facts || !node->own || facts_new_list(facts, &digest, &node->list) < 0) {
        facts_fail(world, node, "rank 0 is out of memory");
        return;
    }
    memcpy(node->own, frame->data + sizeof digest, node->own_len);
    node->state = FACTS_TOLD;
    node->source = rank;
    facts->stirred = true;
}

static int facts_add_section(struct hub_facts *facts, struct facts_list *list,
                             const struct shk_digest *digest, uint32_t len, const char *name,
                             size_t name_len)
{
    json_int_t at = facts_index(facts, 's', digest, facts->sections_count);
    size_t *places = facts_room(list->sections, list->count, sizeof *places);
    struct facts_section *more = NULL;

    if (at < 0 || !places)
        return -ENOMEM;
    list->sections = places;
    places[list->count++] = (size_t)at;
    if (at < (json_int_t)facts->sections_count)
        return facts->sections[at].len == len ? 0 : -EPROTO;
    more = facts_room(facts->sections, facts->sections_count, sizeof *more);
    if (!more)
        return -ENOMEM;
    facts->sections = more;
    more[facts->sections_count++] = (struct facts_section){
        .name = strndup(name, name_len), .digest = *digest, .len = len, .from = FACTS_NOBODY};
    return more[at].name ? 0 : -ENOMEM;
}

/* {digest, u32 length, u8 length of the name, name} of each section. */
static int facts_parse_list(struct hub_facts *facts, struct facts_list *list,
                            const unsigned char *at, size_t left)
{
    struct shk_digest digest;
    const size_t head = sizeof digest + sizeof(uint32_t) + 1;
    uint64_t total = 0;
    uint32_t len = 0;
    int rc = 0;

    while (rc == 0 && left > 0) {
        size_t name_len = left >= head ? at[head - 1] : left;

        if (left < head || name_len > left - head || list->count >= SHK_FACTPARTS_MAX)
            return -EPROTO;
        memcpy(&digest, at, sizeof digest);
        memcpy(&len, at + sizeof digest, sizeof len);
        total += len;
        rc = len <= SHK_FACTPART_MAX_BYTES && total <= SHK_LINK_MAX
                 ? facts_add_section(facts, list, &digest, len, (const char *)at + head, name_len)
                 : -EPROTO;
        at += head + name_len;
        left -= head + name_len;
    }
    return rc;
}

static void facts_take_list(struct shk_world *world, struct hub_node *node,
                            const struct shk_frame *frame)
{
    struct facts_list *list = &world->facts->lists[node->list];
    struct shk_digest digest = shk_digest_of(frame->data, frame->len);

    if (list->here || list->from != node->source || node->wanted == 0) {
        facts_fail(world, node, "it sent a list of its facts that was not requested");
    } else if (!shk_digest_equal(&digest, &list->digest)) {
        facts_fail(world, node, "the list of its facts is not what its digest says");
    } else if (facts_parse_list(world->facts, list, frame->data, frame->len) < 0) {
        facts_fail(world, node, "the list of its facts is malformed");
        list->count = 0;
    } else {
        list->here = true;
        list->from = FACTS_NOBODY;
        facts_answered(world, node);
    }
}

static int facts_open_section(struct facts_section *section, const unsigned char *data, size_t len,
                              struct shk_error *err)
{
    struct shk_digest digest;
    struct shk_error why = {{0}};
    char *text = NULL;
    size_t text_len = 0;
    int rc = shk_unpack(data, len, section->len, &text, &text_len, err);

    if (rc < 0)
        return rc;
    digest = shk_digest_of(text, text_len);
    if (text_len != section->len || !shk_digest_equal(&digest, &section->digest)) {
        rc = shk_error_set(err, EPROTO, "not what its digest says");
    } else if (shk_factsection_parse(&section->parsed, text, text_len, &why) < 0) {
        /* The text is right, so every node that has it has broken facts. */
        section->broken = strdup(why.text);
        rc = section->broken ? 0 : shk_error_set(err, ENOMEM, "out of memory");
    }
    free(text);
    return rc;
}

static void facts_take_section(struct shk_world *world, struct hub_node *node,
                               const struct shk_frame *frame)
{
    struct facts_list *list = &world->facts->lists[node->list];
    struct facts_section *section = NULL;
    struct shk_error err = {{0}};
    uint32_t index = UINT32_MAX;

    memcpy(&index, frame->data, frame->len >= sizeof index ? sizeof index : 0);
    if (list->here && index < list->count)
        section = &world->facts->sections[list->sections[index]];
    if (!section || section->from != node->source) {
        facts_fail(world, node, "it sent facts that were not requested");
    } else if (facts_open_section(section, frame->data + sizeof index, frame->len - sizeof index,
                                  &err) < 0) {
        facts_fail(world, node, "its facts %s.*: %s", section->name, err.text);
    } else {
        section->from = FACTS_NOBODY;
        facts_answered(world, node);
    }
}

void hub_facts_frame(struct shk_world *world, struct hub_member *member,
                     const struct shk_frame *frame)
{
    struct hub_node *node = hub_node_of(world, member->host);
    bool mine = node && node->state == FACTS_TOLD && node->source == member->rank;

    if (node && node->state == FACTS_AWAITED && frame->type == SHK_FRAME_NODE) {
        facts_told(world, node, member->rank, frame);
    } else if (node && node->state == FACTS_AWAITED && frame->type == SHK_FRAME_NO_FACTS) {
        facts_fail(world, node, "%.*s", (int)(frame->len < 400 ? frame->len : 400),
                   (const char *)frame->data);
    } else if (mine && frame->type == SHK_FRAME_LIST) {
        facts_take_list(world, node, frame);
    } else if (mine && frame->type == SHK_FRAME_SECTION) {
        facts_take_section(world, node, frame);
    }
}

static void facts_ask(struct shk_world *world, struct hub_node *node, const uint32_t *indices,
                      size_t count, unsigned answers)
{
    node->wanted = answers;
    node->asked_ns = shk_job_now_ns();
    world->facts->fetching++;
    (void)shk_link_send(&world->members[node->source].link, SHK_FRAME_WANT, indices,
                        count * sizeof *indices);
}

/* Asks for the sections of its list that nobody was asked for. */
static void facts_want(struct shk_world *world, struct hub_node *node)
{
    struct hub_facts *facts = world->facts;
    struct facts_list *list = &facts->lists[node->list];
    uint32_t want[SHK_FACTPARTS_MAX];
    size_t missing = 0;
    unsigned count = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        struct facts_section *section = &facts->sections[list->sections[i]];

        if (section->broken) {
            facts_fail(world, node, "its facts %s.*: %s", section->name, section->broken);
            return;
        }
        missing += !section->parsed;
        if (!section->parsed && section->from == FACTS_NOBODY && facts->fetching < FACTS_FETCHES) {
            section->from = node->source;
            want[count++] = i;
        }
    }
    if (missing == 0)
        node->state = FACTS_DONE;
    else if (count > 0)
        facts_ask(world, node, want, count, count);
}

static void facts_go_on(struct shk_world *world, struct hub_node *node)
{
    struct facts_list *list = &world->facts->lists[node->list];

    if (list->here) {
        facts_want(world, node);
    } else if (list->from == FACTS_NOBODY && world->facts->fetching < FACTS_FETCHES) {
        list->from = node->source;
        facts_ask(world, node, NULL, 0, 1);
    }
}

static void facts_overdue(struct shk_world *world, struct hub_node *node)
{
    struct hub_member *member = &world->members[node->source];
    uint64_t now = shk_job_now_ns();

    if (now - member->link.heard_ns > WORLD_SILENT_NS) {
        hub_lose(world, member, CREW_LOSS_UNKNOWN, "no word from it");
    } else if (now - node->asked_ns > FACTS_PATIENCE_NS) {
        facts_fail(world, node, "it did not send its facts within %llu s",
                   FACTS_PATIENCE_NS / 1000000000ULL);
    }
}

void hub_facts_turn(struct shk_world *world)
{
    struct hub_facts *facts = world->facts;
    bool stirred = facts && facts->stirred;

    if (!facts)
        return;
    facts->stirred = false;
    for (size_t i = 0; i < world->nodes_count; i++) {
        struct hub_node *node = &world->nodes[i];

        if (node->state != FACTS_TOLD)
            continue;
        if (node->wanted > 0)
            facts_overdue(world, node);
        else if (stirred)
            facts_go_on(world, node);
    }
}

void hub_facts_lost(struct shk_world *world, struct hub_member *member)
{
    struct hub_node *node = hub_node_of(world, member->host);

    if (!node || node->state != FACTS_TOLD || node->source != member->rank)
        return;
    facts_release(world, node);
    node->state = FACTS_LOST;
}

bool hub_facts_complete(const struct shk_world *world)
{
    for (size_t i = 0; i < world->nodes_count; i++) {
        const struct hub_node *node = &world->nodes[i];
        bool there = node->leader != UINT_MAX && world->members[node->leader].state != MEMBER_LOST;

        if (node->state == FACTS_TOLD || (node->state == FACTS_AWAITED && there))
            return false;
    }
    return true;
}

static bool facts_all_here(const struct hub_facts *facts, const struct hub_node *node)
{
    const struct facts_list *list = &facts->lists[node->list];

    for (size_t i = 0; i < list->count; i++) {
        if (facts->sections[list->sections[i]].parsed == NULL)
            return false;
    }
    return list->here;
}

void hub_facts_end(struct shk_world *world)
{
    for (size_t i = 0; i < world->nodes_count; i++) {
        struct hub_node *node = &world->nodes[i];

        if (node->state == FACTS_LOST && facts_all_here(world->facts, node)) {
            node->state = FACTS_DONE; /* other nodes said the same */
        } else if (node->state == FACTS_LOST) {
            facts_fail(world, node, "it was lost while it sent its facts");
        } else if (node->state == FACTS_TOLD ||
                   (node->state == FACTS_AWAITED && node->leader != UINT_MAX &&
                    world->members[node->leader].state != MEMBER_LOST)) {
            facts_fail(world, node, "its facts did not arrive in time");
        }
    }
}

struct shk_facts *hub_facts_take(struct shk_world *world, struct hub_node *node)
{
    struct shk_factsection *sections[SHK_FACTPARTS_MAX];
    struct shk_facts *facts = NULL;
    struct shk_error err = {{0}};
    const struct facts_list *list = NULL;
    char *own = NULL;
    size_t own_len = 0;
    int rc = 0;

    if (node->state != FACTS_DONE)
        return NULL;
    list = &world->facts->lists[node->list];
    for (size_t i = 0; i < list->count; i++)
        sections[i] = world->facts->sections[list->sections[i]].parsed;
    rc = shk_unpack(node->own, node->own_len, SHK_FACTPARTS_OWN_MAX, &own, &own_len, &err);
    rc = rc != 0 ? rc : shk_factparts_join(&facts, sections, list->count, own, own_len, &err);
    if (rc < 0)
        facts_fail(world, node, "its facts: %s", err.text);
    free(own);
    return facts;
}

/* Makes a node the one that stands for its list. */
static void facts_stand(struct shk_world *world, struct facts_list *list, size_t node)
{
    struct hub_node *mine = &world->nodes[node];
    struct shk_facts *facts = hub_facts_take(world, mine);
    struct shk_error err = {{0}};
    char *own = NULL;
    size_t len = 0;

    /* A node with other rules takes out something else: nothing can be said of it. */
    if (facts &&
        shk_factparts_split(&list->parts, facts, world->options->rules, world->options->rules_count,
                            &err) == 0 &&
        shk_unpack(mine->own, mine->own_len, SHK_FACTPARTS_OWN_MAX, &own, &len, &err) == 0 &&
        len == list->parts.own_len && memcmp(own, list->parts.own, len) == 0) {
        list->first = node;
    } else {
        shk_factparts_clear(&list->parts);
    }
    free(own);
    shk_facts_destroy(facts);
}

size_t shk_world_like(struct shk_world *world, size_t node)
{
    struct hub_node *mine = &world->nodes[node];
    struct facts_list *list = NULL;
    struct shk_error err = {{0}};
    char *own = NULL;
    size_t len = 0;
    size_t like = node;

    if (mine->state != FACTS_DONE)
        return node;
    list = &world->facts->lists[mine->list];
    if (list->first == SIZE_MAX) {
        facts_stand(world, list, node);
    } else if (shk_unpack(mine->own, mine->own_len, SHK_FACTPARTS_OWN_MAX, &own, &len, &err) == 0 &&
               shk_factparts_alike(&list->parts, own, len)) {
        like = list->first;
    }
    free(own);
    return like;
}

void hub_facts_free(struct shk_world *world)
{
    struct hub_facts *facts = world->facts;

    for (size_t i = 0; i < world->nodes_count; i++)
        free(world->nodes[i].own);
    if (!facts)
        return;
    for (size_t i = 0; i < facts->lists_count; i++) {
        free(facts->lists[i].sections);
        shk_factparts_clear(&facts->lists[i].parts);
    }
    for (size_t i = 0; i < facts->sections_count; i++) {
        free(facts->sections[i].name);
        free(facts->sections[i].broken);
        shk_factsection_free(facts->sections[i].parsed);
    }
    free(facts->lists);
    free(facts->sections);
    json_decref(facts->known);
    free(facts);
}
