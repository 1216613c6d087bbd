"""Gram matrices: packed storage, precision, memory and leading eigenvectors.

LAPACK's rectangular full packed format stores the lower triangle of a matrix of order n in
n (n + 1) / 2 numbers, as three blocks of a rectangle, so that products and Cholesky factors
are Level-3 BLAS. Plain packed storage has the same size and is far slower. It is what lets
`LeastSquares` promise 4 D^2 bytes for D features, and 2 D^2 in float32: 65,536 features in 17 GB.
The factor is computed by native code (`_native/packed.cpp`), because 32-bit sizes in SciPy's
LAPACK overflow beyond an order of 46,340.

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

Of the leading eigenvectors: a full eigendecomposition takes some 9 D^3 operations, half of them
bound by memory, whatever the number of eigenvectors. Lanczos' method needs products of the matrix
with some tens to hundreds of vectors. For ten eigenvectors of 4096 features it takes a twentieth of
the time of ``scipy.linalg.eigh(subset_by_index=...)`` (``python -m benchmarks.kernel_pca``).

Lanczos' method can miss copies of a repeated eigenvalue. So the eigenvectors found are projected
out, and it is run once more: if the largest eigenvalue that remains exceeds the smallest one found,
the full decomposition is computed instead, and also if there is no convergence in about that time.

References
----------
Gustavson et al., Rectangular full packed format for Cholesky's algorithm: factorization,
solution, and inversion, ACM Transactions on Mathematical Software 37 (2010).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import blas
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from kitchenette import _core
from kitchenette.data.rows import slices
from kitchenette.resources import BLAS, check_memory, one_blas_thread
from kitchenette.sketching.random import Stream

Array = NDArray[np.float64]
ROW_NUMBERS = 1 << 23  # the size of the blocks of rows of the full matrix
PANEL = 256  # columns that are multiplied at a time: their corner stays in the cache
ROUNDED = 1e-14  # smaller residuals, relative to the right-hand side, are rounding errors
STORAGES = ("float64", "float32")
LARGE_ORDER = 16_384  # the statistics of more float32 features, above 1 GB, are kept in float32
BLOCK_ROWS = 4097  # of a product in the native core
ADDED_ROWS = 256  # that are summed before they are added to a Gram matrix, if batches are small
# The rounding error of a Gram matrix of float32 rows, divided by its trace, is slightly below
# FLOAT32_RESOLUTION if there are at least FLOAT32_FEATURES and FLOAT32_ROWS, and larger with fewer.
FLOAT32_RESOLUTION = 1e-8
FLOAT32_FEATURES, FLOAT32_ROWS = 10, 20_000
STORED_RESOLUTION = 3e-8  # of one addition to a Gram matrix in float32, times sqrt(n_features)
FACTOR_RESOLUTION = 3e-8  # smaller penalties, relative to the trace, need a factor in float64
FULL_ORDER = 256  # up to this order a full decomposition is as fast
LARGEST_FLOAT32 = 1e30  # sums of larger numbers may overflow, and their inverses lose digits
LARGE_PART = 0.1  # if more than this part of the eigenvectors is wanted, it is also as fast
MISSED = 1e-6  # the relative excess by which an eigenvalue counts as missed


class PackedSymmetric:
    """A symmetric matrix of float64 or float32 numbers of which one triangle is stored.

    The values, zero if they are not given, are in rectangular full packed format (TRANSR = 'N',
    UPLO = 'L'), and are not copied.
    """

    def __init__(self, order: int, values: NDArray[Any] | None = None):
        self.order = order
        self.values = np.zeros(order * (order + 1) // 2) if values is None else values

    @property
    def is_float32(self) -> bool:
        """Whether the numbers are float32."""
        return self.values.dtype == np.float32

    def copy(self) -> Self:
        return type(self)(self.order, self.values.copy())

    def diagonal(self) -> Array:
        return self.values[self._diagonal_positions()].astype(np.float64, copy=False)

    def add_to_diagonal(self, shift: float) -> None:
        self.values[self._diagonal_positions()] += shift

    def triangle(self) -> Array:
        """The lower triangle in a full float64 matrix in Fortran order."""
        return np.asfortranarray(self.full())

    def full(self) -> Array:
        """The lower triangle as a full float64 matrix, with zeros above it."""
        leading, square, trailing = self._blocks()
        n1 = leading.shape[0]
        matrix = np.zeros((self.order, self.order))
        matrix[:n1, :n1] = np.tril(leading)
        matrix[n1:, :n1] = square
        matrix[n1:, n1:] = np.tril(trailing.T)
        return matrix

    def rows(self, start: int, stop: int) -> Array:
        """Some rows of the symmetric matrix, in float64."""
        n1 = (self.order + 1) // 2
        if start < n1 < stop:
            return np.concatenate([self.rows(start, n1), self.rows(n1, stop)])
        leading, square, trailing = self._blocks()
        block = np.empty((stop - start, self.order))
        if start < n1:
            _rows_of_triangle(leading, start, stop, block[:, :n1])
            block[:, n1:] = square[:, start:stop].T
        else:
            block[:, :n1] = square[start - n1 : stop - n1]
            _rows_of_triangle(trailing.T, start - n1, stop - n1, block[:, n1:])
        return block

    def blocks_of_rows(self) -> Iterator[tuple[slice, Array]]:
        """All rows, some at a time."""
        size = max(1, ROW_NUMBERS // self.order)
        for start in range(0, self.order, size):
            rows = slice(start, min(start + size, self.order))
            yield rows, self.rows(rows.start, rows.stop)

    def shifted_factor(
        self, shift: float, dtype: DTypeLike, tolerance: float = 0.0
    ) -> CholeskyFactor:
        """The Cholesky factor of the matrix plus a multiple of the identity, in some precision."""
        shifted = type(self)(self.order, self.values.astype(dtype))
        shifted.add_to_diagonal(shift)
        return CholeskyFactor(shifted, tolerance)

    def product(self, B: Array) -> Array:
        """The product with a matrix, in float64."""
        product, n1 = np.zeros(B.shape), (self.order + 1) // 2
        left = self._rectangle()[1 - self.order % 2 :]  # the first n1 columns, from the diagonal
        for lower, first in ((left, 0), (self._blocks()[2].T, n1)):
            for columns in slices(lower.shape[1], PANEL):
                corner = np.tril(lower[columns, columns])
                below = lower[columns.stop :, columns]
                own = slice(first + columns.start, first + columns.stop)
                product[own] += corner @ B[own] + np.tril(corner, -1).T @ B[own]
                product[own] += below.T @ B[own.stop :]
                product[own.stop :] += below @ B[own]
        return product

    def leading(self, order: int) -> Self:
        """The leading principal submatrix of this order."""
        part = type(self)(order, np.empty(order * (order + 1) // 2, self.values.dtype))
        n1 = (self.order + 1) // 2
        m1, even = (order + 1) // 2, 1 - order % 2
        rectangle, mine = part._rectangle(), self._rectangle()[1 - self.order % 2 :]
        rectangle[even:] = mine[:order, :m1]  # also what is not in the lower triangle
        trailing = self._blocks()[2]
        for row in range(m1, order):
            column = rectangle[: row - m1 + 1, row - m1 + 1 - even]
            inside = max(0, min(n1, row + 1) - m1)  # the columns from m1 to n1
            column[:inside] = mine[row, m1 : m1 + inside]
            if inside < column.size:
                first = m1 + inside - n1
                column[inside:] = trailing[first : row - n1 + 1, row - n1]
        return part

    def add_outer(self, vector: Array, scale: float) -> None:
        """Add ``scale * vector vector'``."""
        if not self.values.flags.writeable:
            self.values = self.values.copy()
        # In float64, so that each sum is rounded once.
        n1, even = (self.order + 1) // 2, 1 - self.order % 2
        rectangle = self._rectangle()
        for j, column in enumerate(rectangle.T):
            column[j + even :] += (scale * vector[j]) * vector[j:]
            row = n1 + j - 1 + even
            if row >= n1:
                column[: j + even] += (scale * vector[row]) * vector[n1 : row + 1]

    def _rectangle(self) -> NDArray[Any]:
        shape = self.order + 1 - self.order % 2, (self.order + 1) // 2
        return self.values.reshape(shape, order="F")

    def _blocks(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The leading lower triangle, the square below it, and the trailing upper triangle.

        The triangles are squares, whose other triangle belongs to something else.
        """
        n1, even = (self.order + 1) // 2, 1 - self.order % 2
        n2, rectangle = self.order - n1, self._rectangle()
        trailing = rectangle[:n2, 1 - even : 1 - even + n2]
        return rectangle[even : even + n1], rectangle[even + n1 :], trailing

    def _diagonal_positions(self) -> NDArray[np.intp]:
        n, n1 = self.order, (self.order + 1) // 2
        even = 1 - n % 2
        height = n + even
        first = np.arange(n1) * (height + 1) + even
        last = np.arange(n - n1) * (height + 1) + (0 if even else height)
        return np.concatenate([first, last])


def _rows_of_triangle(lower: NDArray[Any], start: int, stop: int, out: Array) -> None:
    """Rows of the symmetric matrix with this lower triangle."""
    out[:, :start] = lower[start:stop, :start]
    out[:, stop:] = lower[stop:, start:stop].T
    corner = np.tril(lower[start:stop, start:stop])
    out[:, start:stop] = corner + np.tril(corner, -1).T


class CholeskyFactor:
    """The Cholesky factor L of a packed matrix A = L L', which is overwritten.

    It has the precision of the matrix; right-hand sides and solutions are float64.

    Raises
    ------
    numpy.linalg.LinAlgError
        If A is not positive definite, or if a pivot is less than ``tolerance`` times the
        diagonal entry of A.
    """

    def __init__(self, matrix: PackedSymmetric, tolerance: float):
        diagonal = matrix.diagonal()
        info = _core.packed_cholesky(matrix.values, matrix.order, blas=BLAS)
        self._packed = matrix
        if info == 0:
            self._pivots = matrix.diagonal()
        if info != 0 or not np.all(self._pivots**2 > tolerance * diagonal):
            raise np.linalg.LinAlgError("the matrix is not positive definite")

    def solve(self, B: Array) -> Array:
        """A^-1 B."""
        return np.ascontiguousarray(self._substituted(B, False, True), dtype=np.float64)

    def forward(self, B: Array) -> NDArray[Any]:
        """L^-1 B, by forward substitution, in the precision of L."""
        return self._substituted(B, False)

    def backward(self, B: Array) -> Array:
        """L'^-1 B, by back substitution."""
        return self._substituted(B, True).astype(np.float64, copy=False)

    def _substituted(self, B: Array, *transposed: bool) -> NDArray[Any]:
        solution = np.array(B, dtype=self._packed.values.dtype, order="F")
        for one in transposed:
            _core.packed_substitute(
                self._packed.values, self._packed.order, solution, transposed=one, blas=BLAS
            )
        return solution

    def log_determinant(self) -> float:
        return 2 * float(np.log(self._pivots).sum())

    def inverse_trace(self) -> float:
        """The trace of A^-1, at the cost of a Cholesky factor."""
        return _core.packed_inverse_trace(self._packed.values, self._packed.order, blas=BLAS)


class ConjugateGradients:
    """Preconditioned conjugate gradients for (G + alpha I) W = B with several penalties.

    Every step takes one product with G, of the directions of all columns and penalties.

    Parameters
    ----------
    product : callable
        The product of G and a matrix, and some linear function of that matrix with as many columns.
    cross : ndarray of shape (order, n_targets)
        B, the right-hand sides.
    alphas : sequence of float
        The penalties.
    inverses : sequence of callables
        A preconditioner for each penalty: approximately the inverse of the matrix.
    start : ndarray of shape (order, n_targets), optional
        Weights to begin with, for all penalties; zero by default.

    Attributes
    ----------
    coef : ndarray of shape (n_penalties, order, n_targets)
        The weights W.
    residuals : ndarray of shape (n_penalties,)
        The largest norm of a target's residual relative to its right-hand side.
    outputs : ndarray of shape (n_penalties, n_outputs, n_targets)
        The linear function of the weights.
    """

    def __init__(
        self,
        product: Callable[[Array], tuple[Array, Array]],
        cross: Array,
        alphas: Sequence[float],
        inverses: Sequence[Callable[[Array], Array]],
        start: Array | None = None,
    ):
        self._product, self._inverses = product, inverses
        self._alphas = np.asarray(alphas, dtype=np.float64)[:, None, None]
        shape = len(alphas), *cross.shape
        self.coef, self.outputs = np.zeros(shape), np.zeros((shape[0], 1, shape[2]))
        self._residual = np.broadcast_to(cross, shape).copy()
        if start is not None:
            image, outputs = product(start)
            self.coef += start
            self._residual -= image + self._alphas * start
            self.outputs = self.outputs + outputs
        norms = np.linalg.norm(cross, axis=0)
        self._norms = np.where(norms > 0, norms, 1.0)
        self._direction = self._preconditioned()
        self._products = self._dot(self._residual, self._direction)

    def step(self) -> None:
        """Improve the weights, by one product with G."""
        direction = self._direction
        columns = np.ascontiguousarray(np.concatenate(list(direction), axis=1))
        product, outputs = self._product(columns)
        n_penalties = direction.shape[0]
        image = np.stack(np.split(product, n_penalties, axis=1)) + self._alphas * direction
        lengths = self._divided(self._products, self._dot(direction, image))
        self.coef += lengths * direction
        self._residual -= lengths * image
        self.outputs = self.outputs + lengths * np.stack(np.split(outputs, n_penalties, axis=1))
        improved = self._preconditioned()
        products = self._dot(self._residual, improved)
        self._direction = improved + self._divided(products, self._products) * direction
        self._products = products

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Go on with some of the penalties only."""
        self._alphas = self._alphas[which]
        self._inverses = [
            inverse for inverse, kept in zip(self._inverses, which, strict=True) if kept
        ]
        self.coef, self.outputs = self.coef[which], self.outputs[which]
        self._residual, self._direction = self._residual[which], self._direction[which]
        self._products = self._products[which]

    @property
    def residuals(self) -> Array:
        sizes: Array = (np.linalg.norm(self._residual, axis=1) / self._norms).max(axis=1)
        return sizes

    def _preconditioned(self) -> Array:
        return np.stack(
            [inverse(part) for inverse, part in zip(self._inverses, self._residual, strict=True)]
        )

    @staticmethod
    def _dot(a: Array, b: Array) -> Array:
        return np.einsum("pft,pft->pt", a, b)[:, None, :]

    def _divided(self, a: Array, b: Array) -> Array:
        """Ratios; zero for targets that are solved to rounding."""
        sizes = np.linalg.norm(self._residual, axis=1, keepdims=True)
        unfinished = (sizes > ROUNDED * self._norms) & (b > 0)
        return np.where(unfinished, a / np.where(unfinished, b, 1.0), 0.0)


def storage_of(n_features: int, dtype: DTypeLike) -> str:
    """The storage for features of this precision."""
    small = n_features <= LARGE_ORDER or np.dtype(dtype) != np.float32
    return "float64" if small else "float32"


def statistics_bytes(n_features: int, storage: str) -> int:
    """The size of a Gram matrix, and of its factor."""
    return np.dtype(storage).itemsize * n_features * (n_features + 1) // 2


def check_learning_memory(
    n_features: int, dtype: DTypeLike, *, n_rows: int, n_sampled: int
) -> None:
    """Refuse to learn from features whose statistics, factor and blocks exceed the memory.

    The features of ``n_sampled`` rows are kept to check the model.
    """
    statistics = statistics_bytes(n_features, storage_of(n_features, dtype))
    row = np.dtype(dtype).itemsize * n_features
    check_memory(
        f"Learning from {n_features} features",
        {
            "the Gram matrix": statistics,
            # The blocks of rows are freed before the factor is computed.
            "its factor": max(statistics, min(n_rows, BLOCK_ROWS) * row),
            "the validation rows": min(n_rows, n_sampled) * row,
        },
        "Use fewer features, float32 data, or solver='iterative', which keeps no statistics.",
    )


def stored_resolution(n_features: int, n_rows: int) -> float:
    """The rounding error of a Gram matrix that is stored in float32, divided by its trace.

    Every sum of rows that is added is rounded to float32. The errors of the entries are
    independent, with a standard deviation of eps / 8 of the entries for each addition, as the sums
    grow. The norm of a symmetric matrix of such numbers is 2 sqrt(n_features) times their
    deviation, and the largest entries are about the trace over n_features. If most entries are
    smaller than the diagonal, as for Fourier features, the error is a third of this bound.
    """
    additions = max(1.0, n_rows / ADDED_ROWS)
    return STORED_RESOLUTION * float(np.sqrt(additions / n_features))


def resolution(n_features: int, n_rows: int, storage: str, *, has_float32: bool) -> float:
    """The rounding error of a Gram matrix, or of its factor, divided by the trace."""
    error = max(n_features, 100) * float(np.finfo(np.float64).eps)
    if has_float32:
        # Rounding errors are independent and average out less with few features or rows.
        error = FLOAT32_RESOLUTION * max(1.0, FLOAT32_FEATURES / n_features)
        error *= max(1.0, float(np.sqrt(FLOAT32_ROWS / n_rows)))
    if storage == "float32":
        error = max(error, stored_resolution(n_features, n_rows), FACTOR_RESOLUTION)
    return error


def leading_eigenvectors(matrix: PackedSymmetric, count: int) -> tuple[Array, Array]:
    """The largest eigenvalues, descending, and their orthonormal eigenvectors, as columns.

    The matrix is positive semidefinite up to rounding errors. The entry of each eigenvector
    with the largest absolute value is positive.
    """
    eigen = None
    lower = matrix.triangle()
    if matrix.order > FULL_ORDER and count <= LARGE_PART * matrix.order and matrix.values.any():
        eigen = _lanczos(lower, count)
    if eigen is None:
        eigen = _full_decomposition(lower, count)
    values, vectors = eigen[0][::-1], eigen[1][:, ::-1]
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    return values.copy(), vectors * np.where(largest < 0, -1.0, 1.0)


def _full_decomposition(lower: Array, count: int) -> tuple[Array, Array]:
    with one_blas_thread(lower.shape[0]):
        values, vectors = scipy.linalg.eigh(
            lower, lower=True, overwrite_a=True, check_finite=False, driver="evd"
        )
    return values[-count:], vectors[:, -count:]


def _lanczos(lower: Array, count: int) -> tuple[Array, Array] | None:
    """Eigenvalues in ascending order with their eigenvectors; None if that fails."""
    order = lower.shape[0]
    start = Stream(0, "lanczos").uniforms(1, order)[0] - 0.5
    basis_size = max(2 * count + 1, 20)
    restarts = max(order // (basis_size - count), 10)

    def product(vector: Array) -> Array:
        result: Array = blas.dsymv(1.0, lower, vector.ravel(), lower=1)
        return result

    def deflated_product(vector: Array) -> Array:
        return product(vector) - vectors @ (values * (vectors.T @ vector.ravel()))

    try:
        with one_blas_thread(order):
            values, vectors = eigsh(
                _operator(order, product), count, v0=start, ncv=basis_size, maxiter=restarts
            )
            rest = eigsh(
                _operator(order, deflated_product),
                1,
                v0=start[::-1].copy(),
                maxiter=restarts,
                tol=1e-2,
                return_eigenvectors=False,
                which="LA",
            )
    except ArpackError:
        return None
    if rest[0] > values[0] + MISSED * values[-1]:
        return None
    return values, vectors


def _operator(order: int, product: object) -> LinearOperator:
    return LinearOperator((order, order), matvec=product, dtype=np.float64)
