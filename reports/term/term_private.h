/* Sections of the terminal report, shared by the term*.c files only. */
#ifndef SHK_REPORTS_TERM_PRIVATE_H
#define SHK_REPORTS_TERM_PRIVATE_H

#include "reports/model/model.h"

/* A text longer than this says nothing more on a screen; JSON has the whole of it. */
enum { TERM_CLIP = 600 };

struct term {
    const struct shk_model *model;
    const struct shk_report *report;
    struct shk_style style;
    unsigned width;
    bool verbose;
    struct shk_strbuf *out;
};

/* One paragraph; nothing for NULL or "". `lead` as in struct shk_wrap. */
void shk_term_text(const struct term *t, enum shk_role role, unsigned indent, const char *lead,
                   const char *text);
/* Lines to copy, each behind an arrow. */
void shk_term_fix(const struct term *t, unsigned indent, const char *fix);
/* Heading of a section, with an empty line before it; rest may be NULL. */
void shk_term_title(const struct term *t, const char *title, const char *rest);
/* "→ " in the terminal's alphabet. */
const char *shk_term_arrow(const struct term *t);

void shk_term_matrix(const struct term *t);
void shk_term_gaps(const struct term *t);
void shk_term_runs(const struct term *t);
void shk_term_probes(const struct term *t);
void shk_term_topology(const struct term *t);

#endif
