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
Part = tuple[int, Any]  # the number of the first row, and rows


class Reader(ABC):
    """Rows that can be read several times.

    Attributes
    ----------
    schema : Schema
        The columns.
    n_rows : int or None
        The number of rows, if it is known without reading all of them.
    is_table : bool
        Whether parts are Arrow tables; else they are arrays or CSR matrices.
    in_memory : bool
        Whether all rows are in memory, so that another pass costs little.
    paths : tuple of str
        The files that are read; none if there are none.
    label : str or None
        The column of targets, if the format has one.
    arrays : mapping
        Arrays that are stored beside the rows, such as targets, by name.
    """

    schema: Schema
    n_rows: int | None
    is_table: bool = True
    in_memory: bool = False
    paths: tuple[str, ...] = ()
    label: str | None = None
    arrays: Mapping[str, NDArray[Any]] = MappingProxyType({})

    @abstractmethod
    def parts(
        self, names: Sequence[str], start: int, size: int, wanted: Indices | None = None
    ) -> Iterator[Part]:
        """Consecutive rows from ``start`` on, in parts of any size.

        Parameters
        ----------
        names : sequence of str
            The columns that are needed, in this order.
        start : int
            The number of the first row.
        size : int
            The preferred number of rows of a part.
        wanted : ndarray of int, optional
            Increasing numbers of rows. Parts without any of them may be left out.
        """

    def read_as(self, known: Mapping[str, KnownColumn]) -> Self:
        """The same rows, whose columns are what a model takes them for; itself if they are.

        Parameters
        ----------
        known : mapping
            Columns of a model by name; there may be others than those of the reader.
        """
        schema = self.schema.read_as(known)
        if schema == self.schema:
            return self
        made = copy(self)
        made.schema = schema
        return made

    @abstractmethod
    def fingerprint(self) -> str:
        """A text that changes if the rows change."""


def without_unwanted(start: int, stop: int, wanted: Indices | None) -> bool:
    """Whether some rows may be left out, because none of them is wanted."""
    if wanted is None:
        return False
    first, last = np.searchsorted(wanted, [start, stop])
    return bool(first == last)
