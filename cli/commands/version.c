#include "cli/commands/commands.h"
#include "probes/engine/logengine.h"

#include <hwloc.h>
#include <jansson.h>
#include <string.h>

/* "1.2.3 built with, 1.2.4 loaded" when these differ. */
static void version_line(FILE *out, const char *name, const char *built, const char *loaded)
{
    fprintf(out, "%-10s %s", name, built);
    if (loaded && strcmp(built, loaded) != 0)
        fprintf(out, " (loaded: %s)", loaded);
    fputc('\n', out);
}

static void version_libraries(FILE *out)
{
    static const struct {
        const char *name, *built;
    } libraries[] = {SHK_LIBRARIES};
    unsigned now = hwloc_get_api_version();
    char loaded[40], built[40];
    snprintf(built, sizeof built, "%d.%d", HWLOC_API_VERSION >> 16,
             (HWLOC_API_VERSION >> 8) & 0xff);
    snprintf(loaded, sizeof loaded, "%u.%u", now >> 16, (now >> 8) & 0xff);
    version_line(out, "hwloc API", built, loaded);
    version_line(out, "jansson", JANSSON_VERSION, jansson_version_str());
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (*libraries[i].built)
            version_line(out, libraries[i].name, libraries[i].built, NULL);
    version_line(out, "log engine", shk_log_engine()->name, NULL);
}

void shk_version_print(FILE *out)
{
    fprintf(out, "shakedown %s\n", SHK_VERSION);
    fprintf(out, "%-10s %s, %s\n", "compiler", SHK_COMPILER, SHK_BUILD_TYPE);
    fprintf(out, "%-10s %s\n", "options", *SHK_OPTIONS ? SHK_OPTIONS : "none");
    version_libraries(out);
}
