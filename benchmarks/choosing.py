"""What choosing a map costs, beside learning with the map that was chosen.

python -m benchmarks.choosing            # letter, ijcnn1, mnist and covtype with up to 200,000 rows
python -m benchmarks.choosing --quick    # at most 50,000 rows

Times are of the clock, the better of a few runs, and in brackets those of the processor, summed
over threads, which also make sense on a busy machine.
"""

from __future__ import annotations

import argparse
from time import perf_counter, process_time
from typing import Any, NamedTuple

from sklearn.frozen import FrozenEstimator

from benchmarks.tables import Table, table
from kitchenette import AutoMap, KernelClassifier

CASES = (
    ("letter", 16_000),
    ("ijcnn1", 20_000),
    ("covtype", 50_000),
    ("mnist", 50_000),
    ("covtype", 200_000),
)
QUICK_ROWS = 50_000
RUNS = 3


class Times(NamedTuple):
    """Seconds of the clock and of the processor."""

    clock: float
    processor: float

    def __str__(self) -> str:
        return f"{self.clock:.2f} ({self.processor:.2f})"


def fit_times(model: Any, data: Table) -> Times:
    """The shortest times of a few fits."""
    runs = []
    for _ in range(RUNS):
        start = perf_counter(), process_time()
        model.fit(data.X, data.y)
        runs.append((perf_counter() - start[0], process_time() - start[1]))
    return Times(*map(min, zip(*runs, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="at most 50,000 rows")
    options = parser.parse_args()
    print("| set | rows | columns | candidates | choosing, s | learning, s | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, n_rows in CASES:
        if options.quick and n_rows > QUICK_ROWS:
            continue
        data = table(name, quick=False).first(n_rows)
        auto = AutoMap(task="classification", random_state=0)
        choosing = fit_times(auto, data)
        learning = fit_times(KernelClassifier(FrozenEstimator(auto)), data)
        ratio = Times(choosing.clock / learning.clock, choosing.processor / learning.processor)
        print(
            f"| {name} | {len(data.X)} | {data.X.shape[1]} | {len(auto.choice_.table)} "
            f"| {choosing} | {learning} | {ratio} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
