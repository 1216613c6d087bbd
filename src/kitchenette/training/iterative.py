"""Training in many passes over the rows, in which features are computed again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kitchenette.learning.conjugate_gradients import (
    COLUMNS,
    PENALTIES,
    SquaredSolver,
    coarse_bytes,
)
from kitchenette.learning.iterative import Earlier, Settings, SolverResult
from kitchenette.learning.linear_model import LinearModel
from kitchenette.learning.losses import LOSSES, Loss
from kitchenette.learning.partial import balancing_factors
from kitchenette.learning.passes import FeatureRows, feature_rows
from kitchenette.learning.preconditioner import FEATURE_BYTES, preconditioner_bytes
from kitchenette.learning.quasi_newton import SmoothSolver
from kitchenette.resources import check_memory
from kitchenette.training.model import Model
from kitchenette.training.prepared import Prepared, is_balanced
from kitchenette.training.problem import ONE_PASS_FEATURES, Problem

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

    ``one_pass`` makes the model of the squared loss from statistics, if that is the better loss.
    """
    balanced = rows.balanced() if is_balanced(problem.class_weight) else rows
    if problem.loss != "auto":
        return _in_passes(problem, prepared, balanced, problem.loss)[0]
    return _of_the_better_loss(problem, prepared, balanced, one_pass)


def _of_the_better_loss(
    problem: Problem, prepared: Prepared, rows: TrainingSet, one_pass: Callable[[], Model]
) -> Model:
    """The model of the squared or the logistic loss.

    Both are tried on the same validation rows. The logistic loss must predict more of them than
    the squared one, which is faster and has statistics.
    """
    models: dict[str, Model] = {}
    scores: dict[str, float] = {}
    for loss in ("squared", "logistic"):
        try:
            models[loss], interrupted = _in_passes(problem, prepared, rows, loss)
        except KeyboardInterrupt:
            if not models:
                raise
            warnings.warn(
                "Interrupted before the logistic loss was tried: the model is that of the "
                "squared loss, the best one so far.",
                ConvergenceWarning,
                stacklevel=6,
            )
            return models["squared"]
        scores[loss] = models[loss].solution.validation.score or 0.0
        if interrupted:
            return models[max(scores, key=lambda loss: scores[loss])]
    if scores["logistic"] > scores["squared"]:
        return models["logistic"]
    if problem.solver == "iterative" or prepared.fitted.n_features_out_ > ONE_PASS_FEATURES:
        return models["squared"]
    return one_pass()


def _in_passes(
    problem: Problem, prepared: Prepared, rows: TrainingSet, loss: str
) -> tuple[Model, bool]:
    """The model of a loss, and whether somebody interrupted the solver."""
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
        problem.settings(prepared, rows.unbalanced),
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
    return model, result.interrupted


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
