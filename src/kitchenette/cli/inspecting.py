"""`kitchenette inspect`: what is in a model file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from kitchenette.cli.fitting import print_columns
from kitchenette.cli.outcome import ExitCode, Problem, loaded
from kitchenette.cli.terminal import Terminal
from kitchenette.files import ModelFileError
from kitchenette.jobs.fitting import column_summary
from kitchenette.learning.base import FeatureLearner
from kitchenette.maps.protocol import thawed
from kitchenette.report.words import of_bytes

MOST_BARS = 20
MOST_NAMES = 12


def inspect_file(path: Path, terminal: Terminal, *, trusted: bool) -> None:
    """Describe a model file; nothing in it is run."""
    try:
        model = loaded(path, trusted=trusted)
    except ModelFileError as error:
        advice = re.sub(r"Load it with a larger max_\w+ if", "Say --trust if", str(error))
        raise Problem(advice, ExitCode.MODEL) from error
    found = described(model) | {"file": str(path), "bytes": os.path.getsize(path)}
    terminal.document(found)
    rows = [
        [name.replace("_", " "), shown(value)] for name, value in found.items() if name not in LONG
    ]
    rows = [[name, of_bytes(found["bytes"]) if name == "bytes" else text] for name, text in rows]
    terminal.table(("what", "value"), rows, title=str(path))
    print_columns(found.get("column_summary") or {}, terminal)
    if found.get("choice"):
        terminal.line(found["choice"])
    importances = found.get("importances") or {}
    ordered = sorted(importances.items(), key=lambda item: -item[1])
    terminal.bars(ordered[:MOST_BARS], "Importance of columns")


LONG = ("column_summary", "importances", "choice", "file")  # shown in their own ways


def described(model: Any) -> dict[str, Any]:
    """What is known of an object from a model file, as JSON."""
    found: dict[str, Any] = {"kind": type(model).__name__}
    if not isinstance(model, FeatureLearner) or not hasattr(model, "n_features_in_"):
        return found | {"parameters": repr(model)}
    names, targets = (vars(model).get(name) for name in ("feature_names_in_", "target_names_"))
    feature_map = thawed(model.feature_map_)
    inner = getattr(feature_map, "map_", None) or feature_map
    found |= {
        "task": getattr(model, "task", "components"),
        "target": None if targets is None else [str(name) for name in targets],
        "columns": model.n_features_in_,
        "column_names": None if names is None else [str(name) for name in names],
        "column_summary": column_summary(model),
        "map": type(inner).__name__,
        "features": feature_map.n_features_out_,
        "rows_learned": None if model.statistics_ is None else model.statistics_.n_rows,
        "can_learn_more": model.statistics_ is not None,
    }
    for name, attribute in (("alpha", "alpha_"), ("loss", "loss_"), ("solver", "solver_")):
        found[name] = getattr(model, attribute, None)
    found["kernel"] = repr(inner.kernel_) if hasattr(inner, "kernel_") else None
    found["score_on_held_out_rows"] = getattr(model, "validation_score_", None)
    classes = getattr(model, "classes_", None)
    found["classes"] = None if classes is None else classes.tolist()
    choice = getattr(inner, "choice_", None)
    found["choice"] = None if choice is None else choice.sentence
    found["importances"] = importances(model, inner, names)
    return found


def importances(model: Any, inner: Any, names: Any) -> dict[str, float] | None:
    """The importance of each column, if the model can tell."""
    sizes = getattr(model, "feature_importances_", None)
    if sizes is None:
        sizes = getattr(inner, "feature_importances_", None)
    if sizes is None or sizes.size != model.n_features_in_:
        return None
    labels = [f"column {i}" for i in range(sizes.size)] if names is None else names
    return {str(label): float(size) for label, size in zip(labels, sizes, strict=True)}


def shown(value: Any) -> str:
    """A value of the description in a few words."""
    if value is None:
        return "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, list):
        some = ", ".join(map(str, value[:MOST_NAMES]))
        return f"{some}, ... ({len(value)})" if len(value) > MOST_NAMES else some
    return f"{value:.4g}" if isinstance(value, float) else str(value)
