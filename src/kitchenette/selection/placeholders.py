"""Numbers that stand for something else, such as 100 for a signal that was not received.

Tables often have a number far from all others where a measurement is missing. It is then the
largest distance of all, although it may mean "less than the smallest". Whether it should rather be
next to the smallest or next to the largest other number is decided on rows held out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kitchenette.columns.categories import Substitute

Array = NDArray[np.float64]
LEAST_SHARE, LEAST_ROWS = 0.01, 5  # of the rows that have a placeholder in a column
LEAST_OTHERS = 5  # distinct other numbers, to tell how far the placeholder is
GAP = 0.5  # between a placeholder and the others, relative to the range of the others
BLOCK = 64  # columns that are looked at together
BESIDE = 0.05  # how far from the others it is moved, relative to their range


@dataclass(frozen=True)
class Placeholders:
    """Placeholders of some columns, with the range of the other numbers there.

    Attributes
    ----------
    n_columns : int
        The number of all columns.
    columns : ndarray of int
        The columns that have one.
    values : ndarray
        The placeholder of each of them.
    low, high : ndarray
        The smallest and the largest other number.
    """

    n_columns: int
    columns: NDArray[np.int64]
    values: Array
    low: Array
    high: Array

    def moved(self) -> tuple[Substitute, Substitute]:
        """The substitution by numbers below the others, and by numbers above them."""
        margin = BESIDE * (self.high - self.low)
        return self._by(self.low - margin), self._by(self.high + margin)

    def _by(self, substitute: Array) -> Substitute:
        return Substitute(
            n_columns=self.n_columns,
            columns=self.columns,
            replaced=self.values,
            substitute=substitute,
        )


def find_placeholders(rows: Any) -> Placeholders | None:
    """The placeholders of a sample of rows, or None if there are none or the rows are sparse.

    A placeholder is the smallest or the largest number of a column, many rows have it, and it is
    far from the others. Where these are too few to tell, a number is a placeholder if it is one in
    most columns of which it is the smallest or largest number and that can tell.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_rows, n_columns)
        The sample.

    Returns
    -------
    placeholders : Placeholders or None
    """
    if sp.issparse(rows):
        return None
    found = {}
    for largest in (False, True):
        starts = range(0, rows.shape[1], BLOCK)
        blocks = [_end(rows[:, start : start + BLOCK], largest) for start in starts]
        value, low, high, frequent, far = map(np.concatenate, zip(*blocks, strict=True))
        for place in _columns(value, frequent, far):
            found[place] = value[place], low[place], high[place]
    if not found:
        return None
    numbers = np.array([found[place] for place in sorted(found)])
    return Placeholders(rows.shape[1], np.array(sorted(found), dtype=np.int64), *numbers.T.copy())


def _end(rows: NDArray[Any], largest: bool) -> tuple[Array, Array, Array, NDArray[np.bool_], Array]:
    """The smallest or largest number of each column, and whether it is a placeholder.

    Returns
    -------
    value : ndarray of shape (n_columns,)
        The number.
    low, high : ndarray of shape (n_columns,)
        The range of the others; infinite if there are none.
    frequent : ndarray of bool
        Whether many rows have the number, and some have others.
    far : ndarray
        1 if it is far from the others, 0 if not, and NaN where they are too few to tell.
    """
    rows = rows.astype(np.float64)
    value = rows.max(axis=0) if largest else rows.min(axis=0)
    same = rows == value
    low = np.where(same, np.inf, rows).min(axis=0)
    high = np.where(same, -np.inf, rows).max(axis=0)
    frequent = same.sum(axis=0) >= max(LEAST_ROWS, LEAST_SHARE * rows.shape[0])
    frequent &= np.isfinite(low)
    with np.errstate(invalid="ignore"):
        gap, reach = (value - high if largest else low - value), high - low
    far = (gap >= GAP * reach).astype(float)
    for column in np.flatnonzero(frequent & (far > 0)):
        if np.unique(rows[:, column]).size <= LEAST_OTHERS:
            far[column] = np.nan
    return value, low, high, frequent, far


def _columns(value: Array, frequent: NDArray[np.bool_], far: Array) -> NDArray[np.intp]:
    """The columns of which the smallest or largest number is a placeholder."""
    placeholders = frequent & (far > 0)
    for number in np.unique(value[placeholders]):
        having = frequent & (value == number)
        if np.nanmean(far[having]) > 0.5:
            placeholders |= having & np.isnan(far)
    return np.flatnonzero(placeholders)
