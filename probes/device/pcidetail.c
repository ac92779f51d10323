#include "probes/device/pcidetail.h"

#include "probes/base/gather.h"
#include "probes/device/pciconf.h"

#include <errno.h>
#include <pci/header.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void shk_pci_link(const struct shk_host *host, json_t *dev, const char *addr)
{
    static const struct {
        const char *member, *file;
        bool speed;
    } rows[] = {
        {"link_speed", "current_link_speed", true},
        {"link_width", "current_link_width", false},
        {"max_link_speed", "max_link_speed", true},
        {"max_link_width", "max_link_width", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        shk_gather_member_text(host, dev, rows[i].member, SHK_PCI_BUS "/%s/%s", addr, rows[i].file);
        const char *text = shk_gather_get(dev, rows[i].member);
        char *end = NULL;
        double value = text ? strtod(text, &end) : 0;
        /* "Unknown", and widths 0 and 255, are the kernel's words for no link */
        bool known = text && end != text && value > 0 && value < 255;
        if (text && end == text && strncmp(text, "Unknown", 7) != 0)
            shk_gather_member_problem(dev, rows[i].member, "not a number");
        json_object_set_new(dev, rows[i].member,
                            !known          ? json_null()
                            : rows[i].speed ? json_real(value)
                                            : json_integer((json_int_t)value));
    }
}

/* Lines "START END FLAGS" in hexadecimal; the first six are the base address registers, an unused
 * one is all zeros. A 64-bit register takes two lines, the second of them zeros. */
static json_t *pci_parse_bars(const char *text)
{
    enum { BARS = 6 };
    json_t *bars = json_array();
    for (int i = 0; i < BARS; i++) {
        unsigned long long start, end, flags;
        if (sscanf(text, "%llx %llx %llx", &start, &end, &flags) != 3 || end < start)
            break;
        json_array_append_new(bars, json_integer(end == 0 ? 0 : (json_int_t)(end - start + 1)));
        text = strchr(text, '\n');
        if (!text++)
            break;
    }
    if (json_array_size(bars) == BARS)
        return bars;
    json_decref(bars);
    return NULL;
}

void shk_pci_bars(const struct shk_host *host, json_t *dev, const char *addr)
{
    char path[128], *text = NULL;
    struct shk_error err;
    snprintf(path, sizeof path, SHK_PCI_BUS "/%s/resource", addr);
    int rc = shk_host_read(host, path, &text, NULL, &err);
    json_t *bars = rc ? NULL : pci_parse_bars(text);
    if (!bars && !rc)
        rc = shk_error_set(&err, EINVAL, "%s: not six lines of START END FLAGS", path);
    if (bars)
        json_object_set_new(dev, "bars", bars);
    else
        shk_gather_member_unread(host, dev, "bars", path, rc, &err);
    free(text);
}

/* "RxErr 0\nBadTLP 3\n…\nTOTAL_ERR_COR 3\n": the names above 0; totals are sums of the others. */
static json_t *pci_parse_aer(char *text)
{
    json_t *counts = *text ? json_object() : NULL;
    char *save;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char name[32];
        long long count;
        if (sscanf(line, "%31s %lld", name, &count) != 2 || count < 0) {
            json_decref(counts);
            return NULL;
        }
        if (count > 0 && strncmp(name, "TOTAL_", 6) != 0)
            json_object_set_new(counts, name, json_integer(count));
    }
    return counts;
}

void shk_pci_aer(const struct shk_host *host, json_t *dev, const char *addr)
{
    static const char *const kinds[] = {"correctable", "nonfatal", "fatal"};
    json_t *aer = json_object();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char path[128], *text = NULL;
        struct shk_error err;
        snprintf(path, sizeof path, SHK_PCI_BUS "/%s/aer_dev_%s", addr, kinds[i]);
        int rc = shk_host_read(host, path, &text, NULL, &err);
        json_t *counts = rc ? NULL : pci_parse_aer(text);
        free(text);
        if (!counts && !rc)
            rc = shk_error_set(&err, EINVAL, "%s: not lines of NAME COUNT", path);
        if (!counts) {
            shk_gather_member_unread(host, dev, "aer", path, rc, &err);
            json_decref(aer);
            return;
        }
        json_object_set_new(aer, kinds[i], counts);
    }
    json_object_set_new(dev, "aer", aer);
}

void shk_pci_acs(const struct shk_host *host, json_t *dev, const char *addr)
{
    char path[128], *raw = NULL;
    size_t len = 0;
    unsigned control = 0;
    struct shk_error err;
    snprintf(path, sizeof path, SHK_PCI_BUS "/%s/config", addr);
    int rc = shk_host_read(host, path, &raw, &len, &err);
    if (!rc) {
        rc = shk_pciconf_extended((const unsigned char *)raw, len, PCI_EXT_CAP_ID_ACS, PCI_ACS_CTRL,
                                  &control, &err);
        free(raw);
        if (rc == -ENOENT) {
            json_object_set_new(dev, "acs", json_false());
            return;
        }
    }
    if (rc)
        shk_gather_member_problem(dev, "acs", err.text);
    json_object_set_new(dev, "acs", rc ? json_null() : json_pack("{s:i}", "control", (int)control));
}
