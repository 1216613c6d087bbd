"""Options that several commands share."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from kitchenette.cli.outcome import as_usage
from kitchenette.data import ColumnRules, DataError, Source, source
from kitchenette.data.formats import FORMATS, ReadOptions
from kitchenette.data.schema import checked_kinds
from kitchenette.parameters import check_choice
from kitchenette.selection.settings import EFFORTS

MODEL_BEGINS = b'{"__metadata__"'
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Random seed.")]

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="Files, folders or glob patterns: Parquet, Arrow, CSV, SVMlight, .npy or .npz.",
    ),
]
Target = Annotated[
    list[str],
    typer.Option(
        "--target", metavar="NAME", help="The target column; repeat it for several targets."
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="classification or regression; by default inferred from the target."
    ),
]
Effort = Annotated[
    str,
    typer.Option(
        "--effort",
        metavar="NAME|TIME",
        help="How long the choice may take: fast, balanced, best, or a time such as 10s.",
    ),
]
Time = Annotated[str | None, typer.Option("--time", metavar="10m", help="Approximate time limit.")]
Threads = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Number of threads; by default all.")
]

option = partial(typer.Option, rich_help_panel="Files and their columns")
cluster_option = partial(typer.Option, rich_help_panel="More than one machine")


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
        """The source of files; others are further options of `kitchenette.data.source`."""
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
            check_choice("format", self.format, tuple(sorted(FORMATS)))
        if self.precision is not None:
            check_choice("precision", self.precision, ("float32", "float64"))
        ReadOptions(delimiter=self.delimiter, decimal=self.decimal)

    def as_keywords(self) -> dict[str, Any]:
        """The options as keywords of `kitchenette.data.source`."""
        names = ("format", "array", "delimiter", "decimal", "header", "newlines", "precision")
        return {"dates": "days", **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class RowOptions(FileOptions):
    """How training files and their columns are read."""

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
            if not separator:  # a name may be empty, such as that of the index in pandas.to_csv
                raise ValueError(f"--kind has a name and a kind, such as zip=category; got {kind}.")
        return {name: kind for name, _, kind in pairs}

    def as_keywords(self) -> dict[str, Any]:
        of_columns = {"ignore": [*self.ignore], "kinds": self.kinds()}
        return super().as_keywords() | of_columns | {"missing": self.missing, "dates": self.dates}


@dataclass(frozen=True)
class ClusterOptions:
    """Where a fit runs; the fields are options of ``fit``."""

    scheduler: Annotated[
        str | None,
        cluster_option(
            metavar="ADDRESS",
            help="Fit on a cluster: tcp://... of Dask, spark://... of Spark, or local-processes=4 "
            "on this machine. All workers must be able to read the files.",
        ),
    ] = None
    shard: Annotated[
        str | None,
        cluster_option(metavar="K/N", help="Fit shard K of N of the rows, for a batch queue."),
    ] = None
    statistics_only: Annotated[
        bool,
        cluster_option(
            "--statistics-only", help="Write statistics of a shard, for kitchenette merge."
        ),
    ] = False
    prepared: Annotated[
        Path | None,
        cluster_option(metavar="FILE", help="Statistics of another shard, whose map is used."),
    ] = None

    def check(self, like: Path | None, resume: bool) -> None:
        """Refuse options that do not fit together."""
        self.part()
        if (self.shard is not None or self.prepared is not None) and not self.statistics_only:
            raise ValueError(
                "--shard and --prepared are for --statistics-only: a shard has no model of its own."
            )
        if self.statistics_only and self.scheduler is not None:
            raise ValueError("--statistics-only is for a batch queue; leave out --scheduler.")
        if self.statistics_only and (like is not None or resume):
            raise ValueError(
                "--statistics-only begins anew and chooses its map on a sample of all rows, or "
                "takes that of another shard by --prepared; leave out --like and --resume."
            )
        if self.scheduler is not None and resume:
            raise ValueError("A fit on a cluster writes no checkpoints; leave out --resume.")

    def part(self) -> tuple[int, int]:
        """The number of the shard, and of all shards."""
        if self.shard is None:
            return 1, 1
        number, sign, of = self.shard.partition("/")
        if not (sign and number.isdigit() and of.isdigit()):
            raise ValueError(
                f"--shard is a part and the number of parts, as 3/16; got {self.shard}."
            )
        return int(number), int(of)

    @contextmanager
    def placed(self, rows: Source) -> Iterator[Source]:
        """The rows on the cluster, if there is one."""
        if self.scheduler is None:
            yield rows
            return
        from kitchenette.backends import scheduled

        with as_usage():
            context = scheduled(rows, self.scheduler)
        with context as there:
            yield there


def _refuse_model(path: str) -> None:
    """Refuse a model file given as data, whatever its name."""
    if not os.path.isfile(path):
        return  # opening a pipe would block
    try:
        with open(path, "rb") as file:
            begins = file.read(len(MODEL_BEGINS) + 8)[8:]  # after the length of the header
    except OSError:
        return  # reported when it is opened
    if begins == MODEL_BEGINS:
        raise DataError(f"{path} is a model file, not a file of rows.")


def _one_or_several(names: Sequence[str]) -> Any:
    if not names:
        return None
    return names[0] if len(names) == 1 else [*names]


BYTES = {"": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
BYTES |= {"kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40}
SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


def number_of_bytes(text: str) -> float:
    """A size such as "4GB" in bytes.

    Examples
    --------
    >>> from kitchenette.cli.options import number_of_bytes
    >>> number_of_bytes("4GB"), number_of_bytes("512 MiB")
    (4000000000.0, 536870912.0)
    """
    return _quantity(text, BYTES, "a size such as 4GB or 512MB")


def effort_named(text: str) -> str | float:
    """A name of `EFFORTS`, or a time in seconds."""
    return text if text in EFFORTS else _quantity(text, SECONDS, f"{', '.join(EFFORTS)} or 10s")


def number_of_seconds(text: str) -> float:
    """A time such as "10m" in seconds.

    Examples
    --------
    >>> from kitchenette.cli.options import number_of_seconds
    >>> number_of_seconds("10m"), number_of_seconds("90")
    (600.0, 90.0)
    """
    return _quantity(text, SECONDS, "a time such as 90s, 10m or 2h")


def _quantity(text: str, units: dict[str, float], expected: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-zA-Z]*)\s*", text)
    unit = None if match is None else units.get(match[2].lower())
    if match is None or unit is None:
        raise typer.BadParameter(f"{text!r} is not {expected}.")
    return float(match[1]) * unit
