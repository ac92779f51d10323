#!/bin/bash
# Brings up hosts on one machine for tests, joined by two bridges, and Slurm over them. Root only.
#   hosts.sh up DIR N [FOLDER…]   hosts shk1 … shkN, Slurm's files in DIR; a FOLDER below /tmp is there on every
#                                 host too, as DIR is
#   hosts.sh down DIR             ends what `up` started: all that runs on the hosts
#   hosts.sh run DIR CMD          runs CMD as a user on the login host would (srun, sbatch)
#   hosts.sh on DIR HOST CMD      runs CMD on a host; HOST "ctl" is the login host, which has the other ends of
#                                 the links, mgt0-N and hsn0-N
#   hosts.sh net DIR HOST         the file of a host's network namespace
# Every host has mgt0 (10.77.1.N: Slurm, PMIx, rank 0's collecting) and hsn0 (10.77.2.N: the fabric), and its own
# processes, /proc, /sys, /dev/shm and /tmp. Nothing has a name outside of them, so two copies may be up at once.
set -eu
verb=$1 dir=$2
shift 2

on() { # host, command: in all namespaces of the host, in the folder of the caller
    ns=/proc/$(cat "$dir/$1.pid")/ns
    shift
    exec nsenter --net="$ns/net" --uts="$ns/uts" --mount="$ns/mnt" --pid="$ns/pid_for_children" \
        sh -c 'cd "$1" 2>/dev/null || cd /; shift; exec "$@"' sh "$PWD" "$@"
}

# The first process of a host. Mounts are private: nothing outside sees them. bash reaps what the host's other
# processes leave behind.
hold() { # host, its name, folders that stay
    host=$1 new="$dir/new"
    hostname "$2"
    shift 2
    mount --bind "$dir/hosts" /etc/hosts
    mount -t tmpfs -o size=256m shm /dev/shm
    mount -t sysfs sysfs "$new"
    mount --rbind /sys/fs/cgroup "$new/fs/cgroup"
    mount --move "$new" /sys
    mount -t tmpfs -o mode=1777 tmp "$new"
    for folder in "$dir" "$@"; do
        case $folder in
        /tmp/*)
            mkdir -p "$new${folder#/tmp}"
            mount --bind "$folder" "$new${folder#/tmp}"
            ;;
        esac
    done
    mount --move "$new" /tmp
    ip link set lo up
    echo up >"$dir/$host.up"
    sleep 3600 & # the most that is left of a test that was killed
    wait "$!"
}

start() { # host, its name, folders that stay
    unshare --net --uts --mount --pid --fork --mount-proc --kill-child \
        bash "$0" hold "$dir" "$@" >"$dir/$1.out" 2>&1 </dev/null &
    echo $! >"$dir/$1.pid"
}

daemon() { # host, command
    (on "$@") >"$dir/$1.$2.out" 2>&1 </dev/null &
}

until_true() { # tenths of a second, command
    for _ in $(seq "$1"); do
        ! "${@:2}" || return 0
        sleep 0.1
    done
    echo "hosts.sh: ${*:2}: not within $1 tenths of a second:" >&2
    tail -n 5 "$dir"/*.log "$dir"/*.out >&2
    return 1
}

bridge() { # name, address
    (on ctl sh -c 'ip link add "$1" type bridge && ip addr add "$2" dev "$1" && ip link set "$1" up' sh "$@")
}

link() { # host number, bridge, name inside, address
    ip=$(printf 'ip link add %s-%s type veth peer name %s netns /proc/self/fd/9 && ip link set %s-%s master %s up' \
        "$3" "$1" "$3" "$3" "$1" "$2")
    (on ctl sh -c "$ip")
    (on "shk$1" sh -c "ip addr add $4/24 dev $3 && ip link set $3 up")
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
SlurmctldPidFile=$dir/slurmctld.pidfile
SlurmdPidFile=$dir/slurmd.%n.pidfile
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
TmpFS=/tmp
ReturnToService=2
SlurmdTimeout=600
KillWait=2
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,nohold_on_prolog_fail
SlurmdParameters=config_overrides
Prolog=$dir/prolog
PrologFlags=Alloc
PartitionName=p Nodes=ALL Default=YES State=UP
EOF
    if [ -d /sys/fs/cgroup/freezer ]; then
        echo CgroupPlugin=cgroup/v1 >"$dir/cgroup.conf"
    else
        printf 'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n' >"$dir/cgroup.conf"
    fi
    printf '#!/bin/sh\nexit 0\n' >"$dir/prolog" # for a test to replace
    chmod 755 "$dir/prolog"
    cp /etc/hosts "$dir/hosts"
    echo "10.77.1.254 shkctl" >>"$dir/hosts"
    for i in $(seq "$1"); do
        sed -i "/^PartitionName/i NodeName=shk$i NodeAddr=10.77.1.$i CPUs=8 RealMemory=100" "$dir/slurm.conf"
        echo "10.77.1.$i shk$i" >>"$dir/hosts"
        mkdir -p "$dir/spool.shk$i"
    done
}

up() { # hosts, folders that stay
    n=$1
    shift
    rm -rf "$dir"
    mkdir -p "$dir/state" "$dir/new"
    chmod 755 "$dir"
    configure "$n"
    (umask 077; head -c 1024 /dev/urandom >"$dir/munge.key")
    start ctl shkctl "$@"
    for i in $(seq "$n"); do start "shk$i" "shk$i" "$@"; done
    for host in ctl $(seq -f shk%g "$n"); do until_true 100 test -e "$dir/$host.up"; done
    bridge shkmgt 10.77.1.254/24
    bridge shkhsn 10.77.2.254/24
    for i in $(seq "$n"); do
        exec 9<"/proc/$(cat "$dir/shk$i.pid")/ns/net"
        link "$i" shkmgt mgt0 "10.77.1.$i"
        link "$i" shkhsn hsn0 "10.77.2.$i"
        exec 9<&-
    done
    daemon ctl munged --foreground --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
        --pid-file="$dir/munged.pidfile" --log-file="$dir/munged.log" --seed-file="$dir/munge.seed"
    until_true 100 test -S "$dir/munge.socket"
    export SLURM_CONF="$dir/slurm.conf"
    daemon ctl slurmctld -D -f "$SLURM_CONF"
    for i in $(seq "$n"); do daemon "shk$i" slurmd -D -f "$SLURM_CONF" -N "shk$i"; done
    until_true 150 idle "$n"
}

idle() { [ "$(on ctl sinfo -h -t idle -o %D 2>/dev/null)" = "$1" ]; }

down() {
    for f in "$dir"/*.pid; do
        [ "$(cat "/proc/$(cat "$f")/comm" 2>/dev/null)" != unshare ] || kill -KILL "$(cat "$f")" || :
    done
}

case $verb in
up) up "$@" ;;
down) down ;;
hold) hold "$@" ;;
run)
    export SLURM_CONF="$dir/slurm.conf"
    on ctl "$@"
    ;;
on) on "$@" ;;
net) echo "/proc/$(cat "$dir/$1.pid")/ns/net" ;;
*) exit 2 ;;
esac
