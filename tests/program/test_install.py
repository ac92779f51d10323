"""cmake --install: a tree that can be moved, with completion, manual page, schemas, module file."""
import os
import re
import shutil
import subprocess

from support import BASE_ENV, BINARY, SOURCE, Case, main


class Install(Case):
    def test_tree(self):
        d = self.scratch()
        p = subprocess.run(["cmake", "--install", str(BINARY.parent), "--prefix", str(d / "first")],
                           capture_output=True, text=True, timeout=120)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        (d / "first").rename(d / "moved")
        root = d / "moved"
        version = subprocess.run([root / "bin/shakedown", "--version"], env=BASE_ENV, check=True,
                                 capture_output=True, text=True, timeout=60).stdout
        self.assertRegex(version, r"^shakedown \d+\.\d+\.\d+\ncompiler +\S+ [0-9.]+, \S+\noptions +\S")
        for library in ("hwloc", "jansson", "yaml", "libfabric"):
            self.assertRegex(version, rf"(?m)^{library} +\d")
        number = version.split()[1]
        files = {str(f.relative_to(root)) for f in root.rglob("*") if f.is_file()}
        for f in ("share/man/man1/shakedown.1", "share/bash-completion/completions/shakedown",
                  "share/zsh/vendor-completions/_shakedown", "share/fish/vendor_completions.d/shakedown.fish",
                  "share/shakedown/schema/report-1.schema.json", "share/shakedown/schema/report-2.schema.json", "share/shakedown/schema/junit.xsd",
                  "share/pkgconfig/shakedown.pc", f"share/modulefiles/shakedown/{number}.lua",
                  "share/doc/shakedown/README.md", "share/shakedown/nhc/nhc.conf", "share/shakedown/kubernetes/job.yaml",
                  "share/shakedown/examples/shakedown.timer", "share/shakedown/nhc/shakedown.nhc"):
            self.assertIn(f, files)
        for f in ("prolog.sh", "epilog.sh", "healthcheck.sh", "preflight.sbatch"):
            self.assertTrue(os.access(root / "libexec/shakedown" / f, os.X_OK), f)
        # what packages put into /etc/shakedown is right once it has the name by which it is read
        for kind, name in (("settings", "site"), ("profiles", "mysite")):
            (d / "etc" / kind).mkdir(parents=True)
            shutil.copy(root / f"share/shakedown/examples/etc/{kind}/{name}.yaml.example", d / "etc" / kind / f"{name}.yaml")
        p = subprocess.run([root / "bin/shakedown", "config", "check", d / "etc"], env=BASE_ENV, capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        text = (root / "share/bash-completion/completions/shakedown").read_text()
        self.assertIn("complete -o filenames -F _shakedown shakedown", text)
        for f in files:
            if f != "bin/shakedown" and not f.endswith(".png"):
                self.assertNotIn(str(BINARY.parent), (root / f).read_text(), f)
        readme = (root / "share/doc/shakedown/README.md").read_text()
        for link in re.findall(r"\]\((docs/[^)#]+)", readme):
            self.assertIn(f"share/doc/shakedown/{link}", files)
        if shutil.which("pkg-config"):
            p = subprocess.run(["pkg-config", "--modversion", "shakedown"], capture_output=True, text=True,
                               env={**BASE_ENV, "PKG_CONFIG_PATH": str(root / "share/pkgconfig")}, timeout=60)
            self.assertEqual(p.stdout.strip(), number, p.stderr)

    def test_hardening(self):
        if not shutil.which("readelf"):
            self.skipTest("no readelf")
        tool = SOURCE / "tests/tools/hardened"
        p = subprocess.run([tool, BINARY], capture_output=True, text=True, timeout=60)
        self.assertEqual((p.returncode, p.stdout), (0, ""), p.stderr)
        # and the tool can tell: the same file without what it looks for
        d = self.scratch()
        (d / "plain.c").write_text("int main(void) { return 0; }\n")
        subprocess.run(["cc", "-no-pie", "-fno-stack-protector", "-Wl,-z,lazy,-z,norelro,-z,execstack", "-Wl,-rpath,/tmp",
                        "-o", d / "plain", d / "plain.c"], check=True, timeout=60)
        p = subprocess.run([tool, d / "plain"], capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 1)
        for lack in ("not position-independent", "no full RELRO", "no RELRO", "the stack can be executed", "search path",
                     "no stack protector", "not fortified"):
            self.assertIn(lack, p.stdout)


main()
