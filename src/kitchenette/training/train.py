"""Training: the only way in which rows become a model.

Every kind of fit has the same four stages, whether rows are in memory, in files or on a cluster.
`fit`, `partial_fit` and `merge` of the estimators are arrangements of these stages, and so are
learning from files, resuming, and learning on several machines:

1. ``prepare(estimator, sample, targets)`` fits the feature map and the coding of the targets on a
   sample of the rows. The result has learned no rows; it is a specification that can be pickled
   and stored.
2. ``partial(prepared, X, y)`` is the `Partial` of some rows, anywhere, of any number of them.
3. ``combine(a, b)`` is the partial of the rows of both. It does not matter in which order
   partials are combined, up to rounding errors.
4. ``finish(prepared, partial)`` is the fitted estimator.

None of them changes its arguments, so that a stage may be repeated, for example by a scheduler
that runs a task twice; who combines each partial once counts each row once.

>>> import numpy as np
>>> from kitchenette import Fastfood, KernelRegressor
>>> from kitchenette.training import combine, finish, partial, prepare
>>> X = np.random.default_rng(0).normal(size=(1000, 3))
>>> y = np.sin(X[:, 0]) + X[:, 1]
>>> estimator = KernelRegressor(Fastfood(n_components=64, random_state=0))
>>> prepared = prepare(estimator, X[::4], y[::4])
>>> here, there = partial(prepared, X[:400], y[:400]), partial(prepared, X[400:], y[400:])
>>> model = finish(prepared, combine(here, there))
>>> model.statistics_.n_rows, model.score(X, y) > 0.9
(1000, True)
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import _num_samples, check_is_fitted

from kitchenette.data.border import as_source
from kitchenette.data.drawing import hash_values
from kitchenette.data.observations import RULES
from kitchenette.data.rows import has_missing
from kitchenette.data.schema import DataError
from kitchenette.data.source import Block, RowsInMemory, Watch
from kitchenette.learning.gram import check_learning_memory
from kitchenette.learning.iterative import Earlier
from kitchenette.learning.least_squares import checked_weights
from kitchenette.learning.partial import Partial
from kitchenette.sketching.random import seed_from
from kitchenette.training.feature_maps import MapFitting, has_hashable_rows, takes_numbers
from kitchenette.training.iterative import TrainingSet, check_iterative_memory, train_iteratively
from kitchenette.training.model import Model
from kitchenette.training.prepared import (
    EncodedRows,
    Prepared,
    checked_first_rows,
    refuse_no_targets,
)
from kitchenette.training.problem import Problem

Estimator = TypeVar("Estimator", bound=Any)
Rows = Any  # a Source or RowsInMemory, which have the same methods


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """Where a caller of `train` takes part; none of it changes the model.

    Attributes
    ----------
    prepared : callable
        Called with the model before it has learned any row.
    checkpoint : callable
        Called after each block with the partial of all rows so far and their number.
    progress : callable
        Called with the number of rows that are learned, wherever they are.
    resumed : Model or None
        What an interrupted call had learned; its rows are not learned again.
    start : int
        The index of the first row that ``resumed`` has not learned.
    sample : Block or None
        The sample of the source, if somebody has drawn it before.
    earlier : Earlier or None
        The model with which an iterative solver begins.
    """

    prepared: Callable[[Model], None] = lambda model: None
    checkpoint: Callable[[Partial, int], None] = lambda partial, stop: None
    progress: Callable[[int], None] | None = None
    resumed: Model | None = None
    start: int = 0
    sample: Block | None = None
    earlier: Earlier | None = None


NO_HOOKS = Hooks()


def train(rows: Rows, problem: Any, hooks: Hooks = NO_HOOKS) -> Model:
    """The model of all rows of a source.

    Parameters
    ----------
    rows : Source or RowsInMemory
        Rows of any kind, from `kitchenette.data.border.as_source`.
    problem : Problem or Components
        What is to be learned, and by which map.
    hooks : Hooks, optional
        Where the caller takes part.

    Returns
    -------
    model : Model
        Its solution is computed when it is first needed.
    """
    encoded = None
    if hooks.resumed is None:
        prepared, encoded = prepare_rows(rows, problem, hooks.sample)
        model = Model(problem, prepared)
        hooks.prepared(model)
    else:
        model = hooks.resumed

    def one_pass() -> Model:
        if encoded is None:
            return model.with_partial(partial_of_source(model.prepared, rows, model.partial, hooks))
        title = problem.estimator if problem.verbose else None
        return model.with_partial(model.prepared.partial(encoded, title))

    if not problem.iterates(model.prepared.fitted.n_features_out_):
        return one_pass()
    prepared, training_set = in_many_passes(model.prepared, problem, rows, encoded, hooks.earlier)
    return train_iteratively(problem, prepared, training_set, one_pass)


# ---------------------------------------------------------------- before rows are learned


def prepare_rows(
    rows: Rows, problem: Any, sample: Block | None = None
) -> tuple[Prepared, EncodedRows | None]:
    """The fitted map and the target coding, and the rows encoded if they are in memory.

    Both are fitted on all rows in memory, or on a sample of the rows of other sources.
    """
    seed = seed_from(problem.random_state)
    fitting = MapFitting(problem.feature_map, seed, problem.task)
    whole = rows.whole()
    if whole is not None:
        given = whole
    else:
        given = rows.drawn(fitting.sampling_seed) if sample is None else sample
        if given.y is None and problem.task is not None:
            raise DataError("The source has no target: name the column to be predicted.")
    try:
        prepared, encoded = _prepared(rows, given, problem, fitting)
    except ValueError as error:
        raise rows.located(error) from error
    return prepared.with_names(rows), None if whole is None else encoded


def _prepared(
    rows: Rows, given: Block, problem: Any, fitting: MapFitting
) -> tuple[Prepared, EncodedRows]:
    """The same, of the block that is fitted on."""
    X, columns = checked_first_rows(problem.estimator, problem.feature_map, given.X)
    if problem.task is not None:
        refuse_no_targets(problem.estimator, given.y)
    coding, targets = problem.first_coding(given.y, fitting.seed)
    encoded = EncodedRows.of(X, targets, given.weight, coding, problem.class_weight)
    if not encoded.count:
        raise ValueError("All weights are zero: there is no row to learn from.")
    n_rows, n_targets = encoded.X.shape[0], coding.columns(encoded.targets[:1]).shape[1]

    def check(n_features: int) -> None:
        # Before the map is fitted, the precision of its features is not known.
        if problem.iterates(n_features):
            check_iterative_memory(n_rows, n_features, n_targets, problem.loss)
        if problem.tries_losses or not problem.iterates(n_features):
            n_sampled = problem.validation_rows
            check_learning_memory(n_features, np.float32, n_rows=n_rows, n_sampled=n_sampled)

    fitting, block = replace(fitting, check=check), encoded.block(given)
    drawn = hashes = None
    if problem.task is not None and has_hashable_rows(block.X):
        hashes = hash_values(block.X, block.y) if given.population is None else None
        drawn = fitting.drawn(block, hashes)
    everything = RowsInMemory(encoded.X) if given.population is None else rows
    feature_map, fitted = fitting.fitted(block, everything, drawn)
    problem.iterates(fitted.n_features_out_)
    prepared = Prepared(
        estimator=problem.estimator,
        feature_map=feature_map,
        fitted=fitted,
        coding=coding,
        seed=fitting.seed,
        n_columns=columns.count,
        names=columns.names,
        observation_rule=RULES[0] if drawn is None else drawn.observation_rule(given.population),
        validation_rows=problem.validation_rows,
        class_weight=problem.class_weight,
    )
    # The rows of most maps are those that were hashed; others are converted by the map first.
    X = encoded.X
    if takes_numbers(fitted) and (isinstance(X, np.ndarray) or sp.issparse(X)):
        encoded = encoded if has_missing(X) else replace(encoded, hashes=hashes)
    return prepared, encoded


# ---------------------------------------------------------------- one pass, or many


def partial_of_source(
    prepared: Prepared, rows: Rows, before: Partial | None = None, hooks: Hooks = NO_HOOKS
) -> Partial:
    """The partial of all rows of a source, and of those ``before`` if hooks say that some are."""
    rows = rows.read_as(prepared.known_columns())
    watch = Watch(hooks.checkpoint, hooks.progress, before, hooks.start)
    total: Partial | None = rows.watched(PartialOf(prepared), watch)
    if total is None or total.n_rows == 0:
        raise DataError("The source has no row of positive weight to learn from.")
    return total


@dataclass(frozen=True)
class PartialOf:
    """The partial of some rows, as a `kitchenette.data.reduction.Reduction`."""

    prepared: Prepared  # the map, the coding and the columns

    @property
    def n_bytes(self) -> int:
        """About the size of a partial: a triangle of the Gram matrix, and a sample of features."""
        n_features = int(self.prepared.fitted.n_features_out_)
        return 4 * n_features**2 + 8 * n_features * self.prepared.validation_rows

    def of(self, block: Block) -> Partial:
        """The partial of a block; there may be no rows, and new labels."""
        if _num_samples(block.X) == 0:
            return self.prepared.empty()
        rows = self.prepared.encoded(block, extend=True)
        return self.prepared.partial(rows) if rows.count else self.prepared.empty(rows.coding)

    def combined(self, a: Partial, b: Partial) -> Partial:
        return a.combined(b)


def in_many_passes(
    prepared: Prepared,
    problem: Problem,
    rows: Rows,
    encoded: EncodedRows | None,
    earlier: Earlier | None,
) -> tuple[Prepared, TrainingSet]:
    """The training set of a solver that takes many passes, and the coding of all its labels."""
    if encoded is not None:
        in_memory = RowsInMemory(encoded.X)
        return prepared, TrainingSet(in_memory, encoded.targets, encoded.weights, earlier)
    y, weights = rows.targets()
    try:
        coding, targets = prepared.coding.encoded(y, extend=True)
    except ValueError as error:
        raise rows.located(error) from error
    n_rows, n_targets = targets.shape[0], coding.columns(targets[:1]).shape[1]
    check_iterative_memory(n_rows, prepared.fitted.n_features_out_, n_targets, problem.loss)
    weights = None if weights is None else checked_weights(weights, n_rows)
    weights = coding.weighted(targets, weights, prepared.class_weight)
    return replace(prepared, coding=coding), TrainingSet(rows, targets, weights, earlier)


# ---------------------------------------------------------------- the stages one by one


def prepare(
    estimator: Estimator,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    classes: ArrayLike | None = None,
) -> Estimator:
    """Fit the feature map and the coding of the targets on a sample, and learn no rows.

    Parameters
    ----------
    estimator : KernelRegressor, KernelClassifier or KernelPCA
        An estimator that learns in one pass; it is not changed.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        A sample of the rows.
    y : array-like of shape (n_rows,) or (n_rows, n_targets), optional
        Their targets; `KernelPCA` needs none.
    sample_weight : array-like of shape (n_rows,), optional
        Their weights.
    classes : array-like of shape (n_classes,), optional
        Labels that are known beforehand, for a classifier, in addition to those of the sample.
        Labels that appear only later are added when they do.

    Returns
    -------
    prepared : estimator
        It can be pickled, stored by `kitchenette.save`, and passed to `partial` and `finish`. Its
        own `partial_fit` learns with the map of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelClassifier
    >>> from kitchenette.training import finish, partial, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> labels = np.array(["near", "far"])[(np.square(X).sum(axis=1) > 1).astype(int)]
    >>> estimator = KernelClassifier(Fastfood(n_components=64, random_state=0))
    >>> prepared = prepare(estimator, X[:50], labels[:50])
    >>> finish(prepared, partial(prepared, X, labels)).classes_.tolist()
    ['far', 'near']
    """
    prepared = clone(estimator)
    problem = prepared.problem_in_one_pass("stages", classes)
    rows = as_source(X, y if problem.task else None, sample_weight)
    prepared.model_ = Model(problem, prepare_rows(rows, problem)[0])
    return prepared


def partial(prepared: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Partial:
    """The partial of some rows.

    Parameters
    ----------
    prepared : estimator
        The result of `prepare`, or a fitted estimator, whose rows are not counted.
    X, y, sample_weight
        Rows, targets and weights, as for `fit`. There may be no rows at all, and a classifier may
        meet labels that it does not know.

    Returns
    -------
    partial : Partial

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.training import partial, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> estimator = KernelRegressor(Fastfood(n_components=64, random_state=0))
    >>> prepared = prepare(estimator, X[:50], X[:50, 0])
    >>> partial(prepared, X[:100], X[:100, 0]).n_rows
    100
    """
    check_is_fitted(prepared, "model_")
    rows, fixed = as_source(X, y, sample_weight), prepared.model_.prepared
    block = rows.whole()
    return partial_of_source(fixed, rows) if block is None else PartialOf(fixed).of(block)


def combine(a: Partial, b: Partial) -> Partial:
    """The partial of the rows of both; neither is changed.

    Parameters
    ----------
    a, b : Partial
        Partials of different rows by the same prepared estimator.

    Returns
    -------
    partial : Partial

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import KernelPCA
    >>> from kitchenette.training import combine, partial, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> prepared = prepare(KernelPCA(random_state=0), X[:50])
    >>> combine(partial(prepared, X[:100]), partial(prepared, X[100:])).n_rows
    300
    """
    return a.combined(b)


def finish(prepared: Estimator, partial: Partial, *, solve: bool = True) -> Estimator:
    """The estimator that has learned the rows of a partial.

    Parameters
    ----------
    prepared : estimator
        The result of `prepare`; it is not changed.
    partial : Partial
        The rows.
    solve : bool, default=True
        Whether to compute the weights at once, instead of when they are needed.

    Returns
    -------
    fitted : estimator

    See Also
    --------
    partial_of : The inverse.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.training import finish, partial, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> estimator = KernelRegressor(Fastfood(n_components=64, random_state=0))
    >>> prepared = prepare(estimator, X[:50], X[:50, 0])
    >>> finish(prepared, partial(prepared, X, X[:, 0])).predict(X[:3]).shape
    (3,)
    """
    own = prepared.model_.prepared
    if (partial.estimator, partial.origin) != (own.estimator, own.origin()):
        raise ValueError(
            "This partial was not made by this prepared estimator: their features differ."
        )
    if partial.n_rows == 0:
        raise ValueError("There is no row to learn from: the partial has none of positive weight.")
    finished = copy(prepared)
    finished.model_ = prepared.model_.with_partial(partial)
    return finished.solve() if solve else finished


def partial_of(fitted: Any) -> Partial:
    """The partial of all rows that an estimator has learned.

    Parameters
    ----------
    fitted : estimator
        An estimator with statistics, for example one that was loaded from a file.

    Returns
    -------
    partial : Partial
        To be combined with those that `partial` gives for this estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.training import combine, finish, partial, partial_of
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X[:100], X[:100, 0])
    >>> more = combine(partial_of(model), partial(model, X[100:], X[100:, 0]))
    >>> finish(model, more).statistics_.n_rows, model.statistics_.n_rows
    (300, 100)
    """
    return fitted.learned_partial()
