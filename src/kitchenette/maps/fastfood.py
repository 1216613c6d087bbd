"""Fastfood: random features by fast transforms (Le, Sarlos and Smola 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms

from kitchenette import _core
from kitchenette.files.registry import storable
from kitchenette.kernels import (
    DotProductKernel,
    Gaussian,
    Kernel,
    RadialKernel,
    RadialSpectrum,
    SphericalPolynomial,
)
from kitchenette.maps.degrees import check_counts, rows_of_pairs
from kitchenette.maps.fourier import FourierMap, FourierSpecification
from kitchenette.maps.registry import check_supported, register_map
from kitchenette.maps.spherical import (
    check_terms,
    check_unit_rows,
    choose_counts,
    data_constant,
    needs_unit_rows,
    polynomial_cost,
    polynomial_features,
)
from kitchenette.parameters import check_choice
from kitchenette.sketching.operators import Operator
from kitchenette.sketching.random import Stream
from kitchenette.sketching.specification import PROBES, Cost
from kitchenette.sketching.structured import (
    HadamardProjection,
    StructuredProjection,
    draw_fastfood,
    draw_fourier,
    draw_orthogonal,
    padded_block,
    whole_tiles,
    zero_padded,
)

DRAW: dict[str, Any] = {
    "hadamard": draw_fastfood,
    "orthogonal": draw_orthogonal,
    "fourier": draw_fourier,
}


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class FastfoodSpecification(FourierSpecification):
    """Structured projections, followed by sines and cosines, local features or polynomials."""

    projection: str = "orthogonal"
    # For polynomials: the number of features of each degree, and its expectation
    counts: NDArray[np.int64] | None = None
    expected: NDArray[np.float64] | None = None
    # For "local" features: the t that minimizes their variance
    template_spread: float | None = None

    @property
    def polynomial(self) -> bool:
        """Whether features are polynomials of projections."""
        return isinstance(self.kernel, DotProductKernel | SphericalPolynomial)

    @property
    def n_frequencies(self) -> int:
        return self.n_components if self.polynomial else super().n_frequencies

    def frequencies(self) -> NDArray[Any]:
        return self.projections().matrix()

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        projection = self.projections().astype(dtype)
        n_padded = projection.scales.size
        if self.polynomial:
            assert self.counts is not None
            assert self.expected is not None
            assert isinstance(projection, HadamardProjection)
            polynomials = polynomial_features(
                self.kernel, self.counts, self.expected, projection.block, self.n_columns
            )
            nonlinearity = polynomials.nonlinearity(n_padded, dtype)
            return projection.operator(nonlinearity, self.n_components, polynomials.constant)
        if self.features == "local":
            terms = self.template_terms().astype(dtype, copy=False)
            return projection.operator(
                _core.Nonlinearity("local", terms=terms, row_weight=1.0), self.n_components
            )
        return projection.operator(self.nonlinearity(n_padded, dtype), self.n_components)

    # ------------------------------------------------------------ directions and lengths

    def directions(self) -> StructuredProjection:
        """The directions of the frequencies, unit vectors."""
        width = {"width": sphere(self.kernel, self.n_columns)} if self.polynomial else {}
        n = self.n_frequencies
        directions: StructuredProjection = DRAW[self.projection](
            n, self.n_columns, self.seed, self.precision, **width
        )
        return directions

    def lengths(self, directions: StructuredProjection) -> NDArray[np.float64]:
        """The lengths of the frequencies, for a length scale of one."""
        assert isinstance(self.kernel, RadialKernel)
        spectrum = self.kernel.spectrum()
        if not isinstance(spectrum, RadialSpectrum):
            raise ValueError(
                f"Fastfood needs a kernel whose spectrum is a RadialSpectrum; that of "
                f"{self.kernel!r} is {spectrum!r}. RandomKitchenSinks supports it."
            )
        n, n_columns = self.n_frequencies, self.n_columns
        padded = directions.block if isinstance(directions, HadamardProjection) else n_columns
        dimension = spectrum.dimension(n_columns, padded)
        uniforms = Stream(self.seed, "lengths").uniforms(n, spectrum.n_length_uniforms)
        with np.errstate(over="ignore", divide="ignore"):
            lengths = spectrum.lengths(uniforms, dimension)
            self.check_frequencies(float(lengths.max() * self.inverse_scale().max()))
        if dimension < padded:
            lengths = lengths / directions.row_lengths()
        return np.asarray(lengths)

    def projections(self) -> StructuredProjection:
        """The structured matrix: features are functions of its product with a row."""
        directions = self.directions()
        if self.polynomial:
            return directions
        lengths, inverse_scale = self.lengths(directions), self.inverse_scale()
        if self.features == "local":
            # <w, x> / sqrt(1 - t); see `template_terms`.
            assert self.template_spread is not None
            column_scales = np.broadcast_to(inverse_scale, self.n_columns)
            return directions.stretched(lengths / np.sqrt(1 - self.template_spread), column_scales)
        if inverse_scale.ndim == 0:
            return directions.stretched(lengths * inverse_scale)
        return directions.stretched(lengths, inverse_scale)

    def template_terms(self) -> NDArray[Any]:
        """Local features (Le et al., eqs. 24-27), with constants that make them unbiased.

        In units of the length scale, with w standard normal, z = w / sqrt(b), t = 2 / a and
        b = a^2 - 2 a (so that the kernel of eq. 25 has length scale one), eq. 26 becomes

            (1 - t)^(-m/4) exp(<w, x> / sqrt(1 - t) - t |w|^2 / (4 (1 - t)) - |x|^2)

        where m is the number of columns and the first factor normalizes the integral over z.
        The result is minus the terms of the exponent that depend on w alone.
        """
        directions = self.directions()
        t = self.template_spread
        assert t is not None
        squares = np.square(self.lengths(directions) * directions.row_lengths())
        terms = t / (4 * (1 - t)) * squares + self.n_columns / 4 * np.log1p(-t)
        terms += 0.5 * np.log(self.n_components)
        return zero_padded(terms, directions.scales.size, directions.scales.dtype)

    # ------------------------------------------------------------ files of unknown origin

    def cost(self) -> Cost:
        block = padded_block(self.n_columns + 1)
        padded = whole_tiles(self.n_components, block)
        numbers, operations = 24 * padded, 200.0 * padded
        if self.polynomial:
            assert self.counts is not None
            operations += polynomial_cost(self.kernel, self.n_components, PROBES)
            return Cost(8 * (numbers + 64 * self.counts.size), operations)
        assert isinstance(self.kernel, RadialKernel)
        spectrum = self.kernel.spectrum()
        assert isinstance(spectrum, RadialSpectrum)
        if self.features == "local" or spectrum.dimension(self.n_columns, block) < block:
            # `row_lengths` transforms an identity matrix.
            numbers += 2**18
            operations += 6 * self.n_columns * padded
        n_uniforms = spectrum.n_length_uniforms
        return Cost(8 * (numbers + 4 * padded * n_uniforms), operations + 300 * padded * n_uniforms)

    def check(self) -> None:
        super().check()
        check_options(self.kernel, self.projection, self.features)
        if self.polynomial:
            counts = check_counts(self.counts, self.expected, self.n_components)
            check_terms(self.kernel, counts.size)
        elif self.features == "local" and (
            self.template_spread is None or not 0 <= self.template_spread < 1
        ):
            raise ValueError(
                f"template_spread must be between 0 and 1; got {self.template_spread!r}."
            )


@storable
class Fastfood(FourierMap):
    """Random features in loglinear time, for any radial kernel and any dot-product kernel.

    Projections on random frequencies are computed by Walsh-Hadamard transforms and diagonal
    matrices instead of a dense matrix: O(n_components log n_columns) operations per row instead
    of O(n_components n_columns), and a few stored numbers per feature. The first choice for
    radial kernels from about a hundred columns on.

    Parameters
    ----------
    kernel : RadialKernel, DotProductKernel or SphericalPolynomial, default=Gaussian()
        Gaussian, Matern, RationalQuadratic or BesselMatern: cosines and sines of projections.
        Polynomial, and Exponential, VovkPolynomial and Maclaurin for rows of norm one:
        polynomials of the cosine between row and direction. SphericalPolynomial: powers of it.
    n_components : int, default=1024
        The number of features, any number.
    projection : {"orthogonal", "hadamard", "fourier"}, default="orthogonal"
        The structured matrix. In "orthogonal" the directions of a block of d are orthogonal, with
        d the number of padded columns: at most a third of the error of "hadamard" for rows within
        one length scale and d of 16 and more, at about the same cost. "hadamard" is the paper's
        V = S H G Pi H B / sqrt(d). "fourier" is the paper's Pi F B, without padding; it is *not*
        unbiased, see Notes.
    features : {"sincos", "offset", "local"}, default="sincos"
        Cosine and sine of each projection; the cosine of a randomly shifted one; or, for the
        Gaussian kernel, positive features that are large near a random template (section
        3.4 of the paper). "local" suits rows of small norm: its relative error grows
        exponentially with |x + y|^2. Dot-product kernels have polynomial features and need the
        default.
    template_spread : float or None, default=None
        For "local" features: the t of the Notes, between 0 and 1. None chooses it in ``fit``.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    kernel_ : RadialKernel
        The kernel with all its parameters chosen.
    seed_ : int
        The seed that was used; ``random_state=seed_`` draws the same map.
    projection_ : StructuredProjection
        The structured matrix: O(n_components) numbers, at least as many as padded columns.
    frequencies_ : ndarray of shape (n_frequencies_, n_features_in_)
        The frequencies as an explicit matrix, computed when asked for.
    n_frequencies_ : int
        The number of frequencies: half of n_components, rounded up, for "sincos".
    n_features_in_ : int
        The number of columns seen in fit.

    See Also
    --------
    RandomKitchenSinks : Dense frequencies, for all shift-invariant kernels.

    Notes
    -----
    d is the number of columns padded to a power of two. Each frequency is a direction that
    is uniform on the sphere, times an independent length from the kernel's spectrum: the
    chi distribution with d degrees of freedom for the Gaussian kernel, times a random
    scale for Matern and RationalQuadratic, and the length of a sum of points of the unit
    ball for BesselMatern. (Its directions are cut to the columns of the data and normalized
    again, because the projection of a uniform point of a ball is not uniform; this costs a
    transform of n_columns rows in ``fit``.)

    Expectation: the kernel, exactly, for "hadamard" and "orthogonal". For "fourier", where
    only signs are random, the expectation is the average over the rows f of the Fourier
    matrix of E cos(s <f, b * (x - y)>) over signs b and lengths s. It approaches the kernel
    as the largest share of one column in |x - y| falls; the bias is large if rows differ in
    one column only.

    Variance with D features, k = k(x - y), k2 = k(2 (x - y)) and v = |x - y| / length_scale:

    * for one frequency and "sincos" it is (1 + k2 - 2 k^2) / 2, as in `RandomKitchenSinks`;
    * "hadamard", for the Gaussian kernel: at most 3 (1 - exp(-v^2))^2 / D, three times that of
      independent frequencies (see `kitchenette.bounds.FastfoodError`, which sharpens Theorem 9 and
      Corollary 10 of the paper). The measured variance is 1.7 to 2.1 times that of independent
      frequencies for v up to 1 and d of 16 and more, 1.3 to 1.5 times for v = 2, and the same for
      v of 3 and more;
    * "orthogonal", for the Gaussian kernel: about (1 - exp(-v^2))^2 / D
      + 2 (d - 1) (M - exp(-v^2)) / D with Kummer's function M = 1F1(d; d / 2; -v^2 / 2), if
      D / 2 is a multiple of d. For small v that is
      3 v^4 / ((d + 2) D); for many columns it is (1 - exp(-v^2))^2 / D - v^4 exp(-v^2) / D
      (Yu et al. 2016). With fewer frequencies than d, their number replaces d in (d - 1);
    * "local": ((1 - t^2)^(-m/2) exp(2 |x+y|^2 / (1+t) - 2 |x|^2 - 2 |y|^2) - k^2) / D for m
      columns, rows divided by the length scale, and independent frequencies. The paper's
      parameters are a = 2 / t and b = a^2 - 2 a; ``fit`` chooses the t that minimizes this
      variance for the mean |x+y|^2 of a sample, unless ``template_spread`` gives t.

    Dot-product kernels (sections 3.3 and 4.5): with p_n the polynomials that are orthonormal for
    one coordinate of a uniform unit vector and L_n = p_n / p_n(1), features
    sqrt(lambda_n / count_n) p_n(<x, v>) estimate f(<x, y>) = sum of lambda_n L_n(<x, y>) on the
    unit sphere of d dimensions. The counts minimize the variance on a sample of the rows seen
    in ``fit``; the polynomials are computed by their three-term recurrence, which is stable. For
    Polynomial, sqrt(coef0 / gamma) is appended to the rows and |x|^degree factored out, which is
    exact for rows of any norm. Expectation: the kernel (Exponential is truncated with a relative
    error of 1e-7). Variance with independent directions, if no features are shared: the sum of
    lambda_n^2 (sum of q_nk^2 L_k(<x, y>) - L_n(<x, y>)^2) / count_n, with q_nk the mean of
    p_n^2 p_k. If there are too few features for all degrees, some degrees share c features, each
    of which has a random degree n with probability P_n; instead of their terms there is
    (sum of lambda_n^2 (sum of q_nk^2 L_k) / P_n - (sum of lambda_n L_n)^2) / c.

    Cost: O(max(n_components, d) log d) operations per row, and 13 bytes per frequency for float32.
    Blocks are computed whole, so there are at least d frequencies.

    References
    ----------
    Le, Sarlos and Smola, Fastfood: approximate kernel expansions in loglinear time, ICML 2013.
    Yu et al., Orthogonal random features, NIPS 2016.
    Likhosherstov et al., Chefs' random tables: non-trigonometric random features, NeurIPS 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood
    >>> from kitchenette.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(50, 200)) / 10
    >>> fastfood = Fastfood(Gaussian(1.0), n_components=4096, random_state=0)
    >>> Z = fastfood.fit_transform(X)
    >>> bool(abs(Z @ Z.T - Gaussian(1.0)(X)).max() < 0.1)
    True
    """

    feature_kinds = ("sincos", "offset", "local")
    specification_class = FastfoodSpecification

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        n_components: int = 1024,
        *,
        projection: str = "orthogonal",
        features: str = "sincos",
        template_spread: float | None = None,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.projection = projection
        self.features = features
        self.template_spread = template_spread
        self.random_state = random_state

    @property
    def projection_(self) -> StructuredProjection:
        """The structured matrix, drawn on access."""
        return self.fitted().projections()

    @property
    def template_spread_(self) -> float:
        """The t of local features."""
        return self.fitted().template_spread

    @property
    def template_terms_(self) -> NDArray[Any]:
        """The terms of the exponents of local features that do not depend on the row."""
        return self.fitted().template_terms()

    def check_parameters(self) -> None:
        super().check_parameters()
        check_options(self.kernel, self.projection, self.features)
        t = self.template_spread
        if t is None:
            return
        if self.features != "local" or not isinstance(t, float | int) or not 0 < t < 1:
            raise ValueError(
                "template_spread is a number between 0 and 1 for features='local', or None; got "
                f"{t!r} with features={self.features!r}."
            )

    def choose(
        self, sample: Any, seed: int, sample_weight: Any = None, observed: Any = None
    ) -> FastfoodSpecification:
        kernel = self.resolved_kernel(sample, sample_weight)
        n_columns, n = sample.shape[1], int(self.n_components)
        counts = expected = spread = None
        if isinstance(kernel, DotProductKernel | SphericalPolynomial):
            if needs_unit_rows(kernel):
                check_unit_rows(kernel, sample)
            block = padded_block(sphere(kernel, n_columns))
            counts, expected = choose_counts(kernel, n, block, rows_of_pairs(sample, seed), seed)
        elif self.features == "local":
            spread = self.template_spread
            spread = best_spread(kernel, sample) if spread is None else float(spread)
        return self.specified(
            sample,
            seed,
            kernel=kernel,
            features=self.features,
            projection=self.projection,
            counts=counts,
            expected=expected,
            template_spread=spread,
        )

    def has_row_checks(self) -> bool:
        return needs_unit_rows(self.fitted().kernel)

    def check_rows(self, rows: Any) -> None:
        if self.has_row_checks():
            check_unit_rows(self.fitted().kernel, rows)


def check_options(kernel: Kernel, projection: str, features: str) -> None:
    """Refuse options that cannot be combined."""
    check_choice("projection", projection, tuple(DRAW))
    check_supported("Fastfood", kernel)
    uniform = "needs directions that are uniform on the sphere, which projection='fourier' has not"
    if isinstance(kernel, DotProductKernel | SphericalPolynomial):
        if projection == "fourier":
            raise ValueError(f"A dot-product kernel {uniform}; use 'hadamard' or 'orthogonal'.")
        if features != "sincos":
            raise ValueError(
                f"features={features!r} is for radial kernels; leave 'sincos' for "
                f"{kernel!r}, whose features are polynomials."
            )
    if features != "local":
        return
    if not isinstance(kernel, Gaussian):
        raise ValueError(
            f"features='local' is made for the Gaussian kernel; got {kernel!r}. "
            "Use 'sincos' or 'offset'."
        )
    if projection == "fourier":
        raise ValueError(f"features='local' {uniform}; use 'hadamard' or 'orthogonal'.")


def sphere(kernel: Kernel, n_columns: int) -> int:
    """The number of columns with a constant appended, at least two."""
    return max(2, n_columns + (data_constant(kernel) > 0))


def best_spread(kernel: Any, sample: Any) -> float:
    """The t of local features that minimizes their variance on a sample."""
    m = sample.shape[1]
    inverse_scale = 1 / np.asarray(kernel.length_scale, dtype=np.float64)
    if sp.issparse(sample):
        scaled = sample.astype(np.float64).multiply(inverse_scale).tocsr()
    else:
        scaled = sample * inverse_scale
    mean = np.asarray(scaled.mean(axis=0)).ravel()
    mean_square = row_norms(scaled, squared=True).mean()
    # The mean of |x + y|^2 over independent rows x and y.
    S = 2 * (mean_square + mean @ mean)
    return float((np.sqrt((m + 2 * S) ** 2 + 8 * m * S) - (m + 2 * S)) / (2 * m))


def _reason(kernel: Kernel) -> str | None:
    if isinstance(kernel, RadialKernel | DotProductKernel | SphericalPolynomial):
        return None
    return "is not a kernel of the distance |x - y| or of the inner product <x, y>"


register_map(Fastfood, supports=_reason, rank=1)
