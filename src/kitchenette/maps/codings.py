"""How the values of columns that are no numbers become numbers: words, hashed words and dates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from hashlib import blake2b
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.tables import numbers_of, text_of, words_of
from kitchenette.files.registry import Budget, checked_state, from_fields, storable
from kitchenette.parameters import check_count

UNKNOWN_WORD = -1.0  # the code of a word that no step knows
NO_WORD = -2.0  # the code of None; NaN stays NaN
MOST_BUCKETS = 1 << 20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


class Coding(ABC):
    """The numbers that stand for the values of a column.

    Attributes
    ----------
    column : int
        The column.
    """

    column: int

    @abstractmethod
    def code(self, value: Any) -> float:
        """The number of a value as Python has it."""

    @abstractmethod
    def of_table(self, values: Any) -> NDArray[np.float64]:
        """The numbers of a column of an Arrow table, NaN where values are missing."""

    def codes(self, values: Any) -> NDArray[np.float64]:
        """The numbers of an array of objects."""
        return np.array([self.code(value) for value in np.asarray(values, dtype=object)])


@storable
@dataclass(frozen=True, eq=True)
class Vocabulary(Coding):
    """The words of a column of strings; each is coded by its place.

    Attributes
    ----------
    column : int
        The column.
    words : tuple of str
        The words.
    """

    column: int
    words: tuple[str, ...]

    @cached_property
    def _table(self) -> dict[Any, float]:
        return {None: NO_WORD, **{word: float(place) for place, word in enumerate(self.words)}}

    def code(self, value: Any) -> float:
        """The code of a string, None or NaN."""
        if isinstance(value, float) and value != value:
            return np.nan
        if value is None or isinstance(value, str):
            return self._table.get(value, UNKNOWN_WORD)
        return UNKNOWN_WORD

    def of_table(self, values: Any) -> NDArray[np.float64]:
        codes, words = words_of(values)
        known = [self._table.get(word, UNKNOWN_WORD) for word in words]
        return np.array([*known, np.nan])[codes]  # -1, a missing word, is the last one

    def __getstate__(self) -> dict[str, Any]:
        return {"column": self.column, "words": self.words}

    def to_file(self) -> dict[str, Any]:
        """All values, for a model file."""
        return {"column": self.column, "words": np.array(self.words, dtype=object)}

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A vocabulary from the untrusted values of a model file."""
        state = checked_state(state, {"column": int, "words": np.ndarray})
        words = tuple(state["words"].tolist())
        if not all(isinstance(word, str) for word in words) or len({*words}) < len(words):
            raise ValueError("the words must be different strings.")
        return cls(state["column"], words)


@storable
@dataclass(frozen=True, eq=True)
class Categories(Vocabulary):
    """The words of a column of categories, of which numbers and booleans are texts as well.

    A missing value is NaN, whatever stands for it.
    """

    def code(self, value: Any) -> float:
        text = text_of(value)
        return np.nan if text is None else self._table.get(text, UNKNOWN_WORD)


@storable
@dataclass(frozen=True, eq=True)
class HashedWords(Coding):
    """Words of which each is coded by one of some numbers, that a hash function chooses.

    Attributes
    ----------
    column : int
        The column.
    n_buckets : int
        The codes are below this number.
    """

    column: int
    n_buckets: int

    def code(self, value: Any) -> float:
        text = text_of(value)
        return np.nan if text is None else float(self._bucket(text))

    def _bucket(self, text: str) -> int:
        digest = blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "little") % self.n_buckets

    def of_table(self, values: Any) -> NDArray[np.float64]:
        codes, words = words_of(values)
        return np.array([*map(self._bucket, words), np.nan], dtype=np.float64)[codes]

    def to_file(self) -> dict[str, Any]:
        """All values, for a model file."""
        return {"column": self.column, "n_buckets": self.n_buckets}

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A coding from the untrusted values of a model file."""
        made = from_fields(cls, state)
        if check_count("n_buckets", made.n_buckets) > MOST_BUCKETS:
            raise ValueError(f"n_buckets must be at most {MOST_BUCKETS}.")
        return made


@storable
@dataclass(frozen=True, eq=True)
class Days(Coding):
    """Dates and times as days since the beginning of 1970 in UTC; lengths of time as days.

    Times without a time zone are taken as they are.

    Attributes
    ----------
    column : int
        The column.
    """

    column: int

    def code(self, value: Any) -> float:
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

    def of_table(self, values: Any) -> NDArray[np.float64]:
        return np.asarray(numbers_of(values, "date"), dtype=np.float64)

    def to_file(self) -> dict[str, Any]:
        """The column, for a model file."""
        return {"column": self.column}

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A coding from the untrusted values of a model file."""
        return from_fields(cls, state)
