/* Transceivers and cables in the cages of this node's network cards, as they describe themselves.
 */
#include "core/host/eeprom.h"
#include "core/run/isolate.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <string.h>

static const char transceivers_key[] = "net.transceivers";

static json_t *transceivers_module(const struct shk_module *m)
{
    json_t *module =
        json_pack("{s:s, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o}", "form", m->form, "vendor",
                  shk_gather_str(m->vendor), "part", shk_gather_str(m->part), "copper", m->copper,
                  "fault", m->fault, "temperature",
                  m->has_temperature ? json_real(m->temperature) : json_null(), "temperature_alarm",
                  m->has_temperature_alarm ? json_real(m->temperature_alarm) : json_null(), "light",
                  m->has_light ? json_array() : json_null(), "light_alarm",
                  m->has_light_alarm ? json_real(m->light_alarm) : json_null());
    json_t *light = json_object_get(module, "light");
    for (unsigned i = 0; i < m->lanes; i++)
        json_array_append_new(light, json_real(m->light[i]));
    return module;
}

/* A driver that offers it for no module says EOPNOTSUPP; everything else was not read. */
static json_t *transceivers_one(const char *name, const json_t *iface)
{
    struct shk_eeprom *eeprom = NULL;
    struct shk_module module;
    struct shk_error err = {""};
    json_t *pci = json_object_get(iface, "pci"), *running = json_object_get(iface, "running");
    json_t *row = json_pack("{s:o, s:o, s:o, s:n}", "name", shk_gather_str(name), "pci",
                            pci ? json_incref(pci) : json_null(), "running",
                            running ? json_incref(running) : json_null(), "module");
    shk_crumb_call("module of %s", name);
    int rc = shk_eeprom_open(&eeprom, name, &err);
    if (!rc) {
        const struct shk_module_bytes bytes = shk_eeprom_bytes(eeprom);
        rc = shk_module_read(&bytes, &module, &err);
    }
    shk_eeprom_close(eeprom);
    if (!rc)
        json_object_set_new(row, "module", transceivers_module(&module));
    else if (rc != -EOPNOTSUPP)
        shk_gather_member_problem(
            row, "module", rc == -EPERM ? "only root may read it (CAP_NET_ADMIN)" : err.text);
    return row;
}

/* Interfaces of hardware; what is virtual has no cage. */
static bool transceivers_is_port(const json_t *iface)
{
    return !json_is_true(json_object_get(iface, "virtual")) &&
           !json_is_true(json_object_get(iface, "loopback"));
}

static int transceivers_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    const json_t *ifaces = ctx->known ? shk_facts_get_array(ctx->known, "net.ifaces") : NULL,
                 *iface;
    json_t *list = json_array();
    size_t i;
    json_array_foreach(ifaces, i, iface)
    {
        const char *name = shk_gather_get(iface, "name");
        if (name && transceivers_is_port(iface))
            json_array_append_new(list, transceivers_one(name, iface));
    }
    if (!ifaces)
        shk_gather_failed(&g, transceivers_key, "net.ifaces", "the interfaces were not read");
    else if (json_array_size(list))
        shk_gather_present(&g, transceivers_key, json_incref(list), NULL, "ethtool");
    else
        shk_gather_absent(&g, transceivers_key, "net.ifaces", "no network card");
    json_decref(list);
    return shk_gather_end(&g, err);
}

/* Drivers of virtual machines: none has anything to ask a module (drivers/net of Linux), so that
 * the kernel answers by itself. */
static bool transceivers_is_paravirtual(const json_t *iface)
{
    static const char *const drivers[] = {"virtio_net", "ena", "gve", "vmxnet3",
                                          "hv_netvsc",  "vif", NULL};
    const char *driver = shk_gather_get(iface, "driver");
    for (const char *const *d = drivers; driver && *d; d++)
        if (strcmp(driver, *d) == 0)
            return true;
    return false;
}

static bool transceivers_idle(const struct shk_host *host, const struct shk_facts *known)
{
    const json_t *iface;
    size_t i;
    (void)host;
    json_t *ifaces = shk_facts_get_array(known, "net.ifaces");
    json_array_foreach(ifaces, i, iface)
    {
        if (transceivers_is_port(iface) && !transceivers_is_paravirtual(iface))
            return false;
    }
    return true;
}

static const char *const transceivers_provides[] = {transceivers_key, NULL};

const struct shk_probe shk_probe_transceivers = {
    .name = "transceivers",
    .phase = SHK_PHASE_LIBRARY,
    .doc = "modules and cables of network cards: temperature and received light, with their limits",
    .provides = transceivers_provides,
    .needs_live = true,
    .deadline_ms = 5000,
    .apart = true,
    .idle = transceivers_idle,
    .run = transceivers_run,
};
