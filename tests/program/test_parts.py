"""Lines that no signature was written for: an object and an error in the wording of any program, and what comes of them.
usage: test_parts.py BINARY SOURCE"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
PARTS = SOURCE / "tests" / "logs" / "parts"


def diagnose(text, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
        log.write(text + "\n")
        log.flush()
        said = subprocess.run([BINARY, "diagnose", "--format", "json", "--log", log.name, *options], capture_output=True, text=True)
    assert said.stdout, said.stderr
    return [(row["key"], row["confidence"]) for row in json.loads(said.stdout)["diagnoses"]]


def lines_of(name):
    return [line for line in (PARTS / name).read_text().splitlines() if line and not line.startswith("#")]


class Parts(unittest.TestCase):
    def check_file(self, name, least):
        right = []
        for line in lines_of(name):
            want, text = line.split("\t", 1)
            causes = diagnose(text)
            right.append(bool(causes) and causes[0][0] in want.split("|"))
            with self.subTest(line=text, got=causes[:3]):
                self.assertTrue(causes)
                self.assertNotEqual(causes[0][1], "confirmed")
        print(f"{name}: {sum(right)} of {len(right)}")
        self.assertGreaterEqual(sum(right), least)

    def test_lines_written_before_there_were_rules(self):
        self.check_file("lines.txt", 158)

    def test_lines_written_after_the_rules(self):
        self.check_file("second.txt", 71)

    def test_lines_that_tell_of_no_error(self):
        for line in lines_of("nothing.txt"):
            with self.subTest(line=line):
                self.assertEqual(diagnose(line), [])

    def test_a_signature_takes_every_spelling_of_its_error(self):
        for text in ("Too many open files", "too many open files", "EMFILE", "errno 24", "[Errno 24]", "os error 24", "errno=24",
                     "ret = -24", "No file descriptors available"):
            with self.subTest(text=text):
                self.assertEqual(diagnose(f"x: {text}")[:1], [("nofile-too-low", "likely")])
        for text in ("24", "x 24", "exit code 24", "status 24", "EMFILES", "FOO_EMFILE", "errno 240"):
            with self.subTest(text=text):
                self.assertEqual(diagnose(f"x: {text}"), [])

    def test_what_a_line_is_made_of_is_a_guess_below_what_is_known(self):
        guess = diagnose("open /dev/hfi1_0: EACCES")
        self.assertEqual(guess[0], ("device-node-unusable", "possible"))
        sure = diagnose("open /dev/hfi1_0: EACCES\nx: Too many open files")
        self.assertEqual(sure[0], ("nofile-too-low", "likely"))

    def test_general_words_yield_to_what_the_line_names(self):
        self.assertEqual(diagnose("PermissionError: [Errno 13] Permission denied: '/data/out/x'")[0][0], "folder-not-writable")
        self.assertEqual(diagnose("PermissionError: [Errno 13] Permission denied: '/dev/infiniband/uverbs0'")[0][0],
                         "rdma-device-no-permission")

    def test_a_site_adds_an_object_and_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            site = pathlib.Path(folder)
            for name, text in (("objects", "- {key: acme-gate, pattern: 'acme-gate', is: the gate, source: handbook}\n"),
                               ("errors", "- {name: gate-shut, words: 'is shut', source: handbook}\n"),
                               ("signatures", "- {id: acme-shut, library: system, object: acme-gate, errors: [gate-shut, EACCES], role: guess, "
                                              "diagnosis: license-unavailable, weight: 20, meaning: shut, source: handbook}\n")):
                (site / name).mkdir()
                (site / name / "site.yaml").write_text(text)
            for line in ("error: the acme-gate is shut", "is shut, cannot go on: acme-gate", "acme-gate: errno 13"):
                with self.subTest(line=line):
                    self.assertEqual(diagnose(line, "--config", folder)[:1], [("license-unavailable", "possible")])
            self.assertNotIn("license-unavailable", dict(diagnose("acme-gate: failed: EIO", "--config", folder)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
