"""The allocation of features to the degrees of a power series.

The maps for dot-product kernels estimate a sum of terms, one per degree, by features that are
each of one degree. This module truncates the series and chooses the number of features per degree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.kernels import DotProductKernel
from kitchenette.sketching.random import Stream

TOLERANCE = 1e-7  # the relative truncation error
MOST_TERMS = 500  # a feature of degree n has a relative variance of up to 3^n
TERMS_LOOKED_AT = 20 * MOST_TERMS  # the number of terms summed of an infinite series
PAIR_ROWS = 256  # rows of a sample whose pairs estimate the variance of each degree
# What the features of degree one may take of all to be exact. Without it the error on test rows of
# degree 10 is 1.2 to 1.4 times as large where a linear model is good, as on CPU, Nursery and
# Spambase (`python -m benchmarks.polynomial --learning`).
EXACT_SHARE = 0.5
LARGE_COUNT = 32  # two features less of so many add 6 % to the variance of a degree
MOST_COEFFICIENTS = 10**7  # the longest finite series

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Series:
    """The truncated series f(t) = sum of a_n t^n for t up to ``largest``."""

    degrees: NDArray[np.int64]  # (n_terms,): the degrees with nonzero coefficients, ascending
    logs: Array  # (n_terms,): logarithms of the terms a_n largest^n
    largest: float  # the largest argument t

    @property
    def terms(self) -> Array:
        """a_n largest^n: the coefficients for rows scaled so that the largest t is one."""
        return np.exp(self.logs)

    def without(self, degrees: tuple[int, ...]) -> Series:
        """The series without the terms of these degrees."""
        keep = ~np.isin(self.degrees, degrees)
        return Series(self.degrees[keep], self.logs[keep], self.largest)

    def term(self, degree: int) -> float:
        """a_n largest^n of one degree, or zero."""
        return float(self.terms[self.degrees == degree].sum())


def series_up_to(kernel: DotProductKernel, last_degree: int, largest: float) -> Series:
    """The terms of a kernel's series up to a degree, at ``largest``."""
    n = np.arange(last_degree + 1)
    logs = kernel.log_coefficients(n) + n * np.log(largest)
    keep = logs > -np.inf
    return Series(n[keep], logs[keep], largest)


def cut_series(kernel: DotProductKernel, largest: float) -> Series:
    """The series of a kernel, truncated for inner products of at most ``largest``.

    A series of at most MOST_TERMS terms is kept whole. A longer or infinite one is truncated where
    the remainder at ``largest`` is below TOLERANCE of the sum, and refused if that needs too many
    terms.
    """
    if largest >= kernel.radius:
        raise ValueError(
            f"The series of {kernel!r} converges for rows of norms below {kernel.radius**0.5:g} "
            f"only; the largest norm here is {largest**0.5:g}. Scale the rows down."
        )
    if largest <= 0:  # all rows are zero: assume a typical size
        largest = 1.0 if kernel.radius == np.inf else kernel.radius / 2
    last = kernel.last_degree
    if last is None or last > MOST_TERMS:
        rest = _rests(kernel, largest)
        last = int(np.count_nonzero(rest > TOLERANCE * rest[0])) - 1
        if last >= MOST_TERMS:
            raise ValueError(
                f"The series of {kernel!r} needs more than {MOST_TERMS} terms for rows of norm "
                f"{largest**0.5:g}. Scale the rows down, or use a kernel of a lower degree."
            )
    return series_up_to(kernel, last, largest)


def missing_share(kernel: DotProductKernel, last_degree: int, t: float) -> float:
    """The sum of the terms after a degree, divided by f(t), for t > 0."""
    if kernel.last_degree is not None and kernel.last_degree <= last_degree:
        return 0.0
    rest = _rests(kernel, t)
    return float(rest[last_degree + 1] / rest[0]) if last_degree + 1 < rest.size else 0.0


def _rests(kernel: DotProductKernel, t: float) -> Array:
    """For every n, the sum of the terms of degree n and higher, relative to the largest term."""
    last = kernel.last_degree
    if last is not None and last > MOST_COEFFICIENTS:
        raise ValueError(f"The degree of {kernel!r} is too high; {MOST_TERMS} is a sensible limit.")
    n = np.arange(TERMS_LOOKED_AT if last is None else last + 1)
    logs = kernel.log_coefficients(n) + n * np.log(t)
    # Summed from the last term, so that small terms are added before large ones.
    return np.cumsum(np.exp(logs - logs.max())[::-1])[::-1]


# ---------------------------------------------------------------- shares


def geometric_probabilities(degrees: NDArray[np.int64], base: float) -> Array:
    """P[N = n] proportional to base^-(n + 1) on these degrees (Kar and Karnick)."""
    logs = -degrees * np.log(base)
    p = np.exp(logs - logs.max())
    return np.asarray(p / p.sum())


def draw_degrees(probabilities: Array, n_features: int, seed: int) -> NDArray[np.int64]:
    """Independent draws of indices into ``probabilities``."""
    u = Stream(seed, "degrees").uniforms(1, n_features)[0]
    return np.minimum(
        np.searchsorted(np.cumsum(probabilities), u, side="right"), probabilities.size - 1
    )


def rows_of_pairs(sample: Any, seed: int) -> Any:
    """Rows of a sample whose pairs estimate the variance of each degree."""
    return sample[Stream(seed, "pairs").sample(sample.shape[0], PAIR_ROWS)]


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of one feature of each degree, averaged over pairs of rows."""

    # (n_terms,): those of the product of a feature at the two rows, for a coefficient of one
    variance: Array
    second_moment: Array
    # (n_terms, n_terms): the mean of the product of the expectations of two degrees
    mean_products: Array


def moments_of(means: Array, second_moment: Array) -> Moments:
    """Moments from expectations, shape (n_terms, n_pairs), and mean second moments."""
    products = means @ means.T / means.shape[1]
    variance = np.maximum(second_moment - np.diag(products), 0.0)
    variance[variance < 1e-12 * second_moment] = 0.0  # zero up to rounding, as for one column
    return Moments(variance, second_moment, products)


def optimal_counts(
    terms: Array,
    moments: Moments,
    n_features: int,
    seed: int,
    *,
    exact_at: dict[int, int] | None = None,
) -> tuple[NDArray[np.int64], Array]:
    """The numbers of features per degree that minimize the total variance, and their expectations.

    The variance of degree n is terms[n]^2 variance[n] / count[n], so its optimal count is
    proportional to terms[n] sqrt(variance[n]). Degrees whose optimal count is below one share
    features, each of which has a random degree, so the estimate is unbiased for any number of
    features. The number of degrees that share is found by trying all. ``exact_at`` maps a term
    to the number of features that estimate it without error, which is tried as its count.

    The sum of the counts is n_features. A feature's squared weight is terms / expected.
    """
    spreads = terms * np.sqrt(moments.variance)
    # For a feature of random degree the second moment matters, not the variance. The lower bound
    # keeps the probability of every degree away from zero for rows unlike the sample.
    sharing = terms * np.sqrt(moments.second_moment)
    sharing = np.maximum(sharing, 1e-3 * sharing.max()) if sharing.any() else terms
    ranked = np.argsort(-np.where(moments.variance > 0, spreads, sharing), kind="stable")
    best: tuple[float, int, NDArray[np.int64]] | None = None
    for n_fixed in range(min(terms.size, n_features), -1, -1):
        fixed, shared = ranked[:n_fixed], ranked[n_fixed:]
        cost = 0.0
        left = n_features
        if shared.size:
            # The variance of one feature of a random degree.
            of_one = sharing[shared].sum() ** 2 - float(
                terms[shared] @ moments.mean_products[np.ix_(shared, shared)] @ terms[shared]
            )
            of_one = max(of_one, 0.0)
            of_fixed = spreads[fixed].sum()
            share = np.sqrt(of_one) / max(np.sqrt(of_one) + of_fixed, np.finfo(float).tiny)
            n_shared = int(np.clip(round(n_features * share), 1, n_features - n_fixed))
            if n_shared < 1 or n_features - n_shared < n_fixed:
                continue
            left -= n_shared
            cost += of_one / n_shared
        if n_fixed == 0 and left > 0:
            continue
        for cost_of_fixed, counts in _candidates(spreads, fixed, left, exact_at or {}):
            if best is None or cost + cost_of_fixed < best[0]:
                best = cost + cost_of_fixed, n_fixed, counts
    assert best is not None
    _, n_fixed, fixed_counts = best
    fixed, shared = ranked[:n_fixed], ranked[n_fixed:]
    counts = np.zeros(terms.size, dtype=np.int64)
    expected = np.ones(terms.size)
    counts[fixed] = expected[fixed] = fixed_counts
    if shared.size:
        n_shared = n_features - int(fixed_counts.sum())
        expected[shared] = n_shared * sharing[shared] / sharing[shared].sum()
        # Systematic sampling: each count is its expectation rounded up or down.
        offset = Stream(seed, "shared degrees").uniforms(1, 1)[0, 0]
        marks = np.floor(np.cumsum(expected[shared]) + offset)
        marks[-1] = n_shared
        counts[shared] = np.diff(marks, prepend=0.0).astype(np.int64)
    return counts, expected


def least_error_counts(
    terms: Array,
    moments: Moments,
    n_features: int,
    *,
    constant: int | None = None,
    exact_at: dict[int, int] | None = None,
) -> tuple[NDArray[np.int64], Array]:
    """The numbers of features of the degrees up to one, and their expectations.

    They minimize the mean squared error: the variance, as in `optimal_counts`, and the squared
    sum of the terms that have no features. ``constant`` is the index of the term of degree 0, if
    any: it gets one feature. The terms of ``exact_at``, those of degree one, get what makes
    them exact if that is at most EXACT_SHARE of the features; then a further degree gets the rest.
    One degree above zero is kept at least. The length of the result is the number of terms
    that are kept.
    """
    spreads = terms * np.sqrt(moments.variance)
    best: tuple[float, NDArray[np.int64]] | None = None
    for n_kept in range(1, terms.size + 1):
        bias = terms[n_kept:] @ moments.mean_products[n_kept:, n_kept:] @ terms[n_kept:]
        counts = np.zeros(n_kept, dtype=np.int64)
        if constant is not None and constant < n_kept:
            counts[constant] = 1
        for term, enough in (exact_at or {}).items():
            if term < n_kept and enough <= EXACT_SHARE * n_features:
                counts[term] = enough
        if n_kept == terms.size and counts.all():  # all are exact, so the shares do not matter
            counts[-1] = 0
        others = np.flatnonzero(counts == 0)
        left = n_features - int(counts.sum())
        if others.size > left:
            break
        if others.size == 0:
            if n_features == 1:  # the constant alone
                best = float(bias), counts
            continue
        for variance, shares in _candidates(spreads, others, left, exact_at or {}):
            if best is None or variance + bias < best[0]:
                best = variance + float(bias), counts.copy()
                best[1][others] = shares
    assert best is not None
    return best[1], best[1].astype(np.float64)


def even_counts(counts: NDArray[np.int64], chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The counts, of which those of chosen terms are even, but for one if their sum is odd.

    A feature goes from one of two terms to the other. If both have one, they get another one from
    the largest count, unless that is small itself.
    """
    counts = counts.copy()
    odd = np.flatnonzero(chosen & (counts % 2 == 1))[::-1]
    for one, other in zip(odd[::2], odd[1::2], strict=False):
        smaller, larger = (one, other) if counts[one] < counts[other] else (other, one)
        largest = int(np.argmax(np.where(chosen, counts, 0)))
        if counts[larger] > 1:
            counts[smaller] += 1
            counts[larger] -= 1
        elif counts[largest] >= LARGE_COUNT:
            counts[[one, other]] += 1
            counts[largest] -= 2
    return counts


def _candidates(
    spreads: Array, fixed: NDArray[np.intp], total: int, exact_at: dict[int, int]
) -> Iterator[tuple[float, NDArray[np.int64]]]:
    """Variances and counts for the fixed terms: proportional, or with one of them exact."""
    counts = _whole_shares(spreads[fixed], total)
    yield float((spreads[fixed] ** 2 / np.maximum(counts, 1)).sum()), counts
    for term, enough in exact_at.items():
        others = fixed[fixed != term]
        if term in fixed and others.size and total - enough >= others.size:
            counts = np.full(fixed.size, enough, dtype=np.int64)
            counts[fixed != term] = _whole_shares(spreads[others], total - enough)
            yield float((spreads[others] ** 2 / counts[fixed != term]).sum()), counts


def check_counts(counts: Any, expected: Any, n_features: int) -> NDArray[np.int64]:
    """Refuse counts that `optimal_counts` cannot have returned, and return others."""
    if counts is None or expected is None:
        raise ValueError("the counts of features per degree are missing.")
    whole = counts.dtype == np.int64 and counts.ndim == 1 and counts.min(initial=0) >= 0
    # The largest count is checked before the sum, which could overflow.
    if not whole or counts.max(initial=0) > n_features or counts.sum() != n_features:
        raise ValueError(f"The counts of features per degree must add up to {n_features}.")
    if expected.dtype != np.float64 or expected.shape != counts.shape:
        raise ValueError("The expected counts must be as many as the counts.")
    if not np.all(np.isfinite(expected) & (expected > 0)):
        raise ValueError("The expected counts must be positive.")
    return counts


def _whole_shares(spreads: Array, total: int) -> NDArray[np.int64]:
    """Integers of at least one, proportional to ``spreads``, whose sum is ``total``.

    A term with a spread of zero gets one feature.
    """
    if spreads.size == 0:
        return np.zeros(0, dtype=np.int64)
    counts = np.ones(spreads.size, dtype=np.int64)
    free = spreads > 0
    # Terms with a share below one get one; the rest is distributed among the others.
    while free.any():
        left = total - int(np.count_nonzero(~free))
        targets = left * spreads / spreads[free].sum()
        small = free & (targets < 1)
        if not small.any():
            counts[free] = np.floor(targets[free]).astype(np.int64)
            break
        free &= ~small
    gains = spreads**2
    for _ in range(total - int(counts.sum())):
        counts[np.argmax(gains / (counts * (counts + 1)))] += 1
        if not free.any():  # all terms are exact, so the distribution does not matter
            counts[0] += total - int(counts.sum())
            break
    return counts
