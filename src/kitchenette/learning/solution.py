"""The solution of a regularized least-squares problem and its uncertainty.

Iterative refinement: a Cholesky factor in float32 of A = G + alpha I has the rounding errors of
float32, about six digits less than the statistics say of the weights if A is ill-conditioned. But
it is an excellent preconditioner: a few steps of conjugate gradients, whose products with A are
computed in float64, find the solution that belongs to the stored statistics.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from kitchenette.learning.gram import (
    Array,
    CholeskyFactor,
    ConjugateGradients,
    PackedSymmetric,
)
from kitchenette.resources import one_blas_thread
from kitchenette.sketching.rows import blocks_of_rows

# Pivots of a float32 factor below this part of the diagonal are rounding errors.
FLOAT32_PIVOT = 10 * float(np.finfo(np.float32).eps)
# The variances of a block of rows read the whole factor once, which may exceed all caches.
VARIANCE_ROWS, VARIANCE_NUMBERS = 256, 1 << 17  # at least so many rows, or so many features
LEAST_PENALTY = 1e-9  # part of the trace; all penalties that are tried are larger
DECADES = 6  # by which alpha may be raised before a matrix counts as indefinite
EXACT = 1e-9  # the norm of a residual, relative to that of the right-hand side
POOR = 1e-4  # a larger one is worth a warning, as predictions show it
STEPS = 30  # far more than the few that are needed unless alpha is too small


@dataclass(frozen=True)
class NormalEquations:
    """(G + alpha I) w = b, with the counts and sums of squares of the data.

    G, b and the targets are centered if there is an intercept.
    """

    gram: PackedSymmetric
    cross: Array
    target_squares: Array
    feature_mean: Array
    target_mean: Array
    count: float  # the sum of the weights
    n_observations: float  # how many observations the weighted rows stand for
    fit_intercept: bool
    resolution: float  # eigenvalues of G below this part of its trace are rounding errors

    @property
    def degrees_of_freedom(self) -> float:
        """The number of observations, less one with an intercept."""
        return self.n_observations - self.fit_intercept

    @property
    def weight_scale(self) -> float:
        """The factor that brings the weights to a mean of one."""
        return self.n_observations / self.count

    @property
    def cutoff(self) -> float:
        """The part of the trace below which G counts as singular: ten times the resolution."""
        return 10 * self.resolution

    @property
    def rss_floor(self) -> Array:
        """The rounding error of rss, below which differences of rss are meaningless."""
        return self.resolution * self.target_squares

    @cached_property
    def trace(self) -> float:
        return float(self.gram.diagonal().sum())

    def leading(self, order: int) -> Self:
        """The equations of the first features alone."""
        return replace(
            self,
            gram=self.gram.leading(order),
            cross=self.cross[:order],
            feature_mean=self.feature_mean[:order],
        )

    def normalized(self) -> Self:
        """The same problem with features and targets scaled to a size of about one."""
        root, size = np.sqrt(self.trace), np.sqrt(float(self.target_squares.max()))
        return replace(
            self,
            gram=type(self.gram)(self.gram.order, self.gram.values / self.trace),
            cross=self.cross / root / size,
            target_squares=self.target_squares / size / size,
            feature_mean=self.feature_mean / root,
            target_mean=self.target_mean / size,
        )

    @property
    def least_penalty(self) -> float:
        """The penalty below which rounding errors of G decide, as they do without a penalty.

        It is half the least one that is chosen (`PenaltyPath.bounds`), whatever its rounding.
        With float32 features, whose own rounding errors are larger than those of G, smaller ones
        have a Cholesky factor too.
        """
        return min(0.5 * self.resolution, LEAST_PENALTY) * self.trace


class ShiftedCholesky:
    """(G + alpha I)^-1 by a Cholesky factor, in the precision of G unless another one is given."""

    weights: Array | None = None  # the solution for the targets, once computed
    _again: NormalEquations | None = None  # from which a factor that was dropped is computed again

    def __init__(self, equations: NormalEquations, alpha: float, dtype: DTypeLike | None = None):
        self.alpha = alpha
        self.order = equations.gram.order
        own = equations.gram.values.dtype
        self.dtype = own if dtype is None else np.dtype(dtype)
        self.is_rough = self.dtype != own  # whether the factor is less exact than G
        self._factor: CholeskyFactor | None = self._factored(equations)

    def _factored(self, equations: NormalEquations) -> CholeskyFactor:
        tolerance = self.order * float(np.finfo(np.float64).eps)
        if self.dtype == np.float32:
            tolerance = FLOAT32_PIVOT
        if self.alpha < equations.least_penalty or self.alpha == 0:
            # Without a penalty, pivots at the level of rounding errors mean a singular matrix.
            tolerance = max(tolerance, equations.cutoff)
        with one_blas_thread(self.order):
            return equations.gram.shifted_factor(self.alpha, self.dtype, tolerance)

    @property
    def factor(self) -> CholeskyFactor:
        if self._factor is None:
            assert self._again is not None
            self._factor, self._again = self._factored(self._again), None
        return self._factor

    def drop_factor(self, equations: NormalEquations) -> None:
        """Free the memory of the factor, which is computed again when it is needed."""
        self._factor, self._again = None, equations

    def solve(self, B: Array) -> Array:
        """The solution of (G + alpha I) X = B, as exact as the factor."""
        return self.factor.solve(B)

    def refined(self, equations: NormalEquations, X: Array) -> Array:
        """The weights for the targets, from an approximate solution X."""
        if self.dtype != np.float32:
            return X
        return refined(equations.gram.product, self.alpha, self.solve, equations.cross, X)

    def squared_lengths(self, Z: Array) -> Array:
        whitened = self.whitened(Z)
        return np.einsum("ij,ij->j", whitened, whitened, dtype=np.float64)

    def whitened(self, Z: Array) -> NDArray[Any]:
        """V with V'V = Z (G + alpha I)^-1 Z', in the precision of the factor."""
        return self.factor.forward(Z.T)

    def log_determinant_ratio(self) -> float:
        """The logarithm of |I + G / alpha|."""
        if self.alpha == 0:
            return np.inf
        return self.factor.log_determinant() - self.order * float(np.log(self.alpha))

    def effective_dof(self) -> float:
        if self.alpha == 0:
            return float(self.order)
        dof = self.order - self.alpha * self.factor.inverse_trace()
        return float(np.clip(dof, 0, self.order))  # rounding errors may leave this range


class Eigendecomposition:
    """The eigendecomposition of G, which gives the inverse for every alpha by a product."""

    def __init__(self, equations: NormalEquations):
        gram = equations.gram.full()
        with one_blas_thread(equations.gram.order):
            values, self.vectors = scipy.linalg.eigh(
                gram, lower=True, overwrite_a=True, check_finite=False, driver="evd"
            )
        self.values = np.maximum(values, 0)
        self.cutoff = equations.cutoff * equations.trace
        self.least_penalty = equations.least_penalty


class ShiftedEigen:
    """(G + alpha I)^-1 by eigenvectors, or the pseudo-inverse if G + alpha I is singular.

    That is so for a penalty below the rounding errors of G, whose inverse would multiply them.
    """

    def __init__(self, eigen: Eigendecomposition, alpha: float):
        self.alpha = alpha
        self._eigen = eigen
        shifted = eigen.values + alpha
        self.diagonal = np.zeros_like(shifted)
        penalized = alpha > 0 and alpha >= eigen.least_penalty
        smallest = 0.0 if penalized else eigen.cutoff
        np.divide(1, shifted, where=shifted > smallest, out=self.diagonal)

    def solve(self, B: Array) -> Array:
        V = self._eigen.vectors
        return V @ (self.diagonal[:, None] * (V.T @ B))

    def refined(self, equations: NormalEquations, X: Array) -> Array:
        """X itself, because `solve` is as exact as G."""
        return X

    def squared_lengths(self, Z: Array) -> Array:
        return np.square(Z @ self._eigen.vectors) @ self.diagonal

    def whitened(self, Z: Array) -> Array:
        """V with V'V = Z (G + alpha I)^-1 Z'."""
        whitened: Array = np.sqrt(self.diagonal)[:, None] * (Z @ self._eigen.vectors).T
        return whitened

    def log_determinant_ratio(self) -> float:
        """The logarithm of |I + G / alpha|."""
        if self.alpha == 0:
            return np.inf
        with np.errstate(over="ignore"):
            return float(np.log1p(self._eigen.values / self.alpha).sum())

    def effective_dof(self) -> float:
        return float(self._eigen.values @ self.diagonal)


ShiftedInverse = ShiftedCholesky | ShiftedEigen


def shifted_inverse(equations: NormalEquations, alpha: float) -> ShiftedInverse:
    """(G + alpha I)^-1 by Cholesky; if singular, something close to it with a warning.

    That is the pseudo-inverse, or the inverse for a larger alpha if the Gram matrix is float32: it
    is then too large for an eigendecomposition.
    """
    try:
        return ShiftedCholesky(equations, alpha)
    except np.linalg.LinAlgError:
        pass
    problem = (
        f"The normal equations are singular to working precision with alpha={alpha:g}: some "
        "features are constant or depend linearly on others."
    )
    if equations.gram.is_float32:
        inverse = _raised(equations, alpha)
        _warn(
            f"{problem} They are solved with alpha={inverse.alpha:.3g}, because the statistics are "
            "kept in float32. Use a larger alpha, or float64 features."
        )
        return inverse
    _warn(
        f"{problem} They are solved by an eigendecomposition, which is slower, and without a "
        "penalty for the weights of least norm. Use a larger alpha, or float64 features."
    )
    return ShiftedEigen(Eigendecomposition(equations), alpha)


def _warn(sentence: str) -> None:
    warnings.warn(sentence, ConvergenceWarning, stacklevel=5)


def _raised(equations: NormalEquations, alpha: float) -> ShiftedCholesky:
    """The inverse for the smallest alpha of a few that has a Cholesky factor."""
    alpha = max(alpha, equations.resolution * equations.trace)
    for _ in range(DECADES):
        try:
            return ShiftedCholesky(equations, alpha)
        except np.linalg.LinAlgError:
            alpha *= 10
    raise ValueError(
        "The statistics are not those of any rows: their Gram matrix has eigenvalues below "
        f"{-alpha / 10:.2g}. If rows were removed, remove only what was added before."
    )


@dataclass(frozen=True)
class Solution:
    """Weights for given statistics and penalty, and their uncertainty.

    It is returned by `LeastSquares.solve`. It keeps the factor of G + alpha I, which is as large
    as the statistics, because `effective_dof`, `noise_variance` and `variance` are computed on
    access.

    Attributes
    ----------
    coef : ndarray of shape (n_features, n_targets)
        The weights w.
    intercept : ndarray of shape (n_targets,)
        Predictions are ``Z @ coef + intercept``.
    alpha : float
        The penalty.
    rss : ndarray of shape (n_targets,)
        The weighted sum of squared residuals of each target.
    target_variance : ndarray of shape (n_targets,)
        The variance of each target; without an intercept, its mean square.
    log_marginal_likelihood : float
        The log marginal likelihood, summed over the targets; see Notes.
    n_observations : float
        The number of observations n; by default the sum of the weights.
    weight_scale : float
        n over the sum of the weights.
    fit_intercept : bool
        Whether there is an intercept.
    feature_mean : ndarray of shape (n_features,)
        The weighted mean m of the features, or zero without intercept; the variance of
        predictions grows with the distance from it.
    inverse : ShiftedCholesky or ShiftedEigen
        (G + alpha I)^-1.

    Notes
    -----
    The Bayesian model is y = c + w' z + noise for each target, with noise of variance s^2
    and weights of prior variance s^2 / alpha, so that ``coef`` is the posterior mean. The
    intercept c has a flat prior of density one and is integrated out; s^2 has its maximum
    likelihood value, (rss + alpha |w|^2) / N with N = n - 1 (N = n without intercept)::

        log p(y) = -N/2 (log(2 pi s^2) + 1) - log |I + G / alpha| / 2 - log(n) / 2

    (the last term only with an intercept). Weights are scaled to a sum of n: an observation has
    noise of variance s^2 over its weight, and G, rss and alpha are those of the scaled weights.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import LeastSquares
    >>> Z = np.random.default_rng(0).normal(size=(200, 2))
    >>> noise = np.random.default_rng(1).normal(size=200)
    >>> solution = LeastSquares(2).update(Z, Z @ [1.0, 2.0] + noise).solve(alpha=1.0)
    >>> solution.predict([[1.0, 1.0]]).shape
    (1, 1)
    >>> bool(0.8 < solution.noise_variance[0] < 1.2)
    True
    """

    coef: Array
    intercept: Array
    alpha: float
    rss: Array
    target_variance: Array
    log_marginal_likelihood: float
    n_observations: float
    weight_scale: float
    fit_intercept: bool
    feature_mean: Array
    inverse: ShiftedInverse = field(repr=False)

    @cached_property
    def effective_dof(self) -> float:
        """The trace of G (G + alpha I)^-1; an intercept counts one more."""
        return self.inverse.effective_dof()

    @cached_property
    def noise_variance(self) -> Array:
        """The noise variance of each target, rss / (N - effective_dof); NaN if that is undefined.

        If alpha maximizes the marginal likelihood of a single target, it equals the s^2 of the
        Notes; otherwise it depends less on the prior.
        """
        left = self.n_observations - self.fit_intercept - self.effective_dof
        return self.weight_scale * self.rss / left if left > 0 else np.full_like(self.rss, np.nan)

    def predict(self, Z: ArrayLike) -> Array:
        """Predictions of all targets.

        Parameters
        ----------
        Z : array-like of shape (n_rows, n_features)
            Features.

        Returns
        -------
        predictions : ndarray of shape (n_rows, n_targets)
            ``Z @ coef + intercept``.
        """
        return np.asarray(Z) @ self.coef + self.intercept

    def variance(self, Z: Any, *, noise: bool = True) -> Array:
        """The variance of predictions.

        Parameters
        ----------
        Z : array-like of shape (n_rows, n_features)
            Features.
        noise : bool, default=True
            Whether to include the noise, for the variance of a new observation instead of that
            of the regression function.

        Returns
        -------
        variance : ndarray of shape (n_rows, n_targets)
            s^2 times the sum of (z - m)' (G + alpha I)^-1 (z - m) from the weights, 1 / n
            from the intercept if there is one, and 1 from the noise; m is the mean of the
            features, or zero without intercept, and s^2 is ``noise_variance``. The null space
            of a singular problem contributes nothing.
        """
        Z = check_array(Z, dtype=[np.float64, np.float32], input_name="Z")
        n_features = self.coef.shape[0]
        if Z.shape[1] != n_features:
            raise ValueError(f"Z has {Z.shape[1]} columns, but the solution has {n_features}.")
        lengths = np.empty(Z.shape[0])
        for rows, block in blocks_of_rows(Z, max(VARIANCE_ROWS, VARIANCE_NUMBERS // n_features)):
            lengths[rows] = self.inverse.squared_lengths(block - self.feature_mean)
        return self.variance_of(lengths, noise=noise)

    def variance_of(self, lengths: Array, *, noise: bool = True) -> Array:
        """The variance of predictions of features z with these (z - m)' (G + alpha I)^-1 (z - m).

        Parameters
        ----------
        lengths : ndarray of shape (n_rows,)
            The quadratic forms.
        noise : bool, default=True
            Whether to include the noise.

        Returns
        -------
        variance : ndarray of shape (n_rows, n_targets)
            As in `variance`.
        """
        factor = lengths / self.weight_scale + noise
        if self.fit_intercept:
            factor += 1 / self.n_observations
        return factor[:, None] * self.noise_variance


def solution(equations: NormalEquations, inverse: ShiftedInverse) -> Solution:
    """The solution by a given inverse of G + alpha I."""
    w = inverse.weights if isinstance(inverse, ShiftedCholesky) else None
    if w is None:
        w = inverse.refined(equations, inverse.solve(equations.cross))
    rss, penalty = residuals(equations, w, inverse.alpha)
    rss = np.maximum(rss, 0)
    return Solution(
        coef=w,
        intercept=equations.target_mean - equations.feature_mean @ w,
        alpha=inverse.alpha,
        rss=rss,
        target_variance=equations.target_squares / equations.count,
        log_marginal_likelihood=log_evidence(
            equations.weight_scale * (rss + penalty),
            inverse.log_determinant_ratio(),
            equations.n_observations,
            equations.fit_intercept,
        ),
        n_observations=equations.n_observations,
        weight_scale=equations.weight_scale,
        fit_intercept=equations.fit_intercept,
        feature_mean=equations.feature_mean,
        inverse=inverse,
    )


def residuals(equations: NormalEquations, w: Array, alpha: float) -> tuple[Array, Array]:
    """Sums of squared residuals and penalties alpha |w|^2, both for each target.

    rss = y'y - 2 w'b + w'Gw, where w'Gw = w'b - alpha w'w. Rounding errors can make it negative.
    """
    penalty = alpha * np.einsum("ij,ij->j", w, w)
    explained = np.einsum("ij,ij->j", w, equations.cross)
    return equations.target_squares - explained - penalty, penalty


def log_evidence(
    loss: Array, log_determinant: float, n_observations: float, fit_intercept: bool
) -> float:
    """The log marginal likelihood of targets with the maximum likelihood noise variance of each.

    The losses are rss + alpha |w|^2 for weights with a mean of one, and the determinant is that
    of I + G / alpha.
    """
    N = n_observations - fit_intercept
    if N <= 0:
        return np.nan
    if np.isinf(log_determinant):
        return -np.inf  # alpha = 0: an improper prior
    with np.errstate(divide="ignore"):
        terms: Any = N * (np.log(2 * np.pi * loss / N) + 1) + log_determinant
    return -0.5 * float(np.sum(terms + fit_intercept * np.log(n_observations)))


def refined(
    product: Callable[[Array], Array],
    alpha: float,
    approximate: Callable[[Array], Array],
    B: Array,
    X: Array,
) -> Array:
    """The solution of (G + alpha I) X = B by preconditioned conjugate gradients.

    The approximate inverse is positive definite, and each column of B is a problem of its own.
    A ConvergenceWarning says that the residual is still large after 30 steps.
    """
    solver = ConjugateGradients(lambda V: (product(V), V[:0]), B, [alpha], [approximate], X)
    for _ in range(STEPS):
        if solver.residuals[0] <= EXACT:
            break
        solver.step()
    if solver.residuals[0] > POOR:
        warnings.warn(
            f"The normal equations are solved with a relative residual of "
            f"{solver.residuals[0]:.1g} only: alpha is too small for statistics in float32. Use a "
            "larger alpha, or float64 features.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return solver.coef[0]
