"""What the kernels say of their series, and the kernel of eq. 28."""

from __future__ import annotations

import pickle
from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from kitchenette import RandomMaclaurin, TensorSketch
from kitchenette.comparison import first_difference
from kitchenette.files.budget import Budget
from kitchenette.files.fields import field_values, from_fields
from kitchenette.kernels import (
    Composition,
    Exponential,
    Gaussian,
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


# ---------------------------------------------------------------- specifications of any origin


def loaded(specification):
    """What a file with these values would become, with the default limits of `load`."""
    return from_fields(type(specification), field_values(specification), Budget(2**31, 1e9))


def specification(feature_map, **changes):
    X = np.random.default_rng(0).normal(size=(20, 7)) / 3
    return replace(feature_map.fit(X).specification_, **changes)


COUNTS = {"counts": np.append(np.ones(500, dtype=int), 100), "expected": np.ones(501)}
GEOMETRIC = {"degrees": "geometric", "base": 1.0001}


@pytest.mark.parametrize(
    ("feature_map", "changes"),
    [
        (TensorSketch(), {"kernel": Polynomial(1000), "last_degree": 1000, "n_components": 2**20}),
        (TensorSketch(), {"kernel": Polynomial(10**7), "last_degree": 10**7}),
        (TensorSketch(), {"kernel": Polynomial(10**300), "last_degree": 10**300}),
        (TensorSketch(), {"n_columns": 10**9}),
        (TensorSketch(), {"n_components": 2**20, "n_sketches": 2**20}),
        (
            TensorSketch(tree=True),
            {"kernel": Polynomial(1000), "last_degree": 1000, "n_components": 2**20},
        ),
        (TensorSketch(tree=True), {"kernel": Polynomial(10**300), "last_degree": 10**300}),
        (TensorSketch(tree=True), {"n_columns": 10**9}),
        (TensorSketch(tree=True), {"n_components": 2**20, "n_sketches": 2**20}),
        (
            RandomMaclaurin(Exponential(), 600, projection="complex", degrees="optimal"),
            {"n_columns": 4096, "last_degree": 500, **COUNTS},
        ),
        (RandomMaclaurin(Exponential(), 600), {"n_columns": 4096, "last_degree": 500, **COUNTS}),
        (RandomMaclaurin(Exponential(), **GEOMETRIC), {"last_degree": 500, "n_components": 2**17}),
        (
            RandomMaclaurin(Exponential(), projection="rademacher", **GEOMETRIC),
            {"last_degree": 500, "n_components": 2**17},
        ),
        (
            RandomMaclaurin(Exponential(), projection="gaussian", **GEOMETRIC),
            {"last_degree": 500, "n_components": 2**17},
        ),
        (RandomMaclaurin(Polynomial(3), degrees="geometric"), {"n_components": 10**15}),
    ],
    ids=repr,
)
def test_work_is_bounded_before_it_is_begun(feature_map, changes):
    begun = perf_counter()
    with pytest.raises(ValueError, match=r"may take .* are left"):
        loaded(specification(feature_map, **changes))
    assert perf_counter() - begun < 1


@pytest.mark.parametrize(
    ("feature_map", "changes"),
    [
        (RandomMaclaurin(VovkPolynomial(3), 64), {"last_degree": 10**7}),
        (RandomMaclaurin(Exponential(), 64), {"last_degree": 10**7}),
        (RandomMaclaurin(Exponential(), 64), {"last_degree": -1}),
        (RandomMaclaurin(Exponential(), 64), {"largest": -1.0}),
        (RandomMaclaurin(VovkInfinite(), 64), {"largest": 1.5}),
        (RandomMaclaurin(Exponential(), 64), {"counts": None}),
        (RandomMaclaurin(Exponential(), 64), {"counts": np.array([64]), "expected": np.ones(1)}),
        (RandomMaclaurin(Exponential(), 64), {"base": 0.5}),
        (RandomMaclaurin(Exponential(), 64), {"projection": "fourier"}),
        (RandomMaclaurin(Polynomial(2), 64), {"h01": True, "n_columns": 64}),
        (RandomMaclaurin(Polynomial(2), 64), {"inner_maps": (3,)}),
        (TensorSketch(Exponential(), 64), {"counts": None}),
        (TensorSketch(Exponential(), 64), {"n_components": 65}),
        (TensorSketch(Polynomial(2), 64), {"last_degree": 3}),
        (TensorSketch(Polynomial(2), 64), {"n_sketches": 65}),
        (TensorSketch(Polynomial(2), 64), {"output": "space"}),
        (TensorSketch(Polynomial(2), 64), {"tree": "yes"}),
        (RandomMaclaurin(Polynomial(9), 64, degrees="least_error"), {"last_degree": 9}),
        (RandomMaclaurin(Composition(), 64), {"projection": "complex"}),
    ],
    ids=repr,
)
def test_values_that_no_fit_can_choose_are_refused(feature_map, changes):
    with pytest.raises(ValueError, match=r"\w"):
        loaded(specification(feature_map, **changes))


def test_an_inner_map_of_the_wrong_size_is_seen_when_it_is_drawn():
    kernel = Composition(Polynomial(2), Gaussian(1.0))
    chosen = specification(RandomMaclaurin(kernel, 64))
    for inner_maps in ((), chosen.inner_maps[:1], chosen.inner_maps[::-1]):
        with pytest.raises(ValueError, match="inner map of the right size for each factor"):
            loaded(replace(chosen, inner_maps=inner_maps)).operator(np.float64)


def test_specifications_are_values():
    kernel = Composition(Polynomial(2), Gaussian(1.0))
    maps = (RandomMaclaurin(kernel, 64), TensorSketch(Exponential(), 64), RandomMaclaurin(h01=True))
    for feature_map in maps:
        chosen = specification(feature_map.set_params(random_state=0))
        again = loaded(chosen)
        assert again == chosen
        assert pickle.loads(pickle.dumps(chosen)) == chosen
        assert first_difference(chosen, again) is None
        assert chosen != replace(chosen, seed=1)
