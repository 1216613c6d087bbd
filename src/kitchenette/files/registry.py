"""The registry of classes that can be stored in model files.

A class is registered by the decorator `storable`. It has two methods:

* ``to_file()`` returns a dictionary of numbers, strings, arrays, lists, dictionaries and other
  storable objects;
* ``from_file(state, budget)``, a class method, makes an object from such a dictionary, which is
  untrusted: it checks all values, and asks the budget before it draws or allocates.

No other class is ever looked up, so a file cannot name code to run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from inspect import signature
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator

Class = TypeVar("Class", bound=type)
Made = TypeVar("Made")
Generators = np.random.Generator | np.random.RandomState


class Budget:
    """Memory and work that loading a file may still cost.

    Parameters
    ----------
    max_bytes : float
        The most memory.
    max_operations : float
        The most arithmetic operations, of about two nanoseconds each.

    Attributes
    ----------
    spent_bytes, spent_operations : float
        The memory and the work granted so far.

    Examples
    --------
    >>> from kitchenette.files import Budget
    >>> budget = Budget(max_bytes=1000, max_operations=1e6)
    >>> budget.spend(600, 10, "A first map")
    >>> budget.spend(600, 10, "A second map")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    ValueError: A second map may take 600 bytes, and 400 are left. Load it with a larger max_bytes
    if you trust it.
    """

    def __init__(self, max_bytes: float, max_operations: float):
        self._max_bytes, self._max_operations = max_bytes, max_operations
        self.spent_bytes = self.spent_operations = 0.0

    def spend(self, n_bytes: float, n_operations: float, what: str) -> None:
        """Raise a ValueError if this exceeds the remaining budget.

        Parameters
        ----------
        n_bytes, n_operations : float
            Upper bounds of the memory and the work.
        what : str
            The purpose, as the subject of the error message.
        """
        for number, limit, spent, unit in (
            (n_bytes, self._max_bytes, self.spent_bytes, "bytes"),
            (n_operations, self._max_operations, self.spent_operations, "operations"),
        ):
            if not number <= limit - spent:  # this form also refuses NaN
                raise ValueError(
                    f"{what} may take {_rounded(number)} {unit}, and {_rounded(limit - spent)} "
                    f"are left. Load it with a larger max_{unit} if you trust it."
                )
        self.spent_bytes += n_bytes
        self.spent_operations += n_operations


def _rounded(number: float) -> str:
    return f"{min(number, 1e300):.3g}"  # integers may overflow a float


@dataclass(frozen=True)
class Storage:
    """The functions that store and restore objects of a class."""

    cls: type
    to_file: Callable[[Any], dict[str, Any]]
    from_file: Callable[[dict[str, Any], Budget], Any]


_BY_NAME: dict[str, Storage] = {}


def register(
    cls: type,
    to_file: Callable[[Any], dict[str, Any]],
    from_file: Callable[[dict[str, Any], Budget], Any],
) -> None:
    """Store objects of a class by these two functions, under the name of the class.

    Parameters
    ----------
    cls : type
        The class; its subclasses are not included.
    to_file : callable
        Returns the state of an object of the class.
    from_file : callable
        Makes an object from a state and a `Budget`.

    See Also
    --------
    storable : The same for a class that has these functions as methods.

    Examples
    --------
    A class of another package, which cannot be given methods:

    >>> from datetime import timedelta
    >>> from kitchenette.files import register
    >>> register(
    ...     timedelta,
    ...     lambda delta: {"seconds": delta.total_seconds()},
    ...     lambda state, budget: timedelta(seconds=float(state["seconds"])),
    ... )
    """
    known = _BY_NAME.get(cls.__name__)
    if known is not None and _full_name(known.cls) != _full_name(cls):
        raise ValueError(
            f"Model files have a class {cls.__name__} already, {_full_name(known.cls)}; choose "
            "another name."
        )
    _BY_NAME[cls.__name__] = Storage(cls, to_file, from_file)


def storable(cls: Class) -> Class:
    """Let objects of a class be stored in model files; a decorator.

    Parameters
    ----------
    cls : type
        A class with a method ``to_file()`` and a class method ``from_file(state, budget)``. All
        kernels and maps have them.

    Returns
    -------
    cls : type
        The same class.

    Examples
    --------
    >>> import os, tempfile
    >>> import kitchenette
    >>> from kitchenette.files import storable
    >>> @storable
    ... class Shift:
    ...     def __init__(self, by):
    ...         self.by = by
    ...
    ...     def to_file(self):
    ...         return {"by": self.by}
    ...
    ...     @classmethod
    ...     def from_file(cls, state, budget):
    ...         return cls(float(state["by"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "shift.safetensors")
    ...     kitchenette.save(Shift(2.5), path)
    ...     kitchenette.load(path).by
    2.5
    """
    if not (callable(getattr(cls, "to_file", None)) and callable(getattr(cls, "from_file", None))):
        raise TypeError(
            f"{_full_name(cls)} cannot be stored: it needs a method to_file() and a class method "
            "from_file(state, budget)."
        )
    register(cls, cls.to_file, cls.from_file)  # type: ignore[attr-defined]
    return cls


def storage_named(name: Any) -> Storage | None:
    """The `Storage` of the class with this name, or None."""
    return _BY_NAME.get(name) if isinstance(name, str) else None


def storage_of(value: Any) -> Storage | None:
    """The `Storage` of the exact class of an object, or None; subclasses are not included."""
    storage = _BY_NAME.get(type(value).__name__)
    return storage if storage is not None and storage.cls is type(value) else None


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


# ---------------------------------------------------------------- what from_file and to_file use


def checked_state(state: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    """Check names and types of values; a name may be missing if its type may be None."""
    for name in state:
        if name not in types:
            raise ValueError(f"there is no value {name!r:.80}; is it of a newer version?")
    for name, allowed in types.items():
        kinds = allowed if isinstance(allowed, tuple) else (allowed,)
        value = state.get(name)
        if value is None and name not in state and type(None) not in kinds:
            raise ValueError(f"{name} is missing.")
        if not isinstance(value, kinds) or (
            isinstance(value, bool) and not {bool, object} & {*kinds}
        ):
            raise ValueError(f"{name} cannot be {value!r:.80}.")
    return {name: state.get(name) for name in types}


def field_values(value: Any) -> dict[str, Any]:
    """The values of the fields of a dataclass, by name."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def from_fields(cls: type[Made], state: dict[str, Any]) -> Made:
    """A dataclass from untrusted values of its fields, whose types must be those it declares."""
    return cls(**checked_state(state, _field_types(cls)))  # type: ignore[arg-type]


@cache
def _field_types(cls: Any) -> dict[str, tuple[type, ...]]:
    """The types that each field of a dataclass may have, from its annotations."""
    hints = get_type_hints(cls)
    return {field.name: _classes(hints[field.name]) for field in fields(cls)}


def _classes(hint: Any) -> tuple[type, ...]:
    if isinstance(hint, UnionType):
        return tuple(cls for part in get_args(hint) for cls in _classes(part))
    if hint is None:
        return (NoneType,)
    return (get_origin(hint) or hint,)


def constructed(cls: type[Made], parameters: dict[str, Any]) -> Made:
    """An object of a class with these parameters and defaults for missing ones."""
    known = [*signature(cls.__init__).parameters][1:]
    for name in parameters:
        if name not in known:
            raise ValueError(f"there is no parameter {name!r:.80}; is it of a newer version?")
    return cls(**parameters)


def stored_parameters(estimator: Any, fitted: Any = None) -> dict[str, Any]:
    """The parameters of an estimator, with seeds in place of generators of random numbers.

    Parameters
    ----------
    estimator : estimator
        Its parameters are not changed.
    fitted : object, optional
        The fitted counterpart of the estimator, by default itself, whose ``seed_`` replaces a
        generator. For a nested estimator it is the attribute with a trailing underscore.

    Returns
    -------
    parameters : dict
    """
    fitted = estimator if fitted is None else fitted
    parameters: dict[str, Any] = estimator.get_params(deep=False)
    for name, value in parameters.items():
        if isinstance(value, Generators):
            if not hasattr(fitted, "seed_"):
                raise ValueError(
                    f"the {name} of {type(estimator).__name__} is a generator, whose state is not "
                    "stored; use a whole number, or fit the model first."
                )
            parameters[name] = fitted.seed_
        elif _has_generator(value) and hasattr(fitted, f"{name}_"):
            counterpart = getattr(fitted, f"{name}_")
            parameters[name] = type(value)(**stored_parameters(value, counterpart))
        elif type(value) in _STAND_INS:
            counterpart = getattr(fitted, f"{name}_", None)
            parameters[name] = _STAND_INS[type(value)](value, counterpart)
    return parameters


_STAND_INS: dict[type, Callable[[Any, Any], Any]] = {}


def store_parameters_as(cls: type, stand_in: Callable[[Any, Any], Any]) -> None:
    """Store parameters of a class that is not storable as another object.

    Parameters
    ----------
    cls : type
        The class; its subclasses are not included.
    stand_in : callable
        Returns the storable object for an object of the class and its fitted counterpart, which is
        None before fitting.
    """
    _STAND_INS[cls] = stand_in


def _has_generator(value: Any) -> bool:
    return isinstance(value, BaseEstimator) and any(
        isinstance(parameter, Generators) for parameter in value.get_params().values()
    )
