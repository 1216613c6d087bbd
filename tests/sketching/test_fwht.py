"""The Walsh-Hadamard transform against the matrix of its definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard
from threadpoolctl import threadpool_limits

from kitchenette import _core, fwht

pytestmark = pytest.mark.native

FLOATS = [np.float32, np.float64]


def by_matrix(X: np.ndarray, axis: int) -> np.ndarray:
    H = hadamard(X.shape[axis]).astype(X.dtype)
    return np.moveaxis(np.tensordot(H, X, axes=(1, axis)), 0, axis)


def small_integers(rng: np.random.Generator, shape: tuple[int, ...], dtype) -> np.ndarray:
    return rng.integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("power", range(13))
def test_rows_equal_the_hadamard_matrix_exactly(simd, dtype, power):
    X = small_integers(np.random.default_rng(power), (5, 2**power), dtype)
    assert np.array_equal(fwht(X), by_matrix(X, 1))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("width", [1, 2, 3, 8, 15, 16, 17, 31, 33, 70])
@pytest.mark.parametrize("length", [1, 2, 4, 8, 16, 64, 512])
def test_columns_equal_the_hadamard_matrix_exactly(simd, dtype, width, length):
    X = small_integers(np.random.default_rng(width), (length, width), dtype)
    assert np.array_equal(fwht(X, axis=0), by_matrix(X, 0))


@given(
    before=st.lists(st.integers(0, 4), max_size=3),
    after=st.lists(st.integers(0, 4), max_size=2),
    power=st.integers(0, 7),
    dtype=st.sampled_from(FLOATS),
    order=st.sampled_from("CF"),
    negative=st.booleans(),
    overwrite=st.booleans(),
)
@settings(deadline=None, max_examples=150)
def test_any_axis_of_any_array(before, after, power, dtype, order, negative, overwrite):
    shape = (*before, 2**power, *after)
    axis = len(before) - (len(shape) if negative else 0)
    X = np.asarray(small_integers(np.random.default_rng(0), shape, dtype), order=order)
    expected = by_matrix(X, axis)
    Y = fwht(X, axis, overwrite_x=overwrite)
    assert Y.dtype == dtype
    assert np.array_equal(Y, expected)


@pytest.mark.parametrize("order", "CF")
def test_overwrite_works_in_place_for_both_orders(order):
    X = np.asarray(np.random.default_rng(0).normal(size=(8, 16)), order=order)
    for axis in (0, 1):
        Y = fwht(X, axis, overwrite_x=True)
        assert Y is X or np.shares_memory(Y, X)


def test_input_is_left_alone_unless_it_may_be_overwritten():
    X = np.arange(8.0)
    before = X.copy()
    fwht(X)
    assert np.array_equal(X, before)
    X.flags.writeable = False
    assert np.array_equal(fwht(X, overwrite_x=True), by_matrix(before, 0))
    assert np.array_equal(X, before)


@pytest.mark.parametrize(
    "X",
    [
        np.arange(64.0).reshape(4, 16)[::2, ::2],
        np.arange(64.0, dtype=np.float32).reshape(8, 8)[:, ::-1],
        np.arange(16.0).astype(">f8"),
        np.arange(16.0).astype(">f4"),
        np.frombuffer(b"x" + np.arange(16.0).tobytes(), np.uint8)[1:].view(np.float64),
        np.arange(16, dtype=np.int16),
        np.arange(16, dtype=np.float16),
        np.array([True, False, True, True]),
        [1, 2, 3, 4],
    ],
    ids=[
        "strided",
        "reversed",
        "big-endian",
        "big-endian float32",
        "unaligned",
        "int16",
        "float16",
        "bool",
        "list",
    ],
)
def test_every_kind_of_real_array_is_served(X):
    native = np.asarray(X).dtype.newbyteorder("=")
    plain = np.array(X, dtype=np.float32 if native == np.float32 else np.float64)
    Y = fwht(X)
    assert Y.dtype == plain.dtype
    assert np.array_equal(Y, by_matrix(plain, plain.ndim - 1))


@pytest.mark.parametrize("length", [2**18, 2**20, 2**23])
def test_long_transforms_are_their_own_inverse(simd, length):
    X = np.random.default_rng(0).integers(-1, 2, length).astype(np.float32)
    Y = fwht(X)
    assert Y[0] == X.sum(dtype=np.float64)
    assert np.allclose(fwht(Y) / length, X, atol=1e-4)


@pytest.mark.slow
def test_the_longest_transform():
    X = np.zeros(2**26, dtype=np.float32)
    X[5] = 1.0
    Y = fwht(X, overwrite_x=True)
    signs = np.where(np.bitwise_count(np.arange(2**26, dtype=np.uint32) & 5) % 2, -1, 1)
    assert np.array_equal(Y, signs)


def test_ortho_is_an_isometry_and_its_own_inverse():
    X = np.random.default_rng(0).normal(size=(3, 256))
    Y = fwht(X, norm="ortho")
    assert np.allclose(np.linalg.norm(Y, axis=1), np.linalg.norm(X, axis=1))
    assert np.allclose(fwht(Y, norm="ortho"), X)


@pytest.mark.parametrize("shape", [(37, 1024), (3, 2**18), (64, 48), (2**10, 100)])
def test_bits_do_not_depend_on_threads_or_instructions(shape):
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    axis = 1 if shape[1] & (shape[1] - 1) == 0 else 0
    results = []
    for variant in _core.simd_variants():
        before = _core.simd()
        _core.set_simd(variant)
        results.append(fwht(X, axis))
        with threadpool_limits(1):
            results.append(fwht(X, axis))
        _core.set_simd(before)
    assert all(np.array_equal(results[0], other) for other in results)


@pytest.mark.parametrize(
    ("X", "arguments", "sentence"),
    [
        (np.ones(6), {}, "power of two; axis -1 has length 6. Pad"),
        (np.ones((4, 0)), {}, "power of two"),
        (np.float64(1.0), {}, "at least one dimension"),
        (np.ones(4, dtype=complex), {}, "real numbers"),
        (np.array(["a", "b"]), {}, "real numbers"),
        (np.ones((4, 4)), {"axis": 2}, "axis 2 does not exist"),
        (np.ones(4), {"norm": "forward"}, "norm must be"),
        (np.ones(4), {"norm": np.ones(2)}, "norm must be"),
        (np.ones((4, 4)), {"axis": 1.0}, "axis must be a whole number; got 1.0"),
        (np.ones((4, 4)), {"axis": "a"}, "axis must be a whole number; got 'a'"),
        (np.ones((4, 4)), {"axis": None}, "axis must be a whole number; got None"),
        (
            sp.csr_array(np.ones((4, 4))),
            {},
            r"needs a dense array; got a sparse one. Pass X.toarray",
        ),
    ],
)
def test_bad_input_gets_a_sentence(X, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        fwht(X, **arguments)
