"""Completion scripts and the manual page say what the program's own help says."""
import re
import shutil
import subprocess

from support import BASE_ENV, BINARY, Case, SOURCE, main, run

WIDE = {"COLUMNS": "1000"}  # a line for each


def commands():
    text = run("--help", env=WIDE).stdout.split("Examples:")[0]
    return re.findall(r"(?m)^  ([a-z]+) ", text)


def options(command):
    return set(re.findall(r"(?m)^  (?:-.,|   ) --([a-z-]+)", run(command, "--help", env=WIDE).stdout))


class Completion(Case):
    def complete(self, *words):
        """What bash offers for the last word."""
        script = ('source <(shakedown completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  '_shakedown; printf "%s\\n" "${COMPREPLY[@]}"')
        p = subprocess.run(["bash", "--norc", "-c", script, "x", "shakedown", *words],
                           env={**BASE_ENV, "PATH": f"{BINARY.parent}:/usr/bin:/bin"},
                           capture_output=True, text=True, timeout=60)
        self.assertEqual(p.stderr, "")
        return set(p.stdout.split())

    def test_bash(self):
        self.assertEqual(self.complete(""), set(commands()))
        self.assertEqual(self.complete("dif"), {"diff"})
        for command in commands():
            self.assertEqual(self.complete(command, "--"), {f"--{o}" for o in options(command)})
        self.assertEqual(self.complete("--prof"), {"--profile"})
        self.assertEqual(self.complete("--profile", "lumi"), {"lumi-g"})
        self.assertEqual(self.complete("--format", "j"), {"json", "junit"})
        self.assertEqual(self.complete("env", "--shell", ""), {"sh", "csh", "lua"})
        self.assertEqual(self.complete("explain", "NCCL_SOCKET_FAM"), {"NCCL_SOCKET_FAMILY"})
        self.assertEqual(self.complete("list", "diag"), {"diagnoses"})
        self.assertEqual(self.complete("--ranks", ""), set())
        self.assertIn(str(SOURCE / "tests") , self.complete("--sysroot", str(SOURCE / "test")))

    def test_every_option_is_in_every_shell(self):
        for shell, form in (("zsh", "--{}"), ("fish", "-l {}")):
            text = run("completion", shell).stdout
            for command in commands():
                self.assertIn(command, text)
                for option in options(command):
                    self.assertIn(form.format(option), text)

    def test_syntax(self):
        for shell in ("bash", "zsh", "fish"):
            if not shutil.which(shell):
                print(f"not tested: {shell} is not installed")
                continue
            p = subprocess.run([shell, "-n"], input=run("completion", shell).stdout,
                               capture_output=True, text=True, timeout=60)
            self.assertEqual((p.returncode, p.stderr), (0, ""), shell)

    def test_unknown_shell(self):
        self.one_line(run("completion", "tcsh"), 2, "'tcsh' is not bash, zsh or fish")

    def test_manual_page(self):
        """Its tables are those of --help, and the formatter has nothing to complain about."""
        page = self.scratch() / "shakedown.1"
        subprocess.run(["python3", str(SOURCE / "cmake/manpage.py"), str(BINARY),
                        str(SOURCE / "docs/shakedown.1.in"), str(page)], env=BASE_ENV, check=True,
                       timeout=60)
        text = page.read_text().replace("\\-", "-")
        self.assertNotIn("@", text)
        for command in commands():
            self.assertRegex(text, rf"(?m)^\.BI? {command}\b")
            for option in options(command):
                self.assertRegex(text, rf'(?m)^\.BI? "(-., )?--{option}"')
        self.assertRegex(text, r"(?m)^\.B 4$")
        if shutil.which("man"):
            p = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)],
                               env=BASE_ENV, capture_output=True, text=True, timeout=60)
            self.assertEqual((p.returncode, p.stderr), (0, ""))


main()
