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
    """The parameters of `kitchenette.data.source` that concern the reading of files."""

    kinds: Mapping[str, str] = field(default_factory=dict)  # of columns, as given
    known: Mapping[str, str] = field(default_factory=dict)  # kinds of columns in a fitted model
    labels: Sequence[str] = ()  # columns that may be labels, whose whole numbers stay whole
    precision: str | None = None
    array: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    header: bool = True
    newlines: bool = False

    def __post_init__(self) -> None:
        for name in ("delimiter", "decimal"):
            sign = getattr(self, name)
            if sign is not None and (not isinstance(sign, str) or len(sign) != 1):
                raise ValueError(f"{name} must be one character; got {sign!r}.")


@dataclass(frozen=True)
class FileFormat:
    """A format of files with rows."""

    name: str  # the value of the parameter ``format`` of `kitchenette.data.source`
    endings: tuple[str, ...]  # endings of names of files, such as ".csv"
    # Returns the `Reader` of a list of `StoredFile` and of `ReadOptions`
    reader: Callable[[Sequence[Any], ReadOptions], Reader]


FORMATS: dict[str, FileFormat] = {}


def register_format(added: FileFormat) -> None:
    """Let `kitchenette.data.source` read files of a format, which may replace one of its name."""
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
