"""Random Maclaurin features against tensor products, expectations and stated variances."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from oracles import factor_signs
from scipy.linalg import hadamard
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import StandardScaler
from unbiased import (
    assert_spread,
    assert_unbiased,
    close_pairs,
    estimates,
    leaning_pairs,
)

import kitchenette
from kitchenette import SRHT, Fastfood, RandomKitchenSinks, RandomMaclaurin, TensorSketch
from kitchenette.kernels import (
    Composition,
    Exponential,
    Gaussian,
    Kernel,
    Laplacian,
    Maclaurin,
    Polynomial,
    VovkInfinite,
    VovkPolynomial,
)
from kitchenette.maps.degrees import (
    TOLERANCE,
    Moments,
    cut_series,
    least_error_counts,
    optimal_counts,
)
from kitchenette.metrics import kernel_error
from kitchenette.sketching.gaussian_products import GaussianProducts
from kitchenette.sketching.products import draw_hadamard_products, draw_rademacher_products

DRAWS = [draw_hadamard_products, draw_rademacher_products]
PROJECTIONS = ["hadamard", "rademacher"]  # of signs
ALLOCATIONS = ["optimal", "geometric"]


def unbiased(kernel: Kernel, n_components: int, **options) -> RandomMaclaurin:
    return RandomMaclaurin(kernel, n_components, **{"degrees": "optimal", **options})


# ---------------------------------------------------------------- oracles


def tensor_power(x: np.ndarray, n: int) -> np.ndarray:
    out = np.ones(1)
    for _ in range(n):
        out = np.multiply.outer(out, x).ravel()
    return out


@pytest.mark.native
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_a_feature_is_an_inner_product_with_a_tensor_product_of_signs(simd, draw, dtype, d):
    rng = np.random.default_rng(d)
    degrees = rng.integers(0, 5, size=50).astype(np.int32)
    weights = rng.normal(size=50)
    X = rng.normal(size=(13, d)).astype(dtype)
    products = draw(degrees, weights, d, seed=3, dtype=dtype, input_scale=0.5)
    out = np.empty((13, 50), dtype=dtype)
    assert products.operator().write(X, out)
    factors = [factor_signs(products, j).astype(float) for j in range(4)]
    expected = np.empty((13, 50))
    for i, n in enumerate(degrees):
        signs = np.ones(1)
        for factor in factors[:n]:
            assert set(np.abs(factor[i])) == {1.0}
            signs = np.multiply.outer(signs, factor[i]).ravel()
        for r, x in enumerate(X.astype(float)):
            expected[r, i] = weights[i] * signs @ tensor_power(0.5 * x, n)
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.native
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize(("d", "n_features"), [(1, 1), (100, 333), (129, 1000), (784, 2048)])
def test_wide_rows_against_explicit_signs(simd, draw, d, n_features):
    rng = np.random.default_rng(d)
    degrees = rng.integers(0, 4, size=n_features).astype(np.int32)
    X = rng.normal(size=(21, d)) / np.sqrt(d)
    products = draw(degrees, np.ones(n_features), d, seed=5, dtype=np.float64)
    out = np.empty((21, n_features))
    assert products.operator().write(X, out)
    expected = np.ones((21, n_features))
    for j in range(degrees.max()):
        z = X @ factor_signs(products, j).T.astype(float)
        expected *= np.where(degrees > j, z, 1.0)
    np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-12)


def test_hadamard_factors_are_rows_of_signed_hadamard_matrices_without_repetition():
    degrees = np.full(300, 3, dtype=np.int32)
    products = draw_hadamard_products(degrees, np.ones(300), 100, seed=0, dtype=np.float64)
    H = hadamard(128)
    for j in range(3):
        rows = products.indices[j, :300]
        np.testing.assert_array_equal(
            factor_signs(products, j), (H[rows] * products.signs[j])[:, :100].astype(np.int8)
        )
        for start in (0, 128):
            assert len(set(rows[start : start + 128])) == 128
    assert not np.array_equal(products.signs[0], products.signs[1])


def test_given_the_signs_the_mean_over_all_rows_is_exact():
    # The reason why features may share the transforms.
    x, y = np.random.default_rng(0).normal(size=(2, 100))
    products = draw_hadamard_products(
        np.array([2], dtype=np.int32), np.ones(1), 100, seed=0, dtype=np.float64
    )
    HB = [hadamard(128)[:, :100] * s[:100] for s in products.signs]
    zx, zy = (np.multiply.outer(HB[0] @ v, HB[1] @ v).ravel() for v in (x, y))
    assert np.isclose(np.mean(zx * zy), (x @ y) ** 2, rtol=1e-12)


# ---------------------------------------------------------------- expectations

KERNELS = [
    *[Polynomial(degree) for degree in range(1, 11)],
    Polynomial(4, coef0=0.0, gamma=0.5),
    Polynomial(10, coef0=0.0),
    Exponential(1.5),
    VovkPolynomial(5),
    Maclaurin([0.0, 1.0, 0.0, 2.0]),
]


@pytest.mark.parametrize("norm", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("degrees", ALLOCATIONS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.slow
def test_unbiased(kernel, degrees, projection, norm):
    X, Y = leaning_pairs(5, norm=norm)
    # base 1.3 spends enough on high degrees for the tails of a sum of few features
    values = estimates(
        lambda s: RandomMaclaurin(
            kernel, 256, degrees=degrees, projection=projection, base=1.3, random_state=s
        ),
        X,
        Y,
        64,
    )
    expected = np.diag(kernel(X, Y))
    assert_unbiased(values, expected, noticed=1.2)


@pytest.mark.parametrize("norm", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("degrees", ALLOCATIONS)
@pytest.mark.parametrize(
    "kernel",
    [
        *[Polynomial(degree) for degree in range(1, 11)],
        Exponential(1.5),
        Maclaurin([1.0, 0, 1]),
        Maclaurin([0, 2.0, 1]),
    ],
    ids=str,
)
@pytest.mark.slow
def test_h01_is_unbiased(kernel, degrees, projection, norm):
    X, Y = leaning_pairs(5, norm=norm)
    values = estimates(
        lambda s: RandomMaclaurin(
            kernel,
            256,
            h01=True,
            degrees=degrees,
            projection=projection,
            base=1.3,
            random_state=s,
        ),
        X,
        Y,
        64,
    )
    assert_unbiased(values, np.diag(kernel(X, Y)))


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_unbiased_on_rows_that_lean_nowhere_and_for_any_width(projection):
    for d in (1, 3, 16, 100):
        X, Y = close_pairs(d, distance=0.7)
        values = estimates(
            lambda s: unbiased(Polynomial(3), 500, projection=projection, random_state=s),
            X,
            Y,
            64,
        )
        assert_unbiased(values, np.diag(Polynomial(3)(X, Y)))


@pytest.mark.parametrize("n_components", [1, 3, 7])
@pytest.mark.slow
def test_unbiased_with_fewer_features_than_degrees(n_components):
    X, Y = leaning_pairs(3, lean=0.9)
    kernel = Polynomial(6)
    values = estimates(lambda s: unbiased(kernel, n_components, random_state=s), X, Y, 1000)
    assert_unbiased(values, np.diag(kernel(X, Y)))


@pytest.mark.parametrize("norm", [0.3, 0.8])
def test_vovks_infinite_kernel_is_unbiased_below_norm_one(norm):
    X, Y = leaning_pairs(4, norm=norm)
    values = estimates(lambda s: unbiased(VovkInfinite(), 512, random_state=s), X, Y, 64)
    assert_unbiased(values, np.diag(VovkInfinite()(X, Y)))


@pytest.mark.parametrize("degrees", ALLOCATIONS)
@pytest.mark.parametrize(
    "kernel",
    [
        Composition(Polynomial(3), Gaussian(1.0)),
        Composition(Exponential(), Laplacian(2.0)),
        Composition(Polynomial(2, coef0=0.0), Polynomial(2)),
        Composition(Polynomial(2), Composition(Polynomial(2), Gaussian(2.0))),
    ],
    ids=str,
)
@pytest.mark.slow
def test_compositions_are_unbiased(kernel, degrees):
    X, Y = leaning_pairs(3, norm=0.8)
    values = estimates(
        lambda s: RandomMaclaurin(kernel, 256, degrees=degrees, random_state=s), X, Y, 100
    )
    expected = np.diag(kernel(X, Y))
    assert_unbiased(values, expected, noticed=1.2)


def test_rows_of_one_block_must_not_meet_in_a_product():
    # The plain shuffle of Hamid et al., section 3.5: two different rows of one block are
    # biased by O(1 / block), as the mean over all such pairs shows.
    x, y = np.random.default_rng(0).normal(size=(2, 16))
    z = hadamard(16) @ x * (hadamard(16) @ y)
    together = (np.sum(z) ** 2 - np.sum(z**2)) / (16 * 15)
    assert abs(together / (x @ y) ** 2 - 1) > 0.05
    apart = np.mean(np.multiply.outer(z, z))
    assert np.isclose(apart, (x @ y) ** 2)

    def products_at_pairs(meeting: bool, seed: int) -> np.ndarray:
        degrees, weights = np.full(1024, 2, dtype=np.int32), np.full(1024, 1 / 32)
        products = draw_hadamard_products(degrees, weights, 8, seed=seed, dtype=np.float64)
        if meeting:
            products = replace(
                products,
                signs=products.signs[[0, 0]],
                indices=np.stack([products.indices[0], products.indices[0] ^ 1]),
            )
        Z = np.empty((2 * len(X), 1024))
        products.operator().write(np.concatenate([X, Y]), Z)
        return np.einsum("ij,ij->i", Z[: len(X)], Z[len(X) :])

    X, Y = close_pairs(8, distance=0.5)
    expected = np.diag(Polynomial(2, coef0=0.0)(X, Y))
    right, wrong = (
        np.array([products_at_pairs(meeting, seed) for seed in range(100)])
        for meeting in (False, True)
    )
    assert_unbiased(right, expected)
    with pytest.raises(AssertionError, match="z-scores"):
        assert_unbiased(wrong, expected)


# ---------------------------------------------------------------- variances


def pair_moments(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    t = np.einsum("ij,ij->i", X, Y)
    norms = (X**2).sum(axis=1) * (Y**2).sum(axis=1)
    return t, norms + 2 * (t**2 - (X**2 * Y**2).sum(axis=1))


def coefficients(kernel) -> np.ndarray:
    return np.exp(kernel.log_coefficients(np.arange(kernel.last_degree + 1)))


@pytest.mark.parametrize("kernel", [Polynomial(2), Polynomial(3, coef0=2.0, gamma=0.5)], ids=str)
@pytest.mark.slow
def test_the_variance_is_as_stated(kernel):
    X, Y = leaning_pairs(6, lean=0.9)
    t, m = pair_moments(X, Y)
    a = coefficients(kernel)
    n = np.arange(a.size)[:, None]
    k = np.diag(kernel(X, Y))

    def make(seed, **options):
        return unbiased(kernel, 64, projection="rademacher", random_state=seed, **options)

    p = 2.0 ** -np.arange(a.size)[:, None]
    p /= p.sum()
    geometric = ((a[:, None] ** 2 / p * m**n).sum(axis=0) - k**2) / 64
    values = estimates(lambda s: make(s, degrees="geometric"), X, Y, 800)
    assert_spread(values, geometric)
    counts = np.bincount(make(0).fit(np.concatenate([X, Y])).degrees_, minlength=a.size)
    optimal = (a[:, None] ** 2 * (m**n - t ** (2 * n)) / counts[:, None]).sum(axis=0)
    values = estimates(make, X, Y, 800)
    assert_spread(values, optimal)
    with pytest.raises(AssertionError, match="variance"):
        assert_spread(values, 1.5 * optimal)
    hadamard_values = estimates(lambda s: unbiased(kernel, 64, random_state=s), X, Y, 800)
    assert (hadamard_values.var(axis=0) < 1.15 * optimal).all()


@pytest.mark.slow
def test_features_that_share_transforms_are_not_correlated():
    # 128 rows per block: with 2048 features each transform is used sixteen times.
    X, Y = close_pairs(6, distance=0.7)
    t, m = pair_moments(X, Y)
    values = estimates(
        lambda s: RandomMaclaurin(Polynomial(2, coef0=0.0), 2048, random_state=s), X, Y, 400
    )
    assert (values.var(axis=0) < 1.25 * (m**2 - t**4) / 2048).all()


@pytest.mark.slow
def test_the_variance_of_an_offset_cosine_inside_a_composition():
    X, Y = close_pairs(3, distance=1.5)
    kernel = Composition(Polynomial(2, coef0=0.0), Laplacian(1.0))
    k, k2 = np.diag(Laplacian(1.0)(X, Y)), np.diag(Laplacian(1.0)(2 * X, 2 * Y))
    values = estimates(lambda s: unbiased(kernel, 64, random_state=s), X, Y, 1000)
    assert_spread(values, ((1 + k2 / 2) ** 2 - k**4) / 64)


@pytest.mark.parametrize("kernel", [Polynomial(7), Exponential(0.7)], ids=str)
@pytest.mark.parametrize("h01", [False, True])
def test_optimal_degrees_are_not_worse_than_geometric_ones(kernel, h01):
    X = load_digits().data[:200]
    X = X / np.linalg.norm(X, axis=1, keepdims=True)

    def error(degrees):
        maps = [
            RandomMaclaurin(kernel, 512, degrees=degrees, h01=h01, random_state=s).fit(X)
            for s in range(12)
        ]
        return np.sqrt(np.mean([kernel_error(m, X) ** 2 for m in maps]))

    assert error("optimal") < 1.1 * error("geometric")


# ---------------------------------------------------------------- degrees


@pytest.mark.parametrize("n_features", [1, 2, 3, 7, 17, 100, 1000])
def test_counts_of_least_error_are_as_good_as_any(n_features):
    rng = np.random.default_rng(n_features)
    for _ in range(20):
        terms = rng.exponential(size=4)
        m = moments(rng.exponential(size=4), means=rng.normal(size=4))
        m.variance[0] = 0.0
        counts, expected = least_error_counts(terms, m, n_features, constant=0)
        assert counts.sum() == n_features
        np.testing.assert_array_equal(counts, expected)

        def error(of_degrees, terms=terms, m=m):
            kept, dropped = slice(1, of_degrees.size), slice(of_degrees.size, None)
            bias = terms[dropped] @ m.mean_products[dropped, dropped] @ terms[dropped]
            return (terms[kept] ** 2 * m.variance[kept] / of_degrees[kept]).sum() + bias

        least = error(counts)
        if counts.size > 1:
            assert counts[0] == 1
        if n_features == 7:  # all others
            for size in range(2, 5):
                for cuts in itertools.combinations(range(1, 7), size - 1):
                    other = np.diff([0, *cuts, 7])
                    assert least <= error(other) * 1.02  # shares are rounded one by one


def test_degree_one_is_exact_if_that_takes_at_most_half_of_the_features():
    m = moments([0.0, 1.0, 1.0], means=[1.0, 1.0, 1.0])
    terms = np.array([1.0, 0.1, 5.0])
    options = {"constant": 0, "exact_at": {1: 16}}
    counts, _ = least_error_counts(terms, m, 40, **options)
    np.testing.assert_array_equal(counts, [1, 16, 23])
    counts, _ = least_error_counts(terms, m, 31, **options)
    assert counts[1] < 16
    # More of them would be of no use, so degree two gets the others although it adds error.
    m = moments([0.0, 1.0, 1e6], means=[1.0, 1.0, 1.0])
    counts, _ = least_error_counts(terms, m, 40, **options)
    np.testing.assert_array_equal(counts, [1, 16, 23])
    counts, _ = least_error_counts(terms, m, 31, **options)
    np.testing.assert_array_equal(counts, [1, 30])


def test_the_bias_of_least_error_is_the_rest_of_the_series():
    X, Y = leaning_pairs(6, lean=0.6)
    kernel = Polynomial(8)

    def make(seed):
        return RandomMaclaurin(kernel, 40, random_state=seed)

    last = int(make(0).fit(np.concatenate([X, Y])).degrees_.max())
    assert 1 < last < 8
    values = estimates(make, X, Y, 400)
    kept = Maclaurin(coefficients(kernel)[: last + 1])
    assert_unbiased(values, np.diag(kept(X, Y)))
    with pytest.raises(AssertionError, match="z-scores"):
        assert_unbiased(values, np.diag(kernel(X, Y)))
    fitted = make(0).fit(np.concatenate([X, Y]))
    norm = np.max(np.sum(np.concatenate([X, Y]) ** 2, axis=1))
    share = 1 - kept.function(np.array([norm])) / kernel.function(np.array([norm]))
    assert fitted.truncation_ == pytest.approx(share[0])


@pytest.mark.parametrize("n_components", [20, 100, 400])
def test_least_error_has_less_error_of_the_kernel_than_optimal_degrees(n_components):
    X = load_digits().data[:200]
    X = X / np.linalg.norm(X, axis=1, keepdims=True)

    def error(degrees):
        errors = [
            kernel_error(
                RandomMaclaurin(Polynomial(8), n_components, degrees=degrees, random_state=s).fit(
                    X
                ),
                X,
            )
            for s in range(12)
        ]
        return np.sqrt(np.mean(np.square(errors)))

    assert error("least_error") < 0.8 * error("optimal")


@pytest.mark.parametrize("n_components", [1, 2, 30])
def test_a_row_of_zeros_has_its_kernel_exactly(n_components):
    X = np.random.default_rng(0).normal(size=(30, 27)) / 5
    X[4] = 0
    Z = RandomMaclaurin(Polynomial(10), n_components, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z @ Z[4], 1.0)


def test_longer_rows_get_no_warning_where_degrees_are_left_out_on_purpose():
    X = np.random.default_rng(0).normal(size=(30, 27)) / 5
    fitted = RandomMaclaurin(Polynomial(10), 20, random_state=0).fit(X)
    assert fitted.truncation_ > 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.transform(1.05 * X)


def moments(variance, second=None, means=None) -> Moments:
    variance = np.asarray(variance, dtype=float)
    means = np.zeros(variance.size) if means is None else np.asarray(means, dtype=float)
    second = variance + means**2 if second is None else np.asarray(second, dtype=float)
    return Moments(variance, second, np.outer(means, means))


def test_counts_are_proportional_to_the_spread_of_a_degree():
    counts, expected = optimal_counts(np.array([1.0, 2.0, 1.0]), moments([1.0, 1.0, 4.0]), 50, 0)
    np.testing.assert_array_equal(counts, [10, 20, 20])
    np.testing.assert_array_equal(expected, counts)


@pytest.mark.parametrize("n_features", [1, 2, 3, 5, 17, 100, 1000])
def test_counts_are_as_good_as_any(n_features):
    rng = np.random.default_rng(n_features)
    for _ in range(20):
        terms = rng.exponential(size=3)
        m = moments(rng.exponential(size=3), means=rng.normal(size=3))
        counts, expected = optimal_counts(terms, m, n_features, 0)
        assert counts.sum() == n_features
        assert (expected > 0).all()
        if (counts == expected).all():
            cost = (terms**2 * m.variance / counts).sum()
            for i in range(3):
                for j in range(3):
                    other = counts.copy()
                    other[i] += 1
                    other[j] -= 1
                    if (other >= 1).all():
                        assert cost <= (terms**2 * m.variance / other).sum() * (1 + 1e-9)


def test_a_term_gets_what_makes_it_exact_if_that_pays():
    m = moments([1.0, 1.0])
    counts, _ = optimal_counts(np.ones(2), m, 100, 0, exact_at={0: 16})
    np.testing.assert_array_equal(counts, [16, 84])
    counts, _ = optimal_counts(np.array([0.1, 1.0]), m, 100, 0, exact_at={0: 90})
    np.testing.assert_array_equal(counts, [9, 91])
    counts, _ = optimal_counts(np.ones(2), m, 10, 0, exact_at={0: 16})
    np.testing.assert_array_equal(counts, [5, 5])


@pytest.mark.parametrize("d", [3, 16, 100])
def test_a_whole_block_of_degree_one_is_exact(d):
    X = np.random.default_rng(d).normal(size=(20, d)) / np.sqrt(d)
    fitted = unbiased(Polynomial(2), 600, random_state=0).fit(X)
    block = 1 << (d - 1).bit_length()
    linear = fitted.degrees_ == 1
    assert linear.sum() == block
    Z = fitted.transform(X)[:, linear]
    np.testing.assert_allclose(Z @ Z.T, 2 * X @ X.T, atol=1e-12)


def test_a_constant_gets_one_feature_and_rare_degrees_share():
    counts, _ = optimal_counts(np.ones(2), moments([0.0, 1.0], means=[1.0, 0.5]), 100, 0)
    np.testing.assert_array_equal(counts, [1, 99])
    terms = np.array([1.0, 1e-4, 1e-4, 1e-4, 1e-4])
    counts, expected = optimal_counts(terms, moments(np.ones(5)), 50, 0)
    assert counts.sum() == 50
    assert counts[0] >= 46
    assert (expected[1:] <= 1).all()


@pytest.mark.slow
def test_random_counts_have_their_expectations():
    terms = np.array([1.0, 0.2, 0.1, 0.05])
    m = moments(np.ones(4), means=np.ones(4))
    draws = [optimal_counts(terms, m, 2, seed) for seed in range(2000)]
    mean = np.mean([counts for counts, _ in draws], axis=0)
    np.testing.assert_allclose(mean, draws[0][1], atol=0.06)


@pytest.mark.parametrize("largest", [1e-6, 0.1, 1.0, 9.0, 50.0])
def test_an_infinite_series_is_cut_at_the_tolerance(largest):
    kernel = Exponential()
    series = cut_series(kernel, largest)
    whole = np.exp(largest)
    assert 1 - series.terms.sum() / whole <= 1.01 * TOLERANCE
    assert 1 - series.terms[:-1].sum() / whole > TOLERANCE


def test_a_finite_series_is_kept_whole():
    series = cut_series(Polynomial(40, coef0=0.0, gamma=3.0), 1e-4)
    np.testing.assert_array_equal(series.degrees, [40])
    np.testing.assert_allclose(series.logs, 40 * np.log(3e-4))
    np.testing.assert_allclose(cut_series(Maclaurin([0, 1, 0, 5]), 2.0).terms, [2.0, 40.0])


def test_slow_series_are_refused():
    with pytest.raises(ValueError, match=r"needs more than 500 terms for rows of norm 0\.9999"):
        RandomMaclaurin(VovkInfinite()).fit([[0.9999, 0.0]])


def test_longer_rows_than_in_fit_get_a_warning_where_it_matters():
    X = np.array([[0.5, 0.0], [0.0, 0.5]])
    exponential = unbiased(Exponential(), 64, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exponential.transform(1.2 * X)
        unbiased(Polynomial(5), 64, random_state=0).fit(X).transform(100 * X)
    with pytest.warns(UserWarning, match=r"longer than those seen in fit.*missing"):
        exponential.transform(20 * X)
    vovk = unbiased(VovkInfinite(), 64, random_state=0).fit(X)
    with pytest.raises(ValueError, match="norms below 1 only"):
        vovk.transform(2 * X)


def test_geometric_degrees_have_the_papers_probabilities():
    X = np.eye(3)
    kernel = Maclaurin([1.0, 0.0, 1.0, 1.0])
    fitted = RandomMaclaurin(kernel, 100_000, degrees="geometric", base=3.0, random_state=0).fit(X)
    p = np.array([3.0**-1, 0.0, 3.0**-3, 3.0**-4])
    counts = np.bincount(fitted.degrees_, minlength=4)
    assert counts[1] == 0
    expected = 100_000 * p / p.sum()
    assert np.abs(counts - expected).max() < 4.5 * np.sqrt(100_000) / 2


def test_geometric_features_grow():
    X = np.random.default_rng(0).normal(size=(4, 6))
    for projection in PROJECTIONS:
        few, many = (
            RandomMaclaurin(
                Polynomial(3), n, degrees="geometric", projection=projection, random_state=0
            ).fit_transform(X)
            for n in (50, 400)
        )
        np.testing.assert_allclose(
            np.sqrt(50) * few, np.sqrt(400) * many[:, :50], rtol=1e-12, atol=1e-12
        )


# ---------------------------------------------------------------- H0/1


def test_h01_columns_are_the_constant_and_the_row():
    X = np.random.default_rng(0).normal(size=(5, 4))
    kernel = Polynomial(3, coef0=2.0, gamma=0.5)
    fitted = RandomMaclaurin(kernel, 20, h01=True, random_state=0).fit(X)
    Z = fitted.transform(X)
    a = coefficients(kernel)
    np.testing.assert_allclose(Z[:, 0], np.sqrt(a[0]), rtol=1e-14)
    np.testing.assert_allclose(Z[:, 1:5], np.sqrt(a[1]) * X, rtol=1e-14)
    np.testing.assert_array_equal(fitted.degrees_[:5], [0, 1, 1, 1, 1])
    assert (fitted.degrees_[5:] >= 2).all()
    assert np.array_equal(fitted.transform(sp.csr_array(X)), Z)


@pytest.mark.parametrize("n_components", [5, 6, 20])
def test_h01_is_exact_for_a_linear_kernel(n_components):
    X = np.random.default_rng(0).normal(size=(5, 4))
    kernel = Polynomial(1, coef0=2.0)
    Z = RandomMaclaurin(kernel, n_components, h01=True).fit_transform(X)
    assert Z.shape == (5, n_components)
    np.testing.assert_allclose(Z @ Z.T, kernel(X), rtol=1e-12)


# ---------------------------------------------------------------- ranges


def test_high_degrees_stay_in_the_range_of_single_precision():
    # 40! and 12^40 leave it; the features do not.
    X = np.zeros((2, 3), dtype=np.float32)
    X[:, 0] = 3, 2.9
    fitted = RandomMaclaurin(Exponential(), 4096, random_state=0).fit(X)
    assert fitted.degrees_.max() > 25
    Z = fitted.transform(X)
    assert Z.dtype == np.float32
    np.testing.assert_allclose(Z @ Z.T, Exponential()(X), rtol=1e-4)


def test_powers_that_overflow_are_refused():
    X = np.full((3, 2), 1e5, dtype=np.float32)
    with pytest.raises(ValueError, match="overflows float32 for rows of norm 141421"):
        RandomMaclaurin(Polynomial(4)).fit(X)
    fitted = RandomMaclaurin(Polynomial(4)).fit(X.astype(float))
    with pytest.raises(ValueError, match=r"overflowed float32.*Scale the data down or pass float"):
        fitted.transform(np.full((3, 2), 1e20, dtype=np.float32))
    assert np.isfinite(fitted.transform(X.astype(float))).all()


@pytest.mark.parametrize("options", [{}, {"projection": "rademacher"}, {"h01": True}], ids=str)
def test_rows_of_zeros_have_the_constant_alone(options):
    X = np.zeros((4, 3))
    for kernel in (Polynomial(2), Exponential(), Maclaurin([3.0])):
        if options.get("h01") and isinstance(kernel, Maclaurin):
            continue
        Z = RandomMaclaurin(kernel, 40, random_state=0, **options).fit_transform(X)
        np.testing.assert_allclose(Z @ Z.T, kernel(X), rtol=1e-6)


def test_degrees_that_no_number_of_features_could_serve_get_a_sentence():
    X = np.random.default_rng(0).normal(size=(20, 30)) / 5
    for kernel in (Polynomial(5000), Polynomial(5000, coef0=0.0), VovkPolynomial(5001)):
        with pytest.raises(ValueError, match=r"needs more than 500 terms .* of a lower degree"):
            RandomMaclaurin(kernel, 64).fit(3 * X)
    with pytest.raises(ValueError, match="too high; 500 is a sensible limit"):
        RandomMaclaurin(Polynomial(10**9), 64).fit(X)


def test_a_high_degree_whose_low_terms_suffice_is_served():
    # (1 + t / 5000)^5000 is next to exp(t).
    X, Y = leaning_pairs(3)
    kernel = Polynomial(5000, gamma=1 / 5000)
    values = estimates(lambda s: unbiased(kernel, 256, random_state=s), X, Y, 64)
    assert_unbiased(values, np.diag(kernel(X, Y)))
    fitted = unbiased(kernel, 256).fit(X)
    assert fitted.degrees_.max() < 20
    assert 0 < fitted.truncation_ < TOLERANCE


def test_truncation_is_what_is_missing_where_there_is_no_variance():
    X = np.array([[0.5], [1.0]])
    fitted = unbiased(Exponential(), 64, random_state=0).fit(X)
    Z = fitted.transform(X)
    missing = 1 - (Z[1] @ Z[1]) / np.e
    assert fitted.truncation_ == pytest.approx(missing, rel=1e-6)
    assert 1e-9 < missing < TOLERANCE
    assert RandomMaclaurin(Polynomial(3), 64).fit(X).truncation_ == 0


# ---------------------------------------------------------------- normal directions


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "n_features"), [(1, 1), (3, 7), (40, 333)])
def test_gaussian_features_equal_explicit_products(d, n_features, dtype):
    rng = np.random.default_rng(d)
    degrees = rng.integers(0, 4, size=n_features).astype(np.int32)
    weights = rng.normal(size=n_features)
    X = (rng.normal(size=(21, d)) / np.sqrt(d)).astype(dtype)
    products = GaussianProducts(degrees, weights, d, seed=5, dtype=dtype, input_scale=0.5)
    out = np.empty((21, n_features), dtype=dtype)
    assert products.operator().write(X, out)
    expected = np.tile(weights, (21, 1))
    for j in range(degrees.max()):
        expected[:, degrees > j] *= 0.5 * X.astype(float) @ products.factor(j).T
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
    sparse = np.empty_like(out)
    assert products.operator().write(sp.csr_array(X), sparse)
    assert out.tobytes() == sparse.tobytes()


@pytest.mark.parametrize("degrees", ALLOCATIONS)
@pytest.mark.parametrize(
    "options",
    [{}, {"h01": True}, {"kernel": Exponential(1.5)}, {"kernel": Maclaurin([0.0, 1.0, 0.0, 2.0])}],
    ids=str,
)
def test_gaussian_directions_are_unbiased(options, degrees):
    X, Y = close_pairs(4, distance=0.7)
    options = {"kernel": Polynomial(3), **options}
    values = estimates(
        lambda s: RandomMaclaurin(
            n_components=512, projection="gaussian", degrees=degrees, random_state=s, **options
        ),
        X,
        Y,
        100,
    )
    expected = np.diag(options["kernel"](X, Y))
    assert_unbiased(values, expected, noticed=1.15)


@pytest.mark.parametrize("n_components", [1, 3])
@pytest.mark.slow
def test_a_few_gaussian_features_are_unbiased(n_components):
    X, Y = close_pairs(3, distance=0.5)
    kernel = Polynomial(2)
    values = estimates(
        lambda s: unbiased(kernel, n_components, projection="gaussian", random_state=s),
        X,
        Y,
        1500,
    )
    assert_unbiased(values, np.diag(kernel(X, Y)))


@pytest.mark.slow
def test_the_variance_of_gaussian_directions_is_as_stated():
    X, Y = leaning_pairs(6, lean=0.9)
    t, of_signs = pair_moments(X, Y)
    m = (X**2).sum(axis=1) * (Y**2).sum(axis=1) + 2 * t**2
    values = estimates(
        lambda s: RandomMaclaurin(
            Polynomial(2, coef0=0.0), 64, projection="gaussian", random_state=s
        ),
        X,
        Y,
        1500,
    )
    assert_spread(values, (m**2 - t**4) / 64)
    # The moment of signs is less here, where rows lean toward one column.
    with pytest.raises(AssertionError, match="variance"):
        assert_spread(values, (of_signs**2 - t**4) / 64)


def test_gaussian_features_grow():
    X = np.random.default_rng(0).normal(size=(4, 6))
    few, many = (
        RandomMaclaurin(
            Polynomial(3), n, degrees="geometric", projection="gaussian", random_state=0
        ).fit_transform(X)
        for n in (50, 400)
    )
    np.testing.assert_allclose(np.sqrt(50) * few, np.sqrt(400) * many[:, :50], rtol=1e-12)


# ---------------------------------------------------------------- maps inside a composition

INNER_MAPS = [
    (Gaussian(1.0), RandomKitchenSinks(features="offset", frequencies="orthogonal")),
    (Gaussian(1.0), Fastfood(features="local")),
    (Gaussian(1.0), RBFSampler(gamma=0.5)),
    (Polynomial(2), RandomMaclaurin(degrees="geometric", projection="gaussian")),
    (Polynomial(2, coef0=0.0), TensorSketch(output="frequency")),
    (Polynomial(1, coef0=0.0), SRHT(1)),
]


@pytest.mark.parametrize("degrees", ALLOCATIONS)
@pytest.mark.parametrize(("inner", "inner_map"), INNER_MAPS, ids=str)
@pytest.mark.slow
def test_compositions_with_a_map_of_the_users_are_unbiased(inner, inner_map, degrees):
    X, Y = leaning_pairs(3, norm=0.8)
    kernel = Composition(Polynomial(2, coef0=0.5), inner)
    expected = np.diag(kernel(X, Y))
    values = estimates(
        lambda s: RandomMaclaurin(
            kernel, 256, degrees=degrees, inner_map=inner_map, random_state=s
        ),
        X,
        Y,
        100,
    )
    assert_unbiased(values, expected, noticed=1.3)


class Chessboard(Kernel):
    """The product of the signs of the first columns, a kernel that the package has no map for."""

    def check_parameters(self, n_columns):
        pass

    def _gram(self, X, Y):
        return np.sign(X[:, :1]) @ np.sign(Y[:, :1]).T


class SignOfRow(TransformerMixin, BaseEstimator):
    """Copies of the sign of the first column, which need no luck at all."""

    def __init__(self, n_components=1, random_state=None):
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.repeat(np.sign(X[:, :1]), self.n_components, axis=1) / self.n_components**0.5


def test_a_kernel_without_a_map_is_served_by_the_users():
    X, Y = leaning_pairs(3, norm=0.8)
    kernel = Composition(Polynomial(2), Chessboard())
    with pytest.raises(ValueError, match="needs an inner_map"):
        RandomMaclaurin(kernel, 32).fit(X)
    values = estimates(
        lambda s: unbiased(kernel, 256, inner_map=SignOfRow(), random_state=s), X, Y, 100
    )
    assert_unbiased(values, np.diag(kernel(X, Y)))


@pytest.mark.parametrize(
    ("kernel", "inner_map", "sentence"),
    [
        (Polynomial(2), SRHT(4), "inner_map is for a Composition"),
        (None, RandomKitchenSinks(), "Use features='offset'"),
        (None, Fastfood(), "Use features='offset'"),
        (Composition(inner=Polynomial(2)), Fastfood(), "degrees='geometric'"),
        (Composition(inner=Polynomial(2)), RandomMaclaurin(), "degrees='geometric' without h01"),
        (Composition(inner=Polynomial(2)), TensorSketch(n_sketches=2), "n_sketches=1"),
        (Composition(inner=Exponential()), TensorSketch(), "for a Polynomial kernel"),
        (None, "rbf", "inner_map must be a transformer with parameters n_components"),
        (None, SRHT, "inner_map must be a transformer with parameters n_components"),
        (None, StandardScaler(), "inner_map must be a transformer with parameters n_components"),
    ],
    ids=repr,
)
def test_an_inner_map_that_will_not_do_gets_a_sentence(kernel, inner_map, sentence):
    kernel = Composition(Polynomial(2), Gaussian(1.0)) if kernel is None else kernel
    with pytest.raises(ValueError, match=sentence):
        RandomMaclaurin(kernel, 32, inner_map=inner_map).fit(np.ones((3, 2)))


def test_the_map_inside_decides_whether_there_can_be_a_file(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 4))
    kernel = Composition(Polynomial(2), Gaussian(1.0))
    sinks = RandomKitchenSinks(features="offset", frequencies="quasi")
    fitted = RandomMaclaurin(kernel, 64, inner_map=sinks, random_state=0).fit(X)
    kitchenette.save(fitted, tmp_path / "model")
    again = kitchenette.load(tmp_path / "model")
    assert again.specification_ == fitted.specification_
    assert np.array_equal(again.transform(X), fitted.transform(X))
    foreign = RandomMaclaurin(kernel, 64, inner_map=RBFSampler(gamma=0.5), random_state=0).fit(X)
    with pytest.raises(kitchenette.ModelFileError, match="RBFSampler"):
        kitchenette.save(foreign, tmp_path / "model")
