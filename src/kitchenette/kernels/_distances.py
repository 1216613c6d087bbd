"""Distances between rows, accurate to float64.

Rows are subtracted before they are scaled, because the difference of two close numbers is exact
and that of their rounded multiples is not. All computations are in float64, on tiles of a Gram
matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils.extmath import row_norms, safe_sparse_dot

Array = NDArray[np.float64]
LARGEST_TILE = 1024  # rows
NUMBERS = 2**21  # the largest size of a temporary array
CACHED = 2**17  # the size of arrays that should fit the cache


def by_tiles(
    X: Any, Y: Any, function: Callable[[Any, Any], Array], dtype: DTypeLike
) -> NDArray[Any]:
    """A function of all pairs of rows, computed by tiles.

    The function gets rows in float64, all dense or all CSR. If Y is X it must be symmetric, and
    gets the same object twice on the diagonal.
    """
    sparse = sp.issparse(X) and sp.issparse(Y)
    size = LARGEST_TILE if sparse else int(np.clip(NUMBERS // X.shape[1], 64, LARGEST_TILE))

    def tile(M: Any, rows: slice) -> Any:
        block = M[rows].astype(np.float64, copy=False)
        return block.toarray() if sp.issparse(block) and not sparse else block

    out = np.empty((X.shape[0], Y.shape[0]), dtype=dtype)
    for i in range(0, X.shape[0], size):
        rows = slice(i, i + size)
        A = tile(X, rows)
        for j in range(i if Y is X else 0, Y.shape[0], size):
            columns = slice(j, j + size)
            B = A if Y is X and j == i else tile(Y, columns)
            out[rows, columns] = function(A, B)
            if Y is X and j > i:
                out[columns, rows] = out[rows, columns].T
    return out


def squared_distances(A: Any, B: Any, scale: Any = 1.0) -> Array:
    """Squared Euclidean distances of rows divided by ``scale``, a number or one per column.

    |a|^2 + |b|^2 - 2 <a, b> is fast but cancels for rows whose distance is small compared with
    their norms, and overflows before the distance does; such pairs are subtracted first.
    """
    # Dense rows are centered, so that there are fewer such pairs.
    center = None if sp.issparse(A) else B.mean(axis=0)
    a = _divided(A if center is None else A - center, scale)
    # The product of a matrix with its own transpose is exactly symmetric.
    b = a if B is A else _divided(B if center is None else B - center, scale)
    norms = row_norms(a, squared=True)[:, None] + row_norms(b, squared=True)[None, :]
    squares = np.asarray(norms - 2 * safe_sparse_dot(a, b.T, dense_output=True))
    fine = (squares >= 1e-5 * norms) & np.isfinite(norms)
    if B is A:
        np.fill_diagonal(squares, 0.0)
        np.fill_diagonal(fine, True)
    i, j = np.nonzero(~fine)
    chunk = max(1, NUMBERS // A.shape[1])
    for start in range(0, i.size, chunk):
        part = slice(start, start + chunk)
        difference = _divided(A[i[part]] - B[j[part]], scale)
        squares[i[part], j[part]] = row_norms(difference, squared=True)
    return squares


def absolute_distances(A: Any, B: Any, scale: Any = 1.0) -> Array:
    """Sums of absolute differences of rows divided by ``scale``, a number or one per column."""
    if not sp.issparse(A):
        return cdist(A, B, "cityblock", w=1 / np.broadcast_to(scale, A.shape[1]))
    if np.ndim(scale) == 0:
        return manhattan_distances(A, B) / scale
    return columnwise_sums(A, B, scale, np.abs)


def columnwise_sums(A: Any, B: Any, scale: Any, function: Callable[[Array], Array]) -> Array:
    """Sums over columns of a function, zero at zero, of the differences divided by ``scale``."""
    n, m = A.shape[0], B.shape[0]
    sums = np.empty(n * m)
    # A sparse difference has only the columns that are stored in one of the rows.
    width = (A.nnz / n + B.nnz / m) if sp.issparse(A) else A.shape[1]
    chunk = int(max(1, CACHED // max(1, width)))
    for start in range(0, n * m, chunk):
        pairs = np.arange(start, min(start + chunk, n * m))
        difference = _divided(A[pairs // m] - B[pairs % m], scale)
        if sp.issparse(difference):
            difference.data = function(difference.data)
        else:
            difference = function(difference)
        sums[pairs] = np.asarray(difference.sum(axis=1)).ravel()
    return sums.reshape(n, m)


def _divided(A: Any, scale: Any) -> Any:
    return A.multiply(1 / np.asarray(scale)).tocsr() if sp.issparse(A) else A / scale
