#!/usr/bin/env python3
"""manpage.py SHAKEDOWN TEMPLATE PAGE [EMULATOR...]: the manual page, its tables from the program's own help."""

import os
import pathlib
import re
import subprocess
import sys


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def help_of(tool, *words):
    return subprocess.run([*tool, *words, "--help"], check=True, capture_output=True, text=True,
                          timeout=60, env={**os.environ, "COLUMNS": "1000"}).stdout


def options(text):
    """{long name: (letter or None, argument or None, description)}"""
    found = {}
    pattern = r"(?m)^  (?:-(.),|   ) --([a-z-]+)(?: (\S+))?  +(.*)$"
    for letter, name, arg, doc in re.findall(pattern, text):
        found[name] = (letter, arg, doc)
    return found


def commands(tool):
    text = help_of(tool).split("Examples:")[0]
    return re.findall(r"(?m)^  ([a-z]+) +(\S(?:[^ \n]| (?! ))*)?  +(\S.*)$", text)


def part_commands(tool):
    lines = []
    for name, arguments, doc in commands(tool):
        own = [o for o in options(help_of(tool, name)) if o not in ("help", "version")]
        lines += [".TP", f".B {roff(name)}" if not arguments else f".BI {roff(name)} \" {roff(arguments)}\"",
                  roff(doc[0].upper() + doc[1:]) + "."]
        if own:
            lines.append("Options: " + ", ".join(roff("--" + o) for o in own) + ".")
    return lines


def part_options(tool):
    everything = {}
    for name, _, _ in commands(tool):
        everything.update(options(help_of(tool, name)))
    lines = []
    for name in sorted(everything):
        letter, arg, doc = everything[name]
        head = (f"\\-{letter}, " if letter else "") + roff("--" + name)
        lines += [".TP", f".BI \"{head}\" \" {roff(arg)}\"" if arg else f".B \"{head}\"",
                  roff(doc[0].upper() + doc[1:])]
    return lines


def part_exit(tool):
    text = re.search(r"(?s)Exit: (.*)\.\n", help_of(tool)).group(1)
    lines = []
    for entry in re.split(r",\s+(?=\d )", text):
        code, meaning = entry.split(" ", 1)
        lines += [".TP", f".B {code}", roff(" ".join(meaning.split()))]
    return lines


PARTS = {"commands": part_commands, "options": part_options, "exit": part_exit}


def main():
    tool, template, page = [*sys.argv[4:], sys.argv[1]], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    text = template.read_text(encoding="utf-8")
    for name, part in PARTS.items():
        if text.count(f"@{name}@\n") != 1:
            print(f"{template}: @{name}@ is there {text.count(name)} times")
            return 1
        text = text.replace(f"@{name}@\n", "\n".join(part(tool)) + "\n")
    page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
