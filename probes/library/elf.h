/* What an ELF shared object says about itself, read with libelf and never executed.
 *
 * Everything returned points into the open object and lives until shk_elf_close(). The file is
 * mapped, so a 200 MB library costs only the pages that are looked at. Files are hostile: every
 * offset goes through libelf's bounds checks, and every list is bounded. */
#ifndef SHK_PROBES_ELF_H
#define SHK_PROBES_ELF_H

#include "core/host/host.h"

struct shk_elf;

/* -ENOENT, -EACCES … as the file system says; -ENOEXEC when the file is no ELF shared object: the
 * text then says what it is instead (empty, a text file, an executable); -ENODATA when parts that
 * the loader maps lie beyond the end of the file: a process that loads it dies of SIGBUS. */
int shk_elf_open(struct shk_elf **elf_p, const struct shk_host *host, const char *path,
                 struct shk_error *err) SHK_MUST_CHECK;
/* The same of an open file, which is the object's from then on, also on failure; `name` stands for
 * it in messages. */
int shk_elf_open_fd(struct shk_elf **elf_p, int fd, const char *name,
                    struct shk_error *err) SHK_MUST_CHECK;
void shk_elf_close(struct shk_elf *elf);

/* The linker's fingerprint (NT_GNU_BUILD_ID) in hexadecimal: two files with the same one come from
 * the same link. False: it has none. Up to 64 bytes, as long as the longest hash. */
enum { SHK_ELF_BUILD_ID = 129 };
bool shk_elf_build_id(const struct shk_elf *elf, char id[SHK_ELF_BUILD_ID]);

int shk_elf_bits(const struct shk_elf *elf);         /* 32 or 64 */
unsigned shk_elf_machine(const struct shk_elf *elf); /* e_machine, EM_… */

/* "x86_64", "aarch64" …, "unknown" for the rest. */
const char *shk_elf_machine_name(unsigned machine);

/* e_machine of a uname() machine ("x86_64"), EM_NONE when unknown. */
unsigned shk_elf_machine_of(const char *uname_machine);

/* DT_SONAME, DT_RPATH, DT_RUNPATH as written, tokens not expanded; NULL when the object has none.
 */
const char *shk_elf_soname(const struct shk_elf *elf);
const char *shk_elf_rpath(const struct shk_elf *elf);
const char *shk_elf_runpath(const struct shk_elf *elf);
bool shk_elf_nodeflib(const struct shk_elf *elf); /* linked with -z nodeflib */

/* DT_NEEDED in order. */
size_t shk_elf_needed_count(const struct shk_elf *elf);
const char *shk_elf_needed(const struct shk_elf *elf, size_t i);

/* The iterators below call fn until it returns non-zero, and return that value (0 at the end). */

/* Defined symbols that dlsym() can find: global or weak, default or protected visibility. */
struct shk_elf_symbol {
    const char *name;
    unsigned long long size; /* st_size, bytes */
    bool object;             /* STT_OBJECT: data, not code */
};
int shk_elf_each_symbol(const struct shk_elf *elf,
                        int (*fn)(const struct shk_elf_symbol *symbol, void *arg), void *arg);

/* Symbol versions that the object requires of others (SHT_GNU_verneed). A weak one is not fatal. */
int shk_elf_each_version_need(const struct shk_elf *elf,
                              int (*fn)(const char *library, const char *version, bool weak,
                                        void *arg),
                              void *arg);

/* Symbol versions that the object provides (SHT_GNU_verdef), without the base entry. */
int shk_elf_each_version_def(const struct shk_elf *elf, int (*fn)(const char *version, void *arg),
                             void *arg);
bool shk_elf_defines_version(const struct shk_elf *elf, const char *version);
bool shk_elf_has_version_defs(const struct shk_elf *elf);

/* The highest provided version with the name space of `like` (the part up to '_' or the first
 * digit: "FABRIC_1.10" -> FABRIC_), compared as numbers; NULL when it provides none of them. */
const char *shk_elf_highest_version(const struct shk_elf *elf, const char *like);

/* NUL-terminated strings of printable ASCII in the read-only data sections (.rodata*), of
 * min_len bytes and more. A string that the linker merged into the tail of another is not seen. */
int shk_elf_each_string(const struct shk_elf *elf, size_t min_len,
                        int (*fn)(const char *text, size_t len, void *arg), void *arg);

#endif
