"""Rows on their way through any feature map, a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

from kitchenette.maps.base import RowTransformer

Features = NDArray[np.float32] | NDArray[np.float64]


def slices(n_rows: int, size: int) -> Iterator[slice]:
    """All rows in order, so many at a time."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def rows_of(X: Any, rows: slice) -> Any:
    """Some rows of a matrix or a data frame, which stays one."""
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return X[rows]
    return _safe_indexing(X, rows)


def features_of(feature_map: Any, X: Any, memory: NDArray[Any] | None = None) -> Features:
    """The features of rows as a dense matrix, float32 or float64.

    A map of this package writes them to ``memory``, the features of an earlier block of at
    least as many rows: new memory costs the operating system as much as features cost us.
    """
    if isinstance(feature_map, FrozenEstimator):
        return features_of(feature_map.estimator, X, memory)
    if isinstance(feature_map, RowTransformer):
        return feature_map._transform_into(X, memory)
    Z: Any = feature_map.transform(X)
    Z = Z.toarray() if sp.issparse(Z) else np.asarray(Z)
    if Z.ndim != 2 or Z.shape[0] != X.shape[0]:
        raise ValueError(
            "feature_map must give a row of features for each row of data; "
            f"{type(feature_map).__name__} gave an array of shape {Z.shape} for {X.shape[0]} rows."
        )
    return Z if Z.dtype == np.float32 else Z.astype(np.float64, copy=False)
