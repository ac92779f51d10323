#include "libs_support.h"
#include "tests/names.h"
#include "tests/scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

char capture_root[64];

void capture_begin(void)
{
    scratch_make(capture_root, sizeof capture_root, "libs");
}

void capture_end(void)
{
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf %s", capture_root);
    cr_assert_eq(system(cmd), 0);
}

void capture_put(const char *name, const void *data, size_t len)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", capture_root, name);
    for (char *p = path + strlen(capture_root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0755);
        *p = '/';
    }
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f, "%s", path);
    cr_assert_eq(fwrite(data, 1, len, f), len);
    fclose(f);
}

void capture_text(const char *name, const char *text)
{
    capture_put(name, text, strlen(text));
}

void capture_copy(const char *name, const char *file)
{
    static char data[1 << 20];
    FILE *f = fopen(file, "rb");
    cr_assert_not_null(f, "%s", file);
    size_t len = fread(data, 1, sizeof data, f);
    cr_assert_lt(len, sizeof data);
    fclose(f);
    capture_put(name, data, len);
}

void capture_environ(const char *json_object)
{
    char text[2048];
    struct utsname names;
    cr_assert_eq(uname(&names), 0);
    snprintf(text, sizeof text, "{\"uname\": {\"machine\": \"%s\"}, \"environ\": %s}",
             names.machine, json_object);
    capture_text(".shakedown/hostcalls.json", text);
}

struct shk_facts *probe_facts(const struct shk_probe *probe, const char *sysroot,
                              const struct shk_facts *known, bool quick, int rc)
{
    struct shk_host *host = NULL;
    struct shk_error err = {""};
    struct shk_facts *facts = shk_facts_create();
    cr_assert_not_null(facts);
    cr_assert_eq(shk_host_open(&host, sysroot, &err), 0, "%s", err.text);
    struct shk_probe_context ctx = {.host = host,
                                    .names = catalogue_names(),
                                    .known = known,
                                    .facts = facts,
                                    .quick = quick,
                                    .executes = shk_host_is_live(host)};
    int got = probe->run(&ctx, &err);
    cr_assert_eq(got, rc, "%s returned %d: %s", probe->name, got, err.text);
    shk_host_close(host);
    return facts;
}

static char *ring(void)
{
    static char buffers[8][65536];
    static unsigned next;
    return buffers[next++ % 8];
}

const char *fact_text(const struct shk_facts *facts, const char *key)
{
    struct shk_fact fact;
    char *buf = ring();
    if (!shk_facts_get(facts, key, &fact)) {
        strcpy(buf, "missing");
    } else if (fact.state == SHK_FACT_PRESENT) {
        size_t n =
            json_dumpb(fact.value, buf, 65535, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        buf[n < 65535 ? n : 65535] = '\0';
    } else {
        snprintf(buf, 65536, "%s: %s", fact.state == SHK_FACT_ABSENT ? "absent" : "failed",
                 fact.reason);
    }
    return buf;
}
