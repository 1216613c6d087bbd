"""The preparation of the columns of a table, chosen from a profile of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence as Several
from typing import Any

import numpy as np

from kitchenette.columns.categories import Impute, OneHot
from kitchenette.columns.codings import (
    Categories,
    Coding,
    Days,
    HashedCategories,
    Texts,
    Vocabulary,
)
from kitchenette.columns.ordering import in_order
from kitchenette.columns.preparation import Columns, LinearColumns, Preparation, Sequence
from kitchenette.data.csv_errors import NULLS
from kitchenette.data.profile import ColumnProfile, ProfileOf
from kitchenette.data.reduction import Reducible
from kitchenette.data.schema import ColumnRules, DataError, KnownColumn, Schema

REFUSED, NOTHING = -2, -1  # targets of `OneHot`


def prepared_columns(
    profile: ColumnProfile, rules: ColumnRules
) -> tuple[Preparation, tuple[Coding, ...]]:
    """How the columns of a table become numbers.

    The codings give a number for each value of columns that have others than numbers, the
    preparation makes the columns of a map from them. Identifiers are not read, unless there is
    nothing else.
    """
    schema = profile.schema
    ignored = {j for j, column in enumerate(schema) if profile.is_identifier(column)}
    if len(ignored) == len(schema):
        ignored = set()
        warnings.warn(
            "Nearly all values of all columns are different. They are learned nevertheless, but "
            "such columns only tell rows apart, and say little of other rows.",
            UserWarning,
            stacklevel=2,
        )
    read = [(j, column) for j, column in enumerate(schema) if j not in ignored]
    if rules.missing == "refuse":
        for _, column in read:
            if profile.n_missing[column.name]:
                raise DataError(missing_sentence([column.name]))
    categories = [j for j, column in read if column.kind == "category"]
    others = [j for j, column in read if column.kind != "category"]
    codings: list[Coding] = [Days(j) for j, column in read if column.kind == "date"]
    parts: list[Preparation] = []
    if others:
        parts.append(_filled(profile, [schema.names[j] for j in others], rules))
    if categories:
        encoders = [_CategoryEncoder(profile, schema.names[j], rules) for j in categories]
        codings += [one.coding(j) for one, j in zip(encoders, categories, strict=True)]
        parts.append(_one_hot(encoders))
    if not categories and not ignored:
        return parts[0], tuple(codings)
    columns = np.array([*others, *categories], dtype=np.int64)
    preparation = Columns(n_columns=len(schema), parts=tuple(parts), columns=columns)
    return preparation, tuple(codings)


def prepared_names(
    names: Several[str], preparation: Preparation, codings: Several[Coding]
) -> list[str]:
    """What the columns of a map are, such as "age", "age is missing" and "city = Rome".

    Preparation and codings are those of `prepared_columns` for columns with these names.
    """
    categories = {one.column: one.categories for one in codings if isinstance(one, Categories)}
    parts = preparation.parts if isinstance(preparation, Columns) else (preparation,)
    owners, indicators = preparation.owners().tolist(), preparation.indicators()
    prepared = []
    for place in np.flatnonzero(~indicators).tolist():
        name = names[owners[place]]
        prepared.append(f"{name} is missing" if name in prepared else name)
    for part in parts:
        if isinstance(part, OneHot):
            columns = list(dict.fromkeys(np.array(owners)[indicators].tolist()))
            for j, column in enumerate(columns):
                own = part.targets[part.starts[j] : part.starts[j + 1]].tolist()
                for target in range(part.widths[j]):
                    if target == part.missing[j]:
                        prepared.append(f"{names[column]} is missing")
                    elif column not in categories:
                        prepared.append(f"{names[column]}, hash {target}")
                    else:
                        pooled = [
                            c for c, t in zip(categories[column], own, strict=True) if t == target
                        ]
                        text = pooled[0] if len(pooled) == 1 else "others"
                        prepared.append(f"{names[column]} = {text}")
    return prepared


def known_columns(
    names: Several[str], preparation: Preparation, codings: Several[Coding]
) -> dict[str, KnownColumn]:
    """The columns of a table that a map reads, for reading others like them."""
    read, by_place = preparation.reads(), {one.column: one for one in codings}
    by_name = {}
    for j, name in enumerate(names):
        coding = by_place.get(j)
        if isinstance(coding, Vocabulary | HashedCategories):
            by_name[str(name)] = KnownColumn("category", frozenset(NULLS & {*coding.categories}))
        elif read[j]:
            by_name[str(name)] = KnownColumn("date" if isinstance(coding, Days) else "number")
    return by_name


def column_summary(
    names: Several[str],
    preparation: Preparation,
    codings: Several[Coding],
    encoding: Preparation | None = None,
) -> dict[str, str]:
    """What became of each column of a table: {"age": "a number", "city": "3 categories"}.

    ``encoding`` is what the map does to the prepared columns first.
    """
    read, by_place = preparation.reads(), {one.column: one for one in codings}
    widths = np.bincount(preparation.owners(), minlength=len(names))
    filled = _medians(preparation)
    summary = {}
    for j, name in enumerate(names):
        coding = by_place.get(j)
        if not read[j]:
            text = "ignored, because nearly all values are different"
        elif isinstance(coding, HashedCategories):
            text = f"many categories, hashed into {coding.n_buckets} columns"
        elif isinstance(coding, Categories):
            n_categories = len(coding.categories)
            text = f"{n_categories} categor{'y' if n_categories == 1 else 'ies'}"
            if widths[j] < n_categories:
                text += f", of which rare ones share one of {widths[j]} columns"
        else:
            text = "days since 1970" if isinstance(coding, Days) else "a number"
            if widths[j] > 1:
                text += f", {filled[j]:g} (the median) and an indicator where it is missing"
        if isinstance(coding, Texts) and coding.values != "string":
            text += f" ({coding.values}s)"
        summary[str(name)] = text
    for j, text in _encoded(preparation, encoding).items():
        summary[str(names[j])] += text
    return summary


def _encoded(preparation: Preparation, encoding: Preparation | None) -> dict[int, str]:
    """What the map does to the columns of a table, where it encodes their prepared columns."""
    if not isinstance(encoding, Columns):
        return {}
    owners = preparation.owners()
    kept: set[int] = set()
    texts: dict[int, str] = {}
    for part, columns in zip(encoding.parts, encoding.selections(), strict=True):
        of_table = {*owners[columns].tolist()}
        if isinstance(part, OneHot):
            texts |= dict.fromkeys(of_table, ", also as categories")
        elif isinstance(part, LinearColumns):
            texts |= {j: f", {'also ' * (j in kept)}as a number by their order" for j in of_table}
        else:
            kept = of_table
    return texts


def _medians(preparation: Preparation) -> dict[int, float]:
    """What stands for missing numbers of each column."""
    parts = preparation.parts if isinstance(preparation, Columns) else (preparation,)
    places = preparation.selections() if isinstance(preparation, Columns) else None
    medians: dict[int, float] = {}
    for number, part in enumerate(parts):
        if isinstance(part, Impute):
            columns = part.kept if places is None else places[number][part.kept]
            medians |= dict(zip(columns.tolist(), part.fill.tolist(), strict=True))
    return medians


def missing_sentence(names: Several[str]) -> str:
    """The error message for missing values."""
    listed = ", ".join(repr(name) for name in names[:5])
    return (
        f"There are missing values in {listed}, which missing='refuse' does not allow. Use "
        "missing='median', or remove these rows."
    )


def _filled(profile: ColumnProfile, names: list[str], rules: ColumnRules) -> Preparation:
    n_columns = len(names)
    if rules.missing == "refuse":
        return Sequence(n_columns=n_columns)
    flags = [j for j, name in enumerate(names) if profile.n_missing[name]]
    return Impute(
        n_columns=n_columns,
        kept=np.arange(n_columns, dtype=np.int64),
        fill=np.array([profile.medians[name] for name in names]),
        flags=np.array(flags, dtype=np.int64),
    )


class _CategoryEncoder:
    """The indicator columns of a column of categories."""

    def __init__(self, profile: ColumnProfile, name: str, rules: ColumnRules):
        categories = profile.categories(name)
        self.values = profile.stored.get(name, "category").replace("category", "string")
        self.nulls = tuple(sorted(NULLS & {category for category, _ in categories}))
        self.hashed = len(categories) > rules.high_cardinality
        most = rules.most_categories
        if self.hashed:
            self.categories: list[str] = []
            self.targets = [*range(most)]
            self.width = most
        else:
            frequent = [category for category, count in categories if count >= rules.least_rows]
            if len(categories) <= 2:  # pooling a rare one would give the same column
                frequent = [category for category, _ in categories]
            if len(frequent) > most:
                frequent = frequent[: most - 1]
            places = {category: place for place, category in enumerate(in_order(frequent))}
            self.categories = sorted(category for category, _ in categories)
            rare = len(places)
            self.targets = [places.get(category, rare) for category in self.categories]
            self.width = rare + any(category not in places for category in self.categories)
        self.missing = NOTHING
        if rules.missing == "refuse":
            self.missing = REFUSED
        elif profile.n_missing[name]:
            self.missing = self.width
            self.width += 1

    def coding(self, column: int) -> Coding:
        """The codes of the categories."""
        if self.hashed:
            n_buckets = self.width - (self.missing >= 0)
            return HashedCategories(column, n_buckets, self.values, self.nulls)
        return Categories(column, tuple(self.categories), self.values)


def _one_hot(encoders: list[_CategoryEncoder]) -> OneHot:
    sizes = [len(one.targets) for one in encoders]
    return OneHot(
        n_columns=len(encoders),
        keys=np.concatenate([np.arange(size, dtype=np.float64) for size in sizes]),
        targets=np.concatenate([np.array(one.targets, dtype=np.int64) for one in encoders]),
        starts=np.cumsum([0, *sizes], dtype=np.int64),
        widths=np.array([one.width for one in encoders], dtype=np.int64),
        unknown=np.full(len(encoders), NOTHING, dtype=np.int64),
        missing=np.array([one.missing for one in encoders], dtype=np.int64),
    )


def profile_of(
    schema: Schema, sample: Any, everything: Reducible | None = None, copies: Any = None
) -> ColumnProfile:
    """The profile of a table: of a sample alone, or with all rows for its counts.

    ``copies`` says how often each row of the sample counts.
    """
    if everything is None:
        profile = ColumnProfile(schema)
        profile.observe(sample, copies)
    else:
        profile = everything.reduced(ProfileOf(schema))
    profile.find_medians(sample, copies)
    return profile
