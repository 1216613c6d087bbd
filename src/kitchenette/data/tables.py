"""Tables with named columns, all as Arrow tables: data frames of any library, and their values.

pyarrow and narwhals are imported when they are needed; ``pip install 'kitchenette[files]'``
installs both.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.reader import Indices, Part, Reader, without_unwanted
from kitchenette.data.rows import slices
from kitchenette.data.schema import Column, DataError, Schema, refuse_repeated_names

CHUNK_ROWS = 1 << 10  # rows that are transposed at a time, so that they stay in the cache
SINGLE = ("float", "halffloat", "int8", "int16", "uint8", "uint16", "bool")  # exact in float32
DAY = 86_400e9  # nanoseconds
INDEX = re.compile(r"__index_level_\d+__")  # how pandas names an index without a name in files
LIBRARIES = ("pandas", "polars", "pyarrow", "modin", "duckdb", "_duckdb", "ibis", "sqlframe")


def arrow() -> Any:
    """The module pyarrow; a sentence if it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Files, and tables with strings, dates or missing values, are read by pyarrow and "
            "narwhals: pip install 'kitchenette[files]'."
        ) from error
    return pyarrow


def is_frame(X: Any) -> bool:
    """Whether something is a table of one of the libraries that `table_of` takes."""
    kind = type(X)  # asking a lazy frame itself for its columns may be expensive
    return kind.__module__.partition(".")[0] in LIBRARIES and hasattr(kind, "columns")


def is_plain_frame(X: Any) -> bool:
    """Whether something is a data frame whose columns are indexed by a list of names."""
    return type(X).__module__.partition(".")[0] in ("pandas", "polars", "modin")


# ---------------------------------------------------------------- conversion of frames


def table_of(frame: Any) -> Any:
    """A data frame of pandas, polars, pyarrow, duckdb or any library of narwhals, as a table."""
    pa = arrow()
    if isinstance(frame, pa.Table):
        table = frame
    elif isinstance(frame, pa.RecordBatch):
        table = pa.Table.from_batches([frame])
    elif isinstance(frame, Mapping):
        # Among Python objects, NaN is a missing value, as in a data frame.
        objects = {n for n, v in frame.items() if isinstance(v, np.ndarray) and v.dtype.kind == "O"}
        table = pa.table(
            {n: pa.array(v, from_pandas=True) if n in objects else v for n, v in frame.items()}
        )
    else:
        table = _eager(frame)
    refuse_repeated_names(table.column_names)
    return table


def with_text_names(frame: Any) -> Any:
    """A frame of pandas whose names of columns are strings, if some of them are; different ones."""
    names = [*frame.columns]
    refuse_repeated_names(names)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts) and hasattr(frame, "set_axis"):
        frame = frame.set_axis([str(name) for name in names], axis=1)
        refuse_repeated_names([*frame.columns])
    return frame


def columns_by_name(frame: Any, names: Sequence[str]) -> Any:
    """The columns of a data frame with these names, in this order."""
    frame, names = with_text_names(frame), [*names]
    given = [*frame.columns]
    if given == names:
        return frame
    refuse_missing_columns(names, given)
    return frame[names]


def refuse_missing_columns(names: Sequence[str], given: Sequence[Any]) -> None:
    """Refuse columns among which some of these names are missing."""
    there = set(given)
    if missing := [str(name) for name in names if name not in there]:
        others = f"{', '.join(map(str, given[:10]))}{', ...' if len(given) > 10 else ''}"
        raise DataError(f"columns are missing: {', '.join(missing[:10])}. There are {others}.")


def _eager(frame: Any) -> Any:
    pa, wrapped = arrow(), _narwhals_frame(frame)
    if hasattr(wrapped, "collect"):
        return wrapped.collect(backend="pyarrow").to_native()
    if type(frame).__module__.startswith("pandas"):
        if not all(isinstance(name, str) for name in frame.columns):
            frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        try:
            return pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            named = re.search(r"for column (.+) with type", str(error.args[-1]))
            raise DataError(
                f"{f'The column {named[1]!r}' if named else 'A column'} has values of several "
                "types, or of one that is neither a number nor a string, a boolean or a date "
                f"({error.args[0]}). Convert it first, for example by astype(str), or leave it out."
            ) from error
    return wrapped.to_arrow()


def _narwhals_frame(frame: Any) -> Any:
    try:
        import narwhals
    except ImportError as error:
        raise ImportError(
            "Data frames with strings, dates or missing values are read by narwhals and pyarrow: "
            "pip install 'kitchenette[files]'."
        ) from error
    try:
        return narwhals.from_native(frame)
    except TypeError as error:
        raise DataError(f"{type(frame).__name__} is not a supported data frame.") from error
    except narwhals.exceptions.DuplicateError:
        refuse_repeated_names([*frame.columns])
        raise


def has_numbers_only(frame: Any) -> bool:
    """Whether all values of a data frame are numbers or booleans, and none is missing."""
    if type(frame).__module__.startswith("pandas"):
        dtypes = [*frame.dtypes]
        if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes):
            real = [j for j, dtype in enumerate(dtypes) if dtype.kind == "f"]
            return not np.isnan(frame.iloc[:, real].to_numpy()).any()
    table = table_of(frame)
    for values in table.columns:
        if kind_of(values.type) not in ("number", "boolean") or values.null_count:
            return False
        if np.isnan(numbers_of(values, "number")).any():
            return False
    return True


def selected(table: Any, names: Sequence[str]) -> Any:
    """The columns of a table with these names, in this order."""
    given = table.column_names
    if given == [*names]:
        return table
    refuse_missing_columns(names, given)
    return table.select([*names])


def plain_rows(table: Any, names: Sequence[str] | None = None) -> NDArray[Any]:
    """The columns of a table as a matrix, NaN where values are missing; they must be numbers."""
    if names is not None:
        table = selected(table, names)
    for name, values in zip(table.column_names, table.columns, strict=True):
        if kind_of(values.type) not in ("number", "boolean"):
            raise DataError(
                f"The column {name!r} has values of the type {values.type}, and the model was "
                "fitted on numbers."
            )
    columns = [numbers_of(values, "number") for values in table.columns]
    single = all(is_single(values.type) for values in table.columns)
    return matrix_of(columns, table.num_rows, np.float32 if single else np.float64)


class TableReader(Reader):
    """The rows of a table in memory."""

    in_memory = True

    def __init__(self, table: Any, kinds: Mapping[str, str]):
        self._table = table
        self.schema = schema_of(table.schema, kinds)
        self.n_rows = table.num_rows

    def parts(
        self, names: Sequence[str], start: int, size: int, wanted: Indices | None = None
    ) -> Iterator[Part]:
        table = self._table.select([*names])
        for part in slices(table.num_rows - start, size):
            first = part.start + start
            if not without_unwanted(first, part.stop + start, wanted):
                yield first, table.slice(first, part.stop - part.start)

    def fingerprint(self) -> str:
        from kitchenette.comparison import digest

        table = self._table
        hashes = [hash_of_column(column) for column in table.columns]
        return digest([table.num_rows, [str(field) for field in table.schema], hashes])


def hash_of_column(column: Any) -> str:
    """A digest of the values of a column, whatever its chunks."""
    from hashlib import blake2b

    hasher = blake2b(digest_size=16)
    for part in slices(len(column), 1 << 16):
        values = column.slice(part.start, part.stop - part.start).combine_chunks()
        hasher.update(repr(values.to_pylist()).encode())
    return hasher.hexdigest()


class LazyReader(Reader):
    """The rows of a query that is run again for every pass: a lazy frame or a duckdb relation."""

    def __init__(self, query: Any, kinds: Mapping[str, str]):
        self._query = query
        self._is_polars = type(query).__module__.startswith("polars")
        if self._is_polars:
            empty = query.head(0).collect().to_arrow()
        else:
            empty = query.limit(0).to_arrow_table()
        self.schema = schema_of(empty.schema, kinds)
        self.n_rows = None

    def parts(
        self, names: Sequence[str], start: int, size: int, wanted: Indices | None = None
    ) -> Iterator[Part]:
        first = 0
        for table in self._batches([*names], size):
            stop = first + table.num_rows
            if stop > start and not without_unwanted(first, stop, wanted):
                skipped = max(0, start - first)
                yield first + skipped, table.slice(skipped)
            first = stop

    def _batches(self, names: list[str], size: int) -> Iterable[Any]:
        pa = arrow()
        if self._is_polars:
            query = self._query.select(names)
            if hasattr(query, "collect_batches"):
                batches = query.collect_batches(chunk_size=size, maintain_order=True)
            else:  # before polars 1.34
                whole = query.collect()
                batches = (whole[part] for part in slices(whole.height, size))
            return (batch.to_arrow() for batch in batches)
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        reader = self._query.project(columns).to_arrow_reader(size)
        return (pa.Table.from_batches([batch]) for batch in reader)

    def fingerprint(self) -> str:
        plan = self._query.explain()
        from kitchenette.comparison import digest

        return digest([plan, [repr(column) for column in self.schema]])


def frame_reader(frame: Any, kinds: Mapping[str, str]) -> Reader:
    """The reader of a data frame, a lazy frame of polars or a duckdb relation."""
    module, name = type(frame).__module__, type(frame).__name__
    if module.startswith("polars") and name == "LazyFrame":
        return LazyReader(frame, kinds)
    if name == "DuckDBPyRelation":
        return LazyReader(frame, kinds)
    return TableReader(table_of(frame), kinds)


# ---------------------------------------------------------------- kinds and values of columns


def kind_of(dtype: Any) -> str:
    """The kind of a column of an Arrow type; "other" for types that are not supported."""
    types = arrow().types
    if types.is_dictionary(dtype):
        dtype = dtype.value_type
        return "date" if types.is_temporal(dtype) else "category"
    if types.is_boolean(dtype):
        return "boolean"
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "number"
    if types.is_null(dtype):
        return "number"
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return "category"
    return "date" if types.is_temporal(dtype) else "other"


def stored_kind(dtype: Any) -> str:
    """The kind of the values of an Arrow type, of which categories may be any."""
    is_dictionary = arrow().types.is_dictionary(dtype)
    return kind_of(dtype.value_type if is_dictionary else dtype)


def schema_of(arrow_schema: Any, kinds: Mapping[str, str]) -> Schema:
    """The schema of a table, of which some kinds are given.

    Metadata of pandas, which Parquet and Arrow files keep, say which columns are the index, and
    which ones are categories though their values are numbers.
    """
    index, categories = index_names(arrow_schema), _pandas_categories(arrow_schema)
    columns = []
    for field in arrow_schema:
        kind = kind_of(field.type)
        if field.name in categories and kind in ("number", "boolean"):
            kind = "category"
        is_given = field.name in kinds
        kind = kinds.get(field.name, kind)
        columns.append(Column(field.name, kind, str(field.type), field.name in index, is_given))
    unknown = [name for name in kinds if name not in arrow_schema.names]
    if unknown:
        raise DataError(
            f"kinds: there is no column {unknown[0]!r}; there are "
            f"{', '.join(arrow_schema.names[:10])}."
        )
    return Schema(tuple(columns))


def index_names(arrow_schema: Any) -> set[str]:
    """The columns of a table that are the index of a data frame of pandas."""
    listed = _pandas_metadata(arrow_schema).get("index_columns") or ()
    named = {name for name in listed if isinstance(name, str)}  # others are ranges without values
    return named | {name for name in arrow_schema.names if INDEX.fullmatch(name)}


def without_index(table: Any) -> Any:
    """A table without the index of pandas, unless that is all it has."""
    index = index_names(table.schema)
    kept = [name for name in table.column_names if name not in index]
    return table.select(kept) if kept else table


def _pandas_categories(arrow_schema: Any) -> set[str]:
    columns = _pandas_metadata(arrow_schema).get("columns") or ()
    return {
        str(column.get("field_name", column.get("name")))
        for column in columns
        if isinstance(column, dict) and column.get("pandas_type") == "categorical"
    }


def _pandas_metadata(arrow_schema: Any) -> dict[str, Any]:
    """What pandas has noted about the columns of a table; nothing if that is not JSON."""
    try:
        metadata = json.loads((arrow_schema.metadata or {}).get(b"pandas", b"{}"))
    except ValueError:
        return {}
    return metadata if isinstance(metadata, dict) else {}


def is_single(dtype: Any) -> bool:
    """Whether all values of an Arrow type are exact in float32."""
    return str(dtype) in SINGLE


def numbers_of(values: Any, kind: str, name: str = "") -> NDArray[Any]:
    """The values of a column of numbers, booleans or dates as floats, NaN where they are missing.

    Dates become days since the beginning of 1970 in UTC, and lengths of time days.
    """
    pa, dtype = arrow(), values.type
    types = pa.types
    if types.is_dictionary(dtype):
        values, dtype = values.cast(dtype.value_type), dtype.value_type
    try:
        if kind == "date":
            return _days_of(values, dtype)
        if types.is_null(dtype):
            return np.full(len(values), np.nan, np.float32)
        if types.is_boolean(dtype):
            values = values.cast(pa.uint8())
        elif types.is_decimal(dtype) or kind_of(dtype) == "category":
            values = values.cast(pa.float64())
        elif types.is_temporal(dtype):
            raise DataError(f"The column {name!r} has dates, not numbers as before.")
        elif kind_of(dtype) == "other":
            raise DataError(f"The column {name!r} has values of the type {dtype}, not numbers.")
    except pa.ArrowInvalid as error:
        raise DataError(f"The column {name!r} has no numbers as before: {error}.") from error
    return np.asarray(values.to_numpy(zero_copy_only=False) if _is_array(values) else values)


def _is_array(values: Any) -> bool:
    return not hasattr(values, "chunks")


def values_of(values: Any, name: str, kind: str | None = None, place: Any = None) -> NDArray[Any]:
    """The values of a column of targets or weights, of which none may be missing.

    ``kind`` is that of the column, by default that of its type; ``place`` has the numbers of the
    rows, a slice or an array, for the error message.
    """
    kind = kind_of(values.type) if kind is None else kind
    if values.null_count:
        row = int(np.flatnonzero(values.is_null().to_numpy())[0])
        raise _missing_in(name, place, row)
    if kind == "category":
        codes, texts = categories_of(values)
        return np.array(texts, dtype=object)[codes]
    if kind == "boolean":
        return np.asarray(values.cast(arrow().bool_()).to_numpy())
    return numbers_of(values, kind, name)


def finite(values: NDArray[Any], name: str, place: Any) -> NDArray[Any]:
    """The values of a column of targets or weights, refused if some are NaN or infinite.

    ``place`` has the row indices, a slice or an array, for the error message.
    """
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        if np.isnan(values[row]):
            raise _missing_in(name, place, row)
        raise DataError(
            f"The column {name!r} is a target or a weight, and infinite in row "
            f"{row_number(place, row)} (counted from zero). Remove such rows first."
        )
    return values


def row_number(place: Any, row: int) -> int:
    """The row index in the source of a row of a block at ``place``."""
    return int(place.start + row if isinstance(place, slice) else place[row])


def _missing_in(name: str, place: Any, row: int) -> DataError:
    where = "" if place is None else f" in row {row_number(place, row)} (counted from zero)"
    return DataError(
        f"The column {name!r} is a target or a weight, and a value is missing{where}. "
        "Remove such rows first."
    )


def _days_of(values: Any, dtype: Any) -> NDArray[np.float64]:
    pa = arrow()
    types = pa.types
    if types.is_duration(dtype):
        values = values.cast(pa.duration("ns"))
    elif types.is_time(dtype):
        values = values.cast(pa.time64("ns"))
    elif types.is_temporal(dtype):
        values = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return np.asarray(values.cast(pa.float64(), safe=False).to_numpy()) / (DAY / 1e3)
    else:
        raise pa.ArrowInvalid(f"{dtype} is no date")
    numbers = values.cast(pa.int64()).cast(pa.float64(), safe=False)
    return np.asarray(numbers.to_numpy()) / DAY


def categories_of(values: Any) -> tuple[NDArray[np.int64], list[str]]:
    """The categories of a column as texts, and for each row which one it is, or -1 if missing."""
    pa = arrow()
    if pa.types.is_dictionary(values.type):
        if not _is_array(values):
            values = values.unify_dictionaries().combine_chunks()
        if not _is_array(values):  # several chunks, or none, have one dictionary by now
            values = values.chunk(0) if values.num_chunks else pa.array([], pa.string())
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
        values = values.unify_dictionaries().combine_chunks() if not _is_array(values) else values
    texts = [text_of(text) for text in values.dictionary.to_pylist()]
    # The indices of polars are unsigned.
    codes = values.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    if len({*texts}) < len(texts) or None in texts:
        codes, texts = _distinct(codes, texts)
    return codes, [str(text) for text in texts]


def _distinct(codes: NDArray[np.int64], texts: list[str | None]) -> Any:
    """Codes and texts after categories of equal text are united; those without text are missing."""
    places: dict[str, int] = {}
    moved = [-1 if text is None else places.setdefault(text, len(places)) for text in texts]
    return np.array([*moved, -1])[codes], list(places)


def text_of(value: Any) -> str | None:
    """The text of a category, "2" for the number 2.0; None for a missing value."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return sys.intern(str(value))


def matrix_of(columns: Sequence[NDArray[Any]], n_rows: int, dtype: Any) -> NDArray[Any]:
    """Columns side by side as a matrix with contiguous rows."""
    out = np.empty((n_rows, len(columns)), dtype)
    for rows in slices(n_rows, CHUNK_ROWS):
        for j, column in enumerate(columns):
            out[rows, j] = column[rows]
    return out
