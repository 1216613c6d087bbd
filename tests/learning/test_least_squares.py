"""Mergeable least squares against scikit-learn, explicit formulas and itself."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import BayesianRidge, Ridge, RidgeCV
from unbiased import assert_unbiased

from kitchenette import Fastfood, KernelRegressor, LeastSquares
from kitchenette.kernels import Gaussian
from kitchenette.learning import penalty as penalty_module
from kitchenette.learning.gram import CholeskyFactor


def problem(n=60, D=7, k=2, *, offset=3.0, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) + offset
    Y = Z @ rng.normal(size=(D, k)) + noise * rng.normal(size=(n, k)) - 2
    return Z, Y, rng.uniform(0, 3, n)


def relative_error(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def assert_same_statistics(a, b, *, rtol=1e-9):
    assert a.n_rows == b.n_rows
    assert a.has_float32 == b.has_float32
    assert a.count == pytest.approx(b.count)
    for name in ("feature_mean", "target_mean", "cross", "target_gram"):
        x, y = getattr(a, name), getattr(b, name)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * np.abs(y).max(), err_msg=name)
    scale = np.abs(b.gram.values).max()
    np.testing.assert_allclose(a.gram.values, b.gram.values, rtol=rtol, atol=rtol * scale)


# ---------------------------------------------------------------- packed matrices


@pytest.mark.parametrize(
    "order", [1, 2, 3, 4, 5, 40, 41, 256, 299, pytest.param(700, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_packed_matrices_equal_full_ones(order, dtype):
    rng = np.random.default_rng(order)
    A = rng.normal(size=(50, order)).astype(dtype)
    A = A - A.mean(axis=0, dtype=np.float64)
    matrix = LeastSquares(order).update(A.astype(dtype), np.ones(50)).gram.copy()
    v = rng.normal(size=order)
    matrix.add_outer(v, 0.5)
    matrix.add_to_diagonal(0.25)
    full = A.T @ A + 0.5 * np.outer(v, v) + 0.25 * np.eye(order)
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(matrix.full(), np.tril(full), atol=tolerance)
    np.testing.assert_allclose(matrix.diagonal(), np.diag(full), atol=tolerance)
    half = (order + 1) // 2
    np.testing.assert_array_equal(matrix.leading(half).full(), matrix.full()[:half, :half])

    full = matrix.full() + np.tril(matrix.full(), -1).T
    factor = CholeskyFactor(matrix.copy(), 1e-14)
    B = rng.normal(size=(order, 3))
    solved = np.linalg.solve(full, B)
    np.testing.assert_allclose(factor.solve(B), solved, atol=1e-9)
    half = factor.forward(B)
    np.testing.assert_allclose(np.sum(half * half, axis=0), np.sum(B * solved, axis=0), atol=1e-9)
    np.testing.assert_allclose(factor.backward(half), solved, atol=1e-9)
    assert factor.log_determinant() == pytest.approx(np.linalg.slogdet(full)[1])
    assert factor.inverse_trace() == pytest.approx(np.trace(np.linalg.inv(full)))


# ---------------------------------------------------------------- weights and intercept


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0, 1e4])
def test_solutions_equal_those_of_ridge(fit_intercept, weighted, alpha):
    Z, Y, weights = problem()
    weights = weights if weighted else None
    ridge = Ridge(alpha=alpha, fit_intercept=fit_intercept, solver="svd")
    ridge.fit(Z, Y, sample_weight=weights)
    solution = LeastSquares(7, 2).update(Z, Y, weights).solve(alpha, fit_intercept=fit_intercept)
    np.testing.assert_allclose(solution.coef, ridge.coef_.T, rtol=1e-8)
    np.testing.assert_allclose(solution.intercept, ridge.intercept_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(solution.predict(Z), ridge.predict(Z), rtol=1e-8)
    w = np.ones(len(Z)) if weights is None else weights
    rss = w @ (Y - ridge.predict(Z)) ** 2
    np.testing.assert_allclose(solution.rss, rss, rtol=1e-7)
    assert solution.alpha == alpha
    assert solution.n_observations == pytest.approx(w.sum())


def test_one_target_may_be_a_vector():
    Z, Y, _ = problem(k=1)
    as_vector = LeastSquares(7).update(Z, Y[:, 0]).solve(1.0)
    assert np.array_equal(as_vector.coef, LeastSquares(7).update(Z, Y).solve(1.0).coef)
    assert as_vector.coef.shape == (7, 1)


def test_weights_equal_repeated_rows():
    Z, Y, _ = problem(n=40)
    repeats = np.random.default_rng(1).integers(0, 4, 40)
    weighted = LeastSquares(7, 2).update(Z, Y, repeats)
    repeated = LeastSquares(7, 2).update(np.repeat(Z, repeats, 0), np.repeat(Y, repeats, 0))
    for alpha in (0.1, "gcv", "evidence"):
        a, b = weighted.solve(alpha), repeated.solve(alpha)
        np.testing.assert_allclose(a.coef, b.coef, rtol=1e-6)
        assert a.alpha == pytest.approx(b.alpha, rel=1e-3)
        assert a.log_marginal_likelihood == pytest.approx(b.log_marginal_likelihood)
        np.testing.assert_allclose(a.noise_variance, b.noise_variance, rtol=1e-6)
        np.testing.assert_allclose(a.variance(Z), b.variance(Z), rtol=1e-6)


def test_rows_of_weight_zero_change_nothing_but_their_number():
    Z, Y, _ = problem()
    once = LeastSquares(7, 2).update(Z, Y)
    more = LeastSquares(7, 2).update(Z, Y).update(5 * Z, Y, np.zeros(len(Z)))
    assert more.n_rows == 2 * once.n_rows
    assert np.array_equal(more.gram.values, once.gram.values)
    assert LeastSquares(7, 2).update(Z, Y, np.zeros(len(Z))).count == 0


# ---------------------------------------------------------------- batches and merging


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_any_split_and_any_order_of_merging_agree(data):
    n, D = data.draw(st.integers(2, 60)), data.draw(st.integers(1, 9))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    Z, Y, weights = problem(n, D, offset=data.draw(st.sampled_from([0.0, 50.0])))
    Z = Z.astype(dtype)
    weights = weights if data.draw(st.booleans()) else np.ones(n)
    whole = LeastSquares(D, 2).update(Z, Y, weights)
    cuts = sorted(data.draw(st.lists(st.integers(1, n - 1), max_size=5, unique=True)))
    bounds = [0, *cuts, n]
    parts = []
    for start, stop in pairwise(bounds):
        rows = slice(start, stop)
        if parts and data.draw(st.booleans()):
            parts[-1].update(Z[rows], Y[rows], weights[rows])
        else:
            parts.append(LeastSquares(D, 2).update(Z[rows], Y[rows], weights[rows]))
    merged = LeastSquares(D, 2)
    for part in data.draw(st.permutations(parts)):
        merged.merge(part)
    assert_same_statistics(merged, whole, rtol=1e-9 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("n", [4095, 4096, 4097, 8192, 8400])
def test_blocks_of_rows_agree_with_smaller_batches(n):
    Z, Y, weights = problem(n=n, D=21)
    whole = LeastSquares(21, 2).update(Z, Y, weights)
    parts = LeastSquares(21, 2)
    for rows in (slice(0, 1000), slice(1000, None)):
        parts.update(Z[rows], Y[rows], weights[rows])
    assert_same_statistics(whole, parts)
    whole.downdate(Z[:-5], Y[:-5], weights[:-5])
    assert_same_statistics(
        whole, LeastSquares(21, 2).update(Z[-5:], Y[-5:], weights[-5:]), rtol=1e-7
    )


WITHOUT_MEMORY = """
import resource
import numpy as np
from kitchenette import LeastSquares
Z = np.random.default_rng(0).normal(size=(5000, 1500))
y = Z[:, 0].copy()
statistics = LeastSquares(1500).update(Z, y)
before = {name: np.copy(value) for name, value in statistics.state().items()}
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
for number, spare in enumerate(range(0, 60 << 20, 5 << 20)):
    resource.setrlimit(resource.RLIMIT_AS, (used + spare, resource.RLIM_INFINITY))
    try:
        statistics.{method}(Z[:4500], y[:4500])
    except MemoryError:
        pass
    else:
        break
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert all(np.array_equal(value, before[name]) for name, value in statistics.state().items())
    print("no memory", end=" ")
    some = slice(4500 + 10 * number, 4510 + 10 * number)
    statistics.{method}(Z[some], y[some])
    before = {name: np.copy(value) for name, value in statistics.state().items()}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
@pytest.mark.parametrize("method", ["update", pytest.param("downdate", marks=pytest.mark.slow)])
def test_statistics_are_as_they_were_if_products_find_no_memory(method):
    code = WITHOUT_MEMORY.replace("{method}", method)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "no memory" in done.stdout


@pytest.mark.parametrize("weight", [1e-170, 1e160])
def test_weights_whose_products_leave_the_range(weight):
    Z, Y, _ = problem()
    weights = np.full(len(Z), weight)
    half = len(Z) // 2
    first, last = (
        LeastSquares(7, 2).update(Z[rows], Y[rows], weights[rows])
        for rows in (slice(half), slice(half, None))
    )
    parts = LeastSquares(7, 2).update(Z[:half], Y[:half], weights[:half])
    parts.update(Z[half:], Y[half:], weights[half:])
    expected = LeastSquares(7, 2).update(Z, Y).gram.values
    for statistics in (parts, first.merge(last)):
        np.testing.assert_allclose(statistics.gram.values / weight, expected, rtol=1e-9, atol=1e-9)


def test_a_difference_of_means_beyond_the_range_of_float32():
    rng = np.random.default_rng(0)
    Z = 0.4 * rng.random((100, 4), dtype=np.float32)  # in range, also times the roots
    Z[:50] += 9e9
    y, weights = np.full(100, 0.4), np.full(100, 1e20)
    parts = LeastSquares(4)
    for rows in (slice(50), slice(50, 100)):
        parts.update(Z[rows], y[rows], weights[rows])
    whole = LeastSquares(4).update(Z.astype(float), y, weights)
    np.testing.assert_allclose(parts.gram.diagonal(), whole.gram.diagonal(), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_downdating_equals_fitting_without_those_rows(dtype):
    Z, Y, weights = problem(offset=20.0)
    Z = Z.astype(dtype)
    statistics = LeastSquares(7, 2).update(Z, Y, weights).downdate(Z[:20], Y[:20], weights[:20])
    rest = LeastSquares(7, 2).update(Z[20:], Y[20:], weights[20:])
    tolerance = 1e-5 if dtype == np.float32 else 1e-10
    assert_same_statistics(statistics, rest, rtol=tolerance)
    statistics.downdate(Z[20:], Y[20:], weights[20:])
    assert statistics.n_rows == 0
    assert statistics.count == 0
    assert not statistics.gram.values.any()


def test_rounding_errors_of_weights_do_not_keep_the_last_row():
    rng = np.random.default_rng(0)
    Z, weights = rng.normal(size=(2000, 3)), rng.uniform(0.1, 1e3, size=2000)
    weights[-1] = 1e-3
    statistics = LeastSquares(3).update(Z, Z[:, 0], weights)
    for rows in np.split(rng.permutation(1999), 40 * np.arange(1, 50)):
        statistics.downdate(Z[rows], Z[rows, 0], weights[rows])
    assert statistics.count != weights[-1]
    statistics.downdate(Z[-1:], Z[-1:, 0], weights[-1:])
    assert statistics.n_rows == statistics.count == 0


def test_merging_leaves_the_other_alone_and_refuses_itself():
    Z, Y, _ = problem()
    a, b = LeastSquares(7, 2).update(Z[:20], Y[:20]), LeastSquares(7, 2).update(Z[20:], Y[20:])
    before = b.gram.values.copy()
    assert a.merge(b) is a
    assert np.array_equal(b.gram.values, before)
    doubled = LeastSquares(7, 2).update(Z, Y)
    with pytest.raises(ValueError, match="Cannot merge statistics with themselves"):
        doubled.merge(doubled)
    assert doubled.n_rows == 60
    doubled.merge(copy.copy(doubled))
    np.testing.assert_allclose(doubled.solve(2.0).coef, a.solve(1.0).coef, rtol=1e-9)


def test_a_solution_does_not_change_when_rows_are_added():
    Z, Y, _ = problem()
    statistics = LeastSquares(7, 2).update(Z[:40], Y[:40])
    solution = statistics.solve(1.0)
    before = solution.coef.copy(), solution.variance(Z)
    statistics.update(Z[40:], Y[40:])
    assert np.array_equal(solution.coef, before[0])
    assert np.array_equal(solution.variance(Z), before[1])
    assert solution.effective_dof < 7


# ---------------------------------------------------------------- accuracy


@pytest.mark.parametrize(
    "offset", [*(pytest.param(x, marks=pytest.mark.slow) for x in (0.0, 100.0)), 1e4]
)
def test_a_million_float32_rows_agree_with_a_float64_solution(offset):
    rng = np.random.default_rng(0)
    n, D = 1_000_000, 12
    Z = rng.normal(size=(n, D)).astype(np.float32)
    Z += np.float32(0.5) * Z[:, :1]
    Z += np.float32(offset)
    y = np.sin(Z - np.float32(offset)).sum(axis=1, dtype=np.float64) + rng.normal(size=n) + 10
    statistics = LeastSquares(D)
    for start in range(0, n, 100_000):
        statistics.update(Z[start : start + 100_000], y[start : start + 100_000])
    predicted = statistics.solve(1e-2).predict(Z[:1000].astype(np.float64))[:, 0]
    centered = Z.astype(np.float64)
    mean = centered.mean(axis=0)
    centered -= mean
    w = np.linalg.solve(centered.T @ centered + 1e-2 * np.eye(D), centered.T @ (y - y.mean()))
    exact = centered[:1000] @ w
    assert relative_error(predicted - y.mean(), exact) < 1e-6
    assert relative_error(predicted, exact + y.mean()) < 1e-6


def test_random_features_in_float32_agree_with_a_float64_solution():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(20_000, 5)).astype(np.float32)
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=len(X))
    Z = Fastfood(Gaussian(1.0), 256, random_state=0).fit_transform(X)
    single = LeastSquares(256).update(Z, y).solve(1e-2).predict(Z.astype(np.float64))
    double = LeastSquares(256).update(Z.astype(np.float64), y).solve(1e-2).predict(Z)
    assert relative_error(single, double) < 1e-5


def test_float32_numbers_beyond_the_range_of_their_squares():
    Z, Y, _ = problem()
    for scale in (1e-30, 1e25):
        scaled = (scale * Z).astype(np.float32)
        solution = LeastSquares(7, 2).update(scaled, Y).solve(scale**2)
        expected = LeastSquares(7, 2).update(Z, Y).solve(1.0)
        np.testing.assert_allclose(solution.coef * scale, expected.coef, rtol=1e-4)


# ---------------------------------------------------------------- singular problems


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_singular_problem_gets_the_solution_of_least_norm_and_a_warning(dtype):
    Z, Y, _ = problem(n=5000, D=4)
    # A sum that is exact in float32 too.
    Z = np.round(Z * 64) / 64
    Z = np.hstack([Z, Z[:, :1], Z[:, 1:2] + Z[:, 2:3], np.ones((5000, 1))]).astype(dtype)
    statistics = LeastSquares(7, 2).update(Z, Y)
    with pytest.warns(ConvergenceWarning, match="singular to working precision with alpha=0"):
        solution = statistics.solve(0.0)
    centered = Z.astype(float) - Z.mean(axis=0, dtype=float)
    expected = np.linalg.lstsq(centered, Y - Y.mean(axis=0), rcond=1e-5)[0]
    np.testing.assert_allclose(solution.coef, expected, atol=2e-4 if dtype == np.float32 else 1e-9)
    assert solution.effective_dof == pytest.approx(4)
    assert np.isfinite(solution.variance(Z[:5])).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        statistics.solve(0.1 if dtype == np.float32 else 1e-3)  # above rounding errors


def test_fewer_rows_than_features():
    Z, Y, _ = problem(n=5, D=9, k=1)
    with pytest.warns(ConvergenceWarning, match="least norm"):
        solution = LeastSquares(9).update(Z, Y).solve(0.0)
    np.testing.assert_allclose(solution.predict(Z), Y, atol=1e-9)
    assert np.isnan(solution.noise_variance).all()
    assert solution.log_marginal_likelihood == -np.inf
    for alpha in ("gcv", "evidence"):
        assert np.isfinite(LeastSquares(9).update(Z, Y).solve(alpha).coef).all()


# ---------------------------------------------------------------- the choice of alpha


def direct_gcv(Z, Y, alpha, *, fit_intercept):
    n = len(Z)
    C = Z - Z.mean(axis=0) if fit_intercept else Z
    hat = C @ np.linalg.solve(C.T @ C + alpha * np.eye(Z.shape[1]), C.T) + fit_intercept / n
    return n * np.sum((Y - hat @ Y) ** 2) / (n - np.trace(hat)) ** 2


def direct_log_evidence(Z, y, s2, alpha, *, fit_intercept):
    """log N(y | c, s2 (Z Z' / alpha + I)), c integrated over the real line if there is one."""
    n = len(Z)
    K = s2 * (Z @ Z.T / alpha + np.eye(n))
    if not fit_intercept:
        return multivariate_normal(np.zeros(n), K).logpdf(y)
    ones = np.ones(n)
    solved = np.linalg.solve(K, ones)
    precision = ones @ solved
    c = (solved @ y) / precision
    return multivariate_normal(c * ones, K).logpdf(y) + 0.5 * np.log(2 * np.pi / precision)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gcv_is_the_minimum_of_its_definition(fit_intercept):
    Z, Y, _ = problem(noise=8.0)
    statistics = LeastSquares(7, 2).update(Z, Y)
    solution = statistics.solve("gcv", fit_intercept=fit_intercept)
    alphas = solution.alpha * np.logspace(-0.5, 0.5, 201)
    values = [direct_gcv(Z, Y, a, fit_intercept=fit_intercept) for a in alphas]
    assert abs(int(np.argmin(values)) - 100) <= 1
    grid = np.logspace(-4, 6, 300)
    values = [direct_gcv(Z, Y, a, fit_intercept=fit_intercept) for a in grid]
    chosen = statistics.solve(grid, fit_intercept=fit_intercept, criterion="gcv")
    assert chosen.alpha == grid[np.argmin(values)]
    assert min(values) >= direct_gcv(Z, Y, solution.alpha, fit_intercept=fit_intercept) * (1 - 1e-9)


def test_gcv_chooses_as_ridge_cv_without_intercept_would():
    # Its generalized cross-validation is leave-one-out: equal leverages make them the same.
    rng = np.random.default_rng(0)
    H = np.array([[1.0]])
    while len(H) < 64:
        H = np.block([[H, H], [H, -H]])
    Z = H[:, 1:6] * [3.0, 2.0, 1.0, 0.5, 0.25]
    y = Z @ rng.normal(size=5) + 2 * rng.normal(size=64)
    alphas = np.logspace(-2, 4, 60)
    reference = RidgeCV(alphas, fit_intercept=False).fit(Z, y)
    assert LeastSquares(5).update(Z, y).solve(alphas, fit_intercept=False).alpha == reference.alpha_


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_evidence_is_the_maximum_of_a_gaussian_density(fit_intercept):
    Z, Y, _ = problem(n=30, noise=8.0, offset=1.0)
    statistics = LeastSquares(7, 2).update(Z, Y)
    solution = statistics.solve("evidence", fit_intercept=fit_intercept)

    def total(alpha, factor=1.0):
        result = 0.0
        given = statistics.solve(alpha, fit_intercept=fit_intercept)
        degrees = len(Z) - fit_intercept
        for y, rss, w in zip(Y.T, given.rss, given.coef.T, strict=True):
            s2 = factor * (rss + alpha * w @ w) / degrees
            result += direct_log_evidence(Z, y, s2, alpha, fit_intercept=fit_intercept)
        return result

    assert solution.log_marginal_likelihood == pytest.approx(total(solution.alpha))
    given = statistics.solve(3.0, fit_intercept=fit_intercept)
    assert given.log_marginal_likelihood == pytest.approx(total(3.0))
    for factor in (0.98, 1.02):
        assert total(solution.alpha) > total(solution.alpha * factor)
        assert total(solution.alpha) > total(solution.alpha, factor)


def test_evidence_agrees_with_bayesian_ridge():
    Z, Y, _ = problem(n=200, noise=3.0, k=1)
    flat = {"alpha_1": 0, "alpha_2": 0, "lambda_1": 0, "lambda_2": 0}
    reference = BayesianRidge(max_iter=10_000, tol=1e-12, **flat).fit(Z, Y[:, 0])
    solution = LeastSquares(7).update(Z, Y).solve("evidence")
    # It profiles the intercept instead of integrating it out: n instead of n - 1.
    assert solution.alpha == pytest.approx(reference.lambda_ / reference.alpha_, rel=0.02)
    np.testing.assert_allclose(solution.coef[:, 0], reference.coef_, rtol=0.01, atol=1e-3)
    assert solution.noise_variance[0] == pytest.approx(1 / reference.alpha_, rel=0.02)
    w = solution.coef
    profiled = (solution.rss + solution.alpha * np.sum(w**2, axis=0)) / 199
    np.testing.assert_allclose(solution.noise_variance, profiled, rtol=1e-3)


def test_a_target_without_variation_does_not_disturb_the_choice():
    Z, Y, _ = problem(noise=5.0)
    with_constant = np.column_stack([Y, np.full(len(Y), 7.0)])
    for alpha in ("gcv", "evidence"):
        solution = LeastSquares(7, 3).update(Z, with_constant).solve(alpha)
        assert solution.alpha == pytest.approx(LeastSquares(7, 2).update(Z, Y).solve(alpha).alpha)
        np.testing.assert_allclose(solution.coef[:, 2], 0, atol=1e-12)
        constant = LeastSquares(7).update(Z, with_constant[:, 2]).solve(alpha)
        np.testing.assert_allclose(constant.predict(Z), 7.0)
        flat = LeastSquares(7, 2).update(np.ones((60, 7)), Y).solve(alpha)
        np.testing.assert_allclose(flat.predict(Z), np.tile(Y.mean(axis=0), (60, 1)))


@pytest.fixture(scope="module")
def random_feature_statistics():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(3000, 4)).astype(np.float32)
    Y = np.column_stack([np.sin(4 * X[:, 0]) * X[:, 1], np.cos(3 * X[:, 2]) + X[:, 3]])
    Y += 0.2 * rng.normal(size=Y.shape)
    Z = Fastfood(Gaussian(0.7), 300, random_state=0).fit_transform(X)
    return LeastSquares(300, 2).update(Z, Y)


@pytest.mark.parametrize("criterion", ["gcv", "evidence"])
def test_the_search_for_many_features_agrees_with_the_exact_one(
    criterion, random_feature_statistics, monkeypatch
):
    exact = random_feature_statistics.solve(criterion)
    alphas = np.logspace(-3, 2, 12)
    exact_of_several = random_feature_statistics.solve(alphas, criterion=criterion)
    tries = []
    attempt = penalty_module.Tries.attempt
    monkeypatch.setattr(
        penalty_module.Tries, "attempt", lambda self, a: (tries.append(a), attempt(self, a))[1]
    )
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", 200)
    searched = random_feature_statistics.solve(criterion)
    assert 1 <= len(tries) <= 6
    equations = random_feature_statistics.equations(True)

    def height(solution):
        penalty = solution.alpha * np.sum(solution.coef**2, axis=0)
        terms = penalty_module.Terms(solution.rss, penalty, solution.effective_dof, 0.0)
        return penalty_module.criterion_value(equations, "gcv", terms)

    several = random_feature_statistics.solve(alphas, criterion=criterion)
    if criterion == "gcv":
        assert height(several) < height(exact_of_several) * (1 + 1e-3)
        assert height(searched) < height(exact) * (1 + 1e-3)
    else:
        assert several.alpha == exact_of_several.alpha
        assert searched.log_marginal_likelihood > exact.log_marginal_likelihood - 1.0
        assert abs(np.log10(searched.alpha / exact.alpha)) < 0.1
    # What is reported is exact, whatever the search used.
    same = random_feature_statistics.solve(searched.alpha)
    assert searched.effective_dof == pytest.approx(same.effective_dof)


@pytest.mark.parametrize("criterion", ["gcv", "evidence"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_search_knows_the_derivatives(criterion, fit_intercept, random_feature_statistics):
    equations = random_feature_statistics.equations(fit_intercept)
    tries = penalty_module.Tries(equations, criterion)
    tries.probes = np.sqrt(penalty_module.PROBES) * np.eye(300)  # traces are exact with these

    def height(x):
        tries.lowest = np.inf
        tries.attempt(np.exp(x))
        return np.log(tries.lowest) if criterion == "gcv" else tries.lowest

    h = 1e-3
    for x in np.log([0.01, 0.3, 20.0]):
        left, middle, right = height(x - h), height(x), height(x + h)
        slope, curvature = tries.attempt(np.exp(x)).slope()
        assert slope == pytest.approx((right - left) / (2 * h), rel=1e-4)
        assert curvature == pytest.approx((right - 2 * middle + left) / h**2, rel=1e-3, abs=1e-4)


def test_the_search_ends_at_the_ends_of_its_range(monkeypatch):
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", 4)
    Z, _, _ = problem(D=9, n=200)
    exactly_linear = LeastSquares(9).update(Z, Z @ np.arange(9.0))
    noise = LeastSquares(9).update(Z, np.random.default_rng(1).normal(size=200))
    for criterion in ("gcv", "evidence"):
        small, large = (s.solve(criterion).alpha for s in (exactly_linear, noise))
        trace = float(noise.gram.diagonal().sum())
        assert small < 1e-8 * trace
        assert large > 0.1 * trace


@pytest.mark.parametrize("exact", [1024, 8])
@pytest.mark.parametrize("alpha", ["gcv", "evidence", [0.1, 1.0, 10.0]])
@pytest.mark.parametrize(
    "z_scale",
    [1e-100, *(pytest.param(x, marks=pytest.mark.slow) for x in (1e-60, 1.0, 1e60, 1e100)), 1e136],
)
@pytest.mark.parametrize("y_scale", [1e-100, 1.0, 1e100, 1e136])
def test_no_scale_is_too_large_or_too_small(exact, alpha, z_scale, y_scale, monkeypatch):
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", exact)
    Z, Y, _ = problem(n=200, D=30, noise=5.0, offset=0.0)
    plain = LeastSquares(30, 2).update(Z, Y).solve(alpha)
    if not isinstance(alpha, str):
        alpha = np.array(alpha) * z_scale**2
    scaled = LeastSquares(30, 2).update(z_scale * Z, y_scale * Y).solve(alpha)
    assert scaled.alpha / z_scale**2 == pytest.approx(plain.alpha, rel=0.01)
    np.testing.assert_allclose(scaled.coef / y_scale * z_scale, plain.coef, rtol=0.02, atol=1e-6)


@pytest.mark.parametrize("exact", [1024, 8])
def test_a_list_of_penalties_has_an_answer_whatever_the_data(exact, monkeypatch):
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", exact)
    Z, _, _ = problem(n=200, D=30)
    constant = LeastSquares(30).update(Z, np.ones(200)).solve([1.0, 2.0])
    np.testing.assert_allclose(constant.predict(Z), 1)
    huge = LeastSquares(30).update(Z.astype(np.float32), Z[:, 0]).solve([1e120, 1.0])
    assert huge.alpha == 1
    none = LeastSquares(30).update(Z[:2], Z[:2, 0], [0.6, 0.6]).solve([1e-6, 1e-3])
    assert none.alpha == 1e-3


@pytest.mark.parametrize("exact", [1024, 64])
@pytest.mark.parametrize("criterion", ["gcv", "evidence"])
@pytest.mark.parametrize("n", [60, 200, 400])
def test_few_rows_in_single_precision(n, criterion, exact, monkeypatch):
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", exact)
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3))
    y = np.sin(X[:, 0])
    Z = Fastfood(Gaussian(3.0), 256, random_state=0).fit_transform(X)
    solution = LeastSquares(256).update(Z.astype(np.float32), y).solve(criterion)
    assert 0 <= solution.effective_dof <= min(n, 256)
    rss = np.sum((solution.predict(Z)[:, 0] - y) ** 2)
    assert rss < 0.05 * n
    assert solution.rss[0] == pytest.approx(rss, rel=0.5, abs=1e-4 * n)
    assert (solution.variance(Z) > 0).all()


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_search_with_fewer_rows_than_features_is_not_a_matter_of_luck(noise, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(X[:, 0]) + noise * rng.normal(size=60)
    Z = Fastfood(Gaussian(0.3 if noise else 3.0), 256, random_state=0).fit_transform(X)
    statistics = LeastSquares(256).update(Z, y)
    equations = statistics.equations(True)
    exact = statistics.solve("gcv")
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", 64)
    searched = statistics.solve("gcv")

    def height(solution):
        terms = penalty_module.Terms(solution.rss, 0.0, solution.effective_dof, 0.0)
        return penalty_module.criterion_value(equations, "gcv", terms)

    assert height(searched) < 1.1 * height(exact)


def test_batches_that_single_precision_cannot_hold():
    far = LeastSquares(1).update([[1.0], [2.0]], [1e60, 1e60])
    far.update(np.array([[1.0], [2.5]], np.float32), [0.0, 1.0])
    assert far.cross[0, 0] == pytest.approx(-2.5e59)
    Z, Y, _ = problem(n=300)
    for weight, size in ((1e-50, 1.0), (1e-46, 1.0), (1.0, 1e-46), (1.0, 1e-42)):
        weights = np.full(300, weight)
        single = LeastSquares(7, 2).update(Z.astype(np.float32), size * Y, weights)
        double = LeastSquares(7, 2).update(Z, size * Y, weights)
        np.testing.assert_allclose(single.gram.values, double.gram.values, rtol=1e-5)
        np.testing.assert_allclose(single.cross, double.cross, rtol=1e-4)


def test_weights_and_rows_of_any_layout():
    Z, Y, weights = problem()
    expected = LeastSquares(7, 2).update(Z, Y, weights)
    both = np.column_stack([weights, weights])
    assert_same_statistics(LeastSquares(7, 2).update(Z, Y, both[:, 0]), expected)
    backwards = LeastSquares(7, 2).update(Z[::-1], Y[::-1], weights[::-1])
    assert_same_statistics(backwards, expected)
    unaligned = [
        np.frombuffer(b"x" + A.tobytes(), np.uint8)[1:].view(A.dtype).reshape(A.shape)
        for A in (np.ascontiguousarray(Z), weights)
    ]
    assert_same_statistics(LeastSquares(7, 2).update(unaligned[0], Y, unaligned[1]), expected)
    for bad in ({}, ["a"] * len(Z), [[1.0], [2.0, 3.0]]):
        with pytest.raises(ValueError, match="sample_weight must be"):
            LeastSquares(7, 2).update(Z, Y, bad)


def test_states_that_cannot_be_written_to_are_copied_and_others_are_taken_over():
    Z, Y, _ = problem()
    expected = LeastSquares(7, 2).update(Z, Y).update(Z, Y)
    state = LeastSquares(7, 2).update(Z, Y).state()
    original = {name: np.copy(value) for name, value in state.items()}
    for change in (lambda s: s.update(Z, Y), lambda s: s.merge(LeastSquares(7, 2).update(Z, Y))):
        assert_same_statistics(change(LeastSquares.from_state(state)), expected)
        for name, value in original.items():
            assert np.array_equal(state[name], value)
    own = {**state, "gram": state["gram"].copy()}
    taken = LeastSquares.from_state(own)
    assert np.shares_memory(taken.gram.values, own["gram"])
    assert_same_statistics(taken.update(Z, Y), expected)


def test_arrays_of_statistics_are_read_only_or_copies():
    Z, Y, _ = problem()
    statistics = LeastSquares(7, 2).update(Z, Y)
    for array in (statistics.gram.values, statistics.cross):
        assert not array.flags.writeable
    for name in ("feature_mean", "target_mean", "target_gram"):
        getattr(statistics, name)[:] = 0
        assert getattr(statistics, name).any()
    gram, cross = statistics.gram.values, statistics.cross
    expected = gram.copy(), cross.copy()
    del statistics
    assert np.array_equal(gram, expected[0])
    assert np.array_equal(cross, expected[1])


def test_copies_and_pickles_are_independent():
    Z, Y, _ = problem()
    statistics = LeastSquares(7, 2).update(Z, Y)
    for make in (copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))):
        copied = make(statistics)
        assert_same_statistics(copied, statistics, rtol=0)
        copied.update(Z, Y)
        assert statistics.n_rows == 60
        assert_same_statistics(statistics, LeastSquares(7, 2).update(Z, Y), rtol=0)


def test_the_estimate_of_parameters_is_as_good_as_stated(random_feature_statistics, monkeypatch):
    equations = random_feature_statistics.equations(True)
    errors = []
    terms = penalty_module.Terms
    monkeypatch.setattr(penalty_module, "Terms", lambda *a: errors.append(a[2]) or terms(*a))
    alphas = np.logspace(-3, 2, 6)
    tries = penalty_module.Tries(equations, "gcv")
    for alpha in alphas:
        tries.attempt(alpha)
    exact = np.array([random_feature_statistics.solve(a).effective_dof for a in alphas])
    stated = np.sqrt(2 * np.minimum(exact, 300 - exact) / penalty_module.PROBES)
    assert np.all(np.abs(errors - exact) < 3 * stated)


# ---------------------------------------------------------------- path and uncertainty


@pytest.mark.parametrize("number", [4, 40])
def test_the_path_equals_single_solutions(number):
    Z, Y, _ = problem()
    statistics = LeastSquares(7, 2).update(Z, Y)
    alphas = np.logspace(3, -3, number)
    for fit_intercept in (True, False):
        path = statistics.path(alphas, fit_intercept=fit_intercept)
        assert [solution.alpha for solution in path] == list(alphas)
        for solution in path:
            single = statistics.solve(solution.alpha, fit_intercept=fit_intercept)
            np.testing.assert_allclose(solution.coef, single.coef, rtol=1e-7)
            np.testing.assert_allclose(solution.intercept, single.intercept, rtol=1e-7, atol=1e-12)
            np.testing.assert_allclose(solution.variance(Z), single.variance(Z), rtol=1e-7)
            assert solution.effective_dof == pytest.approx(single.effective_dof)
            assert solution.log_marginal_likelihood == pytest.approx(single.log_marginal_likelihood)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_variance_equals_the_posterior_of_explicit_gaussians(fit_intercept):
    Z, Y, _ = problem(n=40, noise=4.0)
    solution = LeastSquares(7, 2).update(Z, Y).solve(2.0, fit_intercept=fit_intercept)
    # An intercept with a flat prior is a column whose penalty vanishes.
    A = np.column_stack([Z, np.ones(40)]) if fit_intercept else Z
    penalty = np.diag([2.0] * 7 + [0.0] * fit_intercept)
    inverse = np.linalg.inv(A.T @ A + penalty)
    leverage = np.einsum("ij,jk,ik->i", A, inverse, A)
    s2 = solution.rss / (40 - np.trace(A @ inverse @ A.T))
    np.testing.assert_allclose(solution.noise_variance, s2, rtol=1e-8)
    np.testing.assert_allclose(solution.variance(Z), np.outer(1 + leverage, s2), rtol=1e-7)
    function = solution.variance(Z, noise=False)
    np.testing.assert_allclose(function, np.outer(leverage, s2), rtol=1e-7)


def test_the_variance_of_many_rows_is_that_of_each_row():
    Z = np.random.default_rng(0).normal(size=(600, 40))
    solution = LeastSquares(40).update(Z, Z[:, 0]).solve(1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kitchenette.learning.solution.VARIANCE_NUMBERS", 1)  # several blocks
        blocks = solution.variance(Z, noise=False)
    one_by_one = np.concatenate([solution.variance(z[None], noise=False) for z in Z])
    np.testing.assert_allclose(blocks, one_by_one, rtol=1e-10)


@pytest.mark.parametrize("alpha", ["gcv", "evidence"])
def test_intervals_cover_what_they_promise_on_data_of_the_model(alpha):
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(60):
        Z = rng.normal(size=(500, 30))
        y = 3 + Z @ rng.normal(size=30) + 2 * rng.normal(size=500)
        solution = LeastSquares(30).update(Z[:400], y[:400]).solve(alpha)
        half = 1.96 * np.sqrt(solution.variance(Z[400:])[:, 0])
        inside.append(np.mean(np.abs(solution.predict(Z[400:])[:, 0] - y[400:]) < half))
    assert_unbiased(np.array(inside)[:, None], np.array([0.95]))
    assert np.std(inside) / np.sqrt(60) < 0.005


# ---------------------------------------------------------------- state and bad input


def test_state_makes_the_same_statistics():
    Z, Y, weights = problem()
    statistics = LeastSquares(7, 2).update(Z.astype(np.float32), Y, weights)
    state = {
        name: np.copy(value) if isinstance(value, np.ndarray) else value
        for name, value in statistics.state().items()
    }
    same = LeastSquares.from_state(state)
    assert repr(same) == "LeastSquares(n_features=7, n_targets=2) of 60 rows"
    assert np.array_equal(same.solve("gcv").coef, statistics.solve("gcv").coef)
    same.update(Z, Y)
    assert_same_statistics(same, statistics.merge(LeastSquares(7, 2).update(Z, Y)))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"gram": np.zeros(27)}, r"gram must have shape \(28,\); got \(27,\)"),
        ({"cross": np.full((7, 2), np.nan)}, "cross must be finite"),
        ({"target_gram": np.array([[1.0, 2.0], [3.0, 4.0]])}, "target_gram must be symmetric"),
        ({"target_gram": np.array([[-1e3, 0.0], [0.0, 4.0]])}, "target_gram has a negative"),
        ({"gram": -np.ones(28)}, "gram has a negative"),
        ({"count": -1.0}, "count must be a finite number and not negative"),
        ({"count": np.inf}, "count must be a finite number"),
        ({"n_rows": 1.5}, "n_rows must be a whole number of at least 0"),
        ({"has_float32": 2}, "has_float32 must be True or False"),
        ({"extra": 1}, "extra missing or too many"),
    ],
)
def test_a_bad_state_gets_a_sentence(change, sentence):
    Z, Y, _ = problem()
    state = LeastSquares(7, 2).update(Z, Y).state()
    with pytest.raises(ValueError, match=sentence):
        LeastSquares.from_state({**state, **change})


def test_after_bad_input_the_statistics_are_as_before():
    Z, Y, _ = problem()
    statistics = LeastSquares(7, 2).update(Z, Y)
    before = LeastSquares.from_state(statistics.state())
    late = np.vstack([np.tile(Z, (50, 1)), np.full((1, 7), np.inf)])
    nan = np.where(np.arange(60)[:, None] == 59, np.nan, Y)
    for arguments, sentence in [
        ((late, np.zeros((3001, 2))), "Input Z contains infinity"),
        ((Z, nan), "Input Y contains NaN"),
        ((Z[:, :6], Y), r"Z must have 7 columns; got an array of shape \(60, 6\)"),
        ((Z, Y[:, 0]), r"Y must have 2 columns; got an array of shape \(60, 1\)"),
        ((Z, Y[:50]), "inconsistent numbers of samples"),
        ((Z, Y, -np.ones(60)), "sample_weight must be finite and not negative"),
        ((Z, Y, np.full(60, np.nan)), "sample_weight must be finite"),
        ((Z, Y, np.ones(59)), "sample_weight must be one number for each of the 60 rows"),
        ((Z * 1e150, Y), "too large for sums of squares"),
        ((Z, Y * 1e150), "too large for sums of squares"),
        ((Z[:0], Y[:0]), "0 sample"),
    ]:
        for action in (statistics.update, statistics.downdate):
            with pytest.raises(ValueError, match=sentence):
                action(*arguments)
    with pytest.raises(ValueError, match="Cannot remove 120 rows of total weight 120: only 60"):
        statistics.downdate(np.tile(Z, (2, 1)), np.tile(Y, (2, 1)))
    with pytest.raises(ValueError, match="Cannot remove 60 rows of total weight 90"):
        statistics.downdate(Z, Y, np.full(60, 1.5))
    for weight in (0.0, 0.5, 0.999):
        with pytest.raises(ValueError, match=r"all 60 rows with a weight of .*added with .* of 60"):
            statistics.downdate(Z, Y, np.full(60, weight))
    with pytest.raises(ValueError, match="statistics of 6 features and 2 targets into those of 7"):
        statistics.merge(LeastSquares(6, 2))
    with pytest.raises(ValueError, match="merge takes a LeastSquares object; got int"):
        statistics.merge(3)
    for name, value in before.state().items():
        assert np.array_equal(statistics.state()[name], value)


def test_bad_parameters_get_a_sentence():
    with pytest.raises(ValueError, match="n_features must be a whole number of at least 1; got 0"):
        LeastSquares(0)
    with pytest.raises(ValueError, match="n_targets must be a whole number"):
        LeastSquares(3, 1.5)
    with pytest.raises(ValueError, match="nothing to solve"):
        LeastSquares(3).solve(1.0)
    Z, Y, weights = problem()
    statistics = LeastSquares(7, 2).update(Z, Y)
    for alpha, sentence in [
        (-1.0, "alpha must be finite and not negative"),
        (np.nan, "alpha must be finite"),
        ([], "alpha must be a number, a list of numbers"),
        ("cv", "'auto' or 'gcv' or 'evidence'; got 'cv'"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            statistics.solve(alpha)
    with pytest.raises(ValueError, match="criterion must be one of"):
        statistics.solve([1.0, 2.0], criterion="loo")
    with pytest.raises(ValueError, match="Z has 6 columns, but the solution has 7"):
        statistics.solve(1.0).variance(Z[:, :6])
    tiny = LeastSquares(7, 2).update(Z, Y, weights / weights.sum())
    with pytest.raises(ValueError, match="needs more than 1 observations"):
        tiny.solve("gcv")


def test_rows_may_be_strided_read_only_and_of_other_types():
    Z, Y, _ = problem()
    expected = LeastSquares(7, 2).update(Z, Y)
    frozen = Z.copy()
    frozen.flags.writeable = False
    wide = np.repeat(Z, 2, axis=1)[:, ::2]
    for given_rows in (frozen, wide, np.asfortranarray(Z), Z.tolist()):
        assert_same_statistics(LeastSquares(7, 2).update(given_rows, Y), expected)
    whole_numbers = np.round(Z).astype(int)
    assert_same_statistics(
        LeastSquares(7, 2).update(whole_numbers, Y),
        LeastSquares(7, 2).update(whole_numbers.astype(float), Y),
    )


TINY_PENALTIES = [5e-324, 1e-300, 1e-100, 1e-30, 1e-20]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_penalties_below_rounding_errors_are_no_penalties(dtype):
    rng = np.random.default_rng(0)
    Z = (rng.normal(size=(400, 5)) @ rng.normal(size=(5, 40))).astype(dtype)
    y = Z[:, 0] + rng.normal(size=400)
    statistics = LeastSquares(40).update(Z, y)
    with pytest.warns(ConvergenceWarning, match="singular to working precision"):
        expected = statistics.solve(0.0).predict(Z)
    for alpha in TINY_PENALTIES:
        with pytest.warns(ConvergenceWarning, match="singular to working precision"):
            found = statistics.solve(alpha)
        np.testing.assert_allclose(found.predict(Z), expected, atol=1e-9)
        assert np.isfinite(found.rss).all()
    for solution in statistics.path([*TINY_PENALTIES] * 5):
        np.testing.assert_allclose(solution.predict(Z), expected, atol=1e-9)
    chosen = statistics.solve([*TINY_PENALTIES, 1.0, 100.0], criterion="gcv")
    assert np.abs(chosen.predict(Z) - expected).max() < 0.5


@pytest.mark.parametrize("solver", ["onepass", "iterative"])
def test_scores_with_the_smallest_penalty_are_finite(solver):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 2)))
    y = X[:, 0] + 0.1 * rng.normal(size=300)
    feature_map = Fastfood(n_components=128, random_state=0)
    model = KernelRegressor(feature_map, alpha=1e-300, solver=solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert model.fit(X, y).score(X, y) > 0.98
