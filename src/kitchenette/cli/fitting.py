"""`kitchenette fit` and `merge`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from threadpoolctl import threadpool_limits

from kitchenette.cli.options import (
    ClusterOptions,
    Data,
    Effort,
    RowOptions,
    Seed,
    Target,
    Task,
    Threads,
    Time,
    effort_named,
    number_of_bytes,
    number_of_seconds,
)
from kitchenette.cli.outcome import CommandError, ExitCode, as_usage, loaded, predicting
from kitchenette.cli.terminal import Terminal, checked_output
from kitchenette.data import Source
from kitchenette.estimators.base import KernelEstimator
from kitchenette.files import save
from kitchenette.jobs import (
    Checkpoint,
    FitSettings,
    Fitted,
    fit_rows,
    learn_shard,
    merge_shards,
)
from kitchenette.jobs.checkpoint import checkpoint_path
from kitchenette.jobs.settings import MAPS
from kitchenette.quantities import of_bytes, of_seconds, of_share

# What fits on a screen: names of columns in a line, and lines of columns.
MOST_NAMES, MOST_LINES = 12, 40

MODELS = {
    "model": "this model",
    "linear": "linear model of a sample",
    "trivial": "trivial model",
}
SCORES = {"classification": "accuracy", "regression": "R^2"}


def fit(
    data: Data,
    target: Target,
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The model file.")],
    weight: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of sample weights.")
    ] = None,
    task: Task = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|SHARE",
            help="Test rows: other files, or a share of the data, at most 20,000 rows. By default "
            "the model is fitted to all rows, and its error is estimated on validation rows, each "
            "predicted by a model that was fitted without it.",
        ),
    ] = None,
    feature_map: Annotated[
        str,
        typer.Option(
            "--map",
            metavar="NAME",
            help="auto, which learns a length scale per column; or Fastfood, RandomKitchenSinks, "
            "RandomMaclaurin or TensorSketch of unscaled columns.",
        ),
    ] = "auto",
    kernel: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="auto, gaussian, laplacian, cauchy, matern, rationalquadratic or polynomial.",
        ),
    ] = "auto",
    components: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of features; by default chosen, or what --time and --memory allow.",
        ),
    ] = None,
    effort: Effort = "balanced",
    alpha: Annotated[
        str, typer.Option(metavar="NUMBER|NAME", help="Penalty: auto, gcv, evidence or a number.")
    ] = "auto",
    loss: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="squared, which needs one pass; logistic, squared_hinge or auto for classes; "
            "huber or quantile for numbers.",
        ),
    ] = "squared",
    solver: Annotated[
        str, typer.Option(metavar="NAME", help="auto, onepass or iterative.")
    ] = "auto",
    memory: Annotated[str | None, typer.Option(metavar="4GB", help="Memory limit.")] = None,
    time: Time = None,
    threads: Threads = None,
    options: RowOptions,
    passes: Annotated[
        int,
        typer.Option(
            min=1,
            max=3,
            help="Passes over the files. 1 takes the sample from parts of them instead of by hash; "
            "3 finds the categories of all rows, not of the sample only.",
        ),
    ] = 2,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint of the same command.")
    ] = False,
    checkpoint_every: Annotated[
        str | None,
        typer.Option(
            metavar="10s",
            help="Time between checkpoints; by default so long that they take at most 5 % of it.",
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Use the map of this model instead of choosing one, so that both can be merged.",
        ),
    ] = None,
    clusters: ClusterOptions,
    small: Annotated[
        bool,
        typer.Option("--small", help="A small file, which predicts but cannot be updated."),
    ] = False,
    seed: Seed = 0,
    terminal: Terminal,
) -> None:
    """Fit a model to files of any size. After an interruption, run it again with --resume."""
    share = 0.0 if test is None else _number(test)
    with as_usage():
        settings = FitSettings(
            task=task,
            map=_spelled(feature_map, MAPS),
            kernel=kernel.lower(),
            components=components,
            effort=effort_named(effort),
            alpha=alpha if _number(alpha) is None else float(alpha),
            loss=loss,
            solver=solver,
            test=0.0 if share is None else share,
            memory=None if memory is None else number_of_bytes(memory),
            seconds=None if time is None else number_of_seconds(time),
            seed=seed,
        )
        settings.check()
        clusters.check(like, resume)
    with threadpool_limits(threads):
        model = None if like is None else predicting(like)
        rows = options.opened(data, target, weight=weight, passes=passes, like=model)
        if clusters.statistics_only:
            _write_shard(rows, out, settings, clusters, terminal)
            return
        others = None
        if test is not None and share is None:
            others = options.opened([test], target, like=model)
        with clusters.placed(rows) as placed:
            checked_output(out)
            if resume and not checkpoint_path(out).exists():
                terminal.note(f"note: there is no checkpoint of {out}, so this fit begins anew")
            with terminal.fit_progress() as progress:
                fitted = fit_rows(
                    placed,
                    out,
                    settings,
                    test=others,
                    like=model,
                    resume=resume,
                    statistics=not small,
                    checkpoint_every=None
                    if checkpoint_every is None
                    else number_of_seconds(checkpoint_every),
                    progress=progress,
                )
    terminal.document(fitted.to_json())
    print_summary(fitted, terminal)


def merge(
    models: Annotated[
        list[Path], typer.Argument(metavar="A B ...", help="Model files with equal maps.")
    ],
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The merged model.")],
    terminal: Terminal,
) -> None:
    """Merge models of different rows into one, as if it was fitted to all of them."""
    checked_output(out)
    for number, path in enumerate(models):
        if any(path.resolve() == other.resolve() for other in models[:number]):
            raise CommandError(
                f"{path} is given twice: its rows would count twice.", ExitCode.USAGE
            )
    first = loaded(models[0])
    shards = isinstance(first, Checkpoint) and "shard" in first.facts
    merged = merge_shards(models) if shards else _merged(models)
    save(merged, out)
    what = "shards" if shards else "models"
    n_rows = 0 if merged.statistics_ is None else merged.statistics_.n_rows
    terminal.document({"out": str(out), what: len(models), "rows": n_rows})
    terminal.line(f"{out}: {len(models)} {what} with {n_rows:,} rows in all.")


def _merged(paths: Sequence[Path]) -> KernelEstimator:
    """The model of the rows of several models."""
    first, *others = (_with_statistics(path) for path in paths)
    for path, other in zip(paths[1:], others, strict=True):
        try:
            first.merge(other)
        except ValueError as error:
            raise CommandError(
                f"{path}: {error} With the command: kitchenette fit ... --like {paths[0]}",
                ExitCode.MODEL,
            ) from error
    return first.solve()


def _with_statistics(path: Path) -> KernelEstimator:
    model = loaded(path)
    if not isinstance(model, KernelEstimator) or getattr(model, "statistics_", None) is None:
        raise CommandError(
            f"{path} cannot be merged: it is not an estimator with statistics.", ExitCode.MODEL
        )
    return model


def _write_shard(
    rows: Source, out: Path, settings: FitSettings, options: ClusterOptions, terminal: Terminal
) -> None:
    """Fit a shard and print what it is."""
    checked_output(out)
    with terminal.fit_progress() as progress:
        shard = learn_shard(
            rows,
            out,
            settings,
            shard=options.part(),
            prepared=options.prepared,
            progress=progress,
        )
    assert shard.partial is not None
    number, of = shard.facts["shard"], shard.facts["n_shards"]
    n_rows = shard.partial.n_rows
    terminal.document({"out": str(out), "shard": number, "of": of, "rows": n_rows})
    terminal.line(f"{out}: shard {number} of {of}, statistics of {n_rows:,} rows.")


def print_summary(fitted: Fitted, terminal: Terminal) -> None:
    """Print the data, the model, its errors, and the time and memory."""
    resumed = f", of which {fitted.resumed_at:,} before" if fitted.resumed_at else ""
    why = fitted.why_task if fitted.why_task == "as given" else f"because {fitted.why_task}"
    terminal.line(
        f"{fitted.task.capitalize()}, {why}; {fitted.n_rows:,} training rows{resumed}, "
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
        title = f"Error on {fitted.n_test_rows:,} test rows"
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
    """Print a warning if a simpler model is as good."""
    simpler = " nor the ".join(MODELS[name] for name in fitted.not_beaten)
    if simpler:
        verb = "beats neither" if len(fitted.not_beaten) > 1 else "does not beat"
        terminal.line(
            f"This model {verb} the {simpler} by more than chance (two standard errors) on these "
            "rows."
        )


def print_columns(summary: Mapping[str, str], terminal: Terminal) -> None:
    """How each column is used, grouped by use."""
    groups: dict[str, list[str]] = {}
    for name, what in summary.items():
        groups.setdefault(what, []).append(name)
    rows = []
    for what, names in groups.items():
        more = f", ... ({len(names)})" if len(names) > MOST_NAMES else ""
        rows.append([", ".join(names[:MOST_NAMES]) + more, what])
    if len(rows) > MOST_LINES:
        rows = [*rows[:MOST_LINES], [f"... ({len(rows)})", "all with --json"]]
    if rows:
        terminal.table(("columns", "used as"), rows)


def _number(text: str) -> float | None:
    """The number in a text, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def _spelled(name: str, names: Sequence[str]) -> str:
    """One of the names, whatever its case; others are returned as they are."""
    return next((known for known in names if known.lower() == name.lower()), name)
