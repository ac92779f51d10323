"""A link that delays and loses packets, on kernels without netem too: two tun or tap interfaces in two
network namespaces, and a thread that carries what one sends to the other."""
import contextlib, ctypes, fcntl, heapq, os, random, select, struct, threading, time

TUNSETIFF, IFF_TUN, IFF_TAP, IFF_NO_PI = 0x400454CA, 1, 2, 0x1000
CLONE_NEWNET = 0x40000000


def interface(name, namespace=None, tap=False):
    """The fd of a new interface, in a namespace (its name or file). Only the thread that asks moves there."""
    result = []

    def work():
        if namespace:
            with open(os.path.join("/run/netns", namespace)) as space:
                if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET) != 0:
                    return
        fd = os.open("/dev/net/tun", os.O_RDWR)
        kind = (IFF_TAP if tap else IFF_TUN) | IFF_NO_PI
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), kind))
        result.append(fd)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return result[0]


class Relay(threading.Thread):
    """Carries packets between two interfaces, each after `delay` seconds, all but a share of `loss`."""

    def __init__(self, ends, delay, loss):
        super().__init__(daemon=True)
        self.ends, self.delay, self.loss = ends, delay, loss
        self.random = random.Random(1)
        self.dropped = self.carried = 0
        self.stop = threading.Event()

    def run(self):
        late, serial = [], 0
        other = {self.ends[0]: self.ends[1], self.ends[1]: self.ends[0]}
        while not self.stop.is_set():
            now = time.monotonic()
            while late and late[0][0] <= now:
                _, _, end, packet = heapq.heappop(late)
                with contextlib.suppress(OSError):
                    os.write(end, packet)
            wait = min(0.05, max(0, late[0][0] - now)) if late else 0.05
            for end in select.select(self.ends, [], [], wait)[0]:
                packet = os.read(end, 65535)
                serial += 1
                if self.random.random() < self.loss:
                    self.dropped += 1
                else:
                    self.carried += 1
                    heapq.heappush(late, (time.monotonic() + self.delay, serial, other[end], packet))

    def close(self):
        """Ends the thread; the interfaces go with their descriptors."""
        self.stop.set()
        self.join()
        for end in self.ends:
            os.close(end)
