"""The choice of the penalty from the statistics alone.

Two criteria are minimized; n is the number of observations, N = n - 1 with an
intercept and n without, and edf the trace of G (G + alpha I)^-1:

* "gcv": generalized cross-validation, n rss / (N - edf)^2 with the rss of all targets
  together (Golub, Heath and Wahba 1979);
* "evidence": minus twice the log marginal likelihood, up to a constant, with the maximum
  likelihood noise variance of each target: the sum over the targets of
  N log((rss + alpha |w|^2) / N) + log |I + G / alpha|.

Up to EXACT_FEATURES features an eigendecomposition gives both for every alpha. For more
features it costs more than twenty Cholesky factors, so each alpha is tried by a Cholesky
factor instead. It also gives the first two derivatives, and Newton's method needs two or three
factors. rss and determinant are then exact as well; traces of powers of (G + alpha I)^-1 are
estimated with PROBES random sign vectors (Hutchinson). The standard error of edf is at most
sqrt(2 min(edf, n_features - edf) / PROBES): below 8 for an edf of 1000, which changes "gcv" by
less than 2e-4 relatively for 10^5 rows or more. "evidence" needs traces for its derivatives only.

Of a Gram matrix in float32, one factor at a time is kept; if the best alpha was not the last one
that was tried, it is factored once more.

`Pilot` guesses the penalty from a few rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar

from kitchenette.learning.gram import Array
from kitchenette.learning.solution import (
    Eigendecomposition,
    NormalEquations,
    ShiftedCholesky,
    ShiftedEigen,
    ShiftedInverse,
    residuals,
    shifted_inverse,
)
from kitchenette.resources import one_blas_thread
from kitchenette.sketching.random import Stream

CRITERIA = ("gcv", "evidence")
EXACT_FEATURES = 1024
PROBES = 32
# With no more rows than features G is singular, and a penalty below this multiple of the trace
# would let rounding errors determine some of the weights.
SINGULAR_PENALTY = 1e-6
LARGEST_PENALTY = 1e3  # relative to the trace of G; all weights are practically zero
DECADE = float(np.log(10))
STEP = 0.01  # the resolution of log(alpha), below the uncertainty of the criteria
NEAR = DECADE / 10  # the tolerance of Newton's method in log(alpha)
TRIES = 12  # the largest number of Cholesky factors
SAFE = 1e-50, 1e50  # the range of sums of squares whose products do not overflow
CONSTANT = 4 * float(np.finfo(np.float32).eps)  # the relative spread of constant features
TREND_PARTS = 4  # parts of the rows, which show how the penalty depends on their number
LEAST_PART = 20  # rows of such a part
TREND_LIMITS = -1.5, 0.0  # of the power of the number of rows to which penalties are proportional
FACTOR_LIMITS = np.log(1e-4), 0.0  # of the logarithm of the extrapolated factor


@dataclass(frozen=True)
class Trial:
    """The quantities from which the criteria are computed for one alpha."""

    rss: Array
    penalty: Array
    effective_dof: float
    log_determinant: float


def criterion_value(equations: NormalEquations, criterion: str, trial: Trial) -> float:
    """The value of the criterion, infinite where it is undefined."""
    N = equations.degrees_of_freedom
    floor = _rss_floor(equations)
    if criterion == "gcv":
        left = N - trial.effective_dof
        rss = float(np.maximum(trial.rss, floor).sum())
        return equations.n_observations * rss / left**2 if left > 0 else np.inf
    varying = equations.target_squares > 0
    loss = np.maximum(trial.rss + trial.penalty, floor)[varying]
    return float(np.sum(N * np.log(loss / N) + trial.log_determinant))


def _rss_floor(equations: NormalEquations) -> Array:
    """The rounding error of rss, below which differences of rss are meaningless."""
    return equations.resolution * equations.target_squares


def check_observations(criterion: str, n_observations: float, fit_intercept: bool) -> None:
    """Refuse to choose a penalty if the intercept takes all degrees of freedom."""
    if n_observations <= fit_intercept:
        raise ValueError(
            f"Choosing alpha by {criterion!r} needs more than {int(fit_intercept)} "
            f"observations; there are {n_observations:g}. Pass alpha as a number."
        )


def choose(
    equations: NormalEquations, criterion: str, alphas: Array | None = None
) -> ShiftedInverse:
    """(G + alpha I)^-1 for the best of the given alphas, or of all positive numbers."""
    check_observations(criterion, equations.n_observations, equations.fit_intercept)
    small = equations.gram.order <= EXACT_FEATURES
    if equations.trace == 0 or not np.any(equations.target_squares > 0):
        # The features or the targets are constant, so every penalty gives zero weights.
        any_alpha = max(1.0, equations.trace) if alphas is None else float(alphas.max())
        return shifted_inverse(equations, any_alpha)
    scale, squares = equations.trace, float(equations.target_squares.max())
    if not (SAFE[0] < scale < SAFE[1] and SAFE[0] < squares < SAFE[1]):
        # Products of four of these numbers could overflow or underflow.
        scaled = None if alphas is None else alphas / scale
        alpha = choose(_normalized(equations), criterion, scaled).alpha * scale
        if alphas is not None:
            alpha = float(alphas[np.argmin(np.abs(alphas - alpha))])
        return shifted_inverse(equations, alpha)
    if alphas is not None:
        return _best_of(equations, criterion, alphas, small)
    if small:
        eigen = Eigendecomposition(equations)
        alpha = _minimum(equations, criterion, exact_criterion(equations, criterion, eigen))
        return ShiftedEigen(eigen, alpha)
    return _search(equations, criterion)


def _normalized(equations: NormalEquations) -> NormalEquations:
    """The same problem with features and targets scaled to a size of about one."""
    root, size = np.sqrt(equations.trace), np.sqrt(float(equations.target_squares.max()))
    return replace(
        equations,
        gram=type(equations.gram)(equations.gram.order, equations.gram.values / equations.trace),
        cross=equations.cross / root / size,
        target_squares=equations.target_squares / size / size,
        feature_mean=equations.feature_mean / root,
        target_mean=equations.target_mean / size,
    )


def bounds(equations: NormalEquations) -> tuple[float, float]:
    """The logarithms of the smallest and the largest alpha considered."""
    smallest = equations.resolution
    if equations.degrees_of_freedom <= equations.gram.order:
        smallest = max(smallest, SINGULAR_PENALTY)
    smallest *= equations.trace
    return float(np.log(smallest)), float(np.log(LARGEST_PENALTY * equations.trace))


def _best_of(
    equations: NormalEquations, criterion: str, alphas: Array, small: bool
) -> ShiftedInverse:
    if small:
        eigen = Eigendecomposition(equations)
        value = exact_criterion(equations, criterion, eigen)
        heights = np.array([value(alpha) for alpha in alphas])
        best = int(np.argmin(heights) if np.isfinite(heights).any() else np.argmax(alphas))
        return ShiftedEigen(eigen, float(alphas[best]))
    tries = _Tries(equations, criterion)
    for alpha in alphas:
        tries.attempt(float(alpha))
    return tries.found() or shifted_inverse(equations, float(alphas.max()))


def exact_criterion(
    equations: NormalEquations, criterion: str, eigen: Eigendecomposition
) -> Callable[[float], float]:
    """The criterion as a function of alpha, by an eigendecomposition."""
    values = eigen.values
    squares = np.square(eigen.vectors.T @ equations.cross)

    def value(alpha: float) -> float:
        inverse = ShiftedEigen(eigen, alpha)
        explained = inverse.diagonal @ squares
        penalty = alpha * (np.square(inverse.diagonal) @ squares)
        trial = Trial(
            rss=equations.target_squares - explained - penalty,
            penalty=penalty,
            effective_dof=float(values @ inverse.diagonal),
            log_determinant=inverse.log_determinant_ratio(),
        )
        return criterion_value(equations, criterion, trial)

    return value


def _minimum(equations: NormalEquations, criterion: str, value: Callable[[float], float]) -> float:
    found = minimum(value, *bounds(equations), equations.trace)
    if found is None:
        raise ValueError(_too_few_rows(equations, criterion))
    return found


def minimum(value: Callable[[float], float], low: float, high: float, unit: float) -> float | None:
    """The best alpha on a grid of eight per decade, refined between its neighbors.

    Parameters
    ----------
    value : callable
        The criterion.
    low, high : float
        The logarithms of the smallest and the largest alpha.
    unit : float
        Alpha is a whole power of exp(STEP) times this number.

    Returns
    -------
    alpha : float or None
        None if the criterion is nowhere finite.
    """
    grid = np.linspace(low, high, 1 + int(8 * (high - low) / np.log(10)))
    heights = np.array([value(float(np.exp(x))) for x in grid])
    if not np.isfinite(heights).any():
        return None
    best = int(np.argmin(heights))
    around = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    refined = minimize_scalar(
        lambda x: value(float(np.exp(x))), bounds=around, method="bounded", options={"xatol": 1e-4}
    )
    x = refined.x if refined.fun < heights[best] else grid[best]
    # Rounded to whole steps, so that rounding errors of the statistics do not change alpha.
    steps = np.round((x - np.log(unit)) / STEP)
    return float(unit * np.exp(steps * STEP))


class _Tries:
    """Evaluates the criterion by Cholesky factors and keeps the best factor."""

    def __init__(self, equations: NormalEquations, criterion: str):
        self.equations = equations
        self.criterion = criterion
        self.lowest = np.inf
        self.best: ShiftedCholesky | None = None  # perhaps without its factor
        self.latest: ShiftedCholesky | None = None
        order = equations.gram.order
        # With a fixed seed equal statistics give equal choices, and common random vectors for
        # all alphas make correlated errors that hardly move the minimum.
        self.probes = Stream(0, "trace").signs(PROBES, order).T.astype(np.float64)

    def attempt(self, alpha: float) -> _Attempt | None:
        """Try an alpha; None if it is so small that the criterion is undefined."""
        equations, order = self.equations, self.equations.gram.order
        if equations.gram.is_float32 and self.latest is not None:
            self.latest.drop_factor(equations)  # the memory may not suffice for two
        try:
            inverse = self.latest = ShiftedCholesky(equations, alpha)
        except np.linalg.LinAlgError:
            return None  # singular up to rounding errors
        both = inverse.solve(np.concatenate([equations.cross, self.probes], axis=1))
        w, p = np.split(both, [equations.cross.shape[1]], axis=1)
        p *= alpha
        inverse.weights = w = inverse.refined(equations, w.copy())
        rss, penalty = residuals(equations, w, alpha)
        if np.any(rss < -_rss_floor(equations)):
            return None
        effective_dof = order - float(np.vdot(self.probes, p)) / PROBES
        if self.criterion == "gcv":
            spread = np.sqrt(2 * min(order, equations.degrees_of_freedom) / PROBES)
            if equations.degrees_of_freedom - effective_dof < 5 * spread:
                effective_dof = inverse.effective_dof()  # the estimate is too inaccurate here
        trial = Trial(rss, penalty, effective_dof, inverse.log_determinant_ratio())
        height = criterion_value(equations, self.criterion, trial)
        if not np.isfinite(height):
            return None
        if height < self.lowest:
            self.lowest, self.best = height, inverse
        return _Attempt(self, inverse, w, p, trial)

    def found(self) -> ShiftedCholesky | None:
        """The best one of all attempts, with its factor, or None if all failed."""
        if self.best is not self.latest and self.best and self.latest:
            if self.equations.gram.is_float32:
                self.latest.drop_factor(self.equations)
            _ = self.best.factor
        return self.best


@dataclass(frozen=True)
class _Attempt:
    """The results for one alpha: w = A^-1 b and p = alpha A^-1 probes, with A = G + alpha I."""

    tries: _Tries
    inverse: ShiftedCholesky
    w: Array
    p: Array
    trial: Trial

    def slope(self) -> tuple[float, float]:
        """The first two derivatives of "evidence" or log "gcv" with respect to log(alpha)."""
        equations, trial, alpha = self.tries.equations, self.trial, self.inverse.alpha
        # x'A^-1 x is the squared norm of L^-1 x, so forward substitution suffices for it.
        half = self.inverse.factor.forward(np.concatenate([self.w, self.p], axis=1))
        squares = alpha * np.einsum("ij,ij->j", half, half)
        n_targets = self.w.shape[1]
        # The traces of (alpha A^-1)^k for k = 1, 2, 3.
        t1 = float(np.vdot(self.tries.probes, self.p)) / PROBES
        t2 = float(np.vdot(self.p, self.p)) / PROBES
        t3 = float(squares[n_targets:].sum()) / PROBES
        dof_1, dof_2 = t2 - t1, 3 * t2 - 2 * t3 - t1
        wu = alpha * squares[:n_targets]  # alpha w'u, where u = alpha A^-1 w
        floor, N = _rss_floor(equations), equations.degrees_of_freedom
        if self.tries.criterion == "gcv":
            total, left = float(np.maximum(trial.rss, floor).sum()), N - trial.effective_dof
            fitted = trial.rss > floor
            u = alpha * self.inverse.factor.backward(half[:, :n_targets])
            uu = alpha * np.einsum("ij,ij->j", u, u)
            rss_1 = float(2 * wu[fitted].sum()) / total
            rss_2 = float((4 * wu - 6 * uu)[fitted].sum()) / total
            return (
                rss_1 + 2 * dof_1 / left,
                rss_2 - rss_1**2 + 2 * dof_2 / left + 2 * (dof_1 / left) ** 2,
            )
        varying = equations.target_squares > 0
        loss = np.maximum(trial.rss + trial.penalty, floor)[varying]
        loss_1, loss_2 = trial.penalty[varying] / loss, (trial.penalty - 2 * wu)[varying] / loss
        return (
            float(np.sum(N * loss_1 - trial.effective_dof)),
            float(np.sum(N * (loss_2 - loss_1**2) - dof_1)),
        )


def _search(equations: NormalEquations, criterion: str) -> ShiftedInverse:
    """Newton's method from a guess, with steps of at most a decade."""
    tries = _Tries(equations, criterion)
    low, high = bounds(equations)
    below, above = -np.inf, np.inf  # bounds of the minimum so far
    x = float(np.clip(_guess(equations, criterion), low, high))
    for _ in range(TRIES):
        attempt = tries.attempt(float(np.exp(x)))
        slope, curvature = attempt.slope() if attempt else (-np.inf, 0.0)
        step = -float(np.copysign(DECADE, slope))
        if curvature * DECADE > abs(slope):
            step = -slope / curvature
        below, above = (below, x) if slope > 0 else (x, above)
        following = float(np.clip(x + step, low, high))
        if not below < following < above:
            following = (below + above) / 2
        if abs(step) < NEAR or not np.isfinite(following) or above - below < NEAR:
            break
        x = following
    best = tries.found()
    if best is None:
        raise ValueError(_too_few_rows(equations, criterion))
    return best


def _guess(equations: NormalEquations, criterion: str) -> float:
    """log(alpha) extrapolated from its exact choices for two subsets of the features.

    The best penalty per feature changes steadily with the number of features.
    """
    order = equations.gram.order
    # Larger subsets do not improve the guess.
    sizes = [max(1, EXACT_FEATURES * part // 16) for part in (6, 3)]
    guesses = []
    for m in sizes:
        part = replace(
            equations,
            gram=equations.gram.leading(m),
            cross=equations.cross[:m],
            feature_mean=equations.feature_mean[:m],
        )
        if part.trace == 0:
            return float(np.log(1e-5 * equations.trace))
        value = exact_criterion(part, criterion, Eigendecomposition(part))
        guesses.append(float(np.log(_minimum(part, criterion, value) * order / m)))
    more, fewer = guesses
    trend = (more - fewer) * float(np.log2(order / sizes[0]))
    return more + float(np.clip(trend, -DECADE, DECADE))


def _too_few_rows(equations: NormalEquations, criterion: str) -> str:
    return (
        f"{criterion!r} cannot choose alpha: there are {equations.n_observations:g} observations, "
        "not more than the effective number of parameters. Pass alpha as a number."
    )


@dataclass(frozen=True)
class Pilot:
    """Kernel ridge regression on a few rows, to choose a penalty.

    Attributes
    ----------
    gram : ndarray of shape (n_rows, n_rows)
        Inner products of features after some vector was subtracted from them.
    columns : ndarray of shape (n_rows, n_targets)
        Target columns.
    weights : ndarray of shape (n_rows,)
        The weights of the rows, all positive.
    counts : ndarray of shape (n_rows,)
        The number of observations that each row stands for.
    size : float
        The squared norm of the vector that was subtracted.
    fit_intercept : bool
        Whether features and targets are centered.
    """

    gram: Array
    columns: Array
    weights: Array
    counts: Array
    size: float
    fit_intercept: bool

    def part(self, rows: slice) -> Pilot:
        """Some of the rows."""
        some = {name: getattr(self, name)[rows] for name in ("columns", "weights", "counts")}
        return replace(self, gram=self.gram[rows, rows], **some)

    def penalty(self) -> tuple[float, Array]:
        """The penalty of the least leave-one-out error.

        Returns
        -------
        alpha : float
            The penalty.
        errors : ndarray of shape (n_rows, n_targets)
            The errors of models without one observation of the row.
        """
        shares, weight_roots = self.weights / self.weights.sum(), np.sqrt(self.weights)[:, None]
        size = float(self.weights @ (self.gram.diagonal() + self.size))
        gram, Y = self.gram.copy(), self.columns
        if self.fit_intercept:
            Y = Y - shares @ Y
            gram -= shares @ gram
            gram -= (gram @ shares)[:, None]
        gram *= weight_roots
        gram *= weight_roots.T
        with one_blas_thread(gram.shape[0]):
            values, vectors = eigh(gram, overwrite_a=True)
        values = np.maximum(values, 0)
        trace = float(values.sum())
        if not trace > CONSTANT**2 * size:
            return max(1.0, size), Y  # the features are constant up to rounding
        scaled = weight_roots * Y
        rotated, squares = vectors.T @ scaled, np.square(vectors)
        spreads = np.square(scaled).mean(axis=0)
        spreads = np.where(spreads > 0, spreads, 1.0)
        best, least, found = 1.0, np.inf, scaled
        for alpha in trace * 10 ** np.arange(-8.0, 2.0, 0.5):
            shrunk = values / (values + alpha)
            leverages = squares @ shrunk + self.fit_intercept * shares
            left_out = np.maximum(1 - leverages / self.counts, 1e-10)[:, None]
            residuals = (scaled - vectors @ (shrunk[:, None] * rotated)) / left_out
            error = float((np.square(residuals) / spreads).sum())
            if error < least:
                best, least, found = float(alpha), error, residuals
        return best, found / weight_roots

    def trend(self, alpha: float, n_rows: int) -> float:
        """A factor by which the best penalty of all rows differs from ``alpha``, that of these.

        It is extrapolated from the penalties of parts of these rows, as a power of the number of
        rows.
        """
        n_few = len(self.gram)
        step = n_few // TREND_PARTS
        if step < LEAST_PART or n_rows <= n_few:
            return 1.0
        parts = [self.part(slice(i * step, (i + 1) * step)) for i in range(TREND_PARTS)]
        fewer = np.log([part.penalty()[0] for part in parts]).mean()
        slope = (np.log(alpha) - fewer) / np.log(TREND_PARTS)
        exponent = float(np.clip(slope, *TREND_LIMITS)) * np.log(n_rows / n_few)
        return float(np.exp(np.clip(exponent, *FACTOR_LIMITS)))
