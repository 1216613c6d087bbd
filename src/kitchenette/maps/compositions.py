"""Functions of inner products and of other kernels: their parts, largest values and moments."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

from kitchenette.kernels import Composition, DotProductKernel, Kernel, ShiftInvariantKernel
from kitchenette.maps.degrees import Moments, cut_series, geometric_probabilities, moments_of
from kitchenette.sketching.combinations import largest_squared_norm


def parts(kernel: Kernel) -> tuple[DotProductKernel, Kernel | None]:
    """The outer function, and the kernel to which it is applied; None stands for <x, y>."""
    if isinstance(kernel, Composition):
        return kernel.outer, kernel.inner
    assert isinstance(kernel, DotProductKernel)
    return kernel, None


def innermost(kernel: Kernel) -> Kernel:
    """The innermost kernel of nested compositions."""
    return innermost(kernel.inner) if isinstance(kernel, Composition) else kernel


def largest_innermost(kernel: Kernel, rows: Any) -> float:
    """The largest k(x, x) of the innermost kernel, or |x|^2 for a dot-product kernel."""
    core = innermost(kernel)
    if isinstance(core, ShiftInvariantKernel):
        return 1.0
    if isinstance(core, DotProductKernel):
        return largest_squared_norm(rows)
    blocks = (core(rows[start : start + 16]) for start in range(0, rows.shape[0], 16))
    return max(float(np.diag(block).max()) for block in blocks)


def largest_value(kernel: Kernel | None, of_innermost: float) -> float:
    """The largest k(x, x) of a kernel, given `largest_innermost`; None stands for <x, y>."""
    if not isinstance(kernel, Composition | DotProductKernel):
        return of_innermost
    function, inner = parts(kernel)
    with np.errstate(over="ignore"):
        return float(function.function(np.array([largest_value(inner, of_innermost)]))[0])


def pair_moments(
    inner: Kernel | None, rows: Any, base: float, gaussian: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean and the second moment of one factor's product at all pairs of rows."""
    rows = rows.astype(np.float64)
    if inner is None:
        means = safe_sparse_dot(rows, rows.T, dense_output=True)
        norms = np.outer(np.diag(means), np.diag(means))
        if gaussian:
            return means, norms + 2 * means**2
        squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
        common = safe_sparse_dot(squares, squares.T, dense_output=True)
        # The mean of <s, x>^2 <s, y>^2 over Rademacher signs s.
        return means, np.maximum(norms + 2 * (means**2 - common), means**2)
    means = inner(rows)
    if isinstance(inner, ShiftInvariantKernel):
        # The mean of (2 cos(<w, x> + b) cos(<w, y> + b))^2 over w and b.
        return means, 1 + inner(2 * rows) / 2
    function, innermost_kernel = parts(inner)
    inner_means, inner_second = pair_moments(innermost_kernel, rows, base, gaussian)
    series = cut_series(function, float(np.diag(inner_means).max()))
    p = geometric_probabilities(series.degrees, base)
    ratio = inner_second / series.largest**2
    second = np.zeros_like(means)
    for n, term, share in zip(series.degrees, series.terms, p, strict=True):
        second += term**2 / share * ratio**n
    return means, np.maximum(second, means**2)


def degree_moments(
    degrees: NDArray[np.int64], means: NDArray[np.float64], second: NDArray[np.float64]
) -> Moments:
    """Moments of products of n independent factors, averaged over all pairs."""
    flat, flat_second = means.ravel(), second.ravel()
    seconds = np.array([np.mean(flat_second**n) for n in degrees])
    return moments_of(np.stack([flat**n for n in degrees]), seconds)
