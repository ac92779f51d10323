/* One result model, many renderers. A renderer computes no verdict and touches no host. */
#ifndef SHK_REPORTS_REPORT_H
#define SHK_REPORTS_REPORT_H

#include "core/facts/facts.h"
#include "core/result/finding.h"
#include <stdbool.h>
#include <stdio.h>

struct shk_report {
    const char *version;                  /* of shakedown */
    const char *command;                  /* command line as typed, for "how to reproduce" */
    const char *profile;                  /* name */
    const char *profile_why;              /* how it was chosen */
    bool profile_doubtful;                /* what was not read could speak for another one */
    const struct shk_facts *const *facts; /* per node */
    const char *const *profiles;          /* per node, names; NULL: all have that one */
    size_t nodes;
    const struct shk_findings *findings; /* sorted */
    const struct shk_diagnoses *diagnoses;
    struct shk_coverage coverage;
    double elapsed_s;        /* negative: unknown (offline) */
    const char *headline;    /* of a diagnosis: stands for the counts; NULL: none */
    enum shk_verdict answer; /* with a headline: FAIL a cause was found, PASS none and a healthy
                                start was seen, else UNKNOWN */
    const char *interrupted; /* "SIGTERM": by what the run was ended early; NULL: it was not */
    const char *(*probe_of)(const char *key); /* which probe provides a fact, NULL: none does; may
                                                 be NULL */
};

struct shk_report_options {
    unsigned width; /* terminal columns; 0 = 100 */
    bool color;
    bool unicode;
    bool verbose;   /* show pass and n/a rows in full */
    bool anonymize; /* replace hosts, users, addresses, GUIDs (reports/privacy/scrub.h); secrets
                       always go */
    size_t limit;   /* markdown: bytes at most, details are left out to fit; 0: 32000, what Jira
                       holds by default (32767 characters), and a GitHub comment */
};

/* A form that a document of its own is written in. */
struct shk_form {
    const char *name;      /* "term", "md", "json" */
    const char *extension; /* ".md" for -o; NULL */
};

struct shk_format {
    const char *name;      /* "term", "md", "json" */
    const char *extension; /* ".md" for -o; NULL */
    const char *doc;
    /* Writes the report. Returns 0 or a negative errno of the stream. */
    int (*render)(const struct shk_report *report, const struct shk_report_options *options,
                  FILE *out);
};

const struct shk_format *const *shk_formats(size_t *count_p);
const struct shk_format *shk_format_find(const char *name); /* NULL: unknown */

#endif
