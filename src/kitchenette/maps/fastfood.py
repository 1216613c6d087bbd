"""Fastfood: random features by fast transforms (Le, Sarlos and Smola 2013)."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getattr_static
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from sklearn.utils.extmath import row_norms

from kitchenette import _core
from kitchenette._params import SharedName
from kitchenette.kernels import (
    DotProductKernel,
    Gaussian,
    Kernel,
    RadialKernel,
    ShiftInvariantKernel,
    SphericalPolynomial,
)
from kitchenette.maps._base import check_choice
from kitchenette.maps.degrees import check_counts
from kitchenette.maps.fourier import FourierFeatureMap
from kitchenette.maps.spectra import RadialSpectrum, spectrum_of
from kitchenette.maps.spherical import (
    PolynomialFeatures,
    check_terms,
    check_unit_rows,
    choose_counts,
    data_constant,
    needs_unit_rows,
    polynomial_features,
)
from kitchenette.sketching.random import Stream
from kitchenette.sketching.structured import (
    HadamardProjection,
    StructuredProjection,
    draw_fastfood,
    draw_fourier,
    draw_orthogonal,
    padded_block,
    whole_tiles,
)

PAIR_ROWS = 256  # whose pairs tell how large the variance of each degree is


class Fastfood(FourierFeatureMap):
    """Random features in loglinear time, for any radial kernel and any dot-product kernel.

    Projections on random frequencies are made by Walsh-Hadamard transforms and diagonal
    matrices instead of a dense matrix: O(n_components log n_columns) per row instead of
    O(n_components n_columns), and a map of a few numbers per feature. The first choice
    for radial kernels from about a hundred columns on.

    Parameters
    ----------
    kernel : RadialKernel, DotProductKernel or SphericalPolynomial, default=Gaussian()
        Gaussian, Matern, RationalQuadratic or BesselMatern: cosines and sines. Polynomial, and
        Exponential, VovkPolynomial and Maclaurin for rows of norm one: polynomials of the
        cosine between row and direction. SphericalPolynomial: plain powers.
    n_components : int, default=1024
        The number of features, any number.
    transform : {"hadamard", "orthogonal", "fourier"}, default="hadamard"
        How projections are made. "hadamard" is the paper's V = S H G Pi H B / sqrt(d).
        "orthogonal" makes them orthogonal inside a block of as many as there are (padded)
        columns: clearly less variance where rows are close, at about the same cost.
        "fourier" is the paper's Pi F B, without padding; it is *not* unbiased, see Notes.
    features : {"sincos", "offset", "local"}, default="sincos"
        Cosine and sine of each projection; the cosine of a randomly shifted one; or, for the
        Gaussian kernel, positive features that are large near a random template (section
        3.4 of the paper). "local" suits rows of small norm: its relative error grows
        exponentially with |x + y|^2. Dot-product kernels have features of their own; leave
        "sincos" then.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    kernel_ : RadialKernel
        The kernel with all its parameters chosen.
    seed_ : int
        The seed that was used; ``random_state=seed_`` draws the same map.
    projection_ : StructuredProjection
        The structured matrix: O(n_components) numbers, and not fewer than padded columns.
    frequencies_ : ndarray of shape (n_frequencies_, n_features_in_)
        The frequencies as an explicit matrix, computed when asked for.
    n_frequencies_ : int
        Their number: half of n_components, rounded up, for "sincos".
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
    ball for BesselMatern (whose directions are cut to the data's columns and made unit
    vectors again, because a ball does not survive padding; this costs a transform of
    n_columns rows in ``fit``).

    Expectation: the kernel, exactly, for "hadamard" and "orthogonal". For "fourier", where
    only signs are random, the expectation is the average over the rows f of the Fourier
    matrix of E cos(s <f, b * (x - y)>) over signs b and lengths s, which approaches the
    kernel as the largest share that one column has in |x - y| falls; it is far off if
    rows differ in one column only.

    Variance with D features, k = k(x - y), k2 = k(2 (x - y)) and v = |x - y| / length_scale:

    * one frequency has (1 + k2 - 2 k^2) / 2 with "sincos", as in `RandomKitchenSinks`;
    * "hadamard" adds correlations inside a block: at most C(v) / D for the Gaussian
      kernel, C(v) = 6 v^4 (exp(-v^2) + v^2 / 3) (the paper's Corollary 10);
    * "orthogonal" has less than independent frequencies for small v: about
      (1 - exp(-v^2))^2 / D - v^4 exp(-v^2) / D for the Gaussian kernel in many columns
      (Yu et al. 2016);
    * "local": D times it is (1 - t^2)^(-m/2) exp(2 |x+y|^2 / (1+t) - 2 |x|^2 - 2 |y|^2) - k^2
      for m columns and rows scaled by the length scale, for independent frequencies. The
      paper's ratio of a and b is chosen in ``fit`` so that this is least for the mean
      |x+y|^2 of a sample: a = 2 / t, b = a^2 - 2 a.

    Dot-product kernels (sections 3.3 and 4.5): with p_n the polynomials that are orthonormal for
    one coordinate of a uniform unit vector and L_n = p_n / p_n(1), features
    sqrt(lambda_n / count_n) p_n(<x, v>) estimate f(<x, y>) = sum of lambda_n L_n(<x, y>) on the
    unit sphere of d dimensions. The counts make the variance least on a sample of the rows seen
    in ``fit``; the polynomials come from their three-term recurrence, which is stable. For
    Polynomial, sqrt(coef0 / gamma) is appended to the rows and |x|^degree taken out, which is
    exact for rows of any norm. Expectation: the kernel (of Exponential, all but a share of 1e-7).
    Variance with independent directions: the sum of lambda_n^2 (sum of q_nk^2 L_k(<x, y>)
    - L_n(<x, y>)^2) / count_n, with q_nk the mean of p_n^2 p_k.

    Cost: O(max(n_components, d) log d) per row and 13 bytes per frequency for float32, of which
    there are at least d: blocks are computed whole.

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

    _feature_kinds = ("sincos", "offset", "local")
    _stored: ClassVar[dict[str, Any]] = {
        **FourierFeatureMap._stored,
        "_counts": np.ndarray,
        "_expected": np.ndarray,
        "template_spread_": float,
    }

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        n_components: int = 1024,
        *,
        transform: str = "hadamard",
        features: str = "sincos",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.transform = transform  # type: ignore[method-assign,assignment]
        self.features = features
        self.random_state = random_state

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not isinstance(getattr_static(cls, "transform"), SharedName):
            # A method that overrides the one here must not be hidden by the parameter either.
            cls.transform = SharedName("transform", cls.transform)  # type: ignore[method-assign,assignment]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("transform", self._transform_kind, tuple(_DRAW))
        kernel = self.kernel
        if isinstance(kernel, ShiftInvariantKernel) and not isinstance(kernel, RadialKernel):
            raise ValueError(
                f"Fastfood needs a kernel of the distance |x - y|, which {kernel!r} is not; "
                "RandomKitchenSinks serves it."
            )
        if isinstance(kernel, DotProductKernel | SphericalPolynomial):
            if self._transform_kind == "fourier":
                raise ValueError(
                    "Dot-product kernels need directions that are uniform on the sphere, which "
                    "transform='fourier' has not; use 'hadamard' or 'orthogonal'."
                )
            if self.features != "sincos":
                raise ValueError(
                    f"features={self.features!r} is for radial kernels; leave 'sincos' for "
                    f"{kernel!r}, whose features are polynomials."
                )
        if self.features != "local":
            return
        if not isinstance(kernel, Gaussian):
            raise ValueError(
                f"features='local' is made for the Gaussian kernel; got {kernel!r}. "
                "Use 'sincos' or 'offset'."
            )
        if self._transform_kind == "fourier":
            raise ValueError(
                "features='local' needs directions that are uniform on the sphere, which "
                "transform='fourier' has not; use 'hadamard' or 'orthogonal'."
            )

    @property
    def _transform_kind(self) -> str:
        # The attribute `transform` is the method.
        kind: str = vars(self)["transform"]
        return kind

    @property
    def _polynomial(self) -> bool:
        return isinstance(self.kernel_, DotProductKernel | SphericalPolynomial)

    def _choose(self, X: Any, sample: Any) -> None:
        super()._choose(X, sample)
        if self._polynomial:
            if needs_unit_rows(self.kernel_):
                check_unit_rows(self.kernel_, X)
            rows = sample[Stream(self.seed_, "pairs").sample(sample.shape[0], PAIR_ROWS)]
            block = padded_block(self._sphere(X.shape[1]))
            n = self._n_features_out
            self._counts, self._expected = choose_counts(self.kernel_, n, block, rows, self.seed_)
        elif self.features == "local":
            self.template_spread_ = self._best_spread(sample)

    def _sphere(self, n_columns: int) -> int:
        """The dimension of rows with a constant appended; there is no sphere in one dimension."""
        return max(2, n_columns + (data_constant(self.kernel_) > 0))

    def _best_spread(self, sample: Any) -> float:
        """The t of `_draw_templates` for which the variance is least on rows like the sample."""
        m = sample.shape[1]
        inverse_scale = 1 / np.asarray(self.kernel_.length_scale, dtype=np.float64)
        if sp.issparse(sample):
            scaled = sample.astype(np.float64).multiply(inverse_scale).tocsr()
        else:
            scaled = sample * inverse_scale
        mean = np.asarray(scaled.mean(axis=0)).ravel()
        mean_square = row_norms(scaled, squared=True).mean()
        # |x + y|^2 for independent rows.
        S = 2 * (mean_square + mean @ mean)
        return float((np.sqrt((m + 2 * S) ** 2 + 8 * m * S) - (m + 2 * S)) / (2 * m))

    def _draw(self, n_columns: int, dtype: DTypeLike) -> None:
        self._polynomials: PolynomialFeatures | None = None
        if self._polynomial:
            self._draw_polynomials(n_columns, dtype)
            return
        super()._draw(n_columns, dtype)
        spectrum = spectrum_of(self.kernel_)
        assert isinstance(spectrum, RadialSpectrum)
        n = self.n_frequencies_
        directions = _DRAW[self._transform_kind](n, n_columns, self.seed_, dtype)
        padded = directions.block if isinstance(directions, HadamardProjection) else n_columns
        dimension = spectrum.dimension(n_columns, padded)
        uniforms = Stream(self.seed_, "lengths").uniforms(n, spectrum.n_length_uniforms)
        with np.errstate(over="ignore", divide="ignore"):
            lengths = spectrum.lengths(uniforms, dimension)
            inverse_scale = 1 / np.asarray(self.kernel_.length_scale, dtype=np.float64)
            self._check_frequencies(float(lengths.max() * inverse_scale.max()), dtype)
        if dimension < padded:
            lengths = lengths / directions.row_lengths()
        if self.features == "local":
            self._draw_templates(directions, lengths, inverse_scale)
            return
        if inverse_scale.ndim == 0:
            self.projection_ = directions.stretched(lengths * inverse_scale)
        else:
            self.projection_ = directions.stretched(lengths, inverse_scale)
        self._draw_offsets(self.projection_.scales.size, dtype)

    def _draw_polynomials(self, n_columns: int, dtype: DTypeLike) -> None:
        """Directions on the sphere, and polynomials of the projections on them."""
        n = self.n_frequencies_ = self._n_features_out
        draw = _DRAW[self._transform_kind]
        self.projection_ = draw(n, n_columns, self.seed_, dtype, width=self._sphere(n_columns))
        self._polynomials = polynomial_features(
            self.kernel_, self._counts, self._expected, self.projection_.block, n_columns
        )

    def _draw_templates(
        self,
        directions: StructuredProjection,
        lengths: NDArray[Any],
        inverse_scale: NDArray[Any],
    ) -> None:
        """Local features (Le et al., eqs. 24-27), with constants that make them unbiased.

        In units of the length scale, with w standard normal, z = w / sqrt(b), t = 2 / a and
        b = a^2 - 2 a (so that the kernel of eq. 25 has length scale one), eq. 26 becomes

            (1 - t)^(-m/4) exp(<w, x> / sqrt(1 - t) - t |w|^2 / (4 (1 - t)) - |x|^2)

        where m is the number of columns and the first factor is what integrating out z
        leaves over.
        """
        m, t = directions.n_columns, self.template_spread_
        squares = np.square(lengths * directions.row_lengths())
        terms = np.zeros_like(directions.scales)
        terms[: self.n_frequencies_] = (
            t / (4 * (1 - t)) * squares + m / 4 * np.log1p(-t) + 0.5 * np.log(self._n_features_out)
        )
        self.template_terms_ = terms
        column_scales = np.broadcast_to(inverse_scale, m)
        self.projection_ = directions.stretched(lengths / np.sqrt(1 - t), column_scales)

    def _drawn_bytes(self, n_columns: int) -> int:
        block = padded_block(n_columns + 1)
        padded = whole_tiles(self.n_components, block)
        numbers = 24 * padded
        if self._polynomial:
            return 8 * (numbers + 64 * self._counts.size)
        spectrum = spectrum_of(self.kernel_)
        assert isinstance(spectrum, RadialSpectrum)
        if self.features == "local" or spectrum.dimension(n_columns, block) < block:
            # A unit matrix is transformed. That needs less memory than this, but takes time.
            numbers += 2**18 + n_columns * padded // 64
        return 8 * (numbers + 4 * padded * spectrum.n_length_uniforms)

    def _check_choices(self, n_columns: int) -> None:
        if self._polynomial:
            check_counts(self._counts, self._expected, self.n_components)
            check_terms(self.kernel_, self._counts.size)
        elif self.features == "local" and not 0 <= self.template_spread_ < 1:
            raise ValueError(
                f"template_spread_ must be between 0 and 1; got {self.template_spread_!r}."
            )

    def _frequency_matrix(self) -> NDArray[Any]:
        return self.projection_.matrix()

    def _write(self, X: Any, out: NDArray[Any]) -> bool:
        if self._polynomials is not None and needs_unit_rows(self.kernel_):
            check_unit_rows(self.kernel_, X)
        return bool(self._writer(X.dtype)(X, out))

    def _writer(self, dtype: DTypeLike) -> Callable[[NDArray[Any], NDArray[Any]], object]:
        projection = self.projection_.astype(dtype)
        if self._polynomials is not None:
            tail = self._polynomials.tail(projection.scales.size, dtype)
            constant = self._polynomials.constant
            assert isinstance(projection, HadamardProjection)
            return lambda X, out: projection.features(X, out, tail, constant)
        if self._feature_kind == "local":
            terms = self.template_terms_.astype(dtype, copy=False)
            tail = _core.Tail("local", terms=terms, row_weight=1.0)
        else:
            tail = self._fourier_tail(dtype)
        return lambda X, out: projection.features(X, out, tail)


_DRAW: dict[str, Any] = {
    "hadamard": draw_fastfood,
    "orthogonal": draw_orthogonal,
    "fourier": draw_fourier,
}

# `transform` is a parameter (the paper's word) and the method of every scikit-learn map.
Fastfood.transform = SharedName("transform", Fastfood.transform)  # type: ignore[method-assign,assignment]
