"""Maps of rows with missing values (NaN), which medians and indicator columns stand for."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kitchenette.columns.categories import Impute
from kitchenette.data.keys import numbers_to_hash
from kitchenette.data.profile import median_of
from kitchenette.data.reduction import ConvertedRows, Reducible
from kitchenette.data.rows import take
from kitchenette.data.schema import ColumnRules, DataError
from kitchenette.data.source import Block
from kitchenette.maps.base import RowMap
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.prepared_map import PreparedMap
from kitchenette.maps.protocol import fit_map, specification_of, thawed

Prepared = TypeVar("Prepared", bound=PreparedMap)
MEDIAN_ROWS, MEDIAN_NUMBERS = 1000, 1 << 22  # of which medians are found in a few milliseconds


def with_map(
    columns: Prepared, feature_map: Any, sample: Block, everything: Reducible | None = None
) -> Prepared:
    """A preparation of columns followed by a map, of the class of ``columns``.

    A copy of ``feature_map`` is fitted on the prepared rows of the sample; ``everything`` are all
    rows, for maps that look at all of them.
    """
    prepared = columns.prepared_rows(sample.X)
    inner = fit_map(
        feature_map,
        prepared,
        sample.y,
        sample.weight,
        population=sample.population,
        copies=sample.copies,
        everything=None if everything is None else ConvertedRows(everything, columns.prepared_rows),
    )
    first = columns.specification_
    specification = PreparedSpecification.of(
        first.preparation, specification_of(inner, prepared), first.vocabularies
    )
    inner = thawed(inner)
    own = isinstance(inner, RowMap) and inner.fitted() is specification.inner
    names = vars(columns).get("feature_names_in_")
    return columns.of(specification, inner if own else None, names, by_name=columns.by_name_)


def filled_map(feature_map: Any, sample: Block, everything: Any = None) -> PreparedMap:
    """A map of an array with missing values, which are filled as those of a table are.

    A copy of ``feature_map`` is fitted on the filled columns and indicator columns of the sample;
    ``everything`` are all rows, for maps that look at all of them.
    """
    if everything is not None:
        check_missing_allowed(everything.rules)
    flags = np.flatnonzero(np.isnan(sample.X).any(axis=0))
    filled = Impute(
        n_columns=sample.X.shape[1],
        kept=np.arange(sample.X.shape[1], dtype=np.int64),
        fill=column_medians(sample.X, sample.copies),
        flags=flags.astype(np.int64),
    )
    return with_map(
        PreparedMap.of(PreparedSpecification.of(filled)), feature_map, sample, everything
    )


def check_missing_allowed(rules: ColumnRules) -> None:
    """Refuse missing values of an array if they are to be refused."""
    if rules.missing == "refuse":
        raise DataError(
            "Input X contains NaN (missing values), which missing='refuse' does not allow. Use "
            "missing='median', or remove these rows."
        )


def medians_of_some(rows: Any, copies: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """`column_medians` of some of many rows: a thousand of them, or fewer of many columns."""
    n_rows, n_columns = rows.shape
    step = -(-n_rows // max(1, min(MEDIAN_ROWS, MEDIAN_NUMBERS // n_columns)))
    if step > 1:
        rows = take(rows, np.arange(0, n_rows, step))
        copies = None if copies is None else copies[::step]
    return column_medians(rows, copies)


def column_medians(rows: Any, copies: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """The medians of the columns of dense rows, each of which counts so many times.

    Missing values and infinite numbers do not count; a column without others has the median zero.
    """
    numbers = numbers_to_hash(rows).astype(np.float64, copy=False)
    if (copies is None or (copies == 1).all()) and np.isfinite(numbers).all():
        return np.median(numbers, axis=0)  # the same, in less time
    return np.array([median_of(column, copies) for column in numbers.T])
