"""Blocks of rows, whether they are in memory or come from a source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.rows import slices, take
from kitchenette.data.source import Source


def row_blocks(X: Any, size: int) -> Iterator[tuple[slice, Any]]:
    """Slices of ``size`` rows that cover all rows in order, and the rows."""
    if isinstance(X, Source):
        for block in X.without_targets().blocks(size):
            yield slice(block.start, block.stop), block.X
        return
    for part in slices(X.shape[0], size):
        yield part, take(X, part)


def some_rows(X: Any, which: NDArray[np.intp]) -> Any:
    """The rows of these numbers, in this order."""
    if not isinstance(X, Source):
        return take(X, which)
    wanted, places = np.unique(which, return_inverse=True)
    return take(X.without_targets().take(wanted).X, places)


def first_rows(X: Any, count: int) -> Any:
    """The first rows."""
    if isinstance(X, Source):
        return X.without_targets().take(np.arange(min(count, X.count()))).X
    return take(X, slice(0, count))
