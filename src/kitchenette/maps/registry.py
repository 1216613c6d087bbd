"""Which maps support which kernels: error messages and defaults follow from it.

The module of every map registers it by `register_map`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kitchenette.kernels import Kernel


@dataclass(frozen=True)
class Capability:
    """The kernels that a map supports."""

    make: Callable[..., Any]  # the class of the map
    # None if the map supports a kernel, else the reason why not, as the predicate of a sentence
    # whose subject is the kernel
    supports: Callable[[Kernel], str | None]
    # Of several maps that support a kernel, the one with the lowest rank is recommended, with these
    # options
    rank: Callable[[Kernel], int]
    options: Callable[[Kernel], dict[str, Any]]


_CAPABILITIES: dict[str, Capability] = {}


def register_map(
    map_class: type[Any],
    *,
    supports: Callable[[Kernel], str | None],
    rank: int | Callable[[Kernel], int],
    options: Callable[[Kernel], dict[str, Any]] = lambda kernel: {},
) -> None:
    """Register a class of maps; see `Capability`."""
    of_kernel = rank if callable(rank) else lambda kernel: rank
    _CAPABILITIES[map_class.__name__] = Capability(map_class, supports, of_kernel, options)


def maps_for(kernel: Kernel) -> list[str]:
    """The names of the maps that support a kernel, the recommended one first."""
    supported = [item for item in _CAPABILITIES.items() if item[1].supports(kernel) is None]
    return [name for name, _ in sorted(supported, key=lambda item: item[1].rank(kernel))]


def default_map(kernel: Kernel, n_components: int, random_state: Any = None) -> Any:
    """The recommended map for a kernel, not fitted."""
    names = maps_for(kernel)
    if not names:
        raise ValueError(f"No map supports {kernel!r}.")
    entry = _CAPABILITIES[names[0]]
    options = entry.options(kernel)
    return entry.make(kernel, n_components, random_state=random_state, **options)


def make_map(map_name: str, kernel: Kernel, n_components: int, random_state: Any = None) -> Any:
    """The map of this name for a kernel, not fitted."""
    return _CAPABILITIES[map_name].make(kernel, n_components, random_state=random_state)


def check_supported(map_name: str, kernel: Kernel) -> None:
    """Refuse a kernel that a map does not support, and name the maps that do."""
    reason = _CAPABILITIES[map_name].supports(kernel)
    if reason is None:
        return
    others = maps_for(kernel)
    verb = "supports" if len(others) == 1 else "support"
    advice = f" {' and '.join(others)} {verb} it." if others else ""
    raise ValueError(f"{map_name} does not support {kernel!r}, which {reason}.{advice}")
