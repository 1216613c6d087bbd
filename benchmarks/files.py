"""Learning from files: how much longer it takes than learning the same rows in memory.

Rows of 100 columns of float32 are written to Parquet and CSV files and learned with 1024 features.
The first tables have times: of the map and the Gram matrix of rows in memory, which no file can
beat, of reading alone, and of `fit` from files, which draws a sample, learns and solves. Ratios are
of processor seconds, which other processes on the machine hardly disturb. The last table has the
peak memory of processes that fit files of different lengths.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from benchmarks.timing import options_parser
from kitchenette import Fastfood, KernelRegressor
from kitchenette.data import source
from kitchenette.learning import learn, prepare

N_COLUMNS, N_FEATURES = 100, 1024
PART_ROWS = 100_000  # of a file
ROUNDS = 2
UNIT = "map and Gram matrix, in memory"

Times = dict[str, tuple[float, float]]

FIT = """
import sys
from benchmarks.timing import peak_memory
from kitchenette import Fastfood, KernelRegressor
from kitchenette.data import source
model = KernelRegressor(Fastfood(n_components=1024, random_state=0), random_state=0)
model.fit(source(sys.argv[1], target="y"))
print(peak_memory())
"""


def table(n_rows: int, seed: int) -> pa.Table:
    X = np.random.default_rng(seed).normal(size=(n_rows, N_COLUMNS)).astype(np.float32)
    y = np.sin(X[:, 0]) + X[:, 1]
    return pa.table({**{f"x{j}": X[:, j] for j in range(N_COLUMNS)}, "y": y})


def write(folder: Path, n_rows: int) -> str:
    """Parquet files of so many rows in all."""
    folder.mkdir()
    for number, start in enumerate(range(0, n_rows, PART_ROWS)):
        rows = table(min(PART_ROWS, n_rows - start), number)
        parquet.write_table(rows, folder / f"{number:05}.parquet", row_group_size=50_000)
    return str(folder / "*.parquet")


def timed(actions: dict[str, Any]) -> Times:
    """The best time of each action, in seconds and in processor seconds; they take turns."""
    best = dict.fromkeys(actions, (np.inf, np.inf))
    for _ in range(ROUNDS):
        for name, action in actions.items():
            start = perf_counter(), process_time()
            action()
            taken = perf_counter() - start[0], process_time() - start[1]
            best[name] = min(best[name][0], taken[0]), min(best[name][1], taken[1])
    return best


def read(rows: Any) -> None:
    """All rows as the matrices that a map takes."""
    from kitchenette.data.tables import plain_rows

    for block in rows.blocks():
        plain_rows(block.X)


def model() -> KernelRegressor:
    return KernelRegressor(Fastfood(n_components=N_FEATURES, random_state=0), random_state=0)


def times(folder: Path, n_rows: int) -> None:
    path = write(folder / "parquet", n_rows)
    rows = source(path, target="y")
    X = np.concatenate([block.X.to_pandas().to_numpy() for block in rows.blocks()])
    y = rows.targets()[0]
    prepared = prepare(model(), X[:20_000], y[:20_000])
    found = timed(
        {
            UNIT: lambda: learn(prepared, X, y),
            "fit, in memory": lambda: model().fit(X, y),
            "reading Parquet alone": lambda: read(rows),
            "fit, Parquet": lambda: model().fit(source(path, target="y")),
        }
    )
    report(f"{n_rows} rows of Parquet", found)
    few = n_rows // 5
    text = folder / "rows.csv"
    csv.write_csv(table(few, 0), text)
    found = timed(
        {
            UNIT: lambda: learn(prepared, X[:few], y[:few]),
            "pyarrow.csv alone": lambda: csv.read_csv(text),
            "reading CSV alone": lambda: read(source(text, target="y")),
            "fit, CSV": lambda: model().fit(source(text, target="y", precision="float32")),
        }
    )
    report(f"{few} rows of CSV", found)


def report(title: str, found: Times) -> None:
    print(f"\n{title}, {N_COLUMNS} columns, {N_FEATURES} features\n")
    print("| | seconds | processor seconds | times map and Gram matrix |\n|---|---:|---:|---:|")
    for name, (seconds, work) in found.items():
        print(f"| {name} | {seconds:.2f} | {work:.2f} | {work / found[UNIT][1]:.2f} |")
    print(flush=True)


def memory(folder: Path, sizes: list[int]) -> None:
    print("\n| rows | peak memory of a process |\n|---:|---:|")
    for n_rows in sizes:
        path = write(folder / str(n_rows), n_rows)
        done = subprocess.run(
            [sys.executable, "-c", FIT, path], capture_output=True, text=True, check=True
        )
        print(f"| {n_rows} | {float(done.stdout):.0f} MB |", flush=True)


def main() -> None:
    parser = options_parser(__doc__)
    options = parser.parse_args()
    n_rows = 100_000 if options.quick else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        times(Path(name), n_rows)
        memory(Path(name), [n_rows // 10, n_rows])


if __name__ == "__main__":
    main()
