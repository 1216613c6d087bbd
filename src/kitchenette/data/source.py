"""Sources of rows: arrays, data frames and files as blocks of rows that can be read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kitchenette.comparison import digest
from kitchenette.data.reader import Indices, Reader
from kitchenette.data.rows import is_table, take
from kitchenette.data.schema import ColumnRules, DataError, Schema
from kitchenette.data.tables import arrow, numbers_of, words_of
from kitchenette.parameters import check_choice, check_count
from kitchenette.sketching.random import Stream

BLOCK_ROWS, LEAST_ROWS = 1 << 16, 1 << 12  # of a block, if its size is not told
BLOCK_NUMBERS = 1 << 23  # numbers in such a block
KEYED_ROWS = 1 << 16  # rows whose keys are drawn together
SAMPLE_ROWS, SAMPLE_NUMBERS = 20_000, 1 << 25  # of the sample that estimators are prepared on
LEAST_SAMPLE = 2_000


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a source, or a sample of its rows.

    Attributes
    ----------
    X : ndarray, CSR matrix or pyarrow.Table
        The columns to predict from.
    y : ndarray of shape (n_rows,) or (n_rows, n_targets), or None
        The targets: numbers, or an array of strings for categories.
    weight : ndarray of shape (n_rows,) or None
        The weights.
    start : int
        The number of the first row in the source, counted from zero.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.data import source
    >>> first, second = source(np.ones((5, 2)), target=np.arange(5)).blocks(3)
    >>> first.stop, second.start, second.y
    (3, 3, array([3, 4]))
    """

    X: Any
    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None
    start: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    @property
    def stop(self) -> int:
        """The number of the row after the last one, from which reading can be resumed."""
        return self.start + self.n_rows


class Source:
    """Rows that can be read several times, in blocks; `kitchenette.data.source` makes one.

    The estimators take it wherever they take an array: ``fit(source)``, ``predict(source)``.

    Attributes
    ----------
    schema : Schema
        All columns, with their kinds.
    features : list of str
        The columns to predict from.
    target : str, list of str or None
        The column or the columns to be predicted.
    weight : str or None
        The column of weights.
    rules : ColumnRules
        How columns become numbers.
    passes : int
        2 if categories and missing values are looked up in all rows, before they are learned, and
        not only in the sample.
    n_rows : int or None
        The number of rows; None until somebody has read them, if the format does not tell.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.data import source
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> rows = source(X, target=X[:, 0] > 4)
    >>> [block.y.tolist() for block in rows.blocks(4)]
    [[False, False, False, True], [True, True]]
    >>> rows.sample(3, seed=0).n_rows
    3
    """

    def __init__(
        self,
        reader: Reader,
        *,
        target: str | list[str] | NDArray[Any] | None = None,
        weight: str | NDArray[Any] | None = None,
        ignore: Sequence[str] = (),
        rules: ColumnRules | None = None,
        precision: str | None = None,
        passes: int = 1,
    ):
        self._reader = reader
        self.schema: Schema = reader.schema
        self.n_rows = reader.n_rows
        self.rules = ColumnRules() if rules is None else rules
        self.rules.check()
        self.precision, self.passes = precision, passes
        if precision is not None:
            check_choice("precision", precision, ("float32", "float64"))
        if check_count("passes", passes) > 2:
            raise ValueError(f"passes must be 1 or 2; got {passes}.")
        self.target, self._y = _role("target", target, reader)
        self.weight, self._weight = _role("weight", weight, reader)
        if isinstance(self.weight, list):
            raise ValueError("weight must be the name of one column, or an array.")
        for name in ignore:
            _check_name("ignore", name, reader.schema)
        others = {*self._target_names(), self.weight, *ignore}
        self.features = [name for name in reader.schema.names if name not in others]
        if not self.features:
            raise DataError("There is no column to predict from.")
        for column in reader.schema.some(self.features):
            if column.kind == "other":
                raise DataError(
                    f"The column {column.name!r} has values of the type {column.dtype}, which is "
                    f"neither a number nor a category nor a date: ignore=[{column.name!r}]."
                )
            if column.kind == "date" and self.rules.dates == "refuse":
                raise DataError(
                    f"The column {column.name!r} has dates or times ({column.dtype}). Leave it out "
                    f"by ignore=[{column.name!r}], or turn dates into days since 1970 by "
                    "dates='days'."
                )

    def _target_names(self) -> list[str]:
        if self.target is None:
            return []
        return [self.target] if isinstance(self.target, str) else list(self.target)

    def __repr__(self) -> str:
        rows = "rows" if self.n_rows is None else f"{self.n_rows} rows"
        return f"<source of {rows} with {len(self.features)} columns to predict from>"

    @property
    def is_table(self) -> bool:
        """Whether the columns have names and kinds; else rows are arrays or CSR matrices."""
        return self._reader.is_table

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns to predict from; rows are counted if need be."""
        return self.count(), len(self.features)

    def count(self) -> int:
        """The number of rows, for which all may have to be read.

        Returns
        -------
        n_rows : int
        """
        if self.n_rows is None:
            total, names = 0, self.features[:1]
            for _, part in self._reader.parts(names, 0, BLOCK_ROWS):
                total += part.shape[0]
            self.n_rows = total
        return self.n_rows

    def without_targets(self) -> Source:
        """The same rows without targets and weights, for predictions.

        Returns
        -------
        source : Source
        """
        made = object.__new__(type(self))
        made.__dict__.update(vars(self), target=None, weight=None, _y=None, _weight=None)
        return made

    def targets(self) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
        """The targets and the weights of all rows, in a pass that reads no other columns.

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
            The targets.
        weight : ndarray of shape (n_rows,) or None
            The weights.
        """
        if self.target is None and self._y is None:
            raise DataError("The source has no target: name the column to be predicted.")
        made = object.__new__(type(self))
        made.__dict__.update(vars(self), features=[])
        if not made._needed():  # both are arrays
            assert self._y is not None
            return self._y, self._weight
        blocks = [*made.blocks(BLOCK_ROWS)]
        if not blocks:
            raise DataError("The source has no rows.")
        weights = [block.weight for block in blocks if block.weight is not None]
        y = np.concatenate([block.y for block in blocks if block.y is not None])
        return y, np.concatenate(weights) if weights else None

    def with_weights(self, weights: NDArray[np.float64]) -> Source:
        """The same rows with other weights; those of weight zero are not learned.

        Parameters
        ----------
        weights : ndarray of shape (n_rows,)
            A weight for each row.

        Returns
        -------
        source : Source
        """
        if weights.shape != (self.count(),):
            raise ValueError(f"weights must be one for each of the {self.count()} rows.")
        made = object.__new__(type(self))
        made.__dict__.update(vars(self), weight=None, _weight=weights)
        return made

    def with_columns(self, names: Sequence[str]) -> Source:
        """The same rows with these columns to predict from; a sentence if some are missing.

        Parameters
        ----------
        names : sequence of str
            Names of columns, in the order that is wanted.

        Returns
        -------
        source : Source
        """
        missing = [name for name in names if name not in self.schema]
        if missing:
            raise DataError(f"columns are missing: {', '.join(map(str, missing[:10]))}.")
        made = object.__new__(type(self))
        made.__dict__.update(vars(self), features=[*names])
        return made

    # ------------------------------------------------------------ blocks

    def block_rows(self) -> int:
        """The number of rows of a block, if it is not told.

        Returns
        -------
        size : int
        """
        return max(LEAST_ROWS, min(BLOCK_ROWS, BLOCK_NUMBERS // max(1, len(self.features))))

    def blocks(self, size: int | None = None, *, start: int = 0) -> Iterator[Block]:
        """All rows in order, in blocks; call it again for another pass.

        Parameters
        ----------
        size : int, optional
            The number of rows of each block but the last one; by default as many as take some
            megabytes.
        start : int, default=0
            The number of the row to begin with, such as the ``stop`` of the last block that was
            used.

        Yields
        ------
        block : Block
        """
        size = self.block_rows() if size is None else check_count("size", size)
        check_count("start", start, 0)
        waiting: list[Any] = []
        n_waiting, first = 0, start
        for _, part in self._reader.parts(self._needed(), start, size):
            while part.shape[0] > 0:
                some = take(part, slice(0, size - n_waiting))
                part = take(part, slice(some.shape[0], None))
                waiting.append(some)
                n_waiting += some.shape[0]
                if n_waiting == size:
                    yield self._block(_joined(waiting), first)
                    first += size
                    waiting, n_waiting = [], 0
        if waiting:
            yield self._block(_joined(waiting), first)
        if start == 0:
            self.n_rows = first + n_waiting

    def take(self, rows: Any) -> Block:
        """Some rows, in ascending order; what lies between is not kept.

        Parameters
        ----------
        rows : array-like of int
            Numbers of rows, different and ascending.

        Returns
        -------
        block : Block
            Its ``start`` is meaningless.
        """
        wanted = np.asarray(rows, dtype=np.int64)
        if wanted.size and (wanted[0] < 0 or np.any(np.diff(wanted) <= 0)):
            raise ValueError("rows must be different numbers of rows, ascending.")
        found = []
        for first, part in self._reader.parts(self._needed(), 0, self.block_rows(), wanted):
            low, high = np.searchsorted(wanted, [first, first + part.shape[0]])
            if high > low:
                found.append(take(part, wanted[low:high] - first))
        if not found or sum(part.shape[0] for part in found) != wanted.size:
            raise ValueError("rows must be numbers of rows that there are, at least one.")
        return self._block(_joined(found), 0, wanted)

    def sample(self, n_rows: int | None = None, seed: int = 0) -> Block:
        """A random sample of all rows, in their order; it does not depend on blocks or files.

        Parameters
        ----------
        n_rows : int, optional
            How many rows; all if there are no more. By default as many as an estimator is
            prepared on, at most 20,000.
        seed : int, default=0
            The seed. Larger samples contain the smaller ones of the same seed.

        Returns
        -------
        sample : Block
            Its ``start`` is meaningless.
        """
        if n_rows is None:
            wide = SAMPLE_NUMBERS // len(self.features)
            n_rows = min(SAMPLE_ROWS, max(LEAST_SAMPLE, wide))
        size = check_count("n_rows", n_rows)
        if self.n_rows is None:
            return self._sample_of_unknown(size, seed)
        if self.n_rows == 0:
            raise DataError("The source has no rows.")
        return self.take(sampled_rows(self.n_rows, size, seed))

    def _sample_of_unknown(self, size: int, seed: int) -> Block:
        """The sample of rows that are counted on the way."""
        sampler, kept, n_rows = _SmallestKeys(size, seed), [], 0
        for first, part in self._reader.parts(self._needed(), 0, self.block_rows()):
            n_rows = first + part.shape[0]
            chosen = sampler.add(first, part.shape[0])
            if chosen.size:
                kept.append((chosen, take(part, chosen - first)))
            if sum(rows.size for rows, _ in kept) > 3 * size:
                kept = [_still_kept(kept, sampler.rows())]
        self.n_rows = n_rows
        if not kept:
            raise DataError("The source has no rows.")
        rows, part = _still_kept(kept, sampler.rows())
        return self._block(part, 0, rows)

    def fingerprint(self) -> str:
        """A text that changes if the rows or the meaning of their columns change.

        For files it contains names, sizes, times of change, and the bytes at both ends.

        Returns
        -------
        fingerprint : str
        """
        others = [None if array is None else digest(array) for array in (self._y, self._weight)]
        columns = [repr(column) for column in self.schema]
        roles = [self.features, self.target, self.weight, self.precision, others]
        return digest([self._reader.fingerprint(), columns, roles])

    # ------------------------------------------------------------ roles of columns

    def _needed(self) -> list[str]:
        named = [] if self._y is not None else self._target_names()
        weight = [self.weight] if isinstance(self.weight, str) and self._weight is None else []
        return [*self.features, *(name for name in [*named, *weight] if name not in self.features)]

    def _block(self, part: Any, start: int, rows: Indices | None = None) -> Block:
        """A block of the columns that `_needed` names, for consecutive rows or these rows."""
        place: Any = slice(start, start + part.shape[0]) if rows is None else rows
        y, weight = self._y, self._weight
        first = start if rows is None else None
        y = self._targets_of(part, first) if y is None else y[place]
        weight = self._weights_of(part, first) if weight is None else weight[place]
        return Block(self._features_of(part), y, weight, start)

    def _features_of(self, part: Any) -> Any:
        n_features = len(self.features)
        if is_table(part):
            X = part.select(self.features)
            return X if self.precision is None else _in_precision(X, self.schema, self.precision)
        X = part if part.shape[1] == n_features else part[:, :n_features]
        return X if self.precision is None else X.astype(self.precision, copy=False)

    def _targets_of(self, part: Any, first: int | None) -> NDArray[Any] | None:
        names = self._target_names()
        if not names:
            return None
        columns = [self._values(part, name, first) for name in names]
        return columns[0] if isinstance(self.target, str) else np.stack(columns, axis=1)

    def _weights_of(self, part: Any, first: int | None) -> NDArray[np.float64] | None:
        if self.weight is None:
            return None
        return np.asarray(self._values(part, str(self.weight), first), dtype=np.float64)

    def _values(self, part: Any, name: str, first: int | None) -> NDArray[Any]:
        """The values of a column that is no feature; ``first`` is the number of the first row."""
        if not is_table(part):
            values = part[:, self._needed().index(name)]
            return np.asarray(values.todense()).ravel() if sp.issparse(values) else values
        values, kind = part.column(name), self.schema[name].kind
        if values.null_count:
            row = int(np.flatnonzero(values.is_null().to_numpy())[0])
            where = "" if first is None else f" in row {first + row} (counted from zero)"
            raise DataError(
                f"The column {name!r} is a target or a weight, and a value is missing{where}. "
                "Remove such rows first."
            )
        if kind == "category":
            codes, words = words_of(values)
            return np.array(words, dtype=object)[codes]
        if kind == "boolean":
            return np.asarray(values.cast(arrow().bool_()).to_numpy())
        return numbers_of(values, kind, name)


def _role(
    role: str, given: Any, reader: Reader
) -> tuple[str | list[str] | None, NDArray[Any] | None]:
    """The names of the columns of a role, or an array of values."""
    if given is None:
        return None, None
    if isinstance(given, str):
        _check_name(role, given, reader.schema)
        return given, None
    if isinstance(given, list | tuple) and given and all(isinstance(name, str) for name in given):
        for name in given:
            _check_name(role, name, reader.schema)
        return [*given], None
    values = np.asarray(given)
    if values.ndim not in (1, 2) or values.shape[0] != reader.n_rows:
        raise DataError(
            f"{role} must be the name of a column, or an array with a value for each of the "
            f"{reader.n_rows} rows; got an array of shape {values.shape}."
        )
    return None, values


def _check_name(role: str, name: str, schema: Schema) -> None:
    if name not in schema:
        known = ", ".join(schema.names[:10]) + (", ..." if len(schema) > 10 else "")
        close = get_close_matches(name, schema.names, n=1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        raise DataError(f"{role}: there is no column {name!r}; there are {known}.{meant}")


def _joined(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if is_table(parts[0]):
        return arrow().concat_tables(parts, promote_options="permissive")
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def _in_precision(table: Any, schema: Schema, precision: str) -> Any:
    pa = arrow()
    wanted = pa.float32() if precision == "float32" else pa.float64()
    for j, name in enumerate(table.column_names):
        if schema[name].kind == "number" and not pa.types.is_dictionary(table.column(j).type):
            table = table.set_column(j, name, table.column(j).cast(wanted, safe=False))
    return table


# ---------------------------------------------------------------- sampling by keys of rows


def _keys(first: int, n_rows: int, seed: int) -> NDArray[np.uint64]:
    """Random keys of consecutive rows, a function of the seed and the number of the row."""
    stream, block = Stream(seed, "rows of a source"), first // KEYED_ROWS
    n_blocks = (first + n_rows - 1) // KEYED_ROWS - block + 1
    keys = stream.words(n_blocks, KEYED_ROWS, first=block).ravel()
    skipped = first - block * KEYED_ROWS
    return keys[skipped : skipped + n_rows]


class _SmallestKeys:
    """The rows with the smallest keys among all that were added."""

    def __init__(self, size: int, seed: int):
        self._size, self._seed = size, seed
        self._keys, self._rows = np.empty(0, np.uint64), np.empty(0, np.int64)

    def add(self, first: int, n_rows: int) -> Indices:
        """Those of these rows that are among the smallest so far."""
        if n_rows == 0:
            return np.empty(0, np.int64)
        keys = np.concatenate([self._keys, _keys(first, n_rows, self._seed)])
        rows = np.concatenate([self._rows, np.arange(first, first + n_rows)])
        if keys.size > self._size:
            order = np.argpartition(keys, self._size - 1)[: self._size]
            keys, rows = keys[order], rows[order]
        self._keys, self._rows = keys, rows
        return np.sort(rows[rows >= first])

    def rows(self) -> Indices:
        """The rows, ascending."""
        return np.sort(self._rows)


def sampled_rows(n_rows: int, size: int, seed: int) -> Indices:
    """The numbers of the rows in a sample of so many rows.

    Parameters
    ----------
    n_rows : int
        The number of all rows.
    size : int
        The number of rows in the sample.
    seed : int
        The seed.

    Returns
    -------
    rows : ndarray of int
        Ascending.

    Examples
    --------
    >>> from kitchenette.data import sampled_rows
    >>> few, more = sampled_rows(10_000, 3, seed=1), sampled_rows(10_000, 5, seed=1)
    >>> len(more), set(few.tolist()) <= set(more.tolist())
    (5, True)
    """
    if n_rows <= size:
        return np.arange(n_rows)
    sampler = _SmallestKeys(size, seed)
    for first in range(0, n_rows, KEYED_ROWS):
        sampler.add(first, min(KEYED_ROWS, n_rows - first))
    return sampler.rows()


def _still_kept(kept: Sequence[tuple[Indices, Any]], rows: Indices) -> tuple[Indices, Any]:
    known = np.concatenate([some for some, _ in kept])
    return rows, take(_joined([part for _, part in kept]), np.searchsorted(known, rows))
