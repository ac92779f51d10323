/* The system: uname, os-release, lscpu, hostnamectl, the kernel's command line, files of /proc and
 * /sys that are shown with cat, states of services, lines of dmesg that are settings. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "Linux gpu07 5.15.0-91-generic #101-Ubuntu SMP … x86_64 … GNU/Linux" */
static bool uname_starts(char *const *lines, size_t left)
{
    const char *p = ticket_after(lines[0], "Linux ");
    (void)left;
    if (!p)
        return false;
    p += strcspn(p, " ");
    return isdigit((unsigned char)p[*p == ' ']) && strstr(p, " #") && strstr(p, " GNU/Linux");
}

static void uname_read(struct ticket_out *out, const struct ticket_block *block)
{
    static const char *const archs[] = {"x86_64", "aarch64", "ppc64le"};
    char word[128];
    const char *p = block->lines[0] + 6;
    p += ticket_word(word, sizeof word, p, "") + 1;
    struct shk_fact fact;
    if (!shk_facts_get(out->facts, "host.name", &fact))
        ticket_put_text(out, "host.name", word);
    ticket_word(word, sizeof word, p, "");
    ticket_put_text(out, "host.kernel", word);
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (strstr(p, archs[i])) {
            ticket_put_text(out, "host.arch", archs[i]);
            break;
        }
}

const struct ticket_reader ticket_reader_uname = {
    .name = "uname", .starts = uname_starts, .read = uname_read, .single = true};

static bool release_starts(char *const *lines, size_t left)
{
    (void)left;
    return ticket_after(lines[0], "PRETTY_NAME=") != NULL;
}

static void release_put(struct ticket_out *out, const char *key, const char *value)
{
    char text[128];
    size_t len = strcspn(value += *value == '"', "\"");
    snprintf(text, sizeof text, "%.*s", (int)(len < 127 ? len : 127), value);
    ticket_put_text(out, key, text);
}

/* The other lines of the file stand around this one. */
static void release_read(struct ticket_out *out, const struct ticket_block *block)
{
    enum { AROUND = 12 };
    size_t before = block->before < AROUND ? block->before : AROUND;
    char *const *lines = block->lines - before;
    size_t count = before + (block->count < AROUND ? block->count : AROUND);
    release_put(out, "host.os", block->lines[0] + 12);
    for (size_t i = 0; i < count; i++) {
        const char *id = ticket_after(lines[i], "ID=");
        const char *version = ticket_after(lines[i], "VERSION_ID=");
        if (id)
            release_put(out, "host.os_id", id);
        if (version)
            release_put(out, "host.os_version", version);
    }
}

const struct ticket_reader ticket_reader_release = {
    .name = "os-release", .starts = release_starts, .read = release_read, .single = true};

/* As the probe of the IOMMU does it: the last one of a name wins. */
static void cmdline_put(struct ticket_out *out, const char *text)
{
    static const char *const names[] = {
        "iommu", "amd_iommu", "intel_iommu", "iommu.passthrough", "iommu.strict", "iommu.forcedac"};
    json_t *asked = json_object();
    ticket_put_text(out, "kernel.cmdline", text);
    while (*(text = ticket_skip(text))) {
        char word[256];
        size_t len = ticket_word(word, sizeof word, text, "");
        char *eq = strchr(word, '=');
        if (eq)
            *eq = '\0';
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(word, names[i]) == 0)
                json_object_set_new(asked, word,
                                    ticket_text(eq ? eq + 1 : "", eq ? strlen(eq + 1) : 0));
        text += len;
    }
    ticket_put(out, "kernel.iommu.cmdline", asked, NULL);
}

static const char *cmdline_of(const char *line)
{
    const char *p = strstr(line, "ommand line: BOOT_IMAGE=");
    return ticket_after(line, "BOOT_IMAGE=") ? line : p ? p + 13 : NULL;
}

static bool cmdline_starts(char *const *lines, size_t left)
{
    (void)left;
    return cmdline_of(lines[0]) != NULL;
}

static void cmdline_read(struct ticket_out *out, const struct ticket_block *block)
{
    const char *text = cmdline_of(block->lines[0]);
    if (text && !strstr(text, "..."))
        cmdline_put(out, text);
}

const struct ticket_reader ticket_reader_cmdline = {
    .name = "/proc/cmdline", .starts = cmdline_starts, .read = cmdline_read, .single = true};

/* "always [madvise] never" */
static void choice_put(struct ticket_out *out, const char *key, const char *line)
{
    char word[64];
    const char *open = strchr(line, '[');
    if (open && ticket_word(word, sizeof word, open + 1, "]"))
        ticket_put_text(out, key, word);
}

/* `cat FILE` of a file with one line. */
static void cat_read(struct ticket_out *out, const struct ticket_block *block)
{
    char key[128] = "sysctl.", path[128];
    const char *p = strstr(block->command, "cat ");
    long long number;
    if (!p || !block->count || !ticket_word(path, sizeof path, ticket_skip(p + 4), "|;"))
        return;
    const char *line = block->lines[0], *sys = ticket_after(path, "/proc/sys/");
    if (ticket_after(line, "cat:") || !*line)
        return;
    if (strcmp(path, "/proc/cmdline") == 0 && !cmdline_of(line)) {
        cmdline_put(out, line);
    } else if (strcmp(path, "/sys/kernel/mm/transparent_hugepage/enabled") == 0) {
        choice_put(out, "kernel.thp", line);
    } else if (strcmp(path, "/opt/rocm/.info/version") == 0 && isdigit((unsigned char)*line)) {
        ticket_put_text(out, "rocm.version", line);
    } else if (sys && ticket_long(line, &number)) {
        snprintf(key + 7, sizeof key - 7, "%s", sys);
        for (char *c = key; *c; c++)
            *c = *c == '/' ? '.' : *c;
        ticket_put_int(out, key, number, NULL);
    }
}

const struct ticket_reader ticket_reader_cat = {
    .name = "cat", .commands = "cat /proc/sys|cat /proc/cmdline|cat", .read = cat_read};

/* "Key:   value" of lscpu and hostnamectl. */
static const struct {
    const char *name, *key;
} machine[] = {{"Operating System", "host.os"},
               {"Architecture", "host.arch"},
               {"Model name", "host.cpu"},
               {"Hardware Vendor", "host.vendor"},
               {"Hardware Model", "host.product"}};

static const struct {
    const char *text, *virt;
} hypervisors[] = {{"KVM", "kvm"},          {"kvm", "kvm"},       {"Xen", "xen"},
                   {"xen", "xen"},          {"amazon", "kvm"},    {"Microsoft", "hyperv"},
                   {"microsoft", "hyperv"}, {"VMware", "vmware"}, {"vmware", "vmware"},
                   {"qemu", "kvm"},         {"google", "kvm"}};

static bool machine_starts(char *const *lines, size_t left)
{
    const char *arch = ticket_value(lines[0], "Architecture");
    return (arch && left > 1 && strstr(lines[1], "CPU op-mode")) ||
           ticket_value(lines[0], "Static hostname") ||
           (arch && left > 1 && strstr(lines[1], "Byte Order"));
}

static void machine_read(struct ticket_out *out, const struct ticket_block *block)
{
    for (size_t i = 0; i < block->count; i++) {
        const char *line = block->lines[i], *value;
        for (size_t m = 0; m < sizeof machine / sizeof *machine; m++) {
            value = ticket_value(line, machine[m].name);
            if (value && *value)
                ticket_put_text(out, machine[m].key,
                                strcmp(value, "x86-64") == 0  ? "x86_64"
                                : strcmp(value, "arm64") == 0 ? "aarch64"
                                                              : value);
        }
        value = ticket_value(line, "Hypervisor vendor");
        value = value ? value : ticket_value(line, "Virtualization");
        for (size_t h = 0; value && h < sizeof hypervisors / sizeof *hypervisors; h++)
            if (ticket_after(value, hypervisors[h].text)) {
                ticket_put_text(out, "host.virt", hypervisors[h].virt);
                break;
            }
        value = ticket_value(line, "Kernel");
        if (value && ticket_after(value, "Linux "))
            ticket_put_text(out, "host.kernel", value + 6);
    }
}

const struct ticket_reader ticket_reader_machine = {.name = "lscpu or hostnamectl",
                                                    .commands = "lscpu|hostnamectl",
                                                    .starts = machine_starts,
                                                    .read = machine_read};

/* Services whose state is a fact. */
static const struct {
    const char *unit, *key;
} services[] = {{"nvidia-fabricmanager", "nvidia.fabricmanager.running"},
                {"nvidia-imex", "nvidia.imex.running"},
                {"nvidia-persistenced", "nvidia.persistenced.running"}};

static void service_put(struct ticket_out *out, const char *unit, const char *state)
{
    bool up = ticket_after(state, "active") != NULL;
    if (!up && !ticket_after(state, "inactive") && !ticket_after(state, "failed"))
        return; /* activating, unknown */
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        if (ticket_after(unit, services[i].unit))
            ticket_put(out, services[i].key, json_boolean(up), NULL);
}

static const char *service_unit(const char *line)
{
    static const char *const dots[] = {"● ", "○ ", "× ", "* ", "x "};
    line = ticket_skip(line);
    for (size_t i = 0; i < sizeof dots / sizeof *dots; i++) {
        const char *unit = ticket_after(line, dots[i]);
        if (unit && strstr(unit, ".service"))
            return unit;
    }
    return NULL;
}

static bool service_starts(char *const *lines, size_t left)
{
    (void)left;
    return service_unit(lines[0]) != NULL;
}

static void service_read(struct ticket_out *out, const struct ticket_block *block)
{
    const char *unit = NULL, *p, *asked;
    for (size_t i = 0; i < block->count; i++) {
        const char *next = service_unit(block->lines[i]);
        unit = next ? next : unit;
        p = ticket_value(block->lines[i], "Active");
        if (unit && p)
            service_put(out, unit, p);
    }
    asked = block->command ? strstr(block->command, "is-active ") : NULL;
    if (asked && block->count)
        service_put(out, ticket_skip(asked + 10), block->lines[0]);
}

const struct ticket_reader ticket_reader_service = {.name = "systemctl",
                                                    .commands =
                                                        "systemctl status|systemctl is-active",
                                                    .starts = service_starts,
                                                    .read = service_read};

/* Lines of dmesg that tell a setting of this boot, and not a fault. */
static const char *boot_iommu(const char *line)
{
    const char *p = strstr(line, "iommu: Default domain type: ");
    return p ? p + 28 : NULL;
}

static bool boot_starts(char *const *lines, size_t left)
{
    (void)left;
    return boot_iommu(lines[0]) != NULL || strstr(lines[0], "NVRM version: NVIDIA UNIX") != NULL;
}

static void boot_read(struct ticket_out *out, const struct ticket_block *block)
{
    const char *iommu = boot_iommu(block->lines[0]);
    const char *nvrm = strstr(block->lines[0], "NVRM version: NVIDIA UNIX");
    char word[64];
    if (iommu) {
        ticket_put_text(out, "kernel.iommu.mode",
                        ticket_after(iommu, "Passthrough") ? "identity" : "DMA");
        ticket_put(out, "kernel.iommu.enabled", json_true(), NULL);
    }
    if (!nvrm)
        return;
    json_t *driver = ticket_object(out, "gpu.nvidia.driver");
    ticket_member(out, driver, "open", json_boolean(strstr(nvrm, "Open Kernel Module") != NULL));
    const char *p = strstr(nvrm, "  ");
    if (p && ticket_word(word, sizeof word, ticket_skip(p), ""))
        ticket_member(out, driver, "version", json_string(word));
}

const struct ticket_reader ticket_reader_boot = {
    .name = "dmesg", .starts = boot_starts, .read = boot_read, .single = true};

/* What PyTorch's collect_env says of the machine. */
static const struct {
    const char *name, *key;
} collected[] = {{"Nvidia driver version: ", "nvml.driver"}, {"OS: ", "host.os"}};

static bool collect_starts(char *const *lines, size_t left)
{
    (void)left;
    return ticket_after(lines[0], collected[0].name) ||
           (ticket_after(lines[0], collected[1].name) && left > 1 &&
            ticket_after(lines[1], "GCC version: "));
}

static void collect_read(struct ticket_out *out, const struct ticket_block *block)
{
    for (size_t i = 0; i < sizeof collected / sizeof *collected; i++) {
        const char *value = ticket_after(block->lines[0], collected[i].name);
        if (value && *value && (i || isdigit((unsigned char)*value)))
            ticket_put_text(out, collected[i].key, value);
    }
}

const struct ticket_reader ticket_reader_collect = {
    .name = "collect_env", .starts = collect_starts, .read = collect_read, .single = true};
