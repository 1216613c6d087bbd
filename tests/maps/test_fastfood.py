"""Fastfood: definition, expectation, variance, size."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from scipy import special, stats
from unbiased import (
    RADIAL_KERNELS,
    assert_spread,
    assert_unbiased,
    close_enough,
    close_pairs,
    estimates,
)

from kitchenette import Fastfood, RandomKitchenSinks
from kitchenette.kernels import BesselMatern, Cauchy, Gaussian, Laplacian
from kitchenette.sketching.structured import draw_fastfood, draw_fourier, draw_orthogonal

UNIFORM = ["hadamard", "orthogonal"]  # projections whose directions are uniform on the sphere
ORACLES = {"hadamard": oracles.fastfood_matrix, "orthogonal": oracles.orthogonal_matrix}


# ---------------------------------------------------------------- oracles


@pytest.mark.native
@pytest.mark.parametrize("projection", UNIFORM)
@pytest.mark.parametrize("features", ["sincos", "offset"])
@pytest.mark.parametrize(
    ("d", "n_components"),
    [
        *itertools.product([1, 2, 3, 5, 8, 16, 20], [1, 5, 64, 259, 600]),
        *[(100, 64), (100, 600), (256, 259), (300, 600)],
        pytest.param(1025, 1100, marks=pytest.mark.slow),
    ],
)
def test_features_equal_the_explicit_matrix_product(simd, projection, features, d, n_components):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(19, d)) / np.sqrt(d)
    fastfood = Fastfood(
        Gaussian(0.5), n_components, projection=projection, features=features, random_state=3
    )
    Z = fastfood.fit_transform(X)
    V = ORACLES[projection](fastfood.projection_)
    np.testing.assert_allclose(fastfood.frequencies_, V, atol=1e-10 * np.abs(V).max())
    z = X @ V.T
    if features == "sincos":
        unpaired = fastfood.offsets_[0] if n_components % 2 else 0.0
        expected = oracles.sincos(z, n_components, unpaired)
    else:
        expected = oracles.offset(z, fastfood.offsets_[:n_components])
    np.testing.assert_allclose(Z, expected, atol=1e-12)
    single = fastfood.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=3e-5)


@pytest.mark.parametrize("n_components", [1, 5, 64, 259])
@pytest.mark.parametrize("d", [1, 2, 3, 7, 16, 100, 257])
def test_fourier_features_equal_the_explicit_matrix_product(n_components, d):
    X = np.random.default_rng(d).normal(size=(19, d)) / np.sqrt(d)
    fastfood = Fastfood(Gaussian(0.5), n_components, projection="fourier", random_state=3)
    Z = fastfood.fit_transform(X)
    p = fastfood.projection_
    F = oracles.real_fourier_matrix(d)
    np.testing.assert_allclose(F @ F.T, np.eye(d), atol=1e-12)
    # Undo the lengths: what is left are rows of F B, each once per block, shuffled.
    W = fastfood.frequencies_
    for start in range(0, p.n_rows, d):
        B = p.signs[start : start + d].astype(float)
        rows = W[start : start + d] / np.linalg.norm(W[start : start + d], axis=1)[:, None]
        overlap = rows @ (F * B).T
        assert np.array_equal(np.sort(np.abs(overlap).max(axis=1).round(9)), np.ones(len(rows)))
        assert len(set(np.abs(overlap).argmax(axis=1))) == len(rows)
    unpaired = fastfood.offsets_[0] if n_components % 2 else 0.0
    np.testing.assert_allclose(Z, oracles.sincos(X @ W.T, n_components, unpaired), atol=1e-12)
    single = fastfood.transform(X.astype(np.float32))
    np.testing.assert_allclose(single, Z, atol=3e-5)


@pytest.mark.native
@pytest.mark.parametrize("projection", UNIFORM)
@pytest.mark.parametrize("d", [1, 3, 16, 100])
def test_local_features_equal_the_papers_formula(simd, projection, d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(11, d)) / np.sqrt(d) * 2.0
    fastfood = Fastfood(Gaussian(2.0), 70, projection=projection, features="local", random_state=1)
    Z = fastfood.fit_transform(X)
    t = fastfood.template_spread_
    W = fastfood.frequencies_ * 2.0 * np.sqrt(1 - t)  # standard normal rows
    np.testing.assert_allclose(Z, oracles.local(X / 2.0, W, t), rtol=1e-9)
    assert (Z > 0).all()
    single = fastfood.transform(X.astype(np.float32))
    np.testing.assert_allclose(single, Z, rtol=2e-4)


@pytest.mark.parametrize("features", ["sincos", "offset", "local"])
@pytest.mark.parametrize("projection", [*UNIFORM, "fourier"])
def test_one_length_scale_per_column_scales_the_columns(projection, features):
    if features == "local" and projection == "fourier":
        return
    X = np.random.default_rng(0).normal(size=(9, 5))
    scales = np.array([0.5, 1.0, 2.0, 4.0, 3.0])
    options = {"projection": projection, "features": features, "random_state": 0}
    apart = Fastfood(Gaussian(scales), 40, **options).fit(X)
    np.testing.assert_allclose(
        apart.transform(X), Fastfood(Gaussian(1.0), 40, **options).fit_transform(X / scales)
    )


# ---------------------------------------------------------------- directions


@pytest.mark.parametrize("draw", [draw_fastfood, draw_orthogonal, draw_fourier])
@pytest.mark.parametrize("d", [1, 2, 8, 64])
def test_directions_are_unit_vectors(draw, d):
    directions = draw(200, d, seed=0, dtype=np.float64)
    np.testing.assert_allclose(np.linalg.norm(directions.matrix(), axis=1), 1)
    np.testing.assert_allclose(directions.row_lengths(), 1)


@pytest.mark.parametrize("draw", [draw_orthogonal, draw_fourier])
@pytest.mark.parametrize("d", [2, 8, 64])
def test_directions_of_a_block_are_orthogonal(draw, d):
    blocks = draw(4 * d, d, seed=0, dtype=np.float64).matrix().reshape(4, d, d)
    np.testing.assert_allclose(
        blocks @ blocks.transpose(0, 2, 1), np.tile(np.eye(d), (4, 1, 1)), atol=1e-12
    )


@pytest.mark.parametrize("draw", [draw_fastfood, draw_orthogonal])
@pytest.mark.parametrize(("d", "columns"), [(2, 2), (3, 3), (4, 4), (16, 16), (5, 5)])
def test_each_direction_is_uniform_on_the_sphere(draw, d, columns):
    # Every row of a block, over many blocks, along an axis and along a diagonal: a
    # coordinate c of a uniform unit vector in m dimensions has (1 + c) / 2 ~ Beta.
    m = 1 << (d - 1).bit_length()
    blocks = draw(3000 * m, m, seed=1, dtype=np.float64).matrix().reshape(3000, m, m)
    law = stats.beta((m - 1) / 2, (m - 1) / 2, loc=-1, scale=2)
    for row in {0, 1, m // 2, m - 1}:
        for direction in (np.eye(m)[0], np.ones(m) / np.sqrt(m), np.eye(m)[-1]):
            assert stats.kstest(blocks[:, row] @ direction, law.cdf).pvalue > 1e-5


def test_row_lengths_are_those_that_narrow_data_sees():
    directions = draw_fastfood(50, 5, seed=0, dtype=np.float64)
    np.testing.assert_allclose(
        directions.row_lengths(), np.linalg.norm(directions.matrix(), axis=1)
    )


@pytest.mark.parametrize(
    ("draw", "oracle"),
    [(draw_fastfood, oracles.fastfood_matrix), (draw_orthogonal, oracles.orthogonal_matrix)],
)
@pytest.mark.parametrize(("n_rows", "d"), [(1, 2), (5, 7), (3, 64), (20, 33), (300, 301)])
def test_the_matrix_of_wide_data_is_the_transposed_transform_of_unit_vectors(
    draw, oracle, n_rows, d
):
    drawn = draw(n_rows, d, seed=1, dtype=np.float64)
    lengths, columns = np.arange(1.0, n_rows + 1), np.arange(1.0, d + 1)
    expected = lengths[:, None] * oracle(drawn) * columns
    stretched = drawn.stretched(lengths, columns)
    np.testing.assert_allclose(stretched.matrix(), expected, atol=1e-12 * d * n_rows)
    np.testing.assert_allclose(stretched.row_lengths(), np.linalg.norm(expected, axis=1))


def test_the_matrix_of_very_wide_data_needs_no_identity_matrix():
    directions = draw_orthogonal(2, 10**6, seed=0, dtype=np.float32)
    assert directions.matrix().shape == (2, 10**6)
    assert (directions.row_lengths() < 1).all()


# ---------------------------------------------------------------- expectation


@pytest.mark.parametrize("projection", UNIFORM)
@pytest.mark.parametrize("features", ["sincos", "offset"])
@pytest.mark.parametrize("kernel", RADIAL_KERNELS, ids=repr)
@pytest.mark.parametrize("d", [*(pytest.param(d, marks=pytest.mark.slow) for d in (1, 16)), 3])
def test_unbiased_for_every_radial_kernel_and_option(kernel, projection, features, d):
    X, Y = close_pairs(d, distance=close_enough(kernel, d))
    samples = estimates(
        lambda s: Fastfood(kernel, 129, projection=projection, features=features, random_state=s),
        X,
        Y,
        100,
    )
    assert_unbiased(samples, np.diag(kernel(X, Y)))


@pytest.mark.parametrize("projection", UNIFORM)
@pytest.mark.parametrize("kernel", RADIAL_KERNELS, ids=repr)
@pytest.mark.parametrize("d", [100, 784, 1025])
@pytest.mark.slow
def test_unbiased_for_wide_rows_of_large_norm(kernel, projection, d):
    if isinstance(kernel, BesselMatern) and d > 100:
        n_components, n_seeds = 256, 64  # lengths of cut directions cost a transform of d rows
    else:
        n_components, n_seeds = 2048, 64
    X, Y = close_pairs(d, norm=10.0, distance=close_enough(kernel, d))
    samples = estimates(
        lambda s: Fastfood(kernel, n_components, projection=projection, random_state=s),
        X,
        Y,
        n_seeds,
    )
    assert_unbiased(samples, np.diag(kernel(X, Y)))


@pytest.mark.slow
@pytest.mark.parametrize("projection", UNIFORM)
@pytest.mark.parametrize("d", [1, 3, 16, 100])
def test_local_features_are_unbiased(projection, d):
    X, Y = close_pairs(d, norm=0.5, distance=0.8)
    samples = estimates(
        lambda s: Fastfood(
            Gaussian(1.0), 256, projection=projection, features="local", random_state=s
        ),
        X,
        Y,
        100,
    )
    assert_unbiased(samples, np.diag(Gaussian(1.0)(X, Y)))


def fourier_expectation(v: np.ndarray) -> float:
    """The average of E cos(s <f, b * v>) over the Fourier rows f, signs b and chi lengths s."""
    d = v.size
    F = oracles.real_fourier_matrix(d)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    c = (signs * v) @ F.T
    return special.hyp1f1(d / 2, 0.5, -(c**2) / 2).mean()


@pytest.mark.slow
@pytest.mark.parametrize("features", ["sincos", "offset"])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_fourier_features_have_the_stated_expectation(features, d):
    X, Y = close_pairs(d, distance=2.0)
    expected = np.array([fourier_expectation(y - x) for x, y in zip(X, Y, strict=True)])
    D = 2 * d * 24 if features == "sincos" else d * 24  # whole blocks
    samples = estimates(
        lambda s: Fastfood(
            Gaussian(1.0), D, projection="fourier", features=features, random_state=s
        ),
        X,
        Y,
        150,
    )
    assert_unbiased(samples, expected)


@pytest.mark.parametrize("kernel", RADIAL_KERNELS, ids=repr)
@pytest.mark.parametrize("d", [16, 100, 784, 1025])
def test_fourier_features_near_the_kernel_for_spread_out_differences(kernel, d):
    X, Y = close_pairs(d, norm=10.0, distance=close_enough(kernel, d))
    samples = estimates(
        lambda s: Fastfood(kernel, 2 * d, projection="fourier", random_state=s), X, Y, 30
    )
    assert np.abs(samples.mean(axis=0) - np.diag(kernel(X, Y))).max() < 0.5 / d + 5 / np.sqrt(
        30 * d
    )


# ---------------------------------------------------------------- variance


@pytest.mark.slow
def test_hadamard_spreads_at_most_three_times_as_much_as_independent_frequencies():
    d, D = 16, 128
    for distance in (0.5, 1.0, 2.0):
        X, Y = close_pairs(d, distance=distance)
        v = np.linalg.norm(X - Y, axis=1)
        samples = estimates(
            lambda s: Fastfood(Gaussian(1.0), D, projection="hadamard", random_state=s), X, Y, 300
        )
        independent = (1 - np.exp(-(v**2))) ** 2 / D
        variance = samples.var(axis=0)
        assert (variance < 3 * independent).all()
        assert (variance > 0.6 * independent).all()


@pytest.mark.parametrize("d", [16, 100])
def test_orthogonal_spreads_less_than_independent_frequencies(d):
    X, Y = close_pairs(d)
    D = 512
    make = {
        "orthogonal": lambda s: Fastfood(Gaussian(1.0), D, projection="orthogonal", random_state=s),
        "independent": lambda s: RandomKitchenSinks(Gaussian(1.0), D, random_state=s),
    }
    spread = {name: estimates(f, X, Y, 100).var(axis=0) for name, f in make.items()}
    assert (spread["orthogonal"] < 0.35 * spread["independent"]).all()


@pytest.mark.parametrize("d", [4, 16])
def test_orthogonal_projections_have_the_stated_variance(d):
    X, Y = close_pairs(d, distance=2.0)
    v2, D = np.sum((X - Y) ** 2, axis=1), 8 * d
    independent = (1 - np.exp(-v2)) ** 2 / D
    less = 2 * (d - 1) * (special.hyp1f1(d, d / 2, -v2 / 2) - np.exp(-v2)) / D
    samples = estimates(lambda s: Fastfood(Gaussian(1.0), D, random_state=s), X, Y, 600)
    assert_spread(samples, independent + less)


@pytest.mark.slow
def test_one_frequency_has_the_stated_variance():
    X, Y = close_pairs(8, distance=2.0)
    for kernel in RADIAL_KERNELS:
        k, k2 = np.diag(kernel(X, Y)), np.diag(kernel(X, 2 * Y - X))
        for projection in UNIFORM:
            samples = estimates(
                lambda s, k=kernel, p=projection: Fastfood(k, 2, projection=p, random_state=s),
                X,
                Y,
                400,
            )
            assert_spread(samples, (1 + k2 - 2 * k**2) / 2)


@pytest.mark.slow
def test_local_features_have_the_stated_variance():
    m = 4
    X, Y = close_pairs(m, norm=0.4, distance=0.5)
    maps = [
        Fastfood(Gaussian(1.0), 1, projection="hadamard", features="local", random_state=s)
        for s in range(3000)
    ]
    both = np.concatenate([X, Y])
    samples = []
    for feature_map in maps:
        Z = feature_map.fit(both).transform(both)
        samples.append(Z[: len(X), 0] * Z[len(X) :, 0])
    t = maps[0].template_spread_
    plus, k = np.sum((X + Y) ** 2, axis=1), np.diag(Gaussian(1.0)(X, Y))
    squares = np.sum(X**2, axis=1) + np.sum(Y**2, axis=1)
    second = (1 - t**2) ** (-m / 2) * np.exp(2 * plus / (1 + t) - 2 * squares)
    assert_spread(np.array(samples), second - k**2)


def test_the_templates_spread_minimizes_the_variance():
    m, S = 7, 2.3
    X = np.zeros((2, m))
    X[:, 0] = np.sqrt(S) / 2  # |x + y|^2 = S for all pairs
    t = Fastfood(Gaussian(1.0), 4, features="local", random_state=0).fit(X).template_spread_
    grid = np.linspace(0.001, 0.999, 99_999)
    log_moment = -m / 2 * np.log(1 - grid**2) + 2 * S / (1 + grid)
    assert t == pytest.approx(grid[np.argmin(log_moment)], abs=1e-4)


# ---------------------------------------------------------------- Figure 1


@pytest.mark.slow
def test_errors_are_those_of_kitchen_sinks_and_fall_like_the_root_of_n():
    # Le et al., Figure 1 in miniature: 4000 uniform points of [0, 1]^10. The error is
    # averaged over pairs of different points and over seeds. How far Fastfood's error is from
    # that of independent frequencies depends on the length scale; see docs/accuracy.md.
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(4000, 10))
    X, Y = points[:2000], points[2000:]
    kernel = Gaussian(0.5)
    exact = np.exp(-0.5 * np.sum(((X - Y) / 0.5) ** 2, axis=1))
    sizes = 2 ** np.arange(6, 14)
    kinds = {"fastfood": (Fastfood, {"projection": "hadamard"}), "sinks": (RandomKitchenSinks, {})}
    errors = {name: [] for name in kinds}
    for name, (kind, options) in kinds.items():
        for n in sizes:
            seeds = range(max(6, 4096 // n))
            maps = (kind(kernel, 2 * n, random_state=s, **options) for s in seeds)
            errors[name].append(np.mean([np.abs(pair_products(m, X, Y) - exact) for m in maps]))
    ratio = np.array(errors["fastfood"]) / np.array(errors["sinks"])
    assert (np.abs(ratio - 1) < 0.1).all(), ratio
    slopes = [np.polyfit(np.log(sizes), np.log(row), 1)[0] for row in errors.values()]
    assert np.abs(np.array(slopes) + 0.5).max() < 0.03, slopes


def pair_products(feature_map, X, Y):
    feature_map.fit(X[:1])
    out = []
    for start in range(0, len(X), 500):
        part = slice(start, start + 500)
        out.append(
            np.einsum("ij,ij->i", feature_map.transform(X[part]), feature_map.transform(Y[part]))
        )
    return np.concatenate(out)


# ---------------------------------------------------------------- growth and size


@pytest.mark.parametrize("projection", [*UNIFORM, "fourier"])
@pytest.mark.parametrize("features", ["sincos", "offset", "local"])
@pytest.mark.parametrize("d", [1, 5, 300])
def test_a_larger_map_begins_with_the_smaller_one(projection, features, d):
    if features == "local" and projection == "fourier":
        return
    X = np.random.default_rng(0).normal(size=(4, d)) / np.sqrt(d)
    small, large = (
        Fastfood(
            Gaussian(1.0), D, projection=projection, features=features, random_state=0
        ).fit_transform(X)
        * np.sqrt(D)
        for D in (40, 1000)
    )
    np.testing.assert_allclose(small, large[:, :40], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("d", "n", "factor"), [(1024, 16384, 256), (4096, 32768, 1024)])
def test_a_fitted_map_is_smaller_than_dense_frequencies_as_in_table_2(d, n, factor):
    fastfood = Fastfood(Gaussian(1.0), 2 * n).fit(np.ones((1, d), dtype=np.float32))
    dense = n * d * 4
    assert dense / len(pickle.dumps(fastfood)) > factor


def test_kernels_that_are_not_radial_are_sent_to_kitchen_sinks():
    for kernel in (Laplacian(1.0), Cauchy(1.0)):
        with pytest.raises(
            ValueError,
            match=r"is not a kernel of the distance.*RandomKitchenSinks supports? it",
        ):
            Fastfood(kernel).fit(np.ones((2, 3)))


class Counted(Gaussian):
    """A Gaussian kernel that counts how often its parameters are read, as every copy does."""

    reads = 0

    def get_params(self, deep=True):
        type(self).reads += 1
        return super().get_params(deep)


def test_transform_does_not_copy_the_kernel():
    X = np.random.default_rng(0).normal(size=(5, 4))
    fastfood = Fastfood(Counted(2.0), 16, random_state=0).fit(X)
    before = Counted.reads
    for rows in (X, X.astype(np.float32), X[:1], sp.csr_array(X)):
        fastfood.transform(rows)
    assert Counted.reads == before
    assert isinstance(fastfood.kernel_, Counted)  # a copy, which is counted
    assert Counted.reads > before
