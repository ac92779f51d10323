/* Sections of the terminal report, shared by the term*.c files and brief.c only. */
#ifndef SHK_REPORTS_TERM_PRIVATE_H
#define SHK_REPORTS_TERM_PRIVATE_H

#include "reports/model/model.h"
#include "reports/model/nodecount.h"

/* A text longer than this says nothing more on a screen; JSON has the whole of it. */
enum { TERM_CLIP = 600 };
/* Folded names of nodes: those of any machine. */
enum { TERM_NAMES = 16384 };

struct shk_wrap;

struct term {
    const struct shk_model *model;
    const struct shk_report *report;
    struct shk_node_counts counts;
    struct shk_style style;
    unsigned width;
    bool verbose;
    struct shk_strbuf *out;
};

/* Fills t for one report; text goes to out. Returns 0 or -ENOMEM. End with shk_term_end(). */
int shk_term_begin(struct term *t, const struct shk_report *report,
                   const struct shk_report_options *options, struct shk_strbuf *out) SHK_MUST_CHECK;
void shk_term_end(struct term *t);

/* One paragraph; nothing for NULL or "". `lead` as in struct shk_wrap; `like` gives what differs.
 */
void shk_term_put(const struct term *t, const struct shk_wrap *like, const char *text);
void shk_term_text(const struct term *t, enum shk_role role, unsigned indent, const char *lead,
                   const char *text);
/* Lines to copy, each behind an arrow, never cut; at most `lines` of them (0: all), and how many
 * more there are. */
void shk_term_fix(const struct term *t, unsigned indent, const char *fix, unsigned lines);
/* What to do in words, behind SHK_TERM_ADVICE; `lines` as above. */
void shk_term_advice(const struct term *t, unsigned indent, const char *advice, unsigned lines);
#define SHK_TERM_ADVICE "advice: "
/* Heading of a section, with an empty line before it; rest may be NULL. */
void shk_term_title(const struct term *t, const char *title, const char *rest);
/* "→ " in the terminal's alphabet. */
const char *shk_term_arrow(const struct term *t);
/* Of the whole: of a diagnosis its answer. */
enum shk_verdict shk_term_verdict(const struct term *t);

/* The first screen: verdict, machine, profile; causes; the transports in one table; counts; and the
 * verdict again. */
void shk_term_head(const struct term *t);
void shk_term_causes(const struct term *t);
void shk_term_summary(const struct term *t);
void shk_term_counts(const struct term *t);
void shk_term_last(const struct term *t);

/* With --verbose. */
void shk_term_matrix(const struct term *t);
void shk_term_gaps(const struct term *t);
void shk_term_runs(const struct term *t);
void shk_term_probes(const struct term *t);
void shk_term_topology(const struct term *t);

#endif
