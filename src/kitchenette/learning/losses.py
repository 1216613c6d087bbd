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
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from kitchenette import _core

Array = NDArray[np.float64]


def weighted_quantile(values: Array, weights: Array, level: float) -> float:
    """The smallest value at or below which this share of the weight lies."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    position = int(np.searchsorted(cumulated, level * cumulated[-1]))
    return float(values[order[min(position, values.size - 1)]])


@dataclass(frozen=True)
class Loss(ABC):
    """A convex function of the outputs for a row; native code computes it and its derivative.

    Attributes
    ----------
    name : str
        The name by which users choose it.
    of_labels : bool
        Whether targets are numbers of classes, one for each row, instead of columns of numbers.
    """

    name: ClassVar[str]
    of_labels: ClassVar[bool] = False

    @cached_property
    def native(self) -> _core.Loss:
        """The loss in native code."""
        options = {item.name: getattr(self, item.name) for item in fields(self)}
        return _core.Loss(self.name, **options)

    def mean(self, outputs: Array, targets: NDArray[Any], weights: Array) -> float:
        """The weighted mean of the losses of rows.

        Parameters
        ----------
        outputs : ndarray of shape (n_rows, n_outputs)
            Outputs of the model.
        targets : ndarray of shape (n_rows,) or (n_rows, n_outputs)
            Numbers of classes, or numbers.
        weights : ndarray of shape (n_rows,)
            The weights of the rows.
        """
        derivatives, sums = np.empty_like(outputs), np.zeros(outputs.shape[1])
        total = self.native.evaluate(outputs, targets, weights, derivatives, sums)
        return total / float(weights.sum())

    @abstractmethod
    def curvature(self, outputs: Array, targets: NDArray[Any]) -> Array:
        """The mean second derivative over the outputs of each row, shape (n_rows,)."""


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

    def curvature(self, outputs: Array, targets: NDArray[Any]) -> Array:
        return np.ones(outputs.shape[0])


@dataclass(frozen=True)
class Logistic(Loss):
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
    of_labels = True

    def curvature(self, outputs: Array, targets: NDArray[Any]) -> Array:
        p = expit(outputs) if outputs.shape[1] == 1 else softmax(outputs, axis=1)
        curvatures: Array = (p * (1 - p)).mean(axis=1)
        return curvatures


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """Half the square of what is missing to a margin of one, for each class against the others."""

    name = "squared_hinge"
    of_labels = True

    def curvature(self, outputs: Array, targets: NDArray[Any]) -> Array:
        first = 1 if outputs.shape[1] == 1 else 0
        classes = np.arange(first, first + outputs.shape[1])
        margins = np.where(targets[:, None] == classes, outputs, -outputs)
        curvatures: Array = (margins < 1).mean(axis=1)
        return curvatures


@dataclass(frozen=True)
class Huber(Loss):
    """Half the squared error of small errors, and a multiple of large ones.

    Parameters
    ----------
    threshold : float
        Where the squared error ends.
    """

    threshold: float
    name = "huber"

    def curvature(self, outputs: Array, targets: NDArray[Any]) -> Array:
        curvatures: Array = (np.abs(outputs - targets) <= self.threshold).mean(axis=1)
        return curvatures


@dataclass(frozen=True)
class Quantile(Loss):
    """The pinball loss, whose minimum is at a quantile, averaged over a small interval.

    Parameters
    ----------
    level : float
        The quantile, between 0 and 1.
    width : float
        The pinball loss is averaged over this distance to both sides, which rounds off its kink.
    """

    level: float
    width: float
    name = "quantile"

    def curvature(self, outputs: Array, targets: NDArray[Any]) -> Array:
        curvatures: Array = (np.abs(outputs - targets) < self.width).mean(axis=1)
        return curvatures / (2 * self.width)
