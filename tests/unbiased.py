"""Tests of expectations: significance and power stated once, for all maps.

The mean of an estimate over independent seeds is compared with what it should be, in
standard errors that the seeds' own spread gives. With 64 seeds or more, 4.5 standard errors
are exceeded by chance with probability below 3e-5; seeds are fixed, so that a test that
passes goes on passing. `test_statistics.py` shows that wrong constants fail.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kitchenette.kernels import (
    BesselMatern,
    Gaussian,
    Kernel,
    Laplacian,
    Matern,
    RationalQuadratic,
)

LIMIT = 4.5
RADIAL_KERNELS = [
    Gaussian(1.3),
    Matern(0.6, 1.5),
    Matern(2.5, 1.5),
    RationalQuadratic(0.7, 1.2),
    BesselMatern(1, 0.6),
    BesselMatern(3, 0.8),
]


def close_enough(kernel: Kernel, d: int) -> float:
    """A distance at which the kernel is neither one nor next to zero."""
    if isinstance(kernel, Laplacian):
        return 1.5 / np.sqrt(d) * 3 if d > 3 else 1.5
    if isinstance(kernel, BesselMatern):
        return np.sqrt((d + 2) / kernel.n_points) * kernel.length_scale
    return 1.5


def close_pairs(
    d: int, *, n: int = 6, norm: float = 1.0, distance: float = 1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows of this norm whose distances lie between 0.3 and 1 times ``distance``."""
    rng = np.random.default_rng([d, seed])
    X = rng.normal(size=(n, d))
    X *= norm / np.linalg.norm(X, axis=1, keepdims=True)
    step = rng.normal(size=(n, d))
    step *= (distance * np.linspace(0.3, 1, n) / np.linalg.norm(step, axis=1))[:, None]
    return X, X + step


def leaning_pairs(
    d: int, *, n: int = 5, norm: float = 1.0, lean: float = 0.95, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows of this norm that lean toward the first axis.

    High powers of projections on random signs have tails so heavy that no number of seeds
    would do, unless one column dominates; with one column alone they are exact.
    """
    rng = np.random.default_rng([d, seed])
    rows = rng.normal(size=(2 * n, d))
    rows[:, 0] = 0
    if d > 1:
        rows *= np.sqrt(1 - lean**2) / np.linalg.norm(rows, axis=1, keepdims=True)
    rows[:, 0] = lean if d > 1 else 1.0
    rows *= norm
    return rows[:n], rows[n:]


def estimates(
    make: Callable[[int], object], X: np.ndarray, Y: np.ndarray, n_seeds: int
) -> np.ndarray:
    """Inner products of the features of each pair, shape (n_seeds, n_pairs)."""
    both = np.concatenate([X, Y])
    out = []
    for seed in range(n_seeds):
        Z = make(seed).fit(both).transform(both)
        out.append(np.einsum("ij,ij->i", Z[: len(X)], Z[len(X) :]))
    return np.array(out)


def z_scores(samples: np.ndarray, expected: np.ndarray) -> np.ndarray:
    # A spread of rounding errors (identical features) is no evidence against anything.
    floor = 1e-7 * np.abs(expected).max()
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return (samples.mean(axis=0) - expected) / np.hypot(error, floor)


def assert_unbiased(
    samples: np.ndarray, expected: np.ndarray, *, noticed: float | None = None
) -> None:
    """The mean is as expected, and would not be if that were ``noticed`` times as large."""
    scores = z_scores(samples, expected)
    assert np.abs(scores).max() < LIMIT, f"z-scores {np.round(scores, 1)}"
    if noticed is not None:
        scores = z_scores(samples, noticed * expected)
        assert np.abs(scores).max() >= LIMIT, f"no power: z-scores {np.round(scores, 1)}"


def assert_spread(samples: np.ndarray, variance: np.ndarray) -> None:
    """The sample variance agrees with the stated one.

    Its relative standard error is sqrt((kurtosis - 1) / n) for n seeds, with the samples'
    own kurtosis; 400 seeds tell a variance that is wrong by a factor of 1.5.
    """
    n = len(samples)
    centered = samples - samples.mean(axis=0)
    kurtosis = np.mean(centered**4, axis=0) / np.mean(centered**2, axis=0) ** 2
    scores = (samples.var(axis=0, ddof=1) / variance - 1) / np.sqrt((kurtosis - 1) / n)
    assert np.abs(scores).max() < LIMIT, f"z-scores of the variance {np.round(scores, 1)}"
