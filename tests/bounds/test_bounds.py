"""The papers' theorems as functions: they hold, they are not looser than stated, and they can fail.

Each case draws many independent maps and compares their errors with the bound for delta. If the
bound holds, the number of errors above it is binomial with a probability of at most delta; a
larger number than one of significance 3e-5 is refused. Power: the same count refuses the bound
divided by 1.3 times its looseness, which is the bound over the (1 - delta)-quantile of the errors.
"""

from __future__ import annotations

import doctest
from math import comb, factorial
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats
from scipy.linalg import hadamard
from sklearn.random_projection import GaussianRandomProjection
from unbiased import assert_spread, close_pairs, estimates, leaning_pairs

from kitchenette import (
    SRHT,
    TEFM,
    CRAFTMap,
    Fastfood,
    RandomKitchenSinks,
    RandomMaclaurin,
    TensorSketch,
)
from kitchenette.bounds import (
    CRAFTMapError,
    FastfoodError,
    FastfoodTailError,
    GaussianProductsError,
    KitchenSinksSpectralError,
    MaclaurinError,
    MaclaurinUniformError,
    SketchesMeanError,
    SketchRelativeError,
    TEFMSpectralError,
    variance,
)
from kitchenette.bounds.products import central_moments
from kitchenette.kernels import (
    Composition,
    Exponential,
    Gaussian,
    Laplacian,
    Maclaurin,
    Polynomial,
    VovkInfinite,
)

DELTA = 0.05
SIGNIFICANCE = 3e-5


def too_many(errors: np.ndarray, bound: float, delta: float = DELTA) -> bool:
    """Whether more errors exceed the bound than chance allows."""
    return bool(np.sum(errors > bound) > stats.binom.isf(SIGNIFICANCE, errors.size, delta))


def assert_bound(errors: np.ndarray, bound: float, loosest: float) -> None:
    """The bound holds, is at most ``loosest`` times too large, and a smaller one would not hold."""
    looseness = bound / np.quantile(errors, 1 - DELTA)
    print(f"looseness {looseness:.2f}: {looseness**2:.1f} times the features")
    assert not too_many(errors, bound)
    assert looseness < loosest
    assert too_many(errors, bound / (1.3 * looseness))


def pair(d: int, cosine: float, nonzeros: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Two unit rows with this cosine; of these nonzero entries, in the same columns."""
    rng = np.random.default_rng(d)
    k = nonzeros or d
    q, _ = np.linalg.qr(rng.normal(size=(k, 2)))
    rows = np.zeros((2, d))
    rows[0, :k] = q[:, 0]
    rows[1, :k] = cosine * q[:, 0] + np.sqrt(1 - cosine**2) * q[:, 1]
    return rows[:1], rows[1:]


def errors_of(make, kernel, X, Y, n_seeds: int = 600) -> np.ndarray:
    return np.abs(estimates(make, X, Y, n_seeds) - np.diag(kernel(X, Y))).ravel()


# ---------------------------------------------------------------- Tensor Sketch


@pytest.mark.parametrize("degree", [1, 3])
def test_the_relative_error_of_a_sketch(degree):
    X, Y = pair(64, 0.8)
    kernel = Polynomial(degree, coef0=0.0)
    errors = errors_of(lambda s: TensorSketch(kernel, 128, random_state=s), kernel, X, Y)
    bound = SketchRelativeError(degree, cosine=0.8)
    # Chebyshev's inequality has 4.47 standard deviations where a normal variable has 1.96.
    assert_bound(errors / 0.8**degree, bound.error(128, delta=DELTA), loosest=3.5)


def test_lemma_7_as_printed_does_not_hold():
    X, _ = pair(64, 0.8)
    kernel, D = Polynomial(8, coef0=0.0), 1024
    errors = errors_of(lambda s: TensorSketch(kernel, D, random_state=s), kernel, X, X, 200)
    assert too_many(errors, np.sqrt(2 / (D * DELTA)))
    assert not too_many(errors, SketchRelativeError(8, cosine=1.0).error(D, delta=DELTA))


@pytest.mark.parametrize("cosine", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_the_bound_on_the_variance_of_a_sketch_is_its_largest_value(degree, cosine):
    relative = SketchRelativeError(degree, cosine)
    for d, nonzeros in [(4096, None), (4096, 3), (64, 5)]:
        X, Y = pair(d, cosine, nonzeros)
        sketch = TensorSketch(Polynomial(degree, coef0=0.0), 64, random_state=0).fit(X)
        exact = variance(sketch, X, Y)[0, 0] / cosine ** (2 * degree)
        bound = relative.error(64, delta=DELTA) ** 2 * DELTA
        assert exact <= bound * (1 + 1e-9)
        if d == 4096 and nonzeros is None:
            assert exact > 0.9 * bound


@pytest.mark.slow
def test_the_mean_of_several_sketches():
    X, Y = pair(64, 0.8, nonzeros=2)
    largest = max(np.abs(X).sum(), np.abs(Y).sum())
    kernel = Polynomial(2, coef0=0.0)
    errors = errors_of(
        lambda s: TensorSketch(kernel, 64 * 32, n_sketches=64, random_state=s), kernel, X, Y
    )
    bound = SketchesMeanError(2, largest, sketch_components=32, norm=1.0)
    assert_bound(errors, bound.error(64 * 32, delta=DELTA), loosest=5.0)
    # Lemma 9 itself, without the variance.
    lemma_9 = largest**4 * np.sqrt(2 * np.log(2 / DELTA) / 64)
    assert bound.error(64 * 32, delta=DELTA) < 0.6 * lemma_9


def test_few_sketches_have_the_error_of_lemma_9():
    bound = SketchesMeanError(2, 1.2, sketch_components=1)
    assert bound.error(100) == pytest.approx(1.2**4 * np.sqrt(2 * np.log(40) / 100))
    assert SketchesMeanError(2, 1.2, sketch_components=8).error(7) == np.inf


# ---------------------------------------------------------------- products of projections


def random_maclaurin(kernel, n_components, projection="rademacher"):
    return lambda seed: RandomMaclaurin(
        kernel, n_components, projection=projection, degrees="geometric", random_state=seed
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "loosest"),
    [(Exponential(), 7.0), (Polynomial(2), 9.0), (Maclaurin([0.0, 1.0]), 6.0)],
    ids=["exponential", "quadratic", "linear"],
)
def test_the_error_of_random_maclaurin_features(kernel, loosest):
    X, Y = pair(8, 0.8, nonzeros=2)
    R = max(np.abs(X).sum(), np.abs(Y).sum())
    X, Y = X / R, Y / R
    errors = errors_of(random_maclaurin(kernel, 64), kernel, X, Y, 1000)
    assert_bound(errors, MaclaurinError(kernel, 1.0).error(64, delta=DELTA), loosest)


@pytest.mark.slow
def test_the_error_of_a_composition_of_independent_cosines():
    outer = Exponential()
    kernel = Composition(outer, Laplacian(2.0))
    X, Y = close_pairs(3, n=1, distance=1.0)
    errors = errors_of(random_maclaurin(kernel, 64, "hadamard"), kernel, X, Y, 1000)
    bound = MaclaurinError(outer, 2**0.5).error(64, delta=DELTA)
    assert_bound(errors, bound, loosest=25.0)


def test_one_column_makes_the_limit_of_a_feature_sharp():
    # With one column a feature of degree n is x^n, up to sign and weight: C is attained.
    kernel = Maclaurin([0.0, 0.5, 2.0])
    maclaurin = random_maclaurin(kernel, 256)(0)
    Z = maclaurin.fit_transform(np.array([[1.5]]))
    limit = MaclaurinError(kernel, 1.5).error(1, delta=DELTA) / np.sqrt(2 * np.log(2 / DELTA))
    assert 256 * np.max(Z**2) == pytest.approx(limit)


@pytest.mark.slow
def test_the_error_of_random_maclaurin_features_over_a_ball():
    kernel, d, D = Exponential(), 4, 256
    rng = np.random.default_rng(0)
    rows = rng.laplace(size=(60, d))
    rows /= np.abs(rows).sum(axis=1, keepdims=True)
    rows = np.concatenate([rows, np.eye(d), -np.eye(d), np.full((1, d), 1 / d)])
    exact = kernel(rows)
    errors = []
    for seed in range(600):
        Z = random_maclaurin(kernel, D)(seed).fit_transform(rows)
        errors.append(np.abs(Z @ Z.T - exact).max())
    bound = MaclaurinUniformError(kernel, 1.0, n_columns=d)
    assert_bound(np.array(errors), bound.error(D, delta=DELTA), loosest=10.0)


def test_the_net_of_the_uniform_bound_is_fine_enough():
    # The slopes: no feature and no kernel value changes by more, in the 1-norm.
    kernel, R = Polynomial(3), 0.8
    rng = np.random.default_rng(0)
    X, Y, step = rng.laplace(size=(3, 200, 3))
    X, Y = (R * A / np.abs(A).sum(axis=1, keepdims=True) for A in (X, Y))
    step *= 1e-6 / np.abs(step).sum(axis=1, keepdims=True)
    maclaurin = random_maclaurin(kernel, 500)(0).fit(X)
    before, after, other = (500**0.5 * maclaurin.transform(A) for A in (X, X + step, Y))
    of_features = np.abs((after - before) * other).max() / 1e-6
    of_kernel = np.abs(np.diag(kernel(X + step, Y) - kernel(X, Y))).max() / 1e-6
    bound = MaclaurinUniformError(kernel, R, n_columns=3)
    n = 10**6
    error = bound.error(n, delta=DELTA)
    # Solved for the slope L: the inverse of the formula in the docstring.
    most = MaclaurinError(kernel, R).error(n, delta=DELTA) / np.sqrt(2 * np.log(2 / DELTA) / n)
    log_pairs = n * (0.9 * error / most) ** 2 / 2 + np.log(DELTA)
    slope = 0.1 * error / (4 * R) * np.expm1(log_pairs / 6)
    assert 0.3 * slope < of_features + of_kernel < slope * 1.001


@pytest.mark.slow
@pytest.mark.parametrize(("degree", "loosest"), [(1, 2.7), (2, 3.0), (3, 4.5)])
def test_the_error_of_gaussian_products(degree, loosest):
    X, _ = pair(16, 1.0)
    kernel = Polynomial(degree, coef0=0.0)
    errors = errors_of(random_maclaurin(kernel, 256, "gaussian"), kernel, X, X, 1000)
    bound = GaussianProductsError(degree)
    assert_bound(errors, bound.error(256, delta=DELTA), loosest)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_many_rows_have_fewer_features_than_by_lemma_3_1(degree):
    bound = GaussianProductsError(degree)
    for n in (10, 1000):
        for error in (0.01, 0.5):
            pairs = n * (n + 1) / 2
            log = 2 * np.log(0.766**degree * pairs / DELTA)
            by_lemma = max(11 * log ** (2 * degree + 2), 3 * 4 ** (degree + 2)) / error**2
            assert bound.n_components(error, delta=DELTA, n_rows=n) < 0.01 * by_lemma


def product_moments(degree: int, cosine: float, n: int) -> list[float]:
    """Raw moments of a product of ``degree`` pairs of normal numbers with this correlation."""
    cumulants = [
        factorial(j - 1) / 2 * ((1 + cosine) ** j + (cosine - 1) ** j) for j in range(1, n + 1)
    ]
    moments = [1.0]
    for k in range(1, n + 1):
        moments.append(
            sum(comb(k - 1, j - 1) * cumulants[j - 1] * moments[k - j] for j in range(1, k + 1))
        )
    return [moment**degree for moment in moments]


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_moments_of_a_mean_of_gaussian_products_are_largest_for_equal_rows(degree):
    D, most = 10, 8
    ours = central_moments(degree, D)
    for cosine in np.linspace(-1, 1, 21):
        raw = product_moments(degree, cosine, most)
        # The raw moments of a sum of D independent products, one product after the other.
        total = [1.0] + [0.0] * most
        for _ in range(D):
            total = [
                sum(comb(k, j) * total[j] * raw[k - j] for j in range(k + 1))
                for k in range(most + 1)
            ]
        for k in range(2, most + 1, 2):
            central = (
                sum(comb(k, j) * total[j] * (-D * raw[1]) ** (k - j) for j in range(k + 1))
                / float(D) ** k
            )
            if cosine == 1:
                assert ours[k] == pytest.approx(central)
            assert central <= ours[k] * (1 + 1e-9)
    assert ours[2] == pytest.approx((3**degree - 1) / D)


# ---------------------------------------------------------------- Fastfood


@pytest.mark.slow
@pytest.mark.parametrize("distance", [0.3, 1.0, 3.0])
def test_the_error_of_fastfood(distance):
    rng = np.random.default_rng(1)
    X = np.zeros((1, 16))
    Y = rng.normal(size=(1, 16))
    Y *= distance / np.linalg.norm(Y)
    kernel = Gaussian(1.0)
    errors = errors_of(
        lambda s: Fastfood(kernel, 64, projection="hadamard", random_state=s), kernel, X, Y
    )
    assert_bound(errors, FastfoodError(distance).error(64, delta=DELTA), loosest=4.5)
    assert FastfoodError().error(64) >= FastfoodError(distance).error(64)
    tail = FastfoodTailError(distance, n_columns=16).error(64, delta=DELTA)
    # Looser for small distances, where it is of the order v and the error of the order v^2.
    assert_bound(errors, tail, loosest=25 / min(distance, 1.0))


def plain_fastfood(d: int, v: np.ndarray, n: int) -> np.ndarray:
    """n estimates by one block of the paper's V, without S."""
    rng = np.random.default_rng(0)
    H = hadamard(d).astype(float)
    u = rng.choice([-1.0, 1.0], size=(n, d)) * v @ H / np.sqrt(d)
    u = np.take_along_axis(u, np.argsort(rng.random((n, d)), axis=1), axis=1)
    return np.cos((rng.normal(size=(n, d)) * u) @ H).mean(axis=1)


@pytest.mark.parametrize("distance", [0.1, 1.0, 3.0])
def test_the_variance_of_corollary_10_is_sharp_for_close_rows_without_the_scaling(distance):
    d, n = 16, 20_000
    v = np.random.default_rng(3).normal(size=d)
    v *= distance / np.linalg.norm(v)
    values = plain_fastfood(d, v, n)
    factor = 3 - 2 * np.sum(v**4) / distance**4
    bound = factor * (1 - np.exp(-(distance**2))) ** 2 / (2 * d)
    assert values.var() < 1.05 * bound
    if distance == 0.1:
        assert_spread(values[:, None], np.array([bound]))
        with pytest.raises(AssertionError, match="variance"):
            assert_spread(values[:, None], np.array([1.5 * bound]))
    printed = 2 * (1 - np.exp(-(distance**2))) ** 2 / d
    printed += 6 * distance**4 * (np.exp(-(distance**2)) + distance**2 / 3) / d
    assert printed > 5 * bound
    tail = 2 * distance * np.sqrt(np.log(4 / DELTA) * np.log(4 * d / DELTA) / d)
    assert FastfoodTailError(distance, d).error(2 * d, delta=DELTA) == pytest.approx(tail)
    assert not too_many(np.abs(values - np.exp(-(distance**2) / 2)), tail)


# ---------------------------------------------------------------- compact maps


def spectral_errors(make, X, kernel, n_seeds: int) -> np.ndarray:
    exact = kernel(X)
    errors = []
    for seed in range(n_seeds):
        Z = make(seed).fit(X).transform(X)
        errors.append(np.linalg.norm(exact - Z @ Z.T, 2) / len(X))
    return np.array(errors)


def test_the_spectral_errors_of_kitchen_sinks_and_tefm():
    kernel = Gaussian(1.0)
    X = np.random.default_rng(0).normal(size=(60, 2))

    def sinks(seed):
        return RandomKitchenSinks(kernel, 256, random_state=seed)

    def compact(seed):
        return TEFM(sinks(seed), 64, power_iterations=1, random_state=seed)

    errors = spectral_errors(sinks, X, kernel, 300)
    assert_bound(errors, KitchenSinksSpectralError().error(256, delta=DELTA), loosest=4.0)
    errors = spectral_errors(compact, X, kernel, 100)
    bound = TEFMSpectralError(256, power_iterations=1)
    assert_bound(errors, bound.error(64, delta=DELTA), loosest=10.0)
    assert bound.error(256) == pytest.approx(KitchenSinksSpectralError().error(256, delta=0.025))
    assert TEFMSpectralError(256).error(5) <= 1 + bound.error(256)


def test_the_moment_behind_the_frobenius_constant_of_the_range_finder():
    # The squared Frobenius norm of the pseudo-inverse of a k x (k + p) normal matrix is a sum of k
    # inverse chi-squared variables with p + 1 degrees of freedom. The root of order p / 2 of the
    # moment of that order is at most 3 / (p + 1) for each, so by Markov's inequality the norm
    # exceeds t sqrt(3 k / (p + 1)) with a probability of at most t^-p.
    p = np.arange(4, 100_000)
    log_moment = -p / 2 * np.log(2) + special.gammaln(0.5) - special.gammaln((p + 1) / 2)
    root = np.exp(2 * log_moment / p) * (p + 1)
    assert root.max() < 3
    assert root.max() > 2.8  # it is not much smaller either


@pytest.mark.parametrize(("k", "p"), [(2, 4), (8, 8), (20, 8)])
def test_pseudo_inverses_of_normal_matrices_are_as_small_as_the_range_finder_needs(k, p):
    G = np.random.default_rng(0).normal(size=(2000, k, k + p))
    inverses = 1 / np.linalg.svd(G, compute_uv=False)
    frobenius, spectral = np.sqrt((inverses**2).sum(axis=1)), inverses.max(axis=1)
    assert_bound(frobenius, DELTA ** (-1 / p) * np.sqrt(3 * k / (p + 1)), loosest=2.2)
    bound = DELTA ** (-1 / (p + 1)) * np.e * np.sqrt(k + p) / (p + 1)
    assert_bound(spectral, bound, loosest=2.4)


@pytest.mark.parametrize(("down", "loosest"), [("gaussian", 7.0), ("srht", 8.0)])
@pytest.mark.slow
def test_the_error_of_a_compact_map(down, loosest):
    X, _ = pair(16, 1.0)
    kernel = Polynomial(2, coef0=0.0)
    D, E = 4096, 256

    def make(seed):
        up = RandomMaclaurin(kernel, D, projection="gaussian", random_state=seed)
        options = (
            {"down": GaussianRandomProjection(random_state=seed)} if down == "gaussian" else {}
        )
        return CRAFTMap(up, E, random_state=seed, **options)

    errors = errors_of(make, kernel, X, X, 200)
    bound = CRAFTMapError(GaussianProductsError(2), D, projection=down)
    assert_bound(errors, bound.error(E, delta=DELTA), loosest)
    assert CRAFTMapError(GaussianProductsError(2), D).error(D) == pytest.approx(
        GaussianProductsError(2).error(D, delta=DELTA / 6)
    )


# ---------------------------------------------------------------- what all have in common

BOUNDS = [
    SketchRelativeError(3, 0.5),
    SketchesMeanError(2, 1.5, 16),
    MaclaurinError(Exponential(), 1.0),
    MaclaurinUniformError(Exponential(), 1.0, 5),
    GaussianProductsError(2),
    FastfoodError(1.0),
    FastfoodTailError(1.0, 50),
    KitchenSinksSpectralError(),
    TEFMSpectralError(10**6, 1),
    CRAFTMapError(FastfoodTailError(1.0, 4), 2**30),
]


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: type(bound).__name__)
def test_the_number_of_features_is_the_smallest_whose_error_is_small_enough(bound):
    for delta in (0.3, 1e-6):
        n = bound.n_components(0.4, delta=delta)
        assert bound.error(n, delta=delta) <= 0.4 < bound.error(n - 1, delta=delta)
    assert bound.n_components(0.4, delta=1e-6) > bound.n_components(0.4, delta=0.3)
    with pytest.raises(ValueError, match="delta is a probability"):
        bound.error(100, delta=1.0)
    with pytest.raises(ValueError, match="error must be a number"):
        bound.n_components(0.0)
    with pytest.raises(ValueError, match="n_components must be a whole number"):
        bound.error(0)


def test_an_error_that_no_number_of_features_reaches_is_refused():
    with pytest.raises(ValueError, match="No number of features"):
        TEFMSpectralError(64).n_components(0.1)


def test_many_rows_share_the_probability_of_failure():
    bound = FastfoodError(1.0)
    assert bound.error(100, delta=0.1, n_rows=4) == bound.error(100, delta=0.01)
    with pytest.raises(ValueError, match="n_rows"):
        bound.error(100, n_rows=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SketchRelativeError(2, 0.0), "cosine must be"),
        (lambda: SketchRelativeError(0, 0.5), "degree must be"),
        (lambda: SketchesMeanError(2, 1.0, 8, norm=2.0), "norm must be .* at most 1"),
        (lambda: MaclaurinError(Gaussian(1.0), 1.0), "dot-product kernel"),
        (lambda: MaclaurinError(VovkInfinite(), 0.9), "converges"),
        (lambda: MaclaurinError(Exponential(), 1.0, base=1.0), "base must be"),
        (lambda: FastfoodError(-1.0), "distance must be"),
        (lambda: CRAFTMapError(KitchenSinksSpectralError(), 64), "pairs of rows"),
        (lambda: CRAFTMapError(FastfoodError(), 64, "sparse"), "projection must be"),
    ],
)
def test_parameters_without_a_meaning_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ---------------------------------------------------------------- exact variances

CLOSE, LEANING = close_pairs(6, distance=1.5), leaning_pairs(6, lean=0.9)
MAPS = {
    "sinks": (lambda s: RandomKitchenSinks(Laplacian(2.0), 64, random_state=s), CLOSE),
    "odd sinks": (lambda s: RandomKitchenSinks(Gaussian(1.0), 5, random_state=s), CLOSE),
    "offset": (
        lambda s: RandomKitchenSinks(Gaussian(1.0), 32, features="offset", random_state=s),
        CLOSE,
    ),
    "orthogonal": (
        lambda s: RandomKitchenSinks(Gaussian(1.0), 20, frequencies="orthogonal", random_state=s),
        CLOSE,
    ),
    "maclaurin": (
        lambda s: RandomMaclaurin(
            Polynomial(2), 64, projection="rademacher", degrees="optimal", random_state=s
        ),
        LEANING,
    ),
    "maclaurin h01": (
        lambda s: RandomMaclaurin(
            Polynomial(3, coef0=2.0),
            64,
            h01=True,
            projection="rademacher",
            degrees="optimal",
            random_state=s,
        ),
        LEANING,
    ),
    "maclaurin geometric": (random_maclaurin(Polynomial(2), 64, "gaussian"), LEANING),
    "sketch": (lambda s: TensorSketch(Polynomial(2, 0.5, 0.8), 33, random_state=s), CLOSE),
    "sketches": (
        lambda s: TensorSketch(Polynomial(2, coef0=0.0), 64, n_sketches=5, random_state=s),
        CLOSE,
    ),
    "sketch of a series": (
        lambda s: TensorSketch(Maclaurin([1.0, 2.0, 0.5]), 64, random_state=s),
        CLOSE,
    ),
    "sketch of the Gaussian": (
        lambda s: TensorSketch(Gaussian(4.0), 128, random_state=s),
        close_pairs(64, distance=1.5),  # with few columns collisions are rare, and tails heavy
    ),
    "srht": (lambda s: SRHT(5, random_state=s), CLOSE),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.slow
def test_the_variance_is_the_spread_over_seeds(name):
    make, (X, Y) = MAPS[name]
    values = estimates(make, X, Y, 800)
    exact = np.diag(variance(make(0).fit(np.concatenate([X, Y])), X, Y))
    assert_spread(values, exact)
    with pytest.raises(AssertionError, match="variance"):
        assert_spread(values, 2.0 * exact)


def test_exact_features_have_no_variance_and_sparse_rows_that_of_dense_ones():
    sp = pytest.importorskip("scipy.sparse")
    X = np.random.default_rng(0).normal(size=(7, 8))
    np.testing.assert_allclose(variance(SRHT(8, random_state=0).fit(X), X), 0.0, atol=1e-12)
    for name, (make, _) in MAPS.items():
        if name == "sketch of the Gaussian":
            continue  # its rows are long here
        feature_map = make(0).fit(X)
        np.testing.assert_allclose(
            variance(feature_map, sp.csr_array(X), X[:3]), variance(feature_map, X)[:, :3]
        )


@pytest.mark.parametrize(
    ("feature_map", "message"),
    [
        (Fastfood(Gaussian(1.0), 8), "No exact variance is known for Fastfood"),
        (RandomKitchenSinks(Gaussian(1.0), 8, frequencies="quasi"), "these frequencies"),
        (RandomMaclaurin(Composition(Polynomial(2), Gaussian(1.0)), 64), "are not independent"),
        (RandomMaclaurin(Polynomial(9), 5, projection="rademacher", degrees="optimal"), "share"),
        (SRHT(100), "up to 8 components"),
    ],
    ids=str,
)
def test_where_no_variance_is_known_it_says_so(feature_map, message):
    X = np.random.default_rng(0).normal(size=(20, 5))
    with pytest.raises(ValueError, match=message):
        variance(feature_map.fit(X), X)


def test_the_examples_in_the_documentation_run_as_printed():
    page = Path(__file__).parents[2] / "docs" / "bounds.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 0
