"""Small line plots as SVG, for docs/benchmarks.md; no library needed."""

import math

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 150, 34, 48
# Told apart by shade and by dash, also in print.
STYLES = [("#0b5394", ""), ("#b45f06", "7 3"), ("#38761d", "2 3"), ("#741b47", "9 3 2 3"), ("#444444", "1 2"), ("#7f6000", "12 4")]


def ticks(low, high):
    """Powers of ten inside the range; where they are fewer than three, also 2 and 5 times those."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in [(1,), (1, 2, 5)]:
        found = [s * 10.0**e for e in powers for s in steps if low <= s * 10.0**e <= high]
        if len(found) >= 3:
            break
    return found


def label(value):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def lines(path, title, x_label, y_label, series, aims=()):
    """Writes a plot with logarithmic axes. `series`: name → [(x, y)]; `aims`: [(x, y)] that were asked for, drawn as rings."""
    points = [p for of in series.values() for p in of] + list(aims)
    (x0, x1), (y0, y1) = ((min(p[i] for p in points), max(p[i] for p in points)) for i in (0, 1))
    x0, x1, y0, y1 = x0 / 1.15, x1 * 1.15, y0 / 1.3, y1 * 1.3

    def at(x, y):
        across = (math.log(x) - math.log(x0)) / (math.log(x1) - math.log(x0))
        up = (math.log(y) - math.log(y0)) / (math.log(y1) - math.log(y0))
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="sans-serif" font-size="11" role="img" aria-label="{title}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="13" font-weight="bold">{title}</text>',
    ]
    for y in ticks(y0, y1):
        _, py = at(x0, y)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{py:.1f}" y2="{py:.1f}" stroke="#dddddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{py + 4:.1f}" text-anchor="end">{label(y)}</text>')
    for x in sorted({p[0] for p in points}):
        px, _ = at(x, y0)
        out.append(f'<line x1="{px:.1f}" x2="{px:.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 4}" stroke="#444444"/>')
        out.append(f'<text x="{px:.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{label(x)}</text>')
    base = HEIGHT - BOTTOM
    out.append(f'<path d="M{LEFT} {TOP}V{base}H{WIDTH - RIGHT}" fill="none" stroke="#444444"/>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{x_label}</text>')
    middle = (TOP + base) / 2
    out.append(f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{y_label}</text>')
    for x, y in aims:
        px, py = at(x, y)
        out.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="6" fill="none" stroke="#888888" stroke-width="1.5"/>')
    named = []
    for (name, of), (color, dash) in zip(series.items(), STYLES):
        places = [at(*p) for p in sorted(of)]
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        out.append(f'<polyline points="{way}" fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="{dash}"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in places]
        named.append([places[-1][1], name, color])
    # Names beside the last points, pushed apart where they would meet.
    named.sort()
    for i in range(1, len(named)):
        named[i][0] = max(named[i][0], named[i - 1][0] + 14)
    for y, name, color in named:
        out.append(f'<text x="{WIDTH - RIGHT + 8}" y="{y + 4:.1f}" fill="{color}">{name}</text>')
    if aims:
        out.append(f'<text x="{WIDTH - RIGHT + 8}" y="{TOP + 4}" fill="#888888">○ what was asked for</text>')
    out.append("</svg>")
    path.write_text("\n".join(out) + "\n")
