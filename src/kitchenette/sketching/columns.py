"""Operators that prepare columns: scaling, interpolation, filling, categories, unit rows.

They compute in double precision, whatever the precision of the rows. A missing number (NaN) stays
missing unless it is filled, and is not an error; an infinite number is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from kitchenette import _core
from kitchenette.sketching.operators import NativeOperator


class Kind(IntEnum):
    """What `mapped_columns` makes of a column; the numbers are those of the native code."""

    COPY = 0  # the number itself
    FILL = 1  # numbers: missing, substitute
    FLAG = 2  # numbers: missing; 1 for a missing number, else 0
    INTERPOLATE = 3  # numbers: knots, values below them, at them and above them
    RANKS = 4  # the same, then the quantile function of the normal distribution
    CATEGORIES = 5  # numbers: width, targets of unknown and missing ones, sorted keys, targets


class Item(NamedTuple):
    """A function of one column."""

    kind: Kind
    source: int
    numbers: ArrayLike = ()


def scaled_columns(
    offset: NDArray[np.float64],
    factor: NDArray[np.float64],
    low: float,
    high: float,
    dtype: DTypeLike,
) -> NativeOperator:
    """(x - offset) * factor for every column, limited to [low, high]."""
    make = _core.scaled_columns32 if np.dtype(dtype) == np.float32 else _core.scaled_columns64
    return NativeOperator(make(offsets=offset, factors=factor, low=low, high=high))


def mapped_columns(n_columns: int, items: Sequence[Item], dtype: DTypeLike) -> NativeOperator:
    """The outputs of several functions of columns, side by side."""
    numbers = [np.asarray(item.numbers, dtype=np.float64) for item in items]
    return _mapped(
        n_columns,
        np.array([item.kind for item in items], dtype=np.int32),
        np.array([item.source for item in items], dtype=np.int32),
        np.cumsum([0, *(part.size for part in numbers)], dtype=np.int64),
        np.concatenate([np.empty(0), *numbers]),
        dtype,
    )


def selected_columns(n_columns: int, columns: ArrayLike, dtype: DTypeLike) -> NativeOperator:
    """Some columns, in the given order."""
    sources = np.asarray(columns, dtype=np.int32)
    kinds = np.full(sources.size, Kind.COPY, dtype=np.int32)
    starts = np.zeros(sources.size + 1, dtype=np.int64)
    return _mapped(n_columns, kinds, sources, starts, np.empty(0), dtype)


def _mapped(
    n_columns: int,
    kinds: NDArray[np.int32],
    sources: NDArray[np.int32],
    starts: NDArray[np.int64],
    numbers: NDArray[np.float64],
    dtype: DTypeLike,
) -> NativeOperator:
    make = _core.mapped_columns32 if np.dtype(dtype) == np.float32 else _core.mapped_columns64
    return NativeOperator(
        make(n_columns=n_columns, kinds=kinds, sources=sources, starts=starts, numbers=numbers)
    )


def unit_rows(n_columns: int, norm: str, dtype: DTypeLike) -> NativeOperator:
    """Rows divided by their norm: "l1", "l2" or "max"; rows of zeros stay."""
    make = _core.unit_rows32 if np.dtype(dtype) == np.float32 else _core.unit_rows64
    return NativeOperator(make(n_columns=n_columns, norm=norm))
