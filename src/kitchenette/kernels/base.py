"""The base class of all kernels, and checks of their arguments."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from math import isfinite
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from kitchenette.files.budget import Budget
from kitchenette.files.registry import constructed
from kitchenette.parameters import ValueParameters


class Kernel(ValueParameters, ABC):
    """A positive definite function of two rows.

    A kernel is a value: it is equal to another with the same parameters, and its attributes
    cannot be assigned. ``set_params`` of a feature map replaces its kernel by a modified copy;
    ``set_params`` of a kernel, as in scikit-learn, modifies it for all objects that share it.

    The base class of all kernels. Its subclasses `ShiftInvariantKernel`, `RadialKernel` and
    `DotProductKernel` are the ones to derive kernels of your own from.

    Examples
    --------
    >>> from kitchenette.kernels import Gaussian, Kernel
    >>> kernel = Gaussian(length_scale="median")
    >>> isinstance(kernel, Kernel), kernel == Gaussian("median")
    (True, True)
    >>> kernel.resolve([[0.0], [2.0]])  # the median distance of these rows is 2
    Gaussian(length_scale=2.0)
    """

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[Any]:
        """The exact Gram matrix ``K[i, j] = k(X[i], Y[j])``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
            Rows. float32 gives a float32 result, everything else float64.
        Y : array-like or sparse matrix of shape (m_rows, n_columns), optional
            Other rows; by default X itself.

        Returns
        -------
        K : ndarray of shape (n_rows, m_rows)
        """
        A, B = check_pair(X, Y)
        self.check_parameters(A.shape[1])
        if self.needs_sample():
            raise ValueError(
                f"{self!r} has no values before a length scale is chosen: fit a feature map "
                "(its kernel_ has one), call resolve(X), or pass a number."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            # NumPy scalars among the parameters may have promoted the result to float64.
            K = self._gram(A, B).astype(A.dtype, copy=False)
        if not np.isfinite(K).all():
            raise ValueError(
                f"{self!r} overflows {K.dtype} on these rows; scale them down or pass float64."
            )
        return K

    @abstractmethod
    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        """The Gram matrix of checked rows; ``Y is X`` if there is one set of rows."""

    @abstractmethod
    def check_parameters(self, n_columns: int) -> None:
        """Raise a ValueError if a parameter is invalid for rows of n_columns."""

    def needs_sample(self) -> bool:
        """Whether a valid parameter, such as "median", is to be chosen from data by `resolve`."""
        return False

    def resolve(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """A kernel whose parameters are all numbers, chosen for the rows X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
            A sample of the data; all of its rows are used.
        sample_weight : array-like of shape (n_rows,), optional
            How often each row counts.

        Returns
        -------
        kernel : Kernel
            This kernel if all its parameters are numbers, else a copy.
        """
        rows = check_rows(X)
        self.check_parameters(rows.shape[1])
        if not self.needs_sample():
            return self
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return self._resolved(rows, weights)

    def _resolved(self, rows: Any, weights: NDArray[np.float64] | None) -> Self:
        """A copy with the remaining parameters chosen for these checked rows."""
        return self

    def to_file(self) -> dict[str, Any]:
        """The parameters, for a model file."""
        return self.get_params(deep=False)

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A kernel from untrusted parameters, which are checked where the kernel is used."""
        return constructed(cls, state)

    def __setattr__(self, name: str, value: Any) -> None:
        # A kernel may be shared by several maps or be a default parameter.
        if name in vars(self):
            raise AttributeError(
                f"A kernel is a value: {name} of {self!r} cannot be assigned. Make a new kernel, "
                "or call set_params of the feature map or of the kernel."
            )
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _comparable(self) == _comparable(other)

    def __hash__(self) -> int:
        return hash(_comparable(self))


def _comparable(value: Any) -> Any:
    """A hashable value that is equal for equal parameters."""
    if isinstance(value, Kernel):
        parameters = value.get_params(deep=False).items()
        return type(value).__name__, tuple((name, _comparable(v)) for name, v in parameters)
    if hasattr(value, "__array__"):
        value = np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        return tuple(_comparable(v) for v in value)
    return value


def check_rows(X: Any) -> Any:
    """A finite matrix of float32 or float64, dense or CSR with each entry stored once."""
    X = check_array(native_order(X), accept_sparse="csr", dtype=[np.float64, np.float32])
    if sp.issparse(X) and X.indices.dtype != np.int32 and max(X.nnz, *X.shape) < 2**31:
        # Some of scikit-learn's distances need 32-bit indices.
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        X = type(X)(parts, shape=X.shape)
    return canonical(X)


def native_order(X: Any) -> Any:
    """The array in native byte order, because scikit-learn's checks would convert its dtype.

    A sparse matrix becomes a checked one, because these checks would trust its indices.
    """
    if sp.issparse(X):
        return checked_sparse(X)
    foreign = isinstance(X, np.ndarray) and X.dtype.kind == "f" and not X.dtype.isnative
    return X.astype(X.dtype.newbyteorder("=")) if foreign else X


def checked_sparse(X: Any) -> Any:
    """A sparse matrix as a CSR matrix whose indices are valid; its arrays are not copied.

    SciPy trusts the indices of a matrix: invalid ones make it read and write memory that is not its
    own. It also remembers whether they are sorted, though somebody has changed them since.
    """
    if X.ndim != 2:
        return X  # refused later, as a dense array is
    try:
        checked = X
        if X.format in ("csr", "csc", "bsr"):
            checked = type(X)((X.data, X.indices, X.indptr), shape=X.shape, copy=False)
            checked.check_format(full_check=True)
        elif X.format == "coo":
            checked = type(X)((X.data, (X.row, X.col)), shape=X.shape, copy=False)
        if X.format != "csr":
            checked = checked.tocsr()
            checked.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(
            f"The sparse matrix is not valid: {error}. Its arrays (indices, indptr, data) do not "
            "belong together; make the matrix anew from rows, columns and values, for example by "
            "scipy.sparse.coo_array((values, (rows, columns)), shape).tocsr()."
        ) from error
    return checked


def canonical(X: Any) -> Any:
    """Checked rows in canonical CSR format; the argument is not modified."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_pair(X: Any, Y: Any) -> tuple[Any, Any]:
    """Two checked sets of rows of equal width and dtype; the same object if Y is X or None."""
    same = Y is None or Y is X
    X = check_rows(X)
    if same:
        return X, X
    Y = check_rows(Y)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns but Y has {Y.shape[1]}; they must agree.")
    dtype = np.promote_types(X.dtype, Y.dtype)
    return X.astype(dtype, copy=False), Y.astype(dtype, copy=False)


def check_number(
    owner: Kernel, name: str, *, least: float = 0.0, open_end: bool = True, whole: bool = False
) -> None:
    """Refuse a parameter that is not a finite number above (or at) ``least``."""
    value: Any = getattr(owner, name)
    kind = numbers.Integral if whole else numbers.Real
    is_number = isinstance(value, kind) and not isinstance(value, bool) and _is_float(value)
    if is_number and (value > least or (value == least and not open_end)):
        return
    noun = "a whole number" if whole else "a number"
    relation = "greater than" if open_end else "at least"
    raise ValueError(
        f"{type(owner).__name__} needs {name} to be {noun} {relation} {least:g}; got {value!r}."
    )


def _is_float(value: Any) -> bool:
    """Whether a number is finite and in the range of float64."""
    try:
        return isfinite(value)
    except OverflowError:
        return False
