"""Collections of other libraries whose rows are in many places, such as Dask arrays.

A backend registers the library whose collections it knows, by name, so that nothing is imported
before somebody passes such a collection.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from kitchenette.data.targets import refuse_names

_BACKENDS: dict[str, str] = {}
Method = TypeVar("Method", bound=Callable[..., Any])


def register_backend(library: str, module: str) -> None:
    """Name the module that handles the collections of a library.

    Parameters
    ----------
    library : str
        The library, whose classes are in modules of this name.
    module : str
        A module with two functions: ``source_of(X, y, sample_weight)`` makes a `Source` of a
        collection, and ``mapped(estimator, method, X, **options)`` calls a method of a fitted
        estimator on every part of it, when the result is computed.
    """
    _BACKENDS[library] = module


def backend_of(X: Any) -> Any:
    """The module that handles a collection; None for everything else."""
    if type(X) is np.ndarray:
        return None
    module = _BACKENDS.get(type(X).__module__.partition(".")[0])
    return None if module is None else import_module(module)


def as_rows(X: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, Any, Any]:
    """Rows, targets and weights as estimators learn them: a collection becomes a source."""
    refuse_names(X, y)
    backend = backend_of(X)
    if backend is None:
        return X, y, sample_weight
    return backend.source_of(X, y, sample_weight), None, None


def in_parts(method: Method) -> Method:
    """Let a method of a fitted estimator take collections, and return one that is computed later.

    Parameters
    ----------
    method : function
        A method whose first argument is rows.
    """

    @wraps(method)
    def called(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        backend = backend_of(X)
        if backend is None:
            return method(self, X, *arguments, **options)
        return backend.mapped(self, method.__name__, X, *arguments, **options)

    return called  # type: ignore[return-value]
