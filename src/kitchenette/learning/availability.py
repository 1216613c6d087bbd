"""Methods that exist only for some parameters."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any


class AvailableUnless:
    """Decorates a method that does not exist if there is a reason against it.

    Like `sklearn.utils.metaestimators.available_if`, but the error that a user sees gives the
    reason, and not only the error that it was raised from.

    Parameters
    ----------
    reason : callable
        Takes the object and the name of the method, and returns a sentence, or None if the method
        exists.

    Examples
    --------
    >>> from kitchenette.learning.availability import AvailableUnless
    >>> class Door:
    ...     locked = True
    ...     @AvailableUnless(lambda door, name: "It is locked." if door.locked else None)
    ...     def open(self):
    ...         return "open"
    >>> door = Door()
    >>> hasattr(door, "open")
    False
    >>> door.locked = False
    >>> door.open()
    'open'
    """

    def __init__(self, reason: Callable[[Any, str], str | None]):
        self._reason = reason

    def __call__(self, method: Callable[..., Any]) -> Any:
        return _Method(method, self._reason)


class _Method:
    def __init__(self, method: Callable[..., Any], reason: Callable[[Any, str], str | None]):
        self._method, self._reason = method, reason
        self.__doc__ = method.__doc__
        self.__name__ = method.__name__

    def __get__(self, owner: Any, kind: type) -> Callable[..., Any]:
        if owner is None:
            return self._method
        reason = self._reason(owner, self._method.__name__)
        if reason is not None:
            raise AttributeError(reason)
        return MethodType(self._method, owner)
