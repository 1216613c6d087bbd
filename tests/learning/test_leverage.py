"""Samples of rows by leverage, against exact leverages and beside even samples."""

from __future__ import annotations

import numpy as np
import pytest

from kitchenette import Fastfood, KernelRegressor, TensorSketch
from kitchenette.data import source
from kitchenette.kernels import Gaussian, Polynomial
from kitchenette.learning import iterative, preconditioner
from kitchenette.learning.conjugate_gradients import SquaredSolver
from kitchenette.learning.iterative import Settings
from kitchenette.learning.losses import Squared
from kitchenette.learning.passes import FeatureRows, SourceRows
from kitchenette.learning.preconditioner import (
    Preconditioner,
    leverage_scores,
    probabilities,
    systematic_sample,
)
from kitchenette.learning.target_coding import NumberCoding

SETTINGS = Settings(None, True, 100, 1e-3, 0)


def rare_rows(n=2000, n_rare=8, seed=0, made=FeatureRows):
    """Rows of which a few lie far from all others, in directions of their own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) / 3
    X[:n_rare] += 4 * rng.normal(size=(n_rare, 3))
    X = X[rng.permutation(n)]
    y, weights = rng.normal(size=(n, 1)), 0.5 + rng.random(n)
    fitted = Fastfood(Gaussian(1.0), 64, random_state=0).fit(X)
    X = source(X) if made is SourceRows else X
    return made(fitted, X, y, NumberCoding(2), weights)


def exact_leverages(rows):
    """The definition, by the matrix of all rows and all features."""
    Z, mean = rows.features().astype(float), rows.moments().mean
    C = Z - mean
    A = C.T @ (rows.weights[:, None] * C)
    A += preconditioner.PENALTY * np.trace(A) * np.eye(len(A))
    return np.einsum("ij,ij->i", C, np.linalg.solve(A, C.T).T)


def test_scores_of_all_features_and_rows_are_the_leverages():
    rows = rare_rows()
    scores = leverage_scores(rows, rows, rows.moments().mean)
    assert np.allclose(scores, exact_leverages(rows), rtol=1e-3)


def test_scores_of_a_few_features_and_rows_find_the_rare_rows(monkeypatch):
    monkeypatch.setattr(preconditioner, "SCORE_FEATURES", 24)
    rows = rare_rows()
    scores = leverage_scores(rows, rows.some(np.arange(200)), rows.moments().mean)
    highest = np.argsort(exact_leverages(rows))[-8:]
    assert np.all(scores[highest] > 3 * np.median(scores))


def test_scores_of_a_source_are_those_of_its_rows():
    rows, read = rare_rows(), rare_rows(made=SourceRows)
    few, mean = rows.some(np.arange(300)), rows.moments().mean
    assert np.allclose(leverage_scores(read, few, mean), leverage_scores(rows, few, mean))


def test_there_are_no_scores_of_features_that_do_not_vary():
    rows = rare_rows()
    constant = rows.some(np.zeros(50, dtype=np.intp))
    assert leverage_scores(rows, constant, constant.features()[0].astype(float)) is None


@pytest.mark.parametrize("weight", [1e308, 1e-312, 1e-320])
def test_there_are_no_scores_from_numbers_that_overflow_or_vanish(weight):
    rows = rare_rows()
    light = rows.weighted(np.full(rows.n_rows, weight))
    assert leverage_scores(rows, light, np.zeros(64)) is None


@pytest.mark.parametrize("weight", [1e-308, 1e-312, 1e-320])
def test_rows_of_nearly_no_weight_do_not_disturb(weight):
    X = np.random.default_rng(0).normal(size=(10_000, 3))
    weights = np.full(10_000, weight)
    weights[[5, 1000, 7000]] = 1.0
    model = KernelRegressor(
        Fastfood(Gaussian(1.0), 64, random_state=0), alpha=1e-3, validation_rows=0
    )
    found = [
        model.set_params(solver=solver).fit(X, X[:, 0], sample_weight=weights).predict(X[:50])
        for solver in ("iterative", "onepass")
    ]
    assert np.allclose(*found, atol=1e-3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflow, of which the error tells
def test_tiny_features_and_a_huge_row_are_no_reason_for_a_riddle():
    X = np.random.default_rng(0).normal(size=(8000, 3))
    model = KernelRegressor(
        TensorSketch(Polynomial(3, coef0=0), 64, random_state=0),
        solver="iterative",
        alpha=1e-3,
        validation_rows=0,
        fit_intercept=False,
        max_iter=3,
    )
    y = X[:, 0].copy()
    assert np.isfinite(model.fit(1e-54 * X, y).predict(X)).all()
    X[16] = 1e55
    with pytest.raises(ValueError, match="Scale the data"):
        model.fit(X, y)


def test_chances_add_up_and_none_is_above_one():
    rng = np.random.default_rng(0)
    scores, weights = rng.pareto(0.7, size=1000), rng.random(1000) + 0.1
    for count in (1, 10, 500, 999):
        found = probabilities(scores, weights, count)
        assert found.sum() == pytest.approx(count)
        assert found.min() > 0
        assert found.max() <= 1
    light = np.where(np.arange(1000) < 3, 1.0, 1e-322)
    for scores in (np.ones(1000), np.arange(1000) ** 9.0):
        found = probabilities(scores, light, 10)
        assert found.sum() == pytest.approx(10)
        assert systematic_sample(found).size == 10
    few = probabilities(np.ones(1000), weights, 10)
    assert np.allclose(few, 10 * weights / weights.sum())


def test_equal_scores_of_many_rows_are_no_reason_to_loop():
    found = probabilities(np.array([1e300, 1e300, 1.0, 1.0]), np.ones(4), 3)
    assert found == pytest.approx([1, 1, 0.5, 0.5])


def test_systematic_samples_have_the_size_and_the_chances_that_are_wanted():
    """Each row is drawn as often as its chance says: a binomial test of every row, 3000 samples.

    With 40 rows and a bound of 5 standard deviations a right sampler fails once in 40,000 seeds;
    one that draws all rows alike is off by more than 10 deviations for most rows.
    """
    rng, n, samples = np.random.default_rng(0), 40, 3000
    wanted = probabilities(rng.pareto(1.0, size=n) + 0.1, np.ones(n), 12)
    drawn = np.zeros(n)
    for _ in range(samples):
        order = rng.permutation(n)
        sample = systematic_sample(wanted[order])
        assert sample.size == 12
        drawn[order[sample]] += 1
    deviation = np.sqrt(samples * wanted * (1 - wanted)) + 1e-9
    assert np.all(np.abs(drawn - samples * wanted) < 5 * deviation)


def spread_of_eigenvalues(rows, sample, alpha):
    """The condition number of the preconditioned matrix."""
    C = rows.features().astype(float) - rows.moments().mean
    A = C.T @ (rows.weights[:, None] * C) + alpha * np.eye(rows.n_features)
    values = np.linalg.eigvals(Preconditioner(sample, alpha)(A)).real
    return values.max() / values.min()


def test_a_sample_by_leverage_misses_no_direction(monkeypatch):
    monkeypatch.setattr(preconditioner, "LARGEST_ORDER", 64)
    by_leverage, even = [], []
    for seed in range(5):
        rows = rare_rows(seed=seed)
        learning = SquaredSolver(rows, Squared(), SETTINGS, None)
        mean = rows.moments().mean
        by_leverage.append(spread_of_eigenvalues(rows, learning.sampled_rows(mean), 1e-4))
        with monkeypatch.context() as patch:
            patch.setattr(iterative, "leverage_scores", lambda *_: None)
            even.append(spread_of_eigenvalues(rows, learning.sampled_rows(mean), 1e-4))
    assert max(by_leverage) < min(even) / 3


def test_a_row_of_weight_two_is_two_rows(monkeypatch):
    monkeypatch.setattr(preconditioner, "LARGEST_ORDER", 64)
    rows = rare_rows(500)
    twice = np.repeat(np.arange(500), 2)
    found = []
    for made in (rows.weighted(np.full(500, 2.0)), rows.some(twice).weighted(np.ones(1000))):
        learning = SquaredSolver(made, Squared(), SETTINGS, None)
        sample, unit = learning.sampled_rows(rows.moments().mean), learning.weight_unit
        found.append(Preconditioner(sample, 0.1 / unit)(np.eye(64)) / unit)
    assert np.allclose(*found)
