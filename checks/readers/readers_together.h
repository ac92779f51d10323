/* Is there anybody who reads several variables at once, so that they can work against each other?
 */
#ifndef SHK_CHECKS_READERS_TOGETHER_H
#define SHK_CHECKS_READERS_TOGETHER_H

#include "checks/base/row.h"
#include "checks/readers/readers.h"

/* YES when one library reads all of these settings or, where the catalogue names none that could,
 * each of them has a reader. Settings without a reader in the catalogue do not count; one whose
 * readers cannot be asked (a launcher, a framework) counts as read, and so does every one where no
 * library was looked for. *unread_p: the fact that would tell more, NULL or borrowed; the answer is
 * UNKNOWN rather than NO when there is one. */
enum shk_reads shk_readers_together(struct shk_readers *readers,
                                    const struct shk_setting *const *settings, size_t count,
                                    const char **unread_p);

/* As shk_read_env() for a row that holds only where a library takes notice of the variable: ABSENT,
 * too, when nothing here reads it; FAILED and remembered when that is not known and its readers
 * know it in some releases only. */
enum shk_look shk_read_env_used(struct shk_row *row, const char *name, const char **value_p);

#endif
