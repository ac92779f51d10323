/* What a child sends to its parent: a library in the child may have overwritten it. */
#include "core/run/tree.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *value = NULL, *again = NULL;
    struct shk_strbuf out = SHK_STRBUF_INIT;
    if (shk_tree_read(data, size, &value) != 0)
        return 0;
    shk_tree_write(&out, value);
    if (out.failed || out.len != size || memcmp(out.data, data, size) != 0)
        abort();
    if (shk_tree_read(out.data, out.len, &again) != 0 || !json_equal(value, again))
        abort();
    json_decref(value);
    json_decref(again);
    shk_strbuf_free(&out);
    return 0;
}
