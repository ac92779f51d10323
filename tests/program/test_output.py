"""Where output goes: machine output alone on stdout, several -o, full and closed streams."""
import fcntl, json, os, pty, re, struct, subprocess, termios
from support import BASE_ENV, BINARY, CAPTURES, Case, main, run


class Output(Case):
    capture = ("--sysroot", CAPTURES / "slingshot-amd")

    def test_json_alone_on_stdout(self):
        p = run(*self.capture, "--format", "json", "-v")
        summary = self.json_of(p)["summary"]
        for key in ("pass", "warn", "fail", "unknown", "na"):
            self.assertIsInstance(summary[key], int)
        self.assertGreater(summary["pass"], 20)
        self.assertEqual(set(summary["coverage"]), {"tested", "log", "effect", "declared", "none"})

    def test_counts_are_those_of_the_rows(self):
        report = self.json_of(run(*self.capture, "--format", "json"))
        for verdict in ("pass", "warn", "fail", "unknown", "na"):
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
        for form in ("term", "md", "json", "html", "junit", "prom"):
            p = run(*self.capture, "--anonymize", "--format", form)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertNotIn("nid005012", p.stdout, form)

    def test_full_disk_and_unwritable(self):
        d = self.scratch()
        self.one_line(run(*self.capture, "-o", "/dev/full"), 4, "/dev/full: No space left")
        self.one_line(run(*self.capture, "-o", d / "no" / "r.md"), 4, "No such file or directory")
        for args in ([*self.capture], ["--help"], ["probe", *self.capture], ["list", "checks"]):
            with open("/dev/full", "w") as full:
                p = subprocess.run([str(BINARY), *map(str, args)], env=BASE_ENV, stdout=full,
                                   stderr=subprocess.PIPE, text=True)
            self.assertEqual(p.returncode, 4, args)
            self.assertEqual(p.stderr, "shakedown: standard output: No space left on device\n")

    def test_closed_and_broken_stdout(self):
        p = subprocess.run(["sh", "-c", 'exec "$0" --sysroot "$1" >&-', str(BINARY),
                            str(CAPTURES / "slingshot-amd")], env=BASE_ENV, capture_output=True, text=True)
        self.assertEqual(p.returncode, 4, p.stderr)
        read, write = os.pipe()
        os.close(read)
        p = subprocess.run([str(BINARY), *map(str, self.capture)], env=BASE_ENV, stdout=write,
                           stderr=subprocess.PIPE, text=True)
        os.close(write)
        self.assertEqual(p.returncode, 4, p.stderr)
        self.assertIn("Broken pipe", p.stderr)

    def test_fail_on(self):
        bad = {"NCCL_DEBUG": "INFOO"}
        base = run(*self.capture, env=bad)
        self.assertEqual(base.returncode, 0, base.stdout)
        self.assertEqual(run(*self.capture, "--fail-on", "warn", env=bad).returncode, 1)


main()
