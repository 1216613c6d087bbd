"""Sources of rows: arrays, data frames and files as blocks of rows that can be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kitchenette.comparison import digest
from kitchenette.data.drawing import Drawing, DrawnRows, sample_size
from kitchenette.data.ranges import range_of
from kitchenette.data.reader import Indices, Reader
from kitchenette.data.reduction import Reduction, fold
from kitchenette.data.reduction import joined as joined_results
from kitchenette.data.rows import is_table, joined, table, take
from kitchenette.data.sampling import SmallestKeys, sampled_rows
from kitchenette.data.schema import ColumnRules, DataError, KnownColumn, Schema, refuse_other_kinds
from kitchenette.data.tables import arrow, finite, row_number, values_of
from kitchenette.data.targets import refuse_missing_targets
from kitchenette.parameters import check_choice, check_count

BLOCK_ROWS, LEAST_ROWS = 1 << 16, 1 << 12  # most and least rows of a block of default size
BLOCK_NUMBERS = 1 << 21  # numbers in such a block
Made = TypeVar("Made", bound="Source")


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
        The index of the first row in the source, counted from zero.
    copies : ndarray of shape (n_rows,) or None
        In a sample of the distinct rows, how often each of them was there.
    population : int or None
        The number of rows of which it is a sample, of distinct ones if it has ``copies``.
    keys : ndarray of shape (n_rows,) or None
        In a sample of the distinct rows, the hash values by which they were chosen, increasing.

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
    copies: NDArray[np.int64] | None = None
    population: int | None = None
    keys: NDArray[np.uint64] | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    def of_positive_weight(self) -> Block:
        """The rows whose weight is not zero."""
        if self.weight is None or self.weight.all():
            return self
        kept = np.flatnonzero(self.weight)
        y = None if self.y is None else self.y[kept]
        return replace(self, X=take(self.X, kept), y=y, weight=self.weight[kept])

    @property
    def stop(self) -> int:
        """The index of the row after the last one, from which reading can be resumed."""
        return self.start + self.n_rows


def block_of(drawn: DrawnRows) -> Block:
    """Drawn rows as a block."""
    weight, population = drawn.sample_weight, drawn.population
    return Block(drawn.X, drawn.y, weight, 0, drawn.copies, population, drawn.keys)


@dataclass(frozen=True)
class Watch:
    """Observers of a computation on all rows, and where it goes on."""

    # Called after each block with the result so far and the number of rows done
    after: Callable[[Any, int], None] = lambda found, stop: None
    # Called with the number of rows done, also where results come in no order
    progress: Callable[[int], None] | None = None
    before: Any = None  # the result for the rows before ``start``; None if there are none
    start: int = 0  # the index of the row to begin with


@dataclass(frozen=True)
class RowsInMemory:
    """Rows as users pass them to an estimator, with the methods of a `Source`."""

    X: Any
    y: Any = None
    sample_weight: Any = None
    rules: ClassVar[ColumnRules] = ColumnRules()
    passes: ClassVar[int] = 2
    target_names: ClassVar[tuple[str, ...]] = ()
    weight_name: ClassVar[None] = None
    is_table: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        n_rows, n_columns = self.X.shape
        return n_rows, n_columns

    def whole(self) -> Block:
        """All rows as one block, as they were passed."""
        return Block(self.X, self.y, self.sample_weight, 0)

    def blocks(self, size: int | None = None) -> Iterator[Block]:
        """All rows, as one block."""
        yield self.whole()

    def reduced(self, reduction: Reduction) -> Any:
        """A computation on all rows."""
        return reduction.of(self.whole())

    def sample(self, n_rows: int, seed: int = 0) -> Block:
        """A random sample of the rows by place, without targets and weights."""
        X = table(self.X)
        return Block(take(X, sampled_rows(X.shape[0], n_rows, seed)), None, None, 0)

    def take(self, rows: Any) -> Block:
        """Some rows without targets and weights."""
        return Block(take(self.X, rows), None, None, 0)

    def without_targets(self) -> RowsInMemory:
        """The same rows without targets and weights."""
        return RowsInMemory(self.X)

    def located(self, error: ValueError) -> ValueError:
        """An error about these rows; they are all that there are."""
        return error


@dataclass(eq=False, repr=False)
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
        1 if the sample on which an estimator is prepared is taken by the places of rows; 2 if it is
        taken by their values, for which all of them are read; 3 if categories and missing values
        are looked up in all rows as well, and not only in the sample.
    n_rows : int or None
        The number of rows; None until they have been read, if the format does not tell.

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

    _reader: Reader
    schema: Schema
    features: list[str]
    rules: ColumnRules
    target: str | list[str] | None = None
    weight: str | list[str] | None = None
    precision: str | None = None
    passes: int = 2
    n_rows: int | None = None
    _y: NDArray[Any] | None = None
    _weight: NDArray[np.float64] | None = None
    in_parts: ClassVar[bool] = False  # whether the rows are in partitions, somewhere else

    @classmethod
    def of(
        cls,
        reader: Reader,
        *,
        target: str | list[str] | NDArray[Any] | None = None,
        weight: str | NDArray[Any] | None = None,
        ignore: Sequence[str] = (),
        rules: ColumnRules | None = None,
        precision: str | None = None,
        passes: int = 2,
    ) -> Source:
        """The rows of a reader, whose columns have these roles."""
        schema, rules = reader.schema, ColumnRules() if rules is None else rules
        rules.check()
        if precision is not None:
            check_choice("precision", precision, ("float32", "float64"))
        if check_count("passes", passes) > 3:
            raise ValueError(f"passes must be 1, 2 or 3; got {passes}.")
        targets, y = _role("target", target, reader)
        weights, units = _role("weight", weight, reader)
        if isinstance(weights, list):
            raise ValueError("weight must be the name of one column, or an array.")
        for name in ignore:
            check_name("ignore", name, schema.names)
        others = {*([targets] if isinstance(targets, str) else targets or ()), weights, *ignore}
        others |= {column.name for column in schema if column.is_index}
        features = [name for name in schema.names if name not in others]
        source = cls(
            reader,
            schema,
            features,
            rules,
            target=targets,
            weight=weights,
            precision=precision,
            passes=passes,
            n_rows=reader.n_rows,
            _y=y,
            _weight=units,
        )
        source._check_roles()
        source._check_features()
        return source

    def _check_roles(self) -> None:
        """Refuse columns of targets and weights that have two roles, or values of no use."""
        names = [*self.target_names, *([] if self.weight is None else [str(self.weight)])]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise DataError(f"The column {repeated[0]!r} is named twice as target or weight.")
        if self.weight is not None and self.schema[str(self.weight)].kind not in (
            "number",
            "boolean",
        ):
            dtype = self.schema[str(self.weight)].dtype
            raise DataError(f"weight: the column {self.weight!r} has no numbers, but {dtype}.")
        for name in self.target_names:
            if self.schema[name].kind == "date" and self.rules.dates == "refuse":
                raise DataError(
                    f"target: the column {name!r} has dates or times ({self.schema[name].dtype}). "
                    "Turn dates into days since 1970 by dates='days'."
                )

    def _check_features(self) -> None:
        """Refuse columns to predict from that cannot become numbers."""
        if not self.features:
            raise DataError("There is no column to predict from.")
        refuse_other_kinds(self.schema.some(self.features), "ignore=[{!r}]")
        for column in self.schema.some(self.features):
            if column.kind == "date" and self.rules.dates == "refuse":
                raise DataError(
                    f"The column {column.name!r} has dates or times ({column.dtype}). Leave it out "
                    f"by ignore=[{column.name!r}], or turn dates into days since 1970 by "
                    "dates='days'."
                )

    @property
    def weight_name(self) -> str | None:
        """The name of the column of weights; None if there is none."""
        return self.weight if isinstance(self.weight, str) else None

    @property
    def target_names(self) -> list[str]:
        """The names of the columns to be predicted; none if the targets are an array."""
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
    def paths(self) -> tuple[str, ...]:
        """The files that are read; none if the rows do not come from files."""
        return self._reader.paths

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns to predict from; rows are counted if need be."""
        return self.count(), len(self.features)

    def count(self) -> int:
        """The number of rows, for which all may have to be read."""
        if self.n_rows is None:
            total, names = 0, self.features[:1]
            for _, part in self._reader.parts(names, 0, BLOCK_ROWS):
                total += part.shape[0]
            self.n_rows = total
        return self.n_rows

    def whole(self) -> Block | None:
        """All rows as one block as users passed them; a source has none."""
        return None

    def without_targets(self) -> Source:
        """The same rows without targets and weights, for predictions."""
        return replace(self, target=None, weight=None, _y=None, _weight=None)

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
        source = replace(self, features=[])
        if not source._needed():  # both are arrays
            assert self._y is not None
            return self._y, self._weight
        blocks = [*source.blocks(BLOCK_ROWS)]
        if not blocks:
            raise DataError("The source has no rows.")
        weights = [block.weight for block in blocks if block.weight is not None]
        y = np.concatenate([block.y for block in blocks if block.y is not None])
        return y, np.concatenate(weights) if weights else None

    def with_weights(self, weights: NDArray[np.float64]) -> Source:
        """The same rows with other weights; those of weight zero are not learned."""
        if weights.shape != (self.count(),):
            raise ValueError(f"weights must be one for each of the {self.count()} rows.")
        return replace(self, weight=None, _weight=weights)

    def with_targets(self, targets: NDArray[Any]) -> Source:
        """The same rows with other targets."""
        if targets.shape[0] != self.count():
            raise ValueError(f"targets must be one for each of the {self.count()} rows.")
        return replace(self, target=None, _y=targets)

    def with_reader(self, reader: Reader, target: Any = None, weight: Any = None) -> Source:
        """Other rows, whose columns have the same names and roles.

        Targets and weights are given where they are not columns.
        """
        y = None if target is None else _role("target", target, reader)[1]
        weights = None if weight is None else _role("weight", weight, reader)[1]
        return self.roles_for(Source, reader, n_rows=reader.n_rows, _y=y, _weight=weights)

    def roles_for(self, cls: type[Made], reader: Reader | None = None, **others: Any) -> Made:
        """A source of a class whose columns have the same names and roles.

        The rows are those of this source, or of a reader; the class may have further fields.
        """
        roles = {one.name: getattr(self, one.name) for one in fields(Source) if one.init}
        return cls(**roles | {"_reader": self._reader if reader is None else reader} | others)

    def readers(self, n_parts: int) -> list[Reader]:
        """Readers of consecutive rows, about as many for each, to be used by other processes.

        They are for `with_reader`. Each process reads the files, so it must see them.
        """
        n_rows = self.count()
        cuts = [n_rows * part // n_parts for part in range(n_parts + 1)]
        return [range_of(self._reader, *cut) for cut in pairwise(cuts)]

    def given_values(self) -> tuple[NDArray[Any] | None, NDArray[np.float64] | None]:
        """The arrays of targets and of weights, each None where it is a column."""
        return self._y, self._weight

    def with_columns(self, names: Sequence[str]) -> Source:
        """The same rows with these columns to predict from, in this order."""
        missing = [name for name in names if name not in self.schema]
        if missing:
            raise DataError(f"columns are missing: {', '.join(map(str, missing[:10]))}.")
        return replace(self, features=[*names])

    def read_as(self, columns: Mapping[str, KnownColumn]) -> Source:
        """The same rows, whose columns are read as a model has them; itself if nothing changes.

        Strings stay strings where the model has strings, though they look like numbers,
        booleans, dates or missing values. The method ``known_columns`` of a fitted model
        gives the columns.
        """
        reader = self._reader.read_as(columns)
        return (
            self if reader is self._reader else replace(self, _reader=reader, schema=reader.schema)
        )

    def with_width(self, n_columns: int) -> Source:
        """The same rows with at least so many columns, if they are of SVMlight files.

        Such files do not name zeros, so that the last columns of one may be missing in
        another.
        """
        reader = self._reader
        if not hasattr(reader, "widened") or len(self.features) >= n_columns:
            return self
        wider = reader.widened(n_columns)
        names = {*self.schema.names}
        more = [name for name in wider.schema.names if name not in names]
        return replace(self, _reader=wider, schema=wider.schema, features=[*self.features, *more])

    # ------------------------------------------------------------ blocks

    def block_rows(self) -> int:
        """The default number of rows of a block."""
        return max(LEAST_ROWS, min(BLOCK_ROWS, BLOCK_NUMBERS // max(1, len(self.features))))

    def blocks(self, size: int | None = None, *, start: int = 0) -> Iterator[Block]:
        """All rows in order, in blocks; call it again for another pass.

        Parameters
        ----------
        size : int, optional
            The number of rows of each block but the last one; by default as many as take some
            megabytes.
        start : int, default=0
            The index of the row to begin with, such as the ``stop`` of the last block that was
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
                rest = take(part, slice(0, size - n_waiting))
                part = take(part, slice(rest.shape[0], None))
                waiting.append(rest)
                n_waiting += rest.shape[0]
                if n_waiting == size:
                    yield self._block(joined(waiting), first)
                    first += size
                    waiting, n_waiting = [], 0
        if waiting:
            yield self._block(joined(waiting), first)
        if start == 0:
            self.n_rows = first + n_waiting

    def reduced(self, reduction: Reduction) -> Any:
        """The results of a reduction for blocks, combined; None if there are no rows."""
        return fold(reduction, self.blocks())

    def watched(self, reduction: Reduction, watch: Watch) -> Any:
        """`reduced` with observers, from where an earlier computation ended."""
        result, progress = watch.before, watch.progress or (lambda stop: None)
        progress(watch.start)
        for block in self.blocks(start=watch.start):
            result = joined_results(reduction, result, reduction.of(block))
            progress(block.stop)
            watch.after(result, block.stop)
        return result

    def located(self, error: ValueError) -> ValueError:
        """An error about a sample of the rows, with their place if that can be found."""
        return error

    def take(self, rows: Any) -> Block:
        """Some rows, in ascending order; the rows between them are not kept in memory.

        Parameters
        ----------
        rows : array-like of int
            Row indices, different and ascending.

        Returns
        -------
        block : Block
            Its ``start`` is meaningless.
        """
        wanted = np.asarray(rows, dtype=np.int64)
        if wanted.size and (wanted[0] < 0 or np.any(np.diff(wanted) <= 0)):
            raise ValueError("rows must be different row indices, ascending.")
        blocks = []
        for first, part in self._reader.parts(self._needed(), 0, self.block_rows(), wanted):
            low, high = np.searchsorted(wanted, [first, first + part.shape[0]])
            if high > low:
                blocks.append(take(part, wanted[low:high] - first))
        if not blocks or sum(part.shape[0] for part in blocks) != wanted.size:
            raise ValueError("rows must be indices of existing rows, at least one.")
        return self._block(joined(blocks), 0, wanted)

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
        size = check_count("n_rows", sample_size(len(self.features)) if n_rows is None else n_rows)
        if self.n_rows is None:
            return self._sample_of_unknown(size, seed)
        if self.n_rows == 0:
            raise DataError("The source has no rows.")
        return self.take(sampled_rows(self.n_rows, size, seed))

    def _sample_of_unknown(self, size: int, seed: int) -> Block:
        """The sample if the number of rows is not known before all of them are read."""
        sampler, kept, n_rows = SmallestKeys(size, seed), [], 0
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

    # ------------------------------------------------------------ the sample for estimators

    @property
    def draws_by_keys(self) -> bool:
        """Whether estimators are prepared on rows that are drawn by their values.

        Such a sample does not depend on the order of the rows or the kind of the source, but all
        rows are read for it. With ``passes=1``, those of files and queries are drawn by their
        places instead, as in `sample`.
        """
        return self._reader.in_memory or self.passes > 1

    def drawn(self, seed: int) -> Block:
        """The sample on which an estimator is prepared.

        Parameters
        ----------
        seed : int
            The seed.

        Returns
        -------
        sample : Block
            Its ``start`` is meaningless.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette.data import source
        >>> X = np.random.default_rng(0).integers(9, size=(500, 2)).astype(float)
        >>> one, other = (source(rows).drawn(seed=0) for rows in (X, X[::-1]))
        >>> one.n_rows, int(one.copies.sum()), bool(np.array_equal(one.X, other.X))
        (81, 500, True)
        """
        if not self.draws_by_keys:
            sample = self.sample(seed=seed)
            return replace(sample, population=self.n_rows)
        drawn = self.drawn_by_keys(seed)
        if drawn is None or drawn.n_sampled == 0:
            raise DataError("The source has no rows.")
        return block_of(drawn)

    def drawn_by_keys(self, seed: int) -> DrawnRows | None:
        """A sample of the distinct rows, the same in any order; None without rows."""
        return self.drawing(seed).of_blocks(self.blocks())

    def drawing(self, seed: int) -> Drawing:
        """How the sample of the distinct rows is drawn, for each part of the rows."""
        schema = self.schema.some(self.features) if self.is_table else None
        return Drawing(sample_size(len(self.features)), seed, schema)

    def fingerprint(self) -> str:
        """A digest that changes if the rows or the meaning of their columns change.

        For files it contains names, sizes, times of change, and the bytes at both ends.
        """
        others = [None if array is None else digest(array) for array in (self._y, self._weight)]
        columns = [repr(column) for column in self.schema]
        roles = [self.features, self.target, self.weight, self.precision, others]
        rules = [repr(self.rules), self.passes]
        return digest([self._reader.fingerprint(), columns, roles, rules])

    # ------------------------------------------------------------ roles of columns

    def _needed(self) -> list[str]:
        named = [] if self._y is not None else self.target_names
        weight = [self.weight] if isinstance(self.weight, str) and self._weight is None else []
        return [*self.features, *(name for name in [*named, *weight] if name not in self.features)]

    def _block(self, part: Any, start: int, rows: Indices | None = None) -> Block:
        """A block of the columns that `_needed` names, for consecutive rows or these rows."""
        place: Any = slice(start, start + part.shape[0]) if rows is None else rows
        y, weight = self._y, self._weight
        y = self._targets_of(part, place) if y is None else y[place]
        weight = self._weights_of(part, place) if weight is None else weight[place]
        return Block(self._features_of(part), y, weight, start)

    def _features_of(self, part: Any) -> Any:
        n_features = len(self.features)
        if is_table(part):
            X = part.select(self.features)
            return X if self.precision is None else _in_precision(X, self.schema, self.precision)
        X = part if part.shape[1] == n_features else part[:, :n_features]
        return X if self.precision is None else X.astype(self.precision, copy=False)

    def _targets_of(self, part: Any, place: Any) -> NDArray[Any] | None:
        names = self.target_names
        if not names:
            return None
        columns = [finite(self._values(part, name, place), name, place) for name in names]
        return columns[0] if isinstance(self.target, str) else np.stack(columns, axis=1)

    def _weights_of(self, part: Any, place: Any) -> NDArray[np.float64] | None:
        if self.weight is None:
            return None
        name = str(self.weight)
        weights = finite(np.asarray(self._values(part, name, place), np.float64), name, place)
        if (weights < 0).any():
            row = row_number(place, int(np.argmax(weights < 0)))
            raise DataError(
                f"The column {name!r} has weights, and one is negative in row {row} (counted from "
                "zero)."
            )
        return weights

    def _values(self, part: Any, name: str, place: Any) -> NDArray[Any]:
        """The values of a column that is no feature; ``place`` has the row indices."""
        if not is_table(part):
            values = part[:, self._needed().index(name)]
            return np.asarray(values.todense()).ravel() if sp.issparse(values) else values
        return values_of(part.column(name), name, self.schema[name].kind, place)


def _role(
    role: str, given: Any, reader: Reader
) -> tuple[str | list[str] | None, NDArray[Any] | None]:
    """The names of the columns of a role, or an array of values."""
    if given is None:
        return None, None
    if isinstance(given, str):
        check_name(role, given, reader.schema.names)
        return given, None
    if isinstance(given, list | tuple) and given and all(isinstance(name, str) for name in given):
        for name in given:
            check_name(role, name, reader.schema.names)
        return [*given], None
    values = np.asarray(given)
    if values.ndim not in (1, 2) or values.shape[0] != reader.n_rows:
        raise DataError(
            f"{role} must be the name of a column, or an array with a value for each of the "
            f"{reader.n_rows} rows; got an array of shape {values.shape}."
        )
    if role == "target":
        refuse_missing_targets(values, role)
    return None, values


def check_name(role: str, name: str, names: Sequence[str]) -> None:
    """Refuse the name of a column that does not exist; the message begins with the role."""
    if name not in names:
        listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        close = get_close_matches(name, names, n=1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        raise DataError(f"{role}: there is no column {name!r}; there are {listed}.{meant}")


def _in_precision(table: Any, schema: Schema, precision: str) -> Any:
    pa = arrow()
    wanted = pa.float32() if precision == "float32" else pa.float64()
    for j, name in enumerate(table.column_names):
        if schema[name].kind == "number" and not pa.types.is_dictionary(table.column(j).type):
            table = table.set_column(j, name, table.column(j).cast(wanted, safe=False))
    return table


def _still_kept(kept: Sequence[tuple[Indices, Any]], rows: Indices) -> tuple[Indices, Any]:
    known = np.concatenate([some for some, _ in kept])
    return rows, take(joined([part for _, part in kept]), np.searchsorted(known, rows))
