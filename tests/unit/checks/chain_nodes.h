/* Facts of nodes whose providers work. */
#ifndef SHK_TESTS_CHAIN_NODES_H
#define SHK_TESTS_CHAIN_NODES_H

/* A healthy node of each kind; cases change one fact. */
static const char efa_node[] =
    "{'pci.count.efa': 2, 'pci.devices': [{'kind': 'efa', 'device': '0xefa2'}],"
    " 'kernel.module.efa': {'state': 'present', 'value': {'version': '2.13.0'}},"
    " 'kernel.module.ib_uverbs': {},"
    " 'rdma.devices': [{'name': 'rdmap16s27', 'driver': 'efa', 'uverbs': 'uverbs0',"
    "   'ports': [{'state': 'ACTIVE'}]}, {'name': 'rdmap32s27', 'driver': 'efa',"
    "   'uverbs': 'uverbs1', 'ports': [{'state': 'ACTIVE'}]}],"
    " 'dev.infiniband/uverbs0': {'mode': '0666', 'uid': 0, 'gid': 0, 'rw': true},"
    " 'dev.infiniband/uverbs1': {'mode': '0666', 'uid': 0, 'gid': 0, 'rw': true},"
    " 'verbs.path': '/lib/libibverbs.so.1', 'verbs.fork': 'unneeded',"
    " 'verbs.devices': [{'name': 'rdmap16s27', 'rdma_read': true, 'rdma_write': true},"
    "   {'name': 'rdmap32s27', 'rdma_read': true, 'rdma_write': false}],"
    " 'limits.memlock': {'soft': -1, 'hard': -1}, 'host.kernel': '6.5.0-1020-aws',"
    " 'host.ids': {'euid': 1000}, 'pci.count.gpu-nvidia': 8,"
    " 'fabric.path': '/opt/amazon/efa/lib/libfabric.so.1', 'fabric.version': '1.22.0',"
    " 'fabric.copies': [{'path': '/opt/amazon/efa/lib/libfabric.so.1', 'links': ['efa']}],"
    " 'fabric.core_providers': ['efa', 'tcp'], 'fabric.problems': [],"
    " 'fabric.providers': ['efa', 'tcp'],"
    " 'fabric.domains': [{'provider': 'efa', 'domain': 'rdmap16s27-rdm', 'mtu': 8928},"
    "   {'provider': 'efa', 'domain': 'rdmap16s27-dgrm', 'mtu': 8928},"
    "   {'provider': 'efa', 'domain': 'rdmap32s27-rdm', 'mtu': 8928}],"
    " 'fabric.hints': [{'provider': 'efa', 'steps': [{'hint': 'FI_EP_RDM', 'count': 2},"
    "   {'hint': 'FI_HMEM', 'count': 2}]}]}";

static const char cxi_node[] =
    "{'pci.count.cxi': 2, 'kernel.module.cxi_ss1': {'version': '1.0'},"
    " 'kernel.module.cxi_user': {'version': '1.0'},"
    " 'cxi.devices': [{'name': 'cxi0', 'link_state': 'up', 'mtu': '9216'},"
    "   {'name': 'cxi1', 'link_state': 'up', 'mtu': '9216'}],"
    " 'dev.cxi0': {'rw': true}, 'dev.cxi1': {'rw': true},"
    " 'limits.memlock': {'soft': -1, 'hard': -1}, 'host.kernel': '5.14.21-cray',"
    " 'host.ids': {'euid': 1000}, 'job.scheduler': 'slurm', 'pci.count.gpu-amd': 8,"
    " 'env.SLINGSHOT_VNIS': '2037', 'env.SLINGSHOT_SVC_IDS': '5,5',"
    " 'fabric.path': '/opt/cray/lib/libfabric.so.1', 'fabric.version': '1.20.1',"
    " 'fabric.needed': [{'name': 'libcxi.so.1', 'path': '/usr/lib64/libcxi.so.1'}],"
    " 'fabric.core_providers': ['cxi', 'tcp'], 'fabric.problems': [], 'fabric.providers': ['cxi'],"
    " 'fabric.domains': [{'provider': 'cxi', 'domain': 'cxi0', 'mtu': 2048},"
    "   {'provider': 'cxi', 'domain': 'cxi1', 'mtu': 2048}],"
    " 'fabric.hints': [{'provider': 'cxi', 'steps': [{'hint': 'FI_RMA', 'count': 2}]}]}";

static const char verbs_node[] =
    "{'pci.count.mlx5': 1, 'kernel.module.ib_uverbs': {},"
    " 'rdma.devices': [{'name': 'mlx5_0', 'driver': 'mlx5_core', 'uverbs': 'uverbs0',"
    "   'ports': [{'state': 'ACTIVE'}]}, {'name': 'mlx5_1', 'driver': 'mlx5_core',"
    "   'uverbs': 'uverbs1', 'ports': [{'state': 'DOWN'}]}],"
    " 'dev.infiniband/uverbs0': {'rw': true}, 'dev.infiniband/uverbs1': {'rw': true},"
    " 'limits.memlock': {'soft': -1, 'hard': -1}, 'host.kernel': '5.15.0',"
    " 'verbs.path': '/lib/libibverbs.so.1', 'verbs.fork': 'unneeded',"
    " 'verbs.devices': [{'name': 'mlx5_0'}, {'name': 'mlx5_1'}],"
    " 'fabric.path': '/usr/lib/libfabric.so.1', 'fabric.version': '1.17.0',"
    " 'fabric.core_providers': ['verbs', 'ofi_rxm'], 'fabric.problems': [],"
    " 'fabric.providers': ['verbs;ofi_rxm'],"
    " 'fabric.domains': [{'provider': 'verbs;ofi_rxm', 'domain': 'mlx5_0', 'mtu': 4096}],"
    " 'fabric.hints': [{'provider': 'verbs', 'steps': [{'hint': 'FI_RMA', 'count': 1},"
    "   {'hint': 'FI_HMEM', 'count': 0, 'text': 'No data available'}]}]}";

#endif
