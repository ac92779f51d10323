"""A file whose reads never return: a FUSE file system that is one regular file and answers everything but READ. The
reader sits in uninterruptible sleep, as with a network file system whose server is gone; SIGKILL does not end it."""
import ctypes, os, struct, threading

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE, MNT_FORCE, MNT_DETACH = 0x20000, 2, 4, 0x4000, 1 << 18, 1, 2
GETATTR, OPEN, READ, STATFS, INIT = 3, 14, 15, 17, 26  # <linux/fuse.h>
FOPEN_DIRECT_IO = 1  # reads go to the server at once, not through the page cache, whose wait can be killed
NO_REPLY = (2, 36, 42)  # FORGET, INTERRUPT, BATCH_FORGET


def call(name, *args):
    if getattr(LIBC, name)(*args) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


class StuckFile:
    """with StuckFile(path) as f: path (an existing file) hangs whoever reads it; f.readers counts them. OSError where
    FUSE cannot be used. The mount is seen by this process and its children only."""

    def __init__(self, path):
        self.path, self.readers = path, 0

    def __enter__(self):
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        try:
            call("unshare", CLONE_NEWNS)
            call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
            call("mount", b"stuck", os.fsencode(self.path), b"fuse", MS_NOSUID | MS_NODEV,
                 f"fd={self.fd},rootmode=100000,user_id=0,group_id=0".encode())
        except OSError:
            os.close(self.fd)
            raise
        self.server = threading.Thread(target=self.serve, daemon=True)
        self.server.start()
        return self

    def __exit__(self, *_):
        LIBC.umount2(os.fsencode(self.path), MNT_FORCE)  # ends the connection: who waits gets ECONNABORTED
        LIBC.umount2(os.fsencode(self.path), MNT_DETACH)
        self.server.join(10)
        os.close(self.fd)

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 17)
            except OSError:
                return
            opcode, unique = struct.unpack_from("=4xIQ", request)
            if opcode == READ:
                self.readers += 1
            elif opcode not in NO_REPLY:
                body = self.answer(opcode)
                os.write(self.fd, struct.pack("=IiQ", 16 + len(body or b""), 0 if body is not None else -38, unique) +
                         (body or b""))

    @staticmethod
    def answer(opcode):
        """Body of the reply; None: ENOSYS."""
        if opcode == INIT:
            return struct.pack("=IIIIHHIIHHI28x", 7, 31, 0, 0, 12, 10, 65536, 1, 16, 0, 0)
        if opcode == GETATTR:
            return struct.pack("=QII", 1, 0, 0) + struct.pack("=6Q10I", 1, 64, 1, 0, 0, 0, 0, 0, 0, 0o100444, 1, 0, 0,
                                                              0, 4096, 0)
        if opcode == OPEN:
            return struct.pack("=QIi", 0, FOPEN_DIRECT_IO, 0)
        return bytes(80) if opcode == STATFS else None
