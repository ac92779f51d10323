"""shakedown hang: planted hangs of a real MPI job, each with the rank and the kind that must be named; healthy jobs, of
which none may be; saved documents; what may not be looked at."""
import contextlib, ctypes, json, os, pathlib, pickle, shutil, signal, socket, subprocess, sys, threading, time, unittest
import xml.etree.ElementTree

import jsonschema

import support
from support import BASE_ENV, SOURCE, Case, main, run

MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
RANKS, VICTIM = 3, 1
HEALTHY = ("tight", "compute", "uneven", "ring", "barrier", "mixed", "files", "request", "threads", "alone")


ANSWER = """SERVER PROTOCOL 2
OK
NCCL version 2.28.9 compiled with CUDA 13.0
#0-0 (692609e2f203bd3b) MISMATCH
  Communicator ranks have different AllReduce operation counts
  Rank 0 has launched up to operation 31 -- GPU 0 managed by process 620 on node 192.0.2.2
  Rank 1 has launched up to operation 1 -- GPU 1 managed by process 621 on node 192.0.2.2
"""


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def state(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def threads(test, count):
    """A process of so many threads that sleep, and one that works."""
    code = ("import threading, time\n"
            f"for _ in range({count}): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
            "print(flush=True)\nwhile True: sum(range(1000))")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    test.addCleanup(process.wait)
    test.addCleanup(process.stdout.close)
    test.addCleanup(process.kill)
    process.stdout.readline()
    return process.pid


def valid(doc):
    schema = json.loads((SOURCE / "reports/schema/hang-1.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(doc)


class Hang(Case):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("mpicc") or not shutil.which("mpirun"):
            raise unittest.SkipTest("no mpicc and mpirun (libopenmpi-dev, openmpi-bin)")
        cls.folder = support.tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.program = pathlib.Path(cls.folder.name) / "hang_job"
        subprocess.run(["mpicc", "-O1", "-g0", "-o", cls.program, SOURCE / "tests/program/hang_job.c", "-lm", "-lpthread"],
                       check=True, capture_output=True)

    @contextlib.contextmanager
    def job(self, mode, *args, options=(), shell=None):
        """The job, once all ranks are past their common work: (mpirun, {rank: pid}). `shell` comes before each rank."""
        before = ["sh", "-c", f'{shell}; exec "$0" "$@"'] if shell else []
        job = subprocess.Popen(["mpirun", "--oversubscribe", *options, "-np", str(RANKS), *before, self.program, mode, str(VICTIM),
                                *map(str, args)], env={**BASE_ENV, **MPI}, stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            pids = {}
            while len(pids) < RANKS:
                words = job.stdout.readline().split()
                self.assertEqual(len(words), 4, f"mpirun ended: {words}")
                pids[int(words[1])] = int(words[3])
            yield job, pids
        finally:
            for pid in pids.values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            job.stdout.close()
            job.wait()

    def look(self, job, *args, interval=1):
        p = run("hang", "--pid", job.pid, "--interval", interval, "--format", "json", *args)
        self.assertIn(p.returncode, (0, 1, 3), p.stderr)
        return p.returncode, json.loads(p.stdout)

    def named(self, mode, kind, *args, words=(), wait=None, options=()):
        """Exactly the victim is named, as of that kind; within the looks that a human has the patience for."""
        with self.job(mode, *args, options=options) as (job, pids):
            if wait:
                until(lambda: wait(pids[VICTIM]))
            code, doc = self.look_when_it_stands(job)
            judgement = doc["judgement"]
            self.assertEqual((code, judgement["outcome"]), (1, "named"), judgement["headline"])
            self.assertEqual([(n.get("rank"), n["kind"]) for n in judgement["named"]], [(VICTIM, kind)], judgement["headline"])
            for word in words:
                self.assertIn(word, judgement["headline"])
            return doc

    def look_when_it_stands(self, job):
        """The first look that does not see the ranks on their way to where they hang."""
        seen = []

        def look():
            seen[:] = self.look(job)
            return seen[0] != 0
        until(look)
        return seen

    def test_in_a_loop(self):
        doc = self.named("loop", "user-code", words=[f"{RANKS - 1} of {RANKS} ranks wait in all_reduce", "solve()"])
        valid(doc)

    def test_asleep(self):
        self.named("sleep", "sleep")

    def test_stopped(self):
        self.named("stop", "stopped", wait=lambda pid: state(pid) == "T", words=["stopped by a signal"])

    def test_other_collective(self):
        self.named("other", "call", words=["waits in barrier"])

    def test_receive_that_nobody_sends(self):
        self.named("receive", "call", words=["waits in a receive"])

    def test_lock(self):
        self.named("lock", "own-thread")

    def test_thread_that_does_not_end(self):
        self.named("join", "own-thread")

    def test_debugger(self):
        self.named("debugged", "debugger", wait=lambda pid: state(pid) == "t")

    def test_fifo(self):
        fifo = self.scratch() / "fifo"
        os.mkfifo(fifo)
        self.named("open", "io", fifo, words=[f"open() on {fifo}"])

    def test_file_system_that_does_not_answer(self):
        folder = self.scratch() / "mount"
        folder.mkdir()
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            fuse = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            self.skipTest(f"/dev/fuse: {error.strerror}")
        options = f"fd={fuse},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        if libc.mount(b"shakedown-test", bytes(folder), b"fuse", 0, options.encode()):
            os.close(fuse)
            self.skipTest(f"mount: {os.strerror(ctypes.get_errno())}")
        try:
            self.named("stat", "io", folder / "file", words=[f"on {folder}/file", "(fuse at "])
        finally:
            os.close(fuse)
            libc.umount2(bytes(folder), 2)

    def test_killed(self):
        with self.job("receive", options=("--enable-recovery",)) as (job, pids):
            os.kill(pids[VICTIM], signal.SIGKILL)
            until(lambda: state(pids[VICTIM]) in "XZ")
            code, doc = self.look_when_it_stands(job)
            named = doc["judgement"]["named"]
            self.assertEqual(code, 1, doc["judgement"]["headline"])
            self.assertEqual([n.get("rank") for n in named], [VICTIM])
            self.assertIn(named[0]["kind"], ("absent", "dead"))

    def test_healthy_jobs(self):
        for mode in HEALTHY:
            with self.subTest(mode), self.job(mode, self.scratch() / "file") as (job, pids):
                code, doc = self.look(job)
                self.assertEqual(doc["judgement"]["named"], [], doc["judgement"]["headline"])
                self.assertEqual(code, 0, doc["judgement"]["headline"])
                until(lambda pid=pids[0]: state(pid) in "RS")

    def test_misuse(self):
        bad = self.scratch() / "bad.json"
        bad.write_text('{"schema": "shakedown.facts/1"}')
        self.one_line(run("hang", "--pid", "x"), 2, "'x' is not a number of a process")
        self.one_line(run("hang", "--pid", "1073741800"), 2, "no process 1073741800")
        self.one_line(run("hang", bad), 2, "shakedown.hang/1")
        self.one_line(run("hang", "/nonexistent.json"), 2, "No such file")
        self.one_line(run("hang", "--job", "no-such-job"), 3, "no rank of job no-such-job")
        self.one_line(run("hang", "--format", "yaml"), 2, "yaml")
        self.one_line(run("hang", "--hosts", "x", "--pods", "a=b"), 2, "either --hosts or --pods")
        self.one_line(run("hang", "--pods", "a=b", "--pid", "1"), 2, "--pid is of this host")
        self.one_line(run("hang", "--container", "abcdefabcdef", "--job", "1"), 2, "leave --job out")
        self.one_line(run("hang", "--container", "../x"), 2, "is not the ID of a container")
        self.one_line(run("hang", "--container", "0123456789abcdef"), 3, "container 0123456789abcdef")

    def tool(self, folder, name, lines):
        (folder / name).write_text("#!/bin/sh\n" + lines)
        (folder / name).chmod(0o755)

    def test_other_hosts_by_ssh(self):
        """Two hosts that are this one, by a stand-in for ssh that runs what it is given, and one that does not answer."""
        folder = self.scratch()
        self.tool(folder, "ssh", 'for last; do :; done\ncase "$*" in *beta*) echo "ssh: connect to host beta port 22: No route to '
                                 'host" >&2; exit 255;; esac\necho "Welcome to this machine"\nexec sh -c "$last"\n')
        hosts = folder / "hosts"
        hosts.write_text("alpha # the first\nbeta\n")
        with self.job("stop") as (_, pids):
            until(lambda: state(pids[VICTIM]) == "T")
            p = run("hang", "--hosts", hosts, "--interval", 1, "--format", "json", env={"PATH": f"{folder}:{os.environ['PATH']}"})
        doc = json.loads(p.stdout)
        valid(doc)
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertEqual([n["rank"] for n in doc["judgement"]["named"]], [VICTIM])
        self.assertIn("No route to host", " ".join(doc["judgement"]["unknown"]))
        self.assertIn("beta: not examined", " ".join(doc["judgement"]["unknown"]))
        hosts.write_text("-oProxyCommand=x\n")
        self.one_line(run("hang", "--hosts", hosts), 2, "is not a host name")

    def test_nodes_of_a_slurm_job(self):
        folder = self.scratch()
        self.tool(folder, "squeue", 'echo "alpha[1-2]"\n')
        self.tool(folder, "scontrol", 'printf "alpha1\\nalpha2\\n"\n')
        self.tool(folder, "srun", 'echo "$@" >> "$0.log"\necho "srun: error: no" >&2\nexit 1\n')
        p = run("hang", "--job", "17", "--interval", 1, "--format", "json", env={"PATH": f"{folder}:{os.environ['PATH']}"})
        doc = json.loads(p.stdout)
        valid(doc)
        self.assertEqual((p.returncode, doc["judgement"]["reason"]), (3, "no-ranks"), p.stderr)
        calls = sorted((folder / "srun.log").read_text().splitlines())
        self.assertEqual(len(calls), 2)
        for host, call in zip(("alpha1", "alpha2"), calls):
            self.assertIn(f"--overlap --jobid 17 --nodes=1 --ntasks=1 --quiet --nodelist {host} ", call)
            self.assertTrue(call.endswith("hang --here --format json --interval 1 --job 17"), call)

    def test_pods_by_kubectl(self):
        """Three pods of which two run, by a stand-in for kubectl: one answers, one has no shakedown."""
        folder = self.scratch()
        self.tool(folder, "kubectl", f"""echo "$@" >> "$0.log"
case "$1" in
get) printf "pod/train-0\\npod/train-1\\n"; exit;;
esac
case "$*" in *train-1*) echo "exec: shakedown: executable file not found in \\$PATH" >&2; exit 127;; esac
while [ "$1" != -- ]; do shift; done
shift 2
exec {support.BINARY} "$@"
""")
        env = {"PATH": f"{folder}:{os.environ['PATH']}"}
        with self.job("stop") as (_, pids):
            until(lambda: state(pids[VICTIM]) == "T")
            p = run("hang", "--pods", "ml/job-name=train", "--container", "main", "--interval", 1, "--format", "json", env=env)
        doc = json.loads(p.stdout)
        valid(doc)
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertEqual([n["rank"] for n in doc["judgement"]["named"]], [VICTIM])
        self.assertIn("train-1: not examined", " ".join(doc["judgement"]["unknown"]))
        self.assertIn("executable file not found", " ".join(doc["judgement"]["unknown"]))
        calls = (folder / "kubectl.log").read_text().splitlines()
        self.assertEqual(calls[0], "get pods --selector job-name=train --field-selector status.phase=Running --output name "
                                   "--namespace ml")
        self.assertEqual(sorted(calls[1:]), [f"exec --namespace ml train-{i} --container main -- shakedown hang --here --format json "
                                             "--interval 1" for i in (0, 1)])
        self.tool(folder, "kubectl", "exit 0\n")
        self.one_line(run("hang", "--pods", "a=b", env=env), 2, "no pod of a=b is running")
        self.tool(folder, "kubectl", "echo 'error: You must be logged in' >&2; exit 1\n")
        self.one_line(run("hang", "--pods", "a=b", env=env), 2, "You must be logged in")

    def test_ranks_of_one_container(self):
        """By the name of their control group, as the engines of containers have it."""
        mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
        groups = sorted(m[1] for m in mounts if m[2] == "cgroup2" or (m[2] == "cgroup" and "pids" in m[3]))
        if not groups:
            self.skipTest("no control groups are mounted")
        name = "0123456789abcdef" * 4
        group = pathlib.Path(groups[0]) / f"docker-{name}.scope"
        try:
            group.mkdir()
        except OSError as error:
            self.skipTest(f"{group}: {error.strerror}")
        process = subprocess.Popen(["sleep", "600"], env={**BASE_ENV, "RANK": "0", "WORLD_SIZE": "2"})
        try:
            try:
                (group / "cgroup.procs").write_text(str(process.pid))
            except OSError as error:
                self.skipTest(f"{group}: {error.strerror}")
            p = run("hang", "--container", name[:12], "--interval", 1, "--format", "json")
            other = run("hang", "--container", "123456789abc", "--interval", 1)
        finally:
            process.kill()
            process.wait()
            until(lambda: not (group / "cgroup.procs").read_text())
            group.rmdir()
        self.assertEqual([r["pid"] for r in json.loads(p.stdout)["nodes"][0]["ranks"]], [process.pid], p.stderr)
        self.one_line(other, 3, "container 123456789abc")

    def test_checks_of_the_suspect_node(self):
        """Here, and on another host by a stand-in for ssh; what does not come back is said to be unknown."""
        folder = self.scratch()
        self.tool(folder, "ssh", 'for last; do :; done\necho "$last" >> "$0.log"\n[ ! -e "$0.broken" ] || case "$last" in *--quick*) '
                                 'echo "cannot fork" >&2; exit 1;; esac\nexec sh -c "$last"\n')
        (folder / "hosts").write_text("alpha\n")
        env = {"PATH": f"{folder}:{os.environ['PATH']}"}
        with self.job("stop") as (job, pids):
            until(lambda: state(pids[VICTIM]) == "T")
            code, here = self.look(job, "--then-check")
            there = json.loads(run("hang", "--hosts", folder / "hosts", "--interval", 1, "--then-check", "--format", "json",
                                   env=env).stdout)
            (folder / "ssh.broken").touch()
            broken = json.loads(run("hang", "--hosts", folder / "hosts", "--interval", 1, "--then-check", "--format", "json",
                                    env=env).stdout)
        self.assertEqual(code, 1)
        for doc in (here, there):
            valid(doc)
            (check,) = doc["judgement"]["checks"]
            self.assertEqual((check["what"], check["hosts"]), ("node", [socket.gethostname()]))
            self.assertIn(check["verdict"], ("pass", "warn", "fail", "unknown"))
        lines = (folder / "ssh.log").read_text().splitlines()
        self.assertTrue(lines[1].endswith("run --quick --rendezvous none --format json"), lines)
        valid(broken)
        (check,) = broken["judgement"]["checks"]
        self.assertIn("cannot fork", check["unread"])
        self.assertNotIn("verdict", check)

    def test_checks_of_the_network(self):
        """Of two nodes of a Slurm job one is suspect: it is checked, and the network between both; by a stand-in for srun."""
        folder, waits = self.scratch(), ["_start", "main", "MPI_Allreduce", "poll"]
        self.tool(folder, "squeue", 'echo "alpha[1-2]"\n')
        self.tool(folder, "scontrol", 'printf "alpha1\nalpha2\n"\n')
        for number, (host, functions) in enumerate((("alpha1", waits), ("alpha2", ["_start", "main", "solve"]))):
            threads = [{"tid": 100 + number, "state": "R", "frames": [{"function": f} for f in functions], "cut": False, "still": 3}]
            rank = {"pid": 100 + number, "rank": number, "ranks": 2, "local_ranks": 1, "state": "R", "threads": threads}
            (folder / host).write_text(json.dumps({"schema": "shakedown.hang/1", "nodes": [
                {"host": host, "seconds": 5, "samples": 5, "unread": [], "ranks": [rank]}]}))
        report = {"schema": "shakedown.report/2", "summary": {"verdict": "fail"}, "diagnoses": [
            {"key": "memlock-too-low", "title": "Too little memory can be locked", "confidence": "likely", "fix": "ulimit -l unlimited"}],
            "findings": [{"setting": "memlock", "verdict": "fail", "observed": "64 KiB", "why": "too low"}, {"setting": "x", "verdict": "pass"}]}
        (folder / "report").write_text(json.dumps(report))
        self.tool(folder, "srun", f'echo "$@" >> "$0.log"\ncase "$*" in *" hang "*) for h in alpha1 alpha2; do case "$*" in *"$h "*) '
                                  f'cat {folder}/$h;; esac; done;; *) cat {folder}/report; exit 1;; esac\n')
        p = run("hang", "--job", "17.0", "--interval", 1, "--then-check", "--format", "json",
                env={"PATH": f"{folder}:{os.environ['PATH']}"})
        doc = json.loads(p.stdout)
        valid(doc)
        self.assertEqual(doc["judgement"]["suspects"], ["alpha2"], p.stderr)
        self.assertEqual([(c["what"], c["hosts"], c["verdict"]) for c in doc["judgement"]["checks"]],
                         [("node", ["alpha2"], "fail"), ("network", ["alpha2", "alpha1"], "fail")])
        self.assertEqual(doc["judgement"]["checks"][0]["causes"][0]["key"], "memlock-too-low")
        self.assertEqual([r["name"] for r in doc["judgement"]["checks"][0]["rows"]], ["memlock"])
        calls = (folder / "srun.log").read_text().splitlines()
        self.assertIn("--overlap --jobid 17 --nodes=1 --ntasks=1 --quiet --nodelist alpha2 ", calls[2])
        self.assertIn("--nodes=2 --ntasks=2 --quiet --nodelist alpha2,alpha1 ", calls[3])
        self.assertIn(" bench --transport fabric ", calls[3])

    @contextlib.contextmanager
    def watch(self, job, *args):
        """It has said that the ranks go on: on a busy machine not always at its first look. Ended with the test, since it
        would look as long as the job goes on."""
        command = [support.BINARY, "hang", "--pid", str(job.pid), "--interval", "1", "--watch", "1", *map(str, args)]
        with subprocess.Popen(command, env=BASE_ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
            try:
                said = []
                while len(said) < 30 and not (said and "the ranks make progress" in said[-1]):
                    said.append(watch.stderr.readline())
                    self.assertTrue(said[-1], f"it ended: {said}")
                self.assertIn("the ranks make progress", said[-1])
                yield watch
            finally:
                watch.kill()

    def test_watched_until_it_hangs(self):
        """It goes on for the first looks, and one rank is stopped then."""
        with self.job("compute") as (job, pids), self.watch(job, "--format", "json") as watch:
            os.kill(pids[VICTIM], signal.SIGSTOP)
            out, _ = watch.communicate(timeout=120)
            doc = json.loads(out)
            self.assertEqual((watch.returncode, [n["rank"] for n in doc["judgement"]["named"]]), (1, [VICTIM]))

    def test_watched_until_it_is_over(self):
        with self.job("compute") as (job, pids), self.watch(job) as watch:
            os.killpg(job.pid, signal.SIGKILL)
            for pid in pids.values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            job.wait()
            out, err = watch.communicate(timeout=120)
            self.assertEqual((watch.returncode, out), (0, ""), err)
            self.assertIn("the job is over", err)

    def test_nccl_is_asked(self):
        """A process that has a libnccl, and a service that answers as NCCL's does; it is asked twice."""
        library = self.scratch() / "libnccl.so.2"
        library.write_bytes(b"x" * 8192)
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        code = ("import mmap, time\n"
                f"f = open({str(library)!r}, 'r+b')\nm = mmap.mmap(f.fileno(), 0)\nprint(flush=True)\ntime.sleep(600)")
        port = server.getsockname()[1]
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                                   env={**BASE_ENV, "RANK": "0", "WORLD_SIZE": "2", "NCCL_RAS_ADDR": f"localhost:{port}"})
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        process.stdout.readline()
        asked = []

        def serve():
            for _ in range(2):
                with server.accept()[0] as client:
                    asked.append(client.recv(4096).decode())
                    client.sendall(ANSWER.encode())
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        p = run("hang", "--pid", process.pid, "--interval", 1, "--format", "json")
        thread.join(10)
        doc = json.loads(p.stdout)
        valid(doc)
        self.assertEqual(len(asked), 2)
        self.assertIn("CLIENT PROTOCOL 2", asked[0])
        self.assertIn("rank 1 launched AllReduce up to operation 1, others up to 31", " ".join(doc["judgement"]["said"]))
        self.assertEqual(p.returncode, 3, doc["judgement"]["headline"])

    def library(self, folder, version):
        """A library that says it is NCCL of the version."""
        folder.mkdir()
        source = folder / "nccl.c"
        source.write_text(f'const char *ncclVersionText(void) {{ return "NCCL version {version}+cuda13.0"; }}')
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", folder / "libnccl.so.2", source], check=True)
        return folder / "libnccl.so.2"

    def test_libraries_and_variables_of_the_ranks(self):
        """The victim has another NCCL and another setting; all have one that is wrong, and one that is secret."""
        folder = self.scratch()
        new, old = self.library(folder / "new", "2.28.9"), self.library(folder / "old", "2.21.5")
        shell = (f'export LD_PRELOAD={new} FI_HMEM=1 FI_EXAMPLE_TOKEN=hunter2hunter2; '
                 f'[ $OMPI_COMM_WORLD_RANK != {VICTIM} ] || export LD_PRELOAD={old} NCCL_PROTO=LL')
        with self.job("stop", shell=shell) as (job, pids):
            until(lambda: state(pids[VICTIM]) == "T")
            code, doc = self.look(job)
            text = run("hang", "--pid", job.pid, "--interval", 1).stdout
            new.unlink()
            shutil.copy(old, new)
            replaced = run("hang", "--pid", job.pid, "--interval", 1, "-o", folder / "again.json")
        valid(doc)
        self.assertEqual(code, 1, doc["judgement"]["headline"])
        others = [rank for rank in range(RANKS) if rank != VICTIM]
        (library,) = [item for item in doc["judgement"]["libraries"] if item["library"] == "libnccl"]
        self.assertEqual({v["version"]: v["ranks"] for v in library["versions"]}, {"2.28.9": others, "2.21.5": [VICTIM]})
        self.assertEqual(library["diagnosis"], "nccl-version-differs-across-ranks")
        (wrong,) = [item for item in doc["judgement"]["settings"] if item["name"] == "FI_HMEM"]
        self.assertEqual((wrong["verdict"], wrong["ranks"]), ("fail", list(range(RANKS))))
        self.assertEqual(sorted(item["name"] for item in doc["judgement"]["differences"]), ["LD_PRELOAD", "NCCL_PROTO"])
        self.assertNotIn("hunter2hunter2", json.dumps(doc))
        self.assertIn("libnccl differs between ranks: 2.28.9 in", text)
        self.assertEqual(replaced.returncode, 1, replaced.stderr)
        again = json.loads((folder / "again.json").read_text())
        (library,) = [item for item in again["judgement"]["libraries"] if item["library"] == "libnccl"]
        self.assertEqual(library["replaced"], others)

    def test_dumps_of_the_flight_recorder(self):
        """Those that the ranks wrote; one that is older than its process is of another job."""
        self.dumps({"TORCH_FR_DUMP_TEMP_FILE": "%s/dump_"}, "dump_")

    def test_dumps_where_pytorch_writes_them_by_itself(self):
        self.dumps({"XDG_CACHE_HOME": "%s", "HOME": "/nonexistent"}, "torch/comm_lib_trace_rank_")
        self.dumps({"XDG_CACHE_HOME": "", "HOME": "%s"}, ".cache/torch/comm_lib_trace_rank_")

    def dumps(self, variables, name):
        def dump(rank, names):
            entries = [{"collective_seq_id": i + 1, "profiling_name": f"nccl:{name}", "input_sizes": [[4]], "input_dtypes": ["Float"],
                        "state": "scheduled", "process_group": ("0", "default_pg"), "is_p2p": False,
                        "frames": [{"name": "step", "filename": "/src/train.py", "line": 7}]} for i, name in enumerate(names)]
            doc = {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, "pg_status": {},
                   "entries": entries}
            (folder / f"{name}{rank}").write_bytes(pickle.dumps(doc, protocol=2))
        folder, pids = self.scratch(), []
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        where = {variable: value.replace("%s", str(folder)) for variable, value in variables.items()}
        for rank in (0, 1):
            process = subprocess.Popen(["sleep", "600"], env={**BASE_ENV, "RANK": str(rank), "WORLD_SIZE": "2", **where})
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            pids.append(process.pid)
        dump(0, ["all_reduce", "all_reduce"])
        dump(1, ["all_reduce", "broadcast"])
        os.utime(folder / f"{name}1", (1, 1))
        args = ("hang", "--pid", ",".join(map(str, pids)), "--interval", 1, "--format", "json")
        self.assertNotIn("flight-recorder[order]", run(*args).stdout)
        dump(1, ["all_reduce", "broadcast"])
        doc = json.loads(run(*args).stdout)
        valid(doc)
        self.assertIn("flight-recorder[order]", " ".join(doc["judgement"]["said"]))

    def test_dump_asked_for_by_the_pipe(self):
        """Only with --intrusive; a pipe that nobody reads, and what is no pipe, is said and left alone."""
        folder = self.scratch()
        pipe = folder / "trace_0.pipe"
        os.mkfifo(pipe)
        code = (f"import os, shutil, time\nfd = os.open({str(pipe)!r}, os.O_RDONLY | os.O_NONBLOCK)\nprint(flush=True)\n"
                f"while True:\n    time.sleep(0.05)\n    if os.read(fd, 128): open({str(folder / 'asked')!r}, 'a').write('x')")
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env={
            **BASE_ENV, "RANK": "0", "WORLD_SIZE": "1", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{folder}/trace_"})
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        process.stdout.readline()
        args = ("hang", "--pid", process.pid, "--interval", 1, "--format", "json")
        run(*args)
        self.assertFalse((folder / "asked").exists())
        valid(json.loads(run(*args, "--intrusive").stdout))
        self.assertEqual((folder / "asked").read_text(), "x")
        pipe.unlink()
        os.mkfifo(pipe)
        doc = json.loads(run(*args, "--intrusive").stdout)
        self.assertIn("rank 0: no dump of the flight recorder was asked for", " ".join(doc["judgement"]["unknown"]))
        pipe.unlink()
        pipe.write_text("")  # no pipe: it stays as it is
        doc = json.loads(run(*args, "--intrusive").stdout)
        self.assertIn("rank 0: no dump of the flight recorder was asked for", " ".join(doc["judgement"]["unknown"]))
        self.assertEqual(pipe.read_text(), "")

    def test_gpus_of_the_ranks(self):
        """By a stand-in for NVML: one GPU for each rank, busy but for the victim's; one that does not answer is unknown."""
        with self.job("stop") as (job, pids):
            until(lambda: state(pids[VICTIM]) == "T")
            held = ",".join(str(pids[rank]) for rank in range(RANKS))
            env = {"NVML_HELD": held, "NVML_BUSY": "100,0,100", "SHAKEDOWN_NVML": str(support.FAKES / "nvml/libnvidia-ml.so.1")}
            args = ("hang", "--pid", job.pid, "--interval", 1, "--format", "json")
            doc = json.loads(run(*args, env=env).stdout)
            hangs = json.loads(run(*args, env={**env, "SHAKEDOWN_NVML": str(support.FAKES / "nvml_init_segv/libnvidia-ml.so.1")}).stdout)
        valid(doc)
        said = doc["judgement"]["said"]
        self.assertEqual(len(said), 2, said)
        self.assertIn("busy at 100 %", said[0])
        self.assertIn("idle", said[1])
        for rank in range(RANKS):
            self.assertIn(f"process {pids[rank]}", said[rank == VICTIM])
        valid(hangs)
        self.assertEqual([n["rank"] for n in hangs["judgement"]["named"]], [VICTIM])
        self.assertIn("GPUs of", " ".join(hangs["judgement"]["unknown"]))

    def test_frames_of_python(self):
        """By a stand-in for py-spy; one that others than root can change is not run."""
        if os.getuid() != 0:
            self.skipTest("not root")
        folder, pid = self.scratch(), threads(self, 1)
        frames = [{"name": "load", "filename": "/src/train.py", "line": 42}, {"name": "main", "filename": "/src/train.py", "line": 7}]
        (folder / "dump.json").write_text(json.dumps([{"os_thread_id": pid, "frames": frames}]))
        self.tool(folder, "py-spy", f'[ "$*" = "dump --nonblocking --json --pid {pid}" ] && cat {folder}/dump.json\n')
        env = {"PATH": f"{folder}:{os.environ['PATH']}"}
        args = ("hang", "--pid", pid, "--interval", 1, "--format", "json")
        doc = json.loads(run(*args, env=env).stdout)
        valid(doc)
        self.assertIn("load() at /src/train.py:42", doc["judgement"]["headline"])
        os.chown(folder, 65534, -1)
        self.assertNotIn("train.py", run(*args, env=env).stdout)

    def test_saved_documents_are_judged_again(self):
        """Two nodes' files joined; names are replaced on request, in every format."""
        def node(host, ranks):
            return {"host": host, "seconds": 5, "samples": 5, "unread": [], "ranks": ranks}

        def rank(number, functions, still):
            frames = [{"function": f, "library": "job"} for f in functions]
            return {"pid": 100 + number, "rank": number, "ranks": 4, "local_ranks": 2, "state": "R", "command": "job",
                    "files": ["/home/someuser/token=hunter2secret"],
                    "threads": [{"tid": 100 + number, "state": "R", "frames": frames, "cut": False, "still": still}]}
        waits = ["_start", "main", "MPI_Allreduce", "poll"]
        folder, files = self.scratch(), []
        for host, ranks in (("alpha17", [rank(0, waits, 3), rank(1, waits, 3)]),
                            ("beta18", [rank(2, ["_start", "main", "solve"], 2), rank(3, waits, 3)])):
            files.append(folder / f"{host}.json")
            files[-1].write_text(json.dumps({"schema": "shakedown.hang/1", "version": "0", "command": "", "time": "",
                                             "judgement": {}, "nodes": [node(host, ranks)]}))
        p = run("hang", *files, "--format", "json", "--anonymize")
        doc = json.loads(p.stdout)
        valid(doc)
        self.assertEqual(p.returncode, 1)
        self.assertEqual([n["rank"] for n in doc["judgement"]["named"]], [2])
        for form in ("json", "term", "md", "html", "junit", "prom", "github", "gitlab", "line"):
            text = run("hang", *files, "--format", form, "--anonymize").stdout
            self.assertTrue(text, form)
            for name in ("alpha17", "beta18", "someuser", "hunter2secret"):
                self.assertNotIn(name, text)
        self.one_line(run("hang", *files, "--then-check"), 2, "--then-check is for a running job")
        self.one_line(run("hang", *files, "--watch", 1), 2, "--watch is for a running job")
        cases = xml.etree.ElementTree.fromstring(run("hang", *files, "--format", "junit").stdout).iter("testcase")
        self.assertEqual([(c.get("name"), c.find("failure") is not None) for c in cases], [("job", True), ("rank 2", True)])
        page = run("hang", *files, "--format", "html").stdout
        picture = xml.etree.ElementTree.fromstring(page[page.index("<svg"):page.index("</svg>") + 6])
        boxes = [[t.text for t in g.iter("text")] + [g.find("rect").get("class")] for g in picture.iter("g")]
        self.assertIn(["rank 2", "solve (job)", "broken"], boxes)
        self.assertIn(["ranks 0-1,3", "MPI_Allreduce (job)", "poll (job)", "numa"], boxes)
        self.assertIn("beta18", run("hang", *files).stdout)
        one = run("hang", files[0], "--format", "json")
        self.assertEqual(one.returncode, 3, one.stdout)
        self.assertEqual(json.loads(one.stdout)["judgement"]["reason"], "ranks-not-looked-at")
        self.assertIn("2 of 4 ranks were not examined", one.stdout)



if __name__ == "__main__":
    main()
