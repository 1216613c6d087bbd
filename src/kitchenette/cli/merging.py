"""`kitchenette merge`: one model of the rows of several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kitchenette.cli.outcome import ExitCode, Problem, loaded
from kitchenette.cli.terminal import Terminal, checked_output
from kitchenette.files import save
from kitchenette.jobs import Checkpoint, merge_shards
from kitchenette.learning.base import FeatureLearner


def merge_files(paths: Sequence[Path], out: Path, terminal: Terminal) -> None:
    """Merge models of different rows with equal maps."""
    checked_output(out)
    if _has_shard(paths[0]):
        _merge_shards(paths, out, terminal)
        return
    first, *others = (_with_statistics(path) for path in paths)
    for path, other in zip(paths[1:], others, strict=True):
        try:
            first.merge(other)
        except ValueError as error:
            raise Problem(
                f"{path}: {error} With the command: kitchenette fit ... --like {paths[0]}",
                ExitCode.MODEL,
            ) from error
    save(first.solve(), out)
    n_rows = 0 if first.statistics_ is None else first.statistics_.n_rows
    terminal.document({"out": str(out), "models": len(paths), "rows": n_rows})
    terminal.line(f"{out}: {len(paths)} models with {n_rows:,} rows in all.")


def _has_shard(path: Path) -> bool:
    found = loaded(path)
    return isinstance(found, Checkpoint) and "shard" in found.facts


def _merge_shards(paths: Sequence[Path], out: Path, terminal: Terminal) -> None:
    """Make the model of the statistics of shards."""
    model = merge_shards(paths)
    save(model, out)
    n_rows = 0 if model.statistics_ is None else model.statistics_.n_rows
    terminal.document({"out": str(out), "shards": len(paths), "rows": n_rows})
    terminal.line(f"{out}: {len(paths)} shards with {n_rows:,} rows in all.")


def _with_statistics(path: Path) -> FeatureLearner:
    model = loaded(path)
    if not isinstance(model, FeatureLearner) or vars(model).get("statistics_") is None:
        raise Problem(
            f"{path} cannot be merged: it is not an estimator with statistics.", ExitCode.MODEL
        )
    return model
