"""Many files of one format as one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kitchenette.comparison import digest
from kitchenette.data.formats import Csv, Format, check_schema
from kitchenette.data.listing import StoredFile
from kitchenette.data.reader import Indices, Part, Reader, without_unwanted
from kitchenette.data.schema import DataError
from kitchenette.data.tables import arrow, schema_of


class FilesReader(Reader):
    """The rows of files with named columns, one file after the other.

    Parameters
    ----------
    files : sequence of StoredFile
        The files; the first one decides the columns and their types.
    reading : Format
        How they are read.
    kinds : mapping
        Kinds of columns that are known.
    labels : sequence of str
        Columns that may be labels, whose whole numbers stay whole.
    """

    def __init__(
        self,
        files: Sequence[StoredFile],
        reading: Format,
        kinds: Mapping[str, str],
        labels: Sequence[str] = (),
    ):
        pa = arrow()
        self.files, self._format = [*files], reading
        self.paths = tuple(file.path for file in self.files)
        physical = self._format.schema(self.files[0])
        if isinstance(reading, Csv):
            physical = _with_real_numbers(physical, {*labels})
            reading.read_as({field.name: field.type for field in physical})
        self._physical = physical
        partition = [pa.field(name, pa.string()) for name, _ in self.files[0].partition]
        fields = [field for field in partition if field.name not in physical.names]
        self._stored = list(physical.names)
        self.schema = schema_of(pa.schema([*physical, *fields]), kinds)
        self._lengths: list[int | None] = [None] * len(self.files)
        self._checked = {0}
        self._count()

    def _count(self) -> None:
        """The numbers of rows, where the format tells; all schemas are checked on the way."""
        for number, file in enumerate(self.files):
            if isinstance(self._format, Csv):
                continue
            self._check(number)
            self._lengths[number] = self._format.n_rows(file)

    @property
    def n_rows(self) -> int | None:  # type: ignore[override]
        """The sum of the rows of all files, if they are known."""
        known = [length for length in self._lengths if length is not None]
        return sum(known) if len(known) == len(self.files) else None

    def _check(self, number: int) -> None:
        if number not in self._checked:
            file = self.files[number]
            if not isinstance(self._format, Csv):
                check_schema(file, self._format.schema(file), self.files[0], self._physical)
            if [name for name, _ in file.partition] != [n for n, _ in self.files[0].partition]:
                raise DataError(f"{file.path} has other columns in its path than the first file.")
            self._checked.add(number)

    def parts(
        self, names: Sequence[str], start: int, size: int, wanted: Indices | None = None
    ) -> Iterator[Part]:
        begin = 0
        for number, file in enumerate(self.files):
            length = self._lengths[number]
            if length is not None:
                end = begin + length
                if end <= start or without_unwanted(begin, end, wanted):
                    begin = end
                    continue
            self._check(number)
            begin = yield from self._of_file(number, file, names, begin, start, size, wanted)

    def _of_file(
        self,
        number: int,
        file: StoredFile,
        names: Sequence[str],
        begin: int,
        start: int,
        size: int,
        wanted: Indices | None,
    ) -> Any:
        def needed(first: int, stop: int) -> bool:
            return begin + stop > start and not without_unwanted(
                begin + first, begin + stop, wanted
            )

        stored = [name for name in names if name in self._stored] or self._stored[:1]
        last = 0
        for first, stop, table in self._format.tables(file, stored, size, needed):
            last = stop
            skipped = max(0, start - begin - first)
            if table is not None and skipped < table.num_rows:
                some = table.slice(skipped)
                yield begin + first + skipped, self._with_partition(file, some, names)
        self._lengths[number] = last
        return begin + last

    def _with_partition(self, file: StoredFile, table: Any, names: Sequence[str]) -> Any:
        pa = arrow()
        for name, value in file.partition:
            if name in names and name not in table.column_names:
                values = pa.array([value]).take(pa.array([0] * table.num_rows))
                table = table.append_column(name, values)
        return table.select([*names])

    def fingerprint(self) -> str:
        return digest([file.fingerprint() for file in self.files])


def _with_real_numbers(schema: Any, labels: set[str]) -> Any:
    """The types of CSV files: whole numbers are real ones, except in columns of labels."""
    pa = arrow()
    fields = [
        pa.field(field.name, pa.float64())
        if pa.types.is_integer(field.type) and field.name not in labels
        else field
        for field in schema
    ]
    return pa.schema(fields)
