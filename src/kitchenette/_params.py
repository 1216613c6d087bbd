"""Parameters that are values: setting a nested one never changes a shared object."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from inspect import getattr_static
from types import MethodType
from typing import Any, Self

from sklearn.base import BaseEstimator, clone


class SharedName:
    """One name for a parameter and a method: what is set is the parameter, what is got the method.

    scikit-learn keeps a parameter in the attribute of its name, where it would hide a method.
    `ValueParameters.get_params` knows where to find it.
    """

    def __init__(self, name: str, method: Callable[..., Any]):
        self.name = name
        self.method = method

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[..., Any]:
        return self.method if instance is None else MethodType(self.method, instance)

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self.name] = value


class ValueParameters(BaseEstimator):
    """A scikit-learn object whose nested parameters are replaced, not changed.

    ``set_params(kernel__length_scale=2.0)`` gives this object a kernel of its own, a
    changed copy of the one it had. So a kernel can be the default of a parameter, or be
    shared by several maps, and tuning one of them leaves the others alone.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Include the parameters of parameters, such as ``kernel__length_scale``.

        Returns
        -------
        params : dict
            Names and values.
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        for name in params:
            if isinstance(getattr_static(type(self), name, None), SharedName):
                params[name] = vars(self)[name]
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also nested ones such as ``kernel__length_scale``.

        Parameters
        ----------
        **params : dict
            Names and values.

        Returns
        -------
        self : object
            This object.
        """
        known = self.get_params(deep=False)
        nested: dict[str, dict[str, Any]] = defaultdict(dict)
        changed: dict[str, Any] = {}
        for name, value in params.items():
            owner, delimiter, rest = name.partition("__")
            if owner not in known:
                super().set_params(**{name: value})  # says so in scikit-learn's words
            if delimiter:
                nested[owner][rest] = value
            else:
                changed[name] = value
        for owner, changes in nested.items():
            current = changed.get(owner, known[owner])
            if not hasattr(current, "set_params"):
                raise ValueError(
                    f"{owner}={current!r} has no parameters of its own, so "
                    f"{owner}__{next(iter(changes))} cannot be set."
                )
            changed[owner] = clone(current).set_params(**changes)
        # Now that nothing can fail. A kernel's attributes can be set in no other way.
        for name, value in changed.items():
            object.__setattr__(self, name, value)
        return self
