/* For tests only: lets functions on the PCI buses of a virtual machine have other identities, so
 * that GPUs and NICs that QEMU does not have stand below its switches, in its IOMMU groups and on
 * its NUMA nodes. echo "0000:04:00.0 10de 2330 030200" >/sys/module/identity/parameters/pci vendor,
 * device, class echo nvidia >/sys/module/identity/parameters/driver     a driver that takes what
 * its driver_override names echo "mlx5_0 0000:03:00.0" >/sys/module/identity/parameters/rdma   a
 * verbs device is that function's echo "0000:04:00.0 3 16 5 16"
 * >/sys/module/identity/parameters/link  generation and width, now and at most echo 0000:02:00.0
 * >/sys/module/identity/parameters/acs   a bridge has Access Control Services, all off echo
 * driver/nvidia >/sys/module/identity/parameters/proc   a folder below /proc; PATH TEXT: a file */
#include <linux/aer.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <rdma/ib_verbs.h>

enum { MAX = 32 };

static struct seen {
    struct pci_bus *bus;
    unsigned int devfn, vendor, device, class;
    unsigned int speed, width, max_speed, max_width; /* 0: the real ones */
    int exp, acs_link; /* where the list of extended capabilities ended */
    u16 acs_control;
    struct pci_ops *real;
} seen[MAX];
static unsigned int count;
static struct pci_ops ours;

static struct seen *find(struct pci_bus *bus, unsigned int devfn)
{
    unsigned int i;
    for (i = 0; i < count; i++)
        if (seen[i].bus == bus && (devfn == -1u || seen[i].devfn == devfn))
            return &seen[i];
    return NULL;
}

enum { ACS_AT = 0xf00 }; /* far from what QEMU's devices have */

/* An ACS capability, which QEMU's switches lack, at the end of the list that begins at 0x100. */
static u8 acs_byte(const struct seen *s, int at, u8 real)
{
    static const u8 capability[] = {PCI_EXT_CAP_ID_ACS, 0, 1, 0, 0x5f, 0};
    if (at == s->acs_link)
        return real | (ACS_AT & 0xf) << 4;
    if (at == s->acs_link + 1)
        return ACS_AT >> 4;
    if (at >= ACS_AT + PCI_ACS_CTRL && at < ACS_AT + PCI_ACS_CTRL + 2)
        return s->acs_control >> 8 * (at - ACS_AT - PCI_ACS_CTRL);
    return at >= ACS_AT && at < ACS_AT + 6 ? capability[at - ACS_AT] : real;
}

/* The byte of the configuration space that such a function would have. */
static u8 byte_at(const struct seen *s, int at, u8 real)
{
    if (at < 4)
        return (s->vendor | s->device << 16) >> 8 * at;
    if (at >= 9 && at < 12)
        return s->class >> 8 * (at - 9);
    if (s->speed && at == s->exp + PCI_EXP_LNKSTA)
        return s->speed | (s->width & 0xf) << 4;
    if (s->speed && at == s->exp + PCI_EXP_LNKSTA + 1)
        return (real & ~3) | s->width >> 4;
    if (s->speed && at == s->exp + PCI_EXP_LNKCAP)
        return s->max_speed | (s->max_width & 0xf) << 4;
    if (s->speed && at == s->exp + PCI_EXP_LNKCAP + 1)
        return (real & ~3) | s->max_width >> 4;
    if (s->speed && s->exp && at == s->exp + PCI_EXP_LNKCAP2)
        return (2 << s->max_speed) - 2;
    return s->acs_link ? acs_byte(s, at, real) : real;
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
    struct seen *any = find(bus, -1u), *s = find(bus, devfn);
    int i, rc = any->real->read(bus, devfn, where, size, value);
    for (i = 0; s && !rc && i < size; i++) {
        u8 byte = byte_at(s, where + i, *value >> 8 * i);
        *value = (*value & ~(0xffu << 8 * i)) | (u32)byte << 8 * i;
    }
    return rc;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
    struct seen *s = find(bus, devfn);
    if (s && s->acs_link && where == ACS_AT + PCI_ACS_CTRL) {
        s->acs_control = value & 0x5f;
        return 0;
    }
    return find(bus, -1u)->real->write(bus, devfn, where, size, value);
}

static void __iomem *config_map(struct pci_bus *bus, unsigned int devfn, int where)
{
    struct pci_ops *real = find(bus, -1u)->real;
    return real->map_bus ? real->map_bus(bus, devfn, where) : NULL;
}

static struct pci_ops ours = {.read = config_read, .write = config_write, .map_bus = config_map};

static struct pci_dev *device_of(const char *text)
{
    unsigned int domain, bus, slot, fn;
    if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &fn) != 4)
        return NULL;
    return pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, fn));
}

/* The entry of a function, a new one when it has none. */
static struct seen *entry(struct pci_dev *dev)
{
    struct seen *s = find(dev->bus, dev->devfn), *same = find(dev->bus, -1u);
    if (s || count == MAX)
        return s;
    s = &seen[count];
    *s = (struct seen){.bus = dev->bus,
                       .devfn = dev->devfn,
                       .vendor = dev->vendor,
                       .device = dev->device,
                       .class = dev->class,
                       .exp = pci_pcie_cap(dev),
                       .real = same ? same->real : dev->bus->ops};
    count++;
    if (!same)
        pci_bus_set_ops(dev->bus, &ours);
    return s;
}

static int set_pci(const char *text, const struct kernel_param *kp)
{
    unsigned int vendor, device, class;
    struct pci_dev *dev = device_of(text);
    struct seen *s = dev ? entry(dev) : NULL;
    if (!s || sscanf(text, "%*s %x %x %x", &vendor, &device, &class) != 3) {
        pci_dev_put(dev);
        return -EINVAL;
    }
    dev->vendor = s->vendor = vendor;
    dev->device = s->device = device;
    dev->class = s->class = class;
    pci_dev_put(dev);
    return 0;
}

static int set_link(const char *text, const struct kernel_param *kp)
{
    struct pci_dev *dev = device_of(text);
    struct seen *s = dev ? entry(dev) : NULL;
    if (!s || !s->exp ||
        sscanf(text, "%*s %u %u %u %u", &s->speed, &s->width, &s->max_speed, &s->max_width) != 4)
        return -EINVAL;
    dev->pcie_flags_reg =
        (dev->pcie_flags_reg & ~PCI_EXP_FLAGS_VERS) | 2; /* asked for all speeds only then */
    pci_dev_put(dev);
    return 0;
}

static int set_acs(const char *text, const struct kernel_param *kp)
{
    struct pci_dev *dev = device_of(text);
    struct seen *s = dev ? entry(dev) : NULL;
    u32 header = 0;
    int at = PCI_CFG_SPACE_SIZE, rc = s ? pci_read_config_dword(dev, at, &header) : -EINVAL;
    while (!rc && header && PCI_EXT_CAP_NEXT(header)) {
        at = PCI_EXT_CAP_NEXT(header);
        rc = pci_read_config_dword(dev, at, &header);
    }
    if (!rc)
        s->acs_link = at + 2;
    pci_dev_put(dev);
    return rc;
}

static struct pci_driver drivers[MAX];
static const struct pci_device_id nothing[] = {{}};
static char names[MAX][32];
static unsigned int driver_count;

static int take(struct pci_dev *dev, const struct pci_device_id *id)
{
    int rc = pci_enable_device(dev);
    if (!rc)
        pci_enable_pcie_error_reporting(dev);
    return rc;
}

static int set_driver(const char *text, const struct kernel_param *kp)
{
    struct pci_driver *driver = &drivers[driver_count];
    int rc;
    if (driver_count == MAX || sscanf(text, "%31s", names[driver_count]) != 1)
        return -EINVAL;
    *driver = (struct pci_driver){.name = names[driver_count], .id_table = nothing, .probe = take};
    rc = pci_register_driver(driver);
    driver_count += !rc;
    return rc;
}

static int set_rdma(const char *text, const struct kernel_param *kp)
{
    char name[32], addr[32];
    struct pci_dev *dev;
    struct ib_device *ib;
    int rc = -EINVAL;
    if (sscanf(text, "%31s %31s", name, addr) != 2)
        return rc;
    dev = device_of(addr);
    ib = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);
    if (dev && ib)
        rc = sysfs_create_link(&ib->dev.kobj, &dev->dev.kobj, "device");
    if (ib)
        ib_device_put(ib);
    pci_dev_put(dev);
    return rc;
}

static int show(struct seq_file *file, void *unused)
{
    seq_printf(file, "%s\n", (const char *)file->private);
    return 0;
}

static int set_proc(const char *text, const struct kernel_param *kp)
{
    char *path = kstrdup(strim((char *)text), GFP_KERNEL),
         *content = path ? strpbrk(path, " \n") : NULL;
    struct proc_dir_entry *made;
    if (!path)
        return -ENOMEM;
    if (content)
        *content++ = '\0';
    made =
        content ? proc_create_single_data(path, 0444, NULL, show, content) : proc_mkdir(path, NULL);
    return made ? 0 : -EINVAL; /* the text stays, as the file does */
}

#define PARAMETER(name)                                                                            \
    static const struct kernel_param_ops name##_ops = {.set = set_##name};                         \
    module_param_cb(name, &name##_ops, NULL, 0200)
PARAMETER(pci);
PARAMETER(link);
PARAMETER(acs);
PARAMETER(driver);
PARAMETER(rdma);
PARAMETER(proc);

static int __init start(void)
{
    return 0;
}

module_init(start); /* no exit: it stays, as the buses use it */
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("identities of PCI functions for tests");
