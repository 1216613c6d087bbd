"""Engines that run Kitchenette on more than one machine: Dask and Spark.

Nothing is imported from them before it is needed.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from kitchenette.data.border import register_backend

SCHEDULERS = {"tcp": "dask", "tls": "dask", "local-processes": "dask", "spark": "spark"}


def register_engines() -> None:
    """Let the estimators know the collections of the engines."""
    register_backend("dask", "kitchenette.backends.dask")


def scheduled(source: Any, scheduler: str) -> AbstractContextManager[Any]:
    """The rows of files as a `PartitionedSource` whose computations run on a cluster.

    All workers must see the files under the same names. ``scheduler`` is the address of a Dask
    scheduler, tcp://..., or of a Spark master, spark://..., or "local-processes=4" for processes of
    this machine. The end of the context disconnects.
    """
    name = scheduler.partition("=")[0].partition(":")[0]
    if name not in SCHEDULERS:
        raise ValueError(
            "A scheduler is tcp://... of Dask, spark://... of Spark, or local-processes=4 for "
            f"processes of this machine; got {scheduler!r}."
        )
    engine = SCHEDULERS[name]
    try:
        module = import_module(f"kitchenette.backends.{engine}")
    except ImportError as error:
        raise ValueError(
            f"The scheduler {scheduler} needs {error.name}: pip install 'kitchenette[{engine}]'."
        ) from error
    return module.over_files(source, scheduler)
