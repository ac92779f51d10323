/* Memory of a transceiver, which is what its maker and the bus make of it. */
#include "core/host/module.h"
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct memory {
    const uint8_t *data;
    size_t size, at;
};

/* The next bytes of the input, whatever is asked for; at its end the bus fails. */
static int memory_read(void *arg, unsigned i2c, unsigned page, unsigned offset, unsigned len,
                       unsigned char *bytes, struct shk_error *err)
{
    struct memory *m = arg;
    (void)i2c, (void)page;
    if (offset + len > 256)
        abort();
    if (m->size - m->at < len)
        return shk_error_sys(err, EIO, "end");
    memcpy(bytes, m->data + m->at, len);
    m->at += len;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory memory = {.data = data, .size = size};
    const struct shk_module_bytes bytes = {.read = memory_read, .arg = &memory};
    struct shk_module module;
    struct shk_error err = {""};
    if (shk_module_read(&bytes, &module, &err) == 0 &&
        (!module.form || module.lanes > SHK_MODULE_LANES ||
         strnlen(module.vendor, SHK_MODULE_NAME) == SHK_MODULE_NAME))
        abort();
    return 0;
}
