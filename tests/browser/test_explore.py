"""`dvim explore` in a real browser: what is on the page is what is in the run's files."""

import csv
import io
import json
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from browser import DVIM, WIDTHS, BrowserCase, dvim

COLUMNS = ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", 800]


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


class Served(BrowserCase):
    """A run and its server, without tests of its own."""

    options = ["--estimator", "paper"]
    columns = COLUMNS

    @classmethod
    def change(cls, rows):
        """Makes another cohort of the rows."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        dvim("simulate", "--scenario", "both-overlap", "--n", 1200, "--seed", 6, "-o", cls.folder / "cohort.csv")
        rows = read((cls.folder / "cohort.csv").read_text())
        cls.change(rows)
        with open(cls.folder / "cohort.csv", "w", newline="") as out:
            writer = csv.DictWriter(out, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        dvim("fit", cls.folder / "cohort.csv", *cls.columns, "-k", 30, *cls.options, "-o", cls.folder / "run")
        cls.effects = {row["id"]: row for row in read((cls.folder / "run" / "effects.csv").read_text())}
        cls.server = subprocess.Popen(
            [DVIM, "explore", cls.folder / "run", "--no-open"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        cls.addClassCleanup(cls.end)
        cls.address = cls.server.stdout.readline().strip()
        cls.origin = cls.address.split("?")[0]

    @classmethod
    def end(cls):
        cls.server.send_signal(signal.SIGINT)
        assert cls.server.wait(10) == 0, "Ctrl-C is how it ends"
        cls.server.stdout.close()

    def at(self, place="", **options):
        page = self.open(self.address + place, allowed=lambda url: url.startswith(self.origin), **options)
        page.wait_for_selector("h1")
        page.wait_for_selector("main:not(.busy)")
        return page

    def number(self, page, name, inside="main"):
        """The exact value behind a number on the page; it reads back as what the eye sees."""
        shown = page.locator(f"{inside} [data-name={name}]").first
        value = shown.get_attribute("data-value")
        return None if value == "" else float(value), shown.inner_text()

    def assert_shows(self, page, row):
        for card, names in [
            ("#cure-card", ["cure_effect", "cure_effect_low", "cure_effect_high", "cure_treated", "cure_control",
                            "cure_treated_low", "cure_control_high"]),
            ("#time-card", ["time_effect", "time_effect_low", "time_effect_high", "mean_event_time_treated",
                            "mean_event_time_control"]),
        ]:
            for name in names:
                value, text = self.number(page, name, card)
                expected = float(row[name]) if row[name] else None
                self.assertEqual(value, expected, name)
                if expected is not None:
                    scale = 100 if name.startswith("cure") else 1
                    read_off = float(text.replace("−", "-").replace("+", ""))
                    self.assertAlmostEqual(read_off, scale * expected, delta=0.0501 if abs(scale * expected) < 100 else 0.501)

    def until(self, page, expression, arg=None):
        """Waits until an expression is true. Playwright's own way evaluates text inside the page, which its policy forbids."""
        last = time.monotonic() + 20
        while not page.evaluate(expression, arg):
            self.assertLess(time.monotonic(), last, f"never true: {expression} with {arg}; {page.inner_text('#alert')}")
            page.wait_for_timeout(30)

    def settle(self, page):
        page.wait_for_load_state("networkidle")
        page.wait_for_selector("#cure-card")
        page.wait_for_selector("main [aria-busy]", state="detached")

    def entered(self):
        """The page with a new patient filled in, the patient, and what `dvim predict` says."""
        patient = {f"x{j}": (j % 2 if j <= 10 else round(0.1 * j - 1.5, 2)) for j in range(1, 21)}
        (self.folder / "new.csv").write_text(",".join(patient) + "\n" + ",".join(map(str, patient.values())) + "\n")
        expected = read(dvim("predict", self.folder / "run", self.folder / "new.csv"))[0]
        page = self.at("#/new")
        for name, value in patient.items():
            page.get_by_label(name, exact=True).fill(str(value))
        return page, patient, expected


class Further(Served):
    """A run with case weights, hospitals, delayed entry and events of another cause."""

    columns = ["--time", "time", "--event", "why", "--treatment", "treatment", "--horizon", 800, "--cause", 1, "--weights", "w",
               "--cluster", "site", "--entry", "late", "--drop", "event"]

    @classmethod
    def change(cls, rows):
        for i, row in enumerate(rows):
            row["why"] = 1 if row["event"] == "1" else 2 * (i % 3 == 0)
            row["w"] = 0.5 + i % 7 / 2
            row["site"] = i % 40
            row["late"] = 0.2 * float(row["time"]) * (i % 5 == 0)

    def test_a_patient_and_the_members(self):
        self.assertIn("Other causes", self.at().inner_text("main"))
        row = list(self.effects.values())[3]
        page = self.at(f"#/patient/{row['id']}")
        self.settle(page)
        self.assert_shows(page, row)
        self.assertIn("event of another cause at", page.inner_text("main"))
        self.assert_quiet()


class Explore(Served):
    def test_overview(self):
        page = self.at()
        self.assertNotIn("token", page.url)
        summary = json.loads((self.folder / "run" / "summary.json").read_text())
        for a in summary["average_effects"]:
            if a["population"] == "all" and a["estimand"] in ("cure_effect", "time_effect"):
                for name in ("", "_low", "_high"):
                    key = {"": "estimate", "_low": "low", "_high": "high"}[name]
                    self.assertEqual(self.number(page, a["estimand"] + name)[0], a[key])
        self.assert_quiet()

    def test_search_click_slide(self):
        page = self.at("#/patients")
        rows = page.locator("main tbody tr")
        self.until(page, "document.querySelectorAll('main tbody tr').length === 50")
        for i, row in enumerate(list(self.effects.values())[:50]):
            self.assertEqual(rows.nth(i).locator("th").inner_text(), row["id"])
        page.get_by_role("button", name="Cure effect, points").click()
        largest = max(self.effects.values(), key=lambda r: float(r["cure_effect"]))
        self.until(page, "id => document.querySelector('main tbody th').innerText === id", arg=largest["id"])
        self.assertEqual(page.locator("th[aria-sort=descending]").inner_text().split(",")[0], "Cure effect")

        row = list(self.effects.values())[33]
        page.get_by_label("Search").fill(row["id"])
        self.until(page, "id => document.querySelector('main tbody th')?.innerText === id", arg=row["id"])
        rows.first.locator("td").nth(1).click()
        self.until(page, "document.querySelector('#who') !== null")
        self.assertTrue(page.url.endswith(f"#/patient/{row['id']}"))
        self.settle(page)
        self.assert_shows(page, row)
        # Both groups under each metric, with the members that `dvim match` lists.
        matched = json.loads(dvim("match", self.folder / "run", row["id"], "--json"))
        for tab, group in [("Matched for time: Control", matched["time_groups"]["control"]), ("Matched for cure: Treatment", matched["cure"]["treated"])]:
            page.get_by_role("tab", name=tab).click()
            self.until(page, "id => document.querySelector('#members tbody tr:nth-child(2) th a').innerText === id", arg=group["members"][0]["id"])
            ids = page.eval_on_selector_all("#members tbody tr:not(.self) th a", "all => all.map(t => t.innerText)")
            self.assertEqual(ids, [m["id"] for m in group["members"]])
            distances = page.eval_on_selector_all("#members [data-name=distance]", "all => all.map(t => Number(t.dataset.value))")
            self.assertEqual(distances, [m["distance"] for m in group["members"]])

        # Another K, by the keyboard; then back to the run's own.
        before = self.number(page, "cure_effect", "#cure-card")[0]
        k = page.locator("#k")
        k.focus()
        k.press("PageUp")
        self.until(page, "before => Number(document.querySelector('#cure-card [data-name=cure_effect]').dataset.value) !== before", arg=before)
        self.settle(page)
        self.assertIn("k=", page.url)
        members = page.locator("#members tbody tr:not(.self)").count()
        self.assertEqual(members, int(k.input_value()))
        self.until(page, "document.querySelector('#live').innerText.includes('Group size')")
        page.locator("#reset").click()
        self.until(page, "document.querySelector('#reset').disabled")
        self.assert_shows(page, row)

        # Another horizon: a run with that horizon reads the same groups off at the same place.
        page.locator("#h-box").fill("400")
        page.locator("#h-box").press("Enter")
        self.until(page, "document.querySelector('#h').value === '100'")
        self.settle(page)
        self.assertIn("h=400", page.url)
        times = page.eval_on_selector_all("#members tbody tr:not(.self) td:nth-of-type(2)", "all => all.map(t => t.innerText)")
        self.assertTrue(all(float(t.split(" at ")[1]) <= 400 for t in times))
        page.locator("#h-box").fill("900")
        page.locator("#h-box").press("Enter")
        self.until(page, "document.querySelector('#alert').innerText.includes('at most 800')")
        self.errors = [e for e in self.errors if "422" not in e]

        # A member of the group, and back.
        page.locator("#reset").click()
        self.until(page, "document.querySelector('#alert').innerText === ''")
        # The paper's estimator lets a patient be a member of the own group.
        first = page.locator(f"#members tbody tr:not(.self) th a:not([href='#/patient/{row['id']}'])").first
        member = first.inner_text()
        first.click()
        self.until(page, "id => document.querySelector('#who')?.innerText === `Patient ${id}`", arg=member)
        page.go_back()
        self.until(page, "id => document.querySelector('#who')?.innerText === `Patient ${id}`", arg=row["id"])
        page.go_back()
        page.wait_for_selector("#q")
        self.assertEqual(page.get_by_label("Search").input_value(), row["id"])
        self.assert_quiet()

    def test_plane_by_mouse_and_keyboard(self):
        page = self.at("#/patients")
        canvas = page.locator("canvas")
        self.until(page, "document.querySelector('#map-note').innerText.includes('patients')")
        canvas.focus()
        canvas.press("ArrowRight")
        canvas.press("ArrowRight")
        words = page.locator(".tip").inner_text()
        chosen = words.split(":")[0].removeprefix("Patient ")
        cure = float(self.effects[chosen]["cure_effect"])
        self.assertAlmostEqual(float(words.split("cure ")[1].split(" ")[0].replace("−", "-")), 100 * cure, delta=0.0501)
        canvas.press("Enter")
        self.until(page, "id => document.querySelector('#who')?.innerText === `Patient ${id}`", arg=chosen)
        self.settle(page)
        self.assert_shows(page, self.effects[chosen])
        page.go_back()
        page.wait_for_selector("canvas")
        self.until(page, "document.querySelector('#map-note').innerText.includes('patients')")
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_selector(".tip:not([hidden])")
        chosen = page.locator(".tip").inner_text().split(":")[0]
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.until(page, "words => document.querySelector('#who')?.innerText === words", arg=chosen)
        self.assert_quiet()

    def test_new_patient(self):
        page, patient, expected = self.entered()
        page.get_by_label("x1", exact=True).fill("")
        page.get_by_role("button", name="Find similar patients").click()
        self.until(page, "document.querySelector('#alert').innerText.includes('x1')")
        self.errors = [e for e in self.errors if "422" not in e]
        page.get_by_label("x1", exact=True).fill(str(patient["x1"]))
        page.get_by_role("button", name="Find similar patients").click()
        page.wait_for_selector("#result #cure-card")
        self.settle(page)
        self.assert_shows(page, expected)
        page.locator("#k-box").fill("60")
        page.locator("#k-box").press("Enter")
        self.until(page, "document.querySelectorAll('#members tbody tr:not(.self)').length === 60")
        self.assert_quiet()

    def test_deep_link(self):
        row = list(self.effects.values())[5]
        page = self.at(f"#/patient/{row['id']}?k=40&group=time-treated")
        self.settle(page)
        self.assertEqual(page.locator("#members tbody tr:not(.self)").count(), 40)
        self.assertEqual(page.get_by_role("tab", selected=True).inner_text(), "Matched for time: Treatment")
        page.reload()
        self.settle(page)
        self.assertEqual(page.locator("#k").input_value(), "40")
        self.assert_quiet()

    def test_without_the_token(self):
        page = self.open(self.origin, allowed=lambda url: url.startswith(self.origin))
        self.assertIn("needs its token", page.inner_text("main"))
        self.assertEqual(self.requests, [])

    def test_accessible_and_fitting_at_every_width(self):
        places = ["#/", "#/patients", f"#/patient/{list(self.effects)[3]}", "#/new"]
        for width, dark in [(360, False), *[(w, w == 1024) for w in WIDTHS]]:
            for place in places:
                with self.subTest(width=width, dark=dark, place=place):
                    page = self.at(place, width=width, dark=dark)
                    page.wait_for_load_state("networkidle")
                    self.assert_quiet()
                    self.assert_accessible(page)
                    self.assert_fits(page)

    def test_colours_can_be_chosen(self):
        page = self.at("#/")
        colour = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = colour()
        page.locator("#theme").click()
        page.locator("#theme").click()
        self.assertNotEqual(colour(), light)
        page.reload()
        page.wait_for_selector("h1")
        self.assertNotEqual(colour(), light, "the choice is kept")

    def test_report(self):
        page = self.open(self.address.replace("/?", "/report?"), allowed=lambda url: url.startswith(self.origin) or url.startswith("data:"))
        self.assertIn("event-free", page.inner_text("main"))
        self.assert_quiet()


class ExploreAdjusted(Served):
    """A run of the adjusted estimator: new patients are corrected, too, and the correction is shown."""

    options = ["--estimator", "adjusted", "--folds", "3"]

    def test_new_patient(self):
        page, _, expected = self.entered()
        page.get_by_role("button", name="Find similar patients").click()
        page.wait_for_selector("#result #cure-card")
        self.settle(page)
        self.assert_shows(page, expected)
        self.assert_quiet()

    def test_what_the_correction_moved(self):
        row = list(self.effects.values())[2]
        page = self.at(f"#/patient/{row['id']}")
        self.settle(page)
        self.assert_shows(page, row)
        self.assertEqual(self.number(page, "cure_effect_matched")[0], float(row["cure_effect_matched"]))
        self.assertEqual(self.number(page, "cure_effect_corrected")[0], float(row["cure_effect"]))
        self.assert_quiet()
