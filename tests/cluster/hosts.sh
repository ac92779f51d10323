#!/bin/bash
# Brings up hosts on one machine for tests: network and UTS namespaces joined by two bridges, and
# Slurm over them. Root only.
#   hosts.sh up DIR N     hosts shk1 … shkN, Slurm's files in DIR
#   hosts.sh down DIR     ends what `up` started, by the process ids that it wrote
#   hosts.sh run DIR CMD  runs CMD as a user on the login host would (srun, sbatch)
# Every host has mgt0 (10.77.1.N: Slurm, PMIx, rank 0's collecting) and hsn0 (10.77.2.N: the fabric).
set -eu
verb=$1 dir=$2
shift 2

free_net() { ip link show "$1" >/dev/null 2>&1; }

add_bridge() {
    free_net "$1" || ip link add "$1" type bridge
    ip addr replace "$2" dev "$1"
    ip link set "$1" up
}

add_link() { # namespace, host number, bridge, name inside, address
    ip link add "$4-$2" type veth peer name "$4" netns "$1"
    ip link set "$4-$2" master "$3" up
    ip -n "$1" addr add "$5/24" dev "$4"
    ip -n "$1" link set "$4" up
}

configure() {
    cat >"$dir/slurm.conf" <<EOF
ClusterName=shk
SlurmctldHost=shkctl(10.77.1.254)
SlurmctldPort=7817
SlurmdPort=7818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
TmpFS=$dir/tmp.%n
ReturnToService=2
SlurmdTimeout=600
KillWait=2
MpiDefault=none
SlurmdParameters=config_overrides
PartitionName=p Nodes=ALL Default=YES State=UP
EOF
    if [ -d /sys/fs/cgroup/freezer ]; then
        echo CgroupPlugin=cgroup/v1 >"$dir/cgroup.conf"
    else
        printf 'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n' >"$dir/cgroup.conf"
    fi
    cp /etc/hosts "$dir/hosts"
    echo "10.77.1.254 shkctl" >>"$dir/hosts"
    for i in $(seq "$1"); do
        sed -i "/^PartitionName/i NodeName=shk$i NodeAddr=10.77.1.$i CPUs=8 RealMemory=100" "$dir/slurm.conf"
        echo "10.77.1.$i shk$i" >>"$dir/hosts"
    done
}

# In a mount namespace of its own, so that nothing outside sees the names of the hosts.
inside() { # host name, network namespace or "", command
    host=$1 net=$2
    shift 2
    enter=""
    [ -z "$net" ] || enter="nsenter --net=/run/netns/$net"
    # shellcheck disable=SC2086
    exec $enter unshare --uts --mount sh -c 'mount --make-rprivate / && mount --bind "$1" /etc/hosts &&
        hostname "$2" && shift 2 && exec "$@"' sh "$dir/hosts" "$host" "$@"
}

daemon() { # name, host name, network namespace, command
    name=$1
    shift
    (inside "$@") >"$dir/$name.out" 2>&1 </dev/null &
    echo $! >"$dir/$name.start.pid"
}

up() {
    n=$1
    rm -rf "$dir"
    mkdir -p "$dir/state"
    chmod 755 "$dir"
    configure "$n"
    add_bridge shkmgt 10.77.1.254/24
    add_bridge shkhsn 10.77.2.254/24
    (umask 077; head -c 1024 /dev/urandom >"$dir/munge.key")
    munged --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" --pid-file="$dir/munged.pid" \
        --log-file="$dir/munged.log" --seed-file="$dir/munge.seed"
    for i in $(seq "$n"); do
        ip netns add "shk$i"
        ip -n "shk$i" link set lo up
        add_link "shk$i" "$i" shkmgt mgt0 "10.77.1.$i"
        add_link "shk$i" "$i" shkhsn hsn0 "10.77.2.$i"
        mkdir -p "$dir/spool.shk$i" "$dir/tmp.shk$i"
    done
    export SLURM_CONF="$dir/slurm.conf"
    daemon ctld shkctl "" slurmctld -D -f "$dir/slurm.conf"
    for i in $(seq "$n"); do daemon "slurmd$i" "shk$i" "shk$i" slurmd -D -f "$dir/slurm.conf" -N "shk$i"; done
    for _ in $(seq 100); do
        [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = "$n" ] && return 0
        sleep 0.1
    done
    echo "hosts.sh: Slurm did not come up:" >&2
    tail -n 5 "$dir"/*.log "$dir"/*.out >&2
    return 1
}

down() {
    for f in "$dir"/*.pid; do
        [ ! -f "$f" ] || kill "$(cat "$f")" 2>/dev/null || :
    done
    for ns in $(ip netns list | awk '/^shk[0-9]+/ { print $1 }'); do
        for p in $(ip netns pids "$ns"); do kill -KILL "$p" 2>/dev/null || :; done
        ip netns del "$ns"
    done
    ip link del shkmgt 2>/dev/null || :
    ip link del shkhsn 2>/dev/null || :
}

case $verb in
up) up "$@" ;;
down) down ;;
run)
    export SLURM_CONF="$dir/slurm.conf"
    inside shkctl "" "$@"
    ;;
*) exit 2 ;;
esac
