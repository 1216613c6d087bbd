"""Fitted transformers of scikit-learn as preparations of columns.

Exactly the classes named here are translated, not their subclasses; other transformers, and
options that are not listed, give None, so that the transformer itself is called instead.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
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

from kitchenette.maps.base import RowMap
from kitchenette.maps.preparation import (
    ColumnAffine,
    Columns,
    Impute,
    OneHot,
    PiecewiseLinear,
    Preparation,
    Sequence,
    UnitRows,
)
from kitchenette.maps.prepared import (
    NO_WORD,
    PreparedMap,
    PreparedSpecification,
    Vocabulary,
)

EXACT_INTEGERS = 2**53  # larger ones are not exact in float64


class NotTranslated(Exception):
    """The transformer, or one of its options, has no translation."""


@dataclass
class Column:
    """A column on its way through the steps.

    ``words`` are the known strings of a column of strings, shared by all columns that are made
    of it; ``raw`` is its number in the data, None once it has been computed with.
    """

    raw: int | None = None
    words: list[str] = field(default_factory=list)
    is_text: list[bool] = field(default_factory=lambda: [False])  # shared like the words

    def code(self, value: Any) -> float:
        """The number that stands for a category or a substitute."""
        if isinstance(value, str):
            if self.raw is None and not self.is_text[0]:
                raise NotTranslated
            self.is_text[0] = True
            if value not in self.words:
                self.words.append(str(value))
            return float(self.words.index(value))
        if value is None:
            return NO_WORD
        number = isinstance(value, numbers.Real) or isinstance(value, np.bool_)
        if not number or (isinstance(value, numbers.Integral) and abs(value) > EXACT_INTEGERS):
            raise NotTranslated
        return float(value)

    def filled(self) -> Column:
        """The column after missing values were replaced; it has the same words."""
        return Column(self.raw, self.words, self.is_text)


def preparation_of(estimator: Any) -> Preparation | None:
    """The preparation that a fitted transformer of numeric columns makes, or None.

    Parameters
    ----------
    estimator : fitted transformer
        A StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, QuantileTransformer,
        Normalizer, SimpleImputer, OneHotEncoder, ColumnTransformer or Pipeline of scikit-learn.

    Returns
    -------
    preparation : Preparation or None
    """
    columns = _raw_columns(estimator)
    if columns is None:
        return None
    try:
        preparation, _ = _translated(estimator, columns)
    except NotTranslated:
        return None
    return None if any(column.is_text[0] for column in columns) else preparation


def prepared_map(estimator: Any) -> PreparedMap | None:
    """A fitted transformer, or a pipeline of them with a map of this package last, or None."""
    steps, last = _steps(estimator), None
    if steps and isinstance(steps[-1], RowMap):
        last = steps.pop()
    columns = _raw_columns(estimator)
    if columns is None or (last is not None and "specification_" not in vars(last)):
        return None
    try:
        preparation, made = _in_sequence(steps, columns)
        if any(column.is_text[0] for column in made) or preparation.n_outputs == 0:
            return None
        vocabularies = tuple(
            Vocabulary(j, tuple(column.words))
            for j, column in enumerate(columns)
            if column.is_text[0]
        )
        specification = PreparedSpecification.of(
            preparation, None if last is None else last.fitted(), vocabularies
        )
    except NotTranslated:
        return None
    by_name = bool(steps) and type(steps[0]) is ColumnTransformer
    names = getattr(estimator, "feature_names_in_", None)
    return PreparedMap.of(specification, last, names, by_name=by_name and names is not None)


def _raw_columns(estimator: Any) -> list[Column] | None:
    try:
        return [Column(raw=j) for j in range(estimator.n_features_in_)]
    except AttributeError:  # not fitted, or without a fixed number of columns
        return None


def _steps(estimator: Any) -> list[Any]:
    """The fitted steps of a pipeline, or the transformer itself, without frozen shells."""
    if isinstance(estimator, FrozenEstimator):
        return _steps(estimator.estimator)
    if type(estimator) is not Pipeline:
        return [estimator]
    steps = []
    for _, step in estimator.steps:
        if step is not None and not (isinstance(step, str) and step == "passthrough"):
            steps += _steps(step)
    return steps


Translation = tuple[Preparation, list[Column]]


def _translated(estimator: Any, columns: list[Column]) -> Translation:
    """The preparation of these columns, and what they become."""
    steps = _steps(estimator)
    if len(steps) != 1 or steps[0] is not estimator:
        return _in_sequence(steps, columns)
    translate = TRANSLATIONS.get(type(estimator))
    if translate is None:
        raise NotTranslated
    return translate(estimator, columns)


def _in_sequence(steps: list[Any], columns: list[Column]) -> Translation:
    n_columns, made = len(columns), []
    for step in steps:
        preparation, columns = _translated(step, columns)
        made.append(preparation)
    if len(made) == 1:
        return made[0], columns
    return Sequence(n_columns=n_columns, steps=tuple(made)), columns


# ---------------------------------------------------------------- numbers to numbers


def _computed(preparation: Preparation, columns: list[Column]) -> Translation:
    if any(column.is_text[0] for column in columns) or len(columns) != preparation.n_columns:
        raise NotTranslated
    return preparation, [Column() for _ in range(preparation.n_outputs)]


def _affine(
    columns: list[Column], offset: Any, factor: Any, low: float = -np.inf, high: float = np.inf
) -> Translation:
    n = len(columns)
    offset = np.zeros(n) if offset is None else np.asarray(offset, dtype=np.float64)
    factor = np.ones(n) if factor is None else np.asarray(factor, dtype=np.float64)
    if not (np.isfinite(offset).all() and np.isfinite(factor).all()):
        raise NotTranslated  # a column without any number, for example
    return _computed(ColumnAffine.of(offset, factor, low=low, high=high), columns)


def _inverse(scale: Any) -> Any:
    with np.errstate(all="ignore"):
        return None if scale is None else 1 / np.asarray(scale, dtype=np.float64)


def _standard(scaler: Any, columns: list[Column]) -> Translation:
    return _affine(columns, scaler.mean_ if scaler.with_mean else None, _inverse(scaler.scale_))


def _min_max(scaler: Any, columns: list[Column]) -> Translation:
    scale = np.asarray(scaler.scale_, dtype=np.float64)
    low, high = scaler.feature_range if scaler.clip else (-np.inf, np.inf)
    with np.errstate(all="ignore"):
        offset = -np.asarray(scaler.min_, dtype=np.float64) / scale
    return _affine(columns, offset, scale, low, high)


def _max_abs(scaler: Any, columns: list[Column]) -> Translation:
    if getattr(scaler, "clip", False):
        return _affine(columns, None, _inverse(scaler.scale_), -1.0, 1.0)
    return _affine(columns, None, _inverse(scaler.scale_))


def _robust(scaler: Any, columns: list[Column]) -> Translation:
    offset = scaler.center_ if scaler.with_centering else None
    return _affine(columns, offset, _inverse(scaler.scale_) if scaler.with_scaling else None)


def _quantile(transformer: Any, columns: list[Column]) -> Translation:
    quantiles = np.asarray(transformer.quantiles_, dtype=np.float64)
    if not np.isfinite(quantiles).all():
        raise NotTranslated
    normal = transformer.output_distribution == "normal"
    made = PiecewiseLinear.of(
        list(quantiles.T),
        [transformer.references_] * quantiles.shape[1],
        ends=None if normal else (0.0, 1.0),
        normal=normal,
    )
    return _computed(made, columns)


def _normalizer(normalizer: Any, columns: list[Column]) -> Translation:
    return _computed(UnitRows(n_columns=len(columns), norm=normalizer.norm), columns)


def _function(transformer: Any, columns: list[Column]) -> Translation:
    if transformer.func is not None or transformer.validate:
        raise NotTranslated
    return Sequence(n_columns=len(columns)), columns


# ---------------------------------------------------------------- missing values, categories


def _imputer(imputer: Any, columns: list[Column]) -> Translation:
    statistics = np.asarray(imputer.statistics_).tolist()
    empty = [isinstance(value, float) and np.isnan(value) for value in statistics]
    kept = [
        j
        for j in range(len(columns))
        if imputer.strategy == "constant" or imputer.keep_empty_features or not empty[j]
    ]
    if any(empty[j] for j in kept) or len(statistics) != len(columns):
        raise NotTranslated
    fill = [columns[j].code(statistics[j]) for j in kept]
    codes = np.array([_codes(column, [imputer.missing_values])[0] for column in columns])
    if not (np.isnan(codes).all() or (codes == codes[0]).all()):
        raise NotTranslated  # a word that has another code in every column
    flags = imputer.indicator_.features_ if imputer.add_indicator else []
    made = Impute(
        n_columns=len(columns),
        missing=float(codes[0]),
        kept=np.array(kept, dtype=np.int64),
        fill=np.array(fill, dtype=np.float64),
        flags=np.array(flags, dtype=np.int64),
    )
    return made, [columns[j].filled() for j in kept] + [Column() for _ in flags]


def _one_hot(encoder: Any, columns: list[Column]) -> Translation:
    if encoder.handle_unknown == "warn" or (
        encoder.drop is not None and encoder.handle_unknown != "error"
    ):
        raise NotTranslated  # it warns of each unknown category
    if len(encoder.categories_) != len(columns):
        raise NotTranslated
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
    made = OneHot(
        n_columns=len(columns),
        keys=np.concatenate(keys),
        targets=np.concatenate(targets).astype(np.int64),
        starts=np.cumsum([0, *map(len, keys)], dtype=np.int64),
        widths=np.array(widths, dtype=np.int64),
        unknown=np.array(unknown, dtype=np.int64),
        missing=np.array(missing, dtype=np.int64),
    )
    return made, [Column() for _ in range(made.n_outputs)]


def _codes(column: Column, values: list[Any]) -> NDArray[np.float64]:
    """The codes of values that are all strings, except for None and NaN, or all numbers."""
    present = [value for value in values if value is not None and value == value]
    if len({isinstance(value, str) for value in present}) > 1:
        raise NotTranslated
    codes = np.array([column.code(value) for value in values], dtype=np.float64)
    if None in values and not column.is_text[0]:
        raise NotTranslated  # the code of None might be one of the numbers
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


def _chosen_outputs(encoder: Any, widths: list[int]) -> list[Any]:
    """For each category of each column the output that is one, or -1, by trying it."""
    most = max(map(len, encoder.categories_))
    rows = np.empty((most, len(widths)), dtype=object)
    for j, categories in enumerate(encoder.categories_):
        rows[:, j] = categories[np.minimum(np.arange(most), len(categories) - 1)]
    if all(categories.dtype.kind != "O" for categories in encoder.categories_):
        kinds = {categories.dtype.kind for categories in encoder.categories_}
        if "U" not in kinds:
            rows = rows.astype(np.result_type(*encoder.categories_))
    names = getattr(encoder, "feature_names_in_", None)
    if names is not None:
        import pandas as pd

        rows = pd.DataFrame(dict(zip(names, rows.T, strict=True)))
    Z = encoder.transform(rows)
    Z = Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z)
    if Z.shape[1] != sum(widths):
        raise NotTranslated
    chosen = []
    for part, categories in zip(
        np.split(Z, np.cumsum(widths)[:-1], axis=1), encoder.categories_, strict=True
    ):
        part = part[: len(categories)]
        chosen.append(np.where(part.any(axis=1), part.argmax(axis=1) if part.size else -1, -1))
    return chosen


# ---------------------------------------------------------------- selections of columns


def _columns(transformer: Any, columns: list[Column]) -> Translation:
    if transformer.transformer_weights is not None:
        raise NotTranslated
    names = getattr(transformer, "feature_names_in_", None)
    parts, chosen, made = [], [], []
    for _, step, selection in transformer.transformers_:
        if isinstance(step, str) and step == "drop":
            continue
        indices = _indices(selection, names, len(columns))
        if not indices:
            continue
        some = [columns[j] for j in indices]
        if isinstance(step, str) and step == "passthrough":
            part, outputs = Sequence(n_columns=len(some)), some
        else:
            part, outputs = _translated(step, some)
        parts.append(part)
        chosen += indices
        made += outputs
    if not parts:
        raise NotTranslated
    columns_taken = np.array(chosen, dtype=np.int64)
    return Columns(n_columns=len(columns), parts=tuple(parts), columns=columns_taken), made


def _indices(selection: Any, names: Any, n_columns: int) -> list[int]:
    """The columns of a selection by number, name, mask or slice of these."""
    places = {} if names is None else {name: j for j, name in enumerate(names)}

    def place(item: Any) -> int:
        if isinstance(item, str):
            if item not in places:
                raise NotTranslated
            return places[item]
        return range(n_columns)[int(item)]

    if isinstance(selection, slice):
        if isinstance(selection.start, str) or isinstance(selection.stop, str):
            first = None if selection.start is None else place(selection.start)
            last = None if selection.stop is None else place(selection.stop) + 1
            selection = slice(first, last, selection.step)
        return [*range(n_columns)[selection]]
    if isinstance(selection, str | numbers.Integral):
        return [place(selection)]
    items = [*selection]
    if items and all(isinstance(item, bool | np.bool_) for item in items):
        return np.flatnonzero(items).tolist()
    return [place(item) for item in items]


TRANSLATIONS: dict[type, Callable[[Any, list[Column]], Translation]] = {
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
    QuantileTransformer: _quantile,
    Normalizer: _normalizer,
    FunctionTransformer: _function,
    SimpleImputer: _imputer,
    OneHotEncoder: _one_hot,
    ColumnTransformer: _columns,
}
