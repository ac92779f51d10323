/* Errors of the node's memory as its controllers count them (EDAC). */
#include "probes/counters/counters_private.h"

#include <stdio.h>
#include <string.h>

#define EDAC "/sys/devices/system/edac/mc"

/* Documentation/admin-guide/ras.rst */
static const struct counters_name edac_names[] = {
    {"ce_count", "corrected"},
    {"ce_noinfo_count", "corrected"},
    {"ue_count", "uncorrected"},
    {"ue_noinfo_count", "uncorrected"},
    {NULL, NULL},
};

void counters_memory(struct counters *c)
{
    char **names = counters_list(c, EDAC, "memory controllers", "memory");
    for (size_t i = 0; names && names[i]; i++) {
        char dir[96];
        if (strncmp(names[i], "mc", 2) != 0)
            continue;
        snprintf(dir, sizeof dir, EDAC "/%.32s", names[i]);
        counters_begin(c, names[i], "memory");
        counters_files(c, names[i], dir, edac_names);
    }
    shk_host_list_free(names);
}
