"""How much the predictions of a fitted model change with each column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.columns.preparation import LinearColumns, Preparation, Sequence
from kitchenette.data.rows import table, take
from kitchenette.data.sampling import sampled_rows
from kitchenette.data.source import Source
from kitchenette.learning.gradients import (
    gradient_outer_product,
    has_gradients,
    squared_derivatives,
)
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.protocol import FittedMap
from kitchenette.sketching.specification import Specification

Array = NDArray[np.float64]
SPREAD_ROWS = 8000  # the rows from which spreads are computed


def importance(fitted: FittedMap, statistics: LeastSquares, coef: Array, X: Any = None) -> Array:
    """The importance of every column; see `KernelRegressor.importance`.

    Parameters
    ----------
    fitted : FittedMap
        The map.
    statistics : LeastSquares
        The statistics of its features.
    coef : ndarray of shape (n_features, n_targets)
        Their weights.
    X : table of rows, optional
        Rows for the spreads of the columns.

    Returns
    -------
    importances : ndarray of shape (n_columns,)
    """
    specification: Any = getattr(fitted, "specification_", None)
    _fourier(specification)
    inner = getattr(fitted, "map_", None)  # a map of prepared columns, such as AutoMap
    spreads = getattr(fitted if inner is None else inner, "column_spreads_", None)
    if isinstance(X, Source):
        rows = X.without_targets().sample(SPREAD_ROWS).X
        spreads = prepared_spreads(specification, fitted.rows(rows))
    elif X is not None:
        X = table(X)
        some = sampled_rows(X.shape[0], SPREAD_ROWS, 0)
        spreads = prepared_spreads(specification, fitted.rows(take(X, some)))
    return importances(specification, statistics, coef, spreads)


def importances(
    specification: Any, statistics: LeastSquares, coef: Array, spreads: Array | None = None
) -> Array:
    """The importance of every column, from the map, the statistics and the weights.

    Parameters
    ----------
    specification : Specification
        Fourier features, or a preparation that keeps the number of columns and Fourier features.
    statistics : LeastSquares
        The statistics of these features.
    coef : ndarray of shape (n_features, n_targets)
        Their weights.
    spreads : ndarray of shape (n_columns,), optional
        The spreads of the prepared columns; by default the length scales.

    Returns
    -------
    importances : ndarray of shape (n_columns,)
    """
    inner = _fourier(specification)
    steps, mixing = _steps_and_mixing(specification)
    n_prepared = steps[-1].n_outputs if steps else specification.n_columns
    if spreads is None:
        spreads = np.broadcast_to(inner.kernel.length_scale, n_prepared)
    prepared = Sequence(steps=tuple(steps), n_columns=specification.n_columns)
    owners, indicators = prepared.owners(), prepared.indicators()
    if mixing is None and not indicators.any():
        squares = squared_derivatives(inner, statistics, coef)
    else:
        outer = gradient_outer_product(inner, statistics, coef)
        squares = np.diagonal(outer) if mixing is None else unmixed(mixing, outer)
    # The derivatives in several columns that were made from one are added in square.
    sizes = squares * np.square(spreads)
    found = np.bincount(owners, sizes, minlength=specification.n_columns)
    if indicators.any():
        changes, most = _changes(steps), variance_of_predictions(statistics, coef)
        for column in np.unique(owners[indicators]):
            own = np.flatnonzero(indicators & (owners == column))
            rows = np.eye(own.size) if mixing is None else mixing[own]
            block = outer[np.ix_(own, own)] if mixing is None else rows @ outer @ rows.T
            # Between two categories a model may swing in ways that no row shows, so that the
            # derivatives are bounded by what the predictions vary in all.
            of_column = _of_categories(block, changes[own], spreads[own])
            found[column] += min(of_column, most) - sizes[own].sum()
    return normalized(np.sqrt(np.maximum(found, 0)))


def variance_of_predictions(statistics: LeastSquares, coef: Array) -> float:
    """The variance of the predictions of the rows that were learned, summed over the targets."""
    total = 0.0
    for rows, block in statistics.gram.blocks_of_rows():
        total += float(np.sum(coef[rows] * (block[: rows.stop - rows.start] @ coef)))
    return max(total / statistics.count, 0.0)


def _changes(steps: list[Preparation]) -> Array:
    """How far each prepared column of a category is moved when its zero becomes a one."""
    ends = np.zeros((2, steps[0].n_columns))
    for step in steps:
        made, following = step.indicators(), np.zeros((2, step.n_outputs))
        if not made.any():
            step.operator(ends.dtype).write(ends, following)
        following[1, made] = 1.0
        ends = following
    return np.asarray(ends[1] - ends[0])


def _of_categories(outer: Array, changes: Array, spreads: Array) -> float:
    """The average square of the change of predictions with the category of a column.

    Exactly one of the indicators z is one, so that they vary with the covariance
    diag(p) - p p', where p are the shares of the categories. The derivative in the direction in
    which all indicators grow, which no row can go, does not count.
    """
    varying = (spreads > 0) & (changes != 0)
    if not varying.any():
        return 0.0
    outer = outer[np.ix_(varying, varying)]
    changes, spreads = changes[varying], spreads[varying]
    shares = _shares(np.minimum(np.square(spreads / changes), 0.25))
    covariance = np.diag(shares) - np.outer(shares, shares)
    return float(np.sum(outer * np.outer(changes, changes) * covariance))


def _shares(variances: Array) -> Array:
    """The shares p of categories, of which p (1 - p) are given; at most one is more than half."""
    smaller = (1 - np.sqrt(1 - 4 * variances)) / 2
    other = smaller.copy()
    other[smaller.argmax()] = 1 - smaller.max()
    best = min(smaller, other, key=lambda shares: abs(shares.sum() - 1))
    return best / best.sum()


def unmixed(mixing: Array, outer: Array) -> Array:
    """The average squares of the derivatives in columns that a linear map mixes.

    The gradient in the columns x of a function of x M is M times the gradient in x M.

    Parameters
    ----------
    mixing : ndarray of shape (n_columns, n_mixed)
        The matrix M.
    outer : ndarray of shape (n_mixed, n_mixed)
        The average outer product of gradients in x M.

    Returns
    -------
    squares : ndarray of shape (n_columns,)
    """
    return np.asarray(np.maximum(np.einsum("ij,ij->i", mixing @ outer, mixing), 0))


def prepared_spreads(specification: Specification, rows: Any) -> Array:
    """The standard deviations of the columns of rows, after the preparation if there is one.

    A linear map at the end of the preparation is left out, because it mixes the columns.
    """
    _fourier(specification)
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    for step in _steps_and_mixing(specification)[0]:
        prepared = np.empty((rows.shape[0], step.n_outputs), rows.dtype)
        step.operator(rows.dtype).write(np.ascontiguousarray(rows), prepared)
        rows = prepared
    return np.asarray(rows.std(axis=0, dtype=np.float64))


def _fourier(specification: Any) -> Any:
    inner = specification
    while isinstance(inner, PreparedSpecification):
        inner = inner.inner
    if not has_gradients(inner):
        raise ValueError(
            "Importances are derivatives of cosines and sines of the columns: the feature map must "
            "be AutoMap, Fastfood or RandomKitchenSinks with features='sincos', or one of these "
            "after scalers, imputers and encoders."
        )
    return inner


def _steps_and_mixing(specification: Any) -> tuple[list[Preparation], Array | None]:
    """The preparations of the columns, and the matrix that mixes the prepared columns at last."""
    steps: list[Preparation] = []
    while isinstance(specification, PreparedSpecification):
        preparation = specification.preparation
        steps += preparation.steps if isinstance(preparation, Sequence) else (preparation,)
        specification = specification.inner
    if steps and isinstance(steps[-1], LinearColumns):
        return steps[:-1], steps[-1].matrix
    return steps, None


def normalized(sizes: Array) -> Array:
    """Numbers with a sum of one; equal ones if all are zero."""
    total = sizes.sum()
    return sizes / total if total > 0 else np.full(sizes.size, 1 / sizes.size)
