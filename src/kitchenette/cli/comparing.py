"""`kitchenette compare` and `demo`, which are the only commands that load the report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kitchenette.cli.options import Data, RowOptions, Seed, Target, Task, number_of_seconds
from kitchenette.cli.terminal import Terminal, checked_output
from kitchenette.cli.using import check_task
from kitchenette.files.container import replacement
from kitchenette.jobs import prepared_sample
from kitchenette.jobs.outputs import refuse_input
from kitchenette.quantities import of_bytes, of_seconds, of_share

if TYPE_CHECKING:
    from kitchenette.report import Comparison, Measurement


def compare(
    data: Data,
    target: Target,
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML page.")] = Path(
        "comparison.html"
    ),
    rows: Annotated[
        int, typer.Option(min=20, metavar="N", help="Largest number of rows; more are sampled.")
    ] = 20_000,
    task: Task = None,
    time: Annotated[
        str, typer.Option("--time", metavar="1m", help="Approximate time limit.")
    ] = "1m",
    options: RowOptions,
    seed: Seed = 0,
    terminal: Terminal,
) -> None:
    """Compare maps with other models, and write a page that recommends one."""
    from kitchenette import report

    check_task(task)
    source = options.opened(data, target)
    checked_output(out)
    refuse_input(out, source.paths)
    sample = prepared_sample(source, rows, seed)
    with terminal.progress() as shown:
        bar = shown.add_task("comparing", total=None, rate="")
        comparison = report.compare(
            sample.X,
            sample.y,
            task=task,
            budget=number_of_seconds(time),
            columns=sample.names,
            owners=sample.owners,
            title=f"{', '.join(target)} of {Path(data[0]).name}: which map to take",
            progress=lambda name: shown.update(bar, description=name),
            random_state=seed,
        )
    write_page(comparison, out)
    terminal.document({**comparison.to_json(), "page": str(out)})
    print_measurements(
        comparison.measurements, comparison.task, terminal, title=comparison.error_name
    )
    for sentence in comparison.advice:
        terminal.line(sentence)
    terminal.line(f"{out} has the pictures and tables.")


def print_measurements(
    measurements: Iterable[Measurement], task: str, terminal: Terminal, title: str = ""
) -> None:
    """Print a table of models."""
    table = [
        [
            row.name + (" (extrapolated)" if row.extrapolated else ""),
            f"{row.n_rows:,}",
            "-" if row.error is None else of_share(row.error, task),
            of_seconds(row.fit_seconds),
            of_seconds(row.predict_seconds),
            of_bytes(row.model_bytes),
        ]
        for row in measurements
    ]
    terminal.table(("model", "rows", "error", "fit", "a prediction", "size"), table, title=title)


def demo(
    rows: Annotated[
        int, typer.Option(min=2000, metavar="N", help="Number of rows in the stream.")
    ] = 200_000,
    n_components: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of features.")
    ] = 512,
    page: Annotated[Path, typer.Option(metavar="FILE", help="The HTML page.")] = Path(
        "kitchenette-demo.html"
    ),
    seed: Seed = 0,
    *,
    terminal: Terminal,
) -> None:
    """Fit a stream of rows that is too long for an exact kernel machine, in half a minute."""
    from kitchenette.cli.demo import run_demo

    run_demo(rows, n_components, seed, page, terminal)


def write_page(comparison: Comparison, out: Path) -> None:
    """Write the page of a comparison, in one step."""
    from kitchenette.report import page

    with replacement(out) as file:
        file.write(page(comparison).encode())
