"""The native core refuses what would make it read or write outside its arrays."""

from __future__ import annotations

import numpy as np
import pytest

from kitchenette import _core

pytestmark = pytest.mark.native

IDENTITY = _core.Nonlinearity("identity")


def structured(nonlinearity=IDENTITY, **changes):
    arguments = {
        "n_columns": 3,
        "n_features": 100,
        "block": 4,
        "signs": np.ones(128, np.int8),
        "permutation": np.tile(np.arange(4, dtype=np.int32), 32),
        "gaussians": np.ones(128),
        "scales": np.ones(128),
    }
    return _core.structured(nonlinearity, **{**arguments, **changes})


def dense(nonlinearity=IDENTITY, **changes):
    return _core.dense(nonlinearity, **{"panels": np.ones((2, 3, 64)), "n_features": 70, **changes})


SIZES = [
    ({"n_columns": 0}, "there must be a column"),
    ({"n_columns": -1}, "there must be a column"),
    ({"n_columns": -(2**63)}, "there must be a column"),
    ({"n_columns": 2**62}, "there must be a column"),
]
FEATURES = [
    ({"n_features": 0}, "there must be a feature"),
    ({"n_features": -5}, "there must be a feature"),
    ({"n_features": 2**63 - 1}, "there must be a feature"),
]


def csr(values=(1.0, 2.0), indices=(0, 2), starts=(0, 1, 2), n_columns=3):
    return (
        np.array(values),
        np.array(indices, np.int32),
        np.array(starts, np.int64),
        n_columns,
    )


def test_the_arguments_are_good_before_they_are_spoilt():
    for x in (np.ones((2, 3)), csr()):
        assert structured().write(x, np.empty((2, 100)))
        assert dense().write(x, np.empty((2, 70)))
    assert (structured().n_columns, structured().n_features) == (3, 100)
    assert isinstance(structured(), _core.Operator64)
    assert isinstance(dense(panels=np.ones((2, 3, 64), np.float32)), _core.Operator32)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        *SIZES,
        *FEATURES,
        ({"block": 3}, "block must be a power of two"),
        ({"block": 0}, "block must be a power of two"),
        ({"block": -4}, "block must be a power of two"),
        ({"block": 2**40}, "block must be a power of two"),
        ({"block": 2}, "more columns than a block"),
        ({"n_columns": 5}, "more columns than a block"),
        ({"n_columns": 4, "constant": 1.0}, "more columns than a block"),
        ({"block": 256}, "whole tiles"),
        ({"n_features": 129}, "whole tiles"),
        ({"signs": np.ones(64, np.int8)}, "whole tiles"),
        ({"signs": np.ones(0, np.int8)}, "whole tiles"),
        ({"scales": np.ones(127)}, "scales must be as long"),
        ({"gaussians": None}, "permutation and gaussians"),
        ({"gaussians": np.ones(64)}, "permutation and gaussians"),
        ({"permutation": np.zeros(64, np.int32)}, "permutation and gaussians"),
        ({"permutation": np.full(128, 4, np.int32)}, "outside its block"),
        ({"permutation": np.full(128, -1, np.int32)}, "outside its block"),
        ({"permutation": None}, "cosines and sines"),
        ({"permutation": None, "cosines": np.ones(128)}, "cosines and sines"),
        ({"permutation": None, "sines": np.ones(128)}, "cosines and sines"),
        ({"permutation": None, "cosines": np.ones(128), "sines": np.ones(64)}, "cosines and sines"),
        ({"column_scales": np.ones(4)}, "one number per column"),
    ],
)
def test_structured_operators_refuse_bad_parameters(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        structured(**changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"indices": (0, 3)}, "outside the matrix"),
        ({"indices": (0, -1)}, "outside the matrix"),
        ({"indices": (0,)}, "differ in length"),
        ({"starts": (0, 1, 3)}, "do not fit"),
        ({"starts": (-1, 1, 2)}, "do not fit"),
        ({"starts": (0, 2, 1)}, "must not decrease"),
        ({"starts": ()}, "must not be empty"),
        ({"n_columns": 5}, "does not have the columns"),
        ({"n_columns": -1}, "outside the matrix"),
        ({"n_columns": -1, "values": (), "indices": (), "starts": (0, 0, 0)}, "the columns of"),
    ],
)
def test_sparse_rows_that_lie_are_refused(changes, sentence):
    for operator in (structured(), dense()):
        with pytest.raises(ValueError, match=sentence):
            operator.write(csr(**changes), np.empty((2, operator.n_features)))
    line = _core.linear(dense(), np.ones((70, 2)), np.zeros(2))
    with pytest.raises(ValueError, match=sentence):
        line.write(csr(**changes), np.empty((2, 2)))


def test_a_negative_column_of_rows_of_more_than_2_to_the_32_columns_is_refused():
    # As an unsigned number of 32 bits, -1 would be one of these columns.
    first_column = _core.mapped_columns64(
        n_columns=2**33,
        kinds=np.zeros(1, np.int32),
        sources=np.zeros(1, np.int32),
        starts=np.zeros(2, np.int64),
        numbers=np.empty(0),
    )
    with pytest.raises(ValueError, match="outside the matrix"):
        first_column.write(csr(indices=(0, -1), n_columns=2**33), np.empty((2, 1)))


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        (np.empty((3, 100)), "as many rows"),
        (np.empty((2, 0)), "wrong number of columns"),
        (np.empty((2, 99)), "wrong number of columns"),
        (np.empty((2, 101)), "wrong number of columns"),
        (np.empty((100, 2)).T, "rows of out must be contiguous"),
    ],
)
def test_output_of_the_wrong_shape_is_refused(out, sentence):
    with pytest.raises(ValueError, match=sentence):
        structured().write(np.ones((2, 3)), out)
    line = _core.linear(dense(), np.ones((70, 100)), np.zeros(100))
    with pytest.raises(ValueError, match=sentence):
        line.write(np.ones((2, 3)), out)


def test_rows_of_the_wrong_shape_are_refused():
    for x, sentence in [
        (np.ones((2, 4)), "does not have the columns"),
        (np.ones((2, 2)), "does not have the columns"),
        (np.ones((3, 2)).T, "rows of x must be contiguous"),
    ]:
        for operator in (structured(), dense()):
            with pytest.raises(ValueError, match=sentence):
                operator.write(x, np.empty((2, operator.n_features)))


def test_an_operator_does_not_follow_its_index_arrays():
    permutation = np.tile(np.arange(4, dtype=np.int32), 32)
    operator = structured(permutation=permutation)
    before, after = np.empty((2, 2, 100))
    assert operator.write(np.ones((2, 3)), before)
    permutation[:] = 2**30
    assert operator.write(np.ones((2, 3)), after)
    np.testing.assert_array_equal(before, after)


def test_terms_are_counted():
    X, out = np.ones((1, 5)), np.ones((1, 5))
    for kind in ("offset", "local", "power"):
        for terms in (None, np.ones(4)):
            with pytest.raises(ValueError, match="needs a term"):
                _core.finish_features(X, out, _core.Nonlinearity(kind, terms=terms))
    ones = np.ones(5)
    for options, sentence in [
        ({}, "needs a degree"),
        ({"degrees": np.ones(4, np.int32)}, "needs a degree"),
        ({"degrees": np.full(5, -1, np.int32)}, "a degree is negative"),
        ({"degrees": np.full(5, 3, np.int32), "leading": np.ones(2)}, "needs a leading"),
        (
            {"degrees": np.full(5, 3, np.int32), "leading": ones, "trailing": np.ones(2)},
            "needs a trailing",
        ),
    ]:
        with pytest.raises(ValueError, match=sentence):
            _core.finish_features(X, out, _core.Nonlinearity("power", terms=ones, **options))
    for nonlinearity in (
        _core.Nonlinearity("offset"),
        _core.Nonlinearity("offset", terms=np.ones(127)),
    ):
        with pytest.raises(ValueError, match="needs a term"):
            structured(nonlinearity)
    with pytest.raises(ValueError, match="in the precision of the operator"):
        structured(_core.Nonlinearity("offset", terms=np.ones(128, np.float32)))
    with pytest.raises(ValueError, match="'sine'"):
        _core.Nonlinearity("sine")
    with pytest.raises(ValueError, match="do not agree"):
        _core.finish_features(np.ones((1, 5)), np.ones((1, 11)), _core.Nonlinearity("sincos"))


def test_dense_operators_refuse_bad_panels():
    for changes, sentence in [
        *FEATURES,
        ({"panels": np.ones((1, 3, 64))}, "fewer frequencies"),
        ({"panels": np.ones((0, 3, 64))}, "fewer frequencies"),
        ({"panels": np.ones((2, 0, 64))}, "there must be a column"),
        ({"panels": np.ones((2, 3, 32))}, "64 frequencies"),
        ({"nonlinearity": _core.Nonlinearity("local", terms=np.ones(128))}, "needs the norms"),
        ({"nonlinearity": _core.Nonlinearity("power", terms=np.ones(128))}, "needs the norms"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            dense(**changes)


def test_types_are_not_converted_behind_the_back():
    single, double = np.ones((2, 3), np.float32), np.ones((2, 3))
    for x, out in [
        (single, np.empty((2, 70))),
        (double, np.empty((2, 70), np.float32)),
        (double.astype(int), np.empty((2, 70))),
        (csr(values=np.ones(2, np.float32)), np.empty((2, 70))),
    ]:
        with pytest.raises(TypeError):
            dense().write(x, out)
    with pytest.raises(TypeError):
        dense(panels=np.ones((2, 3, 64), np.int64))
    with pytest.raises(TypeError):
        structured(scales=np.ones(128, np.float32))
    with pytest.raises(TypeError):
        structured(signs=None)
    with pytest.raises(TypeError):
        _core.fwht(np.ones((1, 4, 1), np.int64))
    frozen = np.ones((1, 4, 1))
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        _core.fwht(frozen)


def tensor_sketch(**changes):
    arguments = {
        "n_columns": 3,
        "n_buckets": 16,
        "buckets": np.full((2, 3), 15, np.int32),
        "weights": np.ones((2, 3)),
        "length": 16,
        "roots": np.ones((4, 6)),
        "part": 4,
        "circle": np.ones((4, 2)),
    }
    return _core.tensor_sketch(**{**arguments, **changes})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        *SIZES,
        ({"n_buckets": 0}, "there must be a feature"),
        ({"n_buckets": -1}, "there must be a feature"),
        ({"n_buckets": 2**62}, "there must be a feature"),
        ({"n_columns": 1}, "columns of rows, or one more"),
        ({"buckets": np.full((2, 3), 16, np.int32)}, "no such bucket"),
        ({"buckets": np.full((2, 3), -1, np.int32)}, "no such bucket"),
        ({"buckets": np.zeros((0, 3), np.int32)}, "there must be a count sketch"),
        ({"buckets": np.zeros((2, 2), np.int32)}, "columns of rows, or one more"),
        ({"buckets": np.zeros((2, 5), np.int32)}, "columns of rows, or one more"),
        ({"weights": np.ones((1, 3))}, "the shape of buckets"),
        ({"weights": np.ones((2, 4))}, "the shape of buckets"),
        ({"roots": np.ones((3, 6))}, "six numbers for a fourth"),
        ({"roots": np.ones((4, 4))}, "six numbers for a fourth"),
        ({"part": 8}, "power of four"),
        ({"part": 0}, "power of four"),
        ({"part": -4}, "power of four"),
        ({"circle": np.ones((3, 2))}, "the circle must have"),
        ({"circle": np.ones((4, 1))}, "the circle must have"),
        ({"part": 64}, "the circle must have"),
        ({"length": 8}, "the transform is too short"),
        ({"length": 0}, "the transform is too short"),
        ({"length": -16}, "the transform is too short"),
        ({"length": 30}, "the transform is too short"),
        ({"length": 33}, "power of two"),
        ({"length": 32}, "six numbers for a fourth"),
        ({"length": 32, "positions": np.zeros(16, np.int32)}, "the transform is too short"),
        ({"chirp": np.ones((16, 2))}, "needs its filter"),
        ({"chirp": np.ones((15, 2)), "filter": np.ones((16, 2))}, "must be complex"),
        ({"chirp": np.ones((16, 1)), "filter": np.ones((16, 2))}, "must be complex"),
        ({"chirp": np.ones((16, 2)), "filter": np.ones((16, 1))}, "must be complex"),
        ({"chirp": np.ones((16, 2)), "filter": np.ones((32, 2))}, "must be complex"),
        ({"chirp": np.ones((16, 2)), "filter": np.ones((16, 2))}, "too short for a chirp"),
        ({"positions": np.zeros(16, np.int32)}, "a number for every bucket"),
        (
            {"positions": np.zeros(15, np.int32), "output_scales": np.ones(16)},
            "a number for every bucket",
        ),
        (
            {"positions": np.full(16, 16, np.int32), "output_scales": np.ones(16)},
            "outside the spectrum",
        ),
        (
            {"positions": np.full(16, -1, np.int32), "output_scales": np.ones(16)},
            "outside the spectrum",
        ),
    ],
)
def test_tensor_sketches_refuse_bad_parameters(changes, sentence):
    for x in (np.ones((2, 3)), csr()):
        assert tensor_sketch().write(x, np.empty((2, 16)))
    with pytest.raises(ValueError, match=sentence):
        tensor_sketch(**changes)
    with pytest.raises(ValueError, match="power of two"):
        tensor_sketch(n_buckets=17, length=17, roots=np.ones((99, 6)))


def sketch_tree(**changes):
    arguments = {
        "n_columns": 3,
        "n_buckets": 16,
        "width": 16,
        "children": [-1, -1, 0, -1],
        "buckets": [np.full(n, 15, np.int32) for n in (3, 4, 16, 3)],
        "weights": [np.ones(n) for n in (3, 4, 16, 3)],
        "length": 16,
        "roots": np.ones((4, 6)),
        "part": 16,
        "circle": np.ones((1, 2)),
    }
    return _core.sketch_tree(**{**arguments, **changes})


def with_factor(name, place, value):
    arrays = [np.full(n, 15, np.int32) if name == "buckets" else np.ones(n) for n in (3, 4, 16, 3)]
    arrays[place] = value
    return {name: arrays}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        *SIZES,
        ({"n_buckets": 0}, "there must be a feature"),
        ({"width": 12}, "the width must be a power of two"),
        ({"width": 0}, "the width must be a power of two"),
        ({"width": 2**40}, "the width must be a power of two"),
        ({"width": 32}, "six numbers for a fourth of the width"),
        ({"width": 8}, "the inputs of a child"),
        ({"children": []}, "there must be a node"),
        ({"children": [-1, -1]}, "two children with buckets"),
        ({"children": [-1, -1, 0, -1, -1]}, "two children with buckets"),
        ({"buckets": []}, "two children with buckets"),
        ({"weights": []}, "two children with buckets"),
        ({"children": [-1, -1, 1, -1]}, "a child must come before its parent"),
        ({"children": [-1, -1, 5, -1]}, "a child must come before its parent"),
        (
            {
                "children": [-1, -1, -1, -1],
                "buckets": [np.zeros(3, np.int32)] * 4,
                "weights": [np.ones(3)] * 4,
            },
            "must be the child of a later one",
        ),
        (
            {
                "children": [-1, -1, 0, 0],
                "buckets": [np.zeros(n, np.int32) for n in (3, 3, 16, 16)],
                "weights": [np.ones(n) for n in (3, 3, 16, 16)],
            },
            "cannot have two parents",
        ),
        (with_factor("buckets", 0, np.full(3, 16, np.int32)), "no such bucket"),
        (with_factor("buckets", 2, np.full(16, -1, np.int32)), "no such bucket"),
        (with_factor("buckets", 2, np.zeros(15, np.int32)), "a weight for every bucket"),
        (with_factor("weights", 3, np.ones(4)), "a weight for every bucket"),
        (
            {
                **with_factor("buckets", 3, np.zeros(5, np.int32)),
                **with_factor("weights", 3, np.ones(5)),
            },
            "columns of rows, or one more",
        ),
        ({"roots": np.ones((3, 6))}, "six numbers for a fourth"),
        ({"part": 8}, "power of four"),
        ({"part": 4, "circle": np.ones((4, 2))}, "cannot be transformed in parts"),
        ({"circle": np.ones((2, 2))}, "the circle must have"),
        ({"length": 8}, "the transform is too short"),
        ({"length": 24}, "the transform is too short"),
        ({"chirp": np.ones((16, 2))}, "needs its filter"),
        ({"positions": np.zeros(16, np.int32)}, "a number for every bucket"),
        (
            {"positions": np.full(16, 16, np.int32), "output_scales": np.ones(16)},
            "outside the spectrum",
        ),
    ],
)
def test_trees_of_sketches_refuse_bad_parameters(changes, sentence):
    for x in (np.ones((2, 3)), csr()):
        assert sketch_tree().write(x, np.empty((2, 16)))
    with pytest.raises(ValueError, match=sentence):
        sketch_tree(**changes)


def complex_products(**changes):
    arguments = {
        "n_columns": 3,
        "n_products": 20,
        "block": 4,
        "signs": np.ones((4, 128), np.int8),
        "indices": np.zeros((2, 32), np.int32),
        "depths": np.full(2, 2, np.int32),
        "weights": np.ones(32),
    }
    return _core.complex_products(**{**arguments, **changes})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        *SIZES,
        ({"n_products": 0}, "there must be a feature"),
        ({"block": 3}, "block must be a power of two"),
        ({"block": 2}, "more columns than a block"),
        ({"signs": np.ones((3, 128), np.int8)}, "two rows per factor"),
        ({"signs": np.ones((4, 64), np.int8)}, "two rows per factor"),
        ({"weights": np.ones(31)}, "whole groups for all products"),
        ({"weights": np.ones(16)}, "whole groups for all products"),
        ({"indices": np.zeros((2, 16), np.int32)}, "a column per weight"),
        ({"indices": np.zeros((1, 32), np.int32)}, "two rows per factor"),
        ({"indices": np.full((2, 32), 129, np.int32)}, "outside its block"),
        ({"indices": np.full((2, 32), -1, np.int32)}, "outside its block"),
        ({"depths": np.full(1, 2, np.int32)}, "a depth for every group"),
        ({"depths": np.full(2, 3, np.int32)}, "more factors than there are"),
        ({"depths": np.full(2, -1, np.int32)}, "more factors than there are"),
        ({"depths": np.zeros(2, np.int32)}, "every product must have a factor"),
        ({"column_scales": np.ones(4)}, "one number per column"),
    ],
)
def test_complex_products_refuse_bad_parameters(changes, sentence):
    for x in (np.ones((2, 3)), csr()):
        assert complex_products().write(x, np.empty((2, 40)))
    with pytest.raises(ValueError, match=sentence):
        complex_products(**changes)


def unaligned(count):
    return np.frombuffer(bytearray(8 * count + 1), dtype=np.uint8)[1:].view(np.float64)


def test_arrays_that_are_not_aligned_are_refused():
    for x, out in [
        (unaligned(6).reshape(2, 3), np.empty((2, 70))),
        (np.ones((2, 3)), unaligned(140).reshape(2, 70)),
    ]:
        with pytest.raises(ValueError, match="not aligned"):
            dense().write(x, out)
    with pytest.raises(ValueError, match="not aligned"):
        dense(panels=unaligned(2 * 3 * 64).reshape(2, 3, 64))
    with pytest.raises(ValueError, match="not aligned"):
        structured(scales=unaligned(128))
    with pytest.raises(ValueError, match="not aligned"):
        _core.fwht(unaligned(8).reshape(1, 8, 1))


def test_empty_input_is_no_work():
    _core.fwht(np.ones((0, 4, 3)))
    _core.fwht(np.ones((3, 4, 0)))
    nothing = csr(values=(), indices=(), starts=(0,))
    for operator in (
        structured(),
        dense(),
        hadamard_products(),
        sign_products(),
        complex_products(),
        tensor_sketch(),
        sketch_tree(),
    ):
        for x in (np.ones((0, 3)), nothing):
            assert operator.write(x, np.empty((0, operator.n_features)))
            line = _core.linear(operator, np.ones((operator.n_features, 2)), np.zeros(2))
            assert line.write(x, np.empty((0, 2)))


@pytest.mark.parametrize("block", [2**16, 2**17])
def test_the_longest_blocks_are_done_row_by_row_with_the_same_result(simd, block):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, block - 3))
    arguments = {
        "n_columns": block - 3,
        "n_features": block,
        "block": block,
        "signs": rng.choice([-1, 1], block).astype(np.int8),
        "permutation": rng.permutation(block).astype(np.int32),
        "gaussians": rng.normal(size=block),
        "scales": np.full(block, 1 / block),
    }
    out = np.empty((9, block))
    assert _core.structured(IDENTITY, **arguments).write(X, out)
    work = np.zeros((9, block, 1))
    work[:, : block - 3, 0] = X
    work *= arguments["signs"][:, None]
    _core.fwht(work)
    work = np.ascontiguousarray(work[:, arguments["permutation"]])
    work *= arguments["gaussians"][:, None]
    _core.fwht(work)
    np.testing.assert_allclose(out, work[:, :, 0] / block, rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------- products


def hadamard_products(**changes):
    arguments = {
        "n_columns": 3,
        "n_features": 10,
        "block": 4,
        "signs": np.ones((2, 128), np.int8),
        "indices": np.zeros((2, 16), np.int32),
        "depths": np.full(1, 2, np.int32),
        "weights": np.ones(16),
        **changes,
    }
    return _core.hadamard_products(**arguments)


def sign_products(**changes):
    arguments = {
        "n_columns": 3,
        "n_features": 10,
        "bits": np.zeros((2, 3), np.uint64),
        "used": np.zeros(2, np.uint64),
        "starts": np.array([0, 2]),
        "weights": np.ones(64),
        **changes,
    }
    return _core.sign_products(**arguments)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        *SIZES,
        *FEATURES,
        ({"n_columns": 5}, "more columns than a block"),
        ({"n_features": 17}, "whole groups"),
        ({"depths": np.full(1, -1, np.int32)}, "more factors than there are"),
        ({"block": -4}, "power of two"),
        ({"signs": np.ones((2, 64), np.int8)}, "fill a tile"),
        ({"block": 256}, "fill a tile"),
        ({"block": 3}, "power of two"),
        ({"block": 0}, "power of two"),
        ({"block": 2}, "more columns than a block"),
        ({"signs": np.ones((3, 128), np.int8)}, "a row per factor"),
        ({"indices": np.full((2, 16), 129, np.int32)}, "outside its block"),
        ({"indices": np.full((2, 16), -1, np.int32)}, "outside its block"),
        ({"indices": np.zeros((2, 32), np.int32)}, "a column per weight"),
        ({"weights": np.ones(15), "indices": np.zeros((2, 15), np.int32)}, "whole groups"),
        ({"depths": np.full(1, 3, np.int32)}, "more factors than there are"),
        ({"depths": np.full(2, 1, np.int32)}, "a depth for every group"),
        ({"column_scales": np.ones(2)}, "one number per column"),
    ],
)
def test_hadamard_products_refuse_bad_tables(changes, sentence):
    assert hadamard_products().write(np.ones((2, 3)), np.empty((2, 10)))
    with pytest.raises(ValueError, match=sentence):
        hadamard_products(**changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        *SIZES,
        *FEATURES,
        ({"n_columns": 4}, "one word per column"),
        ({"n_features": 65}, "fewer panels"),
        ({"bits": np.zeros((2, 4), np.uint64)}, "one word per column"),
        (
            {"bits": np.zeros((3, 3), np.uint64), "used": np.zeros(3, np.uint64)},
            "do not fit the number",
        ),
        ({"used": np.zeros(1, np.uint64)}, "a word of used features"),
        ({"starts": np.array([0])}, "fewer panels"),
        ({"starts": np.array([], np.int64)}, "fewer panels"),
        ({"starts": np.array([0, 3, 2]), "weights": np.ones(128)}, "must not decrease"),
        ({"starts": np.array([1, 2])}, "do not fit"),
        ({"weights": np.ones(63)}, "whole panels"),
        ({"column_scales": np.ones(2)}, "one number per column"),
    ],
)
def test_sign_products_refuse_bad_tables(changes, sentence):
    assert sign_products().write(np.ones((2, 3)), np.empty((2, 10)))
    with pytest.raises(ValueError, match=sentence):
        sign_products(**changes)


# ---------------------------------------------------------------- compositions


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        *SIZES,
        ({"constant": 0.0, "slope": 0.0}, "must be greater than zero"),
        ({"constant": -1.0}, "finite numbers of at least zero"),
        ({"slope": -1.0}, "finite numbers of at least zero"),
        ({"slope": np.nan}, "finite numbers of at least zero"),
        ({"constant": np.inf}, "finite numbers of at least zero"),
    ],
)
def test_affine_operators_refuse_bad_parameters(changes, sentence):
    for make in (_core.affine32, _core.affine64):
        with pytest.raises(ValueError, match=sentence):
            make(**{"n_columns": 3, "constant": 1.0, "slope": 2.0, **changes})


def test_operators_that_do_not_fit_are_refused():
    affine = _core.affine64(n_columns=4, constant=1.0, slope=2.0)
    with pytest.raises(ValueError, match="as many columns as the first has features"):
        _core.chain(dense(), affine)
    with pytest.raises(ValueError, match="the same columns"):
        _core.concatenate([dense(), affine])
    with pytest.raises(ValueError, match="there must be an operator"):
        _core.concatenate([])
    with pytest.raises(TypeError):
        _core.chain(dense(), dense(panels=np.ones((2, 70, 64), np.float32)))
    with pytest.raises(TypeError):
        _core.concatenate([dense(), dense(panels=np.ones((2, 3, 64), np.float32))])
    with pytest.raises(TypeError):
        _core.concatenate([dense(), None])
    with pytest.raises(TypeError):
        _core.chain(None, dense())


def test_linear_functions_refuse_bad_weights():
    for weights, intercept, sentence in [
        (np.ones((69, 2)), np.zeros(2), "a row per feature"),
        (np.ones((70, 3)), np.zeros(2), "a column per target"),
        (np.ones((70, 0)), np.zeros(0), "there must be a target"),
        (unaligned(140).reshape(70, 2), np.zeros(2), "not aligned"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            _core.linear(dense(), weights, intercept)
    for weights, intercept in [
        (np.ones((70, 2), np.float32), np.zeros(2)),
        (np.ones((70, 2)), np.zeros(2, np.float32)),
        (None, np.zeros(2)),
    ]:
        with pytest.raises(TypeError):
            _core.linear(dense(), weights, intercept)


def test_transposed_products_refuse_bad_shapes():
    for changes, sentence in [
        ({"x": np.ones((5, 4))}, "does not have the columns"),
        ({"factors": np.ones((4, 2))}, "a row of factors for every row"),
        ({"out": np.zeros((69, 2))}, "a row per feature"),
        ({"out": np.zeros((70, 3))}, "a column per factor"),
    ]:
        arguments = {
            "x": np.ones((5, 3)),
            "factors": np.ones((5, 2)),
            "out": np.zeros((70, 2)),
        }
        assert _core.transposed(dense(), **arguments)
        with pytest.raises(ValueError, match=sentence):
            _core.transposed(dense(), **{**arguments, **changes})
