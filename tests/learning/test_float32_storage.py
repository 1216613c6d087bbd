"""Statistics that are stored in float32, and the memory that learning takes."""

from __future__ import annotations

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from kitchenette import (
    Fastfood,
    KernelClassifier,
    KernelRegressor,
    LeastSquares,
    load,
    resources,
    save,
)
from kitchenette.kernels import Gaussian
from kitchenette.learning import gram, leave_one_out
from kitchenette.learning import penalty as penalty_module
from kitchenette.learning.gram import PackedSymmetric, stored_resolution
from kitchenette.learning.solution import refined
from kitchenette.quantities import of_bytes


def problem(n=500, D=40, k=2, seed=0):
    rng = np.random.default_rng(seed)
    Z = (rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) / np.sqrt(D) + 1).astype(np.float32)
    Y = Z @ rng.normal(size=(D, k)) + 0.3 * rng.normal(size=(n, k)) - 2
    return Z, Y, rng.uniform(0.5, 2, n)


def fourier(n, D=256, dtype=np.float32):
    X = np.random.default_rng(n).normal(size=(n, 3)).astype(dtype)
    return X, Fastfood(Gaussian(1.0), D, random_state=0).fit_transform(X)


def both(n_features, n_targets=1):
    return [LeastSquares(n_features, n_targets, storage=s) for s in ("float32", "float64")]


def assert_close(single, double, tolerance=1e-6):
    assert (single.storage, double.storage) == ("float32", "float64")
    assert single.gram.values.dtype == np.float32
    size = np.abs(double.gram.values).max()
    np.testing.assert_allclose(single.gram.values, double.gram.values, atol=tolerance * size)
    for name in ("feature_mean", "target_mean", "cross", "target_gram", "count", "n_rows"):
        assert np.array_equal(getattr(single, name), getattr(double, name)), name


def spectral_norm(matrix):
    return np.abs(np.linalg.eigvalsh(matrix)).max()


# ---------------------------------------------------------------- the matrices


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [1, 2, 3, 4, 7, 8, 41, 42])
def test_parts_of_packed_matrices(order, dtype):
    rng = np.random.default_rng(order)
    matrix = PackedSymmetric(order, rng.normal(size=order * (order + 1) // 2).astype(dtype))
    lower = matrix.full()
    full = lower + np.tril(lower, -1).T
    assert np.array_equal(matrix.diagonal(), np.diag(full))
    for start in range(order):
        for stop in range(start + 1, order + 1):
            assert np.array_equal(matrix.rows(start, stop), full[start:stop])
    for part in range(1, order + 1):
        assert matrix.leading(part).values.dtype == dtype
        assert np.array_equal(matrix.leading(part).full(), lower[:part, :part])
    B = rng.normal(size=(order, 3))
    np.testing.assert_allclose(matrix.product(B), full @ B, atol=1e-13)
    v = rng.normal(size=order)
    matrix.add_outer(v, 0.5)
    exact = (lower + 0.5 * np.tril(np.outer(v, v))).astype(dtype)
    rounding = 0 if dtype == np.float32 else 1e-15
    np.testing.assert_allclose(matrix.full(), exact, rtol=rounding, atol=rounding)


# ---------------------------------------------------------------- statistics


@pytest.mark.parametrize("D", [1, 2, 40, 41])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_statistics_in_both_storages_agree(D, dtype):
    Z, Y, weights = problem(D=D)
    Z = Z.astype(dtype)
    single, double = (s.update(Z, Y, weights) for s in both(D, 2))
    assert_close(single, double)
    more = [s.update(Z[:99] + 1, Y[:99]) for s in both(D, 2)]
    assert_close(single.combined(more[0]), double.combined(more[1]))
    assert_close(single.combined(more[1]), double.combined(more[0]))  # of the other storage
    assert_close(copy.copy(single).merge(single), copy.copy(double).merge(double))
    assert_close(copy.copy(single), double)
    assert_close(single.reweighted(np.float64(3.0)), double.reweighted(3.0))
    columns = np.array([1, 3])
    assert_close(single.with_targets(columns, 4), double.with_targets(columns, 4))
    half = (D + 1) // 2
    assert_close(single.leading(half), double.leading(half))
    assert_close(*(s.downdate(Z[:50], Y[:50], weights[:50]) for s in (single, double)))
    assert not single.downdate(Z[50:], Y[50:], weights[50:]).gram.values.any()


def test_files_and_pickles_keep_the_storage(tmp_path):
    Z, Y, _ = problem()
    for statistics in (s.update(Z, Y) for s in both(40, 2)):
        save(statistics, tmp_path / "model")
        for again in (
            load(tmp_path / "model"),
            pickle.loads(pickle.dumps(statistics)),
            LeastSquares.from_state(statistics.state()),
        ):
            assert again.storage == statistics.storage
            assert np.array_equal(again.gram.values, statistics.gram.values)
            again.update(Z, Y)
            assert again.n_rows == 1000


def test_only_a_gram_matrix_may_be_float32():
    state = LeastSquares(3).update(np.eye(3), np.ones(3)).state()
    again = LeastSquares.from_state({**state, "cross": state["cross"].astype(np.float32)})
    assert again.cross.dtype == np.float64
    with pytest.raises(ValueError, match="gram must be finite"):
        LeastSquares.from_state({**state, "gram": np.full(6, np.nan, np.float32)})
    with pytest.raises(ValueError, match="gram must have shape"):
        LeastSquares.from_state({**state, "gram": np.zeros(5, np.float32)})
    with pytest.raises(ValueError, match="storage must be"):
        LeastSquares(3, storage="float16")


def test_numbers_beyond_float32_are_refused():
    Z, Y, _ = problem(D=3)
    statistics = LeastSquares(3, 2, storage="float32")
    with pytest.raises(ValueError, match="too large for sums of squares in float32"):
        statistics.update(1e16 * Z, Y)
    assert statistics.n_rows == 0
    tiny = LeastSquares(3, 2, storage="float32").update(1e-18 * Z.astype(np.float64), Y)
    with pytest.raises(ValueError, match="too small for statistics in float32"):
        tiny.solve(1.0)


@pytest.mark.parametrize(
    ("D", "n", "batch"),
    [
        (64, 100_000, 4096),
        (256, 100_000, 4096),
        (256, 60_000, 256),
        pytest.param(256, 1_000_000, 4096, marks=pytest.mark.slow),
    ],
)
def test_the_rounding_error_of_the_storage_is_as_documented(D, n, batch):
    fitted = Fastfood(Gaussian(1.0), D, random_state=0).fit(np.zeros((1, 3), np.float32))
    single, double = both(D)
    rng = np.random.default_rng(0)
    for _ in range(0, n, batch):
        X = rng.normal(size=(batch, 3)).astype(np.float32)
        Z = fitted.transform(X)
        single.update(Z, X[:, 0])
        double.update(Z, X[:, 0])
    error = (single.gram.full() - double.gram.full()) / double.gram.diagonal().sum()
    found = spectral_norm(error + np.tril(error, -1).T)
    documented = 1e-8 * np.sqrt(n / batch / D)
    assert 0.3 * documented < found < 1.3 * documented
    assert found < stored_resolution(D, n)


# ---------------------------------------------------------------- solutions


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("D", [40, 41])
def test_solutions_equal_those_of_ridge(D, fit_intercept):
    Z, Y, weights = problem(D=D)
    for alpha in (0.1, 10.0):
        ridge = Ridge(alpha, fit_intercept=fit_intercept, solver="svd")
        ridge.fit(Z.astype(float), Y, weights)
        statistics = LeastSquares(D, 2, storage="float32").update(Z, Y, weights)
        solution = statistics.solve(alpha, fit_intercept=fit_intercept)
        np.testing.assert_allclose(solution.predict(Z), ridge.predict(Z), atol=2e-4)


@pytest.mark.parametrize("relative", [1e-4, 1e-6, 3e-8])
def test_weights_are_those_of_the_stored_statistics(relative):
    X, Z = fourier(20_000)
    y = np.sin(3 * X[:, 0])
    statistics = LeastSquares(256, storage="float32").update(Z, y)
    alpha = relative * float(statistics.gram.diagonal().sum())
    exact = LeastSquares.from_state(
        {**statistics.state(), "gram": statistics.gram.values.astype(np.float64)}
    ).solve(alpha)
    solution = statistics.solve(alpha)
    error = np.linalg.norm(solution.coef - exact.coef) / np.linalg.norm(exact.coef)
    assert error < 1e-7 / relative * 1e-3
    np.testing.assert_allclose(solution.rss, exact.rss, rtol=1e-6)
    assert solution.effective_dof == pytest.approx(exact.effective_dof, rel=0.1)
    tolerance = 1e-3 if relative > 1e-7 else 0.02
    assert solution.log_marginal_likelihood == pytest.approx(
        exact.log_marginal_likelihood, rel=tolerance
    )
    np.testing.assert_allclose(solution.variance(Z[:9]), exact.variance(Z[:9]), rtol=0.02)


@pytest.mark.parametrize("criterion", ["gcv", "evidence"])
def test_the_same_penalty_is_chosen(criterion, monkeypatch):
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", 100)
    X, Z = fourier(3000)
    y = np.sin(X[:, 0]) + np.random.default_rng(1).normal(size=3000)
    single, double = (s.update(Z, y).solve(criterion) for s in both(256))
    assert single.alpha == pytest.approx(double.alpha, rel=1e-2)
    np.testing.assert_allclose(single.predict(Z), double.predict(Z), atol=1e-4)
    among = [1e-3, double.alpha, 1e3]
    assert LeastSquares(256, storage="float32").update(Z, y).solve(among).alpha == double.alpha


def test_one_factor_at_a_time_is_kept(monkeypatch):
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", 100)
    X, Z = fourier(3000)
    equations = LeastSquares(256, storage="float32").update(Z, X[:, 0]).equations(True)
    tries = penalty_module.Tries(equations, "evidence")
    attempts = [tries.attempt(alpha) for alpha in (1e-2, 1e4, 1e-3)]
    assert [attempt.inverse._factor is None for attempt in attempts] == [True, True, False]
    assert tries.best is not tries.latest or tries.best.alpha == 1e-3
    best = tries.best_factor()
    assert best._factor is not None
    assert sum(attempt.inverse._factor is not None for attempt in attempts) == 1


def test_penalties_that_are_too_small_are_raised_with_a_warning():
    _, Z = fourier(400)
    statistics = LeastSquares(256, storage="float32").update(Z, Z[:, 0])
    trace = float(statistics.gram.diagonal().sum())
    for alpha in (0.0, 1e-13 * trace):
        with pytest.warns(ConvergenceWarning, match="kept in float32"):
            solution = statistics.solve(alpha)
        assert 1e-9 * trace < solution.alpha < 1e-6 * trace
        assert np.abs(solution.predict(Z)[:, 0] - Z[:, 0]).max() < 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        statistics.solve(1e-6 * trace)
    many = statistics.path(np.full(30, trace))  # would be an eigendecomposition in float64
    assert len({solution.coef.tobytes() for solution in many}) == 1


def test_refinement_solves_each_column():
    rng = np.random.default_rng(0)
    A = np.diag(np.linspace(1, 100, 20))
    B = rng.normal(size=(20, 3))
    B[:, 1] = 0
    X = refined(lambda V: A @ V, 0.0, lambda V: V / 50, B, np.zeros((20, 3)))
    np.testing.assert_allclose(A @ X, B, atol=1e-7)
    far = np.logspace(-9, 9, 200)[:, None]
    with pytest.warns(ConvergenceWarning, match="relative residual"):
        refined(lambda V: far * V, 0.0, lambda V: V, np.ones((200, 1)), np.zeros((200, 1)))


# ---------------------------------------------------------------- the estimators


@pytest.fixture
def large_from_here(monkeypatch):
    """Let 200 features be many."""
    monkeypatch.setattr(gram, "LARGE_ORDER", 200)
    monkeypatch.setattr(penalty_module, "EXACT_FEATURES", 100)
    monkeypatch.setattr(leave_one_out, "MANY_FEATURES", 200)


def machines(X, y, Machine):
    return [
        Machine(Fastfood(Gaussian(1.0), 256, random_state=0), random_state=0).fit(rows, y)
        for rows in (X.astype(np.float32), X.astype(np.float64))
    ]


@pytest.mark.usefixtures("large_from_here")
def test_models_of_many_float32_features_are_those_in_float64(tmp_path):
    X = np.random.default_rng(0).normal(size=(3000, 3)).astype(np.float32)
    y = np.sin(3 * X[:, 0]) + 0.3 * np.random.default_rng(1).normal(size=3000)
    single, double = machines(X, y, KernelRegressor)
    assert [m.statistics_.storage for m in (single, double)] == ["float32", "float64"]
    assert single.alpha_ == pytest.approx(double.alpha_, rel=0.01)
    assert single.validation_score_ == pytest.approx(double.validation_score_, rel=1e-4)
    mean, std = single.predict(X[:100].astype(np.float32), return_std=True)
    expected, expected_std = double.predict(X[:100], return_std=True)
    np.testing.assert_allclose(mean, expected, atol=1e-3)
    np.testing.assert_allclose(std, expected_std, rtol=1e-3)
    np.testing.assert_allclose(single.importance(), double.importance(), atol=1e-4)
    save(single, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.statistics_.storage == "float32"
    more = X[:200].astype(np.float32)
    both_fitted = [m.partial_fit(more, y[:200]) for m in (loaded, single)]
    assert np.array_equal(*(m.predict(more) for m in both_fitted))
    with pytest.warns(UserWarning, match="the same statistics"):
        single.merge(loaded)
    assert single.statistics_.n_rows == 6400
    labels = y > 0
    single, double = machines(X, labels, KernelClassifier)
    np.testing.assert_allclose(
        single.predict_proba(X[:100]), double.predict_proba(X[:100]), atol=1e-3
    )


def test_few_or_float64_features_are_stored_in_float64():
    assert gram.storage_of(16_384, np.float32) == "float64"
    assert gram.storage_of(16_385, np.float32) == "float32"
    assert gram.storage_of(10**6, np.float64) == "float64"


# ---------------------------------------------------------------- memory


def test_what_does_not_fit_is_refused_with_the_bytes_it_needs(monkeypatch):
    monkeypatch.setattr(resources, "memory_limit", lambda: 10 * 10**9)
    learning = gram.check_learning_memory
    learning(32_768, np.float32, n_rows=60_000, n_sampled=2000)  # 4.6 GB
    sentence = (
        "Learning from 65536 features would take 17.7 GB of memory (8.59 GB for the Gram matrix, "
        "8.59 GB for its factor, 524 MB for the validation rows); there are 10 GB. Use fewer "
        "features, float32 data, or solver='iterative', which keeps no statistics."
    )
    with pytest.raises(MemoryError, match=re.escape(sentence)):
        learning(65_536, np.float32, n_rows=60_000, n_sampled=2000)
    with pytest.raises(MemoryError, match=r"17\.2 GB for the Gram matrix"):
        learning(65_536, np.float64, n_rows=60_000, n_sampled=2000)
    with pytest.raises(MemoryError, match=r"Statistics of 60000 features would take 14\.4 GB"):
        LeastSquares(60_000)
    monkeypatch.setattr(resources, "memory_limit", lambda: None)
    learning(10**9, np.float64, n_rows=1, n_sampled=0)


def test_many_features_fit_where_they_should(monkeypatch):
    for order, limit in ((2**15, 5e9), (2**16, 20e9)):
        monkeypatch.setattr(resources, "memory_limit", lambda limit=limit: int(limit))
        gram.check_learning_memory(order, np.float32, n_rows=10**6, n_sampled=2000)


def test_limits_of_control_groups(tmp_path):
    membership, mount = tmp_path / "cgroup", tmp_path / "mount"
    (mount / "a" / "b").mkdir(parents=True)
    (mount / "memory" / "c").mkdir(parents=True)

    def limit(line):
        membership.write_text(line)
        return resources.control_group_limit(membership, mount)

    assert resources.control_group_limit(membership, mount) is None
    assert limit("0::/a/b\n") is None
    (mount / "a" / "b" / "memory.max").write_text("max\n")
    assert limit("0::/a/b\n") is None
    (mount / "a" / "memory.max").write_text("1000\n")
    assert limit("0::/a/b\n") == 1000  # of the parent
    (mount / "a" / "b" / "memory.max").write_text("700\n")
    assert limit("0::/a/b\n") == 700
    (mount / "memory" / "c" / "memory.limit_in_bytes").write_text("300\n")
    assert limit("5:cpu:/c\n4:memory,hugetlb:/c\n0::/a\n") == 300
    assert limit("5:cpu:/c\n") is None


def test_sizes_in_words():
    sizes = (999, 17.6e6, 5e9, 1.3e13)
    assert [of_bytes(size) for size in sizes] == ["999 bytes", "17.6 MB", "5 GB", "13 TB"]
    assert resources.memory_limit() > 2**24
