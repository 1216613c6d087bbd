"""A fitted map consists of a specification and of operators that are drawn from it.

The specification determines the features: sizes, options, the seed, the resolved kernel and
everything else that was chosen from data. Equality, model files, pickles and merging depend on it
alone. The operator is drawn from it for a precision, always with the same result, and computes
features of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from kitchenette.files.budget import Budget
from kitchenette.files.fields import Count, Interval, Options, field_values
from kitchenette.sketching.operators import Operator
from kitchenette.sketching.random import LARGEST_SEED, Stream

PROBES = 8  # the number of rows that a fingerprint is computed from


class Cost(NamedTuple):
    """Upper bounds of the memory and the work that drawing an operator takes."""

    n_bytes: float
    n_operations: float  # of a few nanoseconds each


@dataclass(frozen=True, kw_only=True, eq=False)
class FrozenValue(ABC):
    """A frozen dataclass from which operators are drawn; compared, pickled and stored by fields."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if isinstance(value := getattr(self, field.name), np.ndarray):
                value.flags.writeable = False

    @abstractmethod
    def draw(self, dtype: np.dtype[Any]) -> Operator:
        """The operator for rows of this precision."""

    def operator(self, dtype: DTypeLike) -> Operator:
        """The operator for rows of this precision, drawn once and then cached."""
        dtype = np.dtype(dtype)
        operator = self._operators.get(dtype)
        if operator is None:
            operator = self._operators[dtype] = self.draw(dtype)
        return operator

    @cached_property
    def _operators(self) -> dict[np.dtype[Any], Operator]:
        return {}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            _same(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )

    @abstractmethod
    def __hash__(self) -> int:
        """Equal for equal values."""

    def __getstate__(self) -> dict[str, Any]:
        return field_values(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def check(self) -> None:
        """Refuse values that do not belong together; `checked` calls it after those of fields."""
        return

    @abstractmethod
    def cost(self) -> Cost:
        """Upper bounds of what `draw` takes, to refuse untrusted files before drawing."""

    @abstractmethod
    def spend(self, budget: Budget) -> None:
        """Ask the budget of a file before anything is drawn."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Specification(FrozenValue):
    """The values that determine the features of a map."""

    n_columns: Count  # the number of columns of the data
    n_components: Count  # the number of features
    seed: Annotated[int, Interval(0, LARGEST_SEED)]  # the seed of all random numbers
    # "float32", "float64": the precision in which random numbers were drawn
    precision: Annotated[str, Options("float32", "float64")] = "float64"

    def probe_scale(self) -> Any:
        """Factors, one or one per column, that bring unit vectors to the typical size of rows."""
        return 1.0

    def fingerprint(self) -> list[float]:
        """For each of a few fixed rows, its features summed with random signs, over their norm.

        Equal maps have equal fingerprints up to rounding.
        """
        probes = Stream(0, "probe rows").normals(PROBES, self.n_columns)
        probes *= self.probe_scale() / np.linalg.norm(probes, axis=1, keepdims=True)
        Z = np.empty((PROBES, self.n_components))
        self.operator(np.float64).write(probes, Z)
        signs = Stream(0, "probe signs").signs(*Z.shape)
        return ((Z * signs).sum(axis=1) / np.linalg.norm(Z, axis=1)).tolist()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.n_columns, self.n_components, self.seed))

    def spend(self, budget: Budget) -> None:
        n_bytes, n_operations = self.cost()
        probes = PROBES * (self.n_columns + self.n_components)
        what = f"drawing {self.n_components} components for {self.n_columns} columns"
        budget.spend(n_bytes + 32 * probes, n_operations + 5 * probes, what)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    missing = isinstance(a, float) and a != a
    return type(a) is type(b) and bool(a == b or (missing and b != b))
