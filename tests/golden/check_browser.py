#!/usr/bin/env python3
"""check_browser.py REPORT_SAMPLE [FOLDER]: the HTML report in a real browser (headless Chromium).

The pages of one node and of 1,000 nodes are loaded with the network out of reach: the script must
run without an error, the filter must filter and be in the address, nothing may be wider than the window, light and
dark must differ, every text must have the contrast that WCAG 2 AA asks for, and what a screen reader needs must be
there: one main part, headings in order, names for all that takes the focus. With FOLDER, screenshots are left there to look at. Skipped (77) without Chromium,
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
// The text that has less contrast to what is behind it than 4.5 (3 when large), by the formula of WCAG 2.
function faint() {
  function color(text) { return (text.match(/[0-9.]+/g) || []).map(Number); }
  function light(c) {
    return [0.2126, 0.7152, 0.0722].reduce(function (sum, part, i) {
      var v = c[i] / 255;
      return sum + part * (v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4));
    }, 0);
  }
  function ground(e) {
    var svg = e.closest("svg"), at = e.getBoundingClientRect(), found = null;
    if (svg) {
      svg.querySelectorAll("rect").forEach(function (r) {
        var b = r.getBoundingClientRect(), x = at.left + at.width / 2, y = at.top + at.height / 2;
        if (b.left <= x && x <= b.right && b.top <= y && y <= b.bottom) { found = getComputedStyle(r).fill; }
      });
      if (found) { return color(found); }
    }
    for (; e; e = e.parentElement) {
      var c = color(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) { return c; }
    }
    return [255, 255, 255];
  }
  var bad = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    var e = walk.currentNode.parentElement, style = getComputedStyle(e);
    if (!walk.currentNode.data.trim() || !e.getClientRects().length || e.closest("script, title")) { continue; }
    var a = light(color(e.closest("svg") ? style.fill : style.color)), b = light(ground(e));
    var ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), size = parseFloat(style.fontSize);
    if (ratio < (size >= 24 || (size >= 18.6 && style.fontWeight >= 700) ? 3 : 4.5)) {
      bad.push(ratio.toFixed(2) + " " + e.tagName + "." + e.className + " " + walk.currentNode.data.trim().slice(0, 30));
    }
  }
  return bad;
}
window.addEventListener("load", function () {
  function visible() {
    return Array.from(document.querySelectorAll("table.matrix tbody tr"))
      .filter(function (row) { return row.getClientRects().length > 0; })
      .map(function (row) { return row.cells[2].textContent; });
  }
  var seen = {errors: window.failures}, box = document.getElementById("filter");
  seen.ground = getComputedStyle(document.body).backgroundColor;
  seen.text = getComputedStyle(document.body).color;
  seen.column = Math.min.apply(null, Array.from(document.querySelectorAll("table.matrix thead th")).map(function (th) {
    return th.getBoundingClientRect().width;
  }));
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
  seen.unnamed = Array.from(document.querySelectorAll("a, button, input, svg[role=img], [tabindex]")).filter(function (e) {
    return !(e.getAttribute("aria-label") || e.textContent.trim() || (e.closest("label") || {textContent: ""}).textContent.trim());
  }).map(function (e) { return e.outerHTML.slice(0, 80); });
  seen.main = document.querySelectorAll("main").length;
  seen.levels = Array.from(document.querySelectorAll("h1, h2, h3")).map(function (h) { return +h.tagName[1]; });
  seen.scopes = document.querySelectorAll("th:not([scope])").length;
  seen.contents = document.querySelectorAll("nav a").length;
  seen.dead = Array.from(document.querySelectorAll("nav a, a.skip")).filter(function (a) {
    return !document.getElementById(a.hash.slice(1));
  }).length;
  document.querySelectorAll("details").forEach(function (d) { d.open = true; });
  seen.faint = faint();
  var cell = document.querySelector("table.heat td a");
  if (cell) {
    location.hash = cell.hash;
    window.dispatchEvent(new HashChangeEvent("hashchange"));
    seen.cell = [decodeURIComponent(cell.hash), box.value, visible().length];
  }
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
    wrong += [f"contrast: {line}" for line in seen["faint"][:5]] + [f"no name: {line}" for line in seen["unnamed"][:5]]
    levels = seen["levels"]
    if seen["main"] != 1 or levels[:1] != [1] or any(b > a + 1 for a, b in zip(levels, levels[1:])) or levels.count(1) != 1:
        wrong.append(f"{seen['main']} main parts, headings {levels}")
    if seen["scopes"] or seen["dead"] or seen["contents"] < 4:
        wrong.append(f"{seen['scopes']} heads of tables without scope, {seen['dead']} links that lead nowhere, "
                     f"{seen['contents']} in the table of contents")
    if "cell" in seen and (not seen["cell"][2] or seen["cell"][1] not in seen["cell"][0]):
        wrong.append(f"a cell of the map leads to {seen['cell']}")
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
                wrong += [f"dark: {line}" for line in check(dark, "NCCL_SOCKET_IFNAME")]
                if (dark["ground"], dark["text"]) == (light["ground"], light["text"]):
                    wrong.append("dark looks like light")
                # As the paper has it: no medium can be chosen on this command line.
                wide = subprocess.run([sys.argv[1], "gpus", "html"], check=True, capture_output=True,
                                      timeout=60).stdout.decode("utf-8")
                for sheet in (text, wide.replace("<details", "<details open")):
                    paper = look(browser, folder, sheet.replace("@media print", "@media all"), 794)
                    if paper["wide"] > 0 or paper["column"] < 30:
                        wrong.append(f"paper: {paper['wide']} pixels too wide, a column of {paper['column']}")
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
