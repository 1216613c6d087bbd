"""The base class of regressor and classifier: rows come in, as arrays or from a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _num_samples

from kitchenette.data.collections import as_rows
from kitchenette.data.drawing import DrawnRows
from kitchenette.data.observations import RULES
from kitchenette.data.rows import table, take
from kitchenette.data.schema import DataError
from kitchenette.data.source import Block, Source
from kitchenette.learning.base import Array
from kitchenette.learning.checks import checked_weights
from kitchenette.learning.explained import ExplainedMachine
from kitchenette.learning.gram_storage import check_learning_memory
from kitchenette.learning.iterative import check_iterative_memory
from kitchenette.learning.machine_parameters import (
    SOLVERS,
    check_machine_parameters,
    is_word,
    without_one_pass,
)
from kitchenette.learning.many_passes import Lesson, ManyPassMachine
from kitchenette.learning.one_pass import ONE_PASS
from kitchenette.learning.predictor import Answer, Predictor
from kitchenette.learning.solved import SolvedMachine
from kitchenette.learning.summary import Summary
from kitchenette.learning.warm_start import Earlier
from kitchenette.maps.protocol import FittedMap
from kitchenette.maps.registry import automatic_map
from kitchenette.parameters import replaced_at_once, shallow_copy
from kitchenette.sketching.random import seed_from

NAMES = {"target_names_": np.ndarray, "weight_name_": str}  # of the columns of a source


def _refuse_targets(y: Any, sample_weight: Any) -> None:
    if y is not None or sample_weight is not None:
        raise ValueError(
            "A source has its own targets and weights: name them when it is made, and pass none."
        )


class KernelMachine(SolvedMachine, ManyPassMachine, ExplainedMachine):
    """A linear model of random features, learned from their statistics or in many passes.

    Each part is in a module of its own: how targets are coded (`target_machine`), what one pass
    keeps (`one_pass`) and how that is solved (`solved`), learning in many passes
    (`many_passes`), and importances of columns (`explained`).
    """

    target_names_: NDArray[Any]
    weight_name_: str
    default_map = "'auto'"
    abilities = (
        "predicts",
        "learn from more rows, merge with others, or tell how sure a prediction is",
    )

    def _unfitted_map(self, seed: int) -> Any:
        if self.feature_map is None or is_word(self.feature_map, "auto"):
            return automatic_map(self.task, seed)
        return self.feature_map

    def _check_parameters(self) -> None:
        self._check_feature_map()
        check_machine_parameters(self)

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
            numbers, strings or anything that can be sorted.
        sample_weight : array-like of shape (n_rows,), optional
            Nonnegative weights. A row of weight 2 counts as two rows; transformers of other
            packages are fitted without weights.

        Returns
        -------
        self : object
            The fitted model.
        """
        with replaced_at_once(self) as draft:
            draft._check_parameters()
            X, y, sample_weight = as_rows(X, y, sample_weight)
            earlier = draft._earlier()
            draft._forget()
            draft._begin(X, y, sample_weight, iterates=draft.iterates, earlier=earlier)
            draft.solve()  # at once, so that errors are raised by `fit`
        return self

    def learn_batch(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """`partial_fit` with checked parameters; ``classes`` are set by the first batch."""
        if self._is_prepared:
            self._continue(X, y, sample_weight)
        else:
            with replaced_at_once(self) as draft:
                draft.know_labels(classes)
                draft._begin(X, y, sample_weight)
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
            learned = self.learned_iteratively(Lesson(fitted, X, targets, weights, earlier))
        else:
            learned = self.learned(fitted, X, targets, weights)
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
        try:
            self.__dict__.update(vars(self.with_labels_of(y)))
            targets = self.encode(y, first=False)
        except ValueError as error:
            raise source.located(error) from error
        n_targets = self.columns(targets[:1]).shape[1]
        check_iterative_memory(targets.shape[0], self._fitted.n_features_out_, n_targets, self.loss)
        weights = None if weights is None else checked_weights(weights, targets.shape[0])
        weights = self.weighted(targets, weights)
        lesson = Lesson(self._fitted, source, targets, weights, earlier)
        self.__dict__.update(self.learned_iteratively(lesson))

    def _prepare_with(self, source: Source, iterates: Callable[[int], bool] | None = None) -> None:
        """Fit the feature map and the coding of targets on a sample of a source."""
        self.seed_ = seed_from(self.random_state)
        sample = source.drawn(self._drawing_seed())
        if sample.y is None:
            raise DataError("The source has no target: name the column to be predicted.")
        try:
            self._prepare(sample.X, sample.y, sample.weight, iterates, source, sample)
        except ValueError as error:
            raise source.located(error) from error
        self.remember_names(source)

    def remember_names(self, source: Source) -> None:
        """Keep the names of the columns of a source that are targets and weights, if they have any.

        Parameters
        ----------
        source : Source
            What the model learns from.
        """
        if source.target_names:
            self.target_names_ = np.array(source.target_names, dtype=object)
        if isinstance(source.weight, str):
            self.weight_name_ = source.weight

    def _prepare(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        iterates: Callable[[int], bool] | None = None,
        source: Source | None = None,
        sample: Block | None = None,
    ) -> tuple[Any, NDArray[Any], Array | None]:
        """Fit the feature map and the coding of targets on rows, which are returned checked.

        If the rows are a ``sample`` of a ``source``, both are given.
        """
        X, targets, weights = self._checked_batch(X, y, sample_weight, first=True)

        def check(n_features: int) -> None:
            # Before the map is fitted, the precision of its features is not known.
            if iterates is None or not iterates(n_features):
                check_learning_memory(
                    n_features, np.float32, n_rows=X.shape[0], n_sampled=self.validation_rows
                )
            else:
                n_targets = self.columns(targets[:1]).shape[1]
                check_iterative_memory(X.shape[0], n_features, n_targets, self.loss)

        y = self.decoded(targets)
        drawn = self._drawn(X, y, weights, sample)
        population = None if sample is None else sample.population
        rule = RULES[0] if drawn is None else drawn.observation_rule(population)
        feature_map, fitted = self._fitted_maps(X, y, weights, check, source, sample, drawn)
        self.__dict__.update(feature_map_=feature_map, _fitted=fitted, observation_rule_=rule)
        return X, targets, weights

    def _drawn(
        self, X: Any, y: Any, weights: Array | None, sample: Block | None
    ) -> DrawnRows | None:
        """The distinct rows with which the learner is prepared; None if there are no numbers."""
        if getattr(X, "dtype", np.dtype(float)).kind not in "biuf":
            return None  # a transformer of another package makes numbers of them
        copies = None if sample is None or sample.n_rows != X.shape[0] else sample.copies
        return self._drawing(X).of_rows(X, y, weights, copies)

    def learned(
        self, fitted: FittedMap, X: Any, targets: Any, weights: Array | None
    ) -> dict[str, Any]:
        """The attributes that hold what is learned from the first batch."""
        if isinstance(X, Source):
            return self.attributes_of(self.summary_of_source(X))
        n_sampled = self.validation_rows
        return self.attributes_of(self.summary_of_rows(fitted, X, targets, weights, n_sampled))

    def _continue(self, X: Any, y: Any, sample_weight: Any, *, remove: bool = False) -> None:
        """Add or remove rows; the model changes in a single last step."""
        if isinstance(X, Source):
            _refuse_targets(y, sample_weight)
            if remove:
                raise ValueError("Rows are removed as arrays or data frames, not as a source.")
            found = self.summary_of_source(X)
            if "statistics_" in vars(self):
                found = self.summary(found.origin).combined(found)
            self.adopt(found)
            return
        draft = shallow_copy(self)  # targets of another precision change it
        X, targets, weights = draft._checked_batch(X, y, sample_weight, first=False)
        if "statistics_" not in vars(self):  # it was prepared on other rows
            draft.__dict__.update(draft.learned(draft._fitted, X, targets, weights))
        elif any(vars(draft)[name] is not vars(self)[name] for name in self.target_attributes):
            # The statistics are copied, so that they and the other attributes change together.
            draft.adopt(draft.summary("").copied())
            draft.learn_more(X, targets, weights, remove)
        else:
            self.learn_more(X, targets, weights, remove)
            return
        self.__dict__ = draft.__dict__

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

    def _why_without_statistics(self) -> str:
        if self.solver_ == "iterative":
            return f"learned by an iterative solver (loss {self.loss_!r}), without statistics"
        return super()._why_without_statistics()

    def make_predictor(self, dtype: DTypeLike | None, answer: Answer) -> Predictor:
        """A `Predictor` of a `snapshot`, by default in the precision of the features learned."""
        model = self._model
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

    @classmethod
    def fitted_types(cls) -> dict[str, Any]:
        """The names of the fitted attributes that are stored, and their types."""
        # Not in older files, or only in models that were fitted on columns with names.
        names = {"solver_": str, "loss_": str, "n_iter_": int, **NAMES}
        names["observation_rule_"] = str
        optional = {name: (kind, type(None)) for name, kind in names.items()}
        return {**super().fitted_types(), **cls.target_attributes, **optional}

    def restore(self, fitted: dict[str, Any]) -> None:
        """Set fitted attributes from the untrusted values of a model file."""
        super().restore(fitted)
        for name in NAMES:
            if getattr(self, name) is None:
                delattr(self, name)
        names = vars(self).get("target_names_", np.empty(0, object))
        if names.ndim != 1 or names.dtype != object:
            raise ValueError("target_names_ must be names.")
        if self.solver_ is None:
            self.__dict__.update(ONE_PASS)
        if "statistics_" not in vars(self):  # it was prepared, and has learned no rows
            for name in ONE_PASS:
                delattr(self, name)
        elif self.solver_ not in SOLVERS[1:] or self.loss_ not in self.losses:
            raise ValueError("solver_ and loss_ must be among those that there are.")
