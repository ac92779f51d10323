"""Bytes and seconds that rank 0 takes to collect the facts of N nodes over loopback: nodes of a captured machine
in a Slurm job, with other names, addresses, numbers, clocks and free memory on each, and three that are odd in
one section. usage: gather.py GATHER SHAKEDOWN SOURCE_DIR [CAPTURE:N ...]"""
import json, pathlib, random, re, subprocess, sys, tempfile

gather, shakedown, source = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
wanted = sys.argv[4:] or [f"{c}:{n}" for c in ("slingshot-amd", "efa-no-provider") for n in (200, 1000)]
LIMIT = 1024  # bytes for a node that says what others said

# What a task of a job on many nodes has in its environment; {…} differs from node to node.
ENV = """SLURM_JOB_ID=48213377 SLURM_JOBID=48213377 SLURM_STEP_ID=0 SLURM_STEPID=0 SLURM_JOB_UID=20133
SLURM_JOB_NODELIST=nid[000001-000512,001200-001327,002001-002256] SLURM_NODELIST=nid[000001-000512,001200-001327]
SLURM_STEP_NODELIST=nid[000001-000512,001200-001327] SLURM_NODEID={i} SLURM_PROCID={rank} SLURM_LOCALID=0
SLURM_GTIDS={rank},{rank}1,{rank}2,{rank}3 SLURM_TASK_PID={pid} SLURMD_NODENAME={name}
SLURM_TOPOLOGY_ADDR=s0.s{switch}.{name} SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node SLURM_SUBMIT_HOST=login04
SLURM_LAUNCH_NODE_IPADDR=10.253.100.4 SLURM_SRUN_COMM_HOST=10.253.100.4 SLURM_SRUN_COMM_PORT=39021
SLURM_STEP_LAUNCHER_PORT=39021 SLURM_JOB_START_TIME=1764325000 SLURM_JOB_END_TIME=1764330000 SLURM_NTASKS=4000
SLURM_CPUS_ON_NODE=192 SLINGSHOT_VNIS=1024,1025 HOSTNAME={name} PMIX_NAMESPACE=slurm.pmix.48213377.0 PMIX_RANK={rank}
PMIX_SERVER_URI41=pmix-server.{pid};tcp4://127.0.0.1:{port} PMIX_SERVER_URI4=pmix-server.{pid};tcp4://127.0.0.1:{port}
PMIX_SERVER_URI3=pmix-server.{pid};tcp4://127.0.0.1:{port} PMIX_SERVER_URI2=pmix-server.{pid};tcp4://127.0.0.1:{port}
PMIX_SERVER_URI21=pmix-server.{pid};tcp4://127.0.0.1:{port} PMIX_SECURITY_MODE=munge,native PMIX_PTL_MODULE=tcp
PMIX_BFROP_BUFFER_TYPE=PMIX_BFROP_BUFFER_NON_DESC PMIX_GDS_MODULE=ds21,ds12,hash PMIX_HOSTNAME={name}
PMIX_SERVER_TMPDIR=/var/spool/slurmd/pmix.48213377.0/ PMIX_SYSTEM_TMPDIR=/tmp PMIX_VERSION=4.2.2
PMIX_DSTORE_21_BASE_PATH=/var/spool/slurmd/pmix.48213377.0//pmix_dstor_ds21_{pid}
PMIX_DSTORE_ESH_BASE_PATH=/var/spool/slurmd/pmix.48213377.0//pmix_dstor_ds12_{pid}"""

# The odd nodes: where, as a share of all; fact; value.
ODD = [(0.3, "fabric.version", "1.15.0"), (0.5, "host.kernel", "5.14.0-odd"), (0.8, "limits.memlock", {"soft": 65536, "hard": 65536})]


class Places:
    """Marks the places of a document whose values differ, and makes them up for a node."""

    def __init__(self):
        self.makers = []

    def text(self, maker):
        self.makers.append(maker)
        return f"@{len(self.makers) - 1}@"

    def number(self, maker):
        self.makers.append(maker)
        return f"#{len(self.makers) - 1}#"

    def near(self, value, spread):
        return self.number(lambda n: str(value + n.dice.randrange(-spread, spread)))

    def values(self, node):
        return [maker(node) for maker in self.makers]


class Node:
    def __init__(self, i):
        self.dice = random.Random(i)
        self.words = {"i": i, "rank": 4 * i, "name": f"nid{i + 1:06}", "switch": i // 64,
                      "pid": self.dice.randrange(20000, 400000), "port": self.dice.randrange(32768, 60999)}

    def uuid(self):
        return "GPU-" + "-".join(self.hex(digits) for digits in (8, 4, 4, 4, 12))

    def hex(self, digits):
        return f"{self.dice.getrandbits(4 * digits):0{digits}x}"


def devices(facts, key, places):
    for n, row in enumerate(facts.get(key, {}).get("value") or []):
        for addr in row.get("addrs", []):
            if not row.get("loopback"):
                addr["addr"] = places.text(lambda node, n=n: f"10.{n}.{node.words['i'] >> 8}.{node.words['i'] & 255}")
        if "mac" in row:
            row["mac"] = places.text(lambda node: "02:00:" + ":".join(node.hex(2) for _ in range(4)))
        if row.get("uuid"):
            row["uuid"] = places.text(lambda node, n=n: Node(1000003 * node.words["i"] + n).uuid())
        if row.get("serial"):
            row["serial"] = places.text(lambda node: str(node.dice.randrange(10**12, 10**13)))
        if row.get("nid"):
            row["nid"] = places.text(lambda node, n=n: hex(8 * node.words["i"] + n))
        if row.get("gpu_id"):
            row["gpu_id"] = places.number(lambda node: str(node.dice.randrange(65536)))


def topology(xml, places):
    """hwloc tells host, memory and addresses of devices."""
    host = '    <info name="HostName" value="%s"/>\n    <info name="LinuxCgroup" value="/system.slice/slurmstepd.scope/job_48213377"/>\n'
    nic = '<info name="Address" value="%s"/><info name="NodeGUID" value="%s"/><info name="SysImageGUID" value="%s"/>'
    guid = lambda node: ":".join(node.hex(4) for _ in range(4))
    xml = re.sub(r'(<object type="Machine"[^>]*>\n)', lambda m: m[1] + host % places.text(lambda n: n.words["name"]), xml, count=1)
    xml = re.sub(r'local_memory="(\d+)"', lambda m: f'local_memory="{places.text(lambda n: str(int(m[1]) + 4096 * n.dice.randrange(256)))}"', xml)
    for name in ("hsn", "rdmap"):
        nics = re.findall(rf'<object type="OSDev"[^>]*name="{name}[^>]*>', xml)[:4]
        for line in nics:
            mac = places.text(lambda node: "02:00:" + ":".join(node.hex(2) for _ in range(4)))
            port = places.text(guid)
            xml = xml.replace(line, line.replace("/>", ">") + nic % (mac, port, port) + ("</object>" if "/>" in line else ""))
    return xml


def base(capture, places):
    with tempfile.TemporaryDirectory(prefix="shk-capture-") as root:
        subprocess.run([source / "tests/tools/capture", "unpack", source / f"tests/captures/{capture}.json", root], check=True)
        made = subprocess.run([shakedown, "probe", "--sysroot", root], check=True, stdout=subprocess.PIPE)
    document = json.loads(made.stdout)
    facts = document["facts"]

    def put(key, value, unit=None):
        facts[key] = {"state": "present", "value": value, "source": "generated"} | ({"unit": unit} if unit else {})

    put("host.name", places.text(lambda n: n.words["name"]))
    for pair in ENV.split():
        key, value = pair.split("=", 1)
        put("env." + key, places.text(lambda n, v=value: v.format(**n.words)) if "{" in value else value)
    put("clock.offset", places.near(0, 500), "us")
    put("clock.max_error", places.near(5000, 4000), "us")
    put("host.memory_available", places.near(5 * 10**11, 10**10), "B")
    put("shm.free", places.near(2 * 10**11, 10**9), "B")
    limit = places.near(facts["limits.nproc"]["value"]["soft"], 4096)
    put("limits.nproc", {"soft": limit, "hard": limit})
    for row in facts["host.numa"]["value"]:
        row["memory"] = places.near(row["memory"], 4096)
    for key in [k for k in facts if re.fullmatch(r"probe\..*\.ms|fabric\..*_ms", k)]:
        eighths = key.startswith("probe.")
        put(key, places.number(lambda n, e=eighths: repr(n.dice.randrange(8, 7000) / 8 if e else n.dice.uniform(1, 900))), "ms")
    for key in ("net.ifaces", "gpu.nvidia.devices", "gpu.amd.devices", "nvml.devices", "cxi.devices"):
        devices(facts, key, places)
    if "value" in facts.get("topology.xml", {}):
        facts["topology.xml"]["value"] = topology(facts["topology.xml"]["value"], places)
    return document


def write(path, capture, count):
    places = Places()
    document = base(capture, places)
    odd = {int(share * count): {key: {"state": "present", "value": value}} for share, key, value in ODD}
    with open(path, "w") as out:
        print(json.dumps(document, separators=(",", ":")), file=out)
        for i in range(count):
            print(json.dumps([places.values(Node(i)), odd.get(i, {})]), file=out)
    return len(json.dumps(document)), {f"nid{i + 1:06}" for i in odd}


print(f"{'KB/node':>8} {'nodes':>7} {'seconds':>8} {'CPU s':>8} {'fold s':>8} {'groups':>6} {'MB':>6} {'identical':>9} {'bytes':>6} {'most':>6}  nodes that were asked: bytes")
with tempfile.TemporaryDirectory(prefix="shk-bench-") as scratch:
    for capture, count in (w.split(":") for w in wanted):
        path = pathlib.Path(scratch) / "nodes"
        size, odd = write(path, capture, int(count))
        done = subprocess.run([gather, path], stdout=subprocess.PIPE, text=True)
        print(f"{size / 1e3:8.0f} {done.stdout.rstrip()}", flush=True)
        assert done.returncode == 0, "facts are not those of the nodes, or more than %d bytes" % LIMIT
        asked = dict(word.split(":") for word in done.stdout.split() if ":" in word)
        groups = int(done.stdout.split()[4])
        assert groups == 1 + len(odd), f"{groups} groups of nodes"
        # The first that came told everything, the odd ones one section each.
        others = {name: int(n) for name, n in asked.items() if name not in odd}
        assert odd <= set(asked) and len(others) <= 1, f"asked: {asked}"
        assert all(int(asked[name]) < 12000 for name in odd), f"odd nodes sent more than a section: {asked}"
