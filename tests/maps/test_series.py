"""What the kernels say of their series, and the kernel of eq. 28."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from kitchenette.kernels import (
    Exponential,
    Maclaurin,
    Polynomial,
    SphericalPolynomial,
    VovkInfinite,
    VovkPolynomial,
)


@pytest.mark.parametrize(
    "kernel",
    [
        Polynomial(1),
        Polynomial(5, coef0=0.3, gamma=1.7),
        Polynomial(4, coef0=0.0, gamma=0.5),
        Exponential(1.3),
        VovkPolynomial(1),
        VovkPolynomial(6),
        VovkInfinite(),
        Maclaurin([0.0, 1.0, 0.0, 2.0, 0.0]),
    ],
    ids=str,
)
def test_the_series_is_the_function(kernel):
    t = np.linspace(-0.6, 0.6, 7)
    last = 200 if kernel.last_degree is None else kernel.last_degree
    n = np.arange(last + 3)
    logs = kernel.log_coefficients(n)
    assert np.isfinite(logs[last])
    if kernel.last_degree is not None:
        assert (logs[last + 1 :] == -np.inf).all()
    values = (np.exp(logs) * t[:, None] ** n).sum(axis=1)
    np.testing.assert_allclose(values, kernel.function(t), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_spherical_polynomials_are_averages_over_the_sphere(d):
    # Averages of polynomials over the sphere by a large sample, and exactly for d = 1 and 2.
    rng = np.random.default_rng(d)
    X, Y = rng.normal(size=(3, d)), rng.normal(size=(2, d))
    if d == 1:
        V, tolerance = np.array([[1.0], [-1.0]]), 1e-12
    elif d == 2:
        angles = 2 * np.pi * np.arange(64) / 64
        V, tolerance = np.column_stack([np.cos(angles), np.sin(angles)]), 1e-12
    else:
        V = rng.normal(size=(400_000, d))
        V, tolerance = V / np.linalg.norm(V, axis=1, keepdims=True), 0.03
    for p in range(6):
        coefficients = np.zeros(p + 1)
        coefficients[p] = 2.0
        exact = SphericalPolynomial(coefficients)(X, Y)
        average = 2 * (X @ V.T) ** p @ (Y @ V.T).T ** p / len(V)
        np.testing.assert_allclose(exact, average, atol=tolerance * np.abs(exact).max() + 1e-12)


def test_spherical_polynomials_are_values_and_take_all_rows():
    kernel = SphericalPolynomial([1.0, 0.0, 0.5])
    assert kernel == clone(kernel)
    assert repr(kernel) == "SphericalPolynomial(coefficients=[1.0, 0.0, 0.5])"
    X = np.random.default_rng(0).normal(size=(6, 4))
    K = kernel(X)
    assert (np.linalg.eigvalsh(K) > -1e-12).all()
    np.testing.assert_allclose(kernel(sp.csr_array(X)), K)
    single = kernel(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, K, rtol=1e-5)
    with pytest.raises(ValueError, match="SphericalPolynomial needs a list of coefficients"):
        SphericalPolynomial([0.0])(X)
