"""Conversion of checked rows for the native core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

BLOCK_BYTES = 1 << 20  # the size of a temporary block, which fits a second-level cache


def native_rows(X: Any) -> Any:
    """Rows for the core: a matrix with contiguous rows, or the arrays of a CSR matrix."""
    if not sp.issparse(X):
        contiguous = X.strides[1] == X.itemsize or X.shape[1] == 1
        return X if contiguous and X.flags.aligned else np.array(X, order="C")
    if not X.has_canonical_format:
        # The features must not depend on the order in which entries are stored.
        X = X.copy()
        X.sum_duplicates()
    # Arrays that came through a network may begin anywhere in memory.
    return (
        np.require(X.data, requirements="A"),
        np.require(X.indices, np.int32, "A"),
        np.require(X.indptr, np.int64, "A"),
        X.shape[1],
    )


def row_blocks(X: Any, numbers_per_row: int) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Dense blocks of rows, such that ``numbers_per_row`` numbers per row fit the cache."""
    size = max(1, BLOCK_BYTES // (X.dtype.itemsize * max(1, numbers_per_row)))
    for rows, block in blocks_of_rows(X, size):
        yield rows, block.toarray() if sp.issparse(block) else np.ascontiguousarray(block)


def blocks_of_rows(X: Any, size: int) -> Iterator[tuple[slice, Any]]:
    """Blocks of ``size`` rows, dense or sparse like X."""
    for start in range(0, X.shape[0], size):
        rows = slice(start, min(start + size, X.shape[0]))
        yield rows, X[rows]
