/* A folder that all ranks see: rank 0 leaves its card there, readable by its user alone. */
#ifndef SHK_COLLECTIVES_FOLDER_H
#define SHK_COLLECTIVES_FOLDER_H

#include "collectives/meet/sha256.h"
#include "core/text/error.h"

/* Longest card. */
#define SHK_FOLDER_CARD 4096U

/* Writes the card of the job, mode 0600, whole or not at all; one that an earlier run left is
 * replaced. */
int shk_folder_put(const char *folder, const unsigned char job[SHK_SHA256_BYTES], const char *card,
                   struct shk_error *err) SHK_MUST_CHECK;

/* The card (free()), NULL when there is none yet. -EACCES with text: there is a file that another
 * user may have written. */
int shk_folder_get(const char *folder, const unsigned char job[SHK_SHA256_BYTES], char **card_p,
                   struct shk_error *err) SHK_MUST_CHECK;

/* Takes it away. */
void shk_folder_drop(const char *folder, const unsigned char job[SHK_SHA256_BYTES]);

#endif
