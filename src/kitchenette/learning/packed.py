"""Symmetric matrices in packed storage, with the speed of full storage.

LAPACK's rectangular full packed format stores the lower triangle of a matrix of order n in
n (n + 1) / 2 numbers, as three blocks of a rectangle, so that products and Cholesky factors
are Level-3 BLAS. Plain packed storage has the same size and is far slower.

With n1 = ceil(n / 2), the first n1 columns of the lower triangle fill the rectangle from
its diagonal down, and the remaining triangle lies transposed in the free upper corner. For
n = 6 and n = 5 (entries are row and column)::

    33 43 53         00 33 43
    00 44 54         10 11 44
    10 11 55         20 21 22
    20 21 22         30 31 32
    30 31 32         40 41 42
    40 41 42
    50 51 52

References
----------
Gustavson et al., Rectangular full packed format for Cholesky's algorithm: factorization,
solution, and inversion, ACM Transactions on Mathematical Software 37 (2010).
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]


class PackedSymmetric:
    """A symmetric float64 matrix of which one triangle is stored.

    Parameters
    ----------
    order : int
        The number of rows and columns.
    values : ndarray of shape (order * (order + 1) / 2,), optional
        The numbers in rectangular full packed format (TRANSR = 'N', UPLO = 'L'); zero if
        not given. They are not copied.
    """

    def __init__(self, order: int, values: Array | None = None):
        self.order = order
        self.values = np.zeros(order * (order + 1) // 2) if values is None else values

    def copy(self) -> Self:
        return type(self)(self.order, self.values.copy())

    def diagonal(self) -> Array:
        return self.values[self._diagonal_positions()]

    def add_to_diagonal(self, shift: float) -> None:
        self.values[self._diagonal_positions()] += shift

    def triangle(self) -> Array:
        """The lower triangle in a full matrix in Fortran order; what is above it has no meaning."""
        matrix, _ = lapack.dtfttr(self.order, self.values, transr="N", uplo="L")
        return np.asfortranarray(matrix)

    def full(self) -> Array:
        """The lower triangle as a full matrix in Fortran order, with zeros above it."""
        matrix = self.triangle()
        return np.tril(matrix) if self.order > 1 else matrix

    def leading(self, order: int) -> Self:
        """The leading principal submatrix of this order."""
        n, n1 = self.order, (self.order + 1) // 2
        even = 1 - n % 2
        if order > n1:
            part = np.asfortranarray(self.full()[:order, :order])
            return type(self)(order, lapack.dtrttf(part, transr="N", uplo="L")[0])
        rectangle = self.values.reshape((n + even, n1), order="F")
        leading = np.asfortranarray(rectangle[even : even + order, :order])
        return type(self)(order, lapack.dtrttf(leading, transr="N", uplo="L")[0])

    def add_outer(self, vector: Array, scale: float) -> None:
        """Add ``scale * vector vector'``."""
        rows = np.asfortranarray(vector[:, None])
        overwrite = self.values.flags.writeable
        self.values = lapack.dsfrk(
            self.order,
            1,
            scale,
            rows,
            1.0,
            self.values,
            transr="N",
            uplo="L",
            overwrite_c=overwrite,
        )

    def _diagonal_positions(self) -> NDArray[np.intp]:
        n, n1 = self.order, (self.order + 1) // 2
        even = 1 - n % 2
        height = n + even
        first = np.arange(n1) * (height + 1) + even
        last = np.arange(n - n1) * (height + 1) + (0 if even else height)
        return np.concatenate([first, last])


class CholeskyFactor:
    """The Cholesky factor L of a packed matrix A = L L', which is overwritten.

    Raises
    ------
    numpy.linalg.LinAlgError
        If A is not positive definite, or if a pivot is less than ``tolerance`` times the
        diagonal entry of A.
    """

    def __init__(self, matrix: PackedSymmetric, tolerance: float):
        diagonal = matrix.diagonal()
        factor, info = lapack.dpftrf(
            matrix.order, matrix.values, transr="N", uplo="L", overwrite_a=1
        )
        self._packed = PackedSymmetric(matrix.order, factor)
        if info == 0:
            self._pivots = self._packed.diagonal()
        if info != 0 or not np.all(self._pivots**2 > tolerance * diagonal):
            raise np.linalg.LinAlgError("the matrix is not positive definite")

    def solve(self, B: Array) -> Array:
        """A^-1 B."""
        solution, _ = lapack.dpftrs(
            self._packed.order, self._packed.values, np.asfortranarray(B), transr="N", uplo="L"
        )
        return np.ascontiguousarray(solution)

    def forward(self, B: Array) -> Array:
        """L^-1 B, by forward substitution."""
        return self._triangular(B, "N")

    def backward(self, B: Array) -> Array:
        """L'^-1 B, by back substitution."""
        return self._triangular(B, "T")

    def _triangular(self, B: Array, trans: str) -> Array:
        return lapack.dtfsm(
            1.0,
            self._packed.values,
            np.asfortranarray(B),
            transr="N",
            side="L",
            uplo="L",
            trans=trans,
        )

    def log_determinant(self) -> float:
        return 2 * float(np.log(self._pivots).sum())

    def inverse_trace(self) -> float:
        """The trace of A^-1, at the cost of two Cholesky factors."""
        inverse, _ = lapack.dpftri(self._packed.order, self._packed.values, transr="N", uplo="L")
        return float(PackedSymmetric(self._packed.order, inverse).diagonal().sum())
