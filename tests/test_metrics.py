"""The error metrics against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import RBFSampler

from kitchenette import Fastfood
from kitchenette.kernels import Gaussian, Laplacian
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


def test_bad_arguments_get_a_sentence(problem):
    feature_map, X, _ = problem
    with pytest.raises(ValueError, match="metric must be one of 'nrmse'"):
        kernel_error(feature_map, X, metric="rmse")
    with pytest.raises(NotFittedError):
        kernel_error(Fastfood(), X)
