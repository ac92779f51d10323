/* How a fact looks to a check. No reader has a default value: whatever is not there in the right
 * form leaves *value_p as it was, and the caller must ask why.
 *
 * For a row of the matrix use checks/base/read.h: there, too, what was not read is remembered, and
 * the row cannot pass. */
#ifndef SHK_CHECKS_LOOK_H
#define SHK_CHECKS_LOOK_H

#include "core/facts/facts.h"

enum shk_look {
    SHK_LOOK_PRESENT,
    SHK_LOOK_ABSENT, /* looked, there is none */
    SHK_LOOK_FAILED, /* looked, could not read; or the value has another type than asked for */
    SHK_LOOK_MISSING /* nothing looked */
};

/* Is it known, that it is there or that it is not? */
static inline bool shk_look_told(enum shk_look look)
{
    return look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT;
}

/* Is this what drivers, libraries and the kernel say where they cannot tell ("unknown", "N/A")? */
bool shk_says_nothing(const char *text);

/* How `key` looks; *fact_p (may be NULL) is filled unless missing. */
enum shk_look shk_look(const struct shk_facts *facts, const char *key, struct shk_fact *fact_p);

/* The same for a value of one type. *value_p is set only when PRESENT; it is borrowed. A number is
 * an integer or a real. A text by which a source says that it does not know ("unknown", "N/A") is
 * FAILED, as an answer of another type is. An array is one only if its entries are of one kind,
 * none is null, and of objects each says what it is of (core/facts/elements.h). */
enum shk_look shk_look_text(const struct shk_facts *facts, const char *key, const char **value_p);
enum shk_look shk_look_int(const struct shk_facts *facts, const char *key, long long *value_p);
enum shk_look shk_look_bool(const struct shk_facts *facts, const char *key, bool *value_p);
/* An array of objects; one with any kind of entries. */
enum shk_look shk_look_array(const struct shk_facts *facts, const char *key, json_t **value_p);
enum shk_look shk_look_list(const struct shk_facts *facts, const char *key, json_t **value_p);
/* Arrays of texts, numbers, objects; an empty one is any of them. */
enum shk_look shk_look_texts(const struct shk_facts *facts, const char *key, json_t **value_p);
enum shk_look shk_look_numbers(const struct shk_facts *facts, const char *key, json_t **value_p);
enum shk_look shk_look_objects(const struct shk_facts *facts, const char *key, json_t **value_p);
enum shk_look shk_look_object(const struct shk_facts *facts, const char *key, json_t **value_p);

/* The member of an object that is (part of) a fact's value. null with an entry in the object's
 * "problems" is FAILED, null without one ABSENT, no such member MISSING; anything but an object is
 * MISSING. */
enum shk_look shk_look_member(const json_t *object, const char *name, json_t **value_p);
enum shk_look shk_look_member_text(const json_t *object, const char *name, const char **value_p);
enum shk_look shk_look_member_int(const json_t *object, const char *name, long long *value_p);
enum shk_look shk_look_member_number(const json_t *object, const char *name, double *value_p);
enum shk_look shk_look_member_bool(const json_t *object, const char *name, bool *value_p);
enum shk_look shk_look_member_array(const json_t *object, const char *name, json_t **value_p);
enum shk_look shk_look_member_texts(const json_t *object, const char *name, json_t **value_p);
enum shk_look shk_look_member_numbers(const json_t *object, const char *name, json_t **value_p);
enum shk_look shk_look_member_objects(const json_t *object, const char *name, json_t **value_p);
enum shk_look shk_look_member_object(const json_t *object, const char *name, json_t **value_p);

/* Why a member is FAILED: what "problems" says, or that it has an unexpected form; NULL when it is
 * not. Borrowed. */
const char *shk_member_problem(const json_t *object, const char *name);

/* Does the list that `key` names hold fewer entries of a kind than another fact counts
 * ("pci.devices" and pci.count.KIND)? The others were lost on the way. The list is PRESENT all the
 * same: what it holds was found. */
bool shk_look_lost(const struct shk_facts *facts, const char *key);

/* Words for messages only, never to decide by: the text of the member, NULL when there is none. */
const char *shk_member_words(const json_t *object, const char *name);

/* A name for messages only, never to decide by: the text of the member, "?" when there is none. */
const char *shk_member_name(const json_t *object, const char *name);

/* How many entries the list has, one that stands in it twice counted once: those with the same text
 * in member `name`. Entries without it count each. */
size_t shk_list_distinct(const json_t *list, const char *name);

#endif
