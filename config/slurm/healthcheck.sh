#!/bin/sh
# HealthCheckProgram: between jobs, on idle nodes.
#   HealthCheckProgram=/usr/libexec/shakedown/healthcheck.sh
#   HealthCheckInterval=600
#   HealthCheckNodeState=IDLE
out=$(timeout 50 shakedown run --quick --format md 2>/dev/null)
[ $? -eq 1 ] || exit 0
why=$(printf '%s\n' "$out" | grep -m1 -i 'fail' | tr -d '|`*#' | cut -c1-120)
scontrol update "NodeName=$(hostname -s)" State=DRAIN "Reason=shakedown: $why"
