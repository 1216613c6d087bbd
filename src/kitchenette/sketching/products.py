"""Products of projections on random signs.

A feature of degree n is weight * z_1 ... z_n with z_j = <s_j, x> for random signs s_j that are
independent from factor to factor: its expectation over the signs, at two rows, is
weight^2 <x, y>^n. Here are two ways to draw the signs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette import _core
from kitchenette.sketching.operators import NativeOperator
from kitchenette.sketching.random import Stream
from kitchenette.sketching.structured import padded_block, whole_tiles

GROUP = 16  # the core works on so many products at a time
PANEL = 64  # signs that share a word


@dataclass(frozen=True, eq=False)
class SignedProducts(ABC):
    """Features weight * z_1 ... z_n.

    Attributes
    ----------
    degrees : ndarray of shape (n_features,)
        The number of factors of each feature.
    n_columns : int
        The width of the data.
    weights : ndarray
        What the products are multiplied with, padded with zeros.
    input_scale : float
        What the data is multiplied with, a power of two, so that products stay in range.
    """

    degrees: NDArray[np.int32]
    n_columns: int
    weights: NDArray[Any]
    input_scale: float

    def astype(self, dtype: DTypeLike) -> Self:
        """The same products with weights in this precision."""
        return self if self.weights.dtype == dtype else self._with_weights(dtype)

    def _with_weights(self, dtype: DTypeLike) -> Self:
        return replace(self, weights=self.weights.astype(dtype))

    def _column_scales(self) -> NDArray[Any] | None:
        if self.input_scale == 1:
            return None
        return np.full(self.n_columns, self.input_scale, dtype=self.weights.dtype)

    @abstractmethod
    def operator(self) -> NativeOperator:
        """What computes the features of rows."""

    @abstractmethod
    def factor(self, j: int) -> NDArray[np.int8]:
        """The signs of factor j of every feature, shape (n_features, n_columns).

        Ones times zero for features of a lower degree.
        """


@dataclass(frozen=True, eq=False)
class HadamardProducts(SignedProducts):
    """Signs that are rows of H B_j, one diagonal matrix B_j of random signs per factor.

    Every feature picks a random row of the transform of every factor. The transforms are made
    once, whatever the number of features: a feature costs no more than its multiplications.

    Given the B_j, the mean of a feature over the rows it may pick is exact already, because
    H B_j is orthogonal up to scale; so features are uncorrelated although they share the B_j.
    (They are rows of the tensor product of the matrices H B_j, sampled.)
    """

    block: int
    signs: NDArray[np.int8]  # (n_factors, tile); a tile holds one block or several short ones
    indices: NDArray[np.int32]  # (n_factors, padded features); the length of a tile stands for one
    depths: NDArray[np.int32]  # per group of features

    def operator(self) -> NativeOperator:
        native = _core.hadamard_products(
            n_columns=self.n_columns,
            n_features=self.degrees.size,
            block=self.block,
            signs=self.signs,
            indices=self.indices,
            depths=self.depths,
            weights=self.weights,
            column_scales=self._column_scales(),
        )
        return NativeOperator(native)

    def factor(self, j: int) -> NDArray[np.int8]:
        rows = self.indices[j, : self.degrees.size]
        # A feature without this factor has an index after the last block.
        starts = np.minimum(rows, self.signs.shape[1] - 1) // self.block * self.block
        columns = np.arange(self.n_columns)
        # Sylvester's matrix: the sign is the parity of the bits that row and column share.
        parity = np.bitwise_count((rows - starts)[:, None] & columns) & 1
        signs = self.signs[j][starts[:, None] + columns] * (1 - 2 * parity.astype(np.int8))
        return np.where((self.degrees > j)[:, None], signs, np.int8(0))


def draw_hadamard_products(
    degrees: NDArray[np.int32],
    weights: NDArray[np.float64],
    n_columns: int,
    seed: int,
    dtype: DTypeLike,
    input_scale: float = 1.0,
) -> HadamardProducts:
    """Rows without repetition among as many features of one degree as a block has rows.

    So as many features of degree one as a block has rows are exact.
    """
    n_features, n_factors = degrees.size, int(degrees.max(initial=0))
    block = padded_block(n_columns)
    tile = whole_tiles(1, block)
    padded = -(-n_features // GROUP) * GROUP
    indices = np.full((n_factors, padded), tile, dtype=np.int32)
    for degree in np.unique(degrees):
        features = np.flatnonzero(degrees == degree)
        runs = np.arange(-(-features.size // block))
        for j in range(degree):
            rows = Stream(seed, f"hadamard rows {degree} {j}").permutations(runs.size, block)
            # The runs go round the blocks of a tile.
            rows += (runs * block % tile).astype(np.int32)[:, None]
            indices[j, features] = rows.ravel()[: features.size]
    padded_degrees = np.zeros(padded, dtype=np.int32)
    padded_degrees[:n_features] = degrees
    return HadamardProducts(
        degrees=degrees,
        n_columns=n_columns,
        weights=_padded(weights, padded, dtype),
        input_scale=input_scale,
        block=block,
        signs=Stream(seed, "hadamard signs").signs(n_factors, tile),
        indices=indices,
        depths=padded_degrees.reshape(-1, GROUP).max(axis=1),
    )


@dataclass(frozen=True, eq=False)
class RademacherProducts(SignedProducts):
    """Independent signs, kept as bits: n_columns bits per factor of a feature."""

    bits: NDArray[np.uint64]  # (factors of all panels, n_columns)
    used: NDArray[np.uint64]  # which features of a panel have this factor
    starts: NDArray[np.int64]  # panel p owns the factors starts[p] ... starts[p + 1]

    def operator(self) -> NativeOperator:
        native = _core.sign_products(
            n_columns=self.n_columns,
            n_features=self.degrees.size,
            bits=self.bits,
            used=self.used,
            starts=self.starts,
            weights=self.weights,
            column_scales=self._column_scales(),
        )
        return NativeOperator(native)

    def factor(self, j: int) -> NDArray[np.int8]:
        signs = np.zeros((self.degrees.size, self.n_columns), dtype=np.int8)
        for feature in np.flatnonzero(self.degrees > j):
            word = self.bits[self.starts[feature // PANEL] + j]
            bit = (word >> np.uint64(feature % PANEL)) & np.uint64(1)
            signs[feature] = 1 - 2 * bit.astype(np.int8)
        return signs


def draw_rademacher_products(
    degrees: NDArray[np.int32],
    weights: NDArray[np.float64],
    n_columns: int,
    seed: int,
    dtype: DTypeLike,
    input_scale: float = 1.0,
) -> RademacherProducts:
    """Signs of every panel and factor from a block of words of their own."""
    panels = -(-degrees.size // PANEL)
    padded = np.zeros((panels, PANEL), dtype=np.int32)
    padded.ravel()[: degrees.size] = degrees
    factors = padded.max(axis=1)
    starts = np.concatenate([[0], np.cumsum(factors)]).astype(np.int64)
    bits = np.empty((int(starts[-1]), n_columns), dtype=np.uint64)
    used = np.empty(int(starts[-1]), dtype=np.uint64)
    for p in range(panels):
        words = Stream(seed, f"rademacher {p}").words(int(factors[p]), n_columns)
        bits[starts[p] : starts[p + 1]] = words
        has_factor = padded[p] > np.arange(factors[p])[:, None]
        powers = np.uint64(1) << np.arange(PANEL, dtype=np.uint64)
        used[starts[p] : starts[p + 1]] = (has_factor * powers).sum(axis=1, dtype=np.uint64)
    return RademacherProducts(
        degrees=degrees,
        n_columns=n_columns,
        weights=_padded(weights, panels * PANEL, dtype),
        input_scale=input_scale,
        bits=bits,
        used=used,
        starts=starts,
    )


def _padded(weights: NDArray[np.float64], size: int, dtype: DTypeLike) -> NDArray[Any]:
    padded = np.zeros(size, dtype=dtype)
    padded[: weights.size] = weights
    return padded
