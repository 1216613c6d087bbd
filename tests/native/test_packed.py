"""Factors of packed matrices against NumPy and against LAPACK's own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack

from kitchenette import _core
from kitchenette.learning.gram import PackedSymmetric
from kitchenette.resources import BLAS, one_blas_thread

pytestmark = pytest.mark.native

ORDERS = [1, 2, 3, 4, 5, 6, 31, 64, 97, 300, 513, 514]
TOLERANCES = {np.float32: 2e-4, np.float64: 1e-12}


def positive_definite(order, seed=0):
    A = np.random.default_rng((order, seed)).normal(size=(order + 3, order))
    return A.T @ A + np.eye(order)


def packed(matrix, dtype):
    """A matrix in rectangular full packed format, entry by entry as LAPACK defines it."""
    n = len(matrix)
    n1, even = (n + 1) // 2, 1 - n % 2
    rectangle = np.empty((n + even, n1), dtype)
    for j in range(n):
        for i in range(j, n):
            if j < n1:
                rectangle[even + i, j] = matrix[i, j]
            else:
                rectangle[j - n1, i - n1 + 1 - even] = matrix[i, j]
    return rectangle.ravel(order="F")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ORDERS)
def test_factors_equal_those_of_numpy(order, dtype):
    A, tolerance = positive_definite(order), TOLERANCES[dtype]
    values = packed(A, dtype)
    assert _core.packed_cholesky(values, order, blas=BLAS) == 0
    L = np.linalg.cholesky(A)
    size = np.abs(L).max()
    np.testing.assert_allclose(PackedSymmetric(order, values).full(), L, atol=tolerance * size)
    B = np.random.default_rng(order).normal(size=(order, 3))
    for transposed, expected in ((False, np.linalg.solve(L, B)), (True, np.linalg.solve(L.T, B))):
        b = np.array(B, dtype, order="F")
        _core.packed_substitute(values, order, b, transposed=transposed, blas=BLAS)
        np.testing.assert_allclose(b, expected, atol=10 * tolerance * np.abs(expected).max())
    trace = _core.packed_inverse_trace(values, order, blas=BLAS)
    assert trace == pytest.approx(np.trace(np.linalg.inv(A)), rel=10 * tolerance)


@pytest.mark.parametrize("order", [1, 2, 5, 6, 97, 300])
def test_factors_are_the_same_bits_as_those_of_lapack(order):
    values = packed(positive_definite(order), np.float64)
    B = np.asfortranarray(np.random.default_rng(order).normal(size=(order, 3)))
    with one_blas_thread(order):
        expected, _ = lapack.dpftrf(order, values, transr="N", uplo="L")
        solved, _ = lapack.dpftrs(order, expected, B, transr="N", uplo="L")
        assert _core.packed_cholesky(values, order, blas=BLAS) == 0
        for transposed in (False, True):
            _core.packed_substitute(values, order, B, transposed=transposed, blas=BLAS)
    assert np.array_equal(values, expected)
    assert np.array_equal(B, solved)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [2, 5, 40])
def test_indefinite_matrices_have_no_factor(order, dtype):
    for column in (0, order // 2, order - 1):
        A = np.eye(order)
        A[column, column] = -1
        assert _core.packed_cholesky(packed(A, dtype), order, blas=BLAS) == column + 1


def test_arrays_that_do_not_fit_are_refused():
    values, b = np.zeros(15), np.zeros((5, 2), order="F")
    for order in (4, 6, 0, -1, 2**31, 2**62):
        with pytest.raises(ValueError, match=r"order|packed"):
            _core.packed_cholesky(values, order, blas=BLAS)
    with pytest.raises(ValueError, match="as many rows"):
        _core.packed_substitute(values, 5, np.zeros((4, 2), order="F"), transposed=False, blas=BLAS)
    for bad in (np.zeros((5, 2)), b.astype(np.float32)):
        with pytest.raises(TypeError):
            _core.packed_substitute(values, 5, bad, transposed=False, blas=BLAS)
    values.flags.writeable = False
    with pytest.raises(TypeError):
        _core.packed_cholesky(values, 5, blas=BLAS)
