"""The tool in the browser: the command's numbers, no connection, and no more to download than was promised.

The page is made by site/web.py. Where WebAssembly cannot be compiled the class is skipped, and says so.
"""

import gzip
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "site"), str(ROOT / "tests" / "browser")]
import web  # noqa: E402
from browser import WIDTHS, BrowserCase, dvim  # noqa: E402

try:
    from playwright.sync_api import expect
except ImportError:
    pass  # BrowserCase skips

COLUMNS = ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", "3650"]
MOST_BYTES = 3_000_000


class Tool(BrowserCase):
    @classmethod
    def setUpClass(cls):
        made = subprocess.run([sys.executable, ROOT / "site" / "web.py"]).returncode
        if made == web.MISSING:
            raise unittest.SkipTest("!! WEBASSEMBLY CANNOT BE COMPILED HERE: the tool in the browser is not tested")
        if made:
            raise AssertionError("site/web.py failed")
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.cohort = cls.folder / "cohort.csv"
        dvim("simulate", "--scenario", "transplant", "--n", 400, "-o", cls.cohort)

    def tool(self, **how):
        page = self.open(web.OUT.as_uri(), allowed=lambda url: url.startswith((web.OUT.as_uri(), "data:", "blob:")), **how)
        page.set_default_timeout(30_000)
        return page

    def load(self, page, path=None, estimator="paper"):
        page.set_input_files("#file", path or self.cohort)
        page.wait_for_selector("#columns:not([hidden])")
        page.fill("#horizon", "3650")
        page.check(f"input[value={estimator}]")

    def analyse(self, page, **how):
        self.load(page, **how)
        page.click("#fit")
        page.wait_for_selector("#result:not([hidden]), #alert:not(:empty)")
        self.assertEqual(page.inner_text("#alert"), "")

    def saved(self, page, name):
        with page.expect_download() as download:
            page.click(f"#files a[download='{name}']")
        return Path(download.value.path()).read_bytes()

    def test_the_download_is_small(self):
        self.assertLess(len(gzip.compress(web.OUT.read_bytes(), 9)), MOST_BYTES)

    def test_the_numbers_are_those_of_the_command(self):
        for estimator in ("paper", "adjusted"):
            with self.subTest(estimator=estimator):
                page = self.tool()
                self.analyse(page, estimator=estimator)
                run = self.folder / estimator
                dvim("fit", self.cohort, *COLUMNS, "--estimator", estimator, "-o", run)
                for name in ("effects.csv", "weights.csv"):
                    self.assertEqual(self.saved(page, name), (run / name).read_bytes(), name)
                self.assert_quiet()

    def test_report_and_explorer(self):
        page = self.tool()
        self.analyse(page)
        report = page.frame_locator("#report")
        report.locator("h1").wait_for()
        self.assertGreater(report.locator("svg.dv-figure").count(), 5)
        page.click("#show-explorer")
        explorer = page.frame_locator("#explorer")
        explorer.locator("a[data-page=patients]").click()
        explorer.locator("tbody tr th a").first.click()
        explorer.locator("h1", has_text="synthetic-").wait_for()
        explorer.locator("svg").first.wait_for()
        page.evaluate("history.back()")
        explorer.locator("tbody tr th a").first.wait_for()
        explorer.locator("a[data-page=overview]").click()
        explorer.locator("a[href='/report#balance']").click()
        page.wait_for_selector("#report:not([hidden])")
        expect(report.locator("#balance")).to_be_in_viewport()
        report.locator("a[href='#methods']").first.dispatch_event("click")
        expect(report.locator("#methods")).to_be_in_viewport()
        self.assert_quiet()

    def test_a_check_says_what_is_wrong(self):
        bad = self.folder / "bad.csv"
        bad.write_text("time,event,treatment,x\n1,0,0,1\n-2,1,1,2\n")
        page = self.tool()
        page.set_input_files("#file", bad)
        page.wait_for_selector("#columns:not([hidden])")
        for part in ("time", "event", "treatment"):
            page.select_option(f"#{part}", part)
        page.fill("#horizon", "5")
        page.click("#check")
        page.wait_for_selector("#checked:not([hidden])")
        self.assertIn("cannot be analysed", page.inner_text("#check-word"))
        self.assertIn("time", page.inner_text("#problems"))
        page.fill("#horizon", "soon")
        page.click("#check")
        page.wait_for_selector("#alert:not(:empty)")
        self.assertIn("horizon must be a number", page.inner_text("#alert"))
        self.assert_quiet()

    def test_cancel_ends_the_work_and_keeps_the_table(self):
        large = self.folder / "large.csv"
        dvim("simulate", "--scenario", "transplant", "--n", 6_000, "-o", large)
        page = self.tool()
        self.load(page, path=large, estimator="adjusted")
        page.click("#fit")
        page.wait_for_selector("#progress[value]")
        page.click("#cancel")
        page.wait_for_selector("#alert:not(:empty)")
        self.assertIn("Cancelled", page.inner_text("#alert"))
        self.assertTrue(page.is_hidden("#working"))
        page.click("#check")
        page.wait_for_selector("#checked:not([hidden])")
        self.assertIn("can be analysed", page.inner_text("#check-word"))

    def test_no_connection_is_allowed(self):
        # The browser tells of a request even where the page's policy refuses it before a byte is sent. So somebody listens.
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
            page = self.tool()
            failed = {}
            page.on("requestfailed", lambda r: failed.update({r.url: r.failure}))
            tries = {
                "fetch": f"fetch('{address}').then(() => 'sent', () => 'refused')",
                "its own host": "fetch(location.href).then(() => 'sent', () => 'refused')",
                "an image": f"new Promise(d => Object.assign(new Image(), {{onload: () => d('sent'), onerror: () => d('refused')}}).src = '{address}')",
            }
            for name, script in tries.items():
                refused = "new Promise(d => addEventListener('securitypolicyviolation', e => d(e.effectiveDirective), {once: true}))"
                found = page.evaluate(f"Promise.all([{script}, Promise.race([{refused}, new Promise(d => setTimeout(d, 5000, 'no violation'))])])")
                self.assertEqual(found[0], "refused", name)
                self.assertIn(found[1], ("connect-src", "img-src"), name)
            worker = (f"new Promise(d => {{ const w = new Worker(URL.createObjectURL(new Blob([\"fetch('{address}')"
                      ".then(() => postMessage('sent'), () => postMessage('failed')); addEventListener('securitypolicyviolation', e => "
                      "postMessage(e.effectiveDirective))\"]))); w.onmessage = e => { if (e.data !== 'failed') d(e.data); }; })")
            self.assertEqual(page.evaluate(worker), "connect-src")
            self.assertEqual([(url, failed.get(url)) for url in self.requests if failed.get(url) != "csp"], [])
            listener.settimeout(0.5)
            with self.assertRaises(TimeoutError, msg="something connected"):
                listener.accept()

    def test_quiet_accessible_and_fitting_at_every_width(self):
        for width in WIDTHS:
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    page = self.tool(width=width, dark=dark)
                    self.load(page)
                    page.click("#check")
                    page.wait_for_selector("#checked:not([hidden])")
                    self.assert_fits(page)
                    self.assert_accessible(page, weights=None)
                    self.assert_quiet()

    def test_the_keyboard_is_enough(self):
        page = self.tool()
        page.focus("#demo")
        page.keyboard.press("Enter")
        page.wait_for_selector("#columns:not([hidden])")
        page.focus("#horizon")
        page.keyboard.press("Enter")
        page.wait_for_selector("#checked:not([hidden])")
        self.assertEqual(page.evaluate("document.activeElement.id"), "step-check")


if __name__ == "__main__":
    unittest.main()
