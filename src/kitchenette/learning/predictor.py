"""Predictions for one row at a time, with the least delay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.learning.blocks import features_of
from kitchenette.maps.base import RowTransformer

ROWS = 8  # that the buffer of features holds
Answer = Callable[[NDArray[Any]], NDArray[Any]]


class Predictor:
    """A fitted model as a light callable; `KernelRegressor.predictor` makes it.

    ``predictor(x)`` takes a row, an array of shape (n_columns,), and returns its prediction; or
    rows, shape (n_rows, n_columns), and returns an array of predictions. They equal those
    of ``predict`` up to rounding errors. The predictor keeps weights and map as they are
    when it is made: it does not follow a model that goes on learning.

    Notes
    -----
    Features are written to a buffer that is made once, by the native core if the map is one of
    this package, and multiplied with the weights. Nothing is checked but the number of
    columns: rows must be dense and finite, their columns in the order of training, and what the
    map demands of them is up to the caller. One predictor must not be used by several threads at
    the same time; make one for each. It cannot be pickled; save the model instead.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import KernelRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = KernelRegressor().fit(X, X[:, 0] * X[:, 1])
    >>> predict = model.predictor()
    >>> bool(np.isclose(predict(X[7]), model.predict(X[7:8])[0]))
    True
    """

    def __init__(
        self,
        feature_map: Any,
        weights: NDArray[np.float64],
        intercept: NDArray[np.float64],
        n_columns: int,
        dtype: np.dtype[Any],
        answer: Answer,
    ):
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64; got {dtype}.")
        self._n_columns = n_columns
        self._dtype = dtype
        self._weights = np.asfortranarray(weights, dtype=dtype)
        self._intercept = intercept.astype(dtype)
        self._answer = answer
        self._buffer = np.empty((ROWS, weights.shape[0]), dtype)
        if isinstance(feature_map, RowTransformer):
            self._write = feature_map._writer(dtype)
        else:
            self._write = _by_transform(feature_map)

    def __call__(self, x: Any) -> Any:
        x = np.ascontiguousarray(x, self._dtype)
        if x.ndim not in (1, 2) or x.shape[-1] != self._n_columns or x.shape[0] == 0:
            raise ValueError(
                f"A row must have {self._n_columns} columns, and there must be one at least; got "
                f"an array of shape {x.shape}."
            )
        if x.ndim == 1:
            return self._answer(self._outputs(x[None]))[0]
        parts = [self._outputs(x[i : i + ROWS]) for i in range(0, x.shape[0], ROWS)]
        return self._answer(np.concatenate(parts))

    def _outputs(self, X: NDArray[Any]) -> NDArray[Any]:
        Z = self._buffer[: X.shape[0]]
        self._write(X, Z)
        outputs = Z @ self._weights
        outputs += self._intercept
        return outputs


def _by_transform(feature_map: Any) -> Callable[[NDArray[Any], NDArray[Any]], object]:
    def write(X: NDArray[Any], out: NDArray[Any]) -> None:
        out[:] = features_of(feature_map, X)

    return write
