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
    degrees: NDArray[np.int64],
    means: NDArray[np.float64],
    second: NDArray[np.float64],
    paired: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> Moments:
    """Moments of products of n independent factors, averaged over all pairs.

    ``paired`` are the second moments of `complex_moments`, if features are paired.
    """
    flat, flat_second = means.ravel(), second.ravel()

    def of_degree(n: int) -> float:
        if paired is None or n < 2:
            return float(np.mean(flat_second**n))
        # Two features have twice the variance of the real part of one complex product.
        moduli, squares = paired
        return float(np.mean(moduli**n + squares**n - means ** (2 * n)))

    seconds = np.array([of_degree(n) for n in degrees.tolist()])
    return moments_of(np.stack([flat**n for n in degrees]), seconds)


def complex_moments(dots: Any, norms: Any, common: Any) -> tuple[Any, Any]:
    """The means of |z|^2 and of z^2 for z = <c, x> times the conjugate of <c, y>.

    c are random fourth roots of unity. ``dots`` are <x, y>, ``norms`` |x|^2 |y|^2 and ``common``
    the sum of x_i^2 y_i^2.
    """
    return norms + dots**2 - common, 2 * dots**2 - common
