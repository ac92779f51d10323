/* What every renderer wants to know about a report and nobody should compute twice: rows grouped
 * by family, gaps grouped by reason, collectives read back from the facts. No verdict is made
 * here; the verdict of the whole is the worst of its rows. */
#ifndef SHK_REPORTS_MODEL_H
#define SHK_REPORTS_MODEL_H

#include "core/text/strbuf.h"
#include "reports/privacy/anonymize.h"
#include "reports/report.h"
#include "reports/text/table.h"

/* Rows that belong together; pointers into the report. */
struct shk_group {
    const char *title; /* family, or the reason of a gap */
    const struct shk_finding **rows;
    size_t count;
    unsigned verdicts[SHK_VERDICT_COUNT];
};

/* One collective of one node. */
struct shk_run {
    const char *node;
    char *transport;    /* "fabric" */
    const char *status; /* as in collectives/collective.h */
    const struct shk_facts *facts;
};

struct shk_model {
    const struct shk_report *report; /* without secrets and, if asked for, names; render this one */
    struct shk_scrubbed *scrubbed;
    enum shk_verdict verdict; /* of the whole; of a run that was interrupted never PASS */
    const char **nodes;       /* names, by host.name; report->nodes of them */
    bool unnamed;             /* no fact tells the name of a node */
    char *where;              /* the nodes folded into one line */
    struct shk_group *groups; /* the matrix by family: every row */
    size_t groups_count;
    struct shk_group *gaps; /* what was not covered, by reason */
    size_t gaps_count;
    struct shk_run *runs;
    size_t runs_count;
};

/* NULL: out of memory. */
struct shk_model *shk_model_create(const struct shk_report *report,
                                   const struct shk_report_options *options);
void shk_model_destroy(struct shk_model *model);

/* FAIL if any row failed, else WARN if any warned, else UNKNOWN if a required row is unknown or
 * nothing passed, else PASS. A note counts like a pass. */
enum shk_verdict shk_model_verdict(const struct shk_coverage *coverage);

/* "FAIL", "note", "n/a": a verdict in a ticket and on a page. */
const char *shk_model_word(enum shk_verdict verdict);

/* "2 failed, 1 warning, 40 passed": verdicts that occur, worst first, n/a left out. */
void shk_model_counts(struct shk_strbuf *out, const unsigned verdicts[SHK_VERDICT_COUNT]);

/* "2 notes: NCCL_DEBUG; copies of libnccl" in one line; nothing when there are none. Returns how
 * many there are. */
unsigned shk_model_notes(struct shk_strbuf *out, const struct shk_report *report);

/* What a reader must know of a run that was ended early. */
#define SHK_MODEL_INTERRUPTED "interrupted by %s: what was not done by then is unknown"

/* "12 settings: 3 tested, 9 inferred": what occurs. */
void shk_model_coverage(struct shk_strbuf *out, const struct shk_coverage *coverage);

/* The evidence as the coverage line calls it: "tested", "in log", "inferred", … */
const char *shk_model_evidence(enum shk_evidence evidence);

/* Is the row listed as a gap (nothing looked, no verdict)? */
bool shk_model_is_gap(const struct shk_finding *row);

/* "confirmed; for the user or admin to fix": confidence and who acts, as far as given. */
void shk_model_who(struct shk_strbuf *out, const struct shk_diagnosis_row *row);

/* Number (from 1) of the root cause that the row belongs to; 0: none. */
size_t shk_model_cause(const struct shk_report *report, const struct shk_finding *row);

/* Members of a run; text NULL and int -1 when absent. */
const char *shk_run_text(const struct shk_run *run, const char *member);
long long shk_run_int(const struct shk_run *run, const char *member);
json_t *shk_run_object(const struct shk_run *run, const char *member); /* borrowed or NULL */
json_t *shk_run_array(const struct shk_run *run, const char *member);  /* borrowed or NULL */
bool shk_run_ok(const struct shk_run *run);

/* "all-reduce over fabric, 2 ranks, provider tcp;ofi_rxm, domain eth0, libfabric 1.17.0". */
void shk_run_title(struct shk_strbuf *out, const struct shk_run *run);
/* "best busbw 3.21 GB/s at 4 MiB, least time 11.2 us"; nothing without measured sizes. */
void shk_run_summary(struct shk_strbuf *out, const struct shk_run *run);
/* Sizes in the column layout of nccl-tests, with what fits in `width` columns (0: all). NULL: out
 * of memory. Destroy it. */
struct shk_table *shk_run_table(const struct shk_run *run, unsigned width);
/* Does the table of that width leave out columns? */
bool shk_run_table_cut(const struct shk_run *run, unsigned width);

#endif
