"""Tables of few categories or small integers, in which rows repeat."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from benchmarks.repeated import TARGETS, copies, grid, linear, strings, survey
from kitchenette import AutoMap, Fastfood, KernelClassifier, KernelRegressor
from kitchenette.data import source
from kitchenette.kernels import Gaussian
from kitchenette.report.boosting import boosted

SMALL = Fastfood(Gaussian(0.5), n_components=256, random_state=0)


def estimator(classes, **options):
    made = KernelClassifier if classes else KernelRegressor
    return made(**{"feature_map": SMALL, "random_state": 0, **options})


def score_of_trees(data):
    task = "classification" if data.classes else "regression"
    return boosted("HistGradientBoosting", task).fit(data.X, data.y).score(data.X_test, data.y_test)


def deviation(score, n_rows, classes):
    return np.sqrt(score * (1 - score) / n_rows) if classes else 0.03


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("n_values", "n_columns", "n_rows"), [(4, 3, 4000), (2, 5, 500)])
def test_a_given_map_learns_what_trees_learn(n_values, n_columns, n_rows, target):
    data = grid(n_values, n_columns, n_rows, target)
    model = estimator(data.classes).fit(data.X, data.y)
    score = model.score(data.X_test, data.y_test)
    assert score > 0.97 * score_of_trees(data)
    errors = [deviation(score, n, data.classes) for n in (len(data.y), len(data.y_test))]
    assert abs(model.validation_score_ - score) < 4.5 * np.hypot(*errors)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("n_values", "n_columns", "n_rows"), [(4, 3, 4000), (6, 2, 1000)])
def test_the_default_learns_what_trees_learn(n_values, n_columns, n_rows, target):
    data = grid(n_values, n_columns, n_rows, target)
    model = estimator(data.classes, feature_map=None).fit(data.X, data.y)
    score = model.score(data.X_test, data.y_test)
    chance = 4.5 * deviation(max(score, 0.01), len(data.y_test), True)
    assert score > 0.97 * score_of_trees(data)
    assert score > linear(data).fit(pd.DataFrame(data.X), data.y).score(
        pd.DataFrame(data.X_test), data.y_test
    ) - (chance if data.classes else 0.02)


@pytest.mark.parametrize("options", [{"loss": "logistic"}, {"solver": "iterative"}, {}])
def test_every_solver_learns_the_cells(options):
    data = grid(4, 3, 4000, "bernoulli")
    model = estimator(True, **options).fit(data.X, data.y)
    assert model.score(data.X_test, data.y_test) > 0.97 * score_of_trees(data)


def test_more_rows_of_three_string_columns_are_not_worse():
    for n_rows in (200, 600, 2000, 6000):
        data = strings(n_rows)
        model = estimator(False).fit(data.X, data.y)
        assert model.score(data.X_test, data.y_test) > (0.5 if n_rows == 200 else 0.98)


def test_files_and_arrays_learn_the_same_cells(tmp_path):
    data = strings(2000)
    frame = data.X.assign(target=data.y)
    frame.to_parquet(tmp_path / "rows.parquet")
    model = estimator(False).fit(source(tmp_path / "rows.parquet", target="target"))
    assert model.score(data.X_test, data.y_test) > 0.98
    assert model.validation_score_ > 0.98


def test_copies_of_continuous_rows_are_not_learned_by_heart():
    data = copies(300, 10)
    once = slice(None, None, 10)
    model = estimator(False, feature_map=Fastfood(random_state=0)).fit(data.X, data.y)
    plain = estimator(False, feature_map=Fastfood(random_state=0)).fit(data.X[once], data.y[once])
    assert model.observation_rule_ == "pairs"
    assert model.alpha_ == pytest.approx(10 * plain.alpha_, rel=1e-6)
    assert model.validation_score_ == pytest.approx(plain.validation_score_, rel=1e-6)


def test_weights_and_repetitions_are_the_same_for_cells():
    data = grid(3, 3, 400, "bernoulli")
    weights = np.random.default_rng(0).integers(1, 4, size=400).astype(float)
    which = np.repeat(np.arange(400), weights.astype(int))
    repeated = estimator(True).fit(data.X[which], data.y[which])
    for factor in (1, 100):
        weighted = estimator(True).fit(data.X, data.y, factor * weights)
        assert weighted.alpha_ == pytest.approx(factor * repeated.alpha_, rel=1e-6)
        assert weighted.validation_score_ == pytest.approx(repeated.validation_score_)
        proba = weighted.predict_proba(data.X_test)
        np.testing.assert_allclose(proba, repeated.predict_proba(data.X_test), atol=1e-6)


def test_order_and_splitting_of_repeated_rows_change_nothing():
    data = survey(1500)
    order = np.random.default_rng(0).permutation(1500)
    frozen = FrozenEstimator(Fastfood(n_components=128, random_state=0).fit(data.X))
    whole = estimator(True, feature_map=frozen).fit(data.X, data.y)
    shuffled = estimator(True, feature_map=frozen).fit(data.X[order], data.y[order])
    parts = [
        estimator(True, feature_map=frozen).fit(data.X[part], data.y[part])
        for part in np.array_split(order, 3)
    ]
    merged = parts[2].merge(parts[0]).merge(parts[1]).solve()
    for other in (shuffled, merged):
        assert other.alpha_ == pytest.approx(whole.alpha_, rel=1e-9)
        assert other.validation_score_ == pytest.approx(whole.validation_score_, rel=1e-12)


def test_probabilities_of_cells_are_their_frequencies():
    data = grid(2, 2, 4000, "bernoulli")
    model = estimator(True).fit(data.X, data.y)
    for cell in np.unique(data.X, axis=0):
        rate = data.y[(cell == data.X).all(axis=1)].mean()
        assert abs(model.predict_proba(cell[None])[0, 1] - rate) < 0.05


def test_the_choice_of_a_map_holds_single_observations_out():
    data = grid(4, 3, 3000, "exact")
    auto = AutoMap(128, scales="columns", kernel=Gaussian(), random_state=0).fit(data.X, data.y)
    assert auto.choice_.n_rows == 3000
    assert auto.choice_.chosen["loss"] < 0.05


@pytest.mark.parametrize("feature_map", [SMALL, Fastfood(n_components=64, random_state=0)])
@pytest.mark.parametrize("first", [1, 10, 60])
def test_a_small_first_batch_does_not_decide_what_repeated_rows_count_for(first, feature_map):
    data = grid(4, 3, 4000, "bernoulli")
    shared = FrozenEstimator(feature_map.fit(data.X))
    whole = estimator(True, feature_map=shared).fit(data.X, data.y)
    parts = np.split(np.arange(4000), [*range(first, 200, first), 2000])
    one = estimator(True, feature_map=shared)
    for part in parts:
        one.partial_fit(data.X[part], data.y[part], classes=[0, 1])
    few, many = (
        estimator(True, feature_map=shared).fit(data.X[part], data.y[part])
        for part in (slice(20), slice(20, None))
    )
    expected = whole.decision_function(data.X_test)
    for model in (one, clone(few).fit(data.X[:20], data.y[:20]).merge(many), many.merge(few)):
        assert model.observation_rule_ == whole.observation_rule_ == "weights"
        assert_allclose(model.solve().alpha_, whole.alpha_, rtol=1e-3)
        assert_allclose(model.decision_function(data.X_test), expected, atol=1e-4)
