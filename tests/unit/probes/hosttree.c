#include "hosttree.h"
#include "tests/names.h"
#include "tests/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char tree_root[64];
static struct shk_facts *tree_facts;

void tree_begin(void)
{
    clearenv();
    setenv("PATH", "/usr/bin:/bin", 1);
    scratch_make(tree_root, sizeof tree_root, "tree");
    cr_assert_eq(chmod(tree_root, 0755), 0);
}

static void tree_shell(const char *fmt, const char *a, const char *b)
{
    char cmd[1024];
    snprintf(cmd, sizeof cmd, fmt, a, b);
    cr_assert_eq(system(cmd), 0, "%s", cmd);
}

const char *tree_folder(void)
{
    return tree_root;
}

void tree_end(void)
{
    shk_facts_destroy(tree_facts);
    tree_facts = NULL;
    tree_shell("chmod -R u+rwx %s; rm -rf %s", tree_root, tree_root);
}

static void tree_real(char *buf, size_t size, const char *path)
{
    int n = snprintf(buf, size, "%s%s", tree_root, path);
    cr_assert(n > 0 && (size_t)n < size && path[0] == '/', "%s", path);
}

/* Makes the parents and clears the place. */
static void tree_place(char real[PATH_MAX], const char *path)
{
    tree_real(real, PATH_MAX, path);
    for (char *p = real + strlen(tree_root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        if (mkdir(real, 0755) != 0)
            cr_assert_eq(errno, EEXIST, "%s: %s", real, strerror(errno));
        *p = '/';
    }
    tree_remove(path);
}

void tree_put_bytes(const char *path, const void *bytes, size_t len)
{
    char real[PATH_MAX];
    tree_place(real, path);
    FILE *f = fopen(real, "w");
    cr_assert_not_null(f, "%s: %s", real, strerror(errno));
    cr_assert_eq(fwrite(bytes, 1, len, f), len);
    cr_assert_eq(fclose(f), 0);
}

void tree_put(const char *path, const char *textf, ...)
{
    char text[16384];
    va_list args;
    va_start(args, textf);
    int n = vsnprintf(text, sizeof text, textf, args);
    va_end(args);
    cr_assert(n >= 0 && (size_t)n < sizeof text);
    tree_put_bytes(path, text, (size_t)n);
}

void tree_dir(const char *path)
{
    char real[PATH_MAX];
    tree_place(real, path);
    cr_assert_eq(mkdir(real, 0755), 0);
}

void tree_link(const char *path, const char *target)
{
    char real[PATH_MAX];
    tree_place(real, path);
    cr_assert_eq(symlink(target, real), 0, "%s", real);
}

void tree_fifo(const char *path)
{
    char real[PATH_MAX];
    tree_place(real, path);
    cr_assert_eq(mkfifo(real, 0644), 0);
}

void tree_mode(const char *path, unsigned mode)
{
    char real[PATH_MAX];
    tree_real(real, sizeof real, path);
    cr_assert_eq(chmod(real, mode), 0);
}

void tree_remove(const char *path)
{
    char real[PATH_MAX];
    tree_real(real, sizeof real, path);
    if (unlink(real) == 0 || errno == ENOENT || errno == ENOTDIR)
        return;
    tree_shell("rm -rf '%s%s'", tree_root, path);
}

void tree_hostcalls(const char *json)
{
    tree_put("/.shakedown/hostcalls.json", "%s", json);
}

void tree_copy_capture(const char *name)
{
    tree_shell("cp -a " SHK_BUILD_DIR "/captures/%s/. %s", name, tree_root);
}

static void tree_keep(struct shk_facts *facts)
{
    shk_facts_destroy(tree_facts);
    tree_facts = facts;
}

/* Facts of one run; every fact must survive the journey as JSON. */
static struct shk_facts *tree_gather(const struct shk_probe *probe, const struct shk_facts *known)
{
    struct shk_error err = {""};
    struct shk_host *host;
    struct shk_facts *facts = shk_facts_create();
    cr_assert_eq(shk_host_open(&host, tree_root, &err), 0, "%s", err.text);
    struct shk_probe_context ctx = {
        .host = host, .names = catalogue_names(), .known = known, .facts = facts};
    int rc = probe->run(&ctx, &err);
    cr_assert_eq(rc, 0, "%s: %s", probe->name, err.text);
    shk_host_close(host);
    return facts;
}

const struct shk_facts *tree_run(const struct shk_probe *probe)
{
    return tree_run_known(probe, NULL);
}

const struct shk_facts *tree_run_known(const struct shk_probe *probe, const struct shk_facts *known)
{
    struct shk_facts *facts = tree_gather(probe, known), *again = NULL;
    struct shk_error err = {""};
    json_t *doc = shk_facts_to_json(facts);
    cr_assert_eq(shk_facts_from_json(&again, doc, &err), 0, "%s", err.text);
    cr_assert_eq(shk_facts_count(again), shk_facts_count(facts));
    json_decref(doc);
    shk_facts_destroy(facts);
    tree_keep(again);
    return again;
}

static void tree_child(const struct shk_probe *probe, int fd)
{
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setresgid(65534, 65534, 65534) != 0 ||
                           setresuid(65534, 65534, 65534) != 0))
        _exit(3);
    struct shk_facts *facts = tree_gather(probe, NULL);
    json_t *doc = shk_facts_to_json(facts);
    char *text = json_dumps(doc, JSON_COMPACT);
    size_t len = strlen(text);
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, text + at, len - at);
        if (n <= 0)
            _exit(4);
        at += (size_t)n;
    }
    _exit(0);
}

const struct shk_facts *tree_run_unprivileged(const struct shk_probe *probe)
{
    int fds[2], status = -1;
    struct shk_facts *facts = NULL;
    struct shk_error err = {""};
    cr_assert_eq(pipe(fds), 0);
    fflush(NULL);
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0)
        tree_child(probe, fds[1]);
    close(fds[1]);
    FILE *in = fdopen(fds[0], "r");
    json_t *doc = json_loadf(in, JSON_DISABLE_EOF_CHECK, NULL);
    fclose(in);
    waitpid(pid, &status, 0);
    cr_assert_eq(status, 0, "child ended with %x", (unsigned)status);
    cr_assert_eq(shk_facts_from_json(&facts, doc, &err), 0, "%s", err.text);
    json_decref(doc);
    tree_keep(facts);
    return facts;
}

int tree_state(const char *key)
{
    struct shk_fact fact;
    return shk_facts_get(tree_facts, key, &fact) ? (int)fact.state : TREE_NOTHING;
}

const char *tree_reason(const char *key)
{
    struct shk_fact fact;
    return shk_facts_get(tree_facts, key, &fact) && fact.reason ? fact.reason : "";
}

const char *tree_source(const char *key)
{
    struct shk_fact fact;
    return shk_facts_get(tree_facts, key, &fact) && fact.source ? fact.source : "";
}

json_t *tree_value(const char *key)
{
    struct shk_fact fact = {0};
    bool known = shk_facts_get(tree_facts, key, &fact);
    cr_assert(known && fact.state == SHK_FACT_PRESENT, "%s: %s", key,
              !known ? "not written" : fact.reason);
    return fact.value;
}

json_t *tree_item(const char *key, const char *by, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(tree_value(key), i, item)
    {
        if (strcmp(tree_item_text(item, by), name) == 0)
            return item;
    }
    cr_assert_fail("%s: no element with %s %s", key, by, name);
    return NULL;
}

const char *tree_item_text(const json_t *item, const char *member)
{
    const char *text = json_string_value(json_object_get(item, member));
    return text ? text : "(null)";
}

long long tree_item_int(const json_t *item, const char *member)
{
    const json_t *value = json_object_get(item, member);
    return json_is_integer(value) ? json_integer_value(value) : LLONG_MIN;
}

void expect_text(const char *key, const char *want)
{
    const char *got = shk_facts_get_text(tree_facts, key);
    cr_expect_not_null(got, "%s is no text: %s", key, tree_reason(key));
    cr_expect_str_eq(got ? got : "", want, "%s is '%s'", key, got ? got : "");
}

void expect_int(const char *key, long long want)
{
    long long got = shk_facts_get_int(tree_facts, key, LLONG_MIN);
    cr_expect_eq(got, want, "%s is %lld: %s", key, got, tree_reason(key));
}

void expect_absent(const char *key)
{
    cr_expect_eq(tree_state(key), SHK_FACT_ABSENT, "%s: state %d, %s", key, tree_state(key),
                 tree_reason(key));
    cr_expect_neq(*tree_reason(key), '\0', "%s: no reason", key);
}

void expect_failed(const char *key, const char *reason_part)
{
    cr_expect_eq(tree_state(key), SHK_FACT_FAILED, "%s: state %d, %s", key, tree_state(key),
                 tree_reason(key));
    cr_expect_not_null(strstr(tree_reason(key), reason_part), "%s: '%s' lacks '%s'", key,
                       tree_reason(key), reason_part);
}

void expect_json(const char *key, const char *want_json)
{
    json_t *want = json_loads(want_json, JSON_DECODE_ANY, NULL), *got = tree_value(key);
    char *text = json_dumps(got, JSON_ENCODE_ANY | JSON_SORT_KEYS);
    cr_assert_not_null(want, "%s", want_json);
    cr_expect(json_equal(want, got), "%s is %s", key, text);
    free(text);
    json_decref(want);
}

enum tree_damage {
    DAMAGE_FIFO,
    DAMAGE_DIR,
    DAMAGE_HUGE,
    DAMAGE_DANGLING,
    DAMAGE_EMPTY,
    DAMAGE_GARBAGE,
    DAMAGE_COUNT
};

static void tree_damage(const char *path, enum tree_damage damage)
{
    static const char garbage[] = "\xff\xfe\x01 certainly not what was there";
    switch (damage) {
    case DAMAGE_FIFO: tree_fifo(path); break;
    case DAMAGE_DIR: tree_dir(path); break;
    case DAMAGE_DANGLING: tree_link(path, "leads/nowhere"); break;
    case DAMAGE_EMPTY: tree_put_bytes(path, "", 0); break;
    case DAMAGE_GARBAGE: tree_put_bytes(path, garbage, sizeof garbage - 1); break;
    case DAMAGE_HUGE: {
        size_t size = (size_t)5 << 20;
        char *bytes = malloc(size);
        cr_assert_not_null(bytes);
        memset(bytes, '7', size);
        tree_put_bytes(path, bytes, size);
        free(bytes);
        break;
    }
    case DAMAGE_COUNT: break;
    }
}

static void tree_judge(const struct tree_victim *v, enum tree_damage damage)
{
    static const char *const names[] = {"FIFO",          "directory", "5 MiB file",
                                        "dangling link", "empty",     "garbage"};
    const char *name = names[damage];
    if (!v->member) {
        int state = tree_state(v->key);
        bool fine =
            state == SHK_FACT_FAILED || (damage == DAMAGE_EMPTY && state == SHK_FACT_ABSENT);
        cr_expect(fine, "%s, %s: %s has state %d (%s)", v->path, name, v->key, state,
                  tree_reason(v->key));
        return;
    }
    json_t *object = tree_value(v->key);
    if (json_is_array(object))
        object = json_array_get(object, 0);
    const char *why =
        json_string_value(json_object_get(json_object_get(object, "problems"), v->member));
    cr_expect(json_is_null(json_object_get(object, v->member)), "%s, %s: %s.%s is not null",
              v->path, name, v->key, v->member);
    cr_expect(why && *why, "%s, %s: %s.%s has no problem", v->path, name, v->key, v->member);
}

void tree_expect_damage(const struct shk_probe *probe, const struct tree_victim *victims, size_t n)
{
    char real[PATH_MAX];
    for (size_t i = 0; i < n; i++) {
        const struct tree_victim *v = &victims[i];
        char healthy[4096] = "";
        tree_real(real, sizeof real, v->path);
        FILE *f = fopen(real, "r");
        cr_assert_not_null(f, "%s", real);
        size_t len = fread(healthy, 1, sizeof healthy, f);
        fclose(f);
        tree_run(probe);
        cr_expect_eq(tree_state(v->key), SHK_FACT_PRESENT, "%s: healthy, yet %s", v->key,
                     tree_reason(v->key));
        for (int d = 0; d < DAMAGE_COUNT; d++) {
            tree_damage(v->path, (enum tree_damage)d);
            tree_run(probe);
            if (!v->any_text || d < DAMAGE_EMPTY)
                tree_judge(v, (enum tree_damage)d);
        }
        tree_put_bytes(v->path, healthy, len);
    }
}
