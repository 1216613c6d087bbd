"""Scrambled Sobol points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from kitchenette.sketching.random import Stream

BITS = 32  # finer than the 24 bits of a float32 feature
MOST_DIMENSIONS = qmc.Sobol.MAXDIM


def scrambled_sobol(dimensions: int, seed: int, block: int) -> Iterator[NDArray[np.float64]]:
    """Blocks of ``block`` (a power of two) consecutive points of one endless sequence.

    Sobol's sequence (Joe and Kuo's direction numbers, from SciPy), scrambled by a random
    lower triangular matrix and a random shift per dimension (Matousek 1998). Each point is
    uniform in the unit cube, and the points have low discrepancy.
    """
    words = Stream(seed, "sobol scrambling").words(dimensions, BITS + 1)
    columns = np.empty((BITS, dimensions), dtype=np.uint32)
    for bit in range(BITS):
        # Column `bit` of the matrix has a one on the diagonal and random bits below it.
        below = np.uint64((1 << (BITS - 1 - bit)) - 1)
        columns[bit] = (words[:, bit] & below) | np.uint64(1 << (BITS - 1 - bit))
    shift = (words[:, BITS] >> np.uint64(32)).astype(np.uint32)
    engine = qmc.Sobol(dimensions, scramble=False, bits=BITS)
    while True:
        digits = (engine.random(block) * 2.0**BITS).astype(np.uint32)
        scrambled = np.broadcast_to(shift, digits.shape).copy()
        for bit in range(BITS):
            is_set = (digits >> np.uint32(BITS - 1 - bit)) & np.uint32(1)
            scrambled ^= is_set * columns[bit]
        yield (scrambled.astype(np.float64) + 0.5) * 2.0**-BITS
