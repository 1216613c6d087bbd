"""Options that say where rows are and what their columns mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kitchenette.data import DataError, Source, source


@dataclass(frozen=True)
class RowOptions:
    """How files are read.

    Attributes
    ----------
    ignore : sequence of str
        Columns that are left out.
    missing, dates : str
        What becomes of missing values and of dates.
    format, delimiter, decimal : str or None
        Of files.
    passes : int
        Whether categories are looked up in all rows first.
    """

    ignore: Sequence[str] = ()
    missing: str = "median"
    dates: str = "refuse"
    format: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    passes: int = 1

    def opened(
        self, data: Sequence[str], target: Sequence[str] = (), weight: str | None = None
    ) -> Source:
        """The source of some files."""
        try:
            made = source(
                data[0] if len(data) == 1 else [*data],
                target=_one_or_several(target),
                weight=weight,
                ignore=[*self.ignore],
                missing=self.missing,
                dates=self.dates,
                format=self.format,
                delimiter=self.delimiter,
                decimal=self.decimal,
                passes=self.passes,
            )
        except OSError as error:
            raise DataError(f"{error.filename or data[0]}: {error.strerror or error}.") from error
        except ModuleNotFoundError as error:
            raise DataError(
                f"Reading these files needs {error.name}, which is not installed."
            ) from error
        return made


def _one_or_several(names: Sequence[str]) -> Any:
    if not names:
        return None
    return names[0] if len(names) == 1 else [*names]
