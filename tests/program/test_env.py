"""The environment audit from the outside: captures, misspellings, and what to export instead."""
import subprocess
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

    def test_env_lines_can_be_sourced(self):
        env = {"NCCL_SOCKET_IFNAME": "eth0", "RCCL_ENABLE_OFI": "1"}
        text = run("env", *SLINGSHOT, "--profile", "lumi-g", env=env).stdout
        self.assertIn('export NCCL_SOCKET_IFNAME="hsn', text)
        self.assertIn("unset RCCL_ENABLE_OFI", text)
        shell = subprocess.run(["sh", "-euc", text + '\nprintf %s "$NCCL_SOCKET_IFNAME:${RCCL_ENABLE_OFI-gone}"'],
                               capture_output=True, text=True, env={**env, "USER": "u", "SLURM_JOB_ID": "1"})
        self.assertTrue(shell.stdout.startswith("hsn") and shell.stdout.endswith(":gone"), shell.stderr)
        self.assertIn("setenv NCCL_SOCKET_IFNAME", run("env", *SLINGSHOT, "--shell", "csh", env=env).stdout)
        self.assertIn('setenv("NCCL_SOCKET_IFNAME"', run("env", *SLINGSHOT, "--shell", "lua", env=env).stdout)


main()
