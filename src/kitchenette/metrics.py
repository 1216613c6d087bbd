"""How well a feature map approximates its kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import svds
from sklearn.utils.validation import check_is_fitted

from kitchenette.kernels import Kernel
from kitchenette.parameters import check_choice

__all__ = ["kernel_error"]


def kernel_error(
    feature_map: Any,
    X: ArrayLike,
    Y: ArrayLike | None = None,
    *,
    kernel: Kernel | None = None,
    metric: str = "nrmse",
) -> float:
    """The error of a fitted map's inner products against the exact kernel.

    Parameters
    ----------
    feature_map : fitted transformer
        A map of this package, or any transformer if ``kernel`` is given.
    X, Y : array-like or sparse matrices with the map's number of columns
        The rows to compare; Y is X if it is not given. Both Gram matrices are formed, so
        memory grows with the product of the numbers of rows.
    kernel : Kernel, optional
        The exact kernel; by default ``feature_map.kernel_``.
    metric : {"nrmse", "relative_spectral", "relative", "max", "mean_absolute"}, default="nrmse"
        With the exact Gram matrix K and the approximate K':

        * "nrmse": root mean square of K - K' over root mean square of K;
        * "relative_spectral": |K - K'|_2 / |K|_2 with spectral norms (as in TEFM);
        * "relative": mean of |K - K'| / |K| over the entries that are not zero (as in
          Tensor Sketch);
        * "max": the largest |K - K'|;
        * "mean_absolute": the mean of |K - K'|.

    Returns
    -------
    error : float

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood
    >>> from kitchenette.metrics import kernel_error
    >>> X = np.random.default_rng(0).uniform(size=(200, 10))
    >>> few = Fastfood(n_components=64, random_state=0).fit(X)
    >>> many = Fastfood(n_components=4096, random_state=0).fit(X)
    >>> kernel_error(few, X) > 3 * kernel_error(many, X)
    True
    """
    check_choice("metric", metric, tuple(_METRICS))
    check_is_fitted(feature_map)
    if kernel is None:
        kernel = getattr(feature_map, "kernel_", None)
        if kernel is None:
            raise ValueError(
                f"{type(feature_map).__name__} has no kernel_; pass the exact one as kernel=."
            )
    if not isinstance(kernel, Kernel):
        raise ValueError(
            f"kernel must be a kernel from kitchenette.kernels, such as Gaussian(); got {kernel!r}."
        )
    exact = kernel(X, Y).astype(np.float64, copy=False)
    if metric in _RELATIVE and not exact.any():
        raise ValueError(
            f"metric={metric!r} is relative to the exact kernel, which is zero for all of these "
            "rows; use 'max' or 'mean_absolute'."
        )
    Z = np.asarray(feature_map.transform(X), dtype=np.float64)
    W = Z if Y is None else np.asarray(feature_map.transform(Y), dtype=np.float64)
    return float(_METRICS[metric](exact, Z @ W.T))


def _nrmse(K: NDArray[Any], approximation: NDArray[Any]) -> float:
    return float(np.linalg.norm(K - approximation) / np.linalg.norm(K))


def _spectral_norm(A: NDArray[Any]) -> float:
    size = float(np.abs(A).max())
    if size == 0 or min(A.shape) <= 64:
        return float(np.linalg.norm(A, 2))
    # A random start vector, because a constant one might lie in the null space.
    start = np.random.default_rng(0).normal(size=min(A.shape))
    return size * float(svds(A / size, k=1, v0=start, return_singular_vectors=False)[0])


def _relative_spectral(K: NDArray[Any], approximation: NDArray[Any]) -> float:
    return _spectral_norm(K - approximation) / _spectral_norm(K)


def _relative(K: NDArray[Any], approximation: NDArray[Any]) -> float:
    nonzero = K != 0
    return float(np.mean(np.abs(K - approximation)[nonzero] / np.abs(K[nonzero])))


def _max(K: NDArray[Any], approximation: NDArray[Any]) -> float:
    return float(np.abs(K - approximation).max())


def _mean_absolute(K: NDArray[Any], approximation: NDArray[Any]) -> float:
    return float(np.abs(K - approximation).mean())


_METRICS = {
    "nrmse": _nrmse,
    "relative_spectral": _relative_spectral,
    "relative": _relative,
    "max": _max,
    "mean_absolute": _mean_absolute,
}
_RELATIVE = ("nrmse", "relative_spectral", "relative")
