"""shakedown selftest finds every fault that it plants, and says so."""
import re
from support import Case, count, main, run


class Selftest(Case):
    def test_every_planted_fault_is_found(self):
        p = run("selftest", "-v")
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        areas = dict(re.findall(r"(?m)^(\w+) +(\d+) faults, +\2 found$", p.stdout))
        self.assertEqual(set(areas), {"checks", "unread", "isolation", "files", "ranks", "output"}, p.stdout)
        self.assertGreater(int(areas["checks"]), 30)
        self.assertGreater(int(areas["unread"]), 300)
        self.assertNotIn("MISSED", p.stdout)
        for area, faults in areas.items():
            count(f"selftest: {area}", cases=int(faults), survived=int(faults))

    def test_quick_starts_no_ranks(self):
        p = run("selftest", "--quick")
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertNotRegex(p.stdout, r"(?m)^ranks")


main()
