/* The words of the catalogue's enumerations, indexed by value. */
#ifndef SHK_CONFIG_NAMES_H
#define SHK_CONFIG_NAMES_H

#include "config/config.h"

extern const char *const shk_value_type_names[SHK_VALUE_COUNT];
extern const char *const shk_int_parser_names[SHK_INT_DECIMAL + 1];
extern const char *const shk_setting_kind_names[SHK_SETTING_FOLKLORE + 1];
extern const char *const shk_misread_names[SHK_MISREAD_ENDS + 1];
extern const char *const shk_value_rule_names[SHK_RULE_COUNT];
extern const char *const shk_mask_names[SHK_MASK_COUNT];
extern const char *const shk_severity_names[SHK_SEV_FATAL + 1];
extern const char *const shk_strength_names[SHK_REQUIRED + 1];

/* What may read a setting; in settings.c. */
extern const char *const shk_library_names[];
extern const size_t shk_library_names_count;

#endif
