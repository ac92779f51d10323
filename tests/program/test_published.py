"""Environments that sites, vendors and frameworks publish, on healthy nodes of their kind. published.json says what is
worth a warning in each, judged by hand; everything else may be a note at most."""
import json
from support import SOURCE, Case, count, main, run

NODES = SOURCE / "tests" / "mutate" / "nodes"
KEPT = ("SLURM", "SLINGSHOT", "PMIX", "LD_", "NERSC", "PBS", "LMOD", "names_of", "files", "problems", "file_problems")
CHECKS = ("env.value", "env.profile", "env.conflict")


def node_facts(name):
    doc = json.loads((NODES / f"{name}.json").read_text())
    facts = node_facts(doc["like"]) if "like" in doc else {}
    for key in doc.get("without", []):
        facts.pop(key, None)
    facts.update(doc["facts"])
    return facts


def facts_of(item):
    facts = node_facts(item["node"])
    for key in list(facts):
        name = key.removeprefix("env.")
        if key in item.get("drop", []) or (name != key and not item.get("keep") and not name.startswith(KEPT)):
            del facts[key]
    facts.update(item.get("facts", {}))
    facts.update({f"env.{name}": value for name, value in item["env"].items()})
    return facts


class Published(Case):
    def test_only_what_costs_something_is_a_warning(self):
        items = json.loads((SOURCE / "tests" / "program" / "published.json").read_text())
        self.assertGreaterEqual(len(items), 16)
        for item in items:
            with self.subTest(item["name"]):
                path = self.scratch() / "facts.json"
                path.write_text(json.dumps({"schema": "shakedown.facts/1", "facts": facts_of(item)}))
                rows = [f for f in self.json_of(run("check", path, "--format", "json"))["findings"]
                        if f["id"] in CHECKS]
                bad = {f["setting"]: f["verdict"] for f in rows if f["verdict"] in ("warn", "fail")}
                count("published environments", 1, 1, bad != item["expect"])
                self.assertEqual(bad, item["expect"])
                for f in rows:
                    if f["verdict"] in ("warn", "fail"):
                        self.assertTrue(f.get("why") and f.get("source"), f)
                        self.assertIn(f["setting"].split(" + ")[0], f.get("fix", ""), f)

    def test_each_is_read_whole(self):
        """A variable of the list that a row could be about has one: none is passed over in silence."""
        for item in json.loads((SOURCE / "tests" / "program" / "published.json").read_text()):
            path = self.scratch() / "facts.json"
            path.write_text(json.dumps({"schema": "shakedown.facts/1", "facts": facts_of(item)}))
            rows = {f["setting"] for f in self.json_of(run("check", path, "--format", "json"))["findings"]}
            for name in item["env"]:
                if name.startswith(("NCCL_", "FI_", "NVSHMEM_", "NEURON_RT_", "HSA_", "CXI_")):
                    self.assertIn(name, rows, item["name"])


if __name__ == "__main__":
    main()
