"""A value of all rows of a Spark data frame, combined in a tree on the executors.

Every task makes one value of its rows and sends it, as rows of bytes, to a task that combines two
of them, and so on; the driver receives the last one. What travels goes through Spark's shuffles,
which have the output of a task once however often the task was run: after a failure, by
speculation, or because its executor was lost. There are neither accumulators nor RDDs, so that it
works under Spark Connect as well.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote
from threadpoolctl import threadpool_limits

from kitchenette.backends.plan import PartitionError
from kitchenette.quantities import of_bytes

PIECES = "node int, start long, size long, data binary"
PIECE_ARROW = pa.schema(
    {"node": pa.int32(), "start": pa.int64(), "size": pa.int64(), "data": pa.binary()}
)
PARTITION = "__partition"  # the column that has the number of the partition of a row
BATCH_BYTES = 1 << 26  # of an Arrow batch between Spark and Python
LEAST_PIECE, MOST_PIECE = 1 << 12, 1 << 20  # bytes of a value in one row
RESULT_BYTES = 1 << 28  # that the driver takes from one task
NO_PACKAGE = "No module named 'kitchenette"
MOST_SENTENCES = 5  # about bad partitions in one error message
RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
RESULT_LIMIT = "spark.driver.maxResultSize"

Batches = Iterator[pa.RecordBatch]
OfPartition = Callable[[int, Batches], Any]
Combine = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Message:
    """What one task of the tree sends to the next."""

    value: Any  # the value of the rows below; None if there are none, or if there are problems
    leaves: tuple[int, ...]  # the numbers of the tasks whose rows these are
    # Numbers of partitions that could not be used, and why
    problems: tuple[tuple[int, str], ...] = ()
    sent: int = 0  # the number of bytes that were sent so far


@dataclass(frozen=True)
class Traffic:
    """What traveled for one value of all rows."""

    leaves: int  # the number of tasks that read rows
    depth: int  # the number of times that a value was sent on its way to the driver
    sent: int  # the number of bytes that all tasks sent together
    result: int  # the number of bytes that the driver received


# ---------------------------------------------------------------- on the executors


@dataclass(frozen=True)
class Leaf:
    """The value of the rows of a task, which may have several partitions; for `mapInArrow`."""

    of_partition: OfPartition
    combine: Combine
    piece_bytes: int

    def __call__(self, batches: Batches) -> Batches:
        leaf, value, problems = _task().partitionId(), None, []
        with _threads_of_task():
            for number, rows in by_partition(batches):
                try:
                    result = self.of_partition(number, rows)
                except PartitionError as error:
                    # Sent to the driver as a sentence: if the task failed, Spark would run it
                    # again and again, with the same result.
                    problems.append((number, str(error)))
                    value = None
                else:
                    value = None if problems else self.combine(value, result)
        yield from pieces(leaf, Message(value, (leaf,), tuple(problems)), self.piece_bytes)


@dataclass(frozen=True)
class Merge:
    """The values of two tasks as one; for `mapInArrow`."""

    combine: Combine
    piece_bytes: int

    def __call__(self, batches: Batches) -> Batches:
        inbox = Inbox()
        for batch in batches:
            inbox.add(*(column.to_pylist() for column in batch.columns))
        with _threads_of_task():
            merged = {
                parent: reduce(self._merged, (inbox.take(node) for node in nodes))
                for parent, nodes in groupby(sorted(inbox.nodes), key=lambda node: node // 2)
            }
        for parent, message in merged.items():
            yield from pieces(parent, message, self.piece_bytes)

    def _merged(self, a: Message, b: Message) -> Message:
        problems = a.problems + b.problems
        value = None if problems else self.combine(a.value, b.value)
        return Message(value, a.leaves + b.leaves, problems, a.sent + b.sent)


def by_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Batches]]:
    """The batches of each partition, without the column of its number, which is the last one."""

    def numbered() -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in batches:
            numbers = batch.column(batch.num_columns - 1).to_numpy()
            rows = batch.select(batch.schema.names[:-1])
            bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), batch.num_rows]
            for low, high in pairwise(bounds):
                if high > low:
                    yield int(numbers[low]), rows.slice(low, high - low)

    for number, group in groupby(numbered(), key=itemgetter(0)):
        yield number, (rows for _, rows in group)


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None  # this runs in a task
    return task


def _threads_of_task() -> Any:
    """As many threads as the task has cores; others compute beside it."""
    return threadpool_limits(_task().cpus())


def pieces(node: int, message: Message, piece_bytes: int) -> Batches:
    """A message in rows of few bytes, so that neither a row nor a batch of rows is too large."""
    data = memoryview(pickle.dumps(message, protocol=5))
    size, n_together = len(data), max(1, BATCH_BYTES // piece_bytes)
    starts = range(0, size, piece_bytes)
    for first in range(0, len(starts), n_together):
        chunk = starts[first : first + n_together]
        parts = [bytes(data[start : start + piece_bytes]) for start in chunk]
        columns = [node] * len(chunk), [*chunk], [size] * len(chunk), parts
        named = dict(zip(PIECE_ARROW.names, columns, strict=True))
        yield pa.RecordBatch.from_pydict(named, schema=PIECE_ARROW)


class Inbox:
    """Messages of which the pieces arrive in any order."""

    def __init__(self) -> None:
        self._data: dict[int, bytearray] = {}
        self._missing: dict[int, int] = {}

    @property
    def nodes(self) -> list[int]:
        """The senders."""
        return [*self._data]

    def add(self, nodes: list[int], starts: list[int], sizes: list[int], data: list[bytes]) -> None:
        """Keep some pieces."""
        for node, start, size, piece in zip(nodes, starts, sizes, data, strict=True):
            if node not in self._data:
                self._data[node], self._missing[node] = bytearray(size), size
            self._data[node][start : start + len(piece)] = piece
            self._missing[node] -= len(piece)

    def size(self, node: int) -> int:
        """The number of bytes of the message of a sender."""
        return len(self._data[node])

    def take(self, node: int) -> Message:
        """The message of a sender, which is kept no longer."""
        if self._missing.pop(node) != 0:
            raise RuntimeError(f"The message of task {node} is not complete.")
        data = self._data.pop(node)
        message: Message = pickle.loads(data)
        return replace(message, sent=message.sent + len(data))


# ---------------------------------------------------------------- on the driver


def tree_value(
    rows: DataFrame,
    of_partition: OfPartition,
    combine: Combine,
    n_tasks: int,
    n_bytes: int = 0,
) -> tuple[Any, Traffic]:
    """The value of all rows of a data frame, None without rows, and what traveled.

    ``of_partition`` gives the value of a partition from its number and the Arrow batches of its
    rows; a `PartitionError` becomes one here. At most ``n_tasks`` tasks read rows; each makes one
    value of its rows, which may come from several partitions. ``n_bytes`` is about the size of a
    value.
    """
    session = rows.sparkSession
    _check_result(session, n_bytes)
    piece_bytes = _piece_bytes(session)
    # The number of the partition is taken before several partitions become those of one task.
    numbered = rows.withColumn(PARTITION, F.spark_partition_id()).coalesce(n_tasks)
    level = numbered.mapInArrow(Leaf(of_partition, combine, piece_bytes), PIECES)
    n_nodes, depth = n_tasks, 1
    while n_nodes > 1:
        n_nodes, depth = (n_nodes + 1) // 2, depth + 1
        parents = level.repartitionById(n_nodes, F.shiftright("node", 1))
        level = parents.mapInArrow(Merge(combine, piece_bytes), PIECES)
    if n_bytes > RESULT_BYTES:
        n_results = -(-n_bytes // RESULT_BYTES)
        level = level.repartitionById(n_results, (F.col("start") / RESULT_BYTES).cast("int"))
    try:
        return _received(level, depth)
    except Exception as error:  # Spark Connect has other classes of errors
        if NO_PACKAGE not in str(error):
            raise
        raise ImportError(without_package(session)) from error


def _received(root: DataFrame, depth: int) -> tuple[Any, Traffic]:
    inbox = Inbox()
    for row in root.toLocalIterator():
        inbox.add(*([value] for value in row))
    if not inbox.nodes:
        return None, Traffic(0, depth, 0, 0)
    size, message = inbox.size(0), inbox.take(0)
    if len({*message.leaves}) != len(message.leaves):
        raise RuntimeError("A task was counted twice.")
    if message.problems:
        raise PartitionError(sentence_of(sorted(message.problems)))
    return message.value, Traffic(len(message.leaves), depth, message.sent, size)


def without_package(session: SparkSession) -> str:
    """The error message for workers whose Python cannot import this package."""
    told = session.conf.get("spark.pyspark.python", None) or os.environ.get("PYSPARK_PYTHON")
    try:
        # A function of no module, which travels as code: workers cannot import this one.
        scope: dict[str, Any] = {"__name__": "__main__"}
        exec("def executable(_):\n    import sys\n    return sys.executable\n", scope)
        told = session.range(1).select(F.udf(scope["executable"], "string")("id")).first()[0]
    except Exception:  # the question is no reason for another error
        told = told or "python3"
    return (
        f"The Python of Spark's workers, {told}, cannot import kitchenette: install it there with "
        "pip install 'kitchenette[spark]', or set PYSPARK_PYTHON (spark.pyspark.python) to a "
        "Python that has it, on every machine, before the session starts."
    )


def sentence_of(problems: list[tuple[int, str]]) -> str:
    sentences = [sentence for _, sentence in problems[:MOST_SENTENCES]]
    others = len(problems) - len(sentences)
    if others:
        numbers = ", ".join(str(number) for number, _ in problems[MOST_SENTENCES:][:20])
        sentences.append(f"So it is with {others} other partitions: {numbers}.")
    return "\n".join(sentences)


def n_cores(session: SparkSession) -> int:
    """The number of tasks that the cluster runs at a time; Spark Connect does not tell it."""
    numbers = session.range(1 << 20).select(F.spark_partition_id())
    return max(1, numbers.distinct().count())


def _piece_bytes(session: SparkSession) -> int:
    """The size of rows of which a batch, whose number of rows is a setting, is not too large."""
    records = int(session.conf.get(RECORDS, "10000") or 0)
    wanted = BATCH_BYTES // records if records > 0 else MOST_PIECE
    return min(max(wanted, LEAST_PIECE), MOST_PIECE)


def _check_result(session: SparkSession, n_bytes: int) -> None:
    """Refuse, before any work, a value that Spark Connect would not let pass to the client."""
    if not is_remote():
        return  # the driver takes one part of the value after the other
    limit = bytes_of_setting(session.conf.get(RESULT_LIMIT, "1g") or "1g")
    if 0 < limit < n_bytes:
        raise ValueError(
            f"The statistics take {of_bytes(n_bytes)}, and the server sends {of_bytes(limit)} at "
            f"most: start it with a larger {RESULT_LIMIT}, or use fewer features."
        )


def bytes_of_setting(text: str) -> int:
    """The number of bytes of a setting such as 512m, as Spark reads it."""
    text = text.strip().lower().removesuffix("b")
    unit = {"k": 10, "m": 20, "g": 30, "t": 40}.get(text[-1:])
    return int(text) if unit is None else int(text[:-1]) << unit
