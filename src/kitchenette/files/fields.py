"""What a model file may have follows from the annotated fields of a dataclass.

The type of a field is checked together with its validators, as in
``n_rows: Annotated[int, Interval(1)]``. Conditions between fields are those of a method
``check()``; a method ``spend(budget)`` asks the `Budget` before the object draws or allocates.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from operator import attrgetter
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from kitchenette.files.budget import Budget

Made = TypeVar("Made")
Limit = float | str  # a number, or the name of an attribute


@dataclass(frozen=True)
class Interval:
    """Numbers, or arrays of numbers, in an interval."""

    low: float | str = -inf  # a number, or the attribute of the object that has it
    high: float | str = inf
    # The ends that belong to the interval, as in scikit-learn
    closed: Literal["both", "left", "right", "neither"] = "both"

    def refusal(self, value: Any, owner: Any) -> str | None:
        low, high = (_resolved(end, owner) for end in (self.low, self.high))
        from_low, to_high = self.closed in ("both", "left"), self.closed in ("both", "right")
        above = value >= low if from_low else value > low
        below = value <= high if to_high else value < high
        if np.all(above) and np.all(below):
            return None
        limits = [f"{'at least' if from_low else 'greater than'} {self.low}"]
        limits += [f"{'at most' if to_high else 'less than'} {self.high}"]
        limits = limits[self.low == -inf : 1 if self.high == inf else 2]
        return " and ".join(limits) or "a number"


class Options:
    """One of some strings."""

    def __init__(self, *choices: str):
        self.choices = choices

    def refusal(self, value: Any, owner: Any) -> str | None:
        return None if value in self.choices else f"one of {', '.join(map(repr, self.choices))}"


class Shape:
    """Arrays of a shape; those of floating-point numbers must be finite.

    Parameters
    ----------
    *axes : int, str or None
        The length of each axis: a number, the attribute of the object that is this number or has
        this length, or None for any length.
    """

    def __init__(self, *axes: int | str | None):
        self.axes = axes

    def refusal(self, value: Any, owner: Any) -> str | None:
        axes = [_length(axis, owner) for axis in self.axes]
        if value.ndim == len(axes) and all(
            axis in (None, length) for axis, length in zip(axes, value.shape, strict=True)
        ):
            return None if value.dtype.kind != "f" or np.isfinite(value).all() else "finite"
        lengths = ", ".join("any" if axis is None else str(axis) for axis in axes)
        return f"an array of shape ({lengths})"


Count = Annotated[int, Interval(1)]
Unsigned = Annotated[int, Interval(0)]


def _resolved(limit: Any, owner: Any) -> Any:
    """A limit itself, or the attribute that it names."""
    return attrgetter(limit)(owner) if isinstance(limit, str) else limit


def _length(axis: Any, owner: Any) -> int | None:
    value = _resolved(axis, owner)
    return len(value) if hasattr(value, "__len__") else value


# ---------------------------------------------------------------- reading and writing


def field_values(value: Any) -> dict[str, Any]:
    """The values of the fields of a dataclass, by name."""
    return {name: getattr(value, name) for name in field_types(type(value))}


def from_fields(cls: type[Made], state: dict[str, Any], budget: Budget) -> Made:
    """An object of a dataclass from untrusted values of its fields."""
    restored = checked(cls(**checked_state(state, field_types(cls))))
    if hasattr(restored, "spend"):
        restored.spend(budget)
    return restored


def checked(value: Made) -> Made:
    """An object of a dataclass, whose fields must be valid by themselves and together."""
    validate(value, field_types(type(value)))
    if hasattr(value, "check"):
        value.check()
    return value


def validate(owner: Any, types: dict[str, Any]) -> None:
    """Apply the validators of these types to the attributes of an object, unless they are None."""
    for name, hint in types.items():
        given = getattr(owner, name, None)
        for validator in getattr(hint, "__metadata__", ()) if given is not None else ():
            expected = validator.refusal(given, owner)
            if expected is not None:
                raise ValueError(f"{name} must be {expected}; got {_described(given)}.")


def checked_state(state: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    """Check names and types of values; a name may be missing if its type may be None."""
    for name in state:
        if name not in types:
            raise ValueError(f"there is no value {name!r:.80}; is it of a newer version?")
    for name, hint in types.items():
        if name not in state and (hint is Any or not _fits(None, hint)):
            raise ValueError(f"{name} is missing.")
        if not _fits(state.get(name), hint):
            raise ValueError(f"{name} cannot be {_described(state[name])}.")
    return {name: state.get(name) for name in types}


def field_types(cls: Any) -> dict[str, Any]:
    """The annotations of the fields of a dataclass that its constructor takes."""
    if cls not in _TYPES:
        hints = get_type_hints(cls, include_extras=True)
        _TYPES[cls] = {field.name: hints[field.name] for field in fields(cls) if field.init}
    return _TYPES[cls]


_TYPES: dict[type, dict[str, Any]] = {}  # evaluating annotations takes longer than checking values


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"{value!r:.80}"


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has a type; the elements of tuples, lists and dictionaries count as well."""
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin is Annotated:
        return _fits(value, arguments[0])
    if origin in (Union, UnionType):
        return any(_fits(value, argument) for argument in arguments)
    if origin is Any:
        return True
    if origin in (None, type(None)):
        return value is None
    if isinstance(value, bool):
        return origin is bool
    if not isinstance(value, origin):
        return False
    if origin is np.ndarray and arguments:
        (numbers,) = get_args(arguments[1])
        return numbers is Any or np.issubdtype(value.dtype, numbers)
    if origin in (tuple, list) and arguments:
        return all(_fits(item, arguments[0]) for item in value)
    if origin is dict and arguments:
        return all(_fits(item, arguments[1]) for item in value.values())
    return True
