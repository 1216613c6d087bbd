"""Formats of files: each is one object, found by its name or by the endings of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kitchenette.data.reader import Reader

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")  # further endings, as in rows.csv.gz


@dataclass(frozen=True)
class ReadOptions:
    """How files are read: the parameters of `kitchenette.data.source` that concern them.

    Attributes
    ----------
    kinds : mapping
        Kinds of columns that are told.
    categories : mapping
        Columns that are categories in a model that is known.
    labels : sequence of str
        Columns that may be labels, whose whole numbers stay whole.
    precision, array, delimiter, decimal, header, newlines
        As in `kitchenette.data.source`.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    categories: Mapping[str, str] = field(default_factory=dict)
    labels: Sequence[str] = ()
    precision: str | None = None
    array: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    header: bool = True
    newlines: bool = False


@dataclass(frozen=True)
class FileFormat:
    """A format of files with rows.

    Attributes
    ----------
    name : str
        The value of the parameter ``format`` of `kitchenette.data.source`.
    endings : tuple of str
        Endings of names of files, such as ".csv".
    reader : callable
        Returns the `Reader` of a list of `StoredFile` and of `ReadOptions`.
    """

    name: str
    endings: tuple[str, ...]
    reader: Callable[[Sequence[Any], ReadOptions], Reader]


FORMATS: dict[str, FileFormat] = {}


def register_format(added: FileFormat) -> None:
    """Let `kitchenette.data.source` read files of a format.

    Parameters
    ----------
    added : FileFormat
        It replaces one of the same name.
    """
    for known in FORMATS.values():
        if known.name != added.name and (taken := {*known.endings} & {*added.endings}):
            raise ValueError(f"Files with the ending {min(taken)} are of the format {known.name}.")
    FORMATS[added.name] = added


def format_of(path: str) -> str | None:
    """The format that the name of a file tells, or None."""
    stem, end = os.path.splitext(path.lower())
    if end in COMPRESSED:
        end = os.path.splitext(stem)[1]
    return next((known.name for known in FORMATS.values() if end in known.endings), None)
