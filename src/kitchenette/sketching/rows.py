"""Checked rows on their way into the native core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

BLOCK_BYTES = 1 << 20  # of a temporary block of rows: stays in a second-level cache


def native_rows(X: Any) -> Any:
    """Rows as the core takes them: a matrix with contiguous rows, or the parts of a CSR matrix."""
    if not sp.issparse(X):
        contiguous = X.strides[1] == X.itemsize or X.shape[1] == 1
        return X if contiguous and X.flags.aligned else np.array(X, order="C")
    if not X.has_canonical_format:
        # Equal rows must have equal features in whatever order their values are stored.
        X = X.copy()
        X.sum_duplicates()
    return (
        X.data,
        X.indices.astype(np.int32, copy=False),
        X.indptr.astype(np.int64, copy=False),
        X.shape[1],
    )


def row_blocks(X: Any, numbers_per_row: int) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Dense blocks of rows, so small that ``numbers_per_row`` for each of them fit the cache."""
    size = max(1, BLOCK_BYTES // (X.dtype.itemsize * max(1, numbers_per_row)))
    for rows, block in blocks_of_rows(X, size):
        yield rows, block.toarray() if sp.issparse(block) else np.ascontiguousarray(block)


def blocks_of_rows(X: Any, size: int) -> Iterator[tuple[slice, Any]]:
    """Blocks of so many rows, dense or sparse as they are."""
    for start in range(0, X.shape[0], size):
        rows = slice(start, min(start + size, X.shape[0]))
        yield rows, X[rows]
