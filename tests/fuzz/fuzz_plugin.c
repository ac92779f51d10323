/* A network plugin that answers nonsense: what its calls return, its devices, their properties and
 * the addresses in them come from the input. Judged as in the program. */
#include "core/facts/facts.h"
#include "fuzz.h"
#include "probes/nccl/ncclnet.h"
#include "probes/nccl/plugin_child.h"
#include "probes/nccl/plugin_try.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PLUGIN_PAGE = 4096, PLUGIN_PROPERTIES = 136, PLUGIN_SLOTS = 22 };

static const uint8_t *plugin_data;
static size_t plugin_size;
static char *plugin_page; /* text without an end: the page behind it cannot be read */

static uint8_t plugin_byte(void)
{
    uint8_t byte = plugin_size ? *plugin_data : 0;
    plugin_data += plugin_size != 0;
    plugin_size -= plugin_size != 0;
    return byte;
}

static const char *plugin_address(void)
{
    uint8_t byte = plugin_byte();
    switch (byte & 3) {
    case 0: return NULL;
    case 1: return (const char *)(uintptr_t)(1 + ((uintptr_t)byte << 55));
    default: return plugin_page + PLUGIN_PAGE - 1 - plugin_byte();
    }
}

/* Mostly 0, which leads further. */
static int plugin_result(void)
{
    uint8_t byte = plugin_byte();
    return byte < 240 ? 0 : byte - 250;
}

static int plugin_init(shk_ncclnet_logger logger)
{
    uint8_t level = plugin_byte();
    const char *text = plugin_page + PLUGIN_PAGE / 2; /* ends before the page does */
    if (level & 1)
        logger(level >> 1, 0, "fuzz.c", 1, "%s", text);
    return plugin_result();
}

static int plugin_init_v10(shk_ncclnet_logger logger, void *profiler)
{
    (void)profiler;
    return plugin_init(logger);
}

static int plugin_init_v11(void **context, uint64_t comm, void *config, shk_ncclnet_logger logger,
                           void *profiler)
{
    (void)context, (void)comm, (void)config, (void)profiler;
    return plugin_init(logger);
}

static int plugin_devices(int *count_p)
{
    uint8_t byte = plugin_byte();
    *count_p = byte < 8 ? byte : byte < 250 ? 1 : byte == 250 ? -1 : 0x7fffff00 + byte;
    return plugin_result();
}

static int plugin_properties(int device, void *properties)
{
    const char *strings[2];
    (void)device;
    memset(properties, 0, PLUGIN_PROPERTIES);
    size_t n = plugin_size < PLUGIN_PROPERTIES ? plugin_size : PLUGIN_PROPERTIES;
    memcpy(properties, plugin_data, n);
    plugin_data += n;
    plugin_size -= n;
    strings[0] = plugin_address();
    strings[1] = plugin_address();
    memcpy(properties, strings, sizeof strings);
    return plugin_result();
}

typedef void (*plugin_slot)(void);
struct plugin_table {
    const char *name;
    plugin_slot slot[PLUGIN_SLOTS - 1];
};

#define TABLE(version, init)                                                                       \
    struct plugin_table ncclNetPlugin_v##version = {                                               \
        "fuzz",                                                                                    \
        {(plugin_slot)(init), (plugin_slot)plugin_devices, (plugin_slot)plugin_properties}}
extern struct plugin_table ncclNetPlugin_v6, ncclNetPlugin_v7, ncclNetPlugin_v8, ncclNetPlugin_v9,
    ncclNetPlugin_v10, ncclNetPlugin_v11, ncclNetPlugin_v12;
TABLE(6, plugin_init);
TABLE(7, plugin_init);
TABLE(8, plugin_init);
TABLE(9, plugin_init);
TABLE(10, plugin_init_v10);
TABLE(11, plugin_init_v11);
TABLE(12, plugin_init_v11);

static void plugin_pages(void)
{
    int rw = PROT_READ | PROT_WRITE;
    plugin_page = mmap(NULL, 2 * PLUGIN_PAGE, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (plugin_page == MAP_FAILED || mprotect(plugin_page + PLUGIN_PAGE, PLUGIN_PAGE, PROT_NONE))
        abort();
}

/* The row as probes/nccl/plugin_try.c makes it of a child that lived. */
static json_t *plugin_row(json_t *init, int rc)
{
    json_t *devices = json_object_get(init, "devices");
    json_t *own = devices ? json_deep_copy(devices) : NULL;
    json_object_del(init, "devices");
    json_object_set_new(init, "ok", json_boolean(!rc));
    if (own)
        json_object_set_new(own, "ok", json_boolean(!rc));
    return json_pack("{s:s, s:s, s:s, s:b, s:b, s:{s:b, s:s}, s:o, s:o*}", "path", "/fuzz.so",
                     "kind", "net", "owner", "nccl", "considered", 1, "found", 1, "load", "ok", 1,
                     "outcome", "ok", "init", init, "devices", own);
}

static void plugin_judge(json_t *candidates)
{
    struct shk_facts *facts = shk_facts_create();
    if (shk_facts_present(facts, "plugin.candidates", candidates, NULL, "fuzz") != 0)
        abort();
    shk_fuzz_judge(facts);
    shk_facts_destroy(facts);
}

/* With its lines of log thrown away. */
static int plugin_ask(struct shk_plugin_job *job, json_t **result_p, struct shk_error *err)
{
    int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    int rc = shk_plugin_child_init(job, result_p, err);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(null);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shk_error err = {""};
    json_t *init = NULL;
    if (size < 2)
        return 0;
    if (!plugin_page)
        plugin_pages();
    /* "": this program */
    struct shk_plugin_job job = {.path = "", .version = 6 + data[0] % 7};
    size_t text = data[1] < size - 2 ? data[1] : size - 2;
    memset(plugin_page, 'x', PLUGIN_PAGE);
    memcpy(plugin_page + PLUGIN_PAGE / 2, data + 2, text);
    plugin_page[PLUGIN_PAGE / 2 + text] = '\0';
    memcpy(plugin_page + PLUGIN_PAGE - 256 + (256 - text), data + 2, text);
    plugin_data = data + 2 + text;
    plugin_size = size - 2 - text;
    int rc = plugin_ask(&job, &init, &err);
    if (!json_is_object(init) || (rc && !*err.text))
        abort();
    json_t *row = plugin_row(init, rc);
    if (!row)
        abort();
    plugin_judge(json_pack("[o]", row));
    return 0;
}
