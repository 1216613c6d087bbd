"""Fitting the feature map of an estimator on a sample of the rows."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from kitchenette.data.drawing import Drawing, DrawnRows, sample_size
from kitchenette.data.keys import Keys
from kitchenette.data.rows import has_missing, is_table
from kitchenette.data.source import Block, block_of
from kitchenette.data.tables import schema_of
from kitchenette.learning.gram import check_learning_memory
from kitchenette.maps.base import RowMap
from kitchenette.maps.filling import filled_map, medians_of_some
from kitchenette.maps.prepared_map import PreparedMap
from kitchenette.maps.protocol import FittedMap, fit_map, fitted_map, is_frozen, thawed
from kitchenette.maps.table_map import TableMap
from kitchenette.maps.translation import takes_numbers_only
from kitchenette.selection import AutoMap
from kitchenette.sketching.random import LARGEST_SEED, seed_from

Array = NDArray[np.float64]
NEXT_SEED = 0x9E3779B97F4A7C15  # the distance of the seeds of the steps of a pipeline


@dataclass(frozen=True)
class MapFitting:
    """How the feature map of an estimator is fitted."""

    feature_map: Any  # the map, not fitted, or frozen
    seed: int  # the seed of the estimator
    task: str | None  # what is predicted
    # Called with the number of features, to refuse too many before the map is fitted; by default
    # the memory of their statistics is checked
    check: Callable[[int], None] | None = None

    @property
    def sampling_seed(self) -> int:
        """The seed by which rows to choose on are sampled.

        It is that of the map, if it has one: then the map is the same in every fit.
        """
        given = getattr(self.feature_map, "random_state", None)
        return seed_from(given) if isinstance(given, numbers.Integral) else self.seed

    def drawn(self, rows: Block, hashes: Keys | None = None) -> DrawnRows:
        """The distinct rows on which a map is chosen, of all rows or of a sample of them."""
        if rows.copies is None or rows.keys is None:
            drawing = Drawing(sample_size(rows.X.shape[1]), self.sampling_seed)
            return drawing.of_rows(rows.X, rows.y, rows.weight, hashes=hashes)
        weights = np.ones(rows.n_rows) if rows.weight is None else rows.weight
        return DrawnRows.of(rows.X, rows.y, weights, rows.copies, rows.keys)

    def fitted(
        self, rows: Block, source: Any, drawn: DrawnRows | None = None
    ) -> tuple[Any, FittedMap]:
        """The map fitted on some rows, as a transformer and as a `FittedMap`.

        It is chosen on rows that are sampled by their keys, so that their order does not
        matter. Maps that look at all rows read those of the source.
        """
        X, is_sample = rows.X, rows.population is not None
        feature_map = with_context(self.feature_map, self.seed, self.task)
        self._check_size(feature_map, X.shape[0])
        if is_table(X) and not isinstance(thawed(feature_map), TableMap):
            schema = source.schema.some(source.features) if is_sample else schema_of(X.schema, {})
            sample = self._sample(rows, drawn)
            feature_map = TableMap.fitted_on(
                feature_map, schema, sample, rules=source.rules, everything=source
            )
            return feature_map, feature_map.for_inference()
        fills = fills_missing(feature_map) and not sp.issparse(X)
        if fills and isinstance(X, np.ndarray) and has_missing(X) and not is_frozen(feature_map):
            feature_map = filled_map(feature_map, self._sample(rows, drawn), source)
            return feature_map, feature_map.for_inference()
        chosen = None
        if isinstance(thawed(feature_map), RowMap) and (not is_sample or rows.keys is not None):
            chosen = self.drawn(rows) if drawn is None else drawn
        feature_map = fit_map(
            feature_map,
            X,
            rows.y,
            rows.weight,
            population=rows.population,
            copies=rows.copies,
            drawn=chosen,
            everything=source if is_sample else None,
        )
        # A copy, so that the model stays as it is if somebody fits the map on more rows.
        fitted: Any = fitted_map(feature_map, X).for_inference()
        if fills and source.rules.missing == "median":
            # On what the map was chosen. They stand for values that are missing in later rows.
            sampled = rows if chosen is None else chosen
            fitted.medians_ = medians_of_some(sampled.X, sampled.copies)
        return feature_map, fitted

    def _check_size(self, feature_map: Any, n_rows: int) -> None:
        n_components = getattr(feature_map, "n_components", None)
        if isinstance(n_components, int) and self.check is not None:
            self.check(n_components)
        elif isinstance(n_components, int):
            # Before the map is fitted, the precision of its features is not known.
            check_learning_memory(n_components, np.float32, n_rows=n_rows, n_sampled=0)

    def _sample(self, rows: Block, drawn: DrawnRows | None) -> Block:
        """The sample of rows that are not one already."""
        if rows.population is not None:
            return rows
        return block_of(self.drawn(rows) if drawn is None else drawn)


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
        elif given[name] is None and parameter == "task" and isinstance(owner, AutoMap):
            changed[name] = task
    return clone(feature_map).set_params(**changed) if changed else feature_map


def _is_inside_map(path: str, feature_map: Any, given: dict[str, Any]) -> bool:
    """Whether the object at a path of parameter names is a part of one of our maps."""
    parts = path.split("__") if path else []
    above = ["__".join(parts[:i]) for i in range(len(parts))]
    return any(isinstance(given[one] if one else feature_map, RowMap) for one in above)


def fills_missing(feature_map: Any) -> bool:
    """Whether columns are prepared and missing values filled before this map, which takes none."""
    unfrozen = thawed(feature_map)
    own = isinstance(unfrozen, RowMap) and not isinstance(unfrozen, PreparedMap)
    return own or takes_numbers_only(feature_map)


def takes_numbers(fitted: FittedMap) -> bool:
    """Whether a fitted map takes numbers in all columns, and nothing else."""
    return isinstance(fitted, RowMap) and getattr(fitted, "coder", None) is None


def has_hashable_rows(X: Any) -> bool:
    """Whether rows have hash values: an array of strings, of which a transformer makes numbers of
    its own, has none.
    """
    return getattr(X, "dtype", np.dtype(float)).kind in "biuf"
