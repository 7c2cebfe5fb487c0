"""The site: what it says is run, what it refers to is there, and it is built as the reference says."""

import html.parser
import subprocess
import sys
import unittest
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "target" / "site"
sys.path.insert(0, str(ROOT / "site"))
import snippets  # noqa: E402


def run(*command):
    """Runs a command in the repository; gives its exit code and what it printed."""
    done = subprocess.run([sys.executable, *map(str, command)], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


class Links(html.parser.HTMLParser):
    """What a page has: places to link to, links, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        self.ids.update(filter(None, (a.get("id"), a.get("name"))))
        if tag == "a" and a.get("href"):
            self.links.append(a["href"])
        elif tag == "link" and a.get("rel") in ("stylesheet", "icon", "preload", "preconnect", "prefetch", "manifest"):
            self.loads.append(a.get("href", ""))
        elif tag in ("script", "img", "iframe", "source", "video", "object", "embed"):
            self.loads += filter(None, (a.get("src"), a.get("data")))
            self.loads += [part.split()[0] for part in (a.get("srcset") or "").split(",") if part.strip()]


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        code, said = run("-m", "mkdocs", "build", "--strict", "--quiet")
        if code:
            raise AssertionError(f"mkdocs build --strict\n{said}")
        # 404.html is made for the root of a server.
        cls.pages = {p: Links(p) for p in SITE.rglob("*.html") if p.name != "404.html"}

    def test_every_page_is_there(self):
        made = {p.relative_to(SITE).with_suffix(".md") for p in self.pages}
        written = {p.relative_to(ROOT / "docs") for p in (ROOT / "docs").rglob("*.md")}
        self.assertEqual(sorted(map(str, written - made)), [])

    def test_links_and_anchors_lead_somewhere(self):
        dead = []
        for path, page in self.pages.items():
            for link in [*page.links, *page.loads]:
                parts = urlsplit(link)
                if parts.scheme or parts.netloc:
                    continue
                target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                target = target / "index.html" if target.is_dir() else target
                if not target.exists():
                    dead.append(f"{path.relative_to(SITE)}: {link}")
                elif parts.fragment and target in self.pages and not parts.fragment.startswith("__"):
                    if unquote(parts.fragment) not in self.pages[target].ids:
                        dead.append(f"{path.relative_to(SITE)}: {link} has no such anchor")
        self.assertEqual(dead, [])

    def test_lists_are_lists(self):
        # A list that follows a line of text without a blank line becomes part of the text.
        import re

        text = {p: re.sub(r"<pre.*?</pre>", "", p.read_text(), flags=re.DOTALL) for p in self.pages}
        broken = [f"{p.relative_to(SITE)}: {found[:80]}" for p, page in text.items() for paragraph in re.findall(r"<p>(.*?)</p>", page, re.DOTALL)
                  for found in re.findall(r"(?m)^(?:- |\* |\d+\. |\|).*", paragraph)]
        self.assertEqual(broken, [])

    def test_nothing_is_loaded_from_elsewhere(self):
        foreign = [f"{p.relative_to(SITE)}: {url}" for p, page in self.pages.items() for url in page.loads
                   if url.startswith(("http:", "https:", "//"))]
        self.assertEqual(foreign, [])
        styles = [f"{p.name}: {line[:80]}" for p in SITE.rglob("*.css") for line in p.read_text().splitlines()
                  if "url(http" in line or 'url("http' in line or "@import" in line]
        self.assertEqual(styles, [])

    def test_the_reference_is_what_the_code_says(self):
        code, said = run("site/reference.py", "--check", "--dvim", snippets.DVIM)
        self.assertEqual(code, 0, said)

    def test_spelling(self):
        pages = [p for p in snippets.pages() if p.parent.name != "study"]
        code, said = run("-m", "codespell_lib", "--builtin", "clear,rare", "--ignore-words", "site/words.txt", *pages, "mkdocs.yml", *sorted((ROOT / "site").glob("*.py")))
        self.assertEqual(code, 0, said)

    def test_every_word_is_a_word(self):
        code, said = run("site/spelling.py")
        self.assertEqual(code, 0, f"not in a dictionary (site/dictionary.txt takes terms of the field):\n{said}")

    def test_the_readme_links_to_files(self):
        import re

        readme = (ROOT / "README.md").read_text()
        missing = [t for t in re.findall(r"\]\((?!https?:|#)([^)#]+)", readme) if not (ROOT / t).exists()]
        self.assertEqual(missing, [])
        for command in ("cargo run --release -- demo", "make test"):
            self.assertIn(command, readme)


class Snippets(unittest.TestCase):
    """Every command and snippet is run."""

    def test_snippets(self):
        runner = snippets.Runner()
        self.addCleanup(runner.close)
        n = 0
        for page in snippets.pages():
            with self.subTest(page=str(page.relative_to(ROOT))):
                try:
                    n += runner.page(page)
                except snippets.Wrong as wrong:
                    self.fail(str(wrong))
        self.assertGreater(n, 50)
        for where, why in runner.skipped:
            print(f"not run: {where}: {why}")


if __name__ == "__main__":
    unittest.main()
