"""The error metrics against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import RBFSampler

from kitchenette import Fastfood
from kitchenette.kernels import Gaussian, Laplacian, Maclaurin
from kitchenette.metrics import kernel_error


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
