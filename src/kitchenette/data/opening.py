"""`source`: rows of any kind as a `Source`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from kitchenette.data import arrow_files, csv_files, parquet, svmlight  # noqa: F401 - they register
from kitchenette.data.arrays import ArrayReader
from kitchenette.data.formats import FORMATS, ReadOptions, format_of
from kitchenette.data.listing import StoredFile, files_at
from kitchenette.data.reader import Reader
from kitchenette.data.schema import ColumnRules, DataError, KnownColumn, checked_kinds
from kitchenette.data.source import Source
from kitchenette.data.tables import frame_reader, is_frame, table_of
from kitchenette.parameters import check_choice


def source(
    data: Any,
    *,
    target: Any = None,
    weight: Any = None,
    ignore: str | Sequence[str] = (),
    missing: str = "median",
    dates: str = "refuse",
    kinds: Mapping[str, str] | None = None,
    precision: str | None = None,
    passes: int = 2,
    most_categories: int = 64,
    format: str | None = None,  # noqa: A002 - the word that users of files know
    array: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    header: bool = True,
    newlines: bool = False,
    like: Any = None,
) -> Source:
    r"""Rows of any kind, to be learned and predicted in blocks.

    Parameters
    ----------
    data : array, sparse matrix, data frame, path or list of paths
        An array of NumPy; a sparse matrix; a frame of pandas, polars (also lazy) or pyarrow, or a
        duckdb relation; or files: Parquet, Arrow or Feather, CSV, SVMlight, .npy, which is mapped
        into memory, and .npz. A path may be a file, a directory, which is searched for files, or a
        pattern with * and **; addresses such as s3://bucket/folder work, too.
    target : str, list of str, or array, optional
        The column to be predicted, or several; for data without names, an array with a value for
        each row. SVMlight files have their own.
    weight : str or array, optional
        The column of weights, or an array.
    ignore : str or sequence of str, optional
        Columns that are left out.
    missing : {"median", "refuse"}, default="median"
        What becomes of missing values, see `ColumnRules`.
    dates : {"refuse", "days"}, default="refuse"
        What becomes of dates, see `ColumnRules`.
    kinds : dict, optional
        The kinds of columns by name, "number", "boolean", "category" or "date", where the stored
        type says something else, as for numbers that are codes.
    precision : {"float32", "float64"}, optional
        The precision of numbers; by default as they are stored.
    passes : {1, 2, 3}, default=2
        How often rows of files are read. 2: first for the sample that a model is prepared on, which
        is chosen by the values of the rows, so that the same rows give the same model whatever
        their order and format. 1: the sample is chosen by the places of the rows. 3: categories and
        missing values are looked up in all rows, instead of in the sample.
    most_categories : int, default=64
        The largest number of indicator columns of a column of categories.
    format : {"parquet", "arrow", "csv", "svmlight", "numpy"}, optional
        The format of files, if their names do not tell.
    array : str, optional
        The name of the array of rows in a .npz file; its other arrays may be targets and weights.
    delimiter : str, optional
        The delimiter of CSV files; by default the most frequent one of the first line.
    decimal : str, default="."
        The decimal separator of CSV files.
    header : bool, default=True
        Whether the first line of CSV files has the names of the columns.
    newlines : bool, default=False
        Whether values of CSV files may contain line breaks, in quotes.
    like : KernelRegressor, KernelClassifier or KernelPCA, optional
        A fitted model. Columns that it knows are read as it has them: "00501" and "NA" as
        strings, if it has learned strings. Its methods read any source in that way; this is for
        CSV files that cannot be opened otherwise, such as numbers with a few strings among them.

    Returns
    -------
    source : Source

    Examples
    --------
    >>> import os, tempfile
    >>> from kitchenette.data import source
    >>> path = os.path.join(tempfile.mkdtemp(), "cities.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("city,people,large\nOslo,0.7,no\nParis,2.1,yes\nRome,2.7,yes\n")
    >>> cities = source(path, target="large")
    >>> cities.schema["city"].kind, cities.features
    ('category', ['city', 'people'])
    >>> next(cities.blocks()).y.tolist()
    ['no', 'yes', 'yes']
    """
    given_kinds = checked_kinds(kinds)
    columns = {} if like is None else like.known_columns()
    _check_contradictions(given_kinds, columns)
    rules = ColumnRules(missing, dates, most_categories)
    options: dict[str, Any] = {"ignore": [ignore] if isinstance(ignore, str) else [*ignore]}
    options |= {"rules": rules, "precision": precision, "passes": passes}
    if isinstance(data, Source):
        raise ValueError("This is a source already.")
    reader: Reader
    if sp.issparse(data) or (isinstance(data, np.ndarray) and data.dtype.kind in "biuf"):
        reader = ArrayReader(data)
    elif isinstance(data, str | os.PathLike) or _are_paths(data):
        reading = ReadOptions(
            kinds=given_kinds,
            known={n: one.kind for n, one in columns.items() if one.kind == "category"},
            labels=_names(target),
            precision=precision,
            array=array,
            delimiter=delimiter,
            decimal=decimal,
            header=header,
            newlines=newlines,
        )
        reader = _file_reader(data, format, reading)
        target, weight = _stored(target, reader.arrays), _stored(weight, reader.arrays)
        target = reader.label if target is None else target
    elif is_frame(data) or isinstance(data, Mapping) or hasattr(data, "__arrow_c_stream__"):
        reader = frame_reader(table_of(data) if isinstance(data, Mapping) else data, given_kinds)
    else:
        raise DataError(
            "A source is an array of numbers, a sparse matrix, a data frame, or files; got "
            f"{type(data).__name__}."
        )
    return Source.of(reader.read_as(columns), target=target, weight=weight, **options)


def _check_contradictions(kinds: Mapping[str, str], columns: Mapping[str, KnownColumn]) -> None:
    """Refuse given kinds that are not those of a model."""
    for name, kind in kinds.items():
        theirs = columns[name].kind if name in columns else kind
        if theirs != kind and {theirs, kind} != {"number", "boolean"}:
            raise DataError(
                f"The column {name!r} is a {theirs} of the model, not a {kind}: leave out its kind."
            )


def _are_paths(data: Any) -> bool:
    return isinstance(data, list | tuple) and all(isinstance(p, str | os.PathLike) for p in data)


def _names(target: Any) -> list[str]:
    if isinstance(target, str):
        return [target]
    listed = target if isinstance(target, list | tuple) else []
    return [name for name in listed if isinstance(name, str)]


def _stored(role: Any, others: Mapping[str, Any]) -> Any:
    """The array of a .npz file that a name stands for."""
    if isinstance(role, str) and others:
        if role not in others:
            raise DataError(f"There is no array {role!r}; there are {', '.join(others)}.")
        return others[role]
    return role


def _file_reader(data: Any, name: str | None, options: ReadOptions) -> Reader:
    """The reader of files."""
    path = os.fspath(data) if isinstance(data, str | os.PathLike) else ""
    if name is None and format_of(path) == "numpy" and os.path.isfile(path):
        files = [StoredFile(path, None)]  # which needs no pyarrow
    else:
        files = files_at(data)
    name = _common_format(files) if name is None else name
    check_choice("format", name, tuple(sorted(FORMATS)))
    return FORMATS[name].reader(files, options)


def _common_format(files: Sequence[StoredFile]) -> str:
    formats = {format_of(file.path) for file in files}
    if len(formats) > 1 or None in formats:
        strange = next((f.path for f in files if format_of(f.path) is None), files[0].path)
        raise DataError(
            f"The format of {strange} is not clear from its name, or there are files of several "
            "formats: say which by format=..., or name the files."
        )
    return str(formats.pop())
