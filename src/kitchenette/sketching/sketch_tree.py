"""Trees of count sketches of tensor powers (Ahle et al., 2020).

The sketch of x (x) ... (x) x is made of sketches of its two halves, by a sketch of degree two: both
are hashed with signs to D buckets and convolved. So errors of a power are not multiplied with
those of the next one, but added.

The hash functions of a node are injective where they can be: a sketch of D numbers is hashed to D
buckets by a permutation, which is an isometry, and a row of at most D columns likewise.
Only different pairs of coordinates with the same sum of hashes make an error, and of these
none with a coordinate in common.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette import _core
from kitchenette.sketching.count_sketch import (
    circle,
    part_length,
    roots,
    tensor_power_sketch,
    transform_plan,
    transform_tables,
)
from kitchenette.sketching.operators import NativeOperator
from kitchenette.sketching.random import Stream
from kitchenette.sketching.structured import padded_block

ROW = -1  # the place of a child that is the row itself


class Hashes(NamedTuple):
    """The hash functions of one of the two inputs of a node."""

    child: int  # the place of the node whose sketch is the input, or ROW
    buckets: NDArray[np.int32]
    signs: NDArray[np.int8]


def draw_tree(degree: int, n_inputs: int, n_buckets: int, seed: int) -> list[Hashes]:
    """Two hash functions for each node, children before parents; for degree one a single one.

    The last node has n_buckets, all others the next power of two. Each halves its degree.
    """
    inner = padded_block(n_buckets)
    made: list[Hashes] = []

    def add(degree: int, size: int) -> int:
        children = [
            ROW if half == 1 else add(half, inner) for half in (degree - degree // 2, degree // 2)
        ]
        for child in children:
            n = n_inputs if child == ROW else inner
            made.append(_draw(child, n, size, seed, len(made)))
        return len(made) // 2 - 1

    if degree == 1:
        return [_draw(ROW, n_inputs, n_buckets, seed, 0)]
    add(degree, n_buckets)
    return made


def _draw(child: int, n_inputs: int, n_buckets: int, seed: int, block: int) -> Hashes:
    """Inputs take slots without replacement; a bucket has as many slots as are needed."""
    n_slots = n_buckets * slots_per_bucket(n_inputs, n_buckets)
    slots = Stream(seed, "sketch tree slots").permutations(1, n_slots, first=block)[0, :n_inputs]
    signs = Stream(seed, "sketch tree signs").signs(1, n_inputs, first=block)[0]
    return Hashes(child, slots % np.int32(n_buckets), signs)


def slots_per_bucket(n_inputs: int, n_buckets: int) -> int:
    """The number of slots of a bucket: one if the hash function can be injective."""
    return -(-n_inputs // n_buckets)


def tree_of_sketches(
    tree: list[Hashes],
    column_scales: NDArray[np.float64],
    n_buckets: int,
    n_columns: int,
    dtype: DTypeLike,
    *,
    frequency: bool,
) -> NativeOperator:
    """The operator of a drawn tree, for rows with scaled columns and an optional constant 1.

    ``column_scales`` are those of all inputs. With ``frequency`` the operator returns the real
    orthogonal Fourier transform of the sketch.
    """
    if len(tree) == 1:
        (leaf,) = tree
        return tensor_power_sketch(
            leaf.buckets[None],
            (leaf.signs * column_scales)[None],
            n_buckets,
            n_columns,
            dtype,
            frequency=frequency,
        )
    name, width = np.dtype(dtype).name, padded_block(n_buckets)
    length, with_chirps = transform_plan(n_buckets, 2, frequency)
    scales_of_spectrum = spectrum_scales(width)
    weights = []
    for place, hashes in enumerate(tree):
        scales = column_scales if hashes.child == ROW else scales_of_spectrum
        if place >= len(tree) - 2 and not frequency:
            # The core's inverse transform is not normalized.
            scales = scales * (n_buckets if with_chirps else length) ** -0.5
        weights.append((hashes.signs * scales).astype(dtype))
    longest = max(width, length)
    # Parts of transforms pay where there are few inputs, which those of other nodes are not.
    part = part_length(column_scales.size if len(tree) == 2 else longest)
    native = _core.sketch_tree(
        n_columns=n_columns,
        n_buckets=n_buckets,
        width=width,
        children=[hashes.child for hashes in tree],
        buckets=[hashes.buckets for hashes in tree],
        weights=weights,
        length=length,
        roots=roots(longest, name),
        part=part,
        circle=circle(max(1, length // part), name),
        **transform_tables(n_buckets, length, with_chirps, frequency, name),
    )
    return NativeOperator(native)


def spectrum_scales(width: int) -> NDArray[np.float64]:
    """The factors that make the core's real transform of a power of two orthogonal.

    Its first two numbers are real; the others are parts of numbers that stand for their conjugates,
    too.
    """
    scales = np.full(width, np.sqrt(2 / width))
    scales[:2] = np.sqrt(1 / width)
    return scales


# ---------------------------------------------------------------- moments


class TreeMoments(NamedTuple):
    """Upper bounds of moments of the sketches of two rows x and y, over the hash functions."""

    dot: Any  # the mean of <x, y>^2
    norms: Any  # the mean of |x|^2 |y|^2


def tree_moments(
    degree: int, n_buckets: int, n_inputs: int, dots: Any, norms: Any, common: Any
) -> TreeMoments:
    """Moments of the sketches of two rows with <x, y>, |x|^2 |y|^2, and the sum of x_i^2 y_i^2.

    The first one is exact up to degree two. Above, it is an upper bound, and larger by a share of
    the order 1 / n_buckets of the variance: the sum of squares of products of coordinates is
    taken as zero for sketches inside the tree, where it is smallest.
    """
    inner = padded_block(n_buckets)

    def of_input(degree: int) -> tuple[TreeMoments, Any, int]:
        if degree == 1:
            return TreeMoments(dots**2, norms), common, n_inputs
        return of_node(degree, inner), 0.0, inner

    def of_node(degree: int, size: int) -> TreeMoments:
        (one, s, n), (other, r, m) = (of_input(k) for k in (degree - degree // 2, degree // 2))
        same_one, same_other = collision(n, size), collision(m, size)
        apart = (1 - same_one) * (1 - same_other)
        both = same_one * same_other + apart / max(size - 1, 1)
        mixed = same_one * same_other + (size % 2 == 0) * apart / max(size - 1, 1) ** 2
        b, c = one.norms - s, one.dot - s
        e, f = other.norms - r, other.dot - r
        dot = (
            one.dot * other.dot
            + same_one * (b + c) * other.dot
            + same_other * one.dot * (e + f)
            + both * (b * e + c * f)
            + mixed * (b * f + c * e)
        )
        # Of two halves with unknown sums of squares, c f is at most the product of the norms.
        cf = c * f if degree == 2 else one.norms * other.norms
        up = [
            np.maximum(part, 0) if degree == 2 else whole
            for part, whole in ((c, one.norms), (f, other.norms))
        ]
        grown = (
            one.norms * other.norms
            + 2 * same_one * up[0] * other.norms
            + 2 * same_other * one.norms * up[1]
            + 2 * (both + mixed) * np.maximum(cf, 0)
        )
        return TreeMoments(dot, grown)

    if degree == 1:
        same = collision(n_inputs, n_buckets)
        return TreeMoments(
            dots**2 + same * (norms + dots**2 - 2 * common),
            norms + 2 * same * (dots**2 - common),
        )
    return of_node(degree, n_buckets)


def collision(n_inputs: int, n_buckets: int) -> float:
    """The probability that two different inputs have the same bucket."""
    slots = slots_per_bucket(n_inputs, n_buckets)
    return (slots - 1) / max(slots * n_buckets - 1, 1)
