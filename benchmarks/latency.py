"""How long one row takes: in a tight loop, after idling, after BLAS, and among busy neighbors.

python -m benchmarks.latency            # some minutes
python -m benchmarks.latency --quick    # fewer calls, and not the largest map

Every case is measured with all threads and with one (threadpoolctl), in turns. Two ratios matter:
the median to the better of the two medians, which is above one where threads do harm, and the 99th
percentile to the median of one thread, which is large where callers wait for sleeping threads.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

import kitchenette
from benchmarks.timing import Action, fastfood, options_parser
from kitchenette import TEFM, KernelClassifier
from kitchenette.kernels import Gaussian

COLUMNS = 784
CLASSES = 10
SIZES = (4096, 16384, 65536)
MANY_ROWS, MANY_FEATURES = 64, 16384
ROUNDS = 5


class Latency(NamedTuple):
    """Seconds with all threads and with one."""

    median: float
    late: float  # the 99th percentile
    one_median: float
    one_late: float

    @property
    def to_the_better(self) -> float:
        return self.median / min(self.median, self.one_median)

    @property
    def late_to_one(self) -> float:
        return self.late / self.one_median


def rows(n: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).normal(size=(n, COLUMNS)).astype(np.float32)


def calls(n_features: int) -> dict[str, Action]:
    """What is done with one row."""
    X, y = rows(2048), np.arange(2048) % CLASSES
    feature_map = fastfood(Gaussian(28.0), n_features)
    # Statistics of 65536 features have 4 billion numbers. Learning on a few combinations of the
    # features instead, which prediction collapses, gives a model with as many weights.
    learned: Any = feature_map
    if n_features > 4096:
        learned = TEFM(feature_map, CLASSES, random_state=0)
    model = KernelClassifier(learned, alpha=1.0).fit(X, y)
    row = X[:1]
    return {
        "transform": partial(feature_map.fit(X).transform, row),
        "predict": partial(model.predict, row),
        "predictor()": partial(model.predictor(), X[0]),
    }


@contextmanager
def busy_neighbors(n: int = 2) -> Iterator[None]:
    """Other processes that compute all the time."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        sleep(0.2)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


SQUARE = np.ones((512, 512), np.float32)


def nothing() -> None:
    pass


def idle() -> None:
    sleep(0.05)


def multiply() -> None:
    np.dot(SQUARE, SQUARE)


SITUATIONS: dict[str, tuple[Callable[[], None], bool, int]] = {
    # What is done before each call, whether neighbors are busy, and how many calls there are.
    "tight loop": (nothing, False, 2000),
    "after 50 ms of idling": (idle, False, 200),
    "after a BLAS call": (multiply, False, 1000),
    "two busy neighbors": (nothing, True, 2000),
}


def samples(action: Action, before: Callable[[], None], n: int) -> list[float]:
    action()  # the first call after a change of the number of threads does not count
    times = []
    for _ in range(n):
        before()
        start = perf_counter()
        action()
        times.append(perf_counter() - start)
    return times


def measure(action: Action, before: Callable[[], None], busy: bool, n: int) -> Latency:
    controller = ThreadpoolController()
    times: dict[bool, list[float]] = {False: [], True: []}
    gc.disable()
    with busy_neighbors() if busy else nullcontext():
        for _ in range(ROUNDS):
            for alone in times:
                with controller.limit(limits=1) if alone else nullcontext():
                    times[alone] += samples(action, before, n // ROUNDS)
    gc.enable()
    figures = [float(np.quantile(times[alone], q)) for alone in times for q in (0.5, 0.99)]
    return Latency(*figures)


def all_cases(quick: bool) -> Iterator[tuple[str, str, str, Latency]]:
    for n_features in SIZES[:2] if quick else SIZES:
        for call, action in calls(n_features).items():
            for situation, (before, busy, n) in SITUATIONS.items():
                latency = measure(action, before, busy, n // 5 if quick else n)
                yield f"{n_features}", call, situation, latency
    X = rows(MANY_ROWS)
    feature_map = fastfood(Gaussian(28.0), MANY_FEATURES).fit(X)
    latency = measure(partial(feature_map.transform, X), nothing, True, 100 if quick else 500)
    yield f"{MANY_FEATURES}", f"transform, {MANY_ROWS} rows", "two busy neighbors", latency


def main() -> None:
    options = options_parser(__doc__).parse_args()
    if options.json:
        cases = all_cases(quick=True)
        figures = {", ".join(names): latency.median for *names, latency in cases}
        print(json.dumps(figures))
        return
    kitchenette.show_config()
    print(f"\nFastfood, {COLUMNS} columns, float32, {CLASSES} classes, microseconds\n")
    print(
        "| D | call | situation | median | 99 % | one thread: median | 99 % "
        "| median / better | 99 % / median of one |\n|---:|---|---|---:|---:|---:|---:|---:|---:|"
    )
    worst: dict[str, list[float]] = {}
    for size, call, situation, latency in all_cases(options.quick):
        microseconds = " | ".join(f"{1e6 * seconds:.0f}" for seconds in latency)
        ratios = (latency.to_the_better, latency.late_to_one)
        print(
            f"| {size} | {call} | {situation} | {microseconds} | {ratios[0]:.2f} "
            f"| {ratios[1]:.1f} |",
            flush=True,
        )
        before = worst.get(situation, [0.0, 0.0])
        worst[situation] = [max(pair) for pair in zip(before, ratios, strict=True)]
    print(
        "\nThe worst ratios: of medians to the better, of 99th percentiles to one thread's median"
    )
    for situation, (median, late) in worst.items():
        print(f"  {situation:24}{median:8.2f}{late:8.1f}")


if __name__ == "__main__":
    main()
