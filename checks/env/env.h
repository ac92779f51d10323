/* Inside of the environment checks. */
#ifndef SHK_CHECKS_ENV_H
#define SHK_CHECKS_ENV_H

#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/job/profile.h"

/* Name without row in the catalogue that is still no environment variable's business: kernel
 * parameters and limits. */
bool shk_is_variable_name(const char *name);

#endif
