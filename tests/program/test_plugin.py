"""Every broken net plugin gives its own cause, in time, and the run goes on."""
import json
import os
import shutil
import tempfile
import time
import support
from support import FAKES, run

NCCL = str(FAKES / "nccl_228")  # strings of NCCL 2.28: interface versions 6 to 11

# fake -> check that says so, first broken link, what the row says, cause
FAULTS = {
    "empty_file": ("load", "format", r"empty file", "plugin-file-unusable"),
    "text_file": ("load", "format", r"text file \(\"GROUP", "plugin-file-unusable"),
    "truncated": ("load", "format", r"ELF file", "plugin-file-unusable"),
    "wrong_machine": ("load", "format", r"built for \S+, this machine is", "plugin-file-unusable"),
    "no_symbol": ("load", "abi", r"exports no net plugin symbol", "plugin-abi-mismatch"),
    "too_old": ("load", "abi", r"versions 4, 5, none of which", "plugin-abi-mismatch"),
    "too_new": ("load", "abi", r"versions 40, none of which", "plugin-abi-mismatch"),
    "missing_dependency": ("load", "dependencies", r"libshk-gone\.so, which is not in the search path",
                           "plugin-dependency-missing"),
    "needs_new_fabric": ("load", "versions", r"needs symbol version FABRIC_1\.10 of libfabric\.so\.1",
                         "plugin-libfabric-version-mismatch"),
    "undefined_symbol": ("load", "load", r"shk_symbol_that_no_library_has", "plugin-dependency-missing"),
    "segv_constructor": ("load", "load", r"SIGSEGV.*dlopen", "plugin-crashes"),
    "no_init": ("load", "load", r"has no init", "plugin-interface-broken"),
    "null_slots": ("use", "init", r"init succeeded, but \S+ has no connect, accept", "plugin-interface-broken"),
    "license": ("use", "init", r"LICENSE CHECK FAILED", "net-plugin-init-failed"),
    "segv_init": ("use", "init", r"SIGSEGV in \S+: init", "plugin-crashes"),
    "abort_init": ("use", "init", r"SIGABRT in \S+: init", "plugin-crashes"),
    "exit_init": ("use", "init", r"called exit\(", "plugin-crashes"),
    "hang_init": ("use", "init", r"no answer after \d+ ms.*init", "plugin-crashes"),
    "error_init": ("use", "init", r"no eligible device, error -61", "net-plugin-init-failed"),
    "no_devices": ("use", "devices", r"0 devices", "plugin-no-device"),
    "segv_devices": ("use", "devices", r"SIGSEGV in \S+: devices", "plugin-crashes"),
    "bad_properties": ("use", "properties", r"device 0: name: pointer 0x10", "plugin-interface-broken"),
    "segv_properties": ("use", "properties", r"SIGSEGV in \S+: getProperties\(0\)", "plugin-crashes"),
    "corrupt_data": ("use", "loopback", r"1 of 1048576 bytes arrived wrong", "plugin-corrupts-data"),
    "overrun": ("use", "loopback", r"1 of 1024 bytes arrived wrong", "plugin-corrupts-data"),
    "never_connects": ("use", "loopback", r"still pending after", "plugin-connection-stall"),
}
GOOD = [f"good_v{n}" for n in range(6, 12)] + ["late_table"]
DEADLINE = 10


def plugin(fake):
    return str(FAKES / fake / "libnccl-net.so")


class Plugins(support.Case):
    def judge(self, fakes, *args, path=NCCL):
        """The report, and the rows of each fake by check."""
        start = time.monotonic()
        p = run("run", *args, "--transport", "none", "--format", "json", "--timeout", str(DEADLINE),
                env={"NCCL_NET_PLUGIN": ",".join(map(plugin, fakes)), "LD_LIBRARY_PATH": path})
        took = time.monotonic() - start
        self.assertLess(took, DEADLINE + 9, "the run took longer than its deadline allows")
        report = self.json_of(p)
        rows = {}
        for f in report["findings"]:
            if f["id"] in ("plugin.load", "plugin.use"):
                name = f["setting"].partition("(")[2].rstrip(")") or plugin(fakes[0])
                rows[name.split("/")[-2], f["id"][7:]] = f
        return report, rows

    def test_every_fault_has_its_own_cause(self):
        names, said = list(FAULTS), {}
        for batch in (names[:9], names[9:18], names[18:]):
            report, rows = self.judge(batch)
            for fake in batch:
                with self.fault("broken net plugin", fake) as fault:
                    fault.survived = True  # the report of the batch is here
                    check, link, says, cause = FAULTS[fake]
                    row = rows[fake, check]
                    self.assertEqual(row["verdict"], "fail", row)
                    self.assertEqual(row["observed"], f"first broken link: {link}")
                    self.assertRegex(row["why"], says)
                    self.assertEqual(row["diagnosis"], cause)
                    self.assertTrue(row.get("fix") or row.get("advice"), row)
                    if check == "load":
                        self.assertEqual(rows[fake, "use"]["verdict"], "na")
                    said[fake] = row["why"].replace(plugin(fake), "")
            # the run went on: the rest of the report is there
            self.assertTrue([f for f in report["findings"] if f["id"] == "limits.memlock"])
            self.assertTrue(set(c for _, _, _, c in map(FAULTS.get, batch)) <=
                            {d["key"] for d in report["diagnoses"]})
        self.assertEqual(len(set(said.values())), len(FAULTS), said)

    def test_every_version_works(self):
        _, rows = self.judge(GOOD)
        for fake in GOOD:
            with self.subTest(fake):
                self.assertEqual(rows[fake, "load"]["verdict"], "pass")
                self.assertEqual(rows[fake, "use"]["verdict"], "pass", rows[fake, "use"])
                self.assertEqual(rows[fake, "use"]["evidence"], "tested")
                self.assertIn("loopback of 1048576 bytes right", rows[fake, "use"]["observed"])

    def rows_of(self, **env):
        p = run("run", "--quick", "--transport", "none", "--format", "json", "--profile", "single-node", env=env)
        return {(f["id"], f["setting"]): f for f in self.json_of(p)["findings"]}

    def test_files_that_are_there_are_not_missing(self):
        with tempfile.TemporaryDirectory() as top:
            for name in ("link", "loop", "dir"):
                os.mkdir(f"{top}/{name}")
            os.symlink("nowhere.so", f"{top}/link/libnccl-net.so")
            os.symlink("libnccl-net.so", f"{top}/loop/libnccl-net.so")
            os.mkdir(f"{top}/dir/libnccl-net.so")
            for name, check, says in (("link", "file", "a link to nowhere.so, which does not exist"),
                                      ("loop", "file", "symbolic links in a circle"),
                                      ("dir", "load", "a directory, not a file")):
                with self.subTest(name):
                    path = f"{top}/{name}/libnccl-net.so"
                    rows = self.rows_of(LD_LIBRARY_PATH=NCCL, NCCL_NET_PLUGIN=path)
                    row = rows[f"plugin.{check}", f"net plugin {check}"]
                    self.assertEqual((row["verdict"], row["diagnosis"]), ("fail", "plugin-file-unusable"), row)
                    self.assertIn(says, row["why"])
                    self.assertNotIn("no such file", row["why"])
                    rows = self.rows_of(LD_LIBRARY_PATH=f"{NCCL}:{top}/{name}")
                    row = rows["plugin.load", "net plugin load"]
                    self.assertIn(row["verdict"], ("note", "warn"))  # nobody asks for it
                    self.assertIn(says, row["why"])

    def test_did_you_mean(self):
        with tempfile.TemporaryDirectory() as top:
            shutil.copy(plugin("good_v8"), f"{top}/libnccl-net-ofi.so")
            row = self.rows_of(LD_LIBRARY_PATH=f"{NCCL}:{top}", NCCL_NET_PLUGIN="aws")["plugin.file", "net plugin file"]
            self.assertEqual((row["verdict"], row["fix"]), ("fail", "export NCCL_NET_PLUGIN=ofi"), row)
            looked, _, seen = row["why"].partition("Not requested, but present:")
            self.assertNotIn("libnccl-net-ofi.so", looked)
            self.assertIn(f"{top}/libnccl-net-ofi.so", seen)
            row = self.rows_of(LD_LIBRARY_PATH=f"{NCCL}:{top}", NCCL_NET_PLUGIN="ofi")["plugin.file", "net plugin file"]
            self.assertEqual(row["verdict"], "pass", row)

    def test_a_forced_network(self):
        """Known names pass; others fail, with what is there."""
        good = str(FAKES / "good_v8")
        for path, name, verdict, says in ((good, "fake", "pass", ""), (good, "gIB", "fail", 'there are "Fake"'),
                                          (str(FAKES / "undefined_symbol"), "Fake", "fail", "ends the job"),
                                          (str(FAKES / "files"), "Fake", "fail", "no net plugin was found")):
            with self.subTest(path=path, name=name):
                rows = self.rows_of(LD_LIBRARY_PATH=f"{NCCL}:{path}", NCCL_NET=name)
                row = rows["env.value", "NCCL_NET"]
                self.assertEqual(row["verdict"], verdict, row)
                self.assertIn(says, row.get("why", ""))
                self.assertNotIn("Slingshot", json.dumps(row))

    def test_a_good_one_takes_over(self):
        _, rows = self.judge(["error_init", "missing_dependency", "good_v9"])
        self.assertEqual(rows["missing_dependency", "load"]["verdict"], "warn")
        self.assertIn("takes the next plugin", rows["missing_dependency", "load"]["why"])
        self.assertEqual(rows["good_v9", "use"]["verdict"], "pass")

    def test_quick_starts_nothing(self):
        _, rows = self.judge(["hang_init"], "--quick")
        self.assertEqual(rows["hang_init", "load"]["verdict"], "pass")
        self.assertEqual(rows["hang_init", "use"]["verdict"], "na")

    def test_a_plugin_for_a_newer_libfabric(self):
        """Both versions and both paths; and the copy that would do is the fix."""
        old, new = FAKES / "fabric_old", FAKES / "fabric_new"
        _, rows = self.judge(["needs_new_fabric"], "--quick", path=f"{NCCL}:{old}:{new}")
        row = rows["needs_new_fabric", "load"]
        self.assertEqual(row["diagnosis"], "plugin-libfabric-version-mismatch")
        for text in (plugin("needs_new_fabric"), "FABRIC_1.10", str(old / "libfabric.so.1"),
                     "FABRIC_1.6", "later than 2.6", "1.17.0"):
            self.assertIn(text, row["why"])
        self.assertEqual(row["fix"], f"export LD_LIBRARY_PATH={new}:$LD_LIBRARY_PATH")
        _, rows = self.judge(["needs_new_fabric"], path=f"{NCCL}:{new}:{old}")
        for check in ("load", "use"):
            self.assertEqual(rows["needs_new_fabric", check]["verdict"], "pass", rows)

    def test_a_plugin_for_a_newer_libfabric_than_the_system_has(self):
        facts = json.loads(run("probe", "--quick").stdout)["facts"]
        copies = [c for c in facts["fabric.copies"].get("value", []) if c["loader"]]
        if not copies or "abi" not in copies[0]:
            self.skipTest("no libfabric on the loader's path")
        _, rows = self.judge(["needs_new_fabric"], "--quick")
        row = rows["needs_new_fabric", "load"]
        self.assertEqual(row["diagnosis"], "plugin-libfabric-version-mismatch")
        for text in (copies[0]["path"], copies[0]["abi"], copies[0]["version"], "FABRIC_1.10"):
            self.assertIn(text, row["why"])

    def test_interface_versions_without_running_anything(self):
        report, _ = self.judge(["too_old"], "--quick")
        row = self.finding(report, "net plugin ABI", "fail")
        self.assertEqual(row["observed"], "plugin: v4 v5; NCCL: v6 v7 v8 v9 v10 v11")


if __name__ == "__main__":
    support.main()
