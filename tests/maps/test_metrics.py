"""The error metrics against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import GaussianRandomProjection

from kitchenette import (
    TEFM,
    AutoMap,
    CRAFTMap,
    Fastfood,
    RandomKitchenSinks,
    RandomMaclaurin,
    TensorSketch,
)
from kitchenette.kernels import Gaussian, Laplacian, Maclaurin, Polynomial
from kitchenette.metrics import certificate, kernel_error


@pytest.fixture(params=[30, 200])
def problem(request):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(request.param, 4)), rng.normal(size=(request.param - 9, 4))
    return Fastfood(Gaussian(2.0), 128, random_state=0).fit(X), X, Y


def definitions(K, A):
    E = K - A
    return {
        "nrmse": np.sqrt(np.mean(E**2)) / np.sqrt(np.mean(K**2)),
        "relative_spectral": np.linalg.norm(E, 2) / np.linalg.norm(K, 2),
        "relative": np.mean(np.abs(E) / np.abs(K)),
        "max": np.max(np.abs(E)),
        "mean_absolute": np.mean(np.abs(E)),
    }


def test_metrics_equal_their_definitions(problem):
    feature_map, X, Y = problem
    Z, W = feature_map.transform(X), feature_map.transform(Y)
    for name, value in definitions(Gaussian(2.0)(X), Z @ Z.T).items():
        assert kernel_error(feature_map, X, metric=name) == pytest.approx(value, rel=1e-6)
    for name, value in definitions(Gaussian(2.0)(X, Y), Z @ W.T).items():
        assert kernel_error(feature_map, X, Y, metric=name) == pytest.approx(value, rel=1e-6)
    assert kernel_error(feature_map, X) == kernel_error(feature_map, X, metric="nrmse")


def test_the_exact_kernel_can_be_given(problem):
    feature_map, X, _ = problem
    assert kernel_error(feature_map, X, kernel=Laplacian(1.0)) > kernel_error(feature_map, X)
    sampler = RBFSampler(gamma=1 / 8, n_components=500, random_state=0).fit(X)
    assert kernel_error(sampler, X, kernel=Gaussian(2.0)) < 0.2
    with pytest.raises(ValueError, match="RBFSampler has no kernel_; pass"):
        kernel_error(sampler, X)


class Exact(BaseEstimator):
    """The features of the linear kernel."""

    kernel_ = Maclaurin([0.0, 1.0])

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X)

    def __sklearn_is_fitted__(self):
        return True


@pytest.mark.parametrize("n_rows", [30, 200])
def test_a_perfect_map_has_no_error(n_rows):
    # Whole numbers: both Gram matrices are exact, and their difference is zero.
    X = np.random.default_rng(0).integers(-3, 4, size=(n_rows, 5)).astype(float)
    for name in definitions(np.ones((2, 2)), np.ones((2, 2))):
        assert kernel_error(Exact(), X, metric=name) == 0


def test_the_spectral_norm_of_an_error_that_sends_ones_to_zero():
    X = np.zeros((100, 1))
    X[:2, 0] = 1, -1
    error = kernel_error(Exact(), X, kernel=Maclaurin([0.0, 0.5]), metric="relative_spectral")
    assert error == pytest.approx(1.0)


@pytest.mark.parametrize("metric", ["nrmse", "relative_spectral", "relative"])
def test_no_error_is_relative_to_zero(metric):
    with pytest.raises(ValueError, match=f"metric='{metric}' is relative to the exact kernel"):
        kernel_error(Exact(), np.zeros((100, 2)), metric=metric)
    assert kernel_error(Exact(), np.zeros((100, 2)), metric="max") == 0


def test_bad_arguments_get_a_sentence(problem):
    feature_map, X, _ = problem
    with pytest.raises(ValueError, match="metric must be one of 'nrmse'"):
        kernel_error(feature_map, X, metric=["nrmse"])
    for wrong in ("rbf", Gaussian):
        with pytest.raises(ValueError, match=r"kernel must be a kernel from kitchenette\.kernels"):
            kernel_error(feature_map, X, kernel=wrong)
    with pytest.raises(ValueError, match="metric must be one of 'nrmse'"):
        kernel_error(feature_map, X, metric="rmse")
    with pytest.raises(NotFittedError):
        kernel_error(Fastfood(), X)


# ---------------------------------------------------------------- certificates


def deviations(make, X: np.ndarray, n_seeds: int) -> np.ndarray:
    """Squared errors of maps less their estimates, over the margins of the intervals of 90 %."""
    scores = []
    for seed in range(n_seeds):
        feature_map = make(seed).fit(X)
        found = certificate(feature_map, X, confidence=0.9, random_state=1000 + seed)
        assert found.low <= found.error <= found.high
        error = kernel_error(feature_map, X)
        scores.append((error**2 - found.error**2) / (found.high**2 - found.error**2))
    return np.abs(scores)


def unit_rows(n: int, d: int) -> np.ndarray:
    X = np.random.default_rng(d).normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda s: RandomKitchenSinks(Gaussian(0.8), 64, random_state=s),
        lambda s: Fastfood(Gaussian(0.8), 16, random_state=s),
        lambda s: TensorSketch(Polynomial(2), 32, random_state=s),
        lambda s: RandomMaclaurin(Polynomial(3), 64, random_state=s),
        lambda s: CRAFTMap(RandomMaclaurin(Polynomial(3), 128), 32, random_state=s),
    ],
    ids=["sinks", "fastfood", "sketch", "maclaurin", "craft"],
)
def test_certificates_contain_the_error_as_often_as_they_say(make):
    """If 90 % of the intervals contain the error, the test fails with probability 3e-5.

    Power: it fails for intervals of half the width, of which 60 to 70 % contain the error.
    """
    scores = deviations(make, unit_rows(25, 6), 120)
    most_misses = stats.binom.isf(3e-5, scores.size, 0.1)
    assert np.sum(scores > 1) <= most_misses
    assert np.sum(scores > 0.5) > most_misses


def test_certificates_are_narrow_and_see_what_one_map_has_drawn():
    X = unit_rows(60, 8)
    errors, estimates, widths = [], [], []
    for seed in range(15):
        feature_map = TensorSketch(Polynomial(2), 64, random_state=seed).fit(X)
        found = certificate(feature_map, X, n_copies=16)
        errors.append(kernel_error(feature_map, X))
        estimates.append(found.error)
        widths.append(found.high - found.low)
    # The estimates follow the errors of these very maps, not those of an average one.
    assert np.corrcoef(errors, estimates)[0, 1] > 0.9
    assert np.median(widths) < 0.4 * np.median(errors)


def test_certificates_of_other_packages_and_of_projections():
    X = unit_rows(40, 8)
    sampler = RBFSampler(gamma=1.0, n_components=500, random_state=0).fit(X)
    found = certificate(sampler, X)
    assert found.low < kernel_error(sampler, X, kernel=Gaussian(np.sqrt(0.5))) < found.high
    compact = CRAFTMap(
        TensorSketch(Polynomial(2), 400),
        100,
        down=GaussianRandomProjection(random_state=0),
        random_state=0,
    ).fit(X)
    found = certificate(compact, X, n_copies=12)
    assert found.low < kernel_error(compact, X) < found.high
    assert certificate(compact, X, n_copies=12) == found


def test_what_cannot_be_certified_is_refused():
    X = unit_rows(40, 8)
    with pytest.raises(ValueError, match="biased"):
        certificate(TEFM(Gaussian(1.0), 4).fit(X), X)
    with pytest.raises(ValueError, match="biased"):
        certificate(Fastfood(Gaussian(1.0), 16, projection="fourier").fit(X), X)
    with pytest.raises(ValueError, match="has no random_state"):
        certificate(StandardScaler().fit(X), X)
    with pytest.raises(ValueError, match="n_copies must be"):
        certificate(Fastfood(Gaussian(1.0), 16).fit(X), X, n_copies=2)
    with pytest.raises(ValueError, match="confidence must be"):
        certificate(Fastfood(Gaussian(1.0), 16).fit(X), X, confidence=95)
    with pytest.raises(NotFittedError):
        certificate(Fastfood(Gaussian(1.0), 16), X)
    with pytest.raises(ValueError, match="pass the map that it chose"):
        certificate(AutoMap(random_state=0).fit(X, X[:, 0]), X)
