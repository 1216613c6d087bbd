"""Rows in partitions on several machines, whatever engine reads them.

A `PartitionedSource` is a source whose rows stay where they are. All that is asked of it is
`reduced`: a computation on each partition, the results of which are combined on the workers. One
machine learns in the same way from the blocks of a file, so that estimators need not know of
clusters, and no engine knows of learning.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kitchenette.data import Block, DataError, Source
from kitchenette.data.arrays import ArrayReader
from kitchenette.data.drawing import DrawnRows
from kitchenette.data.reader import Reader
from kitchenette.data.reduction import ByStart, Reduction, fold, in_order, joined, needs_numbers
from kitchenette.data.rows import is_table, take
from kitchenette.data.rows import joined as joined_rows
from kitchenette.data.schema import Schema
from kitchenette.data.source import Watch
from kitchenette.data.tables import TableReader, arrow, kind_of, numbers_of, selected, table_of
from kitchenette.kernels.base import checked_sparse

Value = TypeVar("Value")
USUAL_PARTITIONS, LEAST_ROWS, MOST_ROWS = 64, 1 << 12, 1 << 18  # of files, and rows of each


class PartitionError(DataError):
    """Rows of a partition that cannot be learned; the message begins with its number.

    Examples
    --------
    >>> from kitchenette.backends.plan import PartitionError
    >>> issubclass(PartitionError, ValueError)
    True
    """


@dataclass(eq=False, repr=False)
class PartitionedSource(Source):
    """Rows in partitions that can be read again; an engine implements `reduced`.

    `Source.roles_for` makes one of a source with the columns and roles of the partitions, whose
    rows are not used. Without ``_lengths``, the numbers of rows of the partitions, they are counted
    when needed.
    """

    _lengths: list[int] | None = None
    _files: Source | None = None  # where every worker reads its rows, if they are in files
    # Called with the number of a partition when it is done, if the engine can tell
    progress: Callable[[int], None] | None = None
    in_parts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.n_rows = None if self._lengths is None else sum(self._lengths)

    @property
    def draws_by_keys(self) -> bool:
        return self.passes > 1  # the rows are not those of the layout

    @property
    @abstractmethod
    def n_partitions(self) -> int:
        """The number of partitions."""

    @abstractmethod
    def reduced(self, reduction: Reduction) -> Any:
        """A computation on all rows, combined on the workers; only the result comes back."""

    def watched(self, reduction: Reduction, watch: Watch) -> Any:
        """`reduced`, while somebody watches; there are no results before the last one."""
        progress = watch.progress
        if progress is None:
            return self.reduced(reduction)
        lengths, done = self.lengths(), set[int]()

        def part_is_done(number: int) -> None:
            done.add(number)  # it may be done twice, if a worker was lost
            progress(sum(lengths[part] for part in done))

        progress(0)
        self.progress = part_is_done
        try:
            result = self.reduced(reduction)
        finally:
            self.progress = None
        watch.after(result, sum(lengths))
        return result

    @property
    def layout(self) -> Source:
        """The columns and their roles without any rows, to be sent to workers."""
        return self.with_reader(_NoRows(self.schema, is_table=self.is_table))

    def lengths(self) -> list[int]:
        """The numbers of rows of the partitions."""
        if self._lengths is None:
            counts = self.reduced(Lengths()) or {}
            # An engine may leave out empty partitions at the end.
            self._lengths = [counts.get(number, 0) for number in range(max(counts, default=-1) + 1)]
            self.n_rows = sum(self._lengths)
        return self._lengths

    def starts(self) -> list[int]:
        """The index of the first row of each partition."""
        return [0, *np.cumsum(self.lengths())[:-1].tolist()]

    def starts_for(self, reduction: Reduction) -> list[int]:
        """`starts` if the reduction or the targets need them, else none."""
        given = any(values is not None for values in self.given_values())
        return self.starts() if given or needs_numbers(reduction) else []

    def count(self) -> int:
        return sum(self.lengths())

    def sample(self, n_rows: int | None = None, seed: int = 0) -> Block:
        self.count()  # so that rows are drawn by their numbers
        return super().sample(n_rows, seed)

    def drawn_by_keys(self, seed: int) -> DrawnRows | None:
        return self.reduced(self.drawing(seed))

    def take(self, rows: Any) -> Block:
        wanted = np.asarray(rows, dtype=np.int64)
        blocks = in_order(self.reduced(ByStart(partial(_taken, wanted))))
        blocks = [block for block in blocks if block is not None]
        if sum(block.n_rows for block in blocks) != wanted.size or not blocks:
            raise ValueError("rows must be indices of existing rows, at least one.")
        parts = zip(*((block.X, block.y, block.weight) for block in blocks), strict=True)
        X, y, weight = map(joined_rows, parts)
        return Block(X, y, weight, blocks[0].start)

    def targets(self) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
        pairs = in_order(self.reduced(ByStart(attrgetter("y", "weight"))))
        if not pairs:
            raise DataError("The source has no rows.")
        if pairs[0][0] is None:
            raise DataError("The source has no target: name the column to be predicted.")
        y, weight = map(joined_rows, zip(*pairs, strict=True))
        return y, weight

    def located(self, error: ValueError) -> ValueError:
        """An error about a sample, with the number of the partition that is not finite."""
        if isinstance(error, PartitionError):
            return error
        number = self.reduced(NotFinite(not self.is_table or self.rules.missing == "refuse"))
        return error if number is None else PartitionError(f"partition {number}: {error}")

    def blocks(self, size: int | None = None, *, start: int = 0) -> NoReturn:
        raise DataError(
            "The rows are on a cluster, and do not come to this machine one after the other: use "
            "a method that takes the collection itself, such as predict of a Dask collection."
        )

    def fingerprint(self) -> str:
        if self._files is None:
            raise DataError("The rows of a cluster have no fingerprint.")
        return self._files.fingerprint()


class _NoRows(Reader):
    """Columns without rows."""

    n_rows = 0

    def __init__(self, schema: Schema, *, is_table: bool):
        self.schema, self.is_table = schema, is_table

    def parts(self, *arguments: Any) -> Iterator[Any]:
        return iter(())

    def fingerprint(self) -> str:
        return "no rows"


# ---------------------------------------------------------------- on the workers


def blocks_of(layout: Source, chunks: Iterable[Any], start: int = 0) -> Iterator[Block]:
    """The rows of a partition, as they come from an engine, as blocks.

    Chunks are arrays, CSR matrices, data frames, Arrow tables or readers; or triples of rows,
    targets and weights where these are not columns of ``layout``. ``start`` is the index of the
    first row.
    """
    for chunk in chunks:
        X, y, weight = chunk if isinstance(chunk, tuple) else (chunk, None, None)
        rows = layout.with_reader(_reader_of(X, layout), _values(y), _values(weight))
        for block in rows.blocks():
            yield replace(block, start=start + block.start)
        start += rows.count()


def of_partition(reduction: Reduction, blocks: Iterable[Block], number: int) -> Any:
    """The result for a partition, None without rows; its errors say which partition it was."""
    try:
        of_whole = getattr(reduction, "of_partition", None)
        return fold(reduction, blocks) if of_whole is None else of_whole(blocks, number)
    except PartitionError:
        raise
    except (ValueError, TypeError, KeyError) as error:
        raise PartitionError(f"partition {number}: {error}") from error


def tree(leaves: Iterable[Value], combine: Callable[[Value, Value], Value]) -> Value | None:
    """Combine results in a balanced tree, from left to right and depth first; None without leaves.

    The shape of the tree depends on the number of leaves alone, so that rounding errors do not
    depend on which result was there first. At most one more result than the logarithm of
    their number is waiting at any time.

    Examples
    --------
    >>> from kitchenette.backends.plan import tree
    >>> tree("abcde", lambda a, b: f"({a}{b})")
    '(((ab)(cd))e)'
    """
    waiting: list[tuple[int, Value]] = []
    for leaf in leaves:
        height, value = 0, leaf
        while waiting and waiting[-1][0] == height:
            value = combine(waiting.pop()[1], value)
            height += 1
        waiting.append((height, value))
    if not waiting:
        return None
    root = waiting.pop()[1]
    while waiting:
        root = combine(waiting.pop()[1], root)
    return root


def number_of_partitions(n_rows: int) -> int:
    """How many partitions the rows of files are cut into, whatever the number of workers.

    Examples
    --------
    >>> from kitchenette.backends.plan import number_of_partitions
    >>> number_of_partitions(1_000), number_of_partitions(10**6), number_of_partitions(10**9)
    (1, 64, 3815)
    """
    rows = min(max(n_rows // USUAL_PARTITIONS, LEAST_ROWS), MOST_ROWS)
    return max(1, -(-n_rows // rows))


def file_partitions(files: Source) -> tuple[list[Reader], list[int]]:
    """Readers of consecutive rows of files, one for each partition, and their numbers of rows."""
    readers = files.readers(number_of_partitions(files.count()))
    return readers, [int(reader.n_rows or 0) for reader in readers]


def _values(values: Any) -> Any:
    if values is None:
        return None
    # Arrays that came through a network may begin anywhere in memory.
    return values.toarray() if sp.issparse(values) else np.require(values, requirements="A")


def _reader_of(X: Any, layout: Source) -> Reader:
    """The rows of a chunk, whose columns must be those of the layout."""
    if isinstance(X, Reader):
        return X
    if layout.is_table:
        kinds = {column.name: column.kind for column in layout.schema}
        return TableReader(_conforming(table_of(X), layout), kinds)
    if sp.issparse(X):
        X = checked_sparse(X)
    elif hasattr(X, "tocsr"):  # the sparse arrays of other libraries
        X = X.tocsr()
    elif not isinstance(X, np.ndarray):
        X = np.asarray(X)
    reader = ArrayReader(X)
    if X.shape[1] != len(layout.schema):
        raise DataError(
            f"there are {X.shape[1]} columns, where other partitions have {len(layout.schema)}."
        )
    wanted = np.dtype(layout.schema.columns[0].dtype)
    if wanted.kind == "f" and X.dtype != wanted:
        return ArrayReader(X.astype(wanted))
    return reader


def _conforming(table: Any, layout: Source) -> Any:
    """The columns of the layout, their numbers in its precision."""
    pa = arrow()
    table = selected(table, layout.schema.names)
    for j, column in enumerate(layout.schema):
        stored_type = table.column(j).type
        if str(stored_type) == column.dtype:
            continue
        kind, numeric = kind_of(stored_type), {"number", "boolean"}
        if pa.types.is_null(stored_type):
            text = column.kind == "category"
            table = table.set_column(
                j, column.name, table.column(j).cast(pa.string() if text else pa.float64())
            )
        elif kind != column.kind and not {kind, column.kind} <= numeric:
            raise DataError(
                f"the column {column.name!r} has values of the type {stored_type}, where other "
                f"partitions have {column.dtype}."
            )
        elif column.dtype in ("float", "double"):
            wanted = pa.float32() if column.dtype == "float" else pa.float64()
            table = table.set_column(j, column.name, table.column(j).cast(wanted, safe=False))
    return table


# ---------------------------------------------------------------- reductions of all sources


@dataclass(frozen=True)
class Lengths:
    """The numbers of rows of the partitions, by their numbers."""

    def of_partition(self, blocks: Iterable[Block], number: int) -> dict[int, int]:
        return {number: sum(block.n_rows for block in blocks)}

    def of(self, block: Block) -> NoReturn:
        raise NotImplementedError  # it needs the number of the partition

    def combined(self, a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
        return {**a, **b}


@dataclass(frozen=True)
class NotFinite:
    """The number of the first partition with numbers that are not finite; None if there is none.

    In targets and weights, missing values count as well.
    """

    missing: bool  # whether missing numbers count as well in the rows

    def of_partition(self, blocks: Iterable[Block], number: int) -> int | None:
        return number if any(map(self.of, blocks)) else None

    def of(self, block: Block) -> bool:
        if any(map(_is_incomplete, (block.y, block.weight))):
            return True
        bad = (
            (lambda x: not np.isfinite(x).all()) if self.missing else (lambda x: np.isinf(x).any())
        )
        if not is_table(block.X):
            return bool(bad(block.X.data if sp.issparse(block.X) else block.X))
        columns = [values for values in block.X.columns if kind_of(values.type) == "number"]
        return any(bool(bad(numbers_of(values, "number"))) for values in columns)

    def combined(self, a: int, b: int) -> int:
        return min(a, b)


def _is_incomplete(values: Any) -> bool:
    """Whether targets or weights have a value that is missing or not finite."""
    if values is None or values.dtype.kind not in "fO":
        return False
    if values.dtype.kind == "f":
        return not np.isfinite(values).all()
    return any(value is None or bool(value != value) for value in values.ravel().tolist())


def _taken(rows: NDArray[np.int64], block: Block) -> Block | None:
    """Those of some rows, given by increasing numbers, that are in a block; None if none is."""
    low, high = np.searchsorted(rows, [block.start, block.stop])
    if low == high:
        return None
    here = rows[low:high] - block.start
    y, weight = (None if part is None else part[here] for part in (block.y, block.weight))
    return Block(take(block.X, here), y, weight, block.start)


__all__ = ["PartitionError", "PartitionedSource", "blocks_of", "joined", "of_partition", "tree"]
