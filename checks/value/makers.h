/* Makers of accelerators, and what each leaves on a node. */
#ifndef SHK_CHECKS_MAKERS_H
#define SHK_CHECKS_MAKERS_H

#include "checks/base/coded.h"
#include "checks/base/read.h"

struct shk_maker {
    const char *name;          /* as in a profile's `gpu`: "nvidia" */
    const char *kind;          /* in pci.count.* */
    const char *count;         /* "pci.count.gpu-nvidia" */
    const char *list;          /* of the driver */
    const char *const *needed; /* device nodes without which none can be used; NULL-terminated */
};

enum { SHK_MASKS = 15 };

/* The variables that leave some GPUs out, first those of the kind that `order` (ends with
 * SHK_MASK_NONE) has first: NULL-terminated, the names are borrowed from config. */
struct shk_masks {
    const char *names[SHK_MASKS + 1];
};
struct shk_masks shk_masks(const struct shk_config *config, const enum shk_mask *order);

enum { SHK_MAKERS = 3 };
extern const struct shk_maker shk_makers[SHK_MAKERS];

/* On the bus, remembered for the row: 0 when there is none, -1 when it was not read. */
long long shk_read_bus_count(struct shk_row *row, const struct shk_maker *maker);

/* How many the scheduler gave this job on this node, and which variable says so; -1: none does.
 * `remember`: the row rests on it. */
long long shk_gpus_allocated(struct shk_row *row, bool remember, const char **by_p);

/* Fix or advice: what to give the engine of a container ("docker", …) so that it passes these
 * accelerators in. */
void shk_row_pass_in(struct shk_row *row, const char *container, const char *maker);

#endif
