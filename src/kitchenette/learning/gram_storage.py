"""The precision in which a Gram matrix is stored, the memory that it takes, and its accuracy."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from kitchenette.learning.memory import check_memory

STORAGES = ("float64", "float32")
LARGE_ORDER = 16_384  # the statistics of more float32 features, above 1 GB, are kept in float32
BLOCK_ROWS = 4097  # of a product in the native core
ADDED_ROWS = 256  # that are summed before they are added to a Gram matrix, if batches are small
# The rounding error of a Gram matrix of float32 rows, divided by its trace, is slightly below
# FLOAT32_RESOLUTION if there are at least FLOAT32_FEATURES and FLOAT32_ROWS, and larger with fewer.
FLOAT32_RESOLUTION = 1e-8
FLOAT32_FEATURES, FLOAT32_ROWS = 10, 20_000
STORED_RESOLUTION = 3e-8  # of one addition to a Gram matrix in float32, times sqrt(n_features)
FACTOR_RESOLUTION = 3e-8  # smaller penalties, relative to the trace, need a factor in float64


def storage_of(n_features: int, dtype: DTypeLike) -> str:
    """The storage for features of this precision."""
    small = n_features <= LARGE_ORDER or np.dtype(dtype) != np.float32
    return "float64" if small else "float32"


def statistics_bytes(n_features: int, storage: str) -> int:
    """The size of a Gram matrix, and of its factor."""
    return np.dtype(storage).itemsize * n_features * (n_features + 1) // 2


def check_learning_memory(
    n_features: int, dtype: DTypeLike, *, n_rows: int, n_sampled: int
) -> None:
    """Refuse to learn from features whose statistics, factor and blocks exceed the memory.

    Parameters
    ----------
    n_features : int
        The number of features.
    dtype : dtype
        Their precision.
    n_rows : int
        The number of rows.
    n_sampled : int
        How many of them are kept as features to check the model.
    """
    statistics = statistics_bytes(n_features, storage_of(n_features, dtype))
    row = np.dtype(dtype).itemsize * n_features
    check_memory(
        f"Learning from {n_features} features",
        {
            "the Gram matrix": statistics,
            # The blocks of rows are freed before the factor is computed.
            "its factor": max(statistics, min(n_rows, BLOCK_ROWS) * row),
            "the validation rows": min(n_rows, n_sampled) * row,
        },
        "Use fewer features, float32 data, or solver='iterative', which keeps no statistics.",
    )


def stored_resolution(n_features: int, n_rows: int) -> float:
    """The rounding error of a Gram matrix that is stored in float32, divided by its trace.

    Every sum of rows that is added is rounded to float32. The errors of the entries are
    independent, with a standard deviation of eps / 8 of the entries for each addition, as the sums
    grow. The norm of a symmetric matrix of such numbers is 2 sqrt(n_features) times their
    deviation, and the largest entries are about the trace over n_features. If most entries are
    smaller than the diagonal, as for Fourier features, the error is a third of this bound.
    """
    additions = max(1.0, n_rows / ADDED_ROWS)
    return STORED_RESOLUTION * float(np.sqrt(additions / n_features))


def resolution(n_features: int, n_rows: int, storage: str, *, has_float32: bool) -> float:
    """The rounding error of a Gram matrix, or of its factor, divided by the trace."""
    error = max(n_features, 100) * float(np.finfo(np.float64).eps)
    if has_float32:
        # Rounding errors are independent and average out less with few features or rows.
        error = FLOAT32_RESOLUTION * max(1.0, FLOAT32_FEATURES / n_features)
        error *= max(1.0, float(np.sqrt(FLOAT32_ROWS / n_rows)))
    if storage == "float32":
        error = max(error, stored_resolution(n_features, n_rows), FACTOR_RESOLUTION)
    return error
