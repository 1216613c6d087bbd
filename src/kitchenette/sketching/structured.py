"""Structured projections: random directions by fast transforms.

A projection is a stack of square blocks. Each block is a product of diagonal matrices and fast
transforms, stored as a few numbers per row; as drawn, its rows are unit vectors. Blocks are
stored whole, even if not all rows of the last one are used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.fft
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy import special

from kitchenette import _core
from kitchenette.sketching.hadamard import fwht
from kitchenette.sketching.operators import NativeOperator, Operator
from kitchenette.sketching.random import Stream
from kitchenette.sketching.rows import BLOCK_BYTES, row_blocks

TILE = 128  # the smallest number of rows of the projection that the core computes together


@dataclass(frozen=True, eq=False)
class StructuredProjection(ABC):
    """z = scales * transform(column_scales * x)."""

    n_rows: int  # the number of projections
    n_columns: int  # the number of columns of the data
    scales: NDArray[Any]  # the factors of the rows. As drawn, they make the rows unit vectors.
    column_scales: NDArray[Any] | None  # (n_columns,): the factors of the columns of the data

    def stretched(self, lengths: NDArray[Any], column_scales: NDArray[Any] | None = None) -> Self:
        """The projection with its rows multiplied by ``lengths`` and these column scales."""
        scales = self.scales[: self.n_rows] * lengths
        scales = zero_padded(scales, self.scales.size, self.scales.dtype)
        if column_scales is not None:
            column_scales = column_scales.astype(scales.dtype)
        return replace(self, scales=scales, column_scales=column_scales)

    def astype(self, dtype: DTypeLike) -> Self:
        """The same projection with all its real numbers in this precision."""
        if self.scales.dtype == dtype:
            return self
        changes: dict[str, Any] = {
            name: value.astype(dtype)
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray) and value.dtype.kind == "f"
        }
        return replace(self, **changes)

    def matrix(self) -> NDArray[Any]:
        """The projection as an explicit matrix of shape (n_rows, n_columns)."""
        out = np.empty((self.n_rows, self.n_columns), dtype=self.scales.dtype)
        for place, part in self._parts_of_matrix():
            out[place] = part
        return out

    def row_lengths(self) -> NDArray[np.float64]:
        """The Euclidean norms of the rows of `matrix`, restricted to n_columns coordinates.

        As drawn, rows are unit vectors in the padded space.
        """
        squares = np.zeros(self.n_rows)
        for place, part in self._parts_of_matrix():
            squares[place[0]] += np.square(part, dtype=np.float64).sum(axis=1)
        return np.sqrt(squares)

    def _parts_of_matrix(self) -> Iterator[tuple[tuple[Any, Any], NDArray[Any]]]:
        """The matrix in parts that fit the cache, and the rows and columns of each of them.

        These are whole columns, by a transform of n_columns unit vectors.
        """
        identity = sp.eye_array(self.n_columns, dtype=self.scales.dtype, format="csr")
        project = self.operator(_core.Nonlinearity("identity"), self.n_rows)
        for columns, block in row_blocks(identity, max(self.n_rows, self.n_columns)):
            out = np.empty((block.shape[0], self.n_rows), dtype=block.dtype)
            project.write(block, out)
            yield (slice(None), columns), out.T

    @abstractmethod
    def operator(self, nonlinearity: _core.Nonlinearity, n_features: int) -> Operator:
        """The operator that projects rows and applies a nonlinearity with n_features outputs."""


def padded_block(n_columns: int) -> int:
    """The smallest power of two that is not below n_columns."""
    return 1 << (n_columns - 1).bit_length()


def whole_tiles(n_rows: int, block: int) -> int:
    """n_rows rounded up to whole tiles, which the core computes."""
    tile = max(TILE, block)
    return -(-n_rows // tile) * tile


def zero_padded(values: NDArray[Any], size: int, dtype: DTypeLike) -> NDArray[Any]:
    """The values, followed by zeros up to this size."""
    padded = np.zeros(size, dtype=dtype)
    padded[: values.size] = values
    return padded


@dataclass(frozen=True, eq=False)
class HadamardProjection(StructuredProjection):
    """Blocks of Walsh-Hadamard transforms, from `draw_fastfood` or `draw_orthogonal`.

    All arrays are padded to whole tiles; scales beyond the last row are zero.
    """

    block: int
    signs: NDArray[np.int8]
    permutation: NDArray[np.int32] | None = None
    gaussians: NDArray[Any] | None = None
    cosines: NDArray[Any] | None = None
    sines: NDArray[Any] | None = None

    def _parts_of_matrix(self) -> Iterator[tuple[tuple[Any, Any], NDArray[Any]]]:
        """Whole columns, or whole rows if these are fewer, by the transposed transform."""
        if self.n_columns <= self.n_rows:
            yield from super()._parts_of_matrix()
            return
        size = max(1, BLOCK_BYTES // (self.scales.itemsize * self.block))
        for first in range(0, self.n_rows, self.block):
            block, end = slice(first, first + self.block), min(first + self.block, self.n_rows)
            for start in range(first, end, size):
                rows = np.arange(start, min(start + size, end))
                some = fwht(self._second_transform(rows - first, block), overwrite_x=True)
                some = some[:, : self.n_columns]
                some *= self.signs[block][: self.n_columns]
                some *= self.scales[rows, None]
                if self.column_scales is not None:
                    some *= self.column_scales
                yield (rows, slice(None)), some

    def _second_transform(self, places: NDArray[np.intp], block: slice) -> NDArray[Any]:
        """The rows at these places of R, or of H G Pi, in a block."""
        dtype = self.scales.dtype
        if self.permutation is not None and self.gaussians is not None:
            unit = np.zeros((places.size, self.block), dtype=dtype)
            unit[np.arange(places.size), places] = 1
            rows = np.empty_like(unit)
            rows[:, self.permutation[block]] = fwht(unit, overwrite_x=True) * self.gaussians[block]
            return rows
        assert self.cosines is not None
        assert self.sines is not None
        cosines, sines = self.cosines[block], self.sines[block]
        rows = np.ones((places.size, self.block), dtype=dtype)
        for row, place in zip(rows, places.tolist(), strict=True):
            # The transposed butterfly from the smallest stride: a unit vector fills a piece of
            # twice as many coordinates in every stage.
            stride = 1
            while stride < self.block:
                c, s = cosines[stride : 2 * stride], sines[stride : 2 * stride]
                piece, other = row[:stride], row[stride : 2 * stride]
                if place & stride:
                    np.multiply(piece, c, out=other)
                    piece *= -s
                else:
                    np.multiply(piece, s, out=other)
                    piece *= c
                stride *= 2
        return rows

    def operator(
        self, nonlinearity: _core.Nonlinearity, n_features: int, constant: float = 0.0
    ) -> NativeOperator:
        native = _core.structured(
            nonlinearity,
            n_columns=self.n_columns,
            n_features=n_features,
            block=self.block,
            signs=self.signs,
            permutation=self.permutation,
            gaussians=self.gaussians,
            cosines=self.cosines,
            sines=self.sines,
            scales=self.scales,
            column_scales=self.column_scales,
            constant=constant,
        )
        return NativeOperator(native)


def draw_fastfood(
    n_rows: int, n_columns: int, seed: int, dtype: DTypeLike, *, width: int = 0
) -> HadamardProjection:
    """Directions H G Pi H B (Le, Sarlos and Smola 2013, eq. 33).

    Each row is uniform on the sphere, because a row of H G is a vector of independent
    normals and Pi H B is orthogonal up to scale. Rows of a block are not independent.
    ``width`` is a lower bound of the block size, for constants appended to the data.
    """
    block = padded_block(max(n_columns, width))
    padded = whole_tiles(n_rows, block)
    shape = (padded // block, block)
    gaussians = Stream(seed, "fastfood gaussians").normals(*shape)
    # In each block every row of H G Pi H B has the norm |G| sqrt(d) (eq. 36).
    norms = 1 / (np.linalg.norm(gaussians, axis=1) * np.sqrt(block))
    return HadamardProjection(
        n_rows=n_rows,
        n_columns=n_columns,
        scales=np.repeat(norms, block).astype(dtype),
        column_scales=None,
        block=block,
        signs=Stream(seed, "fastfood signs").signs(*shape).ravel(),
        permutation=Stream(seed, "fastfood permutation").permutations(*shape).ravel(),
        gaussians=gaussians.ravel().astype(dtype),
    )


def draw_orthogonal(
    n_rows: int, n_columns: int, seed: int, dtype: DTypeLike, *, width: int = 0
) -> HadamardProjection:
    """Directions R H B: orthogonal inside a block, each uniform on the sphere.

    R is a butterfly network like H, with a random angle for every pair instead of 45 degrees.
    The stage that joins two halves of m coordinates each rotates by an angle whose squared
    cosine is Beta(m/2, m/2), the distribution of the squared norm of one half of a uniform unit
    vector; so every row of R is exactly uniform on the sphere, in every dimension. (The usual
    construction, three rounds of signs and Hadamard transforms, has a finite set of directions;
    the bias of its kernel is 0.2 for two columns, 0.03 for eight and 0.005 for sixteen.) H B
    mixes the columns first, so that the joint distribution of the rows is close to that of a
    random orthogonal matrix.
    """
    block = padded_block(max(n_columns, width))
    padded = whole_tiles(n_rows, block)
    shape = (padded // block, block)
    cosines, sines = _random_angles(seed, *shape)
    return HadamardProjection(
        n_rows=n_rows,
        n_columns=n_columns,
        scales=np.full(padded, 1 / np.sqrt(block), dtype=dtype),
        column_scales=None,
        block=block,
        signs=Stream(seed, "orthogonal signs").signs(*shape).ravel(),
        cosines=cosines.ravel().astype(dtype),
        sines=sines.ravel().astype(dtype),
    )


def _random_angles(
    seed: int, blocks: int, block: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cosines and sines of the angles; those of the stage of stride h are entries h ... 2h - 1."""
    u = Stream(seed, "orthogonal angles").uniforms(blocks, block)
    cosines, sines = np.ones_like(u), np.zeros_like(u)
    stride = block // 2
    if stride >= 1:
        # The first stage joins single coordinates, by an angle uniform on the circle.
        first = slice(stride, 2 * stride)
        cosines[:, first] = np.cos(2 * np.pi * u[:, first])
        sines[:, first] = np.sin(2 * np.pi * u[:, first])
        stride //= 2
    while stride >= 1:
        stage = slice(stride, 2 * stride)
        half = block / (4 * stride)  # m/2 for halves of m = block / (2 stride) coordinates
        share = special.betaincinv(half, half, u[:, stage])
        cosines[:, stage], sines[:, stage] = np.sqrt(share), np.sqrt(1 - share)
        stride //= 2
    return cosines, sines


@dataclass(frozen=True, eq=False)
class FourierProjection(StructuredProjection):
    """Directions Pi F B with a real orthogonal Fourier transform F (Le et al., section 6.1).

    F has the order n_columns, so there is no padding. Its rows are cosines and sines. Only the
    signs of a direction are random, so it is not uniform on the sphere.
    """

    signs: NDArray[np.int8]
    columns: NDArray[np.int32]  # the position of each row in the half spectra of the blocks

    def operator(self, nonlinearity: _core.Nonlinearity, n_features: int) -> Operator:
        return FourierOperator(self, nonlinearity, n_features)


class FourierOperator(Operator):
    """Features of a `FourierProjection`, by SciPy's Fourier transforms."""

    def __init__(
        self, projection: FourierProjection, nonlinearity: _core.Nonlinearity, n_features: int
    ):
        self._projection, self._nonlinearity = projection, nonlinearity
        self.n_columns, self.n_features = projection.n_columns, n_features
        self.dtype = projection.scales.dtype

    def write(self, rows: Any, out: NDArray[Any]) -> bool:
        p = self._projection
        blocks = p.signs.reshape(-1, p.n_columns)
        fine = True
        for some, block in row_blocks(rows, 2 * p.signs.size):
            if p.column_scales is not None:
                block = block * p.column_scales
            spectrum = scipy.fft.rfft(
                block[:, None, :] * blocks, norm="ortho", workers=_core.max_threads()
            )
            parts = spectrum.view(block.dtype).reshape(block.shape[0], -1)
            z = np.take(parts, p.columns, axis=1) * p.scales
            fine &= _core.finish_features(z, out[some], self._nonlinearity)
        return fine


def draw_fourier(n_rows: int, n_columns: int, seed: int, dtype: DTypeLike) -> FourierProjection:
    """Independent blocks of signs and permutations for `FourierProjection`."""
    blocks = -(-n_rows // n_columns)
    permutations = Stream(seed, "fourier permutation").permutations(blocks, n_columns)
    # The half spectrum as real numbers is Re 0, Im 0, Re 1, Im 1, ...; Im 0 is always
    # zero, and so is the last imaginary part if the length is even.
    meaningful = np.r_[0, 2 : n_columns + 1]
    weights = np.full(n_columns, np.sqrt(2))
    weights[0] = 1
    if n_columns % 2 == 0:
        weights[-1] = 1
    half_spectrum = 2 * (n_columns // 2 + 1)
    columns = meaningful[permutations] + half_spectrum * np.arange(blocks)[:, None]
    return FourierProjection(
        n_rows=n_rows,
        n_columns=n_columns,
        # In the half spectrum, all but the real first and last entries count twice.
        scales=weights[permutations].ravel()[:n_rows].astype(dtype),
        column_scales=None,
        signs=Stream(seed, "fourier signs").signs(blocks, n_columns).ravel(),
        columns=columns.ravel()[:n_rows].astype(np.int32),
    )
