"""Misuse and bad input: one clear line that names the place, exit 2."""
import pathlib
import re

from support import Case, main, run, CAPTURES


class Usage(Case):
    def test_misuse(self):
        rows = [
            (["--profle", "x"], "unknown option '--profle'; did you mean --profile?"),
            (["chekc", "x"], "unknown command 'chekc'; did you mean check?"),
            (["frobnicate"], "unknown command 'frobnicate'"),
            (["-x"], "unknown option '-x'"),
            (["--ranks", "0"], "--ranks: '0' is not a number from 1 to 1024"),
            (["--ranks", "two"], "--ranks: 'two'"),
            (["--ranks"], "--ranks needs N"),
            (["--quick=yes"], "--quick takes no value"),
            (["--sizes", "16M:4"], "--sizes: '16M:4'"),
            (["--sizes", "1:2"], "--sizes: '1:2'"),
            (["--format", "xml"], "--format: 'xml' is not one of term, md, json"),
            (["--fail-on", "never"], "--fail-on: 'never'"),
            (["--profile", "lumi-q"], "there is no profile 'lumi-q'; did you mean lumi-g?"),
            (["--transport", "pigeon"], "there is no transport 'pigeon'"),
            (["explain", "socket_ifn"], "there is RCCL_SOCKET_IFNAME, NCCL_SOCKET_IFNAMES, "),
            (["explain", "xyzzy"], "nothing is called 'xyzzy' (see: shakedown list)"),
            (["check"], "check needs FACTS|FOLDER..."),
            (["list", "setting"], "there is no list 'setting'; did you mean settings?"),
            (["explain", "NCCL_SOKET_IFNAME"], "did you mean NCCL_SOCKET_IFNAME?"),
            (["env", "--shell", "fish"], "--shell: 'fish'"),
            (["--sysroot", "/no/such/tree"], "sysroot /no/such/tree: No such file or directory"),
            (["--sysroot", "/etc/passwd"], "sysroot /etc/passwd: Not a directory"),
        ]
        for args, text in rows:
            with self.subTest(args=args):
                self.one_line(run(*args), 2, text)

    def test_bad_facts(self):
        d = self.scratch()
        rows = [
            ("empty", "", "empty, no facts document"),
            ("cut", '{"schema": "shakedown.facts/1", "facts": {"a": ', ":1: "),
            ("schema", '{"schema": "other/1", "facts": {}}', "schema 'other/1'"),
            ("binary", "\x00\x01\x02", ":1: "),
        ]
        for name, text, says in rows:
            with self.subTest(name):
                (d / name).write_text(text)
                self.one_line(run("check", d / name), 2, str(d / name), says)
        self.one_line(run("check", d / "missing"), 2, "missing: No such file or directory")
        self.one_line(run("check", d), 2, "no *.json in this folder")

    def test_bad_configuration(self):
        d = self.scratch()
        (d / "settings").mkdir()
        row = d / "settings" / "site.yaml"
        for text, says in [
            ("- name: X\n\tfamily: y\n", "site.yaml:2: "),
            ("- nmae: X\n", "did you mean \"name\"?"),
            ("- name: X\n  family: nccl\n  severity: fatl\n", "did you mean \"fatal\"?"),
        ]:
            with self.subTest(text):
                row.write_text(text)
                self.one_line(run("--quick", "--config", d), 2, "site.yaml:", says)
        self.one_line(run("--quick", "--config", d / "none"), 2, "none")

    def test_unreadable_capture(self):
        d = self.scratch()
        (d / ".shakedown").mkdir()
        (d / ".shakedown" / "hostcalls.json").write_text("{")
        self.one_line(run("--sysroot", d), 2, "hostcalls.json:1:")

    def test_lists(self):
        names = [line.split()[0] for line in run("list").stdout.splitlines()]
        self.assertIn("settings", names)
        for name in names:
            p = run("list", name)
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            self.assertTrue(p.stdout.strip(), name)
            if name in ("probes", "checks", "conflicts", "profiles", "diagnoses"):
                first = p.stdout.split()[0]
                p = run("explain", first)
                self.assertEqual((p.returncode, p.stderr), (0, ""), first)
                self.assertIn(first, p.stdout.splitlines()[0])

    def test_every_name_of_the_catalogue_is_explained(self):
        for what in ("settings", "diagnoses", "profiles", "conflicts", "checks", "probes"):
            names = [line.split()[0] for line in run("list", what).stdout.splitlines()]
            if what == "settings":
                self.assertGreaterEqual(len(names), 250)
            for at in range(0, len(names), 1000):
                part = names[at:at + 1000]
                p = run("explain", *part)
                self.assertEqual((p.returncode, p.stderr), (0, ""), what)
                texts = p.stdout.split("\n\n")
                self.assertEqual(len(texts), len(part), what)
                for name, text in zip(part, texts):
                    self.assertIn(name, text.splitlines()[0])
                    if what not in ("checks", "probes"):
                        self.assertRegex(text, r"(?m)^Source +\S", name)
        self.one_line(run("explain", "NCCL_DEBUG", "xyzzy"), 2, "nothing is called 'xyzzy'")

    def test_help_and_version(self):
        for args in (["--help"], ["check", "--help"], ["--version"], ["-h"]):
            p = run(*args)
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            self.assertIn("shakedown", p.stdout)
        self.assertIn("--sysroot DIR", run("--help").stdout)
        self.assertNotIn("--sysroot", run("check", "--help").stdout)

    def test_help_fits_and_has_examples_that_parse(self):
        names = re.findall(r"(?m)^  ([a-z]+) ", run("--help", env={"COLUMNS": "1000"}).stdout.split("Examples:")[0])
        self.assertGreater(len(names), 14)
        for name in names:
            text = run(name, "--help", env={"COLUMNS": "80"}).stdout
            examples = re.findall(r"(?m)^  (?:.*\| |srun .*)?shakedown (.*)$", text)
            self.assertTrue(examples, name)
            known = set(re.findall(r"(?:^  |, |    )(--?[a-z-]+)\b", text, re.M)) | set(re.findall(r"(?m)^  (-.),", text))
            for line in examples:
                self.assertLessEqual(len(line), 78)
                for word in line.split("   ")[0].split():
                    if word.startswith("-") and word != "-":
                        self.assertIn(word, known, line)
                self.assertTrue(line.split()[0] == name or name == "run", line)
            rest = text.split("Options:")[1]
            self.assertEqual([line for line in rest.splitlines() if len(line) > 80], [], name)

    def test_explain_says_what_it_is_here(self):
        def here(name, **env):
            return re.search(r"(?m)^Here +(.*)$", run("explain", name, env=env).stdout).group(1)
        self.assertEqual(here("NCCL_DEBUG"), "not set in this environment")
        self.assertEqual(here("NCCL_DEBUG", NCCL_DEBUG="INFO"), "INFO in this environment")
        self.assertEqual(here("NCCL_DEBUG", NCCL_DEBUG=""), "set, but empty, in this environment")
        self.assertNotIn("hunter2", here("NCCL_DEBUG", NCCL_DEBUG="password=hunter2"))
        value = pathlib.Path("/proc/sys/vm/swappiness").read_text().strip()
        self.assertEqual(here("vm.swappiness"), f"{value} on this node")
        profiles = re.search(r"(?ms)^Profiles .*?(?=^\S)", run("explain", "NCCL_NET_GDR_LEVEL", env={"COLUMNS": "1000"}).stdout)
        demands = [line.strip().rpartition(": ")[0].replace("Profiles", "").strip() for line in profiles[0].strip().splitlines()]
        self.assertEqual(len(demands), len(set(demands)))
        self.assertLess(len(demands), 8)

    def test_words_for_help_and_version(self):
        self.assertEqual(run("help").stdout, run("--help").stdout)
        self.assertEqual(run("help", "check").stdout, run("check", "--help").stdout)
        self.assertEqual(run("version").stdout, run("--version").stdout)
        self.one_line(run("help", "nope"), 2, "unknown command 'nope'")
        self.one_line(run("version", "check"), 2, "unexpected argument 'check'")

    def test_a_file_instead_of_a_command(self):
        self.one_line(run("node1.json"), 2, "shakedown check node1.json")
        self.one_line(run("slurm-1234.out"), 2, "shakedown diagnose slurm-1234.out")
        self.one_line(run(self.scratch()), 2, "did you mean: shakedown check /")

    def test_lists_by_a_pattern(self):
        lines = run("list", "settings", "socket_ifname").stdout.splitlines()
        self.assertIn("NCCL_SOCKET_IFNAME", [line.split()[0] for line in lines])
        self.assertTrue(all("socket_ifname" in line.lower() for line in lines))
        whole = run("list", "settings", "nccl_ib_*").stdout.splitlines()
        self.assertIn("NCCL_IB_HCA", [line.split()[0] for line in whole])
        self.assertTrue(all(line.startswith("NCCL_IB_") for line in whole))
        for pattern in ("no such thing", "no*such"):
            p = run("list", "checks", pattern)
            self.assertEqual((p.returncode, p.stdout), (0, ""))
            self.assertIn(f"no row of checks has '{pattern}'", p.stderr)

    def test_a_malformed_fact_is_not_read(self):
        text = ('{"schema": "shakedown.facts/1", "facts": {"host.name": "n1",\n'
                ' "kernel.module.efa": {"refcount": 0, "state": "live"},\n'
                ' "memory.corrupted": 4096}}\n')
        d = self.scratch()
        path = d / "f.json"
        path.write_text(text)
        p = run("diagnose", "--facts", path)
        self.assertEqual(p.stderr.count("\n"), 1, p.stderr)
        self.assertIn(f"{path}:2: kernel.module.efa: state 'live' is not present, absent or failed", p.stderr)
        self.assertIn("taken as a fact that was not read", p.stderr)
        self.assertIn("memory", p.stdout)
        self.assertEqual(p.returncode, 1)
        path.unlink()
        for i in range(70):
            (d / f"{i}.json").write_text(text.replace("n1", f"n{i}"))
        p = run("check", d)
        self.assertIn("document 1: kernel.module.efa: state 'live' is not present", p.stderr)
        self.assertNotEqual(p.returncode, 2)


main()
