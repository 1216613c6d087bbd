"""Low-latency predictions for single rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kitchenette.data.rows import (
    array_of_lists,
    numbers_of_objects,
    refuse_what_is_not_numbers,
)
from kitchenette.data.tables import (
    columns_by_name,
    is_frame,
    is_plain_frame,
    plain_rows,
    refuse_missing_columns,
    table_of,
)
from kitchenette.data.targets import refuse_lazy_frames
from kitchenette.maps.protocol import FittedMap
from kitchenette.maps.table_map import TableMap


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

    Parameters
    ----------
    fitted : FittedMap
        The feature map.
    weights : ndarray of shape (n_features, n_targets)
        The weights of the features.
    intercept : ndarray of shape (n_targets,)
        The constants.
    n_columns : int
        The number of columns of a row.
    dtype : dtype
        float32 or float64, to which rows are converted.
    answer : callable
        Converts outputs of shape (n_rows, n_targets) to predictions, one per row.

    Notes
    -----
    Features are computed and multiplied with the weights in one native call if the map is one of
    this package, or a pipeline of scikit-learn's scalers, imputers and encoders before one. Rows
    must be dense, with their columns in the order of training; rows with strings are arrays of
    objects. Rows with names (dictionaries, rows of a data frame, data frames) are sorted by the
    names of training; other columns are ignored. A prediction for one row is a number, a string or
    a boolean of Python, which JSON can express, if there is one target. A row with infinity, or
    with NaN that nothing replaces, is refused, and so are masked arrays, dates, complex numbers and
    sparse matrices; other requirements of the map are not checked. An array of the predictor's own
    precision takes the least time.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0))
    >>> model = model.fit(X, X[:, 0] * X[:, 1])
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
        names: NDArray[Any] | None = None,
    ):
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64; got {dtype}.")
        self._parts = fitted, weights, intercept, n_columns, dtype, answer, names
        self._n_columns, self._dtype, self._answer = n_columns, dtype, answer
        self._n_targets = weights.shape[1]
        # Columns of strings, or columns that are not used, are turned into numbers first.
        self._coded = getattr(fitted, "coder", None)
        # A table's columns are found by name when they are coded.
        self._names = None if names is None or isinstance(fitted, TableMap) else [*names]
        operator, collapsed = fitted.operator(np.empty((0, n_columns), dtype)).collapse(weights)
        self._linear = operator.linear(collapsed, intercept)

    def __call__(self, x: Any) -> Any:
        if self._coded is not None:
            x = self._coded(x if type(x) is np.ndarray else self._by_name(x))
        elif type(x) is not np.ndarray or x.dtype is not self._dtype:
            x = self._numbers(self._by_name(x))
        x = np.ascontiguousarray(x, self._dtype)
        if x.ndim not in (1, 2) or x.shape[-1] != self._n_columns or x.shape[0] == 0:
            raise ValueError(
                f"A row must have {self._n_columns} columns, and there must be one at least; got "
                f"an array of shape {x.shape}."
            )
        rows = x[None] if x.ndim == 1 else x
        outputs = np.empty((rows.shape[0], self._n_targets))
        if not self._linear.write(rows, outputs):
            filled = self._filled(rows)
            if filled is None or not self._linear.write(filled, outputs):
                self._refuse(rows)
        answers = self._answer(outputs)
        if x.ndim == 2:
            return answers
        return answers.item() if answers.ndim == 1 else answers[0]

    def _by_name(self, x: Any) -> Any:
        """The columns of training, in their order, of a row or rows with names."""
        if type(x) in (list, tuple):
            return x
        refuse_lazy_frames(x, "X")
        names = self._names
        if names is None:
            return x
        if is_frame(x):
            plain = is_plain_frame(x)
            return columns_by_name(x, names) if plain else plain_rows(table_of(x), names)
        # A row of a data frame is a series with the names of the columns as its index.
        given = x if isinstance(x, Mapping) else getattr(x, "index", None)
        if given is None or callable(given) or not any(isinstance(name, str) for name in given):
            return x
        refuse_missing_columns(names, [*given])
        return [x[name] for name in names]

    def _numbers(self, x: Any) -> NDArray[Any]:
        """Rows of any other kind than the expected array, as an array of real numbers."""
        if type(x) in (list, tuple):
            x = array_of_lists(x)
            if x.dtype.kind in "biuf":
                return x
        if sp.issparse(x):
            raise ValueError(
                "A predictor takes dense rows. Call toarray() first, or use predict, which takes "
                "sparse matrices."
            )
        if isinstance(x, Mapping):
            raise ValueError(
                f"The model was fitted on {self._n_columns} columns without names: pass a row as "
                "an array or a list, not a dictionary."
            )
        refuse_what_is_not_numbers(x)
        x = array_of_lists(np.asarray(x) if hasattr(x, "shape") else x)
        refuse_what_is_not_numbers(x)  # a list may contain dates
        return numbers_of_objects(x)

    def _filled(self, rows: NDArray[Any]) -> NDArray[Any] | None:
        """Rows with medians in place of missing values, if there are any and the model has them."""
        medians, missing = getattr(self._parts[0], "medians_", None), np.isnan(rows)
        if medians is None or not missing.any():
            return None
        return np.where(missing, medians.astype(rows.dtype), rows)

    def _refuse(self, rows: NDArray[Any]) -> None:
        if not np.isfinite(rows).all():
            raise ValueError("A row contains NaN or infinity; predictions need finite numbers.")
        raise ValueError(self._parts[0].overflow(rows))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts
