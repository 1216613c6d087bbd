"""The exact variance of the inner products of a map's features, where it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from kitchenette.kernels import Composition, Gaussian
from kitchenette.maps import SRHT, RandomKitchenSinks, RandomMaclaurin, TensorSketch
from kitchenette.maps.compositions import complex_moments
from kitchenette.maps.degrees import geometric_probabilities
from kitchenette.maps.kitchen_sinks import KitchenSinksSpecification
from kitchenette.maps.random_maclaurin import MaclaurinSpecification
from kitchenette.sketching.sketch_tree import tree_moments
from kitchenette.sketching.structured import padded_block

Array = NDArray[np.float64]


def variance(feature_map: Any, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
    """The exact variance of the approximate kernel at pairs of rows, over the seeds of a map.

    Known for `RandomKitchenSinks` with independent frequencies, and with orthogonal ones for the
    Gaussian kernel; for `RandomMaclaurin`, of a `Composition` if the columns of its inner map are
    independent; for `TensorSketch`, with ``tree`` up to degree two; and for `SRHT`. For other maps
    there are bounds, such as `FastfoodError`.

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
    series, D = specification.random_part()
    products = _products_of(specification, X, Y)
    terms = [(n, a) for n, a in zip(series.degrees.tolist(), series.terms.tolist(), strict=True)]
    if specification.degrees == "geometric":
        # Given the numbers of features, and that of their expectations.
        p = geometric_probabilities(series.degrees, specification.base)
        kernel = _total((a * products.t**n for n, a in terms), products.t)
        of_degrees = _total(
            (a**2 * products.t ** (2 * n) / share for (n, a), share in zip(terms, p, strict=True)),
            products.t,
        )
        counts = np.arange(D + 1)
        given = _total(
            (
                (a / (D * share)) ** 2
                * products.of_sum(n, counts, stats.binom.pmf(counts, D, share))
                for (n, a), share in zip(terms, p, strict=True)
            ),
            products.t,
        )
        return given + (of_degrees - kernel**2) / D
    counts = _whole_counts(specification)
    return _total(
        (
            (a / c) ** 2 * products.of_sum(n, np.array([c]), np.ones(1))
            for (n, a), c in zip(terms, counts.tolist(), strict=True)
            if c > 0
        ),
        products.t,
    )


@dataclass(frozen=True)
class _Products:
    """Variances of sums of features of one degree with weights of one."""

    t: Array  # the inner kernel
    second: Array  # the second moment of a factor of a feature at the two rows
    block: int | None = None  # the order of Hadamard matrices, if features are sampled from them
    paired: tuple[Array, Array] | None = None  # the second moments of complex factors

    def of_sum(self, n: int, counts: NDArray[np.int64], shares: Array) -> Array:
        """The mean variance for numbers of features with these probabilities."""
        mean = self.t ** (2 * n)
        single = self.second**n - mean
        if self.paired is None or n < 2:
            variance = float(shares @ counts) * single
            if self.block is not None:
                apart = self._apart(self.second)
                variance = variance + float(shares @ self._same_run(counts)) * (apart**n - mean)
            return variance
        pairs = counts // 2
        moduli, squares = self.paired
        of_pair = (moduli**n + squares**n) / 2 - mean
        apart = (self._apart(moduli) ** n + self._apart(squares) ** n) / 2 - mean
        return (
            4 * float(shares @ pairs) * of_pair
            + 4 * float(shares @ self._same_run(pairs)) * apart
            + float(shares @ (counts % 2)) * single
        )

    def _apart(self, second: Array) -> Array:
        """The mean product of a factor at two different rows of one transform.

        With the product at the same row, the mean over all rows is <x, y>^2.
        """
        assert self.block is not None
        return self.t**2 - (second - self.t**2) / max(self.block - 1, 1)

    def _same_run(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of ordered pairs of features that are sampled without replacement."""
        assert self.block is not None
        whole, rest = np.divmod(counts, self.block)
        return whole * self.block * (self.block - 1) + rest * (rest - 1)


def _products_of(specification: Any, X: Any, Y: Any) -> _Products:
    largest, projection = specification.largest, specification.projection
    if isinstance(specification.kernel, Composition):
        t, second = _of_inner_columns(specification, X, Y)
        return _Products(t / largest, second / largest**2)
    t, sizes, common = _products(X, Y, largest)
    if projection == "gaussian":
        return _Products(t, sizes + 2 * t**2)
    second = sizes + 2 * (t**2 - common)
    if projection == "rademacher":
        return _Products(t, second)
    paired = complex_moments(t, sizes, common) if projection == "complex" else None
    return _Products(t, second, padded_block(X.shape[1]), paired)


def _of_inner_columns(specification: Any, X: Any, Y: Any) -> tuple[Array, Array]:
    """The inner kernel, and the second moment of a column, if columns are independent."""
    kernel, inner_maps = specification.kernel.inner, specification.inner_maps
    t = kernel(X, Y)
    if not inner_maps:  # all features are constant
        return t, t**2
    inner = inner_maps[0]
    if isinstance(inner, KitchenSinksSpecification) and (
        inner.features == "offset" and inner.kind == "independent"
    ):
        return t, 1 + kernel(2 * X, 2 * Y) / 2
    if isinstance(inner, MaclaurinSpecification) and inner.degrees == "geometric":
        series, _ = inner.random_part()
        products = _products_of(inner, X, Y)
        if products.block is None and not inner.h01:
            p = geometric_probabilities(series.degrees, inner.base)
            terms = zip(series.degrees.tolist(), series.terms.tolist(), p.tolist(), strict=True)
            return t, _total((a**2 * products.second**n / share for n, a, share in terms), t)
    raise ValueError(
        "No exact variance is known for this Composition, because the columns of its inner map are "
        "not independent. Those of RandomKitchenSinks(features='offset') are, and those of "
        "RandomMaclaurin(degrees='geometric') with projection='rademacher' or 'gaussian'."
    )


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
        if specification.tree:
            if sketch.degree > 2:
                raise ValueError(
                    "No exact variance is known for trees of a degree above two; "
                    "SketchTreeRelativeError has an upper bound."
                )
            moments = tree_moments(sketch.degree, sketch.size, scales.size, t, sizes, common)
            parts.append(moments.dot - t ** (2 * sketch.degree))
        else:
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
    """The numbers of features per degree, if no degrees share features.

    The expectation of the number of a single degree that shares with none is rounded.
    """
    if not np.allclose(specification.counts, specification.expected, rtol=1e-9, atol=0):
        raise ValueError(
            "No exact variance is known for a map with so few features that some degrees share "
            "them at random; use more components, or degrees='geometric'."
        )
    return np.asarray(specification.counts)
