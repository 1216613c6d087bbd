"""Baseline models, and errors by which models are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Array = NDArray[np.float64]
CHANCE = 2.0  # standard errors of a difference that count as significant, about 95 %


def trivial(task: str) -> Any:
    """The most frequent class, or the mean."""
    return DummyClassifier() if task == "classification" else DummyRegressor()


def linear(task: str, sparse: bool = False) -> Any:
    """Ridge regression of the columns."""
    if task == "classification":
        return make_pipeline(column_scaler(sparse), RidgeClassifier())
    # Rows in float32 would round targets that are far from zero, unless these are centered before.
    model = TransformedTargetRegressor(Ridge(), transformer=StandardScaler(), check_inverse=False)
    return make_pipeline(column_scaler(sparse), model)


def column_scaler(sparse: bool) -> StandardScaler:
    """A scaler to unit variance; sparse rows are not centered, and so stay sparse."""
    return StandardScaler(with_mean=not sparse)


def error_of(
    predicted: NDArray[Any], targets: NDArray[Any], task: str, weights: Array | None = None
) -> tuple[float, float]:
    """The error of predictions, and its standard error.

    For classes it is the share of wrong ones. For numbers it is the root of the mean square error
    over the standard deviation of the targets, averaged over the targets if there are several.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.baselines import error_of
    >>> error_of(np.array([1, 1, 0, 0]), np.array([1, 1, 1, 0]), "classification")[0]
    0.25
    """
    relative = relative_errors(predicted, targets, task, weights)
    shares = _shares(relative.shape[0], weights)
    means = shares @ relative
    deviations = np.sqrt(np.square(shares) @ np.square(relative - means))
    if task == "classification":
        return float(means[0]), float(deviations[0])
    errors = np.sqrt(means)
    # The standard error of a root is that of the mean square over twice the root.
    standard = np.divide(deviations, 2 * errors, out=np.zeros_like(errors), where=errors > 0)
    return float(errors.mean()), float(standard.mean())


def relative_errors(
    predicted: NDArray[Any], targets: NDArray[Any], task: str, weights: Array | None = None
) -> Array:
    """An error for each row and target: 1 for a wrong class, or a square over the variance.

    Targets that do not vary are left out, unless none varies; then squares are not divided.
    """
    n_rows = targets.shape[0]
    if task == "classification":
        wrong: Array = (predicted != targets).astype(np.float64)
        return wrong[:, None]
    targets = targets.reshape(n_rows, -1).astype(np.float64)
    squares: Array = np.square(targets - predicted.reshape(n_rows, -1))
    shares = _shares(n_rows, weights)
    variances = shares @ np.square(targets - shares @ targets)
    varying = variances > 0
    if not varying.any():
        return squares
    return squares[:, varying] / variances[varying]


def is_better(errors: Array, others: Array, weights: Array | None = None) -> bool:
    """Whether errors of some rows are less than others of the same rows by more than chance.

    Chance is two standard errors of the mean difference.
    """
    gains, shares = (others - errors).mean(axis=1), _shares(errors.shape[0], weights)
    mean = float(shares @ gains)
    return mean > CHANCE * float(np.sqrt(np.square(shares) @ np.square(gains - mean)))


def _shares(n_rows: int, weights: Array | None) -> Array:
    return np.full(n_rows, 1 / n_rows) if weights is None else weights / weights.sum()
