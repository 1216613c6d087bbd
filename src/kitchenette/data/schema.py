"""Names and kinds of columns, and how they become numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from kitchenette.parameters import check_choice, check_count

KINDS = ("number", "boolean", "category", "date")
MISSING = ("median", "refuse")
DATES = ("refuse", "days")


class DataError(ValueError):
    """Rows that cannot be read; the message names the file and the line or the row group.

    Examples
    --------
    >>> from kitchenette.data import DataError, source
    >>> try:
    ...     source("nowhere.csv")
    ... except DataError as error:
    ...     print(error)
    There is no file nowhere.csv.
    """


@dataclass(frozen=True)
class Column:
    """A column of a source.

    Attributes
    ----------
    name : str
        Its name; columns of arrays are called x0, x1 and so on.
    kind : {"number", "boolean", "category", "date"}
        What is in it. Strings are categories.
    dtype : str
        The type as it is stored.
    is_index : bool
        Whether it is the index of a data frame of pandas, which is no column to predict from.
    is_given : bool
        Whether its kind was given, and does not follow from its type.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.data import source
    >>> source(np.ones((2, 1))).schema["x0"]
    Column(name='x0', kind='number', dtype='float64')
    """

    name: str
    kind: str
    dtype: str
    is_index: bool = field(default=False, repr=False)
    is_given: bool = field(default=False, repr=False)


@dataclass(frozen=True)
class KnownColumn:
    """A column as a fitted model has it, for reading others like it.

    Examples
    --------
    >>> import pandas as pd
    >>> from kitchenette import KernelRegressor
    >>> frame = pd.DataFrame({"country": ["NA", "ZA"] * 20})
    >>> model = KernelRegressor(random_state=0).fit(frame, [0.0, 1.0] * 20)
    >>> model.known_columns()
    {'country': KnownColumn(kind='category', categories=frozenset({'NA'}))}
    """

    kind: str  # what the model takes it for; booleans are numbers
    # Categories that CSV files also have for missing values, such as "NA"
    categories: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Schema:
    """The columns of a source, in order.

    Attributes
    ----------
    columns : tuple of Column
        The columns.

    Examples
    --------
    >>> from kitchenette.data import Column, Schema
    >>> schema = Schema((Column("age", "number", "int64"), Column("city", "category", "string")))
    >>> schema.names, schema["city"].kind
    (['age', 'city'], 'category')
    """

    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    def some(self, names: list[str]) -> Schema:
        """The columns of these names, in this order."""
        return Schema(tuple(self[name] for name in names))

    def read_as(self, columns: Mapping[str, KnownColumn]) -> Schema:
        """The same columns with the kinds that a model knows, where their own are others.

        Booleans stay booleans where the model has numbers, and dates where it has none.
        """
        return Schema(tuple(_read_as(column, columns.get(column.name)) for column in self))


def _read_as(column: Column, model_column: KnownColumn | None) -> Column:
    if model_column is None or model_column.kind == column.kind:
        return column
    if model_column.kind == "category" or (
        model_column.kind == "number" and column.kind == "category"
    ):
        return replace(column, kind=model_column.kind)
    return column


@dataclass(frozen=True)
class ColumnRules:
    """How columns become numbers.

    Attributes
    ----------
    missing : {"median", "refuse"}
        What becomes of missing values. "median": the median of the column, and an indicator column
        for each column in which some were missing when the model was prepared. "refuse": an error.
        Missing categories are a category of their own.
    dates : {"refuse", "days"}
        What becomes of dates and times. "days": the number of days since the beginning of 1970 in
        UTC, with fractions. "refuse": an error.
    most_categories : int
        The largest number of indicator columns of a column of categories; rarer ones share one.
    least_rows : int
        Categories in fewer rows of the sample are rare.
    high_cardinality : int
        A column of more categories in the sample is hashed into ``most_categories`` columns.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.data import source
    >>> source(np.ones((2, 1)), missing="refuse").rules.missing
    'refuse'
    """

    missing: str = "median"
    dates: str = "refuse"
    most_categories: int = 64
    least_rows: int = 3
    high_cardinality: int = 1000

    @property
    def most_columns(self) -> int:
        """An upper bound of the number of columns that one column becomes."""
        return self.most_categories + 2  # for missing values, and a rare category out of two

    def check(self) -> None:
        """Refuse invalid values."""
        check_choice("missing", self.missing, MISSING)
        check_choice("dates", self.dates, DATES)
        for name in ("most_categories", "least_rows", "high_cardinality"):
            check_count(name, getattr(self, name))


def refuse_repeated_names(names: Sequence[Any]) -> None:
    """Refuse columns of equal names."""
    if len(set(names)) < len(names):
        repeated = sorted({str(name) for name in names if list(names).count(name) > 1})
        raise DataError(
            f"Columns must have different names; repeated: {', '.join(map(repr, repeated[:5]))}. "
            "Rename or drop the copies."
        )


def refuse_other_kinds(schema: Schema, how: str) -> None:
    """Refuse columns of lists, structures and others; ``how`` says how to leave one out."""
    for column in schema:
        if column.kind == "other":
            raise DataError(
                f"The column {column.name!r} has values of the type {column.dtype}, which is "
                f"neither a number nor a category nor a date. Leave it out by "
                f"{how.format(column.name)}, or turn it into columns of numbers or strings first."
            )


def checked_kinds(kinds: Any) -> dict[str, str]:
    """A mapping from names of columns to kinds."""
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        raise ValueError(f"kinds must map names of columns to kinds; got {kinds!r}.")
    for name, kind in kinds.items():
        check_choice(f"the kind of {name!r}", kind, KINDS)
    return dict(kinds)
