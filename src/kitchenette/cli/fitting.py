"""`kitchenette fit`: what is printed while rows are learned and afterwards."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from kitchenette.cli.terminal import Terminal
from kitchenette.data import Source
from kitchenette.jobs import FitSettings, Fitted, fit_rows
from kitchenette.report.words import of_bytes, of_seconds


def fit_files(
    rows: Source,
    out: Path,
    settings: FitSettings,
    test: Source | None,
    resume: bool,
    statistics: bool,
    checkpoint_every: float | None,
    terminal: Terminal,
) -> None:
    """Fit and print a summary."""
    with terminal.progress() as shown:
        task = shown.add_task("", total=None, rate="")
        watch = _Watch()

        def progress(what: str, done: int, total: int) -> None:
            shown.update(
                task,
                description=what,
                completed=done,
                total=total or None,
                rate=watch.rate(done) if what == "learning" else "",
            )

        fitted = fit_rows(
            rows,
            out,
            settings,
            test=test,
            resume=resume,
            statistics=statistics,
            checkpoint_every=checkpoint_every,
            progress=progress,
        )
    terminal.document(fitted.to_json())
    print_summary(fitted, terminal)


class _Watch:
    """Rows per second since the first rows."""

    def __init__(self) -> None:
        self._start: tuple[float, int] | None = None

    def rate(self, done: int) -> str:
        if self._start is None:
            self._start = perf_counter(), done
        seconds, rows = perf_counter() - self._start[0], done - self._start[1]
        return f"{rows / seconds:,.0f} rows/s" if rows else ""


def print_summary(fitted: Fitted, terminal: Terminal) -> None:
    """What was learned, how well, and what it took."""
    resumed = f", of which {fitted.resumed_at:,} before" if fitted.resumed_at else ""
    terminal.line(
        f"{fitted.task.capitalize()}, because {fitted.why_task}; {fitted.n_rows:,} rows learned"
        f"{resumed}, {fitted.n_columns} columns, {fitted.n_components:,} features."
        if fitted.why_task != "as told"
        else f"{fitted.task.capitalize()}, as told; {fitted.n_rows:,} rows learned{resumed}, "
        f"{fitted.n_columns} columns, {fitted.n_components:,} features."
    )
    terminal.line(f"Chosen: {fitted.choice}")
    terminal.line(f"Penalty {fitted.alpha:.3g}, {fitted.loss} loss, solver {fitted.solver}.")
    if fitted.errors:
        names = {
            "model": "this model",
            "linear": "linear model of a sample",
            "trivial": "trivial model",
        }
        rows = [[names[name], _error(fitted, value)] for name, value in fitted.errors.items()]
        title = f"Error on {fitted.n_test_rows:,} rows that were not learned"
        terminal.table(("model", fitted.error_name), rows, title=title)
    peak = "" if fitted.peak_bytes is None else f", {of_bytes(fitted.peak_bytes)} of memory at most"
    terminal.line(
        f"{of_seconds(fitted.seconds)}, {fitted.rows_per_second:,.0f} rows/s{peak}; "
        f"{fitted.out} has {of_bytes(fitted.model_bytes)}."
    )


def _error(fitted: Fitted, value: Any) -> str:
    return f"{value:.2%}" if fitted.task == "classification" else f"{value:.4f}"
