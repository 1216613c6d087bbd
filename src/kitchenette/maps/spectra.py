"""The spectra of shift-invariant kernels: where their frequencies are drawn from.

By Bochner's theorem a shift-invariant kernel with k(0) = 1 is the expectation of
cos(<w, x - y>) over random frequencies w. A spectrum turns standard normals and uniforms
into such frequencies, for a length scale of one. It says nothing about where the normals
and uniforms come from: independent, orthogonal and quasi-random ones all pass through here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from kitchenette import kernels

Array = NDArray[np.floating[Any]]


class Spectrum(ABC):
    """A distribution of frequencies.

    Attributes
    ----------
    n_uniforms : int
        How many uniforms one frequency needs besides its normals.
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
        """


class RadialSpectrum(Spectrum):
    """A rotation-invariant distribution: a uniform direction times a random length.

    Attributes
    ----------
    n_length_uniforms : int
        How many uniforms a length needs when it is drawn without normals.
    """

    n_length_uniforms: int

    @abstractmethod
    def lengths(self, u: Array, dimension: int) -> Array:
        """Lengths of frequencies in so many dimensions, from u of shape (n, n_length_uniforms)."""

    @abstractmethod
    def dimension(self, n_columns: int, padded: int) -> int:
        """The dimension whose lengths suit directions of ``padded`` coordinates, of which the
        data meets ``n_columns``.

        If it is ``padded``, frequencies of the padded space look right to the data as they
        are; if it is ``n_columns``, only the part of a direction that the data meets may be
        used, made a unit vector.
        """


class GaussianMixture(RadialSpectrum):
    """Normal vectors times an independent random scale.

    The first columns of such a vector are again one, so padding changes nothing.
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
        # The larger tail of the inverse is the smaller of the other: keep digits in both.
        draws = special.gammaincinv(self.shape, u[:, 0])
        return np.sqrt(draws / self.shape) ** self.power


class BallSum(RadialSpectrum):
    """The sum of points that are uniform in the unit ball (Le et al. 2013, section 4.4).

    The part of a ball that a narrower space sees is not uniform in a ball: the dimension
    is that of the data.
    """

    n_uniforms: int

    def __init__(self, order: int):
        self.order = order
        self.n_uniforms = self.n_length_uniforms = 2 * order - 1

    def lengths(self, u: Array, dimension: int) -> Array:
        # |a + b|^2 = |a|^2 + |b|^2 + 2 |a| |b| c, with the cosine c between independent
        # directions: (1 + c) / 2 is Beta((d-1)/2, (d-1)/2).
        length = u[:, 0] ** (1 / dimension)
        for k in range(1, self.order):
            other = u[:, 2 * k - 1] ** (1 / dimension)
            cosine = sphere_coordinate(u[:, 2 * k], dimension)
            square = length**2 + other**2 + 2 * length * other * cosine
            length = np.sqrt(np.maximum(square, 0))
        return length

    def frequencies(self, g: Array, u: Array) -> Array:
        lengths = self.lengths(u, g.shape[1]).astype(g.dtype)
        return g * (lengths / np.linalg.norm(g, axis=1))[:, None]

    def dimension(self, n_columns: int, padded: int) -> int:
        return n_columns


class Product(Spectrum):
    """Independent coordinates of a symmetric distribution: not radial."""

    n_uniforms = 0

    @abstractmethod
    def magnitude(self, tail: Array) -> Array:
        """The size of a coordinate that is exceeded with probability 2 * tail."""

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
    """The length of a normal vector, by the inverse of its distribution function."""
    return np.sqrt(2 * special.gammaincinv(dimension / 2, u))


def sphere_coordinate(u: Array, dimension: int) -> Array:
    """One coordinate of a uniform unit vector."""
    if dimension == 1:
        return np.where(u < 0.5, -1.0, 1.0)
    half = (dimension - 1) / 2
    return 2 * special.betaincinv(half, half, u) - 1


@singledispatch
def spectrum_of(kernel: kernels.Kernel) -> Spectrum:
    """The spectrum of a shift-invariant kernel."""
    raise ValueError(
        f"{kernel!r} is not a shift-invariant kernel, so it has no Fourier features. Kernels that "
        "have are Gaussian, Laplacian, Cauchy, Matern, RationalQuadratic and BesselMatern."
    )


@spectrum_of.register
def _(kernel: kernels.Gaussian) -> Spectrum:
    return GaussianMixture()


@spectrum_of.register
def _(kernel: kernels.Matern) -> Spectrum:
    return GammaMixture(kernel.nu, power=-1)


@spectrum_of.register
def _(kernel: kernels.RationalQuadratic) -> Spectrum:
    return GammaMixture(kernel.alpha, power=1)


@spectrum_of.register
def _(kernel: kernels.BesselMatern) -> Spectrum:
    return BallSum(kernel.order)


@spectrum_of.register
def _(kernel: kernels.Laplacian) -> Spectrum:
    return ProductCauchy()


@spectrum_of.register
def _(kernel: kernels.Cauchy) -> Spectrum:
    return ProductLaplace()
