/* What nccom-test prints: the first two bytes are its exit code and the number of ranks. */
#include "collectives/other/neuron.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shk_error why = {""};
    const char *status = NULL;
    if (size < 2)
        return 0;
    char *text = strndup((const char *)data + 2, size - 2);
    json_t *rows = shk_neuron_table(text, data[0], 1 + data[1] % 64U, &status, &why);
    bool ok = status && strcmp(status, "ok") == 0;
    if (!rows || !status || ok == (*why.text != '\0') || strchr(why.text, '\n'))
        abort(); /* not ok exactly when one line says why */
    if (ok && (data[0] != 0 || json_array_size(rows) == 0))
        abort();
    json_decref(rows);
    free(text);
    return 0;
}
