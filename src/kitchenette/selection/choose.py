"""`choose`: which map suits some data, as a report."""

from __future__ import annotations

from typing import Any

from sklearn.frozen import FrozenEstimator

from kitchenette.selection.automap import AutoMap
from kitchenette.selection.choice import Choice


def choose(
    X: Any,
    y: Any,
    *,
    n_components: int | str = "auto",
    kernel: Any = "auto",
    scales: str = "auto",
    task: str | None = None,
    budget: float | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
) -> Choice:
    """Choose a kernel, the scales of the columns, a width and a number of features.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        Rows, of which a sample is used.
    y : array-like of shape (n_rows,) or (n_rows, n_targets)
        What is to be predicted.
    n_components, kernel, scales, task, budget, random_state
        As in `AutoMap`; here the number of features is chosen by default.
    sample_weight : array-like of shape (n_rows,), optional
        Nonnegative weights.

    Returns
    -------
    choice : Choice
        What was tried as ``table``, what was chosen and why as ``sentence``, a picture by
        ``plot()``, and the map itself as ``feature_map``.

    Examples
    --------
    >>> import numpy as np
    >>> import kitchenette
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1]
    >>> choice = kitchenette.choose(X, y, random_state=0)
    >>> model = kitchenette.KernelRegressor(choice.feature_map).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """
    auto = AutoMap(
        n_components,
        kernel=kernel,
        scales=scales,
        task=task,
        budget=budget,
        random_state=random_state,
    )
    auto.fit_supervised(X, y, sample_weight)
    return auto.choice_.with_map(FrozenEstimator(auto))
