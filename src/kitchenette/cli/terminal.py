"""What the command prints: tables for people, JSON for machines, bars on terminals."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from kitchenette.files.container import refuse_special_file

# Control and format characters, among them escape sequences and those that reverse the direction
# of writing; surrogates; unassigned code points; separators of lines and paragraphs.
INVISIBLE = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
BAR_WIDTH = 30
FULL, PARTS = "█", " ▏▎▍▌▋▊▉"


class Terminal:
    """The two streams of a command.

    Results go to the standard output, and progress to the standard error stream if that is a
    terminal. Colors obey NO_COLOR. Text is never interpreted as markup or escape sequences. With
    as_json, results are one JSON document and nothing else.
    """

    def __init__(self, as_json: bool):
        self.as_json = as_json
        self.out = Console(highlight=False, soft_wrap=False)
        self.err = Console(stderr=True, highlight=False)

    def line(self, text: str = "") -> None:
        """A line of text for people."""
        if not self.as_json:
            self.out.print(visible(text), markup=False)

    def table(
        self, headings: Sequence[str], rows: Sequence[Sequence[str]], title: str = ""
    ) -> None:
        """A table for people, its first column left-aligned and the others right-aligned."""
        if self.as_json:
            return
        table = Table(title=_plain_text(title) if title else None, title_justify="left")
        for position, heading in enumerate(headings):
            justify: Any = "right" if position else "left"
            table.add_column(_plain_text(heading), justify=justify, overflow="fold")
        for row in rows:
            table.add_row(*map(_plain_text, row))
        self.out.print(table)

    def bars(self, items: Sequence[tuple[str, float]], title: str) -> None:
        """Bars of text for people."""
        if self.as_json or not items:
            return
        greatest = max(value for _, value in items) or 1.0
        table = Table(title=title, title_justify="left", box=None, show_header=False)
        table.add_column(overflow="fold")
        table.add_column(justify="right")
        table.add_column(style="blue", no_wrap=True)
        for name, value in items:
            table.add_row(_plain_text(name), f"{value:.1%}", bar(value / greatest))
        self.out.print(table)

    def document(self, values: dict[str, Any]) -> None:
        """The JSON document for machines."""
        if self.as_json:
            json.dump(values, sys.stdout, indent=1, allow_nan=False, default=_plain)
            print()

    def note(self, text: str) -> None:
        """A line on the standard error stream."""
        self.err.print(f"kitchenette: {visible(text)}", markup=False)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """A progress bar that shows nothing where there is no terminal."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(BAR_WIDTH),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        hidden = self.as_json or not self.err.is_terminal
        with Progress(*columns, console=self.err, transient=True, disable=hidden) as shown:
            yield shown

    @contextmanager
    def fit_progress(self) -> Iterator[Callable[[str, int, int], None]]:
        """A progress bar, as a function of the stage, the rows done and the number of rows."""
        with self.progress() as shown:
            task, watch = shown.add_task("", total=None, rate=""), Throughput()

            def progress(what: str, done: int, total: int) -> None:
                shown.update(
                    task,
                    description=what,
                    completed=done,
                    total=total or None,
                    rate=watch.rate(done) if what == "learning" else "",
                )

            yield progress


def visible(text: str) -> str:
    r"""Text whose control characters are replaced by escape sequences that a terminal shows.

    Column names and labels of a model file may come from an untrusted source.

    Examples
    --------
    >>> from kitchenette.cli.terminal import visible
    >>> print(visible("café \x1b[31m"))
    café \x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in INVISIBLE else c
        for c in text
    )


class Throughput:
    """Rows per second since the first call."""

    def __init__(self) -> None:
        self._start: tuple[float, int] | None = None

    def rate(self, done: int) -> str:
        """The rate after this many rows, as text; empty at first."""
        if self._start is None:
            self._start = perf_counter(), done
        seconds, rows = perf_counter() - self._start[0], done - self._start[1]
        return f"{rows / seconds:,.0f} rows/s" if rows else ""


def checked_output(path: Path) -> None:
    """Refuse a file that cannot be written, before any work."""
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"Cannot write {path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise IsADirectoryError(f"Cannot write {path}: it is a folder.")
    refuse_special_file(path)


def bar(share: float) -> str:
    """A bar of text, of a share of the full width.

    Examples
    --------
    >>> from kitchenette.cli.terminal import bar
    >>> bar(0.5)
    '███████████████'
    """
    eighths = round(8 * BAR_WIDTH * min(max(share, 0.0), 1.0))
    return (FULL * (eighths // 8) + PARTS[eighths % 8]).strip()


def _plain_text(text: str) -> Text:
    """A cell of a table without markup."""
    return Text(visible(text))


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as those of Python."""
    return value.tolist()
