"""The order of strings that stand for numbers, months, weekdays or sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# Words of the same place are synonyms.
SIZES = (
    ("xxs",),
    ("xs", "vsmall", "very small", "tiny"),
    ("s", "small"),
    ("m", "med", "medium"),
    ("l", "large", "big"),
    ("xl", "vlarge", "very large", "vbig", "very big", "huge"),
    ("xxl",),
)
LEVELS = (
    ("none", "never", "no"),
    ("vlow", "very low"),
    ("low",),
    ("med", "medium", "mid", "middle", "moderate", "average", "normal"),
    ("high",),
    ("vhigh", "very high"),
)
ORDERS: tuple[dict[str, int], ...] = (
    {word: place for place, month in enumerate(MONTHS) for word in (month, month[:3])},
    {word: place for place, day in enumerate(WEEKDAYS) for word in (day, day[:3])},
    {word: place for place, words in enumerate(SIZES) for word in words},
    {word: place for place, words in enumerate(LEVELS) for word in words},
)


def in_order(words: Iterable[str]) -> list[str]:
    """Words in the order of what they stand for.

    Numbers, also those inside of words, by their size; months, weekdays, sizes and levels in
    theirs; all others by the alphabet.

    Examples
    --------
    >>> from kitchenette.columns.ordering import in_order
    >>> in_order(["10", "9", "-1"]), in_order(["Feb", "Dec", "Jan"]), in_order(["v10", "v9"])
    (['-1', '9', '10'], ['Jan', 'Feb', 'Dec'], ['v9', 'v10'])
    """
    found = sorted(words)
    plain = [" ".join(re.split(r"[\s_-]+", word.strip().lower())) for word in found]
    for order in ORDERS:
        if plain and all(word in order for word in plain):
            return [word for _, word in sorted(zip(map(order.get, plain), found, strict=True))]
    try:
        return [word for _, word in sorted(zip(map(float, found), found, strict=True))]
    except ValueError:
        return sorted(found, key=_by_numbers)


def _by_numbers(word: str) -> list[tuple[int, Any]]:
    """A word as a list of the numbers and of what is between them."""
    parts = re.split(r"([0-9]+)", word)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts if part]
