/* A document of `shakedown hang` from a stranger: judged, and written in every format. */
#include "checks/hang/hang.h"
#include "fuzz.h"
#include "reports/hang/hang.h"

#include <stdio.h>
#include <stdlib.h>

/* For the screen, and in one of the other forms: each looks for secrets in all of it again. */
static void write_all(const json_t *nodes, const json_t *judgement, size_t which)
{
    size_t count;
    const struct shk_form *formats = shk_hang_forms(&count);
    const struct shk_hang_report report = {
        .version = "1", .command = "hang", .time = "", .nodes = nodes, .judgement = judgement};
    const struct shk_report_options how = {.anonymize = true};
    for (size_t i = 0; i < count; i++) {
        if (i && i != 1 + which % (count - 1))
            continue;
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        if (!out || shk_hang_report(&report, &formats[i], &how, out))
            abort();
        fclose(out);
        free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct shk_config *config;
    struct shk_error err = {""};
    enum shk_hang_outcome outcome;
    json_t *judgement = NULL, *nodes = json_loadb((const char *)data, size, 0, NULL);
    if (!config && shk_config_load(&config, NULL, NULL, &err))
        abort();
    if (json_is_array(nodes) && !shk_hang_judge(config, nodes, &judgement, &outcome, &err))
        write_all(nodes, judgement, size);
    json_decref(judgement);
    json_decref(nodes);
    return 0;
}
