/* What a node found out, in parts: first a digest of the list of its sections and what is its own,
 * then what rank 0 asks for. */
#include "collectives/launch/world_private.h"
#include "core/facts/pack.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int agent_facts_split(struct agent_facts *facts, const struct shk_world_options *options,
                             struct shk_error *err)
{
    struct shk_facts *found = NULL;
    int rc = 0;

    if (options->probe)
        rc = options->probe(options->probe_arg, &found, err);
    else if ((found = shk_facts_create()) == NULL)
        rc = shk_error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        rc = shk_factparts_split(&facts->parts, found, options->rules, options->rules_count, err);
    shk_facts_destroy(found);
    return rc;
}

/* What hub_facts.c reads: {digest, u32 length, u8 length of the name, name} of each section. */
static int agent_facts_list(struct agent_facts *facts, struct shk_error *err)
{
    if (facts->parts.count > SHK_FACTPARTS_MAX || facts->parts.own_len > SHK_FACTPARTS_OWN_MAX)
        return shk_error_set(err, E2BIG, "more facts than can be sent");
    for (size_t i = 0; i < facts->parts.count; i++) {
        const struct shk_factpart *part = &facts->parts.sections[i];
        uint32_t len = (uint32_t)part->len;
        unsigned char name_len = (unsigned char)strlen(part->name);

        if (part->len > SHK_FACTPART_MAX_BYTES) {
            return shk_error_set(err, E2BIG, "the facts %s.* are %zu bytes, more than can be sent",
                                 part->name, part->len);
        }
        shk_strbuf_add(&facts->list, part->digest.bytes, sizeof part->digest.bytes);
        shk_strbuf_add(&facts->list, &len, sizeof len);
        shk_strbuf_add(&facts->list, &name_len, sizeof name_len);
        shk_strbuf_add(&facts->list, part->name, name_len);
    }
    return facts->list.failed ? shk_error_set(err, ENOMEM, "out of memory") : 0;
}

int agent_facts_make(struct agent_facts *facts, const struct shk_world_options *options)
{
    int rc = agent_facts_split(facts, options, &facts->why);

    return rc != 0 ? rc : agent_facts_list(facts, &facts->why);
}

int agent_facts_tell(const struct agent_facts *facts, struct shk_link *link)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    struct shk_digest digest = shk_digest_of(facts->list.data, facts->list.len);
    int rc = -ENOMEM;

    if (facts->why.text[0] != '\0')
        return shk_link_send(link, SHK_FRAME_NO_FACTS, facts->why.text, strlen(facts->why.text));
    shk_strbuf_add(&sb, digest.bytes, sizeof digest.bytes);
    shk_pack(&sb, facts->parts.own, facts->parts.own_len);
    if (!sb.failed)
        rc = shk_link_send(link, SHK_FRAME_NODE, sb.data, sb.len);
    shk_strbuf_free(&sb);
    return rc;
}

void agent_facts_want(const struct agent_facts *facts, struct shk_link *link,
                      const struct shk_frame *frame)
{
    uint32_t index = 0;

    if (frame->len == 0)
        (void)shk_link_send(link, SHK_FRAME_LIST, facts->list.data, facts->list.len);
    for (size_t at = 0; at + sizeof index <= frame->len; at += sizeof index) {
        struct shk_strbuf sb = SHK_STRBUF_INIT;

        memcpy(&index, frame->data + at, sizeof index);
        if (index >= facts->parts.count)
            return;
        shk_strbuf_add(&sb, &index, sizeof index);
        shk_pack(&sb, facts->parts.sections[index].text, facts->parts.sections[index].len);
        if (!sb.failed)
            (void)shk_link_send(link, SHK_FRAME_SECTION, sb.data, sb.len);
        shk_strbuf_free(&sb);
    }
}

void agent_facts_clear(struct agent_facts *facts)
{
    shk_factparts_clear(&facts->parts);
    shk_strbuf_free(&facts->list);
}
