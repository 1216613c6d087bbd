"""Which maps serve which kernels, at what cost and with what variance.

The module of every map registers an `Offer`. Error messages and defaults are derived from these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kitchenette.kernels import Kernel


@dataclass(frozen=True)
class Offer:
    """The kernels that a map serves, its cost and its variance.

    Attributes
    ----------
    map_name : str
        The name of the class.
    serves : callable
        ``serves(kernel)`` is None if the map serves the kernel, else the reason why not, as the
        predicate of a sentence whose subject is the kernel.
    cost : callable
        ``cost(kernel, n_columns, n_components)``: multiplications and additions for one dense row.
    variance : str
        The variance of an inner product of features, in words or as a formula.
    make : callable
        ``make(kernel, n_components, random_state)`` returns the map, not fitted.
    rank : int
        Of several maps that serve a kernel, the one with the lowest rank is recommended.
    """

    map_name: str
    serves: Callable[[Kernel], str | None]
    cost: Callable[[Kernel, int, int], float]
    variance: str
    make: Callable[..., Any]
    rank: int


_OFFERS: dict[str, Offer] = {}


def offer(entry: Offer) -> None:
    """Register a map."""
    _OFFERS[entry.map_name] = entry


def offers_for(kernel: Kernel) -> list[Offer]:
    """The maps that serve a kernel.

    Parameters
    ----------
    kernel : Kernel
        Any kernel.

    Returns
    -------
    offers : list of Offer
        In ascending order of rank: the first is recommended.
    """
    serving = (entry for entry in _OFFERS.values() if entry.serves(kernel) is None)
    return sorted(serving, key=lambda entry: entry.rank)


def default_map(kernel: Kernel, n_components: int, random_state: Any = None) -> Any:
    """The recommended map for a kernel, not fitted."""
    offers = offers_for(kernel)
    if not offers:
        raise ValueError(f"No map serves {kernel!r}.")
    return offers[0].make(kernel, n_components, random_state)


def make_map(map_name: str, kernel: Kernel, n_components: int, random_state: Any = None) -> Any:
    """The map of this name for a kernel, not fitted."""
    return _OFFERS[map_name].make(kernel, n_components, random_state)


def check_served(map_name: str, kernel: Kernel) -> None:
    """Refuse a kernel that a map does not serve, and name the maps that do."""
    reason = _OFFERS[map_name].serves(kernel)
    if reason is None:
        return
    others = [entry.map_name for entry in offers_for(kernel)]
    advice = f" {' and '.join(others)} can serve it." if others else ""
    raise ValueError(f"{map_name} cannot serve {kernel!r}, which {reason}.{advice}")
