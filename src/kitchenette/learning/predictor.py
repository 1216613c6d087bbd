"""Low-latency predictions for single rows."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kitchenette.maps.protocol import FittedMap


class Answer(Protocol):
    """Converts predicted columns, shape (n_rows, n_targets), to predictions."""

    def __call__(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        """The predictions of the rows."""


class Predictor:
    """A fitted model as a fast callable; see `KernelRegressor.predictor`.

    ``predictor(x)`` takes a row, an array of shape (n_columns,), and returns its prediction; or
    rows, shape (n_rows, n_columns), and returns an array of predictions. They equal those
    of ``predict`` up to rounding errors. The predictor is a snapshot: it does not change when the
    model learns more rows. It is thread-safe and can be pickled.

    Notes
    -----
    Features are computed and multiplied with the weights in one native call if the map is one of
    this package, or a pipeline of scikit-learn's scalers, imputers and encoders before one. Rows
    must be dense, with their columns in the order of training; rows with strings are arrays of
    objects. A row with infinity, or with NaN that no step replaces, is refused; other requirements
    of the map are not checked.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import KernelRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = KernelRegressor(random_state=0).fit(X, X[:, 0] * X[:, 1])
    >>> predict = model.predictor()
    >>> bool(np.isclose(predict(X[7]), model.predict(X[7:8])[0]))
    True
    """

    def __init__(
        self,
        fitted: FittedMap,
        weights: NDArray[np.float64],
        intercept: NDArray[np.float64],
        n_columns: int,
        dtype: np.dtype[Any],
        answer: Answer,
    ):
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64; got {dtype}.")
        self._parts = fitted, weights, intercept, n_columns, dtype, answer
        self._n_columns, self._dtype, self._answer = n_columns, dtype, answer
        self._n_targets = weights.shape[1]
        # Columns of strings, or columns that are not used, are turned into numbers first.
        self._coded = getattr(fitted, "coder", None)
        operator, collapsed = fitted.operator(np.empty((0, n_columns), dtype)).collapse(weights)
        self._linear = operator.linear(collapsed, intercept)

    def __call__(self, x: Any) -> Any:
        x = np.ascontiguousarray(x if self._coded is None else self._coded(x), self._dtype)
        if x.ndim not in (1, 2) or x.shape[-1] != self._n_columns or x.shape[0] == 0:
            raise ValueError(
                f"A row must have {self._n_columns} columns, and there must be one at least; got "
                f"an array of shape {x.shape}."
            )
        rows = x[None] if x.ndim == 1 else x
        outputs = np.empty((rows.shape[0], self._n_targets))
        if not self._linear.write(rows, outputs):
            self._refuse(rows)
        answers = self._answer(outputs)
        return answers[0] if x.ndim == 1 else answers

    def _refuse(self, rows: NDArray[Any]) -> None:
        if not np.isfinite(rows).all():
            raise ValueError("A row contains NaN or infinity; predictions need finite numbers.")
        raise ValueError(self._parts[0].overflow(rows))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts
