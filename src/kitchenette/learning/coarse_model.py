"""A model of some of the features, solved exactly: a first penalty and weights to begin with.

The statistics of m of the D features take one pass and m^2 operations for a row, which is a few
steps of an iterative solver. All rows enter them, so that they show how small the penalty of all
rows is, and their model predicts better than the first steps of the solver do. If the D features
approximate a kernel k, then m of them, drawn at random, approximate (m / D) k. So a penalty of m
features corresponds to one that is D / m times as large for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.passes import FeatureRows
from kitchenette.learning.pilot import CONSTANT
from kitchenette.learning.threads import one_blas_thread

Array = NDArray[np.float64]
COARSE_FEATURES = 2048
ROWS_PER_FEATURE = 16  # distinct rows for a feature, at least: fewer want too small a penalty
EXPONENTS = np.arange(-9.0, 1.0, 0.5)  # of ten, for penalties relative to the trace


@dataclass(frozen=True)
class CoarseModel:
    """The best model of some of the features for rows that were held out.

    Attributes
    ----------
    alpha : float
        The penalty of all features that corresponds to that of these.
    coef : ndarray of shape (n_features, n_targets)
        The weights of all features; zero for those that the model does not have.
    """

    alpha: float
    coef: Array


def drawn_features(n_features: int, n_distinct: int) -> NDArray[np.intp] | None:
    """The features of a coarse model; None if there are too few features or rows for one."""
    if n_features < 2 * COARSE_FEATURES or n_distinct < ROWS_PER_FEATURE * COARSE_FEATURES:
        return None
    # A regular choice could take only cosines, or rows of a Hadamard matrix that resemble another.
    drawn = np.random.default_rng(0).choice(n_features, COARSE_FEATURES, replace=False)
    return np.sort(drawn)


def coarse_bytes(n_features: int, n_rows: int) -> int:
    """The memory that a coarse model takes: its statistics, all entries of them, eigenvectors."""
    which = drawn_features(n_features, n_rows)
    return 0 if which is None else 28 * which.size**2


def coarse_model(
    statistics: LeastSquares,
    which: NDArray[np.intp],
    held_rows: FeatureRows,
    *,
    fit_intercept: bool,
) -> CoarseModel | None:
    """The model with the penalty of the least squared error on held-out rows.

    Parameters
    ----------
    statistics : LeastSquares
        The statistics of some features of the rows that are learned.
    which : ndarray of int
        These features.
    held_rows : FeatureRows
        The rows that were held out.
    fit_intercept : bool
        Whether there is an intercept.

    Returns
    -------
    model : CoarseModel or None
        None if the features are constant up to rounding.
    """
    lower, cross = statistics.gram.full(), statistics.cross
    mean, target_mean = statistics.feature_mean, statistics.target_mean
    size = statistics.count * float(mean @ mean)
    if not fit_intercept:
        lower += statistics.count * np.outer(mean, mean)
        cross = cross + statistics.count * np.outer(mean, target_mean)
        mean, target_mean = np.zeros_like(mean), np.zeros_like(target_mean)
    trace = float(np.einsum("ii->", lower))
    if not CONSTANT**2 * size < trace < np.inf:
        return None
    alphas = trace * 10**EXPONENTS
    with one_blas_thread(lower.shape[0]):
        values, vectors = eigh(lower, lower=True, overwrite_a=True, check_finite=False)
        rotated, values = vectors.T @ cross, np.maximum(values, 0)
        models = [vectors @ (rotated / (values + alpha)[:, None]) for alpha in alphas]
    squares = np.einsum("ii->i", statistics.target_gram)
    errors = _errors(models, which, held_rows, mean, target_mean, np.where(squares > 0, squares, 1))
    best = int(errors.argmin())
    coef = np.zeros((held_rows.n_features, cross.shape[1]))
    coef[which] = models[best]
    return CoarseModel(float(alphas[best]) * held_rows.n_features / which.size, coef)


def _errors(
    models: list[Array],
    which: NDArray[np.intp],
    rows: FeatureRows,
    mean: Array,
    target_mean: Array,
    spreads: Array,
) -> Array:
    """Sums of squared errors of models of centered features, relative to the targets' spreads."""
    weights, errors = np.hstack(models), np.zeros(len(models))
    for part, Z in rows.some_features(which):
        centered = rows.coding.columns(rows.targets[part]) - target_mean
        outputs = ((Z - mean) @ weights).reshape(len(Z), len(models), -1)
        squares = np.square(outputs - centered[:, None]) / spreads
        errors += np.einsum("npt,n->p", squares, rows.weights[part])
    return errors
