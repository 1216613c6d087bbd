"""Learning from files: how much longer it takes than learning the same rows in memory.

python -m benchmarks.files            # 10^6 rows for the times, 10^5 and 10^7 for the memory
python -m benchmarks.files --quick    # a tenth of that

Rows of 100 columns of float32 are written to Parquet and CSV files. The first tables have times
with 1024 features: of the map and the Gram matrix of rows in memory, which no file can beat, of
reading alone, and of the whole command `kitchenette fit` in a process of its own, with a given map
and with one that it chooses. Ratios are of processor seconds, which other processes on the machine
hardly disturb. The last table has the peak memory of the command for files of different lengths.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from benchmarks.timing import command, options_parser
from kitchenette import Fastfood, KernelRegressor
from kitchenette.data import source
from kitchenette.training import partial, prepare

N_COLUMNS, N_FEATURES = 100, 1024
FEW_FEATURES = 256  # so that their statistics do not hide what rows take
PART_ROWS = 100_000  # of a file
ROUNDS = 2
UNIT = "map and Gram matrix, in memory"

Cost = tuple[float, float]  # seconds and processor seconds


def table(n_rows: int, seed: int) -> pa.Table:
    X = np.random.default_rng(seed).normal(size=(n_rows, N_COLUMNS)).astype(np.float32)
    y = np.sin(X[:, 0]) + X[:, 1]
    return pa.table({**{f"x{j}": X[:, j] for j in range(N_COLUMNS)}, "y": y})


def write(folder: Path, n_rows: int) -> Path:
    """Parquet files of so many rows in all."""
    folder.mkdir()
    for number, start in enumerate(range(0, n_rows, PART_ROWS)):
        rows = table(min(PART_ROWS, n_rows - start), number)
        parquet.write_table(rows, folder / f"{number:05}.parquet", row_group_size=50_000)
    return folder


def best_of(actions: dict[str, Any]) -> dict[str, Cost]:
    """The least cost of each action; they take turns. An action may return its own cost."""
    best = dict.fromkeys(actions, (np.inf, np.inf))
    for _ in range(ROUNDS):
        for name, action in actions.items():
            start = perf_counter(), process_time()
            taken = action() or (perf_counter() - start[0], process_time() - start[1])
            best[name] = min(best[name][0], taken[0]), min(best[name][1], taken[1])
    return best


def read(rows: Any) -> None:
    """All rows as the matrices that a map takes."""
    from kitchenette.data.tables import plain_rows

    for block in rows.blocks():
        plain_rows(block.X)


def fit(data: Path, *options: object) -> Cost:
    """The cost of the whole command."""
    size = ("--components", N_FEATURES)
    with tempfile.TemporaryDirectory() as folder:
        ran = command("fit", data, "--target", "y", "--out", f"{folder}/model", *size, *options)
    return ran.seconds, ran.processor_seconds


def times(folder: Path, n_rows: int) -> None:
    data = write(folder / "parquet", n_rows)
    rows = source(data, target="y")
    X = np.concatenate([block.X.to_pandas().to_numpy() for block in rows.blocks()])
    y = rows.targets()[0]
    model = KernelRegressor(Fastfood(n_components=N_FEATURES, random_state=0), random_state=0)
    prepared = prepare(model, X[:20_000], y[:20_000])
    found = best_of(
        {
            UNIT: lambda: void(partial(prepared, X, y)),
            "reading Parquet alone": lambda: read(rows),
            "`kitchenette fit --map Fastfood`, Parquet": lambda: fit(data, "--map", "Fastfood"),
            "`kitchenette fit`, Parquet": lambda: fit(data),
        }
    )
    report(f"{n_rows} rows of Parquet", found)
    few = n_rows // 5
    data, text = write(folder / "few", few), folder / "rows.csv"
    csv.write_csv(pa.concat_tables([parquet.read_table(data)]), text)
    alone = "pyarrow.csv alone"
    found = best_of(
        {
            UNIT: lambda: void(partial(prepared, X[:few], y[:few])),
            alone: lambda: void(csv.read_csv(text)),
            "reading CSV alone": lambda: read(source(text, target="y")),
            "`kitchenette fit --map Fastfood`, Parquet": lambda: fit(data, "--map", "Fastfood"),
            "the same with `--precision float32`, CSV": lambda: fit(
                text, "--map", "Fastfood", "--precision", "float32"
            ),
        }
    )
    report(f"{few} rows of CSV", found)
    parquet_work, csv_work = (cost[1] for cost in list(found.values())[-2:])
    more = (csv_work - parquet_work) / found[alone][1]
    print(f"CSV takes {more:.2f} times {alone} more than Parquet.", flush=True)


def void(_: object) -> None:
    """Nothing: the result of an action that has no cost of its own to tell."""


def report(title: str, found: dict[str, Cost]) -> None:
    print(f"\n{title}, {N_COLUMNS} columns, {N_FEATURES} features\n")
    print("| | seconds | processor seconds | times map and Gram matrix |\n|---|---:|---:|---:|")
    for name, (seconds, work) in found.items():
        print(f"| {name} | {seconds:.2f} | {work:.2f} | {work / found[UNIT][1]:.2f} |")
    print(flush=True)


def memory(folder: Path, sizes: list[int]) -> None:
    print(f"Peak memory of `kitchenette fit --components {FEW_FEATURES}`\n")
    print("| rows | size of the files | peak memory |\n|---:|---:|---:|")
    for n_rows in sizes:
        data = write(folder / str(n_rows), n_rows)
        size = sum(path.stat().st_size for path in data.iterdir())
        out = folder / "model"
        ran = command("fit", data, "--target", "y", "--out", out, "--components", FEW_FEATURES)
        peak = ran.document["peak_bytes"]
        print(f"| {n_rows:,} | {size / 1e6:,.0f} MB | {peak / 1e6:.0f} MB |", flush=True)


def main() -> None:
    parser = options_parser(__doc__)
    parser.add_argument("--folder", help="where to write the files, some gigabytes")
    options = parser.parse_args()
    n_rows = 100_000 if options.quick else 1_000_000
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        times(Path(name), n_rows)
        memory(Path(name), [n_rows // 10, 10 * n_rows])


if __name__ == "__main__":
    main()
