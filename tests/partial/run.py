#!/usr/bin/env python3
"""Causes that a few facts or variables name, and their healthy neighbours: run.py PROGRAM [FILE or CAUSE]...
Of healthy nodes, a few facts each: run.py PROGRAM --of NODE.json...

Each file *.yaml beside this program lists causes. A report of one is what a reporter states: `facts` of one node or
`nodes`, a list of them (a value ~ is a fact that is known to be absent), variables (`env`), lines (`log`). The program
must name the cause, or one of `also`, first. `as`: `likely` (or confirmed), `possible` (and no more), or `any`. A block
of `healthy` has the same keys with good values and must not give anything above possible. `skip: WHY`: not tried.
A row may also have the shorter form of one report: `want` (a cause, or a list of those that are as right), `least` and
`most` (the confidence, at first `possible` and `confirmed`), and `healthy`, which must not name any of them either.
--of: of each document, forty times 2 to 14 facts that a seed picks; none may give anything above possible."""
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import yaml

HERE = pathlib.Path(__file__).resolve().parent
SURE = ("likely", "confirmed")


def document(facts):
    """Bare values, as a reporter writes them; ~ is absent."""
    def one(value):
        if value is None:
            return {"state": "absent"}
        bare = isinstance(value, dict) and value.get("state", "present") not in ("present", "absent", "failed")
        return {"state": "present", "value": value} if bare else value
    return json.dumps({"schema": "shakedown.facts/1", "facts": {key: one(value) for key, value in facts.items()}})


def diagnose(program, block):
    """[(key, confidence)] of the causes, or a text: no answer."""
    nodes = block.get("nodes") or ([block["facts"]] if block.get("facts") else [])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [program, "diagnose", "--format", "json"]
        for i, facts in enumerate(nodes):
            (folder / f"facts{i}.json").write_text(document(facts))
            command += ["--facts", str(folder / f"facts{i}.json")]
        if block.get("env"):
            (folder / "env").write_text("".join(f"{k}={v}\n" for k, v in block["env"].items()))
            command += ["--env", str(folder / "env")]
        if block.get("log"):
            (folder / "log").write_text("\n".join(block["log"]) + "\n")
            command += ["--log", str(folder / "log")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    try:
        return [(row["key"], row["confidence"]) for row in json.loads(done.stdout)["diagnoses"]]
    except (ValueError, KeyError):
        return f"no answer, exit code {done.returncode}: {done.stderr.strip()[:300]}"


def judge_report(entry, block, rows):
    """What is wrong with the answer to a report; None: nothing."""
    right = [entry["cause"]] + entry.get("also", []) + block.get("also", [])
    want = block.get("as", entry["as"])
    if not rows or rows[0][0] not in right:
        return f"want {' or '.join(right)}"
    sure = rows[0][1] in SURE
    if want != "any" and sure != (want == "likely"):
        return f"want {want}"
    return None


def judge_healthy(block, rows):
    named = any(sure in SURE or key in block.get("none-of", []) for key, sure in rows)
    return "is healthy" if named else None


def long_form(row):
    """A row of one report as a cause with reports."""
    if "want" not in row:
        return row
    want = row["want"] if isinstance(row["want"], list) else [row["want"]]
    least, most = row.get("least", "possible"), row.get("most", "confirmed")
    sure = "possible" if most == "possible" else "any" if least == "possible" else "likely"
    good = row.get("healthy")
    healthy = [{"nodes": good if isinstance(good, list) else [good], "none-of": want}] if good else []
    return {"cause": want[0], "also": want[1:], "as": sure, "reports": [row], "healthy": healthy}


def blocks(only):
    for path in sorted(HERE.glob("*.yaml")):
        for entry in map(long_form, yaml.safe_load(path.read_text())):
            if only and path.stem not in only and entry["cause"] not in only:
                continue
            for kind in ("reports", "healthy"):
                for i, block in enumerate(entry[kind]):
                    if "skip" not in block:
                        yield f"{path.stem}/{entry['cause']}/{kind}[{i}]", kind, entry, block


def few_of(paths, times=40):
    """Blocks with a few facts of healthy documents; what probes say of themselves is left out."""
    own = ("probe.", "environment.", "collective.")
    for path in map(pathlib.Path, paths):
        facts = json.loads(path.read_text())["facts"]
        keys = sorted(key for key in facts if not key.startswith(own))
        for seed in range(times):
            pick = random.Random(f"{path.name} {seed}")
            some = pick.sample(keys, min(len(keys), pick.randint(2, 14)))
            yield f"{path.name}/{seed}", "healthy", {}, {"facts": {key: facts[key] for key in some}}


def main():
    program, only = os.path.abspath(sys.argv[1]), sys.argv[2:]
    tried = list(few_of(only[1:]) if only[:1] == ["--of"] else blocks(only))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda one: diagnose(program, one[3]), tried)
        for (name, kind, entry, block), rows in zip(tried, answers):
            wrong = rows if isinstance(rows, str) else (
                judge_report(entry, block, rows) if kind == "reports" else judge_healthy(block, rows))
            if wrong:
                failed += 1
                got = [] if isinstance(rows, str) else rows[:4]
                print(f"{name}: {wrong}, got {', '.join(f'{k} ({c})' for k, c in got) or 'nothing'}")
    print(f"{len(tried) - failed} of {len(tried)} right")
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
