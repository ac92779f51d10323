#!/usr/bin/env python3
"""What `diagnose` makes of the few facts that a reporter states. usage: run.py SHAKEDOWN [FILE.yaml]...
tests/README.md says what a row has. Ends with 1 when a row fails."""
import concurrent.futures, json, pathlib, subprocess, sys, tempfile, yaml

HERE = pathlib.Path(__file__).resolve().parent
SURE = {None: 0, "possible": 1, "likely": 2, "confirmed": 3}


def diagnose(nodes, log=None, env=None):
    """The causes with their confidence, the first one first."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [sys.argv[1], "diagnose", "--format", "json"]
        if log:
            (folder / "log").write_text("\n".join(log) + "\n")
            command += ["--log", folder / "log"]
        if env:
            (folder / "env").write_text("".join(f"{k}={v}\n" for k, v in env.items()))
            command += ["--env", folder / "env"]
        for i, facts in enumerate(nodes):
            (folder / f"{i}.json").write_text(json.dumps({"schema": "shakedown.facts/1", "facts": facts}))
            command += ["--facts", folder / f"{i}.json"]
        r = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if not r.stdout:
            return [(f"no answer: {r.stderr.strip()}", "confirmed")]
        return [(d["key"], d["confidence"]) for d in json.loads(r.stdout)["diagnoses"]]


def listed(value):
    return value if isinstance(value, list) else [value]


def judge(row):
    """What is wrong with the answers to a row."""
    wanted, wrong = listed(row["want"]), []
    nodes = row["nodes"] if "nodes" in row else [row["facts"]]
    got = diagnose(nodes, row.get("log"), row.get("env"))
    if not got or got[0][0] not in wanted:
        wrong.append(f"not first, got {got[:4]}")
    elif SURE[got[0][1]] < SURE[row.get("least")]:
        wrong.append(f"only {got[0][1]}")
    elif SURE[got[0][1]] > SURE[row.get("most", "confirmed")]:
        wrong.append(f"too sure: {got[0][1]}")
    good = diagnose(listed(row["healthy"]))
    if any(SURE[sure] > 1 for _, sure in good) or any(key in wanted for key, _ in good):
        wrong.append(f"healthy facts give {good[:4]}")
    return wrong


def main():
    files = [pathlib.Path(a) for a in sys.argv[2:]] or sorted(HERE.glob("*.yaml"))
    rows = [(f.name, n, row) for f in files
            for n, row in enumerate(yaml.load(f.read_text(), Loader=yaml.CSafeLoader), 1)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda r: judge(r[2]), rows))
    bad = 0
    for (name, n, row), wrong in zip(rows, answers):
        for text in wrong:
            bad += 1
            print(f"{name}: row {n}, {row['want']}: {text}")
            print(f"    {json.dumps(row.get('facts') or row.get('nodes'))[:220]} {row.get('log', '')}")
    print(f"{len(rows)} rows, {sum(bool(w) for w in answers)} wrong")
    return 1 if bad or not rows else 0


sys.exit(main())
