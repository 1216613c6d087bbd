"""Fastfood for dot-product kernels: spherical harmonics, powers on the sphere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from oracles import fastfood_matrix, orthogonal_matrix
from scipy import special
from unbiased import (
    assert_spread,
    assert_unbiased,
    close_pairs,
    estimates,
    leaning_pairs,
)

from kitchenette import Fastfood
from kitchenette.kernels import (
    Exponential,
    Maclaurin,
    Polynomial,
    SphericalPolynomial,
    VovkInfinite,
    VovkPolynomial,
)
from kitchenette.maps.spherical import evaluate, legendre_coefficients, polynomial_features

PROJECTIONS = ["hadamard", "orthogonal"]


def harmonics(d: int, n: int) -> float:
    """The number of linearly independent spherical harmonics."""
    return 1.0 if n == 0 else (2 * n + d - 2) / n * special.comb(n + d - 3, n - 1)


def legendre(t: np.ndarray, d: int, n: int) -> np.ndarray:
    """Gegenbauer's polynomial, one at t = 1."""
    if d == 2:
        return special.eval_chebyt(n, t)
    return special.eval_gegenbauer(n, d / 2 - 1, t) / special.eval_gegenbauer(n, d / 2 - 1, 1.0)


# ---------------------------------------------------------------- polynomials


@pytest.mark.parametrize("d", [2, 3, 4, 16, 1024])
def test_polynomials_are_gegenbauers_with_the_right_norm(d):
    t = np.linspace(-1, 1, 31)
    values = evaluate(t, 8, d)
    for n in range(9):
        expected = np.sqrt(harmonics(d, n)) * legendre(t, d, n)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(values[n], expected, atol=1e-11 * scale)


@pytest.mark.parametrize("d", [2, 3, 8, 1024])
def test_monomials_in_legendre_polynomials(d):
    t = np.linspace(-1, 1, 31)
    monomials = np.array([0.5, 0.0, 1.0, 2.0, 0.0, 0.3])
    lambdas = legendre_coefficients(monomials, d)
    assert (lambdas >= 0).all()
    total = sum(c * legendre(t, d, n) for n, c in enumerate(lambdas))
    np.testing.assert_allclose(total, np.polynomial.polynomial.polyval(t, monomials), atol=1e-12)


@pytest.mark.native
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("d", [1, 3, 16, 100])
def test_features_are_polynomials_of_cosines(simd, projection, d, dtype):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(13, d)).astype(dtype)
    X[3] = 0
    kernel = Polynomial(4, coef0=0.7, gamma=0.5)
    fitted = Fastfood(kernel, 200, projection=projection, random_state=0).fit(X)
    p = fitted.projection_
    explicit = fastfood_matrix if projection == "hadamard" else orthogonal_matrix
    # The explicit matrix of the padded space, whose next column meets the constant.
    V = explicit(replace(p, n_columns=d + 1))
    extended = np.column_stack([X, np.full(13, np.sqrt(0.7 / 0.5))])
    norms = np.linalg.norm(extended, axis=1, keepdims=True)
    cosines = extended @ V.T / norms
    chosen = fitted.specification_
    features = polynomial_features(kernel, chosen.counts, chosen.expected, p.block, d)
    values = evaluate(cosines, 4, p.block)
    expected = norms**4 * features.weights
    expected = expected * np.take_along_axis(values, features.degrees[None, None, :], 0)[0]
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    scale = np.abs(expected).max()
    np.testing.assert_allclose(fitted.transform(X), expected, rtol=0, atol=tolerance * scale)
    assert np.array_equal(fitted.transform(sp.csr_array(X)), fitted.transform(X))


# ---------------------------------------------------------------- expectations


def assert_fastfood_is_unbiased(kernel, projection, X, Y):
    values = estimates(
        lambda s: Fastfood(kernel, 512, projection=projection, random_state=s), X, Y, 64
    )
    expected = np.diag(kernel(X, Y))
    assert_unbiased(values, expected, noticed=1.25)


@pytest.mark.parametrize(
    "norm", [*(pytest.param(n, marks=pytest.mark.slow) for n in (0.3, 1.0)), 3.0]
)
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize(
    "kernel",
    [*[Polynomial(n, coef0=0.0) for n in range(1, 7)], Polynomial(2), Polynomial(3, 0.5, 2.0)],
    ids=str,
)
def test_polynomial_kernels_are_unbiased_at_any_norm(kernel, projection, norm):
    assert_fastfood_is_unbiased(kernel, projection, *leaning_pairs(3, norm=norm))


@pytest.mark.parametrize("norm", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("degree", [7, 8, 9, 10])
@pytest.mark.parametrize(("d", "coef0"), [(2, 0.0), (1, 0.5)])
@pytest.mark.slow
def test_high_degrees_are_unbiased_in_two_dimensions(degree, d, coef0, projection, norm):
    # (One column and a constant make two. In more, the tails are too heavy for 64 seeds.)
    kernel = Polynomial(degree, coef0=coef0)
    assert_fastfood_is_unbiased(kernel, projection, *leaning_pairs(d, norm=norm))


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("d", [*(pytest.param(d, marks=pytest.mark.slow) for d in (1, 2, 5)), 16])
@pytest.mark.parametrize(
    "kernel",
    [Exponential(), VovkPolynomial(4), Maclaurin([0.0, 1.0, 0.0, 2.0]), Maclaurin([2.0])],
    ids=str,
)
def test_other_dot_product_kernels_are_unbiased_on_the_sphere(kernel, d, projection):
    X, Y = close_pairs(d)
    X, Y = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, Y))
    values = estimates(
        lambda s: Fastfood(kernel, 256, projection=projection, random_state=s), X, Y, 64
    )
    assert_unbiased(values, np.diag(kernel(X, Y)))


@pytest.mark.parametrize(
    "norm", [0.3, *(pytest.param(norm, marks=pytest.mark.slow) for norm in (1.0, 3.0))]
)
@pytest.mark.parametrize("d", [1, 3, 7])
@pytest.mark.parametrize(
    "kernel", [SphericalPolynomial([0.5, 1.0, 2.0, 1.0]), SphericalPolynomial([0, 0, 0, 0, 1.0])]
)
def test_spherical_polynomials_are_unbiased(kernel, d, norm):
    X, Y = close_pairs(d, norm=norm, distance=0.7 * norm)
    values = estimates(lambda s: Fastfood(kernel, 512, random_state=s), X, Y, 64)
    expected = np.diag(kernel(X, Y))
    assert_unbiased(values, expected)


def test_powers_in_the_padded_space_without_correction_are_noticed():
    # Five columns in eight: the part of a direction that they see is shorter.
    steps = 2.0 * np.arange(2)
    correction = np.prod((8 + steps) / (5 + steps))
    X, Y = close_pairs(5)
    kernel = SphericalPolynomial()
    values = estimates(lambda s: Fastfood(kernel, 512, random_state=s), X, Y, 64)
    assert_unbiased(values, np.diag(kernel(X, Y)))
    with pytest.raises(AssertionError, match="z-scores"):
        assert_unbiased(values / correction, np.diag(kernel(X, Y)))


@pytest.mark.parametrize("n_components", [1, 3])
@pytest.mark.slow
def test_unbiased_with_fewer_features_than_degrees(n_components):
    X, Y = close_pairs(2)
    X, Y = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, Y))
    values = estimates(lambda s: Fastfood(Exponential(), n_components, random_state=s), X, Y, 1000)
    assert_unbiased(values, np.diag(Exponential()(X, Y)))


@pytest.mark.slow
def test_the_variance_is_as_stated():
    # One feature per map: nothing but one uniform direction. p_2^2 in the p_k by quadrature.
    d = 8
    X, Y = close_pairs(d)
    X, Y = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, Y))
    t = np.einsum("ij,ij->i", X, Y)
    values = estimates(lambda s: Fastfood(Polynomial(1, coef0=0.0), 1, random_state=s), X, Y, 3000)
    nodes, weights = special.roots_gegenbauer(12, d / 2 - 1)
    weights = weights / weights.sum()
    p = evaluate(nodes, 4, d)
    q = (p * p[1] ** 2) @ weights
    second = sum(q[k] ** 2 * legendre(t, d, k) for k in range(5))
    assert_spread(values, second - t**2)


# ---------------------------------------------------------------- conventions


def test_rows_that_are_not_unit_vectors_are_refused():
    X = np.random.default_rng(0).normal(size=(5, 4))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    fitted = Fastfood(Exponential(), 16).fit(unit)
    with pytest.raises(ValueError, match=r"rows of norm 1 only.*normalize.*RandomMaclaurin"):
        fitted.transform(X)
    assert fitted.transform(unit.astype(np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match="converges for rows of norms below 1"):
        Fastfood(VovkInfinite()).fit(unit)


def test_homogeneous_kernels_of_zero_rows_are_zero():
    X = np.zeros((3, 4))
    X[0, 0] = 1.0
    Z = Fastfood(Polynomial(2, coef0=0.0), 64, random_state=0).fit_transform(X)
    assert (Z[1:] == 0).all()
    Z = Fastfood(Polynomial(2, coef0=2.0), 64, random_state=0).fit_transform(0 * X)
    assert np.isfinite(Z).all()


def test_large_rows_overflow_with_a_sentence():
    X = np.ones((2, 3), dtype=np.float32)
    fitted = Fastfood(Polynomial(8), 64).fit(X)
    with pytest.raises(ValueError, match="overflowed float32"):
        fitted.transform(1e9 * X)
