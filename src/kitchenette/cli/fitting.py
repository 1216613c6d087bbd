"""`kitchenette fit`: what is printed while rows are learned and afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kitchenette.cli.terminal import Terminal, checked_output
from kitchenette.data import Source
from kitchenette.estimators import KernelClassifier, KernelRegressor
from kitchenette.jobs import FitSettings, Fitted, fit_rows
from kitchenette.jobs.checkpoint import checkpoint_path
from kitchenette.quantities import of_bytes, of_seconds, of_share

MOST_NAMES, MOST_LINES = 12, 40  # of columns that are printed

MODELS = {
    "model": "this model",
    "linear": "linear model of a sample",
    "trivial": "trivial model",
}
SCORES = {"classification": "accuracy", "regression": "R^2"}


def fit_files(
    rows: Source,
    out: Path,
    settings: FitSettings,
    test: Source | None,
    like: KernelClassifier | KernelRegressor | None,
    resume: bool,
    statistics: bool,
    checkpoint_every: float | None,
    terminal: Terminal,
) -> None:
    """Fit and print a summary."""
    checked_output(out)
    if resume and not checkpoint_path(out).exists():
        terminal.note(f"note: there is no checkpoint of {out}, so this is a fit from the beginning")
    with terminal.fit_progress() as progress:
        fitted = fit_rows(
            rows,
            out,
            settings,
            test=test,
            like=like,
            resume=resume,
            statistics=statistics,
            checkpoint_every=checkpoint_every,
            progress=progress,
        )
    terminal.document(fitted.to_json())
    print_summary(fitted, terminal)


def print_summary(fitted: Fitted, terminal: Terminal) -> None:
    """What was learned, how well, and what it took."""
    resumed = f", of which {fitted.resumed_at:,} before" if fitted.resumed_at else ""
    why = fitted.why_task if fitted.why_task == "as told" else f"because {fitted.why_task}"
    terminal.line(
        f"{fitted.task.capitalize()}, {why}; {fitted.n_rows:,} rows learned{resumed}, "
        f"{fitted.n_columns} columns, {fitted.n_components:,} features."
    )
    print_columns(fitted.column_summary, terminal)
    terminal.line(f"Chosen: {fitted.choice}")
    terminal.line(f"Penalty {fitted.alpha:.3g}, {fitted.loss} loss, solver {fitted.solver}.")
    if fitted.validation_score is not None:
        terminal.line(f"Validation score ({SCORES[fitted.task]}): {fitted.validation_score:.4f}.")
    if fitted.errors:
        rows = [
            [MODELS[name], of_share(value, fitted.task)] for name, value in fitted.errors.items()
        ]
        title = f"Error on {fitted.n_test_rows:,} test rows, which were not learned"
        if fitted.n_test_rows == 0:
            title = f"Error on {fitted.n_validation_rows:,} validation rows, by models without them"
        terminal.table(("model", fitted.error_name), rows, title=title)
        print_verdict(fitted, terminal)
    peak = "" if fitted.peak_bytes is None else f", {of_bytes(fitted.peak_bytes)} of memory at most"
    terminal.line(
        f"{of_seconds(fitted.seconds)}, {fitted.rows_per_second:,.0f} rows/s{peak}; "
        f"{fitted.out} has {of_bytes(fitted.model_bytes)}."
    )


def print_verdict(fitted: Fitted, terminal: Terminal) -> None:
    """Say so if a simpler model is as good."""
    simpler = " nor the ".join(MODELS[name] for name in fitted.not_beaten)
    if simpler:
        verb = "beats neither" if len(fitted.not_beaten) > 1 else "does not beat"
        terminal.line(
            f"This model {verb} the {simpler} by more than chance (two standard errors) on these "
            "rows."
        )


def print_columns(summary: Mapping[str, str], terminal: Terminal) -> None:
    """What became of each column, those with the same fate together."""
    groups: dict[str, list[str]] = {}
    for name, what in summary.items():
        groups.setdefault(what, []).append(name)
    rows = []
    for what, names in groups.items():
        more = f", ... ({len(names)})" if len(names) > MOST_NAMES else ""
        rows.append([", ".join(names[:MOST_NAMES]) + more, what])
    if len(rows) > MOST_LINES:
        rows = [*rows[:MOST_LINES], [f"... ({len(rows)})", "--json tells all"]]
    if rows:
        terminal.table(("columns", "became"), rows)
