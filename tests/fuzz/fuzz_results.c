/* Outputs of other tools' health checks. */
#include "fuzz.h"
#include "probes/tools/results.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *list = json_array(), *entry;
    char *text = malloc(size + 1);
    size_t i;
    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (shk_results_read(list, text, size) != json_array_size(list) ||
        json_array_size(list) > SHK_RESULTS_MOST)
        abort();
    json_array_foreach(list, i, entry) if (!json_is_string(json_object_get(entry, "id")) ||
                                           !json_is_string(json_object_get(entry, "result")))
        abort();
    json_decref(list);
    free(text);
    return 0;
}
