"""Codes of values that are not numbers: categories, hashed categories and dates."""

from __future__ import annotations

import numbers
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from hashlib import blake2b
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.csv_errors import NULLS
from kitchenette.data.schema import DataError
from kitchenette.data.tables import categories_of, numbers_of, stored_kind, text_of
from kitchenette.files.fields import Interval, Options, field_values
from kitchenette.files.registry import storable

UNKNOWN_CATEGORY = -1.0  # the code of an unknown category
NONE_CODE = -2.0  # the code of None; NaN stays NaN
MOST_BUCKETS = 1 << 20  # so that a file cannot ask for memory that its columns do not have
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


class Coding(ABC):
    """The numbers that stand for the values of a column."""

    column: int

    @abstractmethod
    def code(self, value: Any, name: str = "") -> float:
        """The number of a value as Python has it, in the column of this name."""

    @abstractmethod
    def of_table(self, values: Any, name: str = "") -> NDArray[np.float64]:
        """The numbers of a column of an Arrow table, NaN where values are missing."""

    def codes(self, values: Any, name: str = "") -> NDArray[np.float64]:
        """The numbers of an array of objects."""
        return np.array([self.code(value, name) for value in np.asarray(values, dtype=object)])


@storable
@dataclass(frozen=True, eq=True)
class Vocabulary(Coding):
    """The categories of a column of strings; each is coded by its position."""

    column: int  # the column
    categories: tuple[str, ...]  # in the order of their codes

    @cached_property
    def _table(self) -> dict[Any, float]:
        return {
            None: NONE_CODE,
            **{category: float(place) for place, category in enumerate(self.categories)},
        }

    def code(self, value: Any, name: str = "") -> float:
        """The code of a string, None or NaN."""
        if isinstance(value, float) and value != value:
            return np.nan
        if value is None or isinstance(value, str):
            return self._table.get(value, UNKNOWN_CATEGORY)
        return UNKNOWN_CATEGORY

    def of_table(self, values: Any, name: str = "") -> NDArray[np.float64]:
        codes, texts = categories_of(values)
        codes_of_texts = [self._table.get(text, UNKNOWN_CATEGORY) for text in texts]
        return np.array([*codes_of_texts, np.nan])[codes]  # -1, missing, is the last one

    def __getstate__(self) -> dict[str, Any]:
        return field_values(self)

    def check(self) -> None:
        """Refuse repeated categories."""
        if len({*self.categories}) < len(self.categories):
            raise ValueError("the categories must be different.")


# What the values of a column of categories may be, and which kinds of columns can be read as such.
VALUES = {
    "string": ("category",),
    "number": ("category", "number", "boolean"),
    "boolean": ("category", "number", "boolean"),
    "date": ("category", "date"),
}
Values = Annotated[str, Options(*VALUES)]
WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
BOOLEANS = {"true": "true", "1": "true", "false": "false", "0": "false"}


class Texts(Coding):
    """Categories, which are coded by their texts.

    ``values`` are what they were when the model was fitted: "string", "number", "boolean" or
    "date". Among strings "00501", "501" and "501.0" differ; among numbers they are the same, and
    strings are read as numbers. A missing value is NaN, whatever stands for it.
    """

    values: str

    @abstractmethod
    def code_of(self, text: str) -> float:
        """The number of a text, which is spelled as the values are."""

    @property
    @abstractmethod
    def example(self) -> str:
        """A short description of the values."""

    def code(self, value: Any, name: str = "") -> float:
        if type(value) is str and self.values == "string":
            return self.code_of(value)
        text = text_of(value)
        if text is None:
            return np.nan
        if self.values == "string" and not isinstance(value, str):
            what = "number" if isinstance(value, numbers.Number) else type(value).__name__
            raise ValueError(
                f"The column {name!r} has the {what} {value!r:.40}, and the model has "
                f"{self.example}. Pass a string."
            )
        return self._coded(text)

    def of_table(self, values: Any, name: str = "") -> NDArray[np.float64]:
        codes, texts = categories_of(values)
        if stored_kind(values.type) not in VALUES[self.values] and (codes >= 0).any():
            raise DataError(
                f"The column {name!r} has values of the type {values.type}, and the model has "
                f"{self.example}. Read them as strings, as pandas.read_csv does by "
                f"dtype={{{name!r}: str}}."
            )
        return np.array([*map(self._coded, texts), np.nan])[codes]  # -1, missing, is the last one

    def _coded(self, text: str) -> float:
        spelled = self._spelled(text)
        return np.nan if spelled is None else self.code_of(spelled)

    def _spelled(self, text: str) -> str | None:
        """A text as the values are spelled, "2" for "2.0" among numbers; None for NaN."""
        if self.values == "boolean":
            return BOOLEANS.get(text.lower(), text)
        if self.values != "number":
            return text
        if text in ("true", "false"):
            return str(int(text == "true"))
        try:
            return text_of(int(text) if WHOLE.fullmatch(text) else float(text.replace("_", "?")))
        except ValueError:
            return text


def unknown_code(values: str, text: str) -> float:
    """The code of a text that was not in the data: missing, if it stands for that in CSV files."""
    return np.nan if values == "string" and text in NULLS else UNKNOWN_CATEGORY


@storable
@dataclass(frozen=True, eq=True)
class Categories(Texts, Vocabulary):
    """The categories of a column, which may be numbers and booleans as well as strings."""

    values: Values = "string"

    @property
    def example(self) -> str:
        example = "" if not self.categories else f" such as {self.categories[0]!r:.40}"
        return f"{self.values}s{example}"

    def code_of(self, text: str) -> float:
        return self._table.get(text, unknown_code(self.values, text))


@storable
@dataclass(frozen=True, eq=True)
class HashedCategories(Texts):
    """Categories that are coded by a hash function."""

    column: int  # the column
    n_buckets: Annotated[int, Interval(1, MOST_BUCKETS)]  # the codes are below this number
    # "string", "number", "boolean", "date": what the values were in the data
    values: Values = "string"
    # Those that also stand for missing values in CSV files, such as "NA"
    categories: tuple[str, ...] = ()

    @property
    def example(self) -> str:
        return f"{self.values}s"

    def code_of(self, text: str) -> float:
        unknown = unknown_code(self.values, text)
        if unknown != UNKNOWN_CATEGORY and text not in self.categories:
            return unknown
        digest = blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
        return float(int.from_bytes(digest, "little") % self.n_buckets)


@storable
@dataclass(frozen=True, eq=True)
class Days(Coding):
    """Dates and times as days since the beginning of 1970 in UTC; lengths of time as days.

    Times without a time zone are taken as they are.
    """

    column: int  # the column

    def code(self, value: Any, name: str = "") -> float:
        if value is None or value != value:  # NaT is not equal to itself either
            return np.nan
        if isinstance(value, np.datetime64 | np.timedelta64):
            value = value.astype("M8[us]" if isinstance(value, np.datetime64) else "m8[us]").item()
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
            return (zoned - EPOCH) / DAY
        if isinstance(value, date):
            return float(value.toordinal() - EPOCH.toordinal())
        if isinstance(value, timedelta):
            return value / DAY
        if isinstance(value, time):
            return (datetime.combine(date.min, value) - datetime.min) / DAY
        raise ValueError(f"{value!r:.40} is not a date or a time.")

    def of_table(self, values: Any, name: str = "") -> NDArray[np.float64]:
        return np.asarray(numbers_of(values, "date", name), dtype=np.float64)
