#!/usr/bin/env python3
"""Makes every picture of the documentation anew: `make figures`.

docs/gallery by the very lines of docs/gallery.md, docs/assets/fits.svg by flowchart.py,
docs/assets/accuracy.svg by plots.py, and docs/img/*.png as screenshots of
the report and the explorer, where Chromium and Playwright are there. `DVIM` names the command.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import flowchart
import plots
import snippets

ROOT = snippets.ROOT
TITLE = "Relapse after transplant"


def screenshots(run):
    sys.path.insert(0, str(ROOT / "tests/browser"))
    import browser

    if browser.sync_playwright is None or browser.CHROMIUM is None:
        print("no Chromium or Playwright: docs/img is left as it is")
        return
    report = run.parent / "report.html"
    subprocess.run([snippets.DVIM, "report", run, "-o", report, "--title", TITLE], check=True, capture_output=True)
    server = subprocess.Popen([snippets.DVIM, "explore", run, "--no-open"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        address = None
        while address is None:
            found = re.search(r"http://\S+", server.stdout.readline())
            address = found and found[0]
        with browser.sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser.CHROMIUM, args=browser.QUIET)
            page = chromium.new_page(viewport={"width": 900, "height": 1000}, color_scheme="light")
            page.goto(report.as_uri())
            page.screenshot(path=ROOT / "docs/img/report.png")
            page = chromium.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
            page.goto(address)
            page.wait_for_load_state("networkidle")
            page.evaluate("location.hash = '#/patient/synthetic-0017'")
            page.wait_for_timeout(1500)
            page.screenshot(path=ROOT / "docs/img/explore.png")
            chromium.close()
    finally:
        server.terminate()
        server.wait()


def main():
    flowchart.main()
    plots.main()
    runner = snippets.Runner()
    gallery = ROOT / "docs/gallery.md"
    before = set(runner.folder.iterdir())
    runner.page(gallery)
    made = next(p for p in runner.folder.iterdir() if p not in before and (p / "run").exists())
    out = ROOT / "docs/gallery"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    for figure in sorted([*made.glob("*.svg"), *made.glob("*.png")]):
        shutil.copyfile(figure, out / figure.name)
    screenshots(made / "run")
    runner.close()


if __name__ == "__main__":
    main()
