"""What repeated rows and weights count for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kitchenette.data.drawing import Drawing
from kitchenette.data.observations import divided, observation_counts


def grid(n_rows=2000, n_values=4, n_columns=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(n_values, size=(n_rows, n_columns)).astype(float)
    chances = rng.uniform(0.05, 0.95, (n_values,) * n_columns)[tuple(X.astype(int).T)]
    return X, chances, rng


def rule(X, y, weights=None, size=8000):
    return Drawing(size, seed=0).of_rows(X, y, weights).observation_rule()


def total(X, y, weights=None, size=8000):
    drawn = Drawing(size, seed=0).of_rows(X, y, weights)
    return drawn.counts(drawn.observation_rule()).sum()


@pytest.mark.parametrize("size", [8000, 60])
@pytest.mark.parametrize("target", ["labels", "exact", "values"])
def test_rows_of_few_categories_are_observations(target, size):
    X, chances, rng = grid()
    y = {"labels": rng.random(2000) < chances, "exact": np.round(4 * chances), "values": chances}
    assert rule(X, y[target], size=size) == "weights"
    assert rule(sp.csr_matrix(X), y[target], size=size) == "weights"
    if size == 8000:
        assert total(X, y[target]) == 2000


def test_copies_of_continuous_rows_are_one_observation():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), rng.normal(size=500)
    for labels in (y, y > 0):
        assert total(np.repeat(X, 10, axis=0), np.repeat(labels, 10)) == 500
        bootstrap = rng.integers(500, size=500)
        assert total(X[bootstrap], labels[bootstrap]) == np.unique(bootstrap).size


def test_copies_of_continuous_targets_are_one_observation():
    X, chances, rng = grid(500)
    y = chances + rng.normal(size=500)
    bootstrap = rng.integers(500, size=800)
    assert rule(X, y) in ("weights", "pairs")  # nothing is repeated
    assert total(X[bootstrap], y[bootstrap]) == np.unique(bootstrap).size


def test_a_few_contradictions_do_not_make_copies_observations():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), rng.random(500) < 0.5
    X[1], y[:2] = X[0], [True, False]
    assert total(np.repeat(X, 10, axis=0), np.repeat(y, 10)) == 500


def test_a_row_of_weight_two_is_two_rows_and_common_factors_do_not_matter():
    X, chances, rng = grid(600)
    y = rng.random(600) < chances
    weights = rng.integers(1, 5, size=600).astype(float)
    which = np.repeat(np.arange(600), weights.astype(int))
    expected = total(X[which], y[which])
    assert expected == weights.sum()
    for factor in (1, 100, 0.1, 1 / 3):
        assert total(X, y, factor * weights) == expected


def test_survey_weights_do_not_multiply_rows():
    X, chances, rng = grid(600)
    y = rng.random(600) < chances
    assert total(X, y, rng.lognormal(size=600)) == 600
    continuous = rng.normal(size=(600, 4))
    assert total(continuous, y, rng.integers(1000, 3000, size=600).astype(float)) == 600


def test_tables_of_frequencies_count_what_they_say():
    X, chances, rng = grid(3000, 2, 2)
    y = rng.random(3000) < chances
    drawn = Drawing(100, seed=0).of_rows(X, y)
    assert total(drawn.X, drawn.y, drawn.weights) == total(X, y) == 3000


def test_tiny_weights_are_no_unit():
    weights = np.r_[np.ones(50), 1e-300]
    assert observation_counts(weights, np.ones(51, dtype=int), "weights").tolist() == [1] * 51


def test_parts_of_observations_are_binomial():
    # 4.5 standard errors; a part that takes every third copy would have no variance.
    rng = np.random.default_rng(0)
    counts = np.full(20_000, 6.0)
    part = divided(counts, 0.3, rng.random(20_000))
    assert abs(part.mean() - 1.8) < 4.5 * np.sqrt(6 * 0.21 / 20_000)
    assert part.var() == pytest.approx(6 * 0.21, rel=0.05)
    places = (np.arange(10) + 0.5) / 10
    assert divided(np.ones(10), 0.3, places).tolist() == [1] * 3 + [0] * 7
    assert divided(np.full(3, 4.0), 0.0, places[:3]).tolist() == [0, 0, 0]
