"""Operators that combine other operators, block by block of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from sklearn.utils.extmath import row_norms

from kitchenette import _core
from kitchenette.sketching.operators import NativeOperator, Operator
from kitchenette.sketching.rows import BLOCK_BYTES, blocks_of_rows


class Concatenation(Operator):
    """The features of several operators, side by side."""

    def __init__(self, operators: Sequence[Operator], n_columns: int):
        self.n_columns, self.dtype = n_columns, operators[0].dtype
        self.n_features = sum(operator.n_features for operator in operators)
        self._operators = tuple(operators)

    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        fine, first = True, 0
        for operator in self._operators:
            last = first + operator.n_features
            fine &= operator.write(rows, out[:, first:last])
            first = last
        return fine


def concatenate(operators: Sequence[Operator], n_columns: int) -> Operator:
    """The features of several operators, side by side; in native code if all of them are."""
    if len(operators) == 1:
        return operators[0]
    if all(isinstance(operator, NativeOperator) for operator in operators):
        natives: Any = [operator.native for operator in operators]  # type: ignore[attr-defined]
        return NativeOperator(_core.concatenate(natives))
    return Concatenation(operators, n_columns)


class Constants(Operator):
    """Columns of the same number."""

    def __init__(self, n_columns: int, n_features: int, constant: float, dtype: DTypeLike):
        self.n_columns, self.n_features, self.dtype = n_columns, n_features, np.dtype(dtype)
        self._constant = constant

    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        out[:] = self._constant
        return bool(np.isfinite(out).all())


class ColumnProducts(Operator):
    """Products of columns of several operators, times ``weights``.

    A feature of degree n is a product of columns of the first n operators. The k-th feature that
    uses an operator takes its k-th column, times the gain of that operator.
    """

    def __init__(
        self,
        weights: NDArray[Any],
        degrees: NDArray[np.int32],
        operators: Sequence[Operator],
        gains: Sequence[float],
        n_columns: int,
    ):
        self.n_columns, self.n_features, self.dtype = n_columns, weights.size, weights.dtype
        users = [np.flatnonzero(degrees > j) for j in range(int(degrees.max(initial=0)))]
        if [of.size for of in users] != [operator.n_features for operator in operators]:
            raise ValueError("there must be an inner map of the right size for each factor.")
        self._weights = weights
        self._factors = tuple(zip(users, operators, gains, strict=True))

    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        fine = True
        count = max(1, BLOCK_BYTES // (2 * self.dtype.itemsize * self.n_features))
        for part, block in blocks_of_rows(rows, count):
            target = out[part]
            target[:] = self._weights
            for users, operator, gain in self._factors:
                Z = np.empty((target.shape[0], users.size), dtype=self.dtype)
                fine &= operator.write(block, Z)
                if gain != 1:
                    Z *= self.dtype.type(gain)
                if users.size == users[-1] + 1:
                    target[:, : users.size] *= Z
                else:
                    target[:, users] *= Z
            fine &= bool(np.isfinite(target).all())
        return fine


class GaussianRowFactor(Operator):
    """The features of an operator, times exp(-|x|^2 / 2) of the row with scaled columns."""

    def __init__(self, operator: Operator, column_scales: NDArray[np.float64]):
        self.n_columns, self.dtype = column_scales.size, operator.dtype
        self.n_features = operator.n_features
        self._operator, self._column_scales = operator, column_scales

    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        fine = self._operator.write(rows, out)
        factors = np.exp(-0.5 * squared_norms(rows, self._column_scales))
        out *= factors.astype(self.dtype)[:, None]
        return fine


def squared_norms(rows: Any, column_scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """|x|^2 of rows with scaled columns, bitwise equal for dense and sparse rows."""
    norms = np.empty(rows.shape[0])
    for part, block in blocks_of_rows(rows, max(1, BLOCK_BYTES // (8 * rows.shape[1]))):
        n = block.shape[0]
        if sp.issparse(block):
            owners = np.repeat(np.arange(n), np.diff(block.indptr))
            scaled = block.data * column_scales[block.indices]
        else:
            owners = np.repeat(np.arange(n), block.shape[1])
            scaled = (block * column_scales).ravel()
        # bincount adds sequentially, so zeros do not change the rounding.
        norms[part] = np.bincount(owners, scaled**2, n)
    return norms


def largest_squared_norm(rows: Any) -> float:
    """The largest |x|^2, bitwise equal for dense and sparse rows of any memory layout.

    Only rows whose rounded norm may be the largest are summed in a fixed order.
    """
    norms = row_norms(rows, squared=True)
    largest = norms.max(initial=0.0)
    if not 0 < largest < np.inf:
        return float(largest)
    slack = 2 * rows.shape[1] * np.finfo(norms.dtype).eps
    near = rows[np.flatnonzero(norms >= (1 - slack) * largest)]
    return float(squared_norms(near, np.ones(rows.shape[1])).max())
