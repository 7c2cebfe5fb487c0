#!/usr/bin/env python3
"""Draws docs/assets/fits.svg, the flow chart of docs/start/fits.md. Run by `make figures`."""

from pathlib import Path
from xml.sax.saxutils import escape

OUT = Path(__file__).resolve().parents[1] / "docs" / "assets" / "fits.svg"
# A question, and where "no" leads.
STEPS = [
    (["Is the outcome a time to an event,", "seen for some, censored for others?"], ["A regression for your", "outcome"]),
    (["Is there a treatment", "with a control?"], ["A cure model alone:", "dvim.MixtureCure"]),
    (["Was treatment fixed when", "follow-up began?"], ["Emulate a target trial", "first"]),
    (["Do covariates from before treatment", "hold what decided on it, or was it a trial?"], ["dvim compares patients;", "do not call it causal"]),
    (["Are ten or more of each arm", "still followed at the horizon?"], ["A smaller horizon"]),
    (["Do you want “whether” apart", "from “when”?"], ["A Cox model may", "be enough"]),
]
W, X, BOX, TALL, STEP = 640, 20, 330, 54, 88
NO, SIDE = 430, 190


def text(x, y, lines, weight="400", fill="#14232b", anchor="middle"):
    out = []
    for i, line in enumerate(lines):
        dy = (i - (len(lines) - 1) / 2) * 17 + 4.5
        out.append(f'<text x="{x}" y="{y + dy:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{fill}">{escape(line)}</text>')
    return out


def main():
    height = 20 + STEP * len(STEPS) + 64
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W} {height}" font-family="system-ui, \'DejaVu Sans\', sans-serif" font-size="14" role="img" aria-labelledby="t d">',
        '<title id="t">Does dvim fit my question?</title>',
        '<desc id="d">Six questions in a row. Yes leads to the next one, and from the last one to dvim. No leads to another method. The page has the same in words.</desc>',
        f'<rect width="{W}" height="{height}" fill="#ffffff"/>',
        '<defs><marker id="a" markerWidth="9" markerHeight="9" refX="7" refY="4" orient="auto"><path d="M0 0L8 4L0 8z" fill="#4a5a63"/></marker></defs>',
    ]
    middle = X + BOX / 2
    for i, (question, no) in enumerate(STEPS):
        y = 20 + i * STEP
        centre = y + TALL / 2
        out.append(f'<rect x="{X}" y="{y}" width="{BOX}" height="{TALL}" rx="8" fill="#e6f1f6" stroke="#0b4f6c" stroke-width="1.5"/>')
        out += text(middle, centre, question)
        out.append(f'<path d="M{X + BOX} {centre}H{NO - 4}" stroke="#4a5a63" stroke-width="1.5" marker-end="url(#a)"/>')
        out += text((X + BOX + NO) / 2 - 4, centre - 12, ["no"], fill="#7a2e00")
        out.append(f'<rect x="{NO}" y="{y + 4}" width="{SIDE}" height="{TALL - 8}" rx="8" fill="#fdf1e6" stroke="#9a3b00"/>')
        out += text(NO + SIDE / 2, centre, no)
        out.append(f'<path d="M{middle} {y + TALL}V{y + STEP - 4}" stroke="#4a5a63" stroke-width="1.5" marker-end="url(#a)"/>')
        out += text(middle + 8, y + (TALL + STEP) / 2, ["yes"], fill="#0b4f6c", anchor="start")
    y = 20 + len(STEPS) * STEP
    out.append(f'<rect x="{X}" y="{y}" width="{BOX}" height="44" rx="22" fill="#0b4f6c"/>')
    out += text(middle, y + 22, ["dvim fits your question"], weight="600", fill="#ffffff")
    out.append("</svg>")
    OUT.write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
