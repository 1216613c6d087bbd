"""How much the predictions of a fitted model change with each column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.rows import table, take
from kitchenette.data.sampling import sampled_rows
from kitchenette.data.source import Source
from kitchenette.learning.gradients import (
    gradient_outer_product,
    has_gradients,
    squared_derivatives,
)
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.maps.preparation import LinearColumns, Preparation, Sequence
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.protocol import FittedMap
from kitchenette.maps.specification import Specification

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
    if mixing is None:
        squares = squared_derivatives(inner, statistics, coef)
    else:
        squares = unmixed(mixing, gradient_outer_product(inner, statistics, coef))
    # The derivatives in several columns that were made from one are added in square.
    owners = np.arange(specification.n_columns)
    for step in steps:
        owners = owners[step.owners()]
    sizes = squares * np.square(spreads)
    return normalised(np.sqrt(np.bincount(owners, sizes, minlength=specification.n_columns)))


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


def normalised(sizes: Array) -> Array:
    """Numbers with a sum of one; equal ones if all are zero."""
    total = sizes.sum()
    return sizes / total if total > 0 else np.full(sizes.size, 1 / sizes.size)
