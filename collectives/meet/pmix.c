#include "collectives/meet/pmix.h"
#include "core/facts/facts.h"
#include "core/run/clock.h"
#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "core/text/uses.h"
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef SHK_HAVE_PMIX
#include <pmix.h>
#endif

bool shk_pmix_offered(unsigned *rank_p)
{
    const char *space = getenv(shk_variable("pmix-namespace"));
    const char *rank = getenv(shk_variable("pmix-rank"));
    char *end = NULL;
    unsigned long value = 0;

    if (!space || *space == '\0' || !rank)
        return false;
    errno = 0;
    value = strtoul(rank, &end, 10);
    if (errno != 0 || end == rank || *end != '\0' || value >= UINT_MAX)
        return false;
    *rank_p = (unsigned)value;
    return true;
}

bool shk_pmix_built(void)
{
#ifdef SHK_HAVE_PMIX
    return true;
#else
    return false;
#endif
}

void shk_pmix_clear(struct shk_pmix *pmix)
{
    for (unsigned i = 0; pmix->hosts && i < pmix->size; i++)
        free(pmix->hosts[i]);
    free(pmix->hosts);
    free(pmix->card);
    memset(pmix, 0, sizeof(*pmix));
}

#ifdef SHK_HAVE_PMIX

#define PMIX_CARD "shakedown.card"

/* Between two looks for a card that is not there yet: some servers answer at once that a process of
 * the same node, which has not come up, published nothing. */
#define PMIX_RETRY_NS 20000000L

struct pmix_api {
    pmix_status_t (*init)(pmix_proc_t *proc, pmix_info_t *info, size_t n);
    pmix_status_t (*finalize)(const pmix_info_t *info, size_t n);
    pmix_status_t (*put)(pmix_scope_t scope, const pmix_key_t key, pmix_value_t *value);
    pmix_status_t (*commit)(void);
    pmix_status_t (*get)(const pmix_proc_t *proc, const char *key, const pmix_info_t *info,
                         size_t n, pmix_value_t **value);
    const char *(*error)(pmix_status_t status);
    const char *(*version)(void);
};

static const struct shk_symbol pmix_symbols[] = {
    {.name = "PMIx_Init", .offset = offsetof(struct pmix_api, init)},
    {.name = "PMIx_Finalize", .offset = offsetof(struct pmix_api, finalize)},
    {.name = "PMIx_Put", .offset = offsetof(struct pmix_api, put)},
    {.name = "PMIx_Commit", .offset = offsetof(struct pmix_api, commit)},
    {.name = "PMIx_Get", .offset = offsetof(struct pmix_api, get)},
    {.name = "PMIx_Error_string", .offset = offsetof(struct pmix_api, error)},
    {.name = "PMIx_Get_version", .offset = offsetof(struct pmix_api, version)},
    {.name = NULL},
};

static const char *const pmix_names[] = {"libpmix.so.2", NULL};

/* What the child needs, and its handles. */
struct pmix_client {
    struct pmix_api api;
    const char *const *names;
    const char *card;
    unsigned deadline_ms;
    pmix_proc_t self;
};

static int pmix_failed(const struct pmix_client *client, const char *call, pmix_status_t status,
                       struct shk_error *err)
{
    return shk_error_set(err, EPROTO, "%s: %s (%d)", call, client->api.error(status), status);
}

/* PMIx_Get of one value, from what this process already has unless wait_s says to wait. The value
 * is left to the library: the process ends soon. */
static pmix_status_t pmix_ask(const struct pmix_client *client, pmix_rank_t rank, const char *key,
                              int wait_s, pmix_value_t **value_p)
{
    pmix_proc_t proc = {.rank = rank};
    pmix_info_t info = {.flags = 0};

    memcpy(proc.nspace, client->self.nspace, sizeof proc.nspace);
    if (wait_s > 0) {
        snprintf(info.key, sizeof info.key, "%s", PMIX_TIMEOUT);
        info.value.type = PMIX_INT;
        info.value.data.integer = wait_s;
    } else {
        snprintf(info.key, sizeof info.key, "%s", PMIX_OPTIONAL);
        info.value.type = PMIX_BOOL;
        info.value.data.flag = true;
    }
    return client->api.get(&proc, key, &info, 1, value_p);
}

static long long pmix_number(const struct pmix_client *client, pmix_rank_t rank, const char *key)
{
    pmix_value_t *value = NULL;

    shk_crumb_call("PMIx_Get of %s", key);
    if (pmix_ask(client, rank, key, 0, &value) != PMIX_SUCCESS || !value)
        return -1;
    switch (value->type) {
    case PMIX_UINT16: return value->data.uint16;
    case PMIX_UINT32: return value->data.uint32;
    case PMIX_INT: return value->data.integer;
    default: return -1;
    }
}

static json_t *pmix_hosts(const struct pmix_client *client, long long size)
{
    json_t *hosts = json_array();
    long long rank = 0;

    shk_crumb_call("PMIx_Get of %s", PMIX_HOSTNAME);
    for (rank = 0; rank < size; rank++) {
        pmix_value_t *value = NULL;
        const char *name = "";

        if (pmix_ask(client, (pmix_rank_t)rank, PMIX_HOSTNAME, 0, &value) == PMIX_SUCCESS &&
            value && value->type == PMIX_STRING && value->data.string) {
            name = value->data.string;
        }
        (void)json_array_append_new(hosts, shk_json_text(name, strlen(name)));
    }
    return hosts;
}

static int pmix_publish(const struct pmix_client *client, struct shk_error *err)
{
    pmix_value_t value = {.type = PMIX_STRING};
    pmix_status_t status = PMIX_SUCCESS;

    value.data.string = (char *)client->card; /* copied by the library */
    shk_crumb_call("PMIx_Put");
    status = client->api.put(PMIX_GLOBAL, PMIX_CARD, &value);
    if (status != PMIX_SUCCESS)
        return pmix_failed(client, "PMIx_Put", status, err);
    shk_crumb_call("PMIx_Commit");
    status = client->api.commit();
    return status == PMIX_SUCCESS ? 0 : pmix_failed(client, "PMIx_Commit", status, err);
}

/* Direct get: no fence, which a rank that never starts would keep all others in. */
static int pmix_fetch(const struct pmix_client *client, json_t *result, struct shk_error *err)
{
    double end = shk_clock_s() * 1e3 + client->deadline_ms;
    struct timespec nap = {.tv_nsec = PMIX_RETRY_NS};
    pmix_status_t status = PMIX_SUCCESS;
    pmix_value_t *value = NULL;

    shk_crumb_call("PMIx_Get of what rank 0 published");
    do {
        int left_s = (int)((end - shk_clock_s() * 1e3) / 1000);

        status = pmix_ask(client, 0, PMIX_CARD, left_s > 0 ? left_s : 1, &value);
        if (status == PMIX_SUCCESS && value && value->type == PMIX_STRING)
            return json_object_set_new(result, "card", json_string(value->data.string));
        (void)nanosleep(&nap, NULL);
    } while (shk_clock_s() * 1e3 < end);
    return shk_error_set(err, ETIMEDOUT, "rank 0 published no address within %u ms: PMIx_Get: %s",
                         client->deadline_ms, client->api.error(status));
}

static int pmix_describe(const struct pmix_client *client, json_t *result, struct shk_error *err)
{
    static const struct {
        const char *name, *key;
        bool job; /* of the job, not of this rank */
    } numbers[] = {
        {"size", PMIX_JOB_SIZE, true},
        {"nodes", PMIX_NUM_NODES, true},
        {"local_size", PMIX_LOCAL_SIZE, true},
        {"local_rank", PMIX_LOCAL_RANK, false},
    };

    json_object_set_new(result, "rank", json_integer(client->self.rank));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        pmix_rank_t of = numbers[i].job ? PMIX_RANK_WILDCARD : client->self.rank;
        long long value = pmix_number(client, of, numbers[i].key);

        if (value < 0 && strcmp(numbers[i].name, "nodes") != 0) {
            return shk_error_set(err, EPROTO, "PMIx_Get: the server does not report %s",
                                 numbers[i].key);
        }
        json_object_set_new(result, numbers[i].name, json_integer(value));
    }
    return 0;
}

static int pmix_client_run(void *arg, json_t **result_p, struct shk_error *err)
{
    static const struct shk_library desc = {.names = pmix_names, .symbols = pmix_symbols};
    struct pmix_client *client = arg;
    struct shk_library library = desc;
    struct shk_dynlib lib = {0};
    pmix_status_t status = PMIX_SUCCESS;
    json_t *result = json_object();
    int rc = 0;

    library.names = client->names ? client->names : desc.names;
    rc = shk_dynlib_open(&lib, &library, &client->api, err);
    json_object_set_new(result, "missing", json_boolean(rc == -ENOENT));
    *result_p = result;
    if (rc < 0 || !result)
        return rc;
    json_object_set_new(result, "library", json_string(lib.path));
    json_object_set_new(result, "version", json_string(client->api.version()));
    shk_crumb_call("PMIx_Init");
    status = client->api.init(&client->self, NULL, 0);
    if (status != PMIX_SUCCESS)
        return pmix_failed(client, "PMIx_Init", status, err);
    rc = pmix_describe(client, result, err);
    if (rc == 0 && client->self.rank == 0) {
        rc = pmix_publish(client, err);
        json_object_set_new(
            result, "hosts",
            pmix_hosts(client, json_integer_value(json_object_get(result, "size"))));
    } else if (rc == 0) {
        rc = pmix_fetch(client, result, err);
    }
    shk_crumb_call("PMIx_Finalize");
    (void)client->api.finalize(NULL, 0);
    return rc;
}

static unsigned pmix_member(const json_t *result, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(result, name));

    return value > 0 && value < UINT_MAX ? (unsigned)value : 0;
}

static void pmix_text(const json_t *result, const char *name, char *buf, size_t size)
{
    const char *text = json_string_value(json_object_get(result, name));

    snprintf(buf, size, "%s", text ? text : "");
}

static int pmix_take(struct shk_pmix *pmix, const json_t *result)
{
    const char *card = json_string_value(json_object_get(result, "card"));
    json_t *hosts = json_object_get(result, "hosts");

    pmix->rank = pmix_member(result, "rank");
    pmix->size = pmix_member(result, "size");
    pmix->local_rank = pmix_member(result, "local_rank");
    pmix->local_size = pmix_member(result, "local_size");
    pmix->nodes = pmix_member(result, "nodes");
    if (pmix->rank >= pmix->size)
        return shk_error_set(&pmix->reason, EPROTO, "rank %u of %u", pmix->rank, pmix->size);
    if (card && (pmix->card = strdup(card)) == NULL)
        return shk_error_set(&pmix->reason, ENOMEM, "out of memory");
    if (!hosts)
        return 0;
    pmix->hosts = calloc(pmix->size, sizeof(*pmix->hosts));
    for (unsigned i = 0; pmix->hosts && i < pmix->size; i++) {
        const char *host = json_string_value(json_array_get(hosts, i));

        pmix->hosts[i] = strdup(host ? host : "");
        if (!pmix->hosts[i])
            return shk_error_set(&pmix->reason, ENOMEM, "out of memory");
    }
    return 0;
}

void shk_pmix_join(struct shk_pmix *pmix, const char *card, unsigned deadline_ms,
                   const char *const *names)
{
    struct pmix_client client = {.names = names, .card = card, .deadline_ms = deadline_ms};
    struct shk_isolate_job job = {
        .name = "pmix",
        .fn = pmix_client_run,
        .arg = &client,
        .deadline_ms = deadline_ms + 2000, /* its own deadline tells more */
    };
    struct shk_isolate_result result;
    struct shk_error err = {{0}};

    memset(pmix, 0, sizeof(*pmix));
    pmix->status = SHK_PMIX_FAILED;
    pmix->tried = true;
    if (shk_isolate_run(&job, &result, 1, 1, &err) < 0) {
        pmix->reason = err;
        return;
    }
    pmix->ms = result.ms;
    pmix_text(result.result, "library", pmix->library, sizeof(pmix->library));
    pmix_text(result.result, "version", pmix->version, sizeof(pmix->version));
    pmix->reason = result.error;
    pmix->missing = json_is_true(json_object_get(result.result, "missing"));
    if (result.outcome == SHK_CHILD_OK && pmix_take(pmix, result.result) == 0) {
        pmix->status = SHK_PMIX_OK;
        pmix->reason = (struct shk_error){{0}};
    }
    shk_isolate_result_clear(&result);
}

#else /* no pmix.h at build time */

void shk_pmix_join(struct shk_pmix *pmix, const char *card, unsigned deadline_ms,
                   const char *const *names)
{
    (void)card, (void)deadline_ms, (void)names;
    memset(pmix, 0, sizeof(*pmix));
    pmix->status = SHK_PMIX_FAILED;
    pmix->tried = true;
    (void)shk_error_set(&pmix->reason, ENOSYS,
                        "this shakedown was built without PMIx (pmix.h was not found)");
}

#endif
