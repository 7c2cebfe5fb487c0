"""Exact K-nearest search: dvim and its peers, on the same points, in one run.

    python -m venv .venv && .venv/bin/pip install -r bench/requirements.txt
    cargo build --release -p dvim --example bench_search
    cargo build --release --manifest-path bench/kiddo/Cargo.toml
    .venv/bin/python bench/search.py [--quick] [--sizes small,medium,large] [--threads 2] [--write docs/benchmarks.md]

Every peer gets the same points, K, thread count and exactness. A round runs each method once; figures are
medians over rounds, so that a burst of load on the machine falls on all of them. Only the search is compared:
the time to prepare an index is its own column. Answers are checked: our squared distances must equal those
of the plain f64 sum, and every peer's K distances must agree with ours within its own precision.
"""

import argparse
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = ROOT / "target/release/examples/bench_search"
KIDDO = ROOT / "bench/kiddo/target/release/bench-kiddo"
BEGIN, END = "<!-- begin: bench/search.py -->", "<!-- end: bench/search.py -->"

# name: (reference points, queries, rounds). 13,000 queries of 6,500 points is one arm of n = 20,000; larger sets
# get a part of the queries that a user has (about two for each reference point).
SIZES = {"small": (6_500, 13_000, 5), "medium": (100_000, 20_000, 3), "large": (1_000_000, 20_000, 3)}
# From 100,000 reference points on, methods whose time is strictly proportional to the queries get the first
# FEW only; so does everybody on equal weights. Times are given per query.
FEW = 1_000
TREES = ["dvim", "SciPy cKDTree", "scikit-learn kd_tree"]
DIM, K = 20, 50


def points(np, n, n_queries, metric, seed=1):
    """Ten coins and ten normals stretched by learned weights, or twenty normals with equal ones.

    Learned: six strong axes; the others carry the noise of a fit, |N(0, sd)| with sd = 0.045 at 6,500
    reference points (3,500 training units an arm), shrinking like 1/sqrt(n) as fits on more units do.
    """
    rng = np.random.default_rng(seed)
    weights = np.ones(DIM)
    if metric == "learned":
        weights = np.abs(rng.normal(0, 0.045 * np.sqrt(6_500 / n), DIM))
        for axis, weight in {0: 0.8, 3: 0.5, 7: 0.3, 10: 0.6, 13: 0.45, 17: 0.35}.items():
            weights[axis] = weight

    def draw(m):
        x = rng.standard_normal((m, DIM))
        if metric == "learned":
            x[:, : DIM // 2] = rng.random((m, DIM // 2)) < 0.5
        return np.ascontiguousarray(x * np.sqrt(weights))

    return draw(n), draw(n_queries)


def timed(function):
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def peer(name, reference_file, queries_file, threads):
    """One round of a peer that is a Python library, in a process of its own: thread pools do not meet."""
    import numpy as np

    reference, queries = (np.fromfile(x).reshape(-1, DIM) for x in [reference_file, queries_file])
    if name == "FAISS flat (f32)":
        import faiss

        faiss.omp_set_num_threads(threads)
        points, queries = reference.astype(np.float32), queries.astype(np.float32)

        def build():
            index = faiss.IndexFlatL2(DIM)
            index.add(points)
            return index

        search = lambda index: index.search(queries, K)[0]
    elif name == "SciPy cKDTree":
        from scipy.spatial import cKDTree

        build = lambda: cKDTree(reference)
        search = lambda tree: tree.query(queries, K, workers=threads)[0] ** 2
    else:
        from sklearn.neighbors import NearestNeighbors

        build = lambda: NearestNeighbors(n_neighbors=K, algorithm=name.split()[1], n_jobs=threads).fit(reference)
        search = lambda index: index.kneighbors(queries)[0] ** 2
    built, index = timed(build)
    cpu = time.process_time()
    searched, distances = timed(lambda: search(index))
    cpu = time.process_time() - cpu
    np.asarray(distances, dtype=np.float64).tofile(pathlib.Path(reference_file).parent / "peer")
    print(built, searched, cpu)


def skipped(n, metric):
    """Minutes a round, and never the fastest: at 100,000 equally weighted points they are 20 times behind."""
    if n < 1_000_000:
        return []
    return ["scikit-learn ball_tree"] + (["SciPy cKDTree", "scikit-learn kd_tree"] if metric == "equal" else [])


# At each size and metric one of these is the fastest peer.
FASTEST = ["FAISS flat (f32)", "SciPy cKDTree", "scikit-learn brute"]
PEERS = ["FAISS flat (f32)", "SciPy cKDTree", "scikit-learn kd_tree", "scikit-learn ball_tree", "scikit-learn brute"]


def methods(reference, queries, metric, folder, threads):
    """Commands that read the points, print seconds of build, search and processor time, and where they leave
    squared distances."""
    reference.tofile(folder / "reference")
    queries.tofile(folder / "queries")
    queries[:FEW].tofile(folder / "few")

    def n_queries(name):
        all_of_them = len(reference) < 100_000 or (metric == "learned" and name in TREES)
        return len(queries) if all_of_them else FEW

    def files(name):
        return [str(folder / "reference"), str(folder / ("queries" if n_queries(name) > FEW else "few"))]

    found = {
        "dvim": ([str(OURS), *files("dvim"), str(DIM), str(K), "1", str(folder / "dvim")], folder / "dvim.distance", n_queries("dvim"))
    }
    for name in PEERS:
        if name in skipped(len(reference), metric):
            continue
        command = [sys.executable, __file__, "--peer", name, *files(name), "--threads", str(threads)]
        found[name] = (command, folder / "peer", n_queries(name))
    if KIDDO.exists():
        command = [str(KIDDO), *files("kiddo"), str(K), "1", str(folder / "kiddo")]
        found["kiddo"] = (command, folder / "kiddo", n_queries("kiddo"))
    else:
        print("kiddo is left out: build bench/kiddo first", file=sys.stderr)
    return found


def one_round(np, command, distances, threads):
    env = dict(os.environ, RAYON_NUM_THREADS=str(threads))
    out = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    return *(float(x) for x in out.split()), np.fromfile(distances)


def check(np, name, distances, ours, scale):
    """Peers in f64 agree to rounding; FAISS and scikit-learn's brute expand the square and lose digits."""
    loose = {"FAISS flat (f32)": 3e-6, "scikit-learn brute": 1e-11}.get(name, 1e-12)
    worst = float(np.max(np.abs(distances - ours)))
    assert worst <= loose * scale, f"{name}: distances differ by {worst}"


def run(sizes, peers, wanted_rounds, threads):
    import numpy as np

    rows = []
    for size in sizes:
        n, n_queries, rounds = SIZES[size]
        rounds = wanted_rounds or rounds
        for metric in ["learned", "equal"]:
            reference, queries = points(np, n, n_queries, metric)
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                candidates = methods(reference, queries, metric, folder, threads)
                candidates = {name: method for name, method in candidates.items() if name in ["dvim", *peers]}
                times = {name: [] for name in candidates}
                for turn in range(rounds):
                    for name, (command, answer, m) in candidates.items():
                        if turn > 0 and times[name][0][1] * m > 20e6:
                            continue  # a peer that takes this long is measured once
                        built, searched, cpu, distances = one_round(np, command, answer, threads)
                        times[name].append((built, searched / m * 1e6, cpu / m * 1e6))
                        if turn == 0:
                            if name == "dvim":
                                ours = distances
                                index = np.fromfile(folder / "dvim.index", dtype=np.uint32).reshape(-1, K)
                                exact = ((queries[:200, None, :] - reference[index[:200]]) ** 2)
                                exact = np.cumsum(exact, axis=2)[:, :, -1]  # one by one, in axis order
                                assert np.array_equal(exact.ravel(), ours[: 200 * K]), "dvim: not the plain sum"
                            check(np, name, distances, ours[: len(distances)], float((np.abs(reference).max(0) ** 2).sum()))
                        print(f"{n} {metric} {name}: build {built:.3f} s, search {searched / m * 1e6:.1f} us, {cpu / m * 1e6:.1f} us of processor", file=sys.stderr)
            medians = {name: tuple(statistics.median(column) for column in zip(*runs)) for name, runs in times.items()}
            rows.append((n, metric, medians))
    return rows


def plot(rows, page):
    """How many times slower the fastest peer is, by size, beside what issue 4 asks for."""
    from plot import lines

    ratios = {"learned weights": [], "equal weights": []}
    for n, metric, medians in rows:
        others = [medians[name][1] for name in medians if name != "dvim"]
        ratios[f"{metric} weights"].append((n, min(others) / medians["dvim"][1]))
    aims = [a for a in [(6_500, 4), (100_000, 15), (1_000_000, 25)] if a[0] in [n for n, *_ in rows]]
    title = f"Exact {K} nearest, p = {DIM}: time of the fastest peer ÷ time of dvim"
    lines(page.parent / "bench-search.svg", title, "reference points", "times slower", ratios, aims)


def table(rows, threads):
    import faiss
    import numpy
    import scipy
    import sklearn

    model = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
    flags = next((l for l in open("/proc/cpuinfo") if l.startswith("flags")), "")
    widest = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "no AVX2"
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.strip()
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    names = list(dict.fromkeys(name for *_, medians in rows for name in medians))
    lines = [
        f"Exact K = {K} nearest, p = {DIM}, {threads} threads each, wall µs per query (medians; load at the end "
        f"{os.getloadavg()[0]:.1f}), in brackets how many times slower than dvim.",
        "",
        "| reference points | metric | " + " | ".join(names) + " | fastest peer ÷ dvim |",
        "| --- | --- |" + " --- |" * (len(names) + 1),
    ]
    for n, metric, medians in rows:
        ours = medians["dvim"][1]
        cells = []
        for name in names:
            if name not in medians:
                cells.append("–")
            elif name == "dvim":
                cells.append(f"**{ours:.1f}**")
            else:
                cells.append(f"{medians[name][1]:,.1f} ({medians[name][1] / ours:.1f}×)")
        fastest = min(medians[name][1] for name in medians if name != "dvim")
        lines.append(f"| {n:,} | {metric} | " + " | ".join(cells) + f" | **{fastest / ours:.1f}×** |")
    lines += ["", "Processor time of the same searches, µs per query over all threads, which the load of the machine disturbs less "
              "(OpenMP threads that wait sleep: `OMP_WAIT_POLICY=passive`):", "",
              "| reference points | metric | " + " | ".join(names) + " | fastest peer ÷ dvim |", "| --- | --- |" + " --- |" * (len(names) + 1)]
    for n, metric, medians in rows:
        cells = [f"{medians[x][2]:,.1f}" if x in medians else "–" for x in names]
        ratio = min(medians[x][2] for x in medians if x != "dvim") / medians["dvim"][2]
        lines.append(f"| {n:,} | {metric} | " + " | ".join(cells) + f" | **{ratio:.1f}×** |")
    lines += ["", "Seconds to prepare the index:", "", "| reference points | metric | " + " | ".join(names) + " |", "| --- | --- |" + " --- |" * len(names)]
    for n, metric, medians in rows:
        lines.append(f"| {n:,} | {metric} | " + " | ".join(f"{medians[x][0]:.3f}" if x in medians else "–" for x in names) + " |")
    lines += [
        "",
        f"Machine: {model}, {os.cpu_count()} cores, {widest}, shared with other work. {platform.system()}, {rustc}, "
        f"dvim {commit}, Python {platform.python_version()}, NumPy {numpy.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, faiss-cpu {faiss.__version__}, kiddo 6.3.0. {time.strftime('%Y-%m-%d')}.",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="small,medium,large")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", default=",".join([*PEERS, "kiddo"]), help="which peers to run, by name")
    parser.add_argument("--rounds", type=int, help="rounds at every size, instead of 3 to 5")
    parser.add_argument("--quick", action="store_true", help="three rounds, and only the peers that were ever the fastest")
    parser.add_argument("--write", type=pathlib.Path, help="replace the table between the marks in this file")
    parser.add_argument("--peer", nargs=3, metavar=("NAME", "REFERENCE", "QUERIES"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    # Before the libraries load: they read these once.
    for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
        os.environ[variable] = str(args.threads)
    # Waiting OpenMP threads spin by default: on a loaded machine that doubles the time of FAISS.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if args.peer:
        peer(*args.peer, args.threads)
        return
    if args.quick:
        args.peers, args.rounds = ",".join(FASTEST), 3
    rows = run(args.sizes.split(","), args.peers.split(","), args.rounds, args.threads)
    text = table(rows, args.threads)
    print(text)
    if args.write:
        plot(rows, args.write)
        text = f"![The fastest peer's time over dvim's, by size](bench-search.svg)\n\n{text}"
        page = args.write.read_text()
        before, rest = page.split(BEGIN)
        args.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
