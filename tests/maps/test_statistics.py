"""The statistical tests themselves: they fail for wrong constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
from unbiased import assert_spread, assert_unbiased, close_pairs, estimates

from kitchenette import Fastfood, RandomKitchenSinks
from kitchenette.kernels import Gaussian, Matern, RationalQuadratic


@pytest.fixture(scope="module")
def samples():
    X, Y = close_pairs(16)
    return X, Y, estimates(fastfood, X, Y, 100)


def fastfood(seed):
    return Fastfood(Gaussian(1.0), 256, projection="hadamard", random_state=seed)


def test_a_length_scale_off_by_five_percent_is_noticed(samples):
    X, Y, values = samples
    assert_unbiased(values, np.diag(Gaussian(1.0)(X, Y)))
    for wrong in (0.95, 1.05):
        with pytest.raises(AssertionError, match="z-scores"):
            assert_unbiased(values, np.diag(Gaussian(wrong)(X, Y)))


def test_the_papers_exponent_of_the_frobenius_norm_is_noticed(samples):
    # Le et al., eq. 35 as printed: S = s |G|^-1/2 instead of s / |G|.
    X, Y, _ = samples

    def as_printed(seed):
        p = fastfood(seed).fit(X).projection_
        norms = np.linalg.norm(p.gaussians.reshape(-1, p.block), axis=1)
        scales = p.scales * np.repeat(np.sqrt(norms), p.block)
        z = (X - Y) @ oracles.fastfood_matrix(replace(p, scales=scales)).T
        return np.cos(z).mean(axis=1)  # what cosines and sines make of a pair

    printed = np.array([as_printed(seed) for seed in range(100)])
    with pytest.raises(AssertionError, match="z-scores"):
        assert_unbiased(printed, np.diag(Gaussian(1.0)(X, Y)))


def test_the_degrees_of_freedom_of_a_mixture_are_noticed():
    X, Y = close_pairs(3)
    for right, wrong in [
        (Matern(1.5, 1.0), Matern(2.0, 1.0)),
        (RationalQuadratic(1.0, 1.0), RationalQuadratic(2.0, 1.0)),
    ]:
        values = estimates(
            lambda s, k=right: RandomKitchenSinks(k, 1024, random_state=s), X, Y, 100
        )
        assert_unbiased(values, np.diag(right(X, Y)))
        with pytest.raises(AssertionError, match="z-scores"):
            assert_unbiased(values, np.diag(wrong(X, Y)))


def test_a_variance_off_by_a_factor_of_one_and_a_half_is_noticed():
    X, Y = close_pairs(16)
    k, k2 = np.diag(Gaussian(1.0)(X, Y)), np.diag(Gaussian(0.5)(X, Y))
    values = estimates(lambda s: RandomKitchenSinks(Gaussian(1.0), 64, random_state=s), X, Y, 400)
    variance = (1 + k2 - 2 * k**2) / 64
    assert_spread(values, variance)
    for factor in (1 / 1.5, 1.5):
        with pytest.raises(AssertionError, match="variance"):
            assert_spread(values, factor * variance)
