"""The spectra of shift-invariant kernels: the distributions of their frequencies.

By Bochner's theorem a shift-invariant kernel with k(0) = 1 is the expectation of
cos(<w, x - y>) over random frequencies w. A spectrum transforms standard normals and uniforms
to such frequencies, for a length scale of one. The normals and uniforms may be independent,
orthogonal or quasi-random.

A user's kernel needs two definitions for `Fastfood` and `RandomKitchenSinks`: its value and its
spectrum. For a radial kernel the spectrum is the distribution of the length of a frequency, given
by its quantile function, as in the example of `RadialKernel`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.floating[Any]]


class Spectrum(ABC):
    """A distribution of frequencies.

    Attributes
    ----------
    n_uniforms : int
        The number of uniforms per frequency, in addition to its normals.

    Examples
    --------
    Frequencies with independent coordinates, each of them 1 or -1: the spectrum of the product
    of cos(x_i - y_i) over the columns.

    >>> import numpy as np
    >>> from kitchenette.kernels import Spectrum
    >>> class Signs(Spectrum):
    ...     n_uniforms = 0
    ...
    ...     def frequencies(self, g, u):
    ...         return np.sign(g)
    >>> g = np.random.default_rng(0).normal(size=(10_000, 2))
    >>> w = Signs().frequencies(g, np.empty((10_000, 0)))
    >>> bool(abs(np.cos(w @ [0.5, 1.0]).mean() - np.cos(0.5) * np.cos(1.0)) < 0.05)
    True
    """

    n_uniforms: int

    @abstractmethod
    def frequencies(self, g: Array, u: Array) -> Array:
        """Frequencies of the shape of g.

        Parameters
        ----------
        g : ndarray of shape (n, d)
            Each row standard normal.
        u : ndarray of shape (n, n_uniforms)
            Each row uniform, independent of g.

        Returns
        -------
        frequencies : ndarray of shape (n, d)
        """


class RadialSpectrum(Spectrum):
    """A rotation-invariant distribution: a uniform direction times a random length.

    Attributes
    ----------
    n_length_uniforms : int
        The number of uniforms per length when it is drawn without normals.

    See Also
    --------
    RadialLengths : The same from a function that gives the lengths.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.kernels import Gaussian, RadialSpectrum
    >>> spectrum = Gaussian().spectrum()
    >>> isinstance(spectrum, RadialSpectrum)
    True
    >>> lengths = spectrum.lengths(np.random.default_rng(0).uniform(size=(10_000, 1)), 3)
    >>> bool(abs((lengths**2).mean() - 3) < 0.1)  # squared lengths of normal vectors, 3 columns
    True
    """

    n_length_uniforms: int

    @abstractmethod
    def lengths(self, u: Array, dimension: int) -> Array:
        """Lengths of frequencies.

        Parameters
        ----------
        u : ndarray of shape (n, n_length_uniforms)
            Independent uniform numbers between 0 and 1.
        dimension : int
            The dimension of the frequencies.

        Returns
        -------
        lengths : ndarray of shape (n,)
        """

    @abstractmethod
    def dimension(self, n_columns: int, padded: int) -> int:
        """The dimension for `lengths` if rows of ``n_columns`` are padded to ``padded``.

        It is ``padded`` if the first n_columns coordinates of a frequency in the padded space
        have the right distribution. Otherwise it is ``n_columns``, and directions are cut to
        n_columns coordinates and normalized.

        Parameters
        ----------
        n_columns : int
            The number of columns of the data.
        padded : int
            The number of columns after padding with zeros.

        Returns
        -------
        dimension : int
        """


class GaussianMixture(RadialSpectrum):
    """Normal vectors times an independent random scale.

    The first coordinates of such a vector have the same distribution in fewer dimensions, so
    padding does not change it.
    """

    def __init__(self, n_uniforms: int = 0):
        self.n_uniforms = n_uniforms
        self.n_length_uniforms = 1 + n_uniforms

    def mixing(self, u: Array) -> Array | float:
        """The scales, from u of shape (n, n_uniforms)."""
        return 1.0

    def frequencies(self, g: Array, u: Array) -> Array:
        scale = np.asarray(self.mixing(u), dtype=g.dtype)
        return g * scale[:, None] if scale.ndim else g

    def lengths(self, u: Array, dimension: int) -> Array:
        return chi(u[:, 0], dimension) * self.mixing(u[:, 1:])

    def dimension(self, n_columns: int, padded: int) -> int:
        return padded


class GammaMixture(GaussianMixture):
    """Scales sqrt(G / shape)^power with G from the gamma distribution of this shape.

    power 1 gives the rational quadratic kernel, power -1 the Matern kernel, whose spectrum
    is the multivariate t distribution.
    """

    def __init__(self, shape: float, power: int):
        super().__init__(n_uniforms=1)
        self.shape = shape
        self.power = power

    def mixing(self, u: Array) -> Array:
        draws = special.gammaincinv(self.shape, u[:, 0])
        return np.sqrt(draws / self.shape) ** self.power


class RadialLengths(RadialSpectrum):
    """Uniform directions in the space of the data, with lengths from any distribution.

    Lengths belong to the dimension of the data: a direction of the padded space is cut to the
    columns of the data and normalized before it is multiplied by its length.

    Parameters
    ----------
    lengths : callable
        ``lengths(u, dimension)`` returns one length per row of ``u``, an array of shape
        (n, n_uniforms) of independent uniform numbers between 0 and 1. With one uniform it is
        the quantile function of the length.
    n_uniforms : int, default=1
        The number of uniforms per length.

    Examples
    --------
    Frequencies that are uniform in the unit ball, whose lengths have the quantile function
    u^(1 / dimension):

    >>> import numpy as np
    >>> from kitchenette.kernels import RadialLengths
    >>> ball = RadialLengths(lambda u, dimension: u[:, 0] ** (1 / dimension))
    >>> rng = np.random.default_rng(0)
    >>> w = ball.frequencies(rng.normal(size=(1000, 3)), rng.uniform(size=(1000, 1)))
    >>> bool(np.linalg.norm(w, axis=1).max() < 1)
    True
    """

    def __init__(self, lengths: Callable[[Array, int], Array], n_uniforms: int = 1):
        self.n_uniforms = self.n_length_uniforms = n_uniforms
        self._lengths = lengths

    def lengths(self, u: Array, dimension: int) -> Array:
        lengths = np.asarray(self._lengths(u, dimension), dtype=np.float64)
        if lengths.shape != (len(u),) or not np.all(lengths >= 0):
            raise ValueError(
                "The lengths of a RadialLengths spectrum must be one number per frequency that is "
                f"not negative; got an array of shape {lengths.shape} for {len(u)} frequencies."
            )
        return lengths

    def frequencies(self, g: Array, u: Array) -> Array:
        lengths = self.lengths(u, g.shape[1]).astype(g.dtype)
        return g * (lengths / np.linalg.norm(g, axis=1))[:, None]

    def dimension(self, n_columns: int, padded: int) -> int:
        return n_columns


class BallSum(RadialLengths):
    """The sum of points that are uniform in the unit ball (Le et al. 2013, section 4.4)."""

    def __init__(self, n_balls: int):
        super().__init__(self._ball_sum, 2 * n_balls - 1)
        self._n_balls = n_balls

    def _ball_sum(self, u: Array, dimension: int) -> Array:
        # |a + b|^2 = |a|^2 + |b|^2 + 2 |a| |b| c, with the cosine c between independent
        # directions: (1 + c) / 2 is Beta((d-1)/2, (d-1)/2).
        length = u[:, 0] ** (1 / dimension)
        for k in range(1, self._n_balls):
            other = u[:, 2 * k - 1] ** (1 / dimension)
            cosine = sphere_coordinate(u[:, 2 * k], dimension)
            square = length**2 + other**2 + 2 * length * other * cosine
            length = np.sqrt(np.maximum(square, 0))
        return np.asarray(length)


class Product(Spectrum):
    """Independent coordinates from a symmetric distribution, which is not radial."""

    n_uniforms = 0

    @abstractmethod
    def magnitude(self, tail: Array) -> Array:
        """The magnitude that a coordinate exceeds with probability 2 * tail."""

    def frequencies(self, g: Array, u: Array) -> Array:
        return np.copysign(self.magnitude(special.ndtr(-np.abs(g))), g)


class ProductCauchy(Product):
    """Cauchy-distributed coordinates: the Laplacian kernel."""

    def magnitude(self, tail: Array) -> Array:
        return 1 / np.tan(np.pi * tail)


class ProductLaplace(Product):
    """Laplace-distributed coordinates: the Cauchy kernel."""

    def magnitude(self, tail: Array) -> Array:
        return -np.log(2 * tail)


def chi(u: Array, dimension: int) -> Array:
    """Lengths of standard normal vectors: quantiles of the chi distribution."""
    return np.sqrt(2 * special.gammaincinv(dimension / 2, u))


def sphere_coordinate(u: Array, dimension: int) -> Array:
    """Quantiles of one coordinate of a uniform unit vector."""
    if dimension == 1:
        return np.where(u < 0.5, -1.0, 1.0)
    half = (dimension - 1) / 2
    return 2 * special.betaincinv(half, half, u) - 1
