/* Whose fault a collective that failed is: its cause, ranks that do not agree, nodes of which it is
 * not known which. */
#include "checks/job/collective_why.h"
#include "checks/base/coded.h"
#include "core/text/uses.h"

#include <string.h>

const char *shk_collective_cause_key(const char *cause)
{
    static const char *const keys[][2] = {
        {"driver", "driver-library-fails"},
        {"driver-mismatch", "driver-runtime-version-mismatch"},
        {"driver-not-ready", "fabric-manager-down"},
        {"gpu-busy", "device-in-use"},
        {"gpu-memory", "gpu-memory-errors"},
        {"gpu-call", "all-reduce-failed"},
        {"driver-old", "cuda-driver-too-old"},
        {"visible-devices", "visible-devices-mismatch"},
        {"gpu-missing", "all-reduce-failed"},
        {"same-gpu", "duplicate-gpu"},
        {"no-peer-access", "gpu-cgroup-isolation"},
        {"out-of-memory", "gpu-memory-exhausted"},
        {"node-memory", "container-memory-limit-oom"},
        {"illegal-access", "gpu-illegal-access"},
        {"late-peer", "peer-rank-died"},
        {"nccl-versions", "nccl-version-differs-across-ranks"},
        {"no-symmetric-memory", "symm-mem-unsupported"},
        {"no-multicast", "nvls-fabric-manager-state"},
        {"nccl-error", "nccl-call-failed"},
        {"unequal-buffers", "unequal-buffers-across-ranks"},
        {"wrong-result", "gpu-wrong-result"},
        {"hmem-interface", "hmem-interface-not-started"},
        {"hmem-registration", "hmem-registration-refused"},
        {"hmem-wrong", "hmem-wrong-result"},
        {"hmem-failed", "hmem-failed"},
        {"rank-ended", "rank-ended"},
        {"rank-stopped", "rank-stopped"},
        {"rank-silent", "rank-silent"},
        {"rank-hung", "rank-hung"},
        {"all-hang", "collective-hangs"},
        {"node-unreachable", "node-unreachable"},
        {"path-mtu", "path-mtu-hole"},
        {"verbs-cq", "verbs-queues-too-large"},
        {"verbs-qp", "verbs-queue-pair-refused"},
        {"verbs-mr", "mr-registration-failed"},
        {"verbs-memlock", "memlock-too-low"},
        {"verbs-no-node", "rdma-device-not-in-container"},
        {"verbs-permission", "rdma-device-no-permission"},
        {"verbs-no-gid", "rdma-port-no-address"},
        {"verbs-address", "rdma-port-no-address"},
        {"verbs-port-down", "nic-port-down"},
        {"verbs-no-device", "verbs-provider-absent"},
        {"verbs-no-cm", "rdma-ucm-missing"},
        {"library-load", "libfabric-does-not-load"},
    };
    for (size_t i = 0; cause && i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(keys[i][0], cause) == 0)
            return keys[i][1];
    return NULL;
}

/* Facts of older runs have no cause for these, but the state of the rank to blame. */
static const char *key_of_state(const json_t *states, long long rank)
{
    static const char *const keys[][2] = {
        {"crashed", "rank-ended"}, {"stopped", "rank-stopped"}, {"hung", "rank-hung"}};
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)states, i, row)
    {
        const char *status = NULL;
        long long id = -1;
        (void)shk_look_member_int(row, "rank", &id);
        if (shk_look_member_text(row, "status", &status) != SHK_LOOK_PRESENT || id != rank)
            continue;
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            if (strcmp(keys[k][0], status) == 0)
                return keys[k][1];
    }
    return NULL;
}

/* Do two differences have the same sides? */
static bool same_sides(const json_t *a, const json_t *b)
{
    return json_equal(json_object_get(a, "odd"), json_object_get(b, "odd")) &&
           json_equal(json_object_get(a, "odd_rank"), json_object_get(b, "odd_rank"));
}

/* What explains a difference: something else that differs between the same nodes. */
static const char *key_of_difference(const json_t *rows)
{
    static const char *const keys[][2] = {
        {NULL, "provider-differs-across-nodes"}, /* the filter of providers */
        {"libfabric version", "libfabric-version-differs-across-nodes"},
        {"libfabric file", "libfabric-version-differs-across-nodes"},
        {"libfabric provider", "provider-differs-across-nodes"},
        {"NCCL version", "nccl-version-differs-across-ranks"},
        {"RCCL version", "nccl-version-differs-across-ranks"},
    };
    const json_t *first = json_array_get(rows, 0);
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        size_t i;
        json_t *row;
        json_array_foreach((json_t *)rows, i, row)
        {
            const char *what = NULL,
                       *of = keys[k][0] ? keys[k][0] : shk_variable("provider-filter");
            (void)shk_look_member_text(row, "what", &what);
            if (what && strcmp(what, of) == 0 && same_sides(first, row))
                return keys[k][1];
        }
    }
    return NULL;
}

/* Ranks that do not agree about what must be the same: the nodes outside of the majority, and
 * without one nobody, though all are named. */
static void why_disagreement(struct shk_row *row, const json_t *rows)
{
    const json_t *first = json_array_get(rows, 0);
    const char *what = NULL, *most = NULL;
    bool must = false;
    (void)shk_look_member_text(first, "what", &what);
    (void)shk_look_member_text(first, "majority", &most);
    (void)shk_look_member_bool(first, "must", &must);
    if (!what || !must)
        return;
    shk_row_text(&row->observed, "ranks differ: %s", what);
    if (most)
        shk_row_text(&row->expected, "%s, as most nodes have it", most);
    else
        shk_row_text(&row->expected, "the same on every node");
    if (!most)
        row->scope = SHK_SCOPE_LAUNCH;
    const char *key = key_of_difference(rows);
    row->diagnosis = key ? key : row->diagnosis;
}

void shk_collective_why(struct shk_row *row, const struct shk_facts *facts, const char *t, int len,
                        long long rank)
{
    const char *cause = NULL;
    json_t *states = NULL, *rows = NULL;
    bool undecided = false;
    char key[96];
    snprintf(key, sizeof key, "collective.%.*s.cause", len, t);
    (void)shk_look_text(facts, key, &cause);
    snprintf(key, sizeof key, "collective.%.*s.ranks_state", len, t);
    (void)shk_look_array(facts, key, &states);
    snprintf(key, sizeof key, "collective.%.*s.undecided", len, t);
    (void)shk_look_bool(facts, key, &undecided);
    snprintf(key, sizeof key, "collective.%.*s.disagree", len, t);
    (void)shk_look_array(facts, key, &rows);
    row->diagnosis = shk_collective_cause_key(cause);
    if (!row->diagnosis && rank >= 0)
        row->diagnosis = key_of_state(states, rank);
    if (undecided)
        row->scope = SHK_SCOPE_LAUNCH; /* one of those that are named, not known which */
    why_disagreement(row, rows);
}
