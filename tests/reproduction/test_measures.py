"""What the experiments measure is what they say."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from kitchenette.kernels import Exponential, Polynomial
from reproduction import classification, fastfood_regression, guide, tefm
from reproduction.classification import diagonal, exact_machine, measure_features, split
from reproduction.data import unit_rows
from reproduction.experiment import Measured, Results, grid
from reproduction.random_maclaurin import LiteralMaclaurin, make_map


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = unit_rows(rng.normal(size=(160, 5)))
    y = X[:, 0] * X[:, 1] > 0.1 * X[:, 2]
    return classification.Split(X[:100], y[:100], X[100:], y[100:])


@pytest.mark.parametrize(
    "kernel", [Polynomial(10), Polynomial(2, coef0=0.0), Exponential()], ids=repr
)
def test_the_exact_machine_has_the_kernel_that_its_features_approximate(kernel, rows):
    X, y = rows.X.astype(float), rows.y
    expected = SVC(kernel="precomputed", C=3 / diagonal(kernel), tol=1e-8)
    expected.fit(kernel(X), y)
    machine = exact_machine(kernel, 3.0).set_params(tol=1e-8).fit(X, y)
    X_test = rows.X_test.astype(float)
    decisions = machine.decision_function(X_test)
    assert np.allclose(decisions, expected.decision_function(kernel(X_test, X)), atol=1e-4)


@pytest.mark.parametrize("kernel", [Polynomial(3, coef0=0.0), Polynomial(3), Exponential()])
def test_random_maclaurin_to_the_letter_is_unbiased(kernel):
    pair = np.array([[0.6, 0.5, -0.3], [0.7, -0.2, -0.6]])
    estimates = []
    for seed in range(400):
        Z = LiteralMaclaurin(kernel, 64, random_state=seed).fit(pair).transform(pair)
        estimates.append(Z[0] @ Z[1])
    error = np.mean(estimates) - kernel(pair)[0, 1]
    assert abs(error) < 4.5 * np.std(estimates) / 20


def test_to_the_letter_most_features_of_a_homogeneous_kernel_are_zero():
    X = np.eye(3)
    useful = [
        LiteralMaclaurin(Polynomial(4, coef0=0.0), 3200, random_state=seed).fit(X).n_useful_
        for seed in range(20)
    ]
    assert 90 < np.mean(useful) < 110  # 3200 / 2^5 = 100 with a standard deviation of 2


def test_h01_has_as_many_random_features_as_plain_features():
    X = np.eye(3)
    plain = make_map("RF", Exponential(), 50, 3, seed=0).fit_transform(X)
    helped = make_map("H0/1", Exponential(), 50, 3, seed=0).fit_transform(X)
    assert helped.shape[1] == plain.shape[1] + 4


@pytest.mark.parametrize("solver", list(classification.SOLVERS))
def test_every_learner_learns_from_features(solver, rows):
    kernel = Polynomial(2)
    made = make_map("ours", kernel, 100, 5, seed=0)
    numbers = measure_features(made, kernel, solver, rows)
    assert numbers["accuracy"] > max(np.mean(rows.y_test), 1 - np.mean(rows.y_test)) + 0.1
    assert numbers["n_test"] == 60


def test_small_sets_keep_two_fifths_of_their_rows_for_the_test(monkeypatch):
    X, y = np.eye(100, dtype=np.float32), np.arange(100)
    monkeypatch.setattr(classification, "everything", lambda name: (X, y))
    small = split("small set", 1000, 1000, 0)
    assert (len(small.y), len(small.y_test)) == (60, 40)
    assert not set(small.y) & set(small.y_test)
    large = split("large set", 20, 30, 0)
    assert (len(large.y), len(large.y_test)) == (20, 30)


def test_the_spectral_norm_is_that_of_a_symmetric_matrix_of_any_sign():
    A = np.random.default_rng(0).normal(size=(40, 40))
    for symmetric in (A + A.T, -A @ A.T):
        assert np.isclose(tefm.spectral_norm(symmetric), np.linalg.norm(symmetric, 2), rtol=1e-3)


def test_compact_maps_are_compared_with_as_many_features_as_their_base_map_has():
    results = Results("quick")
    for cell in grid(2, map=["RKS", "TEFM-G"], l=[64, 256, 1024]):
        value = cell["l"] * (1 if cell["map"] == "RKS" else 6) + cell.seed
        results.measured.append(Measured(cell, {"error": value}, 0.0))
    ratios = tefm.against_wide(results, "error", "TEFM-G")
    assert np.allclose(ratios.values, [384 / 256, 385 / 257, 1536 / 1024, 1537 / 1025])
    assert len(tefm.against_wide(results, "error", "TEFM-G", fewest=256).values) == 2


def test_the_penalty_of_ridge_regression_is_judged_on_rows_that_were_not_learned():
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(40, 30)), rng.normal(size=(40, 1))
    errors = tefm.held_out_errors(Z, y)  # nothing can be learned, so the largest penalty is best
    assert min(errors, key=lambda penalty: errors[penalty]) == tefm.PENALTIES[-1]
    assert min(errors.values()) > 0.9


def test_errors_of_the_guide_are_shares_of_wrong_classes_or_relative_to_the_spread():
    X, y = np.zeros((4, 1), dtype=np.float32), np.array([0.0, 0.0, 2.0, 2.0])
    classes, numbers = (guide.Task(X, y, X, y, regression) for regression in (False, True))
    assert classes.error(np.array([0.0, 0.0, 0.0, 2.0])) == 0.25
    assert numbers.error(np.full(4, 1.0)) == 1.0


@pytest.mark.parametrize("degree", [3, 7])
def test_a_polynomial_as_a_series_is_the_same_kernel(degree):
    X = np.random.default_rng(0).normal(size=(6, 4)) / 3
    kernel = Polynomial(degree)
    assert np.allclose(guide.as_series(kernel)(X), kernel(X))


def test_exact_ridge_regression_learns_a_function_of_the_kernel():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    y = np.sin(4 * X[:, 0]) + X[:, 1]
    rows = fastfood_regression.Split(X[:240], y[:240], X[240:], y[240:])
    error = fastfood_regression.measured_error("exact RBF", 0.5, rows, 0, seed=0)
    assert error < 0.05 * np.std(y)
    features = fastfood_regression.measured_error("RKS", 0.5, rows, 256, seed=0)
    assert features < 0.1 * np.std(y)
