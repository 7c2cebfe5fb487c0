"""Tables of the campaigns, as Markdown, between marks of a page."""

import re


def cell(value):
    return f"{value:,}" if isinstance(value, int) else str(value)


def markdown(header, rows):
    lines = [" | ".join(header), " | ".join("---" if i == 0 else "---:" for i in range(len(header)))]
    lines += [" | ".join(cell(v) for v in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def put(page, name, text):
    """Replaces what stands between `<!-- name -->` and `<!-- /name -->`."""
    old = page.read_text()
    mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
    if not mark.search(old):
        raise SystemExit(f"{page} has no place for the table `{name}`")
    page.write_text(mark.sub(lambda m: m[1] + text + "\n" + m[2], old))
