"""The all-reduce itself, and ranks that die, stop or find no provider."""
import os, re, signal, subprocess, time
from support import BASE_ENV, BINARY, Case, left_behind, main, own_shm, run


class Ranks(Case):
    def test_verified_all_reduce(self):
        p = run("--sizes", "4:64K", "--format", "json")
        report = self.json_of(p)
        self.assertEqual(p.returncode, 0, p.stdout)
        row = self.finding(report, "all-reduce (fabric)", "pass")
        self.assertEqual(row["evidence"], "tested")

    def test_own_shared_memory(self):
        """When asked for, without libfabric, between 2 and 5 ranks; not beside the fabric by default."""
        before = own_shm()
        for ranks in (2, 5):
            p = run("bench", "--transport", "shm", "--ranks", ranks, "--sizes", "4:64K", "--format", "json",
                    env={"FI_PROVIDER": "there-is-none"})
            self.assertEqual(p.returncode, 0, p.stdout)
            row = self.finding(self.json_of(p), "all-reduce (shm)", "pass")
            self.assertIn("%d ranks over own shared memory, without libfabric" % ranks, row["observed"])
        self.assertEqual(set(), left_behind(before))
        settings = [f["setting"] for f in self.json_of(run("--sizes", "4:64", "--format", "json"))["findings"]]
        self.assertIn("all-reduce (fabric)", settings)
        self.assertNotIn("all-reduce (shm)", settings)

    def test_missing_provider_is_named(self):
        p = run("--sizes", "4:64", "--format", "json", env={"FI_PROVIDER": "cxi"})
        self.assertEqual(p.returncode, 1)
        report = self.json_of(p)
        text = self.finding(report, "FI_PROVIDER", "fail")["why"]
        self.assertRegex(text, r"libfabric.*\(1\.\d+.*\) has no provider \"cxi\"; it has: .*tcp")
        self.assertIn("libfabric.so.1", text)

    def test_a_long_run_says_where_it_is(self):
        """Every ten seconds at most in a log, and not at all in a run that is over by then."""
        for ranks, largest in ((2, "64"), (2, "256M"), (4, "256M"), (8, "256M")):
            start = time.monotonic()
            p = run("bench", "--transport", "fabric", "--ranks", ranks, "--sizes", "4:" + largest, "--timeout", 120, "--format", "json")
            took = time.monotonic() - start
            at = [int(n) for n in re.findall(r"^shakedown: (\d+) s: fabric: \w+", p.stderr, re.M)]
            self.assertEqual(len(at), len(p.stderr.splitlines()), p.stderr)
            self.assertLessEqual(len(at), took / 10, p.stderr)
            self.assertTrue(all(b - a >= 10 for a, b in zip([0] + at, at)), p.stderr)
            if at:
                return
        self.skipTest("no run took long enough here")

    def hurt(self, sig, deadline):
        """Starts a long all-reduce, hurts rank 1 in the middle of it; (seconds until the end, report)."""
        d = self.scratch()
        args = [str(BINARY), "bench", "--ranks", "2", "--sizes", "64K:256M", "--timeout", str(deadline), "-v",
                "-o", str(d / "r.json")]
        with open(d / "err", "w") as err:
            p = subprocess.Popen(args, env=BASE_ENV, stdout=subprocess.DEVNULL, stderr=err)
        try:
            pid, limit = None, time.monotonic() + 60
            while time.monotonic() < limit and p.poll() is None:
                text = (d / "err").read_text()
                found = re.search(r"rank 1 pid (\d+)", text)
                if found and "allreduce" in text:
                    pid = int(found.group(1))
                    break
                time.sleep(0.02)
            self.assertIsNotNone(pid, "never reached the all-reduce: " + (d / "err").read_text())
            start = time.monotonic()
            os.kill(pid, sig)
            p.wait(timeout=deadline + 20)
            took = time.monotonic() - start
        finally:
            p.kill()
        import json
        self.assertEqual(p.returncode, 1)
        return took, json.loads((d / "r.json").read_text())

    def check_blame(self, report):
        row = self.finding(report, "all-reduce (fabric)", "fail")
        text = " ".join(str(row.get(k)) for k in ("observed", "why"))
        self.assertIn("rank 1", text)
        self.assertRegex(text, r"phase (allreduce|verify)")

    def test_killed_rank(self):
        with self.fault("ranks", "killed") as fault:
            took, report = self.hurt(signal.SIGKILL, 40)
            self.assertLess(took, 30)
            fault.survived = True
            self.check_blame(report)

    def test_stopped_rank(self):
        with self.fault("ranks", "stopped") as fault:
            took, report = self.hurt(signal.SIGSTOP, 40)
            self.assertLess(took, 41)
            fault.survived = True
            self.check_blame(report)
            self.assertIn("SIGSTOP", str(report))

    def test_nothing_is_left_behind(self):
        before = own_shm()
        self.hurt(signal.SIGKILL, 40)
        self.assertEqual(left_behind(before), set())
        limit = time.monotonic() + 30
        left = self.running()
        while left and time.monotonic() < limit:
            time.sleep(0.1)
            left = self.running()
        self.assertEqual(left, "")

    def running(self):
        return subprocess.run(["pgrep", "-f", f"{BINARY} bench"], capture_output=True, text=True).stdout


main()
