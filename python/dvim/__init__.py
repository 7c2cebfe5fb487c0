"""Does treatment change *whether* the event ever happens? And, for those it does not cure, does it change *when*?

>>> import dvim
>>> df = dvim.simulate("both-overlap", n=2000, seed=1)
>>> a = dvim.fit(df, time="time", event="event", treatment="treatment", horizon=800, seed=1)
>>> a.effects[["id", "cure_effect", "time_effect"]].shape
(2000, 3)

The *cure effect* is how much treatment changes the probability of being event-free at the horizon; the *time effect* is how
much it changes the mean event time of those who have the event before it. See :func:`fit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _dvim
from ._analysis import Analysis, Audit, MatchGroup
from ._errors import Error, Exists, ModelError, NoSuchUnit, OpenError, Problem, Refused, Warning
from ._fit import fit
from ._frames import Columns
from ._record import Record
from ._several import Arms, Pooled, open
from ._tools import Check, Comparison, Curve, MixtureCure, check, compare, kaplan_meier, scenarios, simulate

if TYPE_CHECKING:
    from ._estimator import DoubleMatching

__version__: str = _dvim.VERSION

__all__ = [
    "Analysis",
    "Arms",
    "Audit",
    "Check",
    "Columns",
    "Comparison",
    "Curve",
    "DoubleMatching",
    "Error",
    "Exists",
    "MatchGroup",
    "MixtureCure",
    "ModelError",
    "NoSuchUnit",
    "OpenError",
    "Pooled",
    "Problem",
    "Record",
    "Refused",
    "Warning",
    "check",
    "compare",
    "fit",
    "kaplan_meier",
    "open",
    "scenarios",
    "simulate",
]


def __getattr__(name: str) -> Any:
    # scikit-learn is optional and slow to import: only those who ask for the estimator need it.
    if name == "DoubleMatching":
        from ._estimator import DoubleMatching

        return DoubleMatching
    raise AttributeError(f"module 'dvim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
