"""probe --capture: a replay finds the facts of the live run, and a scrubbed one no name."""
import json, pathlib, re, socket
from support import CAPTURES, Case, main, run

# Facts that differ between two looks at the same host: times, free memory, how a probe fared; and who answers, which only a
# live host tells.
MOVING = re.compile(r"^(probe\.|run\.|clock\.|shm\.free|host\.memory_available|hugepages\.|topology\.(xml|source)"
                    r"|fabric\.(getinfo|open)_ms|limits\.core|munge\.socket|kernel\.syscalls|shm\.leftover)")


class Capture(Case):
    def facts(self, *args, env=None):
        p = run("probe", *args, env=env)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["facts"]

    @staticmethod
    def core(facts):
        """A replay does not know how full a file system is: `free` and `size` of places are left out."""
        def still(value):
            if isinstance(value, list):
                return [still(v) for v in value]
            if isinstance(value, dict):
                return {k: still(v) for k, v in value.items() if "mount" not in value or k not in ("free", "size", "answers")}
            return value
        return {k: (f["state"], still(f.get("value"))) for k, f in facts.items() if not MOVING.match(k)}

    def test_live_is_replay_of_live(self):
        tree = self.scratch() / "capture"
        env = {"NCCL_DEBUG": "INFO", "SLURM_JOB_ID": "77", "FI_PROVIDER": "tcp"}
        live = self.facts("--capture", tree, "--verbatim", env=env)
        replay = self.facts("--sysroot", tree)
        self.maxDiff = 4000
        self.assertEqual(self.core(live), self.core(replay))
        self.assertGreater(len(live), 150)

    def test_scrubbed(self):
        tree = self.scratch() / "capture"
        host = "gpu-node-17"
        env = {"USER": "alice42", "SLURM_JOB_ACCOUNT": "projectx", "SLURMD_NODENAME": host,
               "SLURM_JOB_ID": "77", "HF_TOKEN": "hf_abcdefghijklmnopqrstuvwxyzabcdefgh",
               "NCCL_SOCKET_IFNAME": "lo", "FI_LOG_SUBSYS": "alice42"}
        live = self.facts("--capture", tree, env=env)
        secrets = {"alice42", "projectx", host, "hf_abcdef"}
        if len(socket.gethostname()) >= 4:
            secrets.add(socket.gethostname())
        for iface in live["net.ifaces"]["value"]:
            for addr in iface.get("addrs") or []:
                if not addr["addr"].startswith(("127.", "::1")):
                    secrets.add(addr["addr"])
        for path in tree.rglob("*"):
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                for word in secrets:
                    self.assertNotIn(word.encode(), data, path)
        self.assertEqual(list(tree.glob("proc/[0-9][0-9]*")), [])
        replay = self.facts("--sysroot", tree)
        self.assertEqual(replay["env.SLURM_JOB_ID"]["value"], "77")
        same = {k: v for k, v in self.core(live).items()
                if k.startswith(("kernel.", "pci.", "cgroup.", "limits.", "dev.", "sysctl."))}
        self.assertGreater(len(same), 80)
        self.assertEqual(same, {k: self.core(replay).get(k) for k in same})

    def test_secrets_stay_even_verbatim(self):
        """What a configuration file or the environment holds."""
        tree, home = self.scratch() / "capture", self.scratch()
        (home / "nccl.conf").write_text("NCCL_X_PW=Made4Up\nNCCL_DEBUG=INFO\n")
        env = {"NCCL_CONF_FILE": str(home / "nccl.conf"), "NCCL_X_TOKEN": "Made4Up", "NCCL_Y": "pw=Made4Up"}
        live = self.facts("--capture", tree, "--verbatim", env=env)
        self.assertEqual(live["env.file.NCCL_X_PW"]["state"], "failed")
        for path in tree.rglob("*"):
            if path.is_file() and not path.is_symlink():
                self.assertNotIn(b"Made4Up", path.read_bytes(), path)
        replay = self.facts("--sysroot", tree)
        self.assertEqual(replay["env.file.NCCL_X_PW"]["state"], "failed")
        self.assertEqual(replay["env.file.NCCL_DEBUG"]["value"], "INFO")

    def test_refused(self):
        tree = self.scratch()
        (tree / "file").write_text("x")
        self.one_line(run("probe", "--capture", tree), 2, str(tree), "not empty")
        again = self.scratch() / "a"
        self.one_line(run("probe", "--sysroot", CAPTURES / "slingshot-amd", "--capture", again), 2,
                      "only a live host")


if __name__ == "__main__":
    main()
