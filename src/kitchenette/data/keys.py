"""Keys of rows: hash values of their columns and targets, by which rows are sampled.

Equal rows have equal keys, in whatever order, batches, precision and format they come.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from kitchenette import _core
from kitchenette.data.rows import FLOATS, has_missing, is_table
from kitchenette.data.schema import Schema
from kitchenette.data.tables import (
    categories_of,
    is_frame,
    matrix_of,
    numbers_of,
    schema_of,
    table_of,
)
from kitchenette.sketching.random import Stream
from kitchenette.sketching.rows import native_rows

Array = NDArray[np.float64]
Keys = NDArray[np.uint64]
LARGEST_KEY = 2**64 - 1  # keys are hash values of 64 bits
_ODD = np.uint64(0x9E3779B97F4A7C15)


def row_keys(rows: Any, targets: NDArray[Any]) -> Keys:
    """Keys of rows and of their targets, which are numbers.

    Both precisions of the same numbers, and dense and sparse rows, have the same keys.
    """
    keys, of_targets = np.empty((2, rows.shape[0]), dtype=np.uint64)
    _core.row_keys(native_rows(rows), keys)
    _core.row_keys(np.require(targets, np.float64, ["C", "A"]), of_targets)
    return keys + _ODD * of_targets


def can_be_hashed(rows: Any) -> bool:
    """Whether `row_keys` takes these rows; a data frame, for example, it does not."""
    return (isinstance(rows, np.ndarray) or sp.issparse(rows)) and rows.dtype in (
        np.float32,
        np.float64,
    )


def seeded(keys: Keys, seed: int) -> Keys:
    """Other keys of the same rows, by a bijection that depends on the seed."""
    x = keys ^ Stream(seed, "keys of rows").words(1, 1)[0, 0]
    # The finalizer of the generator splitmix64, which mixes all bits.
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    return x


# ---------------------------------------------------------------- values of any type as numbers


def number_of(value: Any) -> float:
    """A number for a label or a category, which does not depend on the others."""
    if isinstance(value, str | bytes) or not np.isreal(value):
        digest = blake2b(str(value).encode(), digest_size=6).digest()
        return float(int.from_bytes(digest, "little"))
    return float(value)


def target_numbers(y: NDArray[Any] | None, n_rows: int) -> Array:
    """Targets as numbers that are equal for equal targets; zeros if there are none."""
    if y is None:
        return np.zeros((n_rows, 1))
    y = np.asarray(y).reshape(n_rows, -1)
    if y.dtype.kind in "biuf":
        return y.astype(np.float64)
    values = y.ravel().tolist()
    numbers = {value: number_of(value) for value in {*values}}
    return np.array([numbers[value] for value in values]).reshape(y.shape)


def numbers_to_hash(X: Any, schema: Schema | None = None) -> Any:
    """Rows as numbers that `row_keys` takes, equal for equal rows of any format.

    Missing values and infinite numbers are allowed. A schema tells the kinds of columns where
    their types do not.
    """
    if can_be_hashed(X):
        return X if sp.issparse(X) or not has_missing(X) else _with_one_nan(X)
    if is_table(X) or (is_frame(X) and not (schema is None and has_plain_numbers(X))):
        return _numbers_of_table(table_of(X), schema)
    rows = check_array(
        X,
        accept_sparse="csr",
        dtype=FLOATS,
        ensure_all_finite=False,
        ensure_min_samples=0,
        ensure_min_features=0,
    )
    return _with_one_nan(rows) if is_frame(X) else rows


def has_plain_numbers(frame: Any) -> bool:
    """Whether a frame is one of pandas whose columns are numbers of NumPy."""
    if not type(frame).__module__.startswith("pandas"):
        return False
    return all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in frame.dtypes)


def _numbers_of_table(table: Any, schema: Schema | None) -> Array:
    schema = schema_of(table.schema, {}) if schema is None else schema
    columns = []
    for column in schema:
        values = table.column(column.name)
        if column.kind == "category":
            codes, texts = categories_of(values)
            columns.append(np.array([*map(number_of, texts), np.nan])[codes])
        else:
            columns.append(numbers_of(values, column.kind, column.name))
    return _with_one_nan(matrix_of(columns, table.num_rows, np.float64))


def _with_one_nan(numbers: Array) -> Array:
    """Numbers in which all missing ones have the same bits."""
    missing = np.isnan(numbers)
    return np.where(missing, np.nan, numbers) if missing.any() else numbers
