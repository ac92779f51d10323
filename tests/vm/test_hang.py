"""shakedown hang under Yama, which a kernel of its own can be set to: what root and the owner of a process may see of it at
each kernel.yama.ptrace_scope, and what is said of the rest. Usage: test_hang.py BINARY SOURCE"""
import json, pathlib, sys, unittest

from machine import Machine, skip_if_missing

BINARY = pathlib.Path(sys.argv[1]).resolve()
USER = "setpriv --reuid 1000 --regid 1000 --clear-groups"
# who, scope: are the stacks seen, and what is said
STATES = [("", 0, True, None), (USER, 0, True, None),
          ("", 1, True, None), (USER, 1, False, "ptrace_scope is 1: a user may not"),
          ("", 2, True, None), (USER, 2, False, "ptrace_scope is 2: only root"),
          ("", 3, False, "ptrace_scope is 3: nobody"), (USER, 3, False, "ptrace_scope is 3: nobody")]


class Yama(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.machine = Machine()
        cls.addClassCleanup(cls.machine.close)
        cls.machine.sh(f"cp {BINARY} /tmp/shakedown; chmod 755 /tmp /tmp/shakedown; {USER} sleep 3600 </dev/null >/dev/null 2>&1 & "
                       "echo $! >/tmp/pid")

    def test_scopes(self):
        """In the order of the list: a scope of 3 stays."""
        for who, scope, seen, said in STATES:
            with self.subTest(who=who or "root", scope=scope):
                out = self.machine.sh(f"sysctl -qw kernel.yama.ptrace_scope={scope} || true\n"
                                      f"{who} /tmp/shakedown hang --pid $(cat /tmp/pid) --interval 1 --format json || true")
                doc = json.loads(out)
                (rank,) = doc["nodes"][0]["ranks"]
                unknown = " ".join(doc["judgement"]["unknown"])
                self.assertEqual((doc["judgement"]["outcome"], doc["judgement"]["named"]), ("undecided", []))
                self.assertEqual(bool(rank["threads"][0].get("frames")), seen, unknown)
                self.assertEqual("ptrace_scope" in unknown, said is not None, unknown)
                self.assertIn(said or "", unknown)
                self.assertEqual("not permitted to look into it" in unknown, not seen, unknown)


if __name__ == "__main__":
    skip_if_missing()
    unittest.main(argv=[sys.argv[0]], verbosity=2)
