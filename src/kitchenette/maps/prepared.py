"""A preparation of columns followed by a map, as one specification and one fitted map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, validate_data

from kitchenette.data.rows import FLOATS, refuse_what_is_not_numbers
from kitchenette.files.registry import Budget, checked_state, storable
from kitchenette.kernels.base import canonical, native_order
from kitchenette.maps.base import RowMap
from kitchenette.maps.preparation import Preparation
from kitchenette.maps.specification import Cost, Specification
from kitchenette.sketching.operators import (
    Chain,
    Linear,
    NativeChain,
    NativeOperator,
    Operator,
    affine,
)

UNKNOWN_WORD = -1.0  # the code of a word that no step knows
NO_WORD = -2.0  # the code of None; NaN stays NaN


@storable
@dataclass(frozen=True, eq=True)
class Vocabulary:
    """The words of a column of strings; each is coded by its place.

    Attributes
    ----------
    column : int
        The column.
    words : tuple of str
        The words.
    """

    column: int
    words: tuple[str, ...]

    def codes(self, values: Any) -> NDArray[np.float64]:
        """The codes of an array of strings, None and NaN."""
        places: dict[Any, float] = {word: float(place) for place, word in enumerate(self.words)}
        places[None] = NO_WORD
        return np.array([_code(value, places) for value in np.asarray(values, dtype=object)])

    def to_file(self) -> dict[str, Any]:
        """All values, for a model file."""
        return {"column": self.column, "words": np.array(self.words, dtype=object)}

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A vocabulary from the untrusted values of a model file."""
        state = checked_state(state, {"column": int, "words": np.ndarray})
        words = tuple(state["words"].tolist())
        if not all(isinstance(word, str) for word in words) or len({*words}) < len(words):
            raise ValueError("the words must be different strings.")
        return cls(state["column"], words)


def _code(value: Any, places: dict[Any, float]) -> float:
    if isinstance(value, float) and value != value:
        return np.nan
    if value is None or isinstance(value, str):
        return places.get(value, UNKNOWN_WORD)
    return UNKNOWN_WORD


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedSpecification(Specification):
    """Prepared columns, and the features of a map of them.

    Attributes
    ----------
    preparation : Preparation
        The preparation of the columns.
    inner : Specification or None
        The map of the prepared columns; None if they are the features.
    vocabularies : tuple of Vocabulary
        The columns that are strings in the data and codes in the rows of the operator.
    """

    preparation: Preparation
    inner: Specification | None
    vocabularies: tuple[Vocabulary, ...] = ()

    @classmethod
    def of(
        cls,
        preparation: Preparation,
        inner: Specification | None = None,
        vocabularies: tuple[Vocabulary, ...] = (),
    ) -> Self:
        """The specification of these parts."""
        made = cls(
            n_columns=preparation.n_columns,
            n_components=preparation.n_outputs if inner is None else inner.n_components,
            seed=0 if inner is None else inner.seed,
            precision="float64" if inner is None else inner.precision,
            preparation=preparation,
            inner=inner,
            vocabularies=vocabularies,
        )
        made.check()
        return made

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        first, n = self.preparation.operator(dtype), self.preparation.n_outputs
        # Without a map, copying the columns checks that no number is missing or infinite.
        second = affine(n, 0.0, 1.0, dtype) if self.inner is None else self.inner.operator(dtype)
        return prepared_operator(self.preparation, first, second)

    def cost(self) -> Cost:
        return Cost(0, 0)  # all parts are counted as objects of their own

    def fingerprint(self) -> list[float]:
        """That of the map; the preparation consists of numbers that files contain."""
        return [] if self.inner is None else self.inner.fingerprint()

    def check(self) -> None:
        super().check()
        n_outputs = self.preparation.n_outputs
        if self.preparation.n_columns != self.n_columns:
            raise ValueError("the preparation must have as many columns as the map.")
        if self.inner is not None and self.inner.n_columns != n_outputs:
            raise ValueError(f"the inner map must have {n_outputs} columns.")
        if self.n_components != (n_outputs if self.inner is None else self.inner.n_components):
            raise ValueError("n_components must be those of the inner map.")
        columns = [vocabulary.column for vocabulary in self.vocabularies]
        if not all(isinstance(vocabulary, Vocabulary) for vocabulary in self.vocabularies):
            raise ValueError("vocabularies must be vocabularies.")
        if not {*columns} <= {*range(self.n_columns)} or len({*columns}) < len(columns):
            raise ValueError("there must be one vocabulary at most for each column.")


# ---------------------------------------------------------------- operators


def prepared_operator(preparation: Preparation, first: Operator, second: Operator) -> Operator:
    """``second`` applied to prepared rows; sparse rows stay sparse where the preparation can."""
    if isinstance(first, NativeOperator) and isinstance(second, NativeOperator):
        return NativePreparedChain(preparation, first, second)
    return PreparedChain(preparation, first, second)


class _Prepared(Operator):
    """What the two chains below have in common."""

    preparation: Preparation
    first: Any
    second: Any

    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        if sp.issparse(rows) and self.preparation.keeps_zeros:
            fine: bool = self.second.write(self.preparation.sparse_rows(rows), out)
            return fine
        return super().write(rows, out)  # type: ignore[safe-super]

    def linear(self, weights: ArrayLike, intercept: ArrayLike) -> Linear:
        dense = super().linear(weights, intercept)
        if not self.preparation.keeps_zeros:
            return dense
        return PreparedLinear(self.preparation, dense, self.second.linear(weights, intercept))

    def collapse(self, weights: NDArray[Any]) -> tuple[Operator, NDArray[Any]]:
        cheaper, weights = self.second.collapse(weights)
        if cheaper is self.second:
            return self, weights
        return prepared_operator(self.preparation, self.first, cheaper), weights


class NativePreparedChain(_Prepared, NativeChain):
    """A preparation and a map, both in native code."""

    def __init__(self, preparation: Preparation, first: NativeOperator, second: NativeOperator):
        NativeChain.__init__(self, first, second)
        self.preparation, self.second = preparation, second


class PreparedChain(_Prepared, Chain):
    """A preparation and a map that is not native."""

    def __init__(self, preparation: Preparation, first: Operator, second: Operator):
        Chain.__init__(self, first, second)
        self.preparation = preparation


class PreparedLinear(Linear):
    """A linear function of the features of prepared rows, dense or sparse."""

    def __init__(self, preparation: Preparation, dense: Linear, prepared: Linear):
        self._preparation, self._dense, self._prepared = preparation, dense, prepared
        self.n_targets = dense.n_targets

    def write(self, rows: Any, out: NDArray[np.float64]) -> bool:
        if sp.issparse(rows):
            return self._prepared.write(self._preparation.sparse_rows(rows), out)
        return self._dense.write(rows, out)


# ---------------------------------------------------------------- the fitted map


@storable
class PreparedMap(RowMap):
    """A fitted pipeline of scikit-learn, as numbers of this package.

    It computes the features of the pipeline and has all abilities of other maps: files, merging,
    native prediction. `kitchenette.maps.protocol.fitted_map` makes it from a fitted pipeline; it
    is not fitted itself. In a loaded model it stands for the pipeline that was saved.

    Attributes
    ----------
    specification_ : PreparedSpecification
        The preparation and the map.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, if they had any.
    map_ : map or None
        The fitted map of the prepared columns.
    by_name_ : bool
        Whether columns of data frames are found by name, in any order.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kitchenette import Fastfood
    >>> from kitchenette.maps.protocol import fitted_map
    >>> X = np.random.default_rng(0).normal(size=(100, 5)) * 1000
    >>> pipeline = make_pipeline(StandardScaler(), Fastfood(n_components=64)).fit(X)
    >>> prepared = fitted_map(pipeline, X)
    >>> np.allclose(prepared.transform(X), pipeline.transform(X))
    True
    """

    specification_class = PreparedSpecification
    specification_: PreparedSpecification
    map_: RowMap | None
    by_name_: bool

    def __init__(self) -> None:
        pass

    @classmethod
    def of(
        cls,
        specification: PreparedSpecification,
        fitted: RowMap | None = None,
        names: Any = None,
        *,
        by_name: bool = False,
    ) -> Self:
        """The map of a specification; ``fitted`` is the estimator of its inner map."""
        made = cls()
        made.specification_, made.map_ = specification, fitted
        made.n_features_in_, made.by_name_ = specification.n_columns, by_name
        if names is not None:
            made.feature_names_in_ = np.asarray(names, dtype=object)
        return made

    def fit_rows(self, X: Any, sample_weight: Any = None) -> NoReturn:
        raise ValueError(
            "A PreparedMap is what a fitted pipeline became. To fit anew, make a pipeline; to use "
            "this one, pass sklearn.frozen.FrozenEstimator(prepared_map)."
        )

    def choose(
        self, sample: Any, seed: int, sample_weight: Any = None, observed: Any = None
    ) -> NoReturn:
        """Not possible: the map is made from a fitted pipeline."""
        self.fit_rows(sample)

    def rows(self, X: Any) -> Any:
        """Check and convert rows: names, strings to codes, no infinite numbers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows as the pipeline takes them. Missing numbers (NaN) are accepted here; features of
            them that no step fills are refused by the operator.

        Returns
        -------
        rows : ndarray or CSR matrix
        """
        specification: PreparedSpecification = self.fitted()
        if not self._is_plain(X):
            X = self._converted(X)
        if sp.issparse(X) and not specification.preparation.keeps_zeros:
            raise ValueError(
                "Sparse rows are accepted after steps that keep zeros, such as "
                "StandardScaler(with_mean=False), MaxAbsScaler or Normalizer; this pipeline has "
                "others. Pass dense rows."
            )
        self.check_rows(X)
        return X

    def has_row_checks(self) -> bool:
        return self.map_ is not None and self.map_.has_row_checks()

    def check_rows(self, rows: Any) -> None:
        if self.map_ is not None and self.map_.has_row_checks():
            self.map_.check_rows(self._prepared(rows))

    def _prepared(self, rows: Any) -> Any:
        preparation = self.specification_.preparation
        if sp.issparse(rows) and preparation.keeps_zeros:
            return preparation.sparse_rows(rows)
        out = np.empty((rows.shape[0], preparation.n_outputs), dtype=rows.dtype)
        preparation.operator(rows.dtype).write(rows, out)
        return out

    def _is_plain(self, X: Any) -> bool:
        """Whether rows need no conversion: a finite float matrix without names."""
        if (
            type(X) is not np.ndarray
            or X.ndim != 2
            or X.shape[0] == 0
            or X.shape[1] != self.n_features_in_
            or X.dtype not in FLOATS
            or "feature_names_in_" in vars(self)
            or self.specification_.vocabularies
        ):
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite(X.sum()))

    def _converted(self, X: Any) -> Any:
        refuse_what_is_not_numbers(X)
        specification = self.specification_
        if self.by_name_ and hasattr(X, "columns"):
            X = self._in_order(X)
        read = specification.preparation.reads()
        if read.all() and not specification.vocabularies:
            X = validate_data(
                self,
                native_order(X),
                accept_sparse="csr",
                dtype=FLOATS,
                reset=False,
                ensure_all_finite="allow-nan",
            )
            return canonical(X)
        X = validate_data(self, X, reset=False, skip_check_array=True)
        return self._coded(X, read)

    def _in_order(self, X: Any) -> Any:
        """The columns of a data frame in the order of fitting; unused ones may be missing."""
        names, read = self.feature_names_in_, self.specification_.preparation.reads()
        missing = [str(name) for name in names[read] if name not in X.columns]
        if missing:
            raise ValueError(f"columns are missing: {', '.join(missing[:10])}.")
        return X.reindex(columns=names) if hasattr(X, "reindex") else X.select(list(names))

    @property
    def takes_strings(self) -> bool:
        """Whether some columns may be other than numbers."""
        specification = self.specification_
        return bool(specification.vocabularies) or not specification.preparation.reads().all()

    def coded(self, X: Any) -> Any:
        """Rows of strings and numbers with their columns in order, as numbers; one may be 1-D."""
        X = np.asarray(X, dtype=object)
        rows = X[None] if X.ndim == 1 else X
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"A row must have {self.n_features_in_} columns; got an array of shape {X.shape}."
            )
        return self._coded(rows, self.specification_.preparation.reads()).reshape(X.shape)

    def _coded(self, X: Any, read: NDArray[np.bool_]) -> NDArray[Any]:
        """Rows of numbers, with strings replaced by codes and zeros in columns that are not read."""
        if not hasattr(X, "columns"):
            X = X.toarray() if sp.issparse(X) else np.asarray(X)
        words = {vocabulary.column: vocabulary for vocabulary in self.specification_.vocabularies}
        numeric = [j for j in np.flatnonzero(read) if j not in words]
        numbers = None
        if numeric:
            some = X.iloc[:, numeric] if hasattr(X, "iloc") else X[:, numeric]
            numbers = check_array(
                some, dtype=FLOATS, ensure_all_finite="allow-nan", input_name="X", estimator=self
            )
        single = numbers is not None and numbers.dtype == np.float32 and not words
        rows = np.zeros((X.shape[0], self.n_features_in_), np.float32 if single else np.float64)
        if numbers is not None:
            rows[:, numeric] = numbers
        for column, vocabulary in words.items():
            values = X.iloc[:, column] if hasattr(X, "iloc") else X[:, column]
            rows[:, column] = vocabulary.codes(values)
        return rows

    def overflow(self, rows: Any) -> str:
        """The error message for rows of which a feature is not finite."""
        numbers = rows.data if sp.issparse(rows) else rows
        missing = np.isnan(numbers).any()
        with np.errstate(all="ignore"):
            prepared = self._prepared(rows)
            prepared = prepared.data if sp.issparse(prepared) else prepared
        if np.isnan(prepared).any() and missing:
            return (
                "Input X contains NaN, which no step of the pipeline replaces. Put "
                "sklearn.impute.SimpleImputer into it."
            )
        if np.isnan(prepared).any():
            return (
                "Found unknown categories in these rows, which the encoder of the pipeline did not "
                "see in fit. Use OneHotEncoder(handle_unknown='ignore')."
            )
        largest = np.abs(numbers).max(initial=0)
        return (
            f"The features of these rows overflowed {rows.dtype}; their largest entry is "
            f"{largest:g}. {self.overflow_advice}"
        )

    # ------------------------------------------------------------ files

    def fitted_to_file(self) -> dict[str, Any]:
        return {**super().fitted_to_file(), "map_": self.map_, "by_name_": self.by_name_}

    def restore(self, fitted: dict[str, Any]) -> None:
        fitted = dict(fitted)
        self.map_, self.by_name_ = fitted.pop("map_", None), fitted.pop("by_name_", False)
        super().restore(fitted)
        if self.map_ is not None and (
            not isinstance(self.map_, RowMap)
            or vars(self.map_).get("specification_") is not self.specification_.inner
        ):
            raise ValueError("map_ must be the fitted map of the prepared columns.")
        named = "feature_names_in_" in vars(self)
        if not isinstance(self.by_name_, bool) or (self.by_name_ and not named):
            raise ValueError("by_name_ must be True or False, and needs names.")
