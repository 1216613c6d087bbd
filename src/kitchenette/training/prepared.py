"""What is fixed before rows are learned: the fitted map, the target coding, the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

from kitchenette.comparison import digest
from kitchenette.data.csv_errors import NULLS
from kitchenette.data.keys import Keys, has_plain_numbers
from kitchenette.data.observations import RULES
from kitchenette.data.profile import NAME_OF_IDENTIFIER
from kitchenette.data.rows import (
    array_of_lists,
    is_table,
    numbers_of_objects,
    refuse_what_is_not_numbers,
    table,
    take,
)
from kitchenette.data.schema import KnownColumn, refuse_other_kinds
from kitchenette.data.source import Block
from kitchenette.data.tables import (
    columns_by_name,
    has_numbers_only,
    is_frame,
    is_plain_frame,
    plain_rows,
    schema_of,
    selected,
    table_of,
    with_text_names,
    without_index,
)
from kitchenette.data.targets import refuse_lazy_frames
from kitchenette.files.budget import Budget
from kitchenette.files.fields import (
    Count,
    Interval,
    Options,
    Shape,
    Unsigned,
    checked,
    checked_state,
    field_types,
    validate,
)
from kitchenette.files.registry import storable
from kitchenette.kernels.base import checked_sparse
from kitchenette.learning.least_squares import checked_weights
from kitchenette.learning.leave_one_out import RowSample
from kitchenette.learning.partial import Batch, Partial, Parts, accumulate, batch
from kitchenette.learning.target_coding import NoTargets, NumberCoding
from kitchenette.maps.base import RowMap
from kitchenette.maps.protocol import FittedMap, is_frozen, map_difference, thawed
from kitchenette.maps.table_map import TableMap
from kitchenette.sketching.random import LARGEST_SEED
from kitchenette.training.feature_maps import fills_missing, takes_numbers

Array = NDArray[np.float64]
STORED = (
    "feature_map",
    "coding",
    "seed",
    "n_columns",
    "names",
    "observation_rule",
    "target_names",
    "weight_name",
    "validation_rows",
    "class_weight",
)  # the values of `Prepared` that files have


def is_balanced(class_weight: Any) -> bool:
    """Whether class weights are balanced."""
    return isinstance(class_weight, str) and class_weight == "balanced"


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Checked rows with encoded targets; those of weight zero are left out, unless all are."""

    X: Any  # the rows; the map checks their values
    targets: NDArray[Any]  # their encoded targets
    weights: Array | None  # their weights
    coding: Any  # by which targets are encoded
    # Which rows of those that were given are left; None if all are
    kept: NDArray[np.intp] | None = None
    hashes: Keys | None = None  # their hash values, if they are known

    @classmethod
    def of(
        cls, X: Any, targets: Any, sample_weight: Any, coding: Any, class_weight: Any
    ) -> EncodedRows:
        """Checked rows and encoded targets, with weights of equal length."""
        if targets is not None:
            check_consistent_length(X, targets)
        weights = None if sample_weight is None else checked_weights(sample_weight, X.shape[0])
        weights, kept = coding.weighted(targets, weights, class_weight), None
        X = table(X)
        if weights is not None and weights.any() and not weights.all():
            kept = np.flatnonzero(weights)
            X, weights = take(X, kept), weights[kept]
            targets = None if targets is None else targets[kept]
        targets = NoTargets.of(X.shape[0]) if targets is None else targets
        return cls(X, targets, weights, coding, kept)

    @property
    def count(self) -> bool:
        """Whether any row has a positive weight."""
        return self.weights is None or bool(self.weights.any())

    def block(self, given: Block) -> Block:
        """The rows as a block with targets as users give them, of which ``given`` was encoded."""
        y, kept = self.coding.decoded(self.targets), self.kept
        copies, keys = given.copies, given.keys
        if copies is not None and keys is not None and kept is not None:
            copies, keys = copies[kept], keys[kept]
        return Block(self.X, y, self.weights, 0, copies, given.population, keys)


@storable
@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """A fitted map, the coding of the targets, and the columns; it knows no rows."""

    estimator: str
    feature_map: Any  # the fitted map as users see it
    fitted: FittedMap  # the fitted map as models use it
    coding: Any  # how targets become columns of numbers
    seed: Annotated[int, Interval(0, LARGEST_SEED)]
    n_columns: Count
    names: Annotated[NDArray[Any] | None, Shape("n_columns")] = None
    # What repeated rows and weights count for; see `kitchenette.data.observations`
    observation_rule: Annotated[str, Options(*RULES)] = "weights"
    validation_rows: Unsigned = 0  # the size of the sample of rows that is kept
    class_weight: Any = None  # the weights of classes
    # The names of the columns to be predicted
    target_names: Annotated[NDArray[np.object_] | None, Shape(None)] = None
    weight_name: str | None = None  # the name of the column of weights

    def to_file(self) -> dict[str, Any]:
        """What the parameters of the estimator do not tell, for a model file."""
        current = thawed(self.feature_map)
        if isinstance(current, FittedMap):
            # The map may have been fitted on more rows.
            replaced = map_difference(current, self.fitted) is not None
        else:
            # A pipeline is stored as the numbers that its steps consist of.
            replaced = not is_frozen(self.feature_map) and isinstance(self.fitted, RowMap)
        return {
            **{name: getattr(self, name) for name in STORED},
            "feature_map": self.fitted if replaced else self.feature_map,
            "medians": getattr(self.fitted, "medians_", None),
        }

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Prepared:
        """What is prepared, from a model file; `for_problem` adds the parameters."""
        types = {name: field_types(cls)[name] for name in STORED}
        values = checked_state(state, {**types, "medians": Array | None})
        feature_map = thawed(values["feature_map"])
        if not isinstance(feature_map, FittedMap):
            raise ValueError("feature_map must be a feature map.")
        fitted: Any = feature_map.for_inference()
        medians = values.pop("medians")
        if medians is not None:
            fitted.medians_ = medians
        prepared = checked(cls(estimator="", fitted=fitted, **values))
        if getattr(fitted, "n_features_in_", 0) != prepared.n_columns:
            raise ValueError("feature_map must have as many columns as the model.")
        validate(fitted, {"medians_": Annotated[Array, Shape("n_features_in_")]})
        return prepared

    def check_shapes(self, partial: Partial | None, solution: Any) -> None:
        """Refuse statistics and a solution of a model file that do not belong together."""
        shapes = set()
        if partial is not None and partial.statistics is not None:
            shapes.add((partial.statistics.n_features, partial.statistics.n_targets))
        if partial is not None and partial.sample is not None:
            shapes.add((partial.sample.features.shape[1], partial.sample.targets.shape[1]))
        if solution is not None and not isinstance(self.coding, NoTargets):
            shapes.add(solution.coef.shape)
        if len(shapes) > 1:
            raise ValueError("statistics, sample and weights must have the same shape.")
        sizes = {self.fitted.n_features_out_, *(n_features for n_features, _ in shapes)}
        if solution is not None:
            sizes.add(solution.coef.shape[0])
        if len(sizes) > 1:
            raise ValueError("feature_map must have as many features as the statistics.")
        self.coding.check_targets(next((n_targets for _, n_targets in shapes), None))

    def origin(self) -> str:
        """A digest of everything but the labels, which may be extended."""
        return digest(
            {
                "class": self.estimator,
                "map": self.fitted.identity(),
                "n_columns": self.n_columns,
                "names": self.names,
                "validation_rows": self.validation_rows,
                "class_weight": self.class_weight,
                "ndim": self.coding.ndim if isinstance(self.coding, NumberCoding) else None,
            }
        )

    @property
    def rule(self) -> str:
        """What repeated rows and weights count for in the statistics."""
        # Given weights of classes are part of the weights of rows.
        weighted = isinstance(self.class_weight, Mapping)
        return "rows" if weighted and self.observation_rule == "weights" else self.observation_rule

    def adopted(self, partial: Partial) -> Partial:
        """The partial of a model file as one of this map and coding."""
        empty = self.empty()
        names = ("estimator", "origin", "classes", "target_dtype")
        return checked(replace(partial, **{name: getattr(empty, name) for name in names}))

    def empty(self, coding: Any = None) -> Partial:
        """The partial of no rows."""
        coding = self.coding if coding is None else coding
        return Partial(
            estimator=self.estimator,
            origin=self.origin(),
            classes=coding.classes,
            target_dtype=coding.dtype,
        )

    def partial(self, rows: EncodedRows, title: str | None = None) -> Partial:
        """The partial of some rows; with a title, progress is shown."""
        coding, n_sampled = rows.coding, self.validation_rows
        X, targets, weights = rows.X, rows.targets, rows.weights

        def accumulated(X: Any, targets: NDArray[Any], weights: Any, keys: Any) -> Any:
            return accumulate(
                self.fitted, X, targets, coding, weights, keys, n_sampled=n_sampled, title=title
            )

        empty = self.empty(coding)
        if not is_balanced(self.class_weight):
            statistics, sample = accumulated(X, targets, weights, rows.hashes)
            return replace(empty, n_rows=statistics.n_rows, settled=statistics, sample=sample)
        parts: Parts = [None] * coding.classes.size
        samples: list[RowSample] = []
        for number in np.unique(targets):
            of_class = np.flatnonzero(targets == number)
            units = None if weights is None else weights[of_class]
            keys = None if rows.hashes is None else rows.hashes[of_class]
            parts[number], sample = accumulated(take(X, of_class), targets[of_class], units, keys)
            samples.append(sample)
        n_rows = sum(part.n_rows for part in parts if part is not None)
        whole = samples[0].combined(*samples[1:]) if n_sampled else None
        return replace(empty, n_rows=n_rows, by_class=parts, sample=whole)

    def batch(self, X: Any, targets: NDArray[Any], weights: Array | None) -> Batch:
        """The features of a few checked rows, and what belongs to them."""
        with_keys = self.validation_rows > 0
        rows = self.fitted.rows(X)
        return batch(self.fitted, rows, targets, self.coding, weights, with_keys=with_keys)

    # ------------------------------------------------------------ rows as users pass them

    def checked(self, X: Any) -> Any:
        """Further rows, with the columns of the first ones; the map checks their values."""
        if (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_columns
            and X.dtype.kind in "fiub"
            and self.names is None
        ):
            return X  # the general checks take longer than predicting a few rows
        refuse_lazy_frames(X, "X")
        if is_frame(X) or (isinstance(X, Mapping) and not sp.issparse(X)):
            X = self._table(table_of(X) if isinstance(X, Mapping) else X)
            if is_table(X) or isinstance(X, np.ndarray):
                return X
        owner = _named(self.estimator)()
        owner.n_features_in_ = self.n_columns
        if self.names is not None:
            owner.feature_names_in_ = self.names
        return _validated(owner, X, reset=False, numeric=takes_numbers(self.fitted))

    def _table(self, X: Any) -> Any:
        """A data frame with the columns of the first rows, as a table where the map wants one."""
        fitted, names = self.fitted, None if self.names is None else [*self.names]
        if isinstance(fitted, TableMap):
            return _not_empty(fitted.table(X), self.estimator)
        if is_plain_frame(X):
            X = X if names is None else columns_by_name(X, names)
            if names is None or not takes_numbers(fitted) or has_plain_numbers(X):
                return X
            refuse_what_is_not_numbers(X)
        X = table_of(X)
        if isinstance(fitted, RowMap) and names is not None:
            return _not_empty(selected(X, names), self.estimator)  # the map converts blocks
        return _not_empty(plain_rows(X, names), self.estimator)

    def encoded(self, block: Block, *, extend: bool = False) -> EncodedRows:
        """Further rows as a model takes them, with targets among those of a coding."""
        X, coding = self.checked(block.X), self.coding
        if not isinstance(coding, NoTargets):
            refuse_no_targets(self.estimator, block.y)
        coding, targets = coding.encoded(block.y, extend=extend)
        return EncodedRows.of(X, targets, block.weight, coding, self.class_weight)

    def known_columns(self) -> dict[str, KnownColumn]:
        """The columns that have names, and what the model takes them for.

        They are those to predict from, and a target of strings.
        """
        # Transformers of other packages take columns of any kind.
        columns = self.fitted.known_columns() if isinstance(self.fitted, RowMap) else {}
        classes, names = self.coding.classes, self.target_names
        if (
            names is not None
            and len(names) == 1
            and classes is not None
            and classes.dtype.kind in "OUS"
        ):
            texts = {label for label in classes.tolist() if isinstance(label, str)}
            columns[str(names[0])] = KnownColumn("category", frozenset(NULLS & texts))
        return columns

    def columns_of(self, rows: Any) -> Any:
        """The rows of a source with the columns of the model alone, read as it has them."""
        if not rows.is_table or self.names is None:
            return rows
        rows, fitted = rows.read_as(self.known_columns()), self.fitted
        names = fitted.read_names if isinstance(fitted, TableMap) else self.names
        return rows.with_columns([*map(str, names)])

    def with_names(self, rows: Any) -> Prepared:
        """The same with the names of the columns of targets and weights of a source."""
        names = rows.target_names
        return replace(
            self,
            target_names=np.array(names, dtype=object) if names else self.target_names,
            weight_name=rows.weight_name or self.weight_name,
        )

    def check_mergeable(self, other: Prepared) -> None:
        """Refuse another one of other columns or features."""
        mine, theirs = (np.empty(0) if p.names is None else p.names for p in (self, other))
        if self.n_columns != other.n_columns or not np.array_equal(mine, theirs):
            raise ValueError(
                "Cannot merge models of different columns: n_features_in_ or feature_names_in_ "
                "differs."
            )
        if getattr(self.coding, "ndim", 1) != getattr(other.coding, "ndim", 1):
            raise ValueError(
                "Cannot merge models of which one was given vectors of targets and the other "
                "matrices."
            )
        difference = map_difference(self.fitted, other.fitted)
        if difference is not None:
            raise ValueError(
                "Cannot merge models whose feature maps differ, as their statistics are of "
                f"different features (the first difference is in {difference!r}). Give the "
                "map a random_state, and if it depends on data, fit it once on a sample and "
                "pass it to every model as sklearn.frozen.FrozenEstimator(feature_map)."
            )


# ---------------------------------------------------------------- rows as users pass them


@dataclass(frozen=True)
class InputColumns:
    """The columns of the first rows of an estimator."""

    count: int  # their number
    names: NDArray[Any] | None


@cache
def _named(estimator: str) -> type:
    """A class of this name, for scikit-learn's checks, whose messages name the estimator."""
    return type(estimator, (BaseEstimator,), {})


def checked_first_rows(estimator: str, feature_map: Any, X: Any) -> tuple[Any, InputColumns]:
    """The first rows of an estimator, and their columns."""
    refuse_lazy_frames(X, "X")
    if is_frame(X) or (isinstance(X, Mapping) and not sp.issparse(X)):
        X, columns = _first_table(estimator, feature_map, X)
        if columns is not None:
            return X, columns
    owner = _named(estimator)()
    X = _validated(owner, X, reset=True, numeric=fills_missing(feature_map))
    return X, InputColumns(owner.n_features_in_, getattr(owner, "feature_names_in_", None))


def _validated(owner: Any, X: Any, *, reset: bool, numeric: bool) -> Any:
    """Rows that scikit-learn has checked, but for their values."""
    X = array_of_lists(X)
    refuse_what_is_not_numbers(X)
    if sp.issparse(X):
        X = checked_sparse(X)
    if hasattr(X, "columns"):
        # A data frame stays one: the map may need its names and types, and converts blocks.
        return _not_empty(validate_data(owner, X, reset=reset, skip_check_array=True), owner)
    X = validate_data(
        owner, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False
    )
    return numbers_of_objects(X) if numeric else X


def _first_table(estimator: str, unfitted: Any, X: Any) -> tuple[Any, InputColumns | None]:
    """A data frame as an Arrow table, if its columns are to be prepared; else as it is."""
    X = table_of(X) if isinstance(X, Mapping) else X
    if is_plain_frame(X):
        X = with_text_names(X)
    feature_map = thawed(unfitted)
    own = isinstance(feature_map, TableMap) or fills_missing(unfitted)
    if not own and not is_table(X):
        return X, None  # a pipeline may prepare the columns in its own way
    if not is_table(X):
        refuse_what_is_not_numbers(X)
        named = any(map(NAME_OF_IDENTIFIER.fullmatch, map(str, X.columns)))
        if not isinstance(feature_map, TableMap) and has_numbers_only(X) and not named:
            return X, None
    arrow_table = _not_empty(without_index(table_of(X)), estimator)
    names = arrow_table.column_names
    if isinstance(feature_map, TableMap):
        arrow_table, names = feature_map.table(arrow_table), feature_map.feature_names_in_
    refuse_other_kinds(schema_of(arrow_table.schema, {}), "frame.drop(columns={!r})")
    return arrow_table, InputColumns(len(names), np.array(names, dtype=object))


def _not_empty(rows: Any, owner: Any) -> Any:
    if rows.shape[0] == 0:
        name = owner if isinstance(owner, str) else type(owner).__name__
        raise ValueError(
            f"Found array with 0 sample(s) (shape={rows.shape}) while a minimum of 1 is required "
            f"by {name}."
        )
    return rows


def refuse_no_targets(estimator: str, y: Any) -> None:
    """Refuse rows without targets."""
    if y is None:
        raise ValueError(f"{estimator} requires y to be passed, but the target y is None.")
