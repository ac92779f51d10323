/* Answers of NCCL's RAS service, what py-spy read, /proc/PID/maps and /proc/PID/environ, from a
 * stranger. */
#include "fuzz.h"
#include "probes/hang/hang_private.h"
#include "probes/hang/ras.h"

#include <stdlib.h>
#include <string.h>

static void ras_environment(const char *text, size_t size)
{
    struct hang_process process = {.pid = 0};
    struct shk_name_set *names = shk_name_set_create();
    const struct shk_name_rule rule = {.name = "A", .family = "nccl", .prefix = true};
    if (!names || shk_name_set_add(names, &rule))
        abort();
    hang_environment_parse(text, size, names, &process);
    json_decref(process.environment);
    json_decref(process.withheld);
    shk_name_set_destroy(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *answer = shk_ras_parse((const char *)data, size);
    if (!answer)
        abort();
    json_decref(answer);
    json_decref(hang_python_parse((const char *)data, size));
    ras_environment((const char *)data, size);
    struct hang_maps maps = {0};
    char *text = malloc(size + 1);
    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (!hang_maps_parse(text, &maps))
        for (size_t i = 0; i < maps.count; i++)
            if (hang_maps_find(&maps, maps.regions[i].start) != &maps.regions[i])
                abort();
    hang_maps_free(&maps);
    free(text);
    return 0;
}
