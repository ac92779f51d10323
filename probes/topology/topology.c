/* The machine as hwloc sees it, and how far each accelerator is from each NIC.
 *
 * hwloc's plugins (CUDA, NVML, OpenCL, GL …) are kept out: they would load vendor libraries, which
 * may hang. GPUs and NICs are found as PCI devices instead. A capture is read from
 * SYSROOT/.shakedown/topology.xml, or from its /sys. */
#include "core/run/drop.h"
#include "probes/base/registry.h"

#include "probes/topology/topology_place.h"
#include "probes/topology/topology_xml.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const topology_xml = "/.shakedown/topology.xml";

/* An XML of a large node is 100 to 200 KB; beyond this the facts carry only its size. */
enum { TOPOLOGY_MAX_XML = 256 << 10 };

/* hwloc reads its settings from the environment. Those of the job are meant for the job. */
static void topology_environment(const char *fsroot)
{
    static const char *const job[] = {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC",  "HWLOC_COMPONENTS",
                                      "HWLOC_FSROOT",  "HWLOC_CPUID_PATH", "HWLOC_THISSYSTEM"};
    for (size_t i = 0; i < sizeof job / sizeof job[0]; i++)
        unsetenv(job[i]);
    setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
    setenv("HWLOC_HIDE_ERRORS", "2", 1);
    if (fsroot) {
        setenv("HWLOC_FSROOT", fsroot, 1);
        setenv("HWLOC_COMPONENTS", "linux,stop", 1);
        setenv("HWLOC_THISSYSTEM", "0", 1);
    }
}

/* Where the topology comes from; source is what the facts name. -ENODATA: a capture without any. */
static int topology_source(hwloc_topology_t topo, const struct shk_host *host, char **xml_p,
                           const char **source_p, struct shk_error *err)
{
    size_t len = 0;
    *source_p = "hwloc";
    if (shk_host_is_live(host))
        return 0;
    *source_p = topology_xml;
    int rc = shk_host_read(host, topology_xml, xml_p, &len, err);
    if (!rc)
        shk_topology_xml_lower(*xml_p, hwloc_get_api_version() >> 16);
    if (!rc && (len >= INT32_MAX || hwloc_topology_set_xmlbuffer(topo, *xml_p, (int)len + 1) != 0))
        return shk_error_set(err, EINVAL, "%s: not an XML topology", topology_xml);
    if (rc != -ENOENT)
        return rc;
    *source_p = "/sys";
    if (shk_host_exists(host, "/sys/devices/system/cpu"))
        return 0;
    return shk_error_set(err, ENODATA, "the capture has neither %s nor /sys/devices/system/cpu",
                         topology_xml);
}

/* hwloc loads XML of its own generation and older ones. */
static int topology_refused(const char *xml, const char *source, struct shk_error *err)
{
    static const char mark[] = "<topology version=\"";
    int errnum = errno ? errno : EINVAL;
    unsigned version = hwloc_get_api_version();
    const char *at = xml ? strstr(xml, mark) : NULL;
    unsigned long format = at ? strtoul(at + strlen(mark), NULL, 10) : 0;
    if (format > version >> 16)
        return shk_error_set(err, errnum, "%s: XML of hwloc %lu, which hwloc %u.%u cannot load",
                             source, format, version >> 16, version >> 8 & 0xff);
    return shk_error_sys(err, errnum, "%s: hwloc %u.%u cannot load it", source, version >> 16,
                         version >> 8 & 0xff);
}

static int topology_load(hwloc_topology_t *topo_p, const struct shk_host *host,
                         const char **source_p, struct shk_error *err)
{
    hwloc_topology_t topo = NULL;
    char *xml = NULL;
    bool live = shk_host_is_live(host);
    bool sysfs = !live && !shk_host_exists(host, "%s", topology_xml);
    topology_environment(sysfs ? shk_host_root(host) : NULL);
    if (hwloc_topology_init(&topo) != 0)
        return shk_error_sys(err, errno, "hwloc_topology_init");
    int rc = topology_source(topo, host, &xml, source_p, err);
    if (rc)
        goto out;
    hwloc_topology_set_io_types_filter(topo, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_icache_types_filter(topo, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(topo) != 0)
        rc = topology_refused(xml, *source_p, err);
out:
    free(xml);
    if (rc) {
        hwloc_topology_destroy(topo);
        return rc;
    }
    *topo_p = topo;
    return 0;
}

static json_t *topology_summary(hwloc_topology_t topo)
{
    static const struct {
        const char *name;
        hwloc_obj_type_t type;
    } counts[] = {
        {.name = "packages", .type = HWLOC_OBJ_PACKAGE},
        {.name = "numa_nodes", .type = HWLOC_OBJ_NUMANODE},
        {.name = "cores", .type = HWLOC_OBJ_CORE},
        {.name = "pus", .type = HWLOC_OBJ_PU},
        {.name = "pci_devices", .type = HWLOC_OBJ_PCI_DEVICE},
        {.name = "bridges", .type = HWLOC_OBJ_BRIDGE},
    };
    json_t *row = json_object();
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        json_object_set_new(row, counts[i].name,
                            json_integer(hwloc_get_nbobjs_by_type(topo, counts[i].type)));
    json_object_set_new(
        row, "memory",
        json_integer((json_int_t)hwloc_get_root_obj(topo)->total_memory)); /* bytes */
    return row;
}

struct topology_writer {
    struct shk_facts *facts;
    const char *source;
    int rc;
};

static void topology_put(struct topology_writer *w, const char *key, json_t *value)
{
    int rc = shk_facts_present(w->facts, key, value, NULL, w->source);
    if (rc && !w->rc)
        w->rc = rc;
}

static void topology_export(struct topology_writer *w, hwloc_topology_t topo)
{
    char *xml = NULL;
    int len = 0, rc;
    if (hwloc_topology_export_xmlbuffer(topo, &xml, &len, 0) != 0)
        rc = shk_facts_failed(w->facts, "topology.xml", w->source, "hwloc cannot export it: %s",
                              strerror(errno));
    else if (len > TOPOLOGY_MAX_XML)
        rc = shk_facts_absent(w->facts, "topology.xml", w->source,
                              "%d bytes, more than the %d that facts carry", len, TOPOLOGY_MAX_XML);
    else /* the length counts the final NUL */
        rc = shk_facts_present(w->facts, "topology.xml", shk_json_text(xml, strlen(xml)), NULL,
                               w->source);
    if (xml)
        hwloc_free_xmlbuffer(topo, xml);
    if (rc && !w->rc)
        w->rc = rc;
}

static const char *const topology_provides[] = {
    "topology.summary",
    "topology.devices",
    "topology.gpu_nic",
    "topology.gpu_gpu",
    "topology.links",
    "topology.",
    NULL,
};

/* A capture that holds no topology is no fault of the probe: the facts say what is missing. */
static int topology_failed(struct shk_facts *facts, const char *source, int rc,
                           const struct shk_error *why, struct shk_error *err)
{
    for (const char *const *key = topology_provides; *key; key++) {
        if ((*key)[strlen(*key) - 1] != '.')
            shk_facts_failed(facts, *key, source ? source : "hwloc", "%s", why->text);
    }
    return rc == -ENODATA ? 0 : shk_error_set(err, -rc, "%s", why->text);
}

static int topology_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    hwloc_topology_t topo = NULL;
    struct topology_writer w = {.facts = ctx->facts};
    struct shk_places *places = NULL;
    struct shk_error why = {""};
    if (ctx->quick && shk_host_is_live(ctx->host))
        shk_drop_admin(); /* the speed of a link is in /sys as well */
    int rc = topology_load(&topo, ctx->host, &w.source, &why);
    if (rc)
        return topology_failed(ctx->facts, w.source, rc, &why, err);
    rc = shk_places_find(&places, topo, err);
    if (!rc) {
        topology_put(&w, "topology.source", json_string(w.source));
        topology_put(&w, "topology.summary", topology_summary(topo));
        topology_put(&w, "topology.devices", shk_places_devices(places));
        topology_put(&w, "topology.gpu_nic", shk_places_pairs(places, SHK_PLACE_NIC));
        topology_put(&w, "topology.gpu_gpu", shk_places_pairs(places, SHK_PLACE_GPU));
        topology_put(&w, "topology.links", shk_places_links(places));
        topology_export(&w, topo);
        if (w.rc)
            rc = shk_error_sys(err, -w.rc, "facts of hwloc");
    }
    shk_places_destroy(places);
    hwloc_topology_destroy(topo);
    return rc;
}

const struct shk_probe shk_probe_topology = {
    .name = "topology",
    .phase = SHK_PHASE_LIBRARY,
    .doc = "hwloc topology: NUMA nodes, accelerators, NICs and the distance between them",
    .provides = topology_provides,
    .deadline_ms = 10000,
    .apart = true,
    .run = topology_run,
};
