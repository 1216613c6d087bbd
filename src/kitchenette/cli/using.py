"""`kitchenette predict`, `evaluate` and `choose`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from threadpoolctl import threadpool_limits

from kitchenette.cli.options import (
    Data,
    Effort,
    FileOptions,
    ModelFile,
    RowOptions,
    Seed,
    Target,
    Task,
    Threads,
    effort_named,
)
from kitchenette.cli.outcome import CommandError, ExitCode, as_usage, predicting
from kitchenette.cli.terminal import Terminal, Throughput
from kitchenette.data import Source
from kitchenette.jobs import Evaluation, choose_rows, evaluate_rows, predict_rows
from kitchenette.jobs.outputs import refuse_input
from kitchenette.jobs.prediction import check_wanted
from kitchenette.parameters import check_choice
from kitchenette.quantities import of_share
from kitchenette.selection.targets import TASKS

MOST_CLASSES = 12  # of a confusion matrix that is printed, so that it fits on a screen


def predict(
    model: ModelFile,
    data: Data,
    *,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The predictions: a .parquet or a .csv file.")
    ],
    std: Annotated[bool, typer.Option("--std", help="Add standard deviations.")] = False,
    proba: Annotated[bool, typer.Option("--proba", help="Add class probabilities.")] = False,
    keep: Annotated[
        str, typer.Option(metavar="NAME,...", help="Columns to copy to the predictions.")
    ] = "",
    threads: Threads = None,
    options: FileOptions,
    terminal: Terminal,
) -> None:
    """Predict any number of rows in constant memory. Columns are matched by name."""
    kept = [name.strip() for name in keep.split(",") if name.strip()]
    with threadpool_limits(threads):
        fitted = predicting(model)
        with as_usage():
            check_wanted(fitted, out, std=std, proba=proba)
        refuse_input(out, [model])
        rows = options.opened(data, like=fitted)
        with progress_of(terminal, "predicting", rows) as progress:
            n_rows = predict_rows(
                fitted, rows, out, std=std, proba=proba, keep=kept, progress=progress
            )
    _note_others(fitted, rows, kept, terminal)
    terminal.document({"out": str(out), "rows": n_rows})
    terminal.line(f"{out}: {n_rows:,} predictions.")


def evaluate(
    model: ModelFile,
    data: Data,
    *,
    target: Annotated[
        list[str],
        typer.Option(
            "--target", metavar="NAME", help="The target column; by default that of the fit."
        ),
    ] = [],  # noqa: B006 - it is never changed
    threads: Threads = None,
    options: FileOptions,
    terminal: Terminal,
) -> None:
    """Measure the error of a model on rows with known targets."""
    with threadpool_limits(threads):
        fitted = predicting(model)
        rows = options.opened(data, target or target_names(fitted, model), like=fitted)
        with progress_of(terminal, "predicting", rows) as progress:
            evaluation = evaluate_rows(fitted, rows, progress=progress)
    terminal.document(evaluation.to_json())
    terminal.table(("measure", "value"), _measures(evaluation), title=f"{evaluation.n_rows:,} rows")
    labels = evaluation.labels or ()
    if evaluation.confusion is not None and len(labels) <= MOST_CLASSES:
        table = [
            [str(label), *(f"{count:,}" for count in counts)]
            for label, counts in zip(labels, evaluation.confusion, strict=True)
        ]
        terminal.table(("true \\ predicted", *map(str, labels)), table)


def target_names(fitted: Any, path: Path) -> list[str]:
    """The names of the target columns of a model, if it has them."""
    names = getattr(fitted, "target_names_", None)
    if names is None:
        raise CommandError(
            f"{path} has no name of its target: give the target column by --target.",
            ExitCode.USAGE,
        )
    return [str(name) for name in names]


def choose(
    data: Data,
    target: Target,
    *,
    task: Task = None,
    components: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of features; by default chosen.")
    ] = None,
    effort: Effort = "balanced",
    options: RowOptions,
    seed: Seed = 0,
    terminal: Terminal,
) -> None:
    """Choose a kernel, column scales and a number of features on a sample of the rows."""
    check_task(task)
    choice = choose_rows(
        options.opened(data, target),
        task=task,
        components="auto" if components is None else components,
        effort=effort_named(effort),
        seed=seed,
    )
    terminal.document(
        {name: value for name, value in asdict(choice).items() if name != "feature_map"}
    )
    names = ("kernel", "scales", "width", "n_components", "loss", "error")
    table = [
        [f"{row[name]:.4g}" if isinstance(row[name], float) else str(row[name]) for name in names]
        for row in choice.table
    ]
    terminal.table(("kernel", "scales", "width", "features", "loss", "error"), table)
    terminal.line(choice.sentence)


def check_task(task: str | None) -> None:
    """Refuse a task that does not exist."""
    with as_usage():
        if task is not None:
            check_choice("task", task, TASKS)


@contextmanager
def progress_of(terminal: Terminal, what: str, rows: Source) -> Iterator[Callable[[int], None]]:
    """A progress bar for rows."""
    with terminal.progress() as shown:
        task, watch = shown.add_task(what, total=rows.n_rows, rate=""), Throughput()
        yield lambda done: shown.update(task, completed=done, rate=watch.rate(done))


def _note_others(model: Any, rows: Source, keep: Sequence[str], terminal: Terminal) -> None:
    """Print which columns are ignored."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or not rows.is_table:
        return
    targets, weight = getattr(model, "target_names_", ()), getattr(model, "weight_name_", None)
    used = {*map(str, names), *targets, weight, *keep}
    others = [one.name for one in rows.schema if one.name not in used and not one.is_index]
    if others:
        listed = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
        terminal.note(f"note: columns that are not in the model are ignored: {listed}")


def _measures(evaluation: Evaluation) -> list[list[str]]:
    if evaluation.task == "classification":
        rows = [
            ["share of wrong predictions", of_share(evaluation.error, evaluation.task)],
            [
                "the same of the most frequent class",
                of_share(evaluation.trivial_error, evaluation.task),
            ],
        ]
        if evaluation.log_loss is not None:
            rows.append(["log loss", f"{evaluation.log_loss:.4f}"])
        return rows
    rows = [
        ["root mean square error / standard deviation", of_share(evaluation.error, evaluation.task)]
    ]
    for name in ("rmse", "mae", "r2"):
        values = getattr(evaluation, name)
        if values is not None:
            rows.append([LONG_NAMES[name], ", ".join(f"{value:.5g}" for value in values)])
    return rows


LONG_NAMES = {
    "rmse": "root mean square error",
    "mae": "mean absolute error",
    "r2": "explained variance (R^2)",
}
