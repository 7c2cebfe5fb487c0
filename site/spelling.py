#!/usr/bin/env python3
"""Names words of README.md, CHANGELOG.md and docs/ that no English dictionary and no line of site/dictionary.txt has.

    site/spelling.py [PAGE...]       all pages, or those named

Code, formulas, links, names with capitals inside, and words with digits are not looked at. A new term of the field goes into
site/dictionary.txt, one word a line, in lower case.
"""

import re
import sys
from pathlib import Path

from spellchecker import SpellChecker

ROOT = Path(__file__).resolve().parents[1]
DICTIONARY = ROOT / "site" / "dictionary.txt"
# Tables that commands wrote, and what is made from the code.
SKIPPED = {"reference/commands.md", "reference/columns.md", "reference/python.md", "reference/r.md"}
NOT_PROSE = re.compile(
    r"<!--.*?-->|^( *)(`{3,}).*?^\1\2\s*$|^ {4}.*$|`[^`\n]+`|\]\([^)]*\)|\{[^}\n]*\}|<[^>\n]+>|https?://\S+", re.DOTALL | re.MULTILINE)
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*", re.UNICODE)


def pages():
    docs = ROOT / "docs"
    made = {docs / name for name in SKIPPED} | set((docs / "study").glob("*.md"))
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(set(docs.rglob("*.md")) - made)]


def prose(text):
    """The page with everything that is no prose blanked out; lines stay where they are."""
    return NOT_PROSE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def unknown(page, english, ours):
    """(line, word) of each word that nobody knows."""
    for number, line in enumerate(prose(page.read_text()).splitlines(), 1):
        for found in WORD.finditer(line):
            # Names (an upper case letter that begins no sentence), symbols and parts of them.
            before, after = line[: found.start()][-1:], line[found.end() :][:1]
            word = re.sub(r"['’]s?$", "", found[0])
            if len(word) < 3 or "'" in word or not word.isascii() or word != word.lower() and word[1:] != word[1:].lower():
                continue
            if before and before in "\\/.=-·_0123456789" or after and after in "_=/(" or (after == "." and line[found.end() + 1 :][:1].isalnum()):
                continue
            low = word.lower()
            if low not in ours and low not in english:
                yield number, found[0]


def main():
    asked = [Path(p).resolve() for p in sys.argv[1:]] or pages()
    english, ours = SpellChecker(), set(DICTIONARY.read_text().split())
    n = 0
    for page in asked:
        for line, word in unknown(page, english, ours):
            n += 1
            print(f"{page.relative_to(ROOT)}:{line}: {word}")
    return n


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
