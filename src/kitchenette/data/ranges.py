"""Consecutive rows of a reader as a reader of their own, to be read by another process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kitchenette.data.arrays import ArrayReader
from kitchenette.data.reader import Indices, Part, Reader
from kitchenette.data.rows import take


class RangeReader(Reader):
    """The rows from ``first`` to before ``last`` of another reader, counted from zero.

    That is pickled with this one: files must be there for every process.
    """

    def __init__(self, reader: Reader, first: int, last: int):
        self._reader, self._first, self._last = reader, first, last
        self.schema, self.is_table = reader.schema, reader.is_table
        self.n_rows = last - first

    def parts(
        self, names: Sequence[str], start: int, size: int, wanted: Indices | None = None
    ) -> Iterator[Part]:
        moved = None if wanted is None else wanted + self._first
        for first, part in self._reader.parts(names, self._first + start, size, moved):
            if first >= self._last:
                return
            yield first - self._first, take(part, slice(0, self._last - first))

    def fingerprint(self) -> str:
        return f"rows {self._first} to {self._last} of {self._reader.fingerprint()}"


def range_of(reader: Reader, first: int, last: int) -> Reader:
    """A reader of some consecutive rows; of arrays, without the others."""
    if isinstance(reader, ArrayReader):
        return ArrayReader(reader.X[first:last])
    return RangeReader(reader, first, last)
