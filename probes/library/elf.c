#include "probes/library/elf.h"

#include "core/text/strbuf.h"

#include <ctype.h>
#include <errno.h>
#include <gelf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Far above what real objects have; ends loops over damaged tables. */
enum { ELF_MAX_NEEDED = 256, ELF_MAX_VERSIONS = 4096 };

struct shk_elf {
    int fd;
    Elf *elf;
    GElf_Ehdr header;
    const char *soname, *rpath, *runpath;
    bool nodeflib;
    const char *needed[ELF_MAX_NEEDED];
    size_t needed_count;
};

struct machine {
    unsigned code;
    const char *name;
};

static const struct machine machines[] = {
    {.code = EM_X86_64, .name = "x86_64"}, {.code = EM_AARCH64, .name = "aarch64"},
    {.code = EM_PPC64, .name = "ppc64le"}, {.code = EM_386, .name = "i386"},
    {.code = EM_386, .name = "i686"},      {.code = EM_ARM, .name = "arm"},
    {.code = EM_RISCV, .name = "riscv64"}, {.code = EM_S390, .name = "s390x"},
    {.code = EM_CUDA, .name = "cuda"},     {.code = EM_AMDGPU, .name = "amdgpu"},
};
enum { MACHINES = sizeof machines / sizeof machines[0] };

const char *shk_elf_machine_name(unsigned machine)
{
    for (int i = 0; i < MACHINES; i++) {
        if (machines[i].code == machine)
            return machines[i].name;
    }
    return "unknown";
}

unsigned shk_elf_machine_of(const char *uname_machine)
{
    for (int i = 0; uname_machine && i < MACHINES; i++) {
        if (strcmp(machines[i].name, uname_machine) == 0)
            return machines[i].code;
    }
    return EM_NONE;
}

/* Next section of the type after `from` (NULL: from the start) with its header. */
static Elf_Scn *elf_section(const struct shk_elf *e, Elf_Scn *from, GElf_Word type,
                            GElf_Shdr *header)
{
    while ((from = elf_nextscn(e->elf, from))) {
        if (gelf_getshdr(from, header) && header->sh_type == type)
            return from;
    }
    return NULL;
}

/* A string of table `link`, NULL when it is damaged. */
static const char *elf_text(const struct shk_elf *e, size_t link, size_t offset)
{
    return elf_strptr(e->elf, link, offset);
}

static void elf_take_dynamic(struct shk_elf *e, const GElf_Dyn *dyn, size_t strings)
{
    switch (dyn->d_tag) {
    case DT_NEEDED: {
        const char *name = elf_text(e, strings, dyn->d_un.d_val);
        if (name && *name && e->needed_count < ELF_MAX_NEEDED)
            e->needed[e->needed_count++] = name;
        break;
    }
    case DT_SONAME: e->soname = elf_text(e, strings, dyn->d_un.d_val); break;
    case DT_RPATH: e->rpath = elf_text(e, strings, dyn->d_un.d_val); break;
    case DT_RUNPATH: e->runpath = elf_text(e, strings, dyn->d_un.d_val); break;
    case DT_FLAGS_1: e->nodeflib = dyn->d_un.d_val & DF_1_NODEFLIB; break;
    default: break;
    }
}

static int elf_read_dynamic(struct shk_elf *e, const char *path, struct shk_error *err)
{
    GElf_Shdr header;
    Elf_Scn *section = elf_section(e, NULL, SHT_DYNAMIC, &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    size_t entry = gelf_fsize(e->elf, ELF_T_DYN, 1, EV_CURRENT);
    if (!data || !entry)
        return shk_error_set(err, ENOEXEC, "%s: ELF file without a readable dynamic section", path);
    for (size_t i = 0; i < data->d_size / entry; i++) {
        GElf_Dyn dyn;
        if (!gelf_getdyn(data, (int)i, &dyn) || dyn.d_tag == DT_NULL)
            break;
        elf_take_dynamic(e, &dyn, header.sh_link);
    }
    return 0;
}

/* Says what a file that is no ELF file holds. */
static int elf_refuse(int fd, const char *path, struct shk_error *err)
{
    unsigned char head[64];
    ssize_t n = pread(fd, head, sizeof head, 0);
    if (n < 0)
        return shk_error_sys(err, errno, "%s", path);
    if (n == 0)
        return shk_error_set(err, ENOEXEC, "%s: empty file", path);
    if (n >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0)
        return shk_error_set(err, ENOEXEC, "%s: damaged or truncated ELF file", path);
    if (n >= 8 && memcmp(head, "!<arch>\n", 8) == 0)
        return shk_error_set(err, ENOEXEC, "%s: static archive, not a shared object", path);
    ssize_t text = 0;
    while (text < n && (isprint(head[text]) || isspace(head[text])))
        text++;
    int shown = 0;
    while (shown < text && shown < 40 && isprint(head[shown]))
        shown++;
    if (text == n)
        return shk_error_set(err, ENOEXEC, "%s: text file (\"%.*s\"), not a shared object", path,
                             shown, (const char *)head);
    return shk_error_set(err, ENOEXEC, "%s: not an ELF file", path);
}

/* Do the segments that the loader maps end within the file? */
static int elf_whole(const struct shk_elf *e, const char *path, struct shk_error *err)
{
    struct stat st;
    size_t count = 0;
    unsigned long long end = 0;
    if (fstat(e->fd, &st) != 0 || elf_getphdrnum(e->elf, &count) != 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(e->elf, (int)i, &header) && header.p_type == PT_LOAD &&
            header.p_offset + header.p_filesz > end)
            end = header.p_offset + header.p_filesz;
    }
    if (end <= (unsigned long long)st.st_size)
        return 0;
    return shk_error_set(err, ENODATA,
                         "%s: ELF file that is cut off: %lld bytes are there, its segments need "
                         "%llu; a process that loads it dies of SIGBUS",
                         path, (long long)st.st_size, end);
}

static int elf_begin_fd(struct shk_elf *e, const char *path, struct shk_error *err)
{
    if (elf_version(EV_CURRENT) == EV_NONE)
        return shk_error_set(err, ENOSYS, "libelf: version mismatch");
    e->elf = elf_begin(e->fd, ELF_C_READ_MMAP, NULL);
    if (!e->elf || elf_kind(e->elf) != ELF_K_ELF || !gelf_getehdr(e->elf, &e->header))
        return elf_refuse(e->fd, path, err);
    if (e->header.e_type != ET_DYN)
        return shk_error_set(err, ENOEXEC, "%s: ELF file, but not a shared object (type %u)", path,
                             (unsigned)e->header.e_type);
    int rc = elf_whole(e, path, err);
    return rc ? rc : elf_read_dynamic(e, path, err);
}

int shk_elf_open(struct shk_elf **elf_p, const struct shk_host *host, const char *path,
                 struct shk_error *err)
{
    struct shk_elf *e = calloc(1, sizeof *e);
    if (!e)
        return shk_error_sys(err, ENOMEM, "%s", path);
    e->fd = -1;
    int rc = shk_host_open_file(host, path, &e->fd, err);
    if (!rc)
        rc = elf_begin_fd(e, path, err);
    if (rc) {
        shk_elf_close(e);
        return rc;
    }
    *elf_p = e;
    return 0;
}

int shk_elf_open_fd(struct shk_elf **elf_p, int fd, const char *name, struct shk_error *err)
{
    struct shk_elf *e = calloc(1, sizeof *e);
    if (!e) {
        close(fd);
        return shk_error_sys(err, ENOMEM, "%s", name);
    }
    e->fd = fd;
    int rc = elf_begin_fd(e, name, err);
    if (rc)
        shk_elf_close(e);
    else
        *elf_p = e;
    return rc;
}

bool shk_elf_build_id(const struct shk_elf *elf, char id[SHK_ELF_BUILD_ID])
{
    static const char hex[] = "0123456789abcdef";
    GElf_Shdr header;
    for (Elf_Scn *s = NULL; (s = elf_section(elf, s, SHT_NOTE, &header));) {
        Elf_Data *data = elf_getdata(s, NULL);
        GElf_Nhdr note;
        size_t name, at, next = 0;
        while (data && (next = gelf_getnote(data, next, &note, &name, &at)) > 0) {
            const unsigned char *bytes = (const unsigned char *)data->d_buf + at;
            if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || !note.n_descsz ||
                note.n_descsz > (SHK_ELF_BUILD_ID - 1) / 2 ||
                memcmp((const char *)data->d_buf + name, "GNU", 4) != 0)
                continue;
            for (size_t i = 0; i < note.n_descsz; i++) {
                id[2 * i] = hex[bytes[i] >> 4];
                id[2 * i + 1] = hex[bytes[i] & 15];
            }
            id[2 * (size_t)note.n_descsz] = '\0';
            return true;
        }
    }
    return false;
}

void shk_elf_close(struct shk_elf *elf)
{
    if (!elf)
        return;
    if (elf->elf)
        elf_end(elf->elf);
    if (elf->fd >= 0)
        close(elf->fd);
    free(elf);
}

int shk_elf_bits(const struct shk_elf *elf)
{
    return elf->header.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
}

unsigned shk_elf_machine(const struct shk_elf *elf)
{
    return elf->header.e_machine;
}

const char *shk_elf_soname(const struct shk_elf *elf)
{
    return elf->soname;
}

const char *shk_elf_rpath(const struct shk_elf *elf)
{
    return elf->rpath;
}

const char *shk_elf_runpath(const struct shk_elf *elf)
{
    return elf->runpath;
}

bool shk_elf_nodeflib(const struct shk_elf *elf)
{
    return elf->nodeflib;
}

size_t shk_elf_needed_count(const struct shk_elf *elf)
{
    return elf->needed_count;
}

const char *shk_elf_needed(const struct shk_elf *elf, size_t i)
{
    return i < elf->needed_count ? elf->needed[i] : NULL;
}

static bool elf_exported(const GElf_Sym *sym)
{
    unsigned bind = GELF_ST_BIND(sym->st_info), see = GELF_ST_VISIBILITY(sym->st_other);
    return sym->st_shndx != SHN_UNDEF && (bind == STB_GLOBAL || bind == STB_WEAK) &&
           (see == STV_DEFAULT || see == STV_PROTECTED);
}

int shk_elf_each_symbol(const struct shk_elf *elf,
                        int (*fn)(const struct shk_elf_symbol *symbol, void *arg), void *arg)
{
    GElf_Shdr header;
    Elf_Scn *section = elf_section(elf, NULL, SHT_DYNSYM, &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    size_t entry = gelf_fsize(elf->elf, ELF_T_SYM, 1, EV_CURRENT);
    size_t count = data && entry ? data->d_size / entry : 0;
    for (size_t i = 0; i < count; i++) {
        GElf_Sym sym;
        if (!gelf_getsym(data, (int)i, &sym) || !elf_exported(&sym))
            continue;
        const char *name = elf_text(elf, header.sh_link, sym.st_name);
        if (!name || !*name)
            continue;
        struct shk_elf_symbol symbol = {
            .name = name,
            .size = sym.st_size,
            .object = GELF_ST_TYPE(sym.st_info) == STT_OBJECT,
        };
        int rc = fn(&symbol, arg);
        if (rc)
            return rc;
    }
    return 0;
}

int shk_elf_each_version_need(const struct shk_elf *elf,
                              int (*fn)(const char *library, const char *version, bool weak,
                                        void *arg),
                              void *arg)
{
    GElf_Shdr header;
    Elf_Scn *section = elf_section(elf, NULL, SHT_GNU_verneed, &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    size_t at = 0, budget = ELF_MAX_VERSIONS;
    GElf_Verneed need;
    while (data && budget-- && gelf_getverneed(data, (int)at, &need)) {
        const char *library = elf_text(elf, header.sh_link, need.vn_file);
        GElf_Vernaux aux;
        size_t aux_at = at + need.vn_aux;
        for (unsigned k = 0; k < need.vn_cnt && budget; k++, budget--) {
            if (!gelf_getvernaux(data, (int)aux_at, &aux))
                break;
            const char *version = elf_text(elf, header.sh_link, aux.vna_name);
            int rc =
                library && version ? fn(library, version, aux.vna_flags & VER_FLG_WEAK, arg) : 0;
            if (rc)
                return rc;
            if (!aux.vna_next)
                break;
            aux_at += aux.vna_next;
        }
        if (!need.vn_next)
            break;
        at += need.vn_next;
    }
    return 0;
}

int shk_elf_each_version_def(const struct shk_elf *elf, int (*fn)(const char *version, void *arg),
                             void *arg)
{
    GElf_Shdr header;
    Elf_Scn *section = elf_section(elf, NULL, SHT_GNU_verdef, &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    size_t at = 0, budget = ELF_MAX_VERSIONS;
    GElf_Verdef def;
    while (data && budget-- && gelf_getverdef(data, (int)at, &def)) {
        GElf_Verdaux aux;
        bool named =
            !(def.vd_flags & VER_FLG_BASE) && gelf_getverdaux(data, (int)(at + def.vd_aux), &aux);
        const char *version = named ? elf_text(elf, header.sh_link, aux.vda_name) : NULL;
        int rc = version ? fn(version, arg) : 0;
        if (rc)
            return rc;
        if (!def.vd_next)
            break;
        at += def.vd_next;
    }
    return 0;
}

static int elf_same(const char *version, void *arg)
{
    return strcmp(version, arg) == 0;
}

bool shk_elf_defines_version(const struct shk_elf *elf, const char *version)
{
    return shk_elf_each_version_def(elf, elf_same, (void *)(uintptr_t)version) != 0;
}

static int elf_any(const char *version, void *arg)
{
    (void)version;
    (void)arg;
    return 1;
}

bool shk_elf_has_version_defs(const struct shk_elf *elf)
{
    return shk_elf_each_version_def(elf, elf_any, NULL) != 0;
}

struct highest {
    const char *like;
    size_t space; /* bytes of the name space */
    const char *best;
};

static int elf_highest(const char *version, void *arg)
{
    struct highest *h = arg;
    if (strncmp(version, h->like, h->space) == 0 && isdigit((unsigned char)version[h->space]) &&
        (!h->best || shk_version_cmp(version + h->space, h->best + h->space) > 0))
        h->best = version;
    return 0;
}

const char *shk_elf_highest_version(const struct shk_elf *elf, const char *like)
{
    struct highest h = {.like = like, .space = strcspn(like, "0123456789")};
    shk_elf_each_version_def(elf, elf_highest, &h);
    return h.best;
}

/* Eight bytes at a time: a library has megabytes of them. */
static bool elf_printable(const char *text, size_t len)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    size_t i = 0;
    for (uint64_t word; i + sizeof word <= len; i += sizeof word) {
        memcpy(&word, text + i, sizeof word);
        uint64_t below = (word - ones * ' ') & ~word, above = (word + ones) | word;
        if ((below | above) & high)
            return false;
    }
    while (i < len && text[i] >= ' ' && text[i] <= '~')
        i++;
    return i == len;
}

static int elf_scan(const char *data, size_t size, size_t min_len,
                    int (*fn)(const char *text, size_t len, void *arg), void *arg)
{
    const char *p = data, *end = data + size;
    while (p < end) {
        const char *nul = memchr(p, '\0', (size_t)(end - p));
        if (!nul)
            break;
        size_t len = (size_t)(nul - p);
        /* binary tables mixed in between strings: only wholly printable runs count */
        int rc = len >= min_len && len && elf_printable(p, len) ? fn(p, len, arg) : 0;
        if (rc)
            return rc;
        p = nul + 1;
    }
    return 0;
}

int shk_elf_each_string(const struct shk_elf *elf, size_t min_len,
                        int (*fn)(const char *text, size_t len, void *arg), void *arg)
{
    GElf_Shdr header;
    size_t names;
    if (elf_getshdrstrndx(elf->elf, &names) != 0)
        return 0;
    for (Elf_Scn *s = NULL; (s = elf_section(elf, s, SHT_PROGBITS, &header));) {
        const char *name = elf_text(elf, names, header.sh_name);
        if (!name || strncmp(name, ".rodata", 7) != 0)
            continue;
        Elf_Data *data = elf_rawdata(s, NULL);
        int rc = data && data->d_buf ? elf_scan(data->d_buf, data->d_size, min_len, fn, arg) : 0;
        if (rc)
            return rc;
    }
    return 0;
}
