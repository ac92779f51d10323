#!/bin/sh
# Plugin of node-problem-detector (node-problem-detector.json; as /config/plugin/shakedown.sh): 0 well, 1 a fault of this node
# with its cause in one line, 2 could not be told. Faults that are not the node's leave the second line, the list of bad
# nodes, empty.
export PATH="$PATH:/usr/bin:/usr/local/bin:/opt/shakedown/bin"
report=$(timeout 50 shakedown run --quick --rendezvous none --format line --bad-nodes - 2>/dev/null)
code=$?
bad=$(printf '%s\n' "$report" | sed -n 2p)
case $code in
0) echo "no fault of this node" ;;
1)
    [ -n "$bad" ] || { echo "no fault of this node"; exit 0; }
    printf '%s\n' "$report" | sed -n '1s/^FAIL [^ ]*: //p'
    exit 1
    ;;
*)
    echo "shakedown could not tell (exit code $code)"
    exit 2
    ;;
esac
