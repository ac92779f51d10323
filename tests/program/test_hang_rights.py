"""shakedown hang: for how long it stops a thread; what it may not see, of other users, of namespaces, is unknown and said."""
import json, os, pathlib, shutil, subprocess, sys, time

import support
from support import BASE_ENV, Case, main, run
from test_hang import threads, until, valid


class Rights(Case):
    def test_stopped_for_less_than_20_ms(self):
        """The longest of five stops of each thread: 99 of 100 are below 20 ms."""
        pid, stops = threads(self, 100), []
        for _ in range(3):
            p = run("hang", "--pid", pid, "--interval", 1, "--format", "json")
            (rank,) = json.loads(p.stdout)["nodes"][0]["ranks"]
            stops += [t["stopped_us"] for t in rank["threads"] if "stopped_us" in t]
        self.assertGreaterEqual(len(stops), 250)
        stops.sort()
        self.assertLess(stops[len(stops) * 99 // 100], 20000, stops[-10:])

    def test_two_hundred_threads_with_deep_stacks(self):
        """Each has about 1 MiB of C's stack in use. Those that are looked at are stopped for less than 20 ms each, 99 of 100, and the
        others are said."""
        code = ("import sys, threading, time\n"
                "sys.setrecursionlimit(100000)\n"
                "threading.stack_size(16 << 20)\n"
                "here = threading.Semaphore(0)\n"
                "def wait(_):\n"
                "    here.release()\n"
                "    time.sleep(600)\n"
                "def deep(levels):\n"
                "    return max([levels - 1], key=deep if levels > 1 else wait)\n"
                "for _ in range(200): threading.Thread(target=deep, args=(1500,), daemon=True).start()\n"
                "for _ in range(200): here.acquire()\n"
                "print(flush=True)\n"
                "while True: time.sleep(0.1)")
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        process.stdout.readline()
        p = run("hang", "--pid", process.pid, "--interval", 1, "--format", "json")
        (rank,) = json.loads(p.stdout)["nodes"][0]["ranks"]
        stops = sorted(t["stopped_us"] for t in rank["threads"] if "stopped_us" in t)
        self.assertGreaterEqual(len(stops), 180)
        self.assertLess(stops[len(stops) * 99 // 100], 20000, stops[-10:])
        self.assertIn("more than are looked at", rank["unread"]["threads"])
        self.assertTrue(rank["threads"][0]["frames"])
        self.assertTrue(any(len(t.get("frames", [])) > 100 for t in rank["threads"]))

    def test_killed_in_the_middle(self):
        """Whatever becomes of us, the threads go on."""
        pid = threads(self, 60)
        tasks = pathlib.Path(f"/proc/{pid}/task")
        for tries in range(8):
            look = subprocess.Popen([support.BINARY, "hang", "--pid", str(pid), "--interval", "1"], env=BASE_ENV,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.05 + 0.12 * tries)
            look.kill()
            look.wait()
            until(lambda: all("TracerPid:\t0\n" in (t / "status").read_text() for t in tasks.iterdir()))
            self.assertEqual([t.name for t in tasks.iterdir() if (t / "stat").read_text().rpartition(")")[2].split()[0] in "tT"], [])

    def test_what_a_user_may_not_see_is_unknown(self):
        if os.getuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root and setpriv")
        folder = self.scratch()
        folder.chmod(0o755)
        program = shutil.copy(support.BINARY, folder / "shakedown")
        pid = threads(self, 1)
        p = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program, "hang", "--pid",
                            str(pid), "--interval", "1", "--format", "json"], env=BASE_ENV, capture_output=True, text=True)
        doc = json.loads(p.stdout)
        self.assertEqual((p.returncode, doc["judgement"]["outcome"]), (3, "undecided"), p.stderr)
        self.assertIn("Permission denied", " ".join(doc["judgement"]["unknown"]))
        valid(doc)

    def namespaced(self, *command):
        if os.getuid() != 0 or not shutil.which("setpriv") or not shutil.which("unshare"):
            self.skipTest("needs root, setpriv and unshare")
        p = subprocess.run([str(c) for c in command], env=BASE_ENV, capture_output=True, text=True, timeout=120)
        if "unshare" in p.stderr or "mount:" in p.stderr:
            self.skipTest(p.stderr.strip())
        return p

    def test_processes_that_proc_hides_are_not_taken_for_none(self):
        folder = self.scratch()
        folder.chmod(0o755)
        program = shutil.copy(support.BINARY, folder / "shakedown")
        nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups"
        script = (f"mount -t proc -o hidepid=2 proc /proc && (RANK=0 WORLD_SIZE=1 sleep 60 & RANK=0 WORLD_SIZE=1 {nobody} sleep 60 & "
                  f"sleep 0.5; {nobody} {program} hang --interval 1 --format json; {nobody} {program} hang --job 7)")
        p = self.namespaced("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script)
        self.assertIn("processes of other users", " ".join(json.loads(p.stdout)["judgement"]["unknown"]))
        self.assertIn("no rank of job 7 runs on this host; processes of other users cannot be seen", p.stderr)

    def test_user_namespace(self):
        """Root of a namespace of users has no right to processes outside of it."""
        p = self.namespaced("unshare", "--user", "--map-root-user", support.BINARY, "hang", "--pid", threads(self, 1), "--interval", "1",
                            "--format", "json")
        judgement = json.loads(p.stdout)["judgement"]
        self.assertEqual((p.returncode, judgement["outcome"], judgement["named"]), (3, "undecided", []), p.stderr)
        self.assertRegex(" ".join(judgement["unknown"]), "Permission denied|not permitted")

    def test_container_with_processes_of_its_own(self):
        """A job in its own namespaces of processes and mounts, looked at from the host: all is seen."""
        fifo = self.scratch() / "fifo"
        os.mkfifo(fifo)
        inside = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
        job = subprocess.Popen([*inside, "env", "RANK=0", "WORLD_SIZE=1", sys.executable, "-c", f"open({str(fifo)!r})"], env=BASE_ENV)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children")
        until(lambda: children.read_text().split() and "wait_for_partner" in
              pathlib.Path(f"/proc/{children.read_text().split()[0]}/wchan").read_text() or job.poll() is not None)
        if job.poll() is not None:
            self.skipTest("no namespaces here")
        p = run("hang", "--pid", job.pid, "--interval", 1, "--format", "json")
        (named,) = json.loads(p.stdout)["judgement"]["named"]
        self.assertEqual((p.returncode, named["rank"], named["kind"]), (1, 0, "io"))
        self.assertIn(f"open() on {fifo}", named["text"])


if __name__ == "__main__":
    main()
