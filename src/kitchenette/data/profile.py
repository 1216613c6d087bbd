"""What the values of columns are: categories with their frequencies, medians, missing values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.schema import Schema
from kitchenette.data.tables import numbers_of, words_of

MOST_WORDS = 1 << 20  # of a column that are counted


class ColumnProfile:
    """Frequencies of categories, medians of numbers, and where values are missing.

    Parameters
    ----------
    schema : Schema
        The columns.
    """

    def __init__(self, schema: Schema):
        self.schema = schema
        self.n_rows = 0
        self.n_missing = dict.fromkeys(schema.names, 0)
        self.frequencies: dict[str, Counter[str]] = {
            column.name: Counter() for column in schema if column.kind == "category"
        }
        self.medians: dict[str, float] = {}

    def observe(self, table: Any) -> None:
        """Count the categories and the missing values of more rows."""
        self.n_rows += table.num_rows
        for column in self.schema:
            values = table.column(column.name)
            if column.kind != "category":
                self.n_missing[column.name] += _count_missing(values)
                continue
            codes, words = words_of(values)
            self.n_missing[column.name] += int(np.count_nonzero(codes < 0))
            counts = np.bincount(codes[codes >= 0], minlength=len(words))
            known = self.frequencies[column.name]
            if len(known) < MOST_WORDS:
                known.update(dict(zip(words, counts.tolist(), strict=True)))

    def find_medians(self, table: Any) -> None:
        """Find the medians of a sample."""
        for column in self.schema:
            if column.kind != "category":
                values = numbers_of(table.column(column.name), column.kind, column.name)
                self.medians[column.name] = _median(np.asarray(values, dtype=np.float64))

    def words(self, name: str) -> list[tuple[str, int]]:
        """The categories of a column and their frequencies, the most frequent ones first."""
        counted = [item for item in self.frequencies[name].items() if item[1] > 0]
        return sorted(counted, key=lambda item: (-item[1], item[0]))


def _median(values: NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else 0.0


def _count_missing(values: Any) -> int:
    missing = int(values.null_count)
    if str(values.type) in ("float", "double", "halffloat"):
        missing += int(np.count_nonzero(np.isnan(np.asarray(values.drop_null()))))
    return missing
