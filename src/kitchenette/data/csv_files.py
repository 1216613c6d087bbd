"""Files of values separated by commas or other delimiters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Self

from kitchenette.data.csv_errors import explained, guessed_delimiter, refuse_texts_like_numbers
from kitchenette.data.file_reader import FilesReader, TableFormat, refuse_empty, table_of_batch
from kitchenette.data.formats import FileFormat, ReadOptions, register_format
from kitchenette.data.listing import StoredFile
from kitchenette.data.schema import DataError, KnownColumn
from kitchenette.data.tables import arrow

FIRST_BYTES = 1 << 22  # of a CSV file from which the types of columns are found
CSV_BYTES = 1 << 22  # of a CSV file that are parsed at a time


class Csv(TableFormat):
    """Files of values separated by commas or other delimiters."""

    has_types = False

    def __init__(self, options: ReadOptions):
        self.options = options
        self.kinds = {**options.known, **options.kinds}
        self._types: dict[str, Any] = {}
        self._not_missing: dict[str, frozenset[str]] = {}  # that elsewhere stand for missing values

    def delimiter(self, file: StoredFile) -> str:
        """The delimiter, given or detected."""
        return self.options.delimiter or guessed_delimiter(file, self.options.decimal)

    def schema(self, file: StoredFile) -> Any:
        pa = arrow()
        refuse_empty(file)
        try:
            with self._open(file, None, FIRST_BYTES) as opened:
                schema = opened.schema
                first = next(iter(opened), None)
        except (pa.ArrowException, OSError) as error:
            raise explained(file, self, found_types=None, error=error) from error
        repeated = {name for name in schema.names if schema.names.count(name) > 1}
        if repeated:
            raise DataError(f"{file.path}, line 1: names are repeated: {sorted(repeated)[:5]}.")
        for field in schema:
            if pa.types.is_binary(field.type):
                raise DataError(f"{file.path} is not text in UTF-8, in the column {field.name!r}.")
            if first is not None and field.name not in self.kinds:
                refuse_texts_like_numbers(file, self, field.name, first)
        return pa.schema([pa.field(field.name, self._type_of(field)) for field in schema])

    def _type_of(self, field: Any) -> Any:
        """Whole numbers stay, because they may be labels; the reader of features takes floats."""
        pa = arrow()
        kind = self.kinds.get(field.name)
        real = pa.float32() if self.options.precision == "float32" else pa.float64()
        types = {"number": real, "boolean": pa.bool_(), "category": pa.string()}
        if kind in types:
            return types[kind]
        if pa.types.is_floating(field.type) or pa.types.is_null(field.type):
            return real
        return field.type

    def typed(self, schema: Any, labels: Sequence[str]) -> Any:
        """Whole numbers are real ones, except in columns of labels."""
        pa = arrow()
        fields = [
            field.with_type(pa.float64())
            if pa.types.is_integer(field.type) and field.name not in labels
            else field
            for field in schema
        ]
        self._types = {field.name: field.type for field in fields}
        return pa.schema(fields)

    def like(self, columns: Mapping[str, KnownColumn], schema: Any) -> tuple[Self, Any]:
        pa, copied = arrow(), copy(self)
        fields = []
        for field in schema:
            one = columns.get(field.name)
            is_text = pa.types.is_string(field.type)
            if one is not None and one.kind == "category" and not is_text:
                field = field.with_type(pa.string())
            elif one is not None and one.kind == "number" and is_text:
                field = field.with_type(self._type_of(field.with_type(pa.float64())))
            fields.append(field)
        missing_texts = {name: one.categories & _null_values() for name, one in columns.items()}
        copied._not_missing = {
            name: texts for name, texts in missing_texts.items() if texts and name in schema.names
        }
        changed = {field.name: one.kind for field in fields if (one := columns.get(field.name))}
        wanted = pa.schema(fields)
        if wanted == schema and copied._not_missing == self._not_missing:
            return self, schema
        copied.kinds = self.kinds | changed
        copied._types = {field.name: field.type for field in wanted}
        return copied, wanted

    def _with_missing(self, table: Any) -> Any:
        """The strings of a batch that stand for missing values as missing ones."""
        pa = arrow()
        from pyarrow import compute

        if not self._not_missing:
            return table  # Arrow has found them
        for j, name in enumerate(table.column_names):
            values = table.column(j)
            if pa.types.is_string(values.type):
                texts = pa.array(sorted(_null_values() - self._not_missing.get(name, frozenset())))
                missing = compute.is_in(values, texts)
                values = compute.if_else(missing, pa.scalar(None, pa.string()), values)
                table = table.set_column(j, name, values)
        return table

    def tables(
        self, file: StoredFile, names: Sequence[str], size: int, wanted: Any
    ) -> Iterator[tuple[int, int, Any]]:
        pa, first = arrow(), 0
        refuse_empty(file)
        try:
            with self._open(file, names, CSV_BYTES) as opened:
                for batch in opened:
                    stop = first + batch.num_rows
                    rows = table_of_batch(batch, names) if wanted(first, stop) else None
                    yield first, stop, None if rows is None else self._with_missing(rows)
                    first = stop
        except (pa.ArrowException, OSError, KeyError) as error:
            raise explained(file, self, found_types=self._types, error=error) from error

    def _open(self, file: StoredFile, names: Sequence[str] | None, n_bytes: int) -> Any:
        from pyarrow import csv

        types = {n: t for n, t in self._types.items() if names is None or n in names}
        if names is None:
            kinds = {n: k for n, k in self.kinds.items() if k in ("category",)}
            types = {name: arrow().string() for name in kinds}
        return csv.open_csv(
            file.system.open_input_stream(file.path, compression="detect"),
            read_options=csv.ReadOptions(
                block_size=n_bytes, autogenerate_column_names=not self.options.header
            ),
            parse_options=csv.ParseOptions(
                delimiter=self.delimiter(file), newlines_in_values=self.options.newlines
            ),
            convert_options=csv.ConvertOptions(
                include_columns=None if names is None else [*names],
                column_types=types,
                strings_can_be_null=not self._not_missing,
                decimal_point=self.options.decimal,
            ),
        )


def _null_values() -> frozenset[str]:
    """The strings that Arrow takes for missing values in CSV files."""
    from pyarrow import csv

    return frozenset(csv.ConvertOptions().null_values)


register_format(
    FileFormat(
        "csv",
        (".csv", ".tsv"),
        lambda files, options: FilesReader(files, Csv(options), options.kinds, options.labels),
    )
)
