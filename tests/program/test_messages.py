"""tests/tools/messages: extracts messages of a source tree, and counts a signature only for the library that it was made for."""
import subprocess, sys, unittest
from support import BINARY, SOURCE, Case, main, run

NCCL = '''
#define EXAMPLE_UNIT " bytes"
// WARN("in a comment of no use");
int f(void) {
  WARN("Proxy append out of bounds");
  WARN("Bootstrap : no socket interface " "found");
  WARN("frobnicator of %s lost %ld" EXAMPLE_UNIT, name,
       size);
  WARN("%s : %d", a, b);
}
'''


class Messages(Case):
    def tool(self, *args):
        done = subprocess.run([sys.executable, SOURCE / "tests" / "tools" / "messages", "--binary", BINARY, *args],
                              capture_output=True, text=True, timeout=180)
        return done.returncode, done.stdout + done.stderr

    def test_messages_are_counted_and_the_unknown_ones_listed(self):
        tree = self.scratch() / "nccl"
        (tree / "src").mkdir(parents=True)
        (tree / "src" / "f.cc").write_text(NCCL)
        code, text = self.tool("--unsorted", f"nccl={tree}@9.9")
        self.assertEqual(code, 0, text)
        self.assertIn("nccl\t-\tsrc/f.cc:7\tfrobnicator of %s lost %d bytes", text)
        self.assertNotIn("comment", text)
        row = text.splitlines()[-1].split()
        self.assertEqual(row, ["nccl", "9.9", "3", "2", "67", "1", "1", "0", "1"])

    def test_a_folder_that_is_no_library_and_one_without_messages(self):
        empty = self.scratch()
        self.assertEqual(self.tool(f"no-such={empty}")[0], 1)
        self.assertEqual(self.tool(f"nccl={empty}")[0], 1)

    def test_which_signatures_match_which_line(self):
        log = self.scratch() / "log"
        log.write_text("fine\nx NCCL WARN Proxy append out of bounds\nx NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 2\n")
        process = run("list", "signatures", "--log", log)
        self.assertEqual(process.returncode, 0, process.stderr)
        rows = [line.split("\t") for line in process.stdout.splitlines()]
        self.assertIn(["2", "nccl-messages-failed", "nccl", "symptom", "-", "Proxy append out of bounds"], rows)
        self.assertIn("duplicate-gpu", [r[4] for r in rows if r[0] == "3"])
        self.assertEqual(run("list", "rules", "--log", log).returncode, 2)
        self.assertEqual(run("list", "signatures", "--log", log.parent / "none").returncode, 2)

    def test_a_known_symptom_alone_is_said(self):
        log = self.scratch() / "log"
        log.write_text("n1:1:1 [0] x.cc:1 NCCL WARN Proxy append out of bounds\n")
        process = run("diagnose", log)
        self.assertEqual(process.returncode, 3)
        self.assertIn("1 line looks like an error: log:1: n1:1:1 [0] x.cc:1 NCCL WARN Proxy append", " ".join(process.stdout.split()))


main()
