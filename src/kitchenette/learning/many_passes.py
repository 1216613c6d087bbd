"""Estimators that learn in many passes over the rows, in which features are computed again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kitchenette.data.blocks import first_rows
from kitchenette.learning.base import Array
from kitchenette.learning.checks import checked_penalties
from kitchenette.learning.iterative import learn
from kitchenette.learning.learner import Settings
from kitchenette.learning.machine_parameters import is_criterion
from kitchenette.learning.model import LinearModel
from kitchenette.learning.source_rows import feature_rows
from kitchenette.learning.target_machine import TargetMachine
from kitchenette.learning.warm_start import Earlier
from kitchenette.maps.protocol import FittedMap

ONE_PASS_FEATURES = 8192  # up to which solver="auto" takes one pass


@dataclass(frozen=True)
class Lesson:
    """What is learned in many passes.

    Attributes
    ----------
    fitted : FittedMap
        The map.
    X : table of rows or Source
        All rows.
    targets : ndarray
        Their encoded targets.
    weights : ndarray or None
        Their weights.
    earlier : Earlier or None
        The model to begin with.
    """

    fitted: FittedMap
    X: Any
    targets: Any
    weights: Array | None
    earlier: Earlier | None


class ManyPassMachine(TargetMachine):
    """Learns by an iterative solver, which needs no statistics and has any loss."""

    def iterates(self, n_features: int) -> bool:
        """Whether `fit` learns iteratively for this number of features."""
        if self.loss != "squared" or self.solver != "auto":
            return bool(self.loss != "squared" or self.solver == "iterative")
        return n_features > ONE_PASS_FEATURES and not is_criterion(self.alpha)

    def learned_iteratively(self, lesson: Lesson) -> dict[str, Any]:
        """The attributes that hold what is learned in many passes over all rows."""
        return self.in_passes(lesson, self.loss)[0]

    def in_passes(self, lesson: Lesson, loss: str) -> tuple[dict[str, Any], bool]:
        """What is learned with a loss, and whether somebody interrupted the solver."""
        fitted, X, targets, earlier = lesson.fitted, lesson.X, lesson.targets, lesson.earlier
        weights = np.ones(X.shape[0]) if lesson.weights is None else lesson.weights
        if not weights.any():
            raise ValueError("All weights are zero: there is no row to learn from.")
        rows = feature_rows(fitted, X, targets, self, weights)
        settings = Settings(
            self._penalties(),
            bool(self.fit_intercept),
            self.max_iter,
            float(self.tol),
            self.validation_rows,
            self._rule_in_passes(),
            (lambda line: print(f"{type(self).__name__}, {line}", flush=True))
            if self.verbose
            else None,
        )
        start = None
        if earlier is not None:
            n_outputs = self.reduced(self.columns(targets[:1]), loss).shape[1]
            start = earlier.start(fitted, X, loss, n_outputs)
        found = learn(rows, loss, settings, level=getattr(self, "quantile", 0.5), start=start)
        outputs = self.expanded(found.outputs)
        validation = self.validated_by(
            loss, outputs, targets[found.held_out], found.held_weights, found.held_counts
        )
        has_float32 = fitted.operator(fitted.rows(first_rows(X, 1))).dtype == np.float32
        model = LinearModel(
            self.expanded(found.coef),
            self.expanded(found.intercept[None])[0],
            found.alpha,
            found.log_marginal_likelihood,
            bool(self.fit_intercept),
            bool(has_float32),
            0,
            validation,
        )
        learned: dict[str, Any] = {
            "statistics_": None,
            "_samples": {},
            "_model": model,
            "_posterior": None,
            "solver_": "iterative",
            "loss_": loss,
            "n_iter_": found.n_iter,
        }
        return learned, found.interrupted

    def _rule_in_passes(self) -> str:
        """What repeated rows and weights, of which those of classes are part, count for."""
        weighted = getattr(self, "class_weight", None) is not None
        return (
            "rows" if weighted and self.observation_rule_ == "weights" else self.observation_rule_
        )

    def _penalties(self) -> Any:
        """The penalty for an iterative solver, several of them, "evidence", or None for "auto"."""
        if isinstance(self.alpha, str):
            return None if self.alpha == "auto" else self.alpha
        return checked_penalties("alpha", self.alpha, "")[()]

    def _earlier(self) -> Earlier | None:
        """The model before this fit, if it is to be the start of the next one."""
        if not self.warm_start or vars(self).get("_model") is None:
            return None
        model = self.solved_model()
        if model is None:
            return None
        coef = self.reduced(model.coef, self.loss_)
        intercept = self.reduced(model.intercept[None], self.loss_)[0]
        return Earlier(self._fitted, self.n_features_in_, coef, intercept, self.loss_)
