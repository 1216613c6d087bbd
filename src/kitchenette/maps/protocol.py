"""The interface of a fitted feature map, used by the estimators and by maps over other maps.

Every map of this package is a `FittedMap`. A class of your own is one if it has these methods.
`fitted_map` translates pipelines of scikit-learn's scalers, imputers and encoders to a
`PreparedMap`, and wraps any other transformer that treats rows one by one, to call its
``transform``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from kitchenette.comparison import first_difference
from kitchenette.data.drawing import DrawnRows, FirstRows
from kitchenette.data.reduction import Reducible
from kitchenette.data.rows import take
from kitchenette.files.budget import Budget
from kitchenette.files.fields import checked_state
from kitchenette.files.registry import register
from kitchenette.maps.translation import prepared_map
from kitchenette.sketching.operators import Operator
from kitchenette.sketching.specification import Cost, Specification


@runtime_checkable
class FittedMap(Protocol):
    """A fitted feature map with ``n_features_out_`` features.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood
    >>> from kitchenette.maps.protocol import FittedMap
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> fastfood = Fastfood(n_components=64, random_state=0).fit(X)
    >>> isinstance(fastfood, FittedMap)
    True
    >>> rows, Z = fastfood.rows(X), np.empty((10, 64))
    >>> fastfood.operator(rows).write(rows, Z)  # whether all features are finite
    True
    """

    @property
    def n_features_out_(self) -> int:
        """The number of features."""

    def rows(self, X: Any) -> Any:
        """Check a user's rows and convert them to the array or CSR matrix that `operator` takes."""

    def operator(self, rows: Any) -> Operator:
        """The operator that writes the features of ``rows`` into memory, in their precision.

        Its method ``collapse`` gives a cheaper operator for prediction if the last step is linear.
        """

    def overflow(self, rows: Any) -> str:
        """The error message for ``rows``, checked by `rows`, with a feature that is not finite."""

    def for_inference(self) -> Self:
        """A map that computes the same features, without the data for further fitting."""

    def identity(self) -> Any:
        """A value that is equal, up to rounding, for maps that compute the same features."""


class TransformerMap:
    """Any fitted scikit-learn transformer that treats rows one by one, as a `FittedMap`.

    The first row of ``X`` is transformed to find the number of features and their precision.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> from kitchenette.maps.protocol import TransformerMap
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> TransformerMap(RBFSampler(n_components=32).fit(X), X).n_features_out_
    32
    """

    def __init__(self, estimator: Any, X: Any):
        self.estimator = estimator
        with missing_values_explained(estimator):
            one = _dense(estimator.transform(take(X, slice(0, 1))))
        if one.ndim != 2 or one.shape[0] != 1:
            raise ValueError(_shape_message(estimator, f"{one.shape} for one row"))
        self.n_features_out_ = one.shape[1]
        self._operator = TransformerOperator(estimator, one.shape[1], one.dtype)

    def rows(self, X: Any) -> Any:
        """The rows unchanged, because the transformer checks them."""
        return X

    def operator(self, rows: Any) -> Operator:
        """The transformer's ``transform``."""
        return self._operator

    def overflow(self, rows: Any) -> str:
        """The error message for rows of which a feature is not finite."""
        return (
            f"{type(self.estimator).__name__} gave features that are NaN or infinity for these "
            "rows. Check them for missing values, or scale them down."
        )

    def for_inference(self) -> Self:
        """The map itself."""
        return self

    def identity(self) -> Any:
        """The transformer with all its attributes."""
        return self.estimator


class TransformerOperator(Operator):
    """Features by the ``transform`` of a fitted scikit-learn transformer."""

    def __init__(self, estimator: Any, n_features: int, dtype: np.dtype[Any]):
        self.n_columns = getattr(estimator, "n_features_in_", 0)
        self.n_features = n_features
        self.dtype = dtype
        self._estimator = estimator

    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        """Write the features of the rows to ``out``; False if one of them is not finite."""
        names = getattr(self._estimator, "feature_names_in_", None)
        if names is not None and isinstance(rows, np.ndarray):
            rows = _frame(rows, names)  # an array would make it warn of missing names
        with missing_values_explained(self._estimator):
            Z = _dense(self._estimator.transform(rows))
        if Z.shape != out.shape:
            raise ValueError(_shape_message(self._estimator, f"{Z.shape} instead of {out.shape}"))
        out[:] = Z
        return bool(np.isfinite(out).all())


def _shape_message(estimator: Any, shape: str) -> str:
    return (
        "feature_map must give a row of features for each row of data; "
        f"{type(estimator).__name__} gave an array of shape {shape}."
    )


def _frame(rows: NDArray[Any], names: Any) -> Any:
    import pandas as pd  # type: ignore[import-untyped]  # installed wherever names of columns come from pandas

    return pd.DataFrame(rows, columns=names)


def _dense(Z: Any) -> NDArray[Any]:
    Z = Z.toarray() if sp.issparse(Z) else np.asarray(Z)
    return Z if Z.dtype == np.float32 else Z.astype(np.float64, copy=False)


def thawed(estimator: Any) -> Any:
    """The estimator without the `FrozenEstimator` objects around it."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


def is_frozen(estimator: Any) -> bool:
    """Whether a transformer is fitted and not to be fitted again."""
    return isinstance(estimator, FrozenEstimator)


def frozen_like(estimator: Any, fitted: Any) -> Any:
    """A fitted map, frozen if the transformer that it replaces is frozen."""
    return FrozenEstimator(fitted) if is_frozen(estimator) else fitted


def fitted_map(estimator: Any, X: Any) -> FittedMap:
    """A fitted transformer that treats rows one by one as a `FittedMap`; ``X`` are rows it accepts.

    Pipelines of steps that `kitchenette.maps.translation` knows become a `PreparedMap`; any other
    transformer that is not a `FittedMap` is wrapped in a `TransformerMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from kitchenette.maps.protocol import fitted_map
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> fitted_map(PolynomialFeatures(2).fit(X), X).n_features_out_
    10
    """
    estimator = thawed(estimator)
    if isinstance(estimator, FittedMap):
        return estimator
    prepared = prepared_map(estimator)
    if prepared is None or (sp.issparse(X) and not prepared.specification_.preparation.keeps_zeros):
        return TransformerMap(estimator, X)
    return prepared


def fit_map(
    estimator: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    population: int | None = None,
    copies: Any = None,
    drawn: DrawnRows | FirstRows | None = None,
    everything: Reducible | None = None,
) -> Any:
    """A fitted copy of a transformer; a frozen one is not fitted again.

    Transformers with a method ``fit_supervised`` get targets, weights, the number ``population``
    of rows of which these are a sample, and how often each row of it was there (``copies``).
    Those with ``fit_rows`` get weights; others ignore them. Both get the rows to choose on
    (``drawn``), and maps that look at all rows get ``everything``, where ``X`` is a sample.
    """
    made = clone(estimator)
    if is_frozen(made):
        return made
    if hasattr(made, "fit_supervised"):
        if not isinstance(drawn, DrawnRows):
            return made.fit_supervised(X, y, sample_weight, population, copies)
        return made.fit_supervised(
            drawn.X,
            drawn.y,
            drawn.sample_weight,
            drawn.population if population is None else population,
            drawn.copies,
            drawn.keys,
        )
    if drawn is None and copies is not None:  # rows of a sample, in the order of their keys
        drawn = FirstRows(X, sample_weight)
    if everything is not None and getattr(made, "observes", False):
        return made.fit_rows(X, sample_weight, drawn, everything)
    if hasattr(made, "fit_rows") and (sample_weight is not None or drawn is not None):
        return made.fit_rows(X, sample_weight, drawn)
    with missing_values_explained(made):
        return made.fit(X, y)


@contextmanager
def missing_values_explained(estimator: Any) -> Iterator[None]:
    """Replace the advice of scikit-learn to use another model by what helps with this map."""
    try:
        yield
    except ValueError as error:
        if "HistGradientBoosting" not in str(error):
            raise
        raise ValueError(
            f"Input X contains NaN (missing values), which {type(estimator).__name__} does not "
            "take. Put an imputer before it, as in make_pipeline(SimpleImputer(), "
            f"{type(estimator).__name__}(...)), or use a map of kitchenette, before which missing "
            "values are filled with medians."
        ) from error


@dataclass(frozen=True, kw_only=True, eq=False)
class ForeignSpecification(Specification):
    """A map of another package inside a map of this one; it cannot be stored in model files."""

    fitted: Any  # the fitted map

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        if isinstance(self.fitted, TransformerMap):
            return TransformerOperator(self.fitted.estimator, self.n_components, dtype)
        return self.fitted.operator(np.empty((0, self.n_columns), dtype))

    def cost(self) -> Cost:
        return Cost(0, 0)


def specification_of(estimator: Any, X: Any) -> Specification:
    """The specification of a fitted map or, for rows like ``X``, of any fitted transformer."""
    fitted = fitted_map(estimator, X)
    identity = fitted.identity()
    if isinstance(identity, Specification):
        return identity
    return ForeignSpecification(
        n_columns=X.shape[1], n_components=fitted.n_features_out_, seed=0, fitted=fitted
    )


def map_difference(a: FittedMap, b: FittedMap) -> str | None:
    """The name of the first attribute in which two fitted maps differ, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood
    >>> from kitchenette.maps.protocol import map_difference
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> one, other = (Fastfood(n_components=64, random_state=seed).fit(X) for seed in (0, 1))
    >>> map_difference(one, one) is None, map_difference(one, other)
    (True, 'seed')
    """
    return first_difference(a.identity(), b.identity())


def _frozen_to_file(frozen: FrozenEstimator) -> dict[str, Any]:
    estimator = frozen.estimator
    prepared = None if isinstance(estimator, FittedMap) else prepared_map(estimator)
    return {"estimator": estimator if prepared is None else prepared}


def _frozen_from_file(state: dict[str, Any], budget: Budget) -> FrozenEstimator:
    return FrozenEstimator(checked_state(state, {"estimator": Any})["estimator"])


register(FrozenEstimator, _frozen_to_file, _frozen_from_file)
