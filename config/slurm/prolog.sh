#!/bin/sh
# Prolog: a node that fails is drained with the reason, and Slurm puts the job elsewhere. No scheduler command
# is called on the healthy path; --quick runs no collective and opens no GPU context.
report=$(timeout 10 shakedown run --quick --format md 2>/dev/null)
code=$?
[ "$code" -eq 1 ] || exit 0 # anything but a FAIL (a timeout, an internal error) lets the job start
logger -t shakedown "$(printf '%s\n' "$report" | head -n 20)"
exit 1
