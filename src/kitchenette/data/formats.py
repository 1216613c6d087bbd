"""Formats of files with named columns: Parquet, Arrow (Feather) and CSV, read in batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Self

from kitchenette.data.csv_errors import explained, guessed_delimiter, refuse_texts_like_numbers
from kitchenette.data.listing import StoredFile
from kitchenette.data.schema import DataError, KnownColumn
from kitchenette.data.tables import arrow, kind_of

FIRST_BYTES = 1 << 22  # of a CSV file from which the types of columns are found
CSV_BYTES = 1 << 22  # of a CSV file that are parsed at a time


class Format(ABC):
    """How files of a format are read."""

    @abstractmethod
    def schema(self, file: StoredFile) -> Any:
        """The Arrow schema of a file."""

    def n_rows(self, file: StoredFile) -> int | None:
        """The number of rows of a file, if its format tells."""
        return None

    @abstractmethod
    def tables(
        self, file: StoredFile, names: Sequence[str], size: int, wanted: Any
    ) -> Iterator[tuple[int, int, Any]]:
        """Parts of a file: the numbers of the first row and of the row after the last, and a table.

        ``wanted(start, stop)`` says whether some of these rows are needed; parts of others have
        None instead of a table.
        """


class Parquet(Format):
    """Parquet files, read by row groups."""

    def _open(self, file: StoredFile) -> Any:
        pa = arrow()
        from pyarrow import parquet

        _refuse_empty(file)
        try:
            return parquet.ParquetFile(
                file.system.open_input_file(file.path), pre_buffer=True, buffer_size=1 << 20
            )
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(
                f"{file.path} is not a whole Parquet file; it may have been cut off: {error}"
            ) from error

    def schema(self, file: StoredFile) -> Any:
        with self._open(file) as opened:
            return opened.schema_arrow

    def n_rows(self, file: StoredFile) -> int | None:
        with self._open(file) as opened:
            return int(opened.metadata.num_rows)

    def tables(
        self, file: StoredFile, names: Sequence[str], size: int, wanted: Any
    ) -> Iterator[tuple[int, int, Any]]:
        pa, first = arrow(), 0
        with self._open(file) as opened:
            for group in range(opened.metadata.num_row_groups):
                stop = first + opened.metadata.row_group(group).num_rows
                if not wanted(first, stop):
                    yield first, stop, None
                else:
                    try:
                        yield from self._of_group(opened, group, names, size, first)
                    except (pa.ArrowException, OSError) as error:
                        raise DataError(
                            f"{file.path}, row group {group}: cannot be read: {error}"
                        ) from error
                first = stop

    @staticmethod
    def _of_group(
        opened: Any, group: int, names: Sequence[str], size: int, first: int
    ) -> Iterator[tuple[int, int, Any]]:
        """The parts of a row group, whose memory is free before the next one is read."""
        for batch in opened.iter_batches(size, row_groups=[group], columns=[*names]):
            stop = first + batch.num_rows
            yield first, stop, _table(batch, names)
            first = stop


class ArrowFile(Format):
    """Files of Arrow's interprocess format, also called Feather, of either kind."""

    def _open(self, file: StoredFile) -> Any:
        pa = arrow()
        _refuse_empty(file)
        try:
            return pa.ipc.open_file(file.system.open_input_file(file.path))
        except (pa.ArrowInvalid, OSError):
            pass
        try:
            return pa.ipc.open_stream(file.system.open_input_stream(file.path))
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(
                f"{file.path} is not a whole Arrow file; it may have been cut off: {error}"
            ) from error

    def schema(self, file: StoredFile) -> Any:
        return self._open(file).schema

    def n_rows(self, file: StoredFile) -> int | None:
        opened = self._open(file)
        if not hasattr(opened, "count_rows"):
            return None
        return int(opened.count_rows())

    def tables(
        self, file: StoredFile, names: Sequence[str], size: int, wanted: Any
    ) -> Iterator[tuple[int, int, Any]]:
        pa, opened, first, number = arrow(), self._open(file), 0, 0
        try:
            for batch in _batches_of(opened):
                stop = first + batch.num_rows
                yield first, stop, _table(batch, names) if wanted(first, stop) else None
                first, number = stop, number + 1
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{file.path}, batch {number}: cannot be read: {error}") from error


def _table(batch: Any, names: Sequence[str]) -> Any:
    return arrow().Table.from_batches([batch]).select([*names])


def _batches_of(opened: Any) -> Iterator[Any]:
    if hasattr(opened, "num_record_batches"):
        return (opened.get_batch(i) for i in range(opened.num_record_batches))
    return iter(opened)


class Csv(Format):
    """Files of values separated by commas or other signs.

    Parameters
    ----------
    delimiter : str, optional
        The delimiter; by default the most frequent of , ; tab and | in the first line.
    decimal : str
        The decimal separator.
    header : bool
        Whether the first line has the names of the columns.
    newlines : bool
        Whether values in quotes may contain line breaks.
    kinds : mapping
        Kinds of columns that are known.
    precision : str, optional
        The precision of numbers.
    """

    def __init__(
        self,
        *,
        delimiter: str | None = None,
        decimal: str = ".",
        header: bool = True,
        newlines: bool = False,
        kinds: Mapping[str, str] | None = None,
        precision: str | None = None,
    ):
        for name, sign in (("delimiter", delimiter), ("decimal", decimal)):
            if sign is not None and (not isinstance(sign, str) or len(sign) != 1):
                raise ValueError(f"{name} must be one character; got {sign!r}.")
        self._delimiter, self._decimal = delimiter, decimal
        self._header, self._newlines = header, newlines
        self._kinds, self._precision = dict(kinds or {}), precision
        self._types: dict[str, Any] = {}
        self._words: dict[str, frozenset[str]] = {}  # that elsewhere stand for missing values

    def delimiter(self, file: StoredFile) -> str:
        """The delimiter, given or detected."""
        return self._delimiter or guessed_delimiter(file, self._decimal)

    def schema(self, file: StoredFile) -> Any:
        pa = arrow()
        _refuse_empty(file)
        try:
            with self._open(file, None, FIRST_BYTES) as opened:
                found = opened.schema
                first = next(iter(opened), None)
        except (pa.ArrowException, OSError) as error:
            raise explained(file, self, found_types=None, error=error) from error
        repeated = {name for name in found.names if found.names.count(name) > 1}
        if repeated:
            raise DataError(f"{file.path}, line 1: names are repeated: {sorted(repeated)[:5]}.")
        for field in found:
            if pa.types.is_binary(field.type):
                raise DataError(f"{file.path} is not text in UTF-8, in the column {field.name!r}.")
            if first is not None and field.name not in self._kinds:
                refuse_texts_like_numbers(file, self, field.name, first)
        return pa.schema([pa.field(field.name, self._type_of(field)) for field in found])

    def _type_of(self, field: Any) -> Any:
        """Whole numbers stay, because they may be labels; the reader of features takes floats."""
        pa = arrow()
        kind = self._kinds.get(field.name)
        real = pa.float32() if self._precision == "float32" else pa.float64()
        known = {"number": real, "boolean": pa.bool_(), "category": pa.string()}
        if kind in known:
            return known[kind]
        if pa.types.is_floating(field.type) or pa.types.is_null(field.type):
            return real
        return field.type

    def read_as(self, types: Mapping[str, Any]) -> None:
        """Set the types of the columns, those of the first file, for all files."""
        self._types = dict(types)

    def like(self, known: Mapping[str, KnownColumn], schema: Any) -> tuple[Self, Any]:
        """The format and the schema with columns of the types that a model knows.

        Parameters
        ----------
        known : mapping
            The columns of the model by name.
        schema : pyarrow.Schema
            The types of the columns so far.

        Returns
        -------
        format : Csv
            Itself if nothing changes.
        schema : pyarrow.Schema
        """
        pa, made = arrow(), copy(self)
        fields = []
        for field in schema:
            one = known.get(field.name)
            is_text = pa.types.is_string(field.type)
            if one is not None and one.kind == "category" and not is_text:
                field = field.with_type(pa.string())
            elif one is not None and one.kind == "number" and is_text:
                field = field.with_type(self._type_of(field.with_type(pa.float64())))
            fields.append(field)
        found = {name: one.words & _null_values() for name, one in known.items()}
        made._words = {
            name: words for name, words in found.items() if words and name in schema.names
        }
        changed = {field.name: one.kind for field in fields if (one := known.get(field.name))}
        wanted = pa.schema(fields)
        if wanted == schema and made._words == self._words:
            return self, schema
        made._kinds = self._kinds | changed
        made.read_as({field.name: field.type for field in wanted})
        return made, wanted

    def _with_missing(self, table: Any) -> Any:
        """The strings of a batch that stand for missing values as missing ones."""
        pa = arrow()
        from pyarrow import compute

        if not self._words:
            return table  # Arrow has found them
        for j, name in enumerate(table.column_names):
            values = table.column(j)
            if pa.types.is_string(values.type):
                texts = pa.array(sorted(_null_values() - self._words.get(name, frozenset())))
                missing = compute.is_in(values, texts)
                values = compute.if_else(missing, pa.scalar(None, pa.string()), values)
                table = table.set_column(j, name, values)
        return table

    def tables(
        self, file: StoredFile, names: Sequence[str], size: int, wanted: Any
    ) -> Iterator[tuple[int, int, Any]]:
        pa, first = arrow(), 0
        _refuse_empty(file)
        try:
            with self._open(file, names, CSV_BYTES) as opened:
                for batch in opened:
                    stop = first + batch.num_rows
                    rows = _table(batch, names) if wanted(first, stop) else None
                    yield first, stop, None if rows is None else self._with_missing(rows)
                    first = stop
        except (pa.ArrowException, OSError, KeyError) as error:
            raise explained(file, self, found_types=self._types, error=error) from error

    def _open(self, file: StoredFile, names: Sequence[str] | None, n_bytes: int) -> Any:
        from pyarrow import csv

        types = {n: t for n, t in self._types.items() if names is None or n in names}
        if names is None:
            kinds = {n: k for n, k in self._kinds.items() if k in ("category",)}
            types = {name: arrow().string() for name in kinds}
        return csv.open_csv(
            file.system.open_input_stream(file.path, compression="detect"),
            read_options=csv.ReadOptions(
                block_size=n_bytes, autogenerate_column_names=not self._header
            ),
            parse_options=csv.ParseOptions(
                delimiter=self.delimiter(file), newlines_in_values=self._newlines
            ),
            convert_options=csv.ConvertOptions(
                include_columns=None if names is None else [*names],
                column_types=types,
                strings_can_be_null=not self._words,
                decimal_point=self._decimal,
            ),
        )

    @property
    def decimal(self) -> str:
        """The decimal separator."""
        return self._decimal

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kinds of columns that are told."""
        return self._kinds

    @property
    def header(self) -> bool:
        """Whether the first line has the names of the columns."""
        return self._header


def _null_values() -> frozenset[str]:
    """The texts that Arrow takes for missing values in CSV files."""
    from pyarrow import csv

    return frozenset(csv.ConvertOptions().null_values)


def _refuse_empty(file: StoredFile) -> None:
    if file.size == 0:
        raise DataError(f"{file.path} is empty.")


def check_schema(file: StoredFile, found: Any, first: StoredFile, expected: Any) -> None:
    """Refuse a file whose columns are others than those of the first file."""
    for field in expected:
        if field.name not in found.names:
            raise DataError(
                f"{file.path} has no column {field.name!r}, which {first.path} has; it has "
                f"{', '.join(found.names[:10])}."
            )
        there = found.field(field.name).type
        same = kind_of(there) == kind_of(field.type)
        if not same and not arrow().types.is_null(there):
            raise DataError(
                f"{file.path} has a column {field.name!r} of another type than {first.path}: "
                f"{there} instead of {field.type}."
            )
