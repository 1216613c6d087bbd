"""How an estimator turns targets into columns of numbers, and predicted columns into targets."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from sklearn.utils import Tags

from kitchenette.learning.base import Array, FeatureLearner
from kitchenette.learning.leave_one_out import LeaveOneOut
from kitchenette.learning.model import LinearModel, Validation
from kitchenette.learning.solution import Solution


class TargetMachine(FeatureLearner):
    """What is particular to a kind of targets; subclasses are for numbers and for classes.

    Targets are *encoded* once, when they are checked, and encoded targets become *columns* of
    numbers block by block. An iterative solver may work with fewer columns (`reduced`).
    """

    alpha: Any
    fit_intercept: Any
    validation_rows: Any
    loss: Any
    solver: Any
    max_iter: Any
    tol: Any
    warm_start: Any
    random_state: Any
    verbose: Any
    loss_: str
    solver_: str
    n_iter_: int
    observation_rule_: str
    model_class = LinearModel
    task: ClassVar[str]  # "classification" or "regression"
    losses: ClassVar[tuple[str, ...]]  # the names of the losses that it has
    # The attributes that the first batch sets in a subclass, and their types in model files.
    target_attributes: ClassVar[dict[str, Any]]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @abstractmethod
    def encode(self, y: Any, first: bool) -> NDArray[Any]:
        """Checked and encoded targets; the first batch sets the target attributes."""

    @abstractmethod
    def columns(self, targets: NDArray[Any]) -> Array:
        """A block of encoded targets as columns of numbers."""

    @abstractmethod
    def decoded(self, targets: NDArray[Any]) -> NDArray[Any]:
        """Encoded targets as a user gives them."""

    @abstractmethod
    def target_numbers(self, targets: NDArray[Any]) -> Array:
        """Numbers that are equal for equal targets of any batch, one row per target."""

    @abstractmethod
    def shaped(self, values: Any) -> Any:
        """A value of the solved model in the shape that users see."""

    def weighted(self, targets: NDArray[Any], weights: Array | None) -> Array | None:
        """The weights of rows with these encoded targets."""
        return weights

    def expanded(self, outputs: Array) -> Array:
        """The columns of the targets from those that the solver works with."""
        return outputs

    def reduced(self, outputs: Array, loss: str) -> Array:
        """The inverse of `expanded`, for the solver of a loss."""
        return outputs

    def know_labels(self, classes: Any) -> None:
        """Set the labels that are known before any rows."""
        if classes is not None:
            raise ValueError(f"{type(self).__name__} has no classes.")

    def with_labels_of(self, y: Any) -> Self:
        """A copy that knows the labels of some targets."""
        return copy(self)

    @abstractmethod
    def validated(self, held_out: LeaveOneOut, solution: Solution) -> Validation:
        """What rows that were held out say about a solution."""

    @abstractmethod
    def validated_by(
        self, loss: str, outputs: Array, targets: NDArray[Any], weights: Array, counts: Array
    ) -> Validation:
        """What held-out rows with these outputs and encoded targets say; there may be none.

        Each stands for a number of observations, whose weights are added.
        """

    @abstractmethod
    def check_targets(self, n_targets: int | None) -> None:
        """Refuse target attributes from a file that do not match the number of targets.

        The number is None if no rows were learned.
        """
