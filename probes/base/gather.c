#include "probes/base/gather.h"

#include "core/text/strbuf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shk_gather shk_gather_begin(const struct shk_probe_context *ctx)
{
    return (struct shk_gather){.host = ctx->host, .facts = ctx->facts, .names = ctx->names};
}

int shk_gather_end(const struct shk_gather *g, struct shk_error *err)
{
    return g->rc ? shk_error_sys(err, -g->rc, "writing a fact") : 0;
}

static void gather_note(struct shk_gather *g, int rc)
{
    if (!g->rc)
        g->rc = rc;
}

void shk_gather_present(struct shk_gather *g, const char *key, json_t *value, const char *unit,
                        const char *source)
{
    gather_note(g, shk_facts_present(g->facts, key, value, unit, source));
}

void shk_gather_text(struct shk_gather *g, const char *key, const char *text, const char *source)
{
    shk_gather_present(g, key, shk_gather_str(text), NULL, source);
}

void shk_gather_int(struct shk_gather *g, const char *key, long long value, const char *unit,
                    const char *source)
{
    gather_note(g, shk_facts_int(g->facts, key, value, unit, source));
}

void shk_gather_absent(struct shk_gather *g, const char *key, const char *source,
                       const char *reasonf, ...)
{
    struct shk_error reason;
    va_list args;
    va_start(args, reasonf);
    vsnprintf(reason.text, sizeof reason.text, reasonf, args);
    va_end(args);
    gather_note(g, shk_facts_absent(g->facts, key, source, "%s", reason.text));
}

void shk_gather_failed(struct shk_gather *g, const char *key, const char *source,
                       const char *reasonf, ...)
{
    struct shk_error reason;
    va_list args;
    va_start(args, reasonf);
    vsnprintf(reason.text, sizeof reason.text, reasonf, args);
    va_end(args);
    gather_note(g, shk_facts_failed(g->facts, key, source, "%s", reason.text));
}

bool shk_gather_key(char *buf, size_t size, const char *prefix, const char *name)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:+-";
    int n = snprintf(buf, size, "%s%s", prefix, name);
    if (n < 0 || (size_t)n >= size)
        return false;
    for (char *p = buf; *p; p++)
        if (!strchr(allowed, *p))
            *p = '_';
    return true;
}

bool shk_gather_missing(const struct shk_host *host, const char *path, const char *anchor)
{
    char *target = NULL;
    bool dangling = shk_host_readlink(host, &target, NULL, "%s", path) == 0;
    free(target);
    return !dangling && shk_host_exists(host, "%s", anchor);
}

void shk_gather_unread(struct shk_gather *g, const char *key, const char *path, const char *anchor,
                       int rc, const struct shk_error *err)
{
    if (rc == -ENOENT && shk_gather_missing(g->host, path, anchor))
        shk_gather_absent(g, key, path, "%s does not exist", path);
    else if (rc == -ENOENT && !shk_host_exists(g->host, "%s", anchor))
        shk_gather_failed(g, key, path, "%s: not there, and neither is %s", path, anchor);
    else
        shk_gather_failed(g, key, path, "%s", err->text);
}

char **shk_gather_names(struct shk_gather *g, const char *key, const char *path, const char *anchor)
{
    struct shk_error err;
    char **names = NULL;
    int rc = shk_host_list(g->host, &names, NULL, &err, "%s", path);
    if (rc)
        shk_gather_unread(g, key, path, anchor, rc, &err);
    return rc ? NULL : names;
}

void shk_gather_dir(struct shk_gather *g, const char *key, const char *path, const char *anchor)
{
    char **names = shk_gather_names(g, key, path, anchor);
    if (!names)
        return;
    json_t *list = json_array();
    for (char **n = names; *n; n++)
        json_array_append_new(list, shk_gather_str(*n));
    shk_gather_present(g, key, list, NULL, path);
    shk_host_list_free(names);
}

char *shk_gather_file(struct shk_gather *g, const char *key, const char *path, const char *anchor)
{
    struct shk_error err;
    char *text = NULL;
    int rc = shk_host_read(g->host, path, &text, NULL, &err);
    if (rc)
        shk_gather_unread(g, key, path, anchor, rc, &err);
    return rc ? NULL : text;
}

void shk_gather_some(struct shk_gather *g, const char *key, json_t *list, const char *path,
                     const char *none)
{
    if (json_array_size(list) > 0) {
        shk_gather_present(g, key, list, NULL, path);
        return;
    }
    shk_gather_absent(g, key, path, "%s", none);
    json_decref(list);
}

void shk_gather_line(struct shk_gather *g, const char *key, const char *path, const char *anchor)
{
    struct shk_error err;
    char *line = NULL;
    int rc = shk_host_line(g->host, &line, &err, "%s", path);
    if (rc)
        shk_gather_unread(g, key, path, anchor, rc, &err);
    else if (!*line)
        shk_gather_absent(g, key, path, "%s is empty", path);
    else
        shk_gather_text(g, key, line, path);
    free(line);
}

json_t *shk_gather_hostcall(struct shk_gather *g, enum shk_hostcall call, const char *key)
{
    struct shk_error err;
    json_t *value = NULL;
    if (shk_hostcall(g->host, call, &value, &err) == 0)
        return value;
    shk_gather_failed(g, key, shk_hostcall_name(call), "%s", err.text);
    return NULL;
}

void shk_gather_member_problem(json_t *object, const char *name, const char *reason)
{
    json_t *problems = json_object_get(object, "problems");
    if (!problems) {
        problems = json_object();
        json_object_set_new(object, "problems", problems);
    }
    json_object_set_new(problems, name, shk_gather_str(reason));
}

void shk_gather_both_ways(json_t *list, json_t *there, json_t *back)
{
    json_t *turned = json_copy(back);
    (void)json_object_set(turned, "gpu", json_object_get(back, "peer"));
    (void)json_object_set(turned, "peer", json_object_get(back, "gpu"));
    json_array_append_new(list, there);
    if (json_equal(turned, there))
        json_decref(back);
    else
        json_array_append_new(list, back);
    json_decref(turned);
}

void shk_gather_member_unread(const struct shk_host *host, json_t *object, const char *name,
                              const char *path, int rc, const struct shk_error *err)
{
    char *target = NULL;
    json_object_set_new(object, name, json_null());
    if (rc != -ENOENT || shk_host_readlink(host, &target, NULL, "%s", path) == 0)
        shk_gather_member_problem(object, name, err->text);
    free(target);
}

#define MEMBER_PATH(path, fmt)                                                                     \
    char path[512];                                                                                \
    do {                                                                                           \
        va_list args_;                                                                             \
        va_start(args_, fmt);                                                                      \
        vsnprintf(path, sizeof path, fmt, args_);                                                  \
        va_end(args_);                                                                             \
    } while (0)

void shk_gather_member_text(const struct shk_host *host, json_t *object, const char *name,
                            const char *pathf, ...)
{
    MEMBER_PATH(path, pathf);
    struct shk_error err;
    char *line = NULL;
    int rc = shk_host_line(host, &line, &err, "%s", path);
    if (!rc && !*line)
        rc = shk_error_set(&err, ENODATA, "%s is empty", path);
    if (rc)
        shk_gather_member_unread(host, object, name, path, rc, &err);
    else
        json_object_set_new(object, name, shk_gather_str(line));
    free(line);
}

void shk_gather_member_i64(const struct shk_host *host, json_t *object, const char *name,
                           const char *pathf, ...)
{
    MEMBER_PATH(path, pathf);
    struct shk_error err;
    long long value = 0;
    int rc = shk_host_i64(host, &value, &err, "%s", path);
    if (rc)
        shk_gather_member_unread(host, object, name, path, rc, &err);
    else
        json_object_set_new(object, name, json_integer(value));
}

void shk_gather_member_link(const struct shk_host *host, json_t *object, const char *name,
                            const char *pathf, ...)
{
    MEMBER_PATH(path, pathf);
    struct shk_error err;
    char *target = NULL;
    int rc = shk_host_readlink(host, &target, &err, "%s", path);
    if (rc == -ENOENT) {
        json_object_set_new(object, name, json_null());
    } else if (rc) {
        json_object_set_new(object, name, json_null());
        shk_gather_member_problem(object, name, err.text);
    } else {
        const char *slash = strrchr(target, '/');
        json_object_set_new(object, name, shk_gather_str(slash ? slash + 1 : target));
    }
    free(target);
}

bool shk_gather_is_pci(const char *text, size_t len)
{
    static const char shape[] = "hhhh:hh:hh.h";
    static const char hex[] = "0123456789abcdefABCDEF";
    /* domains above 0xffff (VMD) have more digits in front */
    size_t extra = len > 12 ? len - 12 : 0;
    if (len < 12 || extra > 4 || strspn(text, hex) != 4 + extra)
        return false;
    text += extra;
    for (size_t i = 0; i < 12; i++)
        if (shape[i] == 'h' ? !text[i] || !strchr(hex, text[i]) : text[i] != shape[i])
            return false;
    return true;
}

/* The last PCI address in a path, as JSON; NULL when there is none. */
static json_t *gather_last_pci(const char *path)
{
    const char *last = NULL;
    size_t last_len = 0;
    for (const char *p = path; *p;) {
        size_t len = strcspn(p, "/");
        if (shk_gather_is_pci(p, len)) {
            last = p;
            last_len = len;
        }
        p += len + (p[len] == '/');
    }
    return last ? shk_json_text(last, last_len) : NULL;
}

void shk_gather_member_pci(const struct shk_host *host, json_t *object, const char *name,
                           const char *pathf, ...)
{
    MEMBER_PATH(path, pathf);
    static const char *const links[] = {"", "/device"};
    json_t *found = NULL;
    for (size_t i = 0; !found && i < sizeof links / sizeof *links; i++) {
        char *target = NULL;
        if (shk_host_readlink(host, &target, NULL, "%s%s", path, links[i]) == 0)
            found = gather_last_pci(target);
        free(target);
    }
    json_object_set_new(object, name, found ? found : json_null());
}

json_t *shk_gather_str(const char *text)
{
    return text ? shk_json_text(text, strlen(text)) : json_null();
}

const char *shk_gather_get(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}
