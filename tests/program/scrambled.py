"""Sentences decide nothing: a program whose every sentence is scrambled (core/text/prose.h) gives the same verdicts, causes,
environments and exit codes.
usage: scrambled.py PROGRAM SCRAMBLED BUILD"""
import json
import pathlib
import subprocess
import sys
import tempfile

PROGRAMS = [str(pathlib.Path(p).resolve()) for p in sys.argv[1:3]]
TESTS = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(sys.argv[3])
NODES = ["aws-p5", "lumi-g"]
ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent"}


def captures():
    return sorted(p.parent for p in (BUILD / "captures").glob("*/.shakedown"))


def document(node, folder):
    """A node of the mutations as a facts document of its own."""
    doc = json.loads((TESTS / f"mutate/nodes/{node}.json").read_text())
    path = pathlib.Path(folder) / f"{node}.json"
    path.write_text(json.dumps({"schema": "shakedown.facts/1", **doc}))
    return path


def run(program, *arguments, env=None):
    p = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                       env={**ENV, **(env or {})}, errors="replace")
    return p.returncode, p.stdout


def verdicts(program, paths):
    p = subprocess.run([sys.executable, str(TESTS / "tools/verdicts"), program, *map(str, paths)], capture_output=True,
                       text=True, timeout=900)
    assert p.returncode == 0, p.stderr
    return p.stdout


# Wrong, misspelled, against each other, and for no library: what `env` mends.
MESS = {"FI_PROVIDER": "efaa", "NCCL_IB_DISABLE": "1", "NCCL_DEBGU": "INFO", "NCCL_NET_GDR_LEVEL": "9",
        "FI_EFA_USE_HUGE_PAGE": "1", "RDMAV_FORK_SAFE": "1", "NCCL_PROTO": "XX"}


def environment(program, profile, shell):
    """What a shell would do with it: comments are for people."""
    code, text = run(program, "env", "--quick", "--profile", profile, "--shell", shell, env=MESS)
    lines = [line for line in text.splitlines() if not line.startswith(("#", "--"))]
    return "\n".join([f"exit {code}", *lines])


def selftest(program):
    code, text = run(program, "selftest", "--quick")
    return f"exit {code}\n" + "\n".join(line for line in text.splitlines() if "found" in line)


def main():
    trees = captures()
    scratch = tempfile.TemporaryDirectory()
    facts = sorted((TESTS / "golden/facts").glob("*.json")) + [document(n, scratch.name) for n in NODES]
    assert len(trees) >= 2 and len(facts) >= 3, (trees, facts)
    _, plain = run(PROGRAMS[0], "check", facts[0])
    _, other = run(PROGRAMS[1], "check", facts[0])
    assert plain != other, "nothing is scrambled"
    failed = 0
    asked = [("verdicts", lambda p: verdicts(p, trees + facts)), ("selftest", selftest)]
    asked += [(f"env of {profile}", lambda p, profile=profile: environment(p, profile, "sh"))
              for profile in ("aws-p5", "lumi-g")]
    for name, ask in asked:
        one, two = (ask(p).splitlines() for p in PROGRAMS)
        assert one, f"{name}: nothing to compare"
        differ = [f"- {a}\n+ {b}" for a, b in zip(one, two) if a != b]
        print(f"{name}: {len(one)} lines, {len(differ)} differ", flush=True)
        if differ or len(one) != len(two):
            print("\n".join(differ[:20]))
            failed += 1
    sys.exit(1 if failed else 0)


main()
