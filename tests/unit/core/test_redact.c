#include "core/facts/facts.h"
#include "core/redact/redact.h"
#include "core/result/finding.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(redact, .timeout = 150);

struct redact_case {
    const char *in, *out;
};

/* Made up, and put together here so that no scanner takes this file for a leak. */
#define GHP                                                                                        \
    "gh"                                                                                           \
    "p_0123456789abcdef0123456789abcdef0123"
#define AWS                                                                                        \
    "AK"                                                                                           \
    "IAIOSFODNN7EXAMPLE"
#define SLACK                                                                                      \
    "xo"                                                                                           \
    "xb-123456789012-abcdefABCDEF"

Test(redact, texts)
{
    static const struct redact_case cases[] = {
        /* assignments */
        {"pw=hunter2 quiet", "pw=[redacted] quiet"},
        {"root=/dev/sda rd.luks.key=/keyfile:LABEL=x ro",
         "root=/dev/sda rd.luks.key=[redacted] ro"},
        {"DB_PASS=s3cr3t;DB_HOST=h", "DB_PASS=[redacted];DB_HOST=h"},
        {"REDIS_AUTH=open-sesame", "REDIS_AUTH=[redacted]"},
        {"MYSQL_PWD=abc,x", "MYSQL_PWD=[redacted]"},
        {"mount -o username=me,password=ab,cd,domain=d /x",
         "mount -o username=me,password=[redacted],domain=d /x"},
        {"rd.luks.passphrase=ab;c)d'e ro", "rd.luks.passphrase=[redacted] ro"},
        {"(--password=ab&cd) {token=a,n:1} [pw=b]",
         "(--password=[redacted]) {token=[redacted],n:1} [pw=[redacted]]"},
        {"password   = a1", "password   = [redacted]"},
        {"password\t=\ta1", "password\t=\t[redacted]"},
        {"password : a1, b", "password : [redacted], b"},
        {"password => a1", "password => [redacted]"},
        {"password:=a1 db.password==a1", "password:=[redacted] db.password==[redacted]"},
        {"<password>two words</password>", "<password>[redacted]</password>"},
        {"q=%22pass%22&%22password%22%3A%22a b%22",
         "q=%22pass%22&%22password%22%3A%22[redacted] b%22"},
        {"tool -password a1 -token  a2 --pass a3",
         "tool -password [redacted] -token  [redacted] --pass [redacted]"},
        {"rootpw=a1 dbPass=a1 userPw: a1 db_pass: a1",
         "rootpw=[redacted] dbPass=[redacted] userPw: [redacted] db_pass: [redacted]"},
        {"DB_PASS2=a1 DB_PASS_2=a1 psk=a1",
         "DB_PASS2=[redacted] DB_PASS_2=[redacted] psk=[redacted]"},
        {"PresharedKey = abcdefghij0123456789=", "PresharedKey = [redacted]"},
        {"{\"auths\":{\"https://r/v1/\":{\"auth\":\"dXNlcjpwYXNz\"}}}",
         "{\"auths\":{\"https://r/v1/\":{\"auth\":\"[redacted]\"}}}"},
        /* options of tools */
        {"sshpass -p a1 ssh -p 2222 h", "sshpass -p [redacted] ssh -p 2222 h"},
        {"sshpass -pa1 ssh h", "sshpass -p[redacted] ssh h"},
        {"/usr/bin/ipmitool -U ADMIN -P 'a 1' x", "/usr/bin/ipmitool -U ADMIN -P '[redacted]' x"},
        {"docker login -u me -p a1 r", "docker login -u me -p [redacted] r"},
        {"mysql -u root -pa1 db", "mysql -u root -p[redacted] db"},
        {"Uid=sa;Pwd=abc;", "Uid=sa;Pwd=[redacted];"},
        {"PWD=/root OLDPWD=~", "PWD=/root OLDPWD=~"},
        {"curl -u admin:hunter2 h", "curl -u admin:[redacted] h"},
        {"curl --user=me:Ab h", "curl --user=me:[redacted] h"},
        {"docker run -u 1000:1000 --user me:staff x", "docker run -u 1000:1000 --user me:staff x"},
        {"next=access_token%3DaBc1&x=2", "next=access_token%3D[redacted]&x=2"},
        {"MY_BEARER=a1b2c3d4e5", "MY_BEARER=[redacted]"},
        {"NCCL_AUTH_TOKEN = made-up-secret: [redacted], but",
         "NCCL_AUTH_TOKEN = [redacted] [redacted], but"},
        {"tool --password=abc -x", "tool --password=[redacted] -x"},
        {"tool --password abc -x", "tool --password [redacted] -x"},
        {"tool --password --verbose", "tool --password --verbose"},
        {"https://h/p?token=abc&n=1", "https://h/p?token=[redacted]&n=1"},
        {"https://h/p?key=AbCdEfGh12&n=1", "https://h/p?key=[redacted]&n=1"},
        {"https://h/b?sv=1&sig=AbC%2FdEf12", "https://h/b?sv=1&sig=[redacted]"},
        {"AccountName=a;AccountKey=Zm9vYmFy==;X=1", "AccountName=a;AccountKey=[redacted];X=1"},
        {"{\"password\": \"a\\\"b\", \"n\": 1}", "{\"password\": \"[redacted]\", \"n\": 1}"},
        {"{\\\"client_secret\\\": \\\"abc\\\"}", "{\\\"client_secret\\\": \\\"[redacted]\\\"}"},
        {"NCCL INFO NCCL_API_KEY set by environment to abc",
         "NCCL INFO NCCL_API_KEY set by environment to [redacted]"},
        {"accessToken: abc", "accessToken: [redacted]"},
        {"TOKENIZER_API_KEY=abc", "TOKENIZER_API_KEY=[redacted]"},
        /* headers */
        {"curl -H 'Authorization: Bearer abc.def' x", "curl -H 'Authorization: [redacted]' x"},
        {"Authorization: Basic dXNlcjpwYXNz", "Authorization: [redacted]"},
        {"Authorization: AWS4-HMAC-SHA256 SignedHeaders=host, Signature=fe5f80",
         "Authorization: [redacted]"},
        {"curl -b x -H \"Cookie: a=1; b=2\" h", "curl -b x -H \"Cookie: [redacted]\" h"},
        {"bearer a1b2c3", "bearer [redacted]"},
        /* logins */
        {"https://me:pw@host/x", "https://[redacted]@host/x"},
        {"proxy=me:pass@proxy.site:3128", "proxy=me:[redacted]@proxy.site:3128"},
        {"https://me:p@ss@host/x@y", "https://[redacted]@host/x@y"},
        {"redis://:p#s/s?@host:6379/0", "redis://[redacted]@host:6379/0"},
        {"https://0123456789abcdef0123456789abcdef@h.io/1", "https://[redacted]@h.io/1"},
        {"netroot=iscsi:me:a1b2@192.168.0.1::3260:1:iqn.x",
         "netroot=iscsi:me:[redacted]@192.168.0.1::3260:1:iqn.x"},
        /* forms */
        {"gl"
         "pat-abcdefghij0123456789",
         "[redacted]"},
        {"hf"
         "_abcdefghij0123456789abcd",
         "[redacted]"},
        {"xapp"
         "-abcdefghij",
         "[redacted]"},
        {"ya2"
         "9.abcdefghij0123456789",
         "[redacted]"},
        {"np"
         "m_abcdefghij0123456789abcdefghij",
         "[redacted]"},
        {"py"
         "pi-abcdefghij0123456789abcdefghij",
         "[redacted]"},
        {"nva"
         "pi-abcdefghij0123456789abcdefghij",
         "[redacted]"},
        {"do"
         "p_v1_abcdefghij0123456789abcdefghij",
         "[redacted]"},
        {"dck"
         "r_pat_abcdefghij0123456789",
         "[redacted]"},
        {"tsk"
         "ey-abcdefghij0123456789",
         "[redacted]"},
        {"gs"
         "k_abcdefghij0123456789abcdefghij",
         "[redacted]"},
        {"rk"
         "_live_abcdefghij0123456789",
         "[redacted]"},
        {"SG"
         ".abcdefghij0123456789abcdefghij0123456789abcd",
         "[redacted]"},
        {"ap"
         "i_org_abcdefghij0123456789",
         "[redacted]"},
        {"hooks.slack"
         ".com/services/abcdefghij0123456789",
         "[redacted]"},
        {"AGE-SECRET"
         "-KEY-1abcdefghij0123456789abcdefghij0123456789",
         "[redacted]"},
        {"AB"
         "IAABCDEFGHIJ234567",
         "[redacted]"},
        {"A3"
         "TXABCDEFGHIJ234567",
         "[redacted]"},
        {"LTA"
         "I5tabcdefghij0123456789",
         "[redacted]"},
        {"GOC"
         "SPX-abcdefghijklmnopqrstuvwxyz12",
         "[redacted]"},
        {"da"
         "pi0123456789abcdef0123456789abcdef",
         "[redacted]"},
        {"id 1xA8"
         "Q~abcdefghij_klmnopqrst.uvwxyz12345, x",
         "id [redacted], x"},
        {"do"
         "o_v1_abcdefghij0123456789abcdefghij",
         "[redacted]"},
        {"gl"
         "rt-abcdefghij0123456789",
         "[redacted]"},
        {"gl"
         "sa_abcdefghij0123456789abcdefghijkl_01234567",
         "[redacted]"},
        {"sk"
         "_test_abcdefghij0123456789",
         "[redacted]"},
        {"r"
         "8_abcdefghijABCDEFGHIJ0123456789abcdefg",
         "[redacted]"},
        {"wandb"
         "_v1_abcdefghijABCDEFGHIJ0123456789abcdefghij",
         "[redacted]"},
        {"DHH"
         "C-1:00:abcdefghijklmnopqrstuvwxyz0123456789=: ok",
         "[redacted] ok"},
        {"id " AWS ", " GHP, "id [redacted], [redacted]"},
        {"NET=" GHP, "NET=[redacted]"},
        {SLACK, "[redacted]"},
        {"AIza"
         "SyA-1234567890abcdefghijklmnopqrstu",
         "[redacted]"},
        {"github_"
         "pat_11ABCDEFG0123456789_abcdefghij",
         "[redacted]"},
        {"sk-"
         "ant-api03-AbCdEfGhIjKlMnOpQr-x",
         "[redacted]"},
        {"hvs."
         "CAESIJ0123456789abcdefghij",
         "[redacted]"},
        {"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----\n",
         "[redacted]\n"},
        {"eyJ"
         "hbGciOi.eyJzdWIiOi.SflKxwRJSM",
         "[redacted]"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *once = shk_redact(cases[i].in), *twice = once ? shk_redact(once) : NULL;
        cr_assert_not_null(twice);
        cr_expect_str_eq(once, cases[i].out, "%s", once);
        cr_expect_str_eq(twice, once, "twice: %s", twice);
        free(once);
        free(twice);
    }
}

Test(redact, texts_without_a_secret)
{
    static const char *const texts[] = {
        "the token was not found",
        "http://host:8080/@scope/pkg",
        "http://[fe80::1]:80/x@y",
        "https://user@host/x",
        "ssh -p 2222 host",
        "srun -p gpu hostname",
        "mysql -p db",
        "DISKBYPASS=fast lowpass=abc",
        "sortKey=name, hotKey=abcdef",
        "PASS: all tests, pass : 3 of 3",
        "\"auth\": \"auth/munge\"",
        "rank:12345@10.0.0.1",
        "sysroot /etc/passwd: Not a directory",
        "a bearer of news",
        "Bearer authentication is off",
        "export WANDB_API_KEY=$WANDB_API_KEY",
        "TOKEN=<your token>",
        "NCCL_IB_PKEY=0x7fff",
        "OFI_NCCL_MR_KEY_SIZE=4",
        "FI_CXI_PROV_KEY_CACHE=1",
        "PWD=/home/u OLDPWD=/tmp",
        "SINGULARITY_PWD=/work",
        "SLURM_SUBMIT_DIR=/x",
        "max_tokens=4096",
        "max_tokens: 512/1024",
        "TOKENIZERS_PARALLELISM=false",
        "GIT_AUTHOR=jane",
        "DISK_BYPASS=on",
        "http_auth=none",
        "AUTH=munge",
        "MPICH_OFI_NIC_POLICY=GPU",
        "key=value",
        "PASSWORD_FILE=/run/secrets/x",
        "https://host:8080/x@y",
        "ssh://git@host/x",
        "AKIA",
        "sk-node-0001-0002-0003-lower-case-only",
        "hf_hub_download_of_a_long_name_here",
        "12:34:56@host.a",
        "pmix-server.4121;tcp4://127.0.0.1:40961",
        "prterun-host-1234@1,0.0",
        "pass=12 fail=3",
        "NCCL_SOCKET_IFNAME set by environment to eth0",
        "-----BEGIN CERTIFICATE-----",
        "git show 54ff02ede557dbaf942f61fdfdc83878368d126a",
        "uuid 4f6d1e52-7c2a-4c5f-9a5e-3f1d2c4b5a69",
        "0000:41:00.0",
        "mlx5_bond_0:1:2,mlx5_bond_1:1:2",
        "CONFIG_MODULE_SIG_KEY_TYPE_RSA=y",
        "BOOT_IMAGE=(hd0,gpt2)/vmlinuz root=UUID=1-2 iommu=pt",
        "the name ends in PASS: 4 of 4",
        "compass=north",
        "[redacted]",
        "TOKEN=[redacted]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *out = shk_redact(texts[i]);
        cr_expect_str_eq(out, texts[i], "%s", out);
        free(out);
    }
}

/* Names that are near to those of secrets. */
Test(redact, values_by_name)
{
    static const struct {
        const char *name, *value;
        bool secret;
    } rows[] = {
        {"NCCL_X_PW", "a", true},
        {"NCCL_X_PASS2", "a", true},
        {"NCCL_rootpw", "a", true},
        {"NCCL_NET", "x -token abc", true},
        {"NCCL_NET", "password  = abc", true},
        {"NCCL_X_PASS", "hunter2", true},
        {"NCCL_X_AUTH", "abc", true},
        {"NCCL_X_PWD", "abc", true},
        {"NCCL_X_PASSPHRASE", "1", true},
        {"NCCL_X_KEY", "abc", true},
        {"nccl_x_token", "abc", true},
        {"NCCL_NET", "Bearer abcd", true},
        {"NCCL_NET", "--password=a", true},
        {"NCCL_NET", "a,pw=b", true},
        {"NCCL_NET", "x?token=abc", true},
        {"NCCL_NET", AWS, true},
        {"NCCL_NET", GHP, true},
        {"NCCL_PW", "", false},
        {"PWD", "/x", false},
        {"OLDPWD", "/x", false},
        {"NCCL_X_PWD", "/x", false},
        {"NCCL_X_BYPASS", "abc", false},
        {"NCCL_X_AUTHOR", "abc", false},
        {"NCCL_X_AUTH", "none", false},
        {"NCCL_X_PASS", "1", false},
        {"NCCL_X_KEY", "0x7fff", false},
        {"NCCL_IB_PKEY", "abc", false},
        {"MPICH_GPU_IPC_CACHE_MAX_SIZE", "50", false},
        {"NCCL_X_TOKEN_FILE", "/x", false},
        {"NCCL_X_COMPASS", "north", false},
        {"NCCL_NET", "IB", false},
        {"NCCL_NET_PLUGIN", "aws-ofi", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why = NULL;
        cr_expect_eq(shk_redact_value(rows[i].name, rows[i].value, &why), rows[i].secret, "%s=%s",
                     rows[i].name, rows[i].value);
        cr_expect_eq(why != NULL, rows[i].secret, "%s", rows[i].name);
    }
}

/* What is stored can be read by nobody, whoever stored it. */
Test(redact, no_fact_holds_one)
{
    static const char document[] =
        "{'schema':'shakedown.facts/1','facts':{"
        "'env.NCCL_AUTH_TOKEN':{'state':'present','value':'made-up','source':'environment'},"
        "'env.file.NCCL_X_PW':'made-up','env.NCCL_NET':'made-up?token=made-up',"
        "'env.NCCL_DEBUG':'INFO','kernel.cmdline':'ro rd.luks.key=made-up quiet',"
        "'x.a':[1,{'password':'made-up','n':[null,'pw=made-up']},{'name':'X_SECRET','value':'made-"
        "up'}],"
        "'x.b':{'state':'failed','source':'--password=made-up','reason':'pw=made-up x'}}}";
    char *text = strdup(document);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    json_t *doc = json_loads(text, 0, NULL);
    cr_assert_not_null(doc);
    struct shk_facts *facts = NULL;
    struct shk_error err = {""};
    cr_assert_eq(shk_facts_from_json(&facts, doc, &err), 0, "%s", err.text);
    struct shk_fact fact;
    cr_assert(shk_facts_get(facts, "env.NCCL_AUTH_TOKEN", &fact));
    cr_expect_eq(fact.state, SHK_FACT_FAILED);
    cr_expect_str_eq(fact.source, "environment");
    cr_expect_str_eq(fact.reason, "withheld: looks like a secret (its name contains TOKEN)");
    cr_expect(shk_facts_get(facts, "env.NCCL_NET", &fact) && fact.state == SHK_FACT_FAILED);
    cr_expect_str_eq(shk_facts_get_text(facts, "env.NCCL_DEBUG"), "INFO");
    cr_expect_str_eq(shk_facts_get_text(facts, "kernel.cmdline"),
                     "ro rd.luks.key=[redacted] quiet");
    json_t *out = shk_facts_to_json(facts);
    char *dump = json_dumps(out, 0);
    cr_expect_null(strstr(dump, "made-up"), "%s", dump);
    char *before = json_dumps(doc, 0);
    cr_expect_not_null(strstr(before, "made-up"), "the document of the caller is its own");
    free(before);
    free(dump);
    free(text);
    json_decref(out);
    json_decref(doc);
    shk_facts_destroy(facts);
}

Test(redact, no_finding_holds_one)
{
    struct shk_findings *list = shk_findings_create();
    shk_findings_add(list, &(struct shk_finding_in){.id = "a",
                                                    .family = "b",
                                                    .setting = "NCCL_X_TOKEN",
                                                    .verdict = SHK_WARN,
                                                    .evidence = SHK_TESTED,
                                                    .observed = "made-up",
                                                    .why = "pw=made-up is set",
                                                    .fix = "export X_PASSWORD=made-up"});
    const struct shk_finding *row = shk_findings_at(list, 0);
    cr_expect_str_eq(row->observed, "[redacted]");
    cr_expect_str_eq(row->why, "pw=[redacted] is set");
    cr_expect_null(row->fix, "a line that lost its value is none to run");
    cr_expect_str_eq(row->advice, "export X_PASSWORD=[redacted]");
    shk_findings_destroy(list);
}

/* Texts of strangers that repeat what a pattern begins with: the time stays linear. */
Test(redact, a_long_text_of_beginnings)
{
    static const char *const parts[] = {
        "eyJ-", "sk-",   "token", "a-b.",        "xoxb",      "Bearer ", "://a",
        "pw=;", "?key=", "a:b:",  "-----BEGIN ", "tokens=1=", "key=",    "--a "};
    enum { SIZE = 1 << 18 };
    char *text = malloc(SIZE + 1);
    cr_assert_not_null(text);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t n = strlen(parts[i]);
        for (size_t k = 0; k < SIZE; k++)
            text[k] = parts[i][k % n];
        text[SIZE] = '\0';
        char *out = shk_redact(text);
        cr_expect_not_null(out, "%s", parts[i]);
        free(out);
    }
    free(text);
}
