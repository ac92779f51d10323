/* Facts: dotted key -> {state, value, unit, source, reason}. What probes and collectives learn,
 * what checks judge; see the table of keys in docs/facts.md.
 *
 *   present   value is what the source says
 *   absent    the source was read and says that there is none (value null)
 *   failed    could not be read; reason says why. Never the same as absent, and never zero.
 *
 * Secrets do not get in (core/redact/redact.h): a variable that holds one becomes failed,
 * "withheld: …", and what looks like one in any other text is redacted.
 *
 * A store owns its facts. The JSON form ("shakedown.facts/1") round-trips. After
 * shk_facts_freeze() every write is refused with -EROFS. */
#ifndef SHK_CORE_FACTS_H
#define SHK_CORE_FACTS_H

#include "core/text/error.h"
#include <jansson.h>
#include <stdbool.h>

#define SHK_FACTS_SCHEMA "shakedown.facts/1"

enum shk_fact_state { SHK_FACT_PRESENT, SHK_FACT_ABSENT, SHK_FACT_FAILED };

/* A view; all pointers are borrowed from the store and live until it changes. */
struct shk_fact {
    const char *key;
    enum shk_fact_state state;
    json_t *value;      /* NULL unless present */
    const char *unit;   /* "B", "Gb/s", …; NULL when the value has none */
    const char *source; /* path, call or library that was asked; never NULL ("" unknown) */
    const char *reason; /* NULL unless absent or failed */
};

struct shk_facts;

struct shk_facts *shk_facts_create(void); /* NULL: out of memory */
void shk_facts_destroy(struct shk_facts *facts);

/* Writers. Replace an existing fact of the same key. Return 0, -ENOMEM, -EROFS, or -EINVAL (bad
 * key: allowed are [A-Za-z0-9_./:+-], 1 to 255 bytes). `value` is stolen, also on failure; a NULL
 * value is -ENOMEM. Strings that are not UTF-8 must go through shk_json_text(). */
int shk_facts_present(struct shk_facts *facts, const char *key, json_t *value, const char *unit,
                      const char *source);
int shk_facts_absent(struct shk_facts *facts, const char *key, const char *source,
                     const char *reasonf, ...) SHK_PRINTF(4, 5);
int shk_facts_failed(struct shk_facts *facts, const char *key, const char *source,
                     const char *reasonf, ...) SHK_PRINTF(4, 5);

/* Shorthands for shk_facts_present(). text NULL writes "absent". */
int shk_facts_text(struct shk_facts *facts, const char *key, const char *text, const char *source);
int shk_facts_int(struct shk_facts *facts, const char *key, long long value, const char *unit,
                  const char *source);
int shk_facts_bool(struct shk_facts *facts, const char *key, bool value, const char *source);

/* Puts an entry in the JSON form ({state, value, …}, complete; stolen) in place of that of `key`;
 * NULL takes the fact away. Returns the former entry (json_decref() it), NULL when there was none
 * or the store is frozen. */
json_t *shk_facts_swap(struct shk_facts *facts, const char *key, json_t *entry);

void shk_facts_freeze(struct shk_facts *facts);

/* False when nobody wrote the key (nothing looked). */
bool shk_facts_get(const struct shk_facts *facts, const char *key, struct shk_fact *fact_p);

/* From now on the keys that anybody asks for become members of the object `seen` (borrowed; NULL
 * ends it): what a verdict can rest on. */
void shk_facts_watch(struct shk_facts *facts, json_t *seen);

/* Value of a present fact of the right type, else NULL / the fallback. */
const char *shk_facts_get_text(const struct shk_facts *facts, const char *key);
long long shk_facts_get_int(const struct shk_facts *facts, const char *key, long long fallback);
json_t *shk_facts_get_array(const struct shk_facts *facts, const char *key);
json_t *shk_facts_get_object(const struct shk_facts *facts, const char *key);

/* Calls fn for each fact whose key starts with prefix, in C-locale key order. A non-zero return of
 * fn stops and is returned. */
int shk_facts_each(const struct shk_facts *facts, const char *prefix,
                   int (*fn)(const struct shk_fact *fact, void *arg), void *arg);
size_t shk_facts_count(const struct shk_facts *facts);

/* Copies every fact of src into dst (src wins). */
int shk_facts_merge(struct shk_facts *dst, const struct shk_facts *src);

/* New reference to {"schema": …, "facts": {key: {state, value, unit, source, reason}}}, keys
 * sorted; members that are NULL are left out. */
json_t *shk_facts_to_json(const struct shk_facts *facts);

/* Parses one facts document. A bare value instead of a {state…} object is accepted as a present
 * fact (hand-written and reported facts). Hostile input is refused with one line that names the
 * place: unknown schema, unknown state, depth or size beyond the limits. */
int shk_facts_from_json(struct shk_facts **facts_p, const json_t *doc,
                        struct shk_error *err) SHK_MUST_CHECK;

/* The same, but a malformed fact is failed with the reason, and {"key", "why", "given"} about it is
 * added to the array `faults`; what is no fact key is only added there. */
int shk_facts_reported(struct shk_facts **facts_p, const json_t *doc, json_t *faults,
                       struct shk_error *err) SHK_MUST_CHECK;

/* As shk_facts_from_json(), of a document that a child of this program wrote, whose facts went
 * through the functions above there: what they store holds no secret, and is not looked through for
 * one again.
 */
int shk_facts_from_child(struct shk_facts **facts_p, const json_t *doc,
                         struct shk_error *err) SHK_MUST_CHECK;

/* Reads and parses a facts file ("-" is stdin): at most 64 MiB. Plain file access, no shk_host.
 * A file holds one document, or an array of them, or one per line (nodes); a report in JSON counts
 * as the documents of its nodes, a folder as its *.json in the order of their names. Each document
 * becomes a store in the new array *facts_p of *count_p (destroy each, then free() the array).
 * A malformed fact (an unknown state, a state without a value) is failed with the reason, and the
 * array `said` gets a text with file, line and key; what is no fact key is left out and said. With
 * `said` NULL such a document is refused, as one that is no facts document always is. */
int shk_facts_load(struct shk_facts ***facts_p, size_t *count_p, const char *path, json_t *said,
                   struct shk_error *err) SHK_MUST_CHECK;

/* Calls fn with each document of a file ("-" is stdin) as it stands there, of facts or a report,
 * with the limits of shk_facts_load(). A negative errno of fn, with its text, ends it. */
int shk_facts_documents(const char *path,
                        int (*fn)(const json_t *doc, void *arg, struct shk_error *err), void *arg,
                        struct shk_error *err) SHK_MUST_CHECK;

/* Paths of the *.json of a folder, in the order of their names; -ENOENT when there is none. Free
 * with shk_facts_folder_free(). Returns 0 or a negative errno with text. */
int shk_facts_folder(const char *path, char ***files_p, size_t *count_p,
                     struct shk_error *err) SHK_MUST_CHECK;
void shk_facts_folder_free(char **files, size_t count);

/* JSON string from bytes that may not be UTF-8 or may hold control characters: invalid bytes
 * become U+FFFD. New reference. */
json_t *shk_json_text(const char *bytes, size_t len);

#endif
