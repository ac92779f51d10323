#!/usr/bin/env python3
"""screens.py SHAKEDOWN MUTATE: the first screen at 60, 80, 100 and 160 columns, from fixed facts, against screens/NAME.COLUMNS.txt;
and at 80 columns the budget of lines of these and of every node of the mutations, healthy and with three faults; the
ticket's visible part; every FAIL in a cause and every fix whole on the screen. SHAKEDOWN_BLESS=1 writes the files."""
import copy, json, os, pathlib, re, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
NODES = sorted((HERE.parent / "mutate/nodes").glob("*.json"))
WIDTHS = (60, 80, 100, 160)
LOG = """gpu-1:100:100 [0] NCCL INFO NCCL version 2.18.5+cuda12.2
gpu-1:100:100 [0] NCCL INFO Bootstrap : Using docker0:172.17.0.1<0>
gpu-1:100:100 [0] NCCL INFO NET/Socket : Using [0]docker0:172.17.0.1<0>
gpu-1:100:100 [0] NCCL INFO Using network Socket
gpu-2:101:101 [1] misc/socket.cc:538 NCCL WARN socketStartConnect: Connect to 172.17.0.1<43231> failed : Connection refused
"""
HANG = """[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15173, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.
[rank7]:[E ProcessGroupNCCL.cpp:616] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15172, OpType=ALLGATHER, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 600009 milliseconds before timing out.
"""


def put(facts, key, value):
    facts[key] = {"state": "present", "source": "test", "value": value}


def break_three(facts, host="nid005012"):
    put(facts, "host.name", host)
    put(facts, "limits.memlock", {"soft": 65536, "hard": 65536})
    devices = copy.deepcopy(facts["cxi.devices"]["value"])
    devices[2]["link_state"] = "down"
    put(facts, "cxi.devices", devices)
    put(facts, "env.NCCL_SOCKET_IFNAME", "hsn0,hsn1,hsn2,hns3")


def break_any(facts):
    """Three faults that any kind of node can have: a limit, a device and a misspelt name."""
    put(facts, "limits.memlock", {"soft": 65536, "hard": 65536})
    put(facts, "env.NCCL_SOCKET_IFNAME", "hns3")
    for key, member in (("cxi.devices", "link_state"), ("rdma.devices", "ports")):
        devices = copy.deepcopy(facts.get(key, {}).get("value"))
        if devices:
            devices[-1][member] = "down" if member == "link_state" else [{**p, "state": "DOWN"} for p in devices[-1]["ports"]]
            put(facts, key, devices)
    put(facts, "shm.size", 64 << 20)


def sizes(rows):
    return [{"bytes": b, "count": b // 4, "type": "float32", "redop": "sum", "algorithm": "a", "time_us": t, "algbw": w,
             "busbw": w, "wrong": 0} for b, t, w in rows]


def measured_fabric(facts):
    """A transport that ends with another size than the GPUs: the columns are those that most have."""
    put(facts, "collective.fabric.status", "ok")
    put(facts, "collective.fabric.ranks", 8)
    put(facts, "collective.fabric.provider", "verbs;ofi_rxm")
    put(facts, "collective.fabric.sizes", sizes([(4, 7.94, 0.0005), (1 << 20, 357, 2.94), (8 << 20, 3164, 2.65), (16 << 20, 6959, 2.41)]))


def measured(facts):
    put(facts, "clock.time", "2026-11-28T18:49:07Z")
    for name, scale in (("peer", 1.0), ("nccl", 0.8)):
        put(facts, f"collective.{name}.status", "ok")
        put(facts, f"collective.{name}.ranks", 8)
        put(facts, f"collective.{name}.sizes", sizes([(4, 5.07 / scale, 0.0014), (1 << 20, 11.8 / scale, 88.6 * scale),
                                                      (8 << 20, 32 / scale, 261.5 * scale), (256 << 20, 745 / scale, 360.1 * scale)]))


def thousand(folder, doc):
    for i in range(1000):
        node = copy.copy(doc["facts"])
        put(node, "host.name", f"nid{5000 + i:06d}")
        if i in (17, 480, 481, 482):
            put(node, "limits.memlock", {"soft": 65536, "hard": 65536})
        if i == 901:
            put(node, "env.NCCL_SOCKET_IFNAME", "hsn0,hsn1,hsn2,hns3")
        if 700 <= i < 708:
            put(node, "host.kernel", "5.14.21-150400.24.55.31")
        (folder / f"{i:04d}.json").write_text(json.dumps({**doc, "facts": node}))


def scattered(folder, doc):
    """Every other node fails: names that do not fold are told once, with their cause."""
    for i in range(240):
        node = copy.copy(doc["facts"])
        put(node, "host.name", f"nid{5000 + i:06d}")
        if i % 2:
            put(node, "limits.memlock", {"soft": 65536, "hard": 65536})
        (folder / f"{i:04d}.json").write_text(json.dumps({**doc, "facts": node}))


def screen(tool, args, width):
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "COLUMNS": str(width)}
    done = subprocess.run([tool, *map(str, args)], env=env, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def main():
    tool, mutate = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    docs = {n.stem: json.loads(subprocess.run([mutate, "--list", n], check=True, capture_output=True).stdout) for n in NODES}
    wrong = []
    with tempfile.TemporaryDirectory(prefix="shk-screens-") as where:
        here = pathlib.Path(where)
        os.chdir(here)
        healthy, three = copy.deepcopy(docs["dgx-h100"]), copy.deepcopy(docs["lumi-g"])
        measured(healthy["facts"])
        measured_fabric(healthy["facts"])
        break_three(three["facts"])
        for name, doc in (("healthy", healthy), ("three", three)):
            (here / f"{name}.json").write_text(json.dumps(doc))
        (here / "thousand").mkdir()
        thousand(here / "thousand", docs["lumi-g"])
        (here / "log").write_text(LOG)
        (here / "log-hang").write_text(HANG)
        cases = {"healthy": (["check", "healthy.json"], 30), "three-causes": (["check", "three.json"], 45),
                 "thousand": (["check", "thousand"], 45), "log": (["diagnose", "log"], 30), "log-hang": (["diagnose", "log-hang"], 30),
                 "hang": (["hang", HERE / "screens/hang.json"], 30)}
        for name, (args, budget) in cases.items():
            for width in WIDTHS:
                wrong += compare(name, width, screen(tool, args, width), budget)
        for name in ("nid005901", "nid[005017,005480-005482]", "5 of 1000 nodes fail, 8 more warn"):
            if name not in screen(tool, cases["thousand"][0], 80):
                wrong.append(f"thousand: {name} is not on the screen")
        (here / "scattered").mkdir()
        scattered(here / "scattered", docs["lumi-g"])
        text = screen(tool, ["check", "scattered"], 80)
        wrong += budget_of("scattered", text, 45) + broken(tool, "scattered", "scattered")
        if re.sub(r"\n +", "", text).count(",".join(f"{5001 + i:06d}" for i in range(0, 240, 2))) != 1:
            wrong.append(f"scattered: the names of the cause are not there once:\n{text}")
        for name, doc in docs.items():
            (here / "node.json").write_text(json.dumps(doc))
            wrong += budget_of(f"{name}, healthy", screen(tool, ["check", "node.json"], 80), 30)
            wrong += ticket(tool, f"{name}, healthy", "node.json")
            sick = copy.deepcopy(doc)
            measured(sick["facts"])
            break_any(sick["facts"])
            (here / "sick.json").write_text(json.dumps(sick))
            wrong += broken(tool, f"{name}, broken", "sick.json") + ticket(tool, f"{name}, broken", "sick.json")
        wrong += ticket(tool, "thousand", "thousand") + broken(tool, "thousand", "thousand")
    print("\n".join(wrong) or "the screens are as they should be")
    return bool(wrong)


def budget_of(what, text, budget):
    lines = text.splitlines()
    return [f"{what}: {len(lines)} lines, not {budget}:\n{text}"] if len(lines) > budget else []


def ticket(tool, what, source):
    """What a tracker shows before anything is unfolded, and its limits: Jira's, and GitHub's above it."""
    text = screen(tool, ["check", source, "--format", "md"], 80)
    seen = len(re.sub(r"(?s)<details>.*?</details>", "", text).encode())
    return [f"{what}: {seen} bytes of the ticket are visible"] * (seen > 6000) + \
           [f"{what}: a ticket of {len(text.encode())} bytes"] * (len(text.encode()) > 32000)


def broken(tool, what, source):
    """Every FAIL belongs to a cause, and each cause's fix can be copied from the screen."""
    report, text = json.loads(screen(tool, ["check", source, "--format", "json"], 80)), screen(tool, ["check", source], 80)
    wrong, keys = budget_of(what, text, 45), {d["key"] for d in report["diagnoses"]}
    fails = [f for f in report["findings"] if f["verdict"] == "fail"]
    wrong += [f"{what}: FAIL of {f['setting']} is in no cause" for f in fails if f.get("diagnosis") not in keys]
    if not fails:
        wrong.append(f"{what}: nothing failed")
    shown = re.findall(r"(?m)^ *(\d+)[! ] ", text)
    for d in report["diagnoses"][:len(shown)]:
        if d["verdict"] == "fail" and "explained_by" not in d and d.get("fix"):
            wrong += [f"{what}: {line!r} is not on the screen:\n{text}" for line in d["fix"].splitlines() if line not in text]
    return wrong


def compare(name, width, text, budget):
    file = HERE / f"screens/{name}.{width}.txt"
    wrong = budget_of(f"{name} at 80 columns", text, budget) if width == 80 else []
    # A command is not broken inside of quotes: it could not be copied.
    wrong += [f"{name} at {width} columns: {len(line)} columns: {line}" for line in text.splitlines()
              if len(line) > width and not line.lstrip().startswith(("→", "scheduler's daemon"))]
    if os.environ.get("SHAKEDOWN_BLESS") == "1":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    elif not file.exists() or file.read_text() != text:
        wrong.append(f"{file.name} is not what is printed now (SHAKEDOWN_BLESS=1 writes it):\n{text}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
