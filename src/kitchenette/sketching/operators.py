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
