"""The solutions for all penalties, and the choice of one.

`PenaltyPath` answers for every alpha what criteria ask: residuals, effective parameters,
determinants, predictions. Two criteria need the statistics alone; n is the number of observations,
N = n - 1 with an intercept and n without, and edf the trace of G (G + alpha I)^-1:

* "gcv": generalized cross-validation, n rss / (N - edf)^2 with the rss of all targets
  together (Golub, Heath and Wahba 1979);
* "evidence": minus twice the log marginal likelihood, up to a constant, with the maximum
  likelihood noise variance of each target: the sum over the targets of
  N log((rss + alpha |w|^2) / N) + log |I + G / alpha|.

`LeaveOneOut` and validation rows are further criteria on the same path.

Up to EXACT_FEATURES features an eigendecomposition gives everything for every alpha. For more
features it costs more than twenty Cholesky factors, so each alpha is tried by a Cholesky
factor instead. It also gives the first two derivatives, and Newton's method needs two or three
factors. rss and determinant are then exact as well; traces of powers of (G + alpha I)^-1 are
estimated with PROBES random sign vectors (Hutchinson). The standard error of edf is at most
sqrt(2 min(edf, n_features - edf) / PROBES): below 8 for an edf of 1000, which changes "gcv" by
less than 2e-4 relatively for 10^5 rows or more. "evidence" needs traces for its derivatives only.

Of a Gram matrix in float32, one factor at a time is kept; if the best alpha was not the last one
that was tried, it is factored once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar

from kitchenette.data.rows import slices
from kitchenette.learning.gram import LARGEST_FLOAT32, Array
from kitchenette.learning.solution import (
    Eigendecomposition,
    NormalEquations,
    ShiftedCholesky,
    ShiftedEigen,
    Solution,
    residuals,
    shifted_inverse,
    solution,
)
from kitchenette.resources import one_blas_thread
from kitchenette.sketching.random import Stream

Found = TypeVar("Found")
CRITERIA = ("gcv", "evidence")
EXACT_FEATURES = 1024  # up to which an eigendecomposition takes less than a second
CHEAPER_FACTORS = 24  # an eigendecomposition costs as much as this many Cholesky factors (measured)
ROUGH, ROUGH_PROBES = 3e-3, 4  # the largest error of a factor in float32, on so many vectors
PROBES = 32  # sign vectors; see above for the error of the traces
# With no more rows than features G is singular, and a penalty below this multiple of the trace
# would let rounding errors determine some of the weights.
SINGULAR_PENALTY = 1e-6
LARGEST_PENALTY = 1e3  # relative to the trace of G; all weights are practically zero
DECADE = float(np.log(10))
STEP = 0.01  # the resolution of log(alpha), below the uncertainty of the criteria
NEAR = DECADE / 10  # the tolerance of Newton's method in log(alpha)
ROUND = NEAR / 8  # the distance of the penalties that are tried
TRIES = 12  # the largest number of Cholesky factors
SAFE = 1e-50, 1e50  # the range of sums of squares whose products do not overflow
CONSTANT = 4 * float(np.finfo(np.float32).eps)  # the relative spread of constant features
LARGEST_PRODUCT = 256  # columns of a product that gives the outputs for several penalties
SMALLEST_PART = 1e-10  # a smaller 1 - leverage consists of rounding errors
TREND_PARTS = 4  # parts of the rows, which show how the penalty depends on their number
LEAST_PART = 20  # rows of such a part
TREND_LIMITS = -1.5, 0.0  # of the power of the number of rows to which penalties are proportional
FACTOR_LIMITS = np.log(1e-4), 0.0  # of the logarithm of the extrapolated factor


@dataclass(frozen=True)
class Terms:
    """The quantities from which the criteria are computed for one alpha."""

    rss: Array
    penalty: Array
    effective_dof: float
    log_determinant: float


def criterion_value(equations: NormalEquations, criterion: str, terms: Terms) -> float:
    """The value of the criterion, infinite where it is undefined."""
    N = equations.degrees_of_freedom
    floor = equations.rss_floor
    if criterion == "gcv":
        left = N - terms.effective_dof
        rss = float(np.maximum(terms.rss, floor).sum())
        return equations.n_observations * rss / left**2 if left > 0 else np.inf
    varying = equations.target_squares > 0
    loss = np.maximum(terms.rss + terms.penalty, floor)[varying]
    return float(np.sum(N * np.log(loss / N) + terms.log_determinant))


def check_observations(criterion: str, n_observations: float, fit_intercept: bool) -> None:
    """Refuse to choose a penalty if the intercept takes all degrees of freedom."""
    if n_observations <= fit_intercept:
        raise ValueError(
            f"Choosing alpha by {criterion!r} needs more than {int(fit_intercept)} "
            f"observations; there are {n_observations:g}. Pass alpha as a number."
        )


def vary(trace: float, size: float) -> bool:
    """Whether features of this trace vary by more than rounding errors of their squares' sum."""
    return trace > CONSTANT**2 * size


def penalty_range(
    trace: float, resolution: float, order: int, degrees_of_freedom: float
) -> tuple[float, float]:
    """The logarithms of the smallest and the largest alpha considered."""
    smallest = resolution
    if degrees_of_freedom <= order:
        smallest = max(smallest, SINGULAR_PENALTY)
    return float(np.log(smallest * trace)), float(np.log(LARGEST_PENALTY * trace))


def compared_factor(equations: NormalEquations, alpha: float) -> ShiftedCholesky:
    """A factor of G + alpha I with which penalties are compared, in half the time if alpha allows.

    Weights are refined if it is rough. Its other errors are those of inner products
    c' (G + alpha I)^-1 c, which are estimated to first order: with x near (G + alpha I)^-1 c, the
    error is x' (c - (G + alpha I) x). Random vectors c have larger ones than rows.
    """
    gram, trace = equations.gram, equations.trace
    fits = max(alpha, trace) < LARGEST_FLOAT32 and trace > gram.order / LARGEST_FLOAT32
    pays = gram.order > EXACT_FEATURES and not gram.is_float32
    if pays and fits and alpha > 0:
        try:
            rough = ShiftedCholesky(equations, alpha, np.float32)
        except np.linalg.LinAlgError:
            pass
        else:
            c = Stream(0, "rough").signs(ROUGH_PROBES, gram.order).T.astype(np.float64)
            x = rough.solve(c)
            errors = np.einsum("ij,ij->j", x, c - gram.product(x) - alpha * x)
            if np.all(np.abs(errors) < ROUGH * np.einsum("ij,ij->j", x, c)):
                return rough
    return ShiftedCholesky(equations, alpha)


class PenaltyPath:
    """The solutions of normal equations, which must not change meanwhile, for all penalties."""

    def __init__(self, equations: NormalEquations):
        self.equations = equations
        self._solutions: dict[float, Solution] = {}

    @property
    def is_exact(self) -> bool:
        """Whether an eigendecomposition is cheap enough to serve all penalties."""
        return self.equations.gram.order <= EXACT_FEATURES

    @cached_property
    def eigen(self) -> Eigendecomposition:
        """The eigendecomposition of the Gram matrix."""
        return Eigendecomposition(self.equations)

    @cached_property
    def rotated_cross(self) -> Array:
        """The right-hand sides in the coordinates of the eigenvectors."""
        return self.eigen.vectors.T @ self.equations.cross

    @property
    def bounds(self) -> tuple[float, float]:
        """The logarithms of the smallest and the largest alpha considered."""
        equations = self.equations
        return penalty_range(
            equations.trace,
            equations.resolution,
            equations.gram.order,
            equations.degrees_of_freedom,
        )

    @property
    def is_safe(self) -> bool:
        """Whether features and targets vary, within the range of numbers."""
        sizes = self.equations.trace, float(self.equations.target_squares.max())
        return all(SAFE[0] < size < SAFE[1] for size in sizes)

    # ------------------------------------------------------------ solutions

    def solution(self, alpha: float) -> Solution:
        """The solution for a penalty, by a Cholesky factor if there is one."""
        if alpha not in self._solutions:
            self._solutions[alpha] = solution(
                self.equations, shifted_inverse(self.equations, alpha)
            )
        return self._solutions[alpha]

    def coef(self, alpha: float) -> Array:
        """The weights for a penalty and nothing else; of a singular problem those of least norm."""
        try:
            factor = ShiftedCholesky(self.equations, alpha)
        except np.linalg.LinAlgError:
            return ShiftedEigen(self.eigen, alpha).solve(self.equations.cross)
        return factor.refined(self.equations, factor.solve(self.equations.cross))

    def solutions(self, alphas: Array) -> list[Solution]:
        """The solutions for several penalties, by factors, or by eigenvectors if many."""
        if alphas.size < CHEAPER_FACTORS or self.equations.gram.is_float32:
            return [self.solution(float(alpha)) for alpha in alphas]
        return [
            solution(self.equations, ShiftedEigen(self.eigen, float(alpha))) for alpha in alphas
        ]

    def solve(self, alpha: str | Array, criterion: str = CRITERIA[0]) -> Solution:
        """The solution for a penalty, the best of several ones, or the best of all."""
        if isinstance(alpha, str):
            return self.best(alpha)
        return self.solution(float(alpha)) if alpha.ndim == 0 else self.best(criterion, alpha)

    def diagonals(self, alphas: Sequence[float] | Array) -> Array:
        """The eigenvalues of (G + alpha I)^-1 for each alpha, shape (order, n_penalties)."""
        return np.stack([ShiftedEigen(self.eigen, float(alpha)).diagonal for alpha in alphas], 1)

    def coefs(self, alphas: Sequence[float] | Array) -> Array:
        """The weights for several penalties, shape (n_penalties, order, n_targets)."""
        scaled = self.diagonals(alphas).T[:, :, None] * self.rotated_cross
        return np.matmul(self.eigen.vectors, scaled)

    # ------------------------------------------------------------ criteria

    def criterion(self, name: str) -> Callable[[float], float]:
        """A criterion as a function of alpha, by the eigendecomposition."""
        equations, squares = self.equations, np.square(self.rotated_cross)

        def value(alpha: float) -> float:
            inverse = ShiftedEigen(self.eigen, alpha)
            explained = inverse.diagonal @ squares
            penalty = alpha * (np.square(inverse.diagonal) @ squares)
            rss = equations.target_squares - explained - penalty
            terms = Terms(rss, penalty, inverse.effective_dof(), inverse.log_determinant_ratio())
            return criterion_value(equations, name, terms)

        return value

    def compared(self, alpha: float) -> Solution:
        """The solution for a penalty, perhaps by a rough factor; see `compared_factor`."""
        if alpha in self._solutions:
            return self._solutions[alpha]
        try:
            factor = compared_factor(self.equations, alpha)
        except np.linalg.LinAlgError:
            return self.solution(alpha)
        compared = solution(self.equations, factor)
        return compared if factor.is_rough else self._solutions.setdefault(alpha, compared)

    def most_exact(self, solution: Solution) -> Solution:
        """The solution for the same penalty by a factor that is not rough, if it is known."""
        return self._solutions.get(solution.alpha, solution)

    def best(self, criterion: str, alphas: Array | None = None) -> Solution:
        """The solution for the best of the given alphas, or of all positive numbers."""
        optimum = self.favored(criterion, alphas)
        if isinstance(optimum.inverse, ShiftedCholesky) and optimum.inverse.is_rough:
            return self.solution(optimum.alpha)
        return self._solutions.setdefault(optimum.alpha, optimum)

    def favored(self, criterion: str, alphas: Array | None = None) -> Solution:
        """The same, perhaps by a rough factor."""
        equations = self.equations
        check_observations(criterion, equations.n_observations, equations.fit_intercept)
        if equations.trace == 0 or not np.any(equations.target_squares > 0):
            # The features or the targets are constant, so every penalty gives zero weights.
            return self.solution(
                max(1.0, equations.trace) if alphas is None else float(alphas.max())
            )
        if not self.is_safe:  # products of four of these numbers could overflow or underflow
            scale = equations.trace
            scaled = None if alphas is None else alphas / scale
            alpha = PenaltyPath(equations.normalized()).best(criterion, scaled).alpha * scale
            if alphas is not None:
                alpha = float(alphas[np.argmin(np.abs(alphas - alpha))])
            return self.solution(alpha)
        if self.is_exact:
            value = self.criterion(criterion)
            if alphas is None:
                alpha = self._found(minimum(value, *self.bounds, equations.trace), criterion)
            else:
                heights = np.array([value(one) for one in alphas])
                is_defined = np.isfinite(heights).any()
                alpha = float(alphas[np.argmin(heights) if is_defined else np.argmax(alphas)])
            return solution(equations, ShiftedEigen(self.eigen, alpha))
        if alphas is None:
            return solution(
                equations, self._found(self._search(criterion).best_factor(), criterion)
            )
        tries = Tries(equations, criterion)
        for one in alphas:
            tries.attempt(float(one))
        factor = tries.best_factor()
        return self.solution(float(alphas.max())) if factor is None else solution(equations, factor)

    def _found(self, result: Found | None, criterion: str) -> Found:
        if result is None:
            raise ValueError(
                f"{criterion!r} cannot choose alpha: there are {self.equations.n_observations:g} "
                "observations, not more than the effective number of parameters. Pass alpha as a "
                "number."
            )
        return result

    def _search(self, criterion: str) -> Tries:
        """Newton's method from a guess, with steps of at most a decade."""
        tries = Tries(self.equations, criterion)
        low, high = self.bounds
        below, above = -np.inf, np.inf  # bounds of the minimum so far
        x = self._rounded(float(np.clip(self._guess(criterion), low, high)))
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
            following = self._rounded(following)
            if following == x:
                break
            x = following
        return tries

    def _rounded(self, x: float) -> float:
        """A penalty of a grid, so that rounding errors of a rough factor do not move it."""
        unit = float(np.log(self.equations.trace))
        return unit + ROUND * float(np.round((x - unit) / ROUND))

    def _guess(self, criterion: str) -> float:
        """log(alpha) extrapolated from its exact choices for two subsets of the features.

        The best penalty per feature changes steadily with the number of features.
        """
        order = self.equations.gram.order
        # Larger subsets do not improve the guess.
        sizes = [max(1, EXACT_FEATURES * part // 16) for part in (6, 3)]
        guesses = []
        for m in sizes:
            part = PenaltyPath(self.equations.leading(m))
            if part.equations.trace == 0:
                return float(np.log(1e-5 * self.equations.trace))
            best = minimum(part.criterion(criterion), *part.bounds, part.equations.trace)
            guesses.append(float(np.log(self._found(best, criterion) * order / m)))
        more, fewer = guesses
        trend = (more - fewer) * float(np.log2(order / sizes[0]))
        return more + float(np.clip(trend, -DECADE, DECADE))


@dataclass(frozen=True)
class RotatedRows:
    """Rows in the coordinates of eigenvectors, in which a penalty takes a product by a diagonal."""

    rows: Array  # centered rows times eigenvectors; shape (n_rows, order)
    cross: Array  # the right-hand sides in the same coordinates; shape (order, n_targets)

    def fitted(self, diagonals: Array) -> Iterator[tuple[Array, Array]]:
        """Predictions and squared lengths for each penalty, by few products of large matrices."""
        n_targets = self.cross.shape[1]
        lengths = np.square(self.rows) @ diagonals
        for some in slices(diagonals.shape[1], max(1, LARGEST_PRODUCT // n_targets)):
            weights = diagonals[:, some, None] * self.cross[:, None, :]
            outputs = self.rows @ weights.reshape(len(weights), -1)
            for number, i in enumerate(range(some.start, some.stop)):
                yield outputs[:, number * n_targets : (number + 1) * n_targets], lengths[:, i]


def left_out_residuals(residuals: Array, leverages: Array) -> Array:
    """Residuals of rows in models without one observation of the row."""
    return residuals / np.maximum(1 - leverages, SMALLEST_PART)[:, None]


def minimum(value: Callable[[float], float], low: float, high: float, unit: float) -> float | None:
    """The best alpha on a grid of eight per decade, refined between its neighbors.

    Low and high are logarithms, and alpha is a whole power of exp(STEP) times the unit. None if
    the criterion is nowhere finite.
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


class Tries:
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

    def attempt(self, alpha: float) -> Attempt | None:
        """Try an alpha; None if it is so small that the criterion is undefined."""
        equations, order = self.equations, self.equations.gram.order
        if equations.gram.is_float32 and self.latest is not None:
            self.latest.drop_factor(equations)  # the memory may not suffice for two
        try:
            inverse = self.latest = compared_factor(equations, alpha)
        except np.linalg.LinAlgError:
            return None  # singular up to rounding errors
        both = inverse.solve(np.concatenate([equations.cross, self.probes], axis=1))
        w, p = np.split(both, [equations.cross.shape[1]], axis=1)
        p *= alpha
        w = inverse.weights = inverse.refined(equations, w.copy())
        rss, penalty = residuals(equations, w, alpha)
        if np.any(rss < -equations.rss_floor):
            return None
        effective_dof = order - float(np.vdot(self.probes, p)) / PROBES
        if self.criterion == "gcv":
            spread = np.sqrt(2 * min(order, equations.degrees_of_freedom) / PROBES)
            if equations.degrees_of_freedom - effective_dof < 5 * spread:
                effective_dof = inverse.effective_dof()  # the estimate is too inaccurate here
        terms = Terms(rss, penalty, effective_dof, inverse.log_determinant_ratio())
        height = criterion_value(equations, self.criterion, terms)
        if not np.isfinite(height):
            return None
        if height < self.lowest:
            self.lowest, self.best = height, inverse
        return Attempt(self, inverse, w, p, terms)

    def best_factor(self) -> ShiftedCholesky | None:
        """The best one of all attempts, with its factor, or None if all failed."""
        if self.best is not self.latest and self.best and self.latest:
            if self.equations.gram.is_float32:
                self.latest.drop_factor(self.equations)
            _ = self.best.factor
        return self.best


@dataclass(frozen=True)
class Attempt:
    """The results for one alpha: w = A^-1 b and p = alpha A^-1 probes, with A = G + alpha I."""

    tries: Tries
    inverse: ShiftedCholesky
    w: Array
    p: Array
    terms: Terms

    def slope(self) -> tuple[float, float]:
        """The first two derivatives of "evidence" or log "gcv" with respect to log(alpha)."""
        equations, terms, alpha = self.tries.equations, self.terms, self.inverse.alpha
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
        floor, N = equations.rss_floor, equations.degrees_of_freedom
        if self.tries.criterion == "gcv":
            total, left = float(np.maximum(terms.rss, floor).sum()), N - terms.effective_dof
            fitted = terms.rss > floor
            u = alpha * self.inverse.factor.backward(half[:, :n_targets])
            uu = alpha * np.einsum("ij,ij->j", u, u)
            rss_1 = float(2 * wu[fitted].sum()) / total
            rss_2 = float((4 * wu - 6 * uu)[fitted].sum()) / total
            return (
                rss_1 + 2 * dof_1 / left,
                rss_2 - rss_1**2 + 2 * dof_2 / left + 2 * (dof_1 / left) ** 2,
            )
        varying = equations.target_squares > 0
        loss = np.maximum(terms.rss + terms.penalty, floor)[varying]
        loss_1, loss_2 = terms.penalty[varying] / loss, (terms.penalty - 2 * wu)[varying] / loss
        return (
            float(np.sum(N * loss_1 - terms.effective_dof)),
            float(np.sum(N * (loss_2 - loss_1**2) - dof_1)),
        )


@dataclass(frozen=True)
class RidgeOfRows:
    """Kernel ridge regression on a few rows, to guess a penalty."""

    # inner products of features after some vector was subtracted from them; shape (n_rows, n_rows)
    gram: Array
    columns: Array  # target columns; shape (n_rows, n_targets)
    weights: Array  # the weights of the rows, all positive; shape (n_rows,)
    counts: Array  # the number of observations that each row stands for; shape (n_rows,)
    size: float  # the squared norm of the vector that was subtracted
    fit_intercept: bool  # whether features and targets are centered

    def part(self, rows: slice) -> RidgeOfRows:
        """Some of the rows."""
        chosen = {name: getattr(self, name)[rows] for name in ("columns", "weights", "counts")}
        return replace(self, gram=self.gram[rows, rows], **chosen)

    def penalty(self) -> tuple[float, Array]:
        """The penalty of the least leave-one-out error, and these errors."""
        total = float(self.weights.sum())
        shares, roots = self.weights / total, np.sqrt(self.weights)[:, None]
        size = float(self.weights @ (self.gram.diagonal() + self.size))
        gram, Y = self.gram.copy(), self.columns
        if self.fit_intercept:
            Y = Y - shares @ Y
            gram -= shares @ gram
            gram -= (gram @ shares)[:, None]
        gram *= roots
        gram *= roots.T
        with one_blas_thread(gram.shape[0]):
            values, vectors = eigh(gram, overwrite_a=True)
        values = np.maximum(values, 0)
        trace = float(values.sum())
        if not vary(trace, size):
            return max(1.0, size), Y
        # The rows times the eigenvectors of the Gram matrix of the features, times their weights.
        rotated = vectors * np.sqrt(values)
        rows = RotatedRows(rotated / roots, rotated.T @ (roots * Y))
        spreads = self.weights @ np.square(Y) / len(Y)
        spreads = np.where(spreads > 0, spreads, 1.0)
        alphas = trace * 10 ** np.arange(-8.0, 2.0, 0.5)
        units, of_intercept = self.weights / self.counts, self.fit_intercept / total
        best, least, left_out = 1.0, np.inf, Y
        fits = rows.fitted(1 / (values[:, None] + alphas))
        for alpha, (fitted, lengths) in zip(alphas, fits, strict=True):
            errors = left_out_residuals(Y - fitted, units * (lengths + of_intercept))
            error = float((self.weights @ np.square(errors) / spreads).sum())
            if error < least:
                best, least, left_out = float(alpha), error, errors
        return best, left_out

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
