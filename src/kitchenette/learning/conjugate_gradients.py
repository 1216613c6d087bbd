"""The squared loss in many passes: conjugate gradients along a path of penalties.

The normal equations (C' V C + alpha I) w = C' V y of centered features C are solved for every
target and penalty in the same passes over the rows, because computing the features is what takes
the time. The primal equations are solved also if there are fewer rows than features: a step needs
one pass, in which every feature is computed once, while the dual equations need two.

A model of some of the features gives a first penalty and weights to begin with. The statistics of m
of the D features take one pass and m^2 operations for a row, which is a few steps of an iterative
solver. All rows enter them, so that they show how small the penalty of all rows is, and their model
predicts better than the first steps of the solver do. If the D features approximate a kernel k,
then m of them, drawn at random, approximate (m / D) k. So a penalty of m features corresponds to
one that is D / m times as large for all of them.

The penalty "evidence", which docs/scale.md promises for very many features together with the value
of the likelihood, is chosen by stochastic Lanczos quadrature. Minus twice the log marginal
likelihood is, up to a constant, the sum over the targets of

    N log(loss / N) + log |I + G / alpha|,  loss = y'y - b' (G + alpha I)^-1 b,

with G = C' V C the matrix of centered features and b = C' V y. Lanczos's method needs products
with G only. Begun with a vector v, m steps give Gauss's quadrature with m nodes of v' f(G) v for
every function f, so the same steps serve all penalties. Begun with b they give the loss; begun with
random vectors of signs, the mean of which estimates a trace, they give the determinant as the trace
of log(I + G / alpha). All vectors share the passes over the rows.

Steps end when they no longer change the chosen penalty and the criterion. There is no
preconditioner, because each penalty would need its own, so small penalties take many steps. Vectors
are not orthogonalized again: some nodes are then found repeatedly, but their weights are divided
among the copies, so that the quadratures do not change.

A guess of the penalty is solved for first, beginning with a model of some of the features if there
are many rows. The neighbors of this penalty begin with its solution, both in the same passes, and
end as soon as they do not predict validation rows better. So most passes are for one penalty: with
ten classes, products with the weights for three take longer than the features.

References
----------
Golub and Meurant, Matrices, moments and quadrature, 2010.
Ubaru, Chen and Saad, Fast estimation of tr(f(A)) via stochastic Lanczos quadrature, SIAM Journal on
Matrix Analysis and Applications 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from kitchenette.learning.gram import ROUNDED, ConjugateGradients, PackedSymmetric
from kitchenette.learning.iterative import (
    IMPROVEMENT,
    MOST_PENALTIES,
    RATIO,
    EarlyStopping,
    IterativeSolver,
    SolverResult,
    warn_of_steps,
)
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.leave_one_out import SquaredErrors
from kitchenette.learning.passes import FeatureRows, RowSums
from kitchenette.learning.penalty import (
    PenaltyPath,
    Terms,
    check_observations,
    criterion_value,
    minimum,
    penalty_range,
    vary,
)
from kitchenette.learning.preconditioner import Preconditioner, SampledRows
from kitchenette.learning.solution import NormalEquations, log_evidence
from kitchenette.resources import SMALL_ORDER, one_blas_thread
from kitchenette.sketching.random import Stream

Array = NDArray[np.float64]
COARSE_FEATURES = 2048  # whose statistics and eigenvectors take two or three passes (docs/scale.md)
ROWS_PER_FEATURE = 16  # distinct rows for a feature, at least: fewer want too small a penalty
EXPONENTS = np.arange(-9.0, 1.0, 0.5)  # of ten, for penalties relative to the trace: all of float32
PROBES = 16  # random vectors: the trace has a relative standard error of sqrt(2 / (16 edf))
LEAST_STEPS = 4  # before which a criterion may stand still by chance
STEADY_STEPS = 2  # consecutive steps with small changes, after which the method stops
STEADY_PENALTY = 0.03  # a small change of log(alpha), which the validation error does not show
STEADY_VALUE = 1e-4  # a small change of the criterion, per observation and target
BREAKDOWN = 1e-12  # a vector of smaller relative length consists of rounding errors
PENALTIES = 3  # in the same passes: the best one and both neighbors
FINAL_STEPS = 5  # at least, for all rows; fewer if they reach the residual of the chosen model
# The residual of a solution that will not change much any more. Above it, validation rows do not
# end the steps for the first penalty: these may predict worse than a constant does.
SETTLED = 0.02
COLUMNS = 64  # targets times penalties in the same passes: then products outweigh the features


@dataclass(frozen=True)
class CoarseModel:
    """The best model of some of the features for validation rows."""

    alpha: float  # the penalty of all features that corresponds to that of these
    # the weights of all features; zero for those that the model does not have; shape (n_features,
    # n_targets)
    coef: Array


def sampled_features(n_features: int, n_distinct: int) -> NDArray[np.intp] | None:
    """The features of a coarse model; None if there are too few features or rows for one."""
    if n_features < 2 * COARSE_FEATURES or n_distinct < ROWS_PER_FEATURE * COARSE_FEATURES:
        return None
    # A regular choice could take only cosines, or rows of a Hadamard matrix that resemble another.
    drawn = np.random.default_rng(0).choice(n_features, COARSE_FEATURES, replace=False)
    return np.sort(drawn)


def coarse_bytes(n_features: int, n_rows: int) -> int:
    """The memory that a coarse model takes: its statistics, all entries of them, eigenvectors."""
    which = sampled_features(n_features, n_rows)
    return 0 if which is None else 28 * which.size**2


def coarse_model(
    statistics: LeastSquares,
    which: NDArray[np.intp],
    validation: FeatureRows,
    *,
    fit_intercept: bool,
) -> CoarseModel | None:
    """The model with the penalty of the least squared validation error.

    The statistics are those of some features, ``which``, of the rows that are learned. None if
    these features are constant up to rounding.
    """
    path = PenaltyPath(statistics.equations(fit_intercept))
    equations = path.equations
    size = statistics.count * float(np.square(statistics.feature_mean).sum())
    if not (vary(equations.trace, size) and equations.trace < np.inf):
        return None
    alphas = equations.trace * 10**EXPONENTS
    with one_blas_thread(which.size):
        coefs = path.coefs(alphas)
    squares, errors = np.diagonal(statistics.target_gram), np.zeros(alphas.size)
    shares = 1 / np.where(squares > 0, squares, 1)
    for part, Z in validation.some_features(which):
        outputs = np.matmul(Z - equations.feature_mean, coefs) + equations.target_mean
        targets = validation.coding.columns(validation.targets[part])
        squared = np.square(outputs - targets)
        errors += np.einsum("pnt,n,t->p", squared, validation.weights[part], shares)
    best = int(errors.argmin())
    coef = np.zeros((validation.n_features, coefs.shape[2]))
    coef[which] = coefs[best]
    return CoarseModel(float(alphas[best]) * validation.n_features / which.size, coef)


class Lanczos:
    """Lanczos's method for several vectors at once, the columns of ``start``.

    Columns of zeros have quadratures of zero.
    """

    def __init__(self, product: Callable[[Array], Array], start: Array):
        self._product = product
        self.lengths = np.linalg.norm(start, axis=0)
        self._vectors = start / np.where(self.lengths > 0, self.lengths, 1.0)
        self._before = np.zeros_like(start)
        self._diagonals: list[Array] = []
        self._beside: list[Array] = []  # the other diagonals of the tridiagonal matrices
        self._sizes = np.zeros(start.shape[1])

    @property
    def n_steps(self) -> int:
        return len(self._diagonals)

    def step(self) -> None:
        """One more node of all quadratures; takes one product."""
        image = self._product(self._vectors)
        diagonal = np.einsum("ij,ij->j", self._vectors, image)
        image -= diagonal * self._vectors
        if self._beside:
            image -= self._beside[-1] * self._before
        beside = np.linalg.norm(image, axis=0)
        self._sizes = np.maximum(self._sizes, np.abs(diagonal) + beside)
        beside = np.where(beside > BREAKDOWN * self._sizes, beside, 0.0)
        self._before = self._vectors
        self._vectors = np.where(beside > 0, image / np.where(beside > 0, beside, 1.0), 0.0)
        self._diagonals.append(diagonal)
        self._beside.append(beside)

    def quadratures(self) -> tuple[Array, Array]:
        """Nodes and weights, each of shape (n_vectors, n_steps).

        v' f(G) v is the sum of f(nodes) times weights.
        """
        diagonals, beside = np.array(self._diagonals), np.array(self._beside)[:-1]
        nodes, weights = np.empty((2, self.lengths.size, self.n_steps))
        for i, length in enumerate(self.lengths):
            values, vectors = eigh_tridiagonal(diagonals[:, i], beside[:, i])
            nodes[i], weights[i] = np.maximum(values, 0), np.square(length * vectors[0])
        return nodes, weights


@dataclass(frozen=True)
class Evidence:
    """The marginal likelihood of some rows as a function of the penalty."""

    equations: NormalEquations  # the equations of these rows, without their Gram matrix
    size: float  # the weight of the rows times the squared norm of the mean that was subtracted
    # quadratures of the right-hand sides, and of random vectors after them; shapes (n_targets +
    # n_probes, n_steps)
    nodes: Array
    weights: Array

    def loss(self, alpha: float) -> Array:
        """The sum of squares of each target's residuals, plus the penalty."""
        squares = self.equations.target_squares
        nodes, weights = self.nodes[: squares.size], self.weights[: squares.size]
        explained = (weights / (nodes + alpha)).sum(axis=1)
        return np.maximum(squares - explained, self.equations.rss_floor)

    def log_determinant(self, alpha: float) -> float:
        """The logarithm of |I + G / alpha|."""
        n_targets = self.equations.target_squares.size
        probes = self.weights[n_targets:] * np.log1p(self.nodes[n_targets:] / alpha)
        return float(probes.sum(axis=1).mean())

    def criterion(self, alpha: float) -> float:
        """Minus twice the log marginal likelihood, up to a constant."""
        loss = self.loss(alpha)
        terms = Terms(loss, np.zeros_like(loss), 0.0, self.log_determinant(alpha))
        return criterion_value(self.equations, "evidence", terms)

    def log_marginal_likelihood(self, alpha: float) -> float:
        """The log density of the targets."""
        equations = self.equations
        return log_evidence(
            equations.weight_scale * self.loss(alpha),
            self.log_determinant(alpha),
            equations.n_observations,
            equations.fit_intercept,
        )

    def best_penalty(self) -> float:
        """The penalty of the largest marginal likelihood."""
        equations = self.equations
        order, n_targets = equations.cross.shape
        trace = float((self.nodes * self.weights)[n_targets:].sum(axis=1).mean())
        size = trace + self.size
        if not vary(trace, size) or not equations.target_squares.any():
            return max(1.0, size)  # features or targets are constant up to rounding
        limits = penalty_range(trace, equations.resolution, order, equations.degrees_of_freedom)
        best = minimum(self.criterion, *limits, trace)
        assert best is not None
        return best


class SquaredSolver(IterativeSolver):
    """Conjugate gradients, for a guess of the penalty and then for others beside it."""

    def learned(self) -> SolverResult:
        if not isinstance(self.settings.alpha, str):
            return self._learned()
        alpha, likelihood = self._by_evidence()
        self.settings = replace(self.settings, alpha=alpha)
        return replace(self._learned(), log_marginal_likelihood=likelihood)

    def _by_evidence(self) -> tuple[float, float]:
        """The penalty of the largest marginal likelihood of all rows, and its logarithm."""
        fit_intercept, n_observations = self.settings.fit_intercept, self.n_observations
        check_observations("evidence", n_observations, fit_intercept)
        rows, moments = self.rows, self._moments(self.rows)
        n_features, n_targets = moments.cross.shape
        signs = Stream(0, "trace").signs(PROBES, n_features).T.astype(np.float64)
        lanczos = Lanczos(
            lambda V: rows.normal_product(np.ascontiguousarray(V), moments.mean)[0],
            np.concatenate([moments.cross, signs], axis=1),
        )
        equations = NormalEquations(
            gram=PackedSymmetric(0),  # which is never computed
            cross=moments.cross,
            target_squares=moments.target_squares,
            feature_mean=moments.mean,
            target_mean=moments.target_mean,
            count=moments.count,
            n_observations=n_observations,
            fit_intercept=fit_intercept,
            resolution=float(np.finfo(rows.some(np.arange(1)).features().dtype).eps),
        )
        size = moments.count * float(np.square(moments.mean).sum())
        tolerance = STEADY_VALUE * n_observations * n_targets
        position, value, steady = np.inf, np.inf, 0
        while True:
            lanczos.step()
            self.n_steps += 1
            evidence = Evidence(equations, size, *lanczos.quadratures())
            alpha = evidence.best_penalty()
            text = f"alpha {self.weight_unit * alpha:.3g}"
            self.settings.report(f"step {lanczos.n_steps} of Lanczos: {text}")
            before, position = position, float(np.log(alpha))
            value_before, value = value, evidence.criterion(alpha)
            same = abs(position - before) <= STEADY_PENALTY
            steady = steady + 1 if same and abs(value - value_before) <= tolerance else 0
            enough = lanczos.n_steps >= LEAST_STEPS and steady >= STEADY_STEPS
            if enough or lanczos.n_steps >= min(self.settings.max_iter, n_features):
                return alpha, evidence.log_marginal_likelihood(alpha)

    def _learned(self) -> SolverResult:
        moments = self._moments(self.training)
        sample = self.sampled_rows(moments.mean)
        if self.validation is None:
            coef = np.zeros_like(moments.cross) if self.start is None else self.start[0]
            given = self.settings.alpha is not None
            alpha = self.only_penalty() if given else self.first_guess()[0]
            start = SolverResult(coef, moments.target_mean, alpha)
            goal = max(self.settings.tol, ROUNDED)
            return self._solve(moments, sample, start, self.settings.max_iter, goal)
        chosen = self._chosen(moments, sample)
        self.best = chosen
        moments = moments.combined(self._moments(self.validation))
        goal = max(chosen.residual, self.settings.tol, ROUNDED)
        return self._solve(moments, sample, chosen, max(chosen.n_iter, FINAL_STEPS), goal)

    def _moments(self, rows: FeatureRows) -> RowSums:
        moments = rows.moments()
        return moments if self.settings.fit_intercept else moments.uncentered()

    def _chosen(self, moments: RowSums, sample: SampledRows) -> SolverResult:
        """The best model of the validation rows, among all penalties and steps."""
        errors: dict[float, float] = {}
        together = max(1, min(PENALTIES, COLUMNS // moments.cross.shape[1]))
        waiting, best = self._first_penalties(), None
        while waiting:
            group, waiting = waiting[:together], waiting[together:]
            better, found_errors, settled = self._best_of(group, moments, sample, best, errors)
            best = better or best
            assert best is not None
            errors |= found_errors
            # Where the steps ended before they converged, errors tell more of the steps than of the
            # penalty. The best model may be that of an early step also where they did converge.
            if not waiting and self.settings.alpha is None and settled:
                waiting = beyond(errors)
        assert best is not None
        return best

    def _best_of(
        self,
        alphas: list[float],
        moments: RowSums,
        sample: SampledRows,
        best_so_far: SolverResult | None,
        others: dict[float, float],
    ) -> tuple[SolverResult | None, dict[float, float], bool]:
        """The best model with one of some penalties if it is the best of all.

        Also the least errors of all steps for every penalty, and whether the steps have converged.
        """
        assert self.validation is not None
        start = (
            best_so_far.coef
            if best_so_far is not None
            else None
            if self.start is None
            else self.start[0]
        )
        solver = self._solver(self.training, moments, sample, alphas, start, self.is_validation)
        targets, weights = self.validation.columns(), self.validation.weights
        spreads = np.where(moments.target_squares > 0, moments.target_squares / moments.count, 1.0)
        measure = self.settings.measure or SquaredErrors(targets.shape[1] * spreads)
        shares = weights / weights.sum()
        least = dict.fromkeys(alphas, np.inf)
        best, patience = None, EarlyStopping(min(others.values(), default=np.inf))
        far = SETTLED if best_so_far is None else np.inf
        n_steps, residual = 0, np.inf
        while n_steps < self.settings.max_iter:
            self._step(solver)
            n_steps += 1
            outputs = solver.outputs + moments.target_mean
            errors = np.array([shares @ measure(each, targets, weights) for each in outputs])
            least |= {
                alpha: min(least[alpha], e)
                for alpha, e in zip(alphas, errors.tolist(), strict=True)
            }
            winner, residuals = int(errors.argmin()), solver.residuals
            residual = float(residuals[winner])
            if patience.improved(float(errors[winner])):
                best = self.best = SolverResult(
                    solver.coef[winner].copy(),
                    moments.target_mean - moments.mean @ solver.coef[winner],
                    alphas[winner],
                    self.n_steps,
                    residual,
                    validation_index=self.validation_index,
                    outputs=outputs[winner].copy(),
                )
            self.report(residual, float(errors[winner]), alphas[winner])
            ended = patience.ended if residual <= SETTLED else patience.ended_slowly
            if residual <= self.settings.tol or (ended and residual <= far):
                break
            # Solutions that will not change much any more, and are worse than another one.
            settled = (residuals < SETTLED) & (errors > (1 + 2 * IMPROVEMENT) * errors[winner])
            if settled.any():
                solver.keep(~settled)
                alphas = [alpha for alpha, out in zip(alphas, settled, strict=True) if not out]
        else:
            if best is not None:
                best.exhausted = True
        return best, least, residual <= SETTLED

    def _solver(
        self,
        rows: FeatureRows,
        moments: RowSums,
        sample: SampledRows,
        alphas: list[float],
        start: Array | None,
        watched: NDArray[np.bool_] | None = None,
    ) -> ConjugateGradients:
        """Conjugate gradients whose products are passes over the rows."""
        return ConjugateGradients(
            lambda W: rows.normal_product(W, moments.mean, watched),
            moments.cross,
            alphas,
            [Preconditioner(sample, alpha) for alpha in alphas],
            start,
        )

    def _step(self, solver: ConjugateGradients) -> None:
        with one_blas_thread(SMALL_ORDER):  # more threads would mostly wait
            solver.step()
        self.n_steps += 1

    def _solve(
        self, moments: RowSums, sample: SampledRows, start: SolverResult, most: int, goal: float
    ) -> SolverResult:
        """The model of all rows with the penalty of another model, to a residual."""
        solver = self._solver(self.rows, moments, sample, [start.alpha], start.coef)

        def model() -> SolverResult:
            return replace(
                start,
                coef=solver.coef[0].copy(),
                intercept=moments.target_mean - moments.mean @ solver.coef[0],
                n_iter=self.n_steps,
                residual=float(solver.residuals[0]),
            )

        final = model()
        for _ in range(most):
            if final.residual <= goal:
                break
            self._step(solver)
            final = self.best = model()
            self.report(final.residual, None, final.alpha)
        if start.exhausted or (most == self.settings.max_iter and final.residual > goal):
            warn_of_steps(self.settings.max_iter, final.residual, self.settings.tol)
        return final

    def _first_penalties(self) -> list[float]:
        """Penalties to try, from large to small."""
        alpha = self.settings.alpha
        if alpha is None:
            return [self._coarse_guess() or self.first_guess()[0]]
        return sorted(np.atleast_1d(alpha).tolist(), reverse=True)

    def _coarse_guess(self) -> float | None:
        """The penalty of a model of some features, which becomes the start if there is none."""
        assert self.validation is not None
        which = sampled_features(self.rows.n_features, self.distinct.size)
        if which is None:
            return None
        statistics = self.training.statistics(which)
        fit_intercept = self.settings.fit_intercept
        model = coarse_model(statistics, which, self.validation, fit_intercept=fit_intercept)
        if model is None:
            return None
        if self.start is None:
            self.start = model.coef, None
        alpha = self.weight_unit * model.alpha
        self.settings.report(f"a model of {which.size} of the features: alpha {alpha:.3g}")
        return model.alpha


def beyond(errors: dict[float, float]) -> list[float]:
    """The neighbors of the best penalty that were not tried, from large to small.

    There are none if the best one is hardly better than another: where the steps were ended before
    they converged, any smaller penalty seems to be a little better.
    """
    best = min(errors, key=lambda alpha: errors[alpha])
    others = [error for alpha, error in errors.items() if alpha != best]
    clearly = errors[best] < (1 - IMPROVEMENT) * min(others, default=np.inf)
    if not clearly or len(errors) >= MOST_PENALTIES:
        return []
    larger = [best * RATIO] if best == max(errors) else []
    smaller = [best / RATIO] if best == min(errors) else []
    return larger + smaller
