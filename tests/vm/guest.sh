#!/bin/bash
# Inside a virtual machine: runs /mnt/out/N.sh for each line N that comes through the serial port "shell", with its
# output in N.out and N.err, and answers "N STATUS". "off" ends the machine.
export HOME=/root TERM=dumb LANG=C.UTF-8
# shellcheck source=/dev/null
. /mnt/out/setup
for port in /sys/class/virtio-ports/*; do
    [ "$(cat "$port/name")" = shell ] && shell=/dev/${port##*/}
done
exec 3<>"$shell"
echo ready >&3
while read -r n <&3; do
    [ "$n" = off ] && break
    bash "/mnt/out/$n.sh" </dev/null >"/mnt/out/$n.out" 2>"/mnt/out/$n.err" 3>&-
    echo "$n $?" >&3
done
sync
echo o >/proc/sysrq-trigger
sleep 60
