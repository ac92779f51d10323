#include "reports/privacy/scrub.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(scrub, .timeout = 100);

struct scrub_case {
    const char *name, *in, *out;
};

static void scrub_check(struct shk_scrub *scrub, const struct scrub_case *cases, size_t count)
{
    cr_assert_not_null(scrub);
    for (size_t i = 0; i < count; i++) {
        char *out = shk_scrub_text(scrub, cases[i].in);
        cr_assert_not_null(out);
        cr_expect_str_eq(out, cases[i].out, "%s: %s", cases[i].name, out);
        free(out);
    }
    shk_scrub_destroy(scrub);
}

#define CHECK(scrub, cases) scrub_check(scrub, cases, sizeof(cases) / sizeof *(cases))

Test(scrub, secrets)
{
    static const struct scrub_case cases[] = {
        {"assignment", "export MY_TOKEN=abc123 next", "export MY_TOKEN=[redacted] next"},
        {"colon", "password: hunter2", "password: [redacted]"},
        {"quoted", "API_KEY='a b c' x", "API_KEY='[redacted]' x"},
        {"json", "{\"secret\":\"a,b\",\"n\":1}", "{\"secret\":\"[redacted]\",\"n\":1}"},
        {"option", "tool --auth-token xyz run", "tool --auth-token [redacted] run"},
        {"user in a URL", "https://me:pw@host/x", "https://[redacted]@host/x"},
        {"URL without one", "https://host:8080/x@y", "https://host:8080/x@y"},
        {"AWS key", "id AKIAIOSFODNN7EXAMPLE", "id [redacted]"},
        {"GitHub token", "ghp_0123456789abcdef0123456789abcdef0123", "[redacted]"},
        {"Hugging Face token", "use hf_abcdefghijklmnopqrstuvwxyz", "use [redacted]"},
        {"web token", "eyJhbGciOi.eyJzdWIiOi.SflKxwRJSM", "[redacted]"},
        {"private key", "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nend",
         "[redacted]\nend"},
        {"private key without an end", "-----BEGIN PRIVATE KEY-----\nMII", "[redacted]"},
        {"certificate is public", "-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----"},
        {"partition key is none", "NCCL_IB_PKEY=3", "NCCL_IB_PKEY=3"},
        {"prose", "the token was not found", "the token was not found"},
        {"hosts stay", "nid001 10.0.0.1", "nid001 10.0.0.1"},
    };
    struct shk_scrub *scrub = shk_scrub_create(SHK_SCRUB_SECRETS);
    shk_scrub_name(scrub, SHK_SCRUB_HOST, "nid001");
    CHECK(scrub, cases);
}

Test(scrub, identity)
{
    static const struct scrub_case cases[] = {
        {"host", "on nid001:", "on node-1:"},
        {"the other", "nid002,nid001", "node-2,node-1"},
        {"with its domain", "nid001.cluster.example.org failed", "node-1 failed"},
        {"longer name is another host", "nid0011", "nid0011"},
        {"part of a word", "nid001-hsn0 xnid001", "node-1-hsn0 xnid001"},
        {"list", "SLURM_NODELIST=nid[001-002]", "SLURM_NODELIST=nodes-1"},
        {"user", "/scratch/alice/x by alice", "/scratch/user-1/x by user-1"},
        {"user seen in a path", "/home/bob/.bashrc and bob", "/home/user-2/.bashrc and user-2"},
        {"IPv4", "10.1.2.3:4444 and 10.1.2.3/16", "addr-1:4444 and addr-1/16"},
        {"IPv6", "fe80::1ff:fe23:4567:890a%hsn0", "addr-2%hsn0"},
        {"not private", "127.0.0.1 ::1 :: 0.0.0.0 255.255.0.0",
         "127.0.0.1 ::1 :: 0.0.0.0 255.255.0.0"},
        {"MAC", "link 02:00:00:00:0a:0b up", "link mac-1 up"},
        {"hardware address of IPoIB", "80:00:02:08:fe:80:00:00:00:00:00:00:50:6b:4b:03:00:c2:b3:a4",
         "mac-2"},
        {"GUID", "506b:4b03:00c2:b3a4 0x506b4b0300c2b3a4", "guid-1 guid-2"},
        {"GID is an address", "fe80:0000:0000:0000:506b:4b03:00c2:b3a4", "addr-3"},
        {"mask is no GUID", "0xffffffffffffffff", "0xffffffffffffffff"},
        {"UUID", "GPU-8a56a4bc-e184-a047-2620-be19fdf913d5", "GPU-uuid-1"},
        {"PCI address", "0000:41:00.0 41:00.0", "0000:41:00.0 41:00.0"},
        {"time", "12:34:56", "12:34:56"},
        {"version that was learnt", "libfabric 1.15.2.0", "libfabric 1.15.2.0"},
        {"version in a path", "/opt/libfabric/9.8.7.6/lib", "/opt/libfabric/9.8.7.6/lib"},
        {"address in a URL", "http://10.1.2.3/x", "http://addr-1/x"},
        {"root stays", "/home/root root", "/home/root root"},
        {"secrets stay for the other switch", "password=x", "password=x"},
        {"empty", "", ""},
        {"invalid UTF-8 passes", "\xFF nid001 \xC3", "\xFF node-1 \xC3"},
    };
    struct shk_scrub *scrub = shk_scrub_create(SHK_SCRUB_IDENTITY);
    cr_assert_not_null(scrub);
    shk_scrub_name(scrub, SHK_SCRUB_HOST, "nid001.cluster.example.org");
    shk_scrub_name(scrub, SHK_SCRUB_HOST, "nid002");
    shk_scrub_name(scrub, SHK_SCRUB_HOST, "nid001");
    shk_scrub_name(scrub, SHK_SCRUB_HOST, "localhost");
    shk_scrub_name(scrub, SHK_SCRUB_NODELIST, "nid[001-002]");
    shk_scrub_name(scrub, SHK_SCRUB_USER, "alice");
    shk_scrub_name(scrub, SHK_SCRUB_USER, "root");
    shk_scrub_keep(scrub, "1.15.2.0");
    CHECK(scrub, cases);
}

Test(scrub, a_megabyte)
{
    size_t size = 1 << 20;
    char *big = malloc(size + 1);
    cr_assert_not_null(big);
    for (size_t i = 0; i < size; i++)
        big[i] = "a.-:/ 1"[i * i % 7];
    big[size] = '\0';
    struct shk_scrub *scrub = shk_scrub_create(SHK_SCRUB_IDENTITY | SHK_SCRUB_SECRETS);
    cr_assert_not_null(scrub);
    shk_scrub_name(scrub, SHK_SCRUB_HOST, "n");
    char *out = shk_scrub_text(scrub, big);
    cr_expect_not_null(out);
    free(out);
    free(big);
    shk_scrub_destroy(scrub);
}
