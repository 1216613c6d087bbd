"""The registry of classes that can be stored in model files.

A class is registered by the decorator `storable`. What is stored of a dataclass are its fields,
which `kitchenette.files.fields` checks. Any other class has two methods:

* ``to_file()`` returns a dictionary of numbers, strings, arrays, lists, dictionaries and other
  storable objects;
* ``from_file(state, budget)``, a class method, makes an object from such a dictionary, which is
  untrusted: it checks all values, and asks the budget before it draws or allocates.

No other class is ever looked up, so a file cannot name code to run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import partial
from inspect import signature
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from kitchenette.files.budget import Budget
from kitchenette.files.fields import field_values, from_fields

Class = TypeVar("Class", bound=type)
Made = TypeVar("Made")
Generators = np.random.Generator | np.random.RandomState


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
    registered = _BY_NAME.get(cls.__name__)
    if registered is not None and _full_name(registered.cls) != _full_name(cls):
        raise ValueError(
            f"Model files have a class {cls.__name__} already, {_full_name(registered.cls)}; "
            "choose another name."
        )
    _BY_NAME[cls.__name__] = Storage(cls, to_file, from_file)


def storable(cls: Class) -> Class:
    """Let objects of a class be stored in model files; a decorator.

    Parameters
    ----------
    cls : type
        A dataclass, whose annotations may have validators of `kitchenette.files.fields`, or a class
        with a method ``to_file()`` and a class method ``from_file(state, budget)``. All kernels and
        maps have them.

    Returns
    -------
    cls : type
        The same class.

    Examples
    --------
    >>> import os, tempfile
    >>> from dataclasses import dataclass
    >>> import kitchenette
    >>> from kitchenette.files import storable
    >>> @storable
    ... @dataclass
    ... class Shift:
    ...     by: float
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "shift.safetensors")
    ...     kitchenette.save(Shift(2.5), path)
    ...     kitchenette.load(path)
    Shift(by=2.5)
    """
    to_file: Any = getattr(cls, "to_file", field_values)
    from_file: Any = getattr(cls, "from_file", partial(from_fields, cls))
    if not is_dataclass(cls) and not (hasattr(cls, "to_file") and hasattr(cls, "from_file")):
        raise TypeError(
            f"{_full_name(cls)} cannot be stored: it must be a dataclass, or needs a method "
            "to_file() and a class method from_file(state, budget)."
        )
    register(cls, to_file, from_file)
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


# ---------------------------------------------------------------- parameters of estimators


def constructed(cls: type[Made], parameters: dict[str, Any]) -> Made:
    """An object of a class with these parameters and defaults for missing ones."""
    names = [*signature(cls.__init__).parameters][1:]
    for name in parameters:
        if name not in names:
            raise ValueError(f"there is no parameter {name!r:.80}; is it of a newer version?")
    return cls(**parameters)


def stored_parameters(estimator: Any, fitted: Any = None) -> dict[str, Any]:
    """The parameters of an estimator, with seeds in place of generators of random numbers.

    The fitted counterpart of a nested estimator, the attribute with a trailing underscore, has
    the ``seed_`` of its generator; that of the estimator is itself.
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
    """Store parameters of a class that is not storable as another object, its stand-in.

    That is made of the object and of its fitted counterpart, which is None before fitting.
    """
    _STAND_INS[cls] = stand_in


def _has_generator(value: Any) -> bool:
    return isinstance(value, BaseEstimator) and any(
        isinstance(parameter, Generators) for parameter in value.get_params().values()
    )
