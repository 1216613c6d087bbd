"""The commands."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from kitchenette.cli.command import command
from kitchenette.cli.comparing import compare, demo
from kitchenette.cli.fitting import fit, merge
from kitchenette.cli.inspecting import inspect
from kitchenette.cli.outcome import EXPLANATIONS, OneSentence
from kitchenette.cli.using import choose, evaluate, predict

EXAMPLES: dict[Callable[..., None], str] = {
    fit: "fit rides.parquet --target fare --out fare.safetensors",
    predict: "predict fare.safetensors new.csv --out fares.csv --std --keep id",
    evaluate: "evaluate fare.safetensors may.parquet",
    compare: "compare rides.parquet --target fare --out page.html",
    choose: "choose rides.parquet --target fare",
    inspect: "inspect model.safetensors",
    merge: "merge monday.safetensors tuesday.safetensors --out all.safetensors",
    demo: "demo --page demo.html",
}
CODES = "\n\n".join(f"{int(code)}: {text}." for code, text in EXPLANATIONS.items())

app = typer.Typer(
    cls=OneSentence,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Kitchenette: compact random features for kernel machines.",
    epilog=f"Exit codes: {CODES}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"kitchenette {installed_version('kitchenette')}")
        raise typer.Exit


@app.callback()
def general(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Kitchenette: compact random features for kernel machines."""


for function, example in EXAMPLES.items():
    app.command(epilog=f"Example: kitchenette {example}")(command(function))
