#include "hosttree.h"

#include <stdlib.h>

TREE_SUITE(conffile);

static void user(const char *environment)
{
    char calls[1024];
    snprintf(calls, sizeof calls, "{\"ids\":{\"uid\":1000,\"gid\":1000},\"environ\":%s}",
             environment);
    tree_hostcalls(calls);
    tree_put("/etc/passwd", "root:x:0:0::/root:/bin/sh\nu:x:1000:1000::/home/u:/bin/sh\n");
}

/* The problem reported for a line, "" when there is none. */
static const char *problem_at(const char *path, int line)
{
    size_t i;
    json_t *item;
    if (tree_state("env.file_problems") != SHK_FACT_PRESENT)
        return "";
    json_array_foreach(tree_value("env.file_problems"), i, item)
    {
        json_t *at = json_object_get(item, "line");
        if (strcmp(tree_item_text(item, "path"), path) == 0 &&
            (line ? json_integer_value(at) == line : json_is_null(at)))
            return tree_item_text(item, "problem");
    }
    return "";
}

static const char *state_of(const char *path)
{
    return tree_item_text(tree_item("env.files", "path", path), "state");
}

Test(conffile, none)
{
    user("{}");
    tree_run(&shk_probe_conffile);
    expect_absent("env.file_problems");
    cr_expect_str_eq(state_of("/home/u/.nccl.conf"), "absent");
    cr_expect_str_eq(state_of("/etc/nccl.conf"), "absent");
    cr_expect_str_eq(state_of("/home/u/.rccl.conf"), "absent");
    cr_expect_str_eq(state_of("/etc/rccl.conf"), "absent");
    cr_expect_str_eq(state_of("/etc/libfabric.conf"), "absent");
}

Test(conffile, the_same_line_twice_is_no_problem)
{
    user("{}");
    tree_put("/home/u/.nccl.conf", "NCCL_DEBUG=WARN\nNCCL_ALGO=Ring\n");
    tree_put("/etc/nccl.conf", "NCCL_DEBUG=WARN\nNCCL_ALGO=Tree\n");
    tree_run(&shk_probe_conffile);
    cr_expect_str_eq(problem_at("/etc/nccl.conf", 1), "");
    cr_expect_not_null(strstr(problem_at("/etc/nccl.conf", 2), "already set in"));
}

Test(conffile, first_definition_wins)
{
    user("{}");
    tree_put("/home/u/.nccl.conf", "# mine\nNCCL_DEBUG=WARN\nNCCL_DEBUG=INFO\n");
    tree_put("/etc/nccl.conf", "NCCL_DEBUG=TRACE\n\nNCCL_IB_PCI_RELAXED_ORDERING=1");
    tree_run(&shk_probe_conffile);
    expect_text("env.file.NCCL_DEBUG", "WARN");
    cr_expect_str_eq(tree_source("env.file.NCCL_DEBUG"), "/home/u/.nccl.conf:2");
    expect_text("env.file.NCCL_IB_PCI_RELAXED_ORDERING", "1");
    cr_expect_str_eq(tree_source("env.file.NCCL_IB_PCI_RELAXED_ORDERING"), "/etc/nccl.conf:3");
    cr_expect_not_null(strstr(problem_at("/home/u/.nccl.conf", 3), "already set in"));
    cr_expect_not_null(strstr(problem_at("/etc/nccl.conf", 1), "/home/u/.nccl.conf:2"));
    json_t *file = tree_item("env.files", "path", "/etc/nccl.conf");
    json_t *entry = json_array_get(json_object_get(file, "entries"), 0);
    cr_expect(json_is_false(json_object_get(entry, "used")));
    cr_expect_str_eq(tree_item_text(entry, "value"), "TRACE");
}

Test(conffile, named_file_replaces_the_one_at_home)
{
    user("{\"NCCL_CONF_FILE\":\"/opt/site.conf\"}");
    tree_put("/opt/site.conf", "NCCL_ALGO=Ring\n");
    tree_put("/home/u/.nccl.conf", "NCCL_DEBUG=WARN\n");
    tree_run(&shk_probe_conffile);
    expect_text("env.file.NCCL_ALGO", "Ring");
    cr_expect_eq(tree_state("env.file.NCCL_DEBUG"), TREE_NOTHING);
    user("{\"NCCL_CONF_FILE\":\"/opt/gone.conf\"}");
    tree_run(&shk_probe_conffile);
    cr_expect_not_null(strstr(problem_at("/opt/gone.conf", 0), "does not exist"));
    user("{\"NCCL_CONF_FILE\":\"rel.conf\"}");
    tree_run(&shk_probe_conffile);
    cr_expect_not_null(strstr(problem_at("rel.conf", 0), "relative"));
    user("{\"NCCL_CONF_FILE\":\"\"}");
    tree_run(&shk_probe_conffile);
    expect_text("env.file.NCCL_DEBUG", "WARN");
}

Test(conffile, two_homes)
{
    user("{\"HOME\":\"/scratch/u\"}");
    tree_put("/home/u/.nccl.conf", "NCCL_DEBUG=WARN\n");
    tree_run(&shk_probe_conffile);
    expect_absent("env.file_problems");
    tree_put("/scratch/u/.nccl.conf", "NCCL_DEBUG=INFO\n");
    tree_run(&shk_probe_conffile);
    expect_text("env.file.NCCL_DEBUG", "WARN");
    cr_expect_not_null(strstr(problem_at("/scratch/u/.nccl.conf", 0), "NCCL 2.30"));
}

/* The last definition wins, blanks and comments go, and files count from the one that is named. */
Test(conffile, nvshmem)
{
    user("{\"HOME\":\"/home/u\",\"NVSHMEM_CONF_FILE\":\"/opt/site.conf\"}");
    tree_put("/etc/nvshmem.conf", "NVSHMEM_DEBUG=WARN\nNVSHMEM_SYMMETRIC_SIZE=1G\n");
    tree_put("/home/u/.nvshmem.conf",
             "NVSHMEM_DEBUG = INFO\nNVSHMEM_BOOTSTRAP=PMI\nNVSHMEM_BOOTSTRAP=MPI # last\n");
    tree_put("/opt/site.conf", "# ours\nNVSHMEM_REMOTE_TRANSPORT=libfabric\n");
    tree_run(&shk_probe_conffile);
    expect_text("env.file.NVSHMEM_REMOTE_TRANSPORT", "libfabric");
    expect_text("env.file.NVSHMEM_DEBUG", "INFO");
    cr_expect_str_eq(tree_source("env.file.NVSHMEM_DEBUG"), "/home/u/.nvshmem.conf:1");
    expect_text("env.file.NVSHMEM_BOOTSTRAP", "MPI");
    cr_expect_str_eq(tree_source("env.file.NVSHMEM_BOOTSTRAP"), "/home/u/.nvshmem.conf:3");
    expect_text("env.file.NVSHMEM_SYMMETRIC_SIZE", "1G");
    cr_expect_not_null(strstr(problem_at("/home/u/.nvshmem.conf", 2), "already set in"));
    cr_expect_not_null(strstr(problem_at("/etc/nvshmem.conf", 1), "already set in"));
    json_t *file = tree_item("env.files", "path", "/home/u/.nvshmem.conf");
    cr_expect_str_eq(tree_item_text(file, "reader"), "nvshmem");
    json_t *first = json_array_get(json_object_get(file, "entries"), 0);
    cr_expect_str_eq(tree_item_text(first, "name"), "NVSHMEM_DEBUG");
    user("{\"HOME\":\"/home/u\",\"NVSHMEM_CONF_FILE\":\"/opt/gone.conf\"}");
    tree_run(&shk_probe_conffile);
    cr_expect_not_null(strstr(problem_at("/opt/gone.conf", 0), "NVSHMEM_CONF_FILE names it"));
}

/* NCCL keeps every byte on both sides of the '='. */
Test(conffile, lines)
{
    static const struct {
        const char *line, *name, *value; /* NULL: sets nothing that is a setting */
        const char *problem;             /* NULL: none */
    } rows[] = {
        {"NCCL_DEBUG=INFO", "NCCL_DEBUG", "INFO", NULL},
        {"NCCL_DEBUG=", "NCCL_DEBUG", "", NULL},
        {"NCCL_NET=AWS Libfabric", "NCCL_NET", "AWS Libfabric", NULL},
        {"NCCL_SOCKET_IFNAME==hsn0", "NCCL_SOCKET_IFNAME", "=hsn0", NULL},
        {"#NCCL_DEBUG=INFO", NULL, NULL, NULL},
        {"   ", NULL, NULL, NULL},
        {"NCCL_DEBUG INFO", NULL, NULL, "no '='"},
        {"NCCL_DEBUG = INFO", NULL, NULL, "blanks included"},
        {" NCCL_DEBUG=INFO", NULL, NULL, "blanks included"},
        {"export NCCL_DEBUG=INFO", NULL, NULL, "blanks included"},
        {"=INFO", NULL, NULL, "nothing reads it"},
        {"NCCL_DEBUG= INFO", "NCCL_DEBUG", " INFO", "blank"},
        {"NCCL_DEBUG=INFO ", "NCCL_DEBUG", "INFO ", "blank"},
        {"NCCL_DEBUG=\"INFO\"", "NCCL_DEBUG", "\"INFO\"", "quotes"},
        {"NCCL_DEBUG=INFO\r", "NCCL_DEBUG", "INFO\r", "carriage return"},
        {"MY_OWN=1", NULL, NULL, "no setting"},
        {"NCLL_DEBUG=INFO", "NCLL_DEBUG", "INFO", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char key[64];
        user("{}");
        tree_put("/etc/nccl.conf", "%s\n", rows[i].line);
        tree_run(&shk_probe_conffile);
        if (rows[i].name) {
            snprintf(key, sizeof key, "env.file.%s", rows[i].name);
            /* control characters never reach a fact as such */
            if (!strchr(rows[i].value, '\r'))
                expect_text(key, rows[i].value);
            cr_expect_str_eq(tree_source(key), "/etc/nccl.conf:1", "%s", rows[i].line);
        } else {
            cr_expect_eq(tree_state("env.file.NCCL_DEBUG"), TREE_NOTHING, "%s", rows[i].line);
        }
        const char *problem = problem_at("/etc/nccl.conf", 1);
        cr_expect(rows[i].problem ? strstr(problem, rows[i].problem) != NULL : *problem == '\0',
                  "%s: '%s'", rows[i].line, problem);
    }
}

Test(conffile, readers_do_not_shadow_each_other)
{
    user("{}");
    tree_put("/etc/nccl.conf", "NCCL_DEBUG=WARN\n");
    tree_put("/etc/rccl.conf", "NCCL_DEBUG=INFO\nNCCL_ALGO=Tree\n");
    tree_put("/etc/libfabric.conf", "FI_PROVIDER=tcp\nFI_PROVIDER=shm\n");
    tree_put("/opt/cray/libfabric/1.22.0/etc/libfabric.conf", "FI_LOG_LEVEL=warn\n");
    tree_run(&shk_probe_conffile);
    expect_text("env.file.NCCL_DEBUG", "WARN");
    expect_text("env.file.NCCL_ALGO", "Tree");
    expect_text("env.file.FI_PROVIDER", "tcp");
    expect_text("env.file.FI_LOG_LEVEL", "warn");
    cr_expect_str_eq(problem_at("/etc/rccl.conf", 1), "");
    cr_expect_not_null(strstr(problem_at("/etc/libfabric.conf", 2), "already set"));
}

Test(conffile, secrets_stay)
{
    user("{}");
    tree_put("/etc/nccl.conf", "NCCL_TOKEN=abcdefsecret\n");
    json_t *doc = shk_facts_to_json(tree_run(&shk_probe_conffile));
    char *text = json_dumps(doc, 0);
    expect_failed("env.file.NCCL_TOKEN", "withheld: looks like a secret");
    cr_expect_null(strstr(text, "abcdefsecret"));
    free(text);
    json_decref(doc);
}

Test(conffile, home)
{
    static const struct {
        const char *passwd, *environment, *path; /* NULL: not known */
    } rows[] = {
        {"u:x:1000:1000::/home/u:/bin/sh\n", "{\"HOME\":\"/elsewhere\"}", "/home/u/.nccl.conf"},
        {"v:x:1001:1000::/home/v:/bin/sh\n", "{\"HOME\":\"/ldap/u\"}", "/ldap/u/.nccl.conf"},
        {"u:x:1000\n:::\n\nu:x:10000:1::/no:/bin/sh\n", "{\"HOME\":\"/h\"}", "/h/.nccl.conf"},
        {"u:x:1000:1000::relative:/bin/sh\n", "{}", NULL},
        {"garbage", "{\"HOME\":\"relative\"}", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        user(rows[i].environment);
        tree_put("/etc/passwd", "%s", rows[i].passwd);
        tree_run(&shk_probe_conffile);
        if (rows[i].path)
            cr_expect_str_eq(state_of(rows[i].path), "absent", "row %zu", i);
        else
            cr_expect_not_null(strstr(problem_at(".nccl.conf", 0), "home directory"), "row %zu", i);
    }
}

Test(conffile, damaged_files)
{
    user("{}");
    static const char path[] = "/etc/nccl.conf";
    static const struct {
        void (*damage)(const char *path);
        const char *reason;
    } rows[] = {
        {tree_fifo, "not a regular file"},
        {tree_dir, "not a regular file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rows[i].damage(path);
        tree_run(&shk_probe_conffile);
        cr_expect_str_eq(state_of(path), "failed");
        cr_expect_not_null(strstr(problem_at(path, 0), rows[i].reason), "%s", problem_at(path, 0));
    }
    tree_link(path, "gone");
    tree_run(&shk_probe_conffile);
    cr_expect_str_eq(state_of(path), "failed");
    static char huge[5 << 20];
    memset(huge, '\n', sizeof huge);
    tree_put_bytes(path, huge, sizeof huge);
    tree_run(&shk_probe_conffile);
    cr_expect_not_null(strstr(problem_at(path, 0), "larger than"));
    tree_put_bytes(path, "", 0);
    tree_run(&shk_probe_conffile);
    cr_expect_str_eq(state_of(path), "read");
    expect_absent("env.file_problems");
    tree_put_bytes(path, "NCCL_DEBUG=IN\0FO\nNCCL_ALGO=Ring\n\xff\xfe=\xff\n", 37);
    tree_run(&shk_probe_conffile);
    expect_text("env.file.NCCL_DEBUG", "IN");
    expect_text("env.file.NCCL_ALGO", "Ring");
    cr_expect_not_null(strstr(problem_at(path, 1), "NUL"));
    cr_expect_not_null(strstr(problem_at(path, 3), "nothing reads it"));
}

Test(conffile, long_lines)
{
    char text[4096];
    user("{}");
    size_t n = (size_t)snprintf(text, sizeof text, "NCCL_DEBUG_FILE=/");
    memset(text + n, 'x', 2000);
    strcpy(text + n + 2000, "\nNCCL_ALGO=Ring\n");
    tree_put("/etc/nccl.conf", "%s", text);
    tree_run(&shk_probe_conffile);
    cr_expect_not_null(strstr(problem_at("/etc/nccl.conf", 1), "cut after 1023"));
    expect_text("env.file.NCCL_ALGO", "Ring");
}

Test(conffile, unreadable_for_this_user)
{
    user("{}");
    tree_put("/etc/nccl.conf", "NCCL_DEBUG=INFO\n");
    tree_mode("/etc/nccl.conf", 0);
    tree_run_unprivileged(&shk_probe_conffile);
    cr_expect_str_eq(state_of("/etc/nccl.conf"), "failed");
    cr_expect_not_null(strstr(problem_at("/etc/nccl.conf", 0), "Permission denied"));
}
