"""Passes over rows and preconditioners against dense matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from kitchenette import Fastfood, TensorSketch
from kitchenette.kernels import Gaussian, Polynomial
from kitchenette.learning import passes, preconditioner
from kitchenette.learning.gram import ConjugateGradients, PackedSymmetric
from kitchenette.learning.losses import Logistic, Squared
from kitchenette.learning.passes import FeatureRows
from kitchenette.learning.preconditioner import Preconditioner, SampledRows, sample_size
from kitchenette.learning.target_coding import ClassCoding, CodeRule, NumberCoding

D = 24


def made_rows(n=50, *, kind="dense", n_features=D, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    if kind == "sparse":
        X[rng.random(X.shape) < 0.4] = 0
        X = sp.csr_array(X)
    if kind == "frame":
        X = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    if kind == "float32":
        X = X.astype(np.float32)
    fitted = Fastfood(Gaussian(1.5), n_features, random_state=0).fit(X)
    Y, weights = rng.normal(size=(n, 2)), rng.random(n)
    return FeatureRows(fitted, X, Y, NumberCoding(2), weights)


@pytest.fixture(params=["dense", "sparse", "frame", "float32"])
def rows(request, monkeypatch):
    monkeypatch.setattr(passes, "PASS_ROWS", 16)  # blocks of 16, 16, 16 and 2 rows
    return made_rows(kind=request.param)


def close(a, b, rows):
    tolerance = 1e-4 if rows.features().dtype == np.float32 else 1e-9
    return np.allclose(a, b, rtol=tolerance, atol=tolerance)


def test_products_with_features(rows):
    rng, Z = np.random.default_rng(1), rows.features().astype(float)
    W, R = rng.normal(size=(D, 2)), rng.normal(size=(50, 2))
    assert close(rows.outputs(W), Z @ W, rows)
    assert close(rows.outputs(W, np.array([1.0, 2.0])), Z @ W + [1.0, 2.0], rows)
    assert close(rows.transposed(R), Z.T @ R, rows)


def test_normal_products(rows):
    rng, Z = np.random.default_rng(1), rows.features().astype(float)
    W, mean, watched = rng.normal(size=(D, 2)), rng.normal(size=D), rng.random(50) < 0.3
    product, outputs = rows.normal_product(W, mean, watched)
    C = Z - mean
    assert close(product, C.T @ (rows.weights[:, None] * (C @ W)), rows)
    assert close(outputs, (C @ W)[watched], rows)


def test_gradients(rows):
    rng, Z = np.random.default_rng(1), rows.features().astype(float)
    W, c, watched = rng.normal(size=(D, 2)), rng.normal(size=2), rng.random(50) < 0.3
    found = rows.gradient(Squared(), W, c, watched)
    errors = Z @ W + c - rows.targets
    assert close(found.loss, rows.weights @ np.square(errors).sum(axis=1) / 2, rows)
    assert close(found.weights, Z.T @ (rows.weights[:, None] * errors), rows)
    assert close(found.intercept, rows.weights @ errors, rows)
    assert close(found.outputs, (Z @ W + c)[watched], rows)


def test_gradients_of_labels(monkeypatch):
    monkeypatch.setattr(passes, "PASS_ROWS", 16)
    plain, rng = made_rows(), np.random.default_rng(1)
    coding = ClassCoding(np.arange(3), CodeRule(), None)
    labels = rng.integers(3, size=50)
    rows = replace(plain, targets=labels, coding=coding)
    W, c, Z = rng.normal(size=(D, 3)), rng.normal(size=3), plain.features()
    P = np.exp(Z @ W + c)
    P /= P.sum(axis=1, keepdims=True)
    found = rows.gradient(Logistic(), W, c)
    assert found.loss == pytest.approx(-rows.weights @ np.log(P[np.arange(50), labels]))
    assert np.allclose(found.weights, Z.T @ (rows.weights[:, None] * (P - np.eye(3)[labels])))
    assert found.outputs.shape == (0, 3)


def test_moments(rows):
    moments, Z = rows.moments(), rows.features().astype(float)
    v = rows.weights
    mean, target_mean = v @ Z / v.sum(), v @ rows.targets / v.sum()
    assert close(moments.mean, mean, rows)
    assert close(moments.target_mean, target_mean, rows)
    centered = rows.targets - target_mean
    assert close(moments.cross, (Z - mean).T @ (v[:, None] * centered), rows)
    assert close(moments.target_squares, v @ np.square(centered), rows)
    plain = moments.uncentered()
    assert close(plain.cross, Z.T @ (v[:, None] * rows.targets), rows)
    assert close(plain.target_squares, v @ np.square(rows.targets), rows)
    assert not plain.mean.any()


def test_moments_of_two_parts_are_those_of_all():
    rows = made_rows()
    whole = rows.moments()
    parts = [rows.some(part).moments() for part in (np.arange(20), np.arange(20, 50))]
    both = parts[0].combined(parts[1])
    for name in ("count", "mean", "target_mean", "cross", "target_squares"):
        assert np.allclose(getattr(both, name), getattr(whole, name))


def test_keys_do_not_depend_on_blocks_or_on_the_kind_of_rows(monkeypatch):
    keys = made_rows().keys()
    assert np.unique(keys).size == 50
    monkeypatch.setattr(passes, "PASS_ROWS", 7)
    assert np.array_equal(made_rows().keys(), keys)
    assert np.array_equal(made_rows(kind="frame").keys(), keys)


def test_overflow_is_a_sentence():
    X = np.full((3, 2), 1e200)
    fitted = TensorSketch(Polynomial(2), 8, random_state=0).fit(X)
    rows = FeatureRows(fitted, X, np.zeros((3, 1)), NumberCoding(2), np.ones(3))
    with pytest.raises(ValueError, match="overflowed"):
        rows.outputs(np.ones((8, 1)))
    with pytest.raises(ValueError, match="overflowed"):
        rows.moments()


# ------------------------------------------------------------ the preconditioner


def matrix_of(rows, mean, alpha, curvatures=1.0):
    C = rows.features() - mean
    weights = np.broadcast_to(curvatures * rows.weights, rows.n_rows)
    return C.T @ (weights[:, None] * C) + alpha * np.eye(rows.n_features)


@pytest.mark.parametrize("n", [10, D, 60])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("curved", [False, True])
def test_a_sample_of_all_rows_gives_the_inverse(n, alpha, curved):
    rows, rng = made_rows(n), np.random.default_rng(2)
    mean = rows.moments().mean
    sample = SampledRows(rows, mean, float(rows.weights.sum()))
    assert sample.by_features == (n >= D)
    assert sample.unseen == pytest.approx(0, abs=1e-12)
    curvatures = rng.random(n) if curved else None
    A = matrix_of(rows, mean, alpha, 1.0 if curvatures is None else curvatures)
    V = rng.normal(size=(D, 3))
    assert np.allclose(Preconditioner(sample, alpha, curvatures)(A @ V), V, atol=1e-3)


@pytest.mark.parametrize("order", [0, 5000])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_precision_and_blocks_of_the_matrix_of_rows(order, alpha, monkeypatch):
    monkeypatch.setattr(preconditioner, "EXACT_ORDER", order)
    monkeypatch.setattr(preconditioner, "FEATURE_BYTES", 4 * D * 3)
    monkeypatch.setattr(preconditioner, "BLOCK_ROWS", 7)
    rows = made_rows(10)
    mean = rows.moments().mean
    sample = SampledRows(rows, mean, float(rows.weights.sum()))
    S = np.sqrt(rows.weights)[:, None] * (rows.features() - mean)
    assert sample.matrix().dtype == (np.float32 if order == 0 else np.float64)
    assert np.allclose(sample.matrix(), S @ S.T, atol=1e-6)
    V = np.random.default_rng(3).normal(size=(D, 2))
    found = Preconditioner(sample, alpha)(matrix_of(rows, mean, alpha) @ V)
    assert np.allclose(found, V, atol=1e-2)


def test_huge_numbers_are_multiplied_in_float64(monkeypatch):
    monkeypatch.setattr(preconditioner, "EXACT_ORDER", 0)
    rows = made_rows(10)
    heavy = rows.weighted(1e60 * rows.weights)
    sample = SampledRows(heavy, rows.moments().mean, float(heavy.weights.sum()))
    assert sample.matrix().dtype == np.float64
    assert np.isfinite(Preconditioner(sample, 1e60)(np.ones((D, 1)))).all()


def test_a_sample_stands_for_all_rows():
    rows = made_rows(4000, n_features=16)
    mean, total = rows.moments().mean, float(rows.weights.sum())
    sample = SampledRows(rows.some(np.arange(1000)), mean, total)
    A, V = matrix_of(rows, mean, 1.0), np.eye(16)
    product = Preconditioner(sample, 1.0)(A @ V)
    assert np.all(np.abs(np.linalg.eigvals(product) - 1) < 0.5)


def test_directions_that_the_sample_lacks_are_not_taken_for_empty():
    rows = made_rows(400, n_features=64)
    mean, total = rows.moments().mean, float(rows.weights.sum())
    sample = SampledRows(rows.some(np.arange(20)), mean, total)
    values = np.linalg.eigvalsh(matrix_of(rows, mean, 0.0))
    assert 0 < sample.unseen <= values[-1]
    inverse = Preconditioner(sample, 1e-6)
    product = np.linalg.eigvals(inverse(matrix_of(rows, mean, 1e-6)))
    assert np.abs(product).max() < 1e3  # it would be 1e6 times an eigenvalue otherwise


@pytest.mark.parametrize("n", [10, 60])
@pytest.mark.parametrize("alpha", [0.0, 1e-30, 1e30])
def test_singular_matrices_have_a_finite_positive_preconditioner(n, alpha):
    rows = made_rows(n)
    rows = rows.some(np.zeros(n, dtype=np.intp))  # a single row, many times
    V = np.random.default_rng(3).normal(size=(D, 2))
    for mean in (np.zeros(D), rows.features()[0]):
        sample = SampledRows(rows, mean, float(rows.weights.sum()))
        found = Preconditioner(sample, alpha)(V)
        assert np.isfinite(found).all()
        assert np.all(np.einsum("ij,ij->j", V, found) > 0)


def test_the_shift_grows_until_the_matrix_is_definite():
    packed = PackedSymmetric(3)
    packed.add_to_diagonal(-1.0)
    for matrix in (-np.eye(3), packed):
        factor, shift = preconditioner.shifted_factor(matrix, 1e-3, in_float32=False)
        assert shift == 10.0
        assert np.allclose(factor.solve(np.eye(3)), np.eye(3) / 9)
    with pytest.raises(ValueError, match="Scale the data"):
        preconditioner.shifted_factor(np.full((3, 3), np.nan), 1e-3, in_float32=False)


def test_sizes_of_samples():
    for kept in (False, True):
        assert sample_size(10, 100, kept=kept) == 10
        assert sample_size(10_000, 100, kept=kept) == 100 * preconditioner.ROWS_PER_FEATURE
        assert sample_size(10**5, 10**5, kept=kept) == preconditioner.LARGEST_ORDER
        # With more rows a step costs more.
        assert sample_size(10**6, 10**5, kept=kept) == 2 * preconditioner.LARGEST_ORDER
        assert sample_size(10**6, 8192, kept=kept) == 8192 * preconditioner.ROWS_PER_FEATURE
    assert sample_size(10**6, 16_384, kept=False) == 2 * preconditioner.LARGEST_ORDER
    assert sample_size(10**6, 16_384, kept=True) == 16_384 * preconditioner.ROWS_PER_FEATURE
    assert sample_size(10**5, 16_384, kept=True) == preconditioner.LARGEST_ORDER


def test_a_large_matrix_of_features_is_kept_in_float32(monkeypatch):
    monkeypatch.setattr(preconditioner, "FLOAT64_ORDER", D - 1)
    rows = made_rows(200)
    mean = rows.moments().mean
    sample = SampledRows(rows, mean, float(rows.weights.sum()))
    assert sample.matrix().is_float32
    inverse = Preconditioner(sample, 1e-12)
    trace = np.trace(matrix_of(rows, mean, 0.0))
    assert inverse.shift >= preconditioner.FACTOR_RESOLUTION * trace * (1 - 1e-5)
    A, V = matrix_of(rows, mean, inverse.shift), np.random.default_rng(3).normal(size=(D, 2))
    assert np.allclose(inverse(A @ V), V, atol=1e-2)
    heavy = SampledRows(rows.weighted(1e60 * rows.weights), mean, 1e60 * rows.weights.sum())
    assert not heavy.matrix().is_float32


def test_penalties_that_are_left_away_do_not_disturb_the_others():
    rows = made_rows(200, n_features=64)
    moments, watched = rows.moments(), np.arange(200) % 5 == 0

    def solver(alphas):
        inverses = [lambda V: V] * len(alphas)
        product = lambda W: rows.normal_product(W, moments.mean, watched)  # noqa: E731
        return ConjugateGradients(product, moments.cross, alphas, inverses)

    some, fewer = solver([3.0, 1.0, 0.1]), solver([3.0, 0.1])
    for _ in range(3):
        some.step()
    some.keep(np.array([True, False, True]))
    some.step()
    for _ in range(4):
        fewer.step()
    assert np.allclose(some.coef, fewer.coef, atol=1e-10)
    assert np.allclose(some.outputs, fewer.outputs, atol=1e-10)
    assert np.allclose(some.residuals, fewer.residuals, atol=1e-10)
