"""Fitted transformers of scikit-learn, each by itself, as preparations of columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from kitchenette.columns.categories import Impute, OneHot
from kitchenette.columns.codings import NONE_CODE
from kitchenette.columns.preparation import (
    ColumnAffine,
    PiecewiseLinear,
    Preparation,
    Sequence,
    UnitRows,
)

EXACT_INTEGERS = 2**53  # larger ones may not be exact in float64


class NotTranslatedError(Exception):
    """The transformer, or one of its options, has no translation."""


@dataclass(slots=True)
class InputColumn:
    """A column on its way through the steps."""

    raw: bool = False  # whether it is as in the data, where it may be of strings
    # The codes of the known strings of a column of strings; one whose missing values were replaced
    # shares them
    categories: dict[str, float] | None = None

    def code(self, value: Any) -> float:
        """The number that stands for a category or a substitute."""
        if isinstance(value, str):
            if self.categories is None:
                if not self.raw:
                    raise NotTranslatedError
                self.categories = {}
            return self.categories.setdefault(str(value), float(len(self.categories)))
        if value is None:
            return NONE_CODE
        if not isinstance(value, int | float) or abs(value) > EXACT_INTEGERS:
            raise NotTranslatedError
        return float(value)


Translation = tuple[Preparation, list[InputColumn]]
NUMBERS = InputColumn()  # all computed columns, which never change


# ---------------------------------------------------------------- numbers to numbers


def _computed(preparation: Preparation, columns: list[InputColumn]) -> Translation:
    if (
        any(column.categories is not None for column in columns)
        or len(columns) != preparation.n_columns
    ):
        raise NotTranslatedError
    return preparation, [NUMBERS] * preparation.n_outputs


def _affine(
    columns: list[InputColumn], offset: Any, factor: Any, low: float = -np.inf, high: float = np.inf
) -> Translation:
    n = len(columns)
    offset = np.zeros(n) if offset is None else np.asarray(offset, dtype=np.float64)
    factor = np.ones(n) if factor is None else np.asarray(factor, dtype=np.float64)
    if not (np.isfinite(offset).all() and np.isfinite(factor).all()):
        raise NotTranslatedError  # a column without any number, for example
    return _computed(ColumnAffine.of(offset, factor, low=low, high=high), columns)


def _inverse(scale: Any) -> Any:
    with np.errstate(all="ignore"):
        return None if scale is None else 1 / np.asarray(scale, dtype=np.float64)


def _standard(scaler: Any, columns: list[InputColumn]) -> Translation:
    return _affine(columns, scaler.mean_ if scaler.with_mean else None, _inverse(scaler.scale_))


def _min_max(scaler: Any, columns: list[InputColumn]) -> Translation:
    scale = np.asarray(scaler.scale_, dtype=np.float64)
    low, high = scaler.feature_range if scaler.clip else (-np.inf, np.inf)
    with np.errstate(all="ignore"):
        offset = -np.asarray(scaler.min_, dtype=np.float64) / scale
    return _affine(columns, offset, scale, low, high)


def _max_abs(scaler: Any, columns: list[InputColumn]) -> Translation:
    limit = 1.0 if getattr(scaler, "clip", False) else np.inf
    return _affine(columns, None, _inverse(scaler.scale_), -limit, limit)


def _robust(scaler: Any, columns: list[InputColumn]) -> Translation:
    offset = scaler.center_ if scaler.with_centering else None
    return _affine(columns, offset, _inverse(scaler.scale_) if scaler.with_scaling else None)


def _quantile(transformer: Any, columns: list[InputColumn]) -> Translation:
    quantiles = np.asarray(transformer.quantiles_, dtype=np.float64)
    if not np.isfinite(quantiles).all():
        raise NotTranslatedError
    normal = transformer.output_distribution == "normal"
    preparation = PiecewiseLinear.of(
        list(quantiles.T),
        [transformer.references_] * quantiles.shape[1],
        ends=None if normal else (0.0, 1.0),
        normal=normal,
    )
    return _computed(preparation, columns)


def _normalizer(normalizer: Any, columns: list[InputColumn]) -> Translation:
    return _computed(UnitRows(n_columns=len(columns), norm=normalizer.norm), columns)


def _function(transformer: Any, columns: list[InputColumn]) -> Translation:
    if transformer.func is not None or transformer.validate:
        raise NotTranslatedError
    return Sequence(n_columns=len(columns)), columns


# ---------------------------------------------------------------- missing values, categories


def _imputer(imputer: Any, columns: list[InputColumn]) -> Translation:
    statistics = np.asarray(imputer.statistics_).tolist()
    empty = [isinstance(value, float) and np.isnan(value) for value in statistics]
    kept = [
        j
        for j in range(len(columns))
        if imputer.strategy == "constant" or imputer.keep_empty_features or not empty[j]
    ]
    if any(empty[j] for j in kept) or len(statistics) != len(columns):
        raise NotTranslatedError
    fill = [columns[j].code(statistics[j]) for j in kept]
    codes = np.array([_codes(column, [imputer.missing_values])[0] for column in columns])
    if not (np.isnan(codes).all() or (codes == codes[0]).all()):
        raise NotTranslatedError  # a category that has another code in every column
    flags = imputer.indicator_.features_ if imputer.add_indicator else []
    preparation = Impute(
        n_columns=len(columns),
        missing=float(codes[0]),
        kept=np.array(kept, dtype=np.int64),
        fill=np.array(fill, dtype=np.float64),
        flags=np.array(flags, dtype=np.int64),
    )
    imputed = [InputColumn(categories=columns[j].categories) for j in kept]
    return preparation, imputed + [NUMBERS] * len(flags)


def _one_hot(encoder: Any, columns: list[InputColumn]) -> Translation:
    if encoder.handle_unknown == "warn" or (
        encoder.drop is not None and encoder.handle_unknown != "error"
    ):
        raise NotTranslatedError  # it warns of each unknown category
    if len(encoder.categories_) != len(columns):
        raise NotTranslatedError
    widths = _widths(encoder)
    chosen = _chosen_outputs(encoder, widths)
    keys, targets, unknown, missing = [], [], [], []
    for j, (column, categories) in enumerate(zip(columns, encoder.categories_, strict=True)):
        codes = _codes(column, categories.tolist())
        rest = -2 if encoder.handle_unknown == "error" else -1
        infrequent = _infrequent(encoder, j)
        if infrequent is not None and encoder.handle_unknown == "infrequent_if_exist":
            rest = int(chosen[j][infrequent])
        absent = np.isnan(codes)
        missing.append(int(chosen[j][absent][0]) if absent.any() else rest)
        order = np.argsort(codes[~absent])
        keys.append(codes[~absent][order])
        targets.append(chosen[j][~absent][order])
        unknown.append(rest)
    preparation = OneHot(
        n_columns=len(columns),
        keys=np.concatenate(keys),
        targets=np.concatenate(targets).astype(np.int64),
        starts=np.cumsum([0, *map(len, keys)], dtype=np.int64),
        widths=np.array(widths, dtype=np.int64),
        unknown=np.array(unknown, dtype=np.int64),
        missing=np.array(missing, dtype=np.int64),
    )
    return preparation, [NUMBERS] * preparation.n_outputs


def _codes(column: InputColumn, values: list[Any]) -> NDArray[np.float64]:
    """The codes of values that are all strings, except for None and NaN, or all numbers."""
    present = [value for value in values if value is not None and value == value]
    if len({isinstance(value, str) for value in present}) > 1:
        raise NotTranslatedError
    codes = np.array([column.code(value) for value in values], dtype=np.float64)
    if column.categories is None and any(value is None for value in values):
        raise NotTranslatedError  # the code of None might be one of the numbers
    return codes


def _infrequent(encoder: Any, j: int) -> int | None:
    """The place of an infrequent category among those of a column, or None."""
    if encoder.min_frequency is None and encoder.max_categories is None:
        return None
    rare = encoder.infrequent_categories_[j]
    if rare is None:
        return None
    return int(np.flatnonzero(encoder.categories_[j] == rare[0])[0])


def _widths(encoder: Any) -> list[int]:
    """The number of output columns of each column."""
    widths = []
    for j, categories in enumerate(encoder.categories_):
        width = len(categories)
        if _infrequent(encoder, j) is not None:
            width -= len(encoder.infrequent_categories_[j]) - 1
        if encoder.drop_idx_ is not None and encoder.drop_idx_[j] is not None:
            width -= 1
        widths.append(width)
    return widths


def _chosen_outputs(encoder: Any, widths: list[int]) -> list[NDArray[np.int64]]:
    """For each category of each column the output that is one, or -1, by trying it."""
    places = np.arange(max(map(len, encoder.categories_)))
    columns = [
        categories[np.minimum(places, len(categories) - 1)] for categories in encoder.categories_
    ]
    names = getattr(encoder, "feature_names_in_", None)
    Z = encoder.transform(np.stack(columns, axis=1) if names is None else _frame(names, columns))
    Z = Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z)
    if Z.shape[1] != sum(widths):
        raise NotTranslatedError
    chosen = []
    ends = np.cumsum(widths)
    for categories, width, end in zip(encoder.categories_, widths, ends, strict=True):
        ones = Z[: len(categories), end - width : end] != 0
        targets = np.full(len(categories), -1, dtype=np.int64)
        place, output = np.nonzero(ones)
        targets[place] = output
        chosen.append(targets)
    return chosen


def _frame(names: Any, columns: list[Any]) -> Any:
    import pandas as pd  # type: ignore[import-untyped]  # names of columns come from data frames

    return pd.DataFrame(dict(zip(names, columns, strict=True)))


SCALERS: dict[type, Callable[[Any, list[InputColumn]], Translation]] = {
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
    QuantileTransformer: _quantile,
    Normalizer: _normalizer,
    FunctionTransformer: _function,
    SimpleImputer: _imputer,
    OneHotEncoder: _one_hot,
}
