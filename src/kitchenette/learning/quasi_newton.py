"""Preconditioned L-BFGS for any smooth convex loss of a linear model of features.

Each step takes one pass over the rows unless it must be shortened, which is rare. The
preconditioner, the inverse of the penalized matrix of the squared loss for a sample of the rows,
stands where plain L-BFGS has a multiple of the identity; without it hundreds of steps are needed.

References
----------
Nocedal and Wright, Numerical optimization, 2006, algorithms 7.4 and 7.5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.learning.iterative import (
    IMPROVEMENT,
    MOST_PENALTIES,
    PILOT_ROWS,
    RATIO,
    EarlyStopping,
    IterativeSolver,
    SolverResult,
    warn_of_steps,
)
from kitchenette.learning.losses import Loss, weighted_quantile
from kitchenette.learning.passes import FeatureRows, RowSums
from kitchenette.learning.preconditioner import Preconditioner
from kitchenette.learning.target_coding import TargetCoding
from kitchenette.resources import SMALL_ORDER, one_blas_thread

Array = NDArray[np.float64]
MEMORY = 10  # pairs of steps and changes of the gradient; Nocedal and Wright advise 3 to 20
SUFFICIENT = 1e-4  # the share of the expected decrease that suffices (Nocedal and Wright, 3.1)
HALVINGS = 30  # of a step, after which it is below the rounding errors of the model
SHORTER = 0.1, 0.5  # a step that does not suffice is shortened by a factor between these
REFRESHED_STEPS = 5  # after which the preconditioner is computed for the curvature of the model
# If the model of the training rows was stopped early, the model of all rows, which starts from it,
# stops at this residual or after this number of steps.
COARSE, FINAL_STEPS = 0.01, 20
ROUNDING = 1e-12  # smaller errors, relative to the targets, are rounding errors
# Smaller errors of the first model, relative to the spread of the targets, are of an interpolation
# and no unit of the loss: all targets would be where it is linear, so that steps hardly converge.
INTERPOLATED = 1e-6
RELATIVE_GRADIENT = 1e-8  # smaller gradients, relative to the largest one, are rounding errors
LEAST_CURVATURE = 1e-3  # of the largest one: rows without curvature would leave directions free
ROBUST = 1.4826  # the standard deviation of a normal distribution by its median absolute value


@dataclass(eq=False)
class QuasiNewton:
    """A model that improves with every step.

    Its outputs are (z - mean)' W + c; the penalty is alpha / 2 |W|^2. After each step ``objective``
    is the loss plus the penalty, and ``outputs`` has the outputs of the watched rows.
    """

    rows: FeatureRows
    mean: Array  # the weighted mean of the features
    loss: Loss
    alpha: float  # the penalty
    # the preconditioner: approximately the inverse of the matrix of second derivatives
    inverse: Callable[[Array], Array]
    # the inverse of the second derivative in the intercept; 0 to keep it as it is
    inverse_curvature: float
    point: Array  # the weights W and, in the last row, the intercept c
    watched: NDArray[np.bool_] | None = None  # the rows that are predicted after each step
    # the norm of a gradient of which residuals are fractions; by default that of the first one
    unit: float | None = None

    def __post_init__(self) -> None:
        self._pairs: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)
        self._factor = 1.0
        self._adopt(self.point, *self._at(self.point))
        self.scale = float(np.linalg.norm(self._gradient)) if self.unit is None else self.unit

    @property
    def coef(self) -> Array:
        return self.point[:-1]

    @property
    def intercept(self) -> Array:
        return self.point[-1]

    @property
    def residual(self) -> float:
        return float(np.linalg.norm(self._gradient)) / self.scale if self.scale > 0 else 0.0

    def step(self) -> bool:
        """Improve the model; False if rounding errors forbid any improvement."""
        with one_blas_thread(SMALL_ORDER):  # more threads would mostly wait
            return self._step()

    def _step(self) -> bool:
        direction = -self._inverse_hessian(self._gradient)
        slope = float(np.vdot(direction, self._gradient))
        if not slope < 0:
            return False
        length = 1.0
        for _ in range(HALVINGS):
            point = self.point + length * direction
            objective, gradient, outputs = self._at(point)
            if objective <= self.objective + SUFFICIENT * length * slope:
                break
            # Where a parabola through both objectives has its minimum (Nocedal and Wright, 3.58).
            excess = objective - self.objective - length * slope
            length *= float(np.clip(-length * slope / (2 * excess), *SHORTER))
        else:
            return False
        step, change = point - self.point, gradient - self._gradient
        curvature = float(np.vdot(step, change))
        if curvature > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self._pairs.append((step, change, 1 / curvature))
            # The preconditioner is scaled to the curvature along the last step.
            length = float(np.vdot(change, self._preconditioned(change)))
            self._factor = curvature / length if length > 0 else 1.0
        self._adopt(point, objective, gradient, outputs)
        return True

    def _adopt(self, point: Array, objective: float, gradient: Array, outputs: Array) -> None:
        self.point, self.objective, self._gradient = point, objective, gradient
        self.outputs = outputs

    def _at(self, point: Array) -> tuple[float, Array, Array]:
        """The objective, its gradient, and the outputs of the watched rows."""
        W, c = point[:-1], point[-1]
        pass_ = self.rows.gradient(self.loss, W, c - self.mean @ W, self.watched)
        gradient = np.empty_like(point)
        gradient[:-1] = pass_.weights - np.outer(self.mean, pass_.intercept) + self.alpha * W
        gradient[-1] = pass_.intercept if self.inverse_curvature > 0 else 0.0
        objective = pass_.loss + self.alpha / 2 * float(np.vdot(W, W))
        return objective, gradient, pass_.outputs

    def _inverse_hessian(self, gradient: Array) -> Array:
        """The product with the inverse Hessian, by the two-loop recursion of L-BFGS."""
        direction, parts = gradient.copy(), []
        for step, change, scale in reversed(self._pairs):
            part = scale * float(np.vdot(step, direction))
            direction -= part * change
            parts.append(part)
        direction = self._factor * self._preconditioned(direction)
        for (step, change, scale), part in zip(self._pairs, reversed(parts), strict=True):
            direction += (part - scale * float(np.vdot(change, direction))) * step
        return direction

    def _preconditioned(self, gradient: Array) -> Array:
        scaled = np.empty_like(gradient)
        scaled[:-1] = self.inverse(np.ascontiguousarray(gradient[:-1]))
        scaled[-1] = self.inverse_curvature * gradient[-1]
        return scaled


@dataclass(frozen=True)
class ScaledTargets(TargetCoding):
    """Target columns divided by constants."""

    coding: TargetCoding
    scales: Array

    def columns(self, targets: NDArray[Any]) -> Array:
        return self.coding.columns(targets) / self.scales

    def target_numbers(self, targets: NDArray[Any]) -> Array:
        return self.coding.target_numbers(targets)


class SmoothSolver(IterativeSolver):
    """Preconditioned L-BFGS, from large penalties to small ones."""

    def learned(self) -> SolverResult:
        alpha = self.settings.alpha
        guess, errors = 1.0, np.empty((0, 0))
        if self.loss.of_labels and self.settings.guess is not None:
            # Larger than the best one: the models of a path from above are better than those of
            # steps that begin far away.
            guess = self.settings.guess / self.loss.typical_curvature
        elif alpha is None or not self.loss.of_labels:
            guess, errors = self.first_guess()
        self.units = self._prepare_targets(errors)
        moments = self.training.moments()
        self.mean = moments.mean if self.settings.fit_intercept else np.zeros_like(moments.mean)
        self.sample = self.sampled_rows(self.mean)
        self.least = np.inf
        start = self._origin(moments)
        self.scale: float | None = None
        # A smaller gradient than this consists of rounding errors, because the features are
        # constant. Residuals are not measured in units of it.
        self.least_scale = (
            RELATIVE_GRADIENT * moments.count * (1 + float(np.linalg.norm(self.mean)))
        )
        if self.start is not None:
            self.scale = max(self._gradient_norm(start), self.least_scale)
            coef, intercept = self.start
            start = replace(start, coef=coef / self.units, intercept=intercept / self.units)
        guess *= self.loss.typical_curvature
        if self.validation is None:
            one = guess if alpha is None else self.only_penalty()
            return self._in_units(self._solve(self.rows, one, start, None, self.settings.tol)[0])
        if alpha is None:
            chosen = self._along_the_path(guess, start)
        else:
            chosen = self._among(np.atleast_1d(alpha), start)
        goal = max(self.settings.tol, min(chosen.residual, COARSE))
        final = self._solve(self.rows, chosen.alpha, chosen, None, goal)[0]
        return self._in_units(final)

    # ------------------------------------------------------------ the loss and its units

    def _prepare_targets(self, errors: Array) -> Array:
        """Divide targets that are numbers by the spread of their errors, the unit of losses."""
        if self.loss.of_labels:
            return np.ones(1)
        sizes = np.abs(errors)
        weights = self.distinct_weights[: len(errors)]
        scales = ROBUST * np.array([weighted_quantile(size, weights, 0.5) for size in sizes.T])
        typical = np.average(sizes, axis=0, weights=weights)
        columns = self._first_distinct(PILOT_ROWS).columns()
        largest, spread = np.abs(columns).max(axis=0), np.ptp(columns, axis=0)
        # The errors of a column of equal targets are rounding errors and no measure of spread.
        instead = np.where(spread > ROUNDING * largest, spread, np.where(largest > 0, largest, 1))
        floor = np.maximum(ROUNDING * largest, INTERPOLATED * spread)
        typical = np.where(typical > floor, typical, instead)
        scales = np.where(scales > 1e-3 * typical, scales, typical)
        self.rows = replace(self.rows, coding=ScaledTargets(self.rows.coding, scales))
        self.training = self.rows.weighted(self.training.weights)
        if self.validation is not None:
            self.validation = self.rows_for_validation()
        return scales

    def _in_units(self, result: SolverResult) -> SolverResult:
        return replace(
            result,
            coef=result.coef * self.units,
            intercept=result.intercept * self.units,
            outputs=result.outputs * self.units,
        )

    def _origin(self, moments: RowSums) -> SolverResult:
        """The model to begin with: a constant and no weights."""
        shares = np.maximum(moments.target_mean, 1 / (2 * max(moments.count, 1.0)))
        constant = self.loss.start(self._first_distinct(PILOT_ROWS).columns(), shares)
        constant = constant if self.settings.fit_intercept else np.zeros_like(constant)
        nothing = np.zeros((self.rows.n_features, constant.size))
        return SolverResult(nothing, constant, 0.0, outputs=nothing[:0])

    def _gradient_norm(self, model: SolverResult) -> float:
        """The norm of the gradient of the loss at a model."""
        gradient = self.training.gradient(self.loss, model.coef, model.intercept)
        weights = gradient.weights - np.outer(self.mean, gradient.intercept)
        intercept = gradient.intercept if self.settings.fit_intercept else 0 * gradient.intercept
        return float(np.linalg.norm(np.vstack([weights, intercept])))

    # ------------------------------------------------------------ penalties

    def _among(self, alphas: Array, start: SolverResult) -> SolverResult:
        """The best of some penalties, each beginning with the model of the next larger one."""
        best, least = start, np.inf
        for alpha in sorted(alphas.tolist(), reverse=True):
            start, error = self._validated(alpha, start)
            if error < least:
                best, least = start, error
        return best

    def _along_the_path(self, alpha: float, start: SolverResult) -> SolverResult:
        """Smaller penalties while they are better; larger ones if the first is not."""
        best, least = self._validated(alpha * RATIO, start)
        other, error = self._validated(alpha, best)
        step, direction = 1, 1
        if error < least:
            best, least, step, direction = other, error, 0, -1
        for _ in range(MOST_PENALTIES):
            step += direction
            other, error = self._validated(alpha * RATIO**step, best)
            if not error < (1 - IMPROVEMENT) * least:
                break
            best, least = other, error
        return best

    def _validated(self, alpha: float, start: SolverResult) -> tuple[SolverResult, float]:
        return self._solve(self.training, alpha, start, self.is_validation, self.settings.tol)

    # ------------------------------------------------------------ steps

    def _solve(
        self,
        rows: FeatureRows,
        alpha: float,
        start: SolverResult,
        watched: NDArray[np.bool_] | None,
        goal: float,
    ) -> tuple[SolverResult, float]:
        """A model of some rows: the last one, or the best one of watched rows, and its error."""
        solver = self._solver(rows, alpha, start.coef, self._centered(start), watched)
        best, patience, n_steps, going = start, EarlyStopping(), 0, True
        while going and n_steps < self.settings.max_iter:
            if n_steps == REFRESHED_STEPS:
                solver = self._solver(rows, alpha, solver.coef, solver.intercept, watched)
            going = solver.step()
            n_steps += 1
            self.n_steps += 1
            error = None if watched is None else self._validation_error(solver.outputs)
            if error is None or patience.improved(error):
                best = self._model_of(solver, alpha, start)
                self._keep(best, error)
            self.report(solver.residual, error, alpha)
            if solver.residual <= goal or (error is not None and patience.ended):
                going = False
            # If validation rows stopped the training early, the final model of all rows need not be
            # solved to the tolerance either.
            if watched is None and n_steps >= FINAL_STEPS and np.isfinite(start.residual):
                going = False
        best.exhausted = going
        if watched is None and (going or start.exhausted):
            warn_of_steps(self.settings.max_iter, solver.residual, self.settings.tol)
        return best, patience.least

    def _keep(self, model: SolverResult, error: float | None) -> None:
        """Remember a model for an interrupt, if it predicts the validation rows best so far."""
        if error is None or error < self.least:
            self.best = self._in_units(model)
            self.least = np.inf if error is None else error

    def _centered(self, model: SolverResult) -> Array:
        """The intercept of a model for centered features."""
        return model.intercept + self.mean @ model.coef

    def _model_of(self, solver: QuasiNewton, alpha: float, start: SolverResult) -> SolverResult:
        """The model of a solver, with outputs for validation rows that it has not seen."""
        watches = solver.outputs.shape[0] > 0
        return SolverResult(
            solver.coef.copy(),
            solver.intercept - self.mean @ solver.coef,
            alpha,
            self.n_steps,
            solver.residual,
            validation_index=self.validation_index,
            outputs=solver.outputs if watches else start.outputs,
        )

    def _validation_error(self, outputs: Array) -> float:
        rows = self.validation
        assert rows is not None
        targets = rows.targets.astype(np.int32) if self.loss.of_labels else rows.columns()
        return self.loss.mean(outputs, targets, rows.weights)

    def _solver(
        self,
        rows: FeatureRows,
        alpha: float,
        coef: Array,
        centered_intercept: Array,
        watched: NDArray[np.bool_] | None,
    ) -> QuasiNewton:
        """A solver with a preconditioner for the curvature of the loss at a model."""
        curvatures = self.sample.curvatures(self.loss, coef, centered_intercept)
        largest = float(curvatures.max(initial=0)) or 1.0
        curvatures = np.maximum(curvatures, LEAST_CURVATURE * largest)
        count = float(rows.weights.sum())
        inverse_curvature = (
            1 / (count * self.sample.mean(curvatures)) if self.settings.fit_intercept else 0.0
        )
        solver = QuasiNewton(
            rows,
            self.mean,
            self.loss,
            alpha,
            Preconditioner(self.sample, alpha, curvatures),
            inverse_curvature,
            np.vstack([coef, centered_intercept]),
            watched,
            self.scale,
        )
        self.scale = solver.scale = max(solver.scale, self.least_scale)
        return solver
