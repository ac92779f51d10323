#!/bin/sh
# Epilog: what the job left behind. A node that fails now is drained before the next job, with the cause as the reason.
#   Epilog=/usr/libexec/shakedown/epilog.sh
# Ends with 0 whatever happens: a code of Slurm's own would drain the node without a reason.
export PATH="$PATH:/usr/bin:/usr/local/bin" # slurmd sets none
report=$(timeout 20 shakedown run --quick --format line --bad-nodes - 2>/dev/null)
[ $? -eq 1 ] && [ -n "$(printf '%s\n' "$report" | sed -n 2p)" ] || exit 0
node=${SLURMD_NODENAME:-$(hostname -s)}
scontrol show node "$node" | grep -q 'State=[A-Z+]*DRAIN' && exit 0 # keeps the reason that is there
why=$(printf '%s\n' "$report" | sed -n '1s/^FAIL [^ ]*: //p')
logger -t shakedown "after job ${SLURM_JOB_ID:-?}: $why"
scontrol update "NodeName=$node" State=DRAIN "Reason=shakedown after job ${SLURM_JOB_ID:-?}: $why"
exit 0
