"""Checks that the modules of learning share."""

from __future__ import annotations

import numbers
from typing import Any


def whole_number(name: str, value: Any, least: int) -> int:
    """Refuse what is not a whole number of at least ``least``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)
