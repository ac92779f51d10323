"""Known defects of releases (config/defects): each is found with a release that has it, is a guess or nothing where the release is not
known, and nothing with a release that does not have it, or without its sign."""
import json, pathlib, re, tempfile
from support import Case, SOURCE, main, read_yaml, run

TABLE = json.loads((SOURCE / "tests/logs/defects.json").read_text())
# How a release stands in a log or in the output of a tool: of each library, the first form with the table's releases.
RELEASES = TABLE["releases"]


def before(version):
    """A release before this one, of its branch where it has one."""
    parts = [int(p) for p in re.match(r"[\d.]+", version)[0].strip(".").split(".")]
    at = max(i for i, p in enumerate(parts) if p)
    width = [len(p) for p in version.split(".")]
    return ".".join(str(p - (i == at)).zfill(width[i] if i < len(width) else 1) for i, p in enumerate(parts))


def numbers(version):
    return [int(p) for p in re.findall(r"\d+", version)]


class Defects(Case):
    @classmethod
    def setUpClass(cls):
        cls.rows = {}
        for path in sorted((SOURCE / "config/defects").glob("*.yaml")):
            cls.rows.update({row["name"]: row for row in read_yaml(path)})

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def causes(self, lines, *args):
        text = self.write("log", "".join(line + "\n" for line in lines))
        return self.json_of(run("diagnose", "--format", "json", "--log", text, *args))["diagnoses"]

    def of(self, name, lines):
        """The cause's row, if it is this defect that it tells of."""
        row = self.rows[name]
        key = row.get("diagnosis", "release-defect")
        meaning = " ".join(row["meaning"].split())
        return [c for c in self.causes(lines) if c["key"] == key and any(meaning[:60] in e for e in c["evidence"])]

    def line(self, name, version):
        return RELEASES[self.rows[name]["library"]][0].replace("{}", version)

    def test_every_defect_has_its_lines(self):
        self.assertEqual(sorted(self.rows), sorted(TABLE["defects"]))

    def test_with_a_release_that_has_it(self):
        for name, lines in TABLE["defects"].items():
            row = self.rows[name]
            for r in row["releases"]:
                seen = str(r["from"]) if "from" in r else before(str(r["fixed-in"]))
                with self.subTest(defect=name, release=seen):
                    [cause] = self.of(name, [self.line(name, seen), *lines])
                    if "diagnosis" not in row:  # the other lines of its own cause may make that likely
                        self.assertEqual(cause["confidence"] == "possible", not row.get("specific"))
                        self.assertIn(f" {seen}: {row['title']}", cause["title"])
                    if "fixed-in" in r:
                        self.assertIn(f" {r['fixed-in']} or a later release", cause["advice"])

    def test_with_a_good_release(self):
        for name, lines in TABLE["defects"].items():
            for r in self.rows[name]["releases"]:
                for good in [str(r["fixed-in"]) for _ in "x" if "fixed-in" in r] + [before(str(r["from"])) for _ in "x" if "from" in r]:
                    if any(numbers(str(o.get("from", "0"))) <= numbers(good) < numbers(str(o.get("fixed-in", "9999"))) for o in self.rows[name]["releases"]):
                        continue
                    with self.subTest(defect=name, release=good):
                        self.assertEqual(self.of(name, [self.line(name, good), *lines]), [])

    def test_without_a_release_or_a_sign(self):
        for name, lines in TABLE["defects"].items():
            row = self.rows[name]
            with self.subTest(defect=name):
                self.assertEqual([c["confidence"] for c in self.of(name, lines)], ["possible"] * bool(row.get("specific")))
                r = row["releases"][0]
                seen = str(r["from"]) if "from" in r else before(str(r["fixed-in"]))
                self.assertEqual(self.causes([self.line(name, seen)]), [])

    def test_forms_of_releases(self):
        """Each line is known as one that names a release of its library, and the release in braces is taken from it."""
        signatures = {row["version-of"]: row for row in read_yaml(SOURCE / "config/signatures/releases.yaml")}
        forms = [(library, form, re.search(r"\{(.+?)\}", form)[1]) for library, rows in RELEASES.items() for form in rows if "{}" not in form]
        lines = [re.sub(r"[{}]", "", form) for _, form, _ in forms]
        listed = run("list", "signatures", "--log", self.write("log", "\n".join(lines) + "\n")).stdout
        known = [{row.split("\t")[1] for row in listed.splitlines() if row.startswith(f"{at + 1}\t")} for at in range(len(lines))]
        for at, (library, _, version) in enumerate(forms):
            with self.subTest(line=lines[at]):
                self.assertIn(f"release-of-{library}", known[at])
                capture = signatures[library]["capture"].replace("(?<version>", "(?P<version>")
                self.assertTrue(re.search(capture, lines[at])["version"].startswith(version))


main()
