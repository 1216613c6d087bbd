"""The columns of a source that a fitted model uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kitchenette.data import Block, DataError, Source

BLOCK_ROWS = 1 << 14  # large enough that the cost per block is small


def source_for(model: Any, source: Source, keep: Sequence[str] = ()) -> Source:
    """A source with the columns of a model, and others to keep.

    Columns of tables are matched by name, and read with the types of the fit. Rows without column
    names lose the columns that were targets or weights in the fit; missing last columns of SVMlight
    files are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.data import source
    >>> from kitchenette.jobs.columns import source_for
    >>> rows = source(np.random.default_rng(0).normal(size=(50, 3)), target="x2")
    >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(rows)
    >>> source_for(model, rows.without_targets()).features
    ['x0', 'x1']
    """
    if source.is_table:
        if not hasattr(model, "feature_names_in_"):
            return source
        source = model.columns_of(source)
        return source.with_columns(list(dict.fromkeys([*source.features, *keep])))
    n_columns = model.n_features_in_
    if len(source.features) > n_columns:
        targets, weight = getattr(model, "target_names_", ()), getattr(model, "weight_name_", None)
        others = {*map(str, targets), weight}
        left = [name for name in source.features if name not in others]
        return source.with_columns(left) if len(left) == n_columns else source
    return source.with_width(n_columns)


def counted_blocks(source: Source, progress: Callable[[int], None] | None) -> Iterator[Block]:
    """The blocks of a source, which must not be empty; progress is told the rows so far."""
    n_rows = 0
    for block in source.blocks(BLOCK_ROWS):
        yield block
        n_rows = block.stop
        if progress is not None:
            progress(n_rows)
    if n_rows == 0:
        raise DataError("The source has no rows.")
