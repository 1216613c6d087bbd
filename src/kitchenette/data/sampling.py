"""Samples of rows by random keys, which depend on the row index and on nothing else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.reader import Indices
from kitchenette.sketching.random import Stream

KEYED_ROWS = 1 << 16  # rows whose keys are drawn together


def _keys(first: int, n_rows: int, seed: int) -> NDArray[np.uint64]:
    """Random keys of consecutive rows, a function of the seed and the row index."""
    stream, block = Stream(seed, "rows of a source"), first // KEYED_ROWS
    n_blocks = (first + n_rows - 1) // KEYED_ROWS - block + 1
    keys = stream.words(n_blocks, KEYED_ROWS, first=block).ravel()
    skipped = first - block * KEYED_ROWS
    return keys[skipped : skipped + n_rows]


class SmallestKeys:
    """The rows with the smallest keys among all that were added."""

    def __init__(self, size: int, seed: int):
        self._size, self._seed = size, seed
        self._keys, self._rows = np.empty(0, np.uint64), np.empty(0, np.int64)

    def add(self, first: int, n_rows: int) -> Indices:
        """Those of these rows that are among the smallest so far."""
        if n_rows == 0:
            return np.empty(0, np.int64)
        keys = np.concatenate([self._keys, _keys(first, n_rows, self._seed)])
        rows = np.concatenate([self._rows, np.arange(first, first + n_rows)])
        if keys.size > self._size:
            order = np.argpartition(keys, self._size - 1)[: self._size]
            keys, rows = keys[order], rows[order]
        self._keys, self._rows = keys, rows
        return np.sort(rows[rows >= first])

    def rows(self) -> Indices:
        """The rows, ascending."""
        return np.sort(self._rows)


def sampled_rows(n_rows: int, size: int, seed: int) -> Indices:
    """The row indices of a sample of so many rows.

    Parameters
    ----------
    n_rows : int
        The number of all rows.
    size : int
        The number of rows in the sample.
    seed : int
        The seed.

    Returns
    -------
    rows : ndarray of int
        Ascending.

    Examples
    --------
    >>> from kitchenette.data import sampled_rows
    >>> few, more = sampled_rows(10_000, 3, seed=1), sampled_rows(10_000, 5, seed=1)
    >>> len(more), set(few.tolist()) <= set(more.tolist())
    (5, True)
    """
    if n_rows <= size:
        return np.arange(n_rows)
    sampler = SmallestKeys(size, seed)
    for first in range(0, n_rows, KEYED_ROWS):
        sampler.add(first, min(KEYED_ROWS, n_rows - first))
    return sampler.rows()
