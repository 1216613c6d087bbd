"""`kitchenette inspect`."""

from __future__ import annotations

import os
import re
from typing import Annotated, Any

import numpy as np
import typer

from kitchenette.cli.fitting import print_columns
from kitchenette.cli.options import ModelFile
from kitchenette.cli.outcome import CommandError, ExitCode, loaded
from kitchenette.cli.terminal import Terminal
from kitchenette.estimators.base import KernelEstimator
from kitchenette.files import ModelFileError
from kitchenette.jobs import Checkpoint
from kitchenette.jobs.fitting import column_summary
from kitchenette.maps.protocol import thawed
from kitchenette.quantities import of_bytes
from kitchenette.training import Partial

MOST_LINES = 20  # bars of columns, in a terminal of 24 lines
MOST_NAMES = 12  # that fit into about one line


def inspect(
    model: ModelFile,
    *,
    trust: Annotated[
        bool, typer.Option("--trust", help="Load it whatever memory and time its map takes.")
    ] = False,
    terminal: Terminal,
) -> None:
    """Describe a model: columns, importances, size. Nothing in the file is executed."""
    try:
        description = described(loaded(model, trusted=trust))
    except ModelFileError as error:
        advice = re.sub(r"Load it with a larger max_\w+ if", "Say --trust if", str(error))
        raise CommandError(advice, ExitCode.MODEL) from error
    description |= {"file": str(model), "bytes": os.path.getsize(model)}
    terminal.document(description)
    rows = [
        [name.replace("_", " "), shown(value)]
        for name, value in description.items()
        if name not in LONG
    ]
    rows = [
        [name, of_bytes(description["bytes"]) if name == "bytes" else text] for name, text in rows
    ]
    terminal.table(("what", "value"), rows, title=str(model))
    print_columns(description.get("column_summary") or {}, terminal)
    if description.get("choice"):
        terminal.line(description["choice"])
    importances = description.get("importances") or {}
    ordered = sorted(importances.items(), key=lambda item: -item[1])
    terminal.bars(ordered[:MOST_LINES], "Importance of columns")


LONG = ("column_summary", "importances", "choice", "file")  # not in the table


def described(model: Any) -> dict[str, Any]:
    """The description of an object in a model file, as JSON."""
    if isinstance(model, Checkpoint):
        return _of_checkpoint(model)
    if isinstance(model, Partial):
        return {"kind": "Partial", "estimator": model.estimator, **_of_partial(model)}
    description: dict[str, Any] = {"kind": type(model).__name__}
    if not isinstance(model, KernelEstimator) or not hasattr(model, "n_features_in_"):
        return description | {"parameters": repr(model)}
    names, targets = (getattr(model, name, None) for name in ("feature_names_in_", "target_names_"))
    feature_map = thawed(model.feature_map_)
    inner = getattr(feature_map, "map_", None) or feature_map
    description |= {
        "task": getattr(model, "task", "components"),
        "target": None if targets is None else [str(name) for name in targets],
        "columns": model.n_features_in_,
        "column_names": None if names is None else [str(name) for name in names],
        "column_summary": column_summary(model),
        "map": type(inner).__name__,
        "features": feature_map.n_features_out_,
        "training_rows": _training_rows(model),
        "can_be_updated": _training_rows(model) is not None,
    }
    for name, attribute in (("alpha", "alpha_"), ("loss", "loss_"), ("solver", "solver_")):
        description[name] = getattr(model, attribute, None)
    description["kernel"] = repr(inner.kernel_) if hasattr(inner, "kernel_") else None
    description["validation_score"] = getattr(model, "validation_score_", None)
    classes = getattr(model, "classes_", None)
    description["classes"] = None if classes is None else classes.tolist()
    choice = getattr(inner, "choice_", None)
    description["choice"] = None if choice is None else choice.sentence
    description["importances"] = importances(model, inner, names)
    return description


def _training_rows(model: Any) -> int | None:
    """The number of rows in the statistics; None without statistics."""
    if not hasattr(model, "statistics_"):
        return 0  # it was prepared, but not fitted
    return None if model.statistics_ is None else model.statistics_.n_rows


def _of_checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    """The description of a shard, or of a fit that was interrupted."""
    facts = {name: checkpoint.facts.get(name) for name in ("shard", "n_shards")}
    of_shard = {name.replace("n_", ""): value for name, value in facts.items() if value is not None}
    prepared = described(checkpoint.prepared)
    for name in ("validation_score", "alpha", "can_be_updated"):
        prepared.pop(name, None)  # not known before the last row
    return {
        **prepared,
        "kind": "Checkpoint",
        **of_shard,
        "estimator": prepared["kind"],
        "rows_of_the_source": checkpoint.n_rows,
        "rows_read": checkpoint.stop,
        **({"training_rows": 0} if checkpoint.partial is None else _of_partial(checkpoint.partial)),
    }


def _of_partial(partial: Partial) -> dict[str, Any]:
    """The description of the statistics of some rows."""
    description: dict[str, Any] = {"training_rows": partial.n_rows}
    statistics = [*(partial.by_class or ()), partial.statistics]
    sizes = [part.n_features for part in statistics if part is not None]
    if sizes:
        description["features"] = sizes[0]
    if partial.classes is not None:
        description["classes"] = partial.classes.tolist()
    return description


def importances(model: Any, inner: Any, names: Any) -> dict[str, float] | None:
    """The importance of each column, if the model has them."""
    sizes = getattr(model, "feature_importances_", None)
    if sizes is None:
        sizes = getattr(inner, "feature_importances_", None)
    if sizes is None or sizes.size != model.n_features_in_:
        return None
    labels = [f"column {i}" for i in range(sizes.size)] if names is None else names
    return {str(label): float(size) for label, size in zip(labels, sizes, strict=True)}


def shown(value: Any) -> str:
    """A value of the description as text."""
    if value is None:
        return "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, list):
        shortened = ", ".join(map(str, value[:MOST_NAMES]))
        return f"{shortened}, ... ({len(value)})" if len(value) > MOST_NAMES else shortened
    return f"{value:.4g}" if isinstance(value, float) else str(value)
