"""What a linear model of features minimizes: losses of its outputs, and their derivatives.

The model minimizes the weighted sum over all rows of loss(output, target), plus alpha / 2 times the
sum of squared weights. All losses are scaled so that the same alpha means about the same:

============== ======================================================== =======================
loss           of an output f                                           peers
============== ======================================================== =======================
squared        (f - y)^2 / 2                                            Ridge(alpha)
logistic       log sum_c exp(f_c) - f_y; log(1 + exp(-s f)) for two     LogisticRegression(
               classes, of which s = 1 means the second and -1 the        C=1 / alpha)
               first
squared_hinge  max(0, 1 - s f)^2 / 2, for each class against all others LinearSVC(
               (once for two classes)                                     C=1 / (2 alpha))
huber          (f - y)^2 / 2 up to a threshold t, then t |f - y| - t^2/2 HuberRegressor
quantile       q max(0, y - f) + (1 - q) max(0, f - y), rounded off     QuantileRegressor
               within a small width of zero                               (with an L1 penalty)
============== ======================================================== =======================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from kitchenette import _core

Array = NDArray[np.float64]
AUTO = "auto"  # the squared or the logistic loss, whichever predicts the validation rows better


def weighted_quantile(values: Array, weights: Array, level: float) -> float:
    """The smallest value at or below which this share of the weight lies."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    position = int(np.searchsorted(cumulated, level * cumulated[-1]))
    return float(values[order[min(position, values.size - 1)]])


@dataclass(frozen=True)
class Loss(ABC):
    """A convex function of the outputs for a row; solvers know nothing else of it."""

    name: ClassVar[str]  # the name by which users choose it
    tasks: ClassVar[tuple[str, ...]] = ("regression",)  # the tasks it is for
    # Whether native code computes it, by the same name. Otherwise `values` does, which is slower.
    is_native: ClassVar[bool] = True
    # Whether targets are class indices, one for each row, instead of columns of numbers
    of_labels: ClassVar[bool] = False
    # What makes predictions of outputs: of "softmax", the outputs are logarithms of probabilities
    # and need no calibration
    link: ClassVar[str] = "identity"
    # Whether the second derivative is constant, so that the minimum solves linear equations
    is_quadratic: ClassVar[bool] = False
    # The second derivative in a typical model, relative to that of the squared loss. The first
    # penalty that is tried is proportional to it; it has no influence on the minimum.
    typical_curvature: ClassVar[float] = 1.0

    @classmethod
    def at(cls, level: float) -> Self:
        """The loss with the quantile that a user has given, if it has one."""
        return cls()

    @cached_property
    def native(self) -> Any:
        """The loss in native code, or the loss itself."""
        if not self.is_native:
            return self
        options = {item.name: getattr(self, item.name) for item in fields(self)}
        return _core.Loss(self.name, **options)

    def values(self, outputs: Array, targets: NDArray[Any]) -> tuple[Array, Array]:
        """The losses of rows, shape (n_rows,), and their derivatives in the outputs."""
        raise NotImplementedError(f"{type(self).__name__} must have a method `values`.")

    def evaluate(
        self,
        outputs: Array,
        targets: NDArray[Any],
        weights: Array | None,
        derivatives: Array,
        sums: Array,
    ) -> float:
        """The weighted sum of losses; derivatives are written, and their sums added to ``sums``."""
        if self.is_native:
            return float(self.native.evaluate(outputs, targets, weights, derivatives, sums))
        losses, factors = self.values(outputs, targets)
        weights = np.ones(losses.size) if weights is None else weights
        np.multiply(weights[:, None], factors, out=derivatives)
        sums += derivatives.sum(axis=0)
        return float(weights @ losses)

    def mean(self, outputs: Array, targets: NDArray[Any], weights: Array) -> float:
        """The weighted mean of the losses of rows."""
        derivatives, sums = np.empty_like(outputs), np.zeros(outputs.shape[1])
        return self.evaluate(outputs, targets, weights, derivatives, sums) / float(weights.sum())

    @abstractmethod
    def curvature(self, outputs: Array, targets: NDArray[Any]) -> Array:
        """The mean second derivative over the outputs of each row, shape (n_rows,)."""

    def start(self, columns: Array, shares: Array) -> Array:
        """The constant outputs to begin with, shape (n_outputs,).

        The columns are the targets of some rows; the shares are the means of the columns of
        all rows, the shares of the classes, of which none is zero.
        """
        return np.median(columns, axis=0)


LOSSES: dict[str, type[Loss]] = {}
L = TypeVar("L", bound=type[Loss])


def register_loss(loss: L) -> L:
    """Let users choose a loss by its name; a class decorator."""
    LOSSES[loss.name] = loss
    return loss


def loss_names(task: str) -> tuple[str, ...]:
    """The names of the losses for a task."""
    names = tuple(name for name, loss in LOSSES.items() if task in loss.tasks)
    return (*names, AUTO) if task == "classification" else names


@register_loss
@dataclass(frozen=True)
class Squared(Loss):
    """Half the squared error.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.learning.losses import Squared
    >>> Squared().mean(np.array([[1.0], [2.0]]), np.array([[1.0], [4.0]]), np.ones(2))
    1.0
    """

    name = "squared"
    tasks = "regression", "classification"
    is_quadratic = True

    def curvature(self, outputs: Array, targets: NDArray[Any]) -> Array:
        return np.ones(outputs.shape[0])


class ClassLoss(Loss):
    """A loss of class indices. With two classes there is one output, which favors the second."""

    tasks = ("classification",)
    of_labels = True


@register_loss
@dataclass(frozen=True)
class Logistic(ClassLoss):
    """The negative logarithm of the probability of the class: softmax, or a sigmoid of one output.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.learning.losses import Logistic
    >>> outputs, labels = np.array([[0.0, 0.0], [9.0, 0.0]]), np.array([1, 0], np.int32)
    >>> round(Logistic().mean(outputs, labels, np.array([1.0, 0.0])), 4)
    0.6931
    """

    name = "logistic"
    link = "softmax"
    typical_curvature = 0.05  # p (1 - p) of a row whose class has the probability 0.95

    def curvature(self, outputs: Array, targets: NDArray[Any]) -> Array:
        p = expit(outputs) if outputs.shape[1] == 1 else softmax(outputs, axis=1)
        curvatures: Array = (p * (1 - p)).mean(axis=1)
        return curvatures

    def start(self, columns: Array, shares: Array) -> Array:
        if shares.size == 2:
            return np.log(shares[1:] / shares[:1])
        logarithms = np.log(shares)
        return logarithms - logarithms.mean()  # a common constant changes nothing


@register_loss
@dataclass(frozen=True)
class SquaredHinge(ClassLoss):
    """Half the square of what is missing to a margin of one, for each class against the others."""

    name = "squared_hinge"
    typical_curvature = 0.5  # half of the rows are within the margin

    def curvature(self, outputs: Array, targets: NDArray[Any]) -> Array:
        first = 1 if outputs.shape[1] == 1 else 0
        classes = np.arange(first, first + outputs.shape[1])
        margins = np.where(targets[:, None] == classes, outputs, -outputs)
        curvatures: Array = (margins < 1).mean(axis=1)
        return curvatures

    def start(self, columns: Array, shares: Array) -> Array:
        return shares[1:] - shares[:1] if shares.size == 2 else 2 * shares - 1


@register_loss
@dataclass(frozen=True)
class Huber(Loss):
    """Half the squared error of small errors, and a multiple of large ones.

    Parameters
    ----------
    threshold : float
        Where the squared error ends. At 1.35 standard deviations of normal errors the estimate is
        95 % as efficient as least squares (Huber 1981).
    """

    threshold: float = 1.35
    name = "huber"
    typical_curvature = 0.8  # the share of normal errors below the threshold

    def curvature(self, outputs: Array, targets: NDArray[Any]) -> Array:
        curvatures: Array = (np.abs(outputs - targets) <= self.threshold).mean(axis=1)
        return curvatures


@register_loss
@dataclass(frozen=True)
class Quantile(Loss):
    """The pinball loss, whose minimum is at a quantile, averaged over a small interval.

    Parameters
    ----------
    level : float
        The quantile, between 0 and 1.
    width : float
        The pinball loss is averaged over this distance to both sides, which rounds off its kink. A
        tenth of a standard deviation hardly moves the quantile and lets L-BFGS converge.
    """

    level: float
    width: float = 0.1
    name = "quantile"
    typical_curvature = 0.3  # the share of normal errors within the width, over twice the width

    @classmethod
    def at(cls, level: float) -> Self:
        return cls(level)

    def curvature(self, outputs: Array, targets: NDArray[Any]) -> Array:
        curvatures: Array = (np.abs(outputs - targets) < self.width).mean(axis=1)
        return curvatures / (2 * self.width)

    def start(self, columns: Array, shares: Array) -> Array:
        return np.quantile(columns, self.level, axis=0)
