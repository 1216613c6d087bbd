"""Random Kitchen Sinks: definition, expectation, variance."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from scipy import special, stats
from unbiased import (
    RADIAL_KERNELS,
    assert_spread,
    assert_unbiased,
    close_enough,
    close_pairs,
    estimates,
)

from kitchenette import RandomKitchenSinks
from kitchenette.kernels import Cauchy, Gaussian, Laplacian, Matern

KERNELS = [*RADIAL_KERNELS, Laplacian(3.0), Cauchy(1.4)]
FREQUENCIES = ["independent", "orthogonal", "quasi"]
FEATURES = ["sincos", "offset"]


# ---------------------------------------------------------------- oracle


@pytest.mark.native
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("n_components", [1, 2, 7, 64, 127, 130, 301])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 3), (5, 16), (14, 40), (200, 9)])
def test_features_equal_the_explicit_formula(simd, features, n_components, n, d):
    X = np.random.default_rng(n).normal(size=(n, d))
    sinks = RandomKitchenSinks(Gaussian(1.1), n_components, features=features, random_state=3)
    Z = sinks.fit_transform(X)
    z = X @ sinks.frequencies_.T
    if features == "sincos":
        unpaired = sinks.offsets_[0] if n_components % 2 else 0.0
        expected = oracles.sincos(z, n_components, unpaired)
    else:
        expected = oracles.offset(z, sinks.offsets_)
    np.testing.assert_allclose(Z, expected, atol=1e-13)
    single = sinks.transform(X.astype(np.float32))
    np.testing.assert_allclose(single, expected, rtol=0, atol=2e-5)


def test_orthogonal_frequencies_are_orthogonal_in_blocks():
    sinks = RandomKitchenSinks(Gaussian(1.0), 64, frequencies="orthogonal", random_state=0)
    W = sinks.fit(np.ones((1, 8))).frequencies_
    for start in range(0, 32, 8):
        G = W[start : start + 8] @ W[start : start + 8].T
        np.testing.assert_allclose(G - np.diag(np.diag(G)), 0, atol=1e-12)


@pytest.mark.parametrize("frequencies", FREQUENCIES)
def test_each_coordinate_of_a_frequency_has_the_spectrums_marginal(frequencies):
    laws = [
        (Gaussian(2.0), stats.norm(scale=0.5)),
        (Laplacian(2.0), stats.cauchy(scale=0.5)),
        (Cauchy(2.0), stats.laplace(scale=0.5)),
        (Matern(1.5, 2.0), stats.t(3, scale=0.5)),
    ]
    for kernel, law in laws:
        sinks = RandomKitchenSinks(
            kernel, 4096, frequencies=frequencies, features="offset", random_state=5
        )
        W = sinks.fit(np.ones((1, 5))).frequencies_
        for column in W.T:
            assert stats.kstest(column, law.cdf).pvalue > 1e-4


# ---------------------------------------------------------------- expectation


@pytest.mark.parametrize("frequencies", FREQUENCIES)
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("d", [1, 3, 16])
@pytest.mark.slow
def test_unbiased_for_every_kernel_and_option(kernel, frequencies, features, d):
    X, Y = close_pairs(d, distance=close_enough(kernel, d))
    samples = estimates(
        lambda s: RandomKitchenSinks(
            kernel, 129, frequencies=frequencies, features=features, random_state=s
        ),
        X,
        Y,
        100,
    )
    assert_unbiased(samples, np.diag(kernel(X, Y)))


@pytest.mark.parametrize("frequencies", FREQUENCIES)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("d", [100, 784, 1025])
@pytest.mark.slow
def test_unbiased_for_wide_rows_of_large_norm(kernel, frequencies, d):
    X, Y = close_pairs(d, norm=10.0, distance=close_enough(kernel, d))
    samples = estimates(
        lambda s: RandomKitchenSinks(kernel, 64, frequencies=frequencies, random_state=s), X, Y, 64
    )
    assert_unbiased(samples, np.diag(kernel(X, Y)))


# ---------------------------------------------------------------- variance


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("d", [1, 16])
@pytest.mark.slow
def test_the_spread_is_the_stated_variance(kernel, d):
    X, Y = close_pairs(d, distance=close_enough(kernel, d))
    k, k2 = np.diag(kernel(X, Y)), np.diag(kernel(X, 2 * Y - X))
    D = 64
    for features, variance in [
        ("sincos", (1 + k2 - 2 * k**2) / D),
        ("offset", (1 + k2 / 2 - k**2) / D),
    ]:
        samples = estimates(
            lambda s, f=features: RandomKitchenSinks(kernel, D, features=f, random_state=s),
            X,
            Y,
            400,
        )
        assert_spread(samples, variance)


@pytest.mark.parametrize(("frequencies", "d"), [("orthogonal", 16), ("quasi", 3)])
def test_orthogonal_and_quasi_random_frequencies_spread_less(frequencies, d):
    X, Y = close_pairs(d)
    spreads = [
        estimates(
            lambda s, f=f: RandomKitchenSinks(Gaussian(1.0), 128, frequencies=f, random_state=s),
            X,
            Y,
            60,
        ).var(axis=0)
        for f in ("independent", frequencies)
    ]
    assert (spreads[1] < 0.5 * spreads[0]).all()


@pytest.mark.parametrize(
    ("d", "n_components"),
    [*(pytest.param(*size, marks=pytest.mark.slow) for size in ((4, 64), (16, 128))), (16, 20)],
)
def test_orthogonal_frequencies_have_the_stated_variance(d, n_components):
    X, Y = close_pairs(d, distance=2.0)
    v2 = np.sum((X - Y) ** 2, axis=1)
    sizes = np.full(n_components // 2 // d, d) if n_components >= 2 * d else [n_components // 2]
    partners = np.sum(np.multiply(sizes, np.subtract(sizes, 1))) / np.sum(sizes)
    independent = (1 - np.exp(-v2)) ** 2 / n_components
    less = 2 * partners * (special.hyp1f1(d, d / 2, -v2 / 2) - np.exp(-v2)) / n_components
    samples = estimates(
        lambda s: RandomKitchenSinks(
            Gaussian(1.0), n_components, frequencies="orthogonal", random_state=s
        ),
        X,
        Y,
        800,
    )
    assert_spread(samples, independent + less)
    with pytest.raises(AssertionError, match="variance"):
        assert_spread(samples, independent)


# ---------------------------------------------------------------- growth and shape


@pytest.mark.parametrize("frequencies", FREQUENCIES)
@pytest.mark.parametrize("features", FEATURES)
def test_a_larger_map_begins_with_the_smaller_one(frequencies, features):
    X = np.random.default_rng(0).normal(size=(4, 5))
    small, large = (
        RandomKitchenSinks(
            Gaussian(1.0), D, frequencies=frequencies, features=features, random_state=0
        ).fit_transform(X)
        * np.sqrt(D)
        for D in (40, 400)
    )
    np.testing.assert_allclose(small, large[:, :40], rtol=1e-10, atol=1e-12)


def test_quasi_refuses_more_columns_than_sobol_has():
    with pytest.raises(ValueError, match=r"dimensions of Sobol points.*use 'independent'"):
        RandomKitchenSinks(Gaussian(1.0), 4, frequencies="quasi").fit(np.ones((1, 21202)))
