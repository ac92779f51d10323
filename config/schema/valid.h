/* Checks of single texts in the catalogue. */
#ifndef SHK_CONFIG_VALID_H
#define SHK_CONFIG_VALID_H

#include "config/schema/schema.h"

/* Environment variable: [A-Za-z_][A-Za-z0-9_]*. */
shk_text_check_f shk_valid_variable;

/* Variable, kernel parameter (with dots or dashes) or limit. */
shk_text_check_f shk_valid_setting;

/* Diagnosis key or profile name: lower case, digits, '-' and '.'. */
shk_text_check_f shk_valid_key;

/* A library that defects and `version-of` know (config/defects.h). */
shk_text_check_f shk_valid_library;

/* Version: starts with a digit; digits, letters, ".-_+". */
shk_text_check_f shk_valid_version;

/* Fact key, or prefix of keys that ends in '.'. */
shk_text_check_f shk_valid_fact;

/* One command line: printable, no bullet, no ellipsis or <something> to fill in, quotes closed. Not
 * whether a shell takes it: a test of the catalogue asks one. */
shk_text_check_f shk_valid_command;

/* Regular expression of the dialect of core/regex/regex.h. */
shk_text_check_f shk_valid_regex;

/* Log pattern of at most 512 bytes that stays within one line and ends at a fixed place: see the
 * schema of signatures. */
shk_text_check_f shk_valid_log_pattern;
shk_text_check_f shk_valid_messages; /* the texts of a table, core/text/messages.h */

/* PCRE with at least one named group of a known name. */
shk_text_check_f shk_valid_capture;

/* Name of a variable in which "{name}" and "{other}" stand for captured groups. */
shk_text_check_f shk_valid_reads;

/* Condition of a profile line: terms joined by ',' or '&&', each "[!]NAME" or "NAME OP VALUE", OP
 * one of = == != < <= > >=; NAME is a known word or a fact key. */
shk_text_check_f shk_valid_condition;

#endif
