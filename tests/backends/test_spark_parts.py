"""What Spark's tasks send to each other, and how its rows become matrices; without a session."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kitchenette.data import DataError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark", reason="pyspark is not installed")
rows = pytest.importorskip("kitchenette.backends.spark_rows")
tree = pytest.importorskip("kitchenette.backends.spark_tree")

VECTOR = pa.struct(
    [
        ("type", pa.int8()),
        ("size", pa.int32()),
        ("indices", pa.list_(pa.int32())),
        ("values", pa.list_(pa.float64())),
    ]
)


def dense(*values):
    return {"type": 1, "size": None, "indices": None, "values": [*values]}


def sparse(size, entries):
    return {"type": 0, "size": size, "indices": [*entries], "values": [*entries.values()]}


@pytest.mark.parametrize("piece_bytes", [1, 7, 100, 1 << 20])
def test_a_message_arrives_whole_whatever_the_order_of_its_pieces(piece_bytes):
    message = tree.Message({"numbers": np.arange(20)}, (3,), ((1, "partition 1: no."),), 11)
    other = tree.Message("another", (4,))
    sent = [
        [column[i].as_py() for column in batch.columns]
        for node, one in ((3, message), (4, other))
        for batch in tree.pieces(node, one, piece_bytes)
        for i in range(batch.num_rows)
    ]
    inbox = tree.Inbox()
    for place in np.random.default_rng(0).permutation(len(sent)):
        inbox.add(*([value] for value in sent[place]))
    assert sorted(inbox.nodes) == [3, 4]
    found = inbox.take(3)
    assert np.array_equal(found.value["numbers"], np.arange(20))
    assert (found.leaves, found.problems) == ((3,), message.problems)
    assert found.sent == 11 + sum(len(data) for node, _, _, data in sent if node == 3)
    assert inbox.nodes == [4]


def test_a_message_with_a_missing_piece_is_refused():
    first, *_ = tree.pieces(0, tree.Message(np.arange(100), (0,)), 50)
    inbox = tree.Inbox()
    inbox.add(*(column.to_pylist()[:1] for column in first.columns))
    with pytest.raises(RuntimeError, match="not complete"):
        inbox.take(0)


def test_batches_are_cut_where_a_partition_ends():
    numbers = [[0, 0, 2], [2, 5, 5], [], [5]]
    batches = [
        pa.record_batch({"x": pa.array(part, pa.int64()), "p": pa.array(part, pa.int32())})
        for part in numbers
    ]
    found = [
        (number, [value for batch in some for value in batch.column("x").to_pylist()])
        for number, some in tree.by_partition(batches)
    ]
    assert found == [(0, [0, 0]), (2, [2, 2]), (5, [5, 5, 5])]


def test_batches_are_gathered_to_tables_of_some_rows():
    batches = [pa.record_batch({"x": [1.0] * n}) for n in (3, 4, 2, 6, 1)]
    assert [table.num_rows for table in rows.gathered(batches, 5)] == [7, 8, 1]


def test_vectors_are_the_same_rows_dense_or_sparse():
    vectors = [
        dense(1.0, 0.0, 2.0),
        sparse(3, {0: 1.0, 2: 2.0}),
        sparse(3, {}),
        dense(0.0, 5.0, 0.0),
    ]
    expected = [[1, 0, 2], [1, 0, 2], [0, 0, 0], [0, 5, 0]]
    values = pa.array([dense(9.0, 9.0, 9.0), *vectors], VECTOR)
    assert np.array_equal(rows.matrix_of_vectors(values.slice(1), "features"), expected)
    assert np.array_equal(rows.matrix_of_vectors(values.slice(4), "features"), expected[3:])


def test_wide_vectors_stay_sparse():
    values = pa.array([sparse(100_000, {5: 1.0}), sparse(100_000, {99_999: 2.0})], VECTOR)
    found = rows.matrix_of_vectors(values, "features")
    assert sp.issparse(found)
    assert found.shape == (2, 100_000)
    assert found[1, 99_999] == 2.0


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_arrays_keep_their_precision(kind):
    values = pa.array([[7.0], [1.0], [2.0]], pa.list_(kind))
    found = rows.matrix_of_vectors(values.slice(1), "features")
    assert found.dtype == kind.to_pandas_dtype()
    assert found.tolist() == [[1.0], [2.0]]


def test_rows_of_different_widths_or_without_values_are_refused():
    with pytest.raises(DataError, match="'f' has 2 numbers in one row and 1 in another"):
        rows.matrix_of_vectors(pa.array([[1.0, 2.0], [3.0]]), "f")
    with pytest.raises(DataError, match="'f' has 2 numbers in one row and 3 in another"):
        rows.matrix_of_vectors(pa.array([dense(1.0, 2.0), sparse(3, {0: 1.0})], VECTOR), "f")
    with pytest.raises(DataError, match="'f' has no value in row 1"):
        rows.matrix_of_vectors(pa.array([[1.0], None]), "f")


def test_settings_of_bytes_are_read_as_spark_reads_them():
    assert [*map(tree.bytes_of_setting, ("0", "12", "2k", "3mb", "1g"))] == [
        0,
        12,
        2048,
        3 << 20,
        1 << 30,
    ]


def test_many_bad_partitions_take_few_sentences():
    problems = [(number, f"partition {number}: no.") for number in range(8)]
    assert tree.sentence_of(problems[:1]) == "partition 0: no."
    assert tree.sentence_of(problems).endswith("So it is with 3 other partitions: 5, 6, 7.")
