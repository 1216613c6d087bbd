"""Random Maclaurin features (Kar and Karnick 2012)."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import clone

from kitchenette.files.registry import storable
from kitchenette.kernels import (
    Composition,
    DotProductKernel,
    Kernel,
    Polynomial,
    RadialKernel,
    ShiftInvariantKernel,
)
from kitchenette.maps.base import RowMap
from kitchenette.maps.compositions import (
    complex_moments,
    degree_moments,
    innermost,
    largest_innermost,
    largest_value,
    pair_moments,
    parts,
)
from kitchenette.maps.degrees import (
    Series,
    cut_series,
    draw_degrees,
    even_counts,
    geometric_probabilities,
    least_error_counts,
    optimal_counts,
    rows_of_pairs,
)
from kitchenette.maps.fastfood import Fastfood
from kitchenette.maps.fourier import FourierMap
from kitchenette.maps.kitchen_sinks import RandomKitchenSinks
from kitchenette.maps.protocol import fit_map, specification_of
from kitchenette.maps.registry import check_supported, register_map
from kitchenette.maps.series import SeriesMap, SeriesSpecification, check_range
from kitchenette.maps.tensor_sketch import TensorSketch
from kitchenette.parameters import check_choice
from kitchenette.sketching.combinations import ColumnProducts, concatenate
from kitchenette.sketching.dense import PANEL
from kitchenette.sketching.gaussian_products import GaussianProducts
from kitchenette.sketching.operators import Operator, affine
from kitchenette.sketching.products import (
    draw_complex_products,
    draw_hadamard_products,
    draw_rademacher_products,
    pair_order,
)
from kitchenette.sketching.random import Stream
from kitchenette.sketching.specification import PROBES, Cost, Specification
from kitchenette.sketching.structured import padded_block, whole_tiles

DRAW: dict[str, Any] = {
    "hadamard": draw_hadamard_products,
    "rademacher": draw_rademacher_products,
    "gaussian": GaussianProducts,
    "complex": draw_complex_products,
}
DEGREES = ("least_error", "optimal", "geometric")
PILOT_COLUMNS = 1024  # columns that estimate the second moment of a user's inner map


class ExactPart(NamedTuple):
    """Columns that represent the degrees 0 and 1 without error."""

    constant: float  # zero if no column is constant
    slope: float  # the factor of the row itself, or zero if the row is not included
    n_features: int


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class MaclaurinSpecification(SeriesSpecification):
    """Products of random projections, or of columns of other maps for a `Composition`."""

    projection: str = "hadamard"  # the parameters of `RandomMaclaurin`
    degrees: str = "optimal"
    base: float = 2.0
    h01: bool = False
    # For a Composition: one map for each factor of the features of the highest degree
    inner_maps: tuple[Specification, ...] = ()

    @property
    def function(self) -> DotProductKernel:
        return parts(self.kernel)[0]

    def largest_argument(self, rows: Any) -> float:
        return largest_value(parts(self.kernel)[1], largest_innermost(self.kernel, rows))

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        exact = self.exact_part()
        operators: list[Operator] = []
        if exact.n_features:
            operators.append(affine(self.n_columns, exact.constant, exact.slope, dtype))
        if exact.n_features < self.n_components:
            operators.append(self._draw_products(dtype))
        return concatenate(operators, self.n_columns)

    def _draw_products(self, dtype: np.dtype[Any]) -> Operator:
        if parts(self.kernel)[1] is None:
            return self.products(dtype).operator()
        degrees, weights = self.random_degrees()
        weights = weights * self.largest ** (-0.5 * degrees)
        # A column of an inner map times sqrt(n_components) is an unbiased estimate.
        gains = [float(np.sqrt(inner.n_components)) for inner in self.inner_maps]
        operators = [inner.operator(dtype) for inner in self.inner_maps]
        return ColumnProducts(weights.astype(dtype), degrees, operators, gains, self.n_columns)

    def products(self, dtype: DTypeLike = np.float64) -> Any:
        """The random projections of a dot-product kernel, whose products are the features."""
        degrees, weights = self.random_degrees()
        # Rows are scaled to norms around one by a power of two, which is exact.
        scale = float(2.0 ** -np.round(np.log2(self.largest) / 2))
        weights = weights * (self.largest**-0.5 / scale) ** degrees
        return DRAW[self.projection](
            degrees, weights, self.n_columns, self.seed, dtype, input_scale=scale
        )

    # ------------------------------------------------------------ degrees

    def exact_part(self) -> ExactPart:
        """The columns that represent the degrees 0 and 1 exactly; none unless ``h01``."""
        if not self.h01:
            return ExactPart(0.0, 0.0, 0)
        series = self.series
        constant, slope = np.sqrt([series.term(0), series.term(1) / series.largest]).tolist()
        return ExactPart(constant, slope, (constant > 0) + self.n_columns * (slope > 0))

    def random_part(self) -> tuple[Series, int]:
        """The series without its exact part, and the number of random features."""
        series = self.series.without((0, 1)) if self.h01 else self.series
        return series, self.n_components - self.exact_part().n_features

    def random_degrees(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Degrees and weights of the random features, for rows divided by the largest norm."""
        series, n_features = self.random_part()
        if series.degrees.size == 0 or n_features == 0:
            return np.zeros(n_features, dtype=np.int32), np.zeros(n_features)
        if self.degrees == "geometric":
            p = geometric_probabilities(series.degrees, self.base)
            picks = draw_degrees(p, n_features, self.seed)
            weights = np.exp(0.5 * (series.logs - np.log(n_features * p)))
        else:
            # Sorted by degree, so that features that are computed together have equal degrees.
            assert self.counts is not None
            assert self.expected is not None
            picks = np.repeat(np.arange(series.degrees.size), self.counts)[::-1]
            weights = np.sqrt(series.terms / self.expected)
        if self.projection == "complex":
            picks = picks[pair_order(series.degrees[picks])[0]]
        return series.degrees[picks].astype(np.int32), weights[picks]

    def feature_degrees(self) -> NDArray[np.int32]:
        """The degree of each feature, the exact ones first: the constant, then the row."""
        exact = self.exact_part()
        degrees = np.ones(exact.n_features, dtype=np.int32)
        degrees[: int(exact.constant > 0)] = 0
        return np.concatenate([degrees, self.random_degrees()[0]])

    # ------------------------------------------------------------ files of unknown origin

    def cost(self) -> Cost:
        n, d, last = self.n_components, self.n_columns, self.last_degree
        series, n_random = self.random_part()
        present = series.degrees
        if self.counts is None:
            p = geometric_probabilities(present, self.base) if present.size else np.ones(0)
            # Ten standard deviations above the mean: no seed that exceeds this can be found.
            n_factors = min(n_random * float(present @ p) + 10 * last * n_random**0.5, last * n)
        else:
            present = present[self.counts > 0]
            n_factors = float(series.degrees @ self.counts)
        n_bytes, n_operations = 64.0 * n, 1e5 + 300.0 * n + PROBES * (4 * n_factors + 4 * n)
        if parts(self.kernel)[1] is not None:
            return Cost(n_bytes + 16 * n_factors, n_operations + 4 * n_factors)
        if self.projection == "gaussian":
            numbers = (n_factors + PANEL * last) * d
            return Cost(n_bytes + 32 * numbers, n_operations + (100 + 5 * PROBES) * numbers)
        if self.projection == "rademacher":
            panels = n // PANEL + 1.0
            words = panels * last * d
            return Cost(
                n_bytes + 24 * words, n_operations + (30 + 24 * PROBES) * words + 6e4 * panels
            )
        # For each degree and factor, permutations of whole blocks are drawn; if features are
        # paired, for pairs and single features.
        block, permutations = padded_block(d), float(present.sum())
        tile = whole_tiles(1, block)
        if self.projection == "complex":
            permutations, tile = 2 * permutations, 3 * tile
        return Cost(
            n_bytes + last * (8.0 * n + 32 * tile),
            n_operations
            + 60 * (n_factors + block * permutations)
            + 10_000 * permutations
            + 24 * PROBES * last * tile,
        )

    def probe_scale(self) -> Any:
        if parts(self.kernel)[1] is not None:
            return self.inner_maps[0].probe_scale() if self.inner_maps else 1.0
        return 0.99 * self.largest**0.5

    def check(self) -> None:
        super().check()
        check_options(self.kernel, self.h01, self.projection, self.degrees, self.base)
        if not self.inner_maps:
            check_supported("RandomMaclaurin", self.kernel)
        self.check_series()
        series, n_random = self.random_part()
        check_room(self)
        if self.degrees != "geometric":
            self.check_counts(series, n_random)
        # The number of inner maps is checked when the operator is drawn.
        for inner in self.inner_maps:
            if not isinstance(inner, Specification) or inner.n_columns != self.n_columns:
                raise ValueError(f"inner maps must be made for {self.n_columns} columns.")


@storable
class RandomMaclaurin(SeriesMap):
    """Random features for any dot-product kernel, by products of random projections.

    The kernel is a power series a_0 + a_1 <x, y> + a_2 <x, y>^2 + ... A feature of degree n is
    a product of n projections of the row on independent random directions; the expectation of its
    product at two rows is <x, y>^n. The first choice for dot-product kernels with terms of low
    degree, such as polynomials with a constant and the exponential kernel.

    Parameters
    ----------
    kernel : DotProductKernel or Composition, default=Polynomial(degree=3)
        Polynomial, Exponential, VovkPolynomial, VovkInfinite, Maclaurin, or a Composition of
        one of these with an inner kernel: a shift-invariant one, one of this list, or any
        kernel that ``inner_map`` approximates.
    n_components : int, default=1024
        The number of features, any number.
    h01 : bool, default=False
        Represent the degrees 0 and 1 exactly, by a constant and the row itself, and the other
        degrees by the remaining features; n_components must exceed the number of columns. Useful
        with "geometric" degrees or dense projections if these degrees make up much of the kernel;
        "optimal" degrees with "hadamard" approximate the kernel as well without it.
    projection : {"hadamard", "complex", "rademacher", "gaussian"}, default="hadamard"
        How the directions are drawn. "hadamard": rows of randomly signed Hadamard matrices,
        whose products with a row are computed by fast transforms. "complex": the same with
        random fourth roots of unity instead of signs; the real and the imaginary part of a
        product are two features. Less error for degrees of two and more, in 1 to 2.7 times the
        time (the latter for more columns than features), but not for a Composition.
        "rademacher": independent signs, as in the paper; n_columns bits and n_columns additions
        per factor. "gaussian": n_columns independent normal numbers per factor. Its variance is
        invariant under rotations of the data. For degrees 2 to 4 it was 1.1 to 1.2 times that
        of signs on rows in random directions, and 2.5 to 4.6 times if one of 32 columns had
        half of the squared norm.
    degrees : {"least_error", "optimal", "geometric"}, default="least_error"
        How many features each degree gets. "least_error" minimizes the mean squared error of the
        kernel on a sample of the rows seen in fit, bias and variance: **it is biased**, because
        it leaves out the degrees above one that it chooses, see Notes. "optimal" is unbiased
        and minimizes the variance; for a high degree and few features it has hardly any of low
        degree. "geometric" draws the degree n of each feature with a probability proportional
        to base^-(n + 1), as in the paper; unbiased. On ten tables "least_error" had 0.67 times
        the error on test rows of "optimal" for degree 10, 0.90 times for degree 5, and 0.99 to
        1.00 times for lower ones and the exponential kernel.
    base : float, default=2.0
        Greater than one; for degrees="geometric", and inside a Composition.
    inner_map : transformer or None, default=None
        For a Composition f(k(x, y)): the map whose columns estimate the inner kernel k (the
        paper's W). It must have parameters ``n_components`` and ``random_state``, and **each of
        its columns alone must be an unbiased estimate**: the expectation of
        n_components z_j(x) z_j(y) is k(x, y) for every j. Cosines with random offsets satisfy
        this; cosines and sines in separate columns do not. It is cloned for each factor of the
        features, with ``n_components``, ``random_state`` and, for a map of this package,
        ``kernel`` set, and fitted on a sample of the rows. None stands for Fastfood or
        RandomKitchenSinks with features="offset", or RandomMaclaurin with degrees="geometric".
        Maps of other packages cannot be stored in model files.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with all its parameters chosen.
    seed_ : int
        The seed that was used; ``random_state=seed_`` draws the same map.
    degrees_ : ndarray of shape (n_components,)
        The degree of each feature; the exact columns of ``h01`` have degrees 0 and 1.
    truncation_ : float
        The share of the series at the longest row seen in fit that has no features. With
        "least_error" degrees the relative bias there; else at most 1e-7, and zero for a
        finite series of at most 500 terms.
    n_features_in_ : int
        The number of columns seen in fit.

    See Also
    --------
    TensorSketch : With ``tree``, more accurate for homogeneous polynomial kernels, and for those of
        high degree.
    Fastfood : Features for dot-product kernels from Gegenbauer polynomials on the sphere.

    Notes
    -----
    Expectation: with "optimal" and "geometric" degrees the kernel, with "least_error" the sum
    of its terms up to degree L = max(``degrees_``). The bias is minus the rest, the sum of a_n
    <x, y>^n over n > L. L minimizes the mean over pairs of rows of the square of that, plus the
    variance. With more features L grows, and the bias falls below the standard deviation. The
    constant term is always exact, so a row of zeros has the right kernel with all others, and
    so is degree one, if the padded columns are at most half of the features. A series that is
    infinite or has more than 500 terms is truncated with a relative error of at most 1e-7 at
    the largest norm seen in ``fit``. (If the features have no variance, as for one column, this
    error remains.) Longer rows, for which the truncation error exceeds 1e-4, cause a warning,
    unless degrees were left out on purpose.

    Variance: let m be the second moment of one factor at a pair of rows, the mean of
    <s, x>^2 <s, y>^2 over the directions s: m = |x|^2 |y|^2 + 2 (<x, y>^2 - sum of x_i^2 y_i^2) for
    signs, m = |x|^2 |y|^2 + 2 <x, y>^2 for normal numbers. One feature of degree n and weight one
    has the variance m^n - <x, y>^(2n). Let k(x, y) be the sum of a_n <x, y>^n. For "rademacher" and
    "gaussian" the variance is the sum of a_n^2 (m^n - <x, y>^(2n)) / c_n with "optimal" degrees and
    c_n features of degree n, and (the sum of a_n^2 m^n / P[N = n] - k(x, y)^2) / n_components with
    "geometric" degrees. (Those "optimal" degrees whose c_n would be below one share c features of
    random degree; together they have the second formula, with c in place of n_components.)
    "hadamard" has at most the variance of "rademacher": features sample coordinates of a
    transform without replacement, and given the signs the mean over all coordinates is exact.
    With blocks of d padded columns, m_1 = <x, y>^2 - (m - <x, y>^2) / (d - 1) is the mean
    product of a factor at two different coordinates. For c features of degree n of which R
    ordered pairs are in the same block, R = floor(c / d) d (d - 1) + r (r - 1) with r = c mod
    d, the bracket divided by c becomes

        [m^n - <x, y>^(2n)] / c + R [m_1^n - <x, y>^(2n)] / c^2.

    So d features of degree one have no variance, and "optimal" and "least_error" use no more
    than these if there are other degrees. "complex": with s the sum of x_i^2 y_i^2, m becomes
    two moments, |x|^2 |y|^2 + <x, y>^2 - s and 2 <x, y>^2 - s, and each power of m or m_1 above
    the mean of those of the two, for c / 2 pairs instead of c features.
    `kitchenette.bounds.variance` computes all of these. For a Composition, m is n_components
    times the second moment of one column of an inner map: 1 + k(2x, 2y) / 2 for a shift-
    invariant kernel.

    `python -m benchmarks.polynomial` prints errors and times of this map and of `TensorSketch`, and
    `python -m benchmarks.accuracy` those of all options.

    Cost for degree n: O(n n_columns log n_columns + n n_components) per row with
    "hadamard", O(n n_columns n_components) with "rademacher" and "gaussian".

    References
    ----------
    Kar and Karnick, Random feature maps for dot product kernels, AISTATS 2012.
    Hamid, Xiao, Gittens and DeCoste, Compact random feature maps, ICML 2014 (section 3.5).
    Ahle et al., Oblivious sketching of high-degree polynomial kernels, SODA 2020.
    Wacker, Kanagawa and Filippone, Improved random features for dot product kernels, 2022.

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

    specification_class = MaclaurinSpecification

    def __init__(
        self,
        kernel: Kernel = Polynomial(degree=3),
        n_components: int = 1024,
        *,
        h01: bool = False,
        projection: str = "hadamard",
        degrees: str = "least_error",
        base: float = 2.0,
        inner_map: Any = None,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.h01 = h01
        self.projection = projection
        self.degrees = degrees
        self.base = base
        self.inner_map = inner_map
        self.random_state = random_state

    def check_parameters(self) -> None:
        super().check_parameters()
        check_options(self.kernel, self.h01, self.projection, self.degrees, self.base)
        if self.inner_map is None:
            check_supported("RandomMaclaurin", self.kernel)
        else:
            check_inner_map(self.inner_map, self.kernel)

    @property
    def observes(self) -> bool:  # type: ignore[override]
        """Whether `fit` needs the largest k(x, x); for shift-invariant kernels it is one."""
        return not isinstance(innermost(self.kernel), ShiftInvariantKernel)

    def observe(self, rows: Any) -> float:
        """The largest k(x, x) of the innermost kernel, or |x|^2 for a dot-product kernel."""
        return largest_innermost(self.kernel, rows)

    def choose(
        self, sample: Any, seed: int, sample_weight: Any = None, observed: Any = None
    ) -> MaclaurinSpecification:
        kernel = self.resolved_kernel(sample, sample_weight)
        function, inner = parts(kernel)
        if observed is None:
            observed = self.observe(sample)
        series = cut_series(function, largest_value(inner, observed))
        check_range(kernel, series, sample.dtype)
        chosen = self.specified(
            sample,
            seed,
            kernel=kernel,
            last_degree=int(series.degrees[-1]),
            largest=float(series.largest),
            projection=self.projection,
            degrees=self.degrees,
            base=float(self.base),
            h01=bool(self.h01),
        )
        check_room(chosen)
        if self.degrees != "geometric":
            counts, expected = self._best_counts(chosen, inner, rows_of_pairs(sample, seed))
            present = chosen.random_part()[0].degrees
            if 0 < counts.size < present.size:  # degrees without features
                chosen = replace(chosen, last_degree=int(present[counts.size - 1]))
            chosen = replace(chosen, counts=counts, expected=expected)
        if inner is None:
            return chosen
        maps = self._factor_maps(chosen.random_degrees()[0], inner, sample, seed, observed)
        return replace(chosen, inner_maps=tuple(maps))

    def _best_counts(
        self, chosen: MaclaurinSpecification, inner: Kernel | None, rows: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Counts per degree that minimize the variance, or the error, and their expectations."""
        series, n_features = chosen.random_part()
        if series.degrees.size == 0 or n_features == 0:
            return np.zeros(series.degrees.size, dtype=np.int64), np.ones(series.degrees.size)
        if self.inner_map is None:
            gaussian = self.projection == "gaussian"
            means, second = pair_moments(inner, rows, self.base, gaussian)
        else:
            means, second = self._pilot_moments(inner, rows, chosen.seed)
        paired = None
        if self.projection == "complex":
            # The second moment for signs is |x|^2 |y|^2 + 2 (<x, y>^2 - the common part).
            norms = np.outer(np.diag(means), np.diag(means))
            common = means**2 - (second - norms) / 2
            scale = series.largest**2
            paired = complex_moments(means / series.largest, norms / scale, common / scale)
        with np.errstate(over="ignore", invalid="ignore"):
            moments = degree_moments(
                series.degrees, means / series.largest, second / series.largest**2, paired
            )
        if not np.isfinite(series.terms * moments.second_moment).all():
            raise ValueError(
                f"The variance of features of {chosen.kernel!r} overflows on these rows, so that "
                "no number of them would do. Use a kernel of a lower degree, or shorter rows."
            )
        exact_at = {}
        if inner is None and self.projection in ("hadamard", "complex"):
            # The features of degree one of a whole block are an orthogonal transform of the row,
            # which preserves inner products exactly.
            block = padded_block(rows.shape[1])
            exact_at = {int(term): block for term in np.flatnonzero(series.degrees == 1)}
        if self.degrees == "least_error":
            constant = 0 if series.degrees[0] == 0 else None
            counts, expected = least_error_counts(
                series.terms, moments, n_features, constant=constant, exact_at=exact_at
            )
        else:
            counts, expected = optimal_counts(
                series.terms, moments, n_features, chosen.seed, exact_at=exact_at
            )
        if paired is not None:
            # A single feature of a high degree would need transforms of its own.
            pairable = (series.degrees[: counts.size] > 1) & (counts == expected)
            counts = even_counts(counts, pairable)
            expected = np.where(pairable, counts, expected)
        return counts, expected

    # ------------------------------------------------------------ maps inside a composition

    def _factor_maps(
        self, degrees: NDArray[np.int32], inner: Kernel, sample: Any, seed: int, observed: Any
    ) -> Iterator[Specification]:
        """One inner map for each j, which gives factor j of all features of degree above j."""
        for j in range(int(degrees.max(initial=0))):
            inner_seed = int(Stream(seed, "inner maps").words(1, 1, first=j)[0, 0])
            n_components = int(np.count_nonzero(degrees > j))
            yield self._inner_specification(inner, n_components, inner_seed, sample, observed)

    def _inner_specification(
        self, inner: Kernel, n_components: int, seed: int, sample: Any, observed: Any
    ) -> Specification:
        """A map of which each column alone is an unbiased estimate of the inner kernel."""
        if self.inner_map is not None:
            made = clone(self.inner_map)
            if not isinstance(made, RowMap):
                # NumPy's RandomState, which scikit-learn uses, takes no larger seeds.
                made.set_params(n_components=n_components, random_state=seed % 2**32)
                return specification_of(fit_map(made, sample), sample)
            own = {"kernel": inner} if "kernel" in made.get_params(deep=False) else {}
            made.set_params(n_components=n_components, random_state=seed, **own)
            made.check_parameters()
            return made.choose(sample, seed, None, observed if made.observes else None)
        if isinstance(inner, RadialKernel):
            fastfood = Fastfood(inner, n_components, projection="hadamard", features="offset")
            return fastfood.choose(sample, seed)
        if isinstance(inner, ShiftInvariantKernel):
            sinks = RandomKitchenSinks(inner, n_components, features="offset")
            return sinks.choose(sample, seed)
        maclaurin = RandomMaclaurin(
            inner, n_components, projection=self.projection, degrees="geometric", base=self.base
        )
        return maclaurin.choose(sample, seed, None, observed)

    def _pilot_moments(
        self, inner: Any, rows: Any, seed: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """`pair_moments` for a user's inner map, with an estimated second moment."""
        pilot_seed = int(Stream(seed, "pilot of the inner map").words(1, 1)[0, 0])
        pilot = self._inner_specification(inner, PILOT_COLUMNS, pilot_seed, rows, None)
        if pilot.n_components != PILOT_COLUMNS:
            raise ValueError(
                f"inner_map must have as many features as its n_components; with {PILOT_COLUMNS} "
                f"it had {pilot.n_components}."
            )
        Z = np.empty((rows.shape[0], PILOT_COLUMNS), dtype=rows.dtype)
        pilot.operator(rows.dtype).write(rows, Z)
        squares = np.square(Z, dtype=np.float64)
        means = inner(rows).astype(np.float64)
        return means, np.maximum(PILOT_COLUMNS * squares @ squares.T, means**2)


def check_options(kernel: Kernel, h01: Any, projection: Any, degrees: Any, base: Any) -> None:
    """Refuse invalid options."""
    check_choice("projection", projection, tuple(DRAW))
    check_choice("degrees", degrees, DEGREES)
    if not isinstance(h01, bool | np.bool_):
        raise ValueError(f"h01 must be True or False; got {h01!r}.")
    if not isinstance(base, numbers.Real) or not 1 < float(base) < np.inf:
        raise ValueError(f"base must be a number greater than 1; got {base!r}.")
    if projection == "complex" and isinstance(kernel, Composition):
        raise ValueError(
            "projection='complex' needs a dot-product kernel, because every column inside a "
            f"composition must be an estimate by itself; got {kernel!r}."
        )
    if h01 and isinstance(kernel, Composition):
        raise ValueError(
            f"h01 needs a dot-product kernel, whose degree 1 is the row itself; got {kernel!r}."
        )


def check_room(chosen: MaclaurinSpecification) -> None:
    """Refuse h01 for kernels without these degrees, or with too few features for them."""
    if not chosen.h01:
        return
    exact, n_columns = chosen.exact_part(), chosen.n_columns
    if exact.n_features == 0:
        raise ValueError(
            f"h01 needs a kernel with terms of degree 0 or 1; {chosen.kernel!r} has none. "
            "Leave out h01."
        )
    n_terms = chosen.random_part()[0].degrees.size
    needed = max(exact.n_features + (n_terms > 0), n_columns + 1)
    if chosen.n_components < needed:
        raise ValueError(
            f"h01 with rows of {n_columns} columns needs n_components of at least {needed}; "
            f"got {chosen.n_components}."
        )


def check_inner_map(inner_map: Any, kernel: Kernel) -> None:
    """Refuse a map that cannot be the inner map of a composition."""
    if not isinstance(kernel, Composition):
        raise ValueError(f"inner_map is for a Composition; got it with {kernel!r}.")
    known = {}
    if hasattr(inner_map, "get_params") and not isinstance(inner_map, type):
        known = inner_map.get_params(deep=False)
    if not {"n_components", "random_state"} <= set(known):
        raise ValueError(
            "inner_map must be a transformer with parameters n_components and random_state, such "
            f"as RandomKitchenSinks(features='offset'); got {inner_map!r}."
        )
    advice = None
    if isinstance(inner_map, FourierMap):
        if not isinstance(kernel.inner, ShiftInvariantKernel):
            advice = "Use RandomMaclaurin(degrees='geometric')"
        elif inner_map.features == "sincos":
            advice = "Use features='offset'"
    if isinstance(inner_map, RandomMaclaurin) and (
        inner_map.degrees != "geometric" or inner_map.h01 or inner_map.projection == "complex"
    ):
        advice = "Use degrees='geometric' without h01, and another projection"
    if isinstance(inner_map, TensorSketch) and (
        inner_map.n_sketches != 1 or not isinstance(kernel.inner, Polynomial)
    ):
        advice = "Use it for a Polynomial kernel, with n_sketches=1"
    if advice is not None:
        raise ValueError(
            "every column of inner_map must be an estimate of the inner kernel by itself, which "
            f"those of {inner_map!r} are not for {kernel.inner!r}. {advice}."
        )


def _reason(kernel: Kernel) -> str | None:
    if isinstance(kernel, Composition):
        if isinstance(kernel.inner, ShiftInvariantKernel):
            return None
        if isinstance(kernel.inner, Composition | DotProductKernel):
            return _reason(kernel.inner)
        return (
            "has neither a shift-invariant nor a dot-product kernel inside (RandomMaclaurin needs "
            "an inner_map for it)"
        )
    return None if isinstance(kernel, DotProductKernel) else "is not a kernel of inner products"


register_map(
    RandomMaclaurin,
    supports=_reason,
    rank=0,
    options=lambda kernel: {} if isinstance(kernel, Composition) else {"projection": "complex"},
)
