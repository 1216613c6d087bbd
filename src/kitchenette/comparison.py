"""Comparison of two fitted objects, attribute by attribute, and digests of them."""

from __future__ import annotations

import numbers
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from inspect import isroutine
from typing import Any

import numpy as np
import scipy.sparse as sp

# seed_ is compared instead of random_state. The precision of the draw, what is cached (operators,
# tables of words, the map for rows beyond the data) and the ranges of the data, which features do
# not depend on, do not belong to the identity of a map.
PASSED_OVER = ("random_state", "precision", "_operators", "_table", "beyond", "ranges")
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
        return _difference_of_items(_attributes(a), _attributes(b), name)
    return None if a == b or _same_pickle(a, b) else name


def _attributes(value: Any) -> Mapping[str, Any]:
    """The attributes of an object; of a dataclass its fields, without what has been computed."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return vars(value)


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


def digest(value: Any) -> str:
    """A hash of a value, equal for equal values also in another process.

    It ignores the same attributes as `first_difference`, but compares numbers exactly.
    """
    hasher = blake2b(digest_size=16)
    for part in _parts(value):
        hasher.update(len(part).to_bytes(8, "little"))
        hasher.update(part)
    return hasher.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    """The bytes of a value, of its items and of its attributes."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        number = np.complex128 if value.dtype.kind == "c" else np.float64
        yield repr(value.shape).encode()
        yield np.ascontiguousarray(value, dtype=number).tobytes()
    elif isinstance(value, np.ndarray):
        yield from _parts(value.tolist())
    elif sp.issparse(value):
        yield from _parts(value.toarray())
    elif isinstance(value, numbers.Number):
        yield repr(complex(value)).encode()  # type: ignore[call-overload]
    elif value is None or isinstance(value, str | bytes):
        yield repr(value).encode()
    elif isinstance(value, list | tuple):
        yield f"{len(value)} items".encode()
        for item in value:
            yield from _parts(item)
    elif isinstance(value, Mapping):
        yield from _parts_of_items(value)
    elif isinstance(value, type) or isroutine(value):
        yield f"{value.__module__}.{value.__qualname__}".encode()
    else:
        yield type(value).__qualname__.encode()
        if hasattr(value, "__dict__"):
            yield from _parts_of_items(_attributes(value))
        else:
            yield pickle.dumps(value)


def _parts_of_items(items: Mapping[Any, Any]) -> Iterator[bytes]:
    kept = {repr(key): items[key] for key in items if key not in PASSED_OVER}
    yield f"{len(kept)} names".encode()
    for name in sorted(kept):
        yield name.encode()
        yield from _parts(kept[name])
