"""Samples of rows by their keys: the same in whatever order, batches and places the rows are.

Every row has a key, a hash value of its columns and targets. A sample has the distinct rows with
the smallest keys (a bottom-k sample), which is a uniform one of the distinct rows. Equal rows have
equal keys, and are kept as one row with the sum of their weights and their number. So the samples
of two sets of rows can be combined into the sample of both. For how many observations such a row
stands is said in `kitchenette.data.observations`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kitchenette.data.keys import (
    LARGEST_KEY,
    Array,
    Keys,
    numbers_to_hash,
    row_keys,
    seeded,
    target_numbers,
)
from kitchenette.data.observations import observation_counts, observation_rule
from kitchenette.data.rows import joined, slices, take
from kitchenette.data.schema import Schema
from kitchenette.files.fields import Count, Interval, Shape
from kitchenette.sketching.random import Stream

MAP_ROWS = 1000  # of the sample from which a map chooses its parameters
# Of the sample that estimators are prepared on, of which most choices take the first 8000 rows;
# categories are found in all of it.
MOST_ROWS, SAMPLED_NUMBERS, LEAST_ROWS = 20_000, 1 << 25, 2_000
HASHED_ROWS, HASHED_NUMBERS = 1 << 16, 1 << 22  # that are hashed at a time


def sample_size(n_columns: int) -> int:
    """The number of rows that an estimator is prepared on, whatever kind of rows they are."""
    return min(MOST_ROWS, max(LEAST_ROWS, SAMPLED_NUMBERS // max(1, n_columns)))


@dataclass(frozen=True, eq=False, kw_only=True)
class BottomK:
    """The distinct rows with the smallest keys; immutable.

    A subclass has more attributes with an entry for each row.
    """

    size: Count  # the largest number of rows
    # All rows with keys up to this one are in the sample; 2^64 - 1 if none is missing
    last_key: Annotated[int, Interval(0, LARGEST_KEY)]
    keys: Annotated[Keys, Shape(None)]  # the keys of the rows, increasing
    # The sum of the weights of all equal rows
    weights: Annotated[Array, Shape("keys"), Interval(0)]
    copies: Annotated[NDArray[np.int64], Shape("keys"), Interval(1)]  # the number of equal rows
    row_attributes: ClassVar[tuple[str, ...]] = ("keys", "weights", "copies")

    @property
    def n_sampled(self) -> int:
        """The number of rows in the sample."""
        return self.keys.size

    @property
    def is_complete(self) -> bool:
        """Whether all rows are in the sample."""
        return self.last_key == LARGEST_KEY

    def counts(self, rule: str) -> Array:
        """The number of observations of each row; see `kitchenette.data.observations`."""
        return observation_counts(self.weights, self.copies, rule)

    def combined(self, *others: Self) -> Self:
        """The sample of the rows of all these samples."""
        parts = [self, *others]
        last_key = min(part.last_key for part in parts)
        parts = [part.up_to(last_key) for part in parts]
        together: dict[str, Any] = {
            name: joined([getattr(part, name) for part in parts]) for name in self.row_attributes
        }
        return replace(self, last_key=last_key, **together).distinct()

    def up_to(self, last_key: int) -> Self:
        """The rows with keys up to a bound."""
        if last_key >= self.last_key:
            return self
        count = int(np.searchsorted(self.keys, np.uint64(last_key), side="right"))
        return replace(self.rows(slice(0, count)), last_key=last_key)

    def rows(self, which: Any) -> Self:
        """Some of the rows."""
        some: dict[str, Any] = {
            name: taken(getattr(self, name), which) for name in self.row_attributes
        }
        return replace(self, **some)

    def distinct(self) -> Self:
        """Rows in any order, with repetitions and with keys above the last one, as a sample.

        What belongs to the rows, which is most of the memory, is copied only for those of the
        sample.
        """
        here = np.flatnonzero(self.keys <= np.uint64(self.last_key))
        keys, first, inverse = np.unique(self.keys[here], return_index=True, return_inverse=True)
        weights: Array = np.bincount(inverse, self.weights[here], keys.size).astype(np.float64)
        copies = np.bincount(inverse, self.copies[here], keys.size).astype(np.int64)
        count, last_key = min(keys.size, self.size), self.last_key
        if count < keys.size:
            last_key = int(keys[count - 1])
        sample = self.rows(here[first[:count]])
        return replace(sample, last_key=last_key, weights=weights[:count], copies=copies[:count])


def taken(values: Any, which: Any) -> Any:
    """Some entries of an array or rows of a table; None if there is no array."""
    return None if values is None else take(values, which)


Sample = TypeVar("Sample", bound=BottomK)


def last_key_of_sample(keys: Keys, size: int) -> int:
    """The largest key in a sample of this size of rows with these keys, or a larger one.

    With it, rows that are not in the sample are not copied.
    """
    n_looked_at = 2 * size  # which are enough unless most rows are repeated
    if keys.size <= n_looked_at:
        return LARGEST_KEY
    distinct = np.unique(np.partition(keys, n_looked_at)[:n_looked_at])
    return int(distinct[size - 1]) if distinct.size > size else LARGEST_KEY


class SampleBuilder(Generic[Sample]):
    """Collects the sample of so many rows of many parts, which come as samples."""

    def __init__(self, size: int):
        self._size = size
        self._parts: list[Sample] = []
        self._waiting = 0
        self.last_key = LARGEST_KEY  # rows with larger keys are not needed

    def add(self, part: Sample) -> None:
        """Add the sample of a part."""
        self.last_key = min(self.last_key, part.last_key)
        self._parts.append(part)
        self._waiting += part.n_sampled
        # What belongs to the rows may be large, so that they are not left waiting for long.
        if 4 * self._waiting > 5 * self._size:
            self.finish()

    def finish(self) -> Sample:
        """The sample of all parts so far."""
        sample = self._parts[0].combined(*self._parts[1:])
        self._parts, self._waiting = [sample], 0
        self.last_key = sample.last_key
        return sample


@dataclass(frozen=True, eq=False, kw_only=True)
class DrawnRows(BottomK):
    """A sample of rows as they were given, in the order of their keys; immutable."""

    X: Any
    y: NDArray[Any] | None
    row_attributes: ClassVar[tuple[str, ...]] = (*BottomK.row_attributes, "X", "y")

    @classmethod
    def of(cls, X: Any, y: Any, weights: Array, copies: NDArray[np.int64], keys: Keys) -> DrawnRows:
        """All rows of a sample that was drawn before."""
        n_rows = keys.size
        return cls(
            size=n_rows, last_key=LARGEST_KEY, keys=keys, weights=weights, copies=copies, X=X, y=y
        )

    @property
    def population(self) -> int:
        """The number of distinct rows of which it is a sample.

        Keys are uniformly distributed, so the k-th smallest one tells how many there are, with a
        relative standard error of 1 / sqrt(k).
        """
        if self.is_complete:
            return self.n_sampled
        return max(self.n_sampled, round((self.n_sampled - 1) * 2.0**64 / (self.last_key + 1.0)))

    @property
    def sample_weight(self) -> Array | None:
        """The weights of the rows; None if all are one."""
        return None if np.all(self.weights == 1) else self.weights

    def observation_rule(self, population: int | None = None, schema: Schema | None = None) -> str:
        """What repeated rows and weights count for; see `kitchenette.data.observations`.

        The number of distinct rows of which it is a sample is estimated unless it is given;
        a schema tells the kinds of columns if their types do not.
        """
        share = self.n_sampled / max(population or self.population, self.n_sampled, 1)
        rows = numbers_to_hash(self.X, schema)
        return observation_rule(rows, self.y, self.weights, self.copies, share)

    def first(self, count: int) -> Self:
        """The sample of fewer rows."""
        if count >= self.n_sampled:
            return self
        sample = self.rows(slice(0, count))
        return replace(sample, size=count, last_key=int(sample.keys[-1]))


@dataclass(frozen=True)
class Drawing:
    """How rows are drawn, wherever they are: `of` some rows, then `combined`.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.data.drawing import Drawing
    >>> X = np.random.default_rng(0).normal(size=(10_000, 3))
    >>> drawing = Drawing(size=100, seed=0)
    >>> whole = drawing.of_rows(X)
    >>> parts = drawing.combined(drawing.of_rows(X[6000:]), drawing.of_rows(X[:6000]))
    >>> whole.n_sampled, bool(np.array_equal(whole.X, parts.X))
    (100, True)
    """

    # The largest number of rows of the sample. Smaller samples of the same seed are part of it.
    size: int
    seed: int
    # The columns of tables and frames and their kinds, if their types do not tell
    schema: Schema | None = None

    def of(self, block: Any) -> DrawnRows:
        """The sample of a block."""
        return self.of_rows(block.X, block.y, block.weight)

    def of_rows(
        self,
        X: Any,
        y: Any = None,
        weights: Array | None = None,
        copies: NDArray[np.int64] | None = None,
        hashes: Keys | None = None,
    ) -> DrawnRows:
        """The sample of some rows; those of weight zero are left out.

        The copies are the numbers of equal rows that rows of a sample stand for, and the
        hashes those of `hash_values`, if they are known.
        """
        n_rows = X.shape[0]
        builder: SampleBuilder[DrawnRows] = SampleBuilder(self.size)
        # Places of rows are collected, and the rows themselves are copied once at the end.
        for part in [*slices(n_rows, _rows_at_a_time(X))] or [slice(0, 0)]:
            places = np.arange(part.start, part.stop)
            if hashes is None:
                keys = hash_values(take(X, part), taken(y, part), self.schema)
            else:
                keys = hashes[part]
            keys = seeded(keys, self.seed)
            units = np.ones(places.size) if weights is None else weights[part]
            positive = np.flatnonzero(units)
            sample = DrawnRows(
                size=self.size,
                last_key=builder.last_key,
                keys=keys,
                weights=units,
                copies=np.ones(places.size, np.int64) if copies is None else copies[part],
                X=places,
                y=None,
            )
            sample = sample if positive.size == places.size else sample.rows(positive)
            builder.add(sample.distinct())
        sample = builder.finish()
        return replace(sample, X=take(X, sample.X), y=taken(y, sample.X))

    def combined(self, a: DrawnRows, b: DrawnRows) -> DrawnRows:
        """The sample of the rows of both; neither is changed."""
        return a.combined(b)

    def of_blocks(self, blocks: Iterable[Any]) -> DrawnRows | None:
        """The sample of many blocks; None if there are no blocks."""
        builder: SampleBuilder[DrawnRows] | None = None
        for block in blocks:
            builder = SampleBuilder(self.size) if builder is None else builder
            builder.add(self.of(block).up_to(builder.last_key))
        return None if builder is None else builder.finish()


def hash_values(X: Any, y: Any, schema: Schema | None = None) -> Keys:
    """The hash values of some rows and their targets, the same in whatever format they come."""
    n_rows = X.shape[0]
    keys = np.empty(n_rows, np.uint64)
    for part in slices(n_rows, _rows_at_a_time(X)):
        rows, targets = numbers_to_hash(take(X, part), schema), taken(y, part)
        keys[part] = row_keys(rows, target_numbers(targets, rows.shape[0]))
    return keys


@dataclass(frozen=True)
class FirstRows:
    """Rows of a sample in the order of their keys, of which maps choose on the first ones."""

    X: Any
    sample_weight: Array | None


def sample_rows(
    X: Any, seed: int, weights: Any = None, drawn: DrawnRows | FirstRows | None = None
) -> tuple[Any, Any]:
    """Rows from which a map chooses its parameters, with their weights; all if there are few.

    They are at most 1000 of positive weight: the first ones of a sample in the order of its
    keys, or else random ones.
    """
    if drawn is not None:
        first = slice(0, MAP_ROWS)
        return take(drawn.X, first), taken(drawn.sample_weight, first)
    positive = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights)
    if positive.size == 0 < X.shape[0]:
        raise ValueError("All weights are zero: there is no row to learn from.")
    picked = positive[Stream(seed, "sample").sample(positive.size, MAP_ROWS)]
    return take(X, picked), taken(weights, picked)


def _rows_at_a_time(X: Any) -> int:
    n_rows, n_columns = X.shape
    numbers = X.nnz / max(1, n_rows) if sp.issparse(X) else n_columns
    return int(max(1, min(HASHED_ROWS, HASHED_NUMBERS // max(1, numbers))))
