"""Kernels of the difference of two rows, k(x, y) = k(x - y)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import special
from sklearn.base import clone

from kitchenette.files.registry import storable
from kitchenette.kernels._distances import (
    absolute_distances,
    by_tiles,
    columnwise_sums,
    squared_distances,
)
from kitchenette.kernels.base import Kernel, check_number
from kitchenette.kernels.spectra import (
    BallSum,
    GammaMixture,
    GaussianMixture,
    ProductCauchy,
    ProductLaplace,
    Spectrum,
)

LengthScale = Any  # a number, an array of them, or "median"


class ShiftInvariantKernel(Kernel):
    """A kernel of ``(x - y) / length_scale`` with k(0) = 1.

    A subclass defines the distribution of its frequencies in `spectrum`, from which feature maps
    draw. Derive kernels of your own from `RadialKernel`.

    Attributes
    ----------
    length_scale : float, ndarray of shape (n_columns,) or "median"
        The width, one for all columns or one for each; "median" is chosen from data.

    Examples
    --------
    >>> from kitchenette.kernels import Laplacian, Polynomial, ShiftInvariantKernel
    >>> isinstance(Laplacian(), ShiftInvariantKernel)
    True
    >>> isinstance(Polynomial(), ShiftInvariantKernel)
    False
    """

    length_scale: LengthScale

    def check_parameters(self, n_columns: int) -> None:
        if self.needs_sample():
            return
        scale = np.asarray(self.length_scale)
        if scale.dtype.kind not in "iuf" or not np.all(np.isfinite(scale) & (scale > 0)):
            raise ValueError(
                "length_scale must be a positive number, one per column, or 'median'; "
                f"got {self.length_scale!r}."
            )
        if scale.ndim > 1 or (scale.ndim == 1 and scale.size != n_columns):
            raise ValueError(
                f"length_scale has shape {scale.shape} but the data has {n_columns} columns; "
                "pass one number, or one per column."
            )

    def needs_sample(self) -> bool:
        return isinstance(self.length_scale, str) and self.length_scale == "median"

    def _resolved(self, rows: Any, weights: NDArray[np.float64] | None) -> Self:
        """A copy whose length scale is the median distance between these rows."""
        n_rows, n_columns = rows.shape
        # Distances are divided by a power of two, so that squares do not overflow or underflow.
        unit = 2.0 ** int(np.frexp(np.clip(_largest_difference(rows), 1e-307, 8e307))[1])

        def distances(A: Any, B: Any) -> NDArray[Any]:
            return self._distances(A, B, unit)

        i, j = np.triu_indices(n_rows, k=1)
        pairs = by_tiles(rows, rows, distances, np.float64)[i, j]
        different = pairs > 0  # equal rows are ignored
        if not different.any():
            raise ValueError(
                "length_scale='median' needs at least two different rows to measure a distance; "
                f"got n_samples = {n_rows}. Pass a number instead."
            )
        of_pairs = None if weights is None else (weights[i] * weights[j])[different]
        median = _weighted_median(pairs[different], of_pairs)
        median *= unit * self._median_factor(n_columns)
        if not 0 < median < np.inf:
            raise ValueError(
                "The median distance of these rows is beyond the range of float64: multiply them "
                f"by a number that brings them near 1. The largest entry is {abs(rows).max():g}."
            )
        return clone(self).set_params(length_scale=_rounded(median))

    def _distances(self, A: Any, B: Any, unit: float) -> NDArray[Any]:
        """The distances of which the median is taken, divided by ``unit``."""
        return np.sqrt(squared_distances(A, B, unit))

    def _median_factor(self, n_columns: int) -> float:
        """The length scale for a median distance of one."""
        return 1.0

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        scale = np.asarray(self.length_scale, dtype=np.float64)
        return by_tiles(X, Y, lambda A, B: self._values(A, B, scale), X.dtype)

    @abstractmethod
    def _values(self, A: Any, B: Any, scale: NDArray[np.float64]) -> NDArray[Any]:
        """The Gram matrix of a tile of rows in float64, for this length scale."""

    @abstractmethod
    def spectrum(self) -> Spectrum:
        """The distribution of the frequencies, for a length scale of one.

        Returns
        -------
        spectrum : Spectrum
        """


def _rounded(value: float) -> float:
    """Round to 24 significant bits, so that rounding errors of distances have no effect."""
    mantissa, exponent = np.frexp(value)
    return float(np.ldexp(np.round(mantissa * 2.0**24) / 2.0**24, exponent))


def _weighted_median(values: NDArray[Any], weights: NDArray[np.float64] | None) -> float:
    """The median of a sample in which each value occurs as often as its weight says."""
    if weights is None:
        return float(np.median(values))
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    half = below[-1] / 2
    # If the weights up to a value are exactly half, the median is the mean of it and the next.
    first, last = np.searchsorted(below, half), np.searchsorted(below, half, side="right")
    return float((values[order[first]] + values[order[min(last, values.size - 1)]]) / 2)


def _largest_difference(rows: Any) -> float:
    """The largest range of a column."""
    ends = (rows.max(axis=0), rows.min(axis=0))
    high, low = (np.ravel(end.toarray() if sp.issparse(end) else end) for end in ends)
    with np.errstate(over="ignore"):
        return float(np.max(high.astype(np.float64) - low.astype(np.float64)))


class RadialKernel(ShiftInvariantKernel):
    """A function of the Euclidean distance ``|x - y| / length_scale``.

    A subclass has a parameter ``length_scale`` and defines `of_squared_distance` and `spectrum`.

    Examples
    --------
    A kernel of your own, whose frequencies are the points of the unit circle for rows of two
    columns: the Bessel function of order zero.

    >>> import numpy as np
    >>> from scipy.special import j0
    >>> from kitchenette import Fastfood
    >>> from kitchenette.kernels import RadialKernel, RadialLengths
    >>> class Circle(RadialKernel):
    ...     def __init__(self, length_scale="median"):
    ...         self.length_scale = length_scale
    ...
    ...     def of_squared_distance(self, squares, n_columns):
    ...         return j0(np.sqrt(squares))
    ...
    ...     def spectrum(self):
    ...         return RadialLengths(lambda u, dimension: np.ones(len(u)))
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> fastfood = Fastfood(Circle(), n_components=8192, random_state=0).fit(X)
    >>> Z = fastfood.transform(X)
    >>> bool(abs(Z @ Z.T - fastfood.kernel_(X)).max() < 0.05)
    True
    """

    def _values(self, A: Any, B: Any, scale: NDArray[np.float64]) -> NDArray[Any]:
        return self.of_squared_distance(squared_distances(A, B, scale), A.shape[1])

    @abstractmethod
    def of_squared_distance(self, squares: NDArray[Any], n_columns: int) -> NDArray[Any]:
        """The kernel as a function of the distance.

        Parameters
        ----------
        squares : ndarray
            Squared distances, divided by the squared length scale.
        n_columns : int
            The number of columns of the rows.

        Returns
        -------
        values : ndarray of the shape of ``squares``
        """


@storable
class Gaussian(RadialKernel):
    """exp(-|x - y|^2 / (2 length_scale^2)), the radial basis function kernel.

    Parameters
    ----------
    length_scale : float, array-like of shape (n_columns,) or "median", default="median"
        The width, one for all columns or one for each. "median" is the median distance
        of a sample of rows, chosen when a feature map is fitted.

    Notes
    -----
    scikit-learn's ``gamma`` is ``1 / (2 length_scale**2)``.

    Examples
    --------
    >>> from kitchenette.kernels import Gaussian
    >>> Gaussian(1.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    def __init__(self, length_scale: LengthScale = "median"):
        self.length_scale = length_scale

    def of_squared_distance(self, squares: NDArray[Any], n_columns: int) -> NDArray[Any]:
        return np.exp(-0.5 * squares)

    def spectrum(self) -> Spectrum:
        return GaussianMixture()


@storable
class RationalQuadratic(RadialKernel):
    """(1 + |x - y|^2 / (2 alpha length_scale^2))^-alpha: Gaussians of many widths.

    Parameters
    ----------
    alpha : float, default=1.0
        The rate of decay; the Gaussian kernel is the limit of large alpha.
    length_scale : float, array-like of shape (n_columns,) or "median", default="median"
        As in `Gaussian`.

    Examples
    --------
    >>> from kitchenette.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=0.5, length_scale=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.7071]])
    """

    def __init__(self, alpha: float = 1.0, length_scale: LengthScale = "median"):
        self.alpha = alpha
        self.length_scale = length_scale

    def check_parameters(self, n_columns: int) -> None:
        check_number(self, "alpha")
        super().check_parameters(n_columns)

    def of_squared_distance(self, squares: NDArray[Any], n_columns: int) -> NDArray[Any]:
        # If the square of a distance overflows, the value is unknown for small alpha.
        squares = np.where(squares < np.inf, squares, np.nan)
        return np.exp(-self.alpha * np.log1p(squares / (2 * self.alpha)))

    def spectrum(self) -> Spectrum:
        return GammaMixture(self.alpha, power=1)


@storable
class Matern(RadialKernel):
    """The Matern kernel: functions that are differentiable about nu times.

    ``2^(1 - nu) / Gamma(nu) z^nu K_nu(z)`` with ``z = sqrt(2 nu) |x - y| / length_scale``.

    Parameters
    ----------
    nu : float, default=1.5
        Smoothness, any positive number. 0.5 is exp(-|x - y| / length_scale), and the
        Gaussian kernel is the limit of large nu.
    length_scale : float, array-like of shape (n_columns,) or "median", default="median"
        As in `Gaussian`.

    Examples
    --------
    >>> from kitchenette.kernels import Matern
    >>> Matern(nu=0.5, length_scale=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.3679]])
    """

    def __init__(self, nu: float = 1.5, length_scale: LengthScale = "median"):
        self.nu = nu
        self.length_scale = length_scale

    def check_parameters(self, n_columns: int) -> None:
        check_number(self, "nu")
        super().check_parameters(n_columns)

    def of_squared_distance(self, squares: NDArray[Any], n_columns: int) -> NDArray[Any]:
        nu = min(self.nu, 1e20)  # equal to the Gaussian kernel up to rounding
        # Beyond this bound the kernel underflows, while its factors may overflow.
        z = np.minimum(np.sqrt(2 * nu) * np.sqrt(squares), 800 + 60 * np.sqrt(nu))
        if nu == 0.5:
            return np.exp(-z)
        if nu == 1.5:
            return (1 + z) * np.exp(-z)
        if nu == 2.5:
            return (1 + z + z**2 / 3) * np.exp(-z)
        return _matern_of_large_order(nu, z) if nu > 100 else _matern_by_bessel(nu, z)

    def spectrum(self) -> Spectrum:
        return GammaMixture(self.nu, power=-1)


def _matern_by_bessel(nu: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """2^(1 - nu) / Gamma(nu) z^nu K_nu(z), for nu > 0 and z >= 0 that are not large."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_bessel = np.log(special.kve(nu, z)) - z
        log_value = (1 - nu) * np.log(2) - special.gammaln(nu) + nu * np.log(z) + log_bessel
    value = np.exp(log_value)
    # Near zero K_nu overflows while the kernel is close to one. There the first terms of
    # sum_k (-z^2/4)^k / (k! (nu-1) ... (nu-k)) suffice: they decrease quickly, and the remainder
    # of order z^(2 nu) is negligible.
    overflowed = ~np.isfinite(log_value)
    quarter = z[overflowed] ** 2 / 4
    term = np.ones_like(quarter)
    series = term.copy()
    for k in range(1, min(int(np.ceil(nu)), 20)):
        term = -term * quarter / (k * (nu - k))
        series += term
    value[overflowed] = series
    return np.minimum(value, 1.0)


def _matern_of_large_order(nu: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Matern kernel by Debye's expansion of K_nu, which is uniform in z (DLMF 10.41.4).

    Terms that grow with nu cancel analytically, and the factor that does not depend on z follows
    from the value one at zero.
    """
    t = z / nu
    root = np.sqrt(1 + t**2)
    e = t**2 / (1 + root)  # root - 1
    log_factor = np.log1p(_debye(nu, 1 / root)) - np.log1p(_debye(nu, 1.0))
    return np.exp(nu * (np.log1p(e / 2) - e) - 0.5 * np.log1p(e) + log_factor)


def _debye(nu: float, p: Any) -> Any:
    """The sum of (-1)^k U_k(p) / nu^k from k = 1 on (DLMF 10.41.10)."""
    u1 = np.polyval([-5, 0, 3, 0], p) / 24
    u2 = np.polyval([385, 0, -462, 0, 81, 0, 0], p) / 1152
    u3 = np.polyval([-425425, 0, 765765, 0, -369603, 0, 30375, 0, 0, 0], p) / 414720
    return -u1 / nu + u2 / nu**2 - u3 / nu**3


@storable
class BesselMatern(RadialKernel):
    """The kernel of Fastfood's eq. 37, whose frequencies are sums of points of a ball.

    ``(Gamma(nu + 1) (2 / r)^nu J_nu(r))^n_points`` with ``nu = n_columns / 2`` and
    ``r = |x - y| / length_scale``: the characteristic function of the sum of ``n_points``
    independent points, uniform in the unit ball of as many dimensions as the data has
    columns. It can be negative.

    Parameters
    ----------
    n_points : int, default=1
        The number of points that are summed. More points make a smoother spectrum.
    length_scale : float, array-like of shape (n_columns,) or "median", default="median"
        The frequencies lie in a ball of radius n_points / length_scale. "median" is the median
        distance times sqrt(n_points / (n_columns + 2)), which gives the kernel the same
        curvature at zero as the Gaussian kernel with "median".

    Examples
    --------
    >>> from kitchenette.kernels import BesselMatern
    >>> BesselMatern(n_points=1, length_scale=1.0)([[0.0]], [[1.0]]).round(4)  # sin(1) / 1
    array([[0.8415]])
    """

    def __init__(self, n_points: int = 1, length_scale: LengthScale = "median"):
        self.n_points = n_points
        self.length_scale = length_scale

    def check_parameters(self, n_columns: int) -> None:
        check_number(self, "n_points", least=1, open_end=False, whole=True)
        super().check_parameters(n_columns)

    def _median_factor(self, n_columns: int) -> float:
        return float(np.sqrt(self.n_points / (n_columns + 2)))

    def of_squared_distance(self, squares: NDArray[Any], n_columns: int) -> NDArray[Any]:
        return _normalized_bessel(n_columns / 2, np.sqrt(squares)) ** self.n_points

    def spectrum(self) -> Spectrum:
        return BallSum(self.n_points)


def _normalized_bessel(nu: float, r: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gamma(nu + 1) (2 / r)^nu J_nu(r), for any nu > 0 and r >= 0."""
    small = r < 0.75 * nu + 0.5
    value = np.empty_like(r)
    # Below the first zero of J_nu, which is greater than nu + 1, the logarithm is
    # -sum_n s_n (r / (nu + 1))^(2n) / n, where the s_n are Rayleigh's sums over the zeros
    # times (nu + 1)^(2n). All terms have one sign, so nothing cancels.
    x = (r[small] / (nu + 1)) ** 2
    sums = [(nu + 1) / 4]
    log_value = -sums[0] * x
    power = x.copy()
    for n in range(2, 80):
        convolution = sum(sums[k] * sums[n - 2 - k] for k in range(n - 1))
        sums.append(convolution / (nu + n))
        power = power * x
        log_value -= sums[-1] * power / n
    value[small] = np.exp(log_value)
    large = r[~small]
    with np.errstate(under="ignore", over="ignore", invalid="ignore", divide="ignore"):
        bessel = special.jv(nu, large)
        log_size = special.gammaln(nu + 1) + nu * np.log(2 / large) + np.log(np.abs(bessel))
        value[~small] = np.sign(bessel) * np.exp(log_size)
    return value


@storable
class Laplacian(ShiftInvariantKernel):
    """exp(-|x - y|_1 / length_scale), with the sum of absolute differences.

    Parameters
    ----------
    length_scale : float, array-like of shape (n_columns,) or "median", default="median"
        The width; "median" is the median of the absolute (L1) distances of a sample.

    Examples
    --------
    >>> from kitchenette.kernels import Laplacian
    >>> Laplacian(1.0)([[0.0, 0.0]], [[0.5, 0.5]]).round(4)
    array([[0.3679]])
    """

    def __init__(self, length_scale: LengthScale = "median"):
        self.length_scale = length_scale

    def _distances(self, A: Any, B: Any, unit: float) -> NDArray[Any]:
        return absolute_distances(A, B, unit)

    def _values(self, A: Any, B: Any, scale: NDArray[np.float64]) -> NDArray[Any]:
        return np.exp(-absolute_distances(A, B, scale))

    def spectrum(self) -> Spectrum:
        return ProductCauchy()


@storable
class Cauchy(ShiftInvariantKernel):
    """The product over columns of 1 / (1 + (x_j - y_j)^2 / length_scale^2).

    Parameters
    ----------
    length_scale : float, array-like of shape (n_columns,) or "median", default="median"
        As in `Gaussian`.

    Examples
    --------
    >>> from kitchenette.kernels import Cauchy
    >>> Cauchy(1.0)([[0.0, 0.0]], [[1.0, 1.0]])
    array([[0.25]])
    """

    def __init__(self, length_scale: LengthScale = "median"):
        self.length_scale = length_scale

    def _values(self, A: Any, B: Any, scale: NDArray[np.float64]) -> NDArray[Any]:
        return np.exp(-columnwise_sums(A, B, scale, lambda t: np.log1p(t**2)))

    def spectrum(self) -> Spectrum:
        return ProductLaplace()
