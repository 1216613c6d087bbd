"""Rows that were never learned are not removed, and those that were always are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from kitchenette import Fastfood, KernelClassifier, KernelRegressor, LeastSquares
from kitchenette.kernels import Gaussian


def features(kind, n, D, rng):
    if kind == "indicators":
        return np.eye(D)[rng.integers(0, D, n)]
    if kind == "Fourier":
        return np.cos(rng.normal(size=(n, 3)) @ rng.normal(size=(3, D))) * np.sqrt(2 / D)
    if kind == "dependent":
        return rng.normal(size=(n, 2)) @ rng.normal(size=(2, D))
    if kind == "constant":
        return np.full((n, D), 3.7)
    return rng.normal(size=(n, D)) * 10.0 ** rng.uniform(-6, 6, D)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("kind", ["indicators", "Fourier", "dependent", "constant", "any size"])
def test_rows_that_were_added_can_be_removed_in_any_parts(kind, offset, dtype):
    for n, D, weighted, exact in ((2000, 5, True, False), (300, 40, False, True), (9, 60, True, 0)):
        rng = np.random.default_rng(n)
        Z = (features(kind, n, D, rng) + offset).astype(dtype)
        y = Z[:, 0].astype(float) if exact else rng.normal(size=n)
        weights = 10.0 ** rng.uniform(-3, 3, n) if weighted else np.ones(n)
        for n_parts in (1, 2, 9):
            statistics = LeastSquares(D)
            for rows in np.array_split(rng.permutation(n), 4):
                statistics.merge(LeastSquares(D).update(Z[rows], y[rows], weights[rows]))
            for rows in np.array_split(rng.permutation(n), n_parts):
                statistics.downdate(Z[rows], y[rows], weights[rows])
            assert statistics.n_rows == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_statistics_refuse_rows_that_they_cannot_have(dtype):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 10)).astype(dtype)
    y = Z @ np.ones(10) + 0.1 * rng.normal(size=200)
    before = LeastSquares(10).update(Z, y)
    for rows, targets in (
        (10 * Z[:1], y[:1]),  # too far away
        (Z[:1], y[:1] + 100),  # another target
        (Z + rng.normal(size=Z.shape).astype(dtype) / 10, y),  # as many others
        (Z, y[::-1]),
        (np.tile(Z[:100], (2, 1)), np.tile(y[:100], 2)),
    ):
        statistics = LeastSquares(10).update(Z, y)
        with pytest.raises(ValueError, match=r"Cannot remove \d+ rows: they are not all among"):
            statistics.downdate(rows, targets)
        for name, value in before.state().items():
            assert np.array_equal(statistics.state()[name], value)


def test_with_no_more_rows_than_features_all_other_rows_are_refused():
    rng = np.random.default_rng(0)
    Z, others = rng.normal(size=(2, 50, 60))
    statistics = LeastSquares(60).update(Z, Z[:, 0])
    for row in range(50):
        with pytest.raises(ValueError, match="the features are unlike those of all rows"):
            statistics.downdate(others[row : row + 1], others[row : row + 1, 0])


def test_many_features_have_squares_that_are_compared():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 1100))
    statistics = LeastSquares(1100).update(Z, Z[:, 0])
    with pytest.raises(ValueError, match=r"the squares of feature \d+ exceed those of all rows"):
        statistics.downdate(20 * Z[:1], Z[:1, 0])
    assert statistics.downdate(Z[:10], Z[:10, 0]).n_rows == 20


def test_statistics_of_what_is_left_can_be_stored():
    Z = np.random.default_rng(0).normal(size=(3000, 20))
    statistics = LeastSquares(20).update(Z, np.ones(3000)).downdate(Z[1:], np.ones(2999))
    assert LeastSquares.from_state(statistics.state()).n_rows == 1


# ---------------------------------------------------------------- estimators

X = np.random.default_rng(0).normal(size=(400, 3))
NUMBERS = np.sin(2 * X[:, 0]) + 0.1 * X[:, 1]
LABELS = np.where(NUMBERS > 0, "high", "low")
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2, size=400)
MAP = FrozenEstimator(Fastfood(n_components=32, random_state=0).fit(X))
MODELS = {
    "regressor": (lambda: KernelRegressor(MAP), NUMBERS),
    "some validation rows": (lambda: KernelRegressor(MAP, validation_rows=100), NUMBERS),
    "classifier": (lambda: KernelClassifier(MAP), LABELS),
    "balanced": (lambda: KernelClassifier(MAP, class_weight="balanced"), LABELS),
    "weights of classes": (lambda: KernelClassifier(MAP, class_weight={"low": 3.0}), LABELS),
}


@pytest.mark.parametrize("name", MODELS)
def test_estimators_refuse_rows_that_they_have_not_learned(name):
    make, y = MODELS[name]
    model = make().fit(X[:300], y[:300], WEIGHTS[:300])
    before = model.solve().feature_weights_.copy()
    some = slice(0, 60)
    for rows, targets, weights in (
        (X[300:], y[300:], WEIGHTS[300:]),  # other rows
        (X[some], y[some][::-1], WEIGHTS[some]),  # other targets
        (X[some], y[some], 2 * WEIGHTS[some]),  # other weights
        (X[some], y[some], None),
        (np.tile(X[some], (2, 1)), np.tile(y[some], 2), np.tile(WEIGHTS[some], 2)),  # twice
    ):
        with pytest.raises(ValueError, match="Remove rows as they were learned"):
            model.downdate(rows, targets, weights)
        assert model.statistics_.n_rows == 300
        assert np.array_equal(model.solve().feature_weights_, before)
    model.downdate(X[some], y[some], WEIGHTS[some])
    with pytest.raises(ValueError, match="Remove rows as they were learned"):
        model.downdate(X[some], y[some], WEIGHTS[some])
    rest = make().fit(X[60:300], y[60:300], WEIGHTS[60:300])
    difference = model.solve().feature_weights_ - rest.feature_weights_
    assert np.abs(difference).max() < 1e-6 * np.abs(before).max()


def test_rows_are_known_in_either_precision_and_order():
    single = X.astype(np.float32)
    model = KernelRegressor(MAP).fit(single, NUMBERS)
    model.downdate(single.astype(np.float64)[99::-1], NUMBERS[99::-1])
    assert model.statistics_.n_rows == 300


def test_copies_of_rows_can_be_removed_one_by_one():
    model = KernelRegressor(MAP).fit(np.tile(X, (2, 1)), np.tile(NUMBERS, 2))
    for _ in range(2):
        model.downdate(X[:10], NUMBERS[:10])
    with pytest.raises(ValueError, match="those with the indices 0 were not learned"):
        model.downdate(X[:1], NUMBERS[:1])


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_rows_may_be_removed_in_float32_that_were_added_in_float64(class_weight):
    feature_map = Fastfood(Gaussian(2.0), 16, random_state=0)
    for seed in range(20):
        X = np.random.default_rng(seed).integers(-8, 9, size=(40, 3)) / 4.0  # exact in float32
        y = (X[:, 0] > 0).astype(int)
        model = KernelClassifier(feature_map, class_weight=class_weight, alpha=0.1).fit(X, y)
        model.downdate(X[:10].astype(np.float32), y[:10])
        assert model.statistics_.n_rows == 30
