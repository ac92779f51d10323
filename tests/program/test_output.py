"""Where output goes: machine output alone on stdout, several -o, full and closed streams."""
import fcntl, json, os, pty, re, signal, struct, subprocess, termios
from support import BASE_ENV, BINARY, CAPTURES, SOURCE, Case, left_behind, main, own_shm, run


class Output(Case):
    capture = ("--sysroot", CAPTURES / "slingshot-amd")

    def test_json_alone_on_stdout(self):
        p = run(*self.capture, "--format", "json", "-v")
        summary = self.json_of(p)["summary"]
        for key in ("pass", "note", "warn", "fail", "unknown", "na"):
            self.assertIsInstance(summary[key], int)
        self.assertGreater(summary["pass"], 20)
        self.assertEqual(set(summary["coverage"]), {"tested", "log", "effect", "declared", "none"})

    def test_counts_are_those_of_the_rows(self):
        report = self.json_of(run(*self.capture, "--format", "json"))
        for verdict in ("pass", "note", "warn", "fail", "unknown", "na"):
            rows = sum(f["verdict"] == verdict for f in report["findings"])
            self.assertEqual(report["summary"][verdict], rows, verdict)

    def test_several_files_by_extension(self):
        d = self.scratch()
        p = run(*self.capture, "-o", d / "r.json", "-o", d / "r.md", "-o", d / "r.txt")
        self.assertEqual(p.stdout, "")
        self.assertIn("summary", json.loads((d / "r.json").read_text()))
        self.assertIn("|", (d / "r.md").read_text())
        self.assertNotIn("\x1b", (d / "r.txt").read_text())

    def test_a_file_is_replaced_as_a_whole(self):
        d = self.scratch()
        old, link = d / "r.json", d / "link.json"
        old.write_text("x" * 1000000)
        old.chmod(0o640)
        link.symlink_to(d / "target.json")
        p = run(*self.capture, "-o", old, "-o", link)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("summary", json.loads(old.read_text()))
        self.assertEqual(old.stat().st_mode & 0o777, 0o640)
        self.assertTrue(link.is_symlink())
        self.assertIn("summary", json.loads((d / "target.json").read_text()))
        self.assertEqual(sorted(f.name for f in d.iterdir()), ["link.json", "r.json", "target.json"])

    def on_terminal(self, *args, columns=80, env=None):
        """Exit code and what a terminal of that width receives; stdout and stderr are it."""
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        p = subprocess.Popen([str(BINARY), *map(str, args)], stdin=subprocess.DEVNULL, stdout=child,
                             stderr=child, env={**BASE_ENV, "TERM": "xterm", "LANG": "C.UTF-8", **(env or {})})
        os.close(child)
        text = b""
        try:
            while part := os.read(parent, 65536):
                text += part
        except OSError:  # the other side is closed
            pass
        os.close(parent)
        return p.wait(), text.decode()

    def test_terminal(self):
        code, text = self.on_terminal(*self.capture, columns=70)
        self.assertEqual(code, 0)
        progress, _, report = text.rpartition("\r\x1b[K")
        self.assertIn("s  libfabric", progress)
        self.assertIn("\x1b[", report)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", report)
        self.assertIn("\u2713 PASS", plain)
        self.assertLessEqual(max(map(len, plain.split("\r\n"))), 70)

    def test_terminal_without_colour_unicode_or_progress(self):
        _, text = self.on_terminal(*self.capture, env={"NO_COLOR": "1", "LANG": "C"})
        report = text.rpartition("\r\x1b[K")[2]
        self.assertNotIn("\x1b", report)
        self.assertTrue(report.isascii())
        _, text = self.on_terminal(*self.capture, env={"TERM": "dumb"})
        self.assertNotIn("\x1b", text)

    def test_verbose_shows_passes_and_keeps_the_progress(self):
        p = run(*self.capture, "-v")
        self.assertIn("shakedown: libfabric\n", p.stderr)
        self.assertGreater(len(p.stdout.splitlines()), len(run(*self.capture).stdout.splitlines()))

    def test_anonymize(self):
        for form in ("term", "md", "json", "html", "junit", "prom", "line", "github", "gitlab"):
            p = run(*self.capture, "--anonymize", "--format", form)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertNotIn("nid005012", p.stdout, form)

    COMMANDS = {
        "run": ["--transport", "none"], "probe": ["probe"], "list": ["list", "checks"], "explain": ["explain", "FI_PROVIDER"],
        "env": ["env", "--profile", "lumi-g"], "help": ["--help"], "version": ["--version"],
    }

    def command(self, name):
        args = self.COMMANDS[name]
        return [str(BINARY), *args, *(map(str, self.capture) if name in ("run", "probe") else ())]

    def into(self, argv, stdout):
        """The command with that standard output; stderr is kept."""
        return subprocess.run(argv, env=BASE_ENV, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                              text=True, timeout=120)

    def test_full_disk(self):
        for name in self.COMMANDS:
            with self.fault("output", f"{name} to a full disk") as fault, open("/dev/full", "w") as full:
                p = self.into(self.command(name), full)
                fault.survived = p.returncode == 4
                self.assertEqual(p.returncode, 4, p.stderr)
                self.assertEqual(p.stderr, "shakedown: standard output: No space left on device\n")
        with self.fault("output", "-o to a full device") as fault:
            p = run(*self.capture, "-o", "/dev/full")
            fault.survived = p.returncode == 4
            self.not_lost(p, "/dev/full: No space left")

    def not_lost(self, p, says):
        """Exit 4 and one line that says why; the report is on stdout."""
        self.assertEqual(p.returncode, 4, p.stderr)
        self.assertEqual(len(p.stderr.splitlines()), 1, p.stderr)
        self.assertIn(says, p.stderr)
        self.assertIn("\u2713 PASS" if "\u2713" in p.stdout else "+ PASS", p.stdout)

    def in_namespace(self, script, *args):
        """The script in mounts of its own, as root; None where that cannot be."""
        p = subprocess.run(["unshare", "--mount", "sh", "-c", script, str(BINARY), *map(str, args)], env=BASE_ENV,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        return None if p.returncode == 97 or "unshare" in p.stderr else p

    def test_a_file_on_a_full_file_system_stays_as_it_was(self):
        d = self.scratch()
        p = self.in_namespace('mount -t tmpfs -o size=16k none "$1" || exit 97\necho old >"$1/r.json"\n'
                              'head -c 1M /dev/zero >"$1/fill" 2>/dev/null\n"$0" --sysroot "$2" -o "$1/r.json"; code=$?\n'
                              'cat "$1/r.json"; ls "$1"; exit $code', d, CAPTURES / "slingshot-amd")
        if p is None:
            self.skipTest("no mounts of our own")
        with self.fault("output", "a file on a full file system") as fault:
            fault.survived = p.returncode == 4
            self.assertEqual(p.returncode, 4, p.stderr)
            self.assertIn("r.json: No space left on device", p.stderr)
            self.assertTrue(p.stdout.endswith("old\nfill\nr.json\n"), p.stdout)
            self.assertIn(" PASS  nid005012", p.stdout)

    def test_read_only(self):
        d = self.scratch()
        with self.fault("output", "no such folder") as fault:
            p = run(*self.capture, "-o", d / "no" / "r.md")
            fault.survived = p.returncode == 2
            self.one_line(p, 2, "No such file or directory")
        p = self.in_namespace('mount -t tmpfs none "$1" && echo old >"$1/r.json" && mount -o remount,ro "$1" || exit 97\n'
                              '"$0" --sysroot "$2" -o "$1/r.json"', d, CAPTURES / "slingshot-amd")
        if p is None:
            self.skipTest("no mounts of our own")
        with self.fault("output", "a read-only file system") as fault:
            fault.survived = p.returncode == 2
            self.one_line(p, 2, "r.json: Read-only file system")

    def test_places_are_looked_at_before_the_work(self):
        """With the ranks of a job waiting, a slip of the pen costs a second and not the run; nothing is made or changed."""
        d = self.scratch()
        (d / "file").write_text("old")
        for args, says in ((["-o", d], "Is a directory"), (["-o", d / "file" / "r.json"], "Not a directory"),
                           (["--healthy-nodes", d / "no" / "good"], "No such file"), (["-o", ""], "No such file"),
                           (["-o", d / "r.json", "--bad-nodes", d / "no" / "bad"], "No such file")):
            for command in (["run", "--transport", "none"], ["check", SOURCE / "tests/golden/facts/handmade.json"]):
                if command[0] == "check" and any("nodes" in str(a) for a in args):
                    continue
                self.one_line(run(*command, *args), 2, says)
        self.one_line(run("probe", "-o", d / "no" / "f.json"), 2, "No such file")
        self.one_line(run("diff", SOURCE / "tests/golden/facts/handmade.json", SOURCE / "tests/golden/facts/handmade.json",
                          "-o", d / "no" / "f.json"), 2, "No such file")
        self.assertEqual([p.name for p in d.iterdir()], ["file"])
        self.assertEqual((d / "file").read_text(), "old")

    def test_a_file_stays_when_the_run_fails(self):
        d = self.scratch()
        (d / "r.json").write_text("old")
        for args in (["check", d / "none.json"], ["check", SOURCE / "tests/golden/facts/handmade.json", "--env", d],
                     ["--sysroot", d / "none"]):
            self.one_line(run(*args, "-o", d / "r.json"), 2)
            self.assertEqual((d / "r.json").read_text(), "old")

    def test_an_unknown_extension(self):
        d = self.scratch()
        for name in ("r.pdf", "r.jsn", "a.b/r.xyz"):
            self.one_line(run(*self.capture, "-o", d / name), 2,
                          "known are .html, .json, .md, .prom, .txt and .xml (or give --format)")
        p = run(*self.capture, "-o", d / "r.pdf", "--format", "json")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("summary", json.loads((d / "r.pdf").read_text()))
        for name in ("report", ".hidden", "R.JSON"):
            self.assertEqual(run(*self.capture, "-o", d / name).returncode, 0, name)
        json.loads((d / "R.JSON").read_text())
        facts = SOURCE / "tests/golden/facts/handmade.json"
        self.one_line(run("diff", facts, facts, "-o", d / "d.html"), 2, "known are .json, .md and .txt")

    def test_what_came_out_is_said_when_the_report_goes_to_files(self):
        d = self.scratch()
        bad = {"NCCL_SOCKET_IFNAME": "hns3"}
        p = run(*self.capture, "-o", d / "r.json", "-o", d / "r.md", env=bad)
        lines = p.stderr.splitlines()
        self.assertEqual(p.stdout, "")
        report = json.loads((d / "r.json").read_text())
        self.assertEqual(lines[0], "✗ FAIL  nid005012 · 1 cause")
        self.assertIn(report["diagnoses"][0]["title"], p.stderr)
        self.assertEqual(lines[-1], f"shakedown: wrote {d / 'r.json'}, {d / 'r.md'}")
        self.assertNotIn("nid005012", run(*self.capture, "--anonymize", "-o", d / "r.json").stderr)
        self.assertEqual(run(*self.capture, "-o", "-").stderr, "")

    def test_a_limit_on_files(self):
        d = self.scratch()
        with self.fault("output", "ulimit -f 0") as fault:
            p = subprocess.run(["sh", "-c", 'ulimit -f 0; exec "$0" "$@"', str(BINARY), *map(str, self.capture), "-o",
                                str(d / "r.json")], env=BASE_ENV, stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, timeout=120)
            fault.survived = p.returncode == 4
            self.not_lost(p, "r.json: File too large")
            self.assertEqual(list(d.iterdir()), [])

    def when_it_says(self, says, form="json"):
        """A run that has come so far, as its progress tells; it would go on for long."""
        p = subprocess.Popen([str(BINARY), "-v", "--format", form, "--sizes", "4:512M", "--timeout", "120"], env=BASE_ENV,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        seen = []
        while not (seen and seen[-1].startswith(f"shakedown: {says}")):
            line = p.stderr.readline()
            self.assertTrue(line, f"it ended before it said {says}: {seen}")
            seen.append(line)
        return p

    def test_a_signal_that_asks_to_end(self):
        """What is known is told, as of a run that was cut short; nothing and nobody stays behind."""
        for number, name, code in ((signal.SIGTERM, "SIGTERM", 143), (signal.SIGINT, "SIGINT", 130)):
            for says in ("host", "fabric: open"):
                with self.fault("output", f"{name} at \"{says}\"") as fault:
                    before = own_shm()
                    p = self.when_it_says(says)
                    p.send_signal(number)
                    out, err = p.communicate(timeout=180)
                    fault.survived = p.returncode == code
                    self.assertEqual(p.returncode, code, err)
                    report = json.loads(out)
                    self.assertEqual(report["interrupted"], name)
                    self.assertIn(report["summary"]["verdict"], ("unknown", "warn", "fail"))
                    self.assertEqual([f for f in report["findings"] if f["verdict"] == "fail" and
                                      f["family"] in ("collectives", "probes")], [])
                    self.assertEqual(left_behind(before), set())

    def test_an_interrupted_run_says_so_in_every_format(self):
        for form, says in (("term", "interrupted by SIGTERM: what"), ("md", "**interrupted by SIGTERM"),
                           ("html", "<strong>interrupted by SIGTERM"), ("junit", 'name="interrupted" value="SIGTERM"'),
                           ("prom", 'shakedown_interrupted{signal="SIGTERM"} 1')):
            p = self.when_it_says("fabric: open" if form == "term" else "host", form)
            p.terminate()
            out, err = p.communicate(timeout=180)
            self.assertEqual(p.returncode, 143, err)
            self.assertIn(says, out)
            self.assertNotIn("PASS  ", out)

    def test_closed_stdout(self):
        for name in self.COMMANDS:
            with self.fault("output", f"{name} to a closed stdout") as fault:
                p = self.into(["sh", "-c", 'exec "$0" "$@" >&-', *self.command(name)], subprocess.PIPE)
                fault.survived = p.returncode == 4
                self.assertEqual(p.returncode, 4, p.stderr)
                self.assertEqual(p.stderr, "shakedown: standard output: Bad file descriptor\n")
                self.assertEqual(p.stdout, "")

    def test_a_reader_that_has_seen_enough(self):
        """`shakedown | head`: silence, and the exit code is still the verdict."""
        bad = ["env", "NCCL_DEBUG=INFOO", str(BINARY), "--transport", "none", "--fail-on", "warn", *map(str, self.capture)]
        for name, argv, code in [(n, self.command(n), 0) for n in self.COMMANDS] + [("run", bad, 1)]:
            with self.fault("output", f"{name} to a pipe without reader, exit {code}") as fault:
                read, write = os.pipe()
                os.close(read)
                p = self.into(argv, write)
                os.close(write)
                fault.survived = p.returncode == code
                self.assertEqual(p.returncode, code, p.stderr)
                self.assertEqual(p.stderr, "")

    def test_selftest_and_its_reader(self):
        for stdout, code, says in (("pipe", 0, ""), ("/dev/full", 4, "stdout cannot be written")):
            with self.fault("output", f"selftest to {stdout}") as fault:
                read, write = os.pipe() if stdout == "pipe" else (os.open(os.devnull, os.O_RDONLY), os.open(stdout, os.O_WRONLY))
                os.close(read)
                p = self.into([str(BINARY), "selftest", "--quick"], write)
                os.close(write)
                fault.survived = p.returncode == code
                self.assertEqual(p.returncode, code, p.stderr)
                self.assertIn(says, p.stderr)

    def test_fail_on(self):
        bad = {"NCCL_DEBUG": "INFOO"}
        base = run(*self.capture, env=bad)
        self.assertEqual(base.returncode, 0, base.stdout)
        self.assertEqual(run(*self.capture, "--fail-on", "warn", env=bad).returncode, 1)


main()
