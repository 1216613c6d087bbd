"""Operators, which compute features of checked rows, and linear functions of these features.

An operator is made once from random numbers and then applied to any rows. It checks its parameters
when it is made; calls only check what memory safety needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from kitchenette import _core
from kitchenette.sketching.rows import blocks_of_rows, native_rows

WIDE_BYTES = 1 << 24  # the size of a block of features, about that of a shared cache


class Operator(ABC):
    """Computes features of checked rows; immutable, of one precision, and thread-safe."""

    n_columns: int
    n_features: int
    dtype: np.dtype[Any]  # the precision of rows and features, float32 or float64

    @abstractmethod
    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        """Write the features of dense or CSR rows to ``out`` (n_rows, n_features).

        Rows have the precision of the operator; rows of ``out`` are contiguous. The result is False
        if a number is not finite; ``out`` is then invalid.
        """

    def linear(self, weights: ArrayLike, intercept: ArrayLike) -> Linear:
        """The function features @ weights + intercept."""
        return BlockwiseLinear(self, weights, intercept)

    def add_transposed(self, rows: Any, factors: NDArray[Any], out: NDArray[np.float64]) -> bool:
        """Add features' factors to ``out``; False if a number is not finite.

        Rows are as for `write`, factors (n_rows, n_targets), and ``out`` (n_features, n_targets),
        which is invalid if the result is False.
        """
        R = np.asarray(factors, dtype=self.dtype)
        for some, Z in _feature_blocks(self, rows):
            if Z is None:
                return False
            out += Z.T @ R[some]
        return bool(np.isfinite(out).all())

    def gradient(
        self,
        rows: Any,
        weights: NDArray[Any],
        intercept: NDArray[np.float64],
        targets: NDArray[Any],
        sample_weight: NDArray[np.float64] | None,
        loss: Any,
        outputs: NDArray[np.float64],
        out: NDArray[np.float64],
        sums: NDArray[np.float64],
    ) -> float:
        """Add the gradient of a sum of losses of features @ weights + intercept; return the sum.

        The features of every row are computed once. Features and weights are multiplied in the
        precision of the operator over short stretches, whose sums are added in double precision.

        Targets are float64 (n_rows, n_targets), or, for losses of classes, int32 labels (n_rows,);
        with a single output the classes are 0 and 1. ``sample_weight`` None is one for all; a row
        of weight zero adds nothing whatever its target. The loss is a `kitchenette._core.Loss`, or
        an object with its method ``evaluate``. The outputs of all rows are written to ``outputs``
        (n_rows, n_targets); derivatives with respect to weights and intercept are added to ``out``
        (n_features, n_targets) and ``sums`` (n_targets,). The sum of losses is NaN if a number is
        not finite, and then all results are invalid.
        """
        total, W = 0.0, np.asarray(weights, dtype=self.dtype)
        for some, Z in _feature_blocks(self, rows):
            if Z is None:
                return np.nan
            outputs[some] = Z @ W
            outputs[some] += intercept
            factors = np.empty_like(outputs[some])
            weight = None if sample_weight is None else sample_weight[some]
            total += loss.evaluate(outputs[some], targets[some], weight, factors, sums)
            out += Z.T @ factors.astype(self.dtype)
        return total if np.isfinite(out).all() else np.nan

    def collapse(self, weights: NDArray[Any]) -> tuple[Operator, NDArray[Any]]:
        """A cheaper operator and weights for it that give the same linear function."""
        return self, weights


class Linear(ABC):
    """A linear function of an operator's features; thread-safe."""

    n_targets: int

    @abstractmethod
    def write(self, rows: Any, out: NDArray[np.float64]) -> bool:
        """Write the values, shape (n_rows, n_targets); False if a number is not finite."""


# ---------------------------------------------------------------- native code


class NativeOperator(Operator):
    """An operator of the native core."""

    def __init__(self, native: _core.Operator32 | _core.Operator64):
        self.native = native
        self.n_columns = native.n_columns
        self.n_features = native.n_features
        in_float32 = isinstance(native, _core.Operator32)
        self.dtype = np.dtype(np.float32 if in_float32 else np.float64)

    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        return self.native.write(native_rows(rows), out)

    def linear(self, weights: ArrayLike, intercept: ArrayLike) -> Linear:
        return NativeLinear(self, weights, intercept)

    def add_transposed(self, rows: Any, factors: NDArray[Any], out: NDArray[np.float64]) -> bool:
        numbers = np.ascontiguousarray(factors, dtype=self.dtype)
        return _core.transposed(self.native, native_rows(rows), numbers, out)

    def gradient(self, rows: Any, weights: NDArray[Any], *others: Any) -> float:
        if not isinstance(others[3], _core.Loss):  # a loss in Python
            return super().gradient(rows, weights, *others)
        numbers = _native_weights(weights, self.dtype)
        return _core.gradient(self.native, native_rows(rows), numbers, *others)


class NativeLinear(Linear):
    """A linear function in native code, which multiplies features while they are in cache."""

    def __init__(self, operator: NativeOperator, weights: ArrayLike, intercept: ArrayLike):
        self.native = _core.linear(
            operator.native,
            _native_weights(weights, operator.dtype),
            np.ascontiguousarray(intercept, dtype=np.float64),
        )
        self.n_targets = self.native.n_targets

    def write(self, rows: Any, out: NDArray[np.float64]) -> bool:
        return self.native.write(native_rows(rows), out)


def _native_weights(weights: ArrayLike, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Weights of the given precision as they are, and others in double precision."""
    numbers = np.asarray(weights)
    if numbers.dtype != dtype:
        numbers = numbers.astype(np.float64, copy=False)
    return np.ascontiguousarray(numbers)


def affine(n_columns: int, constant: float, slope: float, dtype: DTypeLike) -> NativeOperator:
    """A constant column and ``slope`` times the row; each is left out if its factor is zero."""
    make = _core.affine32 if np.dtype(dtype) == np.float32 else _core.affine64
    return NativeOperator(make(n_columns=n_columns, constant=constant, slope=slope))


# ---------------------------------------------------------------- operators made of others


def chain(first: Operator, second: Operator, matrix: NDArray[Any] | None = None) -> Operator:
    """``second`` applied to the features of ``first``.

    If ``second`` multiplies by a matrix, pass it as ``matrix``, so that `Operator.collapse` can
    multiply it into the weights.
    """
    if isinstance(first, NativeOperator) and isinstance(second, NativeOperator):
        return NativeChain(first, second, matrix)
    return Chain(first, second, matrix)


class Chain(Operator):
    """Two operators, of which at least one is not native, applied to blocks of rows."""

    def __init__(self, first: Operator, second: Operator, matrix: NDArray[Any] | None = None):
        if first.n_features != second.n_columns or first.dtype != second.dtype:
            raise ValueError(
                f"An operator of {second.n_columns} columns in {second.dtype} cannot follow one of "
                f"{first.n_features} features in {first.dtype}."
            )
        self.first, self.second, self.matrix = first, second, matrix
        self.n_columns, self.n_features = first.n_columns, second.n_features
        self.dtype = first.dtype

    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        fine = True
        for some, Z in _feature_blocks(self.first, rows):
            if Z is None:
                return False
            fine &= self.second.write(Z, out[some])
        return fine

    def collapse(self, weights: NDArray[Any]) -> tuple[Operator, NDArray[Any]]:
        return _collapsed(self, self.first, self.matrix, weights)


class NativeChain(NativeOperator):
    """Two native operators; the features of the first stay in cache."""

    def __init__(
        self, first: NativeOperator, second: NativeOperator, matrix: NDArray[Any] | None = None
    ):
        super().__init__(_core.chain(first.native, second.native))  # type: ignore[arg-type]
        self.first, self.second, self.matrix = first, second, matrix

    def collapse(self, weights: NDArray[Any]) -> tuple[Operator, NDArray[Any]]:
        return _collapsed(self, self.first, self.matrix, weights)


def _collapsed(
    whole: Operator, first: Operator, matrix: NDArray[Any] | None, weights: NDArray[Any]
) -> tuple[Operator, NDArray[Any]]:
    if matrix is None:
        return whole, weights
    return first.collapse(matrix @ weights)


class BlockwiseLinear(Linear):
    """A linear function of the features of any operator, computed for blocks of rows."""

    def __init__(self, operator: Operator, weights: ArrayLike, intercept: ArrayLike):
        self._operator = operator
        self._weights = np.asfortranarray(weights, dtype=operator.dtype)
        self._intercept = np.asarray(intercept, dtype=np.float64)
        if self._weights.shape != (operator.n_features, self._intercept.size):
            raise ValueError("weights must have a row per feature and a column per target.")
        self.n_targets = self._intercept.size

    def write(self, rows: Any, out: NDArray[np.float64]) -> bool:
        for some, Z in _feature_blocks(self._operator, rows):
            if Z is None:
                return False
            out[some] = Z @ self._weights
        out += self._intercept
        return bool(np.isfinite(out).all())


def _feature_blocks(operator: Operator, rows: Any) -> Any:
    """Slices of rows with their features, or with None if a number is not finite.

    Each block of features overwrites the previous one.
    """
    count = max(1, WIDE_BYTES // (operator.dtype.itemsize * operator.n_features))
    wide = np.empty((min(count, rows.shape[0]), operator.n_features), dtype=operator.dtype)
    for some, block in blocks_of_rows(rows, count):
        Z = wide[: block.shape[0]]
        yield some, Z if operator.write(block, Z) else None
