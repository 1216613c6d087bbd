"""Text from files as a terminal may show it."""

from __future__ import annotations

import unicodedata

# Control and format characters, among them escape sequences and those that reverse the direction
# of writing; surrogates; unassigned code points; separators of lines and paragraphs.
INVISIBLE = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}


def visible(text: str) -> str:
    r"""A text with escapes in place of characters that a terminal obeys instead of showing them.

    Names of columns and labels of a model file may come from anybody.

    Parameters
    ----------
    text : str
        One line.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from kitchenette.cli.escapes import visible
    >>> print(visible("café \x1b[31m"))
    café \x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in INVISIBLE else c
        for c in text
    )
