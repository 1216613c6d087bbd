"""Kernels of the inner product of two rows, k(x, y) = f(<x, y>)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.utils.extmath import safe_sparse_dot

from kitchenette.files.registry import storable
from kitchenette.kernels.base import Kernel, check_number


class DotProductKernel(Kernel):
    """f(<x, y>) with a function f whose Maclaurin coefficients are not negative.

    Attributes
    ----------
    last_degree : int or None
        The highest power in f; None if the series is infinite.
    radius : float
        The series converges for |<x, y>| below this.

    Examples
    --------
    A kernel of your own needs its function, the logarithms of its coefficients, and its highest
    power. cosh(<x, y>) has the coefficients 1 / n! for even n and zero for odd n:

    >>> import numpy as np
    >>> from scipy.special import gammaln
    >>> from kitchenette import RandomMaclaurin
    >>> from kitchenette.kernels import DotProductKernel
    >>> class Cosh(DotProductKernel):
    ...     last_degree = None
    ...
    ...     def check_parameters(self, n_columns):
    ...         pass
    ...
    ...     def function(self, t):
    ...         return np.cosh(t)
    ...
    ...     def log_coefficients(self, n):
    ...         return np.where(n % 2 == 0, -gammaln(n + 1), -np.inf)
    >>> X = np.random.default_rng(0).normal(size=(20, 5)) / 2
    >>> Z = RandomMaclaurin(Cosh(), n_components=4096, random_state=0).fit_transform(X)
    >>> bool(abs(Z @ Z.T - Cosh()(X)).mean() < 0.1)
    True
    """

    radius: float = np.inf

    @property
    @abstractmethod
    def last_degree(self) -> int | None:
        """The highest power in f, or None."""

    @abstractmethod
    def log_coefficients(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        """Logarithms of the Maclaurin coefficients of these degrees; -inf for zeros.

        Logarithms, because coefficients such as 1 / n! underflow long before their terms do.
        """

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        return self.function(safe_sparse_dot(X, Y.T, dense_output=True))

    @abstractmethod
    def function(self, t: NDArray[Any]) -> NDArray[Any]:
        """The function f at these inner products."""


@storable
class Polynomial(DotProductKernel):
    """(gamma <x, y> + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
        At least one.
    coef0 : float, default=1.0
        Not negative. Zero makes the kernel homogeneous: products of exactly ``degree``
        columns.
    gamma : float, default=1.0
        Positive. (scikit-learn's default is one over the number of columns.)

    Examples
    --------
    >>> from kitchenette.kernels import Polynomial
    >>> Polynomial(degree=2)([[1.0, 1.0]], [[1.0, 0.0]])
    array([[4.]])
    """

    def __init__(self, degree: int = 3, coef0: float = 1.0, gamma: float = 1.0):
        self.degree = degree
        self.coef0 = coef0
        self.gamma = gamma

    def check_parameters(self, n_columns: int) -> None:
        check_number(self, "degree", least=1, open_end=False, whole=True)
        check_number(self, "coef0", open_end=False)
        check_number(self, "gamma")

    @property
    def last_degree(self) -> int:
        return self.degree

    def log_coefficients(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        r, m = self.degree, np.minimum(n, self.degree)
        log_binomial = special.gammaln(r + 1) - special.gammaln(m + 1) - special.gammaln(r - m + 1)
        # xlogy(0, 0) = 0: the only coefficient of a homogeneous kernel is gamma^r.
        log_constant = special.xlogy(r - m, self.coef0)
        return np.where(n <= r, log_binomial + m * np.log(self.gamma) + log_constant, -np.inf)

    def function(self, t: NDArray[Any]) -> NDArray[Any]:
        return (self.gamma * t + self.coef0) ** self.degree


@storable
class Exponential(DotProductKernel):
    """exp(<x, y> / scale^2).

    Parameters
    ----------
    scale : float, default=1.0
        Positive.

    Examples
    --------
    >>> from kitchenette.kernels import Exponential
    >>> Exponential(scale=2.0)([[2.0]], [[2.0]]).round(4)
    array([[2.7183]])
    """

    last_degree = None

    def __init__(self, scale: float = 1.0):
        self.scale = scale

    def check_parameters(self, n_columns: int) -> None:
        check_number(self, "scale")

    def log_coefficients(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        return -special.gammaln(n + 1) - 2 * n * np.log(self.scale)

    def function(self, t: NDArray[Any]) -> NDArray[Any]:
        return np.exp(t / self.scale**2)


@storable
class VovkPolynomial(DotProductKernel):
    """Vovk's real polynomial kernel (1 - <x, y>^degree) / (1 - <x, y>).

    It is computed as the sum of <x, y>^n for n from 0 to degree - 1.

    Parameters
    ----------
    degree : int, default=3
        At least one.

    Examples
    --------
    >>> from kitchenette.kernels import VovkPolynomial
    >>> VovkPolynomial(degree=3)([[0.5]], [[1.0]])
    array([[1.75]])
    """

    def __init__(self, degree: int = 3):
        self.degree = degree

    def check_parameters(self, n_columns: int) -> None:
        check_number(self, "degree", least=1, open_end=False, whole=True)

    @property
    def last_degree(self) -> int:
        return self.degree - 1

    def log_coefficients(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.where(n < self.degree, 0.0, -np.inf)

    def function(self, t: NDArray[Any]) -> NDArray[Any]:
        return _horner(np.ones(self.degree), t)


@storable
class VovkInfinite(DotProductKernel):
    """Vovk's infinite polynomial kernel 1 / (1 - <x, y>), for |<x, y>| < 1.

    It has no parameters.

    Examples
    --------
    >>> from kitchenette.kernels import VovkInfinite
    >>> VovkInfinite()([[0.5]], [[1.0]])
    array([[2.]])
    """

    last_degree = None
    radius = 1.0

    def check_parameters(self, n_columns: int) -> None:
        pass

    def log_coefficients(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.zeros(n.shape)

    def function(self, t: NDArray[Any]) -> NDArray[Any]:
        if t.size and np.max(np.abs(t)) >= 1:
            raise ValueError(
                "VovkInfinite is defined for inner products between -1 and 1 only; the largest "
                f"here is {np.max(np.abs(t)):g}. Scale the rows to norms below 1."
            )
        return 1 / (1 - t)


@storable
class Maclaurin(DotProductKernel):
    """The sum of coefficients[n] <x, y>^n.

    Parameters
    ----------
    coefficients : array-like of shape (n_terms,), default=(0.0, 1.0)
        Not negative, at least one positive. The default is the linear kernel.

    Examples
    --------
    >>> from kitchenette.kernels import Maclaurin
    >>> Maclaurin([1.0, 0.0, 2.0])([[1.0]], [[3.0]])
    array([[19.]])
    """

    def __init__(self, coefficients: ArrayLike = (0.0, 1.0)):
        self.coefficients = coefficients

    def check_parameters(self, n_columns: int) -> None:
        check_coefficients(self, self.coefficients)

    @property
    def last_degree(self) -> int:
        return int(np.flatnonzero(self.coefficients)[-1])

    def log_coefficients(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        a = np.asarray(self.coefficients, dtype=np.float64)
        coefficients = np.where(n < a.size, a[np.minimum(n, a.size - 1)], 0.0)
        with np.errstate(divide="ignore"):
            return np.log(coefficients)

    def function(self, t: NDArray[Any]) -> NDArray[Any]:
        return _horner(np.asarray(self.coefficients), t)


def check_coefficients(owner: Kernel, coefficients: ArrayLike) -> None:
    """Refuse coefficients that are not those of a positive definite series."""
    a = np.asarray(coefficients)
    good = a.ndim == 1 and a.size > 0 and a.dtype.kind in "iuf" and np.isfinite(a).all()
    if not good or (a < 0).any() or not (a > 0).any():
        raise ValueError(
            f"{type(owner).__name__} needs a list of coefficients that are not negative, at least "
            f"one of them positive; got {coefficients!r}."
        )


def _horner(coefficients: NDArray[Any], t: NDArray[Any]) -> NDArray[Any]:
    value = np.full_like(t, coefficients[-1])
    for a in coefficients[-2::-1]:
        value = value * t + t.dtype.type(a)
    return value
