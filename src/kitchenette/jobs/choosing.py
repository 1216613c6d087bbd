"""A numeric sample of a source, on which maps are chosen and compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kitchenette.columns.table_columns import prepared_names
from kitchenette.data import DataError, Source
from kitchenette.maps import SRHT
from kitchenette.maps.table_map import TableMap
from kitchenette.selection import AutoMap
from kitchenette.selection.choice import Choice
from kitchenette.selection.targets import likely_task


class PreparedSample(NamedTuple):
    """A sample of the rows of a source in numeric columns."""

    X: Any  # the prepared columns
    y: NDArray[Any]
    weight: NDArray[np.float64] | None
    # The names of the prepared columns, such as "city = Rome"; None for arrays
    names: list[str] | None
    # The column of the source that each prepared column is made from; None for arrays
    owners: NDArray[np.int64] | None


def prepared_sample(source: Source, n_rows: int | None = None, seed: int = 0) -> PreparedSample:
    """A sample of a source with encoded categories and imputed missing values.

    Parameters
    ----------
    source : Source
        Rows with targets.
    n_rows : int, optional
        The size of the sample; by default that of the estimators.
    seed : int, default=0
        The seed of the sample.

    Returns
    -------
    sample : PreparedSample

    Examples
    --------
    >>> import pandas as pd
    >>> from kitchenette.data import source
    >>> from kitchenette.jobs import prepared_sample
    >>> frame = pd.DataFrame({"city": ["Oslo", "Rome"] * 20, "warm": [False, True] * 20})
    >>> sample = prepared_sample(source(frame, target="warm"))
    >>> sample.X.shape, sample.names
    ((40, 2), ['city = Oslo', 'city = Rome'])
    """
    sample = source.sample(n_rows, seed)
    if sample.y is None:
        raise DataError("Give the target column, as target='name'.")
    if not source.is_table:
        return PreparedSample(sample.X, sample.y, sample.weight, None, None)
    schema = source.schema.some(source.features)
    # Only the preparation of the columns is used, so the map does not matter.
    fitted = TableMap.fitted_on(
        SRHT(n_components=1, random_state=seed), schema, sample, rules=source.rules
    )
    X = fitted.prepared_rows(sample.X)
    specification = fitted.specification_
    preparation = specification.preparation
    names = prepared_names(source.features, preparation, specification.vocabularies)
    return PreparedSample(X, sample.y, sample.weight, names, preparation.owners())


def choose_rows(
    source: Source,
    *,
    task: str | None = None,
    components: int | str = "auto",
    effort: str | float = "balanced",
    seed: int = 0,
) -> Choice:
    """Choose a kernel, scales, a width and a number of features for a source.

    Parameters
    ----------
    source : Source
        Rows with targets.
    task : {"classification", "regression"} or None, default=None
        None decides by the targets.
    components : int or "auto", default="auto"
        The number of features.
    effort : {"fast", "balanced", "best"} or float, default="balanced"
        As in `AutoMap`.
    seed : int, default=0
        The seed of the sample and of the map.

    Returns
    -------
    choice : Choice

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.data import source
    >>> from kitchenette.jobs import choose_rows
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> choice = choose_rows(source(X, target=np.sin(3 * X[:, 0])), components=64)
    >>> choice.chosen["loss"] < 0.1
    True
    """
    sample = prepared_sample(source, None, seed)
    automap = AutoMap(
        components,
        task=likely_task(sample.y) if task is None else task,
        effort=effort,
        random_state=seed,
    )
    automap.fit_supervised(sample.X, sample.y, sample.weight)
    return automap.choice_
