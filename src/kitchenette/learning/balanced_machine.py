"""Classes of different weight, and statistics of each class by which all weigh the same."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_class_weight

from kitchenette.data.rows import take
from kitchenette.learning.accumulation import batch
from kitchenette.learning.balancing import (
    Parts,
    balanced,
    balancing,
    balancing_factors,
    both,
)
from kitchenette.learning.base import Array
from kitchenette.learning.labels import union_of_classes
from kitchenette.learning.machine import KernelMachine
from kitchenette.learning.machine_parameters import is_word
from kitchenette.learning.one_pass import learned_in_one_pass
from kitchenette.learning.row_sample import RowSample
from kitchenette.learning.summary import Summary, combined_samples
from kitchenette.maps.protocol import FittedMap


class BalancedMachine(KernelMachine):
    """The weights of classes.

    How many rows the classes have is known only when all rows have come. With
    ``class_weight="balanced"`` the statistics of each class are therefore kept apart, and are
    weighted and added whenever they change.
    """

    class_weight: Any
    classes_: NDArray[Any]
    _by_class: Parts | None  # the statistics of each class, if they are balanced

    def weighted(self, targets: NDArray[Any], weights: Array | None) -> Array | None:
        if self.class_weight is None or self._is_balanced:
            return weights
        labels = self.classes_[targets]
        present = np.unique(labels)
        found = compute_class_weight(self._class_weight(present), classes=present, y=labels)
        factors = found[np.searchsorted(present, labels)]
        return factors if weights is None else factors * weights

    def _class_weight(self, present: NDArray[Any]) -> Any:
        """The weights of the labels in a batch, which may lack some of them."""
        unknown = [label for label in self.class_weight if label not in self.classes_]
        if unknown:
            raise ValueError(f"class_weight has labels that are not among the classes: {unknown}.")
        return {label: w for label, w in self.class_weight.items() if label in present} or None

    @property
    def _is_balanced(self) -> bool:
        return is_word(self.class_weight, "balanced")

    def summary_of_rows(
        self, fitted: FittedMap, X: Any, targets: Any, weights: Array | None, n_sampled: int
    ) -> Summary:
        if not self._is_balanced:
            return super().summary_of_rows(fitted, X, targets, weights, n_sampled)
        parts, sample = self._learned_by_class(fitted, X, targets, weights, n_sampled)
        n_rows = sum(part.n_rows for part in parts if part is not None)
        return replace(self.empty_summary(), n_rows=n_rows, by_class=parts, sample=sample)

    def balanced_weights(self, targets: NDArray[Any], weights: Array | None) -> Array | None:
        """The weights of all rows, balanced if they are to be."""
        if not self._is_balanced:
            return weights
        factors = balancing_factors(np.bincount(targets, minlength=self.classes_.size))[targets]
        return factors if weights is None else factors * weights

    def attributes_of(self, summary: Summary) -> dict[str, Any]:
        parts = summary.by_class
        if parts is None:
            return {"_by_class": None, **super().attributes_of(summary)}
        return {"_by_class": parts, **learned_in_one_pass(balanced(parts), summary.sample)}

    def empty_summary(self) -> Summary:
        return replace(super().empty_summary(), classes=self.classes_)

    def summary(self, origin: str) -> Summary:
        found = super().summary(origin)
        if self._by_class is None:
            return found
        return replace(found, statistics=None, by_class=self._by_class)

    def learning_options(self) -> dict[str, Any]:
        return {**super().learning_options(), "class_weight": self.class_weight}

    def learn_more(self, X: Any, targets: Any, weights: Array | None, remove: bool) -> None:
        if self._by_class is None:
            super().learn_more(X, targets, weights, remove)
            return
        sample = self._sample()
        if remove:
            parts, sample = self._removed_by_class(X, targets, weights)
        else:
            n_sampled = 0 if sample is None else sample.size
            more, theirs = self._learned_by_class(self._fitted, X, targets, weights, n_sampled)
            parts, sample = both(self._by_class, more), combined_samples(sample, theirs)
        self.set_at_once({"_by_class": parts, **learned_in_one_pass(balanced(parts), sample)})

    def _removed_by_class(
        self, X: Any, targets: Any, weights: Array | None
    ) -> tuple[Parts, RowSample | None]:
        """The statistics of each class, and the sample, without some rows."""
        assert self._by_class is not None
        parts, sample = list(self._by_class), self._sample()
        rows = batch(self._fitted, X, targets, self, weights, with_keys=sample is not None)
        for number in np.unique(targets):
            part, some = parts[number], targets == number
            if part is None:
                raise ValueError(f"No row of class {self.classes_.tolist()[number]!r} was learned.")
            part = copy(part).downdate(
                rows.Z[some], rows.Y[some], None if weights is None else weights[some]
            )
            parts[number] = part if part.n_rows > 0 else None
        if sample is not None and rows.keys is not None:
            sample = sample.without(rows.keys, weights)
        return parts, sample

    def _learned_by_class(
        self, fitted: FittedMap, X: Any, targets: Any, weights: Array | None, n_sampled: int
    ) -> tuple[Parts, RowSample | None]:
        """The statistics of each class, None for classes without rows, and a sample of all."""
        parts: Parts = [None] * self.classes_.size
        samples: list[Any] = []
        for number in np.unique(targets):
            rows = np.flatnonzero(targets == number)
            some = None if weights is None else weights[rows]
            parts[number], sample = self.accumulated(
                fitted, take(X, rows), targets[rows], some, n_sampled
            )
            samples.append(sample)
        return parts, samples[0].combined(*samples[1:]) if n_sampled else None

    def validation_sample(self) -> RowSample | None:
        sample = self._sample()
        if sample is None or self._by_class is None:
            return sample
        return sample.reweighted(balancing(self._by_class)[sample.targets.argmax(axis=1)])

    def merge_statistics(self, other: Any) -> None:
        classes = union_of_classes(self.classes_, other.classes_)
        if (self._by_class is None) != (other._by_class is None):
            raise ValueError("Cannot merge models of which only one has class_weight='balanced'.")
        mine, theirs = self.summary(""), other.summary("")
        if classes.size > self.classes_.size or self._by_class is not None:
            self.adopt(mine.combined(theirs))
            return
        more = theirs.among(classes)
        assert more.statistics is not None
        self.add_statistics(more.statistics, more.sample)
