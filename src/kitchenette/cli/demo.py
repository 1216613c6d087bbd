"""`kitchenette demo`: a stream of rows that is too long for an exact kernel machine.

Memory is measured for the stream alone, because later fits reuse memory that earlier ones have
freed. The page compares maps of the same size as that of the stream.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.svm import SVC

from kitchenette.baselines import error_of
from kitchenette.cli.comparing import print_measurements, write_page
from kitchenette.cli.terminal import Terminal, Throughput, checked_output
from kitchenette.estimators import KernelClassifier, KernelRegressor
from kitchenette.quantities import of_bytes, of_seconds
from kitchenette.report import Comparison, Measurement, compare
from kitchenette.report.boosting import ROUNDS, boosted, installed
from kitchenette.report.comparing import extrapolation
from kitchenette.report.comparison import of_error
from kitchenette.report.measuring import Usage, cost_of, stored_size
from kitchenette.selection import AutoMap

N_COLUMNS, N_RELEVANT = 12, 4  # useless columns are what a demonstration of learned scales needs
BLOCK_ROWS = 10_000  # one megabyte
PREPARED_ROWS = 4000  # on which the map is chosen
TEST_ROWS = 10_000  # an error of 10 % is known to 0.3 points
PREDICTED_ROWS = 1000  # whose prediction is timed
EXACT_ROWS = (500, 1000, 2000, 4000)  # the time grows with the cube: seconds for the last
COMPARED_ROWS, COMPARED_SECONDS = 6000, 8.0  # what a spectator waits for
CLASSES = np.array(["low", "middle", "high"])


class Rows(NamedTuple):
    """Rows, their labels, and the values of which the labels are ranges."""

    X: NDArray[np.float32]
    labels: NDArray[Any]
    values: NDArray[np.float64]


def generated(number: int, n_rows: int, seed: int) -> Rows:
    """A block of the stream: a smooth nonlinear function of a few columns, with noise."""
    rng = np.random.default_rng([seed, number])
    X = rng.normal(size=(n_rows, N_COLUMNS)).astype(np.float32)
    a, b, c, d = X[:, :N_RELEVANT].astype(np.float64).T
    values = np.sin(2 * a) + b * c + np.cos(1.5 * d) + 0.3 * rng.normal(size=n_rows)
    return Rows(X, CLASSES[np.digitize(values, [-0.4, 0.9])], values)


def stream(n_rows: int, seed: int) -> Iterator[Rows]:
    """The blocks of the stream, one at a time."""
    for number, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
        yield generated(number + 1, min(BLOCK_ROWS, n_rows - start), seed)


def run_demo(n_rows: int, n_components: int, seed: int, path: Path, terminal: Terminal) -> None:
    """Fit the stream, merge, predict, compare, and print the results."""
    checked_output(path)
    begin = perf_counter()
    test = generated(0, TEST_ROWS, seed)
    terminal.line(
        f"A stream of {n_rows:,} rows with {N_COLUMNS} columns, of which {N_RELEVANT} matter, and "
        f"{CLASSES.size} classes."
    )
    classifier, regressor, cost = streamed(n_rows, n_components, seed, terminal)
    ours = measured("Kitchenette", "AutoMap", classifier, cost, n_rows, test)
    ours = replace(ours, n_components=n_components, fit_bytes=cost.n_bytes)
    trees = boosted_trees(n_rows, test, seed, terminal)
    rows = [ours, trees, *exact_machine(n_rows, test, seed, terminal)]
    print_measurements(rows, "classification", terminal)
    described = calibration_of(classifier, regressor, test)
    for sentence in (verdict(ours, trees), *described.pop("sentences")):
        terminal.line(sentence)
    terminal.line(f"Comparing maps of {n_components} features with other models ...")
    compared = generated(1, COMPARED_ROWS, seed)
    comparison = compare(
        compared.X,
        compared.labels,
        test=(test.X, test.labels),
        sizes=(n_components,),
        budget=COMPARED_SECONDS,
        title=f"{COMPARED_ROWS:,} rows of Kitchenette's demonstration: which map to take",
        random_state=seed,
    )
    write_page(comparison, path)
    terminal.line(about_page(comparison, path, ours))
    terminal.document(
        {
            "rows": n_rows,
            "measurements": [asdict(row) for row in rows],
            **described,
            "page": str(path),
            "recommended": comparison.recommended,
            "seconds": perf_counter() - begin,
        }
    )


def verdict(ours: Measurement, trees: Measurement) -> str:
    """The comparison of both models of all rows, and the cost of the exact machine."""
    assert ours.error is not None
    assert trees.error is not None
    noise = max(ours.standard_error or 0.0, trees.standard_error or 0.0)
    if abs(ours.error - trees.error) <= noise:
        compared = f"Kitchenette and {trees.name} have the same error up to chance"
    else:
        better, other = (ours, trees) if ours.error < trees.error else (trees, ours)
        compared = f"{better.name} has a lower error than {other.name}"
    return (
        f"{compared}, on the same rows, which {trees.name} had in memory all at once. The last "
        f"line is extrapolated from {EXACT_ROWS[0]:,} to {EXACT_ROWS[-1]:,} rows; a kernel matrix "
        f"of {ours.n_rows:,} rows has {of_bytes(8.0 * ours.n_rows**2)}."
    )


def about_page(comparison: Comparison, path: Path, ours: Measurement) -> str:
    """The content of the page, and why its errors are larger than those of all rows."""
    best = next(row for row in comparison.measurements if row.name == comparison.recommended)
    return (
        f"{path} is the page of that comparison, on {comparison.n_rows:,} rows of the stream and "
        f"the same test rows. The best map there is {best.name}, with an error of "
        f"{of_error(best, comparison.task)}; that of AutoMap with {ours.n_components} "
        f"features on all {ours.n_rows:,} rows is {of_error(ours, comparison.task)}."
    )


def streamed(
    n_rows: int, n_components: int, seed: int, terminal: Terminal
) -> tuple[KernelClassifier, KernelRegressor, Usage]:
    """A classifier of all rows, merged from two halves, its cost, and a regressor of one block."""
    first_block = generated(1, min(BLOCK_ROWS, n_rows), seed)
    halves: list[KernelClassifier] = []
    cost = cost_of(lambda: halves.extend(learned_halves(n_rows, n_components, seed, terminal)))
    classifier = halves[0]
    regressor = KernelRegressor(classifier.feature_map, random_state=seed)
    regressor.fit(first_block.X, first_block.values)
    terminal.line(
        f"Two models were fitted to every other block of {BLOCK_ROWS:,} rows, which were never in "
        f"memory together, and merged into one of {n_rows:,} rows: {of_seconds(cost.seconds)}, "
        f"{n_rows / cost.seconds:,.0f} rows/s"
        + (f", {of_bytes(cost.n_bytes)} of memory." if cost.n_bytes else ".")
    )
    return classifier, regressor, cost


def learned_halves(
    n_rows: int, n_components: int, seed: int, terminal: Terminal
) -> list[KernelClassifier]:
    """Models of every other block; the second is merged into the first."""
    sample = generated(1, min(PREPARED_ROWS, n_rows), seed)
    chosen = AutoMap(n_components, random_state=seed).fit(sample.X, sample.labels)
    terminal.line(f"Chosen on {len(sample.X):,} rows: {chosen.choice_.sentence}")
    shared = FrozenEstimator(chosen)
    halves = [KernelClassifier(shared, random_state=seed) for _ in range(2)]
    with terminal.progress() as shown:
        task, watch = shown.add_task("learning", total=n_rows, rate=""), Throughput()
        for number, block in enumerate(stream(n_rows, seed)):
            halves[number % 2].partial_fit(block.X, block.labels, classes=CLASSES)
            done = number * BLOCK_ROWS + len(block.X)
            shown.update(task, completed=done, rate=watch.rate(done))
    first, second = halves
    if hasattr(second, "statistics_"):
        first.merge(second)
    first.solve()
    return halves


def measured(
    name: str, family: str, model: Any, cost: Usage, n_rows: int, test: Rows
) -> Measurement:
    """A fitted model on the test rows."""
    predicting = cost_of(partial(model.predict, test.X[:PREDICTED_ROWS]))
    error, standard_error = error_of(model.predict(test.X), test.labels, "classification")
    return Measurement(
        name,
        family,
        n_rows,
        error=error,
        standard_error=standard_error,
        fit_seconds=cost.seconds,
        predict_seconds=predicting.seconds / PREDICTED_ROWS,
        model_bytes=stored_size(model),
    )


def boosted_trees(n_rows: int, test: Rows, seed: int, terminal: Terminal) -> Measurement:
    """Gradient-boosted trees on the same rows, all in memory at once, with all of their rounds."""
    library = installed()[0]
    terminal.line(f"{library} is fitted to the same rows: {ROUNDS} rounds of trees ...")
    blocks = list(stream(n_rows, seed))
    X, labels = (np.concatenate(parts) for parts in list(zip(*blocks, strict=True))[:2])
    del blocks
    model = boosted(library, "classification", seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM warns that arrays have no names of columns
        cost = cost_of(partial(model.fit, X, labels))
        return measured(library, "trees", model, cost, n_rows, test)


def exact_machine(n_rows: int, test: Rows, seed: int, terminal: Terminal) -> list[Measurement]:
    """The exact kernel machine on few rows, and its extrapolated cost for all of them."""
    measurements = []
    for size in EXACT_ROWS:
        terminal.line(
            f"The exact kernel machine, scikit-learn's SVC, is fitted to {size:,} rows ..."
        )
        training = generated(1, size, seed)
        # A cache for the whole kernel matrix, without which it would take longer.
        machine = SVC(C=10.0, gamma=1 / N_COLUMNS, cache_size=8e-6 * size**2 + 200)
        cost = cost_of(partial(machine.fit, training.X, training.labels))
        measurements.append(measured("exact SVC", "exact kernel", machine, cost, size, test))
    return [measurements[-1], extrapolation(measurements, n_rows, "exact SVC")]


def calibration_of(
    classifier: KernelClassifier, regressor: KernelRegressor, test: Rows
) -> dict[str, Any]:
    """How well probabilities and standard deviations are calibrated on the test rows."""
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
            f"Probabilities: of the {share:.0%} of test rows with a probability of more than 90%, "
            f"{reached:.1%} are predicted correctly.",
            f"Uncertainty: a regression of {BLOCK_ROWS:,} rows gives intervals of 95%, which "
            f"contain {coverage:.1%} of the test rows.",
        ],
    }
