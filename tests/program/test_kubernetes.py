"""The examples for Kubernetes (config/kubernetes): against the API's own types where a client of it is installed, what holds
them together anywhere, and what their containers run, run."""
import json, os, signal, socket, stat, subprocess
from support import BASE_ENV, BINARY, Case, SOURCE, main, run

EXAMPLES = SOURCE / "config" / "kubernetes"
GPUS = {"nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron"}


def documents(name):
    import yaml
    return list(yaml.load_all((EXAMPLES / name).read_text(), Loader=yaml.CSafeLoader))


def pods(node, path=""):
    """(path, spec) of every pod in a document, whatever kind it is in."""
    if isinstance(node, dict):
        if "containers" in node:
            yield path, node
        for key, value in node.items():
            yield from pods(value, f"{path}.{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from pods(value, f"{path}[{i}]")


def typed(models, Configuration, kind, value, path):
    """What the API's type has no member for, and members that it requires; by the client's generated tables."""
    for opening, step in (("list[", "[]"), ("dict(", "{}")):
        if kind.startswith(opening):
            inner = kind[len(opening):-1].split(", ")[-1]
            values = value.values() if isinstance(value, dict) else value
            if isinstance(value, dict) != (step == "{}"):
                return [f"{path}: not {kind}"]
            return [w for v in values for w in typed(models, Configuration, inner, v, path + step)]
    model = getattr(models, kind, None)
    if model is None:
        plain = {"str": str, "int": int, "bool": bool, "float": (int, float)}.get(kind, object)
        return [] if isinstance(value, plain) and not (kind == "int" and isinstance(value, bool)) else [f"{path}: {value!r} is no {kind}"]
    if not isinstance(value, dict):
        return [f"{path}: not an object"]
    names = {json_name: name for name, json_name in model.attribute_map.items()}
    wrong = [f"{path}: {key} is no member of {kind}" for key in value if key not in names]
    bare, required = model.__new__(model), []
    bare.local_vars_configuration = Configuration()
    for name, json_name in model.attribute_map.items():
        setattr(bare, f"_{name}", None)
        try:
            setattr(bare, name, None)  # the setter of what is required refuses
        except ValueError:
            required.append(json_name)
    wrong += [f"{path}: {key} is missing" for key in required if key not in value]
    return wrong + [w for key in value if key in names
                    for w in typed(models, Configuration, model.openapi_types[names[key]], value[key], f"{path}.{key}")]


class Kubernetes(Case):
    NAMES = ("daemonset.yaml", "init-container.yaml", "job.yaml", "jobset.yaml", "mpijob.yaml")

    def test_all_are_here(self):
        self.assertEqual({p.name for p in EXAMPLES.glob("*.yaml")}, set(self.NAMES))

    def test_types_of_the_api(self):
        try:
            from kubernetes.client import Configuration, models
        except ImportError:
            self.skipTest("python3-kubernetes is not installed: its tables are the API's schema, 1 MiB that is not repeated here")
        if hasattr(models.V1Job, "model_fields"):
            self.skipTest("this client keeps its tables in another form; Debian's (22.6) is the one that is read here")
        for name in self.NAMES:
            for doc in documents(name):
                with self.subTest(name, kind=doc["kind"]):
                    version = doc["apiVersion"].split("/")[-1].capitalize()
                    if hasattr(models, version + doc["kind"]):
                        self.assertEqual(typed(models, Configuration, version + doc["kind"], doc, doc["kind"]), [])
                    for path, spec in pods(doc):  # custom resources: the pods in them, which are the API's
                        self.assertEqual(typed(models, Configuration, "V1PodSpec", spec, path), [])
        broken = documents("job.yaml")[1]
        broken["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []
        del broken["spec"]["template"]["spec"]["containers"][0]["name"]
        self.assertEqual(len(typed(models, Configuration, "V1Job", broken, "Job")), 2)

    def test_what_holds_them_together(self):
        for name in self.NAMES:
            for doc in documents(name):
                self.assertTrue(doc["apiVersion"] and doc["kind"] and doc["metadata"]["name"], name)
                for path, spec in pods(doc):
                    with self.subTest(name, path=path):
                        self.pod(spec)

    def pod(self, spec):
        volumes = {v["name"]: v for v in spec.get("volumes", [])}
        used = set()
        for container in spec["containers"] + spec.get("initContainers", []):
            limits = container.get("resources", {}).get("limits", {})
            for mount in container.get("volumeMounts", []):
                self.assertIn(mount["name"], volumes)
                used.add(mount["name"])
                if mount["mountPath"] == "/dev/shm":
                    self.assertEqual(volumes[mount["name"]]["emptyDir"]["medium"], "Memory")
            if GPUS & set(limits):  # a rank needs what the job's ranks need
                self.assertIn("IPC_LOCK", container["securityContext"]["capabilities"]["add"])
                self.assertIn("/dev/shm", [m["mountPath"] for m in container["volumeMounts"]])
            for variable in container.get("env", []):
                self.assertEqual(len({"value", "valueFrom"} & set(variable)), 1)
                self.assertIsInstance(variable.get("value", ""), str)  # a number would be refused
                if "KEY" in variable["name"]:
                    self.assertIn("secretKeyRef", variable["valueFrom"])  # never a key in a manifest
        self.assertEqual(used, set(volumes))

    def test_pods_of_the_job_find_the_first(self):
        service, job = documents("job.yaml")
        spec = job["spec"]["template"]["spec"]
        env = {v["name"]: v.get("value") for v in spec["containers"][0]["env"]}
        self.assertEqual((service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]), ("None", True))
        self.assertEqual(service["spec"]["selector"], {"batch.kubernetes.io/job-name": job["metadata"]["name"]})
        self.assertEqual(spec["subdomain"], service["metadata"]["name"])
        self.assertEqual(env["MASTER_ADDR"], f"{job['metadata']['name']}-0.{spec['subdomain']}")
        self.sizes(job["spec"], env)
        jobset = documents("jobset.yaml")[0]
        part = jobset["spec"]["replicatedJobs"][0]
        inner = part["template"]["spec"]
        env = {v["name"]: v.get("value") for v in inner["template"]["spec"]["containers"][0]["env"]}
        self.assertEqual(env["MASTER_ADDR"], f"{jobset['metadata']['name']}-{part['name']}-0-0.{jobset['metadata']['name']}")
        self.sizes(inner, env)
        mpi = documents("mpijob.yaml")[0]["spec"]
        worker, launcher = mpi["mpiReplicaSpecs"]["Worker"], mpi["mpiReplicaSpecs"]["Launcher"]
        command = launcher["template"]["spec"]["containers"][0]["command"]
        self.assertEqual(int(command[command.index("-np") + 1]), worker["replicas"] * mpi["slotsPerWorker"])

    def sizes(self, spec, env):
        self.assertEqual((spec["completionMode"], spec["backoffLimit"]), ("Indexed", 0))
        self.assertEqual(spec["parallelism"], spec["completions"])
        self.assertEqual(int(env["WORLD_SIZE"]), spec["completions"] * int(env["LOCAL_WORLD_SIZE"]))

    def container(self, spec, **env):
        """The first container's command, with the program under test in PATH."""
        bin = self.scratch() / "bin"
        bin.mkdir(exist_ok=True)
        wrapper = bin / "shakedown"
        wrapper.write_text(f'#!/bin/sh\nexec "{BINARY}" "$@" $OPTIONS\n')
        wrapper.chmod(0o755)
        return subprocess.Popen(spec["containers"][0]["command"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True, env={**BASE_ENV, "PATH": f"{bin}:/usr/bin:/bin", **env})

    def test_two_pods_are_one_run(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        for name in ("job.yaml", "jobset.yaml"):
            spec = next(pods(documents(name)[-1]))[1]
            env = dict(LOCAL_WORLD_SIZE="2", WORLD_SIZE="4", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                       SHAKEDOWN_KEY="0123456789abcdef-of-a-test", OPTIONS="--format json --sizes 4:64K")
            both = [self.container(spec, JOB_COMPLETION_INDEX=str(i), **env) for i in range(2)]
            out = [p.communicate(timeout=180) for p in both]
            self.assertEqual(both[0].returncode, both[1].returncode, out)
            self.assertIn(both[0].returncode, (0, 1), out)
            report = json.loads(out[0][0])
            self.assertEqual(out[1][0], "", "only rank 0 reports")
            joined = [f for f in report["findings"] if f["id"] == "rendezvous" or f["setting"] == "rendezvous"]
            self.assertIn("4", json.dumps(joined) + json.dumps(report["collectives"]["fabric"].get("ranks")))
            self.assertEqual(report["collectives"]["fabric"]["ranks"], 4)

    def test_init_container_says_why(self):
        """The line is where Kubernetes reads it; the file is mounted on its own and cannot be replaced."""
        spec = documents("init-container.yaml")[0]["spec"]
        command = spec["initContainers"][1]["command"]
        self.assertEqual(command[-1], "/dev/termination-log")
        log = self.scratch() / "termination-log"
        log.touch()
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
            self.skipTest("mounts are not permitted here")
        script = 'mount --bind "$1" "$1" && shift && exec "$@"'
        words = [str(BINARY), *command[1:-1], str(log), "--transport", "none"]
        p = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", str(log), *words], env=BASE_ENV, capture_output=True,
                           text=True, timeout=120)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        self.assertRegex(log.read_text(), r"^(PASS|WARN|FAIL|UNKNOWN) ")
        self.assertEqual([f.name for f in log.parent.iterdir() if f.name.startswith("termination")], ["termination-log"])

    def test_daemon_set_writes_the_textfile(self):
        spec = documents("daemonset.yaml")[0]["spec"]["template"]["spec"]
        out = self.scratch() / "textfile"
        out.mkdir()
        script = spec["containers"][0]["command"][-1].replace("/textfile/", f"{out}/")
        spec["containers"][0]["command"][-1] = script
        p = self.container(spec, SHAKEDOWN_EVERY="600")
        try:
            self.wait(lambda: (out / "shakedown.prom").exists())
        finally:
            os.killpg(p.pid, signal.SIGKILL)  # the shell, and what it waits for
            p.communicate()
        self.assertIn("shakedown_verdict{", (out / "shakedown.prom").read_text())

    def wait(self, condition):
        import time
        until = time.monotonic() + 120
        while not condition():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.1)

    def test_node_problem_detector(self):
        monitor = json.loads((EXAMPLES / "node-problem-detector.json").read_text())
        kinds = {c["type"] for c in monitor["conditions"]}
        for rule in monitor["rules"]:
            self.assertIn(rule["condition"], kinds)
        plugin = EXAMPLES / "node-problem-detector.sh"
        self.assertTrue(os.stat(plugin).st_mode & stat.S_IXUSR)
        line = "FAIL n1: memlock-too-low: RLIMIT_MEMLOCK 64 KiB: registration fails"
        for said, code, wants, text in (("PASS n1: 10 passed\n\n", 0, 0, "no fault of this node"), (line + "\nn1\n", 1, 1, line[9:]),
                                        (line + "\n\n", 1, 0, "no fault of this node"), ("", 3, 2, "could not tell"),
                                        ("", 127, 2, "could not tell"), ("", 124, 2, "could not tell")):
            bin = self.scratch() / "npd"
            bin.mkdir(exist_ok=True)
            (bin / "shakedown").write_text(f"#!/bin/sh\nprintf '%b' '{said}'\nexit {code}\n")
            (bin / "shakedown").chmod(0o755)
            p = subprocess.run(["sh", plugin], env={"PATH": f"{bin}:/usr/bin:/bin"}, capture_output=True, text=True, timeout=60)
            self.assertEqual(p.returncode, wants, said)
            self.assertIn(text, p.stdout)
            self.assertLessEqual(len(p.stdout), monitor["pluginConfig"]["max_output_length"])

    def test_fixes_in_a_pod_are_of_kubernetes(self):
        facts = {k: {"state": "present", "source": "test", "value": v} for k, v in {
            "host.name": "pod-0", "host.container": "kubernetes", "job.launcher": "local", "shm.size": 64 << 20,
            "shm.free": 64 << 20, "limits.memlock": {"soft": 65536, "hard": 65536},
            "host.ids": {"ipc_lock": False}, "pci.count.gpu-nvidia": 8, "pci.count.mlx5": 8, "rdma.devices": [
                {"name": "mlx5_0", "driver": "mlx5_core", "pci": "0000:51:00.0", "numa": 0, "node_type": "CA", "uverbs": "uverbs0",
                 "ports": [{"port": 1, "state": "ACTIVE", "phys_state": "LinkUp", "link_layer": "InfiniBand", "rate": 400,
                            "gids": []}]}]}.items()}
        path = self.scratch() / "pod.json"
        path.write_text(json.dumps({"schema": "shakedown.facts/1", "facts": facts}))
        rows = {f["setting"]: f for f in json.loads(run("check", path, "--format", "json", "-v").stdout)["findings"]}
        text = {k: f"{rows[k].get('fix', '')} {rows[k].get('advice', '')}" for k in ("/dev/shm", "RLIMIT_MEMLOCK") if k in rows}
        self.assertIn("emptyDir", text["/dev/shm"])
        self.assertIn("medium: Memory", text["/dev/shm"])
        self.assertRegex(text["RLIMIT_MEMLOCK"], r"IPC_LOCK[\s\S]*containerd")
        for words in text.values():
            self.assertNotRegex(words, "docker run|limits.d")


main()
