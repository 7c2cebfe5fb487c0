#!/usr/bin/env python3
"""Draws docs/assets/accuracy.svg from docs/accuracy-*.csv, the tables that `dvim study accuracy` wrote. Run by `make figures`."""

import csv
import math
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAPERS = ["cure-only", "time-only", "both-independent", "both-overlap"]
SAME = ["no-effect", "constant-effect"]
SIZES = [300, 1200, 2000, 20000]
LINES = [("paper_cure", "paper's estimator", "#9a3b00", "6 4"), ("adjusted_cure", "adjusted (default)", "#0b4f6c", "")]
WIDTH, HEIGHT, LEFT, TOP, PANEL, DEEP, GAP = 700, 330, 52, 46, 270, 220, 60


def means():
    """Mean error of the cure effect in points, by panel, line and size."""
    out = {}
    for n in SIZES:
        with open(DOCS / f"accuracy-{n}.csv", newline="") as file:
            rows = [r for r in csv.DictReader(file) if r["scenario"] not in SAME]
        for panel, chosen in enumerate((PAPERS, [r["scenario"] for r in rows if r["scenario"] not in PAPERS])):
            for column, *_ in LINES:
                values = [float(r[column]) for r in rows if r["scenario"] in chosen]
                out[panel, column, n] = sum(values) / len(values)
    return out


def main():
    found = means()
    top = 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, \'DejaVu Sans\', sans-serif" font-size="12" role="img" aria-labelledby="t d">',
        '<title id="t">Mean error of a patient\'s cure effect, by number of patients</title>',
        '<desc id="d">Two panels. ' + " ".join(
            f"{title}: " + "; ".join(f"{label} " + ", ".join(f"{found[p, c, n]:.1f} at {n:,}" for n in SIZES) for c, label, *_ in LINES) + "."
            for p, title in enumerate(("The paper\'s four scenarios", "Twelve worlds where the cure model is wrong"))) + "</desc>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for panel, title in enumerate(("The paper’s four scenarios", "12 worlds where the model is wrong")):
        x0 = LEFT + panel * (PANEL + GAP)

        def x(n):
            return x0 + 14 + (PANEL - 28) * math.log(n / SIZES[0]) / math.log(SIZES[-1] / SIZES[0])

        def y(value):
            return TOP + DEEP * (1 - value / top)

        out.append(f'<text x="{x0}" y="{TOP - 22}" font-weight="600" fill="#14232b">{title}</text>')
        for tick in range(0, top + 1, 5):
            out.append(f'<path d="M{x0} {y(tick):.1f}h{PANEL}" stroke="#dde3e7"/>')
            out.append(f'<text x="{x0 - 6}" y="{y(tick) + 4:.1f}" text-anchor="end" fill="#4a5a63">{tick}</text>')
        for n in SIZES:
            if n != 1200:
                out.append(f'<text x="{x(n):.1f}" y="{TOP + DEEP + 18}" text-anchor="middle" fill="#4a5a63">{n:,}</text>')
        for column, label, colour, dash in LINES:
            points = [(x(n), y(found[panel, column, n])) for n in SIZES]
            out.append(f'<path d="M{"L".join(f"{a:.1f} {b:.1f}" for a, b in points)}" fill="none" stroke="{colour}" stroke-width="2.2" stroke-dasharray="{dash}"/>')
            for (a, b), n in zip(points, SIZES):
                out.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.2" fill="{colour}"/>')
                if n != 1200:
                    out.append(f'<text x="{a:.1f}" y="{b - 9:.1f}" text-anchor="middle" fill="{colour}">{found[panel, column, n]:.1f}</text>')
        out.append(f'<text x="{x0 + PANEL / 2}" y="{TOP + DEEP + 38}" text-anchor="middle" fill="#14232b">patients</text>')
    out.append(f'<text x="14" y="{TOP + DEEP / 2}" text-anchor="middle" fill="#14232b" transform="rotate(-90 14 {TOP + DEEP / 2})">mean error, points</text>')
    for i, (_, label, colour, dash) in enumerate(LINES):
        at = LEFT + 150 + i * 200
        out.append(f'<path d="M{at} {HEIGHT - 12}h28" stroke="{colour}" stroke-width="2.2" stroke-dasharray="{dash}"/>')
        out.append(f'<text x="{at + 36}" y="{HEIGHT - 8}" fill="#14232b">{label}</text>')
    out.append("</svg>")
    (DOCS / "assets" / "accuracy.svg").write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
