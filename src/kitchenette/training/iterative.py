"""Training in many passes over the rows, in which features are computed again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

from kitchenette.learning.conjugate_gradients import (
    COLUMNS,
    PENALTIES,
    SquaredSolver,
    coarse_bytes,
)
from kitchenette.learning.iterative import Earlier, Settings, SolverResult
from kitchenette.learning.leave_one_out import RowErrors
from kitchenette.learning.linear_model import LinearModel
from kitchenette.learning.losses import AUTO, LOSSES, Loss
from kitchenette.learning.partial import balancing_factors
from kitchenette.learning.passes import FeatureRows, feature_rows
from kitchenette.learning.preconditioner import FEATURE_BYTES, preconditioner_bytes
from kitchenette.learning.quasi_newton import SmoothSolver
from kitchenette.learning.target_coding import LogLosses
from kitchenette.resources import check_memory
from kitchenette.training.model import Model
from kitchenette.training.prepared import Prepared, is_balanced
from kitchenette.training.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TrainingSet:
    """Rows that are read in many passes."""

    rows: Any  # all rows
    targets: Any  # their encoded targets
    weights: Array | None  # their weights
    earlier: Earlier | None = None  # the model to begin with
    # The weights before classes were balanced, by which rows count as observations; None if they
    # are those above
    unbalanced: Array | None = None

    def balanced(self) -> TrainingSet:
        """The same rows with balanced class weights."""
        unbalanced = np.ones(self.targets.size) if self.weights is None else self.weights
        counts = np.bincount(self.targets, unbalanced)
        weights = balancing_factors(counts)[self.targets] * unbalanced
        return replace(self, weights=weights, unbalanced=unbalanced)


def train_iteratively(
    problem: Problem, prepared: Prepared, rows: TrainingSet, one_pass: Callable[[], Model]
) -> Model:
    """The model of all rows, by the solver and the loss that the problem asks for.

    ``one_pass`` makes the model of the squared loss from statistics.
    """
    balanced = rows.balanced() if is_balanced(problem.class_weight) else rows
    if problem.tries_losses:
        return _of_the_better_loss(problem, prepared, balanced, one_pass)
    loss = "squared" if problem.loss == AUTO else problem.loss
    return _in_passes(problem, prepared, balanced, loss)[0]


def _of_the_better_loss(
    problem: Problem, prepared: Prepared, rows: TrainingSet, one_pass: Callable[[], Model]
) -> Model:
    """The model of the squared loss, or of the logistic one if that has clearly less log loss.

    They are compared on the same validation rows. If the squared loss was minimized from
    statistics, either model has them, so that it can learn more rows and be merged.
    """
    held_out = squared_errors = None
    if problem.sums_up_rows(prepared.fitted.n_features_out_):
        squared = one_pass()
        assert squared.partial is not None
        model, solution, held_out = problem.solved_with_rows(squared.prepared, squared.partial)
        squared = replace(squared, given_solution=model)
        if held_out is None:
            return squared
        guess = max(model.alpha, held_out.favored)
    else:
        squared, result = _in_passes(problem, prepared, rows, "squared")
        if result.interrupted or not result.validation_index.size:
            return squared
        squared_errors = _log_losses(problem, prepared, rows, "squared", result)
        guess = squared.solution.alpha
    try:
        logistic, result = _in_passes(problem, prepared, rows, "logistic", guess)
    except KeyboardInterrupt:
        warnings.warn(
            "Interrupted before the logistic loss was tried: the model is that of the "
            "squared loss, the best one so far.",
            ConvergenceWarning,
            stacklevel=6,
        )
        return squared
    if not result.validation_index.size:
        return squared
    if held_out is not None:
        keys, weights = result.validation_keys, result.validation_weights
        squared_errors = held_out.errors_without(solution, keys, weights)
    assert squared_errors is not None
    errors = _log_losses(problem, prepared, rows, "logistic", result)
    if not errors.clearly_less(squared_errors, LogLosses.convincing):
        return squared
    return replace(logistic, partial=squared.partial)


def _log_losses(
    problem: Problem, prepared: Prepared, rows: TrainingSet, loss: str, result: SolverResult
) -> RowErrors:
    """The log losses of validation rows, of scores that are calibrated if the loss needs that."""
    coding, weights = prepared.coding, result.validation_weights
    labels, outputs = rows.targets[result.validation_index], coding.expanded(result.outputs)
    if LOSSES[loss].link == "softmax":
        losses = -log_softmax(outputs, axis=1)[np.arange(labels.size), labels]
    else:
        losses = coding.measure(problem.decoding)(outputs, coding.columns(labels), weights)
    return RowErrors(result.validation_keys, weights, losses)


def _in_passes(
    problem: Problem, prepared: Prepared, rows: TrainingSet, loss: str, guess: float | None = None
) -> tuple[Model, SolverResult]:
    """The model of a loss, and the result of the solver; a guess of the penalty may be given."""
    coding, fitted, targets = prepared.coding, prepared.fitted, rows.targets
    weights = np.ones(targets.shape[0]) if rows.weights is None else rows.weights
    if not weights.any():
        raise ValueError("All weights are zero: there is no row to learn from.")
    start = None
    if rows.earlier is not None:
        n_outputs = coding.reduced(coding.columns(targets[:1]), loss).shape[1]
        start = rows.earlier.start(fitted, rows.rows, loss, n_outputs)
    result = learn(
        feature_rows(fitted, rows.rows, targets, coding, weights),
        LOSSES[loss].at(problem.quantile),
        replace(problem.settings(prepared, rows.unbalanced), guess=guess),
        start,
    )
    validation = coding.validated_by(
        loss,
        coding.expanded(result.outputs),
        targets[result.validation_index],
        result.validation_weights,
        result.validation_counts,
        problem,
    )
    first = rows.rows.without_targets().take(np.arange(1)).X
    has_float32 = fitted.operator(fitted.rows(first)).dtype == np.float32
    solution = LinearModel(
        coding.expanded(result.coef),
        coding.expanded(result.intercept[None])[0],
        result.alpha,
        result.log_marginal_likelihood,
        bool(problem.fit_intercept),
        bool(has_float32),
        validation,
    )
    model = Model(problem, prepared, None, solution, "iterative", loss, result.n_iter)
    return model, result


def learn(rows: FeatureRows, loss: Loss, settings: Settings, start: Any = None) -> SolverResult:
    """The weights that minimize a loss of the rows."""
    rows.check_targets()
    solver = SquaredSolver if loss.is_quadratic else SmoothSolver
    return solver(rows, loss, settings, start).run()


def check_iterative_memory(n_rows: int, n_features: int, n_targets: int, loss: str) -> None:
    """Refuse what exceeds the memory before any of it is allocated."""
    together = max(1, min(PENALTIES, COLUMNS // n_targets))
    kinds = {"squared": (True,), "auto": (True, False)}.get(loss, (False,))
    needed = {
        "the weights and as many directions": 8 * (6 * together + 4) * n_features * n_targets,
        "the preconditioner": max(
            preconditioner_bytes(n_rows, n_features, together, kept=kept) for kept in kinds
        ),
        "the statistics of some features": coarse_bytes(n_features, n_rows),
        "blocks of features": 2 * FEATURE_BYTES,
    }
    advice = "Use fewer features."
    check_memory(f"Learning from {n_features} features in many passes", needed, advice)
