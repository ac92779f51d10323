/* Pickles from a stranger: two dumps of PyTorch's flight recorder, the second one from the middle
 * of the input on. */
#include "fuzz.h"
#include "probes/dumps/flight.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shk_error err = {""};
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_flight *flight = shk_flight_create();
    if (!flight)
        abort();
    (void)!shk_flight_add(flight, "fr_0", data, size, &err);
    (void)!shk_flight_add(flight, "fr_1", data + size / 2, size - size / 2, &err);
    json_t *findings = json_array();
    shk_flight_compare(flight, &text, findings);
    if (text.failed || (json_array_size(findings) && !text.len))
        abort();
    json_decref(findings);
    shk_strbuf_free(&text);
    shk_flight_destroy(flight);
    return 0;
}
