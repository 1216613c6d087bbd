"""Statistics of the features of rows, computed block by block."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from kitchenette import _core
from kitchenette.data.drawing import SampleBuilder
from kitchenette.data.keys import Keys, can_be_hashed, row_keys
from kitchenette.data.rows import slices, take
from kitchenette.learning.gram_storage import check_learning_memory, storage_of
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.progress import with_progress
from kitchenette.learning.row_sample import RowSample
from kitchenette.learning.target_coding import TargetCoding
from kitchenette.learning.threads import BLAS, one_blas_thread
from kitchenette.maps.protocol import FittedMap
from kitchenette.sketching.operators import Operator

Array = NDArray[np.float64]
LEARNED_NUMBERS = 1 << 22  # the size of a block of features, within these numbers of rows
LEAST_ROWS = 256
MOST_ROWS = 4096
CONVERTED_NUMBERS = 1 << 21  # entries of a table that become numbers at a time


class Batch(NamedTuple):
    """Features of rows, their target columns, their weights, and keys for sampling if needed."""

    Z: NDArray[Any]
    Y: Array
    weights: Array | None
    keys: Keys | None


class StatisticsBuilder:
    """Builds statistics from blocks of rows.

    Centered rows are buffered until there are enough for an efficient update of the whole Gram
    matrix, so blocks may be small.

    Parameters
    ----------
    n_features, n_targets : int
        The numbers of columns of Z and Y.
    n_rows : int
        The approximate number of rows to be added.
    dtype : dtype
        The expected precision of the blocks; others are accepted.
    storage : {"float64", "float32"}, optional
        The precision of the Gram matrix; by default `storage_of` these features.
    """

    def __init__(
        self,
        n_features: int,
        n_targets: int,
        n_rows: int,
        dtype: DTypeLike,
        storage: str | None = None,
    ):
        room = n_rows + n_rows // LEAST_ROWS + 1  # one more row per block for the shift of means
        self._accumulator = _core.Accumulator(
            n_features,
            n_targets,
            room,
            in_float32=np.dtype(dtype) == np.float32,
            float32_gram=(storage or storage_of(n_features, dtype)) == "float32",
        )

    def add(self, Z: NDArray[Any], Y: Array, weights: Array | None) -> None:
        """Add a block of rows without checks."""
        with one_blas_thread():
            self._accumulator.add(Z, np.ascontiguousarray(Y), weights, blas=BLAS)

    def finish(self) -> LeastSquares:
        """The statistics of all rows; the builder must not be used afterwards."""
        with one_blas_thread():
            return LeastSquares._of(self._accumulator.finish(blas=BLAS))


def features(fitted: FittedMap, X: Any, memory: NDArray[Any] | None = None) -> NDArray[Any]:
    """The features of rows, written to ``memory`` if it is large enough."""
    rows = fitted.rows(X)
    return written(fitted, rows, fitted.operator(rows), memory)


def written(
    fitted: FittedMap, rows: Any, operator: Operator, memory: NDArray[Any] | None = None
) -> NDArray[Any]:
    """The features of checked rows by an operator, written to ``memory`` if it is large enough."""
    # Allocating new pages takes about as long as computing the features.
    n_rows = rows.shape[0]
    if memory is None or memory.shape[0] < n_rows or memory.dtype != operator.dtype:
        memory = np.empty((n_rows, operator.n_features), dtype=operator.dtype)
    Z = memory[:n_rows]
    if not operator.write(rows, Z):
        raise ValueError(fitted.overflow(rows))
    return Z


def batch(
    fitted: FittedMap,
    X: Any,
    targets: NDArray[Any],
    coding: TargetCoding,
    weights: Array | None,
    *,
    with_keys: bool,
) -> Batch:
    """The features of a block of rows and what belongs to them.

    Parameters
    ----------
    fitted : FittedMap
        The map.
    X : table of rows
        Rows.
    targets : ndarray of shape (n_rows, ...)
        Encoded targets.
    coding : TargetCoding
        Converts targets to numbers.
    weights : ndarray of shape (n_rows,) or None
        Weights of the rows.
    with_keys : bool
        Whether keys for a `RowSample` are needed.
    """
    rows = fitted.rows(X)
    return _batch_of(fitted, rows, targets, coding, weights, with_keys=with_keys)


def _batch_of(
    fitted: FittedMap,
    rows: Any,
    targets: NDArray[Any],
    coding: TargetCoding,
    weights: Array | None,
    *,
    with_keys: bool,
    memory: NDArray[Any] | None = None,
) -> Batch:
    """What `batch` returns for checked rows; features are written to ``memory`` if they fit."""
    Z = written(fitted, rows, fitted.operator(rows), memory)
    keys = None
    if with_keys:
        keys = row_keys(rows if can_be_hashed(rows) else Z, coding.target_numbers(targets))
    return Batch(Z, coding.columns(targets), weights, keys)


class CheckedRows:
    """Blocks of rows, checked and converted by a map when they are asked for, in their order.

    Parameters
    ----------
    fitted : FittedMap
        The map.
    X : table of rows
        Rows.
    size : int
        The number of rows in a block.
    """

    def __init__(self, fitted: FittedMap, X: Any, size: int) -> None:
        self._fitted, self._X = fitted, X
        self._size, self._start = size, 0
        if not isinstance(X, np.ndarray) and not sp.issparse(X):
            # Each column of a table is converted by itself, so several blocks are at once.
            self._size *= max(1, CONVERTED_NUMBERS // (X.shape[1] * size))
        self._rows: Any = None

    def __call__(self, block: slice) -> Any:
        """The rows of a block."""
        if self._rows is None or block.stop > self._start + self._rows.shape[0]:
            self._start = block.start
            self._rows = self._fitted.rows(
                take(self._X, slice(block.start, block.start + self._size))
            )
        return take(self._rows, slice(block.start - self._start, block.stop - self._start))


def accumulate(
    fitted: FittedMap,
    X: Any,
    targets: NDArray[Any],
    coding: TargetCoding,
    weights: Array | None,
    *,
    n_sampled: int,
    title: str | None = None,
) -> tuple[LeastSquares, RowSample | None]:
    """New statistics of the features of rows and of their targets, and a sample of the rows.

    Parameters
    ----------
    fitted, X, targets, coding, weights
        As for `batch`.
    n_sampled : int
        The size of the sample; there is none for zero.
    title : str, optional
        If given, progress is shown under this title.
    """
    n_rows, n_features = X.shape[0], fitted.n_features_out_
    check_learning_memory(n_features, np.float32, n_rows=n_rows, n_sampled=n_sampled)
    size = min(max(LEARNED_NUMBERS // n_features, LEAST_ROWS), MOST_ROWS)
    blocks = slices(n_rows, size)
    if title is not None:
        blocks = with_progress(blocks, n_rows, title)
    builder, memory, checked = None, None, CheckedRows(fitted, X, size)
    sampler: SampleBuilder[RowSample] = SampleBuilder(n_sampled)
    for rows in blocks:
        block = _batch_of(
            fitted,
            checked(rows),
            targets[rows],
            coding,
            None if weights is None else weights[rows],
            with_keys=n_sampled > 0,
            memory=memory,
        )
        memory = block.Z if memory is None else memory
        if builder is None:
            dtype = block.Z.dtype  # float64 takes more memory
            check_learning_memory(n_features, dtype, n_rows=n_rows, n_sampled=n_sampled)
            builder = StatisticsBuilder(n_features, block.Y.shape[1], n_rows, block.Z.dtype)
        builder.add(block.Z, block.Y, block.weights)
        if block.keys is not None:
            Z, Y, units = block.Z, block.Y, block.weights
            sampler.add(RowSample.of(n_sampled, block.keys, Z, Y, units, sampler.last_key))
    assert builder is not None
    return builder.finish(), sampler.finish() if n_sampled > 0 else None
