"""The history: when runs were, the database and its writers, trends, fleets, profiles of good nodes."""
import datetime, random, shutil, sqlite3, textwrap
from support import *

# The last day whose run at three o'clock is over.
TODAY = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=4)).date()
MADE = SOURCE / "tests" / "tools" / "history_made"
SCORE = SOURCE / "tests" / "tools" / "history_score"


def present(value):
    return {"state": "present", "value": value}


def document(node, day=0, busbw=380.0, **facts):
    """A report of one node, `day` days ago."""
    start = datetime.datetime.combine(TODAY, datetime.time(3)) - datetime.timedelta(days=day)
    doc = {"host.name": present(node), "run.start": present(start.isoformat() + "Z"), "run.seconds": present(12.5),
           "collective.nccl.status": present("ok"),
           "collective.nccl.sizes": present([{"bytes": 8, "time_us": 20.0, "busbw": 0.1},
                                             {"bytes": 1 << 28, "time_us": 900.0, "busbw": busbw}]),
           "nvml.driver": present("535.183.01")}
    doc.update({k.replace("__", "."): present(v) for k, v in facts.items()})
    return {"schema": "shakedown.report/2", "findings": [], "nodes": [
        {"schema": "shakedown.facts/1", "name": node, "profile": "dgx-ib", "facts": doc}]}


class InFolder(Case):
    def setUp(self):
        super().setUp()
        where = tempfile.TemporaryDirectory()
        self.addCleanup(where.cleanup)
        self.folder = pathlib.Path(where.name)
        self.db = self.folder / "history.db"

    def write(self, name, *docs):
        path = self.folder / name
        path.write_text("\n".join(map(json.dumps, docs)))
        return path

    def add(self, *paths, code=0):
        p = run("history", "add", *paths, self.db)
        self.assertEqual(p.returncode, code, p.stderr)
        return p.stderr

    def json(self, *args):
        p = run(*args, "--format", "json")
        self.assertIn(p.returncode, (0, 1, 3), p.stderr)
        doc = json.loads(p.stdout)
        if args[0] in ("history", "fleet"):
            import jsonschema
            jsonschema.validate(doc, json.loads((SOURCE / "reports" / "schema" / "history-1.schema.json").read_text()))
        return doc


class Times(InFolder):
    def test_every_document_and_format_says_when(self):
        facts = self.folder / "facts.json"
        env = {"SLURM_JOB_ID": "7104221", "SLURM_NTASKS": "1"}
        self.assertEqual(run("probe", "--quick", "-o", facts, env=env).returncode, 0)
        doc = json.loads(facts.read_text())["facts"]
        start = doc["run.start"]["value"]
        self.assertRegex(start, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertGreater(doc["run.seconds"]["value"], 0)
        self.assertEqual(doc["job.id"]["value"], "7104221")
        for name in ("term", "md", "json", "html", "junit", "line", "github"):
            first = run("check", facts, "--format", name).stdout
            self.assertIn(start, first, name)
            self.assertIn("7104221", first, name)
            time.sleep(0.01)
            self.assertEqual(run("check", facts, "--format", name).stdout, first, name)
            hidden = run("check", facts, "--format", name, "--anonymize").stdout
            self.assertNotIn("7104221", hidden, name)
            self.assertNotIn(start, hidden, name)
            self.assertIn(start[:10], hidden, name)
        prom = run("check", facts, "--format", "prom").stdout
        at = datetime.datetime.fromisoformat(start.replace("Z", "+00:00")).timestamp()
        self.assertIn(f"shakedown_last_run_timestamp_seconds {at:.10g}", prom)
        self.assertNotRegex(prom, r'(?m)^[^#].*7104221"')

    def test_a_document_without_a_time_has_none(self):
        doc = document("n1")
        del doc["nodes"][0]["facts"]["run.start"]
        path = self.write("a.json", doc)
        self.assertNotIn("start", self.json("check", path))

    def test_diff_sets_times_aside(self):
        a, b = self.write("a.json", document("n1", 1)), self.write("b.json", document("n1", 0))
        self.assertEqual(run("diff", a, b).returncode, 0)


class Database(InFolder):
    def test_the_same_file_twice_is_one_run(self):
        path = self.write("a.json", document("n1", 1), document("n2", 1))
        self.assertIn("2 runs added, 0 already present", self.add(path))
        self.assertIn("0 runs added, 2 already present", self.add(path))

    def test_facts_are_judged_on_the_way(self):
        doc = document("n1", 1)["nodes"][0]
        doc["facts"]["limits.memlock"] = present({"soft": 65536, "hard": 65536})
        doc["facts"]["pci.count.efa"] = present(4)
        self.add(self.write("a.json", doc))
        state = self.json("fleet", self.db)
        self.assertEqual(state["nodes"], 1)
        self.assertTrue(state["worst"][0]["issues"])

    def test_what_says_no_time_or_node_is_left_out_and_said(self):
        undated, unnamed, future = document("n1"), document("n2"), document("n3", -30)
        del undated["nodes"][0]["facts"]["run.start"]
        del unnamed["nodes"][0]["facts"]["host.name"]
        said = self.add(self.write("a.json", undated, unnamed, future, document("n4")), code=2)
        self.assertIn("1 run added, 0 already present, 3 skipped", said)

    def test_retention_bounds_it(self):
        self.add(self.write("a.json", *[document("n1", d) for d in range(0, 100, 10)]))
        p = run("history", "add", self.write("b.json", document("n1", 1)), self.db, "--keep", "45")
        self.assertEqual(p.returncode, 0, p.stderr)
        with sqlite3.connect(self.db) as db:
            self.assertEqual(db.execute("select count(*) from run").fetchone(), (6,))
            self.assertEqual(db.execute("select count(*) from sample").fetchone(), (12,))

    def refused(self, text):
        for args in (("history", "--history", self.db), ("fleet", self.db),
                     ("history", "add", self.write("x.json", document("n9")), self.db)):
            p = run(*args)
            self.assertEqual((p.returncode, p.stdout), (2, ""), args)
            self.assertEqual(len(p.stderr.splitlines()), 1, p.stderr)
            self.assertRegex(p.stderr, text)

    def test_hostile_files_are_one_line(self):
        good = self.folder / "good.db"
        p = run("history", "add", self.write("a.json", document("n1")), good)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.db.write_text("no database at all, and longer than the header of one" * 20)
        self.refused("not a history database")
        self.db.unlink()
        with sqlite3.connect(self.db) as db:
            db.execute("create table t(x)")
        self.refused("another program")
        self.db.unlink()
        self.db.symlink_to(good)
        self.refused("symbolic link")
        self.db.unlink()
        for statement, text in (("pragma user_version=7", "newer shakedown"),
                                ("create trigger t after insert on run begin delete from run; end", "not the schema"),
                                ("create view v as select 1", "not the schema")):
            shutil.copy(good, self.db)
            with sqlite3.connect(self.db) as db:
                db.execute(statement)
            self.refused(text)
        shutil.copy(good, self.db)
        self.db.chmod(0o666)
        self.refused("everybody may write it")
        self.db.unlink()
        self.db.mkdir()
        self.refused("not a regular file|no \\*.json in this folder")
        self.db.rmdir()
        os.mkfifo(self.db)
        self.refused("not a regular file")

    def test_a_damaged_file_never_ends_in_a_crash(self):
        self.add(self.write("a.json", *[document(f"n{i}", d) for i in range(8) for d in range(8)]))
        whole = self.db.read_bytes()
        dice = random.Random(25)
        for _ in range(25):
            broken = bytearray(whole)
            for _ in range(dice.randrange(1, 60)):
                broken[dice.randrange(len(broken))] = dice.randrange(256)
            self.db.write_bytes(broken[:dice.randrange(100, len(broken))] if dice.random() < 0.3 else broken)
            for args in (("history", "--history", self.db), ("fleet", self.db)):
                p = run(*args)
                self.assertIn(p.returncode, (0, 1, 2, 4), p.stderr)
                if p.returncode in (2, 4):
                    self.assertEqual(len(p.stderr.splitlines()), 1, p.stderr)

    def test_a_missing_one_is_not_made_by_a_reader(self):
        p = run("history", "--history", self.db)
        self.assertEqual(p.returncode, 2)
        self.assertFalse(self.db.exists())


class Writers(InFolder):
    def test_fifty_writers_killed_at_random(self):
        """No row that a writer reported is lost, none is there by half, and the rest can be added later."""
        paths = [self.write(f"w{i}.json", *[document(f"n{i}", d) for d in range(20)]) for i in range(50)]
        dice = random.Random(7)
        live = [subprocess.Popen([str(BINARY), "history", "add", str(p), str(self.db)], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True, env=BASE_ENV) for p in paths]
        victims = dice.sample(range(50), 20)
        for i in victims:
            time.sleep(dice.random() * 0.15)
            live[i].kill()
        ended = [(p.communicate(timeout=170)[1], p.returncode) for p in live]
        sure = [i for i, (_, code) in enumerate(ended) if code == 0]
        self.assertEqual([e for e in ended if e[1] not in (0, -signal.SIGKILL)], [])
        self.assertGreaterEqual(len(sure), 30)
        self.assertEqual(self.json("history", "--history", self.db)["runs"] % 20, 0)
        with sqlite3.connect(self.db) as db:
            self.assertEqual(db.execute("pragma integrity_check").fetchall(), [("ok",)])
            rows = dict(db.execute("select n.text, count(*) from run r join name n on n.id=r.node group by 1"))
            for i in sure:
                self.assertEqual(rows.get(f"n{i}"), 20)
            self.assertEqual(set(rows.values()), {20})
            self.assertEqual(db.execute("select count(*) from run where id not in (select run from sample)").fetchone(), (0,))
        p = run("history", "add", *paths, self.db)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(self.json("history", "--history", self.db)["runs"], 1000)


class Trends(InFolder):
    def test_what_was_planted_is_found_and_nothing_else(self):
        """The same with 1000 nodes and every day by hand: tests/tools/history_made and history_score."""
        made = self.folder / "made"
        subprocess.run([sys.executable, MADE, made, "--nodes", "60", "--days", "60"], check=True, timeout=120)
        self.add(made)
        p = subprocess.run([sys.executable, SCORE, BINARY, self.db, made / "planted.json.txt", "--every", "12"],
                           capture_output=True, text=True, timeout=300)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)

    def test_nothing_is_said_of_the_first_runs(self):
        self.add(self.write("a.json", *[document(f"n{i}", d, 380 if d else 200) for i in range(3) for d in range(4)]))
        self.assertEqual(self.json("history", "--history", self.db)["rows"], [])

    def test_where_nothing_could_be_compared_nothing_is_well(self):
        self.add(self.write("a.json", *[document("n1", d) for d in range(4)]))
        doc = self.json("history", "--history", self.db)
        self.assertEqual((doc["verdict"], doc["compared"], doc["rows"]), ("unknown", 0, []))
        self.assertGreater(doc["few"], 0)
        for args in (["history"], ["history", "n1"]):
            page = self.folder / "page.html"
            self.assertEqual(run(*args, "--history", self.db, "-o", page).returncode, 0)
            self.assertIn('class="banner unknown"', page.read_text())
        self.assertIn("nothing can be compared yet: 2 values have neither 19 runs nor 8 nodes",
                      " ".join(run("history", "--history", self.db).stdout.split()))
        self.add(self.write("b.json", *[document("n1", d) for d in range(4, 30)]))
        doc = self.json("history", "--history", self.db)
        self.assertEqual((doc["verdict"], doc["few"]), ("pass", 0))
        self.assertIn("no node has changed, and none differs from the others of its kind", run("history", "--history", self.db).stdout)

    def counted(self, day, read, **errors):
        """Of a port whose counter stands still; `read` False: it could not be read on that day."""
        totals = {"read": ["mlx5_0/1"], "errors": {"mlx5_0/1": errors}} if read else \
            {"read": [], "errors": {}, "unread": {"mlx5_0/1": "no answer"}}
        return document("n1", day, counters__totals=totals)

    def test_a_counter_that_was_not_read_is_not_zero(self):
        """Read only now and then, it does not rise each time; read, it does."""
        self.add(self.write("a.json", *[self.counted(d, d % 2, link_downed=7) for d in range(24)]))
        p = run("history", "--history", self.db, "--format", "json")
        self.assertEqual((p.returncode, json.loads(p.stdout)["rows"]), (0, []))
        other = self.folder / "other.db"
        rising = self.write("b.json", *[self.counted(d, True, link_downed=40 - d) for d in range(24)])
        self.assertEqual(run("history", "add", rising, other).returncode, 0)
        p = run("history", "--history", other, "--format", "json")
        self.assertEqual((p.returncode, json.loads(p.stdout)["verdict"]), (1, "fail"))
        zero = self.write("c.json", *[self.counted(d, True, **({"link_downed": 20 - d} if d < 6 else {})) for d in range(24)])
        third = self.folder / "third.db"
        self.assertEqual(run("history", "add", zero, third).returncode, 0)
        self.assertEqual(run("history", "--history", third).returncode, 1)

    def software(self, before, after):
        docs = [document("n1", d, 350 if d < 20 else 380 + d % 3) for d in range(60)]
        for day, doc in enumerate(docs):
            doc["nodes"][0]["facts"].update(after if day < 20 else before)
        path = self.folder / f"{random.random()}.db"
        self.assertEqual(run("history", "add", self.write("a.json", *docs), path).returncode, 0)
        return self.json("history", "--history", path)["rows"][0]["software"]

    def test_what_was_not_read_did_not_change(self):
        there, gone = {"host.bios": present("1.2")}, {"host.bios": {"state": "absent"}}
        looked, lacks = {"environment.looked_for": present([])}, {"host.bios": {"state": "failed", "reason": "no answer"}}
        self.assertEqual(self.software(there, lacks), [])
        self.assertEqual(self.software(there, {}), [])
        self.assertEqual(self.software(there, gone)[0]["path"], "host.bios")
        self.assertEqual(self.software(gone, there)[0]["to"], "1.2")
        debug = {"env.NCCL_ALGO": present("Ring"), **looked}
        self.assertEqual(self.software(looked, debug)[0]["path"], "env.NCCL_ALGO")
        self.assertEqual(self.software({}, debug), [])

    def test_one_node_and_its_events(self):
        docs = [document("n1", d, 350 if d < 20 else 380 + d % 3, nvml__driver="550.1" if d < 20 else "535.1") for d in range(60)]
        self.add(self.write("a.json", *docs))
        p = run("history", "n1", "busbw.nccl", "--history", self.db, env={"LC_ALL": "C"})
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("nvml.driver: 535.1 -> 550.1", p.stdout)
        self.assertTrue(p.stdout.isascii())
        self.assertRegex(p.stdout, r"(?m)^ +[_.:=+*#-]{60}$")
        self.assertIn("\u2588", run("history", "n1", "--history", self.db, env={"LC_ALL": "C.UTF-8"}).stdout)
        page = self.folder / "page.html"
        self.assertEqual(run("history", "n1", "--history", self.db, "-o", page).returncode, 0)
        self.assertIn("<polyline", page.read_text())
        row = self.json("history", "--history", self.db)["rows"][0]
        self.assertEqual((row["change"], row["now"]), ("step", 350))
        self.assertEqual([c["path"] for c in row["software"]], ["nvml.driver"])
        before = self.json("history", "--history", self.db, "--until", (TODAY - datetime.timedelta(21)).isoformat())
        self.assertEqual(before["rows"], [])

    def test_unknown_words_and_days(self):
        self.add(self.write("a.json", document("n1")))
        self.assertIn("neither a node nor a metric", run("history", "nope", "--history", self.db).stderr)
        self.assertEqual(run("history", "--history", self.db, "--until", "yesterday").returncode, 2)


class Verdicts(InFolder):
    def rows(self, path, *args):
        p = run("check", path, "--format", "json", *args)
        report = json.loads(p.stdout)
        return p, {f["setting"]: f for f in report["findings"] if f["family"] in ("history", "baseline")}

    def test_against_its_own_past_and_its_siblings(self):
        past = [document(f"n{i}", d, 380 + (d * 7 + i) % 5) for i in range(10) for d in range(2, 22)]
        self.add(self.write("past.json", *past))
        good, slow = self.write("g.json", document("n1", 1, 381)), self.write("s.json", document("n1", 0, 350))
        p, rows = self.rows(good, "--history", self.db)
        self.assertEqual(rows["busbw.nccl"]["verdict"], "pass")
        again, _ = self.rows(good, "--history", self.db)
        self.assertEqual(again.stdout, p.stdout)
        _, rows = self.rows(slow, "--history", self.db)
        row = rows["busbw.nccl"]
        self.assertEqual((row["verdict"], row["observed"], row["nodes"]), ("warn", "350 GB/s", ["n1"]))
        self.assertRegex(row["why"], "38[0-9].*last 21 runs.*no version or setting.*9 other nodes .* 38[0-9]")
        self.assertEqual(self.json("history", "--history", self.db)["runs"], 202)

    def test_never_on_the_first_run_and_never_silent_about_software(self):
        _, rows = self.rows(self.write("a.json", document("n1", 30, 100)), "--history", self.db)
        self.assertEqual(rows["busbw.nccl"]["verdict"], "unknown")
        self.add(self.write("past.json", *[document("n1", d, 380 + d % 3) for d in range(2, 22)]))
        _, rows = self.rows(self.write("b.json", document("n1", 0, 350, nvml__driver="550.1")), "--history", self.db)
        self.assertEqual(rows["busbw.nccl"]["verdict"], "warn")
        self.assertIn("nvml.driver 535.183.01 -> 550.1", rows["busbw.nccl"]["why"])

    def test_against_good_nodes(self):
        folder = self.folder / "good"
        folder.mkdir()
        slow = self.write("s.json", document("n9", 0, 350, nvml__driver="550.1"))
        for i in range(4):
            _, rows = self.rows(slow, "--baseline", folder) if i else (None, {})
            if 0 < i < 3:
                self.assertEqual(rows["busbw.nccl"]["verdict"], "unknown")
            (folder / f"{i}.json").write_text(json.dumps(document(f"g{i}", 1, 380 + i)))
        _, rows = self.rows(slow, "--baseline", folder)
        self.assertEqual(rows["busbw.nccl"]["verdict"], "warn")
        self.assertIn("380 GB/s", rows["busbw.nccl"]["why"])
        self.assertIn("nvml.driver 550.1 (good: 535.183.01)", rows["versions and settings"]["observed"])
        _, rows = self.rows(self.write("f.json", document("n9", 0, 379)), "--baseline", folder)
        self.assertEqual({r["verdict"] for r in rows.values()}, {"pass"})


class Profiles(InFolder):
    def make(self, *paths):
        out = self.folder / "site.yaml"
        p = run("profile", "--from", *paths, "-o", out)
        self.assertEqual(p.returncode, 0, p.stderr)
        p = run("config", "check", out)
        self.assertEqual(p.returncode, 0, p.stderr)
        return out

    def judge(self, facts, profile):
        path = self.write("node.json", {"schema": "shakedown.facts/1", "facts": facts})
        p = run("check", path, "--profile", profile, "--fail-on", "warn", "--format", "json")
        return p.returncode, {f["setting"] for f in json.loads(p.stdout)["findings"] if f["verdict"] in ("warn", "fail")}

    def test_good_nodes_pass_and_mutated_ones_do_not(self):
        for name in ("aws-p5", "dgx-h100", "lumi-g", "vm"):
            facts = healthy_node(name)
            other = {**facts, "host.name": present("another")}
            paths = [self.write(f"g{i}.json", {"schema": "shakedown.facts/1", "facts": f}) for i, f in enumerate((facts, other))]
            profile = self.make(*paths)
            self.assertEqual(self.judge(facts, profile), (0, set()), name)
            self.assertEqual(self.judge({**facts, "host.kernel": present("4.18.0")}, profile)[1] & {"host.kernel"}, {"host.kernel"}, name)
            for key in ("pci.count.gpu-nvidia", "pci.count.gpu-amd", "pci.count.cxi", "pci.count.efa"):
                count = facts.get(key, {}).get("value") or 0
                if count > 1 and key in profile.read_text():
                    self.assertEqual(self.judge({**facts, key: present(count - 1)}, profile)[0], 1, (name, key))

    def test_floors_of_measurements(self):
        facts = healthy_node("dgx-h100")
        profile = self.make(self.write("a.json", {"schema": "shakedown.facts/1", "facts": facts}))
        key = "collective.peer.sizes"
        slow = [{**s, "busbw": s["busbw"] * 0.8} for s in facts[key]["value"]]
        self.assertEqual(self.judge({**facts, key: {**facts[key], "value": slow}}, profile), (1, {"busbw.peer"}))

    def test_floors_of_copies(self):
        def gpu(rank, **more):
            return {"rank": rank, "pci": f"0000:0{rank + 1}:00.0", "to_device": 55.0, "to_host": 54.0, "memory": 4100.0,
                    "memory_peak": 4917.0, "numa": 0, "near": True, "link": None, **more}

        def copies(*gpus, pairs=({"from": 0, "to": 1, "gbs": 370.0},)):
            return {**facts, "collective.peer.copies": present([{"node": "n1", "gpus": list(gpus), "pairs": list(pairs)}])}

        facts = healthy_node("dgx-h100")
        facts = copies(gpu(0), gpu(1, to_device=50.0))
        profile = self.make(self.write("a.json", {"schema": "shakedown.facts/1", "facts": facts}))
        self.assertIn('at-least: "48" # the worst of 1 good runs has 50 GB/s', profile.read_text())
        cases = {"copy.to_device": copies(gpu(0), gpu(1, to_device=40.0)), "copy.memory": copies(gpu(0, memory=3500.0), gpu(1)),
                 "copy.pair": copies(gpu(0), gpu(1), pairs=[{"from": 0, "to": 1, "gbs": 370.0}, {"from": 1, "to": 0, "gbs": 200.0}])}
        for name, bad in cases.items():
            self.assertEqual(self.judge(bad, profile)[1] & {n for n in cases}, {name})
        for unread in (copies(gpu(0), gpu(1, to_host=None)), copies(), {k: v for k, v in facts.items() if k != "collective.peer.copies"}):
            path = self.write("unread.json", {"schema": "shakedown.facts/1", "facts": unread})
            rows = json.loads(run("check", path, "--profile", profile, "--format", "json").stdout)["findings"]
            self.assertEqual([r["verdict"] for r in rows if r["setting"] == "copy.to_host"], ["unknown"])

    def test_captures(self):
        """What is wrong on a captured machine, its own profile neither hides nor adds to."""
        for capture in sorted(p for p in CAPTURES.iterdir() if p.is_dir()):
            path = self.folder / "capture.json"
            self.assertEqual(run("probe", "--sysroot", capture, "--quick", "-o", path).returncode, 0)
            facts = json.loads(path.read_text())["facts"]
            plain = json.loads(run("check", path, "--format", "json").stdout)
            before = {f["setting"] for f in plain["findings"] if f["verdict"] in ("warn", "fail")}
            profile = self.make(path)
            self.assertLessEqual(self.judge(facts, profile)[1], before, capture)
            code, worse = self.judge({**facts, "host.kernel": present("4.18.0")}, profile)
            self.assertEqual((code, (worse - before) & {"host.kernel"}), (1, {"host.kernel"}), capture)

    def test_nodes_of_two_kinds_and_no_document(self):
        paths = [self.write(f"{n}.json", {"schema": "shakedown.facts/1", "facts": healthy_node(n)}) for n in ("lumi-g", "aws-p5")]
        p = run("profile", "--from", *paths)
        self.assertEqual((p.returncode, p.stdout), (2, ""))
        self.assertIn("not of one kind", p.stderr)
        self.assertEqual(run("profile").returncode, 2)
        self.assertNotIn("nid005012", run("profile", "--from", paths[0], "--anonymize").stdout)

    def test_config_check_says_where_a_mistake_is(self):
        bad = self.folder / "bad.yaml"
        bad.write_text("name: x\ntitle: y\nsource: z\nfloors:\n  - {metric: busbw.nccl, why: a, source: b}\n")
        p = run("config", "check", bad)
        self.assertEqual((p.returncode, len(p.stderr.splitlines())), (2, 1))
        self.assertIn("bad.yaml:5", p.stderr)
        self.assertEqual(run("config", "chekc", bad).returncode, 2)
        self.assertEqual(run("config", "check", self.folder / "none.yaml").returncode, 2)


class Fleets(InFolder):
    def finding(self, node, day, scope="node", verdict="fail", **more):
        doc = document(node, day)
        doc["findings"] = [{"id": "limits.memlock", "family": "limits", "setting": "memlock", "verdict": verdict,
                            "evidence": "tested", "required": True, "observed": "64 KiB", "why": "RDMA needs more",
                            "diagnosis": "memlock-too-low", "scope": scope, "nodes": [node], **more}]
        return doc

    def test_drain_since_when_and_why(self):
        self.add(self.write("a.json", *[document("n1", d) for d in (9, 8, 7)],
                            *[self.finding("n1", d) for d in (6, 5, 4)], document("n2", 4)))
        p = run("fleet", self.db)
        self.assertEqual(p.returncode, 1, p.stderr)
        since = (TODAY - datetime.timedelta(6)).isoformat()
        self.assertRegex(p.stdout, rf"(?s)drain 1: n1\n.*memlock-too-low since {since}.*64 KiB.*RDMA needs\s+more")
        state = self.json("fleet", self.db)
        self.assertEqual(state["causes"][0]["nodes"], 1)
        page = self.folder / "f.html"
        self.assertEqual(run("fleet", self.db, "-o", page).returncode, 1)
        self.assertIn("memlock-too-low", page.read_text())

    def of_job(self, check, nodes=("n1",)):
        """The fleet after a FAIL that names no node, of a job of two."""
        doc = document(nodes[0], job__layout=[{"host": "n1", "ranks": 1}, {"host": "n2", "ranks": 1}])
        for name in nodes[1:]:
            doc["nodes"] += document(name)["nodes"]
        good = {"id": "x", "setting": "y", "verdict": "pass", "scope": "node", "nodes": list(nodes)}
        doc["findings"] = [good, {"id": check, "setting": "ranks", "verdict": "fail", "scope": "node", "observed": "2 of 3"}]
        path = self.folder / f"{random.random()}.db"
        self.assertEqual(run("history", "add", self.write("a.json", doc), path).returncode, 0)
        p = run("fleet", path, "--format", "json")
        fleet = json.loads(p.stdout)
        return p.returncode, [d["node"] for d in fleet["drain"]], fleet["verdicts"]

    def test_what_nobody_is_named_for_is_held_against_nobody(self):
        self.assertEqual(self.of_job("memlock"), (1, ["n1"], {"fail": 1}))
        self.assertEqual(self.of_job("job.missing"), (0, [], {"unknown": 1}))
        self.assertEqual(self.of_job("memlock", ("n1", "n2")), (0, [], {"unknown": 2}))

    def test_the_launch_and_warnings_never_drain(self):
        self.add(self.write("a.json", self.finding("n1", 1, scope="launch"), self.finding("n2", 1, verdict="warn")))
        p = run("fleet", self.db)
        self.assertEqual(p.returncode, 0, p.stdout)
        self.assertIn("no node needs to be drained", p.stdout)

    def test_a_node_that_is_well_again_is_not_drained(self):
        self.add(self.write("a.json", self.finding("n1", 2), document("n1", 1)))
        self.assertEqual(run("fleet", self.db).returncode, 0)

    def test_a_folder_and_made_up_names(self):
        self.write("a.json", self.finding("secret77", 1))
        self.assertIn("secret77", run("fleet", self.folder).stdout)
        hidden = run("fleet", self.folder, "--anonymize")
        self.assertEqual(hidden.returncode, 1)
        self.assertNotIn("secret77", hidden.stdout)


main()
