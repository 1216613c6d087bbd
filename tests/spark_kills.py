"""Kills executors and Python workers with SIGKILL in the middle of tasks; run by test_spark.py.

A cluster has two executors, each a process of Java with Python workers of its own. Every task
waits a little for each of its batches, and leaves a note of its process before. Somebody reads
these notes, and kills the process or its executor while it waits. Then a task is slow on its first
attempt, so that Spark runs a copy of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import spark_sessions
from spark_data import rows_and_targets

N_PARTITIONS, N_TASKS = 8, 4
PAUSE = 0.4  # seconds for each partition
SETTINGS = {
    "spark.task.maxFailures": "1000",
    "spark.stage.maxConsecutiveAttempts": "1000",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "3",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "100ms",
}


def slowly(batches: Iterator[pa.RecordBatch], notes: str, pause: float) -> Iterator[pa.RecordBatch]:
    """The same rows, after a note of this process and a pause for each batch."""
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task is not None
    for number, batch in enumerate(batches):
        name = f"{os.getpid()}-{task.taskAttemptId()}-{task.partitionId()}-{number}"
        Path(notes, name).write_text("")
        time.sleep(pause)
        yield batch


def reluctantly(batches: Iterator[pa.RecordBatch], notes: str) -> Iterator[pa.RecordBatch]:
    """The same rows, for which one task takes very long unless it is a copy."""
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task is not None
    first = task.attemptNumber() == 0
    Path(notes, f"{task.partitionId()}-{task.attemptNumber()}-{task.taskAttemptId()}").write_text(
        ""
    )
    if first and task.partitionId() == 1:  # the first row is read from partition 0
        time.sleep(600)
    yield from batches


class Killer(threading.Thread):
    """Kills processes that have left a note just now."""

    def __init__(self, notes: Path, n_executors: int, n_workers: int):
        super().__init__(daemon=True)
        self.notes, self.random = notes, Random(0)
        self.wanted = ["executor"] * n_executors + ["worker"] * n_workers
        self.random.shuffle(self.wanted)
        self.killed: list[str] = []

    def run(self) -> None:
        known: set[str] = set()
        while self.wanted:
            time.sleep(0.02)
            fresh = [path.name for path in self.notes.iterdir() if path.name not in known]
            known.update(fresh)
            # Every other task goes on, so that there is some progress.
            for name in fresh:
                if self.wanted and self.random.random() < 0.4:
                    self.kill(int(name.partition("-")[0]))

    def kill(self, worker: int) -> None:
        kind = self.wanted[-1]
        try:
            # The worker is a child of a daemon of Python, which is a child of the executor.
            process = parent_of(parent_of(worker)) if kind == "executor" else worker
            command = Path(f"/proc/{process}/cmdline").read_bytes()
            if kind == "executor" and b"CoarseGrainedExecutorBackend" not in command:
                return
            os.kill(process, signal.SIGKILL)
        except (OSError, ValueError):
            return  # it has ended meanwhile
        self.killed.append(self.wanted.pop())


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def main(folder: Path, n_kills: int) -> dict[str, Any]:
    with spark_sessions.standalone(folder, 2) as address:
        spark = spark_sessions.session(address, **SETTINGS)
        try:
            return found_on(spark, address, folder, n_kills)
        finally:
            spark.stop()


def found_on(spark: Any, address: str, folder: Path, n_kills: int) -> dict[str, Any]:
    from pyspark import cloudpickle

    import kitchenette
    from kitchenette.backends import scheduled
    from kitchenette.spark import KernelRegressor

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    X, y, _ = rows_and_targets(1200)
    plain = kitchenette.KernelRegressor(
        kitchenette.Fastfood(n_components=64, random_state=0), alpha=0.01, validation_rows=100
    )
    here = plain.fit(X, y)
    rows = [(x.tolist(), float(y[i]), i % N_PARTITIONS) for i, x in enumerate(X)]
    frame = spark.createDataFrame(rows, "features array<double>, label double, part int")
    frame = frame.repartitionById(N_PARTITIONS, "part")
    machine = KernelRegressor(plain, numTasks=N_TASKS)

    def result(model: Any) -> dict[str, float]:
        difference = np.abs(model.predict(X) - here.predict(X)).max()
        found = {"n_rows": model.statistics_.n_rows, "difference": float(difference)}
        print(found, file=sys.stderr, flush=True)  # to be seen if a later step fails
        return found

    notes, copies = folder / "notes", folder / "copies"
    notes.mkdir()
    copies.mkdir()
    killer = Killer(notes, n_kills, 2)
    killer.start()
    slow = frame.mapInArrow(partial(slowly, notes=str(notes), pause=PAUSE), frame.schema)
    fits = [result(machine.fit(slow).local())]
    while killer.wanted:  # the fits go on until all were killed
        fits.append(result(machine.fit(slow).local()))
    reluctant = frame.mapInArrow(partial(reluctantly, notes=str(copies)), frame.schema)
    copied = result(machine.fit(reluctant).local())

    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
    pq.write_table(table, folder / "rows.parquet")
    files = kitchenette.data.source(folder / "rows.parquet", target="y")
    with scheduled(files, address) as there:
        stored = kitchenette.KernelRegressor(plain.feature_map, random_state=0).fit(there)
    return {
        "executors_killed": killer.killed.count("executor"),
        "workers_killed": killer.killed.count("worker"),
        "fits": fits,
        "n_rows": here.statistics_.n_rows,
        "run_again": sum(path.name.split("-")[1] != "0" for path in copies.iterdir()),
        "copied": copied,
        "stored_rows": stored.statistics_.n_rows,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
