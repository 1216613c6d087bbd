"""Passes over the rows of a source, which are read again in each: files, or rows on a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kitchenette.data.blocks import some_rows
from kitchenette.data.keys import Keys
from kitchenette.data.reduction import ByStart, in_order
from kitchenette.data.source import Block, Source
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.losses import Loss
from kitchenette.learning.passes import Array, Columns, FeatureRows, Gradient, Wanted
from kitchenette.learning.target_coding import TargetCoding
from kitchenette.maps.protocol import FittedMap


def feature_rows(
    fitted: FittedMap, X: Any, targets: NDArray[Any], coding: TargetCoding, weights: Array
) -> FeatureRows:
    """Rows of which features are computed in every pass, in memory or from a source."""
    made = SourceRows if isinstance(X, Source) else FeatureRows
    return made(fitted, X, targets, coding, weights)


class SourceRows(FeatureRows):
    """Rows of a source. Their targets and weights are in memory, but not their columns.

    A pass is a reduction of the source: the gradients of blocks are added, wherever blocks are.
    """

    def __init__(
        self,
        fitted: FittedMap,
        X: Source,
        targets: NDArray[Any],
        coding: TargetCoding,
        weights: Array,
    ):
        super().__init__(fitted, X, targets, coding, weights)
        self._source = X.with_targets(targets).with_weights(weights)

    def some(self, which: NDArray[np.intp]) -> Any:
        """These rows alone, in memory."""
        rows = some_rows(self._X, which)
        return FeatureRows(
            self._fitted, rows, self.targets[which], self.coding, self.weights[which]
        )

    def with_targets(self, coding: TargetCoding) -> Self:
        made = super().with_targets(coding)
        made._source = self._source
        return made

    def keys(self) -> Keys:
        found = self._source.reduced(ByStart(KeysOf(self._fitted, self.coding)))
        return np.concatenate(in_order(found))

    def squared_lengths(self, which: NDArray[np.intp], center: Array, matrix: Array) -> Array:
        found = self._source.reduced(ByStart(LengthsOf(self._fitted, which, center, matrix)))
        return np.concatenate(in_order(found))

    def statistics(self, which: NDArray[np.intp]) -> LeastSquares:
        found: LeastSquares = self._source.reduced(
            StatisticsOf(self._fitted, Columns(self.coding), which)
        )
        return found

    def _pass(
        self, loss: Loss, W: Array, intercept: Array, wanted: Wanted, watched: Any
    ) -> Gradient:
        numbers = np.empty(0, np.intp) if watched is None else np.flatnonzero(watched)
        found = self._source.reduced(
            GradientOf(self._fitted, replace(loss), W, intercept, wanted, numbers)
        )
        outputs = [rows for _, rows in sorted(found.outputs.items())]
        gradient: Gradient = replace(
            found.sums, outputs=np.concatenate(outputs) if outputs else found.sums.outputs
        )
        return gradient


@dataclass(frozen=True)
class KeysOf:
    """The keys of the rows of a block."""

    fitted: FittedMap
    coding: TargetCoding

    def of(self, block: Block) -> Keys:
        return FeatureRows(self.fitted, block.X, block.y, self.coding, block.weight).keys()  # type: ignore[arg-type]

    def combined(self, a: Keys, b: Keys) -> Keys:
        raise NotImplementedError  # `ByStart` keeps them apart


@dataclass(frozen=True)
class LengthsOf:
    """The squared lengths of some features of the rows of a block, after a linear map."""

    fitted: FittedMap
    which: NDArray[np.intp]
    center: Array
    matrix: Array

    def of(self, block: Block) -> Array:
        rows = FeatureRows(self.fitted, block.X, block.y, None, block.weight)  # type: ignore[arg-type]
        return rows.squared_lengths(self.which, self.center, self.matrix)

    def combined(self, a: Array, b: Array) -> Array:
        raise NotImplementedError  # `ByStart` keeps them apart


@dataclass(frozen=True)
class StatisticsOf:
    """The statistics of some features of the rows of a source, as a reduction.

    Attributes
    ----------
    fitted : FittedMap
        The map.
    wanted : Wanted
        Makes target columns.
    which : ndarray of int
        The features.
    """

    fitted: FittedMap
    wanted: Wanted
    which: NDArray[np.intp]

    def of(self, block: Block) -> LeastSquares:
        rows = FeatureRows(self.fitted, block.X, block.y, None, block.weight)  # type: ignore[arg-type]
        return rows._statistics(self.which, self.wanted)

    def combined(self, a: LeastSquares, b: LeastSquares) -> LeastSquares:
        return a.combined(b)


@dataclass(frozen=True)
class PartialGradient:
    """The sums of a gradient, and the outputs of watched rows by the first row of their block."""

    sums: Gradient
    outputs: dict[int, Array]


@dataclass(frozen=True)
class GradientOf:
    """The gradient of the rows of a source, as a reduction.

    Attributes
    ----------
    fitted : FittedMap
        The map.
    loss : Loss
        What is minimized.
    W, intercept : ndarray
        The model.
    wanted : Wanted
        Makes targets.
    watched : ndarray of int
        The numbers of the rows whose outputs are wanted, increasing.
    """

    fitted: FittedMap
    loss: Loss
    W: Array
    intercept: Array
    wanted: Wanted
    watched: NDArray[np.intp]
    numbered = True

    def of(self, block: Block) -> PartialGradient:
        low, high = np.searchsorted(self.watched, [block.start, block.stop])
        mask = None
        if high > low:
            mask = np.zeros(block.n_rows, bool)
            mask[self.watched[low:high] - block.start] = True
        rows = FeatureRows(self.fitted, block.X, block.y, None, block.weight)  # type: ignore[arg-type]
        found = rows._pass(self.loss, self.W, self.intercept, self.wanted, mask)
        nothing = replace(found, outputs=found.outputs[:0])
        return PartialGradient(nothing, {block.start: found.outputs} if high > low else {})

    def combined(self, a: PartialGradient, b: PartialGradient) -> PartialGradient:
        return PartialGradient(
            Gradient(
                a.sums.loss + b.sums.loss,
                a.sums.weights + b.sums.weights,
                a.sums.intercept + b.sums.intercept,
                a.sums.outputs,
            ),
            {**a.outputs, **b.outputs},
        )
