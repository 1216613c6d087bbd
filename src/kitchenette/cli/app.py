"""The commands and their options."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated

import typer
from threadpoolctl import threadpool_limits

from kitchenette.cli.clusters import ClusterOptions
from kitchenette.cli.groups import with_groups
from kitchenette.cli.outcome import EXPLANATIONS, OneSentence, as_usage, explained
from kitchenette.cli.quantities import number_of_bytes, number_of_seconds
from kitchenette.cli.rows import FileOptions, RowOptions
from kitchenette.cli.terminal import Terminal
from kitchenette.parameters import check_choice

CODES = "\n\n".join(f"{int(code)}: {text}." for code, text in EXPLANATIONS.items())

app = typer.Typer(
    cls=OneSentence,
    context_settings={"help_option_names": ["--help", "-h"]},
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

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="Files, folders or patterns: Parquet, Arrow, CSV, SVMlight, .npy or .npz.",
    ),
]
Target = Annotated[
    list[str],
    typer.Option(
        "--target", metavar="NAME", help="The column to be predicted; several are allowed."
    ),
]
KnownTarget = Annotated[
    list[str],
    typer.Option(
        "--target", metavar="NAME", help="The column to compare with; by default as the model says."
    ),
]
Passes = Annotated[
    int,
    typer.Option(
        min=1,
        max=3,
        help="1 samples by place, in one pass over the files; 3 looks up categories in all rows.",
    ),
]
Task = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="classification or regression; by default as the target is."),
]
Time = Annotated[
    str | None, typer.Option("--time", metavar="10m", help="About how long it may take.")
]
Threads = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="The number of threads; by default all.")
]


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


@app.command(epilog="Example: kitchenette fit rides.parquet --target fare --out fare.safetensors")
@with_groups
def fit(
    data: Data,
    target: Target,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The model file.")],
    weight: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of weights.")
    ] = None,
    task: Task = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|SHARE",
            help="Rows that are not learned, to measure the error: other files, or a share of the "
            "data, at most 20,000 rows. By default all rows are learned, and the error is that of "
            "validation rows, each predicted by a model without it.",
        ),
    ] = None,
    feature_map: Annotated[
        str,
        typer.Option(
            "--map",
            metavar="NAME",
            help="auto, which learns scales of the columns; or Fastfood, RandomKitchenSinks, "
            "RandomMaclaurin or TensorSketch of the columns as they are.",
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
        typer.Option(min=1, metavar="N", help="Number of features; 1024 unless limits tell else."),
    ] = None,
    alpha: Annotated[
        str, typer.Option(metavar="NUMBER|NAME", help="The penalty: auto, gcv, evidence, a number.")
    ] = "auto",
    loss: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="squared, which takes one pass; logistic, squared_hinge, auto; huber, quantile.",
        ),
    ] = "squared",
    solver: Annotated[
        str, typer.Option(metavar="NAME", help="auto, onepass or iterative.")
    ] = "auto",
    memory: Annotated[
        str | None, typer.Option(metavar="4GB", help="The memory that it may take.")
    ] = None,
    time: Time = None,
    threads: Threads = None,
    options: RowOptions = RowOptions(),
    passes: Passes = 2,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint of the same command.")
    ] = False,
    checkpoint_every: Annotated[
        str | None,
        typer.Option(
            metavar="10s",
            help="Time between checkpoints; by default they take at most 5 % of the time.",
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Take the map of this model instead of choosing one, so that both can be merged.",
        ),
    ] = None,
    clusters: ClusterOptions = ClusterOptions(),
    small: Annotated[
        bool,
        typer.Option("--small", help="A small file that only predicts, and cannot learn or merge."),
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Learn from files of any size and write a model. Killed? Run it again with --resume."""
    with explained(debug):
        from kitchenette.cli.clusters import write_shard
        from kitchenette.cli.fitting import fit_files
        from kitchenette.cli.outcome import predicting
        from kitchenette.jobs import FitSettings
        from kitchenette.jobs.settings import MAPS

        share = 0.0 if test is None else _number(test)
        with as_usage():
            settings = FitSettings(
                task=task,
                map=_spelled(feature_map, MAPS),
                kernel=kernel.lower(),
                components=components,
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
                write_shard(rows, out, settings, clusters, Terminal(as_json))
                return
            others = None
            if test is not None and share is None:
                others = options.opened([test], target, like=model)
            with clusters.placed(rows) as placed:
                fit_files(
                    placed,
                    out,
                    settings,
                    others,
                    model,
                    resume,
                    not small,
                    None if checkpoint_every is None else number_of_seconds(checkpoint_every),
                    Terminal(as_json),
                )


@app.command(
    epilog="Example: kitchenette predict fare.safetensors new.csv --out fares.csv --std --keep id"
)
@with_groups
def predict(
    model: Model,
    data: Data,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The predictions: a .parquet or a .csv file.")
    ],
    std: Annotated[bool, typer.Option("--std", help="Add standard deviations of numbers.")] = False,
    proba: Annotated[bool, typer.Option("--proba", help="Add probabilities of classes.")] = False,
    keep: Annotated[
        str, typer.Option(metavar="NAME,...", help="Columns that are copied to the predictions.")
    ] = "",
    threads: Threads = None,
    options: FileOptions = FileOptions(),
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Predict rows of any number, in constant memory. Columns are found by name."""
    with explained(debug):
        from kitchenette.cli.using import predict_files

        kept = [name.strip() for name in keep.split(",") if name.strip()]
        with threadpool_limits(threads):
            predict_files(model, data, options, out, std, proba, kept, Terminal(as_json))


@app.command(epilog="Example: kitchenette evaluate fare.safetensors may.parquet")
@with_groups
def evaluate(
    model: Model,
    data: Data,
    target: KnownTarget = [],  # noqa: B006 - it is never changed
    threads: Threads = None,
    options: FileOptions = FileOptions(),
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare predictions with what is known."""
    with explained(debug):
        from kitchenette.cli.using import evaluate_files

        with threadpool_limits(threads):
            evaluate_files(model, data, target, options, Terminal(as_json))


@app.command(epilog="Example: kitchenette compare rides.parquet --target fare --out page.html")
@with_groups
def compare(
    data: Data,
    target: Target,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page.")] = Path("comparison.html"),
    rows: Annotated[
        int, typer.Option(min=20, metavar="N", help="The largest number of rows, a sample.")
    ] = 20_000,
    task: Task = None,
    time: Annotated[
        str, typer.Option("--time", metavar="1m", help="About how long it may take.")
    ] = "1m",
    options: RowOptions = RowOptions(),
    seed: Seed = 0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Measure maps beside other models, and write a page that says which one to take."""
    with explained(debug):
        from kitchenette.cli.using import compare_files

        _check_task(task)
        compare_files(
            options.opened(data, target),
            rows,
            out,
            task,
            number_of_seconds(time),
            seed,
            f"{', '.join(target)} of {Path(data[0]).name}: which map to take",
            Terminal(as_json),
        )


@app.command(epilog="Example: kitchenette choose rides.parquet --target fare")
@with_groups
def choose(
    data: Data,
    target: Target,
    task: Task = None,
    components: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of features; chosen by default.")
    ] = None,
    time: Time = None,
    options: RowOptions = RowOptions(),
    seed: Seed = 0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Say which kernel, scales of the columns and number of features suit a sample of the rows."""
    with explained(debug):
        from kitchenette.cli.using import choose_files

        _check_task(task)
        seconds = None if time is None else number_of_seconds(time)
        choose_files(
            options.opened(data, target), task, components, seconds, seed, Terminal(as_json)
        )


@app.command("inspect", epilog="Example: kitchenette inspect model.safetensors")
def inspect_command(
    model: Model,
    trust: Annotated[
        bool, typer.Option("--trust", help="Load it however much memory and work its map takes.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Say what a model is: its columns, their importances, its size. Runs nothing from the file."""
    with explained(debug):
        from kitchenette.cli.inspecting import inspect_file

        inspect_file(model, Terminal(as_json), trusted=trust)


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


def _check_task(task: str | None) -> None:
    """Refuse a task that does not exist."""
    with as_usage():
        if task is not None:
            check_choice("task", task, ("classification", "regression"))


def _number(text: str) -> float | None:
    """A number, if the text is one."""
    try:
        return float(text)
    except ValueError:
        return None


def _spelled(name: str, names: Sequence[str]) -> str:
    """A name with the capital letters that it has, if it is one of some names."""
    return next((known for known in names if known.lower() == name.lower()), name)
