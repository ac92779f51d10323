/* Values whose rules are their own. */
#include "checks/base/remedy.h"
#include "checks/env/resolve.h"
#include "checks/fabric/fabric.h"
#include "checks/value/grammar.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const algorithms[] = {"Tree", "Ring",     "CollnetDirect", "CollnetChain",
                                         "NVLS", "NVLSTree", "PAT",           NULL};
static const char *const protocols[] = {"LL", "LL128", "Simple", NULL};
static const char *const functions[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                        "AllReduce", "SendRecv", NULL};

static void bad_word(struct shk_row *row, const char *word, const char *const *list)
{
    const char *near = strlen(word) > 1 ? shk_nearest(word, list, shk_list_count(list)) : NULL;
    shk_row_verdict(row, SHK_FAIL, SHK_DECLARED);
    shk_row_text(&row->why, "\"%s\" is none of those that NCCL has%s%s%s", word,
                 near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    if (near)
        shk_row_text(&row->expected, "%s", near);
}

/* "[func:]word,word[;func:…]", each list with an optional '^'; functions since NCCL 2.24. */
static bool word_lists(const char *const *words, const char *value, struct shk_row *row)
{
    char text[256], *group_end, *word_end;
    if (strlen(value) >= sizeof(text))
        return false;
    strcpy(text, value);
    for (char *group = strtok_r(text, ";", &group_end); group;
         group = strtok_r(NULL, ";", &group_end)) {
        char *list = group, *colon = strchr(group, ':');
        if (colon) {
            *colon = '\0';
            list = colon + 1;
            if (!shk_word_is_one_of(functions, shk_trim(group))) {
                bad_word(row, group, functions);
                return true;
            }
        }
        list += *list == '^';
        for (char *word = strtok_r(list, ",", &word_end); word;
             word = strtok_r(NULL, ",", &word_end))
            if (!shk_word_is_one_of(words, word)) {
                bad_word(row, word, words);
                return true;
            }
    }
    return false;
}

static bool algo(const struct shk_check_context *ctx, const char *value, struct shk_row *row)
{
    (void)ctx;
    return word_lists(algorithms, value, row);
}

static bool proto(const struct shk_check_context *ctx, const char *value, struct shk_row *row)
{
    (void)ctx;
    return word_lists(protocols, value, row);
}

/* The Neuron runtime keeps 63 characters of the host name. */
static bool root_comm_id(const struct shk_check_context *ctx, const char *value,
                         struct shk_row *row)
{
    const char *colon = strrchr(value, ':');
    size_t len = colon ? (size_t)(colon - value) : strlen(value);
    (void)ctx;
    if (len <= 63)
        return false;
    shk_row_verdict(row, SHK_FAIL, SHK_DECLARED);
    row->diagnosis = "comm-id-unresolvable";
    shk_row_text(&row->why, "the host part has %zu characters; only 63 are kept", len);
    shk_row_fix(row, "short-host", NULL);
    return true;
}

static bool debug_file(const struct shk_check_context *ctx, const char *value, struct shk_row *row)
{
    long long ranks = 0;
    (void)ctx;
    if (strstr(value, "%p"))
        return false;
    if (shk_read_int(row, "job.ranks", &ranks) != SHK_LOOK_PRESENT || ranks <= 1)
        return false;
    shk_row_verdict(row, SHK_WARN, SHK_DECLARED);
    row->fact = "job.ranks";
    shk_row_text(&row->why, "without %%h and %%p in the name all ranks write into one file");
    shk_row_fix(row, "debug-file-per-rank", "name", row->setting, "value", value, NULL);
    return true;
}

/* All names of an array of devices, for words. */
static char *device_list(const json_t *devices)
{
    struct shk_strbuf names = SHK_STRBUF_INIT;
    size_t i;
    json_t *device;
    json_array_foreach((json_t *)devices, i, device)
        shk_strbuf_printf(&names, "%s%s", names.len ? ", " : "", shk_member_name(device, "name"));
    return shk_strbuf_take(&names);
}

/* Is the element the name of a device? */
static bool names_device(struct shk_row *row, const char *key, const json_t *devices,
                         const char *item, size_t len)
{
    size_t i;
    json_t *device;
    json_array_foreach((json_t *)devices, i, device)
    {
        const char *name = NULL;
        if (shk_read_member_text(row, key, device, "name", &name) == SHK_LOOK_PRESENT &&
            strlen(name) == len && strncmp(name, item, len) == 0)
            return true;
    }
    return false;
}

/* Each element must be the name of a device in the array `key`. */
static bool device_names(const char *key, const char *value, struct shk_row *row)
{
    json_t *devices = NULL;
    const char *start;
    size_t len;
    if (shk_read_array(row, key, &devices) != SHK_LOOK_PRESENT || json_array_size(devices) == 0)
        return false;
    row->fact = key;
    shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    while (shk_grammar_item(&value, ',', &start, &len)) {
        if (names_device(row, key, devices, start, len))
            continue;
        if (shk_row_lacking(row))
            return true; /* one of those without a name may be it */
        char *names = device_list(devices);
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        shk_row_text(&row->why, "this node has no device %.*s; it has: %s",
                     (int)(len < 40 ? len : 40), start, names ? names : "?");
        free(names);
        return true;
    }
    return true;
}

static bool cxi_device(const struct shk_check_context *ctx, const char *value, struct shk_row *row)
{
    (void)ctx;
    return device_names("cxi.devices", value, row);
}

static bool efa_iface(const struct shk_check_context *ctx, const char *value, struct shk_row *row)
{
    (void)ctx;
    return strcasecmp(value, "all") != 0 && device_names("rdma.devices", value, row);
}

/* What the loaded libfabric says that the variable may be: the sentence of its help text
 * that begins with "Options are:". NULL when it could not be asked. */
static char *monitors_offered(const struct shk_facts *facts, const char *variable)
{
    static const char start[] = "Options are:";
    size_t i;
    json_t *params = NULL, *param;
    (void)shk_look_array(facts, "fabric.params", &params);
    json_array_foreach(params, i, param)
    {
        const char *name = NULL, *help = NULL;
        (void)shk_look_member_text(param, "name", &name);
        (void)shk_look_member_text(param, "help", &help);
        const char *options =
            name && help && strcmp(name, variable) == 0 ? strstr(help, start) : NULL;
        if (!options)
            continue;
        options += strlen(start);
        return shk_strf("%.*s", (int)strcspn(options, "."), options + (*options == ' '));
    }
    return NULL;
}

static bool monitor_missing(const struct shk_check_context *ctx, const char *value,
                            struct shk_row *row)
{
    char *offered = monitors_offered(ctx->facts, row->setting);
    const char *word = strcmp(value, "uffd") == 0 ? "userfaultfd" : value;
    bool missing = offered && !strstr(offered, word);
    if (missing) {
        char *library = shk_fabric_text(ctx->facts);
        bool uffd = strstr(offered, "userfaultfd") != NULL;
        /* Vendors' builds had kdreg2 before the text did: with the module there, only a doubt. */
        bool doubt = strcmp(value, "kdreg2") == 0 &&
                     shk_look(ctx->facts, "dev.kdreg2", NULL) == SHK_LOOK_PRESENT;
        shk_row_verdict(row, doubt ? SHK_WARN : SHK_FAIL, SHK_EFFECT);
        row->fact = "fabric.params";
        row->diagnosis = "mr-cache-monitor-unavailable";
        shk_row_text(&row->why,
                     "the loaded %s does not list the monitor %s; without it the registration "
                     "cache stays off; it has: %s",
                     library ? library : "libfabric", value, offered);
        if (uffd)
            shk_row_fix(row, "set-value", "name", row->setting, "value", "userfaultfd", NULL);
        else
            shk_row_fix(row, "unset", "name", row->setting, NULL);
        free(library);
    }
    free(offered);
    return missing;
}

static bool is_root(const struct shk_facts *facts)
{
    json_t *ids = NULL;
    long long euid = -1;
    return shk_look_object(facts, "host.ids", &ids) == SHK_LOOK_PRESENT &&
           shk_look_member_int(ids, "euid", &euid) == SHK_LOOK_PRESENT && euid == 0;
}

/* What became of the calls themselves: 1 refused in both forms, 0 not, -1 not told. */
static int uffd_refused(struct shk_row *row)
{
    static const char *const forms[] = {"userfaultfd", "userfaultfd_user"};
    json_t *calls = NULL;
    unsigned refused = 0;
    if (shk_look_object(row->ctx->facts, "kernel.syscalls", &calls) != SHK_LOOK_PRESENT)
        return -1;
    for (size_t i = 0; i < 2; i++) {
        const char *answer = NULL;
        enum shk_look look = shk_look_member_text(calls, forms[i], &answer);
        if (look == SHK_LOOK_PRESENT && strcmp(answer, "ok") == 0)
            return 0;
        if (shk_look_told(look))
            refused++;
    }
    if (refused < 2)
        shk_row_lacks(row, "kernel.syscalls", "whether userfaultfd() is granted was not read");
    if (refused == 2)
        row->fact = "kernel.syscalls";
    return refused == 2;
}

/* May this process use userfaultfd? Where the call was not made: root may; others by a sysctl or a
 * device. */
static bool uffd_denied(struct shk_row *row)
{
    static const char key[] = "sysctl.vm.unprivileged_userfaultfd";
    json_t *ids = NULL;
    long long euid = -1, allowed = 1;
    int refused = uffd_refused(row);
    if (refused >= 0)
        return refused;
    if (is_root(row->ctx->facts))
        return false;
    if (shk_read_int(row, key, &allowed) != SHK_LOOK_PRESENT || allowed != 0)
        return false;
    if (shk_read_object(row, "host.ids", &ids) != SHK_LOOK_PRESENT ||
        shk_read_member_int(row, "host.ids", ids, "euid", &euid) != SHK_LOOK_PRESENT)
        return false;
    switch (shk_look(row->ctx->facts, "dev.userfaultfd", NULL)) {
    case SHK_LOOK_PRESENT: return false;
    case SHK_LOOK_FAILED: return (void)shk_read(row, "dev.userfaultfd", NULL), false;
    default: row->fact = key; return true;
    }
}

/* Is there a filter of system calls, and not the sysctl that refuses? */
static bool filtered(const struct shk_facts *facts)
{
    json_t *seccomp = NULL;
    const char *mode = NULL;
    long long allowed = 0;
    return shk_look_object(facts, "kernel.seccomp", &seccomp) == SHK_LOOK_PRESENT &&
           shk_look_member_text(seccomp, "mode", &mode) == SHK_LOOK_PRESENT &&
           strcmp(mode, "filter") == 0 &&
           (shk_look_int(facts, "sysctl.vm.unprivileged_userfaultfd", &allowed) !=
                SHK_LOOK_PRESENT ||
            allowed != 0 || is_root(facts));
}

static bool kdreg2_gone(struct shk_row *row)
{
    bool gone = shk_look(row->ctx->facts, "dev.kdreg2", NULL) == SHK_LOOK_ABSENT;
    if (gone)
        row->fact = "dev.kdreg2";
    else if (shk_look(row->ctx->facts, "dev.kdreg2", NULL) == SHK_LOOK_FAILED)
        (void)shk_read(row, "dev.kdreg2", NULL);
    return gone;
}

/* The monitor must be in the library, and needs something of the kernel. */
static bool mr_monitor(const struct shk_check_context *ctx, const char *value, struct shk_row *row)
{
    bool uffd = strcmp(value, "userfaultfd") == 0 || strcmp(value, "uffd") == 0;
    if (monitor_missing(ctx, value, row))
        return true;
    if (uffd && uffd_denied(row)) {
        shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
        bool filter = filtered(ctx->facts);
        shk_row_text(
            &row->why, "%s: the registration cache stays off",
            filter
                ? "a filter (seccomp) refuses userfaultfd() to this process"
                : "userfaultfd() is refused (vm.unprivileged_userfaultfd is 0, and no privilege)");
        shk_row_fix(row, filter ? "allow-syscall" : "allow-userfaultfd", "name", "userfaultfd",
                    NULL);
    } else if (strcmp(value, "kdreg2") == 0 && kdreg2_gone(row)) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        shk_row_text(&row->why, "/dev/kdreg2 does not exist, so the registration cache stays off");
        shk_row_fix(row, "load-kdreg2", NULL);
    } else {
        return false;
    }
    row->diagnosis = "mr-cache-monitor-unavailable";
    return true;
}

static bool fi_provider(const struct shk_check_context *ctx, const char *value, struct shk_row *row)
{
    return shk_resolve_provider(ctx, value, row);
}

typedef bool judge_f(const struct shk_check_context *ctx, const char *value, struct shk_row *row);

static judge_f *const judges[SHK_RULE_COUNT] = {
    [SHK_RULE_PROVIDERS] = fi_provider,   [SHK_RULE_ALGORITHMS] = algo,
    [SHK_RULE_PROTOCOLS] = proto,         [SHK_RULE_PER_RANK] = debug_file,
    [SHK_RULE_SHORT_HOST] = root_comm_id, [SHK_RULE_CXI_DEVICES] = cxi_device,
    [SHK_RULE_RDMA_DEVICES] = efa_iface,  [SHK_RULE_MR_MONITOR] = mr_monitor,
};

bool shk_resolve_special(const struct shk_check_context *ctx, const struct shk_setting *setting,
                         const char *value, struct shk_row *row)
{
    judge_f *judge = judges[setting->rule];
    return judge && judge(ctx, value, row);
}
