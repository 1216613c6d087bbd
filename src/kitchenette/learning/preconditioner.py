"""A preconditioner from a sample of the rows, as Falkon has it.

The matrix of the normal equations of n rows, A = C' V C + alpha I with centered features C and
weights V, is replaced by that of m of these rows, each of which counts as many times as its chance
of being drawn was small. Its inverse takes a Cholesky factor of order m or of
order D, whichever is smaller: with S the m scaled rows,

    (S' S + alpha I)^-1 = (I - S' (S S' + alpha I)^-1 S) / alpha.

If the sample has all rows, this is the exact inverse, and one step of an iterative solver suffices.
The matrix and its factors are stored; products with S compute the features of the m rows again.

Leverage scores choose a sample that misses no direction of the features. The leverage of a row of
centered features c and weight v is v c' (C' V C + lambda I)^-1 c, with the features C and weights V
of all rows: how much of a direction belongs to this row alone. Where some directions have few rows,
such as those of a rare category, a uniform sample hardly sees them. If rows are sampled with
probabilities proportional to their leverages instead, and weighted by the inverse, the
matrix of the sample is close to that of all rows in every direction (Rudi et al.). Rough scores
suffice, so they come from a few of the features, and from a first, even sample of the rows: a
direction that this one lacks has high scores.

References
----------
Rudi, Calandriello, Carratino and Rosasco, On fast leverage score sampling and optimal learning,
NeurIPS 2018.

Rudi, Carratino and Rosasco, FALKON: an optimal large scale kernel method, NeurIPS 2017.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

from kitchenette.data.rows import slices
from kitchenette.learning.gram import (
    FACTOR_RESOLUTION,
    LARGEST_FLOAT32,
    CholeskyFactor,
    PackedSymmetric,
)
from kitchenette.learning.losses import Loss
from kitchenette.learning.partial import StatisticsBuilder
from kitchenette.learning.passes import FeatureRows
from kitchenette.resources import SMALL_ORDER, one_blas_thread

Array = NDArray[np.float64]
# Rough scores suffice (docs/scale.md, `python -m benchmarks.scale --part steps`).
SCORE_FEATURES, SCORE_ROWS = 256, 4096  # and the rows of the first sample
PENALTY = 1e-6  # lambda, relative to the trace, above the rounding errors of float32 features
LEAST_TRACE = LEAST_SHARE = 1e-290  # smaller numbers have lost digits
EVEN = 0.1  # the uniform part of the probabilities, so that no row counts more than ten times
FEATURE_BYTES = 1 << 28  # the size of a block of features while the Gram matrix is computed
ROWS_PER_FEATURE = 2  # in the sample, if the matrix of the features is factored
LARGEST_ORDER = 4096  # of a matrix that is factored, in the time of a few steps
MANY_ROWS = 1 << 18  # from which a step costs so much that twice this order is worth its time
# If the matrix of the features is computed once, it may take as long as about eight steps, which it
# does with D^2 = KEPT_COST * n.
KEPT_ORDER, KEPT_COST = 16_384, 700
FLOAT64_ORDER = 8192  # larger matrices of features are in float32, to halve their memory
EXACT_ORDER = 1024  # up to which everything is computed in float64, which costs little
BLOCK_ROWS = 2048  # of features that are added to a matrix, which read it once
LEAST_ROWS, MOST_FEATURES = 64, 1 << 30  # of a sample, if there are very many features
ROUNDING = 1e-10  # the smallest penalty relative to the mean of the diagonal
ROUNDING_UNITS = 10  # the error of a centered feature, in units of the last place of the mean
SMALLEST = float(np.finfo(np.float32).tiny)
FLOAT32_SHIFT = 1e-6  # above this multiple of the trace, a factor in float32 suffices
TOO_LARGE = (
    "The features are too large for an iterative solver: the matrix of their products is not "
    "finite. Scale the data."
)


def leverage_scores(rows: FeatureRows, first: FeatureRows, mean: Array) -> Array | None:
    """Numbers that are roughly proportional to the leverages of rows of weight one.

    Takes one pass over the rows, after an even sample of them with their weights; the mean is
    subtracted from the features. None if the features of the sample do not vary, or if these
    numbers overflow.
    """
    count = min(SCORE_FEATURES, rows.n_features)
    which = np.sort(np.random.default_rng(0).choice(rows.n_features, count, replace=False))
    center, gram = mean[which], np.zeros((count, count))
    with np.errstate(over="ignore", invalid="ignore"), one_blas_thread(count):
        for part, Z in first.some_features(which):
            centered = Z - center
            gram += centered.T @ (first.weights[part, None] * centered)
        trace = float(np.einsum("ii->", gram))
    if not LEAST_TRACE < trace < np.inf:
        return None
    gram /= trace
    gram[np.diag_indices_from(gram)] += PENALTY
    with one_blas_thread(count):
        inverse_root = solve_triangular(cholesky(gram, lower=True), np.eye(count), lower=True)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = rows.squared_lengths(which, center, inverse_root / np.sqrt(trace))
        return scores if 0 < scores.sum() < np.inf else None


def probabilities(scores: Array, weights: Array, count: int) -> Array:
    """Probabilities of rows to be sampled, none above one, whose sum is ``count``.

    The scores are those of rows of weight one, the weights are positive, and there are more
    rows than ``count``.
    """
    weights = weights / weights.max()
    leverages = scores / scores.max() * weights
    shares = EVEN * weights / weights.sum() + (1 - EVEN) * leverages / (leverages.sum() or 1.0)
    shares = np.maximum(shares, LEAST_SHARE)
    certain = np.zeros(shares.size, dtype=bool)
    while True:
        factor = (count - np.count_nonzero(certain)) / shares[~certain].sum()
        more = factor * shares >= 1
        if not (more & ~certain).any():
            return np.where(certain, 1.0, factor * shares)
        certain |= more


def systematic_sample(probabilities: Array) -> NDArray[np.intp]:
    """Rows sampled with these probabilities, from rows in random order."""
    sums = np.cumsum(probabilities)
    return np.unique(np.searchsorted(sums, np.arange(0.5, sums[-1])))


def gram_of_rows(rows: FeatureRows, mean: Array, factors: Array, dtype: DTypeLike) -> NDArray[Any]:
    """Inner products of centered features, times factors of both rows, in some precision.

    It is computed in blocks; two of them are in memory at a time.
    """
    gram = np.empty((rows.n_rows, rows.n_rows), dtype=dtype)
    size = max(1, FEATURE_BYTES // (gram.itemsize * rows.n_features))
    blocks = list(slices(rows.n_rows, size))

    def scaled(part: slice) -> NDArray[Any]:
        Z = rows.some(np.arange(part.start, part.stop)).features().astype(dtype, copy=False)
        Z -= mean.astype(dtype)
        Z *= factors[part, None].astype(dtype)
        return Z

    for i, part in enumerate(blocks):
        left = scaled(part)
        gram[part, part] = left @ left.T
        for other in blocks[i + 1 :]:
            product = left @ scaled(other).T
            gram[part, other] = product
            gram[other, part] = product.T
    return gram


class SampledRows:
    """Rows of a sample, and the matrix of their scaled and centered features.

    Mean and total are the mean of the features and the weight of all rows. The rows, of which
    those of weight zero do not count, were sampled with these probabilities, by default equal
    ones.
    """

    def __init__(
        self, rows: FeatureRows, mean: Array, total: float, probabilities: Array | None = None
    ):
        self._rows = rows
        self._mean = mean
        self._total = total
        weights = rows.weights if probabilities is None else rows.weights / probabilities
        self._weights = weights / float(weights.sum()) * total
        self._factors = np.sqrt(self._weights)
        self.n_rows, self.n_features = rows.n_rows, rows.n_features
        self.by_features = self.n_features <= self.n_rows

    def matrix(self, curvatures: Array | None = None) -> NDArray[Any] | PackedSymmetric:
        """S' S, packed, if there are at least as many rows as features, and S S' if not.

        The weights of the rows are multiplied by ``curvatures``.
        """
        if self.by_features:
            return self._plain if curvatures is None else self._of_features(curvatures)
        if curvatures is None:
            return self._of_rows
        curvature_roots = np.sqrt(curvatures).astype(self._of_rows.dtype)
        return curvature_roots[:, None] * self._of_rows * curvature_roots

    @cached_property
    def unseen(self) -> float:
        """A typical eigenvalue of the matrix of all rows in directions that the sample lacks.

        It is the geometric mean of the eigenvalues of S S', which comes from the determinant. Were
        it not added to the penalty, the first steps would go far in these directions.
        """
        share = float(self._rows.weights.sum()) / self._total
        if self.by_features or share >= 1:
            return 0.0
        matrix = self._of_rows
        size = float(np.einsum("ii->i", matrix).mean())
        if not size > 0:
            return 0.0
        factor, shift = shifted_factor(matrix, FLOAT32_SHIFT * size, in_float32=False)
        typical = float(np.exp(factor.log_determinant() / len(matrix)))
        return (1 - share) * max(0.0, typical - shift)

    @cached_property
    def rounding(self) -> float:
        """The size of S' S if the features are constant, so that only rounding errors remain."""
        unit = float(np.finfo(self._rows.some(np.arange(1)).features().dtype).eps)
        return self._total * ROUNDING_UNITS**2 * unit**2 * float(self._mean @ self._mean)

    @cached_property
    def _plain(self) -> PackedSymmetric:
        return self._of_features(np.ones(self.n_rows))

    def _of_features(self, curvatures: Array) -> PackedSymmetric:
        """S' S; in float32 if it is large, unless numbers are huge."""
        if self.n_features > FLOAT64_ORDER:
            try:
                gram = self._gram_of_features(curvatures, "float32")
                if 1 / LARGEST_FLOAT32 < gram.diagonal().sum() < LARGEST_FLOAT32:
                    return gram
                del gram
            except ValueError:  # sums of squares overflow float32
                pass
        return self._gram_of_features(curvatures, "float64")

    def _gram_of_features(self, curvatures: Array, storage: str) -> PackedSymmetric:
        weights, nothing = self._weights * curvatures, np.zeros((self.n_rows, 1))
        builder = None
        for part in slices(self.n_rows, BLOCK_ROWS):
            Z = self._rows.some(np.arange(part.start, part.stop)).features()
            if builder is None:
                builder = StatisticsBuilder(self.n_features, 1, self.n_rows, Z.dtype, storage)
            builder.add(Z, nothing[part], weights[part])
        assert builder is not None
        inner_products = builder.finish()  # centered at the mean of these rows with these weights
        gram = inner_products.gram
        gram.add_outer(inner_products.feature_mean - self._mean, inner_products.count)
        return gram

    @cached_property
    def _of_rows(self) -> NDArray[Any]:
        """S S'; in float32, which suffices for a preconditioner, unless numbers are huge.

        The matrix of a few rows is computed in float64, which costs little and allows tiny
        penalties.
        """
        if self.n_rows > EXACT_ORDER:
            with np.errstate(over="ignore", invalid="ignore"):
                gram = gram_of_rows(self._rows, self._mean, self._factors, np.float32)
                finite = np.isfinite(gram.sum(dtype=np.float64))
            if finite:
                return gram
        return gram_of_rows(self._rows, self._mean, self._factors, np.float64)

    def mean(self, curvatures: Array) -> float:
        """The mean over all rows of what is known of these."""
        return float(np.average(curvatures, weights=self._weights))

    def curvatures(self, loss: Loss, coef: Array, intercept: Array) -> Array:
        """The curvatures of a loss for these rows in a model of centered features."""
        outputs = self._rows.outputs(coef, intercept - self._mean @ coef)
        targets = self._rows.targets if loss.of_labels else self._rows.columns()
        return loss.curvature(outputs, targets)

    def times(self, V: Array) -> Array:
        """S V."""
        return self._factors[:, None] * (self._rows.outputs(V) - self._mean @ V)

    def transposed(self, R: Array) -> Array:
        """S' R."""
        scaled = self._factors[:, None] * R
        return self._rows.transposed(scaled) - np.outer(self._mean, scaled.sum(axis=0))


class DenseFactor:
    """The Cholesky factor of a dense matrix plus a multiple of the identity."""

    def __init__(self, matrix: NDArray[Any], shift: float, dtype: DTypeLike):
        shifted: NDArray[Any] = np.array(matrix, dtype=dtype, order="F")
        shifted[np.diag_indices_from(shifted)] += shift
        self._factor, _ = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, V: Array) -> Array:
        V = np.asarray(V, dtype=self._factor.dtype)
        return cho_solve((self._factor, True), V, check_finite=False).astype(np.float64)

    def log_determinant(self) -> float:
        return 2 * float(np.log(np.einsum("ii->i", self._factor)).sum())


def shifted_factor(
    matrix: NDArray[Any] | PackedSymmetric, shift: float, *, in_float32: bool
) -> tuple[DenseFactor | CholeskyFactor, float]:
    """The Cholesky factor of a matrix plus a multiple of the identity, and this multiple.

    It is larger than the given one if rounding errors leave the matrix indefinite: a preconditioner
    becomes a little worse by that, never wrong.
    """
    stored = matrix.values.dtype if isinstance(matrix, PackedSymmetric) else np.float64
    dtype: Any = np.float32 if in_float32 else stored
    diagonal = matrix.diagonal().astype(np.float64)
    with one_blas_thread(diagonal.size):
        while np.isfinite(diagonal + shift).all():
            try:
                if isinstance(matrix, PackedSymmetric):
                    return matrix.shifted_factor(shift, dtype), shift
                return DenseFactor(matrix, shift, dtype), shift
            except LinAlgError:
                shift *= 10
    raise ValueError(TOO_LARGE)


class Preconditioner:
    """The inverse of S' C S + (alpha + unseen) I; C are factors of the rows, by default one."""

    def __init__(self, sample: SampledRows, alpha: float, curvatures: Array | None = None):
        self._sample = sample
        self._curvature_roots = np.sqrt(
            np.ones(sample.n_rows) if curvatures is None else curvatures
        )
        matrix = sample.matrix(curvatures)
        diagonal = matrix.diagonal().astype(np.float64)
        order, trace = diagonal.size, float(diagonal.sum())
        scale = 1.0 if curvatures is None else float(curvatures.mean())
        shift: float = max(
            alpha + scale * sample.unseen,
            ROUNDING * trace / order,
            scale * sample.rounding,
            SMALLEST,
        )
        if isinstance(matrix, PackedSymmetric) and matrix.is_float32:
            shift = max(shift, FACTOR_RESOLUTION * trace)
        in_float32 = order > EXACT_ORDER and shift > max(FLOAT32_SHIFT * trace, 1 / LARGEST_FLOAT32)
        in_float32 = in_float32 and shift + trace < LARGEST_FLOAT32
        self._factor, self.shift = shifted_factor(matrix, shift, in_float32=in_float32)

    def __call__(self, V: Array) -> Array:
        """The inverse times V, shape (n_features, n_columns)."""
        if self._sample.by_features:
            return self._solve(V)
        weights = self._curvature_roots[:, None]
        inner = weights * self._solve(weights * self._sample.times(V))
        return (V - self._sample.transposed(inner)) / self.shift

    def _solve(self, V: Array) -> Array:
        with one_blas_thread(SMALL_ORDER):
            return self._factor.solve(V)


def sample_size(n_rows: int, n_features: int, *, kept: bool) -> int:
    """How many rows a preconditioner takes.

    The matrix of the sample is kept for the squared loss. Others compute it for the curvature
    at several models.
    """
    order = LARGEST_ORDER if n_rows < MANY_ROWS else 2 * LARGEST_ORDER
    if kept and n_features <= min(KEPT_ORDER, np.sqrt(KEPT_COST * n_rows)):
        order = max(order, n_features)
    if n_features <= order:
        return min(n_rows, ROWS_PER_FEATURE * n_features)
    return min(n_rows, order, most_rows(n_features))


def preconditioner_bytes(n_rows: int, n_features: int, n_penalties: int, *, kept: bool) -> int:
    """The memory that preconditioners for some penalties take."""
    order = sample_size(n_rows, n_features, kept=kept)
    if n_features > order:
        return (4 + 8 * (1 + n_penalties)) * order * order
    stored = 8 if n_features <= FLOAT64_ORDER else 4
    return stored * (1 + n_penalties) * n_features * (n_features + 1) // 2


def most_rows(n_features: int) -> int:
    """How many rows may be multiplied with each other if there are very many features."""
    return max(LEAST_ROWS, MOST_FEATURES // n_features)
