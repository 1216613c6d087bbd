"""The rows of a Spark data frame as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, FloatType

from kitchenette.backends.plan import PartitionedSource, blocks_of, of_partition
from kitchenette.backends.spark_tree import Batches, Traffic, n_cores, tree_value
from kitchenette.data import DataError, Source, source
from kitchenette.data.reader import Reader
from kitchenette.data.reduction import Reduction, joined
from kitchenette.data.source import check_name
from kitchenette.data.tables import values_of

MATRIX = "__features"
MOST_DENSE = 4096  # columns of vectors that become dense rows; wider ones stay sparse

# From the number of a partition and its Arrow batches, rows as `blocks_of` takes them.
Chunks = Callable[[int, Batches], Iterator[Any]]


@dataclass(eq=False, repr=False)
class SparkSource(PartitionedSource):
    """Rows on the executors of Spark; `frame_source` and `over_files` make one.

    Examples
    --------
    >>> from kitchenette.spark import frame_source
    >>> rows = spark.range(0, 100, 1, 4).selectExpr("id as x", "2 * id as y")
    >>> source = frame_source(rows, ["x"], "y", n_tasks=2)
    >>> source.count(), source.traffic[0].leaves
    (100, 2)
    """

    _frame: Any = None  # a data frame of Spark, which is sent to the tasks
    _chunks: Any = None  # gives the rows of a partition, see `Chunks`
    _n_tasks: int = 1  # that read rows
    stable: bool = False  # whether partitions have the same rows in every pass
    traffic: list[Traffic] = field(default_factory=list)  # what traveled for each reduction so far

    def reduced(self, reduction: Reduction) -> Any:
        """A computation on all rows, combined on the executors; only the result comes back."""
        given, starts = self.given_values(), self.starts_for(reduction)
        value, traffic = tree_value(
            self._frame,
            OfPartition(reduction, self._chunks, self.layout, starts, given),
            partial(joined, reduction),
            self._n_tasks,
            bytes_of(reduction),
        )
        self.traffic.append(traffic)
        return value

    def targets(self) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
        """The targets and weights of all rows, which iterative solvers begin with."""
        if not self.stable:
            raise DataError(
                "Losses other than the squared one and iterative solvers need the rows in the same "
                "order in every pass, which Spark does not promise in general: use "
                "frame_source(..., stable=True) for a data frame that has it, such as one of files."
            )
        return super().targets()

    @property
    def n_partitions(self) -> int:
        """The number of partitions up to the last one that has rows, which are counted for it."""
        return len(self.lengths())


def bytes_of(reduction: Any) -> int:
    """About the size of a result, if the reduction or the one that it is made of tells."""
    if reduction is None:
        return 0
    inner = getattr(reduction, "reduction", None)
    return int(getattr(reduction, "n_bytes", 0) or bytes_of(inner))


@dataclass(frozen=True)
class OfPartition:
    """The result of a reduction for a partition, on an executor."""

    reduction: Reduction  # what is computed
    chunks: Chunks  # gives the rows of a partition
    layout: Source  # the columns and their roles
    starts: Sequence[int]  # the index of the first row of each partition; empty if nobody asks
    # Targets and weights of all rows, where they are not those of the rows themselves
    given: tuple[NDArray[Any] | None, NDArray[Any] | None]

    def __call__(self, number: int, batches: Batches) -> Any:
        start = self.starts[number] if self.starts else 0
        chunks = self._with_given(self.chunks(number, batches), start)
        return of_partition(self.reduction, blocks_of(self.layout, chunks, start), number)

    def _with_given(self, chunks: Iterator[Any], start: int) -> Iterator[Any]:
        for chunk in chunks:
            X, *values = chunk if isinstance(chunk, tuple) else (chunk, None, None)
            n_rows = X.n_rows if isinstance(X, Reader) else X.shape[0]
            rows = slice(start, start + int(n_rows or 0))
            yield (
                X,
                *(
                    value if whole is None else whole[rows]
                    for value, whole in zip(values, self.given, strict=True)
                ),
            )
            start = rows.stop


# ---------------------------------------------------------------- data frames


@dataclass(frozen=True)
class FrameColumns:
    """The columns of a data frame that have a role."""

    features: Any  # a column of vectors or arrays, or the columns to predict from
    labels: Any  # the column to be predicted, or several
    weight: str | None  # the column of weights
    is_matrix: bool  # whether the features are a column of vectors or arrays

    @classmethod
    def of(
        cls, frame: DataFrame, features: Any, labels: Any = None, weight: str | None = None
    ) -> FrameColumns:
        """The columns, of which those that are missing are refused."""
        for role, names in (("featuresCol", features), ("labelCol", labels), ("weightCol", weight)):
            for name in _listed(names):
                check_name(role, name, frame.columns)
        is_matrix = isinstance(features, str) and isinstance(
            frame.schema[features].dataType, VectorUDT | ArrayType
        )
        return cls(features, labels, weight, is_matrix)

    def rows(self, frame: DataFrame) -> DataFrame:
        """These columns alone, in types that Arrow has."""
        if not self.is_matrix:
            return frame.select(*map(column, self.names))
        others = [column(name) for name in self.names[1:]]
        return frame.select(self.matrix(frame).alias(MATRIX), *others)

    @property
    def names(self) -> list[str]:
        """All names: those of features, labels and weights."""
        return [*_listed(self.features), *_listed(self.labels), *_listed(self.weight)]

    def matrix(self, frame: DataFrame) -> Column:
        """The column of vectors or arrays in types that Arrow has."""
        kind = frame.schema[self.features].dataType
        if isinstance(kind, VectorUDT):
            return F.unwrap_udt(column(self.features))
        single = isinstance(kind, ArrayType) and isinstance(kind.elementType, FloatType)
        return column(self.features).cast("array<float>" if single else "array<double>")

    def chunk(self, table: pa.Table) -> Any:
        """Rows as `blocks_of` takes them: a table, or rows, targets and weights."""
        if not self.is_matrix:
            return table
        X = self.of_column(table.column(0).combine_chunks())
        values = [values_of(table.column(name), name) for name in _listed(self.labels)]
        y = None
        if values:
            y = values[0] if isinstance(self.labels, str) else np.stack(values, axis=1)
        weight = None
        if self.weight is not None:
            weight = values_of(table.column(self.weight), self.weight).astype(np.float64)
        return X, y, weight

    def of_column(self, values: pa.Array) -> Any:
        """Rows to predict from, of the column of vectors or arrays or a struct of columns."""
        if self.is_matrix:
            return matrix_of_vectors(values, self.features)
        return pa.Table.from_arrays(values.flatten(), names=self.names)

    def layout(self, rows: DataFrame) -> Source:
        """The columns and their roles; of vectors or arrays, from the first row."""
        if not self.is_matrix:
            nothing = rows.limit(0).toArrow()
            return source(nothing, target=self.labels, weight=self.weight)
        first = rows.where(F.col(MATRIX).isNotNull()).head(1)
        if not first:
            raise DataError("The data frame has no rows.")
        field = rows.select(MATRIX).limit(0).toArrow().schema.field(0)
        value = first[0][MATRIX]
        value = value if isinstance(value, list) else value.asDict()
        return source(self.of_column(pa.array([value], field.type)))


@dataclass(frozen=True)
class FrameChunks:
    """The rows of a partition of a data frame, about ``size`` of them at a time."""

    columns: FrameColumns
    size: int

    def __call__(self, number: int, batches: Batches) -> Iterator[Any]:
        return map(self.columns.chunk, gathered(batches, self.size))


def frame_source(
    frame: DataFrame,
    features: Any,
    labels: Any = None,
    weight: str | None = None,
    n_tasks: int | None = None,
    *,
    stable: bool = False,
) -> SparkSource:
    """The rows of a Spark data frame as a source, which plain estimators can be fitted on.

    Parameters
    ----------
    frame : DataFrame
        The rows; they are read several times, so that it pays to cache what takes long to compute.
    features : str or list of str
        A column of vectors or arrays, or the columns to predict from.
    labels : str or list of str, optional
        The column to be predicted, or several.
    weight : str, optional
        The column of weights.
    n_tasks : int, optional
        The number of tasks that read rows; by default one for each core.
    stable : bool, default=False
        Whether partitions have the same rows in the same order whenever they are read, as those of
        files do, and those behind a shuffle do not. Iterative solvers need it.

    Returns
    -------
    source : SparkSource

    Examples
    --------
    >>> import kitchenette
    >>> from kitchenette.spark import frame_source
    >>> rows = spark.range(1000).selectExpr("id / 100 as x", "sin(id / 100) as y")
    >>> model = kitchenette.KernelRegressor(random_state=0).fit(frame_source(rows, ["x"], "y"))
    >>> model.statistics_.n_rows
    1000
    """
    columns = FrameColumns.of(frame, features, labels, weight)
    rows = columns.rows(frame)
    layout = columns.layout(rows)
    chunks = FrameChunks(columns, layout.block_rows())
    n_tasks = n_cores(frame.sparkSession) if n_tasks is None else n_tasks
    return layout.roles_for(
        SparkSource, _frame=rows, _chunks=chunks, _n_tasks=n_tasks, stable=stable
    )


def gathered(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Batches of rows as tables of about ``size`` rows."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= size:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def column(name: str) -> Column:
    """A column by its name, which may have dots."""
    return F.col("`" + name.replace("`", "``") + "`")


def _listed(names: Any) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else [*names]


# ---------------------------------------------------------------- vectors and arrays


def matrix_of_vectors(values: Any, name: str) -> Any:
    """Vectors or arrays as the rows of a matrix, which is sparse if they are and it is wide."""
    if values.null_count:
        row = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(f"{name!r} has no value in row {row} of a batch.")
    if not pa.types.is_struct(values.type):
        return _dense_rows(values, name)
    kinds, sizes, indices, numbers = values.flatten()
    is_sparse = kinds.to_numpy(zero_copy_only=False) == 0
    if not is_sparse.any():
        return _dense_rows(numbers, name)
    counts = _lengths(numbers)
    widths = np.where(is_sparse, sizes.fill_null(0).to_numpy(zero_copy_only=False), counts)
    width = _common(widths, name)
    of_sparse = np.repeat(is_sparse, counts)
    places = np.empty(of_sparse.size, np.int32)
    places[of_sparse] = indices.flatten().to_numpy(zero_copy_only=False)
    places[~of_sparse] = np.tile(np.arange(width, dtype=np.int32), int((~is_sparse).sum()))
    data = numbers.flatten().to_numpy(zero_copy_only=False)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    rows = sp.csr_matrix((data, places, bounds), shape=(counts.size, width))
    return rows.toarray() if width <= MOST_DENSE else rows


def _dense_rows(lists: Any, name: str) -> NDArray[Any]:
    width = _common(_lengths(lists), name)
    numbers: NDArray[Any] = lists.flatten().to_numpy(zero_copy_only=False)
    return numbers.reshape(len(lists), width)


def _lengths(lists: Any) -> NDArray[np.int64]:
    return np.asarray(lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _common(widths: NDArray[np.int64], name: str) -> int:
    other = np.flatnonzero(widths != widths[0])
    if other.size:
        raise DataError(
            f"{name!r} has {widths[0]} numbers in one row and {widths[other[0]]} in another."
        )
    return int(widths[0])
