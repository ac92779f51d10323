"""docs/site.md as a site would follow it: every command of its blocks in their order, with folders of the test in place of the system's."""
import datetime, json, os, re, subprocess

import support
from support import BASE_ENV, BINARY, SOURCE, Case, healthy_node, run

PAGE = (SOURCE / "docs/site.md").read_text()
BLOCKS = re.findall(r"(?ms)^<!-- run by: tests/program/test_rollout\.py -->\n```sh\n(.*?)^```$", PAGE)
# What the page says a verdict about this machine, or about a fleet of it, may end with
VERDICT = {0, 1}


def good(name, days_ago, **facts):
    """A node that passes, and whose run has a time."""
    start = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=days_ago)
    more = {"host.name": name, "run.start": start.strftime("%Y-%m-%dT%H:%M:%SZ"), "run.seconds": 12.5, **facts}
    return json.dumps({"schema": "shakedown.facts/1", "facts": {**healthy_node("dgx-h100"), **{
        key: {"state": "present", "source": "test", "value": value} for key, value in more.items()}}})


class Rollout(Case):
    def setUp(self):
        self.dir = self.scratch()
        (self.dir / "bin").mkdir()
        (self.dir / "bin/shakedown").symlink_to(BINARY)
        for name in ("etc/shakedown", "var/spool/shakedown", "var/lib/shakedown", "var/lib/node_exporter"):
            (self.dir / name).mkdir(parents=True)

    def sh(self, command):
        command = re.sub(r"(?<![\w.])/(etc|var)/", rf"{self.dir}/\1/", command)
        env = {**BASE_ENV, "PATH": f"{self.dir}/bin:{os.environ['PATH']}"}
        return subprocess.run(["sh", "-c", command], cwd=self.dir, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=300)

    def lines(self, number):
        return [line for line in (re.sub(r"\s+#.*", "", line) for line in BLOCKS[number].splitlines()) if line]

    def follow(self, number, *codes):
        """The block's commands, each with the exit code that it must have."""
        done = []
        self.assertEqual(len(self.lines(number)), len(codes), BLOCKS[number])
        for command, code in zip(self.lines(number), codes):
            done.append(self.sh(command))
            self.assertIn(done[-1].returncode, code, f"{command}\n{done[-1].stdout}{done[-1].stderr}")
        return done

    def test_freeze(self):
        make, here, *rest = self.lines(0)
        self.assertEqual(self.sh(make).returncode, 0)
        self.assertIn(self.sh(f"{here} --transport none").returncode, VERDICT)
        self.assertEqual(json.loads((self.dir / "good/n0001.json").read_text())["schema"], "shakedown.report/2")
        for i in (1, 2):
            (self.dir / f"good/n{i:04d}.json").write_text(good(f"n{i:04d}", 5 - i))
        (self.dir / "suspect.json").write_text(good("n0003", 1, **{"nvml.driver": "450.1"}))
        made, right, passes, fails = (self.sh(command) for command in rest)
        self.assertEqual((made.returncode, right.returncode), (0, 0), made.stderr + right.stderr)
        self.assertIn("# as on n0001, n0002", (self.dir / "site/profiles/mysite.yaml").read_text())
        self.assertIn("nothing is wrong", right.stderr)
        name = re.search(r"(?m)^name: (\S+)", (self.dir / "site/profiles/mysite.yaml").read_text())[1]
        self.assertEqual(passes.returncode, 0, passes.stdout)
        self.assertRegex(passes.stdout, rf"PASS(?s:.*)profile {name} \(detected")
        self.assertRegex(fails.stdout, r"(FAIL|WARN) +n0003", fails.stdout)
        installed = self.follow(1, {0}, {0})
        self.assertTrue((self.dir / "etc/shakedown/profiles/mysite.yaml").is_file(), installed)

    def test_what_a_prolog_runs(self):
        done, = self.follow(2, VERDICT)
        self.assertRegex(done.stdout, r"^(PASS|WARN|FAIL|UNKNOWN) \S+")

    def test_history_and_fleet(self):
        for i in (1, 2, 3):
            (self.dir / f"var/spool/shakedown/made{i}.json").write_text(good(f"n{i:04d}", 5 - i))
        _, added, fleet, _ = self.follow(3, VERDICT, {0}, VERDICT, {0})
        self.assertIn("4 runs added", added.stderr)
        self.assertIn("<html", (self.dir / "fleet.html").read_text())
        self.assertIn("fleet.html", fleet.stderr)

    def test_monitoring(self):
        self.follow(4, VERDICT)
        self.assertIn("shakedown_verdict{", (self.dir / "var/lib/node_exporter/shakedown.prom").read_text())

    def test_every_block_is_followed(self):
        self.assertEqual([b.strip() for b in BLOCKS[5:]], ["shakedown selftest --quick"], "test_selftest.py runs that")

    def test_each_exit_code_has_a_line(self):
        """Those of the program's help and manual, none invented."""
        listed = set(re.findall(r"(?m)^\| (\d+)(?:, (\d+))?", PAGE))
        codes = {c for pair in listed for c in pair if c}
        named = set(re.findall(r"\b(\d) [a-z]", run("run", "--help").stdout.split("Exit:")[1]))
        self.assertEqual(codes - {"124", "130", "143"}, named)

    def test_files_that_the_page_names(self):
        for name in re.findall(r"/usr/libexec/shakedown/([\w.]+)", PAGE):
            self.assertTrue((SOURCE / "config/slurm" / name).is_file(), name)
        for name in re.findall(r"`(?:config/slurm/)?([\w-]+\.(?:nhc|conf|timer|service))`", PAGE):
            self.assertTrue((SOURCE / "config/slurm" / name).is_file(), name)
        for name in ("alerts.yaml", "grafana.json"):
            self.assertTrue((SOURCE / "config/monitoring" / name).is_file(), name)


if __name__ == "__main__":
    support.main()
