"""Fits on a cluster of processes: workers that are killed, tasks that fail, bytes that travel."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kitchenette import Fastfood, KernelClassifier, KernelRegressor
from kitchenette.kernels import Gaussian
from kitchenette.training import partial, prepare

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests

pytestmark = [
    pytest.mark.slow,
    # Sockets of workers that were killed are closed by nobody.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ROWS, COLUMNS = 60, 3
KILLS = 10


def rows_of(number: int, pause: float = 0.0, failed: str | None = None) -> np.ndarray:
    """The rows and targets of a partition, slowly, or after one failure."""
    time.sleep(pause)
    if failed is not None:
        place = Path(failed, str(number))
        if not place.exists():
            place.touch()
            raise OSError(f"partition {number} cannot be read this time")
    X = np.random.default_rng(number).normal(size=(ROWS, COLUMNS))
    return np.column_stack([X, np.sin(2 * X[:, 0]) + X[:, 1]])


def collection(n_parts: int, **options) -> tuple[da.Array, da.Array]:
    parts = [
        da.from_delayed(
            dask.delayed(rows_of, pure=False)(i, **options), (ROWS, COLUMNS + 1), dtype=float
        )
        for i in range(n_parts)
    ]
    whole = da.concatenate(parts)
    return whole[:, :COLUMNS], whole[:, COLUMNS]


def local(n_parts: int) -> tuple[np.ndarray, np.ndarray]:
    whole = np.concatenate([rows_of(i) for i in range(n_parts)])
    return whole[:, :COLUMNS], whole[:, COLUMNS]


def fastfood(n_components=32):
    return Fastfood(Gaussian(1.5), n_components=n_components, random_state=0)


@contextmanager
def cluster(n_workers: int):
    settings = {
        "distributed.scheduler.allowed-failures": 1000,
        "distributed.worker.memory.terminate": False,
        # A worker that happens to be dead 15 seconds after another death would not be replaced.
        "distributed.deploy.lost-worker-timeout": "1 hour",
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=0,
            silence_logs=50,
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


class Killer(threading.Thread):
    """Kills workers that are at work, one after the other, at random times."""

    def __init__(self, client, seed: int, most: int):
        super().__init__(daemon=True)
        self.client, self.most, self.killed = client, most, 0
        self._random, self._ended = np.random.default_rng(seed), threading.Event()
        self._victims: set[str] = set()

    def run(self):
        while self.killed < self.most and not self._ended.is_set():
            time.sleep(float(self._random.uniform(0.1, 0.6)))
            busy = {address for address, tasks in self.client.processing().items() if tasks}
            # The nannies know the numbers of the processes; asking a dying worker takes long. They
            # give up on a worker that dies while it starts, so none is killed twice.
            for nanny in [*self.client.cluster.workers.values()]:
                address = nanny.worker_address
                if address in busy - self._victims and nanny.pid is not None:
                    self._victims.add(address)
                    os.kill(nanny.pid, signal.SIGKILL)
                    self.killed += 1
                    break

    def stop(self):
        self._ended.set()
        self.join()


def test_every_partition_counts_once_though_workers_are_killed():
    n_parts, killed = 24, 0
    X, y = local(n_parts)
    whole = KernelRegressor(fastfood()).fit(X, y)
    with cluster(2) as client:
        for seed in range(20):
            killer = Killer(client, seed, KILLS - killed)
            rows, targets = collection(n_parts, pause=0.2)
            killer.start()
            found = KernelRegressor(fastfood()).fit(rows, targets)
            killer.stop()
            killed += killer.killed
            assert found.statistics_.n_rows == n_parts * ROWS
            assert_allclose(
                found.statistics_.gram.values, whole.statistics_.gram.values, rtol=1e-9, atol=1e-9
            )
            assert_allclose(found.predict(X), whole.predict(X), rtol=1e-9, atol=1e-9)
            if killed >= KILLS:
                break
    assert killed >= KILLS


def test_one_cluster_many_promises(tmp_path):
    n_parts = 12
    X, y = local(n_parts)
    whole = KernelRegressor(fastfood()).fit(X, y)
    with cluster(2) as client:
        # Tasks that fail are run again, and count once.
        rows, targets = collection(n_parts, failed=str(tmp_path))
        with dask.annotate(retries=5):
            found = KernelRegressor(fastfood()).fit(rows, targets)
        assert len([*tmp_path.iterdir()]) == n_parts
        assert found.statistics_.n_rows == n_parts * ROWS
        assert_allclose(found.predict(X), whole.predict(X), rtol=1e-9, atol=1e-9)

        # Rows that are in the memory of workers are learned there.
        kept = [part.persist() for part in collection(n_parts)]
        again = KernelRegressor(fastfood()).fit(*kept)
        assert_allclose(again.predict(X), whole.predict(X), rtol=1e-9, atol=1e-9)

        # Many passes, and labels.
        labels = (y > 0).astype(int)
        logistic = KernelClassifier(fastfood(), loss="logistic", alpha=1.0, tol=0.1)
        expected = logistic.fit(X, labels).decision_function(X)
        rows, targets = collection(n_parts)
        found = logistic.fit(rows, (targets > 0).astype(int))
        assert_allclose(found.decision_function(X), expected, rtol=1e-8, atol=1e-8)
        assert_allclose(found.predict(rows).compute(), found.predict(X))

        # What travels between workers.
        before = sent(client)
        big = fastfood(512)
        many = 128  # so many that idle workers take over some
        model = KernelRegressor(big, validation_rows=0).fit(*collection(many))
        traveled = {worker: n - before.get(worker, 0) for worker, n in sent(client).items()}
        prepared = prepare(KernelRegressor(big, validation_rows=0), X, y)
        statistics = len(pickle.dumps(partial(prepared, X, y), protocol=5))
        assert model.statistics_.n_rows == many * ROWS
        sample = 8 * many * ROWS * (COLUMNS + 1)
        assert max(traveled.values()) > statistics / 2  # two workers: one of them sends its own
        assert max(traveled.values()) <= 2 * statistics * np.log2(many) + sample


def sent(client) -> dict[str, int]:
    """The bytes that each worker has sent to others and to the client."""
    return client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
