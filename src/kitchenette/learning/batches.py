"""Rows on their way into statistics: checked, centred, and multiplied when there are enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cython_blas
from sklearn.utils import check_array, check_consistent_length

from kitchenette import _core
from kitchenette.learning.blocks import slices
from kitchenette.learning.packed import Array
from kitchenette.learning.threads import one_blas_thread

if TYPE_CHECKING:
    from kitchenette.learning.least_squares import LeastSquares

BLOCK_ROWS = 4096  # of a product
SINGLE_RANGE = 1e-10, 1e10  # magnitudes whose squares and their sums float32 can hold
LARGEST = 1e140  # whose squares and their sums float64 can hold


class Batch:
    """Checked rows, their means, and how far these are from the means of the statistics.

    All that can be wrong with them is found here, before the statistics are touched.
    """

    def __init__(self, statistics: LeastSquares, Z: Any, Y: Any, sample_weight: Any) -> None:
        self.Z = check_array(
            Z, dtype=[np.float64, np.float32], ensure_all_finite=False, input_name="Z"
        )
        Y = check_array(Y, dtype=np.float64, ensure_2d=False, input_name="Y")
        self.Y = Y[:, None] if Y.ndim == 1 else Y
        check_consistent_length(self.Z, self.Y)
        for name, array, width in (
            ("Z", self.Z, statistics.n_features),
            ("Y", self.Y, statistics.n_targets),
        ):
            if array.ndim != 2 or array.shape[1] != width:
                raise ValueError(
                    f"{name} must have {width} columns; got an array of shape {array.shape}."
                )
        self.n_rows = self.Z.shape[0]
        self.weights = checked_weights(sample_weight, self.n_rows)
        self.roots = None if sample_weight is None else np.sqrt(self.weights)
        self.count = float(self.weights.sum())
        self.single = self.Z.dtype == np.float32
        self.dtype = self.Z.dtype  # of the products
        self._measure(statistics)

    def _measure(self, statistics: LeastSquares) -> None:
        total = np.zeros(self.Z.shape[1])
        peak = 0.0
        for rows in slices(self.n_rows, BLOCK_ROWS):
            block = np.require(self.Z[rows], requirements=["C", "A"])
            peak = max(peak, _core.add_column_sums(block, total, self.weights[rows]))
        if not np.isfinite(total).all():
            check_array(self.Z, input_name="Z")  # says so if a number is not finite
        if self.count == 0:
            return
        self.feature_mean = total / self.count
        self.target_mean = (self.weights @ self.Y) / self.count
        self.feature_step = self.feature_mean - statistics.feature_mean
        self.target_step = self.target_mean - statistics.target_mean
        root, target_peak = np.sqrt(float(self.weights.max())), float(np.abs(self.Y).max())
        most = max(1.0, root) * max(peak, target_peak)
        if most > LARGEST or not np.isfinite(self.count):
            raise ValueError(
                f"Z, Y or sample_weight is too large for sums of squares in float64: the largest "
                f"number times the root of its weight is {most:g}. Scale the data down."
            )
        smallest, largest = SINGLE_RANGE
        least = min(1.0, root) * min(peak, target_peak or peak)
        within = smallest < least and most < largest
        if not within:
            self.dtype = np.dtype(np.float64)


class WaitingRows:
    """Centred rows and targets of statistics, until there are enough of them to be multiplied.

    Each product goes through the whole Gram matrix once, so it should be one of many rows; a
    feature map should compute fewer at a time, because they take memory as well.

    Parameters
    ----------
    statistics : LeastSquares
        To which products are added.
    n_rows : int
        The number of rows to come, with one more for each batch.
    dtype : dtype
        Probably that of the batches; others are taken as well.
    sign : float, default=1.0
        -1 to subtract instead.
    """

    def __init__(
        self, statistics: LeastSquares, n_rows: int, dtype: np.dtype[Any], sign: float = 1.0
    ):
        self._statistics = statistics
        self._sign = sign
        self._capacity = min(n_rows, BLOCK_ROWS + 1)
        self._n_rows = 0
        self._target_gram = np.zeros_like(statistics.target_gram)
        self._allocate(dtype)

    def add(self, batch: Batch, between: float) -> None:
        """Add the rows of a batch, and the difference of means with the weight ``between``."""
        root = np.sqrt(between)
        feature_row, target_row = root * batch.feature_step, root * batch.target_step
        largest = max(np.abs(feature_row).max(), np.abs(target_row).max())
        dtype = batch.dtype if largest < SINGLE_RANGE[1] else np.dtype(np.float64)
        if dtype != self._memory.dtype:
            self.multiply()
            self._allocate(dtype)
        Y = batch.Y - batch.target_mean
        if batch.roots is not None:
            Y *= batch.roots[:, None]
        start = 0
        while start < batch.n_rows:
            room = self._capacity - self._n_rows - 1
            if room <= 0:
                self.multiply()
                continue
            rows = slice(start, min(start + room, batch.n_rows))
            start = rows.stop
            _core.centre_rows(
                np.require(batch.Z[rows], dtype, ["C", "A"]),
                batch.feature_mean,
                None if batch.roots is None else batch.roots[rows],
                feature_row if start == batch.n_rows else None,
                self._memory,
                self._n_rows,
                self._capacity,
            )
            end = self._n_rows + rows.stop - rows.start
            self._targets[self._n_rows : end] = Y[rows]
            self._n_rows = end
        self._targets[self._n_rows] = target_row
        self._n_rows += 1
        self._target_gram += Y.T @ Y + np.outer(target_row, target_row)

    def multiply(self) -> None:
        """Add the products of all rows that wait to the statistics."""
        if self._n_rows == 0:
            return
        letter = "s" if self._memory.dtype == np.float32 else "d"
        with one_blas_thread():
            _core.add_products(
                self._memory,
                self._capacity,
                self._targets[: self._n_rows],
                self._statistics.gram.values,
                self._statistics.cross,
                self._sign,
                cython_blas.__pyx_capi__[f"{letter}gemm"],
                cython_blas.__pyx_capi__[f"{letter}syrk"],
            )
        self._statistics.target_gram += self._sign * self._target_gram
        self._target_gram[:] = 0
        self._n_rows = 0

    def _allocate(self, dtype: np.dtype[Any]) -> None:
        n_features, n_targets = self._statistics.n_features, self._statistics.n_targets
        self._memory = self._targets = np.empty(0, dtype)  # not old and new at the same time
        self._memory = np.empty(_core.waiting_size(self._capacity, n_features), dtype)
        self._targets = np.empty((self._capacity, n_targets), dtype)


def checked_weights(sample_weight: Any, n_rows: int) -> Array:
    """Weights of rows, 1 if not given."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.require(sample_weight, np.float64, ["C", "A"])
    except (TypeError, ValueError):
        raise ValueError(
            f"sample_weight must be a number for each row; got {sample_weight!r:.80}."
        ) from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must be one number for each of the {n_rows} rows; got an array of "
            f"shape {weights.shape}."
        )
    if not np.all(np.isfinite(weights)) or weights.min() < 0:
        raise ValueError("sample_weight must be finite and not negative.")
    return weights
