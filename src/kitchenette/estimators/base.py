"""What all estimators share: one immutable model, and what can be done with it."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from kitchenette.data.collections import as_rows
from kitchenette.data.schema import DataError, KnownColumn
from kitchenette.data.source import Source
from kitchenette.files.budget import Budget
from kitchenette.files.fields import Shape, checked_state, validate
from kitchenette.files.registry import constructed, stored_parameters
from kitchenette.kernels import Kernel
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.linear_model import LinearFunction
from kitchenette.learning.partial import Partial
from kitchenette.learning.row_sample import RowSample
from kitchenette.learning.target_coding import NoTargets
from kitchenette.learning.warm_start import Earlier
from kitchenette.maps.protocol import FittedMap, is_frozen, map_difference, thawed
from kitchenette.parameters import ValueParameters, shallow_copy
from kitchenette.sketching.random import seed_from
from kitchenette.training.feature_maps import fills_missing
from kitchenette.training.model import Model
from kitchenette.training.prepared import Prepared
from kitchenette.training.rows import checked_rows, encoded_rows
from kitchenette.training.train import (
    Start,
    columns_of,
    known_columns,
    partial_of_rows,
    partial_of_source,
    prepare_rows,
    prepare_source,
    refuse_targets_beside_source,
    train,
)

Array = NDArray[np.float64]


def of_model(get: Callable[[Model], Any], doc: str) -> property:
    """A read-only attribute of an estimator: a value of its model, if it has one."""

    def read(self: FeatureEstimator) -> Any:
        found = None if "model_" not in vars(self) else get(self.model_)
        if found is None:
            raise AttributeError(f"This {type(self).__name__} has no such attribute.")
        return found

    return property(read, doc=doc)


class FeatureEstimator(ValueParameters, ABC):
    """An estimator on the features of a map.

    All that was learned is in ``model_``, a value that is replaced in a single step; other
    attributes read from it. So other threads and interrupts see an estimator before a change or
    after it.
    """

    feature_map: Any
    random_state: Any
    model_: Model
    task: ClassVar[str | None] = None  # what is predicted
    solution_class: ClassVar[type[LinearFunction]]
    default_map: ClassVar[str]  # the parameter that stands for the default map
    map_keyword: ClassVar[str] = ""  # what is written before a map in the call of the class
    # What a model without statistics can do, and what it cannot, for an error message.
    abilities: ClassVar[tuple[str, str]]

    feature_map_ = of_model(lambda model: model.prepared.feature_map, "The fitted feature map.")
    seed_ = of_model(lambda model: model.prepared.seed, "The seed that was used.")
    n_features_in_ = of_model(
        lambda model: model.prepared.n_columns, "The number of columns of the data."
    )
    feature_names_in_ = of_model(
        lambda model: model.prepared.names, "The names of the columns, if there are any."
    )

    @property
    def statistics_(self) -> LeastSquares | None:
        """The statistics of all rows; None if only predictions are possible."""
        if "model_" not in vars(self) or not self.model_.has_rows:
            raise AttributeError(f"This {type(self).__name__} has no statistics: it is not fitted.")
        return None if self.model_.partial is None else self.model_.partial.statistics

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self) and self.model_.has_rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        feature_map = self._unfitted_map(0)
        if hasattr(feature_map, "transform") and not isinstance(feature_map, type):
            tags.input_tags = get_tags(feature_map).input_tags
            if fills_missing(feature_map):
                tags.input_tags.allow_nan = True  # they are filled
        return tags

    # ------------------------------------------------------------ parameters

    @abstractmethod
    def _unfitted_map(self, seed: int) -> Any:
        """The map as given, or the default map with this seed."""

    @abstractmethod
    def problem(self) -> Any:
        """The problem that the parameters describe."""

    def checked_problem(self) -> Any:
        """The problem that the parameters describe, if they make sense."""
        self._check_feature_map()
        problem = self.problem()
        problem.check()
        return problem

    def _check_feature_map(self) -> None:
        """Refuse a parameter that is not a map."""
        feature_map = self._unfitted_map(0)
        if isinstance(feature_map, Kernel):
            raise ValueError(
                f"feature_map must be a feature map, not a kernel: write {type(self).__name__}("
                f"{self.map_keyword}Fastfood({feature_map!r})), or another map of this kernel."
            )
        if isinstance(feature_map, type):
            raise ValueError(
                "feature_map must be an object, not a class: write "
                f"{feature_map.__name__}() with parentheses."
            )
        if not hasattr(feature_map, "transform"):
            raise ValueError(
                f"feature_map must be {self.default_map}, a feature map of kitchenette, or another "
                f"object with fit and transform that works row by row; got {feature_map!r}."
            )

    def _start(self, problem: Any, *, one_pass: bool, classes: Any = None) -> Start:
        """What this estimator brings to its first rows."""
        seed = seed_from(self.random_state)
        if one_pass and problem.task is not None:
            return Start(problem, self._unfitted_map(seed), seed, classes)
        return Start(problem, self._unfitted_map(seed), seed, classes, problem.iterates)

    # ------------------------------------------------------------ training

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the feature map and learn from all rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows, as the feature map takes them. A data frame may have strings, categories and
            missing values. A `kitchenette.data.Source` has its own targets and weights, and is
            read in blocks. Dask arrays and data frames are learned where they are.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            What is to be predicted: numbers, or for a classifier one label for each row, which are
            numbers, strings or anything that can be sorted. `KernelPCA` ignores it.
        sample_weight : array-like of shape (n_rows,), optional
            Nonnegative weights. A row of weight 2 counts as two rows; transformers of other
            packages are fitted without weights.

        Returns
        -------
        self : object
            The fitted model.
        """
        problem = self.checked_problem()
        X, y, sample_weight = as_rows(X, y if self.task else None, sample_weight)
        model = train(self._start(problem, one_pass=False), X, y, sample_weight, self._earlier())
        model.solution  # noqa: B018  # computed at once, so that errors are raised by `fit`
        self.model_ = model
        return self

    def _updated(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """`partial_fit`; ``classes`` are known before the first batch."""
        problem = self.checked_problem()
        X, y, sample_weight = as_rows(X, y if self.task else None, sample_weight)
        if "model_" not in vars(self):
            start = self._start(problem, one_pass=True, classes=classes)
            self.model_ = train(start, X, y, sample_weight)
            return self
        model = replace(self.model_, problem=problem, known=None)
        if self.model_.has_rows:
            self._partial()
        if isinstance(X, Source):
            refuse_targets_beside_source(y, sample_weight)
            more = partial_of_source(model.prepared, X)
            partial = more if model.partial is None else self._partial().combined(more)
            self.model_ = model.with_partial(partial)
            return self
        prepared = model.prepared
        coding, X, targets, weights = encoded_rows(prepared, prepared.coding, X, y, sample_weight)
        if weights is None or weights.any():
            self.model_ = model.with_rows(X, targets, weights, coding)
        return self

    def _merged(self, other: Any) -> Self:
        """`merge`."""
        mine = self._partial()
        if type(other) is not type(self):
            raise ValueError(
                f"{type(self).__name__} merges with models of its class; got "
                f"{type(other).__name__}."
            )
        theirs = other._partial()
        self.model_.prepared.check_mergeable(other.model_.prepared)
        if (mine.by_class is None) != (theirs.by_class is None):
            raise ValueError("Cannot merge models of which only one has class_weight='balanced'.")
        if mine is theirs:
            raise ValueError(
                "Cannot merge a model with itself: all its rows would count twice. Merge models of "
                "different rows."
            )
        if mine.n_rows > 0 and mine.equals(theirs):
            warnings.warn(
                f"Both models have the same statistics of {mine.n_rows:,} rows. If one is a copy "
                "of the other, these rows count twice from now on.",
                UserWarning,
                stacklevel=3,
            )
        combined = mine.combined(replace(theirs, origin=mine.origin))
        model = replace(self.model_, problem=self.checked_problem(), known=None)
        self.model_ = model.with_partial(combined)
        return self

    def solve(self) -> Self:
        """Compute the solution, unless that has been done.

        `fit` and the prediction methods call it. After `partial_fit`, `merge` and `downdate` it
        is deferred to the next prediction, because a solution costs as much as many rows. Call
        it to choose when the time is spent.

        Returns
        -------
        self : object
            This model.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0))
        >>> for part in (X[:200], X[200:]):
        ...     model = model.partial_fit(part, part[:, 0])
        >>> model.solve().alpha_ > 0
        True
        """
        self._current().solution  # noqa: B018
        return self

    def _earlier(self) -> Earlier | None:
        """The model before this fit, if it is to be the start of the next one."""
        return None

    # ------------------------------------------------------------ stages

    def prepare_on(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> None:
        """Fit the feature map and the coding of targets on a sample."""
        problem = self.checked_problem()
        why_not = problem.without_one_pass("stages")
        if why_not is not None:
            raise ValueError(why_not)
        start = self._start(problem, one_pass=True, classes=self._labels(classes))
        if isinstance(X, Source):
            refuse_targets_beside_source(y, sample_weight)
            prepared = prepare_source(start, X)
        else:
            prepared = prepare_rows(start, X, y if self.task else None, sample_weight)[0]
        self.model_ = Model(problem, prepared)

    def partial(self, X: Any, y: Any, sample_weight: Any) -> Partial:
        """The partial of some rows."""
        if isinstance(X, Source):
            refuse_targets_beside_source(y, sample_weight)
            return partial_of_source(self.prepared, X)
        return partial_of_rows(self.prepared, X, y, sample_weight)

    @property
    def prepared(self) -> Prepared:
        """The fitted map, the coding of targets and the columns."""
        if "model_" not in vars(self):
            check_is_fitted(self, "model_")
        return self.model_.prepared

    def learned_partial(self) -> Partial:
        """The partial of all rows so far."""
        return replace(self._partial(), origin=self.origin())

    def origin(self) -> str:
        """A digest of what was prepared, apart from the labels, which may be extended."""
        return self.prepared.origin()

    def _labels(self, classes: Any) -> Any:
        """Labels that are known before any rows, as an array."""
        if classes is not None:
            raise ValueError(f"{type(self).__name__} has no classes.")
        return None

    # ------------------------------------------------------------ the model

    def _current(self) -> Model:
        """The fitted model."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        return self.model_

    def _partial(self) -> Partial:
        """What is kept of the rows; an error if the model was saved without it."""
        model = self._current()
        if model.partial is None:
            can, cannot = self.abilities
            why = "saved without its statistics"
            if model.solver == "iterative":
                why = f"learned by an iterative solver (loss {model.loss!r}), without statistics"
            raise ValueError(f"This model was {why}: it {can}, but it cannot {cannot}.")
        return model.partial

    def _solution_or_error(self, name: str) -> Any:
        """The solution, if it has been computed, for an attribute of this name."""
        solution = self._current().solution_if_known
        if solution is None:
            raise AttributeError(
                f"{name} does not exist: rows were added or removed since this "
                f"{type(self).__name__} was solved. Call solve() first."
            )
        return solution

    def outputs(self, X: Any) -> tuple[Array, np.dtype[Any]]:
        """The linear function of rows in float64, and the precision of the features."""
        return outputs_of(self._current(), X)

    def known_columns(self) -> dict[str, KnownColumn]:
        """The columns of a fitted model that have names, and what it takes them for.

        Returns
        -------
        columns : dict
            For `kitchenette.data.Source.read_as`: the columns to predict from, and a target of
            strings.
        """
        return known_columns(self.prepared)

    def columns_of(self, source: Source) -> Source:
        """The rows of a source with the columns of the model alone, read as it has them.

        Parameters
        ----------
        source : Source
            Rows of named columns, or of as many as the model has.

        Returns
        -------
        source : Source
        """
        return columns_of(self.prepared, source)

    def for_inference(self) -> Self:
        """A copy for predictions only, without statistics and therefore far smaller.

        Returns
        -------
        model : object
            It cannot learn from more rows, merge, or return standard deviations.

        Examples
        --------
        >>> import pickle
        >>> import numpy as np
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X, X[:, 0])
        >>> small = model.for_inference()
        >>> bool(np.array_equal(small.predict(X), model.predict(X)))
        True
        >>> len(pickle.dumps(small)) < 0.1 * len(pickle.dumps(model))
        True
        """
        copied = shallow_copy(self)
        copied.model_ = self._current().for_inference()
        if is_frozen(copied.feature_map):
            copied.feature_map = copied.model_.prepared.feature_map
        elif copied.feature_map is not None:
            copied.feature_map = clone(copied.feature_map, safe=False)
        return copied

    # ------------------------------------------------------------ files

    def to_file(self) -> dict[str, Any]:
        """Parameters and fitted attributes, for a model file."""
        state: dict[str, Any] = {"parameters": stored_parameters(self)}
        if "model_" not in vars(self):
            return state
        model = self.model_
        prepared, fitted_map = model.prepared, model.prepared.feature_map
        current = thawed(fitted_map)
        if isinstance(current, FittedMap):
            # The map may have been fitted on more rows.
            replaced = map_difference(current, prepared.fitted) is not None
        else:
            # A pipeline is stored as the numbers that its steps consist of.
            replaced = not is_frozen(fitted_map) and hasattr(prepared.fitted, "to_file")
        fitted = {
            "feature_map_": prepared.fitted if replaced else fitted_map,
            "seed_": prepared.seed,
            "n_features_in_": prepared.n_columns,
            "feature_names_in_": prepared.names,
            "medians_": getattr(prepared.fitted, "medians_", None),
            "model": model.solution_if_known,
            **self.target_state(model),
        }
        if model.has_rows:
            fitted["statistics_"] = self.statistics_
            fitted["sample"] = None if model.partial is None else model.partial.sample
        optional = ("feature_names_in_", "medians_", "target_names_", "weight_name_")
        state["fitted"] = {
            name: value
            for name, value in fitted.items()
            if value is not None or name not in optional
        }
        return state

    def target_state(self, model: Model) -> dict[str, Any]:
        """What is stored of the targets."""
        return {}

    target_types: ClassVar[dict[str, Any]] = {}  # of `target_state`

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A model from the untrusted values of a model file."""
        state = checked_state(state, {"parameters": dict, "fitted": (dict, type(None))})
        made = constructed(cls, state["parameters"])
        problem = made.checked_problem()
        parameters = made.get_params(deep=False)
        seed_from(parameters.get("random_state"))
        if not isinstance(parameters.get("verbose", False), bool | int):
            raise ValueError(f"verbose must be True or False; got {parameters['verbose']!r:.80}.")
        if state["fitted"] is not None:
            made.model_ = made._restored(problem, state["fitted"])
        return made

    def _restored(self, problem: Any, fitted: dict[str, Any]) -> Model:
        """The model from the untrusted values of a model file."""
        values = checked_state(
            fitted,
            {
                "feature_map_": object,
                "statistics_": (LeastSquares, type(None)),
                "seed_": int,
                "n_features_in_": int,
                "feature_names_in_": (np.ndarray, type(None)),
                "medians_": Array | None,
                "sample": (RowSample, type(None)),
                "model": (self.solution_class, type(None)),
                **self.target_types,
            },
        )
        solution, statistics, names = (
            values[name] for name in ("model", "statistics_", "feature_names_in_")
        )
        if names is not None and names.shape != (values["n_features_in_"],):
            raise ValueError("feature_names_in_ must be as many as the columns.")
        feature_map = thawed(values["feature_map_"])
        if not isinstance(feature_map, FittedMap):
            raise ValueError("feature_map_ must be a feature map.")
        if (statistics is None and solution is None) != ("statistics_" not in fitted):
            raise ValueError("there are neither statistics nor weights.")
        for_inference: Any = feature_map.for_inference()
        if values["medians_"] is not None:
            for_inference.medians_ = values["medians_"]
        prepared = Prepared(
            estimator=type(self).__name__,
            feature_map=values["feature_map_"],
            fitted=for_inference,
            coding=self.restored_coding(problem, values),
            seed=values["seed_"],
            n_columns=values["n_features_in_"],
            names=names,
            validation_rows=problem.validation_rows,
            class_weight=problem.class_weight,
            **self.restored_names(values),
        )
        partial = None
        if statistics is not None:
            by_class = values.get("_by_class")
            partial = replace(
                prepared.empty(),
                n_rows=statistics.n_rows,
                settled=None if by_class is not None else statistics,
                by_class=by_class,
                sample=values["sample"],
            )
        self._check_restored(prepared, statistics, values["sample"], solution)
        validate(for_inference, {"medians_": Annotated[Array, Shape(prepared.n_columns)]})
        if partial is not None:
            partial.check()
        solver = values.get("solver_") or "onepass"
        loss, n_iter = values.get("loss_") or "squared", values.get("n_iter_") or 1
        return Model(problem, prepared, partial, solution, solver, loss, n_iter)

    def restored_coding(self, problem: Any, values: dict[str, Any]) -> Any:
        """The coding of targets from the untrusted values of a model file."""
        return problem.first_coding(None, None, 0)[0]

    def restored_names(self, values: dict[str, Any]) -> dict[str, Any]:
        """Names of columns and the rule of observations, from a model file."""
        return {}

    @staticmethod
    def _check_restored(
        prepared: Prepared, statistics: Any, sample: RowSample | None, solution: Any
    ) -> None:
        """Refuse values of a model file that do not belong together."""
        shapes = set()
        if statistics is not None:
            shapes.add((statistics.n_features, statistics.n_targets))
        if solution is not None and not isinstance(prepared.coding, NoTargets):
            shapes.add(solution.coef.shape)
        if sample is not None:
            shapes.add((sample.features.shape[1], sample.targets.shape[1]))
        if len(shapes) > 1:
            raise ValueError("statistics, sample and weights must have the same shape.")
        sizes = {prepared.fitted.n_features_out_, *(n_features for n_features, _ in shapes)}
        if solution is not None:
            sizes.add(solution.coef.shape[0])
        if len(sizes) > 1:
            raise ValueError("feature_map_ must have as many features as the statistics.")
        if getattr(prepared.fitted, "n_features_in_", 0) != prepared.n_columns:
            raise ValueError("feature_map_ must have as many columns as the model.")
        n_targets = next((n_targets for _, n_targets in shapes), None)
        prepared.coding.check(n_targets)


def outputs_of(model: Model, X: Any) -> tuple[Array, np.dtype[Any]]:
    """The linear function of rows as users pass them."""
    if not isinstance(X, Source):
        return model.outputs(checked_rows(model.prepared, X))
    blocks = columns_of(model.prepared, X).without_targets().blocks()
    found = [model.outputs(checked_rows(model.prepared, block.X)) for block in blocks]
    if not found:
        raise DataError("The source has no rows.")
    return np.concatenate([out for out, _ in found]), found[0][1]
