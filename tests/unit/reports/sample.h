/* Reports for the tests: a made-up Slingshot/AMD node with one broken setting, and variations. */
#ifndef SHK_TESTS_REPORTS_SAMPLE_H
#define SHK_TESTS_REPORTS_SAMPLE_H

#include "reports/report.h"

struct sample {
    struct shk_report report;
    struct shk_report_options options;
    struct shk_facts **facts;
    struct shk_findings *findings;
    struct shk_diagnoses diagnoses;
};

/* One node that fails: nid001234, profile lumi-g. */
void sample_failing(struct sample *s);
/* One node, nothing found, no collective run. */
void sample_healthy(struct sample *s);
/* The healthy node with two notes: NCCL_CHECKS_DISABLE (with a fix) and a defect of a library. */
void sample_noted(struct sample *s);
/* Three nodes, one of which differs. */
void sample_cluster(struct sample *s);
/* A thousand nodes, nid001000 to nid001999: two fail, thirty warn, one cannot be read. */
void sample_thousand(struct sample *s);
/* Every text of the report is `text` (which must be free of NUL). */
void sample_hostile(struct sample *s, const char *text);
/* No facts, findings or diagnoses at all. */
void sample_empty(struct sample *s);
void sample_free(struct sample *s);

/* Renders to a new string; fails the test when the renderer does. */
char *sample_render(const struct sample *s, const char *format);

#endif
