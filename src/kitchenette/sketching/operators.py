"""Operators: what turns rows into features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Operator(ABC):
    """Writes features of trusted rows; immutable, of one precision, safe to share by threads."""

    n_columns: int
    n_features: int
    dtype: np.dtype[Any]

    @abstractmethod
    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        """Features of rows of this precision; False if a number is not finite."""

    def linear(self, weights: NDArray[Any], intercept: NDArray[Any]) -> Any:
        """TEMPORARY."""
        outer = self

        class Linear:
            def write(self, rows: Any, out: NDArray[Any]) -> bool:
                Z = np.empty((rows.shape[0], outer.n_features), outer.dtype)
                fine = outer.write(rows, Z)
                out[:] = Z @ weights.astype(outer.dtype) + intercept
                return bool(fine and np.isfinite(out).all())

        return Linear()

    def collapse(self, weights: NDArray[Any]) -> tuple[Operator, NDArray[Any]]:
        """An operator and weights of its features that predict the same, at less cost."""
        return self, weights


class CallOperator(Operator):
    """TEMPORARY: calls a function until native operators are there."""

    def __init__(self, n_columns: int, n_features: int, dtype: Any, function: Callable[..., bool]):
        self.n_columns, self.n_features, self.dtype = n_columns, n_features, np.dtype(dtype)
        self._function = function

    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        return bool(self._function(rows, out))


class Chain(Operator):
    """TEMPORARY."""

    def __init__(self, first: Operator, second: Operator, matrix: Any = None):
        self.n_columns, self.n_features, self.dtype = first.n_columns, second.n_features, first.dtype
        self._first, self._second, self._matrix = first, second, matrix

    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        width, fine = self._first.n_features, True
        count = max(8, (1 << 24) // (self.dtype.itemsize * width))
        wide = np.empty((min(count, rows.shape[0]), width), dtype=self.dtype)
        for start in range(0, rows.shape[0], count):
            block = rows[start : start + count]
            Z = wide[: block.shape[0]]
            fine &= self._first.write(block, Z)
            fine &= self._second.write(Z, out[start : start + count])
        return fine

    def collapse(self, weights: NDArray[Any]) -> tuple[Operator, NDArray[Any]]:
        if self._matrix is None:
            return self, weights
        return self._first.collapse(self._matrix @ weights)


def chain(first: Operator, second: Operator, matrix: Any = None) -> Operator:
    """TEMPORARY."""
    return Chain(first, second, matrix)
