"""Options that say where rows are and what their columns mean."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import typer

from kitchenette.cli.outcome import as_usage
from kitchenette.data import ColumnRules, DataError, Source, source
from kitchenette.data.formats import Csv
from kitchenette.data.listing import FORMATS
from kitchenette.data.schema import checked_kinds
from kitchenette.parameters import check_choice

MODEL_BEGINS = b'{"__metadata__"'
option = partial(typer.Option, rich_help_panel="Files and their columns")


@dataclass(frozen=True)
class FileOptions:
    """How files are read; the fields are options of commands."""

    format: Annotated[
        str | None,
        option(
            "--format",
            metavar="NAME",
            help="parquet, arrow, csv, svmlight or numpy; by default by the file extension.",
        ),
    ] = None
    array: Annotated[
        str | None,
        option(metavar="NAME", help="The array with the rows in a .npz file."),
    ] = None
    delimiter: Annotated[
        str | None,
        option(metavar="CHARACTER", help="Delimiter of CSV files; by default detected."),
    ] = None
    decimal: Annotated[
        str,
        option(metavar="CHARACTER", help="Decimal separator of CSV files."),
    ] = "."
    header: Annotated[
        bool,
        option(
            "--header/--no-header",
            help="Whether CSV files begin with column names; without them, columns are f0, f1, ...",
        ),
    ] = True
    newlines: Annotated[
        bool,
        option("--newlines", help="Quoted values of CSV files may contain line breaks."),
    ] = False

    precision: Annotated[
        str | None,
        option(
            metavar="NAME",
            help="float32, which halves time and memory, or float64; by default that of the files, "
            "and float64 for CSV.",
        ),
    ] = None

    def opened(self, data: Sequence[str], target: Sequence[str] = (), **others: Any) -> Source:
        """The source of some files.

        Parameters
        ----------
        data : sequence of str
            Files, folders or patterns.
        target : sequence of str
            The columns to be predicted.
        **others : dict
            Further options of `kitchenette.data.source`.
        """
        with as_usage():
            self.check()
        for path in data:
            _refuse_model(path)
        try:
            return source(
                data[0] if len(data) == 1 else [*data],
                target=_one_or_several(target),
                **(self.as_keywords() | others),
            )
        except OSError as error:
            raise DataError(f"{error.filename or data[0]}: {error.strerror or error}.") from error
        except ModuleNotFoundError as error:
            raise DataError(
                f"Reading these files needs {error.name}, which is not installed."
            ) from error

    def check(self) -> None:
        """Refuse values that are not allowed, before any file is opened."""
        if self.format is not None:
            check_choice("format", self.format, tuple(sorted({*FORMATS.values()})))
        if self.precision is not None:
            check_choice("precision", self.precision, ("float32", "float64"))
        Csv(delimiter=self.delimiter, decimal=self.decimal)

    def as_keywords(self) -> dict[str, Any]:
        """The same for `kitchenette.data.source`; a model knows what to do with its columns."""
        names = ("format", "array", "delimiter", "decimal", "header", "newlines", "precision")
        return {"dates": "days", **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class RowOptions(FileOptions):
    """How files are read and what becomes of their columns, to learn from them."""

    ignore: Annotated[
        list[str],
        option("--ignore", metavar="NAME", help="A column to ignore."),
    ] = field(default_factory=list)
    kind: Annotated[
        list[str],
        option(
            "--kind",
            metavar="NAME=KIND",
            help="Kind of a column, if not that of its type: number, boolean, category or date.",
        ),
    ] = field(default_factory=list)
    missing: Annotated[
        str,
        option(metavar="NAME", help="Missing values: replaced by the median, or refuse."),
    ] = "median"
    dates: Annotated[
        str,
        option(metavar="NAME", help="Dates: refuse, or days since 1970."),
    ] = "refuse"

    def check(self) -> None:
        super().check()
        ColumnRules(self.missing, self.dates).check()
        checked_kinds(self.kinds())

    def kinds(self) -> dict[str, str]:
        """The kinds of columns by name."""
        pairs = [text.rpartition("=") for text in self.kind]
        for _, separator, kind in pairs:
            if not separator:  # a name may be empty, as pandas.to_csv leaves that of an index
                raise ValueError(f"--kind has a name and a kind, such as zip=category; got {kind}.")
        return {name: kind for name, _, kind in pairs}

    def as_keywords(self) -> dict[str, Any]:
        of_columns = {"ignore": [*self.ignore], "kinds": self.kinds()}
        return super().as_keywords() | of_columns | {"missing": self.missing, "dates": self.dates}


def _refuse_model(path: str) -> None:
    """Refuse a model file in the place of data, whatever its name."""
    if not os.path.isfile(path):
        return  # opening a pipe would wait for somebody who writes
    try:
        with open(path, "rb") as file:
            begins = file.read(len(MODEL_BEGINS) + 8)[8:]  # after the length of the header
    except OSError:
        return  # explained when it is opened
    if begins == MODEL_BEGINS:
        raise DataError(f"{path} is a model file, not a file of rows.")


def _one_or_several(names: Sequence[str]) -> Any:
    if not names:
        return None
    return names[0] if len(names) == 1 else [*names]
