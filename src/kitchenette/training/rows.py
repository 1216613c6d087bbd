"""Rows as users pass them, checked: their type, the number and the names of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

from kitchenette.data.keys import has_plain_numbers
from kitchenette.data.profile import NAME_OF_IDENTIFIER
from kitchenette.data.rows import (
    array_of_lists,
    is_table,
    numbers_of_objects,
    refuse_what_is_not_numbers,
    table,
    take,
)
from kitchenette.data.schema import refuse_other_kinds
from kitchenette.data.tables import (
    columns_by_name,
    has_numbers_only,
    is_frame,
    is_plain_frame,
    plain_rows,
    schema_of,
    selected,
    table_of,
    with_text_names,
    without_index,
)
from kitchenette.data.targets import refuse_lazy_frames
from kitchenette.kernels.base import checked_sparse
from kitchenette.learning.least_squares import checked_weights
from kitchenette.learning.target_coding import NoTargets
from kitchenette.maps.base import RowMap
from kitchenette.maps.protocol import thawed
from kitchenette.maps.table_map import TableMap
from kitchenette.training.feature_maps import fills_missing, takes_numbers
from kitchenette.training.prepared import Prepared

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """The columns of the first rows of an estimator.

    Attributes
    ----------
    count : int
        Their number.
    names : ndarray of shape (count,) or None
        Their names.
    """

    count: int
    names: NDArray[Any] | None


@cache
def _named(estimator: str) -> type:
    """A class of this name, for scikit-learn's checks, whose messages name the estimator."""
    return type(estimator, (BaseEstimator,), {})


def checked_rows(prepared: Prepared, X: Any) -> Any:
    """Further rows, with the columns of the first ones; the map checks their values."""
    if (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == prepared.n_columns
        and X.dtype.kind in "fiub"
        and prepared.names is None
    ):
        return X  # the general checks take longer than predicting a few rows
    refuse_lazy_frames(X, "X")
    if is_frame(X) or (isinstance(X, Mapping) and not sp.issparse(X)):
        X = _table_of_known_columns(prepared, X)
        if is_table(X) or isinstance(X, np.ndarray):
            return X
    owner = _named(prepared.estimator)()
    owner.n_features_in_ = prepared.n_columns
    if prepared.names is not None:
        owner.feature_names_in_ = prepared.names
    return _validated(owner, X, reset=False, numeric=takes_numbers(prepared.fitted))


def checked_first_rows(estimator: str, feature_map: Any, X: Any) -> tuple[Any, Columns]:
    """The first rows of an estimator, and their columns."""
    refuse_lazy_frames(X, "X")
    if is_frame(X) or (isinstance(X, Mapping) and not sp.issparse(X)):
        X, columns = _first_table(estimator, feature_map, X)
        if columns is not None:
            return X, columns
    owner = _named(estimator)()
    X = _validated(owner, X, reset=True, numeric=fills_missing(feature_map))
    return X, Columns(owner.n_features_in_, getattr(owner, "feature_names_in_", None))


def _validated(owner: Any, X: Any, *, reset: bool, numeric: bool) -> Any:
    """Rows that scikit-learn has checked, but for their values."""
    X = array_of_lists(X)
    refuse_what_is_not_numbers(X)
    if sp.issparse(X):
        X = checked_sparse(X)
    if hasattr(X, "columns"):
        # A data frame stays one: the map may need its names and types, and converts blocks.
        return _not_empty(validate_data(owner, X, reset=reset, skip_check_array=True), owner)
    X = validate_data(
        owner, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False
    )
    return numbers_of_objects(X) if numeric else X


def _table_of_known_columns(prepared: Prepared, X: Any) -> Any:
    """A data frame with the columns of the first rows, as a table where the map wants one."""
    X = table_of(X) if isinstance(X, Mapping) else X
    fitted, names = prepared.fitted, None if prepared.names is None else [*prepared.names]
    if isinstance(fitted, TableMap):
        return _not_empty(fitted.table(X), prepared.estimator)
    if is_plain_frame(X):
        X = X if names is None else columns_by_name(X, names)
        if names is None or not takes_numbers(fitted) or has_plain_numbers(X):
            return X
        refuse_what_is_not_numbers(X)
    X = table_of(X)
    if isinstance(fitted, RowMap) and names is not None:
        return _not_empty(selected(X, names), prepared.estimator)  # the map converts blocks
    return _not_empty(plain_rows(X, names), prepared.estimator)


def _first_table(estimator: str, unfitted: Any, X: Any) -> tuple[Any, Columns | None]:
    """A data frame as an Arrow table, if its columns are to be prepared; else as it is."""
    X = table_of(X) if isinstance(X, Mapping) else X
    if is_plain_frame(X):
        X = with_text_names(X)
    feature_map = thawed(unfitted)
    own = isinstance(feature_map, TableMap) or fills_missing(unfitted)
    if not own and not is_table(X):
        return X, None  # a pipeline may prepare the columns in its own way
    if not is_table(X):
        refuse_what_is_not_numbers(X)
        named = any(map(NAME_OF_IDENTIFIER.fullmatch, map(str, X.columns)))
        if not isinstance(feature_map, TableMap) and has_numbers_only(X) and not named:
            return X, None
    found = _not_empty(without_index(table_of(X)), estimator)
    names = found.column_names
    if isinstance(feature_map, TableMap):
        found, names = feature_map.table(found), feature_map.feature_names_in_
    refuse_other_kinds(schema_of(found.schema, {}), "frame.drop(columns={!r})")
    return found, Columns(len(names), np.array(names, dtype=object))


def _not_empty(rows: Any, owner: Any) -> Any:
    if rows.shape[0] == 0:
        name = owner if isinstance(owner, str) else type(owner).__name__
        raise ValueError(
            f"Found array with 0 sample(s) (shape={rows.shape}) while a minimum of 1 is required "
            f"by {name}."
        )
    return rows


def encoded_rows(
    prepared: Prepared, coding: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, Any, Any, Array | None]:
    """Further rows as a model takes them: the coding of all targets, rows, targets, weights."""
    X = checked_rows(prepared, X)
    if not isinstance(coding, NoTargets):
        refuse_no_targets(prepared.estimator, y)
    coding, targets = coding.encoded(y)
    return coding, *with_weights(X, targets, sample_weight, coding, prepared.class_weight)


def refuse_no_targets(estimator: str, y: Any) -> None:
    """Refuse rows without targets."""
    if y is None:
        raise ValueError(f"{estimator} requires y to be passed, but the target y is None.")


def with_weights(
    X: Any, targets: Any, sample_weight: Any, coding: Any, class_weight: Any
) -> tuple[Any, Any, Array | None]:
    """Checked rows, encoded targets and weights of equal length, without rows of weight zero.

    If all weights are zero, all rows are kept.
    """
    if targets is not None:
        check_consistent_length(X, targets)
    weights = None if sample_weight is None else checked_weights(sample_weight, X.shape[0])
    weights = coding.weighted(targets, weights, class_weight)
    X = table(X)
    if weights is not None and weights.any() and not weights.all():
        kept = np.flatnonzero(weights)
        X, weights = take(X, kept), weights[kept]
        targets = None if targets is None else targets[kept]
    return X, NoTargets.of(X.shape[0]) if targets is None else targets, weights
