"""The command ``python -m reproduction``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from reproduction import report, runner, store
from reproduction.catalogue import EXPERIMENTS, find
from reproduction.experiment import Experiment, Mode, Results
from reproduction.findings import summary

CONSOLE = Console()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument(
        "name",
        nargs="*",
        help="an experiment, the beginning of several names, 'all', or 'report'; "
        "without it the experiments are listed",
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--quick", action="store_true", help="small sizes, the default")
    modes.add_argument("--full", action="store_true", help="the sizes of the papers")
    parser.add_argument("--again", action="store_true", help="forget the stored results first")
    options = parser.parse_args(arguments)
    mode: Mode = "full" if options.full else "quick"
    if not options.name:
        show_list()
        return 0
    if options.name == ["report"]:
        for path in report.write("quick" if options.quick else "full"):
            CONSOLE.print(f"wrote {path}")
        return 0
    for name in options.name:
        if not find(name):
            parser.error(f"no experiment begins with {name!r}; run without a name for the list")
    for experiment in dict.fromkeys(e for name in options.name for e in find(name)):
        results, missing = runner.run_with_bar(experiment, mode, CONSOLE, again=options.again)
        show(experiment, results, missing)
    return 0


def show(experiment: Experiment, results: Results, missing: dict[str, str]) -> None:
    """Tables, findings and picture of one experiment."""
    for reason in missing.values():
        CONSOLE.print(f"skipped: {reason}", style="yellow")
    for content in experiment.tables(results):
        table = Table(title=content.title, title_justify="left")
        for number, head in enumerate(content.header):
            table.add_column(head, justify="left" if number == 0 else "right")
        for row in content.rows:
            table.add_row(*row)
        CONSOLE.print(table)
    findings = list(experiment.findings(results))
    for finding in findings:
        CONSOLE.print(f"{finding.outcome:>15}  {finding.statement}", highlight=False)
    CONSOLE.print(f"verdict: {summary(findings)}", style="bold")
    if picture := report.draw(experiment, results):
        CONSOLE.print(f"picture: {picture}")


def show_list() -> None:
    """All experiments with what has been measured."""
    table = Table(title="python -m reproduction NAME [--quick|--full]", title_justify="left")
    table.add_column("name", no_wrap=True)
    for head in ("paper", "item", "quick", "full", "verdict"):
        table.add_column(head)
    for experiment in EXPERIMENTS:
        full = store.load(experiment, "full")
        table.add_row(
            experiment.name,
            experiment.paper.title,
            experiment.item,
            state(experiment, store.load(experiment, "quick")),
            state(experiment, full),
            summary(experiment.findings(full)) if full else "",
        )
    CONSOLE.print(table)


def state(experiment: Experiment, results: Results) -> str:
    return f"{len(results)} of {len(experiment.cells(results.mode))}" if results else "-"


if __name__ == "__main__":
    sys.exit(main())
