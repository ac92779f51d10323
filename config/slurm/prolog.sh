#!/bin/sh
# Prolog: a node that fails is drained, with the cause as the reason, and Slurm puts the job elsewhere. No
# scheduler command is called on the healthy path; --quick runs no collective and opens no GPU context.
#   Prolog=/usr/libexec/shakedown/prolog.sh
#   SchedulerParameters=nohold_on_prolog_fail     or the job is held, and waits for its user
# Whatever is not a fault of this node (exit codes other than 1, a fault of how the job was started) lets the job
# start: those leave the second line, the list of bad nodes, empty.
export PATH="$PATH:/usr/bin:/usr/local/bin" # slurmd sets none
report=$(timeout 10 shakedown run --quick --format line --bad-nodes - 2>/dev/null)
code=$?
bad=$(printf '%s\n' "$report" | sed -n 2p)
[ "$code" -eq 1 ] && [ -n "$bad" ] || exit 0
why=$(printf '%s\n' "$report" | sed -n '1s/^FAIL [^ ]*: //p')
logger -t shakedown "$why"
scontrol update "NodeName=${SLURMD_NODENAME:-$(hostname -s)}" State=DRAIN "Reason=shakedown: $why"
exit 1
