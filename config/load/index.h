/* Name -> row number, for look-up and for finding duplicates. */
#ifndef SHK_CONFIG_INDEX_H
#define SHK_CONFIG_INDEX_H

#include <stdbool.h>
#include <stddef.h>

struct shk_index_slot {
    const char *name; /* borrowed; NULL: free slot */
    size_t row;
};

/* Zeroed is empty. */
struct shk_index {
    struct shk_index_slot *slots;
    size_t cap; /* power of two */
    size_t count;
};

/* Adds name -> row, or replaces the row of a known name. 0 or -ENOMEM. The name must outlive the
 * index. */
int shk_index_set(struct shk_index *index, const char *name, size_t row);

bool shk_index_find(const struct shk_index *index, const char *name, size_t *row_p);

void shk_index_free(struct shk_index *index);

#endif
