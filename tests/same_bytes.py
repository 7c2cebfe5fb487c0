#!/usr/bin/env python3
"""Compares two dvim binaries byte for byte: every file, stdout, stderr and exit code of many combinations.

    tests/same_bytes.py OLD NEW [--only REGEX] [--jobs 2] [--list]

Each combination runs a few commands with either binary, in two temporary directories with the same relative paths.
The cohorts are simulated by OLD and edited here with a fixed seed. Nothing stays behind. Exit code 1 on a difference.

What is normalised before the comparison, and nothing else:
  - wall times: "in 0.23 s" of a message on stderr, and a study's lines "3 of 8 ..., about 2 min left";
  - the version: `"version": "0.1.0"` in JSON, the words "dvim 0.1.0" and "Version 0.1.0", and the table cell of the
    report, each only with the version that the binary itself names; with it the length of the header and the checksum
    of run.dvim, which follow from the bytes that are compared;
  - SHA-256 digests of files that were written beside: they become digests of the normalised files;
  - columns of a table of effects (effects.csv, predictions) that only one binary has: the others are compared;
  - the port and the token of `explore`, and the temporary directory where a message names it.
"""

import argparse
import csv
import difflib
import hashlib
import http.client
import io
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple


class Expected(NamedTuple):
    """A difference that is wanted."""

    where: str  # A regular expression for "combination: output", such as "predict-.*: new.csv".
    lines: str | None  # Lines in which this is found are left out of the comparison; None: the whole output is.
    reason: str


# Differences between the baseline and what is to replace it. Remove an entry when the baseline moves past it.
EXPECTED: list[Expected] = [
    Expected("demo: ", None, "the demonstration uses the adjusted estimator, the new default"),
    Expected(r"paper.*: .*\.html|explore-paper: .*/report", None, "the command that repeats a run names its estimator"),
    Expected(": groups.csv", None, "a column says what each member of a group counts"),
    Expected(": [0-9]+ dvim match stdout", '"counts": ', "and so does match --json"),
    Expected("explore-.*: .*GET .*members", '"counts":', "and the explorer"),
    Expected(r"^adjusted[^:]*: .*(uses\.csv|audit|summary|html)", None, "balance weighs groups of different sizes alike"),
    # What is said on stderr does not change with it.
    Expected(r"^[^:]*\b(exact|caliper|categories|ties)\b[^:]*: (?!.*stderr)", None, "patients who are equally far share places"),
    Expected("manifest.json", None, "demos, comparisons and studies list their files, so that only those are replaced"),
    Expected("force: 2 dvim fit stderr", None, "an output that exists is refused with a rule and a remedy"),
    Expected("completions: ", None, "the command `dvim clean`"),
    Expected("further-.*: ", None, "the adjusted estimator takes weights, clusters, delayed entry and other causes"),
    Expected("refused-runs: 6 dvim predict stderr", None, "several missing columns are one error"),
    Expected(
        "explore-.*: .*GET (/api/run|/app.js)",
        None,
        "every run has its models, so the page need not say that new patients cannot be entered; one sentence says how a run was learned",
    ),
]

# How long one command may take.
TIMEOUT = 300

# What is shown of a difference: lines of an output, outputs of a combination.
LINES, OUTPUTS = 4, 4


# --- cohorts ---------------------------------------------------------------------------------------------------------


def simulate(dvim, folder, name, scenario, n, seed):
    """Draws a cohort; gives its rows as dictionaries."""
    command = [dvim, "simulate", "--scenario", scenario, "--n", str(n), "--seed", str(seed), "-o", name]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=TIMEOUT)
    with open(folder / name, newline="") as file:
        return list(csv.DictReader(file))


def write(folder, name, rows, delimiter=","):
    with open(folder / name, "w", newline="") as file:
        out = csv.DictWriter(file, rows[0].keys(), delimiter=delimiter, lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def cohorts(dvim, folder):
    """Writes every table that a combination uses."""
    simulate(dvim, folder, "cohort.csv", "both-overlap", 800, 3)
    simulate(dvim, folder, "large.csv", "both-independent", 1500, 4)
    simulate(dvim, folder, "small.csv", "cure-only", 300, 5)
    new = simulate(dvim, folder, "new.csv", "both-overlap", 150, 6)
    # New patients without outcomes, some of them far away from everybody.
    for i, row in enumerate(new):
        for column in ("time", "event", "treatment"):
            del row[column]
        if i % 40 == 7:
            row["x18"] = str(50 + i)
    write(folder, "new.csv", new)

    # A registry: everything that a cohort may have, one column each. A combination names the ones it uses.
    draw = random.Random(17)
    registry = simulate(dvim, folder, "transplant.csv", "transplant", 700, 7)
    for i, row in enumerate(registry):
        time, event = float(row["time"]), row["event"] == "1"
        row["months"] = str(max(1, round(time / 30)))
        row["zero"] = "0" if i % 90 == 4 else row["time"]
        start = date(1998, 1, 1) + timedelta(days=draw.randrange(5000))
        row["start"], row["end"] = start.isoformat(), (start + timedelta(days=int(time))).isoformat()
        row["seen"] = str(event).lower()
        row["cause"] = str(draw.choice([1, 1, 1, 2, 3])) if event else "0"
        row["entry"] = str(int(time * draw.choice([0, 0, 0.1, 0.3])))
        row["weight"] = str(draw.choice([0.5, 1, 1.25, 3]))
        row["hospital"] = f"h{draw.randrange(25)}"
        row["grade"] = draw.choice(["low", "low", "mid", "high, rare"])
        row["code"] = str(draw.choice([1, 2, 3, 9]))
        row["gap"] = "" if draw.random() < 0.08 else f"{draw.gauss(60, 9):.1f}"
        row["gap_level"] = "NA" if draw.random() < 0.05 else draw.choice("abc")
        row["arm"] = draw.choice(["new", "newer +1"]) if row["treatment"] == "1" else "old"
    write(folder, "registry.csv", registry)
    write(folder, "registry.tsv", registry, delimiter="\t")
    shuffled = [dict(row) for row in registry]
    draw.shuffle(shuffled)
    write(folder, "shuffled.csv", shuffled)
    # Ids whose order as text is not that of the rows, and letters beyond ASCII.
    for i, row in enumerate(shuffled):
        row["id"] = f"{draw.choice(['Zoë', 'b', 'A', '10'])}-{i}"
    write(folder, "names.csv", shuffled)
    write(folder, "registry-new.csv", [{k: r[k] for k in r if k not in ("time", "event")} for r in registry[::9]])

    # Three imputed data sets, in one table and as files.
    long = []
    for k in range(4):
        part = []
        for row in registry:
            known = {"imp": str(k), **row}
            if not row["gap"]:
                known["gap"] = f"{draw.gauss(60, 9):.1f}" if k else ""
            part.append(known)
        long.extend(part)
        if k:
            write(folder, f"set{k}.csv", part)
    write(folder, "imputed.csv", long)

    # Tables that are to be refused.
    bad = [dict(row) for row in registry]
    bad[3]["age"], bad[8]["time"], bad[11]["event"], bad[20]["age"] = "old", "-4", "7", "inf"
    write(folder, "bad.csv", bad)
    (folder / "empty.csv").write_text("")
    (folder / "short.csv").write_text("id,time,event,arm,age\n1,5,1,0\n2,6,0,1,50\n")
    (folder / "notes.txt").write_text("mine\n")


# --- combinations ----------------------------------------------------------------------------------------------------

# The paper's cohorts, and the registry with its usual columns.
P = "--time time --event event --treatment treatment --horizon 800"
COVARIATES = "age,male,donor_age,t_cell,second_remission,log10_white_cells"
TREATED = "--treatment treatment --horizon 3650"
TIED = "--event event --treatment treatment --horizon 120"
ZERO = f"--time zero --event event {TREATED} --covariates {COVARIATES}"
EVENTS = f"--time time --event event {TREATED}"
R = f"{EVENTS} --covariates {COVARIATES}"
A = "--estimator adjusted"


def looks(run, patient):
    """Every command that looks at a finished run."""
    return [
        f"match {run} {patient}",
        f"match {run} {patient} --all --json",
        f"audit {run} --json",
        f"audit {run} --uses {run}-uses.csv",
        f"report {run} -o {run}.html --title Looks --time-unit days",
    ]


FIGURES = ["effects", "curves", "plane", "balance", "weights", "averages", "horizon", "follow-up"]
FAMILIES = ["auto", "log-normal", "weibull", "log-logistic", "generalised-gamma"]
PENALTIES = ["prior", "ridge", "elastic-net:0.5"]
PARTS = ["main", "k100", "confounded", "decomposition", "weights"]
WORLDS = ["cure-only", "time-only", "both-independent", "both-overlap", "transplant", "curvature", "interactions"]
WORLDS += ["thresholds", "heavy-covariates", "heavy-times", "weibull-times", "bimodal-times", "heteroscedastic"]
WORLDS += ["dependent-censoring", "weak-overlap", "correlated", "promotion-time", "no-effect", "constant-effect"]


def combinations():
    """Each combination: a name, and the command lines that follow one another. `!` means that one is refused."""
    c = {}

    # Options of the paper's estimator.
    c["paper-plain"] = [f"fit cohort.csv {P} -o run --report page.html --threads 1", *looks("run", 17)]
    c["paper-k5-threads-2"] = [f"fit cohort.csv {P} -k 5 -o run --threads 2", *looks("run", 400)]
    c["paper-k200-large"] = [f"fit large.csv {P} -k 200 -o run --threads 3"]
    c["paper-train-half-combined"] = [f"fit cohort.csv {P} --train-fraction 0.5 --metric combined -o run"]
    c["paper-unscaled-seed"] = [
        f"fit registry.csv {R} -k 20 --scale none --seed 99 -o run",
        *looks("run", "synthetic-0001"),
    ]
    c["paper-confidence-exclude-self"] = [
        f"fit cohort.csv {P} -k 25 --confidence 0.8 --exclude-self -o run",
        *looks("run", 2),
    ]
    c["paper-exact-caliper"] = [
        f"fit registry.csv {R} -k 8 --exact male --caliper age=15 --caliper donor_age=2sd -o run",
        *looks("run", "synthetic-0005"),
        "predict run registry-new.csv -o out.csv --groups groups.csv",
    ]
    c["paper-no-audit-then-audit"] = [
        f"fit cohort.csv {P} -k 30 --no-audit -o run --report page.html",
        "audit run --by x1 --by x18:3",
        "report run -o later.html",
    ]
    c["paper-json"] = [f"fit cohort.csv {P} -k 30 --format json -o run", "predict run new.csv --format json"]
    c["paper-seeds"] = [f"fit small.csv {P} -k 12 -o run", "audit run --seeds 2 --json"]

    # Options of the adjusted estimator.
    c["adjusted-plain"] = [f"fit cohort.csv {P} {A} -o run --report page.html --threads 1", *looks("run", 17)]
    c["adjusted-k20-threads-2"] = [f"fit cohort.csv {P} {A} -k 20 -o run --threads 2", *looks("run", 400)]
    c["adjusted-auto-threads-3"] = [f"fit large.csv {P} {A} -k auto -o run --threads 3"]
    c["adjusted-folds-4"] = [f"fit cohort.csv {P} {A} --folds 4 -o run", *looks("run", 3), "predict run new.csv"]
    c["adjusted-splits-10-folds-5"] = [
        f"fit cohort.csv {P} {A} --folds 5 --splits 10 -o run",
        *looks("run", 4),
        "predict run new.csv --groups groups.csv -o out.csv",
    ]
    for family in FAMILIES[1:]:
        c[f"adjusted-{family}"] = [f"fit small.csv {P} {A} --folds 3 --latency {family} -o run", "predict run new.csv"]
    for penalty in PENALTIES[1:]:
        name = penalty.replace(":", "-")
        c[f"adjusted-{name}"] = [f"fit small.csv {P} {A} --folds 3 --penalty {penalty} -o run", "match run 9 --json"]
    c["adjusted-seed-confidence-exclude-self"] = [
        f"fit cohort.csv {P} {A} --folds 3 --seed 7 --confidence 0.9 --exclude-self -k 15 -o run",
        *looks("run", 2),
    ]
    c["adjusted-exact-caliper"] = [
        f"fit registry.csv {R} {A} --folds 3 -k 8 --exact male --caliper age=15 -o run",
        *looks("run", "synthetic-0005"),
        "predict run registry-new.csv -o out.csv --groups groups.csv",
    ]
    c["adjusted-exact-caliper-auto"] = [f"fit registry.csv {R} {A} --folds 3 --exact male --caliper age=1sd -o run"]
    c["adjusted-no-audit-then-audit"] = [
        f"fit cohort.csv {P} {A} --folds 3 --no-audit -o run",
        "audit run --by x1 --by x18:3",
        "report run -o later.html",
    ]
    c["adjusted-seeds"] = [f"fit small.csv {P} {A} --folds 3 -o run", "audit run --seeds 2 --json"]

    # Features of a cohort, under either estimator where it takes them.
    features = {
        "categories": f"registry.csv {EVENTS} --covariates {COVARIATES},grade,code --categorical code",
        "missing-indicator": f"registry.csv {EVENTS} --covariates age,gap,gap_level --missing indicator",
        "missing-drop": f"registry.csv {EVENTS} --covariates age,gap,gap_level,grade --missing drop",
        "dates": f"registry.tsv --start start --end end --event seen {TREATED} --covariates {COVARIATES}",
        "ties": f"registry.csv --time months {TIED} --covariates {COVARIATES}",
        "zero-time-shift": f"registry.csv {ZERO} --zero-time shift",
        "zero-time-drop": f"registry.csv {ZERO} --zero-time drop",
        "string-ids": f"names.csv --id id {R}",
        "no-ids-where": f"shuffled.csv {EVENTS} --covariates age,male,donor_age --drop id "
        "--where grade=low --where second_remission=0",
        "labels": f"registry.csv --time time --event event --treatment arm --treated new --control old --horizon 3650 "
        f"--covariates {COVARIATES}",
        "default-covariates": "registry.csv --time time --event event --treatment treatment --horizon 3650 "
        "--drop months,zero,start,end,seen,cause,entry,weight,hospital,gap,gap_level,arm --numeric code",
    }
    for name, table in features.items():
        c[f"check-{name}"] = [f"check {table} -k 15", f"check {table} -k 15 --json"]
        looked = ["audit run --json", "report run -o page.html"]
        c[f"paper-{name}"] = [f"fit {table} -k 15 -o run", *looked]
        c[f"adjusted-{name}"] = [f"fit {table} {A} --folds 3 -o run", *looked]
    c["paper-string-ids-seen"] = [f"fit {features['string-ids']} -k 15 -o run", "!match run 4", "!match run Zoë-9999"]
    c["predict-categories"] = [
        f"fit {features['categories']} -k 15 -o run",
        "predict run registry-new.csv --max-distance 1.5",
    ]
    c["predict-missing"] = [f"fit {features['missing-indicator']} {A} --folds 3 -o run", "predict run registry-new.csv"]

    # Weights, clusters, delayed entry, causes.
    weighty = {
        "weights": "--event event --weights weight",
        "clusters": "--event event --cluster hospital",
        "entry": "--event event --entry entry",
        "causes": "--event cause --cause 1",
        "everything": "--event cause --cause 2 --weights weight --cluster hospital --entry entry",
    }
    for name, roles in weighty.items():
        table = f"registry.csv --time time {TREATED} --covariates {COVARIATES} {roles}"
        c[f"check-{name}"] = [f"check {table}", f"check {table} --json"]
        c[f"paper-{name}"] = [
            f"fit {table} -k 20 -o run --report page.html",
            "audit run --by male --json",
            "predict run registry-new.csv",
            "rerun run registry.csv",
            "plot run curves -o curves.svg",
        ]
        c[f"further-{name}"] = [
            f"fit {table} {A} --folds 3 -o run --report page.html",
            "audit run --by male --json",
            "predict run registry-new.csv",
            "rerun run registry.csv",
        ]
    dates = f"registry.csv --start start --end end --event event {TREATED} --covariates {COVARIATES}"
    c["paper-weights-dates"] = [f"fit {dates} --weights weight -k 20 -o run", "report run -o page.html"]

    # Imputed data sets and several arms.
    gaps = f"--time time --event event {TREATED} --covariates age,gap,grade --id id"
    arms = "registry.csv --time time --event event --treatment arm --horizon 3650 --treated all --control old "
    arms += f"--covariates {COVARIATES}"
    for name, options in {"paper": "-k 15", "adjusted": f"{A} --folds 3"}.items():
        c[f"{name}-imputed"] = [
            f"fit imputed.csv {gaps} {options} --imputation imp -o all",
            "audit all/imputation-2",
            "match all/imputation-1 synthetic-0003",
            "rerun all/imputation-3 imputed.csv",
            "!match all synthetic-0003",
            f"!fit imputed.csv {gaps} {options} --imputation imp -o new --report page.html",
        ]
        c[f"{name}-arms"] = [f"fit {arms} {options} -o arms", "report arms/new -o new.html", "audit arms/new --json"]
    c["paper-imputed-files"] = [f"fit set1.csv set2.csv set3.csv {gaps} -k 15 -o all"]

    # Commands.
    figures = [f"plot run {kind} -o {kind}.svg --time-unit days" for kind in FIGURES]
    c["plot-paper"] = [f"fit cohort.csv {P} -k 30 -o run", *figures, "plot run patient:44 -o patient.svg --width 85"]
    c["plot-adjusted"] = [
        f"fit cohort.csv {P} {A} --folds 3 -o run",
        *figures,
        "plot run patient:44 -o patient.svg --width 85",
    ]
    c["predict-paper"] = [
        f"fit cohort.csv {P} -k 30 -o run",
        "predict run new.csv -o out.csv --groups groups.csv",
        "predict run new.csv --max-distance 2 --threads 1",
    ]
    c["predict-adjusted"] = [
        f"fit cohort.csv {P} {A} -o run",
        "predict run new.csv -o out.csv --groups groups.csv",
        "predict run new.csv --max-distance 2 --threads 1",
    ]
    c["rerun-paper"] = [f"fit cohort.csv {P} -k 30 -o run", "rerun run/summary.json cohort.csv -o again", "rerun run"]
    c["rerun-adjusted"] = [
        f"fit cohort.csv {P} {A} --folds 3 -o run",
        "rerun run/summary.json cohort.csv -o again",
        "rerun run",
    ]
    c["compare-paper-cohort"] = [f"compare cohort.csv {P} -k 30 -o out"]
    c["compare-registry-efron"] = [f"compare registry.csv {R} -k 20 --ties efron --threads 1 -o out"]
    c["explore-paper"] = [f"fit cohort.csv {P} -k 30 -o run", "explore run"]
    c["explore-adjusted"] = [f"fit cohort.csv {P} {A} --folds 3 -o run", "explore run"]
    c["force"] = [
        f"fit small.csv {P} -k 10 -o run",
        f"!fit small.csv {P} -k 10 -o run",
        f"fit small.csv {P} -k 12 -o run --force",
    ]
    c["demo"] = ["demo --n 600 -o demo"]
    c["simulate-worlds"] = [
        f"simulate --scenario {w} --n 120 --seed 2 -o world-{w}.csv --truth truth-{w}.csv" for w in WORLDS
    ]
    c["simulate-confounded"] = ["simulate --scenario both-overlap --n 300 --confounded"]
    for part in PARTS:
        c[f"study-{part}"] = [f"study {part} --n 1000 --reps 1 --threads 1 -o study"]
    c["study-resumed"] = [
        "study main --n 1000 --reps 1 --threads 1 -o s",
        "study main --n 1000 --reps 2 --threads 1 -o s",
    ]
    c["completions"] = ["completions bash"]

    # Refusals.
    c["refused-tables"] = [
        f"!check bad.csv {R}",
        f"!check empty.csv {R}",
        f"!check short.csv {R}",
        f"!check nowhere.csv {R}",
        f"!fit bad.csv {R} -o run",
    ]
    c["refused-usage"] = ["!check small.csv --event event --treatment treatment --horizon 800", "!fit", "!nothing"]
    c["refused-columns"] = [
        f"!check registry.csv {R} --id patient",
        f"!check registry.csv {R} --exact sexx",
        f"!check registry.csv {R},gap",
        f"!check registry.csv {R} --caliper grade=1",
    ]
    c["refused-options"] = [
        f"!fit small.csv {P} -k 0 -o run",
        f"!fit small.csv {P} -k auto -o run",
        f"!fit small.csv {P} --splits 4 -o run",
        f"!fit small.csv {P} {A} --metric combined -o run",
        f"!fit small.csv {P} --train-fraction 1 -o run",
        f"!fit small.csv {P} -k 299 -o run",
    ]
    c["refused-runs"] = [
        "!match nowhere 1",
        "!audit notes.txt",
        "!report nowhere",
        f"fit small.csv {P} -k 10 -o run",
        "!match run 9999",
        "!predict run registry-new.csv",
        "!rerun run cohort.csv",
        "!plot run pie -o x.svg",
        "!plot run effects -o x.gif",
        "!audit run --by nothing",
    ]
    return {name: [with_estimator(step) for step in steps] for name, steps in c.items()}


def with_estimator(step):
    """A command that names its estimator: two binaries may not have the same default."""
    words = step.removeprefix("!").split()
    takes_one = words[0] in ("fit", "check", "compare") and len(words) > 1
    return f"{step} --estimator paper" if takes_one and "--estimator" not in words else step


# --- running ---------------------------------------------------------------------------------------------------------


def explore(binary, words, folder):
    """Starts the explorer, asks it for everything, ends it; gives what it said and answered."""
    outputs = {}
    command = [binary, *words, "--no-open", "--threads", "2"]
    with open(folder.parent / f"{folder.name}.err", "w+b") as errors:
        child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL)
        try:
            found = re.fullmatch(rb"http://127\.0\.0\.1:(\d+)/\?token=(\w+)\n", child.stdout.readline())
            port, token = int(found[1]), found[2].decode()
            gets = ["/", "/app.js", "/style.css", "/report", "/icon.svg", "/api/run", "/api/patients", "/api/plane"]
            gets += [
                "/api/patient/17",
                "/api/patient/44?k=12",
                "/api/patient/44?h=500",
                "/api/patient/99999",
                "/api/none",
            ]
            new = "{" + ", ".join(f'"x{j}": {j % 2}' for j in range(1, 21)) + "}"
            for method, target, body in [*(("GET", t, None) for t in gets), ("POST", "/api/new", new)]:
                link = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
                head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
                link.request(method, target, body, head)
                answer = link.getresponse()
                outputs[f"{method} {target}"] = b"%d\n" % answer.status + answer.read()
                link.close()
            child.send_signal(signal.SIGINT)
            outputs["exit code"] = b"%d" % child.wait(TIMEOUT)
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
        errors.seek(0)
        outputs["stderr"] = errors.read().replace(b"%d" % port, b"PORT").replace(token.encode(), b"TOKEN")
    return outputs


def run(binary, steps, tables, folder):
    """Runs the commands of a combination in a new folder; gives every output by its name."""
    folder.mkdir()
    outputs = {}
    words = {w for step in steps for w in shlex.split(step)}
    for table in tables.iterdir():
        if table.name in words:
            shutil.copy(table, folder)
    for i, step in enumerate(steps, 1):
        refused, command = step.startswith("!"), shlex.split(step.removeprefix("!"))
        where = f"{i} dvim {command[0]}"
        if command[0] == "explore":
            outputs |= {f"{where} {name}": value for name, value in explore(binary, command, folder).items()}
            continue
        done = subprocess.run(
            [binary, *command], cwd=folder, check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT
        )
        for stream, data in [("stdout", done.stdout), ("stderr", done.stderr), ("exit code", b"%d" % done.returncode)]:
            outputs[f"{where} {stream}"] = data.replace(str(folder).encode(), b"FOLDER")
        # A combination that fails where it should not compares nothing: it is a mistake in this script or in OLD.
        if (done.returncode != 0) != refused:
            outputs[f"{where} MISTAKE"] = f"exit code {done.returncode}: {step}\n".encode() + done.stderr
    inputs = {table.name for table in tables.iterdir()}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file():
            outputs[name] = path.read_bytes()
        elif not any(path.iterdir()):
            outputs[name] = b"an empty directory"
    return {n: v for n, v in outputs.items() if n not in inputs or v != (tables / n).read_bytes()}


# --- comparing -------------------------------------------------------------------------------------------------------


def without_version(data, version):
    """An output without its version, the length and the checksum of run.dvim included."""
    for before, after in [
        (b'"version": "', b'"'),
        (b'"version":"', b'"'),
        (b"dvim ", b""),
        (b"Version ", b""),
        (b">", b"<"),
    ]:
        data = data.replace(before + version + after, before + b"VERSION" + after)
    if data.startswith(b"DVIMRUN") and len(data) > 48:
        data = data[:8] + data[16:-32]
    return data


def is_effects(data):
    """Whether an output is a table of effects."""
    return data is not None and data.startswith((b"id,treatment,cure_effect,", b"id,method,", b"id,treatment,method,"))


def shared_columns(old, new):
    """For each table of effects, the columns that both sides have."""
    names = lambda data: data.partition(b"\n")[0].decode().split(",")
    both = [n for n in old.keys() & new.keys() if is_effects(old[n]) and is_effects(new[n])]
    return {n: [c for c in names(old[n]) if c in names(new[n])] for n in both}


def with_columns(data, columns):
    """A table reduced to these columns."""
    rows = csv.DictReader(io.StringIO(data.decode(), newline=""))
    out = io.StringIO(newline="")
    table = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return out.getvalue().encode()


def normalised(outputs, version, expected, columns):
    """The outputs as they are compared."""
    out = {}
    for name, data in outputs.items():
        if name in columns:
            data = with_columns(data, columns[name])
        if name.endswith("stderr"):
            data = re.sub(rb"\bin \d+\.\d+ s\b", b"in TIME", data)
            data = re.sub(rb"(?m)^\d+ of \d+ .*, about \d+ min left\n", b"", data)
        out[name] = without_version(data, version)
    for name, data in outputs.items():
        before = hashlib.sha256(data).hexdigest().encode()
        after = b"EXPECTED" if expected(name) else hashlib.sha256(out[name]).hexdigest().encode()
        if before != after:
            out = {n: d.replace(before, after) for n, d in out.items()}
    return out


def difference(name, old, new):
    """A few lines that show where two outputs differ."""
    try:
        # Pages and JSON may have one long line: their elements and values are compared one by one.
        a, b = (data.decode().replace("><", ">\n<").replace(',"', ',\n"').splitlines() for data in (old, new))
    except UnicodeDecodeError:
        at = next((i for i, (x, y) in enumerate(zip(old, new)) if x != y), min(len(old), len(new)))
        return [
            f"{name}: {len(old)} and {len(new)} bytes, first difference at byte {at}",
            f"  - {old[max(0, at - 40) : at + 40]!r}",
            f"  + {new[max(0, at - 40) : at + 40]!r}",
        ]
    lines = [
        line[:160] for line in difflib.unified_diff(a, b, lineterm="", n=0) if not line.startswith(("---", "+++", "@@"))
    ]
    more = [f"  … {len(lines) - LINES} more lines"] if len(lines) > LINES else []
    return [f"{name}:", *(f"  {line}" for line in lines[:LINES]), *more]


def compare(case, binaries, versions, tables, root):
    """Runs a combination with both binaries; gives the lines that say how it went, and whether it is the same."""
    name, steps = case
    sides = [run(b, steps, tables, root / f"{name}.{side}") for side, b in zip(["old", "new"], binaries)]
    allowed = {}

    def expected(output):
        return next((e for e in EXPECTED if re.search(e.where, f"{name}: {output}")), None)

    whole = lambda output: (found := expected(output)) is not None and found.lines is None
    columns = shared_columns(*sides)
    old, new = (normalised(side, version, whole, columns) for side, version in zip(sides, versions))
    differences = []
    for output in sorted(old.keys() | new.keys()):
        a, b = old.get(output), new.get(output)
        if output.endswith("MISTAKE"):
            differences.append([f"{output}: {line}" for line in (a or b).decode().splitlines()[:LINES]])
            continue
        if a == b:
            continue
        if (found := expected(output)) is not None:
            if found.lines is not None and a is not None and b is not None:
                keep = lambda data: [x for x in io.BytesIO(data) if not re.search(found.lines.encode(), x)]
                if keep(a) != keep(b):
                    differences.append(difference(output, b"".join(keep(a)), b"".join(keep(b))))
                    continue
            allowed.setdefault(found.reason, []).append(output)
        elif a is None or b is None:
            differences.append([f"{output}: only {'NEW' if a is None else 'OLD'} has it"])
        else:
            differences.append(difference(output, a, b))
    shutil.rmtree(root / f"{name}.old")
    shutil.rmtree(root / f"{name}.new")
    word = "DIFFERENT" if differences else "expected" if allowed else "same"
    lines = [f"{word:9} {name} ({len(steps)} commands, {len(old)} outputs)"]
    lines += [f"    {len(outputs)} outputs differ as expected: {reason}" for reason, outputs in allowed.items()]
    lines += [f"    {line}" for d in differences[:OUTPUTS] for line in d]
    lines += [f"    … {len(differences) - OUTPUTS} more outputs"] if len(differences) > OUTPUTS else []
    return lines, not differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", metavar="REGEX", default="", help="only the combinations whose name matches")
    parser.add_argument("--jobs", type=int, default=2, help="combinations at once")
    parser.add_argument("--list", action="store_true", help="print the combinations and their commands, run nothing")
    args = parser.parse_args()
    chosen = [(name, steps) for name, steps in combinations().items() if re.search(args.only, name)]
    if args.list:
        for name, steps in chosen:
            print(name, *(f"    dvim {step}" for step in steps), sep="\n")
        return 0
    if not chosen:
        sys.exit(f"no combination matches {args.only}")
    binaries = [args.old.resolve(), args.new.resolve()]
    said = [subprocess.run([b, "--version"], check=True, capture_output=True).stdout for b in binaries]
    versions = [words.split()[-1] for words in said]
    n_different = 0
    with tempfile.TemporaryDirectory(prefix="same-bytes-") as folder:
        # Messages name the program by its file: both are called dvim, wherever they lie.
        for side, binary in enumerate(binaries):
            binaries[side] = Path(folder) / "bin" / str(side) / "dvim"
            binaries[side].parent.mkdir(parents=True)
            binaries[side].symlink_to(binary)
        tables = Path(folder) / "tables"
        tables.mkdir()
        cohorts(binaries[0], tables)
        with ThreadPoolExecutor(args.jobs) as pool:
            for lines, is_same in pool.map(
                lambda case: compare(case, binaries, versions, tables, Path(folder)), chosen
            ):
                print(*lines, sep="\n", flush=True)
                n_different += not is_same
    print(f"{len(chosen)} combinations, {n_different} different")
    return 1 if n_different else 0


if __name__ == "__main__":
    sys.exit(main())
