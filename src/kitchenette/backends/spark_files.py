"""Files that the executors of Spark read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from kitchenette.backends.plan import file_partitions
from kitchenette.backends.spark_rows import SparkSource
from kitchenette.backends.spark_tree import Batches, n_cores
from kitchenette.data import Source
from kitchenette.data.reader import Reader


@dataclass(frozen=True)
class FileChunks:
    """The rows of a partition, which are those of a reader."""

    readers: Sequence[Reader]

    def __call__(self, number: int, batches: Batches) -> Iterator[Any]:
        yield self.readers[number]


def stored_source(files: Source, session: SparkSession) -> SparkSource:
    """The rows of files, which every executor reads for itself."""
    readers, lengths = file_partitions(files)
    # A row for each partition, whose number says which rows of the files are read.
    numbers = session.range(0, len(readers), 1, len(readers))
    return files.roles_for(
        SparkSource,
        _lengths=lengths,
        _files=files,
        _frame=numbers,
        _chunks=FileChunks(readers),
        _n_tasks=n_cores(session),
        stable=True,
    )


@contextmanager
def over_files(files: Source, scheduler: str) -> Iterator[SparkSource]:
    """The rows of files as a source whose computations run on a Spark cluster.

    Parameters
    ----------
    files : Source
        The files, which all executors must see under the same names.
    scheduler : str
        The address of a master of Spark, such as spark://host:7077 or local[2].

    Yields
    ------
    source : StoredSource

    Examples
    --------
    >>> import os, tempfile
    >>> import kitchenette
    >>> from kitchenette.spark import over_files
    >>> path = os.path.join(tempfile.mkdtemp(), "rows")
    >>> spark.range(1000).selectExpr("id / 100 as x", "sin(id / 100) as y").write.parquet(path)
    >>> files = kitchenette.data.source(path, target="y")
    >>> with over_files(files, "local[2]") as source:
    ...     model = kitchenette.KernelRegressor(random_state=0).fit(source)
    >>> model.statistics_.n_rows
    1000
    """
    before = SparkSession.getActiveSession()
    session = SparkSession.builder.appName("kitchenette").master(scheduler).getOrCreate()
    try:
        yield stored_source(files, session)
    finally:
        if before is None:
            session.stop()
