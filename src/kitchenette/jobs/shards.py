"""Shards: partial fits by separate processes, merged from files.

For batch queues: each job computes the statistics of one shard of the rows, and `merge_shards`
makes the model. All jobs choose the same map, because they choose it on the same sample.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from kitchenette.backends.plan import tree
from kitchenette.data import DataError, Source
from kitchenette.data.source import Watch
from kitchenette.estimators.base import KernelEstimator
from kitchenette.files import ModelFileError, load, save
from kitchenette.jobs.checkpoint import Checkpoint, CheckpointError
from kitchenette.jobs.fitting import Progress, begun, check_folder, described, limits_of
from kitchenette.jobs.held_out import rows_to_learn
from kitchenette.jobs.outputs import refuse_input
from kitchenette.jobs.settings import FitSettings
from kitchenette.training import finish
from kitchenette.training.train import PartialOf


def learn_shard(
    source: Source,
    out: str | os.PathLike[str],
    settings: FitSettings | None = None,
    *,
    shard: tuple[int, int] = (1, 1),
    prepared: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Checkpoint:
    """Compute the statistics of one shard of the rows of a source, and write them to a file.

    Parameters
    ----------
    source : Source
        The rows of all shards, with targets.
    out : str or path-like
        The file of statistics.
    settings : FitSettings, optional
        The settings of the fit, the same for all shards.
    shard : pair of int, default=(1, 1)
        Which shard this is, counted from one, and how many there are.
    prepared : str or path-like, optional
        The statistics of another shard, whose map and columns are used instead of choosing them
        again; the result is the same.
    progress : callable, optional
        Called with the stage, the number of rows done and that of all rows of the shard.

    Returns
    -------
    statistics : Checkpoint
        The content of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from kitchenette.data import source
    >>> from kitchenette.jobs import learn_shard, merge_shards
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> rows = source(X, target=np.sin(X[:, 0]))
    >>> folder = Path(tempfile.mkdtemp())
    >>> for number in (1, 2, 3):
    ...     _ = learn_shard(rows, folder / f"{number}.shard", shard=(number, 3))
    >>> merge_shards(sorted(folder.glob("*.shard"))).statistics_.n_rows
    1000
    """
    settings = FitSettings() if settings is None else settings
    settings.check()
    number, n_shards = shard
    if not 1 <= number <= n_shards:
        raise ValueError(f"A shard is one from 1 to {n_shards} of {n_shards}; got {number}.")
    out, show = Path(out), progress or (lambda what, done, total: None)
    refuse_input(out, source.paths)
    check_folder(out)
    if prepared is None:
        show("choosing a map", 0, source.n_rows or 0)
        learned = rows_to_learn(source, settings)
        state, _ = begun(source, learned, settings, source.fingerprint(), None)
    else:
        state = loaded_statistics(prepared, limits_of(source, settings, None))
        source = source.read_as(state.prepared.known_columns())
        options = described(settings, None)
        state.check_belongs(source.fingerprint(), options, Path(prepared))
        state = replace(state, partial=None, stop=0)
        learned = rows_to_learn(source, settings)
    if state.facts["iterates"]:
        raise ValueError(
            "A shard has the statistics of one pass, which exist for loss='squared' and "
            "solver='onepass' or 'auto' with at most 8192 features."
        )
    if source.count() != state.n_rows:
        raise DataError(f"There are {source.count():,} rows, but {state.n_rows:,} were expected.")
    start, stop = (state.n_rows * part // n_shards for part in (number - 1, number))
    given = (None if array is None else array[start:stop] for array in learned.given_values())
    part = learned.with_reader(learned.readers(n_shards)[number - 1], *given)
    watch = Watch(progress=lambda done: show("learning", done, stop - start))
    partial = part.watched(PartialOf(state.prepared.prepared), watch)
    if partial is None:
        partial = state.prepared.prepared.empty()
    facts = {**state.facts, "shard": number, "n_shards": n_shards}
    checkpoint = replace(state, partial=partial, stop=stop, facts=facts)
    save(checkpoint, out)
    return checkpoint


def merge_shards(paths: Sequence[str | os.PathLike[str]]) -> KernelEstimator:
    """The model of all shards of a fit.

    Parameters
    ----------
    paths : sequence of str or path-like
        The files that `learn_shard` wrote, in any order.

    Returns
    -------
    model : KernelClassifier or KernelRegressor
        The model that a fit of all rows in one process gives, up to rounding errors.

    Raises
    ------
    CheckpointError
        If shards are missing, given twice, or of different rows or settings.

    Examples
    --------
    See `learn_shard`.

    >>> from kitchenette.jobs import merge_shards
    >>> merge_shards([])
    Traceback (most recent call last):
    kitchenette.jobs.checkpoint.CheckpointError: There are no shards to merge.
    """
    unlimited = {"max_bytes": math.inf, "max_operations": math.inf}
    states = [loaded_statistics(path, unlimited) for path in paths]
    if not states:
        raise CheckpointError("There are no shards to merge.")
    first = states[0]
    by_number: dict[int, tuple[Any, Checkpoint]] = {}
    for path, state in zip(paths, states, strict=True):
        shard, of = (state.facts.get(name) for name in ("shard", "n_shards"))
        if not (type(shard) is type(of) is int and 1 <= shard <= of and state.partial is not None):
            raise CheckpointError(f"{path} has no valid statistics of a shard.")
        state.check_belongs(first.inputs, first.settings, Path(path))
        if state.facts["n_shards"] != first.facts["n_shards"]:
            raise CheckpointError(
                f"{path} is one of {state.facts['n_shards']} shards, and {paths[0]} one of "
                f"{first.facts['n_shards']}."
            )
        number = state.facts["shard"]
        if number in by_number:
            raise CheckpointError(
                f"{path} and {by_number[number][0]} are both shard {number}: its rows would count "
                "twice."
            )
        by_number[number] = path, state
    if len(by_number) < first.facts["n_shards"]:
        numbers = range(1, first.facts["n_shards"] + 1)
        listed = ", ".join(map(str, islice((n for n in numbers if n not in by_number), 10)))
        raise CheckpointError(f"Shards are missing, whose rows would be lost: {listed}.")
    partials: list[Any] = [by_number[number][1].partial for number in sorted(by_number)]
    partial = tree(partials, lambda a, b: a.combined(b))
    assert partial is not None
    return finish(first.prepared, partial)


def loaded_statistics(path: str | os.PathLike[str], limits: dict[str, float]) -> Checkpoint:
    """The statistics of a shard in a file, within limits of `load`."""
    checkpoint = load(path, **limits)
    if not isinstance(checkpoint, Checkpoint) or "shard" not in checkpoint.facts:
        raise ModelFileError(f"{path} is a model file, but has no statistics of a shard.")
    return checkpoint
