"""A site's own settings, under prefixes that the program has never heard of, are captured and judged by data alone."""
import json
from support import CAPTURES, Case, main, run

SETTING = """- name: {name}
  family: launcher
  {kind}readers: [{readers}]
  grammar: {{{grammar}}}
  effect: Something of this site.
  severity: fatal
  if-wrong: The job script stops at once.
  advice: Load the module site-env.
  source: "site handbook"
"""
SHELL = "{library: shell}"
SETTINGS = {
    "SITE_SCRATCH": "type: path, must-exist: true, directory: true",
    "ACMEFAB_RAILS": "type: int, min: 1, max: 8",
    "ACMEFAB_MODE": "type: enum, values: [fast, safe], wrong: [quick]",
    "QUUX_IFACES": "type: interfaces",
    "ZORK_LEVEL": "type: string",
    "ZORK_EXTRA": "type: string",
    "BLIP_ENABLE": "type: bool",
    "BLAP_ENABLE": "type: bool",
    "OLDSITE_TUNE": "type: string",
    "WIBBLE_CACHE": "type: string",
}
PROFILE = """name: acme
title: The Acme cluster
signals:
  - {fact: env.ACMECLUSTER, matches: "^acme$", weight: 9}
settings:
  - {name: SITE_SCRATCH, strength: required, why: Jobs need it., source: handbook}
  - {name: ACMEFAB_RAILS, accepted: ["4"], strength: required, why: Four rails., source: handbook}
  - {name: ACMEFAB_MODE, accepted: [safe], strength: recommended, why: It is safe., source: handbook}
  - {name: ZORK_LEVEL, accepted: [high], strength: recommended, why: It is better., source: handbook}
  - {name: ZORK_EXTRA, strength: optional, why: For tests., source: handbook}
  - {name: WIBBLE_CACHE, unset: true, strength: required, why: It breaks jobs., source: handbook}
source: handbook
"""
CONFLICT = """- name: blip-and-blap
  when:
    - {setting: BLIP_ENABLE, is: ["1"]}
    - {setting: BLAP_ENABLE, is: ["1"]}
  verdict: fail
  why: Only one of them may be on.
  fix: unset BLAP_ENABLE
  source: handbook
"""
RIGHT = {"ACMECLUSTER": "acme", "SITE_SCRATCH": "/tmp", "ACMEFAB_RAILS": "4", "ACMEFAB_MODE": "safe",
         "ZORK_LEVEL": "high", "BLIP_ENABLE": "1", "BLAP_ENABLE": "0", "QUUX_IFACES": "lo"}


class Site(Case):
    def site(self):
        d = self.scratch()
        for folder, text in (("settings", self.settings()), ("profiles", PROFILE), ("conflicts", CONFLICT)):
            (d / folder).mkdir()
            (d / folder / "acme.yaml").write_text(text)
        return d

    @staticmethod
    def settings():
        return "".join(SETTING.format(name=name, grammar=grammar, readers="" if name == "OLDSITE_TUNE" else SHELL,
                                      kind="kind: folklore\n  " if name == "OLDSITE_TUNE" else "")
                       for name, grammar in SETTINGS.items())

    def rows(self, *args, env=None):
        report = self.json_of(run(*args, "--format", "json", env=env))
        self.assertEqual(report["profile"]["name"], "acme")
        return {f["setting"]: f["verdict"] for f in report["findings"]}

    def live(self, **env):
        return self.rows("--quick", "--transport", "none", "--config", self.site(),
                         env={k: v for k, v in {**RIGHT, **env}.items() if v is not None})

    def test_right_values_pass(self):
        rows = self.live()
        for name in RIGHT:
            if name != "ACMECLUSTER":
                self.assertEqual(rows.get(name), "pass", name)
        self.assertEqual(rows.get("ZORK_EXTRA"), "na")
        self.assertNotIn("BLIP_ENABLE + BLAP_ENABLE", rows)
        self.assertNotIn("OLDSITE_TUNE", rows)

    def test_each_is_judged(self):
        for name, value, verdict in (
                ("SITE_SCRATCH", "/does/not/exist", "fail"), ("SITE_SCRATCH", "/etc/passwd", "fail"),
                ("SITE_SCRATCH", None, "fail"), ("ACMEFAB_RAILS", None, "fail"), ("ACMEFAB_RAILS", "2", "fail"),
                ("ACMEFAB_RAILS", "99", "fail"), ("ACMEFAB_MODE", "fast", "warn"), ("ACMEFAB_MODE", "quick", "fail"),
                ("ACMEFAB_MODE", None, "warn"), ("ZORK_LEVEL", None, "warn"), ("ZORK_LEVEL", "low", "warn"),
                ("ZORK_EXTRA", "x", "pass"), ("WIBBLE_CACHE", "x", "fail"), ("QUUX_IFACES", "nosuch0", "fail"),
                ("BLIP_ENABLE", "perhaps", "warn"), ("OLDSITE_TUNE", "x", "warn"),
                ("SITE_SCRACH", "/tmp", "warn"), ("ZORK_LEVL", "high", "warn")):
            with self.subTest(f"{name}={value}"):
                self.assertEqual(self.live(**{name: value}).get(name), verdict)

    def test_conflict(self):
        self.assertEqual(self.live(BLAP_ENABLE="1").get("BLIP_ENABLE + BLAP_ENABLE"), "fail")

    def test_not_looked_for_is_not_unset(self):
        """Facts gathered where the site's file was not there do not say that the variable is not set."""
        facts, site = self.scratch() / "f.json", self.site()
        for text in self.without_site(facts):
            facts.write_text(text)
            rows = self.rows("check", "--profile", "acme", "--config", site, facts)
            for name in ("SITE_SCRATCH", "ACMEFAB_RAILS", "ZORK_LEVEL"):
                self.assertEqual(rows.get(name), "unknown", name)

    def without_site(self, facts):
        p = run("probe", "--quick", env=RIGHT)
        self.assertEqual(p.returncode, 0, p.stderr)
        yield p.stdout
        doc = json.loads(p.stdout)  # as versions wrote it that did not say what they looked for
        for node in doc.get("nodes", [doc]):
            del node["facts"]["environment.looked_for"]
        yield json.dumps(doc)
        p = run("probe", "--sysroot", CAPTURES / "slingshot-amd", env=RIGHT)
        self.assertEqual(p.returncode, 0, p.stderr)
        yield p.stdout

    def test_saved_and_captured(self):
        site, capture = self.site(), self.scratch() / "capture"
        p = run("probe", "--quick", "--config", site, env=RIGHT)
        facts = self.scratch() / "f.json"
        facts.write_text(p.stdout)
        rows = self.rows("check", "--config", site, facts)
        self.assertEqual((rows.get("SITE_SCRATCH"), rows.get("ACMEFAB_RAILS")), ("pass", "pass"))
        env = {k: v for k, v in RIGHT.items() if k != "ZORK_LEVEL"}
        p = run("probe", "--quick", "--config", site, "--capture", capture, env=env)
        self.assertEqual(p.returncode, 0, p.stderr)
        rows = self.rows("--sysroot", capture, "--transport", "none", "--config", site)
        self.assertEqual((rows.get("ACMEFAB_RAILS"), rows.get("ZORK_LEVEL")), ("pass", "warn"))

    def test_environment_file(self):
        env = self.scratch() / "env"
        # with PATH: the whole environment, so what is not in it is unset
        env.write_text("PATH=/usr/bin\n" + "".join(f"{k}={v}\n" for k, v in RIGHT.items() if k != "ACMEFAB_RAILS"))
        report = self.json_of(run("diagnose", "--config", self.site(), "--profile", "acme", "--env", env,
                                  "--format", "json"))
        rows = {f["setting"]: f["verdict"] for f in report["findings"]}
        self.assertEqual((rows.get("ACMEFAB_RAILS"), rows.get("ZORK_LEVEL")), ("fail", "pass"))

    def test_a_launcher_of_the_site(self):
        """A launcher and a scheduler that only the site's files know; inside of a step of Slurm, too."""
        site = self.scratch()
        rows = {"launchers": "- {key: acme, name: acme, title: acmerun, needs: [ACME_RANK, ACME_SIZE], ranks: [ACME_SIZE],\n"
                             "   rank: [ACME_RANK]}\n",
                "uses": "- {name: scheduler.acme, variables: [ACME_JOBID]}\n"
                        "- {name: job.slurm.reservation, variables: [SLURM_JOB_RESERVATION]}\n"}
        for folder, text in rows.items():
            (site / folder).mkdir()
            (site / folder / "acme.yaml").write_text(text)
        env = {"ACME_RANK": "3", "ACME_SIZE": "8", "ACME_JOBID": "5"}
        slurm = {"SLURM_JOB_ID": "7", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "1", "SLURM_JOB_RESERVATION": "maint"}

        def job(env, *arguments):
            facts = self.json_of(run("probe", "--quick", *arguments, env=env))["facts"]
            return tuple(facts.get(f"job.{k}", {}).get("value")
                         for k in ("launcher", "ranks", "rank", "scheduler", "slurm.reservation"))
        self.assertEqual(job(env, "--config", site), ("acme", 8, 3, "acme", None))
        self.assertEqual(job({**env, **slurm}, "--config", site), ("acme", 8, 3, "slurm", "maint"))
        self.assertEqual(job({**env, **slurm}), ("slurm", 4, 1, "slurm", None))


main()
