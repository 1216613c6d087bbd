"""Samples of rows by their keys: the same for any order, batches, formats and types."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from kitchenette.data import DataError, source
from kitchenette.data.drawing import Drawing, last_key_of_sample
from kitchenette.data.keys import LARGEST_KEY, row_keys, seeded

MASK = 2**64 - 1


def mixed(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def key_of(row):
    """The key of a row of numbers, by whole numbers of Python."""
    golden = 0x9E3779B97F4A7C15
    total = 0
    for column, number in enumerate(row):
        b = int(np.float64(number + 0.0).view(np.uint64))
        b ^= (b >> 26) ^ (b >> 52)
        total += b * (mixed(((column + 1) * golden) & MASK) | 1)
    return mixed((total + golden) & MASK)


def test_keys_are_those_of_the_formula():
    X = np.array([[1.0, -0.0, 3.5], [0.0, 0.0, 0.0], [1e300, -2.0, 1e-300]])
    Y = np.array([[1.0], [2.0], [0.0]])
    expected = [
        (key_of(x) + 0x9E3779B97F4A7C15 * key_of(y)) & MASK for x, y in zip(X, Y, strict=True)
    ]
    assert row_keys(X, Y).tolist() == expected


@pytest.mark.parametrize("convert", [np.float32, np.asfortranarray, sp.csr_matrix, lambda X: X + 0])
def test_keys_do_not_depend_on_format_or_precision(convert):
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(500, 7)).astype(np.float64)
    Y = rng.normal(size=(500, 2))
    assert np.array_equal(row_keys(X, Y), row_keys(convert(X), Y))


def test_keys_of_binary_rows_are_uniform_and_distinct():
    # Ten standard errors of the mean of uniform numbers; a hash that only keeps the high bits of
    # the numbers 0 and 1 has a few thousand different keys.
    X = (np.arange(1 << 14)[:, None] >> np.arange(14)) & 1
    keys = row_keys(X.astype(np.float32), np.zeros((len(X), 1)))
    assert np.unique(keys).size == len(X)
    uniform = keys / 2.0**64
    assert abs(uniform.mean() - 0.5) < 10 / np.sqrt(12 * len(X))
    counts = np.bincount((uniform * 16).astype(int), minlength=16)
    assert np.square(counts - 1024).sum() / 1024 < 60  # chi-squared, 15 degrees of freedom: 1e-6


RNG = np.random.default_rng(5)
NUMBERS = RNG.normal(size=(3000, 4)).round(1).astype(np.float32)
NUMBERS[RNG.uniform(size=NUMBERS.shape) < 0.3] = 0
LABELS = RNG.integers(3, size=3000)
WEIGHTS = RNG.integers(0, 4, size=3000).astype(float)
WORDS = pd.DataFrame(
    {
        "color": RNG.choice(["red", "green", "blue", None], 3000),
        "size": RNG.choice([1.5, 2.5, np.nan], 3000),
        "grade": pd.Categorical(RNG.choice(["a", "b"], 3000)),
        "new": RNG.uniform(size=3000) < 0.5,
        "count": RNG.integers(40, size=3000),
    }
)


def same(a, b):
    """Two samples have the same rows, whatever their type, and the same sums of weights."""
    assert (a.size, a.last_key) == (b.size, b.last_key)
    np.testing.assert_array_equal(a.keys, b.keys)
    np.testing.assert_array_equal(a.copies, b.copies)
    np.testing.assert_allclose(a.weights, b.weights)
    np.testing.assert_array_equal(plain(a.X), plain(b.X))
    np.testing.assert_array_equal(np.asarray(a.y), np.asarray(b.y))


def plain(X):
    """Rows as an array of words or numbers."""
    if sp.issparse(X):
        return X.toarray()
    if isinstance(X, np.ndarray):
        return X
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    return frame.astype(object).where(frame.notna(), "missing").to_numpy().astype(str)


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.astype(np.float64),
        lambda X: np.asfortranarray(X),
        sp.csr_matrix,
        lambda X: sp.csr_matrix(X.astype(np.float64)),
        pd.DataFrame,
        lambda X: pd.DataFrame(X.astype(np.float64)),
    ],
)
def test_precision_and_format_of_numbers_do_not_matter(convert):
    drawing = Drawing(200, 1)
    plainly = drawing.of_rows(NUMBERS, LABELS, WEIGHTS)
    assert plainly.n_sampled == 200
    converted = drawing.of_rows(convert(NUMBERS), LABELS.astype(float), WEIGHTS)
    np.testing.assert_array_equal(plainly.keys, converted.keys)
    np.testing.assert_array_equal(
        plainly.X, np.asarray(converted.X.todense() if sp.issparse(converted.X) else converted.X)
    )


def test_whole_numbers_are_numbers():
    X, drawing = RNG.integers(-5, 6, size=(900, 3)), Drawing(100, 0)
    for dtype in (np.int8, np.float32, object):
        same(drawing.of_rows(X), drawing.of_rows(X.astype(dtype)))


@pytest.mark.parametrize(
    "convert",
    [
        pa.Table.from_pandas,
        pl.from_pandas,
        lambda frame: frame.astype({"color": "category", "grade": object}),
        lambda frame: frame.astype({"size": np.float32, "count": np.int16}),
    ],
)
def test_types_of_columns_do_not_matter(convert):
    drawing, y = Drawing(200, 1), np.array(["no", "yes", "perhaps"])[LABELS]
    by_pandas = drawing.of_rows(WORDS, y)
    converted = drawing.of_rows(convert(WORDS), y.astype(object))
    np.testing.assert_array_equal(by_pandas.keys, converted.keys)
    np.testing.assert_array_equal(by_pandas.y, converted.y)


@pytest.mark.parametrize("X", [NUMBERS, sp.csr_matrix(NUMBERS), WORDS, pa.Table.from_pandas(WORDS)])
def test_the_sample_of_partitions_is_that_of_all_rows(X):
    drawing = Drawing(300, 7)
    order = np.random.default_rng(0).permutation(3000)
    whole = drawing.of_rows(X, LABELS, WEIGHTS)
    parts = []
    for part in np.array_split(order, [10, 400, 401, 2500]):
        some = (
            X.iloc[part]
            if isinstance(X, pd.DataFrame)
            else X.take(part)
            if isinstance(X, pa.Table)
            else X[part]
        )
        block = SimpleNamespace(X=some, y=LABELS[part], weight=WEIGHTS[part])
        parts.append(pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(drawing)).of(block))))
    first = drawing.combined(parts[3], parts[1])
    second = drawing.combined(drawing.combined(parts[4], parts[0]), parts[2])
    same(drawing.combined(second, first), whole)
    assert whole.population == pytest.approx(n_distinct(X), rel=0.25)  # 4 standard errors


def n_distinct(X):
    keys = Drawing(10_000, 0).of_rows(X, LABELS, WEIGHTS)
    assert keys.is_complete
    assert keys.population == keys.n_sampled
    return keys.n_sampled


def test_weights_count_like_repetitions():
    drawing = Drawing(150, 2)
    weighted = drawing.of_rows(NUMBERS, LABELS, WEIGHTS)
    which = np.repeat(np.arange(3000), WEIGHTS.astype(int))
    repeated = drawing.of_rows(NUMBERS[which], LABELS[which])
    np.testing.assert_array_equal(weighted.X, repeated.X)
    np.testing.assert_array_equal(weighted.weights, repeated.weights)
    np.testing.assert_array_equal(repeated.copies, repeated.weights)


def test_smaller_samples_are_part_of_larger_ones():
    large = Drawing(200, 3).of_rows(NUMBERS, LABELS)
    same(large.first(70), Drawing(70, 3).of_rows(NUMBERS, LABELS))
    assert large.first(500) is large


def test_other_seeds_give_other_samples():
    keys = [Drawing(300, seed).of_rows(NUMBERS, LABELS) for seed in range(2)]
    rows = [{(*x, y) for x, y in zip(one.X.tolist(), one.y.tolist(), strict=True)} for one in keys]
    expected = 300**2 / n_distinct(NUMBERS)
    assert abs(len(rows[0] & rows[1]) - expected) < 6 * np.sqrt(expected)


def test_seeded_keys_are_a_bijection_that_mixes():
    keys = np.arange(4096, dtype=np.uint64)
    found = seeded(keys, 3)
    assert np.unique(found).size == 4096
    counts = np.bincount((found / 2.0**64 * 16).astype(int), minlength=16)
    assert np.square(counts - 256).sum() / 256 < 60  # chi-squared, 15 degrees of freedom: 1e-6


def test_targets_of_any_kind_are_part_of_the_key():
    X, drawing = np.zeros((6, 1)), Drawing(10, 0)
    for y in ([0, 1, 0, 2, 2, 2], ["a", "b", "a", "c", "c", "c"], [[0, 1], [1, 1], [0, 1]] * 2):
        y = np.array(y)
        found = drawing.of_rows(X, y)
        distinct, counts = np.unique(y, axis=0, return_counts=True)
        assert found.n_sampled == len(distinct)
        assert sorted(found.copies) == sorted(counts)


def test_sources_are_sampled_by_keys_unless_one_pass_is_asked_for(tmp_path):
    order = np.random.default_rng(1).permutation(3000)
    for rows, other in ((NUMBERS, NUMBERS[order]), (WORDS, WORDS.iloc[order])):
        mine = source(rows, target=LABELS).drawn(0)
        theirs = source(other, target=LABELS[order]).drawn(0)
        np.testing.assert_array_equal(plain(mine.X), plain(theirs.X))
        np.testing.assert_array_equal(mine.copies, theirs.copies)
        assert mine.copies.sum() == 3000
        assert mine.population == mine.n_rows < 3000
    np.save(tmp_path / "X.npy", NUMBERS)
    once, twice = (source(str(tmp_path / "X.npy"), passes=passes) for passes in (1, 2))
    assert not once.draws_by_keys
    assert once.drawn(0).population == 3000
    assert once.drawn(0).copies is None
    np.testing.assert_array_equal(twice.drawn(0).X, source(NUMBERS).drawn(0).X)
    with pytest.raises(DataError, match="no rows"):
        source(NUMBERS[:0]).drawn(0)


@pytest.mark.parametrize("n_distinct", [10, 50, 51, 90, 5000])
def test_the_last_key_of_a_sample_is_known_before_its_rows_are_copied(n_distinct):
    rng = np.random.default_rng(n_distinct)
    values = np.unique(rng.integers(0, 2**63, size=n_distinct, dtype=np.uint64))
    for n_rows in (60, 1000):
        keys = rng.choice(values, n_rows)
        found, distinct = last_key_of_sample(keys, 50), np.unique(keys)
        if found != LARGEST_KEY:
            assert distinct.size > 50
            assert found == distinct[49]
    assert found != LARGEST_KEY or n_distinct < 200  # it is if few rows are repeated
