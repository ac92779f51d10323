/* What a transceiver or cable in the cage of a network card says of itself: temperature and
 * received light against its own thresholds. Decodes the memory maps of SFF-8472 (SFP), SFF-8636
 * (QSFP) and CMIS (QSFP-DD, OSFP); the bytes come from core/host/eeprom.h. */
#ifndef SHK_CORE_MODULE_H
#define SHK_CORE_MODULE_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>

/* Pages have 256 bytes: the lower half is the same on all pages, the upper half is the page's. */
struct shk_module_bytes {
    /* `len` bytes of that page from `offset` on, within one half; i2c: 0x50, or 0x51 for the
     * diagnostics of SFP modules. 0 or a negative errno. */
    int (*read)(void *arg, unsigned i2c, unsigned page, unsigned offset, unsigned len,
                unsigned char *bytes, struct shk_error *err);
    void *arg;
};

enum { SHK_MODULE_LANES = 8, SHK_MODULE_NAME = 17 };

struct shk_module {
    const char *form;                                    /* "SFP", "QSFP", "CMIS" */
    char vendor[SHK_MODULE_NAME], part[SHK_MODULE_NAME]; /* without blanks at the end */
    bool copper;                                         /* a cable without light */
    bool fault;                                          /* CMIS: the module's own state */
    bool has_temperature, has_temperature_alarm;
    double temperature, temperature_alarm; /* degrees Celsius; the high alarm threshold */
    bool has_light, has_light_alarm;
    unsigned lanes;
    double light[SHK_MODULE_LANES], light_alarm; /* received power, uW; the low alarm threshold */
};

/* Reads and decodes. -EOPNOTSUPP and others as `read` gives them; -EPROTO: a kind of module whose
 * memory map is not known. What a module does not offer is not set. */
int shk_module_read(const struct shk_module_bytes *bytes, struct shk_module *module,
                    struct shk_error *err) SHK_MUST_CHECK;

#endif
