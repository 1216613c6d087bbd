"""SRHT, CRAFTMap and TEFM against explicit matrices, expectations and stated variances."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from peak_memory import SOURCE
from programs import printed_by
from scipy.linalg import hadamard
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from unbiased import assert_spread, assert_unbiased, close_pairs, estimates, leaning_pairs

import kitchenette
from kitchenette import (
    SRHT,
    TEFM,
    CRAFTMap,
    Fastfood,
    RandomKitchenSinks,
    RandomMaclaurin,
    TensorSketch,
)
from kitchenette.kernels import Gaussian, Polynomial, VovkInfinite
from kitchenette.maps.tefm import _orthonormal_basis
from kitchenette.metrics import kernel_error


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([n, d, seed]).normal(size=(n, d)) / np.sqrt(d)


# ---------------------------------------------------------------- SRHT


def srht_matrix(srht: SRHT, d: int) -> np.ndarray:
    """R H B / sqrt(E) from the definition, block after block."""
    p = srht.specification_.products()
    H = hadamard(p.block)
    out = []
    for index in p.indices[0, : srht.n_features_out_]:
        start = index // p.block * p.block
        out.append(H[index - start] * p.signs[0, start : start + p.block])
    return np.array(out)[:, :d] / np.sqrt(srht.n_features_out_)


@pytest.mark.native
@pytest.mark.parametrize(
    ("d", "n_components"), [(1, 1), (1, 5), (3, 10), (5, 8), (100, 64), (130, 700)]
)
def test_srht_is_signs_hadamard_and_distinct_rows(simd, d, n_components):
    X = rows(21, d)
    srht = SRHT(n_components, random_state=0).fit(X)
    np.testing.assert_allclose(srht.transform(X), X @ srht_matrix(srht, d).T, atol=1e-13)
    p = srht.specification_.products()
    for start in range(0, n_components, p.block):
        run = p.indices[0, start : min(start + p.block, n_components)]
        assert len(set(run.tolist())) == len(run)
    assert np.array_equal(srht.transform(sp.csr_array(X)), srht.transform(X))


@pytest.mark.parametrize(("d", "n_components"), [(4, 4), (3, 4), (3, 12), (100, 128), (64, 640)])
def test_whole_blocks_keep_inner_products(d, n_components):
    X = rows(9, d)
    Z = SRHT(n_components, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-13)


@pytest.mark.parametrize(("d", "n_components"), [(16, 3), (20, 7), (100, 40), (7, 13)])
def test_srht_is_unbiased_with_the_stated_variance(d, n_components):
    X, Y = close_pairs(d)
    values = estimates(lambda s: SRHT(n_components, random_state=s), X, Y, 800)
    t = np.einsum("ij,ij->i", X, Y)
    assert_unbiased(values, t)
    block = 1 << (d - 1).bit_length()
    if n_components > block:
        return
    m = (X**2).sum(axis=1) * (Y**2).sum(axis=1) + 2 * (t**2 - (X**2 * Y**2).sum(axis=1))
    variance = (m - t**2) * (block - n_components) / (n_components * (block - 1))
    assert_spread(values, variance)
    with pytest.raises(AssertionError, match="variance"):
        assert_spread(values, 1.6 * variance)


def test_single_precision_stays():
    X = rows(5, 30).astype(np.float32)
    for made in (SRHT(7), CRAFTMap(Polynomial(2), 7), TEFM(Gaussian(1.0), 3)):
        assert made.fit(X).transform(X).dtype == np.float32
        np.testing.assert_allclose(
            made.transform(X.astype(float)), made.transform(X), rtol=1e-3, atol=1e-5
        )


# ---------------------------------------------------------------- CRAFTMap

UPS = [
    RandomMaclaurin(Polynomial(3), 500, degrees="optimal"),
    RandomMaclaurin(Polynomial(2), 300, h01=True, degrees="optimal"),
    TensorSketch(Polynomial(2), 256),
    Fastfood(Gaussian(1.0), 200),
    RandomKitchenSinks(Gaussian(1.0), 100),
]


@pytest.mark.native
@pytest.mark.parametrize("up", UPS, ids=lambda up: type(up).__name__)
def test_a_craftmap_is_the_wide_map_and_an_srht(up):
    X = rows(70, 11)
    craft = CRAFTMap(up, 40, random_state=0).fit(X)
    Z = craft.up_.transform(X)
    p = craft.specification_.down.products()
    H = hadamard(p.block)
    down = np.array(
        [
            H[i % p.block] * p.signs[0, i // p.block * p.block :][: p.block]
            for i in p.indices[0, :40]
        ]
    )[:, : Z.shape[1]]
    np.testing.assert_allclose(craft.transform(X), Z @ down.T / np.sqrt(40), atol=1e-12)


def test_wide_maps_that_leave_their_size_open():
    X = rows(20, 5)
    assert CRAFTMap(n_components=50).fit(X).up_.n_components == 400
    craft = CRAFTMap(Polynomial(4), 10).fit(X)
    assert isinstance(craft.up_, RandomMaclaurin)
    assert craft.up_.n_components == 80
    assert craft.kernel_ == Polynomial(4)
    assert isinstance(CRAFTMap(Gaussian(), 10).fit(X).up_, RandomKitchenSinks)
    assert CRAFTMap(TensorSketch(n_components=None), 10).fit(X).up_.n_components == 80
    given = RandomMaclaurin(Polynomial(2), 33, random_state=5)
    craft = CRAFTMap(given, 10, random_state=0).fit(X)
    assert craft.up_.seed_ == 5
    assert not hasattr(given, "seed_")
    assert TEFM(n_components=8).fit(X).base_.n_components == 32


def test_equal_seeds_of_both_maps_do_not_make_them_dependent():
    X = rows(3, 100)
    up = RandomMaclaurin(Polynomial(1, coef0=0.0), 128, random_state=0)
    craft = CRAFTMap(up, 64, random_state=0).fit(X)
    assert not np.array_equal(
        craft.specification_.down.products().signs[0], craft.up_.specification_.products().signs[0]
    )


@pytest.mark.parametrize(
    "up",
    [
        RandomMaclaurin(Polynomial(3), 256, degrees="optimal"),
        RandomMaclaurin(Polynomial(3), 256, h01=True, degrees="optimal"),
        TensorSketch(Polynomial(2, coef0=0.0), 256),
        Fastfood(Gaussian(1.0), 128),
    ],
    ids=str,
)
def test_craftmaps_are_unbiased(up):
    # E = 32 is less than the number of columns, which H0/1 alone could not have.
    X, Y = leaning_pairs(40, lean=0.8)
    values = estimates(lambda s: CRAFTMap(up, 32, random_state=s), X, Y, 150)
    expected = np.diag(up.kernel(X, Y))
    assert_unbiased(values, expected, noticed=1.2)


def test_craftmaps_beat_plain_features_of_the_same_size():
    X = rows(200, 30) + 0.2
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernel = Polynomial(7)

    def error(make):
        return np.median([kernel_error(make(s).fit(X), X) for s in range(5)])

    plain = error(lambda s: RandomMaclaurin(kernel, 256, degrees="geometric", random_state=s))
    compact = error(
        lambda s: CRAFTMap(RandomMaclaurin(kernel, 8192, degrees="geometric"), 256, random_state=s)
    )
    assert compact < 0.7 * plain


# ---------------------------------------------------------------- TEFM


def explicit_range(F: np.ndarray, tefm: TEFM) -> np.ndarray:
    """Y from the definition, with Theta as an explicit matrix."""
    from kitchenette.sketching.random import Stream

    n, count = F.shape[0], tefm.n_components
    if tefm.method == "gaussian":
        Theta = Stream(tefm.seed_, "range finder").normals(n, count)
    else:
        size = 256
        blocks = -(-n // size)
        order = 1 << (blocks - 1).bit_length()
        H = np.kron(hadamard(order), hadamard(size))
        signs = Stream(tefm.seed_, "srht signs").signs(blocks, size).ravel()[:n]
        places = Stream(tefm.seed_, "srht places").permutations(blocks, size)
        columns = (places + size * np.arange(blocks)[:, None]).ravel()[:n]
        coordinates = Stream(tefm.seed_, "srht rows").permutations(1, size)[0, :count]
        outer = Stream(tefm.seed_, "srht blocks").words(1, count)[0] % np.uint64(order)
        picked = H[outer.astype(int) * size + coordinates]
        Theta = (picked[:, columns] * signs).T
    return F.T @ Theta


@pytest.mark.parametrize("method", ["gaussian", "srht"])
@pytest.mark.parametrize("n", [100, 256, 700])
def test_tefm_projects_on_the_explicit_range(method, n):
    X = rows(n, 6)
    base = RandomKitchenSinks(Gaussian(0.7), 60, random_state=3)
    tefm = TEFM(base, 20, method=method, random_state=0).fit(X)
    F = tefm.base_.transform(X)
    Y = explicit_range(F, tefm)
    np.testing.assert_allclose(tefm.range_.sums, Y, atol=1e-9 * np.abs(Y).max())
    Q = np.linalg.qr(Y)[0]
    Z = tefm.transform(X)
    np.testing.assert_allclose(Z @ Z.T, F @ Q @ Q.T @ F.T, atol=1e-11)
    np.testing.assert_allclose(tefm.basis_.T @ tefm.basis_, np.eye(20), atol=1e-12)


@pytest.mark.parametrize(
    ("n_rows", "n_columns"),
    [(1, 1), (40, 7), (600, 256), pytest.param(900, 700, marks=pytest.mark.slow)],
)
def test_the_basis_is_that_of_a_qr_decomposition(n_rows, n_columns):
    # Fewer columns than a block of reflections, as many, and several blocks with a rest.
    A = np.random.default_rng(0).normal(size=(n_rows, n_columns)) * np.logspace(-12, 12, n_columns)
    before = A.copy()
    Q = _orthonormal_basis(A)
    assert np.array_equal(A, before)
    np.testing.assert_allclose(Q.T @ Q, np.eye(n_columns), atol=1e-13)
    np.testing.assert_allclose(Q, np.linalg.qr(A)[0], atol=1e-11)


def test_the_basis_of_a_range_of_low_rank():
    A = np.zeros((700, 300))
    A[:, 270:] = np.random.default_rng(0).normal(size=(700, 5)) @ np.ones((5, 30))
    Q = _orthonormal_basis(A)
    np.testing.assert_allclose(Q.T @ Q, np.eye(300), atol=1e-13)
    np.testing.assert_allclose(Q @ (Q.T @ A), A, atol=1e-11)


def test_power_iterations():
    X = rows(300, 6)
    base = RandomKitchenSinks(Gaussian(0.3), 60, random_state=3)
    tefm = TEFM(base, 20, power_iterations=2, random_state=0).fit(X)
    F = tefm.base_.transform(X)
    Y = np.linalg.matrix_power(F.T @ F, 2) @ explicit_range(F, tefm)
    Q = np.linalg.qr(Y)[0]
    Z = tefm.transform(X)
    np.testing.assert_allclose(Z @ Z.T, F @ Q @ Q.T @ F.T, atol=1e-8)
    best = np.linalg.svd(F)[2][:20].T
    error = {
        "best": np.linalg.norm(F - F @ best @ best.T),
        "none": np.linalg.norm(F - F @ (q := TEFM(base, 20, random_state=0).fit(X).basis_) @ q.T),
        "two": np.linalg.norm(F - F @ Q @ Q.T),
    }
    assert error["best"] <= error["two"] < error["none"]
    assert error["two"] < 1.1 * error["best"]


@pytest.mark.parametrize("method", ["gaussian", "srht"])
def test_tefm_is_exact_where_it_can_be(method):
    X = rows(200, 4)
    base = RandomKitchenSinks(Gaussian(1.0), 24, random_state=0)
    K = (F := base.fit(X).transform(X)) @ F.T
    full = TEFM(base, 24, method=method, random_state=0).fit(X).transform(X)
    np.testing.assert_allclose(full @ full.T, K, atol=1e-12)
    # A base of low rank: a polynomial of degree one on four columns has rank five.
    low = RandomMaclaurin(Polynomial(1), 64, random_state=0)
    K = (F := low.fit(X).transform(X)) @ F.T
    Z = TEFM(low, 5, method=method, random_state=0).fit(X).transform(X)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-10)
    # Fewer rows than components.
    few = TEFM(
        RandomKitchenSinks(Gaussian(1.0), 64, random_state=0), 20, method=method, random_state=0
    )
    Z = few.fit(X[:10]).transform(X[:10])
    F = few.base_.transform(X[:10])
    assert Z.shape == (10, 20)
    np.testing.assert_allclose(Z @ Z.T, F @ F.T, atol=1e-10)


def test_columns_are_transformed_in_any_parts(monkeypatch):
    X = rows(300, 5)
    tefm = TEFM(Fastfood(Gaussian(0.5), 50, random_state=0), 12, method="srht", random_state=0)
    whole = tefm.fit(X).range_.sums
    monkeypatch.setattr(kitchenette.maps.tefm, "WIDE_BYTES", 1)
    monkeypatch.setattr(kitchenette.maps.tefm, "FEWEST_COLUMNS", 7)
    assert np.array_equal(tefm.fit(X).range_.sums, whole)


@pytest.mark.parametrize("method", ["gaussian", "srht"])
def test_batches_give_the_range_of_all_rows(method):
    X = rows(700, 5)
    base = Fastfood(Gaussian(0.5), 50, random_state=0)
    whole = TEFM(base, 12, method=method, random_state=0).fit(X)
    cuts = [256, 512] if method == "srht" else [10, 300, 301]
    streamed = TEFM(base, 12, method=method, random_state=0)
    for part in np.split(X, cuts):
        streamed.partial_fit(part)
    assert streamed.n_rows_seen_ == 700
    np.testing.assert_allclose(streamed.range_.sums, whole.range_.sums, atol=1e-10)
    A, B = whole.transform(X), streamed.transform(X)
    np.testing.assert_allclose(A @ A.T, B @ B.T, atol=1e-10)
    # Uneven batches leave zeros inside; the range is as good.
    uneven = TEFM(base, 12, method=method, random_state=0)
    for part in np.split(X, [100, 399]):
        uneven.partial_fit(part)
    errors = [kernel_error(m, X, metric="relative_spectral") for m in (whole, uneven)]
    assert errors[1] < 1.5 * errors[0]


def test_collapsed_weights_predict_the_same():
    X = rows(300, 5)
    tefm = TEFM(Fastfood(Gaussian(1.0), 64, random_state=0), 16, random_state=0).fit(X)
    for shape in ((16,), (16, 3)):
        w = np.random.default_rng(0).normal(size=shape)
        np.testing.assert_allclose(
            tefm.base_.transform(X) @ tefm.collapse(w), tefm.transform(X) @ w, atol=1e-12
        )
    with pytest.raises(ValueError, match=r"weights must have 16 rows.*\(5,\)"):
        tefm.collapse(np.ones(5))


def test_tefm_has_less_error_than_random_features_of_its_size():
    X = rows(400, 10)
    for method in ("gaussian", "srht"):
        ratios = []
        for seed in range(3):
            plain = RandomKitchenSinks(Gaussian(), 64, random_state=seed).fit(X)
            tefm = TEFM(RandomKitchenSinks(Gaussian(), 256), 64, method=method, random_state=seed)
            errors = [kernel_error(m, X, metric="relative_spectral") for m in (tefm.fit(X), plain)]
            ratios.append(errors[0] / errors[1])
        assert np.mean(ratios) < 0.75


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (SRHT(0), "n_components must be a whole number of at least 1; got 0"),
        (CRAFTMap("poly"), "CRAFTMap needs a feature map.*got 'poly'"),
        (CRAFTMap(SRHT(3), 4), "n_components must be at most 3; got 4"),
        (CRAFTMap(n_components=2.5), "n_components must be a whole number"),
        (CRAFTMap(RandomMaclaurin(Gaussian())), "RandomMaclaurin does not support Gaussian"),
        (TEFM(RandomKitchenSinks(n_components=8), 9), "must be at most 8; got 9"),
        (TEFM(method="qr"), "method must be one of 'gaussian', 'srht'"),
        (TEFM(power_iterations=-1), "power_iterations must be a whole number of at least 0"),
        (TEFM(method="srht", power_iterations=1), "power_iterations are for method='gaussian'"),
        (TEFM(None), "TEFM needs a feature map"),
    ],
)
def test_bad_parameters_get_a_sentence(made, sentence):
    with pytest.raises(ValueError, match=sentence):
        made.fit(rows(20, 4))
    assert not hasattr(made, "n_features_in_")


def test_maps_inside_check_their_rows_and_their_width():
    X = rows(20, 4) / 9
    for made in (CRAFTMap(VovkInfinite(), 4), TEFM(RandomMaclaurin(VovkInfinite(), 16), 4)):
        with pytest.raises(ValueError, match="norms below 1"):
            made.fit(X).transform(100 * X)
        assert not hasattr(type(made)(), "kernel_")
    narrow = FrozenEstimator(Fastfood(n_components=80).fit(X[:, :3]))
    with pytest.raises(ValueError, match="fitted on rows of 4 columns, not 3"):
        CRAFTMap(narrow, 8).fit(X)


def test_fitted_attributes_are_copies_or_read_only():
    X = rows(20, 4)
    fastfood = Fastfood(Gaussian(2.0), 16, random_state=0).fit(X)
    Z = fastfood.transform(X)
    fastfood.kernel_.set_params(length_scale=5.0)
    assert np.array_equal(pickle.loads(pickle.dumps(fastfood)).transform(X), Z)
    with pytest.raises(ValueError, match="read-only"):
        TEFM(Gaussian(2.0), 3, random_state=0).fit(X).basis_[:] = 0


def test_down_may_be_any_linear_projection():
    X = rows(60, 8) / 3
    kernel = Polynomial(2)
    up = RandomMaclaurin(kernel, 2048, random_state=0)
    for down in (SRHT(3, random_state=5), GaussianRandomProjection(), SparseRandomProjection()):
        craft = CRAFTMap(up, 512, down=down, random_state=0).fit(X)
        assert craft.transform(X).shape == (60, 512)
        assert kernel_error(craft, X) < 0.3
        again = pickle.loads(pickle.dumps(craft))
        assert np.array_equal(again.transform(X), craft.transform(X))


@pytest.mark.parametrize(
    ("down", "sentence"),
    [
        ("srht", r"down must be None, SRHT\(n_components\) or a linear projection.*got 'srht'"),
        (SRHT, r"down must be an object, not a class: write SRHT\(\.\.\.\)"),
        (GaussianRandomProjection, r"not a class: write GaussianRandomProjection\("),
        (PCA(), "must be a random projection, which does not depend.*PCA is fitted to them"),
        (TruncatedSVD(), "TruncatedSVD is fitted to them. TEFM chooses"),
        (StandardScaler(), "or a linear projection such as.*got StandardScaler"),
        (RBFSampler(), "matrix components_ when it is fitted, which RBFSampler has not"),
    ],
)
@pytest.mark.parametrize("n_components", [1, 16])
def test_what_is_no_projection_gets_a_sentence(down, sentence, n_components):
    craft = CRAFTMap(RandomMaclaurin(Polynomial(2), 64), n_components, down=down, random_state=0)
    with pytest.raises(ValueError, match=sentence):
        craft.fit(rows(60, 8))


def test_the_generator_of_a_projection_is_its_seed():
    X = rows(60, 8)
    up = RandomMaclaurin(Polynomial(2), 64, random_state=0)

    def craft(down):
        return CRAFTMap(up, 16, down=down, random_state=0).fit(X)

    made = craft(SRHT(16, random_state=np.random.default_rng(3)))
    again = craft(SRHT(16, random_state=np.random.default_rng(3)))
    assert np.array_equal(made.transform(X), again.transform(X))
    seed = made.down_.seed_
    assert np.array_equal(made.transform(X), craft(SRHT(16, random_state=seed)).transform(X))
    np.testing.assert_allclose(
        made.down_.transform(made.up_.transform(X)), made.transform(X), atol=1e-12
    )
    assert not hasattr(CRAFTMap(), "down_")
    assert not hasattr(craft(GaussianRandomProjection()), "down_")
    others = [None, SRHT(16), SRHT(16, random_state=np.random.default_rng(4))]
    assert not any(np.array_equal(made.transform(X), craft(d).transform(X)) for d in others)
    loaded = pickle.loads(pickle.dumps(made))
    assert np.array_equal(loaded.transform(X), made.transform(X))


def test_partial_fit_with_power_iterations_is_refused_and_changes_nothing():
    X = rows(50, 4)
    tefm = TEFM(Gaussian(1.0), 4, power_iterations=1)
    with pytest.raises(ValueError, match="set power_iterations=0; got 1"):
        tefm.partial_fit(X)
    fitted = TEFM(Gaussian(1.0), 4, random_state=0).fit(X)
    before = fitted.transform(X)
    with pytest.raises(ValueError, match="5 features"):
        fitted.partial_fit(rows(3, 5))
    with pytest.raises(ValueError, match="NaN"):
        fitted.partial_fit(np.full((3, 4), np.nan))
    assert np.array_equal(fitted.transform(X), before)


MEASURE = (
    SOURCE
    + """
import numpy as np
from kitchenette import CRAFTMap, RandomMaclaurin, TEFM, RandomKitchenSinks
from kitchenette.kernels import Gaussian, Polynomial, VovkInfinite

X = np.random.default_rng(0).normal(size=(2000, 50)).astype(np.float32) / 7
{body}
"""
)

CRAFT = """
craft = CRAFTMap(RandomMaclaurin(Polynomial(3), 2**18), 256, random_state=0).fit(X)
before = peak()
Z = craft.transform(X)
print(peak() - before - Z.nbytes)
"""

TEFM_FIT = """
TEFM(RandomKitchenSinks(Gaussian(1.0), 64), 8).fit(X[:300])
before = peak()
TEFM(RandomKitchenSinks(Gaussian(1.0), 2048), 64).fit(np.tile(X, (20, 1)))
print(peak() - before - 20 * X.nbytes)
"""


@pytest.mark.parametrize(("body", "megabytes"), [(CRAFT, 64), (TEFM_FIT, 64)])
@pytest.mark.slow
def test_wide_features_never_reach_memory(body, megabytes):
    # 2000 rows of 2**18 wide features would be 2 GB, 40000 of 2048 base features 330 MB.
    pytest.importorskip("resource", reason="peak memory is read with resource, on Unix only")
    assert int(printed_by(MEASURE.format(body=body))) < megabytes * 2**20
