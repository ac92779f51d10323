/* Answers about the host that are not files: uname, limits, interfaces, the environment …
 *
 * Live, they are asked of the system. In a capture they come from the file
 * SYSROOT/.shakedown/hostcalls.json, one object member per call, in exactly the shape that these
 * functions return; a member that is missing there is -ENODATA ("not in the capture"). Each
 * function returns a new json_t reference in *value_p (json_decref() it). */
#ifndef SHK_CORE_HOSTCALL_H
#define SHK_CORE_HOSTCALL_H

#include "core/host/host.h"
#include "core/text/error.h"
#include <jansson.h>

enum shk_hostcall {
    SHK_CALL_UNAME,    /* {sysname, nodename, release, version, machine} */
    SHK_CALL_IDS,      /* {uid, euid, gid, groups: [int]} */
    SHK_CALL_RLIMITS,  /* {memlock|nofile|stack|as|core|nproc: {soft, hard}}; bytes or counts, -1 =
                          unlimited */
    SHK_CALL_PAGESIZE, /* int, bytes */
    SHK_CALL_SHMFS,    /* {size, free, type} of /dev/shm; bytes; type as statfs f_type in hex */
    SHK_CALL_IFADDRS, /* [{name, flags: ["up","loopback",…], addrs: [{family: "inet"|"inet6", addr,
                         prefix, scope}], link: {index, type: ARPHRD number, mtu, operstate,
                         carrier, mac, master: name, kind, driver, bus, speed_mbps}}], of the
                         network namespace of this process. link is missing in old captures, its
                         members when the kernel does not tell them */
    SHK_CALL_AFFINITY, /* [int]: CPUs this process may run on */
    SHK_CALL_RESOLVE, /* {hostname, addrs: [text], error: text|null}: what the host name resolves to
                       */
    SHK_CALL_CLOCK,   /* {synchronised: bool, offset_us, maxerror_us} from adjtimex, read-only;
                         time: now, RFC 3339 in UTC */
    SHK_CALL_ENVIRON, /* {NAME: value} of this process */
    SHK_CALL_COUNT
};

int shk_hostcall(const struct shk_host *host, enum shk_hostcall call, json_t **value_p,
                 struct shk_error *err) SHK_MUST_CHECK;

/* File system that holds a path: {type: "lustre"|"nfs"|"tmpfs"|"ext4"|…|"0x…", mount, options,
 * size, free}. Found from the host's /proc/self/mountinfo (longest mount point that is a prefix),
 * sizes only when live. -ENOENT when the path does not exist and no parent does. */
int shk_hostcall_fs(const struct shk_host *host, const char *path, json_t **value_p,
                    struct shk_error *err) SHK_MUST_CHECK;

/* Is every file system of this host its own, so that no look at a file waits for another machine or
 * for a daemon? From /proc/self/mountinfo; false where that cannot be read or a type is not known
 * to be local. */
bool shk_host_mounts_local(const struct shk_host *host);

/* What the environment in a capture was searched for, as core/text/nameset.h records it: a new
 * reference, NULL on a live host and when the capture does not say. */
json_t *shk_host_names_looked_for(const struct shk_host *host);

/* Name of the member in hostcalls.json ("uname", "ids", …). */
const char *shk_hostcall_name(enum shk_hostcall call);

/* One environment variable as the probed job would see it: live, getenv(). In a capture the
 * process's own environment first (a "what if"), then the captured one; variables that only tell
 * where this process runs (PATH, LD_LIBRARY_PATH, SLURM_* …) are always the captured ones. The
 * ENVIRON call answers in the same way. NULL when unset. The text
 * is owned by host or the environment and lives as long as host. */
const char *shk_host_getenv(const struct shk_host *host, const char *name);

/* A JSON document of the host, as a capture holds some; NULL: there is no such file. -errno. */
int shk_host_json(const struct shk_host *host, const char *path, json_t **doc_p,
                  struct shk_error *err) SHK_MUST_CHECK;

#endif
