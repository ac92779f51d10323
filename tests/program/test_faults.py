"""A vendor library that crashes, hangs or exits is a finding; the report is written all the same."""
import os, time
from support import FAKES, Case, left_behind, main, own_shm, run

# fake library -> what the report must say of it
FAULTS = {
    "fabric_segv": r"SIGSEGV",
    "fabric_getinfo_segv": r"SIGSEGV.*fi_getinfo|fi_getinfo.*SIGSEGV",
    "fabric_getinfo_abort": r"SIGABRT.*fi_getinfo|fi_getinfo.*SIGABRT",
    "fabric_getinfo_exit": r"exit.*fi_getinfo|fi_getinfo.*exit",
    "fabric_getinfo_hang": r"fi_getinfo",
    "fabric_getinfo_memory": r"fi_getinfo",
    "fabric_no_symbol": r"fi_dupinfo",
}


class Faults(Case):
    def broken(self, fake, *args):
        start = time.monotonic()
        p = run(*args, "--format", "json", "--timeout", "6", "--sizes", "4:64",
                env={"LD_LIBRARY_PATH": str(FAKES / fake)})
        return p, self.json_of(p), time.monotonic() - start

    def test_probe_survives_and_names_library_and_call(self):
        for fake, says in FAULTS.items():
            with self.subTest(fake):
                p, report, took = self.broken(fake, "run", "--quick")
                self.assertIn(p.returncode, (0, 1), p.stderr)
                self.assertLess(took, 15)
                rows = [f for f in report["findings"]
                        if f["verdict"] in ("fail", "unknown") and "libfabric" in str(f)]
                self.assertTrue(rows, "no row says that libfabric is broken")
                text = " ".join(f"{f.get('observed')} {f.get('why')}" for f in rows)
                self.assertRegex(text, says)
                self.assertIn(fake, text)

    def test_collective_survives(self):
        for fake in ("fabric_getinfo_segv", "fabric_getinfo_abort", "fabric_getinfo_exit", "fabric_getinfo_hang"):
            with self.subTest(fake):
                p, report, took = self.broken(fake, "bench")
                self.assertEqual(p.returncode, 1, p.stderr)
                self.assertLess(took, 20)
                row = self.finding(report, "all-reduce (fabric)", "fail")
                self.assertRegex(f"{row.get('observed')} {row.get('why')}", "rank 0|rank 1|fi_getinfo")

    def test_nothing_is_left_behind(self):
        before = own_shm()
        self.broken("fabric_getinfo_segv", "bench")
        self.assertEqual(left_behind(before), set())


main()
