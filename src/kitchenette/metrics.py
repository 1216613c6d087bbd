"""How well a feature map approximates its kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.sparse.linalg import svds
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from kitchenette.data.rows import slices
from kitchenette.kernels import Kernel
from kitchenette.maps import TEFM, CRAFTMap, Fastfood, RandomMaclaurin
from kitchenette.maps.base import KernelMap, RowMap
from kitchenette.parameters import check_choice, check_count
from kitchenette.sketching.random import Stream, seed_from

__all__ = ["Certificate", "certificate", "kernel_error"]

BLOCK_NUMBERS = 1 << 22  # entries of kernel matrices in memory at a time, 32 MB


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
    return float(_METRICS[metric](exact, exact - Z @ W.T))


@dataclass(frozen=True)
class Certificate:
    """An estimate of a map's kernel error, with an interval; see `certificate`.

    Attributes
    ----------
    error : float
        The estimate of ``kernel_error(feature_map, X)``, the "nrmse".
    low, high : float
        The confidence interval.
    confidence : float
        The probability with which such intervals contain the error.

    Examples
    --------
    >>> from kitchenette.metrics import Certificate
    >>> print(Certificate(error=0.05, low=0.04, high=0.06, confidence=0.95))
    The kernel error is 0.05, between 0.04 and 0.06 with a confidence of 95 %.
    """

    error: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        return (
            f"The kernel error is {self.error:.3g}, between {self.low:.3g} and {self.high:.3g} "
            f"with a confidence of {100 * self.confidence:g} %."
        )


def certificate(
    feature_map: Any,
    X: ArrayLike,
    *,
    confidence: float = 0.95,
    n_copies: int = 8,
    random_state: Any = 0,
) -> Certificate:
    """The kernel error of a fitted map on these rows, without the exact kernel.

    For maps whose kernel is not known, such as compositions with an inner map of your own, or as
    an independent check. The map is compared with copies of itself with other seeds.

    Parameters
    ----------
    feature_map : fitted transformer
        An unbiased map: any of this package but `TEFM` and ``Fastfood(projection="fourier")``, or
        another transformer with a parameter ``random_state``.
    X : array-like or sparse matrix with the map's number of columns
        Rows. Memory grows with their number, and time with its square.
    confidence : float, default=0.95
        The probability with which the interval contains the error.
    n_copies : int, default=8
        The number of copies, at least 3. Each costs as much as the map itself, and the interval
        shrinks like n_copies^-1/2.
    random_state : int, NumPy generator or None, default=0
        The seed of the copies, which must differ from that of the map.

    Returns
    -------
    certificate : Certificate
        The "nrmse" of `kernel_error`, estimated, and its interval.

    Notes
    -----
    Let K' be the kernel matrix of the map, with the error E = K' - K, and K_1, ..., K_R those of
    copies with other seeds, which are unbiased: their expectation is K. For two different copies
    the expectation of the sum of the entries of (K' - K_r) * (K' - K_s) is |E|^2, and that of
    K_r * K_s is |K|^2 (Frobenius norms). The means over all pairs of copies estimate the squared
    error of *this* map on these rows, not of an average one. The interval is that of the jackknife
    over copies and Student's t with R - 1 degrees of freedom.

    What the copies share is not seen: a bias, or the truncation of a series. (Copies of
    `RandomMaclaurin` have ``degrees="optimal"`` instead of "least_error", so that they are
    unbiased.) If many copies are
    needed for a useful interval, few random numbers dominate the error.

    Halves of the features of one map would need no copies, but are independent only for maps
    with independent features: not inside a block of `Fastfood`, and not within one `TensorSketch`.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood
    >>> from kitchenette.metrics import certificate, kernel_error
    >>> X = np.random.default_rng(0).uniform(size=(200, 10))
    >>> fastfood = Fastfood(n_components=256, random_state=7).fit(X)
    >>> found = certificate(fastfood, X)
    >>> found.low < kernel_error(fastfood, X) < found.high
    True
    """
    check_is_fitted(feature_map)
    check_count("n_copies", n_copies, least=3)
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        raise ValueError(f"confidence must be a number between zero and one; got {confidence!r}.")
    seeds = Stream(seed_from(random_state), "copies").words(1, n_copies)[0] % 2**32
    copies = [_copy(feature_map, X, int(seed)) for seed in seeds]
    features = [np.asarray(one.transform(X), dtype=np.float64) for one in (feature_map, *copies)]
    differences, products = _sums_over_entries(features)
    squared = _mean_of_pairs(differences) / _mean_of_pairs(products)
    left_out = np.array(
        [
            _mean_of_pairs(np.delete(np.delete(differences, r, 0), r, 1))
            / _mean_of_pairs(np.delete(np.delete(products, r, 0), r, 1))
            for r in range(n_copies)
        ]
    )
    deviation = np.sqrt((n_copies - 1) * np.mean((left_out - left_out.mean()) ** 2))
    margin = stats.t.ppf(0.5 + confidence / 2, n_copies - 1) * deviation
    error, low, high = np.sqrt(np.maximum([squared, squared - margin, squared + margin], 0.0))
    return Certificate(float(error), float(low), float(high), confidence)


def _copy(feature_map: Any, X: Any, seed: int) -> Any:
    """An independent map with the same expectation."""
    if isinstance(feature_map, TEFM) or (
        isinstance(feature_map, Fastfood) and feature_map.projection == "fourier"
    ):
        raise ValueError(
            f"{feature_map!r} is biased, and copies of it share the bias; use kernel_error, which "
            "compares with the exact kernel."
        )
    copy = clone(feature_map)
    names = copy.get_params(deep=False)
    if "random_state" not in names:
        raise ValueError(
            f"{type(feature_map).__name__} has no random_state, so it cannot be sampled again."
        )
    copy.set_params(random_state=seed)
    if isinstance(feature_map, RandomMaclaurin) and feature_map.degrees == "least_error":
        copy.set_params(degrees="optimal")  # unbiased, so that the bias of the map is seen
    if isinstance(feature_map, KernelMap):
        copy.set_params(
            kernel=feature_map.kernel_
        )  # with the parameters that were chosen from data
    elif isinstance(feature_map, CRAFTMap):
        copy.set_params(up=_copy(feature_map.up_, X, seed + 1))
        if feature_map.down is not None:
            copy.set_params(down__random_state=seed + 2)
    elif isinstance(feature_map, RowMap) and hasattr(feature_map, "kernel_"):
        raise ValueError(
            f"{type(feature_map).__name__} chooses what it approximates from the data; pass the "
            "map that it chose."
        )
    return copy.fit(X)


def _sums_over_entries(features: list[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sums over the entries of (K' - K_r) * (K' - K_s), and of K_r * K_s, for all r and s."""
    n, n_copies = features[0].shape[0], len(features) - 1
    differences, products = np.zeros((2, n_copies, n_copies))
    for rows in slices(n, max(1, BLOCK_NUMBERS // (n * len(features)))):
        kernels = np.stack([(Z[rows] @ Z.T).ravel() for Z in features])
        of_copies = kernels[1:]
        products += of_copies @ of_copies.T
        of_errors = kernels[0] - of_copies
        differences += of_errors @ of_errors.T
    return differences, products


def _mean_of_pairs(A: NDArray[Any]) -> float:
    """The mean of the entries beside the diagonal."""
    n = A.shape[0]
    return float((A.sum() - np.trace(A)) / (n * (n - 1)))


def _spectral_norm(A: NDArray[Any]) -> float:
    size = float(np.abs(A).max())
    if size == 0 or min(A.shape) <= 64:
        return float(np.linalg.norm(A, 2))
    # A random start vector, because a constant one might lie in the null space.
    start = np.random.default_rng(0).normal(size=min(A.shape))
    return size * float(svds(A / size, k=1, v0=start, return_singular_vectors=False)[0])


# Functions of the exact kernel matrix K and the error E of the approximate one.
_METRICS: dict[str, Callable[[Any, Any], Any]] = {
    "nrmse": lambda K, E: np.linalg.norm(E) / np.linalg.norm(K),
    "relative_spectral": lambda K, E: _spectral_norm(E) / _spectral_norm(K),
    "relative": lambda K, E: np.mean(np.abs(E[K != 0] / K[K != 0])),
    "max": lambda K, E: np.abs(E).max(),
    "mean_absolute": lambda K, E: np.abs(E).mean(),
}
_RELATIVE = ("nrmse", "relative_spectral", "relative")
