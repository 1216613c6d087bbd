"""The demonstration: a stream of rows that the exact kernel machine cannot follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.svm import SVC

from kitchenette.cli.terminal import Terminal, Watch, checked_output
from kitchenette.cli.using import write_page
from kitchenette.learning import KernelClassifier, KernelRegressor
from kitchenette.report import Measurement, compare
from kitchenette.report.comparing import extrapolation
from kitchenette.report.measuring import cost_of, error_of, resident, stored_size
from kitchenette.report.words import of_bytes, of_seconds
from kitchenette.selection import AutoMap

N_COLUMNS, N_RELEVANT = 12, 4
BLOCK_ROWS = 10_000
PREPARED_ROWS = 4000  # on which the map is chosen
TEST_ROWS = 10_000
EXACT_ROWS = (500, 1000, 2000, 4000)
COMPARED_ROWS, COMPARED_SECONDS = 6000, 8.0
CLASSES = np.array(["low", "middle", "high"])


class Rows(NamedTuple):
    """Rows, their labels, and the numbers that the labels come from."""

    X: NDArray[np.float32]
    labels: NDArray[Any]
    values: NDArray[np.float64]


def generated(number: int, n_rows: int, seed: int) -> Rows:
    """A block of the stream: smooth and far from linear in a few of the columns, with noise."""
    rng = np.random.default_rng([seed, number])
    X = rng.normal(size=(n_rows, N_COLUMNS)).astype(np.float32)
    a, b, c, d = X[:, :N_RELEVANT].astype(np.float64).T
    values = np.sin(2 * a) + b * c + np.cos(1.5 * d) + 0.3 * rng.normal(size=n_rows)
    return Rows(X, CLASSES[np.digitize(values, [-0.4, 0.9])], values)


def stream(n_rows: int, seed: int) -> Iterator[Rows]:
    """Blocks that exist one at a time."""
    for number, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
        yield generated(number + 1, min(BLOCK_ROWS, n_rows - start), seed)


def run_demo(n_rows: int, n_components: int, seed: int, path: Path, terminal: Terminal) -> None:
    """Stream, merge, predict, compare, and print what came of it."""
    checked_output(path)
    begin = perf_counter()
    test = generated(0, TEST_ROWS, seed)
    terminal.line(
        f"A stream of {n_rows:,} rows with {N_COLUMNS} columns, of which {N_RELEVANT} matter, to "
        f"be told apart into {CLASSES.size} classes."
    )
    classifier, regressor, seconds = streamed(n_rows, n_components, seed, terminal)
    ours = Measurement(
        "Kitchenette",
        "AutoMap",
        n_rows,
        n_components,
        *error_of(classifier.predict(test.X), test.labels, "classification"),
        fit_seconds=seconds,
        predict_seconds=cost_of(lambda: classifier.predict(test.X)).seconds / TEST_ROWS,
        fit_bytes=resident("VmHWM"),
        model_bytes=stored_size(classifier),
    )
    exact = exact_machine(n_rows, test, seed, terminal)
    rows = [ours, *exact]
    terminal.table(
        ("model", "rows", "error", "training", "memory", "a prediction", "file"),
        [_cells(row) for row in rows],
    )
    described = told(classifier, regressor, test)
    terminal.line(
        "The last line continues the growth from 2,000 to 4,000 rows; nobody waited for it."
    )
    for sentence in described.pop("sentences"):
        terminal.line(sentence)
    terminal.line("Writing a comparison of maps and other models ...")
    some = generated(1, COMPARED_ROWS, seed)
    found = compare(
        some.X,
        some.labels,
        sizes=(256, 1024),
        budget=COMPARED_SECONDS,
        title="Kitchenette's demonstration: which map to take",
        random_state=seed,
    )
    write_page(found, path)
    terminal.line(f"{path} is the page of that comparison. {found.advice[0]}")
    terminal.document(
        {
            "rows": n_rows,
            "measurements": [asdict(row) for row in rows],
            **described,
            "page": str(path),
            "recommended": found.recommended,
            "seconds": perf_counter() - begin,
        }
    )


def streamed(
    n_rows: int, n_components: int, seed: int, terminal: Terminal
) -> tuple[KernelClassifier, KernelRegressor, float]:
    """A classifier and a regressor of all rows, learned in two halves that are merged."""
    start = perf_counter()
    sample = generated(1, min(PREPARED_ROWS, n_rows), seed)
    chosen = AutoMap(n_components, random_state=seed).fit(sample.X, sample.labels)
    terminal.line(f"Chosen on {len(sample.X):,} rows: {chosen.choice_.sentence}")
    shared = FrozenEstimator(chosen)
    halves = [KernelClassifier(shared, random_state=seed) for _ in range(2)]
    regressor = KernelRegressor(shared, random_state=seed)
    with terminal.progress() as shown:
        task, watch = shown.add_task("learning", total=n_rows, rate=""), Watch()
        for number, block in enumerate(stream(n_rows, seed)):
            halves[number % 2].partial_fit(block.X, block.labels, classes=CLASSES)
            if number == 0:
                regressor.partial_fit(block.X, block.values)
            done = number * BLOCK_ROWS + len(block.X)
            shown.update(task, completed=done, rate=watch.rate(done))
    first, second = halves
    if hasattr(second, "statistics_"):
        first.merge(second)
    first.solve()
    seconds = perf_counter() - start
    regressor.solve()
    terminal.line(
        f"Two models learned every other block of {BLOCK_ROWS:,} rows, which were never in memory "
        f"together, and were merged into one of {n_rows:,} rows: "
        f"{of_seconds(seconds)}, {n_rows / seconds:,.0f} rows/s"
        + (f", {of_bytes(peak)} of memory at most." if (peak := resident("VmHWM")) else ".")
    )
    return first, regressor, seconds


def exact_machine(n_rows: int, test: Rows, seed: int, terminal: Terminal) -> list[Measurement]:
    """The exact kernel machine on few rows, and what it would take for all of them."""
    found = []
    for size in EXACT_ROWS:
        terminal.line(f"The exact kernel machine, scikit-learn's SVC, learns {size:,} rows ...")
        some = generated(1, size, seed)
        # A cache for the whole kernel matrix, without which it would take longer.
        machine = SVC(C=10.0, gamma=1 / N_COLUMNS, cache_size=8e-6 * size**2 + 200)
        cost = cost_of(partial(machine.fit, some.X, some.labels))
        predicting = cost_of(partial(machine.predict, test.X[:1000]))
        error, standard_error = error_of(machine.predict(test.X), test.labels, "classification")
        found.append(
            Measurement(
                "exact SVC",
                "exact kernel",
                size,
                error=error,
                standard_error=standard_error,
                fit_seconds=cost.seconds,
                predict_seconds=predicting.seconds / 1000,
                fit_bytes=cost.n_bytes or 8 * size**2,
                model_bytes=stored_size(machine),
            )
        )
    return [found[-1], extrapolation(found, n_rows, "exact SVC, extrapolated")]


def told(classifier: KernelClassifier, regressor: KernelRegressor, test: Rows) -> dict[str, Any]:
    """What probabilities and standard deviations are worth on the test rows."""
    probabilities = classifier.predict_proba(test.X)
    sure = probabilities.max(axis=1) > 0.9
    right = classifier.classes_[probabilities.argmax(axis=1)] == test.labels
    mean, std = regressor.predict(test.X, return_std=True)
    covered = np.abs(test.values - mean) < 1.96 * std
    share, reached, coverage = (float(part.mean()) for part in (sure, right[sure], covered))
    return {
        "sure_share": share,
        "sure_right": reached,
        "coverage": coverage,
        "sentences": [
            f"Probabilities: of the {share:.0%} of test rows that it is more than 90% sure of, "
            f"{reached:.1%} are right.",
            f"Uncertainty: a regression of the same rows gives intervals of 95%, which contain "
            f"{coverage:.1%} of the test rows.",
        ],
    }


def _cells(row: Measurement) -> list[str]:
    return [
        row.name,
        f"{row.n_rows:,}",
        "-" if row.error is None else f"{row.error:.1%}",
        of_seconds(row.fit_seconds),
        of_bytes(row.fit_bytes),
        of_seconds(row.predict_seconds),
        of_bytes(row.model_bytes),
    ]
