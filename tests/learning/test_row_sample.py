"""Samples of rows by their keys: the same for any order, batches and formats."""

from __future__ import annotations

import numpy as np
import pytest

from kitchenette.data.drawing import SampleBuilder
from kitchenette.data.keys import LARGEST_KEY, row_keys
from kitchenette.files.budget import Budget
from kitchenette.files.fields import field_values, from_fields
from kitchenette.learning.leave_one_out import RowSample


def sample_of(X, Y, weights=None, size=50):
    return RowSample.of(size, row_keys(X, Y), X, Y, weights)


def same(a, b):
    assert a.last_key == b.last_key
    for name in ("keys", "features", "targets", "copies"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert np.allclose(a.weights, b.weights)


def test_order_batches_and_merging_do_not_matter():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(700, 3)), rng.normal(size=(700, 1))
    X, Y = np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0)
    weights = rng.uniform(size=1400)
    whole = sample_of(X, Y, weights)
    order = rng.permutation(1400)
    same(whole, sample_of(X[order], Y[order], weights[order]))
    builder = SampleBuilder(50)
    for part in np.array_split(order, 9):
        builder.add(sample_of(X[part], Y[part], weights[part]).up_to(builder.last_key))
    same(whole, builder.finish())
    some = [sample_of(X[part], Y[part], weights[part]) for part in np.array_split(order, 5)]
    same(whole, some[3].combined(some[0], some[4]).combined(some[2].combined(some[1])))


def test_equal_rows_are_one_row():
    X, Y = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]), np.array([[0.0], [0.0], [0.0]])
    sample = sample_of(X, Y, np.array([1.0, 2.0, 5.0]))
    assert sample.is_complete
    assert sample.n_observations(3, "pairs") == 2
    assert sorted(zip(sample.copies.tolist(), sample.weights.tolist(), strict=True)) == [
        (1, 2.0),
        (2, 6.0),
    ]


def test_the_number_of_distinct_rows_is_estimated():
    # Each of 5000 rows is there three times on average; the standard error is 1 % here.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(5000, 2))[rng.integers(5000, size=15000)]
    sample = sample_of(X, np.zeros((15000, 1)), size=2000)
    assert not sample.is_complete
    assert sample.n_observations(15000, "rows") == 15000
    assert sample.n_observations(15000, "pairs") == pytest.approx(
        len(np.unique(X, axis=0)), rel=0.05
    )


def test_removed_rows_leave_the_sample():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(300, 2)), rng.normal(size=(300, 1))
    sample = sample_of(X, Y).without(row_keys(X[:100], Y[:100]), None)
    rest = sample_of(X[100:], Y[100:])
    assert set(sample.keys) == set(rest.up_to(sample.last_key).keys)
    again = sample.combined(sample_of(X[:100], Y[:100]))
    same(again, sample_of(X, Y).up_to(again.last_key))
    nothing = sample_of(X, Y, size=300).without(row_keys(X, Y), None)
    assert nothing.n_sampled == 0
    with pytest.raises(ValueError, match=r"indices 0, 1, 2, 3, 4, \.\.\. were not learned"):
        nothing.without(row_keys(X, Y), None)


def test_the_sample_is_uniform():
    # Of 20000 rows 2000 are sampled: the mean of a column is within 5 standard errors of 0.
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20000, 3))
    sample = sample_of(X, np.zeros((20000, 1)), size=2000)
    assert sample.n_sampled == 2000
    assert np.all(np.abs(sample.features.mean(axis=0)) < 5 / np.sqrt(2000))
    assert sample.last_key == pytest.approx(LARGEST_KEY / 10, rel=0.15)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"keys": np.array([2, 1], np.uint64)}, "increase"),
        ({"weights": np.array([1.0, -1.0])}, r"weights must be at least 0"),
        ({"copies": np.array([1, 0])}, r"copies must be at least 1"),
        ({"features": np.array([[np.nan], [0.0]])}, "finite"),
        ({"features": np.zeros((3, 1))}, "features must be an array of shape"),
        ({"targets": np.zeros((2, 1), np.float32)}, "targets cannot be an array of float32"),
        ({"size": 1}, "more than the size"),
        ({"last_key": np.array([1.0])}, "last_key cannot be"),
    ],
)
def test_files_are_checked(change, sentence):
    state = field_values(sample_of(np.array([[1.0], [2.0]]), np.zeros((2, 1))))
    same(from_fields(RowSample, dict(state), Budget(1e9, 1e9)), RowSample(**state))
    with pytest.raises(ValueError, match=sentence):
        from_fields(RowSample, {**state, **change}, Budget(1e9, 1e9))
