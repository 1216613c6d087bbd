"""Slicing, joining and validation of arrays, sparse matrices, data frames and lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, validate_data

from kitchenette.data.schema import refuse_repeated_names
from kitchenette.data.targets import is_missing, refuse_lazy_frames
from kitchenette.kernels.base import canonical, checked_sparse, native_order

FLOATS: list[type] = [np.float64, np.float32]
DATES = (date, time, timedelta, np.datetime64, np.timedelta64)  # pandas' types are subclasses


def slices(n_rows: int, size: int) -> Iterator[slice]:
    """Slices of ``size`` rows that cover all rows in order."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def take(X: Any, rows: Any) -> Any:
    """Some rows of a matrix or a data frame, as the same type."""
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return X[rows]
    if is_table(X):
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(X.num_rows)
            return X.slice(start, max(0, stop - start))
        return X.take(rows)
    return _safe_indexing(X, rows)


def joined(parts: Sequence[Any]) -> Any:
    """Rows one after the other, of parts of the same type; None if the parts are None."""
    first = parts[0]
    if len(parts) == 1 or first is None:
        return first
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if sp.issparse(first):
        return sp.vstack(parts, format="csr")
    if is_table(first):
        import pyarrow

        return pyarrow.concat_tables(parts, promote_options="permissive")
    import pandas as pd  # type: ignore[import-untyped]  # installed wherever its frames come from

    return pd.concat(parts, ignore_index=True)


def is_table(X: Any) -> bool:
    """Whether something is an Arrow table, without importing pyarrow."""
    return type(X).__module__.partition(".")[0] == "pyarrow" and hasattr(X, "column_names")


def table(X: Any) -> Any:
    """Convert lists to arrays and sparse matrices to checked CSR, so that `take` can index rows."""
    X = array_of_lists(X)
    refuse_what_is_not_numbers(X)
    return checked_sparse(X) if sp.issparse(X) else X


def array_of_lists(X: Any) -> Any:
    """Rows in lists as an array; everything else as it is."""
    if hasattr(X, "shape"):
        return X
    if type(X) not in (list, tuple):
        refuse_lazy_frames(X, "X")
        if isinstance(X, str | PathLike):
            raise ValueError(
                f"Rows must be an array or a data frame; got the path {str(X)!r}. Pass "
                "kitchenette.data.source(path, target=...), which reads files in blocks."
            )
    try:
        rows = np.asarray(X)
    except ValueError as error:
        raise ValueError(
            "Rows must be lists of equally many numbers; these have different lengths, or lists "
            f"inside ({error})."
        ) from error
    if rows.dtype.kind == "O" and rows.ndim == 1 and any(isinstance(row, Mapping) for row in rows):
        raise ValueError(
            "Rows are dictionaries: pass pandas.DataFrame(rows), whose columns are found by name."
        )
    return rows


def numbers_of_objects(X: Any) -> Any:
    """An array of Python objects or strings as numbers, NaN where they are missing."""
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "OUS":
        return X
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError):
        filled = np.array([np.nan if is_missing(value) else value for value in X.flat], object)
    try:
        return filled.astype(np.float64).reshape(X.shape)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{error}: an array must have numbers only. Pass a data frame, such as "
            "pandas.DataFrame(X), for columns of strings."
        ) from error


def refuse_what_is_not_numbers(X: Any) -> None:
    """Refuse masked arrays, dates, complex numbers and records, which are no real numbers."""
    if isinstance(X, np.ma.MaskedArray):
        raise ValueError(
            "Masked arrays are not supported, because their masked entries would be used as "
            "numbers. Fill them first, for example with sklearn.impute.SimpleImputer."
        )
    if hasattr(X, "columns"):
        if not is_table(X):
            refuse_repeated_names([*X.columns])
        for i, dtype in enumerate(getattr(X, "dtypes", ())):
            _refuse_dates(dtype, X, i)
            if getattr(dtype, "kind", None) == "c":
                raise ValueError(_complex_sentence(f"the column {X.columns[i]!r}"))
        return
    dtype = getattr(X, "dtype", None)
    _refuse_dates(dtype, X)
    if getattr(dtype, "kind", None) == "c":
        raise ValueError(_complex_sentence("the array"))
    if getattr(dtype, "names", None):
        raise ValueError(
            "Rows are records of a structured array: pass pandas.DataFrame(rows), whose columns "
            "are found by name."
        )


def _complex_sentence(what: str) -> str:
    return (
        f"Complex data not supported: {what} has complex numbers. Pass real and imaginary parts "
        "as columns of their own."
    )


def _refuse_dates(dtype: Any, X: Any, column: int | None = None) -> None:
    """Refuse dates or times, also as Python objects or as categories, in a column or an array."""
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    date_type = dtype if getattr(dtype, "kind", None) in ("m", "M") else None
    if getattr(dtype, "kind", None) == "O":
        # A column of objects may have values of any type, while the types of pandas and Arrow
        # tell the type of their values.
        types = {dtype.type}
        if dtype == np.dtype(object):
            types = {*map(type, np.ravel(X) if column is None else X.iloc[:, column])}
        date_type = next((t.__name__ for t in types if _is_date(t)), None)
    if date_type is not None:
        raise ValueError(
            f"A column of dates or times ({'' if column is None else f'{X.columns[column]!r}, '}"
            f"{date_type}) is not a number. Leave it out, or convert it to one, for example to "
            "days since 1970, as kitchenette.data.source(frame, dates='days') does."
        )


def _is_date(cls: type) -> bool:
    # pandas is optional, so its Period is recognized by name. NaT is a missing value of any type.
    return (issubclass(cls, DATES) and cls.__name__ != "NaTType") or cls.__name__ == "Period"


def rows_of_positive_weight(X: Any, weights: Any) -> tuple[Any, Any]:
    """The rows of a `table` whose weight is not zero, and their weights."""
    if weights is None or np.all(weights):
        return X, weights
    positive = np.flatnonzero(weights)
    if positive.size == 0:
        raise ValueError("All weights are zero: there is no row to learn from.")
    return take(X, positive), weights[positive]


def checked_rows(owner: Any, X: Any) -> Any:
    """Rows for a fitted estimator: finite float32 or float64, dense or canonical CSR."""
    if is_finite_matrix(owner, X):
        return X
    check_is_fitted(owner)
    return validated(owner, X, reset=False)


def is_finite_matrix(owner: Any, X: Any) -> bool:
    """Whether rows are a finite float matrix for a fitted estimator without names of columns.

    They need no other checks. Those of scikit-learn take longer than the features of a few rows.
    """
    if (
        type(X) is not np.ndarray
        or X.ndim != 2
        or X.shape[0] == 0
        or X.shape[1] != vars(owner).get("n_features_in_")
        or X.dtype not in FLOATS
        or "feature_names_in_" in vars(owner)
    ):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))


def validated(owner: Any, X: Any, *, reset: bool) -> Any:
    """`validate_data` of scikit-learn, for all formats that feature maps take."""
    X = array_of_lists(X)  # so that dates in a list are recognized
    refuse_what_is_not_numbers(X)
    X = validate_data(
        owner,
        native_order(numbers_of_objects(X)),
        accept_sparse="csr",
        dtype=FLOATS,
        reset=reset,
        ensure_all_finite="allow-nan",
    )
    return without_missing(owner, canonical(X))


def has_missing(rows: Any) -> bool:
    """Whether an array or a sparse matrix has NaN."""
    numbers = rows.data if sp.issparse(rows) else rows
    if numbers.dtype.kind != "f":
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return not np.isfinite(numbers.sum()) and bool(np.isnan(numbers).any())


def without_missing(owner: Any, rows: Any) -> Any:
    """Rows with medians in place of NaN, if the map of an estimator has them; else refused."""
    if not has_missing(rows):
        return rows
    medians = getattr(owner, "medians_", None)
    if sp.issparse(rows):
        raise ValueError(
            "Input X contains NaN in a sparse matrix, in which missing values are not filled. "
            "Pass dense rows, or remove these rows or columns."
        )
    if medians is None:
        columns = np.flatnonzero(np.isnan(rows).any(axis=0))
        names = getattr(owner, "feature_names_in_", None)
        listed = [str(j) if names is None else repr(str(names[j])) for j in columns[:5]]
        raise ValueError(
            f"Input X contains NaN (missing values) in column{'s' if columns.size > 1 else ''} "
            f"{', '.join(listed)}{', ...' if columns.size > 5 else ''}, which "
            f"{type(owner).__name__} does not take. Fill them first, for example with "
            "sklearn.impute.SimpleImputer, or remove these rows; KernelRegressor, "
            "KernelClassifier and KernelPCA fill them with medians."
        )
    return np.where(np.isnan(rows), medians.astype(rows.dtype), rows)
