/* A few facts as somebody states them, completed with what is usually so: what a check calls bad on
 * the strength of it is a suspicion (checks/cause/suspect.c), never a verdict. */
#ifndef SHK_CHECKS_USUAL_H
#define SHK_CHECKS_USUAL_H

#include "checks/base/check.h"

/* Is there a fact of this key, of whatever state? */
bool shk_usual_looked(const struct shk_facts *facts, const char *key);

/* A copy with the usual values where nobody looked; NULL: out of memory. Of what a list shows the
 * number is known. */
struct shk_facts *shk_usual_facts(const struct shk_facts *facts);

/* The same with what is only more likely than not: hardware that a driver, a device node or a line
 * of a log shows, an IOMMU that translates where nothing makes it pass, a user who is not root. */
struct shk_facts *shk_bold_facts(const struct shk_facts *facts, const struct shk_config *config);

/* The profile of such facts: where no site's fits, that of the NICs that are there. */
const struct shk_profile *shk_bold_profile(const struct shk_config *config,
                                           const struct shk_facts *all);

#endif
