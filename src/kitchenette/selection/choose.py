"""`choose`: which map suits some data, as a report."""

from __future__ import annotations

from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array

from kitchenette.data.border import as_source
from kitchenette.data.opening import source
from kitchenette.data.rows import is_table
from kitchenette.data.tables import has_numbers_only, is_frame
from kitchenette.data.targets import array_of_targets
from kitchenette.learning.least_squares import checked_weights
from kitchenette.maps.table_map import TableMap
from kitchenette.selection.automap import AutoMap
from kitchenette.selection.choice import Choice
from kitchenette.sketching.random import seed_from


def choose(
    X: Any,
    y: Any = None,
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
    X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
        Rows, of which a sample is used. A source has its own targets and weights.
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
    seed = seed_from(random_state)
    auto = AutoMap(
        n_components, kernel=kernel, scales=scales, task=task, budget=budget, random_state=seed
    )
    if is_table(X) or (is_frame(X) and not has_numbers_only(X)):
        y = check_array(array_of_targets(y), ensure_2d=False, dtype=None, input_name="y")
        if sample_weight is not None:
            sample_weight = checked_weights(sample_weight, X.shape[0])
        X, y, sample_weight = source(X, target=y, weight=sample_weight), None, None
    rows = as_source(X, y, sample_weight)
    if not rows.is_table:
        auto.fit_supervised(X, y, sample_weight)
        return auto.choice_.with_map(FrozenEstimator(auto))
    sample, schema = rows.drawn(seed), rows.schema.some(rows.features)
    fitted = TableMap.fitted_on(auto, schema, sample, rules=rows.rules)
    assert isinstance(fitted.map_, AutoMap)
    return fitted.map_.choice_.with_map(FrozenEstimator(fitted))
