"""Training-efficient feature maps (TEFM, IJCAI 2015)."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack

from kitchenette.data.reduction import Reducible
from kitchenette.data.rows import slices, table, take, validated
from kitchenette.data.source import Block, RowsInMemory
from kitchenette.files.fields import Count, Options, Shape, Unsigned
from kitchenette.files.registry import storable
from kitchenette.kernels import Gaussian
from kitchenette.maps.compact import CompactMap, check_inner
from kitchenette.parameters import check_choice
from kitchenette.sketching.dense import matrix_product
from kitchenette.sketching.hadamard import fwht
from kitchenette.sketching.operators import WIDE_BYTES, Operator, chain
from kitchenette.sketching.random import Stream
from kitchenette.sketching.specification import Cost, Specification
from kitchenette.sketching.structured import padded_block

BASE_FACTOR = 4  # base features per compact one, if `base` does not give their number
FEWEST_ROWS = 256  # the least number of rows in a block, for efficient matrix products
FEWEST_COLUMNS = 64  # the least number of columns in a transform over rows
REFLECTIONS = 256  # Householder reflections per block of the QR decomposition

Matrix = NDArray[np.float64]


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class TEFMSpecification(Specification):
    """A base map and an orthonormal basis Q of directions of its features.

    The basis itself is stored, not the sums it was computed from: if the rows do not span all
    its directions, rounding errors determine the others, and they differ between machines.
    """

    base: Specification
    basis: Annotated[Matrix, Shape("base.n_components", "n_components")]

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        return chain(
            self.base.operator(dtype), matrix_product(self.basis, dtype), matrix=self.basis
        )

    def cost(self) -> Cost:
        return Cost(24 * self.basis.size, 4 * self.basis.size)

    def probe_scale(self) -> Any:
        return self.base.probe_scale()

    def check(self) -> None:
        super().check()
        check_inner("base", self.base, self.n_columns)
        if self.n_components > self.base.n_components:
            raise ValueError("there must not be more components than base features.")


@storable
@dataclass(frozen=True)
class Range:
    """Sums over the rows seen; the basis of a `TEFM` spans their column space."""

    # (n_base_features, n_components): F' Theta, or (F'F)^q F' Theta after power iterations
    sums: Annotated[Matrix, Shape(None, None)]
    n_rows: Count  # the number of rows, and of blocks of the transform over rows
    n_blocks: Unsigned
    method: Annotated[str, Options("gaussian", "srht")]  # "gaussian", "srht": the kind of Theta


@storable
class TEFM(CompactMap):
    """Random features, projected on the directions in which the data varies most.

    With F the matrix of the base features of all training rows, the map is F Q, where Q is an
    orthonormal basis of the range of (F'F)^q F' Theta for a random matrix Theta: a
    randomized range finder. If the kernel matrix has a low effective rank, these features
    are as accurate as several times as many random features.

    Parameters
    ----------
    base : map or Kernel, default=Gaussian()
        Any map, including a scikit-learn transformer that treats rows one by one; Fastfood is the
        fastest. If its ``n_components`` is None, it has 4 times as many features as this map. A
        kernel stands for RandomKitchenSinks with that many features, or RandomMaclaurin if it is
        a dot-product kernel. If its random_state is None, it is drawn from this map's seed.
    n_components : int, default=256
        The number of output columns, the paper's l; at most the number of base features.
    method : {"gaussian", "srht"}, default="gaussian"
        Theta: independent normals (TEFM-G), or a subsampled randomized Hadamard transform over
        the rows (TEFM-S), which costs less per row.
    power_iterations : int, default=0
        q, for "gaussian" only. Each takes one more pass over the data, and pays if the singular
        values of F decay slowly.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    base_ : map
        The fitted base map.
    kernel_ : Kernel
        The kernel of the base map.
    basis_ : ndarray of shape (n_base_features, n_components)
        The orthonormal basis Q.
    seed_ : int
        The seed that was used.
    n_rows_seen_ : int
        The number of training rows.
    n_features_in_ : int
        The number of columns seen in fit.

    See Also
    --------
    CRAFTMap : Compact features that do not depend on the data.

    Notes
    -----
    Expectation: the approximate kernel matrix is F Q Q' F', the base map's F F' restricted to the
    range of Q. It is biased: F F' - F Q Q' F' is positive semidefinite.

    Variance: given the rows, the error is that of the base map with D features plus the residual
    of the projection, F (I - Q Q') F'. For "gaussian" and l = k + p columns the expected spectral
    norm of F (I - Q Q') is at most (1 + sqrt(k / (p - 1))) s_{k+1} + e sqrt(k + p) / p times the
    root of the sum of the squares of s_{k+1}, s_{k+2}, ..., the singular values of F (Halko et al.,
    Theorem 10.6), for every k below l - 1. With q power iterations it is at most the power
    1 / (2q + 1) of this bound for (F F')^q F. With as many components as base features, or as the
    rank of F, the kernel matrix is that of the base map. With fewer rows than components, the
    kernel matrix of the training rows is exactly that of the base map, and the other columns of Q
    are arbitrary orthogonal directions; files and pickles store them.

    A model that is linear in F Q with weights w is linear in F with weights Q w, which `collapse`
    computes, so that prediction needs no product with Q.

    Streaming: `partial_fit` adds rows, in any number of batches. For "gaussian" Q does not depend
    on how rows are split into batches, up to rounding. For "srht" rows are transformed in blocks
    whose size is a power of two of at least n_components, and the blocks are combined with the
    signs of a Hadamard matrix over all blocks, which gives the SRHT over all rows. Each batch
    begins a new block, padded with zeros, so batches much smaller than n_components waste work.

    Cost: that of the base map, and for D base features and l components O(D l) per row in ``fit``
    for "gaussian" (O(D log l + D) for "srht"), once O(D l^2), and O(D l) per row in ``transform``.
    Memory: O(D l), independent of the number of rows.

    References
    ----------
    Training-efficient feature map for shift-invariant kernels, IJCAI 2015.
    Halko, Martinsson and Tropp, Finding structure with randomness, SIAM Review 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import RandomKitchenSinks, TEFM
    >>> from kitchenette.kernels import Gaussian, Kernel
    >>> from kitchenette.metrics import kernel_error
    >>> X = np.random.default_rng(0).uniform(size=(500, 5))
    >>> plain = RandomKitchenSinks(Gaussian(0.5), 128, random_state=0).fit(X)
    >>> compact = TEFM(Gaussian(0.5), 128, random_state=0).fit(X)
    >>> kernel_error(compact, X) < 0.7 * kernel_error(plain, X)
    True
    """

    specification_class = TEFMSpecification
    observes = True
    inner_name, inner_factor = "base", BASE_FACTOR
    base_: Any
    specification_: Any
    range_: Range | None  # None if the map was made for inference only
    _basis_of: Range | None  # the range that the basis was computed from

    def __init__(
        self,
        base: Any = Gaussian(),
        n_components: int = 256,
        *,
        method: str = "gaussian",
        power_iterations: int = 0,
        random_state: Any = None,
    ):
        self.base = base
        self.n_components = n_components
        self.method = method
        self.power_iterations = power_iterations
        self.random_state = random_state

    # ------------------------------------------------------------ fitting

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add training rows; the base map is fitted on the first batch.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
            More training rows.
        y : ignored

        Returns
        -------
        self : object
            The fitted map.
        """
        if self.power_iterations != 0:
            raise ValueError(
                "partial_fit sees each row once, and power iterations need all rows again: set "
                f"power_iterations=0; got {self.power_iterations}."
            )
        if "range_" not in vars(self):
            return self.fit(X)
        if self.range_ is None:
            raise ValueError(
                "This map was saved without statistics: it transforms, but the sums to which "
                "partial_fit adds rows are missing."
            )
        # A single assignment, so that an error leaves the map unchanged.
        own = self.specification_
        self.range_ = RangeOf(self, own.base, own.seed, own.n_components).added(self.range_, X)
        return self

    def specify(self, inner: Specification, seed: int, X: Any, sample: Any) -> Specification:
        rows: Reducible = X if hasattr(X, "reduced") else RowsInMemory(X)
        found = rows.reduced(RangeOf(self, inner, seed, int(self.n_components)))
        basis = _orthonormal_basis(found.sums)
        for _ in range(self.power_iterations):
            sums = rows.reduced(PowerOf(self, inner, basis))
            found = replace(found, sums=sums)
            basis = _orthonormal_basis(sums)
        self.range_ = self._basis_of = found
        return self.specified(sample, seed, base=inner, basis=basis)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice("method", self.method, ("gaussian", "srht"))
        q = self.power_iterations
        if not isinstance(q, numbers.Integral) or isinstance(q, bool) or q < 0:
            raise ValueError(f"power_iterations must be a whole number of at least 0; got {q!r}.")
        if self.method == "srht" and q > 0:
            raise ValueError(
                f"power_iterations are for method='gaussian'; leave 0 for 'srht'; got {q}."
            )

    # ------------------------------------------------------------ using it

    def fitted(self) -> Any:
        specification = super().fitted()
        found = self.range_
        if found is not None and self._basis_of is not found:
            specification = replace(specification, basis=_orthonormal_basis(found.sums))
            # In this order, another thread at most computes the same basis again.
            self.specification_, self._basis_of = specification, found
        return specification

    @property
    def basis_(self) -> Matrix:
        """Q, computed by a QR decomposition on the first access after rows were added."""
        return self.fitted().basis

    @property
    def n_rows_seen_(self) -> int:
        """The number of training rows."""
        self.fitted()
        return 0 if self.range_ is None else self.range_.n_rows

    def collapse(self, weights: ArrayLike) -> NDArray[Any]:
        """Weights of the base features that give the same predictions.

        Parameters
        ----------
        weights : array-like of shape (n_components,) or (n_components, n_targets)
            Weights of a model that is linear in this map's features.

        Returns
        -------
        base_weights : ndarray of shape (n_base_features,) or (n_base_features, n_targets)
            ``base_.transform(X) @ base_weights`` is ``transform(X) @ weights`` to rounding.
        """
        weights = np.asarray(weights)
        if weights.ndim not in (1, 2) or weights.shape[0] != self.n_features_out_:
            raise ValueError(
                f"weights must have {self.n_features_out_} rows, one per component; got an array "
                f"of shape {weights.shape}."
            )
        product = self.basis_ @ weights
        return product.astype(np.result_type(weights.dtype, np.float32), copy=False)

    def for_inference(self) -> Self:
        """A copy without the sums to which `partial_fit` adds rows."""
        self.fitted()
        copied = copy(self)
        copied.range_ = copied._basis_of = None
        return copied

    def __getstate__(self) -> Any:
        # A pickle must contain the basis, because another processor may compute a different one.
        if "specification_" in vars(self):
            self.fitted()
        return super().__getstate__()

    fitted_types: ClassVar[dict[str, Any]] = {
        **CompactMap.fitted_types,
        "base_": Any,
        "range_": Range | None,
    }

    def restore(self, fitted: dict[str, Any]) -> None:
        super().restore(fitted)
        self._basis_of = self.range_
        if self.range_ is not None and self.range_.sums.shape != self.specification_.basis.shape:
            raise ValueError("range_ must have sums of the shape of the basis.")


# ---------------------------------------------------------------- sums over rows


@dataclass(frozen=True)
class RangeOf:
    """The range of all rows, as a reduction."""

    owner: TEFM  # the map, which checks rows
    base: Specification  # the base map
    seed: int  # the seed of Theta, whose rows belong to the numbers of the data rows
    n_components: int  # the number of columns of Theta
    numbered = True

    def of(self, block: Block) -> Range | None:
        block = block.of_positive_weight()
        if block.n_rows == 0:
            return None
        # Blocks of the transform over rows are numbered by their first rows, so that none has the
        # number of another.
        nothing = np.zeros((self.base.n_components, self.n_components))
        before = Range(nothing, block.start, block.start, self.owner.method)
        found = self.added(before, block.X)
        return replace(found, n_rows=found.n_rows - block.start)

    def combined(self, a: Range, b: Range) -> Range:
        return Range(a.sums + b.sums, a.n_rows + b.n_rows, max(a.n_blocks, b.n_blocks), a.method)

    def added(self, found: Range, X: Any) -> Range:
        """A new range that includes F' Theta of more rows."""
        return (self._gaussian if found.method == "gaussian" else self._srht)(found, table(X))

    def _gaussian(self, found: Range, X: Any) -> Range:
        stream, row, sums = Stream(self.seed, "range finder"), found.n_rows, found.sums.copy()
        for Z in _base_features(self.base, X, self.owner):
            # Row i of Theta depends on the number i of the data row alone, not on the batches.
            sums += Z.T @ stream.normals(Z.shape[0], self.n_components, first=row, dtype=Z.dtype)
            row += Z.shape[0]
        return replace(found, sums=sums, n_rows=row)

    def _srht(self, found: Range, X: Any) -> Range:
        n = self.n_components
        size = padded_block(max(n, FEWEST_ROWS))
        # H over all rows is a Kronecker product: its sampled row k is row coordinates[k] of H
        # within a block, with signs from row outer[k] of H over the blocks.
        coordinates = Stream(self.seed, "srht rows").permutations(1, size)[0, :n]
        outer = Stream(self.seed, "srht blocks").words(1, n)[0]
        signs, places = Stream(self.seed, "srht signs"), Stream(self.seed, "srht places")
        sums, j, n_rows = found.sums.copy(), found.n_blocks, found.n_rows
        for Z in _base_features(self.base, X, self.owner, size):
            sign = signs.signs(1, size, first=j)[0, : len(Z), None]
            # Rows are put at random places of the block: if few adjacent places are filled, groups
            # of coordinates of the Hadamard transform are equal, and sampling them wastes
            # components.
            place = places.permutations(1, size, first=j)[0, : len(Z)]
            odd = (np.bitwise_count(outer & np.uint64(j)) & 1).astype(bool)
            step = max(FEWEST_COLUMNS, WIDE_BYTES // (Z.dtype.itemsize * size))
            for columns in slices(sums.shape[0], step):
                padded = np.zeros((size, columns.stop - columns.start), dtype=Z.dtype)
                padded[place] = Z[:, columns] * sign
                picked = fwht(padded, axis=0, overwrite_x=True)[coordinates]
                picked[odd] *= -1
                sums[columns] += picked.T
            j += 1
            n_rows += len(Z)
        return replace(found, sums=sums, n_rows=n_rows, n_blocks=j)


@dataclass(frozen=True)
class PowerOf:
    """F' F Q of all rows, for a power iteration, as a reduction."""

    owner: TEFM
    base: Specification
    basis: Matrix

    def of(self, block: Block) -> Matrix:
        sums = np.zeros_like(self.basis)
        for Z in _base_features(self.base, table(block.of_positive_weight().X), self.owner):
            sums += Z.T @ (Z @ self.basis.astype(Z.dtype))
        return sums

    def combined(self, a: Matrix, b: Matrix) -> Matrix:
        return a + b


def _base_features(
    base: Specification, X: Any, owner: TEFM, size: int | None = None
) -> Iterator[NDArray[Any]]:
    """Base features of blocks of rows; each block overwrites the previous one."""
    width, wide = base.n_components, np.empty((0, 0))
    if size is None:
        size = max(FEWEST_ROWS, WIDE_BYTES // (8 * width))
    for rows in slices(X.shape[0], size):
        block = validated(owner, take(X, rows), reset=False)
        owner.check_rows(block)
        if wide.dtype != block.dtype or wide.shape[0] < block.shape[0]:
            wide = np.empty((block.shape[0], width), dtype=block.dtype)
        Z = wide[: block.shape[0]]
        if not base.operator(block.dtype).write(block, Z):
            raise ValueError(
                f"The base map of {type(owner).__name__} overflowed {block.dtype} on these rows. "
                f"{owner.overflow_advice}"
            )
        yield Z


def _orthonormal_basis(A: NDArray[np.float64]) -> NDArray[np.float64]:
    """Q of A = Q R, in Fortran order; A has no fewer rows than columns.

    Householder QR as in numpy.linalg.qr, but in larger blocks, which makes it compute-bound, and
    in place: the temporary memory is one block of columns.
    """
    width = A.shape[1]
    step = min(REFLECTIONS, width)
    Q, triangles, _ = lapack.dgeqrt(step, A)  # Householder vectors below R
    for start in reversed(range(0, width, step)):
        stop = min(start + step, width)
        vectors = np.tril(Q[start:, start:stop], -1)
        np.fill_diagonal(vectors, 1)
        triangle = np.triu(triangles[: stop - start, start:stop])
        Q[:, start:stop] = 0
        np.fill_diagonal(Q[start:, start:stop], 1)
        for first in range(start, width, step):
            part = Q[start:, first : first + step].T  # C-contiguous rows
            part -= (part @ vectors) @ triangle.T @ vectors.T
    return Q
