/* Capabilities out of the bytes of a PCI configuration space, found by libpci. */
#ifndef SHK_PROBES_PCICONF_H
#define SHK_PROBES_PCICONF_H

#include "core/text/error.h"

#include <stddef.h>

/* Reads the 16-bit register at `offset` of the extended capability `id` (PCI Express Base
 * Specification, chapter 7; numbers as in pci/header.h). config has len bytes as sysfs gives them.
 * Returns 0, -ENOENT when the function has no such capability, -ENODATA when the extended space is
 * not in config (an unprivileged reader gets 64 bytes), -EIO when libpci cannot parse it. */
int shk_pciconf_extended(const unsigned char *config, size_t len, unsigned id, unsigned offset,
                         unsigned *word_p, struct shk_error *err) SHK_MUST_CHECK;

#endif
