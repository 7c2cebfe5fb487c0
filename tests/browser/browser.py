"""A real browser for the tests: Debian's Chromium, driven by Playwright, with axe for accessibility.

    class Report(BrowserCase):
        def test_it_opens(self):
            page = self.open("file:///…/report.html", width=390)
            self.assert_quiet()          # no console error, no request beyond `allowed`
            self.assert_accessible(page)  # axe: nothing serious or critical

Where Chromium or Playwright is missing, the whole class is skipped, and says so.
"""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

try:
    from playwright.sync_api import sync_playwright
    import axe_playwright_python
except ImportError:
    sync_playwright = None

ROOT = Path(__file__).parent.parent.parent
DVIM = os.environ.get("DVIM", str(ROOT / "target" / "debug" / "dvim"))
NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)

# A phone, a laptop, a wide screen.
WIDTHS = [390, 1024, 1920]

# Nothing that Chromium does of its own accord may be taken for a request of a page.
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--no-first-run",
]


def dvim(*args, code=0):
    """Runs dvim; gives what it printed."""
    done = subprocess.run([DVIM, *map(str, args)], capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError(f"dvim {' '.join(map(str, args))} exited {done.returncode}: {done.stderr}")
    return done.stdout


@unittest.skipIf(sync_playwright is None, "Playwright is not installed: pip install -r tests/browser/requirements.txt")
@unittest.skipIf(CHROMIUM is None, "no Chromium found: apt-get install chromium, or set CHROMIUM to its path")
class BrowserCase(unittest.TestCase):
    """One browser for a class; a fresh context for each page."""

    @classmethod
    def setUpClass(cls):
        cls._playwright = sync_playwright().start()
        cls.addClassCleanup(cls._playwright.stop)
        cls.browser = cls._playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.errors, self.requests = [], []

    def open(self, url, width=1280, height=900, dark=False, javascript=True, allowed=None):
        """Opens a page. `allowed` says of an address whether it may be asked for; by default only `url` itself and
        what is inside it (`data:`)."""
        allowed = allowed or (lambda asked: asked.split("#")[0] == url.split("#")[0] or asked.startswith("data:"))
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            java_script_enabled=javascript,
        )
        self.addCleanup(context.close)
        page = context.new_page()

        def asked(request):
            if not allowed(request.url):
                self.requests.append(request.url)

        page.on("request", asked)
        page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: self.errors.append(str(e)))
        page.goto(url)
        page.wait_for_load_state("networkidle")
        return page

    def assert_quiet(self):
        """No error or warning in the console, and no request that is not allowed."""
        self.assertEqual(self.errors, [])
        self.assertEqual(self.requests, [])

    def assert_accessible(self, page, weights=("serious", "critical")):
        """axe finds nothing of these weights; `None` for nothing at all. The script is handed to the page by the
        browser, so that a strict content policy needs no exception."""
        script = Path(axe_playwright_python.__file__).parent / "axe.min.js"
        page.evaluate(script.read_text())
        found = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")["violations"]
        said = [
            f"{page.url}: {v['impact']} {v['id']}: {v['help']}; {n['html'][:200]}"
            for v in found if weights is None or v["impact"] in weights for n in v["nodes"][:3]
        ]
        self.assertEqual(said, [])

    def assert_fits(self, page):
        """The page itself does not scroll sideways; wide tables scroll inside their own box."""
        wide, seen = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        self.assertLessEqual(wide, seen)
