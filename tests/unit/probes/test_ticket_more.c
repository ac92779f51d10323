/* Outputs of tools as people paste them: libraries, jobs, containers, accelerators. */
#include "ticket_support.h"

#include <criterion/criterion.h>

static const struct sample libraries[] = {
    {.what = "fi_info",
     .text = "provider: efa\n    fabric: efa\n    domain: rdmap0\n    version: 122.0\n    type: "
             "FI_EP_RDM\n    protocol: FI_PROTO_EFA\nprovider: tcp\n    fabric: 10.0.0.0/24\n    "
             "domain: eth0\n    type: FI_EP_MSG\n    protocol: FI_PROTO_SOCK_TCP\n",
     .want = {"fabric.providers=[\"efa\",\"tcp\"]"}},
    {.what = "fi_info of one",
     .text = "$ fi_info -p efa\nprovider: efa\n    fabric: efa\n    protocol: FI_PROTO_EFA\n",
     .want = {"!fabric.providers"}},
    {.what = "fi_info cut",
     .text = "provider: efa\n    fabric: efa\n    dom",
     .want = {"!fabric.providers", "!fabric.domains"}},
    {.what = "fi_info -l",
     .text = "$ fi_info -l\nefa:\n    version: 122.0\ntcp:\n    version: 122.0\n$ fi_info "
             "--version\nlibfabric: 1.22.0\nlibfabric api: 1.22\n",
     .want = {"fabric.core_providers=[\"efa\",\"tcp\"]"}},
    {.what = "pip",
     .text = "torch                    2.4.0\nnvidia-nccl-cu12         2.20.5\n",
     .want = {"nccl.version=\"2.20.5\""}},
    {.what = "pip cut",
     .text = "nvidia-nccl-cu12\nnvidia-nccl-cu12    x\n",
     .want = {"!nccl.version"}},
    {.what = "ldd",
     .text =
         "\tlibnccl.so.2 => /opt/nccl/lib/libnccl.so.2 (0x00007f)\n\tlibfabric.so.1 => not found\n",
     .want = {"nccl.path=\"/opt/nccl/lib/libnccl.so.2\"", "!fabric.path"}},
};

Test(ticket, libraries)
{
    TRY(libraries);
}

#define POD                                                                                        \
    "Name:             t-0\nNamespace:        ml\n    Limits:\n      memory:          64Gi\n     " \
    " nvidia.com/gpu:  8\n"
static const struct sample jobs[] = {
    {.what = "scontrol",
     .text = "JobId=771 JobName=train\n   Partition=gpu AllocNode:Sid=login:1\n   "
             "NodeList=n[1-2]\n   NumNodes=2 NumCPUs=64 NumTasks=16 CPUs/Task=4\n",
     .want = {"job.nodes=2", "job.ranks=16", "job.slurm.partition=\"gpu\"",
              "job.scheduler=\"slurm\"", "job.slurm.job_id=771"}},
    {.what = "scontrol broken",
     .text = "JobId=771 JobName=train\n   NumNodes=2-4 NumTasks=x NodeList=(null)\n",
     .want = {"!job.nodes", "!job.ranks", "!job.slurm.nodelist"}},
    {.what = "pod",
     .text = POD "    Environment:\n      NCCL_DEBUG:    INFO\n      NCCL_IB_HCA:   <set to the "
                 "key 'a' of config map 'b'>\n    Mounts:\n      FI_PROVIDER:  x\n",
     .want = {"host.container=\"kubernetes\"", "cgroup.memory.max=68719476736",
              "env.NCCL_DEBUG=\"INFO\"", "!env.NCCL_IB_HCA", "!env.FI_PROVIDER"}},
    {.what = "pod cut",
     .text = "Name:             t-0\nNamespace:        ml\n    Limits:\n      mem",
     .want = {"!cgroup.memory.max"}},
    {.what = "two containers",
     .text = POD "    Container ID: a\n    Container ID: b\n",
     .want = {"!cgroup.memory.max"}},
    {.what = "docker",
     .text = "[\n    {\n        \"Id\": \"a\",\n        \"Config\": {\"Env\": "
             "[\"NCCL_DEBUG=INFO\", 7, \"x\"]},\n        \"HostConfig\": {\"ShmSize\": 67108864, "
             "\"Ulimits\": [{\"Name\": \"memlock\", \"Hard\": -1, \"Soft\": -1}]}\n    }\n]\n",
     .want = {"shm.size=67108864", "limits.memlock={\"hard\":-1,\"soft\":-1}",
              "env.NCCL_DEBUG=\"INFO\"", "host.container=\"docker\""}},
    {.what = "docker with the host's IPC",
     .text = "[\n    {\n        \"Id\": \"a\",\n        \"HostConfig\": {\"ShmSize\": 67108864, "
             "\"IpcMode\": \"host\"}\n    }\n]\n",
     .want = {"!shm.size", "host.container=\"docker\""}},
    {.what = "docker cut",
     .text = "[\n    {\n        \"Id\": \"a\",\n        \"HostConfig\": {\"ShmSize\": 67108864,\n",
     .want = {"!shm.size", "!host.container"}},
};

Test(ticket, jobs_and_containers)
{
    TRY(jobs);
}

#define NEURON                                                                                     \
    "+--------+--------+--------+-----------+---------+\n| NEURON | NEURON | NEURON | CONNECTED "  \
    "| PCI     |\n"                                                                                \
    "| DEVICE | CORES  | MEMORY |  DEVICES  |   BDF   "                                            \
    "|\n+--------+--------+--------+-----------+---------+\n"                                      \
    "| 0      | 2      | 32 GB  | 4, 12     | 10:1c.0 |\n| 1      | 2      | 32 GB  | 5, 13     "  \
    "| 10:1d.0 |\n"
#define CXI                                                                                        \
    "Device: cxi0\n    Description: SS11 200Gb 2P NIC Mezz\n    Network device: hsn0\n    NID: "   \
    "1234 (0x004d2)\n    Link MTU: 2112\n    Link speed: BS_200G\n"
static const struct sample accelerators[] = {
    {.what = "rocm-smi",
     .text = "============================ ROCm System Management Interface "
             "============================\nDevice  Node  IDs              Temp    Power\n0       "
             "1     0x740c,   1234   40.0°C  90.0W\n1       2     0x740c,   1235   41.0°C  "
             "91.0W\n================================== End of ROCm SMI Log "
             "===================================\n",
     .want = {"pci.count.gpu-amd=2"}},
    {.what = "rocm-smi cut",
     .text = "==== ROCm System Management Interface ====\nDevice  Node  IDs   Temp\n0       1     "
             "0x740c,\n",
     .want = {"!pci.count.gpu-amd"}},
    {.what = "amd-smi",
     .text =
         "```\nGPU: 0\n    BDF: 0000:0c:00.0\n    UUID: a\nGPU: 1\n    BDF: 0000:22:00.0\n```\n",
     .want = {"pci.count.gpu-amd=2"}},
    {.what = "amd-smi, end unknown",
     .text = "GPU: 0\n    BDF: 0000:0c:00.0\n",
     .want = {"!pci.count.gpu-amd"}},
    {.what = "neuron-ls",
     .text = NEURON "+--------+--------+--------+-----------+---------+\n",
     .want = {"pci.count.neuron=2", "neuron.devices=[{\"core_count\":2,\"name\":\"neuron0\"},{"
                                    "\"core_count\":2,\"name\":\"neuron1\"}]"}},
    {.what = "neuron-ls cut", .text = NEURON, .want = {"!pci.count.neuron", "!neuron.devices"}},
    {.what = "cxi_stat",
     .text = CXI "    Link state: up\n",
     .want = {"cxi.devices=[{\"link_speed\":\"BS_200G\",\"link_state\":\"up\",\"mtu\":\"2112\","
              "\"name\":\"cxi0\",\"netdev\":\"hsn0\",\"nid\":\"1234\"}]",
              "pci.count.cxi=1"}},
    {.what = "cxi_stat cut", .text = CXI, .want = {"!cxi.devices", "!pci.count.cxi"}},
    {.what = "ethtool alone",
     .text = "Settings for eth0:\n\tSpeed: 100000Mb/s\n",
     .want = {"!net.ifaces"}},
    {.what = "ethtool",
     .text = "1: eth0: <LOOPBACK,UP> mtu 9\n2: eth1: <UP> mtu 9\nSettings for eth1:\n\tSpeed: "
             "100000Mb/s\n",
     .want = {"net.ifaces=[{\"loopback\":true,\"mtu\":9,\"name\":\"eth0\",\"running\":false,\"up\":"
              "true},{\"loopback\":false,\"mtu\":9,\"name\":\"eth1\",\"running\":false,\"speed_"
              "mbps\":100000,\"up\":true}]"}},
};

Test(ticket, accelerators_and_adapters)
{
    TRY(accelerators);
}

static const struct sample markdown[] = {
    {.what = "indented",
     .text = "text\n\n    Filesystem      Size  Used Avail Use% Mounted on\n    shm              "
             "64M     0   64M   0% /dev/shm\n\nmore\n",
     .want = {"shm.size=67108864"}},
    {.what = "indented tables",
     .text = "text\n\n    GPU 0: A (UUID: GPU-1)\n    \t Link 0: 26 GB/s\n",
     .want = {"nvml.devices=[{\"index\":0,\"links\":[{\"active\":true,\"link\":0}]}]"}},
};

Test(ticket, markdown)
{
    TRY(markdown);
}
