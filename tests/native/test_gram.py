"""The native part of least squares against NumPy, and what it refuses."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from scipy.linalg import cython_blas, cython_lapack
from threadpoolctl import threadpool_info, threadpool_limits

from kitchenette import _core
from kitchenette.learning.gram import PackedSymmetric
from kitchenette.resources import BLAS, BLAS_NAMES, one_blas_thread

pytestmark = pytest.mark.native

SHAPES = [(1, 1), (3, 2), (7, 511), (8, 513), (33, 1030), (2049, 70)]


NEEDS_REFUSALS = pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""),
    reason="the sanitizer's allocator ends the process where others refuse",
)
ARRAYS = ("gram", "cross", "target_gram", "feature_mean", "target_mean")


def rows(shape, dtype, spare=5):
    """Rows that lie further apart than they are long."""
    A = np.random.default_rng(shape).normal(2.0, 1.0, size=(shape[0], shape[1] + spare))
    return A.astype(dtype)[:, : shape[1]]


def updated(statistics, Z, Y, weights=None, *, remove=False):
    with one_blas_thread():
        statistics.update(Z, Y, weights, remove=remove, blas=BLAS)
    return statistics


def statistics_of(Z, Y, weights=None):
    return updated(_core.Statistics(Z.shape[1], Y.shape[1]), Z, Y, weights)


def full(statistics):
    return PackedSymmetric(statistics.n_features, statistics.gram).full()


def numbers(statistics):
    names = (*ARRAYS, "count", "n_rows", "has_float32")
    return {name: np.copy(getattr(statistics, name)) for name in names}


def assert_moments(statistics, Z, Y, weights, tolerance):
    """Against explicit sums in double precision, relative to the lengths of columns."""
    Z, n = Z.astype(float), weights.sum()
    z_mean, y_mean = weights @ Z / n, weights @ Y / n
    A, B = (Z - z_mean) * np.sqrt(weights)[:, None], (Y - y_mean) * np.sqrt(weights)[:, None]
    np.testing.assert_allclose(statistics.feature_mean, z_mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(statistics.target_mean, y_mean, rtol=1e-12, atol=1e-13)
    assert statistics.count == pytest.approx(n, rel=1e-13)
    long, wide = np.linalg.norm(A, axis=0).max(), np.linalg.norm(B, axis=0).max()
    np.testing.assert_allclose(full(statistics), np.tril(A.T @ A), atol=tolerance * long**2)
    np.testing.assert_allclose(statistics.cross, A.T @ B, atol=tolerance * long * wide)
    np.testing.assert_allclose(statistics.target_gram, B.T @ B, atol=1e-13 * wide**2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape",
    [
        *SHAPES[1:],
        *[(5, 129), (97, 48), (20, 256), (2113, 30), (4225, 30), (9000, 9)],
        pytest.param((20, 1030), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_moments_equal_explicit_sums(simd, shape, dtype):
    Z, weights = rows(shape, dtype), np.random.default_rng(0).random(shape[0]) + 0.1
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    for n_targets in (1, 3, 50, 130):
        Y = rows((shape[0], n_targets), np.float64, spare=0)
        assert_moments(statistics_of(Z, Y), Z, Y, np.ones(shape[0]), tolerance)
        assert_moments(statistics_of(Z, Y, weights), Z, Y, weights, tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("at_once", [1, 7, 16, 100, 4096, 5000])
@pytest.mark.parametrize("n_rows", [1, 15, 17, 97, 400, 4500])
def test_rows_come_in_any_number(simd, n_rows, at_once, dtype):
    if n_rows // at_once > 500:
        pytest.skip("thousands of tiny batches take long and show no more than hundreds do")
    Z, Y = rows((n_rows, 50), dtype), rows((n_rows, 5), np.float64, spare=0)
    weights = np.random.default_rng(0).random(n_rows) + 0.1
    batches = [slice(start, start + at_once) for start in range(0, n_rows, at_once)]
    accumulator = _core.Accumulator(50, 5, n_rows + len(batches), in_float32=dtype == np.float32)
    added = _core.Statistics(50, 5)
    for batch in batches:
        with one_blas_thread():
            accumulator.add(Z[batch], Y[batch], weights[batch], blas=BLAS)
        if len(batches) < 50:
            updated(added, Z[batch], Y[batch], weights[batch])
    finished = accumulator.finish(blas=BLAS)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    assert_moments(finished, Z, Y, weights, tolerance)
    assert finished.n_rows == n_rows
    assert finished.has_float32 == (dtype == np.float32)
    if len(batches) < 50:
        assert_moments(added, Z, Y, weights, tolerance)
        assert added.version == len(batches)


def test_an_accumulator_takes_batches_of_both_precisions_and_more_than_expected(simd):
    Z, Y = rows((300, 20), np.float32), rows((300, 2), np.float64, spare=0)
    accumulator = _core.Accumulator(20, 2, 1, in_float32=True)
    for start in range(0, 300, 50):
        batch = slice(start, start + 50)
        some = Z[batch] if start % 100 else Z[batch].astype(np.float64)
        accumulator.add(some, Y[batch], blas=BLAS)
    assert_moments(accumulator.finish(blas=BLAS), Z, Y, np.ones(300), 1e-5)
    with pytest.raises(ValueError, match="has handed over"):
        accumulator.finish(blas=BLAS)
    with pytest.raises(ValueError, match="has handed over"):
        accumulator.add(Z, Y, blas=BLAS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_pass_the_caches_are_the_same_rows(simd, dtype):
    # The memory of a product of 4096 rows of so many columns is larger than what is kept there.
    D = 2**25 // np.dtype(dtype).itemsize // 4096 + 40
    Z, Y = rows((4096, D), dtype), rows((4096, 2), np.float64, spare=0)
    columns = [0, 1, 47, 48, D - 41, D - 1]
    matrix = full(statistics_of(Z, Y))[np.ix_(columns, columns)]
    narrow = full(statistics_of(np.ascontiguousarray(Z[:, columns]), Y))
    rounding = 1e-12 if _core.products_call_blas() and dtype == np.float64 else 0
    rounding = 1e-5 if _core.products_call_blas() and dtype == np.float32 else rounding
    np.testing.assert_allclose(matrix, narrow, atol=rounding * narrow.max(), rtol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_centered_at_more_digits_than_they_have(simd, dtype):
    Z = (1000 + rows((300, 70), np.float64) * 1e-3).astype(dtype)
    exact = Z.astype(float) - Z.mean(axis=0, dtype=np.float64)
    statistics = statistics_of(Z, np.ones((300, 1)))
    diagonal = PackedSymmetric(70, statistics.gram).diagonal()
    np.testing.assert_allclose(diagonal, (exact**2).sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize("D", [1, 2, 5, 6, 41, 130])
def test_merging_equals_adding_the_rows(simd, D):
    Z, Y = rows((90, D), np.float64), rows((90, 3), np.float64, spare=0)
    a, b = statistics_of(Z[:30], Y[:30]), statistics_of(Z[30:] + 5, Y[30:])
    before = numbers(b)
    a.merge(b)
    both = np.vstack([Z[:30], Z[30:] + 5])
    assert_moments(a, both, Y, np.ones(90), 1e-13)
    assert all(np.array_equal(value, before[name]) for name, value in numbers(b).items())
    b.merge(b)
    twice = np.tile(Z[30:] + 5, (2, 1))
    assert_moments(b, twice, np.tile(Y[30:], (2, 1)), np.ones(120), 1e-13)


def test_statistics_get_more_targets():
    Z, Y = rows((40, 5), np.float64), rows((40, 2), np.float64, spare=0)
    statistics = statistics_of(Z, Y)
    wider = statistics.with_targets(np.array([1, 3]), 4)
    expected = np.zeros((40, 4))
    expected[:, [1, 3]] = Y
    assert_moments(wider, Z, expected, np.ones(40), 1e-13)
    assert not np.shares_memory(wider.gram, statistics.gram)
    last = 2**63 - 1
    for columns, n_targets in [
        ([1], 4),
        ([0, 1, 2], 4),
        ([1, 1], 4),
        ([1, 4], 4),
        ([-1, 2], 4),
        ([2, 1], 4),
        ([0, 1], 1),
        ([0, 1], 0),
        ([0, 1], -1),
        ([0, last], 4),
        ([last, -last - 1], 4),
        ([0, -last - 1], 4),
    ]:
        with pytest.raises(ValueError, match="column"):
            statistics.with_targets(np.array(columns, dtype=np.int64), n_targets)
    with pytest.raises(ValueError, match="column"):
        statistics.with_targets(np.empty(0, dtype=np.int64), 4)
    for n_targets in (2**31, 2**62, last):
        with pytest.raises(ValueError, match=r"less than 2\^31 targets"):
            statistics.with_targets(np.array([0, 1], dtype=np.int64), n_targets)


def test_products_do_not_depend_on_threads(simd):
    A = rows((300, 600), np.float64)
    parallel = statistics_of(A, A[:, :3].copy())
    with threadpool_limits(1):
        alone = statistics_of(A, A[:, :3].copy())
    # The BLAS may sum in another order for tiles of another size.
    rounding = 1e-11 if _core.products_call_blas() else 0
    for name in ARRAYS:
        np.testing.assert_allclose(
            getattr(parallel, name), getattr(alone, name), rtol=rounding, atol=rounding
        )


def test_threads_of_python_may_use_the_same_statistics():
    Z, Y = rows((200, 40), np.float64), rows((200, 2), np.float64, spare=0)
    a, b = statistics_of(Z, Y), statistics_of(Z, Y)
    all_at_once = Barrier(4)

    def work(caller):
        all_at_once.wait()
        for _ in range(20):
            if caller < 2:
                a.copy().merge(a)
                updated((a, b)[caller], Z, Y)
            else:
                (a, b)[caller - 2].merge(statistics_of(Z, Y))
                assert a.gram.size == 820

    def merge(first, second):
        for _ in range(5):
            first.merge(second)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
        assert a.n_rows == b.n_rows == 200 * 41
        assert_moments(a, np.tile(Z, (41, 1)), np.tile(Y, (41, 1)), np.ones(8200), 1e-12)
        for done in [pool.submit(merge, a, b), pool.submit(merge, b, a)]:
            done.result()


def test_what_is_wrong_with_a_batch_gets_a_sentence_and_changes_nothing(simd):
    Z, Y = rows((60, 7), np.float64).copy(), rows((60, 2), np.float64, spare=0)
    statistics = statistics_of(Z, Y)
    before = numbers(statistics)

    def with_number(array, value):
        changed = array.copy()
        changed[-1, -1] = value
        return changed

    for arguments, sentence in [
        ((with_number(Z, np.nan), Y), "Input Z contains NaN"),
        ((with_number(Z, np.inf).astype(np.float32), Y), "Z contains infinity .*float32"),
        ((Z, with_number(Y, np.nan)), "Input Y contains NaN"),
        ((Z, with_number(Y, -np.inf)), "Input Y contains infinity"),
        ((Z, Y, -np.ones(60)), "sample_weight must be finite and not negative"),
        ((Z, Y, np.full(60, np.nan)), "sample_weight must be finite"),
        ((Z * 1e150, Y), "too large for sums of squares in float64.*e\\+150"),
        ((Z, Y, np.full(60, 1e300)), "too large for sums of squares"),
        ((Z[:, :6], Y), "column for every feature"),
        ((Z, Y[:, :1].copy()), "column for every target"),
        ((Z, Y[:50]), "as many rows as Z"),
        ((Z, Y, np.ones(59)), "weight for every row"),
        ((np.repeat(Z, 2, axis=1)[:, ::2], Y), "contiguous"),
    ]:
        for remove in (False, True):
            with pytest.raises(ValueError, match=sentence):
                statistics.update(*arguments, remove=remove, blas=BLAS)
    with pytest.raises(ValueError, match="Cannot remove 60 rows of total weight 90: only 60"):
        statistics.update(Z, Y, np.full(60, 1.5), remove=True, blas=BLAS)
    with pytest.raises(ValueError, match="of 6 features and 2 targets into those of 7 and 2"):
        statistics.merge(_core.Statistics(6, 2))
    assert all(np.array_equal(value, before[name]) for name, value in numbers(statistics).items())
    assert statistics.version == 1


@NEEDS_REFUSALS
def test_sizes_that_make_no_sense_are_refused():
    for sizes in ((0, 1), (1, 0), (-3, 1), (1 << 31, 1), (1, 1 << 40)):
        with pytest.raises(ValueError, match="feature"):
            _core.Statistics(*sizes)
        with pytest.raises(ValueError, match="feature"):
            _core.Accumulator(*sizes, 10, in_float32=True)
    with pytest.raises(MemoryError):
        _core.Statistics((1 << 31) - 1, 1)

    with pytest.raises(ValueError, match="At least one row"):
        _core.Accumulator(3, 1, 0, in_float32=True)


@NEEDS_REFUSALS
def test_errors_are_pythons_own_beside_other_extensions_made_with_nanobind():
    pytest.importorskip("duckdb")  # has its own error for a lack of memory
    with pytest.raises(MemoryError):
        _core.Statistics((1 << 31) - 1, 1)


def test_adopted_arrays_are_those_that_were_given():
    given = numbers(statistics_of(rows((40, 5), np.float64), np.ones((40, 2))))
    given |= {"count": 40.0, "n_rows": 40, "has_float32": False}
    statistics = _core.Statistics.adopt(**given)
    assert np.shares_memory(statistics.gram, given["gram"])
    updated(statistics, rows((40, 5), np.float64), np.ones((40, 2)))
    assert np.array_equal(statistics.gram, given["gram"])
    assert np.array_equal(statistics.feature_mean, given["feature_mean"])
    gram = statistics.gram
    del statistics, given
    assert np.isfinite(gram).all()


def test_arrays_that_do_not_fit_are_not_adopted():
    good = numbers(_core.Statistics(5, 2)) | {"count": 0.0, "n_rows": 0, "has_float32": False}
    read_only = np.zeros(15)
    read_only.flags.writeable = False
    for name, bad, error in [
        ("gram", np.zeros(14), ValueError),
        ("target_gram", np.zeros((2, 3)), ValueError),
        ("feature_mean", np.zeros(4), ValueError),
        ("target_mean", np.zeros(3), ValueError),
        ("count", -1.0, ValueError),
        ("count", np.inf, ValueError),
        ("n_rows", -1, ValueError),
        ("gram", np.zeros(14, np.float32), ValueError),
        ("gram", np.zeros(15, np.float16), TypeError),
        ("cross", np.zeros((5, 2), np.float32), TypeError),
        ("cross", np.zeros((5, 2), order="F"), TypeError),
        ("gram", read_only, TypeError),
    ]:
        with pytest.raises(error):
            _core.Statistics.adopt(**{**good, name: bad})


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
    Z, Y = rows((50, 300), np.float64), np.ones((50, 1))
    expected = full(statistics_of(Z, Y))
    all_at_once = Barrier(4)

    def work(_):
        all_at_once.wait()
        return [full(statistics_of(Z, Y)) for _ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        for products in pool.map(work, range(4)):
            for product in products:
                np.testing.assert_allclose(product, expected, atol=1e-10)
    assert blas_threads() == before


def test_short_vectors_leave_products_to_the_blas(simd):
    assert _core.products_call_blas() == (simd not in ("avx2", "avx512", "wide"))


@pytest.mark.parametrize(
    "changed",
    [
        *[{"sgemm": "dgemm"}, {"ssyrk": "sgemm"}, {"dgemm": "dsyrk"}, {"dsyrk": "ddot"}],
        *[{"strsm": "dtrsm"}, {"dtrsm": "dgemm"}, {"spotrf": "dpotrf"}, {"dpotrf": "dgemm"}],
    ],
    ids=str,
)
def test_other_functions_of_the_blas_are_refused(changed):
    exported = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
    functions = {name: exported[name] for name in BLAS_NAMES}
    _core.Blas(**functions)
    with pytest.raises(ValueError, match="not the function"):
        _core.Blas(**functions | {key: exported[name] for key, name in changed.items()})
