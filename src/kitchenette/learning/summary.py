"""What a model has learned from some rows, as an immutable value that can be combined."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kitchenette.files.registry import Budget, field_values, from_fields, storable
from kitchenette.learning.balancing import Parts, both, extended
from kitchenette.learning.labels import are_sorted, union_of_classes
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.row_sample import RowSample
from kitchenette.parameters import check_count


def combined_samples(mine: RowSample | None, theirs: RowSample | None) -> RowSample | None:
    """The sample of the rows of both; None if one of them has none."""
    return None if mine is None or theirs is None else mine.combined(theirs)


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class Summary:
    """All that an estimator keeps of some rows; see `kitchenette.learning.stages`.

    It is never changed, so it may be shared by threads, computed twice, pickled, and stored by
    `kitchenette.save`. Its size does not depend on the number of rows.

    Attributes
    ----------
    estimator : str
        The name of the class of the estimator.
    origin : str
        A digest of the prepared estimator. Summaries of different origin are of different
        features, and are not combined.
    n_rows : int
        The number of rows; rows of weight zero are not counted.
    statistics : LeastSquares or None
        The statistics of their features and targets; None if there are no rows, or if the
        statistics are kept by class.
    by_class : list of LeastSquares or None
        With ``class_weight="balanced"``, the statistics of each class, None for those without rows.
    sample : RowSample or None
        A sample of the rows, to check the model; None if none is kept.
    classes : ndarray or None
        The labels that are known, sorted; None if the targets are no labels.
    target_dtype : str
        The precision of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.learning import combine, learn, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> prepared = prepare(KernelRegressor(Fastfood(random_state=0)), X[:50], X[:50, 0])
    >>> parts = [learn(prepared, X[i : i + 100], X[i : i + 100, 0]) for i in (0, 100, 200)]
    >>> combine(parts[0], parts[2]).n_rows
    200
    """

    estimator: str
    origin: str
    n_rows: int = 0
    statistics: LeastSquares | None = None
    by_class: Parts | None = None
    sample: RowSample | None = None
    classes: NDArray[Any] | None = None
    target_dtype: str = "float32"

    def combined(self, other: Self) -> Self:
        """The summary of the rows of both; neither is changed."""
        if not isinstance(other, Summary):
            raise ValueError(f"A Summary is combined with another one; got {other!r:.80}.")
        if (self.estimator, self.origin) != (other.estimator, other.origin):
            raise ValueError(
                "Cannot combine summaries of differently prepared estimators, as they are of "
                "different features. Prepare one estimator, and learn all rows with that one."
            )
        mine, theirs = self, other
        if self.classes is not None and other.classes is not None:
            classes = union_of_classes(self.classes, other.classes)
            mine, theirs = self.among(classes), other.among(classes)
        if not theirs.n_rows or not mine.n_rows:
            return mine if mine.n_rows else theirs
        by_class = None
        if mine.by_class is not None and theirs.by_class is not None:
            by_class = both(mine.by_class, theirs.by_class)
        statistics = None
        if mine.statistics is not None and theirs.statistics is not None:
            statistics = mine.statistics.combined(theirs.statistics)
        return replace(
            mine,
            n_rows=mine.n_rows + theirs.n_rows,
            statistics=statistics,
            by_class=by_class,
            sample=combined_samples(mine.sample, theirs.sample),
            target_dtype=max(mine.target_dtype, theirs.target_dtype),
        )

    def among(self, classes: NDArray[Any]) -> Self:
        """The same rows among more classes, which include all that are known."""
        if self.classes is None or classes.size == self.classes.size:
            return replace(self, classes=classes)
        columns, n_classes = np.searchsorted(classes, self.classes), classes.size
        changed: dict[str, Any] = {"classes": classes}
        if self.statistics is not None:
            changed["statistics"] = self.statistics.with_targets(columns, n_classes)
        if self.by_class is not None:
            changed["by_class"] = extended(self.by_class, columns, n_classes)
        if self.sample is not None:
            changed["sample"] = self.sample.with_targets(columns, n_classes)
        return replace(self, **changed)

    def copied(self) -> Self:
        """The same with statistics of its own, which somebody may change."""
        return replace(self, statistics=copy(self.statistics))

    @property
    def n_targets(self) -> int | None:
        """The number of target columns; None if there are no rows."""
        known = [*(self.by_class or ()), self.statistics]
        return next((part.n_targets for part in known if part is not None), None)

    def to_file(self) -> dict[str, Any]:
        """All values, for a model file."""
        return field_values(self)

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A summary from the untrusted values of a model file."""
        made = from_fields(cls, state)
        check_count("n_rows", made.n_rows, 0)
        made.check()
        return made

    def check(self) -> None:
        """Refuse values that do not belong together."""
        parts = [part for part in self.by_class or () if part is not None]
        if not all(isinstance(part, LeastSquares) for part in parts):
            raise ValueError("by_class must have statistics.")
        if self.statistics is not None:
            parts.append(self.statistics)
        shapes = {(part.n_features, part.n_targets) for part in parts}
        if self.sample is not None:
            shapes.add((self.sample.features.shape[1], self.sample.targets.shape[1]))
        if len(shapes) > 1 or bool(parts) != bool(self.n_rows):
            raise ValueError("statistics and sample must have the same shape.")
        if sum(part.n_rows for part in parts) != self.n_rows:
            raise ValueError("n_rows must be the number of rows of the statistics.")
        if self.classes is not None:
            known = self.n_targets
            if known is not None and known != self.classes.size:
                raise ValueError("there must be a target column for each class.")
            if self.by_class is not None and len(self.by_class) != self.classes.size:
                raise ValueError("by_class must have an entry for each class.")
            if not are_sorted(self.classes):
                raise ValueError("classes must be sorted.")
        if self.target_dtype not in ("float32", "float64"):
            raise ValueError("target_dtype must be float32 or float64.")


@dataclass(frozen=True)
class SummaryOf:
    """The summary of the rows of a source, as a `kitchenette.data.reduction.Reduction`.

    Attributes
    ----------
    prepared : FeatureLearner
        The estimator, of which only what `prepare` made is used.
    """

    prepared: Any

    @property
    def n_bytes(self) -> int:
        """About the size of a summary: a triangle of the Gram matrix, and a sample of features."""
        n_features = int(self.prepared._fitted.n_features_out_)
        n_sampled = getattr(self.prepared, "validation_rows", 0)
        return 4 * n_features**2 + 8 * n_features * n_sampled

    def of(self, block: Any) -> Summary:
        found: Summary = self.prepared.summarised(block.X, block.y, block.weight)
        return found

    def combined(self, a: Summary, b: Summary) -> Summary:
        return a.combined(b)
