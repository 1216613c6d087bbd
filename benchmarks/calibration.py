"""Are probabilities and intervals honest? Log losses and coverages on real tables.

python -m benchmarks.calibration --quick              # 5000 rows of each table
python -m benchmarks.calibration                      # 20,000 rows
python -m benchmarks.calibration --sets letter,wine_quality

Probabilities of `KernelClassifier`, which come from one pass, against those of scikit-learn's
`CalibratedClassifierCV` with five folds, for the same feature map; "time" is the processor time of
`fit` with validation rows over that without, both with the choice of the map. Intervals of 1.96
standard deviations of `KernelRegressor` should contain 95 % of the test rows; "factor" is by how
much the validation rows widened them.
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss

from benchmarks.tables import SOURCES, Table, table
from kitchenette import AutoMap, KernelClassifier, KernelRegressor

QUICK_ROWS, ROWS = 5000, 20_000


def processor_time(model: KernelClassifier, given: Table) -> float:
    start = process_time()
    model.fit(given.X, given.y)
    return process_time() - start


def probabilities(given: Table) -> str:
    feature_map = FrozenEstimator(
        AutoMap(task="classification", random_state=0).fit(given.X, given.y)
    )
    model = KernelClassifier(feature_map)
    times = [
        min(
            processor_time(KernelClassifier(feature_map, validation_rows=rows), given) for _ in "ab"
        )
        for rows in (0, 2000)
    ]
    known = np.isin(given.y_test, given.y)
    X, y = given.X_test[known], given.y_test[known]
    losses = []
    rarest = int(np.unique(given.y, return_counts=True)[1].min())
    if rarest < 2:
        return f"| {given.name} | a class has one row, too few for folds | | | |"
    for found in (model, CalibratedClassifierCV(model, cv=min(5, rarest))):
        found.fit(given.X, given.y)
        losses.append(log_loss(y, found.predict_proba(X), labels=found.classes_))
    return (
        f"| {given.name} | {losses[0]:.4f} | {losses[1]:.4f} | {losses[0] / losses[1]:.3f} "
        f"| {times[1] / times[0]:.2f} |"
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
    options = parser.parse_args()
    names = options.sets.split(",")
    most = QUICK_ROWS if options.quick else ROWS
    for classes, head, line in (
        (
            True,
            "| set | log loss | five folds | ratio | time |\n|---|---:|---:|---:|---:|",
            probabilities,
        ),
        (False, "| set | inside the intervals | factor |\n|---|---:|---:|", intervals),
    ):
        chosen = [name for name in names if SOURCES[name].classes == classes]
        if chosen:
            print(head)
        for name in chosen:
            print(line(table(name, quick=True).first(most)), flush=True)
        print()


if __name__ == "__main__":
    main()
