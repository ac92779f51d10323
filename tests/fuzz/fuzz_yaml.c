/* YAML of a site: the first byte chooses the folder. */
#include "config/config.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const folders[] = {"settings", "profiles", "diagnoses", "conflicts",
                                          "names",    "uses",     "launchers"};
    struct shk_error err = {""};
    struct shk_config *config = NULL;
    if (size < 1)
        return 0;
    const char *folder = folders[data[0] % (sizeof folders / sizeof *folders)];
    int rc = shk_config_load_buffer(&config, folder, "fuzz.yaml", data + 1, size - 1, &err);
    if (rc != 0 && (!*err.text || strchr(err.text, '\n')))
        abort();
    if (rc == 0)
        shk_config_free(config);
    return 0;
}
