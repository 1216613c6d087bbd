"""Operators that prepare columns against NumPy, in both precisions, for every instruction set."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import ndtri

from kitchenette import _core
from kitchenette.sketching.columns import (
    Item,
    Kind,
    mapped_columns,
    scaled_columns,
    selected_columns,
    unit_rows,
)
from kitchenette.sketching.operators import chain

pytestmark = pytest.mark.native

TYPES = [np.float32, np.float64]
TOLERANCE = {np.float32: 1e-6, np.float64: 1e-13}


@pytest.fixture(params=_core.simd_variants(), autouse=True)
def variant(request):
    before = _core.simd()
    _core.set_simd(request.param)
    yield
    _core.set_simd(before)


def rows(dtype, n_rows=37, n_columns=11):
    return np.random.default_rng(0).normal(size=(n_rows, n_columns)).astype(dtype)


def written(operator, X):
    out = np.full((X.shape[0], operator.n_features + 2), 7.0, dtype=operator.dtype)
    fine = operator.write(X, out[:, 1:-1])
    assert (out[:, [0, -1]] == 7).all()
    return out[:, 1:-1], fine


@pytest.mark.parametrize("dtype", TYPES)
def test_scaled_columns(dtype):
    X = rows(dtype)
    offset, factor = np.random.default_rng(1).normal(size=(2, 11))
    operator = scaled_columns(offset, factor, -0.5, 0.75, dtype)
    expected = np.clip((X.astype(float) - offset) * factor, -0.5, 0.75)
    found, fine = written(operator, X)
    assert fine
    np.testing.assert_array_equal(found, expected.astype(dtype))
    np.testing.assert_array_equal(written(operator, sp.csr_matrix(X))[0], found)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_unit_rows(norm, dtype):
    X = rows(dtype)
    X[3] = 0
    orders = {"l1": 1, "l2": 2, "max": np.inf}
    norms = np.linalg.norm(X.astype(float), ord=orders[norm], axis=1, keepdims=True)
    norms[3] = 1
    found, fine = written(unit_rows(11, norm, dtype), X)
    assert fine
    np.testing.assert_allclose(found, X / norms, rtol=TOLERANCE[dtype])
    np.testing.assert_array_equal(written(unit_rows(11, norm, dtype), sp.csr_matrix(X))[0], found)


@pytest.mark.parametrize("dtype", TYPES)
def test_mapped_columns(dtype):
    X = rows(dtype)
    X[::5, 1] = np.nan
    X[:, 2] = np.arange(37) % 4
    X[::6, 2] = np.nan
    knots, values = np.sort(rows(float)[:9, 0]), np.sort(rows(float)[:9, 1] / 9 + 0.5)
    function = np.concatenate([knots, values, values, values])
    items = [
        Item(Kind.COPY, 10),
        Item(Kind.FILL, 1, (np.nan, 3.5)),
        Item(Kind.FLAG, 1, (np.nan,)),
        Item(Kind.FILL, 2, (2.0, -1.0)),
        Item(Kind.INTERPOLATE, 3, function),
        Item(Kind.CATEGORIES, 2, (2, -1, 1, 0.0, 1.0, 1, 0)),
        Item(Kind.RANKS, 4, function),
        Item(Kind.CATEGORIES, 2, (0, -1, -1)),
    ]
    operator = mapped_columns(11, items, dtype)
    found, fine = written(operator, X)
    assert fine
    code, missing = X[:, 2], np.isnan(X[:, 2])
    ranks = np.interp(X[:, 4], knots, values)
    ranks[X[:, 4] - dtype(1e-7) < knots[0]] = 0
    ranks[X[:, 4] + dtype(1e-7) > knots[-1]] = 1
    expected = np.column_stack(
        [
            X[:, 10],
            np.where(np.isnan(X[:, 1]), 3.5, X[:, 1]),
            np.isnan(X[:, 1]),
            np.where(code == 2, -1, code),
            np.interp(X[:, 3], knots, values),
            code == 1,
            (code == 0) | missing,
            ndtri(np.clip(ranks, 1e-7, 1 - 1e-7)),
        ]
    )
    np.testing.assert_allclose(found, expected, rtol=max(1e-8, TOLERANCE[dtype]))
    again = written(operator, sp.csr_matrix(np.nan_to_num(X)))[0]
    np.testing.assert_array_equal(again, written(operator, np.nan_to_num(X))[0])


@pytest.mark.parametrize("dtype", TYPES)
def test_missing_numbers_pass_and_infinite_ones_do_not(dtype):
    for operator in (
        scaled_columns(np.zeros(3), np.ones(3), -1.0, 1.0, dtype),
        selected_columns(3, [2, 1], dtype),
        unit_rows(3, "l2", dtype),
    ):
        X = rows(dtype, 4, 3)
        assert written(operator, X)[1]
        X[2, 1] = np.nan
        assert written(operator, X)[1]
        assert np.isnan(written(operator, X)[0][2]).any()
        X[2, 1] = np.inf
        assert not written(operator, X)[1]


def test_a_refused_category_gives_missing_numbers():
    operator = mapped_columns(1, [Item(Kind.CATEGORIES, 0, (1, -2, -2, 4.0, 0))], np.float64)
    found, _ = written(operator, np.array([[4.0], [5.0], [np.nan]]))
    np.testing.assert_array_equal(found, [[1], [np.nan], [np.nan]])


def test_chains_of_preparations_are_native():
    X = rows(np.float64)
    made = chain(
        scaled_columns(np.ones(11), np.full(11, 2.0), -np.inf, np.inf, np.float64),
        chain(selected_columns(11, [1, 0], np.float64), unit_rows(2, "l1", np.float64)),
    )
    Z = (X[:, [1, 0]] - 1) * 2
    np.testing.assert_allclose(written(made, X)[0], Z / np.abs(Z).sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        (Kind.COPY, (1.0,)),
        (Kind.FILL, (1.0,)),
        (Kind.FLAG, ()),
        (Kind.INTERPOLATE, ()),
        (Kind.INTERPOLATE, (1.0, 2.0, 3.0)),
        (Kind.INTERPOLATE, (1.0, 0.0, 1, 1, 1, 1, 1, 1)),
        (Kind.INTERPOLATE, (1.0, np.nan, 1, 1, 1, 1, 1, 1)),
        (Kind.RANKS, (1.0, 1.0, 1, 1, 1, 1, 1, 1)),
        (Kind.CATEGORIES, ()),
        (Kind.CATEGORIES, (2, 0)),
        (Kind.CATEGORIES, (-1, -1, -1)),
        (Kind.CATEGORIES, (1e300, -1, -1)),
        (Kind.CATEGORIES, (1.5, -1, -1)),
        (Kind.CATEGORIES, (1, 1, -1)),
        (Kind.CATEGORIES, (1, -1, -3)),
        (Kind.CATEGORIES, (1, -1, -1, 5.0, 1)),
        (Kind.CATEGORIES, (1, -1, -1, 5.0, 0.5)),
        (Kind.CATEGORIES, (1, -1, -1, 5.0, 4.0, 0, 0)),
        (Kind.CATEGORIES, (1, -1, -1, np.nan, 0)),
        (6, ()),
        (-1, ()),
    ],
)
def test_numbers_that_make_no_sense_are_refused(kind, numbers):
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        mapped_columns(3, [Item(kind, 0, numbers)], np.float64)


def test_arguments_that_do_not_fit_are_refused():
    good = {
        "n_columns": 2,
        "kinds": np.zeros(1, np.int32),
        "sources": np.zeros(1, np.int32),
        "starts": np.zeros(2, np.int64),
        "numbers": np.empty(0),
    }
    assert _core.mapped_columns64(**good).n_features == 1
    for changes in (
        {"n_columns": 0},
        {"sources": np.array([2], np.int32)},
        {"sources": np.array([-1], np.int32)},
        {"sources": np.zeros(2, np.int32)},
        {"starts": np.zeros(1, np.int64)},
        {"starts": np.array([0, 1], np.int64)},
        {"starts": np.array([1, 0], np.int64)},
        {"kinds": np.empty(0, np.int32), "sources": np.empty(0, np.int32)},
    ):
        with pytest.raises(ValueError, match=r"\w+ \w+"):
            _core.mapped_columns64(**{**good, **changes})
    for offsets, factors, low, high in (
        (np.zeros(2), np.zeros(3), 0.0, 1.0),
        (np.zeros(0), np.zeros(0), 0.0, 1.0),
        (np.zeros(2), np.zeros(2), 1.0, 0.0),
        (np.zeros(2), np.zeros(2), np.nan, 1.0),
        (np.zeros(2), np.array([np.inf, 1]), 0.0, 1.0),
    ):
        with pytest.raises(ValueError, match=r"\w+ \w+"):
            scaled_columns(offsets, factors, low, high, np.float64)
    for n_columns, norm in ((0, "l2"), (3, "l3")):
        with pytest.raises(ValueError, match=r"\w+ \w+"):
            unit_rows(n_columns, norm, np.float64)
