"""Where boosted trees find a signal, the estimators with all their defaults find it too."""

from __future__ import annotations

import numpy as np
import pytest
from learning.hostile import SIGNALS, Data, visible
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from kitchenette import KernelClassifier, KernelRegressor

VISIBLE = 0.5  # R^2, or its analogue, of trees
LEAST_SHARE = 0.8  # of that
QUICK = (("parity of three", 20, False), ("waves of two", 32, False), ("wave", 32, True))


def explained(predicted: np.ndarray, given: Data) -> float:
    """R^2, or the part of the wrong labels that is avoided beside the most frequent label."""
    if not given.classes:
        return float(1 - np.mean((predicted - given.y_fresh) ** 2) / np.var(given.y_fresh))
    trivial = np.bincount(given.y_fresh).max() / given.y_fresh.size
    return float((np.mean(predicted == given.y_fresh) - trivial) / (1 - trivial))


def check(name: str, n_columns: int, classes: bool, effort: str = "balanced") -> None:
    given, draw = visible(name, n_columns, classes), 0
    ours = (KernelClassifier if classes else KernelRegressor)(effort=effort, random_state=draw)
    trees = (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)()
    mine, theirs = (
        explained(model.fit(given.X, given.y).predict(given.X_fresh), given)
        for model in (ours, trees.set_params(random_state=draw))
    )
    assert theirs <= VISIBLE or mine >= LEAST_SHARE * theirs


@pytest.mark.parametrize(("name", "n_columns", "classes"), QUICK)
def test_a_signal_is_seen(name, n_columns, classes):
    given = visible(name, n_columns, classes)
    model = (KernelClassifier if classes else KernelRegressor)(random_state=0)
    predicted = model.fit(given.X, given.y).predict(given.X_fresh)
    assert explained(predicted, given) > (0.6 if classes else 0.75)


COLUMNS = (5, 32, 100, 200)
# Each signal in two numbers of columns, one for each task: all of them take a quarter of an hour.
CASES = [
    (name, COLUMNS[(place + 2 * classes) % len(COLUMNS)], classes)
    for place, name in enumerate(SIGNALS)
    for classes in (False, True)
]


@pytest.mark.slow
@pytest.mark.parametrize("effort", ["fast", "balanced"])
@pytest.mark.parametrize(("name", "n_columns", "classes"), CASES)
def test_what_trees_see_is_seen(name, n_columns, classes, effort):
    check(name, n_columns, classes, effort)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n_columns", "classes"), QUICK)
def test_what_trees_see_is_seen_with_the_best_effort(name, n_columns, classes):
    check(name, n_columns, classes, "best")
