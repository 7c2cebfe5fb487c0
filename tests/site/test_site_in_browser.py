"""The pages in a browser: nothing is asked of another host, axe finds nothing, nothing is cut off on a phone."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "target" / "site"
sys.path.insert(0, str(ROOT / "tests" / "browser"))
from browser import BrowserCase  # noqa: E402


class Pages(BrowserCase):
    @classmethod
    def setUpClass(cls):
        if not (SITE / "index.html").exists():
            raise unittest.SkipTest("the site is not built: make site")
        super().setUpClass()

    def tab(self, **how):
        """A tab that may ask for files of the site and nothing else."""
        here = SITE.as_uri()
        page = self.open(f"{here}/index.html", allowed=lambda url: url.startswith((here, "data:", "blob:")), **how)

        def go(name):
            self.errors.clear()
            self.requests.clear()
            page.goto(f"{here}/{name}", wait_until="load")
            return page

        return go

    def names(self):
        return sorted(str(p.relative_to(SITE)) for p in SITE.rglob("*.html") if p.name != "404.html")

    def test_every_page_is_quiet_accessible_and_fits_a_phone(self):
        go = self.tab(width=390)
        for name in self.names():
            with self.subTest(page=name):
                page = go(name)
                self.assert_fits(page)
                self.assert_accessible(page, weights=None)
                self.assert_quiet()

    def test_a_laptop_in_the_dark_is_accessible(self):
        go = self.tab(dark=True)
        for name in ("index.html", "start/quickstart.html", "questions/verdict.html", "reference/commands.html", "gallery.html"):
            with self.subTest(page=name):
                self.assert_accessible(go(name), weights=None)
                self.assert_quiet()

    def test_search_finds_a_word(self):
        page = self.tab()("index.html")
        page.locator("input.md-search__input").click(force=True)
        page.keyboard.type("horizon")
        page.wait_for_selector(".md-search-result__item", timeout=20000)
        self.assertIn("horizon", page.inner_text(".md-search-result__list").lower())
        self.assert_quiet()


if __name__ == "__main__":
    unittest.main()
