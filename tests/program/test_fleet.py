"""What was asked for happens or is said not to have; exit codes; fleets of one kind and of several."""
from support import *

HEALTHY = SOURCE / "tests" / "mutate" / "nodes"


def healthy_facts(name):
    doc = json.loads((HEALTHY / f"{name}.json").read_text())
    facts = healthy_facts(doc["like"]) if "like" in doc else {}
    for key in doc.get("without", []):
        facts.pop(key, None)
    return {**facts, **doc["facts"]}


def healthy(name, node=None):
    doc = {"schema": "shakedown.facts/1", "facts": healthy_facts(name)}
    if node:
        doc["facts"]["host.name"] = present(node)
    return doc


def present(value):
    return {"state": "present", "value": value}


class Fleet(Case):
    def check(self, docs, *args):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for i, doc in enumerate(docs):
                path = pathlib.Path(folder) / f"{i:03}.json"
                path.write_text(json.dumps(doc))
                paths.append(path)
            p = run("check", *paths, "--format", "json", *args)
        return p.returncode, json.loads(p.stdout) if p.stdout else None, p.stderr

    def rows(self, report, *verdicts):
        return [f for f in report["findings"] if f["verdict"] in verdicts]

    def agree(self, report, *verdicts):
        return [f for f in self.rows(report, *verdicts) if f["id"] == "nodes.agree"]


class ExitCodes(Fleet):
    """One for each line of the table in README.md and the manual."""

    def test_0_nothing_failed(self):
        self.assertEqual(self.check([healthy("perlmutter")])[0], 0)

    def test_0_a_required_check_is_unknown(self):
        doc = healthy("aws-p5")
        doc["facts"]["pci.count.gpu-nvidia"] = {"state": "failed", "reason": "denied"}
        self.assertEqual(self.check([doc])[0], 0)
        self.assertEqual(self.check([doc], "--fail-on", "unknown")[0], 3)

    def test_1_a_fail_and_a_warning(self):
        doc = healthy("aws-p5")
        doc["facts"]["pci.count.gpu-nvidia"] = present(7)
        code, report, _ = self.check([doc])
        self.assertEqual(code, 1)
        self.assertIn("7 of 8 nvidia on the bus", [f.get("observed") for f in self.rows(report, "fail")])
        doc = healthy("dgx-h100")
        doc["facts"]["rdma.devices"]["value"][3]["ports"][0]["rate"] = 100
        self.assertEqual(self.check([doc])[0], 0)
        code, report, _ = self.check([doc], "--fail-on", "warn")
        self.assertEqual((code, [f["id"] for f in self.rows(report, "warn")]), (1, ["nic.rate"]))

    def test_1_a_named_profile_that_is_not_here(self):
        for profile in ("generic-ib", "generic-roce", "generic-cxi", "lumi-g", "aws-p5"):
            code, report, _ = self.check([healthy("vm")], "--profile", profile)
            self.assertEqual((code, report["profile"]["name"]), (1, profile))
            self.assertIn("nic.count", [f["id"] for f in self.rows(report, "fail")], profile)

    def test_1_a_named_transport_that_cannot_run(self):
        for command in ("run", "bench"):
            for transport in ("nccl", "peer", "rccl", "neuron", "multimem"):
                p = run(command, "--transport", transport, "--format", "json")
                failed = [f["setting"] for f in self.rows(json.loads(p.stdout), "fail")]
                self.assertEqual(p.returncode, 1, (command, transport, p.stdout[-400:]))
                self.assertIn(f"all-reduce ({transport})", failed)

    def test_2_usage(self):
        self.assertEqual(run("check", "/nonexistent").returncode, 2)

    def test_3_named_and_not_testable(self):
        ghost = {"schema": "shakedown.facts/1", "facts": {"host.name": present("ghost")}}
        code, report, _ = self.check([ghost])
        self.assertEqual((code, report["summary"]["verdict"]), (3, "unknown"))
        self.assertEqual(self.check([ghost, healthy("vm")])[0], 3)
        doc = healthy("lumi-g")
        doc["facts"]["pci.count.cxi"] = {"state": "failed", "reason": "denied"}
        self.assertEqual(self.check([doc], "--profile", "lumi-g")[0], 3)
        for args in (["--quick"], ["--sysroot", CAPTURES / "slingshot-amd"]):
            self.assertEqual(run("run", "--transport", "nccl", *args).returncode, 3, args)

    def test_4_no_output(self):
        p = run("run", "--quick", "-o", "/dev/full")
        self.assertEqual(p.returncode, 4, p.stderr)


class Profiles(Fleet):
    def test_a_signal_that_was_not_read(self):
        doc = healthy("mi300x")
        doc["facts"]["rdma.devices"] = {"state": "failed", "reason": "denied"}
        code, report, _ = self.check([doc])
        self.assertEqual((code, report["summary"]["verdict"]), (0, "unknown"))
        self.assertIn("profile uncertain: rdma.devices could not be read", report["profile"]["why"])
        self.assertEqual(self.check([doc], "--fail-on", "unknown")[0], 3)

    def test_healthy_nodes_are_certain(self):
        for path in sorted(HEALTHY.glob("*.json")):
            self.assertNotIn("uncertain", self.check([healthy(path.stem)])[1]["profile"]["why"])

    def test_mixed(self):
        docs = [healthy("aws-p5", f"p{i}") for i in range(3)] + [healthy("aws-trn1", f"t{i}") for i in range(2)]
        code, report, _ = self.check(docs)
        self.assertEqual((code, self.rows(report, "fail", "warn")), (0, []))
        self.assertIn("aws-p5 (3 nodes), aws-trn1 (2 nodes)", report["profile"]["why"])
        self.assertEqual([n["profile"] for n in report["nodes"]], ["aws-p5"] * 3 + ["aws-trn1"] * 2)
        self.assertEqual(len(self.agree(report, "pass")), 2)
        code, report, _ = self.check(docs, "--profile", "aws-p5")
        self.assertEqual((code, {n["profile"] for n in report["nodes"]}), (1, {"aws-p5"}))

    def test_causes_are_sought_among_nodes_that_are_alike(self):
        """Libraries and settings of other hardware differ; of the same hardware they must not."""
        docs = [healthy(name, name) for name in ("aws-p5", "aws-trn1", "dgx-h100", "lumi-g", "mi300x", "vm")]
        self.assertEqual(self.check(docs)[1]["diagnoses"], [])
        other = healthy("aws-p5", "another")
        other["facts"]["nccl.version"] = present("2.21.5")
        keys = [d["key"] for d in self.check(docs + [other])[1]["diagnoses"]]
        self.assertEqual(keys, ["nccl-version-differs-across-ranks"])

    def test_a_node_that_lost_its_gpus_is_compared(self):
        docs = [healthy("mi300x", f"m{i}") for i in range(5)]
        docs[2]["facts"]["pci.count.gpu-amd"] = present(7)
        odd = self.agree(self.check(docs)[1], "warn")
        self.assertEqual([(f["setting"], f["nodes"]) for f in odd], [("pci.count.gpu-amd", ["m2"])])


class Hosts(Fleet):
    """A host is one node, however many documents of it there are, and however many hosts."""

    LAST = "host m01: several documents{}; the last one counts"

    def look(self, docs):
        """The nodes, those that differ from the others, and what is said on stderr."""
        code, report, err = self.check(docs)
        self.assertEqual(code, 0, err)
        odd = {n for f in self.agree(report, "warn") for n in f["nodes"]}
        return sorted(str(n["name"]) for n in report["nodes"]), odd, err

    @staticmethod
    def lost():
        doc = healthy("mi300x", "m01")
        doc["facts"]["pci.count.gpu-amd"] = present(7)
        return doc

    def test_two_documents_of_one_host(self):
        for hosts in (4, 66):
            with self.subTest(hosts=hosts):
                docs = [healthy("mi300x", f"m{i:02}") for i in range(hosts)]
                whole = self.look(docs)
                self.assertEqual(whole[1:], (set(), ""))
                self.assertEqual(self.look([*docs, docs[1]]), whole)
                # the odd one comes last and counts, or first and does not
                nodes, odd, err = self.look([*docs, self.lost()])
                self.assertEqual(odd, {"m01"})
                self.assertIn("m01", nodes)
                self.assertIn(self.LAST.format(" that differ"), err)
                nodes, odd, err = self.look([self.lost(), *docs])
                self.assertEqual((nodes, odd), (whole[0], set()))
                self.assertIn(self.LAST.format(" that differ"), err)

    def test_documents_in_an_array(self):
        docs = [healthy("mi300x", f"m{i:02}") for i in range(66)]
        for order, bad in (([*docs, [self.lost()]], True), ([[self.lost()], *docs], False),
                           ([*docs, [self.lost(), docs[1]]], False)):
            nodes, odd, err = self.look(order)
            self.assertEqual(odd, {"m01"} if bad else set())
            self.assertIn(self.LAST.format(""), err)


class Agree(Fleet):
    def vary(self, base, change, at=2, nodes=6):
        docs = [healthy(base, f"n{i}") for i in range(nodes)]
        change(docs[at]["facts"])
        return self.agree(self.check(docs)[1], "warn", "fail", "unknown")

    def test_what_does_not_count(self):
        def iommu(f):
            for d in f["pci.devices"]["value"]:
                d["iommu_group"] = str(int(d["iommu_group"] or 0) + 7)

        def minor(f):
            for d in f["gpu.nvidia.devices"]["value"]:
                d["minor"] = 7 - d["minor"]

        def bus(f):
            text = json.dumps(f).replace("0000:53:00.0", "0000:54:00.0").replace("0000:51:00.0", "0000:57:00.0")
            f.update(json.loads(text))

        def aer(f):
            f["pci.devices"]["value"][0]["aer"] = {"correctable": {"RxErr": 3}, "nonfatal": {}, "fatal": {}}

        def veth(f):
            f["net.ifaces"]["value"].append({"name": "veth1", "up": True, "running": True, "loopback": False,
                                             "virtual": True, "driver": "veth", "mtu": 1500, "addrs": []})

        def usb(f):
            f["net.ifaces"]["value"].append({"name": "usb0", "up": False, "running": False, "loopback": False,
                                             "virtual": False, "driver": "cdc_ether", "mtu": 1500, "addrs": []})

        def nproc(f):
            f["limits.nproc"] = present({"soft": 999, "hard": 999})

        for change in (iommu, minor, bus, aer, veth, usb, nproc):
            self.assertEqual(self.vary("dgx-h100", change), [], change.__name__)

    def test_one_cause_is_one_row(self):
        def driver(f):
            f["gpu.nvidia.driver"]["value"]["version"] = "1.2.3"
            for key in ("nvml.driver", "nvml.version"):
                f[key] = present("1.2.3")
            for key in ("kernel.module.nvidia", "kernel.module.nvidia_uvm"):
                f[key]["value"]["version"] = "1.2.3"

        def firmware(f):
            for d in f["rdma.devices"]["value"]:
                d["fw"] = "1.2.3"

        def libfabric(f):
            f["fabric.version"] = present("1.2.3")
            f["fabric.path"] = present("/opt/other/libfabric.so.1")
            f["fabric.providers"] = present(["tcp"])
            f["fabric.domains"] = present([])

        def provider(f):
            f["env.FI_PROVIDER"] = present("tcp")
            f["fabric.providers"] = present(["tcp"])

        for base, change, setting in (("dgx-h100", driver, "gpu.nvidia.driver.version"),
                                      ("dgx-h100", firmware, "rdma.devices[mlx5_0 and 9 more].fw"),
                                      ("lumi-g", libfabric, "fabric.version"),
                                      ("lumi-g", provider, "env.FI_PROVIDER")):
            for at in (0, 2):
                rows = self.vary(base, change, at)
                self.assertEqual([(f["setting"], f["nodes"]) for f in rows], [(setting, [f"n{at}"])])

    def test_a_variable(self):
        rows = self.vary("lumi-g", lambda f: f.update({"env.NCCL_BUFFSIZE": present("1")}))
        self.assertEqual([(f["expected"], f["fix"]) for f in rows],
                         [("not set, as on 5 of 6 nodes", "unset NCCL_BUFFSIZE")])
        rows = self.vary("lumi-g", lambda f: f.pop("env.NCCL_CROSS_NIC"))
        self.assertEqual([(f["observed"], f["fix"]) for f in rows], [("not set", "export NCCL_CROSS_NIC=1")])

    def test_unread_is_unknown(self):
        rows = self.vary("dgx-h100", lambda f: f.update({"host.kernel": {"state": "failed", "reason": "denied"}}))
        self.assertEqual([(f["verdict"], f["setting"], f["nodes"]) for f in rows],
                         [("unknown", "host.kernel", ["n2"])])


main()
