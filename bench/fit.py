"""A whole `dvim fit`, file to files, against bench/pipeline.py (NumPy, SciPy, FAISS, Numba); how it grows; and what the adjusted estimator costs.

    python bench/fit.py [--n 20000] [--rounds 5] [--threads 2] [--write docs/benchmarks.md]
    python bench/fit.py --growth [--huge] [--write docs/benchmarks.md]
    python bench/fit.py --adjusted [--splits 10] [--rounds 9] [--write docs/benchmarks.md]
    python bench/fit.py --old path/to/an/older/dvim [--rounds 9] [--old-million 800] [--write docs/benchmarks.md]

--old sets the default estimator beside the adjusted estimator of an older program, with ten splits, in alternating rounds: at 20,000 patients, at 100,000, and
at 1,000,000 (there the older one is not run: --old-million says what it took), and how long the commands take that open the run of a million.

--adjusted and --old need nothing but Python. The former:  nothing but Python: the paper's estimator and the adjusted one with its honest splits take turns, without and with the audit.

The pipeline gives the table of effects and nothing else, so the work that is compared is that of `dvim fit --no-audit`; what `dvim fit`
takes with its audit, and the pipeline without standard errors and intervals, stand beside it.

Both are whole processes: start-up, reading and writing count, into places where nothing was before. Rounds alternate between them;
figures are medians.
Beside the wall time stands the processor time of the process (user and system), which a loaded machine disturbs less, and the peak of its
resident memory, as the kernel reports it. The pipeline's Numba kernel is compiled in a run of its own, which is reported, and comes from its cache
afterwards. The answers are compared on the same split first; timed runs of the pipeline split by themselves.
"""

import argparse
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
HORIZON = "800"
ROLES = ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", HORIZON]


def measured(command, env=None):
    """Seconds, processor seconds, peak of resident bytes, and what was said. The kernel counts what this process held when it
    started the child as the child's: nothing large may be imported before the last call."""
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, env=dict(os.environ, **(env or {})))
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        words = said.read().decode()
    if child.returncode:
        sys.exit(f"{command[0]} ended with {child.returncode}:\n{words}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, words


def simulate(dvim, n, folder):
    file = folder / f"cohort-{n}.csv"
    if not file.exists():
        subprocess.run([dvim, "simulate", "--scenario", "both-overlap", "--n", str(n), "-o", file], check=True, stderr=subprocess.DEVNULL)
    return file


def medians(runs):
    return [statistics.median(run[i] for run in runs) for i in range(3)]


def agreement(ours, theirs):
    """Of each column that both have: the median and the largest absolute difference; rows must be the same."""
    import pandas

    ours, theirs = pandas.read_csv(ours), pandas.read_csv(theirs)
    assert (ours["id"] == theirs["id"]).all(), "not the same units"
    found = {}
    for name in ["cure_effect", "time_effect", "cure_effect_low", "time_effect_low"]:
        undefined = int((ours[name].isna() != theirs[name].isna()).sum())
        gap = (ours[name] - theirs[name]).abs()
        found[name] = (gap.median(), gap.max(), int((gap > 1e-9).sum()), undefined)
    return len(ours), found


def machine(dvim):
    flags = next((l for l in open("/proc/cpuinfo") if l.startswith("flags")), "")
    model = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
    widest = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "no AVX2"
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return f"Machine: {model}, {os.cpu_count()} cores, {widest}, shared with other work. {platform.system()}, dvim {commit}"


def compare(args, folder):
    table = simulate(args.dvim, args.n, folder)
    threads = str(args.threads)
    run, effects, same_split = folder / "run", folder / "effects.csv", folder / "same-split.csv"
    whole = [args.dvim, "fit", table, *ROLES, "--estimator", "paper", "-o", run, "--threads", threads]
    theirs = [sys.executable, HERE / "pipeline.py", table, effects, "--horizon", HORIZON, "--threads", threads]
    # A cache of its own, empty at first: then the first run compiles.
    env = {"NUMBA_CACHE_DIR": str(folder / "numba")}
    for left in [run, folder / "ours"]:
        shutil.rmtree(left, ignore_errors=True)
    measured(whole)
    cold = measured([*theirs[:3], same_split, *theirs[4:], "--same-split", run / "effects.csv"], env)
    ours = run.rename(folder / "ours") / "effects.csv"
    commands = {"dvim": [*whole, "--no-audit"], "audited": whole, "pipeline": theirs, "effects only": [*theirs, "--effects-only"]}
    runs = {name: [] for name in commands}
    stages, loads = [], []
    for turn in range(args.rounds):
        for name, command in commands.items():
            runs[name].append(measured(command, env))
            shutil.rmtree(run, ignore_errors=True)
            effects.unlink(missing_ok=True)
            loads.append(os.getloadavg()[0])
            seconds, cpu, peak, said = runs[name][-1]
            print(f"{name}: {seconds:.2f} s, {cpu:.2f} s of processor, {peak / 1e6:.0f} MB, load {loads[-1]:.1f}", file=sys.stderr)
            if name == "pipeline":
                stages.append(said.split())
                print("  " + said.strip(), file=sys.stderr)
    n_estimated, agree = agreement(ours, same_split)
    found = {name: medians(of) for name, of in runs.items()}
    rows = []
    for i, (what, scale, digits) in enumerate([("wall, s", 1, 3), ("processor, s over all threads", 1, 3), ("peak of memory, MB", 1e-6, 0)]):
        a, b, c, d = (found[name][i] * scale for name in commands)
        figures = " | ".join(f"{x:.{digits}f}" for x in [a, b, c, d])
        rows.append(f"| {what} | {figures} | **{c / a:.1f}×** | {c / b:.1f}× | {d / a:.1f}× |")
    lines = [
        f"Whole fit at n = {args.n:,} (`dvim simulate --scenario both-overlap`), K = 50, {threads} threads each, {args.rounds} alternating "
        f"rounds, medians; load average {min(loads):.1f} to {max(loads):.1f}.",
        "",
        "| | dvim fit --no-audit | dvim fit | NumPy + FAISS + Numba, the same table | the same without intervals | ratio, the same table "
        "| ratio, with our audit | ratio, their table without intervals |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *rows,
        "",
        "Wall seconds of each round, dvim: " + ", ".join(f"{r[0]:.3f}" for r in runs["dvim"])
        + "; pipeline: " + ", ".join(f"{r[0]:.2f}" for r in runs["pipeline"]) + ".",
        "Wall seconds of the pipeline's stages, medians: "
        + ", ".join(f"{stages[0][i]} {statistics.median(float(s[i + 1]) for s in stages):.2f}" for i in range(0, len(stages[0]), 2))
        + ". Its Numba kernel came from the cache; the run that compiled it took "
        + f"{cold[0]:.2f} s, {cold[1]:.2f} s of processor.",
        "",
        f"On the same split, {n_estimated:,} units, the two agree: "
        + "; ".join(
            f"{name} median |difference| {median:.1e}, largest {largest:.1e}, {rows} rows differ by more than 1e-9 and {undefined} in being defined"
            for name, (median, largest, rows, undefined) in agree.items()
        )
        + " (FAISS measures distances in single precision).",
        "",
    ]
    import faiss
    import numba
    import numpy
    import pandas
    import scipy

    lines.append(
        f"{machine(args.dvim)}, Python {platform.python_version()}, NumPy {numpy.__version__}, SciPy {scipy.__version__}, "
        f"pandas {pandas.__version__}, faiss-cpu {faiss.__version__}, Numba {numba.__version__}. {time.strftime('%Y-%m-%d')}."
    )
    return "\n".join(lines)


def adjusted(args, folder):
    table = simulate(args.dvim, args.n, folder)
    either = [args.dvim, "fit", table, *ROLES, "-o", folder / "run", "--force", "--threads", str(args.threads)]
    paper = [*either, "--estimator", "paper"]
    ours = [*either, "--estimator", "adjusted", "--splits", str(args.splits)]
    kinds = {"effects alone (`--no-audit`)": ["--no-audit"], "with the audit": []}
    commands = {(kind, who): [*command, *flags] for kind, flags in kinds.items() for who, command in (("paper", paper), ("adjusted", ours))}
    runs = {name: [] for name in commands}
    loads = []
    measured(paper)
    for _ in range(args.rounds):
        for name, command in commands.items():
            runs[name].append(measured(command))
            loads.append(os.getloadavg()[0])
            seconds, cpu, peak, _ = runs[name][-1]
            print(f"{name}: {seconds:.2f} s, {cpu:.2f} s of processor, {peak / 1e6:.0f} MB, load {loads[-1]:.1f}", file=sys.stderr)
    lines = [
        f"The adjusted estimator with {args.splits} honest splits beside the paper's, which has one, at n = {args.n:,} (`dvim simulate --scenario both-overlap`), "
        f"{args.threads} threads, {args.rounds} alternating rounds; load average {min(loads):.1f} to {max(loads):.1f}. Medians, in brackets the fastest round, which other work disturbed least.",
        "",
        "| | | paper | adjusted | adjusted ÷ paper |",
        "| --- | --- | --- | --- | --- |",
    ]
    for kind in kinds:
        for i, (what, scale, digits) in enumerate([("wall, s", 1, 2), ("processor, s", 1, 2), ("peak of memory, MB", 1e-6, 0)]):
            of = {who: [run[i] * scale for run in runs[kind, who]] for who in ("paper", "adjusted")}
            middle, least = ({who: how(values) for who, values in of.items()} for how in (statistics.median, min))
            cells = [f"{middle[who]:.{digits}f} ({least[who]:.{digits}f})" for who in of]
            ratios = f"**{middle['adjusted'] / middle['paper']:.1f}×** ({least['adjusted'] / least['paper']:.1f}×)"
            lines.append(f"| {kind} | {what} | {' | '.join(cells)} | {ratios} |")
    lines += ["", f"{machine(args.dvim)}. {time.strftime('%Y-%m-%d')}."]
    return "\n".join(lines)


def against_old(args, folder):
    """Ratios to an older program, and growth."""
    run, page = folder / "run", folder / "page.html"
    flags = ["--splits", str(args.splits), "--threads", str(args.threads), "--force", "-o", run]

    def both(n, rounds, more):
        table = simulate(args.dvim, n, folder)
        commands = {
            "older": [args.old, "fit", table, *ROLES, "--estimator", "adjusted", *flags, *more],
            "now": [args.dvim, "fit", table, *ROLES, *flags, *more],
        }
        runs = {who: [] for who in commands}
        for _ in range(rounds):
            for who, command in commands.items():
                shutil.rmtree(run, ignore_errors=True)
                runs[who].append(measured(command))
                print(f"n = {n}, {who}: {runs[who][-1][0]:.2f} s, {runs[who][-1][1]:.2f} s of processor, {runs[who][-1][2] / 1e6:.0f} MB", file=sys.stderr)
        return runs

    commit = subprocess.run([args.old, "--version"], capture_output=True, text=True).stdout.strip()
    lines = [
        f"The default estimator beside the adjusted estimator of an older program ({args.old_name or commit}), {args.splits} honest splits, {args.threads} threads, alternating rounds; medians, in brackets the fastest round. "
        f"Load average {os.getloadavg()[0]:.1f} at the start.",
        "",
        "| n | | | older | now | now ÷ older |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    cpu_of_100_000 = None
    for n, rounds, what, more in [(20_000, args.rounds, "effects alone (`--no-audit`)", ["--no-audit"]), (20_000, args.rounds, "with the audit", []), (100_000, 2, "with the audit", [])]:
        runs = both(n, rounds, more)
        for i, (name, scale, digits) in enumerate([("wall, s", 1, 2), ("processor, s", 1, 2), ("peak of memory, MB", 1e-6, 0)]):
            middle = {who: statistics.median(r[i] * scale for r in of) for who, of in runs.items()}
            least = {who: min(r[i] * scale for r in of) for who, of in runs.items()}
            cells = " | ".join(f"{middle[who]:.{digits}f} ({least[who]:.{digits}f})" for who in runs)
            lines.append(f"| {n:,} | {what} | {name} | {cells} | **{middle['now'] / middle['older']:.2f}×** ({least['now'] / least['older']:.2f}×) |")
            if n == 100_000 and i == 1:
                cpu_of_100_000 = middle["now"]
    table = simulate(args.dvim, 1_000_000, folder)
    shutil.rmtree(run, ignore_errors=True)
    wall, cpu, peak, _ = measured([args.dvim, "fit", table, *ROLES, *flags])
    old = args.old_million
    lines += [
        f"| 1,000,000 | with the audit | wall, s | | {wall:.1f} | |",
        f"| 1,000,000 | with the audit | processor, s | {f'{old:.0f}, measured once' if old else ''} | {cpu:.1f} | {f'**{cpu / old:.2f}×**' if old else ''} |",
        f"| 1,000,000 | with the audit | peak of memory, MB | | {peak / 1e6:.0f} | |",
        "",
        f"From 100,000 to 1,000,000 patients the processor time grows {cpu / cpu_of_100_000:.1f}×.",
        "",
        "Commands that open the run of a million patients:",
        "",
        "| | wall, s | processor, s | peak of memory, MB |",
        "| --- | --- | --- | --- |",
    ]
    table.unlink()
    for name, command in {
        "`match`": [args.dvim, "match", run, "1"],
        "`report`": [args.dvim, "report", run, "-o", page, "--force", "--threads", str(args.threads)],
        "`audit`": [args.dvim, "audit", run, "--threads", str(args.threads)],
    }.items():
        wall, cpu, peak, _ = measured(command)
        lines.append(f"| {name} | {wall:.2f} | {cpu:.2f} | {peak / 1e6:.0f} |")
    lines += ["", f"{machine(args.dvim)}. {time.strftime('%Y-%m-%d')}."]
    return "\n".join(lines)


def growth(args, folder):
    sizes = [100_000, 1_000_000] + ([5_000_000] if args.huge else [])
    lines = [
        f"`dvim fit --estimator paper`, its audit included, as the cohort grows, K = 50, {args.threads} threads, from CSV to `effects.csv`.",
        "",
        "| n | CSV, MB | runs | wall, s | processor, s | peak of memory, GB | load | processor, times that of n = 100,000 | wall, times |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    first = None
    grown = {"processor, s": [], "memory, GB": []}
    for n in sizes:
        table = simulate(args.dvim, n, folder)
        command = [args.dvim, "fit", table, *ROLES, "--estimator", "paper", "-o", folder / "run", "--force", "--threads", str(args.threads)]
        runs = []
        for _ in range(args.rounds if n <= 100_000 else 1):
            runs.append(measured(command))
            print(f"n = {n}: {runs[-1][0]:.2f} s, {runs[-1][1]:.2f} s of processor, {runs[-1][2] / 1e9:.2f} GB", file=sys.stderr)
        wall, cpu, peak = medians(runs)
        first = first or (wall, cpu)
        grown["processor, s"].append((n, cpu))
        grown["memory, GB"].append((n, peak / 1e9))
        lines.append(
            f"| {n:,} | {table.stat().st_size / 1e6:.0f} | {len(runs)} | {wall:.2f} | {cpu:.2f} | {peak / 1e9:.2f} | {os.getloadavg()[0]:.1f} "
            f"| {cpu / first[1]:.1f}× | {wall / first[0]:.1f}× |"
        )
        if not args.keep:
            table.unlink()
    lines += ["", f"{machine(args.dvim)}. {time.strftime('%Y-%m-%d')}."]
    if args.write:
        import plot

        plot.lines(args.write.parent / "bench-growth.svg", "A whole dvim fit with its audit", "patients", "seconds, gigabytes", grown)
        lines = ["![Processor time and memory of a whole fit, by size](bench-growth.svg)", "", *lines]
    return "\n".join(lines)


def write(page, mark, text):
    """Replaces what stands between the marks; everything else in the page stays."""
    begin, end = f"<!-- begin: {mark} -->", f"<!-- end: {mark} -->"
    before, rest = page.read_text().split(begin)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--dvim", default=str(target / "release/dvim"), help="the program")
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, help="5; with --adjusted 9")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--growth", action="store_true", help="dvim alone at 100,000 and 1,000,000 units")
    parser.add_argument("--adjusted", action="store_true", help="the adjusted estimator beside the paper's")
    parser.add_argument("--old", help="an older program, whose adjusted estimator is set beside the default one")
    parser.add_argument("--old-name", help="how to call it")
    parser.add_argument("--old-million", type=float, help="processor seconds that it took at 1,000,000 patients")
    parser.add_argument("--splits", type=int, default=10, help="with --adjusted: honest splits")
    parser.add_argument("--huge", action="store_true", help="with --growth: at 5,000,000 units too")
    parser.add_argument("--keep", type=pathlib.Path, help="work in this folder and keep the cohorts there")
    parser.add_argument("--write", type=pathlib.Path, help="replace the table between the marks in this file")
    args = parser.parse_args()
    args.rounds = args.rounds or (9 if args.adjusted or args.old else 5)
    with tempfile.TemporaryDirectory() as folder:
        folder = args.keep or pathlib.Path(folder)
        folder.mkdir(exist_ok=True)
        mode = "--growth" if args.growth else "--adjusted" if args.adjusted else "--old" if args.old else ""
        text = {"--growth": growth, "--adjusted": adjusted, "--old": against_old, "": compare}[mode](args, folder)
    print(text)
    if args.write:
        write(args.write, f"bench/fit.py {mode}".strip(), text)


if __name__ == "__main__":
    main()
