"""What can be run of the fixes is run: by sh, csh and Lua, with values that would like to be more than a word."""
import glob, re, shutil, subprocess
from support import *

HOSTILE = ["$(touch x)", "`touch x`", "a'; touch x; '", 'a"; touch x; "', "a b", "!touch", "-rf", "a\\", "*", "~", "$HOME",
           "${HOME}", "a;touch x", "a|touch x", "a>x", "grüß", "]] os.execute('touch x') --", "#x", "a%sb", "{value}"]
UNSAFE = ["a\ntouch x", "a\rb", "a\x1b[2Jb", "a\u202eb", "a\x7f"]
# What no shell has a word for: it comes from Lmod and from sbatch
OPTIONS = {"--gpu-bind", "--mem", "--network"}


def rows_of(path):
    """The rows of a file of the catalogue."""
    rows = read_yaml(path)
    return rows if isinstance(rows, list) else []


def files():
    """Those of the catalogue: manifests for Kubernetes are none."""
    return [p for p in sorted(glob.glob(str(SOURCE / "config" / "*" / "*.yaml"))) if "/kubernetes/" not in p]


def catalogue():
    """(where, fix, name of the variable that the row is about) of every row that has a fix."""
    for path in files():
        for row in rows_of(path):
            name = row.get("key") or row.get("name") or row.get("path")
            if row.get("fix"):
                yield f"{path.split('config/')[1]} {name}", row["fix"], row.get("name") if "/settings/" in path else None


def has_csh():
    return shutil.which("csh") or shutil.which("tcsh")


class Catalogue(unittest.TestCase):
    def test_a_shell_takes_each(self):
        fixes = [(where, re.sub(r"(?<!\$)\{[a-z]+[*$]?\}", "VALUE", fix)) for where, fix, _ in catalogue()]
        self.assertGreater(len(fixes), 400)
        for where, fix in fixes:
            shell = subprocess.run(["sh", "-n", "-c", fix], capture_output=True, text=True)
            self.assertEqual((shell.returncode, shell.stderr), (0, ""), where)
            self.assertNotIn("\n", fix, where)
            if fix.startswith("#SBATCH "):
                self.assertIn(fix.split()[1].split("=")[0], OPTIONS, where)
            else:
                self.assertFalse(fix.startswith("#"), where)
            # nothing to fill in, and no prose
            self.assertNotRegex(re.sub("NIC_POLICY=GPU|'[^']*'", "", fix), r"<[a-z]|\bor\b|\b(NODE|GPU|IFACE|INTERFACE|DEVICE|ADDRESS|WATTS|NAME)\b(?!=)", where)

    def test_what_is_said_about_a_variable_names_it(self):
        for where, fix, name in catalogue():
            if name and re.fullmatch(r"[A-Z][A-Z0-9_]+", name) and not name.startswith(("RLIMIT_", "CONFIG_", "SLURM_")):
                related = {w for w in re.findall(r"[A-Z][A-Z0-9]+_[A-Z0-9_]+", fix)}
                self.assertTrue(name in fix or related, (where, fix))

    def test_exports_are_exports(self):
        """Each line that only sets and unsets variables does just that."""
        for where, fix, _ in catalogue():
            if not re.match(r"(export|unset) ", fix) or "{" in fix.replace("${", ""):
                continue
            shell = subprocess.run(["sh", "-euc", f"USER=u MASTER_ADDR=m SLURM_JOB_ID=1 SLURM_LOCALID=0 LD_LIBRARY_PATH=; {fix}"],
                                   capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
            self.assertEqual((shell.returncode, shell.stdout, shell.stderr), (0, "", ""), where)

    def test_advice_is_words(self):
        for path in files():
            for row in rows_of(path):
                for line in str(row.get("advice") or "").splitlines():
                    self.assertNotRegex(line, r"^(export|unset|sysctl|modprobe|systemctl (?!edit)) ", (path, row))


def slips(count):
    """Misspelt names and the right one each, of which no two are the same."""
    rows = rows_of(SOURCE / "config" / "settings" / "folklore.yaml")
    pairs = {r["replaced-by"]: r["name"] for r in rows
             if r.get("diagnosis") == "env-variable-misspelled" and re.fullmatch(r"\w+", r.get("replaced-by", ""))}
    return [(name, right) for right, name in list(pairs.items())[:count]]


class Hostile(unittest.TestCase):
    def scratch(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name)

    def capture(self, environ):
        """A healthy node with more in its environment."""
        capture = self.scratch() / "capture"
        shutil.copytree(CAPTURES / "slingshot-amd", capture, symlinks=True)
        calls = capture / ".shakedown" / "hostcalls.json"
        doc = json.loads(calls.read_text())
        for _, right in slips(99):
            doc["environ"].pop(right, None)
        doc["environ"].update(environ)
        calls.chmod(0o644)
        calls.write_text(json.dumps(doc))
        return ["--sysroot", capture, "--profile", "single-node"]

    def ran(self, command, want, stdin):
        folder = self.scratch()
        out = subprocess.run(command, input=stdin.encode(), capture_output=True, cwd=folder,
                             env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere"})
        self.assertEqual((out.stdout.decode(), list(folder.iterdir())), (want, []), (stdin, out.stderr))

    def values(self):
        names = slips(len(HOSTILE))
        self.assertEqual(len(names), len(HOSTILE))
        return list(zip(names, HOSTILE))

    def test_a_value_is_one_word_of_sh(self):
        rows = json.loads(run("--quick", *self.capture({name: value for (name, _), value in self.values()}),
                              "--format", "json").stdout)["findings"]
        for (name, right), value in self.values():
            row, = [f for f in rows if f["setting"] == name]
            self.assertIn(f"export {right}=", row["fix"], value)
            self.ran(["sh", "-s"], f"[{value}]", row["fix"] + f'\nprintf "[%s]" "${right}"\n')

    def test_what_cannot_be_quoted_is_no_fix(self):
        names = slips(len(UNSAFE))
        rows = json.loads(run("--quick", *self.capture({name: value for (name, _), value in zip(names, UNSAFE)}),
                              "--format", "json").stdout)["findings"]
        for (name, right), value in zip(names, UNSAFE):
            row, = [f for f in rows if f["setting"] == name]
            self.assertNotIn("fix", row, repr(value))
            self.assertIn(right, row["advice"], repr(value))

    def test_lines_of_env(self):
        shells = [("sh", ["sh", "-s"], 'printf "[%s]" "${}"'), ("csh", [has_csh(), "-f"], 'printf "[%s]" ${}:q'),
                  ("lua", [shutil.which("lua5.4") or shutil.which("lua"), "-"], 'io.write("[" .. env["{}"] .. "]")')]
        capture = self.capture({name: value for (name, _), value in self.values()})
        for shell, command, show in shells:
            if not command[0]:
                print("not here:", shell)
                continue
            text = run("env", *capture, "--shell", shell).stdout
            before = "env = {}\nfunction setenv(n, v) env[n] = v end\nfunction unsetenv(n) end\n" if shell == "lua" else ""
            for (name, right), value in self.values():
                lines = [l for l in text.splitlines() if re.search(rf"\b{right}\b", l) and not l.startswith(("#", "--"))]
                self.assertEqual(len(lines), 1, (shell, value, lines))
                self.ran(command, f"[{value}]", before + lines[0] + "\n" + show.replace("{}", right) + "\n")

    def test_unsafe_lines_of_env(self):
        names = slips(len(UNSAFE))
        capture = self.capture({name: value for (name, _), value in zip(names, UNSAFE)})
        for shell in ("sh", "csh", "lua"):
            text = run("env", *capture, "--shell", shell).stdout
            lines = [l for l in text.splitlines() if not l.startswith(("#", "--"))]
            self.assertFalse([l for l in lines if re.search("touch|[\x00-\x1f\x7f\u202e]", l)], shell)
            if shell == "sh":
                self.ran(["sh", "-s"], "", text)

    def test_a_fix_is_whole_at_sixty_columns(self):
        value = "/opt/" + "a long directory name with blanks/" * 9 + "x"
        (name, right), = slips(1)
        want = f"unset {name}; export {right}='{value}'"
        capture = self.capture({name: value})
        for form in ("term", "md", "html", "junit", "json"):
            out = run("--quick", *capture, "--format", form, env={"COLUMNS": "60", "LC_ALL": "C"}).stdout
            out = out.replace("&#39;", "'").replace("&apos;", "'")
            self.assertTrue(any(want in line for line in out.splitlines()), (form, [l for l in out.splitlines() if name in l][:4]))


main()
