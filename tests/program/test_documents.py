"""Every command in README.md and docs/ works: those of shakedown are run as they stand, the others must name things
that exist and carry a mark in the line before their paragraph, list or block:
    <!-- run by: tests/cluster/test_handover.py -->     another test runs it
    <!-- not run: needs root on every node -->          why no test can
A block says what it is: sh (commands), yaml, json, python, or text (what a program prints)."""
import json, pathlib, re, shlex, shutil, subprocess
import support
from support import BASE_ENV, BINARY, CAPTURES, SOURCE, Case

LANGUAGES = {"sh", "yaml", "json", "python", "text"}
DOCUMENTS = [SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md"))]
LINKED = [*DOCUMENTS, SOURCE / "CONTRIBUTING.md", SOURCE / "CHANGELOG.md", SOURCE / "tests/README.md"]
MARK = re.compile(r"<!-- (run by|not run): (.+?) -->")
# In prose: a program with something behind it. A name alone is a name.
COMMAND = re.compile(r"`((?:[A-Z_]+=\S+ )?(?:shakedown|srun|sbatch|mpirun|cmake|ctest|apt(?:-get)?|spack|git|docker|\./quickstart|"
                     r"tests/[a-z/_.]+(?=[ `])|config/[a-z/_.]+(?= ))(?: [^`]*)?)`")
LAUNCHED = re.compile(r"(?:[A-Z_]+=\S+ )*(shakedown( |$)|tests/tools/capture unpack )")
# What stands for what
WORDS = {"NAME": "NCCL_SOCKET_IFNAME", "KEY": "NCCL_SOCKET_IFNAME", "A": "good.json", "B": "bad.json", "FACTS": "good.json",
         "T": "shm", "CAPTURE": "capture", "…": "", "...": ""}
OPTIONS = {"--log": "slurm-17.out", "--profile": "site.yaml", "--config": "site", "--capture": "new"}
PROFILE = "name: site\ntitle: A site\nsettings: []\nsource: \"the test\"\n"


def chunks(path):
    """(line, mark, language or None for prose, text): blocks of code, and paragraphs, lists and tables between them."""
    mark, language, text, began = None, None, [], 1
    for n, line in enumerate(path.read_text().splitlines(), 1):
        fence = re.match(r"```(\w*)$", line)
        if fence and language is None or (language is None and not line.strip()) or (fence and language is not None):
            if text or (fence and language is not None):
                yield began, mark, language, "\n".join(text)
                mark = None
            language = (fence[1] if language is None else None) if fence else None
            text, began = [], n + 1
        elif language is None and MARK.match(line):
            mark = MARK.match(line).groups()
        else:
            text.append(line)
    if text:
        yield began, mark, language, "\n".join(text)


def commands(language, text):
    """The commands of a block or a paragraph."""
    if language == "sh":
        lines = (re.sub(r"\s+#( .*)?$", "", line).strip() for line in text.splitlines())
        return [line for line in lines if line and not line.startswith("#")]
    found = COMMAND.findall(text) if language is None else []
    # Names of what can be had, as "srun --mpi=pmix", are none
    return [c for c in found if " " in c and (not re.match(r"(srun|mpirun|git|spack|docker|apt-get) ", c) or "shakedown" in c)]


def filled(command):
    """The command with files of the test in place of what a reader fills in."""
    words = []
    for word in shlex.split(command):
        name = OPTIONS.get(words[-1]) if words and word.isupper() else None
        words.append(name or WORDS.get(word, word.split("|")[0]))
    return [w.replace("/var/lib/node_exporter/", "") for w in words if w]


class Documents(Case):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(cls.enterClassContext(support.tempfile.TemporaryDirectory()))
        facts = SOURCE / "tests/golden/facts/handmade.json"
        for name in ("facts", "node", "node1", "good", "bad", "yesterday", "today", "facts/a", "facts/b"):
            (cls.dir / name).parent.mkdir(exist_ok=True)
            shutil.copy(facts, cls.dir / f"{name}.json")
        (cls.dir / "site" / "settings").mkdir(parents=True)
        (cls.dir / "site.yaml").write_text(PROFILE)
        (cls.dir / "capture").symlink_to(CAPTURES / "slingshot-amd")
        (cls.dir / "tests").symlink_to(SOURCE / "tests")
        (cls.dir / "slurm-17.out").write_text("")
        cls.done = {}

    def shakedown(self, command):
        """The command's exit status is a verdict, and it says something."""
        words = filled(command.split(" | ")[0])
        env = dict(words.pop(0).replace("\u2026", "x").split("=", 1) for w in list(words) if re.match("[A-Z_]+=", w))
        if len(words) == 2 and words[1] in ("check", "diff", "diagnose", "explain", "hang"):
            words.append("--help")  # its name
        if words[1:2] == ["bench"] and "--sizes" not in words:
            words += ["--sizes", "4:64K"]  # a stand-in for a GPU takes most of a minute for the others
        words = [name for w in words for name in (sorted(p.name for p in self.dir.glob(w)) if "*" in w else [w])]
        line = shlex.join(words)
        if line in self.done:
            return
        path = f"{BINARY.parent}:/usr/local/bin:/usr/bin:/bin"
        words = [w.replace("/tmp/", f"{self.dir}/") for w in words]
        program = BINARY if words[0] == "shakedown" else SOURCE / words[0]
        fakes = {"LD_LIBRARY_PATH": str(support.FAKES / "gpu"), "SHK_FAKE_GPUS": "2"} if "peer" in words else {}
        p = subprocess.run(words, executable=str(program), env={**BASE_ENV, "PATH": path, **fakes, **env}, cwd=self.dir,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        self.done[line] = p.returncode
        self.assertIn(p.returncode, (0, 1, 3) if "diagnose" in line else (0, 1), f"{line}: {p.stderr}")
        self.assertTrue(p.stdout or p.stderr or "-o" in words or "--capture" in words or program != BINARY, f"{line} says nothing")

    def exists(self, command):
        """Presets, targets, scripts and tests that the command names."""
        words = command.split()
        presets = {p["name"]: p for p in json.loads((SOURCE / "CMakePresets.json").read_text())["configurePresets"]}
        folders = {p["binaryDir"].replace("${sourceDir}/", ""): p for p in presets.values()}
        lists = "".join(p.read_text() for p in SOURCE.glob("**/CMakeLists.txt")) + \
            "".join(p.read_text() for p in (SOURCE / "cmake").glob("*.cmake"))
        for before, word in zip(words, words[1:]):
            if before == "--preset":
                self.assertIn(word, presets)
            if before == "--test-dir" or (before == "--build" and word.startswith("build")):
                self.assertIn(word, folders, "no preset builds there")
            if before == "--target" and word != "bench_NAME":
                target = re.sub("^bench_", "bench(", word) if word.startswith("bench_") else f"add_custom_target({word}"
                self.assertIn(target, lists, "no such target")
        for word in words:
            if re.match(r"(tests|config)/", word) or word == "./quickstart":
                self.assertTrue((SOURCE / word).exists(), f"{word} is not there")

    def marked(self, path, mark, command):
        """The mark of a command that this test does not run."""
        self.assertTrue(mark, "it is neither run nor marked: <!-- run by: TEST --> or <!-- not run: WHY --> before it")
        if mark[0] == "run by":
            test = SOURCE / mark[1].split()[0]
            self.assertTrue(test.is_file(), f"{mark[1]} is no test")
        self.exists(command)

    def test_every_command(self):
        seen = 0
        for path in DOCUMENTS:
            for line, mark, language, text in chunks(path):
                for command in commands(language, text):
                    seen += 1
                    with self.subTest(f"{path.name}:{line}: {command}"):
                        if LAUNCHED.match(command) and not mark:
                            self.shakedown(command)
                        else:
                            self.marked(path, mark, command)
        self.assertGreater(seen, 60, "the documents have more commands than this")

    def test_every_block_says_what_it_is(self):
        for path in DOCUMENTS:
            for line, _, language, _ in chunks(path):
                if language is not None:
                    with self.subTest(f"{path.name}:{line}"):
                        self.assertIn(language, LANGUAGES)

    def test_every_link_leads_somewhere(self):
        """To a file, and to a heading of it as GitHub writes its anchor."""
        for path in LINKED:
            for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
                if re.match("[a-z]+:", link):
                    continue
                name, _, anchor = link.partition("#")
                there = (path.parent / name).resolve() if name else path
                with self.subTest(f"{path.name}: {link}"):
                    self.assertTrue(there.exists(), "no such file")
                    titles = re.findall(r"(?m)^#+ (.*)$", there.read_text()) if anchor else []
                    anchors = {re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles}
                    self.assertTrue(not anchor or anchor in anchors, f"no such heading: {sorted(anchors)}")

    def test_pages_for_users_need_no_page_for_developers(self):
        """README may lead to docs/dev in its last section; a page for users only to figures and limits."""
        for path in (SOURCE / "docs").glob("*.md"):
            for link in re.findall(r"\]\((dev/[^)#]+)", path.read_text()):
                self.assertIn(link, ("dev/performance.md", "dev/reliability.md"), path.name)

    def test_every_mark_stands_before_a_command(self):
        for path in DOCUMENTS:
            for line, mark, language, text in chunks(path):
                with self.subTest(f"{path.name}:{line}"):
                    self.assertTrue(not mark or commands(language, text), f"nothing to run behind {mark}")


if __name__ == "__main__":
    support.main()
