"""Random Maclaurin features (Kar and Karnick 2012)."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from kitchenette.kernels import (
    Composition,
    DotProductKernel,
    Kernel,
    Polynomial,
    RadialKernel,
    ShiftInvariantKernel,
)
from kitchenette.maps.base import FeatureMap, check_choice
from kitchenette.maps.degrees import (
    TOLERANCE,
    Moments,
    Series,
    check_counts,
    cut_series,
    draw_degrees,
    geometric_probabilities,
    missing_share,
    moments_of,
    optimal_counts,
)
from kitchenette.maps.fastfood import Fastfood
from kitchenette.maps.kitchen_sinks import RandomKitchenSinks
from kitchenette.sketching.products import (
    PANEL,
    draw_hadamard_products,
    draw_rademacher_products,
)
from kitchenette.sketching.random import Stream
from kitchenette.sketching.rows import BLOCK_BYTES, blocks_of_rows, row_blocks
from kitchenette.sketching.structured import padded_block

PAIR_ROWS = 256  # whose pairs tell how large the variance of each degree is
ACCEPTED_SHARE = 1000 * TOLERANCE  # of the kernel that may be missing at longer rows


class RandomMaclaurin(FeatureMap):
    """Random features for any dot-product kernel, by products of random projections.

    The kernel is a power series a_0 + a_1 <x, y> + a_2 <x, y>^2 + ... A feature of degree n is
    a product of n projections of the row on independent random signs, whose expectation at
    two rows is <x, y>^n.

    Parameters
    ----------
    kernel : DotProductKernel or Composition, default=Polynomial(degree=3)
        Polynomial, Exponential, VovkPolynomial, VovkInfinite, Maclaurin, or the function of
        one of these applied to another kernel, shift-invariant or of this list.
    n_components : int, default=1024
        The number of features, any number.
    h01 : bool, default=False
        Represent the degrees 0 and 1 exactly, by a constant and the row itself, and the rest by
        what is left of n_components, which must be more than the number of columns. Good
        where these degrees make up much of the kernel.
    projection : {"hadamard", "rademacher"}, default="hadamard"
        How the signs are drawn. "hadamard": rows of randomly signed Hadamard matrices, whose
        products with a row cost next to nothing. "rademacher": independent signs, as in the
        paper; n_columns bits per factor, and a multiplication for each.
    degrees : {"optimal", "geometric"}, default="optimal"
        How many features each degree gets. "optimal": as many as make the variance least on a
        sample of the rows seen in fit. "geometric": each feature draws its degree, n with a
        probability that is proportional to base^-(n + 1), as in the paper.
    base : float, default=2.0
        Greater than one; for degrees="geometric", and inside a Composition.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with all its parameters chosen.
    seed_ : int
        The seed that was used; ``random_state=seed_`` draws the same map.
    degrees_ : ndarray of shape (n_components,)
        The degree of each feature; exact columns are 0 and 1.
    n_features_in_ : int
        The number of columns seen in fit.

    See Also
    --------
    TensorSketch : Usually more accurate for polynomial kernels, and for sparse rows.
    Fastfood : Serves dot-product kernels, too, by spherical harmonics.

    Notes
    -----
    Expectation: the kernel; of an infinite series, all but a share of 1e-7 at the largest norm
    seen in ``fit``. Rows that are so much longer that a share of 1e-4 is missing get a warning.

    Variance: with m = |x|^2 |y|^2 + 2 (<x, y>^2 - sum of x_i^2 y_i^2), one feature of degree n
    and weight one has m^n - <x, y>^(2n). So with "optimal" degrees, c_n features of degree
    n and k(x, y) the sum of a_n <x, y>^n, it is the sum of a_n^2 (m^n - <x, y>^(2n)) / c_n for
    "rademacher" (some rare degrees may share features by chance, which adds a little), and
    with "geometric" degrees (the sum of a_n^2 m^n / P[N = n] - k(x, y)^2) / n_components.
    "hadamard" has the same or less: features draw coordinates of a transform without
    repetition, and given the signs the mean over all coordinates is exact; as many features of
    degree one as there are padded columns have no variance, and get no more if there are other
    degrees. A Composition has the
    second moment of the one-dimensional inner estimate in place of m, which is
    1 + k(2x, 2y) / 2 for a shift-invariant kernel.

    Cost for degree n: O(n n_columns log n_columns + n n_components) per row with
    "hadamard", O(n n_columns n_components) with "rademacher".

    References
    ----------
    Kar and Karnick, Random feature maps for dot product kernels, AISTATS 2012.
    Hamid, Xiao, Gittens and DeCoste, Compact random feature maps, ICML 2014 (section 3.5).
    Ahle et al., Oblivious sketching of high-degree polynomial kernels, SODA 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import RandomMaclaurin
    >>> from kitchenette.kernels import Exponential
    >>> X = np.random.default_rng(0).normal(size=(50, 20))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> maclaurin = RandomMaclaurin(Exponential(), n_components=4096, random_state=0)
    >>> Z = maclaurin.fit_transform(X)
    >>> bool(abs(Z @ Z.T - Exponential()(X)).max() < 0.3)
    True
    """

    _overflow_advice = "Scale the data down or pass float64."
    _stored: ClassVar[dict[str, Any]] = {
        **FeatureMap._stored,
        "_series": Series,
        "_counts": np.ndarray,
        "_expected": np.ndarray,
        "_inner_maps": list,
    }

    def __init__(
        self,
        kernel: Kernel = Polynomial(degree=3),
        n_components: int = 1024,
        *,
        h01: bool = False,
        projection: str = "hadamard",
        degrees: str = "optimal",
        base: float = 2.0,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.h01 = h01
        self.projection = projection
        self.degrees = degrees
        self.base = base
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("projection", self.projection, tuple(_DRAW))
        check_choice("degrees", self.degrees, ("optimal", "geometric"))
        if not isinstance(self.h01, bool | np.bool_):
            raise ValueError(f"h01 must be True or False; got {self.h01!r}.")
        base = self.base
        if not isinstance(base, numbers.Real) or not 1 < base < np.inf:
            raise ValueError(f"base must be a number greater than 1; got {base!r}.")
        _check_kernel(self.kernel)
        if self.h01 and isinstance(self.kernel, Composition):
            raise ValueError(
                "h01 needs a dot-product kernel, whose degree 1 is the row itself; got "
                f"{self.kernel!r}."
            )

    def _choose(self, X: Any, sample: Any) -> None:
        super()._choose(X, sample)
        outer, inner = _parts(self.kernel_)
        self._series = cut_series(outer, _largest_value(inner, X))
        _check_range(self.kernel_, self._series, sample.dtype)
        self._set_exact_part(X.shape[1])
        series, n = self._random_part()
        if self.degrees == "optimal":
            rows = sample[Stream(self.seed_, "pairs").sample(sample.shape[0], PAIR_ROWS)]
            self._counts, self._expected = self._best_counts(series, n, inner, rows)
        self._inner_maps: list[FeatureMap] = []
        if inner is not None:
            degrees = self._random_degrees(series, n)[0]
            self._inner_maps = [m.fit(X) for m in self._factor_maps(inner, degrees)]

    def _draw(self, n_columns: int, dtype: DTypeLike) -> None:
        self._set_exact_part(n_columns)
        series, n = self._random_part()
        degrees, weights = self._random_degrees(series, n)
        if self._inner_maps:
            weights = weights * series.largest ** (-0.5 * degrees)
            self._products: Any = _composed(weights.astype(dtype), degrees, self._inner_maps)
        else:
            # A power of two: rows of norms around one, without any rounding.
            scale = float(2.0 ** -np.round(np.log2(series.largest) / 2))
            weights = weights * (series.largest**-0.5 / scale) ** degrees
            self._products = _DRAW[self.projection](
                degrees, weights, n_columns, self.seed_, dtype, input_scale=scale
            )
        self.degrees_ = np.concatenate([self._exact_degrees(), degrees])

    def _set_exact_part(self, n_columns: int) -> None:
        """What the degrees 0 and 1 need."""
        self._constant, self._slope, self._n_exact = 0.0, 0.0, 0
        if not self.h01:
            return
        series = self._series
        constant, slope = series.term(0), series.term(1) / series.largest
        if constant == 0 and slope == 0:
            raise ValueError(
                f"h01 needs a kernel with terms of degree 0 or 1; {self.kernel!r} has none. "
                "Leave h01 away."
            )
        self._constant, self._slope = np.sqrt([constant, slope]).tolist()
        self._n_exact = (constant > 0) + n_columns * (slope > 0)
        n_terms = self._random_part()[0].degrees.size
        needed = max(self._n_exact + (n_terms > 0), n_columns + 1)
        if self._n_features_out < needed:
            raise ValueError(
                f"h01 with rows of {n_columns} columns needs n_components of at least {needed}; "
                f"got {self.n_components}."
            )

    def _random_part(self) -> tuple[Series, int]:
        """The series without its exact part, and the number of features that are left for it."""
        series = self._series.without((0, 1)) if self.h01 else self._series
        return series, self._n_features_out - self._n_exact

    def _exact_degrees(self) -> NDArray[np.int32]:
        """The degrees of the exact columns: the constant comes first, if there is one."""
        degrees = np.ones(self._n_exact, dtype=np.int32)
        degrees[: self._constant > 0] = 0
        return degrees

    def _best_counts(
        self, series: Series, n_features: int, inner: Kernel | None, rows: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Features per degree for the least variance on pairs of rows, and their expectations."""
        if series.degrees.size == 0 or n_features == 0:
            return np.zeros(series.degrees.size, dtype=np.int64), np.ones(series.degrees.size)
        means, second = _pair_moments(inner, rows, self.base)
        moments = _degree_moments(
            series.degrees, means / series.largest, second / series.largest**2
        )
        exact_at = {}
        if inner is None and self.projection == "hadamard":
            # All rows of a block: H B is orthogonal up to scale.
            block = padded_block(rows.shape[1])
            exact_at = {int(term): block for term in np.flatnonzero(series.degrees == 1)}
        return optimal_counts(series.terms, moments, n_features, self.seed_, exact_at=exact_at)

    def _random_degrees(
        self, series: Series, n_features: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Degrees of the random features, and their weights for rows scaled to the largest norm."""
        if series.degrees.size == 0 or n_features == 0:
            return np.zeros(n_features, dtype=np.int32), np.zeros(n_features)
        if self.degrees == "geometric":
            p = geometric_probabilities(series.degrees, self.base)
            picks = draw_degrees(p, n_features, self.seed_)
            weights = np.exp(0.5 * (series.logs - np.log(n_features * p)))
        else:
            # High degrees first, so that features that are computed together are alike.
            picks = np.repeat(np.arange(series.degrees.size), self._counts)[::-1]
            weights = np.sqrt(series.terms / self._expected)
        return series.degrees[picks].astype(np.int32), weights[picks]

    def _factor_maps(self, inner: Kernel, degrees: NDArray[np.int32]) -> Iterator[FeatureMap]:
        """Factor j of all features that have one comes from an inner map of its own."""
        for j in range(int(degrees.max(initial=0))):
            seed = int(Stream(self.seed_, "inner maps").words(1, 1, first=j)[0, 0])
            yield self._inner_map(inner, int(np.count_nonzero(degrees > j)), seed)

    def _inner_map(self, inner: Kernel, n_components: int, seed: int) -> FeatureMap:
        """A map whose every single column is an unbiased estimate of the inner kernel."""
        if isinstance(inner, RadialKernel):
            return Fastfood(inner, n_components, features="offset", random_state=seed)
        if isinstance(inner, ShiftInvariantKernel):
            return RandomKitchenSinks(inner, n_components, features="offset", random_state=seed)
        return RandomMaclaurin(
            inner,
            n_components,
            projection=self.projection,
            degrees="geometric",
            base=self.base,
            random_state=seed,
        )

    def _drawn_bytes(self, n_columns: int) -> int:
        n, block = self.n_components, padded_block(n_columns)
        n_factors = int(self._series.degrees[-1])
        if _parts(self.kernel_)[1] is not None:
            return 64 * n + 8 * n * n_factors
        if self.projection == "hadamard":
            # Rows of all features, a permutation in the making, and the signs.
            return 64 * n + n_factors * (8 * n + 32 * (block + 128))
        return 64 * n + n_factors * (n + PANEL) // PANEL * (16 * n_columns + 1024)

    def _probe_scale(self) -> Any:
        if self._inner_maps:
            return self._inner_maps[0]._probe_scale()
        return 0.99 * self._series.largest**0.5

    def _check_choices(self, n_columns: int) -> None:
        self._set_exact_part(n_columns)
        series, n = self._random_part()
        if self.degrees == "optimal":
            check_counts(self._counts, self._expected, n if series.degrees.size else 0)
            if self._counts.size != series.degrees.size:
                raise ValueError("There must be a count for each degree of the series.")
        inner = _parts(self.kernel_)[1]
        needed = 0
        if inner is not None:
            needed = int(self._random_degrees(series, n)[0].max(initial=0))
        maps = self._inner_maps
        if (
            len(maps) != needed
            or not all(isinstance(m, FeatureMap) for m in maps)
            or any(m.n_features_in_ != n_columns for m in maps)
        ):
            raise ValueError(f"There must be {needed} inner maps for {n_columns} columns.")

    def _write(self, X: Any, out: NDArray[Any]) -> bool:
        self._check_norms(X)
        n_exact = self._n_exact
        first = int(self._constant > 0)
        out[:, :first] = self._constant
        if self._slope > 0:
            for rows, block in row_blocks(X, X.shape[1]):
                np.multiply(block, X.dtype.type(self._slope), out=out[rows, first:n_exact])
        if n_exact == out.shape[1]:
            return bool(np.isfinite(out).all())
        return bool(self._products.astype(X.dtype).features(X, out[:, n_exact:]))

    def _check_norms(self, X: Any) -> None:
        """A series that was cut for shorter rows may miss much of the kernel of longer ones."""
        outer, inner = _parts(self.kernel_)
        if outer.last_degree is not None:
            return
        largest = _largest_value(inner, X)
        if largest >= outer.radius:
            cut_series(outer, largest)  # says why not
        missing = missing_share(outer, self._series, largest)
        if missing > ACCEPTED_SHARE:
            warnings.warn(
                f"These rows are longer than those seen in fit: of the series of {outer!r}, cut "
                f"after degree {self._series.degrees[-1]}, a share of {missing:.1g} is missing "
                "for the longest of them. Fit on rows that are as long.",
                UserWarning,
                stacklevel=4,
            )


_DRAW = {"hadamard": draw_hadamard_products, "rademacher": draw_rademacher_products}


@dataclass(frozen=True, eq=False)
class _ComposedProducts:
    """Products of columns of independent inner maps, a block of rows at a time."""

    weights: NDArray[Any]
    factors: tuple[tuple[NDArray[np.intp], FeatureMap], ...]

    def astype(self, dtype: DTypeLike) -> _ComposedProducts:
        return replace(self, weights=self.weights.astype(dtype, copy=False))

    def features(self, X: Any, out: NDArray[Any]) -> bool:
        fine = True
        count = max(1, BLOCK_BYTES // (2 * X.dtype.itemsize * self.weights.size))
        for rows, block in blocks_of_rows(X, count):
            target = out[rows]
            target[:] = self.weights
            for columns, inner_map in self.factors:
                Z = np.empty((target.shape[0], columns.size), dtype=X.dtype)
                fine &= inner_map._write(block, Z)
                # One column of the inner map is an estimate by itself.
                Z *= X.dtype.type(np.sqrt(columns.size))
                if columns.size == columns[-1] + 1:
                    target[:, : columns.size] *= Z
                else:
                    target[:, columns] *= Z
            fine &= bool(np.isfinite(target).all())
        return fine


def _composed(
    weights: NDArray[Any], degrees: NDArray[np.int32], inner_maps: list[FeatureMap]
) -> _ComposedProducts:
    columns = [np.flatnonzero(degrees > j) for j in range(len(inner_maps))]
    for of_factor, inner_map in zip(columns, inner_maps, strict=True):
        if inner_map._n_features_out != of_factor.size:
            raise ValueError(
                f"An inner map has {inner_map._n_features_out} features instead of "
                f"{of_factor.size}."
            )
    return _ComposedProducts(weights, tuple(zip(columns, inner_maps, strict=True)))


# ---------------------------------------------------------------- kernels


def _parts(kernel: Kernel) -> tuple[DotProductKernel, Kernel | None]:
    """The function that is expanded, and the kernel it is applied to; None is the plain <x, y>."""
    if isinstance(kernel, Composition):
        return kernel.outer, kernel.inner
    assert isinstance(kernel, DotProductKernel)
    return kernel, None


def _check_kernel(kernel: Kernel) -> None:
    if isinstance(kernel, Composition):
        if isinstance(kernel.inner, ShiftInvariantKernel):
            return
        if isinstance(kernel.inner, Composition | DotProductKernel):
            _check_kernel(kernel.inner)
            return
        raise ValueError(
            "RandomMaclaurin serves compositions with a shift-invariant or a dot-product kernel "
            f"inside; got {kernel.inner!r}."
        )
    if not isinstance(kernel, DotProductKernel):
        raise ValueError(
            f"RandomMaclaurin needs a kernel of the inner product, which {kernel!r} is not; "
            "RandomKitchenSinks and Fastfood serve shift-invariant kernels."
        )


def _largest_value(inner: Kernel | None, X: Any) -> float:
    """The largest k(x, x) of the rows, for the plain inner product or an inner kernel."""
    if isinstance(inner, ShiftInvariantKernel):
        return 1.0
    if inner is None:
        return float(row_norms(X, squared=True).max(initial=0.0))
    outer, innermost = _parts(inner)
    with np.errstate(over="ignore"):
        return float(outer.function(np.array([_largest_value(innermost, X)]))[0])


def _check_range(kernel: Kernel, series: Series, dtype: DTypeLike) -> None:
    limit = np.log(np.finfo(dtype).max)
    if series.logs.max() + np.log(series.logs.size) > limit:
        raise ValueError(
            f"{kernel!r} overflows {np.dtype(dtype)} for rows of norm {series.largest**0.5:g}; "
            "scale the rows down or pass float64."
        )


# ---------------------------------------------------------------- moments


def _pair_moments(
    inner: Kernel | None, rows: Any, base: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Expectation and second moment of one factor's product at all pairs of rows."""
    rows = rows.astype(np.float64)
    if inner is None:
        means = safe_sparse_dot(rows, rows.T, dense_output=True)
        squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
        common = safe_sparse_dot(squares, squares.T, dense_output=True)
        norms = np.outer(np.diag(means), np.diag(means))
        # The fourth moment of projections on Rademacher signs.
        return means, np.maximum(norms + 2 * (means**2 - common), means**2)
    means = inner(rows)
    if isinstance(inner, ShiftInvariantKernel):
        # (sqrt(2) cos(<w, x> + b) sqrt(2) cos(<w, y> + b))^2 averaged over b and w.
        return means, 1 + inner(2 * rows) / 2
    outer, innermost = _parts(inner)
    inner_means, inner_second = _pair_moments(innermost, rows, base)
    series = cut_series(outer, float(np.diag(inner_means).max()))
    p = geometric_probabilities(series.degrees, base)
    ratio = inner_second / series.largest**2
    second = np.zeros_like(means)
    for n, term, share in zip(series.degrees, series.terms, p, strict=True):
        second += term**2 / share * ratio**n
    return means, np.maximum(second, means**2)


def _degree_moments(
    degrees: NDArray[np.int64], means: NDArray[np.float64], second: NDArray[np.float64]
) -> Moments:
    """Averages over all pairs, for products of n independent factors."""
    flat, flat_second = means.ravel(), second.ravel()
    seconds = np.array([np.mean(flat_second**n) for n in degrees])
    return moments_of(np.stack([flat**n for n in degrees]), seconds)
