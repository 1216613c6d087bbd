"""What the values of columns are: categories with their frequencies, medians, missing values."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.schema import Column, Schema
from kitchenette.data.tables import arrow, categories_of, numbers_of, stored_kind

Counts = NDArray[np.int64]
MOST_CATEGORIES = 1 << 20  # of a column that are counted
# Columns are identifiers if of so many values this share is there only once. A category that is
# there once says nothing of other rows; of 64 categories or fewer, some of 50 rows are nearly
# certain to be equal, and rarer ones would not get a column of their own.
LEAST_VALUES, SHARE_OF_SINGLES = 50, 0.95
# Whole numbers that are all different may also be times, or a quantity, so the name decides.
NAME_OF_IDENTIFIER = re.compile(
    r"(?i:|unnamed: 0|index|idx|key|row|row ?names?|(row|line) ?number|(.*[ _.-])?(id|uuid|guid))"
    r"|.*[a-z]I[dD]"
)


class ColumnProfile:
    """Frequencies of categories, medians of numbers, and where values are missing."""

    def __init__(self, schema: Schema):
        self.schema = schema
        self.n_missing = dict.fromkeys(schema.names, 0)
        self.frequencies: dict[str, Counter[str]] = {
            column.name: Counter() for column in schema if column.kind == "category"
        }
        self.medians: dict[str, float] = {}
        self.stored: dict[str, str] = {}  # the kinds of the values of categories
        self._numbered: set[str] = set()  # columns whose numbers are those of rows

    def observe(self, table: Any, copies: Counts | None = None) -> None:
        """Count the categories and the missing values of more rows, each so many times."""
        for column in self.schema:
            values = table.column(column.name)
            if column.kind != "category":
                self.n_missing[column.name] += _count_missing(values)
                continue
            if not arrow().types.is_null(values.type):
                self.stored[column.name] = stored_kind(values.type)
            codes, texts = categories_of(values)
            self.n_missing[column.name] += int(np.count_nonzero(codes < 0))
            known_codes = codes >= 0
            each = None if copies is None else copies[known_codes]
            counts = np.bincount(codes[known_codes], each, len(texts)).astype(np.int64)
            frequencies = self.frequencies[column.name]
            if len(frequencies) < MOST_CATEGORIES:
                frequencies.update(dict(zip(texts, counts.tolist(), strict=True)))

    def combined(self, other: ColumnProfile) -> ColumnProfile:
        """The counts of the rows of both; neither is changed."""
        profile = ColumnProfile(self.schema)
        profile.n_missing = {name: n + other.n_missing[name] for name, n in self.n_missing.items()}
        profile.frequencies = {
            name: known + other.frequencies[name] for name, known in self.frequencies.items()
        }
        profile.stored = {**other.stored, **self.stored}
        return profile

    def find_medians(self, table: Any, copies: Counts | None = None) -> None:
        """Find the medians of a sample, in which each row counts so many times."""
        for column in self.schema:
            if column.kind != "category":
                numbers = numbers_of(table.column(column.name), column.kind, column.name)
                values = np.asarray(numbers, dtype=np.float64)
                self.medians[column.name] = median_of(values, copies)
                named = NAME_OF_IDENTIFIER.fullmatch(column.name) is not None
                if named and column.kind == "number" and _are_different(values, copies):
                    self._numbered.add(column.name)

    def is_identifier(self, column: Column) -> bool:
        """Whether a column only tells rows apart: names, texts, or row numbers.

        These are categories of which nearly all are there once, and whole numbers that are all
        different in a column that is named like an identifier. What was given a kind is
        no identifier.
        """
        if column.is_given:
            return False
        if column.kind == "category":
            counts = [count for _, count in self.categories(column.name)]
            total = sum(counts)
            return total >= LEAST_VALUES and counts.count(1) >= SHARE_OF_SINGLES * total
        return column.name in self._numbered

    def categories(self, name: str) -> list[tuple[str, int]]:
        """The categories of a column and their frequencies, the most frequent ones first."""
        counted = [item for item in self.frequencies[name].items() if item[1] > 0]
        return sorted(counted, key=lambda item: (-item[1], item[0]))


@dataclass(frozen=True)
class ProfileOf:
    """The profile of all rows without medians, as a reduction."""

    schema: Schema

    def of(self, block: Any) -> ColumnProfile:
        profile = ColumnProfile(self.schema)
        profile.observe(block.X)
        return profile

    def combined(self, a: ColumnProfile, b: ColumnProfile) -> ColumnProfile:
        return a.combined(b)


def _are_different(values: NDArray[np.float64], copies: Counts | None) -> bool:
    """Whether numbers are whole and all different."""
    if values.size < LEAST_VALUES or (copies is not None and (copies > 1).any()):
        return False
    return bool((values == np.floor(values)).all()) and np.unique(values).size == values.size


def median_of(values: NDArray[np.float64], copies: Counts | None) -> float:
    """The median of the finite numbers, each of which counts so many times; zero of none."""
    finite = np.isfinite(values)
    numbers = values[finite]
    if copies is None or not numbers.size:
        return float(np.median(numbers)) if numbers.size else 0.0
    order = np.argsort(numbers)
    places = np.cumsum(copies[finite][order])  # among the repeated values
    middle = [(places[-1] - 1) // 2, places[-1] // 2]
    return float(np.mean(numbers[order[np.searchsorted(places, middle, side="right")]]))


def _count_missing(values: Any) -> int:
    missing = int(values.null_count)
    if str(values.type) in ("float", "double", "halffloat"):
        missing += int(np.count_nonzero(np.isnan(np.asarray(values.drop_null()))))
    return missing
