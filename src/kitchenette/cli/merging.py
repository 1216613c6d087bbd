"""`kitchenette merge`: one model of the rows of several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kitchenette.cli.outcome import ExitCode, Problem, loaded
from kitchenette.cli.terminal import Terminal, checked_output
from kitchenette.estimators.base import KernelEstimator
from kitchenette.files import save
from kitchenette.jobs import Checkpoint, merge_shards


def merge_files(paths: Sequence[Path], out: Path, terminal: Terminal) -> None:
    """Merge models of different rows with equal maps."""
    checked_output(out)
    for number, path in enumerate(paths):
        if any(path.resolve() == other.resolve() for other in paths[:number]):
            raise Problem(f"{path} is given twice: its rows would count twice.", ExitCode.USAGE)
    shards = _has_shard(paths[0])
    model = merge_shards(paths) if shards else _merged(paths)
    save(model, out)
    what = "shards" if shards else "models"
    n_rows = 0 if model.statistics_ is None else model.statistics_.n_rows
    terminal.document({"out": str(out), what: len(paths), "rows": n_rows})
    terminal.line(f"{out}: {len(paths)} {what} with {n_rows:,} rows in all.")


def _merged(paths: Sequence[Path]) -> KernelEstimator:
    """The model of the rows of several models."""
    first, *others = (_with_statistics(path) for path in paths)
    for path, other in zip(paths[1:], others, strict=True):
        try:
            first.merge(other)
        except ValueError as error:
            raise Problem(
                f"{path}: {error} With the command: kitchenette fit ... --like {paths[0]}",
                ExitCode.MODEL,
            ) from error
    return first.solve()


def _has_shard(path: Path) -> bool:
    found = loaded(path)
    return isinstance(found, Checkpoint) and "shard" in found.facts


def _with_statistics(path: Path) -> KernelEstimator:
    model = loaded(path)
    if not isinstance(model, KernelEstimator) or getattr(model, "statistics_", None) is None:
        raise Problem(
            f"{path} cannot be merged: it is not an estimator with statistics.", ExitCode.MODEL
        )
    return model
