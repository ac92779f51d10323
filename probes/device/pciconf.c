/* libpci reads through its own access methods, which know nothing of a captured root. So it is
 * given the bytes that core/host/host.h has read, as a dump in memory in the form of `lspci -xxxx`.
 */
#include "probes/device/pciconf.h"

#include <errno.h>
#include <pci/pci.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where libpci's error callback, which may not return, lands. One thread per probe child. */
static jmp_buf pciconf_landing;
static struct shk_error pciconf_problem;

static void pciconf_error(char *msgf, ...) __attribute__((format(printf, 1, 2), noreturn));
static void pciconf_error(char *msgf, ...)
{
    va_list args;
    va_start(args, msgf);
    vsnprintf(pciconf_problem.text, sizeof pciconf_problem.text, msgf, args);
    va_end(args);
    longjmp(pciconf_landing, 1);
}

static void pciconf_quiet(char *msgf, ...) __attribute__((format(printf, 1, 2)));
static void pciconf_quiet(char *msgf, ...)
{
    (void)msgf;
}

/* A memory file with the dump of one function; -1 with errno on failure. */
static int pciconf_dump(const unsigned char *config, size_t len)
{
    int fd = memfd_create("pci", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    int bad = dprintf(fd, "00:00.0 x\n") < 0;
    for (size_t at = 0; at < len && !bad; at += 16) {
        char line[80];
        int n = snprintf(line, sizeof line, "%03zx:", at);
        for (size_t i = at; i < at + 16 && i < len; i++)
            n += snprintf(line + n, sizeof line - (size_t)n, " %02x", config[i]);
        bad = dprintf(fd, "%s\n", line) < 0;
    }
    if (!bad)
        return fd;
    close(fd);
    return -1;
}

static int pciconf_find(struct pci_access *access, unsigned id, unsigned offset, unsigned *word_p)
{
    if (setjmp(pciconf_landing))
        return -EIO;
    pci_init(access);
    pci_scan_bus(access);
    struct pci_dev *dev = access->devices;
    struct pci_cap *cap = dev ? pci_find_cap(dev, id, PCI_CAP_EXTENDED) : NULL;
    if (!cap)
        return -ENOENT;
    *word_p = pci_read_word(dev, (int)(cap->addr + offset));
    return 0;
}

int shk_pciconf_extended(const unsigned char *config, size_t len, unsigned id, unsigned offset,
                         unsigned *word_p, struct shk_error *err)
{
    char path[40];
    if (len <= 256)
        return shk_error_set(err, ENODATA, "extended configuration space is readable by root only");
    int fd = pciconf_dump(config, len < 4096 ? len : 4096);
    if (fd < 0)
        return shk_error_sys(err, errno, "dump for libpci");
    struct pci_access *access = pci_alloc();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    access->method = PCI_ACCESS_DUMP;
    access->error = pciconf_error;
    access->warning = pciconf_quiet;
    access->debug = pciconf_quiet;
    pci_set_param(access, "dump.name", path);
    int rc = pciconf_find(access, id, offset, word_p);
    if (rc == -EIO)
        shk_error_set(err, EIO, "libpci: %.200s", pciconf_problem.text);
    pci_cleanup(access);
    close(fd);
    return rc;
}
