"""The report in a real browser."""

import re
import tempfile
from pathlib import Path

from browser import WIDTHS, BrowserCase, dvim

COLUMNS = ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", 800]


class Report(BrowserCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        dvim("simulate", "--scenario", "both-overlap", "--n", 1500, "--seed", 5, "-o", cls.folder / "cohort.csv")
        dvim("fit", cls.folder / "cohort.csv", *COLUMNS, "--by", "x3:3", "--estimator", "paper", "-k", 30, "-o", cls.folder / "run")
        dvim("report", cls.folder / "run", "-o", cls.folder / "report.html")
        cls.url = (cls.folder / "report.html").as_uri()

    def test_opens_quietly_at_every_width(self):
        for width in WIDTHS:
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    page = self.open(self.url, width=width, dark=dark)
                    self.assert_quiet()
                    self.assert_fits(page)
                    self.assert_accessible(page)

    def test_needs_no_script(self):
        page = self.open(self.url, javascript=False)
        self.assertGreater(page.locator("svg.dv-figure:visible").count(), 5)
        self.assertIn("cures", page.locator("main").inner_text())

    def test_headings_are_in_order(self):
        page = self.open(self.url)
        levels = [int(h) for h in page.eval_on_selector_all("h1,h2,h3,h4,h5,h6", "all => all.map(h => h.tagName[1])")]
        self.assertEqual(levels[0], 1)
        self.assertEqual(levels.count(1), 1)
        for before, after in zip(levels, levels[1:]):
            self.assertLessEqual(after, before + 1)

    def test_every_figure_has_words(self):
        page = self.open(self.url)
        figures = page.eval_on_selector_all(
            "svg.dv-figure", "all => all.map(s => [s.querySelector('title').textContent, s.querySelector('desc').textContent])"
        )
        for title, description in figures:
            self.assertTrue(title and description, (title, description))

    def test_prints(self):
        page = self.open(self.url)
        pdf = page.pdf(format="A4")
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(len(re.findall(rb"/Type\s*/Page\b", pdf)), 3)
