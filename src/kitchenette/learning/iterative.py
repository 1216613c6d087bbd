"""Training by passes over the rows in which the features are computed again.

It needs memory for a few vectors of weights instead of the matrix of all pairs of features, so it
goes where one pass ends: very many features, and losses other than the squared error.

1. Some rows are validation rows: a sample of the distinct rows that does not depend on their order.
2. The others are learned for several penalties, each step of the solver taking one pass. A step
   after which the validation rows are not predicted better ends this, or a small residual.
3. The model of all rows with the best penalty starts from the weights of the second part, as far as
   that went.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from kitchenette.data.keys import Keys
from kitchenette.data.observations import RULES, divided, observation_counts
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.leave_one_out import LeaveOneOut, Measure, RowSample
from kitchenette.learning.losses import Loss
from kitchenette.learning.partial import features
from kitchenette.learning.passes import FeatureRows
from kitchenette.learning.penalty import PenaltyPath, RidgeOfRows, vary
from kitchenette.learning.preconditioner import (
    SCORE_ROWS,
    TOO_LARGE,
    SampledRows,
    gram_of_rows,
    leverage_scores,
    most_rows,
    probabilities,
    sample_size,
    systematic_sample,
)
from kitchenette.maps.protocol import FittedMap
from kitchenette.resources import one_blas_thread

Array = NDArray[np.float64]
COMPARED_ROWS = 8  # maps that agree on these rows are the same: other seeds differ in every row
EXACT_FEATURES = 8192  # up to which the first penalty is chosen in float64, which costs little
# Constants of the search for a penalty, and of early stopping; see docs/scale.md, whose figures
# (`python -m benchmarks.scale`) are those of these values.
PILOT_ROWS = 2048  # whose eigendecomposition takes a few seconds
FEW_ROWS = 500  # whose errors are known to a tenth at best
RATIO = 4.0  # between neighboring penalties: the error hardly changes within a factor of two
PATIENCE = 2  # steps without improvement of the validation error
SLOW_PATIENCE = 5  # steps over which improvements are averaged where the model changes slowly
IMPROVEMENT = 2e-3  # the relative decrease of an error that is worth another pass
MOST_PENALTIES = 12  # of a ratio of 4 are seven decades, beyond which nothing is learned
VALIDATION_PART = 5  # at most every fifth row, as in five-fold cross-validation
LEAST_VALIDATION = 20  # the error of fewer rows is known to a third at best
NEARLY_ALL = 1.5  # times the size of a sample: up to this, the exact inverse costs less than a pass


@dataclass(frozen=True)
class Earlier:
    """A fitted model whose weights may be the start of another one."""

    fitted: FittedMap  # its map
    n_columns: int  # the number of columns of its data
    # its weights, as the solver has them; shapes (n_features, n_outputs) and (n_outputs,)
    coef: Array
    intercept: Array
    loss: str  # the loss that they minimize

    def start(
        self, fitted: FittedMap, rows: Any, loss: str, n_outputs: int
    ) -> tuple[Array, Array] | None:
        """Weights for another map, if its first features are those of this model's map.

        The first features of a map are the same whatever their number, up to a factor that keeps
        the kernel. A model of fewer features is therefore a model of more features in which the
        others have the weight zero. None if the maps, the losses or the numbers of outputs differ.
        """
        fewer, more = self.fitted.n_features_out_, fitted.n_features_out_
        if loss != self.loss or fewer > more:
            return None
        if rows.shape[1] != self.n_columns or n_outputs != self.intercept.size:
            return None
        first = np.arange(min(COMPARED_ROWS, rows.shape[0]))
        first_rows = rows.without_targets().take(first).X
        mine, theirs = features(self.fitted, first_rows), features(fitted, first_rows)[:, :fewer]
        factor = np.sqrt(more / fewer)
        if not np.allclose(mine, factor * theirs, rtol=1e-3, atol=1e-5 * np.abs(mine).max()):
            return None
        start = np.zeros((more, n_outputs))
        start[:fewer] = factor * self.coef
        return start, self.intercept


def silent(line: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Settings:
    """Options of the solvers."""

    # the penalty; several, of which the validation rows choose one; the one of the largest marginal
    # likelihood, for the squared loss; or None to find one
    alpha: Any
    fit_intercept: bool  # whether there is an intercept
    max_iter: int  # the largest number of steps, for the validation rows and for all rows each
    tol: float  # the residual, relative to the right-hand side, at which the solver stops
    validation_rows: int  # the number of validation observations
    # what repeated rows and weights count for; see `kitchenette.data.observations`
    rule: str = RULES[0]
    # the weights that count as observations, if others than those of the rows
    counted: Array | None = None
    report: Callable[[str], None] = silent  # called with a line of text after each step
    # by what the squared loss chooses its penalty and stops; None for squared errors
    measure: Measure | None = None
    # the penalty of another loss, near which the first one is tried; by default that of some rows
    guess: float | None = None


@dataclass
class SolverResult:
    """A linear model of features, and what the solver says of it."""

    # the model; shapes (n_features, n_outputs) and (n_outputs,)
    coef: Array
    intercept: Array
    alpha: float  # the penalty
    n_iter: int = 0  # the number of steps, each of which is a pass over the rows
    residual: float = np.inf  # the residual that was reached
    exhausted: bool = False  # whether the solver came to the largest number of steps
    interrupted: bool = False  # whether the solver was interrupted
    # the validation rows
    validation_index: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    # the keys of these validation rows
    validation_keys: Keys = field(default_factory=lambda: np.empty(0, np.uint64))
    # the number of observations of each of them
    validation_counts: Array = field(default_factory=lambda: np.empty(0))
    # the weights of these observations
    validation_weights: Array = field(default_factory=lambda: np.empty(0))
    # their outputs in a model that has not seen them; shape (n_validation, n_outputs)
    outputs: Array = field(default_factory=lambda: np.empty((0, 0)))
    # the log density of the targets, if the penalty was chosen by it
    log_marginal_likelihood: float = np.nan


class IterativeSolver(ABC):
    """The parts that all losses have in common."""

    best: SolverResult | None = None  # the best model so far, for the case of an interrupt

    def __init__(self, rows: FeatureRows, loss: Loss, settings: Settings, start: Any):
        # Weights near one cannot overflow in what follows. A power of two is exact.
        self.weight_unit = 2.0 ** float(np.floor(np.log2(rows.weights.max())))
        rows = rows.weighted(rows.weights / self.weight_unit)
        if settings.alpha is not None and not isinstance(settings.alpha, str):
            settings = replace(settings, alpha=settings.alpha / self.weight_unit)
        if settings.guess is not None:
            settings = replace(settings, guess=settings.guess / self.weight_unit)
        self.rows, self.loss, self.settings, self.start = rows, loss, settings, start
        self.n_steps = 0
        self._split()
        self.is_validation = np.zeros(rows.n_rows, dtype=bool)
        self.is_validation[self.validation_index] = True
        self.validation = self.rows_for_validation() if self.validation_index.size else None

    def _split(self) -> None:
        """Choose validation observations, and distinct training rows in a random order.

        Both are found by the keys of the rows, so they do not depend on the order in which the rows
        came. Of equal rows with equal targets the first one stands for all validation observations,
        and the others are learned with smaller weights.
        """
        positive = np.flatnonzero(self.rows.weights > 0)
        keys, first, which, copies = np.unique(
            self.rows.keys()[positive], return_index=True, return_inverse=True, return_counts=True
        )
        weights: Array = np.bincount(which, self.rows.weights[positive]).astype(np.float64)
        counted = weights
        if self.settings.counted is not None:
            counted = np.bincount(which, self.settings.counted[positive]).astype(np.float64)
        counts = observation_counts(counted, copies, self.settings.rule)
        self.n_observations = float(counts.sum())
        n_validation = min(
            self.settings.validation_rows, int(self.n_observations) // VALIDATION_PART
        )
        n_validation = n_validation if n_validation >= LEAST_VALIDATION else 0
        # Keys are hash values, so that their order is random.
        places = (np.arange(keys.size) + 0.5) / max(1, keys.size)
        left_out = divided(counts, n_validation / max(1.0, self.n_observations), places)
        kept = 1 - left_out / counts

        held = np.flatnonzero(left_out > 0)
        held = held[np.argsort(first[held])]
        self.validation_index = positive[first[held]]
        self.validation_keys, self.validation_counts = keys[held], left_out[held]
        self.validation_weights = (weights * (1 - kept))[held]
        learned = np.flatnonzero(left_out < counts)
        self.distinct = positive[first[learned]]
        self.distinct_weights = (weights * kept)[learned]
        self.distinct_counts = (counts - left_out)[learned]
        training = np.zeros(self.rows.n_rows)
        training[positive] = self.rows.weights[positive] * kept[which]
        self.training = self.rows.weighted(training)

    def rows_for_validation(self) -> FeatureRows:
        """The validation rows."""
        return self.rows.some(self.validation_index).weighted(self.validation_weights)

    def _first_distinct(self, count: int) -> FeatureRows:
        """Some of the distinct rows to be learned."""
        some = self.training.some(self.distinct[:count])
        return some.weighted(self.distinct_weights[:count])

    def run(self) -> SolverResult:
        """The model with its penalty in the unit of the given weights."""
        result = self._learned_or_best()
        if result.validation_index.size:
            weights = self.validation_weights * self.weight_unit
            result = replace(
                result,
                validation_keys=self.validation_keys,
                validation_counts=self.validation_counts,
                validation_weights=weights,
            )
        return replace(result, alpha=result.alpha * self.weight_unit)

    def _learned_or_best(self) -> SolverResult:
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

    @abstractmethod
    def learned(self) -> SolverResult:
        """The model of all rows, with the penalty in the unit of the scaled weights."""

    def report(self, residual: float, error: float | None, alpha: float) -> None:
        suffix = "" if error is None else f", validation error {error:.5g}"
        self.settings.report(
            f"step {self.n_steps}: alpha {self.weight_unit * alpha:.3g}, "
            f"residual {residual:.2g}{suffix}"
        )

    def only_penalty(self) -> float:
        """The given penalty, where there are no rows to choose one of several."""
        if np.ndim(self.settings.alpha) > 0:
            raise ValueError(
                "Choosing one of several penalties needs validation rows: validation_rows is 0, or "
                "there are too few rows."
            )
        return float(self.settings.alpha)

    def sampled_rows(self, mean: Array) -> SampledRows:
        """The rows of the preconditioner."""
        kept = self.loss.is_quadratic
        count = sample_size(self.distinct.size, self.rows.n_features, kept=kept)
        total = float(self.training.weights.sum())
        scores = None
        if self.rows.n_features <= count and self.distinct.size <= NEARLY_ALL * count:
            count = self.distinct.size  # the exact inverse, for less than a pass
        if count < self.distinct.size:
            first = self._first_distinct(min(SCORE_ROWS, most_rows(self.rows.n_features)))
            scores = leverage_scores(self.rows, first, mean)
        if scores is None:
            return SampledRows(self._first_distinct(count), mean, total)
        drawn_with = probabilities(scores[self.distinct], self.distinct_weights, count)
        drawn = systematic_sample(drawn_with)
        rows = self.training.some(self.distinct[drawn]).weighted(self.distinct_weights[drawn])
        return SampledRows(rows, mean, total, drawn_with[drawn])

    def first_guess(self) -> tuple[float, Array]:
        """A penalty by the leave-one-out errors of a few rows, and these errors.

        It is the one of the least errors. But few rows know these badly, and without validation
        rows nothing corrects it: then it is chosen as in one pass, by the evidence as well.
        """
        training = self._first_distinct(min(PILOT_ROWS, most_rows(self.rows.n_features)))
        mean = training.moments().mean
        if not self.settings.fit_intercept:
            mean = np.zeros_like(mean)
        exact = training.n_features <= EXACT_FEATURES
        with np.errstate(over="ignore", invalid="ignore"):
            gram = gram_of_rows(
                training, mean, np.ones(training.n_rows), np.float64 if exact else np.float32
            ).astype(np.float64)
            size = float(mean @ mean)
        if not np.isfinite(size) or not np.isfinite(gram).all():
            raise ValueError(TOO_LARGE)
        counts = self.distinct_counts[: training.n_rows]
        centered = self.settings.fit_intercept
        are_few = training.n_rows == self.distinct.size <= FEW_ROWS
        if self.validation is None and are_few and vary(float(np.trace(gram)), size):
            left_out = self._left_out(gram, training, counts)
            if left_out.enough and left_out.path.is_safe:
                alpha = left_out.chosen()
                return alpha, training.columns() - left_out.outputs(alpha)
        whole = RidgeOfRows(gram, training.columns(), training.weights, counts, size, centered)
        alpha, errors = whole.penalty()
        return alpha * whole.trend(alpha, self.distinct.size), errors

    def _left_out(self, gram: Array, training: FeatureRows, counts: Array) -> LeaveOneOut:
        """Few rows without each of them, from the inner products of their features."""
        columns, weights = training.columns(), training.weights
        with one_blas_thread(training.n_rows):
            values, vectors = eigh(gram)
        kept = values > np.finfo(np.float64).eps * values.sum()
        Z = vectors[:, kept] * np.sqrt(values[kept])
        statistics = LeastSquares(Z.shape[1], columns.shape[1]).update(Z, columns, weights)
        equations = statistics.equations(self.settings.fit_intercept, float(counts.sum()))
        keys = np.arange(training.n_rows, dtype=np.uint64)
        sample = RowSample.of(training.n_rows, keys, Z, columns, weights)
        return LeaveOneOut(PenaltyPath(equations), sample, counts, self.settings.measure)


class EarlyStopping:
    """Remembers the best error, and ends after some steps that did not improve it.

    Parameters
    ----------
    least : float, default=infinity
        An error that was reached before.
    """

    def __init__(self, least: float = np.inf) -> None:
        self.least = least
        self._waited = 0
        self._history = [least]

    def improved(self, error: float) -> bool:
        """Whether this is the least error so far."""
        clearly = error < (1 - IMPROVEMENT) * self.least
        self._waited = 0 if clearly else self._waited + 1
        better = error < self.least
        self.least = min(error, self.least)
        self._history.append(self.least)
        return better

    @property
    def ended(self) -> bool:
        return self._waited >= PATIENCE

    @property
    def ended_slowly(self) -> bool:
        """Whether several steps were on average no improvement."""
        if len(self._history) <= SLOW_PATIENCE:
            return False
        before = self._history[-SLOW_PATIENCE - 1]
        return not self.least < (1 - SLOW_PATIENCE * IMPROVEMENT) * before


def warn_of_steps(steps: int, residual: float, tol: float) -> None:
    warnings.warn(
        f"The solver stopped after max_iter={steps} steps with a residual of {residual:.2g}, "
        f"above tol={tol:.2g}. The model is usable; a larger penalty or more steps make it exact.",
        ConvergenceWarning,
        stacklevel=2,
    )
