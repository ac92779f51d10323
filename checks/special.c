/* Values whose rules are their own. */
#include "checks/fabric.h"
#include "checks/grammar.h"
#include "checks/resolve.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const algorithms[] = {"Tree", "Ring",     "CollnetDirect", "CollnetChain",
                                         "NVLS", "NVLSTree", "PAT",           NULL};
static const char *const protocols[] = {"LL", "LL128", "Simple", NULL};
static const char *const functions[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                        "AllReduce", "SendRecv", NULL};

static bool one_of(const char *const *list, const char *word)
{
    for (; *list; list++)
        if (strcasecmp(*list, word) == 0)
            return true;
    return false;
}

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
            if (!one_of(functions, shk_trim(group))) {
                bad_word(row, group, functions);
                return true;
            }
        }
        list += *list == '^';
        for (char *word = strtok_r(list, ",", &word_end); word;
             word = strtok_r(NULL, ",", &word_end))
            if (!one_of(words, word)) {
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
    shk_row_text(&row->fix, "use the short name or the address of the first node");
    return true;
}

static bool debug_file(const struct shk_check_context *ctx, const char *value, struct shk_row *row)
{
    long long ranks = shk_facts_get_int(ctx->facts, "job.ranks", -1);
    if (strstr(value, "%p") || (strstr(value, "%h") && ranks >= 0 && ranks <= 1) || ranks == 1)
        return false;
    shk_row_verdict(row, SHK_WARN, SHK_DECLARED);
    shk_row_text(&row->why, "without %%h and %%p in the name all ranks write into one file");
    shk_row_text(&row->fix, "export %s=%s.%%h.%%p", row->setting, value);
    return true;
}

/* Each element must be the name of a device in the array `key`. */
static bool device_names(const struct shk_check_context *ctx, const char *key, const char *value,
                         struct shk_row *row)
{
    const json_t *devices = shk_facts_get_array(ctx->facts, key);
    const char *start;
    size_t len, i;
    json_t *device;
    if (json_array_size(devices) == 0)
        return false;
    row->fact = key;
    while (shk_grammar_item(&value, ',', &start, &len)) {
        bool found = false;
        struct shk_strbuf names = SHK_STRBUF_INIT;
        json_array_foreach((json_t *)devices, i, device)
        {
            const char *name = shk_member_text(device, "name");
            found |= name && strlen(name) == len && strncmp(name, start, len) == 0;
            if (name)
                shk_strbuf_printf(&names, "%s%s", names.len ? ", " : "", name);
        }
        if (!found) {
            shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
            shk_row_text(&row->why, "this node has no device %.*s; it has: %s",
                         (int)(len < 40 ? len : 40), start, shk_strbuf_text(&names));
        }
        shk_strbuf_free(&names);
        if (!found)
            return true;
    }
    shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    return true;
}

static bool cxi_device(const struct shk_check_context *ctx, const char *value, struct shk_row *row)
{
    return device_names(ctx, "cxi.devices", value, row);
}

static bool efa_iface(const struct shk_check_context *ctx, const char *value, struct shk_row *row)
{
    return strcasecmp(value, "all") != 0 && device_names(ctx, "rdma.devices", value, row);
}

/* What the loaded libfabric says that FI_MR_CACHE_MONITOR may be: the sentence of its help text
 * that begins with "Options are:". NULL when it could not be asked. */
static char *monitors_offered(const struct shk_facts *facts)
{
    static const char start[] = "Options are:";
    size_t i;
    json_t *param;
    json_array_foreach(shk_facts_get_array(facts, "fabric.params"), i, param)
    {
        const char *name = shk_member_text(param, "name"), *help = shk_member_text(param, "help");
        const char *options =
            name && help && strcmp(name, "FI_MR_CACHE_MONITOR") == 0 ? strstr(help, start) : NULL;
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
    char *offered = monitors_offered(ctx->facts);
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
        shk_row_text(&row->fix,
                     uffd ? "export FI_MR_CACHE_MONITOR=userfaultfd" : "unset FI_MR_CACHE_MONITOR");
        free(library);
    }
    free(offered);
    return missing;
}

/* The monitor must be in the library, and needs something of the kernel. */
static bool mr_monitor(const struct shk_check_context *ctx, const char *value, struct shk_row *row)
{
    static const char key[] = "sysctl.vm.unprivileged_userfaultfd";
    bool uffd = strcmp(value, "userfaultfd") == 0 || strcmp(value, "uffd") == 0;
    if (monitor_missing(ctx, value, row))
        return true;
    bool root = shk_member_int(shk_facts_get_object(ctx->facts, "host.ids"), "euid", -1) == 0;
    if (uffd && !root && shk_facts_get_int(ctx->facts, key, -1) == 0 &&
        shk_look(ctx->facts, "dev.userfaultfd", NULL) != SHK_LOOK_PRESENT) {
        shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
        row->fact = key;
        shk_row_text(&row->why,
                     "vm.unprivileged_userfaultfd is 0: without privilege the registration "
                     "cache stays off");
        shk_row_text(&row->fix, "sysctl -w vm.unprivileged_userfaultfd=1");
    } else if (strcmp(value, "kdreg2") == 0 &&
               shk_look(ctx->facts, "dev.kdreg2", NULL) == SHK_LOOK_ABSENT) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        row->fact = "dev.kdreg2";
        shk_row_text(&row->why, "/dev/kdreg2 is not there, so the registration cache stays off");
        shk_row_text(&row->fix, "load the kdreg2 module, or use userfaultfd");
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

static const struct {
    const char *name;
    bool (*judge)(const struct shk_check_context *ctx, const char *value, struct shk_row *row);
} rules[] = {
    {"FI_PROVIDER", fi_provider},
    {"NCCL_ALGO", algo},
    {"NCCL_PROTO", proto},
    {"NCCL_DEBUG_FILE", debug_file},
    {"NVSHMEM_DEBUG_FILE", debug_file},
    {"NEURON_RT_ROOT_COMM_ID", root_comm_id},
    {"FI_CXI_DEVICE_NAME", cxi_device},
    {"FI_EFA_IFACE", efa_iface},
    {"FI_MR_CACHE_MONITOR", mr_monitor},
};

bool shk_resolve_special(const struct shk_check_context *ctx, const char *name, const char *value,
                         struct shk_row *row)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (strcmp(rules[i].name, name) == 0)
            return rules[i].judge(ctx, value, row);
    return false;
}
