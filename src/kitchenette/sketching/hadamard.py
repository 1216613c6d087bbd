"""The Walsh-Hadamard transform."""

from __future__ import annotations

import numbers
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from kitchenette import _core


def fwht(
    X: ArrayLike,
    axis: int = -1,
    *,
    norm: Literal["ortho"] | None = None,
    overwrite_x: bool = False,
) -> NDArray[Any]:
    """Fast Walsh-Hadamard transform along an axis.

    Multiplies by the Hadamard matrix in natural (Sylvester) order, that of
    `scipy.linalg.hadamard`, in O(length log length) additions per vector instead of
    O(length^2). Results for integers are exact as long as they are below 2^24 in float32
    and 2^53 in float64.

    Parameters
    ----------
    X : array-like
        An array of at least one dimension. float32 stays float32; other real types become
        float64.
    axis : int, default=-1
        The axis to transform. Its length must be a power of two.
    norm : {None, "ortho"}, default=None
        "ortho" divides by sqrt(length), which makes the transform its own inverse.
    overwrite_x : bool, default=False
        Allow X to be overwritten. The transform is then done in place if X is a
        writeable float32 or float64 array in C or Fortran order.

    Returns
    -------
    Y : ndarray of the same shape

    Notes
    -----
    The transform is multithreaded; its result does not depend on the number of threads.

    Examples
    --------
    >>> from kitchenette import fwht
    >>> fwht([1.0, 2.0, 3.0, 4.0])
    array([10., -2., -4.,  0.])
    """
    if norm is not None and not (isinstance(norm, str) and norm == "ortho"):
        raise ValueError(f"norm must be None or 'ortho'; got {norm!r}.")
    if not isinstance(axis, numbers.Integral):
        raise ValueError(f"axis must be a whole number; got {axis!r}.")
    if sp.issparse(X):
        raise ValueError("fwht needs a dense array; got a sparse one. Pass X.toarray().")
    given = np.asarray(X)
    if given.ndim == 0:
        raise ValueError("fwht needs an array with at least one dimension; got a single number.")
    if given.dtype.kind not in "fiub":
        raise ValueError(f"fwht needs real numbers; got an array of {given.dtype}.")
    if not -given.ndim <= axis < given.ndim:
        raise ValueError(f"axis {axis} does not exist in an array of {given.ndim} dimensions.")
    length = given.shape[axis]
    if length < 1 or length & (length - 1):
        raise ValueError(
            f"fwht needs a length that is a power of two; axis {axis} has length {length}. "
            "Pad with zeros to the next power of two."
        )
    native = given.dtype.newbyteorder("=")
    dtype = native if native in (np.float32, np.float64) else np.dtype(np.float64)
    # A copy with native type and byte order, unless X may and can be overwritten.
    copy = None if overwrite_x and given.flags.writeable and given.flags.aligned else True
    work = np.array(given, dtype=dtype, order="K", copy=copy)
    if not (work.flags.c_contiguous or work.flags.f_contiguous):
        work = np.ascontiguousarray(work)
    whole, axis = work, axis % work.ndim
    if not whole.flags.c_contiguous:
        whole, axis = whole.T, whole.ndim - 1 - axis
    outer, inner = (int(np.prod(part)) for part in (whole.shape[:axis], whole.shape[axis + 1 :]))
    _core.fwht(whole.reshape(outer, length, inner))
    if norm == "ortho":
        work *= work.dtype.type(1 / np.sqrt(length))
    return work
