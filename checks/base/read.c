#include "checks/base/read.h"

#include "checks/base/coded.h"

#include "core/text/prose.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void shk_row_lacks(struct shk_row *row, const char *key, const char *whyf, ...)
{
    char *why = NULL;
    va_list args;
    va_start(args, whyf);
    if (vasprintf(&why, whyf, args) < 0)
        why = NULL;
    va_end(args);
    shk_prose(why);
    if (row->unread++ == 0) {
        free(row->unread_why);
        row->unread_why = why;
        snprintf(row->unread_key, sizeof row->unread_key, "%s", key);
    } else {
        free(why);
    }
}

void shk_row_was_read(struct shk_row *row)
{
    row->read++;
}

bool shk_row_lacking(const struct shk_row *row)
{
    return row->unread > 0;
}

/* A wrong type is said once for the fact, not by every row. */
static void note_form(struct shk_row *row, const char *key)
{
    if (row->ctx->misformed && !shk_array_has(row->ctx->misformed, key, false))
        json_array_append_new(row->ctx->misformed, json_string(key));
}

void shk_row_lacks_lost(struct shk_row *row, const char *key)
{
    if (shk_look_lost(row->ctx->facts, key))
        shk_row_lacks(row, key, "%s holds fewer entries than were counted", key);
}

static enum shk_look note_fact(struct shk_row *row, const char *key, enum shk_look look)
{
    struct shk_fact fact;
    if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT) {
        shk_row_was_read(row);
        shk_row_lacks_lost(row, key);
    } else if (!shk_facts_get(row->ctx->facts, key, &fact)) {
        shk_row_lacks(row, key, "no probe collected %s", key);
    } else if (fact.state == SHK_FACT_PRESENT) {
        note_form(row, key);
        shk_row_lacks(row, key, "%s has an unexpected form", key);
    } else {
        shk_row_lacks(row, key, "%s could not be read: %s", key,
                      fact.reason ? fact.reason : "no reason given");
    }
    return look;
}

static enum shk_look note_member(struct shk_row *row, const char *key, const json_t *object,
                                 const char *name, enum shk_look look)
{
    const char *problem = look == SHK_LOOK_FAILED ? shk_member_problem(object, name) : NULL;
    if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT)
        shk_row_was_read(row);
    else if (problem)
        shk_row_lacks(row, key, "%s of %s could not be read: %s", name, key, problem);
    else
        shk_row_lacks(row, key, "%s does not say %s", key, name);
    return look;
}

enum shk_look shk_read(struct shk_row *row, const char *key, struct shk_fact *fact_p)
{
    return note_fact(row, key, shk_look(row->ctx->facts, key, fact_p));
}

#define READ_FACT(kind, type)                                                                      \
    enum shk_look shk_read_##kind(struct shk_row *row, const char *key, type *value_p)             \
    {                                                                                              \
        return note_fact(row, key, shk_look_##kind(row->ctx->facts, key, value_p));                \
    }
#define READ_MEMBER(kind, type)                                                                    \
    enum shk_look shk_read_member_##kind(struct shk_row *row, const char *key,                     \
                                         const json_t *object, const char *name, type *value_p)    \
    {                                                                                              \
        return note_member(row, key, object, name, shk_look_member_##kind(object, name, value_p)); \
    }

READ_FACT(text, const char *)
READ_FACT(int, long long)
READ_FACT(bool, bool)
READ_FACT(array, json_t *)
READ_FACT(texts, json_t *)
READ_FACT(numbers, json_t *)
READ_FACT(objects, json_t *)
READ_FACT(object, json_t *)
READ_MEMBER(text, const char *)
READ_MEMBER(int, long long)
READ_MEMBER(number, double)
READ_MEMBER(bool, bool)
READ_MEMBER(array, json_t *)
READ_MEMBER(texts, json_t *)
READ_MEMBER(numbers, json_t *)
READ_MEMBER(object, json_t *)

#define READ_TOLD(kind, type)                                                                      \
    bool shk_read_told_##kind(struct shk_row *row, const char *key, const json_t *object,          \
                              const char *name, type *value_p)                                     \
    {                                                                                              \
        enum shk_look look = shk_read_member_##kind(row, key, object, name, value_p);              \
        if (look == SHK_LOOK_ABSENT)                                                               \
            shk_row_lacks(row, key, "%s does not say %s", key, name);                              \
        return look == SHK_LOOK_PRESENT;                                                           \
    }

READ_TOLD(text, const char *)
READ_TOLD(int, long long)
READ_TOLD(bool, bool)
READ_TOLD(array, json_t *)

void shk_read_profile(struct shk_row *row)
{
    if (row->ctx->profile_doubt)
        shk_row_lacks(row, "profile", "the profile is uncertain: %s", row->ctx->profile_doubt);
    else
        shk_row_was_read(row);
}

long long shk_read_device_count(struct shk_row *row, const char *kind)
{
    long long count = shk_device_count(row->ctx->facts, kind);
    if (count < 0)
        shk_row_lacks(row, "pci.count.*", "how many %s devices the bus has was not read", kind);
    else
        shk_row_was_read(row);
    return count;
}

long long shk_read_gpu_count(struct shk_row *row)
{
    long long count = shk_gpu_count(row->ctx->facts);
    if (count < 0)
        shk_row_lacks(row, "pci.count.*", "the devices of this node were not read");
    else
        shk_row_was_read(row);
    return count;
}

long long shk_read_job_nodes(struct shk_row *row)
{
    long long nodes = shk_job_nodes(row->ctx->facts);
    if (nodes < 0)
        shk_row_lacks(row, "job.nodes", "how many nodes the job has is not known");
    else
        shk_row_was_read(row);
    return nodes;
}

enum shk_look shk_read_guest(struct shk_row *row, bool *value_p)
{
    const char *virt = NULL;
    enum shk_look look = shk_read_text(row, "host.virt", &virt);
    if (look == SHK_LOOK_PRESENT)
        *value_p = strcmp(virt, "none") != 0;
    return look;
}

enum shk_look shk_read_container(struct shk_row *row, const char **value_p)
{
    const char *container = NULL;
    enum shk_look look = shk_read_text(row, "host.container", &container);
    if (look != SHK_LOOK_PRESENT)
        return look;
    if (strcmp(container, "none") == 0)
        return SHK_LOOK_ABSENT;
    *value_p = container;
    return look;
}

enum shk_look shk_read_env(struct shk_row *row, const char *name, const char **value_p)
{
    char *key = shk_strf("env.%s", name);
    const char *value = NULL;
    enum shk_look look = key ? shk_look_setting(row->ctx, name, &value) : SHK_LOOK_FAILED;
    if (look == SHK_LOOK_PRESENT)
        *value_p = value;
    if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT)
        shk_row_was_read(row);
    else
        shk_row_lacks(row, "env.",
                      look == SHK_LOOK_FAILED ? "the value of %s is not known"
                                              : "nothing looked whether %s is set",
                      name);
    free(key);
    return look;
}
