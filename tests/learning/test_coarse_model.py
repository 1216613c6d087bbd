"""A model of some features: it finds the penalty of all rows and starts an iterative solver."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from kitchenette import Fastfood, KernelClassifier
from kitchenette.data import source
from kitchenette.kernels import Gaussian
from kitchenette.learning import conjugate_gradients, iterative
from kitchenette.learning.iterative import Settings
from kitchenette.learning.losses import Squared
from kitchenette.learning.passes import FeatureRows, SourceRows
from kitchenette.learning.target_coding import NumberCoding

SETTINGS = Settings(None, True, 100, 1e-3, 500)


def wavy_map(n_components=512):
    return Fastfood(Gaussian(0.2), n_components, random_state=0)


def wavy_data(n=3000):
    """Waves that a few rows do not show."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(9 * X[:, 0]) * np.cos(9 * X[:, 1]) + 0.3 * rng.normal(size=n)


def feature_rows(X, y, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    return FeatureRows(wavy_map().fit(X), X, y[:, None], NumberCoding(2), weights)


@pytest.fixture
def few_features(monkeypatch):
    """A coarse model of few features, and a pilot of few rows."""
    monkeypatch.setattr(conjugate_gradients, "COARSE_FEATURES", 128)
    monkeypatch.setattr(iterative, "PILOT_ROWS", 64)


def test_the_first_penalty_is_near_the_best_where_few_rows_choose_a_far_larger_one(few_features):
    X, y = wavy_data()
    rows = feature_rows(X, y)
    many_passes = conjugate_gradients.SquaredSolver(rows, Squared(), SETTINGS, None)
    best = rows.statistics(np.arange(rows.n_features)).solve("gcv").alpha
    assert many_passes.first_guess()[0] > 100 * best
    assert best / 8 < many_passes._first_penalties()[0] < 8 * best


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_coarse_model_is_ridge_regression_of_some_features(few_features, fit_intercept):
    X, y = wavy_data(1000)
    rows = feature_rows(X, y + 1, np.random.default_rng(2).random(1000))
    which = conjugate_gradients.sampled_features(512, 3000)
    held = feature_rows(*wavy_data(200))
    model = conjugate_gradients.coarse_model(
        rows.statistics(which), which, held, fit_intercept=fit_intercept
    )
    expected = rows.statistics(which).solve(
        model.alpha * which.size / 512, fit_intercept=fit_intercept
    )
    assert np.allclose(model.coef[which], expected.coef, atol=1e-6 * np.abs(expected.coef).max())
    assert np.count_nonzero(model.coef) == which.size


def test_few_features_or_rows_and_constant_features_have_no_coarse_model(few_features):
    assert conjugate_gradients.sampled_features(255, 10_000) is None
    assert conjugate_gradients.sampled_features(256, 2047) is None
    X, y = wavy_data(1000)
    rows = feature_rows(np.ones_like(X), y)
    which = conjugate_gradients.sampled_features(512, 3000)
    statistics = rows.statistics(which)
    assert conjugate_gradients.coarse_model(statistics, which, rows, fit_intercept=True) is None


def test_the_solver_begins_with_the_coarse_model_unless_there_is_another_start(few_features):
    X, y = wavy_data()
    rows, other = feature_rows(X, y), (np.ones((512, 1)), np.zeros(1))
    for start in (None, other):
        many_passes = conjugate_gradients.SquaredSolver(rows, Squared(), SETTINGS, start)
        many_passes._first_penalties()
        assert np.count_nonzero(many_passes.start[0]) == (128 if start is None else 512)


def test_the_order_of_rows_does_not_matter_with_a_coarse_model(few_features):
    X, y = wavy_data()
    order = np.random.default_rng(3).permutation(3000)
    model = KernelClassifier(wavy_map(), solver="iterative")
    one = clone(model).fit(X, y > 0)
    other = clone(model).fit(X[order], y[order] > 0)
    assert other.alpha_ == pytest.approx(one.alpha_)
    assert other.n_iter_ == one.n_iter_
    assert np.allclose(other.decision_function(X), one.decision_function(X), atol=1e-5)


def test_statistics_of_a_source_are_those_of_its_rows():
    X, y = wavy_data(700)
    weights = np.random.default_rng(4).random(700)
    which = np.array([0, 3, 511])
    rows = feature_rows(X, y, weights)
    read = SourceRows(wavy_map().fit(X), source(X, target=y), y[:, None], rows.coding, weights)
    expected, found = rows.statistics(which), read.statistics(which)
    assert np.allclose(found.gram.full(), expected.gram.full())
    assert np.allclose(found.cross, expected.cross)
    assert found.count == pytest.approx(expected.count)


def test_a_path_of_penalties_ends_where_they_differ_little():
    assert conjugate_gradients.beyond({4.0: 0.1001, 1.0: 0.1}) == []
    assert conjugate_gradients.beyond({4.0: 0.101, 1.0: 0.1}) == [0.25]


def test_improvements_are_averaged_where_the_model_changes_slowly():
    errors = np.cumprod(np.tile([0.999, 0.999, 0.999, 0.99, 0.999], 4))
    patience = iterative.EarlyStopping()
    ended = []
    for error in errors:
        patience.improved(error)
        assert not patience.ended_slowly
        ended.append(patience.ended)
    assert any(ended)
    for _ in range(4):
        patience.improved(1.0)
    assert patience.ended_slowly
