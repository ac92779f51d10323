/* Which profile each node is judged by, and which nodes may be compared. */
#include "checks/base/check.h"
#include "cli/session/session.h"
#include "core/text/nodefold.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of the nodes of one machine type, so many in a hundred settle the profile of the rest. */
enum { PROFILE_MAJORITY = 66 };

static size_t profile_weight(const struct shk_session *session, size_t node)
{
    return session->weights ? session->weights[node] : 1;
}

static const char *profile_machine(const struct shk_session *session, size_t node)
{
    return shk_facts_get_text(session->facts[node], "host.product");
}

static bool profile_same_machine(const struct shk_session *session, size_t a, size_t b)
{
    const char *x = profile_machine(session, a), *y = profile_machine(session, b);
    return x && y && strcmp(x, y) == 0;
}

/* The profile that most nodes have, of all or of the machine type of node *like; *share_p: per
 * cent. NULL: out of memory. */
static const struct shk_profile *profile_of_most(const struct shk_session *session,
                                                 const size_t *like, size_t *share_p)
{
    const struct shk_profile **profiles = calloc(session->nodes + 1, sizeof *profiles);
    size_t *weights = calloc(session->nodes + 1, sizeof *weights);
    size_t count = 0, all = 0, best = 0;
    for (size_t i = 0; profiles && weights && i < session->nodes; i++) {
        size_t k = 0;
        if (like && !profile_same_machine(session, i, *like))
            continue;
        while (k < count && profiles[k] != session->node_profiles[i].profile)
            k++;
        profiles[k] = session->node_profiles[i].profile;
        count = k == count ? count + 1 : count;
        weights[k] += profile_weight(session, i);
        all += profile_weight(session, i);
        best = weights[k] > weights[best] ? k : best;
    }
    const struct shk_profile *most = profiles ? profiles[best] : NULL;
    *share_p = all ? weights[best] * 100 / all : 0;
    free(profiles);
    free(weights);
    return most;
}

/* Is it known by its devices alone? */
static bool profile_is_generic(const struct shk_profile *profile)
{
    for (size_t i = 0; i < profile->signals_count; i++)
        if (strncmp(profile->signals[i].fact, "env.", 4) == 0 ||
            strncmp(profile->signals[i].fact, "host.", 5) == 0)
            return false;
    return true;
}

static void profile_take(struct shk_session *session, size_t node,
                         const struct shk_profile *profile)
{
    struct shk_node_profile *mine = &session->node_profiles[node];
    free(mine->why);
    free(mine->doubt);
    *mine = (struct shk_node_profile){
        .profile = profile,
        .why = shk_strf("as most nodes of its type (%s)", profile_machine(session, node))};
}

/* A node that lost its NICs looks like another site: it is judged as the others of its type. */
static int profile_outliers(struct shk_session *session)
{
    const struct shk_profile **chosen = calloc(session->nodes + 1, sizeof *chosen);
    if (!chosen)
        return -ENOMEM;
    for (size_t i = 0; i < session->nodes; i++) {
        size_t share = 0, k = 0;
        while (k < i && !profile_same_machine(session, k, i))
            k++;
        const struct shk_profile *most = k < i ? chosen[k] : profile_of_most(session, &i, &share);
        chosen[i] = k < i || share >= PROFILE_MAJORITY ? most : NULL;
    }
    for (size_t i = 0; i < session->nodes; i++) {
        const struct shk_node_profile *mine = &session->node_profiles[i];
        if (chosen[i] && chosen[i] != mine->profile &&
            (mine->doubt || profile_is_generic(mine->profile)))
            profile_take(session, i, chosen[i]);
    }
    free(chosen);
    return 0;
}

static bool profile_alike(const struct shk_session *session)
{
    for (size_t i = 1; i < session->nodes; i++)
        if (session->node_profiles[i].profile != session->node_profiles[0].profile)
            return false;
    return true;
}

/* "aws-p5 (12 nodes), trn1 (4 nodes)", in the order in which they come. */
static char *profile_counts(const struct shk_session *session)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; i < session->nodes; i++) {
        const struct shk_profile *profile = session->node_profiles[i].profile;
        size_t count = 0, k = 0;
        while (session->node_profiles[k].profile != profile)
            k++;
        if (k < i)
            continue;
        for (; k < session->nodes; k++)
            if (session->node_profiles[k].profile == profile)
                count += profile_weight(session, k);
        shk_strbuf_printf(&sb, "%s%s (%zu node%s)", sb.len ? ", " : "", profile->name, count,
                          count == 1 ? "" : "s");
    }
    return shk_strbuf_take(&sb);
}

/* The first doubt, and on how many nodes there is one. */
static const char *profile_doubts(const struct shk_session *session, size_t *count_p)
{
    const char *first = NULL;
    *count_p = 0;
    for (size_t i = 0; i < session->nodes; i++) {
        const char *doubt = session->node_profiles[i].doubt;
        *count_p += doubt ? profile_weight(session, i) : 0;
        first = first ? first : doubt;
    }
    return first;
}

static char *profile_why(const struct shk_session *session)
{
    size_t doubtful, total = 0;
    const char *doubt = profile_doubts(session, &doubtful);
    for (size_t i = 0; i < session->nodes; i++)
        total += profile_weight(session, i);
    if (doubt && total > 1)
        return shk_strf("profile uncertain on %zu of %zu nodes: %s", doubtful, total, doubt);
    if (doubt)
        return shk_strf("profile uncertain: %s", doubt);
    if (profile_alike(session))
        return session->node_profiles[0].why ? strdup(session->node_profiles[0].why) : NULL;
    char *counts = profile_counts(session);
    char *why = shk_strf("detected on each node: %s", counts ? counts : "");
    free(counts);
    return why;
}

int shk_session_profiles(struct shk_session *session, struct shk_error *err)
{
    const struct shk_profile *named = session->profile;
    size_t share;
    session->node_profiles = calloc(session->nodes + 1, sizeof *session->node_profiles);
    if (!session->node_profiles)
        return shk_error_sys(err, ENOMEM, "profiles");
    for (size_t i = 0; i < session->nodes; i++) {
        struct shk_node_profile *mine = &session->node_profiles[i];
        mine->profile = named ? named
                              : shk_profile_detect(session->config, session->facts[i], &mine->why,
                                                   &mine->doubt);
        if (!mine->profile)
            return shk_error_set(err, EINVAL,
                                 "no profile fits, and the catalogue has no single-node");
    }
    if (named)
        return 0;
    if (profile_outliers(session))
        return shk_error_sys(err, ENOMEM, "profiles");
    session->profile = profile_of_most(session, NULL, &share);
    session->profile_why = profile_why(session);
    return 0;
}

void shk_session_profiles_free(struct shk_session *session)
{
    for (size_t i = 0; session->node_profiles && i < session->nodes; i++) {
        free(session->node_profiles[i].why);
        free(session->node_profiles[i].doubt);
    }
    free(session->node_profiles);
}

/* Compares the nodes of one kind. */
static int compare_kind(struct shk_session *session, const size_t *kinds, size_t kind, bool only,
                        struct shk_error *err)
{
    const struct shk_facts **facts = calloc(session->nodes + 1, sizeof(struct shk_facts *));
    size_t *weights = calloc(session->nodes + 1, sizeof *weights);
    size_t count = 0;
    const struct shk_profile *profile = session->profile;
    for (size_t i = 0; facts && weights && i < session->nodes; i++) {
        if (kinds[i] != kind)
            continue;
        profile = session->node_profiles[i].profile;
        facts[count] = session->facts[i];
        weights[count++] = profile_weight(session, i);
    }
    int rc = facts && weights
                 ? shk_checks_compare(session->config, facts, weights, count,
                                      only ? NULL : profile->name, session->findings, err)
                 : shk_error_sys(err, ENOMEM, "comparison of nodes");
    free(facts);
    free(weights);
    return rc;
}

int shk_session_compare(struct shk_session *session, struct shk_error *err)
{
    size_t *kinds = calloc(session->nodes + 1, sizeof *kinds);
    const struct shk_profile **profiles = calloc(session->nodes + 1, sizeof *profiles);
    for (size_t i = 0; profiles && i < session->nodes; i++)
        profiles[i] = session->node_profiles[i].profile;
    int total = kinds && profiles
                    ? shk_checks_kinds((const struct shk_facts *const *)session->facts, profiles,
                                       session->weights, session->nodes, kinds)
                    : -ENOMEM;
    int rc = total < 0 ? shk_error_sys(err, ENOMEM, "comparison of nodes") : 0;
    for (int kind = 0; kind < total && !rc; kind++)
        rc = compare_kind(session, kinds, (size_t)kind, total == 1, err);
    free(kinds);
    free(profiles);
    return rc;
}
