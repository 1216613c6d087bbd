"""Count sketches of tensor powers: hash functions, and tables for their convolution by FFT.

A count sketch adds every column of a row, with a random sign, to one of D buckets.
The count sketch of the tensor power x (x) ... (x) x, whose hash is the sum of p hashes modulo
D and whose sign is the product of p signs, is the cyclic convolution of p count sketches of x
(Pham and Pagh, section 4.1): the product of their discrete Fourier transforms.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette import _core
from kitchenette.sketching.operators import NativeOperator
from kitchenette.sketching.random import Stream
from kitchenette.sketching.structured import padded_block

SHORTEST_PART = 256  # of a transform; shorter ones save little


def tensor_power_sketch(
    buckets: NDArray[np.int32],
    weights: NDArray[Any],
    n_buckets: int,
    n_columns: int,
    dtype: DTypeLike,
    *,
    frequency: bool,
) -> NativeOperator:
    """Count sketches of p-th tensor powers of rows of n_columns, p = ``len(buckets)``.

    Buckets and weights, a sign times a scale, have the shape (p, n_inputs), for every factor. The
    inputs are the columns and, optionally, a constant 1. With ``frequency`` the operator returns
    the real orthogonal Fourier transform of the sketch.
    """
    degree, name = len(buckets), np.dtype(dtype).name
    length, with_chirps = transform_plan(n_buckets, degree, frequency)
    if degree > 1 and not frequency:
        # The core's inverse transforms are not normalized. The division is distributed equally
        # over the factors, because two that are transformed together must have similar sizes.
        weights = weights * (n_buckets if with_chirps else length) ** (-1 / degree)
    part = part_length(buckets.shape[1])
    native = _core.tensor_sketch(
        n_columns=n_columns,
        n_buckets=n_buckets,
        buckets=buckets,
        weights=weights.astype(dtype),
        length=length,
        roots=roots(length, name),
        part=part,
        circle=circle(max(1, length // part), name),
        **transform_tables(n_buckets, length, with_chirps, frequency, name),
    )
    return NativeOperator(native)


def draw_buckets(degree: int, n_inputs: int, n_buckets: int, seed: int) -> NDArray[np.int32]:
    """Independent uniform buckets, one stream block for each factor.

    A bucket is the upper half of a word times D, divided by 2^32, so that the relative error of
    its probability is at most D / 2^32.
    """
    words = Stream(seed, "count sketch buckets").words(degree, n_inputs)
    return (((words >> np.uint64(32)) * np.uint64(n_buckets)) >> np.uint64(32)).astype(np.int32)


def draw_signs(degree: int, n_inputs: int, seed: int) -> NDArray[np.int8]:
    """Independent signs, one stream block for each factor."""
    return Stream(seed, "count sketch signs").signs(degree, n_inputs)


# ---------------------------------------------------------------- tables of the transforms

# They depend on the length alone, so they are cached and shared by all maps. They are explained in
# the native core's fft.hpp.


def transform_plan(n: int, degree: int, frequency: bool) -> tuple[int, bool]:
    """The length of the core's transforms, a power of two, and whether they need chirps.

    If n is not a power of two there are two ways: a real transform for each factor and an inverse
    one, padded to avoid cyclic aliasing; or Bluestein's algorithm, two complex transforms of twice
    the length for each pair of factors and for the inverse. The spectrum of length n needs the
    latter.
    """
    if n & (n - 1) == 0:
        return n, False
    plain, chirped = padded_block(degree * (n - 1) + 1), padded_block(2 * n - 1)
    plain_cost = (degree + 1) * plain * plain.bit_length()
    chirped_cost = 4 * (-(-degree // 2) + 1) * chirped * chirped.bit_length()
    return (chirped, True) if frequency or chirped_cost < plain_cost else (plain, False)


def transform_tables(
    n: int, length: int, with_chirps: bool, frequency: bool, dtype: str
) -> dict[str, NDArray[Any] | None]:
    """The tables of the core for a length that is no power of two, and for spectra."""
    chirp, chirp_filter = chirps(n, length, dtype) if with_chirps else (None, None)
    positions, output_scales = real_spectrum(n, dtype) if frequency else (None, None)
    return {
        "chirp": chirp,
        "filter": chirp_filter,
        "positions": positions,
        "output_scales": output_scales,
    }


def part_length(n_inputs: int) -> int:
    """The length of the parts in which spectra are multiplied, a power of four.

    Parts that are hardly longer than there are inputs stay in the cache, and skip those levels of a
    transform in which most numbers would be zero.
    """
    length = SHORTEST_PART
    while length < n_inputs:
        length *= 4
    return length


@lru_cache(maxsize=16)
def roots(length: int, dtype: str) -> NDArray[Any]:
    """The roots of unity w1 = exp(pi i phi(b)), w2 = sqrt(w1), w3 = w1 w2 for every part b."""
    angle = np.pi * reversed_fractions(max(4, length // 4))
    w = np.exp(1j * angle[:, None] * np.array([1, 0.5, 1.5]))
    return _read_only(w.view(np.float64).astype(dtype))


@lru_cache(maxsize=16)
def circle(order: int, dtype: str) -> NDArray[Any]:
    """The roots of unity exp(2 pi i k / order), k < order."""
    return _complex_table(np.exp(2j * np.pi / order * np.arange(order)), dtype)


def reversed_fractions(n: int) -> NDArray[np.float64]:
    """phi(0) ... phi(n - 1), the binary fractions with reversed digits; n is a power of two."""
    phi = np.zeros(1)
    while phi.size < n:
        # phi(m + b) = phi(b) + 1 / (2 m) for b < m, m a power of two.
        phi = np.concatenate([phi, phi + 0.5 / phi.size])
    return phi


@lru_cache(maxsize=16)
def chirps(n: int, length: int, dtype: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Bluestein's chirp exp(-pi i j^2 / n) and the spectrum of its conjugate.

    With j k = (j^2 + k^2 - (k - j)^2) / 2 a transform of any length is a convolution. The
    spectrum is in the core's order and divided by its length, to normalize the inverse.
    """
    squares = np.array([j * j % (2 * n) for j in range(n)])  # exact for any n
    chirp = np.exp(-1j * np.pi / n * squares)
    conjugate = np.zeros(length, dtype=np.complex128)
    conjugate[:n] = chirp.conj()
    conjugate[length - n + 1 :] = chirp[:0:-1].conj()
    order = (reversed_fractions(length) * length).astype(np.intp)
    # The core's transform has the sign of NumPy's inverse one, which divides by the length.
    spectrum = np.fft.ifft(conjugate)[order]
    return _complex_table(chirp, dtype), _complex_table(spectrum, dtype)


@lru_cache(maxsize=16)
def real_spectrum(n: int, dtype: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """The positions of Re 0, Re 1, Im 1, Re 2, ... in the core's spectrum, and their scales.

    The scales make the real transform orthogonal: frequencies other than 0 and n / 2 count
    twice, for their conjugates.
    """
    k = np.arange(n // 2 + 1)
    re, im, sign = k, k + k.size, np.ones(k.size)
    if n & (n - 1) == 0 and n > 1:
        # The positions [m, 2 m) hold m / 2 real and m / 2 imaginary parts for every power of
        # two m. The real one at position b belongs to part b of the last level: the value at
        # z = exp(2 pi i phi(b)), which is X[-n phi(b)] of a transform with exp(-2 pi i j k / n).
        powers = [1 << e for e in range(1, n.bit_length() - 1)]
        b = np.concatenate([[0, 1], *(m + np.arange(m // 2) for m in powers)])
        imaginary = np.concatenate([[0, 1], *(m + m // 2 + np.arange(m // 2) for m in powers)])
        frequency = (n * reversed_fractions(n)[b]).astype(np.intp)
        place = np.argsort(np.minimum(frequency, n - frequency))
        re, im = b[place], imaginary[place]
        sign[1:] = np.where(2 * frequency[place[1:]] < n, -1, 1)
    positions = np.stack([re, im], axis=1).ravel()
    weight = np.sqrt(np.where(2 * k % n == 0, 1, 2) / n)
    scales = np.stack([weight, weight * sign], axis=1).ravel()
    meaningful = np.r_[0, 2 : n + 1]  # without Im 0 and, if n is even, the last Im, which are zero
    return (
        _read_only(positions[meaningful].astype(np.int32)),
        _read_only(scales[meaningful].astype(dtype)),
    )


def _complex_table(z: NDArray[np.complex128], dtype: str) -> NDArray[Any]:
    return _read_only(z.view(np.float64).reshape(-1, 2).astype(dtype))


def _read_only(table: NDArray[Any]) -> NDArray[Any]:
    table.flags.writeable = False
    return table
