/* What a line of a profile accepts of a setting, and what it is worth when it is not so. */
#ifndef SHK_CHECKS_PROFILE_H
#define SHK_CHECKS_PROFILE_H

#include "checks/base/check.h"

/* Is `value` one that the profile line accepts (an empty list accepts any)? */
bool shk_profile_accepts(const struct shk_setting *setting, const struct shk_profile_setting *line,
                         const char *value);

/* "cxi" or "cxi, efa": what the line accepts, as text (free()); NULL when anything. */
char *shk_profile_accepted_text(const struct shk_profile_setting *line);

/* Diagnosis key of a profile's recommendation that is not followed; NULL when there is none. */
const char *shk_profile_diagnosis(const struct shk_check_context *ctx, const char *name);

/* What a value that the line does not accept is worth: what the line says itself (`other`), a note
 * when the line is but the list of the fabric's maker or optional, else by its strength. */
enum shk_verdict shk_profile_verdict(const struct shk_profile_setting *line);

/* "the list of the fabric's maker, not the guide of this site,": begins a sentence about a line
 * that is `foreign`. */
extern const char shk_foreign_list[];

#endif
