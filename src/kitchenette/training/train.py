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
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from kitchenette.data.csv_errors import NULLS
from kitchenette.data.observations import RULES
from kitchenette.data.schema import DataError, KnownColumn
from kitchenette.data.source import Block, Source
from kitchenette.learning.gram import check_learning_memory
from kitchenette.learning.iterative import Earlier
from kitchenette.learning.least_squares import checked_weights
from kitchenette.learning.partial import Partial
from kitchenette.maps.base import RowMap
from kitchenette.maps.table_map import TableMap
from kitchenette.training.feature_maps import MapFitting
from kitchenette.training.iterative import TrainingSet, check_iterative_memory, train_iteratively
from kitchenette.training.model import Model
from kitchenette.training.prepared import (
    Prepared,
    checked_first_rows,
    encoded_rows,
    refuse_no_targets,
    with_weights,
)

Array = NDArray[np.float64]
Estimator = TypeVar("Estimator", bound=Any)


@dataclass(frozen=True)
class Start:
    """What an estimator brings to its first rows.

    Attributes
    ----------
    problem : Problem or Components
        What is to be learned.
    feature_map : transformer
        The map, not fitted.
    seed : int
        The seed.
    classes : ndarray or None
        Labels that are known before any rows.
    iterates : callable
        Says for a number of features whether the solver takes many passes.
    """

    problem: Any
    feature_map: Any
    seed: int
    classes: NDArray[Any] | None = None
    iterates: Callable[[int], bool] = lambda n_features: False


def train(
    start: Start, X: Any, y: Any = None, sample_weight: Any = None, earlier: Earlier | None = None
) -> Model:
    """The model of all rows of an array, a frame or a source."""
    if isinstance(X, Source):
        refuse_targets_beside_source(y, sample_weight)
        return _train_source(start, X, earlier)
    prepared, X, targets, weights = prepare_rows(start, X, y, sample_weight)
    title = start.problem.estimator if start.problem.verbose else None

    def one_pass() -> Model:
        partial = prepared.partial(X, targets, weights, title=title)
        return Model(start.problem, prepared, partial)

    if not start.iterates(prepared.fitted.n_features_out_):
        return one_pass()
    rows = TrainingSet(X, targets, weights, earlier)
    return train_iteratively(start.problem, prepared, rows, one_pass)


def _train_source(start: Start, source: Source, earlier: Earlier | None) -> Model:
    prepared = prepare_source(start, source)

    def one_pass() -> Model:
        empty = Model(start.problem, prepared)
        return empty.with_partial(partial_of_source(prepared, source))

    if not start.iterates(prepared.fitted.n_features_out_):
        return one_pass()
    y, weights = source.targets()
    try:
        coding, targets = prepared.coding.with_labels_of(y).encoded(y)
    except ValueError as error:
        raise source.located(error) from error
    prepared, n_targets = replace(prepared, coding=coding), coding.columns(targets[:1]).shape[1]
    n_features = prepared.fitted.n_features_out_
    check_iterative_memory(targets.shape[0], n_features, n_targets, start.problem.loss)
    weights = None if weights is None else checked_weights(weights, targets.shape[0])
    weights = coding.weighted(targets, weights, prepared.class_weight)
    rows = TrainingSet(source, targets, weights, earlier)
    return train_iteratively(start.problem, prepared, rows, one_pass)


# ---------------------------------------------------------------- step 1


def prepare_rows(
    start: Start,
    X: Any,
    y: Any,
    sample_weight: Any,
    source: Source | None = None,
    sample: Block | None = None,
) -> tuple[Prepared, Any, NDArray[Any], Array | None]:
    """Fit the map and the target coding on rows, which are returned as the model takes them.

    If the rows are a ``sample`` of a ``source``, both are given.
    """
    problem = start.problem
    X, columns = checked_first_rows(problem.estimator, start.feature_map, X)
    if problem.task is not None:
        refuse_no_targets(problem.estimator, y)
    coding, targets = problem.first_coding(y, start.classes, start.seed)
    X, targets, weights = with_weights(X, targets, sample_weight, coding, problem.class_weight)

    def check(n_features: int) -> None:
        # Before the map is fitted, the precision of its features is not known.
        if not start.iterates(n_features):
            n_sampled = problem.validation_rows
            check_learning_memory(n_features, np.float32, n_rows=X.shape[0], n_sampled=n_sampled)
        else:
            n_targets = coding.columns(targets[:1]).shape[1]
            check_iterative_memory(X.shape[0], n_features, n_targets, problem.loss)

    fitting = MapFitting(start.feature_map, start.seed, problem.task, check)
    y, drawn, rule = coding.decoded(targets), None, RULES[0]
    if problem.task is not None:
        drawn = fitting.sampled(X, y, weights, sample)
        population = None if sample is None else sample.population
        rule = rule if drawn is None else drawn.observation_rule(population)
    feature_map, fitted = fitting.fitted(X, y, weights, source, sample, drawn)
    start.iterates(fitted.n_features_out_)
    prepared = Prepared(
        estimator=problem.estimator,
        feature_map=feature_map,
        fitted=fitted,
        coding=coding,
        seed=start.seed,
        n_columns=columns.count,
        names=columns.names,
        observation_rule=rule,
        validation_rows=problem.validation_rows,
        class_weight=problem.class_weight,
    )
    return prepared, X, targets, weights


def prepare_source(start: Start, source: Source) -> Prepared:
    """Fit the map and the target coding on a sample of a source."""
    fitting = MapFitting(start.feature_map, start.seed, start.problem.task)
    sample = source.drawn(fitting.sampling_seed)
    if sample.y is None and start.problem.task is not None:
        raise DataError("The source has no target: name the column to be predicted.")
    try:
        prepared = prepare_rows(start, sample.X, sample.y, sample.weight, source, sample)[0]
    except ValueError as error:
        raise source.located(error) from error
    return with_names(prepared, source)


def with_names(prepared: Prepared, source: Source) -> Prepared:
    """The same with the names of the target columns and of the column of weights of a source."""
    names = source.target_names
    return replace(
        prepared,
        target_names=np.array(names, dtype=object) if names else prepared.target_names,
        weight_name=source.weight if isinstance(source.weight, str) else prepared.weight_name,
    )


# ---------------------------------------------------------------- step 2


def partial_of_rows(
    prepared: Prepared, X: Any, y: Any = None, sample_weight: Any = None
) -> Partial:
    """The partial of some rows; there may be none, and new labels."""
    coding = prepared.coding.with_labels_of(y)
    if _num_samples(X) == 0:
        return prepared.empty(coding)
    coding, X, targets, weights = encoded_rows(prepared, coding, X, y, sample_weight)
    if weights is not None and not weights.any():
        return prepared.empty(coding)
    return prepared.partial(X, targets, weights, coding)


def partial_of_source(prepared: Prepared, source: Source) -> Partial:
    """The partial of all rows of a source."""
    source = source.read_as(known_columns(prepared))
    found: Partial | None = source.reduced(PartialOf(prepared))
    if found is None or found.n_rows == 0:
        raise DataError("The source has no row of positive weight to learn from.")
    return found


@dataclass(frozen=True)
class PartialOf:
    """The partial of the rows of a source, as a `kitchenette.data.reduction.Reduction`.

    Attributes
    ----------
    prepared : Prepared
        The map, the coding and the columns.
    """

    prepared: Prepared

    @property
    def n_bytes(self) -> int:
        """About the size of a partial: a triangle of the Gram matrix, and a sample of features."""
        n_features = int(self.prepared.fitted.n_features_out_)
        return 4 * n_features**2 + 8 * n_features * self.prepared.validation_rows

    def of(self, block: Any) -> Partial:
        return partial_of_rows(self.prepared, block.X, block.y, block.weight)

    def combined(self, a: Partial, b: Partial) -> Partial:
        return a.combined(b)


def refuse_targets_beside_source(y: Any, sample_weight: Any) -> None:
    """Refuse targets or weights that are passed with a source."""
    if y is not None or sample_weight is not None:
        raise ValueError(
            "A source has its own targets and weights: name them when it is made, and pass none."
        )


# ---------------------------------------------------------------- columns of sources


def known_columns(prepared: Prepared) -> dict[str, KnownColumn]:
    """The columns that have names, and what the model takes them for.

    They are those to predict from, and a target of strings.
    """
    # Transformers of other packages take columns of any kind.
    found = prepared.fitted.known_columns() if isinstance(prepared.fitted, RowMap) else {}
    classes, names = prepared.coding.classes, prepared.target_names
    if (
        names is not None
        and len(names) == 1
        and classes is not None
        and classes.dtype.kind in "OUS"
    ):
        texts = {label for label in classes.tolist() if isinstance(label, str)}
        found[str(names[0])] = KnownColumn("category", frozenset(NULLS & texts))
    return found


def columns_of(prepared: Prepared, source: Source) -> Source:
    """The rows of a source with the columns of the model alone, read as it has them."""
    if not source.is_table or prepared.names is None:
        return source
    source, fitted = source.read_as(known_columns(prepared)), prepared.fitted
    names = fitted.read_names if isinstance(fitted, TableMap) else prepared.names
    return source.with_columns([*map(str, names)])


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
    prepared.prepare_on(X, y, sample_weight, classes)
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
    found: Partial = prepared.partial(X, y, sample_weight)
    return found


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
    if partial.estimator != type(prepared).__name__ or partial.origin != prepared.origin():
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
