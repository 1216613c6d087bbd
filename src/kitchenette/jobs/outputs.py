"""Checks that a job does not write over a file that it reads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


class OutputError(ValueError):
    """An output would replace a file that is read for it."""


def refuse_input(out: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse an output that is one of the inputs, also by another name.

    Inputs on other machines are never the same file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kitchenette.jobs.outputs import refuse_input
    >>> data = Path(tempfile.mkdtemp(), "data.csv")
    >>> _ = data.write_text("a,b")
    >>> refuse_input(data.with_name("model"), [data])
    >>> refuse_input(data, [data])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    kitchenette.jobs.outputs.OutputError: ... is one of the inputs: write to another file.
    """
    if not Path(out).exists():
        return
    for path in inputs:
        if os.path.exists(path) and os.path.samefile(path, out):
            raise OutputError(f"{out} is one of the inputs: write to another file.")
