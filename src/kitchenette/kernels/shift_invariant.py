"""Kernels of the difference of two rows, k(x, y) = k(x - y)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.utils.extmath import row_norms

from kitchenette.kernels._base import Kernel, check_number, check_rows

LengthScale = Any  # a number, an array of them, or "median"


class ShiftInvariantKernel(Kernel):
    """A kernel of ``(x - y) / length_scale``, one where its argument is zero."""

    length_scale: LengthScale

    def check_parameters(self, n_columns: int) -> None:
        if isinstance(self.length_scale, str):
            if self.length_scale != "median":
                raise ValueError(
                    "length_scale must be a positive number, one per column, or 'median'; "
                    f"got {self.length_scale!r}."
                )
            raise ValueError(
                f"{self!r} has no values before a length scale is chosen: fit a feature map "
                "(its kernel_ has one), call resolve(X), or pass a number."
            )
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

    def resolve(self, X: ArrayLike) -> Self:
        """A kernel with the median distance between rows of X as its length scale.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
            A sample of the data; all of its rows are used.

        Returns
        -------
        kernel : ShiftInvariantKernel
            This kernel if its length scale is a number already, else a copy.
        """
        if not self.needs_sample():
            return self
        rows = check_rows(X)
        n_rows, n_columns = rows.shape
        distances = self._distances(rows, rows)[np.triu_indices(n_rows, k=1)]
        # Equal rows say nothing about the scale.
        distances = distances[distances > 0]
        if distances.size == 0:
            raise ValueError(
                "length_scale='median' needs at least two different rows to measure a distance; "
                f"got n_samples = {n_rows}. Pass a number instead."
            )
        median = float(np.median(distances)) * self._median_factor(n_columns)
        return clone(self).set_params(length_scale=median)

    def _distances(self, X: Any, Y: Any) -> NDArray[Any]:
        """The distance that the median is taken of."""
        return euclidean_distances(X, Y)

    def _median_factor(self, n_columns: int) -> float:
        """The length scale that suits a median distance of one."""
        return 1.0

    def _scaled(self, X: Any) -> Any:
        scale = np.asarray(self.length_scale, dtype=X.dtype)
        if sp.issparse(X):
            return X.multiply(1 / scale).tocsr()
        return X * (1 / scale)

    def _scaled_pair(self, X: Any, Y: Any) -> tuple[Any, Any]:
        scaled = self._scaled(X)
        return scaled, scaled if Y is X else self._scaled(Y)


class RadialKernel(ShiftInvariantKernel):
    """A function of the Euclidean distance ``|x - y| / length_scale``."""

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        squares = _squared_distances(*self._scaled_pair(X, Y))
        return np.asarray(self._of_square(squares, X.shape[1]), dtype=X.dtype)

    @abstractmethod
    def _of_square(self, squares: NDArray[Any], n_columns: int) -> NDArray[Any]:
        """The kernel at these squared distances between rows of n_columns numbers."""


def _squared_distances(A: Any, B: Any) -> NDArray[Any]:
    """Squared Euclidean distances with full relative accuracy.

    |a|^2 + |b|^2 - 2 <a, b> is fast but cancels for rows that are close to each other
    compared with their norms; those pairs are subtracted first.
    """
    squares = euclidean_distances(A, B, squared=True)
    norms_a, norms_b = (row_norms(M, squared=True) for M in (A, B))
    close = squares < 1e-5 * (norms_a[:, None] + norms_b[None, :])
    if B is A:
        np.fill_diagonal(close, False)
    i, j = np.nonzero(close)
    chunk = max(1, 2**22 // A.shape[1])
    for start in range(0, i.size, chunk):
        part = slice(start, start + chunk)
        difference = A[i[part]] - B[j[part]]
        squares[i[part], j[part]] = row_norms(difference, squared=True)
    return squares


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

    def _of_square(self, squares: NDArray[Any], n_columns: int) -> NDArray[Any]:
        return np.exp(-0.5 * squares)


class RationalQuadratic(RadialKernel):
    """(1 + |x - y|^2 / (2 alpha length_scale^2))^-alpha: Gaussians of many widths.

    Parameters
    ----------
    alpha : float, default=1.0
        How quickly it falls off; the Gaussian kernel as alpha grows.
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

    def _of_square(self, squares: NDArray[Any], n_columns: int) -> NDArray[Any]:
        return np.exp(-self.alpha * np.log1p(squares / (2 * self.alpha)))


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

    def _of_square(self, squares: NDArray[Any], n_columns: int) -> NDArray[Any]:
        z = np.sqrt(2 * self.nu * squares)
        if self.nu == 0.5:
            return np.exp(-z)
        if self.nu == 1.5:
            return (1 + z) * np.exp(-z)
        if self.nu == 2.5:
            return (1 + z + z**2 / 3) * np.exp(-z)
        return _matern_by_bessel(self.nu, z.astype(np.float64))


def _matern_by_bessel(nu: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """2^(1 - nu) / Gamma(nu) z^nu K_nu(z), for any nu > 0 and z >= 0."""
    log_bessel = _log_bessel_of_large_order if nu > 100 else _log_bessel
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_value = (1 - nu) * np.log(2) - special.gammaln(nu) + nu * np.log(z) + log_bessel(nu, z)
    value = np.exp(log_value)
    # Near zero K_nu overflows while the kernel is close to one. There it is the beginning of
    # sum_k (-z^2/4)^k / (k! (nu-1) ... (nu-k)): where K_nu overflows, the terms fall quickly
    # and what the sum leaves out, of the order z^(2 nu), is nothing.
    overflowed = ~np.isfinite(log_value)
    quarter = z[overflowed] ** 2 / 4
    term = np.ones_like(quarter)
    series = term.copy()
    for k in range(1, min(int(np.ceil(nu)), 20)):
        term = -term * quarter / (k * (nu - k))
        series += term
    value[overflowed] = series
    return np.minimum(value, 1.0)


def _log_bessel(nu: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of K_nu(z)."""
    return np.log(special.kve(nu, z)) - z


def _log_bessel_of_large_order(nu: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of K_nu(z) by Debye's expansion, which is uniform in z (DLMF 10.41.4)."""
    t = z / nu
    root = np.sqrt(1 + t**2)
    p = 1 / root
    eta = root + np.log(t / (1 + root))
    u1 = np.polyval([-5, 0, 3, 0], p) / 24
    u2 = np.polyval([385, 0, -462, 0, 81, 0, 0], p) / 1152
    u3 = np.polyval([-425425, 0, 765765, 0, -369603, 0, 30375, 0, 0, 0], p) / 414720
    correction = -u1 / nu + u2 / nu**2 - u3 / nu**3
    return 0.5 * np.log(np.pi / (2 * nu)) - nu * eta - 0.5 * np.log(root) + np.log1p(correction)


class BesselMatern(RadialKernel):
    """The kernel of Fastfood's eq. 37, whose spectrum is a sum of balls.

    ``(Gamma(nu + 1) (2 / r)^nu J_nu(r))^order`` with ``nu = n_columns / 2`` and
    ``r = |x - y| / length_scale``: the characteristic function of the sum of ``order``
    independent points, uniform in the unit ball of as many dimensions as the data has
    columns. It can be negative.

    Parameters
    ----------
    order : int, default=1
        How many points are summed. More make a smoother spectrum.
    length_scale : float, array-like of shape (n_columns,) or "median", default="median"
        The frequencies lie in a ball of radius order / length_scale. "median" is here
        the median distance times sqrt(order / (n_columns + 2)), which gives the kernel
        the same curvature at zero as the Gaussian kernel has with "median": a point of a
        ball in many dimensions has small coordinates.

    Examples
    --------
    >>> from kitchenette.kernels import BesselMatern
    >>> BesselMatern(order=1, length_scale=1.0)([[0.0]], [[1.0]]).round(4)  # sin(1) / 1
    array([[0.8415]])
    """

    def __init__(self, order: int = 1, length_scale: LengthScale = "median"):
        self.order = order
        self.length_scale = length_scale

    def check_parameters(self, n_columns: int) -> None:
        check_number(self, "order", least=1, open_end=False, whole=True)
        super().check_parameters(n_columns)

    def _median_factor(self, n_columns: int) -> float:
        return float(np.sqrt(self.order / (n_columns + 2)))

    def _of_square(self, squares: NDArray[Any], n_columns: int) -> NDArray[Any]:
        return _normalised_bessel(n_columns / 2, np.sqrt(squares.astype(np.float64))) ** self.order


def _normalised_bessel(nu: float, r: NDArray[np.float64]) -> NDArray[np.float64]:
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

    def _distances(self, X: Any, Y: Any) -> NDArray[Any]:
        return manhattan_distances(X, Y)

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        distances = manhattan_distances(*self._scaled_pair(X, Y))
        return np.exp(-distances).astype(X.dtype, copy=False)


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

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        A, B = self._scaled_pair(X, Y)
        K = np.ones((A.shape[0], B.shape[0]), dtype=X.dtype)
        columns_a = A.tocsc() if sp.issparse(A) else A
        columns_b = B.tocsc() if sp.issparse(B) else B
        for j in range(A.shape[1]):
            K /= 1 + (_column(columns_a, j)[:, None] - _column(columns_b, j)[None, :]) ** 2
        return K


def _column(X: Any, j: int) -> NDArray[Any]:
    return X[:, [j]].toarray().ravel() if sp.issparse(X) else X[:, j]
