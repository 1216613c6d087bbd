"""Dense products of rows with a matrix, in panels of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette import _core
from kitchenette.sketching.operators import NativeOperator

PANEL = 64  # features that the core computes together; their signs share a word of 64 bits


def in_panels(matrix: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """The columns of a matrix in panels of PANEL columns, padded with zeros."""
    height, n = matrix.shape
    panels = np.zeros((-(-n // PANEL), height, PANEL), dtype=dtype)
    for p, panel in enumerate(panels):
        part = matrix[:, p * PANEL : (p + 1) * PANEL]
        panel[:, : part.shape[1]] = part
    return panels


def dense_operator(
    nonlinearity: _core.Nonlinearity, panels: NDArray[Any], n_features: int
) -> NativeOperator:
    """A nonlinearity applied to products with a matrix of shape (n_panels, n_columns, PANEL)."""
    return NativeOperator(_core.dense(nonlinearity, panels=panels, n_features=n_features))


def matrix_product(matrix: NDArray[Any], dtype: DTypeLike) -> NativeOperator:
    """Rows times a matrix; unlike with a BLAS, the rounding of a row is independent of others."""
    return dense_operator(_core.Nonlinearity("identity"), in_panels(matrix, dtype), matrix.shape[1])
