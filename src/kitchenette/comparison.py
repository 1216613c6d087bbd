"""Comparison of two fitted objects, attribute by attribute."""

from __future__ import annotations

import numbers
import pickle
from collections.abc import Mapping
from inspect import isroutine
from typing import Any

import numpy as np
import scipy.sparse as sp

# seed_ is compared instead of random_state. The precision of the draw and cached operators do not
# belong to the identity of a map.
PASSED_OVER = ("random_state", "precision", "_operators")
ROUNDING = 1e-6  # relative difference of the same number in float32 or on another processor


def first_difference(a: Any, b: Any, name: str = "") -> str | None:
    """The name of the first attribute in which two fitted objects differ, or None.

    Floating-point numbers are equal up to rounding errors of float32.
    """
    if a is b:
        return None
    if isinstance(a, numbers.Number) and isinstance(b, numbers.Number):
        return None if _close(np.asarray(a), np.asarray(b)) else name
    if type(a) is not type(b):
        return name or "class"
    if isinstance(a, np.ndarray):
        return None if _close(a, b) else name
    if sp.issparse(a):
        return None if a.shape == b.shape and _close(a.toarray(), b.toarray()) else name
    if isinstance(a, Mapping):
        return _difference_of_items(a, b, name)
    if isinstance(a, list | tuple):
        return _difference_of_items(dict(enumerate(a)), dict(enumerate(b)), name)
    if hasattr(a, "__dict__") and not isinstance(a, type) and not isroutine(a):
        return _difference_of_items(vars(a), vars(b), name)
    return None if a == b or _same_pickle(a, b) else name


def _same_pickle(a: Any, b: Any) -> bool:
    try:
        return pickle.dumps(a) == pickle.dumps(b)
    except Exception:  # objects that cannot be pickled may raise any exception
        return False


def _difference_of_items(a: Mapping[Any, Any], b: Mapping[Any, Any], name: str) -> str | None:
    for key in {**a, **b}:
        if key in PASSED_OVER:
            continue
        inner = f"{name}.{key}" if name else str(key)
        if key not in a or key not in b:
            return inner
        difference = first_difference(a[key], b[key], inner)
        if difference is not None:
            return difference
    return None


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "fc" and b.dtype.kind in "fc":
        return bool(np.allclose(a, b, rtol=ROUNDING, atol=0, equal_nan=True))
    return bool(np.array_equal(a, b))
