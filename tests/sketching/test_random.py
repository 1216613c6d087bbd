"""The random numbers: known answers, distributions, and what they depend on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from kitchenette.sketching.random import Stream, seed_from
from kitchenette.sketching.sobol import scrambled_sobol

pytestmark = pytest.mark.native

# Distribution tests reject at this level. Seeds are fixed, so a failure is a change of the
# numbers, and a p-value this small means they are wrong.
LEVEL = 1e-5


def numpy_philox(seed: int, stream: int, block: int, count: int) -> np.ndarray:
    # NumPy increments its counter before the first words: start one before (0, block, 0, 0).
    counter = (block << 64) - 1 if block else 2**256 - 1
    words = [(counter >> (64 * k)) & (2**64 - 1) for k in range(4)]
    key = np.array([seed, stream], dtype=np.uint64)
    return np.random.Philox(key=key, counter=np.array(words, dtype=np.uint64)).random_raw(count)


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("block", [0, 1, 77])
def test_words_are_those_of_numpys_philox(seed, block):
    stream = Stream(seed, "a name")
    ours = stream.words(3, 4099, first=block)
    for k in range(3):
        theirs = numpy_philox(seed, stream._stream, block + k, 4099)
        assert np.array_equal(ours[k], theirs)


def test_a_number_depends_on_seed_name_block_and_index_only():
    stream = Stream(3, "x")
    for make in (stream.uniforms, stream.normals, stream.signs, stream.words):
        long = make(5, 1000)
        assert np.array_equal(make(2, 700, first=3), long[3:, :700])
    assert np.array_equal(stream.permutations(1, 50, first=2)[0], stream.permutations(3, 50)[2])
    assert not np.array_equal(stream.words(1, 9), Stream(4, "x").words(1, 9))
    assert not np.array_equal(stream.words(1, 9), Stream(3, "y").words(1, 9))


def test_uniforms_are_uniform_and_never_zero_or_one():
    u = Stream(0, "uniforms").uniforms(4, 250_000).ravel()
    assert 0 < u.min() < 1e-4
    assert 1 - 1e-4 < u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > LEVEL


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normals_are_the_quantiles_of_the_uniforms(dtype):
    stream = Stream(0, "normals")
    g = stream.normals(3, 100_000, dtype=dtype)
    exact = special.ndtri(stream.uniforms(3, 100_000))
    assert g.dtype == dtype
    np.testing.assert_allclose(g, exact, rtol=1e-14 if dtype == np.float64 else 1e-6, atol=1e-15)
    assert stats.kstest(g.ravel(), "norm").pvalue > LEVEL


def test_signs_are_fair_and_uncorrelated():
    signs = Stream(0, "signs").signs(200, 2000).astype(float)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.sum()) < 4.5 * np.sqrt(signs.size)
    neighbors = (signs[:, 1:] * signs[:, :-1]).sum()
    assert abs(neighbors) < 4.5 * np.sqrt(signs.size)
    blocks = (signs[1:] * signs[:-1]).sum()
    assert abs(blocks) < 4.5 * np.sqrt(signs.size)


def test_permutations_are_permutations_and_all_equally_likely():
    permutations = Stream(0, "permutations").permutations(48_000, 4)
    assert np.array_equal(np.sort(permutations, axis=1), np.tile(np.arange(4), (48_000, 1)))
    codes = permutations @ np.array([64, 16, 4, 1])
    _, counts = np.unique(codes, return_counts=True)
    assert counts.size == 24
    assert stats.chisquare(counts).pvalue > LEVEL


def test_a_sample_is_sorted_distinct_and_everything_if_that_is_little():
    stream = Stream(0, "sample")
    assert np.array_equal(stream.sample(7, 10), np.arange(7))
    rows = stream.sample(10**9, 1000)
    assert 990 <= rows.size <= 1000
    assert (np.diff(rows) > 0).all()
    assert rows[0] >= 0
    assert rows[-1] < 10**9


def test_random_states_of_all_kinds_give_seeds():
    assert seed_from(5) == 5
    assert seed_from(np.int64(5)) == 5
    assert seed_from(None) != seed_from(None)
    assert seed_from(np.random.default_rng(0)) == seed_from(np.random.default_rng(0))
    assert seed_from(np.random.RandomState(0)) == seed_from(np.random.RandomState(0))
    for bad in (-1, 2**64, 1.5, "seed", True):
        with pytest.raises(ValueError, match="random_state must be"):
            seed_from(bad)


@pytest.mark.slow
def test_sobol_points_are_uniform_even_and_their_own_prefix():
    blocks = scrambled_sobol(5, seed=1, block=64)
    points = np.concatenate([next(blocks) for _ in range(16)])
    assert points.min() > 0
    assert points.max() < 1
    # In every dimension, each of the 1024 intervals of length 2^-10 holds one point.
    for column in points.T:
        assert np.array_equal(np.sort((column * 1024).astype(int)), np.arange(1024))
    # Any one point is uniform over seeds.
    firsts = np.array([next(scrambled_sobol(1, seed, 64))[3, 0] for seed in range(2000)])
    assert stats.kstest(firsts, "uniform").pvalue > LEVEL
