"""Compact maps: TEFM (2015) and CRAFTMaps (Hamid et al. 2014)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kitchenette.bounds.base import Bound, PairBound, chebyshev, checked_number
from kitchenette.parameters import check_choice, check_count
from kitchenette.sketching.structured import padded_block


@dataclass(frozen=True)
class KitchenSinksSpectralError(Bound):
    """The spectral error of the kernel matrix of `RandomKitchenSinks`, over the number of rows.

    For independent frequencies, cosines and sines, and a shift-invariant kernel with k(x, x) = 1.
    The error is |K - F F'|_2 / n for any n rows with features F; it is a bound on all of them at
    once, because |K|_2 is at most n.

    Notes
    -----
    With a = D / 2 frequencies and L = log(40 / delta) the error is at most

        L / (3 a) + sqrt((L / (3 a))^2 + L / (2 a)),

    by the matrix Bernstein inequality (Tropp 2015, Theorem 7.3.1). This is the first half of the
    proof of Theorem 1, with two constants settled. One term, (K - a H_i H_i') / a, has a norm of
    at most n / a and not 2 n / a, being the difference of two positive semidefinite matrices of
    norms up to n / a. The intrinsic dimension r, which the paper leaves open, is at most 10: the
    variance is at most n K - K^2, whose largest eigenvalue may be raised to the bound n^2 / 4 of
    its norm; the trace is then at most 5/4 n^2, and counts twice.

    References
    ----------
    Training-efficient feature map for shift-invariant kernels, IJCAI 2015, Theorem 1.
    Tropp, An introduction to matrix concentration inequalities, 2015.

    Examples
    --------
    >>> from kitchenette.bounds import KitchenSinksSpectralError
    >>> KitchenSinksSpectralError().n_components(0.1, delta=0.05)
    758
    """

    def _error(self, n_components: int, delta: float) -> float:
        n_frequencies = n_components // 2
        if n_frequencies == 0:
            return np.inf
        log = np.log(40 / delta) / float(n_frequencies)
        return float(log / 3 + np.sqrt((log / 3) ** 2 + log / 2))


@dataclass(frozen=True)
class TEFMSpectralError(Bound):
    """The spectral error of the kernel matrix of `TEFM`, over the number of training rows.

    For ``TEFM(RandomKitchenSinks(...), method="gaussian")``. The error is |K - G G'|_2 / n for the
    n rows that the map was fitted on, with features G, whatever the rows.

    Parameters
    ----------
    base_components : int
        The number D of features of the base map.
    power_iterations : int, default=0
        The map's ``power_iterations``, q.

    Notes
    -----
    The error is at most that of `KitchenSinksSpectralError` for D features and delta / 2, plus
    that of the range finder for l features: with e = delta / 2, for every k from 2 to l - 4 and
    p = l - k,

        c^(2 / (2q + 1)) / (k + 1),   t = (4 / e)^(1/p),   u = sqrt(2 log(2 / e)),
        c = 1 + t sqrt(3 k / (p + 1)) + t exp(1) sqrt(l) (sqrt(k + 1) + u) / (p + 1)

    (Halko et al., Theorems 9.2 and 10.8, with s_(k+1)^2 <= n / (k + 1) and the sum of all s_j^2
    equal to n). The best k is taken, and one if that is less.

    Theorem 1 has O(1 / l) with l = k + p for a small constant p such as 5 and a factor that is not
    written out. It is c^2 for q = 0, which is of the order l for a constant p: the bound is then
    no better than |K|. The theorem holds if p is in proportion to l; the error is about 60 / l.
    These are worst cases over all kernel matrices. If the eigenvalues of K decay fast, the
    range finder is far better, and the error is that of the base map.

    References
    ----------
    Training-efficient feature map for shift-invariant kernels, IJCAI 2015, Theorem 1.
    Halko, Martinsson and Tropp, Finding structure with randomness, SIAM Review 2011.

    Examples
    --------
    >>> from kitchenette.bounds import TEFMSpectralError
    >>> bound = TEFMSpectralError(base_components=4096, power_iterations=1)
    >>> bound.n_components(0.1, delta=0.05)
    143
    """

    base_components: int
    power_iterations: int = 0

    def __post_init__(self) -> None:
        check_count("base_components", self.base_components)
        check_count("power_iterations", self.power_iterations, least=0)

    def _error(self, n_components: int, delta: float) -> float:
        of_base = KitchenSinksSpectralError()._error(self.base_components, delta / 2)
        if n_components >= self.base_components:
            return of_base  # the basis then spans all base features
        return of_base + self._range_error(n_components, delta / 2)

    def _range_error(self, n_components: int, delta: float) -> float:
        k = np.arange(2, n_components - 3)
        p = n_components - k
        t, u = (4 / delta) ** (1 / p), np.sqrt(2 * np.log(2 / delta))
        c = 1 + t * np.sqrt(3 * k / (p + 1))
        c += t * math.e * np.sqrt(n_components) * (np.sqrt(k + 1) + u) / (p + 1)
        return float(np.min(c ** (2 / (2 * self.power_iterations + 1)) / (k + 1), initial=1.0))


@dataclass(frozen=True)
class CRAFTMapError(PairBound):
    """The error of `CRAFTMap`: that of the wide map, plus that of the projection.

    Parameters
    ----------
    up : PairBound
        A bound on the absolute error of the wide map, such as `GaussianProductsError`.
    up_components : int
        The number D of features of the wide map.
    projection : {"srht", "gaussian"}, default="srht"
        How the wide features are projected: `SRHT`, the default of the map, or independent
        normal numbers, ``down=GaussianRandomProjection()``.
    largest : float, default=1.0
        The largest k(x, x).

    Notes
    -----
    With the error a of the wide map at the pairs (x, y), (x, x) and (y, y) the squared lengths of
    the wide features are at most ``largest`` + a. The projection to E columns then adds
    b (``largest`` + a), where for each of these pairs, with probability 1 - e,

        gaussian: b = 2 sqrt(w / E) + 2 w / E,  w = log(4 / e), from the tails of chi squared
                  (Laurent and Massart 2000) for the sum and the difference of two rows;
        srht:     b = sqrt(2 (D - E) / (E (D - 1) e)), D being padded to a power of two, by its
                  variance, or for small e
                  b = 2 log(8 D / e) sqrt(2 log(4 / e) (1 - (E - 1) / D) / E): Lemma 12 of
                  Fastfood bounds the coordinates, and Serfling's inequality the mean of those
                  that are picked.

    Theorem 3.3 has this for "a Johnson-Lindenstrauss map" without constants, and without the
    factor 1 + a, that is, for wide features of length one. The term 2^(r+1) log(n)^(r+1) / sqrt(D)
    is its Corollary 3.2; see `GaussianProductsError` for what it leaves out.

    References
    ----------
    Hamid, Xiao, Gittens and DeCoste, Compact random feature maps, ICML 2014, Theorem 3.3.
    Laurent and Massart, Adaptive estimation of a quadratic functional, Annals of Statistics 2000.
    Serfling, Probability inequalities for the sum in sampling without replacement, 1974.

    Examples
    --------
    >>> from kitchenette.bounds import CRAFTMapError, GaussianProductsError
    >>> wide = GaussianProductsError(degree=2)
    >>> bound = CRAFTMapError(wide, up_components=2**18, projection="gaussian")
    >>> bound.error(4096) < wide.error(4096)
    True
    """

    up: PairBound
    up_components: int
    projection: str = "srht"
    largest: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.up, PairBound):
            raise ValueError(f"up must be a bound on pairs of rows; got {self.up!r}.")
        check_count("up_components", self.up_components)
        check_choice("projection", self.projection, ("srht", "gaussian"))
        checked_number("largest", self.largest)

    def _error(self, n_components: int, delta: float) -> float:
        # Three pairs, of which those of a row with itself are also needed for other pairs.
        of_up = self.up._error(self.up_components, delta / 6)
        return of_up + (self.largest + of_up) * self._projection_error(n_components, delta / 2)

    def _projection_error(self, n_components: int, delta: float) -> float:
        if self.projection == "gaussian":
            w = np.log(4 / delta) / float(n_components)
            return float(2 * np.sqrt(w) + 2 * w)
        padded = padded_block(self.up_components)
        if n_components >= padded:
            return 0.0
        by_variance = chebyshev(2 * (padded - n_components) / (n_components * (padded - 1)), delta)
        left = 1 - (n_components - 1) / padded
        deviation = np.sqrt(2 * np.log(4 / delta) * left / n_components)
        return min(by_variance, float(2 * np.log(8 * padded / delta) * deviation))
