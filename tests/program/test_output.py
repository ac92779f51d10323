"""Where output goes: machine output alone on stdout, several -o, full and closed streams."""
import json, os, subprocess
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
