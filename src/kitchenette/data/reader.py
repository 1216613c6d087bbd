"""Readers: where the rows of a source come from, without the meaning of their columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.schema import KnownColumn, Schema

Indices = NDArray[np.int64]
Part = tuple[int, Any]  # the index of the first row, and rows


class Reader(ABC):
    """Rows that can be read several times."""

    schema: Schema
    n_rows: int | None  # the number of rows, if it is known without reading all of them
    is_table: bool = True  # whether parts are Arrow tables; else they are arrays or CSR matrices
    in_memory: bool = False  # whether all rows are in memory, so that another pass costs little
    paths: tuple[str, ...] = ()  # the files that are read; none if there are none
    label: str | None = None  # the column of targets, if the format has one
    # Arrays that are stored beside the rows, such as targets, by name
    arrays: Mapping[str, NDArray[Any]] = MappingProxyType({})

    @abstractmethod
    def parts(
        self, names: Sequence[str], start: int, size: int, wanted: Indices | None = None
    ) -> Iterator[Part]:
        """Consecutive rows of these columns from ``start`` on, in parts of about ``size`` rows.

        Parts without any of the increasing row indices ``wanted`` may be left out.
        """

    def read_as(self, columns: Mapping[str, KnownColumn]) -> Self:
        """The same rows, whose columns are what a model takes them for; itself if they are."""
        schema = self.schema.read_as(columns)
        if schema == self.schema:
            return self
        reader = copy(self)
        reader.schema = schema
        return reader

    @abstractmethod
    def fingerprint(self) -> str:
        """A digest that changes if the rows change."""


def without_unwanted(start: int, stop: int, wanted: Indices | None) -> bool:
    """Whether some rows may be left out, because none of them is wanted."""
    if wanted is None:
        return False
    first, last = np.searchsorted(wanted, [start, stop])
    return bool(first == last)
