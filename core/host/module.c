#include "core/host/module.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* Addresses and bits: SFF-8024 (identifiers), SFF-8472, SFF-8636, OIF CMIS 5. */
enum { I2C_BASE = 0x50, I2C_DIAGNOSTICS = 0x51, HALF = 128 };

struct reading {
    const struct shk_module_bytes *bytes;
    struct shk_module *module;
    struct shk_error *err;
    int rc; /* the first failure; nothing is read after it */
};

static bool fetch(struct reading *r, unsigned i2c, unsigned page, unsigned offset,
                  unsigned char *half)
{
    if (!r->rc)
        r->rc = r->bytes->read(r->bytes->arg, i2c, page, offset, HALF, half, r->err);
    return !r->rc;
}

static unsigned u16(const unsigned char *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

/* Degrees, of 1/256 each. */
static double celsius(const unsigned char *at)
{
    return (double)(int16_t)u16(at) / 256;
}

/* uW, of 0.1 each. */
static double microwatts(const unsigned char *at)
{
    return (double)u16(at) / 10;
}

static void text(char *to, const unsigned char *from)
{
    size_t n = SHK_MODULE_NAME - 1;
    while (n && (from[n - 1] == ' ' || from[n - 1] == '\0'))
        n--;
    for (size_t i = 0; i < n; i++)
        to[i] = from[i] >= 0x20 && from[i] < 0x7f ? (char)from[i] : '?';
    to[n] = '\0';
}

/* Thresholds of 0 are not filled in. */
static void temperature(struct shk_module *m, const unsigned char *now, const unsigned char *alarm)
{
    m->has_temperature = true;
    m->temperature = celsius(now);
    m->has_temperature_alarm = alarm && celsius(alarm) > 0;
    m->temperature_alarm = m->has_temperature_alarm ? celsius(alarm) : 0;
}

static void light(struct shk_module *m, const unsigned char *now, unsigned lanes,
                  const unsigned char *alarm)
{
    m->has_light = true;
    m->lanes = lanes;
    for (unsigned i = 0; i < lanes; i++)
        m->light[i] = microwatts(now + 2 * i);
    m->has_light_alarm = alarm && u16(alarm) > 0;
    m->light_alarm = m->has_light_alarm ? microwatts(alarm) : 0;
}

static void read_sfp(struct reading *r, const unsigned char *id)
{
    unsigned char diagnostics[HALF];
    struct shk_module *m = r->module;
    m->form = "SFP";
    m->copper = id[8] & 0x0c; /* passive or active cable */
    text(m->vendor, id + 20);
    text(m->part, id + 40);
    /* bit 6: monitors are implemented; bit 2: through an address change, which is not done */
    if (!(id[92] & 0x40) || (id[92] & 0x04) || !fetch(r, I2C_DIAGNOSTICS, 0, 0, diagnostics))
        return;
    temperature(m, diagnostics + 96, diagnostics);
    if (!m->copper)
        light(m, diagnostics + 104, 1, diagnostics + 34);
}

static void read_qsfp(struct reading *r, const unsigned char *lower)
{
    unsigned char id[HALF], limits[HALF];
    struct shk_module *m = r->module;
    m->form = "QSFP";
    if (!fetch(r, I2C_BASE, 0, HALF, id))
        return;
    text(m->vendor, id + (148 - HALF));
    text(m->part, id + (168 - HALF));
    m->copper = id[147 - HALF] >> 4 >= 10;
    bool paged = !(lower[2] & 0x04);
    if (m->copper || (paged && !fetch(r, I2C_BASE, 3, HALF, limits)))
        return;
    temperature(m, lower + 22, paged ? limits : NULL);
    light(m, lower + 34, 4, paged ? limits + (178 - HALF) : NULL);
}

static void read_cmis(struct reading *r, const unsigned char *lower)
{
    unsigned char id[HALF], offers[HALF], limits[HALF], lanes[HALF];
    struct shk_module *m = r->module;
    m->form = "CMIS";
    m->fault = (lower[3] >> 1 & 7) == 5;
    if (!fetch(r, I2C_BASE, 0, HALF, id))
        return;
    text(m->vendor, id + (129 - HALF));
    text(m->part, id + (148 - HALF));
    m->copper = id[212 - HALF] >= 0x0a && id[212 - HALF] <= 0x0f;
    if (lower[2] & 0x80) /* flat memory */
        return;
    if (!fetch(r, I2C_BASE, 1, HALF, offers) || !fetch(r, I2C_BASE, 2, HALF, limits))
        return;
    if (offers[159 - HALF] & 0x01)
        temperature(m, lower + 14, limits);
    if (!m->copper && offers[160 - HALF] & 0x04 && fetch(r, I2C_BASE, 0x11, HALF, lanes))
        light(m, lanes + (186 - HALF), SHK_MODULE_LANES, limits + (194 - HALF));
}

int shk_module_read(const struct shk_module_bytes *bytes, struct shk_module *module,
                    struct shk_error *err)
{
    struct reading r = {.bytes = bytes, .module = module, .err = err};
    unsigned char lower[HALF];
    *module = (struct shk_module){.form = NULL};
    if (!fetch(&r, I2C_BASE, 0, 0, lower))
        return r.rc;
    switch (lower[0]) {
    case 0x03: read_sfp(&r, lower); break;
    case 0x0c:
    case 0x0d:
    case 0x11: read_qsfp(&r, lower); break;
    case 0x18:
    case 0x19:
    case 0x1b:
    case 0x1e:
    case 0x1f:
    case 0x20: read_cmis(&r, lower); break;
    default:
        return shk_error_set(err, EPROTO,
                             "a module of identifier 0x%02x, whose memory map is not "
                             "known",
                             lower[0]);
    }
    return r.rc;
}
