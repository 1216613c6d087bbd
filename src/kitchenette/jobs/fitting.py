"""`fit_rows`: from a source of rows to a model file, with checkpoints and an honest error."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from kitchenette.data import Block, DataError, Source, sampled_rows
from kitchenette.data.rows import take
from kitchenette.files import save
from kitchenette.jobs.checkpoint import Checkpoint, Keeper, checkpoint_path, loaded_checkpoint
from kitchenette.jobs.settings import FitSettings, refuse_too_much
from kitchenette.learning import finish, learn, prepare
from kitchenette.learning.machine import KernelMachine
from kitchenette.maps.protocol import thawed
from kitchenette.maps.table_map import TableMap
from kitchenette.report.contestants import linear, trivial
from kitchenette.report.measuring import error_of, resident
from kitchenette.selection.targets import likely_task

MOST_TEST_ROWS = 20_000
TEST_SEED = 1  # added to the seed, so that test rows are not those of the sample
MOST_COLUMNS_OF_LINEAR = 2000

Progress = Callable[[str, int, int], None]  # what is done, the rows that are done, all rows


@dataclass(frozen=True)
class Fitted:
    """What came of a fit.

    Attributes
    ----------
    model : KernelMachine
        The model, which is in the file as well.
    out : str
        The model file.
    task, why_task : str
        "classification" or "regression", and how that was decided.
    n_rows, n_test_rows, n_columns : int
        The number of rows learned, of rows held out, and of columns.
    n_components : int
        The number of features.
    choice : str
        What was chosen, and why.
    errors : dict
        The error on the rows held out of the model, of the linear and of the trivial model; the
        latter two learned from a sample.
    error_name : str
        What the errors are.
    alpha : float
        The penalty.
    loss, solver : str
        As in the estimators.
    seconds : float
        The time, since the beginning or the resumption.
    rows_per_second : float
        Of this run.
    peak_bytes : int or None
        The most memory that the process took.
    model_bytes : int
        The size of the file.
    resumed_at : int
        The number of rows that a checkpoint had; 0 for a new fit.
    checkpoints : int
        The number of checkpoints that were written.
    checkpoint_seconds : float
        The time that they took.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from kitchenette.data import source
    >>> from kitchenette.jobs import fit_rows
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> rows = source(X, target=np.sin(X[:, 0]))
    >>> fitted = fit_rows(rows, Path(tempfile.mkdtemp(), "model.safetensors"))
    >>> fitted.task, fitted.n_rows, fitted.errors["model"] < fitted.errors["linear"]
    ('regression', 1800, True)
    """

    model: KernelMachine = field(repr=False)
    out: str
    task: str
    why_task: str
    n_rows: int
    n_test_rows: int
    n_columns: int
    n_components: int
    choice: str
    errors: dict[str, float]
    error_name: str
    alpha: float
    loss: str
    solver: str
    seconds: float
    rows_per_second: float
    peak_bytes: int | None
    model_bytes: int
    resumed_at: int
    checkpoints: int
    checkpoint_seconds: float

    def to_json(self) -> dict[str, Any]:
        """The same without the model, as a dictionary."""
        values = {name: value for name, value in vars(self).items() if name != "model"}
        return dict(values)


def fit_rows(
    source: Source,
    out: str | os.PathLike[str],
    settings: FitSettings | None = None,
    *,
    test: Source | None = None,
    resume: bool = False,
    statistics: bool = True,
    checkpoint_every: float | None = None,
    progress: Progress | None = None,
) -> Fitted:
    """Learn all rows of a source and write the model to a file.

    The feature map is chosen on a sample, and the rows are learned in one pass, in blocks. From
    time to time a checkpoint is written beside the model, which takes at most a twentieth of the
    time. A fit that was killed and is resumed gives the same bits as one that was not.

    Parameters
    ----------
    source : Source
        The rows, with targets.
    out : str or path-like
        The model file. An existing one is replaced at the end, in one step.
    settings : FitSettings, optional
        How to learn.
    test : Source, optional
        Other rows to measure the error on, instead of some that are held out.
    resume : bool, default=False
        Whether to go on from the checkpoint, if there is one. It must be of the same source and
        settings.
    statistics : bool, default=True
        Whether the model can learn more, be merged, and give standard deviations; else its file
        is far smaller.
    checkpoint_every : float, optional
        The seconds between checkpoints; by default as many as let them take at most a twentieth
        of the time.
    progress : callable, optional
        Called with what is done, the number of rows done and that of all rows.

    Returns
    -------
    fitted : Fitted

    Raises
    ------
    CheckpointError
        If the checkpoint is of another source or of other settings.

    Notes
    -----
    Iterative solvers (losses other than the squared one, more than 8192 features) go through the
    rows many times. They write no checkpoints, and begin again if they are resumed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import kitchenette
    >>> from kitchenette.data import source
    >>> from kitchenette.jobs import FitSettings, fit_rows
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> rows = source(X, target=X[:, 0] * X[:, 1] > 0)
    >>> out = Path(tempfile.mkdtemp(), "model.safetensors")
    >>> fitted = fit_rows(rows, out, FitSettings(components=256))
    >>> fitted.errors["model"] < 0.1 < fitted.errors["linear"]
    True
    >>> kitchenette.load(out).predict([[1.0, 2.0]])
    array([ True])
    """
    start, out = perf_counter(), Path(out)
    settings = FitSettings() if settings is None else settings
    settings.check()
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(f"Cannot save to {out}: there is no folder {out.parent}.")
    show = progress or (lambda what, done, total: None)
    keeper = Keeper(checkpoint_path(out), checkpoint_every)
    keeper.clean()
    inputs = source.fingerprint()
    state = loaded_checkpoint(keeper.path) if resume else None
    if state is not None:
        state.check_belongs(inputs, settings.to_json(), keeper.path)
    else:
        show("choosing a map", 0, source.n_rows or 0)
        state = begun(source, settings, inputs, held_out=test is None)
    resumed_at = state.stop
    if state.facts["iterates"]:
        model: Any = _iterated(source, state, settings)
    else:
        state = _learned(source, state, keeper, show, settings)
        assert state.summary is not None
        show("solving", state.n_rows, state.n_rows)
        model = finish(state.prepared, state.summary)
    save(model, out, statistics=statistics)
    keeper.remove()
    show("testing", state.n_rows, state.n_rows)
    facts = state.facts
    errors, n_test_rows = _errors(source, test, state, model, settings)
    seconds = perf_counter() - start
    return Fitted(
        model,
        str(out),
        facts["task"],
        facts["why_task"],
        state.n_rows - (n_test_rows if test is None else 0),
        n_test_rows,
        len(source.features),
        int(thawed(model.feature_map_).n_features_out_),
        facts["choice"],
        errors,
        ERROR_NAMES[facts["task"]],
        float(model.alpha_),
        model.loss_,
        model.solver_,
        seconds,
        (state.n_rows - resumed_at) / seconds,
        resident("VmHWM"),
        os.path.getsize(out),
        resumed_at,
        keeper.count,
        keeper.seconds,
    )


ERROR_NAMES = {
    "classification": "share of wrong predictions",
    "regression": "root mean square error / standard deviation",
}


def begun(source: Source, settings: FitSettings, inputs: str, *, held_out: bool) -> Checkpoint:
    """The state of a fit that has chosen its map and learned no rows."""
    whole = source.sample(seed=settings.seed)
    n_rows = source.n_rows
    assert n_rows is not None  # known after a sample was taken
    if whole.y is None:
        raise DataError("Name the column to be predicted, as target.")
    numbers = sampled_rows(n_rows, whole.n_rows, settings.seed)
    tested = test_rows(n_rows, settings) if held_out else np.empty(0, np.int64)
    sample = without(whole, np.isin(numbers, tested, assume_unique=True))
    if sample.n_rows == 0 or sample.y is None:
        raise DataError(f"{n_rows} rows are too few: none is left after holding some out.")
    task, why = _task_of(sample.y, settings)
    _check_targets(sample.y, task)
    n_components = settings.n_components(n_rows)
    refuse_too_much(n_components)
    feature_map = settings.feature_map(task, n_components)
    if source.is_table:
        tables = None
        if source.passes == 2:
            tables = (block.X for block in source.without_targets().blocks())
        schema = source.schema.some(source.features)
        fitted = TableMap.fitted_on(
            feature_map,
            schema,
            sample.X,
            sample.y,
            sample.weight,
            rules=source.rules,
            tables=tables,
        )
        feature_map = FrozenEstimator(fitted)
    estimator = settings.estimator(task, feature_map)
    iterates = estimator.iterates(n_components)
    if iterates:
        prepared: Any = estimator
    else:
        prepared = prepare(estimator, sample.X, sample.y, sample.weight)
        feature_map = prepared.feature_map_
    facts = {
        "task": task,
        "why_task": why,
        "choice": _choice(feature_map),
        "iterates": iterates,
        "held_out": held_out,
    }
    facts["n_sample"] = whole.n_rows
    return Checkpoint(inputs, settings.to_json(), prepared, facts, n_rows)


def test_rows(n_rows: int, settings: FitSettings) -> NDArray[np.int64]:
    """The numbers of the rows that are held out."""
    size = min(MOST_TEST_ROWS, int(settings.test * n_rows))
    if size == 0:
        return np.empty(0, np.int64)
    return sampled_rows(n_rows, size, settings.seed + TEST_SEED)


def without(block: Block, left_out: NDArray[np.bool_]) -> Block:
    """A block without some of its rows."""
    if not left_out.any():
        return block
    kept = np.flatnonzero(~left_out)
    y, weight = (None if part is None else part[kept] for part in (block.y, block.weight))
    return Block(take(block.X, kept), y, weight, block.start)


def _learned(
    source: Source, state: Checkpoint, keeper: Keeper, show: Progress, settings: FitSettings
) -> Checkpoint:
    """The state after all rows."""
    tested = test_rows(state.n_rows, settings) if state.facts["held_out"] else np.empty(0, np.int64)
    show("learning", state.stop, state.n_rows)
    try:
        for block in source.blocks(start=state.stop):
            stop = block.stop
            mask = np.zeros(block.n_rows, bool)
            low, high = np.searchsorted(tested, [block.start, stop])
            mask[tested[low:high] - block.start] = True
            rows = without(block, mask)
            state = state.after(learn(state.prepared, rows.X, rows.y, rows.weight), stop)
            show("learning", stop, state.n_rows)
            if stop < state.n_rows:
                keeper.maybe(state)
    except KeyboardInterrupt:
        keeper.store(state)
        raise KeyboardInterrupt(
            f"Interrupted after {state.stop:,} of {state.n_rows:,} rows, which are kept in "
            f"{keeper.path}: run the same command with --resume to go on."
        ) from None
    if state.stop != state.n_rows:
        raise DataError(
            f"There were {state.n_rows:,} rows when the fit began, but {state.stop:,} could be "
            "read: the input has changed meanwhile."
        )
    if state.summary is None or state.summary.n_rows == 0:
        raise DataError("There is no row of positive weight to learn from.")
    return state


def _iterated(source: Source, state: Checkpoint, settings: FitSettings) -> KernelMachine:
    """The model of an iterative solver, which goes through the rows many times."""
    tested = test_rows(state.n_rows, settings) if state.facts["held_out"] else np.empty(0, np.int64)
    if tested.size:
        weights = source.targets()[1]
        weights = np.ones(state.n_rows) if weights is None else weights.copy()
        weights[tested] = 0.0
        source = source.with_weights(weights)
    return state.prepared.fit(source)


def _errors(
    source: Source, test: Source | None, state: Checkpoint, model: Any, settings: FitSettings
) -> tuple[dict[str, float], int]:
    """Errors on rows that were not learned, beside those of simple models of a sample."""
    task = state.facts["task"]
    if test is not None:
        rows = test.sample(MOST_TEST_ROWS, settings.seed)
    else:
        tested = test_rows(state.n_rows, settings)
        if tested.size == 0:
            return {}, 0
        rows = source.take(tested)
    if rows.y is None:
        raise DataError("The test rows have no target.")
    errors = {"model": error_of(model.predict(rows.X), rows.y, task)[0]}
    numbers = sampled_rows(state.n_rows, state.facts["n_sample"], settings.seed)
    sample = source.take(np.setdiff1d(numbers, [] if test is not None else tested))
    fitted = thawed(model.feature_map_)
    prepared = [
        fitted.prepared_rows(part.X) if source.is_table else part.X for part in (sample, rows)
    ]
    for name, other in (("linear", linear(task)), ("trivial", trivial(task))):
        dense = isinstance(prepared[0], np.ndarray)
        if name == "linear" and not (dense and prepared[0].shape[1] <= MOST_COLUMNS_OF_LINEAR):
            continue
        other.fit(prepared[0], sample.y)
        errors[name] = error_of(other.predict(prepared[1]), rows.y, task)[0]
    return errors, rows.n_rows


def _task_of(y: NDArray[Any], settings: FitSettings) -> tuple[str, str]:
    if settings.task is not None:
        return settings.task, "as told"
    task = likely_task(y)
    if y.ndim == 2:
        return task, "there are several targets"
    if y.dtype.kind in "OUSb":
        return task, "the target has words or yes and no"
    n_values = np.unique(y).size
    return task, f"a sample of the target has {n_values} different numbers"


def _check_targets(y: NDArray[Any], task: str) -> None:
    if task == "regression" and y.dtype.kind in "OUS":
        raise DataError("The target has words, so it has classes: it cannot be a regression.")
    if task == "classification" and y.ndim == 2:
        raise DataError("Several targets can be numbers only: fit a model for each of them.")
    if task == "classification" and np.unique(y).size < 2:
        raise DataError(f"All rows of a sample have the same target, {y[0]!r}.")


def _choice(feature_map: Any) -> str:
    fitted = thawed(feature_map)
    inner = getattr(fitted, "map_", None) or fitted
    choice = getattr(inner, "choice_", None)
    return str(choice.sentence) if choice is not None else f"{type(inner).__name__}, as told."
