#!/usr/bin/env python3
"""check_formats.py REPORT_SAMPLE SCHEMA_DIR: the JUnit, Prometheus and HTML reports of the unit
tests, the hostile ones included, must be read by parsers that are not ours: Python's XML and HTML
parsers, xmllint with an XSD, the Prometheus client library, and a stricter reader of the Prometheus
text format (version 0.0.4).

Needs xmllint and python3-prometheus-client; without them the test fails rather than passing unseen."""

import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

from prometheus_client.parser import text_string_to_metric_families

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|$)')


def render(tool, which, form):
    out = subprocess.run([tool, which, form], check=True, capture_output=True, timeout=60)
    return out.stdout.decode("utf-8")


def check_junit(text):
    wrong = []
    root = ET.fromstring(text.encode("utf-8"))
    if root.tag != "testsuites":
        wrong.append(f"root is {root.tag}")
    for suite in root:
        cases = suite.findall("testcase")
        counts = {"tests": len(cases), "failures": len(suite.findall("testcase/failure")),
                  "errors": len(suite.findall("testcase/error")),
                  "skipped": len(suite.findall("testcase/skipped"))}
        for name, count in counts.items():
            if suite.get(name) != str(count):
                wrong.append(f"{name} is {suite.get(name)}, there are {count}")
        allowed = {"failure", "error", "skipped", "system-out"}
        for case in cases:
            wrong += [f"<{e.tag}> in a testcase" for e in case if e.tag not in allowed]
            if case.get("name") is None or case.get("classname") is None:
                wrong.append("testcase without a name")
    return wrong


def check_prom(text):
    wrong, seen, types = [], set(), {}
    families = list(text_string_to_metric_families(text))
    samples = sum(len(family.samples) for family in families)
    lines = sum(not line.startswith("#") for line in text.splitlines())
    if samples != lines:
        wrong.append(f"the client library sees {samples} samples in {lines} lines")
    wrong += [f"{f.name} is {f.type}, without help" for f in families if not f.documentation]
    if not text.endswith("\n"):
        wrong.append("no newline at the end")
    for line in text.splitlines():
        if line.startswith("# "):
            _, what, metric, rest = line.split(" ", 3)
            if what == "TYPE":
                if metric in types:
                    wrong.append(f"TYPE twice: {metric}")
                types[metric] = rest
            continue
        match = SAMPLE.match(line)
        if not match:
            wrong.append(f"no sample: {line[:200]}")
            continue
        metric, labels, value = match.groups()
        at = 0
        names = []
        while labels and at < len(labels):
            label = LABEL.match(labels, at)
            if not label:
                wrong.append(f"bad labels: {line[:200]}")
                break
            names.append(label.group(1))
            at = label.end()
        float(value)
        if metric not in types:
            wrong.append(f"no TYPE before {metric}")
        if len(set(names)) != len(names):
            wrong.append(f"label twice: {line[:200]}")
        if (metric, labels) in seen:
            wrong.append(f"series twice: {line[:200]}")
        seen.add((metric, labels))
    return wrong


class Page(html.parser.HTMLParser):
    """Every tag that is opened is closed, in order; no tag or attribute that we do not write."""

    VOID = {"meta", "input"}
    SVG = {"svg", "g", "line", "circle", "polyline", "text"}
    TAGS = VOID | SVG | set(
        "html head title style body header main section footer a h1 h2 h3 h4 p div span strong small i ul li "
        "table thead tbody tr th td code pre details summary label script".split())
    ATTRIBUTES = set(
        "lang scope charset name content http-equiv class style colspan title hidden id type placeholder "
        "href tabindex aria-label aria-hidden role value checked viewbox x y x1 x2 y1 y2 cx cy r points "
        "text-anchor".split())

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.scripts = [], [], 0

    def handle_starttag(self, tag, attrs):
        if tag not in self.TAGS:
            self.wrong.append(f"<{tag}>")
        self.wrong += [f"<{tag} {name}>" for name, _ in attrs if name not in self.ATTRIBUTES]
        self.scripts += tag == "script"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        if tag not in self.SVG:
            self.wrong.append(f"<{tag}/>")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> does not match")

    def handle_comment(self, data):
        self.wrong.append("comment")


def check_html(text):
    page = Page()
    page.feed(text)
    page.close()
    wrong = page.wrong + [f"<{tag}> is open at the end" for tag in page.open]
    if page.scripts != 1:
        wrong.append(f"{page.scripts} scripts")
    return wrong


# What CI servers choke on, and the schema must therefore refuse.
BROKEN_JUNIT = (
    ("a case without a name", "<testcase classname='a' time='0'/>"),
    ("two outcomes", "<testcase classname='a' name='b' time='0'><skipped message=''/>"
                     "<failure type='fail' message=''/></testcase>"),
    ("unknown outcome", "<testcase classname='a' name='b' time='0'><warning/></testcase>"),
    ("no number", "<testcase classname='a' name='b' time='soon'/>"),
    ("text between cases", "here"),
)


def check_xsd(schema, reports):
    """Every report against the XSD at once, and that the XSD refuses what is broken."""
    frame = ("<testsuites name='x' time='0'><testsuite name='s' hostname='h' tests='1' failures='0' "
             "errors='0' skipped='0' time='0'>{}</testsuite></testsuites>")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for i, text in enumerate(reports):
            (folder / f"good{i}.xml").write_text(text, encoding="utf-8")
        for i, (_, inside) in enumerate(BROKEN_JUNIT):
            (folder / f"bad{i}.xml").write_text(frame.format(inside), encoding="utf-8")
        lint = ["xmllint", "--noout", "--schema", str(schema)]
        good = subprocess.run(lint + [str(f) for f in folder.glob("good*")], capture_output=True,
                              text=True, timeout=120, check=False)
        wrong = [] if good.returncode == 0 else [line for line in good.stderr.splitlines()
                                                 if not line.endswith("validates")]
        for i, (what, _) in enumerate(BROKEN_JUNIT):
            bad = subprocess.run(lint + [str(folder / f"bad{i}.xml")], capture_output=True,
                                 timeout=60, check=False)
            if bad.returncode != 3:  # the document does not fit the schema
                wrong.append(f"XSD accepts: {what}")
    return wrong


def check_github(text):
    """As the runner reads it: a line is a command with a level, properties and data, or it is shown as it is."""
    command = re.compile(r"::(error|warning|notice) title=([^:,\r\n]*)::(.*)")
    lines = text.split("\n")
    wrong = [f"no command: {line[:200]}" for line in lines[:-1] if not command.fullmatch(line)]
    levels = [line.split(" ")[0] for line in lines]
    wrong += [f"{levels.count(level)} of {level}" for level in ("::error", "::warning") if levels.count(level) > 10]
    wrong += [f"no escape: {at}" for line in lines for at in re.findall("%(?!25|0D|0A|3A|2C).?.?", line)]
    return wrong + (["no newline at the end"] if lines[-1] else [])


def check_gitlab(text):
    issues = json.loads(text)
    wrong = [f"lacks a member: {issue}" for issue in issues if not isinstance(issue["description"], str) or
             issue["severity"] not in ("info", "minor", "major", "critical", "blocker") or
             not isinstance(issue["check_name"], str) or issue["location"]["lines"]["begin"] < 1 or
             issue["location"]["path"].startswith(("/", "./"))]
    prints = [issue["fingerprint"] for issue in issues]
    return wrong + (["a fingerprint twice"] if len(set(prints)) < len(prints) else [])


CHECKS = (("junit", check_junit), ("prom", check_prom), ("html", check_html), ("github", check_github),
          ("gitlab", check_gitlab))


def main():
    tool = sys.argv[1]
    names = subprocess.run([tool, "list"], check=True, capture_output=True, text=True).stdout
    wrong, junit = [], []
    for which in names.splitlines():
        for form, check in CHECKS:
            try:
                text = render(tool, which, form)
                found = check(text)
                junit += [text] if form == "junit" else []
            except (ET.ParseError, ValueError, KeyError) as error:
                found = [str(error)]
            wrong += [f"{which} {form}: {line}" for line in found]
    wrong += check_xsd(pathlib.Path(sys.argv[2]) / "junit.xsd", junit)
    print("\n".join(wrong) if wrong else f"{len(CHECKS) * len(names.splitlines())} reports are well formed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
