"""Fastfood (Le, Sarlos and Smola 2013)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kitchenette.bounds.base import PairBound, chebyshev, checked_number
from kitchenette.parameters import check_count
from kitchenette.sketching.structured import padded_block


@dataclass(frozen=True)
class FastfoodError(PairBound):
    """The error of `Fastfood` for the Gaussian kernel, by its variance.

    For ``projection="hadamard"`` with cosines and sines, the paper's map. The default projection,
    "orthogonal", has less variance for close rows and as much for distant ones.

    Parameters
    ----------
    distance : float or None, default=None
        v = |x - y| / length_scale, or the largest one if there are many. None stands for any
        distance.

    Notes
    -----
    The variance of D features, D / 2 frequencies, is at most

        (1 - exp(-v^2))^2 (3 - 2 K) / D,   K = sum of v_i^4 / (sum of v_i^2)^2,

    that is, between one and three times that of `RandomKitchenSinks` whatever the rows; K is
    taken as zero. The error is the root of the variance over delta.

    Corollary 10 bounds it by 2 (1 - exp(-v^2))^2 / n + C(v) / n for n = D / 2 frequencies, with
    C(v) = 6 v^4 (exp(-v^2) + v^2 / 3), which is correct but grows with v where the variance does
    not: it is 16 times the variance of independent frequencies at best, 2900 times at v = 3.
    Its steps can be made exact. By equation 41 the covariance of two cosines of a block is
    exp(-v^2) (cosh(v^2 rho) - 1), at most rho^2 (1 - exp(-v^2))^2 / 2 because only even powers of
    rho occur in the series of cosh. The mean of rho^2 over permutations and signs is exactly
    2 (1 - K) / (d - 1), where the paper has the bound 12 / d. The variance of one cosine is
    (1 - exp(-v^2))^2 / 2, a fourth of the first term of the corollary.

    This is a proof for the matrix V without the scaling S, for which close rows have the stated
    variance. With S, which the map has, it is lower: about twice that of independent frequencies
    for close rows (docs/accuracy.md).

    References
    ----------
    Le, Sarlos and Smola, Fastfood: approximate kernel expansions in loglinear time, ICML 2013,
    Theorem 9 and Corollary 10.

    Examples
    --------
    >>> from kitchenette.bounds import FastfoodError
    >>> FastfoodError(distance=1.0).n_components(0.1, delta=0.05)
    2398
    >>> FastfoodError().n_components(0.1, delta=0.05)  # at any distance
    6000
    """

    distance: float | None = None

    def __post_init__(self) -> None:
        if self.distance is not None:
            checked_number("distance", self.distance)

    def _error(self, n_components: int, delta: float) -> float:
        of_one = 1.0 if self.distance is None else np.expm1(-(self.distance**2)) ** 2
        return chebyshev(3 * float(of_one) / n_components, delta)


@dataclass(frozen=True)
class FastfoodTailError(PairBound):
    """The error of `Fastfood` for the Gaussian kernel, by concentration of measure.

    For small delta, or many rows, where `FastfoodError` asks for too much.

    Parameters
    ----------
    distance : float
        v = |x - y| / length_scale, or the largest one if there are many.
    n_columns : int
        The number of columns, which is padded to a power of two.

    Notes
    -----
    With n = D / 2 frequencies in blocks of d padded columns, N = n rounded up to whole blocks, and
    e = delta / 2, the error is at most

        2 v sqrt(log(2 / e) log(2 N / e) / n).

    Theorem 11 is the case of one block, with probability 1 - 2 e: its statement is correct.
    (Equation 52 has L inside the root, and v is (x - x') / sigma.) For several blocks the
    estimate is a function of all normal numbers with the slope max |u| sqrt(d / n), where u are the
    transformed differences of all blocks, and Lemma 12 is applied to N numbers instead of d.

    The proof is for the matrix without the scaling S; with S errors are smaller.

    References
    ----------
    Le, Sarlos and Smola, Fastfood: approximate kernel expansions in loglinear time, ICML 2013,
    Theorem 11.

    Examples
    --------
    >>> from kitchenette.bounds import FastfoodError, FastfoodTailError
    >>> bound = FastfoodTailError(distance=1.0, n_columns=64)
    >>> bound.n_components(0.1, delta=0.05)
    50928
    >>> bound.n_components(0.1, n_rows=1000) < FastfoodError(1.0).n_components(0.1, n_rows=1000)
    True
    """

    distance: float
    n_columns: int

    def __post_init__(self) -> None:
        checked_number("distance", self.distance)
        check_count("n_columns", self.n_columns)

    def _error(self, n_components: int, delta: float) -> float:
        n_frequencies, block = n_components // 2, padded_block(self.n_columns)
        if n_frequencies == 0:
            return np.inf
        padded = -(-n_frequencies // block) * block
        logs = np.log(4 / delta) * (np.log(4 / delta) + np.log(float(padded)))
        return float(2 * self.distance * np.sqrt(logs / float(n_frequencies)))
