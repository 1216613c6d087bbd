"""Parameters of estimators: nested values, checks, and fitted attributes that change at once."""

from __future__ import annotations

import numbers
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Self, TypeVar

from sklearn.base import BaseEstimator, clone

Estimator = TypeVar("Estimator", bound=BaseEstimator)

# Parameter names of other libraries, and their equivalents in this one.
SYNONYMS = {
    "gamma": "a kernel's length_scale: 1 / sqrt(2 * gamma) for Gaussian, 1 / gamma for Laplacian",
    "sigma": "a kernel's length_scale, as in Fastfood(Gaussian(1.5))",
    "C": "alpha = 1 / (2 * C)",
    "n_features": "n_components",
    "kernel": "a feature map of that kernel, as in feature_map=Fastfood(Gaussian())",
    "n_components": "a feature map of that size, as in KernelRegressor(Fastfood(n_components=64))",
    "transform": "projection",
}


class ValueParameters(BaseEstimator):
    """A scikit-learn object whose nested parameters are replaced instead of modified.

    ``set_params(kernel__length_scale=2.0)`` replaces the kernel by a modified copy. A kernel can
    therefore be the default of a parameter, or be shared by several maps, and tuning one map does
    not affect the others.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        refuse_unknown_parameters(cls, kwargs)
        return super().__new__(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including nested ones such as ``kernel__length_scale``."""
        return set_nested_parameters(self, params)


def refuse_unknown_parameters(cls: type[BaseEstimator], given: dict[str, Any]) -> None:
    """Refuse names that are no parameters of a class, and say which ones may be meant."""
    names = cls._get_param_names() if given else ()
    for name in given:
        if name not in names:
            raise TypeError(_unknown_parameter(cls.__name__, name, names))


def set_nested_parameters(estimator: Estimator, params: dict[str, Any]) -> Estimator:
    """Set parameters, of which nested ones are replaced by modified copies."""
    parameters = estimator.get_params(deep=False)
    nested: dict[str, dict[str, Any]] = defaultdict(dict)
    changed: dict[str, Any] = {}
    for name, value in params.items():
        owner, delimiter, rest = name.partition("__")
        if owner not in parameters:
            raise ValueError(_unknown_parameter(type(estimator).__name__, owner, [*parameters]))
        if delimiter:
            nested[owner][rest] = value
        else:
            changed[name] = value
    for owner, changes in nested.items():
        current = changed.get(owner, parameters[owner])
        if not hasattr(current, "set_params"):
            default = " Give a map first, as in feature_map=Fastfood()." if current is None else ""
            raise ValueError(
                f"{owner}={current!r} has no parameters of its own, so "
                f"{owner}__{next(iter(changes))} cannot be set.{default}"
            )
        changed[owner] = clone(current).set_params(**changes)
    # Assigned last, when nothing can fail. Kernels forbid ordinary assignment.
    for name, value in changed.items():
        object.__setattr__(estimator, name, value)
    return estimator


def _unknown_parameter(owner: str, name: str, names: Sequence[str]) -> str:
    """The error message for a parameter that does not exist."""
    meant = [name] if name in SYNONYMS else get_close_matches(name, [*names, *SYNONYMS], n=1)
    if meant and meant[0] in names:
        return f"{owner} has no parameter {name}. Did you mean {meant[0]}?"
    if meant:
        return f"{owner} has no parameter {name}; use {SYNONYMS[meant[0]]}."
    return f"{owner} has no parameter {name}; it has {', '.join(names) or 'none'}."


def shallow_copy(estimator: Estimator) -> Estimator:
    """A copy of an estimator with the attributes that it has at this moment.

    Attributes that are set in one of both later do not exist in the other.
    """
    copied = object.__new__(type(estimator))
    vars(copied).update(vars(estimator))
    return copied


@contextmanager
def replaced_at_once(estimator: Estimator) -> Iterator[Estimator]:
    """A copy to work on, whose attributes become those of the estimator in a single step.

    Until the end of the body other threads see the estimator as it was. If the body raises an
    exception or is interrupted, the estimator stays as it was.
    """
    draft = shallow_copy(estimator)
    yield draft
    now, names = vars(estimator), estimator._get_param_names()
    parameters = {name: now[name] for name in names if name in now}
    estimator.__dict__ = {**vars(draft), **parameters}  # another thread may have set parameters


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {allowed}; got {value!r}.")


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Refuse values other than integers of at least ``least``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)
