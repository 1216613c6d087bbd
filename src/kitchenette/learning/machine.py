"""The base class of both estimators: a feature map, statistics of its features, a solution."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, check_consistent_length, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from kitchenette.data.rows import refuse_what_is_not_numbers, slices, table, take
from kitchenette.files.registry import Budget, checked_state, constructed, stored_parameters
from kitchenette.kernels import Kernel
from kitchenette.learning.accumulation import MOST_ROWS, accumulate, batch, features
from kitchenette.learning.importance import importance
from kitchenette.learning.least_squares import (
    LeastSquares,
    check_learning_memory,
    checked_alpha,
    checked_weights,
)
from kitchenette.learning.leave_one_out import LeaveOneOut
from kitchenette.learning.model import LinearModel, Validation
from kitchenette.learning.predictor import Answer, Predictor
from kitchenette.learning.regularisation import CRITERIA
from kitchenette.learning.row_sample import RowSample
from kitchenette.learning.solution import Solution
from kitchenette.maps.protocol import FittedMap, fit_map, fitted_map, map_difference, thawed
from kitchenette.maps.registry import automatic_map
from kitchenette.parameters import ValueParameters, check_choice, check_count, unchanged_on_error
from kitchenette.sketching.random import seed_from

Array = NDArray[np.float64]
PREDICTED_ROWS = 1 << 14  # the size of the blocks in which data other than arrays is converted
VARIANCE_NUMBERS = 1 << 20  # the number of features in a block of `variances`


def is_word(value: Any, word: str) -> bool:
    """Whether a parameter, which may be an array, is this word."""
    return isinstance(value, str) and value == word


def replaced(statistics: LeastSquares, sample: RowSample | None) -> dict[str, Any]:
    """The attributes of a machine that change with new statistics."""
    samples = {statistics.version: sample}
    return {"statistics_": statistics, "_samples": samples, "_model": None, "_posterior": None}


def combined(mine: RowSample | None, theirs: RowSample | None) -> RowSample | None:
    """The sample of the rows of both; None if one of them has none."""
    return None if mine is None or theirs is None else mine.combined(theirs)


def solved(name: str, doc: str) -> property:
    """A read-only attribute of the solved model, which does not exist before it is solved."""

    def get(self: KernelMachine) -> Any:
        model = self.solved_model()
        if model is None:
            raise AttributeError(
                f"{name}_ is not there: rows came or went since this {type(self).__name__} was "
                "solved. Call solve() first."
            )
        return self.shaped(getattr(model, name))

    return property(get, doc=doc)


class KernelMachine(ValueParameters, ABC):
    """A linear model of random features, learned from their statistics.

    A subclass converts targets to columns of numbers, in `encode` and `columns`, and predicted
    columns back to targets.
    """

    feature_map: Any
    alpha: Any
    fit_intercept: Any
    validation_rows: Any
    random_state: Any
    verbose: Any
    feature_map_: Any
    statistics_: LeastSquares | None
    seed_: int
    n_features_in_: int
    _fitted: FittedMap  # feature_map_ with the interface of a FittedMap
    _model: LinearModel | None  # may be of an earlier version of the statistics
    # The sample of rows for a version of the statistics. During a change it is there for the
    # version before and after, so that an interrupt cannot part it from the statistics.
    _samples: dict[int, RowSample | None]
    _posterior: tuple[int, Solution] | None  # version and solution with its factor; not pickled
    task: ClassVar[str]  # "classification" or "regression"
    # The attributes that the first batch sets in a subclass, and their types in model files.
    target_attributes: ClassVar[dict[str, Any]]

    alpha_ = solved("alpha", "The penalty that was used.")
    coef_ = solved("coef", "The weights of the features.")
    intercept_ = solved("intercept", "The constants.")
    log_marginal_likelihood_ = solved("log_marginal_likelihood", "The log density of the targets.")

    @property
    def validation_score_(self) -> float:
        """The score of models without the validation rows on these rows."""
        score = self._validation().score
        if score is None:
            raise AttributeError(
                "validation_score_ is not there: there were no validation rows, or too few."
            )
        return score

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        feature_map = self._unfitted_map(0)
        if hasattr(feature_map, "transform") and not isinstance(feature_map, type):
            tags.input_tags = get_tags(feature_map).input_tags
        tags.target_tags.required = True
        return tags

    # ------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the feature map and learn from all rows, in one pass over blocks of them.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows, as the feature map takes them.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            What is to be predicted.
        sample_weight : array-like of shape (n_rows,), optional
            Nonnegative weights. A row of weight 2 counts as two rows.

        Returns
        -------
        self : object
            The fitted model.
        """
        with unchanged_on_error(self):
            self._check_parameters()
            self._forget()
            self._begin(X, y, sample_weight)
            self.solve()  # at once, so that errors are raised by `fit`
        return self

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit the feature map on the first batch and learn from it."""
        X, targets, weights = self._checked_batch(X, y, sample_weight, first=True)
        feature_map = self._unfitted_map(self.seed_)
        if isinstance(getattr(feature_map, "n_components", None), int):
            # Before the map is fitted, the precision of its features is not known.
            check_learning_memory(
                feature_map.n_components,
                np.float32,
                n_rows=X.shape[0],
                n_sampled=self.validation_rows,
            )
        feature_map = fit_map(feature_map, X, self.decoded(targets), weights)
        # A copy, so that the model stays as it is if somebody fits the map on more rows.
        fitted = fitted_map(feature_map, X).for_inference()
        learned = self.learned(fitted, X, targets, weights)
        self.__dict__.update(learned, feature_map_=feature_map, _fitted=fitted)

    def learned(
        self, fitted: FittedMap, X: Any, targets: Any, weights: Array | None
    ) -> dict[str, Any]:
        """The attributes that hold what is learned from the first batch."""
        return replaced(*self.accumulated(fitted, X, targets, weights, self.validation_rows))

    def accumulated(
        self, fitted: FittedMap, X: Any, targets: Any, weights: Array | None, n_sampled: int
    ) -> tuple[LeastSquares, RowSample | None]:
        """Statistics and a sample of a batch."""
        title = type(self).__name__ if self.verbose else None
        return accumulate(fitted, X, targets, self, weights, n_sampled=n_sampled, title=title)

    def _continue(self, X: Any, y: Any, sample_weight: Any, *, remove: bool = False) -> None:
        """Add or remove rows; the statistics change in a single last step."""
        X, targets, weights = self._checked_batch(X, y, sample_weight, first=False)
        self.learn_more(X, targets, weights, remove)

    def learn_more(self, X: Any, targets: Any, weights: Array | None, remove: bool) -> None:
        """Add or remove checked rows."""
        statistics, sample = self._known(), self._sample()
        if X.shape[0] > MOST_ROWS and not remove:
            n_sampled = 0 if sample is None else sample.size
            more, theirs = self.accumulated(self._fitted, X, targets, weights, n_sampled)
            self.change(lambda: statistics.merge(more), combined(sample, theirs))
            return
        rows = batch(self._fitted, X, targets, self, weights, with_keys=sample is not None)
        if rows.Y.shape[1] != statistics.n_targets:
            raise ValueError(
                f"Y must have {statistics.n_targets} columns, as before; got {rows.Y.shape[1]}."
            )
        if sample is not None and rows.keys is not None:
            if remove:
                sample = sample.without(rows.keys, weights)
            elif np.any(rows.keys <= np.uint64(sample.last_key)):
                sample = sample.combined(RowSample.of(sample.size, rows.keys, *rows[:3]))
        change = statistics.downdate if remove else statistics.update
        self.change(lambda: change(*rows[:3]), sample)

    def change(self, action: Callable[[], object], sample: RowSample | None) -> None:
        """Change the statistics by one call, and with them the sample."""
        assert self.statistics_ is not None
        version = self.statistics_.version
        self._samples = {version: self._sample(), version + 1: sample}
        action()
        self._samples = {self.statistics_.version: sample}

    def validation_sample(self) -> RowSample | None:
        """The sample with the weights that its rows have in the statistics."""
        return self._sample()

    def _sample(self) -> RowSample | None:
        """The sample of the rows; None if none is kept, or the statistics changed without it."""
        return None if self.statistics_ is None else self._samples.get(self.statistics_.version)

    def _checked_batch(
        self, X: Any, y: Any, sample_weight: Any, *, first: bool
    ) -> tuple[Any, NDArray[Any], Array | None]:
        """Rows, encoded targets and weights of equal length."""
        X = self._checked(X, reset=first)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if first:
            self.seed_ = seed_from(self.random_state)
        targets = self.encode(y, first)
        check_consistent_length(X, targets)
        weights = None if sample_weight is None else checked_weights(sample_weight, X.shape[0])
        weights = self.weighted(targets, weights)
        X = table(X)
        if weights is not None and weights.any() and not weights.all():
            counting = np.flatnonzero(weights)
            return take(X, counting), targets[counting], weights[counting]
        return X, targets, weights

    def downdate(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were learned before, the inverse of `partial_fit`.

        Parameters
        ----------
        X, y, sample_weight
            The rows, targets and weights as they were learned. Only the number of rows is
            checked. Accuracy is lost if the removed rows outweigh the remaining ones.

        Returns
        -------
        self : object
            This model.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(random_state=0).fit(X, X[:, 0])
        >>> model.downdate(X[:100], X[:100, 0]).statistics_.n_rows
        400
        """
        with unchanged_on_error(self):
            self._continue(X, y, sample_weight, remove=True)
        return self

    def merge(self, other: Self) -> Self:
        """Add the rows of another model, which is not changed.

        Parameters
        ----------
        other : object
            A fitted model of the same class with an equal feature map. To share a map that
            depends on data, fit it once and pass it to both models in a
            `sklearn.frozen.FrozenEstimator`.

        Returns
        -------
        self : object
            This model, as if fitted on the rows of both, with its own parameters.
        """
        self._known()
        if type(other) is not type(self):
            raise ValueError(
                f"{type(self).__name__} merges with models of its class; got "
                f"{type(other).__name__}."
            )
        other._known()
        names = [vars(model).get("feature_names_in_", np.empty(0)) for model in (self, other)]
        if self.n_features_in_ != other.n_features_in_ or not np.array_equal(*names):
            raise ValueError(
                "Cannot merge models of different columns: n_features_in_ or feature_names_in_ "
                "differs."
            )
        difference = map_difference(self._fitted, other._fitted)
        if difference is not None:
            raise ValueError(
                "Cannot merge models whose feature maps differ, as their statistics are of "
                f"different features (the first difference is in {difference!r}). Give the "
                "map a random_state, and if it depends on data, fit it once on a sample and "
                "pass it to every model as sklearn.frozen.FrozenEstimator(feature_map)."
            )
        self.merge_statistics(other)
        return self

    # ------------------------------------------------------------ the solution

    def solve(self) -> Self:
        """Compute the weights, unless they are up to date.

        `fit` and the prediction methods call it. After `partial_fit`, `merge` and `downdate` it
        is deferred to the next prediction, because a solution costs as much as many rows. Call
        it before the model is shared by threads, or to choose when the time is spent.

        Returns
        -------
        self : object
            This model.

        Examples
        --------
        >>> import numpy as np
        >>> from kitchenette import KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(random_state=0)
        >>> for part in (X[:200], X[200:]):
        ...     model = model.partial_fit(part, part[:, 0])
        >>> model.solve().alpha_ > 0
        True
        """
        self._current()
        return self

    def _current(self) -> LinearModel:
        model = self.solved_model()
        if model is None:
            model = self._model = self._solved()
        return model

    def _solved(self) -> LinearModel:
        statistics, version, held_out = self._known(), self._known().version, self._held_out()
        alpha, n_observations = self.alpha, self._n_observations()
        if is_word(alpha, "auto"):
            alpha = self._automatic_penalty(held_out, n_observations)
        known = None if held_out is None else held_out.solution(checked_alpha(alpha))
        solution = known or statistics.solve(
            alpha, fit_intercept=self.fit_intercept, n_observations=n_observations
        )
        validation = Validation()
        if held_out is not None:
            validation = self.validated(held_out, solution)
            if isinstance(self.alpha, str) and self.alpha != "auto":
                self._warn_of_contradiction(held_out, solution.alpha)
        return LinearModel.of(solution, statistics.has_float32, version, validation)

    def _held_out(self) -> LeaveOneOut | None:
        """Sampled rows with predictions of models without them; None if there are too few."""
        sample = self.validation_sample()
        if sample is None:
            return None
        equations = self._known().equations(self.fit_intercept, self._n_observations())
        held_out = LeaveOneOut(equations, sample)
        return held_out if held_out.enough else None

    def _n_observations(self) -> float:
        """The number of distinct rows, or of rows if there is no sample to estimate it from.

        Weights say how much rows matter relative to each other, so they are not counted.
        """
        sample, n_rows = self._sample(), self._known().n_rows
        return float(n_rows) if sample is None else sample.n_distinct(n_rows)

    def _automatic_penalty(self, held_out: LeaveOneOut | None, n_observations: float) -> Any:
        if n_observations <= 1 + self.fit_intercept:
            # One row, or two, say nothing of the function, so that it is nearly constant.
            return max(1.0, float(self._known().gram.diagonal().sum()))
        return "evidence" if held_out is None or held_out.is_constant else held_out.chosen()

    def _warn_of_contradiction(self, held_out: LeaveOneOut, alpha: float) -> None:
        better = None if held_out.is_constant else held_out.contradiction(alpha)
        if better is not None:
            warnings.warn(
                f"alpha={self.alpha!r} chose {alpha:.3g}, but rows that were held out are "
                f"predicted better with {better:.3g}. Use alpha='auto', which looks at both.",
                UserWarning,
                stacklevel=5,
            )

    def _validation(self) -> Validation:
        model = self.solved_model()
        if model is None:
            raise AttributeError(
                f"Rows came or went since this {type(self).__name__} was solved. Call solve() "
                "first."
            )
        return model.validation

    def solved_model(self) -> LinearModel | None:
        """The solved model, or None if it is out of date."""
        self._check_fitted()
        model = self._model
        fresh = model is not None and (
            self.statistics_ is None or model.version == self.statistics_.version
        )
        return model if fresh else None

    def _posterior_solution(self) -> Solution:
        """The solution with the factor of the Gram matrix, computed again because it is large."""
        known, model = self._known(), self._current()
        if self._posterior is None or self._posterior[0] != model.version:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # issued by `solve`
                found = known.solve(
                    model.alpha,
                    fit_intercept=model.fit_intercept,
                    n_observations=self._n_observations(),
                )
            self._posterior = model.version, found
        return self._posterior[1]

    def _check_fitted(self) -> None:
        if "statistics_" not in vars(self):
            check_is_fitted(self, "statistics_")

    def _known(self) -> LeastSquares:
        """The statistics; an error if the model was saved without them."""
        self._check_fitted()
        if self.statistics_ is None:
            raise ValueError(
                "This model was saved without its statistics: it predicts, but it cannot learn "
                "from more rows, merge with others, or tell how sure a prediction is."
            )
        return self.statistics_

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    # ------------------------------------------------------------ predicting

    def outputs(self, X: Any) -> tuple[Array, np.dtype[Any]]:
        """Predictions of all target columns in float64, and the precision of the features."""
        model, fitted = self._current(), self._fitted
        X = self._checked(X)
        n_rows = X.shape[0]
        out = np.empty((n_rows, model.coef.shape[1]))
        # Data that is not an array is converted in blocks.
        size = n_rows if isinstance(X, np.ndarray) else PREDICTED_ROWS
        for part in slices(n_rows, size):
            rows = fitted.rows(take(X, part))
            if not model.predict(fitted, rows, out[part]):
                raise ValueError(fitted.overflow(rows))
        return out, fitted.operator(rows).dtype

    def variances(self, X: Any) -> Array:
        """Variances of new observations, noise included."""
        X, posterior = self._checked(X), self._posterior_solution()
        variance = np.empty((X.shape[0], posterior.rss.size))
        for part in slices(X.shape[0], max(16, VARIANCE_NUMBERS // posterior.coef.shape[0])):
            variance[part] = posterior.variance(features(self._fitted, take(X, part)))
        spread = self._current().validation.spread
        return variance if spread is None else variance * np.square(spread)

    def make_predictor(self, dtype: DTypeLike | None, answer: Answer) -> Predictor:
        """A `Predictor` in some precision, by default that of the features learned from."""
        model = self._current()
        if dtype is None:
            dtype = np.float32 if model.has_float32 else np.float64
        return Predictor(
            self._fitted.for_inference(),
            model.coef,
            model.intercept,
            self.n_features_in_,
            np.dtype(dtype),
            answer,
            vars(self).get("feature_names_in_"),
        )

    def _checked(self, X: Any, *, reset: bool = False) -> Any:
        """Check the names and the number of columns; the map checks the values."""
        if (
            not reset
            and type(X) is np.ndarray
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and X.dtype.kind in "fiub"
            and "feature_names_in_" not in vars(self)
        ):
            return X  # the general checks take longer than predicting a few rows
        refuse_what_is_not_numbers(X)
        if hasattr(X, "columns"):
            # A data frame stays one: the map may need its names and types, and converts blocks.
            X = validate_data(self, X, reset=reset, skip_check_array=True)
            if X.shape[0] == 0:
                raise ValueError(
                    f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is "
                    f"required by {type(self).__name__}."
                )
            return X
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False
        )

    # ------------------------------------------------------------ explaining

    @property
    def feature_importances_(self) -> Array:
        """The importance of each column; see `importance`."""
        model = self.solved_model()
        if model is None or self.statistics_ is None:
            raise AttributeError("feature_importances_ needs statistics and a solved model.")
        try:
            return importance(self._fitted, self.statistics_, model.coef)
        except ValueError as error:
            raise AttributeError(str(error)) from error

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
        >>> from kitchenette import KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(random_state=0).fit(X, 2 * X[:, 1] + X[:, 2])
        >>> model.importance(X).round(1)
        array([0. , 0.7, 0.3])
        """
        model, statistics = self._current(), self._known()
        return importance(self._fitted, statistics, model.coef, X)

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
        """
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        sizes = self.importance(X)
        names = vars(self).get("feature_names_in_", np.arange(sizes.size))
        order = np.argsort(sizes)[-most:]
        ax.barh([str(name) for name in names[order]], sizes[order])
        ax.set(xlabel="root mean square derivative x spread, sum 1")
        return ax

    # ------------------------------------------------------------ parameters

    def _unfitted_map(self, seed: int) -> Any:
        if self.feature_map is None or is_word(self.feature_map, "auto"):
            return automatic_map(self.task, seed)
        return self.feature_map

    def _check_parameters(self) -> None:
        feature_map = self._unfitted_map(0)
        if isinstance(feature_map, Kernel):
            raise ValueError(
                "feature_map must be a feature map, not a kernel: write "
                f"{type(self).__name__}(Fastfood({feature_map!r})), or another map of this kernel."
            )
        if isinstance(feature_map, type):
            raise ValueError(
                "feature_map must be an object, not a class: write "
                f"{feature_map.__name__}() with parentheses."
            )
        if not hasattr(feature_map, "transform"):
            raise ValueError(
                "feature_map must be 'auto', a feature map of kitchenette, or another object with "
                f"fit and transform that works row by row; got {feature_map!r}."
            )
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept must be True or False; got {self.fit_intercept!r}.")
        if isinstance(self.alpha, str):
            check_choice("alpha", self.alpha, ("auto", *CRITERIA))
        else:
            checked_alpha(self.alpha)
        check_count("validation_rows", self.validation_rows, 0)

    # ------------------------------------------------------------ copies and files

    def for_inference(self) -> Self:
        """A copy for prediction only, without statistics and therefore far smaller.

        Returns
        -------
        model : object
            It cannot learn from more rows, merge, or return standard deviations.

        Examples
        --------
        >>> import pickle
        >>> import numpy as np
        >>> from kitchenette import KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(random_state=0).fit(X, X[:, 0])
        >>> small = model.for_inference()
        >>> bool(np.array_equal(small.predict(X), model.predict(X)))
        True
        >>> len(pickle.dumps(small)) < 0.1 * len(pickle.dumps(model))
        True
        """
        self.solve()
        copied = copy(self)
        fitted = self._fitted.for_inference()
        feature_map: Any = self.feature_map_
        if isinstance(thawed(feature_map), FittedMap):
            frozen = isinstance(feature_map, FrozenEstimator)
            feature_map = FrozenEstimator(fitted) if frozen else fitted
        copied.__dict__.update(
            statistics_=None,
            feature_map_=feature_map,
            _fitted=fitted,
            _samples={},
            _posterior=None,
        )
        if isinstance(self.feature_map, FrozenEstimator):
            copied.feature_map = feature_map
        elif self.feature_map is not None:
            copied.feature_map = clone(self.feature_map, safe=False)
        return copied

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "_model" not in state:
            return state
        samples = {0: self._sample()}
        return {**state, "_posterior": None, "_model": self.solved_model(), "_samples": samples}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Versions of statistics are counted from zero again in a copy.
        model, statistics = vars(self).get("_model"), vars(self).get("statistics_")
        if statistics is not None:
            self._samples = {statistics.version: self._samples[0]}
        if model is not None and statistics is not None:
            self._model = model.renumbered(statistics.version)

    def to_file(self) -> dict[str, Any]:
        """Parameters and fitted attributes, for a model file."""
        state: dict[str, Any] = {"parameters": stored_parameters(self)}
        if "statistics_" in vars(self):
            names = (*self.fitted_types, *self.target_attributes)
            state["fitted"] = {name: vars(self)[name] for name in names if name in vars(self)}
            current = thawed(self.feature_map_)
            if isinstance(current, FittedMap):
                # The map may have been fitted on more rows.
                replaced = map_difference(current, self._fitted) is not None
            else:
                # A pipeline is stored as the numbers that its steps consist of.
                frozen = isinstance(self.feature_map_, FrozenEstimator)
                replaced = not frozen and hasattr(self._fitted, "to_file")
            if replaced:
                state["fitted"]["feature_map_"] = self._fitted
            state["fitted"]["model"] = self.solved_model()
            state["fitted"]["sample"] = self._sample()
        return state

    fitted_types: ClassVar[dict[str, Any]] = {
        "feature_map_": object,
        "statistics_": (LeastSquares, type(None)),
        "seed_": int,
        "n_features_in_": int,
        "feature_names_in_": (np.ndarray, type(None)),
    }

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A model from the untrusted values of a model file."""
        state = checked_state(state, {"parameters": dict, "fitted": (dict, type(None))})
        made = constructed(cls, state["parameters"])
        if state["fitted"] is None:
            return made
        types = {**cls.fitted_types, **cls.target_attributes}
        types |= {"model": (LinearModel, type(None)), "sample": (RowSample, type(None))}
        fitted = checked_state(state["fitted"], types)
        model, sample, statistics = fitted.pop("model"), fitted.pop("sample"), fitted["statistics_"]
        if fitted["feature_names_in_"] is None:
            del fitted["feature_names_in_"]
        elif fitted["feature_names_in_"].shape != (fitted["n_features_in_"],):
            raise ValueError("feature_names_in_ must be as many as the columns.")
        feature_map = thawed(fitted["feature_map_"])
        if not isinstance(feature_map, FittedMap):
            raise ValueError("feature_map_ must be a feature map.")
        feature_map = feature_map.for_inference()
        if statistics is None and model is None:
            raise ValueError("there are neither statistics nor weights.")
        if model is not None and statistics is not None:
            model = model.renumbered(statistics.version)
        samples = {} if statistics is None else {statistics.version: sample}
        made.__dict__.update(
            fitted, _fitted=feature_map, _samples=samples, _model=model, _posterior=None
        )
        made.check_restored()
        return made

    def check_restored(self) -> None:
        """Refuse fitted attributes that are not consistent."""
        shapes = []
        if self.statistics_ is not None:
            shapes.append((self.statistics_.n_features, self.statistics_.n_targets))
        if self._model is not None:
            shapes.append(self._model.coef.shape)
        sample = self._sample()
        if sample is not None:
            shapes.append((sample.features.shape[1], sample.targets.shape[1]))
        if len({*shapes}) > 1:
            raise ValueError("statistics, sample and weights must have the same shape.")
        if self._fitted.n_features_out_ != shapes[0][0]:
            raise ValueError("feature_map_ must have as many features as the statistics.")
        if getattr(self._fitted, "n_features_in_", 0) != self.n_features_in_:
            raise ValueError("feature_map_ must have as many columns as the model.")
        self.check_targets(shapes[0][1])

    def weighted(self, targets: NDArray[Any], weights: Array | None) -> Array | None:
        """The weights of rows with these encoded targets."""
        return weights

    # ------------------------------------------------------------ what subclasses add

    @abstractmethod
    def encode(self, y: Any, first: bool) -> NDArray[Any]:
        """Checked and encoded targets; the first batch sets the target attributes."""

    @abstractmethod
    def columns(self, targets: NDArray[Any]) -> Array:
        """A block of encoded targets as columns of numbers."""

    @abstractmethod
    def decoded(self, targets: NDArray[Any]) -> NDArray[Any]:
        """Encoded targets as a user gives them."""

    @abstractmethod
    def target_numbers(self, targets: NDArray[Any]) -> Array:
        """Numbers that are equal for equal targets of any batch, one row per target."""

    @abstractmethod
    def validated(self, held_out: LeaveOneOut, solution: Solution) -> Validation:
        """What rows that were held out say about a solution."""

    @abstractmethod
    def shaped(self, values: Any) -> Any:
        """A value of the solved model in the shape that users see."""

    @abstractmethod
    def merge_statistics(self, other: Any) -> None:
        """Add the statistics of another model with equal features, in one step."""

    @abstractmethod
    def check_targets(self, n_targets: int) -> None:
        """Refuse target attributes from a file that do not match the number of targets."""
