"""A uniform sample of the distinct rows, the same in whatever order and batches they came.

Every row has a key, a hash value of its columns and targets. The sample has the rows with the
smallest keys (a bottom-k sample). Equal rows have equal keys and count as one row, whose weights
are added. So the samples of two sets of rows can be merged into the sample of both.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from kitchenette import _core
from kitchenette.files.registry import Budget, checked_state, storable
from kitchenette.parameters import check_count
from kitchenette.sketching.rows import native_rows

Array = NDArray[np.float64]
Keys = NDArray[np.uint64]
LARGEST_KEY = 2**64 - 1
_ODD = np.uint64(0x9E3779B97F4A7C15)


def row_keys(rows: Any, targets: NDArray[Any]) -> Keys:
    """Keys of rows and their targets.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_rows, n_columns)
        float32 or float64; both precisions of the same numbers, and dense and sparse rows, have
        the same keys.
    targets : ndarray of shape (n_rows, n_numbers)
        What is predicted, as numbers.
    """
    keys, of_targets = np.empty((2, rows.shape[0]), dtype=np.uint64)
    _core.row_keys(native_rows(rows), keys)
    _core.row_keys(np.ascontiguousarray(targets, dtype=np.float64), of_targets)
    return keys + _ODD * of_targets


def can_be_hashed(rows: Any) -> bool:
    """Whether `row_keys` takes these rows; a data frame, for example, it does not."""
    return (isinstance(rows, np.ndarray) or sp.issparse(rows)) and rows.dtype in (
        np.float32,
        np.float64,
    )


@storable
@dataclass(frozen=True, eq=False)
class RowSample:
    """The distinct rows with the smallest keys; immutable.

    Attributes
    ----------
    size : int
        The largest number of rows.
    last_key : int
        All rows with keys up to this one are in the sample; 2^64 - 1 if none is missing.
    keys : ndarray of shape (n_sampled,)
        The keys of the rows, increasing.
    features : ndarray of shape (n_sampled, n_features)
        The features of the rows.
    targets : ndarray of shape (n_sampled, n_targets)
        The target columns.
    weights : ndarray of shape (n_sampled,)
        The sum of the weights of all equal rows.
    copies : ndarray of shape (n_sampled,)
        The number of equal rows.
    """

    size: int
    last_key: int
    keys: Keys
    features: NDArray[Any]
    targets: Array
    weights: Array
    copies: NDArray[np.int64]

    @classmethod
    def empty(cls, size: int, n_features: int, n_targets: int, dtype: DTypeLike) -> Self:
        """The sample of no rows."""
        return cls(
            size,
            LARGEST_KEY,
            np.empty(0, np.uint64),
            np.empty((0, n_features), dtype),
            np.empty((0, n_targets)),
            np.empty(0),
            np.empty(0, np.int64),
        )

    @classmethod
    def of(
        cls,
        size: int,
        keys: Keys,
        features: NDArray[Any],
        targets: Array,
        weights: Array | None,
        last_key: int = LARGEST_KEY,
    ) -> Self:
        """The sample of those of these rows whose keys are at most ``last_key``."""
        unit = np.ones(keys.size) if weights is None else weights
        return _distinct(
            cls(size, last_key, keys, features, targets, unit, np.ones(keys.size, np.int64))
        )

    @property
    def n_sampled(self) -> int:
        """The number of rows in the sample."""
        return self.keys.size

    @property
    def is_complete(self) -> bool:
        """Whether all rows are in the sample."""
        return self.last_key == LARGEST_KEY

    def n_distinct(self, n_rows: int) -> float:
        """The number of distinct rows among all rows, estimated unless the sample is complete."""
        if self.n_sampled == 0:
            return float(n_rows)
        return max(1.0, n_rows * self.n_sampled / float(self.copies.sum()))

    def combined(self, *others: Self) -> Self:
        """The sample of the rows of all these samples."""
        parts = [self, *others]
        last_key = min(part.last_key for part in parts)
        parts = [part.up_to(last_key) for part in parts]
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _ROWS
        }
        return _distinct(replace(self, last_key=last_key, **arrays))

    def without(self, keys: Keys, weights: Array | None) -> Self:
        """The sample after these rows were removed; those that are not in it are ignored."""
        unit = np.ones(keys.size) if weights is None else weights
        here = np.searchsorted(self.keys, keys)
        here[here == self.n_sampled] = 0
        found = self.keys[here] == keys if self.n_sampled else np.zeros(keys.size, bool)
        new_weights, copies = self.weights.copy(), self.copies.copy()
        np.subtract.at(new_weights, here[found], unit[found])
        np.subtract.at(copies, here[found], 1)
        changed = replace(self, weights=np.maximum(new_weights, 0), copies=copies)
        return changed.rows(copies > 0)

    def up_to(self, last_key: int) -> Self:
        """The rows with keys up to a bound."""
        if last_key >= self.last_key:
            return self
        count = int(np.searchsorted(self.keys, np.uint64(last_key), side="right"))
        return replace(self.rows(slice(0, count)), last_key=last_key)

    def rows(self, which: Any) -> Self:
        """Some of the rows."""
        return replace(self, **{name: getattr(self, name)[which] for name in _ROWS})

    def reweighted(self, factors: Array) -> Self:
        """The same rows with their weights multiplied by factors."""
        return replace(self, weights=factors * self.weights)

    def with_targets(self, columns: NDArray[np.intp], n_targets: int) -> Self:
        """The same rows with more targets: the present ones at ``columns``, the others zero."""
        targets = np.zeros((self.n_sampled, n_targets))
        targets[:, columns] = self.targets
        return replace(self, targets=targets)

    def to_file(self) -> dict[str, Any]:
        """All values, for a model file."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**state, "last_key": np.array([self.last_key], np.uint64)}

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A sample from the untrusted values of a model file."""
        types: dict[str, Any] = {"size": int} | dict.fromkeys(("last_key", *_ROWS), np.ndarray)
        state = checked_state(state, types)
        last_key = state.pop("last_key")
        if last_key.shape != (1,) or last_key.dtype != np.uint64:
            raise ValueError("last_key must be one number of type uint64.")
        made = cls(last_key=int(last_key[0]), **state)
        check_count("size", made.size, 1)
        dtypes: dict[str, Any] = {"keys": np.uint64, "copies": np.int64}
        dtypes |= dict.fromkeys(("targets", "weights"), np.float64)
        for name in _ROWS:
            array = getattr(made, name)
            axes = 2 if name in ("features", "targets") else 1
            if array.ndim != axes or array.shape[0] != made.n_sampled:
                raise ValueError(f"{name} must have {axes} axes and a row for every key.")
            if array.dtype != dtypes.get(name, array.dtype):
                raise ValueError(f"{name} must be of type {np.dtype(dtypes[name]).name}.")
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite.")
        if made.features.dtype not in (np.float32, np.float64):
            raise ValueError("features must be of type float32 or float64.")
        if made.n_sampled > made.size or np.any(made.keys[1:] <= made.keys[:-1]):
            raise ValueError("keys must increase, and must not be more than the size.")
        if made.n_sampled and (made.weights.min() < 0 or made.copies.min() < 1):
            raise ValueError("weights must not be negative, and copies must be positive.")
        return made


_ROWS = ("keys", "features", "targets", "weights", "copies")


def _distinct(sample: Any) -> Any:
    """Rows in any order, with repetitions and with keys above the last one, as a sample.

    The features, which are most of the memory, are copied only for the rows of the sample.
    """
    here = np.flatnonzero(sample.keys <= np.uint64(sample.last_key))
    keys, first, inverse = np.unique(sample.keys[here], return_index=True, return_inverse=True)
    first = here[first]
    weights = np.bincount(inverse, sample.weights[here], minlength=keys.size)
    copies = np.bincount(inverse, sample.copies[here], minlength=keys.size).astype(np.int64)
    last_key = sample.last_key
    if keys.size > sample.size:
        last_key = int(keys[sample.size - 1])
        keys, first = keys[: sample.size], first[: sample.size]
    return replace(
        sample,
        last_key=last_key,
        keys=keys,
        features=sample.features[first],
        targets=sample.targets[first],
        weights=weights[: keys.size],
        copies=copies[: keys.size],
    )


class SampleBuilder:
    """Collects the sample of many blocks of rows.

    Parameters
    ----------
    size : int
        The size of the sample; at 0 no rows are kept.
    """

    def __init__(self, size: int):
        self._size = size
        self._last_key = LARGEST_KEY
        self._parts: list[RowSample] = []
        self._waiting = 0

    def add(self, keys: Keys, Z: NDArray[Any], Y: Array, weights: Array | None) -> None:
        """Add a block of rows, of which only those with small keys are copied."""
        part = RowSample.of(self._size, keys, Z, Y, weights, self._last_key)
        self._last_key = part.last_key
        self._parts.append(part)
        self._waiting += part.n_sampled
        # Features may be large, so that rows are not left waiting for long.
        if 4 * self._waiting > 5 * self._size:
            self.finish()

    def finish(self) -> RowSample:
        """The sample of all blocks so far."""
        sample = self._parts[0].combined(*self._parts[1:])
        self._parts, self._waiting = [sample], 0
        self._last_key = sample.last_key
        return sample
