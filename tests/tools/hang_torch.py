"""A PyTorch job (gloo, on CPUs) for hang_score: hang_torch.py MODE VICTIM RANKS PORT PATH, which starts
one process for each rank with the variables of torchrun, as that does not run with every Python. After some work that
all share, the victim does what the mode says and the others wait for it; in the modes of a healthy job all go on for ever."""
import multiprocessing, os, socket, subprocess, sys, threading, time

if "RANK" not in os.environ:
    ranks, port = sys.argv[3:5]
    started = [subprocess.Popen([sys.executable, *sys.argv], env={
        **os.environ, "RANK": str(r), "WORLD_SIZE": ranks, "LOCAL_RANK": str(r), "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port}) for r in range(int(ranks))]
    for process in started:
        process.wait()
    sys.exit(0)

import torch
import torch.distributed as dist

mode, victim = sys.argv[1], int(sys.argv[2])


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        if mode == "loader-locked":
            locked = threading.Lock()
            locked.acquire()
            locked.acquire()
        time.sleep(0.002 if mode == "loader" else 100000)
        return torch.ones(4)


def epoch():
    for batch in torch.utils.data.DataLoader(Slow(), batch_size=2, num_workers=1):
        dist.all_reduce(batch.sum())


def stand():
    if mode == "broadcast":
        dist.broadcast(torch.ones(1), 0)
    elif mode == "gather":
        dist.all_gather([torch.ones(1) for _ in range(dist.get_world_size())], torch.ones(1))
    elif mode == "barrier":
        dist.barrier()
    elif mode == "sleep":
        time.sleep(100000)
    elif mode == "loop":
        while True:
            pass
    elif mode == "lock":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    elif mode in ("loader-hangs", "loader-locked"):
        epoch()
    elif mode == "exit":
        os._exit(0)
    elif mode == "input":
        os.read(os.pipe()[0], 1)
    elif mode == "receive":
        dist.recv(torch.ones(1), (victim + 1) % dist.get_world_size())
    else:
        stand_elsewhere()


def silent_peer():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).recv(1)


def recursion(levels):
    while levels == 0:
        pass
    return recursion(levels - 1) + 1


def forked():
    pid = os.fork()
    if pid == 0:
        time.sleep(100000)
    os.waitpid(pid, 0)


def stand_elsewhere():
    tensor, peer = torch.ones(1 << 20), (victim + 1) % dist.get_world_size()
    {"reduce": lambda: dist.reduce(tensor, peer),
     "store": lambda: dist.distributed_c10d._get_default_store().get("what nobody sets"),
     "new-group": lambda: dist.barrier(dist.new_group()),
     "sends": lambda: dist.send(tensor, peer),
     "object": lambda: dist.broadcast_object_list([None], peer),
     "queue": lambda: multiprocessing.Queue().get(),
     "subprocess": lambda: subprocess.run(["sleep", "100000"], check=False),
     "fifo": lambda: open(sys.argv[5], encoding="utf-8").read(),
     "peer": silent_peer,
     "event": lambda: threading.Event().wait(),
     "recursion": lambda: recursion(400),
     "native": lambda: sum(iter(int, 1)),
     "fork": forked}[mode]()


dist.init_process_group("gloo")
for _ in range(5):
    dist.all_reduce(torch.ones(4))
os.write(1, f"rank {dist.get_rank()} process {os.getpid()}\n".encode())  # at once: the ranks share the pipe
while mode in ("train", "loader", "matmul"):
    if mode == "loader":
        epoch()
    elif mode == "matmul":
        dist.all_reduce(torch.randn(200, 200) @ torch.randn(200, 200))
    else:
        dist.all_reduce(torch.randn(1000))
if dist.get_rank() == victim:
    stand()
dist.all_reduce(torch.ones(1))
