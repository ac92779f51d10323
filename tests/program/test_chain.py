"""Why a provider or a plugin does not work: what users read, on this machine and on captures."""
import json
import os
import pathlib
import support
from support import CAPTURES, run


def chains(report):
    return {f["setting"].split()[1]: f for f in report["findings"]
            if f["id"] == "fabric.provider" and f["setting"].startswith("provider ")}


def has_adapter(vendor, devices):
    """Independent of the program: is such a function on this machine's PCI bus?"""
    for function in pathlib.Path("/sys/bus/pci/devices").glob("*"):
        try:
            if (function / "vendor").read_text().strip() == vendor and \
                    any((function / "device").read_text().startswith(d) for d in devices):
                return True
        except OSError:
            continue
    return False


class Chains(support.Case):
    def test_quick_names_the_first_broken_link_of_each(self):
        result = run("--quick", "--format", "json")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        rows = chains(self.json_of(result))
        self.assertLessEqual({"efa", "cxi", "verbs"}, set(rows))
        texts = {name: rows[name]["observed"] for name in ("efa", "cxi", "verbs")}
        self.assertEqual(len(set(texts.values())), 3, texts)
        rdma = os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband")
        absent = {"efa": not has_adapter("0x1d0f", ["0xefa"]) and not rdma,
                  "cxi": not has_adapter("0x17db", ["0x0501"]) and not has_adapter("0x1590", ["0x0371"]),
                  "verbs": not has_adapter("0x15b3", ["0x"]) and not rdma}
        for name, missing in absent.items():
            if missing and rows[name]["verdict"] == "na":
                self.assertRegex(texts[name], r"^first broken link: pci: no ")

    def test_what_is_asked_for_is_judged(self):
        if has_adapter("0x1d0f", ["0xefa"]):
            self.skipTest("this machine has EFA")
        rows = chains(self.json_of(run("--quick", "--format", "json", env={"FI_PROVIDER": "efa"})))
        self.assertIn(rows["efa"]["verdict"], ("fail", "warn"))
        self.assertEqual(rows["efa"]["diagnosis"], "efa-provider-absent")
        self.assertEqual(rows["cxi"]["verdict"], "na")

    def test_facts_hold_what_was_read_and_no_judgement(self):
        facts = json.loads(run("probe", "--quick").stdout)["facts"]
        self.assertEqual([key for key in facts if key.startswith("why.")], [])
        for plugin in facts["plugin.candidates"].get("value") or []:
            self.assertNotIn("steps", plugin)

    def test_a_capture_has_the_chain_too(self):
        rows = chains(self.json_of(run("--sysroot", CAPTURES / "efa-no-provider", "--format", "json")))
        self.assertIn("efa", rows)
        self.assertIn("first broken link: ", rows["efa"]["observed"])


if __name__ == "__main__":
    support.main()
