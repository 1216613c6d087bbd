"""The native part of least squares against NumPy, and what it refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from scipy.linalg import cython_blas
from threadpoolctl import threadpool_info, threadpool_limits

from kitchenette import _core
from kitchenette.learning.packed import PackedSymmetric
from kitchenette.learning.threads import one_blas_thread

pytestmark = pytest.mark.native

SHAPES = [(1, 1), (3, 2), (7, 511), (8, 513), (33, 1030), (2049, 70)]


def rows(shape, dtype, spare=5):
    """Rows that lie further apart than they are long."""
    A = np.random.default_rng(shape).normal(2.0, 1.0, size=(shape[0], shape[1] + spare))
    return A.astype(dtype)[:, : shape[1]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_are_added_in_double_precision(shape, dtype):
    A, weights = rows(shape, dtype), np.random.default_rng(0).random(shape[0])
    for given, w in ((None, np.ones(shape[0])), (weights, weights)):
        sums = np.ones(shape[1])
        peak = _core.add_column_sums(A, sums, given)
        assert peak == np.abs(A).max()
        np.testing.assert_allclose(sums, 1 + w @ A.astype(float), rtol=1e-13)


def test_numbers_that_are_none_reach_the_sums():
    for bad in (np.nan, np.inf):
        A, sums = rows((9, 600), np.float32).copy(), np.zeros(600)
        A[5, 555] = bad
        _core.add_column_sums(A, sums)
        assert np.flatnonzero(~np.isfinite(sums)).tolist() == [555]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_are_centred_at_more_digits_than_they_have(shape, dtype):
    spread = rows(shape, np.float64) * 1e-3
    A = (1000 + spread).astype(dtype)
    mean, roots = A.mean(axis=0, dtype=np.float64), np.random.default_rng(0).random(shape[0])
    out = np.full((shape[0], shape[1] + 2), 7.0, dtype)
    for given, r in ((None, np.ones(shape[0])), (roots, roots)):
        _core.centre_rows(A, out[:, 1:-1], mean, given)
        exact = (A.astype(float) - mean) * r[:, None]
        np.testing.assert_allclose(out[:, 1:-1], exact, rtol=1e-5, atol=1e-9)
        assert (out[:, [0, -1]] == 7).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [*SHAPES, (5, 129), (20, 256), (20, 2100)], ids=str)
def test_products_are_added_to_one_triangle(shape, dtype):
    A = rows(shape, dtype)
    for n_targets in (0, 1, 3, 300):
        T = rows((shape[0], n_targets), dtype, spare=0)
        matrix, cross = PackedSymmetric(shape[1]), np.zeros((shape[1], n_targets))
        matrix.add_products(A, T, cross, 3.0)
        matrix.add_products(A, T, cross, -1.0)
        expected = np.tril(2 * A.T.astype(float) @ A)
        tolerance = expected.max() * (1e-5 if dtype == np.float32 else 1e-14)
        np.testing.assert_allclose(matrix.full(), expected, atol=tolerance)
        np.testing.assert_allclose(cross, 2 * A.T.astype(float) @ T, atol=tolerance)


def test_products_do_not_depend_on_threads_beyond_rounding():
    A = rows((300, 600), np.float64)
    parallel, alone = PackedSymmetric(600), PackedSymmetric(600)
    crosses = np.zeros((2, 600, 3))
    parallel.add_products(A, A[:, :3].copy(), crosses[0], 1.0)
    with threadpool_limits(1):
        alone.add_products(A, A[:, :3].copy(), crosses[1], 1.0)
    np.testing.assert_allclose(parallel.values, alone.values, rtol=1e-13)
    np.testing.assert_allclose(*crosses, rtol=1e-13)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.skipif(_core.max_threads() == 1, reason="there is one thread anyway")
def test_the_blas_has_one_thread_for_a_while():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with one_blas_thread():
            assert set(blas_threads()) == {1}
            with one_blas_thread():
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
        with pytest.raises(KeyError), one_blas_thread():
            raise KeyError
        assert blas_threads() == before


def test_several_threads_of_python_leave_the_blas_as_it_was():
    before = blas_threads()
    A = rows((50, 300), np.float64)
    expected = np.tril(A.T @ A)
    all_at_once = Barrier(4)

    def work(_):
        all_at_once.wait()
        matrix, cross = PackedSymmetric(300), np.zeros((300, 1))
        for _ in range(20):
            matrix.add_products(A, A[:, :1].copy(), cross, 0.05)
        return matrix.full()

    with ThreadPoolExecutor(4) as pool:
        for product in pool.map(work, range(4)):
            np.testing.assert_allclose(product, expected)
    assert blas_threads() == before


def test_shapes_that_do_not_fit_are_refused():
    A, T, packed, cross = rows((4, 3), np.float64), np.ones((4, 2)), np.zeros(6), np.zeros((3, 2))
    blas = {name: cython_blas.__pyx_capi__[f"d{name}"] for name in ("gemm", "syrk")}

    def products(A=A, T=T, packed=packed, cross=cross):
        _core.add_products(A, T, packed, cross, 1.0, **blas)

    products()
    for call, sentence in [
        (lambda: _core.add_column_sums(A, np.zeros(2)), "sum for every column"),
        (lambda: _core.add_column_sums(A, np.zeros(3), np.ones(3)), "weight for every row"),
        (lambda: _core.centre_rows(A, np.zeros((4, 2)), np.zeros(3)), "as many columns"),
        (lambda: _core.centre_rows(A, np.zeros((3, 3)), np.zeros(3)), "as many rows"),
        (lambda: _core.centre_rows(A, np.zeros((4, 3)), np.zeros(2)), "mean for every column"),
        (lambda: _core.centre_rows(A, A.copy(), np.zeros(3), np.ones(5)), "root for every row"),
        (lambda: products(packed=np.zeros(5)), "packed matrix"),
        (lambda: products(A=A.T), "contiguous"),
        (lambda: products(A=np.broadcast_to(np.ones(3), (4, 3))), "overlap"),
        (lambda: products(T=np.ones((3, 2))), "targets must have as many rows"),
        (lambda: products(cross=np.zeros((3, 1))), "cross must have"),
        (lambda: products(cross=np.zeros((2, 2))), "cross must have"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            call()


@pytest.mark.parametrize(
    ("gemm", "syrk"), [("sgemm", "dsyrk"), ("dsyrk", "dsyrk"), ("dgemm", "dgemm"), ("dgemm", "dot")]
)
def test_other_functions_of_the_blas_are_refused(gemm, syrk):
    functions = cython_blas.__pyx_capi__
    arguments = functions[gemm], functions.get(syrk, functions["ddot"])
    with pytest.raises(ValueError, match="not the function"):
        _core.add_products(
            np.ones((4, 3)), np.ones((4, 1)), np.zeros(6), np.zeros((3, 1)), 1.0, *arguments
        )
