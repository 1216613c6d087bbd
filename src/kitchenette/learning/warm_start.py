"""Beginning with the weights of an earlier model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.blocks import first_rows
from kitchenette.learning.accumulation import features
from kitchenette.maps.protocol import FittedMap

Array = NDArray[np.float64]
COMPARED_ROWS = 8


@dataclass(frozen=True)
class Earlier:
    """A fitted model whose weights may be the start of another one.

    Attributes
    ----------
    fitted : FittedMap
        Its map.
    n_columns : int
        The number of columns of its data.
    coef, intercept : ndarrays of shape (n_features, n_outputs) and (n_outputs,)
        Its weights, as the solver has them.
    loss : str
        The loss that they minimize.
    """

    fitted: FittedMap
    n_columns: int
    coef: Array
    intercept: Array
    loss: str

    def start(
        self, fitted: FittedMap, X: Any, loss: str, n_outputs: int
    ) -> tuple[Array, Array] | None:
        """Weights for another map, if its first features are those of this model's map.

        The first features of a map are the same whatever their number, up to a factor that keeps
        the kernel. A model of fewer features is therefore a model of more features in which the
        others have the weight zero. None if the maps, the losses or the numbers of outputs differ.
        """
        fewer, more = self.fitted.n_features_out_, fitted.n_features_out_
        if loss != self.loss or fewer > more:
            return None
        if X.shape[1] != self.n_columns or n_outputs != self.intercept.size:
            return None
        some = first_rows(X, COMPARED_ROWS)
        mine, theirs = features(self.fitted, some), features(fitted, some)[:, :fewer]
        factor = np.sqrt(more / fewer)
        if not np.allclose(mine, factor * theirs, rtol=1e-3, atol=1e-5 * np.abs(mine).max()):
            return None
        start = np.zeros((more, n_outputs))
        start[:fewer] = factor * self.coef
        return start, self.intercept
