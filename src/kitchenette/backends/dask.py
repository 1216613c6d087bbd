"""Dask arrays and data frames as rows of the estimators.

`fit` of a Dask collection is a graph: a task for each partition, which reads its rows and sums them
up, and a tree of tasks that combine the sums. Neighboring partitions prefer the same worker, so
that most combinations need no network. Predictions are collections that are computed later.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any, Self
from uuid import uuid4

import cloudpickle
import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from dask.local import get_sync
from dask.optimization import cull
from dask.sizeof import sizeof
from numpy.typing import NDArray

from kitchenette.backends.plan import (
    PartitionedSource,
    blocks_of,
    file_partitions,
    of_partition,
    tree,
)
from kitchenette.data import DataError, Source
from kitchenette.data import source as local_source
from kitchenette.data.reader import Reader
from kitchenette.data.reduction import Reduction, joined
from kitchenette.learning.partial import Partial

LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"
# Dask reads several Parquet files as one partition where few of their columns are used. Rows and
# targets use different columns of the same files: their partitions would be of different rows.
OWN_PARTITIONS = {"optimization.tune.active": False}
CHAINS = 4  # of partitions for each thread of a worker, so that idle workers can take some over


def _size_of_partial(partial: Partial) -> int:
    """The bytes of Gram matrices and sample, by which Dask plans memory and transfers."""
    parts = [part for part in (partial.statistics, *(partial.by_class or ())) if part is not None]
    grams = sum(4 * part.n_features * (part.n_features + 1) for part in parts)
    return grams + (0 if partial.sample is None else partial.sample.features.nbytes)


sizeof.register(Partial, _size_of_partial)

# ---------------------------------------------------------------- collections as sources


def source(
    data: Any,
    *,
    target: Any = None,
    weight: Any = None,
    ignore: str | Sequence[str] = (),
    missing: str = "median",
    dates: str = "refuse",
    kinds: Mapping[str, str] | None = None,
    precision: str | None = None,
    passes: int = 2,
    most_categories: int = 64,
) -> DaskSource:
    """The rows of a Dask collection, to be learned on its workers.

    ``KernelRegressor().fit(X, y)`` takes Dask collections themselves; this function is for targets
    and weights that are columns of a data frame, and for the other options of
    `kitchenette.data.source`, which have the same meaning here.

    Parameters
    ----------
    data : dask.array.Array or dask.dataframe.DataFrame
        Rows, in any number of partitions, whose lengths need not be known. The chunks of an array
        may be sparse matrices.
    target : str, list of str, or Dask array or series, optional
        The column to be predicted, or several; or their values in as many partitions.
    weight : str, or Dask array or series, optional
        The column of weights, or their values.
    ignore : str or sequence of str, optional
        Columns that are left out.
    missing, dates, kinds, precision, passes, most_categories
        As in `kitchenette.data.source`.

    Returns
    -------
    source : DaskSource
        For ``fit`` of the estimators.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import numpy as np
    >>> import pandas as pd
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.dask import source
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame(rng.normal(size=(500, 3)), columns=["a", "b", "target"])
    >>> rows = source(dd.from_pandas(frame, npartitions=4), target="target")
    >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(rows)
    >>> model.statistics_.n_rows
    500
    """
    options: dict[str, Any] = {
        "ignore": [ignore] if isinstance(ignore, str) else [*ignore],
        "missing": missing,
        "dates": dates,
        "kinds": kinds,
        "precision": precision,
        "passes": passes,
        "most_categories": most_categories,
    }
    named = {
        role: given
        for role, given in (("target", target), ("weight", weight))
        if isinstance(given, str) or _are_names(given)
    }
    layout = local_source(_example(data), **named, **options)
    if isinstance(data, da.Array):
        data = _rows_whole(data)
    y, w = (
        None if given is None or role in named else _beside(data, given, role)
        for role, given in (("target", target), ("weight", weight))
    )
    parts, lengths = Parts.of(data, y, w), _known_lengths(data)
    return layout.roles_for(DaskSource, _lengths=lengths, _parts=parts)


def source_of(X: Any, y: Any, sample_weight: Any) -> DaskSource:
    """Rows, targets and weights of ``fit`` as a source."""
    return source(X, target=y, weight=sample_weight)


def _are_names(given: Any) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)


def _is_frame(data: Any) -> bool:
    return not isinstance(data, Delayed) and hasattr(data, "map_partitions")


def _n_columns(array: da.Array) -> int:
    """The number of columns of an array, which must be known."""
    if array.ndim != 2 or not np.isfinite(array.shape[1]):
        raise DataError(
            "Rows must be a Dask array with two axes, of which the second is known; got one of "
            f"shape {array.shape}."
        )
    return int(array.shape[1])


def _example(data: Any) -> Any:
    """A few rows with the columns and types of a collection; those of arrays have no rows."""
    if isinstance(data, da.Array):
        return np.empty((0, _n_columns(data)), data.dtype)
    if _is_frame(data) and data.ndim == 2:
        return data._meta_nonempty
    raise DataError(
        "Rows must be a Dask array with two axes or a Dask data frame; got "
        f"{type(data).__module__}.{type(data).__name__}."
    )


def _rows_whole(array: da.Array) -> da.Array:
    """The array with all columns of a row in one chunk."""
    return array if array.ndim < 2 or array.numblocks[1] == 1 else array.rechunk({1: -1})


def _known_lengths(data: Any) -> list[int] | None:
    if isinstance(data, da.Array) and np.isfinite(data.chunks[0]).all():
        return [int(length) for length in data.chunks[0]]
    return None


def _beside(data: Any, values: Any, role: str) -> Any:
    """Targets or weights in the partitions of the rows."""
    lengths = _known_lengths(data)
    if isinstance(values, da.Array):
        values = _rows_whole(values)
        theirs = _known_lengths(values)
        if None not in (lengths, theirs) and sum(lengths) != sum(theirs):  # type: ignore[arg-type]
            raise ValueError(f"There are {sum(lengths)} rows, but {sum(theirs)} of {role}.")  # type: ignore[arg-type]
        if None not in (lengths, theirs) and lengths != theirs:
            values = values.rechunk({0: tuple(lengths)})  # type: ignore[arg-type]
    elif not _is_frame(values):
        if lengths is None:
            raise ValueError(
                f"The {role} of a collection whose partitions have unknown lengths must be a Dask "
                f"array or series with the same partitions; got {type(values).__name__}."
            )
        values = np.asarray(values)
        if values.shape[0] != sum(lengths):
            raise ValueError(f"There are {sum(lengths)} rows, but {values.shape[0]} of {role}.")
        chunks = (tuple(lengths), *((size,) for size in values.shape[1:]))
        values = da.from_array(values, chunks=chunks)
    if values.npartitions != data.npartitions:
        raise ValueError(
            f"The rows have {data.npartitions} partitions, but {role} has {values.npartitions}: "
            "repartition one of them."
        )
    return values


# ---------------------------------------------------------------- partitions in a graph


@dataclass(frozen=True)
class Inlined:
    """The rows of a partition as a graph of their own, which the task that uses them runs itself.

    So rows are never sent from the worker that read them to the one that learns them.
    """

    pickled: bytes

    def chunk(self) -> Any:
        graph, keys = cloudpickle.loads(self.pickled)
        values = iter(get_sync(graph, [key for key in keys if key is not None]))
        return tuple(None if key is None else next(values) for key in keys)


@dataclass(frozen=True)
class Stored:
    """The rows of a partition that a reader finds in files."""

    reader: Reader

    def chunk(self) -> Any:
        return self.reader, None, None


@dataclass(frozen=True)
class Parts:
    """What the partitions of a collection are computed from."""

    # For each partition what its task takes: an `Inlined` graph, `Stored` rows, or a list of three
    # delayed objects, rows, targets and weights
    inputs: list[Any]
    owners: list[str | None]  # for each partition the worker that has its rows in memory, or None

    @classmethod
    def of(cls, *collections: Any) -> Self:
        """The partitions of rows, targets and weights, of which the last two may be None."""
        if all(each is None or isinstance(each, da.Array) for each in collections):
            # Rows and targets often are parts of the same chunk. In optimized graphs each of them
            # computes that chunk for itself.
            source = cls._of(collections, optimize_graph=False)
            if all(isinstance(each, Inlined) for each in source.inputs):
                return source
        return cls._of(collections, optimize_graph=True)

    @classmethod
    def _of(cls, collections: Sequence[Any], *, optimize_graph: bool) -> Self:
        n_partitions = collections[0].npartitions
        columns = [_delayed_parts(each, n_partitions, optimize_graph) for each in collections]
        triples = [list(parts) for parts in zip(*columns, strict=True)]
        whole: dict[int, Any] = {}
        graphs = [_graph_of(triple, whole) for triple in triples]
        shared = {key for key, n in Counter(key for g in graphs for key in g).items() if n > 1}
        inputs: list[Any] = []
        for triple, graph in zip(triples, graphs, strict=True):
            if shared.isdisjoint(graph) and not any(map(_future_in, graph.values())):
                keys = [None if part is None else part.key for part in triple]
                inputs.append(Inlined(cloudpickle.dumps((graph, keys))))
            else:
                inputs.append(triple)
        return cls(inputs, [_owner(graph) for graph in graphs])

    def without_values(self) -> Self:
        """The same rows without targets and weights."""
        return type(self)([_rows_only(given) for given in self.inputs], self.owners)


def _delayed_parts(
    collection: Any, n_partitions: int, optimize_graph: bool
) -> list[Delayed | None]:
    if collection is None:
        return [None] * n_partitions
    # Optimizing a graph loses the futures of a persisted collection.
    persisted = any(map(_future_in, collection.__dask_graph__().values()))
    with dask.config.set(OWN_PARTITIONS):
        parts = collection.to_delayed(optimize_graph=optimize_graph and not persisted)
    delayed_parts = [*np.ravel(np.asarray(parts, dtype=object))]
    if len(delayed_parts) != n_partitions:
        raise DataError(
            f"Dask made {len(delayed_parts)} partitions of a collection of {n_partitions}: persist "
            "the rows, targets and weights first, so that their partitions stay as they are."
        )
    return delayed_parts


def _graph_of(parts: Sequence[Delayed | None], whole: dict[int, Any]) -> dict[Hashable, Any]:
    """The tasks of which some delayed objects are computed.

    ``whole`` keeps graphs as dictionaries, because all partitions of a collection share one.
    """
    tasks: dict[Hashable, Any] = {}
    for part in parts:
        if part is not None:
            graph = part.__dask_graph__()
            if id(graph) not in whole:
                whole[id(graph)] = graph, dict(graph)  # the graph too, so that its id stays its own
            tasks |= cull(whole[id(graph)][1], [part.key])[0]
    return tasks


def _future_in(task: Any) -> Any:
    """The future that a task of a persisted collection stands for, or None."""
    value = getattr(task, "value", task)
    return value if type(value).__module__.startswith("distributed") else None


def _owner(graph: Mapping[Hashable, Any]) -> str | None:
    futures = [future for future in map(_future_in, graph.values()) if future is not None]
    if not futures:
        return None
    holders = futures[0].client.who_has(futures[:1])
    return next((str(workers[0]) for workers in holders.values() if workers), None)


def _rows_only(given: Any) -> Any:
    if isinstance(given, Stored):
        return given
    if not isinstance(given, Inlined):
        return [given[0], None, None]
    graph, keys = cloudpickle.loads(given.pickled)
    return Inlined(cloudpickle.dumps((cull(graph, [keys[0]])[0], [keys[0], None, None])))


@dataclass(eq=False, repr=False)
class DaskSource(PartitionedSource):
    """The rows of a Dask collection; `kitchenette.dask.source` makes one.

    Attributes
    ----------
    n_partitions : int
        The number of partitions.
    progress : callable or None
        Called with the number of a partition when it is done, on a distributed cluster.

    Examples
    --------
    >>> import dask.array as da
    >>> from kitchenette.dask import source
    >>> rows = source(da.ones((10, 2), chunks=(4, 1)), target=da.arange(10))
    >>> rows.n_partitions, rows.count(), rows.take([3, 8]).y
    (3, 10, array([3, 8]))
    """

    _parts: Parts = field(default_factory=lambda: Parts([], []))

    @property
    def n_partitions(self) -> int:
        """The number of partitions."""
        return len(self._parts.inputs)

    def without_targets(self) -> Any:
        source: Any = super().without_targets()
        return replace(source, _parts=self._parts.without_values())

    def reduced(self, reduction: Reduction) -> Any:
        starts = self.starts_for(reduction)
        with _listening(self.progress) as topic:
            shared = _literal(Shared(reduction, self.layout, topic))
            slots = _slots()
            workers = _workers(self._parts.owners, slots)
            numbers = sorted(range(self.n_partitions), key=lambda i: (workers[i] or "", i))
            leaves = (
                self._chain(shared, chain, starts, workers[chain[0]])
                for chain in _chains(numbers, workers, slots)
            )
            root = tree(leaves, lambda a, b: delayed(_combined, pure=False)(shared, a, b))
            if root is None:
                return None
            with dask.config.set({LARGE_GRAPH: "10 GB"}):
                return root.compute(optimize_graph=False)

    def _chain(
        self, shared: Delayed, numbers: Sequence[int], starts: Sequence[int], worker: str | None
    ) -> Delayed:
        """The result of some partitions; each is added to that of those before it."""
        hints = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        chain = None
        for number in numbers:
            start = starts[number] if starts else 0
            y, weight = (
                None if values is None else values[start : start + self.lengths()[number]]
                for values in self.given_values()
            )
            with dask.annotate(**hints):
                chain = delayed(_learned, pure=False)(
                    shared, chain, number, start, self._parts.inputs[number], y, weight
                )
        assert chain is not None
        return chain


class InBand:
    """A value that travels as the bytes that the client made of it, its arrays among them.

    Dask sends large arrays beside a pickle, after which they begin anywhere in memory; native code
    needs the numbers of maps and weights at addresses that are multiples of their size. And workers
    send values on to others, also when a task has kept something in them that cannot be sent.
    """

    def __init__(self, pickled: bytes):
        self._pickled = pickled

    @cached_property
    def value(self) -> Any:
        return cloudpickle.loads(self._pickled)

    def __reduce__(self) -> tuple[Any, ...]:
        return InBand, (self._pickled,)


def _literal(value: Any) -> Delayed:
    """A value that many tasks of a graph use, and that each worker gets once.

    Its graph is made here. Dask would make it for each task that uses the value, together with the
    worker that the task prefers, and wait for that worker though it has died.
    """
    literal = delayed(InBand(cloudpickle.dumps(value)), traverse=False, pure=False)
    return Delayed(literal.key, literal.__dask_graph__())


@dataclass(frozen=True)
class Shared:
    """What all tasks of a reduction have in common, so that each worker gets it once."""

    reduction: Any
    layout: Source
    topic: str | None


def _learned(
    common: InBand, before: Any, number: int, start: int, given: Any, y: Any, weight: Any
) -> Any:
    """The task of a partition: its result, together with that of the partitions before it."""
    shared: Shared = common.value
    rows = given.chunk() if isinstance(given, Inlined | Stored) else tuple(given)
    chunk = (rows[0], rows[1] if y is None else y, rows[2] if weight is None else weight)
    result = of_partition(shared.reduction, blocks_of(shared.layout, [chunk], start), number)
    if shared.topic is not None:
        from distributed import get_worker

        get_worker().log_event(shared.topic, number)
    return joined(shared.reduction, before, result)


def _combined(common: InBand, a: Any, b: Any) -> Any:
    """The task of a node of the tree."""
    return joined(common.value.reduction, a, b)


# ---------------------------------------------------------------- the distributed scheduler


def _client() -> Any:
    """The client of the distributed scheduler that computes collections now, or None."""
    scheduler = dask.base.get_scheduler()
    owner = getattr(scheduler, "__self__", None)
    return owner if type(owner).__module__.startswith("distributed") else None


def _slots() -> list[str]:
    """The workers of the cluster, each as often as it has threads."""
    client = _client()
    if client is None:
        return []
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return [address for address in sorted(workers) for _ in range(workers[address]["nthreads"])]


def _workers(owners: Sequence[str | None], slots: Sequence[str]) -> list[str | None]:
    """The worker that each partition prefers: where its rows are, else one for neighbors."""
    if not slots:
        return [None] * len(owners)
    return [owner or slots[i * len(slots) // len(owners)] for i, owner in enumerate(owners)]


def _chains(
    numbers: Sequence[int], workers: Sequence[str | None], slots: Sequence[str]
) -> Iterator[Sequence[int]]:
    """Partitions that are added up one after the other, a few chains of them for each worker.

    A result that is passed on within a worker does not travel. If every partition were a task
    without a predecessor, idle workers would take some of them from the midst of others, and their
    results would have to be sent back.
    """
    for worker, group in groupby(numbers, key=lambda number: workers[number]):
        own = [*group]
        n_chains = min(len(own), CHAINS * max(1, slots.count(worker))) if worker else len(own)
        for i in range(n_chains):
            yield own[len(own) * i // n_chains : len(own) * (i + 1) // n_chains]


@contextmanager
def _listening(progress: Callable[[int], None] | None) -> Iterator[str | None]:
    """A topic on which workers tell that partitions are done; None if nobody listens."""
    client = None if progress is None else _client()
    if client is None or progress is None:
        yield None
        return
    topic = f"kitchenette-{uuid4().hex}"
    client.subscribe_topic(topic, lambda event: progress(event[1]))
    try:
        yield topic
    finally:
        client.unsubscribe_topic(topic)


# ---------------------------------------------------------------- files


def stored_source(files: Source) -> DaskSource:
    """The rows of files, which every worker reads for itself."""
    readers, lengths = file_partitions(files)
    parts = Parts([Stored(reader) for reader in readers], [None] * len(readers))
    return files.roles_for(DaskSource, _lengths=lengths, _files=files, _parts=parts)


@contextmanager
def over_files(files: Source, scheduler: str) -> Iterator[DaskSource]:
    """The rows of files as a source whose computations run on a Dask cluster.

    All workers must see the files under the same names. ``scheduler`` is the address of a
    scheduler, or "local-processes=N" for N processes of this machine.
    """
    from distributed import Client, LocalCluster

    name, _, number = scheduler.partition("=")
    if name != "local-processes":
        with Client(scheduler, set_as_default=True):
            yield stored_source(files)
        return
    if not number.isdigit() or int(number) < 1:
        raise ValueError(f"Say how many processes, as in local-processes=4; got {scheduler!r}.")
    with (
        LocalCluster(
            n_workers=int(number),
            threads_per_worker=1,
            dashboard_address=":0",
            memory_limit=0,
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster, set_as_default=True),
    ):
        yield stored_source(files)


# ---------------------------------------------------------------- predictions


def mapped(estimator: Any, method: str, X: Any, *arguments: Any, **options: Any) -> Any:
    """A method of a fitted estimator for each partition of a Dask collection, computed later.

    The method takes rows, then ``arguments`` and ``options``, and returns an array with a row for
    each; so the result is a Dask array, or a tuple of them.
    """
    rows = np.zeros((1, _n_columns(X)), X.dtype) if isinstance(X, da.Array) else _example(X)
    example = getattr(estimator, method)(rows, *arguments, **options)
    if isinstance(example, tuple):
        return tuple(
            _mapped(estimator, Call(method, arguments, options, place), X, values)
            for place, values in enumerate(example)
        )
    return _mapped(estimator.for_inference(), Call(method, arguments, options), X, example)


@dataclass(frozen=True)
class Call:
    """A method of an estimator and its arguments; ``place`` is that of one of several results."""

    method: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    place: int | None = None

    def __call__(self, rows: Any, estimator: InBand, example: NDArray[Any]) -> Any:
        if rows.shape[0] == 0:
            return example[:0]
        result = getattr(estimator.value, self.method)(rows, *self.arguments, **self.options)
        return result if self.place is None else result[self.place]


def _mapped(estimator: Any, call: Call, X: Any, example: NDArray[Any]) -> da.Array:
    """One array of results, which has the shape of an example behind the first axis."""
    width, meta = example.shape[1:], np.empty((0,) * example.ndim, example.dtype)
    common = {"estimator": _literal(estimator), "example": example}
    if not isinstance(X, da.Array):
        # `map_partitions` with a delayed argument fails for a single block of Parquet files:
        # "Cannot fuse tasks with multiple outputs" (Dask 2026.8).
        blocks = [
            da.from_delayed(delayed(call, pure=False)(part, **common), (np.nan, *width), meta=meta)
            for part in _delayed_parts(X, X.npartitions, optimize_graph=True)
        ]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)
    X = _rows_whole(X)
    chunks = (X.chunks[0], *((size,) for size in width))
    drop = [] if width else [1]
    return X.map_blocks(call, **common, chunks=chunks, drop_axis=drop, meta=meta)
