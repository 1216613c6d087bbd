"""How much the predictions of a fitted model change with each column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.rows import seeded_sample, table, take
from kitchenette.learning.gradients import has_gradients, squared_derivatives
from kitchenette.learning.least_squares import LeastSquares
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
    inner = _fourier(specification)
    if spreads is None:
        spreads = np.broadcast_to(inner.kernel.length_scale, inner.n_columns)
    return normalised(np.sqrt(squared_derivatives(inner, statistics, coef)) * spreads)


def prepared_spreads(specification: Specification, rows: Any) -> Array:
    """The standard deviations of the columns of rows, after the preparation if there is one."""
    _fourier(specification)
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    if isinstance(specification, PreparedSpecification):
        prepared = np.empty((rows.shape[0], specification.preparation.n_outputs), rows.dtype)
        specification.preparation.operator(rows.dtype).write(np.ascontiguousarray(rows), prepared)
        rows = prepared
    return np.asarray(rows.std(axis=0, dtype=np.float64))


def _fourier(specification: Any) -> Any:
    inner = specification
    if isinstance(specification, PreparedSpecification):
        inner = specification.inner
        if specification.preparation.n_outputs != specification.n_columns:
            inner = None  # derivatives would be in other columns than those of the data
    if not has_gradients(inner):
        raise ValueError(
            "Importances are derivatives of cosines and sines of the columns: the feature map must "
            "be AutoMap, Fastfood or RandomKitchenSinks with features='sincos', or one of these "
            "after steps that keep the columns."
        )
    return inner


def normalised(sizes: Array) -> Array:
    """Numbers with a sum of one; equal ones if all are zero."""
    total = sizes.sum()
    return sizes / total if total > 0 else np.full(sizes.size, 1 / sizes.size)
