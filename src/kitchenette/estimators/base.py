"""What all estimators share: one immutable model, and what can be done with it."""

from __future__ import annotations

import warnings
from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kitchenette.data.border import as_source
from kitchenette.data.schema import DataError, KnownColumn
from kitchenette.data.source import Block, Source
from kitchenette.data.targets import array_of_targets
from kitchenette.estimators.predictor import Answer, Predictor
from kitchenette.files.budget import Budget
from kitchenette.files.fields import checked_state
from kitchenette.files.registry import constructed, stored_parameters
from kitchenette.kernels import Kernel
from kitchenette.learning.iterative import Earlier
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.partial import Partial
from kitchenette.maps.protocol import is_frozen
from kitchenette.parameters import (
    refuse_unknown_parameters,
    set_nested_parameters,
    shallow_copy,
)
from kitchenette.selection import AutoMap
from kitchenette.selection.importance import importance
from kitchenette.sketching.random import seed_from
from kitchenette.training.feature_maps import fills_missing
from kitchenette.training.model import Model
from kitchenette.training.prepared import Prepared
from kitchenette.training.problem import Problem, is_text
from kitchenette.training.train import Hooks, partial_of_source, train

Array = NDArray[np.float64]


def of_model(get: Callable[[Model], Any], doc: str) -> property:
    """A read-only attribute of an estimator: a value of its model, if it has one."""

    def read(self: KernelEstimator) -> Any:
        value = None if "model_" not in vars(self) else get(self.model_)
        if value is None:
            why = "has no such attribute" if "model_" in vars(self) else "is not fitted yet"
            raise AttributeError(f"This {type(self).__name__} {why}.")
        return value

    return property(read, doc=doc)


def of_solution(name: str, field: str, doc: str) -> property:
    """A read-only attribute: a field of the solution, which does not exist before `solve`."""

    def get(self: KernelEstimator) -> Any:
        value = getattr(self._solution_or_error(name), field)
        return self.model_.prepared.coding.shaped(value)

    return property(get, doc=doc)


def learns_in_one_pass(estimator: Any) -> bool:
    """Whether methods that need statistics exist; an AttributeError says why not.

    For `sklearn.utils.metaestimators.available_if`.
    """
    problem = estimator.problem()
    reason = problem.without_one_pass("partial_fit")
    if reason is not None:
        raise AttributeError(reason)
    return True


def has_targets(estimator: Any) -> bool:
    """Whether methods of regressors and classifiers exist, for `available_if`."""
    return estimator.task is not None


class KernelEstimator(BaseEstimator, ABC):
    """What all estimators share; the only class between them and those of scikit-learn.

    All that was learned is in ``model_``, a value that is replaced in a single step; other
    attributes read from it. So other threads and interrupts see an estimator before a change or
    after it.
    """

    feature_map: Any
    effort: str | float  # of those whose default map is chosen from data
    random_state: Any
    model_: Model
    task: ClassVar[str | None] = None  # what is predicted
    problem_class: ClassVar[Any] = Problem
    default_map: ClassVar[str] = "'auto'"  # the parameter that stands for the default map
    map_keyword: ClassVar[str] = ""  # what is written before a map in the call of the class
    # What a model without statistics can do, and what it cannot, for an error message.
    abilities: ClassVar[tuple[str, str]] = (
        "predicts",
        "learn from more rows, merge with others, or tell how sure a prediction is",
    )

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

    alpha_ = of_solution("alpha_", "alpha", "The penalty that was used.")
    # Not `coef_`: tools of scikit-learn take that for a number for each column of the rows.
    feature_weights_ = of_solution(
        "feature_weights_", "coef", "The weights of the random features."
    )
    intercept_ = of_solution("intercept_", "intercept", "The constants.")
    loss_ = of_model(lambda m: m.loss if m.minimizes_loss else None, "The loss that was minimized.")
    solver_ = of_model(lambda m: m.solver if m.minimizes_loss else None, "onepass or iterative.")
    n_iter_ = of_model(
        lambda m: m.n_iter if m.minimizes_loss else None, "The number of steps of the solver."
    )
    observation_rule_ = of_model(
        lambda m: m.prepared.observation_rule if m.problem.task else None,
        "What repeated rows and weights count for.",
    )
    target_names_ = of_model(
        lambda m: m.prepared.target_names, "The names of the columns to be predicted."
    )
    weight_name_ = of_model(lambda m: m.prepared.weight_name, "The name of the column of weights.")

    @property
    def log_marginal_likelihood_(self) -> float:
        """The log density of the targets."""
        value = self._solution_or_error("log_marginal_likelihood_").log_marginal_likelihood
        if np.isnan(value):
            raise AttributeError(
                "log_marginal_likelihood_ does not exist: an iterative solver computes it with "
                "alpha='evidence' only."
            )
        return float(value)

    @property
    def validation_score_(self) -> float:
        """The score of models without the validation rows on these rows."""
        score = self._solution_or_error("validation_score_").validation.score
        if score is None:
            raise AttributeError(
                "validation_score_ does not exist: there were no validation rows, or too few."
            )
        return float(score)

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self) and self.model_.has_rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        feature_map = self._unfitted_map()
        if hasattr(feature_map, "transform") and not isinstance(feature_map, type):
            tags.input_tags = get_tags(feature_map).input_tags
            if fills_missing(feature_map):
                tags.input_tags.allow_nan = True  # they are filled
        return tags

    # ------------------------------------------------------------ parameters

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        refuse_unknown_parameters(cls, kwargs)
        return super().__new__(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including nested ones such as ``feature_map__n_components``.

        Parameters
        ----------
        **params : dict
            Names and values. Nested objects are replaced by modified copies.

        Returns
        -------
        self : object
            This estimator.
        """
        return set_nested_parameters(self, params)

    def _unfitted_map(self) -> Any:
        """The map as given, or the default map."""
        if self.feature_map is None or is_text(self.feature_map, "auto"):
            return AutoMap(effort=self.effort, task=self.task)
        return self.feature_map

    def problem(self) -> Any:
        """The problem that the parameters describe."""
        fields = self.problem_class.__dataclass_fields__
        given: dict[str, Any] = {n: value for n, value in vars(self).items() if n in fields}
        given |= {"feature_map": self._unfitted_map(), "task": self.task}
        return self.problem_class(estimator=type(self).__name__, **given)

    def checked_problem(self) -> Any:
        """The problem that the parameters describe, if they make sense."""
        self._check_feature_map()
        problem = self.problem()
        problem.check()
        return problem

    def problem_in_one_pass(self, method: str, classes: Any = None) -> Any:
        """The same for a method that needs statistics; ``classes`` are known before any rows."""
        problem = self.checked_problem()
        reason = problem.without_one_pass(method)
        if reason is not None:
            raise ValueError(reason)
        classes = self._labels(classes)
        problem = problem.in_one_pass()
        return problem if classes is None else replace(problem, classes=classes)

    def _check_feature_map(self) -> None:
        """Refuse a parameter that is not a map."""
        feature_map = self._unfitted_map()
        if self.feature_map is feature_map and getattr(self, "effort", "balanced") != "balanced":
            raise ValueError(
                f"effort={self.effort!r} is for the default map: leave feature_map out, or write "
                f"AutoMap(effort={self.effort!r})."
            )
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

    # ------------------------------------------------------------ training

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the feature map and learn from all rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), path or Source
            Rows, as the feature map takes them. A data frame may have strings, categories and
            missing values. Files and a `kitchenette.data.Source`, which has its own targets and
            weights, are read in blocks. Dask arrays and data frames are learned where they are.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            What is to be predicted: numbers, or for a classifier one label for each row, which are
            numbers, strings or anything that can be sorted. Of files, the name of a column, or
            several. `KernelPCA` ignores it.
        sample_weight : array-like of shape (n_rows,), optional
            Nonnegative weights. A row of weight 2 counts as two rows; transformers of other
            packages are fitted without weights.

        Returns
        -------
        self : object
            The fitted model.
        """
        problem = self.checked_problem()
        rows = as_source(X, y if self.task else None, sample_weight)
        model = train(rows, problem, Hooks(earlier=self._earlier()))
        model.solution  # noqa: B018  # computed at once, so that errors are raised by `fit`
        self.model_ = model
        return self

    def _updated(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """`partial_fit`; ``classes`` are known before the first batch."""
        problem = self.problem_in_one_pass("partial_fit", classes)
        known = getattr(self, "model_", None)
        like = None if known is None else known.prepared
        rows = as_source(X, y if self.task else None, sample_weight, like=like)
        if known is None:
            self.model_ = train(rows, problem)
            return self
        before = self._partial() if self.model_.has_rows else None
        model, block = replace(self.model_, problem=problem, given_solution=None), rows.whole()
        if block is None:
            more = partial_of_source(model.prepared, rows)
            model = model.with_partial(more if before is None else before.combined(more))
        else:
            encoded = model.prepared.encoded(block)
            if not encoded.count:
                return self
            model = model.with_rows(encoded)
        self.model_ = model.with_rule(0 if before is None else before.n_rows)
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

    def remember_names(self, source: Source) -> None:
        """Keep the names of the columns of a source that are targets and weights, if there are any.

        Parameters
        ----------
        source : Source
            What the model learns from.
        """
        model = self.model_
        prepared = model.prepared.with_names(source)
        self.model_ = replace(model, prepared=prepared, given_solution=model.solution_if_known)

    def _earlier(self) -> Earlier | None:
        if not getattr(self, "warm_start", False) or "model_" not in vars(self):
            return None
        model = self.model_
        solution, prepared = model.solution_if_known, model.prepared
        if solution is None:
            return None
        coef = prepared.coding.reduced(solution.coef, model.loss)
        intercept = prepared.coding.reduced(solution.intercept[None], model.loss)[0]
        return Earlier(prepared.fitted, prepared.n_columns, coef, intercept, model.loss)

    @available_if(has_targets)
    def downdate(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were learned before, the inverse of `partial_fit`.

        Parameters
        ----------
        X, y, sample_weight
            The rows, targets and weights as they were learned. Others are refused where they are
            found out: by the sample of ``validation_rows`` distinct rows, which knows all rows if
            there are no more, and by the statistics (`LeastSquares.downdate`). Accuracy is
            lost if the removed rows outweigh the remaining ones.

        Returns
        -------
        self : object
            This model.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X, X[:, 0])
        >>> model.downdate(X[:100], X[:100, 0]).statistics_.n_rows
        400
        """
        self._partial()
        model = replace(self.model_, problem=self.checked_problem(), given_solution=None)
        block = as_source(X, y, sample_weight).whole()
        if block is None:
            raise ValueError("Rows are removed as arrays or data frames, not as a source.")
        self.model_ = model.without_rows(model.prepared.encoded(block))
        return self

    def merge(self, other: Any) -> Self:
        """Add the rows of another model, which is not changed.

        Parameters
        ----------
        other : object
            A fitted model of the same class with an equal feature map. To share a map that
            depends on data, fit it once and pass it to both models in a
            `sklearn.frozen.FrozenEstimator`. Its rows are other ones: the model itself is refused,
            and a copy of it gets a warning, because rows would count twice.

        Returns
        -------
        self : object
            This model, as if fitted on the rows of both, with its own parameters.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import Fastfood, KernelPCA
        >>> from kitchenette.kernels import Gaussian
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> feature_map = Fastfood(Gaussian(2.0), n_components=64, random_state=0)
        >>> here, there = (KernelPCA(2, feature_map).fit(part) for part in (X[:200], X[200:]))
        >>> here.merge(there).statistics_.n_rows
        500
        """
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
                stacklevel=2,
            )
        combined = mine.combined(replace(theirs, origin=mine.origin))
        prepared = self.model_.prepared
        if theirs.n_rows > mine.n_rows:
            prepared = replace(prepared, observation_rule=other.model_.prepared.observation_rule)
        model = replace(
            self.model_, problem=self.checked_problem(), prepared=prepared, given_solution=None
        ).with_partial(combined)
        self.model_ = model.with_rule(max(mine.n_rows, theirs.n_rows))
        return self

    @property
    def feature_importances_(self) -> Array:
        """The importance of each column; see `importance`."""
        if self.statistics_ is None:
            raise AttributeError(
                "feature_importances_ needs the statistics of one pass over the rows, which this "
                "model does not have. sklearn.inspection.permutation_importance needs none."
            )
        self._solution_or_error("feature_importances_")
        try:
            return self.importance()
        except ValueError as error:
            raise AttributeError(str(error)) from error

    @available_if(has_targets)
    def importance(self, X: Any = None) -> Array:
        """How much the predictions change with each column.

        The root mean square of the derivative of the prediction in the column, over all rows that
        the model has learned from, times the spread of the column, divided by their sum. It says
        what the model reacts to, at no cost; `sklearn.inspection.permutation_importance` says what
        its accuracy rests on, and needs many predictions.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns), optional
            Rows from which the spreads of the columns are computed. Without them, an `AutoMap`
            knows the spreads; for other maps, columns are compared in units of their length scales.

        Returns
        -------
        importances : ndarray of shape (n_columns,)
            Numbers that are not negative, with a sum of one. The derivatives of several targets or
            classes are added in square. The map must have Fourier features: `AutoMap`, `Fastfood`
            or `RandomKitchenSinks`, also after a scaler.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0))
        >>> model = model.fit(X, 3 * X[:, 1] + X[:, 2])
        >>> model.importance(X).round(1)
        array([0. , 0.7, 0.3])
        """
        model, statistics = self._current(), self._partial().statistics
        assert statistics is not None
        return importance(model.prepared.fitted, statistics, model.solution.coef, X)

    @available_if(has_targets)
    def plot_importance(self, X: Any = None, *, most: int = 20, ax: Any = None) -> Any:
        """Draw the importances of the most important columns as bars.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, optional
            As in `importance`.
        most : int, default=20
            The largest number of columns.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure. Matplotlib must be installed.

        Returns
        -------
        ax : matplotlib Axes
            With a bar for each column, the most important one on top.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X, X[:, 1])
        >>> ax = model.plot_importance(X, most=2)  # doctest: +SKIP
        >>> len(ax.patches)  # doctest: +SKIP
        2
        """
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        sizes = self.importance(X)
        names = getattr(self, "feature_names_in_", np.arange(sizes.size))
        order = np.argsort(sizes)[-most:]
        ax.barh([str(name) for name in names[order]], sizes[order])
        ax.set(xlabel="root mean square derivative x spread, sum 1")
        return ax

    def _score(self, X: Any, y: Any, sample_weight: Any, of_arrays: Any) -> float:
        """`score` of rows anywhere; ``of_arrays`` is that of scikit-learn."""
        rows = as_source(X, y, sample_weight, like=self)
        if rows.whole() is None:
            return score_of_source(self, rows)
        return float(of_arrays(X, array_of_targets(y), sample_weight))

    def _predictor(self, model: Model, dtype: DTypeLike | None, answer: Answer) -> Predictor:
        """A `Predictor`, by default in the precision of the features learned."""
        solution, prepared = model.solution, model.prepared
        if dtype is None:
            dtype = np.float32 if solution.has_float32 else np.float64
        return Predictor(
            prepared.fitted.for_inference(),
            solution.coef,
            solution.intercept,
            prepared.n_columns,
            np.dtype(dtype),
            answer,
            prepared.names,
        )

    @property
    def prepared(self) -> Prepared:
        """The fitted map, the coding of targets and the columns."""
        if "model_" not in vars(self):
            check_is_fitted(self, "model_")
        return self.model_.prepared

    def learned_partial(self) -> Partial:
        """The partial of all rows so far."""
        return replace(self._partial(), origin=self.prepared.origin())

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
        return self._current().outputs(X)

    def known_columns(self) -> dict[str, KnownColumn]:
        """The columns of a fitted model that have names, and what it takes them for.

        Returns
        -------
        columns : dict
            For `kitchenette.data.Source.read_as`: the columns to predict from, and a target of
            strings.
        """
        return self.prepared.known_columns()

    def columns_of(self, source: Source) -> Any:
        """The rows of a source with the columns of the model alone, read as it has them.

        Parameters
        ----------
        source : Source
            Rows of named columns, or of as many as the model has.

        Returns
        -------
        source : Source
        """
        return self.prepared.columns_of(source)

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
        return {"parameters": stored_parameters(self), "model": vars(self).get("model_")}

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A model from the untrusted values of a model file."""
        state = checked_state(state, {"parameters": dict, "model": Model | None})
        estimator = constructed(cls, state["parameters"])
        problem = estimator.checked_problem()
        parameters = estimator.get_params(deep=False)
        seed_from(parameters.get("random_state"))
        if not isinstance(parameters.get("verbose", False), bool | int):
            raise ValueError(f"verbose must be True or False; got {parameters['verbose']!r:.80}.")
        if state["model"] is not None:
            estimator.model_ = state["model"].of_problem(problem)
        return estimator


# ---------------------------------------------------------------- scores of rows in parts


@dataclass(frozen=True)
class Sums:
    """What the score of some rows is computed from.

    Attributes
    ----------
    weight : float
        The sum of the weights.
    error : ndarray of shape (n_targets,)
        The weighted sums of squared errors; of a classifier the weight of wrong labels.
    mean, spread : ndarrays of shape (n_targets,)
        The weighted means of the targets, and the weighted sums of squared deviations from them.
    """

    weight: float
    error: Array
    mean: Array
    spread: Array

    def combined(self, other: Self) -> Sums:
        """The sums of the rows of both, as in Chan et al., 1979."""
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0 else 0.0
        difference = other.mean - self.mean
        return Sums(
            weight,
            self.error + other.error,
            self.mean + share * difference,
            self.spread + other.spread + self.weight * share * np.square(difference),
        )


@dataclass(frozen=True)
class SumsOf:
    """The sums of the rows of a source, as a `kitchenette.data.reduction.Reduction`.

    Attributes
    ----------
    model : KernelClassifier or KernelRegressor
        A solved model.
    """

    model: Any

    def of(self, block: Block) -> Sums:
        if block.y is None:
            raise DataError("The source has no target: name the column to compare with.")
        y = np.asarray(block.y)
        weights = np.ones(y.shape[0]) if block.weight is None else np.asarray(block.weight, float)
        predicted = self.model.predict(block.X)
        if self.model.task == "classification":
            wrong = float(weights @ (predicted != y.ravel()))
            return Sums(weights.sum(), np.array([wrong]), np.zeros(1), np.zeros(1))
        y = y.reshape(y.shape[0], -1).astype(np.float64)
        if not np.isfinite(y).all():
            raise DataError("y contains NaN or infinity.")
        predicted = predicted.reshape(y.shape[0], -1)
        if predicted.shape != y.shape:
            raise DataError(f"The model has {predicted.shape[1]} targets, the data {y.shape[1]}.")
        mean = weights @ y / weights.sum() if weights.any() else np.zeros(y.shape[1])
        error, spread = (weights @ np.square(y - z) for z in (predicted, mean))
        return Sums(weights.sum(), error, mean, spread)

    def combined(self, a: Sums, b: Sums) -> Sums:
        return a.combined(b)


def score_of_source(model: Any, source: Source) -> float:
    """The accuracy of a classifier, or the mean R^2 of a regressor, on all rows of a source.

    The same as the methods ``score`` of scikit-learn, wherever the rows are.

    Parameters
    ----------
    model : KernelClassifier or KernelRegressor
        A fitted model.
    source : Source
        Rows with targets, and perhaps weights.

    Returns
    -------
    score : float
    """
    source = source.read_as(model.known_columns())
    sums: Sums | None = source.reduced(SumsOf(model.for_inference()))
    if sums is None or not sums.weight > 0:
        raise DataError("The source has no row of positive weight to compare with.")
    if model.task == "classification":
        return float(1 - sums.error[0] / sums.weight)
    # As in scikit-learn, a constant target has the score 1 if it is predicted exactly, else 0.
    constant = np.where(sums.error > 0, 1.0, 0.0)
    ratios = np.divide(sums.error, sums.spread, out=constant, where=sums.spread > 0)
    return float(np.mean(1 - ratios))
