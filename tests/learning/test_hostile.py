"""The estimators with all their defaults on hostile data: never worse than knowing nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from learning.hostile import SETS, Data, data

from kitchenette import KernelClassifier, KernelRegressor

QUICK = ("two_rows", "heavy_tailed_columns_and_targets")
LEAST_R2 = -0.05
LEAST_ACCURACY = -0.02  # beyond the share of the most frequent class


def score(predicted: np.ndarray, given: Data) -> float:
    """Accuracy less the share of the most frequent class, or R^2, on the fresh rows."""
    if given.classes:
        _, counts = np.unique(given.y_fresh, return_counts=True)
        return float(np.mean(predicted == given.y_fresh) - counts.max() / counts.sum())
    center = np.mean(given.y_fresh)
    if given.training_mean:
        center = np.average(given.y, weights=given.sample_weight)
    squares = np.sum((predicted - given.y_fresh) ** 2)
    return float(1 - squares / np.sum((given.y_fresh - center) ** 2))


def check(name: str, draw: int, **options: str) -> None:
    given = data(name, draw)
    model = (KernelClassifier if given.classes else KernelRegressor)(random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hostile data may deserve a warning
        model.fit(given.X, given.y, sample_weight=given.sample_weight)
        predicted = model.predict(given.X_fresh)
    if not given.classes:
        assert np.isfinite(predicted).all()
    assert score(predicted, given) >= (LEAST_ACCURACY if given.classes else LEAST_R2)


@pytest.mark.parametrize("name", QUICK)
def test_the_defaults_do_not_betray_on(name):
    check(name, draw=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "draw"),
    [(name, draw) for name in SETS for draw in (0, 1) if draw or name not in QUICK],
)
def test_the_defaults_do_not_betray_on_other_draws_of(name, draw):
    check(name, draw)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_little_effort_does_not_betray_on(name):
    check(name, draw=0, effort="fast")


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_learning_in_passes_does_not_betray_on(name):
    check(name, draw=0, solver="iterative")


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_other_losses_do_not_betray_on(name):
    for loss in ("logistic", "squared_hinge") if data(name).classes else ("huber",):
        check(name, draw=0, loss=loss)
