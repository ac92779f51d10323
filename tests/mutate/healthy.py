"""healthy.py MUTATE SHAKEDOWN NODE.json...: the healthy nodes are green. Rows that warn, fail or are unknown, and notes,
are those listed here, each for a reason."""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

# A laptop's GPU whose address NVML and the bus spell the same, but whose windows the document does not hold.
EXPECTED = {("laptop", "gpu.bar", "gpu-bar1-size", "unknown")}


def causes(program, facts):
    """What diagnose is surer of than possible."""
    document = json.dumps({"schema": "shakedown.facts/1", "facts": facts}).encode()
    answer = subprocess.run([program, "diagnose", "--facts", "-", "--format", "json"], input=document, capture_output=True)
    return [row["key"] for row in json.loads(answer.stdout)["diagnoses"] if row["confidence"] != "possible"]


def with_logs(program, name, facts, logs):
    """What diagnose is surer of than possible when a healthy log of another place comes with the node."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"schema": "shakedown.facts/1", "facts": facts}, file)
        file.flush()
        for log in random.Random(name).sample(logs, 10):
            command = [program, "diagnose", "--facts", file.name, "--log", log, "--format", "json"]
            answer = subprocess.run(command, capture_output=True)
            for row in json.loads(answer.stdout)["diagnoses"]:
                if row["confidence"] != "possible":
                    yield f"{log.name}: {row['key']}"


def parts(name, facts):
    """The whole, and parts of it as a report holds them."""
    yield "whole", facts
    pick = random.Random(name)
    for i in range(20):
        share = 0.1 + 0.04 * i
        kept = {key: value for key, value in facts.items() if pick.random() < share}
        # device nodes are listed by what is there: all of them, or none was looked for
        kept = {key: value for key, value in kept.items() if not key.startswith("dev.")}
        if pick.random() < share:
            kept.update({key: value for key, value in facts.items() if key.startswith("dev.")})
        kept.pop("probe.env.status", None)  # an environment of which a part is left out was not read
        yield f"part {i}", kept


def main():
    mutate, program, *nodes = sys.argv[1:]
    wrong, seen = [], set()
    logs = sorted((pathlib.Path(__file__).resolve().parents[1] / "logs" / "healthy").glob("*.log"))
    for node in nodes:
        name = node.rsplit("/", 1)[-1].removesuffix(".json")
        document = subprocess.run([mutate, "--list", node], check=True, capture_output=True).stdout
        answer = subprocess.run([program, "check", "-", "--format", "json"], input=document, capture_output=True)
        report = json.loads(answer.stdout)
        rows = report["findings"]
        whole = json.loads(document)["facts"]
        wrong += [f"{name} with {what}" for what in with_logs(program, name, whole, logs)]
        for part, facts in parts(name, whole):
            wrong += [f"{name}, {part}: diagnose says {key}" for key in causes(program, facts)]
        if answer.returncode or report["summary"]["verdict"] != "pass":
            wrong.append(f"{name}: {report['summary']['verdict']}, exit {answer.returncode}")
        if sum(row["verdict"] == "pass" for row in rows) < 8:
            wrong.append(f"{name}: hardly anything passes")
        for row in rows:
            key = (name, row["id"], row["setting"], row["verdict"])
            if row["verdict"] in ("pass", "na"):
                continue
            seen.add(key)
            if key not in EXPECTED:
                wrong.append(f"{key}: {row.get('observed')}; {row.get('why')}")
    wrong += [f"no longer so: {key}" for key in EXPECTED - seen]
    print("\n".join(wrong) or f"{len(nodes)} healthy nodes")
    return bool(wrong)


sys.exit(main())
