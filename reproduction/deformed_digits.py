"""Deformed digits, which stand in for MNIST8M: a seeded stream of rows that is never stored.

MNIST8M has 8.1 million elastic deformations of the 60,000 training digits of MNIST. Here pixels are
displaced by a random affine map and by a smooth random field, and images are resampled bilinearly.
Both displacements are linear in few random numbers, so a block of images takes two matrix products
and four look-ups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from kitchenette.data.rows import slices

SIDE = 28  # pixels
BORDER = 6  # empty pixels around an image, into which displacements may reach
BLOCK_ROWS = 4096
CACHED_ROWS = 256  # which are deformed together, so that all of it stays in the cache

# Standard deviations. Both coordinates of a pixel are displaced by `SHIFT` pixels, by `STRETCH`
# pixels for each pixel of distance from the center, and by `ELASTIC` pixels at each knot of a grid.
SHIFT, STRETCH, ELASTIC = 0.7, 0.08, 1.1
KNOTS = 7  # of cubic splines along each side

Block = tuple[NDArray[np.float32], NDArray[Any]]


def one_round(
    images: NDArray[Any], labels: NDArray[Any], number: int, seed: int
) -> Iterator[Block]:
    """All images once, in blocks: as they are in round 0, each with a new deformation in others.

    A block depends on the seed, the number of the round and its place in it alone.
    """
    for part in slices(len(images), BLOCK_ROWS):
        rows = images[part].astype(np.float32)
        if number > 0:
            rows = deformed(rows, np.random.default_rng([seed, number, part.start]))
        yield rows, labels[part]


def deformed(images: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """Each image of shape (784,) with a deformation of its own."""
    basis, place = displacements(), np.arange(SIDE, dtype=np.float32) + BORDER
    made = np.empty_like(images)
    for part in slices(len(images), CACHED_ROWS):
        shape = len(images[part]), len(basis)
        vertical = rng.standard_normal(shape, dtype=np.float32) @ basis + np.repeat(place, SIDE)
        horizontal = rng.standard_normal(shape, dtype=np.float32) @ basis + np.tile(place, SIDE)
        made[part] = resampled(images[part], vertical, horizontal)
    return made


def displacements() -> NDArray[np.float32]:
    """Fields over the 784 pixels, whose sum with normal weights is a random displacement."""
    away = (np.arange(SIDE) - (SIDE - 1) / 2)[:, None]
    ones = np.ones((SIDE, 1))
    affine = [SHIFT * ones @ ones.T, STRETCH * away @ ones.T, STRETCH * ones @ away.T]
    degree = 3
    knots = np.linspace(0, SIDE - 1, KNOTS - degree + 1)
    padded = np.concatenate([np.zeros(degree), knots, np.full(degree, SIDE - 1)])
    along = BSpline.design_matrix(np.arange(SIDE), padded, degree).toarray().T
    elastic = ELASTIC * np.einsum("iy,jx->ijyx", along, along)
    fields = np.concatenate([np.stack(affine), elastic.reshape(-1, SIDE, SIDE)])
    return fields.reshape(len(fields), -1).astype(np.float32)


def resampled(
    images: NDArray[np.float32], vertical: NDArray[np.float32], horizontal: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Bilinear interpolation of images at these places, counted from the corner of the border."""
    n, width = len(images), SIDE + 2 * BORDER
    padded = np.zeros((n, width, width), dtype=np.float32)
    padded[:, BORDER:-BORDER, BORDER:-BORDER] = images.reshape(n, SIDE, SIDE)
    pixels = padded.ravel()
    # What lies outside of the border is as empty as the border.
    for places in (vertical, horizontal):
        np.clip(places, 0, width - 1.001, out=places)
    up, left = vertical.astype(np.intp), horizontal.astype(np.intp)
    down, right = (places - np.floor(places) for places in (vertical, horizontal))
    corner = up * width + left + (np.arange(n) * width**2)[:, None]

    def between_columns(line: int) -> NDArray[np.float32]:
        # Places are within the images, so that `take` need not look whether they are ("clip").
        first, second = (pixels[line + step :].take(corner, mode="clip") for step in (0, 1))
        return np.asarray(first + right * (second - first))

    top, bottom = between_columns(0), between_columns(width)
    return np.asarray(top + down * (bottom - top))
