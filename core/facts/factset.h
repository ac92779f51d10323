/* Which nodes say the same: a digest of a facts document without what may differ between nodes.
 *
 * Works on the text, so that ten thousand documents of 100 KiB are told apart in seconds: facts
 * that are byte for byte those of the first document are not looked at again. */
#ifndef SHK_CORE_FACTSET_H
#define SHK_CORE_FACTSET_H

#include "core/facts/digest.h"
#include "core/facts/factdiff.h"

struct shk_factset;

#define SHK_FACTSET_KEY SHK_DIGEST_TEXT

/* `rules` (what may differ) are borrowed. NULL: out of memory. */
struct shk_factset *shk_factset_create(const struct shk_diff_rule *rules, size_t count);
void shk_factset_destroy(struct shk_factset *set);

/* Reads one document at the start of text; *used_p: its length. key: equal for documents that
 * differ only in what may differ. name: host.name, "" when there is none. -EINVAL when the text is
 * not a document in the form that `shakedown probe` writes: parse it to learn why. -ENOMEM. */
int shk_factset_read(struct shk_factset *set, const char *text, size_t len, size_t *used_p,
                     char key[SHK_FACTSET_KEY], char *name, size_t name_size) SHK_MUST_CHECK;

#endif
