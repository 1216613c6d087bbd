"""Products of projections on independent normal vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette.sketching.combinations import ColumnProducts
from kitchenette.sketching.dense import PANEL, matrix_product
from kitchenette.sketching.operators import Operator
from kitchenette.sketching.random import Stream


@dataclass(frozen=True, eq=False)
class GaussianProducts:
    """Features weight * z_1 ... z_n, where n is the degree and z_j = <g_j, x> for normal g_j."""

    degrees: NDArray[np.int32]  # (n_features,): the number of factors of each feature
    weights: NDArray[Any]  # (n_features,): the weights of the products
    n_columns: int  # the number of columns of the data
    seed: int  # the seed of the normal vectors, which are drawn together with the operator
    dtype: DTypeLike  # the precision of the features
    input_scale: float = 1.0  # the factor by which the data is multiplied

    def factor(self, j: int) -> NDArray[np.float64]:
        """The normal vectors of factor j, one row for each feature whose degree is above j.

        They do not depend on the number of features.
        """
        stream, users = Stream(self.seed, f"gaussian factor {j}"), self.degrees > j
        panels = [np.empty((0, self.n_columns))]
        for first in range(0, users.size, PANEL):
            of_panel = np.flatnonzero(users[first : first + PANEL])
            if of_panel.size:
                panels.append(stream.normals(PANEL, self.n_columns, first=first)[of_panel])
        return np.concatenate(panels)

    def operator(self) -> Operator:
        """The operator that computes the features."""
        operators = [
            matrix_product(self.input_scale * self.factor(j).T, self.dtype)
            for j in range(int(self.degrees.max(initial=0)))
        ]
        gains, weights = [1.0] * len(operators), self.weights.astype(self.dtype)
        return ColumnProducts(weights, self.degrees, operators, gains, self.n_columns)
