"""The squared loss in many passes: conjugate gradients along a path of penalties.

A guess of the penalty is solved for first, beginning with a model of some of the features if there
are many rows. The neighbors of this penalty begin with its solution, both in the same passes, and
end as soon as they do not predict held-out rows better. So most passes are for one penalty: with
ten classes, products with the weights for three take longer than the features.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kitchenette.learning.coarse_model import coarse_model, drawn_features
from kitchenette.learning.conjugate_gradients import SMALLEST, ConjugateGradients
from kitchenette.learning.iterative_solver import (
    IMPROVEMENT,
    MOST_PENALTIES,
    RATIO,
    EarlyStopping,
    IterativeSolver,
    SolverResult,
    warn_of_steps,
)
from kitchenette.learning.lanczos_evidence import choose_by_evidence
from kitchenette.learning.passes import FeatureRows, Moments
from kitchenette.learning.preconditioner import Preconditioner, SampledRows

Array = NDArray[np.float64]
PENALTIES = 3  # the largest number that are solved for in the same passes
FINAL_STEPS = 5  # at least, for all rows; fewer if they reach the residual of the chosen model
# The residual of a solution that will not change much any more. Above it, held-out rows do not end
# the steps for the first penalty: the first steps may predict them worse than a constant does.
SETTLED = 0.02
COLUMNS = 64  # the largest number of targets times penalties in the same passes


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

        def report(step: int, alpha: float) -> None:
            self.n_steps += 1
            if self.settings.report is not None:
                self.settings.report(
                    f"step {step} of Lanczos: alpha {self.weight_unit * alpha:.3g}"
                )

        return choose_by_evidence(
            self.rows,
            self._moments(self.rows),
            self.n_observations,
            fit_intercept=self.settings.fit_intercept,
            max_steps=self.settings.max_iter,
            report=report,
        )

    def _learned(self) -> SolverResult:
        moments = self._moments(self.training)
        sample = self.sampled_rows(moments.mean)
        if self.held_rows is None:
            coef = np.zeros_like(moments.cross) if self.start is None else self.start[0]
            given = self.settings.alpha is not None
            alpha = self.only_penalty() if given else self.first_guess()[0]
            start = SolverResult(coef, moments.target_mean, alpha)
            goal = max(self.settings.tol, SMALLEST)
            return self._solve(moments, sample, start, self.settings.max_iter, goal)
        chosen = self._chosen(moments, sample)
        self.best = chosen
        moments = moments.combined(self._moments(self.held_rows))
        goal = max(chosen.residual, self.settings.tol, SMALLEST)
        return self._solve(moments, sample, chosen, max(chosen.n_iter, FINAL_STEPS), goal)

    def _moments(self, rows: FeatureRows) -> Moments:
        moments = rows.moments()
        return moments if self.settings.fit_intercept else moments.uncentered()

    def _chosen(self, moments: Moments, sample: SampledRows) -> SolverResult:
        """The best model of the held-out rows, among all penalties and steps."""
        errors: dict[float, float] = {}
        together = max(1, min(PENALTIES, COLUMNS // moments.cross.shape[1]))
        waiting, found = self._first_penalties(), None
        while waiting:
            group, waiting = waiting[:together], waiting[together:]
            better, found_errors, settled = self._best_of(group, moments, sample, found, errors)
            found = better or found
            assert found is not None
            errors |= found_errors
            # Where the steps ended before they converged, errors tell more of the steps than of the
            # penalty. The best model may be that of an early step also where they did converge.
            if not waiting and self.settings.alpha is None and settled:
                waiting = beyond(errors)
        assert found is not None
        return found

    def _best_of(
        self,
        alphas: list[float],
        moments: Moments,
        sample: SampledRows,
        found: SolverResult | None,
        others: dict[float, float],
    ) -> tuple[SolverResult | None, dict[float, float], bool]:
        """The best model with one of some penalties if it is the best of all.

        Also the least errors of all steps for every penalty, and whether the steps have converged.
        """
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
        best, patience = None, EarlyStopping(min(others.values(), default=np.inf))
        far = SETTLED if found is None else np.inf
        n_steps, residual = 0, np.inf
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
            if patience.improved(float(errors[winner])):
                best = self.best = SolverResult(
                    solver.coef[winner].copy(),
                    moments.target_mean - moments.mean @ solver.coef[winner],
                    alphas[winner],
                    self.n_steps,
                    residual,
                    held_out=self.held_out,
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

    def _solve(
        self, moments: Moments, sample: SampledRows, start: SolverResult, most: int, goal: float
    ) -> SolverResult:
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
            solver.step()
            self.n_steps += 1
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
        assert self.held_rows is not None
        which = drawn_features(self.rows.n_features, self.distinct.size)
        if which is None:
            return None
        statistics = self.training.statistics(which)
        fit_intercept = self.settings.fit_intercept
        model = coarse_model(statistics, which, self.held_rows, fit_intercept=fit_intercept)
        if model is None:
            return None
        if self.start is None:
            self.start = model.coef, None
        if self.settings.report is not None:
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
