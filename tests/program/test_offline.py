"""Saved facts give the same matrix as the live run, and are judged without touching the host."""
import json, os, shutil, subprocess, time
from support import BASE_ENV, BINARY, CAPTURES, SOURCE, Case, main, run


def matrix(report):
    return [{k: f.get(k) for k in ("id", "family", "setting", "verdict", "evidence", "observed", "why", "fix")}
            for f in report["findings"] if f["family"] != "collectives"]


class Offline(Case):
    def same(self, *where):
        d = self.scratch()
        p = run("probe", *where)
        self.assertEqual(p.returncode, 0, p.stderr)
        (d / "f.json").write_text(p.stdout)
        offline = self.json_of(run("check", d / "f.json", "--format", "json"))
        live = self.json_of(run(*where, "--transport", "none", "--format", "json"))
        self.assertEqual(matrix(offline), matrix(live))
        self.assertEqual(offline["summary"], live["summary"])
        self.assertGreater(len(matrix(live)), 20)
        return d / "f.json"

    def test_same_matrix_live(self):
        self.same()

    def test_same_matrix_captures(self):
        for name in ("slingshot-amd", "efa-no-provider"):
            with self.subTest(name):
                self.same("--sysroot", CAPTURES / name)

    def test_check_reads_nothing_of_the_host(self):
        facts = self.same("--sysroot", CAPTURES / "slingshot-amd")
        strace = shutil.which("strace")
        self.assertIsNotNone(strace, "strace is missing")
        log = facts.with_suffix(".strace")
        # leak checking reads /proc by itself; the sanitizers' own start-up does too, before main()
        env = {**BASE_ENV, "ASAN_OPTIONS": "detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}
        subprocess.run([strace, "-f", "-qq", "-e", "trace=%file", "-o", str(log), str(BINARY), "check",
                        str(facts)], env=env, stdout=subprocess.DEVNULL, check=False)
        lines = log.read_text().splitlines()
        self.assertTrue(any(facts.name in line for line in lines), "strace saw nothing")
        allowed = ("/proc/self/maps", "/proc/self/cmdline", "/proc/self/environ", "/proc/self/exe")
        touched = [l for l in lines if ('"/proc' in l or '"/sys' in l) and not any(a in l for a in allowed)]
        self.assertEqual(touched, [])

    def test_many_nodes_fold(self):
        d = self.scratch()
        one = run("probe", "--sysroot", CAPTURES / "slingshot-amd").stdout
        for i in range(3):
            text = one.replace("nid005012", f"nid00501{i}")
            if i == 2:
                text = text.replace('"hsn2"', '"hsn9"')
            (d / f"{i}.json").write_text(text)
        report = self.json_of(run("check", *(d / f"{i}.json" for i in range(3)), "--format", "json"))
        nodes = {n for f in report["findings"] for n in f.get("nodes") or []}
        self.assertEqual(nodes, {"nid005010", "nid005011", "nid005012"})

    def test_the_report_of_a_large_job_is_bounded(self):
        """Facts of rank 0 that have an entry for each node or pair, a part of them bad: nothing for people grows with the job."""
        d, grown = self.scratch(), {}
        node = json.loads((SOURCE / "tests/mutate/nodes/dgx-h100.json").read_text())["facts"]
        for n in (512, 4096):
            name = [f"node{i:05d}" for i in range(n)]
            pair = lambda i: {"a": name[i], "b": name[(i + 1) % n]}
            (d / "job.json").write_text(json.dumps({"schema": "shakedown.facts/1", "facts": {
                **node, "job.nodes": n, "job.ranks": 8 * n, "job.launcher": "slurm",
                "job.layout": [{"node": name[i], "ranks": list(range(8 * i, 8 * i + 8))} for i in range(n)],
                "job.clocks": [{"node": name[i], "why": "no answer"} if i % 5 == 0 else
                               {"node": name[i], "offset_us": 5000000 if i % 3 == 0 else 20, "error_us": 9} for i in range(1, n)],
                "job.missing": [{"rank": 8 * i, "host": name[i], "why": "did not connect", "launch": False, "either": False}
                                for i in range(0, n, 11)],
                "collective.fabric.status": "failed", "collective.fabric.reason": "ended first", "collective.fabric.ranks": 8 * n,
                "collective.fabric.nodes": name[::7],
                "collective.fabric.pairs": [{**pair(i), "ok": i % 7 != 0, "ms": 9, **({"reason": "no end"} if i % 7 == 0 else {})}
                                            for i in range(n)],
                "collective.fabric.pair_speed": {"nodes": n, "pairs": n, "runs": 1, "bytes": 65536, "rows": [
                    {**pair(i), "latency_us": 220 if i % 9 == 0 else 20, "bandwidth": 3.0, "mean_ms": 0.1, "runs": [
                        {"latency_us": 20, "ping_wait_us": 0, "bandwidth": 3.0, "mean_us": 100, "put_wait_us": 0}]} for i in range(n)]},
            }}))
            for form in ("term", "md", "html", "junit", "line", "gitlab"):
                p = run("check", d / "job.json", "--format", form)
                self.assertEqual(p.returncode, 1, p.stderr)
                grown.setdefault(form, []).append(len(p.stdout))
            report = self.json_of(run("check", d / "job.json", "--format", "json"))
            self.assertIn(name[-1], json.dumps(report["nodes"]), "JSON has all of it")
        for form, (small, large) in grown.items():
            self.assertLess(large, small * 1.5, f"{form}: {grown}")


class NodeFiles(Case):
    """--healthy-nodes and --bad-nodes in Slurm's notation."""
    HEALTHY = json.loads((SOURCE / "tests" / "mutate" / "nodes" / "aws-p5.json").read_text())["facts"]

    def check(self, nodes, *args):
        """nodes: name -> facts that differ from those of a healthy node; None: nothing is known of it."""
        d = self.scratch()
        paths = []
        for name, facts in nodes.items():
            path = d / f"{name}.json"
            all_facts = {} if facts is None else {**self.HEALTHY, **facts}
            path.write_text(json.dumps({"schema": "shakedown.facts/1", "facts": {**all_facts, "host.name": name}}))
            paths.append(str(path))
        (d / "good").write_text("left of an earlier run\n")
        p = run("check", *paths, *args, "--healthy-nodes", str(d / "good"), "--bad-nodes", str(d / "bad"))
        self.said = p.stderr
        return p.returncode, (d / "good").read_text(), (d / "bad").read_text()

    BAD = {"limits.memlock": {"soft": 65536, "hard": 65536}}
    IB = ("--profile", "generic-ib")

    def test_odd_node(self):
        nodes = {f"nid{i:03}": {} for i in range(1, 8)}
        nodes["nid004"] = {"fabric.version": "9.9"}
        self.assertEqual(self.check(nodes), (1, "nid[001-003,005-007]\n", "nid004\n"))

    def test_folded_nodes(self):
        """Above 64 files nodes that say the same are one entry; the lists name each of them."""
        nodes = {f"nid{i:03}": {} for i in range(1, 71)}
        nodes |= {n: {"fabric.version": "9.9"} for n in ("nid004", "nid037", "nid070")}
        self.assertEqual(self.check(nodes), (1, "nid[001-003,005-036,038-069]\n", "nid[004,037,070]\n"))

    def test_all_good(self):
        self.assertEqual(self.check({"a1": {}, "a2": {}}), (0, "a[1-2]\n", ""), self.said)

    def test_two_that_differ(self):
        """Neither is known to be the odd one: none is bad, none is healthy, and the old list is gone."""
        self.assertEqual(self.check({"a1": {}, "a2": {"fabric.version": "9.9"}}), (1, "", ""))
        self.assertIn("no node is healthy", self.said)

    def test_a_node_that_nobody_knows(self):
        code, good, bad = self.check({"ghost": None})
        self.assertEqual((good, bad), ("", ""))
        self.assertNotEqual(code, 0)

    def job(self, **collective):
        """What rank 0's node says of a job of two nodes whose all-reduce did not go well."""
        facts = {f"collective.fabric.{k}": v for k, v in {"status": "failed", "ranks": 2, **collective}.items()}
        return {**facts, "job.layout": [{"node": "a1", "ranks": [0]}, {"node": "a2", "ranks": [1]}], "job.missing": []}

    def test_a_job_that_failed_without_a_node(self):
        """It is not the fault of the node whose facts tell of it."""
        for nodes in ({"a1": self.job()}, {"a1": self.job(), "a2": {}}):
            self.assertEqual(self.check(nodes), (1, "", ""))
            self.assertIn("cannot be attributed to a single node", self.said)

    def test_a_job_that_failed_because_of_a_node(self):
        nodes = {"a1": self.job(rank=1, nodes=["a2"], cause="rank-ended"), "a2": {}}
        self.assertEqual(self.check(nodes), (1, "a1\n", "a2\n"))

    def test_a_job_of_which_nothing_is_known(self):
        nodes = {"a1": self.job(status="splendid"), "a2": {}}
        code, good, bad = self.check(nodes)
        self.assertEqual((good, bad), ("", ""))
        self.assertNotEqual(code, 0)
        self.assertIn("could not be tested", self.said)

    def test_a_fault_of_the_launch_is_no_reason_to_drain(self):
        """A variable of the job's own environment."""
        wrong = {"env.NCCL_SOCKET_IFNAME": "nosuch0"}
        code, good, bad = self.check({"a1": wrong})
        self.assertEqual((good, bad), ("", ""), self.said)


class Documents(Case):
    """How facts come in."""

    def facts(self, name, **facts):
        path = self.scratch() / f"{name}.json"
        path.write_text(json.dumps({"schema": "shakedown.facts/1", "facts": facts}))
        return path

    def test_two_documents_of_one_host(self):
        """One host is one node: the last one counts, and a difference is told."""
        one = self.facts("one", **{"host.name": "a", "shm.size": 1 << 30, "limits.memlock": {"soft": 65536, "hard": 65536}})
        two = self.facts("two", **{"host.name": "a", "shm.size": 1 << 31, "limits.memlock": {"soft": -1, "hard": -1}})
        other = self.facts("other", **{"host.name": "b", "shm.size": 1 << 30})
        for args, nodes, told in (([one, two], 1, 1), ([two, one], 1, 1), ([one, one], 1, 0), ([one, other], 2, 0),
                                  ([one, other, two], 2, 1)):
            p = run("check", *args, "--format", "json")
            report = json.loads(p.stdout)
            self.assertEqual(len(report["nodes"]), nodes)
            self.assertEqual(len(p.stderr.splitlines()), told, p.stderr)
            self.assertEqual(p.stderr.count("host a: several documents that differ; the last one counts"), told)
            mine = [n for n in report["nodes"] if n["name"] == "a"][0]["facts"]["shm.size"]["value"]
            self.assertEqual(mine, json.loads(args[-1 if told else 0].read_text())["facts"]["shm.size"])

    def test_a_byte_order_mark(self):
        plain = self.facts("plain", **{"host.name": "a"})
        marked, env = plain.parent / "marked.json", plain.parent / "env"
        marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
        env.write_bytes(b"\xef\xbb\xbfNCCL_DEBUG=WARN\n")
        reports = [self.json_of(run("check", p, "--env", env, "--format", "json")) for p in (plain, marked)]
        self.assertEqual(reports[0]["findings"], reports[1]["findings"])
        self.assertEqual(reports[1]["nodes"][0]["facts"]["env.NCCL_DEBUG"]["value"], "WARN")

    def test_a_named_pipe_is_waited_for(self):
        plain = self.facts("plain", **{"host.name": "a"})
        for args in (["check"], ["diagnose", "--facts"]):
            pipe = self.scratch() / "pipe"
            os.mkfifo(pipe)
            p = subprocess.Popen([str(BINARY), *args, str(pipe), "--format", "json"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=BASE_ENV)
            time.sleep(0.5)
            self.assertIsNone(p.poll(), "nobody has written yet")
            pipe.write_text(plain.read_text())
            out, err = p.communicate(timeout=60)
            self.assertIn(p.returncode, (0, 1, 3), err)
            self.assertEqual(json.loads(out)["nodes"][0]["name"], "a")


main()
