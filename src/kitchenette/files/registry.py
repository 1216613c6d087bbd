"""What can be stored in a model file.

A class takes part by the decorator `storable`. It has two methods:

* ``to_file()`` returns a dictionary of numbers, strings, arrays, lists, dictionaries and other
  storable objects;
* ``from_file(state, budget)``, a class method, makes an object of such a dictionary, which may
  come from anywhere: it checks everything, and asks the budget before it draws or allocates.

No other class is ever looked up, so a file cannot name code to run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


class Budget:
    """Memory and work that loading a file may still cost."""

    def __init__(self, max_bytes: int, max_operations: float):
        self._bytes = max_bytes
        self._operations = max_operations

    def spend(self, n_bytes: float, n_operations: float, what: str) -> None:
        """Refuse with a sentence if this is more than what is left."""
        if n_bytes > self._bytes:
            raise ValueError(
                f"{what} may take {n_bytes:.0f} bytes, and {self._bytes:.0f} are left. Load it "
                "with a larger max_bytes if you trust it."
            )
        if n_operations > self._operations:
            raise ValueError(
                f"{what} may take {n_operations:.2g} operations, and {self._operations:.2g} are "
                "left. Load it with a larger max_operations if you trust it."
            )
        self._bytes -= int(n_bytes)
        self._operations -= n_operations


@dataclass(frozen=True)
class Storage:
    """How objects of a class are stored."""

    cls: type
    to_file: Callable[[Any], dict[str, Any]]
    from_file: Callable[[dict[str, Any], Budget], Any]


_BY_NAME: dict[str, Storage] = {}


def register(
    cls: type,
    to_file: Callable[[Any], dict[str, Any]],
    from_file: Callable[[dict[str, Any], Budget], Any],
) -> None:
    """Store objects of a class by these two functions, under the name of the class."""
    known = _BY_NAME.get(cls.__name__)
    if known is not None and known.cls.__qualname__ != cls.__qualname__:
        raise ValueError(f"A class named {cls.__name__} is stored already; choose another name.")
    _BY_NAME[cls.__name__] = Storage(cls, to_file, from_file)


def storable(cls: Class) -> Class:
    """Let objects of a class, which has ``to_file`` and ``from_file``, be stored."""
    register(cls, cls.to_file, cls.from_file)  # type: ignore[attr-defined]
    return cls


def storage_named(name: Any) -> Storage | None:
    """How objects of the class of this name are stored, if they are."""
    return _BY_NAME.get(name) if isinstance(name, str) else None


def storage_of(value: Any) -> Storage | None:
    """How an object is stored, if it is: subclasses are not what their base class is."""
    storage = _BY_NAME.get(type(value).__name__)
    return storage if storage is not None and storage.cls is type(value) else None


def checked_state(state: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    """Values of these names and types and no others; a name may be missing if None is a type."""
    for name in state:
        if name not in types:
            raise ValueError(f"there is no value {name!r:.80}; is it of a newer version?")
    for name, allowed in types.items():
        kinds = allowed if isinstance(allowed, tuple) else (allowed,)
        value = state.get(name)
        if value is None and name not in state and type(None) not in kinds:
            raise ValueError(f"{name} is missing.")
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise ValueError(f"{name} cannot be {value!r:.80}.")
    return {name: state.get(name) for name in types}
