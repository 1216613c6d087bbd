"""Screening: which columns matter is told from tables of counts, whatever the rows' order."""

from __future__ import annotations

import numpy as np
import pytest

from kitchenette import AutoMap
from kitchenette.selection.screening import bins_by_rank, screened_columns
from kitchenette.selection.targets import pilot_targets

EFFECTS = {
    "a wave": (1, lambda X: np.sin(6 * X[:, 0])),
    "a threshold": (1, lambda X: X[:, 0] > 0.5),
    "a sum": (4, lambda X: X[:, 0] + X[:, 1] - X[:, 2] - X[:, 3]),
    "a product of two": (2, lambda X: X[:, 0] * X[:, 1]),
    "waves of two": (2, lambda X: np.sin(3 * X[:, 0]) * np.cos(3 * X[:, 1])),
    "the parity of two": (2, lambda X: np.sign(X[:, 0] * X[:, 1])),
    "the parity of three": (3, lambda X: np.sign(X[:, 0] * X[:, 1] * X[:, 2])),
}


def screened(X, y, weights=None):
    y = np.asarray(y, dtype=float).reshape(len(X), -1)
    return screened_columns(X, y, np.ones(len(X)) if weights is None else weights)


@pytest.mark.parametrize("name", EFFECTS)
def test_columns_with_an_effect_are_found_and_no_others(name):
    n_relevant, function = EFFECTS[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 30))
    signal = np.asarray(function(X), dtype=float)
    y = signal / signal.std() + 0.3 * rng.normal(size=2000)
    assert set(np.flatnonzero(screened(X, y))) == set(range(n_relevant))


def test_noise_has_no_effects():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(500, 10)), rng.integers(3, size=(500, 10))])
    found = [screened(X, rng.standard_t(5, size=500)).any() for _ in range(20)]
    assert sum(found) <= 1


def test_screening_of_classes_and_of_several_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    parity = (X[:, 4] * X[:, 5] > 0).astype(int)
    labels = 3 * parity + rng.integers(3, size=2000)
    targets = pilot_targets(labels, "classification", 0).independent(4, 0)
    assert targets.shape == (2000, 4)
    assert set(np.flatnonzero(screened(X, targets))) == {4, 5}
    both = np.column_stack([np.sin(6 * X[:, 1]), parity])
    assert set(np.flatnonzero(screened(X, both))) == {1, 4, 5}


def test_screening_knows_neither_units_nor_the_order_of_rows():
    rng = np.random.default_rng(0)
    X, order = rng.normal(size=(1000, 12)), rng.permutation(1000)
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2])
    weights = rng.integers(0, 3, size=1000).astype(float)
    found = screened(X, y, weights)
    np.testing.assert_allclose(screened(X[order], y[order], weights[order]), found, rtol=1e-4)
    np.testing.assert_array_equal(screened(np.exp(3 * X), y, weights), found)
    used = weights > 0
    np.testing.assert_allclose(screened(X[used], y[used], weights[used]), found)


def test_screening_of_useless_rows_finds_nothing():
    rng = np.random.default_rng(0)
    y = rng.normal(size=100)
    assert not screened(np.ones((100, 5)), y).any()
    assert not screened(rng.normal(size=(100, 5)), np.ones(100)).any()
    assert not screened(rng.normal(size=(20, 5)), y[:20]).any()
    assert not screened(rng.normal(size=(100, 2000)), y).any()
    assert not screened(rng.normal(size=(100, 2)), y).any()


def test_main_effects_are_seen_in_more_columns_than_have_pairs():
    X = np.random.default_rng(0).normal(size=(1000, 600))
    assert set(np.flatnonzero(screened(X, np.sin(6 * X[:, 3])))) == {3}


def test_bins_have_about_equally_many_rows_and_keep_few_numbers():
    rng = np.random.default_rng(0)
    assert np.ptp(np.bincount(bins_by_rank(rng.normal(size=800), 8))) <= 1
    np.testing.assert_array_equal(bins_by_rank(np.array([5.0, -1.0, 5.0, 9.0]), 8), [1, 0, 1, 2])
    mostly_zero = np.where(rng.random(800) < 0.9, 0.0, rng.normal(size=800))
    bins = bins_by_rank(mostly_zero, 8)
    assert np.unique(bins[mostly_zero == 0]).size == 1
    assert bins.max() == np.unique(bins).size - 1


def test_a_wave_in_one_of_many_columns_is_seen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 40))
    auto = AutoMap(128, random_state=0).fit(X, np.sin(5 * X[:, 7]))
    assert auto.choice_.chosen["loss"] < 0.1
    assert auto.feature_importances_[7] > 0.9
