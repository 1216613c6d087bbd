"""Tensor Sketch: definition, expectation, variance."""

from __future__ import annotations

import itertools

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits
from unbiased import assert_spread, assert_unbiased, close_pairs, estimates

import kitchenette
from kitchenette import TensorSketch
from kitchenette.kernels import (
    Exponential,
    Gaussian,
    Maclaurin,
    Matern,
    Polynomial,
    VovkInfinite,
    VovkPolynomial,
)
from kitchenette.sketching.count_sketch import real_spectrum, reversed_fractions, transform_plan

OUTPUTS = ["time", "frequency"]
SIZES = [1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 64, 100, 127, 128]


def extended(kernel, X):
    """Rows whose inner products to the power of the degree are the kernel."""
    X = np.sqrt(kernel.gamma) * np.asarray(X, dtype=float)
    if kernel.coef0 == 0:
        return X
    return np.hstack([X, np.full((len(X), 1), np.sqrt(kernel.coef0))])


def stated_variance(kernel, X, Y, D):
    X, Y = extended(kernel, X), extended(kernel, Y)
    p, q = kernel.degree, 1 if D % 2 else 2
    s = np.sum(X**2 * Y**2, axis=1)
    a = np.sum(X * Y, axis=1) ** 2
    b = np.sum(X**2, axis=1) * np.sum(Y**2, axis=1) - s
    c = a - s
    return ((a + b) ** p + (a + c) ** p - 2 * a**p) / D + q * (
        (a + b + c) ** p - (a + b) ** p - (a + c) ** p + a**p
    ) / D**2


def kernel_of_pairs(kernel, X, Y):
    return np.diag(kernel(X, Y))


# ---------------------------------------------------------------- oracle


@pytest.mark.native
@pytest.mark.parametrize("coef0", [0.0, 0.7])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("n_components", SIZES)
def test_features_are_a_count_sketch_of_the_tensor_power(simd, n_components, degree, coef0):
    kernel = Polynomial(degree, coef0, gamma=1.3)
    X = np.random.default_rng(degree).normal(size=(11, 3))
    sketch = TensorSketch(kernel, n_components, random_state=5)
    Z = sketch.fit_transform(X)
    expected = oracles.tensor_sketch(
        extended(kernel, X), sketch.buckets_, sketch.signs_, n_components
    )
    scale = np.abs(expected).max()
    np.testing.assert_allclose(Z, expected, atol=1e-13 * scale)
    np.testing.assert_allclose(sketch.transform(X.astype(np.float32)), expected, atol=4e-6 * scale)
    spectrum = sketch.set_params(output="frequency").fit_transform(X)
    expected = expected @ oracles.real_fourier_matrix(n_components).T
    np.testing.assert_allclose(spectrum, expected, atol=2e-13 * scale)
    np.testing.assert_allclose(sketch.transform(X.astype(np.float32)), expected, atol=8e-6 * scale)


@pytest.mark.native
@pytest.mark.parametrize(
    ("n_components", "n_columns"),
    [
        *((size, 40) for size in (512, 1000, 1009, 1024, 2048, 4096, 8192, 65536)),
        *((size, 300) for size in (2048, 4096, 8192, 16384)),
    ],
)
def test_long_sketches_agree_with_numpys_transforms(simd, n_components, n_columns):
    X = np.random.default_rng(0).normal(size=(9, n_columns))
    degree = 3 if n_components % 2 == 0 else 7  # the latter by chirps
    sketch = TensorSketch(Polynomial(degree, coef0=0), n_components, random_state=5).fit(X)
    spectrum = np.ones((9, n_components // 2 + 1), dtype=complex)
    for buckets, signs in zip(sketch.buckets_, sketch.signs_, strict=True):
        C = np.zeros((n_components, 9))
        np.add.at(C, buckets, (X * signs).T)
        spectrum *= np.fft.rfft(C.T)
    expected = np.fft.irfft(spectrum, n_components)
    scale = np.linalg.norm(expected, axis=1).max()
    np.testing.assert_allclose(sketch.transform(X), expected, atol=1e-14 * scale)
    np.testing.assert_allclose(sketch.transform(X.astype(np.float32)), expected, atol=2e-6 * scale)


def test_no_transform_is_longer_than_the_plan_promises():
    assert transform_plan(4096, 7, False) == (4096, False)
    assert transform_plan(4096, 7, True) == (4096, False)
    assert transform_plan(4000, 2, False) == (8192, False)
    assert transform_plan(4000, 2, True) == (8192, True)
    assert transform_plan(4000, 7, False) == (8192, True)
    assert transform_plan(3, 2, True) == (8, True)


@pytest.mark.parametrize("n_components", [1, 2, 3, 64, 101, 4096])
def test_time_and_frequency_have_the_same_inner_products(n_components):
    X = np.random.default_rng(0).normal(size=(20, 30)) / 5
    grams = []
    for output in OUTPUTS:
        Z = TensorSketch(n_components=n_components, output=output, random_state=0).fit_transform(X)
        assert Z.shape == (20, n_components)
        grams.append(Z @ Z.T)
    np.testing.assert_allclose(grams[0], grams[1], rtol=1e-12, atol=1e-12)


def test_hash_functions_are_uniform_and_independent():
    sketch = TensorSketch(Polynomial(3), 7, random_state=0).fit(np.ones((1, 20_000)))
    assert sketch.buckets_.shape == sketch.signs_.shape == (3, 20_001)
    codes = sketch.buckets_ + 7 * (sketch.signs_ > 0)
    for one, other in itertools.combinations(codes, 2):
        counts = np.bincount(14 * one + other, minlength=196)
        chi_square = np.sum((counts - 20_001 / 196) ** 2) / (20_001 / 196)
        assert chi_square < 195 + 4.5 * np.sqrt(2 * 195)


def test_more_columns_or_degrees_do_not_change_the_hash_functions_of_the_first():
    small = TensorSketch(Polynomial(2), 50, random_state=3).fit(np.ones((1, 4)))
    large = TensorSketch(Polynomial(5), 50, random_state=3).fit(np.ones((1, 9)))
    assert np.array_equal(small.buckets_, large.buckets_[:2, :5])
    assert np.array_equal(small.signs_, large.signs_[:2, :5])


def test_the_spectrum_table_names_every_position_once():
    assert sorted(reversed_fractions(8) * 8) == list(range(8))
    for n in (1, 2, 4, 64):
        order, factors = real_spectrum(n, "float64")
        assert sorted(order) == list(range(n))
        assert np.sum(factors**2) == pytest.approx(2 - min(n, 2) / n)


# ---------------------------------------------------------------- expectation


@pytest.mark.parametrize("norm", [pytest.param(0.3, marks=pytest.mark.slow), 1.0, 3.0])
@pytest.mark.parametrize(
    "degree", [*range(1, 6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 10)), 10]
)
@pytest.mark.parametrize("homogeneous", [True, False])
def test_unbiased_for_every_degree_and_norm(degree, norm, homogeneous):
    X, Y = close_pairs(5, norm=norm, distance=0.5 * norm)
    kernel = Polynomial(degree, 0.0, 0.8) if homogeneous else Polynomial(degree, norm**2)
    # A few columns that collide twice make tails too heavy for a mean over 64 seeds, unless
    # there are many more features than 3^(degree/2).
    odd, even = (61, 128) if degree <= 5 else (509, 1024)
    first, second = OUTPUTS if homogeneous else reversed(OUTPUTS)
    for output, D in ((first, odd), (second, even)):
        samples = estimates(
            lambda s, o=output, D=D: TensorSketch(kernel, D, output=o, random_state=s), X, Y, 64
        )
        assert_unbiased(samples, kernel_of_pairs(kernel, X, Y))


@pytest.mark.parametrize("n_components", [1, 2, 3, 8, 17])
@pytest.mark.slow
def test_unbiased_however_few_the_features(n_components):
    X, Y = close_pairs(4)
    kernel = Polynomial(2, 0.5)
    samples = estimates(lambda s: TensorSketch(kernel, n_components, random_state=s), X, Y, 1500)
    assert_unbiased(samples, kernel_of_pairs(kernel, X, Y))


def test_wrong_constants_are_noticed():
    X, Y = close_pairs(16, distance=0.5)
    kernel = Polynomial(3, 0.5, gamma=1.2)
    samples = estimates(lambda s: TensorSketch(kernel, 1024, random_state=s), X, Y, 100)
    assert_unbiased(samples, kernel_of_pairs(kernel, X, Y))
    for wrong in (
        Polynomial(3, 0.5, gamma=1.26),
        Polynomial(3, 0.55, gamma=1.2),
        Polynomial(2, 0.5, gamma=1.2),
    ):
        with pytest.raises(AssertionError, match="z-scores"):
            assert_unbiased(samples, kernel_of_pairs(wrong, X, Y))


# ---------------------------------------------------------------- variance


@pytest.mark.parametrize(
    ("kernel", "n_components"),
    [
        (Polynomial(1, 0.0), 16),
        (Polynomial(1, 0.5), 3),
        (Polynomial(2, 0.0), 64),
        (Polynomial(2, 1.0), 31),
        (Polynomial(3, 0.0), 5),
        (Polynomial(3, 0.3), 4),
        (Polynomial(4, 0.0, gamma=0.7), 32),
        (Polynomial(5, 0.5), 128),
    ],
    ids=repr,
)
@pytest.mark.slow
def test_the_spread_is_the_stated_variance(kernel, n_components):
    X, Y = close_pairs(6)
    samples = estimates(lambda s: TensorSketch(kernel, n_components, random_state=s), X, Y, 600)
    assert_spread(samples, stated_variance(kernel, X, Y, n_components))


def test_a_wrong_variance_is_noticed():
    X, Y = close_pairs(6)
    kernel = Polynomial(2, 0.0)
    samples = estimates(lambda s: TensorSketch(kernel, 64, random_state=s), X, Y, 600)
    for factor in (1 / 1.5, 1.5):
        with pytest.raises(AssertionError, match="variance"):
            assert_spread(samples, factor * stated_variance(kernel, X, Y, 64))


# ---------------------------------------------------------------- several sketches


def test_several_sketches_stand_side_by_side():
    X = np.random.default_rng(0).normal(size=(7, 3))
    kernel = Polynomial(2, coef0=0.5)
    fitted = TensorSketch(kernel, 14, n_sketches=4, random_state=3).fit(X)
    assert len(fitted.buckets_) == 4
    expected = np.hstack(
        [
            oracles.tensor_sketch(extended(kernel, X), buckets, signs, size) / 2
            for buckets, signs, size in zip(
                fitted.buckets_, fitted.signs_, (4, 4, 3, 3), strict=True
            )
        ]
    )
    np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-13)
    first = TensorSketch(kernel, 4, random_state=3).fit(X)
    assert np.array_equal(first.buckets_, fitted.buckets_[0])


@pytest.mark.parametrize(
    ("n_components", "n_sketches"),
    [
        pytest.param(4, 4, marks=pytest.mark.slow),
        (31, 3),
        pytest.param(64, 8, marks=pytest.mark.slow),
    ],
)
def test_the_mean_of_several_sketches_has_the_stated_expectation_and_variance(
    n_components, n_sketches
):
    X, Y = close_pairs(6)
    kernel = Polynomial(2, 0.5)
    samples = estimates(
        lambda s: TensorSketch(kernel, n_components, n_sketches=n_sketches, random_state=s),
        X,
        Y,
        1000,
    )
    assert_unbiased(samples, kernel_of_pairs(kernel, X, Y))
    sizes = [
        n_components // n_sketches + (i < n_components % n_sketches) for i in range(n_sketches)
    ]
    variance = sum(stated_variance(kernel, X, Y, size) for size in sizes) / n_sketches**2
    assert_spread(samples, variance)


# ---------------------------------------------------------------- series

SERIES = [
    Exponential(1.5),
    VovkPolynomial(4),
    pytest.param(VovkInfinite(), marks=pytest.mark.slow),
    Maclaurin([0.5, 1.0, 0.0, 0.3]),
    Gaussian(1.3),
    pytest.param(Gaussian(np.array([0.8, 1.0, 1.5, 2.0, 3.0])), marks=pytest.mark.slow),
    pytest.param(Gaussian("median"), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_series_is_sketched_degree_by_degree(output):
    X = np.random.default_rng(0).normal(size=(11, 3)) / 3
    kernel = Maclaurin([0.5, 2.0, 0.0, 0.3])
    fitted = TensorSketch(kernel, 61, output=output, n_sketches=2, random_state=3).fit(X)
    degrees, sizes = np.unique(fitted.degrees_, return_counts=True)
    np.testing.assert_array_equal(degrees, [0, 1, 3])
    assert (np.diff(fitted.degrees_) >= 0).all()
    assert sizes[0] == 1
    columns = [np.full((11, 1), np.sqrt(0.5))]
    hashes = zip(fitted.buckets_, fitted.signs_, strict=True)
    for degree, total in zip(degrees[1:], sizes[1:], strict=True):
        for size in (total - total // 2, total // 2):
            buckets, signs = next(hashes)
            sketch = oracles.tensor_sketch(X, buckets, signs, size)
            if output == "frequency":
                sketch = sketch @ oracles.real_fourier_matrix(size).T
            columns.append(np.sqrt(kernel.coefficients[degree] / 2) * sketch)
    np.testing.assert_allclose(fitted.transform(X), np.hstack(columns), atol=1e-12)
    np.testing.assert_allclose(
        fitted.transform(X.astype(np.float32)), np.hstack(columns), atol=1e-5
    )


@pytest.mark.parametrize("n_sketches", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kernel", SERIES, ids=str)
def test_series_are_unbiased(kernel, n_sketches):
    X, Y = close_pairs(5, norm=0.6, distance=0.3)
    samples = estimates(
        lambda s: TensorSketch(kernel, 300, n_sketches=n_sketches, random_state=s), X, Y, 200
    )
    resolved = TensorSketch(kernel, 8, random_state=0).fit(np.concatenate([X, Y])).kernel_
    expected = kernel_of_pairs(resolved, X, Y)
    assert_unbiased(samples, expected, noticed=1.1)


@pytest.mark.parametrize("kernel", [Exponential(), Gaussian(1.0)], ids=str)
@pytest.mark.parametrize("n_components", [1, 2, 5, 12])
@pytest.mark.slow
def test_series_are_unbiased_with_fewer_features_than_degrees(n_components, kernel):
    X, Y = close_pairs(2, norm=0.7, distance=0.3)
    samples = estimates(lambda s: TensorSketch(kernel, n_components, random_state=s), X, Y, 1500)
    assert_unbiased(samples, kernel_of_pairs(kernel, X, Y))


@pytest.mark.slow
def test_the_variance_of_a_series_is_the_sum_of_those_of_its_powers():
    X, Y = close_pairs(6)
    kernel = Maclaurin([1.0, 1.0, 0.5])
    sizes = np.bincount(TensorSketch(kernel, 64, random_state=0).fit(np.vstack([X, Y])).degrees_)
    samples = estimates(lambda s: TensorSketch(kernel, 64, random_state=s), X, Y, 1000)
    variance = sum(
        a**2 * stated_variance(Polynomial(n, 0.0), X, Y, sizes[n]) for n, a in ((1, 1.0), (2, 0.5))
    )
    assert_spread(samples, variance)
    with pytest.raises(AssertionError, match="variance"):
        assert_spread(samples, 1.5 * variance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Exponential(), Gaussian(1.5)], ids=str)
def test_sparse_rows_have_the_same_bits_in_a_series(kernel, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(53, 37)) / 6).astype(dtype)
    X[rng.random(X.shape) < 0.7] = 0
    X[3], X[4] = 0, -0.0
    sketch = TensorSketch(kernel, 100, random_state=0).fit(X)
    whole = sketch.transform(X)
    assert whole.dtype == dtype
    assert whole.tobytes() == sketch.transform(sp.csr_array(X)).tobytes()
    alone = np.concatenate([sketch.transform(X[i : i + 1]) for i in range(len(X))])
    assert whole.tobytes() == alone.tobytes()


def test_a_series_knows_what_it_leaves_out_and_warns_of_longer_rows():
    X = np.eye(3) / 2
    sketch = TensorSketch(Gaussian(1.0), 64, random_state=0).fit(X)
    assert 0 < sketch.truncation_ < 1e-7
    assert TensorSketch(Polynomial(3), 64).fit(X).truncation_ == 0
    with pytest.warns(UserWarning, match="longer than those seen in fit"):
        sketch.transform(20 * X)
    with pytest.raises(ValueError, match="needs more than 500 terms"):
        TensorSketch(Gaussian(0.01)).fit(X)


@pytest.mark.parametrize("kernel", [Polynomial(3), Exponential(), Gaussian(0.8)], ids=str)
def test_files_and_sizes(kernel, tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 6)) / 3
    for n_components in (1, 7, 300):
        t = min(n_components, 3)
        sketch = TensorSketch(kernel, n_components, n_sketches=t, random_state=0).fit(X)
        kitchenette.save(sketch, tmp_path / "model")
        again = kitchenette.load(tmp_path / "model")
        assert again.specification_ == sketch.specification_
        assert np.array_equal(again.transform(X), sketch.transform(X))
        assert again.transform(X).shape == (20, n_components)


# ---------------------------------------------------------------- bits


@pytest.mark.native
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("n_components", [1, 2, 7, 64, 100, 1024])
@pytest.mark.parametrize("degree", [1, 3])
def test_batches_threads_and_sparseness_do_not_change_a_bit(
    simd, n_components, degree, output, dtype
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(53, 37)).astype(dtype)
    X[rng.random(X.shape) < 0.7] = 0
    X[3], X[4] = 0, -0.0
    sketch = TensorSketch(Polynomial(degree, 0.2), n_components, output=output, random_state=0)
    whole = sketch.fit(X).transform(X)
    assert whole.dtype == dtype
    alone = np.concatenate([sketch.transform(X[i : i + 1]) for i in range(len(X))])
    assert whole.tobytes() == alone.tobytes()
    halves = np.concatenate([sketch.transform(X[:19]), sketch.transform(X[19:])])
    assert whole.tobytes() == halves.tobytes()
    assert whole.tobytes() == sketch.transform(sp.csr_array(X)).tobytes()
    with threadpool_limits(1):
        assert whole.tobytes() == sketch.transform(X).tobytes()
        assert whole.tobytes() == sketch.transform(sp.csr_array(X)).tobytes()


# ---------------------------------------------------------------- sentences


@pytest.mark.parametrize(
    ("sketch", "sentence"),
    [
        (TensorSketch(Matern()), r"neither a kernel of inner products nor Gaussian. Fastfood and"),
        (TensorSketch(n_sketches=0), "n_sketches must be a whole number of at least 1"),
        (TensorSketch(n_components=3, n_sketches=4), "n_sketches must be at most n_components"),
        (TensorSketch("poly"), "kernel must be a kernel"),
        (TensorSketch(output="spectrum"), "output must be one of 'time', 'frequency'"),
        (TensorSketch(n_components=0), "n_components must be a whole number"),
        (TensorSketch(n_components=2**31), "n_components must be less than"),
        (TensorSketch(Polynomial(coef0=-1.0)), "coef0"),
        (TensorSketch(Polynomial(degree=0)), "degree"),
        (TensorSketch(Polynomial(gamma=0.0)), "gamma"),
    ],
)
def test_bad_parameters_get_a_sentence(sketch, sentence):
    with pytest.raises(ValueError, match=sentence):
        sketch.fit(np.ones((3, 2)))


@pytest.mark.native
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("n_components", [1, 2, 16, 21, 500])
def test_overflow_gets_a_sentence(n_components, output):
    X = np.ones((20, 3), dtype=np.float32)
    sketch = TensorSketch(Polynomial(5), n_components, output=output, random_state=0).fit(X)
    X[13] = 1e10
    with pytest.raises(ValueError, match=r"overflowed float32.*1e\+10\. .*gamma or degree"):
        sketch.transform(X)
    with pytest.raises(ValueError, match="overflowed float32"):
        sketch.transform(sp.csr_array(X))
    assert np.isfinite(sketch.transform(X.astype(np.float64))).all()


def test_a_fitted_map_keeps_its_hash_functions_but_not_the_tables_of_its_transforms():
    sketch = TensorSketch(n_components=2**14).fit(np.ones((1, 10)))
    assert sum(np.size(value) for value in vars(sketch).values()) < 200
