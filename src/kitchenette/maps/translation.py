"""Fitted pipelines of scikit-learn as preparations of columns.

Exactly the classes named in `TRANSLATED` are translated, not their subclasses; other transformers,
and options that are not known, give None, so that the transformer itself is called instead.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from kitchenette.columns.codings import Vocabulary
from kitchenette.columns.preparation import Columns, Sequence
from kitchenette.columns.scalers import SCALERS, InputColumn, NotTranslatedError, Translation
from kitchenette.maps.base import RowMap
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.prepared_map import PreparedMap

TRANSLATED = (*SCALERS, ColumnTransformer, Pipeline)
OF_NUMBERS = (
    StandardScaler,
    MinMaxScaler,
    MaxAbsScaler,
    RobustScaler,
    QuantileTransformer,
    Normalizer,
)


def prepared_map(estimator: Any) -> PreparedMap | None:
    """A fitted transformer, or a pipeline of them with a map of this package last, or None."""
    steps, last = _steps(estimator), None
    if steps and isinstance(steps[-1], RowMap):
        last = steps.pop()
    first = steps[0] if steps else last
    n_columns = getattr(first, "n_features_in_", None)
    if n_columns is None:
        return None
    columns = [InputColumn(raw=True) for _ in range(n_columns)]
    if last is not None:
        if not _is_its_specification(last):
            return None
        last = last.for_inference()  # it stays as it is if somebody fits the map on more rows
    try:
        preparation, made = _in_sequence(steps, columns)
        if any(column.categories is not None for column in made) or preparation.n_outputs == 0:
            return None
        vocabularies = tuple(
            Vocabulary(j, tuple(column.categories))
            for j, column in enumerate(columns)
            if column.categories is not None
        )
        specification = PreparedSpecification.of(
            preparation, None if last is None else last.fitted(), vocabularies
        )
    except NotTranslatedError:
        return None
    names = getattr(first, "feature_names_in_", None)
    by_name = type(first) is ColumnTransformer and names is not None
    return PreparedMap.of(specification, last, names, by_name=by_name)


def takes_numbers_only(feature_map: Any) -> bool:
    """Whether all steps of a pipeline before its map are scalers.

    Such a pipeline has no way of its own to take strings and missing values.

    Examples
    --------
    >>> from sklearn.impute import SimpleImputer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kitchenette import Fastfood
    >>> from kitchenette.maps.translation import takes_numbers_only
    >>> takes_numbers_only(make_pipeline(StandardScaler(), Fastfood()))
    True
    >>> takes_numbers_only(make_pipeline(SimpleImputer(), Fastfood()))
    False
    """
    if type(feature_map) is not Pipeline:
        return False
    *scalers, last = _steps(feature_map)
    return isinstance(last, RowMap) and all(type(step) in OF_NUMBERS for step in scalers)


def _is_its_specification(fitted: RowMap) -> bool:
    """Whether the features of a map are those of its specification, as a subclass may change."""
    own = type(fitted)
    usual = own.operator is RowMap.operator and own.transform is RowMap.transform
    return usual and "specification_" in vars(fitted)


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


def _translated(estimator: Any, columns: list[InputColumn]) -> Translation:
    """The preparation of these columns, and what they become."""
    steps = _steps(estimator)
    if len(steps) != 1 or steps[0] is not estimator:
        return _in_sequence(steps, columns)
    if type(estimator) is ColumnTransformer:
        return _side_by_side(estimator, columns)
    if type(estimator) not in SCALERS:
        raise NotTranslatedError
    return SCALERS[type(estimator)](estimator, columns)


def _in_sequence(steps: list[Any], columns: list[InputColumn]) -> Translation:
    n_columns, made = len(columns), []
    for step in steps:
        preparation, columns = _translated(step, columns)
        made.append(preparation)
    if len(made) == 1:
        return made[0], columns
    return Sequence(n_columns=n_columns, steps=tuple(made)), columns


# ---------------------------------------------------------------- selections of columns


def _side_by_side(transformer: Any, columns: list[InputColumn]) -> Translation:
    if transformer.transformer_weights is not None:
        raise NotTranslatedError
    names = getattr(transformer, "feature_names_in_", None)
    parts, chosen, made = [], [], []
    for _, step, selection in transformer.transformers_:
        if isinstance(step, str) and step == "drop":
            continue
        indices = _indices(selection, names, len(columns))
        if not indices:
            continue
        some = [columns[j] for j in indices]
        passed = isinstance(step, str) and step == "passthrough"
        part, outputs = _in_sequence([], some) if passed else _translated(step, some)
        parts.append(part)
        chosen += indices
        made += outputs
    if not parts:
        raise NotTranslatedError
    columns_taken = np.array(chosen, dtype=np.int64)
    return Columns(n_columns=len(columns), parts=tuple(parts), columns=columns_taken), made


def _indices(selection: Any, names: Any, n_columns: int) -> list[int]:
    """The columns of a selection by number, name, mask or slice of these."""
    places = {} if names is None else {name: j for j, name in enumerate(names)}

    def place(item: Any) -> int:
        if isinstance(item, str):
            if item not in places:
                raise NotTranslatedError
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
