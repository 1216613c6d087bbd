"""Targets of a pilot sample as columns of numbers, whatever the task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from kitchenette.selection.columns import robust_spread
from kitchenette.sketching.random import Stream

Array = NDArray[np.float64]
TASKS = ("classification", "regression")
MOST_COLUMNS = 64  # the columns of more classes are added up with random signs
MOST_NUMBERED_CLASSES = 32  # more whole numbers are taken for quantities
FAR_TARGET = 10.0  # targets further from their median than this many spreads are moved there


@dataclass(frozen=True)
class Targets:
    """Targets as columns, and how predictions are compared with them."""

    columns: Array  # one column per class or target
    variance: float  # the sum of the variances of the columns
    classes: NDArray[np.intp] | None  # for one-hot columns, the class of each row

    def independent(self, most: int, seed: int) -> Array:
        """The columns without those that follow from others; more are added up by random signs."""
        columns = self.columns if self.classes is None else self.columns[:, :-1]
        if columns.shape[1] <= most:
            return columns
        return columns @ Stream(seed, "screening").signs(columns.shape[1], most).astype(np.float64)

    def compared(self, predicted: Array, rows: NDArray[np.intp]) -> tuple[Array, Array]:
        """Squared errors relative to the variance, and errors of the task, of these rows."""
        losses = np.square(predicted - self.columns[rows]).sum(axis=1) / self.variance
        if self.classes is None:
            return losses, losses
        return losses, (predicted.argmax(axis=1) != self.classes[rows]).astype(np.float64)


def task_of(y: Any) -> str:
    """The task that the type of the targets suggests."""
    kind = type_of_target(y, input_name="y")
    return "regression" if kind.startswith("continuous") else "classification"


def likely_task(y: Any) -> str:
    """The task that the values of the targets suggest.

    Other than by `task_of`, more than 32 different whole numbers are quantities and not classes, as
    in files that do not tell whole numbers from labels.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or (n_rows, n_targets)
        Targets. Several for each row are quantities.

    Returns
    -------
    task : {"classification", "regression"}

    Examples
    --------
    >>> from kitchenette.selection.targets import likely_task
    >>> likely_task(["yes", "no"]), likely_task([0, 1, 1]), likely_task(range(100))
    ('classification', 'classification', 'regression')
    """
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1:
        return "regression"
    if y.dtype.kind in "iuf" and np.unique(y).size > MOST_NUMBERED_CLASSES:
        return "regression"
    return task_of(y)


def pilot_targets(y: Any, task: str, seed: int, weights: Array | None = None) -> Targets:
    """The targets of a sample of rows with weights."""
    y = np.asarray(y)
    y = y.ravel() if y.ndim == 2 and y.shape[1] == 1 else y
    if task == "regression":
        return _with_variance(_near(y.astype(np.float64).reshape(y.shape[0], -1)), None, weights)
    if y.ndim == 2:  # several labels for each row
        return _with_variance(y.astype(np.float64), None, weights)
    names, places = np.unique(y, return_inverse=True)
    if names.size <= MOST_COLUMNS:
        return _with_variance(np.eye(names.size)[places], places, weights)
    signs = Stream(seed, "classes").signs(names.size, MOST_COLUMNS).astype(np.float64)
    return _with_variance(signs[places], None, weights)


def _with_variance(columns: Array, classes: Any, weights: Array | None) -> Targets:
    squares = np.square(columns - np.average(columns, axis=0, weights=weights))
    variance = float(np.average(squares, axis=0, weights=weights).sum())
    return Targets(columns, variance if variance > 0 else 1.0, classes)


def _near(columns: Array) -> Array:
    """Standardized columns in which few far targets do not outweigh all others."""
    spread = robust_spread(columns)
    spread = np.where(spread > 0, spread, 1.0)
    return np.clip((columns - np.median(columns, axis=0)) / spread, -FAR_TARGET, FAR_TARGET)
