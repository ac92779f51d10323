/* What the kernel logged about devices: Xid and SXid, RAS of AMD GPUs, links that come and go. */
#include "core/facts/facts.h"
#include "core/host/kmsg.h"
#include "core/text/strbuf.h"
#include "probes/base/gather.h"
#include "probes/counters/counters_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kmsg_scope[] = "kernel log";

/* Lines kept; of a storm the first ones say it all, and the number counts. */
enum { KMSG_EVENTS = 64, KMSG_LINE = 240 };

/* Phrases of the kernel's drivers, most telling first:
 * mlx5: drivers/net/ethernet/mellanox/mlx5/core/{en_main,events}.c; bnxt_en: bnxt.c; ice:
 * ice_main.c; cxi_ss1: HPE; net/ipv6/addrconf.c tells every link that comes; amdgpu:
 * amdgpu_ras.c, amdgpu_device.c, amdgpu_job.c; kfd: kfd_events.c, kfd_chardev.c. */
static const struct kmsg_phrase {
    const char *phrase, *driver, *class, *counter;
} phrases[] = {
    {"uncorrectable hardware errors detected", "amdgpu", "gpu", "uncorrectable RAS error"},
    {"correctable hardware errors detected", "amdgpu", "gpu", "correctable RAS error"},
    {"GPU reset begin", "amdgpu", "gpu", "GPU reset"},
    {"timeout, signaled seq", "amdgpu", "gpu", "ring timeout"},
    {"page fault", "amdgpu", "gpu", "page fault"},
    {"RAS poison", "amdgpu", "gpu", "poisoned memory consumed"},
    {"Link down", "", "network", "link down"},
    {"Link is Down", "", "network", "link down"},
    {"link is down", "", "network", "link down"},
    {"Cable unplugged", "", "network", "cable unplugged"},
    {"Bus stuck", "mlx5_core", "network", "module error"},
    {"High Temperature", "mlx5_core", "network", "module too hot"},
    {"detected insufficient power", "mlx5_core", "network", "too little power in the slot"},
};

struct kmsg_reader {
    json_t *events;
    long long last;
};

/* The first PCI address of the line, in the form of sysfs; "" when there is none. */
static void kmsg_address(const char *text, char *buf, size_t size)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    *buf = '\0';
    for (const char *p = text; *p; p++) {
        bool starts = p == text || !isxdigit((unsigned char)p[-1]);
        /* Xid: "PCI:0000:41:00", without the function */
        if (!starts || strspn(p, hex) != 4 || p[4] != ':' || strspn(p + 5, hex) != 2 ||
            p[7] != ':' || strspn(p + 8, hex) != 2)
            continue;
        snprintf(buf, size, "%.10s.%c", p, p[10] == '.' ? p[11] : '0');
        for (char *b = buf; *b; b++)
            *b = (char)tolower((unsigned char)*b);
        return;
    }
}

static void kmsg_event(struct kmsg_reader *r, const struct shk_kmsg *record, const char *class,
                       const char *scope, const char *counter, const char *kind)
{
    if (json_array_size(r->events) == KMSG_EVENTS) {
        json_array_remove(r->events, 0); /* the newest are those of a run */
    }
    size_t len = strnlen(record->text, KMSG_LINE);
    (void)json_array_append_new(r->events,
                                json_pack("{s:I, s:I, s:s, s:s, s:s, s:s, s:o}", "seq",
                                          (json_int_t)record->seq, "usec", (json_int_t)record->usec,
                                          "class", class, "scope", scope, "counter", counter,
                                          "kind", kind, "line", shk_json_text(record->text, len)));
}

/* "NVRM: Xid (PCI:0000:41:00): 79, pid=…" and "nvidia-nvswitch3: SXid (PCI:0000:0b:00.0): 12028,
 * Non-fatal, …". SXid, and Xid 144 to 150 of NVLink, say themselves whether they are fatal. */
static bool kmsg_xid(struct kmsg_reader *r, const struct shk_kmsg *record)
{
    const char *at = strstr(record->text, "Xid (PCI:");
    const char *number = at ? strstr(at, "): ") : NULL;
    bool nvswitch = at && at > record->text && at[-1] == 'S';
    char scope[16], counter[32], *end = NULL;
    if (!number || !strstr(record->text, nvswitch ? "nvidia-nvswitch" : "NVRM:"))
        return false;
    unsigned long code = strtoul(number + 3, &end, 10);
    if (end == number + 3)
        return false;
    kmsg_address(at, scope, sizeof scope);
    snprintf(counter, sizeof counter, "%s %lu", nvswitch ? "SXid" : "Xid", code);
    bool says = nvswitch || (code >= 144 && code <= 150);
    kmsg_event(r, record, "gpu", *scope ? scope : "GPU", counter,
               says && strstr(end, " Fatal") ? "fatal-event" : "event");
    return true;
}

/* "mlx5_core 0000:41:00.0 eth2: Link down": the driver comes first, then address and name. */
static void kmsg_phrase(struct kmsg_reader *r, const struct shk_kmsg *record)
{
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        char scope[16];
        if (!strstr(record->text, phrases[i].phrase) ||
            strncmp(record->text, phrases[i].driver, strlen(phrases[i].driver)) != 0)
            continue;
        kmsg_address(record->text, scope, sizeof scope);
        if (*scope)
            kmsg_event(r, record, phrases[i].class, scope, phrases[i].counter, "event");
        return;
    }
}

static int kmsg_record(const struct shk_kmsg *record, void *arg)
{
    struct kmsg_reader *r = arg;
    r->last = record->seq;
    if (!kmsg_xid(r, record))
        kmsg_phrase(r, record);
    return 0;
}

void counters_kmsg(struct counters *c)
{
    struct kmsg_reader r = {.events = json_array(), .last = -1};
    struct shk_error err = {""};
    counters_begin(c, kmsg_scope, "log");
    int rc = shk_host_kmsg(c->host, kmsg_record, &r, &err);
    if (rc)
        counters_unread(c, kmsg_scope,
                        rc == -EPERM || rc == -EACCES
                            ? "only root may read it (kernel.dmesg_restrict)"
                            : err.text);
    else
        (void)json_object_set_new(c->values, kmsg_scope, json_object());
    (void)json_object_set_new(c->log, "last", json_integer(r.last));
    (void)json_object_set_new(c->log, "events", r.events);
}
