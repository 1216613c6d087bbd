"""Statistics of the features of rows, computed block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.rows import slices, take
from kitchenette.learning.least_squares import LeastSquares, StatisticsBuilder, check_memory
from kitchenette.learning.progress import with_progress
from kitchenette.maps.protocol import FittedMap

Array = NDArray[np.float64]
LEARNED_NUMBERS = 1 << 22  # the size of a block of features, within these numbers of rows
LEAST_ROWS = 256
MOST_ROWS = 4096


def features(fitted: FittedMap, X: Any, memory: NDArray[Any] | None = None) -> NDArray[Any]:
    """The features of rows, written to ``memory`` if it is large enough.

    Allocating new pages takes about as long as computing the features.
    """
    rows = fitted.rows(X)
    operator = fitted.operator(rows)
    n_rows = rows.shape[0]
    if memory is None or memory.shape[0] < n_rows or memory.dtype != operator.dtype:
        memory = np.empty((n_rows, operator.n_features), dtype=operator.dtype)
    Z = memory[:n_rows]
    if not operator.write(rows, Z):
        raise ValueError(fitted.overflow(rows))
    return Z


def accumulate(
    fitted: FittedMap,
    X: Any,
    targets: NDArray[Any],
    columns: Callable[[NDArray[Any]], Array],
    weights: Array | None,
    title: str | None = None,
) -> LeastSquares:
    """New statistics of the features of rows and of their targets.

    Parameters
    ----------
    fitted : FittedMap
        The map.
    X : table of rows
        Rows.
    targets : ndarray of shape (n_rows, ...)
        Encoded targets.
    columns : callable
        Converts a block of targets to columns of numbers.
    weights : ndarray of shape (n_rows,) or None
        Weights of the rows.
    title : str, optional
        If given, progress is shown under this title.

    Returns
    -------
    statistics : LeastSquares
    """
    n_rows, n_features = X.shape[0], fitted.n_features_out_
    check_memory(n_features)
    size = min(max(LEARNED_NUMBERS // n_features, LEAST_ROWS), MOST_ROWS)
    blocks = slices(n_rows, size)
    if title is not None:
        blocks = with_progress(blocks, n_rows, title)
    builder, memory = None, None
    for rows in blocks:
        Z = features(fitted, take(X, rows), memory)
        memory = Z if memory is None else memory
        Y = columns(targets[rows])
        if builder is None:
            builder = StatisticsBuilder(n_features, Y.shape[1], n_rows, Z.dtype)
        builder.add(Z, Y, None if weights is None else weights[rows])
    assert builder is not None
    return builder.finish()
