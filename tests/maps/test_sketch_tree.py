"""Trees of tensor sketches: definition, expectation, variance and its growth with the degree."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits
from unbiased import assert_spread, assert_unbiased, close_pairs, estimates

import kitchenette
from kitchenette import TensorSketch
from kitchenette.bounds import SketchTreeRelativeError, variance
from kitchenette.kernels import Exponential, Gaussian, Maclaurin, Polynomial
from kitchenette.sketching.sketch_tree import ROW, collision, draw_tree, tree_moments

OUTPUTS = ["time", "frequency"]
SIZES = [1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 100]


def tree(kernel, n_components, **options):
    return TensorSketch(kernel, n_components, tree=True, **options)


def extended(kernel, X):
    X = np.sqrt(kernel.gamma) * np.asarray(X, dtype=float)
    if kernel.coef0 == 0:
        return X
    return np.hstack([X, np.full((len(X), 1), np.sqrt(kernel.coef0))])


def moments(kernel, X, Y, D):
    X, Y = extended(kernel, X), extended(kernel, Y)
    norms = np.sum(X**2, axis=1) * np.sum(Y**2, axis=1)
    dots, common = np.sum(X * Y, axis=1), np.sum(X**2 * Y**2, axis=1)
    return tree_moments(kernel.degree, D, X.shape[1], dots, norms, common)


def stated_variance(kernel, X, Y, D):
    """The formula, exact up to degree two and else an upper bound."""
    exact = np.sum(extended(kernel, X) * extended(kernel, Y), axis=1) ** (2 * kernel.degree)
    return moments(kernel, X, Y, D).dot - exact


# ---------------------------------------------------------------- oracle


@pytest.mark.native
@pytest.mark.parametrize("coef0", [0.0, 0.7])
@pytest.mark.parametrize("degree", [1, 2, 3, 4, 6, 7])
@pytest.mark.parametrize("n_components", SIZES)
def test_features_are_those_of_the_definition(simd, n_components, degree, coef0):
    kernel = Polynomial(degree, coef0, gamma=1.3)
    X = np.random.default_rng(degree).normal(size=(11, 3))
    sketch = tree(kernel, n_components, random_state=5)
    Z = sketch.fit_transform(X)
    rows = extended(kernel, X)
    drawn = draw_tree(degree, rows.shape[1], n_components, 5)
    expected = oracles.sketch_tree(rows, drawn, n_components)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(Z, expected, atol=1e-12 * scale)
    np.testing.assert_allclose(sketch.transform(X.astype(np.float32)), expected, atol=1e-5 * scale)
    spectrum = sketch.set_params(output="frequency").fit_transform(X)
    expected = expected @ oracles.real_fourier_matrix(n_components).T
    np.testing.assert_allclose(spectrum, expected, atol=1e-12 * scale)
    np.testing.assert_allclose(sketch.transform(X.astype(np.float32)), expected, atol=2e-5 * scale)


@pytest.mark.native
@pytest.mark.parametrize(
    ("degree", "n_components", "n_columns"),
    [(2, 4096, 40), (2, 4096, 300), (2, 1009, 40), (3, 1024, 3000), (5, 1000, 40), (16, 512, 700)],
)
def test_wide_rows_and_long_sketches(simd, degree, n_components, n_columns):
    X = np.random.default_rng(0).normal(size=(5, n_columns)) / np.sqrt(n_columns)
    sketch = tree(Polynomial(degree, coef0=0.0), n_components, random_state=5).fit(X)
    drawn = draw_tree(degree, n_columns, n_components, 5)
    expected = oracles.sketch_tree(X, drawn, n_components)
    scale = np.linalg.norm(expected, axis=1).max()
    np.testing.assert_allclose(sketch.transform(X), expected, atol=1e-13 * scale)
    np.testing.assert_allclose(sketch.transform(X.astype(np.float32)), expected, atol=2e-6 * scale)


def test_a_tree_halves_the_degree_and_permutes_where_it_can():
    for degree in range(2, 20):
        drawn = draw_tree(degree, 11, 64, 3)
        assert len(drawn) == 2 * (degree - 1)
        assert sum(hashes.child == ROW for hashes in drawn) == degree
        degrees: list[int] = []
        for left, right in zip(drawn[::2], drawn[1::2], strict=True):
            halves = [1 if h.child == ROW else degrees[h.child] for h in (left, right)]
            assert 0 <= halves[0] - halves[1] <= 1
            degrees.append(sum(halves))
        assert degrees[-1] == degree
        for hashes in drawn:
            assert np.unique(hashes.buckets).size == hashes.buckets.size
            assert set(np.unique(hashes.signs)) <= {-1, 1}


def test_wide_rows_take_slots_without_replacement():
    for n_inputs, D in [(20, 8), (9, 8), (8, 8), (50, 7)]:
        buckets = np.array([draw_tree(1, n_inputs, D, seed)[0].buckets for seed in range(4000)])
        assert max(np.bincount(row).max() for row in buckets) <= -(-n_inputs // D)
        same = np.mean(buckets[:, 0] == buckets[:, 1])
        p = collision(n_inputs, D)
        assert abs(same - p) <= 4.5 * np.sqrt(p * (1 - p) / 4000)
        counts = np.bincount(buckets[:, 3], minlength=D)
        assert np.sum((counts - 4000 / D) ** 2) / (4000 / D) < D - 1 + 4.5 * np.sqrt(2 * D)


@pytest.mark.parametrize("D", [3, 64, 100])
def test_time_and_frequency_have_the_same_inner_products(D):
    X = np.random.default_rng(0).normal(size=(20, 30)) / 5
    for degree in (1, 2, 5):
        grams = []
        for output in OUTPUTS:
            sketch = tree(Polynomial(degree), D, output=output, random_state=0)
            Z = sketch.fit_transform(X)
            grams.append(Z @ Z.T)
        np.testing.assert_allclose(grams[0], grams[1], rtol=1e-10, atol=1e-12)


def test_degree_one_is_exact_with_a_bucket_for_each_column():
    X = np.random.default_rng(0).normal(size=(20, 30))
    Z = tree(Polynomial(1, 0.5), 31, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, X @ X.T + 0.5)


# ---------------------------------------------------------------- expectation


@pytest.mark.parametrize("norm", [pytest.param(0.3, marks=pytest.mark.slow), 1.0, 3.0])
@pytest.mark.parametrize(
    "degree", [1, 2, 3, 4, *(pytest.param(k, marks=pytest.mark.slow) for k in range(5, 11)), 16]
)
@pytest.mark.parametrize("homogeneous", [True, False])
def test_unbiased_for_every_degree_and_norm(degree, norm, homogeneous):
    X, Y = close_pairs(5, norm=norm, distance=0.5 * norm)
    kernel = Polynomial(degree, 0.0, 0.8) if homogeneous else Polynomial(degree, norm**2)
    first, second = OUTPUTS if homogeneous else reversed(OUTPUTS)
    for output, D in ((first, 61), (second, 128)):
        samples = estimates(
            lambda s, o=output, D=D: tree(kernel, D, output=o, random_state=s), X, Y, 64
        )
        assert_unbiased(samples, np.diag(kernel(X, Y)))


@pytest.mark.parametrize("n_components", [1, 2, 3, 8, 17])
@pytest.mark.slow
def test_unbiased_however_few_the_features(n_components):
    X, Y = close_pairs(4)
    for kernel in (Polynomial(2, 0.5), Polynomial(3, 0.0)):
        samples = estimates(lambda s, k=kernel: tree(k, n_components, random_state=s), X, Y, 1500)
        assert_unbiased(samples, np.diag(kernel(X, Y)))


def test_wrong_constants_are_noticed():
    X, Y = close_pairs(16, distance=0.5)
    kernel = Polynomial(6, 0.5, gamma=1.2)
    samples = estimates(lambda s: tree(kernel, 1024, random_state=s), X, Y, 100)
    assert_unbiased(samples, np.diag(kernel(X, Y)))
    for wrong in (Polynomial(6, 0.5, gamma=1.26), Polynomial(6, 0.55, gamma=1.2)):
        with pytest.raises(AssertionError, match="z-scores"):
            assert_unbiased(samples, np.diag(wrong(X, Y)))


# ---------------------------------------------------------------- variance


@pytest.mark.parametrize(
    ("kernel", "n_components", "d"),
    [
        (Polynomial(1, 0.0), 4, 16),
        (Polynomial(1, 0.5), 3, 16),
        (Polynomial(2, 0.0), 16, 16),
        (Polynomial(2, 0.3), 31, 16),
        (Polynomial(2, 0.0), 6, 16),  # wide rows, whose hash functions cannot be injective
        (Polynomial(2, 0.0), 7, 16),
    ],
    ids=repr,
)
@pytest.mark.slow
def test_the_variance_up_to_degree_two_is_as_stated(kernel, n_components, d):
    X, Y = close_pairs(d)
    samples = estimates(lambda s: tree(kernel, n_components, random_state=s), X, Y, 800)
    stated = stated_variance(kernel, X, Y, n_components)
    assert_spread(samples, stated)
    made = tree(kernel, n_components, random_state=0).fit(X)
    np.testing.assert_allclose(np.diag(variance(made, X, Y)), stated)
    with pytest.raises(AssertionError, match="variance"):
        assert_spread(samples, 1.5 * stated)


@pytest.mark.parametrize(("degree", "n_components"), [(3, 64), (4, 100), (5, 64), (8, 256)])
@pytest.mark.slow
def test_the_variance_of_higher_degrees_is_little_below_its_bound(degree, n_components):
    X, Y = close_pairs(32)
    kernel = Polynomial(degree, 0.0)
    samples = estimates(lambda s: tree(kernel, n_components, random_state=s), X, Y, 800)
    bound = stated_variance(kernel, X, Y, n_components)
    assert_spread(samples, 0.95 * bound)
    with pytest.raises(AssertionError, match="variance"):
        assert_spread(samples, 1.5 * bound)
    with pytest.raises(AssertionError, match="variance"):
        assert_spread(samples, bound / 1.7)


def test_squared_norms_of_sketches_are_those_of_the_recursion():
    X, Y = close_pairs(16)
    kernel = Polynomial(2, 0.0)
    products = []
    for seed in range(800):
        Z = tree(kernel, 16, random_state=seed).fit_transform(np.concatenate([X, Y]))
        squares = np.sum(Z**2, axis=1)
        products.append(squares[: len(X)] * squares[len(X) :])
    assert_unbiased(np.array(products), moments(kernel, X, Y, 16).norms)


def test_errors_add_up_over_the_degrees_instead_of_multiplying():
    X, _ = close_pairs(64, distance=0.5)
    D = 4096
    relative = [stated_variance(Polynomial(p, 0.0), X, X, D).max() for p in (2, 4, 8, 16, 32)]
    for p, value in zip((2, 4, 8, 16, 32), relative, strict=True):
        assert value < 2.1 * (p - 1) / D
    flat = TensorSketch(Polynomial(16, 0.0), D, random_state=0).fit(X)
    assert variance(flat, X).max() > 1000 * relative[3]


@pytest.mark.parametrize("degree", [2, 5, 16])
def test_the_bound_on_the_relative_error_holds(degree):
    X, Y = close_pairs(64, distance=0.6)
    Y = Y / np.linalg.norm(Y, axis=1, keepdims=True)
    kernel, D = Polynomial(degree, 0.0), 256
    cosines = np.sum(X * Y, axis=1)
    samples = estimates(lambda s: tree(kernel, D, random_state=s), X, Y, 200)
    errors = np.abs(samples / cosines**degree - 1)
    for j, cosine in enumerate(cosines):
        bound = SketchTreeRelativeError(degree, float(cosine))
        assert np.mean(errors[:, j] > bound.error(D, delta=0.1)) <= 0.1
        assert np.std(samples[:, j]) / cosine**degree > 0.25 * bound.error(D, delta=0.1) * 0.1**0.5
        assert bound.error(bound.n_components(0.1), delta=0.05) <= 0.1


# ---------------------------------------------------------------- series

SERIES = [
    Exponential(1.5),
    Maclaurin([0.5, 1.0, 0.0, 0.3]),
    Gaussian(1.3),
    pytest.param(Gaussian(np.array([0.8, 1.0, 1.5, 2.0, 3.0])), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("n_sketches", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kernel", SERIES, ids=str)
def test_series_are_unbiased(kernel, n_sketches):
    X, Y = close_pairs(5, norm=0.6, distance=0.3)
    samples = estimates(
        lambda s: tree(kernel, 300, n_sketches=n_sketches, random_state=s), X, Y, 200
    )
    resolved = tree(kernel, 8, random_state=0).fit(np.concatenate([X, Y])).kernel_
    assert_unbiased(samples, np.diag(resolved(X, Y)), noticed=1.1)


def test_a_series_has_its_degree_one_without_error():
    X = np.random.default_rng(0).normal(size=(50, 10)) / 10
    made = tree(Exponential(), 500, random_state=0).fit(X)
    columns = made.degrees_ == 1
    assert columns.sum() == 10
    Z = made.transform(X)[:, columns]
    np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-12)


def test_the_gaussian_kernel_by_its_series_at_a_larger_radius():
    X = np.random.default_rng(0).normal(size=(200, 30))
    X *= 2.5 / np.linalg.norm(X, axis=1, keepdims=True)
    X[1::2] = X[::2] + 0.05 * X[1::2]
    kernel = Gaussian(1.0)

    def error(options):
        made = [
            TensorSketch(kernel, 4096, random_state=s, **options).fit_transform(X) for s in range(4)
        ]
        return np.sqrt(np.mean([(Z @ Z.T - kernel(X)) ** 2 for Z in made]))

    assert error({"tree": True}) < 0.4 * error({})


def test_hash_functions_of_a_tree_are_attributes():
    X = np.ones((3, 5))
    made = tree(Polynomial(3), 64, random_state=0).fit(X)
    assert [b.size for b in made.buckets_] == [6, 6, 64, 6]
    assert [s.size for s in made.signs_] == [6, 6, 64, 6]


# ---------------------------------------------------------------- bits and files


@pytest.mark.native
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("n_components", [1, 7, 64, 100, 1024])
@pytest.mark.parametrize("degree", [2, 5])
def test_batches_threads_and_sparseness_do_not_change_a_bit(
    simd, n_components, degree, output, dtype
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(53, 37)).astype(dtype)
    X[rng.random(X.shape) < 0.7] = 0
    X[3], X[4] = 0, -0.0
    sketch = tree(Polynomial(degree, 0.2), n_components, output=output, random_state=0)
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


@pytest.mark.parametrize("kernel", [Polynomial(5), Exponential(), Gaussian(0.8)], ids=str)
def test_files_and_sizes(kernel, tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 6)) / 3
    for n_components in (1, 7, 300):
        sketch = tree(kernel, n_components, random_state=0).fit(X)
        kitchenette.save(sketch, tmp_path / "model")
        again = kitchenette.load(tmp_path / "model")
        assert again.specification_ == sketch.specification_
        assert np.array_equal(again.transform(X), sketch.transform(X))
        assert again.transform(X).shape == (20, n_components)


def test_bad_parameters_and_overflow_get_a_sentence():
    X = np.ones((20, 3), dtype=np.float32)
    with pytest.raises(ValueError, match="tree must be True or False; got 'yes'"):
        TensorSketch(tree="yes").fit(X)
    with pytest.raises(ValueError, match="trees of a degree above two"):
        variance(tree(Polynomial(3), 8).fit(X), X)
    for D in (16, 21):
        sketch = tree(Polynomial(5), D, random_state=0).fit(X)
        rows = X.copy()
        rows[13] = 1e10
        with pytest.raises(ValueError, match=r"overflowed float32.*gamma or degree"):
            sketch.transform(rows)
        assert np.isfinite(sketch.transform(rows.astype(np.float64))).all()
