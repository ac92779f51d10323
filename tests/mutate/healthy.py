"""healthy.py MUTATE SHAKEDOWN NODE.json...: the healthy nodes are green. Rows that warn, fail or are unknown, and notes,
are those listed here, each for a reason."""
import json
import subprocess
import sys

# A laptop's GPU whose address NVML and the bus spell the same, but whose windows the document does not hold.
EXPECTED = {("laptop", "gpu.bar", "gpu-bar1-size", "unknown")}


def main():
    mutate, program, *nodes = sys.argv[1:]
    wrong, seen = [], set()
    for node in nodes:
        name = node.rsplit("/", 1)[-1].removesuffix(".json")
        document = subprocess.run([mutate, "--list", node], check=True, capture_output=True).stdout
        answer = subprocess.run([program, "check", "-", "--format", "json"], input=document, capture_output=True)
        report = json.loads(answer.stdout)
        rows = report["findings"]
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
