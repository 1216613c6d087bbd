"""Preparation of columns before a map, as frozen values that are drawn, compared and stored.

A preparation turns rows of numbers into other rows of numbers: scaled, ranked, filled, expanded
into indicator columns. It holds numbers only. `kitchenette.maps.translation` makes it from fitted
transformers of scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from functools import reduce
from math import inf
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from kitchenette.files.budget import Budget
from kitchenette.files.fields import Count, Interval, Options, Shape, checked
from kitchenette.files.registry import storable
from kitchenette.sketching.columns import (
    Item,
    Kind,
    mapped_columns,
    scaled_columns,
    selected_columns,
    unit_rows,
)
from kitchenette.sketching.combinations import concatenate
from kitchenette.sketching.dense import PANEL, matrix_product
from kitchenette.sketching.operators import Operator, chain
from kitchenette.sketching.specification import Cost, FrozenValue

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]
ColumnIndices = Annotated[Indices, Shape(None), Interval(0, "n_columns", closed="left")]


@dataclass(frozen=True, kw_only=True, eq=False)
class Preparation(FrozenValue):
    """The values that determine how columns are prepared."""

    n_columns: Count  # the number of columns of the data

    @property
    def n_outputs(self) -> int:
        """The number of prepared columns, as many as there are unless a class says otherwise."""
        return self.n_columns

    @property
    def keeps_zeros(self) -> bool:
        """Whether zeros stay zeros, so that `sparse_rows` can be used."""
        return False

    def sparse_rows(self, rows: Any) -> Any:
        """The prepared rows of a CSR matrix as another one, with the bits of `operator`."""
        raise ValueError(f"{type(self).__name__} takes dense rows only.")

    def prepared(self, rows: Any) -> Any:
        """The prepared rows, as a CSR matrix where rows are one and zeros stay zeros."""
        if sp.issparse(rows) and self.keeps_zeros:
            return self.sparse_rows(rows)
        out = np.empty((rows.shape[0], self.n_outputs), dtype=rows.dtype)
        self.operator(rows.dtype).write(rows, out)
        return out

    def beyond(self) -> Preparation:
        """The same for rows beyond the data, which it does not bring near the data."""
        return self

    def reads(self) -> NDArray[np.bool_]:
        """Whether each column is used at all."""
        return np.ones(self.n_columns, dtype=bool)

    def owners(self) -> Indices:
        """The column that each prepared column is made from."""
        return np.arange(self.n_columns, dtype=np.int64)

    def indicators(self) -> NDArray[np.bool_]:
        """Whether each prepared column is one for a category of its column, and else zero."""
        return self.indicators_after(np.zeros(self.n_columns, dtype=bool))

    def indicators_after(self, given: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The `indicators`, where some columns are indicators already."""
        return given[self.owners()]

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.n_columns, self.n_outputs))

    def check(self) -> None:
        if self.n_outputs < 1:
            raise ValueError("there must be a prepared column.")

    def cost(self) -> Cost:
        size = self.drawn_bytes()
        return Cost(size, size)

    def spend(self, budget: Budget) -> None:
        budget.spend(*self.cost(), f"preparing {self.n_columns} columns")

    def drawn_bytes(self) -> float:
        """An upper bound of the memory of an operator."""
        return 100.0 * (self.n_columns + self.n_outputs)


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnAffine(Preparation):
    """(x - offset) * factor for every column, limited to [low, high]."""

    offset: Annotated[Numbers, Shape("n_columns")]  # (n_columns,): numbers for each column
    factor: Annotated[Numbers, Shape("n_columns")]
    low: Annotated[float, Interval(high="high")] = -inf  # the limits of all columns
    high: float = inf

    @classmethod
    def of(
        cls, offset: ArrayLike, factor: ArrayLike, *, low: float = -inf, high: float = inf
    ) -> Self:
        """The preparation with copies of these arrays."""
        offset, factor = np.array(offset, dtype=np.float64), np.array(factor, dtype=np.float64)
        ends = {"low": float(low), "high": float(high)}
        return checked(cls(n_columns=offset.size, offset=offset, factor=factor, **ends))

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        return scaled_columns(self.offset, self.factor, self.low, self.high, dtype)

    @property
    def keeps_zeros(self) -> bool:
        return not self.offset.any() and self.low <= 0 <= self.high

    def sparse_rows(self, rows: Any) -> Any:
        values = (rows.data.astype(np.float64) - 0.0) * self.factor[rows.indices]
        return with_data(rows, np.clip(values, self.low, self.high))


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class PiecewiseLinear(Preparation):
    """A piecewise linear function of every column, constant beyond its first and last knot.

    A function may jump at a knot, and then has a value of its own there.
    """

    # The knots of all columns, one column after the other; those of a column increase
    knots: Annotated[Numbers, Shape(None)]
    # The limit from below, the value, and the limit from above at every knot
    below: Annotated[Numbers, Shape("knots")]
    at: Annotated[Numbers, Shape("knots")]
    above: Annotated[Numbers, Shape("knots")]
    starts: Indices  # (n_columns + 1,): where the knots of each column begin, and the end
    # (n_columns,): the number of knots at each end of a column that are left out but `beyond` the
    # data
    outside: Annotated[Indices, Shape("n_columns"), Interval(0)]
    # Whether the functions are ranks between 0 and 1, to which the quantile function of the normal
    # distribution is applied. Ranks nearer than 1e-7 to 0 or 1 are moved there, and numbers nearer
    # than 1e-7 to the first or last knot have the rank 0 or 1, as in scikit-learn's
    # QuantileTransformer.
    normal: bool = False

    @classmethod
    def of(
        cls,
        knots: Several[ArrayLike],
        values: Several[ArrayLike],
        *,
        ends: tuple[float, float] | None = None,
        normal: bool = False,
        outside: ArrayLike = 0,
    ) -> Self:
        """The functions through these points; ``knots`` of each column are ascending.

        A function jumps at a repeated knot, where its value is the mean of the first and the last
        one; ``ends`` are the values at the first and the last knot, if they may be repeated. With
        ``normal``, the values are ranks that become quantiles of the normal distribution.
        ``outside`` is the number of knots at each end of a column that are for rows `beyond` the
        data.
        """
        parts = []
        for x, y in zip(knots, values, strict=True):
            x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
            unique, first = np.unique(x, return_index=True)
            last = np.append(first[1:], x.size) - 1
            at = (y[first] + y[last]) / 2
            if ends is not None:
                at[-1], at[0] = ends[1], ends[0]
            parts.append((unique, y[first], at, y[last]))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        starts = np.cumsum([0, *(part[0].size for part in parts)], dtype=np.int64)
        names = ("knots", "below", "at", "above")
        named = dict(zip(names, columns, strict=True))
        outer = np.broadcast_to(np.asarray(outside, dtype=np.int64), len(parts)).copy()
        return checked(
            cls(n_columns=len(parts), **named, starts=starts, outside=outer, normal=normal)
        )

    def beyond(self) -> Preparation:
        return replace(self, outside=np.zeros_like(self.outside))

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        table = np.stack([self.knots, self.below, self.at, self.above])
        kind = Kind.RANKS if self.normal else Kind.INTERPOLATE
        ends = zip(self.starts[:-1] + self.outside, self.starts[1:] - self.outside, strict=True)
        items = [
            Item(kind, j, table[:, first:last].ravel()) for j, (first, last) in enumerate(ends)
        ]
        return mapped_columns(self.n_columns, items, dtype)

    def check(self) -> None:
        super().check()
        check_starts(self.starts, self.n_columns, self.knots.size, least=1)
        if np.any(2 * self.outside >= np.diff(self.starts)):
            raise ValueError("outside must leave at least one knot of each column.")
        check_increasing("knots", self.knots, self.starts)


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class UnitRows(Preparation):
    """Rows divided by their norm, "l1", "l2" or "max"; rows of zeros stay."""

    norm: Annotated[str, Options("l1", "l2", "max")] = "l2"

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        return unit_rows(self.n_columns, self.norm, dtype)

    @property
    def keeps_zeros(self) -> bool:
        return True

    def sparse_rows(self, rows: Any) -> Any:
        n_rows, values = rows.shape[0], np.abs(rows.data.astype(np.float64))
        owners = np.repeat(np.arange(n_rows), np.diff(rows.indptr))
        if self.norm == "max":
            norms = np.zeros(n_rows)
            np.maximum.at(norms, owners, values)
        else:
            # bincount adds one number after the other, as the native code does.
            powers = values if self.norm == "l1" else values * values
            norms = np.bincount(owners, weights=powers, minlength=n_rows)
            norms = np.sqrt(norms) if self.norm == "l2" else norms
        norms[norms == 0] = 1
        return with_data(rows, rows.data.astype(np.float64) / norms[owners])


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class LinearColumns(Preparation):
    """Rows times a matrix, so that prepared columns are linear combinations of the columns."""

    # (n_columns, n_outputs): the combinations, one in each column of the matrix
    matrix: Annotated[Numbers, Shape("n_columns", None)]

    @classmethod
    def of(cls, matrix: ArrayLike) -> Self:
        """The preparation with a copy of this matrix."""
        matrix = np.array(matrix, dtype=np.float64, order="C")
        return checked(cls(n_columns=matrix.shape[0], matrix=matrix))

    @property
    def n_outputs(self) -> int:
        return int(self.matrix.shape[1])

    def owners(self) -> Indices:
        """The column with the largest factor, among those that a prepared column is made from."""
        return np.abs(self.matrix).argmax(axis=0)

    def indicators_after(self, given: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.zeros(self.n_outputs, dtype=bool)

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        return matrix_product(self.matrix, dtype)

    def drawn_bytes(self) -> float:
        # The columns of the matrix are stored in panels, of which the last one may be mostly empty.
        return 8.0 * self.n_columns * (self.n_outputs + PANEL)


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class Columns(Preparation):
    """Several preparations, each of some columns, side by side."""

    parts: tuple[Preparation, ...]  # the preparations
    columns: ColumnIndices  # the columns of each part, one part after the other

    @property
    def n_outputs(self) -> int:
        return sum(part.n_outputs for part in self.parts)

    def selections(self) -> list[Indices]:
        """The columns of each part."""
        ends = np.cumsum([part.n_columns for part in self.parts])
        return np.split(self.columns, ends[:-1])

    def beyond(self) -> Preparation:
        return replace(self, parts=tuple(part.beyond() for part in self.parts))

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        operators: list[Operator] = []
        for part, columns in zip(self.parts, self.selections(), strict=True):
            operator: Operator = selected_columns(self.n_columns, columns, dtype)
            identity = isinstance(part, Sequence) and not part.steps
            operators.append(operator if identity else chain(operator, part.operator(dtype)))
        return concatenate(operators, self.n_columns)

    def reads(self) -> NDArray[np.bool_]:
        read = np.zeros(self.n_columns, dtype=bool)
        for part, columns in zip(self.parts, self.selections(), strict=True):
            read[columns[part.reads()]] = True
        return read

    def owners(self) -> Indices:
        parts = zip(self.parts, self.selections(), strict=True)
        return np.concatenate([columns[part.owners()] for part, columns in parts])

    def indicators_after(self, given: NDArray[np.bool_]) -> NDArray[np.bool_]:
        parts = zip(self.parts, self.selections(), strict=True)
        return np.concatenate([part.indicators_after(given[columns]) for part, columns in parts])

    def check(self) -> None:
        super().check()
        if not self.parts or sum(part.n_columns for part in self.parts) != self.columns.size:
            raise ValueError("columns must be those of the parts.")


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class Sequence(Preparation):
    """Preparations one after the other; without any, the columns as they are."""

    steps: tuple[Preparation, ...] = ()

    @classmethod
    def of(cls, *preparations: Preparation) -> Preparation:
        """One preparation for several; a sequence among them counts as its steps."""
        steps: list[Preparation] = []
        for preparation in preparations:
            steps += preparation.steps if isinstance(preparation, Sequence) else [preparation]
        if len(steps) == 1:
            return steps[0]
        return checked(cls(n_columns=preparations[0].n_columns, steps=tuple(steps)))

    @property
    def n_outputs(self) -> int:
        return self.steps[-1].n_outputs if self.steps else self.n_columns

    def beyond(self) -> Preparation:
        return replace(self, steps=tuple(step.beyond() for step in self.steps))

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        if not self.steps:
            return selected_columns(self.n_columns, np.arange(self.n_columns), dtype)
        return reduce(chain, [step.operator(dtype) for step in self.steps])

    @property
    def keeps_zeros(self) -> bool:
        return all(step.keeps_zeros for step in self.steps)

    def sparse_rows(self, rows: Any) -> Any:
        return reduce(lambda made, step: step.sparse_rows(made), self.steps, rows)

    def reads(self) -> NDArray[np.bool_]:
        return self.steps[0].reads() if self.steps else super().reads()

    def owners(self) -> Indices:
        return reduce(lambda made, step: made[step.owners()], self.steps, super().owners())

    def indicators_after(self, given: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return reduce(lambda made, step: step.indicators_after(made), self.steps, given)

    def check(self) -> None:
        super().check()
        n_columns = self.n_columns
        for step in self.steps:
            if step.n_columns != n_columns:
                raise ValueError("each step must take the columns of the previous one.")
            n_columns = step.n_outputs


def check_starts(starts: NDArray[Any], count: int, size: int, least: int) -> None:
    """Refuse arrays other than the ends of ``count`` parts of ``size`` numbers."""
    right = starts.shape == (count + 1,) and starts[0] == 0 and starts[-1] == size
    if not right or (np.diff(starts) < least).any():
        raise ValueError(f"starts must divide {size} numbers into {count} parts.")


def check_increasing(name: str, values: Numbers, starts: Indices) -> None:
    """Refuse numbers that do not increase within each part."""
    steps, inner = np.diff(values) > 0, starts[1:-1]
    steps[inner[(inner > 0) & (inner < values.size)] - 1] = True
    if not steps.all():
        raise ValueError(f"the {name} of a column must increase.")


def with_data(rows: Any, values: NDArray[Any]) -> Any:
    """A CSR matrix with other numbers at the same places."""
    values = values.astype(rows.dtype, copy=False)
    return sp.csr_matrix((values, rows.indices, rows.indptr), shape=rows.shape)
