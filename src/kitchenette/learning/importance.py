"""How much the predictions of a fitted model change with each column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.rows import seeded_sample, table, take
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
    spreads = getattr(fitted, "column_spreads_", None)
    if X is not None:
        X = table(X)
        some = seeded_sample(X.shape[0], SPREAD_ROWS, 0)
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
    inner, mixing = _fourier(specification), _columns_and_mixing(specification)[1]
    if spreads is None:
        spreads = np.broadcast_to(inner.kernel.length_scale, specification.n_columns)
    if mixing is None:
        squares = squared_derivatives(inner, statistics, coef)
    else:
        squares = unmixed(mixing, gradient_outer_product(inner, statistics, coef))
    return normalised(np.sqrt(squares) * spreads)


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
    columns = _columns_and_mixing(specification)[0]
    if columns is not None:
        prepared = np.empty((rows.shape[0], columns.n_outputs), rows.dtype)
        columns.operator(rows.dtype).write(np.ascontiguousarray(rows), prepared)
        rows = prepared
    return np.asarray(rows.std(axis=0, dtype=np.float64))


def _fourier(specification: Any) -> Any:
    inner = specification
    if isinstance(specification, PreparedSpecification):
        inner, columns = specification.inner, _columns_and_mixing(specification)[0]
        if columns is not None and columns.n_outputs != specification.n_columns:
            inner = None  # derivatives would be in other columns than those of the data
    if not has_gradients(inner):
        raise ValueError(
            "Importances are derivatives of cosines and sines of the columns: the feature map must "
            "be AutoMap, Fastfood or RandomKitchenSinks with features='sincos', or one of these "
            "after steps that keep the columns."
        )
    return inner


def _columns_and_mixing(specification: Any) -> tuple[Preparation | None, Array | None]:
    """The preparation of each column, and the matrix that mixes the prepared columns."""
    if not isinstance(specification, PreparedSpecification):
        return None, None
    steps: tuple[Preparation, ...] = (specification.preparation,)
    if isinstance(specification.preparation, Sequence) and specification.preparation.steps:
        steps = specification.preparation.steps
    if not isinstance(steps[-1], LinearColumns):
        return specification.preparation, None
    return Sequence(n_columns=specification.n_columns, steps=steps[:-1]), steps[-1].matrix


def normalised(sizes: Array) -> Array:
    """Numbers with a sum of one; equal ones if all are zero."""
    total = sizes.sum()
    return sizes / total if total > 0 else np.full(sizes.size, 1 / sizes.size)
