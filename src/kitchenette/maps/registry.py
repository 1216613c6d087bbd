"""Which maps support which kernels.

The module of every map registers it; error messages and defaults follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kitchenette.kernels import Kernel


class _Registered(NamedTuple):
    map_class: Callable[..., Any]
    supports: Callable[[Kernel], str | None]
    rank: int


_MAPS: dict[str, _Registered] = {}


def register_map(map_class: type[Any], supports: Callable[[Kernel], str | None], rank: int) -> None:
    """Register a map.

    Parameters
    ----------
    map_class : type
        Its constructor takes ``kernel``, ``n_components`` and ``random_state``.
    supports : callable
        ``supports(kernel)`` is None if the map supports the kernel, else the reason why not, as the
        predicate of a sentence whose subject is the kernel.
    rank : int
        Of several maps that support a kernel, the one with the lowest rank is recommended.
    """
    _MAPS[map_class.__name__] = _Registered(map_class, supports, rank)


def maps_for(kernel: Kernel) -> list[str]:
    """The names of the maps that support a kernel; the first is recommended."""
    names = [name for name, entry in _MAPS.items() if entry.supports(kernel) is None]
    return sorted(names, key=lambda name: _MAPS[name].rank)


def default_map(kernel: Kernel, n_components: int, random_state: Any = None) -> Any:
    """The recommended map for a kernel, not fitted."""
    found = maps_for(kernel)
    if not found:
        raise ValueError(f"No map supports {kernel!r}.")
    return make_map(found[0], kernel, n_components, random_state)


def make_map(map_name: str, kernel: Kernel, n_components: int, random_state: Any = None) -> Any:
    """The map of this name for a kernel, not fitted."""
    return _MAPS[map_name].map_class(kernel, n_components, random_state=random_state)


def check_supported(map_name: str, kernel: Kernel) -> None:
    """Refuse a kernel that a map does not support, and name the maps that do."""
    reason = _MAPS[map_name].supports(kernel)
    if reason is None:
        return
    others = maps_for(kernel)
    verb = "supports" if len(others) == 1 else "support"
    advice = f" {' and '.join(others)} {verb} it." if others else ""
    raise ValueError(f"{map_name} does not support {kernel!r}, which {reason}.{advice}")
