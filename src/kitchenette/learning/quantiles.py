"""Quantiles of weighted numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def weighted_quantile(values: Array, weights: Array, level: float) -> float:
    """The smallest value at or below which this share of the weight lies."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    position = int(np.searchsorted(cumulated, level * cumulated[-1]))
    return float(values[order[min(position, values.size - 1)]])
