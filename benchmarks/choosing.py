"""What choosing a map costs, beside learning with the map that was chosen.

python -m benchmarks.choosing            # letter, ijcnn1, mnist and covtype with up to 200,000 rows
python -m benchmarks.choosing --quick    # at most 50,000 rows
python -m benchmarks.choosing --text     # only hashed words in 2^18 columns, beside Fastfood
python -m benchmarks.choosing --drawing  # only what drawing rows by hash values costs

Times are of the clock, the better of a few runs, and in brackets those of the processor, summed
over threads, which also make sense on a busy machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from benchmarks.tables import Table, table
from kitchenette import AutoMap, Fastfood, KernelClassifier, KernelRegressor
from kitchenette.data.drawing import Drawing, sample_size
from kitchenette.kernels import Gaussian

CASES = (
    ("letter", 16_000),
    ("ijcnn1", 20_000),
    ("covtype", 50_000),
    ("mnist", 50_000),
    ("covtype", 200_000),
)
QUICK_ROWS = 50_000
RUNS = 3
DRAWN_CASES = ((200_000, 20), (50_000, 784))  # rows and columns
TEXT_ROWS, TEXT_TEST_ROWS, HASHED, WORDS, VOCABULARY = 10_000, 2000, 2**18, 80, 30_000
TOPICS, OF_TOPIC = 20, 0.3  # classes, and the share of the words that depend on the class


class Times(NamedTuple):
    """Seconds of the clock and of the processor."""

    clock: float
    processor: float

    def __str__(self) -> str:
        return f"{self.clock:.2f} ({self.processor:.2f})"


def hashed_words(n_rows: int, seed: int) -> tuple[sp.csr_matrix, NDArray[np.intp]]:
    """Counts of words in columns given by a hash, and the topic of each row.

    Frequencies of words follow Zipf's law. A part of the words comes from the same law with the
    words in another order, which is that of the topic.
    """
    law = 1 / np.arange(1.0, VOCABULARY + 1)
    ends = np.cumsum(law) / law.sum()
    orders = np.array([np.random.default_rng(i).permutation(VOCABULARY) for i in range(TOPICS)])
    rng = np.random.default_rng(seed)
    topics = rng.integers(TOPICS, size=n_rows)
    words = np.searchsorted(ends, rng.random((n_rows, WORDS)))
    of_topic = rng.random(words.shape) < OF_TOPIC
    words = np.where(of_topic, orders[topics[:, None], words], words)
    columns = words * 2_654_435_761 % 2**32 >> 14
    entries = np.ones(words.size, dtype=np.float32), columns.ravel()
    starts = np.arange(0, words.size + 1, WORDS)
    X = sp.csr_matrix((*entries, starts), shape=(n_rows, HASHED))
    X.sum_duplicates()
    return X, topics


def text() -> None:
    """Times and errors of the default, and of Fastfood features of the same number."""
    X, y = hashed_words(TEXT_ROWS, 1)
    X_test, y_test = hashed_words(TEXT_TEST_ROWS, 2)
    print(f"{TEXT_ROWS} rows of {HASHED} columns, {TOPICS} classes")
    print("| map | fit, s | error | what was chosen |\n|---|---:|---:|---|")
    for name, feature_map in (("default", None), ("Fastfood", Fastfood(random_state=0))):
        model = KernelClassifier(feature_map, random_state=0)
        start = perf_counter(), process_time()
        model.fit(X, y)
        times = Times(perf_counter() - start[0], process_time() - start[1])
        error = 1 - model.score(X_test, y_test)
        chosen = (
            model.feature_map_.choice_.chosen if feature_map is None else {"kernel": "Gaussian"}
        )
        print(f"| {name} | {times} | {error:.4f} | {chosen['kernel']} |", flush=True)


def drawing() -> None:
    """Times of drawing the rows to choose on, beside learning with 1024 features of a given map."""
    print("| rows | columns | precision | drawing, s | ns for a number | learning, s | share |")
    print("|---:|---:|---|---:|---:|---:|---:|")
    for n_rows, n_columns in DRAWN_CASES:
        for dtype in (np.float32, np.float64):
            X = np.random.default_rng(0).normal(size=(n_rows, n_columns)).astype(dtype)
            print(drawing_line(X, X[:, 0].copy()), flush=True)


def drawing_line(X: NDArray[Any], y: NDArray[Any]) -> str:
    drawn = shortest(lambda: Drawing(sample_size(X.shape[1]), 0).of_rows(X, y))
    given = Fastfood(Gaussian(3.0), 1024, random_state=0).fit(X)
    learned = shortest(lambda: KernelRegressor(FrozenEstimator(given)).fit(X, y))
    return (
        f"| {X.shape[0]} | {X.shape[1]} | {X.dtype.name} | {drawn} "
        f"| {1e9 * drawn.processor / X.size:.2f} | {learned} "
        f"| {drawn.processor / learned.processor:.4f} |"
    )


def shortest(action: Callable[[], object]) -> Times:
    """The shortest times of a few calls."""
    runs = []
    for _ in range(RUNS):
        start = perf_counter(), process_time()
        action()
        runs.append((perf_counter() - start[0], process_time() - start[1]))
    return Times(*map(min, zip(*runs, strict=True)))


def fit_times(model: Any, data: Table) -> Times:
    """The shortest times of a few fits."""
    return shortest(lambda: model.fit(data.X, data.y))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="at most 50,000 rows")
    parser.add_argument("--text", action="store_true", help="only hashed words")
    parser.add_argument("--drawing", action="store_true", help="only drawing rows")
    options = parser.parse_args()
    if options.text or options.drawing:
        (text if options.text else drawing)()
        return
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
