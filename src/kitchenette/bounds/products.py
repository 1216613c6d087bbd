"""Products of random projections: Random Maclaurin (Kar and Karnick 2012) and CRAFTMaps' lemma."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb, prod
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from kitchenette.bounds.base import Bound, PairBound, checked_number, hoeffding
from kitchenette.kernels import DotProductKernel
from kitchenette.maps.degrees import cut_series, geometric_probabilities
from kitchenette.parameters import check_count

# The best moment for a probability p is about 2 log(1/p): 40 moments do for 1e-9, and bounds for
# smaller probabilities are true, but wider than they need be.
MOST_MOMENTS = 40
NET_SHARE = 0.1  # of the error, for the distance to the net; 0.02 to 0.1 differ by 3 % of features


@dataclass(frozen=True)
class MaclaurinError(PairBound):
    """The error of `RandomMaclaurin` at pairs of rows, by Hoeffding's inequality.

    For independent signs and random degrees, ``RandomMaclaurin(projection="rademacher",
    degrees="geometric")``, as in the paper.

    Parameters
    ----------
    kernel : DotProductKernel
        The kernel f(<x, y>), the sum of a_n <x, y>^n.
    absolute_sum : float
        R, the largest sum of the absolute entries of a row (its 1-norm).
    base : float, default=2.0
        The paper's p: degree n has a probability P[N = n] proportional to base^-(n + 1).

    Notes
    -----
    A feature of degree n contributes a_n / P[N = n] times a product of 2 n projections of at most
    R each, so it lies in [-C, C] with C = max of a_n R^2n / P[N = n], and the error of D features
    is at most C sqrt(2 log(2 / delta) / D).

    It also holds for a `Composition` of this kernel with another whose map has independent columns
    z_j, if n |z_j(x) z_j(y)| is at most R^2 for n columns: R = sqrt(2) for the cosines of
    ``RandomKitchenSinks(features="offset")``, which `RandomMaclaurin` takes for kernels that are
    not radial.

    The papers have C = p f(p R^2), the sum instead of the maximum, and 8 C^2 instead of 2 C^2
    (equation 1 of Hamid et al.). The poster leaves out the factor p. Equation 2 of Hamid et al.
    has p = 1/2, for which the probabilities do not add up; for a power r and R = sqrt(d), C is
    d^r if all features have degree r, as here, and 2^(r+1) d^r for p = 2.

    References
    ----------
    Kar and Karnick, Random feature maps for dot product kernels, AISTATS 2012, Theorem 4.
    Hamid, Xiao, Gittens and DeCoste, Compact random feature maps, ICML 2014, equations 1 and 2.

    Examples
    --------
    >>> from kitchenette.bounds import MaclaurinError
    >>> from kitchenette.kernels import Exponential
    >>> bound = MaclaurinError(Exponential(), absolute_sum=1.0)
    >>> bound.n_components(0.1, delta=0.05)
    11803
    """

    kernel: DotProductKernel
    absolute_sum: float
    base: float = 2.0

    def __post_init__(self) -> None:
        check_products(self.kernel, self.absolute_sum, self.base)

    def _error(self, n_components: int, delta: float) -> float:
        limits = feature_limits(self.kernel, self.absolute_sum, self.base)
        return hoeffding(2 * limits.product, n_components, delta)


@dataclass(frozen=True)
class MaclaurinUniformError(Bound):
    """The error of `RandomMaclaurin` over all rows of a ball, seen or unseen.

    For ``RandomMaclaurin(projection="rademacher", degrees="geometric")``.

    Parameters
    ----------
    kernel : DotProductKernel
        The kernel f(<x, y>), the sum of a_n <x, y>^n.
    absolute_sum : float
        R: the rows have absolute sums (1-norms) of at most R.
    n_columns : int
        The number d of columns.
    base : float, default=2.0
        The paper's p: degree n has a probability P[N = n] proportional to base^-(n + 1).

    Notes
    -----
    Theorem 4 gives the order of the number of features, d C^2 log(R L / (error delta)) / error^2.
    With constants: in the 1-norm, in which every projection has slope one, one feature's product
    has a slope of at most G = max of n a_n R^(2n-1) / P[N = n] in each row, and the kernel one of
    R f'(R^2); L is their sum. The ball is covered by N = (1 + 2 R / r)^d balls of radius
    r = s error / (2 L), with s = 0.1. If no pair of centers has an error above (1 - s) error, then
    no pair of rows has one above ``error``. By `MaclaurinError` and the union bound over
    N (N + 1) / 2 pairs this holds with probability 1 - delta for

        D = 2 C^2 (log(N (N + 1)) - log(delta)) / ((1 - s) error)^2.

    The slopes bound every draw, not the mean over draws, so Markov's inequality is not needed and
    delta appears once.

    References
    ----------
    Kar and Karnick, Random feature maps for dot product kernels, AISTATS 2012, Theorem 4.

    Examples
    --------
    >>> from kitchenette.bounds import MaclaurinUniformError
    >>> from kitchenette.kernels import Exponential
    >>> bound = MaclaurinUniformError(Exponential(), absolute_sum=1.0, n_columns=10)
    >>> bound.n_components(0.1, delta=0.05)
    672581
    """

    kernel: DotProductKernel
    absolute_sum: float
    n_columns: int
    base: float = 2.0

    def __post_init__(self) -> None:
        check_products(self.kernel, self.absolute_sum, self.base)
        check_count("n_columns", self.n_columns)

    def _error(self, n_components: int, delta: float) -> float:
        R = self.absolute_sum
        most, slope = feature_limits(self.kernel, R, self.base)
        if most == 0:
            return 0.0

        def excess(log_error: float) -> float:
            """How much the failures at this error exceed delta, as a logarithm."""
            error = np.exp(log_error)
            log_balls = self.n_columns * np.log1p(4 * R * slope / (NET_SHARE * error))
            log_pairs = log_balls + np.logaddexp(log_balls, 0.0)
            exponent = float(n_components) * ((1 - NET_SHARE) * error / most) ** 2 / 2
            return float(log_pairs - np.log(delta) - exponent)

        # Between zero and twice the largest error of any number of features.
        high = np.log(2 * most / (1 - NET_SHARE)) + 50
        low = high - 700
        if excess(low) <= 0:
            return 0.0
        if excess(high) > 0:
            return np.inf
        return float(np.exp(optimize.brentq(excess, low, high, xtol=1e-12)))


@dataclass(frozen=True)
class GaussianProductsError(PairBound):
    """The error of products of Gaussian projections for <x, y>^r at unit rows.

    For ``RandomMaclaurin(Polynomial(r, coef0=0), projection="gaussian")``. For rows of other
    norms multiply the error by |x|^r |y|^r.

    Parameters
    ----------
    degree : int
        The degree r.

    Notes
    -----
    By Markov's inequality the error of D features is at most (mu_k / delta)^(1/k) for every even k,
    where mu_k is the k-th central moment of the mean of D products. For two equal rows, for which
    it is largest, one product has the moments ((2j - 1)!!)^r, j = 1, 2, ...; the cumulants of the
    mean are those of one product over D^(j-1), and mu_k follows from them. The best k up to 40 is
    taken; k = 2 gives sqrt((3^r - 1) / (delta D)).

    The paper bounds moments by the inequalities of Marcinkiewicz and Zygmund (with Burkholder's
    constant k - 1) and Jensen instead: the error is at most
    2 (k - 1) (M_k / delta)^(1/k) / sqrt(D) for every real k of at least 2, with
    M_k = (2^k Gamma(k + 1/2) / sqrt(pi))^r. This is returned for a delta so small that it is less.
    Lemma 3.1 follows from it with one k: for D >= 3 4^(r+2) / error^2 the probability is at most
    0.766^r exp(-(D error^2 / 11)^(1/(2r+2)) / 2). It is correct (k need not be whole). The
    proof of Corollary 3.2 drops the 1/2 in that exponent, the 11 and delta: not
    4^(r+1) log(n)^(2r+2) / error^2 features are enough for n rows but
    11 (2 log(0.766^r n (n + 1) / (2 delta)))^(2r+2) / error^2, about 11 4^(r+1) times more.

    References
    ----------
    Hamid, Xiao, Gittens and DeCoste, Compact random feature maps, ICML 2014, Lemma 3.1 and
    Corollary 3.2.

    Examples
    --------
    >>> from kitchenette.bounds import GaussianProductsError
    >>> GaussianProductsError(degree=2).n_components(0.1, delta=0.05)
    5424
    """

    degree: int

    def __post_init__(self) -> None:
        check_count("degree", self.degree)

    def _error(self, n_components: int, delta: float) -> float:
        moments = central_moments(self.degree, float(n_components))
        by_moments = min((mu / delta) ** (1 / k) for k, mu in moments.items())
        k = np.linspace(2, 2 + 20 * np.log(2 / delta), 2000)
        log_moment = k * np.log(2) + special.gammaln(k + 0.5) - 0.5 * np.log(np.pi)
        logs = np.log(2 * (k - 1)) + (self.degree * log_moment - np.log(delta)) / k
        return min(by_moments, float(np.exp(logs.min() - 0.5 * np.log(float(n_components)))))


def central_moments(degree: int, n_components: float) -> dict[int, float]:
    """Even central moments of the mean of products of ``degree`` squared normal numbers."""
    cumulants = [
        cumulant * n_components ** (1 - j)
        for j, cumulant in enumerate(product_cumulants(degree), start=1)
    ]
    moments = [1.0, 0.0]
    for k in range(2, len(cumulants) + 1):
        moments.append(
            sum(comb(k - 1, j - 1) * cumulants[j - 1] * moments[k - j] for j in range(2, k + 1))
        )
    return {k: moments[k] for k in range(2, len(moments), 2)}


@cache
def product_cumulants(degree: int) -> tuple[int, ...]:
    """The first cumulants of a product of squared normal numbers, which are whole numbers."""
    moments = [1]
    cumulants: list[int] = []
    for k in range(1, MOST_MOMENTS + 1):
        moments.append(prod(range(1, 2 * k, 2)) ** degree)
        if moments[k].bit_length() > 900:  # the range of floating point
            break
        lower_terms = sum(
            comb(k - 1, j - 1) * cumulant * moments[k - j]
            for j, cumulant in enumerate(cumulants, start=1)
        )
        cumulants.append(moments[k] - lower_terms)
    return tuple(cumulants)


# ---------------------------------------------------------------- features of a series


def check_products(kernel: DotProductKernel, absolute_sum: float, base: float) -> None:
    """Refuse parameters for which there are no random Maclaurin features."""
    if not isinstance(kernel, DotProductKernel):
        raise ValueError(f"kernel must be a dot-product kernel; got {kernel!r}.")
    checked_number("absolute_sum", absolute_sum)
    checked_number("base", base, above=1)
    cut_series(kernel, base * absolute_sum**2)  # refuses a series that diverges


class FeatureLimits(NamedTuple):
    """What no feature and no kernel value exceeds for rows in the 1-norm ball of radius R."""

    product: float  # C, the product of a feature at two rows
    slope: float  # L, the slopes of that product and of the kernel in one of the rows, added up


def feature_limits(kernel: DotProductKernel, absolute_sum: float, base: float) -> FeatureLimits:
    """The limits of the features of a kernel with geometric degrees."""
    # a_n R^2n / P[N = n] is the term of the series at base R^2, times a constant. Where these
    # terms are negligible, so are those that were cut.
    series = cut_series(kernel, base * absolute_sum**2)
    terms = np.exp(series.logs - series.degrees * np.log(base))
    products = terms / geometric_probabilities(series.degrees, base)
    of_feature = (series.degrees * products).max(initial=0.0) / absolute_sum
    of_kernel = series.degrees @ terms / absolute_sum
    return FeatureLimits(float(products.max(initial=0.0)), float(of_feature + of_kernel))
