"""A sample of the features of the distinct rows, by which a model is checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette.data.drawing import BottomK
from kitchenette.data.keys import LARGEST_KEY, Array, Keys
from kitchenette.files.budget import Budget
from kitchenette.files.fields import checked_state, field_values
from kitchenette.files.registry import storable
from kitchenette.parameters import check_count

WEIGHT_TOLERANCE = 1e-6  # relative rounding error of sums of weights


@storable
@dataclass(frozen=True, eq=False, kw_only=True)
class RowSample(BottomK):
    """The features of the distinct rows with the smallest keys; immutable.

    Attributes
    ----------
    features : ndarray of shape (n_sampled, n_features)
        The features of the rows.
    targets : ndarray of shape (n_sampled, n_targets)
        The target columns.
    """

    features: NDArray[Any]
    targets: Array
    row_attributes: ClassVar[tuple[str, ...]] = (*BottomK.row_attributes, "features", "targets")

    @classmethod
    def empty(cls, size: int, n_features: int, n_targets: int, dtype: DTypeLike) -> Self:
        """The sample of no rows."""
        nothing = np.empty((0, n_features), dtype)
        return cls.of(size, np.empty(0, np.uint64), nothing, np.empty((0, n_targets)), None)

    @classmethod
    def of(
        cls,
        size: int,
        keys: Keys,
        features: NDArray[Any],
        targets: Array,
        weights: Array | None,
        last_key: int = LARGEST_KEY,
    ) -> Self:
        """The sample of those of these rows whose keys are at most ``last_key``."""
        return cls(
            size=size,
            last_key=last_key,
            keys=keys,
            features=features,
            targets=targets,
            weights=np.ones(keys.size) if weights is None else weights,
            copies=np.ones(keys.size, np.int64),
        ).distinct()

    def n_observations(self, n_rows: int, rule: str) -> float:
        """The number of observations in all rows, estimated unless the sample is complete."""
        if self.n_sampled == 0:
            return float(n_rows)
        return max(1.0, n_rows * float(self.counts(rule).sum()) / float(self.copies.sum()))

    def without(self, keys: Keys, weights: Array | None) -> Self:
        """The sample after these rows were removed; those beyond its last key are not known.

        All other rows that were learned are in the sample, so that it refuses those that are not.
        """
        known = np.flatnonzero(keys <= np.uint64(self.last_key))
        unit = np.ones(known.size) if weights is None else weights[known]
        here = np.searchsorted(self.keys, keys[known])
        found = here < self.n_sampled
        found[found] = self.keys[here[found]] == keys[known[found]]
        if not found.all():
            raise _never_learned(keys.size, known[~found], "were not learned")
        gone = np.bincount(here, minlength=self.n_sampled)
        weight_gone = np.bincount(here, unit, self.n_sampled)
        copies, left = self.copies - gone, self.weights - weight_gone
        rounding = WEIGHT_TOLERANCE * self.weights
        wrong = (copies < 0) | (left < -rounding) | ((copies == 0) & (left > rounding))
        if wrong.any():
            raise _never_learned(
                keys.size,
                known[wrong[here]],
                "were not learned so often, or not with these weights",
            )
        changed = replace(self, weights=np.maximum(left, 0), copies=copies)
        return changed.rows(copies > 0)

    def reweighted(self, factors: Array) -> Self:
        """The same rows with their weights multiplied by factors."""
        return replace(self, weights=factors * self.weights)

    def with_targets(self, columns: NDArray[np.intp], n_targets: int) -> Self:
        """The same rows with more targets: the present ones at ``columns``, the others zero."""
        targets = np.zeros((self.n_sampled, n_targets))
        targets[:, columns] = self.targets
        return replace(self, targets=targets)

    def to_file(self) -> dict[str, Any]:
        """All values, for a model file."""
        return {**field_values(self), "last_key": np.array([self.last_key], np.uint64)}

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A sample from the untrusted values of a model file."""
        arrays = ("last_key", *cls.row_attributes)
        state = checked_state(state, {"size": int} | dict.fromkeys(arrays, np.ndarray))
        last_key = state.pop("last_key")
        if last_key.shape != (1,) or last_key.dtype != np.uint64:
            raise ValueError("last_key must be one number of type uint64.")
        made = cls(last_key=int(last_key[0]), **state)
        check_count("size", made.size, 1)
        dtypes: dict[str, Any] = {"keys": np.uint64, "copies": np.int64}
        dtypes |= dict.fromkeys(("targets", "weights"), np.float64)
        for name in cls.row_attributes:
            array = getattr(made, name)
            axes = 2 if name in ("features", "targets") else 1
            if array.ndim != axes or array.shape[0] != made.n_sampled:
                raise ValueError(f"{name} must have {axes} axes and a row for every key.")
            if array.dtype != dtypes.get(name, array.dtype):
                raise ValueError(f"{name} must be of type {np.dtype(dtypes[name]).name}.")
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite.")
        if made.features.dtype not in (np.float32, np.float64):
            raise ValueError("features must be of type float32 or float64.")
        if made.n_sampled > made.size or np.any(made.keys[1:] <= made.keys[:-1]):
            raise ValueError("keys must increase, and must not be more than the size.")
        if made.n_sampled and (made.weights.min() < 0 or made.copies.min() < 1):
            raise ValueError("weights must not be negative, and copies must be positive.")
        return made


def _never_learned(n_rows: int, which: NDArray[np.intp], how: str) -> ValueError:
    """The error for rows that are to be removed and are not there."""
    rows = ", ".join(map(str, which[:5])) + (", ..." if which.size > 5 else "")
    return ValueError(
        f"Cannot remove {n_rows} rows: those with the indices {rows} {how}. Remove rows as they "
        "were learned, with the same targets and weights."
    )
