"""Preparation of missing values and of categories."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.columns.preparation import (
    ColumnIndices,
    Indices,
    Numbers,
    Preparation,
    check_increasing,
    check_starts,
    with_data,
)
from kitchenette.files.fields import Interval, Shape
from kitchenette.files.registry import storable
from kitchenette.sketching.columns import Item, Kind, mapped_columns
from kitchenette.sketching.operators import Operator


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class Impute(Preparation):
    """Missing numbers replaced, and indicator columns of what was missing behind them."""

    missing: float = nan  # what stands for a missing number: NaN or a number
    kept: ColumnIndices  # the columns that are kept
    fill: Annotated[Numbers, Shape("kept")]  # the substitute for each of them
    flags: ColumnIndices  # the columns that get an indicator column

    @property
    def n_outputs(self) -> int:
        return self.kept.size + self.flags.size

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        filled = zip(self.kept.tolist(), self.fill.tolist(), strict=True)
        items = [Item(Kind.FILL, column, (self.missing, fill)) for column, fill in filled]
        items += [Item(Kind.FLAG, column, (self.missing,)) for column in self.flags.tolist()]
        return mapped_columns(self.n_columns, items, dtype)

    def owners(self) -> Indices:
        return np.concatenate([self.kept, self.flags])

    @property
    def keeps_zeros(self) -> bool:
        if self.missing == 0 or self.flags.size or self.kept.size != self.n_columns:
            return False
        return bool((self.kept == np.arange(self.n_columns)).all())

    def sparse_rows(self, rows: Any) -> Any:
        missing = rows.dtype.type(self.missing)
        replaced = np.isnan(rows.data) if np.isnan(missing) else rows.data == missing
        return with_data(rows, np.where(replaced, self.fill[rows.indices], rows.data))


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class Substitute(Preparation):
    """One number of some columns replaced by another one; all other numbers stay."""

    columns: ColumnIndices  # the columns, each at most once
    # For each of these columns, the number that is replaced and the one that stands instead
    replaced: Annotated[Numbers, Shape("columns")]
    substitute: Annotated[Numbers, Shape("columns")]

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        items = [Item(Kind.COPY, column) for column in range(self.n_columns)]
        for column, *numbers in zip(self.columns, self.replaced, self.substitute, strict=True):
            items[column] = Item(Kind.FILL, int(column), numbers)
        return mapped_columns(self.n_columns, items, dtype)

    def check(self) -> None:
        super().check()
        if np.unique(self.columns).size < self.columns.size:
            raise ValueError("columns must not be repeated.")


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class OneHot(Preparation):
    """Columns of zeros with a one for the category of each number."""

    # The categories of all columns, one column after the other, ascending in each column
    keys: Annotated[Numbers, Shape(None)]
    # For each category the output column that is one, counted from the first output of its column;
    # -1 for none
    targets: Annotated[Indices, Shape("keys"), Interval(-2)]
    starts: Indices  # (n_columns + 1,): where the categories of each column begin, and the end
    # (n_columns,): the number of output columns of each column
    widths: Annotated[Indices, Shape("n_columns"), Interval(0)]
    # (n_columns,): the targets of numbers that are no category and of NaN; -2 if they are refused
    unknown: Annotated[Indices, Shape("n_columns"), Interval(-2, "widths", closed="left")]
    missing: Annotated[Indices, Shape("n_columns"), Interval(-2, "widths", closed="left")]

    @property
    def n_outputs(self) -> int:
        return int(self.widths.sum())

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        items = []
        for j in range(self.n_columns):
            own = slice(self.starts[j], self.starts[j + 1])
            head = self.widths[j], self.unknown[j], self.missing[j]
            numbers = np.concatenate([head, self.keys[own], self.targets[own]])
            items.append(Item(Kind.CATEGORIES, j, numbers))
        return mapped_columns(self.n_columns, items, dtype)

    def owners(self) -> Indices:
        return np.repeat(np.arange(self.n_columns, dtype=np.int64), self.widths)

    def examples(self, column: int) -> Numbers:
        """A number for each output column of a column, where that is one."""
        own = slice(self.starts[column], self.starts[column + 1])
        keys, targets = self.keys[own], self.targets[own]
        examples = np.full(self.widths[column], keys.max(initial=0.0) + 1)  # unknown
        examples[targets[targets >= 0]] = keys[targets >= 0]
        if self.missing[column] >= 0:
            examples[self.missing[column]] = nan
        return examples

    def indicators_after(self, given: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.ones(self.n_outputs, dtype=bool)

    def check(self) -> None:
        check_starts(self.starts, self.n_columns, self.keys.size, least=0)
        sizes = np.diff(self.starts)
        if (self.widths > sizes + 1).any():
            raise ValueError("there are more output columns than categories.")
        if (self.targets >= np.repeat(self.widths, sizes)).any():
            raise ValueError("targets must be output columns, -1 or -2.")
        super().check()
        check_increasing("categories", self.keys, self.starts)
