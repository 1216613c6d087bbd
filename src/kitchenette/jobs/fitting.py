"""`fit_rows`: from a source of rows to a model file, with checkpoints and an error of new rows."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from kitchenette.data import Block, DataError, Source
from kitchenette.data.schema import KnownColumn
from kitchenette.estimators.base import KernelEstimator
from kitchenette.files import save
from kitchenette.files.container import remove_leftovers
from kitchenette.jobs.checkpoint import Checkpoint, CheckpointWriter, checkpoint_path
from kitchenette.jobs.held_out import (
    errors_on_test_rows,
    errors_on_validation_rows,
    rows_to_learn,
    tested_rows,
)
from kitchenette.jobs.outputs import refuse_input
from kitchenette.jobs.settings import FitSettings, limits_of_map, refuse_too_much
from kitchenette.maps.protocol import thawed
from kitchenette.maps.table_map import TableMap
from kitchenette.resources import resident
from kitchenette.selection.settings import effort_of
from kitchenette.selection.targets import likely_task
from kitchenette.training import Hooks, Model, Partial, train
from kitchenette.training.train import prepare_rows

Progress = Callable[[str, int, int], None]  # what is done, the rows that are done, all rows


@dataclass(frozen=True)
class Fitted:
    """What came of a fit.

    Attributes
    ----------
    model : KernelEstimator
        The model, which is in the file as well.
    out : str
        The model file.
    task, why_task : str
        "classification" or "regression", and how that was decided.
    n_rows, n_columns : int
        The numbers of training rows and of columns.
    n_test_rows, n_validation_rows : int
        The number of rows on which errors were measured: test rows, or validation rows if there
        are no test rows.
    column_summary : dict
        How each column of a table is used; empty for arrays.
    n_components : int
        The number of features.
    choice : str
        What was chosen, and why.
    validation_score : float or None
        The ``validation_score_`` of the model: accuracy or R^2 of models without the validation
        rows on these rows.
    errors : dict
        The error of the model, of a linear and of a trivial model on test rows; or on validation
        rows, each predicted by models without it. The latter two learn from a sample.
    not_beaten : list of str
        Which of the linear and the trivial model have errors that this model does not improve by
        more than chance: two standard errors of the difference on the same rows.
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
    >>> from kitchenette.jobs import FitSettings, fit_rows
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> rows, out = source(X, target=np.sin(X[:, 0])), Path(tempfile.mkdtemp(), "model.safetensors")
    >>> fitted = fit_rows(rows, out, FitSettings(components=64))
    >>> fitted.task, fitted.n_rows, fitted.errors["model"] < fitted.errors["linear"]
    ('regression', 500, True)
    """

    model: KernelEstimator = field(repr=False)
    out: str
    task: str
    why_task: str
    n_rows: int
    n_columns: int
    n_test_rows: int
    n_validation_rows: int
    column_summary: dict[str, str]
    n_components: int
    choice: str
    validation_score: float | None
    errors: dict[str, float]
    not_beaten: list[str]
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
        return {name: value for name, value in vars(self).items() if name != "model"}


def fit_rows(
    source: Source,
    out: str | os.PathLike[str],
    settings: FitSettings | None = None,
    *,
    test: Source | None = None,
    like: KernelEstimator | None = None,
    resume: bool = False,
    statistics: bool = True,
    checkpoint_every: float | None = None,
    progress: Progress | None = None,
) -> Fitted:
    """Learn all rows of a source and write the model to a file.

    The model is the one that ``fit`` of the estimator gives: the feature map is chosen on a sample,
    and the rows are learned in one pass, in blocks. From
    time to time a checkpoint is written beside the model, which takes at most a twentieth of the
    time. A fit that was killed and is resumed gives the same bits as one that was not.

    Parameters
    ----------
    source : Source
        The rows, with targets. Those of a cluster (`kitchenette.backends.scheduled`) are learned
        by its workers, without checkpoints.
    out : str or path-like
        The model file. An existing one is replaced at the end, in one step.
    settings : FitSettings, optional
        How to learn.
    test : Source, optional
        Other rows to measure the error on. Without them, and without a share of the rows for
        a test (``settings.test``), all rows are learned, and the error is that of validation rows.
    like : KernelClassifier or KernelRegressor, optional
        A fitted model whose map and columns are taken, instead of choosing a map, so that both
        models can be merged.
    resume : bool, default=False
        Whether to continue from the checkpoint, if there is one. It must be of the same source and
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
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> rows = source(X, target=X[:, 0] * X[:, 1] > 0)
    >>> out = Path(tempfile.mkdtemp(), "model.safetensors")
    >>> fitted = fit_rows(rows, out, FitSettings(components=128))
    >>> fitted.errors["model"] < 0.1 < fitted.errors["linear"]
    True
    >>> kitchenette.load(out).predict([[1.0, 2.0]])
    array([ True])
    """
    start, out = perf_counter(), Path(out)
    settings = FitSettings() if settings is None else settings
    settings.check()
    if test is not None and settings.test:
        raise ValueError("Give rows to test on, or a share of the rows (test), but not both.")
    for path in (out, checkpoint_path(out)):
        refuse_input(path, [*source.paths, *(() if test is None else test.paths)])
    if like is not None:
        _check_targets_of(like, source)
        source = like.columns_of(source)
    if test is not None:
        columns = {column.name: KnownColumn(column.kind) for column in source.schema}
        test = test.read_as(columns if like is None else like.known_columns())
        test = test.with_width(len(source.features))
    check_folder(out)
    show = progress or (lambda what, done, total: None)
    writer = CheckpointWriter(checkpoint_path(out), checkpoint_every)
    remove_leftovers(out)
    inputs = source.fingerprint()
    tested = tested_rows(source, test, settings)
    learned = rows_to_learn(source, settings)
    state = writer.loaded(limits_of(source, settings, like)) if resume else None
    sample = None
    if state is not None:
        state.check_belongs(inputs, described(settings, like), writer.path)
    else:
        show("choosing a map", 0, source.n_rows or 0)
        state, sample = begun(source, learned, settings, inputs, like)
    resumed_at = state.stop
    run = Run(state, writer, show)
    try:
        model: Any = run.trained(learned, sample)
        model.remember_names(source)
        save(model, out, statistics=statistics)
    except KeyboardInterrupt:
        if state.facts["iterates"]:
            raise
        raise run.interrupted() from None
    writer.remove()
    show("testing", state.n_rows, state.n_rows)
    facts = state.facts
    sample = learned.drawn(settings.seed) if sample is None else sample
    if tested is not None:
        errors = errors_on_test_rows(model, sample, tested)
    else:
        errors = errors_on_validation_rows(model, sample)
    n_held_back = tested.n_rows if tested is not None and test is None else 0
    seconds = perf_counter() - start
    return Fitted(
        model,
        str(out),
        facts["task"],
        facts["why_task"],
        state.n_rows - n_held_back,
        len(source.features),
        0 if tested is None else errors.n_rows,
        errors.n_rows if tested is None else 0,
        column_summary(model),
        int(thawed(model.feature_map_).n_features_out_),
        _choice(model.feature_map_),
        getattr(model, "validation_score_", None),
        errors.by_model,
        errors.not_beaten,
        ERROR_NAMES[facts["task"]],
        float(model.alpha_),
        model.loss_,
        model.solver_,
        seconds,
        (state.n_rows - resumed_at) / seconds,
        resident("VmHWM"),
        os.path.getsize(out),
        resumed_at,
        writer.count,
        writer.seconds,
    )


ERROR_NAMES = {
    "classification": "share of wrong predictions",
    "regression": "root mean square error / standard deviation",
}


def check_folder(out: Path) -> None:
    """Refuse a file whose folder does not exist, before the work is done."""
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(f"Cannot save to {out}: there is no folder {out.parent}.")


def described(settings: FitSettings, like: KernelEstimator | None) -> dict[str, Any]:
    """All that a fit depends on apart from its rows, as JSON."""
    return {**settings.to_json(), "like": None if like is None else like.prepared.origin()}


def limits_of(
    source: Source, settings: FitSettings, like: KernelEstimator | None
) -> dict[str, float]:
    """The limits of `load` for a checkpoint of this fit: no map that it can choose exceeds them."""
    if like is not None:
        return limits_of_map(like.feature_map_)
    per_column = source.rules.most_columns if source.is_table else 1
    return settings.limits(per_column * len(source.features))


def begun(
    source: Source,
    learned: Source,
    settings: FitSettings,
    inputs: str,
    like: KernelEstimator | None,
) -> tuple[Checkpoint, Block]:
    """The state of a fit that has chosen its map and learned no rows, and its sample.

    In ``learned``, rows that are held back for a test have no weight.
    """
    sample, n_rows = learned.drawn(settings.seed), learned.count()
    y = sample.of_positive_weight().y
    if y is None:
        raise DataError("Name the column to be predicted, as target.")
    if y.shape[0] == 0:
        raise DataError(f"None of {n_rows} rows is left to learn from.")
    task, why = _task_of(y, settings, like)
    _check_targets(y, task)
    settings.check_task(task)
    if like is None:
        size = settings.n_components(n_rows)
        feature_map = settings.feature_map(task, size)
        n_components = effort_of(settings.effort).most if size == "auto" else int(size)
    else:
        feature_map = FrozenEstimator(thawed(like.feature_map_))
        n_components = int(thawed(feature_map).n_features_out_)
    refuse_too_much(n_components)
    prepared: Any = settings.estimator(task, feature_map)
    iterates = prepared.problem().iterates(n_components)
    if not iterates:
        classes = None if like is None else getattr(like, "classes_", None)
        problem = prepared.problem_in_one_pass("fit", classes)
        prepared.model_ = Model(problem, prepare_rows(learned, problem, sample)[0])
        prepared.remember_names(source)
    facts = {"task": task, "why_task": why, "iterates": iterates}
    return Checkpoint(inputs, described(settings, like), prepared, facts, n_rows), sample


def _check_targets_of(like: KernelEstimator, source: Source) -> None:
    """Refuse other targets than those of a model, if it has their names."""
    theirs = [str(name) for name in getattr(like, "target_names_", ())]
    if theirs and source.target_names and theirs != source.target_names:
        raise DataError(
            f"The model given as like predicts {', '.join(theirs)}, not "
            f"{', '.join(source.target_names)}."
        )


class Run:
    """A fit from its state to the model, with checkpoints between blocks of rows.

    Parameters
    ----------
    state : Checkpoint
        The state to begin with.
    writer : CheckpointWriter
        Stores a state now and then.
    show : callable
        Shows progress.
    """

    def __init__(self, state: Checkpoint, writer: CheckpointWriter, show: Progress):
        self._state, self._writer, self._show = state, writer, show

    def trained(self, rows: Source, sample: Block | None) -> Any:
        """The estimator after all rows; a fresh state has a sample of them."""
        state, estimator = self._state, copy(self._state.prepared)
        if state.facts["iterates"]:
            estimator.model_ = train(rows, estimator.checked_problem(), Hooks(sample=sample))
            return estimator.solve()
        begun = estimator.model_
        hooks = Hooks(
            checkpoint=self._after,
            progress=lambda stop: self._show("learning", stop, state.n_rows),
            resumed=begun if state.partial is None else begun.with_partial(state.partial),
            start=state.stop,
        )
        estimator.model_ = train(rows, begun.problem, hooks)
        if self._state.stop != state.n_rows:
            raise DataError(
                f"There were {state.n_rows:,} rows when the fit began, but {self._state.stop:,} "
                "could be read: the input has changed meanwhile."
            )
        self._show("solving", state.n_rows, state.n_rows)
        return estimator.solve()

    def _after(self, partial: Partial, stop: int) -> None:
        self._state = replace(self._state, partial=partial, stop=stop)
        if stop < self._state.n_rows:
            self._writer.maybe(self._state)

    def interrupted(self) -> KeyboardInterrupt:
        """Store a checkpoint, and say where it is."""
        state, writer = self._state, self._writer
        writer.store(state)
        return KeyboardInterrupt(
            f"Interrupted after {state.stop:,} of {state.n_rows:,} rows, which are kept in "
            f"{writer.path}: run the same command with --resume to continue."
        )


def _task_of(
    y: NDArray[Any], settings: FitSettings, like: KernelEstimator | None
) -> tuple[str, str]:
    if like is not None:
        if settings.task not in (None, like.task):
            raise ValueError(f"The model given as like is for {like.task}, not {settings.task}.")
        return str(like.task), "of the model given as like"
    if settings.task is not None:
        return settings.task, "as given"
    task = likely_task(y)
    if y.ndim == 2:
        return task, "there are several targets"
    if y.dtype.kind in "OUSb":
        return task, "the target has strings or booleans"
    n_values = np.unique(y).size
    return task, f"a sample of the target has {n_values} different numbers"


def _check_targets(y: NDArray[Any], task: str) -> None:
    words = y.dtype.kind in "OUS"
    if y.ndim == 2 and (words or task == "classification"):
        raise DataError("Several targets can be numbers only: fit a model for each of them.")
    if task == "regression":
        if words:
            raise DataError("The target has strings, so it has classes: it cannot be a regression.")
        return
    if np.unique(y).size < 2:
        raise DataError(f"All rows of a sample have the same target, {y.tolist()[0]!r}.")
    fractions = y[y != np.round(y)] if y.dtype.kind == "f" else y[:0]
    if fractions.size:
        raise DataError(
            f"The target has numbers such as {fractions[0]:g}, so it is a quantity: it cannot be "
            "a classification."
        )


def column_summary(model: Any) -> dict[str, str]:
    """How a model uses each column of its table; empty for arrays."""
    fitted = thawed(model.feature_map_)
    return fitted.column_summary() if isinstance(fitted, TableMap) else {}


def _choice(feature_map: Any) -> str:
    fitted = thawed(feature_map)
    inner = getattr(fitted, "map_", None) or fitted
    choice = getattr(inner, "choice_", None)
    return str(choice.sentence) if choice is not None else f"{type(inner).__name__}, as given."
