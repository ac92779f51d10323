#ifndef SHK_CLI_HISTORY_PROFILE_H
#define SHK_CLI_HISTORY_PROFILE_H

#include "config/config.h"
#include "core/facts/facts.h"
#include "core/text/strbuf.h"

/* Appends a profile in YAML that such nodes fulfil: signals, counts, settings, versions and floors,
 * each with a comment that says where it comes from. It extends the profile that they have. -EINVAL
 * when the documents are of nodes of several kinds; `anonymize`: without names of nodes. */
int shk_profile_make(const struct shk_config *config, const struct shk_facts *const *facts,
                     size_t count, const char *version, bool anonymize, struct shk_strbuf *out,
                     struct shk_error *err) SHK_MUST_CHECK;

#endif
