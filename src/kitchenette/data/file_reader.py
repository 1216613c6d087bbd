"""Many files of one format as one table."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Self

from kitchenette.comparison import digest
from kitchenette.data.listing import StoredFile
from kitchenette.data.reader import Indices, Part, Reader, without_unwanted
from kitchenette.data.schema import DataError, KnownColumn
from kitchenette.data.tables import arrow, kind_of, schema_of

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # what Hive and its successors name a missing value


class TableFormat(ABC):
    """How files with named columns are read."""

    has_types = True  # whether files tell the types of their columns, which must agree

    @abstractmethod
    def schema(self, file: StoredFile) -> Any:
        """The Arrow schema of a file."""

    def n_rows(self, file: StoredFile) -> int | None:
        """The number of rows of a file, if its format tells."""
        return None

    def typed(self, schema: Any, labels: Sequence[str]) -> Any:
        """The types in which all files are read, given those of the first one."""
        return schema

    def like(self, columns: Mapping[str, KnownColumn], schema: Any) -> tuple[Self, Any]:
        """The format and the schema with the columns as a model knows them."""
        return self, schema

    @abstractmethod
    def tables(
        self, file: StoredFile, names: Sequence[str], size: int, wanted: Any
    ) -> Iterator[tuple[int, int, Any]]:
        """Parts of a file: the indices of the first row and of the row after the last, and a table.

        ``wanted(start, stop)`` says whether some of these rows are needed; parts of others have
        None instead of a table.
        """


class FilesReader(Reader):
    """The rows of files with named columns, one file after the other.

    The first file decides the columns and their types. Names of directories such as
    ``month=01`` are columns: numbers if all values of a column are whole numbers, as pyarrow,
    polars and Spark read them, and else strings. Whole numbers stay whole in the columns of
    labels.
    """

    def __init__(
        self,
        files: Sequence[StoredFile],
        reading: TableFormat,
        kinds: Mapping[str, str],
        labels: Sequence[str] = (),
    ):
        pa = arrow()
        self.files, self._format = [*files], reading
        self.paths = tuple(file.path for file in self.files)
        self._physical = physical = reading.typed(reading.schema(self.files[0]), labels)
        self._stored, self._kinds = list(physical.names), dict(kinds)
        self._partition = {
            name: pa.string() if kinds.get(name) == "category" else _type_of_partition(files, name)
            for name, _ in self.files[0].partition
            if name not in physical.names
        }
        self.schema = self._schema()
        self._lengths: list[int | None] = [None] * len(self.files)
        self._checked = {0}
        self._count()

    def _schema(self) -> Any:
        pa, physical = arrow(), self._physical
        fields = [pa.field(name, dtype) for name, dtype in self._partition.items()]
        return schema_of(pa.schema([*physical, *fields], physical.metadata), self._kinds)

    def read_as(self, columns: Mapping[str, KnownColumn]) -> Self:
        pa, reader = arrow(), copy(self)
        strings = {name: pa.string() for name, one in columns.items() if one.kind == "category"}
        reader._partition = {name: strings.get(name, t) for name, t in self._partition.items()}
        reader._format, reader._physical = self._format.like(columns, self._physical)
        if reader._partition == self._partition and reader._format is self._format:
            return super().read_as(columns)
        reader.schema = reader._schema().read_as(columns)
        return reader

    def _count(self) -> None:
        """The numbers of rows, where the format tells; all schemas are checked on the way."""
        for number, file in enumerate(self.files if self._format.has_types else ()):
            self._check(number)
            self._lengths[number] = self._format.n_rows(file)

    @property
    def n_rows(self) -> int | None:  # type: ignore[override]
        """The sum of the rows of all files, if they are known."""
        lengths = [length for length in self._lengths if length is not None]
        return sum(lengths) if len(lengths) == len(self.files) else None

    def _check(self, number: int) -> None:
        if number not in self._checked:
            file = self.files[number]
            if self._format.has_types:
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
                one = pa.array([None if value == NO_VALUE else value], pa.string())
                values = pa.repeat(one.cast(self._partition[name])[0], table.num_rows)
                table = table.append_column(name, values)
        return table.select([*names])

    def fingerprint(self) -> str:
        return digest([file.fingerprint() for file in self.files])


def _type_of_partition(files: Sequence[StoredFile], name: str) -> Any:
    """The type of a column in the names of directories."""
    values = {value for file in files for key, value in file.partition if key == name} - {NO_VALUE}
    whole = all(re.fullmatch(r"-?[0-9]{1,18}", value) for value in values)
    return arrow().int64() if values and whole else arrow().string()


def refuse_empty(file: StoredFile) -> None:
    """Refuse a file of no bytes."""
    if file.size == 0:
        raise DataError(f"{file.path} is empty.")


def table_of_batch(batch: Any, names: Sequence[str]) -> Any:
    """The columns of these names of a batch, as a table."""
    return arrow().Table.from_batches([batch]).select([*names])


def check_schema(file: StoredFile, schema: Any, first: StoredFile, expected: Any) -> None:
    """Refuse a file whose columns are others than those of the first file."""
    for field in expected:
        if field.name not in schema.names:
            raise DataError(
                f"{file.path} has no column {field.name!r}, which {first.path} has; it has "
                f"{', '.join(schema.names[:10])}."
            )
        there = schema.field(field.name).type
        same = kind_of(there) == kind_of(field.type)
        if not same and not arrow().types.is_null(there):
            raise DataError(
                f"{file.path} has a column {field.name!r} of another type than {first.path}: "
                f"{there} instead of {field.type}."
            )
