/* The machine in one line, for the head of a report: what a reader of a ticket asks first. */
#ifndef SHK_REPORTS_HARDWARE_H
#define SHK_REPORTS_HARDWARE_H

#include "reports/model/model.h"

/* Called with each part in turn: "8x NVIDIA H100 80GB HBM3, NV18", "driver 535.183.01". Parts that
 * no fact tells are left out. Of several nodes the kind that most of them have, with a last part
 * "3 nodes differ". Returns 0 or -ENOMEM. */
int shk_hardware_each(const struct shk_model *model, void (*fn)(const char *part, void *arg),
                      void *arg);

/* All parts in one line, "; " between them. Returns 0 or -ENOMEM. */
int shk_hardware_line(const struct shk_model *model, struct shk_strbuf *out);

/* The same parts of one node, one on each line; "" when no fact tells any. NULL: out of memory. */
char *shk_hardware_of(const struct shk_facts *facts);

/* A key that nodes of the same hardware share: compact JSON of its parts, without versions and
 * without words. NULL: out of memory. */
char *shk_hardware_kind(const struct shk_facts *facts);

/* A kind as shk_hardware_of() would say it; what is no kind is said as it is. NULL: out of memory.
 */
char *shk_hardware_words(const char *kind);

/* When the run began, "2026-11-28T18:49:07Z": the earliest of its nodes, else when the first of
 * them was probed; NULL when the facts do not tell. */
char *shk_hardware_date(const struct shk_model *model);

/* The scheduler's name for the job; NULL: none. */
char *shk_hardware_job(const struct shk_model *model);

/* How long the run took, in seconds: of several nodes the longest; negative when no fact tells. */
double shk_hardware_seconds(const struct shk_facts *const *facts, size_t nodes);

/* Has any node an accelerator, or could that not be read? */
bool shk_hardware_has_gpu(const struct shk_model *model);

#endif
