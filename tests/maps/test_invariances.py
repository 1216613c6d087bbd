"""A row's features depend on that row alone, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys

import catalogue
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from catalogue import MAPS
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from kitchenette import (
    Fastfood,
    RandomKitchenSinks,
    _core,
)
from kitchenette.kernels import (
    Gaussian,
)

pytestmark = pytest.mark.native

OPTIONS = sorted(name for name in MAPS if not name.endswith("on the sphere"))


def make(name, kernel, n_components, random_state=0):
    """A map of the catalogue; one with exact columns has room for them."""
    if "h01" in name:
        n_components += 301
    return catalogue.make(name, n_components, kernel, random_state)


@st.composite
def fitted_maps(draw):
    name = draw(st.sampled_from(OPTIONS))
    n = draw(st.integers(1, 40))
    d = draw(st.one_of(st.integers(1, 20), st.sampled_from([64, 100, 129, 300])))
    n_components = draw(st.integers(1, 700))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    X = (rng.normal(size=(n, d)) / np.sqrt(d)).astype(dtype)
    X[rng.random((n, d)) < 0.5] = 0
    scale = draw(st.sampled_from([1.0, 0.03, np.linspace(0.5, 2, d)]))
    return make(name, Gaussian(scale), n_components).fit(X), X


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b)


@given(fitted_maps(), st.data())
@settings(deadline=None, max_examples=120)
def test_any_split_into_batches_gives_the_same_bits(map_and_rows, data):
    feature_map, X = map_and_rows
    cuts = sorted(data.draw(st.lists(st.integers(1, len(X)), max_size=4)))
    parts = [part for part in np.split(X, cuts) if len(part)]
    whole = feature_map.transform(X)
    assert same(whole, np.concatenate([feature_map.transform(part) for part in parts]))


@given(fitted_maps())
@settings(deadline=None, max_examples=60)
def test_sparse_and_dense_rows_give_the_same_bits(map_and_rows):
    feature_map, X = map_and_rows
    whole = feature_map.transform(X)
    sparse = sp.csr_array(X)
    for form in (sparse, sp.csr_matrix(X), sparse.tocsc(), sparse.tocoo()):
        assert same(whole, feature_map.transform(form))
    # Stored zeros, values stored in pieces, columns out of order, 64-bit indices.
    order = np.concatenate(
        [np.arange(s, e)[::-1] for s, e in zip(sparse.indptr, sparse.indptr[1:], strict=False)]
    )
    shuffled = sp.csr_array((sparse.data[order], sparse.indices[order], sparse.indptr), X.shape)
    assert same(whole, feature_map.transform(shuffled))
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert same(whole, feature_map.transform(wide))
    rows, columns = np.nonzero(np.ones_like(X))
    stored_zeros = sp.csr_array((X.ravel(), (rows, columns)), X.shape)
    assert same(whole, feature_map.transform(stored_zeros))


@given(fitted_maps())
@settings(deadline=None, max_examples=60)
def test_memory_layout_does_not_matter(map_and_rows):
    feature_map, X = map_and_rows
    whole = feature_map.transform(X)
    spaced = np.zeros((2 * len(X), X.shape[1] + 3), dtype=X.dtype)
    spaced[::2, 1:-2] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    unaligned = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(X.dtype).reshape(X.shape)
    for form in (
        np.asfortranarray(X),
        spaced[::2, 1:-2],
        X[::-1][::-1],
        frozen,
        unaligned,
    ):
        assert same(whole, feature_map.transform(form))
    assert same(whole[::-1], feature_map.transform(X[::-1]))


@given(fitted_maps())
@settings(deadline=None, max_examples=40)
def test_threads_do_not_matter(map_and_rows):
    feature_map, X = map_and_rows
    X = np.concatenate([X] * 30)
    whole = feature_map.transform(X)
    with threadpool_limits(1):
        assert same(whole, feature_map.transform(X))


@pytest.mark.parametrize("d", [2, 16, 33, 64, 100, 256, 700])
@pytest.mark.parametrize(
    "options", [{}, {"features": "local"}, {"projection": "hadamard"}], ids=str
)
def test_threads_that_share_a_row_stay_out_of_each_others_way(simd, options, d):
    X = (np.random.default_rng(0).normal(size=(33, d)) / np.sqrt(d)).astype(np.float32)
    feature_map = Fastfood(Gaussian(1.0), 2000, random_state=0, **options).fit(X)
    with threadpool_limits(1):
        whole = feature_map.transform(X)
    for _ in range(20):
        assert same(whole, feature_map.transform(X))


@given(fitted_maps())
@settings(deadline=None, max_examples=40)
def test_instruction_sets_agree_to_rounding(map_and_rows):
    feature_map, X = map_and_rows
    before = _core.simd()
    results = []
    try:
        for variant in _core.simd_variants():
            _core.set_simd(variant)
            results.append(feature_map.transform(X))
    finally:
        _core.set_simd(before)
    tolerance = 1e-4 if X.dtype == np.float32 else 1e-12
    for other in results[1:]:
        # A projection of size z has a rounding error of about 1e-7 z in float32, and frequencies
        # without a mean, as those of the Laplacian kernel, make a few projections of thousands.
        off = ~np.isclose(other, results[0], rtol=tolerance, atol=tolerance)
        if X.dtype == np.float32 and off.sum() <= max(1, 0.01 * off.size):
            np.testing.assert_allclose(other, results[0], rtol=0.01, atol=0.01)
        else:
            assert not off.any()


@pytest.mark.parametrize("d", [50, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", OPTIONS)
def test_one_row_alone_has_the_bits_it_has_among_others(simd, name, d):
    X = (np.random.default_rng(0).normal(size=(37, d)) / np.sqrt(d / 50)).astype(np.float32)
    feature_map = make(name, Gaussian(3.0), 333).fit(X)
    whole = feature_map.transform(X)
    assert whole.dtype == np.float32
    alone = np.concatenate([feature_map.transform(X[i : i + 1]) for i in range(37)])
    assert same(whole, alone)


@pytest.mark.parametrize("name", OPTIONS)
def test_integers_frames_and_lists_are_taken_as_float64(name):
    X = np.arange(12).reshape(4, 3)
    feature_map = make(name, Gaussian(5.0), 10).fit(X)
    whole = feature_map.transform(X)
    assert whole.dtype == np.float64
    for form in (X.tolist(), X.astype(np.float16), X.astype(np.uint8), sp.csr_array(X)):
        assert same(whole, feature_map.transform(form))
    named = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted_on_names = make(name, Gaussian(5.0), 10).fit(named)
    assert same(whole, fitted_on_names.transform(named))
    framed = fitted_on_names.set_output(transform="pandas").transform(named)
    assert list(framed.columns) == list(fitted_on_names.get_feature_names_out())
    with pytest.raises(ValueError, match="feature names"):
        fitted_on_names.transform(named[["b", "a", "c"]])


@pytest.mark.parametrize("name", OPTIONS)
def test_single_precision_agrees_with_double(name):
    X = np.random.default_rng(0).normal(size=(20, 30)) / 6
    double = make(name, Gaussian(1.0), 100).fit(X)
    single = make(name, Gaussian(1.0), 100).fit(X.astype(np.float32))
    # Frequencies of the Laplacian kernel have no mean: large ones lose digits in float32.
    tolerance = {"rtol": 2e-4, "atol": 1e-3 if "laplacian" in name else 2e-6}

    def compared(Z):
        # Fewer rows than components leave directions open, which rounding chooses.
        return Z @ Z.T if "tefm" in name else Z

    reference = compared(double.transform(X))
    for Z in (single.transform(X.astype(np.float32)), double.transform(X.astype(np.float32))):
        assert Z.dtype == np.float32
        np.testing.assert_allclose(compared(Z), reference, **tolerance)
    np.testing.assert_allclose(compared(single.transform(X)), reference, **tolerance)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_seed_makes_the_same_map_and_none_makes_a_new_one(name):
    X = np.random.default_rng(0).normal(size=(5, 4))
    first = make(name, Gaussian(1.0), 30, 7).fit(X)
    again = make(name, Gaussian(1.0), 30, first.seed_).fit(X)
    assert same(first.transform(X), again.transform(X))
    drawn = make(name, Gaussian(1.0), 30, None).fit(X)
    redrawn = make(name, Gaussian(1.0), 30, drawn.seed_).fit(X)
    assert same(drawn.transform(X), redrawn.transform(X))
    assert make(name, Gaussian(1.0), 30, None).fit(X).seed_ != drawn.seed_


CHANGED = """
import os, numpy as np
from kitchenette import Fastfood
X = np.random.default_rng(0).normal(size=(2000, 64)).astype(np.float32)
fastfood = Fastfood(n_components=1024, random_state=0).fit(X)
before = fastfood.transform(X)
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(fastfood.transform(X), before) else 1)
_, status = os.waitpid(child, 0)
raise SystemExit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.slow
def test_a_forked_child_works_and_does_not_wait_for_ever():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", CHANGED], timeout=120, check=False)
    assert done.returncode == 0


def test_setting_parameters_after_fit_does_not_disturb_the_fitted_map():
    X = np.random.default_rng(0).normal(size=(5, 4))
    for kind in (Fastfood, RandomKitchenSinks):
        feature_map = kind(Gaussian(1.0), 33, random_state=0).fit(X)
        before = feature_map.transform(X)
        feature_map.set_params(n_components=500, features="offset", kernel__length_scale=9.0)
        assert same(before, feature_map.transform(X))
        assert len(feature_map.get_feature_names_out()) == 33
