"""The base class of all estimators that learn from statistics of the features of a map."""

from __future__ import annotations

import numbers
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from kitchenette.comparison import digest
from kitchenette.data.drawing import (
    ARRAY_ROWS,
    MAP_ROWS,
    Drawing,
    DrawnRows,
    table_sample_rows,
)
from kitchenette.data.keys import has_plain_numbers
from kitchenette.data.rows import (
    array_of_lists,
    has_missing,
    is_table,
    numbers_of_objects,
    refuse_what_is_not_numbers,
    slices,
    take,
)
from kitchenette.data.schema import DataError, KnownColumn, refuse_other_kinds
from kitchenette.data.source import Block, Source, block_of
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
from kitchenette.files.registry import Budget, checked_state, constructed, stored_parameters
from kitchenette.kernels import Kernel
from kitchenette.kernels.base import checked_sparse
from kitchenette.learning.gram_storage import check_learning_memory
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.model import LinearFunction
from kitchenette.learning.summary import Summary, SummaryOf
from kitchenette.maps.base import RowMap
from kitchenette.maps.filling import filled_map, medians_of_some
from kitchenette.maps.preparation import check_numbers
from kitchenette.maps.prepared_map import PreparedMap
from kitchenette.maps.protocol import (
    FittedMap,
    fit_map,
    fitted_map,
    frozen_like,
    is_frozen,
    map_difference,
    thawed,
)
from kitchenette.maps.registry import is_automatic
from kitchenette.maps.table_map import TableMap
from kitchenette.maps.translation import takes_numbers_only
from kitchenette.parameters import ValueParameters, shallow_copy
from kitchenette.sketching.random import LARGEST_SEED, seed_from

Array = NDArray[np.float64]
NEXT_SEED = 0x9E3779B97F4A7C15  # the distance of the seeds of the steps of a pipeline
PREDICTED_ROWS = 1 << 14  # the size of the blocks in which data other than arrays is converted


class FeatureLearner(ValueParameters, ABC):
    """A feature map, statistics of its features, and what is computed from them when needed.

    What is computed is a `LinearFunction` of the features. A subclass computes it in `_solved`.
    """

    feature_map: Any
    feature_map_: Any
    statistics_: LeastSquares | None
    seed_: int
    n_features_in_: int
    _fitted: FittedMap  # feature_map_ with the interface of a FittedMap
    _model: Any  # a LinearFunction, perhaps of an earlier version of the statistics, or None
    model_class: ClassVar[type[LinearFunction]]
    default_map: ClassVar[str]  # the parameter that stands for the default map
    map_keyword: ClassVar[str] = ""  # what is written before a map in the call of the class
    task: ClassVar[str | None] = None  # what is predicted
    # What a model without statistics can do, and what it cannot, for an error message.
    abilities: ClassVar[tuple[str, str]]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        feature_map = self._unfitted_map(0)
        if hasattr(feature_map, "transform") and not isinstance(feature_map, type):
            tags.input_tags = get_tags(feature_map).input_tags
            if _fills_missing(feature_map):
                tags.input_tags.allow_nan = True  # they are filled
        return tags

    # ------------------------------------------------------------ the feature map

    @abstractmethod
    def _unfitted_map(self, seed: int) -> Any:
        """The map as given, or the default map with this seed."""

    def _drawing_seed(self) -> int:
        """The seed by which rows to choose on are drawn.

        It is that of the map, if it has one: then the map is the same in every fit.
        """
        given = getattr(self._unfitted_map(self.seed_), "random_state", None)
        return seed_from(given) if isinstance(given, numbers.Integral) else self.seed_

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

    def _drawing(self, X: Any) -> Drawing:
        """How the rows are drawn on which a map is chosen."""
        size = table_sample_rows(X.num_columns) if is_table(X) else ARRAY_ROWS
        return Drawing(size, self._drawing_seed())

    def _fitted_maps(
        self,
        X: Any,
        y: NDArray[Any] | None,
        weights: Array | None,
        check: Callable[[int], None] | None = None,
        source: Source | None = None,
        sample: Block | None = None,
        drawn: DrawnRows | None = None,
    ) -> tuple[Any, FittedMap]:
        """The map fitted on a first batch, as a transformer and as a `FittedMap`.

        It is chosen on rows that are drawn by their keys, so that their order does not matter.
        ``check`` is called before with the number of features, to refuse too many; by default
        it is the memory of their statistics that is checked. If the rows are a sample of a
        ``source``, that says how columns of a table become numbers. Rows that were ``drawn`` by
        `_drawing` are not drawn again.
        """
        feature_map = with_context(self._unfitted_map(self.seed_), self.seed_, self.task)
        n_components = getattr(feature_map, "n_components", None)
        if isinstance(n_components, int) and check is not None:
            check(n_components)
        elif isinstance(n_components, int):
            # Before the map is fitted, the precision of its features is not known.
            check_learning_memory(n_components, np.float32, n_rows=X.shape[0], n_sampled=0)
        if is_table(X) and not isinstance(thawed(feature_map), TableMap):
            if sample is None:
                drawn = self._drawing(X).of_rows(X, y, weights) if drawn is None else drawn
                sample = block_of(drawn)
            else:
                copies = sample.copies if sample.n_rows == X.num_rows else None
                sample = replace(sample, X=X, y=y, weight=weights, copies=copies)
            feature_map = _map_of_table(feature_map, sample, source)
            return feature_map, feature_map.for_inference()
        fills = _fills_missing(feature_map) and not sp.issparse(X)
        if fills and isinstance(X, np.ndarray) and has_missing(X) and not is_frozen(feature_map):
            if sample is None:
                drawn = self._drawing(X).of_rows(X, y, weights) if drawn is None else drawn
                sample = block_of(drawn)
            else:
                copies = sample.copies if sample.n_rows == X.shape[0] else None
                sample = replace(sample, X=X, y=y, weight=weights, copies=copies)
            feature_map = filled_map(feature_map, sample, source)
            return feature_map, feature_map.for_inference()
        own = isinstance(thawed(feature_map), RowMap)
        if sample is not None or not own or X.shape[0] <= MAP_ROWS:
            drawn = None
        elif drawn is None:
            drawn = self._drawing(X).of_rows(X, y, weights)
        of_sample = (None, None) if sample is None else (sample.population, sample.copies)
        feature_map = fit_map(
            feature_map,
            X,
            y,
            weights,
            population=of_sample[0],
            copies=of_sample[1] if sample is not None and sample.n_rows == X.shape[0] else None,
            drawn=drawn,
            everything=source,
        )
        # A copy, so that the model stays as it is if somebody fits the map on more rows.
        fitted: Any = fitted_map(feature_map, X).for_inference()
        if fills and (source is None or source.rules.missing == "median"):
            # On what the map was chosen. They stand for values that are missing in later rows.
            copies = None if sample is None else sample.copies
            fitted.medians_ = (
                medians_of_some(X, copies)
                if drawn is None
                else medians_of_some(drawn.X, drawn.copies)
            )
        return feature_map, fitted

    # ------------------------------------------------------------ statistics and the solution

    @abstractmethod
    def _solved(self) -> LinearFunction:
        """What the statistics give, with their version."""

    def _current(self) -> Any:
        """The solved model, which is computed if it is out of date."""
        return self.snapshot()._model

    def snapshot(self) -> Self:
        """A copy with the solved model and without statistics, which nobody changes.

        Predictions are made by such a copy, so that they belong to one state of this object,
        whatever other threads do to it meanwhile.
        """
        now = shallow_copy(self)
        model = now.solved_model()
        if model is None:
            with self._held() as now:
                model = now._model
        now.__dict__.update(statistics_=None, _model=model)
        return now

    @contextmanager
    def unchanged(self) -> Iterator[Self]:
        """A copy that keeps its attributes, whose statistics do not change within the context."""
        while True:
            statistics = vars(self).get("statistics_")
            with nullcontext() if statistics is None else statistics.unchanged():
                now = shallow_copy(self)
                if vars(now).get("statistics_") is statistics:
                    yield now
                    return
            # The object was fitted again before the statistics were held.

    @contextmanager
    def _held(self) -> Iterator[Self]:
        """A copy as in `unchanged`, with the solved model."""
        self._known()
        with self.unchanged() as now:
            if now.solved_model() is None:
                attributes, now._model = self.__dict__, now._solved()
                # If somebody fits the object again meanwhile, it gets other attributes.
                if attributes["statistics_"] is now.statistics_:
                    attributes["_model"] = now._model
            yield now

    def solved_model(self) -> Any:
        """The solved model, or None if it is out of date."""
        self._check_fitted()
        model = self._model
        fresh = model is not None and (
            self.statistics_ is None or model.version == self.statistics_.version
        )
        return model if fresh else None

    def _check_fitted(self) -> None:
        """Refuse a model that is not fitted."""
        if "statistics_" not in vars(self):
            check_is_fitted(self, "statistics_")

    def _known(self) -> LeastSquares:
        """The statistics; an error if the model was saved without them."""
        self._check_fitted()
        if self.statistics_ is None:
            can, cannot = self.abilities
            why = self._why_without_statistics()
            raise ValueError(f"This model was {why}: it {can}, but it cannot {cannot}.")
        return self.statistics_

    def _why_without_statistics(self) -> str:
        """How the statistics came to be missing."""
        return "saved without its statistics"

    @property
    def _is_prepared(self) -> bool:
        """Whether the feature map is fitted, whatever was learned with it."""
        return "feature_map_" in vars(self)

    def set_at_once(self, attributes: dict[str, Any]) -> None:
        """Set several attributes in a single step, so that no thread sees only some of them."""
        self.__dict__ = {**vars(self), **attributes}

    def _forget(self) -> None:
        """Remove all fitted attributes."""
        for name in [name for name in vars(self) if name.endswith("_") or name == "_model"]:
            delattr(self, name)

    def _check_mergeable(self, other: Any) -> None:
        """Refuse to merge with another object than a fitted model of the same features."""
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
        self._refuse_rows_twice(other)

    def _refuse_rows_twice(self, other: Any) -> None:
        """Refuse to merge with the model itself, and warn of a copy of it."""
        mine, theirs = self._known(), other._known()
        if mine is theirs:
            raise ValueError(
                "Cannot merge a model with itself: all its rows would count twice. Merge models of "
                "different rows."
            )
        if mine.n_rows > 0 and self.is_like(other):
            warnings.warn(
                f"Both models have the same statistics of {mine.n_rows:,} rows. If one is a copy "
                "of the other, these rows count twice from now on.",
                UserWarning,
                stacklevel=4,
            )

    def is_like(self, other: Self) -> bool:
        """Whether another fitted model may be a copy, as it has the same statistics."""
        return self._known().equals(other._known())

    # ------------------------------------------------------------ stages

    @abstractmethod
    def prepare_on(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> None:
        """Fit the feature map and the coding of targets on a sample, for `stages.prepare`."""

    @abstractmethod
    def summarised(self, X: Any, y: Any, sample_weight: Any) -> Summary:
        """The summary of some rows, for `stages.learn`."""

    def summary_of_source(self, source: Source) -> Summary:
        """The summary of all rows of a source."""
        source = source.read_as(self.known_columns())
        found: Summary | None = source.reduced(SummaryOf(self))
        if found is None or found.n_rows == 0:
            raise DataError("The source has no row of positive weight to learn from.")
        return found

    @abstractmethod
    def summary(self, origin: str) -> Summary:
        """The summary of all rows learned so far, which shares the statistics."""

    @abstractmethod
    def adopt(self, summary: Summary) -> None:
        """Replace what was learned by a summary, whose statistics are not copied."""

    @abstractmethod
    def solve(self) -> Self:
        """Compute what is computed from statistics, unless it is up to date."""

    def origin(self) -> str:
        """A digest of what `prepare_on` made, apart from the labels, which may be extended."""
        if not self._is_prepared:
            check_is_fitted(self, "feature_map_")
        return digest(
            {
                "class": type(self).__name__,
                "map": self._fitted.identity(),
                "n_columns": self.n_features_in_,
                "names": vars(self).get("feature_names_in_"),
                **self.learning_options(),
            }
        )

    def learning_options(self) -> dict[str, Any]:
        """Further values on which the summary of rows depends."""
        return {}

    # ------------------------------------------------------------ rows

    def outputs(self, X: Any) -> tuple[Array, np.dtype[Any]]:
        """The linear function of rows in float64, and the precision of the features."""
        if isinstance(X, Source):
            now = self.snapshot()
            found = [now.outputs(block.X) for block in now._to_predict(X).blocks()]
            if not found:
                raise DataError("The source has no rows.")
            return np.concatenate([out for out, _ in found]), found[0][1]
        now = self.snapshot()
        model, fitted = now._model, now._fitted
        X = now._checked(X)
        n_rows = X.shape[0]
        out = np.empty((n_rows, model.intercept.size))
        # Data that is not an array is converted in blocks.
        size = n_rows if isinstance(X, np.ndarray) else PREDICTED_ROWS
        for part in slices(n_rows, size):
            rows = fitted.rows(take(X, part))
            if not model.predict(fitted, rows, out[part]):
                raise ValueError(fitted.overflow(rows))
        return out, fitted.operator(rows).dtype

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
        refuse_lazy_frames(X, "X")
        if is_frame(X) or (isinstance(X, Mapping) and not sp.issparse(X)):
            X = self._as_table(X, reset)
            if is_table(X) or (not reset and isinstance(X, np.ndarray)):
                return X
        X = array_of_lists(X)
        refuse_what_is_not_numbers(X)
        if sp.issparse(X):
            X = checked_sparse(X)
        if hasattr(X, "columns"):
            # A data frame stays one: the map may need its names and types, and converts blocks.
            X = validate_data(self, X, reset=reset, skip_check_array=True)
            if X.shape[0] == 0:
                raise ValueError(
                    f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is "
                    f"required by {type(self).__name__}."
                )
            return X
        X = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False
        )
        numeric = _fills_missing(self._unfitted_map(0)) if reset else _takes_numbers(self._fitted)
        return numbers_of_objects(X) if numeric else X

    def _as_table(self, X: Any, reset: bool) -> Any:
        """A data frame as an Arrow table, if its columns are to be prepared; else as it is."""
        if isinstance(X, Mapping):
            X = table_of(X)
        if not reset:
            if isinstance(self._fitted, TableMap):
                return _not_empty(self._fitted.table(X), self)
            names = vars(self).get("feature_names_in_")
            if is_plain_frame(X):
                X = X if names is None else columns_by_name(X, names)
                if names is None or not _takes_numbers(self._fitted) or has_plain_numbers(X):
                    return X
                refuse_what_is_not_numbers(X)
            X = table_of(X)
            if isinstance(self._fitted, RowMap) and names is not None:
                return _not_empty(selected(X, [*names]), self)  # the map converts blocks of it
            return _not_empty(plain_rows(X, names), self)
        if is_plain_frame(X):
            X = with_text_names(X)
        unfitted = self._unfitted_map(0)
        feature_map = thawed(unfitted)
        own = isinstance(feature_map, TableMap) or _fills_missing(unfitted)
        if not own and not is_table(X):
            return X  # a pipeline may prepare the columns in its own way
        if not is_table(X):
            refuse_what_is_not_numbers(X)
            if not isinstance(feature_map, TableMap) and has_numbers_only(X):
                return X
        found = _not_empty(without_index(table_of(X)), self)
        names = found.column_names
        if isinstance(feature_map, TableMap):
            found, names = feature_map.table(found), feature_map.feature_names_in_
        refuse_other_kinds(schema_of(found.schema, {}), "frame.drop(columns={!r})")
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        return found

    def known_columns(self) -> dict[str, KnownColumn]:
        """The columns of a fitted model that have names, and what it takes them for.

        Returns
        -------
        columns : dict
            For `kitchenette.data.Source.read_as`: the columns to predict from, and a target of
            strings.
        """
        if not self._is_prepared:
            check_is_fitted(self, "feature_map_")
        # Transformers of other packages take columns of any kind.
        return self._fitted.known_columns() if isinstance(self._fitted, RowMap) else {}

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
        if not source.is_table or "feature_names_in_" not in vars(self):
            return source
        source, fitted = source.read_as(self.known_columns()), self._fitted
        names = fitted.read_names if isinstance(fitted, TableMap) else self.feature_names_in_
        return source.with_columns([*map(str, names)])

    def _to_predict(self, source: Source) -> Source:
        """The rows of a source with the columns of the model alone, without targets."""
        return self.columns_of(source).without_targets()

    # ------------------------------------------------------------ copies and files

    def _without_statistics(self) -> Self:
        """A solved copy without statistics."""
        copied = self.snapshot()
        fitted = copied._fitted.for_inference()
        feature_map: Any = copied.feature_map_
        if isinstance(thawed(feature_map), FittedMap):
            feature_map = frozen_like(feature_map, fitted)
        copied.feature_map_, copied._fitted = feature_map, fitted
        if is_frozen(copied.feature_map):
            copied.feature_map = feature_map
        elif copied.feature_map is not None:
            copied.feature_map = clone(copied.feature_map, safe=False)
        return copied

    def __getstate__(self) -> dict[str, Any]:
        with self.unchanged() as now:
            state = now.pickled()
            if "statistics_" in state:  # other threads may change it before it is written
                state["statistics_"] = copy(state["statistics_"])
        return state

    def pickled(self) -> dict[str, Any]:
        """The attributes to pickle, of a copy that nobody changes."""
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_model": self.solved_model()} if "_model" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Versions of statistics are counted from zero again in a copy.
        model, statistics = vars(self).get("_model"), vars(self).get("statistics_")
        if model is not None and statistics is not None:
            self._model = model.renumbered(statistics.version)

    def to_file(self) -> dict[str, Any]:
        """Parameters and fitted attributes, for a model file."""
        state: dict[str, Any] = {"parameters": stored_parameters(self)}
        if self._is_prepared:
            names = self.fitted_types()
            state["fitted"] = {name: vars(self)[name] for name in names if name in vars(self)}
            current = thawed(self.feature_map_)
            if isinstance(current, FittedMap):
                # The map may have been fitted on more rows.
                replaced = map_difference(current, self._fitted) is not None
            else:
                # A pipeline is stored as the numbers that its steps consist of.
                replaced = not is_frozen(self.feature_map_) and hasattr(self._fitted, "to_file")
            if replaced:
                state["fitted"]["feature_map_"] = self._fitted
            if (medians := getattr(self._fitted, "medians_", None)) is not None:
                state["fitted"]["medians_"] = medians
            learned = "statistics_" in vars(self)
            state["fitted"]["model"] = self.solved_model() if learned else None
        return state

    @classmethod
    def fitted_types(cls) -> dict[str, Any]:
        """The names of the fitted attributes that are stored, and their types."""
        return {
            "feature_map_": object,
            "statistics_": (LeastSquares, type(None)),
            "seed_": int,
            "n_features_in_": int,
            "feature_names_in_": (np.ndarray, type(None)),
            "medians_": (np.ndarray, type(None)),
        }

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A model from the untrusted values of a model file."""
        state = checked_state(state, {"parameters": dict, "fitted": (dict, type(None))})
        made = constructed(cls, state["parameters"])
        made._check_stored_parameters()
        if state["fitted"] is not None:
            made.restore(state["fitted"])
            made.check_restored()
        return made

    def _check_stored_parameters(self) -> None:
        """Refuse parameters from a model file that `fit` would refuse, or misunderstand."""
        self._check_parameters()
        parameters = self.get_params(deep=False)
        seed_from(parameters.get("random_state"))
        if not isinstance(parameters.get("verbose", False), bool | int):
            raise ValueError(f"verbose must be True or False; got {parameters['verbose']!r:.80}.")

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse invalid parameters."""

    def restore(self, fitted: dict[str, Any]) -> None:
        """Set fitted attributes from the untrusted values of a model file."""
        types = {**self.fitted_types(), "model": (self.model_class, type(None))}
        values = checked_state(fitted, types)
        model, statistics = values.pop("model"), values["statistics_"]
        prepared_only = "statistics_" not in fitted
        if prepared_only:
            del values["statistics_"]
        if values["feature_names_in_"] is None:
            del values["feature_names_in_"]
        elif values["feature_names_in_"].shape != (values["n_features_in_"],):
            raise ValueError("feature_names_in_ must be as many as the columns.")
        feature_map = thawed(values["feature_map_"])
        if not isinstance(feature_map, FittedMap):
            raise ValueError("feature_map_ must be a feature map.")
        if (statistics is None and model is None) != prepared_only:
            raise ValueError("there are neither statistics nor weights.")
        if model is not None and statistics is not None:
            model = model.renumbered(statistics.version)
        medians: Any = values.pop("medians_")
        for_inference: Any = feature_map.for_inference()
        if medians is not None:
            check_numbers("medians_ of the columns", medians, values["n_features_in_"])
            for_inference.medians_ = medians
        self.__dict__.update(values, _fitted=for_inference)
        if not prepared_only:
            self._model = model

    def check_restored(self) -> None:
        """Refuse fitted attributes that are not consistent."""
        sizes = {self._fitted.n_features_out_}
        statistics = vars(self).get("statistics_")
        if statistics is not None:
            sizes.add(statistics.n_features)
        if vars(self).get("_model") is not None:
            sizes.add(self._model.coef.shape[0])
        if len(sizes) > 1:
            raise ValueError("feature_map_ must have as many features as the statistics.")
        if getattr(self._fitted, "n_features_in_", 0) != self.n_features_in_:
            raise ValueError("feature_map_ must have as many columns as the model.")


def with_context(feature_map: Any, seed: int, task: str | None) -> Any:
    """A map whose parameters that were left open are those of the estimator.

    A ``random_state`` of None, also of a step of a pipeline, is replaced by a seed, so that the
    seed of the estimator decides everything. A map that is chosen from data gets the task. Maps
    that are parameters of a map are left alone: their seeds follow from its own.
    """
    if is_frozen(feature_map) or not hasattr(feature_map, "get_params"):
        return feature_map
    given = feature_map.get_params(deep=True)
    changed: dict[str, Any] = {}
    for name in sorted(given, key=lambda name: (name.count("__"), name)):
        path, _, parameter = name.rpartition("__")
        owner = given[path] if path else feature_map
        if _is_inside_map(path, feature_map, given):
            continue
        if given[name] is None and parameter == "random_state":
            changed[name] = seed % (LARGEST_SEED if isinstance(owner, RowMap) else 2**32 - 1)
            seed = (seed + NEXT_SEED) % LARGEST_SEED  # two maps side by side must differ
        elif given[name] is None and parameter == "task" and is_automatic(owner):
            changed[name] = task
    return clone(feature_map).set_params(**changed) if changed else feature_map


def _is_inside_map(path: str, feature_map: Any, given: dict[str, Any]) -> bool:
    """Whether the object at a path of parameter names is a part of one of our maps."""
    parts = path.split("__") if path else []
    above = ["__".join(parts[:i]) for i in range(len(parts))]
    return any(isinstance(given[one] if one else feature_map, RowMap) for one in above)


def _map_of_table(feature_map: Any, sample: Block, source: Source | None) -> TableMap:
    """A map of the prepared columns of a table."""
    if source is None:
        schema, rules = schema_of(sample.X.schema, {}), None
    else:
        schema, rules = source.schema.some(source.features), source.rules
    return TableMap.fitted_on(feature_map, schema, sample, rules=rules, everything=source)


def _fills_missing(feature_map: Any) -> bool:
    """Whether columns are prepared and missing values filled before this map, which takes none."""
    unfrozen = thawed(feature_map)
    own = isinstance(unfrozen, RowMap) and not isinstance(unfrozen, PreparedMap)
    return own or takes_numbers_only(feature_map)


def _takes_numbers(fitted: FittedMap) -> bool:
    """Whether a fitted map takes numbers in all columns, and nothing else."""
    return isinstance(fitted, RowMap) and getattr(fitted, "coder", None) is None


def _not_empty(table: Any, owner: Any) -> Any:
    if table.shape[0] == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required "
            f"by {type(owner).__name__}."
        )
    return table
