"""Ranks that meet without PMIx: torch's variables, a folder, an address, over ssh (a stand-in for ssh). Healthy, with a
rank that never comes, with a wrong key, with one that is killed; two jobs at once; strangers at the port; and the key is
nowhere but in the ranks."""
import json, os, pathlib, signal, socket, subprocess, time
import support
from support import BASE_ENV, BINARY

KEY, OTHER = "0123456789abcdef-one", "0123456789abcdef-two"


def free_port():
    """A port whose neighbours up to those that are tried are likely to be free."""
    for _ in range(50):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        if port < 65000:
            return port
    raise AssertionError("no free port")


TORCH = ("variables", "RANK and WORLD_SIZE", "MASTER_ADDR")


class Rendezvous(support.Case):
    def start(self, rank, size, *args, env=None, timeout=30, sizes="4:64", command="bench"):
        """One rank; its report is on its stdout. `bench` probes nothing, and is faster for it."""
        process = subprocess.Popen(
            [str(BINARY), command, "--transport", "fabric", "--provider", "tcp", "--timeout", str(timeout), "--sizes",
             sizes, "--format", "json", *map(str, args)],
            env={**BASE_ENV, "RANK": str(rank), "WORLD_SIZE": str(size), **(env or {})}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def finish(self, processes):
        """{rank: (exit code, stdout, stderr)}"""
        done = {}
        for rank, process in processes.items():
            out, err = process.communicate(timeout=150)
            done[rank] = (process.returncode, out, err)
        return done

    def torch(self, ranks, size=3, env=None, each=None, **how):
        env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), **(env or {})}
        return {r: self.start(r, size, env={**env, **(each or {}).get(r, {})}, **how) for r in ranks}

    def report(self, done):
        code, out, err = done[0]
        self.assertTrue(out, err)
        return json.loads(out)

    def fact(self, report, key):
        return report["nodes"][0]["facts"][key]["value"]

    def missing(self, done, rank, why, host=None):
        """Rank 0 names the rank, and why."""
        rows = [m for m in self.fact(self.report(done), "job.missing") if m["rank"] == rank]
        self.assertEqual([why in m["why"] for m in rows], [True], rows)
        if host:
            self.assertEqual(rows[0]["host"], host)
        return rows[0]

    def joined(self, done, by, ranks=3, key=None):
        """By which way, of which launcher, by which variable (None: none)."""
        report = self.report(done)
        self.assertEqual([d[0] for d in done.values()], [0] * len(done), [d[2] for d in done.values()])
        found = report["collectives"]["fabric"]
        self.assertEqual((found["status"], found["ranks"]), ("ok", ranks), found.get("reason"))
        self.assertEqual({row["wrong"] for row in found["sizes"]}, {0})
        how = self.fact(report, "job.joined")
        self.assertEqual((how["by"], how.get("launcher"), how.get("variable")), by, how)
        self.assertEqual((how["keyed"], how.get("key")), (bool(key), key))
        self.assertEqual(self.fact(report, "job.missing"), [])
        self.assertEqual([d[1] for r, d in done.items() if r], [""] * (len(done) - 1), "only rank 0 reports")
        return report

    def test_variables_of_torch(self):
        self.joined(self.finish(self.torch(range(3))), TORCH)

    def test_key(self):
        done = self.finish(self.torch(range(3), env={"SHAKEDOWN_KEY": KEY}))
        self.joined(done, TORCH, key="SHAKEDOWN_KEY")
        self.assertFalse([d for d in done.values() if KEY in d[1] + d[2]], "the key is in what was printed")

    def test_key_file(self):
        path = self.scratch() / "key"
        path.write_text(KEY + "\n")
        path.chmod(0o600)
        with self.subTest("a key"):
            env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
            done = self.finish({r: self.start(r, 2, "--key-file", path, env=env) for r in range(2)})
            self.joined(done, TORCH, 2, key="--key-file")
        path.chmod(0o640)
        self.one_line(support.run("run", "--key-file", path), 2, "others may read or write this key", "chmod 600")
        path.chmod(0o600)
        path.write_text("short")
        self.one_line(support.run("run", "--key-file", path), 2, "16 to 1024 characters")
        self.one_line(support.run("run", env={"SHAKEDOWN_KEY": "short"}), 2, "SHAKEDOWN_KEY", "16 to 1024 characters")

    def test_the_key_leaves_the_environment(self):
        """Neither a fact nor /proc/PID/environ has it while the program runs."""
        (process,) = self.torch([1], env={"SHAKEDOWN_KEY": KEY}).values()
        until = time.monotonic() + 60
        environ = b"SHAKEDOWN_KEY=" + KEY.encode()
        while KEY.encode() in environ and time.monotonic() < until and process.poll() is None:
            time.sleep(0.02)
            environ = pathlib.Path(f"/proc/{process.pid}/environ").read_bytes() or environ
        self.assertIsNone(process.poll())
        self.assertNotIn(KEY.encode(), environ)
        self.assertNotIn(KEY.encode(), pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes())
        process.kill()
        p = support.run("probe", "--quick", env={"SHAKEDOWN_KEY": KEY})
        self.assertNotIn(KEY, p.stdout)
        self.assertNotIn("env.SHAKEDOWN_KEY", p.stdout)

    def test_wrong_key(self):
        done = self.finish(self.torch(range(3), env={"SHAKEDOWN_KEY": KEY}, each={1: {"SHAKEDOWN_KEY": OTHER}}, timeout=18,
                                      command="run"))
        self.assertEqual([d[0] for d in done.values()], [1, 1, 1], [d[2] for d in done.values()])
        self.assertEqual(done[1][2], "shakedown: rank 1: rank 0 has another key than SHAKEDOWN_KEY here\n")
        row = self.finding(self.report(done), "ranks that were not taken", "fail")
        self.assertIn("rank 1", row["observed"])
        self.assertIn("its key is not that of rank 0", row["observed"])
        self.finding(self.report(done), "rendezvous", "pass")
        printed = "".join(d[1] + d[2] for d in done.values())
        self.assertFalse(KEY in printed or OTHER in printed)

    def test_no_key_or_one_too_many(self):
        done = self.finish(self.torch(range(2), 2, env={"SHAKEDOWN_KEY": KEY}, each={1: {"SHAKEDOWN_KEY": ""}}, timeout=12))
        self.assertEqual(done[1][0], 1)
        self.assertIn("rank 0 asks for a key, and there is none here (SHAKEDOWN_KEY)", done[1][2])
        self.assertTrue(self.missing(done, 1, "it has no key, rank 0 has one")["launch"])
        done = self.finish(self.torch([0, 1], 2, each={1: {"SHAKEDOWN_KEY": KEY}}, timeout=12))
        self.assertIn("rank 0 has no key, this rank has one", done[1][2])
        self.missing(done, 1, "it has a key, rank 0 has none")

    def test_missing_rank(self):
        done = self.finish(self.torch([0, 2], timeout=18, command="run"))
        row = self.finding(self.report(done), "ranks", "fail")
        self.assertIn("rank 1: it never came", row["observed"])
        self.assertEqual([d[0] for d in done.values()], [1, 1])

    def test_missing_rank_0(self):
        done = self.finish(self.torch([1], timeout=6))
        self.assertEqual(done[1][0], 1)
        self.assertIn("rank 1 of 3 cannot reach rank 0 at 127.0.0.1", done[1][2])

    def test_killed_rank(self):
        ranks = self.torch(range(3), timeout=60, sizes="4:1G")
        time.sleep(0.1)
        children, until = [], time.monotonic() + 90
        while not children and time.monotonic() < until:
            time.sleep(0.05)
            kids = pathlib.Path(f"/proc/{ranks[2].pid}/task/{ranks[2].pid}/children").read_text().split()
            children = [k for k in kids if "shk:" in comm(k) or running(k)]
        self.assertTrue(children, "rank 2 never had a worker")
        ranks[2].send_signal(signal.SIGKILL)
        done = self.finish(ranks)
        self.assertEqual(done[0][0], 1, done[0][2])
        self.missing(done, 2, "it was there and is gone", os.uname().nodename)

    def test_two_jobs_at_once(self):
        """Neighbouring ports, as torchrun --nproc-per-node takes them, and the ranks of one try those of the other."""
        port = free_port()
        jobs = [self.torch(range(2), 2, env={"MASTER_PORT": str(port + i)}) for i in range(2)]
        for job in jobs:
            self.joined(self.finish(job), TORCH, 2)

    def test_strangers_at_the_port(self):
        """What speaks something else, or nothing, has the first port; the next one is taken, and strangers at that are
        shown the door."""
        port = free_port()
        with socket.socket() as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                stranger.bind(("127.0.0.1", port + 101))
            except OSError as e:
                self.skipTest(f"the port beside a free one is not free: {e}")
            stranger.listen(8)
            ranks = self.torch([0], 2, env={"MASTER_PORT": str(port)})
            said, until = None, time.monotonic() + 60
            while said is None and time.monotonic() < until:
                try:
                    said = socket.create_connection(("127.0.0.1", port + 102), timeout=5)
                except OSError:
                    time.sleep(0.05)
            self.assertIsNotNone(said, "rank 0 never listened")
            said.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n" * 200)
            ranks.update(self.torch([1], 2, env={"MASTER_PORT": str(port)}))
            done = self.finish(ranks)
            said.close()
        self.joined(done, TORCH, 2)

    def test_folder(self):
        folder = self.scratch()
        folder.chmod(0o700)
        args = ("--rendezvous", f"file://{folder}")
        stale = self.finish({1: self.start(1, 2, *args, timeout=3)})
        self.assertIn("rank 0 wrote nothing to", stale[1][2])
        done = self.finish({r: self.start(r, 3, *args) for r in (2, 1, 0)})
        done = {r: done[r] for r in range(3)}
        self.joined(done, ("folder", None, None), key="the folder")
        self.assertEqual(list(folder.iterdir()), [], "rank 0 takes its card away")

    def test_folder_of_somebody_else(self):
        """A card that others could have written is not taken."""
        folder = self.scratch()
        rank0 = self.start(0, 2, "--rendezvous", f"file://{folder}", timeout=12)
        until = time.monotonic() + 60
        while not list(folder.glob("shakedown-*")) and time.monotonic() < until:
            time.sleep(0.02)
        (card,) = folder.glob("shakedown-*")
        self.assertEqual(card.stat().st_mode & 0o777, 0o600)
        card.chmod(0o666)
        done = self.finish({1: self.start(1, 2, "--rendezvous", f"file://{folder}", timeout=12), 0: rank0})
        self.assertEqual(done[1][0], 1)
        self.assertIn("not from rank 0 of this job", done[1][2])

    def test_address(self):
        args = ("--rendezvous", f"tcp://127.0.0.1:{free_port()}")
        done = self.finish({r: self.start(r, 2, *args, env={"SHAKEDOWN_KEY": KEY}) for r in range(2)})
        self.joined(done, ("tcp", None, None), 2, key="SHAKEDOWN_KEY")

    def test_secret_of_the_launcher(self):
        """Slurm's cray_shasta gives every task the same random number; what torchrun starts has that of another step."""
        slurm = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": str(os.getpid()), "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "0",
                 "SLURM_STEP_NODELIST": "localhost", "SLURM_MPI_TYPE": "cray_shasta", "PMI_SHARED_SECRET": "5891746091"}
        done = self.finish({r: self.start(r, 2, env={**slurm, "SLURM_PROCID": str(r)}) for r in range(2)})
        self.joined(done, ("variables", "Slurm", "SLURM_STEP_NODELIST"), 2, key="PMI_SHARED_SECRET")
        self.assertNotIn(slurm["PMI_SHARED_SECRET"], done[0][1])
        each = {r: {"PMI_SHARED_SECRET": f"589174609{r}", "TORCHELASTIC_RUN_ID": "none"} for r in range(2)}
        self.joined(self.finish(self.torch(range(2), 2, each=each)), ("variables", "torchrun", "MASTER_ADDR"), 2)

    def test_what_cannot_be(self):
        env = {"RANK": "0", "WORLD_SIZE": "2"}
        for value, text in (("tcp://nid1:4711", "needs a key"), ("tcp://nid1", "has a host and a port"),
                            ("file://here", "names a folder from the root on"), ("udp://a:1", "tcp://HOST:PORT, file:///DIR")):
            with self.subTest(value):
                self.one_line(support.run("run", "--rendezvous", value, env=env), 2, text)
        self.one_line(support.run("run", "--rendezvous", "tcp://a:1"), 2, "RANK and WORLD_SIZE are not set")

    def test_alone_on_wish(self):
        p = support.run("--quick", "--rendezvous", "none", "--format", "json",
                        env={"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"})
        rows = [f for f in json.loads(p.stdout)["findings"] if f["id"] == "job.pmix"]
        self.assertEqual([(r["verdict"], "--rendezvous none" in r["why"]) for r in rows], [("warn", True)], rows)

    def ssh(self, lines, *args, timeout=30):
        """--hosts with an ssh that runs the command here."""
        folder = self.scratch()
        (folder / "ssh").write_text('#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\n'
                                    '[ "$1" != broken ] || { echo "ssh: $1: No route to host" >&2; exit 255; }\n'
                                    'echo "Welcome to $1"\nexec sh -c "$2"\n')
        (folder / "ssh").chmod(0o755)
        (folder / "hosts").write_text(lines)
        return support.run("bench", "--transport", "fabric", "--provider", "tcp", "--timeout", timeout, "--sizes", "4:64",
                           "--format", "json", "--hosts", folder / "hosts", *args,
                           env={"PATH": f"{folder}:{BASE_ENV['PATH']}"})

    def test_over_ssh(self):
        p = self.ssh("# two nodes\nn1 slots=2\nuser@n2 # the second\n")
        self.joined({0: (p.returncode, p.stdout, p.stderr)}, ("ssh", None, None), key="ssh")

    def test_over_ssh_to_hosts_that_are_not_there(self):
        p = self.ssh("n1\nbroken\n", timeout=12)
        self.missing({0: (0, p.stdout, p.stderr)}, 1, "it never came", "broken")
        p = self.ssh("broken\nn1\n", timeout=12)
        self.assertEqual((p.returncode, p.stdout), (1, ""))
        self.assertIn("rank 0 did not start on broken", p.stderr)

    def test_files_of_hosts(self):
        for lines, text in (("n1 slots=0\n", "hosts:1:"), ("n1\n-oProxyCommand=x\n", "hosts:2:"), ("# none\n", "lists no host")):
            with self.subTest(lines):
                self.one_line(self.ssh(lines), 2, text)


def comm(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def running(pid):
    """Has it used a tenth of a second of processor? A worker has."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12]) >= os.sysconf("SC_CLK_TCK") // 10
    except (OSError, IndexError):
        return False


support.main()
