"""Complex-to-real products and the exact variances of features that share Hadamard transforms."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from scipy.linalg import hadamard
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits
from unbiased import assert_spread, assert_unbiased, close_pairs, estimates, leaning_pairs

import kitchenette
from kitchenette import CRAFTMap, RandomKitchenSinks, RandomMaclaurin
from kitchenette.bounds import variance
from kitchenette.kernels import (
    Composition,
    Exponential,
    Gaussian,
    Laplacian,
    Maclaurin,
    Polynomial,
)
from kitchenette.maps.degrees import even_counts
from kitchenette.metrics import kernel_error
from kitchenette.sketching.products import draw_complex_products, pair_order


def made(kernel, n_components, **options):
    options = {"projection": "complex", "degrees": "optimal", **options}
    return RandomMaclaurin(kernel, n_components, **options)


def in_order(degrees):
    degrees = np.asarray(degrees, dtype=np.int32)
    return degrees[pair_order(degrees)[0]]


# ---------------------------------------------------------------- oracles


def test_features_of_a_degree_are_paired_but_for_the_lowest():
    degrees = np.array([3, 1, 2, 0, 2, 3, 1, 3, 2])
    order, n_pairs = pair_order(degrees)
    assert n_pairs == 2
    np.testing.assert_array_equal(degrees[order], [3, 3, 2, 2, 3, 2, 1, 1, 0])
    assert sorted(order) == list(range(9))
    assert pair_order(np.zeros(0, dtype=int))[1] == 0


def test_counts_become_even_where_they_can():
    chosen = np.array([False, False, True, True, True, True])
    counts = np.array([1, 3, 5, 4, 7, 9])
    np.testing.assert_array_equal(even_counts(counts, chosen), [1, 3, 5, 4, 8, 8])
    counts = np.array([1, 3, 5, 5, 4, 8])
    np.testing.assert_array_equal(even_counts(counts, chosen)[2:], [6, 4, 4, 8])
    np.testing.assert_array_equal(even_counts(np.array([0, 0, 1, 1, 0, 0]), chosen)[2:4], [1, 1])
    counts = np.array([0, 0, 1, 1, 1, 99])
    np.testing.assert_array_equal(even_counts(counts, chosen)[2:], [2, 2, 2, 96])
    X = np.random.default_rng(0).normal(size=(50, 20)) / 5
    for degrees in ("optimal", "least_error"):
        fitted = made(Polynomial(6), 999, degrees=degrees, random_state=0).fit(X)
        counts = np.bincount(fitted.degrees_)
        assert counts.sum() == 999
        assert np.count_nonzero(counts[2:] % 2) <= 1


@pytest.mark.native
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("d", "n_features"),
    [(1, 9), (2, 50), (3, 50), (5, 51), (100, 333), (129, 1000), (784, 2048)],
)
def test_features_are_parts_of_products_with_roots_of_unity(simd, d, n_features, dtype):
    rng = np.random.default_rng(d)
    degrees = in_order(rng.integers(0, 5, size=n_features))
    by_degree = rng.uniform(0.5, 2, size=5)
    X = (rng.normal(size=(21, d)) / np.sqrt(d)).astype(dtype)
    products = draw_complex_products(
        degrees, by_degree[degrees], d, seed=3, dtype=dtype, input_scale=0.5
    )
    out = np.empty((21, n_features), dtype=dtype)
    assert products.operator().write(X, out)
    expected = oracles.complex_products(X, products, by_degree[degrees])
    tolerance = {np.float32: 2e-5, np.float64: 1e-12}[dtype]
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
    one_by_one = np.empty_like(out)
    for i in range(len(X)):
        assert products.operator().write(X[i : i + 1], one_by_one[i : i + 1])
    assert out.tobytes() == one_by_one.tobytes()


def test_given_the_roots_the_mean_over_all_rows_is_exact():
    x, y = np.random.default_rng(0).normal(size=(2, 100))
    degrees = np.full(4, 2, dtype=np.int32)
    products = draw_complex_products(degrees, np.ones(4), 100, seed=0, dtype=np.float64)
    roots = (products.signs[::2] + 1j * products.signs[1::2])[:, :100]
    assert (np.abs(roots) == 1).all()
    z = [
        (hadamard(128)[:, :100] @ (c * x)) * (hadamard(128)[:, :100] @ (c * y)).conj()
        for c in roots
    ]
    assert np.isclose(np.mean(np.multiply.outer(z[0], z[1])), (x @ y) ** 2, rtol=1e-12)


def test_all_four_roots_are_as_frequent():
    degrees = np.full(8, 4, dtype=np.int32)
    products = draw_complex_products(degrees, np.ones(8), 4096, seed=1, dtype=np.float64)
    roots = products.signs[::2] + 1j * products.signs[1::2]
    for root in (1, 1j, -1, -1j):
        assert abs(np.mean(roots == root) - 0.25) < 4.5 * np.sqrt(0.25 * 0.75 / roots.size)


@pytest.mark.native
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Polynomial(4), Polynomial(3, 0.0), Exponential()], ids=str)
@pytest.mark.parametrize("n_components", [1, 2, 65, 300])
def test_batches_threads_and_sparseness_do_not_change_a_bit(simd, n_components, kernel, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(53, 37)) / 6).astype(dtype)
    X[rng.random(X.shape) < 0.7] = 0
    X[3] = 0
    maclaurin = made(kernel, n_components, random_state=0).fit(X)
    whole = maclaurin.transform(X)
    assert whole.dtype == dtype
    assert whole.shape == (53, n_components)
    for parts in (np.split(np.arange(53), 53), np.split(np.arange(53), [19, 20])):
        again = np.concatenate([maclaurin.transform(X[part]) for part in parts])
        assert whole.tobytes() == again.tobytes()
    assert whole.tobytes() == maclaurin.transform(sp.csr_array(X)).tobytes()
    with threadpool_limits(1):
        assert whole.tobytes() == maclaurin.transform(X).tobytes()


# ---------------------------------------------------------------- expectations

KERNELS = [
    *[Polynomial(degree) for degree in (1, 2, 3, 5)],
    Polynomial(3, coef0=0.0, gamma=0.5),
    Polynomial(8, coef0=0.0),
    Exponential(1.5),
    Maclaurin([0.0, 1.0, 0.0, 2.0]),
]


@pytest.mark.parametrize("norm", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("degrees", ["optimal", "geometric"])
@pytest.mark.parametrize("h01", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.slow
def test_unbiased(kernel, h01, degrees, norm):
    if h01 and kernel.log_coefficients(np.arange(2)).max() == -np.inf:
        return
    X, Y = leaning_pairs(5, norm=norm)
    values = estimates(
        lambda s: made(kernel, 255, degrees=degrees, h01=h01, base=1.3, random_state=s), X, Y, 64
    )
    assert_unbiased(values, np.diag(kernel(X, Y)))


def test_unbiased_for_any_width_and_few_features():
    for d, n in [(1, 7), (3, 3), (16, 64), (100, 501)]:
        X, Y = close_pairs(d, distance=0.5)
        for kernel in (Polynomial(3), Polynomial(2, coef0=0.0)):
            values = estimates(lambda s, k=kernel, n=n: made(k, n, random_state=s), X, Y, 200)
            assert_unbiased(values, np.diag(kernel(X, Y)))


def test_wrong_constants_are_noticed():
    X, Y = close_pairs(16, distance=0.5)
    values = estimates(lambda s: made(Polynomial(3, 0.0), 1024, random_state=s), X, Y, 100)
    assert_unbiased(values, np.diag(Polynomial(3, 0.0)(X, Y)), noticed=1.15)


# ---------------------------------------------------------------- variances

CASES = {
    "hadamard": (lambda s: RandomMaclaurin(Polynomial(2, 0.0), 64, random_state=s), 16),
    "hadamard, short": (lambda s: RandomMaclaurin(Polynomial(2, 0.0), 13, random_state=s), 16),
    "hadamard, narrow": (lambda s: RandomMaclaurin(Polynomial(3, 0.0), 33, random_state=s), 3),
    "hadamard, series": (
        lambda s: made(Polynomial(3), 64, projection="hadamard", random_state=s),
        16,
    ),
    "hadamard, geometric": (
        lambda s: RandomMaclaurin(Polynomial(2), 64, degrees="geometric", random_state=s),
        16,
    ),
    "complex": (lambda s: made(Polynomial(2, 0.0), 64, random_state=s), 16),
    "complex, short": (lambda s: made(Polynomial(2, 0.0), 13, random_state=s), 16),
    "complex, narrow": (lambda s: made(Polynomial(3, 0.0), 33, random_state=s), 3),
    "complex, series": (lambda s: made(Polynomial(3), 64, random_state=s), 16),
    "complex, geometric": (
        lambda s: made(Polynomial(2), 64, degrees="geometric", random_state=s),
        16,
    ),
    "complex, h01": (lambda s: made(Polynomial(3), 64, h01=True, random_state=s), 16),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_the_variance_is_the_spread_over_seeds(name):
    make, d = CASES[name]
    X, Y = leaning_pairs(d, lean=0.7)
    values = estimates(make, X, Y, 2000)
    exact = np.diag(variance(make(0).fit(np.concatenate([X, Y])), X, Y))
    assert_spread(values, exact)
    for wrong in (1 / 1.5, 1.5):
        with pytest.raises(AssertionError, match="variance"):
            assert_spread(values, wrong * exact)


@pytest.mark.slow
def test_features_sampled_without_replacement_have_less_variance_than_independent_ones():
    X, Y = leaning_pairs(16, lean=0.5)
    exact, independent = (
        np.diag(
            variance(
                RandomMaclaurin(Polynomial(1, 0.0), 12, projection=kind, random_state=0).fit(X),
                X,
                Y,
            )
        )
        for kind in ("hadamard", "rademacher")
    )
    np.testing.assert_allclose(exact, independent * (16 - 12) / 15)
    values = estimates(
        lambda s: RandomMaclaurin(Polynomial(1, 0.0), 12, random_state=s), X, Y, 1000
    )
    assert_spread(values, exact)
    with pytest.raises(AssertionError, match="variance"):
        assert_spread(values, independent)


def test_a_whole_block_of_degree_one_has_no_variance():
    X = np.random.default_rng(0).normal(size=(9, 13)) / 4
    for projection in ("hadamard", "complex"):
        fitted = RandomMaclaurin(Polynomial(1, 0.0), 16, projection=projection, random_state=0)
        assert variance(fitted.fit(X), X).max() < 1e-12
        Z = fitted.transform(X)
        np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-12)


def test_variances_are_known_for_every_kernel_of_one_degree():
    rng = np.random.default_rng(0)
    for _ in range(300):
        d, degree, D = rng.integers(1, 40), rng.integers(1, 9), rng.integers(1, 3000)
        X = rng.normal(size=(20, d)) * rng.uniform(0.1, 3) / np.sqrt(d)
        kernel = Polynomial(int(degree), 0.0, gamma=rng.uniform(0.1, 2))
        for projection in ("hadamard", "complex"):
            fitted = RandomMaclaurin(kernel, int(D), projection=projection, random_state=0).fit(X)
            assert np.isfinite(variance(fitted, X)).all()


COMPOSED = {
    "laplacian": (Composition(Polynomial(2, 0.5), Laplacian(2.0)), {}),
    "gaussian": (
        Composition(Polynomial(2, 0.5), Gaussian(2.0)),
        {"inner_map": RandomKitchenSinks(features="offset")},
    ),
    "polynomial": (
        Composition(Polynomial(2, 0.5), Polynomial(1, 0.3)),
        {"projection": "rademacher"},
    ),
    "polynomial of normals": (
        Composition(Polynomial(2, 0.5), Polynomial(1, 0.3)),
        {"projection": "gaussian", "degrees": "geometric"},
    ),
}


@pytest.mark.parametrize("name", COMPOSED)
@pytest.mark.slow
def test_variances_of_compositions_are_the_spread_over_seeds(name):
    kernel, options = COMPOSED[name]
    X, Y = close_pairs(4, distance=1.0)

    def make(seed):
        return RandomMaclaurin(kernel, 256, random_state=seed, **{"degrees": "optimal", **options})

    values = estimates(make, X, Y, 1000)
    exact = np.diag(variance(make(0).fit(np.concatenate([X, Y])), X, Y))
    assert_unbiased(values, np.diag(kernel(X, Y)))
    assert_spread(values, exact)
    with pytest.raises(AssertionError, match="variance"):
        assert_spread(values, 1.6 * exact)


# ---------------------------------------------------------------- errors of the kernel


def digits(n):
    X = load_digits().data[:n]
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def mean_error(make, X, n_seeds=8):
    return np.sqrt(np.mean([kernel_error(make(s).fit(X), X) ** 2 for s in range(n_seeds)]))


@pytest.mark.parametrize(
    ("kernel", "most"), [(Polynomial(3), 0.85), (Polynomial(4, 0.0), 0.75)], ids=str
)
def test_complex_products_have_less_error_than_real_ones(kernel, most):
    X = digits(200)
    real, complex_ones = (
        np.sqrt(variance(made(kernel, 2048, projection=p, random_state=0).fit(X), X).mean())
        for p in ("hadamard", "complex")
    )
    assert complex_ones < most * real


@pytest.mark.slow
def test_compact_maps_of_complex_products_have_less_error():
    X, kernel = digits(200), Polynomial(8, coef0=0.0)
    real = mean_error(lambda s: CRAFTMap(RandomMaclaurin(kernel, 8192), 1024, random_state=s), X)
    paired = mean_error(lambda s: CRAFTMap(made(kernel, 8192), 1024, random_state=s), X)
    assert paired < 0.75 * real


# ---------------------------------------------------------------- files and sentences


@pytest.mark.parametrize("n_components", [1, 2, 63, 300])
def test_files_and_sizes(n_components, tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 6)) / 3
    for kernel in (Polynomial(3), Exponential()):
        fitted = made(kernel, n_components, random_state=0).fit(X)
        kitchenette.save(fitted, tmp_path / "model")
        again = kitchenette.load(tmp_path / "model")
        assert again.specification_ == fitted.specification_
        assert np.array_equal(again.transform(X), fitted.transform(X))
        assert fitted.degrees_.shape == (n_components,)


@pytest.mark.parametrize(
    ("feature_map", "sentence"),
    [
        (made(Composition(), 8), "projection='complex' needs a dot-product kernel"),
        (
            RandomMaclaurin(
                Composition(inner=Polynomial(2)),
                inner_map=RandomMaclaurin(degrees="geometric", projection="complex"),
            ),
            "and another projection",
        ),
    ],
)
def test_compositions_of_complex_products_are_refused(feature_map, sentence):
    with pytest.raises(ValueError, match=sentence):
        feature_map.fit(np.ones((3, 2)))


@pytest.mark.native
def test_overflow_gets_a_sentence():
    X = np.ones((20, 3), dtype=np.float32)
    maclaurin = made(Polynomial(5), 64, random_state=0).fit(X)
    X[13] = 1e10
    with pytest.raises(ValueError, match="overflowed float32"):
        maclaurin.transform(X)
    with pytest.raises(ValueError, match="overflowed float32"):
        maclaurin.transform(X[13:14])
