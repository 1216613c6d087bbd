"""Slicing, sampling and validation of arrays, sparse matrices, data frames and lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from kitchenette.kernels.base import canonical, native_order
from kitchenette.sketching.random import Stream

FLOATS: list[type] = [np.float64, np.float32]
SAMPLE_ROWS = 1000  # the size of the sample from which parameters are chosen


def slices(n_rows: int, size: int) -> Iterator[slice]:
    """Slices of ``size`` rows that cover all rows in order."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def take(X: Any, rows: Any) -> Any:
    """Some rows of a matrix or a data frame, as the same type."""
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return X[rows]
    return _safe_indexing(X, rows)


def table(X: Any) -> Any:
    """Convert lists to arrays and sparse matrices to CSR, so that `take` can index rows."""
    refuse_what_is_not_numbers(X)
    if sp.issparse(X):
        return X.tocsr()
    return X if hasattr(X, "shape") else np.asarray(X)


def refuse_what_is_not_numbers(X: Any) -> None:
    """Refuse masked arrays and dates, which would be converted to meaningless numbers."""
    if isinstance(X, np.ma.MaskedArray):
        raise ValueError(
            "Masked arrays are not supported, because their masked entries would be used as "
            "numbers. Fill them first, for example with sklearn.impute.SimpleImputer."
        )
    for dtype in getattr(X, "dtypes", ()) if hasattr(X, "columns") else [getattr(X, "dtype", None)]:
        if getattr(dtype, "kind", None) in ("m", "M"):
            raise ValueError(
                f"A column of dates or times ({dtype}) is not a number. Convert it to one first, "
                "for example to days since some date."
            )


def counting_rows(X: Any, weights: Any) -> tuple[Any, Any]:
    """The rows of a `table` whose weight is not zero, and their weights."""
    if weights is None or np.all(weights):
        return X, weights
    counting = np.flatnonzero(weights)
    if counting.size == 0:
        raise ValueError("All weights are zero: there is no row to learn from.")
    return take(X, counting), weights[counting]


def sample_rows(X: Any, seed: int, weights: Any = None) -> tuple[Any, Any]:
    """A seeded sample of the rows of a `table`, with their weights; all rows if there are few.

    Rows of weight zero are excluded.
    """
    n_rows = _num_samples(X)
    if weights is None:
        return take(X, Stream(seed, "sample").sample(n_rows, SAMPLE_ROWS)), None
    counting = np.flatnonzero(weights)
    if counting.size == 0:
        raise ValueError("All weights are zero: there is no row to learn from.")
    picked = counting[Stream(seed, "sample").sample(counting.size, SAMPLE_ROWS)]
    return take(X, picked), weights[picked]


def seeded_sample(n_rows: int, size: int, seed: int) -> Any:
    """Sorted places of about ``size`` rows, or of all rows if there are no more."""
    stream = Stream(seed, "pilot")
    if n_rows <= size or n_rows > 16 * size:  # picks of few among many are hardly ever equal
        return stream.sample(n_rows, size)
    order = np.argsort(stream.uniforms(1, n_rows)[0])
    return np.sort(order[:size])


def checked_rows(owner: Any, X: Any) -> Any:
    """Rows for a fitted estimator: finite float32 or float64, dense or canonical CSR.

    A float matrix takes a fast path, because scikit-learn's general checks take longer than the
    features of a few rows.
    """
    if (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == vars(owner).get("n_features_in_")
        and X.dtype in FLOATS
        and "feature_names_in_" not in vars(owner)
    ):
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(X.sum()):
                return X
    check_is_fitted(owner)
    return validated(owner, X, reset=False)


def validated(owner: Any, X: Any, *, reset: bool) -> Any:
    """`validate_data` of scikit-learn, for all formats that feature maps take."""
    refuse_what_is_not_numbers(X)
    X = validate_data(owner, native_order(X), accept_sparse="csr", dtype=FLOATS, reset=reset)
    return canonical(X)
