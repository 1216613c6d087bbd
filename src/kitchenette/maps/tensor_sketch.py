"""Tensor Sketch: dot-product kernels by count sketches and Fourier transforms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

from kitchenette.files.registry import storable
from kitchenette.kernels import DotProductKernel, Exponential, Gaussian, Kernel, Polynomial
from kitchenette.maps.degrees import Moments, cut_series, moments_of, optimal_counts, rows_of_pairs
from kitchenette.maps.registry import check_supported, register_map
from kitchenette.maps.series import SeriesMap, SeriesSpecification, check_range
from kitchenette.parameters import check_choice, check_count
from kitchenette.sketching.combinations import (
    Constants,
    GaussianRowFactor,
    concatenate,
    largest_squared_norm,
    squared_norms,
)
from kitchenette.sketching.count_sketch import (
    draw_buckets,
    draw_signs,
    tensor_power_sketch,
    transform_plan,
)
from kitchenette.sketching.operators import Operator, affine
from kitchenette.sketching.random import Stream
from kitchenette.sketching.sketch_tree import (
    draw_tree,
    tree_moments,
    tree_of_sketches,
)
from kitchenette.sketching.specification import PROBES, Cost
from kitchenette.sketching.structured import padded_block

OUTPUTS = ("time", "frequency")
# The degree above which a tree has less error than complex products that take as much time: 4 to 8
# without a constant, 8 to 16 with one (`python -m benchmarks.polynomial --errors`).
FLAT = 8


class Share(NamedTuple):
    """The features of one degree."""

    degree: int
    size: int  # the number of features
    squared_weight: float  # the coefficient of this power in the series


class Sketch(NamedTuple):
    """One count sketch of a tensor power."""

    degree: int
    size: int
    seed: int
    column_scales: NDArray[np.float64]  # one per column, then one for the constant if any


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class TensorSketchSpecification(SeriesSpecification):
    """Count sketches of one tensor power for a Polynomial kernel, of several for others."""

    output: str = "time"  # the parameters of `TensorSketch`
    n_sketches: int = 1
    tree: bool = False

    @property
    def function(self) -> DotProductKernel:
        return function_of(self.kernel)

    def largest_argument(self, rows: Any) -> float:
        return _largest(rows, self.inverse_scales())

    def inverse_scales(self) -> NDArray[np.float64]:
        """One over the length scales of a Gaussian kernel; ones for other kernels."""
        scale = self.kernel.length_scale if isinstance(self.kernel, Gaussian) else 1.0
        return np.broadcast_to(1 / np.asarray(scale, dtype=np.float64), self.n_columns)

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        operators: list[Operator] = []
        for share in self.shares():
            if share.degree == 0:
                constant = float(np.sqrt(share.squared_weight / share.size))
                operators.append(
                    affine(self.n_columns, constant, 0.0, dtype)
                    if share.size == 1
                    else Constants(self.n_columns, share.size, constant, dtype)
                )
            operators.extend(self._drawn(sketch, dtype) for sketch in self._sketches(share))
        whole = concatenate(operators, self.n_columns)
        if isinstance(self.kernel, Gaussian):
            return GaussianRowFactor(whole, self.inverse_scales())
        return whole

    def _drawn(self, sketch: Sketch, dtype: np.dtype[Any]) -> Operator:
        frequency = self.output == "frequency"
        if self.tree:
            tree = draw_tree(sketch.degree, sketch.column_scales.size, sketch.size, sketch.seed)
            return tree_of_sketches(
                tree, sketch.column_scales, sketch.size, self.n_columns, dtype, frequency=frequency
            )
        buckets, signs = self.hash_functions(sketch)
        return tensor_power_sketch(
            buckets,
            signs * sketch.column_scales,
            sketch.size,
            self.n_columns,
            dtype,
            frequency=frequency,
        )

    def hash_functions(self, sketch: Sketch) -> tuple[Any, Any]:
        """The buckets and the signs, (degree, n_inputs), or lists for the nodes of a tree."""
        n_inputs = sketch.column_scales.size
        if self.tree:
            tree = draw_tree(sketch.degree, n_inputs, sketch.size, sketch.seed)
            return [hashes.buckets for hashes in tree], [hashes.signs for hashes in tree]
        return (
            draw_buckets(sketch.degree, n_inputs, sketch.size, sketch.seed),
            draw_signs(sketch.degree, n_inputs, sketch.seed),
        )

    # ------------------------------------------------------------ degrees and sizes

    def shares(self) -> list[Share]:
        """The features of each degree, in the order of their columns."""
        if isinstance(self.kernel, Polynomial):
            return [Share(self.last_degree, self.n_components, 1.0)]
        series = self.series
        assert self.counts is not None
        assert self.expected is not None
        # Weights use the expected counts: those of degrees that share features are random.
        weights = series.terms * self.counts / self.expected
        shares = zip(series.degrees.tolist(), self.counts.tolist(), weights.tolist(), strict=True)
        return [Share(*share) for share in shares if share[1] > 0]

    def sketches(self) -> list[Sketch]:
        """All count sketches, in the order of their columns."""
        return [sketch for share in self.shares() for sketch in self._sketches(share)]

    def _sketches(self, share: Share) -> Iterator[Sketch]:
        """The independent sketches whose mean estimates one power."""
        p = share.degree
        if p == 0:
            return
        t = min(self.n_sketches, share.size)
        if isinstance(self.kernel, Polynomial):
            scales = np.full(self.n_columns, np.sqrt(self.kernel.gamma))
            if self.kernel.coef0 > 0:
                scales = np.append(scales, np.sqrt(self.kernel.coef0))
            seeds = [self.seed, *Stream(self.seed, "sketches").words(1, t - 1)[0].tolist()]
        else:
            scales = self.inverse_scales() / np.sqrt(self.largest)
            seeds = Stream(self.seed, f"sketches of degree {p}").words(1, t)[0].tolist()
        if t > 1 or share.squared_weight != 1:
            scales = scales * (share.squared_weight / t) ** (0.5 / p)
        for i, seed in enumerate(seeds):
            yield Sketch(p, share.size // t + (i < share.size % t), seed, scales)

    def feature_degrees(self) -> NDArray[np.int32]:
        """The degree of each feature."""
        shares = self.shares()
        degrees = np.array([share.degree for share in shares], dtype=np.int32)
        return np.repeat(degrees, [share.size for share in shares])

    # ------------------------------------------------------------ files of unknown origin

    def cost(self) -> Cost:
        n_bytes = n_operations = 0
        for share in self.shares():
            t = min(self.n_sketches, share.size)
            of_one = self._cost_of_one(share.degree, -(-share.size // t))
            n_bytes, n_operations = n_bytes + t * of_one[0], n_operations + t * of_one[1]
        return Cost(n_bytes, n_operations)

    def _cost_of_one(self, degree: int, size: int) -> tuple[int, int]:
        """Bytes and operations for one sketch: hash functions, tables and the fingerprint."""
        inputs = degree * (self.n_columns + 1)
        if self.tree:
            return self._cost_of_tree(degree, size, inputs)
        length, with_chirps = transform_plan(size, degree, self.output == "frequency")
        transforms = (degree + 1) * (3 if with_chirps else 1) * length * length.bit_length()
        return (
            64 * inputs + 128 * (length + size) + 10_000,
            30 * inputs + 100 * (length + size) + PROBES * (2 * inputs + 2 * transforms) + 300_000,
        )

    def _cost_of_tree(self, degree: int, size: int, inputs: int) -> tuple[int, int]:
        length, with_chirps = transform_plan(size, 2, self.output == "frequency")
        width = padded_block(size)
        slots = inputs + 2 * degree * (width + size)
        transforms = 2 * degree * width * width.bit_length()
        transforms += 3 * (3 if with_chirps else 1) * length * length.bit_length()
        return (
            64 * slots + 128 * (length + width) + 10_000,
            100 * slots + 100 * (length + width) + PROBES * (2 * slots + 2 * transforms) + 300_000,
        )

    def probe_scale(self) -> Any:
        if isinstance(self.kernel, Polynomial):
            return 1.0
        return 0.99 * self.largest**0.5 / self.inverse_scales()

    def check(self) -> None:
        super().check()
        check_supported("TensorSketch", self.kernel)
        check_options(self.n_components, self.output, self.n_sketches, self.tree)
        if isinstance(self.kernel, Polynomial):
            if self.last_degree != self.kernel.degree:
                raise ValueError("last_degree must be the degree of the kernel.")
            check_room(self.n_components, self.n_sketches)
        else:
            self.check_series()
            self.check_counts(self.series, self.n_components)


@storable
class TensorSketch(SeriesMap):
    """Count sketches of tensor powers, for polynomial kernels and series of them.

    A row's features are a count sketch of its tensor power, which is never formed. Choose
    it for homogeneous polynomial kernels (``coef0=0``) of degree 3 and more, and for sparse data:
    the cost of a row grows with its number of nonzeros, not with the number of columns.

    Parameters
    ----------
    kernel : DotProductKernel or Gaussian, default=Polynomial(degree=2)
        Polynomial: one sketch, of the power of rows with a constant appended. Exponential,
        VovkPolynomial, VovkInfinite and Maclaurin: one sketch for each degree of the series,
        with sizes that minimize the variance on a sample of the rows seen in fit. Gaussian:
        sketches of exp(<x, y>) for rows divided by the length scale, multiplied by
        exp(-|x|^2 / 2); accurate for norms of a few length scales at most, so center the data.
    n_components : int, default=1024
        The number of features, any number. For one sketch powers of two are fastest: others
        cost two to six times as much, with a factor that grows with the degree.
    output : {"time", "frequency"}, default="time"
        "time" gives the sketch itself. "frequency" gives its real orthogonal Fourier
        transform, which has the same inner products and costs one transform less, but is
        dense where the sketch is sparse.
    n_sketches : int, default=1
        Average this many independent, shorter sketches instead of using one (Lemma 9 of the
        paper): the transforms are shorter; the variance is the same or larger, see Notes. Limited
        to the number of features of a sketch.
    tree : bool, default=False
        Sketch a power by a binary tree of sketches of degree two (Ahle et al.), whose error grows
        linearly with the degree and not exponentially. It has less error for degrees of two and
        more, in 1 to 2.7 times the time; for degrees of four and more by far.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with all its parameters chosen.
    seed_ : int
        The seed that was used; ``random_state=seed_`` draws the same map.
    buckets_ : ndarray of int32, shape (degree, n_inputs), or a list of them
        The hash functions: the bucket of each input in each count sketch. The inputs are the
        columns and, if ``coef0`` of a Polynomial is not zero, the constant. A list if there
        are several sketches, in the order of their features. With ``tree`` a sketch has a
        list of arrays, two for each node, children before parents.
    signs_ : ndarray of int8, shape (degree, n_inputs), or a list of them
        The sign of each input in each count sketch.
    degrees_ : ndarray of shape (n_components,)
        The degree of each feature. Degree 0 is a constant column.
    truncation_ : float
        The relative truncation error of the series at the longest row seen in fit: at most
        1e-7, and zero for a finite series of at most 500 terms.
    n_features_in_ : int
        The number of columns seen in fit.

    See Also
    --------
    RandomMaclaurin : More accurate where terms of low degree matter, such as with a constant.
    Fastfood : More accurate for the Gaussian kernel, on rows of any norm.

    Notes
    -----
    Write x and y for the rows scaled by sqrt(gamma) with sqrt(coef0) appended, so that the
    kernel is <x, y>^p, p being the degree. The j-th count sketch of x has the entries
    C_j x[b] = sum of s_j(i) x_i over the columns i with h_j(i) = b, for independent uniform
    buckets h_j and signs s_j. Their cyclic convolution is the count sketch of the p-th
    tensor power of x whose hash is h_1(i_1) + ... + h_p(i_p) modulo D, the number of
    features, and whose sign is the product of the signs.

    The inner product of two rows' features has the kernel as its expectation. With
    a = <x, y>^2, b = |x|^2 |y|^2 - s and c = <x, y>^2 - s, where s is the sum of
    x_i^2 y_i^2, its variance is

        [(a + b)^p + (a + c)^p - 2 a^p] / D
        + q [(a + b + c)^p - (a + b)^p - (a + c)^p + a^p] / D^2

    with q = 1 for odd D and q = 2 for even D, for both outputs. For p = 1 it is the variance of
    a count sketch. With m = |x|^2 |y|^2 the first bracket is at most 2 (2 m)^p and the second
    at most (3 m)^p, so the second term matters only if D is not well above (3/2)^p. (The bound
    m^p + <x, y>^2p on the first bracket in the paper's Lemma 6 does not hold: it assumes that all
    tuples of columns are hashed independently, but tuples that share a column are not.)

    The mean of t sketches of D / t features has the first term, and t times the second term. For
    256 features of degrees 2, 3 and 4 at unit rows with <x, y> = 0.5, 8 sketches had 1.03 to 1.08
    times the variance of one, and 64 sketches 1.15 to 1.39 times.

    A series, the sum of a_n <x, y>^n, is estimated by a sketch of D_n features for each n > 0, and
    a constant: its variance is the sum over n of a_n^2 times the formula with p = n and D = D_n,
    without a constant appended. (Degrees whose optimal D_n is below one share features at random,
    as in `RandomMaclaurin`.) For the Gaussian kernel multiply it by exp(-|x|^2 - |y|^2). An
    infinite series is truncated as in `RandomMaclaurin`, whose Notes compare the accuracy of the
    two maps. A Polynomial with a constant has less variance as a `Maclaurin` kernel: the error on
    the digits is 0.13 instead of 0.27 for degree 7, and 0.044 instead of 0.068 for degree 3.

    With ``tree``, a node sketches the tensor product u (x) v of the sketches u and v of two
    halves of the power, of W numbers each, the next power of two of D; both are permuted and
    signed at random, and convolved. The row itself is hashed to different buckets, if there are
    enough of them. For two rows let t_u = <u(x), u(y)>, n_u = |u(x)|^2 |u(y)|^2 and s_u the sum
    of u_i(x)^2 u_i(y)^2, and b_u = n_u - s_u, c_u = t_u^2 - s_u. Only pairs of coordinates that
    differ in both halves collide, so that the variance of a node for given halves is

        [b_u b_v + c_u c_v] / (W - 1) + [b_u c_v + c_u b_v] / (W - 1)^2,

    without the second term for odd W. For degree two this is exact. For higher degrees s_u = 0
    gives an upper bound, which is too large by a share of about 1 / W, with the means of t_u^2
    and n_u by the same recursion (`kitchenette.sketching.sketch_tree.tree_moments`): for equal
    unit rows 2 (p - 1) / D up to terms of higher order in p / D, where one sketch without a
    tree has (2^(p+1) - 2) / D. `kitchenette.bounds.SketchTreeRelativeError` has the number of
    features for an error.

    Unlike with the other maps, the first features of a larger map are not those of a smaller one,
    because every feature depends on D.

    Cost: O(degree (n_stored + D log d) + D log D) per row and sketch, where n_stored is the number
    of stored entries of the row, and d that of the columns, if fewer than D: the transforms of the
    factors skip levels in which most numbers would be zero. With ``tree`` O(degree (n_stored + D
    log D)). Memory: degree times n_inputs buckets and signs, with ``tree`` 2 D more for each
    degree.

    References
    ----------
    Pham and Pagh, Fast and scalable polynomial kernels via explicit feature maps, KDD 2013.
    Ahle et al., Oblivious sketching of high-degree polynomial kernels, SODA 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import TensorSketch
    >>> from kitchenette.kernels import Polynomial
    >>> X = np.random.default_rng(0).normal(size=(100, 30)) / np.sqrt(30)
    >>> kernel = Polynomial(degree=3, coef0=0.5)
    >>> Z = TensorSketch(kernel, n_components=8192, random_state=0).fit_transform(X)
    >>> bool(abs(Z @ Z.T - kernel(X)).mean() < 0.05)
    True
    """

    specification_class = TensorSketchSpecification
    overflow_advice = "Scale the data down, or lower the kernel's gamma or degree."

    def __init__(
        self,
        kernel: Kernel = Polynomial(degree=2),
        n_components: int = 1024,
        *,
        output: str = "time",
        n_sketches: int = 1,
        tree: bool = False,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.output = output
        self.n_sketches = n_sketches
        self.tree = tree
        self.random_state = random_state

    def check_parameters(self) -> None:
        super().check_parameters()
        check_options(self.n_components, self.output, self.n_sketches, self.tree)
        check_supported("TensorSketch", self.kernel)
        if isinstance(self.kernel, Polynomial):
            check_room(self.n_components, self.n_sketches)

    @property
    def buckets_(self) -> Any:
        """The hash functions: an array for one sketch, a list of arrays for several."""
        return self._hash_functions(0)

    @property
    def signs_(self) -> Any:
        """The signs: an array for one sketch, a list of arrays for several."""
        return self._hash_functions(1)

    def _hash_functions(self, which: int) -> Any:
        specification = self.fitted()
        found = [specification.hash_functions(sketch)[which] for sketch in specification.sketches()]
        return found[0] if len(found) == 1 else found

    @property
    def observes(self) -> bool:  # type: ignore[override]
        """Whether `fit` needs the largest norm of all rows: for all kernels but Polynomial."""
        return not isinstance(self.kernel, Polynomial)

    def observe(self, rows: Any) -> float:
        """The largest |x|^2; if a Gaussian has several length scales, of the scaled rows."""
        scale = getattr(self.kernel, "length_scale", 1.0)
        single = isinstance(scale, str) or np.ndim(scale) == 0
        inverse = 1.0 if single else 1 / np.asarray(scale, dtype=np.float64)
        return _largest(rows, np.broadcast_to(inverse, rows.shape[1]))

    def choose(
        self, sample: Any, seed: int, sample_weight: Any = None, observed: Any = None
    ) -> TensorSketchSpecification:
        kernel = self.resolved_kernel(sample, sample_weight)
        options = {
            "kernel": kernel,
            "output": self.output,
            "n_sketches": int(self.n_sketches),
            "tree": bool(self.tree),
        }
        if isinstance(kernel, Polynomial):
            last = int(kernel.degree)
            return self.specified(sample, seed, last_degree=last, largest=1.0, **options)
        scale = np.asarray(getattr(kernel, "length_scale", 1.0), dtype=np.float64)
        largest = self.observe(sample) if observed is None else observed
        if scale.ndim == 0:
            largest = largest / float(scale) ** 2
        series = cut_series(function_of(kernel), largest)
        check_range(kernel, series, sample.dtype)
        rows = rows_of_pairs(sample, seed)
        gaussian = isinstance(kernel, Gaussian)
        size = int(self.n_components) if self.tree else None
        moments = _moments(series.degrees, rows, scale, series.largest, gaussian, size)
        exact_at = {}
        if self.tree and self.n_sketches == 1:
            # One bucket for each column makes the sketch of degree one exact.
            exact_at = {int(term): sample.shape[1] for term in np.flatnonzero(series.degrees == 1)}
        counts, expected = optimal_counts(
            series.terms, moments, int(self.n_components), seed, exact_at=exact_at
        )
        return self.specified(
            sample,
            seed,
            last_degree=int(series.degrees[-1]),
            largest=float(series.largest),
            counts=counts,
            expected=expected,
            **options,
        )


def _largest(rows: Any, column_scales: NDArray[np.float64]) -> float:
    """The largest |x|^2 of rows with scaled columns."""
    if (column_scales == 1).all():
        return largest_squared_norm(rows)
    return float(squared_norms(rows, column_scales).max(initial=0.0))


def function_of(kernel: Kernel) -> DotProductKernel:
    """The kernel whose series is expanded; exp(<x, y>) of scaled rows for a Gaussian."""
    if isinstance(kernel, Gaussian):
        return Exponential()
    assert isinstance(kernel, DotProductKernel)
    return kernel


def check_options(n_components: Any, output: Any, n_sketches: Any, tree: Any) -> None:
    """Refuse invalid options."""
    if not isinstance(tree, bool | np.bool_):
        raise ValueError(f"tree must be True or False; got {tree!r}.")
    check_choice("output", output, OUTPUTS)
    check_count("n_sketches", n_sketches)
    if n_components >= 2**31:
        raise ValueError(
            f"n_components must be less than 2**31 for TensorSketch; got {n_components}."
        )


def check_room(n_components: int, n_sketches: int) -> None:
    """Refuse more sketches than there are features."""
    if n_sketches > n_components:
        raise ValueError(
            f"n_sketches must be at most n_components, which is {n_components}; got {n_sketches}."
        )


def _moments(
    degrees: NDArray[np.int64],
    rows: Any,
    scale: Any,
    largest: float,
    gaussian: bool,
    tree_size: int | None,
) -> Moments:
    """Moments of a sketch with one bucket at all pairs of rows scaled to norms of at most one.

    The variance is the term of order 1 / D only. That of a tree is D times the variance for the
    number ``tree_size`` of all features.
    """
    rows = rows.astype(np.float64)
    rows = sp.csr_array(rows.multiply(1 / scale)) if sp.issparse(rows) else rows / scale
    squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
    dots = safe_sparse_dot(rows, rows.T, dense_output=True)
    common = safe_sparse_dot(squares, squares.T, dense_output=True)
    norms = np.diag(dots)
    factors = np.exp(-0.5 * (norms[:, None] + norms)) if gaussian else np.ones_like(dots)
    dots, common = dots / largest, common / largest**2
    products = np.outer(norms, norms) / largest**2
    a, b = dots**2, products - common
    c = a - common

    def variance(n: int) -> Any:
        if tree_size is None or n == 0:
            return (a + b) ** n + (a + c) ** n - 2 * a**n
        if n == 1:  # also of fewer features than columns
            return b + c
        moments = tree_moments(n, tree_size, rows.shape[1], dots, products, common)
        return tree_size * (moments.dot - a**n)

    means = np.stack([(factors * dots**n).ravel() for n in degrees])
    variances = [np.mean(factors**2 * variance(n)) for n in degrees.tolist()]
    return moments_of(means, np.maximum(variances, 0.0) + np.mean(means**2, axis=1))


register_map(
    TensorSketch,
    supports=lambda kernel: (
        None
        if isinstance(kernel, DotProductKernel | Gaussian)
        else "is neither a kernel of inner products nor Gaussian"
    ),
    rank=lambda kernel: -1 if isinstance(kernel, Polynomial) and kernel.degree > FLAT else 3,
    options=lambda kernel: {"tree": True},
)
