"""The commands and their options."""

from __future__ import annotations

from importlib.metadata import version as installed_version
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    help="Kitchenette: compact random features for kernel machines.",
    no_args_is_help=True,
    add_completion=False,
)


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


@app.command()
def demo(
    n_components: Annotated[
        int, typer.Option(min=1, help="Number of Fastfood features.", metavar="N")
    ] = 1024,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed of the split and of the features.")
    ] = 0,
) -> None:
    """Compare a linear model, an exact kernel machine and Fastfood on handwritten digits."""
    from kitchenette.cli.demo import run_demo

    run_demo(n_components, seed, Console())
