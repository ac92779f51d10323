/* Memory maps of transceivers: healthy, beyond their limits, without monitors, unreadable. */
#include "core/host/eeprom.h"
#include "core/host/module.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

struct map {
    unsigned char lower[256], pages[0x12][128], diagnostics[256];
    int fails_at; /* page whose reading fails with EIO; -1: none */
};

static int map_read(void *arg, unsigned i2c, unsigned page, unsigned offset, unsigned len,
                    unsigned char *bytes, struct shk_error *err)
{
    struct map *m = arg;
    if ((int)page == m->fails_at)
        return shk_error_sys(err, EIO, "page %u", page);
    if (i2c == 0x51)
        memcpy(bytes, m->diagnostics + offset, len);
    else if (offset >= 128)
        memcpy(bytes, m->pages[page] + offset - 128, len);
    else
        memcpy(bytes, m->lower + offset, len);
    return 0;
}

static void put16(unsigned char *at, unsigned value)
{
    at[0] = (unsigned char)(value >> 8);
    at[1] = (unsigned char)value;
}

static int decode(struct map *m, struct shk_module *module)
{
    const struct shk_module_bytes bytes = {.read = map_read, .arg = m};
    struct shk_error err = {""};
    return shk_module_read(&bytes, module, &err);
}

/* An optical QSFP28 at 43.5 degrees; limit 75, light of four lanes, limit 40 uW. */
static struct map qsfp(void)
{
    struct map m = {.lower = {0x11}, .fails_at = -1};
    put16(m.lower + 22, 43 * 256 + 128);
    for (unsigned i = 0; i < 4; i++)
        put16(m.lower + 34 + 2 * i, 6000 + i);
    memcpy(m.pages[0] + 148 - 128, "ACME            ", 16);
    memcpy(m.pages[0] + 168 - 128, "100G-SR4        ", 16);
    put16(m.pages[3], 75 * 256);
    put16(m.pages[3] + 178 - 128, 400);
    return m;
}

Test(module, qsfp)
{
    struct map m = qsfp();
    struct shk_module module;
    cr_assert_eq(decode(&m, &module), 0);
    cr_expect_str_eq(module.form, "QSFP");
    cr_expect_str_eq(module.vendor, "ACME");
    cr_expect_str_eq(module.part, "100G-SR4");
    cr_expect(!module.copper && module.has_temperature && module.has_temperature_alarm);
    cr_expect_float_eq(module.temperature, 43.5, 1e-9);
    cr_expect_float_eq(module.temperature_alarm, 75, 1e-9);
    cr_assert(module.has_light && module.has_light_alarm && module.lanes == 4);
    cr_expect_float_eq(module.light[3], 600.3, 1e-9);
    cr_expect_float_eq(module.light_alarm, 40, 1e-9);
}

Test(module, qsfp_without)
{
    struct map m = qsfp();
    struct shk_module module;
    m.lower[2] = 0x04; /* one page only: no limits */
    cr_assert_eq(decode(&m, &module), 0);
    cr_expect(module.has_temperature && !module.has_temperature_alarm && !module.has_light_alarm);
    m = qsfp();
    m.pages[0][147 - 128] = 0xa0; /* a copper cable */
    cr_assert_eq(decode(&m, &module), 0);
    cr_expect(module.copper && !module.has_temperature && !module.has_light);
    m = qsfp();
    m.fails_at = 3;
    cr_expect_eq(decode(&m, &module), -EIO);
    m.lower[0] = 0x42;
    m.fails_at = -1;
    cr_expect_eq(decode(&m, &module), -EPROTO);
}

Test(module, sfp)
{
    struct map m = {.lower = {0x03}, .fails_at = -1};
    struct shk_module module;
    memcpy(m.lower + 20, "ACME            ", 16);
    memcpy(m.lower + 40, "25G-SR          ", 16);
    m.lower[92] = 0x68;
    put16(m.diagnostics, 85 * 256);
    put16(m.diagnostics + 34, 100);
    put16(m.diagnostics + 96, (unsigned)(-3 * 256) & 0xffff);
    put16(m.diagnostics + 104, 90);
    cr_assert_eq(decode(&m, &module), 0);
    cr_expect_str_eq(module.form, "SFP");
    cr_expect_float_eq(module.temperature, -3, 1e-9);
    cr_expect(module.lanes == 1 && module.light[0] < module.light_alarm);
    m.lower[92] = 0; /* no monitors */
    cr_assert_eq(decode(&m, &module), 0);
    cr_expect(!module.has_temperature && !module.has_light);
}

Test(module, cmis)
{
    struct map m = {.lower = {0x18}, .fails_at = -1};
    struct shk_module module;
    m.lower[3] = 5 << 1; /* fault */
    put16(m.lower + 14, 60 * 256);
    memcpy(m.pages[0] + 129 - 128, "ACME            ", 16);
    memcpy(m.pages[0] + 148 - 128, "400G-DR4        ", 16);
    m.pages[1][159 - 128] = 0x01;
    m.pages[1][160 - 128] = 0x04;
    put16(m.pages[2], 80 * 256);
    put16(m.pages[2] + 194 - 128, 500);
    for (unsigned i = 0; i < 8; i++)
        put16(m.pages[0x11] + 186 - 128 + 2 * i, 9000);
    cr_assert_eq(decode(&m, &module), 0);
    cr_expect(module.fault && module.lanes == 8 && module.has_light_alarm);
    cr_expect_float_eq(module.light[7], 900, 1e-9);
    cr_expect_float_eq(module.temperature_alarm, 80, 1e-9);
    m.pages[1][160 - 128] = 0;
    cr_assert_eq(decode(&m, &module), 0);
    cr_expect(!module.has_light && module.has_temperature);
}

/* The loopback has no cage: its driver says so, or the kernel that we may not ask. */
Test(module, of_no_card)
{
    struct shk_eeprom *eeprom = NULL;
    struct shk_module module;
    struct shk_error err = {""};
    cr_assert_eq(shk_eeprom_open(&eeprom, "lo", &err), 0, "%s", err.text);
    const struct shk_module_bytes bytes = shk_eeprom_bytes(eeprom);
    int rc = shk_module_read(&bytes, &module, &err);
    cr_expect(rc == -EOPNOTSUPP || rc == -EPERM, "%d: %s", rc, err.text);
    shk_eeprom_close(eeprom);
}
