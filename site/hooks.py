"""What MkDocs does not do by itself: links from docs/ to files of the repository outside of it.

Such a link works where the repository is browsed. On the site it becomes the name of the file. One that leads to nothing stops
the build. Links of the changelog and the like, which are included from the root, begin with `docs/`: they become pages.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^( *)(`{3,}).*?^\1\2\s*$", re.MULTILINE | re.DOTALL)
WITHOUT_TOOL = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Not built</title></head>
<body><main><h1>The tool in the browser is not in this copy</h1>
<p>It is made by <code>make web</code>, which needs a Rust compiler for WebAssembly. <a href="index.html">Back</a></p></main></body></html>
"""
INCLUDE = re.compile(r'^--8<-- "([^"]+)"$', re.MULTILINE)


def outside(target, page):
    """The path of a linked file from the root of the repository, if it is outside of docs/."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    return None if path.startswith("docs/") else path


def on_post_page(output, **_):
    """Names for what a screen reader meets twice, or without a name."""
    output = output.replace('data-md-component="search" role="dialog">', 'data-md-component="search" role="dialog" aria-label="Search">')
    output = output.replace('<nav class="md-search__options" aria-label="Search">', '<nav class="md-search__options" aria-label="Search options">')
    output = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", output)
    return output.replace('aria-label="Table of contents"', 'aria-label="Table of contents, in the menu"', 1)


def on_post_build(config, **_):
    """The tool in the browser, as try.html; where `make web` did not make it, a page that says so."""
    tool, page = ROOT / "target" / "web" / "try.html", Path(config["site_dir"]) / "try.html"
    if tool.exists():
        page.write_bytes(tool.read_bytes())
    else:
        page.write_text(WITHOUT_TOOL)


def on_page_markdown(markdown, page, **_):
    here = page.file.src_uri

    def included(match):
        text = (ROOT / match[1]).read_text()
        up = posixpath.relpath(".", posixpath.dirname(here) or ".")
        return re.sub(r"\]\(docs/", f"]({up}/" if up != "." else "](", text)

    def link(match):
        image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        path = outside(target, here)
        # Notebooks and scripts of docs/ are no pages: name them too.
        if path is None and not target.endswith((".ipynb", ".py")):
            return match[0]
        path = path or posixpath.normpath(posixpath.join("docs", posixpath.dirname(here), target))
        if not (ROOT / path).exists():
            raise PluginError(f"{here}: the link to `{target}` leads to nothing")
        name = text.strip("`")
        return f"`{path}`" if posixpath.basename(path) in name or image else f"{text} (`{path}`)"

    markdown = INCLUDE.sub(included, markdown)
    out, last = [], 0
    for fence in FENCE.finditer(markdown):
        out += [LINK.sub(link, markdown[last : fence.start()]), fence[0]]
        last = fence.end()
    return "".join([*out, LINK.sub(link, markdown[last:])])
