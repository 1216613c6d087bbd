"""Passes over rows in which their features are computed again, and never stored.

Iterative solvers need two products with the matrix Z of all features: Z W, the outputs of a model,
and Z' R, which combines the features of all rows. `FeatureRows.gradient` does both in one pass,
because what lies between them, the derivative of the loss, is computed row by row.
`SourceRows` reads the rows of files or of a cluster again in each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.keys import Keys, can_be_hashed, row_keys
from kitchenette.data.reduction import ByStart, in_order
from kitchenette.data.rows import slices, take
from kitchenette.data.source import Block, RowsInMemory, Source
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.losses import Loss, Squared
from kitchenette.learning.partial import (
    LEARNED_NUMBERS,
    LEAST_ROWS,
    MOST_ROWS,
    StatisticsBuilder,
    features,
)
from kitchenette.learning.target_coding import TargetCoding
from kitchenette.maps.protocol import FittedMap
from kitchenette.resources import one_blas_thread
from kitchenette.sketching.operators import Operator

Array = NDArray[np.float64]
Wanted = Callable[[NDArray[Any]], NDArray[Any]]  # makes what a loss compares outputs with
PASS_ROWS = 1 << 13  # rows whose outputs are held at a time, so that all threads have some
LARGEST_TARGET = 1e140  # whose squares, summed over all rows, stay below the largest float64


@dataclass(frozen=True)
class Gradient:
    """The result of a pass over all rows."""

    loss: float  # the weighted sum of the losses
    weights: Array  # the derivative of this sum in the weights; shape (n_features, n_outputs)
    intercept: Array  # the derivative in the intercept; shape (n_outputs,)
    # the outputs of the rows that are watched, by the first row of their block; shape (n_watched,
    # n_outputs)
    watched: dict[int, Array]

    @property
    def outputs(self) -> Array:
        """The outputs of the rows that are watched, in their order."""
        nothing = np.empty((0, self.intercept.size))
        return np.concatenate([nothing, *(self.watched[start] for start in sorted(self.watched))])

    def combined(self, other: Gradient) -> Gradient:
        """The gradient of the rows of both."""
        return Gradient(
            self.loss + other.loss,
            self.weights + other.weights,
            self.intercept + other.intercept,
            {**self.watched, **other.watched},
        )


@dataclass(frozen=True)
class RowSums:
    """Sums over weighted rows."""

    count: float  # the sum of the weights
    mean: Array  # the mean of the features; shape (n_features,)
    target_mean: Array  # the mean of the target columns; shape (n_targets,)
    # the sum of products of centered features and centered targets; shape (n_features, n_targets)
    cross: Array
    target_squares: Array  # the sum of squares of the centered targets; shape (n_targets,)

    def combined(self, other: RowSums) -> RowSums:
        """The moments of the rows of both (Chan, Golub and LeVeque)."""
        count = self.count + other.count
        share = other.count / count if count > 0 else 0.0
        apart, targets_apart = other.mean - self.mean, other.target_mean - self.target_mean
        factor = self.count * share
        return RowSums(
            count,
            self.mean + share * apart,
            self.target_mean + share * targets_apart,
            self.cross + other.cross + factor * np.outer(apart, targets_apart),
            self.target_squares + other.target_squares + factor * np.square(targets_apart),
        )

    def uncentered(self) -> RowSums:
        """Those of a model without intercept."""
        return RowSums(
            self.count,
            np.zeros_like(self.mean),
            np.zeros_like(self.target_mean),
            self.cross + self.count * np.outer(self.mean, self.target_mean),
            self.target_squares + self.count * np.square(self.target_mean),
        )


def _labels(targets: NDArray[Any]) -> NDArray[np.int32]:
    return targets.astype(np.int32)


def _zeros(n_columns: int, targets: NDArray[Any]) -> Array:
    return np.zeros((targets.shape[0], n_columns))


def _centered_and_one(coding: TargetCoding, mean: Array, targets: NDArray[Any]) -> Array:
    """The target columns without their means, and a column of ones."""
    centered = coding.columns(targets) - mean
    return np.hstack([centered, np.ones((centered.shape[0], 1))])


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Rows with targets and weights, whose features are computed in every pass."""

    fitted: FittedMap
    X: Any  # rows in memory: an array, a CSR matrix or a data frame; see `SourceRows` for others
    targets: NDArray[Any]  # encoded targets; shape (n_rows, ...)
    coding: TargetCoding  # converts encoded targets to columns of numbers
    weights: Array  # the weights of the rows; shape (n_rows,)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.fitted.n_features_out_

    @property
    def n_targets(self) -> int:
        """The number of target columns."""
        return self.coding.columns(self.targets[:1]).shape[1]

    def some(self, which: NDArray[np.intp]) -> FeatureRows:
        """These rows alone."""
        X, targets, weights = take(self.X, which), self.targets[which], self.weights[which]
        return replace(self, X=X, targets=targets, weights=weights)

    def weighted(self, weights: Array) -> Self:
        """The same rows with other weights."""
        return replace(self, weights=weights)

    def columns(self) -> Array:
        """The targets of all rows as columns of numbers."""
        return self.coding.columns(self.targets)

    def check_targets(self) -> None:
        """Refuse targets whose squares overflow."""
        for part in slices(self.n_rows, PASS_ROWS):
            if np.abs(self.coding.columns(self.targets[part])).max() > LARGEST_TARGET:
                raise ValueError(
                    f"The targets are too large: beyond {LARGEST_TARGET:.0e} their squares "
                    "overflow. Scale them down."
                )

    def features(self) -> NDArray[Any]:
        """The features of all rows, which must be few."""
        return features(self.fitted, self.X)

    def keys(self) -> Keys:
        """A hash value of each row and its target."""
        keys = np.empty(self.n_rows, dtype=np.uint64)
        for part in slices(self.n_rows, PASS_ROWS):
            X = take(self.X, part)
            rows = self.fitted.rows(X)
            hashed = rows if can_be_hashed(rows) else features(self.fitted, X)
            keys[part] = row_keys(hashed, self.coding.target_numbers(self.targets[part]))
        return keys

    def _blocks(self) -> Iterator[tuple[slice, Operator, Any]]:
        for part in slices(self.n_rows, PASS_ROWS):
            rows = self.fitted.rows(take(self.X, part))
            yield part, self.fitted.operator(rows), rows

    def _overflow(self, rows: Any) -> ValueError:
        return ValueError(self.fitted.overflow(rows))

    # ------------------------------------------------------------ products

    def outputs(self, W: Array, intercept: Array | None = None) -> Array:
        """Z W plus an intercept, shape (n_rows, n_outputs)."""
        out = np.empty((self.n_rows, W.shape[1]))
        constant = np.zeros(W.shape[1]) if intercept is None else intercept
        linear: dict[int, Any] = {}
        for part, operator, rows in self._blocks():
            if id(operator) not in linear:
                linear[id(operator)] = operator.linear(W, constant)
            if not linear[id(operator)].write(rows, out[part]):
                raise self._overflow(rows)
        return out

    def transposed(self, R: Array) -> Array:
        """Z' R, shape (n_features, n_columns of R); the weights are not used."""
        out = np.zeros((self.n_features, R.shape[1]))
        for part, operator, rows in self._blocks():
            if not operator.add_transposed(rows, R[part], out):
                raise self._overflow(rows)
        return out

    def moments(self) -> RowSums:
        """The moments of features and target columns, in one pass."""
        count = float(self.weights.sum())
        target_mean, target_squares = self._target_moments(count)
        nothing = np.zeros((self.n_features, target_mean.size + 1))
        wanted = partial(_centered_and_one, self.coding, target_mean)
        sums = -self._pass(Squared(), nothing, nothing[0], wanted, None).weights
        return RowSums(
            count,
            sums[:, -1] / max(count, np.finfo(float).tiny),
            target_mean,
            np.ascontiguousarray(sums[:, :-1]),
            target_squares,
        )

    def some_features(self, which: NDArray[np.intp]) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Blocks of rows, and some of their features."""
        size = min(max(LEARNED_NUMBERS // self.n_features, LEAST_ROWS), MOST_ROWS)
        memory = None
        for part in slices(self.n_rows, size):
            memory = features(self.fitted, take(self.X, part), memory)
            yield part, np.take(memory, which, axis=1)

    def statistics(self, which: NDArray[np.intp]) -> LeastSquares:
        """The statistics of some of the features and of the target columns, in one pass."""
        builder = None
        for part, Z in self.some_features(which):
            Y = self.coding.columns(self.targets[part])
            if builder is None:
                builder = StatisticsBuilder(which.size, Y.shape[1], self.n_rows, Z.dtype)
            builder.add(Z, Y, self.weights[part])
        assert builder is not None
        return builder.finish()

    def squared_lengths(self, which: NDArray[np.intp], center: Array, matrix: Array) -> Array:
        """|A (z - c)|^2 for some features z of all rows, with a matrix A and a center c."""
        lengths = np.empty(self.n_rows)
        with one_blas_thread(which.size):
            for part, Z in self.some_features(which):
                lengths[part] = np.square((Z - center) @ matrix.T).sum(axis=1)
        return lengths

    def _target_moments(self, count: float) -> tuple[Array, Array]:
        blocks = list(slices(self.n_rows, PASS_ROWS))
        mean, squares = np.zeros((2, self.n_targets))
        for part in blocks:
            mean += self.weights[part] @ self.coding.columns(self.targets[part])
        mean /= max(count, np.finfo(float).tiny)
        for part in blocks:
            centered = self.coding.columns(self.targets[part]) - mean
            squares += self.weights[part] @ np.square(centered)
        return mean, squares

    def gradient(
        self, loss: Loss, W: Array, intercept: Array, watched: NDArray[np.bool_] | None = None
    ) -> Gradient:
        """The weighted loss of all rows and its derivatives, in one pass.

        The outputs of watched rows are returned as well.
        """
        wanted = _labels if loss.of_labels else self.coding.columns
        return self._pass(loss, W, intercept, wanted, watched)

    def normal_product(
        self, W: Array, mean: Array, watched: NDArray[np.bool_] | None = None
    ) -> tuple[Array, Array]:
        """C' diag(weights) C W for the centered features C = Z - 1 mean', and rows of C W.

        The second result has the watched rows.
        """
        gradient = self._pass(Squared(), W, -(mean @ W), partial(_zeros, W.shape[1]), watched)
        return gradient.weights - np.outer(mean, gradient.intercept), gradient.outputs

    def _pass(
        self, loss: Loss, W: Array, intercept: Array, wanted: Wanted, watched: Any
    ) -> Gradient:
        """One pass over all rows, where ``wanted`` makes the targets of the loss."""
        n_outputs = W.shape[1]
        total, out, sums = 0.0, np.zeros((self.n_features, n_outputs)), np.zeros(n_outputs)
        memory = np.empty((min(self.n_rows, PASS_ROWS), n_outputs))
        seen: dict[int, Array] = {}
        for part, operator, rows in self._blocks():
            outputs = memory[: part.stop - part.start]
            targets = np.ascontiguousarray(wanted(self.targets[part]))
            weights = self.weights[part]
            total += operator.gradient(
                rows, W, intercept, targets, weights, loss.native, outputs, out, sums
            )
            if not np.isfinite(total):
                raise self._overflow(rows)
            if watched is not None:
                seen[part.start] = outputs[watched[part]]
        return Gradient(total, out, sums, seen)


def feature_rows(
    fitted: FittedMap,
    rows: Source | RowsInMemory,
    targets: NDArray[Any],
    coding: TargetCoding,
    weights: Array,
) -> FeatureRows:
    """Rows whose features are computed in every pass, in memory or from a source."""
    block = rows.whole()
    if block is None:
        return SourceRows(fitted, rows, targets, coding, weights)
    return FeatureRows(fitted, block.X, targets, coding, weights)


class SourceRows(FeatureRows):
    """Rows of a source. Their targets and weights are in memory, but not their columns.

    A pass is a reduction of the source: the gradients of blocks are added, wherever blocks are.
    """

    @cached_property
    def _source(self) -> Source:
        source: Source = self.X.with_targets(self.targets).with_weights(self.weights)
        return source

    def some(self, which: NDArray[np.intp]) -> FeatureRows:
        """These rows alone, in memory."""
        wanted, places = np.unique(which, return_inverse=True)
        rows = take(self.X.without_targets().take(wanted).X, places)
        return FeatureRows(self.fitted, rows, self.targets[which], self.coding, self.weights[which])

    def keys(self) -> Keys:
        return self._by_block("keys")

    def squared_lengths(self, which: NDArray[np.intp], center: Array, matrix: Array) -> Array:
        return self._by_block("squared_lengths", which, center, matrix)

    def _by_block(self, method: str, *arguments: Any) -> NDArray[Any]:
        """The results of a method for each row."""
        computed = OfBlock(self.fitted, self.coding, method, arguments)
        return np.concatenate(in_order(self._source.reduced(ByStart(computed.of))))

    def statistics(self, which: NDArray[np.intp]) -> LeastSquares:
        computed = OfBlock(self.fitted, self.coding, "statistics", (which,))
        statistics: LeastSquares = self._source.reduced(computed)
        return statistics

    def _pass(
        self, loss: Loss, W: Array, intercept: Array, wanted: Wanted, watched: Any
    ) -> Gradient:
        numbers = np.empty(0, np.intp) if watched is None else np.flatnonzero(watched)
        arguments = replace(loss), W, intercept, wanted
        gradient: Gradient = self._source.reduced(
            GradientOfBlock(self.fitted, self.coding, "_pass", arguments, numbers)
        )
        return gradient


@dataclass(frozen=True)
class OfBlock:
    """The result of a method of `FeatureRows` for the rows of a source, as a reduction."""

    fitted: FittedMap  # the map
    coding: TargetCoding  # converts encoded targets to columns of numbers
    method: str  # the method, whose results can be combined or are kept apart by `ByStart`
    arguments: tuple[Any, ...]  # its arguments

    def of(self, block: Block, *more: Any) -> Any:
        rows = FeatureRows(self.fitted, block.X, block.y, self.coding, block.weight)  # type: ignore[arg-type]
        return getattr(rows, self.method)(*self.arguments, *more)

    def combined(self, a: Any, b: Any) -> Any:
        return a.combined(b)


@dataclass(frozen=True)
class GradientOfBlock(OfBlock):
    """The gradient of the rows of a source, as a reduction."""

    watched: NDArray[np.intp]  # the indices of the rows whose outputs are wanted, increasing
    numbered = True

    def of(self, block: Block, *more: Any) -> Gradient:
        low, high = np.searchsorted(self.watched, [block.start, block.stop])
        mask = np.zeros(block.n_rows, bool)
        mask[self.watched[low:high] - block.start] = True
        gradient: Gradient = super().of(block, mask if high > low else None)
        return replace(gradient, watched={block.start: gradient.outputs} if high > low else {})
