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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from kitchenette.learning.accumulation import Targets
from kitchenette.learning.conjugate_gradients import SMALLEST, ConjugateGradients
from kitchenette.learning.losses import Huber, Logistic, Loss, Quantile, SquaredHinge
from kitchenette.learning.memory import check_memory
from kitchenette.learning.passes import FeatureRows, Moments
from kitchenette.learning.preconditioner import (
    FEATURE_BYTES,
    Preconditioner,
    SampledRows,
    gram_of_rows,
    most_rows,
    sample_size,
)
from kitchenette.learning.quantiles import weighted_quantile
from kitchenette.learning.quasi_newton import QuasiNewton
from kitchenette.learning.threads import one_blas_thread

Array = NDArray[np.float64]
EXACT_FEATURES = 8192  # up to which the first penalty is chosen in float64
CONSTANT = 4 * float(np.finfo(np.float32).eps)  # the relative spread of constant features
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
ROUNDING = 1e-12  # errors relative to the targets that are rounding
RELATIVE_SLOPE = 1e-8  # gradients relative to the largest possible one that are rounding
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
    exhausted : bool
        Whether the solver came to the largest number of steps.
    interrupted : bool
        Whether somebody interrupted the solver.
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
    exhausted: bool = False
    interrupted: bool = False
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
    rows.check_targets()
    learner = SquaredLearner if loss == "squared" else SmoothLearner
    return learner(rows, loss, settings, level, start).run()


class Learner:
    """The parts that all losses have in common."""

    best: Learned | None = None  # a usable model, if somebody interrupts

    def __init__(self, rows: FeatureRows, loss: str, settings: Settings, level: float, start: Any):
        # Weights near one cannot overflow in what follows. A power of two is exact.
        self.weight_unit = 2.0 ** float(np.floor(np.log2(rows.weights.max())))
        rows = rows.weighted(rows.weights / self.weight_unit)
        if settings.alpha is not None:
            settings = replace(settings, alpha=settings.alpha / self.weight_unit)
        self.rows, self.loss_name, self.settings = rows, loss, settings
        self.level, self.start = level, start
        self.n_steps = 0
        self._split()
        self.is_held_out = np.zeros(rows.n_rows, dtype=bool)
        self.is_held_out[self.held_out] = True
        self.training = rows.weighted(np.where(self.is_held_out, 0.0, rows.weights))
        self.held_rows = rows.some(self.held_out) if self.held_out.size else None

    def _split(self) -> None:
        """Find rows to be held out, and distinct rows to be learned in a random order.

        Both are found by the keys of the rows, so they do not depend on the order in which the rows
        came. Equal rows count as one whose weights are added, and are all held out or none of them.
        """
        counting = np.flatnonzero(self.rows.weights > 0)
        keys, first, which = np.unique(
            self.rows.keys()[counting], return_index=True, return_inverse=True
        )
        n_held_out = min(self.settings.validation_rows, keys.size // HELD_OUT_PART)
        n_held_out = n_held_out if n_held_out >= LEAST_HELD_OUT else 0
        self.held_out = counting[which < n_held_out]
        self.distinct = counting[first[n_held_out:]]
        weights: Array = np.bincount(which, self.rows.weights[counting]).astype(np.float64)
        self.distinct_weights = weights[n_held_out:]

    def _first_distinct(self, count: int) -> FeatureRows:
        """Some of the distinct rows to be learned."""
        some = self.training.some(self.distinct[:count])
        return some.weighted(self.distinct_weights[:count])

    def run(self) -> Learned:
        """The model with its penalty in the unit of the given weights."""
        found = self._learned_or_best()
        return replace(found, alpha=found.alpha * self.weight_unit)

    def _learned_or_best(self) -> Learned:
        try:
            return self.learned()
        except KeyboardInterrupt:
            if self.best is None:
                raise
            warnings.warn(
                f"Interrupted after {self.n_steps} steps: the model is the best one so far.",
                ConvergenceWarning,
                stacklevel=7,
            )
            return replace(self.best, n_iter=self.n_steps, interrupted=True)

    def learned(self) -> Learned:
        raise NotImplementedError

    def report(self, residual: float, error: float | None, alpha: float) -> None:
        if self.settings.report is not None:
            held_out = "" if error is None else f", error on held-out rows {error:.5g}"
            self.settings.report(
                f"step {self.n_steps}: alpha {self.weight_unit * alpha:.3g}, "
                f"residual {residual:.2g}{held_out}"
            )

    def sampled_rows(self, mean: Array) -> SampledRows:
        """The rows of the preconditioner."""
        count = sample_size(self.distinct.size, self.rows.n_features)
        return SampledRows(self._first_distinct(count), mean, float(self.training.weights.sum()))

    def first_guess(self) -> tuple[float, Array]:
        """The penalty of the least leave-one-out error on a few rows, and these errors."""
        some = self._first_distinct(min(PILOT_ROWS, most_rows(self.rows.n_features)))
        mean = some.moments().mean
        if not self.settings.fit_intercept:
            mean = np.zeros_like(mean)
        exact = some.n_features <= EXACT_FEATURES
        gram = gram_of_rows(
            some, mean, np.ones(some.n_rows), np.float64 if exact else np.float32
        ).astype(np.float64)
        size = float(mean @ mean)
        whole = Pilot(gram, some.columns(), some.weights, size, self.settings.fit_intercept)
        alpha, errors = whole.penalty()
        return alpha * self._trend(whole, alpha), errors

    def _trend(self, whole: Pilot, alpha: float) -> float:
        """A factor by which the best penalty of all rows differs from that of a few rows.

        It is extrapolated from still fewer rows: penalties are powers of the number of rows, about.
        """
        n_few, n_rows = len(whole.gram), self.distinct.size
        step = n_few // TREND_PARTS
        if step < LEAST_HELD_OUT or n_rows <= n_few:
            return 1.0
        parts = [whole.part(slice(i * step, (i + 1) * step)) for i in range(TREND_PARTS)]
        fewer = np.log([part.penalty()[0] for part in parts]).mean()
        slope = (np.log(alpha) - fewer) / np.log(TREND_PARTS)
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
                    held_out=self.held_out,
                    outputs=outputs[winner].copy(),
                )
            self.report(residual, float(errors[winner]), alphas[winner])
            if patience.ended or residual <= self.settings.tol:
                break
        else:
            if best is not None:
                best.exhausted = True
        return best, dict(zip(alphas, least.tolist(), strict=True))

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


def warn_of_steps(steps: int, residual: float, tol: float) -> None:
    warnings.warn(
        f"The solver stopped after max_iter={steps} steps with a residual of {residual:.2g}; "
        f"asked for was tol={tol:.2g}. The model is usable; a larger penalty or more steps make "
        "it exact.",
        ConvergenceWarning,
        stacklevel=2,
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
    size : float
        The squared norm of the vector that was subtracted.
    fit_intercept : bool
        Whether features and targets are centred.
    """

    gram: Array
    columns: Array
    weights: Array
    size: float
    fit_intercept: bool

    def part(self, rows: slice) -> Pilot:
        """Some of the rows."""
        gram, columns, weights = self.gram[rows, rows], self.columns[rows], self.weights[rows]
        return replace(self, gram=gram, columns=columns, weights=weights)

    def penalty(self) -> tuple[float, Array]:
        """The penalty of the least leave-one-out error.

        Returns
        -------
        alpha : float
            The penalty.
        errors : ndarray of shape (n_rows, n_targets)
            The errors of models that have not seen the row.
        """
        shares, roots = self.weights / self.weights.sum(), np.sqrt(self.weights)[:, None]
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
        if not trace > CONSTANT**2 * size:
            return max(1.0, size), Y  # the features are constant up to rounding
        scaled = roots * Y
        rotated, squares = vectors.T @ scaled, np.square(vectors)
        spreads = np.square(scaled).mean(axis=0)
        spreads = np.where(spreads > 0, spreads, 1.0)
        best, least, found = 1.0, np.inf, scaled
        for alpha in trace * 10 ** np.arange(-8.0, 2.0, 0.5):
            shrunk = values / (values + alpha)
            leverages = squares @ shrunk + self.fit_intercept * shares
            left_out = np.maximum(1 - leverages, 1e-10)[:, None]
            residuals = (scaled - vectors @ (shrunk[:, None] * rotated)) / left_out
            error = float((np.square(residuals) / spreads).sum())
            if error < least:
                best, least, found = float(alpha), error, residuals
        return best, found / roots


# ---------------------------------------------------------------- other losses


class SmoothLearner(Learner):
    """Preconditioned L-BFGS, from large penalties to small ones."""

    def learned(self) -> Learned:
        alpha = self.settings.alpha
        guess, errors = 1.0, np.empty((0, 0))
        if alpha is None or self.loss_name not in CLASS_LOSSES:
            guess, errors = self.first_guess()
        self.units = self._prepare_targets(errors)
        moments = self.training.moments()
        self.mean = moments.mean if self.settings.fit_intercept else np.zeros_like(moments.mean)
        self.sample = self.sampled_rows(self.mean)
        self.least = np.inf
        start = self._origin(moments)
        self.scale: float | None = None
        # The gradient of features that are constant up to rounding, which a residual is not.
        self.least_scale = RELATIVE_SLOPE * moments.count * (1 + float(np.linalg.norm(self.mean)))
        if self.start is not None:
            self.scale = max(self._slope(start), self.least_scale)
            coef, intercept = self.start
            start = replace(start, coef=coef / self.units, intercept=intercept / self.units)
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
        return self._in_units(final)

    # ------------------------------------------------------------ the loss and its units

    def _prepare_targets(self, errors: Array) -> Array:
        """Make the loss. Targets that are numbers are divided by the spread of their errors."""
        if self.loss_name in CLASS_LOSSES:
            self.loss: Loss = CLASS_LOSSES[self.loss_name]()
            return np.ones(1)
        sizes = np.abs(errors)
        weights = self.distinct_weights[: len(errors)]
        scales = ROBUST * np.array([weighted_quantile(size, weights, 0.5) for size in sizes.T])
        typical = np.average(sizes, axis=0, weights=weights)
        # A column of equal targets has errors of rounding.
        largest = np.abs(self._first_distinct(PILOT_ROWS).columns()).max(axis=0)
        typical = np.where(typical > ROUNDING * largest, typical, np.where(largest > 0, largest, 1))
        scales = np.where(scales > 1e-3 * typical, scales, typical)
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
        return replace(
            found,
            coef=found.coef * self.units,
            intercept=found.intercept * self.units,
            outputs=found.outputs * self.units,
        )

    def _origin(self, moments: Moments) -> Learned:
        """A constant, to begin with."""
        shares = moments.target_mean
        if self.loss.of_labels:
            shares = np.maximum(shares, 1 / (2 * max(moments.count, 1.0)))
            logarithms = np.log(shares)
            logistic = logarithms - logarithms.mean()  # a common constant changes nothing
            constant = logistic if self.loss_name == "logistic" else 2 * shares - 1
            if constant.size == 2:
                constant = np.log(shares[1:] / shares[:1])
                constant = constant if self.loss_name == "logistic" else shares[1:] - shares[:1]
        else:
            columns = self._first_distinct(PILOT_ROWS).columns()
            constant = np.quantile(columns, self.level, axis=0)
        constant = constant if self.settings.fit_intercept else np.zeros_like(constant)
        nothing = np.zeros((self.rows.n_features, constant.size))
        return Learned(nothing, constant, 0.0, outputs=nothing[:0])

    def _slope(self, model: Learned) -> float:
        """The norm of the gradient of the loss at a model."""
        found = self.training.gradient(self.loss, model.coef, model.intercept)
        weights = found.weights - np.outer(self.mean, found.intercept)
        intercept = found.intercept if self.settings.fit_intercept else 0 * found.intercept
        return float(np.linalg.norm(np.vstack([weights, intercept])))

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
                best = self._model_of(solver, alpha, start)
                self._keep(best, error)
            self.report(solver.residual, error, alpha)
            if solver.residual <= goal or (error is not None and patience.ended):
                going = False
        best.exhausted = going
        if watched is None and (going or start.exhausted):
            warn_of_steps(self.settings.max_iter, solver.residual, self.settings.tol)
        return best, patience.least

    def _keep(self, model: Learned, error: float | None) -> None:
        """Remember a model for an interrupt, if it predicts the held-out rows best so far."""
        if error is None or error < self.least:
            self.best = self._in_units(model)
            self.least = np.inf if error is None else error

    def _centred(self, model: Learned) -> Array:
        """The intercept of a model for centred features."""
        return model.intercept + self.mean @ model.coef

    def _model_of(self, solver: QuasiNewton, alpha: float, start: Learned) -> Learned:
        """The model of a solver, with outputs for held-out rows that it has not seen."""
        watches = solver.outputs.shape[0] > 0
        return Learned(
            solver.coef.copy(),
            solver.intercept - self.mean @ solver.coef,
            alpha,
            self.n_steps,
            solver.residual,
            held_out=self.held_out,
            outputs=solver.outputs if watches else start.outputs,
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
        self.scale = solver.scale = max(solver.scale, self.least_scale)
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
