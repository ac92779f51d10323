/* Which build of a communication library a process has loaded, from the file's own words: it is
 * neither loaded nor run. The files are the target's, so a stranger's. */
#include "core/run/drop.h"
#include "core/run/isolate.h"
#include "probes/hang/hang_private.h"
#include "probes/library/elf.h"
#include "probes/library/nccl_strings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { VERSIONS_CPU_S = 5, VERSIONS_MOST = 32, VERSIONS_LENGTH = 32 };

struct versions_scan {
    char bare[VERSIONS_LENGTH]; /* "1.17.0" */
    bool several;               /* different ones: none of them is the library's for sure */
};

/* A string that is nothing but a version of three numbers, as configure's PACKAGE_VERSION is. */
static bool versions_is_bare(const char *text, size_t length)
{
    size_t dots = 0, digits = strspn(text, "0123456789.");
    for (size_t i = 0; i < digits; i++) {
        dots += text[i] == '.';
        if (text[i] == '.' && (!i || !isdigit((unsigned char)text[i + 1])))
            return false;
    }
    return dots == 2 && length < VERSIONS_LENGTH && text[digits] == '\0' &&
           isdigit((unsigned char)*text);
}

static int versions_string(const char *text, size_t length, void *arg)
{
    struct versions_scan *scan = arg;
    if (!versions_is_bare(text, length))
        return 0;
    scan->several |= *scan->bare && strcmp(scan->bare, text) != 0;
    snprintf(scan->bare, sizeof scan->bare, "%s", text);
    return scan->several;
}

static void versions_add(const struct shk_elf *elf, json_t *item)
{
    char id[SHK_ELF_BUILD_ID];
    struct shk_nccl_strings strings = {0};
    struct versions_scan scan = {.several = false};
    if (shk_elf_build_id(elf, id))
        json_object_set_new(item, "build_id", json_string(id));
    if (!shk_nccl_strings_read(&strings, elf, NULL) && *strings.version)
        snprintf(scan.bare, sizeof scan.bare, "%.31s", strings.version);
    else
        (void)shk_elf_each_string(elf, 5, versions_string, &scan);
    if (*scan.bare && !scan.several)
        json_object_set_new(item, "version", json_string(scan.bare));
    shk_nccl_strings_free(&strings);
}

static const char *versions_error(int error)
{
    return error == ESTALE ? "the file was replaced after the process had loaded it"
                           : strerror(error);
}

static json_t *versions_item(const struct hang_module *module)
{
    struct shk_elf *elf = NULL;
    struct shk_error err = {""};
    json_t *item = json_pack("{s:o}", "path", shk_json_text(module->path, strlen(module->path)));
    if (module->fd < 0) {
        json_object_set_new(item, "unread", json_string(versions_error(module->error)));
        if (module->error == ESTALE)
            json_object_set_new(item, "replaced", json_true());
        return item;
    }
    shk_crumb_call("%s", module->path);
    if (shk_elf_open_fd(&elf, module->fd, module->path, &err))
        json_object_set_new(item, "unread", shk_json_text(err.text, strlen(err.text)));
    else
        versions_add(elf, item);
    shk_elf_close(elf);
    return item;
}

int hang_versions(const struct shk_host *host, const struct hang_process *process,
                  const struct shk_hang_want *want, json_t **result_p, struct shk_error *err)
{
    struct hang_module modules[VERSIONS_MOST];
    struct hang_maps maps = {0};
    int rc = hang_maps_read(host, process->pid, &maps, err);
    size_t count =
        rc || !want->libraries
            ? 0
            : hang_modules_open(host, process->pid, &maps, want->libraries, modules, VERSIONS_MOST);
    rc = rc ? rc : shk_drop_rights(VERSIONS_CPU_S, err);
    json_t *list = rc ? NULL : json_array();
    for (size_t i = 0; list && i < count; i++)
        json_array_append_new(list, versions_item(&modules[i]));
    if (list)
        *result_p = json_pack("{s:o}", "versions", list);
    hang_maps_free(&maps);
    return rc || *result_p ? rc : shk_error_sys(err, ENOMEM, "versions");
}
