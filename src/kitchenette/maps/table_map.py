"""A map of the columns of a table, which are found by name and prepared first."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kitchenette.columns.codings import UNKNOWN_CATEGORY, Categories, Days
from kitchenette.columns.table_columns import (
    column_summary,
    missing_sentence,
    prepared_columns,
    profile_of,
)
from kitchenette.data.rows import FLOATS, is_table
from kitchenette.data.schema import ColumnRules, DataError, Schema
from kitchenette.data.source import Block, Source
from kitchenette.data.tables import (
    columns_by_name,
    is_frame,
    is_plain_frame,
    is_single,
    matrix_of,
    numbers_of,
    refuse_missing_columns,
    selected,
    table_of,
)
from kitchenette.files.registry import storable
from kitchenette.maps.filling import with_map
from kitchenette.maps.prepared import Coder, PreparedSpecification
from kitchenette.maps.prepared_map import PreparedMap

LEAST_UNKNOWN = 10  # values of a column that are noted if the model knows none; fewer may be new


@storable
class TableMap(PreparedMap):
    """A map of a table with columns of any kind, as numbers of this package.

    Columns are found by name, in any order; others are ignored, and so are identifiers, which
    predictions do not need. Categories, medians and the map itself are numbers of the model, which
    files contain. The estimators make it when they are fitted on a source of named columns, or on
    a data frame with strings, categories or missing values.

    Examples
    --------
    >>> import pandas as pd
    >>> from kitchenette import KernelClassifier
    >>> frame = pd.DataFrame({"city": ["Oslo", "Rome"] * 20, "warm": [False, True] * 20})
    >>> model = KernelClassifier(random_state=0).fit(frame[["city"]], frame["warm"])
    >>> model.predictor()({"city": "Rome", "people": 2.7})
    True
    >>> model.feature_map_.specification_.vocabularies[0].categories
    ('Oslo', 'Rome')
    """

    @classmethod
    def fitted_on(
        cls,
        feature_map: Any,
        schema: Schema,
        sample: Block,
        *,
        rules: ColumnRules | None = None,
        everything: Any = None,
    ) -> Self:
        """The map fitted on a sample of a table, with targets and weights if there are any.

        ``feature_map``, the map of the prepared columns, is not changed. ``everything`` are all
        rows, for maps that look at all of them; in a source of three passes, categories and
        missing values are looked up there instead of in the sample.
        """
        rules = ColumnRules() if rules is None else rules
        dated = [column.name for column in schema if column.kind == "date"]
        if dated and rules.dates == "refuse":
            raise DataError(
                f"A column of dates or times ({dated[0]!r}) is not a number. Leave it out, or use "
                "kitchenette.data.source(..., dates='days')."
            )
        counted = everything is not None and everything.passes == 3
        profile = profile_of(schema, sample.X, everything if counted else None, sample.copies)
        preparation, codings = prepared_columns(profile, rules)
        columns = PreparedSpecification.of(preparation, None, codings)
        made = cls.of(columns, None, schema.names, by_name=True)
        made.note_ignored()
        return with_map(made, feature_map, sample, everything)

    @property
    def read_names(self) -> list[str]:
        """The columns that predictions need."""
        return [str(n) for n in self.feature_names_in_[self.specification_.preparation.reads()]]

    @property
    def ignored_names(self) -> list[str]:
        """The columns that are not used, because nearly all of their values are different."""
        return [str(n) for n in self.feature_names_in_[~self.specification_.preparation.reads()]]

    def column_summary(self) -> dict[str, str]:
        """How each column is used.

        Examples
        --------
        >>> import pandas as pd
        >>> from kitchenette import KernelRegressor
        >>> frame = pd.DataFrame({"city": ["Oslo", "Rome"] * 20, "id": range(40)})
        >>> model = KernelRegressor(random_state=0).fit(frame, [0.0, 1.0] * 20)
        >>> model.feature_map_.column_summary()
        {'city': '2 categories', 'id': 'a number'}
        """
        specification = self.specification_
        names, codings = [*map(str, self.feature_names_in_)], specification.vocabularies
        chosen: Any = specification.inner if hasattr(self.map_, "choice_") else None
        steps = getattr(getattr(chosen, "preparation", None), "steps", None)
        encoding = steps[0] if steps else None
        return column_summary(names, specification.preparation, codings, encoding)

    def note_ignored(self) -> None:
        """Warn of columns that are ignored."""
        ignored = self.ignored_names
        if ignored:
            some = ", ".join(map(repr, ignored[:10])) + (", ..." if len(ignored) > 10 else "")
            warnings.warn(
                f"Columns are ignored, because nearly all of their values are different: {some}. "
                f"To keep one, tell what it is, as in kinds={{{ignored[0]!r}: 'category'}}.",
                UserWarning,
                stacklevel=2,
            )

    def columns_of(self, source: Source) -> Source:
        """The rows of a source with the columns of the map alone, read as it has them."""
        return source.read_as(self.known_columns()).with_columns(self.read_names)

    def table(self, X: Any) -> Any:
        """The columns of a table or a data frame that are read, by name, as an Arrow table."""
        names = self.read_names
        if is_plain_frame(X) and X.shape[1] > len(names):
            X = columns_by_name(X, names)  # others need not be convertible
        return selected(table_of(X), names)

    def rows(self, X: Any) -> Any:
        """Check and convert rows: columns by name, or in the order of fitting for an array."""
        if is_table(X) or is_frame(X) or isinstance(X, Mapping):
            rows = self._coded_table(self.table(X))
        else:
            rows = self._coded_array(X)
        self.check_rows(rows)
        return rows

    def _coded_table(self, table: Any) -> NDArray[Any]:
        codings = {coding.column: coding for coding in self.specification_.vocabularies}
        places = np.flatnonzero(self.specification_.preparation.reads()).tolist()
        nothing = np.zeros(table.num_rows, np.float32)
        columns, single = [nothing] * self.n_features_in_, True
        for j, values in zip(places, table.columns, strict=True):
            name = str(self.feature_names_in_[j])
            if j in codings:
                columns[j] = codings[j].of_table(values, name)
                _note_unknown(codings[j], columns[j], name)
                single &= j not in self._dates
            else:
                columns[j] = numbers_of(values, "number", name)
                single &= is_single(values.type)
        return matrix_of(columns, table.num_rows, np.float32 if single else np.float64)

    @property
    def _dates(self) -> list[int]:
        return [one.column for one in self.specification_.vocabularies if isinstance(one, Days)]

    def _coded_array(self, X: Any) -> NDArray[Any]:
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features_in_ or X.shape[0] == 0:
            raise ValueError(
                f"Rows must have the {self.n_features_in_} columns of training, and there must be "
                f"one at least; got an array of shape {X.shape}."
            )
        if not self.specification_.vocabularies and X.dtype.kind in "biuf":
            return X if X.dtype in FLOATS else X.astype(np.float64)
        return Coder(self.specification_, [*map(str, self.feature_names_in_)])(X)

    def restore(self, fitted: dict[str, Any]) -> None:
        super().restore(fitted)
        if "feature_names_in_" not in vars(self):
            raise ValueError("the columns of a table must have names.")

    @property
    def coder(self) -> TableCoder:
        """What turns single rows into numbers."""
        return TableCoder(self)

    def overflow(self, rows: Any) -> str:
        """The error message for rows of which a feature is not finite."""
        lost = self._lost(rows)
        if lost.any():
            columns = self.specification_.preparation.owners()[lost.any(axis=0)]
            names = [str(self.feature_names_in_[j]) for j in np.unique(columns)]
            return missing_sentence(names)
        infinite = np.flatnonzero(np.isinf(rows).any(axis=0))
        if infinite.size:
            return f"The column {self.feature_names_in_[infinite[0]]!r} has infinite numbers."
        return super().overflow(rows)


def _note_unknown(coding: Any, codes: NDArray[np.float64], name: str) -> None:
    """Warn of a column of which the model knows no value, as if it were another one."""
    if not isinstance(coding, Categories) or (codes >= 0).any():
        return
    if np.count_nonzero(codes == UNKNOWN_CATEGORY) >= LEAST_UNKNOWN:
        warnings.warn(
            f"In these rows the column {name!r} has no value that the model knows, which has "
            f"{coding.example}: all of them count as unknown categories.",
            UserWarning,
            stacklevel=2,
        )


class TableCoder(Coder):
    """Turns a row, as a dictionary or a sequence of values, into numbers."""

    def __init__(self, fitted: TableMap):
        super().__init__(fitted.specification_, [*map(str, fitted.feature_names_in_)])
        self._fitted, self._read = fitted, fitted.read_names

    def __call__(self, X: Any) -> NDArray[np.float64]:
        if is_table(X) or (is_frame(X) and getattr(X, "ndim", 2) == 2):
            return self._fitted.rows(X)
        if isinstance(X, Mapping) or (hasattr(X, "index") and hasattr(X, "get")):
            if any(name not in X for name in self._read):
                refuse_missing_columns(self._read, [*X.keys()])
            values = np.empty(len(self._names), dtype=object)
            values[:] = [X.get(name) for name in self._names]
            return super().__call__(values)
        return super().__call__(X)
