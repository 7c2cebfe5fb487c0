"""The report in a real browser."""

import json
import math
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
        dvim("fit", cls.folder / "cohort.csv", *COLUMNS, "--by", "x15:3", "--estimator", "paper", "-k", 30, "-o", cls.folder / "run")
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
        self.assertIn("of 100 patients are event-free", page.locator("main").inner_text())

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

    def average(self, estimand):
        summary = json.loads((self.folder / "run" / "summary.json").read_text())
        return next(a for a in summary["average_effects"] if a["estimand"] == estimand and a["population"] == "all")

    def test_the_numbers_of_page_one_are_those_of_the_summary(self):
        page = self.open(self.url)
        cure, time, needed = map(self.average, ["cure_effect", "time_effect", "number_needed_to_treat"])
        whether, when = (page.locator(f"#{name}").inner_text().replace("\u00a0", " ") for name in ("whether", "when"))
        ends = [abs(100 * cure[k]) for k in ("low", "high")]
        self.assertIn(f"{abs(100 * cure['estimate']):.1f} {'more' if cure['estimate'] > 0 else 'fewer'} of 100", whether)
        for end in ends:
            self.assertIn(f"{end:.1f}", whether)
        self.assertIn(f"{abs(time['estimate']):.0f}", when)
        facts = page.locator(".facts").inner_text()
        self.assertIn(f"Number needed to treat: {math.ceil(abs(needed['estimate']))}", facts)
        rows = page.locator(".page-one table tbody tr").first.inner_text()
        for estimand in ("cure_treated", "cure_control"):
            self.assertIn(f"{100 * self.average(estimand)['estimate']:.1f}", rows.replace("\u00a0", " "))

    def test_a_phone_shows_the_verdict_at_once(self):
        page = self.open(self.url, width=390, height=844)
        bottom = page.locator(".verdict").last.evaluate("e => e.getBoundingClientRect().bottom")
        self.assertLessEqual(bottom, 844)

    def test_page_one_is_one_page(self):
        page = self.open(self.url)
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 658, "height": 900})  # A4 less margins, at 96 dots to the inch
        header, one = (page.locator(s).bounding_box() for s in ("header", ".page-one"))
        self.assertLessEqual(one["y"] + one["height"] - header["y"], 261 / 25.4 * 96)

    def test_sections_fold(self):
        page = self.open(self.url)
        balance = page.locator("#balance details")
        self.assertIsNotNone(balance.get_attribute("open"))
        page.locator("#balance summary").click()
        self.assertIsNone(balance.get_attribute("open"))

    def test_prints(self):
        page = self.open(self.url)
        pdf = page.pdf(format="A4")
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(len(re.findall(rb"/Type\s*/Page\b", pdf)), 3)
