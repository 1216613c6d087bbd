"""Exact kernels against slow definitions and against scikit-learn."""

from __future__ import annotations

import numpy as np
import oracles
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import special
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.linear_model import Ridge
from sklearn.metrics import pairwise
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from kitchenette import Fastfood, RandomKitchenSinks
from kitchenette.kernels import (
    BesselMatern,
    Cauchy,
    Composition,
    Exponential,
    Gaussian,
    Laplacian,
    Maclaurin,
    Matern,
    Polynomial,
    RationalQuadratic,
    VovkInfinite,
    VovkPolynomial,
)

SHIFT_INVARIANT = [
    (Gaussian, (), oracles.gaussian),
    (Laplacian, (), oracles.laplacian),
    (Cauchy, (), oracles.cauchy),
    (Matern, (0.5,), oracles.matern),
    (Matern, (1.5,), oracles.matern),
    (Matern, (2.5,), oracles.matern),
    (Matern, (0.1,), oracles.matern),
    (Matern, (4.3,), oracles.matern),
    (RationalQuadratic, (0.3,), oracles.rational_quadratic),
    (RationalQuadratic, (20.0,), oracles.rational_quadratic),
    (BesselMatern, (1,), oracles.bessel_matern),
    (BesselMatern, (4,), oracles.bessel_matern),
]

ALL_KERNELS = [
    *(kind(*parameters, 1.3) for kind, parameters, _ in SHIFT_INVARIANT),
    Polynomial(3),
    Polynomial(degree=2, coef0=0.0, gamma=0.5),
    Exponential(2.0),
    VovkPolynomial(4),
    Maclaurin([0.5, 0.0, 1.0]),
    Composition(Exponential(1.5), Gaussian(2.0)),
]


def rows(n: int, d: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(seed).normal(size=(n, d)) / np.sqrt(d)


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(("kind", "parameters", "oracle"), SHIFT_INVARIANT)
@pytest.mark.parametrize("d", [1, 2, 3, 20])
@pytest.mark.parametrize("per_column", [False, True])
def test_shift_invariant_kernels_agree_with_their_definition(
    kind, parameters, oracle, d, per_column
):
    X, Y = rows(6, d, 1, 3.0), rows(5, d, 2, 3.0)
    scale = np.linspace(0.7, 1.9, d) if per_column else 1.3
    expected = oracles.gram(oracle, X, Y, scale, *parameters)
    K = kind(*parameters, length_scale=scale)(X, Y)
    np.testing.assert_allclose(K, expected, rtol=1e-9, atol=1e-12)


def test_dot_product_kernels_agree_with_their_definition():
    X, Y = rows(6, 4, 1, 0.5), rows(5, 4, 2, 0.5)
    T = X @ Y.T
    for kernel, expected in [
        (Polynomial(3, 2.0, 0.7), (0.7 * T + 2) ** 3),
        (Exponential(0.8), np.exp(T / 0.64)),
        (VovkPolynomial(5), (1 - T**5) / (1 - T)),
        (VovkInfinite(), 1 / (1 - T)),
        (Maclaurin([1.0, 0.5, 0.0, 2.0]), 1 + 0.5 * T + 2 * T**3),
        (Composition(Polynomial(2, 0.5), Gaussian(1.1)), (Gaussian(1.1)(X, Y) + 0.5) ** 2),
        (
            Composition(Exponential(1.0), Composition(Polynomial(2), Laplacian(2.0))),
            np.exp((Laplacian(2.0)(X, Y) + 1) ** 2),
        ),
    ]:
        np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-12)


def test_vovks_polynomial_has_its_limit_at_one():
    assert VovkPolynomial(7)([[1.0]], [[1.0]]) == 7


def test_values_agree_with_scikit_learn():
    X, Y = rows(30, 6, 1, 3.0), rows(20, 6, 2, 3.0)
    for ours, theirs in [
        (Gaussian(1.7), pairwise.rbf_kernel(X, Y, gamma=1 / (2 * 1.7**2))),
        (Gaussian(1.7), gp.RBF(1.7)(X, Y)),
        (Laplacian(1.7), pairwise.laplacian_kernel(X, Y, gamma=1 / 1.7)),
        (Matern(0.5, 1.7), gp.Matern(1.7, nu=0.5)(X, Y)),
        (Matern(1.5, 1.7), gp.Matern(1.7, nu=1.5)(X, Y)),
        (Matern(2.5, 1.7), gp.Matern(1.7, nu=2.5)(X, Y)),
        (Matern(0.8, 1.7), gp.Matern(1.7, nu=0.8)(X, Y)),
        (RationalQuadratic(0.8, 1.7), gp.RationalQuadratic(1.7, alpha=0.8)(X, Y)),
        (
            Polynomial(3, 0.4, 0.6),
            pairwise.polynomial_kernel(X, Y, degree=3, gamma=0.6, coef0=0.4),
        ),
        (Gaussian(np.arange(1.0, 7.0)), gp.RBF(np.arange(1.0, 7.0))(X, Y)),
    ]:
        np.testing.assert_allclose(ours(X, Y), theirs, rtol=1e-7, atol=1e-10)


def test_bessel_matern_is_elementary_in_one_and_three_dimensions():
    r = np.linspace(0.01, 60, 500)
    line = BesselMatern(1, 1.0)(np.zeros((1, 1)), r[:, None])[0]
    np.testing.assert_allclose(line, np.sin(r) / r, atol=1e-12)
    points = np.zeros((500, 3))
    points[:, 0] = r
    space = BesselMatern(2, 1.0)(np.zeros((1, 3)), points)[0]
    np.testing.assert_allclose(space, (3 * (np.sin(r) - r * np.cos(r)) / r**3) ** 2, atol=1e-12)


@pytest.mark.parametrize("d", [2, 16, 784, 3000, 100_000])
def test_bessel_matern_is_accurate_in_any_dimension(d):
    # 0F1 as its power series in extended precision; terms stay moderate in this range.
    nu = d / 2
    r = np.linspace(0, np.sqrt(20 * (nu + 1)), 50)
    x = -(r.astype(np.longdouble) ** 2) / 4
    term = np.ones_like(x)
    series = term.copy()
    for k in range(1, 200):
        term = term * x / (k * (nu + k))
        series += term
    points = sp.csr_matrix((r, (np.arange(50), np.zeros(50, int))), shape=(50, d))
    values = BesselMatern(1, 1.0)(sp.csr_matrix((1, d)), points)[0]
    np.testing.assert_allclose(values, series.astype(float), atol=1e-12)


def test_matern_of_large_order_does_not_overflow_and_nears_the_gaussian():
    X = np.concatenate([[0], np.geomspace(1e-8, 30, 200)])[:, None]
    for nu in (50.0, 300.0, 3000.0):
        K = Matern(nu, 1.0)(X[:1], X)[0]
        assert np.isfinite(K).all()
        assert K[0] == 1
        assert (np.diff(K) <= 1e-10).all()
        assert np.abs(K - Gaussian(1.0)(X[:1], X)[0]).max() < 0.5 / nu


@pytest.mark.parametrize("nu", [100.5, 400.0])
def test_matern_by_debyes_expansion_agrees_with_the_bessel_function(nu):
    z = np.linspace(0.5, 40, 100)
    r = z / np.sqrt(2 * nu)
    K = Matern(nu, 1.0)(np.zeros((1, 1)), r[:, None])[0]
    # The kernel as a mixture of Gaussians, integrated over the quantiles of its scales.
    u = (np.arange(400_000) + 0.5) / 400_000
    squared_scales = nu / special.gammaincinv(nu, u)
    mixture = [np.mean(np.exp(-0.5 * squared_scales * s**2)) for s in r[::10]]
    np.testing.assert_allclose(K[::10], mixture, rtol=1e-6)


def test_rows_that_are_close_but_far_from_the_origin_keep_their_digits():
    rng = np.random.default_rng(0)
    X = 1e6 + rng.normal(size=(30, 4))
    shifted = X - 1e6
    np.testing.assert_allclose(Gaussian(1.0)(X), Gaussian(1.0)(shifted), rtol=1e-8)
    np.testing.assert_allclose(
        Matern(0.1, 1.0)(sp.csr_matrix(X), X), Matern(0.1, 1.0)(shifted), rtol=1e-8
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Gaussian(3.0), Laplacian(3.0), Cauchy(3.0)], ids=repr)
@pytest.mark.parametrize("per_column", [False, True])
def test_kernels_are_as_exact_as_the_rows_far_from_the_origin(kernel, dtype, per_column):
    offset = 1e5 if dtype == np.float32 else 1e9
    X = (offset + np.random.default_rng(0).normal(size=(20, 4))).astype(dtype)
    # Around zero the same rows have no digits that could be lost.
    centered = X.astype(np.float64) - offset
    if per_column:
        kernel = clone(kernel).set_params(length_scale=np.array([3.0, 0.7, 1.1, 1.3]))
    rtol = 2e-6 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(kernel(X), kernel(centered), rtol=rtol)
    np.testing.assert_allclose(kernel(sp.csr_array(X)), kernel(centered), rtol=rtol)


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=repr)
@pytest.mark.slow
def test_gram_matrices_by_tiles_are_those_of_their_rows(kernel):
    X, Y = rows(1500, 3, 1), rows(1100, 3, 2)
    K = kernel(X)
    assert np.array_equal(K, K.T)
    some = [0, 900, 1023, 1024, 1499]
    np.testing.assert_allclose(K[some], kernel(X[some], X), rtol=1e-9, atol=1e-12)
    some = [0, 1023, 1024, 1099]
    np.testing.assert_allclose(kernel(X, Y)[:, some], kernel(X, Y[some]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.0), Matern(0.7, 1.0), Laplacian(1.0), Cauchy(1.0)], ids=repr
)
@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 3e25), (np.float64, 1e200)])
def test_equal_rows_have_the_value_one_however_large_they_are(kernel, dtype, size):
    X = np.full((2, 3), size, dtype=dtype)
    X[1, 0] = -size
    for K in (kernel(X), kernel(X, X.copy()), kernel(sp.csr_array(X), sp.csr_array(X))):
        assert np.array_equal(K, np.eye(2))


def test_a_power_of_an_overflowing_distance_is_refused():
    # (1e200)^-0.002 is 0.4, and cannot be known from a square that is infinite.
    with pytest.raises(ValueError, match="overflows float64 on these rows"):
        RationalQuadratic(0.001, 1.0)([[0.0]], [[1e200]])


@pytest.mark.parametrize("nu", [0.01, 0.5, 0.7, 1.5, 2.0, 2.5, 50.0, 1000.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matern_vanishes_far_away(nu, dtype):
    far = np.array([[1e4], [1e9], [1e15], [1e30], [3e38]], dtype=dtype)
    assert np.array_equal(Matern(nu, 1.0)(np.zeros((1, 1), dtype=dtype), far), np.zeros((1, 5)))
    if dtype == np.float64:
        assert np.array_equal(Matern(nu, 1.0)([[0.0]], [[1e200], [1e308]]), [[0.0, 0.0]])


# 2^(1 - nu) / Gamma(nu) z^nu K_nu(z) with z = sqrt(2 nu) r for r = 0.5, 2 and 6, computed with
# 80 digits by mpmath.
@pytest.mark.parametrize(
    ("nu", "values"),
    [
        (0.7, [0.67201798165479046, 0.13828069713920702, 0.0014757621989393641]),
        (7.7, [0.86769456670605979, 0.13622984041019729, 6.6057643728849332e-6]),
        (100.5, [0.88146013362395447, 0.13534386506655214, 4.9775134638217059e-8]),
        (1e4, [0.882486560045749, 0.13533528413848706, 1.5450376290999893e-8]),
        (1e9, [0.8824969024811778, 0.13533528323661269, 1.522998193782982e-8]),
        (1e15, [0.8824969025845953, 0.13533528323661269, 1.5229979744714822e-8]),
        (1e300, np.exp([-0.125, -2.0, -18.0])),
    ],
)
def test_matern_is_accurate_for_every_order(nu, values):
    K = Matern(nu, 1.0)([[0.0]], [[0.5], [2.0], [6.0]])[0]
    np.testing.assert_allclose(K, values, rtol=1e-9 if nu == 100.5 else 1e-13)


def test_matern_of_tiny_distances_is_one():
    for nu in (0.05, 0.3, 1.0, 7.7):
        K = Matern(nu, 1.0)(np.zeros((1, 1)), np.array([[0.0], [1e-300], [1e-160]]))
        assert np.isfinite(K).all()
        assert K[0, 0] == 1


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=repr)
def test_gram_matrices_are_symmetric_and_positive(kernel):
    X = rows(40, 5, 3)
    K = kernel(X)
    assert np.array_equal(K, kernel(X, X))
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    np.testing.assert_allclose(K, kernel(X, X.copy()), rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-6 * np.abs(K).max()


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=repr)
def test_sparse_rows_have_the_same_kernel(kernel):
    X = rows(12, 7, 3) * (np.random.default_rng(0).random((12, 7)) < 0.4)
    np.testing.assert_allclose(kernel(sp.csr_array(X)), kernel(X), atol=1e-7)
    np.testing.assert_allclose(kernel(sp.csc_matrix(X), X), kernel(X, X.copy()), atol=1e-7)


def unordered_csr(dtype=np.float64) -> sp.csr_matrix:
    """Entries stored twice and out of order: [[0, 2, 5, 0], [1, 0, 0, 3], [0, 0, 1, 1]]."""
    data, indices = [2.0, 2.0, 3.0, 3.0, 1.0, 0.25, 1.0, 0.75], [2, 1, 2, 3, 0, 2, 3, 2]
    return sp.csr_matrix((np.array(data, dtype), indices, [0, 3, 5, 8]), shape=(3, 4))


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=repr)
def test_entries_stored_in_parts_count_as_their_sum(kernel):
    X, dense = unordered_csr() / 4, unordered_csr().toarray() / 4
    np.testing.assert_allclose(kernel(X), kernel(dense), rtol=1e-12)
    np.testing.assert_allclose(kernel(dense, X), kernel(dense, dense.copy()), rtol=1e-12)


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Cauchy()], ids=repr)
def test_the_median_of_entries_stored_in_parts(kernel):
    expected = kernel.resolve(unordered_csr().toarray()).length_scale
    assert kernel.resolve(unordered_csr()).length_scale == pytest.approx(expected, rel=1e-14)
    fitted = RandomKitchenSinks(kernel, 8).fit(unordered_csr())
    assert fitted.kernel_.length_scale == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Cauchy()], ids=repr)
def test_sparse_matrices_are_left_as_they_were(kernel):
    X = unordered_csr()
    before = [part.copy() for part in (X.data, X.indices, X.indptr)]
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    kernel.resolve(X)(X)
    RandomKitchenSinks(kernel, 8).fit(X).transform(X)
    for part, copy in zip((X.data, X.indices, X.indptr), before, strict=True):
        assert np.array_equal(part, copy)


@pytest.mark.slow
def test_kernels_of_wide_sparse_rows_look_at_stored_entries_only():
    X = sp.random(60, 1_000_000, density=1e-5, format="csr", random_state=0)
    dense = X[:, np.unique(X.indices)].toarray()
    for kernel in (Cauchy(0.7), Laplacian(0.7), Gaussian(0.7)):
        np.testing.assert_allclose(kernel(X), kernel(dense), rtol=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [
        Polynomial(np.int64(2), np.float64(1.0), np.float64(0.5)),
        Exponential(np.float64(2.0)),
        Gaussian(np.float64(1.0)),
        Matern(np.float64(0.7), np.float64(1.0)),
        RationalQuadratic(np.float64(0.7), np.float64(1.0)),
        Maclaurin(np.array([0.5, 1.0])),
        Composition(Exponential(np.float64(2.0)), Laplacian(np.array(2.0))),
    ],
    ids=repr,
)
def test_precision_is_kept_with_parameters_that_are_numpys_numbers(kernel):
    assert kernel(rows(4, 3).astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("dtype", [">f4", ">f8"])
def test_precision_is_kept_in_any_order_of_bytes(dtype):
    X = rows(4, 3).astype(dtype)
    plain = X.astype(X.dtype.newbyteorder("="))
    feature_map = Fastfood(Gaussian(1.0), 8, random_state=0).fit(X)
    for K, expected in [
        (Gaussian(1.0)(X), Gaussian(1.0)(plain)),
        (feature_map.transform(X), feature_map.transform(plain)),
    ]:
        assert K.dtype == expected.dtype == plain.dtype
        assert np.array_equal(K, expected)


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=repr)
def test_precision_is_kept(kernel):
    X = rows(10, 4)
    single = kernel(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, kernel(X), rtol=1e-4, atol=1e-5)
    assert kernel((10 * X).astype(int)[:, :1] * 0).dtype == np.float64


# ---------------------------------------------------------------- the median


def test_the_median_is_the_median_distance():
    X = rows(50, 3)
    for kernel, metric in ((Gaussian(), "euclidean"), (Laplacian(), "cityblock")):
        median = np.median(pdist(X, metric))
        assert kernel.resolve(X).length_scale == pytest.approx(median, rel=2**-24)
    assert Matern(0.7).resolve(X) == Matern(0.7, Gaussian().resolve(X).length_scale)
    assert Gaussian(2.0).resolve(X) == Gaussian(2.0)
    assert Composition(Polynomial(), Gaussian()).resolve(X).inner == Gaussian().resolve(X)
    # Repeated rows do not make it zero.
    repeated = np.repeat(X[:2], 100, axis=0)
    distance = np.linalg.norm(X[0] - X[1])
    assert Gaussian().resolve(repeated).length_scale == pytest.approx(distance, rel=2**-24)


def test_weights_count_as_repetitions_in_the_median():
    X = rows(12, 3)
    weights = np.array([0, 1, 2, 3] * 3)
    repeated = np.repeat(X, weights, axis=0)
    for kernel in (Gaussian(), Laplacian(), Composition(Polynomial(), Gaussian())):
        assert kernel.resolve(X[weights > 0], weights[weights > 0]) == kernel.resolve(repeated)


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Cauchy()], ids=repr)
def test_the_median_keeps_its_digits_far_from_the_origin(kernel):
    X = np.round(rows(40, 5, scale=100.0) * 2**20) / 2**20
    expected = kernel.resolve(X).length_scale
    assert kernel.resolve(1e9 + X).length_scale == pytest.approx(expected, rel=1e-6)
    exact = kernel.resolve((1e9 + X) - 1e9).length_scale
    assert kernel.resolve(1e9 + X).length_scale == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Cauchy()], ids=repr)
@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.float32, 1e-30), (np.float32, 1e30), (np.float64, 1e-200), (np.float64, 1e200)],
)
def test_the_median_of_tiny_and_of_huge_rows(kernel, dtype, size):
    X = (rows(30, 3) * size).astype(dtype)
    expected = kernel.resolve(X.astype(np.float64) / size).length_scale
    for given in (X, sp.csr_array(X)):
        assert kernel.resolve(given).length_scale / size == pytest.approx(expected, rel=2**-23)


def test_bessel_materns_median_gives_it_the_gaussians_curvature():
    X = rows(50, 30)
    bessel, gaussian = BesselMatern(3).resolve(X), Gaussian().resolve(X)
    near = X[:1] + 1e-3 * rows(5, 30, 8)
    np.testing.assert_allclose(1 - bessel(X[:1], near), 1 - gaussian(X[:1], near), rtol=1e-4)


@pytest.mark.parametrize(
    "map_kind", [Fastfood, pytest.param(RandomKitchenSinks, marks=pytest.mark.slow)]
)
def test_the_median_is_resolved_in_fit_from_a_seeded_sample(map_kind):
    X = rows(3000, 4)
    fitted = map_kind(n_components=8, random_state=0).fit(X)
    assert fitted.kernel == Gaussian()
    exact = np.median(pdist(X))
    assert fitted.kernel_.length_scale == pytest.approx(exact, rel=0.05)
    assert map_kind(n_components=8, random_state=0).fit(X).kernel_ == fitted.kernel_
    assert map_kind(n_components=8, random_state=1).fit(X).kernel_ != fitted.kernel_
    few = X[:100]
    assert map_kind(n_components=8).fit(few).kernel_ == Gaussian().resolve(few)


# ---------------------------------------------------------------- kernels are values


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=repr)
def test_a_kernel_equals_its_clone_and_its_repr(kernel):
    twin = clone(kernel)
    assert twin is not kernel
    assert twin == kernel
    assert hash(twin) == hash(kernel)
    namespace = {kind.__name__: kind for kind in (*(k for k, _, _ in SHIFT_INVARIANT), Polynomial)}
    namespace |= {
        k.__name__: k for k in (Exponential, VovkPolynomial, VovkInfinite, Maclaurin, Composition)
    }
    assert eval(repr(kernel), namespace) == kernel


def test_different_kernels_are_different():
    distinct = [Gaussian(), Gaussian(1.0), Gaussian([1.0, 2.0]), Laplacian(1.0), Matern(1.0)]
    distinct += [Matern(0.5), Composition(Polynomial(), Gaussian(1.0)), Composition()]
    for i, a in enumerate(distinct):
        for j, b in enumerate(distinct):
            assert (a == b) == (i == j)
    assert Gaussian([1.0, 2.0]) == Gaussian(np.array([1.0, 2.0]))
    assert Gaussian() != "Gaussian()"
    assert len({Gaussian(1.0), Gaussian(1.0), Laplacian(1.0)}) == 2


def test_equality_of_parameters_in_other_clothes():
    one = Gaussian(1.0)
    for same in (np.array(1.0), np.float32(1.0), 1):
        assert Gaussian(same) == one
        assert hash(Gaussian(same)) == hash(one)
    several = Gaussian([1.0, 2.0])
    for same in ((1.0, 2.0), np.array([1.0, 2.0]), pd.Series([1.0, 2.0])):
        assert Gaussian(same) == several
        assert hash(Gaussian(same)) == hash(several)
    X = rows(3, 2)
    assert np.array_equal(Gaussian(pd.Series([1.0, 2.0]))(X), several(X))


def test_a_kernel_that_others_may_share_is_not_assigned_to():
    with pytest.raises(AttributeError, match="A kernel is a value: length_scale of Gaussian"):
        Fastfood().kernel.length_scale = 7.0
    assert Fastfood().kernel == Gaussian()
    kernel = Gaussian(1.0)
    assert kernel.set_params(length_scale=2.0) is kernel
    assert kernel == Gaussian(2.0)


@pytest.mark.parametrize("map_kind", [Fastfood, RandomKitchenSinks])
def test_a_fitted_map_keeps_its_kernel(map_kind):
    scales = np.ones(3)
    kernel = Composition(Polynomial(), Gaussian(scales)).inner
    fitted = map_kind(kernel, 8).fit(rows(5, 3))
    scales[:] = 7.0
    assert fitted.kernel_ == Gaussian([1.0, 1.0, 1.0])
    kernel.set_params(length_scale=3.0)
    assert fitted.kernel_ == Gaussian([1.0, 1.0, 1.0])


def test_setting_parameters_changes_all_or_nothing():
    for wrong in (
        {"bogus": 1},
        {"bogus__x": 1},
        {"kernel__bogus": 1},
        {"features__x": 1},
        {"kernel": None, "kernel__length_scale": 1},
    ):
        fastfood = Fastfood(Gaussian(1.0))
        before = fastfood.get_params()
        with pytest.raises(ValueError, match="has no parameter"):
            fastfood.set_params(n_components=77, **wrong)
        assert fastfood.get_params() == before
    fastfood.set_params(kernel=Matern(2.0), kernel__nu=0.3)
    assert fastfood.kernel == Matern(0.3)


def test_setting_a_nested_parameter_never_changes_a_shared_kernel():
    shared = Gaussian(1.0)
    one, other = Fastfood(shared), Fastfood(shared)
    one.set_params(kernel__length_scale=3.0)
    assert one.kernel == Gaussian(3.0)
    assert other.kernel is shared
    assert shared == Gaussian(1.0)
    Fastfood().set_params(kernel__length_scale=9.0)
    assert Fastfood().kernel == Gaussian()
    nested = Composition(Polynomial(2), Composition(Polynomial(3), shared))
    nested.set_params(inner__inner__length_scale=5.0, outer__degree=4)
    assert nested == Composition(Polynomial(4), Composition(Polynomial(3), Gaussian(5.0)))
    assert shared == Gaussian(1.0)


def test_unknown_parameters_are_refused():
    for wrong in ({"widht": 1}, {"kernel__widht": 1}, {"n_components__x": 1}, {"nothing__x": 1}):
        with pytest.raises((ValueError, AttributeError)):
            Fastfood().set_params(**wrong)


def test_grid_search_reaches_the_length_scale_and_finds_the_right_one():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(300, 1))
    y = np.sin(5 * X[:, 0])
    model = make_pipeline(Fastfood(n_components=512, random_state=0), Ridge(1e-3))
    search = GridSearchCV(model, {"fastfood__kernel__length_scale": [0.5, 50.0, "median"]}, cv=3)
    search.fit(X, y)
    assert search.best_params_ == {"fastfood__kernel__length_scale": 0.5}
    assert search.best_score_ > 0.95


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (Gaussian(), "has no values before a length scale is chosen"),
        (Gaussian("mean"), "length_scale must be a positive number.*got 'mean'"),
        (Gaussian(0.0), "length_scale must be a positive number"),
        (Gaussian(np.nan), "length_scale must be a positive number"),
        (Gaussian([1.0, -1.0]), "length_scale must be a positive number"),
        (Gaussian([1.0, 1.0, 1.0]), r"length_scale has shape \(3,\) but the data has 2 columns"),
        (Matern(0.0, 1.0), "Matern needs nu to be a number greater than 0; got 0.0"),
        (Matern(np.inf, 1.0), "Matern needs nu to be a number"),
        (RationalQuadratic(-1.0, 1.0), "RationalQuadratic needs alpha"),
        (BesselMatern(1.5, 1.0), "BesselMatern needs n_points to be a whole number at least 1"),
        (Polynomial(0), "Polynomial needs degree to be a whole number at least 1"),
        (Polynomial(coef0=-1.0), "Polynomial needs coef0 to be a number at least 0; got -1.0"),
        (Polynomial(gamma=0.0), "Polynomial needs gamma"),
        (Exponential("wide"), "Exponential needs scale"),
        (VovkPolynomial(True), "VovkPolynomial needs degree"),
        (VovkInfinite(), "defined for inner products between -1 and 1 only; the largest here is 2"),
        (Maclaurin([1.0, -1.0]), "Maclaurin needs a list of coefficients"),
        (Maclaurin([0.0]), "Maclaurin needs a list of coefficients"),
        (Maclaurin([]), "Maclaurin needs a list of coefficients"),
        (Composition(Gaussian(1.0), Gaussian(1.0)), "needs a dot-product kernel outside"),
        (Composition(Polynomial(), "rbf"), "needs a kernel inside"),
        (Composition(Polynomial(), Gaussian()), "has no values before a length scale"),
        (Polynomial(200, 1e10), "overflows float64 on these rows; scale them down"),
    ],
)
def test_bad_parameters_get_a_sentence(kernel, sentence):
    with pytest.raises(ValueError, match=sentence):
        kernel(np.ones((3, 2)))


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (BesselMatern("3"), "BesselMatern needs n_points to be a whole number"),
        (BesselMatern(-1), "BesselMatern needs n_points to be a whole number"),
        (Matern(-1.0), "Matern needs nu"),
        (Matern(10**400), "Matern needs nu"),
        (Gaussian("mean"), "length_scale must be a positive number"),
        (Composition(inner=None), "Composition needs a kernel inside; got None"),
        (Composition(outer=None), "Composition needs a dot-product kernel outside"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_parameters_are_checked_before_the_median_is_taken(kernel, sentence):
    for action in (kernel, kernel.resolve):
        with pytest.raises(ValueError, match=sentence):
            action(rows(4, 3))


def test_bad_rows_get_a_sentence():
    with pytest.raises(ValueError, match="X has 3 columns but Y has 2"):
        Gaussian(1.0)(np.ones((2, 3)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="NaN"):
        Gaussian(1.0)(np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="overflows float32"):
        Polynomial(30)(np.full((1, 2), 1e3, dtype=np.float32))
    with pytest.raises(ValueError, match=r"two different rows.*n_samples = 3"):
        Gaussian().resolve(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"beyond the range of float64.*largest entry is 1e\+308"):
        Gaussian().resolve([[1e308], [-1e308]])


def test_scipys_bessel_function_is_right_where_ours_hands_over_to_it():
    for nu in (0.5, 4.0, 50.0):
        r = 0.75 * nu + 0.5
        below, above = r * (1 - 1e-9), r * (1 + 1e-9)
        points = np.zeros((2, int(2 * nu)))
        points[:, 0] = below, above
        left, right = BesselMatern(1, 1.0)(np.zeros((1, int(2 * nu))), points)[0]
        assert left == pytest.approx(right, rel=1e-7)
        assert right == pytest.approx(special.hyp0f1(nu + 1, -(above**2) / 4), rel=1e-9)
