"""Scores of a model on rows in blocks or partitions, from sums that are combined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.schema import DataError
from kitchenette.data.source import Block, Source

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sums:
    """What the score of some rows is computed from.

    Attributes
    ----------
    weight : float
        The sum of the weights.
    error : ndarray of shape (n_targets,)
        The weighted sums of squared errors; of a classifier the weight of wrong labels.
    mean, spread : ndarrays of shape (n_targets,)
        The weighted means of the targets, and the weighted sums of squared deviations from them.
    """

    weight: float
    error: Array
    mean: Array
    spread: Array

    def combined(self, other: Self) -> Sums:
        """The sums of the rows of both, as in Chan et al., 1979."""
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0 else 0.0
        difference = other.mean - self.mean
        return Sums(
            weight,
            self.error + other.error,
            self.mean + share * difference,
            self.spread + other.spread + self.weight * share * np.square(difference),
        )


@dataclass(frozen=True)
class SumsOf:
    """The sums of the rows of a source, as a `kitchenette.data.reduction.Reduction`.

    Attributes
    ----------
    model : KernelClassifier or KernelRegressor
        A solved model.
    """

    model: Any

    def of(self, block: Block) -> Sums:
        if block.y is None:
            raise DataError("The source has no target: name the column to compare with.")
        y = np.asarray(block.y)
        weights = np.ones(y.shape[0]) if block.weight is None else np.asarray(block.weight, float)
        predicted = self.model.predict(block.X)
        if self.model.task == "classification":
            wrong = float(weights @ (predicted != y.ravel()))
            return Sums(weights.sum(), np.array([wrong]), np.zeros(1), np.zeros(1))
        y = y.reshape(y.shape[0], -1).astype(np.float64)
        if not np.isfinite(y).all():
            raise DataError("y contains NaN or infinity.")
        predicted = predicted.reshape(y.shape[0], -1)
        if predicted.shape != y.shape:
            raise DataError(f"The model has {predicted.shape[1]} targets, the data {y.shape[1]}.")
        mean = weights @ y / weights.sum() if weights.any() else np.zeros(y.shape[1])
        error, spread = (weights @ np.square(y - z) for z in (predicted, mean))
        return Sums(weights.sum(), error, mean, spread)

    def combined(self, a: Sums, b: Sums) -> Sums:
        return a.combined(b)


def score_of_source(model: Any, source: Source) -> float:
    """The accuracy of a classifier, or the mean R^2 of a regressor, on all rows of a source.

    The same as the methods ``score`` of scikit-learn, wherever the rows are.

    Parameters
    ----------
    model : KernelClassifier or KernelRegressor
        A fitted model.
    source : Source
        Rows with targets, and perhaps weights.

    Returns
    -------
    score : float
    """
    sums: Sums | None = source.reduced(SumsOf(model.for_inference()))
    if sums is None or not sums.weight > 0:
        raise DataError("The source has no row of positive weight to compare with.")
    if model.task == "classification":
        return float(1 - sums.error[0] / sums.weight)
    # As in scikit-learn, a constant target has the score 1 if it is predicted exactly, else 0.
    constant = np.where(sums.error > 0, 1.0, 0.0)
    ratios = np.divide(sums.error, sums.spread, out=constant, where=sums.spread > 0)
    return float(np.mean(1 - ratios))
