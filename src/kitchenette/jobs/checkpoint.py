"""How far a fit has come, as a value that can be stored, and when to store it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from kitchenette.estimators.base import KernelEstimator
from kitchenette.files import ModelFileError, load, save
from kitchenette.files.container import is_foreign, remove_leftovers
from kitchenette.files.fields import Unsigned
from kitchenette.files.registry import storable
from kitchenette.jobs.outputs import OutputError
from kitchenette.training import Partial

LARGEST_SHARE = 0.04  # of the run that writing checkpoints may take
SLOWEST_DISK = 50e6  # bytes per second, for the first checkpoint


class CheckpointError(ValueError):
    """A checkpoint belongs to other inputs or settings than those of this fit.

    Examples
    --------
    >>> from kitchenette.jobs import CheckpointError
    >>> issubclass(CheckpointError, ValueError)
    True
    """


@storable
@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A fit that has learned the first rows of its source.

    Attributes
    ----------
    inputs : str
        The fingerprint of the source.
    settings : dict
        The settings of the fit, as JSON.
    prepared : KernelEstimator
        The estimator after `prepare`.
    facts : dict
        What is known of the data, as JSON: the task, and the errors of simple models, for example.
    n_rows : int
        The number of rows of the source.
    partial : Partial or None
        What was learned so far; None before the first block.
    stop : int
        The index of the first row that is not learned yet.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from kitchenette import KernelRegressor, load, save
    >>> from kitchenette.jobs import Checkpoint
    >>> from kitchenette.training import partial, prepare
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> prepared = prepare(KernelRegressor(random_state=0), X, X[:, 0])
    >>> begun = Checkpoint("a fingerprint", {}, prepared, {}, 100)
    >>> half = replace(begun, partial=partial(prepared, X[:50], X[:50, 0]), stop=50)
    >>> path = Path(tempfile.mkdtemp(), "half")
    >>> save(half, path)
    >>> load(path).stop
    50
    """

    inputs: str
    settings: dict[str, Any]
    prepared: KernelEstimator
    facts: dict[str, Any]
    n_rows: Unsigned
    partial: Partial | None = None
    stop: Unsigned = 0

    def check_belongs(self, inputs: str, settings: dict[str, Any], path: Path) -> None:
        """Refuse other inputs or settings than those of the checkpoint.

        Parameters
        ----------
        inputs : str
            The fingerprint of the source now.
        settings : dict
            The settings now.
        path : Path
            The checkpoint's file, for the error message.
        """
        changed = [name for name in settings if settings[name] != self.settings.get(name)]
        if changed:
            name = changed[0]
            raise CheckpointError(
                f"{path} was written by a fit with other options: {name} was "
                f"{self.settings.get(name)!r} and is {settings[name]!r} now. Use the same options, "
                "or start again without that file."
            )
        if inputs != self.inputs:
            raise CheckpointError(
                f"The input has changed since {path} was written, or its columns are read in "
                "another way, so that rows would be counted twice or lost. Use the same files and "
                "options, such as --kind, or start again without that file."
            )

    def check(self) -> None:
        """Refuse a checkpoint of more rows than were read."""
        if self.partial is not None and self.partial.n_rows > self.stop:
            raise ValueError("a checkpoint cannot have learned more rows than it has read.")


class CheckpointWriter:
    """Stores checkpoints so rarely that they take a small share of the time.

    Parameters
    ----------
    path : Path
        The file; each checkpoint replaces the one before.
    every : float, optional
        The seconds between checkpoints; by default as many as keep their share of the time small.

    Attributes
    ----------
    count : int
        The number of checkpoints that were written.
    seconds : float
        The time that they took.
    """

    def __init__(self, path: Path, every: float | None = None):
        if is_foreign(path, Checkpoint.__name__):
            raise OutputError(
                f"{path} is where the checkpoints of this fit would be written, but it is not a "
                "checkpoint: move it, or write the model to another file."
            )
        remove_leftovers(path)
        self.path, self.every = path, every
        self.count, self.seconds = 0, 0.0
        self._mine: os.stat_result | None = None  # the file that this fit wrote or resumed
        self._last = perf_counter()
        self._longest = 0.0

    def maybe(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint, if enough time has passed since the last one."""
        expected = self._longest or size_of(checkpoint) / SLOWEST_DISK
        pause = expected / LARGEST_SHARE if self.every is None else self.every
        if perf_counter() - self._last >= pause:
            self.store(checkpoint)

    def loaded(self, limits: dict[str, float]) -> Checkpoint | None:
        """The checkpoint to resume from, within limits of `load`; None if there is none."""
        if not self.path.exists():
            return None
        self._mine = self.path.stat()
        checkpoint = load(self.path, **limits)
        if not isinstance(checkpoint, Checkpoint):
            raise ModelFileError(f"{self.path} is a model file, but not a checkpoint.")
        return checkpoint

    def store(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint now."""
        start = perf_counter()
        save(checkpoint, self.path)
        with suppress(FileNotFoundError):  # another fit with this output may have replaced it
            self._mine = self.path.stat()
        self._last = perf_counter()
        self.count += 1
        self.seconds += self._last - start
        self._longest = max(self._longest, self._last - start)

    def remove(self) -> None:
        """Delete the checkpoint of this fit, which is finished, but not that of another one."""
        with suppress(FileNotFoundError):
            if self._mine is not None and _is_same(self._mine, self.path.stat()):
                self.path.unlink()


def _is_same(a: os.stat_result, b: os.stat_result) -> bool:
    """Whether it is the same file; numbers of files that were replaced are soon used again."""
    return os.path.samestat(a, b) and a.st_mtime_ns == b.st_mtime_ns


def size_of(checkpoint: Checkpoint) -> int:
    """About the size of a checkpoint in bytes."""
    n_features = checkpoint.prepared.feature_map_.n_features_out_
    return 4 * int(n_features) ** 2 + 8 * 2000 * int(n_features)


def checkpoint_path(out: Path) -> Path:
    """Where the checkpoints of a model file are."""
    return out.with_name(os.path.basename(out) + ".checkpoint")
