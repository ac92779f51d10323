/* What the network did for a rank's worker and its node while it ran: told to rank 0 at its end. */
#include "collectives/counters/counters.h"
#include "collectives/launch/world_private.h"
#include "core/job/moved.h"

/* Between two looks at the worker's sockets. A look goes through all sockets of the host: a few
 * milliseconds. */
#define NET_LOOK_NS 2000000000ULL

void agent_net_begin(struct agent_net *net, const struct shk_world_options *options, bool leader)
{
    *net = (struct agent_net){.looked_ns = shk_job_now_ns(), .options = options};
    if (leader && options->counters)
        net->before = shk_counters_before(options->kept, options->counters, options->probe_arg);
}

void agent_net_turn(struct agent_net *net, const struct shk_job *job, pid_t worker)
{
    struct shk_flows now;

    if (!job->flows || worker == 0 || shk_job_now_ns() - net->looked_ns < NET_LOOK_NS)
        return;
    shk_flows_read(&now, worker);
    shk_flows_keep(&net->flows, &now);
    net->looked_ns = shk_job_now_ns();
}

static json_t *net_counters(const struct agent_net *net)
{
    const struct shk_world_options *how = net->options;
    json_t *after =
        net->before ? shk_counters_after(how->kept, how->counters, how->probe_arg) : NULL;
    json_t *moved = after ? shk_moved(net->before, after) : NULL;

    json_decref(after);
    return moved;
}

json_t *agent_net_json(struct agent_net *net, const struct shk_job *job, pid_t worker)
{
    json_t *counters = net_counters(net);

    if (!job->flows) {
        return json_pack("{s:o?}", "counters", counters);
    }
    net->looked_ns = 0;
    agent_net_turn(net, job, worker);
    shk_flows_keep(&net->flows, job->flows);
    return json_pack("{s:o, s:o?}", "flows", shk_flows_json(&net->flows), "counters", counters);
}

void agent_net_end(struct agent_net *net)
{
    json_decref(net->before);
    *net = (struct agent_net){0};
}
