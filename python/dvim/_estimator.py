"""dvim as a scikit-learn estimator: the same call, with ``get_params``, ``clone`` and pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise ImportError("dvim.DoubleMatching needs scikit-learn: pip install 'dvim[sklearn]'") from None

from ._analysis import Analysis
from ._errors import Refused
from ._fit import fit


class DoubleMatching(BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Double variable importance matching as a scikit-learn estimator.

    ``fit(X, y)`` takes covariates and a scikit-survival outcome; the arms come from a column of ``X`` (``treatment`` names
    it, or gives its position) or from ``fit(X, y, treatment=...)``. ``predict(X)`` gives the cure effect and the time
    effect of each row; ``analysis_`` is the :class:`dvim.Analysis`.

    >>> import dvim, numpy as np
    >>> df = dvim.simulate("both-overlap", n=1000)
    >>> y = np.array(list(zip(df.event == 1, df.time)), dtype=[("event", "?"), ("time", "f8")])
    >>> X = df.drop(columns=["id", "time", "event"])
    >>> model = dvim.DoubleMatching(treatment="treatment", horizon=800).fit(X, y)
    >>> model.predict(X).shape
    (1000, 2)
    """

    def __init__(
        self,
        *,
        treatment: str | int | None = None,
        horizon: float | None = None,
        treated: Any = None,
        control: Any = None,
        weights: str | None = None,
        cluster: str | None = None,
        entry: str | None = None,
        numeric: str | Iterable[str] = (),
        categorical: str | Iterable[str] = (),
        allow: str | Iterable[str] = (),
        missing: str = "refuse",
        zero_time: str = "refuse",
        estimator: str = "adjusted",
        group_size: int | str | None = None,
        splits: int | None = None,
        folds: int | None = None,
        latency: str = "auto",
        learners: str = "all",
        penalty: str | float = "prior",
        train_fraction: float = 0.35,
        metric: str = "separate",
        scale: str = "standard",
        seed: int = 1,
        exact: str | Iterable[str] = (),
        caliper: Mapping[str, float | str] | None = None,
        exclude_self: bool = False,
        confidence: float = 0.95,
        threads: int | None = None,
    ) -> None:
        self.treatment = treatment
        self.horizon = horizon
        self.treated = treated
        self.control = control
        self.weights = weights
        self.cluster = cluster
        self.entry = entry
        self.numeric = numeric
        self.categorical = categorical
        self.allow = allow
        self.missing = missing
        self.zero_time = zero_time
        self.estimator = estimator
        self.group_size = group_size
        self.splits = splits
        self.folds = folds
        self.latency = latency
        self.learners = learners
        self.penalty = penalty
        self.train_fraction = train_fraction
        self.metric = metric
        self.scale = scale
        self.seed = seed
        self.exact = exact
        self.caliper = caliper
        self.exclude_self = exclude_self
        self.confidence = confidence
        self.threads = threads

    def _named(self, X: Any) -> list[str] | None:  # noqa: N803
        """Names for an array that has none."""
        if isinstance(X, np.ndarray) and X.dtype.names is None and X.ndim == 2:
            return [f"x{j + 1}" for j in range(X.shape[1])]
        return None

    def fit(self, X: Any, y: Any, treatment: Any = None) -> DoubleMatching:  # noqa: N803
        """Fits covariates and outcomes. ``treatment`` holds the arms where no column of ``X`` does."""
        if self.horizon is None:
            raise Refused(
                "error: no horizon was given\n  rule:   the horizon defines what is estimated, so it has no default\n"
                "  remedy: use DoubleMatching(horizon=...)"
            )
        if self.treated == "all":
            raise Refused(
                'error: treated="all" in an estimator\n  rule:   an estimator predicts the effects of one arm\n'
                "  remedy: name the arm, or use dvim.fit, which gives an analysis for each"
            )
        if hasattr(X, "toarray"):
            raise Refused("error: X is sparse\n  rule:   covariates are dense\n  remedy: pass X.toarray()")
        if isinstance(X, (list, tuple)):
            X = np.asarray(X)  # noqa: N806
        names = self._named(X)
        arm = treatment if treatment is not None else self.treatment
        if isinstance(arm, (int, np.integer)) and not isinstance(arm, bool):
            columns = names if names is not None else [str(c) for c in X.columns]
            arm = columns[arm]
        given = self.get_params()
        given.pop("treatment")
        self.analysis_: Analysis = fit(X, y=y, treatment=arm, names=names, progress=False, **given)
        columns = names if names is not None else [str(c) for c in getattr(X, "columns", ())]
        self._columns = columns
        self.n_features_in_ = len(columns)
        if names is None and columns:
            self.feature_names_in_ = np.array(columns, dtype=object)
        return self

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The cure effect and the time effect of each row; NaN where it is undefined."""
        check_is_fitted(self, "analysis_")
        if isinstance(X, (list, tuple)):
            X = np.asarray(X)  # noqa: N806
        names = self._named(X)
        if names is not None:
            if len(names) == len(self._columns):
                names = self._columns
            else:
                covariates = self.analysis_.summary.to_dict()["roles"]["covariates"]
                if len(names) != len(covariates):
                    raise Refused(
                        f"error: X has {len(names)} columns\n  rule:   the model was fitted with {len(self._columns)}\n"
                        "  remedy: pass the columns of the fit, with or without the treatment"
                    )
                names = covariates
        found = self.analysis_.predict(X, names=names, progress=False)
        return np.column_stack([np.asarray(found[n], dtype=np.float64) for n in ("cure_effect", "time_effect")])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "analysis_")
