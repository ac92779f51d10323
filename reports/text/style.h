/* Roles and signs of the terminal report. */
#ifndef SHK_REPORTS_STYLE_H
#define SHK_REPORTS_STYLE_H

#include "core/result/finding.h"
#include <stdbool.h>

enum shk_role {
    SHK_ROLE_PLAIN,
    SHK_ROLE_TITLE,
    SHK_ROLE_DIM,
    SHK_ROLE_FIX, /* a line to copy */
    SHK_ROLE_PASS,
    SHK_ROLE_WARN,
    SHK_ROLE_FAIL,
    SHK_ROLE_UNKNOWN,
    SHK_ROLE_NA,
    SHK_ROLE_NOTE,
    SHK_ROLE_COUNT
};

enum shk_sign {
    SHK_SIGN_PASS,
    SHK_SIGN_WARN,
    SHK_SIGN_FAIL,
    SHK_SIGN_UNKNOWN,
    SHK_SIGN_NA,
    SHK_SIGN_NOTE,
    SHK_SIGN_ARROW, /* before a fix */
    SHK_SIGN_DOT,   /* between items of a line */
    SHK_SIGN_COUNT
};

struct shk_style {
    bool color;
    bool unicode;
};

/* Escape sequences around text of a role; "" without colour. */
const char *shk_style_on(struct shk_style style, enum shk_role role);
const char *shk_style_off(struct shk_style style, enum shk_role role);

/* One column wide. */
const char *shk_style_sign(struct shk_style style, enum shk_sign sign);

enum shk_role shk_style_role(enum shk_verdict verdict);
enum shk_sign shk_style_verdict_sign(enum shk_verdict verdict);

/* "FAIL" and "WARN" stand out, "pass", "note", "unknown" and "n/a" do not. */
const char *shk_style_verdict_word(enum shk_verdict verdict);

#endif
