"""One pass over rows on Dask: time, efficiency and bytes, beside one process and dask_ml.

python -m benchmarks.clusters                                  # about an hour on two cores
python -m benchmarks.clusters --features 1024 --seconds 10     # one size, for a look
python -m benchmarks.clusters --rows 10000000                  # as many rows as told
python -m benchmarks.clusters --out measured.json              # for benchmarks.cluster_simulation

Rows of 100 columns are generated on the workers, and learned with Fastfood features: in one process
by one thread, and on Dask with one and with two workers of one thread each. There are as many rows
as one thread learns in about ``--seconds``; rates are per row. ``overhead`` is the time of one
worker relative to the process without Dask, ``efficiency`` the time of one worker relative to twice
that of two. Bytes are those that the busiest worker sent, beside the bound
2 x statistics x depth + sample. Beside that, `dask_ml.linear_model.LinearRegression` fits features
of the same map that were computed before and are in the memory of the workers, which takes many
passes over all of them; it needs ``pip install dask-ml``.
"""

from __future__ import annotations

import json
import pickle
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import kitchenette
from benchmarks.timing import options_parser
from kitchenette import Fastfood, KernelRegressor
from kitchenette.kernels import Gaussian
from kitchenette.training import Partial, combine, partial, prepare

N_COLUMNS = 100
BLOCK_ROWS = 8192  # rows that are generated together, a partition
SAMPLE_ROWS = 2000  # that the map is prepared on in one process
MOST_STORED = 1e9  # bytes of features that were computed before
PILOT_BLOCKS = 2

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One measurement."""

    name: str
    n_features: int
    n_rows: int
    seconds: float
    bytes_sent: int = 0
    bound: float = 0.0

    @property
    def per_row(self) -> float:
        """Microseconds."""
        return 1e6 * self.seconds / self.n_rows


def generated(block: int, n_rows: int = BLOCK_ROWS) -> Array:
    """The rows of a block with their targets in the last column, a function of its number."""
    X = np.random.default_rng(block).standard_normal((n_rows, N_COLUMNS))
    return np.column_stack([X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2]])


def machine(n_features: int) -> KernelRegressor:
    feature_map = Fastfood(Gaussian(10.0), n_features, random_state=0)
    return KernelRegressor(feature_map, alpha=1.0, solver="onepass", validation_rows=0)


def collection(n_blocks: int) -> tuple[da.Array, da.Array]:
    """Rows and targets that the workers generate."""
    shape = (BLOCK_ROWS, N_COLUMNS + 1)
    parts = [
        da.from_delayed(dask.delayed(generated)(block), shape, dtype=float)
        for block in range(n_blocks)
    ]
    whole = da.concatenate(parts)
    return whole[:, :-1], whole[:, -1]


# ---------------------------------------------------------------- one process


def summed_up(n_features: int, n_blocks: int) -> tuple[float, Partial, float]:
    """The seconds of learning blocks of rows, their partial, and the seconds of a merge."""
    with threadpool_limits(1):
        first = generated(0, SAMPLE_ROWS)
        prepared = prepare(machine(n_features), first[:, :-1], first[:, -1])
        found, start = None, perf_counter()
        for block in range(n_blocks):
            rows = generated(block)
            part = partial(prepared, rows[:, :-1], rows[:, -1])
            found = part if found is None else combine(found, part)
        seconds = perf_counter() - start
        assert found is not None
        start = perf_counter()
        combine(found, found)
        return seconds, found, perf_counter() - start


def in_one_process(n_features: int, n_blocks: int, results: Any) -> None:
    """To be run in a process of its own, whose native code has one thread."""
    seconds, result, merge = summed_up(n_features, n_blocks)
    size = len(pickle.dumps(result, protocol=5))
    start = perf_counter()
    pickle.loads(pickle.dumps(result, protocol=5))
    results.put((seconds, merge, size, perf_counter() - start))


def measured_alone(n_features: int, n_blocks: int) -> tuple[float, float, int, float]:
    """Seconds of all blocks and of a merge, the size of statistics, and seconds to copy them."""
    context = get_context("spawn")
    results = context.Queue()
    process = context.Process(target=in_one_process, args=(n_features, n_blocks, results))
    with one_thread():
        process.start()
    found: tuple[float, float, int, float] = results.get()
    process.join()
    return found


@contextmanager
def one_thread() -> Iterator[None]:
    """Let new processes have one thread, as those of Dask's workers have."""
    import os

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


# ---------------------------------------------------------------- Dask


@contextmanager
def cluster(n_workers: int) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as made,
        Client(made) as client,
    ):
        yield client


def sent(client: Client) -> dict[str, int]:
    """The bytes that each worker has sent."""
    found: dict[str, int] = client.run(
        lambda dask_worker: dask_worker.transfer_outgoing_bytes_total
    )
    return found


def on_dask(n_features: int, n_blocks: int, n_workers: int, statistics: int) -> tuple[Run, float]:
    """A fit on a cluster, and the seconds of the solution that is part of it."""
    with cluster(n_workers) as client:
        machine(64).fit(*collection(2))  # so that modules are loaded
        before, start = sent(client), perf_counter()
        model = machine(n_features).fit(*collection(n_blocks))
        seconds = perf_counter() - start
        after = sent(client)
    statistics_of_model, start = model.statistics_, perf_counter()
    assert statistics_of_model is not None
    statistics_of_model.solve(1.0)
    solution = perf_counter() - start
    traveled = max(after[worker] - before.get(worker, 0) for worker in after)
    depth = max(1.0, np.ceil(np.log2(n_blocks)))
    sample = 8 * (N_COLUMNS + 1) * 8000
    run = Run(
        f"Dask, {n_workers} worker{'s' if n_workers > 1 else ''}",
        n_features,
        n_blocks * BLOCK_ROWS,
        seconds - solution,
        traveled,
        2 * statistics * depth + sample,
    )
    return run, solution


def of_dask_ml(n_features: int, n_blocks: int) -> Run | str:
    """Linear regression on features that were computed before; or why there is none."""
    try:
        from dask_ml.linear_model import LinearRegression
    except Exception as error:  # it may not go with the installed scikit-learn
        return f"dask_ml cannot be imported: {type(error).__name__}: {error}"
    stored = max(1, min(n_blocks, int(MOST_STORED / (8 * n_features * BLOCK_ROWS))))
    with cluster(2):
        X, y = collection(stored)
        fitted = Fastfood(Gaussian(10.0), n_features, random_state=0).fit(generated(0)[:, :-1])
        Z, y = dask.persist(fitted.transform(X), y)
        sleep(1)
        start = perf_counter()
        try:
            LinearRegression(solver="lbfgs", C=1.0, max_iter=100).fit(Z, y)
        except Exception as error:
            return f"dask_ml fails: {type(error).__name__}: {error}"
        seconds = perf_counter() - start
    return Run("dask_ml, 2 workers", n_features, stored * BLOCK_ROWS, seconds)


# ---------------------------------------------------------------- the table


def line(run: Run, remark: str = "") -> None:
    megabytes = f"{run.bytes_sent / 1e6:9.1f} of {run.bound / 1e6:9.1f}" if run.bound else ""
    print(
        f"{run.n_features:9,} {run.name:<22} {run.n_rows:11,} {run.seconds:9.2f} "
        f"{run.per_row:9.2f} {megabytes:24} {remark}",
        flush=True,
    )


def sizes_parser(description: str | None) -> ArgumentParser:
    """A parser with the options that say how much is learned."""
    parser = options_parser(description)
    parser.add_argument("--features", type=int, nargs="*", default=[1024, 4096, 16384])
    parser.add_argument("--seconds", type=float, default=120.0, help="of one thread, for each size")
    parser.add_argument("--rows", type=int, help="the number of rows, instead")
    return parser


def sizes(options: Namespace) -> Iterator[tuple[int, int]]:
    """The numbers of features and of blocks that are measured, after the heading of the table."""
    kitchenette.show_config()
    print(
        f"\n{'features':>9} {'':22} {'rows':>11} {'seconds':>9} {'us/row':>9} "
        f"{'MB sent of bound':24}"
    )
    for n_features in options.features:
        n_rows = options.rows
        if n_rows is None:
            pilot = measured_alone(n_features, PILOT_BLOCKS)[0]
            n_rows = int(PILOT_BLOCKS * options.seconds / pilot) * BLOCK_ROWS
        yield n_features, max(4, n_rows // BLOCK_ROWS)


def main() -> None:
    parser = sizes_parser(__doc__)
    parser.add_argument("--out", type=Path, help="write what was measured as JSON")
    options = parser.parse_args()
    measured = []
    for n_features, n_blocks in sizes(options):
        seconds, merge, statistics, copying = measured_alone(n_features, n_blocks)
        alone = Run("one process", n_features, n_blocks * BLOCK_ROWS, seconds)
        line(alone)
        one, _ = on_dask(n_features, n_blocks, 1, statistics)
        line(one, f"overhead {one.seconds / alone.seconds - 1:+.1%}")
        two, solution = on_dask(n_features, n_blocks, 2, statistics)
        line(two, f"efficiency {one.seconds / (2 * two.seconds):.2f}")
        other = of_dask_ml(n_features, n_blocks)
        print(f"{n_features:9,} {other}") if isinstance(other, str) else line(other)
        measured.append(
            {
                "n_features": n_features,
                "row_seconds": alone.seconds / alone.n_rows,
                "merge_seconds": merge,
                "statistics_bytes": statistics,
                "copied_bytes_per_second": statistics / copying,
                "solution_seconds": solution,
                "runs": [asdict(run) for run in (alone, one, two)],
            }
        )
    if options.out is not None:
        options.out.write_text(json.dumps(measured, indent=1))
        print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
