"""Kernel principal components against NumPy's and scikit-learn's, and against themselves."""

from __future__ import annotations

import functools
import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from peak_memory import SOURCE
from programs import printed_by
from scipy.linalg import lapack
from sklearn import decomposition
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import kitchenette
from kitchenette import (
    TEFM,
    AutoMap,
    CRAFTMap,
    Fastfood,
    KernelPCA,
    KernelRegressor,
    RandomKitchenSinks,
    TensorSketch,
)
from kitchenette.kernels import Gaussian, Polynomial
from kitchenette.learning import gram, linear_model
from kitchenette.learning.gram import PackedSymmetric, leading_eigenvectors
from kitchenette.training import model as model_module


def fixed_map(n_components=60, **options):
    """A map that does not depend on data."""
    return Fastfood(Gaussian(2.0), n_components, random_state=0, **options)


def rows(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * np.arange(1, d + 1)[::-1] / 2


def oracle(Z, n_components, weights=None):
    """Mean, components, eigenvalues and all eigenvalues' sum from a dense matrix of features."""
    weights = np.ones(len(Z)) if weights is None else weights
    mean = weights @ Z / weights.sum()
    centered = (Z - mean) * np.sqrt(weights)[:, None]
    _, singular, right = np.linalg.svd(centered, full_matrices=False)
    components = right[:n_components]
    signs = np.sign(np.take_along_axis(components, np.abs(components).argmax(1)[:, None], 1))
    return mean, components * signs, singular[:n_components] ** 2, np.sum(singular**2)


def aligned(a, b):
    """Columns of a with the signs of the columns of b."""
    return a * np.sign(np.sum(a * b, axis=0))


@parametrize_with_checks(
    [
        KernelPCA(),
        KernelPCA(1, Fastfood(n_components=16, random_state=0), whiten=True),
        KernelPCA(3, TensorSketch(n_components=400, random_state=0)),
    ],
    expected_failed_checks=lambda estimator: (
        dict.fromkeys(
            [
                "check_sample_weight_equivalence_on_dense_data",
                "check_sample_weight_equivalence_on_sparse_data",
            ],
            "variances are divided by n - 1 for n rows of any weight, so that weights times a "
            "number are the same weights",
        )
        if estimator.whiten
        else {}
    ),
)
def test_scikit_learns_estimator_checks(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- against dense linear algebra


@pytest.mark.parametrize("n_features", [60, 300])  # full decomposition and Lanczos' method
@pytest.mark.parametrize("weighted", [False, True])
def test_components_equal_those_of_dense_features(n_features, weighted):
    X = rows(900)
    weights = np.random.default_rng(1).uniform(0.5, 3, size=len(X)) if weighted else None
    model = KernelPCA(5, fixed_map(n_features)).fit(X, sample_weight=weights)
    Z = fixed_map(n_features).fit_transform(X)
    mean, components, eigenvalues, total = oracle(Z, 5, weights)
    np.testing.assert_allclose(model.mean_, mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.eigenvalues_, eigenvalues, rtol=1e-10)
    np.testing.assert_allclose(model.components_, components, atol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio_, eigenvalues / total, rtol=1e-10)
    np.testing.assert_allclose(model.transform(X), (Z - mean) @ components.T, atol=1e-9)
    assert model.components_.shape == (5, n_features)


@pytest.mark.parametrize("whiten", [False, True])
def test_it_equals_principal_components_of_the_features(whiten):
    X, new = rows(), rows(seed=1)
    feature_map = fixed_map().fit(X)
    exact = decomposition.PCA(4, whiten=whiten).fit(feature_map.transform(X))
    model = KernelPCA(4, fixed_map(), whiten=whiten).fit(X)
    expected = exact.transform(feature_map.transform(new))
    np.testing.assert_allclose(aligned(model.transform(new), expected), expected, atol=1e-6)
    for name in ("explained_variance_", "explained_variance_ratio_", "mean_"):
        np.testing.assert_allclose(getattr(model, name), getattr(exact, name), rtol=1e-8, atol=1e-9)
    if whiten:
        np.testing.assert_allclose(model.transform(X).var(axis=0, ddof=1), 1, rtol=1e-6)


def test_it_equals_scikit_learns_kernel_pca_where_features_are_exact():
    # The kernel matrix of the features, exactly.
    X, new = rows(200), rows(100, seed=1)
    feature_map = fixed_map().fit(X)
    Z, Z_new = feature_map.transform(X), feature_map.transform(new)
    exact = decomposition.KernelPCA(4, kernel="precomputed").fit(Z @ Z.T)
    model = KernelPCA(4, fixed_map()).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)
    expected = exact.transform(Z_new @ Z.T)
    np.testing.assert_allclose(aligned(model.transform(new), expected), expected, atol=1e-6)


@pytest.mark.slow
def test_it_approximates_scikit_learns_kernel_pca():
    X, new = rows(800), rows(400, seed=1)
    exact = decomposition.KernelPCA(3, kernel="rbf", gamma=0.5 / 2.0**2).fit(X)
    expected = exact.transform(new)

    def error(n_components):
        model = KernelPCA(3, fixed_map(n_components)).fit(X)
        np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=0.2)
        differences = aligned(model.transform(new), expected) - expected
        return np.sqrt(np.mean(differences**2) / np.mean(expected**2))

    few, many = error(256), error(8192)
    assert many < 0.05
    # The error falls as 1 / sqrt(features) or faster, here by a factor of 5.7.
    assert many < few / 3


def test_the_polynomial_kernel_has_its_components():
    X = rows(500) / 4
    exact = decomposition.KernelPCA(3, kernel="poly", degree=2, gamma=1.0, coef0=1.0).fit(X)
    model = KernelPCA(3, TensorSketch(Polynomial(2), 4096, random_state=0)).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=0.1)
    expected = exact.transform(X)
    differences = aligned(model.transform(X), expected) - expected
    assert np.sqrt(np.mean(differences**2) / np.mean(expected**2)) < 0.1


def test_circles_are_separated():
    X, y = make_circles(1000, factor=0.3, noise=0.05, random_state=0)
    model = KernelPCA(1, Fastfood(Gaussian(0.4), 512, random_state=0)).fit(X[:500])
    inner = model.transform(X[500:])[:, 0] > 0
    accuracy = np.mean(inner == y[500:])
    assert max(accuracy, 1 - accuracy) > 0.99
    linear = decomposition.PCA(1).fit(X[:500]).transform(X[500:])[:, 0] > 0
    accuracy = np.mean(linear == y[500:])
    assert max(accuracy, 1 - accuracy) < 0.6


# ---------------------------------------------------------------- the leading eigenvectors


@functools.cache
def basis_of(order):
    return np.linalg.qr(np.random.default_rng(0).normal(size=(order, order)))[0]


def symmetric(spectrum):
    basis = basis_of(len(spectrum))
    return (basis * spectrum) @ basis.T


def packed(matrix):
    values = lapack.dtrttf(np.asfortranarray(matrix), transr="N", uplo="L")[0]
    return PackedSymmetric(len(matrix), values)


SPECTRA = {
    "decaying": 0.8 ** np.arange(300),
    "repeated": np.r_[np.full(4, 5.0), np.full(3, 2.0), np.linspace(1, 0, 293)],
    "all equal": np.ones(300),
    "rank three": np.r_[3.0, 2.0, 1.0, np.zeros(297)],
    "nearly flat": np.linspace(1, 0.9, 300),
    "zero": np.zeros(300),
    "tiny": 1e-200 * 0.7 ** np.arange(300),
    "huge": 1e200 * 0.7 ** np.arange(300),
    "small": 0.8 ** np.arange(5),
    "one": np.ones(1),
}


@pytest.mark.parametrize("count", [1, 6, 30, 31])  # Lanczos' method up to a tenth of the order
@pytest.mark.parametrize("spectrum", SPECTRA.values(), ids=SPECTRA)
def test_leading_eigenvectors_of_any_spectrum(spectrum, count):
    count = min(count, spectrum.size)
    matrix, scale = symmetric(spectrum), max(spectrum.max(), 1e-300)
    values, vectors = leading_eigenvectors(packed(matrix), count)
    np.testing.assert_allclose(values / scale, np.sort(spectrum)[::-1][:count] / scale, atol=1e-13)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-12)
    # Lanczos' method stops at residuals of up to about 1e-10, where eigenvalues are exact.
    np.testing.assert_allclose(matrix @ vectors / scale, vectors * values / scale, atol=1e-9)
    assert np.all(vectors[np.abs(vectors).argmax(axis=0), np.arange(count)] > 0)


def test_a_missed_eigenvector_is_noticed(monkeypatch):
    spectrum = 0.9 ** np.arange(400)
    found, calls = gram.eigsh, []

    def forgetful(operator, count, **options):
        calls.append(count)
        if len(calls) > 1:
            return found(operator, count, **options)
        values, vectors = found(operator, count + 1, **options)
        return np.delete(values, 1), np.delete(vectors, 1, axis=1)

    monkeypatch.setattr(gram, "eigsh", forgetful)
    values, _ = leading_eigenvectors(packed(symmetric(spectrum)), 5)
    np.testing.assert_allclose(values, spectrum[:5], rtol=1e-12)
    assert calls == [5, 1]


# ---------------------------------------------------------------- batches


@pytest.mark.parametrize("size", [1, 37, 300])
def test_batches_and_merging_equal_fitting_all_rows(size, monkeypatch):
    monkeypatch.setattr(model_module, "MOST_ROWS", 64)
    X, new = rows(), rows(seed=1)
    weights = np.random.default_rng(0).integers(0, 4, size=len(X)).astype(float)
    whole = KernelPCA(3, fixed_map()).fit(X, sample_weight=weights)
    batches = KernelPCA(3, fixed_map())
    parts = [slice(i, i + size) for i in range(0, len(X), size)]
    first = np.flatnonzero(weights)[0]
    for part in parts:
        if part.stop <= first:  # a first batch must have a row
            continue
        batches.partial_fit(X[part], sample_weight=weights[part])
    middle = 100
    merged = KernelPCA(3, fixed_map()).fit(X[:middle], sample_weight=weights[:middle])
    other = KernelPCA(3, fixed_map()).fit(X[middle:], sample_weight=weights[middle:])
    before = other.transform(new)
    merged.merge(other)
    assert np.array_equal(other.transform(new), before)
    for model in (batches, merged):
        assert model.statistics_.n_rows == np.count_nonzero(weights)
        for name in ("eigenvalues_", "components_", "explained_variance_", "mean_"):
            np.testing.assert_allclose(
                getattr(model, name), getattr(whole, name), rtol=1e-9, atol=1e-10
            )
        np.testing.assert_allclose(model.transform(new), whole.transform(new), atol=1e-10)


def test_weights_count_rows_and_their_scale_does_not_matter():
    X = rows()
    times = np.arange(len(X)) % 3
    weighted = KernelPCA(3, fixed_map()).fit(X, sample_weight=times)
    repeated = KernelPCA(3, fixed_map()).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-9)
    for whiten in (False, True):
        model = KernelPCA(3, fixed_map(), whiten=whiten)
        plain = clone(model).fit(X)
        scaled = clone(model).fit(X, sample_weight=np.full(len(X), 1e-3))
        np.testing.assert_allclose(scaled.transform(X), plain.transform(X), atol=1e-9)
        np.testing.assert_allclose(scaled.explained_variance_, plain.explained_variance_)


def test_rows_of_weight_zero_change_nothing():
    X = rows()
    model = KernelPCA(2, fixed_map()).fit(X)
    before = model.model_
    model.partial_fit(X, sample_weight=np.zeros(len(X)))
    assert model.model_ is before
    with pytest.raises(ValueError, match="All weights are zero"):
        KernelPCA(2, fixed_map()).partial_fit(X, sample_weight=np.zeros(len(X)))


def test_components_are_computed_when_they_are_needed(monkeypatch):
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return leading_eigenvectors(*arguments)

    monkeypatch.setattr(linear_model, "leading_eigenvectors", counted)
    X = rows()
    model = KernelPCA(2, fixed_map()).partial_fit(X[:100])
    assert len(calls) == 0
    first = model.transform(X)
    model.transform(X)
    assert len(calls) == 1
    assert len(model.partial_fit(X[100:]).eigenvalues_) == 2
    assert len(calls) == 2
    assert not np.allclose(model.transform(X), first)
    assert model.set_params(n_components=3).fit(X).transform(X).shape == (300, 3)
    assert len(calls) == 3


def test_one_row_at_a_time_is_enough_when_there_are_enough():
    X = rows(10)
    model = KernelPCA(2, fixed_map())
    for row in X:
        model.partial_fit(row[None])
    expected = KernelPCA(2, fixed_map()).fit(X)
    np.testing.assert_allclose(model.transform(X), expected.transform(X), atol=1e-9)


# ---------------------------------------------------------------- forms of rows


def test_precision_formats_and_names():
    X = rows()
    expected = KernelPCA(2, fixed_map()).fit(X)
    projections = expected.transform(X)
    single = KernelPCA(2, fixed_map()).fit(X.astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.transform(X.astype(np.float32)), projections, atol=1e-4)
    assert projections.dtype == np.float64
    sparse = KernelPCA(2, fixed_map()).fit(sp.csc_array(X))
    np.testing.assert_allclose(sparse.transform(sp.coo_array(X)), projections, atol=1e-9)
    frame = pd.DataFrame(X, columns=list("abcd"))
    framed = KernelPCA(2, fixed_map()).set_output(transform="pandas").fit(frame)
    transformed = framed.transform(frame)
    assert list(transformed.columns) == ["kernelpca0", "kernelpca1"]
    assert list(framed.feature_names_in_) == list("abcd")
    np.testing.assert_allclose(transformed, projections, atol=1e-9)
    np.testing.assert_array_equal(framed.transform(frame[list("dcba")]), transformed)


def test_projections_do_not_depend_on_the_rows_beside(monkeypatch):
    X = rows()
    model = KernelPCA(2, fixed_map()).fit(X)
    whole = model.transform(X)
    assert np.array_equal(
        np.concatenate([model.transform(X[i : i + 1]) for i in range(9)]), whole[:9]
    )
    monkeypatch.setattr(model_module, "PREDICTED_ROWS", 20)
    assert np.array_equal(model.transform(sp.csr_array(X)), whole)


@pytest.mark.parametrize(
    "feature_map",
    [
        RandomKitchenSinks(n_components=40, random_state=0),
        CRAFTMap(n_components=40, random_state=0),
        TEFM(n_components=10, random_state=0),
        RBFSampler(n_components=40, random_state=0),
        make_pipeline(StandardScaler(), Fastfood(n_components=40, random_state=0)),
        StandardScaler(),
    ],
    ids=lambda feature_map: type(feature_map).__name__,
)
def test_any_map_will_do(feature_map):
    X = rows()
    model = KernelPCA(3, feature_map).fit(X)
    exact = decomposition.PCA(3).fit_transform(model.feature_map_.transform(X))
    np.testing.assert_allclose(aligned(model.transform(X), exact), exact, atol=1e-6)


def test_the_default_map_is_drawn_from_the_seed():
    X = rows()
    model = KernelPCA(random_state=3).fit(X)
    assert model.components_.shape == (2, 1024)
    again = KernelPCA(random_state=model.seed_).fit(X)
    assert np.array_equal(model.transform(X), again.transform(X))
    expected = KernelPCA(feature_map=Fastfood(random_state=model.seed_)).fit(X)
    assert np.array_equal(model.transform(X), expected.transform(X))


def test_components_without_variance():
    X = np.repeat(rows(3), 10, axis=0)  # two directions
    for n_features in (60, 600):
        model = KernelPCA(4, fixed_map(n_features), whiten=True).fit(X)
        assert np.all(model.eigenvalues_[:2] > 0)
        assert np.array_equal(model.eigenvalues_[2:], [0, 0])
        projections = model.transform(X)
        np.testing.assert_allclose(projections[:, :2].var(axis=0, ddof=1), 1)
        assert np.array_equal(projections[:, 2:], np.zeros((30, 2)))
    constant = KernelPCA(1, fixed_map()).fit(np.ones((5, 3)))
    assert np.array_equal(constant.explained_variance_ratio_, [0])
    np.testing.assert_allclose(constant.transform(np.ones((2, 3))), 0, atol=1e-12)


# ---------------------------------------------------------------- copies and files


def assert_same(a, b, X):
    assert np.array_equal(a.transform(X), b.transform(X))
    for name in ("components_", "eigenvalues_", "explained_variance_ratio_", "mean_"):
        assert np.array_equal(getattr(a, name), getattr(b, name))
    assert a.seed_ == b.seed_


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("solved", [False, True])
def test_pickles_and_files(solved, whiten, tmp_path):
    X = rows()
    scaled = make_pipeline(StandardScaler(), Fastfood(n_components=40, random_state=0))
    for feature_map in (None, fixed_map(), FrozenEstimator(fixed_map().fit(X)), scaled):
        model = KernelPCA(3, feature_map, whiten=whiten, random_state=1).partial_fit(X[:200])
        if solved:
            model.solve()
        kitchenette.save(model, tmp_path / "pca.safetensors")
        copies = [
            pickle.loads(pickle.dumps(model)),
            deepcopy(model),
            kitchenette.load(tmp_path / "pca.safetensors"),
        ]
        for copy in copies:
            assert_same(copy, model, X)
        model.partial_fit(X[200:])
        for copy in copies:
            assert_same(copy.partial_fit(X[200:]), model, X)


def test_small_models_only_transform(tmp_path):
    X = rows()
    model = KernelPCA(2, fixed_map(600), random_state=0).partial_fit(X)
    kitchenette.save(model, tmp_path / "small.safetensors", statistics=False)
    assert (tmp_path / "small.safetensors").stat().st_size < 20_000
    for small in (model.for_inference(), kitchenette.load(tmp_path / "small.safetensors")):
        assert_same(small, model, X)
        assert len(pickle.dumps(small)) < 0.1 * len(pickle.dumps(model))
        for change, argument in ((small.partial_fit, X), (small.merge, model)):
            with pytest.raises(ValueError, match="it transforms rows, but it cannot learn from"):
                change(argument)
        assert list(small.get_feature_names_out()) == ["kernelpca0", "kernelpca1"]
    assert kitchenette.load(saved(KernelPCA(5, fixed_map()), tmp_path)).n_components == 5


def saved(model, folder):
    kitchenette.save(model, folder / "model.safetensors")
    return folder / "model.safetensors"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("components", np.full((2, 60), np.nan), "components must be finite"),
        ("components", np.ones((2, 60), np.float32), "cannot be an array of float32"),
        ("components", np.ones((3, 60)), r"must be an array of shape \(2, 60\)"),
        ("mean", np.ones(59), "must be an array of shape"),
        ("eigenvalues", np.array([1.0, -1.0]), "must be at least 0"),
        ("total", -1.0, "total must be at least 0"),
        ("divisor", 0.0, "divisor must be greater than 0"),
    ],
)
def test_altered_files_are_refused(name, value, sentence, tmp_path):
    model = KernelPCA(2, fixed_map()).fit(rows())
    model.model_ = replace(
        model.model_, given_solution=replace(model.model_.solution, **{name: value})
    )
    with pytest.raises(kitchenette.ModelFileError, match=sentence):
        kitchenette.load(saved(model, tmp_path))


def test_components_of_another_map_are_refused(tmp_path):
    model = KernelPCA(2, fixed_map()).fit(rows())
    other = KernelPCA(2, fixed_map(40)).fit(rows()).model_.solution
    model.model_ = replace(model.model_, given_solution=other)
    with pytest.raises(kitchenette.ModelFileError, match="as many features as the statistics"):
        kitchenette.load(saved(model, tmp_path))
    model = KernelPCA(2, fixed_map()).fit(rows())
    two_targets = KernelRegressor(fixed_map()).fit(rows(), rows()[:, :2]).statistics_
    model.model_ = replace(model.model_, partial=replace(model.model_.partial, settled=two_targets))
    with pytest.raises(kitchenette.ModelFileError, match="must have one target"):
        kitchenette.load(saved(model, tmp_path))


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (KernelPCA(0), "n_components must be a whole number of at least 1; got 0"),
        (KernelPCA(0.95), "n_components must be a whole number"),
        (KernelPCA(61, fixed_map()), "n_components=61 is more than the 60 features of the map"),
        (KernelPCA(6, fixed_map()), "n_components=6 needs at least 7 rows.*got n_samples=6"),
        (KernelPCA(2, Gaussian()), r"not a kernel: write KernelPCA\(feature_map=Fastfood\(Gaus"),
        (KernelPCA(2, Fastfood), r"must be an object, not a class: write Fastfood\(\)"),
        (KernelPCA(2, "rbf"), "feature_map must be None, a feature map of kitchenette.*got 'rbf'"),
        (KernelPCA(2, AutoMap()), "AutoMap requires y to be passed"),
        (KernelPCA(2, whiten="yes"), "whiten must be True or False; got 'yes'"),
    ],
)
def test_bad_parameters_get_a_sentence(model, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit(rows(6))
    assert not hasattr(model, "n_features_in_")


def test_bad_rows_get_a_sentence_and_change_nothing():
    X = rows()
    model = KernelPCA(2, fixed_map()).fit(X)
    before = model.transform(X)
    for bad, sentence in [
        (np.full((2, 4), np.inf), "contains infinity"),
        (np.ones((2, 3)), "X has 3 features, but .* is expecting 4"),
        (np.ones((0, 4)), "Found array with 0 sample"),
        (np.ones(4), "Expected 2D array, got 1D"),
    ]:
        for method in (model.transform, model.partial_fit):
            with pytest.raises(ValueError, match=sentence):
                method(bad)
    with pytest.raises(ValueError, match="one number for each of the 300 rows"):
        model.partial_fit(X, sample_weight=[1.0])
    with pytest.raises(ValueError, match="contains infinity"):
        model.fit(np.full((9, 5), np.inf))
    assert model.statistics_.n_rows == 300
    assert model.n_features_in_ == 4
    assert np.array_equal(model.transform(X), before)


def test_what_is_not_there_yet_gets_a_sentence():
    X = rows()
    with pytest.raises(NotFittedError):
        KernelPCA().transform(X)
    with pytest.raises(NotFittedError):
        KernelPCA().merge(KernelPCA())
    assert not hasattr(KernelPCA(), "components_")
    with pytest.raises(ValueError, match="needs at least 3 rows"):
        KernelPCA(2, fixed_map()).partial_fit(X[:2]).transform(X)
    with pytest.raises(ValueError, match=r"two different rows.*n_samples = 1"):
        KernelPCA().fit(X[:1])


def test_the_kernel_is_that_of_the_map():
    with pytest.raises(TypeError, match=r"no parameter kernel; use .*feature_map=Fastfood\(Gauss"):
        KernelPCA(kernel="rbf")


def test_merging_what_differs_gets_a_sentence():
    X = rows()
    model = KernelPCA(2, fixed_map()).fit(X)
    others = [
        (KernelRegressor(fixed_map()).fit(X, X[:, 0]), "merges with models of its class"),
        (KernelPCA(2, fixed_map(40)).fit(X), "feature maps differ"),
        (KernelPCA(2, fixed_map()).fit(X[:, :3]), "different columns"),
    ]
    for other, sentence in others:
        with pytest.raises(ValueError, match=sentence):
            model.merge(other)
    assert model.statistics_.n_rows == 300


# ---------------------------------------------------------------- memory

MEASURE = (
    SOURCE
    + """
import numpy as np
from kitchenette import Fastfood, KernelPCA
from kitchenette.kernels import Gaussian

rng = np.random.default_rng(0)
model = KernelPCA(3, Fastfood(Gaussian(7.0), 512, random_state=0))
for _ in range(4):
    model.partial_fit(rng.normal(size=(10_000, 50)).astype(np.float32))
model.transform(rng.normal(size=(10_000, 50)).astype(np.float32))
before = peak()
{work}
print(peak() - before)
"""
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "limit"),
    [
        # All rows have 200 MB, and their features 2 GB.
        (
            "for _ in range(96):\n"
            "    model.partial_fit(rng.normal(size=(10_000, 50)).astype(np.float32))\n"
            "assert model.statistics_.n_rows == 1_000_000\n"
            "model.transform(rng.normal(size=(10_000, 50)).astype(np.float32))",
            16 * 2**20,
        ),
        # The rows have 40 MB and their features 410.
        ("X = np.ones((200_000, 50), np.float32)\nmodel.transform(X)", 64 * 2**20),
    ],
    ids=["learning", "transforming"],
)
def test_memory_does_not_grow_with_the_rows(work, limit):
    pytest.importorskip("resource", reason="peak memory is read with resource, on Unix only")
    assert int(printed_by(MEASURE.format(work=work))) < limit
