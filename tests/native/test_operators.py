"""Operators against NumPy, in both precisions and for every instruction set."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from native_operators import (
    D_IN,
    NAMES,
    TYPES,
    features,
    made_srht,
    matrix,
    operators,
    outputs_by_threads,
    product,
    some_rows,
    values,
)

from kitchenette import Fastfood, _core
from kitchenette.kernels import Gaussian
from kitchenette.sketching.combinations import concatenate
from kitchenette.sketching.dense import matrix_product
from kitchenette.sketching.operators import (
    BlockwiseLinear,
    Chain,
    NativeChain,
    NativeOperator,
    affine,
    chain,
)
from kitchenette.sketching.structured import draw_fourier

pytestmark = pytest.mark.native

TOLERANCE = {np.float32: 2e-4, np.float64: 1e-11}


# ---------------------------------------------------------------- what is not finite


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_noticed_by_every_operator(simd, bad, dtype):
    for name, operator in operators(dtype).items():
        line = operator.linear(np.ones((operator.n_features, 2)), np.zeros(2))
        for n, spoilt in [(1, 0), (3, 2), (40, 17), (40, 39), (200, 100)]:
            X = some_rows(n, dtype)
            X[spoilt, D_IN - 1] = bad
            for rows in (X, sp.csr_array(X)):
                assert not operator.write(rows, np.empty((n, operator.n_features), dtype)), name
                assert not line.write(rows, np.empty((n, 2))), name


@pytest.mark.parametrize("dtype", TYPES)
def test_linear_functions_that_overflow_are_noticed(dtype):
    largest = np.finfo(dtype).max
    operator = affine(D_IN, 1.0, 1.0, dtype)
    line = operator.linear(np.full((D_IN + 1, 1), largest), np.zeros(1))
    assert not line.write(np.ones((1, D_IN), dtype), np.empty((1, 1)))


# ---------------------------------------------------------------- compositions


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 2, 9, 33, 300])
def test_affine_operators_are_a_constant_and_the_row(simd, dtype, n):
    X = some_rows(n, dtype)
    for rows in (X, sp.csr_array(X)):
        Z = features(affine(D_IN, 0.5, 3.0, dtype), rows)
        np.testing.assert_array_equal(Z, np.hstack([np.full((n, 1), 0.5), X * dtype(3)]))
        np.testing.assert_array_equal(features(affine(D_IN, 0.0, 3.0, dtype), rows), X * dtype(3))
        np.testing.assert_array_equal(features(affine(D_IN, 0.5, 0.0, dtype), rows), 0.5)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 5, 16, 50, 700])
def test_a_chain_is_one_operator_after_the_other(simd, dtype, n):
    made = operators(dtype)
    X = some_rows(n, dtype)
    for first, second in [
        (made["fastfood sincos"], made_srht(299, 70, dtype)),
        (made["dense sincos"], made_srht(199, 70, dtype)),
        (made["tensor sketch 3 64 False"], product(64, 30, dtype)),
        (
            made["concatenation"],
            product(made["concatenation"].n_features, 3, dtype),
        ),
    ]:
        both = chain(first, second)
        assert isinstance(both, NativeChain)
        expected = features(second, features(first, X))
        for rows in (X, sp.csr_array(X)):
            np.testing.assert_array_equal(features(both, rows), expected)
            np.testing.assert_array_equal(features(Chain(first, second), rows), expected)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 5, 16, 50, 700])
def test_a_concatenation_has_all_features_side_by_side(simd, dtype, n):
    made = operators(dtype)
    parts = [made["affine"], made["chain"], made["dense sincos"], made["fastfood offset"]]
    X = some_rows(n, dtype)
    for rows in (X, sp.csr_array(X)):
        expected = np.hstack([features(part, rows) for part in parts])
        np.testing.assert_array_equal(features(concatenate(parts, D_IN), rows), expected)
        nested = concatenate([concatenate(parts[:2], D_IN), concatenate(parts[2:], D_IN)], D_IN)
        np.testing.assert_array_equal(features(nested, rows), expected)


@pytest.mark.parametrize("dtype", TYPES)
def test_chains_that_end_with_a_matrix_collapse(dtype):
    first, M = operators(dtype)["fastfood sincos"], matrix(299, 40, dtype)
    X, weights = some_rows(20, dtype), matrix(40, 3, np.float64)
    for both in (
        chain(first, matrix_product(M, M.dtype), M),
        Chain(first, matrix_product(M, M.dtype), M),
    ):
        shorter, base_weights = both.collapse(weights)
        assert shorter is first
        np.testing.assert_allclose(
            features(shorter, X) @ base_weights,
            features(both, X) @ weights,
            atol=1e3 * TOLERANCE[dtype],
        )
    plain = chain(first, matrix_product(M, M.dtype))
    assert plain.collapse(weights) == (plain, weights)


def test_operators_that_are_not_native_take_part():
    projection = draw_fourier(150, D_IN, 0, np.float64)
    fourier = projection.operator(_core.Nonlinearity("sincos"), 300)
    X, M = some_rows(50, np.float64), matrix(300, 5, np.float64)
    both = chain(fourier, matrix_product(M, M.dtype), M)
    assert isinstance(both, Chain)
    Z = features(fourier, X)
    np.testing.assert_allclose(features(both, X), Z @ M, atol=1e-10)
    line = fourier.linear(M, np.arange(5.0))
    assert isinstance(line, BlockwiseLinear)
    np.testing.assert_allclose(values(line, X), Z @ M + np.arange(5.0), atol=1e-10)
    X[3, 3] = np.nan
    assert not both.write(X, np.empty((50, 5)))
    assert not line.write(X, np.empty((50, 5)))
    mixed = concatenate([fourier, both], fourier.n_columns)
    assert not isinstance(mixed, NativeOperator)
    with pytest.raises(ValueError, match="cannot follow"):
        chain(fourier, matrix_product(M[:9], M.dtype))
    with pytest.raises(ValueError, match="a row per feature"):
        fourier.linear(M[:9], np.zeros(5))


# ---------------------------------------------------------------- linear functions


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_linear_functions_are_features_times_weights(simd, name, dtype):
    operator = operators(dtype)[name]
    rng = np.random.default_rng(0)
    for n, k in [(1, 1), (1, 33), (3, 2), (9, 3), (40, 4), (130, 10), (700, 5)]:
        X = some_rows(n, dtype)
        weights, intercept = rng.normal(size=(operator.n_features, k)), rng.normal(size=k)
        Z = features(operator, X).astype(np.float64)
        line = operator.linear(weights, intercept)
        assert line.n_targets == k
        size = np.abs(Z) @ np.abs(weights) + 1
        for rows in (X, sp.csr_array(X)):
            error = np.abs(values(line, rows) - (Z @ weights + intercept)) / size
            assert error.max() < 1e3 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("k", range(1, 34))
def test_linear_functions_of_any_number_of_targets(k, dtype):
    operator = operators(dtype)["dense sincos"]
    X, weights = some_rows(21, dtype), matrix(operator.n_features, k, dtype)
    line = operator.linear(weights, np.zeros(k))
    np.testing.assert_allclose(
        values(line, X), features(operator, X) @ weights, atol=10 * TOLERANCE[dtype]
    )
    alone = operator.linear(np.ascontiguousarray(weights[:, -1:]), np.zeros(1))
    np.testing.assert_array_equal(values(alone, X)[:, 0], values(line, X)[:, -1])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_linear_functions_do_not_depend_on_the_batch(simd, name, dtype):
    operator = operators(dtype)[name]
    X = some_rows(333, dtype)
    line = operator.linear(matrix(operator.n_features, 5, np.float64), np.ones(5))
    expected = values(line, X)
    np.testing.assert_array_equal(values(line, sp.csr_array(X)), expected)
    for size in (1, 2, 7, 16, 31, 200):
        for start in (0, 5, 133):
            rows = slice(start, start + size)
            np.testing.assert_array_equal(values(line, X[rows]), expected[rows])


SCRIPT = """
import hashlib
import numpy as np
from native_operators import features, matrix, operators, some_rows, values
from kitchenette import _core

digest = hashlib.sha256()
for dtype in (np.float32, np.float64):
    for operator in operators(dtype).values():
        line = operator.linear(matrix(operator.n_features, 7, np.float64), np.ones(7))
        for n in (1, 5, 20, 100, 900):
            X = some_rows(n, dtype)
            out = np.zeros((operator.n_features, 3))
            assert _core.transposed(operator.native, X, matrix(n, 3, dtype), out)
            for part in (features(operator, X), values(line, X), out):
                digest.update(part.tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_bits_do_not_depend_on_the_number_of_threads():
    assert len(outputs_by_threads(SCRIPT)) == 1


# ---------------------------------------------------------------- transposed products


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 3), (129, 4), (500, 13)])
def test_transposed_products_add_to_what_is_there(simd, dtype, n, k):
    for name in ("fastfood sincos", "dense offset", "concatenation"):
        operator = operators(dtype)[name]
        X, factors = some_rows(n, dtype), matrix(n, k, dtype)
        Z = features(operator, X).astype(np.float64)
        size = np.abs(Z).T @ np.abs(factors) + 1
        for rows in (X, operator_rows(X)):
            out = np.ones((operator.n_features, k))
            assert _core.transposed(operator.native, rows, factors, out)
            error = np.abs(out - 1 - Z.T @ factors) / size
            assert error.max() < 1e3 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("n", "k"), [(3, 1), (65, 10), (150, 40)])
def test_transposed_products_of_many_features(simd, dtype, n, k):
    # They are computed chunk after chunk of the features; of an odd number, for a short last one.
    one = np.ones((1, D_IN), dtype)
    operator = Fastfood(Gaussian(5.0), 10_001, random_state=0).fit(one).operator(one)
    X, factors = some_rows(n, dtype), matrix(n, k, dtype)
    Z = features(operator, X).astype(np.float64)
    size = np.abs(Z).T @ np.abs(factors) + 1
    by_rows = []
    for rows in (X, operator_rows(X)):
        out = np.ones((operator.n_features, k))
        assert _core.transposed(operator.native, rows, factors, out)
        by_rows.append(out)
        assert (np.abs(out - 1 - Z.T @ factors) / size).max() < 1e3 * np.finfo(dtype).eps
    assert np.array_equal(*by_rows)
    X[n // 2] = np.nan
    assert not _core.transposed(operator.native, X, factors, out)


def test_transposed_products_of_operators_that_are_not_native():
    fourier = draw_fourier(150, D_IN, 0, np.float64).operator(_core.Nonlinearity("sincos"), 300)
    native = operators(np.float64)["fastfood sincos"]
    X, factors = some_rows(50, np.float64), matrix(50, 3, np.float64)
    for operator in (fourier, native):
        out = np.ones((operator.n_features, 3))
        assert operator.add_transposed(X, factors, out)
        np.testing.assert_allclose(out - 1, features(operator, X).T @ factors, atol=1e-10)
        bad = np.where(np.arange(50)[:, None] == 40, np.nan, X)
        assert not operator.add_transposed(bad, factors, out)


def operator_rows(X):
    rows = sp.csr_array(X)
    return rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int64), X.shape[1]
