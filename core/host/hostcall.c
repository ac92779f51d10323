#include "core/host/hostcall.h"

#include "core/facts/facts.h"
#include "core/host/host_private.h"
#include "core/host/hostcall_private.h"
#include "core/text/stamp.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int call_uname(json_t **value_p)
{
    struct utsname u;
    if (uname(&u) != 0)
        return -errno;
    *value_p = json_pack("{s:s,s:s,s:s,s:s,s:s}", "sysname", u.sysname, "nodename", u.nodename,
                         "release", u.release, "version", u.version, "machine", u.machine);
    return 0;
}

/* Does capable(CAP_IPC_LOCK) hold in the kernel? It asks about the initial user namespace, whose
 * inode is fixed (PROC_USER_INIT_INO). null: cannot be told. */
static json_t *call_ipc_lock(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct stat ns;
    if (syscall(SYS_capget, &head, caps) != 0)
        return json_null();
    if (!(caps[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)))
        return json_false();
    return stat("/proc/self/ns/user", &ns) != 0 ? json_null()
                                                : json_boolean(ns.st_ino == 0xeffffffdU);
}

static int call_ids(json_t **value_p)
{
    gid_t groups[256];
    int n = getgroups(256, groups);
    if (n < 0)
        return -errno;
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer(groups[i]));
    *value_p = json_pack("{s:I,s:I,s:I,s:o,s:o}", "uid", (json_int_t)getuid(), "euid",
                         (json_int_t)geteuid(), "gid", (json_int_t)getegid(), "groups", list,
                         "ipc_lock", call_ipc_lock());
    return 0;
}

static json_int_t call_limit(rlim_t value)
{
    return value == RLIM_INFINITY ? -1 : (json_int_t)value;
}

static int call_rlimits(json_t **value_p)
{
    static const struct {
        const char *name;
        int resource;
    } rows[] = {
        {"memlock", RLIMIT_MEMLOCK}, {"nofile", RLIMIT_NOFILE}, {"stack", RLIMIT_STACK},
        {"as", RLIMIT_AS},           {"core", RLIMIT_CORE},     {"nproc", RLIMIT_NPROC},
    };
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rlimit r;
        if (getrlimit((__rlimit_resource_t)rows[i].resource, &r) != 0) {
            json_decref(all);
            return -errno;
        }
        json_object_set_new(
            all, rows[i].name,
            json_pack("{s:I,s:I}", "soft", call_limit(r.rlim_cur), "hard", call_limit(r.rlim_max)));
    }
    *value_p = all;
    return 0;
}

static int call_pagesize(json_t **value_p)
{
    *value_p = json_integer(sysconf(_SC_PAGESIZE));
    return 0;
}

static int call_shmfs(json_t **value_p)
{
    struct statfs f;
    if (statfs("/dev/shm", &f) != 0)
        return -errno;
    char type[32];
    snprintf(type, sizeof type, "0x%lx", (unsigned long)f.f_type);
    *value_p = json_pack("{s:I,s:I,s:s}", "size", (json_int_t)f.f_blocks * (json_int_t)f.f_bsize,
                         "free", (json_int_t)f.f_bavail * (json_int_t)f.f_bsize, "type", type);
    return 0;
}

static int call_affinity(json_t **value_p)
{
    /* The kernel refuses a mask smaller than its own: grow until it fits. */
    for (int cpus = 1024; cpus <= 1 << 17; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set)
            return -ENOMEM;
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        if (sched_getaffinity(0, size, set) == 0) {
            json_t *list = json_array();
            for (int i = 0; i < cpus; i++)
                if (CPU_ISSET_S((size_t)i, size, set))
                    json_array_append_new(list, json_integer(i));
            CPU_FREE(set);
            *value_p = list;
            return 0;
        }
        CPU_FREE(set);
        if (errno != EINVAL)
            return -errno;
    }
    return -EINVAL;
}

static int call_clock(json_t **value_p)
{
    struct timex tx = {.modes = 0};
    int state = adjtimex(&tx);
    if (state < 0)
        return -errno;
    bool sync = state != TIME_ERROR && !(tx.status & STA_UNSYNC);
    long long offset = tx.status & STA_NANO ? tx.offset / 1000 : tx.offset;
    time_t now = time(NULL);
    char text[SHK_STAMP];
    shk_stamp(text, (long long)now);
    *value_p = json_pack("{s:b,s:I,s:I,s:s}", "synchronised", sync, "offset_us", (json_int_t)offset,
                         "maxerror_us", (json_int_t)tx.maxerror, "time", text);
    return 0;
}

static int call_environ(json_t **value_p)
{
    json_t *all = json_object();
    for (char **e = environ; e && *e; e++) {
        const char *eq = strchr(*e, '=');
        if (!eq || eq == *e)
            continue;
        json_t *name = shk_json_text(*e, (size_t)(eq - *e));
        json_object_set_new(all, json_string_value(name), shk_json_text(eq + 1, strlen(eq + 1)));
        json_decref(name);
    }
    *value_p = all;
    return 0;
}

static const struct {
    const char *name;
    int (*live)(json_t **value_p);
} hostcalls[SHK_CALL_COUNT] = {
    [SHK_CALL_UNAME] = {"uname", call_uname},
    [SHK_CALL_IDS] = {"ids", call_ids},
    [SHK_CALL_RLIMITS] = {"rlimits", call_rlimits},
    [SHK_CALL_PAGESIZE] = {"pagesize", call_pagesize},
    [SHK_CALL_SHMFS] = {"shmfs", call_shmfs},
    [SHK_CALL_IFADDRS] = {"ifaddrs", shk_hostcall_ifaddrs},
    [SHK_CALL_AFFINITY] = {"affinity", call_affinity},
    [SHK_CALL_RESOLVE] = {"resolve", shk_hostcall_resolve},
    [SHK_CALL_CLOCK] = {"clock", call_clock},
    [SHK_CALL_ENVIRON] = {"environ", call_environ},
};

const char *shk_hostcall_name(enum shk_hostcall call)
{
    return hostcalls[call].name;
}

/* On a capture the captured ones stand. */
static bool hostcall_is_own(const char *name)
{
    return shk_variable_has("own-environment", name);
}

/* What a capture knows, with this process's environment on top: "what if it were set so?" */
static json_t *hostcall_capture_environ(const struct shk_host *host)
{
    json_t *mine = NULL, *value;
    const char *name;
    if (call_environ(&mine) != 0)
        return NULL;
    json_t *all = json_deep_copy(json_object_get(host->calls, "environ"));
    if (!json_is_object(all)) {
        json_decref(all);
        all = json_object();
    }
    json_object_foreach(mine, name, value)
    {
        if (!hostcall_is_own(name))
            json_object_set(all, name, value);
    }
    json_decref(mine);
    return all;
}

int shk_hostcall(const struct shk_host *host, enum shk_hostcall call, json_t **value_p,
                 struct shk_error *err)
{
    json_t *value = NULL;
    if (host->live) {
        int rc = hostcalls[call].live(&value);
        if (rc)
            return shk_error_sys(err, -rc, "%s", hostcalls[call].name);
    } else if (call == SHK_CALL_ENVIRON) {
        value = hostcall_capture_environ(host);
    } else {
        value = json_incref(json_object_get(host->calls, hostcalls[call].name));
        if (!value)
            return shk_error_set(err, ENODATA, "%s: not in the capture", hostcalls[call].name);
    }
    if (!value)
        return shk_error_sys(err, ENOMEM, "%s", hostcalls[call].name);
    *value_p = value;
    return 0;
}

json_t *shk_host_names_looked_for(const struct shk_host *host)
{
    json_t *names = host->live ? NULL : json_object_get(host->calls, "looked_for");
    return json_is_object(names) ? json_incref(names) : NULL;
}

int shk_host_json(const struct shk_host *host, const char *path, json_t **doc_p,
                  struct shk_error *err)
{
    char *text = NULL;
    size_t len = 0;
    int rc = shk_host_read(host, path, &text, &len, err);
    *doc_p = NULL;
    if (rc)
        return rc == -ENOENT || rc == -ENOTDIR ? 0 : rc;
    json_error_t at;
    *doc_p = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
    free(text);
    if (!*doc_p)
        return shk_error_set(err, EINVAL, "%s%s:%d: %s", host->root, path, at.line, at.text);
    return 0;
}

int shk_host_load_calls(struct shk_host *host, struct shk_error *err)
{
    static const char path[] = "/.shakedown/hostcalls.json";
    json_t *calls;
    int rc = shk_host_json(host, path, &calls, err);
    if (calls && !json_is_object(calls)) {
        json_decref(calls);
        return shk_error_set(err, EINVAL, "%s%s: not a JSON object", host->root, path);
    }
    host->calls = calls ? calls : host->calls;
    return rc;
}

const char *shk_host_getenv(const struct shk_host *host, const char *name)
{
    const char *value = host->live || !hostcall_is_own(name) ? getenv(name) : NULL;
    shk_record_asked(host, name);
    if (!value && !host->live)
        value = json_string_value(json_object_get(json_object_get(host->calls, "environ"), name));
    return value;
}
