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
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Random seed.")]

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="Files, folders or glob patterns: Parquet, Arrow, CSV, SVMlight, .npy or .npz.",
    ),
]
Target = Annotated[
    list[str],
    typer.Option(
        "--target", metavar="NAME", help="The target column; repeat it for several targets."
    ),
]
KnownTarget = Annotated[
    list[str],
    typer.Option("--target", metavar="NAME", help="The target column; by default that of the fit."),
]
Passes = Annotated[
    int,
    typer.Option(
        min=1,
        max=3,
        help="Passes over the files. 1 takes the sample from parts of them instead of by hash; "
        "3 finds the categories of all rows, not of the sample only.",
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="classification or regression; by default inferred from the target."
    ),
]
Time = Annotated[str | None, typer.Option("--time", metavar="10m", help="Approximate time limit.")]
Threads = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Number of threads; by default all.")
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
            help="Number of features; by default 1024, or what --time and --memory allow.",
        ),
    ] = None,
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
    options: RowOptions = RowOptions(),
    passes: Passes = 2,
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
    clusters: ClusterOptions = ClusterOptions(),
    small: Annotated[
        bool,
        typer.Option(
            "--small", help="A small file, which predicts but cannot be updated or merged."
        ),
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Fit a model to files of any size. After an interruption, run it again with --resume."""
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
    std: Annotated[
        bool, typer.Option("--std", help="Add standard deviations (regression).")
    ] = False,
    proba: Annotated[bool, typer.Option("--proba", help="Add class probabilities.")] = False,
    keep: Annotated[
        str, typer.Option(metavar="NAME,...", help="Columns to copy to the predictions.")
    ] = "",
    threads: Threads = None,
    options: FileOptions = FileOptions(),
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Predict any number of rows in constant memory. Columns are matched by name."""
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
    """Measure the error of a model on rows with known targets."""
    with explained(debug):
        from kitchenette.cli.using import evaluate_files

        with threadpool_limits(threads):
            evaluate_files(model, data, target, options, Terminal(as_json))


@app.command(epilog="Example: kitchenette compare rides.parquet --target fare --out page.html")
@with_groups
def compare(
    data: Data,
    target: Target,
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
    options: RowOptions = RowOptions(),
    seed: Seed = 0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare maps with other models, and write a page that recommends one."""
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
        int | None, typer.Option(min=1, metavar="N", help="Number of features; by default chosen.")
    ] = None,
    time: Time = None,
    options: RowOptions = RowOptions(),
    seed: Seed = 0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Choose a kernel, column scales and a number of features on a sample of the rows."""
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
        bool, typer.Option("--trust", help="Load it whatever memory and time its map takes.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Describe a model: columns, importances, size. Nothing in the file is executed."""
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
    out: Annotated[Path, typer.Option(metavar="FILE", help="The merged model.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Merge models of different rows into one, as if it was fitted to all of them."""
    with explained(debug):
        from kitchenette.cli.merging import merge_files

        merge_files(models, out, Terminal(as_json))


@app.command(epilog="Example: kitchenette demo --page demo.html")
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
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Fit a stream of rows that is too long for an exact kernel machine, in half a minute."""
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
