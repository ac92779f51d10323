/* From the outcome of a read to a fact: helpers shared by the probes that read files.
 *
 * The distinction they keep: a path that is not there is "absent" only when the place that would
 * hold it is there (sysfs mounted, /proc readable). Anything else that keeps us from the content
 * is "failed", with the reason. */
#ifndef SHK_PROBES_GATHER_H
#define SHK_PROBES_GATHER_H

#include "core/facts/facts.h"
#include "core/host/host.h"
#include "core/host/hostcall.h"
#include "probes/base/probe.h"

struct shk_gather {
    const struct shk_host *host;
    struct shk_facts *facts;
    const struct shk_name_set *names;
    int rc; /* first failure of a fact writer; sticky */
};

struct shk_gather shk_gather_begin(const struct shk_probe_context *ctx);

/* 0, or the first failure of a writer, with text. */
int shk_gather_end(const struct shk_gather *g, struct shk_error *err) SHK_MUST_CHECK;

/* Fact writers. Keys that hold a name found on the host go through shk_gather_key() first. `value`
 * is stolen. */
void shk_gather_present(struct shk_gather *g, const char *key, json_t *value, const char *unit,
                        const char *source);
void shk_gather_text(struct shk_gather *g, const char *key, const char *text, const char *source);
void shk_gather_int(struct shk_gather *g, const char *key, long long value, const char *unit,
                    const char *source);
void shk_gather_absent(struct shk_gather *g, const char *key, const char *source,
                       const char *reasonf, ...) SHK_PRINTF(4, 5);
void shk_gather_failed(struct shk_gather *g, const char *key, const char *source,
                       const char *reasonf, ...) SHK_PRINTF(4, 5);

/* Writes prefix + name into buf; bytes that a fact key may not hold become '_'. False when it does
 * not fit. */
bool shk_gather_key(char *buf, size_t size, const char *prefix, const char *name);

/* True when `path` does not exist and `anchor`, a path that exists wherever the file system in
 * question is mounted, does; false for dangling links and whenever that cannot be told. */
bool shk_gather_missing(const struct shk_host *host, const char *path, const char *anchor);

/* Turns a failed read (rc, err) of path into an absent or a failed fact. */
void shk_gather_unread(struct shk_gather *g, const char *key, const char *path, const char *anchor,
                       int rc, const struct shk_error *err);

/* Names in a directory (shk_host_list_free()), content of a file (free()). NULL when it cannot be
 * read: the fact says so. */
char **shk_gather_names(struct shk_gather *g, const char *key, const char *path,
                        const char *anchor);
char *shk_gather_file(struct shk_gather *g, const char *key, const char *path, const char *anchor);

/* The names in a directory as a list. */
void shk_gather_dir(struct shk_gather *g, const char *key, const char *path, const char *anchor);

/* A list (stolen); an empty one is absent for the reason `none`. */
void shk_gather_some(struct shk_gather *g, const char *key, json_t *list, const char *path,
                     const char *none);

/* One-line attribute as a text. Empty, it is absent. */
void shk_gather_line(struct shk_gather *g, const char *key, const char *path, const char *anchor);

/* Answer of a host call; on failure writes the failed fact `key` and returns NULL. */
json_t *shk_gather_hostcall(struct shk_gather *g, enum shk_hostcall call, const char *key);

/* Members of an object that describes one device. A file that is not there gives JSON null; one
 * that is empty or cannot be read gives null and a line in the member "problems" ({name: reason}).
 */
void shk_gather_member_text(const struct shk_host *host, json_t *object, const char *name,
                            const char *pathf, ...) SHK_PRINTF(4, 5);
void shk_gather_member_i64(const struct shk_host *host, json_t *object, const char *name,
                           const char *pathf, ...) SHK_PRINTF(4, 5);
/* Last component of a link's target: drivers, groups, parents. */
void shk_gather_member_link(const struct shk_host *host, json_t *object, const char *name,
                            const char *pathf, ...) SHK_PRINTF(4, 5);
/* PCI address of the function that a sysfs class device sits on (its link runs through it), null
 * when there is none. */
void shk_gather_member_pci(const struct shk_host *host, json_t *object, const char *name,
                           const char *pathf, ...) SHK_PRINTF(4, 5);
/* After a failed read (rc, err) of path: null, and a problem unless there is no such file. */
void shk_gather_member_unread(const struct shk_host *host, json_t *object, const char *name,
                              const char *path, int rc, const struct shk_error *err);
void shk_gather_member_problem(json_t *object, const char *name, const char *reason);

/* Appends what was said of a pair {gpu, peer, …}, and what of {peer, gpu, …}, which are stolen: the
 * second only where it says something else. */
void shk_gather_both_ways(json_t *list, json_t *there, json_t *back);

/* "0000:c1:00.0": is text of len bytes the address of a PCI function? */
bool shk_gather_is_pci(const char *text, size_t len);

/* JSON string of any bytes up to the NUL; JSON null for NULL. */
json_t *shk_gather_str(const char *text);

/* Text member of an object, NULL when it is missing or not text. */
const char *shk_gather_get(const json_t *object, const char *name);

#endif
