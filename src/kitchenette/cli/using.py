"""`kitchenette predict`, `evaluate`, `compare` and `choose`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kitchenette.cli.outcome import ExitCode, Problem, as_usage, predicting
from kitchenette.cli.rows import FileOptions
from kitchenette.cli.terminal import Terminal, Watch, checked_output
from kitchenette.data import Source
from kitchenette.files.container import replacement
from kitchenette.jobs import (
    Evaluation,
    choose_rows,
    evaluate_rows,
    predict_rows,
    prepared_sample,
)
from kitchenette.jobs.outputs import refuse_input
from kitchenette.jobs.prediction import check_wanted
from kitchenette.quantities import of_bytes, of_seconds, of_share
from kitchenette.report import Comparison, compare, page
from kitchenette.report.comparison import of_error

MOST_CLASSES = 12  # whose confusions are printed


def predict_files(
    model: Path,
    data: Sequence[str],
    options: FileOptions,
    out: Path,
    std: bool,
    proba: bool,
    keep: Sequence[str],
    terminal: Terminal,
) -> None:
    """Write predictions and say how many."""
    fitted = predicting(model)
    with as_usage():
        check_wanted(fitted, out, std=std, proba=proba)
    refuse_input(out, [model])
    rows = options.opened(data, like=fitted)
    with counted(terminal, "predicting", rows) as progress:
        n_rows = predict_rows(fitted, rows, out, std=std, proba=proba, keep=keep, progress=progress)
    _note_others(fitted, rows, keep, terminal)
    terminal.document({"out": str(out), "rows": n_rows})
    terminal.line(f"{out}: {n_rows:,} predictions.")


def evaluate_files(
    model: Path,
    data: Sequence[str],
    target: Sequence[str],
    options: FileOptions,
    terminal: Terminal,
) -> None:
    """Print the errors of a model."""
    fitted = predicting(model)
    rows = options.opened(data, target or target_names(fitted, model), like=fitted)
    with counted(terminal, "predicting", rows) as progress:
        found = evaluate_rows(fitted, rows, progress=progress)
    terminal.document(found.to_json())
    terminal.table(("measure", "value"), _measures(found), title=f"{found.n_rows:,} rows")
    labels = found.labels or ()
    if found.confusion is not None and len(labels) <= MOST_CLASSES:
        table = [
            [str(label), *(f"{count:,}" for count in counts)]
            for label, counts in zip(labels, found.confusion, strict=True)
        ]
        terminal.table(("true \\ predicted", *map(str, labels)), table)


def target_names(fitted: Any, path: Path) -> list[str]:
    """The names of the columns that a model predicts, if it knows them."""
    names = getattr(fitted, "target_names_", None)
    if names is None:
        raise Problem(
            f"{path} does not tell the name of its target: name the column to compare with by "
            "--target.",
            ExitCode.USAGE,
        )
    return [str(name) for name in names]


def compare_files(
    rows: Source,
    n_rows: int,
    out: Path,
    task: str | None,
    budget: float,
    seed: int,
    title: str,
    terminal: Terminal,
) -> None:
    """Compare models on a sample, write the page, and print the table."""
    checked_output(out)
    refuse_input(out, rows.paths)
    sample = prepared_sample(rows, n_rows, seed)
    with terminal.progress() as shown:
        bar = shown.add_task("comparing", total=None, rate="")
        found = compare(
            sample.X,
            sample.y,
            task=task,
            budget=budget,
            columns=sample.names,
            owners=sample.owners,
            title=title,
            progress=lambda name: shown.update(bar, description=name),
            random_state=seed,
        )
    write_page(found, out)
    terminal.document({**found.to_json(), "page": str(out)})
    _print_comparison(found, terminal)
    terminal.line(f"{out} has the pictures and tables.")


def write_page(found: Comparison, out: Path) -> None:
    """Write the page of a comparison, in one step."""
    with replacement(out) as file:
        file.write(page(found).encode())


def _print_comparison(found: Comparison, terminal: Terminal) -> None:
    table = [
        [
            row.name + (" (extrapolated)" if row.extrapolated else ""),
            "-" if row.error is None else of_error(row, found.task),
            of_seconds(row.fit_seconds),
            of_seconds(row.predict_seconds),
            of_bytes(row.model_bytes),
        ]
        for row in found.measurements
    ]
    terminal.table(("model", "error", "fit", "a prediction", "size"), table, title=found.error_name)
    for sentence in found.advice:
        terminal.line(sentence)


def choose_files(
    rows: Source,
    task: str | None,
    components: int | None,
    budget: float | None,
    seed: int,
    terminal: Terminal,
) -> None:
    """Print which kernel, scales and size suit the rows."""
    choice = choose_rows(
        rows,
        task=task,
        components="auto" if components is None else components,
        budget=budget,
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


@contextmanager
def counted(terminal: Terminal, what: str, rows: Source) -> Iterator[Callable[[int], None]]:
    """A progress bar for rows."""
    with terminal.progress() as shown:
        task, watch = shown.add_task(what, total=rows.n_rows, rate=""), Watch()
        yield lambda done: shown.update(task, completed=done, rate=watch.rate(done))


def _note_others(model: Any, rows: Source, keep: Sequence[str], terminal: Terminal) -> None:
    """Say in one line which columns are not used."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or not rows.is_table:
        return
    targets, weight = getattr(model, "target_names_", ()), getattr(model, "weight_name_", None)
    known = {*map(str, names), *targets, weight, *keep}
    others = [one.name for one in rows.schema if one.name not in known and not one.is_index]
    if others:
        some = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
        terminal.note(f"note: columns that the model does not know are ignored: {some}")


def _measures(found: Evaluation) -> list[list[str]]:
    if found.task == "classification":
        rows = [
            ["share of wrong predictions", of_share(found.error, found.task)],
            ["the same of the most frequent class", of_share(found.trivial_error, found.task)],
        ]
        if found.log_loss is not None:
            rows.append(["log loss", f"{found.log_loss:.4f}"])
        return rows
    rows = [["root mean square error / standard deviation", of_share(found.error, found.task)]]
    for name in ("rmse", "mae", "r2"):
        values = getattr(found, name)
        if values is not None:
            rows.append([LONG_NAMES[name], ", ".join(f"{value:.5g}" for value in values)])
    return rows


LONG_NAMES = {
    "rmse": "root mean square error",
    "mae": "mean absolute error",
    "r2": "share of the variance that is explained",
}
