"""Exact kernels, which feature maps approximate.

A kernel is a value. It has parameters, compares equal to a kernel with the same
parameters, and is callable: ``k(X, Y)`` is the exact Gram matrix.

>>> import numpy as np
>>> from kitchenette.kernels import Gaussian
>>> k = Gaussian(length_scale=2.0)
>>> k(np.array([[0.0], [2.0]])).round(4)
array([[1.    , 0.6065],
       [0.6065, 1.    ]])
"""

from kitchenette.kernels.base import Kernel
from kitchenette.kernels.composition import Composition
from kitchenette.kernels.dot_product import (
    DotProductKernel,
    Exponential,
    Maclaurin,
    Polynomial,
    VovkInfinite,
    VovkPolynomial,
)
from kitchenette.kernels.shift_invariant import (
    BesselMatern,
    Cauchy,
    Gaussian,
    Laplacian,
    Matern,
    RadialKernel,
    RationalQuadratic,
    ShiftInvariantKernel,
)
from kitchenette.kernels.spectra import RadialLengths, RadialSpectrum, Spectrum
from kitchenette.kernels.spherical import SphericalPolynomial

__all__ = [
    "BesselMatern",
    "Cauchy",
    "Composition",
    "DotProductKernel",
    "Exponential",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Maclaurin",
    "Matern",
    "Polynomial",
    "RadialKernel",
    "RadialLengths",
    "RadialSpectrum",
    "RationalQuadratic",
    "ShiftInvariantKernel",
    "Spectrum",
    "SphericalPolynomial",
    "VovkInfinite",
    "VovkPolynomial",
]
