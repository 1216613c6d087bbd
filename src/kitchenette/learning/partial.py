"""What a model keeps of some rows, computed block by block, as a value that can be combined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from kitchenette import _core
from kitchenette.data.drawing import SampleBuilder, last_key_of_sample
from kitchenette.data.keys import Keys, can_be_hashed, row_keys
from kitchenette.data.rows import slices, take
from kitchenette.files.fields import Unsigned, field_values
from kitchenette.files.registry import storable
from kitchenette.learning.gram import check_learning_memory, storage_of
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.leave_one_out import RowSample
from kitchenette.learning.target_coding import TargetCoding, are_sorted, union_of_classes
from kitchenette.maps.protocol import FittedMap
from kitchenette.resources import BLAS, one_blas_thread
from kitchenette.sketching.operators import Operator

STEPS = 10  # the largest number of printed lines
Array = NDArray[np.float64]
# The size of a block of features, 16 MB in float32, within these numbers of rows: fewer make
# products inefficient, and more leave the cache.
LEARNED_NUMBERS, LEAST_ROWS, MOST_ROWS = 1 << 22, 256, 4096
CONVERTED_NUMBERS = 1 << 21  # entries of a table that become numbers at a time, 16 MB
Parts = list[LeastSquares | None]  # the statistics of each class; None for one without rows
MOST_COPIES = 2.0**53  # of all sampled rows; float64 counts no further
SAFE_SIZE = 1e100  # the sums of squares of smaller numbers do not overflow


def with_progress(blocks: Iterable[slice], n_rows: int, title: str) -> Iterator[slice]:
    """Iterate over blocks and show progress: a bar if rich is installed, printed lines if not."""
    try:
        from rich.progress import Progress
    except ImportError:
        yield from _printed(blocks, n_rows, title)
        return
    with Progress() as bar:
        task = bar.add_task(f"{title}, {n_rows} rows", total=n_rows)
        for rows in blocks:
            yield rows
            bar.update(task, completed=rows.stop)


def _printed(blocks: Iterable[slice], n_rows: int, title: str) -> Iterator[slice]:
    step = -(-n_rows // STEPS)
    for rows in blocks:
        yield rows
        if rows.stop == n_rows or rows.stop // step > rows.start // step:
            print(f"{title}: {rows.stop} of {n_rows} rows", flush=True)


class Batch(NamedTuple):
    """Features of rows, their target columns, their weights, and keys for sampling if needed."""

    Z: NDArray[Any]
    Y: Array
    weights: Array | None
    keys: Keys | None


class StatisticsBuilder:
    """Builds statistics from blocks of rows.

    Centered rows are buffered until there are enough for an efficient update of the whole Gram
    matrix, so blocks may be small. Number of rows and precision are what is expected; the
    storage of the Gram matrix is by default `storage_of` these features.
    """

    def __init__(
        self,
        n_features: int,
        n_targets: int,
        n_rows: int,
        dtype: DTypeLike,
        storage: str | None = None,
    ):
        room = n_rows + n_rows // LEAST_ROWS + 1  # one more row per block for the shift of means
        self._accumulator = _core.Accumulator(
            n_features,
            n_targets,
            room,
            in_float32=np.dtype(dtype) == np.float32,
            float32_gram=(storage or storage_of(n_features, dtype)) == "float32",
        )

    def add(self, Z: NDArray[Any], Y: Array, weights: Array | None) -> None:
        """Add a block of rows without checks."""
        with one_blas_thread():
            self._accumulator.add(Z, np.ascontiguousarray(Y), weights, blas=BLAS)

    def finish(self) -> LeastSquares:
        """The statistics of all rows; the builder must not be used afterwards."""
        with one_blas_thread():
            return LeastSquares._of(self._accumulator.finish(blas=BLAS))


def features(fitted: FittedMap, X: Any, memory: NDArray[Any] | None = None) -> NDArray[Any]:
    """The features of rows, written to ``memory`` if it is large enough."""
    rows = fitted.rows(X)
    return written(fitted, rows, fitted.operator(rows), memory)


def written(
    fitted: FittedMap, rows: Any, operator: Operator, memory: NDArray[Any] | None = None
) -> NDArray[Any]:
    """The features of checked rows by an operator, written to ``memory`` if it is large enough."""
    # Allocating new pages takes about as long as computing the features.
    n_rows = rows.shape[0]
    if memory is None or memory.shape[0] < n_rows or memory.dtype != operator.dtype:
        memory = np.empty((n_rows, operator.n_features), dtype=operator.dtype)
    Z = memory[:n_rows]
    if not operator.write(rows, Z):
        raise ValueError(fitted.overflow(rows))
    return Z


def batch(
    fitted: FittedMap,
    rows: Any,
    targets: NDArray[Any],
    coding: TargetCoding,
    weights: Array | None,
    *,
    with_keys: bool,
    memory: NDArray[Any] | None = None,
) -> Batch:
    """The features of a block of rows that the map has checked, and what belongs to them.

    Keys are those for a `RowSample`. Features are written to ``memory`` if they fit.
    """
    Z = written(fitted, rows, fitted.operator(rows), memory)
    keys = None
    if with_keys:
        keys = row_keys(rows if can_be_hashed(rows) else Z, coding.target_numbers(targets))
    return Batch(Z, coding.columns(targets), weights, keys)


class CheckedRows:
    """Blocks of rows, checked and converted by a map when they are asked for, in their order."""

    def __init__(self, fitted: FittedMap, X: Any, size: int) -> None:
        self._fitted, self._X = fitted, X
        self._size, self._start = size, 0
        if not isinstance(X, np.ndarray) and not sp.issparse(X):
            # Each column of a table is converted by itself, so several blocks are at once.
            self._size *= max(1, CONVERTED_NUMBERS // (X.shape[1] * size))
        self._rows: Any = None

    def __call__(self, block: slice) -> Any:
        """The rows of a block."""
        if self._rows is None or block.stop > self._start + self._rows.shape[0]:
            self._start = block.start
            self._rows = self._fitted.rows(
                take(self._X, slice(block.start, block.start + self._size))
            )
        return take(self._rows, slice(block.start - self._start, block.stop - self._start))


def accumulate(
    fitted: FittedMap,
    X: Any,
    targets: NDArray[Any],
    coding: TargetCoding,
    weights: Array | None,
    keys: Keys | None = None,
    *,
    n_sampled: int,
    title: str | None = None,
) -> tuple[LeastSquares, RowSample | None]:
    """New statistics of the features of rows and of their targets, and a sample of the rows.

    The hash values of the rows and their targets are computed unless they are given. There is
    no sample of size zero. Progress is shown under a title.
    """
    n_rows, n_features = X.shape[0], fitted.n_features_out_
    check_learning_memory(n_features, np.float32, n_rows=n_rows, n_sampled=n_sampled)
    size = min(max(LEARNED_NUMBERS // n_features, LEAST_ROWS), MOST_ROWS)
    blocks = slices(n_rows, size)
    if title is not None:
        blocks = with_progress(blocks, n_rows, title)
    builder, memory, checked = None, None, CheckedRows(fitted, X, size)
    sampler: SampleBuilder[RowSample] = SampleBuilder(n_sampled)
    if keys is not None and n_sampled > 0:
        sampler.last_key = last_key_of_sample(keys, n_sampled)
    for rows in blocks:
        block = batch(
            fitted,
            checked(rows),
            targets[rows],
            coding,
            None if weights is None else weights[rows],
            with_keys=n_sampled > 0 and keys is None,
            memory=memory,
        )
        if keys is not None and n_sampled > 0:
            block = block._replace(keys=keys[rows])
        memory = block.Z if memory is None else memory
        if builder is None:
            dtype = block.Z.dtype  # float64 takes more memory
            check_learning_memory(n_features, dtype, n_rows=n_rows, n_sampled=n_sampled)
            builder = StatisticsBuilder(n_features, block.Y.shape[1], n_rows, block.Z.dtype)
        builder.add(block.Z, block.Y, block.weights)
        if block.keys is not None:
            Z, Y, units = block.Z, block.Y, block.weights
            sampler.add(RowSample.of(n_sampled, block.keys, Z, Y, units, sampler.last_key))
    assert builder is not None
    return builder.finish(), sampler.finish() if n_sampled > 0 else None


def balancing_factors(counts: NDArray[Any]) -> Array:
    """Factors of the weights that balance classes of these sizes.

    Rows are counted by their weights, so that a row of weight 2 and two equal rows are the same.
    """
    counts = counts.astype(np.float64)
    mean = counts.sum() / max(np.count_nonzero(counts), 1)
    return np.divide(mean, counts, out=np.zeros_like(counts), where=counts > 0)


def balancing(parts: Parts) -> Array:
    """The balancing factors of classes, from their statistics."""
    return balancing_factors(np.array([0.0 if part is None else part.count for part in parts]))


def balanced(parts: Parts) -> LeastSquares:
    """The statistics of all rows with balanced class weights."""
    weighted = [
        part.reweighted(factor)
        for part, factor in zip(parts, balancing(parts), strict=True)
        if part is not None
    ]
    if not weighted:
        raise ValueError("No row would be left.")
    whole = weighted[0]
    for part in weighted[1:]:
        whole.merge(part)
    return whole


def both(mine: Parts, theirs: Parts) -> Parts:
    """The statistics of the rows of both, class by class."""
    return [
        a if b is None else b if a is None else a.combined(b)
        for a, b in zip(mine, theirs, strict=True)
    ]


def extended(parts: Parts, columns: NDArray[np.intp], n_classes: int) -> Parts:
    """The same statistics among more classes; ``columns`` are the positions of the present ones."""
    more: Parts = [None] * n_classes
    for column, part in zip(columns, parts, strict=True):
        more[column] = None if part is None else part.with_targets(columns, n_classes)
    return more


def combined_samples(mine: RowSample | None, theirs: RowSample | None) -> RowSample | None:
    """The sample of the rows of both; None if one of them has none."""
    return None if mine is None or theirs is None else mine.combined(theirs)


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class Partial:
    """All that a model keeps of some rows; see `kitchenette.training`.

    It is never changed, so it may be shared by threads, computed twice, pickled, and stored by
    `kitchenette.save`. Its size does not depend on the number of rows. The features of a few rows
    that were added last are kept apart (``pending``), so that adding a row does not copy the
    statistics.

    Attributes
    ----------
    estimator : str
        The name of the class of the estimator.
    origin : str
        A digest of the prepared estimator. Partials of different origin are of different
        features, and are not combined.
    n_rows : int
        The number of rows; rows of weight zero are not counted.
    settled : LeastSquares or None
        The statistics of the rows that are not pending; None if there are no rows, or if the
        statistics are kept by class.
    pending : tuple of Batch
        The features of further rows.
    by_class : list of LeastSquares or None
        With ``class_weight="balanced"``, the statistics of each class, None for those without rows.
    sample : RowSample or None
        A sample of the rows, to check the model; None if none is kept.
    classes : ndarray or None
        The labels that are known, sorted; None if the targets are no labels.
    target_dtype : str
        The precision of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.training import combine, partial, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> prepared = prepare(KernelRegressor(Fastfood(random_state=0)), X[:50], X[:50, 0])
    >>> parts = [partial(prepared, X[i : i + 100], X[i : i + 100, 0]) for i in (0, 100, 200)]
    >>> combine(parts[0], parts[2]).n_rows
    200
    """

    estimator: str
    origin: str
    n_rows: Unsigned = 0
    settled: LeastSquares | None = None
    by_class: Parts | None = None
    sample: RowSample | None = None
    classes: NDArray[Any] | None = None
    target_dtype: str = "float32"
    pending: tuple[Batch, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for part in (self.settled, *(self.by_class or ())):
            if part is not None:
                part.freeze()

    @cached_property
    def statistics(self) -> LeastSquares | None:
        """The statistics of all rows, with balanced classes if they are kept by class."""
        if self.by_class is not None:
            whole = balanced(self.by_class)
        elif self.settled is None or not self.pending:
            return self.settled
        else:
            whole = copy(self.settled)
            for batch in joined_batches(self.pending):
                whole.update(batch.Z, batch.Y, batch.weights)
        whole.freeze()
        return whole

    @property
    def validation_sample(self) -> RowSample | None:
        """The sample with the weights that its rows have in the statistics."""
        if self.sample is None or self.by_class is None:
            return self.sample
        return self.sample.reweighted(balancing(self.by_class)[self.sample.targets.argmax(axis=1)])

    def combined(self, other: Self) -> Self:
        """The partial of the rows of both; neither is changed."""
        if not isinstance(other, Partial):
            raise ValueError(f"A Partial is combined with another one; got {other!r:.80}.")
        if (self.estimator, self.origin) != (other.estimator, other.origin):
            raise ValueError(
                "Cannot combine partials of differently prepared estimators, as they are of "
                "different features. Prepare one estimator, and use it for all rows."
            )
        mine, theirs = self, other
        if self.classes is not None and other.classes is not None:
            classes = union_of_classes(self.classes, other.classes)
            mine, theirs = self.among(classes), other.among(classes)
        if not theirs.n_rows or not mine.n_rows:
            return mine if mine.n_rows else theirs
        by_class = None
        if mine.by_class is not None and theirs.by_class is not None:
            by_class = both(mine.by_class, theirs.by_class)
        statistics = None
        if by_class is None and mine.statistics is not None and theirs.statistics is not None:
            statistics = mine.statistics.combined(theirs.statistics)
        return replace(
            mine,
            n_rows=mine.n_rows + theirs.n_rows,
            settled=statistics,
            pending=(),
            by_class=by_class,
            sample=combined_samples(mine.sample, theirs.sample),
            target_dtype=max(mine.target_dtype, theirs.target_dtype),
        )

    def with_batch(self, batch: Batch) -> Self:
        """The partial with the rows of a batch in addition."""
        n_rows = batch.Z.shape[0] if batch.weights is None else np.count_nonzero(batch.weights)
        sample = self.sample
        keys = batch.keys
        if sample is not None and keys is not None and (keys <= np.uint64(sample.last_key)).any():
            sample = sample.combined(RowSample.of(sample.size, keys, *batch[:3]))
        more = replace(
            self, n_rows=self.n_rows + int(n_rows), sample=sample, pending=(*self.pending, batch)
        )
        waiting = sum(waits.Z.shape[0] for waits in more.pending)
        sizes = [float(np.abs(n).max(initial=0)) for n in batch[:3] if n is not None]
        if waiting < MOST_ROWS and max(sizes) < SAFE_SIZE:
            return more
        # Large numbers are added at once, so that it is this call that refuses sums without end.
        return replace(more, settled=more.statistics, pending=())

    def without_batch(self, batch: Batch, targets: NDArray[np.intp]) -> Self:
        """The partial without the rows of a batch, which belong to it, with encoded targets."""
        sample, by_class = self.sample, self.by_class
        parts = [self.statistics] if by_class is None else list(by_class)
        of_part = np.zeros(batch.Z.shape[0], np.intp) if by_class is None else targets
        has_rows = np.array([part is not None for part in parts])
        if not has_rows[of_part].all():
            assert self.classes is not None
            label = self.classes.tolist()[targets[~has_rows[of_part]][0]]
            raise ValueError(f"No row of class {label!r} was learned.")
        if sample is not None and batch.keys is not None:
            sample = sample.without(batch.keys, batch.weights)
        for number in np.unique(of_part):
            of_class, left = of_part == number, copy(parts[number])
            assert left is not None
            weights = None if batch.weights is None else batch.weights[of_class]
            left.downdate(batch.Z[of_class], batch.Y[of_class], weights)
            parts[number] = left if left.n_rows > 0 or by_class is None else None
        n_rows = sum(part.n_rows for part in parts if part is not None)
        if by_class is None:
            return replace(self, n_rows=n_rows, settled=parts[0], pending=(), sample=sample)
        if n_rows == 0:
            raise ValueError("No row would be left.")
        return replace(self, n_rows=n_rows, by_class=parts, sample=sample)

    def among(self, classes: NDArray[Any]) -> Self:
        """The same rows among more classes, which include all that are known."""
        if self.classes is None or classes.size == self.classes.size:
            return replace(self, classes=classes)
        columns, n_classes = np.searchsorted(classes, self.classes), classes.size
        changed: dict[str, Any] = {"classes": classes, "pending": ()}
        if self.by_class is not None:
            changed["by_class"] = extended(self.by_class, columns, n_classes)
        elif self.statistics is not None:
            changed["settled"] = self.statistics.with_targets(columns, n_classes)
        if self.sample is not None:
            changed["sample"] = self.sample.with_targets(columns, n_classes)
        return replace(self, **changed)

    def equals(self, other: Self) -> bool:
        """Whether another partial has the same statistics, so that it may be of the same rows."""
        if (self.by_class is None) != (other.by_class is None) or self.n_rows != other.n_rows:
            return False
        labels = [None if part.classes is None else part.classes.tolist() for part in (self, other)]
        mine, theirs = self.statistics, other.statistics
        if labels[0] != labels[1] or mine is None or theirs is None:
            return False
        return mine.equals(theirs)

    @property
    def n_targets(self) -> int | None:
        """The number of target columns; None if there are no rows."""
        parts = [*(self.by_class or ()), self.settled]
        return next((part.n_targets for part in parts if part is not None), None)

    def __getstate__(self) -> dict[str, Any]:
        return self.to_file()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def to_file(self) -> dict[str, Any]:
        """All values, with the pending rows among the others, for a model file."""
        settled = None if self.by_class is not None else self.statistics
        return {**field_values(self), "settled": settled, "pending": ()}

    def check(self) -> None:
        """Refuse values that do not belong together."""
        parts = [part for part in self.by_class or () if part is not None]
        if self.settled is not None:
            parts.append(self.settled)
        shapes = {(part.n_features, part.n_targets) for part in parts}
        if self.sample is not None:
            shapes.add((self.sample.features.shape[1], self.sample.targets.shape[1]))
            if self.sample.copies.sum(dtype=np.float64) > MOST_COPIES:
                raise ValueError("the rows of the sample cannot have so many copies.")
        if self.settled is not None and self.by_class is not None:
            raise ValueError("statistics are those of all rows, or of each class.")
        if len(shapes) > 1 or bool(parts) != bool(self.n_rows):
            raise ValueError("statistics and sample must have the same shape.")
        if sum(part.n_rows for part in parts) != self.n_rows:
            raise ValueError("n_rows must be the number of rows of the statistics.")
        if self.classes is not None:
            n_targets = self.n_targets
            if n_targets is not None and n_targets != self.classes.size:
                raise ValueError("there must be a target column for each class.")
            if self.by_class is not None and len(self.by_class) != self.classes.size:
                raise ValueError("by_class must have an entry for each class.")
            if not are_sorted(self.classes):
                raise ValueError("classes must be sorted.")
        if self.target_dtype not in ("float32", "float64"):
            raise ValueError("target_dtype must be float32 or float64.")


def joined_batches(batches: tuple[Batch, ...]) -> list[Batch]:
    """Batches of the same precision as one, so that they join the statistics in one call."""
    merged = []
    for dtype in sorted({batch.Z.dtype.name for batch in batches}):
        same = [batch for batch in batches if batch.Z.dtype.name == dtype]
        weights = None
        if any(batch.weights is not None for batch in same):
            weights = np.concatenate(
                [np.ones(b.Z.shape[0]) if b.weights is None else b.weights for b in same]
            )
        Z, Y = (np.concatenate([batch[part] for batch in same]) for part in (0, 1))
        merged.append(Batch(Z, Y, weights, None))
    return merged
