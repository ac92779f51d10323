"""Where output goes: machine output alone on stdout, several -o, full and closed streams."""
import fcntl, json, os, pty, re, struct, subprocess, termios
from support import BASE_ENV, BINARY, CAPTURES, Case, main, run


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
        for form in ("term", "md", "json", "html", "junit", "prom", "line"):
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
            self.one_line(p, 4, "/dev/full: No space left")

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
            self.assertEqual(p.stdout, "old\nfill\nr.json\n")

    def test_read_only(self):
        d = self.scratch()
        with self.fault("output", "no such folder") as fault:
            p = run(*self.capture, "-o", d / "no" / "r.md")
            fault.survived = p.returncode == 4
            self.one_line(p, 4, "No such file or directory")
        p = self.in_namespace('mount -t tmpfs none "$1" && echo old >"$1/r.json" && mount -o remount,ro "$1" || exit 97\n'
                              '"$0" --sysroot "$2" -o "$1/r.json"', d, CAPTURES / "slingshot-amd")
        if p is None:
            self.skipTest("no mounts of our own")
        with self.fault("output", "a read-only file system") as fault:
            fault.survived = p.returncode == 4
            self.one_line(p, 4, "r.json: Read-only file system")

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
