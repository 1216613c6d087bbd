"""Measuring the cells of an experiment that have not been measured yet."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from sklearn.exceptions import ConvergenceWarning

from reproduction import store
from reproduction.data import MissingData
from reproduction.experiment import Cell, Experiment, Measured, Mode, Results

Report = Callable[[Cell | None], None]  # told of the cell that begins, and None when it ended


def run(
    experiment: Experiment,
    mode: Mode,
    folder: Path = store.RESULTS,
    *,
    report: Report = lambda cell: None,
    again: bool = False,
) -> tuple[Results, dict[str, str]]:
    """All cells of the experiment, and what kept those that are missing from being measured.

    Cells in the file are not measured again, unless ``again``. New ones are stored once a second
    and at the end, whatever ends it.
    """
    results = Results(mode) if again else store.load(experiment, mode, folder)
    stored = {one.cell.key: one for one in results.measured}
    runs = [*results.runs, store.this_run()]
    missing: dict[str, str] = {}
    measured: list[Measured] = []
    saved = perf_counter()

    def save() -> None:
        store.save(experiment, Results(mode, [*measured, *stored.values()], runs), folder)

    try:
        for cell in experiment.cells(mode):
            report(cell)
            one = stored.pop(cell.key, None)
            if one is None and cell.setting.get("data") not in missing:
                try:
                    one = measure(experiment, cell, len(runs) - 1)
                except MissingData as reason:
                    missing[cell["data"]] = str(reason)
            if one is not None:
                measured.append(one)
            if perf_counter() - saved > 1:
                save()
                saved = perf_counter()
            report(None)
    finally:
        if any(one.run == len(runs) - 1 for one in measured):
            save()
    return Results(mode, measured, runs), missing


def measure(experiment: Experiment, cell: Cell, run: int) -> Measured:
    start = perf_counter()
    with warnings.catch_warnings():
        # An interrupted fit keeps its best model and warns; its figures must not be stored.
        warnings.filterwarnings("error", "Interrupted after", ConvergenceWarning)
        numbers = experiment.run(cell)
    return Measured(cell, store.compact(numbers), perf_counter() - start, run)


def run_with_bar(
    experiment: Experiment, mode: Mode, console: Console, *, again: bool = False
) -> tuple[Results, dict[str, str]]:
    """The same with a progress bar."""
    bar = Progress(
        TextColumn("{task.fields[name]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", style="dim"),
        console=console,
    )
    with bar:
        task = bar.add_task("", name=experiment.name, total=len(experiment.cells(mode)))

        def report(cell: Cell | None) -> None:
            if cell is None:
                bar.advance(task)
            else:
                bar.update(task, description=str(cell))

        outcome = run(experiment, mode, report=report, again=again)
        bar.update(task, description="")
    return outcome
