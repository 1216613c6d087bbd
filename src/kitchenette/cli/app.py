"""The commands and their options."""

from __future__ import annotations

from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated

import typer

from kitchenette.cli.outcome import EXPLANATIONS, explained
from kitchenette.cli.terminal import Terminal

CODES = "\n\n".join(f"{int(code)}: {text}." for code, text in EXPLANATIONS.items())

app = typer.Typer(
    help="Kitchenette: compact random features for kernel machines.",
    epilog=f"Exit codes: {CODES}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error came from.")]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of everything random.")
]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"kitchenette {installed_version('kitchenette')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Kitchenette: compact random features for kernel machines."""


@app.command("inspect", epilog="Example: kitchenette inspect model.safetensors")
def inspect_command(model: Model, as_json: AsJson = False, debug: Debug = False) -> None:
    """Say what a model is: its columns, their importances, its size. Runs nothing from the file."""
    with explained(debug):
        from kitchenette.cli.inspecting import inspect_file

        inspect_file(model, Terminal(as_json))


@app.command(
    epilog="Example: kitchenette merge monday.safetensors tuesday.safetensors --out all.safetensors"
)
def merge(
    models: Annotated[
        list[Path], typer.Argument(metavar="A B ...", help="Model files with equal maps.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The model of all their rows.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Join models of different rows into one, as if it had learned all of them."""
    with explained(debug):
        from kitchenette.cli.merging import merge_files

        merge_files(models, out, Terminal(as_json))


@app.command(epilog="Example: kitchenette demo --page demo.html")
def demo(
    rows: Annotated[
        int, typer.Option(min=2000, metavar="N", help="Number of rows that are streamed.")
    ] = 200_000,
    n_components: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of features.")
    ] = 512,
    page: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the comparison is written.")
    ] = Path("kitchenette-demo.html"),
    seed: Seed = 0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Learn a stream of rows that the exact kernel machine cannot follow, in half a minute."""
    with explained(debug):
        from kitchenette.cli.demo import run_demo

        run_demo(rows, n_components, seed, page, Terminal(as_json))
