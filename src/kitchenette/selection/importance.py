"""How much the predictions of a fitted model change with each column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.rows import seeded_sample, table, take
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.protocol import FittedMap, thawed
from kitchenette.maps.specification import Specification
from kitchenette.maps.translation import prepared_map
from kitchenette.selection.choosing import normalised
from kitchenette.selection.gradients import has_gradients, squared_derivatives

Array = NDArray[np.float64]
SPREAD_ROWS = 8000  # the rows from which spreads are computed


def importance(model: Any, X: Any = None) -> Array:
    """The importance of every column for the predictions of a fitted model.

    It is the root mean square of the derivative of the prediction in the column, over all rows
    that the model has learned from, times the spread of the column, with a sum of one. It says to
    what the model reacts; permutation importance says what its accuracy rests on.

    Parameters
    ----------
    model : KernelRegressor or KernelClassifier
        A fitted model with Fourier features of its columns: `AutoMap`, `Fastfood`,
        `RandomKitchenSinks`, or one of these after a scaler.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns), optional
        Rows from which the spreads of the columns are computed. Without them, an `AutoMap` knows
        the spreads; for other maps, columns are compared in units of their length scales.

    Returns
    -------
    importances : ndarray of shape (n_columns,)
        Numbers that are not negative, with a sum of one. The derivatives of several targets or
        classes are added in square.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import KernelRegressor
    >>> from kitchenette.selection import importance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> model = KernelRegressor(random_state=0).fit(X, 2 * X[:, 1] + X[:, 2])
    >>> importances = importance(model, X)
    >>> bool(importances[1] > importances[2] > 10 * importances[0])
    True
    """
    fitted: Any = thawed(model.feature_map_)
    if not isinstance(fitted, FittedMap):
        fitted = prepared_map(fitted)
    specification: Any = getattr(fitted, "specification_", None)
    _fourier(specification)
    statistics = model.statistics_
    if statistics is None:
        raise ValueError("This model was saved without its statistics, from which derivatives are.")
    weights = np.asarray(model.solve().coef_, dtype=np.float64)
    coef = weights.reshape(statistics.n_targets, statistics.n_features).T
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
