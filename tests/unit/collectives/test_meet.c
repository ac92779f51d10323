#include "collectives/meet/card.h"
#include "collectives/meet/folder.h"
#include "collectives/meet/greet.h"
#include "collectives/meet/hosts.h"
#include "collectives/meet/meet.h"
#include "collectives/meet/pmi.h"
#include "config/config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void setup(void)
{
    shk_config_install(NULL);
}

TestSuite(meet, .timeout = 100, .init = setup);

static void hex(char *text, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sprintf(text + 2 * i, "%02x", bytes[i]);
}

static void expect_sha(const char *text, size_t times, const char *expected)
{
    unsigned char digest[SHK_SHA256_BYTES];
    char told[65];
    struct shk_sha256 sha;
    shk_sha256_begin(&sha);
    for (size_t i = 0; i < times; i++)
        shk_sha256_add(&sha, text, strlen(text));
    shk_sha256_end(&sha, digest);
    hex(told, digest, sizeof digest);
    cr_expect_str_eq(told, expected);
}

/* FIPS 180-4: the examples that NIST publishes. */
Test(meet, sha256)
{
    expect_sha("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_sha("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect_sha("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void expect_hmac(const char *key, size_t key_len, const char *data, size_t len,
                        const char *expected)
{
    unsigned char mac[SHK_SHA256_BYTES];
    char told[65];
    struct shk_hmac hmac;
    shk_hmac_begin(&hmac, key, key_len);
    shk_hmac_add(&hmac, data, len / 2);
    shk_hmac_add(&hmac, data + len / 2, len - len / 2);
    shk_hmac_end(&hmac, mac);
    hex(told, mac, sizeof mac);
    cr_expect(strncmp(told, expected, strlen(expected)) == 0, "%s, not %s", told, expected);
}

/* RFC 4231, section 4: all seven. */
Test(meet, hmac_sha256)
{
    static const char larger[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    static const char both[] = "This is a test using a larger than block-size key and a larger t"
                               "han block-size data. The key needs to be hashed before being use"
                               "d by the HMAC algorithm.";
    char key[131], data[50], count[25];
    memset(key, 0x0b, 20);
    expect_hmac(key, 20, "Hi There", 8,
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    expect_hmac("Jefe", 4, "what do ya want for nothing?", 28,
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    memset(data, 0xdd, sizeof data);
    expect_hmac(key, 20, data, 50,
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    for (size_t i = 0; i < sizeof count; i++)
        count[i] = (char)(i + 1);
    memset(data, 0xcd, sizeof data);
    expect_hmac(count, 25, data, 50,
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    memset(data, 0x0c, 20);
    expect_hmac(data, 20, "Test With Truncation", 20, "a3b6167473100ee06e0c796c2955552b");
    expect_hmac(key, 131, larger, strlen(larger),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    expect_hmac(key, 131, both, strlen(both),
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

static struct shk_greet_self self_of(unsigned rank, const char *key)
{
    struct shk_greet_self self = {
        .rank = rank, .size = 3, .local_rank = -1, .host = "n1", .version = "1.0"};
    shk_greet_job(self.job, "job 1");
    if (key)
        shk_key_mix(&self.key, key, "test");
    return self;
}

/* What rank 0 thinks, and what the rank is told. */
static enum shk_greet_verdict greet(const struct shk_greet_self *root,
                                    const struct shk_greet_self *rank,
                                    enum shk_greet_verdict *told_p)
{
    struct shk_greet_challenge challenge, seen;
    struct shk_greet_proof proof, read;
    struct shk_greet_welcome welcome, last;
    cr_assert_eq(shk_greet_challenge(&challenge, root), 0);
    *told_p = shk_greet_answer(rank, &challenge, sizeof challenge, &seen, &proof);
    if (*told_p == SHK_GREET_OTHER_JOB)
        return *told_p;
    enum shk_greet_verdict verdict = shk_greet_judge(root, &challenge, &proof, sizeof proof, &read);
    shk_greet_reply(root, &challenge, &read, verdict, 7, &welcome);
    *told_p = shk_greet_end(rank, &seen, &proof, &welcome, sizeof welcome, &last);
    return verdict;
}

Test(meet, greeting)
{
    struct shk_greet_self root = self_of(0, "k"), rank = self_of(1, "k"), other = self_of(1, "K"),
                          none = self_of(1, NULL), open = self_of(0, NULL), job = self_of(1, "k"),
                          old = self_of(1, "k"), size = self_of(1, "k"), far = self_of(9, "k");
    const struct {
        const struct shk_greet_self *root, *rank;
        enum shk_greet_verdict verdict;
    } rows[] = {
        {&root, &rank, SHK_GREET_WELCOME}, {&root, &other, SHK_GREET_WRONG_KEY},
        {&root, &none, SHK_GREET_NO_KEY},  {&open, &rank, SHK_GREET_ODD_KEY},
        {&open, &none, SHK_GREET_WELCOME}, {&root, &job, SHK_GREET_OTHER_JOB},
        {&root, &old, SHK_GREET_VERSION},  {&root, &size, SHK_GREET_SIZE},
        {&root, &far, SHK_GREET_SIZE},
    };
    shk_greet_job(job.job, "job 2");
    snprintf(old.version, sizeof old.version, "0.9");
    size.size = 4;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum shk_greet_verdict told;
        cr_expect_eq(greet(rows[i].root, rows[i].rank, &told), rows[i].verdict, "row %zu", i);
        cr_expect_eq(told, rows[i].verdict, "row %zu: told %d", i, told);
    }
}

/* A rank 0 that has not the key cannot say welcome, and nothing that was changed on the way passes.
 */
Test(meet, greeting_that_was_changed)
{
    struct shk_greet_self root = self_of(0, "k"), thief = self_of(0, "x"), rank = self_of(1, "k");
    struct shk_greet_challenge challenge, seen;
    struct shk_greet_proof proof, read;
    struct shk_greet_welcome welcome, last;
    cr_assert_eq(shk_greet_challenge(&challenge, &root), 0);
    cr_assert_eq(shk_greet_answer(&rank, &challenge, sizeof challenge, &seen, &proof),
                 SHK_GREET_WELCOME);
    shk_greet_reply(&thief, &challenge, &proof, SHK_GREET_WELCOME, 0, &welcome);
    cr_expect_eq(shk_greet_end(&rank, &seen, &proof, &welcome, sizeof welcome, &last),
                 SHK_GREET_WRONG_KEY);
    for (size_t i = 0; i < sizeof proof; i++) {
        struct shk_greet_proof bad = proof;
        ((unsigned char *)&bad)[i] ^= 1;
        cr_expect_neq(shk_greet_judge(&root, &challenge, &bad, sizeof bad, &read),
                      SHK_GREET_WELCOME, "byte %zu", i);
    }
    struct shk_greet_challenge again;
    cr_assert_eq(shk_greet_challenge(&again, &root), 0);
    cr_expect_eq(shk_greet_judge(&root, &again, &proof, sizeof proof, &read), SHK_GREET_WRONG_KEY,
                 "an answer to another challenge");
    cr_expect_eq(shk_greet_judge(&root, &challenge, &proof, sizeof proof - 1, &read),
                 SHK_GREET_GARBLED);
    cr_expect_eq(shk_greet_answer(&rank, &challenge, 12, &seen, &proof), SHK_GREET_GARBLED);
}

static void expect_hosts(const char *text, const char *expected, size_t size)
{
    json_t *hosts = shk_meet_hostlist(text, 6);
    char *told = json_dumps(hosts, JSON_COMPACT);
    cr_expect_str_eq(told, expected, "%s: %s", text, told);
    free(told);
    json_decref(hosts);
    hosts = shk_meet_hostlist(text, 100);
    cr_expect_eq(json_array_size(hosts), size, "%s", text);
    json_decref(hosts);
}

Test(meet, lists_of_hosts)
{
    expect_hosts("shk1", "[\"shk1\"]", 1);
    expect_hosts("shk[1-3,7]", "[\"shk1\",\"shk2\",\"shk3\",\"shk7\"]", 4);
    expect_hosts("nid[008-011],login", "[\"nid008\",\"nid009\",\"nid010\",\"nid011\",\"login\"]",
                 5);
    expect_hosts("r[1-2]n[1-2]-ib,x", "[\"r1n1-ib\",\"r1n2-ib\",\"r2n1-ib\",\"r2n2-ib\",\"x\"]", 5);
    expect_hosts("n[1-9]", "[\"n1\",\"n2\",\"n3\",\"n4\",\"n5\",\"n6\"]", 9);
    static const char *const bad[] = {
        "n[1-",   "n[3-1]",          "n[a]",  "n[]", "n[1-2-3]",
        "a b",    "n[1,]",           "n[-1]", ",",   "n[9999999999999999999]",
        "n[1]]]", "a[1][2][3][4][5]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *hosts = shk_meet_hostlist(bad[i], 4);
        if (strcmp(bad[i], "n[1]]]") != 0)
            cr_expect_eq(json_array_size(hosts), 0, "%s", bad[i]);
        json_decref(hosts);
    }
    expect_hosts("n[0-999999999]m[0-999999999]",
                 "[\"n0m0\",\"n0m1\",\"n0m2\",\"n0m3\",\"n0m4\",\"n0m5\"]", 100);
}

static const char *const *pairs;

static const char *get(const char *name, void *arg)
{
    (void)arg;
    for (const char *const *p = pairs; *p; p += 2)
        if (strcmp(*p, name) == 0)
            return p[1];
    return NULL;
}

static int choose(struct shk_meet *meet, const char *asked, const char *const *variables,
                  struct shk_error *err)
{
    pairs = variables;
    return shk_meet_choose(meet, asked, shk_launch_find(get, NULL), get, NULL, 0, NULL, err);
}

#define VARIABLES(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(meet, ways)
{
    const struct {
        const char *const *variables;
        enum shk_meet_way way;
        unsigned rank, size;
        int local;
        const char *first, *says; /* address of rank 0; why not */
    } rows[] = {
        {VARIABLES("RANK", "1", "WORLD_SIZE", "3", "MASTER_ADDR", "n1", "MASTER_PORT", "29500"),
         SHK_MEET_ADDRESS, 1, 3, -1, "n1", ""},
        {VARIABLES("RANK", "1", "WORLD_SIZE", "3"), SHK_MEET_NONE, 1, 3, -1, NULL, "MASTER_ADDR"},
        {VARIABLES("RANK", "1", "WORLD_SIZE", "3", "MASTER_ADDR", "n1"), SHK_MEET_NONE, 1, 3, -1,
         "n1", "do not distinguish this job from another"},
        {VARIABLES("RANK", "0", "WORLD_SIZE", "1", "MASTER_ADDR", "n1"), SHK_MEET_NONE, 0, 1, -1,
         NULL, ""},
        {VARIABLES("RANK", "3", "WORLD_SIZE", "3", "MASTER_ADDR", "n1"), SHK_MEET_NONE, 3, 3, -1,
         NULL, ""},
        {VARIABLES("TORCHELASTIC_RUN_ID", "r", "RANK", "2", "WORLD_SIZE", "4", "LOCAL_RANK", "0",
                   "MASTER_ADDR", "n1", "MASTER_PORT", "1"),
         SHK_MEET_ADDRESS, 2, 4, 0, "n1", ""},
        {VARIABLES("LWS_LEADER_ADDRESS", "l-0.l", "LWS_GROUP_SIZE", "4", "LWS_WORKER_INDEX", "3"),
         SHK_MEET_ADDRESS, 3, 4, -1, "l-0.l", ""},
        {VARIABLES("SLURM_JOB_ID", "7", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4",
                   "SLURM_PROCID", "2", "SLURM_LOCALID", "0", "SLURM_STEP_NODELIST", "n[3-4]"),
         SHK_MEET_ADDRESS, 2, 4, 0, "n3", ""},
        {VARIABLES("SLURM_STEP_NUM_TASKS", "4", "SLURM_PROCID", "2"), SHK_MEET_NONE, 2, 4, -1, NULL,
         "SLURM_STEP_NODELIST"},
        {VARIABLES("PMI_RANK", "1", "PMI_SIZE", "2", "PMI_FD", "9"), SHK_MEET_PMI, 1, 2, -1, NULL,
         ""},
        {VARIABLES("PMI_ID", "1", "PMI_PORT", "h:1"), SHK_MEET_PMI, 1, 0, -1, NULL, ""},
        {VARIABLES("PMI_RANK", "1", "PMI_SIZE", "2", "PMI_FD", "9", "RANK", "1", "WORLD_SIZE", "4",
                   "TORCHELASTIC_RUN_ID", "r"),
         SHK_MEET_NONE, 1, 4, -1, NULL, "MASTER_ADDR"},
        {VARIABLES("OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_RANK", "1",
                   "OMPI_COMM_WORLD_LOCAL_RANK", "1", "OMPI_COMM_WORLD_LOCAL_SIZE", "2",
                   "OMPI_MCA_ess_base_jobid", "77"),
         SHK_MEET_ADDRESS, 1, 2, 1, "127.0.0.1", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shk_meet meet;
        struct shk_error err = {""};
        cr_assert_eq(choose(&meet, NULL, rows[i].variables, &err), 0, "row %zu", i);
        cr_expect_eq(meet.way, rows[i].way, "row %zu: way %d", i, meet.way);
        cr_expect_eq(meet.rank, rows[i].rank, "row %zu", i);
        cr_expect_eq(meet.size, rows[i].size, "row %zu", i);
        cr_expect_eq(meet.local_rank, rows[i].local, "row %zu", i);
        const char *first = json_string_value(json_array_get(meet.addresses, 0));
        cr_expect_str_eq(first ? first : "", rows[i].first ? rows[i].first : "", "row %zu", i);
        cr_expect(strstr(meet.why_not, rows[i].says), "row %zu: %s", i, meet.why_not);
        cr_expect_eq(!*meet.why_not, !*rows[i].says, "row %zu: %s", i, meet.why_not);
        shk_meet_clear(&meet);
    }
}

/* Other jobs have other names, and other ranks of this one the same. */
Test(meet, names_of_jobs)
{
    static const char *const port[] = {"1", "1", "2"}, *const rank[] = {"0", "1", "0"};
    struct shk_meet meet[3];
    struct shk_error err = {""};
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(
            choose(&meet[i], NULL,
                   VARIABLES("SLURM_JOB_ID", "7", "SLURM_STEP_ID", port[i], "SLURM_STEP_NUM_TASKS",
                             "2", "SLURM_PROCID", rank[i], "SLURM_STEP_NODELIST", "n1"),
                   &err),
            0);
    cr_expect_arr_eq(meet[0].job, meet[1].job, sizeof meet->job);
    cr_expect_eq(meet[0].port[0], meet[1].port[0]);
    cr_expect_arr_neq(meet[0].job, meet[2].job, sizeof meet->job);
    for (size_t i = 0; i < 3; i++) {
        cr_expect(meet[i].port[0] >= 21000 && meet[i].port[0] < 29000);
        shk_meet_clear(&meet[i]);
    }
}

Test(meet, cards)
{
    static const char key[] = "00112233445566778899aabbccddeeff";
    char read[SHK_CARD_KEY + 1];
    unsigned port = 0;
    json_t *addresses = NULL;
    char *card = shk_card_write(key, 4711, false, 1000);
    cr_assert_eq(shk_card_read(card, read, &port, &addresses), 0, "%s", card);
    cr_expect_str_eq(read, key);
    cr_expect_eq(port, 4711);
    cr_expect_geq(json_array_size(addresses), 1);
    cr_expect_null(strchr(card, ' '));
    json_decref(addresses);
    free(card);
    card = shk_card_write(key, 1, false, 10);
    cr_expect(strstr(card, ",1,127.0.0.1"), "nothing fits: %s", card);
    free(card);
    static const char *const bad[] = {"",
                                      "shakedown1 a 1 b",
                                      "shakedown2",
                                      "shakedown2,xyz,1,a",
                                      "shakedown2,00112233445566778899aabbccddeeff,0,a",
                                      "shakedown2,00112233445566778899aabbccddeeff,99999,a",
                                      "shakedown2,00112233445566778899aabbccddeeff,1",
                                      "shakedown2,00112233445566778899aabbccddeeff,1,",
                                      "shakedown2,00112233445566778899aabbccddeeff,1,a,",
                                      "shakedown2,00112233445566778899aabbccddeeff00,1,a"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_eq(shk_card_read(bad[i], read, &port, &addresses), -EPROTO, "%s", bad[i]);
}

static void say(int fd, const char *answers)
{
    cr_assert_eq(write(fd, answers, strlen(answers)), (ssize_t)strlen(answers));
}

#define PMI_START                                                                                  \
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"                                   \
    "cmd=my_kvsname kvsname=kvs_1\n"

/* A process manager that has said all that it will say. */
static int pmi(const char *answers, unsigned rank, struct shk_pmi *pmi, struct shk_error *err)
{
    int fds[2], rc;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    say(fds[1], answers);
    *pmi = (struct shk_pmi){.rank = rank, .size = 2};
    rc = shk_pmi_exchange(fds[0], -1, "card", 100, pmi, err);
    close(fds[0]);
    close(fds[1]);
    return rc;
}

Test(meet, pmi)
{
    struct shk_pmi got;
    struct shk_error err = {""};
    cr_expect_eq(
        pmi(PMI_START "cmd=put_result rc=0\ncmd=barrier_out\ncmd=finalize_ack\n", 0, &got, &err), 0,
        "%s", err.text);
    cr_expect_eq(pmi(PMI_START "cmd=barrier_out\ncmd=get_result rc=0 value=a,b\ncmd=finalize_ack\n",
                     1, &got, &err),
                 0, "%s", err.text);
    cr_expect_str_eq(got.card, "a,b");
    free(got.card);
    cr_expect_eq(pmi(PMI_START, 1, &got, &err), -ETIMEDOUT);
    cr_expect(got.late && strstr(err.text, "did not reach the barrier"), "%s", err.text);
    cr_expect_str_eq(got.space, "kvs_1");
    cr_expect_eq(pmi("cmd=response_to_init rc=-1\n", 1, &got, &err), -ENOENT);
    cr_expect_eq(pmi("HTTP/1.1 400 Bad Request\n", 1, &got, &err), -EPROTO);
    cr_expect_eq(pmi(PMI_START "cmd=barrier_out\ncmd=get_result rc=0\n", 1, &got, &err), -EPROTO);
    char *endless = malloc(SHK_PMI_LINE + 100);
    memset(endless, 'x', SHK_PMI_LINE + 99);
    endless[SHK_PMI_LINE + 99] = '\0';
    cr_expect_eq(pmi(endless, 1, &got, &err), -EPROTO);
    cr_expect(strstr(err.text, "has no end"), "%s", err.text);
    free(endless);
}

Test(meet, folder)
{
    char folder[] = "/tmp/shk-meet-XXXXXX", path[128], *card = NULL;
    unsigned char job[32] = {1, 2, 3};
    struct shk_error err = {""};
    cr_assert(mkdtemp(folder));
    cr_expect_eq(shk_folder_get(folder, job, &card, &err), 0);
    cr_expect_null(card);
    cr_assert_eq(shk_folder_put(folder, job, "old", &err), 0);
    cr_assert_eq(shk_folder_put(folder, job, "new", &err), 0, "%s", err.text);
    cr_assert_eq(shk_folder_get(folder, job, &card, &err), 0);
    cr_expect_str_eq(card, "new");
    free(card);
    snprintf(path, sizeof path, "%s/shakedown-0102030000000000", folder);
    cr_assert_eq(chmod(path, 0644), 0);
    cr_expect_eq(shk_folder_get(folder, job, &card, &err), -EACCES);
    shk_folder_drop(folder, job);
    cr_assert_eq(symlink("/etc/hostname", path), 0);
    cr_expect_lt(shk_folder_get(folder, job, &card, &err), 0, "a link is not followed");
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(rmdir(folder), 0, "something was left behind");
    cr_expect_eq(shk_folder_put(folder, job, "x", &err), -ENOENT);
}
