"""Leverage scores: a sample of rows that misses no direction of the features.

The leverage of a row of centered features c and weight v is v c' (C' V C + lambda I)^-1 c, with the
features C and weights V of all rows: how much of a direction belongs to this row alone. Where some
directions have few rows, such as those of a rare category, an even sample hardly sees them. If rows
are drawn with chances proportional to their leverages instead, and count as many times as their
chances are small, the matrix of the sample is close to that of all rows in every direction (Rudi et
al.). Rough scores suffice, so they come from a few of the features, and from a first, even sample
of the rows: a direction that this one lacks has high scores.

References
----------
Rudi, Calandriello, Carratino and Rosasco, On fast leverage score sampling and optimal learning,
NeurIPS 2018.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from kitchenette.learning.passes import FeatureRows
from kitchenette.learning.threads import one_blas_thread

Array = NDArray[np.float64]
SCORE_FEATURES = 256
SCORE_ROWS = 4096  # of the first sample
PENALTY = 1e-6  # lambda, relative to the trace
LEAST_TRACE = LEAST_SHARE = 1e-290  # smaller numbers have lost digits
EVEN = 0.1  # the part of the chances that does not depend on the leverages


def leverage_scores(rows: FeatureRows, first: FeatureRows, mean: Array) -> Array | None:
    """Numbers that are roughly proportional to the leverages of rows of weight one.

    Takes one pass over the rows.

    Parameters
    ----------
    rows : FeatureRows
        All rows.
    first : FeatureRows
        An even sample of them, with their weights.
    mean : ndarray of shape (n_features,)
        What is subtracted from the features.

    Returns
    -------
    scores : ndarray of shape (n_rows,) or None
        None if the features of the sample do not vary, or if these numbers overflow.
    """
    count = min(SCORE_FEATURES, rows.n_features)
    which = np.sort(np.random.default_rng(0).choice(rows.n_features, count, replace=False))
    center, gram = mean[which], np.zeros((count, count))
    with np.errstate(over="ignore", invalid="ignore"), one_blas_thread(count):
        for part, Z in first.some_features(which):
            centered = Z - center
            gram += centered.T @ (first.weights[part, None] * centered)
        trace = float(np.einsum("ii->", gram))
    if not LEAST_TRACE < trace < np.inf:
        return None
    gram /= trace
    gram[np.diag_indices_from(gram)] += PENALTY
    with one_blas_thread(count):
        inverse_root = solve_triangular(cholesky(gram, lower=True), np.eye(count), lower=True)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = rows.squared_lengths(which, center, inverse_root / np.sqrt(trace))
        return scores if 0 < scores.sum() < np.inf else None


def chances(scores: Array, weights: Array, count: int) -> Array:
    """Chances of rows to be drawn, none above one, whose sum is ``count``.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Leverage scores of rows of weight one.
    weights : ndarray of shape (n_rows,)
        The weights of the rows, all positive.
    count : int
        How many rows are drawn; fewer than there are.
    """
    weights = weights / weights.max()
    leverages = scores / scores.max() * weights
    shares = EVEN * weights / weights.sum() + (1 - EVEN) * leverages / (leverages.sum() or 1.0)
    shares = np.maximum(shares, LEAST_SHARE)
    certain = np.zeros(shares.size, dtype=bool)
    while True:
        factor = (count - np.count_nonzero(certain)) / shares[~certain].sum()
        more = factor * shares >= 1
        if not (more & ~certain).any():
            return np.where(certain, 1.0, factor * shares)
        certain |= more


def systematic_sample(chances: Array) -> NDArray[np.intp]:
    """Rows drawn with these chances from rows in random order, as many as the chances add up to."""
    sums = np.cumsum(chances)
    return np.unique(np.searchsorted(sums, np.arange(0.5, sums[-1])))
