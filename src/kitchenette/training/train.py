"""Training: the only way in which rows become a model.

Every kind of fit has the same steps, whether rows are in memory, in files or on a cluster:

1. `prepare_rows` or `prepare_source`: fit the map and the target coding on a sample of the rows.
2. `partial_of_rows` or `partial_of_source`: statistics and a sample of all rows, in one pass;
   `Partial.combined` adds those of different rows.
3. `Model`: the problem, what was prepared, and the partial. It computes its solution (penalty,
   weights, calibration) when that is first needed.

A solver that needs many passes takes the place of the last two steps (`train_iteratively`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
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
from kitchenette.training.prepared import Prepared
from kitchenette.training.rows import (
    checked_first_rows,
    encoded_rows,
    refuse_no_targets,
    with_weights,
)

Array = NDArray[np.float64]


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
