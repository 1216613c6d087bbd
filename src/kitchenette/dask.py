"""Kitchenette on Dask: rows on many workers.

The estimators take Dask arrays and data frames in ``fit`` and ``predict``; see `docs/clusters.md`.
"""

from kitchenette.backends.dask import DaskSource, source

__all__ = ["DaskSource", "source"]
