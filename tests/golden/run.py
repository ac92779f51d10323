#!/usr/bin/env python3
"""run.py SHAKEDOWN CASE_DIR: runs one golden case in every format that it has and compares.

A case is a folder with case.toml:
    why     = "what this case is for"
    args    = ["--sysroot", "captures/slingshot-amd"]   # run where captures/ and golden/ are, so paths are the same anywhere
    env     = {NAME = "value"}                          # on top of an almost empty environment
    exit    = 1
    formats = ["term", "md", "json"]                    # default
and one expected.<format> for each. Run times and the version are replaced on both sides; the facts
of the nodes are left out of the JSON, they have tests of their own. SHAKEDOWN_BLESS=1 writes the
expected files instead: read the difference in git before you commit it."""

import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

TESTS = pathlib.Path(__file__).resolve().parent.parent

TEXT = {
    "term": [(re.compile(r"(?m)(?<=[·-] )\d+\.\d s$"), "T s")],
    "md": [(re.compile(r"(?m)(?<=; )\d+\.\d s$"), "T s"),
           (re.compile(r"(?m)^shakedown \d+\.\d+\.\d+$"), "shakedown @version@")],
    "html": [(re.compile(r"(?<=; )\d+\.\d s(?=</p>)"), "T s"),
             (re.compile(r"<p>shakedown \d+\.\d+\.\d+</p>"), "<p>shakedown @version@</p>"),
             (re.compile(r"(?s)<style>.*?</style>"), ""), (re.compile(r"(?s)<script>.*?</script>"), "")],
    "junit": [(re.compile(r' time="\d+\.\d+"'), ' time="T"'),
              (re.compile(r'(?<=name="version" value=")[^"]*'), "@version@")],
    "prom": [(re.compile(r'(?<=version=")[^"]*'), "@version@"),
             (re.compile(r"(?m)^(shakedown_run_seconds) .*$"), r"\1 T")],
}


def normal_json(text):
    doc = json.loads(text)
    for key in ("elapsed_s", "version"):
        if key in doc:
            doc[key] = "@" + key + "@"
    for node in doc["nodes"]:
        node["facts"] = {}
    return json.dumps(doc, indent=2, ensure_ascii=False) + "\n"


def normal(text, form):
    if form == "json":
        return normal_json(text)
    for pattern, by in TEXT[form]:
        text = pattern.sub(by, text)
    return text


def run(tool, case, form, here):
    env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **case.get("env", {})}
    for name, value in os.environ.items():
        if name.startswith(("ASAN_", "LSAN_", "UBSAN_")):
            env[name] = value
    done = subprocess.run(["shakedown"] + case["args"] + ["--format", form], executable=tool,
                          cwd=here, env=env, capture_output=True, timeout=120,
                          stdin=subprocess.DEVNULL, check=False)
    wrong = []
    if done.returncode != case.get("exit", 0):
        wrong.append(f"exit status {done.returncode}, not {case.get('exit', 0)}")
    if done.stderr:
        wrong.append("stderr is not empty:\n" + done.stderr.decode("utf-8", "replace"))
    return done.stdout.decode("utf-8"), wrong


def compare(case_dir, form, text):
    expected = case_dir / f"expected.{form}"
    if os.environ.get("SHAKEDOWN_BLESS") == "1":
        expected.write_text(text, encoding="utf-8")
        return []
    if not expected.exists():
        return [f"{expected} is missing; SHAKEDOWN_BLESS=1 writes it"]
    want = expected.read_text(encoding="utf-8")
    if want == text:
        return []
    return ["".join(difflib.unified_diff(want.splitlines(True), text.splitlines(True),
                                         f"expected.{form}", "now"))]


def main():
    tool, case_dir = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    case = tomllib.loads((case_dir / "case.toml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="shk-golden-") as here:
        os.symlink(tool.parent / "captures", pathlib.Path(here, "captures"))
        os.symlink(TESTS / "golden", pathlib.Path(here, "golden"))
        return formats(tool, case_dir, case, here)


def formats(tool, case_dir, case, here):
    failed = False
    for form in case.get("formats", ["term", "md", "json"]):
        text, wrong = run(tool, case, form, here)
        if not wrong:
            wrong = compare(case_dir, form, normal(text, form))
        for line in wrong:
            print(f"{case_dir.name} {form}: {line}")
        failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
