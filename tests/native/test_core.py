"""The native core refuses what would make it read or write outside its arrays."""

from __future__ import annotations

import numpy as np
import pytest

from kitchenette import _core

pytestmark = pytest.mark.native

IDENTITY = _core.Tail("identity")


def fastfood_arguments(**changes):
    arguments = {
        "block": 4,
        "signs": np.ones(128, np.int8),
        "permutation": np.tile(np.arange(4, dtype=np.int32), 32),
        "gaussians": np.ones(128),
        "scales": np.ones(128),
    }
    return {**arguments, **changes}


def csr(values=(1.0, 2.0), indices=(0, 2), starts=(0, 1, 2), n_columns=3):
    return (
        np.array(values),
        np.array(indices, np.int32),
        np.array(starts, np.int64),
        n_columns,
    )


def test_the_arguments_are_good_before_they_are_spoilt():
    assert _core.structured_features(
        np.ones((2, 3)), np.empty((2, 100)), IDENTITY, **fastfood_arguments()
    )
    assert _core.structured_features(csr(), np.empty((2, 128)), IDENTITY, **fastfood_arguments())


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"block": 3}, "block must be a power of two"),
        ({"block": 0}, "block must be a power of two"),
        ({"block": 2}, "more columns than a block"),
        ({"block": 256}, "whole tiles"),
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
        ({"column_scales": np.ones(4)}, "one number per column"),
    ],
)
def test_structured_features_refuse_bad_parameters(changes, sentence):
    out = np.empty((2, 100))
    with pytest.raises(ValueError, match=sentence):
        _core.structured_features(np.ones((2, 3)), out, IDENTITY, **fastfood_arguments(**changes))


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
        ({"n_columns": 5}, "more columns than a block"),
    ],
)
def test_sparse_rows_that_lie_are_refused(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        _core.structured_features(
            csr(**changes), np.empty((2, 100)), IDENTITY, **fastfood_arguments()
        )


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        (np.empty((3, 100)), "as many rows"),
        (np.empty((2, 0)), "must have columns"),
        (np.empty((2, 129)), "whole tiles"),
        (np.empty((100, 2)).T, "rows of out must be contiguous"),
    ],
)
def test_output_of_the_wrong_shape_is_refused(out, sentence):
    with pytest.raises(ValueError, match=sentence):
        _core.structured_features(np.ones((2, 3)), out, IDENTITY, **fastfood_arguments())


def test_terms_are_counted():
    X, out = np.ones((1, 5)), np.ones((1, 5))
    for kind in ("offset", "local", "power"):
        for terms in (None, np.ones(4)):
            with pytest.raises(ValueError, match="needs a term"):
                _core.finish_features(X, out, _core.Tail(kind, terms=terms))
    ones = np.ones(5)
    for options, sentence in [
        ({}, "needs a degree"),
        ({"degrees": np.ones(4, np.int32)}, "needs a degree"),
        ({"degrees": np.full(5, -1, np.int32)}, "a degree is negative"),
        ({"degrees": np.full(5, 3, np.int32), "slopes": np.ones(2)}, "needs a slope"),
        ({"degrees": np.full(5, 3, np.int32), "slopes": ones, "drags": np.ones(2)}, "needs a drag"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            _core.finish_features(X, out, _core.Tail("power", terms=ones, **options))
    with pytest.raises(ValueError, match="unknown tail"):
        _core.Tail("sine")
    with pytest.raises(ValueError, match="do not agree"):
        _core.finish_features(np.ones((1, 5)), np.ones((1, 11)), _core.Tail("sincos"))


def test_dense_features_refuse_bad_panels():
    X, out = np.ones((2, 3)), np.empty((2, 70))
    for panels, sentence in [
        (np.ones((1, 3, 64)), "fewer frequencies"),
        (np.ones((2, 4, 64)), "one row per column"),
        (np.ones((2, 3, 32)), "64 frequencies"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            _core.dense_features(X, out, IDENTITY, panels=panels)
    with pytest.raises(ValueError, match="rows of x must be contiguous"):
        _core.dense_features(np.ones((3, 2)).T, out, IDENTITY, panels=np.ones((2, 3, 64)))


def test_types_are_not_converted_behind_the_back():
    with pytest.raises(TypeError):
        _core.structured_features(
            np.ones((2, 3), np.float32), np.empty((2, 100)), IDENTITY, **fastfood_arguments()
        )
    with pytest.raises(TypeError):
        _core.fwht(np.ones((1, 4, 1), np.int64))
    frozen = np.ones((1, 4, 1))
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        _core.fwht(frozen)


def tensor_sketch_arguments(**changes):
    arguments = {
        "buckets": np.full((2, 3), 15, np.int32),
        "weights": np.ones((2, 3)),
        "length": 16,
        "roots": np.ones((4, 6)),
    }
    return {**arguments, **changes}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"buckets": np.full((2, 3), 16, np.int32)}, "a bucket lies outside out"),
        ({"buckets": np.full((2, 3), -1, np.int32)}, "a bucket lies outside out"),
        ({"buckets": np.zeros((0, 3), np.int32)}, "there must be a count sketch"),
        ({"buckets": np.zeros((2, 2), np.int32)}, "columns of x, or one more"),
        ({"buckets": np.zeros((2, 5), np.int32)}, "columns of x, or one more"),
        ({"weights": np.ones((1, 3))}, "the shape of buckets"),
        ({"weights": np.ones((2, 4))}, "the shape of buckets"),
        ({"roots": np.ones((3, 6))}, "six numbers for a fourth"),
        ({"roots": np.ones((4, 4))}, "six numbers for a fourth"),
        ({"length": 8}, "the transform is too short"),
        ({"length": 0}, "the transform is too short"),
        ({"length": -16}, "the transform is too short"),
        ({"length": 30}, "the transform is too short"),
        ({"length": 33}, "power of two"),
        ({"length": 32}, "six numbers for a fourth"),
        ({"length": 32, "order": np.zeros(16, np.int32)}, "the transform is too short"),
        ({"chirp": np.ones((16, 2))}, "needs its filter"),
        ({"chirp": np.ones((15, 2)), "filter": np.ones((16, 2))}, "must be complex"),
        ({"chirp": np.ones((16, 1)), "filter": np.ones((16, 2))}, "must be complex"),
        ({"chirp": np.ones((16, 2)), "filter": np.ones((16, 1))}, "must be complex"),
        ({"chirp": np.ones((16, 2)), "filter": np.ones((32, 2))}, "must be complex"),
        ({"chirp": np.ones((16, 2)), "filter": np.ones((16, 2))}, "too short for a chirp"),
        ({"order": np.zeros(16, np.int32)}, "order and factors"),
        ({"order": np.zeros(15, np.int32), "factors": np.ones(16)}, "order and factors"),
        ({"order": np.full(16, 16, np.int32), "factors": np.ones(16)}, "outside the spectrum"),
        ({"order": np.full(16, -1, np.int32), "factors": np.ones(16)}, "outside the spectrum"),
    ],
)
def test_tensor_sketches_refuse_bad_parameters(changes, sentence):
    out = np.empty((2, 16))
    for x in (np.ones((2, 3)), csr()):
        assert _core.tensor_sketch_features(x, out, **tensor_sketch_arguments())
        with pytest.raises(ValueError, match=sentence):
            _core.tensor_sketch_features(x, out, **tensor_sketch_arguments(**changes))
    with pytest.raises(ValueError, match="power of two"):
        _core.tensor_sketch_features(
            x, np.empty((2, 17)), **tensor_sketch_arguments(length=17, roots=np.ones((99, 6)))
        )


def unaligned(count):
    return np.frombuffer(bytearray(8 * count + 1), dtype=np.uint8)[1:].view(np.float64)


def test_arrays_that_are_not_aligned_are_refused():
    for x, out in [
        (unaligned(6).reshape(2, 3), np.empty((2, 70))),
        (np.ones((2, 3)), unaligned(140).reshape(2, 70)),
    ]:
        with pytest.raises(ValueError, match="not aligned"):
            _core.dense_features(x, out, IDENTITY, panels=np.ones((2, 3, 64)))
    with pytest.raises(ValueError, match="not aligned"):
        _core.fwht(unaligned(8).reshape(1, 8, 1))


def test_empty_input_is_no_work():
    _core.fwht(np.ones((0, 4, 3)))
    _core.fwht(np.ones((3, 4, 0)))
    out = np.empty((0, 100))
    assert _core.structured_features(np.ones((0, 3)), out, IDENTITY, **fastfood_arguments())
    assert _core.dense_features(np.ones((0, 3)), out, IDENTITY, panels=np.ones((2, 3, 64)))


@pytest.mark.parametrize("block", [2**16, 2**17])
def test_the_longest_blocks_are_done_row_by_row_with_the_same_result(simd, block):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, block - 3))
    arguments = {
        "block": block,
        "signs": rng.choice([-1, 1], block).astype(np.int8),
        "permutation": rng.permutation(block).astype(np.int32),
        "gaussians": rng.normal(size=block),
        "scales": np.full(block, 1 / block),
    }
    out = np.empty((9, block))
    assert _core.structured_features(X, out, IDENTITY, **arguments)
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
        "block": 4,
        "signs": np.ones((2, 128), np.int8),
        "indices": np.zeros((2, 16), np.int32),
        "depths": np.full(1, 2, np.int32),
        "weights": np.ones(16),
        **changes,
    }
    return _core.hadamard_products(np.ones((2, 3)), np.empty((2, 10)), **arguments)


def sign_products(**changes):
    arguments = {
        "bits": np.zeros((2, 3), np.uint64),
        "used": np.zeros(2, np.uint64),
        "starts": np.array([0, 2]),
        "weights": np.ones(64),
        **changes,
    }
    return _core.sign_products(np.ones((2, 3)), np.empty((2, 10)), **arguments)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
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
    assert hadamard_products()
    with pytest.raises(ValueError, match=sentence):
        hadamard_products(**changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"bits": np.zeros((2, 4), np.uint64)}, "one word per column"),
        ({"bits": np.zeros((3, 3), np.uint64)}, "do not fit the number of factors"),
        ({"used": np.zeros(1, np.uint64)}, "a word of used features"),
        ({"starts": np.array([0])}, "fewer panels"),
        ({"starts": np.array([0, 3, 2]), "weights": np.ones(128)}, "must not decrease"),
        ({"starts": np.array([1, 2])}, "do not fit"),
        ({"weights": np.ones(63)}, "whole panels"),
        ({"column_scales": np.ones(2)}, "one number per column"),
    ],
)
def test_sign_products_refuse_bad_tables(changes, sentence):
    assert sign_products()
    with pytest.raises(ValueError, match=sentence):
        sign_products(**changes)
