"""Which maps support which kernels, at what cost and with what variance.

The module of every map registers a `Capability`, from which error messages and defaults follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kitchenette.kernels import Kernel


@dataclass(frozen=True)
class Capability:
    """The kernels that a map supports, its cost and its variance."""

    map_name: str  # the name of the class
    # ``supports(kernel)`` is None if the map supports the kernel, else the reason why not, as the
    # predicate of a sentence whose subject is the kernel
    supports: Callable[[Kernel], str | None]
    # ``cost(kernel, n_columns, n_components)``: multiplications and additions for one dense row
    cost: Callable[[Kernel, int, int], float]
    variance: str  # the variance of an inner product of features, in words or as a formula
    # ``make(kernel, n_components, random_state)`` returns the map, not fitted
    make: Callable[..., Any]
    rank: int  # of several maps that support a kernel, the one with the lowest rank is recommended


_CAPABILITIES: dict[str, Capability] = {}


def register_map(entry: Capability) -> None:
    """Register a map."""
    _CAPABILITIES[entry.map_name] = entry


def capabilities_for(kernel: Kernel) -> list[Capability]:
    """The maps that support a kernel in ascending order of rank: the first is recommended."""
    serving = (entry for entry in _CAPABILITIES.values() if entry.supports(kernel) is None)
    return sorted(serving, key=lambda entry: entry.rank)


def default_map(kernel: Kernel, n_components: int, random_state: Any = None) -> Any:
    """The recommended map for a kernel, not fitted."""
    found = capabilities_for(kernel)
    if not found:
        raise ValueError(f"No map supports {kernel!r}.")
    return found[0].make(kernel, n_components, random_state)


def make_map(map_name: str, kernel: Kernel, n_components: int, random_state: Any = None) -> Any:
    """The map of this name for a kernel, not fitted."""
    return _CAPABILITIES[map_name].make(kernel, n_components, random_state)


def check_supported(map_name: str, kernel: Kernel) -> None:
    """Refuse a kernel that a map does not support, and name the maps that do."""
    reason = _CAPABILITIES[map_name].supports(kernel)
    if reason is None:
        return
    others = [entry.map_name for entry in capabilities_for(kernel)]
    verb = "supports" if len(others) == 1 else "support"
    advice = f" {' and '.join(others)} {verb} it." if others else ""
    raise ValueError(f"{map_name} does not support {kernel!r}, which {reason}.{advice}")
