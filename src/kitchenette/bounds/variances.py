"""The exact variance of the inner products of a map's features, where it is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from kitchenette.kernels import Composition, Gaussian
from kitchenette.maps import SRHT, RandomKitchenSinks, RandomMaclaurin, TensorSketch
from kitchenette.maps.degrees import geometric_probabilities
from kitchenette.sketching.structured import padded_block

Array = NDArray[np.float64]


def variance(feature_map: Any, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
    """The exact variance of the approximate kernel at pairs of rows, over the seeds of a map.

    Known for `RandomKitchenSinks` with independent frequencies, and with orthogonal ones for the
    Gaussian kernel; for `RandomMaclaurin` with dense projections; for `TensorSketch`; and for
    `SRHT`. For other maps there are bounds, such as `FastfoodError`.

    Parameters
    ----------
    feature_map : RandomKitchenSinks, RandomMaclaurin, TensorSketch or SRHT
        A fitted map.
    X, Y : array-like or sparse matrices with the map's number of columns
        Rows; Y is X if it is not given.

    Returns
    -------
    variance : ndarray of shape (n_rows of X, n_rows of Y)
        The variance of the inner product of the features of each pair.

    Notes
    -----
    The formulas are in the Notes of the maps. Choices that ``fit`` made from data, such as the
    number of features per degree, count as given.

    Examples
    --------
    The standard deviation of the error, and the error, of one map:

    >>> import numpy as np
    >>> from kitchenette import TensorSketch
    >>> from kitchenette.bounds import variance
    >>> X = np.random.default_rng(0).normal(size=(100, 20)) / np.sqrt(20)
    >>> sketch = TensorSketch(n_components=512, random_state=0).fit(X)
    >>> expected = np.sqrt(variance(sketch, X).mean())
    >>> Z = sketch.transform(X)
    >>> bool(0.5 < np.sqrt(np.mean((Z @ Z.T - sketch.kernel_(X)) ** 2)) / expected < 2)
    True
    """
    for kind, formula in _FORMULAS.items():
        if type(feature_map) is kind:
            A = feature_map.rows(X).astype(np.float64)
            B = A if Y is None else feature_map.rows(Y).astype(np.float64)
            # Rounding may leave a negative number where the features are exact.
            return np.maximum(formula(feature_map, A, B), 0.0)
    raise ValueError(
        f"No exact variance is known for {type(feature_map).__name__}. Its docstring says what is "
        "known; kitchenette.metrics.certificate estimates its error."
    )


def _of_kitchen_sinks(feature_map: Any, X: Any, Y: Any) -> Array:
    kernel, D = feature_map.kernel_, feature_map.n_features_out_
    k = kernel(X, Y)
    k2 = kernel(2 * X, 2 * Y)
    of_offset = 1 + k2 / 2 - k**2
    if feature_map.frequencies != "independent" and not (
        feature_map.frequencies == "orthogonal"
        and feature_map.features == "sincos"
        and D % 2 == 0
        and isinstance(kernel, Gaussian)
    ):
        raise ValueError(
            "No exact variance is known for these frequencies; it is known for independent ones, "
            "and for orthogonal ones with an even number of cosines and sines and Gaussian()."
        )
    if feature_map.features == "offset":
        return of_offset / D
    paired = D - D % 2  # the last column of an odd number has a random offset
    variance = (paired * (1 + k2 - 2 * k**2) + (D % 2) * of_offset) / D**2
    if feature_map.frequencies == "orthogonal":
        d = feature_map.n_features_in_
        blocks, rest = divmod(D // 2, d)
        others = (blocks * d * (d - 1) + rest * (rest - 1)) / (D / 2)
        v2 = -2 * np.log(k)
        variance += 2 * others * (special.hyp1f1(d, d / 2, -v2 / 2) - np.exp(-v2)) / D
    return variance


def _of_maclaurin(feature_map: Any, X: Any, Y: Any) -> Array:
    specification = feature_map.specification_
    if isinstance(specification.kernel, Composition) or specification.projection == "hadamard":
        raise ValueError(
            "No exact variance is known for RandomMaclaurin with projection='hadamard' or a "
            "Composition. That of projection='rademacher' bounds the one of 'hadamard'."
        )
    series, n_features = specification.random_part()
    t, sizes, common = _products(X, Y, series.largest)
    m = sizes + 2 * t**2 - (2 * common if specification.projection == "rademacher" else 0)
    if specification.degrees == "geometric":
        p = geometric_probabilities(series.degrees, specification.base)
        terms = zip(series.degrees, series.terms, p, strict=True)
        second = sum(a**2 * m**n / share for n, a, share in terms)
        kernel = _total((a * t**n for n, a in zip(series.degrees, series.terms, strict=True)), t)
        return (second - kernel**2) / n_features
    counts = _whole_counts(specification)
    terms = zip(series.degrees, series.terms, counts, strict=True)
    return _total((a**2 * (m**n - t ** (2 * n)) / c for n, a, c in terms), t)


def _of_sketch(feature_map: Any, X: Any, Y: Any) -> Array:
    specification = feature_map.specification_
    kernel = specification.kernel
    parts = []
    if specification.counts is not None:
        _whole_counts(specification)
    for sketch in specification.sketches():
        scales = sketch.column_scales
        t, sizes, common = _products(
            _scaled(X, scales[: X.shape[1]]), _scaled(Y, scales[: X.shape[1]]), 1.0
        )
        if scales.size > X.shape[1]:  # the constant
            one = scales[-1] ** 2
            lengths = [row_norms(_scaled(A, scales[:-1]), squared=True) + one for A in (X, Y)]
            t, sizes, common = t + one, np.multiply.outer(*lengths), common + one**2
        parts.append(_of_one_sketch(t, sizes, common, sketch.degree, sketch.size))
    variance = _total(parts, np.zeros((X.shape[0], Y.shape[0])))
    if isinstance(kernel, Gaussian):
        inverse = specification.inverse_scales()
        factors = [np.exp(-row_norms(_scaled(A, inverse), squared=True)) for A in (X, Y)]
        variance *= np.multiply.outer(*factors)
    return variance


def _of_one_sketch(t: Array, sizes: Array, common: Array, p: int, D: int) -> Array:
    a, b, c = t**2, sizes - common, t**2 - common
    second = (a + b + c) ** p - (a + b) ** p - (a + c) ** p + a**p
    return ((a + b) ** p + (a + c) ** p - 2 * a**p) / D + (2 - D % 2) * second / D**2


def _of_srht(feature_map: Any, X: Any, Y: Any) -> Array:
    E, d = feature_map.n_features_out_, padded_block(X.shape[1])
    if d < E:
        raise ValueError(
            f"The exact variance of SRHT is known for up to {d} components here, the number of "
            f"columns padded to a power of two; this map has {E}."
        )
    t, sizes, common = _products(X, Y, 1.0)
    return (sizes + t**2 - 2 * common) * (d - E) / (E * max(d - 1, 1))


_FORMULAS = {
    RandomKitchenSinks: _of_kitchen_sinks,
    RandomMaclaurin: _of_maclaurin,
    TensorSketch: _of_sketch,
    SRHT: _of_srht,
}


# ---------------------------------------------------------------- sums over columns


def _products(X: Any, Y: Any, largest: float) -> tuple[Array, Array, Array]:
    """<x, y>, |x|^2 |y|^2 and the sum of x_i^2 y_i^2, for rows over the root of ``largest``."""
    t = safe_sparse_dot(X, Y.T, dense_output=True) / largest
    sizes = np.multiply.outer(row_norms(X, squared=True), row_norms(Y, squared=True))
    common = safe_sparse_dot(_squared(X), _squared(Y).T, dense_output=True)
    return t, sizes / largest**2, common / largest**2


def _squared(X: Any) -> Any:
    return X.multiply(X) if hasattr(X, "multiply") else X**2


def _scaled(X: Any, scales: Array) -> Any:
    return X.multiply(scales).tocsr() if hasattr(X, "multiply") else X * scales


def _total(parts: Any, like: Array) -> Array:
    return np.asarray(sum(parts, start=np.zeros_like(like)))


def _whole_counts(specification: Any) -> Array:
    """The numbers of features per degree, if no degrees share features."""
    if not np.array_equal(specification.counts, specification.expected):
        raise ValueError(
            "No exact variance is known for a map with so few features that some degrees share "
            "them at random; use more components, or degrees='geometric'."
        )
    return np.asarray(specification.counts, dtype=np.float64)
