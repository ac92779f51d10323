/* The topology file that NCCL reads in place of its own discovery: which PCI functions it names. */
#include "core/text/strbuf.h"
#include "core/text/uses.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

/* Read by NCCL without being asked (NVIDIA/nccl:src/graph/topo.cc). */
static const char topofile_default[] = "/var/run/nvidia-topologyd/virtualTopology.xml";

enum { TOPOFILE_MAX = 1024, TOPOFILE_DEPTH = 64 };

struct topofile {
    XML_Parser parser;
    json_t *functions;
    char version[16];
    int depth;
    bool system; /* the root is <system> */
    const char *bad;
};

static const char *topofile_attribute(const char **attributes, const char *name)
{
    for (; *attributes; attributes += 2)
        if (strcmp(attributes[0], name) == 0)
            return attributes[1];
    return NULL;
}

static void topofile_stop(struct topofile *file, const char *why)
{
    file->bad = why;
    XML_StopParser(file->parser, XML_FALSE);
}

static void topofile_open(void *data, const char *name, const char **attributes)
{
    struct topofile *file = data;
    const char *busid = topofile_attribute(attributes, "busid");
    const char *class = topofile_attribute(attributes, "class");
    const char *version = topofile_attribute(attributes, "version");
    if (file->depth++ == 0) {
        file->system = strcmp(name, "system") == 0;
        snprintf(file->version, sizeof file->version, "%s", version ? version : "");
        if (!file->system)
            topofile_stop(file, "the root element is not <system>");
    } else if (file->depth > TOPOFILE_DEPTH) {
        topofile_stop(file, "nested too deep");
    } else if (strcmp(name, "pci") == 0 && busid) {
        if (json_array_size(file->functions) == TOPOFILE_MAX) {
            topofile_stop(file, "too many functions");
            return;
        }
        json_array_append_new(file->functions,
                              json_pack("{s:o,s:o}", "pci", shk_gather_str(busid), "class",
                                        class ? shk_gather_str(class) : json_null()));
    }
}

static void topofile_close(void *data, const char *name)
{
    struct topofile *file = data;
    (void)name;
    file->depth--;
}

/* Entities are no part of these files: refusing their declarations keeps out bombs. */
static void topofile_entity(void *data, const char *name, int parameter, const char *value, int len,
                            const char *base, const char *system, const char *public,
                            const char *notation)
{
    (void)name, (void)parameter, (void)value, (void)len;
    (void)base, (void)system, (void)public, (void)notation;
    topofile_stop(data, "it declares entities");
}

static int topofile_parse(struct topofile *file, const char *text, size_t len,
                          struct shk_error *err)
{
    file->parser = XML_ParserCreate(NULL);
    if (!file->parser)
        return shk_error_sys(err, ENOMEM, "XML");
    XML_SetUserData(file->parser, file);
    XML_SetElementHandler(file->parser, topofile_open, topofile_close);
    XML_SetEntityDeclHandler(file->parser, topofile_entity);
    int rc = 0;
    if (XML_Parse(file->parser, text, (int)len, 1) != XML_STATUS_OK)
        rc = shk_error_set(err, EINVAL, "line %lu: %s", XML_GetCurrentLineNumber(file->parser),
                           file->bad ? file->bad : XML_ErrorString(XML_GetErrorCode(file->parser)));
    XML_ParserFree(file->parser);
    return rc;
}

static int topofile_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    static const char key[] = "topology.nccl_file";
    struct shk_gather g = shk_gather_begin(ctx);
    struct topofile file = {.functions = json_array()};
    const char *asked = shk_host_getenv(ctx->host, shk_variable("topology-file"));
    const char *path = asked && *asked ? asked : topofile_default;
    struct shk_error why;
    char *text = NULL;
    size_t len = 0;
    int rc = *path == '/' ? shk_host_read(ctx->host, path, &text, &len, &why)
                          : shk_error_set(&why, EINVAL, "%s is not an absolute path", path);
    bool missing = rc == -ENOENT && path != topofile_default;
    bool bad = rc ? !missing && *path != '/' : topofile_parse(&file, text, len, &why) != 0;
    if (rc == -ENOENT && path == topofile_default)
        shk_gather_absent(&g, key, path, "%s is not set and there is no %s",
                          shk_variable("topology-file"), path);
    else if (missing)
        shk_gather_failed(&g, key, path, "%s=%s: no such file", shk_variable("topology-file"),
                          path);
    else if (rc || bad)
        shk_gather_failed(&g, key, path, "%s: %.300s", path, why.text);
    else
        shk_gather_present(&g, key,
                           json_pack("{s:o,s:b,s:s,s:O}", "path", shk_gather_str(path), "asked",
                                     path == asked, "version", file.version, "functions",
                                     file.functions),
                           NULL, path);
    if (missing || bad)
        shk_gather_text(&g, "topology.nccl_file.problem", missing ? "missing" : "unusable", path);
    json_decref(file.functions);
    free(text);
    return shk_gather_end(&g, err);
}

static const char *const topofile_provides[] = {"topology.nccl_file", "topology.nccl_file.problem",
                                                NULL};

const struct shk_probe shk_probe_topofile = {
    .name = "topofile",
    .phase = SHK_PHASE_HOST,
    .doc = "topology file of NCCL: the PCI functions that it names",
    .provides = topofile_provides,
    .deadline_ms = 5000,
    .run = topofile_run,
};
