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
def test_sums_are_added_in_double_precision(simd, shape, dtype):
    A, weights = rows(shape, dtype), np.random.default_rng(0).random(shape[0])
    for given, w in ((None, np.ones(shape[0])), (weights, weights)):
        sums = np.ones(shape[1])
        peak = _core.add_column_sums(A, sums, given)
        assert peak == np.abs(A).max()
        np.testing.assert_allclose(sums, 1 + w @ A.astype(float), rtol=1e-13)


def test_numbers_that_are_none_reach_the_sums(simd):
    for bad in (np.nan, np.inf):
        A, sums = rows((9, 600), np.float32).copy(), np.zeros(600)
        A[5, 555] = bad
        _core.add_column_sums(A, sums)
        assert np.flatnonzero(~np.isfinite(sums)).tolist() == [555]


def add_products(
    matrix, Z, T, cross, scale, *, mean=None, roots=None, last=None, at_once=None, spare=3
):
    """All rows in one product, handed over so many at once, with room for more."""
    n, D = Z.shape
    capacity = len(T) + spare
    memory = np.full(_core.waiting_size(capacity, D), np.nan, Z.dtype)
    mean = np.zeros(D) if mean is None else mean
    for start in range(0, max(n, 1), at_once or max(n, 1)):
        rows = slice(start, start + (at_once or n))
        some = None if roots is None else roots[rows]
        end = last if rows.stop >= n else None
        _core.centre_rows(Z[rows], mean, some, end, memory, start, capacity)
    letter = "s" if Z.dtype == np.float32 else "d"
    blas = [cython_blas.__pyx_capi__[letter + name] for name in ("gemm", "syrk")]
    with one_blas_thread():
        _core.add_products(memory, capacity, T, matrix.values, cross, scale, *blas)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape",
    [*SHAPES, (5, 129), (97, 48), (20, 256), (20, 2100), (2113, 30), (4225, 30), (9000, 9)],
    ids=str,
)
def test_products_are_added_to_one_triangle(simd, shape, dtype):
    A = rows(shape, dtype)
    for n_targets in (0, 1, 3, 400):
        T = rows((shape[0], n_targets), dtype, spare=0)
        matrix, cross = PackedSymmetric(shape[1]), np.zeros((shape[1], n_targets))
        add_products(matrix, A, T, cross, 3.0)
        add_products(matrix, A, T, cross, -1.0)
        expected = np.tril(2 * A.T.astype(float) @ A)
        tolerance = expected.max() * (1e-6 if dtype == np.float32 else 1e-14)
        np.testing.assert_allclose(matrix.full(), expected, atol=tolerance)
        np.testing.assert_allclose(cross, 2 * A.T.astype(float) @ T, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("at_once", [None, 1, 7, 16, 100])
@pytest.mark.parametrize("n_rows", [0, 1, 15, 16, 17, 47, 48, 95, 96, 97, 192, 400])
def test_rows_come_in_any_number_and_one_more_follows(simd, n_rows, at_once, dtype):
    rng = np.random.default_rng(0)
    Z, T = rows((n_rows, 50), dtype), rows((n_rows + 1, 5), dtype, spare=0)
    mean, roots, last = np.linspace(-1, 2, 50), rng.random(n_rows), rng.normal(size=50)
    matrix, cross = PackedSymmetric(50), np.zeros((50, 5))
    add_products(matrix, Z, T, cross, 1.0, mean=mean, roots=roots, last=last, at_once=at_once)
    A = np.vstack([(Z.astype(float) - mean) * roots[:, None], last])
    tolerance = (n_rows + 1) * (1e-5 if dtype == np.float32 else 1e-14)
    np.testing.assert_allclose(matrix.full(), np.tril(A.T @ A), atol=tolerance)
    np.testing.assert_allclose(cross, A.T @ T.astype(float), atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("D", [24, 50, 100])
def test_rows_that_pass_the_caches_are_the_same_rows(simd, D, dtype):
    Z, T = rows((300, D), dtype), rows((301, 3), dtype, spare=0)
    mean, last = np.linspace(-1, 2, D), np.ones(D)
    results = []
    for spare in (3, 2**25 // Z.itemsize // D):
        matrix, cross = PackedSymmetric(D), np.zeros((D, 3))
        add_products(matrix, Z, T, cross, 1.0, mean=mean, last=last, at_once=90, spare=spare)
        results.append((matrix.values, cross))
    for small, large in zip(*results, strict=True):
        np.testing.assert_array_equal(small, large)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_centred_at_more_digits_than_they_have(simd, dtype):
    spread = rows((300, 70), np.float64) * 1e-3
    Z = (1000 + spread).astype(dtype)
    mean, exact = Z.mean(axis=0, dtype=np.float64), Z.astype(float)
    exact -= mean
    matrix = PackedSymmetric(70)
    add_products(matrix, Z, np.zeros((300, 0), dtype), np.zeros((70, 0)), 1.0, mean=mean)
    np.testing.assert_allclose(matrix.diagonal(), (exact**2).sum(axis=0), rtol=1e-5)


def test_products_do_not_depend_on_threads(simd):
    A = rows((300, 600), np.float64)
    parallel, alone = PackedSymmetric(600), PackedSymmetric(600)
    crosses = np.zeros((2, 600, 3))
    add_products(parallel, A, A[:, :3].copy(), crosses[0], 1.0)
    with threadpool_limits(1):
        add_products(alone, A, A[:, :3].copy(), crosses[1], 1.0)
    # The BLAS may sum in another order for tiles of another size.
    rounding = 1e-13 if _core.products_call_blas() else 0
    np.testing.assert_allclose(parallel.values, alone.values, rtol=rounding)
    np.testing.assert_allclose(*crosses, rtol=rounding)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.skipif(_core.max_threads() == 1, reason="there is one thread anyway")
def test_the_blas_has_one_thread_while_we_call_it(simd):
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        if not _core.products_call_blas():
            with one_blas_thread():
                assert blas_threads() == before
            return
        with one_blas_thread():
            assert set(blas_threads()) == {1}
            with one_blas_thread():
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
        with pytest.raises(KeyError), one_blas_thread():
            raise KeyError
        assert blas_threads() == before


def test_several_threads_of_python_leave_the_blas_as_it_was(simd):
    before = blas_threads()
    A = rows((50, 300), np.float64)
    expected = np.tril(A.T @ A)
    all_at_once = Barrier(4)

    def work(_):
        all_at_once.wait()
        matrix, cross = PackedSymmetric(300), np.zeros((300, 1))
        for _ in range(20):
            add_products(matrix, A, A[:, :1].copy(), cross, 0.05)
        return matrix.full()

    with ThreadPoolExecutor(4) as pool:
        for product in pool.map(work, range(4)):
            np.testing.assert_allclose(product, expected)
    assert blas_threads() == before


def test_short_vectors_leave_products_to_the_blas(simd):
    assert _core.products_call_blas() == (simd not in ("avx2", "avx512", "wide"))


def centre(**changed):
    arguments = {
        "z": rows((4, 3), np.float64),
        "mean": np.zeros(3),
        "roots": None,
        "last": None,
        "memory": np.zeros(_core.waiting_size(5, 3)),
        "first": 0,
        "capacity": 5,
    }
    _core.centre_rows(**arguments | changed)


def multiply(**changed):
    arguments = {
        "memory": np.zeros(_core.waiting_size(5, 3)),
        "capacity": 5,
        "targets": np.ones((4, 2)),
        "packed": np.zeros(6),
        "cross": np.zeros((3, 2)),
        "scale": 1.0,
        "gemm": cython_blas.__pyx_capi__["dgemm"],
        "syrk": cython_blas.__pyx_capi__["dsyrk"],
    }
    _core.add_products(**arguments | changed)


def test_shapes_that_do_not_fit_are_refused():
    A = rows((4, 3), np.float64)
    centre(first=1)
    centre(last=np.ones(3))
    multiply()
    for action, sentence in [
        (lambda: _core.add_column_sums(A, np.zeros(2)), "sum for every column"),
        (lambda: _core.add_column_sums(A, np.zeros(3), np.ones(3)), "weight for every row"),
        (lambda: centre(mean=np.zeros(2)), "mean for every column"),
        (lambda: centre(roots=np.ones(5)), "root for every row"),
        (lambda: centre(last=np.ones(2)), "number per column"),
        (lambda: centre(first=2), "exceed the capacity"),
        (lambda: centre(first=-1), "exceed the capacity"),
        (lambda: centre(first=1, last=np.ones(3)), "exceed the capacity"),
        (lambda: centre(capacity=-1), "exceed the capacity"),
        (lambda: centre(capacity=1 << 31), "too large"),
        (lambda: centre(memory=np.zeros(15)), "waiting_size"),
        (lambda: centre(z=A.T), "contiguous"),
        (lambda: multiply(targets=np.ones((6, 2))), "exceed the capacity"),
        (lambda: multiply(capacity=-1), "too large"),
        (lambda: multiply(capacity=100), "waiting_size"),
        (lambda: multiply(memory=np.zeros(15)), "waiting_size"),
        (lambda: multiply(packed=np.zeros(5)), "packed matrix"),
        (lambda: multiply(cross=np.zeros((3, 1))), "cross must have"),
        (lambda: multiply(cross=np.zeros((2, 2))), "packed matrix"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            action()


@pytest.mark.parametrize(
    ("gemm", "syrk"),
    [("sgemm", "dsyrk"), ("dsyrk", "dsyrk"), ("dgemm", "dgemm"), ("dgemm", "ddot")],
)
def test_other_functions_of_the_blas_are_refused(gemm, syrk):
    functions = cython_blas.__pyx_capi__
    with pytest.raises(ValueError, match="not the function"):
        multiply(gemm=functions[gemm], syrk=functions[syrk])
