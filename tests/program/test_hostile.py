"""What strangers send cannot make the program read other files, start programs, or use memory and time without end; and
what it writes cannot be led astray."""
import json, os, re, shutil, struct, subprocess, threading
from support import BASE_ENV, BINARY, CAPTURES, FAKES, SOURCE, Case, main, run, unittest

SECONDS, MEBIBYTES = 60, 1500  # of CPU, with sanitizers; without bounds both would be tens of times as much


class Bounded(Case):
    def bounded(self, *args):
        """Exit code, stdout and stderr of a run whose time and memory stay within bounds."""
        p = subprocess.Popen([str(BINARY), *map(str, args)], env=BASE_ENV, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        texts = {}
        readers = [threading.Thread(target=lambda f=f, n=n: texts.update({n: f.read().decode()}))
                   for n, f in (("out", p.stdout), ("err", p.stderr))]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        p.stdout.close(), p.stderr.close()
        self.assertLess(usage.ru_utime + usage.ru_stime, SECONDS)
        self.assertLess(usage.ru_maxrss / 1024, MEBIBYTES)
        return p.returncode, texts["out"], texts["err"]

    def refused(self, name, says, *args):
        with self.fault("hostile input", name) as fault:
            code, out, err = self.bounded(*args)
            fault.survived = code in (0, 1, 2)
            self.assertEqual((code, out), (2, ""), err)
            self.assertEqual(len(err.splitlines()), 1, err)
            self.assertRegex(err, says)

    def survived(self, name, *args):
        with self.fault("hostile input", name) as fault:
            code, out, err = self.bounded(*args)
            fault.survived = code in (0, 1, 3)
            self.assertIn(code, (0, 1, 3), err)
            return out

    def facts(self, facts, name="facts.json"):
        path = self.scratch() / name
        path.write_text(json.dumps({"schema": "shakedown.facts/1", "facts": facts}))
        return path

    def test_json(self):
        d = self.scratch()
        (d / "list.json").write_text("[" * 1000000)
        (d / "object.json").write_text('{"a":' * 1000000)
        with open(d / "huge.json", "wb") as f:
            f.truncate(10 << 30)
        self.refused("a million levels of lists", "depth", "check", d / "list.json")
        self.refused("a million levels of objects", "depth", "check", d / "object.json")
        self.refused("facts of 10 GiB", "larger than 64 MiB", "check", d / "huge.json")
        many = self.facts({f"env.NCCL_X{i}": "1" for i in range(100001)})
        self.refused("more facts than a node has", "more than 100000 facts", "check", many)

    def test_facts(self):
        self.survived("host lists of 3 billion names", "check",
                      self.facts({"host.name": ",".join(f"a{i}-[1-65536]" for i in range(50000))}), "--format", "json")
        self.survived("a command line of 8 MB", "check", self.facts({"kernel.cmdline": "iommu=pt " * 900000}))
        self.survived("50,000 settings that nobody knows", "check",
                      self.facts({f"env.FI_PROVIDER{i}": "x" * 50 for i in range(50000)}))
        self.survived("20,000 settings and a library that reads ten times as many others", "check",
                      self.facts({"fabric.version": "1.22.0", "fabric.params": [f"FI_B{i}" for i in range(200000)],
                                  **{f"env.FI_A{i}": "1" for i in range(20000)}}))

    def test_yaml(self):
        d = self.scratch()
        (d / "profiles").mkdir()
        bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi"))
        (d / "profiles" / "p.yaml").write_text(bomb)
        self.refused("a YAML alias bomb", "anchors and aliases", "list", "profiles", "--config", d)
        (d / "profiles" / "p.yaml").write_text("[" * 500000)
        self.refused("YAML nested half a million times", "nested too deeply", "list", "profiles", "--config", d)
        with open(d / "profiles" / "p.yaml", "wb") as f:
            f.truncate(10 << 30)
        self.refused("a profile of 10 GiB", "p.yaml", "list", "profiles", "--config", d)

    def test_library(self):
        """An ELF file whose headers claim 10 GiB, as a plugin."""
        good = (FAKES / "good_v8" / "libnccl-net.so").read_bytes()
        at, size, count = struct.unpack_from("<Q", good, 40)[0], *struct.unpack_from("<HH", good, 58)
        for name, field in (("size", 32), ("offset", 24), ("entry size", 56)):
            data = bytearray(good)
            for i in range(count):
                struct.pack_into("<Q", data, at + i * size + field, 10 << 30)
            d = self.scratch()
            d.chmod(0o755)
            (d / "libnccl-net.so").write_bytes(data)
            with self.fault("hostile input", f"a library whose sections claim a {name} of 10 GiB") as fault:
                code, out, err = self.bounded("probe", "--quick", "--sysroot", self.tree_with(d / "libnccl-net.so"))
                fault.survived = code == 0
                self.assertEqual(code, 0, err)
                self.assertIn("plugin.candidates", json.loads(out)["facts"])

    def tree_with(self, plugin):
        """A captured machine that has this file as its plugin."""
        tree = self.scratch() / "tree"
        shutil.copytree(CAPTURES / "slingshot-amd", tree, symlinks=True)
        (tree / "usr/lib64").mkdir(parents=True, exist_ok=True)
        shutil.copy(plugin, tree / "usr/lib64/libnccl-net.so")
        calls = tree / ".shakedown/hostcalls.json"
        doc = json.loads(calls.read_text())
        doc.setdefault("environ", {})["NCCL_NET_PLUGIN"] = "/usr/lib64/libnccl-net.so"
        calls.write_text(json.dumps(doc))
        return tree


class Closed(Case):
    def calls(self, kinds, *args):
        strace = shutil.which("strace")
        self.assertIsNotNone(strace, "strace is missing")
        log = self.scratch() / "log"
        env = {**BASE_ENV, "ASAN_OPTIONS": "detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}
        p = subprocess.run([strace, "-f", "-qq", "-e", f"trace={kinds}", "-o", str(log), str(BINARY), *map(str, args)],
                           env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           timeout=240)
        self.assertIn(p.returncode, (0, 1, 3), p.stderr)
        return log.read_text().splitlines()

    def test_check_starts_nothing_and_asks_nobody(self):
        facts = self.scratch() / "facts.json"
        facts.write_text(run("probe", "--sysroot", CAPTURES / "slingshot-amd").stdout)
        lines = self.calls("execve,execveat,fork,vfork,clone,clone3,socket,connect", "check", facts)
        self.assertEqual([l for l in lines if str(BINARY) not in l and "exited" not in l], [])

    def test_no_shell(self):
        """A quick run, as in a prolog, executes nothing but itself."""
        lines = self.calls("execve,execveat", "--quick")
        executed = [l for l in lines if "execve" in l and "= 0" in l]
        self.assertEqual(len(executed), 1, executed)
        self.assertIn(str(BINARY), executed[0])

    def test_no_call_that_takes_a_command_line(self):
        for folder in ("core", "config", "probes", "checks", "collectives", "reports", "cli"):
            for path in sorted((SOURCE / folder).rglob("*.c")):
                self.assertIsNone(re.search(r"\b(system|popen|execlp?|execvp)\(", path.read_text()), path)


class Output(Case):
    """Files that root writes in folders that others can write to."""
    capture = ("--sysroot", CAPTURES / "slingshot-amd", "--transport", "none")

    def setUp(self):
        self.folder = self.scratch()
        self.folder.chmod(0o1777)
        self.victim = self.folder / "victim"
        self.victim.write_text("precious\n")

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_a_link_of_a_user_is_not_followed(self):
        link = self.folder / "report.json"
        link.symlink_to(self.victim)
        os.chown(link, 65534, 65534, follow_symlinks=False)
        with self.fault("hostile input", "a user's link where root writes") as fault:
            p = run(*self.capture, "-o", link)
            fault.survived = p.returncode == 2
            self.one_line(p, 2, "report.json: Operation not permitted")
            self.assertEqual(self.victim.read_text(), "precious\n")

    def test_names_of_temporary_files_cannot_be_guessed(self):
        strace = shutil.which("strace")
        names = set()
        for _ in range(3):
            log = self.folder / "log"
            env = {**BASE_ENV, "ASAN_OPTIONS": "detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}
            subprocess.run([strace, "-f", "-qq", "-e", "trace=openat", "-o", str(log), str(BINARY), *map(str, self.capture), "-o",
                            str(self.folder / "r.json")], env=env, stdin=subprocess.DEVNULL, check=False, timeout=240)
            found = re.findall(r'"([^"]*r\.json\.[^"]*)", ([A-Z_|]*O_CREAT[A-Z_|]*), (\d+)', log.read_text())
            self.assertEqual(len(found), 1)
            name, flags, mode = found[0]
            self.assertIn("O_EXCL", flags)
            self.assertEqual(mode, "0600")
            names.add(name)
        self.assertEqual(len(names), 3)


@unittest.skipIf(os.geteuid() != 0, "needs root")
class Preload(Case):
    """LD_PRELOAD has acted before main(): it cannot be refused, but it is not hidden, and a clean environment ends it."""

    def test_it_is_in_the_report(self):
        p = run("--quick", "--format", "json", env={
            "LD_PRELOAD": str(FAKES / "files" / "libshk-files.so"),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"})
        rows = [f for f in self.json_of(p)["findings"] if f["setting"] == "LD_PRELOAD"]
        self.assertTrue(rows)
        self.assertIn("libshk-files.so", rows[0]["observed"])

    def test_a_clean_environment(self):
        p = subprocess.run(["env", "-i", str(BINARY), "--quick", "--format", "json"],
                           env={**BASE_ENV, "NCCL_NET_PLUGIN": "/nowhere/libnccl-net.so"}, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=120)
        self.assertIn(p.returncode, (0, 1, 3), p.stderr)
        self.assertNotIn("/nowhere", p.stdout)


main()
