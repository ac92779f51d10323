"""Saved facts give the same matrix as the live run, and are judged without touching the host."""
import json, shutil, subprocess
from support import BASE_ENV, BINARY, CAPTURES, Case, main, run


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


class NodeFiles(Case):
    """--healthy-nodes and --bad-nodes in Slurm's notation."""

    def check(self, facts):
        d = self.scratch()
        paths = []
        for name, memlock in facts.items():
            path = d / f"{name}.json"
            path.write_text(json.dumps({"schema": "shakedown.facts/1", "facts": {
                "host.name": name, "limits.memlock": {"soft": memlock, "hard": memlock}}}))
            paths.append(str(path))
        p = run("check", *paths, "--profile", "generic-ib", "--healthy-nodes", str(d / "good"), "--bad-nodes",
                str(d / "bad"))
        return p.returncode, (d / "good").read_text(), (d / "bad").read_text()

    def test_odd_node(self):
        facts = {f"nid{i:03}": -1 for i in range(1, 8)}
        facts["nid004"] = 65536
        self.assertEqual(self.check(facts), (1, "nid[001-003,005-007]\n", "nid004\n"))

    def test_folded_nodes(self):
        """Above 64 files nodes that say the same are one entry; the lists name each of them."""
        facts = {f"nid{i:03}": -1 for i in range(1, 71)} | {"nid004": 65536, "nid037": 65536, "nid070": 1024}
        self.assertEqual(self.check(facts), (1, "nid[001-003,005-036,038-069]\n", "nid[004,037,070]\n"))

    def test_all_good(self):
        self.assertEqual(self.check({"a1": -1, "a2": -1}), (0, "a[1-2]\n", ""))


main()
