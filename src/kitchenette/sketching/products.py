"""Products of projections on random signs.

A feature of degree n is weight * z_1 ... z_n with z_j = <s_j, x> for random signs s_j that are
independent from factor to factor: its expectation over the signs, at two rows, is
weight^2 <x, y>^n. The signs are rows of Hadamard matrices or independent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette import _core
from kitchenette.sketching.combinations import concatenate
from kitchenette.sketching.dense import PANEL
from kitchenette.sketching.operators import NativeOperator, Operator
from kitchenette.sketching.random import Stream
from kitchenette.sketching.structured import padded_block, whole_tiles, zero_padded

GROUP = 16  # the number of products that the core computes together


@dataclass(frozen=True, eq=False)
class SignedProducts(ABC):
    """Features weight * z_1 ... z_n."""

    degrees: NDArray[np.int32]  # (n_features,): the number of factors of each feature
    n_columns: int  # the number of columns of the data
    weights: NDArray[Any]  # the weights of the products, padded with zeros
    # A power of two by which the data is multiplied, so that products do not overflow
    input_scale: float

    def astype(self, dtype: DTypeLike) -> Self:
        """The same products with weights in this precision."""
        return replace(self, weights=self.weights.astype(dtype, copy=False))

    def operator(self) -> NativeOperator:
        """The operator that computes the features."""
        scales = np.full(self.n_columns, self.input_scale, dtype=self.weights.dtype)
        native = self._native(
            n_columns=self.n_columns,
            n_features=self.degrees.size,
            weights=self.weights,
            column_scales=None if self.input_scale == 1 else scales,
        )
        return NativeOperator(native)

    @abstractmethod
    def _native(self, **common: Any) -> Any:
        """The native operator, from the signs and the arguments that all kinds of signs share."""


@dataclass(frozen=True, eq=False)
class HadamardProducts(SignedProducts):
    """Signs that are rows of H B_j, one diagonal matrix B_j of random signs per factor.

    Every feature picks a random row of the transform of every factor. The transforms are computed
    once for all features, so a feature costs one multiplication per factor.

    H B_j is orthogonal up to scale, so given the B_j, the mean over all rows that a feature may
    pick is exact, and features are uncorrelated although they share the B_j. (They are sampled
    rows of the tensor product of the matrices H B_j.)
    """

    block: int
    signs: NDArray[np.int8]  # (n_factors, tile); a tile holds one block or several short ones
    indices: NDArray[np.int32]  # (n_factors, padded features); index `tile` means a factor of 1
    depths: NDArray[np.int32]  # per group of features

    def _native(self, **common: Any) -> Any:
        return _core.hadamard_products(
            block=self.block,
            signs=self.signs,
            indices=self.indices,
            depths=self.depths,
            **common,
        )


def draw_hadamard_products(
    degrees: NDArray[np.int32],
    weights: NDArray[np.float64],
    n_columns: int,
    seed: int,
    dtype: DTypeLike,
    input_scale: float = 1.0,
) -> HadamardProducts:
    """Rows are sampled without replacement within a block, separately for every degree.

    A whole block of features of degree one is therefore exact.
    """
    block = padded_block(n_columns)
    tile = whole_tiles(1, block)
    indices = _picked_rows(degrees, block, seed, "hadamard rows")
    return HadamardProducts(
        degrees=degrees,
        n_columns=n_columns,
        weights=zero_padded(weights, indices.shape[1], dtype),
        input_scale=input_scale,
        block=block,
        signs=Stream(seed, "hadamard signs").signs(len(indices), tile),
        indices=indices,
        depths=_depths(degrees, indices.shape[1]),
    )


def _picked_rows(
    degrees: NDArray[np.int32], block: int, seed: int, stream: str
) -> NDArray[np.int32]:
    """The row of the transform of every factor (n_factors, padded products) for each product."""
    n_products, n_factors = degrees.size, int(degrees.max(initial=0))
    tile = whole_tiles(1, block)
    padded = -(-n_products // GROUP) * GROUP
    indices = np.full((n_factors, padded), tile, dtype=np.int32)
    for degree in np.unique(degrees):
        features = np.flatnonzero(degrees == degree)
        runs = np.arange(-(-features.size // block))
        for j in range(degree):
            rows = Stream(seed, f"{stream} {degree} {j}").permutations(runs.size, block)
            # Successive permutations use the blocks of a tile in turn.
            rows += (runs * block % tile).astype(np.int32)[:, None]
            indices[j, features] = rows.ravel()[: features.size]
    return indices


def _depths(degrees: NDArray[np.int32], padded: int) -> NDArray[np.int32]:
    """The largest degree of every group of products."""
    return zero_padded(degrees, padded, np.int32).reshape(-1, GROUP).max(axis=1)


@dataclass(frozen=True, eq=False)
class ComplexProducts(SignedProducts):
    """Pairs of features, real and imaginary parts of products, and then real products.

    A factor is a row of H C_j times x, with a diagonal matrix C_j of random fourth roots of unity
    (Wacker, Kanagawa and Filippone, 2022). The mean of z(x) times the conjugate of z(y) is
    <x, y>^n, and its real part is the sum of two products of real features. The
    roots are stored as signs of real parts and of imaginary parts, of which one is zero.
    """

    block: int
    signs: NDArray[np.int8]  # (2 n_factors, tile): of real and of imaginary parts in turn
    indices: NDArray[np.int32]  # (n_factors, padded pairs), as those of HadamardProducts
    depths: NDArray[np.int32]  # per group of pairs
    n_pairs: int
    real: HadamardProducts | None  # the features after the pairs, if any

    def operator(self) -> Operator:  # type: ignore[override]
        operators: list[Operator] = []
        if self.n_pairs:
            operators.append(super().operator())
        if self.real is not None:
            operators.append(self.real.operator())
        return concatenate(operators, self.n_columns)

    def _native(self, **common: Any) -> Any:
        del common["n_features"]  # those of the real products, too
        return _core.complex_products(
            n_products=self.n_pairs,
            block=self.block,
            signs=self.signs,
            indices=self.indices,
            depths=self.depths,
            **common,
        )


def pair_order(degrees: NDArray[Any]) -> tuple[NDArray[np.intp], int]:
    """The order of features in `ComplexProducts`, and the number of pairs with which it begins.

    As many features of one degree as possible are paired, but for the degrees 0 and 1. Those
    of degree one are rows of a real transform, of which fewer are exact.
    """
    pairs, rest = [], []
    for degree in np.unique(degrees)[::-1]:
        features = np.flatnonzero(degrees == degree)
        n_paired = features.size // 2 * 2 if degree > 1 else 0
        pairs.append(features[:n_paired])
        rest.append(features[n_paired:])
    order = np.concatenate([*pairs, *rest]) if pairs else np.zeros(0, dtype=np.intp)
    return order, sum(some.size for some in pairs) // 2


def draw_complex_products(
    degrees: NDArray[np.int32],
    weights: NDArray[np.float64],
    n_columns: int,
    seed: int,
    dtype: DTypeLike,
    input_scale: float = 1.0,
) -> ComplexProducts:
    """Features in the order of `pair_order`, with equal weights within a degree."""
    _, n_pairs = pair_order(degrees)
    block = padded_block(n_columns)
    tile = whole_tiles(1, block)
    of_pairs = degrees[: 2 * n_pairs : 2]
    indices = _picked_rows(of_pairs, block, seed, "complex rows")
    words = Stream(seed, "complex signs").words(len(indices), tile)
    roots = (words >> np.uint64(62)).astype(np.int8)  # the powers of i
    powers = np.array([[1, 0, -1, 0], [0, 1, 0, -1]], dtype=np.int8)
    signs = np.stack([powers[0][roots], powers[1][roots]], axis=1).reshape(-1, tile)
    real = None
    if degrees.size > 2 * n_pairs:
        rest = slice(2 * n_pairs, None)
        real = draw_hadamard_products(
            degrees[rest], weights[rest], n_columns, seed, dtype, input_scale
        )
    # One product stands for two features, of which each has the weight of half of them.
    return ComplexProducts(
        degrees=degrees,
        n_columns=n_columns,
        weights=zero_padded(np.sqrt(2) * weights[: 2 * n_pairs : 2], indices.shape[1], dtype),
        input_scale=input_scale,
        block=block,
        signs=signs,
        indices=indices,
        depths=_depths(of_pairs, indices.shape[1]),
        n_pairs=n_pairs,
        real=real,
    )


@dataclass(frozen=True, eq=False)
class RademacherProducts(SignedProducts):
    """Independent signs, stored as n_columns bits per factor of a feature."""

    bits: NDArray[np.uint64]  # (factors of all panels, n_columns)
    used: NDArray[np.uint64]  # a bit for each feature of the panel that has this factor
    starts: NDArray[np.int64]  # panel p owns the factors starts[p] ... starts[p + 1]

    def _native(self, **common: Any) -> Any:
        return _core.sign_products(bits=self.bits, used=self.used, starts=self.starts, **common)


def draw_rademacher_products(
    degrees: NDArray[np.int32],
    weights: NDArray[np.float64],
    n_columns: int,
    seed: int,
    dtype: DTypeLike,
    input_scale: float = 1.0,
) -> RademacherProducts:
    """Signs from one block of random words per panel and factor."""
    panels = -(-degrees.size // PANEL)
    padded = zero_padded(degrees, panels * PANEL, np.int32).reshape(panels, PANEL)
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
        weights=zero_padded(weights, panels * PANEL, dtype),
        input_scale=input_scale,
        bits=bits,
        used=used,
        starts=starts,
    )
