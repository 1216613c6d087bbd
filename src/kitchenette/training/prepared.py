"""What is fixed before rows are learned: the fitted map, the target coding, the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.comparison import digest
from kitchenette.data.rows import take
from kitchenette.learning.leave_one_out import RowSample
from kitchenette.learning.partial import Batch, Partial, Parts, accumulate, batch
from kitchenette.learning.target_coding import NumberCoding
from kitchenette.maps.protocol import FittedMap, map_difference

Array = NDArray[np.float64]


def is_balanced(class_weight: Any) -> bool:
    """Whether all classes weigh the same."""
    return isinstance(class_weight, str) and class_weight == "balanced"


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """A fitted map, the coding of the targets, and the columns; it knows no rows.

    Attributes
    ----------
    estimator : str
        The name of the class of the estimator.
    feature_map : transformer
        The fitted map as users see it.
    fitted : FittedMap
        The fitted map as models use it.
    coding : ClassCoding, NumberCoding or NoTargets
        How targets become columns of numbers.
    seed : int
        The seed.
    n_columns : int
        The number of columns of the data.
    names : ndarray of shape (n_columns,) or None
        Their names.
    observation_rule : {"weights", "rows", "pairs"}
        What repeated rows and weights count for; see `kitchenette.data.observations`.
    validation_rows : int
        The size of the sample of rows that is kept.
    class_weight : dict, "balanced" or None
        The weights of classes.
    target_names : ndarray or None
        The names of the columns to be predicted.
    weight_name : str or None
        The name of the column of weights.
    """

    estimator: str
    feature_map: Any
    fitted: FittedMap
    coding: Any
    seed: int
    n_columns: int
    names: NDArray[Any] | None = None
    observation_rule: str = "weights"
    validation_rows: int = 0
    class_weight: Any = None
    target_names: NDArray[Any] | None = None
    weight_name: str | None = None

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

    def empty(self, coding: Any = None) -> Partial:
        """The partial of no rows."""
        coding = self.coding if coding is None else coding
        return Partial(
            estimator=self.estimator,
            origin=self.origin(),
            classes=coding.classes,
            target_dtype=coding.dtype,
        )

    def partial(
        self,
        X: Any,
        targets: NDArray[Any],
        weights: Array | None,
        coding: Any = None,
        title: str | None = None,
    ) -> Partial:
        """The partial of checked rows, whose targets are encoded by a coding of these classes."""
        coding, n_sampled = self.coding if coding is None else coding, self.validation_rows

        def accumulated(X: Any, targets: NDArray[Any], weights: Array | None) -> Any:
            return accumulate(
                self.fitted, X, targets, coding, weights, n_sampled=n_sampled, title=title
            )

        empty = self.empty(coding)
        if not is_balanced(self.class_weight):
            statistics, sample = accumulated(X, targets, weights)
            return _with_rows(empty, statistics.n_rows, statistics, None, sample)
        parts: Parts = [None] * coding.classes.size
        samples: list[RowSample] = []
        for number in np.unique(targets):
            rows = np.flatnonzero(targets == number)
            some = None if weights is None else weights[rows]
            parts[number], sample = accumulated(take(X, rows), targets[rows], some)
            samples.append(sample)
        n_rows = sum(part.n_rows for part in parts if part is not None)
        whole = samples[0].combined(*samples[1:]) if n_sampled else None
        return _with_rows(empty, n_rows, None, parts, whole)

    def batch(self, X: Any, targets: NDArray[Any], weights: Array | None) -> Batch:
        """The features of a few checked rows, and what belongs to them."""
        with_keys = self.validation_rows > 0
        return batch(self.fitted, X, targets, self.coding, weights, with_keys=with_keys)

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


def _with_rows(
    empty: Partial, n_rows: int, statistics: Any, by_class: Parts | None, sample: RowSample | None
) -> Partial:
    return Partial(
        estimator=empty.estimator,
        origin=empty.origin,
        n_rows=n_rows,
        settled=statistics,
        by_class=by_class,
        sample=sample,
        classes=empty.classes,
        target_dtype=empty.target_dtype,
    )
