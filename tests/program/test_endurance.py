"""Run after run leaves nothing behind, and two runs at once do not disturb each other. SHAKEDOWN_ROUNDS=1000 for the
long form."""
import glob, os, pathlib, statistics, subprocess, time
from support import BASE_ENV, BINARY, Case, count, left_behind, main, own_shm, run

ROUNDS = int(os.environ.get("SHAKEDOWN_ROUNDS", "8"))


def own_processes():
    """Command lines of processes of this binary."""
    found = []
    for path in glob.glob("/proc/[0-9]*/exe"):
        try:
            if os.readlink(path) == str(BINARY):
                found.append(pathlib.Path(path).parent.name)
        except OSError:
            pass
    return found


def sysv_segments():
    return len(pathlib.Path("/proc/sysvipc/shm").read_text().splitlines())


class Endurance(Case):
    def traces(self):
        return {"shm": own_shm(), "tmp": set(os.listdir(self.tmp)), "sysv": sysv_segments()}

    def one_round(self):
        """Peak of resident memory in KiB, and of open descriptors as far as a look now and then shows it."""
        p = subprocess.Popen([str(BINARY), "--sizes", "4:64K", "--format", "json", "-o", "/dev/full"],
                             env={**BASE_ENV, "TMPDIR": str(self.tmp)}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        descriptors = 0
        while True:
            pid, status, usage = os.wait4(p.pid, os.WNOHANG)
            if pid:
                break
            try:
                descriptors = max(descriptors, len(os.listdir(f"/proc/{p.pid}/fd")))
            except OSError:
                pass
            time.sleep(0.02)
        p.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(p.returncode, 4)  # the report has no place to go; all the work was done
        return usage.ru_maxrss, descriptors

    def test_nothing_is_left_behind(self):
        running = set(own_processes())
        self.tmp = self.scratch()  # nobody else's temporary files
        before, peaks = self.traces(), []
        for i in range(1, ROUNDS + 1):
            peaks.append(self.one_round())
            if i % 100 == 0:
                print(f"{i} rounds, last peak {peaks[-1][0]} KiB", flush=True)
        after = self.traces()
        left = own_processes()
        until = time.monotonic() + 15
        while set(left) - running and time.monotonic() < until:
            time.sleep(0.1)
            left = own_processes()
        self.assertEqual(set(left) - running, set())
        self.assertEqual(left_behind(before["shm"]), set())
        self.assertEqual(after["tmp"] - before["tmp"], set())
        self.assertLessEqual(after["sysv"], before["sysv"])
        half = len(peaks) // 2
        memory = [m for m, _ in peaks]
        self.assertLess(max(memory[half:]), 1.2 * max(memory[:half]), "each run takes more memory than the one before")
        descriptors = [d for _, d in peaks]
        self.assertLess(max(descriptors[half:]), 1.5 * max(descriptors[:half]) + 8, "each run opens more than the one before")
        tenth = max(1, len(peaks) // 10)
        print(f"{ROUNDS} rounds: peak memory {statistics.median(memory[:tenth]) / 1024:.1f} MiB in the first tenth, "
              f"{statistics.median(memory[-tenth:]) / 1024:.1f} MiB in the last, at most {max(memory) / 1024:.1f} MiB; "
              f"descriptors of the supervisor at most {max(descriptors[:tenth])} and {max(descriptors[-tenth:])}; "
              "no process, segment, semaphore or temporary file left")
        count("endurance", cases=ROUNDS, survived=ROUNDS)

    def test_two_at_once(self):
        args = ["--sizes", "4:64K", "--format", "json"]
        both = [subprocess.Popen([str(BINARY), *args], env=BASE_ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True) for _ in range(2)]
        for p in both:
            out, err = p.communicate(timeout=120)
            self.assertEqual(p.returncode, 0, err)
            self.assertIn('"wrong": 0', out)

    def test_no_descriptor_is_inherited_or_leaked(self):
        """With few descriptors to have, a leak per probe or rank would show."""
        p = run("--sizes", "4:64K", "--format", "json", preexec_fn=lambda: __import__("resource").setrlimit(
            __import__("resource").RLIMIT_NOFILE, (96, 96)))
        self.assertIn(p.returncode, (0, 1), p.stderr)
        self.json_of(p)


main()
