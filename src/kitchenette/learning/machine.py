"""What the two estimators share: a feature map, statistics of its features, their solution."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from copy import copy
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, check_consistent_length, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from kitchenette import _core
from kitchenette._params import ValueParameters
from kitchenette.learning.blocks import Features, features_of, rows_of, slices
from kitchenette.learning.comparison import first_difference
from kitchenette.learning.least_squares import (
    LeastSquares,
    checked_alpha,
    checked_rows,
    checked_weights,
)
from kitchenette.learning.packed import Array
from kitchenette.learning.predictor import Answer, Predictor
from kitchenette.learning.progress import with_progress
from kitchenette.learning.solution import Solution
from kitchenette.learning.threads import BLAS, one_blas_thread
from kitchenette.maps import Fastfood
from kitchenette.maps._base import RowTransformer, unchanged_on_error

BLOCK_ROWS = 4096  # that learning computes at once, at most
BLOCK_NUMBERS = 1 << 20  # features that predictions compute at once
LEARNED_NUMBERS = 1 << 22  # features that learning computes at once ...
LEAST_ROWS = 256  # ... or those of so many rows
SOLVED = (
    "alpha_",
    "coef_",
    "intercept_",
    "log_marginal_likelihood_",
    "collapsed_coef_",
    "_has_intercept",
)
REMEMBERED = ("_posterior",)  # computed again when needed, and not pickled


class KernelMachine(ValueParameters, ABC):
    """A linear model of random features, learned from their statistics.

    A subclass turns what it is asked to predict into columns of numbers, in `_encode` and
    `_columns`, and back.
    """

    _stored: ClassVar[dict[str, Any]] = {
        "feature_map_": (RowTransformer, FrozenEstimator),
        "statistics_": (LeastSquares, type(None)),
        "n_features_in_": int,
        "feature_names_in_": np.ndarray,
        "alpha_": float,
        "coef_": np.ndarray,
        "intercept_": (float, np.ndarray),
        "log_marginal_likelihood_": float,
        "collapsed_coef_": (np.ndarray, type(None)),
        "_has_intercept": bool,
        "_single": bool,
    }
    _required: ClassVar[tuple[str, ...]] = (
        "feature_map_",
        "statistics_",
        "n_features_in_",
        "_single",
    )
    feature_map: Any
    alpha: Any
    fit_intercept: Any
    verbose: Any
    feature_map_: Any
    _single: bool
    statistics_: LeastSquares | None
    n_features_in_: int

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        of_map = get_tags(self._unfitted_map())
        tags.input_tags = of_map.input_tags
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the feature map and learn from all rows, in one pass over blocks of them.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows, as the feature map takes them.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            What is to be predicted.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, not negative. A row of weight 2 counts as two rows, except to the
            feature map, which sees every row once.

        Returns
        -------
        self : object
            The fitted model.
        """
        with unchanged_on_error(self):
            self._check_parameters()
            self._forget()
            self._learn(X, y, sample_weight)
            # Now, because a fitted model should not fail later.
            self._solve()
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Add rows to the statistics; the first ones also make the map."""
        first = "statistics_" not in vars(self)
        known = None if first else self._known()
        X = self._checked(X, reset=first)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        targets = self._encode(y, first)
        check_consistent_length(X, targets)
        weights = None if sample_weight is None else checked_weights(sample_weight, X.shape[0])
        if known is None:
            self.feature_map_ = clone(self._unfitted_map()).fit(X, y)
            self.statistics_ = self._statistics_of(X, targets, weights)
        elif X.shape[0] > BLOCK_ROWS:
            # Apart, so that an error in a late block leaves the statistics as they were.
            known.merge(self._statistics_of(X, targets, weights))
        else:
            Z = features_of(self.feature_map_, X)
            known.update(Z, self._columns(targets), weights)
        self._single = self._known().single
        self._forget_solution()

    def _statistics_of(self, X: Any, targets: NDArray[Any], weights: Array | None) -> LeastSquares:
        n_rows = X.shape[0]
        one = features_of(self.feature_map_, rows_of(X, slice(0, 1)))
        n_features, n_targets = one.shape[1], self._columns(targets[:1]).shape[1]
        size = min(max(LEARNED_NUMBERS // n_features, LEAST_ROWS), BLOCK_ROWS)
        blocks = list(slices(n_rows, size))
        accumulator = _core.Accumulator(
            n_features, n_targets, n_rows + len(blocks), single=one.dtype == np.float32
        )
        progress = with_progress(blocks, n_rows, type(self).__name__) if self.verbose else blocks
        memory = None
        for rows in progress:
            # Kept: new memory costs the operating system a good part of a block's time.
            Z = memory = features_of(self.feature_map_, rows_of(X, rows), memory)
            Y = self._columns(targets[rows])
            some = None if weights is None else weights[rows]
            block = checked_rows(Z, Y, some, n_features, n_targets)
            with one_blas_thread():
                accumulator.add(*block, blas=BLAS)
        with one_blas_thread():
            return LeastSquares._of(accumulator.finish(blas=BLAS))

    def merge(self, other: Self) -> Self:
        """Add the rows that another model has seen; that one does not change.

        Parameters
        ----------
        other : object
            A fitted model of the same class with an equal feature map. Maps that depend
            on data are equal if they were fitted once and passed on as
            `sklearn.frozen.FrozenEstimator`.

        Returns
        -------
        self : object
            This model, as if fitted on the rows of both. The parameters are its own.
        """
        self._known()
        if type(other) is not type(self):
            raise ValueError(
                f"{type(self).__name__} merges with models of its class; got "
                f"{type(other).__name__}."
            )
        other._known()
        for name in ("n_features_in_", "feature_names_in_"):
            if first_difference(getattr(self, name, None), getattr(other, name, None), name):
                raise ValueError(f"Cannot merge models of different columns: {name} differs.")
        maps = _thawed(self.feature_map_), _thawed(other.feature_map_)
        difference = first_difference(*maps)
        if difference is not None:
            raise ValueError(
                "Cannot merge models whose feature maps differ, as their statistics are of "
                f"different features (the first difference is in {difference!r}). Give the "
                "map a random_state, and if it depends on data, fit it once on a sample and "
                "pass it to every model as sklearn.frozen.FrozenEstimator(feature_map)."
            )
        with unchanged_on_error(self):
            self._merge_statistics(other)
            self._single = self._known().single
            self._forget_solution()
        return self

    def _predictor(self, dtype: DTypeLike | None, answer: Answer) -> Predictor:
        feature_map, weights = self._linear()
        if dtype is None:
            dtype = np.float32 if self._single else np.float64
        return Predictor(
            _thawed(feature_map),
            weights,
            np.atleast_1d(self.intercept_),
            self.n_features_in_,
            np.dtype(dtype),
            answer,
        )

    def _check_fitted(self) -> None:
        if "statistics_" not in vars(self):
            check_is_fitted(self, "statistics_")

    def _known(self) -> LeastSquares:
        """The statistics; a model that was saved without them has none."""
        self._check_fitted()
        if self.statistics_ is None:
            raise ValueError(
                "This model was saved without its statistics: it predicts, but it cannot learn "
                "from more rows, merge with others, or tell how sure a prediction is."
            )
        return self.statistics_

    def _without_statistics(self) -> Self:
        """A copy that only predicts, for files."""
        self._check_fitted()
        self.coef_  # noqa: B018 (computed now if it was not)
        copied = copy(self)
        copied.statistics_ = None
        copied.feature_map_ = _only_transforming(self.feature_map_)
        if self.feature_map is self.feature_map_:  # frozen: one object, stored once
            copied.feature_map = copied.feature_map_
        else:
            copied.feature_map = clone(self.feature_map, safe=False)
        return copied

    # Lazy, because a solution costs as much as many rows: `partial_fit` and `merge` only
    # forget these, and whoever asks for one of them next has all of them computed.

    @cached_property
    def alpha_(self) -> float:
        return self._solve("alpha_")

    @cached_property
    def coef_(self) -> Array:
        return self._solve("coef_")

    @cached_property
    def intercept_(self) -> Any:
        return self._solve("intercept_")

    @cached_property
    def log_marginal_likelihood_(self) -> float:
        return self._solve("log_marginal_likelihood_")

    @cached_property
    def collapsed_coef_(self) -> Array | None:
        return self._solve("collapsed_coef_")

    @cached_property
    def _has_intercept(self) -> bool:
        return self._solve("_has_intercept")

    def _solve(self, name: str = "coef_") -> Any:
        solution = self._known().solve(self.alpha, fit_intercept=self.fit_intercept)
        collapse = getattr(self.feature_map_, "collapse", None)
        self.__dict__.update(
            alpha_=solution.alpha,
            coef_=self._shaped(np.ascontiguousarray(solution.coef.T)),
            intercept_=self._shaped(solution.intercept),
            log_marginal_likelihood_=solution.log_marginal_likelihood,
            collapsed_coef_=None if collapse is None else collapse(solution.coef),
            _has_intercept=solution.fit_intercept,
        )
        return vars(self)[name]

    @cached_property
    def _posterior(self) -> Solution:
        """The solution once more, with its factor, which is as large as the statistics."""
        known = self._known()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said when it was solved first
            return known.solve(self.alpha_, fit_intercept=self._has_intercept)

    def _forget_solution(self) -> None:
        for name in (*SOLVED, *REMEMBERED):
            self.__dict__.pop(name, None)

    def _forget(self) -> None:
        for name in (*self._required, "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._forget_solution()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in REMEMBERED}

    def _restore(self, max_bytes: int) -> int:
        """Check what came from a model file; nothing is left to be made."""
        feature_map = _thawed(self.feature_map_)
        n_targets, n_features = self._shape()
        if not isinstance(feature_map, RowTransformer) or feature_map._n_features_out != n_features:
            raise ValueError("feature_map_ must have as many features as the statistics.")
        if feature_map.n_features_in_ != self.n_features_in_:
            raise ValueError("feature_map_ must have as many columns as the model.")
        shapes: dict[str, Any] = {
            "alpha_": (),
            "coef_": self._shaped(np.empty((n_targets, n_features))).shape,
            "intercept_": np.shape(self._shaped(np.empty(n_targets))),
            "log_marginal_likelihood_": (),
            "collapsed_coef_": None,
            "_has_intercept": (),
        }
        if hasattr(self.feature_map_, "collapse"):
            shapes["collapsed_coef_"] = (self.feature_map_.base_._n_features_out, n_targets)
        missing = [name for name in self._required if name not in vars(self)]
        if missing:
            raise ValueError(f"{missing[0]} is missing.")
        solved = [name for name in SOLVED if name in vars(self)]
        if solved and len(solved) < len(SOLVED):
            raise ValueError("a part of the solution is missing.")
        for name in solved:
            value, shape = vars(self)[name], shapes[name]
            if (value is None) != (shape is None):
                raise ValueError(f"{name} does not suit the feature map.")
            if value is None or name == "log_marginal_likelihood_":
                continue
            if np.shape(value) != shape or not np.isfinite(value).all():
                raise ValueError(f"{name} must be finite and of shape {shape}.")
            if isinstance(value, np.ndarray) and value.dtype != np.float64:
                raise ValueError(f"{name} must be of type float64.")
            if name == "alpha_" and value < 0:
                raise ValueError("alpha_ must not be negative.")
        return 0

    def _shape(self) -> tuple[int, int]:
        """The numbers of targets and features."""
        if self.statistics_ is not None:
            return self.statistics_.n_targets, self.statistics_.n_features
        if "coef_" not in vars(self):
            raise ValueError("There are neither statistics nor weights.")
        n_targets, n_features = np.atleast_2d(vars(self)["coef_"]).shape
        return n_targets, n_features

    def _outputs(self, X: Any) -> Features:
        """Predictions of all columns: features times weights, a block of rows at a time."""
        self._check_fitted()
        feature_map, weights = self._linear()
        X = self._checked(X, reset=False)
        n_rows = X.shape[0]
        outputs, memory = None, None
        for rows in slices(n_rows, max(16, BLOCK_NUMBERS // weights.shape[0])):
            Z = features_of(feature_map, rows_of(X, rows), memory)
            if outputs is None:
                outputs, memory = np.empty((n_rows, weights.shape[1]), Z.dtype), Z
                weights = weights.astype(Z.dtype)
            np.matmul(Z, weights, out=outputs[rows])
        assert outputs is not None
        outputs += np.asarray(self.intercept_, outputs.dtype)
        return outputs

    def _linear(self) -> tuple[Any, Array]:
        """A map, and the weights of its features: of its base features if it is linear in them."""
        if self.collapsed_coef_ is not None:
            return self.feature_map_.base_, self.collapsed_coef_
        return self.feature_map_, np.atleast_2d(self.coef_).T

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Rows whose names and number of columns are checked; their numbers the map checks."""
        if (
            not reset
            and type(X) is np.ndarray
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and "feature_names_in_" not in vars(self)
        ):
            return X  # at once, as the general checks take longer than a few rows
        if hasattr(X, "columns"):
            # The map may want its names and its types, and converts a block at a time.
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

    def _unfitted_map(self) -> Any:
        return self._default_map() if self.feature_map is None else self.feature_map

    def _default_map(self) -> Any:
        # A seed, so that equal data give equal models.
        return Fastfood(random_state=0)

    def _check_parameters(self) -> None:
        feature_map = self._unfitted_map()
        if isinstance(feature_map, type) or not hasattr(feature_map, "transform"):
            raise ValueError(
                "feature_map must be a feature map of kitchenette, or another object with fit and "
                f"transform that works row by row; got {feature_map!r}."
            )
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept must be True or False; got {self.fit_intercept!r}.")
        checked_alpha(self.alpha)

    @abstractmethod
    def _encode(self, y: Any, first: bool) -> NDArray[Any]:
        """Checked targets; the first ones say what there is to predict."""

    @abstractmethod
    def _columns(self, targets: NDArray[Any]) -> Array:
        """Some of the encoded targets as columns of numbers."""

    @abstractmethod
    def _shaped(self, values: Array) -> Any:
        """Numbers of all columns, first axis, in the shape of the attributes."""

    @abstractmethod
    def _merge_statistics(self, other: Any) -> None:
        """Add another model's statistics, of equal features."""


def _thawed(feature_map: Any) -> Any:
    while isinstance(feature_map, FrozenEstimator):
        feature_map = feature_map.estimator
    return feature_map


def _only_transforming(feature_map: Any) -> Any:
    """The map without what it needs to learn from more rows, if it has that."""
    if isinstance(feature_map, FrozenEstimator):
        return FrozenEstimator(_only_transforming(feature_map.estimator))
    if hasattr(feature_map, "_without_statistics"):
        return feature_map._without_statistics()
    return feature_map
