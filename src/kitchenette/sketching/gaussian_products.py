"""Products of projections on independent normal vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette import _core
from kitchenette.sketching.combinations import ColumnProducts
from kitchenette.sketching.dense import PANEL, dense_operator, in_panels
from kitchenette.sketching.operators import Operator
from kitchenette.sketching.random import Stream


def gaussian_directions(
    degrees: NDArray[np.int32], j: int, n_columns: int, seed: int
) -> NDArray[np.float64]:
    """The normal vectors of factor j, a row for each feature whose degree is above j.

    Those of a feature depend on its number and j alone, not on how many features there are.
    """
    stream, users = Stream(seed, f"gaussian factor {j}"), degrees > j
    panels = [
        stream.normals(PANEL, n_columns, first=first)[: users.size - first][users[first:][:PANEL]]
        for first in range(0, users.size, PANEL)
        if users[first : first + PANEL].any()
    ]
    return np.concatenate(panels)


def gaussian_products(
    degrees: NDArray[np.int32],
    weights: NDArray[np.float64],
    n_columns: int,
    seed: int,
    dtype: DTypeLike,
    input_scale: float = 1.0,
) -> Operator:
    """Features weight * z_1 ... z_n, where n is the degree and z_j = <g_j, x> for normal g_j.

    Rows are multiplied with ``input_scale`` first.
    """
    tail: Any = _core.Tail("identity")
    operators = []
    for j in range(int(degrees.max(initial=0))):
        directions = gaussian_directions(degrees, j, n_columns, seed)
        panels = in_panels(input_scale * directions.T, dtype)
        operators.append(dense_operator(tail, panels, directions.shape[0]))
    return ColumnProducts(
        weights.astype(dtype), degrees, operators, [1.0] * len(operators), n_columns
    )
