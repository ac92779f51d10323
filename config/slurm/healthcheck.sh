#!/bin/sh
# HealthCheckProgram: between jobs, on idle nodes. A node that fails is drained, with the cause as the reason.
#   HealthCheckProgram=/usr/libexec/shakedown/healthcheck.sh
#   HealthCheckInterval=600
#   HealthCheckNodeState=IDLE
# Exit codes other than 1 (could not be told, a timeout) and faults that are not the node's drain nothing: those
# leave the second line, the list of bad nodes, empty.
export PATH="$PATH:/usr/bin:/usr/local/bin" # slurmd sets none
report=$(timeout 50 shakedown run --quick --format line --bad-nodes - 2>/dev/null)
code=$?
bad=$(printf '%s\n' "$report" | sed -n 2p)
[ "$code" -eq 1 ] && [ -n "$bad" ] || exit 0
node=${SLURMD_NODENAME:-$(hostname -s)}
scontrol show node "$node" | grep -q 'State=[A-Z+]*DRAIN' && exit 0 # keeps the reason that is there
why=$(printf '%s\n' "$report" | sed -n '1s/^FAIL [^ ]*: //p')
scontrol update "NodeName=$node" State=DRAIN "Reason=shakedown: $why"
