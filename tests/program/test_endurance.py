"""Run after run leaves nothing behind, and two runs at once do not disturb each other. SHAKEDOWN_ROUNDS=1000 for the
long form."""
import glob, os, pathlib, subprocess, tempfile, time
from support import BASE_ENV, BINARY, Case, left_behind, main, own_shm, run

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
        return {"shm": own_shm(), "tmp": {n for n in os.listdir(tempfile.gettempdir()) if "shakedown" in n or "shk" in n},
                "sysv": sysv_segments()}

    def test_nothing_is_left_behind(self):
        running = set(own_processes())
        before, peaks = self.traces(), []
        for _ in range(ROUNDS):
            p = subprocess.Popen([str(BINARY), "--sizes", "4:64K", "--format", "json", "-o", os.devnull + "/none"],
                                 env=BASE_ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(p.returncode, 4)  # the report has no place to go; all the work was done
            peaks.append(usage.ru_maxrss)
        time.sleep(0.3)
        after = self.traces()
        self.assertEqual(set(own_processes()) - running, set())
        self.assertEqual(left_behind(before["shm"]), set())
        self.assertEqual(after["tmp"] - before["tmp"], set())
        self.assertLessEqual(after["sysv"], before["sysv"])
        half = len(peaks) // 2
        self.assertLess(max(peaks[half:]), 1.2 * max(peaks[:half]), "each run takes more memory than the one before")

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
