"""A fitted pipeline of scikit-learn as a map of this package."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from kitchenette.columns.table_columns import known_columns
from kitchenette.data.rows import (
    FLOATS,
    is_finite_matrix,
    is_table,
    refuse_what_is_not_numbers,
    without_missing,
)
from kitchenette.data.schema import KnownColumn
from kitchenette.data.tables import plain_rows
from kitchenette.files.registry import storable
from kitchenette.kernels.base import canonical, native_order
from kitchenette.maps.base import RowMap
from kitchenette.maps.prepared import Coder, PreparedSpecification


@storable
class PreparedMap(RowMap):
    """A fitted pipeline of scikit-learn, as numbers of this package.

    It computes the features of the pipeline and has all abilities of other maps: files, merging,
    native prediction. `kitchenette.maps.protocol.fitted_map` makes it from a fitted pipeline; it
    is not fitted itself. In a loaded model it stands for the pipeline that was saved.

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
    map_: RowMap | None  # the fitted map of the prepared columns
    by_name_: bool  # whether columns of data frames are found by name, in any order

    def __init__(self) -> None:
        pass

    @property
    def choice_(self) -> Any:
        """The `Choice` of the map of the prepared columns."""
        choice = getattr(vars(self).get("map_"), "choice_", None)
        if choice is None:
            raise AttributeError("choice_ exists if the map of the columns is an AutoMap.")
        return choice

    def check_parameters(self) -> None:
        """There are none: it is made of a fitted pipeline."""

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

    def fit_rows(
        self, X: Any, sample_weight: Any = None, drawn: Any = None, everything: Any = None
    ) -> NoReturn:
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

        Missing numbers (NaN) are accepted here; the operator refuses features of them that no step
        fills.
        """
        specification: PreparedSpecification = self.fitted()
        if specification.vocabularies or not is_finite_matrix(self, X):
            X = self._converted(X)
            if "medians_" in vars(self):
                X = without_missing(self, X)
        if sp.issparse(X) and not specification.preparation.keeps_zeros:
            raise ValueError(
                "Sparse rows are accepted after steps that keep zeros, such as "
                "StandardScaler(with_mean=False), MaxAbsScaler or Normalizer; this pipeline has "
                "others. Pass dense rows."
            )
        self.check_rows(X)
        return X

    def prepared_rows(self, X: Any) -> NDArray[Any]:
        """The prepared columns of rows, which the inner map takes."""
        rows = self.rows(X)
        prepared = self.specification_.preparation.prepared(rows)
        if not np.isfinite(prepared).all():
            raise ValueError(self.overflow(rows))
        return prepared

    def has_row_checks(self) -> bool:
        return self.map_ is not None and self.map_.has_row_checks()

    def check_rows(self, rows: Any) -> None:
        if self.map_ is not None and self.map_.has_row_checks():
            self.map_.check_rows(self.specification_.preparation.prepared(rows))

    def _converted(self, X: Any) -> Any:
        refuse_what_is_not_numbers(X)
        specification = self.specification_
        if self.by_name_ and hasattr(X, "columns"):
            X = self._in_order(X)
        read = specification.preparation.reads()
        if read.all() and not specification.vocabularies:
            if is_table(X):
                X = plain_rows(X, vars(self).get("feature_names_in_"))
                return check_array(X, dtype=FLOATS, ensure_all_finite="allow-nan", estimator=self)
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

    def known_columns(self) -> dict[str, KnownColumn]:
        specification, names = self.specification_, vars(self).get("feature_names_in_")
        if names is None:
            return {}
        return known_columns(names, specification.preparation, specification.vocabularies)

    def _in_order(self, X: Any) -> Any:
        """The columns of a data frame in the order of fitting; unused ones may be missing."""
        names, read = self.feature_names_in_, self.specification_.preparation.reads()
        missing = [str(name) for name in names[read] if name not in X.columns]
        if missing:
            raise ValueError(f"columns are missing: {', '.join(missing[:10])}.")
        return X.reindex(columns=names) if hasattr(X, "reindex") else X.select(list(names))

    @property
    def coder(self) -> Coder | None:
        """What turns rows into numbers if some columns may be others, or None."""
        specification = self.specification_
        numbers = not specification.vocabularies and specification.preparation.reads().all()
        return None if numbers else Coder(specification)

    def _coded(self, X: Any, read: NDArray[np.bool_]) -> NDArray[Any]:
        """Rows of numbers: codes in place of strings, zeros in columns that are not read."""
        if not hasattr(X, "columns"):
            X = X.toarray() if sp.issparse(X) else np.asarray(X)
        vocabularies = {
            vocabulary.column: vocabulary for vocabulary in self.specification_.vocabularies
        }
        numeric = [j for j in np.flatnonzero(read) if j not in vocabularies]
        numbers = None
        if numeric:
            some = X.iloc[:, numeric] if hasattr(X, "iloc") else X[:, numeric]
            numbers = check_array(
                some, dtype=FLOATS, ensure_all_finite="allow-nan", input_name="X", estimator=self
            )
        in_float32 = numbers is not None and numbers.dtype == np.float32 and not vocabularies
        rows = np.zeros((X.shape[0], self.n_features_in_), np.float32 if in_float32 else np.float64)
        if numbers is not None:
            rows[:, numeric] = numbers
        for column, vocabulary in vocabularies.items():
            values = X.iloc[:, column] if hasattr(X, "iloc") else X[:, column]
            rows[:, column] = vocabulary.codes(values)
        return rows

    def overflow(self, rows: Any) -> str:
        """The error message for rows of which a feature is not finite."""
        numbers = rows.data if sp.issparse(rows) else rows
        lost = self._lost(rows)
        if lost.any():
            filled = rows.copy()
            (filled.data if sp.issparse(rows) else filled)[np.isnan(numbers)] = 0
            if (lost & ~self._lost(filled)).any():
                return (
                    "Input X contains NaN, which no step of the pipeline replaces. Put "
                    "sklearn.impute.SimpleImputer into it."
                )
            return (
                "Found unknown categories in these rows, which the encoder of the pipeline did not "
                "see in fit. Use OneHotEncoder(handle_unknown='ignore')."
            )
        largest = np.abs(numbers).max(initial=0)
        return (
            f"The features of these rows overflowed {rows.dtype}; their largest entry is "
            f"{largest:g}. {self.overflow_advice}"
        )

    def _lost(self, rows: Any) -> NDArray[np.bool_]:
        """Which prepared numbers are missing."""
        prepared = self.specification_.preparation.prepared(rows)
        return np.isnan(prepared.data if sp.issparse(prepared) else prepared)

    # ------------------------------------------------------------ files

    fitted_types: ClassVar[dict[str, Any]] = {
        **RowMap.fitted_types,
        "map_": RowMap | None,
        "by_name_": bool,
    }

    def restore(self, fitted: dict[str, Any]) -> None:
        super().restore(fitted)
        if (
            self.map_ is not None
            and vars(self.map_).get("specification_") is not self.specification_.inner
        ):
            raise ValueError("map_ must be the fitted map of the prepared columns.")
        if self.by_name_ and "feature_names_in_" not in vars(self):
            raise ValueError("by_name_ needs names of columns.")
