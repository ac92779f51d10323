#include "collectives/ranks/agree.h"
#include "collectives/ranks/job_private.h"
#include "core/facts/facts.h"
#include "core/text/strbuf.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGREE_MUST '='
#define AGREE_NOTE '~'

/* Different values that are told apart, and things that may differ; of more there is no majority.
 */
#define AGREE_VALUES 16U
#define AGREE_KEYS   16U

/* Names in a text. */
#define AGREE_NAMES 4U

struct agree_value {
    char text[SHK_AGREE_VALUE];
    json_t *hosts; /* set of those with a rank that has it */
    json_t *ranks;
    unsigned first; /* index of its first rank */
};

struct agree_vote {
    struct agree_value value[AGREE_VALUES];
    unsigned count;
    json_t *hosts; /* of all that voted */
    unsigned voters;
    int majority; /* index, -1 none */
};

static int agree_publish(struct shk_job *job, char kind, const char *what, const char *value,
                         struct shk_error *err)
{
    char key[SHK_JOB_KEY];
    char text[SHK_AGREE_VALUE];

    snprintf(key, sizeof key, "%c%s", kind, what);
    snprintf(text, sizeof text, "%s", value);
    return shk_job_put(job, key, text, strlen(text) + 1, err);
}

int shk_agree_put(struct shk_job *job, const char *what, const char *value, struct shk_error *err)
{
    return agree_publish(job, AGREE_MUST, what, value, err);
}

int shk_agree_note(struct shk_job *job, const char *what, const char *value, struct shk_error *err)
{
    return agree_publish(job, AGREE_NOTE, what, value ? value : "not set", err);
}

static bool agree_get(const struct shk_job *job, unsigned rank, const char *key,
                      char text[SHK_AGREE_VALUE])
{
    size_t len = 0;

    if (shk_job_get(job, rank, key, text, SHK_AGREE_VALUE, &len, NULL) != 0 || len == 0)
        return false;
    text[len < SHK_AGREE_VALUE ? len : SHK_AGREE_VALUE - 1] = '\0';
    return true;
}

int shk_agree_check(struct shk_job *job, struct shk_error *err)
{
    char key[SHK_JOB_KEY];
    char mine[SHK_AGREE_VALUE];
    char theirs[SHK_AGREE_VALUE];
    uint32_t at = 0;
    int rc = 0;

    while (rc == 0 && shk_job_next_key(job, job->rank, &at, key)) {
        if (key[0] != AGREE_MUST || !agree_get(job, job->rank, key, mine))
            continue;
        for (unsigned peer = 0; peer < job->ranks && rc == 0; peer++) {
            if (agree_get(job, peer, key, theirs) && strcmp(mine, theirs) != 0) {
                rc = shk_error_set(err, EPROTO, "%s differs: rank %u has %.150s, rank %u %.150s",
                                   key + 1, peer, theirs, job->rank, mine);
                shk_job_disagree(job, -rc, err->text);
            }
        }
    }
    return rc;
}

/* Keys that any rank published, what has to be the same first. */
static unsigned agree_keys(const struct shk_job *job, char keys[AGREE_KEYS][SHK_JOB_KEY])
{
    static const char kinds[] = {AGREE_MUST, AGREE_NOTE};
    unsigned count = 0;
    unsigned i = 0;

    for (size_t kind = 0; kind < sizeof kinds; kind++) {
        for (unsigned rank = 0; rank < job->ranks; rank++) {
            char key[SHK_JOB_KEY];
            uint32_t at = 0;

            while (shk_job_next_key(job, rank, &at, key)) {
                for (i = 0; i < count && strcmp(keys[i], key) != 0; i++) {
                }
                if (key[0] == kinds[kind] && i == count && count < AGREE_KEYS)
                    memcpy(keys[count++], key, sizeof key);
            }
        }
    }
    return count;
}

static struct agree_value *agree_value(struct agree_vote *vote, const char *text, unsigned rank)
{
    struct agree_value *value = NULL;

    for (unsigned i = 0; i < vote->count; i++) {
        if (strcmp(vote->value[i].text, text) == 0)
            return &vote->value[i];
    }
    if (vote->count == AGREE_VALUES)
        return &vote->value[AGREE_VALUES - 1];
    value = &vote->value[vote->count++];
    snprintf(value->text, sizeof value->text, "%s", text);
    value->hosts = json_object();
    value->ranks = json_array();
    value->first = rank;
    return value;
}

static bool agree_one_host(const struct shk_job *job, const struct shk_crew_result *result)
{
    for (unsigned i = 1; i < job->ranks; i++) {
        if (strcmp(result->ranks[i].host, result->ranks[0].host) != 0)
            return false;
    }
    return true;
}

/* More than half, and nothing else has: a node whose own ranks differ counts for both. */
static void agree_majority(struct agree_vote *vote)
{
    vote->majority = -1;
    for (unsigned i = 0; i < vote->count; i++) {
        if (2 * json_object_size(vote->value[i].hosts) > vote->voters)
            vote->majority = vote->majority == -1 ? (int)i : -2;
    }
    vote->majority = vote->majority < 0 || vote->count == AGREE_VALUES ? -1 : vote->majority;
}

static void agree_count(struct agree_vote *vote, const struct shk_job *job,
                        const struct shk_crew_result *result, const char *key)
{
    bool local = agree_one_host(job, result);

    *vote = (struct agree_vote){.hosts = json_object()};
    for (unsigned rank = 0; rank < job->ranks; rank++) {
        struct agree_value *value = NULL;
        char text[SHK_AGREE_VALUE];
        char voter[80];

        if (!agree_get(job, rank, key, text))
            continue;
        snprintf(voter, sizeof voter, "%s", result->ranks[rank].host);
        if (local)
            snprintf(voter, sizeof voter, "%u", rank);
        value = agree_value(vote, text, rank);
        (void)json_object_set_new_nocheck(value->hosts, voter, json_true());
        (void)json_object_set_new_nocheck(vote->hosts, voter, json_true());
        (void)json_array_append_new(value->ranks, json_integer(result->ranks[rank].id));
    }
    vote->voters = (unsigned)json_object_size(vote->hosts);
    agree_majority(vote);
}

static void agree_free(struct agree_vote *vote)
{
    for (unsigned i = 0; i < vote->count; i++) {
        json_decref(vote->value[i].hosts);
        json_decref(vote->value[i].ranks);
    }
    json_decref(vote->hosts);
}

/* Keys of a set, in its order; none for ranks of one host, which have no host's name. */
static json_t *agree_names(json_t *hosts, bool local)
{
    json_t *names = json_array();
    const char *host = NULL;
    json_t *unused = NULL;

    json_object_foreach(hosts, host, unused)
    {
        if (!local)
            (void)json_array_append_new(names, shk_json_text(host, strlen(host)));
    }
    return names;
}

/* Nodes outside of the majority, or all that disagree. */
static json_t *agree_odd(const struct agree_vote *vote, bool local, int *rank_p)
{
    json_t *hosts = json_object();
    json_t *names = NULL;

    *rank_p = -1;
    for (unsigned i = 0; i < vote->count; i++) {
        if ((int)i == vote->majority)
            continue;
        (void)json_object_update(hosts, vote->value[i].hosts);
        if (vote->majority >= 0 && (*rank_p < 0 || (int)vote->value[i].first < *rank_p))
            *rank_p = (int)vote->value[i].first;
    }
    names = agree_names(hosts, local);
    json_decref(hosts);
    return names;
}

static json_t *agree_row(const struct agree_vote *vote, const char *key, bool local)
{
    json_t *values = json_array();
    int rank = -1;
    json_t *odd = agree_odd(vote, local, &rank);
    const char *most = vote->majority >= 0 ? vote->value[vote->majority].text : NULL;
    unsigned i = 0;

    for (i = 0; i < vote->count; i++) {
        const struct agree_value *value = &vote->value[i];

        (void)json_array_append_new(
            values,
            json_pack("{s:o, s:o, s:O}", "value", shk_json_text(value->text, strlen(value->text)),
                      "nodes", agree_names(value->hosts, local), "ranks", value->ranks));
    }
    return json_pack("{s:s, s:b, s:o, s:o, s:i, s:i, s:o}", "what", key + 1, "must",
                     key[0] == AGREE_MUST, "majority",
                     most ? shk_json_text(most, strlen(most)) : json_null(), "odd", odd, "odd_rank",
                     rank, "voters", (int)vote->voters, "values", values);
}

json_t *shk_agree_judge(const struct shk_job *job, const struct shk_crew_result *result)
{
    char keys[AGREE_KEYS][SHK_JOB_KEY];
    unsigned count = agree_keys(job, keys);
    bool local = agree_one_host(job, result);
    struct agree_vote *vote = calloc(1, sizeof *vote);
    json_t *rows = json_array();

    for (unsigned i = 0; i < count && vote != NULL; i++) {
        agree_count(vote, job, result, keys[i]);
        if (vote->count > 1)
            (void)json_array_append_new(rows, agree_row(vote, keys[i], local));
        agree_free(vote);
    }
    free(vote);
    return rows;
}

static void agree_who(struct shk_strbuf *sb, const json_t *value)
{
    const json_t *nodes = json_object_get(value, "nodes");
    const json_t *ranks = json_object_get(value, "ranks");
    const json_t *list = json_array_size(nodes) > 0 ? nodes : ranks;
    const json_t *item = NULL;
    size_t i = 0;

    shk_strbuf_puts(sb, list == ranks ? (json_array_size(ranks) == 1 ? " at rank " : " at ranks ")
                                      : " on ");
    json_array_foreach(list, i, item)
    {
        if (i == AGREE_NAMES) {
            shk_strbuf_printf(sb, " and %zu more", json_array_size(list) - i);
            break;
        }
        shk_strbuf_puts(sb, i > 0 ? ", " : "");
        if (json_is_string(item))
            shk_strbuf_puts(sb, json_string_value(item));
        else
            shk_strbuf_printf(sb, "%d", (int)json_integer_value(item));
    }
    if (list == nodes && json_array_size(ranks) == 1)
        shk_strbuf_printf(sb, " (rank %d)", (int)json_integer_value(json_array_get(ranks, 0)));
}

/* The odd ones first. */
void shk_agree_text(const json_t *row, char *buf, size_t size)
{
    const char *most = json_string_value(json_object_get(row, "majority"));
    const json_t *values = json_object_get(row, "values");
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    const json_t *last = NULL;
    const json_t *value = NULL;
    unsigned said = 0;
    size_t i = 0;

    shk_strbuf_printf(&sb, "%s differs: ", json_string_value(json_object_get(row, "what")));
    json_array_foreach(values, i, value)
    {
        const char *text = json_string_value(json_object_get(value, "value"));

        if (most && strcmp(text, most) == 0) {
            last = value;
            continue;
        }
        shk_strbuf_printf(&sb, "%s%s", said++ > 0 ? ", " : "", text);
        agree_who(&sb, value);
    }
    if (last) {
        size_t nodes = json_array_size(json_object_get(last, "nodes"));
        size_t ranks = json_array_size(json_object_get(last, "ranks"));

        shk_strbuf_printf(&sb, "; %s on %zu of %d %s", most, nodes > 0 ? nodes : ranks,
                          (int)json_integer_value(json_object_get(row, "voters")),
                          nodes > 0 ? "nodes" : "ranks");
    } else {
        shk_strbuf_puts(&sb, "; no majority shows which of them is wrong");
    }
    snprintf(buf, size, "%s", shk_strbuf_text(&sb));
    shk_strbuf_free(&sb);
}
