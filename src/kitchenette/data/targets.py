"""Checks of targets: what cannot be learned is refused with the rows where it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kitchenette.data.schema import DataError

NAMED_ROWS = 5  # that an error message lists


def array_of_targets(y: Any, what: str = "y") -> Any:
    """Targets as an array, of which none is missing, infinite or complex.

    The error message calls them ``what``. Sparse matrices and masked arrays are returned as
    they are.
    """
    if sp.issparse(y) or isinstance(y, np.ma.MaskedArray):
        return y
    refuse_lazy_frames(y, what)
    try:
        targets = np.asarray(y)
    except ValueError as error:
        raise ValueError(
            f"{what} must have one target, or equally many targets, for each row; got lists of "
            "different lengths."
        ) from error
    if targets.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {what} must be real numbers or labels. Pass real and "
            "imaginary parts as two columns of targets."
        )
    if targets.dtype.kind in "mM":
        raise ValueError(
            f"{what} has dates or times ({targets.dtype}), which are neither numbers nor labels. "
            "Convert them first: to numbers, such as days since some date, or to strings."
        )
    refuse_missing_targets(targets, what)
    return targets


def refuse_missing_targets(targets: NDArray[Any], what: str = "y") -> None:
    """Refuse targets of which some are missing or infinite, and name the rows."""
    if targets.dtype.kind == "f":
        finite = np.isfinite(targets)
        if finite.all():
            return
        missing = np.isnan(targets)
    elif targets.dtype.kind == "O":
        missing = np.array([is_missing(value) for value in targets.ravel()], dtype=bool)
        missing = missing.reshape(targets.shape)
    else:
        return
    if missing.any():
        raise DataError(
            f"Input {what} contains missing values (NaN, None or NA) in {_rows_where(missing)}. "
            "Remove these rows from the data and the targets first."
        )
    if targets.dtype.kind == "f":
        raise DataError(
            f"Input {what} contains infinity in {_rows_where(~finite)}. Remove these rows first, "
            "or limit their targets."
        )


def first_text(targets: Any) -> str | bytes | None:
    """The first string among targets, or None."""
    if getattr(targets, "dtype", np.dtype(float)).kind not in "OUS":
        return None
    return next((value for value in targets.flat if isinstance(value, str | bytes)), None)


def is_missing(value: Any) -> bool:
    """Whether a Python object stands for a missing value: None, NaN, pandas' NA or NaT."""
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def refuse_lazy_frames(rows: Any, what: str) -> None:
    """Refuse a lazy frame of polars, whose rows do not exist yet."""
    if type(rows).__module__.startswith("polars") and type(rows).__name__ == "LazyFrame":
        raise DataError(
            f"{what} is a LazyFrame, which has no rows before it is run: pass {what}.collect(), "
            "or kitchenette.data.source(frame, target=...), which reads it in blocks."
        )


def refuse_names(X: Any, y: Any) -> None:
    """Refuse the name of a column of X, or several, in place of the targets."""
    if isinstance(y, str):
        names = [y]
    elif isinstance(y, list | tuple) and y and all(isinstance(name, str) for name in y):
        columns = getattr(X, "columns", ()) if hasattr(type(X), "columns") else ()
        if len(y) == getattr(X, "shape", [len(y)])[0] or not {*y} <= {*columns}:
            return
        names = [*y]
    else:
        return
    quoted = repr(names[0] if isinstance(y, str) else names)
    dropped = quoted if type(X).__module__.startswith("polars") else f"columns={quoted}"
    raise DataError(
        f"y must be the targets, one for each row; got {quoted}, which looks like the name of a "
        f"column. Pass the column itself, as in fit(frame.drop({dropped}), frame[{quoted}]),"
        f" or fit(kitchenette.data.source(frame, target={quoted}))."
    )


def _rows_where(wrong: NDArray[np.bool_]) -> str:
    """A phrase that names the rows in which something is wrong."""
    rows = np.flatnonzero(wrong.reshape(wrong.shape[0], -1).any(axis=1))
    named = ", ".join(map(str, rows[:NAMED_ROWS].tolist()))
    more = f" and {rows.size - NAMED_ROWS} more" if rows.size > NAMED_ROWS else ""
    return f"row{'s' if rows.size > 1 else ''} {named}{more} (counted from zero)"
