"""The base class of regressor and classifier: targets, penalties and validation rows."""

from __future__ import annotations

import numbers
import warnings
from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_consistent_length
from sklearn.utils.validation import _num_samples

from kitchenette.data.blocks import first_rows
from kitchenette.data.rows import slices, table, take
from kitchenette.data.schema import DataError
from kitchenette.data.source import Source
from kitchenette.files.registry import checked_state
from kitchenette.learning.accumulation import MOST_ROWS, accumulate, batch, features
from kitchenette.learning.base import Array, FeatureLearner
from kitchenette.learning.importance import importance
from kitchenette.learning.iterative import check_iterative_memory, learn
from kitchenette.learning.learner import Settings
from kitchenette.learning.least_squares import (
    LeastSquares,
    check_learning_memory,
    checked_alpha,
    checked_penalties,
    checked_weights,
)
from kitchenette.learning.leave_one_out import LeaveOneOut
from kitchenette.learning.model import LinearModel, Validation
from kitchenette.learning.passes import FeatureRows
from kitchenette.learning.predictor import Answer, Predictor
from kitchenette.learning.regularisation import CRITERIA
from kitchenette.learning.row_sample import RowSample
from kitchenette.learning.solution import VARIANCE_ROWS, Solution
from kitchenette.learning.summary import Summary, combined_samples
from kitchenette.learning.warm_start import Earlier
from kitchenette.maps.protocol import FittedMap
from kitchenette.maps.registry import automatic_map
from kitchenette.parameters import check_choice, check_count, unchanged_on_error
from kitchenette.sketching.random import seed_from

VARIANCE_NUMBERS = 1 << 20  # the number of features in a block of `variances`
ONE_PASS_FEATURES = 8192  # up to which solver="auto" takes one pass
ONE_PASS = {"solver_": "onepass", "loss_": "squared", "n_iter_": 1}
SOLVERS = ("auto", "onepass", "iterative")


def is_criterion(alpha: Any) -> bool:
    """Whether a penalty is to be chosen by a criterion of the statistics."""
    return isinstance(alpha, str) and alpha in CRITERIA


def is_word(value: Any, word: str) -> bool:
    """Whether a parameter, which may be an array, is this word."""
    return isinstance(value, str) and value == word


def replaced(statistics: LeastSquares, sample: RowSample | None) -> dict[str, Any]:
    """The attributes of a machine that change with new statistics."""
    samples = {statistics.version: sample}
    return {"statistics_": statistics, "_samples": samples, "_model": None, "_posterior": None}


def _refuse_targets(y: Any, sample_weight: Any) -> None:
    if y is not None or sample_weight is not None:
        raise ValueError(
            "A source has its own targets and weights: name them when it is made, and pass none."
        )


def without_one_pass(model: KernelMachine, method: str) -> str | None:
    """Why a method that needs statistics does not exist, if the parameters ask for many passes."""
    if is_word(model.loss, "squared") and not is_word(model.solver, "iterative"):
        return None
    return (
        f"{type(model).__name__} has no {method} with loss={model.loss!r} and "
        f"solver={model.solver!r}: it needs the statistics of one pass over the rows, which exist "
        "for loss='squared' and solver='onepass' or 'auto'."
    )


def solved(name: str, doc: str) -> property:
    """A read-only attribute of the solved model, which does not exist before it is solved."""

    def get(self: KernelMachine) -> Any:
        return self.shaped(getattr(self._solved_or_error(f"{name}_"), name))

    return property(get, doc=doc)


class KernelMachine(FeatureLearner):
    """A linear model of random features, learned from their statistics.

    A subclass converts targets to columns of numbers, in `encode` and `columns`, and predicted
    columns back to targets.
    """

    alpha: Any
    fit_intercept: Any
    validation_rows: Any
    loss: Any
    solver: Any
    max_iter: Any
    tol: Any
    warm_start: Any
    random_state: Any
    verbose: Any
    loss_: str
    solver_: str
    n_iter_: int
    # The sample of rows for a version of the statistics. During a change it is there for the
    # version before and after, so that an interrupt cannot part it from the statistics.
    _samples: dict[int, RowSample | None]
    _posterior: tuple[int, Solution] | None  # version and solution with its factor; not pickled
    model_class = LinearModel
    default_map = "'auto'"
    abilities = (
        "predicts",
        "learn from more rows, merge with others, or tell how sure a prediction is",
    )
    task: ClassVar[str]  # "classification" or "regression"
    losses: ClassVar[tuple[str, ...]]  # the names of the losses that it has
    # The attributes that the first batch sets in a subclass, and their types in model files.
    target_attributes: ClassVar[dict[str, Any]]

    alpha_ = solved("alpha", "The penalty that was used.")
    coef_ = solved("coef", "The weights of the features.")
    intercept_ = solved("intercept", "The constants.")

    @property
    def log_marginal_likelihood_(self) -> float:
        """The log density of the targets."""
        found = self._solved_or_error("log_marginal_likelihood_").log_marginal_likelihood
        if np.isnan(found):
            raise AttributeError(
                "log_marginal_likelihood_ is not there: an iterative solver computes it with "
                "alpha='evidence' only."
            )
        return found

    def _solved_or_error(self, name: str) -> LinearModel:
        model = self.solved_model()
        if model is None:
            raise AttributeError(
                f"{name} is not there: rows came or went since this {type(self).__name__} was "
                "solved. Call solve() first."
            )
        return model

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
        tags.target_tags.required = True
        return tags

    # ------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the feature map and learn from all rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows, as the feature map takes them. A data frame may have strings, categories and
            missing values. A `kitchenette.data.Source` has its own targets and weights, and is
            read in blocks.
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
            earlier = self._earlier()
            self._forget()
            self._begin(X, y, sample_weight, iterates=self.iterates, earlier=earlier)
            self.solve()  # at once, so that errors are raised by `fit`
        return self

    def _begin(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        iterates: Callable[[int], bool] | None = None,
        earlier: Earlier | None = None,
    ) -> None:
        """Fit the feature map on the first batch and learn from it.

        ``iterates`` says for a number of features whether the solver is iterative, which needs all
        rows at once; by default it is not.
        """
        if isinstance(X, Source):
            _refuse_targets(y, sample_weight)
            self._begin_with(X, iterates, earlier)
            return
        X, targets, weights = self._prepare(X, y, sample_weight, iterates)
        fitted = self._fitted
        if iterates is not None and iterates(fitted.n_features_out_):
            learned = self.learned_iteratively(fitted, X, targets, weights, self.loss, earlier)
        else:
            learned = self.learned(fitted, X, targets, weights) | ONE_PASS
        self.__dict__.update(learned)

    def _begin_with(
        self, source: Source, iterates: Callable[[int], bool] | None, earlier: Earlier | None
    ) -> None:
        """Fit the feature map on a sample of a source and learn all its rows."""
        self._prepare_with(source, iterates)
        if iterates is None or not iterates(self._fitted.n_features_out_):
            self.adopt(self.summary_of_source(source))
            return
        y, weights = source.targets()
        self.__dict__.update(vars(self.with_labels_of(y)))
        targets = self.encode(y, first=False)
        n_targets = self.columns(targets[:1]).shape[1]
        check_iterative_memory(targets.shape[0], self._fitted.n_features_out_, n_targets)
        weights = None if weights is None else checked_weights(weights, targets.shape[0])
        weights = self.weighted(targets, weights)
        self.__dict__.update(
            self.learned_iteratively(self._fitted, source, targets, weights, self.loss, earlier)
        )

    def _prepare_with(self, source: Source, iterates: Callable[[int], bool] | None = None) -> None:
        """Fit the feature map and the coding of targets on a sample of a source."""
        self.seed_ = seed_from(self.random_state)
        sample = source.sample(seed=self.seed_)
        if sample.y is None:
            raise DataError("The source has no target: name the column to be predicted.")
        self._prepare(sample.X, sample.y, sample.weight, iterates, source)

    def summary_of_source(self, source: Source) -> Summary:
        """The summary of all rows of a source."""
        found: Summary | None = None
        for block in source.blocks():
            part = self.summarised(block.X, block.y, block.weight)
            found = part if found is None else found.combined(part)
        if found is None or found.n_rows == 0:
            raise DataError("The source has no row of positive weight to learn from.")
        return found

    def _prepare(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        iterates: Callable[[int], bool] | None = None,
        source: Source | None = None,
    ) -> tuple[Any, NDArray[Any], Array | None]:
        """Fit the feature map and the coding of targets on rows, which are returned checked."""
        X, targets, weights = self._checked_batch(X, y, sample_weight, first=True)

        def check(n_features: int) -> None:
            # Before the map is fitted, the precision of its features is not known.
            if iterates is None or not iterates(n_features):
                check_learning_memory(
                    n_features, np.float32, n_rows=X.shape[0], n_sampled=self.validation_rows
                )
            else:
                n_targets = self.columns(targets[:1]).shape[1]
                check_iterative_memory(X.shape[0], n_features, n_targets)

        y = self.decoded(targets)
        feature_map, fitted = self._fitted_maps(X, y, weights, check, source)
        self.__dict__.update(feature_map_=feature_map, _fitted=fitted)
        return X, targets, weights

    def iterates(self, n_features: int) -> bool:
        """Whether `fit` learns iteratively for this number of features."""
        if self.loss != "squared" or self.solver != "auto":
            return bool(self.loss != "squared" or self.solver == "iterative")
        return n_features > ONE_PASS_FEATURES and not is_criterion(self.alpha)

    def learned_iteratively(
        self,
        fitted: FittedMap,
        X: Any,
        targets: Any,
        weights: Array | None,
        loss: str,
        earlier: Earlier | None,
    ) -> dict[str, Any]:
        """The attributes that hold what is learned in many passes over all rows."""
        return self.in_passes(fitted, X, targets, weights, loss, earlier)[0]

    def in_passes(
        self,
        fitted: FittedMap,
        X: Any,
        targets: Any,
        weights: Array | None,
        loss: str,
        earlier: Earlier | None,
    ) -> tuple[dict[str, Any], bool]:
        """What is learned with a loss, and whether somebody interrupted the solver."""
        weights = np.ones(X.shape[0]) if weights is None else weights
        if not weights.any():
            raise ValueError("All weights are zero: there is no row to learn from.")
        rows = FeatureRows(fitted, X, targets, self, weights)
        settings = Settings(
            self._penalties(),
            bool(self.fit_intercept),
            self.max_iter,
            float(self.tol),
            self.validation_rows,
            (lambda line: print(f"{type(self).__name__}, {line}", flush=True))
            if self.verbose
            else None,
        )
        start = None
        if earlier is not None:
            n_outputs = self.reduced(self.columns(targets[:1]), loss).shape[1]
            start = earlier.start(fitted, X, loss, n_outputs)
        found = learn(rows, loss, settings, level=getattr(self, "quantile", 0.5), start=start)
        outputs = self.expanded(found.outputs)
        held_out = found.held_out
        validation = self.validated_by(
            loss, outputs, targets[held_out], weights[held_out] if held_out.size else np.empty(0)
        )
        has_float32 = fitted.operator(fitted.rows(first_rows(X, 1))).dtype == np.float32
        model = LinearModel(
            self.expanded(found.coef),
            self.expanded(found.intercept[None])[0],
            found.alpha,
            found.log_marginal_likelihood,
            bool(self.fit_intercept),
            bool(has_float32),
            0,
            validation,
        )
        learned: dict[str, Any] = {
            "statistics_": None,
            "_samples": {},
            "_model": model,
            "_posterior": None,
            "solver_": "iterative",
            "loss_": loss,
            "n_iter_": found.n_iter,
        }
        return learned, found.interrupted

    def _penalties(self) -> Any:
        """The penalty for an iterative solver, several of them, "evidence", or None for "auto"."""
        if isinstance(self.alpha, str):
            return None if self.alpha == "auto" else self.alpha
        return checked_penalties("alpha", self.alpha, "")[()]

    def _earlier(self) -> Earlier | None:
        """The model before this fit, if it is to be the start of the next one."""
        if not self.warm_start or vars(self).get("_model") is None:
            return None
        model = self.solved_model()
        if model is None:
            return None
        coef = self.reduced(model.coef, self.loss_)
        intercept = self.reduced(model.intercept[None], self.loss_)[0]
        return Earlier(self._fitted, self.n_features_in_, coef, intercept, self.loss_)

    def expanded(self, outputs: Array) -> Array:
        """The columns of the targets from those that the solver works with."""
        return outputs

    def reduced(self, outputs: Array, loss: str) -> Array:
        """The inverse of `expanded`, for the solver of a loss."""
        return outputs

    def learned(
        self, fitted: FittedMap, X: Any, targets: Any, weights: Array | None
    ) -> dict[str, Any]:
        """The attributes that hold what is learned from the first batch."""
        if isinstance(X, Source):
            return self.attributes_of(self.summary_of_source(X))
        n_sampled = self.validation_rows
        return self.attributes_of(self.summary_of_rows(fitted, X, targets, weights, n_sampled))

    def accumulated(
        self, fitted: FittedMap, X: Any, targets: Any, weights: Array | None, n_sampled: int
    ) -> tuple[LeastSquares, RowSample | None]:
        """Statistics and a sample of a batch."""
        title = type(self).__name__ if self.verbose else None
        return accumulate(fitted, X, targets, self, weights, n_sampled=n_sampled, title=title)

    def _continue(self, X: Any, y: Any, sample_weight: Any, *, remove: bool = False) -> None:
        """Add or remove rows; the statistics change in a single last step."""
        if isinstance(X, Source):
            _refuse_targets(y, sample_weight)
            if remove:
                raise ValueError("Rows are removed as arrays or data frames, not as a source.")
            found = self.summary_of_source(X)
            if "statistics_" in vars(self):
                found = self.summary(found.origin).combined(found)
            self.adopt(found)
            return
        X, targets, weights = self._checked_batch(X, y, sample_weight, first=False)
        if "statistics_" in vars(self):
            self.learn_more(X, targets, weights, remove)
        else:  # it was prepared on other rows
            self.__dict__.update(self.learned(self._fitted, X, targets, weights) | ONE_PASS)

    def learn_more(self, X: Any, targets: Any, weights: Array | None, remove: bool) -> None:
        """Add or remove checked rows."""
        statistics, sample = self._known(), self._sample()
        if X.shape[0] > MOST_ROWS and not remove:
            n_sampled = 0 if sample is None else sample.size
            more, theirs = self.accumulated(self._fitted, X, targets, weights, n_sampled)
            self.change(lambda: statistics.merge(more), combined_samples(sample, theirs))
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
        if first and "seed_" not in vars(self):
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
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X, X[:, 0])
        >>> model.downdate(X[:100], X[:100, 0]).statistics_.n_rows
        400
        """
        with unchanged_on_error(self):
            self._known()
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
        self._check_mergeable(other)
        self.merge_statistics(other)
        return self

    # ------------------------------------------------------------ stages

    def prepare_on(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> None:
        self._check_parameters()
        why_not = without_one_pass(self, "stages")
        if why_not is not None:
            raise ValueError(why_not)
        self.know_labels(classes)
        if isinstance(X, Source):
            _refuse_targets(y, sample_weight)
            self._prepare_with(X)
        else:
            self._prepare(X, y, sample_weight)

    def summarised(self, X: Any, y: Any, sample_weight: Any) -> Summary:
        if isinstance(X, Source):
            _refuse_targets(y, sample_weight)
            return self.summary_of_source(X)
        origin, known = self.origin(), self.with_labels_of(y)
        if _num_samples(X) == 0:
            return replace(known.empty_summary(), origin=origin)
        X, targets, weights = known._checked_batch(X, y, sample_weight, first=False)
        if weights is not None and not weights.any():
            return replace(known.empty_summary(), origin=origin)
        n_sampled = self.validation_rows
        found = known.summary_of_rows(self._fitted, X, targets, weights, n_sampled)
        return replace(found, origin=origin)

    def summary(self, origin: str) -> Summary:
        statistics = self._known()
        return replace(
            self.empty_summary(),
            origin=origin,
            n_rows=statistics.n_rows,
            statistics=statistics,
            sample=self._sample(),
        )

    def adopt(self, summary: Summary) -> None:
        self.__dict__.update(self.attributes_of(summary) | ONE_PASS)

    def learning_options(self) -> dict[str, Any]:
        return {"validation_rows": self.validation_rows}

    def empty_summary(self) -> Summary:
        """The summary of no rows."""
        return Summary(estimator=type(self).__name__, origin="")

    def summary_of_rows(
        self, fitted: FittedMap, X: Any, targets: Any, weights: Array | None, n_sampled: int
    ) -> Summary:
        """The summary of checked rows."""
        statistics, sample = self.accumulated(fitted, X, targets, weights, n_sampled)
        return replace(
            self.empty_summary(), n_rows=statistics.n_rows, statistics=statistics, sample=sample
        )

    def attributes_of(self, summary: Summary) -> dict[str, Any]:
        """The attributes that hold what is learned from the rows of a summary."""
        assert summary.statistics is not None
        return replaced(summary.statistics, summary.sample)

    def know_labels(self, classes: Any) -> None:
        """Set the labels that are known before any rows."""
        if classes is not None:
            raise ValueError(f"{type(self).__name__} has no classes.")

    def with_labels_of(self, y: Any) -> Self:
        """A copy that knows the labels of some targets."""
        return copy(self)

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
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0))
        >>> for part in (X[:200], X[200:]):
        ...     model = model.partial_fit(part, part[:, 0])
        >>> model.solve().alpha_ > 0
        True
        """
        self._current()
        return self

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

    def _why_without_statistics(self) -> str:
        if self.solver_ == "iterative":
            return f"learned by an iterative solver (loss {self.loss_!r}), without statistics"
        return super()._why_without_statistics()

    # ------------------------------------------------------------ predicting

    def variances(self, X: Any) -> Array:
        """Variances of new observations, noise included."""
        if isinstance(X, Source):
            return np.concatenate([self.variances(b.X) for b in self._to_predict(X).blocks()])
        X, posterior = self._checked(X), self._posterior_solution()
        variance = np.empty((X.shape[0], posterior.rss.size))
        size = max(VARIANCE_ROWS, VARIANCE_NUMBERS // posterior.coef.shape[0])
        for part in slices(X.shape[0], size):
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
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0))
        >>> model = model.fit(X, 3 * X[:, 1] + X[:, 2])
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
        self._check_feature_map()
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept must be True or False; got {self.fit_intercept!r}.")
        if isinstance(self.alpha, str):
            check_choice("alpha", self.alpha, ("auto", *CRITERIA))
        else:
            checked_alpha(self.alpha)
        if not isinstance(self.warm_start, bool | np.bool_):
            raise ValueError(f"warm_start must be True or False; got {self.warm_start!r}.")
        check_count("validation_rows", self.validation_rows, 0)
        check_choice("loss", self.loss, self.losses)
        check_choice("solver", self.solver, SOLVERS)
        check_count("max_iter", self.max_iter)
        if not isinstance(self.tol, numbers.Real) or not 0 <= float(self.tol) < 1:
            raise ValueError(f"tol must be a number from 0 to below 1; got {self.tol!r}.")
        if self.solver == "onepass" and self.loss != "squared":
            raise ValueError(
                f"solver='onepass' is for loss='squared'; loss={self.loss!r} needs many passes: "
                "use solver='auto'."
            )
        if self.loss != "squared" and is_criterion(self.alpha):
            raise ValueError(
                f"alpha={self.alpha!r} needs the squared loss; others take a number, several of "
                "them, or 'auto'."
            )
        if self.solver == "iterative" and is_word(self.alpha, "gcv"):
            raise ValueError(
                "alpha='gcv' needs the statistics of solver='onepass'; an iterative solver takes a "
                "number, several of them, 'evidence' or 'auto'."
            )

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
        >>> from kitchenette import Fastfood, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X, X[:, 0])
        >>> small = model.for_inference()
        >>> bool(np.array_equal(small.predict(X), model.predict(X)))
        True
        >>> len(pickle.dumps(small)) < 0.1 * len(pickle.dumps(model))
        True
        """
        copied = self._without_statistics()
        copied.__dict__.update(_samples={}, _posterior=None)
        return copied

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if "_model" not in state:
            return state
        return {**state, "_posterior": None, "_samples": {0: self._sample()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Versions of statistics are counted from zero again in a copy.
        statistics = vars(self).get("statistics_")
        if statistics is not None:
            self._samples = {statistics.version: self._samples[0]}

    def to_file(self) -> dict[str, Any]:
        """Parameters and fitted attributes, for a model file."""
        state = super().to_file()
        if "statistics_" in vars(self):
            state["fitted"]["sample"] = self._sample()
        return state

    @classmethod
    def fitted_types(cls) -> dict[str, Any]:
        """The names of the fitted attributes that are stored, and their types."""
        names = {"solver_": str, "loss_": str, "n_iter_": int}
        optional = {name: (kind, type(None)) for name, kind in names.items()}  # in older files
        return {**super().fitted_types(), **cls.target_attributes, **optional}

    def restore(self, fitted: dict[str, Any]) -> None:
        """Set fitted attributes from the untrusted values of a model file."""
        fitted = dict(fitted)
        types = {"sample": (RowSample, type(None))}
        sample = checked_state({"sample": fitted.pop("sample", None)}, types)["sample"]
        super().restore(fitted)
        if self.solver_ is None:
            self.__dict__.update(ONE_PASS)
        if "statistics_" not in vars(self):  # it was prepared, and has learned no rows
            for name in ONE_PASS:
                delattr(self, name)
            return
        if self.solver_ not in SOLVERS[1:] or self.loss_ not in self.losses:
            raise ValueError("solver_ and loss_ must be among those that there are.")
        statistics = self.statistics_
        self._samples = {} if statistics is None else {statistics.version: sample}
        self._posterior = None

    def check_restored(self) -> None:
        """Refuse fitted attributes that are not consistent."""
        shapes = []
        if "statistics_" not in vars(self):
            super().check_restored()
            self.check_targets(None)
            return
        if self.statistics_ is not None:
            shapes.append((self.statistics_.n_features, self.statistics_.n_targets))
        if self._model is not None:
            shapes.append(self._model.coef.shape)
        sample = self._sample()
        if sample is not None:
            shapes.append((sample.features.shape[1], sample.targets.shape[1]))
        if len({*shapes}) > 1:
            raise ValueError("statistics, sample and weights must have the same shape.")
        super().check_restored()
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
    def validated_by(
        self, loss: str, outputs: Array, targets: NDArray[Any], weights: Array
    ) -> Validation:
        """What held-out rows with these outputs and encoded targets say; there may be none."""

    @abstractmethod
    def shaped(self, values: Any) -> Any:
        """A value of the solved model in the shape that users see."""

    @abstractmethod
    def merge_statistics(self, other: Any) -> None:
        """Add the statistics of another model with equal features, in one step."""

    @abstractmethod
    def check_targets(self, n_targets: int | None) -> None:
        """Refuse target attributes from a file that do not match the number of targets.

        The number is None if no rows were learned.
        """
