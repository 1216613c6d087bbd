"""The border where rows of any kind become a `Source`; behind it no code asks what they are.

A backend registers the library whose collections it knows, by name, so that nothing is imported
before such a collection is passed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from os import PathLike
from typing import Any, TypeVar

import numpy as np

from kitchenette.data.opening import source
from kitchenette.data.source import RowsInMemory, Source
from kitchenette.data.targets import refuse_names

_BACKENDS: dict[str, str] = {}
Method = TypeVar("Method", bound=Callable[..., Any])


def register_backend(library: str, module: str) -> None:
    """Name the module that handles the collections of a library.

    The module has two functions: ``source_of(X, y, sample_weight)`` makes a `Source` of a
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


def as_source(X: Any, y: Any = None, sample_weight: Any = None, *, like: Any = None) -> Any:
    """Rows of any kind, with their targets and weights, as a source.

    Rows are an array, a sparse matrix, a data frame, a dict of columns, the path of files, a
    collection of Dask, or a source, which has its own targets and weights. Targets and weights of
    files are the names of columns; `kitchenette.data.source` has more options. Files are read like
    those of a model, if one is given.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.data.border import as_source
    >>> as_source(np.ones((3, 2)), [1, 2, 3]).whole().y
    [1, 2, 3]
    """
    if isinstance(X, Source):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "A source has its own targets and weights: name them when it is made, and pass "
                "none."
            )
        return X
    if isinstance(X, str | PathLike):
        return source(X, target=y, weight=sample_weight, like=like)
    refuse_names(X, y)
    backend = backend_of(X)
    if backend is not None:
        return backend.source_of(X, y, sample_weight)
    return RowsInMemory(X, y, sample_weight)


def in_parts(method: Method) -> Method:
    """Let a method of a fitted estimator take collections, and return one that is computed later.

    Its first argument is rows.
    """

    @wraps(method)
    def called(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        backend = backend_of(X)
        if backend is None:
            return method(self, X, *arguments, **options)
        return backend.mapped(self, method.__name__, X, *arguments, **options)

    return called  # type: ignore[return-value]
