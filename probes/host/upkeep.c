/* Upkeep of the node: its time source, mounts that do not answer, places for caches, authentication
 * of jobs, shared memory that is in use or left over. A look at a dead network mount hangs, so each
 * has a child of its own. */
#include "core/run/isolate.h"
#include "core/text/strbuf.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"
#include "probes/host/leftover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0"

/* A mount that answers does so within microseconds, a busy server within a fraction of a second. */
enum { UPKEEP_MOUNT_MS = 2000, UPKEEP_MOUNTS = 32 };

static void upkeep_clock(struct shk_gather *g)
{
    shk_gather_line(g, "clock.source", CLOCKSOURCE "/current_clocksource", "/sys/devices/system");
    shk_gather_line(g, "clock.sources", CLOCKSOURCE "/available_clocksource",
                    "/sys/devices/system");
}

/* Of file systems over a network, or of other machines' services. */
static bool upkeep_remote(const char *type)
{
    static const char *const types[] = {
        "nfs",   "nfs4",  "lustre",   "gpfs",      "beegfs", "ceph", "cifs",     "smb3", "wekafs",
        "panfs", "pvfs2", "orangefs", "glusterfs", "afs",    "9p",   "virtiofs", NULL};
    for (const char *const *t = types; *t; t++)
        if (strcmp(*t, type) == 0 || (strncmp(type, "fuse.", 5) == 0 && strcmp(*t, type + 5) == 0))
            return true;
    return false;
}

static int upkeep_ask(void *arg, json_t **result_p, struct shk_error *err)
{
    const char *mount = arg;
    struct statvfs st;
    (void)result_p;
    shk_crumb_call("statvfs(%s)", mount);
    return statvfs(mount, &st) ? shk_error_sys(err, errno, "%s", mount) : 0;
}

/* "36 35 98:0 / /mnt rw … - nfs4 server:/x rw": mount point and type. False: not remote. */
static bool upkeep_mount(char *line, char **point_p, char **type_p)
{
    char *save = NULL, *field = strtok_r(line, " ", &save);
    for (int i = 0; field && i < 4; i++)
        field = strtok_r(NULL, " ", &save);
    *point_p = field;
    while (field && strcmp(field, "-") != 0)
        field = strtok_r(NULL, " ", &save);
    *type_p = field ? strtok_r(NULL, " ", &save) : NULL;
    return *point_p && *type_p && upkeep_remote(*type_p) && !strchr(*point_p, '\\');
}

static void upkeep_mounts(struct shk_gather *g)
{
    static const char key[] = "mounts.remote", path[] = "/proc/self/mountinfo";
    struct shk_isolate_job jobs[UPKEEP_MOUNTS];
    struct shk_isolate_result results[UPKEEP_MOUNTS];
    char *types[UPKEEP_MOUNTS], *text = NULL, *save = NULL, *point = NULL, *type = NULL;
    struct shk_error err = {""};
    size_t n = 0;
    int rc = shk_host_read(g->host, path, &text, NULL, &err);
    if (rc) {
        shk_gather_unread(g, key, path, "/proc/self", rc, &err);
        return;
    }
    for (char *line = strtok_r(text, "\n", &save); line && n < UPKEEP_MOUNTS;
         line = strtok_r(NULL, "\n", &save))
        if (upkeep_mount(line, &point, &type)) {
            types[n] = type;
            jobs[n++] = (struct shk_isolate_job){
                .name = "mount", .fn = upkeep_ask, .arg = point, .deadline_ms = UPKEEP_MOUNT_MS};
        }
    json_t *list = json_array();
    bool live = shk_host_is_live(g->host);
    rc = live && n ? shk_isolate_run(jobs, results, n, (unsigned)n, &err) : 0;
    for (size_t i = 0; i < n && !rc; i++) {
        bool late = live && results[i].outcome == SHK_CHILD_TIMEOUT;
        json_t *row = json_pack("{s:o, s:s, s:o}", "mount", shk_gather_str(jobs[i].arg), "type",
                                types[i], "answers", live ? json_boolean(!late) : json_null());
        if (live && !late && results[i].outcome != SHK_CHILD_OK)
            json_object_set_new(row, "error", shk_gather_str(results[i].error.text));
        json_array_append_new(list, row);
    }
    for (size_t i = 0; i < n && live && !rc; i++)
        shk_isolate_result_clear(&results[i]);
    if (rc)
        shk_gather_failed(g, key, path, "%s", err.text);
    else
        shk_gather_present(g, key, json_incref(list), NULL, path);
    json_decref(list);
    free(text);
}

/* Where libraries keep what they compile at run time: variables that end in these words say so,
 * else it is below the home directory (CUDA: .nv, Triton: .triton, most others: .cache). */
static const char *const place_words[] = {"_CACHE_PATH", "_CACHE_DIR", "_CACHE_HOME", NULL};
static const char *const place_homes[] = {".nv", ".triton", ".cache", NULL};

enum { UPKEEP_PLACES = 32 };

static void upkeep_place(struct shk_gather *g, json_t *list, const char *what, const char *path)
{
    static const char *const members[] = {"type", "mount", "options", "free", "size"};
    json_t *fs = NULL, *row = json_pack("{s:o}", "for", shk_gather_str(what));
    struct shk_error err = {""};
    int rc = shk_hostcall_fs(g->host, path, &fs, &err);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *member = json_object_get(fs, members[i]);
        json_object_set_new(row, members[i], member ? json_incref(member) : json_null());
    }
    if (rc)
        shk_gather_member_problem(row, "mount", err.text);
    json_decref(fs);
    if (json_array_size(list) < UPKEEP_PLACES)
        json_array_append(list, row);
    json_decref(row);
}

static bool upkeep_is_place(const char *name, const char *value)
{
    size_t n = strlen(name);
    if (value && *value == '/' && strncmp(name, "TMP", 3) == 0) /* of temporary files */
        return true;
    for (const char *const *w = place_words; *w; w++)
        if (value && *value == '/' && n > strlen(*w) && strcmp(name + n - strlen(*w), *w) == 0)
            return true;
    return false;
}

static int upkeep_ask_places(void *arg, json_t **result_p, struct shk_error *err)
{
    struct shk_gather *g = arg;
    const char *home = shk_host_getenv(g->host, "HOME"), *name;
    json_t *list = json_array(), *all = NULL, *value;
    int rc = shk_hostcall(g->host, SHK_CALL_ENVIRON, &all, err);
    json_object_foreach(all, name, value)
    {
        if (upkeep_is_place(name, json_string_value(value)))
            upkeep_place(g, list, name, json_string_value(value));
    }
    json_decref(all);
    for (const char *const *h = place_homes; home && *home == '/' && *h; h++) {
        char *path = shk_strf("%s/%s", home, *h), *what = shk_strf("~/%s", *h);
        if (path && what)
            upkeep_place(g, list, what, path);
        free(path);
        free(what);
    }
    upkeep_place(g, list, "temporary files", "/tmp");
    *result_p = list;
    return rc;
}

static void upkeep_places(struct shk_gather *g)
{
    struct shk_isolate_job job = {
        .name = "places of caches", .fn = upkeep_ask_places, .arg = g, .deadline_ms = 1500};
    struct shk_isolate_result result = {.outcome = SHK_CHILD_NOT_RUN};
    struct shk_error err = {""};
    int rc = 0;
    if (shk_host_is_live(g->host) && shk_host_mounts_local(g->host)) /* nothing to wait for */
        result.outcome =
            upkeep_ask_places(g, &result.result, &result.error) ? SHK_CHILD_FAILED : SHK_CHILD_OK;
    else
        rc = shk_isolate_run(&job, &result, 1, 1, &err);
    if (!rc && result.outcome == SHK_CHILD_OK && result.result)
        shk_gather_present(g, "caches", json_incref(result.result), NULL, "environment");
    else
        shk_gather_failed(g, "caches", "environment", "%s", rc ? err.text : result.error.text);
    shk_isolate_result_clear(&result);
}

/* Lines of a slurm.conf about credentials, added to *lines_p (made when there is such a file).
 * -errno: it is there and could not be read. */
static int slurm_auth(const struct shk_host *host, const char *path, json_t **lines_p,
                      struct shk_error *err)
{
    char *text = NULL, *rest = NULL;
    if (!shk_host_exists(host, "%s", path))
        return 0;
    int rc = shk_host_read(host, path, &text, NULL, err);
    if (rc)
        return rc;
    *lines_p = *lines_p ? *lines_p : json_array();
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        line += strspn(line, " \t");
        if (strncasecmp(line, "AuthType", 8) == 0 || strncasecmp(line, "AuthInfo", 8) == 0)
            json_array_append_new(*lines_p, shk_json_text(line, strlen(line)));
    }
    free(text);
    return 0;
}

/* Members slurm and, when a slurm.conf was not read, problems. */
static json_t *munge_slurm(const struct shk_host *host)
{
    static const char *const files[] = {"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf",
                                        "/var/spool/slurmd/conf-cache/slurm.conf",
                                        "/run/slurm/conf/slurm.conf"};
    struct shk_error err = {""};
    json_t *lines = NULL;
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof files / sizeof *files; i++)
        rc = slurm_auth(host, files[i], &lines, &err);
    if (!rc)
        return json_pack("{s:o?}", "slurm", lines);
    json_decref(lines);
    return json_pack("{s:n, s:{s:s}}", "slurm", "problems", "slurm", err.text);
}

/* munged listens there; whoever may not connect gets no credential, and srun fails (munged(8)). */
static void upkeep_munge(struct shk_gather *g)
{
    static const char key[] = "munge.socket", path[] = "/run/munge/munge.socket.2";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!shk_host_exists(g->host, "/run/munge") && !shk_host_exists(g->host, "/etc/munge")) {
        shk_gather_absent(g, key, "/run/munge, /etc/munge", "munge is not installed");
        return;
    }
    if (!shk_host_is_live(g->host)) {
        shk_gather_failed(g, key, path, "a capture has no sockets");
        return;
    }
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = fd < 0 ? errno : connect(fd, (struct sockaddr *)&address, sizeof address) ? errno : 0;
    if (fd >= 0)
        close(fd);
    json_t *value = json_pack("{s:s, s:b, s:o}", "path", path, "connects", rc == 0, "error",
                              rc ? json_string(strerror(rc)) : json_null());
    json_t *slurm = munge_slurm(g->host);
    json_object_update(value, slurm);
    json_decref(slurm);
    shk_gather_present(g, key, value, NULL, path);
}

/* Files in /dev/shm, and which of them are left over. */
static void upkeep_shm(struct shk_gather *g)
{
    static const char key[] = "shm.files";
    json_int_t bytes = 0, count = 0, most = 0;
    char largest[128] = "";
    char **names = shk_gather_names(g, key, "/dev/shm", "/dev");
    shk_leftover(g, names);
    if (!names)
        return;
    for (char **n = names; *n; n++) {
        char path[300];
        struct stat st;
        snprintf(path, sizeof path, "/dev/shm/%.255s", *n);
        if (shk_host_stat(g->host, path, &st) || !S_ISREG(st.st_mode))
            continue;
        count++;
        bytes += (json_int_t)st.st_blocks * 512;
        if ((json_int_t)st.st_blocks * 512 > most) {
            most = (json_int_t)st.st_blocks * 512;
            snprintf(largest, sizeof largest, "%.127s", *n);
        }
    }
    shk_host_list_free(names);
    shk_gather_present(g, key,
                       json_pack("{s:I, s:I, s:o, s:I}", "count", count, "bytes", bytes, "largest",
                                 *largest ? shk_gather_str(largest) : json_null(), "largest_bytes",
                                 most),
                       NULL, "/dev/shm");
}

static int upkeep_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    upkeep_clock(&g);
    upkeep_mounts(&g);
    upkeep_places(&g);
    upkeep_munge(&g);
    upkeep_shm(&g);
    return shk_gather_end(&g, err);
}

static const char *const upkeep_provides[] = {
    "clock.source", "clock.sources", "mounts.remote", "caches",
    "munge.socket", "shm.files",     "shm.leftover",  NULL};

const struct shk_probe shk_probe_upkeep = {
    .name = "upkeep",
    .phase = SHK_PHASE_HOST,
    .doc =
        "time source, mounts that do not answer, places for caches, munge, files in /dev/shm and "
        "what ended programs left of shared memory",
    .provides = upkeep_provides,
    .deadline_ms = 6000,
    .run = upkeep_run,
};
