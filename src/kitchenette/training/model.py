"""A trained model: everything that predictions and further rows need, as one frozen value."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kitchenette.data.border import as_source
from kitchenette.data.rows import slices, take
from kitchenette.data.schema import DataError
from kitchenette.files.fields import Count, field_values
from kitchenette.files.registry import storable
from kitchenette.learning.linear_model import LinearFunction
from kitchenette.learning.partial import MOST_ROWS, Partial
from kitchenette.learning.solution import VARIANCE_ROWS, Solution
from kitchenette.maps.protocol import FittedMap, frozen_like, thawed
from kitchenette.selection.extrapolation import predictive_variance
from kitchenette.training.prepared import EncodedRows, Prepared, is_balanced
from kitchenette.training.problem import SOLVERS, check_class_weight

Array = NDArray[np.float64]
PREDICTED_ROWS = 1 << 14  # the size of the blocks in which data other than arrays is converted
RULE_ROWS = 1000  # of a table of categories, so many rows repeat if any do that matter
VARIANCE_NUMBERS = 1 << 20  # the number of features in a block of `variances`


@dataclass(eq=False)
class Computed:
    """What a model has computed so far, for the threads that share it."""

    solution: Any = None
    posterior: Any = None
    lock: Any = field(default_factory=Lock)


@storable
@dataclass(frozen=True, eq=False)
class Model:
    """A problem, what is prepared for it, what is known of the rows, and the solution.

    It never changes: rows that are added or removed make another model. The solution is computed
    when it is first needed, and kept.

    Attributes
    ----------
    problem : Problem or Components
        What is learned.
    prepared : Prepared
        The map, the coding and the columns.
    partial : Partial or None
        What is kept of the rows; None if nothing was learned, or only predictions are wanted.
    given_solution : LinearFunction or None
        The solution, if it is known without the statistics.
    solver, loss : str
        How it was found, and what it minimizes.
    n_iter : int
        The number of passes over the rows.
    """

    problem: Any
    prepared: Prepared
    partial: Partial | None = None
    given_solution: LinearFunction | None = None
    solver: str = "onepass"
    loss: str = "squared"
    n_iter: Count = 1

    computed: Computed = field(default_factory=Computed, init=False, repr=False)

    def __post_init__(self) -> None:
        self.computed.solution = self.given_solution

    def __getstate__(self) -> dict[str, Any]:
        return {**field_values(self), "given_solution": self.solution_if_known}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "computed", Computed())
        self.__post_init__()

    def to_file(self) -> dict[str, Any]:
        """All values but the problem, which consists of the parameters of the estimator."""
        return {**self.__getstate__(), "problem": None}

    def of_problem(self, problem: Any) -> Model:
        """The model of a file with its problem, if the two belong together."""
        prepared, partial, solution = self.prepared, self.partial, self.given_solution
        if self.solver not in SOLVERS[1:] or self.loss not in problem.losses:
            raise ValueError("solver and loss must be among those that exist.")
        if not isinstance(solution, problem.solution_class | None):
            raise ValueError(f"its solution is not that of a {problem.estimator}.")
        prepared = replace(
            prepared,
            estimator=problem.estimator,
            coding=problem.restored_coding(prepared.coding, prepared.seed),
        )
        # They are those of the fit, whatever the parameters have become since.
        check_class_weight(prepared.class_weight)
        if partial is not None and partial.n_rows:
            if (partial.by_class is not None) != is_balanced(prepared.class_weight):
                raise ValueError("class_weight and statistics by class do not belong together.")
            if solution is None and (self.solver, self.loss) != ("onepass", "squared"):
                raise ValueError("statistics have the solution of the squared loss alone.")
        if partial is not None:
            partial = prepared.adopted(partial)
        prepared.check_shapes(partial, solution)
        return Model(problem, prepared, partial, solution, self.solver, self.loss, self.n_iter)

    # ------------------------------------------------------------ the solution

    @property
    def has_rows(self) -> bool:
        """Whether anything was learned."""
        return self.partial is not None or self.given_solution is not None

    @property
    def minimizes_loss(self) -> bool:
        """Whether targets were learned, by minimizing a loss."""
        return self.has_rows and self.problem.task is not None

    @property
    def solution_if_known(self) -> Any:
        """The solution if it was computed, else None."""
        return self.computed.solution

    @property
    def solution(self) -> Any:
        """The solution, a `LinearFunction` of features, which is computed when first needed."""
        computed = self.computed
        if computed.solution is None:
            with computed.lock:
                if computed.solution is None:
                    computed.solution = self.problem.solved(self.prepared, self.partial)
        return computed.solution

    @property
    def posterior(self) -> Solution:
        """The solution with the factor of the Gram matrix, which is large and not stored."""
        solution, statistics, computed = self.solution, self._statistics(), self.computed
        with computed.lock:
            if computed.posterior is None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # issued before
                    computed.posterior = statistics.solve(
                        solution.alpha,
                        fit_intercept=solution.fit_intercept,
                        n_observations=self.problem.n_observations(self.prepared, self.partial),
                    )
        return computed.posterior

    def _statistics(self) -> Any:
        assert self.partial is not None
        return self.partial.statistics

    # ------------------------------------------------------------ rows

    def with_partial(self, partial: Partial) -> Self:
        """The model of other rows."""
        coding = self.prepared.coding.among(partial.classes).in_precision(partial.target_dtype)
        prepared = self.prepared
        if coding is not prepared.coding:
            prepared = replace(prepared, coding=coding)
        return type(self)(self.problem, prepared, partial)

    def with_rows(self, rows: EncodedRows) -> Self:
        """The model with some rows in addition, encoded by a coding of the same classes."""
        prepared, partial = self.prepared, self.partial
        few = rows.X.shape[0] <= MOST_ROWS and not is_balanced(prepared.class_weight)
        if partial is None or partial.n_rows == 0 or not few:
            more = prepared.partial(rows)
            return self.with_partial(more if partial is None else partial.combined(more))
        batch = prepared.batch(rows.X, rows.targets, rows.weights)
        self._check_width(batch.Y.shape[1])
        dtype = max(partial.target_dtype, rows.coding.dtype)
        return self.with_partial(replace(partial, target_dtype=dtype).with_batch(batch))

    def without_rows(self, rows: EncodedRows) -> Self:
        """The model without some rows, which it has learned."""
        assert self.partial is not None
        batch = self.prepared.batch(rows.X, rows.targets, rows.weights)
        self._check_width(batch.Y.shape[1])
        return self.with_partial(self.partial.without_batch(batch, rows.targets))

    def _check_width(self, n_targets: int) -> None:
        assert self.partial is not None
        if n_targets != self.partial.n_targets:
            raise ValueError(
                f"Y must have {self.partial.n_targets} columns, as before; got {n_targets}."
            )

    def with_rule(self, n_rows: int) -> Self:
        """The model with another rule for repeated rows, if the first ``n_rows`` were too few.

        A few rows hardly repeat, so that repetitions are taken for copies; if equal rows of the
        sample of all rows have different targets, they are none.
        """
        partial, rule = self.partial, self.prepared.observation_rule
        if n_rows >= RULE_ROWS or rule != "pairs" or partial is None or partial.sample is None:
            return self
        rule = partial.sample.observation_rule(partial.n_rows)
        return replace(self, prepared=replace(self.prepared, observation_rule=rule))

    def for_inference(self) -> Self:
        """The model for predictions alone, without statistics."""
        fitted, feature_map = self.prepared.fitted.for_inference(), self.prepared.feature_map
        if isinstance(thawed(feature_map), FittedMap):
            feature_map = frozen_like(feature_map, fitted)
        prepared = replace(self.prepared, fitted=fitted, feature_map=feature_map)
        # The map that was not fitted may be a frozen one, which is as large as the fitted one.
        problem = replace(self.problem, feature_map=None)
        return replace(
            self, problem=problem, prepared=prepared, partial=None, given_solution=self.solution
        )

    # ------------------------------------------------------------ predictions

    def outputs(self, X: Any) -> tuple[Array, np.dtype[Any]]:
        """The linear function of rows as users pass them, and the precision of the features."""
        if type(X) is np.ndarray:  # one row of numbers should not take long
            return self._outputs(self.prepared.checked(X))
        parts = [self._outputs(rows) for rows in self._checked_blocks(X)]
        if not parts:
            raise DataError("The source has no rows.")
        return np.concatenate([out for out, _ in parts]), parts[0][1]

    def _checked_blocks(self, X: Any) -> Iterator[Any]:
        """Rows as users pass them, checked."""
        prepared = self.prepared
        blocks = prepared.columns_of(as_source(X, like=prepared)).without_targets().blocks()
        return (prepared.checked(block.X) for block in blocks)

    def _outputs(self, X: Any) -> tuple[Array, np.dtype[Any]]:
        """The linear function of checked rows in float64, and the precision of the features."""
        solution, fitted, n_rows = self.solution, self.prepared.fitted, X.shape[0]
        out = np.empty((n_rows, solution.intercept.size))
        # Data that is not an array is converted in blocks.
        size = n_rows if isinstance(X, np.ndarray) else PREDICTED_ROWS
        for part in slices(n_rows, size):
            rows = fitted.rows(take(X, part))
            if not solution.predict(fitted, rows, out[part]):
                raise ValueError(fitted.overflow(rows))
        return out, fitted.operator(rows).dtype

    def variances(self, X: Any) -> Array:
        """Variances of new observations of rows as users pass them, noise included."""
        return np.concatenate([self._variances(rows) for rows in self._checked_blocks(X)])

    def _variances(self, X: Any) -> Array:
        """Variances of new observations of checked rows, noise included."""
        posterior = self.posterior
        variance = np.empty((X.shape[0], posterior.rss.size))
        size = max(VARIANCE_ROWS, VARIANCE_NUMBERS // posterior.coef.shape[0])
        for part in slices(X.shape[0], size):
            variance[part] = predictive_variance(posterior, self.prepared.fitted, take(X, part))
        spread = self.solution.validation.spread
        return variance if spread is None else variance * np.square(spread)
