"""Gradient-boosted trees as a peer: settings that work, from the libraries that are installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

# Where to find a library, best known first. scikit-learn is always there.
LIBRARIES = {"LightGBM": "lightgbm", "XGBoost": "xgboost", "HistGradientBoosting": "sklearn"}
ROUNDS = 100  # the default of all three
# The L2 penalty of the leaves' values. Its default is 1 in XGBoost and 0 in the others, whose trees
# diverge without it where a class has few rows. With 0, 0.1 and 1 the errors of LightGBM are 0.193,
# 0.0006, 0.0006 on shuttle, 0.071, 0.0019, 0.0013 on kddcup99, but 0.033, 0.035, 0.040 on letter;
# those of HistGradientBoosting are alike (20,000 rows of benchmarks.outofthebox --quick).
LEAF_PENALTY = 0.1


def installed(*, sparse: bool = False) -> tuple[str, ...]:
    """The libraries of gradient-boosted trees that are installed.

    If ``sparse``, only those that take sparse rows.

    Examples
    --------
    >>> from kitchenette.report.boosting import installed
    >>> installed()[-1]
    'HistGradientBoosting'
    """
    names = (name for name, module in LIBRARIES.items() if find_spec(module) is not None)
    return tuple(name for name in names if not (sparse and name == "HistGradientBoosting"))


def boosted(
    library: str, task: str, *, n_targets: int = 1, seed: int = 0, rounds: int = ROUNDS
) -> Any:
    """Gradient-boosted trees of a library: its defaults, without early stopping.

    Early stopping is off because it ends after a few rounds on some data: after 11 on covtype,
    with half as many errors more as all 100 have. There is a tree for each class in each round.
    Labels may be of any kind, and columns of a data frame categorical.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kitchenette.report.boosting import boosted
    >>> X, y = load_iris(return_X_y=True)
    >>> model = boosted("HistGradientBoosting", "classification", rounds=10)
    >>> bool(model.fit(X, y).score(X, y) > 0.95)
    True
    """
    # Imported here, because `kitchenette fit` needs none of them and two are optional.
    classes = task == "classification"
    if library == "HistGradientBoosting":
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        kind: Any = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        model = kind(
            max_iter=rounds,
            early_stopping=False,
            l2_regularization=LEAF_PENALTY,
            random_state=seed,
        )
        return model if classes else _for_targets(model, n_targets)
    if library == "LightGBM":
        import lightgbm

        kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
        model = kind(
            n_estimators=rounds,
            reg_lambda=LEAF_PENALTY,
            random_state=seed,
            n_jobs=0,  # as many threads as OpenMP has, which obeys OMP_NUM_THREADS
            verbose=-1,
        )
        return model if classes else Rescaled(_for_targets(model, n_targets))
    if library == "XGBoost":
        import xgboost

        kind = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
        model = kind(n_estimators=rounds, random_state=seed, enable_categorical=True)
        return Relabeled(model) if classes else Rescaled(model)
    raise ValueError(f"library must be one of {', '.join(LIBRARIES)}; got {library!r}.")


class Relabeled(ClassifierMixin, BaseEstimator):
    """A classifier of the numbers 0, 1, ... for labels of any kind.

    XGBoost does not accept other labels.
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier to the indices of the labels."""
        self.classes_, indices = np.unique(np.asarray(y), return_inverse=True)
        self.classifier.fit(X, indices)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels."""
        labels: NDArray[Any] = self.classes_[np.asarray(self.classifier.predict(X), dtype=np.intp)]
        return labels


def _for_targets(model: Any, n_targets: int) -> Any:
    from sklearn.multioutput import MultiOutputRegressor

    return model if n_targets == 1 else MultiOutputRegressor(model)


class Rescaled(RegressorMixin, BaseEstimator):
    """A regressor of targets of mean 0 and variance 1.

    LightGBM and XGBoost have targets in float32, which would round those that are far from
    zero.
    """

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the regressor to the rescaled targets."""
        y = np.asarray(y, dtype=np.float64)
        self.mean_, spread = y.mean(axis=0), y.std(axis=0)
        self.spread_ = np.where(spread > 0, spread, 1.0)
        self.regressor.fit(X, (y - self.mean_) / self.spread_)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict targets."""
        scaled = np.asarray(self.regressor.predict(X), dtype=np.float64)
        predicted: NDArray[np.float64] = self.mean_ + self.spread_ * scaled
        return predicted
