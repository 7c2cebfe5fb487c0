"""Figures in the visual language of the reports, as matplotlib axes that can be changed further."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dvim, _frames
from ._errors import Refused

if TYPE_CHECKING:
    from ._analysis import Analysis

# The colours of the reports, from their own style sheet: one table for every figure.
INK: dict[str, str] = dict(re.findall(r"--dv-([a-z-]+):(#[0-9a-f]{6})", _dvim.style_sheet().partition("@media")[0]))
DASH: dict[str, Any] = {"treated": "-", "control": (0, (7, 3))}
MARK = {"treated": "o", "control": "s"}
STYLE: dict[str, Any] = {
    "axes.edgecolor": INK["axis"],
    "axes.labelcolor": INK["ink"],
    "axes.facecolor": INK["paper"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "grid.color": INK["grid"],
    "grid.linewidth": 0.8,
    "xtick.color": INK["muted"],
    "ytick.color": INK["muted"],
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "text.color": INK["ink"],
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": INK["paper"],
    "figure.constrained_layout.use": True,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'dvim[plot]'") from None
    return plt


@contextmanager
def _styled() -> Iterator[Any]:
    plt = _pyplot()
    # Only these are put back: a notebook's backend changes others when it is first used, and they must stay.
    before = {name: plt.rcParams[name] for name in STYLE}
    plt.rcParams.update(STYLE)
    try:
        yield plt
    finally:
        plt.rcParams.update(before)


def _axes(plt: Any, ax: Any, n: int = 1, **figure: Any) -> Any:
    """The axes that were given, or new ones."""
    if ax is None:
        _, ax = plt.subplots(1, n, **figure)
    if n > 1:
        ax = np.atleast_1d(np.asarray(ax, dtype=object))
        if ax.shape != (n,):
            raise Refused(
                f"error: {ax.size} axes were given\n  rule:   this figure has {n}\n"
                f"  remedy: pass those of plt.subplots(1, {n}), or none"
            )
    return ax


def _values(raw: Any) -> dict[str, Any]:
    return {name: values for name, (_, values, _) in _frames.columns_of(raw).items()}


def _step(ax: Any, time: Any, survival: Any, arm: str, label: str, end: float, low: Any = None, high: Any = None) -> None:
    t = np.concatenate([[0.0], time])
    s = np.concatenate([[1.0], survival])
    if t[-1] < end:
        t, s = np.append(t, end), np.append(s, s[-1])
    ax.step(t, s, where="post", color=INK[arm], linestyle=DASH[arm], label=label)
    if low is not None:
        band = [np.concatenate([[1.0], b]) for b in (low, high)]
        band = [np.append(b, b[-1]) if len(b) < len(t) else b for b in band]
        ax.fill_between(t, *band, step="post", color=INK[arm], alpha=0.12, linewidth=0)


def single_curve(columns: dict[str, tuple[str, Any, Any]], ax: Any, label: str | None) -> Any:
    with _styled() as plt:
        ax = _axes(plt, ax, figsize=(5.2, 3.4))
        v = {name: c[1] for name, c in columns.items()}
        _step(ax, v["time"], v["survival"], "treated", label or "", float(v["time"][-1]), v["low"], v["high"])
        ax.set(xlabel="Time", ylabel="Event-free", ylim=(0, 1.02), xlim=(0, None))
        if label:
            ax.legend()
        return ax


def group_curves(found: dict[str, Any], ax: Any = None) -> Any:
    """The curves of one patient's groups: matched for cure, matched for time."""
    horizon = found["horizon"]
    with _styled() as plt:
        axes = _axes(plt, ax, 2, figsize=(8.4, 3.4), sharey=True)
        for ax, which, name in zip(axes, ("cure", "time_groups"), ("cure", "time")):
            for arm in ("treated", "control"):
                group = found[which][arm]
                time = np.array([s["time"] for s in group["curve"]])
                survival = np.array([s["survival"] for s in group["curve"]])
                _step(ax, time, survival, arm, f"{arm}, {len(group['members'])} patients", horizon)
                if name == "time" and group["mean_event_time"] is not None:
                    ax.plot([group["mean_event_time"]], [0], MARK[arm], color=INK[arm], clip_on=False, zorder=5)
            ax.set(xlabel="Time", ylim=(0, 1.02), xlim=(0, horizon))
        cure, time = found["cure_effect"], found["time_effect"]
        axes[0].set_title(f"Patient {found['id']}, matched for cure: {100 * cure:+.1f} points")
        shown = "undefined" if time is None else f"{time:+.4g}"
        axes[1].set_title(f"matched for time: {shown} (marks: mean event times)")
        axes[0].set_ylabel("Event-free")
        axes[0].legend(loc="lower left")
        return axes


class Plots:
    """Figures of a run. Each takes ``ax`` and returns the axes it drew on."""

    def __init__(self, analysis: Analysis) -> None:
        self._a = analysis

    def _average(self, estimand: str) -> dict[str, Any]:
        records = self._a.summary.to_dict()["average_effects"]
        found = [r for r in records if r["estimand"] == estimand and r["population"] == "all"]
        return found[0] if found else {"estimate": None, "low": None, "high": None}

    def effects(self, ax: Any = None) -> Any:
        """Both effects of each patient, in order, with their intervals; the line is the average with its interval."""
        v = _values(self._a._run.effects())
        with _styled() as plt:
            axes = _axes(plt, ax, 2, figsize=(8.4, 3.6))
            for ax, name, ink, scale, unit in (
                (axes[0], "cure_effect", "cure", 100.0, "percentage points"),
                (axes[1], "time_effect", "time", 1.0, "in the unit of time"),
            ):
                x, low, high = (scale * v[n] for n in (name, f"{name}_low", f"{name}_high"))
                known = np.flatnonzero(~np.isnan(x))
                order = known[np.argsort(x[known], kind="stable")]
                rank = (np.arange(len(order)) + 0.5) / max(len(order), 1) * 100
                if len(order) and not np.all(np.isnan(low[order])):
                    ax.vlines(rank, low[order], high[order], color=INK[ink], alpha=min(0.5, 60 / len(order) + 0.03), lw=0.8)
                ax.plot(rank, x[order], ".", ms=2.5, color=INK[ink], label="patients, with intervals")
                ax.axhline(0, color=INK["axis"], lw=1)
                a = self._average(name)
                if a["estimate"] is not None:
                    ax.axhline(scale * a["estimate"], color=INK["ink"], lw=1.2, ls=(0, (4, 2)), label="average")
                    if a["low"] is not None:
                        ax.axhspan(scale * a["low"], scale * a["high"], color=INK["ink"], alpha=0.10, lw=0)
                ax.set(xlabel="Patients in order of their effect (%)", xlim=(0, 100))
                ax.set_ylabel(f"{name.replace('_', ' ').capitalize()} ({unit})")
                ax.legend(loc="upper left")
            return axes

    def _standardised(self, found: dict[str, Any], crude: dict[str, Any], labels: dict[str, str], horizon: float,
                      ax: Any) -> Any:
        with _styled() as plt:
            ax = _axes(plt, ax, figsize=(6.4, 4.4))
            time = np.array(found["times"])
            arms = np.array(crude["arm"])
            at = [t for t in ax.xaxis.get_major_locator().tick_values(0, horizon) if 0 <= t <= horizon]
            for row, arm in enumerate(("treated", "control")):
                b = {name: np.array(values) for name, values in found[arm].items()}
                ax.fill_between(time, b["band_low"], b["band_high"], color=INK[arm], alpha=0.13, linewidth=0)
                ax.fill_between(time, b["low"], b["high"], color=INK[arm], alpha=0.2, linewidth=0)
                name = {"treated": "Treated", "control": "Control"}[arm] if labels[arm] in ("0", "1") else labels[arm]
                ax.plot(time, b["estimate"], color=INK[arm], linestyle=DASH[arm], lw=2,
                        label=f"{name}: {100 * b['estimate'][-1]:.0f} % event-free at H")
                if found["population"] != "all":
                    continue
                of = arms == arm
                t, left = crude["time"][of], crude["n_at_risk"][of]
                inside = t < horizon
                ax.step(np.concatenate([[0.0], t[inside], [horizon]]),
                        np.concatenate([[1.0], crude["survival"][of][inside], crude["survival"][of][inside][-1:]]),
                        where="post", color=INK[arm], lw=0.7, alpha=0.75, linestyle=DASH[arm])
                for tick in at:
                    passed = np.searchsorted(t, tick)
                    n = int(left[passed]) if passed < len(t) else 0
                    ax.annotate(f"{n:,}", (tick, 0), (0, -34 - 12 * row), textcoords="offset points",
                                xycoords=("data", "axes fraction"), ha="center", fontsize=8, color=INK[arm],
                                annotation_clip=False)
            d = found["difference"]
            words = f"difference at H: {100 * d['estimate'][-1]:+.1f} ({100 * d['low'][-1]:+.1f} to {100 * d['high'][-1]:+.1f}) points"
            ax.plot([], [], " ", label=words)
            ax.set_xticks(at)
            ax.set(ylabel="Event-free", ylim=(0, 1.02), xlim=(0, horizon))
            ax.set_title(f"Adjusted, {found['n_units']:,} patients in either arm; thin: Kaplan–Meier as seen"
                         if found["population"] == "all" else f"Adjusted: {found['population']}, {found['n_units']:,} patients")
            if found["population"] == "all":
                ax.set_xlabel("Time; below: patients at risk", labelpad=36)
            else:
                ax.set_xlabel("Time")
            ax.axvline(horizon, color=INK["ink"], lw=1)
            ax.legend(loc="best")
            return ax

    def curves(self, id: Any = None, ax: Any = None, *, population: str = "all") -> Any:
        """The curves behind one patient's estimate or, without an id, of the two arms: adjusted for the covariates over a
        population (``all``, ``treated``, ``control`` or a subgroup), with the Kaplan–Meier curves thin beside them. A run of
        the paper's estimator has those alone, not adjusted."""
        if id is not None:
            return group_curves(self._a.match_group(id).to_dict(), ax)
        s = self._a.summary.to_dict()
        v = _values(self._a._run.curves(s["options"]["confidence"]))
        labels, horizon = s["roles"]["labels"], s["horizon"]
        adjusted = {c["population"]: c for c in (s.get("audit") or {}).get("curves", [])}
        if population != "all" and population not in adjusted:
            raise Refused(
                f"error: this run has no curves of {population!r}\n  rule:   its populations are "
                f"{', '.join(adjusted) or 'all'}\n  remedy: use one of them, or fit with by="
            )
        if adjusted:
            return self._standardised(adjusted[population], v, labels, horizon, ax)
        with _styled() as plt:
            ax = _axes(plt, ax, figsize=(5.6, 4.0))
            arms = np.array(v["arm"])
            at = [t for t in ax.xaxis.get_major_locator().tick_values(0, horizon) if 0 <= t <= horizon]
            for row, arm in enumerate(("treated", "control")):
                of = arms == arm
                time = v["time"][of]
                n = int(v["n_at_risk"][of][0])
                _step(ax, time, v["survival"][of], arm, f"{arm} ({labels[arm]})", horizon, v["low"][of], v["high"][of])
                for t in at:
                    passed = np.searchsorted(time, t)
                    left = n if passed == 0 else int(v["n_at_risk"][of][passed]) if passed < len(time) else 0
                    ax.annotate(f"{left:,}", (t, 0), (0, -34 - 12 * row), textcoords="offset points",
                                xycoords=("data", "axes fraction"), ha="center", fontsize=8, color=INK[arm],
                                annotation_clip=False)
            ax.set_xticks(at)
            ax.set(ylabel="Event-free", ylim=(0, 1.02), xlim=(0, horizon))
            ax.set_xlabel("Time; below: patients at risk", labelpad=36)
            ax.legend(loc="lower left")
            return ax

    def balance(self, ax: Any = None) -> Any:
        """How far the arms are apart in each covariate: as they are, and in the groups or as the averages weigh patients."""
        self._a.balance()
        rows = sorted(self._a._audit["balance"]["covariates"], key=lambda c: abs(c["before"]["difference"]))
        with _styled() as plt:
            ax = _axes(plt, ax, figsize=(5.6, 0.9 + 0.26 * len(rows)))
            place = np.arange(len(rows))
            states = [("before", "before matching", "grey", "X"), ("cure", "matched for cure", "cure", "o"),
                      ("time", "matched for time", "time", "D")]
            if rows and "average" in rows[0]:
                states = [("before", "as they are", "grey", "X"), ("average", "weighted as in the averages", "treated", "D")]
            for when, label, ink, mark in states:
                x = [abs(c[when]["difference"]) for c in rows]
                ax.plot(x, place, mark, color=INK[ink], ms=5, label=label)
            ax.axvline(0.1, color=INK["axis"], lw=1, ls=(0, (4, 2)))
            ax.set_yticks(place, [c["covariate"] for c in rows])
            ax.set(xlabel="Absolute standardised difference between the arms", xlim=(0, None))
            ax.legend(loc="lower right")
            return ax

    def plane(self, ax: Any = None) -> Any:
        """Each patient's cure effect against the same patient's time effect; the cross is the average with its intervals."""
        v = _values(self._a._run.effects())
        with _styled() as plt:
            ax = _axes(plt, ax, figsize=(5.2, 4.2))
            x, y = 100 * v["cure_effect"], v["time_effect"]
            known = ~(np.isnan(x) | np.isnan(y))
            if known.sum() > 3000:
                cells = ax.hexbin(x[known], y[known], gridsize=40, mincnt=1, cmap=_shades(INK["treated"]), linewidths=0)
                ax.figure.colorbar(cells, ax=ax, label="Patients")
            else:
                ax.plot(x[known], y[known], ".", color=INK["treated"], alpha=0.5, ms=4)
            ax.axhline(0, color=INK["axis"], lw=1)
            ax.axvline(0, color=INK["axis"], lw=1)
            cure, time = self._average("cure_effect"), self._average("time_effect")
            if cure["estimate"] is not None and time["estimate"] is not None:
                def reach(a: dict[str, Any], scale: float) -> Any:
                    if a["low"] is None:
                        return None
                    return [[scale * (a["estimate"] - a["low"])], [scale * (a["high"] - a["estimate"])]]

                ax.errorbar([100 * cure["estimate"]], [time["estimate"]], xerr=reach(cure, 100), yerr=reach(time, 1),
                            fmt="o", color=INK["control"], ms=6, capsize=3, label="average", zorder=5)
                ax.legend()
            ax.set(xlabel="Cure effect (percentage points)", ylabel="Time effect (in the unit of time)")
            return ax

    def horizon(self, ax: Any = None) -> Any:
        """Average effects at other horizons, with intervals: whether the conclusion hangs on the choice of H."""
        found = self._a._audit.get("horizons") or []
        if not found:
            why = "; ".join(self._a._audit.get("left_out", [])) or "the run was made without an audit"
            raise Refused(
                f"error: this run has no effects over the horizon: {why}\n  rule:   they are part of the audit of the "
                "paper's estimator\n  remedy: fit with estimator=\"paper\""
            )
        with _styled() as plt:
            axes = _axes(plt, ax, 2, figsize=(8.4, 3.4))
            for ax, name, ink, scale, label in (
                (axes[0], "cure_effect", "cure", 100.0, "Average cure effect (percentage points)"),
                (axes[1], "time_effect", "time", 1.0, "Average time effect (in the unit of time)"),
            ):
                rows = [(h["horizon"], *h[name]) for h in found if h[name] is not None]
                if rows:
                    at, mean, low, high = np.array(rows).T
                    ax.plot(at, scale * mean, "-o", ms=3, color=INK[ink])
                    ax.fill_between(at, scale * low, scale * high, color=INK[ink], alpha=0.15, linewidth=0)
                ax.axhline(0, color=INK["axis"], lw=1)
                ax.axvline(self._a.horizon, color=INK["axis"], lw=1, ls=(0, (4, 2)))
                ax.set(xlabel="Horizon", ylabel=label)
            return axes

    def weights(self, ax: Any = None) -> Any:
        """What decides who is compared with whom: the weight of each covariate in both metrics."""
        v = _values(self._a._run.weights())
        seen: dict[str, tuple[float, float]] = {}
        for name, level, cure, time in zip(v["covariate"], v["level"], v["cure_weight"], v["time_weight"]):
            seen.setdefault(f"{name} missing" if level == "(missing)" else str(name), (float(cure), float(time)))
        rows = sorted(seen.items(), key=lambda r: max(r[1]))
        with _styled() as plt:
            ax = _axes(plt, ax, figsize=(5.6, 0.9 + 0.3 * len(rows)))
            place = np.arange(len(rows))
            ax.barh(place + 0.2, [r[1][0] for r in rows], 0.36, color=INK["cure"], label="for cure")
            ax.barh(place - 0.2, [r[1][1] for r in rows], 0.36, color=INK["time"], label="for time")
            ax.set_yticks(place, [r[0] for r in rows])
            ax.set(xlabel="Weight in the metric")
            ax.grid(False, axis="y")
            ax.legend(loc="lower right")
            return ax


def _shades(ink: str) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("dvim", [INK["wash"], ink])
