"""Random numbers as a pure function of a seed, a name and a block number.

There is no state. Numbers are computed from the counter-based Philox generator by code of this
package, so any of them can be computed again alone, in any order and with any version of NumPy,
and a model stores a seed instead of random numbers.
"""

from __future__ import annotations

import numbers
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette import _core

LARGEST_SEED = 2**64 - 1  # the key of Philox has 64 bits


def seed_from(random_state: Any) -> int:
    """The seed that a ``random_state`` parameter stands for.

    An integer is the seed itself; None or a NumPy generator draws one.
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        seed = int(random_state)
        if 0 <= seed <= LARGEST_SEED:
            return seed
        raise ValueError(f"random_state must be between 0 and 2**64 - 1; got {seed}.")
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(LARGEST_SEED, dtype=np.uint64, endpoint=True))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, LARGEST_SEED, dtype=np.uint64))
    raise ValueError(
        "random_state must be None, a whole number, or a NumPy random generator; "
        f"got {random_state!r}."
    )


class Stream:
    """Random numbers in numbered blocks.

    Number i of block b is a function of (seed, name, b, i) alone: neither the number of
    blocks nor their length matters, except for permutations. ``seed`` is that of the whole map;
    ``name`` is the purpose of the numbers. Streams of different names are independent.
    """

    def __init__(self, seed: int, name: str):
        self._seed = seed
        self._stream = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")

    def _filled(
        self, fill: Any, shape: tuple[int, int], first: int, dtype: DTypeLike
    ) -> NDArray[Any]:
        out = np.empty(shape, dtype=dtype)
        fill(self._seed, self._stream, first, out)
        return out

    def words(self, blocks: int, count: int, *, first: int = 0) -> NDArray[np.uint64]:
        """Raw words of 64 random bits, shape (blocks, count)."""
        return self._filled(_core.philox_words, (blocks, count), first, np.uint64)

    def uniforms(self, blocks: int, count: int, *, first: int = 0) -> NDArray[np.float64]:
        """Uniform numbers in the open interval (0, 1)."""
        return self._filled(_core.philox_uniforms, (blocks, count), first, np.float64)

    def normals(
        self, blocks: int, count: int, *, first: int = 0, dtype: DTypeLike = np.float64
    ) -> NDArray[Any]:
        """Standard normal numbers, the normal quantiles of `uniforms`."""
        return self._filled(_core.philox_normals, (blocks, count), first, dtype)

    def signs(self, blocks: int, count: int, *, first: int = 0) -> NDArray[np.int8]:
        """Random signs, +1 or -1."""
        return self._filled(_core.philox_signs, (blocks, count), first, np.int8)

    def permutations(self, blocks: int, count: int, *, first: int = 0) -> NDArray[np.int32]:
        """A permutation of 0 ... count - 1 in each row."""
        return self._filled(_core.philox_permutations, (blocks, count), first, np.int32)

    def sample(self, population: int, size: int) -> NDArray[np.intp]:
        """``size`` sorted indices below ``population`` without replacement, or all of them."""
        if population <= size:
            return np.arange(population)
        picks = (self.uniforms(1, size)[0] * population).astype(np.intp)
        return np.unique(np.minimum(picks, population - 1))
