"""Sizes of memory and times, as people write them."""

from __future__ import annotations

import re

import typer

BYTES = {"": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
BYTES |= {"kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40}
SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


def number_of_bytes(text: str) -> float:
    """A size such as "4GB" in bytes.

    Examples
    --------
    >>> from kitchenette.cli.quantities import number_of_bytes
    >>> number_of_bytes("4GB"), number_of_bytes("512 MiB")
    (4000000000.0, 536870912.0)
    """
    return _quantity(text, BYTES, "a size such as 4GB or 512MB")


def number_of_seconds(text: str) -> float:
    """A time such as "10m" in seconds.

    Examples
    --------
    >>> from kitchenette.cli.quantities import number_of_seconds
    >>> number_of_seconds("10m"), number_of_seconds("90")
    (600.0, 90.0)
    """
    return _quantity(text, SECONDS, "a time such as 90s, 10m or 2h")


def _quantity(text: str, units: dict[str, float], expected: str) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-zA-Z]*)\s*", text)
    unit = None if found is None else units.get(found[2].lower())
    if found is None or unit is None:
        raise typer.BadParameter(f"{text!r} is not {expected}.")
    return float(found[1]) * unit
