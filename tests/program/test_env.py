"""The environment audit from the outside: captures, misspellings, and what to export instead."""
import json, re, subprocess
from support import CAPTURES, Case, main, run

SLINGSHOT = ("--sysroot", CAPTURES / "slingshot-amd")


class Env(Case):
    def test_misspelt_interface_is_named(self):
        p = run(*SLINGSHOT, "--format", "json", env={"NCCL_SOCKET_IFNAME": "hsn0,hsn1,hsn2,hns3"})
        self.assertEqual(p.returncode, 1)
        row = self.finding(self.json_of(p), "NCCL_SOCKET_IFNAME", "fail")
        self.assertRegex(row["why"], r"hns3.*hsn3")
        self.assertIn("hsn3", row["fix"])

    def test_healthy_capture_has_no_warning(self):
        p = run(*SLINGSHOT, "--format", "json")
        summary = self.json_of(p)["summary"]
        self.assertEqual((p.returncode, summary["fail"], summary["warn"]), (0, 0, 0), p.stdout)

    def test_missing_provider_of_the_capture(self):
        p = run("--sysroot", CAPTURES / "efa-no-provider", "--format", "json")
        self.assertEqual(p.returncode, 1)
        keys = [d["key"] for d in self.json_of(p)["diagnoses"]]
        self.assertIn(keys[0], ("provider-not-compiled", "efa-provider-absent"))

    def test_misspelt_names_on_the_real_libraries(self):
        env = {"NCCL_SOCKET_IFNAMES": "x", "FI_TCP_IFACES": "x", "FI_EFA_USE_HUGE_PAGES": "1", "NCCL_DEBUG": "INFOO"}
        report = self.json_of(run("--quick", "--format", "json", env=env))
        for name, right in [("NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"), ("FI_TCP_IFACES", "FI_TCP_IFACE"),
                            ("FI_EFA_USE_HUGE_PAGES", "FI_EFA_USE_HUGE_PAGE"), ("NCCL_DEBUG", "INFO")]:
            row = self.finding(report, name, "warn")
            self.assertIn(right, " ".join(str(row.get(k)) for k in ("why", "fix", "expected")), name)
        # libfabric is always there to build with, so it was asked itself
        self.assertEqual(self.finding(report, "FI_TCP_IFACES", "warn")["evidence"], "effect")

    WRONG = {"NCCL_SOCKET_IFNAME": "eth0", "RCCL_ENABLE_OFI": "1", "NCCL_LAUNCH_MODES": "$(touch ran) 'x' \"y\"",
             "NCCL_DEBUG": "WARNN", "FI_HMEM": "1", "NCCL_CROSS_NIC": "9", "FI_MR_CACHE_MONITOR": "memhooks"}
    JOB = {"USER": "u", "SLURM_JOB_ID": "1"}

    def commands(self, text):
        return [line for line in text.splitlines() if line and not line.startswith(("#", "--"))]

    def test_env_lines_can_be_sourced(self):
        folder = self.scratch()
        text = run("env", *SLINGSHOT, "--profile", "lumi-g", env=self.WRONG).stdout
        self.assertIn('export NCCL_SOCKET_IFNAME=hsn', text)
        self.assertIn("unset RCCL_ENABLE_OFI", text)
        self.assertIn("unset NCCL_LAUNCH_MODES", text)
        self.assertIn("export NCCL_LAUNCH_MODE=", text)
        self.assertIn('export FI_MR_CACHE_MONITOR=userfaultfd', text)
        shell = subprocess.run(["sh", "-euc", text + "\nenv -0"], capture_output=True, text=True, cwd=folder,
                               env={**self.WRONG, **self.JOB, "PATH": "/usr/bin:/bin"})
        self.assertEqual((shell.returncode, list(folder.iterdir())), (0, []), shell.stderr)
        after = dict(entry.split("=", 1) for entry in shell.stdout.split("\0") if entry)
        self.assertEqual(after["NCCL_LAUNCH_MODE"], self.WRONG["NCCL_LAUNCH_MODES"])
        self.assertNotIn("RCCL_ENABLE_OFI", after)
        # what it says is enough: nothing of the profile and of the names is left to do
        again = run("env", *SLINGSHOT, "--profile", "lumi-g",
                    env={k: v for k, v in after.items() if k != "NCCL_LAUNCH_MODE"}).stdout
        self.assertEqual(self.commands(again), [], again)

    def test_every_shell_has_the_same_lines(self):
        names = {}
        for shell, pattern in [("sh", r"(export|unset) (\w+)"), ("csh", r"(setenv|unsetenv) (\w+)"),
                               ("lua", r'(setenv|unsetenv)\("(\w+)"')]:
            text = run("env", *SLINGSHOT, "--profile", "lumi-g", "--shell", shell, env=self.WRONG).stdout
            lines = self.commands(text)
            for line in lines:
                self.assertRegex(line, pattern)
            names[shell] = [re.match(pattern, line)[2] for line in lines]
        self.assertGreaterEqual(len(names["sh"]), 8)
        self.assertEqual(names["csh"], names["sh"])
        self.assertEqual(names["lua"], names["sh"])

    def test_env_of_a_healthy_capture_changes_nothing(self):
        self.assertEqual(self.commands(run("env", *SLINGSHOT).stdout), [])

    def test_every_variable_of_the_catalogue_is_captured(self):
        names = [line.split()[0] for line in run("list", "settings").stdout.splitlines()]
        names = [n for n in names if re.fullmatch(r"[A-Z][A-Z0-9_]+", n) and not n.startswith(("CONFIG_", "RLIMIT_", "LD_"))]
        names += ["SLURM_CLUSTER_NAME", "SLURM_JOB_PARTITION", "LMOD_SYSTEM_NAME", "NERSC_HOST", "CLUSTER_NAME", "PBS_O_HOST"]
        self.assertGreater(len(names), 1000)
        capture = self.scratch()
        (capture / ".shakedown").mkdir()
        (capture / ".shakedown" / "hostcalls.json").write_text(json.dumps({"environ": {n: "1" for n in names}}))
        facts = json.loads(run("probe", "--sysroot", capture, "--quick").stdout)["facts"]
        self.assertEqual([n for n in names if "env." + n not in facts], [])

    def test_secrets_do_not_leave(self):
        secret = {"SLURM_JWT": "eyJsecretvalue", "FI_CXI_COLL_MCAST_TOKEN": "987654321012", "NCCL_NOTE_PASSWORD": "pa55wordpa55",
                  "GITHUB_TOKEN": "ghp_0123456789abcdefABCDEF0123456789abcd"}
        folder = self.scratch()
        (folder / "env").write_text("".join(f"{k}={v}\n" for k, v in secret.items()) + "NCCL_DEBUG=WARN\n")
        facts = folder / "facts.json"
        facts.write_text(run("probe", "--quick", env=secret).stdout)
        outputs = [facts.read_text(), run("env", "--quick", env=secret).stdout]
        outputs.append(run("--quick", "--format", "json", env=secret).stdout)
        for form in ("term", "md", "json", "html", "junit", "prom", "line", "github", "gitlab"):
            outputs.append(run("check", facts, "--env", folder / "env", "--format", form).stdout)
        for text in outputs:
            self.assertTrue(text)
            for value in secret.values():
                self.assertNotIn(value, text)


    # Every value holds this word; some of what stands around it is what gives it away.
    WORD = "Made4Up"
    FORMS = {
        "NCCL_X_PW": WORD, "NCCL_X_PASS": WORD, "NCCL_X_AUTH": WORD, "NCCL_X_PASSPHRASE": WORD, "NCCL_X_API_KEY": WORD,
        "NCCL_AUTH_TOKEN": WORD, "nccl_x_pwd": WORD, "NCCL_B": f"Bearer {WORD}", "NCCL_C": f"--password={WORD}",
        "NCCL_D": f"https://h/x?token={WORD}&n=1", "NCCL_E": f"a=1,pw={WORD}", "NCCL_F": f"https://me:{WORD}@host/x",
        "NCCL_G": "AK" + f"IAIOSFODNN{WORD}7EX".upper() + WORD, "NCCL_NET": "gh" + f"p_0123456789abcdef{WORD}0123",
        "NCCL_H": "xo" + f"xb-1234567890-{WORD}", "NCCL_I": f"AccountName=a;AccountKey={WORD}/y==",
        "NCCL_J": f"-----BEGIN PRIVATE KEY-----{WORD}", "NCCL_K": f"proxy=me:{WORD}@proxy.site:3128",
    }

    def test_no_form_of_a_secret_leaves(self):
        """Live, from a file, in a document, a log or on the command line; in every format, with and without names."""
        d = self.scratch()
        (d / "env").write_text("".join(f"{k}={v}\n" for k, v in self.FORMS.items()))
        (d / "facts.json").write_text(json.dumps({"schema": "shakedown.facts/1", "facts": {
            "host.name": "a", "kernel.cmdline": f"ro rd.luks.key={self.WORD} quiet",
            **{f"env.{k}": v for k, v in self.FORMS.items()}}}))
        (d / "log").write_text("".join(f"a:1:1 [0] NCCL INFO {k} set by environment to {v}\n" for k, v in self.FORMS.items()) +
                               f"a:1:1 [0] NCCL WARN NET/Plugin: could not open --password={self.WORD}\n")
        (d / "probed.json").write_text(run("probe", "--quick", env=self.FORMS).stdout)
        outputs = {"probe": (d / "probed.json").read_text()}
        for form in ("term", "md", "json", "html", "junit", "prom"):
            for more in ([], ["--anonymize"], ["-v"]):
                args = [*more, "--format", form, "--log", d / "log", "--env", d / "env"]
                outputs[f"check {form} {more}"] = run("check", d / "facts.json", *args).stdout
        outputs["diagnose"] = run("diagnose", "--log", d / "log", "--env", d / "env", "--facts", d / "facts.json").stdout
        outputs["live"] = run("--quick", "--format", "json", env=self.FORMS).stdout
        outputs["diff"] = run("diff", d / "facts.json", d / "probed.json", "--all").stdout
        message = run("check", d / "facts.json", "--profile", f"pw={self.WORD}")
        outputs["message"] = message.stdout + message.stderr
        for name, text in outputs.items():
            self.assertTrue(text, name)
            self.assertNotIn(self.WORD.lower(), text.lower(), name)

    def test_a_withheld_value_is_not_judged(self):
        """Neither live nor from a document that says [redacted]: not set would be as wrong as a pass."""
        d = self.scratch()
        (d / "old.json").write_text(json.dumps({"schema": "shakedown.facts/1", "facts": {"env.NCCL_NET": "[redacted]"}}))
        for text in (run("probe", "--quick", env=self.FORMS).stdout, run("check", d / "old.json", "--format", "json").stdout):
            doc = json.loads(text)
            fact = (doc.get("facts") or doc["nodes"][0]["facts"])["env.NCCL_NET"]
            self.assertEqual(fact["state"], "failed")
            self.assertTrue(fact["reason"].startswith("withheld: looks like a secret"), fact)
        rows = [f for f in doc["findings"] if f["setting"] == "NCCL_NET"]
        self.assertEqual([f for f in rows if f["verdict"] in ("pass", "note", "warn", "fail")], [])


main()
