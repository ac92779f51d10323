#!/usr/bin/env python3
"""check_schema.py REPORT_SAMPLE SCHEMA_DIR: every JSON report of the unit tests, and the facts in
it, must be valid by the published schemas, and the schemas must refuse what is not a report.

Needs python3-jsonschema; without it the test fails rather than passing unseen."""

import copy
import json
import pathlib
import socket
import subprocess
import sys

import jsonschema


def stay_local(folder):
    """A validator that looks names up must find all of them in the file: ids are URNs, references stay inside."""
    wrong, ids = [], set()

    def walk(node, root, name):
        if isinstance(node, dict):
            ref = node.get("$ref")
            if ref is not None:
                at = root
                for part in ref[2:].split("/"):
                    at = at.get(part) if isinstance(at, dict) else None
                if not ref.startswith("#/") or at is None:
                    wrong.append(f"{name}: $ref {ref}")
            if "$id" in node and node is not root:
                wrong.append(f"{name}: $id inside")
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
            walk(child, root, name)

    for path in sorted(folder.glob("*.schema.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        title, version = path.name.split(".")[0].rsplit("-", 1)
        if schema.get("$id") != f"urn:shakedown:{title}:{version}" or schema["$id"] in ids:
            wrong.append(f"{path.name}: $id is {schema.get('$id')}")
        ids.add(schema.get("$id"))
        walk(schema, schema, path.name)
    return wrong


def no_network(*_, **__):
    raise RuntimeError("the validator asks the network")


def load(folder, name):
    schema = json.loads((folder / name).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def sample(tool, which):
    out = subprocess.run([tool, which, "json"], check=True, capture_output=True, timeout=60)
    return json.loads(out.stdout.decode("utf-8"))


def broken(report):
    """Reports that no longer are any: (what, report)."""
    def change(what, path, value):
        doc = copy.deepcopy(report)
        at = doc
        for key in path[:-1]:
            at = at[key]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = value
        return what, doc

    return [
        change("no summary", ["summary"], None),
        change("other schema", ["schema"], "shakedown.report/1"),
        change("unknown member", ["verdict"], "fail"),
        change("unknown verdict", ["findings", 0, "verdict"], "ok"),
        change("unknown evidence", ["findings", 0, "evidence"], "seen"),
        change("null text", ["findings", 0, "observed"], {}),
        change("count as text", ["summary", "pass"], "5"),
        change("notes not counted", ["summary", "note"], None),
        change("a note as the verdict", ["summary", "verdict"], "note"),
        change("coverage incomplete", ["summary", "coverage", "tested"], None),
        change("no key", ["diagnoses", 0, "key"], None),
        change("size as text", ["collectives", "fabric", "sizes", 0, "bytes"], "4"),
        change("facts without state", ["nodes", 0, "facts", "host.name"], {"value": "x"}),
    ]


def broken_facts(doc):
    for what, fact in [
        ("no state", {"value": 1}),
        ("unknown state", {"state": "ok", "value": 1}),
        ("present without value", {"state": "present"}),
        ("failed with a value", {"state": "failed", "value": 0}),
        ("unknown member", {"state": "absent", "verdict": "pass"}),
    ]:
        changed = copy.deepcopy(doc)
        changed["facts"]["host.os"] = fact
        yield what, changed
    changed = copy.deepcopy(doc)
    changed["facts"]["bad key"] = {"state": "absent"}
    yield "bad key", changed


def saved_report():
    """Of release 0.1: its schema stays in the tree, for those who keep such reports."""
    path = pathlib.Path(__file__).resolve().parent / "facts" / "report-1.json"
    return json.loads(path.read_text(encoding="utf-8"))


def main():
    tool, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    report_schema = load(folder, "report-2.schema.json")
    facts_schema = load(folder, "facts-1.schema.json")
    names = subprocess.run([tool, "list"], check=True, capture_output=True, text=True).stdout
    socket.getaddrinfo = socket.socket.connect = no_network
    wrong = stay_local(folder)
    for which in names.splitlines():
        report = sample(tool, which)
        # A hostile text may stand where a number or a provider belongs: facts are passed on.
        if which not in ("failing", "healthy", "noted", "cluster", "thousand", "empty"):
            report["collectives"] = {}
        wrong += [f"{which}: {e.json_path}: {e.message[:200]}"
                  for e in report_schema.iter_errors(report)]
        for node in report["nodes"]:
            wrong += [f"{which}: facts: {e.json_path}: {e.message[:200]}"
                      for e in facts_schema.iter_errors(node)]
    good = sample(tool, "failing")
    wrong += [f"accepted: {what}" for what, doc in broken(good) if report_schema.is_valid(doc)]
    wrong += [f"accepted facts: {what}" for what, doc in broken_facts(good["nodes"][0])
              if facts_schema.is_valid(doc)]
    wrong += [f"saved report: {e.json_path}: {e.message[:200]}"
              for e in load(folder, "report-1.schema.json").iter_errors(saved_report())]
    print("\n".join(wrong) if wrong else f"{len(names.splitlines())} reports are valid")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
