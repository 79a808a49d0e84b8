#!/bin/bash
# Starts a cluster of Slurm on this machine, as root and without systemd: cluster.sh up|down ROOT PORT NODES
set -euo pipefail
action=$1 root=$2 port=$3 nodes=$4
host=$(hostname -s)
export SLURM_CONF="$root/etc/slurm.conf"

end() {
    [ -s "$1" ] || return 0
    pid=$(cat "$1")
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 30); do kill -0 "$pid" 2>/dev/null || break; sleep .1; done
    kill -9 "$pid" 2>/dev/null || true
    rm -f "$1"
}

if [ "$action" = down ]; then
    scancel --quiet --me 2>/dev/null || true
    for file in "$root"/run/slurmd.*.pid "$root/run/slurmctld.pid" "$root/munge/munged.pid"; do end "$file"; done
    exit 0
fi

mkdir -p "$root"/{etc,state,log,run,spool,munge}
chmod 755 "$root"
dd if=/dev/urandom of="$root/munge/munge.key" bs=128 count=1 status=none
chmod 400 "$root/munge/munge.key"
chown -R munge:munge "$root/munge"
chmod 755 "$root/munge"
setpriv --reuid=munge --regid=munge --clear-groups "$(command -v munged || echo /usr/sbin/munged)" --force \
    --key-file="$root/munge/munge.key" --socket="$root/munge/socket" --pid-file="$root/munge/munged.pid" \
    --log-file="$root/munge/munged.log" --seed-file="$root/munge/munged.seed"

cat >"$root/etc/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$root/munge/socket
CredType=cred/munge
StateSaveLocation=$root/state
SlurmdSpoolDir=$root/spool/%n
SlurmctldPidFile=$root/run/slurmctld.pid
SlurmdPidFile=$root/run/slurmd.%n.pid
SlurmctldLogFile=$root/log/slurmctld.log
SlurmdLogFile=$root/log/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,requeue_setup_env_fail
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=${SLURMD_TIMEOUT:-30}
MinJobAge=3600
MaxArraySize=10001
KillWait=2
CompleteWait=0
AccountingStorageType=accounting_storage/none
NodeName=n[1-$nodes] NodeHostName=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + nodes))] CPUs=2 Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF

slurmctld -c
for node in $(seq "$nodes"); do
    mkdir -p "$root/spool/n$node"
    slurmd -N "n$node"
done
for _ in $(seq 100); do
    idle=$(sinfo -h -t idle -N -o %N 2>/dev/null | wc -l || true)
    [ "$idle" = "$nodes" ] && exit 0
    sleep .1
done
echo "the nodes did not become idle" >&2
exit 1
