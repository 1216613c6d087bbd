"""Are probabilities and intervals honest? Log losses and coverages on real tables.

python -m benchmarks.calibration --quick              # 5000 rows of each table
python -m benchmarks.calibration                      # 20,000 rows
python -m benchmarks.calibration --sets letter,wine_quality

Probabilities of `KernelClassifier`, which come from one pass, against those of scikit-learn's
`CalibratedClassifierCV` with five folds, for the same feature map: "five models" are averaged by
default, "one model" of all rows is calibrated on the five folds with ``ensemble=False``. Intervals
of 1.96 standard deviations of `KernelRegressor` should contain 95 % of the test rows; "factor" is
by how much the validation rows widened them.

python -m benchmarks.calibration --times --sets a9a,letter,covtype --rows 100000   # times only

python -m benchmarks.calibration --losses             # loss="squared" and loss="auto"

Errors and log losses of both for the same map, and the processor time of a fit with the automatic
loss over one with the squared loss, the choice of the map included in both.

With --times, "time" is the processor time of `KernelClassifier.fit` with validation rows over that
without, best of five: "of fit" with all defaults, where both choose the same map, and "given map"
with this map given, so that the choice of the penalty and the probabilities weigh more. (The
penalty is that of the largest evidence, which the validation rows may correct; without them it is
taken as it is.)
"""

from __future__ import annotations

import argparse
from time import process_time
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss

from benchmarks.tables import SOURCES, Table, table
from kitchenette import AutoMap, KernelClassifier, KernelRegressor

QUICK_ROWS, ROWS = 5000, 20_000
REPETITIONS = 5


def processor_time(model: Any, given: Table) -> float:
    start = process_time()
    model.fit(given.X, given.y)
    return process_time() - start


def time_ratios(feature_map: FrozenEstimator, given: Table) -> tuple[float, float]:
    """The time of a fit with validation rows over one without: of all of it, and for a given map.

    The choice of the map is the same work in both, so it is measured by itself.
    """
    choosing = min(processor_time(_automatic(), given) for _ in range(2))
    fits = [
        [
            processor_time(KernelClassifier(feature_map, validation_rows=rows), given)
            for rows in (0, 2000)
        ]
        for _ in range(REPETITIONS)
    ]
    without, with_rows = np.min(fits, axis=0)
    return (choosing + with_rows) / (choosing + without), with_rows / without


def _automatic() -> AutoMap:
    return AutoMap(task="classification", random_state=0)


def times(given: Table) -> str:
    feature_map = FrozenEstimator(_automatic().fit(given.X, given.y))
    whole, rest = time_ratios(feature_map, given)
    return f"| {given.name} | {len(given.y)} | {whole:.2f} | {rest:.2f} |"


def probabilities(given: Table) -> str:
    feature_map = FrozenEstimator(_automatic().fit(given.X, given.y))
    model = KernelClassifier(feature_map)
    known = np.isin(given.y_test, given.y)
    X, y = given.X_test[known], given.y_test[known]
    losses = []
    rarest = int(np.unique(given.y, return_counts=True)[1].min())
    if rarest < 2:
        return f"| {given.name} | a class has one row, too few for folds | | | | |"
    five, one = (
        CalibratedClassifierCV(model, cv=min(5, rarest), ensemble=several)
        for several in (True, False)
    )
    for found in (model, five, one):
        found.fit(given.X, given.y)
        losses.append(log_loss(y, found.predict_proba(X), labels=found.classes_))
    ours, of_five, of_one = losses
    return (
        f"| {given.name} | {ours:.4f} | {of_five:.4f} | {ours / of_five:.3f} "
        f"| {of_one:.4f} | {ours / of_one:.3f} |"
    )


def losses(given: Table) -> str:
    """The squared and the automatic loss for the map that the default chooses."""
    start = process_time()
    feature_map = FrozenEstimator(_automatic().fit(given.X, given.y))
    choosing = process_time() - start
    found, times, chosen = [], [], ""
    for loss in ("squared", "auto"):
        model = KernelClassifier(feature_map, loss=loss, random_state=0)
        times.append(choosing + processor_time(model, given))
        known = np.isin(given.y_test, model.classes_)
        X, y = given.X_test[known], given.y_test[known]
        error = np.mean(model.predict(given.X_test) != given.y_test)
        found.append((error, log_loss(y, model.predict_proba(X), labels=model.classes_)))
        chosen = model.loss_
    (error, loss_of), (other_error, other_loss) = found
    return (
        f"| {given.name} | {error:.4f} | {other_error:.4f} | {loss_of:.4f} | {other_loss:.4f} "
        f"| {chosen} | {times[1] / times[0]:.2f} |"
    )


def intervals(given: Table) -> str:
    model = KernelRegressor(random_state=0).fit(given.X, given.y)
    mean, deviation = model.predict(given.X_test, return_std=True)
    covered = np.abs(given.y_test - mean) < 1.96 * deviation
    solved = model.solved_model()
    spread = None if solved is None else solved.validation.spread
    factor = "" if spread is None else f"{spread[0]:.2f}"
    return f"| {given.name} | {covered.mean():.3f} | {factor} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sets", default=",".join(SOURCES), help="names, with commas between")
    parser.add_argument("--rows", type=int, help="the largest number of rows")
    parser.add_argument("--times", action="store_true", help="only times, of the classifier")
    parser.add_argument("--losses", action="store_true", help="only losses of the classifier")
    options = parser.parse_args()
    names = options.sets.split(",")
    most = options.rows or (QUICK_ROWS if options.quick else ROWS)
    if options.times or options.losses:
        head = "| set | rows | time of fit | given map |\n|---|---:|---:|---:|"
        if options.losses:
            head = (
                "| set | error | auto | log loss | auto | chosen | time |\n"
                "|---|---:|---:|---:|---:|---|---:|"
            )
        print(head)
        for name in names:
            if SOURCES[name].classes:
                given = table(name, quick=most <= ROWS).first(most)
                print(losses(given) if options.losses else times(given), flush=True)
        return
    for classes, head, line in (
        (
            True,
            "| set | log loss | five models | ratio | one model | ratio |\n"
            "|---|---:|---:|---:|---:|---:|",
            probabilities,
        ),
        (False, "| set | inside the intervals | factor |\n|---|---:|---:|", intervals),
    ):
        chosen = [name for name in names if SOURCES[name].classes == classes]
        if chosen:
            print(head)
        for name in chosen:
            print(line(table(name, quick=most <= ROWS).first(most)), flush=True)
        print()


if __name__ == "__main__":
    main()
