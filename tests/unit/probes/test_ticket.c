/* Outputs of tools as people paste them: healthy ones become facts, cut and strange ones do not. */
#include "ticket_support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const struct sample variables[] = {
    {.what = "export", .text = "export NCCL_DEBUG=INFO\n", .want = {"env.NCCL_DEBUG=\"INFO\""}},
    {.what = "shell quotes",
     .text = "export NCCL_IB_HCA=\"mlx5_0\" # x\n",
     .want = {"env.NCCL_IB_HCA=\"mlx5_0\""}},
    {.what = "several",
     .text = "export NCCL_DEBUG=INFO NCCL_IB_HCA=a\n",
     .want = {"env.NCCL_DEBUG=\"INFO\"", "env.NCCL_IB_HCA=\"a\""}},
    {.what = "csh", .text = "  setenv FI_PROVIDER efa\n", .want = {"env.FI_PROVIDER=\"efa\""}},
    {.what = "unknown value",
     .text = "export NCCL_IB_HCA=$(ls)\nexport NCCL_DEBUG=$X\n",
     .want = {"!env.NCCL_IB_HCA", "!env.NCCL_DEBUG"}},
    {.what = "in front of a command",
     .text = "NCCL_DEBUG=INFO FI_PROVIDER=efa torchrun --nnodes 4 t.py\n",
     .want = {"env.NCCL_DEBUG=\"INFO\"", "env.FI_PROVIDER=\"efa\"", "job.nodes=4"}},
    {.what = "behind a prompt",
     .text = "$ NCCL_DEBUG=INFO ./run\n",
     .want = {"env.NCCL_DEBUG=\"INFO\""}},
    {.what = "passed on",
     .text = "mpirun -np 16 -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH --host a ./t\n",
     .want = {"env.NCCL_DEBUG=\"INFO\""}},
    {.what = "docker",
     .text = "$ docker run --gpus all -e NCCL_DEBUG=INFO img\n",
     .want = {"env.NCCL_DEBUG=\"INFO\""}},
    {.what = "srun",
     .text = "srun -N 2 --export=ALL,NCCL_DEBUG=WARN,A=1 ./t\n",
     .want = {"env.NCCL_DEBUG=\"WARN\"", "job.nodes=2"}},
    {.what = "manifest",
     .text = "  env:\n  - name: NCCL_IB_HCA\n    value: \"mlx5\"\n",
     .want = {"env.NCCL_IB_HCA=\"mlx5\""}},
    {.what = "prose",
     .text = "NCCL_P2P_DISABLE=1 makes it work\n",
     .want = {"!env.NCCL_P2P_DISABLE"}},
    {.what = "comment",
     .text = "# export NCCL_P2P_DISABLE=1\n#export NCCL_DEBUG=1\n",
     .want = {"!env.NCCL_P2P_DISABLE", "!env.NCCL_DEBUG"}},
    {.what = "part of env",
     .node = "gpu1",
     .text = "gpu1:~$ env | grep NCCL\nNCCL_IB_HCA=\"mlx5_0\"\n",
     .want = {"env.NCCL_IB_HCA=\"\\\"mlx5_0\\\"\"", "!probe.env.status"}},
    {.what = "whole env",
     .text = "$ "
             "env\nSHELL=/bin/bash\nPWD=/root\nHOME=/"
             "root\nLANG=C\nUSER=root\nSHLVL=1\nNCCL_DEBUG=INFO\nPATH=/bin\n_=/bin/env\n",
     .want = {"env.NCCL_DEBUG=\"INFO\"", "probe.env.status=\"ok\""}},
    {.what = "script with PATH",
     .text = "PATH=/a:$PATH\nHOME=/x\nNCCL_DEBUG=INFO\n",
     .want = {"!probe.env.status"}},
    {.what = "ranks, quoted mail",
     .text = "> [rank0]: NCCL_DEBUG=INFO\n> 1: NCCL_IB_HCA=a\n",
     .want = {"env.NCCL_DEBUG=\"INFO\"", "env.NCCL_IB_HCA=\"a\""}},
    {.what = "pods and times",
     .text = "[pod/t-0/main] export NCCL_DEBUG=INFO\n2026-01-02T03:04:05.678Z export "
             "NCCL_IB_HCA=b\nt-1  | export FI_PROVIDER=efa\n",
     .want = {"env.NCCL_DEBUG=\"INFO\"", "env.NCCL_IB_HCA=\"b\"", "env.FI_PROVIDER=\"efa\""}},
};

Test(ticket, variables)
{
    TRY(variables);
}

#define BASH                                                                                       \
    "core file size              (blocks, -c) 0\n"                                                 \
    "max locked memory           (kbytes, -l) 64\n"                                                \
    "open files                          (-n) 1024\n"
static const struct sample limits[] = {
    {.what = "bash",
     .text = BASH,
     .want = {"limits.memlock={\"soft\":65536}", "limits.nofile={\"soft\":1024}", "!limits.stack"}},
    {.what = "unlimited",
     .text = "max locked memory       (kbytes, -l) unlimited\n",
     .want = {"limits.memlock={\"soft\":-1}"}},
    {.what = "dash",
     .text = "locked memory(kbytes) 8192\nnofiles              20000\n",
     .want = {"limits.memlock={\"soft\":8388608}", "limits.nofile={\"soft\":20000}"}},
    {.what = "/proc",
     .text = "Max locked memory         65536                unlimited            bytes     \n",
     .want = {"limits.memlock={\"hard\":-1,\"soft\":65536}"}},
    {.what = "one",
     .text = "$ ulimit -l\nunlimited\n$ ulimit -n\n512\n",
     .want = {"limits.memlock={\"soft\":-1}", "limits.nofile={\"soft\":512}"}},
    {.what = "cut",
     .text = "max locked memory       (kbytes, -l)\nopen files  (-n",
     .want = {"!limits.memlock", "!limits.nofile"}},
    {.what = "sysctl",
     .text = "kernel.numa_balancing = 1\nnet.ipv4.ip_local_port_range = 32768\t60999\n",
     .want = {"sysctl.kernel.numa_balancing=1",
              "sysctl.net.ipv4.ip_local_port_range=\"32768\\t60999\""}},
    {.what = "a wish",
     .text = "kernel.numa_balancing=1\n$ sysctl -w kernel.numa_balancing=0\nkernel.numa_balancing "
             "= 0\n",
     .want = {"!sysctl.kernel.numa_balancing"}},
    {.what = "df -h",
     .text = "Filesystem      Size  Used Avail Use% Mounted on\nshm              64M     0   64M   "
             "0% /dev/shm\n",
     .want = {"shm.size=67108864", "shm.free=67108864"}},
    {.what = "df",
     .text = "Filesystem     1K-blocks  Used Available Use% Mounted on\ntmpfs           24684092   "
             "  0  24684092   0% /dev/shm\n",
     .want = {"shm.size=25276510208"}},
    {.what = "df without its head",
     .text = "tmpfs           24684092     0  24684092   0% /dev/shm\n",
     .want = {"!shm.size"}},
    {.what = "df cut", .text = "tmpfs   64M    /dev/shm\n", .want = {"!shm.size"}},
};

Test(ticket, limits)
{
    TRY(limits);
}

#define SMI_HEAD                                                                                   \
    "+-----------------------------------------------------------------------------------------+"  \
    "\n"                                                                                           \
    "| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     "   \
    "|\n"                                                                                          \
    "+-----------------------------------------+------------------------+----------------------+"  \
    "\n"                                                                                           \
    "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC "   \
    "|\n"                                                                                          \
    "|=========================================+========================+======================|"  \
    "\n"                                                                                           \
    "|   0  NVIDIA H200                    On  |   00000000:1B:00.0 Off |                    0 "   \
    "|\n"                                                                                          \
    "| N/A   40C    P0             81W /  700W |       0MiB / 143771MiB |      0%      Default "   \
    "|\n"                                                                                          \
    "|                                         |                        |             Disabled "   \
    "|\n"
#define SMI_END                                                                                    \
    "+-----------------------------------------+------------------------+----------------------+"  \
    "\n"
#define TOPO                                                                                       \
    "\t\033[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\033[0m\n"                              \
    "GPU0\t X \tNV18\tSYS\t0-15\t0\n"                                                              \
    "GPU1\tNV18\t X \tPIX\t0-15\t0\n"
static const struct sample nvidia[] = {
    {.what = "table",
     .node = "gpu7",
     .text = "root@gpu7:~# nvidia-smi\n" SMI_HEAD SMI_END "\nroot@gpu7:~# ls\n",
     .want = {"nvml.driver=\"580.159.04\"", "pci.count.gpu-nvidia=1", "cuda.driver=\"13.0\"",
              "gpu.nvidia.devices=[{\"model\":\"NVIDIA H200\",\"pci\":\"0000:1b:00.0\"}]",
              "nvml.devices=[{\"index\":0,\"memory\":150754820096,\"mig\":false,\"name\":\"NVIDIA "
              "H200\",\"pci\":\"0000:1b:00.0\",\"persistence\":true}]"}},
    {.what = "table in a fence",
     .text = "```\n" SMI_HEAD SMI_END "```\n",
     .want = {"pci.count.gpu-nvidia=1"}},
    {.what = "cut table",
     .text = SMI_HEAD,
     .want = {"nvml.driver=\"580.159.04\"", "!pci.count.gpu-nvidia", "!nvml.devices"}},
    {.what = "table with a gap",
     .text = SMI_HEAD "...\n" SMI_END,
     .want = {"!pci.count.gpu-nvidia"}},
    {.what = "broken",
     .text = "| NVIDIA-SMI\n|   0  \n|   999999999999  x | 00:00.0 |\n+--\n",
     .want = {"!nvml.devices"}},
    {.what = "topo",
     .text = TOPO "NIC0\tSYS\tPIX\t X \t\t\n\nNIC Legend:\n\n  NIC0: mlx5_2\n",
     .want = {"topology.peers=[{\"class\":\"NV18\",\"gpu\":\"GPU0\",\"peer\":\"GPU1\"}]",
              "topology.gpu_nic=[{\"class\":\"SYS\",\"gpu\":\"GPU0\",\"nic\":\"mlx5_2\"},{"
              "\"class\":\"PIX\",\"gpu\":\"GPU1\",\"nic\":\"mlx5_2\"}]"}},
    {.what = "topo cut", .text = TOPO, .want = {"!topology.peers", "!topology.gpu_nic"}},
    {.what = "topo garbage",
     .text = "\tGPU0\tCPU Affinity\nGPU0\tX\nGPU0 GPU0\n",
     .want = {"!topology.peers"}},
    {.what = "nvlink",
     .text = "GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n",
     .want = {"nvml.devices=[{\"index\":0,\"links\":[{\"active\":true,\"link\":0},{\"active\":"
              "false,\"link\":1}]}]"}},
    {.what = "list",
     .text = "$ nvidia-smi -L\nGPU 0: A100 (UUID: GPU-1)\nGPU 1: A100 (UUID: GPU-2)\n$ x\n",
     .want = {"pci.count.gpu-nvidia=2"}},
    {.what = "list, end unknown",
     .text = "GPU 0: A100 (UUID: GPU-1)\n",
     .want = {"!pci.count.gpu-nvidia"}},
    {.what = "-q",
     .text =
         "==============NVSMI LOG==============\n\nDriver Version                  : "
         "550.54.15\nAttached GPUs : 1\n"
         "GPU 00000000:1B:00.0\n    Product Name          : NVIDIA A100\n    ECC Mode\n        "
         "Current     : Enabled\n"
         "    Remapped Rows\n        Correctable Error : 0\n        Pending   : Yes\n        "
         "Remapping Failure Occurred  : No\n"
         "    Clocks Throttle Reasons\n        Idle  : Not Active\n        HW Slowdown : Active\n",
     .want = {"nvml.health=[{\"clock_reasons\":[\"hardware "
              "slowdown\"],\"ecc\":true,\"name\":\"NVIDIA "
              "A100\",\"pci\":\"0000:1b:00.0\",\"remap_failure\":false,\"remap_"
              "pending\":true,\"remapped_correctable\":0,\"state\":\"answers\"}]",
              "gpu.nvidia.devices=[{\"model\":\"NVIDIA A100\",\"pci\":\"0000:1b:00.0\"}]"}},
    {.what = "-q in nvidia-bug-report.log",
     .text =
         "____________________________________________\n\nStart of NVIDIA bug report log file.\n\n"
         "nvidia-bug-report.sh Version: 36159172\n\nuname: Linux gpu7 5.15.0-105-generic\n\n"
         "____________________________________________\n\n/usr/bin/nvidia-smi --query\n\n"
         "==============NVSMI LOG==============\n\n"
         "Timestamp                                 : Fri Nov 27 10:11:20 2026\n"
         "Driver Version                            : 550.54.15\n\n"
         "Attached GPUs                             : 1\nGPU 00000000:3B:00.0\n"
         "    Product Name                          : NVIDIA H100\n"
         "    VBIOS Version                         : 96.00.99.00.01\n"
         "    Inforom Version\n        Image Version                     : G520.0200.00.05\n"
         "        OEM Object                        : 2.1\n"
         "    GSP Firmware Version                  : N/A\n"
         "    GPU Virtualization Mode\n        Virtualization Mode               : Pass-Through\n"
         "    ECC Errors\n        Volatile\n            DRAM Uncorrectable            : 1\n"
         "        Aggregate\n            SRAM Threshold Exceeded       : Yes\n"
         "        Channel Repair Pending            : Yes\n"
         "        TPC Repair Pending                : No\n\n"
         "____________________________________________\n\n/usr/bin/journalctl -b -0\n\n"
         "Nov 27 10:02:31 gpu7 kernel: NVRM: Xid (PCI:0000:3b:00): 63, pid=4711\n",
     .want = {"nvml.health=[{\"ecc_volatile_uncorrected_dram\":1,\"inforom\":\"G520.0200.00.05\","
              "\"name\":\"NVIDIA H100\",\"pci\":\"0000:3b:00.0\",\"repair_pending\":true,\"sram_"
              "exceeded\":true,\"state\":\"answers\",\"vbios\":\"96.00.99.00.01\","
              "\"virtualization\":\"passthrough\"}]",
              "nvml.driver=\"550.54.15\""}},
    {.what = "-q cut",
     .text = "==============NVSMI LOG==============\nGPU 00000000:1B:00.0\n    Remapped Rows\n     "
             "   Pend",
     .want = {"nvml.health=[{\"pci\":\"0000:1b:00.0\",\"state\":\"answers\"}]"}},
};

Test(ticket, nvidia)
{
    TRY(nvidia);
}

static const struct sample machine[] = {
    {.what = "uname",
     .text = "Linux gpu07 5.15.0-91-generic #101-Ubuntu SMP x86_64 x86_64 x86_64 GNU/Linux\n",
     .want = {"host.kernel=\"5.15.0-91-generic\"", "host.name=\"gpu07\"", "host.arch=\"x86_64\""}},
    {.what = "prose on Linux", .text = "Linux 5.15 is here #1\n", .want = {"!host.kernel"}},
    {.what = "os-release",
     .text =
         "NAME=\"Ubuntu\"\nPRETTY_NAME=\"Ubuntu 22.04.4 LTS\"\nVERSION_ID=\"22.04\"\nID=ubuntu\n",
     .want = {"host.os=\"Ubuntu 22.04.4 LTS\"", "host.os_id=\"ubuntu\"",
              "host.os_version=\"22.04\""}},
    {.what = "cmdline",
     .text = "$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz root=/dev/sda1 iommu=pt intel_iommu=on\n",
     .want = {"kernel.iommu.cmdline={\"intel_iommu\":\"on\",\"iommu\":\"pt\"}"}},
    {.what = "cmdline cut",
     .text = "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ...\n",
     .want = {"!kernel.cmdline"}},
    {.what = "cat",
     .text = "$ cat /proc/sys/kernel/numa_balancing\n1\n",
     .want = {"sysctl.kernel.numa_balancing=1"}},
    {.what = "cat fails",
     .text = "$ cat /proc/sys/kernel/numa_balancing\ncat: no such file\n",
     .want = {"!sysctl.kernel.numa_balancing"}},
    {.what = "lscpu",
     .text = "Architecture:            x86_64\n  CPU op-mode(s):        32-bit, 64-bit\nModel "
             "name: Xeon\nHypervisor vendor:     KVM\n",
     .want = {"host.virt=\"kvm\"", "host.cpu=\"Xeon\""}},
    {.what = "lscpu cut",
     .text = "Architecture:            x86_64\n  CPU op-mode(s):   32-bit\n",
     .want = {"!host.virt"}},
    {.what = "service",
     .text = "● nvidia-fabricmanager.service - NVIDIA fabric manager service\n     Active: "
             "inactive (dead)\n",
     .want = {"nvidia.fabricmanager.running=false"}},
    {.what = "service runs",
     .text = "● nvidia-fabricmanager.service - x\n     Active: active (running) since\n",
     .want = {"nvidia.fabricmanager.running=true"}},
    {.what = "service cut",
     .text = "● nvidia-fabricmanager.service - x\n     Act",
     .want = {"!nvidia.fabricmanager.running"}},
    {.what = "dmesg",
     .text = "[    0.5] iommu: Default domain type: Translated \n[ 9.1] NVRM version: NVIDIA UNIX "
             "Open Kernel Module for x86_64  550.54  Release\n",
     .want = {"kernel.iommu.mode=\"DMA\"",
              "gpu.nvidia.driver={\"open\":true,\"version\":\"550.54\"}"}},
    {.what = "lsmod",
     .text = "Module                  Size  Used by\nnvidia_peermem         16384  0\n",
     .want = {"kernel.module.nvidia_peermem={\"refcount\":0,\"state\":\"live\"}",
              "!kernel.module.gdrdrv"}},
    {.what = "grep of nothing",
     .node = "n1",
     .text = "[me@n1 ~]$ lsmod | grep nvidia_peermem\n[me@n1 ~]$ ls\n",
     .want = {"~kernel.module.nvidia_peermem", "!kernel.module.gdrdrv"}},
    {.what = "an instruction",
     .text = "```\n$ lsmod | grep nvidia_peermem\n```\n",
     .want = {"!kernel.module.nvidia_peermem"}},
    {.what = "lsmod fails",
     .node = "n1",
     .text = "[me@n1 ~]$ lsmod | grep peermem\nbash: lsmod: command not found\n[me@n1 ~]$ ls\n",
     .want = {"!kernel.module.nvidia_peermem"}},
    {.what = "modinfo",
     .text = "filename:       /lib/modules/5/nvidia.ko\nversion:        550.1\nlicense:        "
             "NVIDIA\n",
     .want = {"gpu.nvidia.driver={\"open\":false,\"version\":\"550.1\"}"}},
};

Test(ticket, machine)
{
    TRY(machine);
}

#define IBSTAT                                                                                     \
    "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.36\n\tPort 1:\n" \
    "\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n"
#define PORT                                                                                       \
    "{\"link_layer\":\"InfiniBand\",\"phys_state\":\"LinkUp\",\"port\":1,\"rate\":400.0,"          \
    "\"state\":\"ACTIVE\"}"
static const struct sample fabric[] = {
    {.what = "ibstat",
     .text = IBSTAT "\t\tLink layer: InfiniBand\n",
     .want = {"rdma.devices=[{\"fw\":\"28.36\",\"name\":\"mlx5_0\",\"ports\":[" PORT "]}]",
              "pci.count.mlx5=1"}},
    {.what = "ibstat cut", .text = IBSTAT, .want = {"!rdma.devices"}},
    {.what = "ibstat of one",
     .text = "$ ibstat mlx5_0\n" IBSTAT "\t\tLink layer: InfiniBand\n",
     .want = {"!rdma.devices"}},
    {.what = "ibstatus",
     .text = "Infiniband device 'mlx5_0' port 1 status:\n\tdefault gid:\t fe80::1\n\tstate:\t\t 4: "
             "ACTIVE\n\tphys state:\t 5: LinkUp\n\trate:\t\t 400 Gb/sec (4X NDR)\n\tlink_layer:\t "
             "InfiniBand\n",
     .want = {"rdma.devices=[{\"name\":\"mlx5_0\",\"ports\":[" PORT "]}]"}},
    {.what = "ibv_devinfo",
     .text = "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand "
             "(0)\n\tfw_ver:\t\t\t\t20.31\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_DOWN "
             "(1)\n\t\t\tlink_layer:\t\tEthernet\n",
     .want = {"rdma.devices=[{\"fw\":\"20.31\",\"name\":\"mlx5_0\",\"ports\":[{\"link_layer\":"
              "\"Ethernet\",\"port\":1,\"state\":\"DOWN\"}]}]"}},
    {.what = "rdma link",
     .text = "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1\n",
     .want = {"rdma.devices=[{\"name\":\"mlx5_0\",\"ports\":[{\"phys_state\":\"LinkUp\",\"port\":1,"
              "\"state\":\"ACTIVE\"}]}]"}},
    {.what = "rdma link broken",
     .text = "link mlx5_0/ state\nlink /1 state X\n",
     .want = {"!rdma.devices"}},
    {.what = "show_gids",
     .text = "DEV\tPORT\tINDEX\tGID\t\tIPv4  \t\tVER\tDEV\n---\t----\n"
             "mlx5_0\t1\t0\tfe80:0000:0000:0000:0ac0:ebff:fe00:0001\t\t\tv1\tens1\n"
             "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a00:0001\t10.0.0.1  "
             "\tv2\tens1\nn_gids_found=2\n",
     .want = {"rdma.devices=[{\"name\":\"mlx5_0\",\"ports\":[{\"gids\":[{\"family\":\"link-local\","
              "\"index\":0,\"type\":\"IB/RoCE "
              "v1\"},{\"family\":\"ipv4\",\"index\":3,\"type\":\"RoCE v2\"}],\"port\":1}]}]"}},
    {.what = "show_gids cut",
     .text = "DEV\tPORT\tINDEX\tGID\nmlx5_0\t1\t0\tfe80:0000:0000:0000:0ac0:ebff:fe00:"
             "0001\t\t\tv1\tens1\n",
     .want = {"!rdma.devices"}},
    {.what = "ip a",
     .text = "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default\n  "
             "  link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n    inet 127.0.0.1/8 scope "
             "host lo\n"
             "4: eth0@if5: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1400 state UP\n    link/ether "
             "02:fc:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n    inet 10.0.0.1/24 brd 10.0.0.255 scope "
             "global eth0\n",
     .want = {"net.ifaces=[{\"addrs\":[{\"addr\":\"127.0.0.1\",\"family\":\"inet\",\"prefix\":8,"
              "\"scope\":\"host\"}],\"loopback\":true,\"mtu\":65536,\"name\":\"lo\",\"operstate\":"
              "\"unknown\",\"running\":true,\"type\":772,\"up\":true},"
              "{\"addrs\":[{\"addr\":\"10.0.0.1\",\"family\":\"inet\",\"prefix\":24,\"scope\":"
              "\"global\"}],\"loopback\":false,\"mtu\":1400,\"name\":\"eth0\",\"operstate\":\"up\","
              "\"running\":true,\"type\":1,\"up\":true,\"virtual\":true}]"}},
    {.what = "ip a of one",
     .text = "2: eth0: <BROADCAST,UP> mtu 1500 state UP\n    inet 10.0.0.1/24 scope global\n",
     .want = {"!net.ifaces"}},
    {.what = "ip broken",
     .text = "1: lo: <\n9: : <>\n1: lo: <LOOPBACK> mtu\n   inet 1/2/3/4\n",
     .want = {"!net.mtu"}},
    {.what = "lspci",
     .text =
         "```\n00:00.0 Host bridge: Intel Corporation Device 0d57\n1b:00.0 3D controller: NVIDIA "
         "Corporation GH100 [H200] (rev a1)\n"
         "3b:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n3b:00.1 "
         "Infiniband controller: Mellanox Technologies MT2910 [ConnectX-7 Virtual Function]\n```\n",
     .want = {"pci.count.gpu-nvidia=1", "pci.count.mlx5=1", "~pci.count.efa",
              "~pci.count.gpu-amd"}},
    {.what = "lspci part",
     .text = "$ lspci | grep -i nvidia\n1b:00.0 3D controller: NVIDIA Corporation GH100 (rev "
             "a1)\n$ ls\n",
     .want = {"pci.count.gpu-nvidia=1", "!pci.count.efa"}},
    {.what = "lspci, end unknown",
     .text = "00:00.0 Host bridge: Intel\n1b:00.0 3D controller: NVIDIA Corporation GH100\n",
     .want = {"!pci.count.gpu-nvidia", "!pci.count.efa"}},
};

Test(ticket, fabric)
{
    TRY(fabric);
}

Test(ticket, nodes_are_told_apart_and_what_was_read_is_said)
{
    struct shk_name_set *names;
    struct shk_ticket *ticket =
        ticket_of("me@n1:~$ ulimit -l\n64\nme@n1:~$ ssh n2\nme@n2:~$ ulimit -l\nunlimited\n"
                  "export NCCL_DEBUG=INFO\n" SMI_HEAD,
                  &names);
    ticket_expect(ticket_facts_of(ticket, "n1"), "limits.memlock={\"soft\":65536}", "n1");
    ticket_expect(ticket_facts_of(ticket, "n2"), "limits.memlock={\"soft\":-1}", "n2");
    ticket_expect(ticket_facts_of(ticket, "n2"), "host.name=\"n2\"", "n2");
    char *said = shk_ticket_summary(ticket);
    cr_expect_str_eq(
        said,
        "ulimit, 1 variable, nvidia-smi; nvidia-smi: the table is cut, its GPUs are left out");
    free(said);
    shk_ticket_destroy(ticket);
    shk_name_set_destroy(names);
}

Test(ticket, prefixes_of_nodes)
{
    struct shk_name_set *names;
    struct shk_ticket *ticket =
        ticket_of("node01: x\nnode01: x\nnode01: max locked memory (kbytes, -l) 64\nnode01: x\n"
                  "node02: x\nnode02: x\nnode02: max locked memory (kbytes, -l) 128\nnode02: x\n",
                  &names);
    ticket_expect(ticket_facts_of(ticket, "node01"), "limits.memlock={\"soft\":65536}", "node01");
    ticket_expect(ticket_facts_of(ticket, "node02"), "limits.memlock={\"soft\":131072}", "node02");
    shk_ticket_destroy(ticket);
    shk_name_set_destroy(names);
}

Test(ticket, bytes_that_are_no_text)
{
    static const struct sample bytes[] = {
        {.what = "driver",
         .text = "| NVIDIA-SMI 1 \xff Driver Version: 5\xfe\xc3\xa4 |\n",
         .want = {"nvml.driver=\"5?\xc3\xa4\""}},
        {.what = "device",
         .text = "link \xff/1 state ACTIVE physical_state LINK_UP\n",
         .want = {"rdma.devices=[{\"name\":\"?\",\"ports\":[{\"phys_state\":\"LinkUp\",\"port\":1,"
                  "\"state\":\"ACTIVE\"}]}]"}},
    };
    TRY(bytes);
}

Test(ticket, several_files_and_long_ones)
{
    static const char first[] = "export NCCL_DEBUG=INFO\n", second[] = "export NCCL_IB_HCA=a\n";
    static const char late[] = "export FI_PROVIDER=efa\n";
    size_t size = SHK_TICKET_FILE_MAX;
    char *filler = malloc(size);
    struct shk_name_set *names;
    struct shk_ticket *ticket = ticket_of("", &names);
    shk_ticket_destroy(ticket);
    ticket = shk_ticket_create(names);
    memset(filler, 'x', size);
    cr_assert_eq(shk_ticket_add(ticket, "a", first, strlen(first)), 0);
    cr_assert_eq(shk_ticket_add(ticket, "b", second, strlen(second)), 0);
    cr_assert_eq(shk_ticket_add(ticket, "b", filler, size), 0);
    cr_assert_eq(shk_ticket_add(ticket, "b", late, strlen(late)), 0);
    cr_assert_eq(shk_ticket_read(ticket), 0);
    ticket_expect(ticket_facts_of(ticket, ""), "env.NCCL_DEBUG=\"INFO\"", "first");
    ticket_expect(ticket_facts_of(ticket, ""), "env.NCCL_IB_HCA=\"a\"", "second");
    ticket_expect(ticket_facts_of(ticket, ""), "!env.FI_PROVIDER", "late");
    char *said = shk_ticket_summary(ticket);
    cr_expect_str_eq(said, "2 variables; b is long, its end was not looked at");
    free(said);
    free(filler);
    shk_ticket_destroy(ticket);
    shk_name_set_destroy(names);
}

Test(ticket, an_ordinary_log_says_nothing)
{
    static const char log[] = "node01:1:1 [0] NCCL INFO NCCL_DEBUG set by environment to INFO\n"
                              "step 10: loss=0.1 lr=1e-3\nepoch=1\nGPU 0: busy\nip: none\n";
    struct shk_name_set *names;
    struct shk_ticket *ticket = ticket_of(log, &names);
    char *said = shk_ticket_summary(ticket);
    cr_expect_str_eq(said, "");
    free(said);
    shk_ticket_destroy(ticket);
    shk_name_set_destroy(names);
}
