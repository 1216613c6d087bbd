"""Unfitted transformers of scikit-learn as parameters in model files.

A file has the name of a class and its parameters that are not the defaults. The name is looked up
in a fixed list of classes, whose constructors only store parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from kitchenette.files.budget import Budget
from kitchenette.files.fields import checked_state
from kitchenette.files.registry import constructed, storable, storage_of, store_parameters_as
from kitchenette.maps.translation import TRANSLATED, prepared_map

CLASSES: dict[str, type[BaseEstimator]] = {cls.__name__: cls for cls in TRANSLATED}


# Functions are code, and a pipeline's memory is a folder of pickles that fit would read.
NEVER_STORED = ("func", "inverse_func", "memory")


class NotPlainError(ValueError):
    """A parameter that files cannot have."""


@storable
@dataclass(frozen=True)
class UnfittedStep:
    """The class and the parameters of an unfitted transformer; a file gives the transformer."""

    name: str  # the name of one of the classes that are listed in this module
    parameters: dict[str, Any]  # the parameters that differ from the defaults

    def to_file(self) -> dict[str, Any]:
        """Name and parameters, for a model file."""
        return {"name": self.name, "parameters": self.parameters}

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Any:
        """The unfitted transformer, from the untrusted values of a model file."""
        state = checked_state(state, {"name": str, "parameters": dict})
        if state["name"] not in CLASSES:
            raise ValueError(f"there is no step {state['name']!r:.80}.")
        parameters = {name: _restored(value) for name, value in state["parameters"].items()}
        for name in NEVER_STORED:
            if name in parameters:
                raise ValueError(f"the parameter {name} of a step does not come from files.")
        return constructed(CLASSES[state["name"]], parameters)


def unfitted_step(estimator: BaseEstimator) -> UnfittedStep:
    """The class and the parameters of a transformer, with those of nested ones."""
    defaults = {
        name: parameter.default for name, parameter in signature(type(estimator)).parameters.items()
    }
    parameters = {
        name: _plain(value)
        for name, value in estimator.get_params(deep=False).items()
        if not _is_default(value, defaults[name])
    }
    for name in NEVER_STORED:
        if name in parameters:
            raise NotPlainError(f"the parameter {name} of a step is not stored in model files.")
    return UnfittedStep(type(estimator).__name__, parameters)


def _is_default(value: Any, default: Any) -> bool:
    missing = isinstance(value, float) and isinstance(default, float) and value != value
    return value is default or (
        type(value) is type(default)
        and isinstance(value, bool | int | float | str | tuple)
        and bool(value == default or (missing and default != default))
    )


def _plain(value: Any) -> Any:
    """A parameter as files have it."""
    if isinstance(value, list | tuple):
        return type(value)(_plain(item) for item in value)
    if isinstance(value, slice):
        return {"slice": [_plain(part) for part in (value.start, value.stop, value.step)]}
    if CLASSES.get(type(value).__name__) is type(value):
        return unfitted_step(value)
    simple = value is None or isinstance(value, bool | int | float | str | np.generic | np.ndarray)
    if not simple and storage_of(value) is None:
        raise NotPlainError(f"{value!r:.80} cannot be stored as a parameter of a step.")
    return value


def _restored(value: Any) -> Any:
    """The inverse of `_plain`."""
    if isinstance(value, list | tuple):
        return type(value)(_restored(item) for item in value)
    if isinstance(value, dict):
        if value.keys() != {"slice"} or len(value["slice"]) != 3:
            raise ValueError("a parameter of a step has an unknown form.")
        return slice(*value["slice"])
    return value


def stored_step(estimator: BaseEstimator, fitted: Any) -> Any:
    """What stands for a transformer that is a parameter of a model.

    It is the unfitted transformer. If that has parameters which files cannot have, such as a
    function, it is the fitted one, frozen.
    """
    try:
        return unfitted_step(estimator)
    except NotPlainError:
        prepared = None if fitted is None else prepared_map(fitted)
        if prepared is None:
            raise
        return FrozenEstimator(prepared)


for _cls in CLASSES.values():
    store_parameters_as(_cls, stored_step)
