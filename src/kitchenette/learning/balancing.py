"""Statistics of each class, from which those of balanced classes follow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.learning.least_squares import LeastSquares

Array = NDArray[np.float64]
Parts = list[LeastSquares | None]  # the statistics of each class; None for one without rows


def balancing_factors(counts: NDArray[Any]) -> Array:
    """Factors for the weights of classes of so many rows, by which all of them weigh the same.

    Rows are counted by their weights, so that a row of weight 2 and two equal rows are the same.
    """
    counts = counts.astype(np.float64)
    mean = counts.sum() / max(np.count_nonzero(counts), 1)
    return np.divide(mean, counts, out=np.zeros_like(counts), where=counts > 0)


def balancing(parts: Parts) -> Array:
    """The factors of the classes whose statistics are given."""
    return balancing_factors(np.array([0.0 if part is None else part.count for part in parts]))


def balanced(parts: Parts) -> LeastSquares:
    """The statistics of all rows, weighted so that all classes weigh as many rows."""
    weighted = [
        part.reweighted(factor)
        for part, factor in zip(parts, balancing(parts), strict=True)
        if part is not None
    ]
    if not weighted:
        raise ValueError("No row would be left.")
    whole = weighted[0]
    for part in weighted[1:]:
        whole.merge(part)
    return whole


def both(mine: Parts, theirs: Parts) -> Parts:
    """The statistics of the rows of both, class by class."""
    return [
        a if b is None else b if a is None else a.combined(b)
        for a, b in zip(mine, theirs, strict=True)
    ]


def extended(parts: Parts, columns: NDArray[np.intp], n_classes: int) -> Parts:
    """The same statistics among more classes, of which these are the given ones."""
    more: Parts = [None] * n_classes
    for column, part in zip(columns, parts, strict=True):
        more[column] = None if part is None else part.with_targets(columns, n_classes)
    return more
