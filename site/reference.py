#!/usr/bin/env python3
"""Writes the pages of docs/reference that are made from the code: commands, columns of the files, Python, R.

    site/reference.py [--check] [--dvim target/debug/dvim]

The pages are committed, so that they can be read without building anything. `--check` writes nothing and fails where a page is
not what the code says; a test runs it. Commands are what `dvim COMMAND --help` prints. Columns are those of files that dvim writes
here and now; each must be described below, and nothing else may be. Python is the docstrings of what `dvim` exports. R is the manual
in r/man, which roxygen makes from the sources.
"""

import argparse
import ast
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "reference"
MADE = "<!-- Made by site/reference.py from the code. Change the code, then run `make reference`. -->\n\n"


# ---------------------------------------------------------------- commands

GROUPS = [
    ("Try it", ["demo", "simulate"]),
    ("Before a study", ["design"]),
    ("From a table to a run", ["check", "fit", "compare"]),
    ("Look at a run", ["match", "explore", "audit", "rehearse", "report", "curves", "table", "plot"]),
    ("Go on from a run", ["predict", "rerun"]),
    ("The rest", ["study", "clean", "completions"]),
]


def commands(dvim):
    def run(*args):
        # Help is wrapped to the width of the terminal; without one it is always the same.
        return subprocess.run([dvim, *args], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout

    top = run("--help")
    listed = re.findall(r"^  (\w+) +\S", top.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    grouped = [name for _, names in GROUPS for name in names]
    missing = sorted(set(listed) - set(grouped) - {"help"}) + sorted(set(grouped) - set(listed))
    if missing:
        sys.exit(f"site/reference.py: GROUPS and `dvim --help` differ in {', '.join(missing)}")
    out = [MADE, "# Commands\n\nWhat `dvim COMMAND --help` prints, for every command. `-h` prints a shorter form.\n\n"]
    for title, names in GROUPS:
        out.append(f"- {title}: " + ", ".join(f"[{n}](#dvim-{n})" for n in names) + "\n")
    out.append(f"\n```text\n{top.strip()}\n```\n")
    for title, names in GROUPS:
        for name in names:
            text = "\n".join(line.rstrip() for line in run(name, "--help").strip().splitlines())
            first, rest = text.split("\n\nUsage:", 1)
            out.append(f"\n## dvim {name}\n\n{' '.join(first.split())}.\n\n```text\nUsage:{rest}\n```\n")
    return "".join(out)


# ---------------------------------------------------------------- columns

LIMITS = {"_se": "standard error", "_low": "lower limit", "_high": "upper limit"}
EFFECTS = {
    "id": "The patient.",
    "treatment": "The patient's own arm, as the table names it.",
    "cure_effect": "π: probability of being event-free at H under treatment, less that under control. 0.1 is 10 points.",
    "time_effect": "Δ: mean event time of those with the event before H under treatment, less that under control.",
    "cure_treated": "Probability of being event-free at H under treatment.",
    "cure_control": "The same under control.",
    "mean_event_time_treated": "Mean event time of those with the event before H, under treatment.",
    "mean_event_time_control": "The same under control.",
    "cure_at_risk_treated": "Members of the treated group matched for cure who are still followed at H.",
    "cure_at_risk_control": "The same of the control group.",
    "cure_diameter_treated": "Distance from the patient to the farthest member of the treated group matched for cure.",
    "cure_diameter_control": "The same of the control group.",
    "time_diameter_treated": "Distance to the farthest member of the treated group matched for time.",
    "time_diameter_control": "The same of the control group.",
    "flags": "What to know of this row, separated by semicolons. See below.",
    "rmst_effect": "Event-free time gained up to H by treatment (difference in restricted mean survival time).",
    "rmst_from_cure": "The part of it that comes from more patients being event-free.",
    "rmst_from_time": "The part of it that comes from later events. The two parts add up exactly.",
    "rmst_treated": "Mean event-free time up to H under treatment.",
    "rmst_control": "The same under control.",
    "median_treated": "Time at which half have had the event, under treatment. Empty if the curve stays above one half.",
    "median_control": "The same under control.",
    "cure_effect_model": "The cure effect by the model alone, before the similar patients correct it.",
    "cure_effect_matched": "The cure effect by the similar patients alone.",
    "cure_weight": "How far the similar patients move the model's answer, 0 to 1.",
    "time_effect_model": "The time effect by the model alone.",
    "time_effect_matched": "The time effect by the similar patients alone.",
    "time_weight": "How far the similar patients move it.",
    "cure_effect_split_sd": "Standard deviation of the cure effect over repeated cross-fits.",
    "time_effect_split_sd": "The same of the time effect.",
}
WEIGHTS = {
    "covariate": "The column of your table.",
    "level": "The level, for a category. `(missing)` is the indicator of a gap that was filled in.",
    "fill": "What a gap was filled with, under `--missing indicator`.",
    "cure_weight": "Weight of the covariate in the distance for the cure effect.",
    "time_weight": "Weight in the distance for the time effect.",
    "center": "Subtracted from the covariate before distances are measured.",
    "scale": "Then divided by this.",
    "cure_coefficient_treated": "Coefficient in the cure part of the treated arm's cure model. Positive: cure is likelier.",
    "cure_se_treated": "Its standard error.",
    "cure_coefficient_control": "The same in the control arm.",
    "cure_se_control": "Its standard error.",
    "time_coefficient_treated": "Coefficient in the time part of the treated arm's model. Positive: events come later.",
    "time_se_treated": "Its standard error.",
    "time_coefficient_control": "The same in the control arm.",
    "time_se_control": "Its standard error.",
}
CURVES = {
    "population": "Whom the curve is averaged over: all, treated, control, or a subgroup.",
    "id": "The patient.",
    "arm": "`treated`, `control`, or `difference` (treated less control).",
    "time": "Time since the start of follow-up.",
    "survival": "Probability of no event so far.",
    "se": "Its standard error.",
    "low": "Lower limit at this time.",
    "high": "Upper limit at this time.",
    "band_low": "Lower limit of a band that holds the whole curve at once.",
    "band_high": "Upper limit of that band.",
}
GROUP = {
    "id": "The new patient.",
    "matched_for": "`cure` or `time`.",
    "arm": "The arm of the member.",
    "rank": "1 is the most similar.",
    "member": "The member's id in the cohort.",
    "distance": "Distance between the two.",
    "time": "The member's time.",
    "event": "Whether the member had the event.",
    "counts": "What the member counts in the group. Below 1 where patients are equally far and share the last places.",
}
USES = {
    "id": "The patient.",
    "treatment": "The patient's arm.",
    "cure_uses": "How often the patient is in groups matched for cure; the weights behind balance.",
    "time_uses": "The same for groups matched for time.",
}
SUMMARY = {
    "schema": "Name and number of this layout.",
    "version": "Version of dvim.",
    "input": "The table: name, SHA-256, size, rows.",
    "roles": "Which column played which part, and the covariates.",
    "flow": "How many rows were left out, by which rule.",
    "covariates": "How each covariate became numbers.",
    "horizon": "H.",
    "options": "Every option of the analysis.",
    "counts": "Patients, events, censorings and patients at risk at H, in each arm.",
    "models": "Descriptive cure models of both arms, with their certificate of convergence.",
    "adjusted": "The adjusted estimator: family of event times, folds with their group sizes and weights, spread over splits.",
    "average_effects": "Averages with standard errors and intervals: one entry for each estimand and population.",
    "verdict": "One word for each effect, and the reasons.",
    "baseline": "Each covariate in both arms, with standardised differences.",
    "individual": "How the patients' effects are spread.",
    "flags": "How many patients have each flag.",
    "audit": "Follow-up, balance, curves, horizons, sensitivity, heterogeneity.",
    "warnings": "What was worth saying about the table.",
    "files": "SHA-256 of every other file of the run.",
    "seal": "A digest of this file. An edited summary is not opened.",
}
FLAGS = {
    "cure_carried_forward": "Nobody in the group matched for cure was followed to H: the last value of its curve is used.",
    "time_carried_forward": "The same of the group matched for time.",
    "no_event": "The group matched for time has no event before H. Under the paper's estimator there is then no time effect.",
    "few_at_risk": "With late entry, an event of the group happened while few were at risk.",
    "no_time_interval": "One event, or events of one cluster: the time effect has no interval.",
    "too_few_candidates": "Too few patients satisfy `--exact` and `--caliper`: no effect.",
}


def described(found, known, what):
    """Rows of a table for the columns that a file has; each must be known, or be a limit of one that is."""
    rows, unknown = [], []
    for name in found:
        end = next((e for e in LIMITS if name.endswith(e) and name not in known), None)
        if name in known:
            rows.append((name, known[name]))
        elif end and name.removesuffix(end) in known:
            rows.append((name, f"{LIMITS[end].capitalize()} of `{name.removesuffix(end)}`."))
        else:
            unknown.append(name)
    gone = [name for name in known if name not in found]
    if unknown or gone:
        sys.exit(f"site/reference.py: {what}: describe {unknown}, remove {gone}")
    return rows


def table(rows, head="column"):
    return f"| {head} | what it holds |\n| --- | --- |\n" + "".join(f"| `{name}` | {text} |\n" for name, text in rows)


def flag_names():
    """The flags that the engine knows, from their one place in its source."""
    effect = (ROOT / "crates/dvim/src/effect.rs").read_text()
    named = re.findall(r'Flag::\w+\(Arm::\w+\) => "(\w+)"', effect)
    named += re.findall(r'Arm::\w+ => "(too_few_candidates_\w+)"', (ROOT / "crates/dvim/src/constraint.rs").read_text())
    return sorted({re.sub("_(treated|control)$", "", name) for name in named})


def columns(dvim):
    with tempfile.TemporaryDirectory() as folder:
        def run(*args):
            subprocess.run([dvim, *args], cwd=folder, check=True, capture_output=True, stdin=subprocess.DEVNULL)

        def head(name):
            with open(Path(folder) / name, newline="") as file:
                return next(csv.reader(file))

        run("simulate", "--scenario", "transplant", "--n", "400", "-o", "cohort.csv")
        fit = ["fit", "cohort.csv", "--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", "3650"]
        run(*fit, "--splits", "20", "-o", "run")
        run(*fit, "--estimator", "paper", "-k", "20", "-o", "paper")
        run("curves", "run", "-o", "curves.csv")
        run("curves", "run", "--patients", "synthetic-0001", "-o", "patients.csv")
        run("predict", "run", "cohort.csv", "-o", "new.csv", "--groups", "groups.csv")
        run("audit", "run", "--uses", "uses.csv")
        effects, paper = head("run/effects.csv"), set(head("paper/effects.csv"))
        keys = dict.fromkeys([k for name in ("run", "paper") for k in json.loads((Path(folder) / name / "summary.json").read_text())])
        curves = dict.fromkeys(head("curves.csv") + head("patients.csv"))
        parts = [
            MADE,
            "# Columns of the files\n\nEvery file that other software can read, column by column. An empty cell is undefined, never zero.\n",
            "\n## effects.csv\n\nOne row for each estimated patient. `dvim predict` writes the same columns for new patients; their arm is empty. "
            "Columns marked * are there under the adjusted estimator only; the last two where the cross-fit was repeated.\n\n",
            table([(n, t if n in paper else f"{t} *") for n, t in described(effects, EFFECTS, "effects.csv")]),
            "\n### Flags\n\nA flag ends with the arm it speaks of, such as `no_event_treated`.\n\n",
            table([*described(flag_names(), FLAGS, "flags"),
                   ("beyond_max_distance", "`predict --max-distance`: a group reaches farther. No estimate."),
                   ("off_support:COLUMN", "`predict`: the value is outside what the cohort has seen. The estimate is an extrapolation.")], "flag"),
            "\n## weights.csv\n\nOne row for each covariate, or for each level of a category.\n\n",
            table(described(head("run/weights.csv"), WEIGHTS, "weights.csv")),
            "\n## summary.json\n\nEverything about the run.\n\n",
            table(described(list(keys), SUMMARY, "summary.json"), "key"),
            "\n## Curves\n\n`dvim curves run` writes `population`, `arm`, `time`, `survival` and limits; with `--patients`, `id` in the place of `population`.\n\n",
            table(described(list(curves), CURVES, "curves")),
            "\n## Groups of new patients\n\n`dvim predict run new.csv --groups FILE`, one row for each member of each group.\n\n",
            table(described(head("groups.csv"), GROUP, "groups")),
            "\n## Uses\n\n`dvim audit run --uses FILE`, one row for each patient who can be in a group.\n\n",
            table(described(head("uses.csv"), USES, "uses")),
        ]
    return "".join(parts)


# ---------------------------------------------------------------- Python

ORDER = ["fit", "Analysis", "MatchGroup", "Audit", "Plots", "Pooled", "Arms", "open", "check", "Check", "compare", "Comparison",
         "simulate", "scenarios", "kaplan_meier", "Curve", "MixtureCure", "DoubleMatching", "Columns", "Record",
         "Error", "Refused", "ModelError", "NoSuchUnit", "OpenError", "Exists", "Warning", "Problem"]


def python():
    package = ROOT / "python" / "dvim"
    found, exported = {}, None
    for path in sorted(package.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                if not any(ast.unparse(d) == "overload" for d in node.decorator_list):
                    found.setdefault(node.name, node)
                elif node.name == "fit":
                    found["fit()"] = node  # the last overload is the one list of arguments
            if path.name == "__init__.py" and isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                exported = ast.literal_eval(node.value)
    missing = sorted({*exported, "Plots"} ^ set(ORDER))
    if missing:
        sys.exit(f"site/reference.py: ORDER and dvim.__all__ differ in {', '.join(missing)}")
    out = [MADE, "# Python, by name\n\nThe docstrings of the package. [Python, by task](../python.md) says what goes in and what comes out.\n"]
    for name in ORDER:
        out.extend(entry(name, found[name], found))
    spark = {n.name: n for n in ast.parse((package / "spark.py").read_text()).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    for name in ("fit", "Fit"):
        out.extend(entry(f"spark.{name}", spark[name], spark))
    return "".join(out)


def entry(name, node, found):
    """A function, or a class with its parts."""
    if isinstance(node, ast.FunctionDef):
        return [f"\n## dvim.{name}\n\n```text\n{signature(found.get(name + '()', node), 'dvim.' + name)}\n```\n\n{doc(node)}\n"]
    bases = [ast.unparse(b) for b in node.bases if not ast.unparse(b).startswith(("Mapping", "BaseEstimator"))]
    out = [f"\n## dvim.{name}\n\n" if name != "Plots" else "\n## Analysis.plot\n\n"]
    out.append((f"A `{'`, `'.join(bases)}`. " if bases and name not in ("Plots",) else "") + doc(node) + "\n")
    for part in members(node, found):
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("_") and ast.get_docstring(part):
            kinds = {ast.unparse(d) for d in part.decorator_list}
            shown = f".{part.name}" if kinds & {"property", "cached_property"} else signature(part, f".{part.name}")
            out.append(f"\n### `{' '.join(shown.split())}` {{#{name.lower().replace('.', '-')}-{part.name}}}\n\n{doc(part)}\n")
    return out


def members(node, found):
    """The parts of a class, those of bases of this package included."""
    own = {getattr(p, "name", None) for p in node.body}
    inherited = [p for b in node.bases if (base := found.get(ast.unparse(b))) is not None and base.name == "Several"
                 for p in base.body if getattr(p, "name", None) not in own]
    return [*node.body, *inherited]


def signature(node, name):
    a = node.args
    plain = [*a.posonlyargs, *a.args]
    parts = []
    for arg, default in zip(plain, [None] * (len(plain) - len(a.defaults)) + a.defaults):
        if arg.arg not in ("self", "cls"):
            parts.append(arg.arg + (f"={ast.unparse(default)}" if default is not None else ""))
    if a.vararg or a.kwonlyargs:
        parts.append(f"*{a.vararg.arg if a.vararg else ''}")
    for arg, default in zip(a.kwonlyargs, a.kw_defaults):
        parts.append(arg.arg + (f"={ast.unparse(default)}" if default is not None else ""))
    if a.kwarg:
        parts.append(f"**{a.kwarg.arg}")
    text = f"{name}({', '.join(parts)})"
    return text if len(text) < 100 else f"{name}(\n    " + ",\n    ".join(parts) + ",\n)"


def doc(node):
    """A docstring as Markdown: NumPy's sections, roles of Sphinx, doubled backquotes, examples."""
    lines, out, i = (ast.get_docstring(node) or "").splitlines(), [], 0
    while i < len(lines):
        line = lines[i]
        if i + 1 < len(lines) and re.fullmatch("-{3,}", lines[i + 1]):
            out += [f"**{line}**", ""]
            i += 2
        elif line.startswith(">>> "):
            block = []
            while i < len(lines) and lines[i].strip():
                block.append(lines[i])
                i += 1
            out += ["```pycon", *block, "```"]
        elif not line.startswith(" ") and i + 1 < len(lines) and lines[i + 1].startswith("    ") and line.strip():
            text = []
            i += 1
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                if not lines[i].strip():
                    break
                text.append(lines[i].strip())
                i += 1
            out.append(f"- `{line}`: {' '.join(text)}")
        else:
            out.append(line)
            i += 1
    text = "\n".join(out)
    text = re.sub(r":(?:func|class|meth):`\.?([^`]+)`", r"`\1`", text)
    return re.sub(r"(?<!`)``([^`]+)``(?!`)", r"`\1`", text)


# ---------------------------------------------------------------- R

# The pages of the manual, from a table to a run and on from it.
MANUAL = ["dvim", "dvim_check", "summary.dvim", "averages", "coef.dvim", "tidiers", "as.data.frame.dvim", "matches", "curves", "balance",
          "matching_weights", "predict.dvim", "plot.dvim", "dvim_report", "dvim_explore", "dvim_save", "several", "dvim_compare",
          "dvim_simulate"]
NOT_SHOWN = {"dvim-package", "reexports"}


def braced(text, at):
    """The text in the braces that open at `at`, and where they end."""
    depth, i = 0, at
    while True:
        if text[i] == "\\":
            i += 1
        elif text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth == 0:
                return text[at + 1 : i], i + 1
        i += 1


def sections(text):
    """The sections of a page of the manual, by name."""
    found = {}
    for m in re.finditer(r"^\\(title|description|usage|arguments|value|details|examples|section)(?=\{)", text, re.MULTILINE):
        found.setdefault(m[1], braced(text, m.end())[0].strip())
    return found


def prose_of(text):
    """R's markup as Markdown."""
    text = re.sub(r"\\verb\{([^{}]*)\}", r"`\1`", text)
    code = r"\\code\{((?:[^{}\\]|\\[a-z]+(?:\[[^\]]*\])?\{[^{}]*\}|\\.)*)\}"

    def plain(m):
        inner = re.sub(r"\\[a-z]+(?:\[[^\]]*\])?\{([^{}]*)\}", r"\1", m[1])
        return f"`{inner}`"

    text = re.sub(code, plain, text)
    text = re.sub(r"\\(?:link|pkg)(?:\[[^\]]*\])?\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\(?:emph|strong)\{([^{}]*)\}", r"*\1*", text)
    text = re.sub(r"\\href\{([^{}]*)\}\{([^{}]*)\}", r"[\2](\1)", text)
    text = re.sub(r"\\url\{([^{}]*)\}", r"<\1>", text)
    text = text.replace("\\dots", "...").replace("\\%", "%").replace("\\_", "_")
    text = re.sub(r"\\item\{([^{}]*)\}\{([^{}]*)\}", r"\1: \2;", re.sub(r"\\describe\{(.*)\}", r"\1", text, flags=re.DOTALL))
    left = re.search(r"\\[a-z]+\{", text)
    if left:
        sys.exit(f"site/reference.py: r/man has markup that is not known here: {left[0]} in {text[:80]!r}")
    return "\n\n".join(" ".join(block.split()) for block in re.split(r"\n\s*\n", text.strip()))


def manual():
    folder = ROOT / "r" / "man"
    differ = sorted({path.stem for path in folder.glob("*.Rd")} ^ {*MANUAL, *NOT_SHOWN})
    if differ:
        sys.exit(f"site/reference.py: MANUAL and r/man differ in {', '.join(differ)}")
    out = [MADE, "# R, by name\n\nThe manual of the package, without its examples. [R, by task](../r.md) says how a formula is read.\n"]
    for name in MANUAL:
        page = sections((folder / f"{name}.Rd").read_text())
        usage = re.sub(r"\\method\{([^}]*)\}\{[^}]*\}", r"\1", page.get("usage", "")).replace("\\%", "%").replace("\\dots", "...").replace("[[(x, i)", "x[[i]]")
        title, text = prose_of(page["title"]), prose_of(page.get("description", ""))
        title = f"**{title if title.endswith('?') else title + '.'}**"
        out.append(f"\n## {name}\n\n{title if text == prose_of(page['title']) else f'{title} {text}'}\n")
        if usage:
            out.append(f"\n```text\n{usage.strip()}\n```\n")
        items, arguments, at = [], page.get("arguments", ""), 0
        while (m := re.compile(r"\\item(?=\{)").search(arguments, at)) is not None:
            label, end = braced(arguments, m.end())
            text, at = braced(arguments, end)
            items.append(f"- `{label.replace(chr(92) + 'dots', '...')}`: {prose_of(text)}\n")
        if items:
            out.append("\n" + "".join(items))
        for section in ("details", "value"):
            if section in page:
                out.append(f"\n{'Gives: ' if section == 'value' else ''}{prose_of(page[section])}\n")
    return "".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--dvim", default=os.environ.get("DVIM", str(ROOT / "target/debug/dvim")))
    asked = parser.parse_args()
    pages = {"commands.md": commands(asked.dvim), "columns.md": columns(asked.dvim), "python.md": python(),
             "r.md": manual()}
    stale = [name for name, text in pages.items() if not (OUT / name).exists() or (OUT / name).read_text() != text]
    if asked.check:
        if stale:
            sys.exit(f"docs/reference: {', '.join(stale)} are not what the code says. Run `make reference`, read the difference, commit it.")
        return
    for name in stale:
        (OUT / name).write_text(pages[name])
        print(f"docs/reference/{name}")


if __name__ == "__main__":
    main()
