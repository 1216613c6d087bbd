"""Learning by passes over the rows in which the features are computed again.

It needs memory for a few vectors of weights instead of the matrix of all pairs of features, so it
goes where one pass ends: very many features, and losses other than the squared error.

1. Some rows are held out: a sample of the distinct rows that does not depend on their order.
2. The others are learned for several penalties, each step of the solver taking one pass. A step
   after which the held-out rows are not predicted better ends this, or a small residual.
3. The model is learned from all rows with the best penalty, starting from the weights of the second
   part, as far as that went.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from kitchenette.learning.accumulation import Targets
from kitchenette.learning.conjugate_gradients import ConjugateGradients
from kitchenette.learning.losses import Huber, Logistic, Loss, Quantile, SquaredHinge
from kitchenette.learning.memory import check_memory
from kitchenette.learning.passes import FeatureRows, Moments
from kitchenette.learning.preconditioner import (
    FEATURE_BYTES,
    Preconditioner,
    SampledRows,
    gram_of_rows,
    sample_size,
)
from kitchenette.learning.quasi_newton import QuasiNewton
from kitchenette.learning.threads import one_blas_thread

Array = NDArray[np.float64]
PILOT_ROWS = 2048  # rows from which the first penalty is chosen
TREND_PARTS = 4  # and parts of them, which show how it depends on the number of rows
TREND_LIMITS = -1.5, 0.0  # the power of the number of rows
FACTOR_LIMITS = np.log(1e-4), 0.0
RATIO = 4.0  # between neighbouring penalties
PENALTIES = 3  # that are solved for in the same passes
LARGER = 1  # of these is larger than the guess
COLUMNS = 64  # the largest number of targets times penalties in the same passes
PATIENCE = 2  # steps without improvement on held-out rows
IMPROVEMENT = 2e-3  # the part of an error that counts as one
HELD_OUT_PART = 5  # at most every fifth row is held out
LEAST_HELD_OUT = 20
MOST_PENALTIES = 12
REFRESHED_STEPS = 5  # steps after which the preconditioner is computed for the present model
LEAST_CURVATURE = 1e-3  # of the largest one, for a row of the preconditioner
# Thresholds in units of the robust standard deviation of the errors of a first model.
HUBER_THRESHOLD, QUANTILE_WIDTH = 1.35, 0.1
ROBUST = 1.4826  # the standard deviation of a normal distribution by its median absolute value
# The second derivative of a loss in a typical model: penalties are compared in its units.
TYPICAL_CURVATURE = {"logistic": 0.05, "squared_hinge": 0.5, "huber": 0.8, "quantile": 0.3}
NO_ROWS_TO_CHOOSE = (
    "Several penalties need rows to choose one of them: validation_rows is 0, or there are too "
    "few rows."
)


@dataclass(frozen=True)
class Settings:
    """How to learn.

    Attributes
    ----------
    alpha : float, ndarray or None
        The penalty; several, of which the held-out rows choose one; or None to find one.
    fit_intercept : bool
        Whether there is an intercept.
    max_iter : int
        The largest number of steps, for the held-out rows and for all rows each.
    tol : float
        The residual, relative to the right-hand side, at which the solver stops.
    validation_rows : int
        How many rows are held out.
    report : callable or None
        Called with a line of text after each step.
    """

    alpha: float | Array | None
    fit_intercept: bool
    max_iter: int
    tol: float
    validation_rows: int
    report: Callable[[str], None] | None = None


@dataclass
class Learned:
    """A linear model of features, and how it was found.

    Attributes
    ----------
    coef, intercept : ndarrays of shape (n_features, n_outputs) and (n_outputs,)
        The model.
    alpha : float
        The penalty.
    n_iter : int
        The number of steps, each of which is a pass over the rows.
    residual : float
        The residual that was reached.
    held_out : ndarray of int
        The rows that were held out.
    outputs : ndarray of shape (n_held_out, n_outputs)
        Their outputs in a model that has not seen them.
    """

    coef: Array
    intercept: Array
    alpha: float
    n_iter: int = 0
    residual: float = np.inf
    held_out: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    outputs: Array = field(default_factory=lambda: np.empty((0, 0)))


def check_iterative_memory(n_rows: int, n_features: int, n_targets: int) -> None:
    """Refuse what exceeds the memory before any of it is allocated."""
    together = max(1, min(PENALTIES, COLUMNS // n_targets))
    order = min(sample_size(n_rows, n_features), n_features)
    needed = {
        "the weights and as many directions": 8 * (6 * together + 4) * n_features * n_targets,
        "the preconditioner": (4 + 8 * (1 + together)) * order * order,
        "blocks of features": 2 * FEATURE_BYTES,
    }
    advice = "Use fewer features."
    check_memory(f"Learning from {n_features} features in many passes", needed, advice)


def learn(
    rows: FeatureRows, loss: str, settings: Settings, *, level: float = 0.5, start: Any = None
) -> Learned:
    """Learn a model in passes over rows.

    Parameters
    ----------
    rows : FeatureRows
        The rows, with their targets and weights.
    loss : str
        The name of a loss.
    settings : Settings
        How to learn.
    level : float, default=0.5
        The quantile, for the loss "quantile".
    start : pair of ndarrays, optional
        Weights and intercept of a model to begin with.

    Returns
    -------
    learned : Learned
    """
    learner = SquaredLearner if loss == "squared" else SmoothLearner
    return learner(rows, loss, settings, level, start).run()


class Learner:
    """The parts that all losses have in common."""

    best: Learned | None = None  # a usable model, if somebody interrupts

    def __init__(self, rows: FeatureRows, loss: str, settings: Settings, level: float, start: Any):
        self.rows, self.loss_name, self.settings = rows, loss, settings
        self.level, self.start = level, start
        self.n_steps = 0
        order, held_out = self._ordered_by_key()
        self.held_out = np.sort(held_out)
        self.is_held_out = np.zeros(rows.n_rows, dtype=bool)
        self.is_held_out[held_out] = True
        self.training = rows.weighted(np.where(self.is_held_out, 0.0, rows.weights))
        self.held_rows = rows.some(self.held_out) if held_out.size else None
        self.sampled = order[: sample_size(order.size, rows.n_features)]
        self.pilot = self.sampled[:PILOT_ROWS]

    def _ordered_by_key(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows to be learned in the order of their keys, and rows to be held out.

        The order is random, and does not depend on that in which the rows came. Equal rows are all
        held out or none of them.
        """
        keys = self.rows.keys()
        order = np.argsort(keys, kind="stable")
        order = order[self.rows.weights[order] > 0]
        n_held_out = min(self.settings.validation_rows, order.size // HELD_OUT_PART)
        if n_held_out < LEAST_HELD_OUT:
            return order, order[:0]
        last = np.searchsorted(keys[order], keys[order[n_held_out - 1]], side="right")
        if order.size - last < LEAST_HELD_OUT:
            return order, order[:0]
        return order[last:], order[:last]

    def run(self) -> Learned:
        try:
            return self.learned()
        except KeyboardInterrupt:
            if self.best is None:
                raise
            warnings.warn(
                f"Interrupted after {self.n_steps} steps: the model is the best one so far.",
                ConvergenceWarning,
                stacklevel=6,
            )
            return self.best

    def learned(self) -> Learned:
        raise NotImplementedError

    def report(self, residual: float, error: float | None, alpha: float) -> None:
        if self.settings.report is not None:
            held_out = "" if error is None else f", error on held-out rows {error:.5g}"
            self.settings.report(
                f"step {self.n_steps}: alpha {alpha:.3g}, residual {residual:.2g}{held_out}"
            )

    def sampled_rows(self, mean: Array) -> SampledRows:
        """The rows of the preconditioner."""
        some = self.training.some(self.sampled)
        return SampledRows(some, mean, float(self.training.weights.sum()))

    def first_guess(self) -> tuple[float, Array]:
        """The penalty of the least leave-one-out error on a few rows, and these errors."""
        some = self.training.some(self.pilot)
        nothing = np.zeros(some.n_features)
        gram = gram_of_rows(some, nothing, np.ones(some.n_rows)).astype(np.float64)
        columns, n_rows = some.columns(), int(np.count_nonzero(self.training.weights))
        alpha, errors = pilot_penalty(gram, columns, self.settings.fit_intercept)
        return alpha * self._trend(gram, columns, alpha, n_rows), errors

    def _trend(self, gram: Array, columns: Array, alpha: float, n_rows: int) -> float:
        """A factor by which the best penalty of all rows differs from that of a few rows.

        It is extrapolated from still fewer rows: penalties are powers of the number of rows, about.
        """
        n_few, step = len(gram), len(gram) // TREND_PARTS
        if step < LEAST_HELD_OUT or n_rows <= n_few:
            return 1.0
        parts = [slice(i * step, (i + 1) * step) for i in range(TREND_PARTS)]
        fewer = [
            pilot_penalty(gram[part, part], columns[part], self.settings.fit_intercept)[0]
            for part in parts
        ]
        slope = np.log(alpha / np.exp(np.log(fewer).mean())) / np.log(TREND_PARTS)
        exponent = float(np.clip(slope, *TREND_LIMITS)) * np.log(n_rows / n_few)
        return float(np.exp(np.clip(exponent, *FACTOR_LIMITS)))


class Patience:
    """Remembers the best error, and ends after some steps that did not improve it."""

    def __init__(self) -> None:
        self.least = np.inf
        self._waited = 0

    def improved(self, error: float) -> bool:
        """Whether this is the least error so far."""
        clearly = error < (1 - IMPROVEMENT) * self.least
        self._waited = 0 if clearly else self._waited + 1
        better = error < self.least
        self.least = min(error, self.least)
        return better

    @property
    def ended(self) -> bool:
        return self._waited >= PATIENCE


# ---------------------------------------------------------------- the squared loss


class SquaredLearner(Learner):
    """Conjugate gradients for all penalties at once."""

    def learned(self) -> Learned:
        moments = self._moments(self.training)
        sample = self.sampled_rows(moments.mean)
        if self.held_rows is None:
            alpha = self._single_penalty()
            start = None if self.start is None else self.start[0]
            return self._solve(self.rows, moments, sample, alpha, start, None, 0.0)
        chosen = self._chosen(moments, sample)
        self.best = chosen
        moments = moments.combined(self._moments(self.held_rows))
        final = self._solve(
            self.rows, moments, sample, chosen.alpha, chosen.coef, chosen.n_iter, chosen.residual
        )
        final.held_out, final.outputs = chosen.held_out, chosen.outputs
        return final

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
        least = np.full(len(alphas), np.inf)
        best, patience = None, Patience()
        n_steps = 0
        while n_steps < self.settings.max_iter:
            solver.step()
            n_steps += 1
            self.n_steps += 1
            outputs = solver.outputs + moments.target_mean
            squares = np.square(outputs - targets) / spreads
            errors = np.einsum("pnt,n->p", squares, weights) / (weights.sum() * targets.shape[1])
            least = np.minimum(least, errors)
            winner = int(errors.argmin())
            residual = float(solver.residuals[winner])
            if patience.improved(float(errors[winner])) and errors[winner] < min(
                others.values(), default=np.inf
            ):
                best = self.best = Learned(
                    solver.coef[winner].copy(),
                    moments.target_mean - moments.mean @ solver.coef[winner],
                    alphas[winner],
                    n_steps,
                    residual,
                    self.held_out,
                    outputs[winner].copy(),
                )
            self.report(residual, float(errors[winner]), alphas[winner])
            if patience.ended or residual <= self.settings.tol:
                break
        return best, dict(zip(alphas, least.tolist(), strict=True))

    def _solve(
        self,
        rows: FeatureRows,
        moments: Moments,
        sample: SampledRows,
        alpha: float,
        start: Array | None,
        most: int | None,
        residual: float,
    ) -> Learned:
        """The model of all rows with one penalty, to a residual."""
        solver = ConjugateGradients(
            rows,
            moments.mean,
            moments.cross,
            [alpha],
            [Preconditioner(sample, alpha)],
            None,
            start,
        )
        goal = max(residual, self.settings.tol)
        n_steps, most = 0, self.settings.max_iter if most is None else most
        while solver.residuals[0] > goal and n_steps < most:
            solver.step()
            n_steps += 1
            self.n_steps += 1
            coef = solver.coef[0]
            self.best = Learned(
                coef.copy(),
                moments.target_mean - moments.mean @ coef,
                alpha,
                self.n_steps,
                float(solver.residuals[0]),
            )
            self.report(self.best.residual, None, alpha)
        if solver.residuals[0] > goal and most == self.settings.max_iter:
            warn_of_steps(most, float(solver.residuals[0]), self.settings.tol)
        coef = solver.coef[0]
        return Learned(
            coef,
            moments.target_mean - moments.mean @ coef,
            alpha,
            self.n_steps,
            float(solver.residuals[0]),
        )

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


def warn_of_steps(steps: int, residual: float, tol: float) -> None:
    warnings.warn(
        f"The solver stopped after max_iter={steps} steps with a residual of {residual:.2g}; "
        f"asked for was tol={tol:.2g}. The model is usable; a larger penalty or more steps make "
        "it exact.",
        ConvergenceWarning,
        stacklevel=2,
    )


def pilot_penalty(gram: Array, Y: Array, fit_intercept: bool) -> tuple[float, Array]:
    """The penalty of the least leave-one-out error of kernel ridge regression on a few rows.

    Parameters
    ----------
    gram : ndarray of shape (n_rows, n_rows)
        Inner products of the features.
    Y : ndarray of shape (n_rows, n_targets)
        Target columns.
    fit_intercept : bool
        Whether features and targets are centred.

    Returns
    -------
    alpha : float
        The penalty.
    errors : ndarray of shape (n_rows, n_targets)
        The errors of models that have not seen the row.
    """
    if fit_intercept:
        gram = gram - gram.mean(axis=0)
        gram -= gram.mean(axis=1, keepdims=True)
        Y = Y - Y.mean(axis=0)
    with one_blas_thread(gram.shape[0]):
        values, vectors = eigh(gram, overwrite_a=True)
    values = np.maximum(values, 0)
    trace = float(values.sum())
    if not trace > 0:
        return 1.0, Y
    rotated, squares = vectors.T @ Y, np.square(vectors)
    spreads = np.square(Y).mean(axis=0)
    spreads = np.where(spreads > 0, spreads, 1.0)
    best, least, found = 1.0, np.inf, Y
    for alpha in trace * 10 ** np.arange(-8.0, 2.0, 0.5):
        shrunk = values / (values + alpha)
        leverages = squares @ shrunk + fit_intercept / len(Y)
        residuals = (Y - vectors @ (shrunk[:, None] * rotated)) / np.maximum(1 - leverages, 1e-10)[
            :, None
        ]
        error = float((np.square(residuals) / spreads).sum())
        if error < least:
            best, least, found = float(alpha), error, residuals
    return best, found


# ---------------------------------------------------------------- other losses


class SmoothLearner(Learner):
    """Preconditioned L-BFGS, from large penalties to small ones."""

    def learned(self) -> Learned:
        alpha = self.settings.alpha
        guess, errors = 1.0, np.empty((0, 0))
        if alpha is None or self.loss_name not in CLASS_LOSSES:
            guess, errors = self.first_guess()
        scales = self._prepare_targets(errors)
        moments = self.training.moments()
        self.mean = moments.mean if self.settings.fit_intercept else np.zeros_like(moments.mean)
        self.sample = self.sampled_rows(self.mean)
        self.scale: float | None = None
        self.units = scales
        start = self._origin(moments)
        guess *= TYPICAL_CURVATURE[self.loss_name]
        if self.held_rows is None:
            one = guess if alpha is None else self._one_of(alpha)
            return self._in_units(self._solve(self.rows, one, start, None, self.settings.tol)[0])
        if alpha is None:
            chosen = self._along_the_path(guess, start)
        else:
            chosen = self._among(np.atleast_1d(alpha), start)
        goal = max(self.settings.tol, chosen.residual)
        final = self._solve(self.rows, chosen.alpha, chosen, None, goal)[0]
        final.held_out, final.outputs = self.held_out, chosen.outputs
        return self._in_units(final)

    # ------------------------------------------------------------ the loss and its units

    def _prepare_targets(self, errors: Array) -> Array:
        """Make the loss. Targets that are numbers are divided by the spread of their errors."""
        if self.loss_name in CLASS_LOSSES:
            self.loss: Loss = CLASS_LOSSES[self.loss_name]()
            return np.ones(1)
        scales = ROBUST * np.median(np.abs(errors), axis=0)
        typical = np.abs(errors).mean(axis=0)
        scales = np.where(scales > 1e-3 * typical, scales, np.where(typical > 0, typical, 1.0))
        if self.loss_name == "huber":
            self.loss = Huber(HUBER_THRESHOLD)
        else:
            self.loss = Quantile(self.level, QUANTILE_WIDTH)
        self.rows = self.rows.with_targets(ScaledTargets(self.rows.kind, scales))
        self.training = self.rows.weighted(self.training.weights)
        if self.held_rows is not None:
            self.held_rows = self.rows.some(self.held_out)
        return scales

    def _in_units(self, found: Learned) -> Learned:
        found.coef = found.coef * self.units
        found.intercept = found.intercept * self.units
        found.outputs = found.outputs * self.units
        return found

    def _origin(self, moments: Moments) -> Learned:
        """A model to begin with: the given one, or a constant."""
        if self.start is not None:
            coef, intercept = self.start
            return Learned(coef / self.units, intercept / self.units, 0.0)
        shares = moments.target_mean
        if self.loss.of_labels:
            shares = np.maximum(shares, 1 / (2 * max(moments.count, 1.0)))
            constant = np.log(shares) if self.loss_name == "logistic" else 2 * shares - 1
            if constant.size == 2:
                constant = np.log(shares[1:] / shares[:1])
                constant = constant if self.loss_name == "logistic" else shares[1:] - shares[:1]
        else:
            columns = self.training.some(self.pilot).columns()
            constant = np.quantile(columns, self.level, axis=0)
        constant = constant if self.settings.fit_intercept else np.zeros_like(constant)
        return Learned(np.zeros((self.rows.n_features, constant.size)), constant, 0.0)

    # ------------------------------------------------------------ penalties

    @staticmethod
    def _one_of(alpha: Any) -> float:
        if np.ndim(alpha) > 0:
            raise ValueError(NO_ROWS_TO_CHOOSE)
        return float(alpha)

    def _among(self, alphas: Array, start: Learned) -> Learned:
        """The best of some penalties, each beginning with the model of the next larger one."""
        best, least = start, np.inf
        for alpha in sorted(alphas.tolist(), reverse=True):
            start, error = self._held_out_best(alpha, start)
            if error < least:
                best, least = start, error
        return best

    def _along_the_path(self, alpha: float, start: Learned) -> Learned:
        """Smaller penalties while they are better; larger ones if the first is not."""
        best, least = self._held_out_best(alpha * RATIO, start)
        other, error = self._held_out_best(alpha, best)
        step, direction = 1, 1
        if error < least:
            best, least, step, direction = other, error, 0, -1
        for _ in range(MOST_PENALTIES):
            step += direction
            other, error = self._held_out_best(alpha * RATIO**step, best)
            if not error < (1 - IMPROVEMENT) * least:
                break
            best, least = other, error
        return best

    def _held_out_best(self, alpha: float, start: Learned) -> tuple[Learned, float]:
        return self._solve(self.training, alpha, start, self.is_held_out, self.settings.tol)

    # ------------------------------------------------------------ steps

    def _solve(
        self,
        rows: FeatureRows,
        alpha: float,
        start: Learned,
        watched: NDArray[np.bool_] | None,
        goal: float,
    ) -> tuple[Learned, float]:
        """A model of some rows: the last one, or the best one of watched rows, and its error."""
        solver = self._solver(rows, alpha, start.coef, self._centred(start), watched)
        best, patience, n_steps, going = start, Patience(), 0, True
        while going and n_steps < self.settings.max_iter:
            if n_steps == REFRESHED_STEPS:
                solver = self._solver(rows, alpha, solver.coef, solver.intercept, watched)
            going = solver.step()
            n_steps += 1
            self.n_steps += 1
            error = None if watched is None else self._held_out_error(solver.outputs)
            if error is None or patience.improved(error):
                best = self._model_of(solver, alpha)
                self.best = self._in_units(self._model_of(solver, alpha))
            self.report(solver.residual, error, alpha)
            if solver.residual <= goal or (error is not None and patience.ended):
                break
        else:
            if going and watched is None:
                warn_of_steps(n_steps, solver.residual, goal)
        return best, patience.least

    def _centred(self, model: Learned) -> Array:
        """The intercept of a model for centred features."""
        return model.intercept + self.mean @ model.coef

    def _model_of(self, solver: QuasiNewton, alpha: float) -> Learned:
        return Learned(
            solver.coef.copy(),
            solver.intercept - self.mean @ solver.coef,
            alpha,
            self.n_steps,
            solver.residual,
            self.held_out,
            solver.outputs,
        )

    def _held_out_error(self, outputs: Array) -> float:
        rows = self.held_rows
        assert rows is not None
        targets = rows.targets.astype(np.int32) if self.loss.of_labels else rows.columns()
        return self.loss.mean(outputs, targets, rows.weights)

    def _solver(
        self,
        rows: FeatureRows,
        alpha: float,
        coef: Array,
        centred_intercept: Array,
        watched: NDArray[np.bool_] | None,
    ) -> QuasiNewton:
        """A solver with a preconditioner for the curvature of the loss at a model."""
        curvatures = self.sample.curvatures(self.loss, coef, centred_intercept)
        largest = float(curvatures.max(initial=0)) or 1.0
        curvatures = np.maximum(curvatures, LEAST_CURVATURE * largest)
        count = float(rows.weights.sum())
        flatness = 1 / (count * float(curvatures.mean())) if self.settings.fit_intercept else 0.0
        solver = QuasiNewton(
            rows,
            self.mean,
            self.loss,
            alpha,
            Preconditioner(self.sample, alpha, curvatures),
            flatness,
            coef,
            centred_intercept,
            watched,
            self.scale,
        )
        self.scale = solver.scale
        return solver


CLASS_LOSSES: dict[str, type[Loss]] = {"logistic": Logistic, "squared_hinge": SquaredHinge}


@dataclass(frozen=True)
class ScaledTargets:
    """Target columns divided by constants."""

    kind: Targets
    scales: Array

    def columns(self, targets: NDArray[Any]) -> Array:
        return self.kind.columns(targets) / self.scales

    def target_numbers(self, targets: NDArray[Any]) -> Array:
        return self.kind.target_numbers(targets)
