/* What a capture keeps of names and addresses: nothing. What a replay needs: everything. */
#include "core/host/record.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void begin(void)
{
    strcpy(root, "/tmp/shk-record-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

static void end(void)
{
    char cmd[96];
    snprintf(cmd, sizeof cmd, "rm -rf %s", root);
    cr_assert_eq(system(cmd), 0);
}

TestSuite(record, .init = begin, .fini = end, .timeout = 300);

static void put(const char *name, const void *data, size_t len)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0755);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f, "%s", path);
    cr_assert_eq(fwrite(data, 1, len, f), len);
    cr_assert_eq(fclose(f), 0);
}

static const char *get(const char *name)
{
    static char text[8192];
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    return text;
}

static void scrub(void)
{
    struct shk_error err = {""};
    cr_assert_eq(shk_record_scrub(root, true, &err), 0, "%s", err.text);
}

#define CALLS                                                                                      \
    "{\"uname\": {\"nodename\": \"gpu-17.site.example\"}, \"environ\": {\"USER\": \"alice\", "     \
    "\"SLURM_JOB_ACCOUNT\": \"projx\"}, \"ifaddrs\": [{\"name\": \"ib0\", \"addrs\": [{\"addr\": " \
    "\"172.16.5.9\"}, {\"addr\": \"fe80::dead:beef\"}]}, {\"name\": \"ib1\", \"addrs\": "          \
    "[{\"addr\": \"172.16.8.9\"}]}, {\"name\": \"ib2\", \"addrs\": [{\"addr\": "                   \
    "\"172.17.5.9\"}]}]}"

Test(record, made_up_things_have_the_same_form)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"gpu-17.site.example and GPU-17, gpu-170", "node1 and node1, gpu-170"},
        {"/home/alice/x alicex", "/home/user1/x alicex"},
        {"account=projx", "account=account1"},
        {"02:42:ac:11:00:02", "02:00:00:00:00:01"},
        {"80:00:02:08:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:a1:b2:c3", "02:00:00:00:00:02"},
        {"b8ce:f603:00a1:b2c3", "0200:0000:0000:0001"},
        {"fe80:0000:0000:0000:b8ce:f603:00a1:b2c4", "fe80:0000:0000:0000:0200:0000:0000:0002"},
        {"0000:0000:0000:0000:0000:ffff:ac10:0509", "0000:0000:0000:0000:0000:ffff:0a00:0001"},
        {"0000:0000:0000:0000:0000:0000:0000:0000", "0000:0000:0000:0000:0000:0000:0000:0000"},
        {"GPU-3f2504e0-4f89-11d3-9a0c-0305e82c3301", "GPU-00000000-0000-4000-8000-000000000001"},
        {"0000:c1:00.0 0000:c1:00.1", "0000:c1:00.0 0000:c1:00.1"},
        {"version 1.15.2.0, 535.183.01", "version 1.15.2.0, 535.183.01"},
        {"00:00:00:00:00:00", "00:00:00:00:00:00"},
        {"pid 12:34:56 cpu 0-3", "pid 12:34:56 cpu 0-3"},
        {"unique_id 1234567890123\nsimd_count 440", "unique_id 0\nsimd_count 440"},
        {"<info name=\"DMIBoardSerial\" value=\"ABC123\"/>",
         "<info name=\"DMIBoardSerial\" value=\"\"/>"},
    };
    put(".shakedown/hostcalls.json", CALLS, strlen(CALLS));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[32];
        snprintf(name, sizeof name, "sys/f%02zu", i);
        put(name, rows[i].text, strlen(rows[i].text));
    }
    scrub();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[32], shape[256];
        snprintf(name, sizeof name, "sys/f%02zu", i);
        const char *got = get(name);
        /* numbers depend on the order of the files: compare with digits of the counters masked */
        snprintf(shape, sizeof shape, "%s", got);
        if (i >= 3 && i <= 9 && i != 8)
            cr_expect(strlen(got) == strlen(rows[i].want) &&
                          strncmp(got, rows[i].want, strlen(got) - 1) == 0,
                      "%s: %s", rows[i].text, got);
        else
            cr_expect_str_eq(got, rows[i].want, "%s: %s", rows[i].text, got);
    }
}

Test(record, networks_stay_networks)
{
    unsigned a[4], b[4], c[4];
    put(".shakedown/hostcalls.json", CALLS, strlen(CALLS));
    static const char one[] = "172.16.5.9 172.16.8.9 172.17.5.9 8.8.8.8 127.0.0.1";
    put("one", one, strlen(one));
    scrub();
    const char *got = get("one");
    cr_assert_eq(sscanf(got, "%u.%u.%u.%u %u.%u.%u.%u %u.%u.%u.%u", &a[0], &a[1], &a[2], &a[3],
                        &b[0], &b[1], &b[2], &b[3], &c[0], &c[1], &c[2], &c[3]),
                 12, "%s", got);
    cr_expect(a[0] == 10 && a[1] == b[1] && a[1] != c[1] && a[2] != b[2], "%s", got);
    cr_expect_not_null(strstr(got, " 8.8.8.8 127.0.0.1"), "%s", got); /* not of this host */
    got = get(".shakedown/hostcalls.json");
    cr_expect_null(strstr(got, "172."), "%s", got);
    cr_expect_null(strstr(got, "beef"), "%s", got);
    cr_expect_null(strstr(got, "alice"), "%s", got);
    cr_expect_null(strstr(got, "gpu-17"), "%s", got);
}

Test(record, serial_number_of_a_function)
{
    unsigned char config[4096] = {0};
    char path[256];
    config[0x100] = 0x01; /* advanced error reporting, next at 0x148 */
    config[0x102] = 0x82;
    config[0x103] = 0x14;
    config[0x148] = 0x03; /* device serial number */
    memset(config + 0x14c, 0xab, 8);
    put(".shakedown/hostcalls.json", CALLS, strlen(CALLS));
    put("sys/devices/x/config", config, sizeof config);
    scrub();
    snprintf(path, sizeof path, "%s/sys/devices/x/config", root);
    FILE *f = fopen(path, "r");
    cr_assert_eq(fread(config, 1, sizeof config, f), sizeof config);
    fclose(f);
    for (int i = 0; i < 8; i++)
        cr_expect_eq(config[0x14c + i], 0);
    cr_expect_eq(config[0x148], 0x03);
}

/* Other users are left out, and a home keeps being one. */
Test(record, users)
{
    static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
                                 "bob:x:1001:1001:Bob B.:/home/bob:/bin/sh\n"
                                 "carla:x:1000:1000::/home/carla:/bin/sh\n";
    static const char calls[] = "{\"ids\": {\"uid\": 1000}}";
    put(".shakedown/hostcalls.json", calls, strlen(calls));
    put("etc/passwd", passwd, strlen(passwd));
    put("home/carla/.nccl.conf", "NCCL_DEBUG=INFO\n", 16);
    scrub();
    cr_expect_str_eq(get("etc/passwd"), "user1:x:1000:1000::/home/user1:/bin/sh\n");
    cr_expect_str_eq(get("home/user1/.nccl.conf"), "NCCL_DEBUG=INFO\n");
}

static bool keep_none(const char *key)
{
    (void)key;
    return false;
}

/* Reads through links, failures and listings come back as they were. */
Test(record, round_trip)
{
    struct shk_error err = {""};
    struct shk_host *live, *replay;
    struct shk_facts *facts = shk_facts_create();
    char path[256], *text = NULL, *again = NULL, **names = NULL, **names_again = NULL;
    size_t n = 0, m = 0;
    snprintf(path, sizeof path, "%s/capture", root);
    cr_assert_eq(shk_host_open(&live, NULL, &err), 0);
    cr_assert_eq(shk_record_begin(live, path, &err), 0, "%s", err.text);
    cr_assert_eq(shk_host_read(live, "/proc/self/status", &text, NULL, &err), 0, "%s", err.text);
    cr_assert_eq(shk_host_list(live, &names, &n, &err, "/sys/class/net"), 0, "%s", err.text);
    int refused = shk_host_read(live, "/proc/self", &again, NULL, NULL);
    cr_assert_eq(shk_record_finish(live, facts, keep_none, &err), 0, "%s", err.text);
    cr_assert_eq(shk_host_open(&replay, path, &err), 0, "%s", err.text);
    cr_expect_eq(shk_host_read(replay, "/proc/self", &again, NULL, NULL), refused);
    cr_assert_eq(shk_host_read(replay, "/proc/self/status", &again, NULL, &err), 0, "%s", err.text);
    cr_expect_str_eq(again, text);
    cr_assert_eq(shk_host_list(replay, &names_again, &m, &err, "/sys/class/net"), 0, "%s",
                 err.text);
    cr_expect_eq(n, m);
    for (size_t i = 0; i < n && i < m; i++)
        cr_expect_str_eq(names[i], names_again[i]);
    cr_expect(!shk_host_exists(replay, "/proc/2"));
    cr_expect(shk_host_exists(replay, "/.shakedown/recorded"));
    cr_expect_eq(shk_record_begin(replay, "/tmp/x", &err), -EINVAL);
    free(text);
    free(again);
    shk_host_list_free(names);
    shk_host_list_free(names_again);
    shk_host_close(replay);
    shk_host_close(live);
    shk_facts_destroy(facts);
}

Test(record, bad_places)
{
    struct shk_error err = {""};
    struct shk_host *live;
    cr_assert_eq(shk_host_open(&live, NULL, &err), 0);
    put("full/file", "x", 1);
    char path[256];
    snprintf(path, sizeof path, "%s/full", root);
    cr_expect_eq(shk_record_begin(live, path, &err), -ENOTEMPTY);
    cr_expect_not_null(strstr(err.text, path), "%s", err.text);
    snprintf(path, sizeof path, "%s/no/where", root);
    cr_expect_eq(shk_record_begin(live, path, &err), -ENOENT);
    snprintf(path, sizeof path, "%s/full/file", root);
    cr_expect_eq(shk_record_begin(live, path, &err), -ENOTDIR);
    shk_host_close(live);
    cr_expect_lt(shk_record_scrub(root, true, &err), 0);
}
