/* Settings that libraries read from files: nccl.conf, rccl.conf, libfabric.conf, nvshmem.conf.
 *
 * The first three take a line apart at its first '=' and keep every blank and quote on both sides.
 * Lines without '=' are skipped; the first definition of a name wins, over later lines and later
 * files, and the environment wins over all files (unless FI_PREFER_SYSCONFIG is on). NVIDIA/nccl
 * src/misc/param.cc, ROCm/rccl src/misc/param.cc, ofiwg/libfabric src/var.c.
 *
 * NVSHMEM (3.6 and later) takes blanks off both sides and a comment off the end; the last
 * definition wins, and the files win over the environment. NVIDIA/nvshmem README.md. */
#include "core/redact/redact.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum conffile_reader { CONFFILE_NCCL, CONFFILE_RCCL, CONFFILE_LIBFABRIC, CONFFILE_NVSHMEM };

static const struct {
    const char *name;
    size_t limit; /* longest name and value (nccl, rccl) or line (libfabric) that it keeps */
} conffile_readers[] = {
    [CONFFILE_NCCL] = {"nccl", 1023},
    [CONFFILE_RCCL] = {"rccl", 1023},
    [CONFFILE_LIBFABRIC] = {"libfabric", 2046},
    [CONFFILE_NVSHMEM] = {"nvshmem", 65536}, /* it allocates what it needs */
};

struct conffile {
    struct shk_gather *g;
    json_t *files;     /* value of env.files */
    json_t *problems;  /* value of env.file_problems */
    json_t *seen[4];   /* per reader: name → "path:line" of the definition that wins */
    json_t *values[4]; /* per reader: name → its value; never leaves the process */
};

static void conffile_problem(struct conffile *c, const char *path, int line, const char *fmt, ...)
    SHK_PRINTF(4, 5);

static void conffile_problem(struct conffile *c, const char *path, int line, const char *fmt, ...)
{
    struct shk_error text;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text.text, sizeof text.text, fmt, args);
    va_end(args);
    json_t *entry = json_object();
    json_object_set_new(entry, "path", shk_gather_str(path));
    json_object_set_new(entry, "line", line ? json_integer(line) : json_null());
    json_object_set_new(entry, "problem", shk_gather_str(text.text));
    json_array_append_new(c->problems, entry);
}

/* What is odd about a value that will be taken literally; NULL when nothing is. */
static const char *conffile_odd_value(const char *value)
{
    size_t n = strlen(value);
    if (n && value[n - 1] == '\r')
        return "the value ends in a carriage return (DOS line end), which becomes part of it";
    if (n && (isspace((unsigned char)value[0]) || isspace((unsigned char)value[n - 1])))
        return "the blank next to the value becomes part of it";
    if (n > 1 && (value[0] == '"' || value[0] == '\'') && value[n - 1] == value[0])
        return "the quotes become part of the value";
    return NULL;
}

/* Records a well-formed line. True when it is the definition that counts. */
static bool conffile_define(struct conffile *c, enum conffile_reader reader, const char *place,
                            const char *name, const char *value)
{
    char key[256];
    const char *why = NULL;
    struct shk_fact known;
    if (json_object_get(c->seen[reader], name))
        return false;
    json_object_set_new(c->seen[reader], name, shk_gather_str(place));
    json_object_set_new(c->values[reader], name, shk_gather_str(value));
    /* Another library's file may define it, too: the first in the order of this probe stays. */
    if (!shk_gather_key(key, sizeof key, "env.file.", name) ||
        shk_facts_get(c->g->facts, key, &known))
        return true;
    if (shk_redact_value(name, value, &why))
        shk_gather_failed(c->g, key, place, "withheld: looks like a secret (%s)", why);
    else
        shk_gather_text(c->g, key, value, place);
    return true;
}

static void conffile_entry(struct conffile *c, enum conffile_reader reader, json_t *entries,
                           const char *path, int line, const char *name, const char *value)
{
    struct shk_name_match match;
    const char *odd = conffile_odd_value(value), *why = NULL;
    size_t limit = conffile_readers[reader].limit;
    if (!shk_name_ok(name)) {
        conffile_problem(c, path, line,
                         "'%.60s' is taken as the name, blanks included: nothing reads it", name);
        return;
    }
    if (!shk_name_classify(c->g->names, name, &match)) {
        conffile_problem(c, path, line, "%.60s is no setting of a known library", name);
        return;
    }
    if (odd)
        conffile_problem(c, path, line, "%.60s: %s", name, odd);
    if (strlen(name) > 200 || strlen(value) > limit)
        conffile_problem(c, path, line, "%.60s: longer than %s keeps, cut after %zu bytes", name,
                         conffile_readers[reader].name, limit);
    char *place = shk_strf("%s:%d", path, line);
    bool used = place && conffile_define(c, reader, place, name, value);
    /* The same line twice, as images and sites both bring it, changes nothing. */
    if (!used && strcmp(shk_gather_get(c->values[reader], name), value) != 0)
        conffile_problem(c, path, line, "%.60s is already set in %s: this line has no effect", name,
                         shk_gather_get(c->seen[reader], name));
    json_t *entry = json_object();
    json_object_set_new(entry, "name", shk_gather_str(name));
    json_object_set_new(entry, "value",
                        shk_redact_value(name, value, &why) ? json_null() : shk_gather_str(value));
    json_object_set_new(entry, "line", json_integer(line));
    json_object_set_new(entry, "used", json_boolean(used));
    json_array_insert_new(entries, reader == CONFFILE_NVSHMEM ? 0 : json_array_size(entries),
                          entry);
    free(place);
}

/* As NVSHMEM takes a key or value: no blanks around it, and none of a comment after a blank. */
static char *conffile_trim(char *text)
{
    for (char *p = text; *p; p++)
        if (*p == '#' && p > text && isspace((unsigned char)p[-1]))
            *p-- = '\0';
    return shk_trim(text);
}

static void conffile_line(struct conffile *c, enum conffile_reader reader, json_t *entries,
                          const char *path, int line, char *text)
{
    char *eq = strchr(text, '=');
    if (*text == '#' || text[strspn(text, " \t\r")] == '\0')
        return;
    if (!eq) {
        conffile_problem(c, path, line, "no '=' in the line: skipped");
        return;
    }
    *eq++ = '\0';
    if (reader == CONFFILE_NVSHMEM) {
        text = conffile_trim(text);
        eq = conffile_trim(eq);
    }
    conffile_entry(c, reader, entries, path, line, text, eq);
}

/* NVSHMEM's last definition wins: from the end, it is the first. */
static void conffile_parse(struct conffile *c, enum conffile_reader reader, json_t *entries,
                           const char *path, char *text, size_t len)
{
    size_t count = 1, used = 0;
    for (size_t i = 0; i < len; i++)
        count += text[i] == '\n';
    char **lines = calloc(count, sizeof *lines);
    if (!lines) {
        conffile_problem(c, path, 0, "out of memory");
        return;
    }
    for (char *p = text; p < text + len;) {
        char *end = memchr(p, '\n', (size_t)(text + len - p));
        if (!end)
            end = text + len;
        *end = '\0';
        if (strlen(p) != (size_t)(end - p))
            conffile_problem(c, path, (int)used + 1, "a NUL byte ends the line early");
        lines[used++] = p;
        p = end + 1;
    }
    for (size_t i = 0; i < used; i++) {
        size_t at = reader == CONFFILE_NVSHMEM ? used - 1 - i : i;
        conffile_line(c, reader, entries, path, (int)at + 1, lines[at]);
    }
    free(lines);
}

/* asked_for: the variable that names the file, NULL. */
static void conffile_read(struct conffile *c, enum conffile_reader reader, const char *path,
                          const char *asked_for)
{
    struct shk_error err;
    char *text = NULL;
    size_t len = 0;
    json_t *file = json_object(), *entries = json_array();
    int rc = shk_host_read(c->g->host, path, &text, &len, &err);
    bool absent = rc == -ENOENT && shk_gather_missing(c->g->host, path, "/etc");
    json_object_set_new(file, "path", shk_gather_str(path));
    json_object_set_new(file, "reader", json_string(conffile_readers[reader].name));
    json_object_set_new(file, "state", json_string(!rc ? "read" : absent ? "absent" : "failed"));
    if (!rc)
        conffile_parse(c, reader, entries, path, text, len);
    else if (!absent)
        conffile_problem(c, path, 0, "%s", err.text);
    else if (asked_for)
        conffile_problem(c, path, 0, "%s names it, but it does not exist", asked_for);
    json_object_set_new(file, "entries", entries);
    json_array_append_new(c->files, file);
    free(text);
}

/* The home directory as NCCL finds it up to 2.29: the password entry of the user, not $HOME. Users
 * of a directory service have no line in /etc/passwd; for them $HOME is the best guess. */
static char *conffile_home(const struct shk_host *host)
{
    char *text = NULL, *save, *home = NULL;
    json_t *ids = NULL;
    long long uid = -1;
    if (shk_hostcall(host, SHK_CALL_IDS, &ids, NULL) == 0 &&
        json_is_integer(json_object_get(ids, "uid")))
        uid = json_integer_value(json_object_get(ids, "uid"));
    json_decref(ids);
    if (uid >= 0 && shk_host_read(host, "/etc/passwd", &text, NULL, NULL) == 0)
        for (char *line = strtok_r(text, "\n", &save); line && !home;
             line = strtok_r(NULL, "\n", &save)) {
            /* name:password:uid:gid:comment:home:shell */
            char *field[7] = {0}, *rest = line;
            for (int i = 0; i < 7 && rest; i++)
                field[i] = strsep(&rest, ":");
            char *end = NULL;
            if (field[5] && strtoll(field[2], &end, 10) == uid && end != field[2] && !*end)
                home = strdup(field[5]);
        }
    free(text);
    if (home && *home == '/')
        return home;
    free(home);
    const char *guess = shk_host_getenv(host, "HOME");
    return guess && *guess == '/' ? strdup(guess) : NULL;
}

static void conffile_read_home(struct conffile *c, enum conffile_reader reader, const char *home,
                               const char *name)
{
    char *path = home ? shk_strf("%s/%s", home, name) : NULL;
    if (path)
        conffile_read(c, reader, path, NULL);
    else
        conffile_problem(c, name, 0, "the home directory is not known");
    free(path);
}

/* From 2.30 on NCCL takes $HOME. Where the two differ, the version decides which file counts. */
static void conffile_other_home(struct conffile *c, const char *home)
{
    const char *other = shk_host_getenv(c->g->host, "HOME");
    if (!home || !other || *other != '/' || strcmp(home, other) == 0 ||
        !shk_host_exists(c->g->host, "%s/.nccl.conf", other))
        return;
    char *path = shk_strf("%s/.nccl.conf", other);
    if (path)
        conffile_problem(c, path, 0, "NCCL 2.30 and later read this file ($HOME), older ones %s/%s",
                         home, ".nccl.conf");
    free(path);
}

/* libfabric looks below the prefix it was built with; which copy gets loaded is not known here. */
static void conffile_libfabric(struct conffile *c)
{
    static const char *const paths[] = {
        "/etc/libfabric.conf",
        "/usr/etc/libfabric.conf",
        "/usr/local/etc/libfabric.conf",
        "/opt/amazon/efa/etc/libfabric.conf",
    };
    char **versions = NULL;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (i == 0 || shk_host_exists(c->g->host, "%s", paths[i]))
            conffile_read(c, CONFFILE_LIBFABRIC, paths[i], NULL);
    if (shk_host_list(c->g->host, &versions, NULL, NULL, "/opt/cray/libfabric") != 0)
        return;
    for (char **v = versions; *v; v++) {
        char *path = shk_strf("/opt/cray/libfabric/%s/etc/libfabric.conf", *v);
        if (path && shk_host_exists(c->g->host, "%s", path))
            conffile_read(c, CONFFILE_LIBFABRIC, path, NULL);
        free(path);
    }
    shk_host_list_free(versions);
}

/* From the strongest: the file that is asked for, the user's, the system's. NVSHMEM has no rule for
 * the password entry, it takes $HOME. */
static void conffile_nvshmem(struct conffile *c)
{
    const char *asked = shk_host_getenv(c->g->host, shk_variable("conf-file.nvshmem"));
    const char *home = shk_host_getenv(c->g->host, "HOME");
    if (asked && *asked == '/')
        conffile_read(c, CONFFILE_NVSHMEM, asked, shk_variable("conf-file.nvshmem"));
    else if (asked && *asked)
        conffile_problem(c, asked, 0,
                         "%s is relative: which file that is depends on the working directory",
                         shk_variable("conf-file.nvshmem"));
    if (home && *home == '/')
        conffile_read_home(c, CONFFILE_NVSHMEM, home, ".nvshmem.conf");
    conffile_read(c, CONFFILE_NVSHMEM, "/etc/nvshmem.conf", NULL);
}

static void conffile_all(struct conffile *c)
{
    char *home = conffile_home(c->g->host);
    const char *asked = shk_host_getenv(c->g->host, shk_variable("conf-file.nccl"));
    if (asked && *asked == '/')
        conffile_read(c, CONFFILE_NCCL, asked, shk_variable("conf-file.nccl"));
    else if (asked && *asked)
        conffile_problem(c, asked, 0,
                         "%s is relative: which file that is depends on the working directory",
                         shk_variable("conf-file.nccl"));
    else {
        conffile_read_home(c, CONFFILE_NCCL, home, ".nccl.conf");
        conffile_other_home(c, home);
    }
    conffile_read(c, CONFFILE_NCCL, "/etc/nccl.conf", NULL);
    conffile_read_home(c, CONFFILE_RCCL, home, ".rccl.conf");
    conffile_read(c, CONFFILE_RCCL, "/etc/rccl.conf", NULL);
    conffile_libfabric(c);
    conffile_nvshmem(c);
    free(home);
}

static int conffile_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct conffile c = {.g = &g, .files = json_array(), .problems = json_array()};
    for (size_t i = 0; i < sizeof c.seen / sizeof *c.seen; i++)
        c.seen[i] = json_object();
    for (size_t i = 0; i < sizeof c.values / sizeof *c.values; i++)
        c.values[i] = json_object();
    conffile_all(&c);
    shk_gather_present(&g, "env.files", c.files, NULL, "configuration files");
    if (json_array_size(c.problems) > 0)
        shk_gather_present(&g, "env.file_problems", json_incref(c.problems), NULL,
                           "configuration files");
    else
        shk_gather_absent(&g, "env.file_problems", "configuration files", "nothing to object to");
    json_decref(c.problems);
    for (size_t i = 0; i < sizeof c.seen / sizeof *c.seen; i++) {
        json_decref(c.seen[i]);
        json_decref(c.values[i]);
    }
    return shk_gather_end(&g, err);
}

static const char *const conffile_provides[] = {"env.files", "env.file_problems", "env.file.",
                                                NULL};

const struct shk_probe shk_probe_conffile = {
    .name = "conffile",
    .phase = SHK_PHASE_HOST,
    .doc = "settings in nccl.conf, rccl.conf, libfabric.conf and nvshmem.conf",
    .provides = conffile_provides,
    .deadline_ms = 5000,
    .apart = true,
    .files = true,
    .run = conffile_run,
};
