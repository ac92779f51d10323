#!/usr/bin/env python3
"""check_browser.py REPORT_SAMPLE [FOLDER]: the HTML report in a real browser (headless Chromium).

The pages of one node and of 1,000 nodes are loaded with the network out of reach: the script must
run without an error, the filter must filter, nothing may be wider than the window, and light and
dark must differ. With FOLDER, screenshots are left there to look at. Skipped (77) without Chromium,
which is too large to install for every run of CI."""

import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Runs at the end of the page, as a user who types and clicks, and leaves what it saw as the title.
USER = """<script>
window.addEventListener("load", function () {
  function visible() {
    return Array.from(document.querySelectorAll("table.matrix tbody tr"))
      .filter(function (row) { return row.getClientRects().length > 0; })
      .map(function (row) { return row.cells[2].textContent; });
  }
  var seen = {errors: window.failures}, box = document.getElementById("filter");
  seen.ground = getComputedStyle(document.body).backgroundColor;
  seen.text = getComputedStyle(document.body).color;
  seen.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  seen.all = visible();
  box.value = "SOCKET fail";
  box.dispatchEvent(new Event("input"));
  seen.words = visible();
  box.value = "";
  box.dispatchEvent(new Event("input"));
  document.querySelectorAll(".filter input[type=checkbox]").forEach(function (check) {
    if (check.value !== "unknown" && check.checked) { check.click(); }
  });
  seen.unknown = visible();
  seen.plots = document.querySelectorAll("svg.plot circle").length;
  seen.heat = document.querySelectorAll("table.heat tbody tr").length;
  document.title = JSON.stringify(seen);
});
</script>"""
FIRST = """<script>window.failures = [];
window.addEventListener("error", function (e) { window.failures.push(e.message); });
document.addEventListener("securitypolicyviolation", function (e) { window.failures.push(e.blockedURI); });
</script>"""


def chromium(browser, folder, page, width, *more):
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND", "--no-first-run",
               "--disable-background-networking", f"--user-data-dir={folder}/profile",
               f"--window-size={width},1600", *more, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout


def look(browser, folder, text, width, *more):
    page = folder / "page.html"
    page.write_text(text.replace("<head>", "<head>" + FIRST, 1).replace("</body>", USER + "</body>", 1),
                    encoding="utf-8")
    dom = chromium(browser, folder, page, width, "--dump-dom", *more)
    return json.loads(html.unescape(re.search(r"(?s)<title>(.*?)</title>", dom).group(1)))


def check(seen, failed_row):
    wrong = [f"script: {error}" for error in seen["errors"]]
    if seen["wide"] > 0:
        wrong.append(f"{seen['wide']} pixels wider than the window")
    if seen["words"] != [failed_row]:
        wrong.append(f"filter by words shows {seen['words']}")
    if not seen["unknown"] or set(seen["unknown"]) >= set(seen["all"]):
        wrong.append(f"filter by verdict shows {seen['unknown']}")
    if seen["plots"] < 6:
        wrong.append("no plots")
    return wrong


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        print("skipped: chromium is not installed (Debian: apt install chromium)")
        return 77
    wrong = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        for which in ("failing", "thousand"):
            text = subprocess.run([sys.argv[1], which, "html"], check=True, capture_output=True,
                                  timeout=60).stdout.decode("utf-8")
            light = look(browser, folder, text, 1200)
            wrong += [f"{which}: {line}" for line in check(light, "NCCL_SOCKET_IFNAME")]
            if which == "failing":
                dark = look(browser, folder, text, 1200, "--blink-settings=preferredColorScheme=0")
                if (dark["ground"], dark["text"]) == (light["ground"], light["text"]):
                    wrong.append("dark looks like light")
                wrong += [f"narrow: {line}" for line in
                          check(look(browser, folder, text, 520), "NCCL_SOCKET_IFNAME")]
            elif not 2 <= light["heat"] <= 40:
                wrong.append(f"1,000 nodes are {light['heat']} rows")
            if len(sys.argv) > 2:
                page = folder / "shot.html"
                page.write_text(text, encoding="utf-8")
                chromium(browser, folder, page, 1200, f"--screenshot={sys.argv[2]}/{which}.png")
    print("\n".join(wrong) if wrong else "the pages work in " + browser)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
