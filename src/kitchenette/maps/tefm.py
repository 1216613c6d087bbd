"""Training-efficient feature maps (TEFM, IJCAI 2015)."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.linalg import lapack

from kitchenette import _core
from kitchenette.kernels import Gaussian, Kernel
from kitchenette.maps._base import RowTransformer, check_choice, unchanged_on_error
from kitchenette.maps.craft import check_fitted_for, wide_map
from kitchenette.maps.kitchen_sinks import PANEL
from kitchenette.sketching.hadamard import fwht
from kitchenette.sketching.random import Stream
from kitchenette.sketching.rows import blocks_of_rows
from kitchenette.sketching.structured import padded_block

BASE_FACTOR = 4  # base features per compact one, unless `base` says how many
WIDE_BYTES = 1 << 24  # of base features at a time
FEWEST_ROWS = 256  # at a time, so that products with them are worth their while
FEWEST_COLUMNS = 64  # at a time in a transform over rows
REFLECTIONS = 256  # at a time in a QR decomposition


class TEFM(RowTransformer):
    """Compact features: random ones, projected on the directions that the data fills most.

    With F the matrix of the base features of all training rows, the map is F Q, where Q is an
    orthonormal basis of the range of (F'F)^q F' Theta for a random matrix Theta: a
    randomised range finder. Where the kernel matrix has a low effective rank, few such
    features are as good as several times as many random ones.

    Parameters
    ----------
    base : map or Kernel, default=Gaussian()
        Any map of this package; Fastfood is the fast one. None for its ``n_components`` stands
        for 4 times ``n_components``. A kernel stands for RandomKitchenSinks of it with so
        many features, or RandomMaclaurin if it is a dot-product kernel. A map without a
        random_state of its own is drawn from this map's seed.
    n_components : int, default=256
        The number of output columns, the paper's l; at most the number of base features.
    method : {"gaussian", "srht"}, default="gaussian"
        Theta: independent normals (TEFM-G), or a subsampled randomised Hadamard transform over
        the rows (TEFM-S), which costs less per row.
    power_iterations : int, default=0
        q, for "gaussian" only. Each is one more pass over the data; worth it where the spectrum
        of F decays slowly.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    base_ : map
        The fitted base map.
    kernel_ : Kernel
        Its kernel.
    basis_ : ndarray of shape (n_base_features, n_components)
        Q.
    seed_ : int
        The seed that was used.
    n_rows_seen_ : int
        The number of training rows.
    n_features_in_ : int
        The number of columns seen in fit.

    See Also
    --------
    CRAFTMap : Compact features that do not look at the data.

    Notes
    -----
    Expectation: F Q Q' F', the base map's kernel matrix without what is orthogonal to the range of
    Q; so it is not unbiased, and never larger. With as many components as base features, or a
    base of no larger rank, it is the base map's kernel matrix exactly. With fewer rows than
    components, the kernel matrix of the training rows is kept exactly, and the columns
    beyond that are directions which these rows do not use; files and pickles keep them.

    A model that is linear in F Q with weights w is linear in F with weights Q w: `collapse`.
    Prediction then needs neither Q nor the product with it.

    Streaming: `partial_fit` adds rows, in any number of batches. For "gaussian" any batches
    give the Q of all rows in one batch, to rounding. For "srht" the rows are taken in blocks of a
    power of two of at least n_components rows, block j of row i being combined by the signs of
    a Hadamard matrix over all blocks, however many will come; so this is the SRHT over all
    rows, as it is in ``fit``. Each batch begins a new block, filled with zeros at its
    end: that changes which zeros the transform sees and nothing else, but batches much smaller
    than n_components waste work.

    Cost: that of base, and for D base features and l components O(D l) per row in ``fit``
    for "gaussian" (O(D log l + D) for "srht"), once O(D l^2), and O(D l) per row in ``transform``.
    Memory: O(D l), whatever the number of rows.

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

    _stored: ClassVar[dict[str, Any]] = {
        **RowTransformer._stored,
        "base_": RowTransformer,
        "basis_": np.ndarray,
        "n_rows_seen_": int,
        "_n_blocks": int,
        "_range": np.ndarray,
    }
    _range: NDArray[np.float64]  # F' Theta, or (F'F)^q of it; missing if the map only transforms
    _derived: dict[str, NDArray[Any]]  # made from the basis when it is asked for

    # ------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions that rows fill most.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
            Training rows, on which the base map is fitted as well.
        y : ignored

        Returns
        -------
        self : object
            The fitted map.
        """
        with unchanged_on_error(self):
            super().fit(X)
            self.basis_  # noqa: B018 (computed now: transform should not change the map)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add training rows; the base map is fitted on the first ones.

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
        first = not hasattr(self, "base_")
        parameters = self.get_params(deep=False) if first else self._drawn_with
        if parameters["power_iterations"] != 0:
            raise ValueError(
                "partial_fit sees each row once, and power iterations need all rows again: set "
                f"power_iterations=0; got {parameters['power_iterations']}."
            )
        if first:
            return super().fit(X)
        if not hasattr(self, "_range"):
            raise ValueError(
                "This map was saved without statistics: it transforms, but the sums to which "
                "partial_fit adds rows are missing."
            )
        with unchanged_on_error(self):
            X = self._validated(X, reset=False)
            self._range = self._range.copy()  # what it was stays if something fails
            self._add(X)
        return self

    def _choose(self, X: Any, sample: Any) -> None:
        n = self._n_features_out
        self.base_ = wide_map(self.base, BASE_FACTOR * n, self.seed_, "TEFM").fit(X)
        width = self.base_._n_features_out
        if width < n:
            raise ValueError(
                f"TEFM squeezes the base map's features into fewer: n_components must be at most "
                f"{width}; got {n}."
            )
        self._range = np.zeros((width, n))
        self._n_blocks = self.n_rows_seen_ = 0
        self._add(X)
        for _ in range(self.power_iterations):
            basis = self.basis_.astype(X.dtype)
            self._range = np.zeros((width, n))
            for Z in self._base_features(X):
                self._range += Z.T @ (Z @ basis)
            self._forget_basis()

    def _draw(self, n_columns: int, dtype: DTypeLike) -> None:
        self._derived = {}
        if "basis_" in vars(self):  # from a file, which has arrays in C order
            self.basis_ = np.asfortranarray(self.basis_)

    def _drawn_bytes(self, n_columns: int) -> int:
        # The basis once more and as panels, and base features of the probes.
        width, n = self.base_._n_features_out, self.n_components
        return 16 * width * (n + PANEL) + 8 * FEWEST_ROWS * width

    def _check_choices(self, n_columns: int) -> None:
        check_fitted_for("base_", self.base_, n_columns)
        if "basis_" not in vars(self):
            raise ValueError("basis_ is missing.")
        shape = self.base_._n_features_out, self._n_features_out
        for name in ("basis_", "_range") if hasattr(self, "_range") else ("basis_",):
            matrix = vars(self)[name]
            real = matrix.dtype == np.float64 and np.isfinite(matrix).all()
            if matrix.shape != shape or shape[0] < shape[1] or not real:
                raise ValueError(f"{name} must be a finite float64 matrix of shape {shape}.")
        if self._n_blocks < 0 or self.n_rows_seen_ < 1:
            raise ValueError("The numbers of rows and blocks must not be negative.")

    def _probe_scale(self) -> Any:
        return self.base_._probe_scale()

    @property
    def kernel_(self) -> Kernel:
        """The base map's kernel."""
        kernel: Kernel = self.base_.kernel_
        return kernel

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("method", self.method, ("gaussian", "srht"))
        q = self.power_iterations
        if not isinstance(q, numbers.Integral) or isinstance(q, bool) or q < 0:
            raise ValueError(f"power_iterations must be a whole number of at least 0; got {q!r}.")
        if self.method == "srht" and q > 0:
            raise ValueError(
                f"power_iterations are for method='gaussian'; leave 0 for 'srht'; got {q}."
            )

    def _base_features(self, X: Any, count: int | None = None) -> Iterator[NDArray[Any]]:
        """Blocks of so many rows, in one buffer: use a block before asking for the next."""
        width = self.base_._n_features_out
        if count is None:
            count = max(FEWEST_ROWS, WIDE_BYTES // (X.dtype.itemsize * width))
        wide = np.empty((min(count, X.shape[0]), width), dtype=X.dtype)
        for _, block in blocks_of_rows(X, count):
            Z = wide[: block.shape[0]]
            if not self.base_._write(block, Z):
                raise ValueError(
                    f"{type(self.base_).__name__} overflowed {X.dtype} on these rows. "
                    f"{self.base_._overflow_advice}"
                )
            yield Z

    def _add(self, X: Any) -> None:
        """Adds F' Theta of these rows."""
        method = self._drawn_with["method"]
        add = self._add_gaussian if method == "gaussian" else self._add_srht
        add(X)
        self.n_rows_seen_ += X.shape[0]
        self._forget_basis()

    def _add_gaussian(self, X: Any) -> None:
        stream, row, n = Stream(self.seed_, "range finder"), self.n_rows_seen_, self._n_features_out
        for Z in self._base_features(X):
            # A row of Theta belongs to its row of the data, whatever the batch.
            self._range += Z.T @ stream.normals(Z.shape[0], n, first=row, dtype=X.dtype)
            row += Z.shape[0]

    def _add_srht(self, X: Any) -> None:
        n = self._n_features_out
        size = padded_block(max(n, FEWEST_ROWS))
        # Row k of the transform over all blocks is row coordinates[k] of the one over each,
        # with signs from row outer[k] of the Hadamard matrix over the blocks.
        coordinates = Stream(self.seed_, "srht rows").permutations(1, size)[0, :n]
        outer = Stream(self.seed_, "srht blocks").words(1, n)[0]
        signs, places = Stream(self.seed_, "srht signs"), Stream(self.seed_, "srht places")
        width = self._range.shape[0]
        step = max(FEWEST_COLUMNS, WIDE_BYTES // (X.dtype.itemsize * size))
        for Z in self._base_features(X, size):
            j = self._n_blocks
            sign = signs.signs(1, size, first=j)[0, : len(Z), None]
            # At random places: of few rows side by side, the transform has few distinct ones.
            place = places.permutations(1, size, first=j)[0, : len(Z)]
            odd = (np.bitwise_count(outer & np.uint64(j)) & 1).astype(bool)
            for start in range(0, width, step):
                columns = slice(start, min(start + step, width))
                padded = np.zeros((size, columns.stop - start), dtype=X.dtype)
                padded[place] = Z[:, columns] * sign
                picked = fwht(padded, axis=0, overwrite_x=True)[coordinates]
                picked[odd] *= -1
                self._range[columns] += picked.T
            self._n_blocks += 1

    # ------------------------------------------------------------ using it

    @cached_property
    def basis_(self) -> NDArray[np.float64]:
        """Q, from a QR decomposition when it is first asked for after rows were added."""
        return _orthonormal_basis(self._range)

    def _forget_basis(self) -> None:
        self.__dict__.pop("basis_", None)
        self._derived = {}  # not attributes: transform must not change those

    def __getstate__(self) -> Any:
        if not hasattr(self, "base_"):
            return super().__getstate__()
        # Where rows leave some directions open, rounding chooses them: whoever gets a copy needs
        # this very basis, not the one that another processor makes of the same range.
        self.basis_  # noqa: B018
        return {**super().__getstate__(), "_derived": {}}

    def _without_statistics(self) -> Self:
        """A copy that only transforms, for files."""
        copied = copy(self)
        copied.__dict__.pop("_range", None)
        return copied

    def collapse(self, weights: ArrayLike) -> NDArray[Any]:
        """Weights of the base features that predict the same.

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
        if weights.ndim not in (1, 2) or weights.shape[0] != self._n_features_out:
            raise ValueError(
                f"weights must have {self._n_features_out} rows, one per component; got an array "
                f"of shape {weights.shape}."
            )
        product = self.basis_ @ weights
        return product.astype(np.result_type(weights.dtype, np.float32), copy=False)

    def _write(self, X: Any, out: NDArray[Any]) -> bool:
        panels = self._basis_panels(X.dtype)
        start = 0
        fine = True
        identity = _core.Tail("identity")
        multiply = _core.dense(identity, panels=panels, n_features=self._n_features_out)
        for Z in self._base_features(X):
            target = out[start : start + len(Z)]
            # Not a call to a BLAS, whose sums would depend on the size of the batch.
            fine &= multiply.write(Z, target)
            start += len(Z)
        return fine

    def _basis_panels(self, dtype: Any) -> NDArray[Any]:
        """Q as the core multiplies it: panels of so many columns."""
        name = f"panels of {dtype}"
        if name not in self._derived:
            width, n = self.basis_.shape
            panels = np.zeros((-(-n // PANEL), width, PANEL), dtype=dtype)
            for p, panel in enumerate(panels):
                part = self.basis_[:, p * PANEL : (p + 1) * PANEL]
                panel[:, : part.shape[1]] = part
            self._derived[name] = panels
        return self._derived[name]


def _orthonormal_basis(A: NDArray[np.float64]) -> NDArray[np.float64]:
    """Q of A = Q R, in Fortran order; A has no fewer rows than columns.

    Householder's reflections as in numpy.linalg.qr, but so many at a time that the speed of memory
    does not matter, and in place: beside Q there is only a block of its columns.
    """
    width = A.shape[1]
    step = min(REFLECTIONS, width)
    Q, triangles, _ = lapack.dgeqrt(step, A)  # the vectors of the reflections, below R
    for start in reversed(range(0, width, step)):
        stop = min(start + step, width)
        vectors = np.tril(Q[start:, start:stop], -1)
        np.fill_diagonal(vectors, 1)
        triangle = np.triu(triangles[: stop - start, start:stop])
        Q[:, start:stop] = 0
        np.fill_diagonal(Q[start:, start:stop], 1)
        for first in range(start, width, step):
            part = Q[start:, first : first + step].T  # rows of this are contiguous
            part -= (part @ vectors) @ triangle.T @ vectors.T
    return Q
