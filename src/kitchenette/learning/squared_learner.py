"""The squared loss in many passes: conjugate gradients for several penalties at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kitchenette.learning.conjugate_gradients import SMALLEST, ConjugateGradients
from kitchenette.learning.learner import (
    IMPROVEMENT,
    MOST_PENALTIES,
    NO_ROWS_TO_CHOOSE,
    RATIO,
    Learned,
    Learner,
    Patience,
    warn_of_steps,
)
from kitchenette.learning.passes import FeatureRows, Moments
from kitchenette.learning.preconditioner import Preconditioner, SampledRows

Array = NDArray[np.float64]
PENALTIES = 3  # that are solved for in the same passes
LARGER = 1  # of these is larger than the guess
SETTLED = 0.02  # the residual of a solution that will not change much any more
COLUMNS = 64  # the largest number of targets times penalties in the same passes


class SquaredLearner(Learner):
    """Conjugate gradients for all penalties at once."""

    def learned(self) -> Learned:
        moments = self._moments(self.training)
        sample = self.sampled_rows(moments.mean)
        if self.held_rows is None:
            coef = np.zeros_like(moments.cross) if self.start is None else self.start[0]
            start = Learned(coef, moments.target_mean, self._single_penalty())
            goal = max(self.settings.tol, SMALLEST)
            return self._solve(moments, sample, start, self.settings.max_iter, goal)
        chosen = self._chosen(moments, sample)
        self.best = chosen
        moments = moments.combined(self._moments(self.held_rows))
        goal = max(chosen.residual, self.settings.tol, SMALLEST)
        return self._solve(moments, sample, chosen, chosen.n_iter, goal)

    def _moments(self, rows: FeatureRows) -> Moments:
        moments = rows.moments()
        return moments if self.settings.fit_intercept else moments.uncentred()

    def _chosen(self, moments: Moments, sample: SampledRows) -> Learned:
        """The best model of the held-out rows, among all penalties and steps."""
        errors: dict[float, float] = {}
        together = max(1, min(PENALTIES, COLUMNS // moments.cross.shape[1]))
        waiting, found = self._first_penalties(), None
        while waiting:
            group, waiting = waiting[:together], waiting[together:]
            better, found_errors = self._best_of(group, moments, sample, found, errors)
            found = better or found
            errors |= found_errors
            if not waiting and self.settings.alpha is None:
                waiting = beyond(errors, min(2, together))
        assert found is not None
        return found

    def _best_of(
        self,
        alphas: list[float],
        moments: Moments,
        sample: SampledRows,
        found: Learned | None,
        others: dict[float, float],
    ) -> tuple[Learned | None, dict[float, float]]:
        """The best model with one of some penalties if it is the best of all, and all errors."""
        assert self.held_rows is not None
        start = found.coef if found is not None else None if self.start is None else self.start[0]
        solver = ConjugateGradients(
            self.training,
            moments.mean,
            moments.cross,
            alphas,
            [Preconditioner(sample, alpha) for alpha in alphas],
            self.is_held_out,
            start,
        )
        targets, weights = self.held_rows.columns(), self.held_rows.weights
        spreads = np.where(moments.target_squares > 0, moments.target_squares / moments.count, 1.0)
        least = dict.fromkeys(alphas, np.inf)
        best, patience = None, Patience()
        n_steps = 0
        while n_steps < self.settings.max_iter:
            solver.step()
            n_steps += 1
            self.n_steps += 1
            outputs = solver.outputs + moments.target_mean
            squares = np.square(outputs - targets) / spreads
            errors = np.einsum("pnt,n->p", squares, weights) / (weights.sum() * targets.shape[1])
            least |= {
                alpha: min(least[alpha], e)
                for alpha, e in zip(alphas, errors.tolist(), strict=True)
            }
            winner, residuals = int(errors.argmin()), solver.residuals
            residual = float(residuals[winner])
            if patience.improved(float(errors[winner])) and errors[winner] < min(
                others.values(), default=np.inf
            ):
                best = self.best = Learned(
                    solver.coef[winner].copy(),
                    moments.target_mean - moments.mean @ solver.coef[winner],
                    alphas[winner],
                    n_steps,
                    residual,
                    held_out=self.held_out,
                    outputs=outputs[winner].copy(),
                )
            self.report(residual, float(errors[winner]), alphas[winner])
            if patience.ended or residual <= self.settings.tol:
                break
            # Solutions that will not change much any more, and are worse than another one.
            settled = (residuals < SETTLED) & (errors > (1 + 2 * IMPROVEMENT) * errors[winner])
            if settled.any():
                solver.keep(~settled)
                alphas = [alpha for alpha, out in zip(alphas, settled, strict=True) if not out]
        else:
            if best is not None:
                best.exhausted = True
        return best, least

    def _solve(
        self, moments: Moments, sample: SampledRows, start: Learned, most: int, goal: float
    ) -> Learned:
        """The model of all rows with the penalty of another model, to a residual."""
        solver = ConjugateGradients(
            self.rows,
            moments.mean,
            moments.cross,
            [start.alpha],
            [Preconditioner(sample, start.alpha)],
            None,
            start.coef,
        )

        def model() -> Learned:
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
            solver.step()
            self.n_steps += 1
            final = self.best = model()
            self.report(final.residual, None, final.alpha)
        if start.exhausted or (most == self.settings.max_iter and final.residual > goal):
            warn_of_steps(self.settings.max_iter, final.residual, self.settings.tol)
        return final

    def _single_penalty(self) -> float:
        alpha = self.settings.alpha
        if alpha is None:
            return self.first_guess()[0]
        if np.ndim(alpha) > 0:
            raise ValueError(NO_ROWS_TO_CHOOSE)
        return float(alpha)

    def _first_penalties(self) -> list[float]:
        """Penalties to try, from large to small."""
        alpha = self.settings.alpha
        if alpha is None:
            guess = self.first_guess()[0]
            return [guess * RATIO ** (LARGER - i) for i in range(PENALTIES)]
        return sorted(np.atleast_1d(alpha).tolist(), reverse=True)


def beyond(errors: dict[float, float], count: int) -> list[float]:
    """Penalties beyond the best one if none was tried there, from large to small."""
    best = min(errors, key=lambda alpha: errors[alpha])
    if len(errors) >= MOST_PENALTIES:
        return []
    if best == min(errors):
        return [best * RATIO**-i for i in range(1, count + 1)]
    if best == max(errors):
        return [best * RATIO**i for i in range(count, 0, -1)]
    return []
